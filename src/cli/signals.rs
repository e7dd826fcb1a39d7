//! Signals, counted while a command runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ringcrawl_crawler::boot;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};

/// Signals received so far.
pub struct Signals {
    /// Signals that end the crawl.
    pub interrupts: Arc<AtomicUsize>,
    /// Signals that reload the files of the scope.
    pub reloads: Arc<AtomicUsize>,
}

/// What SIGHUP means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hangup {
    /// The terminal is lost.
    Drains,
    /// The files of the scope have changed.
    Reloads,
}

/// Counts SIGINT and SIGTERM; the third is left to the system's default action. SIGHUP counts as the first, and is
/// not counted if it is ignored.
///
/// # Errors
/// The signal handlers or the thread cannot be set up.
pub fn watch(hangup: Hangup) -> Result<Signals, String> {
    let (interrupts, reloads) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (seen, asked) = (Arc::clone(&interrupts), Arc::clone(&reloads));
    let of_hangup = (!boot::is_ignored(SIGHUP)).then_some(SIGHUP);
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGUSR1].into_iter().chain(of_hangup))
        .map_err(|error| format!("cannot wait for signals: {error}"))?;
    let wait = move || {
        for signal in signals.forever() {
            if signal == SIGUSR1 || signal == SIGHUP && hangup == Hangup::Reloads {
                asked.fetch_add(1, Ordering::Relaxed);
            } else if signal == SIGHUP {
                seen.fetch_max(1, Ordering::Relaxed);
            } else if seen.fetch_add(1, Ordering::Relaxed) >= 2 {
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
        }
    };
    boot::spawn("signals".to_owned(), wait).map(|_| Signals { interrupts, reloads })
}
