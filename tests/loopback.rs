//! The hands against real sockets on loopback: what servers do, good and bad, and how the exchange ends; what requests
//! carry and which way they go.
//!
//! Decides: each test has its own server.
//! Leaves to others: what aborted exchanges leave behind (`leaks`).

mod ends;
mod kept;
mod names;
mod proxies;
mod requests;
mod secure;
mod sources;
