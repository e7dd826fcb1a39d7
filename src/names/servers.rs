//! Which name server is asked: pure, with the time as an argument.
//!
//! Decides: the first of `dns.servers` is asked, as resolv.conf means it: one cache sees all names. The next one where
//! it does not answer a name, or answers with an error. One that fails [`FAILURES_MAX`] times in a row, by silence or
//! REFUSED, rests, longer each time; after its rest one query tries it, and the others pass it by until that has
//! been answered. SERVFAIL is the name's fault more often than the server's: it counts neither way.
//! hickory's own pool is not used for this: it asks two servers for each name, or gives the first all the time there
//! is, and takes a REFUSED for the answer, as often as it comes.
//! Invariants: there is always a server to ask but those that are ruled out: when all rest, the one whose rest ends
//! first; a rest is five minutes at most (RFC 2308 section 7.2).

use crate::time::{Duration, Instant};

/// The servers, by their place in the configuration.
#[derive(Debug)]
pub struct Servers {
    servers: Vec<Server>,
}

#[derive(Clone, Debug)]
struct Server {
    failures_in_row: u32,
    rests_until: Instant,
}

impl Servers {
    /// `count` servers of which nothing is known.
    pub fn new(count: usize) -> Servers {
        Servers { servers: vec![Server { failures_in_row: 0, rests_until: Instant::ZERO }; count] }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.servers.len()
    }

    /// Whether there are none: neither the configuration nor the system names one.
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// Whom to ask at `now`, of those that `ruled_out` does not name.
    pub fn pick(&mut self, now: Instant, ruled_out: impl Fn(usize) -> bool) -> Option<usize> {
        let places = (0..self.servers.len()).filter(|place| !ruled_out(*place));
        // The least is the first of those that do not rest.
        let place = places.min_by_key(|place| self.servers[*place].rests_until.max(now))?;
        let server = &mut self.servers[place];
        if server.failures_in_row >= FAILURES_MAX && server.rests_until <= now {
            server.rests_until = now + REST_MIN;
        }
        Some(place)
    }

    /// The server at `place` answered.
    pub fn answered(&mut self, place: usize) {
        self.servers[place] = Server { failures_in_row: 0, rests_until: Instant::ZERO };
    }

    /// It was silent, or refused.
    pub fn failed(&mut self, place: usize, now: Instant) {
        let server = &mut self.servers[place];
        server.failures_in_row = server.failures_in_row.saturating_add(1);
        if let Some(doublings) = server.failures_in_row.checked_sub(FAILURES_MAX) {
            server.rests_until = now + (REST_MIN * (1 << doublings.min(10))).min(REST_MAX);
        }
    }
}

/// Failures in a row before a server rests: names whose own servers are silent come in rows, too.
const FAILURES_MAX: u32 = 8;
const REST_MIN: Duration = Duration::from_secs(5);
const REST_MAX: Duration = Duration::from_secs(300);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::Rng;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn no(_: usize) -> bool {
        false
    }

    #[test]
    fn the_first_is_asked_until_it_fails_too_often() {
        let mut servers = Servers::new(3);
        assert_eq!(servers.pick(at(0), no), Some(0));
        assert_eq!(servers.pick(at(0), |place| place == 0), Some(1));
        assert_eq!(servers.pick(at(0), |_| true), None);
        for _ in 1..FAILURES_MAX {
            servers.failed(0, at(0));
            assert_eq!(servers.pick(at(0), no), Some(0));
        }
        servers.failed(0, at(0));
        assert_eq!(servers.pick(at(0), no), Some(1));
        assert_eq!(servers.pick(at(4), |place| place == 1), Some(2));
        // Its rest is over: one asks, the others wait for what comes of it.
        assert_eq!([servers.pick(at(5), no), servers.pick(at(5), no)], [Some(0), Some(1)]);
        servers.failed(0, at(6));
        assert_eq!([servers.pick(at(15), no), servers.pick(at(16), no)], [Some(1), Some(0)]);
        servers.answered(0);
        assert_eq!([servers.pick(at(16), no), servers.pick(at(16), no)], [Some(0), Some(0)]);
        servers.failed(0, at(16));
        assert_eq!(servers.pick(at(16), no), Some(0), "an answer lets all failures be forgotten");
    }

    #[test]
    fn when_all_rest_there_is_still_one_to_ask() {
        let mut servers = Servers::new(2);
        for _ in 0..100 {
            servers.failed(0, at(1_000));
        }
        for _ in 0..FAILURES_MAX {
            servers.failed(1, at(1_000));
        }
        assert_eq!(servers.pick(at(1_001), no), Some(1));
        assert_eq!(servers.pick(at(1_001), |place| place == 1), Some(0));
        servers.failed(1, at(1_299));
        assert_eq!(servers.pick(at(1_300), no), Some(0), "five minutes are the longest rest");
    }

    #[test]
    fn whatever_happens_who_is_not_ruled_out_is_picked() {
        for seed in 0..100 {
            let mut rng = Rng::new(seed);
            let count = 1 + rng.below(4) as usize;
            let (mut servers, mut now) = (Servers::new(count), at(0));
            for _ in 0..1_000 {
                now = now + Duration::from_millis(rng.below(3_000));
                let out = rng.below(1 << count);
                let picked = servers.pick(now, |place| out >> place & 1 == 1);
                assert_eq!(picked.is_some(), out != (1 << count) - 1, "seed {seed}");
                let Some(place) = picked else { continue };
                assert!(out >> place & 1 == 0, "seed {seed}");
                if rng.percent(20) {
                    servers.answered(place)
                } else {
                    servers.failed(place, now)
                }
                assert!(servers.servers.iter().all(|server| server.rests_until <= now + REST_MAX), "seed {seed}");
            }
        }
    }
}
