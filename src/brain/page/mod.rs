//! Responses are decoded, scanned for links, judged, and planned as records.
//!
//! Decides: what is kept of a response, which of its links go on, its defects, what it resembles, and what a record
//! says about it.
//! Pure: bytes and limits in, facts out, so the simulator reads pages as production does.
//! A link that its own `rel` or the page advises against is deferred, dropped or treated like others, as
//! `links.nofollow` and `links.from_noindex` say. If the page also links to the same URL without such advice, that
//! advice does not count.
//! [`formats`] decides which of its other formats go on.
//! Embeds go on behind the links, but before the links that are advised against. A URL that is both is a link where
//! the scope allows that, and an embed otherwise.
//! A sitemap index stands for its sitemaps as a redirect does for its target: they have its depth and one redirect
//! more. So endless indexes run into `links.sitemap_nesting_max`, and pages in sitemaps are as deep with an index as
//! without.
//! A refresh on a seed's page is a redirect: `<meta http-equiv=refresh>` is how sites without access to server
//! settings move.
//! Invariants: of a page at most `links.page_links_max` links in `links.page_link_bytes_max` bytes go on, each once,
//! of a sitemap `links.sitemap_links_max` in `links.sitemap_link_bytes_max`; a robots.txt is parsed once.
//! A short response is read in its shard's own turn, a long one in parallel to it ([`reading`]).
//! Leaves to others: sockets (`fetch`), parsing (`http`, `html`, `robots`), where records lie (`warc`), which links
//! are followed (`shard`).

mod again;
mod blemishes;
mod formats;
pub mod interstitial;
mod links;
mod payload_type;
mod preferences;
mod reading;
mod record;
pub mod simhash;

pub use reading::{LongResponse, PageRead};

use std::borrow::Cow;
use std::sync::Arc;

use crate::hops::Hops;
use crate::job::{FetchJob, JobKind};
use crate::kinds::{PageText, TextSample};
use crate::outcome::Fetched;
use crate::scope::Scope;
use crate::stats::Totals;
use crate::transaction::Transaction;
use formats::Alternates;
use links::PageLink;
pub use links::links_bytes;
use preferences::Said;
use ringcrawl_base::stage::{self, Stage};
use ringcrawl_base::time::UnixTime;
use ringcrawl_config::{AdvisedAgainst, Config, RecordKinds, Simhash, Sitemaps, StoredBody};
use ringcrawl_html::{Document, Format, Kind, Summary, anchors_of_html, anchors_of_text};
use ringcrawl_http::{self as http, CodingProblem, Decoded, Decoder};
use ringcrawl_robots::Rules;
use ringcrawl_url::{HashedUrls, Repeats, fingerprint};

/// Reads responses, by the configuration.
#[derive(Clone, Debug)]
pub struct PageReader {
    config: Arc<Config>,
    scope: Scope,
    /// How often the scope was replaced.
    scope_changes: u32,
    /// For the fingerprints of links.
    rng_seed: u64,
}

/// A response that was read.
#[derive(Debug)]
pub struct Page<'a> {
    job: &'a FetchJob,
    transaction: &'a Transaction,
    decoded: Decoded<'a>,
    /// The combined value of its Content-Type fields.
    content_type: Option<Cow<'a, [u8]>>,
    /// What was found in it; `None` for a document that is not scanned.
    summary: Option<Summary>,
    /// What it and its site say about its use.
    said: Said,
    /// The fingerprint for near duplicates; `None` if it is not wanted, or if this is not a page with text.
    simhash: Option<u64>,
    /// Whether it is stored in a segment.
    is_stored: bool,
    /// Whether it is stored with its content codings undone.
    is_stored_decoded: bool,
    /// The kinds of additional records.
    kinds: RecordKinds,
    /// Whether its metadata record has the fingerprint.
    has_simhash: bool,
    fetched: Fetched,
}

impl PageReader {
    /// A reader with the limits and options of `config`.
    pub fn new(config: Arc<Config>) -> PageReader {
        PageReader { config, scope: Scope::default(), scope_changes: 0, rng_seed: 0 }
    }

    /// The same reader in a crawl with a scope, which decides which pages' links are taken and which pages are
    /// stored.
    pub fn within(self, scope: Scope) -> PageReader {
        PageReader { scope, ..self }
    }

    /// The same reader, of the crawl with `rng_seed`.
    pub fn seeded(self, rng_seed: u64) -> PageReader {
        PageReader { rng_seed, ..self }
    }

    /// Replaces the scope.
    pub fn set_scope(&mut self, scope: Scope) {
        self.scope = scope;
        self.scope_changes = self.scope_changes.wrapping_add(1);
    }

    /// Reads the response to `job`, and counts what it is.
    pub fn read<'a>(
        &self,
        job: &'a FetchJob,
        transaction: &'a Transaction,
        decoder: &'a mut Decoder,
        stats: &mut Totals,
    ) -> Page<'a> {
        let decoded = decode(decoder, &transaction.response, &self.limits(job.kind));
        self.find(job, transaction, decoded, stats)
    }

    /// The limits of the response to a job of this kind.
    pub(crate) fn limits(&self, kind: JobKind) -> http::Limits {
        match kind {
            JobKind::Robots => self.config.fetch.limits_of_robots(&self.config.robots),
            _ => self.config.fetch.limits(),
        }
    }

    /// Finds what is in a response with the content `decoded`.
    fn find<'a>(
        &self,
        job: &'a FetchJob,
        transaction: &'a Transaction,
        decoded: Decoded<'a>,
        stats: &mut Totals,
    ) -> Page<'a> {
        let response = &transaction.response;
        let mut page = Page {
            fetched: Fetched {
                status: response.status,
                addr: transaction.ip,
                truncated: response.truncated.or(decoded.truncated),
                redirect: http::redirect_target(&job.url, response.status, response.headers.get("location")),
                retry_after: http::retry_after(&response.headers, transaction.started),
                fresh_for: match job.kind {
                    JobKind::Robots => http::fresh_for(&response.headers, transaction.started),
                    _ => None,
                },
                wire_bytes: response.wire_bytes,
                body_bytes: decoded.bytes.len() as u64,
                ..Fetched::default()
            },
            job,
            transaction,
            decoded,
            content_type: response.headers.joined("content-type"),
            summary: None,
            said: Said::default(),
            simhash: None,
            is_stored: true,
            is_stored_decoded: self.config.store.body == StoredBody::Decoded,
            kinds: self.config.store.records,
            has_simhash: self.config.store.simhash == Simhash::On,
        };
        page.fetched.interstitial = interstitial::find(response.status, &response.headers, &page.decoded.bytes);
        self.find_links(&mut page, stats);
        let content_type = page.content_type.as_deref();
        page.is_stored = job.kind != JobKind::Page
            || self.config.store.types.contain(content_type)
                && self.scope.stores(&job.url, Hops::from_bits(job.depth), content_type);
        self.read_text(&mut page);
        page.fetched.is_noindex =
            page.summary.as_ref().is_some_and(|found| found.robots.is_noindex(transaction.started));
        if page.is_page() {
            let is_image = ringcrawl_html::is_image(page.content_type.as_deref());
            page.said = Said::of(&job.url, &response.headers, is_image, page.summary.as_ref(), job.usage.as_deref());
        }
        page.count(stats);
        page.count_blemishes(self.config.robots.body_bytes_max, stats);
        page
    }

    fn find_links(&self, page: &mut Page<'_>, stats: &mut Totals) {
        let Page { job, transaction, decoded, content_type, summary, fetched, .. } = page;
        let content_type = content_type.as_deref();
        let _stage = stage::enter(Stage::Scan);
        let hops = Hops::from_bits(job.depth);
        let url_bytes_max = self.config.scope.url_bytes_max;
        let (mut too_long, mut over_bytes) = (0, 0);
        let link_bytes_max = self.link_bytes_max(transaction.response.wire_bytes);
        let (mut bytes_left, mut exceeded) = (link_bytes_max, None);
        // Sitemaps compress well, and hold nothing but links.
        let mut sitemap_bytes_left = match self.config.links.sitemaps {
            Sitemaps::Off => bytes_left,
            Sitemaps::Robots => self.config.links.sitemap_link_bytes_max,
        };
        let (mut nested_too_deep, nesting_max) = (0, self.config.links.sitemap_nesting_max);
        // Only URLs that are short enough to be followed: otherwise a long base and ten thousand short references
        // would turn a page into hundreds of megabytes.
        let hash = |url: &str| fingerprint(self.rng_seed, url);
        let mut keep = |links: &mut HashedUrls, kind: Kind, hops: Hops, (url, fingerprint): (&str, u64)| {
            let bytes_left = if kind.is_of_sitemap() { &mut sitemap_bytes_left } else { &mut bytes_left };
            if kind == Kind::Sitemap && hops.redirects() > nesting_max {
                nested_too_deep += 1;
            } else if url.len() > url_bytes_max {
                too_long += 1;
            } else if url.len() > *bytes_left {
                over_bytes += 1;
            } else {
                *bytes_left -= url.len();
                links.push(hops.bits(), url, fingerprint);
            }
        };
        if let (JobKind::Page, Some(target)) = (job.kind, &fetched.redirect) {
            keep(&mut fetched.links, Kind::Link, hops.redirect(), (target.as_str(), hash(target.as_str())));
        }
        // The links of an interstitial are its own.
        if (200..300).contains(&fetched.status) && fetched.interstitial.is_none() {
            // Menus and headings name the same pages repeatedly: each goes on once.
            let mut repeats = Repeats::new();
            let links = &mut fetched.links;
            let body: &[u8] = &decoded.bytes;
            if job.kind == JobKind::Page {
                // A page may link to another twice, and advise against it once.
                let (mut advised_against, mut repeats_of_those) = (HashedUrls::new(), None);
                let (mut embeds, mut repeats_of_embeds) = (HashedUrls::new(), None);
                let mut alternates = Alternates::new(self.config.links.alternates);
                // A slideshow is not a redirect chain: the one redirect too many counts as a link.
                let mut leads_on = hops.is_seed() && hops.redirects() < self.config.scope.redirects_max;
                let drops_advised_against = self.config.links.nofollow == AdvisedAgainst::Obey;
                let mut out = |link: PageLink| {
                    let PageLink { kind, url, is_embed, is_advised_against, format, has_room } = link;
                    // What a page embeds is part of it in any format.
                    let format = if is_embed { Format::Page } else { format };
                    if format != Format::Page && !alternates.admit(format) {
                        return false;
                    }
                    let is_other_format = format != Format::Page;
                    let hops = match kind {
                        _ if is_embed => hops.embed(),
                        // Only the first one counts (HTML standard, "shared declarative refresh steps").
                        Kind::Refresh if std::mem::take(&mut leads_on) => hops.redirect(),
                        // An embed does not lead to sitemaps: they would be embeds chosen by others, wherever they
                        // are.
                        Kind::Sitemap if !hops.is_embed() => hops.redirect().sitemap(),
                        // Its weight starts lower: most repeat the page.
                        _ if is_other_format && is_of_host(url, job.url.host()) => hops.link().deferred(),
                        _ => hops.link(),
                    };
                    let fingerprint = hash(url);
                    if alternates.waits(format) {
                        let is_dropped = is_advised_against && drops_advised_against;
                        return has_room && !is_dropped && alternates.keep(hops, url, fingerprint);
                    }
                    let (to, repeats) = match (is_advised_against, is_embed) {
                        (true, _) => (&mut advised_against, repeats_of_those.get_or_insert_with(Repeats::new)),
                        (false, true) => (&mut embeds, repeats_of_embeds.get_or_insert_with(Repeats::new)),
                        (false, false) => (&mut *links, &mut repeats),
                    };
                    if !has_room {
                        return !repeats.has(fingerprint);
                    }
                    let is_new = repeats.is_new(fingerprint);
                    if is_new {
                        keep(to, kind, hops, (url, fingerprint));
                    }
                    is_new
                };
                let response = links::ScannedResponse { headers: &transaction.response.headers, content_type, body };
                (*summary, exceeded) = links::page(job, &response, &self.config, stats, &mut out);
                let (feeds, left_out) = alternates.of_page(&job.url, hops);
                stats.links_other_formats += left_out;
                for ((depth, url), fingerprint) in feeds.iter().zip(feeds.fingerprints()) {
                    if repeats.is_new(*fingerprint) {
                        keep(links, Kind::Link, Hops::from_bits(depth), (url, *fingerprint));
                    }
                }
                links.extend(&embeds);
                if !self.scope.follows(&job.url, hops, content_type) {
                    stats.links_out_of_scope += (links.len() + advised_against.len()) as u64;
                    links.clear();
                    advised_against.clear();
                }
                let of_page = self.advice(summary.as_ref(), transaction.started);
                self.take_advice(of_page, job.url.host(), links, stats);
                let advice = of_page.max(Some(self.config.links.nofollow));
                let mut others = HashedUrls::new();
                for ((depth, url), fingerprint) in advised_against.iter().zip(advised_against.fingerprints()) {
                    if repeats.is_new(*fingerprint) {
                        others.push(depth, url, *fingerprint);
                    }
                }
                self.take_advice(advice, job.url.host(), &mut others, stats);
                links.extend(&others);
            } else {
                let mut out = |url: &str| {
                    let fingerprint = hash(url);
                    if repeats.is_new(fingerprint) {
                        keep(links, Kind::Sitemap, hops.link().sitemap(), (url, fingerprint));
                    }
                };
                let mut rules = Rules::parse(body, self.config.agent.token(), self.config.robots.body_bytes_max);
                links::sitemaps(job, &rules.take_sitemaps(), &self.config, &mut out);
                // Bytes whose coding could not be undone are not rules, and say nothing about what is allowed.
                let is_text = decoded.problem.is_none() || std::str::from_utf8(body).is_ok();
                fetched.rules = is_text.then_some(rules);
            }
        }
        stats.links_too_deep += nested_too_deep;
        stats.links_too_long += too_long;
        stats.links_over_bytes += over_bytes;
        let dropped = summary.as_ref().map_or(0, |found| found.dropped as u64) + over_bytes;
        let is_of_sitemap = self.config.links.sitemaps != Sitemaps::Off
            && summary.as_ref().is_some_and(|found| found.sitemap.is_some());
        let by_bytes = || match link_bytes_max == self.config.links.page_link_bytes_max {
            _ if is_of_sitemap => "links.sitemap_link_bytes_max",
            true => "links.page_link_bytes_max",
            false => "links.page_link_ratio_max",
        };
        fetched.dropped = (dropped > 0).then(|| (dropped, exceeded.unwrap_or_else(by_bytes)));
    }

    /// What a page with `summary` wants done with its links; `None`: it does not say.
    fn advice(&self, summary: Option<&Summary>, now: UnixTime) -> Option<AdvisedAgainst> {
        let (links, summary) = (&self.config.links, summary?);
        let nofollow = summary.robots.nofollow.then_some(links.nofollow);
        nofollow.max(summary.robots.is_noindex(now).then_some(links.from_noindex))
    }

    /// Applies the configured action to links of a page on `host` that are advised against. Only links to the host
    /// itself are deferred: a deferred URL stays so, and no page may delay another host's pages.
    fn take_advice(&self, advice: Option<AdvisedAgainst>, host: &str, links: &mut HashedUrls, stats: &mut Totals) {
        match advice {
            None | Some(AdvisedAgainst::Ignore) => {}
            Some(AdvisedAgainst::Last) => {
                links.change_depths(|depth, url| {
                    if !is_of_host(url, host) {
                        return depth;
                    }
                    stats.links_deferred += 1;
                    Hops::from_bits(depth).deferred().bits()
                });
            }
            Some(AdvisedAgainst::Obey) => {
                stats.links_advised_against += links.len() as u64;
                links.clear();
            }
        }
    }

    /// Finds the fingerprint of a page that is stored with it, and the sample of one that is examined. Bytes whose
    /// coding could not be undone are not text.
    fn read_text(&self, page: &mut Page<'_>) {
        let is_recorded = self.config.store.simhash == Simhash::On && page.kinds.metadata && page.is_stored;
        let is_examined = page.job.is_examined;
        if !(is_recorded || is_examined) || !page.is_page() || !page.is_readable() {
            return;
        }
        let _stage = stage::enter(Stage::Store);
        let body: &[u8] = &page.decoded.bytes;
        // A packed sitemap or list of URLs is not an archive.
        let may_be_archive = is_examined && page.summary.is_none() && page.fetched.links.is_empty();
        page.fetched.is_archive = may_be_archive && {
            let said = page.content_type.as_deref().map(String::from_utf8_lossy);
            payload_type::is_archive(body, said.as_deref(), page.job.url.path_and_query())
        };
        let document = Document::of(page.content_type.as_deref(), body);
        page.simhash = match document {
            Document::Html if is_recorded => simhash::of_html(body),
            Document::Text if is_recorded => simhash::of_text(body),
            _ => None,
        };
        page.fetched.text = match document {
            Document::Html if is_examined => Some(PageText::Page(TextSample::of(anchors_of_html(body)))),
            Document::Text if is_examined => Some(PageText::Page(TextSample::of(anchors_of_text(body)))),
            Document::Xml if is_examined => Some(PageText::Feed),
            _ => None,
        };
    }

    /// The limit in bytes for links that may go on from a response of `wire_bytes` bytes.
    fn link_bytes_max(&self, wire_bytes: u64) -> usize {
        let config = &self.config.links;
        let by_ratio = usize::try_from(wire_bytes).unwrap_or(usize::MAX).saturating_mul(config.page_link_ratio_max);
        by_ratio.max(LINK_BYTES_FREE).min(config.page_link_bytes_max)
    }
}

impl Page<'_> {
    /// The part of it that the frontier needs.
    pub fn into_fetched(self) -> Fetched {
        self.fetched
    }

    /// Whether its bytes are text in an encoding in which we can find words.
    fn is_readable(&self) -> bool {
        match self.decoded.problem {
            None | Some(CodingProblem::TooLarge | CodingProblem::OverRatio | CodingProblem::Mislabelled) => {
                self.summary.as_ref().is_none_or(|found| found.encoding.is_ascii_compatible())
            }
            Some(_) => std::str::from_utf8(&self.decoded.bytes).is_ok(),
        }
    }

    /// Whether the counters treat it as a page: the body of a 2xx response that is no interstitial.
    pub fn is_page(&self) -> bool {
        self.job.kind == JobKind::Page
            && (200..300).contains(&self.fetched.status)
            && self.fetched.interstitial.is_none()
    }

    /// Bytes of its body, decoded.
    pub fn body_bytes(&self) -> u64 {
        self.fetched.body_bytes
    }

    fn count(&self, stats: &mut Totals) {
        stats.coded += u64::from(self.decoded.coding.is_some());
        stats.status(self.fetched.status);
        let is_robots_4xx = self.job.kind == JobKind::Robots && matches!(self.fetched.status, 400..500);
        stats.robots_4xx += u64::from(is_robots_4xx);
        stats.bytes_wire += self.fetched.wire_bytes;
        stats.bytes_decoded += self.fetched.body_bytes;
        stats.pages += u64::from(self.is_page());
        stats.not_stored += u64::from(!self.is_stored);
    }
}

fn decode<'a>(decoder: &'a mut Decoder, response: &'a http::Response, limits: &http::Limits) -> Decoded<'a> {
    let _stage = stage::enter(Stage::Decode);
    decoder.decode(&response.headers, &response.body, limits)
}

/// Whether a canonical URL belongs to this host.
fn is_of_host(url: &str, host: &str) -> bool {
    let behind = url.split_once("://").map_or("", |(_, behind)| behind);
    behind.strip_prefix(host).is_some_and(|rest| rest.starts_with(['/', ':']))
}

/// Bytes of links that any page may have, however short it is: some 600 of usual length.
const LINK_BYTES_FREE: usize = 64 << 10;

#[cfg(test)]
mod tests;
