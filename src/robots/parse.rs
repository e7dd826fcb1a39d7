//! robots.txt, line by line.
//!
//! Decides: what counts as a line, a key and a group, with the leniency of Google's parser:
//!
//! - a byte order mark, or the beginning of one, is skipped; lines end with LF, CR or both;
//! - a line is cut at `#` and at NUL, and after 16,663 bytes (8 × the 2,083 of old browsers, less one);
//! - a missing colon is forgiven when the line is two words; `disalow` and similar errors are forgiven;
//! - a key counts by its beginning (`disallowed: /x` is a Disallow line);
//! - consecutive User-agent lines open one group; only Allow and Disallow lines close the list, so that no other
//!   record ends a group (RFC 9309 section 2.2.4);
//! - groups of one agent are merged; a group that names us, even an empty one, overrides those for `*`;
//! - `Allow: …/index.htm…` also allows the folder's own address.
//!
//! A body longer than the limit loses its last, incomplete line: half an Allow line would allow too much. Usage lines
//! ([`super::usage`]) also belong to a group. Crawl-delay: the first number of our group counts; fractions are valid,
//! signs and units are not.
//!
//! Limits: those above; 1,024 sitemaps.

use super::pattern::Pattern;
use super::usage::UsageLines;
use super::{Rule, Rules, second_of};
use ringcrawl_base::time::Duration;
use ringcrawl_url::text_of_bytes;

/// Reads the rules for one agent.
pub(super) fn parse(body: &[u8], agent_token: &str, bytes_max: usize) -> Rules {
    let mut parser = Parser::default();
    for line in lines(whole_lines(body, bytes_max)) {
        if let Some((key, value)) = key_and_value(line) {
            parser.take(RobotsKey::of(key), value, agent_token);
        }
    }
    let mut group = if parser.specific_ever { parser.specific } else { parser.global };
    group.usage.license = group.usage.license.or(parser.license);
    group.into_rules(parser.sitemaps)
}

const SITEMAPS_MAX: usize = 1_024;

/// 8 × 2,083 bytes, minus one that Google's buffer keeps for itself.
const LINE_BYTES_MAX: usize = 16_663;

#[derive(Default)]
struct Parser {
    /// The current group names us; is for `*`; has had a rule.
    specific: Group,
    specific_now: bool,
    specific_ever: bool,
    global: Group,
    global_now: bool,
    rule_seen: bool,
    sitemaps: Vec<Box<str>>,
    /// The first licence in the file.
    license: Option<Box<str>>,
}

impl Parser {
    fn take(&mut self, key: RobotsKey, value: &[u8], agent_token: &str) {
        match key {
            RobotsKey::UserAgent => self.take_agent(value, agent_token),
            RobotsKey::Allow | RobotsKey::Disallow => {
                if let Some(group) = self.group() {
                    group.add(value, key == RobotsKey::Allow);
                    self.rule_seen = true;
                }
            }
            RobotsKey::CrawlDelay => {
                if let (Some(group), Some(delay)) = (self.group(), seconds(value)) {
                    group.crawl_delay.get_or_insert(delay);
                }
            }
            RobotsKey::Sitemap => {
                if !value.is_empty() && self.sitemaps.len() < SITEMAPS_MAX {
                    self.sitemaps.push(text_of_bytes(value).into());
                }
            }
            RobotsKey::ContentUsage | RobotsKey::ContentSignal => {
                if let Some(group) = self.group() {
                    group.usage.add(value, key == RobotsKey::ContentSignal);
                }
            }
            RobotsKey::License => {
                let mut named = UsageLines::default();
                named.license(value);
                self.license = self.license.take().or_else(|| named.license.clone());
                if let Some(group) = self.group() {
                    group.usage.license = group.usage.license.take().or(named.license);
                }
            }
            RobotsKey::Other => {}
        }
    }

    fn take_agent(&mut self, value: &[u8], agent_token: &str) {
        if self.rule_seen {
            self.rule_seen = false;
            self.specific_now = false;
            self.global_now = false;
        }
        match value {
            [b'*'] => self.global_now = true,
            [b'*', after, ..] if is_space(*after) => self.global_now = true,
            _ => {
                // The product token ends where its alphabet does: `FooBot/1.2` is FooBot (RFC 9309 section 2.2.1).
                let end = value.iter().position(|byte| !byte.is_ascii_alphabetic() && !matches!(byte, b'-' | b'_'));
                let token = value.get(..end.unwrap_or(value.len())).unwrap_or_default();
                if token.eq_ignore_ascii_case(agent_token.as_bytes()) {
                    self.specific_now = true;
                    self.specific_ever = true;
                }
            }
        }
    }

    /// The group that a line here belongs to: a group that names us and `*` is only ours.
    fn group(&mut self) -> Option<&mut Group> {
        if self.specific_now {
            Some(&mut self.specific)
        } else if self.global_now {
            Some(&mut self.global)
        } else {
            None
        }
    }
}

#[derive(Default)]
struct Group {
    rules: Vec<(Pattern, bool)>,
    crawl_delay: Option<Duration>,
    usage: UsageLines,
}

impl Group {
    fn add(&mut self, value: &[u8], allows: bool) {
        self.rules.extend(Pattern::new(value).map(|pattern| (pattern, allows)));
        if allows
            && let Some(slash) = memchr::memrchr(b'/', value)
            && value.get(slash..).is_some_and(|file| file.starts_with(b"/index.htm"))
            && let Some(folder) = value.get(..=slash)
        {
            self.rules.extend(Pattern::new(&[folder, b"$"].concat()).map(|pattern| (pattern, allows)));
        }
    }

    fn into_rules(mut self, sitemaps: Vec<Box<str>>) -> Rules {
        self.rules.sort_by(|(a, a_allows), (b, b_allows)| {
            let by_weight = b.weight().cmp(&a.weight()).then(b_allows.cmp(a_allows));
            by_weight.then_with(|| a.text.cmp(&b.text)).then(a.anchored.cmp(&b.anchored))
        });
        self.rules.dedup();
        let mut patterns = Vec::new();
        let mut rules = Vec::new();
        for (pattern, allows) in &self.rules {
            // Neither can fail: lines and bodies are short enough.
            let (Ok(start), Ok(bytes)) = (u32::try_from(patterns.len()), u16::try_from(pattern.text.len())) else {
                continue;
            };
            patterns.extend_from_slice(&pattern.text);
            let (anchored, has_query) = (pattern.anchored, pattern.has_query);
            let second = second_of(&pattern.text);
            rules.push(Rule { start, bytes, second, allows: *allows, anchored, has_query });
        }
        Rules {
            patterns: patterns.into_boxed_slice(),
            rules: rules.into_boxed_slice(),
            crawl_delay: self.crawl_delay,
            sitemaps: sitemaps.into_boxed_slice(),
            usage: (!self.usage.is_empty()).then(|| Box::new(self.usage)),
        }
    }
}

/// The first `bytes_max` bytes, without the line that this cuts through.
fn whole_lines(body: &[u8], bytes_max: usize) -> &[u8] {
    let Some((kept, [next, ..])) = body.split_at_checked(bytes_max) else { return body };
    if matches!(next, b'\n' | b'\r') {
        return kept;
    }
    let end = memchr::memrchr2(b'\n', b'\r', kept).unwrap_or(0);
    kept.get(..end).unwrap_or_default()
}

fn lines(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mark = body.iter().zip(b"\xEF\xBB\xBF").take_while(|(byte, mark)| byte == mark).count();
    body.get(mark..).unwrap_or_default().split(|byte| matches!(byte, b'\n' | b'\r'))
}

fn key_and_value(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = line.get(..LINE_BYTES_MAX).unwrap_or(line);
    let end = memchr::memchr2(b'#', 0, line).unwrap_or(line.len());
    let line = trim(line.get(..end)?);
    let separator = match memchr::memchr(b':', line) {
        Some(colon) => colon,
        None => {
            let space = memchr::memchr2(b' ', b'\t', line)?;
            let value = trim(line.get(space..)?);
            // More than two words are prose.
            if memchr::memchr2(b' ', b'\t', value).is_some() {
                return None;
            }
            space
        }
    };
    let (key, value) = (trim(line.get(..separator)?), trim(line.get(separator + 1..)?));
    (!key.is_empty()).then_some((key, value))
}

fn trim(mut text: &[u8]) -> &[u8] {
    while let Some((_, rest)) = text.split_first().filter(|(first, _)| is_space(**first)) {
        text = rest;
    }
    while let Some((_, rest)) = text.split_last().filter(|(last, _)| is_space(**last)) {
        text = rest;
    }
    text
}

/// The six of C, including the vertical tab.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RobotsKey {
    UserAgent,
    Allow,
    Disallow,
    CrawlDelay,
    Sitemap,
    ContentUsage,
    ContentSignal,
    License,
    Other,
}

impl RobotsKey {
    fn of(key: &[u8]) -> RobotsKey {
        let begins = |name: &&str| key.get(..name.len()).is_some_and(|head| head.eq_ignore_ascii_case(name.as_bytes()));
        let names: [(&[&str], RobotsKey); 8] = [
            (&["user-agent", "useragent", "user agent"], RobotsKey::UserAgent),
            (&["allow"], RobotsKey::Allow),
            (&["disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"], RobotsKey::Disallow),
            (&["crawl-delay", "crawldelay", "crawl delay"], RobotsKey::CrawlDelay),
            (&["sitemap", "site-map"], RobotsKey::Sitemap),
            (&["content-usage"], RobotsKey::ContentUsage),
            (&["content-signal"], RobotsKey::ContentSignal),
            (&["license"], RobotsKey::License),
        ];
        names.iter().find(|(names, _)| names.iter().any(begins)).map_or(RobotsKey::Other, |(_, key)| *key)
    }
}

/// Decimal seconds, with or without a fraction; words may follow. Too long a number counts as `u64::MAX` seconds.
fn seconds(value: &[u8]) -> Option<Duration> {
    let number = value.split(|byte| is_space(*byte)).next()?;
    let (whole, fraction) = match memchr::memchr(b'.', number) {
        Some(point) => (number.get(..point)?, number.get(point + 1..)?),
        None => (number, &[][..]),
    };
    let is_number = |digits: &[u8]| digits.iter().all(u8::is_ascii_digit);
    if !is_number(whole) || !is_number(fraction) || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let digit = |byte: &u8| u64::from(byte.wrapping_sub(b'0'));
    let seconds = whole.iter().fold(0u64, |sum, byte| sum.saturating_mul(10).saturating_add(digit(byte)));
    let (nanos, _) =
        fraction.iter().take(9).fold((0u64, 100_000_000u64), |(sum, unit), byte| (sum + digit(byte) * unit, unit / 10));
    Some(Duration::new(seconds, nanos as u32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::Rng;

    const LIMIT: usize = 512 * 1024;

    fn rules(body: &str) -> Rules {
        Rules::parse(body.as_bytes(), "ExampleBot", LIMIT)
    }

    #[test]
    fn groups() {
        let merged = rules(
            "User-agent: examplebot\nDisallow: /a\n\nUser-agent: *\nDisallow: /\n\nUSER-AGENT: ExampleBot/2\nDisallow: /b",
        );
        assert!(!merged.allows("/a") && !merged.allows("/b") && merged.allows("/c"));
        let empty = rules("User-agent: *\nDisallow: /\nUser-agent: ExampleBot\nDisallow:\n");
        assert!(empty.allows("/x"));
        let other = rules("User-agent: ExampleBot-News\nDisallow: /\n");
        assert!(other.allows("/x"));
        let star = rules("Disallow: /early\nUser-agent: * (all)\nDisallow: /a\n");
        assert!(!star.allows("/a") && star.allows("/early"));
        let both = rules(
            "User-agent: *\nUser-agent: ExampleBot\nSitemap: https://a.test/s.xml\nUser-agent: x\nDisallow: /a\n",
        );
        assert!(!both.allows("/a"));
        assert_eq!(both.sitemaps(), [Box::from("https://a.test/s.xml")]);
        let bytes = Rules::parse(b"Sitemap: /caf\xe9.xml\nSITEMAP:/caf\xc3\xa9.xml\nSite-map: \n", "x", usize::MAX);
        assert_eq!(bytes.sitemaps(), [Box::from("/caf%E9.xml"), Box::from("/caf\u{e9}.xml")]);
    }

    #[test]
    fn lenient_lines() {
        for body in [
            "\u{feff}User-agent: *\nDisallow: /a",
            "user agent : *\rdisallow : /a # no\r",
            "useragent *\r\n\tdisallow\t/a\r\n",
            "User-Agent:*\nDisalow:/a",
            "User-agent: *\nDisallow: /a\0/b",
            "User-agent: *\nDISALLOWED: /a",
        ] {
            assert!(!rules(body).allows("/a"), "{body:?}");
            assert!(rules(body).allows("/b"), "{body:?}");
        }
        assert!(rules("User-agent: *\nDisallow /a /b").allows("/a"), "prose");
        assert!(rules("<html>\nUser-agent: *<br>Disallow: /\n</html>").allows("/a"));
    }

    #[test]
    fn the_heaviest_rule_wins_and_allow_wins_ties() {
        let tie = rules("User-agent: *\nDisallow: /a\nAllow: /%61\n");
        assert!(tie.allows("/a"));
        let index = rules("User-agent: *\nDisallow: /\nAllow: /d/index.html\n");
        assert!(index.allows("/d/") && index.allows("/d/index.html") && !index.allows("/d") && !index.allows("/d/x"));
        let twice = rules("User-agent: *\nDisallow: /a\nDisallow: /a\nDisallow: never\n");
        assert_eq!(twice.len(), 1);
    }

    #[test]
    fn delays() {
        for (text, expected) in [
            ("10", Some(Duration::from_secs(10))),
            ("0.5", Some(Duration::from_millis(500))),
            (".25", Some(Duration::from_millis(250))),
            ("4.", Some(Duration::from_secs(4))),
            ("3 seconds", Some(Duration::from_secs(3))),
            ("1.0000000019", Some(Duration::new(1, 1))),
            ("99999999999999999999999", Some(Duration::from_secs(u64::MAX))),
            ("-1", None),
            ("", None),
            (".", None),
            ("1e9", None),
            ("ten", None),
        ] {
            assert_eq!(rules(&format!("User-agent: *\nCrawl-delay: {text}\n")).crawl_delay(), expected, "{text}");
        }
        assert_eq!(
            rules("User-agent: *\nCrawl-delay: x\nCrawl-delay: 2\nCrawl-delay: 3").crawl_delay().unwrap().as_secs(),
            2
        );
    }

    #[test]
    fn a_body_that_is_too_long_loses_its_broken_line() {
        let body = "User-agent: *\nDisallow: /\nAllow: /public/only\n";
        for limit in 0..body.len() {
            let cut = Rules::parse(body.as_bytes(), "x", limit);
            assert!(!cut.allows("/public/") || !cut.allows("/") || limit < 25, "an Allow line was cut at {limit}");
            assert_eq!(cut.allows("/"), limit < 25, "limit {limit}");
        }
        assert!(rules(body).allows("/public/only"));
    }

    /// No bytes can cause a panic, and the rules keep their invariants.
    #[test]
    fn hostile_bytes() {
        let sample = b"\xEF\xBB\xBFUser-agent: ExampleBot\r\nAllow: /a*b%2A$\nDisallow: /\xC3\xBC%zz?x=%2F\nCrawl-delay: 1.5\nSitemap: x\n";
        for cut in 0..sample.len() {
            Rules::parse(&sample[..cut], "ExampleBot", LIMIT).allows("/a?b");
            Rules::parse(sample, "ExampleBot", cut).allows("/a?b");
        }
        let mut rng = Rng::new(1);
        for round in 0..20_000 {
            let mut bytes = sample.to_vec();
            for _ in 0..1 + round % 8 {
                let at = rng.index(bytes.len());
                bytes[at] = rng.next() as u8;
            }
            let rules = Rules::parse(&bytes, "ExampleBot", LIMIT);
            assert!(rules.allows("/robots.txt") && rules.len() <= 4);
            rules.allows("/a\u{fc}%?x=%2f");
        }
        assert!(Rules::parse(&[0xFF; 4096], "ExampleBot", LIMIT).is_empty());
    }
}
