//! The progress bar of an experiment while its crawls run.

use std::io::{self, IsTerminal as _};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::experiment::Treatment;
use ringcrawl::cli::terminal;
use ringcrawl_base::grouped;

/// The bar of all crawls; absent without a terminal.
pub struct CrawlsBar {
    bar: Option<ProgressBar>,
}

impl CrawlsBar {
    /// A bar for `count` crawls.
    pub fn new(count: usize) -> CrawlsBar {
        let bar = io::stderr().is_terminal().then(|| {
            let target = ProgressDrawTarget::stderr_with_hz(10);
            let bar = ProgressBar::with_draw_target(Some(count as u64 * PARTS), target);
            // A template that does not parse is a bug in this file; the experiment continues with the plain bar.
            if let Ok(style) = ProgressStyle::with_template("{bar:30.cyan/black} {percent:>3} % {eta} left  {msg}") {
                bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
            }
            bar
        });
        CrawlsBar { bar }
    }

    /// Shows how many pages one of the crawls has fetched, of those it may.
    pub fn show(&self, treatment: &Treatment, pages: u64, wanted: u64) {
        let Some(bar) = &self.bar else { return };
        let Treatment { partition, mode, order, shards, rng_seed, .. } = treatment;
        let text = format!("{partition} {mode} {order} K={shards} rng {rng_seed}: {} pages", grouped(pages));
        bar.set_message(terminal::shown(&text));
        let whole = bar.position() / PARTS * PARTS;
        bar.set_position(whole + (PARTS - 1).min(PARTS * pages / wanted.max(1)));
    }

    /// The crawl has ended.
    pub fn over(&self) {
        if let Some(bar) = &self.bar {
            bar.set_position((bar.position() / PARTS + 1) * PARTS);
        }
    }

    /// Removes the bar.
    pub fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Steps of the bar for each crawl.
const PARTS: u64 = 1_000;
