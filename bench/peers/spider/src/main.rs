//! Crawls the seeds with the spider crate, each host as a task of its own, and keeps every page's bytes in one file.
//!
//!     peer-spider SEEDS OUT CONCURRENCY
//!
//! Decides: what the crate's README says of speed ("Reusable Configuration": a task a website; "Performance":
//! mimalloc), no delay, no depth limit, only HTML, only the seed's own host. Bodies are taken in the crate's callback
//! and not by its broadcast channel, which drops pages when the receiver is slower.
//! Limits: an interrupt ends it; what was written is whole.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::{Arc, Mutex};

use spider::configuration::Configuration;
use spider::page::Page;
use spider::website::Website;

#[global_allocator]
static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Store = Arc<Mutex<BufWriter<File>>>;

/// One record: `LENGTH URL`, the body, a line break.
fn keep(store: &Store, page: &Page) -> std::io::Result<()> {
    let body = page.get_html_bytes_u8();
    let mut file = store.lock().expect("no writer panicked");
    writeln!(file, "{} {}", body.len(), page.get_url_final())?;
    file.write_all(body)?;
    file.write_all(b"\n")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [seeds, out, concurrency] = <[String; 3]>::try_from(std::env::args().skip(1).collect::<Vec<_>>())
        .map_err(|_| "usage: peer-spider SEEDS OUT CONCURRENCY")?;
    let store: Store = Arc::new(Mutex::new(BufWriter::with_capacity(1 << 20, File::create(out)?)));
    let config = Configuration::new()
        .with_user_agent(Some("peer-spider"))
        .with_respect_robots_txt(false)
        .with_delay(0)
        .with_depth(0)
        .with_retry(0)
        .with_block_assets(true)
        .with_concurrency_limit(Some(concurrency.parse()?))
        .build();

    let mut crawls = tokio::task::JoinSet::new();
    for seed in std::fs::read_to_string(seeds)?.lines() {
        let store = store.clone();
        let mut website = Website::new(seed);
        website.with_config(config.clone()).with_on_should_crawl_callback_closure(Some(move |page: &Page| {
            if page.status_code.is_success() {
                keep(&store, page).expect("the disk takes it");
            }
            true
        }));
        crawls.spawn(async move { website.crawl().await });
    }
    std::thread::spawn({
        let store = store.clone();
        move || interrupted(&store)
    });
    while crawls.join_next().await.is_some() {}
    Ok(store.lock().expect("no writer panicked").flush()?)
}

/// Ends the program on an interrupt, its tasks left where they are. A thread of its own: the crawl's is busy.
fn interrupted(store: &Store) -> std::io::Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(tokio::signal::ctrl_c())?;
    let mut file = store.lock().expect("no writer panicked");
    file.flush()?;
    std::process::exit(0)
}
