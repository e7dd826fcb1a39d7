//! What a crawl finds in other things than HTML, and what it leaves out of the store when told so.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener};

use crate::rig::harvest::stored;
use crate::rig::program::run;
use ringcrawl_base::TempFolder;

/// Path, type, further header fields, body.
const PAGES: [(&str, &str, &str, &str); 14] = [
    ("/", "text/html", "Link: </by-header>; rel=next\r\n", "<link rel=alternate href=/feed><a href=/lie.pdf>x</a>"),
    ("/feed", "text/html", "", "<?xml version='1.0'?><rss><channel><item><link>/by-feed</link></item></channel></rss>"),
    ("/lie.pdf", "text/html", "", "%PDF-1.7 <a href=/not-a-link>"),
    ("/by-header", "text/plain", "", "http://HOST/by-list\nsee http://HOST/not-a-line\n"),
    ("/by-feed", "text/html", "", "a page"),
    ("/by-list", "application/pdf", "", "%PDF-1.7 the real one"),
    (
        "/index.xml",
        "application/xml",
        "",
        "<sitemapindex><sitemap><loc>http://HOST/index.xml</loc></sitemap><sitemap><loc>/other-index</loc></sitemap>",
    ),
    // Each names the other.
    (
        "/other-index",
        "text/xml",
        "",
        "<sitemapindex><sitemap><loc>/index.xml</loc></sitemap><sitemap><loc>http://HOST/map.xml.gz</loc></sitemap>",
    ),
    (
        "/map.xml.gz",
        "application/octet-stream",
        "",
        "gz <urlset><url><loc>http://HOST/by-map?a=1&amp;b=2</loc><lastmod>2020</lastmod><i:image><i:loc>/no.png</i:loc>\
         </i:image></url><url><loc>/newer</loc><lastmod>2021-01-01</lastmod></url></urlset>",
    ),
    ("/newer", "text/html", "", ""),
    ("/by-map?a=1&b=2", "text/html", "", "<a href=/by-page>x</a>"),
    ("/by-page", "image/png", "", "<a href=/not-a-link>"),
    ("/not-a-link", "text/html", "", ""),
    ("/not-a-line", "text/html", "", ""),
];

fn serve() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
    let port = listener.local_addr().expect("its address").port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            std::thread::spawn(move || {
                let mut lines = BufReader::new(stream.try_clone().expect("a clone")).lines();
                while let Some(Ok(request)) = lines.next() {
                    while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
                    let path = request.split(' ').nth(1).unwrap_or_default();
                    let host = format!("127.0.0.1:{port}");
                    let robots = ("/robots.txt", "text/plain", "", "Sitemap: http://HOST/index.xml\n");
                    let page = PAGES.iter().chain([&robots]).find(|page| page.0 == path);
                    let (_, content_type, fields, body) = page.unwrap_or(&("", "text/html", "", "missing"));
                    let status = if page.is_some() { "200 OK" } else { "404 Not Found" };
                    let mut body = body.replace("HOST", &host).into_bytes();
                    if let Some(text) = body.strip_prefix(b"gz ") {
                        let mut file = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
                        file.write_all(text).expect("in memory");
                        body = file.finish().expect("in memory");
                    }
                    let head = format!(
                        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\n{fields}Content-Length: {}\r\n\r\n",
                        body.len()
                    );
                    if stream.write_all(&[head.as_bytes(), &body].concat()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    port
}

/// The paths stored, and the summary.
fn crawl(folder: &TempFolder, name: &str, port: u16, more: &[&str]) -> (BTreeSet<String>, serde_json::Value) {
    let (dir, seed) = (folder.at(name), format!("http://127.0.0.1:{port}/"));
    let mut arguments = vec!["crawl", &seed, "--dir", &dir, "--json", "-", "--set", "politeness.host_delay=0s"];
    arguments.extend(["--set", "politeness.site_delay=0s", "--set", "politeness.ip_delay=0s"]);
    more.iter().for_each(|set| arguments.extend(["--set", set]));
    let json = run(&arguments).expect(0).json();
    let paths = stored(&dir).into_keys().map(|url| url.split_once(&format!(":{port}")).expect("ours").1.to_owned());
    (paths.filter(|path| path != "/robots.txt").collect(), json)
}

fn paths(text: &str) -> BTreeSet<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn links_are_found_in_what_is_no_html() {
    let (folder, port) = (TempFolder::new("listings"), serve());
    let (found, json) = crawl(&folder, "all", port, &["links.sitemaps=robots"]);
    assert_eq!(
        found,
        paths(
            "/ /feed /lie.pdf /by-header /by-feed /by-list /index.xml /other-index /map.xml.gz /newer /by-map?a=1&b=2 /by-page"
        )
    );
    let count = |name: &str| json[name].as_u64().expect("a number");
    // The feed, two indexes, the map and the list; the PDF that says so and the one that does not.
    assert_eq!((count("listings"), count("sitemaps"), count("pdfs"), count("not_stored")), (5, 3, 2, 0), "{json}");
    let (found, json) = crawl(&folder, "html", port, &["links.documents=html", "links.sitemaps=robots"]);
    assert_eq!(found, paths("/ /feed /lie.pdf /by-header /index.xml"));
    assert_eq!(json["listings"], 0);
    let (found, _) = crawl(&folder, "xml", port, &["links.documents=xml"]);
    assert_eq!(found, paths("/ /feed /lie.pdf /by-header /by-feed"));
}

/// Named by a robots.txt: under any type, packed once or twice, and by an index of such; after a restart and on another shard, too.
#[test]
fn sitemaps_are_read_whatever_their_servers_call_them() {
    let packed = |text: &[u8]| {
        let mut file = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        file.write_all(text).and_then(|()| file.finish()).expect("in memory")
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
    let port = listener.local_addr().expect("its address").port();
    let xml = |path: &str| format!("<urlset><url><loc>http://a.test:{port}{path}</loc></url></urlset>").into_bytes();
    let list = |path: &str| format!("http://a.test:{port}{path}\n").into_bytes();
    let names: String =
        (1..=5).map(|map| format!("Sitemap: http://{}.test:{port}/map{map}\n", ["a", "b"][map % 2])).collect();
    let index = format!("<sitemapindex><sitemap><loc>http://c.test:{port}/map6</loc></sitemap></sitemapindex>");
    let pages: Vec<(&str, &str, Vec<u8>)> = vec![
        ("/robots.txt", "text/plain", names.into_bytes()),
        ("/map1", "application/x-gzip", packed(&packed(&xml("/p1")))),
        ("/map2", "text/html", list("/p2")),
        ("/map3", "application/octet-stream", packed(&list("/p3"))),
        ("/map4", "text/html; charset=utf-8", xml("/p4")),
        ("/map5", "image/jpeg", packed(index.as_bytes())),
        ("/map6", "application/json", packed(&packed(&list("/p6")))),
    ];
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let pages = pages.clone();
            std::thread::spawn(move || {
                while let Some(request) = crate::rig::servers::read_request(&mut stream) {
                    let path = request.split(' ').nth(1).unwrap_or_default();
                    let page = pages.iter().find(|page| page.0 == path);
                    let (content_type, body) =
                        page.map_or(("text/html", &b"a page"[..]), |(_, kind, body)| (kind, body));
                    let head = format!(
                        "HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
                        body.len()
                    );
                    let _ = stream.write_all(&[head.as_bytes(), body].concat());
                }
            });
        }
    });
    let folder = TempFolder::new("sitemaps-by-bytes");
    let hosts: String = ["a", "b", "c"].iter().map(|host| format!("\"{host}.test\" = [\"127.0.0.1\"]\n")).collect();
    let config = folder.file(
        "config.toml",
        &format!(
            "politeness.host_delay = \"0s\"\npoliteness.site_delay = \"0s\"\npoliteness.ip_delay = \"0s\"\nlinks.sitemaps = \"robots\"\n\
             crawl.shards = 3\n[dns.hosts]\n{hosts}"
        ),
    );
    let seed = format!("http://a.test:{port}/");
    for (name, pages_max) in [("at-once", None), ("by-steps", Some("1"))] {
        let dir = folder.at(name);
        let mut arguments = vec!["crawl", "--dir", &dir, "-c", &config];
        for step in 0..20 {
            let run_one =
                [&arguments[..], &["--pages-max", pages_max.unwrap_or("0")], if step == 0 { &[&*seed] } else { &[] }];
            let json = run(&[&run_one.concat()[..], &["--json", "-"]].concat()).expect(0).json();
            if json["ended"] == "finished" {
                break;
            }
        }
        arguments.clear();
        let found: BTreeSet<String> =
            stored(&dir).into_keys().filter_map(|url| Some(url.split_once("/p")?.1.to_owned())).collect();
        assert_eq!(found, paths("1 2 3 4 6"), "{name}");
    }
}

#[test]
fn what_is_stored_goes_by_type() {
    let (folder, port) = (TempFolder::new("types"), serve());
    let (found, json) = crawl(&folder, "crawl", port, &["store.types=application/*, text/plain"]);
    assert_eq!(found, paths("/by-header /by-list"));
    assert_eq!((&json["not_stored"], &json["responses"]), (&4.into(), &7.into()), "{json}");
}
