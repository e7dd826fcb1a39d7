//! Kinds take turns: how often kinds whose pages were not worth their fetch get theirs.

use super::*;
use crate::hops::Hops;
use crate::kinds::{HOST_BYTES_MAX, PageText, TextSample};

/// A host with a hundred articles. Each of these links to two pages of a trap, and each of those to two more.
struct Site {
    found: std::collections::BTreeSet<String>,
    articles: usize,
    /// The path to all offered URLs.
    hops: Hops,
}

impl Site {
    fn offer(&mut self, bed: &mut Bed, path: &str) {
        if self.found.insert(path.to_owned()) {
            let url = Url::parse(&format!("http://a.test{path}")).expect("a URL");
            let site = SiteKey::of_host(7, url.host());
            let ticket = Ticket { number: 0, depth: self.hops.bits(), is_strangers: false };
            bed.frontier.offer(bed.now, &url, site, ticket, &mut bed.spool);
        }
    }

    /// Fetches this many pages; returns how many were articles, and how many of the trap.
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
            bed.frontier.begin_links_of("a.test");
            if path.starts_with("/trap") {
                (1..=2).for_each(|next| self.offer(bed, &format!("/trap/2026/{}", 2 * number + next)));
            } else {
                (1..=2).for_each(|next| self.offer(bed, &format!("/trap/2026/{}", 1_000_000 * number + next)));
                let articles = self.articles as u64;
                (1..=3).map(|next| 3 * number + next).filter(|next| *next < articles).for_each(|next| {
                    self.offer(bed, &format!("/article/{}", next));
                });
            }
            bed.frontier.order.kinds.end_links();
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
    let anchors = (0..200u64).map(|word| xxhash_rust::xxh3::xxh3_64_with_seed(&word.to_le_bytes(), text) as u32);
    Fetched { status: 200, text: Some(PageText::Page(TextSample::of(anchors))), ..Fetched::default() }
}

fn near(number: u64) -> Fetched {
    page(number % 3)
}

#[test]
fn kinds_that_are_not_worth_it_have_few_turns() {
    let same = |number| Fetched { payload: Some(7), ..page(number) };
    let noindex = |number| Fetched { is_noindex: true, ..page(number) };
    // The last one has text of its own, and its author advises against it.
    type Trap<'a> = (&'a dyn Fn(u64) -> Fetched, bool, usize);
    let traps: [Trap; 4] = [(&near, false, 420), (&same, false, 420), (&near, true, 420), (&noindex, false, 480)];
    for (trap, is_advised_against, pages) in traps {
        let (mut bed, mut here) = site(|_| ());
        if is_advised_against {
            here.hops = here.hops.deferred();
        }
        let (articles, traps) = here.crawl(&mut bed, pages, trap);
        assert!(articles >= 298, "{articles} articles, {traps} of the trap");
        assert!(bed.frontier.order.kinds.lowered_urls() > 300 && bed.frontier.order.kinds.memory.bytes.get() > 0);
        // Nothing is lost: waiting URLs come when there is nothing better.
        let (articles, traps) = here.crawl(&mut bed, 200, trap);
        assert!(articles <= 2 && traps >= 198, "{articles}, {traps}");
    }
    let (mut bed, mut here) = site(|config| config.traps.detect = ringcrawl_config::TrapDetection::Off);
    let (articles, _) = here.crawl(&mut bed, 340, near);
    assert!(articles < 150, "{articles} without it");
    assert_eq!(bed.frontier.order.kinds.lowered_urls(), 0);
}

/// A page whose URL looks like an article's is none, and one whose URL looks like a trap's may be one.
#[test]
fn pages_of_a_pattern_that_are_worth_it_do_not_wait() {
    let (mut bed, mut here) = site(|_| ());
    here.crawl(&mut bed, 340, page);
    assert_eq!((bed.frontier.order.kinds.lowered_urls(), bed.frontier.order.kinds.in_lanes()), (0, 0));
}

#[test]
fn what_is_known_is_bounded_and_goes_with_its_host() {
    let (mut bed, mut here) = site(|config| config.traps.ram_bytes_max = 0);
    here.crawl(&mut bed, 340, near);
    assert_eq!((bed.frontier.order.kinds.memory.bytes.get(), bed.frontier.order.kinds.lowered_urls()), (0, 0));
    let mut bed = Bed::new(|config| {
        config.politeness.host_delay = Duration::ZERO;
        (config.politeness.site_delay, config.politeness.ip_delay) = (Duration::ZERO, Duration::ZERO);
        config.frontier.hosts_max = 8;
    });
    for host in 0..100 {
        (0..40).for_each(|number| bed.offer(&format!("http://h{host}.test/{number}")));
    }
    bed.run(HOUR, 40_000, &mut well);
    assert_eq!(bed.count(JobKind::Page), 4_000);
    let bytes = bed.frontier.order.kinds.memory.bytes.get();
    assert!(bytes > 0 && bytes <= 8 * HOST_BYTES_MAX as u64, "{bytes} bytes of 8 hosts");
}

/// Hosts about which little is known first, and then much.
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
        bytes_most = bytes_most.max(bed.frontier.order.kinds.memory.bytes.get());
    }
    assert_eq!(bed.count(JobKind::Page), 2_400);
    assert!(bytes_most > BYTES_MAX / 4 && bytes_most <= BYTES_MAX, "{bytes_most} bytes");
}

/// A site with as many hosts as it likes, all with many kinds, leaves memory for those of others.
#[test]
fn one_site_leaves_room_for_what_is_known_of_others() {
    let mut bed = Bed::new(|config| {
        config.politeness.host_delay = Duration::ZERO;
        (config.politeness.site_delay, config.politeness.ip_delay) = (Duration::ZERO, Duration::ZERO);
        config.traps.ram_bytes_max = 200_000;
    });
    let mut known = [0; 2];
    for (index, sites) in ["greedy.test", "other.test"].into_iter().enumerate() {
        for round in 0..40 {
            let hosts = if index == 0 { 300 } else { 4 };
            for host in 0..hosts {
                let kind = char::from(b'a' + round % 15);
                bed.offer(&format!("http://h{host}.{sites}/{kind}/{}/x{host}y{round}", host % 7));
            }
            bed.run(HOUR, 2_000, &mut well);
        }
        known[index] = bed.frontier.order.kinds.memory.bytes.get();
    }
    assert!((100_000..=150_000).contains(&known[0]) && known[1] > known[0] + 2_000, "{known:?}");
}

/// A host's images are alike and lead nowhere: they still get their turns, and say nothing about pages.
#[test]
fn what_pages_embed_is_no_trap_and_says_nothing_of_pages() {
    let same = |number| Fetched { payload: Some(7), ..page(number) };
    // Whether the kind of many similar pages is lowered, and then for the next one.
    let lowered = |many: Hops, next: Hops| {
        let (mut bed, mut here) = site(|_| ());
        bed.run(HOUR, 3, &mut well);
        let mut offered = |bed: &mut Bed, numbers: std::ops::Range<u64>, hops: Hops| {
            here.hops = hops;
            bed.frontier.begin_links_of("a.test");
            numbers.for_each(|number| here.offer(bed, &format!("/trap/2026/{number}")));
            bed.frontier.order.kinds.end_links();
            bed.run(HOUR, 200, &mut |job| match job.kind {
                JobKind::Page => Outcome::Fetched(same(1)),
                _ => well(job),
            });
            bed.frontier.order.kinds.lowered_urls()
        };
        let before = offered(&mut bed, 0..150, many);
        (before > 0, offered(&mut bed, 150..151, next) > before)
    };
    let link = Hops::default().link();
    assert_eq!(lowered(link, link), (true, true));
    assert_eq!(lowered(link, link.embed()), (true, false));
    for embed in [link.embed(), Hops::default().embed(), link.embed().redirect()] {
        assert_eq!(lowered(embed, link), (false, false));
    }
}

/// Pages to which only strangers link say nothing about a host's own pages.
#[test]
fn strangers_make_no_kind_poor() {
    let same = |number| Fetched { payload: Some(7), ..page(number) };
    for are_own in [false, true] {
        let (mut bed, mut here) = site(|_| ());
        bed.run(HOUR, 3, &mut well);
        match are_own {
            true => bed.frontier.begin_links_of("a.test"),
            false => bed.frontier.begin_strangers_links(SiteKey::default()),
        }
        here.hops = here.hops.link();
        (0..150).for_each(|number| here.offer(&mut bed, &format!("/trap/2026/{number}")));
        bed.frontier.order.kinds.end_links();
        bed.run(HOUR, 200, &mut |job| match job.kind {
            JobKind::Page => Outcome::Fetched(same(1)),
            _ => well(job),
        });
        assert_eq!(bed.frontier.order.kinds.lowered_urls() > 0, are_own);
    }
}

/// A host that rests for a day, or is dead, does not hold up a URL of a lowered kind of another host.
#[test]
fn lanes_wait_for_no_other_host() {
    // Others that are polite and could have a page each second are no rivals while they cannot be queried.
    let polite: Vec<String> =
        (0..9).flat_map(|host| (0..60).map(move |page| format!("http://polite{host}.test/{page}"))).collect();
    let pages = |beside: &[&str], pages_max: u64| {
        let (mut bed, mut here) = site(|config| config.crawl.pages_max = pages_max);
        here.crawl(&mut bed, 340, near);
        beside.iter().for_each(|url| bed.offer(url));
        bed.run(1, 100, &mut |job| match (job.kind, job.url.host()) {
            (JobKind::Resolve, "no-name.test") => Outcome::Failed(Failure::DnsTimeout),
            (_, "dead.test") => Outcome::Failed(Failure::ConnectRefused),
            (JobKind::Page, "rests.test") => Outcome::Fetched(Fetched {
                status: 429,
                retry_after: Some(Duration::from_secs(86_400)),
                ..Fetched::default()
            }),
            _ => well(job),
        });
        let before = bed.pages().len();
        bed.run(25, 10_000, &mut well);
        bed.pages().iter().skip(before).filter(|url| url.contains("//a.test/trap/")).count()
    };
    let polite: Vec<&str> = polite.iter().map(String::as_str).collect();
    for pages_max in [0, 1_000_000] {
        let alone = pages(&[], pages_max);
        assert!(alone > 100, "{alone}");
        for beside in [
            ["http://dead.test/", "http://dead.test/2"],
            ["http://rests.test/", "http://rests.test/2"],
            ["http://no-name.test/", "http://no-name.test/2"],
        ]
        .iter()
        .map(<[_; 2]>::as_slice)
        .chain([polite.as_slice()])
        {
            let pages = pages(beside, pages_max);
            assert!(pages * 100 >= alone * 95, "{pages} of {alone} beside {beside:?}");
        }
    }
}

/// In a crawl with a page limit, a host with nothing but a trap leaves the pages to one that has articles, and gets
/// the rest.
#[test]
fn a_trap_leaves_pages_to_others_under_a_budget() {
    let shares = |pages_max: u64| {
        let (mut bed, mut here) = site(|config| {
            config.crawl.pages_max = pages_max;
            // No rival is in its delay.
            (config.politeness.host_delay, config.politeness.response_factor) = (Duration::ZERO, 0);
        });
        let (articles, _) = here.crawl(&mut bed, 340, near);
        assert!(articles >= 240, "{articles}");
        let before = bed.pages().len();
        (0..400).for_each(|number| bed.offer(&format!("http://good.test/{number}")));
        let mut answer = |job: &FetchJob| match (job.kind, job.url.host()) {
            (JobKind::Page, "good.test") => {
                Outcome::Fetched(page(xxhash_rust::xxh3::xxh3_64(job.url.as_str().as_bytes())))
            }
            (JobKind::Page, _) => Outcome::Fetched(near(1)),
            _ => well(job),
        };
        let good = |bed: &Bed| bed.pages().iter().skip(before).filter(|url| url.contains("//good.test/")).count();
        while good(&bed) < 200 {
            bed.run(HOUR, 1, &mut answer);
        }
        let traps = bed.pages().len() - before - good(&bed);
        bed.run(HOUR, 10_000, &mut answer);
        assert!(good(&bed) == 400 && bed.frontier.is_idle(), "nothing is lost");
        traps
    };
    let (counted, others) = (shares(1_000_000), shares(0));
    assert!(counted < 20 && others > 100, "{counted} with a budget, {others} without");
}
