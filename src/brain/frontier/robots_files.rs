//! Files that other origins' robots.txt redirect to: who waits for them, and what they said.
//!
//! Decides: a file is asked for once, however many origins are sent to it, and what it said is kept for as long as it
//! holds. The shard that owns its host fetches it; other shards ask that one and keep its answer in the same way. An
//! answer may be lost with a message: whoever still waits has the request sent again.
//! Anyone may send thousands of origins to files that never come. So a site's origins wait for at most [`TIMES_FREE`] as many as
//! there is room for ([`SiteShares`]), and without room a new question takes the place of the one that has waited longest, if
//! that is [`DISPLACED_AFTER`]: a file that can be had has mostly come by then.
//! Invariants: an entry is either waited for or known; who waits is told once, or finds that nobody will tell and asks again.
//! Limits: an answer to another shard waits, as a reference to what it says, until the lanes have room for its bytes;
//! [`PENDING_MAX`] files are waited for, and who finds no place has to ask again later. What is known counts as
//! memory for rules, and goes before the rules that origins hold ([`super::rules_cache`]).

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use super::robots_message::{RobotsAnswer, RobotsRequest, RobotsResult};
use super::rules_cache::{CachedRules, Charge, RulesCache};
use super::{STALE_ENTRIES_MIN, TIMES_FREE};
use crate::job::HostId;
use crate::site_shares::SiteShares;
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_robots::Rules;
use ringcrawl_url::{SiteKey, Url};

/// What a file said, and until when that holds.
pub type Finding = (RobotsResult<Rc<CachedRules>>, Instant);

/// The files of a shard, its own hosts' and others'.
#[derive(Debug)]
pub struct RobotsFiles {
    files: HashMap<Rc<Url>, File>,
    pending: usize,
    /// Files that are waited for, the longest first; an entry that is not there any more is ignored.
    by_wait: VecDeque<(Instant, Rc<Url>)>,
    /// What sites' origins wait for.
    shares: SiteShares,
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
    /// Waited for since then, first by an origin of this site; where another shard was asked, which, and when it is asked again.
    Pending { since: Instant, site: Option<SiteKey>, askers: Vec<Asker>, asked: Option<(u16, Instant)> },
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
    /// Nobody asked for this file before: the asker will be told, once it is fetched or another shard has answered. Nobody waits any
    /// more for the file whose place it took.
    New { displaced: Option<Rc<Url>> },
    /// Too many files are waited for.
    Full,
}

impl RobotsFiles {
    /// Nothing is known, and nobody waits.
    pub fn new() -> RobotsFiles {
        RobotsFiles {
            files: HashMap::new(),
            pending: 0,
            by_wait: VecDeque::new(),
            shares: SiteShares::new(SHARE_PLACES, TIMES_FREE),
            numbers: 0,
            by_age: VecDeque::new(),
            by_age_max: 0,
            requests: Vec::new(),
            answers: VecDeque::new(),
        }
    }

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

    /// Asks for a file; an origin of this shard is of a `site`.
    pub fn ask(&mut self, now: Instant, asker: Asker, site: Option<SiteKey>, url: &Url) -> Asked {
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
        // Who waits for hardly anything may have a place that another gives up.
        let free = PENDING_MAX.saturating_sub(self.pending).max(1) as u64;
        if site.is_some_and(|site| !self.shares.may_take(site, free)) {
            return Asked::Full;
        }
        let displaced = (self.pending >= PENDING_MAX).then(|| self.displace(now)).flatten();
        if self.pending >= PENDING_MAX {
            return Asked::Full;
        }
        self.pending += 1;
        site.iter().for_each(|site| self.shares.took(*site));
        let url = Rc::new(url.clone());
        if self.by_wait.len() >= 2 * PENDING_MAX {
            let files = &self.files;
            self.by_wait.retain(|(since, url)| is_awaited_since(files, url, *since));
        }
        self.by_wait.push_back((now, Rc::clone(&url)));
        self.files.insert(url, File::Pending { since: now, site, askers: vec![asker], asked: None });
        Asked::New { displaced }
    }

    /// Takes out the file that has been waited for longest, if that is long enough.
    fn displace(&mut self, now: Instant) -> Option<Rc<Url>> {
        while let Some((since, url)) = self.by_wait.pop_front() {
            if !is_awaited_since(&self.files, &url, since) {
                continue;
            }
            if since + DISPLACED_AFTER > now {
                self.by_wait.push_front((since, url));
                return None;
            }
            self.answered(&url);
            return Some(url);
        }
        None
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
            Some(File::Pending { askers, site, .. }) => {
                site.iter().for_each(|site| self.shares.gave_back(*site));
                askers
            }
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
}

fn is_awaited_since(files: &HashMap<Rc<Url>, File>, url: &Url, instant: Instant) -> bool {
    matches!(files.get(url), Some(File::Pending { since, .. }) if *since == instant)
}

fn is_known_as(files: &HashMap<Rc<Url>, File>, url: &Url, number: u64) -> bool {
    matches!(files.get(url), Some(File::Known { number: at, .. }) if *at == number)
}

/// Files that are waited for at once, in a shard.
const PENDING_MAX: usize = 4_096;
/// How long an answer is waited for before it is asked for once more.
pub const ASK_AGAIN: Duration = Duration::from_secs(60);
/// A file has been waited for so long when another may take its place: longer than its host takes to come to it,
/// where that has files of others every so many requests.
const DISPLACED_AFTER: Duration = Duration::from_secs(20);
/// Places in which what sites wait for is counted: so many that a site of few hosts has one for itself, though each file is
/// waited for by another site.
const SHARE_PLACES: usize = 4 * PENDING_MAX;
/// What an entry costs besides its texts.
const FILE_BYTES: usize = size_of::<File>() + 3 * size_of::<Url>();
