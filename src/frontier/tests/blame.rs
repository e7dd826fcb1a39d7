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
