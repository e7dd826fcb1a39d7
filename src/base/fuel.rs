//! What it costs to judge a URL, counted.
//!
//! Decides: a brain has no clock, so work is counted in units of about half a nanosecond: reading a rule, beginning a search, and
//! the bytes that it passes over.
//! Why a limit: paths and URLs are written by strangers, who must not hold up all other hosts of a shard with one of them.
//! Invariants: what is spent never exceeds what there was by more than one search.

/// Work that may still be done, in units of about half a nanosecond.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fuel {
    left: u64,
}

impl Fuel {
    /// So many units.
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

/// No work was left to come to a verdict.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutOfFuel;

/// For one verdict: 4 ms. 40,000 rules with a wildcard fit into a robots.txt of half a megabyte; this is enough for all of them
/// on paths of 120 bytes, and for 4,000 of them, which no real file has, on paths of 2 KiB.
pub const VERDICT_FUEL: u64 = 1 << 23;

/// To look at a rule.
pub const RULE_COST: u64 = 8;
/// To begin a search, whose bytes count one each.
pub const SEARCH_COST: u64 = 64;
