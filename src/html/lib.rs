//! Links: finds all places with a URL in HTML, as an HTML tokenizer reads them; and in sitemaps, feeds, lists and
//! header fields.
//!
//! Decides: one pass over the bytes and no tree. Tags, attributes, comments and scripts are read exactly as the HTML
//! standard's tokenizer reads them; of the tree we track only what changes how bytes are read (SVG, MathML and
//! templates). Scripts are not run, so `<noscript>` holds markup.
//!
//! The page path: `charset` finds the encoding; `tokenizer` finds tags, by `block` and `wanted`; `foreign` tracks the
//! namespace; `pass` picks elements and attributes; `scan` turns them into references, which `value` decodes;
//! `listed` extracts URLs from lists; `url` makes them absolute. `document` separates HTML from documents for
//! `listing`. `header` reads the fields before the body.
//!
//! Invariants: pure; linear time, whatever the bytes; no byte can cause a panic.
//! Limits: a [`Budget`] for a page; a URL of more than 65,535 bytes is invalid; a `rel` has 16 tokens.
//! Leaves to others: fetching, content decoding, whether a link may be followed.
//!
//! ```
//! use ringcrawl_html::{Budget, Kinds, Page, scan};
//! use ringcrawl_url::Url;
//!
//! let url = Url::parse("https://example.org/a/").expect("a URL");
//! let page = Page { body: b"<a href=b>there</a>", content_type: Some("text/html"), url: &url, agent: "examplebot" };
//! let mut links = Vec::new();
//! scan(&page, &Kinds::FOLLOW, &mut Budget::of_links(100), &mut |found| {
//!     links.push(found.url.to_string());
//!     true
//! });
//! assert_eq!(links, ["https://example.org/a/b"]);
//! ```

mod anchors;
mod block;
mod budget;
mod charset;
mod directives;
mod document;
mod entities;
mod expiry;
mod foreign;
mod header;
mod kinds;
mod listed;
mod listing;
mod markup;
mod mime;
mod pass;
mod scan;
mod tokenizer;
mod value;
mod wanted;

#[cfg(test)]
mod tests;

use encoding_rs::Encoding;

pub use anchors::{anchors_of_html, anchors_of_text};
pub use block::set_baseline;
pub use budget::{Budget, Limits};
pub use directives::Directives;
pub use document::Document;
pub use header::{FieldLink, hear_robots_tag, license_of, scan_link_fields, scan_refresh_field};
pub use kinds::{Kind, Kinds, KindsError, RELS_MAX};
pub use listing::{Xml, scan_lines, scan_xml};
pub use markup::tag_end;
pub use mime::{MediaRanges, essence, is_html, is_image, is_media_range, is_misnamed, looks_like_html};
pub use scan::{Advice, Format, Reference};

use ringcrawl_base::preferences::Preferences;
use ringcrawl_base::stage::{self, Stage};
use ringcrawl_url::{Absolute, Base, Url, UrlError};

/// An HTML page as received.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// After content decoding.
    pub body: &'a [u8],
    /// The Content-Type header's value.
    pub content_type: Option<&'a str>,
    /// The page's URL, after redirects.
    pub url: &'a Url,
    /// The product token of the reader: a `<meta>` of this name counts like one for robots.
    pub agent: &'a str,
}

/// A crawlable link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoundLink<'a> {
    /// Where in the page.
    pub kind: Kind,
    /// For `Kind::Link` the token of `rel` in lower case, else empty.
    pub rel: &'a str,
    /// Where it leads.
    pub url: &'a Url,
    /// The link's own `rel` has `nofollow`, `ugc` or `sponsored`; the page may apply this to all links
    /// (`Summary::robots`).
    pub is_advised_against: bool,
    /// For a link to the page itself, the format of its target.
    pub format: Format,
    /// Whether the [`Budget`] has room for a URL that was not passed on before.
    pub has_room: bool,
}

/// A reference as `scan_raw` passes it on: of any scheme, with its fragment.
#[derive(Clone, Copy, Debug)]
pub struct Raw<'a> {
    /// Where in the page.
    pub kind: Kind,
    /// For `Kind::Link` the token of `rel` in lower case, else empty.
    pub rel: &'a str,
    /// The reference as written, decoded.
    pub text: &'a str,
    /// What it resolves to.
    pub url: Result<&'a Absolute, UrlError>,
    /// The link's own `rel` has `nofollow`.
    pub nofollow: bool,
}

/// What was found in one page.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The encoding in which the page was read.
    pub encoding: &'static Encoding,
    /// Links passed on to the caller.
    pub links: usize,
    /// References beyond the [`Budget`].
    pub dropped: usize,
    /// References that are invalid or too long as URLs.
    pub bad: usize,
    /// URLs of other schemes than http and https (`scan` only).
    pub other_scheme: usize,
    /// What `<meta name=robots>` and those for our agent say.
    pub robots: Directives,
    /// What `<meta name=tdm-reservation>` says (TDMRep, "TDM Metadata in HTML").
    pub tdm: Preferences,
    /// `<meta name=tdm-policy>`: the address of the conditions, as written.
    pub tdm_policy: Option<Box<str>>,
    /// The base of references, if `<base>` sets it.
    pub base: Option<Absolute>,
    /// It is a sitemap.
    pub sitemap: Option<Sitemap>,
}

/// The two kinds of XML sitemaps (sitemaps.org protocol 0.9).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sitemap {
    /// It lists pages.
    Pages,
    /// It lists sitemaps.
    Index,
}

impl Sitemap {
    /// The name of its root element.
    pub fn as_str(self) -> &'static str {
        match self {
            Sitemap::Pages => "urlset",
            Sitemap::Index => "sitemapindex",
        }
    }
}

impl Summary {
    /// The summary of a document in which no links were found.
    pub fn none(encoding: &'static Encoding) -> Summary {
        Summary {
            encoding,
            links: 0,
            dropped: 0,
            bad: 0,
            other_scheme: 0,
            robots: Directives::default(),
            tdm: Preferences::default(),
            tdm_policy: None,
            base: None,
            sitemap: None,
        }
    }
}

/// Finds the crawlable links of `page` in document order, duplicates included, and passes as many as `budget` admits
/// to `out`. `out` returns whether a URL is new to it, and takes no new one if there is no room: such links are
/// dropped.
pub fn scan(page: &Page, kinds: &Kinds, budget: &mut Budget, out: &mut dyn FnMut(FoundLink) -> bool) -> Summary {
    // One allocation for all of them.
    let mut url = page.url.clone();
    let mut counts = Counts::default();
    let said =
        scan::references(page.body, page.content_type, Base::new(page.url), (kinds, page.agent), &mut |reference| {
            let _stage = stage::enter(Stage::Url);
            if !budget.admits(reference.text) {
                counts.dropped += 1;
                return;
            }
            match reference.base.resolve_into(reference.text, reference.encoding, &mut url) {
                Ok(_) => {
                    let is_new = out(FoundLink {
                        kind: reference.kind,
                        rel: reference.rel,
                        url: &url,
                        is_advised_against: reference.advice.is_given(),
                        format: reference.advice.format,
                        has_room: budget.has_room(),
                    });
                    let is_taken = budget.took(url.as_str().len(), is_new);
                    counts.links += usize::from(is_taken);
                    counts.dropped += usize::from(!is_taken);
                }
                Err(UrlError::Scheme) => counts.other_scheme += 1,
                Err(_) => counts.bad += 1,
            }
        });
    counts.summary(said)
}

/// Finds all references of `body`, the document at `document`, in document order, including invalid ones.
pub fn scan_raw(
    body: &[u8],
    content_type: Option<&str>,
    document: &Absolute,
    kinds: &Kinds,
    out: &mut dyn FnMut(Raw),
) -> Summary {
    let mut counts = Counts::default();
    let said =
        scan::references(body, content_type, Base::of_document(document.clone()), (kinds, ""), &mut |reference| {
            let resolved = reference.base.resolve_any(reference.text, reference.encoding);
            match resolved {
                Ok(_) => counts.links += 1,
                Err(_) => counts.bad += 1,
            }
            out(Raw {
                kind: reference.kind,
                rel: reference.rel,
                text: reference.text,
                url: resolved.as_ref().map_err(|error| *error),
                nofollow: reference.advice.nofollow,
            });
        });
    counts.summary(said)
}

/// Finds the references of `page` in document order, as written: the cost of scanning alone.
pub fn references(page: &Page, kinds: &Kinds, out: &mut dyn FnMut(Reference)) -> Summary {
    let mut counts = Counts::default();
    let said =
        scan::references(page.body, page.content_type, Base::new(page.url), (kinds, page.agent), &mut |reference| {
            counts.links += 1;
            out(reference);
        });
    counts.summary(said)
}

#[derive(Default)]
struct Counts {
    links: usize,
    dropped: usize,
    bad: usize,
    other_scheme: usize,
}

impl Counts {
    fn summary(self, said: scan::Said) -> Summary {
        Summary {
            encoding: said.encoding,
            links: self.links,
            dropped: self.dropped,
            bad: self.bad,
            other_scheme: self.other_scheme,
            robots: said.robots,
            tdm: said.tdm,
            tdm_policy: said.tdm_policy,
            base: said.base,
            sitemap: None,
        }
    }
}
