//! `check-config` as operators run it, and the shipped example file.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ringcrawl::config::Config;

fn check_config(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ringcrawl")).arg("check-config").args(arguments).output().expect("the binary runs")
}

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tuning/ringcrawl.toml")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_shipped_example_is_what_the_program_prints() {
    let shipped = std::fs::read_to_string(example()).expect("tuning/ringcrawl.toml");
    assert!(
        shipped == Config::annotated(),
        "tuning/ringcrawl.toml is stale: ringcrawl check-config --example > tuning/ringcrawl.toml"
    );
    assert_eq!(text(&check_config(&["--example"]).stdout), shipped);
}

#[test]
fn right_files_are_ok_and_print_their_effect() {
    let example = example();
    let example = example.to_str().expect("a path in UTF-8");
    let output = check_config(&[example]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), "ok\n".to_owned()));
    let output = check_config(&[example, "--print", "--set", "politeness.host_delay=0s"]);
    let printed = Config::parse(&text(&output.stdout), "printed").expect("what is printed is a configuration");
    let mut expected = Config::default();
    expected.politeness.host_delay = std::time::Duration::ZERO;
    assert_eq!(printed, expected);
}

#[test]
fn wrong_files_tell_everything_and_exit_with_2() {
    let directory = std::env::temp_dir().join(format!("ringcrawl-check-config-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory for the test");
    let file = directory.join("wrong.toml");
    std::fs::write(&file, "[fetch]\ndeadline = 10\n[store]\nzstd_levl = 3\n").expect("a file for the test");
    let name = file.to_str().expect("a path in UTF-8");
    let output = check_config(&[name, "--set", "store.zstd_level=99"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let errors = text(&output.stderr);
    let starts: Vec<String> =
        errors.lines().map(|line| line.split(": ").take(2).collect::<Vec<_>>().join(": ")).collect();
    let expected = [
        format!("{name}:2: fetch.deadline"),
        format!("{name}:4: store.zstd_levl"),
        "--set: store.zstd_level".to_owned(),
    ];
    assert_eq!(starts, expected, "{errors}");
    std::fs::remove_dir_all(&directory).expect("the test's own directory");
    assert_eq!(check_config(&[name]).status.code(), Some(2));
    assert_eq!(check_config(&[]).status.code(), Some(2));
}
