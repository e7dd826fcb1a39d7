//! The path of an earlier run's logs into the parts of the shard, before anything else happens.
//!
//! Decides: every accepted URL is known again; those that are not done wait, in the order of acceptance. URLs that
//! were set aside get another chance. What other shards may not have received is sent to them again, under its
//! number.

use super::{DiskOp, Shard};
use crate::exchange::Batch;
use crate::frontier::{Cost, Ticket};
use crate::hops::Hops;
use crate::log::ReplayStep;
use ringcrawl_base::time::Instant;
use ringcrawl_url::{Url, UrlBatch};

impl Shard {
    /// Continues with the piece that was read for as long as the disk keeps up: waiting URLs go to the spool, and a
    /// megabyte of a log may expand to a hundred megabytes of them.
    pub(super) fn replay_on(&mut self, now: Instant) {
        while !self.effects.is_disk_behind()
            && let Some(mut replay) = self.resumption.take_piece()
        {
            if let Some(urls) = replay.urls_to_come() {
                self.intake.reserve(urls);
            }
            if let Err(why) = replay.read_block(&mut |step| self.replayed(now, step)) {
                return self.effects.fail(format_args!("shard-{:02}/{why}", self.index));
            }
            let is_read = !replay.has_piece();
            self.resumption.put_back(replay);
            self.durability.write_spool(&mut self.effects);
            if is_read && !self.resumption.read_log(&mut self.effects) {
                if let Err(why) = self.resumption.is_read(now) {
                    return self.effects.end_for(why);
                }
                self.settle(now);
            }
        }
    }

    /// Takes up the earlier run if it has been read completely.
    pub(super) fn settle(&mut self, now: Instant) {
        let Some((found, reopened)) = self.resumption.finish(now) else { return };
        self.flights.network.is_taken_up();
        self.intake.is_taken_up();
        self.durability.take_up(now, &found, reopened);
        for (file, _) in &found.torn {
            let end = found.append_at.get(file).copied().unwrap_or_default();
            self.effects.disk(DiskOp::CutLog { file: *file, bytes: end });
        }
        let notes = self.resumption.known().into_iter().chain(found.retried());
        notes.for_each(|note| self.effects.note(format!("shard {}: {note}", self.index)));
        found.losses().into_iter().for_each(|loss| self.effects.warn(format!("shard {}: {loss}", self.index)));
        // From here on the current clock applies; otherwise the next run would start these cooldowns again.
        if self.resumption.take_longer_rests() {
            self.frontier.set_clock(self.clock);
        }
        self.tell_outage(now, None);
        match self.resumption.holds_seeds() {
            true => self.sow(now),
            false => self.reconsider_next(),
        }
    }

    fn replayed(&mut self, now: Instant, step: ReplayStep<'_>) {
        match step {
            ReplayStep::Block(urls) => self.intake.read_ahead(urls),
            ReplayStep::Url { number, depth, text, via, is_over, was_answered, cost, is_page } => {
                let Ok(url) = Url::from_canonical(text) else { return };
                self.resumption.note_known(&url, is_over);
                self.flights.network.was_answered(&url, was_answered);
                if was_answered == Some(true) {
                    self.frontier.order.kinds.was_answered(url.host());
                }
                if let Some(cost) = cost {
                    // The cost of a URL that is fetched again is counted at that time.
                    let cost = if is_over { cost } else { Cost { seconds: cost.seconds, ..Cost::default() } };
                    self.frontier.order.replayed(&url, self.intake.site_key(&url), cost);
                }
                if is_over && is_page {
                    self.frontier.order.link_quotas.took(self.intake.site_key(&url));
                }
                if let Some(via) = via.filter(|_| !is_over) {
                    self.durability.vias.note(number, via);
                    if let Ok(finder) = Url::from_canonical(via) {
                        self.frontier.order.kinds.begin_earlier_links(finder.host());
                    }
                }
                self.remember(now, &url, Ticket { number, depth, is_strangers: false }, is_over);
                self.frontier.order.kinds.end_links();
            }
            ReplayStep::End(_) => {}
            ReplayStep::Link(link) => {
                self.frontier.order.link_quotas.linked(link);
            }
            ReplayStep::Aside(batch) => {
                let batch = without_external(batch);
                if !batch.is_empty() {
                    self.resumption.set_aside(&batch, &mut self.durability.spool);
                }
            }
            // The crawl's own note: what made fetching wait.
            ReplayStep::Host(note) if note.host.is_empty() => {
                self.flights.network.was_told(!note.health.troubles.is_empty());
            }
            ReplayStep::Host(note) => {
                // It may have been fetched only for the robots.txt of other hosts.
                let origin = note.origin();
                let name = origin.as_ref().map_or(&*note.host, |origin| origin.host());
                self.resumption.claim(name, self.index);
                // A cooldown that has ended, or a delay that its robots.txt asks for, is no evidence against an
                // answer from it.
                if note.left(self.clock.seconds(now)) > 0 {
                    self.flights.network.asked_for_rest(name);
                }
                self.frontier.rest(now, &self.resumption.rest(now, self.clock, note));
            }
            ReplayStep::Batch { to, number, urls } => {
                urls.for_each_url(|_, url| self.resumption.claim(url.host(), to));
                let lanes = &mut self.outbox.lanes;
                lanes.closed_before(to, number);
                if !self.durability.is_acknowledged(to, number) {
                    let batch = Batch { to, number, urls: urls.into() };
                    self.stats.links_too_long += lanes.resend(batch, &mut self.durability.spool);
                }
            }
            ReplayStep::Acknowledged { to, number } => {
                self.outbox.lanes.closed_before(to, number);
                self.durability.acknowledge(to, number);
            }
        }
    }

    /// A URL is known again.
    fn remember(&mut self, now: Instant, url: &Url, ticket: Ticket, is_over: bool) {
        let hops = Hops::from_bits(ticket.depth);
        if hops.is_seed() {
            self.frontier.wanted(url, self.intake.site_key(url));
        }
        let (site, is_new) = self.intake.remember(url, hops);
        if is_new && !is_over {
            self.frontier.offer(now, url, site, ticket, &mut self.durability.spool);
        }
    }
}

/// What waits for room, without the links that left the scope: those are for `boot`, once the crawl is done.
fn without_external(batch: UrlBatch) -> UrlBatch {
    let is_external = |depth: u16| depth == Hops::EXTERNAL.bits();
    if !batch.iter().any(|(depth, _)| is_external(depth)) {
        return batch;
    }
    let mut rest = UrlBatch::new();
    for found in batch.found().filter(|found| !is_external(found.depth)) {
        rest.push_found(found);
    }
    rest
}
