//! The brain: everything that is decided in a crawl, and nothing that touches a machine.
//!
//! The brain of a [`shard`] is a plain value: no clock, socket, file or random source. It takes in what happened
//! ([`shard::Input`]) and says what to do ([`shard::Effect`]). The crawler's pump carries that to the hands; the
//! simulator is a second pump with a virtual clock, a fake web and a fake disk.
//!
//! # The life of a page
//!
//! ```text
//! seed/link ─► seen? ─► scope ─► route ─► visited ─► log ─► frontier ─► names ─► robots.txt ─► fetch
//!                                  │ other shard's                                               │
//!                                  └─► lane ─► SPSC ring ─► that shard's visited                 ▼
//!         links ◄── charset, scan ◄────────────── page: decode ◄───────────────────────────── transaction
//!                                                      └──► record ─► segment
//! ```
//!
//! [`shard`] wires the modules in this order. Below they stand by subject.
//!
//! ```
//! use ringcrawl_brain::route::Partition;
//! use ringcrawl_config::Config;
//! use ringcrawl_url::Url;
//!
//! let partition = Partition::new(&Config::default().partition, 4);
//! let of = |url: &str| partition.shard_of(&Url::parse(url).expect("a URL"));
//! assert_eq!(of("https://example.org/a"), of("http://www.example.org/b"));
//! ```

// What all modules share.
pub mod budget;
pub mod job;
pub mod latency;
pub mod memory_budget;
pub mod outcome;
pub mod seed;
pub mod stats;
pub mod transaction;
pub mod trouble;
pub mod waits;

// Parts of a shard, and what they use.
pub mod backlinks;
pub mod route;
pub mod site_shares;

pub mod visited;

pub mod politeness;
pub use politeness::ledger;

pub mod frontier;
pub mod kinds;

pub mod names;

pub mod hops;
pub mod scope;

pub mod identity;

pub mod page;

pub mod log;

pub mod exchange;

pub mod spool;

pub mod shard;

// For tests and benches.
#[cfg(test)]
mod purity;
pub mod sample;
