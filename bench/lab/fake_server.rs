//! The servers of the fake web: they answer requests, and they judge politeness.
//!
//! Decides: gaps are measured where a site's owner would measure them, by the arrival of requests at the server, and
//! not by what the crawler reports. Every violation is a line of [`FakeServers::complaints`].

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use super::fake_robots::RobotsKind;
use super::fake_web::{FakeWeb, PageKind};
use ringcrawl_base::Failure;
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_brain::job::{FetchJob, JobKind};
use ringcrawl_brain::outcome::{Fetched, Outcome};
use ringcrawl_brain::politeness::ClaimKey;
use ringcrawl_config::Group;
use ringcrawl_config::Operators;
use ringcrawl_config::{Config, Politeness};
use ringcrawl_robots::Rules;
use ringcrawl_url::{HashedUrls, Url, site_of};

/// Addresses that a name server returned, and until when they are valid.
type ToldAddrs = (Vec<IpAddr>, Instant);

/// All servers of a [`FakeWeb`].
#[derive(Debug)]
pub struct FakeServers {
    web: FakeWeb,
    politeness: Politeness,
    operators: Arc<Operators>,
    stale_max: Duration,
    /// How long the rules of a robots.txt may be used at most.
    robots_stale_max: Duration,
    tries: HashMap<String, u64>,
    hosts: BTreeMap<String, Meter>,
    addrs: BTreeMap<ClaimKey, Meter>,
    sites: BTreeMap<String, Meter>,
    /// By operator; each operator is one slot.
    groups: BTreeMap<Group, Meter>,
    /// Whether the last fetch of a file as a robots.txt succeeded, and when one last did.
    robots: BTreeMap<String, (bool, Option<Instant>)>,
    /// Until when a flaky robots.txt works.
    well_until: BTreeMap<String, Instant>,
    /// The last two answers that the name servers gave a shard.
    answers: BTreeMap<(usize, String, bool), [ToldAddrs; 2]>,
    /// Requests answered so far by a host that dies.
    lives: BTreeMap<String, u32>,
    /// 200 pages served completely, with counts.
    pub pages: BTreeMap<String, u64>,
    /// Violations that a site's owner would complain about.
    pub complaints: Vec<String>,
}

#[derive(Debug, Default)]
struct Meter {
    under_way: u32,
    /// The host of the latest request.
    by: String,
    last_end: Option<Instant>,
    /// The end of the pause that Retry-After asked for, and when it asked.
    not_before: Instant,
    asked_at: Instant,
}

impl FakeServers {
    /// Servers of these operators that expect the crawler to keep the delays of `config`, and to use addresses and
    /// rules no longer than it allows.
    pub fn new(web: FakeWeb, config: &Config, operators: Arc<Operators>) -> FakeServers {
        FakeServers {
            web,
            politeness: config.politeness.clone(),
            operators,
            stale_max: config.dns.stale_max,
            robots_stale_max: config.robots.ttl + config.robots.stale_max,
            tries: HashMap::new(),
            hosts: BTreeMap::new(),
            addrs: BTreeMap::new(),
            sites: BTreeMap::new(),
            groups: BTreeMap::new(),
            robots: BTreeMap::new(),
            well_until: BTreeMap::new(),
            answers: BTreeMap::new(),
            lives: BTreeMap::new(),
            pages: BTreeMap::new(),
            complaints: Vec::new(),
        }
    }

    /// Records a name server's answer: the addresses of a host in one family, for a shard, valid until the given
    /// instant.
    pub fn note_answer(&mut self, shard: usize, host: &str, is_v4: bool, addrs: Vec<IpAddr>, until: Instant) {
        // The previous answer stays valid until this one has arrived.
        let [last, _] = self.answers.remove(&(shard, host.to_owned(), is_v4)).unwrap_or_default();
        self.answers.insert((shard, host.to_owned(), is_v4), [(addrs, until), last]);
    }

    /// A request of a shard arrives.
    pub fn arrive(&mut self, shard: usize, at: Instant, job: &FetchJob) {
        let Some(addr) = job.addr else { return };
        let host = job.url.host();
        let past_its_time = self.stale_max + ON_ITS_WAY_MAX;
        let holds = |(addrs, until): &(Vec<IpAddr>, Instant)| addrs.contains(&addr) && at <= *until + past_its_time;
        let agreed = self.politeness.host.terms_of(host);
        // If several requests may run at once, a name may be looked up, and have moved, while a request is in flight.
        if agreed.concurrency == 1
            && !self
                .answers
                .get(&(shard, host.to_owned(), addr.is_ipv4()))
                .is_some_and(|answers| answers.iter().any(holds))
        {
            self.complaints.push(format!("{at:?} {} was asked at {addr}", job.url.as_str()));
        }
        let mut host_delay = agreed.delay.unwrap_or(self.politeness.host_delay);
        if job.kind == JobKind::Page {
            let crawl_delay_s = self.web.effective_robots(&job.url).kind.crawl_delay_s();
            host_delay = host_delay.max(Duration::from_secs(crawl_delay_s));
        }
        let several = u32::from(agreed.concurrency);
        let arrival = Arrival { at, host, several };
        arrival.check_own(self.hosts.entry(host.to_owned()).or_default(), host_delay, &mut self.complaints);
        if job.kind == JobKind::Page {
            self.check_robots(at, &job.url);
        }
        // The operator's own hosts have no claims.
        if agreed.is_mine {
            return;
        }
        let name = addr.to_string();
        let Politeness { ip_delay, site_delay, group_delay, .. } = self.politeness;
        arrival.check(self.addrs.entry(addr.into()).or_default(), ip_delay, &name, &mut self.complaints);
        let site = site_of(host);
        arrival.check(self.sites.entry(site.to_owned()).or_default(), site_delay, site, &mut self.complaints);
        if let Some(group) = self.operators.of_address(addr) {
            let name = self.operators.name(group);
            arrival.check(self.groups.entry(group).or_default(), group_delay, name, &mut self.complaints);
        }
    }

    /// The response is lost in transit, and the request ends.
    pub fn lose(&mut self, at: Instant, job: &FetchJob) {
        if let Some(addr) = job.addr {
            let group = self.operators.of_address(addr).and_then(|group| self.groups.get_mut(&group));
            let (host, site) = (job.url.host(), site_of(job.url.host()));
            let meters = [self.hosts.get_mut(host), self.sites.get_mut(site), self.addrs.get_mut(&addr.into()), group];
            let has_arrived = if self.politeness.host.terms_of(host).is_mine { 1 } else { meters.len() };
            for meter in meters.into_iter().take(has_arrived).flatten() {
                meter.under_way -= 1;
                meter.last_end = Some(at);
            }
        }
    }

    /// The response leaves.
    pub fn answer(&mut self, at: Instant, job: &FetchJob) -> Outcome {
        let host = job.url.host();
        self.lose(at, job);
        // A name may be looked up for one URL and then for another: a fault belongs to the name.
        let what = if job.kind == JobKind::Resolve { host } else { job.url.as_str() };
        let request = format!("{:?} {what}", job.kind);
        let failing = self.web.failing_tries(&request);
        let tries = self.tries.entry(request).or_default();
        *tries += 1;
        let tries = *tries;
        if job.kind != JobKind::Resolve && self.web.dies(host) {
            let lives = self.lives.entry(host.to_owned()).or_default();
            *lives += 1;
            if *lives > LIVES {
                return Outcome::Failed(Failure::ConnectRefused);
            }
        }
        // Name servers also fail now and then when an address is queried again.
        if tries <= failing || job.kind == JobKind::Resolve && failing > 0 && tries.is_multiple_of(5) {
            return self.fault(at, tries, job);
        }
        match job.kind {
            JobKind::Resolve => {
                let (addrs, ttl) = (self.web.addrs(host, at, job.both_families), self.web.ttl(host));
                if addrs.is_empty() {
                    return Outcome::NoAddress { ttl: self.web.ttl(host) };
                }
                Outcome::Resolved { addrs, ttl, is_half: false, alias: None }
            }
            JobKind::Robots => Outcome::Fetched(Fetched { addr: job.addr, ..self.robots(at, &job.url) }),
            JobKind::Page => Outcome::Fetched(Fetched { addr: job.addr, ..self.page(job) }),
        }
    }

    fn fault(&mut self, at: Instant, tries: u64, job: &FetchJob) -> Outcome {
        if job.kind == JobKind::Resolve {
            return Outcome::Failed([Failure::DnsTimeout, Failure::DnsFailed][tries as usize % 2]);
        }
        if job.kind == JobKind::Robots {
            self.note_robots(at, &job.url, false);
            self.well_until.insert(job.url.as_str().to_owned(), at + WELL_FOR);
        }
        let retry_after = self.web.retry_after(job.url.host());
        match (tries + job.url.as_str().len() as u64) % 5 {
            0 => Outcome::Failed(Failure::Reset),
            1 => Outcome::Failed(Failure::ConnectRefused),
            2 => Outcome::Failed(Failure::Deadline),
            3 => Outcome::Fetched(Fetched { status: 500, ..Fetched::default() }),
            _ => {
                if let (Some(meter), Some(wait)) = (self.hosts.get_mut(job.url.host()), retry_after) {
                    (meter.not_before, meter.asked_at) = (at + wait, at);
                }
                Outcome::Fetched(Fetched { status: 503, retry_after, ..Fetched::default() })
            }
        }
    }

    fn robots(&mut self, at: Instant, url: &Url) -> Fetched {
        let status = |status| Fetched { status, ..Fetched::default() };
        let answer = match self.web.robots(url) {
            RobotsKind::Missing => status(404),
            RobotsKind::Broken => status(500),
            RobotsKind::Flaky if self.is_broken(at, url) => status(500),
            RobotsKind::Moved(to) => Fetched { redirect: Url::parse(&to).ok(), ..status(301) },
            _ => Fetched { rules: Some(Rules::default()), ..status(200) },
        };
        self.note_robots(at, url, answer.status < 500);
        answer
    }

    /// Whether a flaky file is broken now: once, and not again until every host could have fetched it a second time.
    fn is_broken(&mut self, at: Instant, url: &Url) -> bool {
        let well_until = self.well_until.entry(url.as_str().to_owned()).or_default();
        let is_broken = at >= *well_until;
        if is_broken {
            *well_until = at + WELL_FOR;
        }
        is_broken
    }

    fn note_robots(&mut self, at: Instant, url: &Url, brought: bool) {
        let (last, when) = self.robots.entry(url.as_str().to_owned()).or_default();
        (*last, *when) = (brought, if brought { Some(at) } else { *when });
    }

    /// The crawler was killed and may have forgotten pauses requested within `unwritten` before that; returns how
    /// many pauses it must keep.
    pub fn forget_rests(&mut self, at: Instant, unwritten: Duration) -> u64 {
        let mut kept = 0;
        for meter in self.hosts.values_mut().filter(|meter| meter.not_before > at) {
            if at.since(meter.asked_at) <= unwritten {
                meter.not_before = at;
            } else {
                kept += 1;
            }
        }
        kept
    }

    /// The crawler restarts some time later: it no longer knows any robots.txt or address.
    pub fn crawler_restarts(&mut self) {
        self.robots.clear();
        self.answers.clear();
        // Requests of a killed crawler end when its connections break.
        let names = self.hosts.values_mut().chain(self.sites.values_mut());
        let machines = self.addrs.values_mut().chain(self.groups.values_mut());
        names.chain(machines).for_each(|meter| meter.under_way = 0);
    }

    fn page(&mut self, job: &FetchJob) -> Fetched {
        let mut links = HashedUrls::new();
        match self.web.page(&job.url) {
            PageKind::Page(targets) => {
                *self.pages.entry(job.url.as_str().to_owned()).or_default() += 1;
                for target in targets {
                    links.push(job.depth + 1, &target, 0);
                }
                Fetched { status: 200, links, ..Fetched::default() }
            }
            PageKind::Redirect(target) => {
                links.push(job.depth, &target, 0);
                Fetched { status: 302, links, redirect: Url::parse(&target).ok(), ..Fetched::default() }
            }
            PageKind::Missing => Fetched { status: 404, ..Fetched::default() },
        }
    }

    /// Checks that every file on the path was read. If there is no redirect, the last fetch must also have succeeded,
    /// or rules must have arrived recently: a file may be fetched for hosts that redirect to it while this host still
    /// uses its earlier version.
    fn check_robots(&mut self, at: Instant, url: &Url) {
        let robots = self.web.effective_robots(url);
        let is_own = robots.way.len() == 1;
        let mut brought = robots.way.iter().map(|url| self.robots.get(url.as_str()).copied().unwrap_or_default());
        let has_file = robots.kind != RobotsKind::Missing;
        let is_good = |when: Instant| has_file && at <= when + self.robots_stale_max + ON_ITS_WAY_MAX;
        let served =
            brought.all(|(last, when)| if is_own { last || when.is_some_and(is_good) } else { when.is_some() });
        let allowed = !robots.kind.forbids(url.path_and_query());
        if !served || !allowed {
            let way: Vec<&str> = robots.way.iter().map(Url::as_str).collect();
            self.complaints.push(format!("{at:?} {url} asked: served {served}, allowed {allowed}, {way:?}"));
        }
    }
}

/// An arriving request, of a host that may have several at once.
struct Arrival<'a> {
    at: Instant,
    host: &'a str,
    several: u32,
}

impl Arrival<'_> {
    /// Checks it against its own host.
    fn check_own(&self, meter: &mut Meter, delay: Duration, complaints: &mut Vec<String>) {
        if self.several == 1 {
            return self.check(meter, delay, self.host, complaints);
        }
        if meter.under_way >= self.several {
            complaints.push(format!("{:?} {}: more than {} at once", self.at, self.host, self.several));
        }
        // The crawler may not have known newer delays and pauses when it sent this request: the previous response was
        // still in flight.
        meter.under_way += 1;
    }

    /// Checks it against a site, an address or an operator. Requests of one host that may have several count as one
    /// visit.
    fn check(&self, meter: &mut Meter, delay: Duration, name: &str, complaints: &mut Vec<String>) {
        let Arrival { at, host, several } = *self;
        let is_of_visit = several > 1 && meter.under_way > 0 && meter.by == host;
        if meter.under_way > 0 && delay > Duration::ZERO && !is_of_visit {
            complaints.push(format!("{at:?} {name}: two requests at once, of {host} and {}", meter.by));
        }
        if let Some(gap) = meter.last_end.map(|end| at.since(end))
            && gap < delay
            && !(several > 1 && meter.by == host)
        {
            complaints.push(format!("{at:?} {name}: a gap of {gap:?} where {delay:?} was due"));
        }
        if at < meter.not_before {
            complaints.push(format!("{at:?} {name}: asked before {:?}, which Retry-After forbids", meter.not_before));
        }
        meter.under_way += 1;
        if meter.by != host {
            meter.by = host.to_owned();
        }
    }
}

/// Longer than Retry-After can delay a host, its own and that of others at its address.
const WELL_FOR: Duration = Duration::from_secs(2 * 86_400);
/// Number of requests that a host answers before it dies.
const LIVES: u32 = 5;
/// From the start of a request to its arrival.
const ON_ITS_WAY_MAX: Duration = Duration::from_millis(300);
