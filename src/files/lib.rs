//! Files that an operator names, and files of a crawl directory.
//!
//! Decides: only plain files are read ([`plain`]); written files are never links and are for their owner and group
//! ([`private`]). Lists are read line by line, packed or not ([`lines`]).
//!
//! ```
//! use ringcrawl_files::plain;
//!
//! let error = plain::read("/dev/null".as_ref(), 1024).expect_err("a device");
//! assert_eq!(error.to_string(), "it is a device, not a plain file");
//! ```

pub mod lines;
pub mod plain;
pub mod private;
