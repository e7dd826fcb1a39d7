//! Best-first crawls of a small web, on one shard and on three: which pages are fetched early, and what the exchange
//! of counts is worth.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

use super::*;
use ringcrawl_base::Rng;
use ringcrawl_config::UrlOrder;

/// A web of sites. Each home page links to all pages of its site. Each page links to the next pages of its site,
/// which have no more links than others, and to pages of other sites, a few of which get most of these links.
struct Web {
    links: BTreeMap<String, Vec<String>>,
    /// Links to each page, of different pages.
    backlinks: BTreeMap<String, usize>,
}

const SEEDS: u64 = 2;
const SITES: u64 = 8;
const PAGES: u64 = 80;

fn text(site: u64, page: u64) -> String {
    format!("http://s{site}.test/{page}")
}

impl Web {
    fn new(seed: u64) -> Web {
        let mut rng = Rng::new(seed);
        // The most popular pages come last on their home pages, and in no order.
        let mut popular: Vec<(u64, u64)> =
            (0..SITES).flat_map(|site| (PAGES / 2..PAGES).map(move |page| (site, page))).collect();
        let count = popular.len();
        (0..count).for_each(|place| popular.swap(place, rng.index(count)));
        let mut links = BTreeMap::new();
        for (site, page) in (0..SITES).flat_map(|site| (0..PAGES).map(move |page| (site, page))) {
            let mut targets = BTreeSet::new();
            if page == 0 {
                targets.extend((1..PAGES).map(|other| text(site, other)));
                targets.insert(text((site + 1) % SITES, 0));
            }
            // Its neighbours: decoys for a crawler that sees only links within a site.
            (1..=3).for_each(|step| _ = targets.insert(text(site, (page + step) % (PAGES / 2))));
            for _ in 0..8 {
                // The square of an even draw: the first quarter gets half.
                let draw = rng.below(1_000) as f64 / 1_000.0;
                let (other, target) = popular[(draw.powi(2) * popular.len() as f64) as usize];
                targets.insert(text(other, target));
            }
            targets.remove(&text(site, page));
            links.insert(text(site, page), targets.into_iter().collect::<Vec<String>>());
        }
        let mut backlinks = BTreeMap::new();
        links.values().flatten().for_each(|to| *backlinks.entry(to.clone()).or_insert(0) += 1);
        Web { links, backlinks }
    }

    /// The share of the most linked pages that is among these, which are as many: quality as defined by Cho and
    /// Garcia-Molina.
    fn quality(&self, fetched: &[String]) -> f64 {
        let mut best: Vec<(&String, &usize)> = self.backlinks.iter().collect();
        best.sort_by_key(|(url, links)| (std::cmp::Reverse(**links), *url));
        let best: BTreeSet<&String> = best.into_iter().take(fetched.len()).map(|(url, _)| url).collect();
        fetched.iter().filter(|url| best.contains(url)).count() as f64 / fetched.len() as f64
    }

    /// All pages in the order in which they are fetched.
    fn crawl(&self, shards: u16, order: UrlOrder, exchange_pages: u32) -> Vec<String> {
        let config = Arc::new(config(|config| {
            config.frontier.order = order;
            config.frontier.backlinks_exchange_pages = exchange_pages;
            config.frontier.order_ram_bytes_max = 1 << 20;
            config.traps.detect = ringcrawl_config::TrapDetection::Off;
            config.dns.hosts = (0..SITES)
                .map(|site| (format!("s{site}.test"), vec![IpAddr::from([192, 0, 2, site as u8 + 1])]))
                .collect();
        }));
        let scope = Scope::new(&config.scope, []);
        let setup = Setup::new(config, Partition::by_site(shards), scope, 1, 64);
        let mut all: Vec<Shard> =
            (0..shards).map(|index| Shard::new(Setup { index, ..setup.clone() }).expect("a shard")).collect();
        let (mut now, mut fetched, mut messages) = (Instant::ZERO, Vec::new(), VecDeque::new());
        let seed = Url::parse(&text(0, 0)).expect("a URL");
        let mut seeds = Some(vec![seed.clone()]);
        while fetched.len() < self.links.len() {
            let mut is_quiet = true;
            for index in 0..shards {
                while let Some(effect) = all[usize::from(index)].poll(now) {
                    is_quiet = false;
                    let input = match effect {
                        Effect::Fetch(job) => {
                            fetched.extend((job.kind == JobKind::Page).then(|| job.url.to_string()));
                            Input::Fetched { job: job.id, result: Ok(Box::new(self.answer(&job))) }
                        }
                        Effect::Disk(op) => {
                            let bytes = op.bytes();
                            Input::Disk(match op {
                                DiskOp::ReadLog { .. } => DiskEnd::LogRead { bytes: Vec::new() },
                                DiskOp::Sync { .. } => DiskEnd::Synced,
                                DiskOp::Spool(_) => panic!("there is memory enough"),
                                _ => DiskEnd::Done { spare: None, bytes },
                            })
                        }
                        Effect::Send(message) => {
                            messages.push_back((message.to, index, message.bytes));
                            continue;
                        }
                        Effect::Read(reading) => {
                            let page = reading.read(&mut CaptureWriter::new(Packing::default()).expect("a writer"));
                            Input::Read(Box::new(page))
                        }
                        Effect::Note(_) | Effect::Warn(_) | Effect::CutShort(_) => continue,
                        effect => panic!("{effect:?}"),
                    };
                    all[usize::from(index)].handle(now, input);
                }
                if setup.partition.shard_of(&seed) == index
                    && let Some(seeds) = seeds.take()
                {
                    all[usize::from(index)].handle(now, Input::Command(Command::Seeds(seeds)));
                    is_quiet = false;
                }
            }
            while let Some((to, from, bytes)) = messages.pop_front() {
                is_quiet = false;
                all[usize::from(to)].handle(now, Input::Received { from, bytes });
            }
            if is_quiet {
                let due = all.iter().filter_map(Shard::next_due).min().expect("something to wait for");
                now = due.max(now + Duration::from_micros(100));
            }
        }
        fetched
    }

    fn answer(&self, job: &FetchJob) -> Transaction {
        let body: String = match self.links.get(job.url.as_str()) {
            Some(links) => links.iter().map(|to| format!("<a href='{to}'>{to}</a>")).collect(),
            None => String::new(),
        };
        let status = if job.kind == JobKind::Robots { "404 Not Found" } else { "200 OK" };
        let head = format!("HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n", body.len());
        let limits = Config::default().fetch.limits();
        Transaction { ip: job.addr, ..plain_transaction((head + &body).as_bytes(), limits) }
    }
}

/// The first quarter of a crawl.
fn early(fetched: &[String]) -> &[String] {
    &fetched[..fetched.len() / 4]
}

#[test]
fn best_first_has_the_most_linked_pages_early() {
    let orders = [UrlOrder::BreadthFirst, UrlOrder::Random, UrlOrder::DepthFirst, UrlOrder::Backlinks];
    let mut sums = [0.0; 4];
    for seed in 0..SEEDS {
        let web = Web::new(seed);
        for (order, sum) in orders.into_iter().zip(&mut sums) {
            let fetched = web.crawl(1, order, 0);
            assert_eq!(fetched.iter().collect::<BTreeSet<_>>().len(), web.links.len(), "{order:?}");
            *sum += web.quality(early(&fetched)) / SEEDS as f64;
        }
    }
    println!("quality of the first quarter, {orders:?}: {sums:.3?}");
    let [breadth, random, depth, best] = sums;
    assert!(best > breadth.max(random).max(depth) + 0.1, "{sums:.3?}");
}

/// Three shards without each other's counts rank pages by the links within sites.
#[test]
fn counts_that_shards_exchange_bring_them_nearer_to_one_shard() {
    let (mut quality, mut common, exchanges) = ([0.0; 4], [0.0; 3], [0, 30, 1]);
    for seed in 0..SEEDS {
        let web = Web::new(seed);
        let single = web.crawl(1, UrlOrder::Backlinks, 0);
        let of_single: BTreeSet<&String> = early(&single).iter().collect();
        quality[3] += web.quality(early(&single)) / SEEDS as f64;
        for (place, pages) in exchanges.into_iter().enumerate() {
            let fetched = web.crawl(3, UrlOrder::Backlinks, pages);
            assert_eq!(fetched.iter().collect::<BTreeSet<_>>().len(), web.links.len());
            quality[place] += web.quality(early(&fetched)) / SEEDS as f64;
            let shared = early(&fetched).iter().filter(|url| of_single.contains(url)).count();
            common[place] += shared as f64 / of_single.len() as f64 / SEEDS as f64;
        }
    }
    println!(
        "after {exchanges:?} pages: in common with one shard {common:.3?}, quality {quality:.3?}, the last is one shard's"
    );
    let [never, seldom, each] = common;
    assert!(never + 0.02 < seldom && seldom <= each + 0.02 && quality[0] + 0.02 < quality[2], "{common:?} {quality:?}");
}
