//! Files that other origins' robots.txt redirect to: the origins that wait for them, and their content.
//!
//! Decides: a file is fetched once, however many origins are redirected to it, and its content is kept for as long as
//! it is valid. The shard that owns the file's host fetches it; other shards query that shard and keep its answer in
//! the same way. An answer may be lost with a message: an asker that still waits has the request sent again.
//! Anyone may redirect thousands of origins to files that never arrive. So the origins of a site wait for at most
//! [`TIMES_FREE`] times as many files as there are free slots ([`SiteShares`]). If no slot is free, a new question
//! replaces the one that has waited longest, provided it has waited for [`DISPLACED_AFTER`]: an available file has
//! usually arrived by then.
//! Invariants: an entry is either pending or known. An asker gets one answer, or learns that none will come and asks
//! again.
//! Limits: an answer to another shard waits, as a reference to the content, until the lanes have room for its bytes.
//! At most [`PENDING_MAX`] files are pending; an asker that finds no slot must ask again later. Known files count as
//! memory for rules and are evicted before the rules that origins hold ([`super::rules_cache`]).

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use super::message::{RobotsAnswer, RobotsRequest, RobotsResult};
use super::rules_cache::{CachedRules, Charge, Excess, Holder, HolderState, RulesCache};
use crate::frontier::settings::{STALE_ENTRIES_MIN, TIMES_FREE};
use crate::job::HostId;
use crate::site_shares::SiteShares;
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_robots::Rules;
use ringcrawl_url::{SiteKey, Url};

/// The content of a file, and how long it is valid.
pub type Finding = (RobotsResult<Rc<CachedRules>>, Instant);

/// The files of a shard, those of its own hosts and of others, and the memory for their rules.
#[derive(Debug)]
pub struct RobotsFiles {
    /// The rules in memory.
    pub(in crate::frontier) rules: RulesCache,
    files: HashMap<Rc<Url>, File>,
    pending: usize,
    /// Pending files, the longest pending first; an entry that no longer exists is ignored.
    by_wait: VecDeque<(Instant, Rc<Url>)>,
    /// Files that each site's origins wait for.
    shares: SiteShares,
    numbers: u64,
    /// Known files, the oldest first; an entry that no longer exists is ignored.
    by_age: VecDeque<(u64, Rc<Url>)>,
    /// Length of `by_age` at which stale entries are removed.
    by_age_max: usize,
    requests: Vec<(u16, RobotsRequest)>,
    /// Answers to other shards: rules with many askers are held once.
    answers: VecDeque<(u16, Url, Finding)>,
}

#[derive(Debug)]
enum File {
    /// Pending since then, first for an origin of this site. If another shard was queried: which, and when it is
    /// queried again.
    Pending { since: Instant, site: Option<SiteKey>, askers: Vec<Asker>, asked: Option<(u16, Instant)> },
    /// Fetched.
    Known { finding: Finding, number: u64, _charge: Charge },
}

/// The origin of a question.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asker {
    /// An origin of this shard.
    Origin(HostId, u8),
    /// Another shard.
    Shard(u16),
}

/// The result of a question.
#[derive(Debug)]
pub enum AskOutcome {
    /// This is the answer.
    Known(Finding),
    /// The asker will get an answer.
    Noted,
    /// The first question for this file: the asker gets an answer once the file is fetched or another shard has
    /// answered. The askers of the file that it displaced wait no longer.
    New { displaced: Option<Rc<Url>> },
    /// Too many files are pending.
    Full,
}

impl RobotsFiles {
    /// Nothing is known or pending; there is room for `rules_bytes_max` bytes of rules.
    pub fn new(rules_bytes_max: u64) -> RobotsFiles {
        RobotsFiles {
            rules: RulesCache::new(rules_bytes_max),
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

    /// The content of a file, if still valid.
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

    /// Bytes of the rules in memory.
    pub fn rules_bytes(&self) -> u64 {
        self.rules.bytes()
    }

    /// Drops known files, then rules that `look` finds dispensable, until all are within their bound.
    pub fn trim(&mut self, look: impl FnMut(&Holder, Excess) -> HolderState) {
        while self.rules.is_over() && self.drop_oldest() {}
        self.rules.trim(look);
    }

    /// Whether there is an entry for a file.
    pub fn holds(&self, url: &Url) -> bool {
        self.files.contains_key(url)
    }

    /// Asks for a file; `site` is the site of an origin of this shard.
    pub fn ask(&mut self, now: Instant, asker: Asker, site: Option<SiteKey>, url: &Url) -> AskOutcome {
        if let Some(finding) = self.known(url, now) {
            return AskOutcome::Known(finding);
        }
        if let Some(File::Pending { askers, .. }) = self.files.get_mut(url) {
            // Another shard asks again after a long wait. An origin asks once.
            if matches!(asker, Asker::Origin(..)) || !askers.contains(&asker) {
                askers.push(asker);
            }
            return AskOutcome::Noted;
        }
        // A site that waits for hardly any files may displace another.
        let free = PENDING_MAX.saturating_sub(self.pending).max(1) as u64;
        if site.is_some_and(|site| !self.shares.may_take(site, free)) {
            return AskOutcome::Full;
        }
        let displaced = (self.pending >= PENDING_MAX).then(|| self.displace(now)).flatten();
        if self.pending >= PENDING_MAX {
            return AskOutcome::Full;
        }
        self.pending += 1;
        site.iter().for_each(|site| self.shares.changed(*site, 0, 1));
        let url = Rc::new(url.clone());
        if self.by_wait.len() >= 2 * PENDING_MAX {
            let files = &self.files;
            self.by_wait.retain(|(since, url)| is_awaited_since(files, url, *since));
        }
        self.by_wait.push_back((now, Rc::clone(&url)));
        self.files.insert(url, File::Pending { since: now, site, askers: vec![asker], asked: None });
        AskOutcome::New { displaced }
    }

    /// Removes the file that has been pending longest, if that is long enough.
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

    /// Withdraws a question that was new.
    pub fn withdraw(&mut self, url: &Url) {
        self.answered(url);
    }

    /// Shard `owner` must be queried for a new file.
    pub fn request(&mut self, now: Instant, owner: u16, url: &Url) {
        if let Some(File::Pending { asked, .. }) = self.files.get_mut(url) {
            *asked = Some((owner, now + ASK_AGAIN));
            self.requests.push((owner, RobotsRequest { url: url.clone() }));
        }
    }

    /// An asker has waited for [`ASK_AGAIN`]: sends the request again if another shard owes the answer. Returns
    /// whether the file is still pending.
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

    /// The content of a file arrived: keeps it for later askers, passes it on to those of other shards, and returns
    /// the origins of this shard that asked. The latest content holds, even if no asker waited for it.
    pub fn came(&mut self, url: &Url, finding: &Finding) -> Vec<(HostId, u8)> {
        let askers = self.answered(url);
        if askers.is_empty() && !self.holds(url) {
            return Vec::new();
        }
        self.keep(url, finding.clone());
        let mut origins = Vec::new();
        for asker in askers {
            match asker {
                Asker::Shard(shard) => self.tell(shard, url, finding.clone()),
                Asker::Origin(id, index) => origins.push((id, index)),
            }
        }
        origins
    }

    /// Returns the askers of a file; none waits any more.
    fn answered(&mut self, url: &Url) -> Vec<Asker> {
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

    /// Keeps the content of a file.
    pub fn keep(&mut self, url: &Url, finding: Finding) {
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
        let charge = self.rules.charge((bytes + FILE_BYTES) as u64);
        self.files.insert(url, File::Known { finding, number: self.numbers, _charge: charge });
    }

    /// The file must be requested again.
    pub fn forget(&mut self, url: &Url) {
        if matches!(self.files.get(url), Some(File::Known { .. })) {
            self.files.remove(url);
        }
    }

    /// Drops the oldest known file; returns whether there was one.
    fn drop_oldest(&mut self) -> bool {
        while let Some((number, url)) = self.by_age.pop_front() {
            if is_known_as(&self.files, &url, number) {
                self.files.remove(&url);
                return true;
            }
        }
        false
    }

    /// Another shard must get the content of a file.
    pub fn tell(&mut self, to: u16, url: &Url, finding: Finding) {
        self.answers.push_back((to, url.clone(), finding));
    }

    /// Takes the requests to other shards that arose since the last call.
    pub fn take_requests(&mut self) -> Vec<(u16, RobotsRequest)> {
        std::mem::take(&mut self.requests)
    }

    /// The next answer to another shard, as it is at `now`.
    pub fn next_answer(&mut self, now: Instant) -> Option<(u16, RobotsAnswer)> {
        let (to, url, (result, until)) = self.answers.pop_front()?;
        let result = result.map(|rules| Rules::clone(&rules));
        Some((to, RobotsAnswer { url, result, holds: until.since(now) }))
    }

    /// Whether another shard must get an answer.
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

/// Files that are pending at once, in a shard.
const PENDING_MAX: usize = 4_096;
/// How long ringcrawl waits for an answer before it asks again.
pub const ASK_AGAIN: Duration = Duration::from_secs(60);
/// After this wait another file may displace a pending one. It is longer than the file's host takes to get to it, as
/// a host fetches files for others only every few requests.
const DISPLACED_AFTER: Duration = Duration::from_secs(20);
/// Buckets that count the files each site waits for: so many that a site of few hosts has one of its own, even if a
/// different site waits for each file.
const SHARE_PLACES: usize = 4 * PENDING_MAX;
/// Bytes of an entry in addition to its texts.
const FILE_BYTES: usize = size_of::<File>() + 3 * size_of::<Url>();
