//! A host's turn: which request comes next.
//!
//! Decides, for the host's current URL, in this order: whether it is still in scope and within its budgets, an
//! address, a verdict of robots.txt, the delays, then the page. A host that cannot continue goes back into the
//! calendar, never into a loop.

use std::net::IpAddr;

use super::backlog::{PUT_OFF_MAX, QueuedUrl, RETRIES_MAX, RETRIES_MIN, Taken};
use super::calendar::Event;
use super::fetch_slots::HURRIED;
use super::host::State;
use super::host_failures::{is_no_robots_txt, kind_of};
use super::kind_lanes::Turn;
use super::origin::{Origin, Verdict};
use super::resolution::REFRESH_PATIENCE;
use super::robots_message::RobotsResult;
use super::site_quotas::{Left, PENDING_PAUSE};
use super::waiting::{Ticket, WaitingUrls};
use super::{Frontier, STEPS_MAX, TURN_FUEL};
use crate::hops::Hops;
use crate::job::{FetchJob, HostId, JobKind};
use crate::kinds::KindFacts;
use crate::politeness::{GivenUp, Key, Turns};
use crate::spool::{Block, Spool};
use ringcrawl_base::Failure;
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_url::Url;

/// The next step of a host.
enum Next {
    /// Look at the current URL.
    Current,
    /// Look for another URL: the one that came had its turn before.
    Stale,
    /// Wait for the clock.
    Wait(Instant),
    /// Wait for a block.
    Read(Block),
    /// Nothing.
    Idle,
}

/// The result of looking for the rules of an origin.
#[allow(clippy::large_enum_variant, reason = "there is one at a time")]
enum RulesJob {
    /// They are known, or an answer will come: the verdict differs now.
    Looked,
    /// Its robots.txt is requested, if anything can be now.
    Asked(Option<FetchJob>),
}

impl Frontier {
    /// Gives host `id` its turn: returns a job, or `None` after putting the host where it belongs.
    pub(super) fn take_turn(&mut self, id: HostId, now: Instant, spool: &mut Spool) -> Option<FetchJob> {
        let mut again_at = now;
        let work_before = self.fuel.left();
        for _ in 0..STEPS_MAX {
            if self.fuel.is_spent() {
                break;
            }
            if let Some(given_up) = self.hosts[id].pace.given_up() {
                if given_up.until <= now {
                    self.hosts[id].forgive();
                } else if self.settle_next(id, now, given_up, spool) {
                    continue;
                } else {
                    return None;
                }
            }
            // All its URLs end. Soon afterwards it is judged again, as another list may have taken effect.
            if self.scope.blocks().blocks_host(&self.hosts[id].name) {
                self.give_up_blocked(id, now);
                continue;
            }
            // Before the host's own URLs, as others wait for it, but with a small share of its time while these wait.
            if self.hosts[id].own_turns == 0 && self.wants_robots(id, now) {
                return self.wanted_robots_job(id, now);
            }
            match self.choose_url(id, now) {
                Next::Current => {}
                Next::Stale => continue,
                Next::Wait(_) | Next::Idle if self.wants_robots(id, now) => {
                    return self.wanted_robots_job(id, now);
                }
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
            if self.lets_others_first(id, now) {
                return None;
            }
            let host = &mut self.hosts[id];
            let entry = host.backlog.take_current()?;
            // The scope may have changed since the URL was queued.
            if let Some(failure) = self.scope.refuses(&entry.url, Hops::from_bits(entry.ticket.depth)) {
                self.settle(entry, failure);
                continue;
            }
            let site = self.budgets.key(&entry.url, self.hosts[id].site);
            match self.budgets.left(now, &self.hosts[id].name, site) {
                Left::Enough => {}
                Left::Nothing => {
                    self.settle(entry, Failure::OverBudget);
                    continue;
                }
                Left::Pending => {
                    self.hosts[id].backlog.set_current(entry);
                    if self.wants_robots(id, now) {
                        return self.wanted_robots_job(id, now);
                    }
                    self.schedule(id, now, now + PENDING_PAUSE);
                    return None;
                }
            }
            let host = &mut self.hosts[id];
            let Some(origin) = host.origin_of(&entry.url) else {
                self.has_no_origin(id, entry, now);
                continue;
            };
            match host.verdict(origin, &entry.url, now, &self.settings, &mut self.fuel) {
                Verdict::Settle(failure) => self.settle(entry, failure),
                Verdict::Wait(at) => {
                    // A batch entry has no room for the count of attempts, so retries wait elsewhere.
                    if entry.attempt > 0 {
                        let before = host.backlog.ram_bytes();
                        host.backlog.retry(at, entry);
                        self.memory.changed(before, host.backlog.ram_bytes());
                        continue;
                    }
                    if let Some(bytes) = host.origins[origin].park(entry.ticket, &entry.url, self.memory.has_room()) {
                        self.memory.grew(bytes);
                        continue;
                    }
                    if host.has_another_that_works(origin) {
                        // Behind the URLs of origins that work.
                        self.importance.is_back(&entry.url, entry.ticket);
                        self.queue(now, id, &entry.url, entry.ticket, spool);
                        again_at = now + self.settings.politeness.host_delay.max(REQUEUE_PAUSE);
                        continue;
                    }
                    host.backlog.set_current(entry);
                    if self.wants_robots(id, now) {
                        return self.wanted_robots_job(id, now);
                    }
                    self.schedule(id, now, at);
                    return None;
                }
                Verdict::Ask => {
                    host.backlog.set_current(entry);
                    self.ask_again(now, id, origin);
                }
                Verdict::Fetch => {
                    host.backlog.set_current(entry);
                    match self.own_rules(id, origin, now) {
                        RulesJob::Looked => {}
                        RulesJob::Asked(job) => return job,
                    }
                }
                Verdict::Allowed => return self.page_job(id, entry, now),
            }
        }
        // A long run of URLs that robots.txt forbids: others go first, and the host pauses if its verdicts are
        // expensive.
        let is_dear = work_before - self.fuel.left() >= DEAR_WORK;
        let pause = if is_dear { DEAR_PAUSE } else { Duration::ZERO };
        self.schedule(id, now, again_at.max(now + pause));
        None
    }

    /// Chooses the host's current URL, if it has none.
    fn choose_url(&mut self, id: HostId, now: Instant) -> Next {
        let retries_max = if self.memory.has_room() { RETRIES_MAX } else { RETRIES_MIN };
        let host = &mut self.hosts[id];
        if host.backlog.current().is_some() {
            return Next::Current;
        }
        let before = host.backlog.ram_bytes();
        let tried = host.backlog.tried();
        // Failed URLs are retried once others have shown how the host does: three links to a broken script would hold
        // it up.
        let others_first = host.kind_rest.as_ref().is_some_and(|rest| rest.others_first())
            && tried + host.under_way.jobs() < retries_max;
        if !others_first && host.backlog.take_retry(now) {
            self.memory.changed(before, host.backlog.ram_bytes());
            return self.if_not_resting(id, now);
        }
        let mut wait = host.backlog.next_retry();
        // Each job in flight may add one more. There may be room for more of them sooner.
        if let (Some(at), true) = (wait, tried + host.under_way.jobs() >= retries_max) {
            return Next::Wait(at.min(now + ROOM_PAUSE));
        }
        for index in 0..host.origins.len() {
            let waits_until = host.waits_until(index, now);
            let Some(origin) = host.origins.get_mut(index).filter(|origin| origin.parked_bytes() > 0) else { continue };
            match waits_until {
                Some(at) => wait = Some(wait.map_or(at, |wait| wait.min(at))),
                None => {
                    if let Some((ticket, text)) = origin.unpark() {
                        self.memory.shrank(WaitingUrls::entry_bytes(&text) as u64);
                        if let Ok(url) = Url::from_canonical(&text) {
                            let judgment = self.judge(id, &url, ticket);
                            let (weight, is_examined) = (judgment.weight(), judgment.wants_look);
                            let (attempt, level, turn) = (0, 0, Turn::Queue);
                            let is_put_off = false;
                            let entry =
                                QueuedUrl { url, ticket, attempt, level, turn, weight, is_examined, is_put_off };
                            self.hosts[id].backlog.set_current(entry);
                            return self.if_not_resting(id, now);
                        }
                        self.queued -= 1;
                    }
                }
            }
        }
        if host.kind_rest.as_ref().is_some_and(|rest| rest.are_many_put_off()) && !host.end_doubt(now) {
            return Next::Wait(wait.map_or(now + SEARCH_PAUSE, |wait| wait.min(now + SEARCH_PAUSE)));
        }
        let kind_rest = host.kind_rest.as_mut();
        host.backlog.rest_lane(kind_rest.is_some_and(|rest| rest.is_lap_over(now)));
        let taken = host.backlog.take_next();
        self.memory.changed(before, host.backlog.ram_bytes());
        let before = host.backlog.ram_bytes();
        let wanted = host.robots_wanted.iter().map(|url| host.may_ask_for_file_from(url, now)).min();
        if let Some(at) = wanted {
            wait = Some(wait.map_or(at, |wait| wait.min(at)));
        }
        match taken {
            Taken::Url => {
                let Some(entry) = host.backlog.take_current() else { return Next::Stale };
                if entry.turn == Turn::Queue && !self.importance.takes(&entry.url, entry.ticket) {
                    self.fuel.spend(STALE_WORK);
                    return Next::Stale;
                }
                match entry.turn {
                    Turn::Queue => self.judged(id, entry.ticket),
                    Turn::Lane(_) => self.left_lane(),
                }
                let judgment = self.judge(id, &entry.url, entry.ticket);
                let backlog = &mut self.hosts[id].backlog;
                if let Some(kind) = judgment.lowered.filter(|kind| backlog.is_to_move(entry.turn, *kind)) {
                    self.lower(id, &entry, kind);
                    return Next::Stale;
                }
                let (weight, is_examined) = (judgment.weight(), judgment.wants_look);
                let entry = QueuedUrl { weight, is_examined, ..entry };
                self.hosts[id].backlog.set_current(entry);
                self.if_not_resting(id, now)
            }
            Taken::Damaged(turn) => {
                self.queued = self.queued.saturating_sub(1);
                if turn != Turn::Queue {
                    self.left_lane();
                }
                Next::Stale
            }
            Taken::Read(block) => Next::Read(block),
            // No other URL is delayed by them.
            Taken::Nothing if host.doubtful_rest > now => {
                host.doubtful_rest = Instant::ZERO;
                Next::Wait(now)
            }
            Taken::Nothing => {
                if host.end_doubt(now) {
                    return Next::Wait(now);
                }
                if others_first && host.backlog.take_retry(now) {
                    self.memory.changed(before, host.backlog.ram_bytes());
                    return self.if_not_resting(id, now);
                }
                // URLs that rest with their kinds have not ended.
                let next_end = host.kind_rest.as_ref().and_then(|rest| rest.next_end(now));
                let next_end = next_end.filter(|_| host.backlog.has_resting());
                [wait, next_end].into_iter().flatten().min().map_or(Next::Idle, Next::Wait)
            }
        }
    }

    /// The current URL, unless it was put off or ended together with its kind.
    fn if_not_resting(&mut self, id: HostId, now: Instant) -> Next {
        if self.rests_with_its_kind(id, now) { Next::Stale } else { Next::Current }
    }

    /// Puts the current URL off while its kind rests, or ends it with its kind; returns whether it did. Without room
    /// it goes to the lane of resting URLs.
    fn rests_with_its_kind(&mut self, id: HostId, now: Instant) -> bool {
        let host = &mut self.hosts[id];
        let Some(entry) = host.backlog.current() else { return false };
        if host.kind_rest.is_none() {
            return false;
        }
        let of = kind_of(&entry.url, entry.ticket.is_strangers);
        let (is_given_up, rests_until) = (host.is_of_kind_given_up(now, of), host.kind_rests_until(now, of));
        let Some(until) = rests_until.or(is_given_up.then_some(now)) else { return false };
        let Some(entry) = host.backlog.take_current() else { return false };
        if is_given_up {
            self.settle(entry, Failure::HostDead);
            return true;
        }
        host.kind_rest.iter_mut().for_each(|rest| rest.is_put_off(entry.turn != Turn::Queue));
        self.fuel.spend(STALE_WORK);
        // A lane cannot store the count of attempts; a URL that was tried came from among the retries.
        if self.resting_room(id) == 0 && entry.attempt == 0 {
            self.lower(id, &entry, KindFacts::RESTING);
            return true;
        }
        let host = &mut self.hosts[id];
        let before = host.backlog.ram_bytes();
        host.backlog.retry(until, QueuedUrl { is_put_off: true, ..entry });
        self.memory.changed(before, host.backlog.ram_bytes());
        true
    }

    /// A URL of a port for which its host has no slot: it waits, without a request, until one of the ports that do
    /// not answer is given up. It ends if all ports have answered or too many URLs wait. Strangers' links leave room
    /// for those of the host.
    fn has_no_origin(&mut self, id: HostId, entry: QueuedUrl, now: Instant) {
        let kept = if entry.ticket.is_strangers { self.resting_room_max() / 2 } else { 0 };
        let has_room = entry.attempt > 0 || self.resting_room(id) > kept;
        let host = &mut self.hosts[id];
        if !has_room || !host.may_have_other_origins() || host.had_dead_port(&entry.url) {
            return self.settle(entry, Failure::TooManyPorts);
        }
        let before = host.backlog.ram_bytes();
        host.backlog.retry(now + ORIGIN_PAUSE, QueuedUrl { is_put_off: true, ..entry });
        self.memory.changed(before, host.backlog.ram_bytes());
    }

    /// The number of URLs that may still be put off, with their kind or because their port has no slot.
    fn resting_room(&self, id: HostId) -> usize {
        self.resting_room_max().saturating_sub(self.hosts[id].backlog.put_off())
    }

    fn resting_room_max(&self) -> usize {
        if self.memory.has_room() { PUT_OFF_MAX } else { RETRIES_MIN / 2 }
    }

    /// Ends one URL of a host that was given up; `false` if none is left in memory.
    fn settle_next(&mut self, id: HostId, now: Instant, given_up: GivenUp, spool: &mut Spool) -> bool {
        let host = &mut self.hosts[id];
        host.doubtful_rest = Instant::ZERO;
        host.kind_rest = None;
        host.backlog.rest_lane(false);
        host.backlog.retry_all(now);
        for origin in &mut host.origins {
            origin.refuse(given_up.until, Failure::RobotsUnreachable);
        }
        for url in std::mem::take(&mut host.robots_wanted) {
            self.file_came(now, &url, (RobotsResult::Refused(Failure::RobotsUnreachable), given_up.until));
        }
        // They end without a request.
        match self.choose_url(id, now) {
            Next::Current => {
                if let Some(entry) = self.hosts[id].backlog.take_current() {
                    self.settle(entry, given_up.failure);
                }
                true
            }
            Next::Stale => true,
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

    /// The host, or each of its addresses, is blocked.
    fn give_up_blocked(&mut self, id: HostId, now: Instant) {
        self.hosts[id].pace.give_up(Failure::Blocked, now + BLOCKED_FOR);
    }

    /// An address to query, and fallbacks for when it does not answer, without those that are blocked.
    fn unblocked(&self, id: HostId, addr: IpAddr, others: Vec<IpAddr>) -> Option<(IpAddr, Vec<IpAddr>)> {
        let blocks = self.scope.blocks();
        if !blocks.has_addresses() {
            return Some((addr, others));
        }
        let mut all = std::iter::once(addr).chain(others).filter(|addr| !blocks.blocks_address(*addr));
        match all.next() {
            Some(addr) => Some((addr, all.collect())),
            // No fallbacks are given if one is known to work.
            None => {
                let known = self.hosts[id].resolution.known();
                known.iter().copied().find(|addr| !blocks.blocks_address(*addr)).map(|addr| (addr, Vec::new()))
            }
        }
    }

    /// A blocked robots.txt on a host that is not blocked: nothing of its origin may be fetched, as no request reads
    /// its rules.
    fn robots_blocked(&mut self, id: HostId, url: &Url, now: Instant) {
        let until = now + self.settings.robots.ttl;
        let host = &mut self.hosts[id];
        host.robots_wanted.retain(|wanted| wanted != url);
        let name = host.name.clone();
        let own = host.origins.iter_mut().filter(|origin| origin.robots_url(&name).as_ref() == Some(url));
        own.for_each(|origin| origin.refuse(until, Failure::Blocked));
        self.file_came(now, url, (RobotsResult::Refused(Failure::Blocked), until));
    }

    /// A host has nothing to do. Before its delay is over it rests, because an idle host may be forgotten; nothing
    /// waits for this rest.
    fn retire(&mut self, id: HostId, now: Instant) {
        self.hosts[id].leave = None;
        match self.hosts[id].pace.not_before() {
            // Their ends are still to come.
            _ if self.hosts[id].under_way.jobs() > 0 => self.hosts.set_state(id, State::Emptied),
            at if at > now => {
                self.hosts.set_state(id, State::Resting(at));
                self.calendar.push(at, Event::Host(id));
            }
            _ => {
                self.hosts.set_state(id, State::Idle);
                // Rules outlast their expiry only for URLs that wait.
                self.hosts[id].origins.iter_mut().for_each(Origin::note_use);
                self.outside.look_again();
            }
        }
    }

    fn page_job(&mut self, id: HostId, entry: QueuedUrl, now: Instant) -> Option<FetchJob> {
        let (url, ticket, attempt) = (entry.url.clone(), entry.ticket, entry.attempt);
        let (turn, weight, is_examined) = (entry.turn, entry.weight, entry.is_examined);
        self.hosts[id].backlog.set_current(entry);
        let job = self.request(id, JobKind::Page, url, now)?;
        if job.kind == JobKind::Page {
            let host = &mut self.hosts[id];
            self.budgets.took(now, &host.name, self.budgets.key(&job.url, host.site));
            self.allowances.took(host.site);
            host.backlog.take_current();
            // Another attempt has no turn of its own.
            if attempt == 0 {
                host.backlog.had(turn, weight);
            }
            host.own_turns = host.own_turns.saturating_sub(1);
            let mut usage = None;
            if let Some(origin) = host.origin_of(&job.url) {
                let origin = &mut host.origins[origin];
                origin.note_use();
                usage = origin.usage(&job.url, &mut self.fuel);
            }
            self.page_begun(id, weight, now);
            self.go_on_beside(id, now);
            let Ticket { number, depth, is_strangers } = ticket;
            return Some(FetchJob { number, depth, is_strangers, attempt, is_examined, usage, ..job });
        }
        Some(job)
    }

    /// A request for the host's own robots.txt at `url`.
    fn robots_job(&mut self, id: HostId, url: Option<Url>, now: Instant) -> Option<FetchJob> {
        let Some(url) = url else {
            self.hosts[id].pace.give_up(Failure::RobotsUnreachable, Instant::NEVER);
            self.schedule(id, now, now);
            return None;
        };
        let job = self.request(id, JobKind::Robots, url, now);
        let own_turns = &mut self.hosts[id].own_turns;
        *own_turns = own_turns.saturating_sub(u8::from(is_request(&job)));
        job
    }

    /// Looks for the unknown rules of an origin: at the shard that has them, among the files that others were
    /// redirected to, or at the origin.
    fn own_rules(&mut self, id: HostId, origin: usize, now: Instant) -> RulesJob {
        let host = &mut self.hosts[id];
        let own = host.origins[origin].robots_url(&host.name);
        let is_elsewhere =
            self.settings.shares_hosts && self.settings.partition.home_of(&host.name) != self.settings.shard;
        if let Some(own) = own.as_ref().filter(|_| is_elsewhere) {
            host.origins[origin].look_at_home(own);
            self.ask_again(now, id, origin);
            return RulesJob::Looked;
        }
        // Others may have been redirected there before. A host that was forgotten since is queried anyway: the
        // instant from which its Crawl-delay counts is forgotten, too.
        let own_known = own.as_ref().filter(|_| host.pace.was_asked());
        match own_known.and_then(|own| self.robots_files.known(own, now)) {
            Some(finding) => {
                self.learn(now, id, origin, finding);
                RulesJob::Looked
            }
            None => RulesJob::Asked(self.robots_job(id, own, now)),
        }
    }

    /// Whether a file that others were redirected to waits and may be requested.
    fn wants_robots(&self, id: HostId, now: Instant) -> bool {
        self.wanted_robots(id, now).is_some()
    }

    /// The first of the files that others were redirected to, except those that rest with their origin or kind.
    fn wanted_robots(&self, id: HostId, now: Instant) -> Option<&Url> {
        let host = &self.hosts[id];
        host.robots_wanted.iter().find(|url| host.may_ask_for_file_from(url, now) <= now)
    }

    /// The request for a file that others were redirected to. If it is not a robots.txt, the host's own robots.txt is
    /// requested first, and few files that it forbids are fetched
    /// ([`Host::takes_forbidden_file`](super::host::Host::takes_forbidden_file)).
    fn wanted_robots_job(&mut self, id: HostId, now: Instant) -> Option<FetchJob> {
        let url = self.wanted_robots(id, now)?.clone();
        if self.scope.blocks().blocks(&url) {
            self.refuse_file(now, id, &url);
            return None;
        }
        if is_no_robots_txt(&url) && !self.hosts[id].has_taken_forbidden_file(&url) {
            let host = &mut self.hosts[id];
            let Some(origin) = host.origin_of(&url) else {
                self.refuse_file(now, id, &url);
                return None;
            };
            match host.verdict(origin, &url, now, &self.settings, &mut self.fuel) {
                Verdict::Fetch => match self.own_rules(id, origin, now) {
                    RulesJob::Asked(job) => return job,
                    RulesJob::Looked => {
                        self.schedule(id, now, now);
                        return None;
                    }
                },
                Verdict::Settle(Failure::RobotsDenied) if self.hosts[id].takes_forbidden_file(&url) => {}
                Verdict::Settle(Failure::RobotsDenied | Failure::CrawlDelayTooLong | Failure::HostDead) => {
                    self.refuse_file(now, id, &url);
                    return None;
                }
                // Its own rules cannot be determined: they may be in this file, or wait for it.
                Verdict::Allowed | Verdict::Wait(_) | Verdict::Ask | Verdict::Settle(_) => {}
            }
        }
        let job = self.request(id, JobKind::Robots, url, now);
        if is_request(&job) {
            self.hosts[id].own_turns = OWN_TURNS;
        }
        job
    }

    /// A file that others were redirected to is unavailable here.
    fn refuse_file(&mut self, now: Instant, id: HostId, url: &Url) {
        self.hosts[id].robots_wanted.retain(|wanted| wanted != url);
        let refused = RobotsResult::Refused(Failure::RobotsUnreachable);
        self.file_came(now, url, (refused, now + self.settings.robots.retry_delay));
        self.schedule(id, now, now);
    }

    /// A request to the host, or the `Resolve` job that must come first, or `None` if it must wait.
    fn request(&mut self, id: HostId, kind: JobKind, url: Url, now: Instant) -> Option<FetchJob> {
        let wall = self.settings.clock.at(now);
        let host = &mut self.hosts[id];
        // Its jobs in flight may have shown meanwhile that it bears fewer.
        if !host.under_way.has_room(host.pace.requests_max()) {
            self.hosts.set_state(id, State::Busy);
            return None;
        }
        host.pace.keep_hours(now, wall);
        let turn = host.next_turn(self.settings.resolve_lead);
        if turn > now {
            self.schedule(id, now, turn);
            return None;
        }
        let needed_at = now.max(host.pace.not_before());
        let Some((addr, others)) = host.resolution.addr(needed_at).or_else(|| self.old_address(id, now, needed_at))
        else {
            return self.lookup(id, url, now, needed_at);
        };
        if kind == JobKind::Robots && self.scope.blocks().blocks(&url) {
            self.robots_blocked(id, &url, now);
            self.schedule(id, now, now);
            return None;
        }
        let Some((addr, mut others)) = self.unblocked(id, addr, others) else {
            self.give_up_blocked(id, now);
            self.schedule(id, now, now);
            return None;
        };
        let (site, turns) = (self.hosts[id].site, self.turns_for(id, addr));
        if self.must_end_visit(now, id, &turns) {
            self.hosts.set_state(id, State::Busy);
            return None;
        }
        let awaited = self.turn_queues.awaited_by_another(turns.keys(), site);
        let lasts_max = self.places.deadline(site, self.settings.deadline, awaited);
        let is_site_wanted =
            || turns.keys().any(|key| matches!(key, Key::Site(_)) && self.turn_queues.is_wanted(key, id));
        let lasts_max = match self.hosts[id].is_first_met() && is_site_wanted() {
            true => lasts_max.min(HURRIED),
            false => lasts_max,
        };
        let deadline = now + lasts_max;
        // Another operator would need a further turn.
        let operator = self.settings.operators.of_address(addr);
        others.retain(|other| self.settings.operators.of_address(*other) == operator);
        let is_slow = self.places.is_slow(site);
        let may_look = |key| self.turn_queues.may_look(now, key, self.guest_at(key, id), is_slow);
        let hold_until = self.hold_until(now, id, deadline);
        if !self.is_visiting(id)
            && let Err(taken) = turns.claim(&self.ledger, now, hold_until, may_look)
        {
            self.park(id, now, taken);
            return None;
        }
        self.begin_request(now, id, &turns, hold_until);
        let is_hurried = lasts_max < self.settings.deadline;
        Some(FetchJob { others, turns, is_hurried, ..self.job(now, id, kind, url, Some(addr), deadline) })
    }

    /// An expired address, if the name is being looked up and no answer came soon.
    fn old_address(&mut self, id: HostId, now: Instant, needed_at: Instant) -> Option<(IpAddr, Vec<IpAddr>)> {
        let host = &mut self.hosts[id];
        let since = host.under_way.refreshing()?;
        let may_serve = since + REFRESH_PATIENCE <= now && host.resolution.stretch(needed_at, self.settings.stale_max);
        if may_serve { host.resolution.addr(needed_at) } else { None }
    }

    /// The lookup of a host's name for a request at `needed_at`, or `None` if it must wait. A host whose expired
    /// address may serve does not wait for slots, and not long for answers.
    fn lookup(&mut self, id: HostId, url: Url, now: Instant, needed_at: Instant) -> Option<FetchJob> {
        let host = &mut self.hosts[id];
        if let Some(at) = host.resolution.retry_at().filter(|at| *at > now) {
            self.schedule(id, now, at);
            return None;
        }
        let may_go_on = host.resolution.may_stretch(needed_at, self.settings.stale_max);
        if let Some(since) = host.under_way.refreshing() {
            match may_go_on {
                true => self.schedule(id, now, needed_at.max(since + REFRESH_PATIENCE)),
                false => self.hosts.set_state(id, State::Busy),
            }
            return None;
        }
        let asked = host.asked();
        if !self.lookups.begin(now, id, asked) {
            if may_go_on && host.resolution.stretch(needed_at, self.settings.stale_max) {
                self.schedule(id, now, needed_at);
                return None;
            }
            self.lookups.wait(id, asked);
            self.hosts.set_state(id, State::Parked);
            return None;
        }
        let both_families = host.resolution.wants_both_families();
        let deadline = now + self.settings.deadline;
        let job = FetchJob { both_families, ..self.job(now, id, JobKind::Resolve, url, None, deadline) };
        if may_go_on {
            self.hosts[id].under_way.refreshes(now);
            self.schedule(id, now, needed_at.max(now + REFRESH_PATIENCE));
        }
        Some(job)
    }

    fn job(
        &mut self,
        now: Instant,
        id: HostId,
        kind: JobKind,
        url: Url,
        addr: Option<IpAddr>,
        deadline: Instant,
    ) -> FetchJob {
        self.hosts[id].under_way.begins(kind);
        self.hosts.set_state(id, State::Busy);
        self.next_job += 1;
        let is_of_slow_site = self.places.is_slow(self.hosts[id].site);
        if kind != JobKind::Resolve {
            self.places.took(now, self.next_job, self.hosts[id].site);
        }
        let politeness = &self.settings.politeness;
        let rest = self.hosts[id].pace.delay(politeness).max(politeness.ip_delay);
        FetchJob {
            id: self.next_job,
            host: id,
            kind,
            url,
            addr,
            both_families: false,
            others: Vec::new(),
            turns: Turns::default(),
            number: 0,
            depth: 0,
            via: None,
            attempt: 0,
            began: now,
            ended: None,
            deadline,
            is_hurried: false,
            is_strangers: false,
            is_examined: false,
            usage: None,
            is_of_slow_site,
            rest,
            told: None,
        }
    }
}

/// Whether the job queries the host itself, and not a name server for its address.
fn is_request(job: &Option<FetchJob>) -> bool {
    job.as_ref().is_some_and(|job| job.kind != JobKind::Resolve)
}

/// Cost of skipping a URL that had its turn: less than a microsecond.
const STALE_WORK: u64 = 2_048;
/// How long a blocked host is given up: as long as its queue takes to end.
const BLOCKED_FOR: Duration = Duration::from_secs(1);
/// Pause after a turn in which URLs only went behind others.
const REQUEUE_PAUSE: Duration = Duration::from_secs(1);
/// A URL whose port found no slot looks for one again after this time.
const ORIGIN_PAUSE: Duration = Duration::from_secs(60);
/// A host whose turn takes more work than this pauses for `DEAR_PAUSE`: it gets at least a fortieth of the shard's
/// time and at most a quarter.
const DEAR_WORK: u64 = TURN_FUEL / 4;
/// Own requests of a host for each request of a file that others' robots.txt redirect to.
const OWN_TURNS: u8 = 12;
/// A host with too many URLs waiting for a retry is looked at again after this time.
const ROOM_PAUSE: Duration = Duration::from_secs(10);
/// Pause after many URLs in a row that were put off; then the next ones are looked at.
const SEARCH_PAUSE: Duration = Duration::from_secs(1);
const DEAR_PAUSE: Duration = Duration::from_millis(20);
