//! What counts the descriptors, ring operations and memory of its own process, and so must have it for itself.
//!
//! Decides: the tests of this program take turns, by a lock that each holds while it runs.

mod aborted;
mod leaks;
#[allow(dead_code, reason = "each test program uses a part of it")]
mod rig;
