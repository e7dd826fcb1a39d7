//! Outages of a simulated crawl: for seconds or minutes name servers do not answer, the web does not, or neither
//! does, and then everything works again.
//!
//! Decides: when outages begin, how long they last, what is out of reach, and whether an outage continues in the next
//! run if a run is broken off during it. If there are too few sites, an outage of the web alone also takes the
//! default route down: nothing else would show it.

use std::collections::VecDeque;

use ringcrawl_base::Failure;
use ringcrawl_base::Rng;
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_brain::names::DnsAnswer;

/// The outages of a crawl, the next one first.
#[derive(Debug)]
pub struct FakeOutages {
    outages: VecDeque<FakeOutage>,
    /// Outages that have begun.
    pub begun: u64,
    /// Outages that continued in another run.
    pub gone_on: u64,
}

#[derive(Clone, Copy, Debug)]
struct FakeOutage {
    from: Instant,
    until: Instant,
    hits_names: bool,
    hits_web: bool,
    /// Affected requests are refused instead of left unanswered.
    refuses: bool,
    /// The name servers run, but have no upstream server to query.
    fails_names: bool,
    /// It continues in another run, in which enough sites of the previous run are left to detect it.
    is_known_by_sites: bool,
    has_begun: bool,
    has_route: bool,
}

impl FakeOutages {
    /// Draws none to three outages.
    pub fn some(rng: &mut Rng) -> FakeOutages {
        let mut from = Instant::ZERO;
        let count = rng.below(4);
        let one = |_| {
            from = from + millis(1 << rng.below(18)) + millis(rng.below(5_000));
            let until = from + millis(1_000 << rng.below(10));
            let (hits_names, hits_web) = [(true, false), (true, true), (false, true)][rng.below(3) as usize];
            let has_route = !hits_web || rng.percent(70);
            let (refuses, fails_names) = (rng.percent(30), rng.percent(30));
            let begins = FakeOutage {
                from,
                until,
                hits_names,
                hits_web,
                refuses,
                fails_names,
                is_known_by_sites: false,
                has_begun: false,
                has_route,
            };
            from = until;
            begins
        };
        FakeOutages { outages: (0..count).map(one).collect(), begun: 0, gone_on: 0 }
    }

    /// The clock has moved. `is_noticed`: the crawl knows of an outage; `are_few`: it has too few sites to detect one
    /// by them.
    pub fn advance(&mut self, now: Instant, is_noticed: bool, are_few: bool) {
        while self.outages.front().is_some_and(|outage| outage.until <= now) {
            self.outages.pop_front();
        }
        if let Some(outage) = self.outages.front_mut().filter(|outage| outage.from <= now) {
            self.begun += u64::from(!std::mem::replace(&mut outage.has_begun, true));
            if outage.hits_web && !is_noticed && are_few && !outage.is_known_by_sites {
                outage.has_route = false;
            }
        }
    }

    /// The time of the next begin or end.
    pub fn next(&self) -> Option<Instant> {
        let outage = self.outages.front()?;
        Some(if outage.has_begun { outage.until } else { outage.from })
    }

    /// A run was broken off: later outages are postponed by `pause`. One in progress ends, or continues if it
    /// `may_go_on` and can be detected: by the name servers, or because enough sites are left that have answered.
    pub fn postpone(&mut self, pause: Duration, may_go_on: bool, are_sites_left: bool) {
        let goes_on = |outage: &FakeOutage| may_go_on && (outage.hits_names || are_sites_left);
        self.outages.retain(|outage| !outage.has_begun || goes_on(outage));
        for outage in &mut self.outages {
            if outage.has_begun {
                self.gone_on += 1;
                outage.is_known_by_sites = !outage.hits_names;
                outage.has_route |= outage.is_known_by_sites;
            } else {
                outage.from = outage.from + pause;
            }
            outage.until = outage.until + pause;
        }
    }

    /// The answer to a query of `wait` that is sent at `now`, and its delay, while name servers are out of reach.
    pub fn answer(&self, now: Instant, wait: Duration) -> Option<(DnsAnswer, Duration)> {
        let outage = self.at(now).filter(|outage| outage.hits_names)?;
        Some(match (outage.refuses, outage.fails_names) {
            (true, true) => (DnsAnswer::Refused, millis(1)),
            (true, false) => (DnsAnswer::Unreachable, millis(1)),
            (false, true) => (DnsAnswer::Error, wait / 2),
            (false, false) => (DnsAnswer::Silent, wait),
        })
    }

    /// How a request ends at `now`, and after how long, while the web is out of reach. `has_arrived`: only its
    /// response is lost.
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
