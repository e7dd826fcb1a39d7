//! The robots.txt rules in memory, for all hosts of a shard together, and which of them are evicted.
//!
//! Decides: above `robots.ram_bytes_max` rules are dropped: first files that others were redirected to, then rules of
//! hosts that have nothing to do, then rules by which a page was judged, in each group the longest first and among
//! these the oldest. Rules of a host that has something to do stay as long as all rules of their length and shorter
//! are within the bound. A host whose rules were dropped fetches robots.txt again before its next page, so dropping
//! costs a request and never a verdict.
//! Why the longest: a hundred hosts with rules of half a megabyte would otherwise make all others refetch theirs
//! before every page, which halves their rate.
//! Invariants: rules are counted as long as they have a holder, and once however many holders they have. Rules that a
//! URL waits for and that have not judged one yet stay, so that every robots.txt serves at least one page.
//! Limits: rules that must stay may exceed the bound: those of hosts between their robots.txt and the page after it.

use std::cell::Cell;
use std::collections::VecDeque;
use std::ops::Deref;
use std::rc::Rc;

use super::host::{Host, State};
use super::{Frontier, STALE_ENTRIES_MIN};
use crate::job::HostId;
use ringcrawl_robots::Rules;

/// Rules in memory.
#[derive(Debug)]
pub struct CachedRules {
    rules: Rules,
    /// Their number, in order of arrival; [`NO_FILE`] and [`EMPTY_FILE`] for those shared by all.
    number: u64,
    charge: Charge,
}

impl CachedRules {
    /// Whether a robots.txt contained them, rather than its absence.
    pub fn is_of_file(&self) -> bool {
        self.number != NO_FILE
    }
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
    held: Rc<[Cell<u64>; ROWS]>,
}

impl Charge {
    fn new(bytes: u64, held: &Rc<[Cell<u64>; ROWS]>) -> Charge {
        let charge = Charge { bytes, held: Rc::clone(held) };
        charge.row().set(charge.row().get() + bytes);
        charge
    }

    fn row(&self) -> &Cell<u64> {
        &self.held[row_of(self.bytes)]
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.row().set(self.row().get().saturating_sub(self.bytes));
    }
}

/// All rules of a shard.
#[derive(Debug)]
pub struct RulesCache {
    bytes_max: u64,
    /// Bytes of rules, by their length.
    held: Rc<[Cell<u64>; ROWS]>,
    /// Most hosts have no rules: one value for all of them.
    allow_all: Rc<CachedRules>,
    /// Many others have a file that forbids nothing.
    empty: Rc<CachedRules>,
    numbers: u64,
    /// The holders of rules, by the rules' length, each the oldest first.
    rows: [Row; ROWS],
}

/// Holders of rules of about one length, the oldest first; an entry whose rules no longer exist is ignored.
#[derive(Debug)]
struct Row {
    by_age: VecDeque<(u64, HostId, u8)>,
    /// Length of `by_age` at which stale entries are removed.
    by_age_max: usize,
}

impl RulesCache {
    /// No rules, and room for `bytes_max` bytes of them.
    pub fn new(bytes_max: u64) -> RulesCache {
        let held = Rc::default();
        let shared = |number| {
            let charge = Charge::new(0, &held);
            Rc::new(CachedRules { rules: Rules::allow_all(), number, charge })
        };
        let (allow_all, empty) = (shared(NO_FILE), shared(EMPTY_FILE));
        RulesCache {
            bytes_max,
            held,
            allow_all,
            empty,
            numbers: EMPTY_FILE,
            rows: std::array::from_fn(|_| Row { by_age: VecDeque::new(), by_age_max: STALE_ENTRIES_MIN }),
        }
    }

    /// The rules of a fetched file.
    pub fn keep(&mut self, rules: Rules) -> Rc<CachedRules> {
        if rules == self.empty.rules {
            return Rc::clone(&self.empty);
        }
        let charge = self.charge((size_of::<CachedRules>() + rules.ram_bytes()) as u64);
        self.numbers += 1;
        Rc::new(CachedRules { rules, number: self.numbers, charge })
    }

    /// The rules of an origin without a robots.txt.
    pub fn allow_all(&self) -> Rc<CachedRules> {
        Rc::clone(&self.allow_all)
    }

    /// Counts `bytes` as memory for rules.
    pub fn charge(&self, bytes: u64) -> Charge {
        Charge::new(bytes, &self.held)
    }

    /// Bytes of all rules.
    pub fn bytes(&self) -> u64 {
        self.bytes_up_to(ROWS - 1)
    }

    /// Bytes of the rules in `row` and of all shorter ones.
    fn bytes_up_to(&self, row: usize) -> u64 {
        self.held.iter().take(row + 1).map(Cell::get).sum()
    }

    /// Whether these are over the bound, regardless of longer ones.
    fn is_over_up_to(&self, row: usize) -> bool {
        self.bytes_up_to(row) > self.bytes_max
    }
}

impl Frontier {
    /// Notes that an origin holds rules.
    pub(super) fn note_rules(&mut self, id: HostId, index: usize) {
        let held = self.hosts[id].origins.get(index).and_then(|origin| origin.rules());
        let Some(rules) = held.filter(|rules| rules.number > EMPTY_FILE) else { return };
        let (number, row) = (rules.number, row_of(rules.charge.bytes));
        let Some(Row { by_age, by_age_max }) = self.rules_cache.rows.get_mut(row) else { return };
        if by_age.len() >= *by_age_max {
            let hosts = &self.hosts;
            by_age.retain(|(number, id, index)| hosts[*id].has_rules(*number, *index));
            *by_age_max = 2 * by_age.len() + STALE_ENTRIES_MIN;
        }
        by_age.push_back((number, id, index as u8));
    }

    /// Drops rules until they are within their bound, or enough were looked at.
    pub(super) fn trim_rules(&mut self) {
        while self.rules_cache.is_over_up_to(ROWS - 1) && self.robots_files.drop_oldest() {}
        for idle_alone in [true, false] {
            for row in (0..ROWS).rev() {
                let mut looks = LOOKS_MAX.min(self.rules_cache.rows[row].by_age.len());
                // Rules of idle hosts make room for any excess, whichever rules cause it.
                let up_to = if idle_alone { ROWS - 1 } else { row };
                while looks > 0 && self.rules_cache.is_over_up_to(up_to) {
                    self.look_at_oldest(row, idle_alone);
                    looks -= 1;
                }
            }
        }
    }

    /// Drops the oldest rules of a row, if their host can do without them; otherwise they count as new.
    fn look_at_oldest(&mut self, row: usize, idle_alone: bool) {
        let row = &mut self.rules_cache.rows[row].by_age;
        let Some(entry) = row.pop_front() else { return };
        let (number, id, index) = entry;
        let host = &mut self.hosts[id];
        if !host.has_rules(number, index) {
            return;
        }
        if host.state() == State::Idle || !idle_alone && host.can_do_without_rules(usize::from(index)) {
            host.origins[usize::from(index)].drop_rules();
        } else {
            row.push_back(entry);
        }
    }
}

impl Host {
    fn has_rules(&self, number: u64, index: u8) -> bool {
        let rules = self.origins.get(usize::from(index)).and_then(|origin| origin.rules());
        rules.is_some_and(|rules| rules.number == number)
    }
}

/// The number of the rules of origins without a robots.txt.
const NO_FILE: u64 = 0;
/// The number of the rules of empty files.
const EMPTY_FILE: u64 = 1;

/// The row of rules of this many bytes: each row holds rules four times as long as the one before.
fn row_of(bytes: u64) -> usize {
    (bytes / SHORT_BYTES).checked_ilog(4).map_or(0, |row| row as usize + 1).min(ROWS - 1)
}

/// Rules in the first row are shorter than this.
const SHORT_BYTES: u64 = 1 << 10;
/// The last row begins at 256 KiB.
const ROWS: usize = 6;
/// Holders of rules looked at after a job, for each kind and length.
const LOOKS_MAX: usize = 32;
