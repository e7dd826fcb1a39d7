//! What the brain asks the hands to fetch.
//!
//! Invariants: every job comes back exactly once, with one [`crate::outcome::Outcome`].

use std::net::IpAddr;

use crate::politeness::Claims;
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_robots::Usage;
use ringcrawl_url::Url;

/// A host's slot in its shard's frontier.
pub type HostId = u32;

/// The purpose of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum JobKind {
    /// The addresses of the host of `url`.
    Resolve,
    /// The robots.txt of an origin; `url` is its address.
    Robots,
    /// A page.
    Page,
}

/// "This URL, at this address, by this deadline."
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FetchJob {
    /// Unique within the shard's run.
    pub id: u64,
    /// The frontier's slot of the host that this job occupies.
    pub host: HostId,
    /// What to do.
    pub kind: JobKind,
    /// What to fetch.
    pub url: Url,
    /// Where; `None` for `Resolve` alone.
    pub addr: Option<IpAddr>,
    /// For `Resolve`: look up both families, not the second only if the first has no address.
    pub both_families: bool,
    /// Other addresses of the host, for when that one does not answer; each needs a claim of its own. Empty if an
    /// address is known to work.
    pub others: Vec<IpAddr>,
    /// Its claims in the ledger, until `deadline` and some more.
    pub claims: Claims,
    /// For a page: the URL's number in its shard's URL log.
    pub number: u64,
    /// The distance from a seed, as the bits of `Hops`.
    pub depth: u16,
    /// For a page: which page linked to it first, if the shard remembers.
    pub via: Option<Box<str>>,
    /// How many times this was tried before: 0 the first time.
    pub attempt: u8,
    /// When it begins.
    pub began: Instant,
    /// When its request ended, if its result waits: to be read, or until it is known whether it counts.
    pub ended: Option<Instant>,
    /// When the hands must have given up.
    pub deadline: Instant,
    /// The deadline is earlier than `fetch.deadline`, because slots are short: a body that it cuts is retried, not
    /// kept.
    pub is_hurried: bool,
    /// For a page: no page of its own site was known to link to it.
    pub is_strangers: bool,
    /// The page is examined for its worth ([`crate::kinds`]).
    pub is_examined: bool,
    /// For a page: what robots.txt says about its use, if anything.
    pub usage: Option<Box<Usage>>,
    /// Fetches of its site were slow recently.
    pub is_of_slow_site: bool,
    /// The host rests at least this long after this request.
    pub rest: Duration,
    /// How it failed, if more is known than its outcome says.
    pub told: Option<Box<str>>,
}

impl FetchJob {
    /// A job of host 0 and number 0, without an address or claims, that begins at the clock's start and has no deadline.
    pub fn new(kind: JobKind, url: Url) -> FetchJob {
        FetchJob {
            id: 0,
            host: 0,
            kind,
            url,
            addr: None,
            both_families: false,
            others: Vec::new(),
            claims: Claims::default(),
            number: 0,
            depth: 0,
            via: None,
            attempt: 0,
            began: Instant::ZERO,
            ended: None,
            deadline: Instant::NEVER,
            is_hurried: false,
            is_strangers: false,
            is_examined: false,
            usage: None,
            is_of_slow_site: false,
            rest: Duration::ZERO,
            told: None,
        }
    }

    /// When its request ended, if it counts now.
    pub fn ended(&self, now: Instant) -> Instant {
        self.ended.unwrap_or(now)
    }

    /// How long it took, if it counts now.
    pub fn took(&self, now: Instant) -> Duration {
        self.ended(now).since(self.began)
    }
}
