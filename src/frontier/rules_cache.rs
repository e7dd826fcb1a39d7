//! The rules of robots.txt in memory, all hosts of a shard together, and which of them leave it.
//!
//! Decides: above `robots.ram_bytes_max` rules are dropped: first files that others were sent to, then rules of hosts that
//! have nothing to do, then those that a page was judged by, each the oldest first. A host whose rules were dropped asks for robots.txt again
//! before its next page, so dropping costs a request and never a verdict.
//! Invariants: rules are counted as long as somebody holds them, and once however many do; rules that a URL waits for
//! and that none was judged by yet stay, so that every robots.txt serves a page at least.
//! Limits: rules that must stay may pass the bound: those of hosts between their robots.txt and the page after it.

use std::cell::Cell;
use std::collections::VecDeque;
use std::ops::Deref;
use std::rc::Rc;

use super::host::{Host, State};
use super::{Frontier, STALE_ENTRIES_MIN};
use crate::outcome::HostId;
use crate::robots::Rules;

/// Rules in memory.
#[derive(Debug)]
pub struct CachedRules {
    rules: Rules,
    /// Which they are, in the order of their coming; 0 for those that everybody shares.
    number: u64,
    _charge: Charge,
}

impl Deref for CachedRules {
    type Target = Rules;

    fn deref(&self) -> &Rules {
        &self.rules
    }
}

/// Bytes that count as memory for rules until this is dropped.
#[derive(Debug)]
pub struct Charge {
    bytes: u64,
    total: Rc<Cell<u64>>,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.total.set(self.total.get().saturating_sub(self.bytes));
    }
}

/// All rules of a shard.
#[derive(Debug)]
pub struct RulesCache {
    bytes_max: u64,
    total: Rc<Cell<u64>>,
    /// Most hosts have no rules: one value for all of them.
    allow_all: Rc<CachedRules>,
    numbers: u64,
    /// Who holds rules, the oldest first; an entry whose rules are not there any more is ignored.
    by_age: VecDeque<(u64, HostId, u8)>,
    /// Length of `by_age` at which such entries are thrown out.
    by_age_max: usize,
}

impl RulesCache {
    /// No rules, and room for `bytes_max` bytes of them.
    pub fn new(bytes_max: u64) -> RulesCache {
        let total = Rc::new(Cell::new(0));
        let charge = Charge { bytes: 0, total: Rc::clone(&total) };
        let allow_all = CachedRules { rules: Rules::allow_all(), number: 0, _charge: charge };
        RulesCache {
            bytes_max,
            total,
            allow_all: Rc::new(allow_all),
            numbers: 0,
            by_age: VecDeque::new(),
            by_age_max: STALE_ENTRIES_MIN,
        }
    }

    /// Rules that came.
    pub fn keep(&mut self, rules: Rules) -> Rc<CachedRules> {
        if rules == self.allow_all.rules {
            return Rc::clone(&self.allow_all);
        }
        let charge = self.charge((size_of::<CachedRules>() + rules.ram_bytes()) as u64);
        self.numbers += 1;
        Rc::new(CachedRules { rules, number: self.numbers, _charge: charge })
    }

    /// The rules of who has none.
    pub fn allow_all(&self) -> Rc<CachedRules> {
        Rc::clone(&self.allow_all)
    }

    /// Counts `bytes` as memory for rules.
    pub fn charge(&self, bytes: u64) -> Charge {
        self.total.set(self.total.get() + bytes);
        Charge { bytes, total: Rc::clone(&self.total) }
    }

    /// Bytes of all rules.
    pub fn bytes(&self) -> u64 {
        self.total.get()
    }

    fn is_over(&self) -> bool {
        self.bytes() > self.bytes_max
    }
}

impl Frontier {
    /// Notes that an origin holds rules.
    pub(super) fn note_rules(&mut self, id: HostId, index: usize) {
        let Some(number) = self.hosts[id].rules_number(index).filter(|number| *number > 0) else { return };
        if self.rules_cache.by_age.len() >= self.rules_cache.by_age_max {
            let hosts = &self.hosts;
            self.rules_cache.by_age.retain(|(number, id, index)| hosts[*id].has_rules(*number, *index));
            self.rules_cache.by_age_max = 2 * self.rules_cache.by_age.len() + STALE_ENTRIES_MIN;
        }
        self.rules_cache.by_age.push_back((number, id, index as u8));
    }

    /// Drops rules until they are within their bound, or a good many were looked at.
    pub(super) fn trim_rules(&mut self) {
        while self.rules_cache.is_over() && self.robots_files.drop_oldest() {}
        for idle_alone in [true, false] {
            for _ in 0..LOOKS_MAX.min(self.rules_cache.by_age.len()) {
                if !self.rules_cache.is_over() {
                    return;
                }
                let Some(entry) = self.rules_cache.by_age.pop_front() else { return };
                let (number, id, index) = entry;
                let host = &mut self.hosts[id];
                if !host.has_rules(number, index) {
                    continue;
                }
                if host.state() == State::Idle || !idle_alone && host.can_do_without_rules(usize::from(index)) {
                    host.origins[usize::from(index)].forget();
                } else {
                    self.rules_cache.by_age.push_back(entry);
                }
            }
        }
    }
}

impl Host {
    fn rules_number(&self, index: usize) -> Option<u64> {
        Some(self.origins.get(index)?.rules()?.number)
    }

    fn has_rules(&self, number: u64, index: u8) -> bool {
        self.rules_number(usize::from(index)) == Some(number)
    }
}

/// Holders of rules that are looked at when a job has ended, of each kind.
const LOOKS_MAX: usize = 32;
