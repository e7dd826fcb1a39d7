//! Why a URL is not fetched, of crawls that left each kind of URL behind.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};

use crate::rig::program::run;
use crate::rig::servers::{read_request, server};
use ringcrawl_base::TempFolder;

const ROBOTS: &str =
    "# ours\nUser-agent: other\nDisallow: /private/\n\nUser-agent: *\nDisallow: /private/ # for all\nCrawl-delay: 0\n";
const FRONT: &str = "<a href=/private/x>1</a><a href=/missing>2</a><a href=/broken>3</a><a href=/forum/x>4</a><a href=/moved>9</a>\
                     <a href=/busy>5</a><a href=/later>6</a><a href=/advised-against rel=nofollow>7</a><a href=/last>8</a>";

/// Serves the front page, a robots.txt, and what their links need.
fn site() -> SocketAddr {
    let serve = |mut stream: TcpStream, _| {
        while let Some(request) = read_request(&mut stream) {
            let path = request.split(' ').nth(1).unwrap_or_default();
            let (head, body) = match path {
                "/robots.txt" => ("200 OK\r\nContent-Type: text/plain", ROBOTS),
                "/" => ("200 OK\r\nContent-Type: text/html", FRONT),
                "/moved" => ("301 Moved\r\nLocation: /last", ""),
                "/missing" => ("404 Not Found", ""),
                "/busy" => ("503 Busy\r\nRetry-After: 3600", ""),
                "/broken" => return,
                _ => ("200 OK\r\nContent-Type: text/html", "a page"),
            };
            let response = format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            if stream.write_all(response.as_bytes()).is_err() {
                return;
            }
        }
    };
    server(serve).0
}

fn url(address: SocketAddr, path: &str) -> String {
    format!("http://{address}{path}")
}

fn crawl(dir: &str, seed: &str, settings: &[&str]) {
    let mut arguments = vec!["crawl", seed, "--dir", dir];
    let quick = ["politeness.host_delay=0s", "politeness.site_delay=0s", "politeness.ip_delay=0s"];
    let few = ["politeness.retries_max=0", "crawl.shards=1"];
    for setting in quick.iter().chain(&few).chain(settings) {
        arguments.extend(["--set", setting]);
    }
    run(&arguments).expect(0);
}

/// The first line of the answer, which is the whole answer's, and the rest.
fn why(dir: &str, what: &str, code: i32) -> (String, String) {
    let out = run(&["why", what, "--dir", dir]).expect(code).out;
    let json = run(&["why", what, "--dir", dir, "--json"]).expect(code).json();
    let (first, rest) = out.split_once('\n').expect("a line");
    assert_eq!((json["answer"].as_str(), json["known"].as_bool()), (Some(first), Some(code == 0)), "{json}");
    (first.to_owned(), rest.to_owned())
}

#[test]
fn each_url_has_its_reason() {
    let (folder, address) = (TempFolder::new("why"), site());
    let dir = folder.at("crawl");
    let rules = folder.file("scope.rules", "deny path=/forum/*\n");
    let at = |path: &str| url(address, path);
    crawl(&dir, &at("/"), &["crawl.time_max=4s", &format!("scope.rules=\"{rules}\"")]);

    let (answer, rest) = why(&dir, &at("/"), 0);
    assert!(answer.starts_with("It was fetched at 2") && answer.ends_with("with status 200."), "{answer}");
    for word in
        ["found:     a seed\n", "record:", ".warc.zst", "robots:", "no rule matches it", "scope:     now allows"]
    {
        assert!(rest.contains(word), "{word}: {rest}");
    }
    let (answer, _) = why(&dir, &at("/private/x"), 0);
    assert!(answer.ends_with("robots.txt forbids it, line 6: Disallow: /private/ # for all"), "{answer}");
    let (answer, rest) = why(&dir, &at("/missing"), 0);
    assert!(answer.contains("returned status 404 at 2") && rest.contains("1 link from a seed"), "{answer} {rest}");
    let (answer, _) = why(&dir, &at("/moved"), 0);
    assert!(answer.contains(&format!("returned status 301, a redirect to {} at 2", at("/last"))), "{answer}");
    let (answer, _) = why(&dir, &at("/broken"), 0);
    assert!(answer.contains("(closed-early)") && answer.contains("--retry-failed"), "{answer}");
    let (answer, _) = why(&dir, &at("/forum/x"), 1);
    assert!(answer.ends_with("the scope excludes it (scope.rules, line 1: deny path=/forum/*)."), "{answer}");
    let (answer, _) = why(&dir, &at("/nobody-links-here"), 1);
    assert!(answer.starts_with("Unknown: no page read so far links to it"), "{answer}");
    let (answer, rest) = why(&dir, &format!("{}/", at("/missing")), 1);
    assert!(answer.starts_with("Unknown in this form") && rest.contains(&at("/missing")), "{answer} {rest}");

    // The server asked for an hour.
    let (answer, rest) = why(&dir, &at("/later"), 0);
    assert_eq!(answer, "It waits: no crawl is running in this directory.");
    assert!(rest.contains("its host rests until 2") && rest.contains("only the running crawl knows them"), "{rest}");
    let (_, rest) = why(&dir, &at("/advised-against"), 0);
    assert!(rest.contains("it is deferred, because the linking page advises against it"), "{rest}");
    let (answer, rest) = why(&dir, "127.0.0.1", 0);
    assert!(answer.contains("URLs of 127.0.0.1 waiting: no crawl is running"), "{answer}");
    for word in ["1 forbidden by robots.txt", "404: 1", "closed-early: 1", " is next", "at least 0.000 s"] {
        assert!(rest.contains(word), "{word}: {rest}");
    }
    let (answer, _) = why(&dir, "other.test", 1);
    assert!(answer.starts_with("Unknown"), "{answer}");
    let json = run(&["why", &at("/later"), "--dir", &dir, "--json"]).expect(0).json();
    assert_eq!((&json["holds"][0]["by"], &json["holds"][1]["by"]), (&"not-running".into(), &"rest".into()), "{json}");
    assert_eq!((&json["url"]["state"], &json["robots"]["allowed"]), (&"waiting".into(), &true.into()), "{json}");
}

#[test]
fn a_budget_that_is_spent_is_told_and_mistakes_are() {
    let (folder, address) = (TempFolder::new("why-budget"), site());
    let dir = folder.at("crawl");
    crawl(&dir, &url(address, "/"), &["crawl.pages_max=1"]);
    let (_, rest) = why(&dir, &url(address, "/last"), 0);
    assert!(rest.contains("the crawl has reached crawl.pages_max = 1"), "{rest}");
    run(&["why", "a.test/b", "--dir", &dir]).expect(2).says(&["a.test/b"]);
    run(&["why", "ftp://a.test/", "--dir", &dir]).expect(2).says(&["expected a URL or a host"]);
    run(&["why", "a.test", "--dir", &folder.at("none")]).expect(2).says(&["no crawl"]);
    run(&["why", "a.test"]).expect(2).says(&["--dir"]);
}
