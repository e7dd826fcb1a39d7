//! The frontier alone, against servers and name servers that behave as badly as possible.

mod allowances;
mod blame;
mod blocks;
mod bounds;
mod budgets;
mod crowd;
mod health;
mod kind_rests;
mod kinds;
mod lines;
mod lookups;
mod names;
mod orders;
mod retries;
mod robots;
mod robots_redirects;
mod storms;
mod strangers;

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::*;
use crate::hops::Hops;
use crate::job::JobKind;
use crate::outcome::{Fetched, Outcome};
use crate::route::Partition;
use crate::spool::{ReadFor, SpoolOp};
use ringcrawl_base::Truncated;
use ringcrawl_base::time::{Duration, UnixTime};
use ringcrawl_config::Config;
use ringcrawl_robots::Rules;

/// A frontier with a clock and a disk. Jobs run one after the other. Each takes a millisecond, except ten seconds for
/// jobs without an answer and for hosts that drip, and twenty seconds for slow pages and for live pages that fail.
struct Bed {
    frontier: Frontier,
    spool: Spool,
    disk: BTreeMap<(u32, u32), Vec<u8>>,
    now: Instant,
    jobs: Vec<(Instant, FetchJob)>,
    settled: Vec<EndedUnfetched>,
    offered: u64,
}

impl Bed {
    fn new(change: impl FnOnce(&mut Config)) -> Bed {
        let mut config = Config::default();
        config.agent.name = "bed".to_owned();
        config.politeness.slow_start = 1;
        change(&mut config);
        Bed {
            frontier: Frontier::new(Settings::new(&config, Partition::by_site(1), 0, 7), Arc::new(Ledger::new(16))),
            spool: Spool::new(1 << 20),
            disk: BTreeMap::new(),
            now: Instant::ZERO,
            jobs: Vec::new(),
            settled: Vec::new(),
            offered: 0,
        }
    }

    fn offer(&mut self, url: &str) {
        let url = Url::parse(url).expect("a URL");
        let site = SiteKey::of_host(7, url.host());
        let ticket = self.ticket();
        self.frontier.offer(self.now, &url, site, ticket, &mut self.spool);
    }

    /// Only another site links to it.
    fn offer_of_strangers(&mut self, url: &str) {
        let url = Url::parse(url).expect("a URL");
        let ticket = Ticket { depth: Hops::default().link().bits(), ..self.ticket() };
        self.frontier.begin_strangers_links(SiteKey::of_host(7, "stranger.test"));
        self.frontier.offer(self.now, &url, SiteKey::of_host(7, url.host()), ticket, &mut self.spool);
        self.frontier.order.kinds.end_links();
    }

    /// The ticket of the next URL, which has a number of its own.
    fn ticket(&mut self) -> Ticket {
        self.offered += 1;
        Ticket { number: self.offered, ..Ticket::default() }
    }

    /// Runs until nothing is left to do, `jobs_max` jobs are done, or `seconds` have passed.
    fn run(&mut self, seconds: u64, jobs_max: usize, answer: &mut dyn FnMut(&FetchJob) -> Outcome) {
        let (end, jobs_max) = (self.now + Duration::from_secs(seconds), self.jobs.len() + jobs_max);
        while self.jobs.len() < jobs_max {
            while let Some(op) = self.spool.next_op() {
                match op {
                    SpoolOp::Write { block, bytes } => {
                        self.disk.insert((block.file, block.offset), bytes);
                    }
                    SpoolOp::Read { block } => {
                        let bytes = self.disk.remove(&(block.file, block.offset)).expect("a block");
                        let batch = WaitingUrls::from_bytes(bytes).expect("URLs");
                        match self.spool.finished_read(block) {
                            Some(ReadFor::Host(id)) => self.frontier.returned(self.now, id, batch),
                            Some(ReadFor::Outside(lane)) => self.frontier.queue.returned_outside(lane, batch),
                            purpose => panic!("a block for {purpose:?}"),
                        }
                    }
                    SpoolOp::Delete { .. } => {}
                }
            }
            self.frontier.review(self.now);
            let job = self.frontier.next_job(self.now, &mut self.spool);
            self.settled.extend(self.frontier.take_settled());
            if let Some(job) = job {
                let outcome = answer(&job);
                self.jobs.push((self.now, job.clone()));
                let is_silence = matches!(outcome, Outcome::Failed(Failure::ConnectTimeout))
                    || job.kind == JobKind::Page && job.url.host().starts_with("drip");
                let is_cut = matches!(&outcome, Outcome::Fetched(it) if it.truncated == Some(Truncated::Time));
                let is_bad = match &outcome {
                    Outcome::Fetched(fetched) => fetched.status >= 500,
                    _ => matches!(outcome, Outcome::Failed(_)),
                };
                let hangs = is_bad && job.url.path_and_query().starts_with("/live");
                let lasts = if is_silence { 10_000 } else { 1 }.max(if is_cut { 30_000 } else { 0 });
                let is_slow = job.url.path_and_query().starts_with("/slow");
                let lasts = if hangs || is_slow { 20_000 } else { lasts };
                self.now = self.now + Duration::from_millis(lasts);
                self.frontier.finish(self.now, &job, &outcome);
            } else if self.spool.is_quiet() {
                self.frontier.begin_turn(self.now);
                let review = self.frontier.review.is_going_on().then_some(Instant::ZERO);
                let Some(due) = review.or_else(|| self.frontier.next_due()) else { return };
                self.now = due.max(self.now + Duration::from_micros(1));
                if self.now > end {
                    return;
                }
            }
        }
    }

    fn count(&self, kind: JobKind) -> usize {
        self.jobs.iter().filter(|(_, job)| job.kind == kind).count()
    }

    fn pages(&self) -> Vec<&str> {
        let pages = self.jobs.iter().filter(|(_, job)| job.kind == JobKind::Page);
        pages.map(|(_, job)| job.url.as_str()).collect()
    }
}

/// One address; no robots.txt; pages without links.
fn well(job: &FetchJob) -> Outcome {
    match job.kind {
        JobKind::Resolve => Outcome::Resolved {
            addrs: vec![IpAddr::from([192, 0, 2, 1])],
            ttl: Duration::from_secs(300),
            is_half: false,
            alias: None,
        },
        JobKind::Robots => status(404),
        JobKind::Page => status(200),
    }
}

fn status(status: u16) -> Outcome {
    Outcome::Fetched(Fetched { status, ..Fetched::default() })
}

fn robots(text: &str) -> Outcome {
    Outcome::Fetched(Fetched {
        status: 200,
        rules: Some(Rules::parse(text.as_bytes(), "bed", 1 << 20)),
        ..Fetched::default()
    })
}

fn moved(to: &str) -> Outcome {
    Outcome::Fetched(Fetched { status: 301, redirect: Url::parse(to).ok(), ..Fetched::default() })
}

const HOUR: u64 = 3_600;

#[test]
fn names_that_live_for_no_time_are_fetched_all_the_same() {
    let mut bed = Bed::new(|_| ());
    (0..3).for_each(|number| bed.offer(&format!("http://a.test/{number}")));
    bed.run(HOUR, 1_000, &mut |job| match job.kind {
        JobKind::Resolve => Outcome::Resolved {
            addrs: vec![IpAddr::from([192, 0, 2, 1])],
            ttl: Duration::ZERO,
            is_half: false,
            alias: None,
        },
        _ => well(job),
    });
    assert_eq!(bed.count(JobKind::Page), 3, "{} jobs", bed.jobs.len());
}

/// With more ready hosts than are served within a TTL, each turn would find the last turn's answer too old.
#[test]
fn a_long_row_of_hosts_resolves_no_name_in_vain() {
    let mut bed = Bed::new(|config| {
        (config.politeness.site_delay, config.politeness.ip_delay) = (Duration::ZERO, Duration::ZERO)
    });
    (0..5_000).for_each(|number| bed.offer(&format!("http://h{number}.test/")));
    bed.run(HOUR, 20_000, &mut |job| match job.kind {
        JobKind::Resolve => Outcome::Resolved {
            addrs: vec![IpAddr::from([192, 0, 2, 1])],
            ttl: Duration::from_millis(1_100),
            is_half: false,
            alias: None,
        },
        _ => well(job),
    });
    assert_eq!(bed.count(JobKind::Page), 5_000, "{} names were asked for", bed.count(JobKind::Resolve));
}

#[test]
fn rules_are_used_once_however_long_the_delay() {
    let mut bed = Bed::new(|config| config.robots.ttl = Duration::from_secs(60));
    (0..3).for_each(|number| bed.offer(&format!("http://a.test/{number}")));
    bed.run(HOUR, 1_000, &mut |job| match job.kind {
        JobKind::Robots => robots("User-agent: *\nCrawl-delay: 60\nDisallow: /x"),
        _ => well(job),
    });
    assert_eq!(bed.count(JobKind::Page), 3, "{} times robots.txt", bed.count(JobKind::Robots));
    for pair in bed.jobs.windows(2).filter(|pair| pair[0].1.kind != JobKind::Resolve) {
        assert!(pair[1].0.since(pair[0].0) >= Duration::from_secs(60) || pair[1].1.kind == JobKind::Resolve);
    }
    // The hands learn of it, so that they keep no connection for it.
    let rests = bed.jobs.iter().filter(|(_, job)| job.kind == JobKind::Page).map(|(_, job)| job.rest);
    assert_eq!(rests.min(), Some(Duration::from_secs(60)));
}

#[test]
fn no_url_loses_its_tries_to_others() {
    let mut bed = Bed::new(|config| {
        config.politeness.host_delay = Duration::ZERO;
        (config.politeness.site_delay, config.politeness.ip_delay) = (Duration::ZERO, Duration::ZERO);
    });
    (0..2_000).for_each(|number| bed.offer(&format!("http://a.test/{number}")));
    let mut tries = BTreeMap::<String, u32>::new();
    bed.run(HOUR, 20_000, &mut |job| match job.kind {
        JobKind::Page => {
            let tries = tries.entry(job.url.as_str().to_owned()).or_default();
            *tries += 1;
            status(if *tries == 1 { 500 } else { 200 })
        }
        _ => well(job),
    });
    assert_eq!(tries.len(), 2_000);
    assert!(tries.values().all(|tries| *tries == 2));
    assert_eq!((bed.frontier.queued(), bed.frontier.ram_bytes()), (0, 0));
}

/// A host with an endless queue owns the robots.txt that another host waits for. It has no URLs of that origin.
#[test]
fn a_long_queue_does_not_hold_up_those_that_wait_for_robots() {
    let mut bed = Bed::new(|config| {
        (config.politeness.site_delay, config.politeness.ip_delay) = (Duration::ZERO, Duration::ZERO)
    });
    (0..1_000).for_each(|number| bed.offer(&format!("http://long.site.test/{number}")));
    bed.run(10, 5, &mut well);
    bed.offer("http://www.site.test/");
    bed.run(24 * HOUR, 20, &mut |job| match job.kind {
        JobKind::Robots if job.url.host() == "www.site.test" => moved("https://long.site.test/robots.txt"),
        _ => well(job),
    });
    assert!(bed.pages().contains(&"http://www.site.test/"), "{:?}", bed.pages());
}

/// The host to whose robots.txt another was redirected dies: that verdict is not final.
#[test]
fn a_dead_host_takes_no_other_with_it_for_ever() {
    let mut bed = Bed::new(|config| config.robots.ttl = Duration::from_secs(600));
    let mut dead = true;
    for round in 0..2 {
        bed.offer(&format!("http://www.site.test/{round}"));
        bed.run(HOUR, 1_000, &mut |job| match (job.kind, job.url.host()) {
            (JobKind::Resolve, "dead.site.test") if dead => Outcome::NoAddress { ttl: Duration::from_secs(HOUR) },
            (JobKind::Robots, "www.site.test") => moved("http://dead.site.test/robots.txt"),
            _ => well(job),
        });
        bed.now = bed.now + Duration::from_secs(2 * HOUR);
        dead = false;
    }
    assert_eq!(bed.pages(), ["http://www.site.test/1"]);
    assert!(bed.frontier.is_idle());
}

#[test]
fn a_torn_robots_txt_allows_nothing() {
    for truncated in [Truncated::Time, Truncated::Disconnect, Truncated::Unspecified, Truncated::Length] {
        let mut bed = Bed::new(|_| ());
        bed.offer("http://a.test/");
        bed.run(24 * HOUR, 1_000, &mut |job| match (job.kind, robots("User-agent: *\nDisallow: /x")) {
            (JobKind::Robots, Outcome::Fetched(fetched)) => {
                Outcome::Fetched(Fetched { truncated: Some(truncated), ..fetched })
            }
            _ => well(job),
        });
        assert!(bed.pages().is_empty(), "{truncated:?}");
        assert_eq!(bed.settled.len(), 1);
    }
    // A file longer than the required minimum is complete enough.
    let mut bed = Bed::new(|_| ());
    bed.offer("http://a.test/");
    bed.run(24 * HOUR, 1_000, &mut |job| match job.kind {
        JobKind::Robots => Outcome::Fetched(Fetched {
            status: 200,
            truncated: Some(Truncated::Length),
            rules: Some(Rules::default()),
            body_bytes: 512 << 10,
            ..Fetched::default()
        }),
        _ => well(job),
    });
    assert_eq!(bed.count(JobKind::Page), 1);
}

#[test]
fn a_dot_at_the_end_makes_no_second_host() {
    let mut bed = Bed::new(|config| {
        (config.politeness.site_delay, config.politeness.ip_delay) = (Duration::ZERO, Duration::ZERO)
    });
    for number in 0..5 {
        bed.offer(&format!("http://a.test/{number}"));
        bed.offer(&format!("http://a.test./{number}"));
        bed.offer(&format!("https://a.test./{number}"));
    }
    bed.run(HOUR, 1_000, &mut well);
    assert_eq!((bed.frontier.hosts(), bed.count(JobKind::Page)), (1, 15));
    let requests: Vec<Instant> =
        bed.jobs.iter().filter(|(_, job)| job.kind != JobKind::Resolve).map(|(at, _)| *at).collect();
    assert!(requests.windows(2).all(|pair| pair[1].since(pair[0]) >= Duration::from_secs(1)));
}

#[test]
fn links_to_odd_ports_do_not_close_a_host() {
    let mut bed = Bed::new(|_| ());
    (0..40).for_each(|port| bed.offer(&format!("http://a.test:{}/", 8_000 + port)));
    bed.run(HOUR, 1_000, &mut well);
    bed.offer("http://a.test/");
    bed.offer("https://a.test/");
    bed.run(HOUR, 1_000, &mut well);
    assert!(bed.pages().contains(&"http://a.test/") && bed.pages().contains(&"https://a.test/"));
    assert!(bed.pages().len() < 20);
}

/// A host's trap fills the memory: its queue goes to disk in pieces that fit into memory when they come back.
#[test]
fn a_long_queue_comes_back_in_pieces() {
    let ram_bytes_max = 1 << 20;
    let mut bed = Bed::new(|config| {
        config.frontier.ram_bytes_max = ram_bytes_max;
        config.politeness.host_delay = Duration::ZERO;
        (config.politeness.site_delay, config.politeness.ip_delay) = (Duration::ZERO, Duration::ZERO);
    });
    (0..60_000).for_each(|number| bed.offer(&format!("http://a.test/{number}/{}", "x".repeat(40))));
    assert!(bed.frontier.ram_bytes() <= ram_bytes_max);
    let mut ram_bytes_peak = 0;
    for _ in 0..61 {
        bed.run(HOUR, 1_000, &mut well);
        ram_bytes_peak = ram_bytes_peak.max(bed.frontier.ram_bytes());
    }
    assert_eq!(bed.count(JobKind::Page), 60_000);
    assert!(bed.disk.is_empty() && bed.frontier.ram_bytes() == 0);
    assert!(ram_bytes_peak <= ram_bytes_max);
    let number = |url: &&str| url.split('/').nth(3).and_then(|number| number.parse::<usize>().ok());
    let order: Vec<usize> = bed.pages().iter().filter_map(number).collect();
    assert!(order.is_sorted());
}

/// Hosts whose robots.txt is unavailable hold no more than the bound, however many they are.
#[test]
fn parked_urls_count_as_memory() {
    let ram_bytes_max = 1 << 20;
    let mut bed = Bed::new(|config| {
        config.frontier.ram_bytes_max = ram_bytes_max;
        config.frontier.host_head_urls = 1;
        (config.politeness.site_delay, config.politeness.ip_delay) = (Duration::ZERO, Duration::ZERO);
    });
    for number in 0..40_000 {
        bed.offer(&format!("http://h{}.test/{number}/{}", number % 50, "x".repeat(100)));
    }
    let mut answer = |job: &FetchJob| if job.kind == JobKind::Robots { status(500) } else { well(job) };
    for _ in 0..100 {
        bed.run(20, 10, &mut answer);
        let parked: u64 =
            bed.frontier.hosts.iter().flat_map(|host| &host.origins).map(|origin| origin.parked_bytes() as u64).sum();
        assert!(parked <= bed.frontier.ram_bytes(), "{parked} bytes parked of {}", bed.frontier.ram_bytes());
        assert!(bed.frontier.ram_bytes() <= ram_bytes_max + 50 * 40_000, "{}", bed.frontier.ram_bytes());
    }
    bed.run(240 * HOUR, 100_000, &mut answer);
    assert_eq!((bed.settled.len(), bed.frontier.queued(), bed.frontier.ram_bytes()), (40_000, 0, 0));
}

/// URLs that may not be requested end with that reason, and a TLS failure is not retried.
#[test]
fn what_keeps_robots_txt_away_has_a_name() {
    for (host, answer, why, tries) in [
        ("a", status(500), Failure::RobotsServerError, 3),
        ("b", status(429), Failure::RobotsServerError, 3),
        ("c", Outcome::Failed(Failure::FirstByteTimeout), Failure::RobotsUnreachable, 3),
        ("d", Outcome::Failed(Failure::TlsExpired), Failure::TlsExpired, 1),
        ("f", Outcome::Failed(Failure::TlsVersion), Failure::TlsVersion, 1),
        ("g", Outcome::Failed(Failure::TlsFailed), Failure::RobotsUnreachable, 3),
    ] {
        let mut bed = Bed::new(|config| config.robots.retries_max = 2);
        // `e` gets its robots.txt from the other host: for `e`, that one is unreachable whatever the reason.
        bed.offer(&format!("https://{host}.site.test/"));
        bed.offer("https://e.site.test/");
        bed.run(HOUR, 1_000, &mut |job| match (job.kind, job.url.host()) {
            (JobKind::Robots, "e.site.test") => moved(&format!("https://{host}.site.test/robots.txt")),
            (JobKind::Robots, _) => answer.clone(),
            _ => well(job),
        });
        let name = format!("{host}.site.test");
        let asked = bed.jobs.iter().filter(|(_, job)| job.kind == JobKind::Robots && job.url.host() == name);
        assert_eq!((bed.count(JobKind::Page), asked.count()), (0, tries), "{host}");
        let ends: BTreeMap<&str, Failure> = bed.settled.iter().map(|end| (end.url.host(), end.failure)).collect();
        let of_other = if why.is_of_tls() { Failure::RobotsUnreachable } else { why };
        assert_eq!(ends, BTreeMap::from([(name.as_str(), why), ("e.site.test", of_other)]));
    }
}
