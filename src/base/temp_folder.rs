//! The folder of one test.
//!
//! Invariants: it is new and unique, and it is removed with its value, even if the test fails.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder, removed with this value.
pub struct TempFolder(PathBuf);

impl TempFolder {
    /// A new, empty folder.
    pub fn new(name: &str) -> TempFolder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("ringcrawl-{name}-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).expect("a folder for the test");
        TempFolder(path)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A path in it, as an argument.
    pub fn at(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("a path in UTF-8").to_owned()
    }

    /// A file in it; its path.
    pub fn file(&self, name: &str, text: &str) -> String {
        std::fs::write(self.0.join(name), text).expect("a file for the test");
        self.at(name)
    }

    /// Every file below `name` with its content, every folder with none: two results are equal if nothing changed.
    pub fn content(&self, name: &str) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        let mut content = BTreeMap::new();
        let mut paths = vec![self.0.join(name)];
        while let Some(path) = paths.pop() {
            if path.is_dir() {
                paths.extend(std::fs::read_dir(&path).expect("a folder").map(|entry| entry.expect("an entry").path()));
                content.insert(path, None);
            } else if path.exists() {
                let bytes = std::fs::read(&path).expect("a file");
                content.insert(path, Some(bytes));
            }
        }
        content
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
