//! What a shard's directory holds from an earlier run.
//!
//! Decides: the journal is read three times: for what is over, then for what was accepted (what is not over waits
//! again), then for what was set aside or not handed over. Its torn end, if there is one, is cut. Segments that were being written are cut back to their last whole
//! record, indexed and closed.
//! Limits: eight bytes of memory for each URL that is over, while the journal is read.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

use super::disk::{INDEX_SUFFIX, JOURNAL, OPEN, SEGMENT_SUFFIX};
use super::segments::segment_number;
use crate::shard::{Entries, Packer, Shard, journal};
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
    // What was found for other shards before this is in their journals.
    let mut handed_over_until = 0;
    let mut has_more = false;
    let Some(length) = for_blocks(&path, &mut |entries, end| {
        has_more |= !entries.aside.is_empty() || !entries.outgoing.is_empty();
        over.extend(entries.over);
        recovered.journal_bytes = end;
        if entries.handed_over {
            handed_over_until = end;
        }
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
        for_blocks(&path, &mut |entries, end| shard.reconsider(now, &entries, end > handed_over_until))?;
    }
    Ok(recovered)
}

/// Says in the journal in `dir` that everything found for other shards has arrived: all of them ended well.
pub fn mark_handed_over(dir: &Path) -> io::Result<()> {
    let mut file = fs::File::options().append(true).create(true).open(dir.join(JOURNAL))?;
    file.write_all(&Packer::default().block(&Entries { handed_over: true, ..Entries::default() }))?;
    file.sync_all()
}

/// What an earlier run left of segments.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LeftSegments {
    /// Names of those that were open and are closed now, with the bytes cut off each.
    pub closed: Vec<(String, u64)>,
    /// A number that no name there has.
    pub next_number: u32,
}

/// Closes segments that an earlier run left open.
pub fn segments(dir: &Path) -> io::Result<LeftSegments> {
    let mut left = LeftSegments::default();
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
        let read = Read::by_ref(&mut file).take(WINDOW_BYTES).read_to_end(&mut window)?;
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

/// Longer than any block.
const WINDOW_BYTES: u64 = 80 << 20;
