//! Why there is no plan.
//!
//! Decides: files, their lines and too little memory are the operator's to mend; what METIS or a disk says is not.

use std::io;
use std::path::{Path, PathBuf};

use ringcrawl_files::lines::LinesError;

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// A file cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// A list cannot be read, or one of its lines is not what it should be.
    #[error(transparent)]
    Lines(#[from] LinesError),
    /// More memory is needed than may be used, or than there is.
    #[error("{what}: {needed} bytes of memory are needed, and {left} of {max} are left (--ram-max)")]
    Memory {
        /// For what.
        what: &'static str,
        /// How much.
        needed: u64,
        /// How much of it is not in use.
        left: u64,
        /// How much there may be in all.
        max: u64,
    },
    /// A graph has more pages than can be counted.
    #[error("more than 4294967294 pages")]
    TooManyPages,
    /// There is no link from one page to another.
    #[error("no link leads from one page to another: there is nothing to plan by")]
    NoLinks,
    /// METIS did not do it.
    #[error("METIS: {vertices} vertices in {parts} parts: {why}")]
    Metis {
        /// Pages or sites.
        vertices: usize,
        /// How many parts were wanted.
        parts: u16,
        /// What it says.
        why: String,
    },
}

impl PlanError {
    /// What befell the file at `path`.
    pub(super) fn of_file(path: &Path, error: io::Error) -> PlanError {
        PlanError::File { path: path.to_owned(), error }
    }
}
