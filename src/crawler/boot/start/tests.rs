//! Later runs of a crawl, in one process.

use super::*;
use crate::boot::{HandedOn, Round};
use ringcrawl_base::TempFolder;
use ringcrawl_base::time::Duration;
use ringcrawl_brain::log::AskAgain;
use ringcrawl_brain::shard::Phase;
use ringcrawl_url::Url;

/// Advances `crawl` until a note says `expected`; returns all its notes.
fn told(crawl: &mut Crawl, expected: &str) -> String {
    let mut told = String::new();
    for _ in 0..30_000 {
        crawl.poll(Duration::ZERO, Phase::Run);
        told.extend(crawl.control().take_notes(false));
        if told.contains(expected) {
            return told;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    panic!("no note says {expected:?}: {told}");
}

fn end(mut crawl: Crawl) -> HandedOn {
    while !crawl.poll(Duration::ZERO, Phase::Abort) {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    crawl.finish_round().expect("a round").handed_on
}

#[test]
fn a_later_run_holds_back_a_halved_list() {
    let folder = TempFolder::new("later-run");
    let list = folder.file("list", "a.test\nb.test\nc.test\n");
    let mut config = Config::default();
    config.crawl.shards = 1;
    config.scope.block = vec![list.into()];
    let order = Order {
        config,
        seeds: vec![Url::parse("http://127.0.0.1:3/").expect("a URL").into()],
        dir: folder.at("crawl").into(),
        new: false,
        ask_again: AskAgain::default(),
        round: None,
        handed_on: HandedOn::default(),
    };
    let begin = |handed_on: HandedOn| {
        let round = Some(Round { number: 2, ..Round::default() }).filter(|_| handed_on.lock.is_some());
        start(Order { round, handed_on, ..order.clone() }).expect("a crawl")
    };
    let handed_on = end(begin(HandedOn::default()));
    folder.file("list", "a.test\n");
    let mut later = begin(handed_on);
    let held = told(&mut later, "the previous files stay in effect");
    assert!(held.contains(": 3 entries in 1 MiB"), "{held}");
    assert!(held.contains("list has 1 entries, before 3; send the signal again"), "{held}");
    // What was not accepted is asked in the next run, too.
    let mut next = begin(end(later));
    told(&mut next, "the previous files stay in effect");
    // A signal after that confirms it, even if it came between two runs.
    let mut last = begin(end(next));
    last.reload_scope();
    let confirmed = told(&mut last, ": 1 entries in 1 MiB");
    assert!(!confirmed.contains("send the signal again"), "{confirmed}");
    let accepted = end(last);
    let mut after = begin(accepted);
    assert!(!told(&mut after, ": 1 entries in 1 MiB").contains("send the signal again"));
    end(after);
}
