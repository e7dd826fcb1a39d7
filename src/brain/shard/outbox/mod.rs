//! What a shard has for others: URLs, links that they count, questions and answers about robots.txt.
//!
//! Decides: by `exchange.mode`, whether another shard's URL is sent, kept or dropped; which URLs and links it was
//! sent lately, so that they need not be sent again; when gathered links are sent ([`link_counts`]).
//! Links between sites are counted on the shard of the site that they lead to. A link counts if it leads to a URL in
//! the scope and to another site than its page's, whether the URL is new or not. Redirects count, too. The finder
//! does not report again what it has reported recently. Each report of another linking site is logged there, so that
//! counts survive restarts.
//! Invariants: the numbers of messages sent and received count those that the census compares.
//! Limits: a kill loses links between sites that were found since the last commit or are on their way to another
//! shard. Sites may then have fewer pages ahead of others until they are linked to again. Advice (nofollow) does not
//! travel with links to other hosts, so these count, too. While all lanes together have no room, counts of links to
//! URLs are dropped (orders by importance then rank by fewer links).
//! Leaves to others: order, acknowledgements and memory of a lane (`exchange`).

mod link_counts;

use crate::backlinks::SiteLink;
use crate::exchange::message::{self, MessageKind};
use crate::exchange::{Incoming, Lanes, Outgoing, SentUrls};
use crate::frontier::Frontier;
use crate::hops::Hops;
use crate::job::JobKind;
use crate::spool::Spool;
use crate::stats::Totals;
use link_counts::{GatheredLinks, counts};
use ringcrawl_base::RecentHashes;
use ringcrawl_base::stage::{self, Stage};
use ringcrawl_base::time::Instant;
use ringcrawl_config::ExchangeMode;
use ringcrawl_url::{FoundUrl, Url};

use super::Setup;

/// The lanes to other shards, and what they were sent.
#[derive(Debug)]
pub(super) struct Outbox {
    shard: u16,
    mode: ExchangeMode,
    pub(super) lanes: Lanes,
    /// URLs that were sent to other shards.
    sent_urls: SentUrls,
    /// Links to sites of other shards that were sent lately, where these are counted.
    sent_links: Option<RecentHashes>,
    /// Links to URLs, where these are counted.
    gathered_links: Option<GatheredLinks>,
    messages_sent: u64,
    messages_received: u64,
}

/// What happens to another shard's URL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Delivery {
    /// It is crawled here, as found this way.
    Kept(Hops),
    /// It is in the lane.
    Sent,
    /// It was sent before, or is not wanted.
    Dropped,
}

impl Outbox {
    /// Nothing was sent yet; `counts_site_links`: links between sites count.
    pub(super) fn new(setup: &Setup, counts_site_links: bool) -> Outbox {
        let Setup { index, ref partition, ref config, .. } = *setup;
        let (shards, mode) = (partition.shards(), config.exchange.mode);
        let is_sending = shards > 1 && mode == ExchangeMode::Exchange;
        let recent_urls = if is_sending { config.exchange.recent_urls } else { 0 };
        Outbox {
            shard: index,
            mode,
            lanes: Lanes::new(shards, &config.exchange, config.scope.url_bytes_max),
            sent_urls: SentUrls::new(recent_urls, setup.replicated.clone()),
            sent_links: counts_site_links.then(RecentHashes::default),
            gathered_links: GatheredLinks::of(config, shards),
            messages_sent: 0,
            messages_received: 0,
        }
    }

    /// Takes in a URL of shard `owner`, with the bits of its [`Hops`], under the fingerprint by which it is known as
    /// sent.
    pub(super) fn deliver(
        &mut self,
        now: Instant,
        owner: u16,
        found: FoundUrl<'_>,
        fingerprint: u64,
        spool: &mut Spool,
        stats: &mut Totals,
    ) -> Delivery {
        let _stage = stage::enter(Stage::Exchange);
        let hops = Hops::from_bits(found.depth);
        match self.mode {
            // A seed was given, not found.
            _ if hops.is_seed() => {}
            ExchangeMode::Exchange => {}
            ExchangeMode::Firewall => {
                stats.links_crossing_dropped += 1;
                return Delivery::Dropped;
            }
            ExchangeMode::CrossOver => return Delivery::Kept(hops.deferred()),
            ExchangeMode::Independent => return Delivery::Kept(hops),
        }
        // The target of a redirect has an entry of its own where keys are not URLs.
        let batch = (owner, self.lanes.open_batch(owner));
        if hops.redirects() == 0 && self.sent_urls.is_again(fingerprint, batch) {
            stats.links_sent_before += 1;
            return Delivery::Dropped;
        }
        self.lanes.push(now, owner, found, spool);
        Delivery::Sent
    }

    /// Whether links between sites count.
    #[inline]
    pub(super) fn counts_site_links(&self) -> bool {
        self.sent_links.is_some()
    }

    /// A page links to a site of shard `owner`; `true` if the link counts here.
    pub(super) fn links_here(&mut self, now: Instant, link: SiteLink, owner: u16) -> bool {
        if owner != self.shard
            && self.mode == ExchangeMode::Exchange
            && self.lanes.has_room_for_link(owner)
            && self.sent_links.as_mut().is_some_and(|sent| !sent.is_again(link.number()))
        {
            self.lanes.link(now, owner, link);
        }
        owner == self.shard
    }

    /// Whether links to URLs count.
    pub(super) fn counts_links(&self) -> bool {
        self.gathered_links.is_some()
    }

    /// A response links to a URL of shard `owner`; `true` if the link counts here.
    pub(super) fn counts_here(&mut self, found_by: JobKind, url: &Url, hops: Hops, owner: u16) -> bool {
        let Some(gathered) = self.gathered_links.as_mut().filter(|_| counts(found_by, hops)) else { return false };
        let is_here = owner == self.shard || !self.mode.keeps_parts();
        if !is_here {
            gathered.add(owner, url.as_str());
        }
        is_here
    }

    /// All links of a response to a job of this kind were found.
    pub(super) fn end_links(&mut self, found_by: JobKind, spool: &mut Spool) {
        let Some(gathered) = &mut self.gathered_links else { return };
        if !gathered.end_page(found_by) {
            return;
        }
        let _stage = stage::enter(Stage::Exchange);
        for (to, counts) in gathered.take() {
            if self.lanes.has_room() {
                // Counts of a URL that its owner does not have yet would be lost.
                self.lanes.say_behind(to, MessageKind::LinkCounts, counts.as_bytes(), spool);
            }
        }
    }

    /// The next message, after those that the frontier has for other shards.
    pub(super) fn next_message(
        &mut self,
        now: Instant,
        frontier: &mut Frontier,
        spool: &mut Spool,
        stats: &mut Totals,
    ) -> Option<Outgoing> {
        let _stage = stage::enter(Stage::Exchange);
        for (to, request) in frontier.robots.take_requests() {
            self.lanes.say(to, MessageKind::RobotsRequest, &request.to_bytes());
        }
        while self.lanes.has_room()
            && let Some((to, answer)) = frontier.robots.next_answer(now)
        {
            self.lanes.say(to, MessageKind::RobotsAnswer, &answer.to_bytes());
        }
        let message = self.lanes.next_message(now, spool)?;
        self.messages_sent += u64::from(message::is_counted(&message.bytes));
        stats.exchanged_out += message.urls;
        Some(message)
    }

    /// The ring had no room for this message.
    pub(super) fn refused(&mut self, now: Instant, message: Outgoing, stats: &mut Totals) {
        self.messages_sent -= u64::from(message::is_counted(&message.bytes));
        stats.exchanged_out -= message.urls;
        self.lanes.refused(now, message);
    }

    /// A message from another shard.
    pub(super) fn receive(&mut self, now: Instant, from: u16, bytes: &[u8]) -> Incoming {
        self.messages_received += u64::from(message::is_counted(bytes));
        self.lanes.receive(now, from, bytes)
    }

    /// How many messages were sent and received, of those that count.
    pub(super) fn messages(&self) -> (u64, u64) {
        (self.messages_sent, self.messages_received)
    }

    /// Whether other shards have received everything found for them.
    pub(super) fn is_drained(&self) -> bool {
        self.lanes.is_drained()
    }

    /// When to send without another event.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.lanes.next_due()
    }
}
