//! robots.txt that lies elsewhere (RFC 9309 section 2.3.1.2): over one to five other authorities, to a path of its own,
//! what is said at the end holds for the host that was asked first. Judged by the server's log.

use std::sync::{Arc, Mutex};

use crate::rig::program::run;
use crate::rig::servers::{read_request, server};
use ringcrawl_base::TempFolder;

/// Crawls `/yes` and `/no` of a host whose robots.txt lies `hops` authorities further; what the server was asked for.
fn asked(hops: usize, shards: &str) -> Vec<String> {
    let log = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&log);
    let (addr, _) = server(move |mut stream, _| {
        while let Some(request) = read_request(&mut stream) {
            let field = |name: &str| request.lines().find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()));
            let path = request.split_whitespace().nth(1).unwrap_or_default().to_owned();
            let authority = field("Host:").unwrap_or_default();
            let (host, port) = authority.split_once(':').unwrap_or_default();
            noted.lock().expect("a log").push(format!("{host}{path}"));
            let step = match path.as_str() {
                "/robots.txt" if host == "h0.test" => Some(0),
                path => path.strip_prefix("/rules/").and_then(|step| step.parse().ok()),
            };
            let (head, body) = match step {
                Some(step) if step < hops => {
                    let next = step + 1;
                    (format!("302 Found\r\nLocation: http://h{next}.test:{port}/rules/{next}"), String::new())
                }
                Some(_) => ("200 OK".to_owned(), "User-agent: *\nDisallow: /no\n".to_owned()),
                // What these hosts say of themselves is another thing.
                None if path == "/robots.txt" => ("200 OK".to_owned(), "User-agent: *\nDisallow: /\n".to_owned()),
                None => ("200 OK".to_owned(), "a page".to_owned()),
            };
            let response = format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            if std::io::Write::write_all(&mut stream, response.as_bytes()).is_err() {
                return;
            }
        }
    });
    let folder = TempFolder::new("robots");
    let mut text =
        String::from("politeness.host_delay = \"0s\"\npoliteness.site_delay = \"0s\"\npoliteness.ip_delay = \"0s\"\n");
    text += "fetch.private_addresses = \"loopback-only\"\n[dns.hosts]\n";
    (0..=hops).for_each(|host| text += &format!("\"h{host}.test\" = [\"127.0.0.1\"]\n"));
    let (dir, config) = (folder.at("crawl"), folder.file("config.toml", &text));
    let seed = |path: &str| format!("http://h0.test:{}{path}", addr.port());
    run(&["crawl", &seed("/yes"), &seed("/no"), "--dir", &dir, "-c", &config, "--shards", shards]).expect(0);
    log.lock().map(|log| log.clone()).expect("a log")
}

#[test]
fn the_rules_at_the_end_of_redirects_hold_for_the_host_that_was_asked() {
    for shards in ["1", "4"] {
        for hops in 1..=5 {
            let mut asked = asked(hops, shards);
            // Each is asked first for what it says of itself.
            asked.retain(|url| url == "h0.test/robots.txt" || !url.ends_with("/robots.txt"));
            let way = (1..=hops).map(|step| format!("h{step}.test/rules/{step}"));
            let expected: Vec<String> = std::iter::once("h0.test/robots.txt".to_owned())
                .chain(way)
                .chain(std::iter::once("h0.test/yes".to_owned()))
                .collect();
            assert_eq!(asked, expected, "{hops} hops, {shards} shards");
        }
    }
    // More than five need not be followed: as if there were no robots.txt.
    let asked = asked(6, "4");
    assert!(asked.contains(&"h0.test/no".to_owned()) && !asked.contains(&"h6.test/rules/6".to_owned()), "{asked:?}");
}

/// A robots.txt of a hundred megabytes is read up to what counts, and obeyed as far.
#[test]
fn of_an_endless_robots_txt_the_beginning_counts() {
    let sent = Arc::new(Mutex::new(0_u64));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (counted, noted) = (Arc::clone(&sent), Arc::clone(&asked));
    let (addr, _) = server(move |mut stream, _| {
        while let Some(request) = read_request(&mut stream) {
            let path = request.split_whitespace().nth(1).unwrap_or_default().to_owned();
            let is_robots = path == "/robots.txt";
            noted.lock().expect("a log").push(path);
            let length = if is_robots { 100_000_000 } else { 0 };
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
            let mut text = format!("{head}User-agent: *\nDisallow: /no\n").into_bytes();
            text.resize(if is_robots { 1 << 16 } else { head.len() }, b'#');
            let mut left = if is_robots { 1_500 } else { 1 };
            while left > 0 {
                if std::io::Write::write_all(&mut stream, &text).is_err() {
                    return;
                }
                *counted.lock().expect("a count") += text.len() as u64;
                text.fill(b'#');
                left -= 1;
            }
        }
    });
    let folder = TempFolder::new("robots");
    let text =
        "politeness.host_delay = \"0s\"\npoliteness.ip_delay = \"0s\"\nfetch.private_addresses = \"loopback-only\"\n";
    let (dir, config) = (folder.at("crawl"), folder.file("config.toml", text));
    let seed = |path: &str| format!("http://127.0.0.1:{}{path}", addr.port());
    let end = run(&["crawl", &seed("/yes"), &seed("/no"), "--dir", &dir, "-c", &config]);
    end.expect(0);
    assert_eq!(*asked.lock().expect("a log"), ["/robots.txt", "/yes"]);
    let sent = *sent.lock().expect("a count");
    // What the sockets hold besides.
    assert!(sent < 16 << 20, "{sent} bytes were sent");
}

/// What pages say of themselves goes from the server into records and indexes, and an export leaves out what is to be left out.
#[test]
fn noindex_pages_are_stored_and_not_exported() {
    let (addr, _) = server(move |mut stream, _| {
        while let Some(request) = read_request(&mut stream) {
            let path = request.split_whitespace().nth(1).unwrap_or_default();
            let (fields, body) = match path {
                "/robots.txt" => ("", "User-agent: *\nContent-Usage: /used train-ai=n\n"),
                "/" => ("", "<a href=/hidden></a><a href=/used></a><a href=/over></a>"),
                "/hidden" => ("", "<meta name=ringcrawl content=noindex>hidden"),
                "/over" => ("X-Robots-Tag: unavailable_after: 25 Jun 2010 15:00:00 PST\r\n", "over"),
                _ => ("", "a page"),
            };
            let length = body.len();
            let head =
                format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{fields}Content-Length: {length}\r\n\r\n");
            if std::io::Write::write_all(&mut stream, format!("{head}{body}").as_bytes()).is_err() {
                return;
            }
        }
    });
    let folder = TempFolder::new("noindex");
    let text =
        "politeness.host_delay = \"0s\"\npoliteness.ip_delay = \"0s\"\nfetch.private_addresses = \"loopback-only\"\n";
    let (dir, config) = (folder.at("crawl"), folder.file("config.toml", text));
    run(&["crawl", &format!("http://127.0.0.1:{}/", addr.port()), "--dir", &dir, "-c", &config]).expect(0);
    let paths = |arguments: &[&str], dir: &str| {
        let listed = run(&[&["store", "ls"], arguments, &[dir]].concat()).expect(0).out;
        let path = |line: &str| line.rsplit('/').next().unwrap_or_default().to_owned();
        let mut paths: Vec<String> = listed.lines().map(path).collect();
        paths.sort();
        paths.join(" ")
    };
    assert_eq!(paths(&[], &dir), " hidden over robots.txt used");
    assert_eq!(paths(&["--noindex", "only"], &dir), "hidden over");
    assert_eq!(paths(&["--noindex", "omit", "--respect", "search,train-ai"], &dir), " robots.txt");
    for (number, (arguments, expected, said)) in [
        (&[][..], " robots.txt used", Some("2 captures left out by noindex")),
        (&["--respect", "train-ai"], " robots.txt", Some("1 captures left out by --respect")),
        (&["--noindex", "include"], " hidden over robots.txt used", None),
    ]
    .into_iter()
    .enumerate()
    {
        let out = folder.at(&format!("out{number}"));
        let export = [&["store", "export", "--to", "warc.gz", "--out", &out], arguments, &[&dir[..]]].concat();
        run(&export).expect(0).says(said.as_slice());
        assert_eq!(paths(&[], &out), expected, "{arguments:?}");
        run(&["store", "verify", &out]).expect(0);
    }
    let wrong = run(&["store", "ls", "--respect", "profit", &dir]).expect(2);
    wrong.says(&["ai-use, license, search, tdm, train-ai"]);
}
