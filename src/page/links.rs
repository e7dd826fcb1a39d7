//! The links of a response.
//!
//! Decides: which way links are looked for in it, by what it is and what the configuration wants; what header fields say
//! counts for every document, its body's links only for those that are read. Of robots.txt it is the sitemaps.
//! What a page of HTML embeds is taken, too, where that is configured; not of what was fetched as an embed itself, as such a chain
//! would have no end that a depth bounds.
//! Invariants: no more than a [`Budget`] of links a response.
//! Leaves to others: which links are followed (`shard`), what becomes of advice against them ([`super`]).

use std::borrow::Cow;

use crate::config::{Config, Documents, Embeds, Sitemaps};
use crate::hops::Hops;
use crate::http;
use crate::links::{self, Budget, Document, Kind, Kinds, Page, Summary, Xml};
use crate::outcome::FetchJob;
use crate::stats::Totals;

/// A link of a page.
pub struct PageLink<'a> {
    /// Where it was found.
    pub kind: Kind,
    /// Where it leads.
    pub url: &'a str,
    /// The page embeds what is there.
    pub is_embed: bool,
    /// Its `rel` advises against it.
    pub is_advised_against: bool,
    /// It is the page in another format, such as a feed.
    pub is_other_format: bool,
}

impl<'a> PageLink<'a> {
    /// One of which nothing more is said.
    fn plain(kind: Kind, url: &'a str) -> PageLink<'a> {
        PageLink { kind, url, is_embed: false, is_advised_against: false, is_other_format: false }
    }
}

/// Gives the links of a page's response, whose body is `body` after content decoding, to `out`. `None` when it is no document that
/// is looked through.
pub fn page(
    job: &FetchJob,
    headers: &http::Headers,
    body: &[u8],
    config: &Config,
    stats: &mut Totals,
    out: &mut dyn FnMut(PageLink),
) -> Option<Summary> {
    let content_type = headers.joined("content-type");
    let header = content_type.as_deref().map(String::from_utf8_lossy);
    let budget = &mut Budget::of_page(&config.links);
    let page = |body| Page { body, content_type: header.as_deref(), url: &job.url, agent: config.agent.token() };
    let mut found = None;
    let mut document = Document::of(content_type.as_deref(), body);
    let mut unpacked: Cow<[u8]> = body.into();
    if document == Document::Gzip && config.links.documents != Documents::Html {
        // Most of these files are archives: their beginning tells.
        let limits = http::Limits::from(&config.fetch);
        let beginning =
            http::gunzip(body, &http::Limits { body_bytes_max: limits.body_bytes_max.min(4_096), ..limits });
        document = match Document::of(None, &beginning) {
            listing @ (Document::Xml | Document::Text) => {
                unpacked = http::gunzip(body, &limits).into();
                listing
            }
            _ => Document::Other,
        };
    }
    if document == Document::Xml && config.links.documents != Documents::Html {
        match links::scan_xml(&page(&unpacked), &Kinds::FOLLOW, budget, &mut |kind, url| {
            out(PageLink::plain(kind, url.as_str()))
        }) {
            Xml::Listing(summary) => {
                stats.listings += 1;
                stats.sitemaps += u64::from(summary.sitemap.is_some());
                found = Some(*summary);
            }
            Xml::Html => document = Document::Html,
            Xml::Other => {}
        }
    }
    match document {
        Document::Html => {
            let embeds = config.links.embeds != Embeds::Off && !Hops::from_bits(job.depth).is_embed();
            let kinds = if embeds { &Kinds::EMBED } else { &Kinds::FOLLOW };
            let summary = links::scan(&page(&unpacked), kinds, budget, &mut |found| {
                out(PageLink {
                    kind: found.kind,
                    url: found.url.as_str(),
                    is_embed: found.kind.is_embed(found.rel),
                    is_advised_against: found.is_advised_against,
                    is_other_format: found.is_other_format,
                })
            });
            found = Some(summary);
        }
        Document::Text if config.links.documents == Documents::All => {
            let summary = links::scan_lines(&page(&unpacked), &Kinds::FOLLOW, budget, &mut |kind, url| {
                out(PageLink::plain(kind, url.as_str()))
            });
            stats.listings += u64::from(summary.links > 0);
            found = Some(summary);
        }
        Document::Pdf => stats.pdfs += 1,
        _ => {}
    }
    // Most responses have neither field.
    let mut links = headers.all("link").peekable();
    if links.peek().is_some() {
        let summary = found.get_or_insert_with(|| Summary::none(encoding_rs::UTF_8));
        links::scan_link_fields(links, &job.url, &Kinds::FOLLOW, budget, summary, &mut |url| {
            out(PageLink::plain(Kind::Link, url.as_str()))
        });
    }
    for tag in headers.all("x-robots-tag") {
        let summary = found.get_or_insert_with(|| Summary::none(encoding_rs::UTF_8));
        links::hear_robots_tag(tag, config.agent.token(), summary);
    }
    if let Some(summary) = &found {
        stats.links += summary.links as u64;
        stats.links_dropped += summary.dropped as u64;
    }
    found
}

/// Gives the sitemaps that robots.txt names to `out`, where they are wanted.
pub fn sitemaps(job: &FetchJob, sitemaps: &[Box<str>], config: &Config, out: &mut dyn FnMut(&str)) {
    if config.links.sitemaps == Sitemaps::Robots {
        let mut budget = Budget::of_page(&config.links);
        for sitemap in sitemaps {
            if budget.admits(sitemap)
                && let Ok(url) = job.url.join(sitemap)
            {
                budget.took(url.as_str().len());
                out(url.as_str());
            }
        }
    }
}
