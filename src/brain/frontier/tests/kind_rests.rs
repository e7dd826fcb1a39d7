//! Parts of a host that fail, hang or complain: they rest alone, and cost little.

use super::*;

/// Pages of a host fetched in ten minutes while `others`, which are answered like this, are requested as well; the
/// requests to these are few.
pub(super) fn pages_beside(others: &[String], answer: impl Fn(&Url) -> Outcome) -> usize {
    pages_beside_those(others, Hops::default(), answer).0
}

/// The same, and the requests to the others, with links of this kind.
fn pages_beside_those(others: &[String], hops: Hops, answer: impl Fn(&Url) -> Outcome) -> (usize, usize) {
    let mut bed = Bed::new(|_| ());
    bed.offer("http://a.test/");
    bed.run(20, 1_000, &mut well);
    let depth = hops.bits();
    for url in others {
        let url = Url::parse(url).expect("a URL");
        let (site, ticket) = (SiteKey::of_host(7, url.host()), Ticket { depth, ..bed.ticket() });
        bed.frontier.offer(bed.now, &url, site, ticket, &mut bed.spool);
    }
    (0..1_000).for_each(|number| bed.offer(&format!("http://a.test/page/{number}")));
    bed.run(600, 10_000, &mut |job| match job.kind {
        _ if others.iter().any(|url| url == job.url.as_str()) => answer(&job.url),
        JobKind::Page => well(job),
        _ => well(job),
    });
    let of_others = bed.pages().into_iter().filter(|asked| others.iter().any(|url| url == asked)).count();
    (bed.pages().into_iter().filter(|url| url.contains("/page/")).count(), of_others)
}

/// Anyone may link to a broken script of a host forty times, or four hundred.
#[test]
fn a_broken_script_rests_alone() {
    let alone = pages_beside(&[], |_| status(503));
    for count in [1, 40, 400] {
        let scripts: Vec<String> = (0..count).map(|number| format!("http://a.test/cgi?{number}")).collect();
        for hops in [Hops::default(), Hops::default().deferred()] {
            let (beside, asked) = pages_beside_those(&scripts, hops, |_| status(503));
            assert!(beside * 10 >= alone * 8, "{beside} beside {count} links, {alone} alone");
            // It rests for 20, 40, and then 80 seconds.
            assert!(
                (1..=12).contains(&asked),
                "{asked} requests to one script that always complains, by {count} links"
            );
        }
    }
    // A limiter that affects every other URL is the host's.
    let all: Vec<String> = (0..400).map(|number| format!("http://a.test/page/{}", 2 * number)).collect();
    let limited = pages_beside(&all, |_| status(503));
    assert!(limited * 4 < alone, "{limited} of {alone}");
}

/// A script that worked once, and complains about everything that strangers link to, with a short Retry-After or
/// none; also one whose URLs look like the host's good ones.
#[test]
fn a_few_links_to_a_broken_script_hold_up_no_other_url() {
    // Four in a row that look like all others are an overload until the next page arrives: 150 seconds of rest, once.
    for (broken, pages, tenths) in [("product?item=", "page/", 8), ("b", "m", 6)] {
        for retry_after in [None, Some(0), Some(1)] {
            for links in [1, 3, 4] {
                let had = |links: u32| {
                    let mut bed = Bed::new(|_| ());
                    bed.offer("http://a.test/");
                    bed.offer(&format!("http://a.test/{broken}once"));
                    bed.run(20, 1_000, &mut well);
                    (0..links).for_each(|number| bed.offer(&format!("http://a.test/{broken}{number}")));
                    (0..1_000).for_each(|number| bed.offer(&format!("http://a.test/{pages}{number}")));
                    bed.run(600, 10_000, &mut |job| match job.kind {
                        JobKind::Page if job.url.path_and_query().starts_with(&format!("/{broken}")) => {
                            let retry_after = retry_after.map(Duration::from_secs);
                            Outcome::Fetched(Fetched { status: 503, retry_after, ..Fetched::default() })
                        }
                        _ => well(job),
                    });
                    let prefix = format!("http://a.test/{pages}");
                    bed.pages().into_iter().filter(|url| url.starts_with(&prefix)).count()
                };
                let (alone, beside) = (had(0), had(links));
                assert!(
                    beside * 10 >= alone * tenths,
                    "{beside} of {alone} beside {links} links to {broken}, Retry-After {retry_after:?}"
                );
            }
        }
    }
}

/// Endless streams to which strangers link: a page that is cut after half a minute holds up its kind.
#[test]
fn pages_that_never_end_rest_with_their_kind() {
    let had = |links: u32| {
        let mut bed = Bed::new(|_| ());
        bed.offer("http://a.test/");
        bed.run(20, 1_000, &mut well);
        (0..links).for_each(|number| bed.offer(&format!("http://a.test/live?stream={number}")));
        (0..2_000).for_each(|number| bed.offer(&format!("http://a.test/page/{number}")));
        bed.run(900, 10_000, &mut |job| match job.kind {
            JobKind::Page if job.url.path_and_query().starts_with("/live") => {
                Outcome::Fetched(Fetched { status: 200, truncated: Some(Truncated::Time), ..Fetched::default() })
            }
            _ => well(job),
        });
        bed.pages().into_iter().filter(|url| url.contains("/page/")).count()
    };
    let alone = had(0);
    for links in [1, 40] {
        let beside = had(links);
        assert!(beside * 10 >= alone * 7, "{beside} of {alone} beside {links} links");
    }
    // A host that is slow itself is not queried sooner because of that.
    let mut bed = Bed::new(|_| ());
    bed.offer("http://drip.test/");
    (0..20).for_each(|number| bed.offer(&format!("http://drip.test/page/{number}")));
    bed.run(200, 1_000, &mut well);
    bed.offer("http://drip.test/live?stream=1");
    bed.run(600, 10_000, &mut |job| match job.url.path_and_query() {
        "/live?stream=1" => {
            Outcome::Fetched(Fetched { status: 200, truncated: Some(Truncated::Time), ..Fetched::default() })
        }
        _ => well(job),
    });
    let pages: Vec<Instant> = bed.jobs.iter().filter(|(_, job)| job.kind == JobKind::Page).map(|(at, _)| *at).collect();
    assert_eq!(pages.len(), 22);
    let gap = pages.windows(2).skip(2).map(|two| two[1].since(two[0])).min();
    assert!(gap >= Some(Duration::from_secs(30)), "10 s a page, and twice that between two: {gap:?}");
}

/// A host's delay grows with its last response time: links to its most expensive script would hold up everything
/// else.
#[test]
fn slow_pages_that_strangers_link_to_have_a_tenth_of_the_time() {
    let had = |links: u32, are_strangers: bool| {
        let mut bed = Bed::new(|_| ());
        bed.offer("http://a.test/");
        bed.run(20, 1_000, &mut well);
        for url in (0..links).map(|number| format!("http://a.test/slow{number}/report")) {
            if are_strangers { bed.offer_of_strangers(&url) } else { bed.offer(&url) }
        }
        (0..2_000).for_each(|number| bed.offer(&format!("http://a.test/page/{number}")));
        bed.run(1_200, 10_000, &mut well);
        let requests: Vec<_> = bed.jobs.iter().filter(|(_, job)| job.kind != JobKind::Resolve).collect();
        let slow = requests.windows(2).filter(|two| two[0].1.url.path_and_query().starts_with("/slow"));
        let soonest = slow.map(|two| two[1].0.since(two[0].0)).min();
        assert!(
            soonest.is_none_or(|gap| gap >= Duration::from_secs(50)),
            "20 s, and politeness.response_delay_max: {soonest:?}"
        );
        bed.pages().into_iter().filter(|url| url.contains("/page/")).count()
    };
    let alone = had(0, true);
    for links in [1, 5, 40] {
        let beside = had(links, true);
        assert!(beside * 10 >= alone * 8, "{beside} of {alone} beside {links} links");
    }
    // Links of a site to itself are its own affair.
    assert!(had(40, false) * 2 < alone);
}

/// Links to pages that never worked, under one path or as many as there are links: they complain, hang, or fail at
/// once or after twenty seconds.
#[test]
fn what_never_worked_has_a_tenth_of_the_time() {
    let word = |number: u32| -> String { number.to_string().bytes().map(|digit| char::from(digit + b'1')).collect() };
    let had = |links: u32, path: &dyn Fn(u32) -> String, answer: &Outcome| {
        let mut bed = Bed::new(|_| ());
        ["", "page/0"].iter().for_each(|path| bed.offer(&format!("http://a.test/{path}")));
        bed.run(20, 1_000, &mut well);
        (0..links).for_each(|number| bed.offer(&format!("http://a.test/{}", path(number))));
        (1..1_000).for_each(|number| bed.offer(&format!("http://a.test/page/{number}")));
        bed.run(600, 10_000, &mut |job| match job.kind {
            JobKind::Page if !job.url.path_and_query().starts_with("/page/") => answer.clone(),
            _ => well(job),
        });
        let (pages, others): (Vec<_>, Vec<_>) = bed.pages().into_iter().partition(|url| url.contains("/page/"));
        (pages.len(), others.len())
    };
    let spelt = |number: u32| format!("{}/x", word(number));
    let hang = Outcome::Failed(Failure::FirstByteTimeout);
    let (alone, _) = had(0, &spelt, &hang);
    let live = |number: u32| format!("live/{}/x", word(number));
    for (links, path, answer) in [
        (60, &spelt as &dyn Fn(u32) -> String, status(503)),
        (60, &spelt, status(500)),
        (3, &live, hang.clone()),
        (40, &live, hang.clone()),
        (40, &|number| format!("live?{number}"), hang.clone()),
        (1, &|_| "live".to_owned(), status(500)),
        (3, &live, status(502)),
        (40, &|number| format!("script?{number}"), status(500)),
    ] {
        let (beside, asked) = had(links, path, &answer);
        let what = format!("{links} links such as {}, {answer:?}", path(1));
        assert!(beside * 10 >= alone * 8, "{beside} of {alone} beside {what}: {asked} requests");
        assert!(asked >= 2, "{what}");
    }
}

/// If most of a host is unknown as well, the working pages are still found.
#[test]
fn scripts_that_hang_are_left_for_what_is_unknown() {
    let had = |links: u32| {
        let mut bed = Bed::new(|_| ());
        bed.offer("http://a.test/");
        (0..30).for_each(|number| bed.offer(&format!("http://a.test/{}", "part/".repeat(number + 1))));
        bed.run(60, 1_000, &mut well);
        (0..links).for_each(|number| {
            let path: String = number.to_string().bytes().map(|digit| char::from(digit + b'1')).collect();
            bed.offer(&format!("http://a.test/live/x{path}/{path}y?1"));
        });
        (0..2_000).for_each(|number| bed.offer(&format!("http://a.test/{}{number}", "part/".repeat(number % 30 + 1))));
        bed.run(1_800, 10_000, &mut |job| match job.url.path_and_query() {
            path if path.starts_with("/live") => Outcome::Failed(Failure::FirstByteTimeout),
            _ => well(job),
        });
        bed.pages().into_iter().filter(|url| !url.contains("/live/")).count()
    };
    let alone = had(0);
    for (links, tenths) in [(1, 9), (8, 8), (40, 6)] {
        let beside = had(links);
        assert!(beside * 10 >= alone * tenths, "{beside} of {alone} beside {links} links");
    }
}

/// A script that was broken, and works again, gets all its attempts the next time.
#[test]
fn a_mended_script_is_asked_again_like_others() {
    let mut bed = Bed::new(|_| ());
    bed.offer("http://a.test/");
    (0..400).for_each(|number| bed.offer(&format!("http://a.test/page/{number}")));
    (0..30).for_each(|number| bed.offer(&format!("http://a.test/product/{number}")));
    let broken = |job: &FetchJob| job.kind == JobKind::Page && job.url.path_and_query().starts_with("/product");
    let mended = Instant::ZERO + Duration::from_secs(1_200);
    bed.run(30 * HOUR, 5_000, &mut |job| if broken(job) && job.began < mended { status(503) } else { well(job) });
    let over = bed.count(JobKind::Page);
    bed.offer("http://a.test/product/next");
    bed.offer("http://a.test/product/99");
    let mut complaints = 0;
    bed.run(HOUR, 100, &mut |job| {
        complaints += usize::from(broken(job));
        if broken(job) && complaints <= 2 { status(503) } else { well(job) }
    });
    assert_eq!(bed.count(JobKind::Page) - over, 4, "each has another try");
}

/// URLs that their page advised against get a small share of the turns, also after their kind has rested.
#[test]
fn what_rested_goes_before_none_that_it_stood_behind() {
    let mut bed = Bed::new(|_| ());
    bed.offer("http://a.test/");
    bed.offer("http://a.test/list?filter=0");
    bed.run(20, 1_000, &mut well);
    let depth = Hops::default().link().deferred().bits();
    for number in 1..3_000 {
        let url = Url::parse(&format!("http://a.test/list?filter={number}")).expect("a URL");
        let ticket = Ticket { depth, ..bed.ticket() };
        bed.frontier.offer(bed.now, &url, SiteKey::of_host(7, url.host()), ticket, &mut bed.spool);
    }
    (0..3_000).for_each(|number| bed.offer(&format!("http://a.test/page/{number}")));
    let mut complaints = 0;
    bed.run(1_000, 10_000, &mut |job| {
        let is_list = job.kind == JobKind::Page && job.url.path_and_query().starts_with("/list");
        if is_list && complaints < 2 {
            complaints += 1;
            return status(503);
        }
        well(job)
    });
    let pages = bed.pages().into_iter().filter(|url| url.contains("/page/")).count();
    assert!(complaints == 2 && pages > 600, "{pages} pages in 1,000 s, {complaints} complaints");
}

/// Ten thousand URLs of a resting kind: they are examined now and then, and others behind them get their turns.
#[test]
fn a_kind_that_rests_costs_little_however_many_wait() {
    let mut bed = Bed::new(|_| ());
    bed.offer("http://a.test/");
    bed.offer("http://a.test/list?item=0");
    bed.run(20, 1_000, &mut well);
    (1..10_000).for_each(|number| bed.offer(&format!("http://a.test/list?item={number}")));
    (0..500).for_each(|number| bed.offer(&format!("http://a.test/page/{number}")));
    let (begins, mut first_page) = (bed.now, None);
    bed.run(HOUR, 2_000, &mut |job| match job.url.path_and_query() {
        path if path.starts_with("/list") => status(503),
        path => {
            if path.starts_with("/page") {
                first_page.get_or_insert(job.began);
            }
            well(job)
        }
    });
    let pages = bed.pages().into_iter().filter(|url| url.contains("/page/")).count();
    let first_page = first_page.map(|at| at.since(begins).as_secs());
    assert!(pages == 500 && first_page.is_some_and(|seconds| seconds < 120), "{pages} pages, from {first_page:?} s on");
}

/// Words to which only strangers link, next to the host's pages: 503 for each of them does not make a limiter,
/// although they look alike and the host is hardly known.
#[test]
fn words_that_look_like_the_hosts_own_pages_are_another_kind() {
    let mut bed = Bed::new(|config| config.politeness.slow_start = 2);
    bed.offer("http://a.test/home");
    bed.run(3, 1_000, &mut well);
    let word = |number: u32| -> String {
        [number / 26, number % 26].map(|letter| char::from(b'a' + letter as u8)).iter().collect()
    };
    // Some of them do not exist, which does not make the rest a limiter.
    (0..60).for_each(|number| bed.offer_of_strangers(&format!("http://a.test/{}", word(number))));
    (100..600).for_each(|number| bed.offer(&format!("http://a.test/page-{}", word(number))));
    bed.run(200, 1_000, &mut |job| match job.url.path_and_query() {
        path if path.len() == 3 => status(if path.ends_with(['a', 'e', 'i']) { 404 } else { 503 }),
        _ => well(job),
    });
    let (pages, words) = bed.pages().into_iter().partition::<Vec<_>, _>(|url| url.contains("/page-"));
    assert!(pages.len() >= 180 && (3..20).contains(&words.len()), "{} pages, {} words", pages.len(), words.len());
}
