//! What a shard's directory holds from an earlier run.
//!
//! Decides: the journal is read three times: for what is over, then for what was accepted (what is not over waits
//! again), then for what was set aside or not handed over. Its torn end, if there is one, is cut. Segments that were being written are cut back to their last whole
//! record, indexed and closed.
//! Limits: eight bytes of memory for each URL that is over, while the journal is read.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

use super::disk::{INDEX_SUFFIX, JOURNAL, OPEN, SEGMENT_SUFFIX};
use crate::shard::{Entries, Shard, journal};
use crate::time::Instant;
use crate::url::Url;

/// What was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Recovered {
    /// Length of the journal's whole blocks.
    pub journal_bytes: u64,
    /// Bytes cut off the journal's end.
    pub cut_bytes: u64,
    /// URLs known.
    pub known: u64,
    /// URLs that wait again.
    pub waiting: u64,
}

/// Reads the journal in `dir` into `shard`.
pub fn journal(dir: &Path, now: Instant, shard: &mut Shard) -> io::Result<Recovered> {
    let path = dir.join(JOURNAL);
    let mut recovered = Recovered::default();
    let mut over = HashSet::new();
    let mut has_more = false;
    let Some(length) = for_blocks(&path, &mut |entries, end| {
        has_more |= !entries.aside.is_empty() || !entries.outgoing.is_empty();
        over.extend(entries.over);
        recovered.journal_bytes = end;
    })?
    else {
        return Ok(recovered);
    };
    recovered.cut_bytes = length - recovered.journal_bytes;
    if recovered.cut_bytes > 0 {
        fs::File::options().write(true).open(&path)?.set_len(recovered.journal_bytes)?;
    }
    for_blocks(&path, &mut |entries, _| {
        for (depth, text) in entries.accepted.iter() {
            let Ok(url) = Url::from_canonical(text) else { continue };
            let is_over = over.contains(&shard.fingerprint(&url));
            recovered.known += 1;
            recovered.waiting += u64::from(!is_over);
            shard.remember(now, &url, depth, is_over);
        }
    })?;
    if has_more {
        for_blocks(&path, &mut |entries, _| shard.reconsider(now, &entries))?;
    }
    Ok(recovered)
}

/// Closes segments that an earlier run left open; returns their names with the bytes cut off each.
pub fn segments(dir: &Path) -> io::Result<Vec<(String, u64)>> {
    let mut closed = Vec::new();
    for entry in fs::read_dir(dir.join("segments"))? {
        let path = entry?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()).map(str::to_owned) else { continue };
        if name.ends_with(&format!("{INDEX_SUFFIX}{OPEN}")) {
            // An index half written: it is made again with its segment.
            fs::remove_file(&path)?;
        } else if let Some(closed_name) = name.strip_suffix(OPEN)
            && closed_name.ends_with(SEGMENT_SUFFIX)
        {
            closed.push((closed_name.to_owned(), close_segment(&path, closed_name)?));
        }
    }
    Ok(closed)
}

/// Number of closed segments.
pub fn segment_count(dir: &Path) -> io::Result<u32> {
    let names = fs::read_dir(dir.join("segments"))?.map(|entry| entry.map(|entry| entry.file_name()));
    let segments = names.filter(|name| name.as_ref().map_or(true, |name| name.as_encoded_bytes().ends_with(SUFFIX)));
    Ok(u32::try_from(segments.collect::<io::Result<Vec<_>>>()?.len()).unwrap_or(u32::MAX))
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

/// Reads a journal block by block; `None` when there is no such file, else its length.
fn for_blocks(path: &Path, each: &mut dyn FnMut(Entries, u64)) -> io::Result<Option<u64>> {
    let mut file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let length = file.metadata()?.len();
    let (mut window, mut start) = (Vec::new(), 0);
    loop {
        let read = file.by_ref().take(WINDOW_BYTES).read_to_end(&mut window)?;
        let mut used = 0;
        for (entries, end) in journal::blocks(&window) {
            used = end;
            each(entries, start + end as u64);
        }
        start += used as u64;
        window.drain(..used);
        // A block longer than the window cannot be: the rest is torn, or all is read.
        if read == 0 || window.len() as u64 >= WINDOW_BYTES * 2 {
            return Ok(Some(length));
        }
    }
}

const SUFFIX: &[u8] = SEGMENT_SUFFIX.as_bytes();
/// Longer than any block.
const WINDOW_BYTES: u64 = 80 << 20;
