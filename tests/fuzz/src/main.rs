//! One target of the fuzzer, chosen by its name in `RINGCRAWL_FUZZ`; without one, the names are printed.
//!
//! Decides: one program for all, since most of its time to build is the crawler's. Each target asserts what must hold
//! of its result: bounds, that splits do not matter, round trips, twins. Each makes its own seeds, which are written
//! into `RINGCRAWL_FUZZ_SEEDS` when that names a folder.
//! Leaves to others: how long, and what is kept (`run`).

#![no_main]

mod coding;
mod dns;
mod http;
mod store;
mod text;

use std::path::Path;
use std::sync::OnceLock;

/// A target: its name, what it does with bytes, its seeds.
type Target = (&'static str, fn(&[u8]), fn() -> Vec<Vec<u8>>);

const TARGETS: [Target; 14] = [
    ("head", http::head, http::head_seeds),
    ("chunked", http::chunked, http::chunked_seeds),
    ("response", http::response, http::response_seeds),
    ("gzip", |data| coding::decode("gzip", data), || coding::seeds("gzip")),
    ("deflate", |data| coding::decode("deflate", data), || coding::seeds("deflate")),
    ("br", |data| coding::decode("br", data), || coding::seeds("br")),
    ("zstd", |data| coding::decode("zstd", data), || coding::seeds("zstd")),
    ("dns", dns::dns, dns::dns_seeds),
    ("robots", text::robots, text::robots_seeds),
    ("links", text::links, text::links_seeds),
    ("listing", text::listing, text::listing_seeds),
    ("url", text::url, text::url_seeds),
    ("warc", store::warc, store::warc_seeds),
    ("cdxj", store::cdxj, store::cdxj_seeds),
];

static CHOSEN: OnceLock<fn(&[u8])> = OnceLock::new();

fn choose() {
    let name = std::env::var("RINGCRAWL_FUZZ").unwrap_or_default();
    let Some((_, run, seeds)) = TARGETS.iter().find(|(target, _, _)| *target == name) else {
        TARGETS.iter().for_each(|(target, _, _)| println!("{target}"));
        std::process::exit(i32::from(!name.is_empty()));
    };
    if let Ok(folder) = std::env::var("RINGCRAWL_FUZZ_SEEDS") {
        for (number, seed) in seeds().iter().enumerate() {
            std::fs::write(Path::new(&folder).join(format!("seed-{number}")), seed).expect("a seed can be written");
        }
    }
    let _ = CHOSEN.set(*run);
}

libfuzzer_sys::fuzz_target!(init: choose(), |data: &[u8]| {
    if let Some(run) = CHOSEN.get() {
        run(data);
    }
});

/// Splits off the first byte: what steers a target, and what it works on.
fn steered(data: &[u8]) -> (u8, &[u8]) {
    data.split_first().map_or((0, data), |(first, rest)| (*first, rest))
}

/// A generator of numbers from a seed that is in the data, so that an input repeats itself.
fn random(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 16) as usize
}
