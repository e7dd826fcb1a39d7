//! The worth of hosts' pages ([`crate::kinds`]), and which URLs go to the lanes of their kinds because of it.
//!
//! Decides: a URL is judged once, when it is taken from its host's queue. Seeds are not judged: a user wants them.
//! Nor is what a page embeds: an image has no text or links, and says nothing about pages with URLs like its own.
//! A page that was found only through links of other sites is not evidence: strangers could make kinds of a host look
//! poor. The ticket records this.
//! Invariants: the bytes are the memory held for all hosts; they shrink where memory is freed.
//! Limits: `traps.ram_bytes_max`, and for a site three times as much as is free of it. Beyond either, ringcrawl learns
//! nothing about further hosts, and drops what it knows about a host that would grow beyond it.
//! What is known of a host leaves memory with the host.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::backlog::QueuedUrl;
use super::host::Standing;
use super::kind_lanes::Turn;
use super::waiting::Ticket;
use super::{Frontier, TIMES_FREE};
use crate::hops::Hops;
use crate::job::{FetchJob, HostId};
use crate::kinds::{self, HostKinds, Judgment, KindFacts};
use crate::outcome::{Fetched, Outcome};
use crate::politeness::is_overload;
use crate::site_shares::SiteShares;
use ringcrawl_base::RecentHashes;
use ringcrawl_url::{SiteKey, Url};
use xxhash_rust::xxh3::xxh3_64;

/// The evidence held for all hosts of a shard.
#[derive(Debug, Default)]
pub struct KindEvidence {
    memory: Rc<KindMemory>,
    /// The page whose links are being offered.
    finder: LinkSource,
    /// Stands for the sites of unknown pages.
    linker: SiteKey,
    /// URLs that wait in lanes.
    in_lanes: u64,
    /// URLs that went to lanes.
    lowered: u64,
    /// Hosts that answered an earlier run, some of them.
    answered_before: Option<RecentHashes>,
}

/// Bytes held for hosts, by site.
#[derive(Debug)]
struct KindMemory {
    bytes: Cell<u64>,
    /// In units of each host.
    shares: RefCell<SiteShares>,
}

impl Default for KindMemory {
    fn default() -> KindMemory {
        KindMemory { bytes: Cell::new(0), shares: RefCell::new(SiteShares::new(SHARE_PLACES, TIMES_FREE)) }
    }
}

impl KindMemory {
    /// Whether all hosts, and those of `site`, are within their memory of `bytes_max`, with `more` bytes.
    fn has_room(&self, site: SiteKey, more: u64, bytes_max: u64) -> bool {
        let free = bytes_max.checked_sub(self.bytes.get() + more);
        free.is_some_and(|free| self.shares.borrow().may_take(site, free.div_ceil(UNIT_BYTES)))
    }

    /// A host of `site` holds `after` bytes instead of `before`.
    fn changed(&self, site: SiteKey, before: u64, after: u64) {
        let units = |bytes: u64| u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX);
        self.bytes.set(self.bytes.get() - before + after);
        if units(before) != units(after) {
            self.shares.borrow_mut().changed(site, units(before), units(after));
        }
    }
}

/// The page whose links the offered URLs are.
#[derive(Clone, Debug, Default)]
enum LinkSource {
    /// Not known: a seed's, or those of an earlier run.
    #[default]
    Unknown,
    /// A page of this host, and its site, in an earlier run.
    Earlier(Box<str>, SiteKey),
    /// A host's page; whether it is examined.
    Page(HostId, bool),
    /// A page of another site.
    Stranger,
}

/// The evidence on a host's kinds, counted as memory until it is dropped.
#[derive(Debug)]
pub struct CountedKinds {
    kinds: HostKinds,
    counted: u64,
    site: SiteKey,
    memory: Rc<KindMemory>,
}

impl CountedKinds {
    /// For a host of `site` that had this many pages.
    fn new(pages: u32, site: SiteKey, memory: &Rc<KindMemory>) -> CountedKinds {
        let memory = Rc::clone(memory);
        let mut new = CountedKinds { kinds: HostKinds::new(pages), counted: 0, site, memory };
        new.count();
        new
    }

    fn note(&mut self, job: &FetchJob, fetched: &Fetched) {
        self.kinds.note(&job.url, fetched, job.is_examined);
        self.count();
    }

    fn count(&mut self) {
        let now = self.kinds.ram_bytes() as u64;
        self.memory.changed(self.site, self.counted, now);
        self.counted = now;
    }
}

impl std::ops::Deref for CountedKinds {
    type Target = HostKinds;

    fn deref(&self) -> &HostKinds {
        &self.kinds
    }
}

impl Drop for CountedKinds {
    fn drop(&mut self) {
        self.memory.changed(self.site, self.counted, 0);
    }
}

impl KindEvidence {
    /// A URL that was in no queue came to a lane.
    pub fn came_beside(&mut self) {
        self.in_lanes += 1;
    }

    /// A host answered an earlier run.
    pub fn was_answered(&mut self, host: &str) {
        self.answered_before.get_or_insert_default().note(xxh3_64(host.as_bytes()));
    }

    /// Whether a host answered an earlier run, if that is not forgotten.
    pub fn has_answered_before(&self, host: &str) -> bool {
        self.answered_before.as_ref().is_some_and(|hosts| hosts.holds(xxh3_64(host.as_bytes())))
    }
}

impl Frontier {
    /// The URLs offered until [`Frontier::end_links`] are the links of `job`'s response.
    pub fn begin_links(&mut self, job: &FetchJob) {
        self.evidence.finder = LinkSource::Page(job.host, job.is_examined);
        if job.is_examined
            && let Some(known) = self.hosts.get_mut(job.host).and_then(|host| host.kinds.as_mut())
        {
            known.kinds.begin_links(&job.url);
        }
    }

    /// The same for any page of a host.
    #[cfg(test)]
    pub(super) fn begin_links_of(&mut self, host: &str) {
        self.evidence.finder = self.hosts.find(host).map_or(LinkSource::Unknown, |id| LinkSource::Page(id, false));
    }

    /// The same for links that another shard found. If that shard may have pages of the same hosts, the page is
    /// unknown. Lookups of new names count for `linker`.
    pub fn begin_strangers_links(&mut self, linker: SiteKey) {
        self.evidence.linker = linker;
        self.evidence.finder = if self.settings.shares_hosts { LinkSource::Unknown } else { LinkSource::Stranger };
    }

    /// URLs offered from here on are not links of that page.
    pub fn end_links(&mut self) {
        self.evidence.linker = SiteKey::default();
        self.evidence.finder = LinkSource::Unknown;
    }

    /// The site that links to a URL of `site`, as far as known: seeds have no linking site.
    pub(super) fn linker_of(&self, site: SiteKey, ticket: Ticket) -> SiteKey {
        match self.evidence.finder {
            LinkSource::Page(page, _) => self.hosts[page].site,
            _ if is_seed(ticket) => site,
            LinkSource::Unknown | LinkSource::Earlier(..) | LinkSource::Stranger => self.evidence.linker,
        }
    }

    /// A new URL of `site` was offered; its ticket tells whether only strangers have linked to it.
    pub(super) fn found_by(&mut self, id: Option<HostId>, url: &Url, site: SiteKey, ticket: Ticket) -> Ticket {
        let is_strangers = match self.evidence.finder {
            LinkSource::Unknown | LinkSource::Earlier(..) => false,
            LinkSource::Page(page, is_examined) => {
                if let Some(known) = self.hosts[page].kinds.as_mut().filter(|_| is_examined && id == Some(page)) {
                    known.kinds.found(url);
                }
                self.hosts[page].site != site
            }
            LinkSource::Stranger => true,
        };
        Ticket { is_strangers: is_strangers && !is_seed(ticket), ..ticket }
    }

    /// Judges a URL of host `id` before it is fetched.
    pub(super) fn judge(&self, id: HostId, url: &Url, ticket: Ticket) -> Judgment {
        let is_advised_against = is_advised_against(ticket.depth);
        let judgment = match self.hosts[id].kinds.as_ref() {
            Some(known) => known.judge(url, is_advised_against),
            None => Judgment { lowered: is_advised_against.then_some(KindFacts::ADVISED_AGAINST), wants_look: false },
        };
        let of_strangers = self.waits_beside(id, ticket).then_some(KindFacts::OF_STRANGERS);
        Judgment {
            lowered: judgment.lowered.filter(|_| self.is_judged(ticket)).or(of_strangers),
            wants_look: judgment.wants_look && !ticket.is_strangers && !is_embed(ticket.depth),
        }
    }

    /// Whether a URL waits outside its host's queue because only strangers link to it: they may link to any amount of
    /// URLs of a host, and get one turn for four of its own.
    pub(super) fn waits_beside(&self, id: HostId, ticket: Ticket) -> bool {
        ticket.is_strangers && self.hosts[id].has_own_urls && !self.importance.has_levels()
    }

    /// What the URL offered to host `id` shows about how the host was found.
    pub(super) fn standing(&self, id: HostId, ticket: Ticket) -> Standing {
        let host = &self.hosts[id];
        let knows = |finder: &str, site| {
            let label = |name: &str| SiteKey::below_site(self.settings.rng_seed, name);
            site == host.site && label(finder) != label(&host.name)
        };
        let is_known = match &self.evidence.finder {
            _ if is_seed(ticket) => return Standing::Seed,
            _ if host.standing != Standing::Unknown => return host.standing,
            LinkSource::Page(page, _) => {
                let finder = &self.hosts[*page];
                finder.standing != Standing::Unknown && knows(&finder.name, finder.site)
            }
            LinkSource::Earlier(finder, site) => {
                self.evidence.has_answered_before(finder) && knows(finder, *site)
                    || self.evidence.has_answered_before(&host.name)
            }
            LinkSource::Unknown => self.evidence.has_answered_before(&host.name),
            LinkSource::Stranger => false,
        };
        if is_known { Standing::Known } else { Standing::Unknown }
    }

    /// The URLs offered until [`Frontier::end_links`] were links of a page of host `finder` in an earlier run.
    pub fn begin_earlier_links(&mut self, finder: &str) {
        self.evidence.finder = LinkSource::Earlier(finder.into(), SiteKey::of_host(self.settings.rng_seed, finder));
    }

    /// A URL of host `id` was taken from its queue.
    pub(super) fn judged(&mut self, id: HostId, ticket: Ticket) {
        if self.is_judged(ticket)
            && let Some(known) = self.hosts[id].kinds.as_mut()
        {
            known.kinds.judged(is_advised_against(ticket.depth));
        }
    }

    fn is_judged(&self, ticket: Ticket) -> bool {
        let is_any = self.settings.detects_traps || is_advised_against(ticket.depth);
        is_any && !is_seed(ticket) && !is_embed(ticket.depth)
    }

    /// Sends a URL to the lane of its kind.
    pub(super) fn lower(&mut self, id: HostId, entry: &QueuedUrl, of: KindFacts) {
        self.fuel.spend(LOWER_WORK);
        self.evidence.in_lanes += 1;
        self.evidence.lowered += u64::from(entry.turn == Turn::Queue);
        let long_tail_bytes = self.memory.long_tail_bytes(self.hosts.slots());
        let head_urls = if self.memory.has_room() { self.settings.host_head_urls } else { 1 };
        let host = &mut self.hosts[id];
        let (before, tail_before) = (host.backlog.ram_bytes(), host.backlog.tail_bytes());
        host.backlog.lower(of, entry, head_urls);
        self.memory.changed(before, host.backlog.ram_bytes());
        if tail_before < long_tail_bytes && host.backlog.tail_bytes() >= long_tail_bytes {
            self.memory.note_long_tail(id);
        }
    }

    /// A URL was taken from a lane.
    pub(super) fn left_lane(&mut self) {
        self.evidence.in_lanes = self.evidence.in_lanes.saturating_sub(1);
    }

    /// A page was fetched, or was unavailable.
    pub(super) fn note_page(&mut self, job: &FetchJob, outcome: &Outcome) {
        let Outcome::Fetched(fetched) = outcome else { return };
        self.hosts[job.host].has_answered = true;
        let says_nothing =
            is_embed(job.depth) || job.is_strangers || is_overload(fetched.status) || fetched.wall.is_some();
        if !self.settings.detects_traps || says_nothing {
            return;
        }
        let host = &mut self.hosts[job.host];
        let (memory, bytes_max) = (&self.evidence.memory, self.settings.traps_bytes_max);
        if let Some(known) = &mut host.kinds {
            let before = known.counted;
            known.note(job, fetched);
            if known.counted > before && !memory.has_room(host.site, 0, bytes_max) {
                (host.kinds, host.pages_had) = (None, 0);
            }
            return;
        }
        host.pages_had += 1;
        let has_room = || memory.has_room(host.site, kinds::HOST_BYTES_MIN as u64, bytes_max);
        if host.pages_had >= self.settings.free_pages() && has_room() {
            host.kinds = Some(Box::new(CountedKinds::new(host.pages_had, host.site, memory)));
        }
    }

    /// Bytes of the evidence on hosts' kinds.
    pub fn kind_bytes(&self) -> u64 {
        self.evidence.memory.bytes.get()
    }

    /// URLs that wait in lanes of lowered kinds.
    pub fn in_lanes(&self) -> u64 {
        self.evidence.in_lanes
    }

    /// URLs that went to such a lane.
    pub fn lowered_urls(&self) -> u64 {
        self.evidence.lowered
    }
}

/// Whether a URL is a seed, or the redirect target of one.
pub fn is_seed(ticket: Ticket) -> bool {
    Hops::from_bits(ticket.depth).is_seed()
}

/// Whether a page embeds the URL with these bits of `Hops`.
pub(super) fn is_embed(depth: u16) -> bool {
    Hops::from_bits(depth).is_embed()
}

/// Whether its page advised against the URL with these bits of `Hops`.
pub(super) fn is_advised_against(depth: u16) -> bool {
    Hops::from_bits(depth).is_deferred()
}

/// What shares are counted in, so that their counters are wide enough.
const UNIT_BYTES: u64 = 64;
/// Slots for the shares of sites.
const SHARE_PLACES: usize = 1 << 12;
/// Cost of sending a URL to a lane: some two microseconds.
const LOWER_WORK: u64 = 4_096;
