//! Traps: which URLs wait because pages like theirs were not worth their fetch.

use super::*;
use crate::hops::Hops;
use crate::traps::TextSample;

/// A host with a hundred articles, each of which links to two pages of a trap, and each of these to two more.
struct Site {
    found: std::collections::BTreeSet<String>,
    articles: usize,
    /// The way to all that is offered.
    hops: Hops,
}

impl Site {
    fn offer(&mut self, bed: &mut Bed, path: &str) {
        if self.found.insert(path.to_owned()) {
            let url = Url::parse(&format!("http://a.test{path}")).expect("a URL");
            let site = SiteKey::of_host(7, url.host());
            let ticket = Ticket { number: 0, depth: self.hops.bits() };
            bed.frontier.offer(bed.now, &url, site, ticket, &mut bed.spool);
        }
    }

    /// Fetches so many pages; how many of them were articles, and how many of the trap.
    fn crawl(&mut self, bed: &mut Bed, pages: usize, trap: impl Fn(u64) -> Fetched) -> (usize, usize) {
        let before = bed.count(JobKind::Page);
        while bed.count(JobKind::Page) < before + pages && !bed.frontier.is_idle() {
            let had = bed.jobs.len();
            bed.run(HOUR, 1, &mut |job| match job.url.path_and_query() {
                _ if job.kind != JobKind::Page => well(job),
                path if path.starts_with("/trap") => {
                    let number = path.rsplit('/').next().and_then(|text| text.parse().ok()).unwrap_or(0);
                    Outcome::Fetched(trap(number))
                }
                path => Outcome::Fetched(page(xxhash_rust::xxh3::xxh3_64(path.as_bytes()))),
            });
            let Some((_, job)) = bed.jobs.get(had).filter(|(_, job)| job.kind == JobKind::Page) else { continue };
            let path = job.url.path_and_query().to_owned();
            let number: u64 = path.rsplit('/').next().and_then(|text| text.parse().ok()).unwrap_or(0);
            if path.starts_with("/trap") {
                (1..=2).for_each(|next| self.offer(bed, &format!("/trap/2026/{}", 2 * number + next)));
            } else {
                (1..=2).for_each(|next| self.offer(bed, &format!("/trap/2026/{}", 1_000_000 * number + next)));
                let articles = self.articles as u64;
                (1..=3).map(|next| 3 * number + next).filter(|next| *next < articles).for_each(|next| {
                    self.offer(bed, &format!("/article/{}", next));
                });
            }
        }
        let pages = bed.pages();
        let traps = pages.iter().skip(before).filter(|url| url.contains("/trap/")).count();
        (pages.len() - before - traps, traps)
    }
}

fn site(config: impl FnOnce(&mut Config)) -> (Bed, Site) {
    let mut bed = Bed::new(|all| {
        all.politeness.host_delay = Duration::from_millis(10);
        (all.politeness.site_delay, all.politeness.ip_delay) = (Duration::ZERO, Duration::ZERO);
        config(all);
    });
    let mut site = Site { found: Default::default(), articles: 300, hops: Hops::default().link() };
    site.offer(&mut bed, "/article/0");
    (bed, site)
}

/// With a text of its own.
fn page(text: u64) -> Fetched {
    let shingles = (0..200u64).map(|word| xxhash_rust::xxh3::xxh3_64_with_seed(&word.to_le_bytes(), text));
    Fetched { status: 200, text: TextSample::of(shingles), ..Fetched::default() }
}

fn near(number: u64) -> Fetched {
    page(number % 3)
}

#[test]
fn pages_that_are_not_worth_it_wait_behind_those_that_are() {
    let same = |number| Fetched { payload: Some(7), ..page(number) };
    let noindex = |number| Fetched { is_noindex: true, ..page(number) };
    let traps: [(&dyn Fn(u64) -> Fetched, bool); 4] =
        [(&near, false), (&same, false), (&noindex, false), (&near, true)];
    for (trap, is_advised_against) in traps {
        let (mut bed, mut here) = site(|_| ());
        if is_advised_against {
            here.hops = here.hops.deferred();
        }
        let (articles, traps) = here.crawl(&mut bed, 340, trap);
        assert!(articles == 300 && traps <= 40, "{articles} articles, {traps} of the trap");
        assert!(bed.frontier.poor_urls() > 300 && bed.frontier.yield_bytes() > 0);
        // Nothing is lost: what waits comes when there is nothing better.
        let (articles, traps) = here.crawl(&mut bed, 200, trap);
        assert_eq!((articles, traps), (0, 200));
    }
    let (mut bed, mut here) = site(|config| config.traps.detect = crate::config::TrapDetection::Off);
    let (articles, _) = here.crawl(&mut bed, 340, near);
    assert!(articles < 150, "{articles} without it");
    assert_eq!(bed.frontier.poor_urls(), 0);
}

/// What is like an article in its URL is none, and what is like a trap may be one.
#[test]
fn pages_of_a_pattern_that_are_worth_it_do_not_wait() {
    let (mut bed, mut here) = site(|_| ());
    here.crawl(&mut bed, 340, page);
    assert_eq!((bed.frontier.poor_urls(), bed.frontier.deferred()), (0, 0));
}

#[test]
fn what_is_known_is_bounded_and_goes_with_its_host() {
    let (mut bed, mut here) = site(|config| config.traps.ram_bytes_max = 0);
    here.crawl(&mut bed, 340, near);
    assert_eq!((bed.frontier.yield_bytes(), bed.frontier.poor_urls()), (0, 0));
    let mut bed = Bed::new(|config| {
        config.politeness.host_delay = Duration::ZERO;
        (config.politeness.site_delay, config.politeness.ip_delay) = (Duration::ZERO, Duration::ZERO);
        config.frontier.hosts_max = 8;
    });
    for host in 0..100 {
        (0..10).for_each(|number| bed.offer(&format!("http://h{host}.test/{number}")));
    }
    bed.run(HOUR, 10_000, &mut well);
    assert_eq!(bed.count(JobKind::Page), 1_000);
    let bytes = bed.frontier.yield_bytes();
    assert!(bytes > 0 && bytes <= 8 * crate::traps::HOST_BYTES_MAX as u64, "{bytes} bytes of 8 hosts");
}

/// Hosts of which little is known first, and then much.
#[test]
fn what_is_known_does_not_grow_beyond_its_bound() {
    const BYTES_MAX: u64 = 30_000;
    let mut bed = Bed::new(|config| {
        config.politeness.host_delay = Duration::ZERO;
        (config.politeness.site_delay, config.politeness.ip_delay) = (Duration::ZERO, Duration::ZERO);
        config.traps.ram_bytes_max = BYTES_MAX;
    });
    let mut bytes_most = 0;
    for round in 0..40 {
        for host in 0..60 {
            bed.offer(&format!("http://h{host}.test/{}/{}/x{host}y{round}", char::from(b'a' + round % 15), host % 7));
        }
        bed.run(HOUR, 1_000, &mut well);
        bytes_most = bytes_most.max(bed.frontier.yield_bytes());
    }
    assert_eq!(bed.count(JobKind::Page), 2_400);
    assert!(bytes_most > BYTES_MAX / 4 && bytes_most <= BYTES_MAX, "{bytes_most} bytes");
}

/// A host's images are like each other and lead nowhere: they do not wait for that, and nothing waits for them.
#[test]
fn what_pages_embed_is_no_trap_and_says_nothing_of_pages() {
    let same = |number| Fetched { payload: Some(7), ..page(number) };
    // Whether any of many like each other waits, and then the next.
    let wait = |many: Hops, next: Hops, path: &str| {
        let (mut bed, mut here) = site(|_| ());
        here.hops = many;
        (0..300).for_each(|number| here.offer(&mut bed, &format!("/trap/2026/{number}")));
        bed.run(HOUR, 200, &mut |job| match job.kind {
            JobKind::Page => Outcome::Fetched(same(1)),
            _ => well(job),
        });
        here.hops = next;
        let before = bed.frontier.poor_urls();
        here.offer(&mut bed, path);
        (before > 0, bed.frontier.poor_urls() > before)
    };
    let (trap, repetitive) = ("/trap/2026/300", "/deeper/deeper/deeper/");
    let link = Hops::default().link();
    assert_eq!(wait(link, link, trap), (true, true));
    assert_eq!(wait(link, link.embed(), trap), (true, false));
    for embed in [link.embed(), Hops::default().embed(), link.embed().redirect()] {
        assert_eq!(wait(embed, link, trap), (false, false));
        assert_eq!(wait(embed, embed, repetitive), (false, false));
    }
    assert_eq!(wait(link.embed(), link, repetitive), (false, true));
}

#[test]
fn paths_that_say_the_same_again_wait_too() {
    let (mut bed, mut here) = site(|_| ());
    here.offer(&mut bed, "/deeper/deeper/deeper/");
    assert_eq!(bed.frontier.deferred(), 1);
}
