//! Faults that tests plant to check that the crawl survives them. A release build contains none of this.
//!
//! `RINGCRAWL_PANIC=fetch:20` panics when the 20th fetch begins; `disk:N` at the Nth file operation, `turn:N` in the
//! Nth turn of a shard, all counted over the process. `RINGCRAWL_STALL` has the same form and stops the thread there
//! for two and a half seconds. Only builds with debug assertions check these variables.

/// Triggers the fault planted at `place`, when it is its turn.
#[inline]
pub fn at(place: &str) {
    #[cfg(debug_assertions)]
    planted::at(place);
    let _ = place;
}

#[cfg(debug_assertions)]
mod planted {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// How long a stall lasts.
    const STALL: std::time::Duration = std::time::Duration::from_millis(2_500);

    static PANIC: LazyLock<Option<Planted>> = LazyLock::new(|| Planted::by("RINGCRAWL_PANIC"));
    static STALLED: LazyLock<Option<Planted>> = LazyLock::new(|| Planted::by("RINGCRAWL_STALL"));

    struct Planted {
        place: String,
        left: AtomicU64,
    }

    impl Planted {
        fn by(variable: &str) -> Option<Planted> {
            let text = std::env::var(variable).ok()?;
            let (place, count) = text.split_once(':')?;
            Some(Planted { place: place.to_owned(), left: AtomicU64::new(count.parse().ok()?) })
        }

        fn is_due(&self, place: &str) -> bool {
            self.place == place && self.left.fetch_sub(1, Ordering::Relaxed) == 1
        }
    }

    pub(super) fn at(place: &str) {
        if PANIC.as_ref().is_some_and(|planted| planted.is_due(place)) {
            panic!("a panic planted at {place}");
        }
        if STALLED.as_ref().is_some_and(|planted| planted.is_due(place)) {
            std::thread::sleep(STALL);
        }
    }
}
