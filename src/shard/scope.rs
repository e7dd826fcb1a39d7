//! Which links belong to the crawl.
//!
//! Decides: by distance from a seed, by length, and by the seeds' sites or hosts (`scope.follow`).
//! Leaves to others: robots.txt (`frontier`), whether the URL was seen (`visited`).

use std::collections::HashSet;
use std::sync::Arc;

use crate::config::{self, Follow};
use crate::url::Url;

/// The crawl's scope; cheap to clone, one for each shard.
#[derive(Clone, Debug)]
pub struct Scope {
    follow: Follow,
    /// Sites or hosts of the seeds; empty when every link is followed.
    names: Arc<HashSet<Box<str>>>,
    depth_max: u16,
    url_bytes_max: usize,
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
            url_bytes_max: config.url_bytes_max,
        }
    }

    /// Whether `url`, found `depth` links from a seed, is to be crawled.
    pub fn admits(&self, url: &Url, depth: u16) -> bool {
        depth <= self.depth_max
            && url.as_str().len() <= self.url_bytes_max
            && match self.follow {
                Follow::All => true,
                Follow::SeedSites => self.names.contains(url.site()),
                Follow::SeedHosts => self.names.contains(url.host()),
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
            let config = config::Scope { follow, depth_max: 3, url_bytes_max: 60 };
            Scope::new(&config, [&seed]).admits(&Url::parse(url).unwrap(), depth)
        };
        assert!(admitted(Follow::All, "http://other.test/", 3));
        assert!(!admitted(Follow::All, "http://other.test/", 4));
        assert!(!admitted(Follow::All, &format!("http://other.test/{}", "x".repeat(60)), 0));
        assert!(admitted(Follow::SeedSites, "https://blog.example.co.uk/x", 0));
        assert!(!admitted(Follow::SeedSites, "http://example2.co.uk/", 0));
        assert!(!admitted(Follow::SeedHosts, "https://blog.example.co.uk/x", 0));
        assert!(admitted(Follow::SeedHosts, "https://www.example.co.uk/x", 0));
    }
}
