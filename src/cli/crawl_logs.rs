//! The logs of a crawl's directory, for the commands that list what a crawl knows.
//!
//! Decides: the command changes nothing and holds no lock, so a crawl may run in the directory at the same time;
//! every complete record it has written is read. Shards come one after another, each in the order in which its URLs
//! were accepted. Damage and missing files are reported on stderr, and the list continues behind them.
//! Exit codes: 0 everything is intact, 1 something is damaged or missing, 2 the directory is no crawl or cannot be
//! read.
//! Limits: a piece of [`PIECE_BYTES`] at a time, and what `log::listing` keeps of a shard.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::output::{Stdout, tell};
use super::{DONE, FAILED, MISTAKE};
use ringcrawl_base::time::UnixTime;
use ringcrawl_brain::log::{Damage, Listing, ListingStep, LogFile, Owner};
use ringcrawl_crawler::boot::{self, Manifest};

/// A crawl's directory whose logs will be read.
#[derive(Clone, Debug)]
pub(super) struct CrawlLogs {
    root: PathBuf,
    manifest: Manifest,
    is_running: bool,
    has_aside: bool,
}

impl CrawlLogs {
    /// The crawl in `root`.
    pub(super) fn open(root: &Path) -> io::Result<CrawlLogs> {
        let named = |why: &dyn std::fmt::Display| io::Error::other(format!("{}: {why}", root.display()));
        let manifest = boot::read_manifest(root).map_err(io::Error::other)?;
        let manifest = manifest.ok_or_else(|| named(&"not a crawl (no crawl.json)"))?;
        if boot::is_unsettled(root) {
            return Err(named(&"being redistributed to another number of shards; `ringcrawl crawl --dir` finishes it"));
        }
        let is_running = boot::is_held(root).map_err(|error| named(&error))?;
        Ok(CrawlLogs { root: root.to_owned(), manifest, is_running, has_aside: true })
    }

    /// The same without URLs that found no room, of which there may be more than all others.
    pub(super) fn without_aside(self) -> CrawlLogs {
        CrawlLogs { has_aside: false, ..self }
    }

    /// Whether a process works in the directory.
    pub(super) fn is_running(&self) -> bool {
        self.is_running
    }

    /// Why a crawl that runs there waits for disk space, in words; `None` if it does not.
    pub(super) fn shortage(&self, free_bytes_min: u64) -> Option<String> {
        if self.is_running { boot::disk_shortage(&self.root, self.manifest.shards, free_bytes_min) } else { None }
    }

    /// The crawl's secret, under which its sites are numbered.
    pub(super) fn rng_seed(&self) -> u64 {
        self.manifest.rng_seed
    }

    /// Like [`CrawlLogs::read`], for a list. If a running crawl is held up as a whole, the reason goes to stderr
    /// after the list.
    pub(super) fn list(&self, each: &mut dyn FnMut(ListingStep<'_>) -> io::Result<()>) -> io::Result<u8> {
        let mut outage = None;
        let code = self.read(&mut |step| {
            if let ListingStep::Host(note) = &step
                && note.host.is_empty()
            {
                outage = note.health.latest().cloned();
            }
            each(step)
        })?;
        if let Some(outage) = outage.filter(|_| self.is_running) {
            tell!("{}", outage.of_all());
        }
        Ok(code)
    }

    /// Passes the contents of the logs to `each` until it fails; returns the exit code.
    pub(super) fn read(&self, each: &mut dyn FnMut(ListingStep<'_>) -> io::Result<()>) -> io::Result<u8> {
        let mut code = DONE;
        for shard in 0..self.manifest.shards {
            let (read, told) = self.read_shard(shard, each)?;
            told.iter().for_each(|told| tell!("{told}"));
            code = code.max(read);
        }
        Ok(code)
    }

    /// The same in a separate pass that does not report damage.
    pub(super) fn read_silently(&self, each: &mut dyn FnMut(ListingStep<'_>)) -> io::Result<()> {
        (0..self.manifest.shards).try_for_each(|shard| {
            let read = self.read_shard(shard, &mut |step| {
                each(step);
                Ok(())
            });
            read.map(drop)
        })
    }

    /// Returns the exit code and the messages to report.
    fn read_shard(
        &self,
        shard: u16,
        each: &mut dyn FnMut(ListingStep<'_>) -> io::Result<()>,
    ) -> io::Result<(u8, Vec<String>)> {
        let folder = self.root.join(format!("shard-{shard:02}"));
        if !folder.is_dir() {
            let told = format!("{}: the directory is missing: what this shard knew is not listed", folder.display());
            return Ok((FAILED, vec![told]));
        }
        let owner = Owner { crawl: self.manifest.crawl_number(), shard };
        let mut listing = Listing::new(owner, self.is_running);
        if !self.has_aside {
            listing = listing.without_aside();
        }
        let mut open: Option<(LogFile, File)> = None;
        let (mut piece, mut result) = (Vec::new(), Ok(()));
        while let Some((log, position)) = listing.next_read() {
            let path = folder.join(log.to_string());
            let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
            piece.clear();
            if open.as_ref().is_none_or(|(of, _)| *of != log) {
                open = match File::open(&path) {
                    Ok(file) => Some((log, file)),
                    // Nothing was written yet; if something was, the other log reports the loss.
                    Err(error) if error.kind() == ErrorKind::NotFound => None,
                    Err(error) => return Err(named(error)),
                };
            }
            if let Some((_, file)) = &mut open {
                file.seek(SeekFrom::Start(position)).map_err(named)?;
                file.take(PIECE_BYTES).read_to_end(&mut piece).map_err(named)?;
            }
            let read = listing.read(&piece, &mut |step| {
                if result.is_ok() {
                    result = each(step);
                }
            });
            std::mem::replace(&mut result, Ok(()))?;
            if let Err(why) = read {
                let told = format!("{}/{why}; the shard is not listed any further", folder.display());
                return Ok((FAILED, vec![told]));
            }
        }
        Ok(of_damage(&folder, &listing.finish()))
    }
}

/// Returns the exit code and the differences from what was written. Every kill may leave a torn end.
fn of_damage(folder: &Path, damage: &Damage) -> (u8, Vec<String>) {
    let (shard, mut told) = (folder.display(), Vec::new());
    for (log, bytes) in &damage.torn {
        told.push(format!("{shard}/{log}: the last {bytes} bytes are incomplete; the next run removes them"));
    }
    for (log, bytes) in &damage.damaged {
        told.push(format!("{shard}/{log}: {bytes} bytes are damaged"));
    }
    for (count, what) in [
        (damage.urls_lost, "URLs are missing from the list"),
        (damage.ends_lost, "URLs may be listed as waiting although they ended: entries about their ends are missing"),
    ] {
        if count > 0 {
            told.push(format!("{shard}: {count} {what}"));
        }
    }
    let is_whole = damage.damaged.is_empty() && damage.urls_lost == 0 && damage.ends_lost == 0;
    (if is_whole { DONE } else { FAILED }, told)
}

/// The end of `ringcrawl COMMAND`, which wrote its list to `out`.
pub(super) fn end(command: &str, mut out: Stdout, result: io::Result<u8>) -> ExitCode {
    match result.and_then(|code| out.flush().map(|()| code)) {
        Ok(code) => ExitCode::from(code),
        Err(error) => ExitCode::from(out.code_of(&error).unwrap_or_else(|| {
            tell!("ringcrawl {command}: {error}");
            MISTAKE
        })),
    }
}

/// A time in seconds since 1970 as text in UTC, to the second.
pub(super) fn iso(seconds: u64) -> String {
    UnixTime::from_micros(seconds.saturating_mul(1_000_000)).to_iso().replace(".000000Z", "Z")
}

const PIECE_BYTES: u64 = 1 << 20;
