//! The wall clock is set during a run, and a run is killed soon after an event that must be remembered.

use super::*;
use ringcrawl_base::time::UnixTime;

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

/// The clock that shows this many seconds at `now`.
fn clock(now: Instant, seconds: u64) -> Input {
    Input::Clock(WallClock::reading(now, UnixTime::from_micros(seconds * 1_000_000)))
}

/// One host, with a page to fetch.
fn rig(logs: Logs, seconds: u64, change: impl FnOnce(&mut Config)) -> Rig {
    let name = names(0).next().expect("a name");
    let config = config(|config| {
        config.dns.hosts.insert(name.clone(), vec!["192.0.2.1".parse().expect("an address")]);
        change(config);
    });
    let mut rig = Rig::reading(config, logs);
    rig.shard.handle(Instant::ZERO, clock(Instant::ZERO, seconds));
    rig.run(Instant::ZERO);
    rig.seed(&Url::parse(&format!("http://{name}/")).expect("a URL"));
    rig.run(Instant::ZERO);
    rig
}

/// When the first request goes out, in seconds, of a run that begins at this clock time.
fn first_request(logs: Logs, seconds: u64) -> Option<u64> {
    let mut rig = rig(logs, seconds, |_| ());
    (0..100_000).find(|second| {
        rig.run(at(*second));
        !rig.fetches.is_empty()
    })
}

#[test]
fn what_a_host_asked_for_holds_though_the_clock_is_set() {
    // By the clock that is right from then on, in the order of events: the previous run ends at 10,000.
    for (is_set_before, wrong) in [(true, 5_000), (false, 5_000), (true, 12_000), (false, 12_000)] {
        let mut first = rig(Logs::new(), wrong, |_| ());
        let robots = first.fetches.remove(0);
        if is_set_before {
            first.shard.handle(at(9), clock(at(9), 9_989));
        }
        first.shard.handle(at(10), response(&robots, 429, "Retry-After: 1800\r\n", ""));
        first.run(at(10));
        if !is_set_before {
            first.shard.handle(at(11), clock(at(11), 9_991));
        }
        (11..=20).for_each(|second| first.run(at(second)));
        let asked = first_request(first.logs, 10_000);
        assert!(asked.is_some_and(|at| (1_790..=1_793).contains(&at)), "{asked:?}: {is_set_before}, {wrong}");
    }
}

#[test]
fn a_rest_that_no_host_was_met_for_is_noted_again() {
    let mut first = rig(Logs::new(), 10_000, |_| ());
    let robots = first.fetches.remove(0);
    first.shard.handle(at(10), response(&robots, 429, "Retry-After: 1800\r\n", ""));
    first.enter(Phase::Close);
    // Its URL is unknown to the second run, so its host is, too.
    first.logs.retain(|file, _| *file == LogFile::Ends);
    let mut second = Rig::reading(config(|_| ()), first.logs);
    second.shard.handle(at(0), clock(at(0), 10_010));
    second.run(at(0));
    second.shard.handle(at(5), clock(at(5), 20_005));
    (5..10).for_each(|second_of_run| second.run(at(second_of_run)));
    let asked = first_request(second.logs, 20_010);
    assert!(asked.is_some_and(|at| (1_785..=1_793).contains(&at)), "{asked:?}");
}

/// Between two runs: whatever the clock shows, no host waits longer than it was asked to, nor repeatedly.
#[test]
fn a_rest_lasts_no_longer_than_it_was_to_though_the_clock_is_set_back_before_a_resume() {
    const DAY: u64 = 24 * 3_600;
    let begin = 100 * DAY;
    for back in [30, 3_600, 30 * DAY] {
        let logs = || {
            let mut first = rig(Logs::new(), begin, |_| ());
            let robots = first.fetches.remove(0);
            first.shard.handle(at(10), response(&robots, 429, "Retry-After: 1800\r\n", ""));
            (10..=20).for_each(|second| first.run(at(second)));
            first.logs
        };
        let asked = first_request(logs(), begin + 20 - back);
        assert!(asked.is_some_and(|at| (1_790..=1_803).contains(&at)), "{asked:?}: {back}");
        // A second run that fetches nothing counts for the third.
        let mut second = rig(logs(), begin + 20 - back, |_| ());
        (0..=1_000).for_each(|now| second.run(at(now)));
        assert!(second.fetches.is_empty());
        let asked = first_request(second.logs, begin + 20 - back + 1_000);
        assert!(asked.is_some_and(|at| at <= 810), "{asked:?}: {back}");
    }
}

#[test]
fn hours_go_by_the_clock_as_it_is_set() {
    let mut rig = rig(Logs::new(), 0, |config| config.set("crawl.hours", "01:00-02:00").expect("hours"));
    rig.run(at(60));
    assert_eq!((rig.fetches.len(), rig.shard.next_due()), (0, Some(at(3_600))));
    rig.shard.handle(at(61), clock(at(61), 2 * 3_600 - 10));
    rig.run(at(61));
    assert_eq!(rig.fetches.len(), 1);
    rig.shard.handle(at(62), clock(at(62), 2 * 3_600 + 10));
    let robots = rig.fetches.remove(0);
    rig.shard.handle(at(62), response(&robots, 404, "", ""));
    rig.run(at(70));
    assert_eq!(rig.fetches.len(), 0, "they are over");
}

/// A kill leaves what was on the disk by then.
#[test]
fn a_long_rest_is_on_the_disk_at_once() {
    for (seconds, is_kept) in [(1_800, true), (50, false)] {
        let mut first = rig(Logs::new(), 10_000, |_| ());
        // The log has the host by then.
        first.run(at(5));
        let robots = first.fetches.remove(0);
        first.shard.handle(at(10), response(&robots, 429, &format!("Retry-After: {seconds}\r\n"), ""));
        first.run(at(10));
        let asked = first_request(first.logs, 10_010);
        assert_eq!(asked.is_some_and(|at| at + 1 >= seconds), is_kept, "{asked:?} of {seconds}");
    }
}

#[test]
fn who_asks_for_long_rests_does_not_make_a_commit_of_each() {
    let mut commits = 0;
    let names: Vec<String> = names(0).take(100).collect();
    let mut rig = Rig::new(
        config(|config| {
            for name in &names {
                config.dns.hosts.insert(name.clone(), vec!["192.0.2.1".parse().expect("an address")]);
            }
            (config.politeness.site_delay, config.politeness.ip_delay) = (Duration::ZERO, Duration::ZERO);
        }),
        Logs::new(),
    );
    names.iter().for_each(|name| rig.seed(&Url::parse(&format!("http://{name}/")).expect("a URL")));
    rig.run(at(0));
    assert_eq!(rig.fetches.len(), 100);
    let mut bytes = rig.log(LogFile::Ends).len();
    // One answer each 10 ms.
    for (number, job) in (0_u64..).zip(std::mem::take(&mut rig.fetches)) {
        let now = at(10) + Duration::from_millis(10 * number);
        rig.shard.handle(now, response(&job, 429, "Retry-After: 3600\r\n", ""));
        rig.run(now);
        let grown = rig.log(LogFile::Ends).len();
        commits += u64::from(grown > bytes);
        bytes = grown;
    }
    assert!((3..=5).contains(&commits), "{commits} commits in a second");
    let due = rig.shard.next_due().expect("the rest of them");
    assert!(due <= at(11) + Duration::from_millis(250), "{due:?}");
}
