//! A link's way from its text to what the crawl knows it by: absolute, canonical, its site, and its fingerprint.
//!
//! Floor: `Url::join` of the `url` crate, and xxh3-64 of the text it gives; it knows nothing of sites. Bases are parsed
//! once a page on both sides. Below 1 is faster than it; the aim is a sixth for the key. In turns both are measured, the key
//! alone, which is what the floor gives, and with the site.
//! Checked before: every result equals the parser's, and the `url` crate's without fragment, user name and password but
//! where that departs from the standard.
//!
//! With `BENCH_HTML` a page's address is that of its `rel=canonical`, so that links within a site are such.

#[path = "input.rs"]
mod input;

use std::sync::OnceLock;
use std::time::Instant;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use encoding_rs::UTF_8;
use ringcrawl_html::{self as html, Kind, Kinds};
use ringcrawl_url::{Absolute, Base, Reach, Site, Sites, Url, fingerprint};

struct Work {
    ours: Base,
    page: Url,
    floor: url::Url,
    references: Vec<&'static str>,
}

/// The references of a page, one behind the other as in the page itself. The text is never given back.
fn references_of(page: &input::Page) -> Vec<&'static str> {
    let (mut all, mut ends) = (String::new(), vec![0]);
    for reference in page.references() {
        all.push_str(&reference);
        ends.push(all.len());
    }
    let text: &'static str = all.leak();
    ends.windows(2).map(|ends| &text[ends[0]..ends[1]]).collect()
}

fn work() -> &'static [Work] {
    static WORK: OnceLock<Vec<Work>> = OnceLock::new();
    WORK.get_or_init(|| {
        let work = |page: &input::Page| {
            let url = address(page);
            Work {
                ours: Base::new(&url),
                floor: url::Url::parse(url.as_str()).expect("a page's URL"),
                references: references_of(page),
                page: url,
            }
        };
        input::pages().iter().map(work).collect()
    })
}

fn address(page: &input::Page) -> Url {
    let mut canonical = None;
    let document = Absolute::parse(page.url.as_str()).expect("a page's URL");
    html::scan_raw(&page.html, Some(input::CONTENT_TYPE), &document, &Kinds::ALL, &mut |raw| {
        if raw.kind == Kind::Canonical && !input::is_synthetic() {
            canonical = canonical.take().or(Url::parse(raw.text).ok());
        }
    });
    canonical.unwrap_or_else(|| page.url.clone())
}

fn references() -> usize {
    work().iter().map(|work| work.references.len()).sum()
}

/// Gives the fingerprint and the site of each link of a page.
fn keys_of(work: &Work, sites: &mut Sites, each: &mut impl FnMut(u64, Site<'_>, &Url)) {
    let mut url = work.page.clone();
    let home = Site::of(work.page.host());
    for reference in &work.references {
        match work.ours.resolve_into(reference, UTF_8, &mut url) {
            Ok(Reach::SameHost) => each(fingerprint(RNG_SEED, url.as_str()), home, &url),
            Ok(Reach::AnyHost) => each(fingerprint(RNG_SEED, url.as_str()), sites.of(url.host()), &url),
            Err(_) => {}
        }
    }
}

const RNG_SEED: u64 = 7;

fn main() {
    let (mut plain, mut sites) = (0, Sites::new());
    for work in work() {
        let mut theirs = Vec::new();
        for reference in &work.references {
            let by_parser = work.ours.resolve_by_parser(reference, UTF_8).ok();
            let by_crate = work.floor.join(reference).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
            let by_crate = by_crate.and_then(|mut url| {
                url.set_fragment(None);
                url.set_username("").and_then(|()| url.set_password(None)).ok()?;
                Some(String::from(url))
            });
            let departs = reference.contains('^') || reference.contains("xn--") || reference.starts_with("///");
            assert!(departs || by_parser.as_ref().map(Url::as_str) == by_crate.as_deref(), "{reference:?}");
            if let Some(url) = by_parser {
                theirs.push(url);
            }
        }
        let mut ours = Vec::new();
        keys_of(work, &mut sites, &mut |key, site, url| {
            assert_eq!((key, site), (fingerprint(RNG_SEED, url.as_str()), Site::of(url.host())), "{url}");
            ours.push(url.clone());
        });
        assert_eq!(ours, theirs, "{}", work.page);
        plain += ours.len();
    }
    eprintln!("{} references, {plain} URLs", references());
    println!("{:.2} times as fast as the `url` crate, median of {PAIRS} pairs", in_pairs(all_but_sites));
    println!("{:.2} times with the site, median of {PAIRS} pairs", in_pairs(|| all(&mut sites)));
    divan::main();
}

/// Rounds of both in turns: what others do on the machine comes in waves that are longer than a round.
const PAIRS: usize = 40;

/// The floor's time to ours, median of pairs.
fn in_pairs(mut ours: impl FnMut()) -> f64 {
    let mut ratios: Vec<f64> = (0..PAIRS)
        .map(|_| {
            let begun = Instant::now();
            all_by_crate();
            let by_crate = begun.elapsed();
            ours();
            by_crate.as_secs_f64() / (begun.elapsed() - by_crate).as_secs_f64()
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    ratios[PAIRS / 2]
}

fn all(sites: &mut Sites) {
    for work in work() {
        keys_of(work, sites, &mut |key, site, _| {
            black_box((key, site.hash));
        });
    }
}

/// As much as the floor does.
fn all_but_sites() {
    for work in work() {
        let mut url = work.page.clone();
        for reference in &work.references {
            if work.ours.resolve_into(reference, UTF_8, &mut url).is_ok() {
                black_box(fingerprint(RNG_SEED, url.as_str()));
            }
        }
    }
}

fn all_by_crate() {
    for work in work() {
        for reference in &work.references {
            if let Ok(url) = work.floor.join(reference) {
                black_box(fingerprint(RNG_SEED, url.as_str()));
            }
        }
    }
}

mod key {
    use super::*;

    /// As much as the floor does.
    #[divan::bench]
    fn ours(bencher: Bencher) {
        bencher.counter(ItemsCount::new(references())).bench(all_but_sites);
    }

    #[divan::bench]
    fn floor(bencher: Bencher) {
        bencher.counter(ItemsCount::new(references())).bench(all_by_crate);
    }
}

#[divan::bench]
fn ours(bencher: Bencher) {
    // As a crawl goes from page to page, the same hosts are met again.
    let mut sites = Sites::new();
    bencher.counter(ItemsCount::new(references())).bench_local(|| all(&mut sites));
}

#[divan::bench]
fn floor(bencher: Bencher) {
    bencher.counter(ItemsCount::new(references())).bench(all_by_crate);
}
