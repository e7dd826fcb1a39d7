//! The brain of one shard of two, where disk and rings fail it.

use super::*;
use crate::config::{Difference, PartitionKey};

fn shard(change: impl FnOnce(&mut Config)) -> Shard {
    let mut config = Config::default();
    config.agent.name = "shard".to_owned();
    change(&mut config);
    let partition = Partition { key: PartitionKey::Site, shards: 2 };
    let scope = Scope::new(&config.scope, []);
    Shard::new(0, partition, scope, 1, &config, Arc::new(Ledger::new(16)))
}

/// URLs of the other shard, about a kilobyte each.
fn foreign(shard: &Shard, number: usize) -> Url {
    let name = (0..).map(|site| format!("s{site}.test")).find(|name| shard.partition.shard_of_host(name) == 1);
    let text = format!("http://{}/{number}/{}", name.unwrap_or_default(), "x".repeat(1_000));
    Url::parse(&text).expect("a URL")
}

#[test]
fn what_was_not_handed_over_is_read_back_however_much_it_is() {
    let mut shard = shard(|config| config.exchange.waiting_bytes_max = 1 << 30);
    let first = foreign(&shard, 0);
    let urls = 70_000;
    for number in 0..urls {
        let url = first.join(&format!("/{number}/{}", "x".repeat(1_000))).expect("a URL");
        shard.found(Instant::ZERO, &url, 0);
    }
    shard.flush_exchange(Instant::ZERO, &mut |_, _| false);
    let mut file = Vec::new();
    while let Some(block) = shard.journal_block(Instant::ZERO, true) {
        file.extend(block);
    }
    let read: usize = journal::blocks(&file).map(|(entries, _)| entries.outgoing.len()).sum();
    assert_eq!(read, urls);
}

#[test]
fn a_block_that_is_not_what_was_written_is_noticed() {
    for damaged in [true, false] {
        let mut shard = shard(|config| {
            config.exchange.batch_urls_max = 1;
            config.exchange.waiting_bytes_max = 0;
        });
        for number in 0..3 {
            let url = foreign(&shard, number);
            shard.found(Instant::ZERO, &url, 0);
        }
        shard.flush_exchange(Instant::ZERO, &mut |_, _| true);
        let mut written = Vec::new();
        while let Some(op) = shard.next_spool_op() {
            match op {
                SpoolOp::Write { block, bytes } => written.push((block, bytes)),
                SpoolOp::Read { block, purpose } => {
                    let at = written.iter().position(|(at, _)| *at == block).expect("written before");
                    let mut bytes = written.remove(at).1;
                    if damaged {
                        bytes[2] ^= 1;
                    }
                    assert_eq!(shard.spool_read(Instant::ZERO, block, purpose, bytes), !damaged);
                }
                SpoolOp::Delete { .. } => {}
            }
        }
    }
}

/// A crawl with a full visited set, resumed again and again: nobody loses a place, and nothing is noted twice.
#[test]
fn what_was_accepted_stays_so_and_what_was_set_aside_is_noted_once() {
    let full = || shard(|config| config.visited.urls_max = 20);
    let mut first = full();
    let urls: Vec<Url> =
        (0..).map(|number| Url::parse(&format!("http://s{number}.test/")).expect("a URL")).take(200).collect();
    let own: Vec<&Url> = urls.iter().filter(|url| first.partition.shard_of(url) == 0).collect();
    for url in &own {
        first.found(Instant::ZERO, url, 0);
    }
    let block = first.journal_block(Instant::ZERO, true).expect("a block");
    let (entries, _) = Entries::from_block(&block).expect("a whole block");
    assert_eq!((entries.accepted.len(), entries.aside.len() + 10), (10, own.len()));
    let before = Entries { aside: entries.aside.clone(), ..Entries::default() };
    let mut resumed = full();
    for (depth, text) in entries.accepted.iter() {
        resumed.remember(Instant::ZERO, &Url::from_canonical(text).expect("a URL"), depth, false);
    }
    resumed.reconsider(Instant::ZERO, &before, true);
    assert_eq!((resumed.queued(), resumed.visited()), (10, 10));
    assert_eq!(resumed.journal_block(Instant::ZERO, true), None);
    // With a lower limit than before, too.
    let mut smaller = shard(|config| config.visited.urls_max = 4);
    for (depth, text) in entries.accepted.iter() {
        smaller.remember(Instant::ZERO, &Url::from_canonical(text).expect("a URL"), depth, false);
    }
    assert_eq!((smaller.queued(), smaller.visited()), (10, 10));
}

/// Where a page is known by its key, a redirect to another address with this key is the only way to have it.
#[test]
fn a_page_that_redirects_within_its_key_is_had_once() {
    let by_key = || shard(|config| config.visited.index_pages = Difference::Ignore);
    let mut first = by_key();
    let site = (0..)
        .map(|site| format!("http://s{site}.test"))
        .find(|site| Url::parse(site).is_ok_and(|url| first.partition.shard_of(&url) == 0));
    let url = |path: &str| Url::parse(&format!("{}{path}", site.as_deref().unwrap_or_default())).expect("a URL");
    let job = |path: &str| FetchJob {
        id: 1,
        host: 0,
        kind: JobKind::Page,
        url: url(path),
        addr: None,
        both_families: false,
        others: Vec::new(),
        depth: 0,
        attempt: 0,
        deadline: Instant::NEVER,
        rest: crate::time::Duration::ZERO,
    };
    for path in ["/d/index.html", "/d/", "/d/index.php", "/d/index.html"] {
        first.found(Instant::ZERO, &url(path), 0);
    }
    assert_eq!((first.queued(), first.visited()), (1, 1));
    // To itself, and to another page, which is found as any link is.
    first.redirected(Instant::ZERO, &job("/d/index.html"), &url("/d/index.html"));
    first.redirected(Instant::ZERO, &job("/d/index.html"), &url("/e/"));
    assert_eq!(first.queued(), 1);
    for _ in 0..2 {
        first.redirected(Instant::ZERO, &job("/d/index.html"), &url("/d/"));
        assert_eq!(first.queued(), 2);
    }
    let block = first.journal_block(Instant::ZERO, true).expect("a block");
    let (entries, _) = Entries::from_block(&block).expect("a whole block");
    let texts: Vec<&str> = entries.accepted.iter().map(|(_, text)| text).collect();
    assert_eq!(texts, [url("/d/index.html").as_str(), url("/d/").as_str()], "what is fetched is what was found");
    let mut resumed = by_key();
    entries.accepted.for_each_url(|depth, url| resumed.remember(Instant::ZERO, url, depth, false));
    assert_eq!(resumed.queued(), 2);
    resumed.found(Instant::ZERO, &url("/d/index.php"), 0);
    assert_eq!(resumed.queued(), 2);
    let mut without = shard(|_| {});
    for path in ["/d/index.html", "/d/", "/d/index.php", "/d/index.html"] {
        without.found(Instant::ZERO, &url(path), 0);
    }
    assert_eq!(without.queued(), 3);
}
