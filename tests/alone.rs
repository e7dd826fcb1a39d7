//! What counts the descriptors, ring operations and memory of its own process, and so must have it for itself; and what
//! measures for a second or two, for which the machine must not be busy with other tests.
//!
//! Decides: the tests of this program take turns, by a lock that each holds while it runs.

mod aborted;
mod bench;
mod leaks;
#[allow(dead_code, reason = "each test program uses a part of it")]
mod rig;
