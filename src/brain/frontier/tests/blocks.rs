//! URLs that are blocked or ruled out while they are queued.

use super::*;
use crate::hops::Hops;
use crate::scope::{BlockList, Rules};

fn scope(rules: &str, blocks: &str) -> Scope {
    let (blocks, mistakes) = BlockList::parse("list", blocks.as_bytes());
    assert_eq!(mistakes.count, 0);
    Scope::default().with(Arc::new(Rules::parse("rules", rules.as_bytes()).expect("rules")), Arc::new(blocks))
}

fn causes(bed: &Bed) -> BTreeMap<Failure, usize> {
    let mut causes = BTreeMap::new();
    bed.settled.iter().for_each(|settled| *causes.entry(settled.failure).or_default() += 1);
    causes
}

#[test]
fn what_is_queued_is_judged_by_the_scope_of_its_turn() {
    let mut bed = Bed::new(|config| config.politeness.ip_delay = Duration::ZERO);
    for number in 0..20 {
        for host in ["good.test", "bad.test", "some.test"] {
            bed.offer(&format!("http://{host}/{number}"));
        }
    }
    bed.run(HOUR, 9, &mut well);
    let before = bed.pages().len();
    assert!((1..9).contains(&before), "{before}");
    bed.frontier.set_scope(scope("deny path=/1*\n", ".bad.test\nhttp://some.test/2*\n"));
    let jobs = bed.jobs.len();
    bed.run(HOUR, 1_000, &mut well);
    for (_, job) in &bed.jobs[jobs..] {
        let url = job.url.as_str();
        let is_ruled_out = job.kind == JobKind::Page && job.url.path_and_query().starts_with("/1");
        assert!(job.url.host() != "bad.test" && !is_ruled_out && url != "http://some.test/2", "{url}");
    }
    let causes = causes(&bed);
    assert_eq!(bed.pages().len() + causes[&Failure::Blocked] + causes[&Failure::OutOfScope], 60, "{causes:?}");
    assert!(
        causes[&Failure::Blocked] > 10 && causes[&Failure::OutOfScope] > 10 && bed.frontier.is_idle(),
        "{causes:?}"
    );
    // Once it is off the list, its new URLs are fetched as if it had never been on it.
    bed.frontier.set_scope(Scope::default());
    bed.now = bed.now + Duration::from_secs(2);
    bed.offer("http://bad.test/new");
    bed.run(HOUR, 10, &mut well);
    assert_eq!(bed.pages().last(), Some(&"http://bad.test/new"));
}

#[test]
fn no_robots_txt_is_asked_for_at_a_blocked_host() {
    let mut bed = Bed::new(|_| ());
    bed.frontier.set_scope(scope("", "bad.test\nhttp://some.test/robots*\n"));
    for host in ["a", "b"] {
        bed.offer(&format!("http://{host}.test/x"));
    }
    bed.run(HOUR, 1_000, &mut |job| match (job.kind, job.url.host()) {
        (JobKind::Robots, "a.test") => moved("http://bad.test/robots.txt"),
        (JobKind::Robots, "b.test") => moved("http://some.test/robots.txt"),
        _ => well(job),
    });
    assert!(bed.jobs.iter().all(|(_, job)| matches!(job.url.host(), "a.test" | "b.test")), "{:?}", bed.pages());
    assert_eq!((bed.pages().len(), bed.settled.len()), (0, 2));
}

#[test]
fn a_host_is_asked_at_its_addresses_that_are_not_blocked() {
    let addrs = |job: &FetchJob| match job.url.host() {
        "both.test" => {
            vec![IpAddr::from([192, 0, 2, 1]), IpAddr::from([198, 51, 100, 1]), IpAddr::from([192, 0, 2, 2])]
        }
        _ => vec![IpAddr::from([192, 0, 2, 3])],
    };
    let mut answer = |job: &FetchJob| match job.kind {
        JobKind::Resolve => {
            Outcome::Resolved { addrs: addrs(job), ttl: Duration::from_secs(300), is_half: false, alias: None }
        }
        _ => well(job),
    };
    let mut bed = Bed::new(|_| ());
    bed.frontier.set_scope(scope("", "192.0.2.0/24\n"));
    for host in ["both", "none"] {
        (0..5).for_each(|number| bed.offer(&format!("http://{host}.test/{number}")));
    }
    bed.run(HOUR, 1_000, &mut answer);
    let requests = bed.jobs.iter().filter(|(_, job)| job.kind != JobKind::Resolve);
    for (_, job) in requests {
        assert_eq!((job.url.host(), job.addr), ("both.test", Some(IpAddr::from([198, 51, 100, 1]))));
        assert!(job.others.is_empty(), "{job:?}");
    }
    assert_eq!((bed.pages().len(), causes(&bed)), (5, BTreeMap::from([(Failure::Blocked, 5)])));
    // The address that answered so far is added to the list.
    (5..10).for_each(|number| bed.offer(&format!("http://both.test/{number}")));
    bed.frontier.set_scope(scope("", "198.51.100.0/24\n"));
    bed.run(HOUR, 1_000, &mut answer);
    let (_, last) = bed.jobs.last().expect("a job");
    assert_eq!((bed.pages().len(), last.addr), (10, Some(IpAddr::from([192, 0, 2, 1]))));
}

/// A blocked robots.txt closes only its own origin.
#[test]
fn a_blocked_robots_txt_is_of_one_origin() {
    let mut bed = Bed::new(|_| ());
    bed.frontier.set_scope(scope("", "https://a.test/robots.txt\n"));
    (0..3).for_each(|number| {
        bed.offer(&format!("https://a.test/{number}"));
        bed.offer(&format!("http://a.test/{number}"));
    });
    bed.run(HOUR, 1_000, &mut well);
    assert!(bed.jobs.iter().all(|(_, job)| job.url.as_str().starts_with("http:") || job.kind == JobKind::Resolve));
    assert_eq!((bed.pages().len(), causes(&bed)), (3, BTreeMap::from([(Failure::Blocked, 3)])));
}

/// A host that waits for a day, for its turn, or for better URLs stops waiting once it is on the list, and so does
/// the crawl.
#[test]
fn who_rests_and_is_blocked_ends_at_once() {
    let mut bed = Bed::new(|config| {
        (config.politeness.ip_delay, config.politeness.site_delay) = (Duration::ZERO, Duration::from_secs(3_600));
    });
    let deferred = Ticket { number: 0, depth: Hops::default().deferred().bits(), is_strangers: false };
    for number in 0..50 {
        bed.offer(&format!("http://rests.test/{number}"));
        bed.offer(&format!("http://a.shares.test/{number}"));
        bed.offer(&format!("http://b.shares.test/{number}"));
        let url = Url::parse(&format!("http://deferred.test/{number}")).expect("a URL");
        bed.frontier.offer(bed.now, &url, SiteKey::of_host(7, url.host()), deferred, &mut bed.spool);
    }
    let mut answer = |job: &FetchJob| match (job.kind, job.url.host()) {
        (JobKind::Page, "rests.test") => Outcome::Fetched(Fetched {
            status: 429,
            retry_after: Some(Duration::from_secs(86_400)),
            ..Fetched::default()
        }),
        _ => well(job),
    };
    bed.run(2 * 3_600, 1_000, &mut answer);
    let waits = |bed: &Bed, name| bed.frontier.hosts[bed.frontier.hosts.find(name).expect("a host")].state();
    assert!(matches!(waits(&bed, "rests.test"), HostState::Waiting(_)));
    assert!([waits(&bed, "a.shares.test"), waits(&bed, "b.shares.test")].contains(&HostState::Parked));
    let (jobs, waiting) = (bed.jobs.len(), bed.frontier.queued());
    assert!(waiting > 100, "{waiting}");
    bed.frontier.set_scope(scope("", ".rests.test\n.shares.test\ndeferred.test\n"));
    bed.run(2, 1_000, &mut answer);
    assert_eq!((bed.jobs.len(), bed.settled.len() as u64, bed.frontier.queued()), (jobs, waiting, 0));
    assert!(bed.frontier.is_idle() && bed.frontier.hosts_left() == 0, "a host without URLs does not wait for its rest");
    // Once it is off the list it still rests, though.
    bed.frontier.set_scope(Scope::default());
    bed.now = bed.now + Duration::from_secs(2);
    bed.offer("http://rests.test/new");
    bed.run(3_600, 1_000, &mut answer);
    let rests_from = bed.jobs[..jobs].iter().find(|(_, job)| job.url.path_and_query() == "/0").expect("a page").0;
    assert!(bed.jobs[jobs..].iter().all(|(at, _)| at.since(rests_from) >= Duration::from_secs(86_400)));
}

/// They are removed from their queues together: one by one, half a million would take hours.
#[test]
fn many_who_wait_for_name_servers_are_blocked_at_once() {
    let mut bed = Bed::new(|config| config.dns.in_flight_max = 8);
    let hosts = 20_000;
    for number in 0..hosts {
        bed.offer_of_strangers(&format!("http://a.s{number}.test/"));
    }
    bed.offer("http://good.example/");
    bed.run(1, 10, &mut well);
    let waiting = bed.frontier.queued();
    assert!(waiting > hosts / 2, "{waiting}");
    bed.frontier.set_scope(scope("", ".test\n"));
    bed.run(2, 100_000, &mut well);
    assert_eq!(bed.frontier.queued(), 0);
    assert!(bed.jobs.iter().any(|(_, job)| job.url.host() == "good.example"));
    let asked = bed.jobs.iter().filter(|(_, job)| job.url.host() != "good.example").count();
    assert!(asked < hosts as usize / 4, "{asked}");
}

/// A host with a rest noted by an earlier run is on the list when its URLs come back, or while its last request is in
/// flight.
#[test]
fn who_is_blocked_goes_to_rest_no_more() {
    let mut bed = Bed::new(|_| ());
    bed.frontier.set_scope(scope("", "old.test\n"));
    let until = Instant::ZERO + Duration::from_secs(40_000);
    bed.frontier.rest(bed.now, &Rest::new("old.test", until));
    (0..50).for_each(|number| bed.offer(&format!("http://old.test/{number}")));
    bed.run(2, 1_000, &mut well);
    assert_eq!((bed.jobs.len(), bed.settled.len(), bed.frontier.is_idle()), (0, 50, true));
    (0..50).for_each(|number| bed.offer(&format!("http://busy.test/{number}")));
    bed.run(1, 1, &mut well);
    let job = bed.frontier.next_job(bed.now, &mut bed.spool).expect("its robots.txt");
    bed.frontier.set_scope(scope("", "old.test\nbusy.test\n"));
    bed.run(1, 1_000, &mut well);
    let complaint = Fetched { status: 503, retry_after: Some(Duration::from_secs(40_000)), ..Fetched::default() };
    bed.frontier.finish(bed.now, &job, &Outcome::Fetched(complaint));
    bed.run(2, 1_000, &mut well);
    assert_eq!((bed.settled.len(), bed.frontier.queued(), bed.frontier.is_idle()), (100, 0, true));
}
