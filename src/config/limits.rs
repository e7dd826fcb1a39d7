//! Limits and settings from the configuration for crates that do not know it.

use super::{CompressUncoded, Config, Fetch, Http, Links, RepeatedBodies, Robots, Sitemaps, Store};
use ringcrawl_html::{self as html, Budget};
use ringcrawl_http::{CookieLimits, Limits};
use ringcrawl_warc::earlier_crawls::EarlierCrawls;
use ringcrawl_warc::{self as warc, Originals, Packing};
use std::sync::Arc;

impl Fetch {
    /// Of a response.
    pub fn limits(&self) -> Limits {
        Limits {
            header_bytes_max: self.header_bytes_max,
            header_count_max: self.header_count_max,
            body_wire_bytes_max: self.body_wire_bytes_max,
            body_bytes_max: self.body_bytes_max,
            decode_ratio_max: self.decode_ratio_max,
            interim_count_max: self.interim_count_max,
        }
    }

    /// Of a robots.txt: the bytes that count, and one more that shows whether it is longer. On the wire it may be an
    /// eighth longer, for a coding that lengthens the body.
    pub fn limits_of_robots(&self, robots: &Robots) -> Limits {
        let (bytes_max, limits) = (robots.body_bytes_max, self.limits());
        Limits {
            body_wire_bytes_max: limits.body_wire_bytes_max.min(bytes_max + bytes_max / 8),
            body_bytes_max: limits.body_bytes_max.min(bytes_max + 1),
            ..limits
        }
    }
}

impl Http {
    /// Of the cookies of a shard.
    pub fn cookie_limits(&self) -> CookieLimits {
        CookieLimits {
            site_count_max: self.cookie_count_max,
            bytes_max: self.cookie_bytes_max,
            ram_bytes_max: self.cookie_ram_bytes_max,
        }
    }
}

impl Links {
    /// Of what is taken from a page.
    pub fn budget(&self) -> Budget {
        let page = html::Limits {
            links: self.page_links_max,
            bytes: self.page_link_bytes_max,
            names: ("links.page_links_max", "links.page_link_bytes_max"),
        };
        let sitemap = match self.sitemaps {
            // From sitemaps that were not requested, we take no more than from pages.
            Sitemaps::Off => page,
            Sitemaps::Robots => html::Limits {
                links: self.sitemap_links_max,
                bytes: self.sitemap_link_bytes_max,
                names: ("links.sitemap_links_max", "links.sitemap_link_bytes_max"),
            },
        };
        Budget::new(page, sitemap)
    }
}

impl Store {
    /// How bodies are packed.
    pub fn packing(&self) -> Packing {
        Packing {
            format: self.format,
            zstd_level: self.zstd_level,
            gzip_level: self.gzip_level,
            is_raw: self.compress_uncoded == CompressUncoded::Raw,
            has_dictionary: self.compress_uncoded == CompressUncoded::Dictionary,
            digest: self.digest,
        }
    }

    /// A shard's memory of what is stored; `None`: repeated payloads are stored again.
    pub fn originals(&self, seed: u64, earlier: Arc<EarlierCrawls>) -> Option<Originals> {
        (self.duplicates == RepeatedBodies::Revisit).then(|| Originals::new(self.duplicates_bytes_max, seed, earlier))
    }
}

impl Config {
    /// Of a shard's segments.
    pub fn segment_settings(&self, user_agent: &str, rng_seed: u64) -> warc::Settings {
        warc::Settings {
            packing: self.store.packing(),
            segment_bytes_max: self.store.segment_bytes_max,
            segment_age_max: self.store.segment_age_max.0,
            user_agent: user_agent.to_owned(),
            operator: self.agent.email.clone(),
            configured: self.told(),
            rng_seed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_the_same() {
        assert_eq!(Fetch::default().limits(), Limits::default());
    }
}
