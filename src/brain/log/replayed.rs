//! What an earlier run has left in a shard's logs, in numbers, and what users should know about it.

use std::collections::BTreeMap;

use super::LogFile;

/// What an earlier run has left, as read so far.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Replayed {
    /// Where each log continues.
    pub append_at: BTreeMap<LogFile, u64>,
    /// Torn bytes at the end of a log, which must be cut.
    pub torn: Vec<(LogFile, u64)>,
    /// Damaged bytes that stay, by log.
    pub damaged: Vec<(LogFile, u64)>,
    /// Accepted URLs that are missing.
    pub urls_lost: u64,
    /// Ends that are missing: their pages are fetched again.
    pub ends_lost: u64,
    /// Final URLs whose record is lost: they are fetched again.
    pub records_lost: u64,
    /// URLs that are fetched again because the user wants it.
    pub retried: u64,
    /// Whether all of these failed.
    pub retries_failed: bool,
    /// The number of the next URL, and of the next end.
    pub next_url: u64,
    /// The number of the next end.
    pub next_end: u64,
    /// The number of the next URL to send.
    pub next_sent: u64,
    /// One above the highest segment number in the log.
    pub next_segment: u32,
    /// URLs for other shards that are missing.
    pub sent_lost: u64,
    /// Records in segments of this shard that are not there.
    pub records_elsewhere: u64,
    /// Files of the journal.
    pub journal: Vec<JournalFile>,
}

/// A file of an earlier run's journal.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct JournalFile {
    /// Its number.
    pub number: u32,
    /// Where its whole blocks end.
    pub bytes: u64,
    /// Whether something in it is damaged.
    pub is_damaged: bool,
    /// The last batch in it to every shard.
    pub last: Vec<u64>,
}

impl Replayed {
    /// How many URLs the operator had asked again, in words, if any.
    pub fn retried(&self) -> Option<String> {
        let what = if self.retries_failed { "failed URLs" } else { "URLs that were over" };
        (self.retried > 0).then(|| format!("{} {what} are asked for again", self.retried))
    }

    /// What is missing or damaged, and what that costs.
    pub fn losses(&self) -> Vec<String> {
        let mut losses = Vec::new();
        for (file, bytes) in &self.torn {
            losses.push(format!("{bytes} bytes of a torn block at the end of {file} cut"));
        }
        for (file, bytes) in &self.damaged {
            losses.push(format!("{bytes} bytes of {file} are damaged and left as they are"));
        }
        for (count, what) in [
            (self.urls_lost, "URLs are missing from its log and lost to this crawl, unless they are found again"),
            (self.ends_lost, "URLs are fetched again: the log of how they ended is incomplete"),
            (
                self.sent_lost,
                "URLs for other shards are missing from its journal and lost to this crawl, unless they are found again",
            ),
            (self.records_lost, "URLs are fetched again: their records are missing"),
            (
                self.records_elsewhere,
                "pages have their records in segments that are not here, and are not fetched again",
            ),
        ] {
            if count > 0 {
                losses.push(format!("{count} {what}"));
            }
        }
        losses
    }

    /// Adds the result for the shard's journal, which was read separately.
    pub(super) fn with_journal(mut self, journal: Replayed) -> Replayed {
        // A journal's blocks may count URLs that are missing in the log.
        self.urls_lost += journal.next_url.saturating_sub(self.next_url);
        self.next_url = self.next_url.max(journal.next_url);
        self.append_at.extend(journal.append_at);
        self.torn.extend(journal.torn);
        self.damaged.extend(journal.damaged);
        (self.next_sent, self.sent_lost) = (journal.next_sent, journal.sent_lost);
        self.journal = journal.journal;
        self
    }
}
