//! The targets: what is fed with bytes of strangers, what must hold of each result, and seeds to begin with.
//!
//! Decides: each target asserts what must hold: bounds, that splits do not matter, round trips, twins.
//! Leaves to others: where the bytes come from (the fuzzer, and the test that replays what is known).

mod coding;
mod dns;
mod http;
mod logs;
mod store;
mod text;

/// A target: its name, what it does with bytes, its seeds.
pub type Target = (&'static str, fn(&[u8]), fn() -> Vec<Vec<u8>>);

/// All of them.
pub const TARGETS: [Target; 17] = [
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
    ("simhash", text::simhash, text::simhash_seeds),
    ("url", text::url, text::url_seeds),
    ("warc", store::warc, store::warc_seeds),
    ("cdxj", store::cdxj, store::cdxj_seeds),
    ("log", logs::log, logs::log_seeds),
    ("entries", logs::entries, logs::entries_seeds),
];

/// Splits off the first byte: what steers a target, and what it works on.
fn steered(data: &[u8]) -> (u8, &[u8]) {
    data.split_first().map_or((0, data), |(first, rest)| (*first, rest))
}
