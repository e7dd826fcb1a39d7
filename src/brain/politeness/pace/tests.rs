//! When a host is due, by what it answered.

use super::*;
use crate::outcome::Fetched;
use ringcrawl_config::{Config, Hours};

fn of(url: u64) -> Complaint {
    Complaint { of_url: url, is_again: false, is_of_page: false, draw: 0 }
}

fn politeness() -> Politeness {
    let mut politeness = Config::default().politeness;
    politeness.host_delay = Duration::from_secs(1);
    politeness.retry_delay = Duration::from_secs(10);
    politeness
}

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

fn fetched(status: u16, retry_after: Option<u64>) -> Outcome {
    let retry_after = retry_after.map(Duration::from_secs);
    Outcome::Fetched(Fetched { status, retry_after, ..Fetched::default() })
}

fn ended(pace: &mut HostPace, seconds: u64, outcome: &Outcome, politeness: &Politeness) {
    let asked = if let Outcome::Fetched(fetched) = outcome { fetched.retry_after } else { None };
    pace.ended(at(seconds), Duration::ZERO, (outcome, true), Some((of(seconds), asked)), politeness);
}

#[test]
fn the_gap_is_counted_from_the_end() {
    let (mut pace, politeness) = (HostPace::new(), politeness());
    pace.obey_crawl_delay(Duration::from_secs(5), &politeness);
    assert_eq!(pace.not_before(), Instant::ZERO, "nothing was asked yet");
    ended(&mut pace, 100, &fetched(200, None), &politeness);
    assert_eq!(pace.not_before(), at(110), "twice as long at first");
    [110, 120].into_iter().for_each(|second| ended(&mut pace, second, &fetched(200, None), &politeness));
    assert_eq!(pace.not_before(), at(125));
    ended(&mut pace, 130, &fetched(503, Some(60)), &politeness);
    assert_eq!(pace.not_before(), at(190));
    ended(&mut pace, 200, &fetched(429, None), &politeness);
    assert_eq!(pace.not_before(), at(220), "without Retry-After the retry delay, twice as long each time");
    pace.obey_crawl_delay(Duration::from_secs(12), &politeness);
    assert_eq!(pace.not_before(), at(224), "from the last request on, and stretched");
}

#[test]
fn a_slow_server_is_asked_less_often() {
    let (mut pace, mut politeness) = (HostPace::new(), politeness());
    (politeness.response_factor, politeness.response_delay_max) = (2, Duration::from_secs(30));
    let mut now = 0;
    let mut gap = |seconds| {
        for _ in 0..3 {
            now += 100;
            pace.ended(
                at(now),
                Duration::from_secs(seconds),
                (&fetched(200, None), true),
                Some((of(0), None)),
                &politeness,
            );
        }
        pace.not_before().since(at(now)).as_secs()
    };
    assert_eq!([gap(0), gap(3), gap(60), gap(0)], [1, 6, 30, 1]);
}

/// An operator who sets a delay to zero means it.
#[test]
fn no_delay_is_none_however_slow_a_server_is() {
    let mut politeness = politeness();
    politeness.response_factor = 100;
    let gap = |pace: HostPace, politeness: &Politeness, took| {
        let mut pace = pace;
        pace.ended(at(100), Duration::from_secs(took), (&fetched(200, None), true), Some((of(0), None)), politeness);
        pace.not_before().since(at(100)).as_secs()
    };
    assert_eq!(gap(agreed(0, 1, ""), &politeness, 9), 0, "of a line");
    assert_eq!(gap(HostPace::new(), &politeness, 9), 60, "twice as long as 30 s, of a stranger");
    politeness.host_delay = Duration::ZERO;
    assert_eq!(gap(HostPace::new(), &politeness, 9), 0, "of all");
    assert_eq!(gap(agreed(1, 1, ""), &politeness, 2), 60, "a line with a delay has it");
    let mut pace = HostPace::new();
    pace.obey_crawl_delay(Duration::from_secs(7), &politeness);
    assert_eq!(gap(pace, &politeness, 9), 14, "the host has the last word");
}

fn agreed(delay: u64, concurrency: u8, hours: &str) -> HostPace {
    let hours = Hours::parse(hours).expect("hours");
    HostPace::new().under(HostTerms { delay: Some(Duration::from_secs(delay)), hours, concurrency, is_mine: false })
}

#[test]
fn what_is_agreed_replaces_the_delay_and_nothing_else() {
    let mut politeness = politeness();
    (politeness.slow_start, politeness.response_factor) = (1, 2);
    let mut pace = agreed(7, 1, "");
    ended(&mut pace, 100, &fetched(200, None), &politeness);
    assert_eq!(pace.not_before(), at(107));
    pace.ended(at(200), Duration::from_secs(5), (&fetched(200, None), true), Some((of(0), None)), &politeness);
    assert_eq!(pace.not_before(), at(210), "twice as long as the response took");
    pace.obey_crawl_delay(Duration::from_secs(30), &politeness);
    assert_eq!(pace.not_before(), at(230));
    let mut several = agreed(3, 4, "");
    several.ended(at(10), Duration::from_secs(5), (&fetched(200, None), true), Some((of(0), None)), &politeness);
    assert_eq!(several.not_before(), at(13), "how long it took says little where several go at once");
}

#[test]
fn it_is_known_what_a_host_waits_for() {
    let (mut pace, mut politeness) = (HostPace::new(), politeness());
    politeness.response_factor = 2;
    let mut waits = vec![pace.wait(&politeness)];
    pace.ended(at(10), Duration::from_secs(3), (&fetched(200, None), true), Some((of(0), None)), &politeness);
    waits.push(pace.wait(&politeness));
    pace.obey_crawl_delay(Duration::from_secs(5), &politeness);
    waits.push(pace.wait(&politeness));
    pace.obey_crawl_delay(Duration::from_secs(9), &politeness);
    waits.push(pace.wait(&politeness));
    ended(&mut pace, 20, &fetched(503, Some(60)), &politeness);
    waits.push(pace.wait(&politeness));
    let wall = UnixTime::from_civil(2026, 11, 26, 21, 0, 0).expect("a time");
    let mut closed = agreed(1, 1, "22:00-06:00");
    closed.keep_hours(at(50), wall);
    waits.push(closed.wait(&politeness));
    use Wait::{Complaints, CrawlDelay, HostDelay, Hours, ResponseFactor};
    assert_eq!(waits, [HostDelay, ResponseFactor, ResponseFactor, CrawlDelay, Complaints, Hours]);
}

#[test]
fn a_host_of_ones_own_has_no_delay_but_what_it_asks_for() {
    let politeness = politeness();
    let terms = HostTerms { delay: Some(Duration::ZERO), hours: None, concurrency: 8, is_mine: true };
    let mut pace = HostPace::new().under(terms);
    assert_eq!(pace.requests_max(), 8, "from the start");
    pace.ended(at(10), Duration::from_secs(9), (&fetched(200, None), true), Some((of(0), None)), &politeness);
    assert_eq!((pace.not_before(), pace.requests_max()), (at(10), 8));
    ended(&mut pace, 20, &fetched(503, Some(60)), &politeness);
    assert_eq!((pace.not_before(), pace.requests_max()), (at(80), 1));
    ended(&mut pace, 90, &fetched(200, None), &politeness);
    pace.obey_crawl_delay(Duration::from_secs(2), &politeness);
    assert_eq!((pace.not_before(), pace.requests_max()), (at(92), 8));
}

#[test]
fn several_at_once_as_long_as_it_does_not_complain() {
    let (mut pace, politeness) = (agreed(1, 8, ""), politeness());
    let mut most = Vec::new();
    for second in 1..=2 {
        most.push(pace.requests_max());
        ended(&mut pace, second * 10, &fetched(200, None), &politeness);
    }
    most.push(pace.requests_max());
    // Eight are in flight, and all but one complain: that is one complaint.
    pace.moved(at(30), &politeness);
    assert_eq!(pace.not_before(), at(31), "from the latest beginning on");
    for second in 0..7 {
        let (began, asked) = (Duration::from_secs(5 + second), (second == 2).then(|| Duration::from_secs(500)));
        pace.ended(at(40 + second), began, (&fetched(429, None), true), Some((of(second), asked)), &politeness);
    }
    assert_eq!(pace.not_before(), at(542), "none of them moves it back");
    pace.ended(at(48), Duration::from_secs(18), (&fetched(200, None), true), Some((of(9), None)), &politeness);
    assert_eq!(pace.not_before(), at(542));
    most.push(pace.requests_max());
    for url in 0..2 {
        pace.ended(at(600 + url), Duration::ZERO, (&fetched(429, None), true), Some((of(url), None)), &politeness);
    }
    most.push(pace.requests_max());
    assert_eq!(most, [1, 1, 8, 8, 1], "at first one, and one while a complaint is not forgiven");
}

#[test]
fn a_host_is_asked_in_its_hours() {
    let mut pace = agreed(1, 1, "22:00-06:00");
    let wall = |hour, minute| UnixTime::from_civil(2026, 11, 26, hour, minute, 0).expect("a time");
    pace.keep_hours(at(50), wall(23, 0));
    assert_eq!(pace.not_before(), Instant::ZERO);
    pace.keep_hours(at(50), wall(21, 0));
    assert_eq!(pace.not_before(), at(50 + 3_600));
    assert_eq!(pace.asked_until(), Instant::ZERO, "no wish of the host");
    // Half a second later it is the same instant.
    let later = UnixTime::from_micros(wall(21, 0).as_micros() + 500_000);
    pace.keep_hours(at(50) + Duration::from_millis(500), later);
    assert_eq!(pace.not_before(), at(50 + 3_600));
}

#[test]
fn a_proxy_that_fails_makes_its_host_wait() {
    let (mut pace, politeness) = (HostPace::new(), politeness());
    ended(&mut pace, 1, &Outcome::Failed(Failure::Aborted), &politeness);
    assert_eq!(pace.not_before(), at(3));
    ended(&mut pace, 2, &Outcome::Failed(Failure::ProxyFailed), &politeness);
    assert_eq!((pace.not_before(), pace.given_up()), (at(12), None));
    ended(&mut pace, 20, &Outcome::Failed(Failure::AddressForbidden), &politeness);
    let given_up = GivenUp { failure: Failure::AddressForbidden, until: at(3_620) };
    assert_eq!(HostPace::remembered(pace.given_up(), pace.caution()).given_up(), Some(given_up));
    pace.forgive();
    assert_eq!(pace.given_up(), None);
}
