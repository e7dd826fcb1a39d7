//! Which shard a URL belongs to, by each rule: URLs of a thousand sites whose site is known, as links have it.
//!
//! Floor: the site's hash by one multiplication. Aim: 20 ns a URL for each rule. A row is a thousand URLs.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use ringcrawl_brain::route::Partition;
use ringcrawl_url::{Site, Url};

const RULES: [&str; 5] =
    ["site-hash", "host-hash", "url-hash", "hierarchical com | net org | de at ch | fr be lu", "consistent 128"];

fn main() {
    divan::main();
}

#[divan::bench(args = RULES)]
fn shard_of_known(bencher: Bencher, rule: &str) {
    let partition = Partition::of_rule(rule, 64).expect("a rule");
    let url = |number: usize| {
        let domain = ["com", "net", "co.uk", "de", "io"][number % 5];
        Url::parse(&format!("https://www.site-{number}.{domain}/section/article-{number}.html?page=2")).expect("a URL")
    };
    let urls: Vec<Url> = (0..1_000).map(url).collect();
    let known: Vec<(&Url, Site)> = urls.iter().map(|url| (url, Site::of(url.host()))).collect();
    bencher.counter(ItemsCount::new(urls.len())).bench_local(|| {
        known.iter().map(|(url, site)| u32::from(partition.shard_of_known(black_box(url), *site))).sum::<u32>()
    });
}
