//! URLs to which strangers led by a long path, and others by a short one.

use super::*;
use crate::hops::Hops;

/// A shard that receives the targets of links and redirects, as the other shard sends them, and fetches them.
struct Ways {
    rig: Rig,
    host: String,
    batches: u64,
    now: Instant,
    /// Where page `/x` redirects.
    redirect: Option<&'static str>,
}

impl Ways {
    fn new(logs: Logs) -> Ways {
        Ways::with(logs, |_| ())
    }

    fn with(logs: Logs, more: impl Fn(&mut Config)) -> Ways {
        let host = names(0).next().expect("a host");
        let settings = |config: &mut Config| {
            more(config);
            config.dns.hosts.insert(host.clone(), vec!["192.0.2.1".parse().expect("an address")]);
            config.scope.follow = ringcrawl_config::Follow::All;
        };
        Ways { rig: Rig::new(config(settings), logs), host, batches: 0, now: Instant::ZERO, redirect: None }
    }

    fn url(&self, path: &str) -> Url {
        Url::parse(&format!("http://{}{path}", self.host)).expect("a URL")
    }

    /// `/x` is found by these hops; returns which pages are then fetched.
    fn found(&mut self, hops: Hops) -> Vec<String> {
        self.found_at("/x", hops);
        self.asked()
    }

    fn found_at(&mut self, path: &str, hops: Hops) {
        let mut batch = UrlBatch::new();
        assert!(batch.push(hops.bits(), self.url(path).as_str()));
        self.batches += 1;
        let header =
            Header { kind: MessageKind::Urls, number: self.batches, acknowledged: 0, batch: self.batches, durable: 0 };
        self.rig.shard.handle(self.now, Input::Received { from: 1, bytes: header.with(batch.as_bytes()) });
    }

    fn asked(&mut self) -> Vec<String> {
        let mut pages = Vec::new();
        for _ in 0..20 {
            self.now = self.now + Duration::from_secs(60);
            self.rig.run(self.now);
            for job in std::mem::take(&mut self.rig.fetches) {
                let end = match (job.kind, job.url.path_and_query(), self.redirect) {
                    (JobKind::Page, "/x", Some(to)) => response(&job, 301, &format!("Location: {to}\r\n"), ""),
                    (JobKind::Page, "/x", None) => response(&job, 200, "", "<a href=/a>a</a><a href=/b>b</a>"),
                    (JobKind::Page, ..) => response(&job, 200, "", "<a href=/x>back</a>"),
                    _ => response(&job, 404, "", ""),
                };
                (job.kind == JobKind::Page).then(|| pages.push(job.url.path_and_query().to_owned()));
                self.rig.shard.handle(self.now, end);
            }
        }
        pages
    }
}

fn redirects(count: u16) -> Hops {
    (0..count).fold(Hops::from_bits(1), |hops, _| hops.redirect())
}

/// So deep that none of its links is followed: found by a short path it is fetched once more, with its links, but not
/// a third time.
#[test]
fn a_page_that_was_found_too_deep_is_had_once_more_by_a_short_way() {
    let mut ways = Ways::new(Logs::new());
    assert_eq!(ways.found(Hops::from_bits(100)), ["/x"]);
    // One path that is hardly shorter, and one that is as long.
    assert_eq!(ways.found(Hops::from_bits(90)).len() + ways.found(Hops::from_bits(100)).len(), 0);
    assert_eq!(ways.found(Hops::from_bits(3)), ["/x", "/a", "/b"]);
    for links in [100, 2, 1, 0] {
        assert_eq!(ways.found(Hops::from_bits(links)), [""; 0], "no third time");
    }
    // Nor in another run.
    ways.rig.enter(Phase::Close);
    let mut next = Ways::new(ways.rig.logs);
    assert_eq!((next.rig.counts(), next.found(Hops::from_bits(1))), ((0, 4), vec![]));
}

/// What it led to was too deep as well, or would soon be.
#[test]
fn pages_behind_one_that_was_found_too_deep_are_had_with_it() {
    let mut ways = Ways::new(Logs::new());
    assert_eq!(ways.found(Hops::from_bits(98)), ["/x", "/a", "/b"]);
    assert_eq!(ways.found(Hops::from_bits(3)), ["/x", "/a", "/b"]);
    assert_eq!(ways.found(Hops::from_bits(1)), [""; 0]);
}

/// A chain of redirects that ends at a host that redirects every client.
#[test]
fn a_page_that_redirects_once_too_often_is_had_once_more_by_a_short_way() {
    let mut ways = Ways::new(Logs::new());
    ways.redirect = Some("/a");
    assert_eq!(ways.found(redirects(20)), ["/x"]);
    assert_eq!(ways.found(redirects(16)), [""; 0]);
    assert_eq!(ways.found(Hops::from_bits(2)), ["/x", "/a"]);
    assert_eq!(ways.found(redirects(20)).len() + ways.found(Hops::from_bits(1)).len(), 0, "no third time");
    // The log has it twice, and both wait until they are done, also in another run.
    let mut ways = Ways::new(Logs::new());
    ways.redirect = Some("/a");
    assert_eq!(ways.found(redirects(20)), ["/x"]);
    ways.found_at("/x", Hops::from_bits(1));
    ways.rig.enter(Phase::Close);
    let mut next = Ways::new(ways.rig.logs);
    assert_eq!((next.rig.counts(), next.asked()), ((1, 2), ["/x", "/a", "/b"].map(str::to_owned).to_vec()));
    // If it does not redirect, its links count from there.
    let mut ways = Ways::new(Logs::new());
    assert_eq!(ways.found(redirects(20)), ["/x", "/a", "/b"]);
    assert_eq!(ways.found(Hops::from_bits(2)), [""; 0]);
}

/// Given later as a seed, in the same run and in the next.
#[test]
fn a_seed_that_was_found_too_deep_is_had_once_more() {
    for is_resumed in [false, true] {
        let mut ways = Ways::new(Logs::new());
        assert_eq!(ways.found(Hops::from_bits(100)), ["/x"]);
        if is_resumed {
            ways.rig.enter(Phase::Close);
            ways = Ways::new(ways.rig.logs);
        }
        let seed = ways.url("/x");
        ways.rig.seed(&seed);
        assert_eq!(ways.asked(), ["/x", "/a", "/b"]);
        ways.rig.seed(&seed);
        assert_eq!(ways.asked(), [""; 0]);
    }
}

/// What other shards sent by a long path they send again by a short one.
#[test]
fn a_long_way_keeps_no_short_one_from_being_sent() {
    let mut ways = Ways::new(Logs::new());
    let away = foreign(1);
    let mut send = |links| {
        let url = away.clone();
        let fingerprint = ways.rig.shard.intake.keys.fingerprint(&url);
        let before = ways.rig.shard.stats().links_sent_before;
        let hops = Hops::from_bits(links);
        assert_eq!(ways.rig.shard.keep_or_send(Instant::ZERO, &url, fingerprint, (None, hops), 1), None);
        ways.rig.shard.stats().links_sent_before == before
    };
    assert_eq!([100, 99, 3, 2, 100].map(&mut send), [true, false, true, false, false]);
}

/// Where session ids are ignored, a page that was found too deep under one id is fetched once more, not under each
/// id.
#[test]
fn what_is_one_page_is_had_once_more_under_one_of_its_names() {
    let ignore = |config: &mut Config| config.visited.session_ids = ringcrawl_config::Difference::Ignore;
    let mut ways = Ways::with(Logs::new(), ignore);
    ways.found_at("/x?PHPSESSID=0123456789abcdef0123456789abcd00", Hops::from_bits(100));
    assert_eq!(ways.asked().len(), 1);
    let mut again = Vec::new();
    for number in 1..10 {
        ways.found_at(&format!("/x?PHPSESSID=0123456789abcdef0123456789abcd0{number}"), Hops::from_bits(3));
        again.extend(ways.asked().into_iter().filter(|path| path.starts_with("/x?")));
    }
    assert_eq!(again.len(), 1, "{again:?}");
}

/// A URL accepted by a short path waits until it is done, whatever is long in the next run.
#[test]
fn what_was_accepted_once_more_is_not_lost_by_another_limit() {
    let mut ways = Ways::new(Logs::new());
    assert_eq!(ways.found(Hops::from_bits(100)), ["/x"]);
    ways.found_at("/x", Hops::from_bits(3));
    ways.rig.enter(Phase::Close);
    let mut next = Ways::with(ways.rig.logs, |config| config.scope.depth_max = 255);
    assert_eq!((next.rig.counts(), next.asked()), ((1, 2), ["/x", "/a", "/b"].map(str::to_owned).to_vec()));
}
