//! ringcrawl: a crawler appliance for one large Linux server. One process, one pinned thread per core, no lock
//! between them on a page's path.
//!
//! # The life of a page
//!
//! ```text
//! seed/link ─► url ─► route ─► visited ─► frontier ─► (robots, dns) ─► fetch: connect, TLS, HTTP ─► body
//!                       ▲  │ other shard's                                                             │
//!                       │  └────────► ring of bytes ─► that shard's visited                            ▼
//!                       └──────────────── links ◄── charset, scan ◄──────────── decode ──► store: warc.zst
//! ```
//!
//! # Brain and hands
//!
//! The brain of a [`shard`] is a plain value: no clock, socket, file or random source. It takes in what happened
//! ([`shard::Input`]) and says what to do ([`shard::Effect`]). The [`pump`] carries that to the hands ([`fetch`],
//! [`disk`]) on the shard's own [`ring`]; the simulator ([`lab`]) is a second pump with a virtual clock, a fake web and a
//! fake disk.
//!
//! docs/ARCHITECTURE.md has the whole picture. The modules below stand in the order in which a page meets them.

// What everything speaks.
pub mod budget;
pub mod config;
pub mod fault_injection;
pub mod latency;
pub mod memory_budget;
pub mod outcome;
pub mod seed;
pub mod stats;
pub mod transaction;
pub mod trouble;
pub mod waits;

// The brain, in the order of a page's way.
pub mod backlinks;
pub mod route;
pub mod site_shares;

pub mod visited;

pub mod politeness;
pub use politeness::ledger;

pub mod frontier;
pub mod kinds;

pub mod names;

pub mod robots;

pub mod hops;
pub mod scope;

pub mod identity;

pub mod links;

pub mod page;

pub mod store;

pub mod log;

pub mod exchange;

pub mod spool;

pub mod shard;

// Beside the crawl.
pub mod plan;

// The hands.
mod plain_file;
mod private;

pub mod ring;

pub mod fetch;

pub mod disk;

pub mod pump;

// Around the shards.
pub mod boot;
pub mod cli;
pub mod control;

// The synthetic web and the simulator.
pub mod lab;
pub mod web;
