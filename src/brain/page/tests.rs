//! Responses, read.

mod embeds;
mod long_responses;
mod records;
mod sitemaps;

use super::*;
use crate::sample::plain_transaction;
use ringcrawl_base::Blemish;
use ringcrawl_base::time::{Duration, UnixTime};
use ringcrawl_config::AdvisedAgainst;
use ringcrawl_url::Url;

fn job(kind: JobKind, url: &str) -> FetchJob {
    FetchJob { id: 1, depth: 3, ..FetchJob::new(kind, Url::parse(url).expect("a URL")) }
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
