//! What a terminal shows of an experiment while its crawls are made.

use std::io::{self, IsTerminal as _};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::experiment::Treatment;
use ringcrawl::cli::terminal;
use ringcrawl_base::grouped;

/// The bar of all crawls; none where there is no terminal.
pub struct CrawlsBar {
    bar: Option<ProgressBar>,
}

impl CrawlsBar {
    /// For so many crawls.
    pub fn new(count: usize) -> CrawlsBar {
        let bar = io::stderr().is_terminal().then(|| {
            let target = ProgressDrawTarget::stderr_with_hz(10);
            let bar = ProgressBar::with_draw_target(Some(count as u64 * PARTS), target);
            // A template that does not parse is a slip in this file; the plain bar is no reason to stop.
            if let Ok(style) = ProgressStyle::with_template("{bar:30.cyan/black} {percent:>3} % {eta} left  {msg}") {
                bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
            }
            bar
        });
        CrawlsBar { bar }
    }

    /// One of the crawls has fetched so many of the pages that it may.
    pub fn show(&self, treatment: &Treatment, pages: u64, wanted: u64) {
        let Some(bar) = &self.bar else { return };
        let Treatment { partition, mode, order, shards, rng_seed, .. } = treatment;
        let text = format!("{partition} {mode} {order} K={shards} rng {rng_seed}: {} pages", grouped(pages));
        bar.set_message(terminal::shown(&text));
        let whole = bar.position() / PARTS * PARTS;
        bar.set_position(whole + (PARTS - 1).min(PARTS * pages / wanted.max(1)));
    }

    /// The crawl is over.
    pub fn over(&self) {
        if let Some(bar) = &self.bar {
            bar.set_position((bar.position() / PARTS + 1) * PARTS);
        }
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Steps of the bar for each crawl.
const PARTS: u64 = 1_000;
