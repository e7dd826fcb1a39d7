//! Hosts that failed and were forgotten: the facts that are kept about them.
//!
//! Decides: failures in a row and the verdict that a host was given up outlive the host in memory, by origin.
//! Otherwise a dead host whose URLs wait outside would be retried until given up again, for hours, each time one of
//! them comes in, and would hold the place of a live host.
//! Two generations: everything older than the last half of the room is discarded as a whole, so no order is kept.
//! Invariants: never more than the room.
//! Limits: a host that is discarded early is retried in full, which costs requests and never a URL.

use std::collections::HashMap;
use std::mem;
use std::net::IpAddr;

use crate::politeness::{Caution, FailureStreak, GivenUp};
use crate::trouble::Trouble;
use ringcrawl_url::Scheme;

/// The facts kept about a forgotten host.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Remembered {
    /// Why the whole host was given up.
    pub given_up: Option<GivenUp>,
    /// How careful ringcrawl was with it.
    pub caution: Caution,
    /// Origins whose last requests failed.
    pub origins: Vec<OriginRecord>,
    /// No address of the first family connected: it must not be tried at that alone, again and again.
    pub wants_both_families: bool,
    /// The last address to which no connection succeeded.
    pub dead: Option<IpAddr>,
}

/// How an origin has failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OriginRecord {
    /// `http` or `https`.
    pub scheme: Scheme,
    /// Its port.
    pub port: u16,
    /// It has answered before.
    pub has_answered: bool,
    /// Its failures.
    pub streak: FailureStreak,
    /// The last problem.
    pub trouble: Option<Box<Trouble>>,
}

/// Names with the facts kept about them.
#[derive(Debug)]
pub struct FailureHistory {
    generation_max: usize,
    young: HashMap<Box<str>, Remembered>,
    old: HashMap<Box<str>, Remembered>,
}

impl FailureHistory {
    /// An empty history, with room for `room` names.
    pub fn new(room: usize) -> FailureHistory {
        FailureHistory { generation_max: (room / 2).max(1), young: HashMap::new(), old: HashMap::new() }
    }

    /// A host that failed is forgotten.
    pub fn note(&mut self, name: Box<str>, record: Remembered) {
        if self.young.len() >= self.generation_max {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(name, record);
    }

    /// A host of this name appears again.
    pub fn take(&mut self, name: &str) -> Option<Remembered> {
        self.young.remove(name).or_else(|| self.old.remove(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::time::Instant;
    use ringcrawl_config::Config;

    fn failed(times: u32) -> Remembered {
        let (mut streak, politeness) = (FailureStreak::default(), Config::default().politeness);
        for _ in 0..times {
            streak.failed(Instant::ZERO, Instant::ZERO, false, u32::MAX, &politeness);
        }
        let origin = OriginRecord { scheme: Scheme::Http, port: 80, has_answered: false, streak, trouble: None };
        Remembered { origins: vec![origin], ..Remembered::default() }
    }

    #[test]
    fn the_youngest_are_known_and_the_room_is_kept() {
        let mut history = FailureHistory::new(100);
        for number in 0..1_000 {
            history.note(format!("h{number}.test").into(), failed(number));
            assert!(history.young.len() + history.old.len() <= 100);
        }
        for number in 950..1_000 {
            assert_eq!(history.take(&format!("h{number}.test")), Some(failed(number)));
            assert_eq!(history.take(&format!("h{number}.test")), None, "it is the host's now");
        }
        assert_eq!(history.take("h0.test"), None);
    }

    #[test]
    fn what_came_later_holds() {
        let mut history = FailureHistory::new(2);
        for times in [1, 2] {
            history.note("a.test".into(), failed(times));
        }
        assert_eq!(history.take("a.test"), Some(failed(2)));
    }
}
