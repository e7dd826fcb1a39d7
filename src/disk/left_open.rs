//! Segments that an earlier run left open, and numbers that it used.
//!
//! Decides: what was being written is cut back to its last whole record, indexed and closed; an index half written is
//! made again with its segment. To be called before the shard's thread has a ring.

use std::fs;
use std::io;
use std::path::Path;

use crate::store::segments::{INDEX_SUFFIX, OPEN, SEGMENT_SUFFIX, segment_number};

/// What an earlier run left of segments.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LeftOpen {
    /// Names of those that were open and are closed now, with the bytes cut off each.
    pub closed: Vec<(String, u64)>,
    /// A number that no name there has.
    pub next_number: u32,
}

/// Closes segments that an earlier run left open.
pub fn close_left_open(dir: &Path) -> io::Result<LeftOpen> {
    let mut left = LeftOpen::default();
    for entry in fs::read_dir(dir.join("segments"))? {
        let path = entry?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()).map(str::to_owned) else { continue };
        if let Some(number) = segment_number(&name) {
            left.next_number = left.next_number.max(number.saturating_add(1));
        }
        if name.ends_with(&format!("{INDEX_SUFFIX}{OPEN}")) {
            // An index half written: it is made again with its segment.
            fs::remove_file(&path)?;
        } else if let Some(closed_name) = name.strip_suffix(OPEN)
            && closed_name.ends_with(SEGMENT_SUFFIX)
        {
            left.closed.push((closed_name.to_owned(), close_segment(&path, closed_name)?));
        }
    }
    Ok(left)
}

fn close_segment(path: &Path, name: &str) -> io::Result<u64> {
    let file = fs::File::options().read(true).write(true).open(path)?;
    let length = file.metadata()?.len();
    let recovery = crate::store::recover::recover(io::BufReader::new(&file), name)?;
    let cut_bytes = length - recovery.valid_bytes;
    file.set_len(recovery.valid_bytes)?;
    file.sync_all()?;
    let index = path.with_file_name(name.replace(SEGMENT_SUFFIX, INDEX_SUFFIX));
    if recovery.records == 0 {
        fs::remove_file(path)?;
        return Ok(cut_bytes);
    }
    fs::write(&index, recovery.index)?;
    fs::File::open(&index)?.sync_all()?;
    fs::rename(path, path.with_file_name(name))?;
    Ok(cut_bytes)
}
