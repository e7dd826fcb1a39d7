//! The segment folder of one simulated shard, and what a crash leaves of it.
//!
//! Decides: a segment is closed in the steps of `disk`: it is synced, its index is written and synced, the index gets
//! its name, the segment gets its own, the folder is synced. A kill comes between any two of these steps. A power cut
//! also loses what was not synced: any end of a file, a file that was never synced, and either of the two names
//! without the other.
//! Invariants: recovery equals that of `disk::find_files`; the tests compare both on the same files.
//! Limits: a synced file keeps its first name, as in Linux's file systems.

use std::collections::BTreeMap;
use std::io::Cursor;

use super::FakeFile;
use ringcrawl_base::Rng;
use ringcrawl_brain::shard::FilesFound;
use ringcrawl_crawler::disk::TORN_BYTES_MAX;
use ringcrawl_warc::recover::{Recovered, recover};
use ringcrawl_warc::segments::segment_number;

/// The segments of a shard.
#[derive(Debug, Default)]
pub(super) struct FakeSegments {
    all: BTreeMap<String, Segment>,
    /// The one being written.
    open: Option<String>,
    /// Those being closed, with the contents of their indexes.
    closing: Vec<(String, Vec<u8>)>,
    /// Those that do not start like a segment.
    aside: BTreeMap<String, Vec<u8>>,
}

/// A segment and its index.
#[derive(Debug, Default)]
struct Segment {
    file: FakeFile,
    /// Whether it has the name of a closed segment.
    is_closed: bool,
    index: Option<FakeFile>,
    has_index_name: bool,
    /// Whether the names are durable.
    is_folder_synced: bool,
}

impl FakeSegments {
    pub(super) fn begin(&mut self, name: String) {
        assert!(self.open.is_none(), "two segments are open");
        assert!(!self.all.contains_key(&name), "{name} was used before");
        self.all.insert(name.clone(), Segment::default());
        self.open = Some(name);
    }

    /// The file of the open segment.
    pub(super) fn open_file(&mut self) -> Option<&mut FakeFile> {
        self.all.get_mut(self.open.as_ref()?).map(|segment| &mut segment.file)
    }

    /// The open segment, and how much of it is written.
    pub(super) fn open(&self) -> Option<(String, usize)> {
        let name = self.open.clone()?;
        let bytes = self.all.get(&name)?.file.bytes.len();
        Some((name, bytes))
    }

    pub(super) fn close(&mut self, index: Vec<u8>) {
        self.closing.push((self.open.take().expect("a segment is open"), index));
    }

    pub(super) fn closing(&self) -> impl ExactSizeIterator<Item = &String> {
        self.closing.iter().map(|(name, _)| name)
    }

    /// Finishes closing any one of those being closed; returns the bytes of its index.
    pub(super) fn finish_closing(&mut self, rng: &mut Rng) -> Option<u64> {
        let (name, index) = self.take_closing(rng)?;
        let bytes = index.len() as u64;
        self.segment(&name).take_steps(CLOSING_STEPS, index);
        self.segment(&name).is_folder_synced = true;
        Some(bytes)
    }

    /// Fails to close one of those being closed, because the disk is full.
    pub(super) fn fail_closing(&mut self, rng: &mut Rng) {
        if let Some((name, index)) = self.take_closing(rng) {
            self.segment(&name).stop_closing(index, rng.below(UNNAMED_STEPS), rng);
        }
    }

    /// Marks the first `bytes` bytes of a segment as durable; it may be about to be closed by now.
    pub(super) fn sync_until(&mut self, name: &str, bytes: usize) {
        if let Some(segment) = self.all.get_mut(name) {
            segment.file.sync_until(bytes);
        }
    }

    /// The process dies.
    pub(super) fn kill(&mut self, rng: &mut Rng) {
        for (name, index) in std::mem::take(&mut self.closing) {
            self.segment(&name).stop_closing(index, rng.below(CLOSING_STEPS + 1), rng);
        }
    }

    /// The power fails, after the process has died.
    pub(super) fn cut_power(&mut self, rng: &mut Rng) {
        self.all.retain(|_, segment| {
            segment.file.lose_unsynced(rng);
            segment.index.iter_mut().for_each(|index| index.lose_unsynced(rng));
            if !segment.is_folder_synced {
                segment.has_index_name &= rng.percent(50);
                segment.is_closed &= rng.percent(50);
            }
            !segment.file.bytes.is_empty() || rng.percent(50)
        });
        self.open = self.open.take().filter(|name| self.all.contains_key(name));
    }

    /// Starts a new run: does and finds what `disk::find_files` would.
    pub(super) fn recover(&mut self) -> FilesFound {
        let mut found = FilesFound::default();
        (self.open, self.closing) = (None, Vec::new());
        let mut note = |name: &str, bytes: usize| {
            found.segments.extend(segment_number(name).map(|number| (number, bytes as u64)));
        };
        for (name, mut segment) in std::mem::take(&mut self.all) {
            segment.index = segment.index.filter(|_| segment.has_index_name);
            let is_whole = segment.is_closed && segment.index.is_some();
            let Recovered { valid_bytes, records, damaged, index } = match is_whole {
                true => Recovered::default(),
                false => recover(Cursor::new(&segment.file.bytes), &name).expect("memory is readable"),
            };
            if !segment.is_closed {
                if records == 0 {
                    note(&name, 0);
                    if damaged > 0 && segment.file.bytes.len() as u64 > TORN_BYTES_MAX {
                        self.aside.insert(name, segment.file.bytes);
                    }
                    continue;
                }
                segment.file.truncate(valid_bytes as usize);
            }
            if !is_whole {
                segment.index = Some(FakeFile { synced: index.len(), bytes: index });
            }
            segment.file.sync();
            (segment.is_closed, segment.has_index_name, segment.is_folder_synced) = (true, true, true);
            note(&name, segment.file.bytes.len());
            self.all.insert(name, segment);
        }
        self.aside.keys().for_each(|name| note(name, 0));
        found.next_segment = found.segments.last_key_value().map_or(0, |(number, _)| number + 1);
        found
    }

    /// Closed segments: name, bytes, index.
    pub(super) fn closed(&self) -> impl Iterator<Item = (&str, &[u8], &[u8])> {
        let closed = self.all.iter().filter(|(_, segment)| segment.is_closed);
        closed.map(|(name, segment)| {
            let index = segment.index.as_ref().map_or(&[][..], |index| &index.bytes);
            (name.as_str(), segment.file.bytes.as_slice(), index)
        })
    }

    /// Writes the same files to a folder of this machine.
    #[cfg(test)]
    pub(super) fn write_to(&self, folder: &std::path::Path) -> std::io::Result<()> {
        use ringcrawl_warc::segments::{INDEX_SUFFIX, OPEN, segment_stem};
        let suffix = |is_named: bool| if is_named { "" } else { OPEN };
        for (name, segment) in &self.all {
            std::fs::write(folder.join(format!("{name}{}", suffix(segment.is_closed))), &segment.file.bytes)?;
            if let Some(index) = &segment.index {
                let stem = segment_stem(name).unwrap_or(name);
                let name = format!("{stem}{INDEX_SUFFIX}{}", suffix(segment.has_index_name));
                std::fs::write(folder.join(name), &index.bytes)?;
            }
        }
        Ok(())
    }

    fn take_closing(&mut self, rng: &mut Rng) -> Option<(String, Vec<u8>)> {
        let which = rng.below(self.closing.len().max(1) as u64) as usize;
        (which < self.closing.len()).then(|| self.closing.swap_remove(which))
    }

    fn segment(&mut self, name: &str) -> &mut Segment {
        self.all.get_mut(name).expect("a segment that is being closed is there")
    }
}

impl Segment {
    /// Takes the first `steps` steps of closing.
    fn take_steps(&mut self, steps: u64, index: Vec<u8>) {
        if steps >= 1 {
            self.file.sync();
        }
        if steps >= 2 {
            self.index = Some(FakeFile { synced: 0, bytes: index });
        }
        if steps >= 3 {
            self.index.iter_mut().for_each(FakeFile::sync);
        }
        self.has_index_name = steps >= 4;
        self.is_closed = steps >= CLOSING_STEPS;
    }

    /// Takes `steps` steps; the last may be taken in part.
    fn stop_closing(&mut self, mut index: Vec<u8>, steps: u64, rng: &mut Rng) {
        if steps == 2 {
            index.truncate(rng.below(index.len() as u64 + 1) as usize);
        }
        self.take_steps(steps, index);
    }
}

/// Synced, index written, index synced, index named, named; the sync of the folder completes it.
const CLOSING_STEPS: u64 = 5;
/// The number of steps that need disk space, plus one.
const UNNAMED_STEPS: u64 = 4;

#[cfg(test)]
mod tests;
