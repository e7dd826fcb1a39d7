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

use crate::frontier::settings::STALE_ENTRIES_MIN;
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
    held: Rc<[Cell<u64>; SIZE_CLASSES]>,
}

impl Charge {
    fn new(bytes: u64, held: &Rc<[Cell<u64>; SIZE_CLASSES]>) -> Charge {
        let charge = Charge { bytes, held: Rc::clone(held) };
        charge.class().set(charge.class().get() + bytes);
        charge
    }

    fn class(&self) -> &Cell<u64> {
        &self.held[class_of(self.bytes)]
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.class().set(self.class().get().saturating_sub(self.bytes));
    }
}

/// All rules of a shard.
#[derive(Debug)]
pub struct RulesCache {
    bytes_max: u64,
    /// Bytes of rules, by their length.
    held: Rc<[Cell<u64>; SIZE_CLASSES]>,
    /// Most hosts have no rules: one value for all of them.
    allow_all: Rc<CachedRules>,
    /// Many others have a file that forbids nothing.
    empty: Rc<CachedRules>,
    numbers: u64,
    /// The holders of rules, by the rules' length, each the oldest first.
    classes: [SizeClass; SIZE_CLASSES],
}

/// Holders of rules of about one length, the oldest first; an entry whose rules no longer exist is ignored.
#[derive(Debug)]
struct SizeClass {
    by_age: VecDeque<Holder>,
    /// Length of `by_age` at which stale entries are removed.
    by_age_max: usize,
}

/// An origin that holds rules, unless it has dropped them since.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Holder {
    number: u64,
    /// Its host.
    pub id: HostId,
    /// Its index among the origins of the host.
    pub index: u8,
}

impl Holder {
    /// Whether these are the rules that it held.
    pub fn holds(&self, rules: &CachedRules) -> bool {
        rules.number == self.number
    }
}

/// Whose rules are dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Excess {
    /// Those of hosts that have nothing to do.
    OfIdleHosts,
    /// Those of all hosts that can do without.
    OfAll,
}

/// The result of a look at a holder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HolderState {
    /// It holds these rules no longer.
    Gone,
    /// Its host needs them.
    Kept,
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
            classes: std::array::from_fn(|_| SizeClass { by_age: VecDeque::new(), by_age_max: STALE_ENTRIES_MIN }),
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
        self.bytes_up_to(SIZE_CLASSES - 1)
    }

    /// Notes that an origin holds rules; `holds` tells whether the holder of another entry still does.
    pub fn note(&mut self, rules: &CachedRules, (id, index): (HostId, u8), holds: impl Fn(&Holder) -> bool) {
        if rules.number <= EMPTY_FILE {
            return;
        }
        let Some(SizeClass { by_age, by_age_max }) = self.classes.get_mut(class_of(rules.charge.bytes)) else { return };
        if by_age.len() >= *by_age_max {
            by_age.retain(holds);
            *by_age_max = 2 * by_age.len() + STALE_ENTRIES_MIN;
        }
        by_age.push_back(Holder { number: rules.number, id, index });
    }

    /// Whether all rules together are over their bound.
    pub fn is_over(&self) -> bool {
        self.is_over_up_to(SIZE_CLASSES - 1)
    }

    /// Drops rules until they are within their bound, or enough holders were looked at: `look` drops those of one
    /// holder if it can do without them, or if only idle hosts are meant and it is idle.
    pub fn trim(&mut self, mut look: impl FnMut(&Holder, Excess) -> HolderState) {
        for excess in [Excess::OfIdleHosts, Excess::OfAll] {
            for class in (0..SIZE_CLASSES).rev() {
                let mut looks = LOOKS_MAX.min(self.classes[class].by_age.len());
                // Rules of idle hosts make room for any excess, whichever rules cause it.
                let up_to = if excess == Excess::OfIdleHosts { SIZE_CLASSES - 1 } else { class };
                while looks > 0 && self.is_over_up_to(up_to) {
                    let by_age = &mut self.classes[class].by_age;
                    if let Some(oldest) = by_age.pop_front()
                        && look(&oldest, excess) == HolderState::Kept
                    {
                        // It counts as new.
                        by_age.push_back(oldest);
                    }
                    looks -= 1;
                }
            }
        }
    }

    /// Bytes of the rules in `class` and of all shorter ones.
    fn bytes_up_to(&self, class: usize) -> u64 {
        self.held.iter().take(class + 1).map(Cell::get).sum()
    }

    /// Whether these are over the bound, regardless of longer ones.
    fn is_over_up_to(&self, class: usize) -> bool {
        self.bytes_up_to(class) > self.bytes_max
    }
}

/// The number of the rules of origins without a robots.txt.
const NO_FILE: u64 = 0;
/// The number of the rules of empty files.
const EMPTY_FILE: u64 = 1;

/// The class of rules of this many bytes: each class holds rules four times as long as the one before.
fn class_of(bytes: u64) -> usize {
    (bytes / SHORT_BYTES).checked_ilog(4).map_or(0, |class| class as usize + 1).min(SIZE_CLASSES - 1)
}

/// Rules in the first class are shorter than this.
const SHORT_BYTES: u64 = 1 << 10;
/// The last class begins at 256 KiB.
const SIZE_CLASSES: usize = 6;
/// Holders of rules looked at after a job, for each kind and length.
const LOOKS_MAX: usize = 32;
