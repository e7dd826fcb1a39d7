//! Files that other origins' robots.txt redirect to: who waits for them, and what they said.
//!
//! Decides: a file is asked for once, however many origins are sent to it, and what it said is kept for as long as it
//! holds. The shard that owns its host fetches it; other shards ask that one and keep its answer in the same way. An
//! answer may be lost with a message: whoever still waits has the request sent again.
//! Invariants: an entry is either waited for or known; who waits is told once.
//! Limits: an answer to another shard waits, as a reference to what it says, until the lanes have room for its bytes;
//! [`PENDING_MAX`] files are waited for, and who asks for one more has to ask again later. What is known counts as
//! memory for rules, and goes before the rules that origins hold ([`super::rules_cache`]).

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use super::STALE_ENTRIES_MIN;
use super::rules_cache::{CachedRules, Charge, RulesCache};
use crate::outcome::HostId;
use crate::robots::{RobotsAnswer, RobotsRequest, RobotsResult, Rules};
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_url::Url;

/// What a file said, and until when that holds.
pub type Finding = (RobotsResult<Rc<CachedRules>>, Instant);

/// The files of a shard, its own hosts' and others'.
#[derive(Debug, Default)]
pub struct RobotsFiles {
    files: HashMap<Rc<Url>, File>,
    pending: usize,
    /// When abandoned entries were last looked for.
    swept: Instant,
    numbers: u64,
    /// Known files, the oldest first; an entry that is not there any more is ignored.
    by_age: VecDeque<(u64, Rc<Url>)>,
    /// Length of `by_age` at which such entries are thrown out.
    by_age_max: usize,
    requests: Vec<(u16, RobotsRequest)>,
    /// Answers to other shards: rules that many wait for are held once.
    answers: VecDeque<(u16, Url, Finding)>,
}

#[derive(Debug)]
enum File {
    /// Waited for; where another shard was asked, which, and when it is asked again.
    Pending { askers: Vec<Asker>, asked: Option<(u16, Instant)> },
    /// Fetched.
    Known { finding: Finding, number: u64, _charge: Charge },
}

/// Who wants to know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asker {
    /// An origin of this shard.
    Origin(HostId, u8),
    /// Another shard.
    Shard(u16),
}

/// What became of a question.
#[derive(Debug)]
pub enum Asked {
    /// This is the answer.
    Known(Finding),
    /// The asker will be told.
    Noted,
    /// Nobody asked for this file before: the asker will be told, once it is fetched or another shard has answered.
    New,
    /// Too many files are waited for.
    Full,
}

impl RobotsFiles {
    /// What a file said, if that still holds.
    pub fn known(&mut self, url: &Url, now: Instant) -> Option<Finding> {
        match self.files.get(url)? {
            File::Known { finding, .. } if finding.1 > now => Some(finding.clone()),
            File::Known { .. } => {
                self.files.remove(url);
                None
            }
            File::Pending { .. } => None,
        }
    }

    /// Whether there is anything about a file.
    pub fn holds(&self, url: &Url) -> bool {
        self.files.contains_key(url)
    }

    /// Asks for a file.
    pub fn ask(&mut self, now: Instant, asker: Asker, url: &Url) -> Asked {
        if let Some(finding) = self.known(url, now) {
            return Asked::Known(finding);
        }
        if let Some(File::Pending { askers, .. }) = self.files.get_mut(url) {
            // Another shard asks again, when it has waited for long. An origin asks once.
            if matches!(asker, Asker::Origin(..)) || !askers.contains(&asker) {
                askers.push(asker);
            }
            return Asked::Noted;
        }
        if self.pending >= PENDING_MAX {
            self.sweep(now);
        }
        if self.pending >= PENDING_MAX {
            return Asked::Full;
        }
        self.pending += 1;
        self.files.insert(Rc::new(url.clone()), File::Pending { askers: vec![asker], asked: None });
        Asked::New
    }

    /// Takes a question back that was new.
    pub fn withdraw(&mut self, url: &Url) {
        self.answered(url);
    }

    /// Shard `owner` is to be asked for a file that is new.
    pub fn request(&mut self, now: Instant, owner: u16, url: &Url) {
        if let Some(File::Pending { asked, .. }) = self.files.get_mut(url) {
            *asked = Some((owner, now + ASK_AGAIN));
            self.requests.push((owner, RobotsRequest { url: url.clone() }));
        }
    }

    /// Somebody has waited for [`ASK_AGAIN`]: asks once more, if another shard owes the answer. Whether the file is still
    /// waited for.
    pub fn remind(&mut self, now: Instant, url: &Url) -> bool {
        let Some(File::Pending { asked, .. }) = self.files.get_mut(url) else { return false };
        if let Some((owner, again)) = asked
            && *again <= now
        {
            *again = now + ASK_AGAIN;
            self.requests.push((*owner, RobotsRequest { url: url.clone() }));
        }
        true
    }

    /// Whether another shard owes the answer.
    pub fn is_requested(&self, url: &Url) -> bool {
        matches!(self.files.get(url), Some(File::Pending { asked: Some(_), .. }))
    }

    /// Those who waited for a file that came; nobody waits any more.
    pub fn answered(&mut self, url: &Url) -> Vec<Asker> {
        if !matches!(self.files.get(url), Some(File::Pending { .. })) {
            return Vec::new();
        }
        self.pending -= 1;
        match self.files.remove(url) {
            Some(File::Pending { askers, .. }) => askers,
            _ => Vec::new(),
        }
    }

    /// Keeps what a file said.
    pub fn keep(&mut self, url: &Url, finding: Finding, memory: &RulesCache) {
        let url = Rc::new(url.clone());
        self.numbers += 1;
        if self.by_age.len() >= self.by_age_max {
            let files = &self.files;
            self.by_age.retain(|(number, url)| is_known_as(files, url, *number));
            self.by_age_max = 2 * self.by_age.len() + STALE_ENTRIES_MIN;
        }
        self.by_age.push_back((self.numbers, Rc::clone(&url)));
        let bytes =
            url.as_str().len() + if let RobotsResult::Redirect(to) = &finding.0 { to.as_str().len() } else { 0 };
        let charge = memory.charge((bytes + FILE_BYTES) as u64);
        self.files.insert(url, File::Known { finding, number: self.numbers, _charge: charge });
    }

    /// What a file said is to be asked for again.
    pub fn forget(&mut self, url: &Url) {
        if matches!(self.files.get(url), Some(File::Known { .. })) {
            self.files.remove(url);
        }
    }

    /// Drops the oldest of the known files; whether there was any.
    pub fn drop_oldest(&mut self) -> bool {
        while let Some((number, url)) = self.by_age.pop_front() {
            if is_known_as(&self.files, &url, number) {
                self.files.remove(&url);
                return true;
            }
        }
        false
    }

    /// Another shard is to be told what a file said.
    pub fn tell(&mut self, to: u16, url: &Url, finding: Finding) {
        self.answers.push_back((to, url.clone(), finding));
    }

    /// Takes the requests to other shards since the last call.
    pub fn take_requests(&mut self) -> Vec<(u16, RobotsRequest)> {
        std::mem::take(&mut self.requests)
    }

    /// The next answer to another shard, as it is at `now`.
    pub fn next_answer(&mut self, now: Instant) -> Option<(u16, RobotsAnswer)> {
        let (to, url, (result, until)) = self.answers.pop_front()?;
        let result = result.map(|rules| Rules::clone(&rules));
        Some((to, RobotsAnswer { url, result, holds: until.since(now) }))
    }

    /// Whether another shard is to be told something.
    pub fn has_answers(&self) -> bool {
        !self.answers.is_empty()
    }

    /// Lets go of entries that another shard owes an answer to and that nobody asks about any more.
    fn sweep(&mut self, now: Instant) {
        if now < self.swept + ASK_AGAIN {
            return;
        }
        self.swept = now;
        let before = self.files.len();
        self.files.retain(
            |_, file| !matches!(file, File::Pending { asked: Some((_, again)), .. } if *again + ABANDONED_AFTER <= now),
        );
        self.pending -= before - self.files.len();
    }
}

fn is_known_as(files: &HashMap<Rc<Url>, File>, url: &Url, number: u64) -> bool {
    matches!(files.get(url), Some(File::Known { number: at, .. }) if *at == number)
}

/// Files that are waited for at once, in a shard.
const PENDING_MAX: usize = 4_096;
/// How long an answer is waited for before it is asked for once more.
pub const ASK_AGAIN: Duration = Duration::from_secs(60);
/// Whoever waits asks again every [`ASK_AGAIN`].
const ABANDONED_AFTER: Duration = Duration::from_secs(300);
/// What an entry costs besides its texts.
const FILE_BYTES: usize = size_of::<File>() + 3 * size_of::<Url>();
