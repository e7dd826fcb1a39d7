//! What the tests stand on: folders, the program, the hands, servers, name servers, certificates, and what a crawl
//! stored. One of each.

pub mod certificates;
pub mod hands;
pub mod harvest;
pub mod memory_group;
pub mod names;
pub mod program;
pub mod servers;
pub mod slow_server;
pub mod socks_proxy;
pub mod web;

use std::io::Write;
use std::path::{Path, PathBuf};

/// Says why a test cannot run here. Continuous integration has everything that tests need: there it is a failure.
#[track_caller]
pub fn skip(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "not skipped where CI is set: {why}");
    // Past the test harness, which keeps what a test that passes prints by macros.
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// A file or folder of the conformance data, which lies beside the project; without it the test is skipped.
#[track_caller]
pub fn conformance(part: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/conformance").join(part);
    if path.exists() {
        return Some(path);
    }
    skip(&format!("no conformance data {part}"));
    None
}
