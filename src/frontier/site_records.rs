//! How the fetches of sites were, as far as it is remembered.
//!
//! Decides: a site is unknown, fast, or slow until so many of its fetches were fast. The first slow one of a site that was fast
//! for long is forgiven.
//! Invariants: what is remembered of a site is its own, but for one in 65,536 of those that share its row; that two share a
//! row costs nothing while there are no more than four, and then the one forgotten is whose fetches ended longest ago.
//! Limits: 262,144 sites, in a megabyte.

use crate::url::SiteKey;

/// How the fetches of a site were.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Record {
    /// Nothing is remembered.
    #[default]
    Unknown,
    /// It is slow until so many are fast.
    Slow(u8),
    /// So many were fast since one was slow, or a few more.
    Fast(u8),
}

/// The records.
#[derive(Debug)]
pub struct SiteRecords {
    /// In each the site that was written last first, by a part of its key.
    rows: Box<[[(u16, Record); ROW_SITES]]>,
}

impl SiteRecords {
    /// Nothing is remembered of any.
    pub fn new() -> SiteRecords {
        SiteRecords { rows: vec![[(0, Record::Unknown); ROW_SITES]; ROWS].into() }
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
    /// After a fetch that was fast.
    pub fn fast(self) -> Record {
        match self {
            Record::Unknown | Record::Slow(..=1) => Record::Fast(1),
            Record::Slow(left) => Record::Slow(left - 1),
            Record::Fast(count) => Record::Fast(count.saturating_add(1)),
        }
    }

    /// After one that was not.
    pub fn slow(self) -> Record {
        match self {
            Record::Fast(FORGIVEN_AFTER..) => Record::Fast(0),
            _ => Record::SLOW,
        }
    }

    /// Slow, as slow as can be.
    pub const SLOW: Record = Record::Slow(FAST_FETCHES);
}

/// The low bits of the key: its place is made of the high ones.
fn tag_of(site: SiteKey) -> u16 {
    site.number() as u16
}

const ROWS: usize = 1 << 16;
const ROW_SITES: usize = 4;
/// How many fast fetches in a row make a slow site fast.
const FAST_FETCHES: u8 = 3;
/// After how many a slow one is forgiven.
const FORGIVEN_AFTER: u8 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn site(number: usize) -> SiteKey {
        SiteKey::of_host(7, &format!("s{number}.test"))
    }

    /// Ten thousand slow sites: among as many others hardly one is taken for one of them.
    #[test]
    fn a_record_is_its_own_site_s() {
        let mut records = SiteRecords::new();
        (0..10_000).for_each(|number| records.set(site(number), Record::SLOW));
        let wrong = (10_000..20_000).filter(|number| records.of(site(*number)) != Record::Unknown).count();
        let kept = (0..10_000).filter(|number| records.of(site(*number)) == Record::SLOW).count();
        assert!(wrong <= 2 && kept >= 9_990, "{wrong} {kept}");
        records.set(site(1), Record::Fast(9));
        assert_eq!(records.of(site(1)), Record::Fast(9));
    }

    #[test]
    fn who_ended_longest_ago_is_forgotten() {
        let mut records = SiteRecords::new();
        let place = site(0).place_among(ROWS);
        let five: Vec<_> = (0..).map(site).filter(|site| site.place_among(ROWS) == place).take(5).collect();
        five.iter().for_each(|site| records.set(*site, Record::Fast(1)));
        assert_eq!(five.iter().map(|site| records.of(*site)).filter(|record| *record == Record::Fast(1)).count(), 4);
        assert_eq!(records.of(five[0]), Record::Unknown);
        records.set(five[1], Record::Fast(2));
        records.set(five[0], Record::Fast(3));
        assert_eq!([0, 1, 2].map(|at| records.of(five[at])), [Record::Fast(3), Record::Fast(2), Record::Unknown]);
    }

    #[test]
    fn one_slow_fetch_among_many_is_forgiven() {
        let fast = |count| (0..count).fold(Record::Unknown, |record, _| record.fast());
        assert_eq!(
            [fast(15).slow(), fast(16).slow(), fast(16).slow().slow()],
            [Record::SLOW, Record::Fast(0), Record::SLOW]
        );
        assert_eq!(Record::SLOW.fast().fast().fast(), Record::Fast(1));
    }
}
