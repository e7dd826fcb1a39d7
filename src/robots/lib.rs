//! robots.txt: what a site permits us.
//!
//! Decides: RFC 9309; where it is silent, the behaviour of Google's open-source parser (google/robotstxt), because
//! sites are written and tested against that. They contradict each other in three points: Google does not decode
//! `%62` to `b`, does not compare `%2A` with `*`, and may forbid /robots.txt itself. There the RFC wins. Only the
//! rules of our own group are kept, heaviest first, so that the first match decides.
//!
//! Invariants: rules are sorted by weight, allow before disallow; all are within `patterns`.
//! Limits: `bytes_max` of the body (the RFC asks for 500 KiB at least), 16,663 bytes a line, 1,024 sitemaps. No
//! pattern is exponential, and a verdict costs at most [`VERDICT_FUEL`]: a path that needs more is forbidden.
//! Leaves to others: fetching, redirects, how long rules are valid and what to do while there are none (`frontier`).
//!
//! ```
//! use ringcrawl_robots::Rules;
//!
//! let rules = Rules::parse(b"User-agent: *\nDisallow: /private/\n", "examplebot", 512 << 10);
//! assert!(rules.allows("/public") && !rules.allows("/private/x"));
//! ```

mod parse;
mod pattern;
mod target;
mod usage;
mod wire;

use ringcrawl_base::fuel::{OutOfFuel, RULE_COST};
use ringcrawl_base::time::Duration;
use usage::UsageLines;

pub use ringcrawl_base::fuel::{Fuel, VERDICT_FUEL};
pub use target::path_of;
pub use usage::Usage;

/// The rules of one robots.txt for one agent.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Rules {
    /// The texts of all rules, one after the other, as `pattern` writes them.
    patterns: Box<[u8]>,
    rules: Box<[Rule]>,
    crawl_delay: Option<Duration>,
    sitemaps: Box<[Box<str>]>,
    /// Few files contain anything about use.
    usage: Option<Box<UsageLines>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Rule {
    start: u32,
    bytes: u16,
    /// The pattern's second byte, which is also the path's if it matches: most rules are skipped by this byte. 0:
    /// there is none, or a wildcard precedes it.
    second: u8,
    allows: bool,
    /// Ended with `$`: the path must end where the pattern does.
    anchored: bool,
    /// Has a `?`: is compared with the form of the path whose query has its slashes decoded.
    has_query: bool,
}

/// A rule that decided a verdict.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decisive {
    /// Its pattern, in the compared form.
    pattern: Box<[u8]>,
    anchored: bool,
    allows: bool,
}

impl Rules {
    /// The rules of `body` for the agent with this product token (RFC 9309 section 2.2.1, compared without case), or
    /// those for `*` if no group names it. `body` may contain anything; bytes beyond `bytes_max` are ignored.
    pub fn parse(body: &[u8], agent_token: &str, bytes_max: usize) -> Rules {
        parse::parse(body, agent_token, bytes_max)
    }

    /// No rules: robots.txt is "unavailable" (RFC 9309 section 2.3.1.3).
    pub fn allow_all() -> Rules {
        Rules::default()
    }

    /// Whether a URL with this path and query (`Url::path_and_query`) may be fetched.
    ///
    /// Bytes outside ASCII, which a canonical URL does not contain, only match `*`.
    pub fn allows(&self, path_and_query: &str) -> bool {
        self.judge(path_and_query).0
    }

    /// The same, and the units of [`Fuel`] used.
    pub fn judge(&self, path_and_query: &str) -> (bool, u64) {
        let mut fuel = Fuel::new(VERDICT_FUEL);
        let allows = self.allows_within(path_and_query.as_bytes(), &mut fuel);
        (allows && !fuel.is_spent(), VERDICT_FUEL - fuel.left())
    }

    /// The rule that decides; `None`: there is none, or finding it would take too long.
    pub fn decisive(&self, path_and_query: &str) -> Option<Decisive> {
        let rule = self.rule_within(path_and_query.as_bytes(), &mut Fuel::new(VERDICT_FUEL)).ok()??;
        let start = rule.start as usize;
        let pattern = self.patterns.get(start..start + usize::from(rule.bytes))?.into();
        Some(Decisive { pattern, anchored: rule.anchored, allows: rule.allows })
    }

    fn allows_within(&self, path: &[u8], fuel: &mut Fuel) -> bool {
        self.rule_within(path, fuel).is_ok_and(|rule| rule.is_none_or(|rule| rule.allows))
    }

    /// The rule that decides, if any matches the path; an error if there is not enough `work` left to find out.
    #[inline]
    fn rule_within(&self, path: &[u8], fuel: &mut Fuel) -> Result<Option<&Rule>, OutOfFuel> {
        if self.rules.is_empty() {
            return Ok(None);
        }
        fuel.spend(path.len() as u64);
        let path = pattern::normalize(path);
        if path.as_ref() == b"/robots.txt" {
            return Ok(None); // RFC 9309 section 2.2.2
        }
        let folded = pattern::fold_query(&path);
        let second = path.get(1).copied().unwrap_or_default();
        for rule in &self.rules {
            if !fuel.spend(RULE_COST) {
                return Err(OutOfFuel);
            }
            if rule.second != 0 && rule.second != second {
                continue;
            }
            let start = rule.start as usize;
            let Some(text) = self.patterns.get(start..start + usize::from(rule.bytes)) else { continue };
            let path = if rule.has_query { &folded } else { &path };
            if pattern::matches(text, rule.anchored, path, fuel) {
                return Ok(Some(rule));
            }
        }
        Ok(None)
    }

    /// The Crawl-delay of our group, if any: not a standard, but widely used. Up to `u64::MAX` seconds.
    pub fn crawl_delay(&self) -> Option<Duration> {
        self.crawl_delay
    }

    /// The texts of the Sitemap lines, of all groups, in order: absolute URLs if written correctly.
    pub fn sitemaps(&self) -> &[Box<str>] {
        &self.sitemaps
    }

    /// Takes the sitemaps out: they are needed once, the rules for longer.
    pub fn take_sitemaps(&mut self) -> Box<[Box<str>]> {
        std::mem::take(&mut self.sitemaps)
    }

    /// The usage preferences for a URL that may be fetched; `None` if there are none, which is usual.
    pub fn usage(&self, path_and_query: &str, fuel: &mut Fuel) -> Option<Usage> {
        self.usage.as_ref().map(|lines| lines.of(path_and_query, fuel))
    }

    /// Memory that the rules hold.
    pub fn ram_bytes(&self) -> usize {
        let sitemaps: usize = self.sitemaps.iter().map(|sitemap| size_of::<Box<str>>() + sitemap.len()).sum();
        let usage = self.usage.as_ref().map_or(0, |usage| size_of::<UsageLines>() + usage.ram_bytes());
        size_of::<Rules>() + self.patterns.len() + size_of_val(&*self.rules) + sitemaps + usage
    }

    /// Number of rules kept.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether everything is allowed.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }
}

/// The [`Rule::second`] of this pattern.
fn second_of(pattern: &[u8]) -> u8 {
    match *pattern {
        [first, second, ..] if first != b'*' && second != b'*' => second,
        _ => 0,
    }
}

/// The meaning of the response status for /robots.txt.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Meaning {
    /// The body holds the rules.
    Parse,
    /// There are no rules: everything is allowed.
    AllowAll,
    /// Unknown: everything is forbidden until it is known.
    Unreachable,
}

/// RFC 9309 section 2.3.1. 429 is a 4xx by number, but means "retry later", as for Google. A 3xx that gets here has
/// no target or exceeds the redirect limit; the RFC lets us treat that as "unavailable" (section 2.3.1.2). Any other
/// number is not HTTP, so nothing is known.
pub fn meaning(status: u16) -> Meaning {
    match status {
        200..=299 => Meaning::Parse,
        429 => Meaning::Unreachable,
        300..=499 => Meaning::AllowAll,
        _ => Meaning::Unreachable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_or_nothing() {
        assert!(Rules::allow_all().allows("/x"));
        let nothing = Rules::parse(b"User-agent: *\nDisallow: /", "us", 1 << 20);
        assert!(["/", "/x?y", "/robots.txt?x"].into_iter().all(|path| !nothing.allows(path)));
        assert!(nothing.allows("/robots.txt"));
    }

    #[test]
    fn statuses() {
        for (status, expected) in [
            (200, Meaning::Parse),
            (204, Meaning::Parse),
            (302, Meaning::AllowAll),
            (401, Meaning::AllowAll),
            (403, Meaning::AllowAll),
            (404, Meaning::AllowAll),
            (429, Meaning::Unreachable),
            (500, Meaning::Unreachable),
            (503, Meaning::Unreachable),
            (100, Meaning::Unreachable),
            (600, Meaning::Unreachable),
        ] {
            assert_eq!(meaning(status), expected, "{status}");
        }
    }

    #[test]
    fn a_rule_is_small() {
        assert!(size_of::<Rule>() <= 12);
    }

    /// The most expensive file within the limit: every rule is short, distinct, and searches the whole path.
    #[test]
    fn the_worst_file_ends() {
        let mut body = b"User-agent: *\n".to_vec();
        for number in 0.. {
            let line = format!("allow:*{number:x}z\n");
            if body.len() + line.len() > 512 * 1024 {
                break;
            }
            body.extend(line.bytes());
        }
        let begun = std::time::Instant::now();
        let rules = Rules::parse(&body, "x", 512 * 1024);
        println!("{} rules, read in {:?}", rules.len(), begun.elapsed());
        assert!(rules.len() > 30_000);
        for (repeats, expected) in [(4, true), (128, false), (4_000, false)] {
            let begun = std::time::Instant::now();
            let (allows, fuel) = rules.judge(&format!("/{}", "0123456789abcdef".repeat(repeats)));
            println!("{fuel} units in {:?}", begun.elapsed());
            assert_eq!((allows, fuel < VERDICT_FUEL), (expected, expected));
        }
    }

    /// A file that is not a robots.txt has no rules, and one that is has ours, however much of it is for others.
    #[test]
    fn what_stands_in_the_place_of_a_robots_txt() {
        let of = |body: &[u8]| Rules::parse(body, "ExampleBot", 512 * 1024);
        let text = "User-agent: *\nDisallow: /\n";
        let utf16: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let mut rng = ringcrawl_base::Rng::new(3);
        let html =
            "<!doctype html><html><head><title>Not found</title></head><body><p>User-agent: *</p>\n<p>Disallow: /</p>";
        for body in [&utf16, &[&b"\xff\xfe"[..], &utf16].concat(), &rng.bytes(300_000), html.as_bytes()] {
            let rules = of(body);
            assert!(rules.is_empty() && rules.allows("/x"), "{}", body[..40].escape_ascii());
        }
        // A byte order mark of UTF-8 is not part of the text.
        assert!(!of(&[b"\xef\xbb\xbf", text.as_bytes()].concat()).allows("/x"));
        let groups = |ours: &str| -> String {
            (0..20_000)
                .map(|number| {
                    format!("User-agent: {}\nDisallow: /{number}\n", if number % 10 == 0 { ours } else { "x" })
                })
                .collect()
        };
        let rules = of(groups("ExampleBot").as_bytes());
        assert!(rules.len() > 1_000 && !rules.allows("/10") && rules.allows("/9"), "{}", rules.len());
        assert!(of(groups("y").as_bytes()).is_empty());
        let names: String = (0..20_000).map(|number| format!("User-agent: x{number}\n")).collect();
        assert!(!of(format!("{names}User-agent: examplebot\nDisallow: /a\n").as_bytes()).allows("/a"));
        // A hundred megabytes: bytes beyond the limit are not read.
        let endless = "Disallow: /b\n# more\n".repeat(5_000_000);
        let rules = of(format!("User-agent: *\nDisallow: /a\n{endless}Disallow: /c\n").as_bytes());
        assert!(!rules.allows("/a") && !rules.allows("/b") && rules.allows("/c") && rules.len() == 2);
    }

    /// One pattern of many stars, on a long path.
    #[test]
    fn a_dear_rule_forbids() {
        let rules = Rules::parse(format!("user-agent: *\ndisallow: /{}b", "*a".repeat(8_000)).as_bytes(), "x", 1 << 20);
        let (allows, fuel) = rules.judge(&format!("/{}", "ca".repeat(30_000)));
        assert_eq!((allows, fuel < VERDICT_FUEL), (true, true));
        let many: String = (0..100).map(|tail| format!("allow: /{}{tail:04}\n", "*a".repeat(2_000))).collect();
        let rules = Rules::parse(format!("user-agent: *\n{many}").as_bytes(), "x", 1 << 20);
        assert_eq!(rules.judge(&format!("/{}", "ca".repeat(30_000))), (false, VERDICT_FUEL));
    }
}
