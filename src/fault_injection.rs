//! Faults of our own, planted by tests to see that the crawl survives them. Nothing in a release build.
//!
//! `RINGCRAWL_PANIC=fetch:20` panics when the 20th fetch begins; `disk:N` at the Nth operation on files, `turn:N` in the
//! Nth turn of a shard, all counted over the process. Only builds with debug assertions look.

/// Panics when it is the turn of `place`.
#[inline]
pub fn panic_at(place: &str) {
    #[cfg(debug_assertions)]
    planted::panic_at(place);
    let _ = place;
}

#[cfg(debug_assertions)]
mod planted {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static PLANTED: LazyLock<Option<(String, AtomicU64)>> = LazyLock::new(|| {
        let text = std::env::var("RINGCRAWL_PANIC").ok()?;
        let (place, count) = text.split_once(':')?;
        Some((place.to_owned(), AtomicU64::new(count.parse().ok()?)))
    });

    pub(super) fn panic_at(place: &str) {
        if let Some((planted, left)) = &*PLANTED
            && planted == place
            && left.fetch_sub(1, Ordering::Relaxed) == 1
        {
            panic!("a panic planted at {place}");
        }
    }
}
