//! Which URL of a host comes next.
//!
//! Decides: the current one; then a retry that is due; then a URL that waited for the robots.txt of its origin; then
//! the next of the host's queue or lanes. A URL whose kind rests is put off, one whose kind was given up ends, and one
//! whose kind is worth less goes to the lane of that kind.
//! Limits: [`PUT_OFF_MAX`] URLs are put off at once; half of [`RETRIES_MIN`] while memory is over its bound.

use super::hosts::{Host, kind_of};
use super::order::{Order, OrderDecision};
use super::queue::{PUT_OFF_MAX, QueueTurn, QueuedUrl, RETRIES_MAX, RETRIES_MIN, Taken, UrlQueues};
use crate::job::HostId;
use crate::kinds::KindFacts;
use crate::spool::Block;
use ringcrawl_base::Failure;
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_robots::Fuel;
use ringcrawl_url::Url;

/// The next step of a host.
pub(super) enum HostStep {
    /// Look at the current URL.
    Current,
    /// Look for another URL: the one that came had its turn before, or went elsewhere.
    Stale,
    /// End this URL, and look for another one.
    End(Box<QueuedUrl>, Failure),
    /// Wait for the clock.
    Wait(Instant),
    /// Wait for a block.
    Read(Block),
    /// Nothing.
    Idle,
}

/// A choice among the URLs of one host.
pub(super) struct UrlChoice<'a> {
    pub(super) now: Instant,
    pub(super) id: HostId,
    pub(super) host: &'a mut Host,
    /// Slots of the host table.
    pub(super) slots: usize,
    pub(super) queue: &'a mut UrlQueues,
    pub(super) order: &'a mut Order,
    pub(super) fuel: &'a mut Fuel,
}

impl UrlChoice<'_> {
    /// Chooses the host's current URL, if it has none.
    pub(super) fn choose(mut self) -> HostStep {
        let (now, retries_max) = (self.now, if self.queue.memory.has_room() { RETRIES_MAX } else { RETRIES_MIN });
        let UrlChoice { ref mut host, ref mut queue, .. } = self;
        if host.backlog.current().is_some() {
            return HostStep::Current;
        }
        let tried = host.backlog.tried();
        // Failed URLs are retried once others have shown how the host does: three links to a broken script would hold
        // it up.
        let others_first = host.kind_rest.as_ref().is_some_and(|rest| rest.others_first())
            && tried + host.under_way.jobs() < retries_max;
        let mut wait = host.backlog.next_retry();
        if !others_first && wait.is_some_and(|at| at <= now) {
            queue.change(&mut host.backlog, |backlog| backlog.take_retry(now));
            return self.if_not_resting();
        }
        // Each job in flight may add one more. There may be room for more of them sooner.
        if let (Some(at), true) = (wait, tried + host.under_way.jobs() >= retries_max) {
            return HostStep::Wait(at.min(now + ROOM_PAUSE));
        }
        for index in 0..host.origins.len() {
            let waits_until = host.waits_until(index, now);
            let Some(origin) = host.origins.get_mut(index).filter(|origin| origin.parked_bytes() > 0) else { continue };
            if let Some(at) = waits_until {
                wait = Some(wait.map_or(at, |wait| wait.min(at)));
                continue;
            }
            let Some((ticket, text)) = origin.unpark() else { continue };
            queue.unparked(&text);
            let Ok(url) = Url::from_canonical(&text) else {
                queue.is_lost();
                continue;
            };
            let judgment = self.order.judge(host, &url, ticket);
            let (weight, is_examined) = (judgment.weight(), judgment.wants_look);
            let (attempt, level, turn, is_put_off) = (0, 0, QueueTurn::Queue, false);
            let entry = QueuedUrl { url, ticket, attempt, level, turn, weight, is_examined, is_put_off };
            host.backlog.set_current(entry);
            return self.if_not_resting();
        }
        if host.kind_rest.as_ref().is_some_and(|rest| rest.are_many_put_off()) && !host.end_doubt(now) {
            return HostStep::Wait(wait.map_or(now + SEARCH_PAUSE, |wait| wait.min(now + SEARCH_PAUSE)));
        }
        let is_lap_over = host.kind_rest.as_mut().is_some_and(|rest| rest.is_lap_over(now));
        let taken = queue.change(&mut host.backlog, |backlog| {
            backlog.rest_lane(is_lap_over);
            backlog.take_next()
        });
        let wanted = host.robots_wanted.iter().map(|url| host.may_ask_for_file_from(url, now)).min();
        if let Some(at) = wanted {
            wait = Some(wait.map_or(at, |wait| wait.min(at)));
        }
        match taken {
            Taken::Url => self.judge_taken(),
            Taken::Damaged(turn) => {
                queue.is_lost();
                if turn != QueueTurn::Queue {
                    self.order.kinds.left_lane();
                }
                HostStep::Stale
            }
            Taken::Read(block) => HostStep::Read(block),
            // No other URL is delayed by them.
            Taken::Nothing if host.doubtful_rest > now => {
                host.doubtful_rest = Instant::ZERO;
                HostStep::Wait(now)
            }
            Taken::Nothing => {
                if host.end_doubt(now) {
                    return HostStep::Wait(now);
                }
                if others_first && queue.change(&mut host.backlog, |backlog| backlog.take_retry(now)) {
                    return self.if_not_resting();
                }
                // URLs that rest with their kinds have not ended.
                let next_end = host.kind_rest.as_ref().and_then(|rest| rest.next_end(now));
                let next_end = next_end.filter(|_| host.backlog.has_resting());
                [wait, next_end].into_iter().flatten().min().map_or(HostStep::Idle, HostStep::Wait)
            }
        }
    }

    /// Judges the URL that was taken from a queue.
    fn judge_taken(mut self) -> HostStep {
        let Some(entry) = self.host.backlog.take_current() else { return HostStep::Stale };
        match self.order.taken(self.host, &entry) {
            OrderDecision::Stale => {
                self.fuel.spend(STALE_WORK);
                HostStep::Stale
            }
            OrderDecision::Lower(kind) => {
                self.lower(&entry, kind);
                HostStep::Stale
            }
            OrderDecision::Go(judgment) => {
                let (weight, is_examined) = (judgment.weight(), judgment.wants_look);
                self.host.backlog.set_current(QueuedUrl { weight, is_examined, ..entry });
                self.if_not_resting()
            }
        }
    }

    /// The current URL, unless it is put off or ends together with its kind. Without room to put it off it goes to the
    /// lane of resting URLs.
    fn if_not_resting(mut self) -> HostStep {
        let UrlChoice { now, ref mut host, .. } = self;
        if host.kind_rest.is_none() {
            return HostStep::Current;
        }
        let Some(entry) = host.backlog.current() else { return HostStep::Current };
        let of = kind_of(&entry.url, entry.ticket.is_strangers);
        let (is_given_up, rests_until) = (host.is_of_kind_given_up(now, of), host.kind_rests_until(now, of));
        let Some(until) = rests_until.or(is_given_up.then_some(now)) else { return HostStep::Current };
        let Some(entry) = host.backlog.take_current() else { return HostStep::Current };
        if is_given_up {
            return HostStep::End(Box::new(entry), Failure::HostDead);
        }
        host.kind_rest.iter_mut().for_each(|rest| rest.is_put_off(entry.turn != QueueTurn::Queue));
        self.fuel.spend(STALE_WORK);
        // A lane cannot store the count of attempts; a URL that was tried came from among the retries.
        if room_to_put_off(self.host, self.queue) == 0 && entry.attempt == 0 {
            self.lower(&entry, KindFacts::RESTING);
        } else {
            put_off(self.host, self.queue, until, entry);
        }
        HostStep::Stale
    }

    /// Sends a URL to the lane of its kind.
    fn lower(&mut self, entry: &QueuedUrl, kind: KindFacts) {
        self.fuel.spend(LOWER_WORK);
        self.order.kinds.lowered(entry.turn);
        self.queue.lower((self.id, &mut self.host.backlog), self.slots, kind, entry);
    }
}

/// Puts a URL of a port off for which its host has no slot: it waits, without a request, until one of the ports that do
/// not answer is given up. It is returned, and ends, if all ports have answered or too many URLs wait. Strangers' links
/// leave room for those of the host.
pub(super) fn wait_for_origin(
    now: Instant,
    host: &mut Host,
    queue: &mut UrlQueues,
    entry: QueuedUrl,
) -> Option<QueuedUrl> {
    let kept = if entry.ticket.is_strangers { room_to_put_off_max(queue) / 2 } else { 0 };
    let has_room = entry.attempt > 0 || room_to_put_off(host, queue) > kept;
    if !has_room || !host.may_have_other_origins() || host.had_dead_port(&entry.url) {
        return Some(entry);
    }
    put_off(host, queue, now + ORIGIN_PAUSE, entry);
    None
}

fn put_off(host: &mut Host, queue: &mut UrlQueues, until: Instant, entry: QueuedUrl) {
    let entry = QueuedUrl { is_put_off: true, ..entry };
    queue.change(&mut host.backlog, |backlog| backlog.retry(until, entry));
}

/// The number of URLs of a host that may still be put off, with their kind or because their port has no slot.
fn room_to_put_off(host: &Host, queue: &UrlQueues) -> usize {
    room_to_put_off_max(queue).saturating_sub(host.backlog.put_off())
}

fn room_to_put_off_max(queue: &UrlQueues) -> usize {
    if queue.memory.has_room() { PUT_OFF_MAX } else { RETRIES_MIN / 2 }
}

/// Cost of skipping a URL that had its turn: less than a microsecond.
const STALE_WORK: u64 = 2_048;
/// Cost of sending a URL to a lane: some two microseconds.
const LOWER_WORK: u64 = 4_096;
/// A URL whose port found no slot looks for one again after this time.
const ORIGIN_PAUSE: Duration = Duration::from_secs(60);
/// A host with too many URLs waiting for a retry is looked at again after this time.
const ROOM_PAUSE: Duration = Duration::from_secs(10);
/// Pause after many URLs in a row that were put off; then the next ones are looked at.
const SEARCH_PAUSE: Duration = Duration::from_secs(1);
