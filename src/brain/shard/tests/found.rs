//! The links of a page, with those seen before skipped, compared to a twin that follows all of them.

use super::*;
use crate::hops::Hops;
use ringcrawl_base::Rng;
use ringcrawl_url::{HashedUrls, fingerprint};

/// A page's links, some of them twice, of both shards and of neither, found in all ways in which links are found.
fn links(rng: &mut Rng, hosts: &[String], urls: u64) -> HashedUrls {
    let page = Hops::from_bits(rng.below(3) as u16);
    let mut links = HashedUrls::new();
    for _ in 0..rng.below(60) {
        let hops = match rng.below(8) {
            0 => page.redirect(),
            1 => page.embed(),
            2 => page.link().deferred(),
            3 => page.link().with_offsite(1),
            _ => page.link(),
        };
        let host = &hosts[rng.index(hosts.len()).min(rng.index(hosts.len()))];
        let session = ["", ";jsessionid=0123456789ABCDEF", ";jsessionid=FEDCBA9876543210"][rng.index(3)];
        let url = Url::parse(&format!("http://{host}/{}{session}", rng.below(urls))).expect("a URL");
        links.push(hops.bits(), url.as_str(), fingerprint(1, url.as_str()));
    }
    links
}

/// Whatever is found: the same URLs are accepted in the same order and by the same path, set aside, sent and fetched,
/// and the same sites are counted.
#[test]
fn what_is_accepted_is_that_of_following_every_link() {
    let own = names(0).take(4).flat_map(|name| [name.clone(), format!("www.{name}"), format!("{name}:8080")]);
    let hosts: Vec<String> = own.chain(names(1).take(3)).collect();
    let mut rng = Rng::new(1);
    let mut passed = 0;
    for round in 0..40 {
        let mode = *rng.pick(&[ExchangeMode::Exchange, ExchangeMode::Exchange, ExchangeMode::Firewall]);
        let (urls, urls_max) = *rng.pick(&[(20, 1 << 20), (300, 1 << 20), (300, 250), (40, 100)]);
        let keys = *rng.pick(&[Difference::Count, Difference::Ignore]);
        let settings = |config: &mut Config| {
            config.exchange.mode = mode;
            config.exchange.recent_urls = 64;
            config.visited.urls_max = urls_max;
            config.visited.session_ids = keys;
            config.scope.follow = ringcrawl_config::Follow::All;
            config.dns.hosts.insert(hosts[0].clone(), vec!["192.0.2.1".parse().expect("an address")]);
        };
        let mut rigs = [false, true].map(|follows_seen_links| {
            let mut rig = Rig::new(config(settings), Logs::new());
            rig.shard.intake.follows_seen_links = follows_seen_links;
            rig.seed(&Url::parse(&format!("http://{}/0", hosts[0])).expect("a URL"));
            rig
        });
        rigs.iter_mut().for_each(|rig| rig.run(Instant::ZERO));
        let mut job = FetchJob { kind: JobKind::Page, ..rigs[0].fetches.first().expect("a lookup").clone() };
        for page in 0..40 {
            let found = links(&mut rng, &hosts, urls);
            job.url = Url::parse(&format!("http://{}/{page}", rng.pick(&hosts[..12]))).expect("a URL");
            let received: Vec<String> =
                names(0).take(1).map(|name| format!("http://{name}/{}", rng.below(urls))).collect();
            for rig in &mut rigs {
                rig.shard.found_by(Instant::ZERO, &job, &found);
                rig.receive(page + 1, &received.iter().map(String::as_str).collect::<Vec<_>>());
            }
            passed += rigs[0].shard.intake.are_seen(found.fingerprints()).iter().filter(|is_seen| **is_seen).count();
        }
        let ends = rigs.map(|mut rig| {
            let now = Instant::ZERO + Duration::from_secs(60);
            rig.run(now);
            rig.enter(Phase::Close);
            let totals = rig.shard.stats().clone();
            let sites =
                names(0).take(4).map(|name| rig.shard.frontier.order.link_quotas.of(SiteKey::of_host(1, &name)));
            let counts = (totals.visited, totals.queued, totals.set_aside, totals.over_share, totals.links_crossing);
            (rig.logs.clone(), rig.sent.clone(), sites.collect::<Vec<_>>(), counts, totals.links_sent_before)
        });
        assert!(ends[0] == ends[1], "round {round}: {:?}\n{:?}", ends[0], ends[1]);
    }
    assert!(passed > 10_000, "{passed} links to URLs that were accepted");
}
