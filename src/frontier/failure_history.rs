//! Hosts that failed and were forgotten: what remains known of them.
//!
//! Decides: failures in a row and the verdict of having been given up outlive the host in memory. Without that a dead
//! host whose URLs wait outside would be tried to death again, for hours, each time that one of them comes in, and
//! would hold the place of one that lives.
//! Two generations: what is older than the last half of the room is thrown out as a whole, so no order is kept.
//! Invariants: never more than the room.
//! Limits: one that is thrown out early is tried in full again, which costs requests and never a URL.

use std::collections::HashMap;
use std::mem;
use std::net::IpAddr;

use crate::politeness::FailureRecord;

/// What is known of a host that was forgotten.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Remembered {
    /// How it has failed.
    pub failures: FailureRecord,
    /// No address of the first family connected: it must not be tried at that alone, again and again.
    pub wants_both_families: bool,
    /// The address that no connection came about to last.
    pub dead: Option<IpAddr>,
}

/// Names with what is known of them.
#[derive(Debug)]
pub struct FailureHistory {
    generation_max: usize,
    young: HashMap<Box<str>, Remembered>,
    old: HashMap<Box<str>, Remembered>,
}

impl FailureHistory {
    /// Nobody, and room for `room` names.
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

    /// A host of this name is met again.
    pub fn take(&mut self, name: &str) -> Option<Remembered> {
        self.young.remove(name).or_else(|| self.old.remove(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(times: u32) -> Remembered {
        let failures = FailureRecord { failures_in_row: times, ..FailureRecord::default() };
        Remembered { failures, ..Remembered::default() }
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
