//! A terminal or connection that is lost: the crawl drains as by Ctrl-C, and under `nohup` it goes on.

use std::process::Command;

use ringcrawl_web::{ModelConfig, Running};

use crate::rig::harvest::open_files;
use crate::rig::program::{Process, RINGCRAWL, run, start};
use crate::rig::slow_server::SlowServer;
use crate::rig::web::{self, web};
use ringcrawl_base::TempFolder;

fn endless(folder: &TempFolder) -> (Running, String, String) {
    let (web, seed) = web(ModelConfig { endless: true, ..ModelConfig::default() });
    let config = web::config(folder, &web, "crawl.shards = 1");
    (web, seed, config)
}

#[test]
fn a_hangup_drains() {
    let folder = TempFolder::new("hangup");
    let (web, seed, config) = endless(&folder);
    let dir = folder.at("crawl");
    let mut crawl = start(&["crawl", &seed, "--dir", &dir, "-c", &config, "--json", "-"]);
    crawl.wait_until("some pages", || web.report().requests > 50);
    crawl.signal("HUP");
    let ended = crawl.end().expect(0).says(&["draining"]);
    assert_eq!(ended.json()["ended"], "stopped by signal");
    assert_eq!(open_files(&dir), [""; 0]);
    run(&["store", "verify", &dir]).expect(0);
}

/// Shell and kernel may each send one, and an operator may have pressed Ctrl-C before.
#[test]
fn more_hangups_do_no_more() {
    let (folder, slow) = (TempFolder::new("hangups"), SlowServer::start());
    let config = folder.file("config.toml", "crawl.shards = 1\n");
    let (dir, url) = (folder.at("crawl"), slow.url());
    let mut crawl = start(&["crawl", &url, "--dir", &dir, "-c", &config, "--json", "-"]);
    crawl.wait_until("the page is under way", || slow.asked() > 0);
    crawl.signal("HUP");
    crawl.wait_for("draining");
    crawl.signal("HUP");
    crawl.signal("HUP");
    // That they were taken in cannot be seen; if they did more, most often they would have by now.
    std::thread::sleep(std::time::Duration::from_millis(200));
    slow.let_go();
    let json = crawl.end().expect(0).json();
    assert_eq!((&json["ended"], &json["pages"]), (&"stopped by signal".into(), &1.into()), "{json:#}");
}

#[test]
fn under_nohup_a_hangup_is_nothing() {
    let folder = TempFolder::new("nohup");
    let (web, seed, config) = endless(&folder);
    let dir = folder.at("crawl");
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$0\" \"$@\"", RINGCRAWL]);
    let mut crawl = Process::start(command.args(["crawl", &seed, "--dir", &dir, "-c", &config]));
    crawl.wait_until("some pages", || web.report().requests > 50);
    crawl.signal("HUP");
    let requests = web.report().requests;
    // Longer than a drain of such pages takes.
    crawl.wait_until("many more pages", || web.report().requests > requests + 2_000);
    crawl.signal("INT");
    crawl.end().expect(0).says(&["draining"]);
}
