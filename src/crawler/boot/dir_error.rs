//! Why a directory cannot be used for a crawl.
//!
//! Decides: each message says what is wrong and what to do about it.

use std::io;
use std::path::PathBuf;

/// Why a directory cannot be used. Each message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum DirError {
    /// The system refuses.
    #[error("{path}: {why}", path = .0.display(), why = .1)]
    Io(PathBuf, io::Error),
    /// Something else has its name.
    #[error("{path} is not a directory; give an empty or a new one", path = .0.display())]
    NoDirectory(PathBuf),
    /// It is neither empty nor a crawl.
    #[error("{path} is not empty and holds no crawl (no crawl.json); give an empty or a new directory", path = .0.display())]
    Foreign(PathBuf),
    /// A crawl of another layout, or a damaged manifest.
    #[error("{path}: {why}", path = .0.display(), why = .1)]
    Manifest(PathBuf, String),
    /// The list of seeds differs from what was written.
    #[error(
        "{path}: {why}; restore the file from a copy, or remove it and give all seeds of the crawl again",
        path = .0.display(), why = .1
    )]
    Seeds(PathBuf, String),
    /// The configuration that was kept cannot be used.
    #[error("{path}: {why}; give the settings with -c FILE, which replaces the kept ones", path = .0.display(), why = .1)]
    Config(PathBuf, String),
    /// The directory of a shard is gone.
    #[error(
        "{path} is missing, and with it what that shard knew and stored: put it back; or make an empty directory of that name, \
         and the crawl goes on without it",
        path = .0.display()
    )]
    Shard(PathBuf),
    /// Another user would choose where the crawl writes.
    #[error(
        "{path} is a link that another user made (uid {user}), and the crawl would write to where it leads: remove it, or make it \
         yourself if you want it (chown -h)",
        path = .0.display(), user = .1
    )]
    LinkOfAnother(PathBuf, u32),
    /// The disk with the segments of a shard is gone.
    #[error(
        "{path} is a link to {to}, which is not there: mount that disk; or remove the link, and the crawl goes on without what \
         that shard stored there",
        path = .0.display(), to = .1.display()
    )]
    Segments(PathBuf, PathBuf),
    /// Its logs cannot be rewritten for another number of shards.
    #[error("{path}: its logs cannot be rewritten for another number of shards: {why}", path = .0.display(), why = .1)]
    Redistribution(PathBuf, String),
    /// The list of moved sites differs from what was written.
    #[error("{path}: {why}; restore the file from a copy: it says which shard has which site", path = .0.display(), why = .1)]
    MovedSites(PathBuf, String),
    /// There are more moved sites than there is room for now.
    #[error("{path}: {count} sites were moved, more than partition.ram_bytes_max has room for; raise it", path = .0.display(), count = .1)]
    MovedSitesRoom(PathBuf, usize),
    /// Another process works in it.
    #[error("{path} is in use by another ringcrawl (it holds {path}/lock)", path = .0.display())]
    Locked(PathBuf),
    /// The crawl in it was begun with other settings.
    #[error(
        "{path} holds a crawl with {what} {held}, and {wanted} was asked for; this is fixed for a crawl: \
         leave it at {held}, or give a new directory",
        path = .path.display()
    )]
    Differs {
        /// The directory.
        path: PathBuf,
        /// The setting.
        what: &'static str,
        /// Its value in the crawl.
        held: String,
        /// Its value in this run.
        wanted: String,
    },
    /// `--new` was given.
    #[error("{path} already holds a crawl, but --new was given", path = .0.display())]
    NotNew(PathBuf),
}
