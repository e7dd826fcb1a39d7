//! Servers that send a client around until it returns their cookie (RFC 6265): pages, and robots.txt. Judged by the
//! server's log.

use std::io::Write;
use std::sync::{Arc, Mutex};

use crate::rig::program::run;
use crate::rig::servers::{read_request, server};
use ringcrawl_base::TempFolder;

/// What was asked for, as `host/path`, and how it was answered.
type Asked = Vec<(String, u16)>;

/// Where a request without the cookie is sent to, with what status, and whether that sets the cookie. `None`: nowhere.
type Around = fn(&str, &str) -> Option<(&'static str, u16, bool)>;

/// Crawls a front page at `www.site.test` that links to `/p`, `/no` and `/yes`; robots.txt forbids `/no`.
fn crawl(around: Around, shards: &str) -> Asked {
    let log = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&log);
    let (addr, _) = server(move |mut stream, _| {
        while let Some(request) = read_request(&mut stream) {
            let field =
                |name: &str| request.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim();
            let path = request.split_whitespace().nth(1).unwrap_or_default();
            let (host, port) = field("Host:").split_once(':').unwrap_or_default();
            let sent = around(host, path).filter(|_| !field("Cookie:").contains("seen=1"));
            let (head, body) = match (sent, path) {
                (Some((to, status, sets)), _) => {
                    let cookie = if sets { "Set-Cookie: seen=1; Path=/\r\n" } else { "" };
                    (format!("{status} Moved\r\n{cookie}Location: {}", to.replace("PORT", port)), "")
                }
                (None, "/robots.txt") => ("200 OK".to_owned(), "User-agent: *\nDisallow: /no\n"),
                (None, "/") => ("200 OK".to_owned(), "<a href=/p>p</a> <a href=/no>no</a> <a href=/yes>yes</a>"),
                (None, _) => ("200 OK".to_owned(), "a page"),
            };
            let status = head.get(..3).and_then(|status| status.parse().ok()).unwrap_or_default();
            noted.lock().expect("a log").push((format!("{host}{path}"), status));
            let length = body.len();
            let head = format!("HTTP/1.1 {head}\r\nContent-Type: text/html\r\nContent-Length: {length}\r\n\r\n");
            if stream.write_all(format!("{head}{body}").as_bytes()).is_err() {
                return;
            }
        }
    });
    let folder = TempFolder::new("cookies");
    let text = "http.cookies = \"site\"\npoliteness.host_delay = \"0s\"\npoliteness.site_delay = \"0s\"\n\
                politeness.ip_delay = \"0s\"\nrobots.retry_delay = \"1s\"\nrobots.retries_max = 1\n\
                fetch.private_addresses = \"loopback-only\"\n\
                [dns.hosts]\n\"www.site.test\" = [\"127.0.0.1\"]\n\"sign-on.test\" = [\"127.0.0.1\"]\n";
    let (dir, config) = (folder.at("crawl"), folder.file("config.toml", text));
    let seed = format!("http://www.site.test:{}/", addr.port());
    run(&["crawl", &seed, "--dir", &dir, "-c", &config, "--shards", shards]);
    log.lock().map(|log| log.clone()).expect("a log")
}

fn count(asked: &Asked, url: &str, status: u16) -> usize {
    asked.iter().filter(|(asked, answered)| asked == url && *answered == status).count()
}

#[test]
fn a_page_that_redirects_lead_back_to_is_asked_once_more() {
    let ways: [(&str, Around); 5] = [
        ("to itself", |_, path| (path == "/p").then_some(("/p", 302, true))),
        ("to itself, by 307, with its authority", |_, path| {
            (path == "/p").then_some(("http://www.site.test:PORT/p", 307, true))
        }),
        ("over a check that sets the cookie", |_, path| match path {
            "/p" => Some(("/check", 302, false)),
            "/check" => Some(("/p", 302, true)),
            _ => None,
        }),
        ("over a sign-on host", |host, path| match (host, path) {
            ("www.site.test", "/p") => Some(("http://sign-on.test:PORT/on", 302, true)),
            ("sign-on.test", "/on") => Some(("http://www.site.test:PORT/p", 302, true)),
            _ => None,
        }),
        ("over two checks", |_, path| match path {
            "/p" => Some(("/a", 301, false)),
            "/a" => Some(("/b", 302, false)),
            "/b" => Some(("/p", 308, true)),
            _ => None,
        }),
    ];
    for (name, around) in ways {
        for shards in ["1", "2"] {
            let asked = crawl(around, shards);
            assert_eq!(count(&asked, "www.site.test/p", 200), 1, "{name}, {shards} shards: {asked:?}");
            assert_eq!(count(&asked, "www.site.test/yes", 200), 1, "{name}, {shards} shards: {asked:?}");
            assert_eq!(count(&asked, "www.site.test/no", 200), 0, "{name}, {shards} shards: {asked:?}");
        }
    }
}

#[test]
fn what_leads_back_for_ever_is_asked_twice() {
    let ways: [(&str, Around); 3] = [
        ("/p", |_, path| (path == "/p").then_some(("/p", 302, false))),
        ("/check", |_, path| match path {
            "/p" => Some(("/check", 302, false)),
            "/check" => Some(("/p", 302, false)),
            _ => None,
        }),
        ("sign-on", |host, path| match (host, path) {
            ("www.site.test", "/p") => Some(("http://sign-on.test:PORT/on", 302, false)),
            ("sign-on.test", "/on") => Some(("http://www.site.test:PORT/p", 302, false)),
            _ => None,
        }),
    ];
    for (name, around) in ways {
        for shards in ["1", "2"] {
            let asked = crawl(around, shards);
            let mut times: Vec<usize> =
                asked.iter().filter(|(_, status)| *status == 302).map(|(url, _)| count(&asked, url, 302)).collect();
            times.sort_unstable();
            assert_eq!(times.last(), Some(&2), "{name}, {shards} shards: {asked:?}");
        }
    }
}

#[test]
fn a_robots_txt_that_redirects_lead_back_to_is_asked_once_more() {
    let ways: [(&str, Around); 3] = [
        ("to itself", |_, path| (path == "/robots.txt").then_some(("/robots.txt", 302, true))),
        ("over a check", |_, path| match path {
            "/robots.txt" => Some(("/check", 302, false)),
            "/check" => Some(("/robots.txt", 307, true)),
            _ => None,
        }),
        ("over a sign-on host", |host, path| match (host, path) {
            ("www.site.test", "/robots.txt") => Some(("http://sign-on.test:PORT/on", 302, true)),
            ("sign-on.test", "/on") => Some(("http://www.site.test:PORT/robots.txt", 302, true)),
            _ => None,
        }),
    ];
    for (name, around) in ways {
        for shards in ["1", "2"] {
            let asked = crawl(around, shards);
            assert_eq!(count(&asked, "www.site.test/yes", 200), 1, "{name}, {shards} shards: {asked:?}");
            assert_eq!(count(&asked, "www.site.test/no", 200), 0, "{name}, {shards} shards: {asked:?}");
        }
    }
    // Without an end it is not to be had (RFC 9309 section 2.3.1.4): nothing is fetched.
    let asked = crawl(|_, path| path.starts_with("/robots.txt").then_some(("/robots.txt", 302, false)), "1");
    assert_eq!(count(&asked, "www.site.test/", 200), 0, "{asked:?}");
}
