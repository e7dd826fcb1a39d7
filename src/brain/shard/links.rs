//! The path of a found URL through the parts of the shard.
//!
//! A link's path: scope → owner (`intake`) → another shard's lane (`outbox`), or: seen before? (`intake`) → log
//! (`durability`) → queue of its host (`frontier`).

use super::intake::{Admission, Link};
use super::outbox::Delivery;
use super::{Phase, Shard};
use crate::backlinks::SiteLink;
use crate::frontier::Ticket;
use crate::hops::Hops;
use crate::job::FetchJob;
use ringcrawl_base::stage::{self, Stage};
use ringcrawl_base::time::Instant;
use ringcrawl_url::{FoundUrl, HashedUrls, SiteKey, Url, UrlBatch, VIA};

impl Shard {
    /// Takes in the links of a response, with the off-site distance of those that lead to another site.
    pub(super) fn found_by(&mut self, now: Instant, job: &FetchJob, links: &HashedUrls) {
        let (finder, via) = (self.intake.finder(job), Some(job.url.as_str()));
        let (keys, seen) = self.intake.keys_of(links);
        let mut url = Url::unwritten(0);
        let mut led_outside = None;
        let hashes = links.fingerprints().iter().zip(keys.iter().copied().zip(seen));
        for (link, (fingerprint, (key, is_seen))) in links.raw().zip(hashes) {
            match self.intake.judge_link(&finder, link, (key, is_seen), &mut url, &mut self.stats) {
                Link::Nothing => {}
                Link::Known => self.link_sites(now, finder.key(), &url, self.index),
                Link::Outside(hops, outside) => {
                    if hops.is_seed() && led_outside.is_none() {
                        led_outside = Some((url.clone(), outside));
                    }
                    if finder.lists(hops, outside) && self.intake.external_links.is_news(*fingerprint, &mut self.stats)
                    {
                        self.durability.set_aside(now, FoundUrl::unlinked(Hops::EXTERNAL.bits(), url.as_str()));
                    }
                }
                Link::In { owner, hops, is_abroad } => {
                    self.stats.links_crossing += u64::from(owner != self.index);
                    if is_abroad {
                        self.link_sites(now, finder.key(), &url, owner);
                    }
                    if let Some(depth) = self.keep_or_send(now, &url, *fingerprint, (via, hops), owner) {
                        self.accept_or_note(now, key, &url, (via, depth));
                    }
                    // If the URL waits here, it has been accepted by now.
                    if self.outbox.counts_here(job.kind, &url, hops, owner) {
                        let _stage = stage::enter(Stage::Frontier);
                        self.frontier.linked_by_pages(now, &url, 1, &mut self.durability.spool);
                    }
                }
            }
        }
        self.outbox.end_links(job.kind, &mut self.durability.spool);
        if let Some((target, outside)) = led_outside {
            self.intake.tell_led_outside(job, (&target, outside), &mut self.effects, &mut self.stats);
        }
    }

    /// A page of the site `from` links to a URL that shard `owner` has.
    fn link_sites(&mut self, now: Instant, from: SiteKey, url: &Url, owner: u16) {
        if !self.outbox.counts_site_links() {
            return;
        }
        let _stage = stage::enter(Stage::Exchange);
        if let Some(link) = SiteLink::new(from, self.intake.site_key(url))
            && self.outbox.links_here(now, link, owner)
        {
            self.count_link(now, link);
        }
    }

    /// A site links to a site of this shard.
    pub(super) fn count_link(&mut self, now: Instant, link: SiteLink) {
        if self.frontier.order.link_quotas.linked(link) {
            self.durability.note_link(now, link);
        }
    }

    /// Another shard sent URLs.
    pub(super) fn receive_urls(&mut self, now: Instant, batch: &UrlBatch) {
        let _stage = stage::enter(Stage::Url);
        self.stats.exchanged_in += batch.len() as u64;
        // Whether they are all known or not: the site is ours from now on.
        self.durability.note_event(now);
        let (keys, seen) = self.intake.keys_of_batch(batch);
        let (mut url, mut via) = (Url::unwritten(0), None);
        // Which sites link to them is not checked. The URLs found within a tenth of a second mostly belong to few
        // sites.
        self.frontier.begin_strangers_links(self.intake.strangers_key(self.stats.exchanged_in));
        for ((depth, bytes), key) in batch.raw().zip(keys.into_iter().zip(seen)) {
            if depth == VIA {
                via = UrlBatch::via_of(bytes);
            } else if let Some(key) = self.intake.judge_sent((depth, bytes), key, &mut url) {
                self.accept_or_note(now, key, &url, (via, depth));
            }
        }
        self.frontier.order.kinds.end_links();
    }

    /// A page redirects to a URL that may be available only there.
    pub(super) fn redirected(&mut self, now: Instant, job: &FetchJob, target: &Url) {
        let Some((owner, hops)) = self.intake.judge_redirect(job, target) else { return };
        let (fingerprint, via) = (self.intake.keys.fingerprint(target), Some(job.url.as_str()));
        if let Some(depth) = self.keep_or_send(now, target, fingerprint, (via, hops), owner) {
            self.accept_or_note(now, self.intake.keys.lone_key(target), target, (via, depth));
        }
    }

    /// Takes in some seeds as it does links, once the URLs of earlier runs are known. A seed that finds no room is not
    /// logged, because the next run gets it again. What was set aside gets another chance behind the last.
    pub(super) fn sow(&mut self, now: Instant) {
        let seeds = self.resumption.take_seeds();
        let were_last = !seeds.is_empty() && !self.resumption.holds_seeds();
        for seed in seeds {
            if let Some((key, depth)) = self.key_if_ours(now, &seed, (None, 0)) {
                self.accept(now, key, &seed, (None, depth));
            }
        }
        if were_last {
            self.reconsider_next();
        }
    }

    /// URLs that were set aside get another chance. Those that find no room again are already in the log.
    pub(super) fn reconsider(&mut self, now: Instant, batch: &UrlBatch) {
        for FoundUrl { via, depth, url } in batch.found() {
            let Ok(url) = Url::from_canonical(url) else { continue };
            let Some((key, depth)) = self.key_if_ours(now, &url, (via, depth)) else { continue };
            let admission = self.accept(now, key, &url, (via, depth));
            if !self.intake.may_be_alone(key, Hops::from_bits(depth)) {
                continue;
            }
            match admission {
                // The page of its key may have led here and is known, or redirects led back to its own.
                Admission::Before => drop(self.accept(now, self.intake.keys.lone_key(&url), &url, (via, depth))),
                Admission::New(_) => self.intake.note_alone(&url),
                Admission::Full => {}
            }
        }
        self.reconsider_next();
    }

    /// Reads back the next block of these, unless the run is to end: they are in the log for the next one.
    pub(super) fn reconsider_next(&mut self) {
        if self.phase == Phase::Run && !self.resumption.holds_seeds() {
            self.resumption.reconsider_next(&mut self.durability.spool);
        }
    }

    /// The key and the bits of `Hops` of a found URL, if it is in scope and belongs to this shard.
    fn key_if_ours(&mut self, now: Instant, url: &Url, (via, depth): Way<'_>) -> Option<(u64, u16)> {
        let hops = Hops::from_bits(depth);
        let owner = self.intake.owner(url, hops, &mut self.stats).ok()?;
        let depth = self.keep_or_send(now, url, self.intake.keys.fingerprint(url), (via, hops), owner)?;
        Some((self.intake.keys.key(url), depth))
    }

    /// The bits of `Hops` of a found URL, if it belongs to this shard or is kept here.
    pub(super) fn keep_or_send(
        &mut self,
        now: Instant,
        url: &Url,
        fingerprint: u64,
        (via, hops): (Option<&str>, Hops),
        owner: u16,
    ) -> Option<u16> {
        if owner == self.index {
            return Some(hops.bits());
        }
        let fingerprint = self.intake.sent_fingerprint(url, fingerprint, hops);
        let found = FoundUrl { via, depth: hops.bits(), url: url.as_str() };
        match self.outbox.deliver(now, owner, found, fingerprint, &mut self.durability.spool, &mut self.stats) {
            Delivery::Kept(hops) => return Some(hops.bits()),
            Delivery::Sent => self.durability.note_event(now),
            Delivery::Dropped => {}
        }
        None
    }

    /// Accepts a URL, or notes that there is no room for it. While seeds are still waiting, a new URL is left to the next
    /// run with them: it may be one of them.
    fn accept_or_note(&mut self, now: Instant, key: u64, url: &Url, (via, depth): Way<'_>) {
        let is_left = self.resumption.holds_seeds() && !self.intake.visited.contains(key);
        let waits = is_left || self.accept(now, key, url, (via, depth)) == Admission::Full;
        if waits && self.intake.is_news_aside(key) {
            self.stats.set_aside += u64::from(is_left);
            self.durability.set_aside(now, FoundUrl { via, depth, url: url.as_str() });
        }
    }

    /// Accepts a URL, if it is new and has room.
    fn accept(&mut self, now: Instant, key: u64, url: &Url, (via, depth): Way<'_>) -> Admission {
        let hops = Hops::from_bits(depth);
        if hops.is_seed() {
            // A seed may have been found before.
            self.frontier.wanted(url, self.intake.site_key(url));
        }
        let is_crowded_out =
            self.frontier.is_crowded_out(now, url, || self.intake.site_key(url), &self.durability.spool);
        let admission = self.intake.admit(key, url, hops, is_crowded_out, &mut self.stats);
        if let Admission::New(site) = admission {
            let number = self.durability.accept(now, FoundUrl { via, depth, url: url.as_str() });
            let _stage = stage::enter(Stage::Frontier);
            let ticket = Ticket { number, depth, is_strangers: false };
            self.frontier.offer(now, url, site, ticket, &mut self.durability.spool);
        }
        admission
    }
}

/// How a URL was found: by which page, if that is known, and the bits of its `Hops`.
type Way<'a> = (Option<&'a str>, u16);
