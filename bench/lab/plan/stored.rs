//! Reads a graph from the stored pages of a crawl's directory.
//!
//! Decides: a page is a URL with a stored response, whatever its status, except robots.txt: each was a request, and a
//! redirect or an error costs shards a message like any other. Its weight is its body as stored, in the last of
//! several captures. Its links are those that the crawler's own reader finds; links to URLs that are not stored are
//! counted and left out.
//! A body that is stored with another URL counts for both, and its links are read for both.
//! Invariants: nothing is written, and a crawl may run at the same time: what it stores later may be missing.
//! Limits: one response in memory; the bodies that revisits refer to must be in the same directory.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_128;

use super::builder::Builder;
use super::{GraphSettings, Memory, PageGraph, PlanError, StepProgress, Watch};
use ringcrawl_brain::page::PageReader;
use ringcrawl_config::Config;
use ringcrawl_url::Url;
use ringcrawl_warc::fault::ReadError;
use ringcrawl_warc::read::{Record, SegmentReader, read_rest};
use ringcrawl_warc::segments::OPEN;

/// What could not be read from a directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Losses {
    /// Damaged places in segments.
    pub damaged: u64,
    /// Responses that are not HTTP/1.
    pub unread: u64,
    /// Pages whose body is in a capture that is missing.
    pub bodiless: u64,
}

/// Reads the graph of the pages in `segments`, and their links by `config`.
pub fn read(
    segments: &[PathBuf],
    config: Config,
    settings: GraphSettings,
    memory: &mut Memory,
    watch: Watch<'_>,
) -> Result<(PageGraph, Losses), PlanError> {
    read_pages(segments, config, settings, memory, watch, false)
}

/// The same, with the targets of links that are not stored: pages without bytes and links.
pub fn read_known(
    segments: &[PathBuf],
    config: Config,
    settings: GraphSettings,
    memory: &mut Memory,
    watch: Watch<'_>,
) -> Result<(PageGraph, Losses), PlanError> {
    read_pages(segments, config, settings, memory, watch, true)
}

fn read_pages(
    segments: &[PathBuf],
    config: Config,
    settings: GraphSettings,
    memory: &mut Memory,
    watch: Watch<'_>,
    has_known: bool,
) -> Result<(PageGraph, Losses), PlanError> {
    let mut reading = Reading {
        builder: Builder::new(settings, memory),
        bytes_max: config.fetch.body_bytes_max.saturating_add(HEAD_BYTES_FREE),
        reader: PageReader::new(Arc::new(config)),
        revisits: HashMap::new(),
        losses: Losses::default(),
        has_known,
    };
    for (what, pass) in [("finding pages", Pass::Pages), ("reading links", Pass::Links)] {
        for (done, segment) in segments.iter().enumerate() {
            watch(StepProgress { what, done: done as u64, total: segments.len() as u64 });
            reading.segment(segment, pass)?;
        }
    }
    reading.losses.bodiless =
        reading.revisits.values().flatten().filter(|page| reading.builder.bytes_of(**page) == 0).count() as u64;
    Ok((reading.builder.finish()?, reading.losses))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// URLs and lengths.
    Pages,
    /// The links of pages.
    Links,
}

struct Reading<'m> {
    builder: Builder<'m>,
    reader: PageReader,
    /// Maximum length of a response that is read, in bytes.
    bytes_max: usize,
    /// Pages whose body is stored with another URL, by the hash of its digest.
    revisits: HashMap<u128, Vec<u32>>,
    losses: Losses,
    /// Whether linked URLs that are not stored are pages.
    has_known: bool,
}

impl Reading<'_> {
    fn segment(&mut self, path: &Path, pass: Pass) -> Result<(), PlanError> {
        let named = |error| PlanError::of_file(path, error);
        let mut segment = match SegmentReader::new(opened(path).map_err(named)?) {
            Ok(segment) => segment,
            Err(ReadError::Io(error)) => return Err(named(error)),
            Err(ReadError::Damaged { .. }) => {
                self.note_damage(pass);
                return Ok(());
            }
        };
        loop {
            let read = match segment.next_record() {
                Ok(None) => return Ok(()),
                Ok(Some(record)) => match (pass, url_of(&record)) {
                    (_, None) => Ok(()),
                    (Pass::Pages, Some(url)) => self.page(&mut segment, &record, &url)?,
                    (Pass::Links, Some(url)) => self.links(&mut segment, &record, &url)?,
                },
                Err(error) => Err(error),
            };
            match read {
                Ok(()) => {}
                Err(ReadError::Io(error)) => return Err(named(error)),
                Err(ReadError::Damaged { .. }) => self.note_damage(pass),
            }
        }
    }

    /// Both passes see the same damage; only one counts it.
    fn note_damage(&mut self, pass: Pass) {
        self.losses.damaged += u64::from(pass == Pass::Links);
    }

    /// Notes a page.
    fn page(
        &mut self,
        segment: &mut SegmentReader<File>,
        record: &Record,
        url: &Url,
    ) -> Result<Result<(), ReadError>, PlanError> {
        let head = match segment.read_http_head() {
            Ok(head) => head,
            Err(error) => return Ok(Err(error)),
        };
        let page = self.builder.page(url, None)?;
        if record.head.kind() == "revisit" {
            let Some(digest) = record.head.get("WARC-Payload-Digest") else { return Ok(Ok(())) };
            self.builder.memory.take(REVISIT_BYTES, "revisits")?;
            self.revisits.entry(xxh3_128(digest.as_bytes())).or_default().push(page);
        } else {
            self.builder.set_bytes(page, record.block_bytes.saturating_sub(head.bytes.len() as u64));
        }
        Ok(Ok(()))
    }

    /// Adds the links of a page, and of the pages with the same body.
    fn links(
        &mut self,
        segment: &mut SegmentReader<File>,
        record: &Record,
        url: &Url,
    ) -> Result<Result<(), ReadError>, PlanError> {
        if record.head.kind() == "revisit" {
            return Ok(Ok(()));
        }
        let mut bytes = Vec::new();
        if let Err(error) = read_rest(segment, &mut bytes, self.bytes_max) {
            return Ok(Err(error));
        }
        let digest = record.head.get("WARC-Payload-Digest").map(|digest| xxh3_128(digest.as_bytes()));
        let others = digest.and_then(|digest| self.revisits.get(&digest)).cloned().unwrap_or_default();
        let page = self.builder.page(url, None)?;
        self.links_of(page, url, &bytes)?;
        for other in others {
            let Ok(url) = Url::from_canonical(self.builder.name_of(other)) else { continue };
            if self.builder.bytes_of(other) == 0 {
                self.builder.set_bytes(other, self.builder.bytes_of(page));
            }
            self.links_of(other, &url, &bytes)?;
        }
        Ok(Ok(()))
    }

    fn links_of(&mut self, page: u32, url: &Url, bytes: &[u8]) -> Result<(), PlanError> {
        let Some(links) = self.reader.links_of_stored(url, bytes) else {
            self.losses.unread += 1;
            return Ok(());
        };
        for (_, link) in links.iter() {
            match self.builder.find(link) {
                Some(target) => self.builder.link(page, target)?,
                None => match Url::from_canonical(link) {
                    Ok(link) if self.has_known => {
                        let target = self.builder.page(&link, None)?;
                        self.builder.link(page, target)?;
                    }
                    _ => self.builder.outside += 1,
                },
            }
        }
        Ok(())
    }
}

/// The URL of a record, if it makes a page.
pub(crate) fn url_of(record: &Record) -> Option<Url> {
    let is_capture = matches!(record.head.kind().as_str(), "response" | "revisit") && record.head.is_http();
    let url = is_capture.then(|| Url::parse(record.head.target_uri()).ok()).flatten()?;
    (url.path_and_query() != "/robots.txt").then_some(url)
}

/// Opens a segment under its present name: a segment that was open when listed may have been closed since.
pub(crate) fn opened(path: &Path) -> io::Result<File> {
    File::open(path).or_else(|error| match path.to_str().and_then(|path| path.strip_suffix(OPEN)) {
        Some(closed) if error.kind() == ErrorKind::NotFound => File::open(closed),
        _ => Err(error),
    })
}

/// Allowance for the head in addition to the longest body.
const HEAD_BYTES_FREE: usize = 1 << 20;
/// Memory of a revisit in the table.
const REVISIT_BYTES: u64 = 96;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::SiteKind;
    use ringcrawl_base::TempFolder;

    fn record(kind: &str, url: &str, digest: &str, block: &str) -> String {
        format!(
            "WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {url}\r\nWARC-Payload-Digest: {digest}\r\n\
             Content-Length: {}\r\n\r\n{block}\r\n\r\n",
            block.len()
        )
    }

    fn page(body: &str) -> String {
        format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{body}")
    }

    fn read_all(segments: &[PathBuf]) -> Result<(PageGraph, Losses), PlanError> {
        let settings = GraphSettings { key: SiteKind::Domain, url_bytes: 50 };
        read(segments, Config::default(), settings, &mut Memory::new(1 << 20), &mut |_| ())
    }

    #[test]
    fn pages_are_read_again() {
        let folder = TempFolder::new("plan-stored");
        let (shared, moved) = (page("<a href=2>2</a>"), "HTTP/1.1 301 Moved\r\nLocation: //b.test/1\r\n\r\n");
        let first = [
            record("warcinfo", "", "", "software: x"),
            record("response", "http://a.test/robots.txt", "r", &page("Sitemap: http://a.test/1")),
            record(
                "response",
                "http://a.test/1",
                "one",
                &page("<a href=/2>2</a><a href=/2#x>2</a><a href=/none>3</a>"),
            ),
            record("request", "http://a.test/1", "", "GET /1 HTTP/1.1\r\n\r\n"),
            record("response", "http://a.test/2", "two", moved),
            record("response", "http://a.test/1", "three", &page("<a href=/2>2</a><a href=//b.test/2>b</a>")),
            record("response", "http://a.test/4", "four", "no HTTP"),
        ];
        let second = [
            record("revisit", "http://b.test/1", "shared", "HTTP/1.1 200 OK\r\n\r\n"),
            record("response", "http://b.test/2", "shared", &shared),
            record("revisit", "http://b.test/3", "elsewhere", "HTTP/1.1 200 OK\r\n\r\n"),
        ];
        // The second segment is closed while the list is processed, and damaged.
        let paths = [folder.file("a.warc", &first.concat()), folder.at("b.warc.open")].map(PathBuf::from);
        folder.file("b.warc", &format!("{}no record\r\n{}", second[..2].concat(), second[2]));
        let (graph, losses) = read_all(&paths).expect("readable");
        let found: Vec<(&str, u64, Vec<&str>)> = graph
            .all()
            .map(|page| {
                let targets = graph.targets_of(page).iter().map(|target| graph.name(*target)).collect();
                (graph.name(page), graph.weights(page)[0], targets)
            })
            .collect();
        let shared_bytes = "<a href=2>2</a>".len() as u64;
        let expected = [
            ("http://a.test/1", 40, vec!["http://a.test/2", "http://b.test/2"]),
            ("http://a.test/2", 0, vec!["http://b.test/1"]),
            ("http://a.test/4", 0, vec![]),
            ("http://b.test/1", shared_bytes, vec!["http://b.test/2"]),
            ("http://b.test/2", shared_bytes, vec![]),
            ("http://b.test/3", 0, vec![]),
        ];
        assert_eq!(found, expected);
        assert_eq!((graph.counts().outside, graph.counts().self_links), (1, 1));
        assert_eq!(losses, Losses { damaged: 1, unread: 1, bodiless: 1 });
    }

    #[test]
    fn files_that_are_none_are_named_or_counted() {
        let folder = TempFolder::new("plan-none");
        let none = PathBuf::from(folder.at("none.warc"));
        assert!(read_all(&[none]).is_err_and(|error| error.to_string().contains("none.warc: No such file")));
        let other = PathBuf::from(folder.file("other.warc", "something else"));
        assert!(matches!(read_all(&[other]), Err(PlanError::NoLinks)));
    }
}
