//! The rests of kinds of URLs that complain or fail while their host's other kinds do not.
//!
//! Decides: a kind of URLs speaks only for itself if other kinds were answered well since it complained last: anyone
//! may link to a broken script forty times. It then rests alone, longer each time. It speaks for the host as soon as
//! another kind has complained lately, too (one that was answered well before, if this one was). It also does as soon
//! as some of its URLs, or of a kind that complained shortly before, were answered well between two complaints: a
//! limiter lets some of each kind through, and an overloaded server nothing.
//! One script can have any number of names. So kinds that were never answered well are in *doubt* together after one
//! of them has complained or failed: they get a tenth of the host's time while others wait. Those that only strangers
//! link to are apart from the host's own.
//! A kind whose last complaint was charged to its host is in doubt as well, and yields to others.
//! After [`BROKEN_FROM`] complaints while other kinds are answered, URLs of a kind that never was get one try each;
//! those that only strangers link to
//! after ten minutes of complaints, those of the host's own pages after two hours. A kind that has only complained for six hours is
//! given up for a while, so that a crawl ends.
//! Invariants: pure; a Retry-After always applies to the host or the origin; no doubt holds a URL up where nothing
//! else waits, or not among the next [`PUT_OFF_MAX`].
//! Limits: [`KINDS_MAX`] kinds that complained are known; beyond that, the one whose rest ends first is forgotten.
//! [`FINE_MAX`] kinds are known to have been answered well; a forgotten one is like one that never was. Strangers'
//! links are not known for URLs that an earlier run found, nor for hosts on several shards.

use super::pace::STORM_MAX;
use super::streak::GIVEN_UP_FOR;
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_config::Politeness;

/// The kinds of a host's URLs that were answered well, as hashes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FineKinds(Vec<u32>);

/// A URL's kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KindOfUrl {
    /// A hash of the kind; a different one for URLs that only strangers link to.
    pub kind: u32,
    /// Only other sites link to it.
    pub is_strangers: bool,
}

/// What is known about the kinds of a host that have complained.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KindRest {
    complained: Vec<Complained>,
    /// URLs that were answered well.
    well: u32,
    /// The number of URLs answered well at the last complaint or failure.
    bad_at: Option<u32>,
    /// The last complaining or failing kind among those that were never answered well, and the number of URLs
    /// answered well by then.
    of_unknown: Option<(u32, u32)>,
    /// The last complaining kind among those that were answered well before, and the number of URLs answered well by
    /// then.
    of_fine: Option<(u32, u32)>,
    /// The last kind to be answered well after a complaint, and the number of URLs answered well by then.
    mended: Option<(u32, u32)>,
    /// Until when kinds in doubt rest while others wait.
    doubt_until: [Instant; 3],
    /// The last response was a complaint, or none came: other URLs are tried before that one is retried.
    others_first: bool,
    /// Hashes of the URLs that complained last, the latest first; 0: none.
    urls: [u32; URLS],
    lap: Lap,
    /// URLs that were put off since the last request.
    put_off: u32,
}

/// A scan of the URLs that were put off with their kinds: some of them after each end of a rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Lap {
    /// When the next rest ends.
    next: Instant,
    /// The number that were put off again.
    put_off: u32,
}

/// A kind that complained.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Complained {
    /// A hash of the kind.
    kind: u32,
    /// Complaints while others were answered well, since one of its own was.
    own: u32,
    /// The first of these.
    since: Instant,
    /// The number of URLs of other kinds that were answered well by its last complaint, plus all of its own.
    well: u32,
    /// One of its own was answered well since.
    is_mended: bool,
    /// It was answered well before, and its last complaint was charged to its host.
    is_in_doubt: bool,
    until: Instant,
    /// Until when all its URLs end without a request.
    given_up_until: Instant,
}

impl FineKinds {
    /// A URL of this kind was answered well. A URL that only strangers link to displaces no other.
    pub fn note(&mut self, of: KindOfUrl) {
        if self.has(of.kind) {
            return;
        }
        if self.0.len() < FINE_MAX {
            self.0.push(of.kind);
        } else if let Some(place) = self.0.get_mut(of.kind as usize % FINE_MAX).filter(|_| !of.is_strangers) {
            *place = of.kind;
        }
    }

    /// Whether one is known to have been answered well.
    pub fn has(&self, kind: u32) -> bool {
        self.0.contains(&kind)
    }

    /// Whether a kind other than `kind` is known.
    fn has_another(&self, kind: u32) -> bool {
        self.0.iter().any(|known| *known != kind)
    }

    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl KindRest {
    /// A URL of this kind was answered well; `None` if that says nothing about its kind.
    pub fn is_fine(&mut self, kind: Option<u32>) {
        (self.others_first, self.put_off) = (false, 0);
        self.well = self.well.wrapping_add(1);
        let well = self.well.wrapping_add(1);
        let Some(kind) = kind else { return };
        let Some(known) = self.complained.iter_mut().find(|known| known.kind == kind) else { return };
        if !known.is_mended {
            self.mended = Some((kind, self.well));
        }
        // URLs that wait for it are scanned now.
        if known.until > Instant::ZERO || known.is_in_doubt {
            self.lap.next = Instant::ZERO;
        }
        *known = Complained { kind, well, is_mended: true, ..Complained::default() };
    }

    /// The URL with this hash complained. Returns whether it is known to have done so before.
    pub fn url_complained(&mut self, url: u32) -> bool {
        self.others_first = true;
        // The entries before it move on by one place, and it comes first.
        let mut moved = url;
        for known in &mut self.urls {
            std::mem::swap(known, &mut moved);
            if moved == url {
                return true;
            }
        }
        false
    }

    /// Whether other URLs must be tried before a failed one is retried.
    pub fn others_first(&self) -> bool {
        self.others_first
    }

    /// A URL of this kind complained without naming a time, or got no answer and `failed` after this long. Returns
    /// whether the complaint is the kind's own, and not its host's.
    pub fn complained(
        &mut self,
        now: Instant,
        (kind, fine): (u32, &FineKinds),
        failed: Option<Duration>,
        politeness: &Politeness,
    ) -> bool {
        (self.others_first, self.put_off) = (true, 0);
        let (was_fine, well) = (fine.has(kind), self.well);
        let has_lately =
            |last: Option<(u32, u32)>, most| last.is_some_and(|(of, at)| of != kind && well.wrapping_sub(at) <= most);
        let has_another = has_lately(if was_fine { self.of_fine } else { self.of_unknown }, LATELY);
        let has_another_mended = has_lately(self.mended, MENDED_LATELY);
        let known = self.complained.iter().position(|known| known.kind == kind);
        let at = known.unwrap_or_else(|| self.admit(kind));
        let Some(this) = self.complained.get_mut(at) else { return false };
        // An overloaded server has answered nothing since.
        let others_are_fine = fine.has_another(kind)
            && match known {
                Some(_) => this.well != well,
                None => self.bad_at != Some(well),
            };
        // A limiter lets some through.
        let is_limited = this.is_mended || has_another_mended;
        self.bad_at = Some(well);
        // What never worked may fail as often as it likes.
        let is_own = others_are_fine && (!is_limited && !has_another || !was_fine && failed.is_some());
        (this.well, this.is_mended, this.is_in_doubt) = (well, false, was_fine && !is_own);
        if others_are_fine && (is_own || !was_fine) {
            this.own = this.own.saturating_add(1);
            this.since = if this.own == 1 { now } else { this.since };
            if this.own >= BROKEN_FROM && now.since(this.since) >= STORM_MAX {
                this.given_up_until = now + GIVEN_UP_FOR;
            }
        }
        if this.own > 0 && (is_own || !was_fine) {
            let doublings =
                if was_fine { (this.own - 1).min(DOUBLINGS_MAX) } else { this.own.min(UNKNOWN_DOUBLINGS_MAX) };
            let doubled = politeness.retry_delay * (1 << doublings);
            this.until = match failed {
                // A single dropped response does not predict the next one.
                Some(took) if was_fine && this.own == 1 => now + took * FAILED_REST_FACTOR,
                _ => now + doubled.min(politeness.backoff_max.max(politeness.retry_delay)),
            };
            self.lap.next = self.lap.next.min(this.until);
        }
        match was_fine {
            true => self.of_fine = Some((kind, well)),
            false => self.of_unknown = Some((kind, well)),
        }
        is_own
    }

    /// A complaint of a URL of this kind has cost its host `cost`, and the host now rests until `rests_until`. Kinds
    /// that were never answered well, and kinds that speak for their host, rest longer while others wait.
    pub fn doubt(&mut self, rests_until: Instant, of: KindOfUrl, fine: &FineKinds, cost: Duration) {
        let until = rests_until + (cost * DOUBT_FACTOR).min(DOUBT_MAX);
        let known = self.complained.iter_mut().find(|known| known.kind == of.kind);
        let place = match fine.has(of.kind) {
            true => {
                known.into_iter().for_each(|known| known.is_in_doubt = true);
                OF_FINE
            }
            false => usize::from(of.is_strangers),
        };
        self.doubt_until.get_mut(place).into_iter().for_each(|of_these| *of_these = until.max(*of_these));
        self.lap.next = self.lap.next.min(until);
    }

    /// A place for a kind with its first known complaint.
    fn admit(&mut self, kind: u32) -> usize {
        let new = Complained { kind, well: self.well, ..Complained::default() };
        if self.complained.len() < KINDS_MAX {
            self.complained.push(new);
            return self.complained.len() - 1;
        }
        let first = self.complained.iter().enumerate().min_by_key(|(_, known)| known.until);
        let at = first.map_or(0, |(at, _)| at);
        self.complained.get_mut(at).into_iter().for_each(|place| *place = new);
        at
    }

    /// Whether URLs of this kind have been refused so often that another try of one is useless. Part of the host's
    /// own pages may be under maintenance, and the memory that it worked before may be gone.
    pub fn is_broken(&self, now: Instant, of: KindOfUrl, fine: &FineKinds) -> bool {
        let lasts_min = if of.is_strangers { RESTART_MAX } else { MAINTENANCE_MAX };
        let is_broken = |known: &Complained| known.own >= BROKEN_FROM && now.since(known.since) >= lasts_min;
        !fine.has(of.kind) && self.find(of.kind).is_some_and(is_broken)
    }

    /// Whether URLs of this kind end without a request.
    pub fn is_given_up(&self, now: Instant, kind: u32) -> bool {
        self.find(kind).is_some_and(|known| known.given_up_until > now)
    }

    /// When the next rest of a kind ends; `None`: none rests.
    pub fn next_end(&self, now: Instant) -> Option<Instant> {
        let ends = self.complained.iter().map(|known| known.until).chain(self.doubt_until);
        ends.filter(|end| *end > now).min()
    }

    /// Until when URLs of this kind rest; `None` if they do not.
    pub fn rests_until(&self, now: Instant, of: KindOfUrl, fine: &FineKinds) -> Option<Instant> {
        let known = self.find(of.kind);
        let place = match fine.has(of.kind) {
            true => known.filter(|known| known.is_in_doubt).map(|_| OF_FINE),
            false => Some(usize::from(of.is_strangers)),
        };
        let doubt_until = place.and_then(|place| self.doubt_until.get(place)).copied();
        known.map(|known| known.until).max(doubt_until).filter(|until| *until > now)
    }

    /// Until when this kind rests for its own complaints.
    pub fn alone_until(&self, now: Instant, kind: u32) -> Option<Instant> {
        self.find(kind).map(|known| known.until).filter(|until| *until > now)
    }

    /// Nothing else waits: doubt ends. Returns until when it would have lasted at the latest; `None` if there was
    /// none.
    pub fn end_doubt(&mut self, now: Instant) -> Option<Instant> {
        self.put_off = 0;
        let ended = std::mem::take(&mut self.doubt_until).into_iter().filter(|until| *until > now).max();
        ended.inspect(|_| self.lap.next = Instant::ZERO)
    }

    /// Whether the URLs that were put off without a time must wait: after each end of a rest they are scanned until
    /// [`LAP_MAX`] have been put off again.
    pub fn is_lap_over(&mut self, now: Instant) -> bool {
        let Some(next) = self.next_end(now) else {
            self.lap = Lap::default();
            return false;
        };
        if self.lap.next <= now {
            self.lap = Lap { next, put_off: 0 };
        }
        self.lap.put_off >= LAP_MAX
    }

    /// A URL is put off because its kind rests; `is_again` says that it was put off before.
    pub fn is_put_off(&mut self, is_again: bool) {
        self.put_off = self.put_off.saturating_add(1);
        self.lap.put_off = self.lap.put_off.saturating_add(u32::from(is_again));
    }

    /// Whether so many were put off that the search for others ends.
    pub fn are_many_put_off(&self) -> bool {
        self.put_off >= PUT_OFF_MAX
    }

    fn find(&self, kind: u32) -> Option<&Complained> {
        self.complained.iter().find(|known| known.kind == kind)
    }
}

/// The index of kinds in doubt that were answered well; before it come those of the host's own pages, and those of
/// strangers.
const OF_FINE: usize = 2;
/// Kinds in doubt get a tenth of the time.
const DOUBT_FACTOR: u32 = 9;
const DOUBT_MAX: Duration = Duration::from_secs(3_600);
/// A rest is doubled at most this often, so that a few URLs of a kind are tried while it is under maintenance.
const DOUBLINGS_MAX: u32 = 6;
/// The same for a kind that was never answered well: its URLs have few tries.
const UNKNOWN_DOUBLINGS_MAX: u32 = 3;
/// The first time a kind fails, it rests for this many times the wait for that failure.
const FAILED_REST_FACTOR: u32 = 3;
/// This many complaints are a kind's own.
const BROKEN_FROM: u32 = 8;
/// A server may take this long to start again.
const RESTART_MAX: Duration = Duration::from_secs(600);
/// A part that will work again may be broken for this long.
const MAINTENANCE_MAX: Duration = Duration::from_secs(2 * 3_600);
const KINDS_MAX: usize = 16;
const URLS: usize = 8;
/// This is a millisecond's work.
const LAP_MAX: u32 = 256;
/// A host may have a million URLs, all of kinds in doubt: each that is put off moves to another queue.
const PUT_OFF_MAX: u32 = 1_024;
/// A complaint is remembered until this many URLs were answered well.
const LATELY: u32 = 16;
/// How many URLs may be answered well between a limiter letting some of a kind through and it refusing another kind.
const MENDED_LATELY: u32 = 64;
/// Kinds of a host that are known to be answered well: 256 bytes.
const FINE_MAX: usize = 64;

#[cfg(test)]
mod tests;
