//! `moved-sites`: the sites of a crawl that are not where its partition puts them, as they were moved to balance
//! shards.
//!
//! Decides: one line per site, `SHARD<TAB>SITE`, sorted by name. The file is sealed, and `crawl.json` has the number
//! of sites. Only a redistribution creates or removes it, so that it matches the logs.
//! Limits: those of sealed files, and `partition.ram_bytes_max` for the table built from it.

use std::io;
use std::path::Path;

use super::dir_error::DirError;
use super::manifest::Manifest;
use super::sealed_file;
use ringcrawl_brain::route::MovedSites;

/// The moved sites of the crawl in `root`.
pub(super) fn read(root: &Path, manifest: &Manifest) -> Result<MovedSites, DirError> {
    let path = root.join(MOVED_SITES);
    if manifest.moved_sites == 0 {
        return Ok(MovedSites::new());
    }
    let damaged = |why: &str| DirError::MovedSites(path.clone(), why.to_owned());
    let text = match sealed_file::read(&path, &manifest.crawl_id) {
        Ok(Some(Ok(text))) => text,
        Ok(Some(Err(why))) => return Err(damaged(&why.to_string())),
        Ok(None) => return Err(damaged("it is missing")),
        Err(error) => return Err(DirError::Io(path, error)),
    };
    let of_line = |line: &str| {
        let (shard, site) = line.split_once('\t')?;
        Some((site.into(), shard.parse().ok().filter(|shard| *shard < manifest.shards)?))
    };
    let moved: Option<MovedSites> = text.lines().map(of_line).collect();
    moved
        .filter(|moved| moved.len() as u64 == manifest.moved_sites)
        .ok_or_else(|| damaged("it is not that of crawl.json"))
}

/// Writes them into `root`.
pub(super) fn write(root: &Path, crawl_id: &str, moved: &MovedSites) -> io::Result<()> {
    let lines: String = moved.iter().map(|(site, shard)| format!("{shard}\t{site}\n")).collect();
    sealed_file::write(root, MOVED_SITES, crawl_id, &lines)
}

/// The file's name.
pub(super) const MOVED_SITES: &str = "moved-sites";
