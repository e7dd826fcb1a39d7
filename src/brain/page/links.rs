//! The links of a response.
//!
//! Decides: how to search it for links, by what it is and what the configuration wants. Header fields count for every
//! document, links in the body only for documents that are read. For robots.txt it is the sitemaps. A response named
//! as a sitemap (`Hops::is_sitemap`) is judged by its bytes, whatever the server says that it is.
//! What an HTML page embeds is taken too, if configured. Documents fetched as an embed are excepted, because no depth
//! would bound such a chain.
//! Invariants: no more than a [`Budget`] of links a response.
//! Leaves to others: which links are followed (`shard`), what becomes of advice against them ([`super`]).

use std::borrow::Cow;

use crate::hops::Hops;
use crate::job::FetchJob;
use crate::stats::Totals;
use ringcrawl_config::{Config, Documents, Embeds, Links, Sitemaps};
use ringcrawl_html::{self as html, Document, FieldLink, Format, Kind, Kinds, Page, Summary, Xml};
use ringcrawl_http as http;

/// Memory of the links of a response that is read, and of another one. A sitemap's links wait for its end before they
/// are checked.
pub fn links_bytes(config: &Links) -> u64 {
    let of = |bytes_times: u64, bytes: usize, links: usize| bytes_times * bytes as u64 + links as u64 * LINK_BYTES;
    let of_page = of(4, config.page_link_bytes_max, config.page_links_max);
    match config.sitemaps {
        Sitemaps::Off => of_page,
        Sitemaps::Robots => of_page.max(of(6, config.sitemap_link_bytes_max, config.sitemap_links_max)),
    }
}

/// A link of the current page, in addition to its text.
const LINK_BYTES: u64 = 128;

/// A link of a page.
pub struct PageLink<'a> {
    /// Where it was found.
    pub kind: Kind,
    /// Where it leads.
    pub url: &'a str,
    /// The page embeds it.
    pub is_embed: bool,
    /// Its `rel` advises against it.
    pub is_advised_against: bool,
    /// The format, if it leads to the page itself in another format.
    pub format: Format,
    /// Whether there is room for a URL that was not given before.
    pub has_room: bool,
}

/// The response to scan.
pub struct ScannedResponse<'a> {
    /// Its header fields.
    pub headers: &'a http::Headers,
    /// The combined value of its Content-Type fields.
    pub content_type: Option<&'a [u8]>,
    /// After content decoding.
    pub body: &'a [u8],
}

impl<'a> PageLink<'a> {
    /// A link without further properties.
    fn plain(kind: Kind, url: &'a str, has_room: bool) -> PageLink<'a> {
        PageLink { kind, url, is_embed: false, is_advised_against: false, format: Format::Page, has_room }
    }
}

/// Gives the links in a page's response to `out`, which returns whether one is new to it; where there is no room it
/// takes no new ones. Returns what was found, `None` for a document that is not scanned, and the limits that dropped
/// links exceeded.
pub fn page(
    job: &FetchJob,
    response: &ScannedResponse,
    config: &Config,
    stats: &mut Totals,
    out: &mut dyn FnMut(PageLink) -> bool,
) -> (Option<Summary>, Option<&'static str>) {
    let ScannedResponse { headers, content_type, body } = *response;
    let header = content_type.map(String::from_utf8_lossy);
    let budget = &mut config.links.budget();
    let page = |body| Page { body, content_type: header.as_deref(), url: &job.url, agent: config.agent.token() };
    let mut found = None;
    let said = Document::of(content_type, body);
    let mut document = said;
    let mut unpacked: Cow<[u8]> = body.into();
    if Hops::from_bits(job.depth).is_sitemap() && config.links.documents != Documents::Html {
        if let Some((listing, text)) = sitemap(body, &config.fetch.limits()) {
            (document, unpacked) = (listing, text);
        }
    } else if document == Document::Gzip && config.links.documents != Documents::Html {
        // Most of these files are archives; the beginning shows it.
        let limits = config.fetch.limits();
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
        match html::scan_xml(&page(&unpacked), &Kinds::FOLLOW, budget, &mut |kind, url| {
            out(PageLink::plain(kind, url.as_str(), true));
        }) {
            Xml::Listing(summary) => {
                stats.listings += 1;
                stats.sitemaps += u64::from(summary.sitemap.is_some());
                found = Some(*summary);
            }
            Xml::Html => document = Document::Html,
            // It was named as a sitemap, but is a page.
            Xml::Other if said == Document::Html => document = said,
            Xml::Other => {}
        }
    }
    match document {
        Document::Html => {
            let embeds = config.links.embeds != Embeds::Off && !Hops::from_bits(job.depth).is_embed();
            let kinds = if embeds { &Kinds::EMBED } else { &Kinds::FOLLOW };
            let summary = html::scan(&page(&unpacked), kinds, budget, &mut |found| {
                out(PageLink {
                    kind: found.kind,
                    url: found.url.as_str(),
                    is_embed: found.kind.is_embed(found.rel),
                    is_advised_against: found.is_advised_against,
                    format: found.format,
                    has_room: found.has_room,
                })
            });
            found = Some(summary);
        }
        Document::Text if config.links.documents == Documents::All => {
            let summary = html::scan_lines(&page(&unpacked), &Kinds::FOLLOW, budget, &mut |kind, url| {
                out(PageLink::plain(kind, url.as_str(), true));
            });
            stats.listings += u64::from(summary.links > 0);
            found = Some(summary);
        }
        Document::Pdf => stats.pdfs += 1,
        _ => {}
    }
    // Most responses have none of these fields.
    let none = || Summary::none(encoding_rs::UTF_8);
    let mut of_field = |link: FieldLink| {
        let FieldLink { kind, url, format, has_room } = link;
        out(PageLink { format, ..PageLink::plain(kind, url.as_str(), has_room) })
    };
    let (mut has_links, mut has_refreshed) = (false, false);
    for (name, value) in headers.iter() {
        let is = |written: &str| name.eq_ignore_ascii_case(written.as_bytes());
        match name.len() {
            4 => has_links |= is("link"),
            // The first one counts.
            7 if !has_refreshed && is("refresh") => {
                has_refreshed = true;
                let summary = found.get_or_insert_with(none);
                html::scan_refresh_field(value, &job.url, budget, summary, &mut of_field);
            }
            10 | 12 if is("robots-tag") || is("x-robots-tag") => {
                html::hear_robots_tag(value, config.agent.token(), found.get_or_insert_with(none));
            }
            _ => {}
        }
    }
    if has_links {
        let (values, summary) = (headers.all("link"), found.get_or_insert_with(none));
        html::scan_link_fields(values, &job.url, &Kinds::FOLLOW, budget, summary, &mut of_field);
    }
    if let Some(summary) = &found {
        stats.links += summary.links as u64;
        stats.links_dropped += summary.dropped as u64;
    }
    (found, budget.exceeded())
}

/// A document that was named as a sitemap and is one by its bytes. It may be packed twice: by the author of the file,
/// and by a server that packs all files. The sitemaps protocol (sitemaps.org, "Sitemap file location", "Other Sitemap
/// formats") defines XML and text with a URL a line, each maybe in gzip, but no media types: servers send any.
fn sitemap<'a>(body: &'a [u8], limits: &http::Limits) -> Option<(Document, Cow<'a, [u8]>)> {
    let mut text: Cow<[u8]> = body.into();
    for _ in 0..PACKED_MAX {
        if Document::of(None, &text) == Document::Gzip {
            text = http::gunzip(&text, limits).into();
        }
    }
    match Document::of(None, &text) {
        Document::Xml => Some((Document::Xml, text)),
        Document::Text if begins_as_url(&text) => Some((Document::Text, text)),
        _ => None,
    }
}

/// Whether the first line is a URL, as in a text that lists URLs.
fn begins_as_url(text: &[u8]) -> bool {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text).trim_ascii_start();
    [&b"http://"[..], b"https://"]
        .iter()
        .any(|scheme| text.get(..scheme.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(scheme)))
}

/// How many times a sitemap may be packed.
const PACKED_MAX: usize = 2;

/// Gives the sitemaps that robots.txt names to `out`, where they are wanted.
pub fn sitemaps(job: &FetchJob, sitemaps: &[Box<str>], config: &Config, out: &mut dyn FnMut(&str)) {
    if config.links.sitemaps == Sitemaps::Robots {
        let mut budget = config.links.budget();
        for sitemap in sitemaps {
            if budget.admits(sitemap)
                && let Ok(url) = job.url.join(sitemap)
                && budget.took(url.as_str().len(), true)
            {
                out(url.as_str());
            }
        }
    }
}
