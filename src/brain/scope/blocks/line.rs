//! One line of a block list.
//!
//! Decides: the formats of lists in use. A host; with a dot before it or `||…^` around it also the hosts below it;
//! with `*.` only those below it. The form of a hosts file, `0.0.0.0 host host`. A URL; with `*` at its end all URLs
//! with that prefix; without a scheme for either scheme. An address or a range of addresses. `#` at the beginning or
//! after white space begins a comment.

use super::ranges::Cidr;
use ringcrawl_url::Url;
use ringcrawl_url::names;

/// A blocked entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Entry<'a> {
    /// This host.
    Host(std::borrow::Cow<'a, str>),
    /// This host and all below it.
    Suffix(String),
    /// All hosts below this one.
    Below(String),
    /// This URL.
    Url(Url),
    /// Every URL with this prefix.
    Prefix(Url),
    /// These addresses.
    Cidr(Cidr),
}

/// The expected format.
pub const EXPECTED: &str =
    "a host, .suffix, URL, URL prefix with * at its end, address or range of addresses such as 192.0.2.0/24";

/// Gives the entries of a line to `take`; an error describes the mistake.
pub fn read<'a>(line: &'a [u8], mut take: impl FnMut(Entry<'a>)) -> Result<(), String> {
    let line = line.trim_ascii();
    // Most lines are a valid name.
    if is_plain_name(line)
        && let Ok(name) = str::from_utf8(line)
    {
        take(Entry::Host(name.into()));
        return Ok(());
    }
    let text = str::from_utf8(line).map_err(|_| format!("not UTF-8; expected {EXPECTED}"))?;
    let mut words = text.split_whitespace().take_while(|word| !word.starts_with('#'));
    let Some(first) = words.next() else { return Ok(()) };
    let mut hosts = words.peekable();
    if hosts.peek().is_some() {
        // An address of one interface, as `fe80::1%lo0`.
        let address = first.split_once('%').map_or(first, |(address, _)| address);
        if Cidr::parse(address).is_none() || first.contains('/') {
            return Err(format!("several words; expected {EXPECTED}, or the form of a hosts file: 0.0.0.0 host"));
        }
        return hosts.try_for_each(|host| match names::read(host).ok_or_else(wrong)? {
            // Every hosts file lists its own machine.
            name if is_own(&name) => Ok(()),
            name => {
                take(Entry::Host(name.into()));
                Ok(())
            }
        });
    }
    if first.starts_with("//") {
        for scheme in ["http:", "https:"] {
            take(entry(&format!("{scheme}{first}")).ok_or_else(wrong)?);
        }
        return Ok(());
    }
    take(entry(first).ok_or_else(wrong)?);
    Ok(())
}

fn entry<'a>(word: &str) -> Option<Entry<'a>> {
    if word.starts_with("http://") || word.starts_with("https://") {
        let (text, is_prefix) = word.strip_suffix('*').map_or((word, false), |text| (text, true));
        let url = Url::parse(text).ok()?;
        return Some(if is_prefix { Entry::Prefix(url) } else { Entry::Url(url) });
    }
    if let Some(cidr) = Cidr::parse(word.trim_start_matches('[').trim_end_matches(']')) {
        return Some(Entry::Cidr(cidr));
    }
    let name = |text: &str| names::read(text).filter(|name| !name.starts_with('['));
    if let Some(rest) = word.strip_prefix("*.") {
        return name(rest).map(Entry::Below);
    }
    let suffix = word.strip_prefix('.').or_else(|| word.strip_prefix("||").and_then(|rest| rest.strip_suffix('^')));
    match suffix {
        Some(suffix) => name(suffix).map(Entry::Suffix),
        None => name(word).map(|name| Entry::Host(name.into())),
    }
}

/// Whether a line is one host in the form that URLs use.
fn is_plain_name(line: &[u8]) -> bool {
    // An address ends in a digit. Two hyphens may belong to an internationalized label, which must be checked.
    let is_plain = |[before, byte]: [u8; 2]| match byte {
        b'a'..=b'z' | b'0'..=b'9' => true,
        b'-' | b'.' => before != byte,
        _ => false,
    };
    let befores = std::iter::once(b'.').chain(line.iter().copied());
    line.last().is_some_and(u8::is_ascii_lowercase)
        && line.len() <= 253
        && befores.zip(line).all(|(before, byte)| is_plain([before, *byte]))
}

/// Names of the machine itself, as hosts files have them.
fn is_own(name: &str) -> bool {
    matches!(name, "localhost" | "localhost.localdomain" | "local" | "broadcasthost" | "0.0.0.0")
        || name.starts_with("ip6-")
}

/// An invalid line is never quoted: anyone who can replace a list by a link could otherwise read another user's
/// secrets in the log.
fn wrong() -> String {
    format!("cannot be read; expected {EXPECTED}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(line: &str) -> Vec<Entry<'_>> {
        let mut entries = Vec::new();
        read(line.as_bytes(), |entry| entries.push(entry)).unwrap_or_else(|why| panic!("{line}: {why}"));
        entries
    }

    #[test]
    fn lines_as_lists_have_them() {
        let host = |name: &'static str| Entry::Host(name.into());
        let url = |text: &str| Url::parse(text).unwrap();
        for (line, expected) in [
            ("example.org\r", vec![host("example.org")]),
            ("Example.ORG. # why", vec![host("example.org")]),
            ("münchen.de", vec![host("xn--mnchen-3ya.de")]),
            (".example.org", vec![Entry::Suffix("example.org".to_owned())]),
            ("||example.org^", vec![Entry::Suffix("example.org".to_owned())]),
            ("*.example.org", vec![Entry::Below("example.org".to_owned())]),
            ("0.0.0.0 a.test b.test", vec![host("a.test"), host("b.test")]),
            ("127.0.0.1\tlocalhost", vec![]),
            ("::1 ip6-localhost", vec![]),
            ("fe80::1%lo0 localhost", vec![]),
            ("https://A.test/x", vec![Entry::Url(url("https://a.test/x"))]),
            ("https://a.test*", vec![Entry::Prefix(url("https://a.test/"))]),
            ("//A.test/x", vec![Entry::Url(url("http://a.test/x")), Entry::Url(url("https://a.test/x"))]),
            ("//a.test/x*", vec![Entry::Prefix(url("http://a.test/x")), Entry::Prefix(url("https://a.test/x"))]),
            ("192.0.2.0/24", vec![Entry::Cidr(Cidr::parse("192.0.2.0/24").unwrap())]),
            ("[2001:db8::1]", vec![Entry::Cidr(Cidr::parse("2001:db8::1").unwrap())]),
            ("  # nothing", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(entries(line), expected, "{line}");
        }
        for line in [
            "a..test",
            "a b",
            "http://",
            "10.0.0.0/33",
            "a.test/x",
            "||a.test",
            "*",
            "ftp://a.test/",
            "//",
            "//a b",
            "1.2.3.4 a/b",
        ] {
            let why = read(line.as_bytes(), |entry| panic!("{line}: {entry:?}")).expect_err(line);
            assert!(why.contains(EXPECTED) && (line.len() < 3 || !why.contains(line)), "{why}");
        }
        assert!(read(b"\xff", |_| {}).is_err());
    }

    /// The fast path gives the same result as the slow one.
    #[test]
    fn plain_names_are_names() {
        for line in
            ["a.test", "a-b.example.org", "a..b", "x1.2.test", "xn--a.test", "org", "-a.test", "a.xn--b.test", ".a"]
        {
            if is_plain_name(line.as_bytes()) {
                assert_eq!(names::read(line).as_deref(), Some(line));
            }
        }
        assert!(is_plain_name(b"a-b.example.org") && !is_plain_name(b"a..b") && !is_plain_name(b"192.0.2.1"));
    }
}
