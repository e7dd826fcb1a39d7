//! Hosts with lines of their own (`politeness.host`), checked by an observer that knows the lines and sees only the
//! requests.

use std::collections::{BTreeSet, HashMap};

use super::*;
use crate::waits::Waits;
use ringcrawl_base::Rng;
use ringcrawl_base::time::UnixTime;

/// The agreement for a host, as the observer knows it.
#[derive(Clone, Copy)]
struct Agreed {
    delay: u64,
    concurrency: usize,
    is_mine: bool,
    /// The first hour, and the number of hours.
    hours: Option<(u64, u64)>,
}

/// What the observer saw at a host, a site or an address: which hosts are there, and when which host left last.
#[derive(Default)]
struct Seen {
    there: Vec<String>,
    last_begin: HashMap<String, Instant>,
    last_end: HashMap<String, Instant>,
}

impl Seen {
    /// The least time since a request of `host` alone, or of all, ended.
    fn since_end(&self, now: Instant, host: Option<&str>) -> Option<Duration> {
        let ends = self.last_end.iter().filter(|(name, _)| host.is_none_or(|host| *name == host));
        ends.map(|(_, at)| now.since(*at)).min()
    }
}

struct Observer {
    agreed: HashMap<String, Agreed>,
    delays: [Duration; 2],
    epoch_seconds: u64,
    /// By "host …", "site …" and "addr …".
    seen: HashMap<String, Seen>,
    preparing: BTreeSet<String>,
    robots: HashMap<String, u64>,
    not_before: HashMap<String, Instant>,
    flying: BTreeSet<String>,
    most_at_once: usize,
}

impl Observer {
    /// The keys of its site and address; none for the operator's own host.
    fn keys(&self, job: &FetchJob) -> Vec<(String, Duration)> {
        let host = job.url.host();
        if self.agreed[host].is_mine {
            return Vec::new();
        }
        let site = host.rsplit('.').take(2).collect::<Vec<_>>().join(".");
        let [site_delay, ip_delay] = self.delays;
        vec![(format!("site {site}"), site_delay), (format!("addr {:?}", job.addr), ip_delay)]
    }

    fn begins(&mut self, now: Instant, job: &FetchJob) {
        let host = job.url.host().to_owned();
        // An old address may serve while the name is looked up: once.
        if job.kind == JobKind::Resolve {
            assert!(self.preparing.insert(format!("name of {host}")), "{now:?} {job:?} twice at once");
            return;
        }
        assert!(!self.preparing.contains(&host), "{now:?} {job:?} beside a robots.txt");
        if job.kind != JobKind::Page {
            self.preparing.insert(host.clone());
        }
        assert!(self.flying.insert(job.url.as_str().to_owned()), "{} twice at once", job.url);
        let agreed = self.agreed[&host];
        let crawl_delay = self.robots.get(&host).copied();
        assert!(job.kind == JobKind::Robots || crawl_delay.is_some(), "{} before its robots.txt", job.url);
        if let Some((first, count)) = agreed.hours {
            let hour = (self.epoch_seconds + now.as_nanos() / 1_000_000_000) / 3_600 % 24;
            assert!((hour + 24 - first) % 24 < count, "{now:?} {host} at {hour}, from {first} on {count} hours");
        }
        let rest = self.not_before.get(&host).copied().unwrap_or_default();
        assert!(now >= rest, "{now:?} {host} is to be left alone until {rest:?}");
        let delay = Duration::from_millis(agreed.delay).max(Duration::from_secs(crawl_delay.unwrap_or(0)));
        let own = self.seen.entry(format!("host {host}")).or_default();
        let there = own.there.len();
        assert!(there < agreed.concurrency, "{now:?} {host}: {there} are there of {}", agreed.concurrency);
        let gaps = [own.since_end(now, None), own.last_begin.get(&host).map(|at| now.since(*at))];
        for gap in gaps.into_iter().flatten() {
            assert!(gap >= delay, "{now:?} {host}: a gap of {gap:?} where {delay:?} is due");
        }
        self.most_at_once = self.most_at_once.max(there + 1);
        own.there.push(host.clone());
        own.last_begin.insert(host.clone(), now);
        for (key, delay) in self.keys(job) {
            let seen = self.seen.entry(key.clone()).or_default();
            if delay > Duration::ZERO {
                assert!(seen.there.iter().all(|other| *other == host), "{now:?} {key}: {host} beside {:?}", seen.there);
                // One visit has one delay behind it.
                if seen.there.is_empty() {
                    let gap = seen.since_end(now, None).unwrap_or(Duration::MAX);
                    assert!(gap >= delay, "{now:?} {key}: {host} after {gap:?} where {delay:?} is due");
                }
            }
            seen.there.push(host.clone());
        }
    }

    fn ends(&mut self, now: Instant, job: &FetchJob, outcome: &Outcome) {
        let host = job.url.host().to_owned();
        self.flying.remove(job.url.as_str());
        for key in self.keys(job).into_iter().map(|(key, _)| key).chain([format!("host {host}")]) {
            let seen = self.seen.get_mut(&key).expect("it began");
            seen.there.swap_remove(seen.there.iter().position(|other| *other == host).expect("it began"));
            seen.last_end.insert(host.clone(), now);
        }
        if let Outcome::Fetched(Fetched { retry_after: Some(asked), .. }) = outcome {
            let rest = self.not_before.entry(host).or_default();
            *rest = (*rest).max(now + *asked);
        }
    }
}

/// Blocks by file and offset.
type Disk = BTreeMap<(u32, u32), Vec<u8>>;

/// Shards that share a clock, a disk and a ledger.
struct Bench {
    shards: Vec<(Frontier, Spool, Disk)>,
    rng: Rng,
    now: Instant,
    places: usize,
    /// The end time, the shard, and whether it is held back.
    flying: Vec<(Instant, usize, FetchJob, Outcome, bool)>,
    observer: Observer,
    over: BTreeMap<String, usize>,
    offered: BTreeSet<String>,
    crawl_delays: HashMap<String, u64>,
    page_millis: u64,
    /// All hosts are at one address, and answer well.
    is_calm: bool,
}

impl Bench {
    fn new(seed: u64) -> Bench {
        let mut rng = Rng::new(seed);
        let mut config = Config::default();
        let pick = |rng: &mut Rng, choices: &[u64]| Duration::from_millis(*rng.pick(choices));
        config.politeness.host_delay = pick(&mut rng, &[0, 500]);
        config.politeness.site_delay = pick(&mut rng, &[0, 50, 200]);
        config.politeness.ip_delay = pick(&mut rng, &[0, 20, 100]);
        config.politeness.slow_start = *rng.pick(&[1, 2]);
        config.politeness.retry_delay = pick(&mut rng, &[100, 10_000]);
        config.frontier.ram_bytes_max = *rng.pick(&[0, 1 << 30]);
        config.frontier.hosts_max = *rng.pick(&[2, 1 << 20]);
        config.frontier.host_head_urls = 1 + rng.index(8);
        config.fetch.in_flight_max = 4 + rng.index(60);
        config.dns.in_flight_max = 1 + rng.index(4);
        let (mut agreed, mut lines, mut crawl_delays) = (HashMap::new(), String::new(), HashMap::new());
        for host in hosts() {
            let usual = config.politeness.host_delay.as_millis() as u64;
            let mut own = Agreed { delay: usual, concurrency: 1, is_mine: false, hours: None };
            if rng.percent(60) {
                own.concurrency = *rng.pick(&[1, 2, 5, 64]);
                own.is_mine = rng.percent(30);
                let mut line =
                    format!("{{ match = '{host}', mine = {}, concurrency = {}", own.is_mine, own.concurrency);
                own.delay = if own.is_mine { 0 } else { usual };
                if rng.percent(70) {
                    own.delay = *rng.pick(&[0, 0, 100, 2_000]);
                    line += &format!(", delay = '{}ms'", own.delay);
                }
                if rng.percent(30) {
                    let (first, count) = (rng.below(24), 1 + rng.below(22));
                    own.hours = Some((first, count));
                    line += &format!(", hours = '{first:02}:00-{:02}:00'", (first + count) % 24);
                }
                lines += &(line + " }, ");
            }
            agreed.insert(host.clone(), own);
            crawl_delays.insert(host, *rng.pick(&[0, 0, 0, 3]));
        }
        let page_millis = *rng.pick(&[5, 500, 4_000]);
        Bench { crawl_delays, page_millis, ..Bench::of(config, &lines, agreed, rng) }
    }

    /// Two shards of a crawl with these lines; returns the observer's findings.
    fn of(mut config: Config, lines: &str, agreed: HashMap<String, Agreed>, mut rng: Rng) -> Bench {
        config.agent.name = "bed".to_owned();
        config.set("politeness.host", &format!("[{lines}]")).expect("lines");
        let epoch_seconds = 1_800_000_000 + rng.below(86_400);
        let ledger = Arc::new(Ledger::new(1 << 10));
        let partition = Partition::by_site(2);
        let shard = |index| {
            let settings = Settings::new(&config, partition.clone(), index, 7);
            let epoch = UnixTime::from_micros(epoch_seconds * 1_000_000);
            let settings = settings.by(WallClock::reading(Instant::ZERO, epoch));
            (Frontier::new(settings, Arc::clone(&ledger)), Spool::new(1 << 20), BTreeMap::new())
        };
        Bench {
            shards: (0..2).map(shard).collect(),
            now: Instant::ZERO,
            places: config.fetch.in_flight_max,
            flying: Vec::new(),
            observer: Observer {
                agreed,
                delays: [config.politeness.site_delay, config.politeness.ip_delay],
                epoch_seconds,
                seen: HashMap::new(),
                preparing: BTreeSet::new(),
                robots: HashMap::new(),
                not_before: HashMap::new(),
                flying: BTreeSet::new(),
                most_at_once: 0,
            },
            over: BTreeMap::new(),
            offered: BTreeSet::new(),
            crawl_delays: HashMap::new(),
            page_millis: 0,
            is_calm: false,
            rng,
        }
    }

    fn offer(&mut self, text: &str) {
        let url = Url::parse(text).expect("a URL");
        let site = SiteKey::of_host(7, url.host());
        // Sites 0 and 2 are the first shard's.
        let shard = usize::from(url.host().contains("s1.") || url.host().contains("s3."));
        let (frontier, spool, _) = &mut self.shards[shard];
        if self.offered.insert(text.to_owned()) {
            frontier.offer(self.now, &url, site, Ticket::default(), spool);
        }
    }

    fn outcome(&mut self, job: &FetchJob) -> (Outcome, u64) {
        let host = job.url.host();
        if self.is_calm {
            return (well(job), self.page_millis);
        }
        let millis = 1 + self.rng.below(self.page_millis);
        match job.kind {
            JobKind::Resolve => {
                // Some names live for a short time, and some move.
                let ttl = Duration::from_secs(*self.rng.pick(&[1, 60, 86_400]));
                let addr = if self.rng.percent(10) { 9 } else { host.len() as u8 + host.as_bytes()[1] % 3 };
                let addrs = vec![IpAddr::from([192, 0, 2, addr])];
                let failed = Outcome::Failed(Failure::DnsTimeout);
                let resolved = Outcome::Resolved { addrs, ttl, is_half: false, alias: None };
                (if self.rng.percent(5) { failed } else { resolved }, millis)
            }
            JobKind::Robots if self.rng.percent(10) && !self.observer.robots.contains_key(host) => {
                (status(500), millis)
            }
            JobKind::Robots => {
                let crawl_delay = self.crawl_delays[host];
                (robots(&format!("User-agent: *\nDisallow: /no\nCrawl-delay: {crawl_delay}\n")), millis)
            }
            JobKind::Page => match self.rng.below(100) {
                0..4 => (status(500), millis),
                4..6 => (status(429), millis),
                6..8 => {
                    let retry_after = Some(Duration::from_secs(self.rng.below(100)));
                    (Outcome::Fetched(Fetched { status: 503, retry_after, ..Fetched::default() }), millis)
                }
                8..10 => (Outcome::Failed(Failure::Reset), millis),
                10..12 => (Outcome::Failed(Failure::ConnectTimeout), 10_000),
                12..13 => (Outcome::Failed(Failure::Deadline), 60_000),
                _ => (status(200), millis),
            },
        }
    }

    fn end_due(&mut self) {
        while let Some(index) = self.flying.iter().position(|flight| flight.0 <= self.now) {
            let (_, shard, job, outcome, is_held) = self.flying.swap_remove(index);
            let frontier = &mut self.shards[shard].0;
            if !is_held && job.kind != JobKind::Resolve {
                self.observer.ends(self.now, &job, &outcome);
                if matches!(outcome, Outcome::Failed(_)) && self.rng.percent(50) {
                    frontier.slots.fetch_slots.got_no_response(self.now, job.id);
                    frontier.is_held_back(self.now, &job);
                    let until = self.now + Duration::from_millis(self.rng.below(5_000));
                    self.flying.push((until, shard, job, outcome, true));
                    continue;
                }
            }
            match job.kind {
                JobKind::Resolve => self.observer.preparing.remove(&format!("name of {}", job.url.host())),
                _ => self.observer.preparing.remove(job.url.host()),
            };
            if job.kind == JobKind::Robots && matches!(outcome, Outcome::Fetched(Fetched { status: 200 | 404, .. })) {
                let crawl_delay = self.crawl_delays.get(job.url.host()).copied().unwrap_or_default();
                self.observer.robots.insert(job.url.host().to_owned(), crawl_delay);
            }
            let end = frontier.finish(self.now, &job, &outcome);
            if end == End::Over {
                *self.over.entry(job.url.as_str().to_owned()).or_default() += 1;
                if let Some(number) = job.url.as_str().rsplit('/').next().and_then(|text| text.parse::<u64>().ok())
                    && number < 40
                {
                    self.offer(&format!("http://{}/{}", job.url.host(), number + 20));
                }
            }
        }
    }

    fn run(&mut self, seconds: u64) {
        let end = self.now + Duration::from_secs(seconds);
        while self.now < end {
            self.end_due();
            let mut next: Option<Instant> = self.flying.iter().map(|flight| flight.0).min();
            // Neither always looks first.
            let first = self.rng.index(self.shards.len());
            for shard in (0..self.shards.len()).map(|shard| (shard + first) % 2) {
                self.serve_disk(shard);
                let is_fetch = |flight: &&(Instant, usize, FetchJob, Outcome, bool)| {
                    flight.1 == shard && flight.2.kind != JobKind::Resolve && !flight.4
                };
                while self.flying.iter().filter(is_fetch).count() < self.places {
                    let (frontier, spool, _) = &mut self.shards[shard];
                    let job = frontier.next_job(self.now, spool);
                    for settled in frontier.take_settled() {
                        *self.over.entry(settled.url.as_str().to_owned()).or_default() += 1;
                    }
                    let Some(job) = job else { break };
                    self.observer.begins(self.now, &job);
                    let (outcome, millis) = self.outcome(&job);
                    let ends = self.now + Duration::from_millis(millis);
                    let ends = if job.kind == JobKind::Resolve { ends } else { ends.min(job.deadline) };
                    next = Some(next.map_or(ends, |next| next.min(ends)));
                    self.flying.push((ends, shard, job, outcome, false));
                }
                let is_full = self.flying.iter().filter(is_fetch).count() >= self.places;
                let (frontier, spool, _) = &mut self.shards[shard];
                frontier.begin_turn(self.now);
                // A slow recount to compare with: each host in turn.
                let mut waits = Waits::default();
                frontier.hosts.iter().for_each(|host| waits.changed(None, host.wait));
                assert_eq!(waits, frontier.awaited());
                let due = if spool.is_quiet() { frontier.next_due().filter(|_| !is_full) } else { Some(self.now) };
                next = next.into_iter().chain(due).min();
            }
            let Some(next) = next else { return };
            self.now = next.max(self.now + Duration::from_micros(1 + self.rng.below(200)));
        }
    }

    fn serve_disk(&mut self, shard: usize) {
        let (frontier, spool, disk) = &mut self.shards[shard];
        while let Some(op) = spool.next_op() {
            match op {
                SpoolOp::Write { block, bytes } => drop(disk.insert((block.file, block.offset), bytes)),
                SpoolOp::Read { block } => {
                    let bytes = disk.remove(&(block.file, block.offset)).expect("a block");
                    let batch = WaitingUrls::from_bytes(bytes).expect("URLs");
                    match spool.finished_read(block) {
                        Some(ReadFor::Host(id)) => frontier.returned(self.now, id, batch),
                        Some(ReadFor::Outside(lane)) => frontier.queue.returned_outside(lane, batch),
                        purpose => panic!("a block for {purpose:?}"),
                    }
                }
                SpoolOp::Delete { .. } => {}
            }
        }
    }
}

/// Three hosts of each of four sites.
fn hosts() -> Vec<String> {
    (0..12).map(|number| format!("h{number}.s{}.test", number % 4)).collect()
}

/// Draws lines, delays, bounds, responses; no bound is violated, and each URL ends once.
#[test]
fn no_host_is_asked_otherwise_than_agreed_and_nothing_is_lost() {
    let seeds: Vec<u64> = match std::env::var("LINES_SEED") {
        Ok(seed) => vec![seed.parse().expect("a number")],
        Err(_) => (1..=6).collect(),
    };
    let (mut at_once, mut requests) = (BTreeMap::<usize, usize>::new(), 0);
    for seed in seeds {
        eprintln!("LINES_SEED={seed}");
        let mut bench = Bench::new(seed);
        for round in 0..20 {
            hosts().iter().for_each(|host| bench.offer(&format!("http://{host}/{round}")));
        }
        bench.offer("http://h3.s3.test/no");
        // Some have an hour a day.
        bench.run(30 * 24 * HOUR);
        let lost: Vec<&String> = bench.offered.iter().filter(|url| bench.over.get(*url) != Some(&1)).collect();
        assert!(lost.is_empty() && bench.over.len() == bench.offered.len(), "{lost:?} at {:?}", bench.now);
        for (frontier, _, disk) in &bench.shards {
            assert!(frontier.is_idle() && frontier.queued() == 0 && frontier.ram_bytes() == 0 && disk.is_empty());
            assert!(frontier.hosts.iter().all(|host| host.under_way.jobs() == 0));
        }
        *at_once.entry(bench.observer.most_at_once).or_default() += 1;
        requests += bench.over.len();
    }
    eprintln!("{requests} URLs; most requests at once: {at_once:?}");
    assert!(at_once.len() < 2 || at_once.keys().any(|most| *most > 5), "several go at once: {at_once:?}");
}

/// A host that may have four requests at once has an endless supply of URLs; another host at its address, of this
/// shard or the other one, still gets its turns.
#[test]
fn a_visit_leaves_turns_to_others() {
    for other in ["h2.s2.test", "h1.s1.test"] {
        let mut config = Config::default();
        config.politeness.site_delay = Duration::ZERO;
        let alone = Agreed { delay: 1_000, concurrency: 1, is_mine: false, hours: None };
        let agreed = HashMap::from([
            ("h0.s0.test".to_owned(), Agreed { delay: 0, concurrency: 4, is_mine: false, hours: None }),
            (other.to_owned(), alone),
        ]);
        let line = "{ match = 'h0.s0.test', delay = '0s', concurrency = 4 }";
        let mut bench = Bench { page_millis: 500, is_calm: true, ..Bench::of(config, line, agreed, Rng::new(1)) };
        (100..5_100).for_each(|number| bench.offer(&format!("http://h0.s0.test/{number}")));
        bench.run(100);
        assert!(bench.over.len() > 600 && bench.observer.most_at_once == 4, "{} pages", bench.over.len());
        (100..120).for_each(|number| bench.offer(&format!("http://{other}/{number}")));
        bench.run(500);
        let of_other = bench.over.keys().filter(|url| url.contains(other)).count();
        assert_eq!(of_other, 20, "{other}, beside {} pages", bench.over.len() - of_other);
        eprintln!("{other} beside {} pages", bench.over.len() - of_other);
    }
}
