//! Ready hosts by weight: how hosts compete for the pages of a crawl that has so many alone.
//!
//! Decides: hosts of the whole weight come when they can be asked, by level ([`LevelTurns`]). A host whose weight is lowered has one page
//! while each of the others has as many as its weight says ([`Weight::turns`]): four or sixteen. Where no other host has begun a page for
//! [`PATIENCE`], it need not wait: it competes only with hosts that can be asked now. So one that is dead, or asked for a rest of a
//! day, holds up nothing.
//! Without `crawl.pages_max` all hosts have the whole weight: politeness spaces them, and what one has the others have no less.
//! Invariants: a host stands in one row, once; no row waits for ever.
//! Limits: a host stands in the row of the weight that it had when it came.

use super::importance::Level;
use super::level_turns::LevelTurns;
use super::site_turns::SiteTurns;
use crate::kinds::Weight;
use crate::outcome::HostId;
use crate::time::{Duration, Instant};
use crate::url::SiteKey;

/// The rows.
#[derive(Debug, Default)]
pub struct WeighedTurns {
    whole: LevelTurns,
    /// Of a quarter and of a sixteenth.
    lowered: [Row; 2],
    /// Turns that hosts of the whole weight had, in [`PARTS`].
    turns: u64,
    last_whole: Option<Instant>,
    lately: Lately,
}

/// Turns of hosts of the whole weight in the last [`LATELY`], or up to twice that.
#[derive(Debug, Default)]
struct Lately {
    since: Instant,
    before: u64,
    now: u64,
}

impl Lately {
    fn look(&mut self, now: Instant) {
        if now.since(self.since) >= LATELY {
            let is_next = now.since(self.since) < LATELY + LATELY;
            *self = Lately { since: now, before: if is_next { self.now } else { 0 }, now: 0 };
        }
    }
}

#[derive(Debug, Default)]
struct Row {
    hosts: SiteTurns,
    len: u64,
    /// When its next turn is, in the same unit.
    next: u64,
}

impl WeighedTurns {
    /// No host; hosts have so many levels.
    pub fn new(levels: Level) -> WeighedTurns {
        WeighedTurns { whole: LevelTurns::new(levels), ..WeighedTurns::default() }
    }

    /// Whether no host waits.
    pub fn is_empty(&self) -> bool {
        self.whole.is_empty() && self.lowered.iter().all(|row| row.hosts.is_empty())
    }

    /// Puts a host behind the others of its site, weight and level.
    pub fn push(&mut self, site: SiteKey, id: HostId, (weight, level): (Weight, Level)) {
        let row = match weight {
            Weight::Whole => return self.whole.push(site, id, level),
            Weight::Quarter => &mut self.lowered[0],
            Weight::Sixteenth => &mut self.lowered[1],
        };
        row.hosts.push(site, id);
        row.len += 1;
    }

    /// Takes all hosts of a site over from another row.
    pub fn take_over(&mut self, site: SiteKey, from: &mut SiteTurns) {
        self.whole.take_over(site, from);
    }

    /// Gives the sites at the front of the row of the whole weight that `are_theirs` to another row.
    pub fn hand_over(&mut self, are_theirs: impl Fn(SiteKey) -> bool, to: &mut SiteTurns) {
        self.whole.hand_over(are_theirs, to);
    }

    /// When lowered hosts need not wait for others any more, where they do.
    pub fn patient_until(&self) -> Option<Instant> {
        let has_lowered = self.lowered.iter().any(|row| !row.hosts.is_empty());
        self.last_whole.filter(|_| has_lowered).map(|last| last + PATIENCE)
    }

    /// When a host may have a turn: `Instant::ZERO` for now, `None` when no host waits.
    pub fn next_due(&self) -> Option<Instant> {
        let may_now = !self.whole.is_empty() || self.lowered.iter().any(|row| row.is_due(self.turns));
        match self.last_whole {
            _ if self.is_empty() => None,
            Some(last) if !may_now => Some(last + PATIENCE),
            _ => Some(Instant::ZERO),
        }
    }

    /// Takes the next host of those whose sites may have a turn, where so many hosts in all have something to do.
    pub fn pop_of(&mut self, now: Instant, hosts: usize, may_have: impl Fn(SiteKey) -> bool) -> Option<HostId> {
        self.lately.look(now);
        let lowered: u64 = self.lowered.iter().map(|row| row.len).sum();
        // Hosts that rest, or are dead, are no rivals: as many as had turns lately.
        let rivals = (hosts as u64).saturating_sub(lowered).min(self.lately.before + self.lately.now);
        let is_alone = rivals == 0 || self.last_whole.is_none_or(|last| now.since(last) >= PATIENCE);
        if rivals > 0
            && let Some(id) = self.pop_lowered(rivals, &may_have, false)
        {
            return Some(id);
        }
        if let Some(id) = self.whole.pop_of(&may_have) {
            self.turns += PARTS;
            self.lately.now += 1;
            self.last_whole = Some(now);
            return Some(id);
        }
        if is_alone { self.pop_lowered(rivals, &may_have, true) } else { None }
    }

    fn pop_lowered(&mut self, rivals: u64, may_have: impl Fn(SiteKey) -> bool, is_alone: bool) -> Option<HostId> {
        for (row, weight) in self.lowered.iter_mut().zip([Weight::Quarter, Weight::Sixteenth]) {
            if !is_alone && !row.is_due(self.turns) {
                continue;
            }
            let Some(id) = row.hosts.pop_of(&may_have) else { continue };
            // Each of its hosts has a turn while each of the others has as many.
            row.next = self.turns + PARTS * weight.turns() * rivals / row.len.max(1);
            row.len = row.len.saturating_sub(1);
            return Some(id);
        }
        None
    }

    /// Gives the next turn to the first of `count` hosts that `is_better` names; whether there is one.
    pub fn prefer(&mut self, count: usize, is_better: impl Fn(HostId) -> bool) -> bool {
        self.whole.prefer(count, &is_better)
            || self.lowered.iter_mut().any(|row| {
                let found = row.hosts.prefer(count, &is_better);
                row.next = if found { 0 } else { row.next };
                found
            })
    }
}

impl Row {
    fn is_due(&self, turns: u64) -> bool {
        !self.hosts.is_empty() && self.next <= turns
    }
}

/// So long after a page of another host a lowered one need not wait for more of them.
const PATIENCE: Duration = Duration::from_secs(1);
/// For so long hosts count as rivals that had a turn: longer than most delays.
const LATELY: Duration = Duration::from_secs(30);
/// Parts of a turn: thousands of lowered hosts may share the turns of a few others.
const PARTS: u64 = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn site(number: u32) -> SiteKey {
        SiteKey::of_host(7, &format!("s{number}.test"))
    }

    /// Ten hosts of each weight that are ready again at once.
    #[test]
    fn hosts_share_turns_by_weight() {
        let mut turns = WeighedTurns::new(1);
        let weight_of = |id: HostId| [Weight::Whole, Weight::Quarter, Weight::Sixteenth][id as usize / 10];
        (0..30).for_each(|id| turns.push(site(id), id, (weight_of(id), 0)));
        let mut had = [0; 3];
        for step in 0..21 * 16 * 10 {
            let id = turns.pop_of(Instant::from_nanos(step), 30, |_| true).expect("a host");
            had[id as usize / 10] += 1;
            turns.push(site(id), id, (weight_of(id), 0));
        }
        assert!(
            (2_500..=2_620).contains(&had[0]) && (580..=680).contains(&had[1]) && (140..=180).contains(&had[2]),
            "{had:?}"
        );
    }

    /// A lowered host waits for others that begin pages, and for no other.
    #[test]
    fn a_lowered_host_waits_a_second_for_those_that_cannot_be_asked() {
        let mut turns = WeighedTurns::new(1);
        let second = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        turns.push(site(1), 1, (Weight::Sixteenth, 0));
        assert_eq!(turns.next_due(), Some(Instant::ZERO));
        assert_eq!(turns.pop_of(second(0), 9, |_| true), Some(1));
        turns.push(site(0), 0, (Weight::Whole, 0));
        turns.push(site(1), 1, (Weight::Sixteenth, 0));
        assert_eq!([(); 2].map(|()| turns.pop_of(second(5), 9, |_| true)), [Some(0), Some(1)]);
        turns.push(site(1), 1, (Weight::Sixteenth, 0));
        assert_eq!((turns.pop_of(second(5), 9, |_| true), turns.next_due()), (None, Some(second(6))));
        assert_eq!(turns.pop_of(second(6), 9, |_| true), Some(1));
        assert_eq!(turns.next_due(), None);
        turns.push(site(1), 1, (Weight::Sixteenth, 0));
        assert!(turns.prefer(16, |id| id == 1) && turns.pop_of(second(6), 9, |_| true) == Some(1));
        // What it has alone is no debt.
        let alone = |turns: &mut WeighedTurns| {
            turns.push(site(1), 1, (Weight::Sixteenth, 0));
            turns.pop_of(second(100), 2, |_| true)
        };
        assert!((0..1_000).all(|_| alone(&mut turns) == Some(1)));
        let mut had = [0; 2];
        turns.push(site(0), 0, (Weight::Whole, 0));
        turns.push(site(1), 1, (Weight::Sixteenth, 0));
        for _ in 0..170 {
            let id = turns.pop_of(second(100), 2, |_| true).expect("a host");
            had[id as usize] += 1;
            turns.push(site(id), id, ([Weight::Whole, Weight::Sixteenth][id as usize], 0));
        }
        assert!((9..=12).contains(&had[1]), "{had:?}");
    }
}
