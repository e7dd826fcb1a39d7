//! `ringcrawl inspect links`: the links of a document as the crawler sees them.
//!
//! Decides: a sitemap or a feed, also in a gzip file, is read as such, and so is text if `--content-type` says that
//! it is text. Everything else is read as HTML.
//! Prints `KIND<TAB>absolute URL` a line, in document order, duplicates kept, of any scheme and with fragments. These
//! are the page's own links, before the crawler asks whether it may follow them. A sitemap's links are printed once
//! each, the newest first, and those of lists are http or https. References that are not URLs are left out and
//! counted on standard error.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use crate::cli::FAILED;
use crate::cli::output::{Stdout, tell};
use ringcrawl_config::{self as config, Sitemaps};
use ringcrawl_html::{self as html, Document, Kind, Kinds, Page, Summary, Xml};
use ringcrawl_http as http;
use ringcrawl_url::{Absolute, Url};

/// Arguments of the subcommand.
#[derive(clap::Args, Debug)]
pub struct Links {
    /// Absolute URL of the page.
    #[arg(long, value_name = "URL", value_parser = Absolute::parse)]
    base: Absolute,
    /// Value of the Content-Type header.
    /// For its charset, and to tell text.
    #[arg(long, value_name = "TYPE")]
    content_type: Option<String>,
    /// Kinds of links: a, svg-a, area, link, link:REL, frame, iframe, img, srcset, script, refresh, base, canonical; of sitemaps
    /// loc, of their indexes sitemap, of feeds item, of text line.
    #[arg(long, value_name = "LIST", default_value_t = Kinds::DEFAULT)]
    kinds: Kinds,
    /// The document; standard input when left out or `-`.
    file: Option<PathBuf>,
}

/// Maximum number of bytes read from a page: a memory bound for an operator's mistake, far beyond any
/// `body_bytes_max`.
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
    if let Some((found, summary)) = listed(arguments, &body) {
        found.iter().try_for_each(|(kind, url)| writeln!(stdout, "{}\t{url}", kind.name()))?;
        stdout.flush()?;
        if summary.bad + summary.dropped > 0 {
            tell!("ringcrawl: {} references are not URLs, {} exceed the limits", summary.bad, summary.dropped);
        }
        return Ok(());
    }
    let summary = html::scan_raw(&body, content_type, &arguments.base, &arguments.kinds, &mut |link| {
        let Ok(url) = link.url else { return };
        if written.is_ok() {
            let colon = if link.kind == Kind::Link { ":" } else { "" };
            written = writeln!(stdout, "{}{colon}{}\t{url}", link.kind.name(), link.rel);
        }
    });
    written?;
    stdout.flush()?;
    if summary.bad > 0 {
        tell!("ringcrawl: {} references are not URLs", summary.bad);
    }
    Ok(())
}

/// The contents of a sitemap, a feed or a list of URLs; `None` when the document is none of these.
fn listed(arguments: &Links, body: &[u8]) -> Option<(Vec<(Kind, Url)>, Summary)> {
    let url = Url::parse(&arguments.base.to_string()).ok()?;
    let content_type = arguments.content_type.as_deref();
    let mut document = Document::of(content_type.map(str::as_bytes), body);
    let mut body = Cow::Borrowed(body);
    if document == Document::Gzip {
        body = http::gunzip(&body, &http::Limits::default()).into();
        document = Document::of(None, &body);
    }
    let page = Page { body: &body, content_type, url: &url, agent: "" };
    let mut found = Vec::new();
    let budget = &mut config::Links { sitemaps: Sitemaps::Robots, ..config::Links::default() }.budget();
    let out = &mut |kind, url| found.push((kind, url));
    let summary = match document {
        Document::Xml => match html::scan_xml(&page, &arguments.kinds, budget, out) {
            Xml::Listing(summary) => *summary,
            Xml::Html | Xml::Other => return None,
        },
        Document::Text if content_type.is_some() => html::scan_lines(&page, &arguments.kinds, budget, out),
        _ => return None,
    };
    Some((found, summary))
}

fn read(arguments: &Links) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    match arguments.file.as_deref().filter(|file| file.as_os_str() != "-") {
        Some(file) => File::open(file)?.take(PAGE_BYTES_MAX).read_to_end(&mut body)?,
        None => io::stdin().lock().take(PAGE_BYTES_MAX).read_to_end(&mut body)?,
    };
    Ok(body)
}
