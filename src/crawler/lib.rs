//! The hands of a crawl, and everything that touches the machine: files, sockets, threads, signals.
//!
//! The path of a shard: `boot` checks the configuration and opens the directory; `pump` drives the brain
//! (`ringcrawl_brain::shard`) and carries its decisions to `fetch` and `disk`, on the shard's own ring; `control`
//! stands between the shards and an operator.

// The hands.
pub mod disk;
pub mod fetch;
pub mod pump;

// The parts around the shards.
pub mod boot;
pub mod control;
pub mod plan_files;

// For tests.
pub mod fault_injection;
