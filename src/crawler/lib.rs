//! The hands of a crawl, and all that touches the machine: files, sockets, threads, signals.
//!
//! The way of a shard: `boot` checks the configuration and opens the directory; `pump` drives the brain
//! (`ringcrawl_brain::shard`) and carries what it decides to `fetch` and `disk`, on the shard's own ring; `control` is between the
//! shards and an operator.

// The hands.
pub mod disk;
pub mod fetch;
pub mod pump;

// Around the shards.
pub mod boot;
pub mod control;
pub mod plan_files;

// For tests.
pub mod fault_injection;
