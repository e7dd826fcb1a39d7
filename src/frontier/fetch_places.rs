//! Places for fetches, and who may have the next: of a site, and of all that are slow.
//!
//! Decides: a site may hold three times as many places as are free ([`SiteShares`]), and so may all slow sites together. A
//! fetch is slow when it has lasted [`SLOW_AFTER`]; a site is slow from then on until some of its fetches were not. What a
//! fetch in flight would make of its site's record counts at once, and is written when it ends: many may be in flight, and end
//! in any order. So
//! thousands of sites that drip leave a quarter of the places to those that answer. Which they are is known only when they
//! have held a place for a while: therefore, where slow fetches and sites that are not known hold more than half of all
//! places, a fetch of any other site than a slow one has [`HURRIED`] to come to its end instead of `fetch.deadline`. One that
//! needs more fails, which makes its site slow, and is tried again with all its time. So does one that had begun before, when
//! slow fetches hold three quarters of all places: sites that were fast may have become slow all at once. Where hardly any
//! site is fast, the way there is slow and not the sites, and nobody is hurried. What counts is the time until a response has
//! come: how long it waits for us afterwards is not the site's doing, unless it is one of too many that are dear to read.
//! Invariants: what is taken is given back, once; a place is slow once.
//! Leaves to others: what is remembered of a site ([`super::site_records`]).

use std::collections::VecDeque;
use std::collections::hash_map::Entry;

use super::site_records::{Record, SiteRecords};
use super::{SHARE_PLACES, TIMES_FREE};
use crate::by_number::ByNumber;
use crate::site_shares::SiteShares;
use crate::time::{Duration, Instant};
use crate::url::SiteKey;

/// The places of a shard.
#[derive(Debug)]
pub struct FetchPlaces {
    count_max: usize,
    shares: SiteShares,
    /// Fetches in flight, by their job.
    held: ByNumber<Place>,
    /// Those that were not slow when last looked, oldest first; with some that have ended.
    begun: VecDeque<(Instant, u64)>,
    /// Those that have become slow meanwhile, oldest first; with some that have ended.
    lasting: VecDeque<(Instant, u64)>,
    slow: usize,
    /// Those of them that were told to end.
    told: usize,
    /// Those that are slow or of a site that is not known.
    doubtful: usize,
    records: SiteRecords,
    /// How many fetches of a site are lasting.
    lasting_of: ByNumber<u32, SiteKey>,
    /// How many of the last fetches were fast, of sites that were not slow before: in parts of [`FAST_WHOLE`].
    fast: u32,
}

#[derive(Debug)]
struct Place {
    site: SiteKey,
    since: Instant,
    is_slow: bool,
    /// It has become slow and is still in flight.
    is_lasting: bool,
    /// Of its site, when it began.
    before: Record,
    /// How long it was until the response had come, or would not.
    lasted: Option<Duration>,
    /// It was told to end.
    is_told: bool,
}

/// What is known of a site at an address for which another one waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Awaited {
    /// As far as is known nobody was slow there, or this site was fast there.
    AsKnown,
    /// Others were slow there, and this site was not fast there often since.
    AsStranger,
}

/// How a fetch was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// It did not take long.
    Fast,
    /// It took so long.
    Slow(Duration),
}

impl FetchPlaces {
    /// `count_max` places, all free.
    pub fn new(count_max: usize) -> FetchPlaces {
        FetchPlaces {
            count_max,
            shares: SiteShares::new(SHARE_PLACES, TIMES_FREE),
            held: ByNumber::default(),
            begun: VecDeque::new(),
            lasting: VecDeque::new(),
            slow: 0,
            told: 0,
            doubtful: 0,
            records: SiteRecords::new(),
            lasting_of: ByNumber::default(),
            fast: FAST_AT_FIRST,
        }
    }

    /// Whether `site` may have a place.
    pub fn may_take(&self, site: SiteKey) -> bool {
        self.shares.may_take(site, self.free())
    }

    /// Whether any slow site may have one, when so many are kept for others of them.
    pub fn may_slow_take(&self, kept: usize) -> bool {
        ((self.slow + kept) as u64) < TIMES_FREE * self.free().saturating_sub(kept as u64)
    }

    /// Whether the fetches of `site` were slow lately.
    pub fn is_slow(&self, site: SiteKey) -> bool {
        matches!(self.record(site), Record::Slow { .. })
    }

    /// Whether the fetches of `site` were fast lately.
    #[cfg(test)]
    fn is_fast(&self, site: SiteKey) -> bool {
        matches!(self.record(site), Record::Fast { .. })
    }

    /// How long a fetch of `site` that begins now may last, of `deadline` at most; another site may wait for its address.
    pub fn deadline(&self, site: SiteKey, deadline: Duration, awaited: Option<Awaited>) -> Duration {
        let is_crowded = self.doubtful * 2 > self.count_max;
        let is_hurried = match self.record(site) {
            Record::Slow { .. } => false,
            Record::Unknown => is_crowded || awaited.is_some(),
            Record::Fast { .. } => is_crowded || awaited == Some(Awaited::AsStranger),
        };
        if is_hurried && self.is_way_fast() { deadline.min(HURRIED) } else { deadline }
    }

    /// A fetch that has to end, for others: it has lasted as long as one that is hurried.
    pub fn late(&mut self, now: Instant) -> Option<u64> {
        self.look(now);
        while let Some((since, id)) = self.lasting.front().copied() {
            if self.held.get(&id).is_some_and(|place| place.lasted.is_none())
                && !(self.is_blocked() && now.since(since) >= HURRIED)
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

    /// When to look for one that is late, while hardly any place is free.
    pub fn next_late(&self) -> Option<Instant> {
        if self.held.len() * 4 <= self.count_max * 3 {
            return None;
        }
        let late = self.lasting.front().filter(|_| self.is_blocked()).map(|(since, _)| *since + HURRIED);
        self.begun.front().map(|(since, _)| *since + SLOW_AFTER).into_iter().chain(late).min()
    }

    /// Whether slow fetches leave too little to others.
    fn is_blocked(&self) -> bool {
        (self.slow - self.told) * 4 > self.count_max * 3 && self.is_way_fast()
    }

    fn is_way_fast(&self) -> bool {
        self.fast > FAST_WHOLE / FAST_PARTS
    }

    /// What is remembered of `site`, as if those of its fetches that last had ended.
    fn record(&self, site: SiteKey) -> Record {
        let lasting = self.lasting_of.get(&site).copied().unwrap_or(0);
        // The first may be forgiven; from the second on nothing changes.
        (0..lasting.min(2)).fold(self.records.of(site), |record, _| record.slow())
    }

    /// Job `id` of `site` takes a place.
    pub fn took(&mut self, now: Instant, id: u64, site: SiteKey) {
        let before = self.record(site);
        let is_slow = matches!(before, Record::Slow { .. });
        self.slow += usize::from(is_slow);
        self.doubtful += usize::from(!matches!(before, Record::Fast { .. }));
        self.shares.took(site);
        self.held
            .insert(id, Place { site, since: now, is_slow, is_lasting: false, before, lasted: None, is_told: false });
        if !is_slow {
            self.begun.push_back((now, id));
        }
    }

    /// What job `id` fetches has come, or will not; its place is still taken. Where the hands have `measured` how long it was,
    /// that counts: `now` is later while the shard is busy.
    pub fn came(&mut self, now: Instant, id: u64, measured: Option<Duration>) {
        let Some(mut place) = self.held.remove(&id) else { return };
        self.conclude(now, &mut place, measured);
        self.held.insert(id, place);
    }

    /// Job `id` found nobody who listens, or we had no memory for what it brought. That says nothing of a site whose pages
    /// come from elsewhere: a link may name any port.
    pub fn came_to_nobody(&mut self, now: Instant, id: u64) {
        let Some(mut place) = self.held.remove(&id) else { return };
        place.lasted.get_or_insert(now.since(place.since));
        self.lasts_no_more(&mut place);
        self.held.insert(id, place);
    }

    /// Whether it had become slow.
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

    /// The response has come, or will not.
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
        // Then it was the shard that was slow.
        if self.lasts_no_more(place) && is_fast {
            self.slow -= 1;
            self.told -= usize::from(std::mem::take(&mut place.is_told));
            place.is_slow = false;
            self.doubtful -= usize::from(!place.is_doubtful());
        }
        let record = self.records.of(place.site);
        self.records.set(place.site, if is_fast { record.fast() } else { record.slow() });
    }

    /// What job `id` brought waits to be read, behind many others if the row `is_long`: then its place is as good as a slow
    /// one's. Whether its site was slow before.
    pub fn waits(&mut self, id: u64, is_long: bool) -> bool {
        let Some(site) = self.held.get(&id).map(|place| place.site) else { return false };
        let was_slow = self.is_slow(site);
        if let Some(place) = self.held.get_mut(&id).filter(|_| is_long) {
            self.doubtful += usize::from(!place.is_doubtful());
            self.slow += usize::from(!place.is_slow);
            place.is_slow = true;
            self.records.set(site, self.records.of(site).slow());
        }
        was_slow
    }

    /// Job `id` came to its end and gives its place back; `None`: it did when its end was held back.
    pub fn gave_back(&mut self, now: Instant, id: u64) -> Option<Turn> {
        let mut place = self.held.remove(&id)?;
        self.conclude(now, &mut place, None);
        self.slow -= usize::from(place.is_slow);
        self.told -= usize::from(place.is_told);
        self.doubtful -= usize::from(place.is_doubtful());
        self.shares.gave_back(place.site);
        let slow = place.lasted.filter(|lasted| *lasted >= SLOW_AFTER);
        Some(slow.map_or(Turn::Fast, Turn::Slow))
    }

    /// Looks which fetches have become slow.
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

/// A fetch that lasts as long is slow: most pages come within a few tenths of a second.
pub(super) const SLOW_AFTER: Duration = Duration::from_secs(2);
/// How long a new fetch has while slow ones hold most places.
const HURRIED: Duration = Duration::from_secs(5);
const FAST_WHOLE: u32 = 1 << 24;
/// At first: so few that a slow way is soon known.
const FAST_AT_FIRST: u32 = FAST_WHOLE / 8;
/// The last 256 fetches count.
const FAST_SHIFT: u32 = 8;
/// One in so many must be fast for others to be hurried.
const FAST_PARTS: u32 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn site(number: usize) -> SiteKey {
        SiteKey::of_host(7, &format!("s{number}.test"))
    }

    const DEADLINE: Duration = Duration::from_secs(60);

    /// A hundred places, taken in turns by sites that hold one for as long as they may and sites that hold it for a tenth of
    /// a second: turns of the others in each minute.
    fn turns(drippers: usize, others: usize) -> Vec<usize> {
        let mut places = FetchPlaces::new(100);
        let mixed = (0..others)
            .flat_map(|other| [drippers + other].into_iter().chain((0..drippers).skip(other).step_by(others)));
        let mut rows = [VecDeque::from_iter(mixed), VecDeque::new()];
        let mut ends: Vec<(Instant, u64, usize)> = Vec::new();
        let mut turns = vec![0; 5];
        let mut id = 0;
        for tick in 0..3_000 {
            let now = Instant::ZERO + Duration::from_millis(100 * tick as u64);
            places.look(now);
            ends.retain(|(end, id, number)| {
                if *end <= now {
                    places.gave_back(now, *id);
                    rows[usize::from(places.is_slow(site(*number)))].push_back(*number);
                }
                *end > now
            });
            while places.free() > 0 {
                let slow = if places.may_slow_take(0) { 1 } else { 0 };
                let Some(number) = rows[0].pop_front().or_else(|| rows[slow].pop_front()) else { break };
                id += 1;
                let lasts = match number < drippers {
                    true => places.deadline(site(number), DEADLINE, None),
                    false => Duration::from_millis(100),
                };
                turns[tick / 600] += usize::from(number >= drippers);
                places.took(now, id, site(number));
                ends.push((now + lasts, id, number));
            }
        }
        turns
    }

    /// As above, with a second between two turns of a site; attackers are slow whenever they are taken for fast.
    fn turns_beside_sly_ones(sly: usize, others: usize) -> usize {
        let mut places = FetchPlaces::new(100);
        let mut rows: [VecDeque<(Instant, usize)>; 2] =
            [(0..sly + others).map(|number| (Instant::ZERO, number)).collect(), VecDeque::new()];
        let mut ends: Vec<(Instant, u64, usize)> = Vec::new();
        let (mut turns, mut id) = (0, 0);
        for tick in 0..6_000 {
            let now = Instant::ZERO + Duration::from_millis(100 * tick);
            places.look(now);
            ends.retain(|(end, id, number)| {
                if *end <= now {
                    places.gave_back(now, *id);
                    let row = usize::from(places.is_slow(site(*number)));
                    rows[row].push_back((now + Duration::from_secs(1), *number));
                }
                *end > now
            });
            while places.free() > 0 {
                let mut pop = |row: usize| {
                    let ready = rows[row].iter().position(|(at, _)| *at <= now)?;
                    rows[row].remove(ready)
                };
                let next = pop(0).or_else(|| if places.may_slow_take(0) { pop(1) } else { None });
                let Some((_, number)) = next else { break };
                id += 1;
                let is_slow = number < sly && !places.is_slow(site(number));
                let lasts =
                    if is_slow { places.deadline(site(number), DEADLINE, None) } else { Duration::from_millis(100) };
                turns += usize::from(number >= sly && tick >= 3_000);
                places.took(now, id, site(number));
                ends.push((now + lasts, id, number));
            }
        }
        turns
    }

    #[test]
    fn who_is_fast_only_to_be_slow_again_gains_little() {
        let [alone, beside] = [0, 300].map(|sly| turns_beside_sly_ones(sly, 100));
        assert!(beside * 10 >= alone * 7, "{beside} of {alone}");
    }

    #[test]
    fn sites_that_drip_leave_places_to_those_that_answer() {
        // A hundred sites alone have a thousand turns a second; a thousand others are known after two minutes.
        let [alone, beside] = [0, 1_000].map(|drippers| turns(drippers, 100));
        assert!(beside[3] * 100 >= alone[3] * 20 && beside[4] * 100 >= alone[4] * 20, "{beside:?} of {alone:?}");
        assert!(beside[0] > 0 && beside[1] >= 100, "{beside:?}");
    }

    #[test]
    fn a_site_is_slow_until_it_was_fast_often_enough() {
        let mut places = FetchPlaces::new(4);
        places.took(Instant::ZERO, 1, site(1));
        places.look(Instant::ZERO + Duration::from_millis(1_999));
        assert!(!places.is_slow(site(1)) && places.slow == 0);
        places.look(Instant::ZERO + SLOW_AFTER);
        assert!(places.is_slow(site(1)) && places.slow == 1);
        places.gave_back(Instant::ZERO + SLOW_AFTER, 1);
        let mut fetch = |id, lasts| {
            places.took(Instant::ZERO, id, site(1));
            places.gave_back(Instant::ZERO + lasts, id);
            (places.is_slow(site(1)), places.slow)
        };
        assert_eq!(fetch(2, Duration::ZERO), (false, 0));
        assert_eq!(fetch(3, SLOW_AFTER), (true, 0));
        assert_eq!([4, 5].map(|id| fetch(id, Duration::ZERO)), [(true, 0), (false, 0)]);
        assert!(!places.is_slow(site(2)));
    }

    #[test]
    fn what_waits_for_us_is_not_slow() {
        let mut places = FetchPlaces::new(4);
        places.took(Instant::ZERO, 1, site(1));
        places.came(Instant::ZERO + Duration::from_millis(100), 1, None);
        places.look(Instant::ZERO + Duration::from_secs(60));
        places.gave_back(Instant::ZERO + Duration::from_secs(60), 1);
        assert_eq!(
            (places.record(site(1)), places.slow, places.doubtful),
            (Record::Fast { count: 1, relapses: 0 }, 0, 0)
        );
    }

    #[test]
    fn neither_a_busy_shard_nor_a_port_where_nobody_listens_makes_a_site_slow() {
        let mut places = FetchPlaces::new(4);
        let end = Instant::ZERO + Duration::from_secs(10);
        places.took(Instant::ZERO, 1, site(1));
        places.look(end);
        assert!(places.is_slow(site(1)) && places.slow == 1);
        places.came(end, 1, Some(Duration::from_millis(100)));
        assert_eq!((places.is_fast(site(1)), places.slow, places.doubtful), (true, 0, 1));
        assert_eq!([0; 2].map(|_| places.gave_back(end, 1)), [Some(Turn::Fast), None]);
        places.took(Instant::ZERO, 2, site(1));
        places.look(end);
        assert!(places.is_slow(site(1)));
        places.came_to_nobody(end, 2);
        assert!(places.is_fast(site(1)));
        assert_eq!(
            places.gave_back(end, 2),
            Some(Turn::Slow(Duration::from_secs(10))),
            "its turn was slow all the same"
        );
        assert_eq!((places.slow, places.doubtful), (0, 0));
        // One slow fetch among many is forgiven, two are not.
        for id in 10..30 {
            places.took(Instant::ZERO, id, site(1));
            places.gave_back(Instant::ZERO, id);
        }
        for (id, is_slow) in [(40, false), (41, true)] {
            places.took(Instant::ZERO, id, site(1));
            places.look(end);
            places.gave_back(end, id);
            assert_eq!(places.is_slow(site(1)), is_slow);
        }
    }

    /// One drips, and another finds nobody: whichever ends first, what is remembered is that one was slow.
    #[test]
    fn a_fetch_that_found_nobody_changes_nothing_that_others_say() {
        let at = |secs| Instant::ZERO + Duration::from_secs(secs);
        for before in [0, 1, 30] {
            for is_first in [false, true] {
                let mut places = FetchPlaces::new(4);
                for id in 10..10 + before {
                    places.took(at(0), id, site(1));
                    places.gave_back(at(0), id);
                }
                let once = places.records.of(site(1)).slow();
                let (drips, nobody) = if is_first { (1, 2) } else { (2, 1) };
                (1..3).for_each(|id| places.took(at(0), id, site(1)));
                places.look(at(2));
                assert!(places.is_slow(site(1)));
                places.came_to_nobody(at(10), nobody);
                places.gave_back(at(10), nobody);
                places.gave_back(at(60), drips);
                assert_eq!((places.records.of(site(1)), places.lasting_of.len()), (once, 0));
                // And fast ones meanwhile count.
                places.took(at(60), 3, site(1));
                places.look(at(62));
                let honest = places.records.of(site(1));
                places.took(at(62), 4, site(1));
                places.gave_back(at(62), 4);
                places.came_to_nobody(at(70), 3);
                places.gave_back(at(70), 3);
                assert_eq!(places.record(site(1)), honest.fast());
            }
        }
    }

    #[test]
    fn sites_that_become_slow_all_at_once_have_to_end() {
        let mut places = FetchPlaces::new(100);
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        for id in 0..1_000 {
            places.took(at(0), id, site(id as usize % 100));
            places.gave_back(at(0), id);
        }
        (1_000..1_100).for_each(|id| places.took(at(0), id, site(id as usize % 100)));
        assert_eq!((places.late(at(1_999)), places.next_late()), (None, Some(at(2_000))));
        assert_eq!((places.late(at(2_000)), places.next_late()), (None, Some(at(5_000))));
        // One of them has come, and waits for us.
        places.came(at(4_999), 1_007, None);
        let late: Vec<u64> = std::iter::from_fn(|| places.late(at(5_000))).collect();
        assert_eq!(late, [(1_000..1_007).collect(), (1_008..1_026).collect::<Vec<u64>>()].concat(), "a quarter");
        late.iter().for_each(|id| {
            places.gave_back(at(5_000), *id);
        });
        // They are slow, and have all their time now.
        assert_eq!((places.late(at(60_000)), places.deadline(site(0), DEADLINE, None)), (None, DEADLINE));
        assert!(!places.may_slow_take(0));
    }

    #[test]
    fn one_of_too_many_that_are_dear_to_read_is_slow() {
        let mut places = FetchPlaces::new(4);
        for id in 0..4 {
            places.took(Instant::ZERO, id, site(1));
            places.came(Instant::ZERO, id, None);
        }
        assert_eq!([false, true, true].map(|is_long| places.waits(3, is_long)), [false, false, true]);
        assert_eq!((places.is_slow(site(1)), places.slow, places.doubtful), (true, 1, 2));
        (0..4).for_each(|id| {
            places.gave_back(Instant::ZERO, id);
        });
        assert_eq!((places.is_slow(site(1)), places.slow, places.doubtful), (true, 0, 0));
    }

    #[test]
    fn who_is_not_known_is_hurried_only_where_others_are_fast() {
        let mut places = FetchPlaces::new(4);
        let end = Instant::ZERO + SLOW_AFTER;
        places.took(Instant::ZERO, 9, site(9));
        places.gave_back(Instant::ZERO, 9);
        (0..2).for_each(|id| places.took(Instant::ZERO, id, site(id as usize)));
        assert_eq!(places.deadline(site(3), DEADLINE, None), DEADLINE);
        places.took(Instant::ZERO, 2, site(2));
        assert_eq!([3, 9].map(|number| places.deadline(site(number), DEADLINE, None)), [HURRIED, HURRIED]);
        assert!(places.may_slow_take(0));
        places.look(end);
        assert!(!places.may_slow_take(0) && places.is_slow(site(0)), "one place is free, and three are slow");
        assert_eq!(places.deadline(site(0), DEADLINE, None), DEADLINE, "it failed, and has all its time");
        for id in 10..2_000 {
            places.took(Instant::ZERO, id, site(id as usize));
            places.gave_back(end, id);
        }
        assert_eq!(places.deadline(site(3), DEADLINE, None), DEADLINE, "all are slow");
        (0..3).for_each(|id| {
            places.gave_back(end, id);
        });
        assert!(places.held.is_empty() && (places.slow, places.doubtful, places.free()) == (0, 0, 4));
    }
}
