//! Turns at the name servers.
//!
//! Decides: at most `dns.in_flight_max` names are asked for at once; hosts that need one wait in a row, first in, first
//! out. Names that nobody answers for hold these places and no place of a fetch.

use std::collections::VecDeque;

use crate::outcome::HostId;

/// Who is asked for, and who waits.
#[derive(Debug)]
pub struct LookupQueue {
    waiting: VecDeque<HostId>,
    in_flight: usize,
    in_flight_max: usize,
}

impl LookupQueue {
    /// Nobody, and room for `in_flight_max` lookups at once.
    pub fn new(in_flight_max: usize) -> LookupQueue {
        LookupQueue { waiting: VecDeque::new(), in_flight: 0, in_flight_max }
    }

    /// Lookups in flight.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Whether a host waits whose turn it is.
    pub fn is_ready(&self) -> bool {
        self.has_room() && !self.waiting.is_empty()
    }

    /// The host whose turn it is.
    pub fn next(&mut self) -> Option<HostId> {
        if self.has_room() { self.waiting.pop_front() } else { None }
    }

    /// Takes a place for a lookup of host `id`, or puts it behind the others that wait; whether it has one.
    pub fn begin(&mut self, id: HostId) -> bool {
        if !self.has_room() {
            self.waiting.push_back(id);
            return false;
        }
        self.in_flight += 1;
        true
    }

    /// A lookup ended.
    pub fn ended(&mut self) {
        self.in_flight -= 1;
    }

    fn has_room(&self) -> bool {
        self.in_flight < self.in_flight_max
    }
}
