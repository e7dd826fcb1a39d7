//! Lookups carried out by real hands, one name at a time: for tests that need an answer but no shard.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use crate::fetch::Hands;
use ringcrawl_base::time::Duration;
use ringcrawl_brain::names::Lookups;
use ringcrawl_brain::outcome::Outcome;
use ringcrawl_config::Config;
use ringcrawl_ring as ring;

/// A shard's name lookups, without the shard.
pub struct Resolver {
    lookups: RefCell<Lookups>,
    hands: Rc<Hands>,
    next_id: Cell<u64>,
    /// Finished lookups whose callers have not seen the result.
    over: RefCell<HashMap<u64, Outcome>>,
}

impl Resolver {
    /// The resolver of one of `shards` shards that share `dns.rate_max`.
    pub fn new(config: &Config, hands: Rc<Hands>, shards: u16) -> Resolver {
        let lookups = RefCell::new(Lookups::new(config, shards, hands.name_servers()));
        Resolver { lookups, hands, next_id: Cell::new(1), over: RefCell::default() }
    }

    /// Looks a host up, as [`Lookups::start`] does. Several may be in flight: any idle one sends the queries that are
    /// due.
    pub async fn resolve(&self, host: &str, both_families: bool) -> Outcome {
        let id = self.next_id.replace(self.next_id.get() + 1);
        let known = self.lookups.borrow_mut().start(ring::now(), id, host, both_families);
        if let Some(outcome) = known {
            return outcome;
        }
        loop {
            let outcome = self.over.borrow_mut().remove(&id);
            if let Some(outcome) = outcome {
                return outcome;
            }
            let query = self.lookups.borrow_mut().next_query(ring::now());
            let Some(query) = query else {
                ring::sleep_until(ring::now() + LOOK).await;
                continue;
            };
            let answer = self.hands.ask(&query).await;
            let outcome = self.lookups.borrow_mut().answered(ring::now(), query.lookup, answer);
            if let Some(outcome) = outcome {
                self.over.borrow_mut().insert(query.lookup, outcome);
            }
        }
    }

    /// Queries sent.
    pub fn queries(&self) -> u64 {
        self.lookups.borrow().queries()
    }
}

const LOOK: Duration = Duration::from_millis(1);
