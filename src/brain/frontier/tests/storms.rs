//! Servers that complain of too many requests, and the cost of that.

use super::kind_rests::pages_beside;
use super::*;

/// A crawler that obeyed Retry-After for at most two minutes made 3,222 requests in one storm.
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

/// A host that complains forever is given up like one that fails forever, after six hours, and each of its URLs ends.
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

/// Limiters let some requests through: a host that gets too many requests must get fewer.
#[test]
fn limiters_that_let_some_through_are_asked_less_and_less() {
    limiters_refuse_few(false);
    // Only strangers link to half of the URLs.
    limiters_refuse_few(true);
}

fn limiters_refuse_few(with_strangers: bool) {
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
    let limiters: [(&mut dyn FnMut(Instant) -> bool, usize); 2] = [(&mut window, 65), (&mut third, 100)];
    for (refuses, refused_max) in limiters {
        let mut bed = Bed::new(|_| ());
        for number in 0..1_000 {
            if with_strangers && number % 2 == 0 {
                bed.offer_of_strangers(&format!("http://a.test/{number}"));
            } else {
                bed.offer(&format!("http://a.test/{number}"));
            }
        }
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
        assert!(refused <= refused_max && pages < 2_000, "{refused} of {pages} in an hour, {with_strangers}");
        bed.run(100 * HOUR, 10_000, &mut well);
        assert_eq!((bed.frontier.is_idle(), bed.settled.len()), (true, 0));
    }
}

/// One page that is broken in this way costs its own attempts, and a rest each time, but no longer delays.
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

/// A URL that draws complaints forever ends, also when it follows another such URL.
#[test]
fn one_url_makes_no_storm_however_late_it_comes() {
    let mut bed = Bed::new(|_| ());
    for number in 0..3 {
        bed.offer(&format!("http://a.test/{number}"));
        bed.run(100 * HOUR, 100, &mut |job| if job.kind == JobKind::Page { status(429) } else { well(job) });
        assert!(bed.frontier.is_idle() && bed.frontier.queued() == 0, "{number}");
    }
    assert_eq!(bed.count(JobKind::Page), 3 * 5, "a few in a row have their own tries");
}

/// All of a host's origins have odd ports: the one that answers most speaks for it.
#[test]
fn another_port_of_a_host_of_odd_ports_has_a_crawl_delay_of_its_own() {
    let mut bed = Bed::new(|_| ());
    (0..20).for_each(|number| bed.offer(&format!("http://a.test:8080/{number}")));
    let mut answer = |job: &FetchJob| match (job.kind, job.url.port()) {
        (JobKind::Robots, 8081) => robots("User-agent: *\nCrawl-delay: 60"),
        _ => well(job),
    };
    bed.run(10, 1_000, &mut answer);
    (0..3).for_each(|number| bed.offer(&format!("http://a.test:8081/{number}")));
    (20..400).for_each(|number| bed.offer(&format!("http://a.test:8080/{number}")));
    bed.run(200, 1_000, &mut answer);
    let of = |port| bed.jobs.iter().filter(|(_, job)| job.kind == JobKind::Page && job.url.port() == port).count();
    assert!(of(8080) >= 195 && (2..=3).contains(&of(8081)), "{} and {}", of(8080), of(8081));
}

/// It had good answers, and then nothing works for two hours: that is the host, and no URL is to blame.
#[test]
fn maintenance_loses_nothing() {
    for how in [status(503), status(429), Outcome::Failed(Failure::Reset), Outcome::Failed(Failure::FirstByteTimeout)] {
        let mut bed = Bed::new(|config| config.politeness.host_failures_max = 1_000);
        bed.offer("http://a.test/");
        bed.run(20, 1_000, &mut well);
        (0..30).for_each(|number| bed.offer(&format!("http://a.test/product/{number}")));
        (0..9).for_each(|number| bed.offer(&format!("http://a.test/{}", "section/".repeat(number + 1))));
        let (begins, ends) = (bed.now, bed.now + Duration::from_secs(2 * HOUR));
        bed.run(30 * HOUR, 5_000, &mut |job| match job.kind {
            JobKind::Page if job.began < ends => how.clone(),
            _ => well(job),
        });
        let during =
            bed.jobs.iter().filter(|(at, job)| job.kind == JobKind::Page && *at >= begins && *at < ends).count();
        let fetched: std::collections::BTreeSet<&str> = bed.pages().into_iter().collect();
        assert!(bed.frontier.is_idle(), "{how:?}");
        if let Outcome::Fetched(_) = how {
            assert_eq!(
                (fetched.len(), bed.count(JobKind::Page) - during),
                (40, 39 + 1),
                "{how:?}: each comes in the end"
            );
            assert!(during <= 40, "{during} requests in two hours of {how:?}");
        }
    }
}

/// Its database is under maintenance for two hours; pages that need none are answered meanwhile.
#[test]
fn maintenance_of_a_part_loses_nothing() {
    let mut bed = Bed::new(|_| ());
    bed.offer("http://a.test/");
    bed.offer("http://a.test/product?item=0");
    bed.run(20, 1_000, &mut well);
    (1..60).for_each(|number| bed.offer(&format!("http://a.test/product?item={number}")));
    (0..10_000).for_each(|number| bed.offer(&format!("http://a.test/page/{number}")));
    let (begins, ends) = (bed.now, bed.now + Duration::from_secs(2 * HOUR));
    bed.run(30 * HOUR, 20_000, &mut |job| match job.kind {
        JobKind::Page if job.url.path_and_query().starts_with("/product") && job.began < ends => status(503),
        _ => well(job),
    });
    let of_part = |job: &FetchJob| job.url.path_and_query().starts_with("/product");
    let during = bed.jobs.iter().filter(|(at, job)| of_part(job) && *at >= begins && *at < ends).count();
    let in_the_end: std::collections::BTreeSet<&str> =
        bed.jobs.iter().filter(|(at, job)| of_part(job) && *at >= ends).map(|(_, job)| job.url.as_str()).collect();
    assert!((1..=20).contains(&during), "{during} requests in two hours");
    assert_eq!(in_the_end.len(), 59, "each comes in the end");
    let others = bed.jobs.iter().filter(|(at, job)| !of_part(job) && *at >= begins && *at < ends).count();
    assert!(others > 6_500, "{others} of others meanwhile");
}

/// A part that never worked before does not work for ten minutes. Only strangers link to it, as to a host that is new.
#[test]
fn a_part_that_starts_again_loses_no_page_of_strangers() {
    for how in [status(500), status(502), Outcome::Failed(Failure::FirstByteTimeout)] {
        let mut bed = Bed::new(|_| ());
        (0..2_000).for_each(|number| bed.offer(&format!("http://a.test/page/{number}")));
        bed.run(20, 1_000, &mut well);
        (0..60).for_each(|number| bed.offer_of_strangers(&format!("http://a.test/product?item={number}")));
        let ends = bed.now + Duration::from_secs(590);
        let is_of_part = |job: &FetchJob| job.url.path_and_query().starts_with("/product");
        bed.run(30 * HOUR, 20_000, &mut |job| {
            if is_of_part(job) && job.began < ends { how.clone() } else { well(job) }
        });
        let had = bed.jobs.iter().filter(|(at, job)| is_of_part(job) && *at >= ends);
        let had: std::collections::BTreeSet<&str> = had.map(|(_, job)| job.url.as_str()).collect();
        assert_eq!(had.len(), 60, "{how:?}: each comes in the end");
    }
}

/// A part that worked once and never does again: after six hours its URLs end, and so does the crawl. Other URLs that
/// are put off with it for ten seconds do not wait for it.
#[test]
fn a_part_that_never_comes_back_ends() {
    let mut bed = Bed::new(|_| ());
    ["", "search?q=0", "product/0"].iter().for_each(|path| bed.offer(&format!("http://a.test/{path}")));
    bed.run(20, 1_000, &mut well);
    (1..300).for_each(|number| bed.offer(&format!("http://a.test/search?q={number}")));
    (1..300).for_each(|number| bed.offer(&format!("http://a.test/product/{number}")));
    (0..30_000).for_each(|number| bed.offer(&format!("http://a.test/page/{number}")));
    let (mut has_complained, begins) = (false, bed.now);
    bed.run(12 * HOUR, 40_000, &mut |job| match job.url.path_and_query() {
        path if path.starts_with("/search") => status(503),
        path if path.starts_with("/product") && !std::mem::replace(&mut has_complained, true) => status(503),
        _ => well(job),
    });
    assert!(bed.frontier.is_idle() && bed.frontier.queued() == 0);
    let of = |part: &str| -> Vec<Instant> {
        let of_part = |job: &FetchJob| job.kind == JobKind::Page && job.url.path_and_query().starts_with(part);
        bed.jobs.iter().filter(|(_, job)| of_part(job)).map(|(at, _)| *at).collect()
    };
    let (searches, products) = (of("/search"), of("/product"));
    assert!((30..=60).contains(&searches.len()), "{} requests", searches.len());
    assert!(bed.settled.iter().all(|settled| settled.failure == Failure::HostDead));
    assert!(bed.settled.len() >= 250, "{} ended without a request", bed.settled.len());
    assert_eq!(products.len(), 301, "one of them twice");
    let last = products.last().map_or(Instant::ZERO, |at| *at);
    assert!(last.since(begins) < Duration::from_secs(2_000), "{:?}", last.since(begins));
}

/// A million URLs of one kind. One of them complains now and then: they do not all move from queue to queue each
/// time.
#[test]
fn a_long_queue_is_not_looked_through() {
    let mut bed = Bed::new(|_| ());
    bed.offer("http://a.test/");
    (0..50_000).for_each(|number| bed.offer(&format!("http://a.test/page/{number}")));
    let mut count = 0;
    bed.run(HOUR, 700, &mut |job| {
        count += usize::from(job.kind == JobKind::Page);
        if job.kind == JobKind::Page && count.is_multiple_of(200) { status(500) } else { well(job) }
    });
    assert!(count >= 690, "{count} requests");
    assert!(bed.frontier.hosts.iter().any(|host| host.backlog.has_queued()), "all were moved");
}

/// It refuses every twentieth request, of any part, and names no time: it is queried less and less.
#[test]
fn a_limiter_that_refuses_few_is_the_hosts() {
    let mut bed = Bed::new(|_| ());
    bed.offer("http://a.test/");
    (0..30).for_each(|number| bed.offer(&format!("http://a.test/{}", "part/".repeat(number + 1))));
    bed.run(60, 1_000, &mut well);
    (0..9_000).for_each(|number| bed.offer(&format!("http://a.test/{}{number}", "part/".repeat(number % 30 + 1))));
    let mut count = 0;
    bed.run(HOUR, 10_000, &mut |job| {
        count += usize::from(job.kind == JobKind::Page);
        if job.kind == JobKind::Page && count.is_multiple_of(20) { status(503) } else { well(job) }
    });
    assert!(count < 1_800, "{count} requests in an hour");
}

/// The Crawl-delay in an odd port's robots.txt is obeyed from the first page on, for that port alone, and noted for
/// the next run.
#[test]
fn the_crawl_delay_of_an_odd_port_is_its_own() {
    let mut bed = Bed::new(|_| ());
    bed.offer("http://a.test/");
    (0..5).for_each(|number| bed.offer(&format!("http://a.test:8080/{number}")));
    (0..200).for_each(|number| bed.offer(&format!("http://a.test/{number}")));
    let mut answer = |job: &FetchJob| match (job.kind, job.url.port()) {
        (JobKind::Robots, 8080) => robots("User-agent: *\nCrawl-delay: 60"),
        _ => well(job),
    };
    bed.run(400, 1_000, &mut answer);
    let noted = bed.frontier.take_rests().map(|rest| rest.crawl_delay).max();
    assert_eq!(noted, Some(Duration::from_secs(60)));
    let of = |bed: &Bed, port| -> Vec<u64> {
        let asked = bed.jobs.iter().filter(|(_, job)| job.kind != JobKind::Resolve && job.url.port() == port);
        asked.map(|(at, _)| at.as_nanos() / 1_000_000).collect()
    };
    let odd = of(&bed, 8080);
    assert!(odd.len() >= 5 && odd.windows(2).all(|pair| pair[1] - pair[0] >= 60_000), "{odd:?}");
    assert!(of(&bed, 80).len() >= 190, "{:?}", of(&bed, 80).len());
}

/// A host that has nothing but an odd port, whose every complaint names a time, is a host that complains.
#[test]
fn an_odd_port_without_others_speaks_for_its_host() {
    let mut bed = Bed::new(|_| ());
    (0..30).for_each(|number| bed.offer(&format!("http://a.test:8080/{number}")));
    let ends = Instant::ZERO + Duration::from_secs(HOUR);
    bed.run(20 * HOUR, 5_000, &mut |job| match job.kind {
        JobKind::Page if job.began < ends => {
            Outcome::Fetched(Fetched { status: 503, retry_after: Some(Duration::from_secs(1)), ..Fetched::default() })
        }
        _ => well(job),
    });
    let during = bed.jobs.iter().filter(|(at, job)| job.kind == JobKind::Page && *at < ends).count();
    let fetched: std::collections::BTreeSet<&str> = bed.pages().into_iter().collect();
    assert_eq!((fetched.len(), bed.count(JobKind::Page) - during, bed.settled.len()), (30, 30, 0));
    assert!(during <= 40, "{during} requests in an hour");
}

/// Another port of the host asks to be left alone for a day: it is, and the host continues.
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
    let noted: Vec<Rest> = bed.frontier.take_rests().filter(|rest| rest.until > Instant::ZERO).collect();
    assert_eq!(noted.iter().map(|rest| &*rest.host).collect::<Vec<_>>(), ["http://a.test:8080/"], "for the next run");
    let mut next = Bed::new(|_| ());
    noted.iter().for_each(|rest| next.frontier.rest(next.now, rest));
    ["http://a.test/", "http://a.test/1", "http://a.test:8080/1"].iter().for_each(|url| next.offer(url));
    next.run(HOUR, 1_000, &mut well);
    assert_eq!(next.pages(), ["http://a.test/", "http://a.test/1"], "the host goes on in the next run, too");
    next.run(25 * HOUR, 1_000, &mut well);
    assert_eq!(next.pages().len(), 3);
    let odd = bed.jobs.iter().filter(|(_, job)| job.kind == JobKind::Page && job.url.port() == 8080).count();
    assert_eq!((odd, bed.frontier.queued()), (1, 2), "it is left alone");
    // If hosts are on several shards, these do not know its origins: the whole host rests.
    for shares_hosts in [false, true] {
        let mut next = Bed::new(|_| ());
        next.frontier.settings.shares_hosts = shares_hosts;
        noted.iter().for_each(|rest| next.frontier.rest(next.now, rest));
        next.frontier.settings.shares_hosts = true;
        let key = next.frontier.settings.host_key("a.test").expect("a key");
        let hold_until = next.now + Duration::from_secs(1);
        assert_eq!(next.frontier.ledger.claim(key, next.now, hold_until).is_err(), shares_hosts);
    }
}

/// Seconds between two requests to `path`, which always answers this, of a host that has answered a page before and
/// where nothing else waits for long.
fn gaps_of(path: &str, others: u32, answer: &Outcome) -> Vec<u64> {
    let mut bed = Bed::new(|_| ());
    bed.offer("http://a.test/");
    bed.run(20, 1_000, &mut well);
    (0..others).for_each(|number| bed.offer(&format!("http://a.test/script{number}x/y?q=1")));
    bed.offer(&format!("http://a.test/{path}"));
    bed.run(HOUR, 1_000, &mut |job| if job.kind == JobKind::Page { answer.clone() } else { well(job) });
    let of_path = bed.jobs.iter().filter(|(_, job)| job.kind == JobKind::Page && job.url.as_str().ends_with(path));
    let at: Vec<Instant> = of_path.map(|(at, _)| *at).collect();
    at.windows(2).map(|two| two[1].since(two[0]).as_secs()).collect()
}

/// The end of a doubt is no reason to retry a failed URL sooner.
#[test]
fn what_failed_is_tried_no_sooner_than_its_retry_waits() {
    for others in [0, 1, 3] {
        for answer in [status(500), status(503), Outcome::Failed(Failure::Reset)] {
            let gaps = gaps_of("broken?x=1", others, &answer);
            let doubles = gaps.iter().zip([10, 20, 40, 80]).all(|(gap, wait)| *gap >= wait);
            assert!(!gaps.is_empty() && doubles, "{gaps:?} beside {others} of {answer:?}");
        }
    }
}
