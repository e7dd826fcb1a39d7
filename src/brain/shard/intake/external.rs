//! Links that leave the scope.
//!
//! Decides: where they are listed, each is logged: it may be a seed of the next round. The same link occurs again and
//! again, and readers of the log allow for duplicates.
//! Limits: [`EXTERNAL_MAX`] are logged in one run; the others are counted.

use crate::hops::Hops;
use crate::job::FetchJob;
use crate::scope::Outside;
use crate::stats::Totals;
use ringcrawl_base::RecentHashes;
use ringcrawl_url::Url;

/// The links that were logged.
#[derive(Debug)]
pub(in crate::shard) struct ExternalLinks {
    /// The latest ones, where they are listed.
    recent: Option<RecentHashes>,
    logged: u64,
}

impl ExternalLinks {
    /// None yet, in a crawl that lists them or does not.
    pub(super) fn new(are_listed: bool) -> ExternalLinks {
        ExternalLinks { recent: are_listed.then(RecentHashes::default), logged: 0 }
    }

    /// Whether the link to the URL with this fingerprint is to be logged.
    pub(in crate::shard) fn is_news(&mut self, fingerprint: u64, stats: &mut Totals) -> bool {
        let Some(recent) = &mut self.recent else { return false };
        if recent.is_again(fingerprint) {
            return false;
        }
        let has_room = self.logged < EXTERNAL_MAX;
        *if has_room { &mut self.logged } else { &mut stats.external_unlisted } += 1;
        has_room
    }
}

/// Why a seed, or the target of a seed's redirect, is out of a scope that follows `follow`, and what helps.
pub(super) fn why_outside(job: &FetchJob, target: &Url, outside: Outside, follow: &str) -> String {
    let is_given = Hops::from_bits(job.depth).redirects() == 0;
    let from = if is_given { "seed " } else { "a seed's redirect, " };
    let mends = match outside {
        Outside::Elsewhere => {
            format!("scope.follow = \"{follow}\" leaves out; to crawl that, add this line to the seeds: {target}")
        }
        Outside::Rule(line) => format!("line {line} of scope.rules denies"),
        Outside::Blocked => "scope.block blocks".to_owned(),
        Outside::Port => "is out of scope by its port (scope.bad_ports)".to_owned(),
        Outside::Redirects => "is one redirect too many (scope.redirects_max)".to_owned(),
        Outside::Depth | Outside::Length | Outside::Dear => "is out of scope".to_owned(),
    };
    format!("{from}{} leads to {target}, which {mends}", job.url)
}

/// Links that left the scope which a shard logs in one run; the others are counted.
const EXTERNAL_MAX: u64 = 20_000_000;
