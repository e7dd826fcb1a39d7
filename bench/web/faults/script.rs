//! Scripts: the bytes that a faulty spot sends, and what it does then.
//!
//! Decides: a fault is either wrong bytes, which are written here, or time and a broken connection, which the
//! connection carries out as scripted. Endless output ends at a bound in any case, so that a client that never stops
//! reading does not keep the server busy for ever.
//! Invariants: pure; the same spot and question give the same script.
//! Leaves to others: sockets (`connection`), how a crawler must handle it (`ending`).

use std::time::Duration;

use super::Fault;
use super::pages::{Parts, filler, huge_robots};
use super::spot::Spot;
use crate::answer::PIXEL;
use crate::gzip::{Piece, Sink};
use ringcrawl_base::time::UnixTime;

/// The parts of a request that a script depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question<'a> {
    /// Number of earlier requests for the same URL.
    pub asked_before: u64,
    /// If-None-Match, if it was sent.
    pub if_none_match: Option<&'a str>,
    /// The server's clock.
    pub now: UnixTime,
}

/// The response to one request.
#[derive(Debug)]
pub(crate) struct Script {
    /// Time before the first byte.
    pub wait: Duration,
    /// Status, and the fixed bytes of the response; `None`: the usual answer.
    pub message: Option<(u16, Vec<u8>)>,
    /// What follows them.
    pub then: Then,
    /// How long the client was asked to wait.
    pub retry_after: Option<Duration>,
}

/// A connection's behaviour behind the bytes of a script.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Then {
    /// Waits for the next request, or closes if it was asked to.
    Next,
    /// Closes.
    Close,
    /// Resets the connection.
    Reset,
    /// Sends nothing more.
    Hold,
    /// Sends these bytes again and again, with a pause before each time, and closes if there is no next request.
    Drip { bytes: &'static [u8], count: u32, next: bool },
    /// Sends this piece over and over, `bytes` in all, and closes if there is no next request.
    Flood { piece: Vec<u8>, bytes: u64, next: bool },
}

/// Pause between two drips.
pub(crate) const DRIP_PAUSE: Duration = Duration::from_millis(50);
/// A late first byte comes after this.
pub(crate) const LATE: Duration = Duration::from_secs(1);
/// Drips of a body that ends.
pub(crate) const DRIPS: usize = 16;
/// Drips of an endless body: ten minutes.
const DRIPS_MAX: u32 = 12_000;
/// Bytes of an endless body or head.
pub(crate) const FLOOD_BYTES_MAX: u64 = 4 << 30;
/// Length of a huge page.
pub(crate) const HUGE_BYTES: u64 = 50_000_000;
/// Length of a bomb's content.
pub(crate) const BOMB_BYTES: u64 = 100_000_000;
/// Retry-After in seconds; a date is one second later, because it loses the fraction of a second.
const RETRY_AFTER_SECONDS: u64 = 1;

impl Script {
    fn raw(status: u16, bytes: Vec<u8>, then: Then) -> Script {
        Script { wait: Duration::ZERO, message: Some((status, bytes)), then, retry_after: None }
    }

    /// The script of a spot; `None`: it is healthy.
    pub fn new(fault: Fault, spot: Spot, question: &Question) -> Option<Script> {
        if spot == Spot::Robots {
            return match fault {
                Fault::RobotsTimeout => Some(Script::raw(200, Vec::new(), Then::Hold)),
                Fault::Robots5xx => Some(Script::raw(500, short(500, "", b"Out of order.\n"), Then::Next)),
                Fault::RobotsHuge => {
                    let body = huge_robots();
                    let fields = format!("Content-Type: text/plain\r\nContent-Length: {}\r\n", body.len());
                    Some(Script::raw(200, message(200, &fields, &[&body]), Then::Next))
                }
                _ => None,
            };
        }
        let Spot::Page(number) = spot else { return None };
        if fault == Fault::RetryAfter {
            return retry_after(number, question);
        }
        if fault == Fault::Changing {
            return Some(changing(spot, question));
        }
        let is_first = match number {
            1 => true,
            3 => false,
            _ => return None,
        };
        let Parts { first, second } = Parts::new(fault, spot, 0);
        let whole_bytes = first.len() + second.len();
        let with_length = |length: usize| format!("{HTML}Content-Length: {length}\r\n");
        let chunks = |piece: &[u8]| [chunk(&first), piece.to_vec()].concat();
        let script = match (fault, is_first) {
            (Fault::SlowFirstByte, true) => Script { wait: LATE, message: None, then: Then::Next, retry_after: None },
            (Fault::SlowFirstByte, false) => Script::raw(200, Vec::new(), Then::Hold),
            (Fault::DrippingBody, true) => {
                let bytes = message(200, &with_length(first.len() + DRIPS), &[&first]);
                Script::raw(200, bytes, Then::Drip { bytes: b".", count: DRIPS as u32, next: true })
            }
            (Fault::DrippingBody, false) => {
                let then = Then::Drip { bytes: b"1\r\n.\r\n", count: DRIPS_MAX, next: false };
                Script::raw(200, message(200, CHUNKED, &[&chunks(b"")]), then)
            }
            (Fault::ResetInHead, _) => {
                let head = format!("HTTP/1.1 200 OK\r\n{HTML}");
                let half = if is_first { 9 } else { head.len() };
                Script::raw(200, head.into_bytes().into_iter().take(half).collect(), Then::Reset)
            }
            (Fault::ResetInBody, true) => {
                Script::raw(200, message(200, &with_length(whole_bytes), &[&first]), Then::Reset)
            }
            (Fault::ResetInBody, false) => Script::raw(200, message(200, CHUNKED, &[&chunks(b"")]), Then::Reset),
            (Fault::ShortLength, _) => {
                Script::raw(200, message(200, &with_length(first.len()), &[&first, &second]), Then::Close)
            }
            (Fault::LongLength, _) => Script::raw(200, message(200, &with_length(whole_bytes), &[&first]), Then::Close),
            (Fault::BadChunk, _) => {
                let size: &[u8] = if is_first { b"zz\r\n" } else { b"fffffffffffffffff\r\n" };
                Script::raw(200, message(200, CHUNKED, &[&chunks(size), &second]), Then::Close)
            }
            (Fault::EndlessBody, true) => {
                let then = Then::Flood { piece: chunk(&filler()), bytes: FLOOD_BYTES_MAX, next: false };
                Script::raw(200, message(200, CHUNKED, &[&chunks(b"")]), then)
            }
            (Fault::EndlessBody, false) => {
                let then = Then::Flood { piece: filler(), bytes: FLOOD_BYTES_MAX, next: false };
                Script::raw(200, message(200, &format!("{HTML}Connection: close\r\n"), &[&first]), then)
            }
            (Fault::EndlessHead, _) => {
                let line: &[u8] = if is_first { b"X-And-Another: one more\r\n" } else { b"another word and " };
                let start = if is_first { "HTTP/1.1 200 OK\r\n" } else { "HTTP/1.1 200 OK\r\nX-Long: " };
                let then = Then::Flood { piece: line.repeat(64), bytes: FLOOD_BYTES_MAX, next: false };
                Script::raw(200, start.as_bytes().to_vec(), then)
            }
            (Fault::HugePage, true) => {
                let rest = HUGE_BYTES.saturating_sub(first.len() as u64);
                let fields = format!("{HTML}Content-Length: {HUGE_BYTES}\r\n");
                let then = Then::Flood { piece: filler(), bytes: rest, next: true };
                Script::raw(200, message(200, &fields, &[&first]), then)
            }
            (Fault::GzipBomb, true) => {
                let body = bomb(&first);
                let fields = format!("{}Content-Encoding: gzip\r\n", with_length(body.len()));
                Script::raw(200, message(200, &fields, &[&body]), Then::Next)
            }
            (Fault::WrongType, true) => {
                let fields = format!("Content-Type: image/gif\r\nContent-Length: {whole_bytes}\r\n");
                Script::raw(200, message(200, &fields, &[&first, &second]), Then::Next)
            }
            (Fault::WrongType, false) => {
                Script::raw(200, message(200, &with_length(PIXEL.len()), &[PIXEL]), Then::Next)
            }
            _ => return None,
        };
        Some(script)
    }
}

/// "Later": once for the first two pages, always for the third.
fn retry_after(number: u64, question: &Question) -> Option<Script> {
    if number != 3 && question.asked_before > 0 {
        return None;
    }
    let status = if number == 2 { 429 } else { 503 };
    let (value, wait) = if number == 2 {
        let seconds = question.now.as_micros() / 1_000_000 + RETRY_AFTER_SECONDS + 1;
        let at = UnixTime::from_micros(seconds * 1_000_000);
        (http_date(at), Duration::from_micros(at.as_micros().saturating_sub(question.now.as_micros())))
    } else {
        (RETRY_AFTER_SECONDS.to_string(), Duration::from_secs(RETRY_AFTER_SECONDS))
    };
    let bytes = short(status, &format!("Retry-After: {value}\r\n"), LATER);
    Some(Script { retry_after: Some(wait), ..Script::raw(status, bytes, Then::Next) })
}

/// The body sent instead of a page.
pub(crate) const LATER: &[u8] = b"Later.\n";

/// A page with a new version at every other request, so that a client that knows the version learns once that it is
/// unchanged (304, RFC 9110 section 15.4.5), and then that it has changed.
fn changing(spot: Spot, question: &Question) -> Script {
    let version = question.asked_before / 2;
    let tag = format!("\"v{version}\"");
    if question
        .if_none_match
        .is_some_and(|tags| tags.split(',').any(|one| matches!(one.trim(), one if one == tag || one == "*")))
    {
        return Script::raw(304, message(304, &format!("ETag: {tag}\r\n"), &[]), Then::Next);
    }
    let body = Parts::new(Fault::Changing, spot, version).whole();
    let fields = format!("{HTML}ETag: {tag}\r\nContent-Length: {}\r\n", body.len());
    Script::raw(200, message(200, &fields, &[&body]), Then::Next)
}

const HTML: &str = "Content-Type: text/html; charset=utf-8\r\n";
const CHUNKED: &str = "Content-Type: text/html; charset=utf-8\r\nTransfer-Encoding: chunked\r\n";

/// A response without a page.
fn short(status: u16, fields: &str, body: &[u8]) -> Vec<u8> {
    message(status, &format!("Content-Type: text/plain\r\n{fields}Content-Length: {}\r\n", body.len()), &[body])
}

fn message(status: u16, fields: &str, parts: &[&[u8]]) -> Vec<u8> {
    let reason = match status {
        200 => "OK",
        304 => "Not Modified",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        _ => "Service Unavailable",
    };
    let mut bytes = format!("HTTP/1.1 {status} {reason}\r\n{fields}Server: ringcrawl-web\r\n\r\n").into_bytes();
    parts.iter().for_each(|part| bytes.extend_from_slice(part));
    bytes
}

fn chunk(data: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{:x}\r\n", data.len()).into_bytes();
    bytes.extend_from_slice(data);
    bytes.extend_from_slice(b"\r\n");
    bytes
}

/// `first`, and zeros up to `BOMB_BYTES`, as gzip: some 100 KB.
pub(crate) fn bomb(first: &[u8]) -> Vec<u8> {
    let zeros = Piece::new(vec![0; 1 << 20]);
    let mut body = Vec::new();
    let mut sink = Sink::new(&mut body, true);
    sink.fresh().extend_from_slice(first);
    while sink.plain_bytes() < BOMB_BYTES {
        sink.piece(&zeros);
    }
    sink.finish();
    body
}

/// RFC 9110 section 5.6.7.
fn http_date(time: UnixTime) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (year, month, day, hour, minute, second, _) = time.civil();
    let pick = |names: &'static [&'static str], index: usize| names.get(index).copied().unwrap_or_default();
    let weekday = pick(&DAYS, (time.as_micros() / 86_400_000_000 % 7) as usize);
    let month = pick(&MONTHS, usize::from(month).saturating_sub(1));
    format!("{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(asked_before: u64) -> Question<'static> {
        Question { asked_before, if_none_match: None, now: UnixTime::from_micros(784_111_777_250_000) }
    }

    #[test]
    fn dates_are_those_of_the_standard() {
        assert_eq!(http_date(UnixTime::from_micros(784_111_777_250_000)), "Sun, 06 Nov 1994 08:49:37 GMT");
    }

    #[test]
    fn waits_are_asked_for_and_end() {
        let first = Script::new(Fault::RetryAfter, Spot::Page(1), &ask(0)).unwrap();
        assert_eq!(first.retry_after, Some(Duration::from_secs(1)));
        let dated = Script::new(Fault::RetryAfter, Spot::Page(2), &ask(0)).unwrap();
        assert_eq!(dated.retry_after, Some(Duration::from_millis(1_750)));
        let text = String::from_utf8(dated.message.unwrap().1).unwrap();
        assert!(text.contains("\r\nRetry-After: Sun, 06 Nov 1994 08:49:39 GMT\r\n"), "{text}");
        for number in [1, 2] {
            assert!(Script::new(Fault::RetryAfter, Spot::Page(number), &ask(1)).is_none());
        }
        assert!(Script::new(Fault::RetryAfter, Spot::Page(3), &ask(9)).is_some());
    }

    #[test]
    fn versions_are_told_apart() {
        let with = |tag, asked_before| {
            let question = Question { if_none_match: tag, ..ask(asked_before) };
            Script::new(Fault::Changing, Spot::Page(1), &question).unwrap().message.unwrap().0
        };
        assert_eq!([with(None, 0), with(Some("\"v0\""), 1), with(Some("\"v0\""), 2)], [200, 304, 200]);
        assert_eq!(with(Some("\"v7\", \"v1\""), 3), 304);
    }

    #[test]
    fn a_bomb_is_small() {
        let bomb = bomb(b"first");
        assert!(bomb.len() < 200_000, "{}", bomb.len());
        let mut decoder = flate2::read::GzDecoder::new(bomb.as_slice());
        let bytes = std::io::copy(&mut decoder, &mut std::io::sink()).unwrap();
        assert!((BOMB_BYTES..BOMB_BYTES + (2 << 20)).contains(&bytes), "{bytes}");
    }
}
