//! Block lists: millions of hosts, URLs and addresses that get no request.
//!
//! Decides: a URL is blocked by its host, by a name above its host, by its address, by itself or by its prefix, in
//! any spelling (`spelling`).
//! Why this structure: see docs/decisions/block-lists-are-hashed-texts.md.
//! Invariants: exact, because a page blocked by mistake is lost; a list never changes.
//! Limits: lists are read line by line, lines of [`reading::LINE_BYTES_MAX`]; the entries have a bound in bytes;
//! mistakes beyond [`reading::TOLD_MAX`] are only counted.
//! Leaves to others: opening files (`boot`), when to check (`shard`, `frontier`).

mod line;
mod ranges;
mod reading;
mod recent;
mod texts;

use std::net::IpAddr;

use super::spelling;
use ranges::Ranges;
pub use reading::{BlockListReader, Mistakes};
pub use recent::ClearHosts;
use ringcrawl_url::Url;
use ringcrawl_url::names;
use texts::Texts;

/// What gets no request.
#[derive(Debug, Default)]
pub struct BlockList {
    /// Names of hosts with what is blocked there, and URLs.
    texts: Texts,
    /// Prefixes of URLs, in order; none is a prefix of another.
    prefixes: Vec<Box<str>>,
    ranges: Ranges,
    entries: usize,
}

/// What blocks a URL.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BlockedBy {
    /// A name that its host is, or is below.
    Name(String),
    /// Itself, or its prefix.
    Url,
    /// The address that it names.
    Address,
}

/// The host itself is blocked.
const THIS: texts::Flags = 1;
/// Every host below it is blocked.
const BELOW: texts::Flags = 2;
/// Some of its URLs are blocked.
const SOME_URLS: texts::Flags = 4;
/// This URL is blocked.
const URL: texts::Flags = 8;

impl BlockList {
    /// Parses the list in `text`; returns it with its mistakes.
    pub fn parse(file: &str, text: &[u8]) -> (BlockList, Mistakes) {
        let mut reader = BlockListReader::new(usize::MAX);
        // Reading from memory cannot fail, and there is no bound to exceed.
        let read = reader.read(file, text);
        debug_assert!(read.is_ok(), "{read:?}");
        reader.list()
    }

    /// Whether nothing is blocked.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// The number of entries, repeated ones included.
    pub fn len(&self) -> usize {
        self.entries
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        let prefixes = self.prefixes.iter().map(|prefix| prefix.len() + size_of::<Box<str>>());
        self.texts.bytes() + self.ranges.bytes() + prefixes.sum::<usize>()
    }

    /// Whether `url` is blocked.
    pub fn blocks(&self, url: &Url) -> bool {
        if self.is_empty() {
            return false;
        }
        let host = names::bare(url.host());
        let flags = self.flags_of(host);
        flags & THIS != 0 || flags & SOME_URLS != 0 && self.blocks_itself(url)
    }

    /// Whether every URL of `host` is blocked.
    pub fn blocks_host(&self, host: &str) -> bool {
        !self.is_empty() && self.flags_of(names::bare(host)) & THIS != 0
    }

    /// Whether neither `host` nor any of its URLs is blocked.
    pub fn has_nothing_at(&self, host: &str) -> bool {
        self.is_empty() || self.flags_of(names::bare(host)) == 0
    }

    /// Whether `address` is blocked.
    pub fn blocks_address(&self, address: IpAddr) -> bool {
        self.ranges.contain(address)
    }

    /// Whether any address is.
    pub fn has_addresses(&self) -> bool {
        !self.ranges.is_empty()
    }

    /// What blocks `url`, if it is blocked.
    pub fn why(&self, url: &Url) -> Option<BlockedBy> {
        let host = names::bare(url.host());
        let name = names::above(host).find(|name| {
            let flags = self.texts.flags(name.as_bytes());
            flags & BELOW != 0 && *name != host || flags & THIS != 0 && *name == host
        });
        match name {
            _ if !self.blocks(url) => None,
            Some(name) => Some(BlockedBy::Name(name.to_owned())),
            None if self.flags_of(host) & THIS != 0 => Some(BlockedBy::Address),
            None => Some(BlockedBy::Url),
        }
    }

    /// The flags of a host; `THIS` is set if a name above it or its address is blocked.
    fn flags_of(&self, host: &str) -> texts::Flags {
        let mut names = names::above(host);
        let own = names.next().map_or(0, |name| self.texts.flags(name.as_bytes()));
        let is_below = names.any(|name| self.texts.flags(name.as_bytes()) & BELOW != 0);
        let is_within = is_below || self.has_addresses() && self.blocks_literal(host);
        own & (THIS | SOME_URLS) | if is_within { THIS } else { 0 }
    }

    /// Whether `host` is a blocked address.
    fn blocks_literal(&self, host: &str) -> bool {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        // Names end in a letter.
        let may_be_one = host.ends_with(|last: char| last.is_ascii_digit() || last == ']');
        may_be_one && bare.parse().is_ok_and(|address| self.blocks_address(address))
    }

    fn blocks_itself(&self, url: &Url) -> bool {
        let without_dot = without_dot(url);
        let text = spelling::plain(without_dot.as_deref().unwrap_or(url.as_str()));
        let behind = self.prefixes.partition_point(|prefix| **prefix <= *text);
        let before = behind.checked_sub(1).and_then(|at| self.prefixes.get(at));
        before.is_some_and(|prefix| text.starts_with(&**prefix)) || self.texts.flags(text.as_bytes()) & URL != 0
    }
}

/// A URL without the trailing dot of its host, which does not make another host; `None` if there is no dot.
fn without_dot(url: &Url) -> Option<String> {
    let bare = url.host().strip_suffix('.')?;
    let (before, behind) = url.as_str().split_once(url.host())?;
    Some(format!("{before}{bare}{behind}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::Rng;

    fn list(text: &str) -> BlockList {
        let (list, mistakes) = BlockList::parse("list", text.as_bytes());
        assert_eq!(mistakes, Mistakes::default());
        list
    }

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn what_is_listed_is_blocked_and_nothing_else() {
        let list = list(
            "host.test\n.suffix.test\n*.below.test\n0.0.0.0 hosts.test more.test\nhttps://url.test/a?b\nhttps://url.test/dir/*\n\
             http://url.test/di*\n//both.test/%70rivate/*\n//both.test:8080/~x\nhttps://url.test/%7Eu/caf%c3%a9?to=%2Fx\n192.0.2.0/24\n2001:db8::/32\n",
        );
        for text in [
            "http://host.test/x",
            "http://host.test./",
            "https://suffix.test/",
            "http://a.b.suffix.test/",
            "http://a.below.test/",
            "http://hosts.test/",
            "http://more.test/",
            "https://url.test/a?b",
            "https://url.test/dir/x",
            "http://url.test/dirs",
            "https://url.test/d%69r/x",
            "https://url.test/~u/café?to=/x",
            "https://url.test/%7eu/caf%C3%A9?to=%2fx",
            "http://both.test/private/a",
            "https://both.test/%70r%69vate/a",
            "http://both.test:8080/%7Ex",
            "https://url.test./dir/x",
            "https://url.test./a?b",
            "http://192.0.2.9/",
            "http://[2001:db8::9]/",
        ] {
            assert!(list.blocks(&url(text)) && list.why(&url(text)).is_some(), "{text}");
        }
        for text in [
            "http://a.host.test/",
            "http://nosuffix.test/",
            "http://below.test/",
            "https://url.test/a?bc",
            "https://url.test/dir",
            "http://url.test/a?b",
            "https://url.test/dir%2Fx",
            "http://both.test/%2570rivate/a",
            "http://both.test:81/private/a",
            "http://192.0.3.9/",
            "http://test/",
        ] {
            assert!(!list.blocks(&url(text)) && list.why(&url(text)).is_none(), "{text}");
        }
        assert!(list.blocks_host("a.suffix.test") && !list.blocks_host("url.test"));
        assert!(list.blocks_address("192.0.2.7".parse().unwrap()) && list.has_addresses());
        assert_eq!(list.len(), 15, "one without a scheme is two");
        assert_eq!(list.why(&url("http://x.suffix.test/")), Some(BlockedBy::Name("suffix.test".to_owned())));
        assert_eq!(list.why(&url("http://192.0.2.1/")), Some(BlockedBy::Address));
        assert_eq!(list.why(&url("https://url.test/a?b")), Some(BlockedBy::Url));
        assert!(!BlockList::default().blocks(&url("http://a.test/")));
    }

    /// Random lists and URLs of few words: the result equals that of checking each entry.
    #[test]
    fn verdicts_are_those_of_the_twin() {
        let mut rng = Rng::new(3);
        let words = ["a", "b", "ab", "c"];
        let mut blocked = 0;
        for _ in 0..500 {
            let host = |rng: &mut Rng| {
                let labels: Vec<&str> = (0..1 + rng.below(3)).map(|_| *rng.pick(&words)).collect();
                format!("{}.test", labels.join("."))
            };
            let mut lines = Vec::new();
            for _ in 0..rng.below(8) {
                let (host, path) = (host(&mut rng), *rng.pick(&["/", "/a", "/a/b", "/ab"]));
                lines.push(match rng.below(5) {
                    0 => host,
                    1 => format!(".{host}"),
                    2 => format!("*.{host}"),
                    3 => format!("http://{host}{path}"),
                    _ => format!("http://{host}{path}*"),
                });
            }
            let list = list(&lines.join("\n"));
            for _ in 0..50 {
                let host = host(&mut rng);
                let text = format!("http://{host}{}", rng.pick(&["/", "/a", "/a/b", "/ab", "/a/bc", "/b"]));
                let is_in = |line: &String| match line {
                    line if line.starts_with("http") => {
                        line.strip_suffix('*').map_or(*line == text, |prefix| text.starts_with(prefix))
                    }
                    line if line.starts_with('.') => format!(".{host}").ends_with(&**line),
                    line if line.starts_with("*.") => host.ends_with(&line[1..]),
                    line => *line == host,
                };
                let slow = lines.iter().any(is_in);
                blocked += u32::from(slow);
                assert_eq!(list.blocks(&url(&text)), slow, "{lines:?} {text}");
            }
        }
        assert!(blocked > 1_000, "{blocked}");
    }
}
