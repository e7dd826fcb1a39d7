//! What pages of hosts were worth ([`crate::traps`]), and which URLs wait behind all others for it.
//!
//! Decides: a URL is looked at when it comes and when its turn has come, as its host may have taught something in between. One that
//! is poor is deferred ([`super::deferred`]), behind those that their pages advise against alone, but for seeds: somebody wants
//! them. It is not looked at again.
//! Embeds are left out: an image has no text or links, and tells nothing about pages with URLs like its own.
//! While waiting URLs have no room in memory, one whose turn has come is fetched, whatever it is like: to defer it would write it to
//! disk again, and strangers could make twice as much of their links.
//! Invariants: `bytes` is what is held for all hosts; it comes off where it is freed.
//! Limits: `traps.ram_bytes_max`; of hosts beyond it nothing is known. What is known goes with its host's place in memory.

use std::cell::Cell;
use std::rc::Rc;

use super::Frontier;
use super::backlog::{Band, QueuedUrl};
use super::deferred::is_deferred;
use super::waiting::Ticket;
use crate::hops::Hops;
use crate::outcome::{FetchJob, Fetched, HostId, Outcome};
use crate::politeness::is_overload;
use crate::spool::Spool;
use crate::time::Instant;
use crate::traps::{self, HostYield};
use crate::url::Url;

/// What is held for all hosts of a shard.
#[derive(Debug, Default)]
pub struct Yields {
    bytes: Rc<Cell<u64>>,
    /// URLs that were deferred.
    deferred: u64,
}

/// What is known of a host's pages, counted as memory until it is dropped.
#[derive(Debug)]
pub struct CountedYield {
    pages: HostYield,
    counted: u64,
    bytes: Rc<Cell<u64>>,
}

impl CountedYield {
    fn new(bytes: &Rc<Cell<u64>>) -> CountedYield {
        let mut new = CountedYield { pages: HostYield::new(), counted: 0, bytes: Rc::clone(bytes) };
        new.count();
        new
    }

    fn note(&mut self, job: &FetchJob, fetched: &Fetched) {
        self.pages.note(&job.url, fetched, job.is_examined);
        self.count();
    }

    /// A new URL of the host was found; whether pages like it are poor.
    fn found(&mut self, url: &Url) -> bool {
        let is_poor = self.pages.found(url);
        self.count();
        is_poor
    }

    fn count(&mut self) {
        let now = self.pages.ram_bytes() as u64;
        self.bytes.set(self.bytes.get() - self.counted + now);
        self.counted = now;
    }
}

impl std::ops::Deref for CountedYield {
    type Target = HostYield;

    fn deref(&self) -> &HostYield {
        &self.pages
    }
}

impl Drop for CountedYield {
    fn drop(&mut self) {
        self.bytes.set(self.bytes.get() - self.counted);
    }
}

impl Frontier {
    /// In which queue of host `id`, if that is in memory, a URL waits, and with which ticket.
    pub(super) fn band_of(&mut self, id: Option<HostId>, url: &Url, ticket: Ticket) -> (Band, Ticket) {
        let is_poor = match id {
            _ if !self.settings.detects_traps || is_embed(ticket.depth) => false,
            Some(id) if self.found_one_more(id, url) => !is_seed(ticket),
            _ => !is_seed(ticket) && traps::is_repetitive(url.path_and_query()),
        };
        match is_poor {
            true => {
                self.yields.deferred += 1;
                (Band::Poor, ticket.deferred())
            }
            false if is_deferred(ticket.depth) => (Band::Deferred, ticket),
            false => (Band::Usual, ticket),
        }
    }

    /// A URL of a host was found that is new; whether pages like it are poor.
    fn found_one_more(&mut self, id: HostId, url: &Url) -> bool {
        let Some(pages) = &mut self.hosts[id].pages else { return false };
        let is_poor = pages.found(url);
        self.keep_yields_within_bound(id);
        is_poor
    }

    /// What the URLs are that are offered next: the links of `job`'s page.
    pub fn begin_links(&mut self, job: &FetchJob) {
        if let Some(pages) = self.hosts.get_mut(job.host).and_then(|host| host.pages.as_mut()) {
            pages.pages.begin_links();
        }
    }

    /// It grows with what is known of `id`, and strangers could have a million hosts of it.
    fn keep_yields_within_bound(&mut self, id: HostId) {
        if self.yields.bytes.get() > self.settings.traps_bytes_max {
            let host = &mut self.hosts[id];
            (host.pages, host.pages_had) = (None, 0);
        }
    }

    /// Whether a URL whose turn has come may be sent behind all others.
    pub(super) fn may_defer(&self, entry: &QueuedUrl) -> bool {
        self.memory.has_room() && entry.band != Band::Poor && entry.attempt == 0 && !is_seed(entry.ticket)
    }

    /// Whether it is to wait there as pages like it are poor.
    pub(super) fn is_poor(&mut self, id: HostId, entry: &QueuedUrl) -> bool {
        let is_poor = self.may_defer(entry)
            && !is_embed(entry.ticket.depth)
            && self.hosts[id].pages.as_ref().is_some_and(|pages| pages.is_poor(&entry.url));
        self.yields.deferred += u64::from(is_poor);
        is_poor
    }

    /// Sends a URL behind others.
    pub(super) fn defer_url(&mut self, id: HostId, entry: QueuedUrl, behind: Band, now: Instant, spool: &mut Spool) {
        self.work.spend(DEFER_WORK);
        let was_deferred = is_deferred(entry.ticket.depth);
        let ticket = entry.ticket.deferred();
        if was_deferred {
            // It was counted as begun when it was taken.
            self.deferred.is_back(entry.is_early);
        } else {
            self.deferred.came(now, ticket);
        }
        self.queue(now, id, &entry.url, behind, ticket, spool);
    }

    /// A page was fetched, or was not to be had.
    pub(super) fn note_yield(&mut self, job: &FetchJob, outcome: &Outcome) {
        let Outcome::Fetched(fetched) = outcome else { return };
        let says_nothing = is_embed(job.depth) || is_overload(fetched.status) || fetched.wall.is_some();
        if !self.settings.detects_traps || says_nothing {
            return;
        }
        let host = &mut self.hosts[job.host];
        if let Some(pages) = &mut host.pages {
            pages.note(job, fetched);
            self.keep_yields_within_bound(job.host);
            return;
        }
        host.pages_had += 1;
        let has_room = self.yields.bytes.get() + traps::HOST_BYTES_MIN as u64 <= self.settings.traps_bytes_max;
        if host.pages_had >= traps::FREE_PAGES && has_room {
            host.pages = Some(Box::new(CountedYield::new(&self.yields.bytes)));
        }
    }

    /// Bytes of what is known of hosts' pages.
    pub fn yield_bytes(&self) -> u64 {
        self.yields.bytes.get()
    }

    /// URLs that were deferred because pages like theirs were not worth their fetch.
    pub fn poor_urls(&self) -> u64 {
        self.yields.deferred
    }
}

/// Whether a URL is a seed, or what one redirects to.
pub fn is_seed(ticket: Ticket) -> bool {
    Hops::from_bits(ticket.depth).is_seed()
}

/// Whether a page embeds the URL with these bits of `Hops`.
pub(super) fn is_embed(depth: u16) -> bool {
    Hops::from_bits(depth).is_embed()
}

/// To put a URL behind the others: some two microseconds.
const DEFER_WORK: u64 = 4_096;
