//! Sixty-four sums at once.
//!
//! Decides: how often each bit was set in the added words, with bit `i` of plane `p` as digit `p` of sum `i`. Eight
//! words are added at once by full adders (as Harley and Seal count bits): eleven operations a word, for all 64 sums.
//! Invariants: the majority is that of the added words, in any order.
//! Limits: [`Votes::COUNT_MAX`] words.

/// Votes on each of 64 bits.
#[derive(Clone, Debug, Default)]
pub(super) struct Votes {
    planes: [u64; PLANES],
    /// Not in the planes yet: the remainder of the count modulo eight.
    waiting: [u64; WAITING],
    count: usize,
}

const PLANES: usize = 16;
const WAITING: usize = 8;

impl Votes {
    /// The most that can be counted; further words are ignored.
    pub const COUNT_MAX: usize = (1 << PLANES) - 1;

    /// Votes for each bit set in `bits`, and against the others.
    #[inline(always)]
    pub fn add(&mut self, bits: u64) {
        if self.count == Votes::COUNT_MAX {
            return;
        }
        let place = self.count % WAITING;
        if let Some(waiting) = self.waiting.get_mut(place) {
            *waiting = bits;
        }
        self.count += 1;
        if place == WAITING - 1 {
            self.sum();
        }
    }

    /// How many voted.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The bits for which more than half voted.
    pub fn majority(mut self) -> u64 {
        let left = self.count % WAITING;
        self.waiting.iter_mut().skip(left).for_each(|bits| *bits = 0);
        self.sum();
        let half = self.count / 2;
        let (mut more, mut same) = (0, !0);
        for (place, plane) in self.planes.iter().enumerate().rev() {
            let digit = if half >> place & 1 == 1 { !0 } else { 0 };
            more |= same & plane & !digit;
            same &= !(plane ^ digit);
        }
        more
    }

    /// Adds the waiting words to the planes.
    #[inline]
    fn sum(&mut self) {
        let [a, b, c, d, e, f, g, h] = self.waiting;
        let [ones, twos, fours, higher @ ..] = &mut self.planes;
        let twos_carried = [carry(ones, a, b), carry(ones, c, d), carry(ones, e, f), carry(ones, g, h)];
        let [a, b, c, d] = twos_carried;
        let fours_carried = [carry(twos, a, b), carry(twos, c, d)];
        let [a, b] = fours_carried;
        let mut carried = carry(fours, a, b);
        for plane in higher {
            let both = *plane & carried;
            *plane ^= carried;
            carried = both;
        }
    }
}

/// Adds two digits to a plane; returns the carry.
#[inline(always)]
fn carry(plane: &mut u64, one: u64, other: u64) -> u64 {
    let odd = *plane ^ one;
    let carried = *plane & one | odd & other;
    *plane = odd ^ other;
    carried
}
