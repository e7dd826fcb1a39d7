//! Servers that say that they are asked too often, and what that costs.

use super::*;

/// A crawler that took Retry-After for two minutes at most made 3,222 requests of one storm.
#[test]
fn a_storm_ends_without_a_loss() {
    let mut bed = Bed::new(|_| ());
    (0..30).for_each(|number| bed.offer(&format!("http://a.test/{number}")));
    let storm_ends = Instant::ZERO + Duration::from_secs(HOUR);
    let mut asked = Vec::new();
    bed.run(4 * HOUR, 1_000, &mut |job| match job.kind {
        JobKind::Page => {
            asked.push(job.began);
            status(if job.began < storm_ends { 429 } else { 200 })
        }
        _ => well(job),
    });
    let in_storm = asked.iter().filter(|at| **at < storm_ends).count();
    assert!((7..=13).contains(&in_storm), "{in_storm} requests in an hour");
    assert!(asked.windows(2).all(|pair| pair[1].since(pair[0]) >= Duration::from_secs(1)));
    let fetched: std::collections::BTreeSet<&str> = bed.pages().into_iter().collect();
    assert_eq!((fetched.len(), asked.len() - in_storm, bed.settled.len()), (30, 30, 0), "each comes in the end");
}

/// A host that complains for ever is given up like one that fails for ever, after six hours, and each of its URLs ends.
#[test]
fn a_storm_without_end_ends() {
    for urls in [5, 1_000] {
        let mut bed = Bed::new(|_| ());
        (0..urls).for_each(|number| bed.offer(&format!("http://a.test/{number}")));
        bed.run(7 * HOUR, 10_000, &mut |job| if job.kind == JobKind::Page { status(503) } else { well(job) });
        assert!(bed.frontier.is_idle() && bed.frontier.queued() == 0);
        assert!((25..45).contains(&bed.count(JobKind::Page)), "{} requests", bed.count(JobKind::Page));
        let dead = bed.settled.iter().filter(|settled| settled.failure == Failure::HostDead).count();
        assert_eq!(dead, urls);
    }
}

#[test]
fn what_is_asked_for_is_waited_for() {
    let mut bed = Bed::new(|_| ());
    (0..3).for_each(|number| bed.offer(&format!("http://a.test/{number}")));
    let mut complaints = 0;
    bed.run(10 * HOUR, 1_000, &mut |job| match job.kind {
        JobKind::Page if complaints < 2 => {
            complaints += 1;
            let retry_after = Some(Duration::from_secs(3_120));
            Outcome::Fetched(Fetched { status: 429, retry_after, ..Fetched::default() })
        }
        _ => well(job),
    });
    let pages: Vec<Instant> = bed.jobs.iter().filter(|(_, job)| job.kind == JobKind::Page).map(|(at, _)| *at).collect();
    let gaps: Vec<u64> = pages.windows(2).map(|pair| pair[1].since(pair[0]).as_secs()).collect();
    assert_eq!((pages.len(), gaps.first(), gaps.get(1)), (5, Some(&3_120), Some(&3_120)), "{gaps:?}");
}

/// Limiters let some requests through: of those that ask too often it must get fewer.
#[test]
fn limiters_that_let_some_through_are_asked_less_and_less() {
    // Six requests in ten seconds, and every third request.
    let mut times = std::collections::VecDeque::<Instant>::new();
    let mut window = |now: Instant| {
        times.retain(|at| now.since(*at) < Duration::from_secs(10));
        let is_refused = times.len() >= 6;
        times.push_back(now);
        is_refused
    };
    let mut count = 0;
    let mut third = |_| {
        count += 1;
        count % 3 == 0
    };
    let limiters: [(&mut dyn FnMut(Instant) -> bool, usize); 2] = [(&mut window, 60), (&mut third, 100)];
    for (refuses, refused_max) in limiters {
        let mut bed = Bed::new(|_| ());
        (0..1_000).for_each(|number| bed.offer(&format!("http://a.test/{number}")));
        let mut refused = 0;
        bed.run(HOUR, 10_000, &mut |job| match job.kind {
            JobKind::Page if refuses(job.began) => {
                refused += 1;
                let retry_after = Some(Duration::from_secs(1));
                Outcome::Fetched(Fetched { status: 429, retry_after, ..Fetched::default() })
            }
            _ => well(job),
        });
        let pages = bed.count(JobKind::Page);
        assert!(refused <= refused_max && pages < 2_000, "{refused} of {pages} in an hour");
        bed.run(100 * HOUR, 10_000, &mut well);
        assert_eq!((bed.frontier.is_idle(), bed.settled.len()), (true, 0));
    }
}

/// One page that is broken in this way costs its own tries, and a rest each time, but no longer delays.
#[test]
fn a_page_is_no_storm() {
    let mut bed = Bed::new(|_| ());
    (0..60).for_each(|number| bed.offer(&format!("http://a.test/{number}")));
    bed.run(10 * HOUR, 1_000, &mut |job| match job.kind {
        JobKind::Page if job.url.path_and_query() == "/3" => status(503),
        _ => well(job),
    });
    let of_broken = bed.pages().into_iter().filter(|url| url.ends_with("/3")).count();
    assert_eq!((of_broken, bed.count(JobKind::Page)), (5, 64));
    let lasted = bed.jobs.last().map_or(Instant::ZERO, |(at, _)| *at).since(Instant::ZERO);
    assert!(lasted < Duration::from_secs(60 + 5 * 10 + 170), "{lasted:?}");
}

/// One URL that is complained of for ever ends, also when it comes after another one that was.
#[test]
fn one_url_makes_no_storm_however_late_it_comes() {
    let mut bed = Bed::new(|_| ());
    for number in 0..3 {
        bed.offer(&format!("http://a.test/{number}"));
        bed.run(100 * HOUR, 100, &mut |job| if job.kind == JobKind::Page { status(429) } else { well(job) });
        assert!(bed.frontier.is_idle() && bed.frontier.queued() == 0, "{number}");
    }
    assert_eq!(bed.count(JobKind::Page), 5 + 6 + 6, "the first try of each but the first is not counted");
}

/// Pages of a host that are had in ten minutes where `others` are asked for as well, which are answered like this.
fn pages_beside(others: &[String], answer: impl Fn(&Url) -> Outcome) -> usize {
    let mut bed = Bed::new(|_| ());
    bed.offer("http://a.test/");
    bed.run(20, 1_000, &mut well);
    others.iter().for_each(|url| bed.offer(url));
    (0..1_000).for_each(|number| bed.offer(&format!("http://a.test/page/{number}")));
    bed.run(600, 10_000, &mut |job| match job.kind {
        _ if others.iter().any(|url| url == job.url.as_str()) => answer(&job.url),
        JobKind::Page => well(job),
        _ => well(job),
    });
    bed.pages().into_iter().filter(|url| url.contains("/page/")).count()
}

/// Anyone may link to a broken script of a host forty times, or four hundred.
#[test]
fn a_broken_script_rests_alone() {
    let alone = pages_beside(&[], |_| status(503));
    for count in [1, 40, 400] {
        let scripts: Vec<String> = (0..count).map(|number| format!("http://a.test/cgi?{number}")).collect();
        let beside = pages_beside(&scripts, |_| status(503));
        assert!(beside * 10 >= alone * 8, "{beside} beside {count} links, {alone} alone");
    }
    // A limiter that every other URL meets is the host's.
    let all: Vec<String> = (0..400).map(|number| format!("http://a.test/page/{}", 2 * number)).collect();
    let limited = pages_beside(&all, |_| status(503));
    assert!(limited * 4 < alone, "{limited} of {alone}");
}

/// Another port of the host asks to be left alone for a day: it is, and the host goes on.
#[test]
fn the_rest_of_an_odd_port_is_its_own() {
    let day = |_: &Url| {
        let retry_after = Some(Duration::from_secs(86_400));
        Outcome::Fetched(Fetched { status: 429, retry_after, ..Fetched::default() })
    };
    let alone = pages_beside(&[], day);
    let ports: Vec<String> = (1..4).map(|number| format!("http://a.test:8080/{number}")).collect();
    let beside = pages_beside(&ports, day);
    assert!(beside * 10 >= alone * 8, "{beside} of {alone}");
    // Its own port speaks for the host.
    let beside = pages_beside(&["http://a.test/busy".to_owned()], day);
    assert!(beside * 4 < alone, "{beside} of {alone}");
    let mut bed = Bed::new(|_| ());
    ["http://a.test/", "http://a.test/1", "http://a.test:8080/1", "http://a.test:8080/2"]
        .iter()
        .for_each(|url| bed.offer(url));
    bed.run(HOUR, 1_000, &mut |job| match job.url.port() {
        8080 if job.kind == JobKind::Page => day(&job.url),
        _ => well(job),
    });
    let odd = bed.jobs.iter().filter(|(_, job)| job.kind == JobKind::Page && job.url.port() == 8080).count();
    assert_eq!((odd, bed.frontier.queued()), (1, 2), "it is left alone");
}
