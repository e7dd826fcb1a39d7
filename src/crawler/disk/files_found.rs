//! What a shard's directory holds when a run begins.
//!
//! Decides: a segment that was being written is cut back to its last whole record, indexed and closed. A segment with
//! an invalid beginning is kept unchanged under another name, and its records are missing from then on. A
//! half-written index is rebuilt along with its segment, and so is a missing one: a power cut may keep a segment's
//! new name but not its index's. Call this before the shard's thread has a ring.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use ringcrawl_brain::shard::FilesFound;
use ringcrawl_files::private;
use ringcrawl_warc::recover::recover;
use ringcrawl_warc::segments::{INDEX_SUFFIX, OPEN, segment_number, segment_stem};

/// A segment that was open.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LeftOpen {
    /// It is closed now, and this many bytes were cut off.
    Closed(String, u64),
    /// It has an invalid beginning, and another name now.
    PutAside(String),
    /// It was closed but had no index.
    Indexed(String),
}

impl std::fmt::Display for LeftOpen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LeftOpen::Closed(name, bytes) => {
                write!(f, "closed {name}, which an earlier run left open ({bytes} bytes removed)")
            }
            LeftOpen::Indexed(name) => write!(f, "rebuilt the missing index of {name}"),
            LeftOpen::PutAside(name) => write!(f, "{name} is damaged at its beginning; kept as {name}{DAMAGED}"),
        }
    }
}

/// Finds a shard's files, and closes segments that an earlier run left open. Errors name the file.
pub fn find_files(dir: &Path) -> io::Result<(FilesFound, Vec<LeftOpen>)> {
    let (mut found, mut left) = (FilesFound::default(), Vec::new());
    let segments = dir.join("segments");
    let (half_indexes, names): (Vec<String>, Vec<String>) =
        names(&segments).map_err(at(&segments))?.into_iter().partition(|name| name.ends_with(INDEX_OPEN));
    for name in &half_indexes {
        let path = segments.join(name);
        fs::remove_file(&path).map_err(at(&path))?;
    }
    for number in names.iter().chain(&half_indexes).filter_map(|name| segment_number(name)) {
        found.next_segment = found.next_segment.max(number.saturating_add(1));
    }
    for name in names {
        let (path, number) = (segments.join(&name), segment_number(&name));
        if let Some(closed_name) = name.strip_suffix(OPEN)
            && segment_stem(closed_name).is_some()
        {
            let (bytes, how) = close_segment(&path, closed_name).map_err(at(&path))?;
            found.segments.extend(number.map(|number| (number, bytes)));
            left.push(how);
        } else if name.strip_suffix(DAMAGED).is_some_and(|name| segment_stem(name).is_some()) {
            found.segments.extend(number.map(|number| (number, 0)));
        } else if let Some(number) = number
            && segment_stem(&name).is_some()
        {
            found.segments.insert(number, fs::metadata(&path).map_err(at(&path))?.len());
            if !beside(&path, &name, INDEX_SUFFIX).exists() {
                let file = File::open(&path).map_err(at(&path))?;
                let recovery = recover(io::BufReader::new(file), &name).map_err(at(&path))?;
                write_index(&path, &name, &recovery.index).map_err(at(&path))?;
                left.push(LeftOpen::Indexed(name));
            }
        }
    }
    if !left.is_empty() {
        // Later steps rely on the names.
        File::open(&segments).and_then(|folder| folder.sync_all()).map_err(at(&segments))?;
    }
    let journal = dir.join("journal");
    for entry in fs::read_dir(&journal).map_err(at(&journal))? {
        found.journal.extend(entry.map_err(at(&journal))?.file_name().to_str().and_then(journal_number));
    }
    found.journal.sort_unstable();
    Ok((found, left))
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// The number of a journal file, whose name is just that number.
fn journal_number(name: &str) -> Option<u32> {
    name.parse::<u32>().ok().filter(|number| *number < u32::MAX && number.to_string() == name)
}

/// The names in a folder; names that are not text are not ours.
fn names(folder: &Path) -> io::Result<Vec<String>> {
    let entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name().into_string().ok()));
    entries.filter_map(Result::transpose).collect()
}

/// The path of the index of the segment `name` at `path`; the index's name ends in `suffix`.
fn beside(path: &Path, name: &str, suffix: &str) -> PathBuf {
    path.with_file_name(format!("{}{suffix}", segment_stem(name).unwrap_or(name)))
}

/// Writes the index of the segment `name` atomically.
fn write_index(path: &Path, name: &str, lines: &[u8]) -> io::Result<()> {
    let open = beside(path, name, INDEX_OPEN);
    let mut file = private::create(&open)?;
    file.write_all(lines)?;
    file.sync_all()?;
    fs::rename(&open, beside(path, name, INDEX_SUFFIX))
}

/// The bytes that are kept of a segment, and what was done with it.
fn close_segment(path: &Path, name: &str) -> io::Result<(u64, LeftOpen)> {
    let file = private::open(private::options().read(true), path)?;
    let length = file.metadata()?.len();
    let recovery = recover(io::BufReader::new(&file), name)?;
    let cut_bytes = length - recovery.valid_bytes;
    if recovery.records == 0 && recovery.damaged > 0 && length > TORN_BYTES_MAX {
        // Space reserved beyond its end is released.
        file.set_len(length)?;
        fs::rename(path, path.with_file_name(format!("{name}{DAMAGED}")))?;
        return Ok((0, LeftOpen::PutAside(name.to_owned())));
    }
    file.set_len(recovery.valid_bytes)?;
    file.sync_all()?;
    if recovery.records == 0 {
        fs::remove_file(path)?;
        return Ok((0, LeftOpen::Closed(name.to_owned(), cut_bytes)));
    }
    write_index(path, name, &recovery.index)?;
    fs::rename(path, path.with_file_name(name))?;
    Ok((recovery.valid_bytes, LeftOpen::Closed(name.to_owned(), cut_bytes)))
}

/// A file this short is a torn beginning: what it would have been is unknown.
pub const TORN_BYTES_MAX: u64 = 3;
/// The ending of an index's name while it is written.
const INDEX_OPEN: &str = ".cdxj.open";
/// The ending added to the name of a segment with an invalid beginning.
const DAMAGED: &str = ".damaged";

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::TempFolder;

    #[test]
    fn a_damaged_beginning_costs_no_byte_and_is_remembered() {
        let folder = TempFolder::new("files-found");
        let dir = folder.path();
        for name in ["segments", "journal"] {
            fs::create_dir(dir.join(name)).unwrap();
        }
        for name in ["3", "10", "007", "4294967295", "5.damaged", "notes"] {
            fs::write(dir.join("journal").join(name), "").unwrap();
        }
        let open = dir.join("segments/rc-1-00-00004.warc.zst.open");
        fs::write(&open, "no segment begins like this").unwrap();
        let (found, left) = find_files(dir).unwrap();
        assert_eq!(left, [LeftOpen::PutAside("rc-1-00-00004.warc.zst".to_owned())]);
        let kept = dir.join("segments/rc-1-00-00004.warc.zst.damaged");
        assert!(!open.exists() && fs::read(kept).unwrap() == b"no segment begins like this");
        assert_eq!((found.next_segment, found.segments.get(&4)), (5, Some(&0)), "its records are missing");
        assert_eq!(found.journal, [3, 10]);
        let link = dir.join("segments/rc-1-00-00005.warc.zst");
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        assert!(find_files(dir).unwrap_err().to_string().starts_with(link.to_str().unwrap()));
        fs::remove_file(&link).unwrap();
        let (again, left) = find_files(dir).unwrap();
        assert_eq!((again, left.len()), (found, 0), "now and later");
    }
}
