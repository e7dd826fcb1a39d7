//! What a shard's directory holds when a run begins.
//!
//! Decides: a segment that was being written is cut back to its last whole record, indexed and closed; an index half written is
//! made again with its segment. To be called before the shard's thread has a ring.

use std::fs;
use std::io;
use std::path::Path;

use crate::shard::FilesFound;
use crate::store::segments::{INDEX_SUFFIX, OPEN, SEGMENT_SUFFIX, segment_number};

/// Segments that were open and are closed now, by their names, with the bytes cut off each.
pub type LeftOpen = Vec<(String, u64)>;

/// Finds a shard's files, and closes segments that an earlier run left open.
pub fn find_files(dir: &Path) -> io::Result<(FilesFound, LeftOpen)> {
    let (mut found, mut left) = (FilesFound::default(), LeftOpen::new());
    for entry in fs::read_dir(dir.join("segments"))? {
        let path = entry?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()).map(str::to_owned) else { continue };
        let number = segment_number(&name);
        if let Some(number) = number {
            found.next_segment = found.next_segment.max(number.saturating_add(1));
        }
        if name.ends_with(&format!("{INDEX_SUFFIX}{OPEN}")) {
            // An index half written: it is made again with its segment.
            fs::remove_file(&path)?;
        } else if let Some(closed_name) = name.strip_suffix(OPEN)
            && closed_name.ends_with(SEGMENT_SUFFIX)
        {
            let (bytes, cut_bytes) = close_segment(&path, closed_name)?;
            found.segments.extend(number.map(|number| (number, bytes)));
            left.push((closed_name.to_owned(), cut_bytes));
        } else if let Some(number) = number
            && name.ends_with(SEGMENT_SUFFIX)
        {
            found.segments.insert(number, fs::metadata(&path)?.len());
        }
    }
    for entry in fs::read_dir(dir.join("journal"))? {
        found.journal.extend(entry?.file_name().to_str().and_then(|name| name.parse::<u32>().ok()));
    }
    found.journal.sort_unstable();
    Ok((found, left))
}

/// The bytes that stay of a segment, and those that were cut.
fn close_segment(path: &Path, name: &str) -> io::Result<(u64, u64)> {
    let file = fs::File::options().read(true).write(true).open(path)?;
    let length = file.metadata()?.len();
    let recovery = crate::store::recover::recover(io::BufReader::new(&file), name)?;
    let cut_bytes = length - recovery.valid_bytes;
    file.set_len(recovery.valid_bytes)?;
    file.sync_all()?;
    let index = path.with_file_name(name.replace(SEGMENT_SUFFIX, INDEX_SUFFIX));
    if recovery.records == 0 {
        fs::remove_file(path)?;
        return Ok((0, cut_bytes));
    }
    fs::write(&index, recovery.index)?;
    fs::File::open(&index)?.sync_all()?;
    fs::rename(path, path.with_file_name(name))?;
    Ok((recovery.valid_bytes, cut_bytes))
}
