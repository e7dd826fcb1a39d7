//! The files of the scope: the operator's rules, and block lists.
//!
//! Decides: a file that cannot be read is refused, and so are rules with a mistake, with all their mistakes. Mistakes in block
//! lists, which others write, are told, and refused only if `scope.block_errors` says so. A file that begins as gzip is unpacked.
//! Leaves to others: what is in them (`scope`).

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;

use crate::config::{BlockErrors, Config};
use crate::scope::{BLOCKS_BYTES_MAX, BlockList, RULES_BYTES_MAX, Rules, Scope};

/// What the files hold.
#[derive(Clone, Debug, Default)]
pub struct ScopeFiles {
    rules: Arc<Rules>,
    blocks: Arc<BlockList>,
    /// Each file, with how much it holds, in words.
    sources: Vec<String>,
    /// What is to be told of them.
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

    /// Reads the files that `config` names; every mistake, a line each.
    ///
    /// # Errors
    /// What an operator can mend; never empty.
    pub fn read(config: &Config) -> Result<ScopeFiles, Vec<String>> {
        let mut files = ScopeFiles::default();
        let mut errors = Vec::new();
        let path = &*config.scope.rules;
        if !path.is_empty() {
            let read = read(Path::new(path), RULES_BYTES_MAX)
                .map_err(|error| vec![format!("{path}: {error}; expected the file of scope.rules")])
                .and_then(|text| match Rules::parse(path, &text) {
                    Ok(rules) => Ok((rules, digest(&text))),
                    Err(mistakes) => Err(mistakes.iter().map(ToString::to_string).collect()),
                });
            match read {
                Ok((rules, digest)) => {
                    files.sources.push(format!("{path} ({} rules, BLAKE3 {digest})", rules.len()));
                    files.rules = Arc::new(rules);
                }
                Err(mistakes) => errors.extend(mistakes),
            }
        }
        let mut lists = Vec::new();
        for path in &config.scope.block {
            match read_packed(path, BLOCKS_BYTES_MAX) {
                Ok(text) => lists.push((path.display().to_string(), text)),
                Err(error) => errors.push(format!("{}: {error}; expected a file of scope.block", path.display())),
            }
        }
        if !lists.is_empty() {
            let (blocks, mistakes) = BlockList::read(&lists);
            let mut told: Vec<String> = mistakes.told.iter().map(ToString::to_string).collect();
            if let Some(more) = mistakes.count.checked_sub(told.len()).filter(|more| *more > 0) {
                told.push(format!("scope.block: {more} more lines cannot be read"));
            }
            match config.scope.block_errors {
                BlockErrors::Refuse if mistakes.count > 0 => {
                    told.push("scope.block_errors = \"skip\" goes on without such lines".to_owned());
                    errors.append(&mut told);
                }
                BlockErrors::Refuse => {}
                BlockErrors::Skip => files.notes.extend(told.iter().map(|told| format!("skipped: {told}"))),
            }
            let names: Vec<String> =
                lists.iter().map(|(path, text)| format!("{path} (BLAKE3 {})", digest(text))).collect();
            files.sources.push(format!("{}: {} entries", names.join(", "), blocks.len()));
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

/// A file's bytes. What is no plain file is refused before it is read: a pipe that nobody writes to would hold up the start for ever,
/// and one that somebody writes to could be read once, but not again when the scope is loaded anew.
fn read(path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let metadata = file.metadata()?;
    let kind = metadata.file_type();
    if !kind.is_file() {
        let what = match () {
            () if kind.is_dir() => "a directory",
            () if kind.is_fifo() => "a pipe",
            () => "a device",
        };
        return Err(io::Error::other(format!("it is {what}, not a plain file")));
    }
    take(file, metadata.len(), bytes_max)
}

/// The bytes of a file that may be packed.
fn read_packed(path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
    let bytes = read(path, bytes_max)?;
    if bytes.starts_with(&[0x1f, 0x8b]) {
        return take(flate2::read::MultiGzDecoder::new(&*bytes), bytes.len() as u64, bytes_max);
    }
    Ok(bytes)
}

/// All of a source, which has `at_least` so many bytes.
fn take(source: impl Read, at_least: u64, bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity((at_least as usize).min(bytes_max) + 1);
    source.take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > bytes_max {
        return Err(io::Error::other(format!("longer than {bytes_max} bytes")));
    }
    Ok(bytes)
}

/// The beginning of a file's BLAKE3, by which people tell two versions apart.
fn digest(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().chars().take(16).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::hops::Hops;
    use crate::lab::TempFolder;
    use crate::outcome::Failure;
    use crate::url::Url;

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
        assert!(files.to_string().ends_with("2 entries"), "{files}");
        let scope = files.of(&Scope::default());
        let refused = |text: &str| scope.refuses(&Url::parse(text).expect("a URL"), Hops::default());
        assert_eq!(refused("http://x.b.test/"), Some(Failure::Blocked));
        assert_eq!(refused("http://c.test/"), None);
    }
}
