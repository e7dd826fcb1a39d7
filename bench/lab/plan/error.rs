//! Why there is no plan.
//!
//! Decides: you can correct errors in files, in their lines, and too little memory. You cannot correct errors from
//! METIS or a disk.

use std::io;
use std::path::{Path, PathBuf};

use ringcrawl_files::lines::LinesError;

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// A file cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// A list cannot be read, or one of its lines is invalid.
    #[error(transparent)]
    Lines(#[from] LinesError),
    /// More memory is needed than is allowed, or than exists.
    #[error("{what}: {needed} bytes of memory are needed, and {left} of {max} are left (--ram-max)")]
    Memory {
        /// Its purpose.
        what: &'static str,
        /// Bytes needed.
        needed: u64,
        /// Bytes of it still free.
        left: u64,
        /// Bytes allowed in all.
        max: u64,
    },
    /// A graph has more pages than can be counted.
    #[error("more than 4294967294 pages")]
    TooManyPages,
    /// There is no link from one page to another.
    #[error("no link leads from one page to another: there is nothing to plan by")]
    NoLinks,
    /// METIS failed.
    #[error("METIS: {vertices} vertices in {parts} parts: {why}")]
    Metis {
        /// Pages or sites.
        vertices: usize,
        /// Number of parts requested.
        parts: u16,
        /// Its message.
        why: String,
    },
}

impl PlanError {
    /// Wraps an error of the file at `path`.
    pub(super) fn of_file(path: &Path, error: io::Error) -> PlanError {
        PlanError::File { path: path.to_owned(), error }
    }
}
