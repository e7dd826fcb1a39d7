//! Where the segments of a shard lie: in its directory, or in a folder on another disk (`store.dirs`).
//!
//! | path | what |
//! |---|---|
//! | `shard-NN/segments` | a link to the folder below, or a folder |
//! | `DIR/ringcrawl-ID/shard-NN/` | segments of the crawl with this identifier |
//! | `DIR/ringcrawl-ID/lock` | says in words whose they are; locked while a process works with them |
//!
//! Decides: a shard whose segments folder is empty gets a link to a folder in `store.dirs`, by its number. A shard
//! that has segments keeps its folder: the crawl knows a segment only by its shard and its number.
//! Invariants: a link is on the device before anything is written through it. Two crawls never write to one folder at
//! the same time, even where one is a copy of the other, links included.
//! Limits: a broken link stops the start. Folders of `store.dirs` are not created.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::crawl_dir::{DirError, LOCK, lock, shard_dir};
use super::redistribution::shard_dirs;
use ringcrawl_files::private;
use ringcrawl_warc::folder::ELSEWHERE;

/// The folder of a shard's segments, in its directory.
pub(super) const SEGMENTS: &str = "segments";

/// Locks the folders on other disks in which shards of `root` have segments; returns an error if one is missing.
pub(super) fn hold(root: &Path) -> Result<Vec<File>, DirError> {
    let dirs = shard_dirs(root).map_err(|error| DirError::Io(root.to_owned(), error))?;
    let mut folders = BTreeSet::new();
    for link in dirs.into_iter().map(|dir| dir.join(SEGMENTS)).filter(|path| path.is_symlink()) {
        if !link.is_dir() {
            let target = fs::read_link(&link).unwrap_or_default();
            return Err(DirError::Segments(link, target));
        }
        let lies = link.canonicalize().map_err(|error| DirError::Io(link.clone(), error))?;
        // An operator's own link may lead anywhere.
        folders.extend(lies.parent().filter(|folder| folder.join(LOCK).is_file()).map(Path::to_owned));
    }
    folders.iter().map(|folder| lock(folder)).collect()
}

/// Links the segments folders of shards without segments to folders in `dirs`; returns how many shards lie elsewhere.
pub(super) fn place(root: &Path, crawl_id: &str, shards: u16, dirs: &[PathBuf]) -> io::Result<u16> {
    let mut elsewhere = 0;
    let root = root.canonicalize()?;
    for (shard, dir) in (0..shards).zip(dirs.iter().cycle()) {
        let of_shard = shard_dir(&root, shard);
        let link = of_shard.join(SEGMENTS);
        let of_crawl = dir.join(format!("{ELSEWHERE}{crawl_id}"));
        let lies = shard_dir(&of_crawl, shard);
        if link.is_symlink() {
            elsewhere += u16::from(fs::read_link(&link)? != lies);
            continue;
        }
        match fs::remove_dir(&link) {
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {
                elsewhere += 1;
                continue;
            }
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        private::create_dirs(&lies)?;
        let whose = format!("Segments of crawl {crawl_id}, whose directory is {}.\n", root.display());
        private::create(&of_crawl.join(LOCK))?.write_all(whose.as_bytes())?;
        [dir, &of_crawl].into_iter().try_for_each(|dir| File::open(dir)?.sync_all())?;
        symlink(&lies, &link)?;
        File::open(&of_shard)?.sync_all()?;
    }
    Ok(elsewhere)
}

/// Removes the segments folder of the shard in `dir`, wherever it lies, if it is empty.
pub(super) fn remove_empty(dir: &Path) {
    let segments = dir.join(SEGMENTS);
    // If removal fails, the folder stays visible.
    if !segments.is_symlink() {
        let _ = fs::remove_dir(segments);
    } else if segments.canonicalize().and_then(fs::remove_dir).is_ok() {
        let _ = fs::remove_file(segments);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::TempFolder;

    const ID: &str = "0123456789abcdef";

    /// A crawl's directory with `shards` shards, and three disks.
    fn crawl(name: &str, shards: u16) -> (TempFolder, PathBuf, [PathBuf; 3]) {
        let folder = TempFolder::new(name);
        let [root, disks @ ..] = ["crawl", "a", "b", "c"].map(|name| folder.path().join(name));
        for shard in 0..shards {
            fs::create_dir_all(shard_dir(&root, shard).join(SEGMENTS)).expect("a folder");
        }
        disks.iter().for_each(|disk| fs::create_dir(disk).expect("a folder"));
        (folder, root, disks)
    }

    fn lies(root: &Path, shard: u16) -> PathBuf {
        shard_dir(root, shard).join(SEGMENTS).canonicalize().expect("it is there")
    }

    #[test]
    fn shards_take_folders_by_turns_and_stay_where_they_have_segments() {
        let (_folder, root, [a, b, c]) = crawl("placed", 4);
        let own = lies(&root, 2);
        fs::write(own.join("rc-1-02-00000.warc.zst"), "").expect("a file");
        assert_eq!(place(&root, ID, 4, &[]).expect("nothing to do"), 0);
        assert!((0..4).all(|shard| lies(&root, shard).starts_with(&root)));
        let in_disk = |disk: &Path, shard: u16| shard_dir(&disk.join(format!("ringcrawl-{ID}")), shard);
        let placed = [in_disk(&a, 0), in_disk(&b, 1), own, in_disk(&b, 3)];
        for _ in 0..2 {
            assert_eq!(place(&root, ID, 4, &[a.clone(), b.clone()]).expect("places"), 1);
            assert_eq!([0, 1, 2, 3].map(|shard| lies(&root, shard)), placed);
        }
        // Whatever the list says later, even where nothing is stored yet.
        assert_eq!(place(&root, ID, 4, &[c, b, a]).expect("stays"), 3);
        assert_eq!(place(&root, ID, 4, &[]).expect("stays"), 0);
        assert_eq!([0, 1, 2, 3].map(|shard| lies(&root, shard)), placed);
        let whose = fs::read_to_string(placed[1].with_file_name(LOCK)).expect("words");
        assert!(whose.contains(ID) && whose.contains(&*root.to_string_lossy()), "{whose}");
    }

    #[test]
    fn one_process_holds_them_and_a_missing_disk_is_told() {
        let (folder, root, [a, b, _]) = crawl("held", 3);
        place(&root, ID, 3, &[a, b.clone()]).expect("places");
        let held = hold(&root).expect("nobody else holds them");
        assert_eq!(held.len(), 2, "one a disk");
        // A copy of the crawl, links included, is another crawl with the same segments.
        let copy = folder.path().join("copy/shard-00");
        fs::create_dir_all(&copy).expect("a folder");
        symlink(lies(&root, 1), copy.join(SEGMENTS)).expect("a link");
        let refused = hold(&folder.path().join("copy")).expect_err("it is in use");
        assert!(matches!(&refused, DirError::Locked(folder) if folder.starts_with(&b)), "{refused}");
        drop(held);
        assert_eq!(hold(&folder.path().join("copy")).expect("nobody holds it").len(), 1);
        fs::rename(&b, folder.path().join("unmounted")).expect("a name");
        let missing = hold(&root).expect_err("a disk is not there").to_string();
        for word in ["shard-01/segments is a link to ", &*b.to_string_lossy(), "mount that disk"] {
            assert!(missing.contains(word), "{missing}");
        }
    }

    #[test]
    fn what_is_empty_goes_wherever_it_lies() {
        let (_folder, root, [a, ..]) = crawl("emptied", 3);
        place(&root, ID, 2, &[a]).expect("places");
        let full = lies(&root, 1);
        fs::write(full.join("segment"), "").expect("a file");
        (0..3).for_each(|shard| remove_empty(&shard_dir(&root, shard)));
        let is_left = |shard: u16| shard_dir(&root, shard).join(SEGMENTS).symlink_metadata().is_ok();
        assert_eq!([0, 1, 2].map(is_left), [false, true, false]);
        assert!(full.join("segment").is_file() && !shard_dir(full.parent().expect("a folder"), 0).exists());
    }
}
