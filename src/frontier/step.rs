//! A host's turn: what is the next thing to ask of it?
//!
//! Decides, for the URL in the host's hand, in this order: an address, then a verdict of robots.txt, then the
//! delays, then the page. What cannot go on puts the host back into the calendar, never into a loop.

use super::host::{
    Dns, Entry, Host, Origin, PARKED_BYTES_MAX, PARKED_BYTES_MIN, RETRIES_MAX, RETRIES_MIN, Robots, State,
};
use super::queue::Refill;
use super::{Frontier, STEPS_MAX};
use crate::ledger::HOLD_SLACK;
use crate::outcome::{Failure, FetchJob, HostId, JobKind};
use crate::spool::{Block, Spool};
use crate::time::{Duration, Instant};
use crate::url::{Url, UrlBatch};

/// What a host can do now.
enum Next {
    /// Look at the URL in hand.
    Hand,
    /// Wait for the clock.
    Wait(Instant),
    /// Wait for a block.
    Read(Block),
    /// Nothing.
    Idle,
}

/// What robots.txt says of a URL.
enum Verdict {
    Allowed,
    Settle(Failure),
    Fetch,
    Wait(Option<Instant>),
}

impl Frontier {
    /// Gives host `id` its turn: a job, or `None` after it was put where it belongs.
    pub(super) fn step(&mut self, id: HostId, now: Instant, spool: &mut Spool) -> Option<FetchJob> {
        for _ in 0..STEPS_MAX {
            let index = id as usize;
            if let Some((failure, until)) = self.hosts[index].given_up {
                if until <= now {
                    self.hosts[index].forgive(self.rules.politeness.host_failures_max);
                } else if self.settle_hand(id, now, (failure, until), spool) {
                    continue;
                } else {
                    return None;
                }
            }
            // Before the host's own URLs: a long queue must not hold others up.
            if let Some(origin) = self.hosts[index].wanted_robots(now) {
                return self.robots_job(id, origin, now);
            }
            match self.fill_hand(id, now) {
                Next::Hand => {}
                Next::Wait(at) => {
                    self.schedule(id, now, at);
                    return None;
                }
                Next::Read(block) => {
                    self.read_back(id, block, spool);
                    return None;
                }
                Next::Idle => {
                    self.retire(id, now);
                    return None;
                }
            }
            let host = &mut self.hosts[index];
            let entry = host.hand.take()?;
            let Some(origin) = host.origin_of(&entry.url) else {
                self.settle(entry.url, Failure::RobotsUnreachable);
                continue;
            };
            match host.origins[origin].verdict(&entry.url, now) {
                Verdict::Settle(failure) => self.settle(entry.url, failure),
                Verdict::Wait(again) => {
                    let at = again.unwrap_or(now + ELSEWHERE_PAUSE);
                    // A batch entry has no room for the count of tries, so those tried before wait elsewhere.
                    if entry.attempt > 0 {
                        self.ram_bytes += entry.ram_bytes();
                        host.retries.push((at, entry));
                        continue;
                    }
                    let bytes_max =
                        if self.ram_bytes <= self.rules.ram_bytes_max { PARKED_BYTES_MAX } else { PARKED_BYTES_MIN };
                    if host.origins[origin].parked.bytes_left() < bytes_max {
                        host.origins[origin].parked.push(entry.depth, entry.url.as_str());
                        self.ram_bytes += UrlBatch::entry_bytes(entry.url.as_str()) as u64;
                        continue;
                    }
                    host.hand = Some(entry);
                    let at = host.wanted_again().map_or(at, |wanted| wanted.min(at));
                    self.schedule(id, now, at);
                    return None;
                }
                Verdict::Fetch => {
                    host.hand = Some(entry);
                    return self.robots_job(id, origin, now);
                }
                Verdict::Allowed => return self.page_job(id, entry, now),
            }
        }
        // A long row of URLs that robots.txt forbids: others first.
        self.schedule(id, now, now);
        None
    }

    /// Takes the next URL into the host's hand.
    fn fill_hand(&mut self, id: HostId, now: Instant) -> Next {
        let retries_max = if self.has_room() { RETRIES_MAX } else { RETRIES_MIN };
        let host = &mut self.hosts[id as usize];
        if host.hand.is_some() {
            return Next::Hand;
        }
        if let Some(index) = host.retries.iter().position(|(at, _)| *at <= now) {
            let (_, entry) = host.retries.swap_remove(index);
            if host.retries.is_empty() {
                host.retries = Vec::new();
            }
            self.ram_bytes -= entry.ram_bytes();
            host.hand = Some(entry);
            return Next::Hand;
        }
        let mut wait = host.retries.iter().map(|(at, _)| *at).chain(host.wanted_again()).min();
        if let (Some(at), true) = (wait, host.retries.len() >= retries_max) {
            return Next::Wait(at);
        }
        for origin in &mut host.origins {
            if origin.parked.len() == 0 {
                continue;
            }
            match origin.waits_until(now) {
                Some(at) => wait = Some(wait.map_or(at, |wait| wait.min(at))),
                None => {
                    if let Some((depth, text)) = origin.parked.pop() {
                        self.ram_bytes -= UrlBatch::entry_bytes(&text) as u64;
                        host.hand = Url::from_canonical(&text).ok().map(|url| Entry { url, depth, attempt: 0 });
                        if host.hand.is_some() {
                            return Next::Hand;
                        }
                        self.queued -= 1;
                    }
                }
            }
        }
        loop {
            let before = host.queue.ram_bytes();
            if let Some((depth, text)) = host.queue.pop() {
                self.ram_bytes -= (before - host.queue.ram_bytes()) as u64;
                // Every text in a queue came out of a `Url`; one that does not parse again was damaged on disk.
                match Url::from_canonical(&text) {
                    Ok(url) => {
                        host.hand = Some(Entry { url, depth, attempt: 0 });
                        return Next::Hand;
                    }
                    Err(_) => self.queued -= 1,
                }
                continue;
            }
            match host.queue.refill() {
                Refill::Taken => {}
                Refill::Read(block) => return Next::Read(block),
                Refill::Empty => break,
            }
        }
        wait.map_or(Next::Idle, Next::Wait)
    }

    /// Ends one URL of a host that was given up; `false` when there is none left in memory.
    fn settle_hand(
        &mut self,
        id: HostId,
        now: Instant,
        (failure, until): (Failure, Instant),
        spool: &mut Spool,
    ) -> bool {
        let host = &mut self.hosts[id as usize];
        for (at, _) in &mut host.retries {
            *at = now;
        }
        for origin in &mut host.origins {
            origin.robots = Robots::Refused { until, why: Failure::RobotsUnreachable };
        }
        self.release_waiters(id, now);
        match self.fill_hand(id, now) {
            Next::Hand => {
                if let Some(entry) = self.hosts[id as usize].hand.take() {
                    self.settle(entry.url, failure);
                }
                true
            }
            Next::Read(block) => {
                self.read_back(id, block, spool);
                false
            }
            Next::Wait(_) | Next::Idle => {
                self.retire(id, now);
                false
            }
        }
    }

    /// A host has nothing to do. It was woken before its delay was over if its address was to be asked for: then it
    /// sleeps that out, for one that is idle may be forgotten.
    fn retire(&mut self, id: HostId, now: Instant) {
        match self.hosts[id as usize].not_before {
            at if at > now => self.schedule(id, now, at),
            _ => self.set_state(id, State::Idle),
        }
    }

    fn page_job(&mut self, id: HostId, entry: Entry, now: Instant) -> Option<FetchJob> {
        let (url, depth, attempt) = (entry.url.clone(), entry.depth, entry.attempt);
        self.hosts[id as usize].hand = Some(entry);
        let job = self.request(id, JobKind::Page, url, now)?;
        if job.kind == JobKind::Page {
            let host = &mut self.hosts[id as usize];
            host.hand = None;
            if let Some(origin) = host.origin_of(&job.url) {
                host.origins[origin].note_use();
            }
            return Some(FetchJob { depth, attempt, ..job });
        }
        Some(job)
    }

    fn robots_job(&mut self, id: HostId, origin: usize, now: Instant) -> Option<FetchJob> {
        let host = &mut self.hosts[id as usize];
        let name = host.name.clone();
        let Some(url) = host.origins.get(origin).and_then(|origin| origin.robots_url(&name)) else {
            host.given_up = Some((Failure::RobotsUnreachable, Instant::NEVER));
            self.schedule(id, now, now);
            return None;
        };
        self.request(id, JobKind::Robots, url, now)
    }

    /// A request to the host, or the `Resolve` job that must come first, or `None` when it must wait.
    fn request(&mut self, id: HostId, kind: JobKind, url: Url, now: Instant) -> Option<FetchJob> {
        let host = &self.hosts[id as usize];
        let deadline = now + self.rules.deadline;
        let turn = host.next_turn(self.rules.resolve_lead);
        if turn > now {
            self.schedule(id, now, turn);
            return None;
        }
        let Some((addr, addrs)) = host.addr(now.max(host.not_before)) else {
            if let Dns::Retry(at, _) = host.dns
                && at > now
            {
                self.schedule(id, now, at);
                return None;
            }
            if self.resolving >= self.rules.resolving_max {
                self.set_state(id, State::Parked);
                self.nameless.push_back(id);
                return None;
            }
            self.resolving += 1;
            let both_families = host.wants_both_families;
            return Some(FetchJob { both_families, ..self.job(id, JobKind::Resolve, url, None, deadline) });
        };
        let others = addrs.others();
        if self.rules.politeness.ip_delay > Duration::ZERO
            && let Err(free_from) = self.ledger.claim(addr, now, deadline + HOLD_SLACK)
        {
            self.park(id, addr, now, free_from);
            return None;
        }
        Some(FetchJob { others, ..self.job(id, kind, url, Some(addr), deadline) })
    }

    fn job(
        &mut self,
        id: HostId,
        kind: JobKind,
        url: Url,
        addr: Option<std::net::IpAddr>,
        deadline: Instant,
    ) -> FetchJob {
        self.set_state(id, State::Busy);
        self.next_job += 1;
        let politeness = &self.rules.politeness;
        let rest = self.hosts[id as usize].delay(politeness.host_delay).max(politeness.ip_delay);
        FetchJob {
            id: self.next_job,
            host: id,
            kind,
            url,
            addr,
            both_families: false,
            others: Vec::new(),
            depth: 0,
            attempt: 0,
            deadline,
            rest,
        }
    }
}

impl Host {
    /// The time for which the host was given up is over: everything is asked anew. One that was dead has a single
    /// request to show that it lives.
    fn forgive(&mut self, failures_max: u32) {
        let was_dead = self.given_up.take().is_some_and(|(failure, _)| failure == Failure::HostDead);
        self.failures_in_row = if was_dead { failures_max.saturating_sub(1) } else { 0 };
        self.dns_attempts = 0;
        if let Dns::Retry(..) = self.dns {
            self.dns = Dns::Unknown;
        }
        for origin in &mut self.origins {
            origin.forget();
        }
    }
}

impl Origin {
    fn verdict(&mut self, url: &Url, now: Instant) -> Verdict {
        self.expire(now);
        match &self.robots {
            Robots::Known { rules, .. } if rules.allows(url.path_and_query()) => Verdict::Allowed,
            Robots::Known { .. } => {
                self.note_use();
                Verdict::Settle(Failure::RobotsDenied)
            }
            Robots::Refused { why, .. } => Verdict::Settle(*why),
            Robots::Unknown => Verdict::Fetch,
            Robots::Unreachable { again } if *again <= now => Verdict::Fetch,
            Robots::Unreachable { again } => Verdict::Wait(Some(*again)),
            Robots::Elsewhere { .. } => Verdict::Wait(None),
        }
    }

    /// Forgets a robots.txt that is too old. One that no page was judged by yet is kept a while longer: where a
    /// delay is longer than `robots.ttl`, nothing but robots.txt would ever be fetched otherwise.
    pub(super) fn expire(&mut self, now: Instant) {
        let is_old = match self.robots {
            Robots::Known { until, used, .. } => until <= now && (used || until + UNUSED_FOR <= now),
            Robots::Refused { until, .. } => until <= now,
            _ => false,
        };
        if is_old {
            self.forget();
        }
    }

    /// robots.txt is to be asked for anew.
    pub(super) fn forget(&mut self) {
        (self.moved, self.redirects, self.attempts) = (None, 0, 0);
        self.robots = Robots::Unknown;
    }

    /// A URL was judged by the rules.
    fn note_use(&mut self) {
        if let Robots::Known { used, .. } = &mut self.robots {
            *used = true;
        }
    }

    /// Until when nothing of this origin can be fetched; `None` when something can be tried now.
    fn waits_until(&self, now: Instant) -> Option<Instant> {
        match &self.robots {
            Robots::Unreachable { again } if *again > now => Some(*again),
            // The other host wakes this one; the pause is a second string.
            Robots::Elsewhere { .. } => Some(now + ELSEWHERE_PAUSE),
            _ => None,
        }
    }
}

/// How long rules that were not used yet outlast their time: the longest delay that can be configured.
const UNUSED_FOR: Duration = Duration::from_secs(86_400);
/// How long a host rests whose robots.txt another host is fetching.
const ELSEWHERE_PAUSE: Duration = Duration::from_secs(1);
