//! A small web that is a pure function of one seed: pages, links, names, faults, and the truth. robots.txt is in
//! [`super::fake_robots`].
//!
//! Decides: which pages exist, which pages link to each other, what fails and how often before it recovers. Faults
//! are of two kinds: temporary ones (the first tries fail) and permanent ones (a name that does not exist, a
//! robots.txt that always breaks, a host that dies). The truth includes pages behind the first kind and excludes
//! those behind the second. Hosts have up to three addresses, and some of these change. Some hosts have pages of both
//! schemes.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ringcrawl_base::Rng;
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_url::Url;

/// The web.
#[derive(Clone, Debug)]
pub struct FakeWeb {
    rng_seed: u64,
    /// Sites `s0.test` …
    pub sites: u64,
    /// Maximum number of pages of a host.
    pub host_pages_max: u64,
    /// Addresses that all hosts share.
    pub addrs: u64,
    /// Share of requests whose first tries fail, in percent.
    pub faults_percent: u64,
    /// Maximum number of tries that a temporary fault lasts.
    pub fault_tries_max: u64,
}

/// The kinds of pages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PageKind {
    /// 200 with links.
    Page(Vec<String>),
    /// 302.
    Redirect(String),
    /// 404.
    Missing,
}

impl FakeWeb {
    /// The web of `rng_seed`.
    pub fn new(rng_seed: u64) -> FakeWeb {
        let mut rng = Rng::new(rng_seed ^ 0x5eed);
        FakeWeb {
            rng_seed,
            sites: 1 + rng.below(30),
            host_pages_max: 1 + rng.below(120),
            addrs: 1 + rng.below(20),
            faults_percent: [0, 5, 30][rng.below(3) as usize],
            fault_tries_max: 1 + rng.below(3),
        }
    }

    /// Where every crawl starts.
    pub fn seeds(&self) -> Vec<Url> {
        let texts = (0..self.sites.min(3)).map(|site| self.url(site, 0, 0));
        texts.filter_map(|text| Url::parse(&text).ok()).collect()
    }

    /// Whether the name exists.
    pub fn exists(&self, host: &str) -> bool {
        self.place(host).is_some_and(|(site, number)| {
            number < self.hosts(site) && (number == 0 || !self.hash(&["name", host]).is_multiple_of(10))
        })
    }

    /// Whether it does not exist because its own name servers are broken: then its existence cannot be determined.
    pub fn is_broken(&self, host: &str) -> bool {
        !self.exists(host) && self.hash(&["broken", host]).is_multiple_of(2) && self.place(host).is_some()
    }

    /// The addresses of a host at `at`, of both families or of the first that has any; none for a name that does not
    /// exist. Some hosts have an address where no server listens, and some of these can be reached only in the other
    /// family.
    pub fn addrs(&self, host: &str, at: Instant, both_families: bool) -> Vec<IpAddr> {
        let mut addrs = self.living_addrs(host, at);
        let dead = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1));
        match self.hash(&["dead", host]) % 8 {
            _ if addrs.is_empty() => {}
            0 => addrs.insert(0, dead),
            1 if both_families => addrs = vec![dead, sixth(addrs[0])],
            1 => addrs = vec![dead],
            _ => {}
        }
        addrs
    }

    /// Whether no server listens at `addr`.
    pub fn is_dead(addr: IpAddr) -> bool {
        matches!(addr, IpAddr::V4(addr) if addr.octets()[0] == 198)
    }

    fn living_addrs(&self, host: &str, at: Instant) -> Vec<IpAddr> {
        if !self.exists(host) {
            return Vec::new();
        }
        let moves = self.hash(&["moves", host]).is_multiple_of(3);
        let epoch = if moves { at.as_nanos() / MOVE_NANOS } else { 0 }.to_string();
        let addr = |number: u64| self.hash(&["addr", host, &epoch, &number.to_string()]) % self.addrs;
        let count = 1 + self.hash(&["addrs", host]) % 3;
        (0..count).map(|number| IpAddr::V4(Ipv4Addr::new(192, 0, 2, addr(number) as u8))).collect()
    }

    /// The time to live of an answer for `host`.
    pub fn ttl(&self, host: &str) -> Duration {
        Duration::from_secs([0, 1, 30, 300][self.hash(&["ttl", host]) as usize % 4])
    }

    /// Whether the host answers a few requests and then no more. Its pages link only to pages of its own.
    pub fn dies(&self, host: &str) -> bool {
        self.place(host).is_some_and(|(_, number)| number > 0) && self.hash(&["dies", host]).is_multiple_of(10)
    }

    /// The pause that its servers request with a 503; `None`: they name none.
    pub fn retry_after(&self, host: &str) -> Option<Duration> {
        match self.hash(&["retry", host]) % 8 {
            0 => Some(Duration::from_secs(7_200)),
            1 | 2 => None,
            _ => Some(Duration::from_secs(3)),
        }
    }

    /// The site's first host.
    pub fn first_host(&self, host: &str) -> String {
        self.place(host).map_or_else(|| host.to_owned(), |(site, _)| host_name(site, 0))
    }

    /// http or https: the scheme in links to the page `number` of the host. One site in three has both.
    pub fn scheme(&self, host: &str, number: u64) -> &'static str {
        let site = self.place(host).map_or(0, |(site, _)| site);
        if site % 3 == 1 || site % 3 == 2 && number % 2 == 1 { "https" } else { "http" }
    }

    /// The page at `url`.
    pub fn page(&self, url: &Url) -> PageKind {
        let (Some((site, host)), Some(number)) = (self.place(url.host()), page_number(url.path_and_query())) else {
            return PageKind::Missing;
        };
        if number >= self.pages(site, host) {
            return PageKind::Missing;
        }
        let mut rng = Rng::new(self.hash(&["page", url.as_str()]));
        let dies = self.dies(url.host());
        if number > 0 && !dies && rng.percent(5) {
            return PageKind::Redirect(self.any_url(&mut rng, site));
        }
        // A tree over the host's pages, so that all of them can be reached, and random links.
        let mut links: Vec<String> =
            [2 * number + 1, 2 * number + 2].iter().map(|child| self.url(site, host, *child)).collect();
        if dies {
            return PageKind::Page(links);
        }
        if number == 0 {
            links.extend((0..self.hosts(site)).map(|other| self.url(site, other, 0)));
        }
        links.extend((0..rng.below(6)).map(|_| {
            let to = if rng.percent(80) { site } else { rng.below(self.sites) };
            self.any_url(&mut rng, to)
        }));
        PageKind::Page(links)
    }

    /// How many first tries of `request` fail.
    pub fn failing_tries(&self, request: &str) -> u64 {
        let hash = self.hash(&["fault", request]);
        if hash % 100 < self.faults_percent { 1 + (hash >> 32) % self.fault_tries_max } else { 0 }
    }

    /// The pages that a correct crawl fetches with 200, except those of hosts that die.
    pub fn reachable(&self) -> BTreeSet<String> {
        self.reachable_without(&BTreeSet::new())
    }

    /// Those of them that can be reached without passing any of `aside`.
    pub fn reachable_without(&self, aside: &BTreeSet<String>) -> BTreeSet<String> {
        let mut seen: BTreeSet<String> = self.seeds().iter().map(|url| url.as_str().to_owned()).collect();
        let mut todo: Vec<Url> = self.seeds();
        let mut pages = BTreeSet::new();
        while let Some(url) = todo.pop() {
            if !self.exists(url.host()) || self.dies(url.host()) || aside.contains(url.as_str()) {
                continue;
            }
            if self.effective_robots(&url).kind.forbids(url.path_and_query()) {
                continue;
            }
            let links = match self.page(&url) {
                PageKind::Page(links) => {
                    pages.insert(url.as_str().to_owned());
                    links
                }
                PageKind::Redirect(to) => vec![to],
                PageKind::Missing => continue,
            };
            let links = links.into_iter().filter(|link| seen.insert(link.clone()));
            todo.extend(links.collect::<Vec<_>>().iter().filter_map(|link| Url::parse(link).ok()));
        }
        pages
    }

    fn any_url(&self, rng: &mut Rng, site: u64) -> String {
        let host = rng.below(self.hosts(site));
        // One in ten does not exist.
        let number = rng.below(self.pages(site, host) + 1 + self.host_pages_max / 10);
        self.url(site, host, number)
    }

    fn url(&self, site: u64, host: u64, number: u64) -> String {
        let folder = if number % 7 == 6 { "private/" } else { "" };
        let name = host_name(site, host);
        let scheme = self.scheme(&name, number);
        let path = if number == 0 { String::new() } else { format!("{folder}p{number}") };
        format!("{scheme}://{name}/{path}")
    }

    fn hosts(&self, site: u64) -> u64 {
        1 + self.hash(&["hosts", &site.to_string()]) % 3
    }

    fn pages(&self, site: u64, host: u64) -> u64 {
        1 + self.hash(&["pages", &host_name(site, host)]) % self.host_pages_max
    }

    /// Site and host number of a name.
    fn place(&self, host: &str) -> Option<(u64, u64)> {
        let (first, site) = host.strip_suffix(".test")?.split_once('.')?;
        let site = site.strip_prefix('s')?.parse().ok().filter(|site| *site < self.sites)?;
        Some((site, first.strip_prefix('h')?.parse().ok()?))
    }

    pub(super) fn hash(&self, parts: &[&str]) -> u64 {
        xxhash_rust::xxh3::xxh3_64_with_seed(parts.join(" ").as_bytes(), self.rng_seed)
    }
}

/// How often changing addresses change.
const MOVE_NANOS: u64 = 600 * 1_000_000_000;

/// The address of the other family that corresponds to `addr`; four share a /64.
fn sixth(addr: IpAddr) -> IpAddr {
    match addr {
        IpAddr::V4(addr) => {
            let last = u16::from(addr.octets()[3]);
            IpAddr::V6(Ipv6Addr::new(0x2a00, 1, 2, last / 4, 0, 0, 0, last))
        }
        six => six,
    }
}

fn host_name(site: u64, host: u64) -> String {
    format!("h{host}.s{site}.test")
}

fn page_number(path: &str) -> Option<u64> {
    let path = path.strip_prefix('/')?;
    let path = path.strip_prefix("private/").unwrap_or(path);
    if path.is_empty() { Some(0) } else { path.strip_prefix('p')?.parse().ok() }
}
