//! How fast the fetches of sites were, as far as remembered.
//!
//! Decides: a site is unknown, fast, or slow until some of its fetches were fast: one the first time, and twice as
//! many each time that it is slow again. So an honest site that was slow once soon counts as fast again, and one that
//! is fast only in order to be slow again gets less and less of the others' time. The first slow fetch of a site that
//! was fast for long is forgiven. A slow fetch after as many fast ones as the highest price does not raise the price,
//! and each long run of fast fetches makes up for one relapse.
//! Invariants: the record of a site is its own, except for one in 65,536 of the sites that share its row. Sharing a
//! row costs nothing up to four sites; beyond that, the site whose fetches ended longest ago is forgotten.
//! Limits: 262,144 sites, in a megabyte and a half.

use ringcrawl_url::SiteKey;

/// How fast the fetches of a site were.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Record {
    /// Nothing is remembered.
    #[default]
    Unknown,
    /// It is slow until `left` are fast.
    Slow {
        /// How many.
        left: u8,
        /// How many times it has been slow before.
        relapses: u8,
    },
    /// This many were fast since one was slow.
    Fast {
        /// How many, or a few more.
        count: u8,
        /// How many times it has been slow before.
        relapses: u8,
    },
}

/// The records.
#[derive(Debug)]
pub struct SpeedHistory {
    /// In each row the most recently written site first, by a part of its key.
    rows: Box<[[(u16, Record); ROW_SITES]]>,
}

impl SpeedHistory {
    /// Nothing is remembered of any site.
    pub fn new() -> SpeedHistory {
        SpeedHistory { rows: vec![[(0, Record::Unknown); ROW_SITES]; ROWS].into() }
    }

    /// What is remembered of `site`.
    pub fn of(&self, site: SiteKey) -> Record {
        let row = &self.rows[site.place_among(ROWS)];
        row.iter().find(|(tag, _)| *tag == tag_of(site)).map_or(Record::Unknown, |(_, record)| *record)
    }

    /// Remembers `record`.
    pub fn set(&mut self, site: SiteKey, record: Record) {
        let row = &mut self.rows[site.place_among(ROWS)];
        let place = row.iter().position(|(tag, _)| *tag == tag_of(site)).unwrap_or(ROW_SITES - 1);
        row[..=place].rotate_right(1);
        row[0] = (tag_of(site), record);
    }
}

impl Record {
    /// The record after a fast fetch.
    pub fn fast(self) -> Record {
        match self {
            Record::Unknown => Record::Fast { count: 1, relapses: 0 },
            Record::Slow { left: ..=1, relapses } => Record::Fast { count: 1, relapses: relapses + 1 },
            Record::Slow { left, relapses } => Record::Slow { left: left - 1, relapses },
            Record::Fast { count: MADE_UP_AFTER.., relapses: relapses @ 1.. } => {
                Record::Fast { count: FORGIVEN_AFTER, relapses: relapses - 1 }
            }
            Record::Fast { count, relapses } => Record::Fast { count: count.saturating_add(1), relapses },
        }
    }

    /// The record after a slow fetch.
    pub fn slow(self) -> Record {
        match self {
            Record::Fast { count: FORGIVEN_AFTER.., relapses: 0 } => Record::Fast { count: 0, relapses: 1 },
            Record::Fast { count: PAID_AFTER.., relapses } => Record::slow_again(relapses.saturating_sub(1)),
            Record::Unknown => Record::slow_again(0),
            Record::Fast { relapses, .. } | Record::Slow { relapses, .. } => Record::slow_again(relapses),
        }
    }

    fn slow_again(relapses: u8) -> Record {
        let relapses = relapses.min(RELAPSES_MAX);
        Record::Slow { left: 1 << relapses, relapses }
    }
}

/// The low bits of the key: the high ones select its row.
fn tag_of(site: SiteKey) -> u16 {
    site.number() as u16
}

const ROWS: usize = 1 << 16;
const ROW_SITES: usize = 4;
/// A site that was slow more often still needs no more than 64 fast fetches.
const RELAPSES_MAX: u8 = 6;
/// Fast fetches after which a slow one is forgiven.
pub const FORGIVEN_AFTER: u8 = 16;
/// Fast fetches after which a slow one does not raise the price: the highest price.
const PAID_AFTER: u8 = 1 << RELAPSES_MAX;
/// Fast fetches that make up for one relapse.
const MADE_UP_AFTER: u8 = 128;

#[cfg(test)]
mod tests {
    use super::*;

    const SLOW: Record = Record::Slow { left: 1, relapses: 0 };
    const FAST: Record = Record::Fast { count: 1, relapses: 0 };

    fn site(number: usize) -> SiteKey {
        SiteKey::of_host(7, &format!("s{number}.test"))
    }

    /// Ten thousand slow sites: among as many others hardly one is mistaken for one of them.
    #[test]
    fn a_record_is_its_own_site_s() {
        let mut records = SpeedHistory::new();
        (0..10_000).for_each(|number| records.set(site(number), SLOW));
        let wrong = (10_000..20_000).filter(|number| records.of(site(*number)) != Record::Unknown).count();
        let kept = (0..10_000).filter(|number| records.of(site(*number)) == SLOW).count();
        assert!(wrong <= 2 && kept >= 9_990, "{wrong} {kept}");
        records.set(site(1), Record::Fast { count: 9, relapses: 0 });
        assert_eq!(records.of(site(1)), Record::Fast { count: 9, relapses: 0 });
    }

    #[test]
    fn who_ended_longest_ago_is_forgotten() {
        let mut records = SpeedHistory::new();
        let place = site(0).place_among(ROWS);
        let five: Vec<_> = (0..).map(site).filter(|site| site.place_among(ROWS) == place).take(5).collect();
        five.iter().for_each(|site| records.set(*site, FAST));
        assert_eq!(five.iter().map(|site| records.of(*site)).filter(|record| *record == FAST).count(), 4);
        assert_eq!(records.of(five[0]), Record::Unknown);
        records.set(five[1], Record::Fast { count: 2, relapses: 0 });
        records.set(five[0], Record::Fast { count: 3, relapses: 0 });
        assert_eq!(
            [0, 1, 2].map(|at| records.of(five[at])),
            [Record::Fast { count: 3, relapses: 0 }, Record::Fast { count: 2, relapses: 0 }, Record::Unknown]
        );
    }

    #[test]
    fn one_slow_fetch_among_many_is_forgiven() {
        assert_eq!([fast(15).slow(), fast(16).slow()], [SLOW, Record::Fast { count: 0, relapses: 1 }]);
        assert_eq!(fast(16).slow().slow(), Record::Slow { left: 2, relapses: 1 });
    }

    /// A site that is slow whenever it can be: how many fast fetches that costs, each time.
    #[test]
    fn who_is_slow_again_and_again_pays_more_each_time() {
        let mut record = SLOW;
        let mut prices = Vec::new();
        for _ in 0..10 {
            let mut price = 0;
            while matches!(record, Record::Slow { .. }) {
                record = record.fast();
                price += 1;
            }
            prices.push(price);
            record = record.slow();
        }
        assert_eq!(prices, [1, 2, 4, 8, 16, 32, 64, 64, 64, 64]);
        // A thousand fast fetches erase the record.
        let long_after = (0..1_000).fold(record, |record, _| record.fast());
        assert!(matches!(long_after, Record::Fast { relapses: 0, count: FORGIVEN_AFTER.. }), "{long_after:?}");
    }

    /// A large file now and then: out of a thousand fetches hardly any finds its site slow.
    #[test]
    fn who_is_slow_once_in_a_hundred_stays_fast() {
        let (mut record, mut slow) = (Record::Unknown, 0);
        for fetch in 0..10_000 {
            slow += usize::from(matches!(record, Record::Slow { .. }));
            record = if fetch % 100 == 99 { record.slow() } else { record.fast() };
        }
        assert!(slow < 200, "{slow} of 10,000");
    }

    fn fast(count: usize) -> Record {
        (0..count).fold(Record::Unknown, |record, _| record.fast())
    }
}
