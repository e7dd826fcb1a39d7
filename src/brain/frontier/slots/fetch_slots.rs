//! Slots for fetches, and which fetch may have the next one: per site, and for all slow sites together.
//!
//! Decides: a site may hold three times as many slots as are free ([`SiteShares`]), and so may all slow sites together.
//! A fetch is slow once it has lasted [`SLOW_AFTER`]; a site is slow from then on until some of its fetches are not.
//! The effect of a fetch in flight on its site's record counts at once, and is written when it ends: many may be in
//! flight, and end in any order. So thousands of sites that drip leave a quarter of the slots to those that answer.
//! Which sites drip is known only after they have held a slot for a while. Therefore, while slow fetches and unknown
//! sites hold more than half of all slots, a fetch of any site that is not slow gets [`CUT_SHORT_AFTER`] to complete
//! instead of `fetch.deadline`; so does a fetch at an address for which others wait, until its site had sixteen fast
//! ones. A fetch that needs more fails, which makes its site slow, and is retried with its full
//! time. The same applies to a fetch that began earlier, when slow fetches hold three quarters of all slots: sites that
//! were fast may have become slow all at once. If hardly any site is fast, the network path is slow and not the sites,
//! and no fetch is cut short. What counts is the time until a response has arrived: how long it then waits for us is
//! not the site's doing, unless it is one of too many that are expensive to read.
//! Invariants: every slot taken is given back, once; a slot is slow once.
//! Leaves to others: what is remembered of a site ([`super::speed_history`]).

use std::collections::VecDeque;
use std::collections::hash_map::Entry;

use super::speed_history::{FORGIVEN_AFTER, Record, SpeedHistory};
use crate::frontier::settings::{SHARE_PLACES, TIMES_FREE};
use crate::site_shares::SiteShares;
use ringcrawl_base::IntMap;
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_url::SiteKey;

/// The slots of a shard.
#[derive(Debug)]
pub struct FetchSlots {
    count_max: usize,
    shares: SiteShares,
    /// Fetches in flight, by their job.
    held: IntMap<Place>,
    /// Fetches that were not slow at the last look, oldest first; with some that have ended.
    begun: VecDeque<(Instant, u64)>,
    /// Fetches that have become slow meanwhile, oldest first; with some that have ended.
    lasting: VecDeque<(Instant, u64)>,
    slow: usize,
    /// Slow fetches that were asked to end.
    told: usize,
    /// Fetches that are slow or of an unknown site.
    doubtful: usize,
    records: SpeedHistory,
    /// How many fetches of a site are lasting.
    lasting_of: IntMap<u32, SiteKey>,
    /// The share of fast fetches among the last ones, of sites that were not slow before: in parts of [`FAST_WHOLE`].
    fast: u32,
}

#[derive(Debug)]
struct Place {
    site: SiteKey,
    since: Instant,
    is_slow: bool,
    /// It has become slow and is still in flight.
    is_lasting: bool,
    /// The record of its site when it began.
    before: Record,
    /// The time until the response had arrived, or failed.
    lasted: Option<Duration>,
    /// It was asked to end.
    is_told: bool,
    /// The turns of its request were given back.
    is_without_turns: bool,
}

/// What is known of a site at an address for which another one waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum Awaited {
    /// As far as known no site was slow there, or this site was fast there.
    AsKnown,
    /// Others were slow there, and this site has not been fast there often since.
    AsStranger,
}

/// The speed of a fetch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FetchSpeed {
    /// It did not take long.
    Fast,
    /// It lasted this long.
    Slow(Duration),
}

impl FetchSlots {
    /// `count_max` slots, all free.
    pub fn new(count_max: usize) -> FetchSlots {
        FetchSlots {
            count_max,
            shares: SiteShares::new(SHARE_PLACES, TIMES_FREE),
            held: IntMap::default(),
            begun: VecDeque::new(),
            lasting: VecDeque::new(),
            slow: 0,
            told: 0,
            doubtful: 0,
            records: SpeedHistory::new(),
            lasting_of: IntMap::default(),
            fast: FAST_AT_FIRST,
        }
    }

    /// Whether `site` may have a slot.
    pub fn may_take(&self, site: SiteKey) -> bool {
        self.shares.may_take(site, self.free())
    }

    /// Whether any slow site may have a slot, while `kept` slots are kept for other slow sites.
    pub fn may_slow_take(&self, kept: usize) -> bool {
        ((self.slow + kept) as u64) < TIMES_FREE * self.free().saturating_sub(kept as u64)
    }

    /// Whether recent fetches of `site` were slow.
    pub fn is_slow(&self, site: SiteKey) -> bool {
        matches!(self.record(site), Record::Slow { .. })
    }

    /// Whether recent fetches of `site` were fast.
    #[cfg(test)]
    fn is_fast(&self, site: SiteKey) -> bool {
        matches!(self.record(site), Record::Fast { .. })
    }

    /// How long a fetch of `site` that begins now may last, at most `deadline`; another site may wait for its
    /// address.
    pub fn deadline(&self, site: SiteKey, deadline: Duration, awaited: Option<Awaited>) -> Duration {
        let is_crowded = self.doubtful * 2 > self.count_max;
        let is_cut_short = match self.record(site) {
            Record::Slow { .. } => false,
            Record::Unknown => is_crowded || awaited.is_some(),
            // A fast robots.txt says little about what follows.
            Record::Fast { count: ..FORGIVEN_AFTER, .. } => is_crowded || awaited.is_some(),
            Record::Fast { .. } => is_crowded || awaited == Some(Awaited::AsStranger),
        };
        if is_cut_short && self.is_way_fast() { deadline.min(CUT_SHORT_AFTER) } else { deadline }
    }

    /// A fetch that must end for others: it has lasted as long as one that is cut short may.
    pub fn late(&mut self, now: Instant) -> Option<u64> {
        self.look(now);
        while let Some((since, id)) = self.lasting.front().copied() {
            if self.held.get(&id).is_some_and(|place| place.lasted.is_none())
                && !(self.is_blocked() && now.since(since) >= CUT_SHORT_AFTER)
            {
                return None;
            }
            self.lasting.pop_front();
            if let Some(place) = self.held.get_mut(&id).filter(|place| place.lasted.is_none()) {
                place.is_told = true;
                self.told += 1;
                return Some(id);
            }
        }
        None
    }

    /// When to look for a late fetch, while hardly any slot is free.
    pub fn next_late(&self) -> Option<Instant> {
        if self.held.len() * 4 <= self.count_max * 3 {
            return None;
        }
        let late = self.lasting.front().filter(|_| self.is_blocked()).map(|(since, _)| *since + CUT_SHORT_AFTER);
        self.begun.front().map(|(since, _)| *since + SLOW_AFTER).into_iter().chain(late).min()
    }

    /// Whether slow fetches leave too few slots to others.
    fn is_blocked(&self) -> bool {
        (self.slow - self.told) * 4 > self.count_max * 3 && self.is_way_fast()
    }

    fn is_way_fast(&self) -> bool {
        self.fast > FAST_WHOLE / FAST_PARTS
    }

    /// What is remembered of `site`, as if its lasting fetches had ended.
    fn record(&self, site: SiteKey) -> Record {
        let lasting = self.lasting_of.get(&site).copied().unwrap_or(0);
        // The first may be forgiven; from the second on nothing changes.
        (0..lasting.min(2)).fold(self.records.of(site), |record, _| record.slow())
    }

    /// Job `id` of `site` takes a slot.
    pub fn took(&mut self, now: Instant, id: u64, site: SiteKey) {
        let before = self.record(site);
        let is_slow = matches!(before, Record::Slow { .. });
        self.slow += usize::from(is_slow);
        self.doubtful += usize::from(!matches!(before, Record::Fast { .. }));
        self.shares.changed(site, 0, 1);
        let (is_lasting, is_told, is_without_turns) = Default::default();
        self.held.insert(
            id,
            Place { site, since: now, is_slow, is_lasting, before, lasted: None, is_told, is_without_turns },
        );
        if !is_slow {
            self.begun.push_back((now, id));
        }
    }

    /// The turns that the request of job `id` claimed are given back; returns whether this is the first time.
    pub fn gives_turns_back(&mut self, id: u64) -> bool {
        self.held.get_mut(&id).is_some_and(|place| !std::mem::replace(&mut place.is_without_turns, true))
    }

    /// The response for job `id` has arrived, or failed; its slot is still taken. If the hands have `measured` how
    /// long it took, that counts: `now` is later while the shard is busy.
    pub fn came(&mut self, now: Instant, id: u64, measured: Option<Duration>) {
        let Some(mut place) = self.held.remove(&id) else { return };
        self.conclude(now, &mut place, measured);
        self.held.insert(id, place);
    }

    /// The response for job `id` was cut, as it held memory that others waited for: it would have lasted longer.
    pub fn was_cut(&mut self, now: Instant, id: u64, lasted: Duration) {
        self.came(now, id, Some(lasted.max(SLOW_AFTER)));
    }

    /// The connection of job `id` was refused, or we had no memory for its response. That says nothing about a site
    /// whose pages come from elsewhere: a link may name any port.
    pub fn got_no_response(&mut self, now: Instant, id: u64) {
        let Some(mut place) = self.held.remove(&id) else { return };
        place.lasted.get_or_insert(now.since(place.since));
        self.lasts_no_more(&mut place);
        self.held.insert(id, place);
    }

    /// Returns whether it had become slow.
    fn lasts_no_more(&mut self, place: &mut Place) -> bool {
        if std::mem::take(&mut place.is_lasting)
            && let Entry::Occupied(mut count) = self.lasting_of.entry(place.site)
        {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
            return true;
        }
        false
    }

    /// The response has arrived, or failed.
    fn conclude(&mut self, now: Instant, place: &mut Place, measured: Option<Duration>) {
        if place.lasted.is_some() {
            return;
        }
        let lasted = measured.unwrap_or_else(|| now.since(place.since));
        place.lasted = Some(lasted);
        let is_fast = lasted < SLOW_AFTER;
        if !matches!(place.before, Record::Slow { .. }) {
            self.fast -= self.fast >> FAST_SHIFT;
            self.fast += if is_fast { FAST_WHOLE >> FAST_SHIFT } else { 0 };
        }
        // Then the shard was slow.
        if self.lasts_no_more(place) && is_fast {
            self.slow -= 1;
            self.told -= usize::from(std::mem::take(&mut place.is_told));
            place.is_slow = false;
            self.doubtful -= usize::from(!place.is_doubtful());
        }
        let record = self.records.of(place.site);
        self.records.set(place.site, if is_fast { record.fast() } else { record.slow() });
    }

    /// The response for job `id` waits to be read, behind many others: its slot then counts as a slow one's.
    pub fn waits_long(&mut self, id: u64) {
        let Some(place) = self.held.get_mut(&id) else { return };
        self.doubtful += usize::from(!place.is_doubtful());
        self.slow += usize::from(!place.is_slow);
        place.is_slow = true;
        self.records.set(place.site, self.records.of(place.site).slow());
    }

    /// Job `id` ended and gives its slot back; `None`: it already did when its end was held back.
    pub fn gave_back(&mut self, now: Instant, id: u64) -> Option<FetchSpeed> {
        let mut place = self.held.remove(&id)?;
        self.conclude(now, &mut place, None);
        self.slow -= usize::from(place.is_slow);
        self.told -= usize::from(place.is_told);
        self.doubtful -= usize::from(place.is_doubtful());
        self.shares.gave_back(place.site);
        let slow = place.lasted.filter(|lasted| *lasted >= SLOW_AFTER);
        Some(slow.map_or(FetchSpeed::Fast, FetchSpeed::Slow))
    }

    /// Checks which fetches have become slow.
    pub fn look(&mut self, now: Instant) {
        while let Some((since, id)) = self.begun.front().copied().filter(|(since, _)| now.since(*since) >= SLOW_AFTER) {
            self.begun.pop_front();
            if let Some(place) = self.held.get_mut(&id).filter(|place| !place.is_slow && place.lasted.is_none()) {
                self.doubtful += usize::from(!place.is_doubtful());
                (place.is_slow, place.is_lasting) = (true, true);
                self.slow += 1;
                *self.lasting_of.entry(place.site).or_default() += 1;
                self.lasting.push_back((since, id));
            }
        }
    }

    fn free(&self) -> u64 {
        self.count_max.saturating_sub(self.held.len()) as u64
    }
}

impl Place {
    fn is_doubtful(&self) -> bool {
        self.is_slow || self.before == Record::Unknown
    }
}

/// A fetch that lasts this long is slow: most pages arrive within a few tenths of a second.
pub const SLOW_AFTER: Duration = Duration::from_secs(2);
/// How long a new fetch may last while slow ones hold most slots.
pub const CUT_SHORT_AFTER: Duration = Duration::from_secs(5);
const FAST_WHOLE: u32 = 1 << 24;
/// The initial value: so low that a slow path is soon known.
const FAST_AT_FIRST: u32 = FAST_WHOLE / 8;
/// The last 256 fetches count.
const FAST_SHIFT: u32 = 8;
/// One in this many must be fast for others to be cut short.
const FAST_PARTS: u32 = 32;

#[cfg(test)]
mod tests;
