//! `check-config` as operators run it, and the shipped example file.

use std::path::{Path, PathBuf};

use ringcrawl_config::Config;

use crate::rig::program::{Ended, run};
use ringcrawl_base::TempFolder;

fn check_config(arguments: &[&str]) -> Ended {
    run(&[&["check-config"], arguments].concat())
}

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tuning/ringcrawl.toml")
}

#[test]
fn the_shipped_example_is_what_the_program_prints() {
    let shipped = std::fs::read_to_string(example()).expect("tuning/ringcrawl.toml");
    assert!(
        shipped == Config::annotated(),
        "tuning/ringcrawl.toml is stale: ringcrawl check-config --example > tuning/ringcrawl.toml"
    );
    assert_eq!(check_config(&["--example"]).out, shipped);
}

#[test]
fn right_files_are_ok_and_print_their_effect() {
    let example = example();
    let example = example.to_str().expect("a path in UTF-8");
    assert_eq!(check_config(&[example]).expect(0).out, "ok\n");
    let printed = check_config(&[example, "--print", "--set", "politeness.host_delay=0s"]).out;
    let printed = Config::parse(&printed, "printed").expect("what is printed is a configuration");
    let mut expected = Config::default();
    expected.politeness.host_delay = std::time::Duration::ZERO;
    assert_eq!(printed, expected);
}

#[test]
fn wrong_files_tell_everything_and_exit_with_2() {
    let folder = TempFolder::new("check-config");
    let name = folder.file("wrong.toml", "[fetch]\ndeadline = 10\n[store]\nzstd_levl = 3\n");
    let ended = check_config(&[&name, "--set", "store.zstd_level=99"]).expect(2);
    assert!(ended.out.is_empty());
    let errors = ended.err;
    let starts: Vec<String> =
        errors.lines().map(|line| line.split(": ").take(2).collect::<Vec<_>>().join(": ")).collect();
    let expected = [
        format!("{name}:2: fetch.deadline"),
        format!("{name}:4: store.zstd_levl"),
        "--set: store.zstd_level".to_owned(),
    ];
    assert_eq!(starts, expected, "{errors}");
    check_config(&[&folder.at("missing.toml")]).expect(2);
    check_config(&[]).expect(2);
}
