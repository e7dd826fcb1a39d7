//! What a shard's directory holds when a run begins.
//!
//! Decides: a segment that was being written is cut back to its last whole record, indexed and closed. Damage before
//! that stays, because whole records follow it, and is reported. A segment with
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
    /// It is closed now.
    Closed {
        /// Its name.
        name: String,
        /// Bytes that were cut off its end.
        cut_bytes: u64,
        /// Damaged places between the records that were kept.
        damaged: u64,
    },
    /// It has an invalid beginning, and another name now.
    PutAside(String),
    /// It was closed but had no index.
    Indexed {
        /// Its name.
        name: String,
        /// Damaged places between its records.
        damaged: u64,
    },
}

impl std::fmt::Display for LeftOpen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LeftOpen::Closed { name, cut_bytes, damaged } => {
                write!(f, "closed {name}, which an earlier run left open ({cut_bytes} bytes removed)")?;
                tell_damage(f, *damaged)
            }
            LeftOpen::Indexed { name, damaged } => {
                write!(f, "rebuilt the missing index of {name}")?;
                tell_damage(f, *damaged)
            }
            LeftOpen::PutAside(name) => write!(f, "{name} is damaged at its beginning; kept as {name}{DAMAGED}"),
        }
    }
}

/// Adds the damage inside a segment, if there is any: its records are lost, although those around it are not.
fn tell_damage(f: &mut std::fmt::Formatter<'_>, damaged: u64) -> std::fmt::Result {
    if damaged == 0 {
        return Ok(());
    }
    let s = if damaged == 1 { "" } else { "s" };
    write!(f, "; it is damaged in {damaged} place{s}, listed by ringcrawl store verify")
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
                left.push(LeftOpen::Indexed { name, damaged: recovery.damaged });
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
    let closed = LeftOpen::Closed { name: name.to_owned(), cut_bytes, damaged: recovery.damaged };
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
        return Ok((0, LeftOpen::Closed { name: name.to_owned(), cut_bytes, damaged: 0 }));
    }
    write_index(path, name, &recovery.index)?;
    fs::rename(path, path.with_file_name(name))?;
    Ok((recovery.valid_bytes, closed))
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

    /// A segment of a warcinfo record and three captures, each in a frame of its own; the ends of the frames.
    fn segment() -> (Vec<u8>, Vec<usize>) {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for number in 0..4 {
            let kind = if number == 0 { "warcinfo" } else { "response" };
            let (body, id) = (format!("HTTP/1.1 200 OK\r\n\r\nbody {number}"), |number| format!("<urn:test:{number}>"));
            let record = format!(
                "WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: {}\r\nWARC-Warcinfo-ID: {}\r\n\
                 WARC-Date: 2026-01-01T00:00:00Z\r\nWARC-Target-URI: http://a.test/{number}\r\n\
                 Content-Type: application/http;msgtype=response\r\nContent-Length: {}\r\n\r\n{body}\r\n\r\n",
                id(number),
                id(0),
                body.len()
            );
            let mut frame = flate2::write::GzEncoder::new(&mut bytes, flate2::Compression::default());
            frame.write_all(record.as_bytes()).unwrap();
            frame.finish().unwrap();
            ends.push(bytes.len());
        }
        (bytes, ends)
    }

    /// After a power cut a page of a file may be zeros although later ones are on the disk.
    #[test]
    fn a_hole_in_a_segment_is_reported() {
        let folder = TempFolder::new("files-found-hole");
        let dir = folder.path();
        for name in ["segments", "journal"] {
            fs::create_dir(dir.join(name)).unwrap();
        }
        let (whole, ends) = segment();
        let mut holed = whole.clone();
        holed[ends[1]..ends[2]].fill(0);
        let (closed, index) = ("segments/rc-1-00-00001.warc.gz", "segments/rc-1-00-00001.cdxj");
        let open = dir.join(format!("{closed}{OPEN}"));
        let urls = || fs::read_to_string(dir.join(index)).unwrap().lines().count();
        for (bytes, damaged, records, told) in [
            (&whole, 0, 3, "(7 bytes removed)"),
            (&holed, 1, 2, "(7 bytes removed); it is damaged in 1 place, listed by ringcrawl store verify"),
        ] {
            fs::write(&open, [&bytes[..], b"no more"].concat()).unwrap();
            let (_, left) = find_files(dir).unwrap();
            let name = "rc-1-00-00001.warc.gz".to_owned();
            assert_eq!(left, [LeftOpen::Closed { name: name.clone(), cut_bytes: 7, damaged }]);
            assert_eq!(left[0].to_string(), format!("closed {name}, which an earlier run left open {told}"));
            assert_eq!((&fs::read(dir.join(closed)).unwrap(), urls()), (bytes, records), "what is whole stays");
            // The same where only the index is missing.
            fs::remove_file(dir.join(index)).unwrap();
            let (_, left) = find_files(dir).unwrap();
            assert_eq!((left, urls()), (vec![LeftOpen::Indexed { name, damaged }], records));
        }
        let several = LeftOpen::Indexed { name: "a.warc.gz".to_owned(), damaged: 2 };
        assert_eq!(
            several.to_string(),
            "rebuilt the missing index of a.warc.gz; it is damaged in 2 places, listed by ringcrawl store verify"
        );
    }
}
