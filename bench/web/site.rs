//! A site of the synthetic web: its names, its scheme, its robots.txt.
//!
//! Decides: site `N` is the registrable domain `sN.test` (RFC 2606 reserves .test), and its number is its rank: site
//! 0 is the largest and has the most links to it. One of `www.sN.test` and `sN.test` is the main host, the other
//! redirects to it; some sites have a second host, `blog.` or `shop.`. One robots.txt applies to a whole site.
//! Invariants: a site's facts are a function of the model's configuration and the number.
//! Limits: site numbers below 2^24.

use super::draw::{Draw, Purpose};
use super::faults::Fault;

/// The facts of one site.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Site {
    /// Its number and rank.
    pub number: u32,
    /// How many pages it has; page numbers are below this.
    pub pages: u64,
    /// Whether its canonical scheme is https; its http side then redirects.
    pub https: bool,
    /// Whether `www.` is the main host, not the bare domain.
    pub www: bool,
    /// Label of the second host, when it has one.
    pub second: Option<&'static str>,
    /// The kind of its robots.txt.
    pub robots: RobotsKind,
    /// Whether its bodies come in chunks (RFC 9112 section 7.1).
    pub chunked: bool,
}

/// The kinds of robots.txt of a site (RFC 9309).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RobotsKind {
    /// None: 404, everything is allowed (section 2.3.1.3).
    Missing,
    /// One that forbids nothing.
    Open,
    /// One that forbids `/private/`.
    Private,
    /// One that forbids `/private/` except `/private/open-`, and every query that starts with `sort=`.
    Patterns,
}

/// The hosts of a site.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub(super) enum HostLabel {
    /// `sN.test`
    Bare,
    /// `www.sN.test`
    Www,
    /// `blog.sN.test` or `shop.sN.test`
    Second,
    /// `FAULT.sN.test`
    Fault(Fault),
}

impl HostLabel {
    /// A unique number.
    pub fn number(self) -> u64 {
        match self {
            HostLabel::Bare => 0,
            HostLabel::Www => 1,
            HostLabel::Second => 2,
            HostLabel::Fault(fault) => 3 + fault as u64,
        }
    }
}

impl Site {
    /// The facts of site `number`, which has `pages` pages.
    pub(super) fn new(rng_seed: u64, number: u32, pages: u64, https_per_10_000: u64) -> Site {
        let mut draw = Draw::new(rng_seed, Purpose::Site, u64::from(number), 0);
        let https = draw.below(10_000) < https_per_10_000;
        let bits = draw.bits();
        Site {
            number,
            pages,
            https,
            www: bits & 3 != 0,
            second: match (bits >> 2) & 7 {
                0 if pages >= 8 => Some("blog"),
                1 if pages >= 8 => Some("shop"),
                _ => None,
            },
            robots: match (bits >> 8) % 10 {
                0 | 1 => RobotsKind::Missing,
                2..=4 => RobotsKind::Open,
                5..=7 => RobotsKind::Private,
                _ => RobotsKind::Patterns,
            },
            chunked: (bits >> 16) & 7 == 0,
        }
    }

    /// The host that has the root page.
    pub(super) fn main_label(&self) -> HostLabel {
        if self.www { HostLabel::Www } else { HostLabel::Bare }
    }

    /// The host that redirects to the main host.
    pub(super) fn alias_label(&self) -> HostLabel {
        if self.www { HostLabel::Bare } else { HostLabel::Www }
    }

    /// Whether the canonical scheme of a host is https.
    pub(super) fn is_https(&self, label: HostLabel) -> bool {
        self.https || matches!(label, HostLabel::Fault(fault) if fault.is_of_certificate())
    }

    /// Appends the name of a host.
    pub(super) fn push_host(&self, label: HostLabel, out: &mut Vec<u8>) {
        let prefix = match label {
            HostLabel::Bare => None,
            HostLabel::Www => Some("www"),
            HostLabel::Second => Some(self.second.unwrap_or("blog")),
            HostLabel::Fault(fault) => Some(fault.as_str()),
        };
        if let Some(prefix) = prefix {
            out.extend_from_slice(prefix.as_bytes());
            out.push(b'.');
        }
        out.push(b's');
        push_number(u64::from(self.number), out);
        out.extend_from_slice(b".test");
    }

    /// The names of all hosts, main first.
    pub fn hosts(&self) -> Vec<String> {
        let mut labels = vec![self.main_label(), self.alias_label()];
        labels.extend(self.second.map(|_| HostLabel::Second));
        labels
            .into_iter()
            .map(|label| {
                let mut name = Vec::new();
                self.push_host(label, &mut name);
                String::from_utf8_lossy(&name).into_owned()
            })
            .collect()
    }

    /// The text of robots.txt, the same on every host; `None`: there is none.
    pub fn robots_txt(&self) -> Option<&'static str> {
        match self.robots {
            RobotsKind::Missing => None,
            RobotsKind::Open => Some("# Welcome\nUser-agent: *\nDisallow:\n"),
            RobotsKind::Private => Some(
                "User-agent: badbot\nDisallow: /\n\nUser-agent: *\nDisallow: /private/ # keep out\n\n\
                 Sitemap: /sitemap.xml\n",
            ),
            RobotsKind::Patterns => {
                Some("user-agent: *\r\nallow: /private/open-\r\ndisallow: /private/\r\ndisallow: /*?sort=\r\n")
            }
        }
    }

    /// Whether robots.txt allows a path and query: this web's own verdict, without a parser, for its robots.txt files.
    pub fn allows(&self, path_and_query: &[u8]) -> bool {
        let private = path_and_query.starts_with(b"/private/");
        match self.robots {
            RobotsKind::Missing | RobotsKind::Open => true,
            RobotsKind::Private => !private,
            RobotsKind::Patterns => {
                let sorted = path_and_query.windows(6).any(|window| window == b"?sort=");
                path_and_query.starts_with(b"/private/open-") || !(private || sorted)
            }
        }
    }
}

/// Splits a lower-case host name into the site's number and the part before the site; `None`: not of this web.
pub(super) fn split_host(host: &str) -> Option<(u32, &str)> {
    let name = host.strip_suffix(".test")?;
    let (prefix, site) = name.rsplit_once('.').unwrap_or(("", name));
    let number = parse_number(site.strip_prefix('s')?.as_bytes())?;
    Some((u32::try_from(number).ok()?, prefix))
}

/// Appends decimal digits.
pub(super) fn push_number(mut value: u64, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut start = digits.len();
    while let Some(slot) = start.checked_sub(1) {
        start = slot;
        if let Some(digit) = digits.get_mut(slot) {
            *digit = b'0' + (value % 10) as u8;
        }
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(digits.get(start..).unwrap_or_default());
}

/// Reads a number from `digits` in the form that `push_number` writes; `None` for signs, leading zeros and more than 19
/// digits.
pub(super) fn parse_number(digits: &[u8]) -> Option<u64> {
    let first = digits.first()?;
    if digits.len() > 19 || (*first == b'0' && digits.len() > 1) {
        return None;
    }
    digits.iter().try_fold(0u64, |value, digit| digit.is_ascii_digit().then(|| value * 10 + u64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_trip() {
        for value in [0, 1, 9, 10, 99, 100, 1 << 60, 9_999_999_999_999_999_999] {
            let mut text = Vec::new();
            push_number(value, &mut text);
            assert_eq!(text, value.to_string().as_bytes());
            assert_eq!(parse_number(&text), Some(value));
        }
        for bad in ["", "01", "-1", "+1", "1a", "99999999999999999999"] {
            assert_eq!(parse_number(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn hosts_split_back() {
        for number in 0..500 {
            let site = Site::new(3, number, 50, 5_000);
            for host in site.hosts() {
                let (found, prefix) = split_host(&host).unwrap();
                assert_eq!(found, number);
                assert!(["", "www", "blog", "shop"].contains(&prefix));
                assert_eq!(ringcrawl_url::site_of(&host), format!("s{number}.test"));
            }
        }
        for bad in ["", ".test", "s.test", "sx.test", "s01.test", "s1.tes", "s99999999999.test", "test"] {
            assert_eq!(split_host(bad), None, "{bad}");
        }
    }

    #[test]
    fn verdicts() {
        let with = |robots| Site { robots, ..Site::new(1, 1, 50, 0) };
        assert!(with(RobotsKind::Missing).allows(b"/private/x"));
        assert!(!with(RobotsKind::Private).allows(b"/private/open-x"));
        assert!(with(RobotsKind::Private).allows(b"/a?sort=b"));
        assert!(with(RobotsKind::Patterns).allows(b"/private/open-x"));
        assert!(!with(RobotsKind::Patterns).allows(b"/private/x"));
        assert!(!with(RobotsKind::Patterns).allows(b"/a?sort=b"));
        assert!(with(RobotsKind::Patterns).allows(b"/a?x=b&sort=c"));
    }
}
