//! When a shard closes a segment.

use super::*;
use ringcrawl_config::OrNever;

/// When the segment of one page was closed, on a shard without any event after that page.
fn closed(age_max: Option<Duration>) -> Option<Instant> {
    let name = names(0).next().unwrap_or_default();
    let config = config(|config| {
        config.dns.hosts.insert(name.clone(), vec!["192.0.2.1".parse().expect("an address")]);
        config.store.segment_age_max = OrNever(age_max);
    });
    let mut rig = Rig::new(config, Logs::new());
    rig.seed(&Url::parse(&format!("http://{name}/")).expect("a URL"));
    let mut now = Instant::ZERO;
    rig.run(now);
    for status in [404, 200] {
        let job = rig.fetches.pop().expect("a fetch of robots.txt, and then of the page");
        rig.shard.handle(now, response(&job, status, "", ""));
        rig.run(now);
        now = now + Duration::from_secs(60);
        rig.run(now);
    }
    assert!(rig.shard.report().quiet && rig.fetches.is_empty());
    // It sleeps until it has something to do.
    for _ in 0..100 {
        if rig.closed > 0 {
            return Some(now);
        }
        now = now.max(rig.shard.next_due()?);
        rig.run(now);
    }
    panic!("it is awake again and again, and does not close its segment")
}

#[test]
fn a_segment_is_closed_when_it_is_old_though_nothing_happens() {
    // Its first record is that of robots.txt.
    let age = Duration::from_secs(600);
    assert_eq!(closed(Some(age)), Some(Instant::ZERO + age));
    assert_eq!(closed(None), None);
}
