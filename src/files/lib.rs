//! Files as an operator names them, and as a crawl's directory gets them.
//!
//! Decides: what is read is a plain file ([`plain`]); what is written is no link and is for its owner and group ([`private`]).
//! Lists are read line by line, packed or not ([`lines`]).
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
