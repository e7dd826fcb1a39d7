//! The addresses of a document that is a list, on their way to the caller.
//!
//! Decides: addresses of a feed or of text are passed on at once. Those of a sitemap wait for its end, each once, and
//! are passed on with the newest `lastmod` first: what is offered first is fetched first. A date is only a hint: it
//! moves an entry within its own document, so a false date harms no other site. Only the first date of an entry
//! counts, and if it is unreadable the entry has none: so a document with nothing but dates costs one pass. Entries
//! without a date come last, in document order.
//!
//! Source: sitemaps.org protocol 0.9 ("Sitemap file location & size", `lastmod`: W3C Datetime); Google's news
//! extension.
//! Limits: a [`Budget`], widened for a sitemap; of a sitemap, [`SITEMAP_BYTES_MAX`] bytes.

use std::cmp::Reverse;

use encoding_rs::{Encoding, UTF_8};

use super::super::{Budget, Kind, Kinds, Sitemap, Summary};
use super::trim;
use ringcrawl_url::{Base, Repeats, Url, UrlError, fingerprint};

/// Bytes of a sitemap that are read, in UTF-8 (sitemaps.org: 50 MiB, 52,428,800 bytes, uncompressed).
const SITEMAP_BYTES_MAX: u64 = 50 << 20;

/// What has been found.
pub(super) struct Listed<'o> {
    pub(super) summary: Summary,
    kinds: &'o Kinds,
    budget: &'o mut Budget,
    out: &'o mut dyn FnMut(Kind, Url),
    /// Addresses of a sitemap, until its end.
    waiting: Vec<Address>,
    repeats: Repeats,
    /// Where the current entry begins among them, and its date; 0: unreadable; `None`: none so far.
    entry: usize,
    lastmod: Option<u64>,
}

struct Address {
    lastmod: u64,
    kind: Kind,
    url: Url,
}

impl<'o> Listed<'o> {
    pub(super) fn new(
        encoding: &'static Encoding,
        kinds: &'o Kinds,
        budget: &'o mut Budget,
        out: &'o mut dyn FnMut(Kind, Url),
    ) -> Listed<'o> {
        let summary = Summary::none(encoding);
        Listed { summary, kinds, budget, out, waiting: Vec::new(), repeats: Repeats::new(), entry: 0, lastmod: None }
    }

    /// Notes that it is a sitemap.
    pub(super) fn is_sitemap(&mut self, sitemap: Sitemap) {
        self.summary.sitemap = Some(sitemap);
        self.budget.widen();
    }

    /// Notes that `bytes` bytes of the document were read: beyond `SITEMAP_BYTES_MAX`, no more is taken from a
    /// sitemap.
    pub(super) fn has_read(&mut self, bytes: u64) {
        if bytes > SITEMAP_BYTES_MAX && self.summary.sitemap.is_some() {
            self.budget.close("the 50 MiB of a sitemap");
        }
    }

    /// An entry of a sitemap begins.
    pub(super) fn begin_entry(&mut self) {
        (self.entry, self.lastmod) = (self.waiting.len(), None);
    }

    /// The date of the entry, as written in `text`.
    pub(super) fn dated(&mut self, text: &str) {
        if self.lastmod.is_none() {
            let lastmod = date(text);
            self.lastmod = Some(lastmod);
            let entry = self.waiting.get_mut(self.entry..).unwrap_or_default();
            entry.iter_mut().for_each(|address| address.lastmod = lastmod);
        }
    }

    pub(super) fn take(&mut self, base: Option<&Base>, kind: Kind, text: &str) {
        let text = trim(text);
        if text.is_empty() || !self.kinds.has(kind) {
            return;
        }
        if !self.budget.admits(text) {
            self.summary.dropped += 1;
            return;
        }
        let Some(base) = base else {
            self.summary.bad += 1;
            return;
        };
        match base.resolve(text, UTF_8) {
            Ok(url) => {
                // Each page lists itself in all other languages: those names are links, but not new ones. No seed is
                // needed: a document with two colliding links only loses one of its own.
                let hash = fingerprint(0, url.as_str());
                let is_new = match self.budget.has_room() {
                    true => self.repeats.is_new(hash),
                    false => !self.repeats.has(hash),
                };
                if !self.budget.took(url.as_str().len(), is_new) {
                    self.summary.dropped += 1;
                    return;
                }
                if !is_new && self.summary.sitemap.is_some() {
                    return;
                }
                self.summary.links += 1;
                match self.summary.sitemap {
                    Some(_) => self.waiting.push(Address { lastmod: self.lastmod.unwrap_or_default(), kind, url }),
                    None => (self.out)(kind, url),
                }
            }
            Err(UrlError::Scheme) => self.summary.other_scheme += 1,
            Err(_) => self.summary.bad += 1,
        }
    }

    /// Ends the document.
    pub(super) fn finish(mut self) -> Summary {
        self.waiting.sort_by_key(|address| Reverse(address.lastmod));
        self.waiting.into_iter().for_each(|Address { kind, url, .. }| (self.out)(kind, url));
        self.summary
    }
}

/// A W3C Datetime as a number that is higher for a later one, whatever its zone: 14 digits, from year to second. 0:
/// not a date.
pub(super) fn date(text: &str) -> u64 {
    let is_part = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'-' | b':' | b'T' | b't' | b' ');
    let part = text.trim().bytes().take(DATE_BYTES).take_while(is_part);
    let (mut number, mut digits) = (0, 0);
    for digit in part.filter(u8::is_ascii_digit) {
        (number, digits) = (10 * number + u64::from(digit - b'0'), digits + 1);
    }
    if digits < 4 { 0 } else { number * 10_u64.pow(14_u32.saturating_sub(digits)) }
}

/// Of `2026-11-26T13:20:00`: 14 digits.
const DATE_BYTES: usize = 19;
