//! The hands against real sockets on loopback: what servers do, good and bad, and how the exchange ends; what requests
//! carry and which way they go.
//!
//! Decides: each test has its own server; the ones that count descriptors run alone.

mod ends;
mod kept;
mod leaks;
mod names;
mod proxies;
mod requests;
mod rig;
mod secure;
mod sources;
