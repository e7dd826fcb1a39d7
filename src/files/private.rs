//! Files and directories that a crawl writes to its directory.
//!
//! Decides: symbolic links are not followed, because a user who can create one where a crawl will write would choose
//! what it overwrites. Pages may be private: files are for their owner and group, 0640, directories 0750; the umask
//! may remove more.
//! Limits: only the last part of a path is checked; an operator's link to a whole directory is followed, but not one
//! that another user made ([`made_by_another`]).

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt as _, MetadataExt as _, OpenOptionsExt};
use std::path::Path;

/// Mode of a new file.
pub const FILE_MODE: u32 = 0o640;
/// Mode of a new directory.
const DIR_MODE: u32 = 0o750;

/// Options for writing a file that is not a link.
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(FILE_MODE).custom_flags(libc::O_NOFOLLOW);
    options
}

/// Opens `path` with `options`. If it is a link, or a pipe, where opening would wait for a reader, the error says so.
pub fn open(options: &OpenOptions, path: &Path) -> io::Result<File> {
    if fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_fifo()) {
        return Err(io::Error::other("it is a pipe, not a plain file"));
    }
    options.open(path).map_err(in_words)
}

/// An empty file for writing; an existing one is truncated.
pub fn create(path: &Path) -> io::Result<File> {
    open(options().create(true).truncate(true), path)
}

/// Creates the directory `path` and missing ones above it.
pub fn create_dirs(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(DIR_MODE).create(path)
}

/// A copy of the file `from` at `to`, overwriting an existing file. Neither may be a link.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(from).map_err(in_words)?;
    io::copy(&mut source, &mut create(to)?).map(drop)
}

/// The user who made the link `path`, if that is neither this process's user nor the owner of the directory that
/// contains it, nor root: the rule of Linux for links in `/tmp` (`fs.protected_symlinks`, proc_sys_fs(5)). Also
/// `None` if it is not a link.
pub fn made_by_another(path: &Path) -> io::Result<Option<u32>> {
    let link = match fs::symlink_metadata(path) {
        Ok(link) if link.is_symlink() => link,
        Ok(_) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let own = fs::metadata("/proc/self")?.uid();
    let of_directory = path.parent().map(fs::metadata).transpose()?.map(|directory| directory.uid());
    let is_trusted = [Some(0), Some(own), of_directory].contains(&Some(link.uid()));
    Ok((!is_trusted).then(|| link.uid()))
}

/// Rewords the system's error about a link for an operator.
pub fn in_words(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(libc::ELOOP) => io::Error::other("it is a symbolic link, which a crawl does not follow"),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use ringcrawl_base::TempFolder;

    #[test]
    fn links_are_refused_and_modes_are_narrow() {
        let temp = TempFolder::new("private");
        let victim = temp.file("victim", "precious");
        let link = temp.path().join("link");
        symlink(&victim, &link).expect("a link");
        let refused = create(&link).expect_err("a link").to_string();
        assert!(refused.contains("symbolic link"), "{refused}");
        assert!(open(options().read(true), &link).is_err());
        assert_eq!(std::fs::read_to_string(&victim).expect("a file"), "precious");
        assert!(copy(&temp.path().join("victim"), &link).is_err() && copy(&link, &temp.path().join("copy")).is_err());
        assert_eq!(std::fs::read_to_string(&victim).expect("a file"), "precious");
        create_dirs(&temp.path().join("a/b")).expect("directories");
        std::fs::set_permissions(&victim, PermissionsExt::from_mode(0o666)).expect("a mode");
        copy(&temp.path().join("victim"), &temp.path().join("a/b/copy")).expect("a file");
        assert_eq!(std::fs::read_to_string(temp.path().join("a/b/copy")).expect("a file"), "precious");
        create(&temp.path().join("a/b/c")).expect("a file");
        let made = std::process::Command::new("mkfifo").arg(temp.path().join("pipe")).status().expect("mkfifo");
        assert!(made.success());
        let refused = create(&temp.path().join("pipe")).expect_err("a pipe").to_string();
        assert_eq!(refused, "it is a pipe, not a plain file");
        let others =
            |path: &str| std::fs::metadata(temp.path().join(path)).expect("there").permissions().mode() & 0o027;
        assert_eq!([others("a"), others("a/b/c"), others("a/b/copy")], [0; 3]);
    }
}
