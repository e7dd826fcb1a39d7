//! Every test of the crawler from outside that can share a process: one program, so that the crate is linked once.
//!
//! Decides: a module for each subject, with what they stand on in `rig`. `cargo test --test all operator::` runs one.
//! Leaves to others: what counts the process's own descriptors and memory (`alone`).

mod config;
mod conformance;
mod fuzz;
mod hostile;
mod identity;
mod loopback;
mod operator;
#[allow(dead_code, reason = "each test program uses a part of it")]
mod rig;
mod shards;
mod sim;
mod store_format;
mod stored;
mod tls;
