//! Sitemaps, their indexes, and what is named as one.

use super::*;

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
