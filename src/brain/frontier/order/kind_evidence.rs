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

use std::rc::Rc;

use crate::frontier::hosts::{CountedKinds, Host, HostTable, KindMemory, Standing};
use crate::frontier::queue::{QueueTurn, Ticket};
use crate::frontier::settings::Settings;
use crate::hops::Hops;
use crate::job::{FetchJob, HostId};
use crate::kinds::{self, Judgment, KindFacts};
use crate::outcome::Outcome;
use crate::politeness::is_overload;
use ringcrawl_base::RecentHashes;
use ringcrawl_url::{SiteKey, Url};
use xxhash_rust::xxh3::xxh3_64;

/// The evidence held for all hosts of a shard.
#[derive(Debug, Default)]
pub struct KindEvidence {
    pub(in crate::frontier) memory: Rc<KindMemory>,
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
    detects_traps: bool,
    bytes_max: u64,
    /// Pages of a host that are not examined.
    free_pages: u32,
    rng_seed: u64,
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

impl KindEvidence {
    /// Nothing is known.
    pub fn new(settings: &Settings) -> KindEvidence {
        KindEvidence {
            detects_traps: settings.detects_traps,
            bytes_max: settings.traps_bytes_max,
            free_pages: settings.free_pages(),
            rng_seed: settings.rng_seed,
            ..KindEvidence::default()
        }
    }

    /// URLs that wait in lanes of lowered kinds.
    pub fn in_lanes(&self) -> u64 {
        self.in_lanes
    }

    /// URLs that went to such a lane.
    pub fn lowered_urls(&self) -> u64 {
        self.lowered
    }

    /// A URL that was in no queue came to a lane.
    pub fn came_beside(&mut self) {
        self.in_lanes += 1;
    }

    /// A URL was taken from a lane, or lost there.
    pub fn left_lane(&mut self) {
        self.in_lanes = self.in_lanes.saturating_sub(1);
    }

    /// A URL that was taken in this turn went to the lane of its kind.
    pub fn lowered(&mut self, turn: QueueTurn) {
        self.in_lanes += 1;
        self.lowered += u64::from(turn == QueueTurn::Queue);
    }

    /// A host answered an earlier run.
    pub fn was_answered(&mut self, host: &str) {
        self.answered_before.get_or_insert_default().note(xxh3_64(host.as_bytes()));
    }

    /// Whether a host answered an earlier run, if that is not forgotten.
    fn has_answered_before(&self, host: &str) -> bool {
        self.answered_before.as_ref().is_some_and(|hosts| hosts.holds(xxh3_64(host.as_bytes())))
    }

    /// The URLs offered from here on are the links of `job`'s response.
    pub fn begin_links(&mut self, hosts: &mut HostTable, job: &FetchJob) {
        self.finder = LinkSource::Page(job.host, job.is_examined);
        if job.is_examined
            && let Some(known) = hosts.get_mut(job.host).and_then(|host| host.kinds.as_mut())
        {
            known.begin_links(&job.url);
        }
    }

    /// The same for any page of a host.
    #[cfg(test)]
    pub fn begin_links_of(&mut self, id: Option<HostId>) {
        self.finder = id.map_or(LinkSource::Unknown, |id| LinkSource::Page(id, false));
    }

    /// The same for links that another shard found. If that shard may have pages of the same hosts, the page
    /// `is_unknown`. Lookups of new names count for `linker`.
    pub fn begin_strangers_links(&mut self, linker: SiteKey, is_unknown: bool) {
        self.linker = linker;
        self.finder = if is_unknown { LinkSource::Unknown } else { LinkSource::Stranger };
    }

    /// The same for links of a page of host `finder` in an earlier run.
    pub fn begin_earlier_links(&mut self, finder: &str) {
        self.finder = LinkSource::Earlier(finder.into(), SiteKey::of_host(self.rng_seed, finder));
    }

    /// URLs offered from here on are not links of that page.
    pub fn end_links(&mut self) {
        self.linker = SiteKey::default();
        self.finder = LinkSource::Unknown;
    }

    /// The site that links to a URL of `site`, as far as known: seeds have no linking site.
    pub fn linker_of(&self, hosts: &HostTable, site: SiteKey, ticket: Ticket) -> SiteKey {
        match self.finder {
            LinkSource::Page(page, _) => hosts[page].site,
            _ if ticket.hops().is_seed() => site,
            LinkSource::Unknown | LinkSource::Earlier(..) | LinkSource::Stranger => self.linker,
        }
    }

    /// A new URL of `site` was offered; its ticket tells whether only strangers have linked to it.
    pub fn found_by(
        &self,
        hosts: &mut HostTable,
        id: Option<HostId>,
        url: &Url,
        site: SiteKey,
        ticket: Ticket,
    ) -> Ticket {
        let is_strangers = match self.finder {
            LinkSource::Unknown | LinkSource::Earlier(..) => false,
            LinkSource::Page(page, is_examined) => {
                let page_host = &mut hosts[page];
                if let Some(known) = page_host.kinds.as_mut().filter(|_| is_examined && id == Some(page)) {
                    known.found(url);
                }
                page_host.site != site
            }
            LinkSource::Stranger => true,
        };
        Ticket { is_strangers: is_strangers && !ticket.hops().is_seed(), ..ticket }
    }

    /// Judges a URL of a host by what is known of its kind.
    pub fn judge(&self, host: &Host, url: &Url, ticket: Ticket) -> Judgment {
        let hops = ticket.hops();
        let is_advised_against = hops.is_deferred();
        let judgment = match host.kinds.as_ref() {
            Some(known) => known.judge(url, is_advised_against),
            None => Judgment { lowered: is_advised_against.then_some(KindFacts::ADVISED_AGAINST), wants_look: false },
        };
        Judgment {
            lowered: judgment.lowered.filter(|_| self.is_judged(hops)),
            wants_look: judgment.wants_look && !ticket.is_strangers && !hops.is_embed(),
        }
    }

    /// What the URL offered to host `id` shows about how the host was found.
    pub fn standing(&self, hosts: &HostTable, id: HostId, ticket: Ticket) -> Standing {
        let host = &hosts[id];
        let knows = |finder: &str, site| {
            let label = |name: &str| SiteKey::below_site(self.rng_seed, name);
            site == host.site && label(finder) != label(&host.name)
        };
        let is_known = match &self.finder {
            _ if ticket.hops().is_seed() => return Standing::Seed,
            _ if host.standing != Standing::Unknown => return host.standing,
            LinkSource::Page(page, _) => {
                let finder = &hosts[*page];
                finder.standing != Standing::Unknown && knows(&finder.name, finder.site)
            }
            LinkSource::Earlier(finder, site) => {
                self.has_answered_before(finder) && knows(finder, *site) || self.has_answered_before(&host.name)
            }
            LinkSource::Unknown => self.has_answered_before(&host.name),
            LinkSource::Stranger => false,
        };
        if is_known { Standing::Known } else { Standing::Unknown }
    }

    /// A URL of a host was taken from its queue.
    pub fn judged(&self, host: &mut Host, ticket: Ticket) {
        if self.is_judged(ticket.hops())
            && let Some(known) = host.kinds.as_mut()
        {
            known.judged(ticket.hops().is_deferred());
        }
    }

    fn is_judged(&self, hops: Hops) -> bool {
        (self.detects_traps || hops.is_deferred()) && !hops.is_seed() && !hops.is_embed()
    }

    /// A page was fetched, or was unavailable.
    pub fn note_page(&self, host: &mut Host, job: &FetchJob, outcome: &Outcome) {
        let Outcome::Fetched(fetched) = outcome else { return };
        host.has_answered = true;
        let is_embed = Hops::from_bits(job.depth).is_embed();
        let says_nothing =
            is_embed || job.is_strangers || is_overload(fetched.status) || fetched.interstitial.is_some();
        if !self.detects_traps || says_nothing {
            return;
        }
        if let Some(known) = &mut host.kinds {
            if known.note(job, fetched) && !self.memory.has_room(host.site, 0, self.bytes_max) {
                (host.kinds, host.pages_had) = (None, 0);
            }
            return;
        }
        host.pages_had += 1;
        let has_room = || self.memory.has_room(host.site, kinds::HOST_BYTES_MIN as u64, self.bytes_max);
        if host.pages_had >= self.free_pages && has_room() {
            host.kinds = Some(Box::new(CountedKinds::new(host.pages_had, host.site, &self.memory)));
        }
    }
}
