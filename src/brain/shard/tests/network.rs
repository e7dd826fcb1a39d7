//! What an outage explains is undone, and everything else counts.

use super::*;
use crate::job::HostId;
use ringcrawl_base::Failure;

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// A shard with this many hosts whose addresses are known, with a page to fetch from each.
fn rig(hosts: usize, change: impl FnOnce(&mut Config)) -> Rig {
    rig_of(hosts, Logs::new(), change)
}

/// The same with the logs of an earlier run.
fn rig_of(hosts: usize, logs: Logs, change: impl FnOnce(&mut Config)) -> Rig {
    let names: Vec<String> = names(0).take(hosts).collect();
    let mut rig = Rig::new(
        config(|config| {
            (config.politeness.site_delay, config.politeness.ip_delay) = (Duration::ZERO, Duration::ZERO);
            config.robots.retries_max = 0;
            for name in &names {
                config.dns.hosts.insert(name.clone(), vec!["192.0.2.1".parse().expect("an address")]);
            }
            change(config);
        }),
        logs,
    );
    names.iter().for_each(|name| rig.seed(&Url::parse(&format!("http://{name}/")).expect("a URL")));
    rig.run(at(0));
    rig
}

impl Rig {
    fn command(&mut self, now: Instant, command: Command) {
        self.shard.handle(now, Input::Command(command));
        self.run(now);
    }

    fn fail(&mut self, now: Instant, job: &FetchJob, failure: Failure) {
        self.shard.handle(now, Input::Fetched { job: job.id, result: Err(failure) });
        self.run(now);
    }

    fn clear(&mut self, now: Instant) {
        self.command(now, Command::Clear(Cleared { sites: now, names: now }));
    }

    /// Fetches that began since the last call.
    fn begun(&mut self) -> Vec<FetchJob> {
        std::mem::take(&mut self.fetches)
    }
}

#[test]
fn a_failure_counts_when_it_is_cleared() {
    let mut rig = rig(1, |_| ());
    let robots = rig.begun().remove(0);
    rig.fail(at(100), &robots, Failure::Reset);
    assert_eq!((rig.shard.network_report().held_since, rig.shard.report().quiet), (at(100), false));
    assert_eq!(rig.shard.stats().in_flight, 0, "its place is another's");
    assert_eq!(rig.begun().len(), 0, "and its host is still busy");
    rig.clear(at(99));
    assert_eq!(rig.shard.over(), 0);
    rig.clear(at(100));
    rig.run(at(60_000));
    assert_eq!((rig.shard.over(), rig.shard.stats().failures[Failure::RobotsUnreachable as usize]), (1, 1));
    assert_eq!(rig.shard.network_report().held_since, Instant::NEVER);
}

#[test]
fn what_an_outage_explains_is_undone_and_tried_again_at_once() {
    let mut rig = rig(3, |_| ());
    let jobs = rig.begun();
    assert_eq!(jobs.len(), 3);
    // One fails before the outage is known, one while it lasts, and one afterwards.
    rig.fail(at(100), &jobs[0], Failure::ConnectTimeout);
    rig.command(at(200), Command::Outage(OutOfReach::All));
    rig.fail(at(300), &jobs[1], Failure::Reset);
    rig.run(at(50_000));
    assert_eq!((rig.begun().len(), rig.shard.stats().in_flight), (0, 1), "nothing is fetched");
    rig.command(at(50_000), Command::Outage(OutOfReach::Nothing));
    assert_eq!(rig.begun().len(), 2);
    rig.fail(at(50_100), &jobs[2], Failure::FirstByteTimeout);
    rig.run(at(52_000));
    assert_eq!(rig.begun().len(), 1);
    assert_eq!((rig.shard.over(), rig.shard.network_report().held_since), (0, Instant::NEVER));
    assert_eq!(rig.shard.stats().failed(), 0);
}

#[test]
fn a_few_things_are_tried_during_an_outage() {
    let mut rig = rig(3, |_| ());
    for job in rig.begun() {
        rig.fail(at(100), &job, Failure::ConnectTimeout);
    }
    rig.command(at(200), Command::Outage(OutOfReach::All));
    rig.command(at(2_000), Command::Probe(1));
    let probe = rig.begun();
    assert_eq!(probe.len(), 1);
    rig.run(at(3_000));
    rig.fail(at(3_000), &probe[0], Failure::ConnectTimeout);
    assert_eq!(rig.begun().len(), 0);
    rig.command(at(4_000), Command::Probe(1));
    let probe = rig.begun().remove(0);
    rig.shard.take_site_ends().for_each(drop);
    rig.shard.handle(at(5_000), response(&probe, 404, "", ""));
    rig.run(at(5_000));
    assert_eq!(rig.begun().len(), 0, "the breaker has not heard of it");
    let ends: Vec<SiteEnd> = rig.shard.take_site_ends().collect();
    assert_eq!((ends.len(), ends[0].reply, ends[0].began), (1, SiteReply::Answered, at(4_000)));
    rig.command(at(5_100), Command::Outage(OutOfReach::Nothing));
    rig.run(at(7_000));
    assert_eq!(rig.begun().len(), 3);
}

#[test]
fn a_body_that_was_cut_off_is_fetched_again() {
    for is_outage in [false, true] {
        let mut rig = rig(1, |_| ());
        let robots = rig.begun().remove(0);
        rig.shard.handle(at(10), response(&robots, 404, "", ""));
        rig.run(at(2_000));
        let page = rig.begun().remove(0);
        let Input::Fetched { job, result: Ok(transaction) } =
            response(&page, 200, "Content-Length: 100\r\n", "<a href=/there>the beginning</a>")
        else {
            panic!("a response")
        };
        assert_eq!(transaction.response.truncated, Some(ringcrawl_base::Truncated::Disconnect));
        rig.shard.handle(at(2_100), Input::Fetched { job, result: Ok(transaction) });
        rig.run(at(2_100));
        assert_eq!((rig.shard.stats().pages, rig.shard.stats().visited), (0, 1));
        if is_outage {
            rig.command(at(2_200), Command::Outage(OutOfReach::All));
            rig.command(at(5_000), Command::Outage(OutOfReach::Nothing));
            assert_eq!(rig.begun().iter().map(|job| job.url.clone()).collect::<Vec<_>>(), [page.url]);
        } else {
            rig.clear(at(2_200));
        }
        let stored = u64::from(!is_outage);
        assert_eq!(
            (rig.shard.stats().pages, rig.shard.over(), rig.shard.stats().visited),
            (stored, stored, 1 + stored)
        );
    }
}

#[test]
fn a_drain_waits_for_no_verdict() {
    let mut rig = rig(2, |_| ());
    let jobs = rig.begun();
    rig.fail(at(100), &jobs[0], Failure::ConnectTimeout);
    rig.enter(Phase::Drain);
    rig.fail(at(200), &jobs[1], Failure::ConnectTimeout);
    assert!(rig.shard.report().quiet);
    assert_eq!((rig.shard.over(), rig.shard.stats().queued), (0, 2), "they wait for the next run");
}

/// Names that wait for their turn at `dns.rate_max` would take minutes.
#[test]
fn a_drain_waits_for_no_turn_at_the_name_servers() {
    let mut rig = Rig::new(
        config(|config| {
            config.dns.rate_max = 1;
            (config.politeness.site_delay, config.politeness.ip_delay) = (Duration::ZERO, Duration::ZERO);
        }),
        Logs::new(),
    );
    names(0).take(100).for_each(|name| rig.seed(&Url::parse(&format!("http://{name}/")).expect("a URL")));
    let mut asked = Vec::new();
    while let Some(effect) = rig.shard.poll(at(0)) {
        if let Effect::Ask(query) = effect {
            asked.push(query.lookup);
        }
    }
    assert_eq!((asked.len(), rig.shard.stats().lookups), (1, 100));
    rig.enter(Phase::Drain);
    assert_eq!(rig.shard.stats().lookups, 1);
    rig.shard.handle(at(600), Input::Answered { lookup: asked[0], answer: DnsAnswer::Silent });
    rig.run(at(600));
    assert!(rig.shard.report().quiet, "{:?}", rig.shard.next_due());
    assert_eq!((rig.shard.over(), rig.shard.stats().queued), (0, 100));
}

#[test]
fn a_disk_without_room_lets_nothing_start() {
    let mut rig = rig(1, |_| ());
    let robots = rig.begun().remove(0);
    rig.command(at(5), Command::DiskFull(true));
    rig.shard.handle(at(10), response(&robots, 404, "", ""));
    rig.run(at(60_000));
    assert_eq!((rig.begun().len(), rig.shard.report().quiet), (0, false));
    rig.command(at(60_000), Command::DiskFull(false));
    assert_eq!(rig.begun().len(), 1);
}

#[test]
fn name_servers_are_asked_whether_they_answer() {
    let mut rig = rig(1, |_| ());
    rig.shard.handle(at(5), Input::Command(Command::ProbeNames));
    assert_eq!(rig.shard.next_due(), Some(Instant::ZERO));
    let Some(Effect::Ask(query)) = rig.shard.poll(at(5)) else { panic!("no query") };
    assert_eq!((query.name.as_str(), query.server), ("", 0));
    let report = |rig: &Rig| (rig.shard.network_report().dns_heard, rig.shard.network_report().dns_failed);
    for (answer, expected) in [
        (DnsAnswer::Silent, (0, 0)),
        (DnsAnswer::Unreachable, (0, 0)),
        (DnsAnswer::Refused, (0, 0)),
        (DnsAnswer::Error, (0, 0)),
        (DnsAnswer::None(None), (1, 0)),
        (DnsAnswer::NoName(None), (2, 0)),
    ] {
        rig.shard.handle(at(10), Input::Answered { lookup: query.lookup, answer });
        assert_eq!(report(&rig), expected);
    }
}

/// A host whose name is not known, in addition to those of `rig`.
fn stranger(rig: &mut Rig) -> String {
    let name = names(0).nth(100).unwrap_or_default();
    rig.seed(&Url::parse(&format!("http://{name}/")).expect("a URL"));
    name
}

/// Runs the shard, whose name servers answer `answer`; returns the names that were queried.
fn asked(rig: &mut Rig, now: Instant, answer: &DnsAnswer) -> Vec<String> {
    let mut asked = Vec::new();
    while let Some(effect) = rig.shard.poll(now) {
        match effect {
            Effect::Ask(query) => {
                asked.push(query.name);
                rig.shard.handle(now, Input::Answered { lookup: query.lookup, answer: answer.clone() });
            }
            Effect::Fetch(job) => rig.fetches.push((*job).clone()),
            Effect::Disk(op) => {
                let end = rig.disk(op);
                rig.shard.handle(now, Input::Disk(end));
            }
            _ => {}
        }
    }
    asked
}

/// No name server answers, and sites do.
#[test]
fn an_outage_of_names_holds_up_lookups_alone() {
    let mut rig = rig(2, |_| ());
    let jobs = rig.begun();
    let name = stranger(&mut rig);
    assert!(!asked(&mut rig, at(0), &DnsAnswer::Silent).is_empty());
    rig.shard.handle(at(100), Input::Command(Command::Outage(OutOfReach::Names)));
    assert_eq!(rig.shard.network_report().held_since, Instant::NEVER, "what was held of names is undone");
    rig.shard.handle(at(200), response(&jobs[0], 404, "", ""));
    assert_eq!(asked(&mut rig, at(10_000), &DnsAnswer::Silent), [""; 0]);
    assert_eq!(rig.begun().iter().map(|job| (job.host, job.kind)).collect::<Vec<_>>(), [(jobs[0].host, JobKind::Page)]);
    rig.fail(at(10_100), &jobs[1], Failure::Reset);
    assert_eq!(rig.shard.network_report().held_since, at(10_100), "it counts when it is cleared");
    rig.clear(at(10_200));
    asked(&mut rig, at(19_000), &DnsAnswer::Silent);
    assert_eq!(rig.shard.over(), 1);
    rig.begun();
    // A few are looked up, as one may be found; nothing counts against it.
    for probe in 1..=9 {
        rig.shard.handle(at(20_000 * probe), Input::Command(Command::Probe(1)));
        let names = asked(&mut rig, at(20_000 * probe), &DnsAnswer::Silent);
        assert!(!names.is_empty() && names.iter().all(|asked| *asked == name), "{names:?}");
        assert_eq!(asked(&mut rig, at(20_000 * probe + 9_000), &DnsAnswer::Silent), [""; 0]);
    }
    rig.shard.handle(at(200_000), Input::Command(Command::Probe(1)));
    let found = DnsAnswer::Addrs(vec!["192.0.2.9".parse().expect("an address")], Duration::from_secs(60), None);
    assert!(!asked(&mut rig, at(200_000), &found).is_empty());
    assert_eq!(rig.begun().iter().map(|job| job.url.host().to_owned()).collect::<Vec<_>>(), [&*name]);
}

/// Its own name servers are broken, and it is first in the queue.
#[test]
fn a_probe_does_not_stick_to_one_name() {
    let mut rig = rig(1, |_| ());
    let other = rig.begun().remove(0);
    rig.shard.handle(at(0), Input::Command(Command::Outage(OutOfReach::All)));
    let broken = stranger(&mut rig);
    rig.fail(at(100), &other, Failure::ConnectTimeout);
    let mut names = Vec::new();
    for probe in 1..=3 {
        rig.shard.handle(at(4_000 * probe), Input::Command(Command::Probe(1)));
        names.extend(asked(&mut rig, at(4_000 * probe), &DnsAnswer::Error));
    }
    let begun: Vec<HostId> = rig.begun().iter().map(|job| job.host).collect();
    assert_eq!((names.first(), begun), (Some(&broken), vec![other.host]));
}

#[test]
fn probes_go_to_hosts_that_answered_before() {
    let mut rig = rig(4, |_| ());
    let jobs = rig.begun();
    rig.command(at(10), Command::Outage(OutOfReach::All));
    for job in &jobs[..3] {
        rig.fail(at(20), job, Failure::ConnectTimeout);
    }
    // It is last in the queue.
    rig.shard.handle(at(30), response(&jobs[3], 404, "", ""));
    rig.run(at(60_000));
    rig.command(at(60_000), Command::Probe(1));
    assert_eq!(rig.begun().iter().map(|job| job.host).collect::<Vec<_>>(), [jobs[3].host]);
    rig.command(at(60_000), Command::Probe(9));
    assert_eq!(rig.begun().len(), 2, "three at once");
}

/// As a resolver answers whose own network is down.
#[test]
fn a_server_failure_is_held_and_is_no_answer() {
    let mut rig = rig(0, |_| ());
    stranger(&mut rig);
    asked(&mut rig, at(100), &DnsAnswer::Error);
    let report = rig.shard.network_report();
    // Once for each family, and once without EDNS.
    assert_eq!((report.dns_heard, report.dns_failed, report.names_held_since), (0, 3, at(100)));
    rig.command(at(200), Command::Clear(Cleared { sites: at(200), names: at(0) }));
    assert_eq!(rig.shard.network_report().names_held_since, at(100));
    rig.clear(at(200));
    assert_eq!(rig.shard.network_report().held_since, Instant::NEVER);
}

/// Some resolvers do not answer for the root.
#[test]
fn a_probe_asks_for_the_root_and_for_a_name_that_was_answered() {
    let mut rig = rig(0, |_| ());
    let name = stranger(&mut rig);
    let found = DnsAnswer::Addrs(vec!["192.0.2.7".parse().expect("an address")], Duration::from_secs(60), None);
    asked(&mut rig, at(0), &found);
    rig.shard.handle(at(10), Input::Command(Command::ProbeNames));
    assert_eq!(asked(&mut rig, at(10), &DnsAnswer::Refused), [String::new(), name]);
}

#[test]
fn who_answered_an_earlier_run_falls_silent() {
    let mut rig = rig(2, |_| ());
    let [answers, never] = <[FetchJob; 2]>::try_from(rig.begun()).expect("two");
    rig.shard.handle(at(10), response(&answers, 404, "", ""));
    rig.run(at(2_000));
    let page = rig.begun().remove(0);
    rig.shard.handle(at(2_100), response(&page, 200, "", "<a href=/next>"));
    rig.run(at(2_100));
    rig.enter(Phase::Close);
    let mut next = rig_of(2, rig.logs, |_| ());
    next.run(at(60_000));
    let replies = |rig: &mut Rig, now: u64| {
        for job in rig.begun() {
            rig.fail(at(now), &job, Failure::ConnectTimeout);
        }
        let ends: Vec<SiteEnd> = rig.shard.take_site_ends().collect();
        let reply = |job: &FetchJob| {
            let witness = Witness::new(1, job.url.host(), job.addr);
            ends.iter().find(|end| end.witness == witness).map(|end| end.reply)
        };
        (reply(&answers), reply(&never))
    };
    let both = (Some(SiteReply::FellSilent), Some(SiteReply::Silent));
    assert_eq!(replies(&mut next, 60_100), both);
    next.command(at(60_200), Command::Outage(OutOfReach::All));
    next.command(at(60_300), Command::Outage(OutOfReach::Nothing));
    next.run(at(90_000));
    assert_eq!(replies(&mut next, 90_100), both, "an outage changes nothing of that");
}

/// A page of links to nonexistent sites: they filled all slots and left none for sites that answer.
#[test]
fn failures_that_are_held_leave_the_places_to_others() {
    const HOSTS: usize = 40;
    let mut rig = rig(HOSTS, |config| config.fetch.in_flight_max = 4);
    let mut failed = 0;
    for round in 1..=HOSTS as u64 {
        for job in rig.begun() {
            rig.fail(at(round), &job, Failure::ConnectRefused);
            failed += 1;
        }
    }
    assert_eq!((failed, rig.shard.over(), rig.shard.stats().in_flight), (HOSTS, 0, 0));
    rig.clear(at(10_000));
    assert_eq!(rig.shard.network_report().held_since, Instant::NEVER, "all of them count");
}

#[test]
fn what_is_no_answer_of_a_site() {
    let mut rig = rig(2, |_| ());
    let jobs = rig.begun();
    rig.fail(at(10), &jobs[0], Failure::ProxyRefused);
    assert_eq!(rig.shard.take_site_ends().count(), 0, "the proxy said it");
    // A head that arrived is an answer, whatever happened to the body, and it ends an outage.
    rig.command(at(20), Command::Outage(OutOfReach::All));
    rig.shard.handle(at(100), response(&jobs[1], 200, "Content-Length: 100\r\n", "the beginning"));
    assert_eq!(rig.shard.take_site_ends().map(|end| end.reply).collect::<Vec<_>>(), [SiteReply::Answered]);
}

#[test]
fn a_rest_that_was_asked_for_outlives_an_outage() {
    for is_held in [true, false] {
        let mut rig = rig(1, |_| ());
        let robots = rig.begun().remove(0);
        if !is_held {
            rig.command(at(5), Command::Outage(OutOfReach::All));
        }
        let head = "Retry-After: 600\r\nContent-Length: 100\r\n";
        rig.shard.handle(at(10), response(&robots, 503, head, "overload"));
        rig.run(at(10));
        rig.command(at(20), Command::Outage(OutOfReach::All));
        rig.command(at(30), Command::Outage(OutOfReach::Nothing));
        rig.run(at(590_000));
        assert_eq!(rig.begun().len(), 0, "held: {is_held}");
        rig.run(at(610_000));
        assert_eq!(rig.begun().len(), 1, "held: {is_held}");
    }
}
