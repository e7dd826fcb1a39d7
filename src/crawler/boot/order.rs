//! What a crawl is started with, and what is left when one of its rounds has ended.

use std::path::PathBuf;

use super::dir_error::DirError;
use super::dir_lock::DirLock;
use super::external_links::ExternalLinks;
use super::scope_files::ScopeFiles;
use super::scope_reload::Held;
use ringcrawl_base::time::Duration;
use ringcrawl_brain::log::AskAgain;
use ringcrawl_brain::seed::Seed;
use ringcrawl_config::Config;

/// What to crawl.
#[derive(Clone, Debug)]
pub struct Order {
    /// Its settings.
    pub config: Config,
    /// Where to begin; none when a crawl is resumed.
    pub seeds: Vec<Seed>,
    /// The crawl's directory.
    pub dir: PathBuf,
    /// Refuse to resume.
    pub new: bool,
    /// Which finished URLs are fetched again.
    pub ask_again: AskAgain,
    /// A round after the first, which has these new seeds.
    pub round: Option<Round>,
    /// What the run before has left, if there was one in this process.
    pub handed_on: HandedOn,
}

/// A run that follows another one in the same process: a round after the first, or a run that continues after sites
/// were moved.
#[derive(Clone, Copy, Debug, Default)]
pub struct Round {
    /// Sites are to be moved first, after this many moves in a row that helped little; `None`: they stay.
    pub fruitless: Option<u32>,
    /// Its number, from 2.
    pub number: u32,
    /// Pages of the previous rounds, which count for `crawl.pages_max`.
    pub pages: u64,
    /// Their duration, which counts for `crawl.time_max`.
    pub elapsed: Duration,
}

/// What a run hands on to the next one in the same process.
#[derive(Clone, Debug, Default)]
pub struct HandedOn {
    /// Holds the directory in between.
    pub lock: Option<DirLock>,
    /// The files of the scope that were in effect.
    pub files: ScopeFiles,
    /// Files that the scope did not take.
    pub(super) held: Option<Held>,
}

/// How a round ended.
#[derive(Debug)]
pub struct RoundEnd {
    /// The crawl continues once sites have moved, after this many moves in a row that helped little.
    pub fruitless: Option<u32>,
    /// Its number, from 1.
    pub number: u32,
    /// The links that left the scope, where they are listed.
    pub links: Option<ExternalLinks>,
    /// Why they are not listed, where they should be.
    pub note: Option<String>,
    /// What the next round takes over.
    pub handed_on: HandedOn,
}

/// Why a crawl did not start. Nothing was changed, except for an empty directory that may have been created.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// An error that the operator can fix.
    #[error("{0}")]
    Order(String),
    /// The directory.
    #[error(transparent)]
    Dir(#[from] DirError),
    /// The system.
    #[error("{0}")]
    System(String),
    /// It was stopped before it began.
    #[error("stopped by signal")]
    Stopped,
}

impl BootError {
    /// Whether it is the operator's mistake (exit code 2) and not a failure of the system (1).
    pub fn is_order(&self) -> bool {
        match self {
            BootError::Order(_) => true,
            BootError::Dir(DirError::Io(_, error)) => error.kind() == std::io::ErrorKind::NotADirectory,
            BootError::Dir(_) => true,
            BootError::System(_) | BootError::Stopped => false,
        }
    }
}
