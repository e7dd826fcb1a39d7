//! The servers of the fake web: they answer, and they are the judge of politeness.
//!
//! Decides: gaps are measured where a site's owner would, by the arrival of requests at the server, not by
//! the crawler's word. Every violation is a line of [`FakeServers::complaints`].

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use super::fake_web::{FakeWeb, PageKind, RobotsKind};
use crate::outcome::{Failure, FetchJob, Fetched, JobKind, Outcome};
use crate::time::{Duration, Instant};
use crate::url::{Scheme, Url, UrlBatch};

/// All servers of a [`FakeWeb`].
#[derive(Debug)]
pub struct FakeServers {
    web: FakeWeb,
    host_delay: Duration,
    ip_delay: Duration,
    stale_max: Duration,
    tries: HashMap<String, u64>,
    hosts: BTreeMap<String, Meter>,
    addrs: BTreeMap<IpAddr, Meter>,
    /// Whether the last request for an origin's robots.txt brought something that allows anything.
    robots: BTreeMap<String, bool>,
    /// What the name servers said last, and until when it holds.
    answers: BTreeMap<(String, bool), (Vec<IpAddr>, Instant)>,
    /// Requests that a host that dies has answered.
    lives: BTreeMap<String, u32>,
    /// 200 pages served whole, with how often.
    pub pages: BTreeMap<String, u64>,
    /// What a site's owner would complain about.
    pub complaints: Vec<String>,
}

#[derive(Debug, Default)]
struct Meter {
    under_way: u32,
    last_end: Option<Instant>,
    /// What Retry-After asked for.
    not_before: Instant,
}

impl FakeServers {
    /// Servers that expect these delays to be kept, and addresses to be used no longer than `stale_max` after their time.
    pub fn new(web: FakeWeb, host_delay: Duration, ip_delay: Duration, stale_max: Duration) -> FakeServers {
        FakeServers {
            web,
            host_delay,
            ip_delay,
            stale_max,
            tries: HashMap::new(),
            hosts: BTreeMap::new(),
            addrs: BTreeMap::new(),
            robots: BTreeMap::new(),
            answers: BTreeMap::new(),
            lives: BTreeMap::new(),
            pages: BTreeMap::new(),
            complaints: Vec::new(),
        }
    }

    /// A name server named the addresses of a host in one family; that holds until the instant given.
    pub fn note_answer(&mut self, host: &str, is_v4: bool, addrs: Vec<IpAddr>, until: Instant) {
        self.answers.insert((host.to_owned(), is_v4), (addrs, until));
    }

    /// A request arrives.
    pub fn arrive(&mut self, at: Instant, job: &FetchJob) {
        let Some(addr) = job.addr else { return };
        let host = job.url.host();
        let past_its_time = self.stale_max + ON_ITS_WAY_MAX;
        let holds = |(addrs, until): &(Vec<IpAddr>, Instant)| addrs.contains(&addr) && at <= *until + past_its_time;
        if !self.answers.get(&(host.to_owned(), addr.is_ipv4())).is_some_and(holds) {
            self.complaints.push(format!("{at:?} {} was asked at {addr}", job.url.as_str()));
        }
        let mut host_delay = self.host_delay;
        if let (JobKind::Page, Some(RobotsKind::Rules { crawl_delay_s })) = (job.kind, self.web.effective_robots(host))
        {
            host_delay = host_delay.max(Duration::from_secs(crawl_delay_s));
        }
        check(self.hosts.entry(host.to_owned()).or_default(), at, host_delay, host, &mut self.complaints);
        let name = addr.to_string();
        check(self.addrs.entry(addr).or_default(), at, self.ip_delay, &name, &mut self.complaints);
        if job.kind == JobKind::Page {
            self.check_robots(at, &job.url);
        }
    }

    /// The answer leaves.
    pub fn answer(&mut self, at: Instant, job: &FetchJob) -> Outcome {
        let host = job.url.host();
        if let Some(addr) = job.addr {
            for meter in [self.hosts.get_mut(host), self.addrs.get_mut(&addr)].into_iter().flatten() {
                meter.under_way -= 1;
                meter.last_end = Some(at);
            }
        }
        // A name is asked for on behalf of one URL and then of another: its fault is the name's.
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
        // Name servers fail now and then, too, when an address is asked for again.
        if tries <= failing || job.kind == JobKind::Resolve && failing > 0 && tries.is_multiple_of(5) {
            return self.fault(at, tries, job);
        }
        match job.kind {
            JobKind::Resolve => {
                let (addrs, ttl) = (self.web.addrs(host, at, job.both_families), self.web.ttl(host));
                if addrs.is_empty() {
                    return Outcome::NoAddress { ttl: self.web.ttl(host) };
                }
                Outcome::Resolved { addrs, ttl }
            }
            JobKind::Robots => Outcome::Fetched(Fetched { addr: job.addr, ..self.robots(&job.url, tries) }),
            JobKind::Page => Outcome::Fetched(Fetched { addr: job.addr, ..self.page(job) }),
        }
    }

    fn fault(&mut self, at: Instant, tries: u64, job: &FetchJob) -> Outcome {
        if job.kind == JobKind::Resolve {
            return Outcome::Failed([Failure::DnsTimeout, Failure::DnsFailed][tries as usize % 2]);
        }
        if job.kind == JobKind::Robots {
            self.robots.insert(job.url.origin().to_owned(), false);
        }
        let retry_after = self.web.retry_after(job.url.host());
        match (tries + job.url.as_str().len() as u64) % 5 {
            0 => Outcome::Failed(Failure::Reset),
            1 => Outcome::Failed(Failure::ConnectRefused),
            2 => Outcome::Failed(Failure::Deadline),
            3 => Outcome::Fetched(Fetched { status: 500, ..Fetched::default() }),
            _ => {
                if let Some(meter) = self.hosts.get_mut(job.url.host()) {
                    meter.not_before = at + retry_after;
                }
                Outcome::Fetched(Fetched { status: 503, retry_after: Some(retry_after), ..Fetched::default() })
            }
        }
    }

    fn robots(&mut self, url: &Url, tries: u64) -> Fetched {
        let host = url.host();
        let rules = |crawl_delay_s| Fetched {
            status: 200,
            robots_body: Some(FakeWeb::robots_text(crawl_delay_s).into_bytes()),
            ..Fetched::default()
        };
        let moved = |to: String| Fetched { status: 301, redirect: Url::parse(&to).ok(), ..Fetched::default() };
        let answer = match self.web.robots(host) {
            RobotsKind::Rules { crawl_delay_s } => rules(crawl_delay_s),
            RobotsKind::Flaky if tries.is_multiple_of(2) => rules(0),
            RobotsKind::Missing => Fetched { status: 404, ..Fetched::default() },
            RobotsKind::Broken | RobotsKind::Flaky => Fetched { status: 500, ..Fetched::default() },
            RobotsKind::Moved => {
                let first = self.web.first_host(host);
                moved(format!("{}://{first}/robots.txt", self.web.scheme(&first, 0)))
            }
            RobotsKind::Circle => {
                let other = if url.scheme() == Scheme::Http { "https" } else { "http" };
                moved(format!("{other}://{host}/robots.txt"))
            }
        };
        self.robots.insert(url.origin().to_owned(), answer.status < 500);
        answer
    }

    /// The crawler begins anew, a while later: it knows no robots.txt and no address any more.
    pub fn crawler_restarts(&mut self) {
        self.robots.clear();
        self.answers.clear();
        // Requests of a crawler that was killed end when its connections break.
        self.hosts.values_mut().chain(self.addrs.values_mut()).for_each(|meter| meter.under_way = 0);
    }

    fn page(&mut self, job: &FetchJob) -> Fetched {
        let mut links = UrlBatch::new();
        match self.web.page(&job.url) {
            PageKind::Page(targets) => {
                *self.pages.entry(job.url.as_str().to_owned()).or_default() += 1;
                for target in targets {
                    links.push(job.depth + 1, &target);
                }
                Fetched { status: 200, links, ..Fetched::default() }
            }
            PageKind::Redirect(target) => {
                links.push(job.depth, &target);
                Fetched { status: 302, links, redirect: Url::parse(&target).ok(), ..Fetched::default() }
            }
            PageKind::Missing => Fetched { status: 404, ..Fetched::default() },
        }
    }

    fn check_robots(&mut self, at: Instant, url: &Url) {
        let served = self.robots.get(url.origin()) == Some(&true);
        let allowed = match self.web.effective_robots(url.host()) {
            None => false,
            Some(RobotsKind::Rules { .. }) => !url.path_and_query().starts_with("/private/"),
            Some(_) => true,
        };
        if !served || !allowed {
            self.complaints.push(format!("{at:?} {} asked: robots.txt had {served}, allowed {allowed}", url.as_str()));
        }
    }
}

fn check(meter: &mut Meter, at: Instant, delay: Duration, name: &str, complaints: &mut Vec<String>) {
    if meter.under_way > 0 && delay > Duration::ZERO {
        complaints.push(format!("{at:?} {name}: two requests at once"));
    }
    if let Some(gap) = meter.last_end.map(|end| at.since(end))
        && gap < delay
    {
        complaints.push(format!("{at:?} {name}: a gap of {gap:?} where {delay:?} was due"));
    }
    if at < meter.not_before {
        complaints.push(format!("{at:?} {name}: asked before {:?}, which Retry-After forbids", meter.not_before));
    }
    meter.under_way += 1;
}

/// Requests that a host answers before it dies.
const LIVES: u32 = 5;
/// From the start of a request to its arrival.
const ON_ITS_WAY_MAX: Duration = Duration::from_millis(300);
