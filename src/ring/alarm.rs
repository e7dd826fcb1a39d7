//! A movable alarm: the building block of a shard's timers.
//!
//! Decides: one sleep at a time, until the earliest instant asked for. Setting the alarm earlier wakes the sleeper,
//! which goes to sleep again; setting it later changes nothing. An idle shard sleeps in pieces of [`SLEEP_MAX`], and
//! after each checks whether the machine was suspended. Short naps would wake each of 64 shards hundreds of times a
//! second.
//! Invariants: `wait` never returns before the alarm's instant, and turns the alarm off as it returns.
//! Limits: accurate to about two milliseconds, like the runtime's timer; one `wait` at a time, on the alarm's own
//! thread.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Poll, Waker};

use super::clock::SLEEP_MAX;
use super::now;
use ringcrawl_base::time::Instant;

/// An alarm, off at first.
#[derive(Debug)]
pub struct Alarm {
    at: Cell<Instant>,
    sleeper: RefCell<Option<Waker>>,
}

impl Default for Alarm {
    fn default() -> Alarm {
        Alarm { at: Cell::new(Instant::NEVER), sleeper: RefCell::default() }
    }
}

impl Alarm {
    /// Sets the alarm to `at`, unless it is set to an earlier instant.
    pub fn set(&self, at: Instant) {
        if at < self.at.get() {
            self.at.set(at);
            let sleeper = self.sleeper.borrow_mut().take();
            if let Some(sleeper) = sleeper {
                sleeper.wake();
            }
        }
    }

    /// Returns when the alarm's instant has come; waits forever while it is off. Inside `Runtime::block_on` only.
    pub async fn wait(&self) {
        let mut sleep = pin!(tokio::time::sleep(std::time::Duration::ZERO));
        let mut asleep_until = Instant::ZERO;
        poll_fn(|context| {
            loop {
                let (at, now) = (self.at.get(), now());
                if at <= now {
                    self.at.set(Instant::NEVER);
                    return Poll::Ready(());
                }
                *self.sleeper.borrow_mut() = Some(context.waker().clone());
                if at == Instant::NEVER {
                    return Poll::Pending;
                }
                if at != asleep_until {
                    asleep_until = at;
                    super::reactor::expect(at);
                    sleep.as_mut().reset(tokio::time::Instant::now() + at.since(now).min(SLEEP_MAX));
                }
                if sleep.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                asleep_until = Instant::ZERO;
            }
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::super::{Runtime, spawn};
    use super::*;
    use ringcrawl_base::time::Duration;

    #[test]
    fn goes_off_at_the_earliest_instant_and_is_off_then() {
        Runtime::new(8).expect("io_uring").block_on(async {
            let alarm = Rc::new(Alarm::default());
            let start = now();
            alarm.set(start + Duration::from_secs(60));
            let other = Rc::clone(&alarm);
            let setter = spawn(async move {
                super::super::sleep_until(start + Duration::from_millis(20)).await;
                other.set(start + Duration::from_millis(40));
                other.set(start + Duration::from_millis(400));
            });
            alarm.wait().await;
            let took = now().since(start);
            assert!(took >= Duration::from_millis(40) && took < Duration::from_secs(30), "{took:?}");
            setter.await.expect("task");
            assert_eq!(alarm.at.get(), Instant::NEVER);
            alarm.set(start);
            alarm.wait().await;
        });
    }
}
