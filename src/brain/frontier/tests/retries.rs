//! The kind of failure decides how often a URL is retried, and when.

use super::*;

/// The result of each request for a page, by class; the name's class is of lookups.
fn failures() -> [(&'static str, Outcome); 9] {
    let failed = Outcome::Failed;
    [
        ("connect", failed(Failure::ConnectRefused)),
        ("connect", failed(Failure::ConnectTimeout)),
        ("tls", failed(Failure::TlsFailed)),
        ("transfer", failed(Failure::Reset)),
        ("transfer", failed(Failure::FirstByteTimeout)),
        ("server", status(502)),
        ("overload", status(503)),
        ("overload", status(429)),
        ("name", failed(Failure::DnsFailed)),
    ]
}

/// Seconds between the attempts at one URL that always results in `outcome`.
fn waits(rules: &[(&str, &str)], outcome: &Outcome) -> Vec<u64> {
    let mut bed = Bed::new(|config| {
        config.dns.families = ringcrawl_config::Families::Ipv4Only;
        config.politeness.host_delay = Duration::ZERO;
        config.politeness.response_factor = 0;
        config.politeness.retry_delay = Duration::from_secs(2);
        rules.iter().for_each(|(class, rule)| config.set(&format!("retry.{class}"), rule).expect("a rule"));
    });
    bed.offer("http://a.test/");
    let is_name = matches!(outcome, Outcome::Failed(Failure::DnsFailed));
    let kind = if is_name { JobKind::Resolve } else { JobKind::Page };
    let (mut tries, mut began) = (0_u64, Vec::new());
    bed.run(1_000 * HOUR, 1_000, &mut |job| {
        if job.kind != kind {
            return well(job);
        }
        tries += 1;
        began.push(job.began);
        outcome.clone()
    });
    assert!(bed.frontier.is_idle() && bed.frontier.queued() == 0);
    assert_eq!(bed.settled.len(), usize::from(is_name));
    // Silence lasts ten seconds.
    let silence = if *outcome == Outcome::Failed(Failure::ConnectTimeout) { 10 } else { 0 };
    began.windows(2).map(|pair| pair[1].since(pair[0]).as_secs() - silence).collect()
}

#[test]
fn each_class_has_its_tries_and_waits() {
    for (class, outcome) in failures() {
        let own = waits(&[(class, "{ tries = 3, delay = \"7s\", factor = 3, delay_max = \"50s\" }")], &outcome);
        assert_eq!(own, [7, 21, 50], "{class} {outcome:?}");
        assert_eq!(waits(&[(class, "{ tries = 0 }")], &outcome), [0; 0], "{class} {outcome:?}");
        // A rule for all others changes nothing.
        let others = ["name", "connect", "tls", "transfer", "server", "overload"].map(|other| (other, "{ tries = 0 }"));
        let others: Vec<_> = others.into_iter().filter(|(other, _)| *other != class).collect();
        // The rest of its kind is longer than the first wait: its robots.txt was answered.
        let first = if matches!(class, "transfer" | "server" | "overload") { 4 } else { 2 };
        assert_eq!(waits(&others, &outcome), [first, 4, 8, 16], "{class} {outcome:?}");
    }
}

/// Whatever the rule says: the failure is permanent.
#[test]
fn what_will_not_pass_is_not_tried_again() {
    let all = ["name", "connect", "tls", "transfer", "server", "overload"].map(|class| (class, "{ tries = 9 }"));
    for failure in [Failure::TlsName, Failure::TlsExpired, Failure::TlsIssuer, Failure::TlsVersion, Failure::Malformed]
    {
        assert_eq!(waits(&all, &Outcome::Failed(failure)), [0; 0], "{failure:?}");
    }
    assert_eq!(waits(&all, &status(501)), [0; 0]);
}
