//! Waiting hosts, those with the best URLs first.
//!
//! Decides: one row for each level ([`Level`]), in which turns rotate by site ([`SiteRoundRobin`]); the highest row
//! that has a host gets the turn. Every [`FAIR_TURNS`]th turn rotates by row instead, so that a row among N that have
//! hosts gets at least one of FAIR_TURNS × N turns: no host starves, whatever others are worth. Most crawls have one
//! row.
//! Invariants: a host is in one row, once.
//! Limits: a host is in the row of the best URL that it had when it came; URLs that arrive meanwhile count at its
//! next turn.

use super::site_round_robin::SiteRoundRobin;
use crate::frontier::queue::Level;
use crate::job::HostId;
use ringcrawl_url::SiteKey;

/// The rows.
#[derive(Debug)]
pub struct LevelTurns {
    /// By level, the lowest first.
    rows: Box<[SiteRoundRobin]>,
    turns: usize,
}

impl Default for LevelTurns {
    fn default() -> LevelTurns {
        LevelTurns::new(1)
    }
}

impl LevelTurns {
    /// Empty rows, this many and at least one.
    pub fn new(levels: Level) -> LevelTurns {
        LevelTurns { rows: (0..levels.max(1)).map(|_| SiteRoundRobin::default()).collect(), turns: 0 }
    }

    /// Whether no host waits.
    pub fn is_empty(&self) -> bool {
        self.rows.iter().all(SiteRoundRobin::is_empty)
    }

    /// Puts a host behind the others of its site and level.
    pub fn push(&mut self, site: SiteKey, id: HostId, level: Level) {
        let last = self.rows.len() - 1;
        self.rows[usize::from(level).min(last)].push(site, id);
    }

    /// Takes over all hosts of a site from another row, to the lowest level.
    pub fn take_over(&mut self, site: SiteKey, from: &mut SiteRoundRobin) {
        self.rows[0].take_over(site, from);
    }

    /// Moves the sites at the front of each row for which `are_theirs` holds to another row, with all their hosts of
    /// that level.
    pub fn hand_over(&mut self, are_theirs: impl Fn(SiteKey) -> bool, to: &mut SiteRoundRobin) {
        self.rows.iter_mut().for_each(|row| row.hand_over(&are_theirs, to));
    }

    /// Takes the next host whose site may have a turn.
    pub fn pop_of(&mut self, may_have: impl Fn(SiteKey) -> bool) -> Option<HostId> {
        if let [row] = &mut *self.rows {
            return row.pop_of(may_have);
        }
        self.turns = self.turns.wrapping_add(1);
        let rows = self.rows.len();
        if self.turns.is_multiple_of(FAIR_TURNS) {
            // Rows without a host cost no turn.
            let first = self.turns / FAIR_TURNS % rows;
            let next = (0..rows).map(|step| (first + step) % rows).find(|row| !self.rows[*row].is_empty())?;
            if let Some(id) = self.rows[next].pop_of(&may_have) {
                return Some(id);
            }
        }
        self.rows.iter_mut().rev().find_map(|row| row.pop_of(&may_have))
    }

    /// Gives the next turn of its row to the first of `count` hosts for which `is_better` holds; returns whether
    /// there is one.
    pub fn prefer(&mut self, count: usize, is_better: impl Fn(HostId) -> bool) -> bool {
        let found = self.rows.iter_mut().rposition(|row| row.prefer(count, &is_better));
        if let Some(row) = found {
            // The next turn is that row's.
            self.turns = FAIR_TURNS * (row + self.rows.len()) - 1;
        }
        found.is_some()
    }
}

/// One of this many turns goes to the next row.
const FAIR_TURNS: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn site(number: u32) -> SiteKey {
        SiteKey::of_host(7, &format!("s{number}.test"))
    }

    #[test]
    fn the_best_come_first_and_none_starves() {
        let mut turns = LevelTurns::new(8);
        (0..8).for_each(|level| turns.push(site(level), level, level as Level));
        assert_eq!([(); 3].map(|()| turns.pop_of(|_| true)), [Some(7), Some(6), Some(5)]);
        // Hosts of the highest row come back each time, and others still get their turns.
        let mut turns = LevelTurns::new(8);
        (0..100).for_each(|id| turns.push(site(id), id, 7));
        (100..104).for_each(|id| turns.push(site(id), id, (id - 100) as Level));
        let mut others = Vec::new();
        for turn in 0..FAIR_TURNS * 8 {
            match turns.pop_of(|_| true) {
                Some(id) if id < 100 => turns.push(site(id), id, 7),
                other => others.extend(other.map(|id| (turn, id))),
            }
        }
        assert_eq!(others.len(), 4, "{others:?}");
    }

    #[test]
    fn a_site_that_may_not_is_passed_over() {
        let mut turns = LevelTurns::new(8);
        (0..6).for_each(|id| turns.push(site(id % 2), id, 7 - id as Level));
        let order: Vec<Option<HostId>> = (0..4).map(|_| turns.pop_of(|of| of == site(1))).collect();
        assert_eq!(order, [Some(1), Some(3), Some(5), None]);
        assert_eq!((0..4).filter(|_| turns.pop_of(|_| true).is_some()).count(), 3);
        assert!(turns.is_empty());
    }

    #[test]
    fn the_better_is_next_whatever_its_level() {
        for better in 0..8 {
            let mut turns = LevelTurns::new(8);
            (0..16).for_each(|id| turns.push(site(id), id, (id % 8) as Level));
            turns.pop_of(|of| of == site(15));
            assert!(turns.prefer(256, |id| id == better));
            assert_eq!(turns.pop_of(|_| true), Some(better));
        }
        assert!(!LevelTurns::new(8).prefer(256, |_| true));
    }
}
