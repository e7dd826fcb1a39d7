//! Fingerprints of pages, by which near duplicates are known.
//!
//! Floor: going through the page with `memchr` for a byte that is not there, which is what touching each byte takes.
//! What a page takes is also timed page by page, each one read before as its links' scanner reads it: so it is in the
//! cache, and none is timed twice in a row, or branches would be foreseen. Who runs beside us moves medians little.
//! Checked before: how far apart fingerprints are, of pages and of themselves with a little changed, and of pages and
//! others of the same site. Both are printed. `BENCH_HTML` may name real pages; those of one template are the hard ones.

#[path = "input.rs"]
mod input;

use std::time::Instant;

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use ringcrawl_base::Rng;
use ringcrawl_brain::page::simhash;

fn main() {
    let pages: Vec<&[u8]> = input::pages().iter().map(|page| page.html.as_slice()).collect();
    let own: Vec<Option<u64>> = pages.iter().map(|html| simhash::of_html(html)).collect();
    println!("{} of {} pages have a fingerprint", own.iter().flatten().count(), pages.len());
    let mut others = Vec::new();
    for (place, one) in own.iter().enumerate() {
        others.extend(own.iter().skip(place + 1).filter_map(|other| distance(*one, *other)));
    }
    let others = Distances::new("different pages", others);
    let mut changed = Vec::new();
    for (name, change) in CHANGES {
        let mut rng = Rng::new(1);
        let distances = pages.iter().zip(&own).flat_map(|(html, own)| {
            let rng = &mut rng;
            (0..8).filter_map(|_| distance(*own, simhash::of_html(&change(html, rng)))).collect::<Vec<_>>()
        });
        changed.push(Distances::new(name, distances.collect()));
    }
    if input::is_synthetic() {
        assert!(others.share(6) < 0.01, "different pages are told apart");
        assert!(changed.iter().all(|changed| changed.median() <= 12), "near duplicates are near");
    }
    if std::env::args().any(|argument| argument == "--bench") {
        println!("a page that was just read: {}", just_read());
    }
    divan::main();
}

/// Microseconds a page: each page's fastest and median time, and the mean of these.
fn just_read() -> String {
    const ROUNDS: usize = 60;
    let pages = input::pages();
    let mut micros = vec![Vec::new(); pages.len()];
    for _ in 0..ROUNDS {
        for (page, micros) in pages.iter().zip(&mut micros) {
            black_box(page.html.iter().map(|byte| u64::from(*byte)).sum::<u64>());
            let begun = Instant::now();
            black_box(simhash::of_html(black_box(&page.html)));
            micros.push(begun.elapsed().as_secs_f64() * 1e6);
        }
    }
    micros.iter_mut().for_each(|micros| micros.sort_by(f64::total_cmp));
    let mean = |place: usize| micros.iter().map(|micros| micros[place]).sum::<f64>() / pages.len() as f64;
    let bytes = input::bytes() / pages.len();
    format!("fastest {:.1} µs, median {:.1} µs of {bytes} bytes", mean(0), mean(ROUNDS / 2))
}

fn distance(one: Option<u64>, other: Option<u64>) -> Option<u32> {
    Some((one? ^ other?).count_ones())
}

/// How far apart pairs are.
struct Distances(Vec<u32>);

impl Distances {
    fn new(name: &str, mut bits: Vec<u32>) -> Distances {
        bits.sort_unstable();
        let distances = Distances(bits);
        let at = |percent: usize| distances.0.get((distances.0.len() * percent / 100).saturating_sub(1)).copied();
        let marks: Vec<String> = [1, 5, 25, 50, 75, 95, 99]
            .iter()
            .map(|percent| format!("{percent} %: {:2}", at(*percent).unwrap_or_default()))
            .collect();
        let shares =
            format!("{:5.1} % within 3, {:5.1} % within 6", 100.0 * distances.share(3), 100.0 * distances.share(6));
        println!("{name:28} {:7} pairs; bits: {}; {shares}", distances.0.len(), marks.join(", "));
        distances
    }

    fn median(&self) -> u32 {
        self.0.get(self.0.len() / 2).copied().unwrap_or_default()
    }

    /// The share of pairs that are so near.
    fn share(&self, bits: u32) -> f64 {
        self.0.iter().filter(|distance| **distance <= bits).count() as f64 / self.0.len().max(1) as f64
    }
}

/// Changes a page a little.
type Change = fn(&[u8], &mut Rng) -> Vec<u8>;

const CHANGES: &[(&str, Change)] = &[
    ("the same, other numbers", |html, rng| {
        let digits = html.iter().map(|byte| if byte.is_ascii_digit() { b'0' + rng.below(10) as u8 } else { *byte });
        digits.collect()
    }),
    ("one word more", |html, rng| inserted(html, "another ".to_owned(), rng)),
    ("an advert of 30 words", |html, rng| inserted(html, advert(rng, 30), rng)),
    ("three adverts of 30 words", |html, rng| {
        (0..3).fold(html.to_vec(), |html, _| inserted(&html, advert(rng, 30), rng))
    }),
    ("one word in 100 another", |html, rng| {
        let mut html = html.to_vec();
        let mut at = 0;
        while let Some(found) = html.get(at..).and_then(|rest| memchr::memchr(b' ', rest)) {
            let start = at + found + 1;
            at = start;
            let word = html.get_mut(start..start + 4).filter(|word| word.iter().all(u8::is_ascii_alphabetic));
            if let (Some(word), true) = (word, rng.percent(1)) {
                word.copy_from_slice(b"zyxw");
            }
        }
        html
    }),
];

/// Before some tag.
fn inserted(html: &[u8], what: String, rng: &mut Rng) -> Vec<u8> {
    let from = rng.index(html.len());
    let place = html.get(from..).and_then(|rest| memchr::memchr(b'<', rest)).map_or(html.len(), |at| from + at);
    let mut changed = html.to_vec();
    changed.splice(place..place, what.into_bytes());
    changed
}

fn advert(rng: &mut Rng, words: usize) -> String {
    let letters = |rng: &mut Rng| (0..2 + rng.index(8)).map(|_| char::from(b'a' + rng.below(26) as u8)).collect();
    let words: Vec<String> = (0..words).map(|_| letters(rng)).collect();
    format!("<div class=\"advert advert--wide\"><p>{}</p></div>", words.join(" "))
}

#[divan::bench]
fn ours(bencher: Bencher) {
    bencher
        .counter(BytesCount::new(input::bytes()))
        .counter(ItemsCount::new(input::pages().len()))
        .bench(|| input::pages().iter().filter_map(|page| simhash::of_html(&page.html)).fold(0, u64::wrapping_add));
}

#[divan::bench]
fn floor(bencher: Bencher) {
    bencher
        .counter(BytesCount::new(input::bytes()))
        .counter(ItemsCount::new(input::pages().len()))
        .bench(|| input::pages().iter().filter(|page| black_box(memchr::memchr(0, &page.html)).is_some()).count());
}
