//! One origin of a host, and what its robots.txt says.
//!
//! Decides: URLs of an origin whose robots.txt is not to be had are parked apart, so that `http` does not wait for
//! `https`.
//! Limits: parked URLs are bounded by the constants below; what exceeds them waits in place.

use std::rc::Rc;

use super::queue::Fifo;
use super::rules_cache::CachedRules;
use crate::outcome::{Failure, HostId};
use crate::time::{Duration, Instant};
use crate::url::{Scheme, Url};

/// Scheme and port of a host.
#[derive(Debug)]
pub struct Origin {
    scheme: Scheme,
    port: u16,
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
    Known { rules: Rc<CachedRules>, until: Instant, used: bool },
    /// Not to be had; asked again at the instant given, everything forbidden until then.
    Unreachable { again: Instant },
    /// Not to be had after all tries; URLs end as `why`.
    Refused { until: Instant, why: Failure },
    /// Another host's: this host, this origin of it.
    Elsewhere { host: HostId, origin: u8 },
}

/// What robots.txt says of a URL.
#[derive(Debug)]
pub enum Verdict {
    Allowed,
    Settle(Failure),
    Fetch,
    Wait(Option<Instant>),
}

impl Origin {
    /// The origin of `url`, of which nothing is known.
    pub fn new(url: &Url) -> Origin {
        Origin {
            scheme: url.scheme(),
            port: url.port(),
            robots: Robots::Unknown,
            moved: None,
            redirects: 0,
            attempts: 0,
            waiters: Vec::new(),
            parked: Fifo::default(),
        }
    }

    /// Whether `url` belongs to this origin.
    pub fn is_of(&self, url: &Url) -> bool {
        self.scheme == url.scheme() && self.port == url.port()
    }

    /// The address of this origin's robots.txt; `host` is its host's name.
    pub fn robots_url(&self, host: &str) -> Option<Url> {
        if let Some(moved) = &self.moved {
            return Some(moved.clone());
        }
        let scheme = match self.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
        };
        Url::parse(&format!("{scheme}://{host}:{}/robots.txt", self.port)).ok()
    }

    /// The Crawl-delay that its robots.txt asks for.
    pub fn crawl_delay(&self) -> Option<Duration> {
        if let Robots::Known { rules, .. } = &self.robots { rules.crawl_delay() } else { None }
    }

    /// What robots.txt says of `url`.
    pub fn verdict(&mut self, url: &Url, now: Instant) -> Verdict {
        self.expire(now);
        match &self.robots {
            Robots::Known { rules, .. } if rules.allows(url.path_and_query()) => Verdict::Allowed,
            Robots::Known { .. } => {
                self.note_use();
                Verdict::Settle(Failure::RobotsDenied)
            }
            Robots::Refused { why, .. } => Verdict::Settle(*why),
            Robots::Unknown => Verdict::Fetch,
            Robots::Unreachable { again } if *again <= now => Verdict::Fetch,
            Robots::Unreachable { again } => Verdict::Wait(Some(*again)),
            Robots::Elsewhere { .. } => Verdict::Wait(None),
        }
    }

    /// Forgets a robots.txt that is too old. One that no page was judged by yet is kept a while longer: where a
    /// delay is longer than `robots.ttl`, nothing but robots.txt would ever be fetched otherwise.
    pub fn expire(&mut self, now: Instant) {
        let is_old = match self.robots {
            Robots::Known { until, used, .. } => until <= now && (used || until + UNUSED_FOR <= now),
            Robots::Refused { until, .. } => until <= now,
            _ => false,
        };
        if is_old {
            self.forget();
        }
    }

    /// robots.txt is to be asked for anew.
    pub fn forget(&mut self) {
        (self.moved, self.redirects, self.attempts) = (None, 0, 0);
        self.robots = Robots::Unknown;
    }

    /// A URL was judged by the rules.
    pub fn note_use(&mut self) {
        if let Robots::Known { used, .. } = &mut self.robots {
            *used = true;
        }
    }

    /// Whether a URL was judged by the rules.
    pub fn has_served(&self) -> bool {
        matches!(self.robots, Robots::Known { used: true, .. })
    }

    /// Until when nothing of this origin can be fetched; `None` when something can be tried now.
    pub fn waits_until(&self, now: Instant) -> Option<Instant> {
        match &self.robots {
            Robots::Unreachable { again } if *again > now => Some(*again),
            // The other host wakes this one; the pause is a second string.
            Robots::Elsewhere { .. } => Some(now + ELSEWHERE_PAUSE),
            _ => None,
        }
    }

    /// Whether this origin's robots.txt is the one of `place`.
    pub fn waits_for(&self, place: (HostId, usize)) -> bool {
        matches!(self.robots, Robots::Elsewhere { host, origin } if (host, usize::from(origin)) == place)
    }
}

/// How long rules that were not used yet outlast their time: the longest delay that can be configured.
const UNUSED_FOR: Duration = Duration::from_secs(86_400);
/// How long a host rests whose robots.txt another host is fetching.
pub const ELSEWHERE_PAUSE: Duration = Duration::from_secs(1);
/// Bytes of URLs that wait apart for an origin's robots.txt.
pub const PARKED_BYTES_MAX: usize = 64 * 1024;
/// The same while the frontier's memory is over its bound.
pub const PARKED_BYTES_MIN: usize = 4 * 1024;
