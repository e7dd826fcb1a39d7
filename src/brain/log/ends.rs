//! The entries of the log of ends: how URLs ended, what hosts have asked for, and which links between sites were
//! counted.
//!
//! Decides: what is kept of a page for the rest of the crawl, in some ten bytes: outcome, tries, time, and where its
//! records lie.
//!
//! The payload of a block, in this order, with numbers as in [`super::number`]:
//! - names of the failures that occur (count; length and name of each);
//! - ends (count), each as: step of the URL's number, code, flags and tries in one number, step of the time in
//!   seconds, if there is a record steps of shard, segment and offset, and if flagged the bytes of the response;
//! - hosts (count), each as: length of the name, name, delay in milliseconds, time in seconds until which it rests;
//! - if there are any, links between sites (count), each as ten bytes ([`SiteLink`]); if there are hosts, the count
//!   even if it is 0;
//! - for each host the seconds that it was to rest when that was noted, then for each its health
//!   ([`super::host_note`]);
//! - if there are any, details of failures (count), each as: step of the URL's number from 0 on, length and text.
//!
//! Older versions have not written all of these.
//! Codes: 0 another try is owed, 1 to 999 the status of a response, from 1,000 on the failures of the list.
//! Flags: 1 there is a record, 2 the body was a duplicate; above the tries, which are one byte: 1,024 the bytes of
//! the response follow, 2,048 it was a challenge; from 4,096 on a number of three bits: how the body was cut
//! ([`Truncated`]), 0 if it was not.

use super::host_note::HostNote;
use super::number;
use crate::backlinks::SiteLink;
use ringcrawl_base::time::Duration;
use ringcrawl_base::{Failure, Truncated};

/// How a URL ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndKind {
    /// With a response of this status.
    Fetched(u16),
    /// Without one.
    Failed(Failure),
    /// Not any more: its earlier end is void. Its record is lost, or it failed and is fetched again.
    Reopened,
}

/// The end of a URL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct End {
    /// The URL's number.
    pub url: u64,
    /// How it ended.
    pub kind: EndKind,
    /// Requests that were made for it.
    pub tries: u8,
    /// Whether its body was that of a recently stored page.
    pub is_duplicate: bool,
    /// Whether the response was a challenge in place of a page.
    pub is_challenge: bool,
    /// How the body was cut, if it was.
    pub cut: Option<Truncated>,
    /// When, in seconds since 1970.
    pub seconds: u64,
    /// Where its first record lies; `None` if there is none.
    pub place: Option<RecordPlace>,
    /// Bytes of its response, where they are counted for a budget; else 0.
    pub bytes: u64,
}

impl End {
    /// The approximate size before compression.
    pub const BYTES: usize = 12;
}

/// Where a record lies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct RecordPlace {
    /// The shard whose directory holds it: another one than the URL's after a redistribution.
    pub shard: u16,
    /// Number of the segment.
    pub segment: u32,
    /// First byte.
    pub offset: u64,
}

/// The content of one block.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EndEntries {
    /// In order.
    pub ends: Vec<End>,
    /// In order: the last note on a host holds.
    pub hosts: Vec<HostNote>,
    /// The links that revealed another linking site.
    pub links: Vec<SiteLink>,
    /// Details of how some of the URLs failed, by their numbers.
    pub details: Vec<(u64, Box<str>)>,
}

impl EndEntries {
    /// The approximate size of its content in bytes.
    pub fn bytes(&self) -> usize {
        End::BYTES * self.ends.len()
            + self.hosts.iter().map(HostNote::bytes).sum::<usize>()
            + SiteLink::BYTES * self.links.len()
            + self.details.iter().map(|(_, words)| detail_bytes(words)).sum::<usize>()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty() && self.hosts.is_empty() && self.links.is_empty() && self.details.is_empty()
    }

    /// The payload.
    pub fn to_payload(&self) -> Vec<u8> {
        let mut failures: Vec<Failure> = Vec::new();
        for end in &self.ends {
            if let EndKind::Failed(failure) = end.kind
                && !failures.contains(&failure)
            {
                failures.push(failure);
            }
        }
        let mut payload = Vec::with_capacity(self.bytes());
        let out = &mut payload;
        number::put(out, failures.len() as u64);
        for failure in &failures {
            put_text(out, failure.as_str());
        }
        number::put(out, self.ends.len() as u64);
        let mut last = Last::default();
        for end in &self.ends {
            number::put_step(out, &mut last.url, end.url);
            let code = match end.kind {
                EndKind::Reopened => 0,
                EndKind::Fetched(status) => u64::from(status),
                EndKind::Failed(failure) => {
                    FAILURES_FROM + failures.iter().position(|known| *known == failure).unwrap_or_default() as u64
                }
            };
            number::put(out, code);
            let told = if end.bytes > 0 { HAS_BYTES } else { 0 };
            let wall = if end.is_challenge { IS_CHALLENGE } else { 0 };
            let cut =
                end.cut.map_or(0, |cut| CUTS.iter().position(|known| *known == cut).unwrap_or_default() as u64 + 1);
            let flags = told
                | wall
                | cut << CUT_SHIFT
                | if end.place.is_some() { HAS_RECORD } else { 0 }
                | if end.is_duplicate { IS_DUPLICATE } else { 0 };
            number::put(out, flags | (u64::from(end.tries) << FLAG_BITS));
            number::put_step(out, &mut last.seconds, end.seconds);
            if let Some(place) = end.place {
                number::put_step(out, &mut last.shard, u64::from(place.shard));
                number::put_step(out, &mut last.segment, u64::from(place.segment));
                number::put_step(out, &mut last.offset, place.offset);
            }
            if end.bytes > 0 {
                number::put(out, end.bytes);
            }
        }
        number::put(out, self.hosts.len() as u64);
        for note in &self.hosts {
            put_text(out, &note.host);
            number::put(out, note.delay.as_millis() as u64);
            number::put(out, note.until_seconds);
        }
        if !self.links.is_empty() || !self.hosts.is_empty() || !self.details.is_empty() {
            number::put(out, self.links.len() as u64);
            self.links.iter().for_each(|link| link.put(out));
        }
        self.hosts.iter().for_each(|note| number::put(out, note.lasts_seconds));
        self.hosts.iter().for_each(|note| note.put_health(out));
        if !self.details.is_empty() {
            number::put(out, self.details.len() as u64);
            let mut last = 0;
            for (url, words) in &self.details {
                number::put_step(out, &mut last, *url);
                put_text(out, words);
            }
        }
        payload
    }

    /// Parses a payload; `None` if it is invalid, or names a failure that this version does not know.
    pub fn from_payload(mut payload: &[u8]) -> Option<EndEntries> {
        let bytes = &mut payload;
        let mut failures = Vec::new();
        for _ in 0..number::take(bytes)? {
            let name = take_text(bytes)?;
            failures.push(*Failure::ALL.iter().find(|failure| failure.as_str() == name)?);
        }
        let (mut entries, mut last) = (EndEntries::default(), Last::default());
        for _ in 0..number::take(bytes)? {
            let url = number::take_step(bytes, &mut last.url)?;
            let kind = match number::take(bytes)? {
                0 => EndKind::Reopened,
                status @ 1..FAILURES_FROM => EndKind::Fetched(status as u16),
                code => EndKind::Failed(*failures.get(usize::try_from(code - FAILURES_FROM).ok()?)?),
            };
            let flags = number::take(bytes)?;
            let tries = u8::try_from((flags & !(HAS_BYTES | IS_CHALLENGE | CUT_MASK)) >> FLAG_BITS).ok()?;
            let seconds = number::take_step(bytes, &mut last.seconds)?;
            let mut place = None;
            if flags & HAS_RECORD != 0 {
                let shard = u16::try_from(number::take_step(bytes, &mut last.shard)?).ok()?;
                let segment = u32::try_from(number::take_step(bytes, &mut last.segment)?).ok()?;
                place = Some(RecordPlace { shard, segment, offset: number::take_step(bytes, &mut last.offset)? });
            }
            let bytes = if flags & HAS_BYTES != 0 { number::take(bytes)? } else { 0 };
            let [is_duplicate, is_challenge] = [IS_DUPLICATE, IS_CHALLENGE].map(|flag| flags & flag != 0);
            let cut = match (flags & CUT_MASK) >> CUT_SHIFT {
                0 => None,
                cut => Some(*CUTS.get(usize::try_from(cut - 1).ok()?)?),
            };
            entries.ends.push(End { url, kind, tries, is_duplicate, is_challenge, cut, seconds, place, bytes });
        }
        for _ in 0..number::take(bytes)? {
            let host = take_text(bytes)?.into();
            let delay = Duration::from_millis(number::take(bytes)?);
            let (until_seconds, lasts_seconds) = (number::take(bytes)?, HostNote::UNTOLD);
            entries.hosts.push(HostNote { host, delay, until_seconds, lasts_seconds, ..HostNote::default() });
        }
        if !bytes.is_empty() {
            let count = number::take(bytes)?;
            let links = number::take_bytes(bytes, count.checked_mul(SiteLink::BYTES as u64)?)?;
            entries.links.extend(SiteLink::all_from_bytes(links)?);
        }
        if !bytes.is_empty() {
            for note in &mut entries.hosts {
                note.lasts_seconds = number::take(bytes)?;
            }
        }
        if !bytes.is_empty() {
            for note in &mut entries.hosts {
                note.take_health(bytes)?;
            }
        }
        if !bytes.is_empty() {
            let mut last = 0;
            for _ in 0..number::take(bytes)? {
                let url = number::take_step(bytes, &mut last)?;
                entries.details.push((url, take_text(bytes)?.into()));
            }
        }
        bytes.is_empty().then_some(entries)
    }
}

/// The approximate size of a detail before compression.
pub(super) fn detail_bytes(words: &str) -> usize {
    words.len() + End::BYTES
}

/// What steps are counted from.
#[derive(Default)]
struct Last {
    url: u64,
    seconds: u64,
    shard: u64,
    segment: u64,
    offset: u64,
}

pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    number::put(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

pub(super) fn take_text<'a>(bytes: &mut &'a [u8]) -> Option<&'a str> {
    let length = number::take(bytes)?;
    std::str::from_utf8(number::take_bytes(bytes, length)?).ok()
}

const FAILURES_FROM: u64 = 1_000;
const FLAG_BITS: u32 = 2;
const HAS_RECORD: u64 = 1;
const IS_DUPLICATE: u64 = 2;
const HAS_BYTES: u64 = 1 << (FLAG_BITS + 8);
const IS_CHALLENGE: u64 = 1 << (FLAG_BITS + 9);
const CUT_SHIFT: u32 = FLAG_BITS + 10;
const CUT_MASK: u64 = 7 << CUT_SHIFT;
/// By their numbers, less one.
pub(super) const CUTS: [Truncated; 4] =
    [Truncated::Length, Truncated::Time, Truncated::Disconnect, Truncated::Unspecified];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::JobKind;
    use crate::trouble::{Cause, HostHealth, Trouble};
    use ringcrawl_url::Scheme;

    fn health(host: &str) -> HostHealth {
        let trouble = |asked, origin, cause, again| Trouble {
            asked,
            origin,
            cause,
            detail: host.into(),
            tries: 1,
            tries_max: u8::MAX,
            seconds: 1_800_000_000,
            again,
        };
        let (delay, response) = (Duration::from_millis(4_001), Duration::from_millis(7));
        let troubles = vec![
            trouble(JobKind::Resolve, None, Cause::Failure(Failure::DnsFailed), Some(0)),
            trouble(JobKind::Robots, Some((Scheme::Https, u16::MAX)), Cause::Status(999), None),
            trouble(JobKind::Page, Some((Scheme::Http, 0)), Cause::Failure(Failure::Reset), Some(u64::MAX - 1)),
        ];
        match host {
            "a.test" => HostHealth { delay, response, troubles },
            _ => HostHealth::default(),
        }
    }

    fn sample() -> EndEntries {
        let end = |url, kind, place| End {
            url,
            kind,
            tries: 1,
            is_duplicate: url == 7,
            is_challenge: url == 3 || url == 7,
            cut: (url < CUTS.len() as u64 + 2).then(|| CUTS[url as usize - 2]),
            seconds: 1_800_000_000 - url % 10,
            place,
            bytes: if url == 3 { u64::MAX } else { 0 },
        };
        let place = |segment, offset| Some(RecordPlace { shard: (segment >> 16) as u16, segment, offset });
        let note = |host: &str, delay| HostNote {
            host: host.into(),
            delay,
            until_seconds: 1_800_000_000,
            lasts_seconds: delay.as_secs_f64() as u64,
            health: health(host),
        };
        EndEntries {
            ends: vec![
                end(7, EndKind::Fetched(200), place(0, 1_000)),
                end(3, EndKind::Fetched(999), place(u32::MAX, 1 << 50)),
                End { tries: u8::MAX, ..end(u64::MAX, EndKind::Failed(Failure::HostDead), None) },
                end(4, EndKind::Failed(Failure::RobotsDenied), None),
                end(5, EndKind::Failed(Failure::HostDead), None),
                end(7, EndKind::Reopened, None),
            ],
            hosts: vec![note("a.test", Duration::from_secs(30)), note("b.test", Duration::ZERO)],
            links: vec![SiteLink { to: u64::MAX, mark: 3 }, SiteLink { to: 1, mark: u16::MAX }],
            details: vec![(u64::MAX, "words".into()), (4, "".into())],
        }
    }

    #[test]
    fn there_and_back() {
        for entries in [EndEntries::default(), sample()] {
            assert_eq!(EndEntries::from_payload(&entries.to_payload()), Some(entries));
        }
    }

    #[test]
    fn cut_anywhere_it_is_none() {
        let payload = sample().to_payload();
        // Older versions wrote no links; then no rest durations of hosts, here a byte for each of two hosts; then no
        // health; then no details.
        let mut health = Vec::new();
        sample().hosts.iter().for_each(|note| note.put_health(&mut health));
        let without_details = EndEntries { details: Vec::new(), ..sample() };
        let whole = without_details.to_payload().len();
        let without_links = EndEntries { links: Vec::new(), ..without_details.clone() }.to_payload();
        let older = [without_links.len() - health.len() - 3, whole - health.len() - 2, whole - health.len(), whole];
        for cut in (0..payload.len()).filter(|cut| !older.contains(cut)) {
            assert_eq!(EndEntries::from_payload(&payload[..cut]), None, "cut at {cut}");
        }
        for (version, cut) in older.into_iter().enumerate() {
            let mut expected = without_details.clone();
            if version < 3 {
                expected.hosts.iter_mut().for_each(|note| note.health = HostHealth::default());
            }
            if version < 2 {
                expected.hosts.iter_mut().for_each(|note| note.lasts_seconds = HostNote::UNTOLD);
            }
            if version == 0 {
                expected.links.clear();
            }
            assert_eq!(EndEntries::from_payload(&payload[..cut]), Some(expected), "cut at {cut}");
        }
        let only = EndEntries { details: sample().details, ..EndEntries::default() };
        assert_eq!(EndEntries::from_payload(&only.to_payload()), Some(only));
        let text = String::from_utf8_lossy(&payload).into_owned();
        let at = text.find("host-dead").expect("by its name");
        let mut unknown = payload.clone();
        unknown[at] = b'g';
        assert_eq!(EndEntries::from_payload(&unknown), None, "an unknown failure");
    }

    #[test]
    fn an_end_takes_a_dozen_bytes() {
        let ends = (0..1_000).map(|number| End {
            url: number * 7_919 % 1_000_003,
            kind: EndKind::Fetched(200),
            tries: 1,
            is_duplicate: false,
            is_challenge: false,
            cut: None,
            seconds: 1_800_000_000 + number / 50,
            place: Some(RecordPlace { shard: 3, segment: 17, offset: number * 5_000 }),
            bytes: 0,
        });
        let payload = EndEntries { ends: ends.collect(), ..EndEntries::default() }.to_payload();
        assert!(payload.len() <= 1_000 * End::BYTES, "{}", payload.len());
    }
}
