//! What a segment keeps of a response.
//!
//! Decides: the fields of the metadata record, named as Heritrix names them where it has them, so that tools know them;
//! that the body is stored as it came, or by `store.body` decoded where decoding worked.
//! Leaves to others: the bytes of records (`store`).

use super::Page;
use super::payload_type::identify;
use crate::hops::Hops;
use crate::http::Framing;
use crate::store::{Capture, head::Undone};

impl Page<'_> {
    /// Gives the capture to `take`, when there is one to be stored.
    pub fn store<T>(&self, take: impl FnOnce(&Capture<'_>) -> T) -> Option<T> {
        if !self.is_stored {
            return None;
        }
        let Page { job, transaction, decoded, fetched, kinds, said, .. } = self;
        let response = &transaction.response;
        let fields = if kinds.metadata { self.fields() } else { Vec::new() };
        let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let mime = response.headers.get("content-type").map(String::from_utf8_lossy).unwrap_or_default();
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
            // Content that is cut is no part of what is stored as it came.
            truncated: if is_coded && !is_undone { response.truncated } else { fetched.truncated },
            metadata: &fields,
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

    /// The fields of the metadata record.
    fn fields(&self) -> Vec<(&'static str, String)> {
        let Page { job, transaction, decoded, summary, simhash, said, .. } = self;
        let mut fields = vec![
            ("hopsFromSeed", Hops::from_bits(job.depth).links().to_string()),
            ("fetchTimeMs", transaction.timings.total.as_millis().to_string()),
            ("firstByteMs", transaction.timings.first_byte.as_millis().to_string()),
        ];
        if Hops::from_bits(job.depth).is_embed() {
            fields.push(("foundAs", "embed".to_owned()));
        }
        if job.attempt > 0 {
            fields.push(("attempt", job.attempt.to_string()));
        }
        if let Some(found) = summary {
            fields.push(("charsetForLinkExtraction", found.encoding.name().to_owned()));
            fields.push(("outlinks", found.links.to_string()));
            if found.dropped > 0 {
                fields.push(("outlinksDropped", found.dropped.to_string()));
            }
            if let Some(sitemap) = found.sitemap {
                fields.push(("sitemap", sitemap.as_str().to_owned()));
            }
            if !found.robots.is_empty() {
                fields.push(("robotsDirectives", found.robots.to_label()));
            }
        }
        if !said.preferences.is_empty() {
            fields.push(("usagePreferences", said.preferences.to_label()));
        }
        for (name, address) in [("license", &said.license), ("tdmPolicy", &said.tdm_policy)] {
            fields.extend(address.as_ref().map(|address| (name, address.to_string())));
        }
        if let Some(bits) = simhash.filter(|_| self.has_simhash) {
            fields.push(("simhash", format!("{bits:016x}")));
        }
        if let Some(wall) = self.fetched.wall {
            fields.push(("wall", wall.as_str().to_owned()));
        }
        match (&decoded.problem, decoded.truncated) {
            (Some(problem), _) => fields.push(("contentCodingProblem", format!("{problem:?}"))),
            (None, Some(_)) => fields.push(("contentCodingProblem", "EndsEarly".to_owned())),
            (None, None) => {}
        }
        if let Some(error) = transaction.tls.as_ref().and_then(|tls| tls.certificate_error.as_ref()) {
            fields.push(("certificateError", error.clone()));
        }
        fields
    }
}
