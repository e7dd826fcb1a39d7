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
        assert!(bed.frontier.robots.rules_bytes() <= 21_000, "{} bytes", bed.frontier.robots.rules_bytes());
        bed.now = bed.now + Duration::from_secs(120);
    }
    assert!(bed.frontier.robots.rules_bytes() > 5_000, "those that fit are kept");
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

/// Each host's robots.txt redirects to the next host's, forever.
#[test]
fn a_row_of_moved_robots_ends() {
    let mut bed = Bed::new(|config| {
        (config.politeness.site_delay, config.politeness.ip_delay) = (Duration::ZERO, Duration::ZERO)
    });
    bed.offer("http://h0.site.test/");
    let mut trap = |job: &FetchJob| match job.kind {
        JobKind::Robots => {
            let number: u64 = job.url.host()[1..].split('.').next().and_then(|number| number.parse().ok()).unwrap();
            moved(&format!("http://h{}.site.test/robots.txt", number + 1))
        }
        _ => well(job),
    };
    bed.run(24 * HOUR, 10_000, &mut trap);
    assert!(bed.frontier.is_idle(), "{} jobs and no end", bed.jobs.len());
    assert_eq!(bed.pages(), ["http://h0.site.test/"]);
    assert!(bed.frontier.hosts() < 10, "{} hosts", bed.frontier.hosts());
    // Hosts along the chain that have pages of their own continue by themselves.
    (0..300).for_each(|number| bed.offer(&format!("http://h{number}.site.test/x")));
    bed.run(24 * HOUR, 10_000, &mut trap);
    assert!(bed.frontier.is_idle());
    assert_eq!(bed.count(JobKind::Page), 301);
    assert!(bed.frontier.hosts() < 310, "{} hosts", bed.frontier.hosts());
}

/// One host knows the rules in the end: every host redirected there within five hops obeys them.
#[test]
fn a_row_of_moved_robots_leads_somewhere() {
    let mut bed = Bed::new(|_| ());
    (0..9).for_each(|number| bed.offer(&format!("http://h{number}.site.test/private")));
    bed.run(24 * HOUR, 10_000, &mut |job| match (job.kind, job.url.host().as_bytes()[1]) {
        (JobKind::Robots, b'8') => robots("User-agent: *\nDisallow: /private"),
        (JobKind::Robots, number) => moved(&format!("http://h{}.site.test/robots.txt", number - b'0' + 1)),
        _ => well(job),
    });
    assert!(bed.frontier.is_idle());
    // 8 redirects, 7 and 6 are too many: "as if there were no robots.txt".
    let mut pages = bed.pages();
    pages.sort_unstable();
    assert_eq!(pages, [0, 1, 2].map(|number| format!("http://h{number}.site.test/private")));
}

#[test]
fn robots_in_a_circle_end() {
    for hosts in 1..12 {
        let mut bed = Bed::new(|_| ());
        (0..hosts).for_each(|number| bed.offer(&format!("http://h{number}.site.test/")));
        bed.run(24 * HOUR, 10_000, &mut |job| match job.kind {
            JobKind::Robots => {
                let number: u64 = job.url.host()[1..].split('.').next().and_then(|text| text.parse().ok()).unwrap();
                moved(&format!("http://h{}.site.test/robots.txt", (number + 1) % hosts))
            }
            _ => well(job),
        });
        assert!(bed.frontier.is_idle(), "{hosts} hosts");
        // A longer circle is a chain that is too long: as if there were no robots.txt.
        let pages = if hosts <= 6 { 0 } else { hosts as usize };
        assert_eq!(bed.count(JobKind::Page), pages, "{hosts} hosts");
        // Once more, and four times as after other failures, each along the whole chain.
        let asked = bed.count(JobKind::Robots);
        assert!(asked <= 6 * (hosts * hosts) as usize, "{hosts} hosts: {asked}");
    }
}

/// RFC 6265: a server may redirect a client in circles until it returns a cookie.
#[test]
fn robots_that_come_back_to_their_start_are_asked_once_more_at_once() {
    for (way, bounces, pages) in [
        (&["/robots.txt"][..], 1, 1),
        (&["/check", "/robots.txt"], 1, 1),
        (&["/check", "/on", "/robots.txt"], 1, 1),
        (&["/robots.txt"], 2, 1),
        (&["/check", "/robots.txt"], 5, 1),
        (&["/check", "/robots.txt"], 6, 0),
        (&["/check", "/on", "/check"], 9, 0),
        (&["/check", "/check"], 9, 0),
    ] {
        let mut bed = Bed::new(|_| ());
        let mut bounced = 0;
        bed.offer("http://a.test/open");
        bed.offer("http://a.test/private");
        bed.run(12 * HOUR, 100, &mut |job| match job.kind {
            JobKind::Robots => match job.url.path_and_query() {
                "/robots.txt" if bounced >= bounces => robots("User-agent: *\nDisallow: /private"),
                "/robots.txt" => {
                    bounced += 1;
                    moved(&format!("http://a.test{}", way[0]))
                }
                path => {
                    let step = way.iter().position(|step| *step == path).expect("a step of the way");
                    moved(&format!("http://a.test{}", way[(step + 1) % way.len()]))
                }
            },
            _ => well(job),
        });
        assert!(bed.frontier.is_idle(), "{way:?}");
        assert_eq!(bed.pages().len(), pages, "{way:?}, {bounces}: {:?}", bed.pages());
        assert!(bounced <= 6, "{way:?}: {bounced}");
        // At once because of a cookie, and then no sooner than after another failure.
        let robots: Vec<Instant> = bed
            .jobs
            .iter()
            .filter(|(_, job)| job.kind == JobKind::Robots && job.url.path_and_query() == "/robots.txt")
            .map(|(at, _)| *at)
            .collect();
        assert!(robots.windows(2).skip(1).all(|pair| pair[1].since(pair[0]) >= Duration::from_secs(600)), "{robots:?}");
    }
}
