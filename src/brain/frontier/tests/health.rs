//! The last problem of a host, how slow it is, and when that is recorded.

use super::*;
use crate::trouble::HostHealth;

/// When a robots.txt that never arrived was requested, in seconds, and how the page ended.
fn tries_of(failure: Failure, change: fn(&mut Config)) -> (Vec<u64>, Failure) {
    let mut bed = Bed::new(change);
    bed.offer("http://a.test/");
    bed.run(24 * 3_600, 1_000, &mut |job| match job.kind {
        JobKind::Robots => Outcome::Failed(failure),
        _ => well(job),
    });
    let asked = bed.jobs.iter().filter(|(_, job)| job.kind == JobKind::Robots);
    let times = asked.map(|(at, _)| at.since(Instant::ZERO).as_secs()).collect();
    (times, bed.settled[0].failure)
}

/// A server that refuses connections exists: one that restarts is back within minutes.
#[test]
fn a_refused_connection_is_tried_again_sooner_than_silence() {
    let gaps =
        |times: &[u64]| times.windows(2).map(|pair| pair[1] - pair[0]).filter(|gap| *gap > 30).collect::<Vec<_>>();
    let (refused, end) = tries_of(Failure::ConnectRefused, |_| ());
    assert_eq!((gaps(&refused), end), (vec![40, 80, 160, 320], Failure::RobotsUnreachable), "{refused:?}");
    for failure in [Failure::ConnectTimeout, Failure::FirstByteTimeout, Failure::Reset] {
        let (silent, end) = tries_of(failure, |_| ());
        let gaps = gaps(&silent);
        assert_eq!((gaps.len(), end), (4, Failure::RobotsUnreachable), "{silent:?}");
        assert!(gaps.iter().all(|gap| *gap >= 600), "{silent:?}");
    }
    // A shorter configured time stays shorter.
    let (refused, _) = tries_of(Failure::ConnectRefused, |config| {
        config.robots.retry_delay = Duration::from_secs(35);
        config.robots.retries_max = 4;
    });
    assert_eq!(gaps(&refused), [35; 4], "{refused:?}");
    let (refused, end) = tries_of(Failure::ConnectRefused, |config| config.robots.retries_max = 0);
    assert_eq!((gaps(&refused), end), (vec![], Failure::RobotsUnreachable));
}

/// The last note about the host.
fn noted(bed: &mut Bed) -> Option<HostHealth> {
    bed.frontier.take_rests().next_back().map(|rest| rest.health)
}

#[test]
fn what_went_wrong_is_known_until_it_goes_well() {
    let mut bed = Bed::new(|_| ());
    bed.offer("http://a.test/");
    bed.run(30, 1_000, &mut |job| match job.kind {
        JobKind::Robots => Outcome::Failed(Failure::ConnectRefused),
        _ => well(job),
    });
    let told = |bed: &mut Bed| bed.frontier.trouble().map(|(host, trouble)| trouble.sentence(host, trouble.seconds));
    let sentence = told(&mut bed).expect("trouble");
    assert!(sentence.starts_with("a.test: robots.txt: connection refused, try 2 of 5 in "), "{sentence}");
    assert_eq!(noted(&mut bed).map(|health| health.troubles.len()), Some(1));
    bed.run(60, 1_000, &mut |job| well(job));
    assert_eq!((told(&mut bed), bed.pages().len()), (None, 1));
    let health = noted(&mut bed).expect("a note");
    assert!(health.troubles.is_empty() && !health.response.is_zero(), "{health:?}");
}

/// A page's failures are noted once a minute, as there may be thousands of them; failures of names and robots.txt
/// each time.
#[test]
fn every_kind_of_trouble_is_told_as_what_it_is() {
    for (kind, failure, sentence) in [
        (JobKind::Resolve, Failure::DnsFailed, "a.test: name: the name servers answer with an error, try 2 of 5 in "),
        (
            JobKind::Robots,
            Failure::FirstByteTimeout,
            "a.test: robots.txt: no response in time (fetch.first_byte_timeout), try 2 of 5 in ",
        ),
        (JobKind::Page, Failure::Reset, "a.test: connection reset, try 2 of 5 in "),
        (JobKind::Page, Failure::Malformed, "a.test: not an HTTP/1.x response"),
    ] {
        let mut bed = Bed::new(|_| ());
        bed.offer("http://a.test/");
        bed.run(5, 1_000, &mut |job| if job.kind == kind { Outcome::Failed(failure) } else { well(job) });
        let (host, trouble) = bed.frontier.trouble().expect("trouble");
        let said = trouble.sentence(host, trouble.seconds);
        assert!(said.starts_with(sentence), "{said}");
    }
    let mut bed = Bed::new(|config| config.politeness.retries_max = 0);
    (0..15).for_each(|number| bed.offer(&format!("http://a.test/{number}")));
    bed.run(40, 1_000, &mut |job| if job.kind == JobKind::Page { Outcome::Failed(Failure::Reset) } else { well(job) });
    let notes = bed.frontier.take_rests().filter(|rest| !rest.health.troubles.is_empty()).count();
    assert!(bed.pages().len() >= 4 && notes == 1, "{notes} notes of {} pages", bed.pages().len());
}

/// An earlier run had a problem: the first success ends it, in the log, too.
#[test]
fn the_trouble_of_an_earlier_run_is_over_when_it_goes_well() {
    for has_trouble in [true, false] {
        let mut bed = Bed::new(|_| ());
        let trouble =
            crate::trouble::Trouble::of_page(&Url::parse("http://a.test/").expect("a URL"), Failure::Reset, "", 1);
        let troubles = if has_trouble { vec![trouble] } else { Vec::new() };
        let health = HostHealth { troubles, ..HostHealth::default() };
        bed.frontier.rest(Instant::ZERO, &Rest { health, ..Rest::new("a.test", Instant::ZERO) });
        bed.offer("http://a.test/");
        // Only the robots.txt: it is the first request to the host.
        bed.run(10, 2, &mut |job| well(job));
        assert_eq!(noted(&mut bed).is_some(), has_trouble);
    }
}

#[test]
fn a_slow_host_is_noted_with_its_delay() {
    let mut bed = Bed::new(|config| config.politeness.response_delay_max = Duration::from_secs(60));
    (0..3).for_each(|number| bed.offer(&format!("http://drip.test/{number}")));
    bed.run(100, 1_000, &mut |job| well(job));
    let health = noted(&mut bed).expect("a note");
    assert_eq!(health.delay, Duration::from_secs(20), "twice as long as a response takes");
    assert!((Duration::from_secs(5)..=Duration::from_secs(10)).contains(&health.response), "{health:?}");
}
