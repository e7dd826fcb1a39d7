//! Outages of a simulated crawl: for seconds or minutes name servers are silent, the web is, or both, and then all is as
//! before.
//!
//! Decides: when they begin, how long they last, and what is out of reach. An outage of the web alone takes the default
//! route with it where there are too few sites, or nobody notices for a while: then only that shows it.

use std::collections::VecDeque;

use super::Rng;
use crate::names::DnsAnswer;
use crate::outcome::Failure;
use crate::time::{Duration, Instant};

/// The outages of a crawl, the next one first.
#[derive(Debug)]
pub struct FakeOutages {
    outages: VecDeque<FakeOutage>,
    /// Outages that have begun.
    pub begun: u64,
}

#[derive(Clone, Copy, Debug)]
struct FakeOutage {
    from: Instant,
    until: Instant,
    hits_names: bool,
    hits_web: bool,
    /// What is hit is refused, not silent.
    refuses: bool,
    has_begun: bool,
    has_route: bool,
}

impl FakeOutages {
    /// None to three.
    pub fn some(rng: &mut Rng) -> FakeOutages {
        let mut from = Instant::ZERO;
        let count = rng.below(4);
        let one = |_| {
            from = from + millis(1 << rng.below(18)) + millis(rng.below(5_000));
            let until = from + millis(1_000 << rng.below(10));
            let (hits_names, hits_web) = [(true, false), (true, true), (false, true)][rng.below(3) as usize];
            let has_route = !hits_web || rng.percent(70);
            let outage =
                FakeOutage { from, until, hits_names, hits_web, refuses: rng.percent(30), has_begun: false, has_route };
            from = until;
            outage
        };
        FakeOutages { outages: (0..count).map(one).collect(), begun: 0 }
    }

    /// The clock has moved; `is_noticed` says whether the crawl knows of an outage, `are_few` whether it has too few sites to
    /// know by these.
    pub fn advance(&mut self, now: Instant, is_noticed: bool, are_few: bool) {
        while self.outages.front().is_some_and(|outage| outage.until <= now) {
            self.outages.pop_front();
        }
        if let Some(outage) = self.outages.front_mut().filter(|outage| outage.from <= now) {
            self.begun += u64::from(!std::mem::replace(&mut outage.has_begun, true));
            if outage.hits_web && !is_noticed && (are_few || outage.from + UNNOTICED_MAX <= now) {
                outage.has_route = false;
            }
        }
    }

    /// When something begins or ends.
    pub fn next(&self) -> Option<Instant> {
        let outage = self.outages.front()?;
        Some(if outage.has_begun { outage.until } else { outage.from })
    }

    /// A run was broken off: what was to come comes so much later.
    pub fn postpone(&mut self, pause: Duration) {
        self.outages.retain(|outage| !outage.has_begun);
        for outage in &mut self.outages {
            (outage.from, outage.until) = (outage.from + pause, outage.until + pause);
        }
    }

    /// What a query of `wait` gets that is sent at `now`, and after how long, where name servers are out of reach.
    pub fn answer(&self, now: Instant, wait: Duration) -> Option<(DnsAnswer, Duration)> {
        let outage = self.at(now).filter(|outage| outage.hits_names)?;
        Some(if outage.refuses { (DnsAnswer::Unreachable, millis(1)) } else { (DnsAnswer::Silent, wait) })
    }

    /// How a request ends at `now`, and after how long, where the web is out of reach. `has_arrived`: its answer is lost.
    pub fn failure(&self, now: Instant, has_arrived: bool, rng: &mut Rng) -> Option<(Failure, Duration)> {
        let outage = self.at(now).filter(|outage| outage.hits_web)?;
        Some(match (outage.refuses, has_arrived) {
            (true, false) => (Failure::ConnectRefused, millis(rng.below(100))),
            (true, true) => (Failure::Reset, millis(rng.below(100))),
            (false, false) => (Failure::ConnectTimeout, millis(10_000)),
            (false, true) => (Failure::FirstByteTimeout, millis(10_000 + rng.below(10_000))),
        })
    }

    /// Whether there is a default route.
    pub fn has_route(&self, now: Instant) -> bool {
        self.at(now).is_none_or(|outage| outage.has_route)
    }

    fn at(&self, now: Instant) -> Option<&FakeOutage> {
        self.outages.front().filter(|outage| outage.from <= now && now < outage.until)
    }
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// An outage of the web alone that nobody notices for so long takes the default route away.
const UNNOTICED_MAX: Duration = Duration::from_secs(20);
