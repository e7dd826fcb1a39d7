//! Where a crawl's waiting URLs are, by site: read from its logs, for whoever levels them out.
//!
//! Decides: a URL waits that was accepted and is not over; what is on its way between shards or set aside is left out: there is little of it.
//! Limits: one shard is read at a time; an entry of some hundred bytes for each site with waiting URLs.

use super::Owner;
use super::redistribution::{EarlierShard, RedistributedFiles};
use super::replay::{Replay, ReplayStep};
use crate::route::WaitingSites;
use crate::url::{Url, site_of};

/// Counts them in the logs of the `earlier` shards of a crawl. An error is one of the files', or says that a log is not its shard's.
pub fn waiting_sites(
    crawl: u64,
    earlier: &[EarlierShard],
    files: &mut dyn RedistributedFiles,
) -> Result<WaitingSites, String> {
    let shards = earlier.len() as u16;
    let mut waiting = WaitingSites::new();
    for (shard, earlier) in (0..).zip(earlier) {
        let mut sites = std::collections::BTreeMap::<Box<str>, u64>::new();
        let mut replay = Replay::new(Owner { crawl, shard }, shards, &[], earlier.segments.clone());
        while let Some((file, position)) = replay.next_read() {
            let bytes = files.read(shard, file, position)?;
            let mut note = |step: ReplayStep<'_>| {
                if let ReplayStep::Url { text, is_over: false, .. } = step
                    && let Ok(url) = Url::from_canonical(text)
                {
                    let site = site_of(url.host());
                    match sites.get_mut(site) {
                        Some(urls) => *urls += 1,
                        None => drop(sites.insert(site.into(), 1)),
                    }
                }
            };
            replay.read(&bytes, &mut note).map_err(|why| format!("shard-{shard:02}/{why}"))?;
        }
        waiting.push(sites);
    }
    Ok(waiting)
}
