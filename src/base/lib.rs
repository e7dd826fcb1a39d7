//! Shared by all of ringcrawl's crates: time, closed lists, small tables, a seeded generator. It does not know what a
//! crawl is and depends on nothing.
//!
//! ```
//! use ringcrawl_base::time::{Duration, Instant};
//!
//! let due = Instant::ZERO + Duration::from_secs(3);
//! assert_eq!(due.since(Instant::ZERO), Duration::from_millis(3_000));
//! ```

mod blemish;
mod choice;
mod failure;
mod fast_range;
pub mod fuel;
mod grouped;
mod int_map;
pub mod preferences;
mod recent_hashes;
mod rng;
pub mod stage;
mod temp_folder;
pub mod time;
mod truncated;

pub use blemish::Blemish;
pub use failure::Failure;
pub use fast_range::fast_range;
pub use grouped::grouped;
pub use int_map::{IntMap, IntSet, Spread};
pub use recent_hashes::RecentHashes;
pub use rng::Rng;
pub use temp_folder::TempFolder;
pub use truncated::Truncated;
