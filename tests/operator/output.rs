//! Standard output and standard error that cannot be written: the disk of a log is full, or a reader has gone.
//!
//! Decides: /dev/full is the full disk. What was to be said does not change what is done; a result that could not be
//! written is the system's failure, and one that nobody wants any more is none.

use std::process::Command;

use ringcrawl_web::{ModelConfig, Running};

use crate::rig::program::{Ended, Process, RINGCRAWL, run};
use crate::rig::web::{self, web};
use ringcrawl_base::TempFolder;

/// Runs the program by a line of the shell in which `"$0" "$@"` is the program; `$OUT` is the folder.
#[track_caller]
fn shell(folder: &TempFolder, line: &str, arguments: &[&str]) -> Ended {
    let mut command = Command::new("sh");
    command.env("OUT", folder.path()).args(["-c", line, RINGCRAWL]).args(arguments);
    Process::start(&mut command).end()
}

fn small_web() -> (Running, String) {
    web(ModelConfig { sites: 3, pages: 30, ..ModelConfig::default() })
}

#[test]
fn a_crawl_that_can_say_nothing_is_a_crawl() {
    let folder = TempFolder::new("stderr");
    let (web, seed) = small_web();
    let config = web::config(&folder, &web, "crawl.shards = 1");
    for (name, line) in [
        ("full", "exec \"$0\" \"$@\" 2> /dev/full"),
        ("gone", "{ \"$0\" \"$@\" 2>&1; echo $? > \"$OUT/code\"; } | :; exit $(cat \"$OUT/code\")"),
        ("closed", "exec \"$0\" \"$@\" 2>&-"),
    ] {
        let (dir, json) = (folder.at(name), folder.at(&format!("{name}.json")));
        // Ten milliseconds a page: the reader has gone long before the end.
        let slow = "politeness.host_delay=10ms";
        let arguments = ["crawl", &seed, "--dir", &dir, "-c", &config, "--json", &json, "--set", slow];
        shell(&folder, line, &arguments).expect(0);
        let text = std::fs::read_to_string(&json).expect("the summary");
        let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(json["ended"], "finished", "{name}");
        run(&["store", "verify", &dir]).expect(0);
    }
}

#[test]
fn a_mistake_that_cannot_be_told_is_a_mistake() {
    let folder = TempFolder::new("mute");
    let config = folder.file("wrong.toml", "[fetch]\nfo = 1\n");
    let line = "exec \"$0\" \"$@\" 2> /dev/full";
    for arguments in [
        &["check-config", &config][..],
        &["crawl", "http://127.0.0.1:8/", "--dir", &folder.at("")],
        &["crawl", "--dir", &folder.at("new")],
        &["store", "ls", &folder.at("none")],
        &["store", "cat", &folder.at("none"), "http://a.test/"],
        &["no-such-command"],
    ] {
        shell(&folder, line, arguments).expect(2);
    }
    shell(&folder, line, &["inspect", "url", "no url"]).expect(1);
}

/// Each command that has a result, in a full file and for a reader that has gone.
#[test]
fn a_result_that_cannot_be_written_is_a_failure() {
    let folder = TempFolder::new("stdout");
    let (web, seed) = small_web();
    let (dir, config) = (folder.at("crawl"), web::config(&folder, &web, "crawl.shards = 1"));
    let robots = folder.file("robots.txt", "User-agent: *\n");
    let page = folder.file("page.html", "<a href=/a>a</a>");
    let questions = folder.file("questions", "{\"input\":\"http://a.test/\"}\n");
    let crawl = ["crawl", &seed, "--dir", &dir, "-c", &config, "--json", "-"];
    run(&crawl).expect(0);
    for arguments in [
        &crawl[..],
        &["check-config", &config],
        &["check-config", "--example"],
        &["store", "ls", &dir],
        &["store", "cat", &dir, &seed],
        &["inspect", "url", "http://a.test/"],
        &["inspect", "url", "--jsonl"],
        &["inspect", "links", "--base", "http://a.test/", &page],
        &["inspect", "robots", "--agent", "a", &robots, "/"],
        &["inspect", "response", &page],
        &["web", "truth", "--sites", "1", "--pages", "3"],
        &["--help"],
    ] {
        let line = format!("exec \"$0\" \"$@\" > /dev/full < '{questions}'");
        shell(&folder, &line, arguments).expect(1).says(&["cannot write to standard output: No space left"]);
        // A reader that is still there takes the result: no error, either.
        let line = format!(
            "{{ sleep 0.1; \"$0\" \"$@\" < '{questions}'; echo $? > \"$OUT/code\"; }} | :; exit $(cat \"$OUT/code\")"
        );
        let ended = shell(&folder, &line, arguments).expect(0);
        assert!(!ended.err.contains("roken pipe"), "{arguments:?}: {}", ended.err);
    }
}
