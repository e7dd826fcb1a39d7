//! How long the parts of a fetch take, counted by one thread and read by others.
//!
//! Decides: buckets that grow by a power of two every 32, so a value is known to 1 part in 32 over seven decades in
//! the memory of a few pages; each bucket is a counter with one writer, like all of `stats`. The reader folds the
//! buckets into an HDR histogram and takes percentiles from it.
//! Invariants: only the owning shard's thread records; a bucket never falls, so the difference of two snapshots
//! covers the time between them.
//! Limits: whole microseconds; longer than [`MICROS_MAX`] counts as that.

use hdrhistogram::Histogram;

use crate::stats::Counter;
use crate::transaction::Transaction;
use ringcrawl_base::time::Duration;

/// Buckets for each power of two: the error is at most 1 part in this many.
const STEPS: usize = 32;
/// log2 of `STEPS`.
const STEPS_LOG2: usize = STEPS.trailing_zeros() as usize;
/// The longest time that is distinguished, in microseconds: 2^32 are 71 minutes.
const MICROS_MAX: u64 = (1 << 32) - 1;
/// One bucket a microsecond up to `STEPS`, then `STEPS` for each power of two.
const BUCKETS: usize = STEPS * (32 - STEPS_LOG2 + 1);

macro_rules! parts {
    ($($(#[doc = $doc:literal])+ $part:ident,)+) => {
        /// The parts of a fetch, of one shard.
        #[derive(Debug, Default)]
        pub struct Latencies { $($(#[doc = $doc])+ pub $part: Times,)+ }

        impl Latencies {
            /// Every part by its name, with its buckets as they are now.
            pub fn snapshots(&self) -> Vec<(&'static str, LatencySnapshot)> {
                vec![$((stringify!($part), self.$part.look()),)+]
            }
        }
    };
}

parts! {
    /// From the request for a name until its addresses are there, including the wait for a turn.
    dns,
    /// TCP connect.
    connect,
    /// TLS handshake.
    tls,
    /// From the last byte of a request to the first of its response.
    first_byte,
    /// From the beginning, connect included, to the last byte.
    exchange,
}

impl Latencies {
    /// Counts the parts of a transaction. For the owning thread alone.
    pub fn record(&self, transaction: &Transaction) {
        let timings = &transaction.timings;
        if !transaction.reused {
            self.connect.record(timings.connect);
            if transaction.secure {
                self.tls.record(timings.tls);
            }
        }
        self.first_byte.record(timings.first_byte);
        self.exchange.record(timings.total);
    }
}

/// Times of one kind, counted by one thread.
#[derive(Debug)]
pub struct Times {
    buckets: Box<[Counter]>,
}

impl Default for Times {
    fn default() -> Times {
        Times { buckets: (0..BUCKETS).map(|_| Counter::default()).collect() }
    }
}

impl Times {
    /// Counts one. For the owning thread alone.
    pub fn record(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(MICROS_MAX).min(MICROS_MAX);
        if let Some(bucket) = self.buckets.get(bucket_of(micros)) {
            bucket.add(1);
        }
    }

    /// The counts now.
    pub fn look(&self) -> LatencySnapshot {
        LatencySnapshot(self.buckets.iter().map(Counter::get).collect())
    }
}

/// Counts at one moment, of one shard or of several.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LatencySnapshot(Vec<u64>);

impl LatencySnapshot {
    /// Adds another shard's.
    pub fn add(&mut self, other: &LatencySnapshot) {
        self.0.resize(BUCKETS, 0);
        self.0.iter_mut().zip(&other.0).for_each(|(sum, more)| *sum += more);
    }

    /// What was counted since `earlier`.
    pub fn since(&self, earlier: &LatencySnapshot) -> LatencySnapshot {
        let earlier = earlier.0.iter().chain(std::iter::repeat(&0));
        LatencySnapshot(self.0.iter().zip(earlier).map(|(now, then)| now.saturating_sub(*then)).collect())
    }

    /// As an HDR histogram of microseconds, each bucket at its middle; `None`: nothing was counted.
    pub fn histogram(&self) -> Option<Histogram<u64>> {
        let mut histogram = Histogram::new_with_bounds(1, MICROS_MAX, 3).ok()?;
        for (bucket, count) in self.0.iter().enumerate().filter(|(_, count)| **count > 0) {
            histogram.saturating_record_n(middle_of(bucket), *count);
        }
        (!histogram.is_empty()).then_some(histogram)
    }
}

fn bucket_of(micros: u64) -> usize {
    let log2 = micros.max(1).ilog2() as usize;
    match log2.checked_sub(STEPS_LOG2) {
        // The highest `STEPS_LOG2` + 1 bits: their first is always set.
        Some(shift) => STEPS * shift + (micros >> shift) as usize,
        None => micros as usize,
    }
}

/// In microseconds.
fn middle_of(bucket: usize) -> u64 {
    match (bucket / STEPS).checked_sub(1) {
        Some(shift) if shift > 0 => (((bucket - STEPS * shift) as u64) << shift) + (1 << (shift - 1)),
        _ => bucket as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_a_bucket_near_it() {
        let mut last = 0;
        for micros in (0..100_000).chain((17..32).flat_map(|log2| [(1 << log2) - 1, 1 << log2, (1 << log2) * 3 / 2])) {
            let bucket = bucket_of(micros);
            assert!(bucket >= last && bucket < BUCKETS, "{micros}");
            last = bucket;
            let error = middle_of(bucket).abs_diff(micros);
            assert!(error * STEPS as u64 <= micros, "{micros} is shown as {}", middle_of(bucket));
        }
        assert_eq!(bucket_of(MICROS_MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_are_those_of_what_was_recorded_between_two_looks() {
        let latencies = Latencies::default();
        (0..50).for_each(|_| latencies.first_byte.record(Duration::from_secs(3_000_000)));
        let early = latencies.first_byte.look();
        (1..=10_000).for_each(|micros| latencies.first_byte.record(Duration::from_micros(micros)));
        let mut two = latencies.first_byte.look().since(&early);
        let one = two.clone();
        two.add(&one);
        let histogram = two.histogram().expect("something");
        assert_eq!(histogram.len(), 20_000);
        for (quantile, expected) in [(0.5, 5_000), (0.9, 9_000), (0.99, 9_900), (0.999, 9_990), (1.0, 10_000)] {
            let shown = histogram.value_at_quantile(quantile);
            assert!(shown.abs_diff(expected) * 20 < expected, "{quantile}: {shown}");
        }
        assert!(LatencySnapshot::default().histogram().is_none());
        let names: Vec<_> = latencies.snapshots().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["dns", "connect", "tls", "first_byte", "exchange"]);
    }
}
