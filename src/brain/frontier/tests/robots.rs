//! How long a robots.txt is valid, what holds while none is available, and what else it contains.

use super::*;
use ringcrawl_config::CrawlDelayAbove;

const PRIVATE: &str = "User-agent: *\nDisallow: /private\n";

/// Seconds since the start at which a robots.txt was requested.
fn robots_times(bed: &Bed) -> Vec<u64> {
    let asked = bed.jobs.iter().filter(|(_, job)| job.kind == JobKind::Robots);
    asked.map(|(at, _)| at.since(Instant::ZERO).as_secs()).collect()
}

/// Seconds since the start at which the last page was requested.
fn last_page(bed: &Bed) -> u64 {
    let pages = bed.jobs.iter().filter(|(_, job)| job.kind == JobKind::Page);
    pages.map(|(at, _)| at.since(Instant::ZERO).as_secs()).max().unwrap_or_default()
}

/// A host with a page a minute for five hours, some of them private.
fn long_host(change: fn(&mut Config)) -> Bed {
    let mut bed = Bed::new(|config| {
        config.politeness.host_delay = Duration::from_secs(60);
        config.robots.ttl = Duration::from_secs(HOUR);
        config.robots.retries_max = 2;
        change(config);
    });
    for number in 0..300 {
        bed.offer(&format!("http://a.test/{number}"));
        bed.offer(&format!("http://a.test/private/{number}"));
    }
    bed
}

/// The history of a robots.txt behind a server error: its last content holds for a while, then nothing may be
/// fetched.
#[test]
fn the_last_good_copy_holds_while_there_is_no_other() {
    let failures: [&dyn Fn() -> Outcome; 4] =
        [&|| status(500), &|| status(503), &|| Outcome::Failed(Failure::FirstByteTimeout), &|| {
            Outcome::Fetched(Fetched { truncated: Some(Truncated::Disconnect), ..rules_of(PRIVATE) })
        }];
    for (stale_hours, failure) in [(2, 0), (2, 1), (2, 2), (2, 3), (0, 0)] {
        let mut bed = match stale_hours {
            0 => long_host(|config| config.robots.stale_max = Duration::ZERO),
            _ => long_host(|config| config.robots.stale_max = Duration::from_secs(2 * HOUR)),
        };
        let mut asked = 0;
        bed.run(24 * HOUR, 10_000, &mut |job| match job.kind {
            JobKind::Robots => {
                asked += 1;
                if asked == 1 { robots(PRIVATE) } else { failures[failure]() }
            }
            _ => well(job),
        });
        assert!(bed.frontier.is_idle());
        assert!(bed.pages().iter().all(|url| !url.contains("private")));
        let end = (1 + stale_hours) * HOUR;
        assert!((end - 400..=end).contains(&last_page(&bed)), "{} of {end}", last_page(&bed));
        // It is requested every ten minutes, not before every page, and three more times when nothing holds any more.
        let times = robots_times(&bed);
        let tries = 1 + 6 * stale_hours as usize + 3;
        assert!((tries - 2..=tries + 1).contains(&times.len()), "{times:?}");
        assert!(times.windows(2).skip(1).all(|pair| pair[1] - pair[0] >= 600), "{times:?}");
        let why = if failure < 2 { Failure::RobotsServerError } else { Failure::RobotsUnreachable };
        let ends = |failure| bed.settled.iter().filter(|end| end.failure == failure).count();
        assert!(ends(why) > 200 && ends(Failure::RobotsDenied) > 30, "{why:?}");
    }
}

fn rules_of(text: &str) -> Fetched {
    match robots(text) {
        Outcome::Fetched(fetched) => fetched,
        _ => Fetched::default(),
    }
}

#[test]
fn a_new_robots_txt_ends_the_last_good_copy() {
    let mut bed = long_host(|_| ());
    let mut asked = 0;
    bed.run(24 * HOUR, 10_000, &mut |job| match job.kind {
        JobKind::Robots => {
            asked += 1;
            match asked {
                1 => robots(PRIVATE),
                2 | 3 => status(502),
                4 => robots("User-agent: *\nDisallow: /private\nDisallow: /2\n"),
                _ => status(502),
            }
        }
        _ => well(job),
    });
    // The old copy held for twenty minutes, and the new one from then on: also as a copy.
    let twos = bed.pages().iter().filter(|url| url.starts_with("http://a.test/2")).count();
    assert_eq!((twos, bed.pages().len()), (11, 11 + 189));
    assert!(asked > 6 && last_page(&bed) > 3 * HOUR);
    assert!(bed.settled.iter().all(|end| end.failure == Failure::RobotsDenied));
}

/// "There is none" is not a copy of a robots.txt; one that forbids nothing is.
#[test]
fn where_there_was_no_file_there_is_no_copy() {
    for (text, is_copy) in [(None, false), (Some(""), true)] {
        let mut bed = long_host(|_| ());
        let mut asked = 0;
        bed.run(24 * HOUR, 10_000, &mut |job| match job.kind {
            JobKind::Robots => {
                asked += 1;
                match text {
                    _ if asked > 1 => status(500),
                    Some(text) => robots(text),
                    None => status(404),
                }
            }
            _ => well(job),
        });
        assert_eq!(bed.settled.is_empty(), is_copy, "{text:?}");
        assert!(is_copy || last_page(&bed) <= HOUR, "{}", last_page(&bed));
    }
}

/// A file behind a redirect that has become unavailable: the copy is the origin's own.
#[test]
fn the_copy_is_kept_at_the_end_of_redirects() {
    let mut bed = long_host(|_| ());
    let mut asked = 0;
    bed.run(24 * HOUR, 10_000, &mut |job| match (job.kind, job.url.host()) {
        (JobKind::Robots, "a.test") => moved("http://b.test/rules.txt"),
        (JobKind::Robots, _) if job.url.path_and_query() == "/robots.txt" => status(404),
        (JobKind::Robots, _) => {
            asked += 1;
            if asked == 1 { robots(PRIVATE) } else { status(500) }
        }
        _ => well(job),
    });
    assert_eq!(bed.pages().len(), 300);
    assert!(bed.settled.len() == 300 && bed.settled.iter().all(|end| end.failure == Failure::RobotsDenied));
}

/// Copies count as memory for rules, and leave it first.
#[test]
fn copies_stay_within_the_memory_for_rules() {
    let mut bed = Bed::new(|config| {
        config.politeness.ip_delay = Duration::ZERO;
        config.robots.ram_bytes_max = 20_000;
        config.robots.ttl = Duration::from_secs(60);
    });
    let long: String = (0..20).map(|number| format!("Disallow: /private/{number}\n")).collect();
    let long = format!("User-agent: *\n{long}");
    // Rules, copies of them in use, and then rules of others.
    for (round, is_well, hosts) in [(0, true, 0..200), (1, false, 0..200), (2, true, 200..400)] {
        hosts.for_each(|number| bed.offer(&format!("http://h{number}.test/{round}")));
        bed.run(HOUR / 4, 2_000, &mut |job| match job.kind {
            JobKind::Robots if is_well => robots(&long),
            JobKind::Robots => status(500),
            _ => well(job),
        });
        assert!(bed.frontier.rules_bytes() <= 21_000, "{} bytes", bed.frontier.rules_bytes());
        bed.now = bed.now + Duration::from_secs(120);
    }
    assert!(bed.frontier.rules_bytes() > 5_000, "those that fit are kept");
}

/// The response determines the validity, between the floor and the ceiling.
#[test]
fn a_robots_txt_holds_as_long_as_it_says() {
    for (stated, every) in [(None, 4 * HOUR), (Some(2 * HOUR), 2 * HOUR), (Some(0), HOUR), (Some(24 * HOUR), 4 * HOUR)]
    {
        let mut bed = long_host(|config| {
            config.robots.ttl = Duration::from_secs(4 * HOUR);
            config.robots.ttl_min = Duration::from_secs(HOUR);
        });
        bed.run(24 * HOUR, 10_000, &mut |job| match job.kind {
            JobKind::Robots => {
                let fresh_for = stated.map(Duration::from_secs);
                Outcome::Fetched(Fetched { fresh_for, ..rules_of(PRIVATE) })
            }
            _ => well(job),
        });
        let times = robots_times(&bed);
        assert_eq!(times.len() as u64, 1 + 5 * HOUR / every, "{stated:?} {times:?}");
        assert!(times.windows(2).all(|pair| (every..every + 120).contains(&(pair[1] - pair[0]))), "{times:?}");
    }
}

/// Unused rules hold past their time for URLs that wait; not for a link that arrives weeks after the last URL has
/// ended.
#[test]
fn unused_rules_hold_no_longer_than_somebody_waits() {
    let mut bed = Bed::new(|config| config.politeness.host_delay = Duration::from_secs(60));
    bed.offer("http://a.test/private");
    bed.run(HOUR, 2, &mut |job| if job.kind == JobKind::Robots { robots("") } else { well(job) });
    assert_eq!((bed.count(JobKind::Robots), bed.count(JobKind::Page)), (1, 0));
    let rules = crate::scope::Rules::parse("rules", b"deny path=/private").expect("rules");
    bed.frontier.set_scope(Scope::default().with(Arc::new(rules), Arc::default()));
    bed.run(HOUR, 10, &mut well);
    assert!(bed.frontier.is_idle() && bed.settled.len() == 1);
    bed.frontier.set_scope(Scope::default());
    bed.now = bed.now + Duration::from_secs(20 * 24 * HOUR);
    bed.offer("http://a.test/private");
    bed.run(HOUR, 10, &mut |job| if job.kind == JobKind::Robots { robots(PRIVATE) } else { well(job) });
    assert_eq!((bed.count(JobKind::Robots), bed.count(JobKind::Page)), (2, 0));
}

#[test]
fn a_crawl_delay_that_is_too_long_is_capped_or_skipped() {
    for (above, asked, pages, ends) in [
        (CrawlDelayAbove::Cap, 61, 3, vec![Failure::RobotsDenied]),
        (CrawlDelayAbove::Skip, 60, 3, vec![Failure::RobotsDenied]),
        (
            CrawlDelayAbove::Skip,
            61,
            0,
            vec![
                Failure::CrawlDelayTooLong,
                Failure::CrawlDelayTooLong,
                Failure::RobotsDenied,
                Failure::CrawlDelayTooLong,
            ],
        ),
    ] {
        let mut bed = Bed::new(|config| config.politeness.crawl_delay_above = above);
        for path in ["1", "2", "private", "3"] {
            bed.offer(&format!("http://a.test/{path}"));
        }
        bed.run(HOUR, 1_000, &mut |job| match job.kind {
            JobKind::Robots => robots(&format!("{PRIVATE}Crawl-delay: {asked}\n")),
            _ => well(job),
        });
        assert_eq!(bed.count(JobKind::Page), pages);
        assert_eq!(bed.settled.iter().map(|end| end.failure).collect::<Vec<_>>(), ends);
        assert!(bed.frontier.is_idle());
        let requests = bed.jobs.iter().filter(|(_, job)| job.kind != JobKind::Resolve);
        let times: Vec<Instant> = requests.map(|(at, _)| *at).collect();
        assert!(times.windows(2).all(|pair| pair[1].since(pair[0]) >= Duration::from_secs(60)));
    }
}

/// What robots.txt says about the use of a page is attached to the page's request.
#[test]
fn a_page_is_told_what_robots_txt_says_about_its_use() {
    let mut bed = Bed::new(|_| ());
    ["a", "ab", "b"].iter().for_each(|path| bed.offer(&format!("http://a.test/{path}")));
    bed.run(HOUR, 1_000, &mut |job| match job.kind {
        JobKind::Robots => robots("User-agent: *\nContent-Usage: /a train-ai=n\nContent-Usage: /ab search=n\n"),
        _ => well(job),
    });
    let said = bed
        .jobs
        .iter()
        .filter(|(_, job)| job.kind == JobKind::Page)
        .map(|(_, job)| job.usage.as_ref().map(|usage| usage.preferences.to_label()).unwrap_or_default());
    assert_eq!(said.collect::<Vec<_>>(), ["train-ai=n", "search=n", ""]);
}
