//! The loop's alarm clock.
//!
//! Decides: one sleeping task for the whole shard. It sleeps in short pieces, so that an earlier alarm is heard
//! without a timer of its own: an alarm may be late by one piece.

use std::cell::Cell;
use std::rc::Rc;

use super::signal::Signal;
use crate::ring;
use crate::time::{Duration, Instant};

/// The alarm.
#[derive(Debug)]
pub struct Ticker {
    at: Cell<Instant>,
    armed: Signal,
}

impl Default for Ticker {
    fn default() -> Ticker {
        Ticker { at: Cell::new(Instant::NEVER), armed: Signal::default() }
    }
}

impl Ticker {
    /// Sets the alarm to `at`, unless it is set to an earlier instant.
    pub fn arm(&self, at: Instant) {
        if at < self.at.get() {
            let was_off = self.at.replace(at) == Instant::NEVER;
            if was_off {
                self.armed.notify();
            }
        }
    }

    /// Raises `signal` at each alarm, for ever.
    pub async fn run(self: Rc<Self>, signal: Rc<Signal>) {
        loop {
            let (at, now) = (self.at.get(), ring::now());
            if at == Instant::NEVER {
                self.armed.wait().await;
            } else if at <= now {
                self.at.set(Instant::NEVER);
                signal.notify();
            } else {
                ring::sleep_until(at.min(now + PIECE)).await;
            }
        }
    }
}

const PIECE: Duration = Duration::from_millis(5);
