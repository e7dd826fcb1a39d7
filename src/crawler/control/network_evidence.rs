//! What a shard has seen of the network, as the housekeeping thread reads it.
//!
//! Decides: the last [`ENDS`] ends of requests are in a ring that only the shard writes. A slow reader misses the
//! oldest entries, and a torn read may mix up two sites: this is evidence, not accounting.
//! Invariants: only the owning shard calls [`NetworkEvidence::publish`].

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ringcrawl_base::time::Instant;
use ringcrawl_brain::shard::{NetworkReport, SiteEnd, SiteReply, Witness};

/// One shard's sightings.
#[derive(Debug, Default)]
pub struct NetworkEvidence {
    dns_heard: AtomicU64,
    dns_failed: AtomicU64,
    dns_errors: AtomicU64,
    proxy_unreachable: AtomicU64,
    held_since: AtomicU64,
    names_held_since: AtomicU64,
    has_work: AtomicBool,
    /// Ends ever written.
    written: AtomicU64,
    ends: [EndCell; ENDS],
}

#[derive(Debug, Default)]
struct EndCell {
    owner: AtomicU64,
    block: AtomicU64,
    /// Nanoseconds, and in the two lowest bits the reply.
    began: AtomicU64,
}

impl NetworkEvidence {
    /// Publishes what the shard counts, and what ended since the last time.
    pub fn publish(&self, report: NetworkReport, ends: impl Iterator<Item = SiteEnd>) {
        let order = Ordering::Relaxed;
        self.dns_heard.store(report.dns_heard, order);
        self.dns_failed.store(report.dns_failed, order);
        self.dns_errors.store(report.dns_errors, order);
        self.proxy_unreachable.store(report.proxy_unreachable, order);
        // Zero means nothing, so that a shard that has not published holds nothing.
        self.held_since.store(!report.held_since.as_nanos(), order);
        self.names_held_since.store(!report.names_held_since.as_nanos(), order);
        self.has_work.store(report.has_work, order);
        let mut written = self.written.load(order);
        for end in ends {
            let Some(cell) = self.ends.get(written as usize % ENDS) else { break };
            let reply = match end.reply {
                SiteReply::Answered => 0,
                SiteReply::FellSilent => 1,
                SiteReply::Silent => 2,
            };
            cell.owner.store(end.witness.owner, order);
            cell.block.store(end.witness.block, order);
            cell.began.store(end.began.as_nanos() & !REPLY | reply, order);
            written += 1;
        }
        self.written.store(written, Ordering::Release);
    }

    /// What the shard counts.
    pub fn report(&self) -> NetworkReport {
        let order = Ordering::Relaxed;
        NetworkReport {
            dns_heard: self.dns_heard.load(order),
            dns_failed: self.dns_failed.load(order),
            dns_errors: self.dns_errors.load(order),
            proxy_unreachable: self.proxy_unreachable.load(order),
            held_since: Instant::from_nanos(!self.held_since.load(order)),
            names_held_since: Instant::from_nanos(!self.names_held_since.load(order)),
            has_work: self.has_work.load(order),
        }
    }

    /// Adds to `ends` what ended after the first `read` ends; returns how many ends there have been by now.
    pub fn read(&self, read: u64, ends: &mut Vec<SiteEnd>) -> u64 {
        let written = self.written.load(Ordering::Acquire);
        for number in read.max(written.saturating_sub(ENDS as u64))..written {
            let Some(cell) = self.ends.get(number as usize % ENDS) else { break };
            let load = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
            let (witness, began) = (Witness { owner: load(&cell.owner), block: load(&cell.block) }, load(&cell.began));
            let reply = match began & REPLY {
                0 => SiteReply::Answered,
                1 => SiteReply::FellSilent,
                _ => SiteReply::Silent,
            };
            ends.push(SiteEnd { witness, began: Instant::from_nanos(began & !REPLY), reply });
        }
        written
    }
}

/// Ends that a shard keeps for the next look.
const ENDS: usize = 32;
const REPLY: u64 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ends_are_read_once() {
        let sightings = NetworkEvidence::default();
        assert_eq!((sightings.report().held_since, sightings.report().has_work), (Instant::NEVER, false));
        let report = NetworkReport {
            dns_heard: 1,
            dns_failed: 2,
            dns_errors: 5,
            proxy_unreachable: 3,
            held_since: Instant::from_nanos(4),
            names_held_since: Instant::NEVER,
            has_work: true,
        };
        let replies = [SiteReply::Answered, SiteReply::FellSilent, SiteReply::Silent];
        let end = |number: u64| SiteEnd {
            witness: Witness { owner: number, block: number + 1 },
            began: Instant::from_nanos(4 * number),
            reply: replies[number as usize % 3],
        };
        sightings.publish(report, (0..5).map(end));
        assert_eq!(sightings.report(), report);
        let mut ends = Vec::new();
        let read = sightings.read(0, &mut ends);
        assert_eq!((read, &ends), (5, &(0..5).map(end).collect::<Vec<_>>()));
        ends.clear();
        sightings.publish(report, (5..205).map(end));
        assert_eq!(sightings.read(read, &mut ends), 205);
        assert_eq!(ends, (205 - ENDS as u64..205).map(end).collect::<Vec<_>>());
        ends.clear();
        assert_eq!((sightings.read(205, &mut ends), ends.len()), (205, 0));
    }
}
