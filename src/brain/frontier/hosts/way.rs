//! Where an origin looks for its rules: at the end of a redirect chain, or at the shard that has them.

use ringcrawl_base::time::Instant;
use ringcrawl_url::Url;

/// A redirect chain, or a request to the shard that has the host's robots.txt.
#[derive(Debug)]
pub struct Way {
    /// The current target, as known so far.
    pub target: Url,
    /// Redirects that led there.
    pub hops: u8,
    /// Earlier targets.
    pub passed: Vec<Url>,
    /// Until when all of these are valid.
    pub until: Instant,
}

impl Way {
    /// Whether the chain has led to a URL before.
    pub fn has_been_at(&self, url: &Url) -> bool {
        self.target == *url || self.passed.contains(url)
    }

    /// All earlier targets, for the chain that continues from there.
    pub fn onward(self) -> Vec<Url> {
        let Way { target, mut passed, .. } = self;
        passed.push(target);
        passed
    }
}
