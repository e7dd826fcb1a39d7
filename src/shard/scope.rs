//! Which links belong to the crawl.
//!
//! Decides: by distance from a seed in links, by redirects in a row, by length, by the port, and by the seeds' sites or
//! hosts (`scope.follow`).
//! Leaves to others: robots.txt (`frontier`), whether the URL was seen (`visited`).

use std::collections::HashSet;
use std::sync::Arc;

use crate::config::{self, BadPorts, Follow};
use crate::hops::Hops;
use crate::url::{Url, is_bad_port};

/// The crawl's scope; cheap to clone, one for each shard.
#[derive(Clone, Debug)]
pub struct Scope {
    follow: Follow,
    /// Sites or hosts of the seeds; empty when every link is followed.
    names: Arc<HashSet<Box<str>>>,
    depth_max: u16,
    redirects_max: u16,
    url_bytes_max: usize,
    bad_ports: BadPorts,
}

/// Why a URL is not crawled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outside {
    /// Too many links from a seed.
    Depth,
    /// Too many redirects in a row.
    Redirects,
    /// Too long, at a port of another protocol, or of another site or host than the seeds.
    Elsewhere,
}

impl Scope {
    /// The scope of a crawl from `seeds`.
    pub fn new<'a>(config: &config::Scope, seeds: impl IntoIterator<Item = &'a Url>) -> Scope {
        let name = |url: &'a Url| match config.follow {
            Follow::All => None,
            Follow::SeedSites => Some(url.site()),
            Follow::SeedHosts => Some(url.host()),
        };
        Scope {
            follow: config.follow,
            names: Arc::new(seeds.into_iter().filter_map(name).map(Box::from).collect()),
            depth_max: config.depth_max,
            redirects_max: config.redirects_max,
            url_bytes_max: config.url_bytes_max,
            bad_ports: config.bad_ports,
        }
    }

    /// Whether `url` of `site`, found `hops` from a seed, is to be crawled.
    pub fn admits(&self, url: &Url, site: &str, hops: Hops) -> Result<(), Outside> {
        let near = url.as_str().len() <= self.url_bytes_max
            && (self.bad_ports == BadPorts::Allow || !is_bad_port(url.port()))
            && match self.follow {
                Follow::All => true,
                Follow::SeedSites => self.names.contains(site),
                Follow::SeedHosts => self.names.contains(url.host()),
            };
        match near {
            false => Err(Outside::Elsewhere),
            true if hops.links() > self.depth_max => Err(Outside::Depth),
            true if hops.redirects() > self.redirects_max => Err(Outside::Redirects),
            true => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_bound_the_crawl() {
        let seed = Url::parse("http://www.example.co.uk/").unwrap();
        let admitted = |follow, url: &str, depth| {
            let bad_ports = BadPorts::Deny;
            let config = config::Scope { follow, depth_max: 3, redirects_max: 1, url_bytes_max: 60, bad_ports };
            let url = Url::parse(url).unwrap();
            Scope::new(&config, [&seed]).admits(&url, url.site(), Hops::from_bits(depth)).is_ok()
        };
        assert!(admitted(Follow::All, "http://other.test/", 3));
        assert!(!admitted(Follow::All, "http://other.test/", 4));
        let redirected = Hops::from_bits(3).redirect();
        assert!(admitted(Follow::All, "http://other.test/", redirected.bits()));
        assert!(!admitted(Follow::All, "http://other.test/", redirected.redirect().bits()));
        assert!(!admitted(Follow::All, &format!("http://other.test/{}", "x".repeat(60)), 0));
        assert!(!admitted(Follow::All, "http://www.example.co.uk:25/", 0));
        assert!(admitted(Follow::All, "http://www.example.co.uk:8025/", 0));
        assert!(admitted(Follow::SeedSites, "https://blog.example.co.uk/x", 0));
        assert!(!admitted(Follow::SeedSites, "http://example2.co.uk/", 0));
        assert!(!admitted(Follow::SeedHosts, "https://blog.example.co.uk/x", 0));
        assert!(admitted(Follow::SeedHosts, "https://www.example.co.uk/x", 0));
    }
}
