//! The servers of the fake web: they answer, and they are the judge of politeness.
//!
//! Decides: gaps are measured where a site's owner would, by the arrival of requests at the server, not by
//! the crawler's word. Every violation is a line of [`FakeServers::complaints`].

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;

use super::fake_web::{FakeWeb, PageKind, RobotsKind};
use crate::outcome::{Failure, FetchJob, Fetched, JobKind, Outcome};
use crate::time::{Duration, Instant};
use crate::url::{Url, UrlBatch};

/// All servers of a [`FakeWeb`].
#[derive(Debug)]
pub struct FakeServers {
    web: FakeWeb,
    host_delay: Duration,
    ip_delay: Duration,
    tries: HashMap<String, u64>,
    hosts: BTreeMap<String, Meter>,
    addrs: BTreeMap<IpAddr, Meter>,
    robots_served: BTreeSet<String>,
    /// 200 pages served whole, with how often.
    pub pages: BTreeMap<String, u64>,
    /// What a site's owner would complain about.
    pub complaints: Vec<String>,
}

#[derive(Debug, Default)]
struct Meter {
    under_way: u32,
    last_end: Option<Instant>,
}

impl FakeServers {
    /// Servers that expect these delays to be kept.
    pub fn new(web: FakeWeb, host_delay: Duration, ip_delay: Duration) -> FakeServers {
        FakeServers {
            web,
            host_delay,
            ip_delay,
            tries: HashMap::new(),
            hosts: BTreeMap::new(),
            addrs: BTreeMap::new(),
            robots_served: BTreeSet::new(),
            pages: BTreeMap::new(),
            complaints: Vec::new(),
        }
    }

    /// A request arrives.
    pub fn arrive(&mut self, at: Instant, job: &FetchJob) {
        let Some(addr) = job.addr else { return };
        let host = job.url.host();
        if self.web.addr(host) != Some(addr) {
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
        let request = format!("{:?} {}", job.kind, job.url.as_str());
        let failing = self.web.failing_tries(&request);
        let tries = self.tries.entry(request).or_default();
        *tries += 1;
        let tries = *tries;
        if tries <= failing {
            return self.fault(tries, job);
        }
        match job.kind {
            JobKind::Resolve => match self.web.addr(host) {
                Some(addr) => Outcome::Resolved { addrs: vec![addr], ttl: Duration::from_secs(300) },
                None => Outcome::Failed(Failure::DnsNotFound),
            },
            JobKind::Robots => Outcome::Fetched(self.robots(host)),
            JobKind::Page => Outcome::Fetched(self.page(job)),
        }
    }

    fn fault(&self, tries: u64, job: &FetchJob) -> Outcome {
        if job.kind == JobKind::Resolve {
            return Outcome::Failed([Failure::DnsTimeout, Failure::DnsFailed][tries as usize % 2]);
        }
        match (tries + job.url.as_str().len() as u64) % 5 {
            0 => Outcome::Failed(Failure::Reset),
            1 => Outcome::Failed(Failure::ConnectRefused),
            2 => Outcome::Failed(Failure::Deadline),
            3 => Outcome::Fetched(Fetched { status: 500, ..Fetched::default() }),
            _ => Outcome::Fetched(Fetched {
                status: 503,
                retry_after: Some(Duration::from_secs(3)),
                ..Fetched::default()
            }),
        }
    }

    fn robots(&mut self, host: &str) -> Fetched {
        match self.web.robots(host) {
            RobotsKind::Rules { crawl_delay_s } => {
                self.robots_served.insert(host.to_owned());
                let body = FakeWeb::robots_text(crawl_delay_s).into_bytes();
                Fetched { status: 200, robots_body: Some(body), ..Fetched::default() }
            }
            RobotsKind::Missing => {
                self.robots_served.insert(host.to_owned());
                Fetched { status: 404, ..Fetched::default() }
            }
            RobotsKind::Broken => Fetched { status: 500, ..Fetched::default() },
            RobotsKind::Moved => {
                self.robots_served.insert(host.to_owned());
                let first = self.web.first_host(host);
                let redirect = Url::parse(&format!("{}://{first}/robots.txt", self.web.scheme(&first))).ok();
                Fetched { status: 301, redirect, ..Fetched::default() }
            }
        }
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
        let served = self.robots_served.contains(url.host());
        let allowed = match self.web.effective_robots(url.host()) {
            None => false,
            Some(RobotsKind::Rules { .. }) => !url.path_and_query().starts_with("/private/"),
            Some(_) => true,
        };
        if !served || !allowed {
            self.complaints
                .push(format!("{at:?} {} asked: robots.txt served {served}, allowed {allowed}", url.as_str()));
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
    meter.under_way += 1;
}
