//! Another scope while the crawl runs.
//!
//! Decides: the files are read on a separate thread. If all are right, every shard takes the new scope at its next
//! turn. When all have, one line reports the time and what each file held: from then on no request begins to what the
//! scope blocks. If one is wrong, the scope stays as it was. It also stays if a file has lost more than half of its
//! entries, as a file does while it is being written, unless `scope.halved` says otherwise or the same files are
//! requested again, after that was told. Any other request that arrives in the meantime is handled afterwards.
//! Invariants: the old scope is freed here, as a list of millions would delay a shard.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use super::scope_files::ScopeFiles;
use crate::control::Control;
use ringcrawl_brain::scope::Scope;
use ringcrawl_config::{Config, Halved};
use ringcrawl_ring as ring;

/// The scope of a crawl, and the progress of a change.
#[derive(Debug)]
pub(super) struct ScopeReload {
    pub(super) config: Arc<Config>,
    scope: Scope,
    /// The files in effect, whose content `scope` shares.
    pub(super) files: ScopeFiles,
    /// What was rejected because too much was missing.
    pub(super) held: Option<Held>,
    is_wanted: bool,
    reading: Option<JoinHandle<Result<ScopeFiles, Vec<String>>>>,
    /// What shards should take: its version, and the report for when all have taken it.
    given: Option<Given>,
}

/// Files that are not taken unless they are requested again.
#[derive(Clone, Debug)]
pub(super) struct Held {
    /// The files in words, with digests.
    told: String,
    /// A request came after this was told.
    is_confirmed: bool,
}

#[derive(Debug)]
struct Given {
    version: u64,
    told: String,
    /// Freed when no shard uses it any more.
    before: Scope,
}

impl ScopeReload {
    pub(super) fn new(config: Arc<Config>, scope: Scope, files: ScopeFiles) -> ScopeReload {
        ScopeReload { config, scope, files, held: None, is_wanted: false, reading: None, given: None }
    }

    /// Why `files` should not take effect, if so.
    fn objection(&mut self, files: &ScopeFiles) -> Option<String> {
        let told = files.to_string();
        let is_accepted = self.held.take().is_some_and(|held| held.is_confirmed && held.told == told);
        if is_accepted || self.config.scope.halved == Halved::Take {
            return None;
        }
        let lost = files.halved(&self.files)?;
        self.held = Some(Held { told, is_confirmed: false });
        Some(format!("{lost}; send the signal again to accept it, or set scope.halved = \"take\""))
    }

    /// Reads the files again, which an earlier run held back so: that is no confirmation.
    pub(super) fn go_on(&mut self, held: Option<Held>) {
        (self.held, self.is_wanted) = (held, true);
    }

    /// Requests that the files be read again.
    pub(super) fn ask(&mut self) {
        self.is_wanted = true;
        self.held.iter_mut().for_each(|held| held.is_confirmed = true);
    }

    /// Bytes of memory that block lists take, or may take while they are read.
    pub(super) fn lists_bytes(&self) -> u64 {
        let bytes = |scope: &Scope| scope.blocks().bytes() as u64;
        let being_read = self.reading.as_ref().map_or(0, |_| self.config.scope.block_ram_bytes_max as u64);
        bytes(&self.scope) + self.given.as_ref().map_or(0, |given| bytes(&given.before)) + being_read
    }

    /// Advances a change; call it several times a second.
    pub(super) fn look(&mut self, control: &Control) {
        if let Some(reading) = self.reading.take_if(|reading| reading.is_finished()) {
            let read = reading.join().unwrap_or_else(|_| Err(vec!["the thread that read it panicked".to_owned()]));
            let read = read.and_then(|files| match self.objection(&files) {
                Some(why) => Err(vec![why]),
                None => Ok(files),
            });
            match read {
                Ok(files) => {
                    files.notes.iter().for_each(|note| control.note(format!("scope: {note}")));
                    let scope = files.of(&self.scope);
                    let version = control.scope().give(scope.clone());
                    control.shards().iter().for_each(|shard| shard.waker.wake());
                    let before = std::mem::replace(&mut self.scope, scope);
                    self.given = Some(Given { version, told: files.to_string(), before });
                    self.files = files;
                }
                Err(errors) => {
                    errors.iter().for_each(|error| control.warn(format!("scope: {error}")));
                    control.warn(format!(
                        "scope: {}: not reloaded; the previous files stay in effect",
                        ring::unix_now().to_iso()
                    ));
                }
            }
        }
        if let Some(given) = self.given.take_if(|given| {
            control.shards().iter().all(|shard| {
                // A shard that has ended fetches nothing any more.
                shard.has_ended.load(Ordering::Acquire) || shard.scope_heard.load(Ordering::Acquire) >= given.version
            })
        }) {
            control.warn(format!(
                "scope: {}: reloaded, in effect on all shards: {}",
                ring::unix_now().to_iso(),
                given.told
            ));
        }
        if self.is_wanted && self.reading.is_none() && self.given.is_none() {
            self.is_wanted = false;
            if !ScopeFiles::are_named(&self.config) {
                return control
                    .warn("scope: nothing to reload: neither scope.rules nor scope.block names a file".to_owned());
            }
            let config = Arc::clone(&self.config);
            match super::spawn("scope".to_owned(), move || ScopeFiles::read(&config)) {
                Ok(thread) => self.reading = Some(thread),
                Err(error) => control.warn(format!("scope: not reloaded: {error}")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::TempFolder;

    /// Advances `reload` until nothing is left to do; returns what it told.
    fn settled(reload: &mut ScopeReload, control: &Control) -> String {
        while reload.is_wanted || reload.reading.is_some() || reload.given.is_some() {
            reload.look(control);
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        control.take_notes(false).concat()
    }

    #[test]
    fn a_request_from_before_the_objection_does_not_confirm_it() {
        let folder = TempFolder::new("early-request");
        let mut config = Config::default();
        config.scope.block = vec![folder.file("list", "a.test\nb.test\nc.test\n").into()];
        let control = Control::new(0).expect("no shards");
        let mut reload =
            ScopeReload::new(Arc::new(config.clone()), Scope::default(), ScopeFiles::read(&config).expect("a list"));
        folder.file("list", "a.test\n");
        reload.ask();
        reload.look(&control);
        reload.ask();
        let told = settled(&mut reload, &control);
        // It was handled, too: the files were read twice.
        assert_eq!(told.matches("send the signal again").count(), 2, "{told}");
        assert!(!told.contains("in effect on all shards"), "{told}");
        reload.ask();
        let told = settled(&mut reload, &control);
        assert!(told.contains("in effect on all shards"), "{told}");
    }
}
