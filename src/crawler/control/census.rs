//! Whether the crawl is done, decided without stopping the shards. Pure.
//!
//! Decides: the crawl is done after two consecutive looks at every shard that find all of them quiet, as much sent as
//! received, and no change in between (Mattern's four-counter method, Distributed Computing 2, 1987). One look is not
//! enough: a message may leave a shard already looked at for one that is looked at later.
//! Invariants, which the shards keep: `sent` grows before a message enters a ring. `quiet` falls before a message
//! taken from a ring is processed, and `received` grows after. `quiet` rises only when nothing is left to do.

use ringcrawl_brain::shard::ShardReport;

/// The last look.
#[derive(Debug, Default)]
pub struct Census {
    last: Option<(u64, u64)>,
}

impl Census {
    /// Takes another look; returns whether the crawl is done.
    pub fn is_over(&mut self, reports: &[ShardReport]) -> bool {
        if reports.iter().any(|report| !report.quiet) {
            self.last = None;
            return false;
        }
        let look =
            reports.iter().fold((0, 0), |(sent, received), report| (sent + report.sent, received + report.received));
        let over = look.0 == look.1 && self.last == Some(look);
        self.last = Some(look);
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn over_after_two_equal_looks_alone() {
        let mut census = Census::default();
        let shard = |quiet, sent, received| ShardReport { quiet, sent, received };
        let (busy, quiet) = (shard(false, 0, 0), shard(true, 0, 0));
        assert!(!census.is_over(&[busy, busy]));
        assert!(!census.is_over(&[quiet, busy]) && !census.is_over(&[quiet, busy]), "one is busy");
        assert!(!census.is_over(&[quiet, quiet]), "one look is not enough");
        let sent = shard(true, 5, 0);
        assert!(!census.is_over(&[sent, quiet]) && !census.is_over(&[sent, quiet]), "five are in a ring");
        let received = shard(true, 0, 5);
        assert!(!census.is_over(&[sent, received]));
        assert!(!census.is_over(&[sent, shard(false, 0, 5)]), "it works off what came");
        assert!(!census.is_over(&[sent, received]));
        assert!(census.is_over(&[sent, received]));
    }
}
