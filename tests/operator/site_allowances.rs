//! LinkQuotas of sites by how many others link to them: a site with endless new pages, to which one links, beside sites that link to
//! each other.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::SocketAddr;

use ringcrawl_base::TempFolder;
use ringcrawl_url::Url;

use crate::rig::harvest::{Harvest, stored};
use crate::rig::program::run;
use crate::rig::servers::{read_request, server};

const SITES: u64 = 24;
const PAGES: u64 = 40;
/// What the spam site may have before others: as many pages, and as many again for the one site that links to it.
const FREE: u64 = 3;

/// The body at a host's path: `s1.test` to `s24.test` have forty pages each and link to each other, `hub.test` links to all of them and
/// once to spam.test. Each page of that links to two more, on three hosts, up to number `spam_pages`.
fn page(host: &str, path: &str, port: u16, spam_pages: u64) -> Option<String> {
    let number: u64 = if path == "/" { 0 } else { path.strip_prefix('/')?.parse().ok()? };
    let link = |host: &str, number: u64| format!("<a href=http://{host}:{port}/{number}>x</a>");
    let sites = || (1..=SITES).map(|site| link(&format!("s{site}.test"), 0)).collect::<String>();
    let links: String = if host == "hub.test" {
        sites() + &link("a.spam.test", 0)
    } else if host.ends_with(".spam.test") {
        let next = [2 * number + 1, 2 * number + 2].into_iter().filter(|next| *next < spam_pages);
        next.map(|next| link(["a.spam.test", "b.spam.test", "c.spam.test"][next as usize % 3], next)).collect()
    } else if number == 0 {
        sites() + &(1..PAGES).map(|page| link(host, page)).collect::<String>()
    } else {
        String::new()
    };
    // All of it is new to its host, as what a spammer's machine writes.
    let hash = |word: u64| xxhash_rust::xxh3::xxh3_64_with_seed(format!("{host}{number}").as_bytes(), word);
    let words: String = (0..60).map(|word| format!("w{:x} ", hash(word))).collect();
    Some(format!("<html><body>{words}{links}</body></html>"))
}

fn web(spam_pages: u64) -> SocketAddr {
    let serve = move |mut stream: std::net::TcpStream, _| {
        let port = stream.local_addr().map_or(0, |address| address.port());
        while let Some(request) = read_request(&mut stream) {
            let path = request.split(' ').nth(1).unwrap_or_default();
            let hosts = request.lines().filter_map(|line| line.split_once(": "));
            let host = hosts.filter(|(name, _)| name.eq_ignore_ascii_case("host")).map(|(_, host)| host).next();
            let host = host.and_then(|host| host.split(':').next()).unwrap_or_default();
            let response = match page(host, path, port, spam_pages) {
                Some(body) => {
                    format!(
                        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n{body}",
                        body.len()
                    )
                }
                None => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
            };
            if stream.write_all(response.as_bytes()).is_err() {
                return;
            }
        }
    };
    server(serve).0
}

struct Crawl {
    folder: TempFolder,
    address: SocketAddr,
    config: String,
}

impl Crawl {
    fn new(name: &str, spam_pages: u64) -> Crawl {
        let (folder, address) = (TempFolder::new(name), web(spam_pages));
        let sites = (1..=SITES).map(|site| format!("s{site}.test"));
        let others = ["hub.test", "a.spam.test", "b.spam.test", "c.spam.test"].map(str::to_owned);
        let hosts: String = sites.chain(others).map(|host| format!("\"{host}\" = \"127.0.0.1\"\n")).collect();
        let text = format!(
            "version = 1\n[crawl]\nrng_seed = 5\n[budget]\nsite_pages_free = {FREE}\n\
             site_pages_per_linking_site = {FREE}\n[politeness]\nhost_delay = \"0s\"\nsite_delay = \"0s\"\nip_delay = \"0s\"\n\
             group_delay = \"0s\"\nresponse_factor = 0\n[dns.hosts]\n{hosts}"
        );
        let config = folder.file("config.toml", &text);
        Crawl { folder, address, config }
    }

    fn run(&self, dir: &str, shards: u16, settings: &[&str]) -> (serde_json::Value, BTreeMap<String, u64>) {
        let (dir, shards) = (self.folder.at(dir), shards.to_string());
        let seed = format!("http://hub.test:{}/", self.address.port());
        let mut arguments = vec!["crawl", &seed, "--dir", &dir, "-c", &self.config, "--shards", &shards, "--json", "-"];
        settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
        let json = run(&arguments).expect(0).json();
        (json, pages(&stored(&dir)))
    }

    fn why(&self, dir: &str, host: &str) -> (serde_json::Value, String) {
        let arguments = ["why", host, "--dir", &self.folder.at(dir)];
        let json = run(&[&arguments[..], &["--json"]].concat()).expect(0).json();
        (json, run(&arguments).expect(0).out)
    }
}

/// Pages of each site.
fn pages(harvest: &Harvest) -> BTreeMap<String, u64> {
    let mut sites = BTreeMap::new();
    for (url, captures) in harvest {
        assert_eq!(captures.len(), 1, "{url} is stored once");
        let site = Url::parse(url).expect("a URL").site().to_owned();
        *sites.entry(site).or_default() += u64::from(captures[0].status == 200);
    }
    sites
}

#[test]
fn a_site_that_few_link_to_waits_for_others() {
    let crawl = Crawl::new("allowances", u64::MAX / 4);
    for shards in [1, 2, 4] {
        let of = |dir: &str, settings: &[&str]| {
            let dir = format!("{dir}{shards}");
            let (json, sites) = crawl.run(&dir, shards, &[&["crawl.pages_max=700"], settings].concat());
            assert_eq!(json["pages"], 700, "{json:#}");
            (json["turns_over_allowance"].as_u64().unwrap_or_default(), sites["spam.test"])
        };
        let (deferred, spam) = of("with", &[]);
        // What it may have, and of 700 pages a sixteenth of what 3 of 27 hosts would have had; some are in flight.
        assert!(spam <= 2 * FREE + 20 && deferred > 0, "{shards} shards: {spam} of 700, {deferred} deferred");
        let (deferred, without) = of("without", &["budget.site_pages_per_linking_site=0"]);
        assert!(without > 2 * spam && deferred == 0, "{shards} shards: {without} of 700 without it");
        println!("{shards} shards: {spam} of 700 pages are spam, {without} without allowances");
    }
    let (json, text) = crawl.why("with2", "b.spam.test");
    assert!(
        text.contains("spam.test: 1 other site links to it, ") && text.contains("pages of its allowance of 6"),
        "{text}"
    );
    assert_eq!(
        (&json["site"]["linking_sites"], &json["site"]["pages_before_others"]),
        (&1.into(), &6.into()),
        "{json:#}"
    );
    assert!(
        json["holds"].as_array().is_some_and(|holds| holds.iter().any(|hold| hold["by"] == "allowance")),
        "{json:#}"
    );
    let (json, text) = crawl.why("with2", "hub.test");
    assert!(text.contains("a seed's site has no allowance"), "{text}");
    assert_eq!(json["site"]["pages_before_others"], serde_json::Value::Null, "{json:#}");
}

/// However many shards share the work, the same is counted, and without a budget everything is fetched.
#[test]
fn nothing_is_dropped_and_counts_do_not_depend_on_shards() {
    let crawl = Crawl::new("allowances-whole", 100);
    let mut counts: Vec<Vec<u64>> = Vec::new();
    for shards in [1, 2, 4] {
        let dir = format!("whole{shards}");
        let (json, sites) = crawl.run(&dir, shards, &[]);
        assert_eq!((&json["ended"], sites["spam.test"]), (&"finished".into(), 100), "{json:#}");
        assert!((1..=SITES).all(|site| sites[&format!("s{site}.test")] == PAGES), "{sites:?}");
        let hosts =
            (1..=SITES).map(|site| format!("s{site}.test")).chain(["hub.test".to_owned(), "a.spam.test".to_owned()]);
        let of = |host: String| crawl.why(&dir, &host).0["site"]["linking_sites"].as_u64().unwrap_or(99);
        counts.push(hosts.map(of).collect());
    }
    // 23 others and the hub.
    assert!(counts[0].iter().take(24).all(|count| (14..=38).contains(count)), "{counts:?}");
    assert_eq!(counts[0][24..], [0, 1], "{counts:?}");
    assert!(counts.iter().all(|other| *other == counts[0]), "{counts:?}");
    // What an earlier run counted is known to another number of shards, and nobody is counted twice.
    let (json, _) = crawl.run("whole4", 3, &[]);
    assert_eq!(json["ended"], "finished");
    let of =
        |site: u64| crawl.why("whole4", &format!("s{site}.test")).0["site"]["linking_sites"].as_u64().unwrap_or(99);
    assert_eq!((1..=SITES).map(of).collect::<Vec<_>>(), counts[0][..24]);
}
