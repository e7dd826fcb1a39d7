//! Finds what is in a folder of segments, and what is misplaced where a segment or an index should be.
//!
//! Decides: a WARC file is recognized by its name. A link to a file counts as that file. The only folder link
//! followed is that of a shard's segments, which are then on another disk; a dangling one is an error. In a crawl,
//! each closed segment has an index next to it and each index a segment, so one without the other is odd; folders
//! from other sources may keep indexes as they like.
//! Limits: `DEPTH_MAX` folders deep.
//! Leaves to others: what is in the files (`read`, `verify`).

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::read::is_segment_name;
use super::segments::{INDEX_SUFFIX, OPEN};
use super::verify::index_path;

/// What was found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Folder {
    /// WARC files, sorted by name.
    pub segments: Vec<PathBuf>,
    /// Things that should not be as they are, sorted by path.
    pub oddities: Vec<Oddity>,
}

/// Something that is not as a crawl leaves it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Oddity {
    /// Where.
    pub path: PathBuf,
    /// What is odd.
    pub what: &'static str,
}

impl Folder {
    /// Searches `path`; a file is treated as a segment. Errors name the folder that could not be read.
    pub fn list(path: &Path) -> io::Result<Folder> {
        let mut found = Folder::default();
        if !path.is_dir() {
            found.segments.push(path.to_owned());
            return Ok(found);
        }
        let (mut folders, mut indexes) = (vec![(path.to_owned(), 0)], Vec::new());
        let mut has_segment = BTreeSet::new();
        while let Some((folder, depth)) = folders.pop() {
            let unread = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", folder.display()));
            let is_of_crawl = is_of_crawl(&folder);
            for entry in fs::read_dir(&folder).map_err(unread)? {
                let entry = entry.map_err(unread)?;
                let (path, kind) = (entry.path(), entry.file_type().map_err(unread)?);
                let name = entry.file_name().to_string_lossy().into_owned();
                let is_file = if kind.is_symlink() { path.is_file() } else { kind.is_file() };
                let is_link_of_shard = kind.is_symlink() && name == "segments" && is_shard_of_crawl(&folder);
                if is_link_of_shard && !path.is_dir() {
                    let why = format!("{}: a link that leads nowhere: a disk is missing", path.display());
                    return Err(io::Error::new(io::ErrorKind::NotFound, why));
                }
                if (kind.is_dir() || is_link_of_shard) && depth < DEPTH_MAX {
                    folders.push((path.clone(), depth + 1));
                }
                if is_segment_name(&name) {
                    // An index gets its name a moment before its segment does.
                    has_segment.extend(index_path(&path.with_file_name(name.strip_suffix(OPEN).unwrap_or(&name))));
                }
                match (is_segment_name(&name), is_file) {
                    (true, true) => found.segments.push(path),
                    (true, false) => found.add(path, "no file, and it has a segment's name"),
                    (false, _) if is_of_crawl && name.ends_with(INDEX_SUFFIX) => indexes.push(path),
                    (false, _) => {}
                }
            }
        }
        for index in indexes {
            if !has_segment.contains(&index) {
                found.add(index, "index: there is no segment beside it");
            }
        }
        found.segments.sort();
        found.oddities.sort();
        Ok(found)
    }

    fn add(&mut self, path: PathBuf, what: &'static str) {
        self.oddities.push(Oddity { path, what });
    }
}

/// Whether `folder` holds the segments of one of our crawl's shards.
pub fn is_of_crawl(folder: &Path) -> bool {
    let is_called = |folder: &Path| folder.ends_with("segments") && folder.parent().is_some_and(is_shard_of_crawl);
    // By its own name, which may be a link, and by its real location: it may be the current folder, whose path has no
    // parent.
    let lies = folder.canonicalize().unwrap_or_default();
    let elsewhere = lies.parent().filter(|parent| {
        let name = parent.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(ELSEWHERE) && parent.join("lock").is_file()
    });
    is_called(folder) || is_called(&lies) || elsewhere.is_some()
}

/// Whether `folder` is the directory of one of our crawl's shards.
fn is_shard_of_crawl(folder: &Path) -> bool {
    let folder = folder.canonicalize().unwrap_or_default();
    folder.parent().is_some_and(|root| root.join("crawl.json").is_file())
}

/// Prefix of the folders in which crawls store segments on other disks; the crawl's identifier follows.
pub const ELSEWHERE: &str = "ringcrawl-";

/// A crawl directory has its segments two folders down.
const DEPTH_MAX: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::TempFolder;

    #[test]
    fn segments_on_another_disk_are_found_and_no_other_link_is_followed() {
        use std::os::unix::fs::symlink;
        let temp = TempFolder::new("folder-link");
        let [root, lies, other] =
            ["crawl", "disk/ringcrawl-1/shard-00", "other"].map(|folder| temp.path().join(folder));
        let shard = root.join("shard-00");
        for folder in [&shard, &lies, &other] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(root.join("crawl.json"), "{}").unwrap();
        fs::write(lies.with_file_name("lock"), "").unwrap();
        ["a.warc.zst", "b.cdxj"].iter().for_each(|name| fs::write(lies.join(name), "").unwrap());
        fs::write(other.join("c.warc.zst"), "").unwrap();
        symlink(&lies, shard.join("segments")).unwrap();
        // Links in other places are not followed, whatever their name.
        for link in [shard.join("more"), root.join("shard-01"), temp.path().join("segments"), root.join("segments")] {
            symlink(&other, link).unwrap();
        }
        let found = |path: &Path| {
            let found = Folder::list(path).unwrap();
            let odd = found.oddities.into_iter().map(|odd| odd.path);
            found.segments.into_iter().chain(odd).collect::<Vec<PathBuf>>()
        };
        let link = shard.join("segments");
        for path in [&root, &shard, &link] {
            assert_eq!(found(path), ["a.warc.zst", "b.cdxj"].map(|name| link.join(name)), "{path:?}");
        }
        // By its real location, too: only in a crawl is an index without its segment odd.
        for path in [temp.path().join("disk"), lies.clone()] {
            assert_eq!(found(&path), ["a.warc.zst", "b.cdxj"].map(|name| lies.join(name)), "{path:?}");
        }
        assert!(is_of_crawl(&link) && is_of_crawl(&lies) && !is_of_crawl(&shard) && !is_of_crawl(&other));
        fs::remove_dir_all(temp.path().join("disk")).unwrap();
        let error = Folder::list(&root).unwrap_err().to_string();
        assert!(error.starts_with(&*link.to_string_lossy()) && error.contains("a disk is missing"), "{error}");
    }

    #[test]
    fn segments_and_what_is_odd_beside_them() {
        let temp = TempFolder::new("folder");
        let root = temp.path();
        let segments = root.join("crawl/shard-00/segments");
        let others = root.join("others");
        for folder in [&segments, &others] {
            fs::create_dir_all(folder).unwrap();
            for name in ["a.warc.zst", "a.cdxj", "b.warc.zst.open", "b.cdxj", "c.cdxj", "d.cdxj.open", "notes"] {
                fs::write(folder.join(name), "").unwrap();
            }
            fs::create_dir(folder.join("e.warc.gz")).unwrap();
            std::os::unix::fs::symlink("a.warc.zst", folder.join("f.warc.zst")).unwrap();
            std::os::unix::fs::symlink("nothing", folder.join("g.warc.zst")).unwrap();
        }
        fs::write(root.join("crawl/crawl.json"), "{}").unwrap();
        let listed = |folder: &Path| {
            let found = Folder::list(folder).unwrap();
            let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
            let odd = found.oddities.iter().map(|odd| format!("{}: {}", name(&odd.path), odd.what)).collect();
            (found.segments.iter().map(|path| name(path)).collect::<Vec<String>>(), odd)
        };
        let files = ["a.warc.zst", "b.warc.zst.open", "f.warc.zst"].map(str::to_owned).to_vec();
        let [lost, folder, link] = [
            "c.cdxj: index: there is no segment beside it",
            "e.warc.gz: no file, and it has a segment's name",
            "g.warc.zst: no file, and it has a segment's name",
        ]
        .map(str::to_owned);
        assert_eq!(listed(&others), (files.clone(), vec![folder.clone(), link.clone()]));
        for path in [&segments, &root.join("crawl")] {
            assert_eq!(listed(path), (files.clone(), vec![lost.clone(), folder.clone(), link.clone()]));
        }
        let error = Folder::list(&root.join("none/..")).map_err(|error| error.to_string());
        assert_eq!(error.map(|found| found.segments.len()), Ok(1), "what is no folder is a file to be opened");
    }
}
