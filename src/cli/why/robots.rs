//! What the robots.txt that a crawl stored last says of a URL, and the line that decides.
//!
//! Decides: redirects are followed from one stored answer to the next, as far as the crawl would. The line is looked for in the text:
//! the one that is this very rule by itself, and without which another decides.
//! Limits: `robots.body_bytes_max` bytes; [`TRIED_MAX`] lines that look alike. A crawl has in memory what it read last, which may be
//! newer than what is stored here while it runs.

use std::io;
use std::path::Path;

use crate::config::Config;
use crate::http;
use crate::robots::{Decisive, Meaning, Rules, meaning};
use crate::url::Url;

/// What was found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct RobotsFound {
    /// Where the answer came from.
    pub(super) url: Option<String>,
    /// When, as 14 digits.
    pub(super) timestamp: String,
    pub(super) says: Says,
}

/// What a robots.txt says of the URL.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) enum Says {
    /// None is stored.
    #[default]
    Nothing,
    /// It has this status, which forbids nothing.
    Missing(u16),
    /// It has this status, which forbids all.
    Unreachable(u16),
    /// It was read.
    Rules {
        allows: bool,
        /// The line that decides, with its number; `None`: no rule is about the URL.
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
        let location = found.head.get("Location");
        if let Some(target) = http::redirect_target(&at, status, location.as_deref().map(str::as_bytes)) {
            at = target;
            continue;
        }
        let says = match meaning(status) {
            Meaning::Parse => says(&found.content, config.agent.token(), bytes_max, url.path_and_query()),
            Meaning::AllowAll => Says::Missing(status),
            Meaning::Unreachable => Says::Unreachable(status),
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

/// The line of `body` that is the rule, with its number from 1.
fn line_of(body: &[u8], token: &str, bytes_max: usize, path: &str, decisive: &Decisive) -> Option<(usize, String)> {
    let is_it = |line: &[u8]| {
        let alone = [b"User-agent: *\n", line].concat();
        Rules::parse(&alone, "*", alone.len()).decisive(path).as_ref() == Some(decisive)
    };
    let (mut start, mut lines) = (0, Vec::new());
    for (index, line) in body.split(|byte| *byte == b'\n').enumerate() {
        if lines.len() < TRIED_MAX && is_it(line) {
            lines.push((index + 1, start, line));
        }
        start += line.len() + 1;
    }
    let without = |(_, start, line): &&(usize, usize, &[u8])| {
        let (before, behind) = (body.get(..*start)?, body.get(start + line.len()..)?);
        let rest = [before, behind].concat();
        Some(Rules::parse(&rest, token, bytes_max).decisive(path).as_ref() != Some(decisive))
    };
    // Several of them may be of other groups, or all of ours.
    let found = lines.iter().find(|line| without(line) == Some(true)).or(lines.first());
    found
        .map(|(number, _, line)| (*number, String::from_utf8_lossy(line).trim().chars().take(LINE_CHARS_MAX).collect()))
}

/// Lines that are tried.
const TRIED_MAX: usize = 64;
/// A longer line is told in part.
const LINE_CHARS_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

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
