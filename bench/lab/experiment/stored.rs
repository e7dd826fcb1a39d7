//! Measures a real crawl from its directory.
//!
//! Decides: N are the stored responses of pages, the last of each URL per shard, whatever their status, by the time
//! at which their requests began. U are the URLs that are stored or that a stored page links to: what else the web
//! holds is unknown. Pages count for the shard that owns them now, by the crawl's partition, even if another shard
//! stored them before the number of shards was changed or sites moved. In modes in which shards fetch each other's
//! pages, they count for the shard that stored them. A link crosses if its target belongs to another shard. No file
//! records what was sent, so that value stays empty.
//! Limits: links that the crawl's scope left out are among those of U. Pages in damaged places are missing.
//! Leaves to others: the graph of what is stored (`plan`).

use std::path::{Path, PathBuf};

use super::crawl::{Fetch, Observed};
use super::measures::{ExperimentRow, Ground};
use super::{GraphWeb, Treatment};
use crate::plan::{self, PageGraph, PlanError};
use ringcrawl_base::time::{Duration, UnixTime};
use ringcrawl_brain::route::Partition;
use ringcrawl_config::ExchangeMode;
use ringcrawl_crawler::boot::Manifest;
use ringcrawl_url::{Site, Url};
use ringcrawl_warc::fault::ReadError;
use ringcrawl_warc::read::SegmentReader;

/// The row of the crawl of `manifest`; `partition` assigns its URLs to shards, and `graph` covers all URLs known.
pub fn measure(
    segments: &[PathBuf],
    manifest: &Manifest,
    partition: &Partition,
    order: &str,
    graph: PageGraph,
) -> Result<ExperimentRow, PlanError> {
    let web = GraphWeb::new(graph);
    let mut captures = Vec::new();
    for path in segments {
        read(path, &web, &mut captures)?;
    }
    // A page that was fetched again (a retry, or after a kill) counts once, by its last capture.
    captures.sort_unstable_by_key(|(began, shard, page)| (*page, *shard, std::cmp::Reverse(*began)));
    captures.dedup_by_key(|(_, shard, page)| (*page, *shard));
    captures.sort_unstable();
    let graph = web.graph();
    // If sites were given to shards as they were seen, the shard that stored a page owns its site.
    if let Some(owners) = partition.owners() {
        for (_, shard, page) in &captures {
            if let Ok(url) = Url::from_canonical(graph.name(*page)) {
                // The hash determines the owner of a site beyond the table.
                let _ = owners.claim(Site::of(url.host()).hash, *shard);
            }
        }
    }
    let keeps_parts = manifest.exchange_mode.parse().is_ok_and(ExchangeMode::keeps_parts);
    let owner = |page: u32, finder: u16| {
        let url = Url::from_canonical(graph.name(page));
        url.map_or(finder, |url| partition.shard_of_found(&url, Site::of(url.host()), finder))
    };
    let first = captures.first().map_or(0, |capture| capture.0);
    let mut observed = Observed::default();
    for (micros, stored_by, page) in captures {
        let shard = if keeps_parts { owner(page, stored_by) } else { stored_by };
        let crossing = graph.targets_of(page).iter().filter(|target| owner(**target, shard) != shard);
        observed.links_crossing += crossing.count() as u64;
        let at = Duration::from_micros(micros.saturating_sub(first));
        observed.fetches.push(Fetch { page, shard, at, bytes: graph.weights(page)[0] });
    }
    let treatment = Treatment {
        partition: manifest.partition.split(' ').next().unwrap_or_default().to_owned(),
        mode: manifest.exchange_mode.clone(),
        order: order.to_owned(),
        seeds: None,
        limit: 0,
        shards: manifest.shards,
        rng_seed: 0,
    };
    let row = ExperimentRow::of(&treatment, &Ground::of_all(graph), &observed);
    Ok(ExperimentRow { urls_sent: None, urls_sent_per_page: None, bytes_sent: None, ..row })
}

/// When each capture began, its shard, and its page.
fn read(path: &Path, web: &GraphWeb, captures: &mut Vec<(u64, u16, u32)>) -> Result<(), PlanError> {
    let named = |error| PlanError::File { path: path.to_owned(), error };
    let shard = shard_of(path);
    let mut segment = match SegmentReader::new(plan::opened(path).map_err(named)?) {
        Ok(segment) => segment,
        Err(ReadError::Io(error)) => return Err(named(error)),
        // It was reported when the graph was read.
        Err(ReadError::Damaged { .. }) => return Ok(()),
    };
    loop {
        match segment.next_record() {
            Ok(None) => return Ok(()),
            Ok(Some(record)) => {
                let page = plan::url_of(&record).and_then(|url| web.page_of(url.as_str()));
                let began = record.head.get("WARC-Date").and_then(micros);
                captures.extend(page.zip(began).map(|(page, began)| (began, shard, page)));
            }
            Err(ReadError::Io(error)) => return Err(named(error)),
            Err(ReadError::Damaged { .. }) => {}
        }
    }
}

/// The shard in whose directory a segment lies.
fn shard_of(path: &Path) -> u16 {
    let mut folders = path.iter().rev().filter_map(|folder| folder.to_str()?.strip_prefix("shard-")?.parse().ok());
    folders.next().unwrap_or_default()
}

/// `2026-11-21T08:40:32.000001Z`, with or without a fraction.
fn micros(date: &str) -> Option<u64> {
    let text = date.strip_suffix('Z')?;
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut numbers = seconds.split(['-', 'T', ':']).map(|number| number.parse().ok());
    let mut next = || numbers.next()?;
    let time = UnixTime::from_civil(next()?, next()?, next()?, next()?, next()?, next()?)?;
    let digits: String = fraction.chars().chain("000000".chars()).take(6).collect();
    Some(time.as_micros() + digits.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_shards_of_captures() {
        let second = UnixTime::from_civil(2026, 11, 21, 8, 40, 32).expect("a time").as_micros();
        assert_eq!(micros("2026-11-21T08:40:32.000001Z"), Some(second + 1));
        assert_eq!(micros("2026-11-21T08:40:32.25Z"), Some(second + 250_000));
        assert_eq!(micros("2026-11-21T08:40:32Z"), Some(second));
        assert_eq!([micros("2026-11-21"), micros(""), micros("2026-11-21T08:40:32.xZ")], [None; 3]);
        assert_eq!(shard_of(Path::new("crawl/shard-07/segments/a.warc.zst")), 7);
        assert_eq!(shard_of(Path::new("crawl/a.warc.zst")), 0);
    }
}
