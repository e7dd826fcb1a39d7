//! What a shard is built from.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::budget::PageBudget;
use crate::exchange::Replicated;
use crate::frontier::{PartsBySite, Ranks, SiteBounds};
use crate::log::{AskAgain, Owner};
use crate::politeness::Ledger;
use crate::route::Partition;
use crate::scope::Scope;
use ringcrawl_base::time::{Instant, WallClock};
use ringcrawl_config::{Config, Operators};
use ringcrawl_warc::earlier_crawls::EarlierCrawls;

/// What a shard is built from.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The shard's index.
    pub index: u16,
    /// Which sites belong to it.
    pub partition: Partition,
    /// Which links are followed.
    pub scope: Scope,
    /// The crawl's randomness.
    pub rng_seed: u64,
    /// Limits.
    pub config: Arc<Config>,
    /// User-Agent of the requests.
    pub user_agent: String,
    /// When each address may be contacted again; one for all shards.
    pub ledger: Arc<Ledger>,
    /// Which operator's machines are where.
    pub operators: Arc<Operators>,
    /// What URLs are worth, in a crawl ordered by ranks; one for all shards.
    pub ranks: Arc<Ranks>,
    /// URLs that are sent once, as an earlier crawl found many links to them.
    pub replicated: Replicated,
    /// Limits on the cost of sites whose seeds have options.
    pub site_bounds: Arc<SiteBounds>,
    /// Parts of these sites with limits of their own.
    pub site_parts: Arc<PartsBySite>,
    /// How many pages may be fetched; one for all shards.
    pub budget: Arc<PageBudget>,
    /// What earlier crawls have stored; one for all shards.
    pub earlier: Arc<EarlierCrawls>,
    /// Name servers that can be queried.
    pub name_servers: usize,
    /// The crawl's number in the headers of its logs.
    pub crawl: u64,
    /// The wall clock; later changes arrive as [`Input::Clock`].
    pub clock: WallClock,
    /// When the run begins.
    pub begins: Instant,
    /// Whether this is the crawl's first run.
    pub is_new: bool,
    /// Which finished URLs are fetched again.
    pub ask_again: AskAgain,
    /// What the shard's files are at the start.
    pub files: FilesFound,
}

impl Setup {
    /// A new crawl's first shard, whose clock shows 0, with one name server and this many entries in the ledger. The
    /// other shards share its contents: they are clones of it, each with its own index.
    pub fn new(config: Arc<Config>, partition: Partition, scope: Scope, rng_seed: u64, ledger: usize) -> Setup {
        Setup {
            index: 0,
            partition,
            scope,
            rng_seed,
            budget: Arc::new(PageBudget::new(config.crawl.pages_max)),
            config,
            user_agent: "ringcrawl-lab".to_owned(),
            ledger: Arc::new(Ledger::new(ledger).keyed([rng_seed, 0])),
            operators: Arc::default(),
            ranks: Arc::default(),
            replicated: Replicated::default(),
            site_bounds: Arc::default(),
            site_parts: Arc::default(),
            earlier: Arc::default(),
            name_servers: 1,
            crawl: rng_seed,
            clock: WallClock::default(),
            begins: Instant::ZERO,
            is_new: true,
            ask_again: AskAgain::default(),
            files: FilesFound::default(),
        }
    }

    /// Whose logs are written.
    pub(super) fn owner(&self) -> Owner {
        Owner { crawl: self.crawl, shard: self.index }
    }
}

/// What a shard's directory holds when a run begins.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FilesFound {
    /// Segments by their numbers, with their bytes.
    pub segments: BTreeMap<u32, u64>,
    /// No segment has this number or a higher one.
    pub next_segment: u32,
    /// Files of the journal, in order.
    pub journal: Vec<u32>,
}
