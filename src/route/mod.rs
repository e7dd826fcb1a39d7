//! Which shard a URL belongs to.
//!
//! Decides: the key (site, or host) is hashed and the hash mapped to a shard. Every shard computes the same
//! answer from the URL alone, so nothing is asked, remembered or agreed on.
//! Why site: robots, politeness and budgets of a site are then one thread's plain values. Why a hash and not a
//! table: no state, and good balance as long as no site is a large part of the web.
//! Fast-range (Lemire, "Fast Random Integer Generation in an Interval", 2019) takes the hash's high bits by one
//! multiplication. Another number of shards moves most sites, and a crawl that gets one has its logs written anew.
//!
//! Invariants: the shard is less than `shards`; under `PartitionKey::Site` hosts of one site share a shard.
//! Leaves to others: carrying URLs there (`exchange`). Other partitioners are further variants of the key.

use crate::config::PartitionKey;
use crate::url::{Site, Url, site_of};

/// The rule by which URLs are given to shards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Partition {
    /// What stays together.
    pub key: PartitionKey,
    /// Number of shards, at least 1; 0 counts as 1.
    pub shards: u16,
}

impl Partition {
    /// The shard of `url`, from 0.
    pub fn shard_of(&self, url: &Url) -> u16 {
        self.shard_of_host(url.host())
    }

    /// The same for a URL whose site is known.
    pub fn shard_of_known(&self, url: &Url, site: Site) -> u16 {
        match self.key {
            _ if self.shards <= 1 => 0,
            PartitionKey::Site => fast_range(site.hash, self.shards),
            PartitionKey::Host => self.shard_of_host(url.host()),
        }
    }

    /// The shard of all URLs of a canonical (lower-case, ASCII) host, from 0.
    pub fn shard_of_host(&self, host: &str) -> u16 {
        let key = match self.key {
            PartitionKey::Site => site_of(host),
            // As for sites, the dot at the end makes no other host.
            PartitionKey::Host => host.strip_suffix('.').unwrap_or(host),
        };
        shard_of_key(key.as_bytes(), self.shards)
    }
}

/// The shard of what has this key, from 0: a site, a host, or whatever else is to be kept together.
pub fn shard_of_key(key: &[u8], shards: u16) -> u16 {
    fast_range(xxhash_rust::xxh3::xxh3_64(key), shards)
}

fn fast_range(hash: u64, shards: u16) -> u16 {
    ((u128::from(hash) * u128::from(shards)) >> 64) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_a_site_stay_together() {
        let by_site = Partition { key: PartitionKey::Site, shards: 61 };
        let by_host = Partition { key: PartitionKey::Host, shards: 61 };
        let mut spread = std::collections::BTreeSet::new();
        for number in 0..1_000 {
            let host = format!("h{number}.www.example.co.uk");
            assert_eq!(by_site.shard_of_host(&host), by_site.shard_of_host("example.co.uk"));
            spread.insert(by_host.shard_of_host(&host));
            let dotted = format!("{host}.");
            assert_eq!(by_host.shard_of_host(&dotted), by_host.shard_of_host(&host));
            assert_eq!(by_site.shard_of_host(&dotted), by_site.shard_of_host(&host));
        }
        assert_eq!(spread.len(), 61, "hosts alone spread over all shards");
        let url = Url::parse("https://x.example.co.uk:8443/y").unwrap();
        for partition in [by_site, by_host, Partition { key: PartitionKey::Site, shards: 1 }] {
            assert_eq!(partition.shard_of_known(&url, Site::of(url.host())), partition.shard_of(&url));
        }
        assert_eq!(by_site.shard_of(&url), by_site.shard_of_host("example.co.uk"));
    }

    #[test]
    fn sites_are_balanced() {
        for shards in [1u16, 2, 3, 7, 16, 61, 128] {
            let partition = Partition { key: PartitionKey::Site, shards };
            let sites = 2_000 * u32::from(shards);
            let mut counts = vec![0u32; usize::from(shards)];
            for site in 0..sites {
                counts[usize::from(partition.shard_of_host(&format!("www.site{site}.com")))] += 1;
            }
            // The standard deviation of a shard's count is √2000 ≈ 45; five of them.
            for count in counts {
                assert!(count.abs_diff(2_000) < 225, "{count} of {sites} sites in one of {shards} shards");
            }
        }
    }

    #[test]
    fn the_range_is_kept() {
        for shards in [0, 1, 2, u16::MAX] {
            assert_eq!(fast_range(0, shards), 0);
            assert_eq!(fast_range(u64::MAX, shards), shards.saturating_sub(1));
        }
    }
}
