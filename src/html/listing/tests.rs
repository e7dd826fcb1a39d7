//! Sitemaps, feeds and lines as found in the wild, broken ones and hostile ones.

use super::*;
use ringcrawl_base::Rng;

fn page<'a>(url: &'a Url, body: &'a [u8], content_type: Option<&'a str>) -> Page<'a> {
    Page { body, content_type, url, agent: "" }
}

fn xml(body: &[u8]) -> Vec<String> {
    let url = Url::parse("http://a.test/dir/feed.xml").expect("a URL");
    let mut found = Vec::new();
    let xml = scan_xml(&page(&url, body, None), &Kinds::FOLLOW, &mut Budget::of_links(100), &mut |_, url| {
        found.push(url.as_str().to_owned())
    });
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
    // The prefix is up to the document.
    assert_eq!(xml(b"<s:urlset><s:url><s:loc>/x</s:loc></s:url></s:urlset>"), ["http://a.test/x"]);
}

fn listing(body: &[u8], budget: &mut Budget) -> Summary {
    let url = Url::parse("http://a.test/").expect("a URL");
    match scan_xml(&page(&url, body, None), &Kinds::FOLLOW, budget, &mut |_, _| ()) {
        Xml::Listing(summary) => *summary,
        _ => panic!("a listing"),
    }
}

#[test]
fn the_newest_come_first() {
    let entry = |page: &str, date: &str| format!("<url><loc>/{page}</loc>{date}</url>");
    let dated = |page: &str, date: &str| entry(page, &format!("<lastmod>{date}</lastmod>"));
    let news = "<n:news><n:publication_date>2026-06-01</n:publication_date></n:news>";
    let entries = [
        dated("none", "yesterday"),
        dated("old", "1999-12-31"),
        dated("first-of-two", "2026-03"),
        dated("second-of-two", "2026-03"),
        dated("newest", " 2026-11-26T13:20:00.5+02:00 "),
        dated("evening", "2026-11-25T23:59"),
        entry("news", news),
        entry("nothing", ""),
        dated("year", "2026"),
        entry("twice", "<lastmod>1998</lastmod><lastmod>2030</lastmod>"),
        entry("unread-first", "<lastmod/><lastmod>2030</lastmod>"),
        "<url><lastmod>2027</lastmod><loc>/date-first</loc></url>".to_owned(),
        "<url><loc>/left-open</loc><lastmod>2000".to_owned(),
        "<url><loc>/last</loc>".to_owned(),
    ];
    let order = [
        "date-first",
        "newest",
        "evening",
        "news",
        "first-of-two",
        "second-of-two",
        "year",
        "left-open",
        "old",
        "twice",
        "none",
        "nothing",
        "unread-first",
        "last",
    ];
    assert_eq!(
        xml(format!("<urlset>{}", entries.concat()).as_bytes()),
        order.map(|page| format!("http://a.test/{page}"))
    );
    let index = "<sitemapindex><sitemap><loc>/1</loc></sitemap><sitemap><loc>/2</loc><lastmod>2026</lastmod></sitemap>";
    assert_eq!(xml(index.as_bytes()), ["http://a.test/2", "http://a.test/1"]);
    assert_eq!(
        ["", "26", "2026x", "99999-12-31", "-2026"].map(entries::date),
        [0, 0, 20_260_000_000_000, 99_999_123_100_000, 20_260_000_000_000]
    );
}

#[test]
fn dates_that_cannot_be_read_cost_one_pass() {
    let dates = "<lastmod/>".repeat(400_000);
    let took = |addresses: usize| {
        let locs: String = (0..addresses).map(|page| format!("<loc>/{page}</loc>")).collect();
        let body = format!("<urlset><url>{locs}{dates}");
        let begun = std::time::Instant::now();
        assert_eq!(listing(body.as_bytes(), &mut Budget::of_links(10_000)).links, addresses);
        begun.elapsed()
    };
    // One pass per date would be four thousand million writes more.
    let (few, many) = (took(1), took(10_000));
    assert!(many < 4 * few + std::time::Duration::from_millis(500), "{few:?}, {many:?}");
}

#[test]
fn kinds_of_addresses() {
    let kinds = |body: &str| {
        let url = Url::parse("http://a.test/").expect("a URL");
        let mut found = Vec::new();
        let budget = &mut Budget::of_links(9);
        let xml = scan_xml(&page(&url, body.as_bytes(), None), &Kinds::ALL, budget, &mut |kind, url| {
            found.push(format!("{} {}", kind.name(), url.path_and_query()));
        });
        let Xml::Listing(summary) = xml else { panic!("a listing") };
        (summary.sitemap, found)
    };
    let page = "<urlset><url><loc>/1</loc><i:image><i:loc>/1.png</i:loc><i:title>x</i:title></i:image><v:video>\
        <v:thumbnail_loc>/2.png</v:thumbnail_loc><v:content_loc>/no.mp4</v:content_loc></v:video>\
        <x:link rel=alternate href='/de'/><x:link rel='alternate' href='/de'/></url></urlset>";
    assert_eq!(
        kinds(page),
        (Some(Sitemap::Pages), ["loc /1", "img /1.png", "img /2.png", "loc /de"].map(str::to_owned).into())
    );
    let index = "<sitemapindex><sitemap><loc>/s</loc></sitemap></sitemapindex>";
    assert_eq!(kinds(index), (Some(Sitemap::Index), vec!["sitemap /s".to_owned()]));
    let feed = "<rss><channel><image><loc>/no</loc></image><item><link>/i</link></item></channel></rss>";
    assert_eq!(kinds(feed), (None, vec!["item /i".to_owned()]));
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
    assert_eq!(xml(atom), ["http://b.test/x/y", "http://b.test/x/2", "http://b.test/x/sub/z", "http://b.test/x/after"]);
    let rdf = br#"<rdf:RDF><channel rdf:about="c"><link>/c</link></channel><item><link>/i</link></item></rdf:RDF>"#;
    assert_eq!(xml(rdf), ["http://a.test/c", "http://a.test/i"]);
}

#[test]
fn references_and_what_is_none() {
    for (written, read) in [
        ("/x?a=1&b=2&amp;c=3", "http://a.test/x?a=1&b=2&c=3"),
        ("/x?a=&nbsp;&amp;c=&#x33;", "http://a.test/x?a=&nbsp;&c=3"),
        ("/x?&&amp;&;&#50;&", "http://a.test/x?&&&;2&"),
        ("/x&#0;y&#xD800;", "http://a.test/x%EF%BF%BDy%EF%BF%BD"),
        ("/x?&#b&amp;y=1", "http://a.test/x?&"),
        ("/x?q=C&#&lt;&#;&#top;&#x;", "http://a.test/x?q=C&"),
        ("/x?&#00000000000000000000000000000000000000038;y&# &#x26;", "http://a.test/x?&y&"),
        ("/x&a-name-too-long-for-any;", "http://a.test/x&a-name-too-long-for-any;"),
        ("\u{feff} /x\u{feff}\n", "http://a.test/x"),
    ] {
        assert_eq!(xml(format!("<urlset><url><loc>{written}</loc></url></urlset>").as_bytes()), [read], "{written}");
        assert_eq!(xml(format!("<feed><link href='{written}'/></feed>").as_bytes()), [read], "{written}");
    }
}

#[test]
fn guids_and_relations() {
    let guids = b"<rss><channel><item><guid>12345</guid></item><item><guid isPermaLink='TRUE'> HTTP://b.test/1</guid>\
        </item><item><guid isPermaLink='False'>http://b.test/no</guid><guid>urn:x</guid></item></channel></rss>";
    assert_eq!(xml(guids), ["http://b.test/1"]);
    let links = b"<feed><link rel='Alternate' href='1'/><link rel='alternates' href='no'/>\
        <link rel='http://www.iana.org/assignments/relation/next' href='2'/></feed>";
    assert_eq!(xml(links), ["http://a.test/dir/1", "http://a.test/dir/2"]);
    let bases = "<a xml:base='x/'><link href='1'/></a><a xml:base=' '><link href='1'/></a>".repeat(10_000);
    let url = Url::parse("http://a.test/").expect("a URL");
    let body = format!("<feed xml:base='y/'>{bases}</feed>");
    let mut found = Vec::new();
    scan_xml(&page(&url, body.as_bytes(), None), &Kinds::FOLLOW, &mut Budget::of_links(usize::MAX), &mut |_, url| {
        found.push(url.as_str().to_owned())
    });
    let of = |address| found.iter().filter(|found| *found == address).count();
    assert_eq!(found.len(), 19_999, "what has too many bases has none");
    assert_eq!((of("http://a.test/y/x/1"), of("http://a.test/y/1")), (9_999, 10_000));
}

#[test]
fn what_is_no_listing_gives_nothing() {
    let url = Url::parse("http://a.test/").expect("a URL");
    let kind = |body: &[u8]| {
        scan_xml(&page(&url, body, None), &Kinds::ALL, &mut Budget::of_links(9), &mut |_, _| panic!("a link"))
    };
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
    for (broken, found) in [
        ("<url><loc>/1</lok><lastmod>x</lastmod></url><url><loc>/2</loc></url>", 2),
        ("<url><loc>/1</Loc><lastmod/></url><url><loc>/2</loc></url>", 2),
        ("<url><loc>/1<lastmod>x</lastmod></url><url><loc>/2</b>/3</loc></url>", 2),
    ] {
        assert_eq!(
            xml(format!("<urlset>{broken}</urlset>").as_bytes()),
            ["http://a.test/1", "http://a.test/2"][..found]
        );
    }
    let html = "<item><description>a<br>b<p></description><link>/1</link></item>".repeat(70);
    assert_eq!(xml(format!("<rss><channel>{html}</channel></rss>").as_bytes()).len(), 70);
    let breaks = format!("<item><link>/1</link><description>{}<br/></description></item>", "<br>".repeat(400));
    assert_eq!(xml(format!("<rss><channel>{}</channel></rss>", breaks.repeat(9)).as_bytes()).len(), 9);
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
    let many: String =
        (0..103).map(|number| format!("<url><loc>/{number}</loc></url><url><loc>/0</loc></url>")).collect();
    let body = format!("<urlset>{many}</urlset>");
    let summary = listing(body.as_bytes(), &mut Budget::of_links(100));
    assert_eq!((summary.links, summary.dropped), (100, 3), "what comes again is no further link");
    let url = "<url><loc>/x</loc></url>";
    let far = format!("<urlset>{url}{}{}</urlset>", " ".repeat(50 << 20), url.replace('x', "y"));
    let summary = listing(far.as_bytes(), &mut Budget::of_links(100));
    assert_eq!((summary.links, summary.dropped), (1, 1), "50 MiB are read");
}

#[test]
fn lines_of_text() {
    let url = Url::parse("http://a.test/urls.txt").expect("a URL");
    let body = b"\xef\xbb\xbfhttp://a.test/1\r\n  HTTPS://B.test/2 \n\n# http://a.test/no\nsee http://a.test/no\n/no\n\
        http://a.test/not this\nftp://a.test/no\rhttp://[bad/\nhttp://c.test/\xc3\xa4";
    let mut found = Vec::new();
    let summary =
        scan_lines(&page(&url, body, Some("text/plain")), &Kinds::FOLLOW, &mut Budget::of_links(9), &mut |_, url| {
            found.push(url.as_str().to_owned())
        });
    assert_eq!(found, ["http://a.test/1", "https://b.test/2", "http://c.test/%C3%A4"]);
    assert_eq!((summary.links, summary.bad, summary.dropped), (3, 1, 0));
    let latin = scan_lines(
        &page(&url, b"http://a.test/\xe4", Some("text/plain; charset=latin1")),
        &Kinds::FOLLOW,
        &mut Budget::of_links(9),
        &mut |_, url| {
            assert_eq!(url.as_str(), "http://a.test/%C3%A4");
        },
    );
    assert_eq!(latin.links, 1);
}

/// Any bytes end, and a truncated document yields a prefix of its addresses.
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
