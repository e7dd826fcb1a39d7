//! robots.txt that lies elsewhere (RFC 9309 section 2.3.1.2): over one to five other authorities, to a path of its own,
//! what is said at the end holds for the host that was asked first. Judged by the server's log.

use std::sync::{Arc, Mutex};

use crate::rig::program::run;
use crate::rig::servers::{read_request, server};
use ringcrawl::lab::TempFolder;

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
            let asked = asked(hops, shards);
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
