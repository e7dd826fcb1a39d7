//! Which name server gets a query: pure, with the time as an argument.
//!
//! Decides: the first of `dns.servers` gets the query, as resolv.conf intends: one cache sees all names. The next one
//! follows if the first does not answer a name, or answers with an error. A server that fails [`FAILURES_MAX`] times
//! in a row, by silence or REFUSED, rests, longer each time. After its rest one query tries it, and the others skip
//! it until that has been answered. SERVFAIL is the name's fault more often than the server's: it counts neither way.
//! Queries use EDNS, for answers that do not fit in 512 bytes. Some servers and middleboxes refuse or drop such a
//! query (RFC 6891 section 6.2.2 and 7). A server that answers only without EDNS, a few times in a row, gets queries
//! without it for [`PLAIN_FOR`]. Then one query tries EDNS, so a few lost packets cost no more than that.
//! hickory's own pool is not used for this: it queries two servers for each name, or gives the first all the time
//! there is, and takes a REFUSED for the answer, every time.
//! Invariants: there is always a server to query unless all are ruled out: when all rest, the one whose rest ends
//! first; a rest is five minutes at most (RFC 2308 section 7.2).

use ringcrawl_base::time::{Duration, Instant};

/// The servers, by their place in the configuration.
#[derive(Debug)]
pub struct Servers {
    servers: Vec<Server>,
}

#[derive(Clone, Debug)]
struct Server {
    failures_in_row: u32,
    rests_until: Instant,
    edns: Edns,
}

/// What is known about a server's EDNS support.
#[derive(Clone, Copy, Debug)]
struct Edns {
    /// It has answered with EDNS, or also failed without it, since it rested last: a failure has another cause.
    is_cleared: bool,
    /// Queries that also failed without EDNS, while its support was unknown.
    failed_both_ways: u32,
    /// Consecutive queries that were answered only without EDNS.
    plain_only: u32,
    /// Until then its queries have no EDNS.
    plain_until: Instant,
}

impl Edns {
    const UNKNOWN: Edns = Edns { is_cleared: false, failed_both_ways: 0, plain_only: 0, plain_until: Instant::ZERO };
}

impl Servers {
    /// `count` servers about which nothing is known, at least one.
    pub fn new(count: usize) -> Servers {
        assert!(count > 0, "the hands have a server, or expect one");
        let server = Server { failures_in_row: 0, rests_until: Instant::ZERO, edns: Edns::UNKNOWN };
        Servers { servers: vec![server; count] }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.servers.len()
    }

    /// The server to query at `now`, among those that `ruled_out` does not name.
    pub fn pick(&mut self, now: Instant, ruled_out: impl Fn(usize) -> bool) -> Option<usize> {
        let places = (0..self.servers.len()).filter(|place| !ruled_out(*place));
        // The minimum is the first server that does not rest.
        let place = places.min_by_key(|place| self.servers[*place].rests_until.max(now))?;
        let server = &mut self.servers[place];
        if server.failures_in_row >= FAILURES_MAX && server.rests_until <= now {
            server.rests_until = now + REST_MIN;
        }
        Some(place)
    }

    /// Whether the query that is sent to the server at `place` now has EDNS.
    pub fn takes_edns(&mut self, place: usize, now: Instant) -> bool {
        let edns = &mut self.servers[place].edns;
        let takes = edns.plain_until <= now;
        if takes && edns.plain_until > Instant::ZERO {
            // The others wait for the result of this one.
            edns.plain_until = now + REST_MIN;
        }
        takes
    }

    /// Whether a failure of the server at `place` may be due to EDNS, and not to the question.
    pub fn may_dislike_edns(&self, place: usize) -> bool {
        !self.servers[place].edns.is_cleared
    }

    /// The server at `place` answered, with EDNS or without.
    pub fn answered(&mut self, place: usize, with_edns: bool) {
        let server = &mut self.servers[place];
        (server.failures_in_row, server.rests_until) = (0, Instant::ZERO);
        if with_edns {
            server.edns = Edns { is_cleared: true, ..Edns::UNKNOWN };
        }
    }

    /// The server at `place` answered only without EDNS.
    pub fn answered_plain_only(&mut self, place: usize, now: Instant) {
        let edns = &mut self.servers[place].edns;
        (edns.plain_only, edns.failed_both_ways) = (edns.plain_only.saturating_add(1), 0);
        if edns.plain_only >= if edns.is_cleared { FAILURES_MAX } else { PLAIN_ONLY_MAX } {
            edns.plain_until = now + PLAIN_FOR;
        }
    }

    /// The server at `place` failed without EDNS in the same way as with it: EDNS was not the cause, unless it has
    /// answered only without before. If it `was_silent`, a packet may be lost, so one such failure is not enough.
    pub fn failed_both_ways(&mut self, place: usize, was_silent: bool) {
        let edns = &mut self.servers[place].edns;
        edns.failed_both_ways = edns.failed_both_ways.saturating_add(if was_silent { 1 } else { BOTH_WAYS_MAX });
        edns.is_cleared |= edns.plain_only == 0 && edns.failed_both_ways >= BOTH_WAYS_MAX;
    }

    /// It was silent, or refused.
    pub fn failed(&mut self, place: usize, now: Instant) {
        let server = &mut self.servers[place];
        server.failures_in_row = server.failures_in_row.saturating_add(1);
        if let Some(doublings) = server.failures_in_row.checked_sub(FAILURES_MAX) {
            server.rests_until = now + (REST_MIN * (1 << doublings.min(10))).min(REST_MAX);
            // A middlebox before it may have changed.
            (server.edns.is_cleared, server.edns.failed_both_ways) = (false, 0);
        }
    }
}

/// Failures in a row before a server rests: names whose own servers are silent also come in runs.
const FAILURES_MAX: u32 = 8;
const REST_MIN: Duration = Duration::from_secs(5);
const REST_MAX: Duration = Duration::from_secs(300);
/// How often in a row a server must answer only without EDNS before its queries omit it, if nothing else is known:
/// one packet may be lost, or late. A server that took EDNS needs [`FAILURES_MAX`].
const PLAIN_ONLY_MAX: u32 = 2;
/// How often a server is silent both ways before both ways are no longer tried; one error is enough.
const BOTH_WAYS_MAX: u32 = 2;
/// How long a server's queries omit EDNS: a lost packet in that time costs nothing, and a repaired server is
/// noticed soon.
const PLAIN_FOR: Duration = Duration::from_secs(900);

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::Rng;

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
        // Its rest has ended: one query tries it, the others wait for the result.
        assert_eq!([servers.pick(at(5), no), servers.pick(at(5), no)], [Some(0), Some(1)]);
        servers.failed(0, at(6));
        assert_eq!([servers.pick(at(15), no), servers.pick(at(16), no)], [Some(1), Some(0)]);
        servers.answered(0, true);
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
                    servers.answered(place, rng.percent(50))
                } else {
                    servers.failed(place, now)
                }
                assert!(servers.servers.iter().all(|server| server.rests_until <= now + REST_MAX), "seed {seed}");
            }
        }
    }

    #[test]
    fn a_server_that_dislikes_edns_is_asked_without_for_a_while() {
        let mut servers = Servers::new(2);
        assert!(servers.takes_edns(0, at(0)) && servers.may_dislike_edns(0));
        servers.answered_plain_only(0, at(0));
        assert!(servers.takes_edns(0, at(0)), "one packet may be lost");
        servers.answered_plain_only(0, at(1));
        assert!(!servers.takes_edns(0, at(1)) && servers.takes_edns(1, at(1)), "of two servers one");
        servers.answered(0, false);
        assert!(!servers.takes_edns(0, at(900)), "an answer without says nothing of EDNS");
        assert!(servers.takes_edns(0, at(901)) && !servers.takes_edns(0, at(901)), "one query tries it");
        servers.answered_plain_only(0, at(902));
        assert!(!servers.takes_edns(0, at(1_801)));
        assert!(servers.takes_edns(0, at(1_802)));
        servers.answered(0, true);
        assert!(servers.takes_edns(0, at(1_802)) && servers.takes_edns(0, at(1_802)), "it was mended");
        // It has taken EDNS: a few lost packets say nothing.
        assert!(!servers.may_dislike_edns(0));
        for _ in 1..FAILURES_MAX {
            servers.answered_plain_only(0, at(1_803));
            assert!(servers.takes_edns(0, at(1_803)));
        }
        servers.answered_plain_only(0, at(1_803));
        assert!(!servers.takes_edns(0, at(1_803)), "but many do");
        // A server that fails both ways is not queried both ways until it rests.
        servers.failed_both_ways(1, true);
        assert!(servers.may_dislike_edns(1), "one packet may be lost");
        servers.failed_both_ways(1, true);
        assert!(!servers.may_dislike_edns(1));
        (0..FAILURES_MAX).for_each(|_| servers.failed(1, at(2_000)));
        assert!(servers.may_dislike_edns(1));
        // It has answered only without EDNS: one failure does not change that.
        let mut servers = Servers::new(1);
        servers.answered_plain_only(0, at(0));
        servers.failed_both_ways(0, true);
        assert!(servers.may_dislike_edns(0));
        servers.answered_plain_only(0, at(1));
        assert!(!servers.takes_edns(0, at(1)));
    }
}
