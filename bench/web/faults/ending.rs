//! Endings: how a faulty URL must end for a crawler with a given configuration.
//!
//! Decides: the crawler keeps everything it can get. A response with a complete head is kept as far as it arrived and
//! marked with the reason. A 429 or 503 is requested again as often as `politeness.retries_max` allows. If no
//! response can arrive, the failure has a name. Limits are the crawler's own, so the bytes of a body that is cut at a
//! limit are known exactly.
//! Invariants: pure; computed from the same parts as the scripts, never from a response.
//! Limits: a crawler whose limits exceed the bounds of the scripts (4 GiB, ten minutes) sees those bounds instead.

use xxhash_rust::xxh3::Xxh3;

use super::Fault;
use super::pages::{LATE_RULE_BYTES, Parts, filler};
use super::script::{BOMB_BYTES, DRIPS, HUGE_BYTES, LATE, LATER, bomb};
use super::spot::{CHAIN, Spot};
use crate::truth::Expected;
use ringcrawl_base::{Failure, Truncated};
use ringcrawl_config::{Certificates, Config};

/// How a faulty URL ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ending {
    /// A response is kept that is not everything the server would send.
    Cut {
        /// Its mark.
        why: Truncated,
        /// The part that is kept.
        kept: Expected,
        /// More may be kept behind it: how much arrives before the deadline is unknown.
        open: bool,
    },
    /// It is requested more than once: the status of every response, and the last response.
    Again {
        /// One per request.
        statuses: Vec<u16>,
        /// The response that is kept in the end.
        last: Expected,
    },
    /// No response arrives, after `requests` requests for the URL.
    Failed {
        /// The name of the failure.
        failure: Failure,
        /// Requests for the URL itself; robots.txt and names are not counted.
        requests: u32,
    },
}

/// How `spot` ends; `None`: like any healthy page.
pub(crate) fn ending(fault: Fault, spot: Spot, config: &Config) -> Option<Ending> {
    let failed = |failure, requests| Some(Ending::Failed { failure, requests });
    let tries = u32::from(config.politeness.retries_max) + 1;
    match fault {
        Fault::RobotsTimeout => return failed(Failure::RobotsUnreachable, 0),
        Fault::Robots5xx => return failed(Failure::RobotsServerError, 0),
        Fault::DnsServfail => return failed(Failure::DnsFailed, 0),
        Fault::DnsNxdomain => return failed(Failure::DnsNotFound, 0),
        Fault::DnsTimeout => return failed(Failure::DnsTimeout, 0),
        _ if fault.is_of_certificate() && config.tls.certificates == Certificates::Verify => {
            return failed(
                match fault {
                    Fault::CertificateExpired => Failure::TlsExpired,
                    Fault::CertificateWrongName => Failure::TlsName,
                    _ => Failure::TlsIssuer,
                },
                0,
            );
        }
        _ => {}
    }
    let Spot::Page(number) = spot else { return None };
    let is_first = number == 1;
    let first = || Parts::new(fault, spot, 0).first;
    let cut = |why, kept| Some(Ending::Cut { why, kept, open: false });
    let wire_bytes_max = config.fetch.body_wire_bytes_max as u64;
    let body_bytes_max = config.fetch.body_bytes_max as u64;
    match fault {
        Fault::RetryAfter => return again(number, spot, tries),
        _ if number != 1 && number != 3 => return None,
        _ => {}
    }
    match (fault, is_first) {
        (Fault::SlowFirstByte, true) if config.fetch.first_byte_timeout > LATE => None,
        (Fault::SlowFirstByte, _) => failed(Failure::FirstByteTimeout, tries),
        (Fault::DrippingBody, false) => {
            Some(Ending::Cut { why: Truncated::Time, kept: expected(&first(), b"", u64::MAX), open: true })
        }
        (Fault::ResetInHead, _) => failed(Failure::Reset, tries),
        (Fault::ResetInBody | Fault::LongLength, _) => {
            cut(Truncated::Disconnect, expected(&first(), b"", wire_bytes_max.min(body_bytes_max)))
        }
        (Fault::BadChunk, _) => cut(Truncated::Unspecified, expected(&first(), b"", u64::MAX)),
        (Fault::EndlessBody, _) => {
            cut(Truncated::Length, expected(&first(), &filler(), wire_bytes_max.min(body_bytes_max)))
        }
        (Fault::EndlessHead, _) => failed(Failure::HeadTooLarge, 1),
        (Fault::HugePage, true) if wire_bytes_max.min(body_bytes_max) < HUGE_BYTES => {
            cut(Truncated::Length, expected(&first(), &filler(), wire_bytes_max.min(body_bytes_max)))
        }
        (Fault::GzipBomb, true) => {
            let ratio_bytes_max = bomb(&first()).len().saturating_mul(config.fetch.decode_ratio_max) as u64;
            let kept_bytes_max = body_bytes_max.min(ratio_bytes_max);
            (kept_bytes_max < BOMB_BYTES)
                .then(|| cut(Truncated::Length, expected(&first(), &[0; 4_096], kept_bytes_max)))
                .flatten()
        }
        _ => None,
    }
}

fn again(number: u64, spot: Spot, tries: u32) -> Option<Ending> {
    let later = expected(LATER, b"", u64::MAX);
    if number == 3 || tries == 1 {
        let status = if number == 2 { 429 } else { 503 };
        let statuses = vec![status; tries as usize];
        return Some(Ending::Again { statuses, last: Expected { status, ..later } });
    }
    let parts = Parts::new(Fault::RetryAfter, spot, 0);
    let statuses = vec![if number == 2 { 429 } else { 503 }, 200];
    Some(Ending::Again { statuses, last: expected(&parts.whole(), b"", u64::MAX) })
}

/// The body of a healthy page that has a script; `None`: the model's answer.
pub(crate) fn body(fault: Fault, spot: Spot) -> Option<Vec<u8>> {
    let Spot::Page(number) = spot else { return None };
    match (fault, number) {
        (Fault::DrippingBody, 1) => Some([Parts::new(fault, spot, 0).first, vec![b'.'; DRIPS]].concat()),
        (Fault::ShortLength, 1 | 3) => Some(Parts::new(fault, spot, 0).first),
        (Fault::WrongType, 3) => Some(crate::answer::PIXEL.to_vec()),
        _ => None,
    }
}

/// Whether a crawler that follows every link reaches a spot at all.
pub(crate) fn is_reached(fault: Fault, spot: Spot, config: &Config) -> bool {
    let redirects_max = u64::from(config.scope.redirects_max);
    match (fault, spot) {
        (Fault::RedirectChain, Spot::Chain(number)) => number <= redirects_max,
        (Fault::RedirectChain, Spot::Past(1)) => CHAIN < redirects_max, // one more leads there
        _ => true,
    }
}

/// Whether robots.txt allows a spot.
pub(crate) fn is_allowed(fault: Fault, spot: Spot, robots_bytes_max: usize) -> bool {
    match (fault, spot) {
        (Fault::RobotsHuge, Spot::Private(_)) => false,
        (Fault::RobotsHuge, Spot::Late(_)) => robots_bytes_max <= LATE_RULE_BYTES,
        _ => true,
    }
}

/// The first `bytes_max` bytes of `first` followed by `piece` repeated; all of `first` when there is no piece.
fn expected(first: &[u8], piece: &[u8], bytes_max: u64) -> Expected {
    let mut digest = Xxh3::new();
    let mut left = bytes_max;
    let mut take = |bytes: &[u8]| {
        let taken = bytes.get(..usize::try_from(left).unwrap_or(usize::MAX)).unwrap_or(bytes);
        digest.update(taken);
        left -= taken.len() as u64;
        left > 0
    };
    let mut more = take(first);
    while more && !piece.is_empty() {
        more = take(piece);
    }
    Expected { status: 200, body_bytes: bytes_max - left, body_digest: digest.digest() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::script::{Question, Script, Then};
    use ringcrawl_base::time::UnixTime;
    use ringcrawl_http::{Method, Progress, ResponseReader, decode_content};

    /// Compares what the crawler's own reader makes of a script that corrupts only bytes with the expected result.
    #[test]
    fn the_reader_agrees() {
        let mut config = Config::default();
        config.fetch.body_wire_bytes_max = 300_000;
        config.fetch.body_bytes_max = 500_000;
        let limits = config.fetch.limits();
        let question = Question { asked_before: 0, if_none_match: None, now: UnixTime::from_micros(0) };
        let mut checked = 0;
        for fault in Fault::ALL.iter().copied().filter(|fault| *fault != Fault::RetryAfter) {
            for spot in [Spot::Page(1), Spot::Page(3)] {
                let Some(script) = Script::new(fault, spot, &question) else { continue };
                let Some((_, bytes)) = script.message else { continue };
                let mut reader = ResponseReader::new(Method::Get, limits);
                let mut state = reader.feed(&bytes);
                let end = match script.then {
                    Then::Flood { piece, .. } => {
                        while state == Ok(Progress::More) {
                            state = reader.feed(&piece);
                        }
                        None
                    }
                    Then::Drip { bytes, count, next } => {
                        for _ in 0..if next { count } else { 0 } {
                            state = reader.feed(bytes);
                        }
                        Some(Truncated::Time)
                    }
                    Then::Hold => continue,
                    _ => Some(Truncated::Disconnect),
                };
                checked += 1;
                let ending = ending(fault, spot, &config);
                if let (Err(error), Some(Ending::Failed { failure, .. })) = (state, &ending) {
                    assert_eq!(error.failure(), *failure, "{fault:?} {spot:?}");
                    continue;
                }
                if let (false, Some(Ending::Failed { failure, .. })) = (reader.has_head(), &ending) {
                    assert_eq!(*failure, Failure::Reset);
                    continue;
                }
                if let (Ok(Progress::More), Some(why)) = (state, end) {
                    reader.cut(why);
                }
                let response = reader.into_response().expect("a head");
                let decoded = decode_content(&response.headers, &response.body, &limits);
                let found = Expected {
                    status: response.status,
                    body_bytes: decoded.bytes.len() as u64,
                    body_digest: xxhash_rust::xxh3::xxh3_64(&decoded.bytes),
                };
                match ending {
                    Some(Ending::Cut { why, kept, .. }) => {
                        assert_eq!(response.truncated.or(decoded.truncated), Some(why), "{fault:?} {spot:?}");
                        assert_eq!(found, kept, "{fault:?} {spot:?}");
                    }
                    None => {
                        assert_eq!(response.truncated.or(decoded.truncated), None, "{fault:?} {spot:?}");
                        let whole = body(fault, spot).unwrap_or_else(|| Parts::new(fault, spot, 0).whole());
                        assert_eq!(found, expected(&whole, b"", u64::MAX), "{fault:?} {spot:?}");
                    }
                    other => panic!("{fault:?} {spot:?}: {other:?}"),
                }
            }
        }
        assert!(checked >= 20, "{checked}");
    }
}
