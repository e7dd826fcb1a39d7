//! When sites should move from one shard to others (`partition.balance`). Pure.
//!
//! Decides: sites move when some shard has had more waiting URLs than `partition.balance_above` percent of the mean,
//! and `balance_urls_min` more than it, in each of [`LOOKS`] looks a tenth of the interval apart. So a wave of links
//! that is fetched or sent at once moves nothing. After pauses that helped little the interval doubles.
//! Limits: counts of URLs say nothing about how fast they can be fetched; hence the pause between.

use ringcrawl_base::time::Duration;
use ringcrawl_config as config;

/// The watch over one run of a crawl.
#[derive(Debug)]
pub struct BalanceWatch {
    is_on: bool,
    above_percent: u64,
    urls_min: u64,
    interval: Duration,
    next_look: Duration,
    /// Consecutive looks that saw such a shard.
    seen: u32,
}

impl BalanceWatch {
    /// For a run after `fruitless` pauses in a row that helped little.
    pub fn new(config: &config::Partition, fruitless: u32) -> BalanceWatch {
        let interval = config.balance_interval.saturating_mul(1 << fruitless.min(DOUBLINGS_MAX));
        BalanceWatch {
            is_on: config.balance == config::Balance::Sites,
            above_percent: config.balance_above.into(),
            urls_min: config.balance_urls_min,
            interval,
            next_look: interval,
            seen: 0,
        }
    }

    /// Whether sites should move now, `elapsed` after the run began; `waiting` returns the URLs of each shard, or
    /// `None` while a shard still reads its logs.
    pub fn look(&mut self, elapsed: Duration, waiting: impl FnOnce() -> Option<Vec<u64>>) -> bool {
        if !self.is_on || elapsed < self.next_look {
            return false;
        }
        let Some(waiting) = waiting() else {
            self.next_look = elapsed + self.interval;
            return false;
        };
        self.next_look = elapsed + self.interval / 10;
        self.seen = if self.is_uneven(&waiting) { self.seen + 1 } else { 0 };
        self.seen >= LOOKS
    }

    /// Whether the load is uneven enough for the configured limits.
    fn is_uneven(&self, waiting: &[u64]) -> bool {
        let most = u128::from(waiting.iter().max().copied().unwrap_or_default());
        let all: u128 = waiting.iter().map(|urls| u128::from(*urls)).sum();
        let shards = waiting.len() as u128;
        shards > 1
            && most * shards * 100 > all * u128::from(self.above_percent)
            && most * shards >= all + u128::from(self.urls_min) * shards
    }
}

/// This many looks in a row.
const LOOKS: u32 = 2;
/// An hour becomes six weeks at most.
const DOUBLINGS_MAX: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_config::Config;

    fn watch(fruitless: u32) -> BalanceWatch {
        let mut config = Config::default().partition;
        config.balance = config::Balance::Sites;
        config.balance_urls_min = 100;
        config.balance_interval = Duration::from_secs(10);
        BalanceWatch::new(&config, fruitless)
    }

    /// The second at which a watch says that sites should move, if it does so within two minutes.
    fn fires(mut watch: BalanceWatch, waiting: impl Fn(u64) -> Vec<u64>) -> Option<u64> {
        (0..120).find(|second| watch.look(Duration::from_secs(*second), || Some(waiting(*second))))
    }

    #[test]
    fn a_lasting_difference_is_seen_after_the_interval() {
        let uneven = |_| vec![600, 200, 200];
        assert_eq!(fires(watch(0), uneven), Some(11));
        assert_eq!(fires(watch(1), uneven), Some(22));
        assert_eq!(fires(watch(9), uneven), None);
        assert_eq!(fires(watch(0), |second| if second % 2 == 0 { vec![600, 200, 200] } else { vec![400; 3] }), None);
        assert_eq!(fires(watch(0), |second| if second < 50 { vec![400; 3] } else { vec![600, 200, 200] }), Some(51));
        let mut reading = watch(0);
        let reads_for = |second: u64| if second < 35 { None } else { Some(vec![600, 200, 200]) };
        let fired = (0..120).find(|second| reading.look(Duration::from_secs(*second), || reads_for(*second)));
        assert_eq!(fired, Some(41), "an interval after the look that saw logs read");
        let off = BalanceWatch::new(&Config::default().partition, 0);
        assert_eq!(fires(off, |_| vec![1 << 40, 0]), None);
    }

    #[test]
    fn what_is_near_the_mean_or_small_stays() {
        assert_eq!(fires(watch(0), |_| vec![]), None);
        assert_eq!(fires(watch(0), |_| vec![9_000]), None, "one shard");
        assert_eq!(fires(watch(0), |_| vec![1_499, 501, 1_000]), None, "under half as much again");
        assert_eq!(fires(watch(0), |_| vec![198, 0]), None, "99 more than the mean");
        assert_eq!(fires(watch(0), |_| vec![200, 0]), Some(11));
        assert_eq!(fires(watch(0), |_| vec![u64::MAX, 0, 0]), Some(11));
    }
}
