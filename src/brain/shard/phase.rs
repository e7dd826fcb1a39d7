//! What a crawl is doing, and what a shard reports about itself to the housekeeping thread.

/// What a crawl is doing. It only goes forward.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[repr(u8)]
pub enum Phase {
    /// Fetching.
    #[default]
    Run = 0,
    /// No new fetches; those in flight finish, and what was found is handed over.
    Drain = 1,
    /// What fetches in flight bring is left to the next run; what was found is handed over.
    Abort = 2,
    /// Everything has been handed over: write all of it and end.
    Close = 3,
}

impl Phase {
    /// The phase with this number; [`Phase::Close`] for an unknown number.
    pub fn from_number(number: u8) -> Phase {
        match number {
            0 => Phase::Run,
            1 => Phase::Drain,
            2 => Phase::Abort,
            _ => Phase::Close,
        }
    }
}

/// The facts that decide whether the crawl is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ShardReport {
    /// Nothing is left to do until an input arrives.
    pub quiet: bool,
    /// Messages sent to other shards.
    pub sent: u64,
    /// Messages received from other shards and processed.
    pub received: u64,
}

impl ShardReport {
    /// The report of a shard with waiting input: it is not quiet before it has taken that in.
    #[must_use]
    pub fn with_waiting(self, waits: bool) -> ShardReport {
        ShardReport { quiet: self.quiet && !waits, ..self }
    }
}
