//! The program as operators meet it: their mistakes, a full disk, Ctrl-C, a power cut, and the end of a budget.
//!
//! Decides: each test runs the real program in a directory of its own and judges exit code, words and files.
//! 0 is success, 1 the system's failure, 2 the operator's mistake; a mistake changes nothing on disk.

#[path = "operator/budget.rs"]
mod budget;
#[path = "operator/disk.rs"]
mod disk;
#[path = "operator/folders.rs"]
mod folders;
#[allow(dead_code, reason = "each test program uses a part of it")]
#[path = "operator/harvest.rs"]
mod harvest;
#[path = "operator/listings.rs"]
mod listings;
#[path = "operator/mistakes.rs"]
mod mistakes;
#[path = "operator/peer.rs"]
mod peer;
#[allow(dead_code, reason = "each test program uses a part of it")]
#[path = "operator/rig.rs"]
mod rig;
#[path = "operator/stop.rs"]
mod stop;
