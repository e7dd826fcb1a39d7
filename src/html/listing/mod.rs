//! Links of documents that are lists of URLs: sitemaps, feeds and plain text.
//!
//! Decides: the root element determines the kind of an XML document: `urlset` and `sitemapindex` (sitemaps.org
//! protocol 0.9), `rss` (RSS 2.0 and before), `RDF` (RSS 1.0), `feed` (Atom, RFC 4287; RFC 5005 for its further
//! pages). The addresses of pages count, and a sitemap's images count as images; videos and enclosures do not count.
//! In text, a line counts if it consists of an http or https URL, as in the sitemaps protocol; sentences that contain
//! addresses are not lists. Broken XML yields what precedes the break: half of the broken sitemaps are broken by one
//! bare `&`, which is taken as itself. `reading` decides which elements hold an address, `entries` the order of
//! addresses.
//!
//! Invariants: pure; linear time, except for sorting a sitemap's entries; entities that a document declares are not
//! expanded, so nothing grows; no byte can cause a panic. Memory: a copy of the document where it is not UTF-8, the
//! open elements, the URLs of a sitemap.
//! Limits: a [`Budget`]; see `reading` and `entries`.

mod entries;
mod reading;

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8};
use quick_xml::Reader;
use quick_xml::events::Event;

use super::{Budget, Kind, Kinds, Page, Sitemap, Summary, charset};
use entries::Listed;
use reading::{Reading, referred};
use ringcrawl_url::{Base, Url};

/// The kind of an XML document.
#[derive(Clone, Debug)]
pub enum Xml {
    /// A sitemap or feed, and its content.
    Listing(Box<Summary>),
    /// XHTML: to be read as HTML.
    Html,
    /// Not a list of pages, or not XML.
    Other,
}

/// Passes the URLs of these `kinds` that `page` lists, as many as `budget` admits, to `out`: those of a feed in
/// order, duplicates included, those of a sitemap once each, the newest first.
pub fn scan_xml(page: &Page, kinds: &Kinds, budget: &mut Budget, out: &mut dyn FnMut(Kind, Url)) -> Xml {
    let (text, encoding) = decoded(page, charset::xml_declaration);
    let mut listed = Listed::new(encoding, kinds, budget, out);
    let mut reading = Reading::new(page.url);
    let mut reader = Reader::from_str(&text);
    let config = reader.config_mut();
    config.allow_dangling_amp = true;
    config.allow_unmatched_ends = true;
    config.check_end_names = false;
    let mut is_listing = false;
    while let Ok(event) = reader.read_event() {
        match event {
            Event::Start(start) | Event::Empty(start) if !is_listing => match start.local_name().as_ref() {
                root @ ("urlset" | "sitemapindex" | "rss" | "RDF" | "feed") => {
                    is_listing = true;
                    match root {
                        "urlset" => listed.is_sitemap(Sitemap::Pages),
                        "sitemapindex" => listed.is_sitemap(Sitemap::Index),
                        _ => {}
                    }
                    reading.open(&start, &mut listed);
                }
                "html" => return Xml::Html,
                _ => return Xml::Other,
            },
            Event::Start(start) => {
                reading.open(&start, &mut listed);
                reading.attributes(&start, &mut listed);
            }
            Event::Empty(start) => {
                let is_open = reading.open(&start, &mut listed);
                reading.attributes(&start, &mut listed);
                if is_open {
                    reading.close(start.name().as_ref(), &mut listed);
                }
            }
            Event::End(end) => reading.close(end.name().as_ref(), &mut listed),
            Event::Text(text) => reading.text(&text),
            Event::CData(text) => reading.text(&text),
            Event::GeneralRef(reference) => {
                let written = format!("&{};", &*reference);
                reading.text(referred(&written).as_deref().unwrap_or(&written));
            }
            Event::Eof => break,
            _ => {}
        }
        listed.has_read(reader.buffer_position());
    }
    if is_listing { Xml::Listing(Box::new(listed.finish())) } else { Xml::Other }
}

/// Passes the lines of the text `page` that are URLs to `out`, in order, duplicates included, as many as `budget`
/// admits.
pub fn scan_lines(page: &Page, kinds: &Kinds, budget: &mut Budget, out: &mut dyn FnMut(Kind, Url)) -> Summary {
    let (text, encoding) = decoded(page, |_| None);
    let mut listed = Listed::new(encoding, kinds, budget, out);
    let base = Base::new(page.url);
    for line in text.split(['\n', '\r']).map(trim) {
        if has_scheme(line) && !line.contains(char::is_whitespace) {
            listed.take(Some(&base), Kind::Line, line);
        }
    }
    listed.finish()
}

/// The text, decoded by byte order mark, Content-Type or `declared`; otherwise as UTF-8.
fn decoded<'a>(
    page: &Page<'a>,
    declared: impl FnOnce(&[u8]) -> Option<&'static Encoding>,
) -> (Cow<'a, str>, &'static Encoding) {
    let (encoding, mark_bytes) = Encoding::for_bom(page.body).unwrap_or_else(|| {
        let encoding = charset::named(page.content_type).or_else(|| {
            let head = page.body.get(..charset::PRESCAN_BYTES).unwrap_or(page.body);
            declared(head)
        });
        (encoding.unwrap_or(UTF_8), 0)
    });
    let body = page.body.get(mark_bytes..).unwrap_or_default();
    (encoding.decode_without_bom_handling(body).0, encoding)
}

/// Spaces around an address are not part of it, nor is a stray byte order mark.
fn trim(address: &str) -> &str {
    address.trim_matches(|one: char| one.is_whitespace() || one == '\u{feff}')
}

/// Whether an address is an http or https URL by itself: a `guid` may be any text.
fn has_scheme(address: &str) -> bool {
    let scheme = trim(address).split_once("://").map(|(scheme, _)| scheme).unwrap_or_default();
    scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
}

#[cfg(test)]
mod tests;
