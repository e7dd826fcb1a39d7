//! `--json FILE`: the numbers of a run for programs.
//!
//! Decides: `-` is standard output. Whether the file can be written is checked before the run, which may take weeks;
//! the check leaves nothing behind. Anything but a plain file (a pipe, a terminal) is not tried: opening it may block
//! until there is a reader, or the reader may take the attempt for the message itself. A file in the crawl's
//! directory is written as all files there: no link is followed, and its mode is 0640.
//! Limits: a disk that fills up during the run is noticed at its end.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;

use serde::Serialize;

use super::output::{self, tell};
use super::{DONE, FAILED};
use ringcrawl_files::private;

/// Whether `path` can be written later; `made` is a directory that the run creates or continues in. An error names
/// option and path.
pub(super) fn check(path: &Path, made: Option<&Path>) -> Result<(), String> {
    if path == Path::new("-") {
        return Ok(());
    }
    let tried = match fs::symlink_metadata(path) {
        Ok(_) => match fs::metadata(path) {
            Ok(file) if file.is_file() && made.is_some_and(|dir| is_under(path, dir)) => {
                private::open(&private::options(), path).map(drop)
            }
            Ok(file) if file.is_file() || file.is_dir() => File::options().append(true).open(path).map(drop),
            _ => Ok(()),
        },
        Err(error) if error.kind() == ErrorKind::NotFound && is_in(path, made) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => File::create_new(path).and_then(|_| fs::remove_file(path)),
        Err(error) => Err(error),
    };
    tried.map_err(|error| named(path, &error))
}

/// Writes `value` to `path`; in the crawl's directory `dir`, as all files there are written. Returns the exit code.
pub(super) fn write(path: &Path, value: &impl Serialize, dir: Option<&Path>) -> u8 {
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
    let written = match dir.is_some_and(|dir| is_under(path, dir)) {
        true => private::create(path).and_then(|mut file| file.write_all(text.as_bytes())),
        false => fs::write(path, text),
    };
    match written {
        Ok(()) => DONE,
        Err(error) => {
            tell!("ringcrawl: {}", named(path, &error));
            FAILED
        }
    }
}

/// Whether `path` lies directly in `made`, a directory that does not exist yet.
fn is_in(path: &Path, made: Option<&Path>) -> bool {
    let Some(made) = made.filter(|made| !made.exists()) else { return false };
    match (std::path::absolute(path), std::path::absolute(made)) {
        (Ok(path), Ok(made)) => path.parent() == Some(&made),
        _ => false,
    }
}

/// Whether `path` lies in `dir` or below, under any name.
fn is_under(path: &Path, dir: &Path) -> bool {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    matches!((fs::canonicalize(parent), fs::canonicalize(dir)), (Ok(parent), Ok(dir)) if parent.starts_with(&dir))
}

fn named(path: &Path, error: &io::Error) -> String {
    format!("--json: {}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use ringcrawl_base::TempFolder;

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

    #[test]
    fn no_link_is_followed_in_a_crawl() {
        let folder = TempFolder::new("json-link");
        let root = folder.path();
        let (victim, dir, link) = (root.join("victim"), root.join("crawl"), root.join("crawl/x.json"));
        fs::write(&victim, "precious").unwrap();
        fs::create_dir(&dir).unwrap();
        std::os::unix::fs::symlink(&victim, &link).unwrap();
        let error = check(&link, Some(&dir)).expect_err("a link");
        assert!(error.contains("symbolic link"), "{error}");
        assert_eq!(write(&root.join("crawl/../crawl/x.json"), &1, Some(&dir)), FAILED);
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert_eq!(write(&dir.join("y.json"), &1, Some(&dir)), DONE);
        let mode = fs::metadata(dir.join("y.json")).unwrap().permissions().mode();
        assert_eq!(mode & 0o027, 0);
        // Elsewhere the file is the operator's own.
        assert_eq!((check(&link, None), write(&link, &2, None)), (Ok(()), DONE));
        assert_eq!(fs::read_to_string(&victim).unwrap(), "2\n");
    }
}
