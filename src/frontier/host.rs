//! What the frontier knows of one host.
//!
//! Decides: delays, addresses and the queue belong to the host name; robots.txt belongs to each of its origins
//! (scheme and port, RFC 9309 section 2.3). URLs of an origin whose robots.txt is not to be had are parked
//! apart, so that `http` does not wait for `https`.
//! Invariants: a host has at most one job under way; its `state` says where it stands, and every host that has
//! something to do is either under way, ready, or in the calendar.
//! Limits: parked URLs and retries per host are bounded by the constants below; what exceeds them waits in place.

use std::net::IpAddr;
use std::rc::Rc;

use super::addrs::Addrs;
use super::queue::{Fifo, HostQueue};
use super::shelf::Kept;
use crate::outcome::{Failure, HostId};
use crate::time::{Duration, Instant};
use crate::url::{Scheme, Url};

/// A host and everything that waits for it.
#[derive(Debug)]
pub struct Host {
    /// Lower-case name or address.
    pub name: Box<str>,
    pub(super) state: State,
    pub(super) queue: HostQueue,
    /// The URL under consideration: it stays here while the address and robots.txt are fetched for it.
    pub(super) hand: Option<Entry>,
    pub(super) retries: Vec<(Instant, Entry)>,
    pub(super) origins: Vec<Origin>,
    pub(super) dns: Dns,
    pub(super) dns_attempts: u8,
    /// No address of the first family connected: from then on both are asked for.
    pub(super) wants_both_families: bool,
    /// Tries in a row that were an address's fault, of which others were left.
    pub(super) spared: u8,
    /// No request before this.
    pub(super) not_before: Instant,
    /// When the last request ended.
    pub(super) last_end: Instant,
    /// What robots.txt asks for.
    pub(super) crawl_delay: Duration,
    /// Failed requests since the last success.
    pub(super) failures_in_row: u32,
    /// Everything queued ends as this failure, until the instant given.
    pub(super) given_up: Option<(Failure, Instant)>,
    /// Its place in the row of idle hosts ([`super::door`]).
    pub(super) idle_number: u64,
}

/// Where a host stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Nothing to do.
    Idle,
    /// In the queue of ready hosts.
    Ready,
    /// In the calendar at this instant.
    Waiting(Instant),
    /// Among those that wait for their turn at an address or at the name servers.
    Parked,
    /// A job is under way.
    Busy,
    /// A block of the queue is on its way back from disk.
    Reading,
}

/// A URL that waits.
#[derive(Clone, Debug)]
pub struct Entry {
    pub(super) url: Url,
    pub(super) depth: u16,
    pub(super) attempt: u8,
}

/// What is known of a host's addresses.
#[derive(Clone, Debug)]
pub enum Dns {
    /// Not asked yet, or too long ago.
    Unknown,
    /// Asked in vain; again at the instant given. With the answer before that, too old to be used: which of its
    /// addresses did not connect is still known.
    Retry(Instant, Option<Addrs>),
    /// Asked, and answered.
    Known(Addrs),
}

impl Dns {
    /// What was answered last.
    pub(super) fn answer(self) -> Option<Addrs> {
        match self {
            Dns::Unknown => None,
            Dns::Retry(_, before) => before,
            Dns::Known(addrs) => Some(addrs),
        }
    }
}

/// One origin of a host and what its robots.txt says.
#[derive(Debug)]
pub struct Origin {
    pub(super) scheme: Scheme,
    pub(super) port: u16,
    pub(super) robots: Robots,
    /// Where robots.txt is looked for, when a redirect within the origin moved it.
    pub(super) moved: Option<Url>,
    /// Redirects followed to where it is looked for now.
    pub(super) redirects: u8,
    pub(super) attempts: u8,
    /// Other origins that wait for this robots.txt, because theirs redirects to it. One that itself waits has none.
    pub(super) waiters: Vec<(HostId, u8)>,
    /// URLs that wait for robots.txt.
    pub(super) parked: Fifo,
}

/// What an origin's robots.txt says.
#[derive(Clone, Debug)]
pub enum Robots {
    /// Not fetched.
    Unknown,
    /// Fetched; `used` once a page was judged by it.
    Known { rules: Rc<Kept>, until: Instant, used: bool },
    /// Not to be had; asked again at the instant given, everything forbidden until then.
    Unreachable { again: Instant },
    /// Not to be had after all tries; URLs end as `why`.
    Refused { until: Instant, why: Failure },
    /// Another host's: this host, this origin of it.
    Elsewhere { host: HostId, origin: u8 },
}

impl Host {
    pub(super) fn new(name: &str) -> Host {
        Host {
            name: name.into(),
            state: State::Idle,
            queue: HostQueue::default(),
            hand: None,
            retries: Vec::new(),
            origins: Vec::new(),
            dns: literal_address(name).map_or(Dns::Unknown, |addr| Dns::Known(Addrs::literal(addr))),
            dns_attempts: 0,
            wants_both_families: false,
            spared: 0,
            not_before: Instant::ZERO,
            last_end: Instant::ZERO,
            crawl_delay: Duration::ZERO,
            failures_in_row: 0,
            given_up: None,
            idle_number: 0,
        }
    }

    /// The index of the origin of `url`, added when new; `None` when the host has too many.
    pub(super) fn origin_of(&mut self, url: &Url) -> Option<usize> {
        let (scheme, port) = (url.scheme(), url.port());
        if let Some(index) = self.origins.iter().position(|origin| origin.is_of(url)) {
            return Some(index);
        }
        // Anyone may link to sixteen odd ports of a host; its own two must not be lost by that.
        if self.origins.len() >= ORIGINS_MAX && port != scheme.default_port() {
            return None;
        }
        // Most hosts have one or two, and there are millions of hosts.
        self.origins.reserve_exact(1);
        self.origins.push(Origin {
            scheme,
            port,
            robots: Robots::Unknown,
            moved: None,
            redirects: 0,
            attempts: 0,
            waiters: Vec::new(),
            parked: Fifo::default(),
        });
        Some(self.origins.len() - 1)
    }

    /// What is known of its addresses, also when that is too old to be used.
    pub(super) fn addrs(&mut self) -> Option<&mut Addrs> {
        match &mut self.dns {
            Dns::Known(addrs) => Some(addrs),
            _ => None,
        }
    }

    /// The address to ask at `at`, and others for when it does not answer.
    pub(super) fn addr(&self, at: Instant) -> Option<(IpAddr, &Addrs)> {
        match &self.dns {
            Dns::Known(addrs) => addrs.current(at).map(|addr| (addr, addrs)),
            _ => None,
        }
    }

    /// When there is something to do for the next request: `not_before`, or `lead` earlier where an address must be
    /// asked for first. Not so where names live so short that the answer would be too old again.
    pub(super) fn next_turn(&self, lead: Duration) -> Instant {
        let asks_early = match &self.dns {
            Dns::Known(addrs) => addrs.current(self.not_before).is_none() && addrs.outlive(lead),
            Dns::Unknown | Dns::Retry(..) => true,
        };
        if asks_early { self.not_before - lead } else { self.not_before }
    }

    /// An origin's robots.txt is known: its Crawl-delay holds from the last request on, and also after the rules
    /// have expired, until there are new ones.
    pub(super) fn obey_crawl_delay(&mut self, configured: Duration, crawl_delay_max: Duration) {
        let asked = self.origins.iter().filter_map(|origin| match &origin.robots {
            Robots::Known { rules, .. } => rules.crawl_delay(),
            _ => None,
        });
        self.crawl_delay = asked.max().unwrap_or_default().min(crawl_delay_max);
        if self.last_end > Instant::ZERO {
            self.not_before = self.not_before.max(self.last_end + self.delay(configured));
        }
    }

    /// The delay after a request: the configured one or robots.txt's Crawl-delay, whichever is longer.
    pub(super) fn delay(&self, configured: Duration) -> Duration {
        self.crawl_delay.max(configured)
    }

    /// An origin whose robots.txt another one waits for and that may be asked for it now.
    pub(super) fn wanted_robots(&self, now: Instant) -> Option<usize> {
        self.origins.iter().position(|origin| match origin.robots {
            Robots::Unknown => !origin.waiters.is_empty(),
            Robots::Unreachable { again } => !origin.waiters.is_empty() && again <= now,
            _ => false,
        })
    }

    /// When an origin may be asked again for the robots.txt that another one waits for.
    pub(super) fn wanted_again(&self) -> Option<Instant> {
        let again = self.origins.iter().filter_map(|origin| match origin.robots {
            Robots::Unreachable { again } if !origin.waiters.is_empty() => Some(again),
            _ => None,
        });
        again.min()
    }
}

impl Entry {
    /// Memory that it holds while it waits for another try.
    pub(super) fn ram_bytes(&self) -> u64 {
        (size_of::<(Instant, Entry)>() + self.url.as_str().len()) as u64
    }
}

impl Origin {
    /// Whether `url` belongs to this origin.
    pub(super) fn is_of(&self, url: &Url) -> bool {
        self.scheme == url.scheme() && self.port == url.port()
    }

    /// The address of this origin's robots.txt; `host` is its host's name.
    pub(super) fn robots_url(&self, host: &str) -> Option<Url> {
        if let Some(moved) = &self.moved {
            return Some(moved.clone());
        }
        let scheme = match self.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
        };
        Url::parse(&format!("{scheme}://{host}:{}/robots.txt", self.port)).ok()
    }
}

fn literal_address(name: &str) -> Option<IpAddr> {
    let bare = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    bare.parse().ok()
}

/// Different (scheme, port) pairs of one host that are crawled, the default ones not counted.
const ORIGINS_MAX: usize = 16;
/// Bytes of URLs that wait apart for an origin's robots.txt.
pub(super) const PARKED_BYTES_MAX: usize = 64 * 1024;
/// The same while the frontier's memory is over its bound.
pub(super) const PARKED_BYTES_MIN: usize = 4 * 1024;
/// URLs of a host that wait for another try.
pub(super) const RETRIES_MAX: usize = 256;
/// The same while the frontier's memory is over its bound.
pub(super) const RETRIES_MIN: usize = 8;
