//! URLs that are found: is it in scope, whose is it, is it new?
//!
//! Decides: a link that was accepted before needs no further work: it was in scope at that time and belongs to this
//! shard. One query to the visited set finds all of these. Of the others the scope and the partition say whose they
//! are. A new one is accepted if the visited set has room and its site is within its share of that room.
//! Invariants: a URL is accepted at most once, or once more: if redirects led back to it, or by a short path after a
//! long one ([`long_ways`]).
//! Leaves to others: what becomes of an accepted URL (`frontier`, `durability`) and of another shard's (`outbox`).

mod external;
mod keys;
mod long_ways;

use std::borrow::Cow;

use crate::frontier::Frontier;
use crate::hops::Hops;
use crate::job::{FetchJob, JobKind};
use crate::route::Partition;
use crate::scope::{ClearHosts, Outside, Scope};
use crate::site_shares::SiteShares;
use crate::stats::Totals;
use crate::visited::{Seen, Table};
use external::ExternalLinks;
use keys::Keys;
use long_ways::{LongWays, WayMax};
use ringcrawl_base::RecentHashes;
use ringcrawl_base::stage::{self, Stage};
use ringcrawl_config::{Cookies, Embeds};
use ringcrawl_url::{HashedUrls, Site, SiteKey, Sites, Url, UrlBatch};

use super::Setup;
use super::effect_queue::EffectQueue;

/// What a shard knows of URLs, and by which rules it takes them in.
#[derive(Debug)]
pub(super) struct Intake {
    shard: u16,
    partition: Partition,
    scope: Scope,
    /// Hosts where the scope blocks nothing.
    clear_hosts: ClearHosts,
    pub(super) keys: Keys,
    sites: Sites,
    /// The known URLs.
    pub(super) visited: Table,
    /// Visited URLs per site.
    url_shares: SiteShares,
    /// URLs that found no room and are in the log: pages link to the same ones again and again.
    recent_aside: RecentHashes,
    /// Keys of URLs whose pages redirected recently, in this run; empty where no cookie is kept that could change
    /// that.
    redirecting: Option<RecentHashes>,
    long_ways: LongWays,
    /// Links to URLs that were accepted before are processed in full: they are counted by URL or listed, or a URL
    /// accepted here may belong to another shard.
    pub(super) follows_seen_links: bool,
    pub(super) external_links: ExternalLinks,
}

/// A response whose links are taken in.
#[derive(Debug)]
pub(super) struct Finder<'a> {
    job: &'a FetchJob,
    site: Site<'a>,
    key: SiteKey,
    is_embed: bool,
    /// The off-site distance of its links, at least.
    least_offsite: u16,
}

/// What a link is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Link {
    /// Nothing to do for it.
    Nothing,
    /// A link to a URL of another host that was accepted before.
    Known,
    /// It leads out of scope.
    Outside(Hops, Outside),
    /// It leads to a URL of shard `owner`.
    In {
        /// The shard.
        owner: u16,
        /// How the URL was found.
        hops: Hops,
        /// It is a link, not an embed, to another host.
        is_abroad: bool,
    },
}

/// Whether a URL is accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Admission {
    /// It is new, and belongs to this site.
    New(SiteKey),
    /// It was accepted before.
    Before,
    /// There is no room for it.
    Full,
}

impl Finder<'_> {
    /// The key of its site.
    pub(super) fn key(&self) -> SiteKey {
        self.key
    }

    /// Whether a link that leaves the scope this way is listed: an embed is not a page in the first place, and no
    /// crawled page links to what an embed links to.
    pub(super) fn lists(&self, hops: Hops, outside: Outside) -> bool {
        outside == Outside::Elsewhere && !hops.is_embed() && !self.is_embed
    }
}

impl Intake {
    /// No URL is known yet; `follows_seen_links`: every link counts, whether its URL is new or not.
    pub(super) fn new(setup: &Setup, follows_seen_links: bool) -> Intake {
        let Setup { index, rng_seed, ref partition, ref scope, ref config, .. } = *setup;
        // A URL that was fetched as an embed may be another page's external link.
        let lists_embeds = config.lists_external_links() && config.links.embeds != Embeds::Off;
        Intake {
            shard: index,
            partition: partition.clone(),
            scope: scope.clone(),
            clear_hosts: ClearHosts::default(),
            keys: Keys::new(rng_seed, config.visited.key_rules()),
            sites: Sites::new(),
            visited: Table::new(
                config.visited.urls_max.div_ceil(u64::from(partition.shards().max(1))),
                config.visited.fingerprint_bits,
            ),
            url_shares: SiteShares::new(URL_SHARE_PLACES, URL_TIMES_FREE),
            recent_aside: RecentHashes::default(),
            redirecting: (config.http.cookies == Cookies::Site).then(RecentHashes::default),
            long_ways: LongWays::default(),
            follows_seen_links: follows_seen_links || !config.exchange.mode.keeps_parts() || lists_embeds,
            external_links: ExternalLinks::new(config.lists_external_links()),
        }
    }

    /// Another scope takes effect.
    pub(super) fn set_scope(&mut self, scope: Scope) {
        (self.scope, self.clear_hosts) = (scope, ClearHosts::default());
    }

    /// The response to `job`, whose links come next.
    pub(super) fn finder<'a>(&mut self, job: &'a FetchJob) -> Finder<'a> {
        let site = self.sites.of(job.url.host());
        Finder {
            job,
            site,
            key: self.keys.site(site.name),
            is_embed: Hops::from_bits(job.depth).is_embed(),
            // It is unknown what led to a robots.txt.
            least_offsite: if job.kind == JobKind::Robots { self.scope.least_offsite(site.name) } else { 0 },
        }
    }

    /// The keys of its links, and which of them need no further work unless they are special.
    pub(super) fn keys_of<'l>(&mut self, links: &'l HashedUrls) -> (Cow<'l, [u64]>, Vec<bool>) {
        let keys = self.keys.of_links(links);
        let seen = if self.follows_seen_links { vec![false; keys.len()] } else { self.are_seen(&keys) };
        (keys, seen)
    }

    /// The same for URLs that another shard sent.
    pub(super) fn keys_of_batch(&mut self, batch: &UrlBatch) -> (Vec<u64>, Vec<bool>) {
        let keys = self.keys.of_batch(batch);
        let seen = self.are_seen(&keys);
        (keys, seen)
    }

    /// Whether each of these keys belongs to an accepted URL.
    pub(super) fn are_seen(&self, keys: &[u64]) -> Vec<bool> {
        let _stage = stage::enter(Stage::Visited);
        self.visited.contains_each(keys)
    }

    /// What a link is, with its text in `url` unless it is nothing. Its off-site distance grows if it leads to
    /// another site.
    #[inline]
    pub(super) fn judge_link(
        &mut self,
        finder: &Finder<'_>,
        (depth, bytes): (u16, &[u8]),
        (key, is_seen): (u64, bool),
        url: &mut Url,
        stats: &mut Totals,
    ) -> Link {
        let hops = Hops::from_bits(depth);
        let is_seen = is_seen && !hops.is_seed() && !self.long_ways.contains(key);
        // Most links stay on the page's host.
        if is_seen && is_at(bytes, finder.job.url.origin()) || url.read_canonical(bytes).is_err() {
            return Link::Nothing;
        }
        let is_at_host = url.host() == finder.job.url.host();
        // An embed is not a link: images of half the web lie on a few hosts.
        let is_abroad = !is_at_host && !hops.is_embed();
        if is_seen {
            return if is_abroad { Link::Known } else { Link::Nothing };
        }
        let hops = hops.with_offsite(hops.offsite().max(finder.least_offsite));
        let hops = match is_at_host {
            true => hops,
            false => self.scope.way(hops, self.sites.of(url.host()).name, finder.site.name),
        };
        match self.owner(url, hops, stats) {
            Ok(owner) => Link::In { owner, hops, is_abroad },
            Err(outside) => Link::Outside(hops, outside),
        }
    }

    /// The key under which to accept a URL that another shard sent, with its text in `url`; `None` if it was accepted
    /// before.
    #[inline]
    pub(super) fn judge_sent(
        &mut self,
        (depth, bytes): (u16, &[u8]),
        (key, is_seen): (u64, bool),
        url: &mut Url,
    ) -> Option<u64> {
        let hops = Hops::from_bits(depth);
        let leads_back = is_seen && hops.redirects() > 0 && self.has_redirected(key);
        let is_known = is_seen && !leads_back && !hops.is_seed() && !self.long_ways.contains(key);
        if is_known || url.read_canonical(bytes).is_err() {
            return None;
        }
        debug_assert_eq!(self.partition.shard_of(url), self.shard, "{url} was sent to the wrong shard");
        Some(if leads_back { self.keys.lone_key(url) } else { key })
    }

    /// A page redirects to an address that was taken for a known one but is available only there: it gets an entry of
    /// its own, under its lone key. Returns its owner. Such a target has the page's own key, as when `/d/index.html`
    /// redirects to `/d/`, or a server assigns a session. Where cookies are kept, it is also a page that has itself
    /// redirected, as servers redirect a client until it returns their cookie (RFC 6265). This page is fetched once
    /// more, but not a third time.
    pub(super) fn judge_redirect(&mut self, job: &FetchJob, target: &Url) -> Option<(u16, Hops)> {
        let hops = Hops::from_bits(job.depth).redirect();
        let hops = self.scope.way(hops, target.site(), job.url.site());
        let key = self.keys.key(target);
        let is_twin = !self.keys.are_urls() && *target != job.url && key == self.keys.key(&job.url);
        if !is_twin && !self.has_redirected(key)
            || self.scope.blocks().blocks(target)
            || self.scope.admits(target, target.site(), hops).is_err()
        {
            return None;
        }
        let owner = match hops.is_seed() {
            true => self.partition.shard_of(target),
            false => self.partition.shard_of_found(target, Site::of(target.host()), self.shard),
        };
        Some((owner, hops))
    }

    /// The owner, if the URL is in scope.
    pub(super) fn owner(&mut self, url: &Url, hops: Hops, stats: &mut Totals) -> Result<u16, Outside> {
        let _stage = stage::enter(Stage::Exchange);
        let site = self.sites.of(url.host());
        let is_blocked = !self.clear_hosts.is_clear(self.scope.blocks(), url.host()) && self.scope.blocks().blocks(url);
        let admitted = match is_blocked {
            true => Err(Outside::Blocked),
            false => self.scope.admits(url, site.name, hops),
        };
        if let Err(outside) = admitted {
            *match outside {
                Outside::Blocked => &mut stats.links_blocked,
                Outside::Depth => &mut stats.links_too_deep,
                Outside::Redirects => &mut stats.redirects_too_many,
                _ => &mut stats.links_out_of_scope,
            } += 1;
            return Err(outside);
        }
        // A seed was given, not found.
        if hops.is_seed() {
            return Ok(self.partition.shard_of_known(url, site));
        }
        Ok(self.partition.shard_of_found(url, site, self.shard))
    }

    /// The sites of seeds are exempt from allowances, even while their waiting URLs are read.
    pub(super) fn want(&mut self, seeds: &[Url], frontier: &mut Frontier) {
        // Before all owners are known, sites have none: seeds are marked as wanted when they are sown.
        for seed in seeds.iter().filter(|_| self.partition.is_settled()) {
            let site = self.sites.of(seed.host());
            if self.partition.shard_of_known(seed, site) == self.shard {
                frontier.wanted(seed, self.keys.site(site.name));
            }
        }
    }

    /// The fingerprint by which another shard's URL is known as sent. A URL found by a long path must not hold back
    /// the same URL found by a short one.
    pub(super) fn sent_fingerprint(&mut self, url: &Url, fingerprint: u64, hops: Hops) -> u64 {
        if self.way_max(url).is_deep(hops) { !fingerprint } else { fingerprint }
    }

    /// The key of a URL's site.
    pub(super) fn site_key(&mut self, url: &Url) -> SiteKey {
        self.keys.site(self.sites.of(url.host()).name)
    }

    /// Stands in for the sites that link to a batch of URLs of another shard, when it is the `number`-th URL.
    pub(super) fn strangers_key(&self, number: u64) -> SiteKey {
        self.keys.site(&format!("batch {number}"))
    }

    /// Accepts a URL if it was not seen before, the visited set has room, its site is within its share of that room,
    /// and the queues on disk have room for it.
    pub(super) fn admit(
        &mut self,
        key: u64,
        url: &Url,
        hops: Hops,
        is_crowded_out: bool,
        stats: &mut Totals,
    ) -> Admission {
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
                self.url_shares.changed(site, 0, 1);
                self.note_way(key, url, hops);
                Admission::New(site)
            }
            Seen::Before => Admission::Before,
            Seen::Full => {
                stats.set_aside += 1;
                stats.over_share += u64::from(is_over);
                if let Some(owners) = self.partition.owners().filter(|_| !is_over && !is_crowded_out) {
                    owners.note_full(self.shard);
                }
                Admission::Full
            }
        }
    }

    /// Whether a URL that found no room is to be logged: it was not logged lately.
    pub(super) fn is_news_aside(&mut self, key: u64) -> bool {
        !self.recent_aside.is_again(key)
    }

    /// An earlier run has so many URLs.
    pub(super) fn reserve(&mut self, urls: u64) {
        self.visited.reserve(urls);
    }

    /// These URLs of an earlier run will be known again: reads their places in the visited set, many at a time.
    pub(super) fn read_ahead(&mut self, urls: &UrlBatch) {
        let keys = self.keys.of_batch(urls);
        self.visited.contains_each(&keys);
    }

    /// A URL of an earlier run is known again. Room does not matter here: accepted URLs stay accepted even when
    /// `visited.urls_max` is lower than before. Returns its site, and whether it was not known before.
    pub(super) fn remember(&mut self, url: &Url, hops: Hops) -> (SiteKey, bool) {
        let key = self.keys.key(url);
        let site = self.site_key(url);
        let mut is_new = self.visited.insert_anyway(key);
        is_new.then(|| self.url_shares.changed(site, 0, 1));
        match is_new {
            true => self.note_way(key, url, hops),
            false => self.long_ways.forget(key),
        }
        self.note_long_redirects(url, hops);
        // It was accepted a second time: the page of its key led here, its own redirects led back to it, or it was
        // found by a shorter path. If no page led here, this keeps a URL that was set aside before from being
        // accepted twice.
        let has_place = !is_new || !self.keys.are_urls() && hops.redirects() > 0;
        if has_place {
            let is_alone = self.visited.insert_anyway(self.keys.lone_key(url));
            is_alone.then(|| self.url_shares.changed(site, 0, 1));
            is_new |= is_alone;
        }
        (site, is_new)
    }

    /// The earlier run has been read completely.
    pub(super) fn is_taken_up(&mut self) {
        self.long_ways.forget_redirects();
    }

    /// Whether a URL that was set aside may have an entry of its own, under its lone key: a redirect led to it.
    pub(super) fn may_be_alone(&self, key: u64, hops: Hops) -> bool {
        hops.redirects() > 0 && (!self.keys.are_urls() || self.has_redirected(key))
    }

    /// Such a URL was accepted under its key: the same URL may come again, where its key is another.
    pub(super) fn note_alone(&mut self, url: &Url) {
        if !self.keys.are_urls() {
            let site = self.site_key(url);
            if self.visited.insert(self.keys.lone_key(url)) == Seen::New {
                self.url_shares.changed(site, 0, 1);
            }
        }
    }

    /// A page redirects.
    pub(super) fn note_redirect(&mut self, url: &Url, hops: Hops) {
        if let Some(recent) = &mut self.redirecting {
            recent.note(self.keys.key(url));
        }
        self.note_long_redirects(url, hops);
    }

    /// Whether the page of this key has redirected recently, so that another response of it may differ.
    fn has_redirected(&self, key: u64) -> bool {
        self.redirecting.as_ref().is_some_and(|recent| recent.holds(key))
    }

    fn comes_shorter(&mut self, key: u64, url: &Url, hops: Hops) -> bool {
        self.long_ways.contains(key) && {
            let max = self.way_max(url);
            self.long_ways.has_longer(key, hops, max)
        }
    }

    fn note_way(&mut self, key: u64, url: &Url, hops: Hops) {
        let max = self.way_max(url);
        self.long_ways.note(key, hops, max);
    }

    fn note_long_redirects(&mut self, url: &Url, hops: Hops) {
        let max = self.way_max(url);
        self.long_ways.note_redirects(hops, max, || self.keys.key(url));
    }

    fn way_max(&mut self, url: &Url) -> WayMax {
        WayMax::new(self.scope.way_max(url, self.sites.of(url.host()).name))
    }

    /// A seed, or the target of a seed's redirect, leads out of scope: the crawl may get nothing else from it. The
    /// note says how to fix that.
    pub(super) fn tell_led_outside(
        &self,
        job: &FetchJob,
        (target, outside): (&Url, Outside),
        effects: &mut EffectQueue,
        stats: &mut Totals,
    ) {
        stats.seeds_led_outside += 1;
        if stats.seeds_led_outside > LED_OUTSIDE_TOLD {
            return;
        }
        effects.note(external::why_outside(job, target, outside, self.scope.follow()));
        if stats.seeds_led_outside == LED_OUTSIDE_TOLD {
            effects.note(format!(
                "{LED_OUTSIDE_TOLD} seeds lead out of scope; further ones are counted (seeds_led_outside)"
            ));
        }
    }
}

/// Whether a canonical URL belongs to this origin.
fn is_at(url: &[u8], origin: &str) -> bool {
    url.strip_prefix(origin.as_bytes()).is_some_and(|rest| rest.starts_with(b"/"))
}

/// Seeds leading out of scope that a shard reports.
const LED_OUTSIDE_TOLD: u64 = 1_000;
/// A site may have at most this many times as many URLs as there is free room.
pub const URL_TIMES_FREE: u64 = 15;
/// Slots in which the URLs of sites are counted.
const URL_SHARE_PLACES: usize = 1 << 16;
