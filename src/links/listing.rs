//! Links of documents that are lists of URLs: sitemaps, feeds and plain text.
//!
//! Decides: the root element says what an XML document is: `urlset` and `sitemapindex` (sitemaps.org protocol 0.9), `rss`
//! (RSS 2.0 and before), `RDF` (RSS 1.0), `feed` (Atom, RFC 4287; RFC 5005 for its further pages). Of these the addresses
//! of pages count, those of images, videos and enclosures do not. In text a line counts that is an http or https URL and
//! nothing else, as the sitemaps protocol has it; sentences with addresses in them are no lists.
//! Broken XML gives what stood before the break: half of the sitemaps that are broken are so by one bare `&`, which is
//! taken as itself. Feeds have HTML in them that nobody escaped: an end tag ends all that is open up to its own element.
//!
//! Invariants: pure; linear time; entities that a document declares are not expanded, so nothing grows; no byte can
//! cause a panic. Memory: the document once more where it is not UTF-8, `DEPTH_MAX` open elements, one URL.
//! Limits: `links_max` links; elements more than `DEPTH_MAX` deep are read as if they were not there; `BASES_MAX` bases.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8};
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use xxhash_rust::xxh3::xxh3_64;

use super::{Page, Summary, charset};
use crate::url::{Base, Url, UrlError};

/// Most elements inside one another that are remembered.
const DEPTH_MAX: usize = 64;
/// Most bytes of an address: a longer one is no URL for us.
const ADDRESS_BYTES_MAX: usize = 65_535;
/// Most elements with a base of their own; each is made of the one before it.
const BASES_MAX: usize = 10_000;

/// What an XML document is.
#[derive(Clone, Debug)]
pub enum Xml {
    /// A sitemap or feed, and what it held.
    Listing(Box<Summary>),
    /// XHTML: to be read as HTML.
    Html,
    /// Nothing that lists pages, or no XML.
    Other,
}

/// Gives the URLs that the sitemap or feed `page` lists, in order, duplicates included, at most `links_max`, to `out`.
pub fn scan_xml(page: &Page, links_max: usize, out: &mut dyn FnMut(Url)) -> Xml {
    let (text, encoding) = decoded(page, charset::xml_declaration);
    let mut listed = Listed::new(encoding, links_max, out);
    let mut reading = Reading::default();
    let mut reader = Reader::from_str(&text);
    let config = reader.config_mut();
    config.allow_dangling_amp = true;
    config.allow_unmatched_ends = true;
    config.check_end_names = false;
    let first_base = Base::new(page.url);
    let mut is_listing = false;
    while let Ok(event) = reader.read_event() {
        match event {
            Event::Start(start) | Event::Empty(start) if !is_listing => match start.local_name().as_ref() {
                "urlset" | "sitemapindex" | "rss" | "RDF" | "feed" => {
                    is_listing = true;
                    reading.open(&start, &first_base);
                }
                "html" => return Xml::Html,
                _ => return Xml::Other,
            },
            Event::Start(start) => {
                reading.open(&start, &first_base);
                reading.attributes(&start, &first_base, &mut listed);
            }
            Event::Empty(start) => {
                reading.open(&start, &first_base);
                reading.attributes(&start, &first_base, &mut listed);
                reading.close(start.name().as_ref(), &first_base, &mut listed);
            }
            Event::End(end) => reading.close(end.name().as_ref(), &first_base, &mut listed),
            Event::Text(text) => reading.text(&text),
            Event::CData(text) => reading.text(&text),
            Event::GeneralRef(reference) => {
                let written = format!("&{};", &*reference);
                reading.text(referred(&written).as_deref().unwrap_or(&written));
            }
            Event::Eof => break,
            _ => {}
        }
    }
    if is_listing { Xml::Listing(Box::new(listed.summary)) } else { Xml::Other }
}

/// Gives the lines of the text `page` that are URLs, in order, duplicates included, at most `links_max`, to `out`.
pub fn scan_lines(page: &Page, links_max: usize, out: &mut dyn FnMut(Url)) -> Summary {
    let (text, encoding) = decoded(page, |_| None);
    let mut listed = Listed::new(encoding, links_max, out);
    let base = Base::new(page.url);
    for line in text.split(['\n', '\r']).map(str::trim) {
        if has_scheme(line) && !line.contains(char::is_whitespace) {
            listed.take(&base, line);
        }
    }
    listed.summary
}

/// The text, by byte order mark, Content-Type or `declared`; else as UTF-8.
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

/// What has been found.
struct Listed<'o> {
    summary: Summary,
    links_max: usize,
    out: &'o mut dyn FnMut(Url),
}

impl<'o> Listed<'o> {
    fn new(encoding: &'static Encoding, links_max: usize, out: &'o mut dyn FnMut(Url)) -> Listed<'o> {
        Listed { summary: Summary::none(encoding), links_max, out }
    }

    /// Spaces around an address are none of it, nor is a byte order mark that came with it from somewhere.
    fn take(&mut self, base: &Base, text: &str) {
        let text = text.trim_matches(|one: char| one.is_whitespace() || one == '\u{feff}');
        if text.is_empty() {
            return;
        }
        if self.summary.links >= self.links_max {
            self.summary.dropped += 1;
            return;
        }
        match base.resolve(text, UTF_8) {
            Ok(url) => {
                self.summary.links += 1;
                (self.out)(url);
            }
            Err(UrlError::Scheme) => self.summary.other_scheme += 1,
            Err(_) => self.summary.bad += 1,
        }
    }
}

/// What the elements that hold others are to us.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// `url` or `sitemap`: its `loc` counts.
    Located,
    /// `channel`, `item`: its `link` counts, and its `guid` if that is a link.
    Linked,
    Other,
}

struct Open {
    /// Its name, hashed.
    name: u64,
    role: Role,
    /// By `xml:base`, which holds inside, too.
    base: Option<Base>,
}

#[derive(Default)]
struct Reading {
    open: Vec<Open>,
    /// Elements open beyond those.
    unremembered: usize,
    /// Bases so far.
    bases: usize,
    /// The text of an element that is an address, so far.
    address: Option<String>,
    /// Whether it is one only if it has a scheme.
    is_guid: bool,
}

impl Reading {
    fn open(&mut self, start: &BytesStart, first_base: &Base) {
        if self.open.len() >= DEPTH_MAX {
            self.unremembered += 1;
            return;
        }
        let name = start.local_name();
        let (name, inside) = (name.as_ref(), self.open.last().map(|open| open.role));
        let is_address = match inside {
            Some(Role::Located) => name == "loc",
            Some(Role::Linked) => match name {
                "link" => attribute(start, "href").is_none(),
                "guid" => attribute(start, "isPermaLink").is_none_or(|value| value.trim().eq_ignore_ascii_case("true")),
                _ => false,
            },
            _ => false,
        };
        // What stands inside an address is no part of it.
        self.address = is_address.then(String::new);
        self.is_guid = name == "guid";
        let role = match name {
            "url" | "sitemap" => Role::Located,
            "channel" | "item" => Role::Linked,
            _ => Role::Other,
        };
        let href = attribute(start, "xml:base").filter(|href| !href.trim().is_empty() && self.bases < BASES_MAX);
        self.bases += usize::from(href.is_some());
        let base = href.map(|href| self.base(first_base).with_href(href.trim()));
        self.open.push(Open { name: xxh3_64(start.name().as_ref().as_bytes()), role, base });
    }

    /// `link` with `href`: Atom's, and the sitemaps' for a page in other languages.
    fn attributes(&self, start: &BytesStart, first_base: &Base, listed: &mut Listed) {
        if start.local_name().as_ref() != "link" {
            return;
        }
        let Some(href) = attribute(start, "href") else { return };
        let rel = attribute(start, "rel").unwrap_or(Cow::Borrowed("alternate"));
        const FOLLOWED: [&str; 6] = ["alternate", "next", "prev", "previous", "next-archive", "prev-archive"];
        // A name stands for an address (RFC 4287 section 4.2.7.2).
        let rel = rel.trim();
        let rel = rel.strip_prefix("http://www.iana.org/assignments/relation/").unwrap_or(rel);
        if FOLLOWED.iter().any(|followed| rel.eq_ignore_ascii_case(followed)) {
            listed.take(self.base(first_base), &href);
        }
    }

    fn text(&mut self, text: &str) {
        if let Some(address) = &mut self.address
            && address.len() <= ADDRESS_BYTES_MAX
        {
            address.push_str(text);
        }
    }

    /// Closes the innermost element of that name, and what is open inside; nothing where there is none.
    fn close(&mut self, name: &str, first_base: &Base, listed: &mut Listed) {
        if self.unremembered > 0 {
            self.unremembered -= 1;
            return;
        }
        let name = xxh3_64(name.as_bytes());
        let Some(at) = self.open.iter().rposition(|open| open.name == name) else { return };
        if let Some(address) = self.address.take()
            && (!self.is_guid || has_scheme(&address))
        {
            listed.take(self.base(first_base), &address);
        }
        self.open.truncate(at);
    }

    fn base<'a>(&'a self, first_base: &'a Base) -> &'a Base {
        self.open.iter().rev().find_map(|open| open.base.as_ref()).unwrap_or(first_base)
    }
}

/// Whether an address is one of http or https by itself: a `guid` may be any text.
fn has_scheme(address: &str) -> bool {
    let scheme = address.trim_start().split_once("://").map(|(scheme, _)| scheme).unwrap_or_default();
    scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
}

/// The value of the first attribute `name`.
fn attribute<'a>(start: &'a BytesStart, name: &str) -> Option<Cow<'a, str>> {
    let mut attributes = start.attributes();
    let found = attributes.with_checks(false).flatten().find(|attribute| attribute.key.as_ref() == name)?;
    let mut rest: &str = &found.value;
    if !rest.contains('&') {
        return Some(found.value);
    }
    let mut value = String::with_capacity(rest.len());
    while let Some((before, at)) = rest.find('&').and_then(|at| rest.split_at_checked(at)) {
        value.push_str(before);
        let end = at.bytes().take(REFERENCE_BYTES_MAX).position(|byte| byte == b';').map(|end| end + 1);
        let (written, behind) = at.split_at_checked(end.unwrap_or(1))?;
        match referred(written) {
            Some(text) => {
                value.push_str(&text);
                rest = behind;
            }
            // Not a reference, but its second half may begin one.
            None => {
                value.push('&');
                rest = at.get(1..)?;
            }
        }
    }
    value.push_str(rest);
    Some(Cow::Owned(value))
}

/// Most bytes of a reference: more zeros before a number nobody writes.
const REFERENCE_BYTES_MAX: usize = 16;

/// What `&NAME;` stands for, or `&#NUMBER;`: a number of no character for U+FFFD, as in HTML.
fn referred(written: &str) -> Option<Cow<'_, str>> {
    match quick_xml::escape::unescape(written) {
        Ok(text) if written.len() > 1 => Some(text),
        _ if written.starts_with("&#") && written.ends_with(';') => Some(Cow::Borrowed("\u{fffd}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::Rng;

    fn page<'a>(url: &'a Url, body: &'a [u8], content_type: Option<&'a str>) -> Page<'a> {
        Page { body, content_type, url }
    }

    fn xml(body: &[u8]) -> Vec<String> {
        let url = Url::parse("http://a.test/dir/feed.xml").expect("a URL");
        let mut found = Vec::new();
        let xml = scan_xml(&page(&url, body, None), 100, &mut |url| found.push(url.as_str().to_owned()));
        match xml {
            Xml::Listing(summary) => assert_eq!(summary.links, found.len()),
            _ => assert!(found.is_empty()),
        }
        found
    }

    #[test]
    fn sitemaps() {
        let body = br#"<?xml version="1.0" encoding="UTF-8"?>
            <urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="i" xmlns:xhtml="x">
            <url><loc> http://a.test/one?a=1&amp;b=&#50; </loc><lastmod>2026</lastmod>
              <image:image><image:loc>http://a.test/one.png</image:loc></image:image>
              <xhtml:link rel="alternate" hreflang="de" href="http://a.test/eins?a=1&amp;b=2"/></url>
            <url><loc><![CDATA[http://a.test/two?a&b]]></loc></url>
            <url><!-- nothing --><loc/></url>
            <url><loc>http://a.test/bare?a=1&b=2</loc></url>
            <url><loc>mailto:me@a.test</loc></url>
            <loc>http://a.test/nowhere</loc>
            </urlset>"#;
        let expected = [
            "http://a.test/one?a=1&b=2",
            "http://a.test/eins?a=1&b=2",
            "http://a.test/two?a&b",
            "http://a.test/bare?a=1&b=2",
        ];
        assert_eq!(xml(body), expected);
        let index = b"<sitemapindex><sitemap><loc>http://a.test/1.xml.gz</loc></sitemap></sitemapindex>";
        assert_eq!(xml(index), ["http://a.test/1.xml.gz"]);
        // The prefix is the document's own affair.
        assert_eq!(xml(b"<s:urlset><s:url><s:loc>/x</s:loc></s:url></s:urlset>"), ["http://a.test/x"]);
    }

    #[test]
    fn feeds() {
        let rss = br#"<rss version="2.0"><channel><title>t</title><link>http://a.test/</link>
            <atom:link rel="self" href="http://a.test/feed"/><atom:link rel="next" href="?page=2"/>
            <item><link>http://a.test/1</link><guid>http://a.test/?p=1</guid><enclosure url="http://a.test/1.mp3"/></item>
            <item><guid isPermaLink="false">http://a.test/no</guid><description>&lt;a href="http://a.test/not">
            </description></item><image><link>http://a.test/image</link></image></channel></rss>"#;
        assert_eq!(
            xml(rss),
            ["http://a.test/", "http://a.test/dir/feed.xml?page=2", "http://a.test/1", "http://a.test/?p=1"]
        );
        let atom = br#"<feed xmlns="http://www.w3.org/2005/Atom" xml:base="http://b.test/x/"><link href="y"/>
            <link rel="self" href="self"/><link rel="next" href="2"/>
            <entry xml:base="sub/"><link href="z" rel="alternate"/><link rel="enclosure" href="e"/>
            <content type="xhtml"><a href="in">content</a></content></entry><link href="after"/></feed>"#;
        assert_eq!(
            xml(atom),
            ["http://b.test/x/y", "http://b.test/x/2", "http://b.test/x/sub/z", "http://b.test/x/after"]
        );
        let rdf = br#"<rdf:RDF><channel rdf:about="c"><link>/c</link></channel><item><link>/i</link></item></rdf:RDF>"#;
        assert_eq!(xml(rdf), ["http://a.test/c", "http://a.test/i"]);
    }

    #[test]
    fn references_and_what_is_none() {
        for (written, read) in [
            ("/x?a=1&b=2&amp;c=3", "http://a.test/x?a=1&b=2&c=3"),
            ("/x?a=&nbsp;&amp;c=&#x33;", "http://a.test/x?a=&nbsp;&c=3"),
            ("/x?&&amp;&;&#50;&", "http://a.test/x?&&&;2&"),
            ("/x&#0;y&#xD800;&#;", "http://a.test/x%EF%BF%BDy%EF%BF%BD%EF%BF%BD"),
            ("/x&a-name-too-long-for-any;", "http://a.test/x&a-name-too-long-for-any;"),
            ("\u{feff} /x\u{feff}\n", "http://a.test/x"),
        ] {
            assert_eq!(
                xml(format!("<urlset><url><loc>{written}</loc></url></urlset>").as_bytes()),
                [read],
                "{written}"
            );
            assert_eq!(xml(format!("<feed><link href='{written}'/></feed>").as_bytes()), [read], "{written}");
        }
    }

    #[test]
    fn guids_and_relations() {
        let guids =
            b"<rss><channel><item><guid>12345</guid></item><item><guid isPermaLink='TRUE'> HTTP://b.test/1</guid>\
            </item><item><guid isPermaLink='False'>http://b.test/no</guid><guid>urn:x</guid></item></channel></rss>";
        assert_eq!(xml(guids), ["http://b.test/1"]);
        let links = b"<feed><link rel='Alternate' href='1'/><link rel='alternates' href='no'/>\
            <link rel='http://www.iana.org/assignments/relation/next' href='2'/></feed>";
        assert_eq!(xml(links), ["http://a.test/dir/1", "http://a.test/dir/2"]);
        let bases = "<a xml:base='x/'><link href='1'/></a><a xml:base=' '><link href='1'/></a>".repeat(BASES_MAX);
        let url = Url::parse("http://a.test/").expect("a URL");
        let body = format!("<feed xml:base='y/'>{bases}</feed>");
        let mut found = Vec::new();
        scan_xml(&page(&url, body.as_bytes(), None), usize::MAX, &mut |url| found.push(url.as_str().to_owned()));
        let of = |address| found.iter().filter(|found| *found == address).count();
        assert_eq!((of("http://a.test/y/x/1"), of("http://a.test/y/1")), (BASES_MAX - 1, BASES_MAX + 1));
    }

    #[test]
    fn what_is_no_listing_gives_nothing() {
        let url = Url::parse("http://a.test/").expect("a URL");
        let kind = |body: &[u8]| scan_xml(&page(&url, body, None), 9, &mut |_| panic!("a link"));
        assert!(matches!(kind(b"<?xml version='1.0'?><html><a href='/x'>x</a></html>"), Xml::Html));
        for body in
            [&b""[..], b"text", b"<svg><link href='/x'/></svg>", b"<", b"<!DOCTYPE x [<!ENTITY a 'b'>]>", b"\xff\xfe"]
        {
            assert!(matches!(kind(body), Xml::Other), "{}", body.escape_ascii());
        }
    }

    #[test]
    fn what_stood_before_a_break_counts_and_entities_do_not_grow() {
        assert_eq!(xml(b"<urlset><url><loc>/1</loc></url><url><loc>/2</lo"), ["http://a.test/1"]);
        assert_eq!(xml(b"<urlset></b></url><url><loc>/1</url>"), ["http://a.test/1"], "ends of nothing end nothing");
        assert_eq!(
            xml(b"<urlset><url><loc>/1</lok>\n</url><url><loc>/2</x:loc></url>"),
            ["http://a.test/1", "http://a.test/2"]
        );
        let html = "<item><description>a<br>b<p></description><link>/1</link></item>".repeat(70);
        assert_eq!(xml(format!("<rss><channel>{html}</channel></rss>").as_bytes()).len(), 70);
        let bomb =
            b"<!DOCTYPE u [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;'>]><urlset><url><loc>/&b;</loc></url></urlset>";
        assert_eq!(xml(bomb), ["http://a.test/&b;"]);
        let deep = format!("<urlset>{}<url><loc>/1</loc></url>", "<x>".repeat(100_000));
        assert_eq!(xml(deep.as_bytes()), [""; 0]);
        let back = format!("<urlset>{}{}<url><loc>/1</loc></url>", "<x>".repeat(1_000), "</x>".repeat(1_000));
        assert_eq!(xml(back.as_bytes()), ["http://a.test/1"]);
    }

    #[test]
    fn encodings_and_the_limit() {
        let mut marked = b"\xff\xfe".to_vec();
        marked.extend("<rss><channel><link>/\u{e4}</link></channel></rss>".encode_utf16().flat_map(u16::to_le_bytes));
        assert_eq!(xml(&marked), ["http://a.test/%C3%A4"]);
        let latin = b"<?xml version='1.0' encoding='iso-8859-1'?><rss><channel><link>/\xe4?\xe4</link></channel></rss>";
        assert_eq!(xml(latin), ["http://a.test/%C3%A4?%C3%A4"]);
        let many = "<url><loc>/x</loc></url>".repeat(103);
        let url = Url::parse("http://a.test/").expect("a URL");
        let body = format!("<urlset>{many}</urlset>");
        let Xml::Listing(summary) = scan_xml(&page(&url, body.as_bytes(), None), 100, &mut |_| ()) else {
            panic!("a listing")
        };
        assert_eq!((summary.links, summary.dropped), (100, 3));
    }

    #[test]
    fn lines_of_text() {
        let url = Url::parse("http://a.test/urls.txt").expect("a URL");
        let body =
            b"\xef\xbb\xbfhttp://a.test/1\r\n  HTTPS://B.test/2 \n\n# http://a.test/no\nsee http://a.test/no\n/no\n\
            http://a.test/not this\nftp://a.test/no\rhttp://[bad/\nhttp://c.test/\xc3\xa4";
        let mut found = Vec::new();
        let summary =
            scan_lines(&page(&url, body, Some("text/plain")), 9, &mut |url| found.push(url.as_str().to_owned()));
        assert_eq!(found, ["http://a.test/1", "https://b.test/2", "http://c.test/%C3%A4"]);
        assert_eq!((summary.links, summary.bad, summary.dropped), (3, 1, 0));
        let latin = scan_lines(&page(&url, b"http://a.test/\xe4", Some("text/plain; charset=latin1")), 9, &mut |url| {
            assert_eq!(url.as_str(), "http://a.test/%C3%A4");
        });
        assert_eq!(latin.links, 1);
    }

    /// Any bytes end, and a document that is cut gives the beginning of what it gave.
    #[test]
    fn a_cut_document_gives_a_prefix() {
        const PARTS: [&str; 22] = [
            "<urlset>",
            "<url>",
            "<loc>",
            "/a",
            "</loc>",
            "</url>",
            "<rss>",
            "<channel>",
            "<item>",
            "<link>",
            "</link>",
            "<link href='/h'/>",
            "</item>",
            "&amp;",
            "&",
            "&#x41;",
            "<![CDATA[/c]]>",
            "<!--",
            "-->",
            "<feed>",
            " ",
            "<",
        ];
        for seed in 0..20_000 {
            let mut rng = Rng::new(seed);
            let count = rng.below(40);
            let text: String = (0..count).map(|_| PARTS[rng.below(PARTS.len() as u64) as usize]).collect();
            let cut = rng.below(text.len() as u64 + 1) as usize;
            let (whole, part) = (xml(text.as_bytes()), xml(&text.as_bytes()[..cut]));
            assert!(whole.starts_with(&part), "seed {seed}: {part:?} of {whole:?} in {text:?}");
        }
    }
}
