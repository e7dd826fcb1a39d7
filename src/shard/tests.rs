//! The brain of one shard of two, where disk and rings fail it.

use super::*;
use crate::config::PartitionKey;

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
