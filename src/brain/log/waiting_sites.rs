//! Where a crawl's waiting URLs are, by site: read from its logs, for levelling.
//!
//! Decides: a URL waits if it was accepted and is not final. URLs in flight between shards or set aside are left out,
//! because there are few.
//! Limits: one shard is read at a time; the caller sets the memory for the sites of all shards, and the smaller ones
//! are forgotten.

use super::Owner;
use super::redistribution::{EarlierShard, RedistributedFiles};
use super::replay::{Replay, ReplayStep};
use crate::route::{ShardWork, WaitingSites};
use ringcrawl_url::{Url, site_of};

/// Counts them in the logs of the `earlier` shards of a crawl, within the memory limit. An error comes from the
/// files, or means that a log is not its shard's.
pub fn waiting_sites(
    crawl: u64,
    earlier: &[EarlierShard],
    files: &mut dyn RedistributedFiles,
    bytes_max: u64,
) -> Result<WaitingSites, String> {
    let shards = earlier.len() as u16;
    let mut waiting = WaitingSites::new();
    for (shard, earlier) in (0..).zip(earlier) {
        let mut work = ShardWork::new(bytes_max / u64::from(shards));
        let mut replay = Replay::new(Owner { crawl, shard }, shards, &[], earlier.segments.clone());
        while let Some((file, position)) = replay.next_read() {
            let bytes = files.read(shard, file, position)?;
            let mut note = |step: ReplayStep<'_>| {
                if let ReplayStep::Url { text, is_over, .. } = step
                    && let Ok(url) = Url::from_canonical(text)
                {
                    work.note(site_of(url.host()), is_over);
                }
            };
            replay.read(&bytes, &mut note).map_err(|why| format!("shard-{shard:02}/{why}"))?;
        }
        waiting.push(work);
    }
    Ok(waiting)
}
