//! Our own bugs: a panic in a fetch, in the disk's task and in a shard's turn ends the crawl at once, is told with its
//! place, and costs nothing that was stored. A piece of work that takes too long is told.

use std::process::Command;

use ringcrawl_web::ModelConfig;
use ringcrawl_web::truth::reachable;

use crate::rig::harvest::{Verdict, open_files, stored};
use crate::rig::program::{Process, RINGCRAWL, run};
use crate::rig::web::{self, web};
use ringcrawl_base::TempFolder;

fn panics(name: &str, planted: &str) {
    let folder = TempFolder::new(name);
    let (web, seed) = web(ModelConfig { sites: 40, pages: 1_000, addresses: 16, ..ModelConfig::default() });
    let (dir, config) = (folder.at("crawl"), web::config(&folder, &web, "crawl.shards = 2"));
    let arguments = ["crawl", &seed, "--dir", &dir, "-c", &config, "--json", "-"];
    let mut command = Command::new(RINGCRAWL);
    let ended = Process::start(command.env("RINGCRAWL_PANIC", planted).args(arguments)).end().expect(1);
    assert_eq!(ended.json()["ended"], "failed");
    // What it was, and where; whose fault; and how to go on.
    let ended = ended.says(&[
        "a panic planted",
        "src/crawler/fault_injection.rs:",
        "a bug in ringcrawl",
        "the same command continues",
    ]);
    let pages = ended.json()["pages"].as_u64().expect("a count");
    assert!(pages < 1_000, "it went on to the end: {pages} pages");
    run(&arguments).expect(0);
    assert_eq!(open_files(&dir), [""; 0]);
    run(&["store", "verify", &dir]).expect(0);
    let truth = reachable(web.model(), web.model().seeds(1).as_slice()).expect("the web has an end");
    // Pages that ended in the last moments before the panic are fetched again, as after a kill.
    Verdict::of(&stored(&dir), &truth).expect_whole();
}

#[test]
fn a_panic_in_a_fetch_ends_the_crawl_with_a_good_state() {
    panics("panic-fetch", "fetch:300");
}

#[test]
fn a_panic_in_the_disk_s_task_ends_the_crawl_with_a_good_state() {
    panics("panic-disk", "disk:4");
}

#[test]
fn a_panic_in_a_shard_s_turn_ends_the_crawl_with_a_good_state() {
    panics("panic-turn", "turn:200");
}

/// A piece of work that holds up a shard is told while it lasts, once, with what it is; the crawl goes on.
#[test]
fn a_shard_that_does_not_get_on_is_told() {
    let folder = TempFolder::new("stall");
    let (web, seed) = web(ModelConfig { sites: 4, pages: 40, addresses: 4, ..ModelConfig::default() });
    let (dir, config) = (folder.at("crawl"), web::config(&folder, &web, "crawl.shards = 1"));
    let mut command = Command::new(RINGCRAWL);
    let command = command.env("RINGCRAWL_STALL", "turn:20").args(["crawl", &seed, "--dir", &dir, "-c", &config]);
    let ended = Process::start(command).end().expect(0);
    let ended = ended.says(&["shard 0 has worked on one task for", "ms of CPU time): other"]);
    assert_eq!(ended.err.matches("has worked on one task").count(), 1);
}
