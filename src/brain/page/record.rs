//! What a segment keeps of a response.
//!
//! Decides: the fields of the metadata record, with Heritrix's names where it has them, so that tools know them. The
//! body is stored as it came, or with `store.body` decoded where decoding worked.
//! Leaves to others: the bytes of records (`warc`).

use super::Page;
use super::payload_type::identify;
use crate::hops::Hops;
use ringcrawl_http::Framing;
use ringcrawl_warc::{Capture, head::Undone, write_field, write_number};

impl Page<'_> {
    /// Gives the capture to `take`, if there is one to store.
    pub fn store<T>(&self, take: impl FnOnce(&Capture<'_>) -> T) -> Option<T> {
        if !self.is_stored {
            return None;
        }
        let Page { job, transaction, decoded, fetched, kinds, said, .. } = self;
        let response = &transaction.response;
        let metadata = if kinds.metadata { self.metadata() } else { Vec::new() };
        let mime = self.content_type.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
        let coding = response.headers.get("content-encoding").map(String::from_utf8_lossy).unwrap_or_default();
        let is_coded = decoded.coding.is_some();
        let is_undone = is_coded && self.is_stored_decoded;
        Some(take(&Capture {
            url: &job.url,
            time: transaction.started,
            ip: transaction.ip,
            request: if kinds.request { &transaction.request_bytes } else { b"" },
            head_bytes: &response.head_bytes,
            // Uncoded content has its limit, too.
            body: if is_coded && !is_undone { &response.body } else { &decoded.bytes },
            undone: Undone { transfer: response.framing == Framing::Chunked, content: is_undone },
            is_coded: is_coded && !is_undone,
            // A cut in the content does not affect what is stored as it came.
            truncated: if is_coded && !is_undone { response.truncated } else { fetched.truncated },
            metadata: &metadata,
            status: response.status,
            mime: &mime,
            content_encoding: &coding,
            identified_type: identify(&decoded.bytes, &mime),
            robots: self.summary.as_ref().map(|found| found.robots).unwrap_or_default(),
            preferences: said.preferences,
            charset: self.summary.as_ref().map(|found| found.encoding.name()),
            redirect: fetched.redirect.as_ref(),
            tls: transaction.tls.as_ref().map(|tls| (tls.version, tls.cipher)),
        }))
    }

    /// The block of the metadata record.
    fn metadata(&self) -> Vec<u8> {
        let Page { job, transaction, decoded, summary, simhash, said, .. } = self;
        let mut block = Vec::with_capacity(METADATA_BYTES);
        let out = &mut block;
        let hops = Hops::from_bits(job.depth);
        if let Some(via) = &job.via {
            write_field(out, "via", via.as_bytes());
        }
        write_number(out, "hopsFromSeed", hops.links().into());
        write_number(out, "fetchTimeMs", transaction.timings.total.as_millis() as u64);
        write_number(out, "firstByteMs", transaction.timings.first_byte.as_millis() as u64);
        if hops.is_embed() {
            write_field(out, "foundAs", b"embed");
        }
        if job.attempt > 0 {
            write_number(out, "attempt", job.attempt.into());
        }
        if let Some(found) = summary {
            write_field(out, "charsetForLinkExtraction", found.encoding.name().as_bytes());
            write_number(out, "outlinks", found.links as u64);
            if found.dropped > 0 {
                write_number(out, "outlinksDropped", found.dropped as u64);
            }
            if let Some(sitemap) = found.sitemap {
                write_field(out, "sitemap", sitemap.as_str().as_bytes());
            }
            if !found.robots.is_empty() {
                write_field(out, "robotsDirectives", found.robots.to_label().as_bytes());
            }
        }
        if !said.preferences.is_empty() {
            write_field(out, "usagePreferences", said.preferences.to_label().as_bytes());
        }
        for (name, address) in [("license", &said.license), ("tdmPolicy", &said.tdm_policy)] {
            if let Some(address) = address {
                write_field(out, name, address.to_string().as_bytes());
            }
        }
        if let Some(bits) = simhash.filter(|_| self.has_simhash) {
            write_field(out, "simhash", format!("{bits:016x}").as_bytes());
        }
        if let Some(interstitial) = self.fetched.interstitial {
            write_field(out, "wall", interstitial.as_str().as_bytes());
        }
        match (&decoded.problem, decoded.truncated) {
            (Some(problem), _) => write_field(out, "contentCodingProblem", format!("{problem:?}").as_bytes()),
            (None, Some(_)) => write_field(out, "contentCodingProblem", b"EndsEarly"),
            (None, None) => {}
        }
        if let Some(error) = transaction.tls.as_ref().and_then(|tls| tls.certificate_error.as_ref()) {
            write_field(out, "certificateError", error.as_bytes());
        }
        block
    }
}

/// Enough for nearly every metadata record.
const METADATA_BYTES: usize = 256;
