//! Memory bounds of a crawl without end: hosts, rules, retries, concurrent lookups.

use std::collections::BTreeSet;

use super::*;

fn fast(config: &mut Config) {
    config.politeness.host_delay = Duration::ZERO;
    (config.politeness.site_delay, config.politeness.ip_delay) = (Duration::ZERO, Duration::ZERO);
}

fn rules(number: usize) -> Outcome {
    robots(&format!("User-agent: *\nDisallow: /private-{number}\n"))
}

#[test]
fn hosts_beyond_the_bound_wait_outside_and_all_get_in() {
    for ram_bytes_max in [0, 4_000, 1 << 30] {
        let mut bed = Bed::new(|config| {
            fast(config);
            config.frontier.hosts_max = 8;
            config.frontier.ram_bytes_max = ram_bytes_max;
        });
        for number in 0..3_000 {
            bed.offer(&format!("http://h{}.test/{number}", number % 1_000));
        }
        let first_bytes = bed.frontier.ram_bytes();
        assert!(bed.frontier.hosts_in_memory() == 8 && first_bytes < ram_bytes_max.max(40_000));
        let mut jobs = 0;
        while !bed.frontier.is_idle() {
            bed.run(HOUR, 100, &mut well);
            assert!(bed.frontier.hosts_in_memory() <= 8, "{} hosts", bed.frontier.hosts_in_memory());
            assert!(bed.jobs.len() > jobs, "stuck with {} URLs queued", bed.frontier.queued());
            jobs = bed.jobs.len();
        }
        let pages: BTreeSet<&str> = bed.pages().into_iter().collect();
        assert_eq!((pages.len(), bed.count(JobKind::Page)), (3_000, 3_000));
        assert_eq!((bed.frontier.queued(), bed.frontier.ram_bytes(), bed.disk.len()), (0, 0, 0));
        // First in, first out for each host; and hosts come roughly in the order in which they were found.
        let number = |page: &&str| page.rsplit('/').next().and_then(|text| text.parse::<usize>().ok());
        let mut last = vec![None; 1_000];
        assert!(
            bed.pages().iter().filter_map(number).all(|number| last[number % 1_000].replace(number) < Some(number))
        );
        let first = bed.pages().iter().filter_map(number).position(|number| number % 1_000 == 0);
        assert!(first < Some(64), "the first to come waits for {first:?} others");
    }
}

#[test]
fn a_host_that_was_forgotten_is_met_again() {
    let mut bed = Bed::new(|config| {
        fast(config);
        config.frontier.hosts_max = 2;
    });
    for round in 0..3 {
        for name in ["a", "b", "c"] {
            bed.offer(&format!("http://{name}.test/{round}"));
            bed.run(HOUR, 1_000, &mut well);
        }
    }
    assert_eq!((bed.frontier.hosts(), bed.frontier.hosts_in_memory()), (9, 2));
    let kinds = [JobKind::Resolve, JobKind::Robots, JobKind::Page];
    assert!(bed.jobs.chunks(3).all(|jobs| jobs.iter().map(|(_, job)| job.kind).eq(kinds)));
    assert_eq!(bed.jobs.len(), 27);
    // The host that has been idle longest goes first: `b` and `c` are left.
    bed.offer("http://b.test/again");
    bed.run(HOUR, 1_000, &mut well);
    assert_eq!((bed.frontier.hosts(), bed.count(JobKind::Robots)), (9, 9));
}

/// The effect of forgetting a host before its Retry-After is over: it would be queried too early.
#[test]
fn no_host_is_forgotten_while_it_wants_to_be_left_alone() {
    let mut bed = Bed::new(|config| {
        fast(config);
        config.frontier.hosts_max = 1;
        config.politeness.retries_max = 0;
    });
    bed.offer("http://a.test/");
    bed.offer("http://b.test/");
    bed.offer("http://a.test/again");
    bed.run(10 * HOUR, 1_000, &mut |job| match (job.kind, job.url.host()) {
        (JobKind::Page, "a.test") => Outcome::Fetched(Fetched {
            status: 503,
            retry_after: Some(Duration::from_secs(HOUR)),
            ..Fetched::default()
        }),
        _ => well(job),
    });
    let requests: Vec<(Instant, &str)> =
        bed.jobs.iter().filter(|(_, job)| job.kind == JobKind::Page).map(|(at, job)| (*at, job.url.host())).collect();
    assert_eq!(requests.iter().map(|(_, host)| *host).collect::<Vec<_>>(), ["a.test", "a.test", "b.test"]);
    assert!(requests.windows(2).all(|pair| pair[1].0.since(pair[0].0) >= Duration::from_secs(HOUR)));
}

/// A dead host's URLs come in from outside a few at a time: it is not retried until given up again for each few.
#[test]
fn a_dead_host_that_was_forgotten_is_known_to_be_dead() {
    let mut bed = Bed::new(|config| {
        fast(config);
        config.frontier.hosts_max = 1;
        config.politeness.host_failures_max = 20;
        config.politeness.retry_delay = Duration::from_secs(10);
        config.robots.ttl = Duration::from_secs(30);
    });
    bed.offer("http://first.test/");
    for number in 0..100 {
        bed.offer(&format!("http://dead.test/{number}"));
        bed.offer(&format!("http://live{number}.test/"));
    }
    let mut answer = |job: &FetchJob| match (job.kind, job.url.host()) {
        (JobKind::Page | JobKind::Robots, "dead.test") => Outcome::Failed(Failure::ConnectRefused),
        _ => well(job),
    };
    bed.run(10 * HOUR, 10_000, &mut answer);
    assert!(bed.frontier.is_idle(), "{} URLs are left", bed.frontier.queued());
    assert_eq!(bed.pages().iter().filter(|url| url.contains("live")).count(), 100);
    let asked =
        |bed: &Bed| bed.jobs.iter().filter(|(_, job)| job.addr.is_some() && job.url.host() == "dead.test").count();
    // And once before the name was looked up for the other family, which has no address either.
    assert!(asked(&bed) == 20 + 1, "the dead host was asked {} times", asked(&bed));
    // An hour later one request is enough to know that it is still dead, and one that it is alive again.
    let before = asked(&bed);
    bed.now = bed.now + Duration::from_secs(2 * HOUR);
    bed.offer("http://dead.test/later");
    bed.run(HOUR, 100, &mut answer);
    assert_eq!((asked(&bed), bed.frontier.is_idle()), (before + 1, true));
    bed.now = bed.now + Duration::from_secs(2 * HOUR);
    bed.offer("http://dead.test/alive");
    bed.run(HOUR, 100, &mut well);
    assert_eq!(bed.pages().last(), Some(&"http://dead.test/alive"));
}

#[test]
fn rules_over_their_bound_are_asked_for_again_and_every_page_has_its_verdict() {
    for (ram_bytes_max, robots_fetched) in [(0, 60), (1 << 20, 20)] {
        let mut bed = Bed::new(|config| {
            fast(config);
            config.robots.ram_bytes_max = ram_bytes_max;
        });
        for number in 0..60 {
            bed.offer(&format!("http://h{}.test/{number}", number % 20));
            bed.offer(&format!("http://h{}.test/private-{number}", number % 20));
        }
        bed.run(HOUR, 10_000, &mut |job| match job.kind {
            JobKind::Robots => robots("User-agent: *\nDisallow: /private-\n"),
            _ => well(job),
        });
        assert!(bed.frontier.is_idle());
        assert_eq!((bed.count(JobKind::Page), bed.settled.len()), (60, 60));
        assert!(bed.settled.iter().all(|settled| settled.failure == Failure::RobotsDenied));
        let asked = bed.count(JobKind::Robots);
        assert!(asked >= robots_fetched && asked <= 2 * robots_fetched, "{asked} times robots.txt");
    }
}

#[test]
fn rules_of_idle_hosts_go_first() {
    let mut bed = Bed::new(|config| {
        fast(config);
        config.robots.ram_bytes_max = 1_000;
    });
    (0..500).for_each(|number| bed.offer(&format!("http://long.test/{number}")));
    for number in 0..100 {
        bed.offer(&format!("http://short{number}.test/"));
        bed.run(HOUR, 4, &mut |job| if job.kind == JobKind::Robots { rules(number) } else { well(job) });
        assert!(bed.frontier.robots.rules_bytes() <= 1_500, "{} bytes", bed.frontier.robots.rules_bytes());
    }
    bed.run(HOUR, 1_000, &mut |job| if job.kind == JobKind::Robots { rules(0) } else { well(job) });
    let of_long = bed.jobs.iter().filter(|(_, job)| job.kind == JobKind::Robots && job.url.host() == "long.test");
    assert_eq!((of_long.count(), bed.count(JobKind::Robots), bed.count(JobKind::Page)), (1, 101, 600));
}

/// However many they are, and however short.
#[test]
fn rules_of_idle_hosts_go_before_longer_ones_of_busy_hosts() {
    let mut bed = Bed::new(|config| {
        fast(config);
        config.robots.ram_bytes_max = 30_000;
    });
    let long: String = (0..200).map(|number| format!("Disallow: /private-{number}\n")).collect();
    let mut answer = |job: &FetchJob| match job.kind {
        JobKind::Robots if job.url.host() == "long.test" => robots(&format!("User-agent: *\n{long}")),
        JobKind::Robots => rules(0),
        _ => well(job),
    };
    (0..500).for_each(|number| bed.offer(&format!("http://long.test/{number}")));
    for number in 0..400 {
        bed.offer(&format!("http://short{number}.test/"));
        bed.run(HOUR, 4, &mut answer);
    }
    bed.run(HOUR, 1_000, &mut answer);
    let of_long = bed.jobs.iter().filter(|(_, job)| job.kind == JobKind::Robots && job.url.host() == "long.test");
    assert_eq!((of_long.count(), bed.count(JobKind::Page)), (1, 900));
}

/// A hundred strangers with rules of their own length would make all others refetch theirs before every page.
#[test]
fn long_rules_take_the_place_of_long_rules_alone() {
    let mut bed = Bed::new(|config| {
        fast(config);
        config.robots.ram_bytes_max = 100_000;
    });
    for number in 0..400 {
        bed.offer(&format!("http://long{}.test/{number}", number % 20));
        bed.offer(&format!("http://short{}.test/{number}", number % 20));
    }
    let long: String = (0..2_000).map(|number| format!("Disallow: /private-{number}\n")).collect();
    bed.run(HOUR, 10_000, &mut |job| match job.kind {
        JobKind::Robots if job.url.host().starts_with("long") => robots(&format!("User-agent: *\n{long}")),
        JobKind::Robots => robots("User-agent: *\nDisallow: /private\n"),
        _ => well(job),
    });
    assert_eq!(bed.count(JobKind::Page), 800);
    let asked_of = |start: &str| {
        let robots = bed.jobs.iter().filter(|(_, job)| job.kind == JobKind::Robots);
        robots.filter(|(_, job)| job.url.host().starts_with(start)).count()
    };
    assert_eq!(asked_of("short"), 20, "theirs are asked for once");
    assert!(asked_of("long") > 100, "there is no room for all of theirs: {}", asked_of("long"));
}

/// Names without an answer hold their own slots and no others.
#[test]
fn names_in_a_tarpit_hold_up_no_one_else() {
    let mut bed = Bed::new(|config| {
        fast(config);
        config.dns.in_flight_max = 2;
    });
    (0..10).for_each(|number| bed.offer(&format!("http://tarpit{number}.test/")));
    (1..6).for_each(|number| bed.offer(&format!("http://192.0.2.{number}/")));
    let mut under_way = Vec::new();
    let mut start = |bed: &mut Bed| {
        let before = under_way.len();
        while let Some(job) = bed.frontier.next_job(bed.now, &mut bed.spool) {
            under_way.push(job);
        }
        assert_eq!(bed.frontier.next_due(), None);
        let named = under_way.iter().filter(|job| job.kind == JobKind::Resolve).count();
        assert_eq!(named, bed.frontier.slots.lookups.in_flight());
        (under_way.len() - before, std::mem::take(&mut under_way))
    };
    let (started, mut jobs) = start(&mut bed);
    assert_eq!((started, bed.frontier.slots.lookups.in_flight()), (7, 2));
    // The two answer in the end; the next two names get their turn, in the order of their hosts.
    let mut order = Vec::new();
    for _ in 0..5 {
        let (names, others): (Vec<_>, Vec<_>) = jobs.into_iter().partition(|job| job.kind == JobKind::Resolve);
        assert!(order.is_empty() || others.is_empty());
        for job in names {
            order.push(job.url.host().to_owned());
            bed.frontier.finish(bed.now, &job, &Outcome::NoAddress { ttl: Duration::from_secs(HOUR) });
        }
        jobs = start(&mut bed).1;
    }
    assert_eq!(order, (0..10).map(|number| format!("tarpit{number}.test")).collect::<Vec<_>>());
    assert_eq!((bed.frontier.slots.lookups.in_flight(), bed.frontier.queued()), (0, 5));
}

/// Servers that fail every page keep no more URLs in memory than a few each, once memory is short.
#[test]
fn retries_count_as_memory() {
    let mut bed = Bed::new(|config| {
        fast(config);
        config.frontier.ram_bytes_max = 50_000;
        config.frontier.host_head_urls = 1;
        config.politeness.retries_max = 2;
    });
    (0..5_000).for_each(|number| bed.offer(&format!("http://h{}.test/{number}", number % 50)));
    let mut fail = |job: &FetchJob| if job.kind == JobKind::Page { status(500) } else { well(job) };
    for _ in 0..100 {
        bed.run(HOUR, 25, &mut fail);
        let waiting: usize = bed.frontier.hosts.iter().map(|host| host.backlog.tried() + host.backlog.put_off()).sum();
        assert!(
            waiting <= 50 * (queue::RETRIES_MIN + queue::RETRIES_MIN / 2 + 1),
            "{waiting} URLs wait for another try"
        );
        assert!(bed.frontier.ram_bytes() <= 50_000 + 50 * 4_000, "{}", bed.frontier.ram_bytes());
    }
    bed.run(100 * HOUR, 100_000, &mut fail);
    assert_eq!((bed.count(JobKind::Page), bed.frontier.queued(), bed.frontier.ram_bytes()), (15_000, 0, 0));
}

/// A host with expensive verdicts gives way before it has had many, and the others continue meanwhile.
#[test]
fn costly_verdicts_give_way() {
    let mut bed = Bed::new(|config| {
        config.politeness.host_delay = Duration::ZERO;
        (config.politeness.site_delay, config.politeness.ip_delay) = (Duration::ZERO, Duration::ZERO);
    });
    let rules: String = (0..10_000).map(|number| format!("disallow:*ab{number:x}\n")).collect();
    let rules = format!("user-agent: *\n{rules}disallow: /x\n");
    let answer = |job: &FetchJob| match job.kind {
        JobKind::Robots if job.url.host() == "costly.test" => robots(&rules),
        _ => well(job),
    };
    for number in 0..500 {
        bed.offer(&format!("http://costly.test/x/{}{number}", "ab".repeat(1_000)));
        bed.offer(&format!("http://fair.test/{number}"));
    }
    let (mut settled_max, mut settled_before_last) = (0, 0);
    while bed.settled.len() < 500 {
        let before = bed.settled.len();
        while let Some(job) = bed.frontier.next_job(bed.now, &mut bed.spool) {
            let outcome = answer(&job);
            bed.jobs.push((bed.now, job.clone()));
            bed.now = bed.now + Duration::from_millis(1);
            bed.frontier.finish(bed.now, &job, &outcome);
            if bed.pages().len() == 500 && settled_before_last == 0 {
                settled_before_last = bed.settled.len();
            }
        }
        bed.settled.extend(bed.frontier.take_settled());
        settled_max = settled_max.max(bed.settled.len() - before);
        bed.frontier.begin_turn(bed.now);
        bed.now = bed.frontier.next_due().expect("more").max(bed.now + Duration::from_micros(1));
    }
    assert_eq!((settled_max, bed.pages().len()), (1, 500));
    assert!((1..100).contains(&settled_before_last), "{settled_before_last}");
    assert!(bed.now < Instant::ZERO + Duration::from_secs(30), "they are judged all the same");
}

/// One wildcard domain, all of whose hosts ask for an hour's pause: others still come in.
#[test]
fn a_domain_of_many_hosts_leaves_places_for_others() {
    let mut bed = Bed::new(|config| {
        fast(config);
        config.frontier.hosts_max = 100;
        config.politeness.crawl_delay_max = Duration::from_secs(HOUR);
    });
    (0..5_000).for_each(|number| bed.offer(&format!("http://h{number}.wild.test/")));
    let mut slow = |job: &FetchJob| match job.kind {
        JobKind::Robots if job.url.host().ends_with("wild.test") => robots("User-agent: *\nCrawl-delay: 3600\n"),
        _ => well(job),
    };
    bed.run(60, 100_000, &mut slow);
    assert_eq!((bed.frontier.hosts_left(), bed.frontier.queued()), (75, 5_000), "a quarter is left");
    for number in 0..200 {
        bed.offer(&format!("http://late{number}.test/"));
        if number % 20 == 19 {
            bed.run(6, 100_000, &mut slow);
        }
    }
    assert_eq!(bed.pages().iter().filter(|url| url.contains("late")).count(), 200, "late sites have their pages");
    // And the domain is crawled in the end.
    bed.run(1_000 * HOUR, 100_000, &mut slow);
    assert_eq!((bed.pages().len(), bed.frontier.queued(), bed.frontier.ram_bytes()), (5_200, 0, 0));
}

/// One domain whose hosts do not answer: others are still fetched, and nothing spins.
#[test]
fn a_domain_that_never_answers_leaves_fetches_for_others() {
    let mut bed = Bed::new(|config| {
        fast(config);
        config.fetch.in_flight_max = 16;
    });
    (0..1_000).for_each(|number| bed.offer(&format!("http://h{number}.drip.test/")));
    let mut dripping = Vec::new();
    let start = |bed: &mut Bed, held: &mut Vec<FetchJob>| {
        while let Some(job) = bed.frontier.next_job(bed.now, &mut bed.spool) {
            match job.kind {
                JobKind::Resolve => drop(bed.frontier.finish(bed.now, &job, &well(&job))),
                _ if job.url.host().ends_with("drip.test") => held.push(job),
                _ => {
                    bed.frontier.finish(bed.now, &job, &well(&job));
                    bed.jobs.push((bed.now, job));
                }
            }
        }
    };
    start(&mut bed, &mut dripping);
    assert_eq!((dripping.len(), bed.frontier.next_due()), (12, None), "a quarter is left, and no fetch to look at");
    (0..100).for_each(|number| bed.offer(&format!("http://late{number}.test/")));
    start(&mut bed, &mut dripping);
    assert_eq!((bed.pages().len(), dripping.len()), (100, 12));
    let job = dripping.remove(0);
    bed.frontier.finish(bed.now, &job, &Outcome::Failed(Failure::Aborted));
    start(&mut bed, &mut dripping);
    assert_eq!(dripping.len(), 12, "another one has its place");
}

/// 3,000 names of one domain point at the address of another site: every other request there is that site's.
#[test]
fn many_names_at_an_address_take_every_second_turn() {
    let mut bed = Bed::new(|config| {
        config.politeness.host_delay = Duration::ZERO;
        config.politeness.site_delay = Duration::ZERO;
        config.politeness.ip_delay = Duration::from_millis(100);
    });
    (0..3_000).for_each(|number| bed.offer(&format!("http://h{number}.wild.test/")));
    bed.run(5, 100_000, &mut well);
    let before = bed.jobs.len();
    (0..100).for_each(|number| bed.offer(&format!("http://www.victim.test/{number}")));
    bed.run(21, 100_000, &mut well);
    let requests = bed.jobs[before..].iter().filter(|(_, job)| job.kind != JobKind::Resolve);
    let (of_victim, of_others): (Vec<_>, Vec<_>) = requests.partition(|(_, job)| job.url.host() == "www.victim.test");
    assert!(of_victim.len() == 101 && of_others.len() < 120, "{} {}", of_victim.len(), of_others.len());
}

/// A slow site gets its turn at an address when slow sites have slots again; others need not wait for that.
#[test]
fn a_slow_site_keeps_no_host_from_an_address() {
    let mut bed = Bed::new(|config| config.fetch.in_flight_max = 8);
    for page in 0..5 {
        for host in ["a", "b", "c", "slow", "d", "e"] {
            bed.offer(&format!("http://{host}.test/{page}"));
        }
    }
    // All names are known, and all but two hosts wait for the address.
    bed.run(60, 6 + 2, &mut well);
    let later = bed.now + Duration::from_secs(60);
    let places = &mut bed.frontier.slots.fetch_slots;
    // Slow sites hold six slots, which is three times as many as are free.
    let slow = SiteKey::of_host(7, "slow.test");
    (0..6).for_each(|id| places.took(bed.now, 1_000 + id, SiteKey::of_host(7, &format!("x{id}.test"))));
    places.took(bed.now, 1_006, slow);
    places.look(later);
    places.gave_back(later, 1_006);
    assert!(places.is_slow(slow) && !places.may_slow_take(0));
    bed.now = later;
    bed.run(120, 1_000, &mut well);
    let of_slow = bed.pages().iter().filter(|url| url.contains("slow")).count();
    assert_eq!((of_slow, bed.pages().len()), (0, 25), "{:?}", bed.pages());
    (0..6).for_each(|id| {
        bed.frontier.slots.fetch_slots.gave_back(later, 1_000 + id);
    });
    bed.frontier.slots.look_again();
    bed.run(HOUR, 1_000, &mut well);
    assert_eq!(bed.pages().len(), 30);
}

/// An address is never free for long, and slow sites never have a slot for long: one of them still gets its turn.
#[test]
fn a_slow_site_has_its_turn_where_places_and_address_are_both_rare() {
    let mut bed = Bed::new(|config| config.fetch.in_flight_max = 8);
    for page in 0..1_000 {
        ["a", "b", "slow"].iter().for_each(|host| bed.offer(&format!("http://{host}.test/{page}")));
    }
    bed.run(60, 12, &mut well);
    let slow = SiteKey::of_host(7, "slow.test");
    let later = bed.now + Duration::from_secs(60);
    for id in 0..7 {
        let site = if id == 6 { slow } else { SiteKey::of_host(7, &format!("x{id}.test")) };
        bed.frontier.slots.fetch_slots.took(bed.now, 1_000 + id, site);
    }
    bed.frontier.slots.fetch_slots.look(later);
    bed.frontier.slots.fetch_slots.gave_back(later, 1_006);
    bed.now = later;
    let before = bed.pages().len();
    for round in 0..40 {
        // A slot becomes free between two turns at the address, and a host that waits elsewhere takes it before the
        // next.
        bed.run(2, 2, &mut well);
        bed.frontier.slots.fetch_slots.gave_back(bed.now, 1_000 + round);
        bed.frontier.slots.look_again();
        let _ = bed.frontier.next_job(bed.now, &mut bed.spool).is_none_or(|job| panic!("{job:?}"));
        if bed.frontier.slots.has_slot_for_slow_site() {
            bed.frontier.slots.fetch_slots.took(
                bed.now,
                1_006 + round,
                SiteKey::of_host(7, &format!("x{}.test", round % 6)),
            );
        }
    }
    let of_slow = bed.pages()[before..].iter().filter(|url| url.contains("slow")).count();
    assert!(of_slow > 0, "{:?}", bed.pages());
}

/// Of three sites at an address two drip: the third gets four fifths of the time.
#[test]
fn sites_that_drip_leave_an_address_to_others() {
    let pages = |drippers: usize| {
        let mut bed = Bed::new(|_| ());
        for page in 0..1_000 {
            (0..drippers).for_each(|number| bed.offer(&format!("http://drip.s{number}.test/{page}")));
            bed.offer(&format!("http://www.fast.test/{page}"));
        }
        bed.run(600, 100_000, &mut well);
        let of_fast = bed.pages().iter().filter(|url| url.contains("fast")).count();
        (of_fast, bed.pages().len() - of_fast)
    };
    let (alone, (beside, dripped)) = (pages(0).0, pages(2));
    assert!(beside * 10 >= alone * 7 && dripped >= 8, "{beside} of {alone}, {dripped}");
}
