//! `store export`: rewrites segments for tools that read another container.
//!
//! Decides: each file becomes one of the same name except for its extension, with its index next to it. A file
//! appears under its name only when it is complete. An existing file is left as it is: for a growing segment it may
//! hold only the beginning. Existing files and damaged records, which are omitted, are reported, and so is an export
//! of nothing: exit code 1. Pages left out because of their own wishes are also reported, but are no problem. By
//! default these are noindex pages, since an export is meant for others to see.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::filter::UrlFilter;
use super::wishes::Wishes;
use super::{opened_file, segments, with_path};
use crate::cli::output::tell;
use crate::cli::{DONE, FAILED};
use ringcrawl_config::SegmentFormat;
use ringcrawl_files::private;
use ringcrawl_warc::Packing;
use ringcrawl_warc::export::{Exported, Taken, export};
use ringcrawl_warc::segments::{INDEX_SUFFIX, OPEN, warc_stem};
use ringcrawl_warc::selection::Noindex;

/// Arguments of `store export`.
#[derive(clap::Args, Debug)]
pub struct Export {
    /// Crawl directories or WARC files.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// warc.gz or warc.zst.
    #[arg(long, value_name = "FORMAT", value_parser = format_of)]
    to: SegmentFormat,
    /// A directory; made if it is not there.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    #[command(flatten)]
    urls: UrlFilter,
    #[command(flatten)]
    wishes: Wishes,
}

fn format_of(text: &str) -> Result<SegmentFormat, String> {
    [SegmentFormat::WarcGz, SegmentFormat::WarcZst]
        .into_iter()
        .find(|format| format.as_str() == text)
        .ok_or_else(|| "expected warc.gz or warc.zst".to_owned())
}

/// Runs it.
pub fn run(arguments: &Export, out: &mut impl Write) -> io::Result<u8> {
    private::create_dirs(&arguments.out).map_err(|error| with_path(&arguments.out, &error))?;
    let (mut all, mut passed_over) = (Exported::default(), 0u64);
    let mut taken = Taken::new(arguments.wishes.selection(Noindex::Omit)).of_urls(arguments.urls.choice());
    for path in segments(&arguments.paths)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = name.strip_suffix(OPEN).unwrap_or(&name);
        let stem = warc_stem(name).unwrap_or(name);
        let Some(written) = write(&path, stem, arguments, &mut taken)? else {
            passed_over += 1;
            continue;
        };
        if written.damaged > 0 {
            tell!("{}: {} damaged places omitted", path.display(), written.damaged);
        }
        all.add(&written);
        writeln!(out, "{}", arguments.out.join(format!("{stem}.{}", arguments.to.as_str())).display())?;
    }
    let Exported { records, about_files, damaged, left_out: [noindex, unwanted], orphans, .. } = all;
    tell!("{records} records exported, {damaged} damaged places omitted");
    if records == about_files && noindex + unwanted == 0 {
        tell!("no record matches the requested URLs");
    }
    if noindex > 0 {
        tell!("{noindex} captures left out by noindex (see --noindex)");
    }
    if unwanted > 0 {
        tell!("{unwanted} captures left out by --respect");
    }
    if orphans > 0 {
        tell!(
            "{orphans} exported revisits lost their bodies, which belong to omitted captures; set store.duplicates = \"store\" for the next crawl"
        );
    }
    if passed_over > 0 {
        tell!("skipped {passed_over} files that exist");
    }
    Ok(if damaged + passed_over == 0 && records > about_files { DONE } else { FAILED })
}

/// Writes one file and its index. `None`: it exists already.
fn write(path: &Path, stem: &str, arguments: &Export, taken: &mut Taken) -> io::Result<Option<Exported>> {
    let name = format!("{stem}.{}", arguments.to.as_str());
    let (target, index) = (arguments.out.join(&name), arguments.out.join(format!("{stem}{INDEX_SUFFIX}")));
    if target.exists() {
        tell!("{}: exists; left unchanged", target.display());
        return Ok(None);
    }
    let packing = Packing { format: arguments.to, zstd_level: 3, gzip_level: 6, ..Packing::default() };
    let open = arguments.out.join(format!("{name}{OPEN}"));
    let input = opened_file(path).map_err(|error| with_path(path, &error))?;
    let mut output = private::create(&open).map_err(|error| with_path(&open, &error))?;
    let from_to =
        |error: &dyn std::fmt::Display| io::Error::other(format!("{} to {}: {error}", path.display(), open.display()));
    let exported = export(input, &mut output, (&name, packing), taken).map_err(|error| from_to(&error))?;
    output.sync_all().map_err(|error| from_to(&error))?;
    let index_open = arguments.out.join(format!("{stem}{INDEX_SUFFIX}{OPEN}"));
    let mut lines = private::create(&index_open).map_err(|error| with_path(&index_open, &error))?;
    let written = lines.write_all(&exported.index).and_then(|()| lines.sync_all());
    // The index is renamed first, so that a file with a segment's name always has its index.
    written.and_then(|()| fs::rename(&index_open, &index)).map_err(|error| with_path(&index_open, &error))?;
    fs::rename(&open, &target).map_err(|error| with_path(&open, &error))?;
    Ok(Some(exported))
}
