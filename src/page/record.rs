//! What a segment keeps of a response.
//!
//! Decides: the fields of the metadata record, named as Heritrix names them where it has them, so that tools know them;
//! that the body is stored decoded where decoding worked.
//! Leaves to others: the bytes of records (`store`).

use super::Page;
use crate::hops::Hops;
use crate::http::Framing;
use crate::store::Capture;

impl Page<'_> {
    /// Gives the capture to `take`, when there is one to be stored.
    pub fn store<T>(&self, take: impl FnOnce(&Capture<'_>) -> T) -> Option<T> {
        if !self.is_stored {
            return None;
        }
        let Page { job, transaction, decoded, fetched, .. } = self;
        let response = &transaction.response;
        let fields = self.fields();
        let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let mime = response.headers.get("content-type").map(String::from_utf8_lossy).unwrap_or_default();
        let is_coded = decoded.coding.is_some();
        Some(take(&Capture {
            url: &job.url,
            time: transaction.started,
            ip: transaction.ip,
            request: &transaction.request_bytes,
            head_bytes: &response.head_bytes,
            // Uncoded content has its limit, too, and what is stored is what the links were looked for in.
            body: if is_coded { &response.body } else { &decoded.bytes },
            decoded: is_coded.then_some(&*decoded.bytes),
            chunked: response.framing == Framing::Chunked,
            truncated: fetched.truncated,
            metadata: &fields,
            status: response.status,
            mime: &mime,
        }))
    }

    /// The fields of the metadata record.
    fn fields(&self) -> Vec<(&'static str, String)> {
        let Page { job, transaction, decoded, summary, .. } = self;
        let mut fields = vec![
            ("hopsFromSeed", Hops::from_bits(job.depth).links().to_string()),
            ("fetchTimeMs", transaction.timings.total.as_millis().to_string()),
            ("firstByteMs", transaction.timings.first_byte.as_millis().to_string()),
        ];
        if job.attempt > 0 {
            fields.push(("attempt", job.attempt.to_string()));
        }
        if let Some(found) = summary {
            fields.push(("charsetForLinkExtraction", found.encoding.name().to_owned()));
            fields.push(("outlinks", found.links.to_string()));
            if found.dropped > 0 {
                fields.push(("outlinksDropped", found.dropped.to_string()));
            }
        }
        if let Some(problem) = &decoded.problem {
            fields.push(("contentCodingProblem", format!("{problem:?}")));
        }
        if let Some(tls) = &transaction.tls {
            fields.push(("tlsVersion", tls.version.to_string()));
            fields.push(("tlsCipher", tls.cipher.to_string()));
            if let Some(error) = &tls.certificate_error {
                fields.push(("certificateError", error.clone()));
            }
        }
        fields
    }
}
