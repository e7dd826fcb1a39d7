//! What can happen to a shard: the closed list of what goes into the brain.
//!
//! Invariants: an end belongs to an effect that the shard gave out, and comes once. One that the shard did not ask for
//! is our own fault: it asserts, and the crawl ends with its state on disk good.

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
    /// The wall clock was set: it stands otherwise to the clock of instants than at the beginning, or than was said last.
    Clock(WallClock),
    /// Another scope is in force from now on, also for what is queued.
    Scope(Scope),
    /// A message from another shard.
    Received {
        /// The shard.
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
        /// What was said.
        answer: DnsAnswer,
    },
    /// What more is known of how a fetch or a lookup fails that has not ended.
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
        /// What came, or why nothing did.
        result: Result<Box<Transaction>, Failure>,
    },
    /// A long response was read.
    Read(Box<PageRead>),
    /// A dictionary was trained; `None`: it would not pay.
    Trained(Option<Dictionary>),
    /// An operation on files ended.
    Disk(DiskEnd),
}

/// What a shard is told to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// Go on to this phase; never back.
    Enter(Phase),
    /// URLs to begin with. Those of other shards are sent there.
    Seeds(Vec<Url>),
    /// Failures of these times are no outage's.
    Clear(Cleared),
    /// Our own network is down, or works again.
    Outage(OutOfReach),
    /// There is less space on the disk than `store.free_bytes_min`, or enough again.
    DiskFull(bool),
    /// During an outage: so many things that wait are tried.
    Probe(usize),
    /// Every name server is asked whether it answers.
    ProbeNames,
}

/// What an outage of our own network keeps from us.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum OutOfReach {
    /// There is none.
    #[default]
    Nothing,
    /// Names: sites answer.
    Names,
    /// Whatever is asked.
    All,
}

impl OutOfReach {
    /// Of its number, as one thread writes it for another.
    pub fn of(number: u8) -> OutOfReach {
        match number {
            0 => OutOfReach::Nothing,
            1 => OutOfReach::Names,
            _ => OutOfReach::All,
        }
    }
}

/// Until when the network is known to have worked: failures that ended by then count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cleared {
    /// As sites have shown.
    pub sites: Instant,
    /// As name servers have shown; asked for besides where a name was not answered for.
    pub names: Instant,
}

/// How an operation on files ended. They end in the order in which they were given out, but for the closing of a
/// segment and a sync.
#[derive(Debug)]
pub enum DiskEnd {
    /// Written, deleted, cut or closed.
    Done {
        /// What was written lay in this, and it can be used again.
        spare: Option<Vec<u8>>,
        /// Bytes that were written.
        bytes: u64,
    },
    /// A block of the spool is back.
    BlockRead {
        /// Which.
        block: Block,
        /// Its bytes, as they lay there.
        bytes: Vec<u8>,
    },
    /// A piece of a log; none behind its end.
    LogRead {
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// A [`super::DiskOp::Sync`] ended.
    Synced,
    /// The disk failed, with the file's name. Nothing was written afterwards.
    Failed(String),
}
