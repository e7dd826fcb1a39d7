//! `ringcrawl inspect links`: the links of an HTML page as the crawler sees them.
//!
//! Prints `KIND<TAB>absolute URL` a line, in document order, duplicates kept, of any scheme and with fragments: what
//! the page says, before the crawler asks whether it may go there. References that are no URL are left out, and
//! counted on standard error.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use crate::cli::FAILED;
use crate::cli::output::{Stdout, tell};
use crate::links::{self, Kind, Kinds};
use crate::url::Absolute;

/// Arguments of the subcommand.
#[derive(clap::Args, Debug)]
pub struct Links {
    /// Absolute URL of the page.
    #[arg(long, value_name = "URL", value_parser = Absolute::parse)]
    base: Absolute,
    /// Value of the Content-Type header, for its charset.
    #[arg(long, value_name = "TYPE")]
    content_type: Option<String>,
    /// Kinds of links: a, svg-a, area, link, link:REL, frame, iframe, img, srcset, refresh, base, canonical.
    #[arg(long, value_name = "LIST", default_value_t = Kinds::DEFAULT)]
    kinds: Kinds,
    /// HTML bytes; standard input when left out or `-`.
    file: Option<PathBuf>,
}

/// Bytes read from a page at most: a memory bound for an operator's mistake, far beyond any `body_bytes_max`.
const PAGE_BYTES_MAX: u64 = 1 << 30;

/// Runs it.
pub fn run(arguments: Links) -> ExitCode {
    let mut stdout = Stdout::new();
    match print(&arguments, &mut stdout) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => ExitCode::from(stdout.code_of(&error).unwrap_or_else(|| {
            let file = arguments.file.as_deref().map_or("standard input".into(), |file| file.to_string_lossy());
            tell!("ringcrawl: {file}: {error}");
            FAILED
        })),
    }
}

fn print(arguments: &Links, stdout: &mut Stdout) -> io::Result<()> {
    let body = read(arguments)?;
    let mut written = Ok(());
    let content_type = arguments.content_type.as_deref();
    let summary = links::scan_raw(&body, content_type, &arguments.base, &arguments.kinds, &mut |link| {
        let Ok(url) = link.url else { return };
        if written.is_ok() {
            let colon = if link.kind == Kind::Link { ":" } else { "" };
            written = writeln!(stdout, "{}{colon}{}\t{url}", link.kind.name(), link.rel);
        }
    });
    written?;
    stdout.flush()?;
    if summary.bad > 0 {
        tell!("ringcrawl: {} references are no URL", summary.bad);
    }
    Ok(())
}

fn read(arguments: &Links) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    match arguments.file.as_deref().filter(|file| file.as_os_str() != "-") {
        Some(file) => File::open(file)?.take(PAGE_BYTES_MAX).read_to_end(&mut body)?,
        None => io::stdin().lock().take(PAGE_BYTES_MAX).read_to_end(&mut body)?,
    };
    Ok(body)
}
