//! Which host, origin or address is to blame for a failure.

use super::*;

/// Requests for 30 pages of one host whose first 40 requests fail this way, and how URLs ended without a request.
fn asked_and_settled(failure: Failure) -> (usize, Vec<Failure>) {
    let mut bed = Bed::new(|config| {
        config.politeness.host_failures_max = 5;
        config.politeness.retries_max = 100;
    });
    for number in 0..30 {
        bed.offer(&format!("http://www.site.test/{number}"));
    }
    let mut left = 40;
    bed.run(100 * HOUR, 1_000, &mut |job| match job.kind {
        JobKind::Page if left > 0 => {
            left -= 1;
            Outcome::Failed(failure)
        }
        _ => well(job),
    });
    assert!(bed.frontier.is_idle());
    (bed.count(JobKind::Page), bed.settled.iter().map(|settled| settled.failure).collect())
}

#[test]
fn a_proxy_that_is_down_is_no_host_s_fault() {
    assert_eq!(asked_and_settled(Failure::ProxyFailed), (70, Vec::new()));
    // Five of the host's own failures are enough.
    let (asked, settled) = asked_and_settled(Failure::Reset);
    assert_eq!(asked, 5);
    assert!(settled.len() >= 25 && settled.iter().all(|failure| *failure == Failure::HostDead), "{settled:?}");
}

/// Of two addresses one never connects and the other fails now and then: only the other one uses up the failures
/// allowed to a URL and a host.
#[test]
fn an_address_that_does_not_connect_is_no_try_while_there_is_another() {
    let [dead, living] = [1, 2].map(|last| IpAddr::from([192, 0, 2, last]));
    let mut bed = Bed::new(|config| {
        config.politeness.retries_max = 3;
        config.politeness.host_failures_max = 4;
    });
    bed.offer("http://www.site.test/");
    let mut tries = Vec::new();
    bed.run(100 * HOUR, 100, &mut |job| match job.kind {
        JobKind::Resolve => {
            Outcome::Resolved { addrs: vec![dead, living], ttl: Duration::from_secs(1), is_half: false, alias: None }
        }
        JobKind::Robots => well(job),
        JobKind::Page if job.addr == Some(dead) => {
            tries.push("dead");
            Outcome::Failed(Failure::ConnectTimeout)
        }
        JobKind::Page => {
            tries.push("living");
            match tries.iter().filter(|place| **place == "living").count() {
                1 => Outcome::Failed(Failure::Reset),
                2 => Outcome::Failed(Failure::ConnectRefused),
                3 => Outcome::Failed(Failure::Deadline),
                _ => well(job),
            }
        }
    });
    assert!(bed.settled.is_empty(), "{:?} after {tries:?}", bed.settled);
    assert!(tries.iter().filter(|place| **place == "dead").count() >= 2, "{tries:?}");
}

/// New addresses that do not connect, forever: it still ends.
#[test]
fn what_is_not_counted_is_bounded() {
    let mut bed = Bed::new(|config| config.robots.retries_max = 3);
    bed.offer("http://www.site.test/");
    let mut number = 0;
    bed.run(1_000 * HOUR, 1_000, &mut |job| match job.kind {
        JobKind::Resolve => {
            number += 8;
            let addrs = (0..8).map(|more| IpAddr::from((0xc000_0200_u32 + number + more).to_be_bytes())).collect();
            Outcome::Resolved { addrs, ttl: Duration::from_secs(1), is_half: false, alias: None }
        }
        _ => Outcome::Failed(Failure::ConnectTimeout),
    });
    assert!(bed.frontier.is_idle());
    assert_eq!(bed.settled.len(), 1);
    // The first, its retries, and those that do not count.
    assert_eq!(bed.count(JobKind::Robots), 1 + 3 + 3);
}

/// Requests for pages of a site in five minutes, out of 400, with links to `ports` of its ports that are closed in
/// this way and to `more` pages at each of them; tells whether any page of the site ended without a request.
fn pages_beside_closed_ports(ports: u16, more: usize, failure: Failure) -> (usize, bool) {
    let mut bed = Bed::new(|_| ());
    bed.offer("http://www.site.test/");
    bed.run(10, 10, &mut well);
    for port in 81..81 + ports {
        (0..more).for_each(|number| bed.offer(&format!("http://www.site.test:{port}/{number}")));
    }
    for number in 0..400 {
        bed.offer(&format!("http://www.site.test/{number}"));
    }
    bed.run(300, 10_000, &mut |job| match job.url.port() {
        80 => well(job),
        _ if job.kind == JobKind::Resolve => well(job),
        _ => Outcome::Failed(failure),
    });
    let is_own = |url: &Url| url.port() == 80;
    let pages = bed.jobs.iter().filter(|(_, job)| job.kind == JobKind::Page && is_own(&job.url)).count();
    (pages, bed.settled.iter().any(|settled| is_own(&settled.url)))
}

/// Anyone may link to closed ports of a host: those cost its pages little, however many they are.
#[test]
fn closed_ports_do_not_hold_up_one_that_works() {
    let (alone, _) = pages_beside_closed_ports(0, 0, Failure::ConnectRefused);
    assert!(alone >= 295, "{alone}");
    for failure in [Failure::ConnectRefused, Failure::ConnectTimeout] {
        for (ports, more) in [(1, 1), (15, 1), (60, 1), (15, 500)] {
            let (pages, has_lost) = pages_beside_closed_ports(ports, more, failure);
            assert!(10 * pages >= 8 * alone && !has_lost, "{failure:?} {ports} {more}: {pages} of {alone}");
        }
    }
}

/// One origin of a host dies: its own URLs end, the other's do not, and after an hour a single request looks again.
#[test]
fn an_origin_dies_alone() {
    let mut bed = Bed::new(|config| config.politeness.host_failures_max = 4);
    for number in 0..50 {
        bed.offer(&format!("http://www.site.test/{number}"));
        bed.offer(&format!("https://www.site.test/{number}"));
    }
    let mut answer = |job: &FetchJob| match (job.kind, job.url.port()) {
        (JobKind::Page, 443) => Outcome::Failed(Failure::Reset),
        _ => well(job),
    };
    bed.run(HOUR / 2, 10_000, &mut answer);
    let pages = |bed: &Bed, port| {
        bed.jobs.iter().filter(|(_, job)| job.kind == JobKind::Page && job.url.port() == port).count()
    };
    assert_eq!((pages(&bed, 80), pages(&bed, 443)), (50, 4));
    assert_eq!(bed.settled.len(), 50);
    assert!(bed.settled.iter().all(|end| end.failure == Failure::HostDead && end.url.port() == 443));
    bed.now = bed.now + Duration::from_secs(2 * HOUR);
    for number in 50..60 {
        bed.offer(&format!("https://www.site.test/{number}"));
    }
    let before = bed.jobs.len();
    bed.run(HOUR / 2, 10_000, &mut |job| match job.kind {
        JobKind::Resolve => well(job),
        _ => Outcome::Failed(Failure::Reset),
    });
    assert_eq!(bed.jobs[before..].iter().filter(|(_, job)| job.kind != JobKind::Resolve).count(), 1);
    assert_eq!((pages(&bed, 80), pages(&bed, 443), bed.settled.len()), (50, 4, 60));
}

/// Strangers link to odd ports of a host that do not answer, before any site links to one that does.
#[test]
fn closed_ports_lock_no_other_out() {
    for failure in [Failure::ConnectRefused, Failure::ConnectTimeout] {
        for (ports, seconds_before) in [(16, 0), (16, 600), (60, 0), (60, HOUR)] {
            let mut bed = Bed::new(|_| ());
            let mut answer = |job: &FetchJob| match job.url.port() {
                80 | 8_088 => well(job),
                _ if job.kind == JobKind::Resolve => well(job),
                _ => Outcome::Failed(failure),
            };
            bed.offer("http://www.site.test/");
            bed.run(10, 10, &mut well);
            (20_081..20_081 + ports).for_each(|port| bed.offer_of_strangers(&format!("http://www.site.test:{port}/")));
            bed.run(seconds_before, 10_000, &mut answer);
            bed.offer("http://www.site.test:8088/service");
            bed.run(24 * HOUR, 10_000, &mut answer);
            let case = format!("{failure:?} {ports} {seconds_before}");
            assert!(bed.frontier.is_idle(), "{case}");
            assert!(bed.pages().contains(&"http://www.site.test:8088/service"), "{case}: {:?}", bed.settled);
        }
    }
}

/// An origin that answered keeps its slot, and one that finds no slot ends with the true reason.
#[test]
fn ports_that_answered_keep_their_places() {
    let mut bed = Bed::new(|_| ());
    (20_081..20_101).for_each(|port| bed.offer(&format!("http://www.site.test:{port}/")));
    bed.offer("http://www.site.test/");
    bed.run(HOUR, 10_000, &mut well);
    (20_081..20_097).for_each(|port| bed.offer(&format!("http://www.site.test:{port}/again")));
    bed.run(HOUR, 10_000, &mut well);
    assert!(bed.frontier.is_idle());
    assert_eq!((bed.count(JobKind::Page), bed.count(JobKind::Robots)), (33, 17));
    let ends: Vec<_> = bed.settled.iter().map(|end| (end.url.port(), end.failure.as_str())).collect();
    assert_eq!(ends, [20_097, 20_098, 20_099, 20_100].map(|port| (port, "too-many-ports")));
}

/// Facts about origins outlive their host in memory.
#[test]
fn origins_that_failed_are_remembered() {
    let politeness = Config::default().politeness;
    let url = |text: &str| Url::parse(text).expect("a URL");
    let mut host = hosts::Host::new("www.site.test");
    assert_eq!(host.record(), None);
    host.origin_of(&url("http://www.site.test/"));
    host.answered(&url("http://www.site.test/"), false);
    assert_eq!(host.record(), None);
    for _ in 0..3 {
        let (now, odd) = (Instant::ZERO, url("http://www.site.test:81/"));
        host.failed(now, (now, Duration::ZERO, None), &odd, Failure::ConnectRefused, &politeness);
    }
    let record = host.record().expect("a record");
    let mut again = hosts::Host::new("www.site.test");
    again.remember(record.clone());
    assert_eq!(again.record(), Some(record));
    let after = Instant::ZERO + Duration::from_secs(10);
    assert!(again.dead_until(&url("http://www.site.test:81/1"), after).is_some());
    assert_eq!(again.dead_until(&url("http://www.site.test:82/1"), after), None);
}
