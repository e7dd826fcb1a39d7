//! URLs that are found: in scope? whose? seen before? And URLs that are done.
//!
//! A link's path: scope → owner (`route`) → another shard's lane (`exchange`), or: seen before? (`visited`) → log →
//! queue of its host (`frontier`).

use super::{Effect, Shard};
use crate::frontier::Ticket;
use crate::hops::Hops;
use crate::job::{FetchJob, JobKind};
use crate::log::{End, EndKind};
use crate::scope::Outside;
use crate::visited::Seen;
use ringcrawl_base::stage::{self, Stage};
use ringcrawl_base::time::Instant;
use ringcrawl_config::ExchangeMode;
use ringcrawl_url::{Found, HashedUrls, Site, SiteKey, Url, UrlBatch, VIA};

impl Shard {
    /// Takes in the links of a response, with the off-site distance of those that lead to another site.
    ///
    /// Most were accepted before. One query to the visited set finds all of these. Such a link was in scope at that
    /// time and belongs to this shard; it counts for its site, and needs no further work.
    pub(super) fn found_by(&mut self, now: Instant, job: &FetchJob, links: &HashedUrls) {
        let page_site = self.sites.of(job.url.host()).name;
        let (page_key, via) = (self.keys.site(page_site), Some(job.url.as_str()));
        let is_of_embed = Hops::from_bits(job.depth).is_embed();
        // It is unknown what led to a robots.txt.
        let least = if job.kind == JobKind::Robots { self.scope.least_offsite(page_site) } else { 0 };
        let keys = self.keys.of_links(links);
        let seen = if self.follows_seen_links { vec![false; keys.len()] } else { self.are_seen(&keys) };
        let mut url = Url::unwritten(0);
        let mut led_outside = None;
        let hashes = links.fingerprints().iter().zip(&*keys);
        for ((depth, bytes), ((fingerprint, key), is_seen)) in links.raw().zip(hashes.zip(seen)) {
            let hops = Hops::from_bits(depth);
            let is_seen = is_seen && !hops.is_seed() && !self.came_long_way(*key);
            // Most links stay on the page's host.
            if is_seen && is_at(bytes, job.url.origin()) || url.read_canonical(bytes).is_err() {
                continue;
            }
            let is_at_host = url.host() == job.url.host();
            if is_seen {
                if !is_at_host && !hops.is_embed() {
                    self.linked(now, page_key, &url, self.index);
                }
                continue;
            }
            let hops = hops.with_offsite(hops.offsite().max(least));
            let hops = match is_at_host {
                true => hops,
                false => self.scope.way(hops, self.sites.of(url.host()).name, page_site),
            };
            let owner = match self.owner(&url, hops) {
                Ok(owner) => owner,
                // An embed is not a page in the first place, and no crawled page links to what an embed links to.
                Err(outside) => {
                    if hops.is_seed() && led_outside.is_none() {
                        led_outside = Some((url.clone(), outside));
                    }
                    if outside == Outside::Elsewhere && !hops.is_embed() && !is_of_embed {
                        self.note_external(now, &url, *fingerprint);
                    }
                    continue;
                }
            };
            self.stats.links_crossing += u64::from(owner != self.index);
            // An embed is not a link: images of half the web lie on a few hosts.
            if !is_at_host && !hops.is_embed() {
                self.linked(now, page_key, &url, owner);
            }
            if let Some(depth) = self.keep_or_send(now, &url, *fingerprint, (via, hops), owner) {
                self.accept_or_note(now, *key, &url, (via, depth));
            }
            self.linked_by_page(now, job, &url, hops, owner);
        }
        self.tell_link_counts(job);
        if let Some((target, outside)) = led_outside {
            self.led_outside(job, &target, outside);
        }
    }

    /// A seed, or the target of a seed's redirect, leads out of scope: the crawl may get nothing else from it. The
    /// note says how to fix that.
    fn led_outside(&mut self, job: &FetchJob, target: &Url, outside: Outside) {
        self.stats.seeds_led_outside += 1;
        if self.stats.seeds_led_outside > LED_OUTSIDE_TOLD {
            return;
        }
        let is_given = Hops::from_bits(job.depth).redirects() == 0;
        let from = if is_given { "seed " } else { "a seed's redirect, " };
        let mends = match outside {
            Outside::Elsewhere => {
                let follow = self.scope.follow();
                format!("scope.follow = \"{follow}\" leaves out; to crawl that, add this line to the seeds: {target}")
            }
            Outside::Rule(line) => format!("line {line} of scope.rules denies"),
            Outside::Blocked => "scope.block blocks".to_owned(),
            Outside::Port => "is out of scope by its port (scope.bad_ports)".to_owned(),
            Outside::Redirects => "is one redirect too many (scope.redirects_max)".to_owned(),
            Outside::Depth | Outside::Length | Outside::Dear => "is out of scope".to_owned(),
        };
        let told = format!("{from}{} leads to {target}, which {mends}", job.url);
        self.effects.push_back(Effect::Note(told));
        if self.stats.seeds_led_outside == LED_OUTSIDE_TOLD {
            let told =
                format!("{LED_OUTSIDE_TOLD} seeds lead out of scope; further ones are counted (seeds_led_outside)");
            self.effects.push_back(Effect::Note(told));
        }
    }

    /// Whether each of these keys belongs to an accepted URL.
    pub(super) fn are_seen(&self, keys: &[u64]) -> Vec<bool> {
        let _stage = stage::enter(Stage::Visited);
        self.visited.contains_each(keys)
    }

    /// The sites of seeds are exempt from allowances, even while their waiting URLs are read.
    pub(super) fn want(&mut self, seeds: &[Url]) {
        // Before all owners are known, sites have none: seeds are marked as wanted when they are sown.
        for seed in seeds.iter().filter(|_| self.partition.is_settled()) {
            let site = self.sites.of(seed.host());
            if self.partition.shard_of_known(seed, site) == self.index {
                self.frontier.wanted(seed, self.keys.site(site.name));
            }
        }
    }

    /// Takes in seeds as it does links, once the URLs of earlier runs are known. A seed that finds no room is not
    /// logged, because the next run gets it again.
    pub(super) fn sow(&mut self, now: Instant) {
        if self.replay.is_none() {
            for seed in std::mem::take(&mut self.seeds) {
                if let Some((key, depth)) = self.key_if_ours(now, &seed, (None, 0)) {
                    self.accept(now, key, &seed, (None, depth));
                }
            }
        }
    }

    /// The key and the bits of `Hops` of a found URL, if it is in scope and belongs to this shard.
    pub(super) fn key_if_ours(&mut self, now: Instant, url: &Url, (via, depth): Way<'_>) -> Option<(u64, u16)> {
        let hops = Hops::from_bits(depth);
        let owner = self.owner(url, hops).ok()?;
        let depth = self.keep_or_send(now, url, self.keys.fingerprint(url), (via, hops), owner)?;
        Some((self.keys.key(url), depth))
    }

    /// The owner, if the URL is in scope.
    fn owner(&mut self, url: &Url, hops: Hops) -> Result<u16, Outside> {
        let _stage = stage::enter(Stage::Exchange);
        let site = self.sites.of(url.host());
        let is_blocked = !self.clear_hosts.is_clear(self.scope.blocks(), url.host()) && self.scope.blocks().blocks(url);
        let admitted = match is_blocked {
            true => Err(Outside::Blocked),
            false => self.scope.admits(url, site.name, hops),
        };
        if let Err(outside) = admitted {
            *match outside {
                Outside::Blocked => &mut self.stats.links_blocked,
                Outside::Depth => &mut self.stats.links_too_deep,
                Outside::Redirects => &mut self.stats.redirects_too_many,
                _ => &mut self.stats.links_out_of_scope,
            } += 1;
            return Err(outside);
        }
        // A seed was given, not found.
        if hops.is_seed() {
            return Ok(self.partition.shard_of_known(url, site));
        }
        Ok(self.partition.shard_of_found(url, site, self.index))
    }

    /// The bits of `Hops` of a found URL, if it belongs to this shard; `exchange.mode` decides what happens to
    /// another shard's URL.
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
        let _stage = stage::enter(Stage::Exchange);
        match self.mode {
            // A seed was given, not found.
            _ if hops.is_seed() => {}
            ExchangeMode::Exchange => {}
            ExchangeMode::Firewall => {
                self.stats.links_crossing_dropped += 1;
                return None;
            }
            ExchangeMode::CrossOver => return Some(hops.deferred().bits()),
            ExchangeMode::Independent => return Some(hops.bits()),
        }
        // The target of a redirect has an entry of its own where keys are not URLs.
        let batch = (owner, self.lanes.open_batch(owner));
        // A URL found by a long path must not hold back the same URL found by a short one.
        let fingerprint = if self.is_deep(url, hops) { !fingerprint } else { fingerprint };
        if hops.redirects() == 0 && self.sent.is_again(fingerprint, batch) {
            self.stats.links_sent_before += 1;
            return None;
        }
        self.commits.note(now);
        self.lanes.push(now, owner, Found { via, depth: hops.bits(), url: url.as_str() }, &mut self.spool);
        None
    }

    /// A link left the scope: it may be a seed of the next round. The same link occurs again and again; readers of
    /// the log allow for duplicates.
    fn note_external(&mut self, now: Instant, url: &Url, fingerprint: u64) {
        let Some(recent) = &mut self.recent_external else { return };
        if recent.is_again(fingerprint) {
            return;
        }
        if self.external >= EXTERNAL_MAX {
            self.stats.external_unlisted += 1;
            return;
        }
        let _stage = stage::enter(Stage::Journal);
        self.external += 1;
        self.log.set_aside(Found::unlinked(Hops::EXTERNAL.bits(), url.as_str()));
        self.commits.note(now);
    }

    /// Another shard sent URLs.
    pub(super) fn receive_urls(&mut self, now: Instant, batch: &UrlBatch) {
        let _stage = stage::enter(Stage::Url);
        self.stats.exchanged_in += batch.len() as u64;
        // Whether they are all known or not: the site is ours from now on.
        self.commits.note(now);
        let keys = self.keys.of_batch(batch);
        let seen = self.are_seen(&keys);
        let (mut url, mut via) = (Url::unwritten(0), None);
        // Which sites link to them is not checked. The URLs found within a tenth of a second mostly belong to few
        // sites.
        let linker = self.keys.site(&format!("batch {}", self.stats.exchanged_in));
        self.frontier.begin_strangers_links(linker);
        for ((depth, bytes), (key, is_seen)) in batch.raw().zip(keys.into_iter().zip(seen)) {
            if depth == VIA {
                via = UrlBatch::via_of(bytes);
                continue;
            }
            let hops = Hops::from_bits(depth);
            let leads_back = is_seen && hops.redirects() > 0 && self.has_redirected(key);
            let is_known = is_seen && !leads_back && !hops.is_seed() && !self.came_long_way(key);
            if is_known || url.read_canonical(bytes).is_err() {
                continue;
            }
            debug_assert_eq!(self.partition.shard_of(&url), self.index, "{url} was sent to the wrong shard");
            let key = if leads_back { self.keys.lone_key(&url) } else { key };
            self.accept_or_note(now, key, &url, (via, depth));
        }
        self.frontier.end_links();
    }

    /// Whether the page of this key has redirected recently, so that another response of it may differ.
    pub(super) fn has_redirected(&self, key: u64) -> bool {
        self.redirecting.as_ref().is_some_and(|recent| recent.holds(key))
    }

    /// A page redirects to an address that was taken for a known one but is available only there: it gets an entry of
    /// its own. Such a target has the page's own key, as when `/d/index.html` redirects to `/d/`, or a server assigns
    /// a session. Where cookies are kept, it is also a page that has itself redirected, as servers redirect a client
    /// until it returns their cookie (RFC 6265). This page is fetched once more, but not a third time.
    pub(super) fn redirected(&mut self, now: Instant, job: &FetchJob, target: &Url) {
        let hops = Hops::from_bits(job.depth).redirect();
        let depth = self.scope.way(hops, target.site(), job.url.site());
        let key = self.keys.key(target);
        let is_twin = !self.keys.are_urls() && *target != job.url && key == self.keys.key(&job.url);
        if !is_twin && !self.has_redirected(key)
            || self.scope.blocks().blocks(target)
            || self.scope.admits(target, target.site(), depth).is_err()
        {
            return;
        }
        let owner = match depth.is_seed() {
            true => self.partition.shard_of(target),
            false => self.partition.shard_of_found(target, Site::of(target.host()), self.index),
        };
        let via = Some(job.url.as_str());
        if let Some(depth) = self.keep_or_send(now, target, self.keys.fingerprint(target), (via, depth), owner) {
            let lone_key = self.keys.lone_key(target);
            self.accept_or_note(now, lone_key, target, (via, depth));
        }
    }

    /// A page's URL is done, for good.
    pub(super) fn note_over(&mut self, now: Instant, end: End) {
        let _stage = stage::enter(Stage::Journal);
        self.log.end(end);
        self.vias.over(end.url);
        self.commits.note(now);
        self.over += 1;
        if let EndKind::Failed(failure) = end.kind {
            self.stats.fail(failure);
        }
    }

    /// Accepts a URL, or notes that there is no room for it.
    fn accept_or_note(&mut self, now: Instant, key: u64, url: &Url, (via, depth): Way<'_>) {
        if self.accept(now, key, url, (via, depth)) == Seen::Full && !self.recent_aside.is_again(key) {
            let _stage = stage::enter(Stage::Journal);
            self.log.set_aside(Found { via, depth, url: url.as_str() });
            self.commits.note(now);
        }
    }

    /// The key of a URL's site.
    pub(super) fn site_key(&mut self, url: &Url) -> SiteKey {
        self.keys.site(self.sites.of(url.host()).name)
    }

    /// Accepts a URL if it was not seen before, the visited set and the queues on disk have room, and its site is
    /// within its share of the set.
    pub(super) fn accept(&mut self, now: Instant, key: u64, url: &Url, (via, depth): Way<'_>) -> Seen {
        if Hops::from_bits(depth).is_seed() {
            // A seed may have been found before.
            let site = self.site_key(url);
            self.frontier.wanted(url, site);
        }
        let hops = Hops::from_bits(depth);
        let key = match self.comes_shorter(key, url, hops) {
            true => {
                self.long_ways.forget(key);
                self.keys.lone_key(url)
            }
            false => key,
        };
        let (free, visited) = (self.visited.room(), self.visited.len());
        // While there is much room, no site can exceed its share, and the site of a duplicate need not be known.
        let site = self.url_shares.may_be_over(visited, free).then(|| self.site_key(url));
        let is_over = site.is_some_and(|site| free > 0 && !self.url_shares.may_take(site, free));
        let is_crowded_out = self.frontier.is_crowded_out(url, &self.spool);
        let seen = {
            let _stage = stage::enter(Stage::Visited);
            if (is_over || is_crowded_out) && !self.visited.contains(key) {
                Seen::Full
            } else {
                self.visited.insert(key)
            }
        };
        match seen {
            Seen::New => {
                let site = site.unwrap_or_else(|| self.site_key(url));
                self.url_shares.took(site);
                self.note_way(key, url, hops);
                let number = {
                    let _stage = stage::enter(Stage::Journal);
                    self.commits.note(now);
                    self.log.accept(Found { via, depth, url: url.as_str() })
                };
                via.into_iter().for_each(|via| self.vias.note(number, via));
                let _stage = stage::enter(Stage::Frontier);
                self.frontier.offer(now, url, site, Ticket { number, depth, is_strangers: false }, &mut self.spool);
            }
            Seen::Before => {}
            Seen::Full => {
                self.stats.set_aside += 1;
                self.stats.over_share += u64::from(is_over);
                if let Some(owners) = self.partition.owners().filter(|_| !is_over && !is_crowded_out) {
                    owners.note_full(self.index);
                }
            }
        }
        seen
    }
}

/// How a URL was found: by which page, if that is known, and the bits of its `Hops`.
pub(super) type Way<'a> = (Option<&'a str>, u16);

/// Whether a canonical URL belongs to this origin.
fn is_at(url: &[u8], origin: &str) -> bool {
    url.strip_prefix(origin.as_bytes()).is_some_and(|rest| rest.starts_with(b"/"))
}

/// Links that left the scope which a shard logs in one run; the others are counted.
const EXTERNAL_MAX: u64 = 20_000_000;
/// Seeds leading out of scope that a shard reports.
const LED_OUTSIDE_TOLD: u64 = 1_000;
