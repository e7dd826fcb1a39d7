//! The rests of kinds of URLs that complain while their host's other kinds do not.
//!
//! Decides: a kind of URLs speaks for itself alone where others were answered well since it complained last: anyone may link to a
//! broken script forty times. It rests alone then. One that was answered well before is the host's voice as soon as
//! another such kind has complained lately, too: a limiter lets some of each kind through, and an overloaded server
//! nothing; and as soon as some of its own URLs were answered well between two complaints. One that never was rests twice as long each time, and after its second complaint also while nothing was answered well: others
//! are asked next, and show which of the two it is.
//! One script has many spellings, so after two such complaints of different kinds all kinds rest for a while of which nothing is known
//! yet, until one of them is answered well.
//! After [`BROKEN_FROM`] such complaints a kind's URLs have one try each, so that a crawl ends.
//! Invariants: pure; a Retry-After is always obeyed by the host or the origin; the complaint of a host that has answered nothing well
//! is its own.
//! Limits: [`KINDS_MAX`] kinds that complained are known; of more, the one whose rest ends first is forgotten. Kinds that
//! were answered well are known by one of [`FINE_BITS`] bits: where two share one, the host rests.

use crate::config::Politeness;
use crate::time::{Duration, Instant};

/// The kinds of a host's URLs that were answered well.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FineKinds([u64; FINE_BITS / 64]);

/// What is known of the kinds of a host that have complained.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KindRest {
    complained: Vec<Complained>,
    /// URLs that were answered well.
    well: u32,
    /// Kinds of which nothing was known when they complained, since one was answered well.
    strangers: u32,
    /// URLs that had been answered well when one of these complained last.
    strangers_well: u32,
    /// The kind that complained last of those that were answered well before, and URLs that had been answered well then.
    of_fine: Option<(u32, u32)>,
    /// The last response was a complaint, or none came: others are asked before that URL is tried again.
    others_first: bool,
    /// Hashes of the URLs that complained last, the latest first; 0: none.
    urls: [u32; URLS],
    /// Until when kinds of which nothing is known are left alone.
    strangers_until: Instant,
}

/// A kind that complained.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Complained {
    /// A hash of the kind.
    kind: u32,
    complaints: u32,
    /// Those that were its own.
    own: u32,
    /// URLs of other kinds that had been answered well by its last complaint, and all of its own.
    well: u32,
    /// One of its own was answered well since.
    is_mended: bool,
    until: Instant,
}

impl FineKinds {
    /// A URL of this kind was answered well; whether that is new.
    pub fn note(&mut self, kind: u32) -> bool {
        let is_new = !self.has(kind);
        let (word, bit) = place(kind);
        self.0.get_mut(word).into_iter().for_each(|word| *word |= bit);
        is_new
    }

    fn has(&self, kind: u32) -> bool {
        let (word, bit) = place(kind);
        self.0.get(word).is_some_and(|word| word & bit != 0)
    }

    /// Whether one is known that is not `kind`.
    fn has_another(&self, kind: u32) -> bool {
        let (own_word, bit) = place(kind);
        self.0.iter().enumerate().any(|(word, bits)| if word == own_word { bits & !bit != 0 } else { *bits != 0 })
    }

    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }
}

impl KindRest {
    /// A URL of this kind was answered well; whether for the first time.
    pub fn is_fine(&mut self, kind: u32, is_new: bool) {
        self.others_first = false;
        self.well = self.well.wrapping_add(1);
        if let Some(known) = self.complained.iter_mut().find(|known| known.kind == kind) {
            (known.well, known.own, known.until) = (known.well.wrapping_add(1), 0, Instant::ZERO);
            known.is_mended = true;
        }
        if is_new {
            (self.strangers, self.strangers_until) = (0, Instant::ZERO);
        }
    }

    /// The URL of this hash complained; whether it did so before, as far as is known.
    pub fn url_complained(&mut self, url: u32) -> bool {
        self.others_first = true;
        // Those before it move on by one place, and it comes first.
        let mut moved = url;
        for known in &mut self.urls {
            std::mem::swap(known, &mut moved);
            if moved == url {
                return true;
            }
        }
        false
    }

    /// Whether others are to be asked before what failed is tried again.
    pub fn others_first(&self) -> bool {
        self.others_first
    }

    /// A URL of this kind complained and named no time, or `failed` to be answered, for which it rests for so long at least. Whether that
    /// is the kind's own.
    pub fn complained(
        &mut self,
        now: Instant,
        (kind, fine): (u32, &FineKinds),
        failed: Option<Duration>,
        politeness: &Politeness,
    ) -> bool {
        let rest = |doublings: u32| {
            let rest = politeness.retry_delay * (1 << doublings);
            now + rest.min(politeness.backoff_max.max(politeness.retry_delay)).max(failed.unwrap_or_default())
        };
        self.others_first = true;
        let was_fine = fine.has(kind);
        let of_fine = self.of_fine.filter(|(other, well)| *other != kind && self.well.wrapping_sub(*well) <= LATELY);
        let known = self.complained.iter().position(|known| known.kind == kind);
        let at = known.unwrap_or_else(|| self.admit(kind));
        let Some(this) = self.complained.get_mut(at) else { return false };
        this.complaints = this.complaints.saturating_add(1);
        // An overloaded server has answered nothing since.
        let others_are_fine = fine.has_another(kind)
            && match known {
                Some(_) => this.well != self.well,
                None => was_fine || self.strangers == 0 || self.strangers_well != self.well,
            };
        // A limiter lets some through.
        let is_limited = was_fine && this.is_mended;
        let is_own = !is_limited && others_are_fine && of_fine.is_none() || !was_fine && this.complaints == 2;
        (this.well, this.is_mended) = (self.well, false);
        if is_own {
            this.own = this.own.saturating_add(1);
            this.until = match failed {
                // One that broke off says nothing of the next.
                Some(least) if was_fine && this.own == 1 => now + least,
                _ if was_fine => rest((this.own - 1).min(FINE_DOUBLINGS_MAX)),
                _ => rest(this.own.min(DOUBLINGS_MAX)),
            };
        }
        if was_fine {
            self.of_fine = Some((kind, self.well));
        } else if known.is_none() && !fine.is_empty() {
            self.strangers = self.strangers.saturating_add(1);
            self.strangers_well = self.well;
            if self.strangers > 1 {
                self.strangers_until = rest(1);
            }
        }
        is_own
    }

    /// A place for a kind that complains for the first time, as far as is known.
    fn admit(&mut self, kind: u32) -> usize {
        let new = Complained { kind, complaints: 0, own: 0, well: self.well, is_mended: false, until: Instant::ZERO };
        if self.complained.len() < KINDS_MAX {
            self.complained.push(new);
            return self.complained.len() - 1;
        }
        let first = self.complained.iter().enumerate().min_by_key(|(_, known)| known.until);
        let at = first.map_or(0, |(at, _)| at);
        self.complained.get_mut(at).into_iter().for_each(|place| *place = new);
        at
    }

    /// Whether URLs of this kind have been refused so often that another try of one is in vain.
    pub fn is_broken(&self, kind: u32, fine: &FineKinds) -> bool {
        !fine.has(kind) && self.find(kind).is_some_and(|known| known.own >= BROKEN_FROM)
    }

    /// Until when some kind is left alone; `None`: none is.
    pub fn any_rests_until(&self, now: Instant) -> Option<Instant> {
        let last = self.complained.iter().map(|known| known.until).max().max(Some(self.strangers_until));
        last.filter(|until| *until > now)
    }

    /// Until when URLs of this kind are left alone; `None`: they are not.
    pub fn rests_until(&self, now: Instant, kind: u32, fine: &FineKinds) -> Option<Instant> {
        let until = match self.find(kind) {
            Some(known) => known.until,
            None if fine.has(kind) => Instant::ZERO,
            None => self.strangers_until,
        };
        (until > now).then_some(until)
    }

    fn find(&self, kind: u32) -> Option<&Complained> {
        self.complained.iter().find(|known| known.kind == kind)
    }
}

/// The bit of a kind: in which word, and which.
fn place(kind: u32) -> (usize, u64) {
    let bit = kind as usize % FINE_BITS;
    (bit / 64, 1 << (bit % 64))
}

/// A rest is doubled so often at most.
const DOUBLINGS_MAX: u32 = 3;
/// That of a kind that was answered well before: so that a few URLs of it are asked for while it is under maintenance.
const FINE_DOUBLINGS_MAX: u32 = 6;
/// Complaints that are a kind's own.
const BROKEN_FROM: u32 = 8;
const KINDS_MAX: usize = 8;
const URLS: usize = 8;
/// A complaint is not forgotten before so many URLs were answered well.
const LATELY: u32 = 16;
const FINE_BITS: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// A host, and what it has answered well.
    #[derive(Default)]
    struct Bed {
        rest: KindRest,
        fine: FineKinds,
    }

    impl Bed {
        fn is_fine(&mut self, kind: u32) {
            let is_new = self.fine.note(kind);
            self.rest.is_fine(kind, is_new);
        }

        /// Whether that is the kind's own.
        fn complains(&mut self, now: u64, kind: u32) -> bool {
            let politeness = Politeness { retry_delay: Duration::from_secs(10), ..Config::default().politeness };
            self.rest.complained(at(now), (kind, &self.fine), None, &politeness)
        }

        /// For how many seconds it rests.
        fn rests(&self, now: u64, kind: u32) -> u64 {
            let until = self.rest.rests_until(at(now), kind, &self.fine);
            until.map_or(0, |until| until.since(at(now)).as_secs())
        }
    }

    #[test]
    fn a_broken_script_rests_alone_and_longer_each_time() {
        let mut bed = Bed::default();
        bed.is_fine(8);
        let mut rests = Vec::new();
        for round in 0..4 {
            let now = 1_000 * round;
            bed.is_fine(8);
            assert!(bed.complains(now, 7));
            rests.push(bed.rests(now, 7));
            assert_eq!((bed.rests(now, 8), bed.rests(now + 100, 7)), (0, 0));
            assert!(bed.rest.any_rests_until(at(now)).is_some());
        }
        assert_eq!(rests, [20, 40, 80, 80]);
        for _ in 4..BROKEN_FROM {
            assert!(!bed.rest.is_broken(7, &bed.fine));
            bed.is_fine(8);
            assert!(bed.complains(9_000, 7));
        }
        assert!(bed.rest.is_broken(7, &bed.fine));
        // It was mended: what it says now and then is the host's, and its URLs have all their tries.
        bed.is_fine(7);
        assert_eq!((bed.rest.is_broken(7, &bed.fine), bed.rests(9_000, 7)), (false, 0));
        assert!(!bed.complains(9_000, 7));
    }

    /// Maintenance: what was answered well before says nothing of now.
    #[test]
    fn what_is_answered_no_more_is_the_host() {
        let mut bed = Bed::default();
        bed.is_fine(8);
        let own: Vec<bool> = (0..6).map(|_| bed.complains(1, 7)).collect();
        assert_eq!(own, [true, true, false, false, false, false], "then others are asked");
        let own: Vec<bool> = (40..46).map(|kind| bed.complains(1, kind)).collect();
        assert_eq!(own, [false; 6]);
        bed.is_fine(8);
        assert!(bed.complains(1, 7) && bed.complains(1, 50) && !bed.complains(1, 51));
    }

    /// A limiter lets some of each kind through; an overloaded server answers nothing else.
    #[test]
    fn what_complains_now_and_then_or_everywhere_is_the_host() {
        let mut bed = Bed::default();
        for round in 0..9 {
            bed.is_fine(7);
            bed.is_fine(8);
            // The first of all may be one page's, and rests no longer than the host would.
            assert_eq!((bed.complains(1, 7), bed.rests(1, 7)), if round == 0 { (true, 10) } else { (false, 0) });
            assert!(!bed.complains(1, 8));
        }
        // One kind alone complains of late, while others are answered.
        (0..20).for_each(|_| bed.is_fine(8));
        bed.is_fine(7);
        assert!(!bed.complains(1, 7), "some are let through");
        for rest in [10, 20, 40] {
            bed.is_fine(8);
            assert_eq!((bed.complains(1, 7), bed.rests(1, 7)), (true, rest));
        }
        // Nothing else is answered any more.
        assert!(!bed.complains(1, 7) && bed.rest.others_first());
        assert!(!bed.rest.url_complained(1) && !bed.rest.url_complained(2) && bed.rest.url_complained(1));
        (10..17).for_each(|url| assert!(!bed.rest.url_complained(url)));
        assert!(bed.rest.url_complained(1) && !bed.rest.url_complained(2));
        let mut bed = Bed::default();
        let own: Vec<bool> = (0..5).map(|_| bed.complains(1, 7)).collect();
        assert_eq!(own, [false, true, false, false, false], "once, so that others are asked");
        assert!((8..40).all(|kind| !bed.complains(1, kind)), "nothing was ever fine");
    }

    /// One script under forty spellings, or forty scripts: those that were answered well go on.
    #[test]
    fn broken_scripts_by_turns_rest_together() {
        let mut bed = Bed::default();
        bed.is_fine(7);
        let mut rests = Vec::new();
        for kind in 40..80 {
            let now = 1_000 * u64::from(kind);
            bed.is_fine(7);
            assert!(bed.complains(now, kind), "{kind}");
            assert_eq!(bed.rests(now, 7), 0);
            rests.push(bed.rests(now, 99));
        }
        assert_eq!((&rests[..4], rests[39]), (&[0, 20, 20, 20][..], 20), "what nothing is known of waits");
        // One of them works: the next is asked at once.
        bed.is_fine(7);
        assert!(bed.complains(100_000, 120));
        bed.is_fine(98);
        assert_eq!((bed.rests(100_000, 99), bed.rests(100_000, 120)), (0, 20), "that one rests on");
    }
}
