//! `--json FILE`: the numbers of a run for programs.
//!
//! Decides: `-` is standard output. That the file can be written is checked before the run, which may take weeks;
//! the check leaves nothing behind. What is not a plain file (a pipe, a terminal) is not tried: to open it may wait for a
//! reader, or be taken for the message itself.
//! Limits: a disk that fills up during the run is noticed at its end.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;

use serde::Serialize;

use super::output::{self, tell};
use super::{DONE, FAILED};

/// Whether `path` can be written later; `made` is a directory that the run makes. An error names option and path.
pub(super) fn check(path: &Path, made: Option<&Path>) -> Result<(), String> {
    if path == Path::new("-") {
        return Ok(());
    }
    let tried = match fs::symlink_metadata(path) {
        Ok(_) => match fs::metadata(path) {
            Ok(file) if file.is_file() || file.is_dir() => File::options().append(true).open(path).map(drop),
            _ => Ok(()),
        },
        Err(error) if error.kind() == ErrorKind::NotFound && is_in(path, made) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => File::create_new(path).and_then(|_| fs::remove_file(path)),
        Err(error) => Err(error),
    };
    tried.map_err(|error| named(path, &error))
}

/// Writes `value` to `path`; the exit code.
pub(super) fn write(path: &Path, value: &impl Serialize) -> u8 {
    let text = match serde_json::to_string_pretty(value) {
        Ok(text) => text + "\n",
        Err(error) => {
            tell!("ringcrawl: {}", named(path, &io::Error::from(error)));
            return FAILED;
        }
    };
    if path == Path::new("-") {
        return output::print(&text);
    }
    match fs::write(path, text) {
        Ok(()) => DONE,
        Err(error) => {
            tell!("ringcrawl: {}", named(path, &error));
            FAILED
        }
    }
}

/// Whether `path` lies directly in `made`, a directory that is not there yet.
fn is_in(path: &Path, made: Option<&Path>) -> bool {
    let Some(made) = made.filter(|made| !made.exists()) else { return false };
    match (std::path::absolute(path), std::path::absolute(made)) {
        (Ok(path), Ok(made)) => path.parent() == Some(&made),
        _ => false,
    }
}

fn named(path: &Path, error: &io::Error) -> String {
    format!("--json: {}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::TempFolder;

    #[test]
    fn a_check_leaves_nothing_and_changes_nothing() {
        let folder = TempFolder::new("json");
        let root = folder.path();
        let (new, old, made) = (root.join("new.json"), root.join("old.json"), root.join("crawl"));
        fs::write(&old, "before").unwrap();
        assert_eq!(check(&new, None), Ok(()));
        assert!(!new.exists());
        assert_eq!(check(&old, None), Ok(()));
        assert_eq!(fs::read_to_string(&old).unwrap(), "before");
        assert_eq!(check(Path::new("-"), None), Ok(()));
        for wrong in [root, &root.join("none/x.json"), &old.join("x.json"), &made.join("x.json")] {
            let error = check(wrong, None).expect_err("not a place for a file");
            assert!(error.starts_with("--json: ") && error.contains(&*wrong.to_string_lossy()), "{error}");
        }
        assert_eq!(check(&made.join("x.json"), Some(&made)), Ok(()), "the crawl makes this directory");
        assert!(check(&made.join("shard-00/x.json"), Some(&made)).is_err());
    }
}
