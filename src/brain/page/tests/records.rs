//! What is recorded of a page, and which pages are.

use super::*;

/// What a page and its site say about it is in its record, in the metadata and in the index.
#[test]
fn what_is_said_of_a_page_is_recorded() {
    let recorded = |fields: &str, head: &str, robots: &str| {
        let rules = Rules::parse(robots.as_bytes(), "ringcrawl", 1 << 20);
        let usage = rules.usage("/x", &mut ringcrawl_robots::Fuel::new(1 << 20)).map(Box::new);
        let job = FetchJob { usage, ..job(JobKind::Page, "http://a.test/x") };
        let bytes = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{fields}\r\n{head}");
        let started = UnixTime::from_civil(2026, 11, 21, 0, 0, 0).expect("a date");
        let transaction = Transaction { started, ..transaction(bytes.as_bytes()) };
        let mut stats = Totals::default();
        let mut decoder = Decoder::default();
        let page = PageReader::new(Arc::default()).read(&job, &transaction, &mut decoder, &mut stats);
        let taken = page.store(|capture| {
            let of = ["robotsDirectives", "usagePreferences", "license", "tdmPolicy"]
                .map(|name| said(capture, name).unwrap_or_default().to_owned());
            assert_eq!((capture.robots.to_label(), capture.preferences.to_label()), (of[0].clone(), of[1].clone()));
            of.join("|")
        });
        (taken.expect("stored"), page.into_fetched().is_noindex)
    };
    let long = format!("Content-Usage: train-ai=n, x=\"{}\"\r\n", "y".repeat(9_000));
    for (fields, head, robots, expected, is_noindex) in [
        ("", "", "", "|||", false),
        ("X-Robots-Tag: noindex\r\n", "<meta name=robots content=nofollow>", "", "noindex, nofollow|||", true),
        ("", "<meta name=ringcrawl content=noarchive>", "", "noarchive|||", false),
        ("X-Robots-Tag: googlebot: none\r\nX-Robots-Tag: noarchive\r\n", "", "", "noarchive|||", false),
        (
            "X-Robots-Tag: unavailable_after: 25-Aug-2007 15:00:00 EST\r\n",
            "",
            "",
            "unavailable_after: 2007-08-25T20:00:00.000000Z|||",
            true,
        ),
        (
            "X-Robots-Tag: unavailable_after: 1 Jan 2300 00:00:00 GMT\r\n",
            "",
            "",
            "unavailable_after: 2300-01-01T00:00:00.000000Z|||",
            false,
        ),
        ("Content-Usage: train-ai=n\r\ncontent-usage: search=y\r\n", "", "", "|search=y, train-ai=n||", false),
        (&long, "", "", "|train-ai=n||", false),
        ("Content-Signal: ai-train=no\r\n", "", "", "|train-ai=n||", false),
        ("", "<meta name=robots content='noai, noimageai'>", "", "noai, noimageai|train-ai=n||", false),
        ("X-Robots-Tag: noimageai\r\n", "", "", "noimageai|||", false),
        (
            "TDM-Reservation: 1\r\nTDM-Policy: https://a.test/p.json\r\n",
            "<meta name=tdm-policy content=https://a.test/other>",
            "",
            "|tdm=n, train-ai=n||https://a.test/p.json",
            false,
        ),
        ("", "<meta name=tdm-reservation content=0><meta name=tdm-policy content='a b'>", "", "|tdm=y||", false),
        (
            "Link: </l.xml>; rel=license\r\n",
            "",
            "License: https://a.test/2\n",
            "|license=n|http://a.test/l.xml|",
            false,
        ),
        (
            "Content-Usage: search=y, train-ai=y\r\n",
            "",
            "User-agent: *\nContent-Usage: /x train-ai=n\nLicense: https://a.test/2\n",
            "|license=n, search=y, train-ai=n|https://a.test/2|",
            false,
        ),
    ] {
        assert_eq!(recorded(fields, head, robots), (expected.to_owned(), is_noindex), "{fields} {head} {robots}");
    }
}

#[test]
fn what_is_not_wanted_is_read_and_not_stored() {
    let bytes = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\nbytes";
    let only_html = |config: &mut Config| config.set("store.types", "text/html").expect("a type");
    let (_, stats, is_stored) = read(&job(JobKind::Page, "http://a.test/x.png"), bytes, only_html);
    assert_eq!((is_stored, stats.not_stored, stats.pages), (false, 1, 1));
    let (_, stats, is_stored) = read(&job(JobKind::Robots, "http://a.test/robots.txt"), bytes, only_html);
    assert_eq!((is_stored, stats.not_stored, stats.pages), (true, 0, 0));
}

/// Stored pages get a fingerprint if they have text and it is wanted; other responses have none.
#[test]
fn pages_with_text_have_a_fingerprint() {
    let text = "The quick brown fox jumps over a lazy dog near the river bank. ".repeat(9);
    let field = |kind, head: &str, body: &[u8], change: fn(&mut Config)| {
        let mut config = Config::default();
        config.store.simhash = Simhash::On;
        change(&mut config);
        let (job, mut stats) = (job(kind, "http://a.test/"), Totals::default());
        let transaction = transaction(&[format!("HTTP/1.1 {head}\r\n\r\n").as_bytes(), body].concat());
        let mut decoder = Decoder::default();
        let page = PageReader::new(Arc::new(config)).read(&job, &transaction, &mut decoder, &mut stats);
        let found = |capture: &ringcrawl_warc::Capture<'_>| said(capture, "simhash").map(str::to_owned);
        page.store(found).flatten()
    };
    let of = |head: &str, body: &[u8]| field(JobKind::Page, head, body, |_| {});
    let bits = simhash::of_text(text.as_bytes()).map(|bits| format!("{bits:016x}"));
    assert!(bits.as_ref().is_some_and(|bits| bits.len() == 16));
    let html = format!("<p class=x>{}</p>", text.replace(". ", ".<br>"));
    for (head, body) in [
        ("200 OK\r\nContent-Type: text/html", html.as_bytes()),
        ("203 OK\r\nContent-Type: application/xhtml+xml", html.as_bytes()),
        ("200 OK\r\nContent-Type: text/plain", text.as_bytes()),
        // Not in the coding that it names, which happens.
        ("200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip", html.as_bytes()),
    ] {
        assert_eq!(of(head, body), bits, "{head}");
    }
    let utf16: Vec<u8> = html.encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (head, body) in [
        ("200 OK\r\nContent-Type: text/html", &b"<p>Too few words."[..]),
        ("200 OK\r\nContent-Type: text/html; charset=utf-16le", &utf16),
        ("200 OK\r\nContent-Type: image/png", text.as_bytes()),
        ("200 OK\r\nContent-Type: text/html\r\nContent-Encoding: br", &[b"\xff\xff ", text.as_bytes()].concat()),
        ("404 Not Found\r\nContent-Type: text/html", html.as_bytes()),
    ] {
        assert_eq!(of(head, body), None, "{head}");
    }
    let head = "200 OK\r\nContent-Type: text/html";
    assert_eq!(field(JobKind::Page, head, html.as_bytes(), |config| config.store.simhash = Simhash::Off), None);
    assert_eq!(field(JobKind::Robots, head, html.as_bytes(), |_| {}), None);
}
