//! Whether a shard's thread makes progress: the report when one piece of its work takes too long.
//!
//! Decides: a piece of work of [`PIECE_TIME_MAX`] delays everything else that the shard does. The cause is a bug of
//! ours or a busy machine; the CPU time shows which. It is reported once, while it lasts, with the stage.
//! Invariants: pure; it takes no action.

use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_ring::Piece;

/// The state of a shard at one look.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Beat {
    /// The piece of work in progress.
    pub piece: Option<Piece>,
    /// CPU time that the thread has used.
    pub cpu: Duration,
}

/// Watches the shards of a crawl.
#[derive(Debug)]
pub struct HeartWatch {
    /// By shard: the piece in progress, since when, and the CPU time at that point; whether it was reported.
    lasting: Vec<Option<Lasting>>,
}

#[derive(Clone, Copy, Debug)]
struct Lasting {
    number: u64,
    since: Instant,
    cpu: Duration,
    is_told: bool,
}

impl HeartWatch {
    /// The watch of `shards` shards.
    pub fn new(shards: u16) -> HeartWatch {
        HeartWatch { lasting: vec![None; usize::from(shards)] }
    }

    /// Takes in what `shard` is doing now; returns the report about it, if any.
    pub fn look(&mut self, now: Instant, shard: usize, beat: Beat) -> Option<String> {
        let Beat { piece, cpu } = beat;
        let place = self.lasting.get_mut(shard)?;
        let Some(Piece { number, stage }) = piece else {
            *place = None;
            return None;
        };
        match place {
            Some(lasting) if lasting.number == number => {
                let took = now.since(lasting.since);
                if took < PIECE_TIME_MAX || std::mem::replace(&mut lasting.is_told, true) {
                    return None;
                }
                let (took, cpu) = (took.as_millis(), cpu.saturating_sub(lasting.cpu).as_millis());
                let stage = stage.as_str();
                Some(format!("shard {shard} has worked on one task for {took} ms ({cpu} ms of CPU time): {stage}"))
            }
            _ => {
                *place = Some(Lasting { number, since: now, cpu, is_told: false });
                None
            }
        }
    }
}

/// A piece of work that takes longer is reported.
const PIECE_TIME_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::stage::Stage;

    #[test]
    fn a_long_piece_is_told_once_and_the_next_one_too() {
        let mut watch = HeartWatch::new(2);
        let mut look = |millis, shard, number, cpu| {
            let piece = (number > 0).then_some(Piece { number, stage: Stage::Scan });
            let beat = Beat { piece, cpu: Duration::from_millis(cpu) };
            watch.look(Instant::ZERO + Duration::from_millis(millis), shard, beat)
        };
        let told = |told: Option<String>, shard, took, cpu| {
            let what = format!("shard {shard} has worked on one task for {took} ms ({cpu} ms of CPU time): scan");
            assert_eq!(told, Some(what));
        };
        assert_eq!(look(0, 0, 1, 7), None);
        assert_eq!(look(999, 0, 1, 900), None);
        told(look(1_010, 0, 1, 910), 0, 1_010, 903);
        assert_eq!(look(5_000, 0, 1, 4_000), None, "once");
        assert_eq!(look(5_025, 0, 3, 4_000), None);
        told(look(6_100, 0, 3, 4_001), 0, 1_075, 1);
        // Many short pieces, or none, are not a long one; each shard is watched separately.
        for (millis, number) in [(7_000, 5), (7_900, 7), (8_100, 0), (9_500, 9), (10_400, 9)] {
            assert_eq!(look(millis, 0, number, 4_001), None, "{millis}");
        }
        assert_eq!(look(10_600, 1, 9, 0), None);
        told(look(10_600, 0, 9, 5_001), 0, 1_100, 1_000);
        assert_eq!(look(0, 2, 1, 0), None, "no shard");
    }
}
