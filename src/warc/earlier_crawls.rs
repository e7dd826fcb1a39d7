//! Payloads stored by earlier crawls, read from their indexes.
//!
//! Decides: each line of a CDXJ index with a digest of the crawl's own algorithm counts, except revisits, which hold
//! no payload. A digest without a label is SHA-1 in base32, as in indexes of other tools. A capture is identified by
//! a 128-bit hash of its digest and URL under a seed of its own, so each costs 24 bytes. Its record can be found by
//! its URL and time (WARC 1.1 sections 6.7.2 and 5.18: WARC-Refers-To-Target-URI and -Date). A page that moved to
//! another URL is therefore stored again.
//! Invariants: sorted by hash; never more than the limit.
//! Limits: read once, at the start; times are those of CDXJ, to the second.

use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

use super::digest::{DigestAlgorithm, label_start};
use super::folder::Folder;
use super::index::IndexEntry;
use super::verify::index_path;
use ringcrawl_base::time::UnixTime;
use ringcrawl_files::plain;
use ringcrawl_url::Url;

/// Their captures; empty when there are none.
#[derive(Debug, Default)]
pub struct EarlierCrawls {
    seed: u64,
    /// Two halves of a hash, and seconds since 1970.
    captures: Vec<(u64, u64, u32)>,
}

/// Why they cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EarlierError {
    /// A file or folder cannot be read.
    #[error("{path}: {error}", path = .0.display(), error = .1)]
    Io(PathBuf, io::Error),
    /// There are more than fit.
    #[error("more than {0} captures, which is all that store.dedupe_bytes_max holds")]
    TooMany(usize),
    /// A file holds not one line of an index.
    #[error("{path}: no line of a CDXJ index with a {digest} digest is in it", path = .0.display(), digest = .1)]
    NoIndex(PathBuf, &'static str),
}

impl EarlierCrawls {
    /// Reads the indexes at `paths` (files, or folders with indexed segments or only indexes) into at most
    /// `bytes_max` bytes. Keeps payloads with digests of `algorithm`.
    pub fn read(
        paths: &[PathBuf],
        bytes_max: u64,
        seed: u64,
        algorithm: DigestAlgorithm,
    ) -> Result<EarlierCrawls, EarlierError> {
        let mut earlier = EarlierCrawls { seed, captures: Vec::new() };
        // While a vector grows, its old allocation still exists.
        let captures_max = usize::try_from(bytes_max / 2 / CAPTURE_BYTES).unwrap_or(usize::MAX);
        for path in paths {
            let before = earlier.captures.len();
            let named = |error| EarlierError::Io(path.clone(), error);
            let files = if path.is_dir() { indexes_in(path).map_err(named)? } else { BTreeSet::from([path.clone()]) };
            for file in &files {
                earlier.read_index(file, captures_max, label_start(algorithm))?;
            }
            if earlier.captures.len() == before {
                return Err(EarlierError::NoIndex(path.clone(), algorithm.as_str()));
            }
        }
        earlier.captures.sort_unstable();
        // Of equal entries, the earliest holds the payload.
        earlier.captures.dedup_by_key(|(high, low, _)| (*high, *low));
        earlier.captures.shrink_to_fit();
        Ok(earlier)
    }

    fn read_index(&mut self, path: &Path, captures_max: usize, own_label: &str) -> Result<(), EarlierError> {
        let named = |error| EarlierError::Io(path.to_owned(), error);
        let mut input = BufReader::with_capacity(1 << 18, plain::open(path).map_err(named)?);
        let mut line = Vec::new();
        loop {
            line.clear();
            if io::Read::take(&mut input, LINE_BYTES_MAX).read_until(b'\n', &mut line).map_err(named)? == 0 {
                return Ok(());
            }
            let text = String::from_utf8_lossy(&line);
            let Some(mut entry) = IndexEntry::parse(text.trim_end()).filter(|entry| !entry.is_revisit()) else {
                continue;
            };
            let (Ok(url), Some(time)) = (Url::parse(&entry.url), UnixTime::from_digits(&entry.timestamp)) else {
                continue;
            };
            if is_bare_sha1(&entry.digest) {
                entry.digest.insert_str(0, label_start(DigestAlgorithm::Sha1));
            }
            // A digest of another algorithm never equals that of a payload of this crawl.
            if !entry.digest.starts_with(own_label) {
                continue;
            }
            if self.captures.len() >= captures_max {
                return Err(EarlierError::TooMany(captures_max));
            }
            let (high, low) = self.key(url.as_str(), entry.digest.as_bytes());
            self.captures.push((high, low, u32::try_from(time.as_micros() / 1_000_000).unwrap_or(u32::MAX)));
        }
    }

    /// When the payload with the digest `label` was stored under `url`.
    pub fn time_of(&self, url: &str, label: &[u8]) -> Option<UnixTime> {
        if self.captures.is_empty() {
            return None;
        }
        let key = self.key(url, label);
        let place = self.captures.binary_search_by_key(&key, |(high, low, _)| (*high, *low)).ok()?;
        let (_, _, seconds) = self.captures.get(place)?;
        Some(UnixTime::from_micros(u64::from(*seconds) * 1_000_000))
    }

    /// How many captures there are.
    pub fn len(&self) -> usize {
        self.captures.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.captures.is_empty()
    }

    fn key(&self, url: &str, label: &[u8]) -> (u64, u64) {
        let mut hash = Xxh3::with_seed(self.seed);
        hash.update(label);
        hash.update(b" ");
        hash.update(url.as_bytes());
        let hash = hash.digest128();
        ((hash >> 64) as u64, hash as u64)
    }
}

/// The indexes of the segments in `folder`, and those without a segment.
fn indexes_in(folder: &Path) -> io::Result<BTreeSet<PathBuf>> {
    let mut files: BTreeSet<PathBuf> =
        Folder::list(folder)?.segments.iter().filter_map(|file| index_path(file)).collect();
    for entry in folder.read_dir()? {
        files.insert(entry?.path());
    }
    // An open segment has no index yet.
    files.retain(|file| file.extension().is_some_and(|end| end == "cdxj") && file.is_file());
    Ok(files)
}

/// As pywb and others write it.
fn is_bare_sha1(digest: &str) -> bool {
    digest.len() == SHA1_CHARS && digest.bytes().all(|sign| matches!(sign, b'A'..=b'Z' | b'2'..=b'7'))
}

/// SHA-1 in base32.
const SHA1_CHARS: usize = 32;
/// Size of one in memory.
const CAPTURE_BYTES: u64 = 24;
/// Longest line that is read; a longer one is not ours.
const LINE_BYTES_MAX: u64 = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Index;
    use ringcrawl_url::Url;

    fn line(url: &str, time: &str, digest: &str, mime: &str) -> String {
        let entry = IndexEntry {
            timestamp: time.to_owned(),
            url: url.to_owned(),
            digest: digest.to_owned(),
            mime: mime.to_owned(),
            ..IndexEntry::default()
        };
        let mut index = Index::default();
        index.add(&Url::parse("http://k/").expect("a URL"), &entry);
        String::from_utf8(index.sorted()).expect("UTF-8")
    }

    fn read(paths: &[PathBuf], bytes_max: u64) -> Result<EarlierCrawls, EarlierError> {
        EarlierCrawls::read(paths, bytes_max, 3, DigestAlgorithm::Sha256)
    }

    #[test]
    fn the_first_capture_of_a_payload_is_found_by_its_url() {
        let dir = std::env::temp_dir().join(format!("ringcrawl-earlier-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("shard-00/segments")).expect("a folder");
        let index = dir.join("shard-00/segments/a.cdxj");
        std::fs::write(index.with_extension("warc.zst"), "").expect("writes");
        let lines = [
            line("http://a.example/", "20260102030405", "sha256:A", "text/html"),
            line("http://a.example/", "20250102030405", "sha256:A", "text/html"),
            line("http://b.example/", "20240102030405", "sha256:B", "warc/revisit"),
            line("http://c.example/", "20240102030405", "sha1:C", "text/html"),
            "no line\n".to_owned(),
        ];
        std::fs::write(&index, lines.concat()).expect("writes");
        for path in [dir.clone(), index.clone()] {
            let earlier = read(&[path], 1 << 10).expect("reads");
            assert_eq!(earlier.len(), 1);
            let time = earlier.time_of("http://a.example/", b"sha256:A").expect("is known");
            assert_eq!(time.to_digits(), "20250102030405");
            for (url, label) in [
                ("http://a.example/x", "sha256:A"),
                ("http://a.example/", "sha256:B"),
                ("http://b.example/", "sha256:B"),
            ] {
                assert_eq!(earlier.time_of(url, label.as_bytes()), None, "{url} {label}");
            }
        }
        assert!(matches!(read(std::slice::from_ref(&index), 48), Err(EarlierError::TooMany(1))));
        std::fs::write(&index, "nothing\n").expect("writes");
        assert!(matches!(read(std::slice::from_ref(&dir), 1 << 10), Err(EarlierError::NoIndex(..))));
        assert!(matches!(read(&[dir.join("none")], 1 << 10), Err(EarlierError::Io(..))));
        std::fs::remove_dir_all(&dir).expect("removes");
    }

    #[test]
    fn an_index_of_another_tool_may_lie_alone_and_have_no_labels() {
        let folder = ringcrawl_base::TempFolder::new("indexes");
        let digest = "B2LTWWPUOYAH7UIPQ7ZUPQ4VMBSVC36A";
        let own = line("http://a.example/", "20250102030405", digest, "text/html");
        std::fs::write(folder.path().join("index.cdxj"), own).expect("writes");
        std::fs::write(folder.path().join("notes.txt"), "no index").expect("writes");
        let paths = [folder.path().to_owned()];
        let earlier = EarlierCrawls::read(&paths, 1 << 10, 3, DigestAlgorithm::Sha1).expect("reads");
        assert!(earlier.time_of("http://a.example/", format!("sha1:{digest}").as_bytes()).is_some());
        assert!(matches!(read(&paths, 1 << 10), Err(EarlierError::NoIndex(..))), "it is of another kind");
    }
}
