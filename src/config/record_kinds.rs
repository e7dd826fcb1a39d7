//! Kinds of records that may be omitted (`store.records`).
//!
//! Decides: the words for them, each named at most once. warcinfo, response and revisit records are always written:
//! without them there is no crawl to read.
//! Leaves to others: what is in them (`warc`).

use std::fmt;

/// Which records are written in addition to responses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RecordKinds {
    /// Requests, as they were sent.
    pub request: bool,
    /// Metadata of responses.
    pub metadata: bool,
    /// Metadata of URLs that ended without a response.
    pub failure: bool,
    /// The addresses of a host.
    pub dns: bool,
}

impl RecordKinds {
    /// Words separated by commas, in any order.
    pub(super) fn parse(text: &str) -> Result<RecordKinds, String> {
        let mut kinds = RecordKinds::default();
        for word in text.split(',').map(str::trim).filter(|_| !text.trim().is_empty()) {
            let kind = kinds.by_word().into_iter().find_map(|(name, kind)| (name == word).then_some(kind));
            let kind = kind.ok_or_else(|| format!("{word:?} is not an optional kind of record"))?;
            if std::mem::replace(kind, true) {
                return Err(format!("{word:?} is named twice"));
            }
        }
        Ok(kinds)
    }

    fn by_word(&mut self) -> [(&'static str, &mut bool); 4] {
        let RecordKinds { request, metadata, failure, dns } = self;
        [("request", request), ("metadata", metadata), ("failure", failure), ("dns", dns)]
    }
}

impl fmt::Display for RecordKinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut kinds = *self;
        let words = kinds.by_word().into_iter().filter_map(|(word, is_chosen)| is_chosen.then_some(word));
        f.write_str(&words.collect::<Vec<&str>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_any_order_once_each() {
        let some = RecordKinds { metadata: true, dns: true, ..RecordKinds::default() };
        assert_eq!(RecordKinds::parse("dns , metadata"), Ok(some));
        assert_eq!(RecordKinds::parse(&some.to_string()), Ok(some));
        assert_eq!(RecordKinds::parse(" "), Ok(RecordKinds::default()));
        for (text, part) in [("dns,", "\"\""), ("response", "\"response\""), ("dns,dns", "twice"), ("DNS", "\"DNS\"")] {
            let error = RecordKinds::parse(text).expect_err("is refused");
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
