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
//! The brain of a [`shard`] is a plain value: no clock, socket, file or random source. It hands out
//! [`outcome::FetchJob`]s and takes back [`outcome::Outcome`]s. The hands ([`fetch`], [`drive`]) carry jobs out on the
//! shard's own [`ring`]; the simulator ([`lab`]) is a second pair of hands with a virtual clock and a fake web.
//!
//! docs/ARCHITECTURE.md has the whole picture. The modules below stand in the order in which a page meets them.

// What everything speaks.
pub mod config;
pub mod latency;
pub mod outcome;
pub mod stage;
pub mod stats;
pub mod time;

// The brain, in the order of a page's way.
pub mod url;

pub mod route;

pub mod visited;

pub mod politeness;
pub use politeness::ledger;

pub mod frontier;

pub mod robots;

pub mod hops;
pub mod http;

pub mod links;

pub mod store;

pub mod exchange;

pub mod spool;

pub mod shard;

// The hands.
pub mod ring;

pub mod fetch;

pub mod drive;

// Around the shards.
pub mod boot;
pub mod cli;
pub mod control;

// The synthetic web and the simulator.
pub mod lab;
pub mod web;
