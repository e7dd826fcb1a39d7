//! What a shard's directory holds when a run begins.
//!
//! Decides: a segment that was being written is cut back to its last whole record, indexed and closed; one that does not begin
//! as a segment is kept as it is under another name, and what should be in it is missing from now on. An index half written is
//! made again with its segment. To be called before the shard's thread has a ring.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use crate::private;
use crate::shard::FilesFound;
use crate::store::segments::{INDEX_SUFFIX, OPEN, segment_number, segment_stem};

/// A segment that was open.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LeftOpen {
    /// It is closed now, and so many bytes were cut off.
    Closed(String, u64),
    /// It does not begin as a segment, and has another name.
    PutAside(String),
}

impl std::fmt::Display for LeftOpen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LeftOpen::Closed(name, bytes) => write!(f, "closed {name}, which a run left open ({bytes} bytes cut)"),
            LeftOpen::PutAside(name) => write!(f, "{name} is damaged at its beginning, and kept as {name}{DAMAGED}"),
        }
    }
}

/// Finds a shard's files, and closes segments that an earlier run left open. Errors name the file.
pub fn find_files(dir: &Path) -> io::Result<(FilesFound, Vec<LeftOpen>)> {
    let (mut found, mut left) = (FilesFound::default(), Vec::new());
    let segments = dir.join("segments");
    for entry in fs::read_dir(&segments).map_err(at(&segments))? {
        let path = entry.map_err(at(&segments))?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()).map(str::to_owned) else { continue };
        let number = segment_number(&name);
        if let Some(number) = number {
            found.next_segment = found.next_segment.max(number.saturating_add(1));
        }
        if name.ends_with(&format!("{INDEX_SUFFIX}{OPEN}")) {
            // An index half written: it is made again with its segment.
            fs::remove_file(&path).map_err(at(&path))?;
        } else if let Some(closed_name) = name.strip_suffix(OPEN)
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
        }
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

/// The number of a file of the journal, whose name is that and nothing else.
fn journal_number(name: &str) -> Option<u32> {
    name.parse::<u32>().ok().filter(|number| *number < u32::MAX && number.to_string() == name)
}

/// The bytes that stay of a segment, and what was done with it.
fn close_segment(path: &Path, name: &str) -> io::Result<(u64, LeftOpen)> {
    let file = private::open(private::options().read(true), path)?;
    let length = file.metadata()?.len();
    let recovery = crate::store::recover::recover(io::BufReader::new(&file), name)?;
    let cut_bytes = length - recovery.valid_bytes;
    if recovery.records == 0 && recovery.damaged > 0 && length > 0 {
        // Space that was taken beyond its end is given back.
        file.set_len(length)?;
        fs::rename(path, path.with_file_name(format!("{name}{DAMAGED}")))?;
        return Ok((0, LeftOpen::PutAside(name.to_owned())));
    }
    file.set_len(recovery.valid_bytes)?;
    file.sync_all()?;
    let index = path.with_file_name(format!("{}{INDEX_SUFFIX}", segment_stem(name).unwrap_or(name)));
    if recovery.records == 0 {
        fs::remove_file(path)?;
        return Ok((0, LeftOpen::Closed(name.to_owned(), cut_bytes)));
    }
    let mut index = private::create(&index)?;
    index.write_all(&recovery.index)?;
    index.sync_all()?;
    fs::rename(path, path.with_file_name(name))?;
    Ok((recovery.valid_bytes, LeftOpen::Closed(name.to_owned(), cut_bytes)))
}

/// What is added to the name of a segment that does not begin as one.
const DAMAGED: &str = ".damaged";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::TempFolder;

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
