//! Hosts that wait for their turn at an address.
//!
//! Decides: those of one address wait in a row, first in, first out; only the first of them looks at the ledger, each
//! time that the calendar says so, however many they are.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

use crate::outcome::HostId;

/// The rows.
#[derive(Debug, Default)]
pub struct AddressQueues {
    rows: HashMap<IpAddr, VecDeque<HostId>>,
}

impl AddressQueues {
    /// Puts a host behind the others that wait for `addr`; whether it is the first.
    pub fn push(&mut self, addr: IpAddr, id: HostId) -> bool {
        let row = self.rows.entry(addr).or_default();
        row.push_back(id);
        row.len() == 1
    }

    /// Takes the first that waits for `addr`, and says whether more wait behind it.
    pub fn pop(&mut self, addr: IpAddr) -> Option<(HostId, bool)> {
        let row = self.rows.get_mut(&addr)?;
        let first = row.pop_front();
        let more = !row.is_empty();
        if !more {
            self.rows.remove(&addr);
        }
        first.map(|id| (id, more))
    }
}
