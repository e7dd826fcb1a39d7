//! Our own bugs: a panic in a fetch, in the disk's task and in a shard's turn ends the crawl at once, is told with its
//! place, and costs nothing that was stored.

use std::process::Command;

use ringcrawl::web::ModelConfig;
use ringcrawl::web::truth::reachable;

use crate::rig::harvest::{Verdict, open_files, stored};
use crate::rig::program::{Process, RINGCRAWL, run};
use crate::rig::web::{self, web};
use ringcrawl::lab::TempFolder;

fn panics(name: &str, planted: &str) {
    let folder = TempFolder::new(name);
    let (web, seed) = web(ModelConfig { sites: 40, pages: 1_000, addresses: 16, ..ModelConfig::default() });
    let (dir, config) = (folder.at("crawl"), web::config(&folder, &web, "crawl.shards = 2"));
    let arguments = ["crawl", &seed, "--dir", &dir, "-c", &config, "--json", "-"];
    let mut command = Command::new(RINGCRAWL);
    let ended = Process::start(command.env("RINGCRAWL_PANIC", planted).args(arguments)).end().expect(1);
    assert_eq!(ended.json()["ended"], "failed");
    // What it was, and where; whose fault; and how to go on.
    let ended = ended.says(&["a panic planted", "src/fault_injection.rs:", "a bug of ringcrawl", "goes on with it"]);
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
