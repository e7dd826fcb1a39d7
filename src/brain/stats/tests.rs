//! Counters, their sums and their names.

use super::*;

#[test]
fn counts_sum_up_and_gauges_stay() {
    let mut totals = vec![Totals::default(); 3];
    let shards: Vec<ShardStats> = totals.iter().map(|_| ShardStats::default()).collect();
    for ((shard, published), count) in totals.iter_mut().zip(&shards).zip(1..) {
        shard.pages += count;
        shard.queued = 10 * count;
        shard.idle = 1;
        shard.fail(Failure::DnsTimeout);
        shard.fail(Failure::RobotsDenied);
        for status in [0, 99, 200, 299, 404, 599, 600, 999, u16::MAX] {
            shard.status(status);
        }
        published.publish(shard);
        assert_eq!(published.totals(), *shard);
    }
    let early: Vec<Totals> = shards.iter().map(ShardStats::totals).collect();
    let early = Totals::sum(&early);
    assert_eq!((early.pages, early.queued, early.idle, early.failed()), (6, 60, 3, 3));
    assert_eq!((early.errors(), early.robots_denied), (3, 3));
    assert_eq!(early.statuses, [15, 0, 6, 0, 3, 3]);
    assert_eq!(early.statuses.iter().sum::<u64>(), early.responses);
    assert_eq!(early.failures_by_name().collect::<Vec<_>>(), [(Failure::DnsTimeout, 3)]);

    shards.iter().for_each(|shard| shard.pages.add(100));
    shards.iter().for_each(|shard| shard.queued.set(shard.queued.get().saturating_sub(15)));
    let late = Totals::sum(&shards.iter().map(ShardStats::totals).collect::<Vec<_>>());
    let step = late.since(&early);
    assert_eq!((step.pages, step.queued, step.failed(), step.responses), (300, 20, 0, 0));
    assert_eq!(step.named().find(|(name, _)| *name == "pages"), Some(("pages", 300)));
}

#[test]
fn a_run_and_the_whole_crawl_are_told_apart() {
    let totals = Totals { known_urls: 100, known_waiting: 30, visited: 150, over: 45, ..Totals::default() };
    assert_eq!(totals.known_before(), Known { urls: 100, waiting: 30, over: 70 });
    assert_eq!(totals.known(), Known { urls: 150, waiting: 35, over: 115 });
    let later = Totals { known_urls: 150, known_waiting: 35, visited: 170, over: 40, pages: 7, ..Totals::default() };
    let both = Totals { pages: 5, queued: 9, ..totals.clone() }.followed_by(&later);
    assert_eq!((both.known_before(), both.pages, both.queued), (totals.known_before(), 12, 0));
    assert_eq!(both.known(), Known { urls: 170, waiting: 15, over: 155 });
    // Counters of different moments.
    let early = Totals { visited: 10, over: 11, ..Totals::default() };
    assert_eq!(early.known(), Known { urls: 10, waiting: 0, over: 11 });
}

#[test]
fn every_failure_and_counter_has_its_own_place() {
    let mut shard = Totals::default();
    for failure in Failure::ALL {
        shard.fail(*failure);
    }
    let mut expected = [1; FAILURES];
    expected[Failure::RobotsDenied as usize] = 0;
    expected[Failure::OverBudget as usize] = 0;
    assert_eq!((shard.failures, shard.robots_denied, shard.urls_over_budget), (expected, 1, 1));
    assert_eq!(std::mem::align_of::<ShardStats>(), 128);
    assert_eq!(std::mem::size_of::<ShardStats>() % 128, 0);
    let names: std::collections::BTreeSet<_> = shard.named().map(|(name, _)| name).collect();
    assert_eq!(names.len(), shard.named().count());
}

#[test]
fn a_reader_never_sees_a_counter_fall() {
    let shard = ShardStats::default();
    std::thread::scope(|scope| {
        scope.spawn(|| (0..100_000).for_each(|_| shard.pages.add(1)));
        let mut last = 0;
        while last < 100_000 {
            let now = shard.totals().pages;
            assert!(now >= last);
            last = now;
        }
    });
}
