//! A stored response, scanned for links again.
//!
//! Decides: it is read as when it came, with the given configuration, so that a plan from a crawl's directory has
//! that crawl's links. What was cut then is still cut.
//! Limits: those of the configuration; the head may have a few more fields, as some are added when it is stored.

use super::PageReader;
use crate::job::{FetchJob, JobKind};
use crate::stats::Totals;
use crate::transaction::Transaction;
use ringcrawl_http::{Decoder, Limits, Method, ResponseReader};
use ringcrawl_url::{Url, UrlBatch};

impl PageReader {
    /// The links that go on, a redirect included, of the response in `bytes` (head and payload) to a request for
    /// `url`; `None` if they are not HTTP/1.
    pub fn links_of_stored(&self, url: &Url, bytes: &[u8]) -> Option<UrlBatch> {
        let limits = self.limits(JobKind::Page);
        let header_bytes_max = limits.header_bytes_max.saturating_add(ADDED_BYTES);
        let limits = Limits { header_bytes_max, header_count_max: limits.header_count_max + ADDED, ..limits };
        let mut reader = ResponseReader::new(Method::Get, limits);
        reader.feed(bytes).ok()?;
        reader.end_of_stream().ok()?;
        let transaction = Transaction::plain(reader.into_response()?);
        let job = FetchJob::new(JobKind::Page, url.clone());
        let mut decoder = Decoder::default();
        let page = self.read(&job, &transaction, &mut decoder, &mut Totals::default());
        Some(page.into_fetched().links.into())
    }
}

/// Fields that a stored head may have in addition to those that came, and their bytes.
const ADDED: usize = 8;
const ADDED_BYTES: usize = 4 << 10;
