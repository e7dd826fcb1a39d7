//! The verdict of the last stored robots.txt on a URL, and the line that decides.
//!
//! Decides: redirects are followed from one stored response to the next, as far as the crawl would follow them. A
//! wall and a truncated file are judged as the crawl judges them: they forbid everything. The deciding line is
//! searched in the text: it is the line that alone yields this very rule, and without which another rule decides.
//! Limits: `robots.body_bytes_max` bytes; [`TRIED_MAX`] lines that look alike. A running crawl has the version that
//! it read last in memory, which may be newer than the one stored here.

use std::io;
use std::path::Path;

use ringcrawl_base::Truncated;
use ringcrawl_brain::page::interstitial;
use ringcrawl_config::Config;
use ringcrawl_http as http;
use ringcrawl_robots::{Decisive, Meaning, Rules, meaning};
use ringcrawl_url::Url;

/// The result.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct RobotsFound {
    /// The URL of the response.
    pub(super) url: Option<String>,
    /// Its time, as 14 digits.
    pub(super) timestamp: String,
    pub(super) says: Says,
}

/// The verdict of a robots.txt on the URL.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) enum Says {
    /// None is stored.
    #[default]
    Nothing,
    /// It has this status, which forbids nothing.
    Missing(u16),
    /// It has this status, which forbids everything; the text describes it further, if not empty.
    Unreachable(u16, &'static str),
    /// It was read.
    Rules {
        allows: bool,
        /// The line that decides, with its number; `None`: no rule matches the URL.
        line: Option<(usize, String)>,
    },
}

/// Looks for the robots.txt of `url` in the crawl in `dir`.
pub(super) fn find(dir: &Path, url: &Url, config: &Config) -> io::Result<RobotsFound> {
    let Ok(mut at) = url.join("/robots.txt") else { return Ok(RobotsFound::default()) };
    let bytes_max = config.robots.body_bytes_max;
    for _ in 0..=config.robots.redirects_max {
        let Some(found) = crate::cli::store::latest(dir, &at, bytes_max)? else { break };
        let status = found.head.status();
        let headers = found.head.headers();
        if let Some(target) = http::redirect_target(&at, status, headers.get("location")) {
            at = target;
            continue;
        }
        let says = match meaning(status) {
            _ if interstitial::find(status, &headers, &found.content).is_some() => {
                Says::Unreachable(status, INTERSTITIAL)
            }
            Meaning::Parse if is_torn(&found.truncated, found.content.len(), bytes_max) => {
                Says::Unreachable(status, TORN)
            }
            Meaning::Parse => says(&found.content, config.agent.token(), bytes_max, url.path_and_query()),
            Meaning::AllowAll => Says::Missing(status),
            Meaning::Unreachable => Says::Unreachable(status, ""),
        };
        return Ok(RobotsFound { url: Some(at.as_str().to_owned()), timestamp: found.timestamp, says });
    }
    Ok(RobotsFound::default())
}

fn says(body: &[u8], token: &str, bytes_max: usize, path: &str) -> Says {
    let rules = Rules::parse(body, token, bytes_max);
    let line = rules.decisive(path).and_then(|decisive| line_of(body, token, bytes_max, path, &decisive));
    Says::Rules { allows: rules.allows(path), line }
}

/// Whether rules may be missing at the end, by the crawl's own criteria.
fn is_torn(truncated: &str, content_bytes: usize, bytes_max: usize) -> bool {
    match truncated {
        "" => false,
        word if word == Truncated::Length.as_str() => content_bytes < bytes_max,
        _ => true,
    }
}

/// The line of `body` that holds the rule, with its number from 1.
fn line_of(body: &[u8], token: &str, bytes_max: usize, path: &str, decisive: &Decisive) -> Option<(usize, String)> {
    let is_it = |line: &[u8]| {
        let alone = [b"User-agent: *\n", line].concat();
        Rules::parse(&alone, "*", alone.len()).decisive(path).as_ref() == Some(decisive)
    };
    let numbered = lines(body).enumerate().map(|(index, (start, line))| (index + 1, start, line));
    let lines: Vec<_> = numbered.filter(|(_, _, line)| is_it(line)).take(TRIED_MAX).collect();
    let without = |(_, start, line): &&(usize, usize, &[u8])| {
        let (before, behind) = (body.get(..*start)?, body.get(start + line.len()..)?);
        let rest = [before, behind].concat();
        Some(Rules::parse(&rest, token, bytes_max).decisive(path).as_ref() != Some(decisive))
    };
    // Several lines may be in other groups, or all in ours.
    let found = lines.iter().find(|line| without(line) == Some(true)).or(lines.first());
    found
        .map(|(number, _, line)| (*number, String::from_utf8_lossy(line).trim().chars().take(LINE_CHARS_MAX).collect()))
}

/// The lines, each with its start offset: they end with CR, LF, or both.
fn lines(body: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut next = 0;
    std::iter::from_fn(move || {
        let start = next;
        let rest = body.get(start..).filter(|rest| !rest.is_empty())?;
        let (line, end) = rest.split_at(memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len()));
        next = start + line.len() + if end.starts_with(b"\r\n") { 2 } else { 1 };
        Some((start, line))
    })
}

/// Describes a file that the crawler was not let in to read.
const INTERSTITIAL: &str = " and a wall: a challenge, or a demand for payment";
/// Describes a file whose end is missing.
const TORN: &str = ", cut off before its end";
/// Maximum number of lines tried.
const TRIED_MAX: usize = 64;
/// A longer line is cut.
const LINE_CHARS_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_with_cr_lf_or_both() {
        let body = b"User-agent: *\r\rDisallow: /a\r\n\r\n\nDisallow: /b\n\rDisallow: /c";
        for (path, number) in [("/a", 3), ("/b", 6), ("/c", 8)] {
            let line = Some((number, format!("Disallow: {path}")));
            assert_eq!(says(body, "bot", 1 << 16, path), Says::Rules { allows: false, line }, "{path}");
        }
    }

    #[test]
    fn a_file_is_torn_unless_it_was_longer_than_is_read() {
        for (truncated, content_bytes, torn) in
            [("", 5, false), ("length", 9, true), ("length", 10, false), ("time", 10, true), ("disconnect", 0, true)]
        {
            assert_eq!(is_torn(truncated, content_bytes, 10), torn, "{truncated} {content_bytes}");
        }
    }

    #[test]
    fn the_line_that_decides_is_found_in_its_group() {
        let body =
            b"User-agent: *\r\nDisallow: /a\r\nUser-agent: bot\r\nDisallow: /b # b\r\nDisallow: /a\r\nAllow: /a/c$\r\n";
        let line = |path| match says(body, "bot", 1 << 16, path) {
            Says::Rules { allows, line } => (allows, line),
            other => panic!("{other:?}"),
        };
        let of = |number, text: &str| Some((number, text.to_owned()));
        assert_eq!(line("/a/x"), (false, of(5, "Disallow: /a")), "the second line is others'");
        assert_eq!(line("/b"), (false, of(4, "Disallow: /b # b")));
        assert_eq!(line("/a/c"), (true, of(6, "Allow: /a/c$")));
        assert_eq!(line("/c"), (true, None));
        assert_eq!(line("/robots.txt"), (true, None));
        let twice = b"User-agent: bot\nDisallow: /%61\nDisallow: /a\n";
        let found = says(twice, "bot", 1 << 16, "/a");
        assert_eq!(found, Says::Rules { allows: false, line: of(2, "Disallow: /%61") });
    }
}
