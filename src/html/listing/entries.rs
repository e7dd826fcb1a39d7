//! The addresses of a document that is a list, on their way out.
//!
//! Decides: those of a feed or of text go out as they come. Those of a sitemap wait for its end, each once, and go out with the
//! newest `lastmod` first: what is offered first is fetched first. A date is a hint and no more: it moves an entry among those of
//! its own document, so a lie costs nobody else anything.
//! The first date of an entry counts, and where that cannot be read it has none: so a document of dates alone costs one pass.
//! Those without one come last, in their order.
//!
//! Source: sitemaps.org protocol 0.9 ("Sitemap file location & size", `lastmod`: W3C Datetime); Google's news extension.
//! Limits: a [`Budget`], widened for a sitemap; of a sitemap [`SITEMAP_BYTES_MAX`] bytes.

use std::cmp::Reverse;

use encoding_rs::{Encoding, UTF_8};

use super::super::{Budget, Kind, Kinds, Sitemap, Summary};
use super::trim;
use ringcrawl_url::{Base, Repeats, Url, UrlError, fingerprint};

/// Bytes of a sitemap that are read, in UTF-8 (sitemaps.org: 50 MiB, 52,428,800 bytes, uncompressed).
pub(super) const SITEMAP_BYTES_MAX: u64 = 50 << 20;

/// What has been found.
pub(super) struct Listed<'o> {
    pub(super) summary: Summary,
    kinds: &'o Kinds,
    budget: &'o mut Budget,
    out: &'o mut dyn FnMut(Kind, Url),
    /// Of a sitemap, until its end.
    waiting: Vec<Address>,
    repeats: Repeats,
    /// Where the entry that is read begins among them, and its date; 0: one that cannot be read; `None`: none so far.
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

    /// It is a sitemap.
    pub(super) fn is_sitemap(&mut self, sitemap: Sitemap) {
        self.summary.sitemap = Some(sitemap);
        self.budget.widen();
    }

    /// No more is taken of a sitemap: so many bytes of it were read.
    pub(super) fn has_read(&mut self, bytes: u64) {
        if bytes > SITEMAP_BYTES_MAX && self.summary.sitemap.is_some() {
            self.budget.close("the 50 MiB of a sitemap");
        }
    }

    /// An entry of a sitemap begins.
    pub(super) fn begin_entry(&mut self) {
        (self.entry, self.lastmod) = (self.waiting.len(), None);
    }

    /// The entry is as new as `text` says.
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
                // Each page names itself in all other languages: those names are links, but no further ones. No seed is needed: a
                // document with two links that collide loses one of its own.
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

    /// The document is at its end.
    pub(super) fn finish(mut self) -> Summary {
        self.waiting.sort_by_key(|address| Reverse(address.lastmod));
        self.waiting.into_iter().for_each(|Address { kind, url, .. }| (self.out)(kind, url));
        self.summary
    }
}

/// A W3C Datetime as a number that is higher for a later one, whatever its zone: 14 digits, from year to second. 0: none.
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
