//! Orders: what comes next for a host and among hosts, and what is the same in all of them.

use std::collections::BTreeSet;

use super::*;
use crate::frontier::order::link_counts::ENTRY_BYTES as COUNT_BYTES;
use ringcrawl_base::Rng;
use ringcrawl_config::UrlOrder;
use ringcrawl_url::fingerprint;

const ALL: [UrlOrder; 5] =
    [UrlOrder::BreadthFirst, UrlOrder::DepthFirst, UrlOrder::Random, UrlOrder::Backlinks, UrlOrder::Rank];

fn bed(order: UrlOrder, change: impl FnOnce(&mut Config)) -> Bed {
    Bed::new(|config| {
        config.frontier.order = order;
        config.politeness.host_delay = Duration::ZERO;
        (config.politeness.site_delay, config.politeness.ip_delay) = (Duration::ZERO, Duration::ZERO);
        change(config);
    })
}

impl Bed {
    fn ranked(self, ranks: impl IntoIterator<Item = (String, f64)>) -> Bed {
        let ranks = ranks.into_iter().map(|(url, rank)| (fingerprint(7, &url), rank)).collect();
        Bed { frontier: self.frontier.ranked(Arc::new(Ranks::new(ranks))), ..self }
    }

    fn offer_numbered(&mut self, url: &str, number: u64) {
        let url = Url::parse(url).expect("a URL");
        let site = SiteKey::of_host(7, url.host());
        self.frontier.offer(self.now, &url, site, Ticket { number, depth: 1, is_strangers: false }, &mut self.spool);
    }

    fn linked(&mut self, url: &str, links: u16) {
        let url = Url::parse(url).expect("a URL");
        self.frontier.linked_by_pages(self.now, &url, links, &mut self.spool);
    }
}

fn url(number: u64) -> String {
    format!("http://h{}.test/{number}", number % 20)
}

/// Whatever the order, and however little memory there is, every URL is fetched once, including those that wait
/// outside.
#[test]
fn every_order_covers_everything_once_within_its_memory() {
    for (order, ram_bytes_max) in ALL.into_iter().flat_map(|order| [0, 4_000, 1 << 30].map(|bytes| (order, bytes))) {
        for hosts_max in [4, 1_000] {
            let ranks = (0..400).map(|number| (url(3 * number), number as f64));
            let mut bed = bed(order, |config| {
                config.frontier.hosts_max = hosts_max;
                config.frontier.ram_bytes_max = ram_bytes_max;
            })
            .ranked(ranks);
            let mut rng = Rng::new(ram_bytes_max);
            for number in 0..1_200 {
                bed.offer_numbered(&url(number), number);
                bed.linked(&url(rng.below(number + 1)), 1);
                // Heads, and tails of less than 512 bytes in each of up to ten queues.
                let bound = ram_bytes_max.max(20 * 10 * 700);
                assert!(bed.frontier.ram_bytes() < bound, "{order:?}: {} bytes", bed.frontier.ram_bytes());
            }
            let mut jobs = 0;
            while !bed.frontier.is_idle() {
                bed.run(HOUR, 100, &mut well);
                assert!(
                    bed.jobs.len() > jobs || bed.frontier.queued() == 0,
                    "{order:?}: stuck with {} URLs queued",
                    bed.frontier.queued()
                );
                jobs = bed.jobs.len();
                (0..20).for_each(|_| bed.linked(&url(rng.below(1_200)), 1));
            }
            let numbers: BTreeSet<u64> =
                bed.jobs.iter().filter(|(_, job)| job.kind == JobKind::Page).map(|(_, job)| job.number).collect();
            let pages: BTreeSet<&str> = bed.pages().into_iter().collect();
            assert_eq!((pages.len(), numbers.len(), bed.count(JobKind::Page)), (1_200, 1_200, 1_200), "{order:?}");
            assert!(bed.jobs.iter().all(|(_, job)| job.kind != JobKind::Page || job.url.as_str() == url(job.number)));
            assert_eq!((bed.frontier.queued(), bed.frontier.ram_bytes(), bed.disk.len()), (0, 0, 0), "{order:?}");
        }
    }
}

/// A URL may wait under two tickets: by its key, and by itself, as a redirect led to it (`visited.*`). Each gets its
/// turn, even if there was no room to count the first one.
#[test]
fn two_tickets_of_one_url_have_a_turn_each() {
    let url = "http://h.test/twice";
    for (order, entries) in ALL.into_iter().flat_map(|order| [2, 100].map(|entries| (order, entries))) {
        let mut bed = bed(order, |config| config.frontier.order_ram_bytes_max = entries * COUNT_BYTES);
        bed.offer_numbered("http://h.test/first", 9);
        bed.offer_numbered(url, 1);
        bed.linked(url, 2);
        // An address, a robots.txt, and a page, which leaves room.
        bed.run(HOUR, 3, &mut well);
        bed.offer_numbered(url, 3);
        bed.linked(url, 4);
        bed.run(HOUR, 100, &mut well);
        let pages = bed.jobs.iter().filter(|(_, job)| job.kind == JobKind::Page);
        let mut numbers: Vec<u64> = pages.map(|(_, job)| job.number).collect();
        numbers.sort_unstable();
        assert_eq!((numbers, bed.frontier.queued()), (vec![1, 3, 9], 0), "{order:?}, {entries} entries");
        assert!(bed.frontier.is_idle());
    }
}

/// A long queue goes to disk in every order, and memory stays within its bound while the queue is fetched, too.
#[test]
fn long_queues_are_on_disk_in_every_order() {
    for order in ALL {
        let mut bed = bed(order, |config| config.frontier.ram_bytes_max = 40_000)
            .ranked((0..2_000).map(|number| (url(number), number as f64)));
        // A block of each host has come back: half a kilobyte, where twenty hosts share so little memory. Hosts with
        // drawn URLs also keep 4 KiB of taken entries, in up to twice the room.
        let most = if order == UrlOrder::Random { 100_000 + 20 * 8_192 } else { 100_000 };
        // Without the places of blocks, in up to four times the room.
        let urls_bytes = |bed: &Bed| bed.frontier.ram_bytes().saturating_sub(4 * bed.spool.reference_bytes());
        for number in 0..12_000 {
            bed.offer_numbered(&url(number), number);
            if number % 3 == 0 {
                bed.linked(&url(number / 2), 1 + (number % 9) as u16);
            }
            // Queues that are read and still grow.
            if number >= 4_000 && number % 2 == 0 {
                bed.run(HOUR, 1, &mut well);
            }
            assert!(urls_bytes(&bed) < most, "{order:?}, {number}: {} bytes", bed.frontier.ram_bytes());
        }
        assert!(bed.spool.bytes() > 160_000, "{order:?}: {} bytes on disk", bed.spool.bytes());
        while !bed.frontier.is_idle() {
            bed.run(HOUR, 10, &mut well);
            assert!(urls_bytes(&bed) < most, "{order:?}: {} bytes", bed.frontier.ram_bytes());
        }
        assert_eq!((bed.count(JobKind::Page), bed.frontier.queued()), (12_000, 0), "{order:?}");
    }
}

/// The waiting URLs of one host, as a plain list: level, arrival at that level, number.
#[derive(Default)]
struct Model {
    waiting: Vec<(u8, u64, u64)>,
    links: BTreeMap<u64, u16>,
    arrivals: u64,
}

impl Model {
    fn came(&mut self, level: u8, number: u64) {
        self.arrivals += 1;
        self.waiting.push((level, self.arrivals, number));
    }

    fn linked(&mut self, number: u64, links: u16) {
        let sum = self.links.entry(number).or_default();
        *sum = (*sum + links).min(255);
        let level = sum.checked_ilog2().unwrap_or_default() as u8;
        if let Some(place) = self.waiting.iter().position(|(before, _, other)| *other == number && *before < level) {
            self.waiting.remove(place);
            self.came(level, number);
        }
    }

    fn next(&self, order: UrlOrder, drawn: u64) -> Option<usize> {
        let places = self.waiting.iter().enumerate();
        let place = match order {
            UrlOrder::BreadthFirst => places.min_by_key(|(_, (_, arrival, _))| *arrival),
            UrlOrder::DepthFirst => places.max_by_key(|(_, (_, arrival, _))| *arrival),
            UrlOrder::Random => places.into_iter().find(|(_, (.., number))| *number == drawn),
            UrlOrder::Backlinks | UrlOrder::Rank => {
                places.min_by_key(|(_, (level, arrival, _))| (u8::MAX - level, *arrival))
            }
        };
        place.map(|(place, _)| place)
    }
}

/// Compared with a plain list, with a queue that is mostly on disk.
#[test]
fn a_host_gives_its_urls_as_a_plain_list_would() {
    for (order, ram_bytes_max) in ALL.into_iter().flat_map(|order| [0, 1 << 30].map(|bytes| (order, bytes))) {
        let text = |number: u64| format!("http://h.test/{number}");
        let level = |number: u64| [0, 0, 0, 1, 3, 7][number as usize % 6];
        // Levels of the list: all of 64 but one are below the highest.
        let ranks: Vec<(u64, f64)> = (0..6_000).map(|place| (place, -(place as f64))).collect();
        let mut of_level = BTreeMap::<u8, Vec<u64>>::new();
        let list = Ranks::new(ranks.iter().map(|(place, rank)| (place << 20, *rank)).collect());
        ranks.iter().for_each(|(place, _)| of_level.entry(list.level(place << 20)).or_default().push(*place));
        let mut scores = Vec::new();
        let mut fill = 100_000;
        for (rank_level, places) in of_level {
            let mut wanted: Vec<u64> =
                (0..2_000).filter(|number| level(*number) == rank_level && rank_level > 0).collect();
            for place in places {
                let number = wanted.pop().unwrap_or_else(|| {
                    fill += 1;
                    fill
                });
                scores.push((text(number), -(place as f64)));
            }
        }
        let ranked: BTreeSet<String> = scores.iter().map(|(url, _)| url.clone()).collect();
        let mut bed = bed(order, |config| config.frontier.ram_bytes_max = ram_bytes_max).ranked(scores);
        bed.offer_numbered("http://h.test/first", 1 << 40);
        bed.run(HOUR, 3, &mut well);
        assert_eq!(bed.count(JobKind::Page), 1);
        let (mut rng, mut model, mut came, mut spilled) = (Rng::new(5), Model::default(), 0, false);
        for step in 0..6_000 {
            spilled |= bed.spool.bytes() > 0;
            let grows = step / 500 % 2 == 0 && came < 2_000;
            if rng.percent(if grows { 80 } else { 20 }) && came < 2_000 {
                bed.offer_numbered(&text(came), came);
                let is_ranked = order == UrlOrder::Rank && ranked.contains(&text(came));
                model.came(if is_ranked { level(came) } else { 0 }, came);
                came += 1;
            } else if rng.percent(50) && came > 0 {
                let (number, links) = (rng.below(came), 1 + rng.below(4) as u16);
                bed.linked(&text(number), links);
                if order == UrlOrder::Backlinks && model.waiting.iter().any(|(.., other)| *other == number) {
                    model.linked(number, links);
                }
            } else {
                let before = bed.jobs.len();
                bed.run(HOUR, 1, &mut well);
                let drawn = bed.jobs.get(before).map(|(_, job)| (job.number, job.url.as_str().to_owned()));
                let next = model.next(order, drawn.as_ref().map_or(u64::MAX, |(number, _)| *number));
                let expected = next.map(|place| model.waiting.remove(place).2);
                assert_eq!(drawn, expected.map(|number| (number, text(number))), "{order:?}, step {step}");
            }
        }
        assert_eq!((came, spilled), (2_000, ram_bytes_max == 0), "{order:?}");
    }
}

#[test]
fn a_random_order_is_none_of_the_others() {
    let order_of = |seed_url: &str| {
        let mut bed = bed(UrlOrder::Random, |_| ());
        bed.offer_numbered(seed_url, 1 << 40);
        bed.run(HOUR, 3, &mut well);
        (0..1_000).for_each(|number| bed.offer_numbered(&format!("http://h.test/{number}"), number));
        bed.run(HOUR, 5_000, &mut well);
        let pages = bed.jobs.iter().filter(|(_, job)| job.kind == JobKind::Page && job.number < 1_000);
        pages.map(|(_, job)| job.number).collect::<Vec<u64>>()
    };
    let drawn = order_of("http://h.test/");
    assert_eq!(drawn.len(), 1_000);
    let rises = drawn.windows(2).filter(|pair| pair[0] < pair[1]).count();
    assert!((450..550).contains(&rises), "{rises} of 999 are behind one that came before them");
    let early: u64 = drawn.iter().take(100).sum::<u64>() / 100;
    assert!((400..600).contains(&early), "the first hundred came at {early} of 1,000");
    assert_eq!(drawn, order_of("http://h.test/"), "the same each time");
}

/// If more hosts may have a turn than slots are free, the one with the best URL gets it; and each gets one in the
/// end.
#[test]
fn hosts_with_the_best_urls_come_first() {
    let (text, page) = (|host: u64| format!("http://h{host}.test/"), |host: u64| format!("http://h{host}.test/page"));
    let bed_of = |order| {
        let mut bed = bed(order, |_| ()).ranked((0..128).map(|host| (page(host), host as f64)));
        (0..256).for_each(|host| bed.offer_numbered(&text(host), 1_000 + host));
        bed.run(HOUR, 100_000, &mut well);
        assert_eq!(bed.count(JobKind::Page), 256);
        bed.jobs.clear();
        // URLs in the list are offered last.
        (0..256).rev().for_each(|host| bed.offer_numbered(&page(host), host));
        bed.run(HOUR, 100_000, &mut well);
        bed.jobs.iter().filter(|(_, job)| job.kind == JobKind::Page).map(|(_, job)| job.number).collect::<Vec<u64>>()
    };
    let order = bed_of(UrlOrder::Rank);
    assert_eq!(order.len(), 256);
    // 128 hosts are in the list, half of them in the lowest level of those; every fourth turn is for any.
    let ranked = order.iter().take(150).filter(|host| **host < 128).count();
    assert!(ranked >= 112, "{ranked} of the first 150 are in the list");
    let best = order.iter().take(5).filter(|host| (124..128).contains(*host)).count();
    assert!(best >= 3, "{order:?}");
    assert!(bed_of(UrlOrder::BreadthFirst).iter().take(128).all(|host| *host >= 128));
}
