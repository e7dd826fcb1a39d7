//! The rate of queries to name servers: `dns.rate_max`, as a bucket of tokens.
//!
//! Decides: a query takes its token when it is made, and learns from when on it may be sent. So waiting queries form
//! a queue, first come first served, and each caller sleeps once. The bucket holds a tenth of a second's tokens, so
//! queries that come together need not be spread out to the microsecond.
//! Invariants: in any stretch of time `d` no more than `d` × rate + the bucket's tokens are sent.
//! Limits: an unused token is lost. The callers bound the queue.

use ringcrawl_base::time::{Duration, Instant};

/// One shard's share of the rate.
#[derive(Debug)]
pub struct QueryRate {
    /// Time in which one token accrues; zero: no cap.
    every: Duration,
    /// Time in which the bucket fills, less one token.
    slack: Duration,
    /// When the bucket will be full of tokens again.
    full_at: Instant,
}

impl QueryRate {
    /// A full bucket for one of `shards` that share `per_second` queries; 0: no cap.
    pub fn new(per_second: u32, shards: u16) -> QueryRate {
        let (per_second, shards) = (u64::from(per_second), u64::from(shards.max(1)));
        let nanos = (shards * 1_000_000_000).checked_div(per_second).unwrap_or(0);
        let tokens = (per_second / shards / 10).max(1);
        let slack = Duration::from_nanos(nanos * (tokens - 1));
        QueryRate { every: Duration::from_nanos(nanos), slack, full_at: Instant::ZERO }
    }

    /// Takes a token at `now`. Returns from when on its query may be sent.
    pub fn turn(&mut self, now: Instant) -> Instant {
        if self.every.is_zero() {
            return now;
        }
        let at = now.max(self.full_at - self.slack);
        self.full_at = self.full_at.max(at) + self.every;
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::Rng;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_full_bucket_and_then_one_by_one() {
        let mut rate = QueryRate::new(100, 2);
        let turns: Vec<u64> = (0..8).map(|_| rate.turn(at(1_000)).since(at(0)).as_millis() as u64).collect();
        assert_eq!(turns, [1_000, 1_000, 1_000, 1_000, 1_000, 1_020, 1_040, 1_060]);
        // Half of the bucket has refilled.
        assert_eq!(
            [rate.turn(at(1_100)), rate.turn(at(1_100)), rate.turn(at(1_100))],
            [at(1_100), at(1_100), at(1_120)]
        );
        let mut slow = QueryRate::new(1, 64);
        assert_eq!([slow.turn(at(0)), slow.turn(at(0)), slow.turn(at(0))], [at(0), at(64_000), at(128_000)]);
        let mut free = QueryRate::new(0, 8);
        assert!((0..1_000).all(|_| free.turn(at(7)) == at(7)));
    }

    /// The textbook bucket: a token accrues each `every`, and a query waits until there is one.
    struct Bucket {
        tokens: u64,
        tokens_max: u64,
        every: u64,
        grown: u64,
    }

    impl Bucket {
        fn turn(&mut self, mut now: u64) -> u64 {
            now = now.max(self.grown);
            loop {
                while self.grown + self.every <= now && self.tokens < self.tokens_max {
                    (self.grown, self.tokens) = (self.grown + self.every, self.tokens + 1);
                }
                if self.tokens == self.tokens_max {
                    self.grown = now;
                }
                if self.tokens > 0 {
                    self.tokens -= 1;
                    return now;
                }
                now = self.grown + self.every;
            }
        }
    }

    #[test]
    fn agrees_with_a_bucket_and_keeps_the_rate() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let (rate, shards) = (1 + rng.below(2_000) as u32, 1 + rng.below(8) as u16);
            let mut queries = QueryRate::new(rate, shards);
            let tokens_max = (u64::from(rate) / u64::from(shards) / 10).max(1);
            let every = queries.every.as_nanos() as u64;
            let mut bucket = Bucket { tokens: tokens_max, tokens_max, every, grown: 0 };
            let (mut now, mut sent) = (0, Vec::new());
            for _ in 0..500 {
                now += if rng.percent(70) { 0 } else { rng.below(4 * every * tokens_max) };
                let turn = queries.turn(Instant::from_nanos(now)).as_nanos();
                assert_eq!(turn, bucket.turn(now), "seed {seed}");
                sent.push(turn);
            }
            for (index, first) in sent.iter().enumerate() {
                let until = first + 3 * every * tokens_max;
                let within = sent[index..].iter().take_while(|turn| **turn < until).count() as u64;
                assert!(within <= 4 * tokens_max, "seed {seed}: {within} in a stretch for {}", 4 * tokens_max);
            }
        }
    }
}
