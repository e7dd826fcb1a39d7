//! Messages between shards about a robots.txt on another shard's host.
//!
//! Decides: only the shard that owns a host may query it. So a shard whose origin is redirected there queries that
//! shard, which answers with the result for this one file: its rules as parsed for our agent, its redirect target, or
//! why it is unavailable. The asking shard counts redirects and follows them.
//! Format: one byte of version, then fixed fields, little endian; the rest of the message is the last field.
//!
//! | message | fields |
//! |---|---|
//! | request | URL |
//! | answer | 8 bytes: nanoseconds that it holds; 2 bytes and so many: URL; 1 byte: kind; by kind: rules (as [`Rules::to_bytes`]), a URL, or the name of a failure |
//!
//! Invariants: `from_bytes(to_bytes(m)) == m`, except for the sitemaps, which are collected where the file was
//! fetched.
//! Limits: any bytes are read without a panic; an answer is little longer than the rules' text, which
//! `robots.body_bytes_max` bounds.

use ringcrawl_base::Failure;
use ringcrawl_base::time::Duration;
use ringcrawl_robots::Rules;
use ringcrawl_url::Url;

/// "Fetch this as a robots.txt, and report the result."
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RobotsRequest {
    /// What to fetch.
    pub url: Url,
}

/// The result of fetching a file as a robots.txt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RobotsAnswer {
    /// What was fetched.
    pub url: Url,
    /// What came.
    pub result: RobotsResult,
    /// How long the result is valid; for `Unreachable`, how long no request is made.
    pub holds: Duration,
}

/// The content of a file that was fetched as a robots.txt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RobotsResult<R = Rules> {
    /// These rules; none when everything is allowed.
    Rules(R),
    /// The content is elsewhere.
    Redirect(Url),
    /// Nothing for now, for this reason: everything is forbidden.
    Unreachable(Failure),
    /// Nothing, and further attempts would not help.
    Refused(Failure),
}

impl<R> RobotsResult<R> {
    /// The same with other rules.
    pub fn map<S>(self, change: impl FnOnce(R) -> S) -> RobotsResult<S> {
        match self {
            RobotsResult::Rules(rules) => RobotsResult::Rules(change(rules)),
            RobotsResult::Redirect(url) => RobotsResult::Redirect(url),
            RobotsResult::Unreachable(failure) => RobotsResult::Unreachable(failure),
            RobotsResult::Refused(failure) => RobotsResult::Refused(failure),
        }
    }
}

impl RobotsRequest {
    /// As a message.
    pub fn to_bytes(&self) -> Vec<u8> {
        [&[VERSION], self.url.as_str().as_bytes()].concat()
    }

    /// Reads a message; `None` if it is malformed.
    pub fn from_bytes(bytes: &[u8]) -> Option<RobotsRequest> {
        let (version, rest) = bytes.split_first()?;
        (*version == VERSION).then_some(())?;
        Some(RobotsRequest { url: url(rest)? })
    }
}

impl RobotsAnswer {
    /// As a message.
    pub fn to_bytes(&self) -> Vec<u8> {
        let text = self.url.as_str().as_bytes();
        let mut bytes = vec![VERSION];
        bytes.extend(u64::try_from(self.holds.as_nanos()).unwrap_or(u64::MAX).to_le_bytes());
        // A URL has at most 65,535 bytes.
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text);
        match &self.result {
            RobotsResult::Rules(rules) => {
                bytes.push(RULES);
                bytes.extend(rules.to_bytes());
            }
            RobotsResult::Redirect(target) => {
                bytes.push(REDIRECT);
                bytes.extend(target.as_str().as_bytes());
            }
            RobotsResult::Unreachable(failure) => {
                bytes.push(UNREACHABLE);
                bytes.extend(failure.as_str().as_bytes());
            }
            RobotsResult::Refused(failure) => {
                bytes.push(REFUSED);
                bytes.extend(failure.as_str().as_bytes());
            }
        }
        bytes
    }

    /// Reads a message; `None` if it is malformed.
    pub fn from_bytes(bytes: &[u8]) -> Option<RobotsAnswer> {
        let (version, rest) = bytes.split_first()?;
        (*version == VERSION).then_some(())?;
        let (holds, rest) = rest.split_first_chunk::<8>()?;
        let (length, rest) = rest.split_first_chunk::<2>()?;
        let (text, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
        let (kind, rest) = rest.split_first()?;
        let result = match *kind {
            RULES => RobotsResult::Rules(Rules::from_bytes(rest)?),
            REDIRECT => RobotsResult::Redirect(url(rest)?),
            UNREACHABLE => RobotsResult::Unreachable(failure(rest)?),
            REFUSED => RobotsResult::Refused(failure(rest)?),
            _ => return None,
        };
        let holds = Duration::from_nanos(u64::from_le_bytes(*holds));
        Some(RobotsAnswer { url: url(text)?, result, holds })
    }
}

fn url(bytes: &[u8]) -> Option<Url> {
    Url::from_canonical(std::str::from_utf8(bytes).ok()?).ok()
}

fn failure(name: &[u8]) -> Option<Failure> {
    Failure::ALL.iter().copied().find(|failure| failure.as_str().as_bytes() == name)
}

const VERSION: u8 = 2;
const RULES: u8 = 0;
const REDIRECT: u8 = 1;
const UNREACHABLE: u8 = 2;
const REFUSED: u8 = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::Rng;

    fn answers() -> Vec<RobotsAnswer> {
        let parse = |text: &str| RobotsResult::Rules(Rules::parse(text.as_bytes(), "us", 1 << 20));
        let target = |text: &str| Url::parse(text).expect("a URL");
        let results = [
            RobotsResult::Rules(Rules::allow_all()),
            parse("User-agent: *\nDisallow: /\n"),
            parse("User-agent: *\nDisallow: /a\nAllow: /a/b$\nDisallow: /*?q=%2F\nCrawl-delay: 2.5\n"),
            parse("User-agent: us\nCrawl-delay: 1\n"),
            parse(
                "User-agent: us\nContent-Usage: /a* train-ai=n\nContent-Signal: search=no\nLicense: https://a.test/l\n",
            ),
            RobotsResult::Redirect(target("https://b.test:8443/robots/a.txt?x=y")),
            RobotsResult::Unreachable(Failure::RobotsServerError),
            RobotsResult::Refused(Failure::TlsExpired),
        ];
        let answer = |(number, result)| RobotsAnswer {
            url: target(&format!("http://a{number}.test/robots.txt")),
            result,
            holds: Duration::from_millis(1_234 * number as u64),
        };
        results.into_iter().enumerate().map(answer).collect()
    }

    #[test]
    fn what_is_written_is_read() {
        for answer in answers() {
            assert_eq!(RobotsAnswer::from_bytes(&answer.to_bytes()).as_ref(), Some(&answer));
            let request = RobotsRequest { url: answer.url };
            assert_eq!(RobotsRequest::from_bytes(&request.to_bytes()), Some(request));
        }
        let forever = RobotsAnswer { holds: Duration::MAX, ..answers().remove(0) };
        assert!(RobotsAnswer::from_bytes(&forever.to_bytes()).is_some_and(|it| it.holds.as_secs() > 1 << 30));
    }

    #[test]
    fn sitemaps_stay_where_they_were_found() {
        let rules = Rules::parse(b"Sitemap: http://a.test/map\nUser-agent: *\nDisallow: /x\n", "us", 1 << 20);
        let read = Rules::from_bytes(&rules.to_bytes()).expect("rules");
        assert!(read.sitemaps().is_empty() && !read.allows("/x") && read.allows("/y"));
    }

    #[test]
    fn damaged_messages_are_refused_or_read() {
        let mut rng = Rng::new(7);
        let (mut refused, mut read) = (0, 0);
        for _ in 0..if cfg!(miri) { 20 } else { 3_000 } {
            for answer in answers() {
                let mut bytes = answer.to_bytes();
                for _ in 0..1 + rng.below(4) {
                    let at = rng.below(bytes.len() as u64) as usize;
                    match rng.below(3) {
                        0 => bytes[at] = rng.below(256) as u8,
                        1 => bytes.truncate(at.max(1)),
                        _ => bytes.insert(at, rng.below(256) as u8),
                    }
                }
                let _ = RobotsRequest::from_bytes(&bytes);
                match RobotsAnswer::from_bytes(&bytes) {
                    None => refused += 1,
                    Some(other) => {
                        read += 1;
                        // A result that was read is usable, and is written as it was read.
                        assert_eq!(RobotsAnswer::from_bytes(&other.to_bytes()), Some(other.clone()));
                        if let RobotsResult::Rules(rules) = other.result {
                            let _ = rules.allows("/a/b?q=/");
                        }
                    }
                }
            }
        }
        assert!(refused > read && read > 0, "{refused} refused, {read} read");
        assert!(RobotsAnswer::from_bytes(&[]).is_none() && RobotsRequest::from_bytes(&[]).is_none());
        let mut other_version = answers().remove(0).to_bytes();
        other_version[0] = 1;
        assert_eq!(RobotsAnswer::from_bytes(&other_version), None);
    }
}
