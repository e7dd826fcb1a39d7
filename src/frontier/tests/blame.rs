//! Whose fault a failure is.

use super::*;

/// Requests for 30 pages of one host, of which the first 40 fail so, and how URLs ended without one.
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
    // Of the host's own failures five are enough.
    let (asked, settled) = asked_and_settled(Failure::Reset);
    assert_eq!(asked, 5);
    assert!(settled.len() >= 25 && settled.iter().all(|failure| *failure == Failure::HostDead), "{settled:?}");
}

/// Of two addresses one never connects and the other fails now and then: what a URL and a host may fail is the other's.
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
            Outcome::Resolved { addrs: vec![dead, living], ttl: Duration::from_secs(1), is_half: false }
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

/// New addresses that do not connect, for ever: it ends all the same.
#[test]
fn what_is_not_counted_is_bounded() {
    let mut bed = Bed::new(|config| config.robots.retries_max = 3);
    bed.offer("http://www.site.test/");
    let mut number = 0;
    bed.run(1_000 * HOUR, 1_000, &mut |job| match job.kind {
        JobKind::Resolve => {
            number += 8;
            let addrs = (0..8).map(|more| IpAddr::from((0xc000_0200_u32 + number + more).to_be_bytes())).collect();
            Outcome::Resolved { addrs, ttl: Duration::from_secs(1), is_half: false }
        }
        _ => Outcome::Failed(Failure::ConnectTimeout),
    });
    assert!(bed.frontier.is_idle());
    assert_eq!(bed.settled.len(), 1);
    // The first, its retries, and those that do not count.
    assert_eq!(bed.count(JobKind::Robots), 1 + 3 + 3);
}
