//! Which URLs come first, and which wait for others.
//!
//! Decides: a URL's level among those of its host ([`importance`]), whether it waits in the lane of its kind
//! ([`kind_evidence`]), whether its host leaves a page to others ([`competition`]), and how many pages a site may have:
//! at all ([`site_quotas`]), and before others get theirs ([`link_quotas`]).
//! Invariants: nothing is dropped by any of them, except URLs over a quota of the operator.
//! Leaves to others: where the URLs wait ([`super::queue`]).

mod competition;
mod importance;
mod kind_evidence;
pub(super) mod link_counts;
mod link_quotas;
mod parts;
mod ranks;
mod site_quotas;

pub use link_quotas::{LinkQuotas, allowance};
pub use ranks::{BYTES_EACH_MAX as RANK_BYTES_MAX, Ranks};
pub use site_quotas::{Bound, Cost, Left, PENDING_PAUSE, PartsBySite, SiteBounds, SiteQuotas};

use std::sync::Arc;

use crate::frontier::hosts::{Host, HostTable, Standing};
use crate::frontier::queue::{Place, QueueTurn, QueuedUrl, Ticket};
use crate::frontier::settings::Settings;
use crate::job::HostId;
use crate::kinds::{Judgment, KindFacts, Weight};
use competition::Competition;
use importance::Importance;
use kind_evidence::KindEvidence;
use ringcrawl_base::time::Instant;
use ringcrawl_url::{SiteKey, Url};

/// What determines the order of a shard's URLs.
#[derive(Debug)]
pub struct Order {
    pub(in crate::frontier) importance: Importance,
    pub(crate) kinds: KindEvidence,
    pub(in crate::frontier) competition: Competition,
    pub(in crate::frontier) site_quotas: SiteQuotas,
    pub(crate) link_quotas: LinkQuotas,
}

/// What follows for a URL that was taken from a queue of its host.
#[derive(Clone, Copy, Debug)]
pub enum OrderDecision {
    /// It had its turn before.
    Stale,
    /// It goes to the lane of this kind.
    Lower(KindFacts),
    /// It is its turn.
    Go(Judgment),
}

impl Order {
    /// Nothing is known, and sites have no quotas.
    pub fn new(settings: &Settings) -> Order {
        Order {
            importance: Importance::new(settings),
            kinds: KindEvidence::new(settings),
            competition: Competition::new(settings.has_page_budget),
            site_quotas: SiteQuotas::default(),
            link_quotas: LinkQuotas::default(),
        }
    }

    /// The same with these quotas.
    pub fn bounded_by(self, site_quotas: SiteQuotas, link_quotas: LinkQuotas) -> Order {
        Order { site_quotas, link_quotas, ..self }
    }

    /// The same with these ranks of URLs, if it orders by ranks.
    pub fn ranked(self, ranks: Arc<Ranks>) -> Order {
        Order { importance: self.importance.ranked(ranks), ..self }
    }

    /// Requests of hosts and sites that have no quota because there was no room.
    pub fn uncounted(&self) -> u64 {
        self.site_quotas.uncounted() + self.link_quotas.uncounted()
    }

    /// A URL of `site`, and of host `id` if that is in memory, was offered for the first time. Returns its ticket, with
    /// what the page that links to it shows.
    pub fn offered(
        &mut self,
        hosts: &mut HostTable,
        id: Option<HostId>,
        url: &Url,
        site: SiteKey,
        ticket: Ticket,
    ) -> Ticket {
        let ticket = self.kinds.found_by(hosts, id, url, site, ticket);
        self.importance.came(url, ticket);
        ticket
    }

    /// A URL comes to host `id`: notes what that shows about the host, and returns its place there.
    pub fn place(&mut self, hosts: &mut HostTable, id: HostId, url: &Url, ticket: Ticket) -> Place {
        let place = match self.waits_beside(&hosts[id], ticket) {
            true => Place::Beside(KindFacts::OF_STRANGERS),
            false => Place::Queue(self.importance.level(url)),
        };
        let standing = self.kinds.standing(hosts, id, ticket);
        let host = &mut hosts[id];
        host.standing = standing;
        host.has_own_urls |= !ticket.is_strangers;
        if place == Place::Beside(KindFacts::OF_STRANGERS) {
            self.kinds.came_beside();
        }
        place
    }

    /// Judges a URL that was taken from a queue of its host.
    pub fn taken(&mut self, host: &mut Host, entry: &QueuedUrl) -> OrderDecision {
        match entry.turn {
            QueueTurn::Queue if !self.importance.takes(&entry.url, entry.ticket) => return OrderDecision::Stale,
            QueueTurn::Queue => self.kinds.judged(host, entry.ticket),
            QueueTurn::Lane(_) => self.kinds.left_lane(),
        }
        let judgment = self.judge(host, &entry.url, entry.ticket);
        match judgment.lowered.filter(|kind| host.backlog.is_to_move(entry.turn, *kind)) {
            Some(kind) => OrderDecision::Lower(kind),
            None => OrderDecision::Go(judgment),
        }
    }

    /// Judges a URL before it is fetched.
    pub fn judge(&self, host: &Host, url: &Url, ticket: Ticket) -> Judgment {
        let of_strangers = self.waits_beside(host, ticket).then_some(KindFacts::OF_STRANGERS);
        let judgment = self.kinds.judge(host, url, ticket);
        Judgment { lowered: judgment.lowered.or(of_strangers), ..judgment }
    }

    /// Whether a URL waits outside its host's queue because only strangers link to it: they may link to any amount of
    /// URLs of a host, and get one turn for four of its own.
    fn waits_beside(&self, host: &Host, ticket: Ticket) -> bool {
        ticket.is_strangers && host.has_own_urls && !self.importance.has_levels()
    }

    /// What the quotas leave for a URL.
    pub fn left(&self, now: Instant, host: &Host, url: &Url) -> Left {
        self.site_quotas.left(now, &host.name, self.site_quotas.key(url, host.site))
    }

    /// Whether host `id` leaves its page to others: then it waits until the returned instant.
    pub fn lets_others_first(&mut self, now: Instant, hosts: &mut HostTable, id: HostId) -> Option<Instant> {
        if !self.competition.is_on() {
            return None;
        }
        let is_over = self.link_quotas.is_over(hosts[id].site);
        let (until, is_new) = self.competition.lets_others_first(now, hosts, id, is_over)?;
        if is_new {
            self.link_quotas.lowered(is_over);
        }
        Some(until)
    }

    /// A page of a host begins.
    pub fn page_begins(&mut self, now: Instant, host: &mut Host, url: &Url, weight: Weight) {
        self.site_quotas.took(now, &host.name, self.site_quotas.key(url, host.site));
        self.link_quotas.took(host.site);
        self.competition.page_begins(now, host, weight);
    }

    /// A page of a host has ended; `None`: it will be tried again.
    pub fn page_ended(&mut self, host: &mut Host, url: &Url, cost: Option<Cost>) {
        self.competition.page_ended(host);
        self.site_quotas.ended(&host.name, self.site_quotas.key(url, host.site), cost);
        self.link_quotas.ended(host.site, cost.is_some_and(|cost| cost.is_page));
    }

    /// What an earlier run has spent on a URL.
    pub fn replayed(&mut self, url: &Url, site: SiteKey, cost: Cost) {
        self.site_quotas.replayed(url.host(), self.site_quotas.key(url, site), cost);
    }

    /// A seed of `site` was given.
    pub fn wanted(&mut self, hosts: &mut HostTable, seed: &Url, site: SiteKey) {
        self.link_quotas.wanted(site);
        if let Some(id) = hosts.find(seed.host()) {
            hosts[id].standing = Standing::Seed;
        }
    }
}
