//! From a configuration to running shards: CPUs, directory, limits, threads.
//!
//! Leaves to others: what a shard does (`pump`), how a crawl is watched (`cli`, `control`).

mod checks;
mod cpus;
mod crawl;
mod crawl_dir;
mod dir_error;
mod dir_lock;
mod external_links;
mod kept_config;
mod kept_seeds;
mod launch;
mod limits;
mod loopback;
mod manifest;
mod memory;
mod moved_sites;
mod order;
mod outage_watch;
mod redistribution;
mod scope_files;
mod scope_reload;
mod sealed_file;
mod seed;
mod seeds;
mod segment_folders;
mod site_bounds;
mod start;
mod surroundings;

pub use checks::{check_memory, notes, seeds_of_round};
pub use cpus::choose as choose_cpus;
pub use crawl::Crawl;
pub use crawl_dir::{CrawlDir, Wanted, is_crawl, kept_partition, list_external_links};
pub use dir_error::DirError;
pub use dir_lock::{DirLock, is_held};
pub use external_links::ExternalLinks;
pub use kept_config::kept_config;
pub use kept_seeds::kept_seeds;
pub use limits::{forget_rss_bytes_max, has_terminal, is_ignored, raise_file_limit, rss_bytes, rss_bytes_max, spawn};
pub use manifest::{Manifest, read as read_manifest};
pub use order::{BootError, HandedOn, Order, Round, RoundEnd};
pub use redistribution::is_unsettled;
pub use ringcrawl_ring::cpu_time;
pub use scope_files::ScopeFiles;
pub use seeds::{SeedError, SeedsRead, read_seeds};
pub use start::start;
pub use surroundings::disk_shortage;
