//! The lines of a text file, which may be packed with gzip or zstd.
//!
//! Decides: the first bytes determine how a file is packed, not its name. Empty lines and those that begin with `#`
//! are skipped; every other line counts, and an error gives its number.
//! Limits: lines of [`LINE_BYTES_MAX`] bytes; only plain files, as they may be read twice; a zstd window of 128 MiB.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use flate2::bufread::MultiGzDecoder;

use crate::plain;

/// Why there is no next line.
#[derive(Debug, thiserror::Error)]
pub enum LinesError {
    /// The file cannot be read.
    #[error("{}: {error}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// A line is invalid.
    #[error("{}:{number}: {why}", path.display())]
    Line {
        /// In which file.
        path: PathBuf,
        /// Which, from 1.
        number: u64,
        /// What is wrong with it.
        why: String,
    },
}

/// A file's lines.
pub struct Lines {
    path: PathBuf,
    reader: Box<dyn BufRead>,
    line: Vec<u8>,
    number: u64,
    /// Bytes of the file read so far, and the last count that was reported.
    read: Rc<Cell<u64>>,
    told: u64,
    file_bytes: u64,
}

/// A file that counts the bytes read.
struct Counted {
    file: File,
    read: Rc<Cell<u64>>,
}

impl Read for Counted {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(out)?;
        self.read.set(self.read.get() + count as u64);
        Ok(count)
    }
}

impl Lines {
    /// Those of the file at `path`.
    ///
    /// # Errors
    /// It cannot be opened, or is no plain file.
    pub fn open(path: &Path) -> Result<Lines, LinesError> {
        let named = |error| LinesError::File { path: path.to_owned(), error };
        let file = plain::open(path).map_err(named)?;
        let file_bytes = file.metadata().map_err(named)?.len();
        let read = Rc::new(Cell::new(0));
        let mut plain = BufReader::with_capacity(BUFFER_BYTES, Counted { file, read: Rc::clone(&read) });
        let reader: Box<dyn BufRead> = match plain.fill_buf().map_err(named)? {
            [0x1f, 0x8b, ..] => Box::new(BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(plain))),
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
                let decoder = zstd::stream::read::Decoder::with_buffer(plain).map_err(named)?;
                Box::new(BufReader::with_capacity(BUFFER_BYTES, decoder))
            }
            _ => Box::new(plain),
        };
        Ok(Lines { path: path.to_owned(), reader, line: Vec::new(), number: 0, read, told: 0, file_bytes })
    }

    /// The next line that counts; `None` at the end.
    ///
    /// # Errors
    /// The file or this line cannot be read.
    #[expect(clippy::should_implement_trait, reason = "it lends the line")]
    pub fn next(&mut self) -> Result<Option<&str>, LinesError> {
        loop {
            self.line.clear();
            self.number += 1;
            let limited = &mut (&mut self.reader).take(LINE_BYTES_MAX as u64 + 1);
            if let Err(error) = limited.read_until(b'\n', &mut self.line) {
                return Err(self.bad(format!("the file cannot be read any further: {error}")));
            }
            if self.line.is_empty() {
                return Ok(None);
            }
            if self.line.len() > LINE_BYTES_MAX {
                return Err(self.bad(format!("longer than {LINE_BYTES_MAX} bytes")));
            }
            if self.line.ends_with(b"\n") {
                self.line.pop();
            }
            if self.line.ends_with(b"\r") {
                self.line.pop();
            }
            if !self.line.is_empty() && !self.line.starts_with(b"#") {
                break;
            }
        }
        std::str::from_utf8(&self.line).map(Some).map_err(|_| self.bad("not UTF-8"))
    }

    /// Bytes of the file read so far, and its length, if that is worth reporting.
    pub fn progress(&mut self) -> Option<(u64, u64)> {
        let done = self.read.get();
        let is_news = done - self.told >= self.file_bytes / STEPS;
        is_news.then(|| {
            self.told = done;
            (done, self.file_bytes)
        })
    }

    /// An error about the last line returned.
    pub fn bad(&self, why: impl Into<String>) -> LinesError {
        LinesError::Line { path: self.path.clone(), number: self.number, why: why.into() }
    }
}

/// Enough for a line with two of the longest URLs, and the text before them.
const LINE_BYTES_MAX: usize = 256 << 10;
const BUFFER_BYTES: usize = 64 << 10;
/// How often progress is reported.
const STEPS: u64 = 200;

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use ringcrawl_base::TempFolder;

    fn all(path: &Path) -> Result<Vec<String>, LinesError> {
        let mut lines = Lines::open(path)?;
        let mut all = Vec::new();
        while let Some(line) = lines.next()? {
            all.push(line.to_owned());
        }
        Ok(all)
    }

    #[test]
    fn packed_files_are_known_by_their_first_bytes() {
        let folder = TempFolder::new("lines");
        let text = "# a note\n0\t1\r\n\n1\t2\n2\t0";
        let gzip = |text: &str| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish()).expect("memory")
        };
        let zstd = |text: &str| zstd::encode_all(text.as_bytes(), 1).expect("memory");
        let (start, end) = text.split_at(12);
        for bytes in [
            text.as_bytes().to_vec(),
            gzip(text),
            [gzip(start), gzip(end)].concat(),
            zstd(text),
            [zstd(start), zstd(end)].concat(),
        ] {
            let path = folder.path().join("graph.txt");
            std::fs::write(&path, &bytes).expect("a file");
            assert_eq!(all(&path).expect("readable"), ["0\t1", "1\t2", "2\t0"]);
        }
        let path = folder.path().join("empty");
        std::fs::write(&path, "").expect("a file");
        assert_eq!(all(&path).expect("readable"), [""; 0]);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let folder = TempFolder::new("bad-lines");
        let packed = zstd::encode_all(&b"0\t1\n".repeat(9_000)[..], 1).expect("memory");
        let long = [b"a\n".to_vec(), vec![b'x'; LINE_BYTES_MAX + 1]].concat();
        for (bytes, words) in [
            (&b"a\n\n\xff\n"[..], ":3: not UTF-8"),
            (&packed[..packed.len() - 3], "the file cannot be read any further"),
            (&long, ":2: longer than 262144 bytes"),
        ] {
            let path = folder.path().join("bad");
            std::fs::write(&path, bytes).expect("a file");
            let error = all(&path).expect_err("a bad file").to_string();
            assert!(error.contains(words), "{error}");
        }
        assert!(Lines::open(folder.path()).is_err_and(|error| error.to_string().contains("a directory")));
    }
}
