//! How a shard resumes an earlier run: it reads its logs before anything else happens.
//!
//! Decides: every accepted URL is known again; those that are not done wait, in the order of acceptance. URLs that
//! were set aside get another chance. What other shards may not have received is sent to them again, under its
//! number. What is missing or damaged is reported as a number of URLs.

use super::{DiskOp, Effect, Shard};
use crate::exchange::Batch;
use crate::frontier::{Cost, Rest, Ticket};
use crate::hops::Hops;
use crate::log::{End, EndKind, HostNote, Replay, ReplayStep};
use crate::route::Claim;
use crate::spool::ReadFor;
use crate::visited::Seen;
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_url::{Found, Site, Url, UrlBatch};

impl Shard {
    /// Requests the next piece of an earlier run's logs; `false` when there is none.
    pub(super) fn read_log(&mut self) -> bool {
        let Some((file, position)) = self.replay.as_ref().and_then(Replay::next_read) else { return false };
        self.disk(DiskOp::ReadLog { file, position });
        true
    }

    /// A piece of an earlier run's logs.
    pub(super) fn log_read(&mut self, now: Instant, bytes: &[u8]) {
        let Some(replay) = &mut self.replay else { panic!("a log came that nobody asked for") };
        replay.push(bytes);
        self.replay_on(now);
    }

    /// Continues with that piece for as long as the disk keeps up: waiting URLs go to the spool, and a megabyte of a
    /// log may expand to a hundred megabytes of them.
    pub(super) fn replay_on(&mut self, now: Instant) {
        while !self.backlog.is_long()
            && let Some(mut replay) = self.replay.take_if(|replay| replay.has_piece())
        {
            if let Err(why) = replay.read_block(&mut |step| self.replayed(now, step)) {
                return self.fail(format!("shard-{:02}/{why}", self.index));
            }
            let is_read = !replay.has_piece();
            self.replay = Some(replay);
            self.write_spool();
            if is_read && !self.read_log() {
                if let Some(why) = self.why_owners_differ() {
                    return self.end_for(why);
                }
                if let Some(owners) = self.partition.owners() {
                    owners.has_claimed();
                }
                self.settles_at = Some(now);
                self.settle(now);
            }
        }
    }

    /// Resumes the run when its logs are read and all shards have claimed their sites. It polls for this, as it
    /// happens only once.
    pub(super) fn settle(&mut self, now: Instant) {
        if self.settles_at.is_none_or(|at| at > now) {
            return;
        }
        let is_settled = self.partition.is_settled();
        self.settles_at = (!is_settled).then_some(now + SETTLE_PAUSE);
        if is_settled {
            self.take_up(now);
        }
    }

    /// A URL in a shard's log belongs to that shard, and so does its site.
    fn claim(&mut self, host: &str, shard: u16) {
        let Some(owners) = self.partition.owners() else { return };
        match owners.claim(Site::of(host).hash, shard) {
            Claim::Kept => {}
            Claim::Contradicted => self.contradicted += 1,
            Claim::NoRoom => self.unclaimed += 1,
        }
    }

    /// Why sites cannot stay where earlier runs had them, if that is so.
    fn why_owners_differ(&self) -> Option<String> {
        match (self.unclaimed, self.contradicted) {
            (0, 0) => None,
            (0, urls) => Some(format!(
                "partition.by: {urls} URLs are of sites that are another shard's, too: this version divides names into sites otherwise. \
                 Start once with another number of crawl.shards, which gives all sites to shards anew"
            )),
            (urls, _) => Some(format!(
                "partition.ram_bytes_max: no room for the owners of sites that earlier runs had given to shards ({urls} URLs are theirs); \
                 raise it"
            )),
        }
    }

    /// The earlier run has been read completely.
    fn take_up(&mut self, now: Instant) {
        let Some(replay) = self.replay.take() else { return };
        self.network.is_taken_up();
        self.long_ways.forget_redirects();
        let (found, reopened) = replay.finish();
        self.log.take_up(&found);
        self.reopened = Some(reopened);
        self.note_reopened(now);
        let index = self.index;
        let mut notes = Vec::new();
        self.segments.begin_at_least(found.next_segment);
        self.urls_lost = found.urls_lost + found.sent_lost;
        self.records_elsewhere = found.records_elsewhere;
        if self.known > 0 {
            notes.push(format!("{} URLs known, {} wait", self.known, self.known_waiting));
        }
        for (file, _) in &found.torn {
            let end = found.append_at.get(file).copied().unwrap_or_default();
            self.disk(DiskOp::CutLog { file: *file, bytes: end });
        }
        notes.extend(found.notes());
        self.effects.extend(notes.into_iter().map(|note| Effect::Note(format!("shard {index}: {note}"))));
        // From here on the current clock applies; otherwise the next run would start these cooldowns again.
        if std::mem::take(&mut self.has_longer_rests) {
            self.frontier.set_clock(self.clock);
        }
        self.tell_outage(now, None);
        self.reconsider_next();
        self.sow(now);
    }

    /// Logs which URLs are fetched again, before any of them ends again; not more at once than a commit should hold.
    pub(super) fn note_reopened(&mut self, now: Instant) {
        while let Some(reopened) = self.reopened.as_mut().filter(|_| !self.log.has_many_ends()) {
            let Some(url) = reopened.next() else {
                self.reopened = None;
                return;
            };
            self.log.end(End {
                url,
                kind: EndKind::Reopened,
                tries: 0,
                is_duplicate: false,
                is_challenge: false,
                cut: None,
                seconds: 0,
                place: None,
                bytes: 0,
            });
            self.commits.note(now);
        }
    }

    fn replayed(&mut self, now: Instant, step: ReplayStep<'_>) {
        match step {
            ReplayStep::Url { number, depth, text, via, is_over, was_answered, cost, is_page } => {
                let Ok(url) = Url::from_canonical(text) else { return };
                self.known += 1;
                self.claim(url.host(), self.index);
                self.network.was_answered(&url, was_answered);
                if was_answered == Some(true) {
                    self.frontier.was_answered(&url);
                }
                self.known_waiting += u64::from(!is_over);
                if let Some(cost) = cost {
                    // The cost of a URL that is fetched again is counted at that time.
                    let cost = if is_over { cost } else { Cost { seconds: cost.seconds, ..Cost::default() } };
                    let site = self.site_key(&url);
                    self.frontier.replayed(&url, site, cost);
                }
                if is_over && is_page {
                    let site = self.site_key(&url);
                    self.frontier.had_page(site);
                }
                if let Some(via) = via.filter(|_| !is_over) {
                    self.vias.note(number, via);
                    if let Ok(finder) = Url::from_canonical(via) {
                        self.frontier.begin_earlier_links(finder.host());
                    }
                }
                self.remember(now, &url, Ticket { number, depth, is_strangers: false }, is_over);
                self.frontier.end_links();
            }
            ReplayStep::End(_) => {}
            ReplayStep::Link(link) => {
                self.frontier.linked(link);
            }
            // Accepted URLs come first: these must not take their room. There may be more of them than fit in memory.
            ReplayStep::Aside(batch) => {
                let batch = without_external(batch);
                if batch.is_empty() {
                    return;
                }
                // A site may have only these, and its links must come here as before.
                if self.partition.owners().is_some() {
                    let urls = batch.iter().filter_map(|(_, text)| Url::from_canonical(text).ok());
                    urls.for_each(|url| self.claim(url.host(), self.index));
                }
                self.set_aside.push_back(self.spool.write(batch.as_bytes(), batch.len() as u32));
            }
            // The crawl's own note: what made fetching wait.
            ReplayStep::Host(note) if note.host.is_empty() => self.network.told = !note.health.troubles.is_empty(),
            ReplayStep::Host(note) => {
                // It may have been fetched only for the robots.txt of other hosts.
                let origin = note.origin();
                let name = origin.as_ref().map_or(&*note.host, |origin| origin.host());
                self.claim(name, self.index);
                // A clock that was set back between two runs makes no cooldown longer than intended.
                let seconds = self.clock.seconds(now);
                let left = Duration::from_secs(note.left(seconds));
                self.has_longer_rests |= note.until_seconds.saturating_sub(seconds) > note.lasts_seconds;
                // A cooldown that has ended, or a delay that its robots.txt asks for, is no evidence against an
                // answer from it.
                if !left.is_zero() {
                    self.network.asked_for_rest(name);
                }
                let HostNote { host, delay: crawl_delay, health, .. } = note;
                self.frontier.rest(now, &Rest { host, crawl_delay, until: now + left, health });
            }
            ReplayStep::Batch { to, number, urls } => {
                urls.for_each_url(|_, url| self.claim(url.host(), to));
                self.lanes.closed_before(to, number);
                if !self.log.is_acknowledged(to, number) {
                    let batch = Batch { to, number, urls: urls.into() };
                    self.stats.links_too_long += self.lanes.resend(batch, &mut self.spool);
                }
            }
            ReplayStep::Acknowledged { to, number } => {
                self.lanes.closed_before(to, number);
                self.log.acknowledge(to, number);
            }
        }
    }

    /// A URL is known again. Room does not matter here: accepted URLs stay accepted even when `visited.urls_max` is
    /// lower than before.
    fn remember(&mut self, now: Instant, url: &Url, ticket: Ticket, is_over: bool) {
        let key = self.keys.key(url);
        let site = self.site_key(url);
        if Hops::from_bits(ticket.depth).is_seed() {
            self.frontier.wanted(url, site);
        }
        let hops = Hops::from_bits(ticket.depth);
        let mut is_new = self.visited.insert_anyway(key);
        is_new.then(|| self.url_shares.took(site));
        match is_new {
            true => self.note_way(key, url, hops),
            false => self.long_ways.forget(key),
        }
        self.note_redirects(url, hops);
        // It was accepted a second time: the page of its key led here, its own redirects led back to it, or it was
        // found by a shorter path. If no page led here, this keeps a URL that was set aside before from being
        // accepted twice.
        let has_place = !is_new || !self.keys.are_urls() && is_target(ticket.depth);
        if has_place {
            let is_alone = self.visited.insert_anyway(self.keys.lone_key(url));
            is_alone.then(|| self.url_shares.took(site));
            is_new |= is_alone;
        }
        if is_new && !is_over {
            self.frontier.offer(now, url, site, ticket, &mut self.spool);
        }
    }

    /// Reads back the next block of URLs that were set aside.
    fn reconsider_next(&mut self) {
        if let Some(block) = self.set_aside.pop_front() {
            self.spool.read(block, ReadFor::SetAside);
        }
    }

    /// URLs that were set aside get another chance. Those that find no room again are already in the log.
    pub(super) fn reconsider(&mut self, now: Instant, batch: &UrlBatch) {
        for Found { via, depth, url } in batch.found() {
            let Ok(url) = Url::from_canonical(url) else { continue };
            let Some((key, depth)) = self.key_if_ours(now, &url, (via, depth)) else { continue };
            let seen = self.accept(now, key, &url, (via, depth));
            if !is_target(depth) || self.keys.are_urls() && !self.has_redirected(key) {
                continue;
            }
            let lone_key = self.keys.lone_key(&url);
            match seen {
                // The page of its key may have led here and is known, or redirects led back to its own.
                Seen::Before => drop(self.accept(now, lone_key, &url, (via, depth))),
                // The same URL may come again.
                Seen::New if self.keys.are_urls() => {}
                Seen::New => {
                    let site = self.site_key(&url);
                    if self.visited.insert(lone_key) == Seen::New {
                        self.url_shares.took(site);
                    }
                }
                Seen::Full => {}
            }
        }
        self.reconsider_next();
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

/// Interval between two checks whether all shards have read their logs.
const SETTLE_PAUSE: Duration = Duration::from_millis(5);

/// Whether a redirect led to a URL with these bits of its `Hops`.
fn is_target(depth: u16) -> bool {
    Hops::from_bits(depth).redirects() > 0
}
