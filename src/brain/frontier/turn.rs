//! A host's turn: which request comes next.
//!
//! Decides, for the host's current URL ([`url_choice`](super::url_choice)), in this order: whether it is still in scope
//! and within its quotas, an address, a verdict of robots.txt, the delays, then the page. A host that cannot continue
//! goes back into the calendar, never into a loop.

use std::net::IpAddr;

use super::hosts::{HostState, Origin, REFRESH_PATIENCE, RobotsVerdict, is_no_robots_txt};
use super::order::{Left, PENDING_PAUSE};
use super::queue::{QueuedUrl, Ticket};
use super::robots::RobotsResult;
use super::url_choice::{HostStep, UrlChoice, wait_for_origin};
use super::{Frontier, STEPS_MAX, TURN_FUEL};
use crate::job::{FetchJob, HostId, JobKind};
use crate::politeness::GivenUp;
use crate::spool::{Block, ReadFor, Spool};
use ringcrawl_base::Failure;
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_url::Url;

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
                } else if self.end_next(id, now, given_up, spool) {
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
                HostStep::Current => {}
                HostStep::Stale => continue,
                HostStep::End(entry, failure) => {
                    self.end_unfetched(*entry, failure);
                    continue;
                }
                HostStep::Wait(_) | HostStep::Idle if self.wants_robots(id, now) => {
                    return self.wanted_robots_job(id, now);
                }
                HostStep::Wait(at) => {
                    self.schedule(id, now, at);
                    return None;
                }
                HostStep::Read(block) => {
                    self.read_back(id, block, spool);
                    return None;
                }
                HostStep::Idle => {
                    self.retire(id, now);
                    return None;
                }
            }
            if let Some(until) = self.order.lets_others_first(now, &mut self.hosts, id) {
                self.schedule(id, now, until);
                return None;
            }
            let host = &mut self.hosts[id];
            let entry = host.backlog.take_current()?;
            // The scope may have changed since the URL was queued.
            if let Some(failure) = self.scope.refuses(&entry.url, entry.ticket.hops()) {
                self.end_unfetched(entry, failure);
                continue;
            }
            match self.order.left(now, host, &entry.url) {
                Left::Enough => {}
                Left::Nothing => {
                    self.end_unfetched(entry, Failure::OverBudget);
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
                if let Some(entry) = wait_for_origin(now, host, &mut self.queue, entry) {
                    self.end_unfetched(entry, Failure::TooManyPorts);
                }
                continue;
            };
            match host.verdict(origin, &entry.url, now, &self.settings, &mut self.fuel) {
                RobotsVerdict::Settle(failure) => self.end_unfetched(entry, failure),
                RobotsVerdict::Wait(at) => {
                    // A batch entry has no room for the count of attempts, so retries wait elsewhere.
                    if entry.attempt > 0 {
                        self.queue.change(&mut host.backlog, |backlog| backlog.retry(at, entry));
                        continue;
                    }
                    if let Some(bytes) =
                        host.origins[origin].park(entry.ticket, &entry.url, self.queue.memory.has_room())
                    {
                        self.queue.parked(bytes);
                        continue;
                    }
                    if host.has_another_that_works(origin) {
                        // Behind the URLs of origins that work.
                        self.order.importance.is_back(&entry.url, entry.ticket);
                        self.enqueue(now, id, &entry.url, entry.ticket, spool);
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
                RobotsVerdict::Ask => {
                    host.backlog.set_current(entry);
                    self.ask_again(now, id, origin);
                }
                RobotsVerdict::Fetch => {
                    host.backlog.set_current(entry);
                    match self.own_rules(id, origin, now) {
                        RulesJob::Looked => {}
                        RulesJob::Asked(job) => return job,
                    }
                }
                RobotsVerdict::Allowed => return self.page_job(id, entry, now),
            }
        }
        // A long run of URLs that robots.txt forbids: others go first, and the host pauses if its verdicts are
        // expensive.
        let is_costly = work_before - self.fuel.left() >= COSTLY_WORK;
        let pause = if is_costly { COSTLY_PAUSE } else { Duration::ZERO };
        self.schedule(id, now, again_at.max(now + pause));
        None
    }

    /// Chooses the host's current URL, if it has none.
    fn choose_url(&mut self, id: HostId, now: Instant) -> HostStep {
        let slots = self.hosts.slots();
        let Frontier { hosts, queue, order, fuel, .. } = self;
        UrlChoice { now, id, host: &mut hosts[id], slots, queue, order, fuel }.choose()
    }

    /// Ends one URL of a host that was given up; `false` if none is left in memory.
    fn end_next(&mut self, id: HostId, now: Instant, given_up: GivenUp, spool: &mut Spool) -> bool {
        for url in self.hosts[id].give_everything_up(now, given_up.until) {
            self.file_came(now, &url, (RobotsResult::Refused(Failure::RobotsUnreachable), given_up.until));
        }
        // They end without a request.
        match self.choose_url(id, now) {
            HostStep::Current => {
                if let Some(entry) = self.hosts[id].backlog.take_current() {
                    self.end_unfetched(entry, given_up.failure);
                }
                true
            }
            HostStep::Stale => true,
            HostStep::End(entry, failure) => {
                self.end_unfetched(*entry, failure);
                true
            }
            HostStep::Read(block) => {
                self.read_back(id, block, spool);
                false
            }
            HostStep::Wait(_) | HostStep::Idle => {
                self.retire(id, now);
                false
            }
        }
    }

    fn read_back(&mut self, id: HostId, block: Block, spool: &mut Spool) {
        self.hosts.set_state(id, HostState::Reading);
        spool.read(block, ReadFor::Host(id));
    }

    /// The host, or each of its addresses, is blocked.
    fn give_up_blocked(&mut self, id: HostId, now: Instant) {
        self.hosts[id].pace.give_up(Failure::Blocked, now + BLOCKED_FOR);
    }

    /// A host has nothing to do. Before its delay is over it rests, because an idle host may be forgotten; nothing
    /// waits for this rest.
    fn retire(&mut self, id: HostId, now: Instant) {
        self.hosts[id].leave = None;
        match self.hosts[id].pace.not_before() {
            // Their ends are still to come.
            _ if self.hosts[id].under_way.jobs() > 0 => self.hosts.set_state(id, HostState::Emptied),
            at if at > now => self.slots.let_rest(&mut self.hosts, id, at),
            _ => {
                self.hosts.set_state(id, HostState::Idle);
                // Rules outlast their expiry only for URLs that wait.
                self.hosts[id].origins.iter_mut().for_each(Origin::note_use);
                self.queue.look_outside_again();
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
            self.order.page_begins(now, host, &job.url, weight);
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
            if let Some(at) = host.goes_on_beside_at(self.settings.resolve_lead) {
                self.schedule(id, now, at);
            }
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
        match own_known.and_then(|own| self.robots.known(own, now)) {
            Some(finding) => {
                self.learn(now, id, origin, finding);
                RulesJob::Looked
            }
            None => RulesJob::Asked(self.robots_job(id, own, now)),
        }
    }

    /// Whether a file that others were redirected to waits and may be requested.
    fn wants_robots(&self, id: HostId, now: Instant) -> bool {
        self.hosts[id].wanted_file(now).is_some()
    }

    /// The request for a file that others were redirected to. If it is not a robots.txt, the host's own robots.txt is
    /// requested first, and few files that it forbids are fetched
    /// ([`Host::takes_forbidden_file`](super::hosts::Host::takes_forbidden_file)).
    fn wanted_robots_job(&mut self, id: HostId, now: Instant) -> Option<FetchJob> {
        let url = self.hosts[id].wanted_file(now)?.clone();
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
                RobotsVerdict::Fetch => match self.own_rules(id, origin, now) {
                    RulesJob::Asked(job) => return job,
                    RulesJob::Looked => {
                        self.schedule(id, now, now);
                        return None;
                    }
                },
                RobotsVerdict::Settle(Failure::RobotsDenied) if self.hosts[id].takes_forbidden_file(&url) => {}
                RobotsVerdict::Settle(Failure::RobotsDenied | Failure::CrawlDelayTooLong | Failure::HostDead) => {
                    self.refuse_file(now, id, &url);
                    return None;
                }
                // Its own rules cannot be determined: they may be in this file, or wait for it.
                RobotsVerdict::Allowed | RobotsVerdict::Wait(_) | RobotsVerdict::Ask | RobotsVerdict::Settle(_) => {}
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
            self.hosts.set_state(id, HostState::Busy);
            return None;
        }
        host.pace.keep_hours(now, wall);
        let turn = host.next_turn(self.settings.resolve_lead);
        if turn > now {
            self.schedule(id, now, turn);
            return None;
        }
        let needed_at = now.max(host.pace.not_before());
        let address = host.resolution.addr(needed_at);
        let Some((addr, others)) = address.or_else(|| host.old_address(now, needed_at, self.settings.stale_max)) else {
            return self.lookup(id, url, now, needed_at);
        };
        if kind == JobKind::Robots && self.scope.blocks().blocks(&url) {
            let until = now + self.settings.robots.ttl;
            host.refuse_robots(&url, until);
            self.file_came(now, &url, (RobotsResult::Refused(Failure::Blocked), until));
            self.schedule(id, now, now);
            return None;
        }
        let Some((addr, mut others)) = host.resolution.unblocked(self.scope.blocks(), addr, others) else {
            self.give_up_blocked(id, now);
            self.schedule(id, now, now);
            return None;
        };
        let claims = host.claims_for(addr, &self.settings);
        if host.under_way.must_end_visit(now, &claims, |key| self.slots.is_wanted(key, id)) {
            self.hosts.set_state(id, HostState::Busy);
            return None;
        }
        let lasts_max = self.slots.time_for(id, host, &claims, self.settings.deadline);
        let deadline = now + lasts_max;
        // Another operator would need a further claim.
        let operator = self.settings.operators.of_address(addr);
        others.retain(|other| self.settings.operators.of_address(*other) == operator);
        let hold_until = host.hold_until(now, deadline, self.settings.deadline);
        if !host.under_way.is_visiting()
            && let Err(taken) = self.slots.claim([now, hold_until], (id, &*host), &claims, &self.ledger, &self.settings)
        {
            self.slots.park(now, &mut self.hosts, id, taken, &self.settings);
            return None;
        }
        host.begin_request(now, &claims, hold_until, &self.settings.politeness);
        let is_hurried = lasts_max < self.settings.deadline;
        Some(FetchJob { others, claims, is_hurried, ..self.job(now, id, kind, url, Some(addr), deadline) })
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
                false => self.hosts.set_state(id, HostState::Busy),
            }
            return None;
        }
        if !self.slots.lookups.begin(now, id, host.asked()) {
            if may_go_on && host.resolution.stretch(needed_at, self.settings.stale_max) {
                self.schedule(id, now, needed_at);
                return None;
            }
            self.slots.park_for_name(&mut self.hosts, id);
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
        self.hosts.set_state(id, HostState::Busy);
        self.next_job += 1;
        let (site, fetch_slots) = (self.hosts[id].site, &mut self.slots.fetch_slots);
        let is_of_slow_site = fetch_slots.is_slow(site);
        if kind != JobKind::Resolve {
            fetch_slots.took(now, self.next_job, site);
        }
        let politeness = &self.settings.politeness;
        let rest = self.hosts[id].pace.delay(politeness).max(politeness.ip_delay);
        let (job, began) = (FetchJob::new(kind, url), now);
        FetchJob { id: self.next_job, host: id, addr, began, deadline, is_of_slow_site, rest, ..job }
    }
}

/// Whether the job queries the host itself, and not a name server for its address.
fn is_request(job: &Option<FetchJob>) -> bool {
    job.as_ref().is_some_and(|job| job.kind != JobKind::Resolve)
}

/// How long a blocked host is given up: as long as its queue takes to end.
const BLOCKED_FOR: Duration = Duration::from_secs(1);
/// Pause after a turn in which URLs only went behind others.
const REQUEUE_PAUSE: Duration = Duration::from_secs(1);
/// A host whose turn takes more work than this pauses for `COSTLY_PAUSE`: it gets at least a fortieth of the shard's
/// time and at most a quarter.
const COSTLY_WORK: u64 = TURN_FUEL / 4;
const COSTLY_PAUSE: Duration = Duration::from_millis(20);
/// Own requests of a host for each request of a file that others' robots.txt redirect to.
const OWN_TURNS: u8 = 12;
