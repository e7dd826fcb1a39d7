//! Making references absolute and canonical: those of the pages, against their page.
//!
//! Floor: the `url` crate alone, its base parsed once a page. Below 1 is faster than it.
//! Checked before: every result equals the `url` crate's, without fragment, user name and password.

#[path = "input.rs"]
mod input;

use std::sync::OnceLock;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use encoding_rs::UTF_8;
use ringcrawl::url::Base;

struct Work {
    ours: Base,
    floor: url::Url,
    references: Vec<String>,
}

fn work() -> &'static [Work] {
    static WORK: OnceLock<Vec<Work>> = OnceLock::new();
    WORK.get_or_init(|| {
        let work = |page: &input::Page| Work {
            ours: Base::new(&page.url),
            floor: url::Url::parse(page.url.as_str()).expect("a page's URL"),
            references: page.references(),
        };
        input::pages().iter().map(work).collect()
    })
}

fn references() -> usize {
    work().iter().map(|work| work.references.len()).sum()
}

fn main() {
    for work in work() {
        for reference in &work.references {
            let ours = work.ours.resolve(reference, UTF_8).ok().map(|url| url.as_str().to_owned());
            let theirs = work.floor.join(reference).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
            let theirs = theirs.and_then(|mut url| {
                url.set_fragment(None);
                url.set_username("").and_then(|()| url.set_password(None)).ok()?;
                Some(String::from(url))
            });
            assert_eq!(ours, theirs, "{reference:?}");
        }
    }
    divan::main();
}

#[divan::bench]
fn ours(bencher: Bencher) {
    bencher.counter(ItemsCount::new(references())).bench(|| {
        for work in work() {
            for reference in &work.references {
                let _ = black_box(work.ours.resolve(reference, UTF_8));
            }
        }
    });
}

#[divan::bench]
fn floor(bencher: Bencher) {
    bencher.counter(ItemsCount::new(references())).bench(|| {
        for work in work() {
            for reference in &work.references {
                let _ = black_box(work.floor.join(reference));
            }
        }
    });
}
