//! Files that a configuration names, or that belong in a crawl directory.
//!
//! Decides: anything except a plain file is refused on opening. A pipe without a writer would block the start
//! forever, and data read from one is gone if it must be read again.
//! Limits: each file has a maximum length, which the caller sets.
//! Leaves to others: seeds, which may come through a pipe (`boot`), and writing files of a crawl directory
//! (`private`).

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

/// The file at `path`, for reading.
pub fn open(path: &Path) -> io::Result<File> {
    // Without the flag, opening a pipe would wait for a writer; plain files ignore it (open(2)).
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_file() {
        return Ok(file);
    }
    let what = match () {
        () if kind.is_dir() => "a directory",
        () if kind.is_fifo() => "a pipe",
        () => "a device",
    };
    Err(io::Error::other(format!("it is {what}, not a plain file")))
}

/// All of the file at `path`, which must have at most `bytes_max` bytes.
pub fn read(path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
    take(open(path)?, bytes_max)
}

/// The rest of a `source`, which must have at most `bytes_max` bytes.
pub fn take(source: impl Read, bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > bytes_max {
        return Err(io::Error::other(format!("longer than {bytes_max} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::TempFolder;

    #[test]
    fn what_is_no_plain_file_is_refused_at_once() {
        let folder = TempFolder::new("plain-files");
        let pipe = folder.at("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
        assert!(made.success());
        let told = |path: &Path| read(path, 4).expect_err("no plain file").to_string();
        for (path, what) in
            [(Path::new(&pipe), "a pipe"), (folder.path(), "a directory"), (Path::new("/dev/null"), "a device")]
        {
            assert_eq!(told(path), format!("it is {what}, not a plain file"));
        }
        assert!(told(Path::new(&folder.at("none"))).starts_with("No such file"));
        assert_eq!(told(Path::new(&folder.file("long", "12345"))), "longer than 4 bytes");
        assert_eq!(read(Path::new(&folder.file("right", "1234")), 4).expect("a file"), b"1234");
    }
}
