//! The files of the scope: the operator's rules, and block lists.
//!
//! Decides: a file that is written while it is read may be read incompletely, and the crawl would fetch URLs that the
//! rest blocks. So all files are read again until none of them changes during a pass. A file that cannot be read is
//! refused. Rules with mistakes are refused with all their mistakes. Mistakes in block lists, which third parties
//! write, are reported, and refused only if `scope.block_errors` says so. A file that begins as gzip is unpacked.
//! Leaves to others: what is in them (`scope`).

use std::fmt;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Read};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use ringcrawl_brain::scope::{BlockList, BlockListReader, RULES_BYTES_MAX, Rules, Scope};
use ringcrawl_config::{BlockErrors, Config};
use ringcrawl_files::plain;

/// What the files hold.
#[derive(Clone, Debug, Default)]
pub struct ScopeFiles {
    rules: Arc<Rules>,
    blocks: Arc<BlockList>,
    /// Each file, with a description of its size.
    sources: Vec<String>,
    /// Each file, with its number of rules or entries.
    sizes: Vec<(String, usize)>,
    /// Notes about them for the operator.
    pub notes: Vec<String>,
}

impl ScopeFiles {
    /// `scope` with what the files hold.
    pub fn of(&self, scope: &Scope) -> Scope {
        scope.with(Arc::clone(&self.rules), Arc::clone(&self.blocks))
    }

    /// Whether `config` names any.
    pub fn are_named(config: &Config) -> bool {
        !config.scope.rules.is_empty() || !config.scope.block.is_empty()
    }

    /// Which of the files has lost more than half of its entries since `before`, in words.
    pub fn halved(&self, before: &ScopeFiles) -> Option<String> {
        let lost = self.sizes.iter().zip(&before.sizes).filter(|((_, now), (_, before))| *now < before.div_ceil(2));
        let told: Vec<String> =
            lost.map(|((path, now), (_, before))| format!("{path} has {now} entries, before {before}")).collect();
        (!told.is_empty()).then(|| told.join(", "))
    }

    /// Reads the files that `config` names until none changes during a pass, [`TRIES`] times at most; reports every
    /// mistake, one per line.
    ///
    /// # Errors
    /// What an operator can fix; never empty.
    pub fn read(config: &Config) -> Result<ScopeFiles, Vec<String>> {
        let mut changed = String::new();
        for tries in 0..TRIES {
            if tries > 0 {
                std::thread::sleep(PAUSE);
            }
            let before = Version::of_all(config);
            let read = ScopeFiles::read_once(config);
            match before.into_iter().find(|(path, before)| !before.still_holds(path)) {
                None => return read,
                Some((path, _)) => changed = path.display().to_string(),
            }
        }
        Err(vec![format!("{changed}: it kept changing while it was read; write it under another name and rename it")])
    }

    fn read_once(config: &Config) -> Result<ScopeFiles, Vec<String>> {
        let mut files = ScopeFiles::default();
        let mut errors = Vec::new();
        let path = &*config.scope.rules;
        if !path.is_empty() {
            let read = plain::read(Path::new(path), RULES_BYTES_MAX)
                .map_err(|error| vec![format!("{path}: {error}; expected the file of scope.rules")])
                .and_then(|text| match Rules::parse(path, &text) {
                    Ok(rules) => Ok((rules, shortened(&blake3::hash(&text)))),
                    Err(mistakes) => Err(mistakes.iter().map(ToString::to_string).collect()),
                });
            match read {
                Ok((rules, digest)) => {
                    files.sources.push(format!("{path} ({} rules, BLAKE3 {digest})", rules.len()));
                    files.sizes.push((path.to_owned(), rules.len()));
                    files.rules = Arc::new(rules);
                }
                Err(mistakes) => errors.extend(mistakes),
            }
        }
        let mut reader = BlockListReader::new(config.scope.block_ram_bytes_max);
        let mut lists = Vec::new();
        for path in &config.scope.block {
            let before = reader.entries();
            match read_list(&mut reader, path) {
                Ok(digest) => {
                    lists.push(format!("{} (BLAKE3 {digest})", path.display()));
                    files.sizes.push((path.display().to_string(), reader.entries() - before));
                }
                Err(error) => errors.push(format!("{}: {error}; expected a file of scope.block", path.display())),
            }
        }
        if !lists.is_empty() {
            let (blocks, mistakes) = reader.list();
            let mut told: Vec<String> = mistakes.told.iter().map(ToString::to_string).collect();
            if let Some(more) = mistakes.count.checked_sub(told.len()).filter(|more| *more > 0) {
                told.push(format!("scope.block: {more} more lines cannot be read"));
            }
            match config.scope.block_errors {
                BlockErrors::Refuse if mistakes.count > 0 => {
                    told.push("scope.block_errors = \"skip\" ignores such lines".to_owned());
                    errors.append(&mut told);
                }
                BlockErrors::Refuse => {}
                BlockErrors::Skip => files.notes.extend(told.iter().map(|told| format!("skipped: {told}"))),
            }
            let (entries, mebibytes) = (blocks.len(), blocks.bytes().div_ceil(1 << 20));
            files.sources.push(format!("{}: {entries} entries in {mebibytes} MiB", lists.join(", ")));
            files.blocks = Arc::new(blocks);
        }
        if errors.is_empty() { Ok(files) } else { Err(errors) }
    }
}

impl fmt::Display for ScopeFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sources.join("; "))
    }
}

/// The current state of a file, without reading its bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Version(Option<[u64; 3]>, [i64; 4]);

impl Version {
    fn of(path: &Path) -> Version {
        let Ok(file) = fs::metadata(path) else { return Version(None, [0; 4]) };
        // A program can set the modification time, but not the change time of the inode.
        let times = [file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec()];
        Version(Some([file.dev(), file.ino(), file.size()]), times)
    }

    /// The versions of all files that `config` names.
    fn of_all(config: &Config) -> Vec<(&Path, Version)> {
        let rules = Some(Path::new(&*config.scope.rules)).filter(|path| !path.as_os_str().is_empty());
        let paths = rules.into_iter().chain(config.scope.block.iter().map(|path| &**path));
        paths.map(|path| (path, Version::of(path))).collect()
    }

    /// Whether `path` is still the same file, and has been for a while: two changes in one tick of the system's clock
    /// have the same time.
    fn still_holds(&self, path: &Path) -> bool {
        let changed = fs::metadata(path).and_then(|file| file.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
        if let Some(more) = changed.elapsed().ok().and_then(|age| TICK.checked_sub(age)) {
            std::thread::sleep(more);
        }
        Version::of(path) == *self
    }
}

/// Reads a file that may be compressed, without holding all of it in memory; returns its digest.
fn read_list(reader: &mut BlockListReader, path: &Path) -> io::Result<String> {
    let mut file = BufReader::with_capacity(PIECE_BYTES, plain::open(path)?);
    let is_packed = file.fill_buf()?.starts_with(&[0x1f, 0x8b]);
    let text: Box<dyn Read> = match is_packed {
        true => Box::new(flate2::bufread::MultiGzDecoder::new(file)),
        false => Box::new(file),
    };
    let mut text = Hashed { text: text.take(BLOCKS_BYTES_MAX + 1), hasher: blake3::Hasher::new(), bytes: 0 };
    reader.read(&path.display().to_string(), BufReader::with_capacity(PIECE_BYTES, &mut text))?;
    if text.bytes > BLOCKS_BYTES_MAX {
        return Err(io::Error::other(format!("longer than {BLOCKS_BYTES_MAX} bytes")));
    }
    Ok(shortened(&text.hasher.finalize()))
}

/// A text that is hashed as it is read.
struct Hashed<R> {
    text: R,
    hasher: blake3::Hasher,
    bytes: u64,
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.text.read(buffer)?;
        self.hasher.update(buffer.get(..count).unwrap_or_default());
        self.bytes += count as u64;
        Ok(count)
    }
}

/// The beginning of a file's BLAKE3 hash, by which operators distinguish two versions.
fn shortened(hash: &blake3::Hash) -> String {
    hash.to_hex().chars().take(16).collect()
}

/// Longest block list, unpacked: a longer one would take minutes to read.
const BLOCKS_BYTES_MAX: u64 = 1 << 30;
/// How many times, and at what interval, changing files are read again: a list of a gigabyte is written in seconds.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(500);
/// More than a tick of the clock that times changes of files: 10 ms at most.
const TICK: Duration = Duration::from_millis(50);
/// Bytes read at once.
const PIECE_BYTES: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use ringcrawl_base::Failure;
    use ringcrawl_base::TempFolder;
    use ringcrawl_brain::hops::Hops;
    use ringcrawl_url::Url;

    #[test]
    fn mistakes_are_told_with_file_and_line() {
        let folder = TempFolder::new("scope-files");
        let file = folder.file("scope.rules", "allow host=a.test\nallow hots=b.test\ndeny depth=x\n");
        let mut config = Config::default();
        assert!(!ScopeFiles::are_named(&config) && ScopeFiles::read(&config).is_ok());
        config.scope.rules.clone_from(&file);
        config.scope.block = vec![folder.at("none").into()];
        let errors = ScopeFiles::read(&config).expect_err("three mistakes");
        assert_eq!(errors.len(), 3, "{errors:?}");
        assert!(errors[0].starts_with(&format!("{file}:2: there is no condition \"hots\"")), "{errors:?}");
        assert!(errors[2].contains("expected a file of scope.block"), "{errors:?}");
    }

    /// Writes as an editor or a download does: truncates first, then writes in pieces. Each read returns one of the
    /// whole lists.
    #[test]
    fn what_is_written_meanwhile_is_read_when_it_is_whole() {
        let folder = TempFolder::new("scope-rewritten");
        let lines =
            |count: usize, name: &str| (0..count).map(|host| format!("{name}{host}.test\n")).collect::<String>();
        for of_rules in [false, true] {
            let text = |count, name: &str| match of_rules {
                true => lines(count, name).replace(name, &format!("deny host={name}")),
                false => lines(count, name),
            };
            let path = folder.file("file", &text(1_000, "old"));
            let mut config = Config::default();
            match of_rules {
                true => config.scope.rules.clone_from(&path),
                false => config.scope.block = vec![path.clone().into()],
            }
            let new = text(1_000, "new");
            let writing = std::thread::spawn(move || {
                let mut file = fs::File::create(path).expect("a file");
                for piece in new.as_bytes().chunks(new.len() / 40 + 1) {
                    std::thread::sleep(TICK / 4);
                    file.write_all(piece).expect("a disk");
                }
            });
            let size = |read: Result<ScopeFiles, _>| read.ok().map(|files| files.sizes[0].1);
            while size(ScopeFiles::read_once(&config)) == Some(1_000) {
                std::thread::sleep(TICK / 10);
            }
            assert_eq!(size(ScopeFiles::read(&config)), Some(1_000));
            writing.join().expect("written");
        }
    }

    /// A file that is read while another process writes it is read again once that has ended.
    #[test]
    fn a_file_that_changes_while_it_is_read_is_read_again() {
        let folder = TempFolder::new("scope-changing");
        let path = folder.file("list", "a.test\n");
        let is_held = |change: &dyn Fn()| {
            let before = Version::of(Path::new(&path));
            change();
            before.still_holds(Path::new(&path))
        };
        assert!(is_held(&|| {}));
        let times = fs::metadata(&path).and_then(|file| file.modified()).expect("a time");
        let with_times = |text: &str| {
            fs::write(&path, text).expect("a disk");
            fs::File::open(&path).and_then(|file| file.set_modified(times)).expect("a time");
        };
        assert!(!is_held(&|| fs::write(&path, "b.test\nc.test\n").expect("a disk")));
        assert!(!is_held(&|| with_times("a.test\nd.test\n")), "of the same length and time");
        assert!(!is_held(&|| fs::remove_file(&path).expect("a file")));
        assert!(!is_held(&|| fs::write(&path, "").expect("a disk")));
        let other = folder.file("other", "");
        assert!(!is_held(&|| fs::rename(&other, &path).expect("a name")), "another file of that name");
    }

    #[test]
    fn what_has_lost_more_than_half_is_told() {
        let folder = TempFolder::new("scope-halved");
        let files = |entries: [usize; 2], rules: usize| {
            let list = |count: usize| {
                (0..count).map(|host| format!("{host}.test\n10.0.{}.{}\n", host / 256, host % 256)).collect::<String>()
            };
            let mut config = Config::default();
            config.scope.block =
                vec![folder.file("one", &list(entries[0])).into(), folder.file("two", &list(entries[1])).into()];
            config.scope.rules = folder.file("rules", &"deny path=/x*\n".repeat(rules));
            ScopeFiles::read_once(&config).expect("files")
        };
        let before = files([50, 5], 3);
        assert_eq!(files([50, 5], 3).halved(&before), None);
        assert_eq!(files([25, 100], 2).halved(&before), None);
        let one = format!("{} has 48 entries, before 100", folder.at("one"));
        assert_eq!(files([24, 5], 3).halved(&before), Some(one.clone()));
        // A small one next to a large one, and rules.
        let two = format!("{} has 4 entries, before 10", folder.at("two"));
        assert_eq!(files([500, 2], 3).halved(&before), Some(two));
        let rules = format!("{} has 1 entries, before 3", folder.at("rules"));
        assert_eq!(files([24, 5], 1).halved(&before), Some(format!("{rules}, {one}")));
        assert_eq!(before.halved(&ScopeFiles::default()), None);
        assert_eq!(files([50, 5], 0).halved(&files([50, 5], 1)).map(|told| told.contains("has 0")), Some(true));
    }

    #[test]
    fn what_is_no_plain_file_is_refused_at_once() {
        let folder = TempFolder::new("scope-pipes");
        let pipe = folder.at("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
        assert!(made.success());
        let mut config = Config::default();
        config.scope.rules = pipe;
        config.scope.block = vec![folder.path().into(), "/dev/null".into()];
        let errors = ScopeFiles::read(&config).expect_err("three mistakes");
        for (error, what) in errors.iter().zip(["a pipe", "a directory", "a device"]) {
            assert!(error.contains(&format!("it is {what}, not a plain file; expected")), "{errors:?}");
        }
        assert_eq!(errors.len(), 3);
    }

    /// One line without an end, or one host repeated.
    #[test]
    fn what_a_small_file_unpacks_to_is_bounded() {
        let folder = TempFolder::new("block-bombs");
        let mut config = Config::default();
        config.scope.block = vec![folder.at("bomb.gz").into()];
        config.scope.block_errors = BlockErrors::Skip;
        config.scope.block_ram_bytes_max = 1 << 20;
        for (line, what) in [("same.test\n", "no room for more entries in 1 MiB"), ("#", ":1: longer than 65536 bytes")]
        {
            let file = std::fs::File::create(folder.at("bomb.gz")).expect("a file");
            let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
            (0..64).for_each(|_| packed.write_all(line.repeat((1 << 20) / line.len()).as_bytes()).expect("a disk"));
            packed.finish().expect("a disk");
            let told =
                ScopeFiles::read(&config).map_or_else(|errors| errors.join("\n"), |files| files.notes.join("\n"));
            assert!(told.contains(what), "{told}");
        }
    }

    #[test]
    fn lists_are_unpacked_and_their_mistakes_are_a_choice() {
        let folder = TempFolder::new("block-lists");
        let plain = folder.file("plain", "a.test\nno entry\n");
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(b".b.test\n").expect("memory");
        std::fs::write(folder.at("packed.gz"), packed.finish().expect("memory")).expect("a file");
        let mut config = Config::default();
        config.scope.block = vec![plain.clone().into(), folder.at("packed.gz").into()];
        let errors = ScopeFiles::read(&config).expect_err("one mistake");
        assert!(errors.len() == 2 && errors[0].starts_with(&format!("{plain}:2: several words")), "{errors:?}");
        config.scope.block_errors = BlockErrors::Skip;
        let files = ScopeFiles::read(&config).expect("skipped");
        assert_eq!(files.notes, [format!("skipped: {}", errors[0])]);
        let told = files.to_string();
        let digest: String = blake3::hash(b".b.test\n").to_hex().chars().take(16).collect();
        assert!(told.ends_with(&format!("packed.gz (BLAKE3 {digest}): 2 entries in 1 MiB")), "{told}");
        let scope = files.of(&Scope::default());
        let refused = |text: &str| scope.refuses(&Url::parse(text).expect("a URL"), Hops::default());
        assert_eq!(refused("http://x.b.test/"), Some(Failure::Blocked));
        assert_eq!(refused("http://c.test/"), None);
    }
}
