//! Responses, read.

mod embeds;

use super::*;
use crate::sample::plain_transaction;
use ringcrawl_base::Blemish;
use ringcrawl_base::time::{Duration, Instant, UnixTime};
use ringcrawl_config::AdvisedAgainst;
use ringcrawl_url::Url;
use ringcrawl_warc::{CaptureWriter, Packing, Placed, SegmentWriter, Settings};

fn job(kind: JobKind, url: &str) -> FetchJob {
    FetchJob {
        id: 1,
        host: 0,
        kind,
        url: Url::parse(url).expect("a URL"),
        addr: None,
        both_families: false,
        others: Vec::new(),
        turns: Default::default(),
        number: 0,
        depth: 3,
        via: None,
        attempt: 0,
        began: Instant::ZERO,
        ended: None,
        deadline: Instant::NEVER,
        is_hurried: false,
        is_strangers: false,
        is_examined: false,
        usage: None,
        is_of_slow_site: false,
        rest: Duration::ZERO,
        told: None,
    }
}

/// The value of a field of its metadata record.
fn said<'a>(capture: &ringcrawl_warc::Capture<'a>, name: &str) -> Option<&'a str> {
    let lines = std::str::from_utf8(capture.metadata).expect("UTF-8").split("\r\n");
    lines.filter_map(|line| line.split_once(": ")).find(|(other, _)| *other == name).map(|(_, value)| value)
}

/// The transaction in which `bytes` came, over a connection that then closed.
fn transaction(bytes: &[u8]) -> Transaction {
    plain_transaction(bytes, Config::default().fetch.limits())
}

fn read(job: &FetchJob, bytes: &[u8], change: impl FnOnce(&mut Config)) -> (Fetched, Totals, bool) {
    let mut config = Config::default();
    change(&mut config);
    let (transaction, mut stats) = (transaction(bytes), Totals::default());
    let mut decoder = Decoder::default();
    let page = PageReader::new(Arc::new(config)).read(job, &transaction, &mut decoder, &mut stats);
    let is_stored = page.store(|_| ()).is_some();
    (page.into_fetched(), stats, is_stored)
}

#[test]
fn links_go_on_once_and_those_beyond_the_limit_are_counted() {
    let body = "<a href=/a>1</a><a href=/a>2</a><a href=/b>3</a><a href=/c>4</a><a href=/d>5</a>";
    let bytes = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{body}");
    let page = job(JobKind::Page, "http://a.test/");
    let (fetched, stats, is_stored) = read(&page, bytes.as_bytes(), |config| config.links.page_links_max = 3);
    let links: Vec<(u16, &str)> = fetched.links.iter().collect();
    assert_eq!(links, [(4, "http://a.test/a"), (4, "http://a.test/b"), (4, "http://a.test/c")]);
    assert_eq!((stats.links, stats.links_dropped, stats.pages, is_stored), (4, 1, 1, true));
    assert_eq!(fetched.dropped, Some((1, "links.page_links_max")));
}

/// A page names a URL once for each of its headings: it is one link.
#[test]
fn a_url_counts_once_however_often_a_page_names_it() {
    let page = job(JobKind::Page, "http://a.test/");
    let of = |content_type: &str, body: &str, links_max| {
        let bytes = format!("HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nLink: </0>; rel=next\r\n\r\n{body}");
        let (fetched, stats, _) = read(&page, bytes.as_bytes(), |config| config.links.page_links_max = links_max);
        assert_eq!(fetched.dropped.map_or(0, |(count, _)| count), stats.links_dropped);
        (fetched.links.len(), stats.links_dropped)
    };
    let fragments = |urls: u32, each: u32| -> String {
        (0..urls * each).map(|one| format!("<a href=/{}#part-{one}>x</a>", one % urls)).collect()
    };
    assert_eq!(of("text/html", &fragments(49, 280), 49), (49, 0));
    assert_eq!(of("text/html", &fragments(49, 280), 50), (49, 0));
    assert_eq!(of("text/html", &fragments(50, 3), 49), (49, 3), "each reference to a URL that is dropped");
    assert_eq!(of("text/html", &fragments(9, 1), 0), (0, 10));
    let advised = "<a href=/1 rel=nofollow>x</a><a href=/1 rel=nofollow>x</a><a href=/2>x</a>";
    assert_eq!(of("text/html", advised, 3), (3, 0));
    let lines = "http://a.test/0\nhttp://a.test/1\nhttp://a.test/1#x\nhttp://a.test/0\n";
    assert_eq!(of("text/plain", lines, 2), (2, 0));
    let feed = format!(
        "<rss><channel>{}</channel></rss>",
        "<item><link>/0</link><guid>http://a.test/1</guid></item>".repeat(9)
    );
    assert_eq!(of("application/rss+xml", &feed, 2), (2, 0));
}

/// Dropped links are counted under the limit that they exceeded.
#[test]
fn drops_name_their_limit() {
    let page = job(JobKind::Page, "http://a.test/");
    let long: String = (0..2_000).map(|one| format!("<a href=/{one}{}>x</a>", "x".repeat(1_000))).collect();
    let short: String = (0..90_000).map(|one| format!("<a href={one}>")).collect();
    let map: String = (0..20).map(|one| format!("<url><loc>/{one}</loc></url>")).collect();
    let map = format!("<urlset>{map}</urlset>");
    for (body, change, expected) in [
        (&long, (|_| {}) as fn(&mut Config), "links.page_link_bytes_max"),
        (&format!("<base href=/{}/>{}", "x".repeat(1_000), &short[..20_000]), |_| {}, "links.page_link_ratio_max"),
        (&short, |_| {}, "links.page_links_max"),
        (
            &map,
            |config| (config.links.sitemaps, config.links.sitemap_links_max) = (Sitemaps::Robots, 9),
            "links.sitemap_links_max",
        ),
    ] {
        let bytes = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{body}");
        let (fetched, stats, _) = read(&page, bytes.as_bytes(), change);
        assert_eq!(fetched.dropped, Some((stats.links_dropped + stats.links_over_bytes, expected)));
    }
}

/// Header fields apply to every document, like statements in a page.
#[test]
fn refreshes_and_robots_tags_in_fields() {
    let page = job(JobKind::Page, "http://a.test/d/p");
    let of = |fields: &str| {
        let bytes = format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n<p>x");
        let (fetched, stats, _) = read(&page, bytes.as_bytes(), |_| {});
        let links: Vec<String> = fetched.links.iter().map(|(_, url)| url.replace("http://a.test", "")).collect();
        (links.join(" "), fetched.is_noindex, stats.links_deferred)
    };
    for (fields, expected) in [
        ("Content-Type: text/html\r\nRefresh: 0; url=/x", ("/x", false, 0)),
        ("Content-Type: image/png\r\nREFRESH: 5;URL=\"y\"", ("/d/y", false, 0)),
        ("Content-Type: text/html\r\nRefresh: 9\r\nRefresh: 0; url=/no", ("", false, 0)),
        ("Content-Type: text/html\r\nRefresh: 0; url=/caf\u{e9}", ("/caf%C3%A9", false, 0)),
        ("Content-Type: text/html\r\nRefresh: 0; url=/x\r\nX-Robots-Tag: nofollow", ("/x", false, 1)),
        ("Content-Type: text/html\r\nRobots-Tag: noindex\r\nRefresh: 0; url=/x", ("/x", true, 1)),
        ("Content-Type: text/html\r\nRobots-Tag: otherbot: noindex", ("", false, 0)),
        ("Content-Type: text/html\r\nrobots-tag: noarchive\r\nx-robots-tag: noindex;nofollow", ("", true, 0)),
    ] {
        let (links, is_noindex, deferred) = of(fields);
        assert_eq!((links.as_str(), is_noindex, deferred), expected, "{fields}");
    }
}

/// Fetch section 2.2.2, "extract a MIME type": the last valid type counts.
#[test]
fn several_content_types() {
    let page = job(JobKind::Page, "http://a.test/");
    for (fields, body, links, said_type, charset) in [
        (
            "Content-Type: text/plain\r\nContent-Type: text/html",
            "<a href=/\u{fc}?\u{fc}>",
            1,
            "text/html",
            "windows-1252",
        ),
        ("Content-Type: text/html\r\nContent-Type: image/png", "<a href=/x>", 0, "image/png", ""),
        (
            "Content-Type: text/html;charset=koi8-r\r\nContent-Type: text/html;x=y",
            "<a href=/x>",
            1,
            "text/html",
            "KOI8-R",
        ),
        (
            "Content-Type: text/html;charset=koi8-r\r\nX: y\r\ncontent-type: */*",
            "<a href=/x>",
            1,
            "text/html",
            "KOI8-R",
        ),
        (
            "Content-Type: text/plain;charset=gbk\r\nContent-Type: text/html",
            "<a href=/x>",
            1,
            "text/html",
            "windows-1252",
        ),
        ("Content-Type: text/html; charset=utf-8\r\nContent-Type: nonsense", "<a href=/x>", 1, "text/html", "UTF-8"),
    ] {
        let bytes = format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n{body}");
        let (transaction, mut stats) = (transaction(bytes.as_bytes()), Totals::default());
        let mut decoder = Decoder::default();
        let read = PageReader::new(Arc::default()).read(&page, &transaction, &mut decoder, &mut stats);
        let (mime, read_in) = read
            .store(|capture| {
                let mime = ringcrawl_warc::index::media_type(capture.mime).into_owned();
                (mime, capture.charset.unwrap_or_default().to_owned())
            })
            .expect("stored");
        let found = read.into_fetched().links.len();
        assert_eq!((found, mime.as_str(), read_in.as_str()), (links, said_type, charset), "{fields}");
    }
}

/// A blog's front and sections name feeds of posts, its posts name feeds of comments.
#[test]
fn other_formats_of_a_page() {
    use ringcrawl_config::Alternates;
    let head = |own: &str, more: &str| {
        format!(
            "<link rel=alternate type='application/rss+xml' href=/feed/><link rel=alternate type='application/atom+xml; x=y' \
             href='{own}feed/'><link rel=alternate hreflang=de href=/de/><link rel=alternate type=application/json href=/json>\
             <link rel='alternate stylesheet' type=text/css href=/s.css>{more}"
        )
    };
    let oembed = "<link rel=alternate type='application/json+oembed' href=/o1><link rel=alternate type=text/xml+oembed href=/o2>";
    let of = |path: &str, depth: u16, more: &str, alternates| {
        let page = FetchJob { depth, ..job(JobKind::Page, &format!("http://a.test{path}")) };
        let bytes = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{}", head(path, more));
        let (fetched, stats, _) = read(&page, bytes.as_bytes(), |config| config.links.alternates = alternates);
        let links: Vec<String> = fetched.links.iter().map(|(_, url)| url.replace("http://a.test", "")).collect();
        (links.join(" "), stats.links_other_formats)
    };
    let some = |links: &str, left_out: u64| (links.to_owned(), left_out);
    for (path, depth, more, expected) in [
        ("/", 3, "", some("/de/ /feed/", 2)),
        ("/", 3, oembed, some("/de/ /feed/", 4)),
        ("/trains/", 3, "", some("/de/ /feed/ /trains/feed/", 2)),
        ("/category/night-trains/", 3, "", some("/de/ /feed/ /category/night-trains/feed/", 2)),
        ("/2026/05/a-post/", 3, oembed, some("/de/", 6)),
        ("/2026/05/a-post/", 3, "", some("/de/", 4)),
        ("/a-post/", 3, oembed, some("/de/", 6)),
        ("/a-post/", 0, oembed, some("/de/ /feed/ /a-post/feed/", 4)),
        ("/a-post/", 3, &format!("{oembed}<a href=/feed/>f</a>"), some("/de/ /feed/", 6)),
    ] {
        assert_eq!(of(path, depth, more, Alternates::Feeds), expected, "{path} {depth} {more}");
    }
    let all = some("/feed/ /a-post/feed/ /de/ /json /s.css /o1 /o2", 0);
    assert_eq!(of("/a-post/", 3, oembed, Alternates::All), all);
    assert_eq!(of("/", 3, oembed, Alternates::Off), some("/de/", 6));
    // Header fields name them, too.
    let bytes = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nLink: </json/1>; rel=alternate; type=\"application/json\"\r\n\r\n";
    let (fetched, stats, _) = read(&job(JobKind::Page, "http://a.test/"), bytes, |_| {});
    assert_eq!((fetched.links.len(), stats.links_other_formats), (0, 1));
}

/// Each is read as browsers read it, kept, and counted.
#[test]
fn odd_responses_are_kept_with_a_blemish() {
    let page = job(JobKind::Page, "http://a.test/");
    let body = "<a href=/x>x</a>";
    for (head, blemish) in [
        ("HTTP/1 200 OK\r\nContent-Length: 16", Blemish::VersionOdd),
        ("HTTP/2 200\r\nContent-Length: 16", Blemish::VersionOdd),
        ("HTTP/1.1 200 OK\r\nContent-Length: many", Blemish::LengthInvalid),
        ("HTTP/1.1 200 OK\r\nContent-Length: -1", Blemish::LengthInvalid),
        ("HTTP/1.1 200 OK\r\nContent-Length:", Blemish::LengthInvalid),
    ] {
        let bytes = format!("{head}\r\nContent-Type: text/html\r\n\r\n{body}");
        let (fetched, stats, is_stored) = read(&page, bytes.as_bytes(), |_| {});
        assert_eq!((fetched.status, fetched.links.len(), fetched.body_bytes, is_stored), (200, 1, 16, true), "{head}");
        assert_eq!((stats.blemishes[blemish as usize], stats.blemishes.iter().sum::<u64>()), (1, 1), "{head}");
    }
    let mut coded = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut coded, body.as_bytes()).expect("in memory");
    let coded = coded.finish().expect("in memory");
    for label in ["gzip, gzip", "gzip\r\nContent-Encoding: gzip"] {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: {label}\r\n\r\n");
        let (fetched, stats, _) = read(&page, &[head.as_bytes(), &coded].concat(), |_| {});
        let told = stats.blemishes[Blemish::CodingMislabelled as usize];
        assert_eq!((fetched.links.len(), told, stats.blemishes.iter().sum::<u64>()), (1, 1, 1), "{label}");
    }
}

#[test]
fn sitemaps_have_limits_of_their_own_where_they_are_wanted() {
    let entries: String =
        (0..20_000).map(|number| format!("<url><loc>/{number}/a-page-of-usual-length</loc></url>")).collect();
    let bytes = format!("HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\n\r\n<urlset>{entries}</urlset>");
    let page = job(JobKind::Page, "http://a.test/map");
    let counts = |change: fn(&mut Config)| {
        let (fetched, stats, _) = read(&page, bytes.as_bytes(), change);
        assert_eq!((stats.listings, stats.sitemaps), (1, 1));
        (fetched.links.len(), stats.links_dropped, stats.links_over_bytes)
    };
    assert_eq!(counts(|_| {}), (10_000, 10_000, 0));
    assert_eq!(counts(|config| config.links.sitemaps = Sitemaps::Robots), (20_000, 0, 0));
    let few = |config: &mut Config| {
        config.links.sitemaps = Sitemaps::Robots;
        config.links.sitemap_links_max = 15_000;
        config.links.sitemap_link_bytes_max = 100_000;
    };
    let (links, dropped, over) = counts(few);
    assert!((2_000..3_000).contains(&links) && dropped > 5_000 && links + dropped as usize + over as usize == 20_000);
}

/// The sitemaps protocol defines no media types, and servers send any.
#[test]
fn what_is_named_as_a_sitemap_is_judged_by_its_bytes() {
    use std::io::Write as _;
    let packed = |text: &[u8]| {
        let mut file = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        file.write_all(text).and_then(|()| file.finish()).expect("in memory")
    };
    let found = |content_type: &str, body: &[u8], hops: Hops| -> Vec<String> {
        let head = format!("HTTP/1.1 200 OK\r\n{content_type}Content-Length: {}\r\n\r\n", body.len());
        let page = FetchJob { depth: hops.bits(), ..job(JobKind::Page, "http://a.test/map") };
        let (fetched, ..) = read(&page, &[head.as_bytes(), body].concat(), |_| {});
        fetched.links.iter().map(|(depth, url)| format!("{depth} {url}")).collect()
    };
    let xml = b"<?xml version='1.0'?>\n<urlset><url><loc>http://a.test/x</loc></url></urlset>";
    let bare = b"\xef\xbb\xbf<urlset xmlns='x'><url><loc>http://a.test/x</loc></url></urlset>";
    let list = b"\n  HTTP://a.test/x\nno url\n";
    let hops = Hops::default().link();
    for content_type in [
        "application/x-gzip",
        "text/html",
        "text/html; charset=utf-8",
        "application/octet-stream",
        "image/png",
        "text/plain",
        "application/xml",
        "application/json",
        "application/x-unknown",
        "gz",
        "application/pdf",
    ] {
        for text in [&xml[..], bare, list] {
            for body in [text.to_vec(), packed(text), packed(&packed(text))] {
                let field = format!("Content-Type: {content_type}\r\n");
                assert_eq!(found(&field, &body, hops.sitemap()), ["2 http://a.test/x"], "{content_type}");
            }
        }
    }
    assert_eq!(found("", &packed(list), hops.sitemap()), ["2 http://a.test/x"]);
    // These were not named as sitemaps.
    let html = "Content-Type: text/html\r\n";
    assert_eq!(found(html, list, hops), [""; 0]);
    assert_eq!(found("Content-Type: image/png\r\n", xml, hops), [""; 0]);
    // A page in its place is a page, and a picture is nothing; packed three times it is an archive.
    for page in [
        "<!doctype html><a href=/x>",
        "<div><a href=/x></div>",
        "Not here: <a href=/x>",
        "<?xml version='1.0'?><html><a href='/x'/>",
    ] {
        assert_eq!(found(html, page.as_bytes(), hops.sitemap()), ["2 http://a.test/x"], "{page}");
    }
    for other in [&b"\x89PNG\r\n\x1a\n http://a.test/x"[..], b"", b"\x1f\x8b\x08", &packed(&packed(&packed(list)))] {
        assert_eq!(found("Content-Type: application/x-gzip\r\n", other, hops.sitemap()), [""; 0]);
    }
    // Sitemaps named by an index count as named, at any depth; so do those named by a robots.txt.
    let index = b"<sitemapindex><sitemap><loc>http://a.test/x</loc></sitemap></sitemapindex>";
    let named = found(html, &packed(index), hops.sitemap());
    assert_eq!(named, [format!("{} http://a.test/x", hops.redirect().sitemap().bits())]);
    let robots = FetchJob { depth: 0, ..job(JobKind::Robots, "http://a.test/robots.txt") };
    let (fetched, ..) = read(&robots, b"HTTP/1.1 200 OK\r\n\r\nSitemap: /map\n", |config| {
        config.links.sitemaps = Sitemaps::Robots;
    });
    assert_eq!(fetched.links.iter().collect::<Vec<_>>(), [(hops.sitemap().bits(), "http://a.test/map")]);
}

#[test]
fn an_index_is_one_redirect_to_each_of_its_sitemaps() {
    let bytes = "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\n\r\n<sitemapindex><sitemap><loc>/s</loc></sitemap></sitemapindex>";
    let mut index = job(JobKind::Page, "http://a.test/index");
    for redirects in 1..=4 {
        let (fetched, stats, _) = read(&index, bytes.as_bytes(), |_| {});
        let (depth, _) = fetched.links.iter().next().expect("a link");
        let hops = Hops::from_bits(depth);
        assert_eq!((hops.links(), hops.redirects(), stats.links_too_deep), (3, redirects, 0));
        index.depth = depth;
    }
    let (fetched, stats, _) = read(&index, bytes.as_bytes(), |_| {});
    assert_eq!((fetched.links.len(), stats.links_too_deep), (0, 1));
}

/// (RFC 9309 does not mention it: HTML section 4.6.7, and what search engines document.)
#[test]
fn links_that_are_advised_against_wait_behind_others() {
    const LINKS: &str = "<a href=/twice rel='x NoFollow'>1</a><a href=/no rel=nofollow>2</a><a href=/twice>3</a><a href=/ugc rel=ugc>4</a>\
                         <a href=/ad rel='sponsored noopener'>5</a><a href=/yes rel=next>6</a>";
    let deferred = Hops::from_bits(4).deferred().bits();
    let links = |fields: &str, head: &str, change: fn(&mut Config)| {
        let bytes = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{fields}\r\n{head}{LINKS}");
        let (fetched, stats, _) = read(&job(JobKind::Page, "http://a.test/"), bytes.as_bytes(), change);
        let names = |depth| {
            let of_depth =
                fetched.links.iter().filter(|(of, _)| *of == depth).map(|(_, url)| &url["http://a.test/".len()..]);
            of_depth.collect::<Vec<_>>().join(" ")
        };
        let [first, last] = [4, deferred].map(names);
        (first, last, stats.links_deferred, stats.links_advised_against)
    };
    let all = |count| (String::new(), "twice yes no ugc ad".to_owned(), count, 0);
    let some = ("twice yes".to_owned(), "no ugc ad".to_owned(), 3, 0);
    let obeyed = ("twice yes".to_owned(), String::new(), 0, 3);
    let ignored = ("twice yes no ugc ad".to_owned(), String::new(), 0, 0);
    let none = (String::new(), String::new(), 0, 5);
    assert_eq!(links("", "", |_| {}), some);
    assert_eq!(links("", "", |config| config.links.nofollow = AdvisedAgainst::Obey), obeyed);
    assert_eq!(links("", "", |config| config.links.nofollow = AdvisedAgainst::Ignore), ignored);
    for (fields, head) in [("X-Robots-Tag: nofollow\r\n", ""), ("", "<meta name=robots content='x, NONE'>")] {
        assert_eq!(links(fields, head, |config| config.links.from_noindex = AdvisedAgainst::Ignore), all(5));
        assert_eq!(links(fields, head, |config| config.links.nofollow = AdvisedAgainst::Obey), none);
    }
    for (fields, head) in [("X-Robots-Tag: noindex\r\n", ""), ("", "<meta name=robots content=noindex>")] {
        assert_eq!(links(fields, head, |_| {}), all(5));
        assert_eq!(links(fields, head, |config| config.links.from_noindex = AdvisedAgainst::Ignore), some);
        assert_eq!(links(fields, head, |config| config.links.from_noindex = AdvisedAgainst::Obey), none);
    }
    // Links to other hosts are never deferred, but the configuration may drop them.
    let bytes = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<a href=//b.test/x rel=nofollow><a href=//a.test.evil/ rel=ugc>";
    let foreign = |change: fn(&mut Config)| {
        let (fetched, stats, _) = read(&job(JobKind::Page, "http://a.test/"), bytes, change);
        (
            fetched.links.iter().filter(|(depth, _)| *depth == 4).count(),
            stats.links_deferred,
            stats.links_advised_against,
        )
    };
    assert_eq!(foreign(|_| {}), (2, 0, 0));
    assert_eq!(foreign(|config| config.links.nofollow = AdvisedAgainst::Obey), (0, 0, 2));
    let for_others = "X-Robots-Tag: otherbot: noindex, nofollow\r\n";
    assert_eq!(links(for_others, "", |_| {}), some);
}

/// A base is written once and read before each reference: what that makes of a page is a multiple of its bytes.
#[test]
fn a_long_base_makes_no_more_than_a_multiple_of_the_page() {
    let base = "b".repeat(2_000);
    let rel = |number| if number % 2 == 0 { "nofollow" } else { "next" };
    let links: String = (0..10_000).map(|number| format!("<a href={number} rel={}>", rel(number))).collect();
    let bytes = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<base href=/{base}/>{links}");
    let page = job(JobKind::Page, "http://a.test/");
    let link_bytes = |bytes: &str, change: fn(&mut Config)| {
        let (fetched, stats, _) = read(&page, bytes.as_bytes(), change);
        let (links, dropped, over) = (stats.links, stats.links_dropped, stats.links_over_bytes);
        assert_eq!((links + dropped, fetched.links.len() as u64 + over), (10_000, links), "nothing goes uncounted");
        fetched.links.iter().map(|(_, url)| url.len()).sum::<usize>()
    };
    assert!((1_040_000..=1 << 20).contains(&link_bytes(&bytes, |_| {})));
    assert!((126_000..=bytes.len()).contains(&link_bytes(&bytes, |config| config.links.page_link_ratio_max = 1)));
    let bytes_max = |config: &mut Config| config.links.page_link_bytes_max = 100_000;
    assert!((98_000..=100_000).contains(&link_bytes(&bytes, bytes_max)));
    let short = bytes.get(..4_000).expect("ASCII").to_owned();
    let (fetched, ..) = read(&page, short.as_bytes(), |config| config.links.page_link_ratio_max = 1);
    assert!(fetched.links.as_bytes().len() > 30 * 2_000, "a short page has its share");
}

/// Hosts that are expensive to read are bounded in bytes; other links go on.
#[test]
fn costly_hosts_are_bounded() {
    let host = "\u{4e2d}\u{6587}".repeat(400);
    let links: String = (0..200).map(|number| format!("<a href=//{host}.{number}.test/><a href=/{number}>")).collect();
    let bytes = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n{links}");
    let (fetched, stats, _) = read(&job(JobKind::Page, "http://a.test/"), bytes.as_bytes(), |_| {});
    let plain = fetched.links.iter().filter(|(_, url)| url.starts_with("http://a.test/")).count();
    assert_eq!(plain, 200);
    assert!((150..200).contains(&stats.links_dropped), "{}", stats.links_dropped);
}

#[test]
fn of_a_robots_txt_no_more_is_read_than_counts() {
    let body = "Disallow: /x\n".repeat(100_000);
    let bytes = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\nUser-agent: *\n{body}", body.len() + 14);
    let config = Config::default();
    let limits = config.fetch.limits_of_robots(&config.robots);
    let transaction = plain_transaction(bytes.as_bytes(), limits);
    assert_eq!(transaction.response.body.len(), (512 + 64) << 10);
    let mut stats = Totals::default();
    let robots = job(JobKind::Robots, "http://a.test/robots.txt");
    let fetched = PageReader::new(Arc::new(config))
        .read(&robots, &transaction, &mut Decoder::default(), &mut stats)
        .into_fetched();
    assert_eq!(fetched.body_bytes, (512 << 10) + 1);
    assert!(fetched.rules.is_some_and(|rules| rules.len() == 1 && !rules.allows("/x")));
    assert_eq!((stats.blemishes[Blemish::RobotsOverLimit as usize], stats.blemishes.iter().sum::<u64>()), (1, 1));
}

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
fn a_redirect_is_a_link_of_its_own_kind() {
    let bytes = b"HTTP/1.1 302 Found\r\nLocation: /there#part\r\nContent-Length: 0\r\n\r\n";
    let page = job(JobKind::Page, "http://a.test/here");
    let (fetched, stats, _) = read(&page, bytes, |_| {});
    let links: Vec<(u16, &str)> = fetched.links.iter().collect();
    assert_eq!(links, [(Hops::from_bits(3).redirect().bits(), "http://a.test/there")]);
    assert_eq!((stats.pages, stats.statuses[3]), (0, 1));
    let bytes = b"HTTP/1.1 302 Found\r\nLocation: /here\r\n\r\n";
    let (_, stats, _) = read(&page, bytes, |_| {});
    assert_eq!(stats.blemishes[Blemish::RedirectToItself as usize], 1);
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

/// A robots.txt that is not in its declared coding: rules if it is text after all, and nothing otherwise.
#[test]
fn rules_are_read_from_text_alone() {
    let robots = job(JobKind::Robots, "http://a.test/robots.txt");
    let head = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n".as_bytes();
    let (fetched, ..) = read(&robots, &[head, b"User-agent: *\nDisallow: /x\n"].concat(), |_| {});
    assert!(fetched.rules.is_some_and(|rules| !rules.allows("/x") && rules.allows("/y")));
    let (fetched, ..) = read(&robots, &[head, b"\x1f\x8b\xff\xff broken from the start"].concat(), |_| {});
    assert_eq!(fetched.rules, None);
}

#[test]
fn what_was_cut_is_told_once() {
    let page = job(JobKind::Page, "http://a.test/");
    let bytes = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 100\r\n\r\n\x1f\x8b\x08";
    let (fetched, stats, _) = read(&page, bytes, |_| {});
    assert_eq!(fetched.truncated, Some(ringcrawl_base::Truncated::Disconnect));
    assert_eq!(stats.blemishes_by_name().collect::<Vec<_>>(), [(Blemish::BodyShort, 1)]);
    let bytes = b"HTTP/1.1 429 Slow down\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n";
    let (fetched, stats, _) = read(&page, bytes, |_| {});
    assert_eq!(fetched.retry_after, Some(Duration::from_secs(7)));
    assert_eq!(stats.blemishes_by_name().collect::<Vec<_>>(), [(Blemish::Overloaded, 1)]);
}

/// What the shard reads itself is bounded in bytes as they came, in content bytes, and in codings.
#[test]
fn long_responses_are_not_read_at_once() {
    let page = job(JobKind::Page, "http://a.test/");
    let is_short = |fields: &str, body: &[u8]| {
        let mut config = Config::default();
        config.fetch.short_bytes_max = 1_000;
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{fields}\r\n");
        let transaction = transaction(&[head.as_bytes(), body].concat());
        let mut stats = Totals::default();
        let mut decoder = Decoder::default();
        let is_short =
            PageReader::new(Arc::new(config)).read_short(&page, &transaction, &mut decoder, &mut stats).is_some();
        assert_eq!(stats.pages, u64::from(is_short), "what is read elsewhere is counted there");
        is_short
    };
    assert!(is_short("", &[b'x'; 1_000]) && !is_short("", &[b'x'; 1_001]));
    let (coded, content) = ("Content-Encoding: zstd\r\n", |bytes| zstd::bulk::compress(&vec![b'x'; bytes], 1).unwrap());
    assert!(is_short(coded, &content(3_999)) && !is_short(coded, &content(4_000)));
    assert!(!is_short("Content-Encoding: zstd, gzip\r\n", b"x"));
    assert!(!is_short("", b"\x1f\x8b\x08") && !is_short(coded, &zstd::bulk::compress(b"\x1f\x8b\x08", 1).unwrap()));
}

/// A response read in parallel to its shard yields the same result as in the shard.
#[test]
fn who_reads_a_response_makes_no_difference() {
    let body = "<a href=/a>1</a><a href=//b.test/>2</a>".repeat(50);
    for (kind, path, fields) in [
        (JobKind::Page, "/", "200 OK\r\nContent-Type: text/html"),
        (JobKind::Page, "/", "200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip"),
        (JobKind::Page, "/", "301 There\r\nLocation: /there"),
        (JobKind::Page, "/", "404 None"),
        (JobKind::Robots, "/robots.txt", "200 OK"),
    ] {
        let job = job(kind, &format!("http://a.test{path}"));
        let transaction = transaction(format!("HTTP/1.1 {fields}\r\n\r\n{body}").as_bytes());
        let (mut segment, mut writer) = (segment(), CaptureWriter::new(Packing::default()).expect("a writer"));
        let reader = PageReader::new(Arc::default());
        let mut stats = Totals::default();
        let mut decoder = Decoder::default();
        let page = reader.read_short(&job, &transaction, &mut decoder, &mut stats).expect("short");
        let append_here = |segment: &mut SegmentWriter| {
            page.store(|capture| segment.append(capture)).expect("stored").expect("appended")
        };
        let here = append_here(&mut segment);
        let mut append_there = |segment: &mut SegmentWriter| {
            let names = segment.names().expect("open");
            let mut read = reader.reading(job.clone(), Box::new(transaction.clone()), names).read(&mut writer);
            let records = read.records.take().expect("stored").expect("written");
            (segment.append_records(&job.url, records).expect("written").expect("of this segment"), read)
        };
        let (there, read) = append_there(&mut segment);
        let sizes = |placed: Placed, like: Placed| {
            (placed.payload, placed.is_revisit, placed.frame_bytes.abs_diff(like.frame_bytes) < 20)
        };
        assert_eq!(sizes(there, here), sizes(here, here), "{fields}");
        assert_eq!(there.offset, here.offset + here.capture_bytes);
        // Also where a body is not stored again.
        let originals = Config::default().store.originals(1, Arc::default());
        let mut segment = segment.knowing(originals);
        assert_eq!(
            [append_here(&mut segment), append_here(&mut segment)].map(|placed| placed.is_revisit),
            [false, true]
        );
        let (revisit_there, _) = append_there(&mut segment);
        let revisit_here = append_here(&mut segment);
        assert_eq!(sizes(revisit_there, revisit_here), sizes(revisit_here, revisit_here), "{fields}");
        assert_eq!(revisit_here.offset, revisit_there.offset + revisit_there.capture_bytes);
        assert_eq!((read.is_page, &read.stats), (page.is_page(), &stats));
        assert_eq!(read.fetched, page.into_fetched());
    }
}

/// Records name their segment: they do not fit into the next one, and are rewritten.
#[test]
fn records_of_a_closed_segment_have_no_place_in_the_next() {
    let job = job(JobKind::Page, "http://a.test/");
    let transaction = Box::new(transaction(b"HTTP/1.1 200 OK\r\n\r\nbody"));
    let (mut segment, mut writer) = (segment(), CaptureWriter::new(Packing::default()).expect("a writer"));
    let reader = PageReader::new(Arc::default());
    let names = segment.names().expect("open");
    let mut read = reader.reading(job.clone(), transaction, names).read(&mut writer);
    segment.finish();
    assert!(segment.names().is_err());
    segment.begin("next.warc.zst", UnixTime::from_micros(1)).expect("begins");
    let records = read.records.take().expect("stored").expect("written");
    assert_eq!(segment.append_records(&job.url, records.clone()), Ok(None), "of another segment");
    let mut again = read.again(&reader, segment.names().expect("open")).read(&mut writer);
    let anew = again.records.take().expect("stored").expect("written");
    assert_ne!(anew, records);
    assert!(segment.append_records(&job.url, anew).is_ok_and(|placed| placed.is_some()));
}

fn segment() -> SegmentWriter {
    let settings = Settings { packing: Packing::default(), segment_bytes_max: 1 << 30, ..Settings::default() };
    let mut segment = SegmentWriter::new(settings).expect("a writer");
    segment.begin("a.warc.zst", UnixTime::from_micros(0)).expect("begins");
    segment
}
