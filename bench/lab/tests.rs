//! The lab's program. Its commands are tested with the crawler's (`tests/operator`), next to which it is built.

use std::process::Command;

#[test]
fn it_says_what_it_can() {
    let ran = Command::new(env!("CARGO_BIN_EXE_ringcrawl-lab")).arg("--help").output().expect("the program starts");
    let help = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success() && ["  plan ", "  lab "].iter().all(|command| help.contains(command)), "{help}");
}
