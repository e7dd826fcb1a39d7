//! Counts the cost of judging a URL.
//!
//! Decides: a brain has no clock, so work is counted in units of about half a nanosecond: reading a rule, starting a
//! search, and each byte searched.
//! Why a limit: strangers write paths and URLs, and must not delay all other hosts of a shard with one of them.
//! Invariants: the work done never exceeds the budget by more than one search.

/// Work that may still be done, in units of about half a nanosecond.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fuel {
    left: u64,
}

impl Fuel {
    /// A budget of `units` units.
    pub const fn new(units: u64) -> Fuel {
        Fuel { left: units }
    }

    /// Takes `units` off; `false` when nothing is left.
    pub fn spend(&mut self, units: u64) -> bool {
        self.left = self.left.saturating_sub(units);
        self.left > 0
    }

    /// Whether nothing is left.
    pub fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// Units that are left.
    pub fn left(&self) -> u64 {
        self.left
    }
}

/// There was not enough work left for a verdict.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutOfFuel;

/// For one verdict: 4 ms. 40,000 rules with a wildcard fit into a robots.txt of half a megabyte; this is enough for
/// all of them on paths of 120 bytes, and for 4,000 of them, which no real file has, on paths of 2 KiB.
pub const VERDICT_FUEL: u64 = 1 << 23;

/// The cost of reading a rule.
pub const RULE_COST: u64 = 8;
/// The cost of starting a search, whose bytes cost one each.
pub const SEARCH_COST: u64 = 64;
