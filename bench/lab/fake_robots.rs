//! robots.txt of the fake web: what lies where, where redirects lead, and what holds for a host in the end.
//!
//! Decides: a third of all hosts have a robots.txt that redirects: to the site's first host, to the other scheme and back,
//! over one to seven hosts of other sites, to one file that many hosts share, or around in a circle. What lies at the end
//! differs from what the last host has for itself, so a crawler that takes the wrong file is found out.

use super::fake_web::FakeWeb;
use ringcrawl_url::{Scheme, Url};

/// What lies at a URL that is fetched as a robots.txt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RobotsKind {
    /// 200 with a rule against this path, and a Crawl-delay of this many seconds when not 0.
    Rules {
        /// What is forbidden begins like this.
        forbidden: &'static str,
        /// Seconds.
        crawl_delay_s: u64,
    },
    /// 404: everything is allowed.
    Missing,
    /// 301 to there.
    Moved(String),
    /// 500 for ever: everything is forbidden.
    Broken,
    /// 500 now and then, and rules for two days after that.
    Flaky,
}

/// What holds for an origin in the end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EffectiveRobots {
    /// What lies at the end of the way; `Missing` when it is too far, `Broken` when the way is a circle.
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

    /// The text of the file, where it has rules.
    pub fn text(&self) -> String {
        let delay =
            if self.crawl_delay_s() > 0 { format!("Crawl-delay: {}\n", self.crawl_delay_s()) } else { String::new() };
        let forbidden = if let RobotsKind::Rules { forbidden, .. } = self { forbidden } else { PRIVATE };
        format!("User-agent: *\nDisallow: {forbidden}\n{delay}")
    }
}

impl FakeWeb {
    /// What lies at `url`, for one who fetches it as a robots.txt.
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

    /// What holds for the origin of `url` in the end.
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

    /// A redirect on the way of `origin`, after which `left` more follow.
    fn moved(&self, left: u64, origin: &str) -> RobotsKind {
        RobotsKind::Moved(self.file_elsewhere(&format!("{left} {origin}"), &format!("/moved/{left}/{origin}")))
    }

    /// The address of a file at the first host of a site that `what` chooses.
    fn file_elsewhere(&self, what: &str, path: &str) -> String {
        let host = format!("h0.s{}.test", self.hash(&["elsewhere", what]) % self.sites);
        format!("{}://{host}{path}", self.scheme(&host, 0))
    }

    fn is_first(&self, host: &str) -> bool {
        self.first_host(host) == host
    }
}

const PRIVATE: &str = "/private/";
/// Redirects that a crawler follows.
const REDIRECTS_MAX: usize = 5;
/// Redirects that a way may have: some are too long.
const HOPS_MAX: u64 = 7;
