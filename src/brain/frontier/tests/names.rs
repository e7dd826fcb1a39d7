//! Names: when they are looked up, how long answers and denials are valid, and what happens while no server answers.

use super::*;
use ringcrawl_config::Families;

fn found(addrs: &[&str], seconds: u64) -> Outcome {
    let addrs = addrs.iter().map(|addr| addr.parse().expect("an address")).collect();
    Outcome::Resolved { addrs, ttl: Duration::from_secs(seconds), is_half: false, alias: None }
}

/// `job` answered from its own address.
fn answered(job: &FetchJob) -> Outcome {
    match well(job) {
        Outcome::Fetched(fetched) => Outcome::Fetched(Fetched { addr: job.addr, ..fetched }),
        outcome => outcome,
    }
}

fn offer(bed: &mut Bed, pages: usize) {
    (0..pages).for_each(|number| bed.offer(&format!("http://a.test/{number}")));
}

/// A page waits for its delay and not also for its name.
#[test]
fn a_name_that_runs_out_is_asked_for_before_its_host_is_due() {
    let mut bed = Bed::new(|config| config.politeness.host_delay = Duration::from_secs(60));
    let lead = Config::default().dns.timeout;
    offer(&mut bed, 10);
    bed.run(HOUR, 1_000, &mut |job| if job.kind == JobKind::Resolve { found(&["192.0.2.1"], 90) } else { well(job) });
    assert_eq!((bed.count(JobKind::Page), bed.count(JobKind::Robots)), (10, 1));
    let (mut end, mut early) = (None, 0);
    for (at, job) in &bed.jobs {
        let Some(due) = end.map(|end: Instant| end + Duration::from_secs(60)) else {
            end = (job.kind != JobKind::Resolve).then_some(*at + Duration::from_millis(1));
            continue;
        };
        if job.kind == JobKind::Resolve {
            assert!(*at + lead >= due && *at < due, "{at:?} is not a little before {due:?}");
            early += 1;
        } else {
            assert!(*at >= due && at.since(due) < Duration::from_millis(1), "{at:?}: {due:?} was the time");
            end = Some(*at + Duration::from_millis(1));
        }
    }
    // Each lookup starts 5 s before its page, and its answer serves that page and the next one.
    assert!((4..=6).contains(&early), "{early} names asked for early");
}

#[test]
fn names_that_live_shorter_than_that_are_asked_for_once_a_page() {
    for ttl in [0, 1, 3, 5, 6, 30] {
        let mut bed = Bed::new(|config| config.politeness.host_delay = Duration::from_secs(60));
        offer(&mut bed, 10);
        bed.run(HOUR, 1_000, &mut |job| match job.kind {
            JobKind::Resolve => found(&["192.0.2.1"], ttl),
            _ => well(job),
        });
        assert_eq!(bed.count(JobKind::Page), 10);
        assert!(bed.count(JobKind::Resolve) <= 12, "{ttl} s: {} times", bed.count(JobKind::Resolve));
    }
}

#[test]
fn a_host_that_was_woken_for_its_name_is_not_idle_before_its_time() {
    let mut bed = Bed::new(|config| {
        config.politeness.host_delay = Duration::from_secs(60);
        config.frontier.hosts_max = 1;
    });
    bed.offer("http://a.test/");
    bed.offer("http://b.test/");
    bed.run(HOUR, 1_000, &mut |job| if job.kind == JobKind::Resolve { found(&["192.0.2.1"], 1) } else { well(job) });
    let requests: Vec<&(Instant, FetchJob)> = bed.jobs.iter().filter(|(_, job)| job.addr.is_some()).collect();
    assert_eq!(requests.len(), 4);
    let (last, next) = (requests[1].0, requests[2].0);
    assert!(next.since(last) >= Duration::from_secs(60), "forgotten {:?} after its last request", next.since(last));
}

#[test]
fn a_denial_holds_as_long_as_it_says() {
    let mut bed = Bed::new(|_| ());
    let mut deny = |job: &FetchJob| match job.kind {
        JobKind::Resolve => Outcome::NoAddress { ttl: Duration::from_secs(100) },
        _ => well(job),
    };
    for (wait, asked) in [(0, 1), (50, 1), (60, 2), (99, 2), (2, 3)] {
        bed.now = bed.now + Duration::from_secs(wait);
        bed.offer(&format!("http://a.test/{}", bed.now.as_nanos()));
        bed.run(1, 1_000, &mut deny);
        assert_eq!(bed.count(JobKind::Resolve), asked, "after {wait} more seconds");
    }
    assert!(bed.settled.iter().all(|settled| settled.failure == Failure::DnsNotFound) && bed.settled.len() == 5);
    bed.now = bed.now + Duration::from_secs(101);
    bed.offer("http://a.test/now");
    bed.run(HOUR, 1_000, &mut well);
    assert_eq!(bed.pages(), ["http://a.test/now"]);
}

/// RFC 2308 section 7: at most five minutes.
#[test]
fn that_no_server_answered_holds_for_five_minutes() {
    let mut bed = Bed::new(|config| config.politeness.retries_max = 0);
    let mut broken = |job: &FetchJob| match job.kind {
        JobKind::Resolve => Outcome::Failed(Failure::DnsFailed),
        _ => well(job),
    };
    // `run` may go a second too far.
    for (wait, asked, settled) in [(0, 1, 1), (290, 1, 2), (11, 2, 3)] {
        bed.now = bed.now + Duration::from_secs(wait);
        bed.offer(&format!("http://a.test/{wait}"));
        bed.run(1, 1_000, &mut broken);
        assert_eq!((bed.count(JobKind::Resolve), bed.settled.len()), (asked, settled), "{wait} more seconds later");
    }
    assert!(bed.pages().is_empty() && bed.settled.iter().all(|settled| settled.failure == Failure::DnsFailed));
}

#[test]
fn where_no_server_listens_the_other_family_is_looked_up() {
    let mut bed = Bed::new(|_| ());
    offer(&mut bed, 5);
    bed.run(24 * HOUR, 1_000, &mut |job| match (job.kind, job.addr) {
        (JobKind::Resolve, _) if job.both_families => found(&["192.0.2.1", "192.0.2.2", "2001:db8::1"], 60),
        (JobKind::Resolve, _) => found(&["192.0.2.1", "192.0.2.2"], 60),
        (_, Some(addr)) if addr.is_ipv4() => Outcome::Failed(Failure::ConnectTimeout),
        _ => answered(job),
    });
    assert_eq!((bed.count(JobKind::Page), bed.settled.len()), (5, 0));
    let tried: Vec<String> =
        bed.jobs.iter().filter_map(|(_, job)| Some(format!("{} {}", job.addr?, job.others.len()))).collect();
    // The second address is tried in parallel with the first, the dead one not again, and nothing in parallel with a
    // working one.
    assert_eq!(tried[..3], ["192.0.2.1 1", "192.0.2.2 0", "2001:db8::1 0"]);
    assert!(tried[3..].iter().all(|line| line == "2001:db8::1 0"), "{tried:?}");
}

#[test]
fn one_family_is_one_family() {
    let mut bed = Bed::new(|config| {
        config.dns.families = Families::Ipv4Only;
        config.politeness.retries_max = 1;
        config.robots.retries_max = 1;
    });
    bed.offer("http://a.test/");
    bed.run(24 * HOUR, 1_000, &mut |job| match job.kind {
        JobKind::Resolve => found(&["192.0.2.1"], 60),
        _ => Outcome::Failed(Failure::ConnectTimeout),
    });
    assert!(bed.jobs.iter().all(|(_, job)| !job.both_families) && bed.settled.len() == 1);
}

/// The grace: `dns.stale_max` after an answer's time, and only if no server answers.
#[test]
fn old_addresses_are_used_while_no_name_server_answers_and_not_for_ever() {
    for (stale_max, denied) in [(600, false), (0, false), (600, true)] {
        let mut bed = Bed::new(|config| {
            config.dns.stale_max = Duration::from_secs(stale_max);
            config.politeness.host_delay = Duration::from_secs(10);
            config.politeness.retries_max = 0;
        });
        offer(&mut bed, 200);
        let mut asked = 0;
        bed.run(HOUR, 10_000, &mut |job| {
            asked += u64::from(job.kind == JobKind::Resolve);
            match job.kind {
                JobKind::Resolve if asked == 1 => found(&["192.0.2.1"], 300),
                JobKind::Resolve if denied && asked > 3 => Outcome::NoAddress { ttl: Duration::from_secs(3_600) },
                JobKind::Resolve => Outcome::Failed(Failure::DnsTimeout),
                _ => well(job),
            }
        });
        let last = bed.jobs.iter().rev().find(|(_, job)| job.kind == JobKind::Page).expect("pages").0;
        let until = Instant::ZERO + Duration::from_secs(300 + if denied { 60 } else { stale_max });
        assert!(last < until + Duration::from_millis(2), "{last:?} is past {until:?}");
        assert!(last + Duration::from_secs(20) > until, "{last:?} is long before {until:?}");
        let failure = if denied { Failure::DnsNotFound } else { Failure::DnsTimeout };
        assert!(bed.settled.iter().all(|settled| settled.failure == failure));
        assert_eq!(bed.settled.len() + bed.count(JobKind::Page), 200);
    }
}

/// Only one of two families was answered: its address is dead, and the other family is looked up again at no cost.
#[test]
fn half_an_answer_is_not_the_last_word() {
    let mut bed = Bed::new(|config| {
        config.politeness.retries_max = 0;
        config.politeness.host_delay = Duration::ZERO;
    });
    bed.offer("http://a.test/x");
    let [four, six]: [IpAddr; 2] = ["192.0.2.1", "2001:db8::1"].map(|text| text.parse().expect("an address"));
    let mut lookups = 0;
    bed.run(600, 100, &mut |job| match job.kind {
        JobKind::Resolve => {
            lookups += 1;
            // The first lookup is of one family; of the next, which are of both, only the last is answered in full.
            let (addrs, is_half) = if lookups < 4 { (vec![four], lookups > 1) } else { (vec![four, six], false) };
            assert_eq!(job.both_families, lookups > 1);
            Outcome::Resolved { addrs, ttl: Duration::from_secs(60), is_half, alias: None }
        }
        _ if job.addr == Some(four) => Outcome::Failed(Failure::ConnectTimeout),
        JobKind::Robots => Outcome::Fetched(Fetched { status: 404, addr: job.addr, ..Fetched::default() }),
        JobKind::Page => Outcome::Fetched(Fetched { status: 200, addr: job.addr, ..Fetched::default() }),
    });
    assert_eq!((lookups, bed.settled.len()), (4, 0));
    assert!(bed.jobs.iter().any(|(_, job)| job.kind == JobKind::Page && job.addr == Some(six)));
}

/// A host that is forgotten between two attempts is not tried only at the dead address of its first family, again and
/// again.
#[test]
fn that_both_families_are_wanted_outlives_the_host() {
    let mut bed = Bed::new(|config| {
        config.frontier.hosts_max = 1;
        config.politeness.retries_max = 0;
        config.politeness.host_delay = Duration::ZERO;
    });
    (0..20).for_each(|number| bed.offer(&format!("http://{}.test/{number}", if number % 2 == 0 { "a" } else { "b" })));
    let [four, six]: [IpAddr; 2] = ["192.0.2.1", "2001:db8::1"].map(|text| text.parse().expect("an address"));
    bed.run(HOUR, 1_000, &mut |job| match job.kind {
        JobKind::Resolve => {
            let addrs = if job.both_families { vec![four, six] } else { vec![four] };
            Outcome::Resolved { addrs, ttl: Duration::from_millis(1), is_half: false, alias: None }
        }
        _ if job.others.is_empty() && job.addr == Some(four) => Outcome::Failed(Failure::ConnectTimeout),
        // A further address is tried in parallel with the dead one.
        _ => answered(&FetchJob { addr: Some(six), ..job.clone() }),
    });
    let tried = |job: &FetchJob| job.kind != JobKind::Resolve && job.others.is_empty() && job.addr == Some(four);
    let dead = bed.jobs.iter().filter(|(_, job)| tried(job)).count();
    assert_eq!((dead, bed.settled.len(), bed.count(JobKind::Page)), (2, 0, 20), "once a host");
}

/// Nor is the dead one of two addresses tried first again each time its host reappears.
#[test]
fn which_address_is_dead_outlives_the_host() {
    let mut bed = Bed::new(|config| {
        config.frontier.hosts_max = 1;
        config.politeness.retries_max = 0;
        config.politeness.host_delay = Duration::ZERO;
    });
    (0..20).for_each(|number| bed.offer(&format!("http://{}.test/{number}", if number % 2 == 0 { "a" } else { "b" })));
    let [dead, living]: [IpAddr; 2] = ["192.0.2.1", "192.0.2.2"].map(|text| text.parse().expect("an address"));
    bed.run(HOUR, 1_000, &mut |job| match job.kind {
        JobKind::Resolve => {
            Outcome::Resolved { addrs: vec![dead, living], ttl: Duration::from_millis(1), is_half: false, alias: None }
        }
        _ if job.addr == Some(dead) => Outcome::Failed(Failure::ConnectTimeout),
        _ => answered(job),
    });
    let asked = bed.jobs.iter().filter(|(_, job)| job.kind != JobKind::Resolve && job.addr == Some(dead)).count();
    assert_eq!((asked, bed.settled.len(), bed.count(JobKind::Page)), (2, 0, 20), "once a host");
}
