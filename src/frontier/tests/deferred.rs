//! URLs that wait behind all others, and when they need not.

use std::collections::BTreeSet;

use super::*;
use crate::frontier::backlog::{Band, Taken};
use crate::hops::Hops;

fn offer_deferred(bed: &mut Bed, url: &str) {
    let (url, depth) = (Url::parse(url).expect("a URL"), Hops::default().deferred().bits());
    let site = SiteKey::of_host(7, url.host());
    bed.frontier.offer(bed.now, &url, site, Ticket { number: 0, depth }, &mut bed.spool);
}

/// One that is poor as well.
fn offer_poor(bed: &mut Bed, text: &str) {
    offer_deferred(bed, text);
    let url = Url::parse(text).expect("a URL");
    let Bed { frontier, now, spool, .. } = bed;
    let id = frontier.hosts.find(url.host()).expect("a host");
    let taken = frontier.hosts[id].backlog.take_next(Band::ORDER, Band::Deferred, &mut 0);
    assert!(matches!(taken, Taken::Url));
    let entry = frontier.hosts[id].backlog.take_current().expect("a URL");
    frontier.queue(*now, id, &entry.url, Band::Poor, entry.ticket, spool);
}

/// A crawl that may have so many pages has none to give away.
const BUDGET: u64 = 1 << 40;

fn is_deferred(job: &FetchJob) -> bool {
    Hops::from_bits(job.depth).is_deferred()
}

#[test]
fn they_wait_behind_all_others_of_all_hosts_and_a_few_come_early() {
    for (ram_bytes_max, share) in [(0, 2), (1 << 30, 2), (1 << 30, 0), (1 << 30, 50)] {
        let mut bed = Bed::new(|config| {
            (config.politeness.site_delay, config.politeness.ip_delay) = (Duration::ZERO, Duration::ZERO);
            config.frontier.ram_bytes_max = ram_bytes_max;
            (config.frontier.deferred_share, config.crawl.pages_max) = (share, BUDGET);
        });
        for number in 0..100 {
            (0..10).for_each(|host| offer_deferred(&mut bed, &format!("http://h{host}.test/trap-{number}")));
        }
        for number in 0..50 {
            bed.offer(&format!("http://h0.test/{number}"));
        }
        (0..600).for_each(|number| bed.offer(&format!("http://long.test/{number}")));
        assert_eq!((bed.frontier.queued(), bed.frontier.deferred()), (1_650, 1_000));
        bed.run(10 * HOUR, 10_000, &mut well);
        let pages: Vec<&FetchJob> =
            bed.jobs.iter().map(|(_, job)| job).filter(|job| job.kind == JobKind::Page).collect();
        assert_eq!(pages.iter().map(|job| job.url.as_str()).collect::<BTreeSet<_>>().len(), 1_650);
        assert_eq!((pages.len(), bed.frontier.queued(), bed.frontier.deferred()), (1_650, 0, 0));
        let last = pages.iter().rposition(|job| !is_deferred(job)).expect("a page");
        let early = pages[..last].iter().filter(|job| is_deferred(job)).count();
        let expected = last * share as usize / 100;
        // Of one host only so many can come early as it may be asked.
        let is_share = early <= expected + 1 && (early + 2 >= expected || share == 50 && early > 200);
        assert!(is_share, "{early} of {last} at {share} %");
        let own = pages.iter().filter(|job| job.url.host() == "h0.test").take(50);
        assert!(own.filter(|job| is_deferred(job)).count() <= 25, "a host's own come first");
    }
}

#[test]
fn they_do_not_wait_for_a_host_that_rests() {
    let mut bed = Bed::new(|_| ());
    (0..10).for_each(|number| offer_deferred(&mut bed, &format!("http://a.test/{number}")));
    (0..10).for_each(|number| bed.offer(&format!("http://rests.test/{number}")));
    let mut is_first = true;
    bed.run(HOUR / 2, 1_000, &mut |job| match job.kind {
        JobKind::Page if job.url.host() == "rests.test" && std::mem::take(&mut is_first) => {
            let retry_after = Some(Duration::from_secs(HOUR));
            Outcome::Fetched(Fetched { status: 503, retry_after, ..Fetched::default() })
        }
        _ => well(job),
    });
    assert_eq!((bed.count(JobKind::Page), bed.frontier.deferred()), (11, 0));
    bed.run(2 * HOUR, 1_000, &mut well);
    assert_eq!((bed.count(JobKind::Page), bed.frontier.is_idle()), (21, true));
}

/// Hosts that have nothing else hold places in the host table, and the others wait outside.
#[test]
fn they_do_not_keep_others_out() {
    let mut bed = Bed::new(|config| {
        (config.politeness.site_delay, config.politeness.ip_delay) = (Duration::ZERO, Duration::ZERO);
        config.frontier.hosts_max = 8;
        (config.frontier.deferred_share, config.crawl.pages_max) = (0, BUDGET);
    });
    (0..8).for_each(|host| bed.offer(&format!("http://h{host}.test/")));
    for host in 0..8 {
        (0..5).for_each(|number| offer_deferred(&mut bed, &format!("http://h{host}.test/{number}")));
    }
    // While one of them has something else to do.
    (0..1_000).for_each(|number| bed.offer(&format!("http://h0.test/busy-{number}")));
    (0..100).for_each(|host| bed.offer(&format!("http://o{host}.test/")));
    bed.run(200, 10_000, &mut well);
    assert_eq!(bed.pages().iter().filter(|url| url.starts_with("http://o")).count(), 100);
    bed.run(HOUR, 10_000, &mut well);
    assert_eq!((bed.count(JobKind::Page), bed.frontier.is_idle()), (1_148, true));
}

#[test]
fn a_host_that_gets_something_else_to_do_does_it() {
    let mut bed = Bed::new(|config| (config.frontier.deferred_share, config.crawl.pages_max) = (0, BUDGET));
    (0..100).for_each(|number| bed.offer(&format!("http://long.test/{number}")));
    offer_deferred(&mut bed, "http://a.test/last");
    bed.run(20, 1_000, &mut well);
    bed.offer("http://a.test/now");
    bed.run(10, 1_000, &mut well);
    assert!(bed.pages().contains(&"http://a.test/now") && !bed.pages().contains(&"http://a.test/last"));
    bed.run(HOUR, 1_000, &mut well);
    assert_eq!(bed.pages().last(), Some(&"http://a.test/last"));
}

/// A host with ordinary URLs is asked once a second: between two of its requests there is time for those of others that are merely
/// deferred, but not for poor ones, and none in a crawl that may have so many pages only.
#[test]
fn they_take_the_time_that_others_leave() {
    for (pages_max, site_pages_max, expected) in [(0, 0, 100..=100), (BUDGET, 0, 1..=12), (0, 1 << 30, 1..=12)] {
        let mut bed = Bed::new(|config| {
            (config.politeness.site_delay, config.politeness.ip_delay) = (Duration::ZERO, Duration::ZERO);
            (config.crawl.pages_max, config.budget.site_pages_max) = (pages_max, site_pages_max);
        });
        (0..1_000).for_each(|number| bed.offer(&format!("http://long.test/{number}")));
        for host in 0..10 {
            (0..10).for_each(|number| offer_deferred(&mut bed, &format!("http://h{host}.test/{number}")));
        }
        for number in 0..100 {
            offer_poor(&mut bed, &format!("http://poor.test/{number}"));
        }
        bed.run(300, 10_000, &mut well);
        let begun = |name: &str| bed.pages().iter().filter(|url| url.starts_with(name)).count();
        let (usual, deferred, poor) = (begun("http://long"), begun("http://h"), begun("http://poor"));
        assert!((280..=300).contains(&usual), "{usual}");
        assert!(expected.contains(&deferred), "{deferred} of {expected:?}");
        assert!(poor <= 5, "{poor}");
        bed.run(HOUR, 10_000, &mut well);
        assert_eq!((bed.count(JobKind::Page), bed.frontier.is_idle(), bed.frontier.deferred()), (1_200, true, 0));
    }
}

/// A host with a URL that is tried again much later is deferred after each page until then.
#[test]
fn a_later_retry_is_noted_once() {
    let mut bed = Bed::new(|config| {
        config.politeness.host_delay = Duration::from_millis(10);
        (config.politeness.site_delay, config.politeness.ip_delay) = (Duration::ZERO, Duration::ZERO);
        config.politeness.retry_delay = Duration::from_secs(HOUR);
    });
    bed.offer("http://a.test/broken");
    (0..500).for_each(|number| offer_deferred(&mut bed, &format!("http://a.test/{number}")));
    (0..1_000).for_each(|number| bed.offer(&format!("http://long.test/{number}")));
    let mut broken = |job: &FetchJob| if job.url.as_str().ends_with("broken") { status(500) } else { well(job) };
    let mut most = 0;
    for _ in 0..10 {
        bed.run(1, 10_000, &mut broken);
        most = most.max(bed.frontier.calendar.len());
    }
    assert!(bed.count(JobKind::Page) > 500 && most < 20, "{most} entries");
}

/// A shard that has run out of others waits while another shard has some, as it would if both were one.
#[test]
fn they_wait_for_other_shards() {
    let all = Arc::<UsualWork>::default();
    let bed = |shared: bool| {
        let mut bed = Bed::new(|config| config.frontier.deferred_share = 0);
        let frontier = Frontier::new(bed.frontier.settings.clone(), Arc::new(Ledger::new(16)));
        bed.frontier = if shared { frontier.among(Arc::clone(&all)) } else { frontier };
        bed
    };
    for shared in [false, true] {
        let mut beds = [bed(shared), bed(shared)];
        (0..30).for_each(|number| beds[0].offer(&format!("http://long.test/{number}")));
        beds[1].offer("http://short.test/");
        (0..30).for_each(|number| offer_poor(&mut beds[1], &format!("http://poor.test/{number}")));
        let mut begun = [0; 2];
        for second in 0..45 {
            for bed in &mut beds {
                bed.now = Instant::ZERO + Duration::from_secs(second);
                bed.run(1, 100, &mut well);
            }
            let poor = beds[1].pages().iter().filter(|url| url.starts_with("http://poor")).count();
            begun[usize::from(beds[0].frontier.queued() == 0)] = poor;
        }
        let expected = if shared { 0..=1 } else { 20..=30 };
        assert!(expected.contains(&begun[0]), "{begun:?} of {expected:?}");
        assert!(begun[1] >= begun[0] + 10 || !shared, "{begun:?}");
    }
}
