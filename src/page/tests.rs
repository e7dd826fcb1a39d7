//! Responses, read.

use super::*;
use crate::http::Limits;
use crate::lab::plain_transaction;
use crate::outcome::Blemish;
use crate::time::{Duration, Instant};

fn job(kind: JobKind, url: &str) -> FetchJob {
    FetchJob {
        id: 1,
        host: 0,
        kind,
        url: Url::parse(url).expect("a URL"),
        addr: None,
        both_families: false,
        others: Vec::new(),
        number: 0,
        depth: 3,
        attempt: 0,
        deadline: Instant::NEVER,
        rest: Duration::ZERO,
    }
}

/// The transaction in which `bytes` came, over a connection that then closed.
fn transaction(bytes: &[u8]) -> Transaction {
    plain_transaction(bytes, Limits::from(&Config::default().fetch))
}

fn read(job: &FetchJob, bytes: &[u8], change: impl FnOnce(&mut Config)) -> (Fetched, Totals, bool) {
    let mut config = Config::default();
    change(&mut config);
    let (transaction, mut stats) = (transaction(bytes), Totals::default());
    let page = PageReader::new(Arc::new(config)).read(job, &transaction, &mut stats);
    let is_stored = page.store(|_| ()).is_some();
    (page.into_fetched(), stats, is_stored)
}

#[test]
fn links_go_on_once_and_those_beyond_the_limit_are_counted() {
    let body = "<a href=/a>1</a><a href=/a>2</a><a href=/b>3</a><a href=/c>4</a><a href=/d>5</a>";
    let bytes = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{body}");
    let page = job(JobKind::Page, "http://a.test/");
    let (fetched, stats, is_stored) = read(&page, bytes.as_bytes(), |config| config.links.page_links_max = 4);
    let links: Vec<(u16, &str)> = fetched.links.iter().collect();
    assert_eq!(links, [(4, "http://a.test/a"), (4, "http://a.test/b"), (4, "http://a.test/c")]);
    assert_eq!((stats.links, stats.links_dropped, stats.pages, is_stored), (4, 1, 1, true));
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

/// A robots.txt in a coding that it is not in: rules when it is text after all, and nothing when it is not.
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
    assert_eq!(fetched.truncated, Some(crate::outcome::Truncated::Disconnect));
    assert_eq!(stats.blemishes_by_name().collect::<Vec<_>>(), [(Blemish::BodyShort, 1)]);
    let bytes = b"HTTP/1.1 429 Slow down\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n";
    let (fetched, stats, _) = read(&page, bytes, |_| {});
    assert_eq!(fetched.retry_after, Some(Duration::from_secs(7)));
    assert_eq!(stats.blemishes_by_name().collect::<Vec<_>>(), [(Blemish::Overloaded, 1)]);
}
