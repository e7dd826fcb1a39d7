//! `ringcrawl store`: reads a crawl's stored pages.
//!
//! Decides: exit codes (0 fine; 1 problems, nothing found, or an output that cannot be written; 2 usage, a path that
//! cannot be read, or a directory that is no crawl and has no segments). A reader that closes the pipe early, as
//! `head` does, is no error.
//! Leaves to others: what each subcommand prints (`ls`, `cat`, `verify`, `export`), reading (`ringcrawl_warc`).

mod cat;
mod export;
mod filter;
mod ls;
mod verify;
mod which;
mod wishes;

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::output::{Stdout, tell};
use super::{DONE, FAILED, MISTAKE};
pub(super) use cat::latest;

use ringcrawl_crawler::boot::is_crawl;
use ringcrawl_warc::folder::Folder;
use ringcrawl_warc::segments::OPEN;

/// Arguments of the subcommand.
#[derive(clap::Args, Debug)]
pub struct Store {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    /// List captures, one a line: time, status, media type, payload bytes, URL.
    Ls(ls::Ls),
    /// Print the payload of a page: of its latest capture, or the one nearest to a time.
    Cat(cat::Cat),
    /// Check frames, records, digests and indexes.
    Verify(verify::Verify),
    /// Convert segments to warc.gz or warc.zst, each with its index.
    Export(export::Export),
    /// Print the index of a segment, rebuilt from its records.
    Index {
        /// A segment.
        file: PathBuf,
    },
}

/// Runs it.
pub fn run(arguments: Store) -> ExitCode {
    let mut out = Stdout::new();
    let result = match arguments.command {
        Command::Ls(ls) => ls::run(&ls, &mut out),
        Command::Cat(cat) => cat::run(&cat, &mut out),
        Command::Verify(verify) => verify::run(&verify, &mut out),
        Command::Export(export) => export::run(&export, &mut out),
        Command::Index { file } => index(&file, &mut out),
    };
    match result.and_then(|code| out.flush().map(|()| code)) {
        Ok(code) => ExitCode::from(code),
        Err(error) => ExitCode::from(out.code_of(&error).unwrap_or_else(|| {
            tell!("ringcrawl store: {error}");
            MISTAKE
        })),
    }
}

/// A line of an index with its line end; empty at the end of the file.
fn read_line(lines: &mut BufReader<File>) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    lines.take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
    Ok(line)
}

fn index(file: &std::path::Path, out: &mut impl Write) -> io::Result<u8> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let input = opened_file(file).map_err(|error| with_path(file, &error))?;
    let recovered = ringcrawl_warc::recover::recover(&input, name.strip_suffix(OPEN).unwrap_or(&name))?;
    out.write_all(&recovered.index)?;
    let left = input.metadata()?.len().saturating_sub(recovered.valid_bytes);
    let is_whole = recovered.damaged == 0 && (left == 0 || name.ends_with(OPEN));
    if !is_whole || recovered.records == 0 {
        let (records, damaged) = (recovered.records, recovered.damaged);
        tell!(
            "{}: {records} records, {damaged} damaged places before the last record, {left} bytes after it",
            file.display()
        );
    }
    Ok(if is_whole && recovered.records > 0 { DONE } else { FAILED })
}

/// All segments under all paths.
fn segments(paths: &[PathBuf]) -> io::Result<Vec<PathBuf>> {
    folder(paths).map(|folder| folder.segments)
}

/// All files under all paths; an error names the path. A directory without segments must be a crawl: for any other
/// directory, an empty list would be misleading.
fn folder(paths: &[PathBuf]) -> io::Result<Folder> {
    let mut all = Folder::default();
    for path in paths {
        let found = Folder::list(path)?;
        if found.segments.is_empty() && !is_crawl(path) {
            let why =
                "neither a crawl (no crawl.json) nor a directory of segments (no *.warc, *.warc.gz or *.warc.zst)";
            return Err(with_path(path, &io::Error::other(why)));
        }
        if found.segments.is_empty() {
            tell!("{}: no segments yet", path.display());
        }
        all.segments.extend(found.segments);
        all.oddities.extend(found.oddities);
    }
    Ok(all)
}

/// Opens the segment at `path` under its present name: a segment that was open when listed may have been closed
/// since.
fn opened<T>(path: &Path, open: impl Fn(&Path) -> io::Result<T>) -> io::Result<T> {
    open(path).or_else(|error| match path.to_str().and_then(|path| path.strip_suffix(OPEN)) {
        Some(closed) if error.kind() == io::ErrorKind::NotFound => open(Path::new(closed)),
        _ => Err(error),
    })
}

fn opened_file(path: &Path) -> io::Result<File> {
    let open: fn(&Path) -> io::Result<File> = |path| File::open(path);
    opened(path, open)
}

fn with_path(path: &std::path::Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// A record's text as part of one line: characters that would end the line or the column are replaced.
fn column(text: &str) -> String {
    text.replace(['\t', '\n', '\r'], "\u{fffd}")
}

/// Length of the longest index line in bytes: the longest URL twice, escaped.
const LINE_BYTES_MAX: u64 = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::TempFolder;

    #[test]
    fn a_segment_may_be_closed_while_a_list_is_worked_off() {
        let folder = TempFolder::new("store");
        let open = PathBuf::from(folder.at("a.warc.gz.open"));
        let read = |path: &Path| std::fs::read_to_string(path);
        assert!(opened(&open, read).is_err_and(|error| error.kind() == io::ErrorKind::NotFound));
        folder.file("a.warc.gz", "closed");
        assert_eq!(opened(&open, read).unwrap(), "closed");
        folder.file("a.warc.gz.open", "open");
        assert_eq!(opened(&open, read).unwrap(), "open");
    }

    #[test]
    fn directories_without_segments_must_be_crawls() {
        let folder = TempFolder::new("store");
        let root = folder.path();
        std::fs::create_dir_all(root.join("other/deep")).unwrap();
        std::fs::create_dir_all(root.join("crawl/shard-00/segments")).unwrap();
        std::fs::write(root.join("crawl/crawl.json"), "{}").unwrap();
        let other = root.join("other");
        std::fs::write(other.join("notes.txt"), "no segment").unwrap();
        let error = segments(std::slice::from_ref(&other)).unwrap_err().to_string();
        for word in [&*other.to_string_lossy(), "crawl.json", "*.warc.zst"] {
            assert!(error.contains(word), "{error}");
        }
        assert!(segments(&[root.join("crawl")]).unwrap().is_empty());
        std::fs::write(other.join("deep/a.warc.gz"), "").unwrap();
        assert_eq!(segments(&[root.join("crawl"), other.clone()]).unwrap(), [other.join("deep/a.warc.gz")]);
    }
}
