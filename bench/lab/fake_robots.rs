//! robots.txt of the fake web: the file at each URL, the targets of redirects, and the rules that finally apply to a
//! host.
//!
//! Decides: a third of all hosts have a robots.txt that redirects: to the site's first host, to the other scheme and
//! back, over one to seven hosts of other sites, to one file that many hosts share, or in a circle. The final file
//! differs from the last host's own, so a crawler that takes the wrong file is caught.

use super::fake_web::FakeWeb;
use ringcrawl_url::{Scheme, Url};

/// The response to a URL that is fetched as a robots.txt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RobotsKind {
    /// 200 with a rule against `forbidden`, and a Crawl-delay of `crawl_delay_s` seconds unless it is 0.
    Rules {
        /// The prefix of forbidden paths.
        forbidden: &'static str,
        /// Seconds.
        crawl_delay_s: u64,
    },
    /// 404: everything is allowed.
    Missing,
    /// 301 to this URL.
    Moved(String),
    /// 500 always: everything is forbidden.
    Broken,
    /// 500 now and then, and rules for two days after that.
    Flaky,
}

/// The rules that finally apply to an origin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EffectiveRobots {
    /// The file at the end of the redirects; `Missing` when there are too many, `Broken` when they form a circle.
    pub kind: RobotsKind,
    /// The files that a crawler must have read to know.
    pub way: Vec<Url>,
}

impl RobotsKind {
    /// Whether it forbids this path.
    pub fn forbids(&self, path: &str) -> bool {
        match self {
            RobotsKind::Rules { forbidden, .. } => path.starts_with(forbidden),
            RobotsKind::Flaky => path.starts_with(PRIVATE),
            RobotsKind::Broken => true,
            RobotsKind::Missing | RobotsKind::Moved(_) => false,
        }
    }

    /// The Crawl-delay that it asks for.
    pub fn crawl_delay_s(&self) -> u64 {
        if let RobotsKind::Rules { crawl_delay_s, .. } = self { *crawl_delay_s } else { 0 }
    }

    /// The text of the file, if it has rules.
    pub fn text(&self) -> String {
        let delay =
            if self.crawl_delay_s() > 0 { format!("Crawl-delay: {}\n", self.crawl_delay_s()) } else { String::new() };
        let forbidden = if let RobotsKind::Rules { forbidden, .. } = self { forbidden } else { PRIVATE };
        format!("User-agent: *\nDisallow: {forbidden}\n{delay}")
    }
}

impl FakeWeb {
    /// The response to `url` when it is fetched as a robots.txt.
    pub fn robots(&self, url: &Url) -> RobotsKind {
        let (host, path) = (url.host(), url.path_and_query());
        let rules = |forbidden, crawl_delay_s| RobotsKind::Rules { forbidden, crawl_delay_s };
        if path == "/shared.txt" {
            return rules("/p2", 0);
        }
        if let Some(step) = path.strip_prefix("/loop/").and_then(|step| step.parse::<u64>().ok()) {
            return RobotsKind::Moved(
                self.file_elsewhere(&format!("loop{}", (step + 1) % 3), &format!("/loop/{}", (step + 1) % 3)),
            );
        }
        if let Some((left, origin)) = path.strip_prefix("/moved/").and_then(|rest| rest.split_once('/')) {
            return match left.parse::<u64>() {
                Ok(0) => match self.hash(&["end", origin]) % 6 {
                    0 | 1 => rules("/p1", 0),
                    2 => rules(PRIVATE, 2),
                    3 => RobotsKind::Flaky,
                    4 if !self.is_first(origin) => RobotsKind::Broken,
                    _ => RobotsKind::Missing,
                },
                Ok(left) => self.moved(left - 1, origin),
                Err(_) => RobotsKind::Missing,
            };
        }
        if path != "/robots.txt" {
            return RobotsKind::Missing;
        }
        match self.hash(&["robots", host]) % 14 {
            0..=3 => rules(PRIVATE, 0),
            4 => RobotsKind::Flaky,
            5 => rules(PRIVATE, 2),
            6 if !self.is_first(host) => {
                let first = self.first_host(host);
                RobotsKind::Moved(format!("{}://{first}/robots.txt", self.scheme(&first, 0)))
            }
            7 if !self.is_first(host) => RobotsKind::Broken,
            8 => {
                let other = if url.scheme() == Scheme::Http { "https" } else { "http" };
                RobotsKind::Moved(format!("{other}://{host}/robots.txt"))
            }
            9 | 10 => self.moved(self.hash(&["hops", host]) % HOPS_MAX, host),
            11 => RobotsKind::Moved(self.file_elsewhere("shared", "/shared.txt")),
            12 => RobotsKind::Moved(self.file_elsewhere("loop0", "/loop/0")),
            _ => RobotsKind::Missing,
        }
    }

    /// The rules that finally apply to the origin of `url`.
    pub fn effective_robots(&self, url: &Url) -> EffectiveRobots {
        let mut way: Vec<Url> = url.join("/robots.txt").into_iter().collect();
        while let Some(at) = way.last() {
            match self.robots(at) {
                RobotsKind::Moved(to) => match Url::parse(&to) {
                    Ok(to) if way.contains(&to) => return EffectiveRobots { kind: RobotsKind::Broken, way },
                    Ok(to) if way.len() <= REDIRECTS_MAX => way.push(to),
                    _ => break,
                },
                kind => return EffectiveRobots { kind, way },
            }
        }
        EffectiveRobots { kind: RobotsKind::Missing, way }
    }

    /// A redirect on the path of `origin`, with `left` more to follow.
    fn moved(&self, left: u64, origin: &str) -> RobotsKind {
        RobotsKind::Moved(self.file_elsewhere(&format!("{left} {origin}"), &format!("/moved/{left}/{origin}")))
    }

    /// The URL of a file at the first host of a site that `what` chooses.
    fn file_elsewhere(&self, what: &str, path: &str) -> String {
        let host = format!("h0.s{}.test", self.hash(&["elsewhere", what]) % self.sites);
        format!("{}://{host}{path}", self.scheme(&host, 0))
    }

    fn is_first(&self, host: &str) -> bool {
        self.first_host(host) == host
    }
}

const PRIVATE: &str = "/private/";
/// Maximum number of redirects that a crawler follows.
const REDIRECTS_MAX: usize = 5;
/// Maximum number of redirects on a path: some paths are too long.
const HOPS_MAX: u64 = 7;
