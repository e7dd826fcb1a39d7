//! What a crawl is doing, and what a shard tells the housekeeping thread of itself.

/// What a crawl is doing. It goes forward only.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[repr(u8)]
pub enum Phase {
    /// Fetching.
    #[default]
    Run = 0,
    /// No new fetches; those in flight end, what was found is handed over.
    Drain = 1,
    /// What fetches in flight bring is left to the next run; what was found is handed over.
    Abort = 2,
    /// Everything is handed over: write all and end.
    Close = 3,
}

impl Phase {
    /// The phase with this number; [`Phase::Close`] for those that are none.
    pub fn from_number(number: u8) -> Phase {
        match number {
            0 => Phase::Run,
            1 => Phase::Drain,
            2 => Phase::Abort,
            _ => Phase::Close,
        }
    }
}

/// What the question whether the crawl is over is answered from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ShardReport {
    /// Nothing is left to do until something comes in.
    pub quiet: bool,
    /// Messages sent to other shards.
    pub sent: u64,
    /// Messages received from other shards and worked off.
    pub received: u64,
}

impl ShardReport {
    /// The report of a shard that something waits for: it is not quiet before it has taken that in.
    #[must_use]
    pub fn with_waiting(self, waits: bool) -> ShardReport {
        ShardReport { quiet: self.quiet && !waits, ..self }
    }
}
