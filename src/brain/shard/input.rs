//! What can happen to a shard: the closed list of the brain's inputs.
//!
//! Invariants: an end belongs to an effect that the shard issued, and comes once. An end that the shard did not ask
//! for is a bug of ours: it asserts, and the crawl ends with its state on disk intact.

use super::Phase;
use crate::exchange::Outgoing;
use crate::names::DnsAnswer;
use crate::page::PageRead;
use crate::scope::Scope;
use crate::spool::Block;
use crate::transaction::Transaction;
use ringcrawl_base::Failure;
use ringcrawl_base::time::{Instant, WallClock};
use ringcrawl_url::Url;
use ringcrawl_warc::Dictionary;

/// Something happened.
#[derive(Debug)]
pub enum Input {
    /// The housekeeping thread wants something.
    Command(Command),
    /// The wall clock was set: its offset from the clock of instants differs from the start, or from the last input.
    Clock(WallClock),
    /// Another scope takes effect from now on, also for queued URLs.
    Scope(Scope),
    /// A message from another shard.
    Received {
        /// The sending shard.
        from: u16,
        /// The message.
        bytes: Vec<u8>,
    },
    /// The ring of an [`super::Effect::Send`] has no room.
    Refused(Outgoing),
    /// A query to a name server came back.
    Answered {
        /// The lookup of the query.
        lookup: u64,
        /// The answer.
        answer: DnsAnswer,
    },
    /// Details of the failure of a fetch or a lookup that has not ended.
    Told {
        /// The job's number.
        job: u64,
        /// In words.
        words: Box<str>,
    },
    /// A fetch ended.
    Fetched {
        /// The job's number.
        job: u64,
        /// The response, or why there is none.
        result: Result<Box<Transaction>, Failure>,
    },
    /// A long response was read.
    Read(Box<PageRead>),
    /// A dictionary was trained; `None`: it would not be worth it.
    Trained(Option<Dictionary>),
    /// An operation on files ended.
    Disk(DiskEnd),
}

/// A command to a shard.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// Go on to this phase; never back.
    Enter(Phase),
    /// URLs to begin with. Those of other shards are sent to them.
    Seeds(Vec<Url>),
    /// Failures of these times count: no outage explains them.
    Clear(Cleared),
    /// Our own network is down, or works again.
    Outage(OutOfReach),
    /// There is less space on the disk than `store.free_bytes_min`, or enough again.
    DiskFull(bool),
    /// During an outage: try this many waiting jobs.
    Probe(usize),
    /// Query every name server to see whether it answers.
    ProbeNames,
}

/// What an outage of our own network cuts us off from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum OutOfReach {
    /// Nothing.
    #[default]
    Nothing,
    /// Names only: sites answer.
    Names,
    /// Everything.
    All,
}

/// Until when the network is known to have worked: failures that ended by then count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cleared {
    /// As answers of sites have shown.
    pub sites: Instant,
    /// As answers of name servers have shown; queried separately where no server answered for a name.
    pub names: Instant,
}

/// How an operation on files ended. Operations end in the order in which they were issued, except the closing of a
/// segment and a sync.
#[derive(Debug)]
pub enum DiskEnd {
    /// Written, deleted, cut or closed.
    Done {
        /// The buffer of the written bytes, which can be reused.
        spare: Option<Vec<u8>>,
        /// Bytes that were written.
        bytes: u64,
    },
    /// A block of the spool was read back.
    BlockRead {
        /// The block.
        block: Block,
        /// Its bytes, as they are on disk.
        bytes: Vec<u8>,
    },
    /// A piece of a log; empty past its end.
    LogRead {
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// A [`super::DiskOp::Sync`] ended.
    Synced,
    /// The disk failed, with the file's name. Nothing was written afterwards.
    Failed(String),
}
