//! The set of URLs seen: a million fingerprints, each offered four times, from an empty set on; and the links of pages, of
//! which seven in eight were seen, asked for one by one and in a batch.
//!
//! Floor: the standard library's `HashSet<u64>` that takes the fingerprint for its hash.
//! Checked before: both take each fingerprint once, the memory of ours for one stays below 7 bytes, and a batch has the
//! answers of its fingerprints one by one.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::OnceLock;

use divan::Bencher;
use divan::counter::ItemsCount;
use ringcrawl_base::Rng;
use ringcrawl_brain::visited::{Seen, Table};

const FINGERPRINTS: u64 = 1_000_000;
const OFFERS: u64 = 4;
const PAGES: usize = 1_000;
const LINKS: usize = 128;

/// The fingerprint as its own hash.
#[derive(Default)]
struct Itself(u64);

impl Hasher for Itself {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

type Plain = HashSet<u64, BuildHasherDefault<Itself>>;

/// Offers in the order in which links come: some new ones among those seen before.
fn offers() -> &'static [u64] {
    static OFFERED: OnceLock<Vec<u64>> = OnceLock::new();
    OFFERED.get_or_init(|| {
        let mut rng = Rng::new(1);
        let fingerprint = |number: u64| ringcrawl_url::fingerprint(7, &number.to_string());
        let mut offers = Vec::new();
        for number in 0..FINGERPRINTS {
            offers.push(fingerprint(number));
            offers.extend((1..OFFERS).map(|_| fingerprint(rng.below(number + 1))));
        }
        offers
    })
}

fn fill_ours() -> Table {
    let mut table = Table::new(FINGERPRINTS, 56);
    let new = offers().iter().filter(|fingerprint| table.insert(**fingerprint) == Seen::New).count();
    assert_eq!(new as u64, FINGERPRINTS);
    table
}

fn fill_plain() -> Plain {
    let mut set = Plain::default();
    let new = offers().iter().filter(|fingerprint| set.insert(**fingerprint)).count();
    assert_eq!(new as u64, FINGERPRINTS);
    set
}

/// A set of so many, and the links of pages.
fn filled(len: u64) -> (Table, Vec<Vec<u64>>) {
    let (mut table, mut rng) = (Table::new(len, 56), Rng::new(2));
    let known: Vec<u64> = (0..len).map(|_| rng.next()).collect();
    for fingerprint in &known {
        table.insert(*fingerprint);
    }
    let mut link = || if rng.below(8) > 0 { *rng.pick(&known) } else { rng.next() };
    let pages = (0..PAGES).map(|_| (0..LINKS).map(|_| link()).collect()).collect();
    (table, pages)
}

fn one_by_one(table: &Table, page: &[u64]) -> Vec<bool> {
    page.iter().map(|fingerprint| table.contains(*fingerprint)).collect()
}

fn main() {
    let (table, pages) = filled(10_000);
    assert!(pages.iter().all(|page| table.contains_each(page) == one_by_one(&table, page)));
    let table = fill_ours();
    assert_eq!(table.len(), fill_plain().len() as u64);
    assert!(table.bytes() < 7 * FINGERPRINTS, "{} bytes", table.bytes());
    divan::main();
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn ours(bencher: Bencher) {
    bencher.counter(ItemsCount::new(offers().len())).bench(fill_ours);
}

#[divan::bench(sample_count = 10, sample_size = 1)]
fn floor(bencher: Bencher) {
    bencher.counter(ItemsCount::new(offers().len())).bench(fill_plain);
}

#[divan::bench(args = [300_000, 2_500_000, 20_000_000], sample_count = 5, sample_size = 1)]
fn singly(bencher: Bencher, len: u64) {
    let (table, pages) = filled(len);
    let ask = || pages.iter().flat_map(|page| one_by_one(&table, page)).filter(|is_seen| *is_seen).count();
    bencher.counter(ItemsCount::new(PAGES * LINKS)).bench_local(ask);
}

#[divan::bench(args = [300_000, 2_500_000, 20_000_000], sample_count = 5, sample_size = 1)]
fn batched(bencher: Bencher, len: u64) {
    let (table, pages) = filled(len);
    let ask = || pages.iter().flat_map(|page| table.contains_each(page)).filter(|is_seen| *is_seen).count();
    bencher.counter(ItemsCount::new(PAGES * LINKS)).bench_local(ask);
}
