//! Text from servers: robots.txt, pages, URLs.

use std::collections::BTreeSet;

use ringcrawl_base::preferences::Preferences;
use ringcrawl_brain::page::simhash;
use ringcrawl_html::{self as html, Budget, Document, FieldLink, Kinds, Page, Summary, Xml, scan, scan_raw};
use ringcrawl_robots::{Fuel, Rules, VERDICT_FUEL};
use ringcrawl_url::{Absolute, Scheme, Url, UrlBatch, surt};

use super::steered;

/// Rules need memory in proportion, do not depend on line ends or on what lies behind the limit, and never forbid
/// robots.txt itself.
pub fn robots(data: &[u8]) {
    let (steer, body) = steered(data);
    let rules = Rules::parse(body, "ringcrawl", usize::MAX);
    let lines = body.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count() + 1;
    // `Allow: /a/index.html` is two rules: the folder's own address besides.
    assert!(rules.len() <= 2 * lines && rules.sitemaps().len() <= lines);
    assert!(rules.ram_bytes() <= 1_024 + 32 * body.len(), "{} bytes of {}", rules.ram_bytes(), body.len());
    assert_eq!(rules, Rules::parse(body, "RingCrawl", body.len()), "the limit is the length");
    assert!(rules.allows("/robots.txt"));
    let usage = rules.usage("/a?b", &mut Fuel::new(VERDICT_FUEL)).unwrap_or_default();
    assert_eq!(Preferences::of_label(&usage.preferences.to_label()).to_label(), usage.preferences.to_label());
    assert_eq!(Rules::from_bytes(&rules.to_bytes()).map(|read| read.len()), Some(rules.len()));
    assert!(!rules.is_empty() || rules.allows("/anything"));
    // A line that the limit cuts is none; of whole lines, what lies behind is ignored.
    let end = body.len() * usize::from(steer) / 256;
    let whole = body[..end].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    assert_eq!(Rules::parse(body, "ringcrawl", whole), Rules::parse(&body[..whole], "ringcrawl", whole));
    if !body.contains(&b'\r') {
        let crlf: Vec<u8> =
            body.iter().flat_map(|byte| if *byte == b'\n' { vec![b'\r', b'\n'] } else { vec![*byte] }).collect();
        assert_eq!(rules, Rules::parse(&crlf, "ringcrawl", usize::MAX), "line ends");
    }
    let mut plain = body.split(|byte| *byte == b'\n').map(|line| -> String {
        let is_plain = |byte: &&u8| matches!(byte, b'a'..=b'z' | b'/' | b'*' | b'$' | b'-');
        "/".chars().chain(line.iter().filter(is_plain).take(60).map(|byte| char::from(*byte))).collect()
    });
    if let (Some(pattern), Some(path)) = (plain.next(), plain.next()) {
        let rules = Rules::parse(format!("User-agent: *\nDisallow: {pattern}\n").as_bytes(), "ringcrawl", usize::MAX);
        assert_eq!(rules.allows(&path), !matches(pattern.as_bytes(), path.as_bytes()), "{pattern} {path}");
    }
}

/// Whether a path starts with a pattern (RFC 9309 section 2.2.3), by the plainest way: a table of what matches so far.
fn matches(pattern: &[u8], path: &[u8]) -> bool {
    let (pattern, anchored) = match pattern {
        [start @ .., b'$'] => (start, true),
        _ => (pattern, false),
    };
    let mut reached = vec![false; path.len() + 1];
    reached[0] = true;
    for byte in pattern {
        if *byte == b'*' {
            (1..reached.len()).for_each(|at| reached[at] |= reached[at - 1]);
        } else {
            (1..reached.len()).rev().for_each(|at| reached[at] = reached[at - 1] && path[at - 1] == *byte);
            reached[0] = false;
        }
    }
    if anchored { reached[path.len()] } else { reached.contains(&true) }
}

pub fn robots_seeds() -> Vec<Vec<u8>> {
    [
        &b"xUser-agent: *\nDisallow: /a\nAllow: /a/b$\nCrawl-delay: 2.5\nSitemap: http://example.com/s.xml\n"[..],
        b"x\xef\xbb\xbfuser-agent:ringcrawl\r\nuser-agent: other # words\r\ndisallow:/*.php*?x=*&y\r\n\r\nUser-agent: *\nDisallow:/",
        b"xUser-agent: *\nContent-Usage: /a* train-ai=n, x=(1 \"b\");c\nContent-Signal: search=yes, ai-train=no\nLicense: http://example.com/l\n",
        b"xDisallow: /before\nUser-agent: ringcrawl/1.0\nDissallow: /typo\nDisallow: %2f%C3%A9\xc3\xa9*$",
    ]
    .map(<[u8]>::to_vec)
    .to_vec()
}

/// Every link is canonical, there are no more than asked for, and the raw references are the same.
pub fn links(data: &[u8]) {
    const LINKS_MAX: usize = 100;
    let (steer, body) = steered(data);
    let url = Url::parse("https://www.example.com:8443/dir/page.html?q=1").expect("a URL");
    let content_type =
        [None, Some("text/html"), Some("text/html; charset=utf-16le"), Some("text/html;charset=shift_jis")]
            [usize::from(steer & 3)];
    let page = Page { body, content_type, url: &url, agent: "ringcrawl" };
    let mut found = Vec::new();
    let summary = scan(&page, &Kinds::FOLLOW, &mut Budget::of_links(LINKS_MAX), &mut |link| {
        assert_eq!(Url::from_canonical(link.url.as_str()).as_ref(), Ok(link.url));
        if link.has_room {
            found.push(link.url.clone());
        }
        true
    });
    assert_eq!(found.len(), summary.links);
    assert!(summary.links <= LINKS_MAX && (summary.dropped == 0 || summary.links == LINKS_MAX));
    assert!(summary.links + summary.dropped + summary.bad + summary.other_scheme <= body.len());
    if summary.dropped > 0 {
        return;
    }
    let document = Absolute::parse(url.as_str()).expect("a URL");
    let (mut again, mut others) = (Vec::new(), 0);
    scan_raw(body, content_type, &document, &Kinds::FOLLOW, &mut |raw| match raw.url {
        Ok(absolute) => match Url::try_from(absolute.clone()) {
            Ok(url) => again.push(url),
            Err(_) => others += 1,
        },
        Err(_) => others += 1,
    });
    assert_eq!((found, summary.bad + summary.other_scheme), (again, others));
}

pub fn links_seeds() -> Vec<Vec<u8>> {
    [
        &b"x<!doctype html><base href=/b/><a href=x>y</a><img srcset='a 1x, b 2x'><link rel='a b' href=c>"[..],
        b"\x01<meta charset=windows-1252><a href='?\xe9&amp;x=&notit;'><!--<a href=no>--><script><a href=no></script><form action=f>",
        b"\0<a href='\xc3\xa9'><svg><input type=image src=x></svg><link rel=preload as=image href=y><meta charset=big5><meta charset=utf-8>",
        b"\x02<\0a\0 \0h\0r\0e\0f\0=\0x\0>\0",
        b"\0<svg><a xlink:href=x></a><style><a href=no></style></svg><meta http-equiv=refresh content='0;url=z'><meta name=robots content=nofollow>",
        b"\x03<a href=\"javascript:0\"><a href='http://[::1'><iframe src=//h/x></iframe><textarea><a href=no></textarea>",
    ]
    .map(<[u8]>::to_vec)
    .to_vec()
}

/// A sitemap, a feed, a list, a header field: no more links than bytes and than there may be, and a list has the same
/// ones with other line ends.
pub fn listing(data: &[u8]) {
    const LINKS_MAX: usize = 5;
    let (steer, body) = steered(data);
    let url = Url::parse("http://example.com/a/b?c").expect("a URL");
    let content_type = match steer {
        0 => Some("application/xml; charset=windows-1252"),
        1 => Some("text/plain"),
        2 => Some("text/html"),
        _ => None,
    };
    let document = Document::of(content_type.map(str::as_bytes), body);
    assert!(steer != 0 || document == Document::Xml);
    let page = Page { body, content_type, url: &url, agent: "ringcrawl" };
    let check = |summary: &Summary, found: &[String]| {
        assert_eq!(summary.links, found.len());
        // Each URL counts once.
        let links = found.iter().collect::<BTreeSet<_>>().len();
        assert!(links <= LINKS_MAX && (summary.dropped == 0 || links == LINKS_MAX));
        assert!(summary.links + summary.dropped + summary.bad + summary.other_scheme <= body.len());
    };
    let mut found = Vec::new();
    if let Xml::Listing(summary) =
        html::scan_xml(&page, &Kinds::ALL, &mut Budget::of_links(LINKS_MAX), &mut |_, url| {
            found.push(url.as_str().to_owned())
        })
    {
        check(&summary, &found);
    } else {
        assert!(found.is_empty());
    }
    let lines = |body: &[u8]| {
        let mut found = Vec::new();
        let page = Page { body, ..page };
        let summary = html::scan_lines(&page, &Kinds::ALL, &mut Budget::of_links(LINKS_MAX), &mut |_, url| {
            found.push(url.as_str().to_owned())
        });
        (summary, found)
    };
    let (summary, found) = lines(body);
    check(&summary, &found);
    // In UTF-16, which a mark begins, one byte is no line end.
    if !body.contains(&b'\r') && !body.starts_with(b"\xff\xfe") && !body.starts_with(b"\xfe\xff") {
        let returned: Vec<u8> = body.iter().map(|byte| if *byte == b'\n' { b'\r' } else { *byte }).collect();
        assert_eq!(lines(&returned).1, found, "line ends");
    }
    let (mut found, mut summary) = (Vec::new(), Summary::none(summary.encoding));
    let mut keep = |link: FieldLink| {
        let text = link.url.as_str().to_owned();
        let is_new = !found.contains(&text);
        if !is_new || link.has_room {
            found.push(text);
        }
        is_new
    };
    html::scan_link_fields(
        [body].into_iter(),
        &url,
        &Kinds::FOLLOW,
        &mut Budget::of_links(LINKS_MAX),
        &mut summary,
        &mut keep,
    );
    check(&summary, &found);
    let (mut found, mut summary) = (Vec::new(), Summary::none(summary.encoding));
    html::scan_refresh_field(body, &url, &mut Budget::of_links(LINKS_MAX), &mut summary, &mut |link| {
        found.push(link.url.as_str().to_owned());
        true
    });
    check(&summary, &found);
    html::hear_robots_tag(body, "ringcrawl", &mut summary);
    assert!(summary.robots.is_empty() || body.len() >= 4);
    assert!(html::license_of([body].into_iter(), &url).is_none_or(|license| license.as_str().len() <= 512));
}

pub fn listing_seeds() -> Vec<Vec<u8>> {
    [
        &b"x<?xml version='1.0' encoding='latin1'?><urlset><url><loc> http://a.test/?a&amp;b&#x41; </loc></url></urlset>"[..],
        b"\x02<rss><channel><item><link>/a</link><guid isPermaLink='true'><![CDATA[/b]]></guid></item></channel></rss>",
        b"\0<feed xml:base='/x/'><entry><link rel='next' href='y'/><!-- c --></entry></feed>",
        b"\0<sitemapindex><sitemap><loc>/1.gz</loc><lastmod>2026-11-26T13:20:00Z</lastmod></sitemap></sitemapindex>",
        b"\0<urlset><url><loc>/1</loc><lastmod>2025</lastmod><i:image><i:loc>/1.png</i:loc></i:image></url><url><loc>/2</loc><lastmod>2026",
        b"\x01http://a.test/1\nHTTPS://b.test/\n no\n",
        b"x</a>; rel=\"next prev\"; title=\"a, <b>\", <c>;rel=canonical",
        b"xringcrawl: noindex, nofollow, unavailable_after: 1",
        b"xunavailable_after: Saturday, 25-Jun-30 15:00:00 PST, noai",
        b"x5; url=/caf\xe9",
        b"x<license.xml>; rel=license; type=\"application/rsl+xml\"",
        b"\x02%PDF-1.7",
    ]
    .map(<[u8]>::to_vec)
    .to_vec()
}

/// Numbers make no difference to a fingerprint, however long the page is; nor does case, but for a long one.
pub fn simhash(data: &[u8]) {
    let (steer, body) = steered(data);
    let mut page = body.repeat(1 + usize::from(steer % 64));
    page.truncate(70_000);
    let numbered: Vec<u8> = page.iter().map(|byte| if byte.is_ascii_digit() { b'7' } else { *byte }).collect();
    assert_eq!(simhash::of_html(&page), simhash::of_html(&numbered));
    assert_eq!(simhash::of_text(&page), simhash::of_text(&numbered));
    if page.len() <= 32_768 {
        assert_eq!(simhash::of_html(&page), simhash::of_html(&page.to_ascii_uppercase()));
    }
    assert!(page.len() >= 18 || simhash::of_text(&page).is_none(), "too few words");
}

pub fn simhash_seeds() -> Vec<Vec<u8>> {
    let page = "<p class=k1>Some words, 12 of them</p><script>if (a<b) { '</p>' }</script><!-- k > --><style>k{}</style> & more k>";
    let long = page.repeat(20);
    vec![
        format!("\0{long}").into_bytes(),
        format!("\x07{long}").into_bytes(),
        "\x03\u{4e2d}<k>\u{6587}>".repeat(90).into_bytes(),
    ]
}

/// A URL is canonical once and for ever, its parts make it up, and every place that keeps one gives it back.
pub fn url(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let base = Url::parse("http://example.com/a/b?c").expect("a URL");
    let (reference, absolute) = (base.join(&text), Url::parse(&text));
    // "http:x" is no absolute URL where the base has the same scheme (WHATWG URL, "special relative or authority").
    if let Ok(absolute) = &absolute
        && ["http://", "https://"].iter().any(|start| text.starts_with(start))
    {
        assert_eq!(reference.as_ref(), Ok(absolute), "an absolute URL needs no base");
    }
    for url in [reference, absolute].into_iter().flatten() {
        let text = url.as_str();
        assert!(text.is_ascii() && !text.contains(['#', ' ', '\n', '\t']), "{text}");
        assert_eq!(Url::parse(text).as_ref(), Ok(&url), "canonical is canonical");
        assert_eq!(Url::from_canonical(text).as_ref(), Ok(&url));
        assert_eq!(base.join(text).as_ref(), Ok(&url));
        assert_eq!(url.join("").as_ref(), Ok(&url));
        assert_eq!(
            url.join(url.path_and_query().strip_prefix("//").map_or(url.path_and_query(), |_| text)).as_ref(),
            Ok(&url)
        );
        assert_eq!(format!("{}{}", url.origin(), url.path_and_query()), text);
        assert_eq!(
            format!("{}://{}", if url.scheme() == Scheme::Http { "http" } else { "https" }, url.authority()),
            url.origin()
        );
        assert!(url.path_and_query().starts_with('/') && !url.host().is_empty() && !url.authority().contains('@'));
        // Dots at the end belong to the host and not to its site.
        let host = url.host().trim_end_matches('.');
        assert!(host.ends_with(url.site().trim_end_matches('.')), "{text} {}", url.site());
        assert!(host.is_empty() || !url.site().is_empty(), "{text}");
        assert!(!surt(&url).contains(['\n', ' ']), "{}", surt(&url));
        let mut batch = UrlBatch::new();
        assert!(batch.push(3, text));
        let batch = UrlBatch::from_bytes(batch.into_bytes()).expect("a batch");
        assert_eq!(batch.iter().collect::<Vec<_>>(), [(3, text)]);
    }
    // Bytes of a disk that lies.
    if let Some(batch) = UrlBatch::from_bytes(data.to_vec()) {
        assert_eq!(batch.iter().count(), batch.len());
        assert!(batch.iter().map(|(_, url)| url.len()).sum::<usize>() <= data.len());
    }
}

pub fn url_seeds() -> Vec<Vec<u8>> {
    [
        &b"http://user:word@EXAMPLE.com:80/a/../b/%7e?q=%zz#frag"[..],
        "https://b\u{fc}cher.example/\u{e9}?\u{e9}".as_bytes(),
        b"//[::1]:8080/x",
        b"http://0x7f.1/",
        b"?a=b&c",
        b"../../x;y=1",
        b"http:example.org",
        b"https://xn--bcher-kva.co.uk./",
        b"\x03\0\x05\0http:",
    ]
    .map(<[u8]>::to_vec)
    .to_vec()
}
