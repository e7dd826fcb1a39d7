//! Two ways of one task in turns, with a look before and behind each turn at whether the core was ours alone.
//!
//! Decides: a virtual processor is often one of two hardware threads, and what somebody else runs on the other one takes
//! up to half of the core's instructions a second, for milliseconds or minutes, unseen from here. That slows what is
//! bound by instructions and spares what waits, so it moves ratios, too. So work is cut into pieces of some hundred
//! microseconds, both ways take turns, and between turns a loop is timed that does nothing but fill the core. Where both
//! loops around a turn take as long as on a free core, the core was ours; that does not look at the result.
//! Limits: what happens within a turn alone is not seen; a machine that is never free has no such turns.

use std::hint::black_box;
use std::time::Instant;

/// The floor's time to ours, each the sum of its pieces' medians.
pub struct Ratios {
    /// Of all turns.
    pub always: f64,
    /// Of turns on a core of our own, if each piece had some.
    pub alone: Option<f64>,
    /// How many turns that were, of all.
    pub alone_share: f64,
}

impl std::fmt::Display for Ratios {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.3} of its speed", self.always)?;
        let share = self.alone_share * 100.0;
        match self.alone {
            Some(alone) => write!(f, "; {alone:.3} in the {share:.0} % of turns that had the core alone"),
            None => write!(f, "; the core was ours alone in {share:.0} % of turns, too few"),
        }
    }
}

/// How often each piece is done by each way.
const ROUNDS: usize = 40;
/// So many turns of a piece make a median.
const TURNS_MIN: usize = 3;
/// A loop that takes so much longer than on a free core was not alone.
const SLOWER: f64 = 1.1;

/// One turn.
#[derive(Clone, Copy)]
struct Turn {
    seconds: f64,
    /// The longer one of the loops before and behind it.
    loop_seconds: f64,
}

/// Lets both ways do each of `pieces` in turns.
pub fn compare(pieces: usize, mut floor: impl FnMut(usize), mut ours: impl FnMut(usize)) -> Ratios {
    let mut turns = [vec![Vec::new(); pieces], vec![Vec::new(); pieces]];
    let mut loops = Vec::new();
    for piece in (0..ROUNDS).flat_map(|_| 0..pieces) {
        // Not the same piece: the second one would find it in the cache.
        for (way, piece) in [piece, (piece + pieces / 2) % pieces].into_iter().enumerate() {
            let before = fill();
            let begun = Instant::now();
            if way == 0 {
                floor(piece)
            } else {
                ours(piece)
            }
            let seconds = begun.elapsed().as_secs_f64();
            let behind = fill();
            loops.extend([before, behind]);
            turns[way][piece].push(Turn { seconds, loop_seconds: before.max(behind) });
        }
    }
    loops.sort_by(f64::total_cmp);
    // Not the very fastest: now and then a clock jumps.
    let free = loops[loops.len() / 50];
    let is_alone = |turn: &Turn| turn.loop_seconds < free * SLOWER;
    let all = turns.iter().flatten().flatten();
    let alone_share = all.clone().filter(|turn| is_alone(turn)).count() as f64 / all.count() as f64;
    let ratio = |counts: &dyn Fn(&Turn) -> bool| {
        let sum = |way: &[Vec<Turn>]| way.iter().map(|turns| median(turns, counts)).sum::<Option<f64>>();
        Some(sum(&turns[0])? / sum(&turns[1])?)
    };
    Ratios { always: ratio(&|_| true).expect("turns"), alone: ratio(&is_alone), alone_share }
}

fn median(turns: &[Turn], counts: &dyn Fn(&Turn) -> bool) -> Option<f64> {
    let mut seconds: Vec<f64> = turns.iter().filter(|turn| counts(turn)).map(|turn| turn.seconds).collect();
    seconds.sort_by(f64::total_cmp);
    (seconds.len() >= TURNS_MIN).then(|| seconds[seconds.len() / 2])
}

/// Seconds of a loop that fills the core for some microseconds: sixteen sums that do not wait for each other.
fn fill() -> f64 {
    let begun = Instant::now();
    let mut sums: [u64; 16] = std::array::from_fn(|sum| sum as u64);
    for round in 0..1_000 {
        for sum in &mut sums {
            *sum = sum.rotate_left(9) ^ round;
        }
    }
    black_box(sums);
    begun.elapsed().as_secs_f64()
}
