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
//! A start that was killed before the crawl began may have made folders without links: the next one removes them.
//! Invariants: a link is on the device before anything is written through it. Two crawls never write to one folder at
//! the same time, even where one is a copy of the other, links included.
//! Limits: a broken link stops the start. Folders of `store.dirs` are not created.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::crawl_dir::shard_dir;
use super::dir_error::DirError;
use super::dir_lock::{DirLock, LOCK};
use super::redistribution::shard_dirs;
use ringcrawl_files::{plain, private};
use ringcrawl_warc::folder::ELSEWHERE;

/// The folder of a shard's segments, in its directory.
pub(super) const SEGMENTS: &str = "segments";

/// Locks the folders on other disks in which shards of `root` have segments; returns an error if one is missing.
pub(super) fn hold(root: &Path) -> Result<Vec<DirLock>, DirError> {
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
    folders.iter().map(|folder| DirLock::of(folder)).collect()
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
        // The words come first: they show whose the folders are if the process is killed here.
        private::create_dirs(&of_crawl)?;
        let (lock, words) = (of_crawl.join(LOCK), owner(&root, crawl_id));
        if !plain::open(&lock).and_then(io::read_to_string).is_ok_and(|held| held == words) {
            private::create(&lock)?.write_all(words.as_bytes())?;
        }
        private::create_dirs(&lies)?;
        [dir, &of_crawl].into_iter().try_for_each(|dir| File::open(dir)?.sync_all())?;
        symlink(&lies, &link)?;
        File::open(&of_shard)?.sync_all()?;
    }
    Ok(elsewhere)
}

/// Removes the empty folders in `dirs` that a start of a crawl in `root` made under the identifier `killed`, before it
/// was killed and the crawl began. Returns those that are not empty; those with a link remain in use.
pub(super) fn remove_orphans(root: &Path, killed: &str, dirs: &[PathBuf]) -> io::Result<Vec<PathBuf>> {
    let root = root.canonicalize()?;
    let mut left = Vec::new();
    for of_crawl in dirs.iter().map(|dir| dir.join(format!("{ELSEWHERE}{killed}"))) {
        let lock = of_crawl.join(LOCK);
        if plain::open(&lock).and_then(io::read_to_string).is_ok_and(|words| words == owner(&root, killed)) {
            for entry in fs::read_dir(&of_crawl)? {
                let (path, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
                // A disk may be named by another path than before.
                let lies = root.join(name).join(SEGMENTS).canonicalize().ok();
                let is_linked = lies.is_some() && lies == path.canonicalize().ok();
                if path.is_dir() && !is_linked && fs::remove_dir(&path).is_err() {
                    left.push(path);
                }
            }
            if fs::read_dir(&of_crawl)?.count() == 1 {
                fs::remove_file(lock)?;
            }
        }
        // Fails unless it is empty.
        let _ = fs::remove_dir(of_crawl);
    }
    Ok(left)
}

/// Removes the segments folder of the shard in `dir`, wherever it lies, if it is empty.
pub(super) fn remove_empty(dir: &Path) {
    let segments = dir.join(SEGMENTS);
    let Ok(lies) = segments.canonicalize() else { return };
    let is_empty = fs::read_dir(&lies).is_ok_and(|mut entries| entries.next().is_none());
    // The link first: one that leads nowhere would stop the next start. If removal fails, the folder stays visible.
    let unlink = || fs::remove_file(&segments).and_then(|()| File::open(dir)?.sync_all());
    if is_empty && (!segments.is_symlink() || unlink().is_ok()) {
        let _ = fs::remove_dir(lies);
    }
}

/// The words in the lock of a crawl's folder.
fn owner(root: &Path, crawl_id: &str) -> String {
    format!("Segments of crawl {crawl_id}, whose directory is {}.\n", root.display())
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
        let held = hold(&root).expect("no other process holds them");
        assert_eq!(held.len(), 2, "one a disk");
        // A copy of the crawl, links included, is another crawl with the same segments.
        let copy = folder.path().join("copy/shard-00");
        fs::create_dir_all(&copy).expect("a folder");
        symlink(lies(&root, 1), copy.join(SEGMENTS)).expect("a link");
        let refused = hold(&folder.path().join("copy")).expect_err("it is in use");
        assert!(matches!(&refused, DirError::Locked(folder) if folder.starts_with(&b)), "{refused}");
        drop(held);
        assert_eq!(hold(&folder.path().join("copy")).expect("no process holds it").len(), 1);
        fs::rename(&b, folder.path().join("unmounted")).expect("a name");
        let missing = hold(&root).expect_err("a disk is not there").to_string();
        for word in ["shard-01/segments is a link to ", &*b.to_string_lossy(), "mount that disk"] {
            assert!(missing.contains(word), "{missing}");
        }
    }

    #[test]
    fn what_a_killed_start_left_without_a_link_is_removed() {
        const KILLED: &str = "fedcba9876543210";
        let (folder, root, [a, b, _]) = crawl("orphans", 2);
        let [of_a, of_b] = [&a, &b].map(|disk| disk.join(format!("ringcrawl-{KILLED}")));
        place(&root, KILLED, 2, &[a.clone(), b.clone()]).expect("places");
        // Killed before its second link, and before the words of a third folder.
        fs::remove_file(shard_dir(&root, 1).join(SEGMENTS)).expect("a link");
        let dirs = [a, b];
        assert_eq!(remove_orphans(&root, KILLED, &dirs).expect("removes"), [] as [PathBuf; 0]);
        assert!(lies(&root, 0).starts_with(&of_a) && !of_b.exists(), "one is linked, the other gone");
        // Another crawl's is left alone, and so is what holds a file.
        let other = folder.path().join("other");
        fs::create_dir_all(shard_dir(&other, 1)).expect("a folder");
        place(&other, KILLED, 2, &dirs[1..]).expect_err("it has no first shard");
        fs::create_dir_all(shard_dir(&of_b, 1)).expect("a folder");
        assert_eq!(remove_orphans(&root, KILLED, &dirs).expect("removes"), [] as [PathBuf; 0]);
        assert!(shard_dir(&of_b, 1).is_dir());
        let full = shard_dir(&of_a, 7);
        fs::create_dir_all(full.join("file")).expect("a folder");
        assert_eq!(remove_orphans(&root, KILLED, &dirs).expect("removes"), [full]);
        fs::create_dir(dirs[1].join("ringcrawl-0000000000000000")).expect("a folder");
        remove_orphans(&root, "0000000000000000", &dirs).expect("removes");
        assert!(!dirs[1].join("ringcrawl-0000000000000000").exists());
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
