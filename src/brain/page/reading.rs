//! A long response, read in parallel to its shard.
//!
//! Decides: what is short enough for the shard's own turn ([`PageReader::read_short`]): `fetch.short_bytes_max` bytes
//! as they came, [`DECODED_TIMES`] times as many as content, one coding at most, and no gzip file. Whatever such a
//! response holds, reading it takes at most 20 ms. All others are [`LongResponse`]s, which the hands read where they
//! hold up no shard.
//! Why bytes: they are known before the work is done, and the same for every machine and run.
//! Invariants: pure; a [`LongResponse`] yields what the shard would have made of the response itself.
//! Leaves to others: where it is read (`pump`), what comes of it (`shard`).

use super::{Page, PageReader, decode};
use crate::job::FetchJob;
use crate::outcome::Fetched;
use crate::stats::Totals;
use crate::transaction::Transaction;
use ringcrawl_base::stage::{self, Stage};
use ringcrawl_http::{self as http, Decoder};
use ringcrawl_warc::{CaptureIds, CaptureWriter, Records, StoreError};

/// A response to read, with everything that this needs.
#[derive(Clone, Debug)]
pub struct LongResponse {
    job: FetchJob,
    transaction: Box<Transaction>,
    reader: PageReader,
    /// The names for its records.
    names: CaptureIds,
}

/// A response that was read elsewhere.
#[derive(Debug)]
pub struct PageRead {
    reading: Box<LongResponse>,
    /// What the frontier needs of it.
    pub fetched: Fetched,
    /// What was counted.
    pub stats: Totals,
    /// Whether the counters treat it as a page.
    pub is_page: bool,
    /// Its records, if it is stored.
    pub records: Option<Result<Records, StoreError>>,
}

impl PageReader {
    /// Reads the response to `job` if it is short, and counts what it is.
    pub fn read_short<'a>(
        &self,
        job: &'a FetchJob,
        transaction: &'a Transaction,
        decoder: &'a mut Decoder,
        stats: &mut Totals,
    ) -> Option<Page<'a>> {
        let response = &transaction.response;
        let bytes_max = self.config.fetch.short_bytes_max;
        if response.body.len() > bytes_max || http::is_coded_twice(&response.headers) {
            return None;
        }
        let limits = self.limits(job.kind);
        let content_bytes_max = bytes_max.saturating_mul(DECODED_TIMES).min(limits.body_bytes_max);
        // A response that claims to be long is believed before it is read that far; one that lies is read elsewhere,
        // too.
        if http::claimed_bytes(&response.headers, &response.body) >= content_bytes_max as u64
            && content_bytes_max < limits.body_bytes_max
        {
            return None;
        }
        let decoded = decode(decoder, response, &http::Limits { body_bytes_max: content_bytes_max, ..limits });
        let may_be_longer = decoded.bytes.len() >= content_bytes_max && content_bytes_max < limits.body_bytes_max;
        if may_be_longer || decoded.bytes.starts_with(GZIP) {
            return None;
        }
        Some(self.find(job, transaction, decoded, stats))
    }

    /// Packs the response to `job`, to be read elsewhere; its records get these names.
    pub fn reading(&self, job: FetchJob, transaction: Box<Transaction>, names: CaptureIds) -> Box<LongResponse> {
        Box::new(LongResponse { job, transaction, reader: self.clone(), names })
    }
}

impl LongResponse {
    /// Reads it.
    pub fn read(self: Box<Self>, writer: &mut CaptureWriter) -> PageRead {
        let mut stats = Totals::default();
        let mut decoder = Decoder::default();
        let page = self.reader.read(&self.job, &self.transaction, &mut decoder, &mut stats);
        let records = {
            let _stage = stage::enter(Stage::Store);
            page.store(|capture| writer.records(capture, self.names.clone()))
        };
        let (is_page, fetched) = (page.is_page(), page.into_fetched());
        PageRead { fetched, stats, is_page, records, reading: self }
    }

    /// The job that was fetched.
    pub fn job(&self) -> &FetchJob {
        &self.job
    }
}

impl PageRead {
    /// The job that was fetched.
    pub fn job(&self) -> &FetchJob {
        &self.reading.job
    }

    /// Whether it was read by the scope that `reader` has.
    pub fn is_by_scope_of(&self, reader: &PageReader) -> bool {
        self.reading.reader.scope_changes == reader.scope_changes
    }

    /// Packs it to be read again by `reader`, for the same names.
    pub fn again(self, reader: &PageReader) -> Box<LongResponse> {
        Box::new(LongResponse { reader: reader.clone(), ..*self.reading })
    }
}

/// The most that content may exceed the short bytes that came, as a factor.
const DECODED_TIMES: usize = 4;
/// How a gzip file begins: its content is scanned, too.
const GZIP: &[u8] = &[0x1f, 0x8b];
