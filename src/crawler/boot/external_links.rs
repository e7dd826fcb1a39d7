//! The links that left a crawl's scope: from the logs to a file, and to the seeds of the next round.
//!
//! Decides: `external-links-N` in the crawl's directory has the links that left the scope in round N and were not
//! seeds by then. Each is listed once, one per line. The file is a list of seeds, for `--seeds` here or for another
//! crawl. It is written atomically, and again if its round is resumed. Listing fetches nothing: the logs have the
//! links (`links.external`).
//! Invariants: a crawl that is killed at any time has all links of the pages that are done by its logs.
//! Limits: [`LINKS_MAX`] links, [`LINKS_BYTES_MAX`] bytes, and the room in the crawl's list of seeds, to which they
//! will be added. Further links are left out and reported. Each link is in memory once, plus 64 bits of its hash. The
//! hash is keyed, so no site can craft links that collide with others. Damaged blocks of a log are skipped; the next
//! run reports them.

use std::collections::HashSet;
use std::fs::{self, File};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};

use super::crawl_dir::shard_dir;
use super::sealed_file::FILE_BYTES_MAX;
use ringcrawl_brain::hops::Hops;
use ringcrawl_brain::log::{LogFile, LogReader, UrlEntries};
use ringcrawl_brain::seed::Seed;
use ringcrawl_files::private;
use ringcrawl_url::Url;

/// The links that left the scope in a round.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExternalLinks {
    /// Each once.
    pub urls: Vec<Url>,
    /// How many times a link was left out because there are too many; the same link may have occurred repeatedly.
    pub left_out: u64,
    /// Where they are listed.
    pub file: PathBuf,
}

/// Lists them. No process may be writing in the directory.
pub(super) fn list(root: &Path, shards: u16, round: u32, seeds: &[Seed]) -> io::Result<ExternalLinks> {
    list_within(root, shards, round, seeds, bytes_free(listed_bytes(seeds)))
}

/// Bytes of the seeds in the crawl's list.
fn listed_bytes(seeds: &[Seed]) -> u64 {
    let bytes = |seed: &Seed| match seed.options {
        None => seed.url.as_str().len(),
        Some(_) => seed.to_string().len(),
    };
    seeds.iter().map(|seed| bytes(seed) as u64 + 1).sum()
}

/// Bytes available for the links, each with its line end, next to seeds of `seed_bytes`.
fn bytes_free(seed_bytes: u64) -> u64 {
    FILE_BYTES_MAX.saturating_sub(seed_bytes).saturating_sub(SEAL_BYTES_MAX).min(LINKS_BYTES_MAX)
}

fn list_within(root: &Path, shards: u16, round: u32, seeds: &[Seed], mut bytes_free: u64) -> io::Result<ExternalLinks> {
    let mut links = ExternalLinks { urls: Vec::new(), left_out: 0, file: root.join(format!("{NAME}-{round}")) };
    let keyed = RandomState::new();
    let mut known: HashSet<u64> = seeds.iter().map(|seed| keyed.hash_one(seed.url.as_str())).collect();
    for shard in 0..shards {
        let path = shard_dir(root, shard).join(LogFile::Urls.to_string());
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        read(&path, |text| {
            let Ok(url) = Url::from_canonical(text) else { return };
            let hash = keyed.hash_one(url.as_str());
            if known.contains(&hash) {
                return;
            }
            let bytes = url.as_str().len() as u64 + 1;
            if links.urls.len() >= LINKS_MAX || bytes > bytes_free {
                links.left_out += 1;
                return;
            }
            bytes_free -= bytes;
            known.insert(hash);
            links.urls.push(url);
        })
        .map_err(named)?;
    }
    let open = root.join(format!("{NAME}-{round}.open"));
    let mut out = BufWriter::new(private::create(&open)?);
    writeln!(out, "# Links that left the scope in round {round}. --seeds FILE starts a crawl from them.")?;
    links.urls.iter().try_for_each(|url| writeln!(out, "{}", url.as_str()))?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    fs::rename(&open, &links.file)?;
    Ok(links)
}

/// Passes each link that left the scope to `each`, in the order in which they were found.
fn read(path: &Path, mut each: impl FnMut(&str)) -> io::Result<()> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        file => file?,
    };
    let mut reader = LogReader::default();
    let mut piece = Vec::new();
    loop {
        piece.clear();
        (&mut file).take(PIECE_BYTES).read_to_end(&mut piece)?;
        reader.push(&piece);
        while let Some((_, payload)) = reader.next_block() {
            let Some(entries) = UrlEntries::from_payload(&payload) else { continue };
            entries.aside.iter().filter(|(depth, _)| *depth == Hops::EXTERNAL.bits()).for_each(|(_, text)| each(text));
        }
        if piece.is_empty() {
            return Ok(());
        }
    }
}

const NAME: &str = "external-links";
/// As many as a crawl may have seeds.
const LINKS_MAX: usize = 5_000_000;
/// All of them together: they are in memory until the next round has begun.
const LINKS_BYTES_MAX: u64 = 256 << 20;
/// The part of the list of seeds that is not a seed: the round, and the seal.
const SEAL_BYTES_MAX: u64 = 4 << 10;
const PIECE_BYTES: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::TempFolder;
    use ringcrawl_brain::log::{Log, Owner};
    use ringcrawl_config::SeedErrors;
    use ringcrawl_url::FoundUrl;

    #[test]
    fn what_left_the_scope_is_listed_once_and_what_found_no_room_is_not() {
        let folder = TempFolder::new("external-links");
        let mut torn = Vec::new();
        for shard in 0..2 {
            let mut log = Log::new(Owner { crawl: 1, shard }, 2, 0);
            log.accept(FoundUrl::unlinked(0, "http://a.test/"));
            log.set_aside(FoundUrl::unlinked(3, "http://a.test/no-room"));
            for page in ["http://b.test/", "http://c.test/1", "http://seed.test/", "http://b.test/"] {
                log.set_aside(FoundUrl::unlinked(Hops::EXTERNAL.bits(), page));
            }
            log.set_aside(FoundUrl::unlinked(Hops::EXTERNAL.bits(), &format!("http://shard{shard}.test/")));
            let bytes = log.take_append(true).expect("a block").bytes;
            torn = bytes[..bytes.len() / 2].to_vec();
            fs::create_dir(folder.path().join(format!("shard-{shard:02}"))).expect("a folder");
            fs::write(shard_dir(folder.path(), shard).join("urls"), [bytes, torn.clone()].concat()).expect("a log");
        }
        assert!(!torn.is_empty());
        let seeds = [Seed::from(Url::parse("http://seed.test/").expect("a URL"))];
        // Shard 2 has written nothing yet.
        let links = list(folder.path(), 3, 4, &seeds).expect("a list");
        let texts: Vec<&str> = links.urls.iter().map(Url::as_str).collect();
        assert_eq!(texts, ["http://b.test/", "http://c.test/1", "http://shard0.test/", "http://shard1.test/"]);
        let read = crate::boot::read_seeds(&[], &[&links.file], SeedErrors::Refuse).expect("a list of seeds").seeds;
        assert_eq!(read.into_iter().map(|seed| seed.url).collect::<Vec<_>>(), links.urls);
        assert!(links.file.ends_with("external-links-4") && links.left_out == 0);
        // "http://b.test/" and a line end, and no room for another one.
        let few = list_within(folder.path(), 3, 4, &seeds, 2 * 15 - 1).expect("a list");
        assert_eq!(few.urls.iter().map(Url::as_str).collect::<Vec<_>>(), ["http://b.test/"]);
        assert!(few.left_out >= 3);
    }

    #[test]
    fn what_is_listed_fits_into_the_list_of_seeds() {
        let options = ringcrawl_brain::seed::SeedOptions::parse("pages=7").expect("options");
        let url = Url::parse("http://seed.test/").expect("a URL");
        let seeds = [Seed::from(url.clone()), Seed { url, options: Some(Box::new(options)) }];
        let kept: String = seeds.iter().map(|seed| format!("{seed}\n")).collect();
        assert_eq!(listed_bytes(&seeds), kept.len() as u64);
        assert_eq!([0, 900 << 20].map(bytes_free), [LINKS_BYTES_MAX, (124 << 20) - SEAL_BYTES_MAX]);
        assert_eq!([FILE_BYTES_MAX - 1, FILE_BYTES_MAX, u64::MAX].map(bytes_free), [0; 3]);
    }
}
