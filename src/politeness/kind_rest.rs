//! The rest of one kind of URLs that complains while its host's other kinds do not.
//!
//! Decides: 429 and 503 without Retry-After are the host's, unless a kind complains again that has answered nothing else since it
//! complained first, and another kind was answered well since it complained last: then a page or a script is broken, and the server
//! is not overloaded. Anyone may link to a broken script forty times. The kind rests alone then, twice as long each time. So it does
//! after its second complaint, whatever the others do: they are asked next, and show which of the two it is.
//! After [`BROKEN_FROM`] such complaints its URLs have one try each, so that a crawl ends.
//! A limiter is told apart by what it lets through: it answers the same kind well at times.
//! Invariants: pure; a Retry-After is always obeyed by the host or the origin.
//! Limits: one kind of a host is known, the last one that complained; two broken scripts by turns are the host's complaint.

use crate::config::Politeness;
use crate::time::Instant;

/// What is known of the kind that complained last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KindRest {
    /// A hash of the kind.
    kind: u32,
    complaints: u32,
    /// Those that were its own.
    own: u32,
    /// It has answered well since it complained first.
    was_fine: bool,
    /// Another kind has since it complained last.
    were_others_fine: bool,
    until: Instant,
}

impl KindRest {
    /// A kind complained for the first time, or after another one.
    pub fn new(kind: u32) -> KindRest {
        KindRest { kind, complaints: 1, own: 0, was_fine: false, were_others_fine: false, until: Instant::ZERO }
    }

    /// A URL of this kind was answered without a complaint.
    pub fn is_fine(&mut self, kind: u32) {
        match kind == self.kind {
            true => self.was_fine = true,
            false => self.were_others_fine = true,
        }
    }

    /// A URL of this kind complained and named no time; whether that is the kind's own complaint.
    pub fn complained(&mut self, now: Instant, kind: u32, politeness: &Politeness) -> bool {
        if kind != self.kind {
            *self = KindRest::new(kind);
            return false;
        }
        let is_own = !self.was_fine && (self.were_others_fine || self.complaints == 1);
        if is_own {
            self.own = self.own.saturating_add(1);
            let rest = politeness.retry_delay * (1 << self.own.min(DOUBLINGS_MAX));
            self.until = now + rest.min(politeness.backoff_max.max(politeness.retry_delay));
        }
        (self.complaints, self.were_others_fine) = (self.complaints.saturating_add(1), false);
        is_own
    }

    /// Whether URLs of this kind have been refused so often that another try of one is in vain.
    pub fn is_broken(&self, kind: u32) -> bool {
        kind == self.kind && self.own >= BROKEN_FROM && !self.was_fine
    }

    /// The kind that is left alone now.
    pub fn resting(&self, now: Instant) -> Option<u32> {
        (self.until > now).then_some(self.kind)
    }

    /// Until when URLs of this kind are left alone; `None`: they are not.
    pub fn rests_until(&self, now: Instant, kind: u32) -> Option<Instant> {
        (self.resting(now) == Some(kind)).then_some(self.until)
    }
}

/// A rest is doubled so often at most.
const DOUBLINGS_MAX: u32 = 3;
/// Complaints that are a kind's own.
const BROKEN_FROM: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::time::Duration;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn a_broken_script_rests_alone_and_longer_each_time() {
        let politeness = Politeness { retry_delay: Duration::from_secs(10), ..Config::default().politeness };
        let mut rest = KindRest::new(7);
        let mut now = 0;
        let rests: Vec<u64> = (0..4)
            .map(|_| {
                rest.is_fine(8);
                assert!(rest.complained(at(now), 7, &politeness));
                let until = rest.rests_until(at(now), 7).expect("a rest");
                assert_eq!((rest.rests_until(at(now), 8), rest.rests_until(until, 7)), (None, None));
                now += 1_000;
                until.since(at(now - 1_000)).as_secs()
            })
            .collect();
        assert_eq!(rests, [20, 40, 80, 80]);
    }

    /// A limiter lets some of each kind through; an overloaded server answers nothing else.
    #[test]
    fn what_complains_now_and_then_or_everywhere_is_the_host() {
        let politeness = Config::default().politeness;
        let mut rest = KindRest::new(7);
        for _ in 0..9 {
            rest.is_fine(7);
            rest.is_fine(8);
            assert!(!rest.complained(at(1), 7, &politeness));
        }
        let mut rest = KindRest::new(7);
        let own: Vec<bool> = (0..4).map(|_| rest.complained(at(1), 7, &politeness)).collect();
        assert_eq!(own, [true, false, false, false], "once, so that others are asked");
        let mut rest = KindRest::new(7);
        for round in 0..9 {
            rest.is_fine(9);
            assert_eq!(rest.complained(at(1), 7 + round % 2, &politeness), round == 0);
        }
    }
}
