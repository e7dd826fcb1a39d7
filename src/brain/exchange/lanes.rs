//! The lanes of one shard: URLs and messages for each other shard, and what came from it.
//!
//! Decides: links for another shard gather in its lane's open batch; the batch closes when it is large or at the next
//! tick; a closed batch waits for room in the ring, in memory up to a bound that all lanes share, then in the shard's
//! spool on disk. Nothing is dropped. Batches of URLs are numbered as they close and sent in that order.
//! The receiver acknowledges ([`Numbering`]), at a tick by a message of its own: which messages it has accepted, so
//! that the end of a crawl can be seen, and which batches are on its disk, so that their sender need not keep them
//! any longer.
//! Ticks are the multiples of `exchange.batch_age_max`, the same for all shards. If each pair of 64 shards had its
//! own time, every shard would be woken a thousand times a second for a few URLs.
//!
//! Links between sites gather likewise and go with a tick. When memory for messages is full, links beyond a lane's
//! list are dropped; that only lowers a count.
//! Invariants: `waiting_bytes` is the sum of what waits in memory to be sent; between two ticks only lanes with
//! something to send are visited; a message always fits the ring.
//! Leaves to others: the ring itself (`spsc`), the disk (`spool`), the format of messages (`message`).

use std::collections::VecDeque;
use std::rc::Rc;

use super::lane::{Content, Lane};
use super::message::{Header, MessageKind};
use super::traffic::{Batch, Incoming, Outgoing};
use crate::backlinks::SiteLink;
use crate::spool::{ReadFor, Spool};
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_config as config;
use ringcrawl_url::{FoundUrl, UrlBatch, VIA_BYTES_MAX};

/// The lanes to and from every other shard.
#[derive(Debug)]
pub struct Lanes {
    lanes: Vec<Lane>,
    /// Lanes with something that may be sent now.
    ready: VecDeque<u16>,
    waiting_bytes: usize,
    /// URLs in open batches, waiting in memory or spooled.
    urls: u64,
    /// Waiting messages of other kinds, and lanes with links between sites.
    said: u64,
    /// Messages that are sent but not yet acknowledged.
    unacknowledged: u64,
    /// Accepted messages that are not yet acknowledged to their senders.
    owed: u64,
    /// The tick at which open batches close and acknowledgements go out; `None`: nothing waits for one.
    tick: Option<Instant>,
    /// When full rings are tried again; their readers do not report that there is room.
    again: Option<Instant>,
    /// Acknowledgements and small batches do not wait for a tick.
    hurry: bool,
    /// Batches that were closed, and batches that others have on disk, since these were last taken.
    closed: Vec<Batch>,
    durable: Vec<(u16, u64)>,
    limits: Limits,
}

#[derive(Debug)]
struct Limits {
    batch_urls_max: usize,
    batch_bytes_max: usize,
    /// The limits of the page that links to a URL, and of both together: beyond these the page is omitted.
    via_bytes_max: usize,
    found_bytes_max: usize,
    piece_bytes_max: usize,
    batch_age_max: Duration,
    waiting_bytes_max: usize,
}

impl Lanes {
    /// Empty lanes to `shards` shards (its own stays unused) for URLs of at most `url_bytes_max` bytes.
    pub fn new(shards: u16, config: &config::Exchange, url_bytes_max: usize) -> Lanes {
        let via_bytes_max = (config.ring_bytes / VIA_PARTS).min(VIA_BYTES_MAX);
        let longest_bytes = url_bytes_max + via_bytes_max + 2 * ENTRY_HEAD_BYTES + Header::BYTES;
        Lanes {
            lanes: (0..shards).map(|_| Lane::default()).collect(),
            ready: VecDeque::new(),
            waiting_bytes: 0,
            urls: 0,
            said: 0,
            unacknowledged: 0,
            owed: 0,
            tick: None,
            again: None,
            hurry: config.batch_age_max.is_zero(),
            closed: Vec::new(),
            durable: Vec::new(),
            limits: Limits {
                batch_urls_max: config.batch_urls_max.max(1),
                // Even with the longest URL added, a message stays within its quarter of the ring.
                batch_bytes_max: (config.ring_bytes / 4).saturating_sub(longest_bytes).clamp(1, BATCH_BYTES_MAX),
                via_bytes_max,
                found_bytes_max: config.ring_bytes.saturating_sub(64),
                piece_bytes_max: (config.ring_bytes / 4).saturating_sub(Header::BYTES + 1).max(1),
                batch_age_max: config.batch_age_max,
                waiting_bytes_max: config.waiting_bytes_max,
            },
        }
    }

    /// From now on nothing waits for more to send: the crawl is about to end.
    pub fn hurry(&mut self) {
        self.hurry = true;
        // Due in the past: the next call closes all.
        self.tick = Some(Instant::ZERO);
    }

    /// The number that the open batch for shard `to` will have.
    pub fn open_batch(&self, to: u16) -> u64 {
        self.lanes[usize::from(to)].numbers.open_batch()
    }

    /// Adds one URL for shard `to`.
    pub fn push(&mut self, now: Instant, to: u16, found: FoundUrl<'_>, spool: &mut Spool) {
        let lane = &mut self.lanes[usize::from(to)];
        let Limits { via_bytes_max, found_bytes_max, .. } = self.limits;
        let is_told = |via: &&str| via.len() <= via_bytes_max && via.len() + found.url.len() <= found_bytes_max;
        if !lane.open.push_found(FoundUrl { via: found.via.filter(is_told), ..found }) {
            return;
        }
        self.urls += 1;
        let full =
            lane.open.len() >= self.limits.batch_urls_max || lane.open.as_bytes().len() >= self.limits.batch_bytes_max;
        if full {
            self.close(to, spool);
        } else {
            self.wait_for_tick(now);
        }
    }

    /// Adds a message of another kind than URLs for shard `to`: as several pieces if it is long. The first byte of
    /// each says whether another piece follows.
    pub fn say(&mut self, to: u16, kind: MessageKind, content: &[u8]) {
        let lane = &mut self.lanes[usize::from(to)];
        let mut pieces = content.chunks(self.limits.piece_bytes_max).peekable();
        while let Some(piece) = pieces.next() {
            self.said += 1;
            let piece = [&[u8::from(pieces.peek().is_some())], piece].concat();
            self.waiting_bytes += piece.len();
            lane.waiting.push_back((kind, Content::Bytes(piece)));
        }
        self.has_more(to);
    }

    /// The same, after all URLs for that shard, which the message may concern; returns `false` and adds nothing while
    /// some of them are on disk.
    pub fn say_behind(&mut self, to: u16, kind: MessageKind, content: &[u8], spool: &mut Spool) -> bool {
        if !self.lanes[usize::from(to)].open.is_empty() {
            self.close(to, spool);
        }
        let lane = &self.lanes[usize::from(to)];
        let is_behind = lane.spooled.is_empty() && lane.reading.is_none();
        if is_behind {
            self.say(to, kind, content);
        }
        is_behind
    }

    /// Whether a link to a site of shard `to` can be added.
    pub fn has_room_for_link(&self, to: u16) -> bool {
        self.lanes[usize::from(to)].links.len() < LINKS_BYTES_MAX || self.has_room()
    }

    /// Adds a link to a site of shard `to`; `false` if there is no room for it.
    pub fn link(&mut self, now: Instant, to: u16, link: SiteLink) -> bool {
        if !self.has_room_for_link(to) {
            return false;
        }
        if self.lanes[usize::from(to)].links.len() >= LINKS_BYTES_MAX {
            self.say_links(to);
        }
        let lane = &mut self.lanes[usize::from(to)];
        self.said += u64::from(lane.links.is_empty());
        link.put(&mut lane.links);
        self.wait_for_tick(now);
        true
    }

    fn drop_links(&mut self, to: u16) {
        self.lanes[usize::from(to)].links.clear();
        self.said -= 1;
    }

    fn say_links(&mut self, to: u16) {
        let links = std::mem::take(&mut self.lanes[usize::from(to)].links);
        self.said -= u64::from(!links.is_empty());
        self.say(to, MessageKind::SiteLinks, &links);
    }

    /// The next message that a ring should take at `now`.
    pub fn next_message(&mut self, now: Instant, spool: &mut Spool) -> Option<Outgoing> {
        if self.tick.is_some_and(|tick| tick <= now) {
            self.close_all(now, spool);
        }
        if self.again.is_some_and(|again| again <= now) {
            self.again = None;
            for to in 0..self.lanes.len() as u16 {
                if self.lanes[usize::from(to)].refused.is_some() {
                    self.make_ready(to);
                }
            }
        }
        while let Some(to) = self.ready.pop_front() {
            let lane = &mut self.lanes[usize::from(to)];
            lane.is_ready = false;
            if lane.waiting.is_empty()
                && lane.reading.is_none()
                && let Some((number, block)) = lane.spooled.pop_front()
            {
                lane.reading = Some(number);
                spool.read(block, ReadFor::Lane(to));
            }
            let refused = lane.refused.take();
            let message = match refused {
                Some(message) => Some(message),
                None => self.number(to),
            };
            if let Some(message) = message {
                // More may follow it.
                self.make_ready(to);
                return Some(message);
            }
        }
        None
    }

    /// A message from [`Lanes::next_message`] found no room in its ring: it is tried again in a moment.
    pub fn refused(&mut self, now: Instant, message: Outgoing) {
        let to = message.to;
        let lane = &mut self.lanes[usize::from(to)];
        assert!(lane.refused.is_none(), "two messages to shard {to} were refused at once");
        lane.refused = Some(message);
        lane.is_ready = false;
        self.ready.retain(|ready| *ready != to);
        self.again.get_or_insert(now + FULL_RING_PAUSE);
    }

    /// Handles a message from shard `from`. An invalid message, or one out of sequence, was never sent: that is our
    /// own bug.
    pub fn receive(&mut self, now: Instant, from: u16, bytes: &[u8]) -> Incoming {
        let lane = &mut self.lanes[usize::from(from)];
        let Some((header, content)) = Header::read(bytes) else { panic!("shard {from} sent what is no message") };
        let kind = header.kind;
        let acknowledged = lane.numbers.receive(from, &header);
        self.unacknowledged -= acknowledged.messages;
        self.durable.extend(acknowledged.durable.map(|batch| (from, batch)));
        if kind == MessageKind::Acknowledgement {
            return Incoming::Nothing;
        }
        self.owed += 1;
        self.owe(now, from);
        match kind {
            MessageKind::Urls => match UrlBatch::from_bytes(content.to_vec()) {
                Some(batch) => Incoming::Urls(batch),
                None => panic!("shard {from} sent a batch that is none"),
            },
            kind => {
                let Some((more, piece)) = content.split_first() else { panic!("shard {from} sent an empty {kind:?}") };
                let lane = &mut self.lanes[usize::from(from)];
                lane.pieces.extend_from_slice(piece);
                match (more, kind) {
                    (0, MessageKind::SiteLinks) => Incoming::SiteLinks(std::mem::take(&mut lane.pieces)),
                    (0, MessageKind::LinkCounts) => match UrlBatch::from_bytes(std::mem::take(&mut lane.pieces)) {
                        Some(counts) => Incoming::LinkCounts(counts),
                        None => panic!("shard {from} sent counts that are none"),
                    },
                    (0, kind) => Incoming::Robots(kind, std::mem::take(&mut lane.pieces)),
                    _ => Incoming::Nothing,
                }
            }
        }
    }

    /// An earlier run has closed a batch that its shard may not have: it is sent again, under its number. If that run
    /// had larger rings, it goes in parts, and only the last has the number: the receiver acknowledges the batch when
    /// it has all. Returns how many URLs are too long for a ring.
    pub fn resend(&mut self, batch: Batch, spool: &mut Spool) -> u64 {
        let Batch { to, number, urls } = batch;
        self.closed_before(to, number);
        if urls.as_bytes().len() <= self.limits.found_bytes_max {
            self.urls += urls.len() as u64;
            self.wait(to, number, urls, spool);
            return 0;
        }
        let (mut part, mut too_long) = (UrlBatch::new(), 0);
        for found in urls.found() {
            // The absence of one is an entry, too.
            let via_bytes = UrlBatch::entry_bytes(found.via.unwrap_or(" "));
            let (bytes, bytes_max) = (UrlBatch::entry_bytes(found.url), self.limits.found_bytes_max);
            if part.as_bytes().len() + via_bytes + bytes > bytes_max && !part.is_empty() {
                self.urls += part.len() as u64;
                self.wait(to, PART, Rc::new(std::mem::take(&mut part)), spool);
            }
            // A ring has room for four of the longest URLs of the scope. A longer one belongs to another scope.
            if bytes > bytes_max {
                too_long += 1;
                continue;
            }
            part.push_found(FoundUrl { via: found.via.filter(|_| via_bytes + bytes <= bytes_max), ..found });
        }
        self.urls += part.len() as u64;
        self.wait(to, number, Rc::new(part), spool);
        too_long
    }

    /// An earlier run has closed batches for shard `to` up to `number`.
    pub fn closed_before(&mut self, to: u16, number: u64) {
        self.lanes[usize::from(to)].numbers.closed_before(number);
    }

    /// Closes all batches, large or small, so that everything found before can be written to the logs.
    pub fn close_open(&mut self, spool: &mut Spool) {
        for to in 0..self.lanes.len() as u16 {
            if !self.lanes[usize::from(to)].open.is_empty() {
                self.close(to, spool);
            }
        }
    }

    /// Takes the batches that were closed since the last call.
    pub fn take_closed(&mut self) -> std::vec::Drain<'_, Batch> {
        self.closed.drain(..)
    }

    /// Takes what other shards have reported to be on their disks since the last call: shard and number of a batch.
    pub fn take_durable(&mut self) -> std::vec::Drain<'_, (u16, u64)> {
        self.durable.drain(..)
    }

    /// The last batch that came from each shard.
    pub fn received(&self) -> Vec<u64> {
        self.lanes.iter().map(|lane| lane.numbers.received()).collect()
    }

    /// What [`Lanes::received`] returned earlier is on disk now: its senders learn it at the next tick.
    pub fn note_durable(&mut self, now: Instant, received: &[u64]) {
        for (from, batch) in (0..).zip(received) {
            if self.lanes[usize::from(from)].numbers.note_durable(*batch) {
                self.owe(now, from);
            }
        }
    }

    /// A spooled batch came back.
    pub fn returned(&mut self, to: u16, batch: UrlBatch) {
        let lane = &mut self.lanes[usize::from(to)];
        let Some(number) = lane.reading.take() else { panic!("a batch came back that was not asked for") };
        self.waiting_bytes += batch.as_bytes().len();
        lane.waiting.push_back((MessageKind::Urls, Content::Urls(number, Rc::new(batch))));
        self.has_more(to);
    }

    /// Whether there is room in memory for a long message.
    pub fn has_room(&self) -> bool {
        self.waiting_bytes <= self.limits.waiting_bytes_max
    }

    /// URLs not sent yet.
    pub fn urls(&self) -> u64 {
        self.urls
    }

    /// Whether everything for other shards was sent and is acknowledged, and all they sent is acknowledged to them.
    pub fn is_drained(&self) -> bool {
        self.urls == 0 && self.said == 0 && self.unacknowledged == 0 && self.owed == 0
    }

    /// When there is something to do: batches close, a full ring is tried again, or a message may be sent
    /// (`Instant::ZERO`).
    pub fn next_due(&self) -> Option<Instant> {
        if !self.ready.is_empty() {
            return Some(Instant::ZERO);
        }
        self.tick.into_iter().chain(self.again).min()
    }

    /// The next message of the lane, with its number; only an acknowledgement if one is owed and may not wait.
    fn number(&mut self, to: u16) -> Option<Outgoing> {
        let lane = &mut self.lanes[usize::from(to)];
        let owed = lane.numbers.owed();
        let Some((kind, content)) = lane.waiting.pop_front() else {
            if !lane.numbers.owes() || !std::mem::take(&mut lane.must_tell) {
                return None;
            }
            let header = lane.numbers.acknowledgement();
            self.owed -= owed;
            return Some(Outgoing { to, bytes: header.with(&[]), urls: 0, wake: self.hurry });
        };
        lane.must_tell = false;
        let header = lane.numbers.next_header(kind, content.batch());
        self.owed -= owed;
        self.unacknowledged += 1;
        let urls = content.urls();
        self.urls -= urls;
        self.waiting_bytes -= content.as_bytes().len();
        self.said -= u64::from(matches!(content, Content::Bytes(_)));
        let can_wait = matches!(kind, MessageKind::Urls | MessageKind::SiteLinks | MessageKind::LinkCounts);
        let wake = self.hurry || !can_wait || urls >= self.limits.batch_urls_max as u64;
        Some(Outgoing { to, bytes: header.with(content.as_bytes()), urls, wake })
    }

    /// Shard `to` is owed an acknowledgement.
    fn owe(&mut self, now: Instant, to: u16) {
        if !self.hurry {
            return self.wait_for_tick(now);
        }
        self.lanes[usize::from(to)].must_tell = true;
        self.has_more(to);
    }

    fn wait_for_tick(&mut self, now: Instant) {
        let age = if self.hurry { Duration::ZERO } else { self.limits.batch_age_max };
        self.tick.get_or_insert_with(|| next_tick(now, age));
    }

    /// A lane has more to send. A message of it that was refused comes first.
    fn has_more(&mut self, to: u16) {
        if self.lanes[usize::from(to)].refused.is_none() {
            self.make_ready(to);
        }
    }

    fn make_ready(&mut self, to: u16) {
        let lane = &mut self.lanes[usize::from(to)];
        if !lane.is_ready {
            lane.is_ready = true;
            self.ready.push_back(to);
        }
    }

    fn close_all(&mut self, now: Instant, spool: &mut Spool) {
        self.tick = None;
        for to in 0..self.lanes.len() as u16 {
            if !self.lanes[usize::from(to)].links.is_empty() {
                match self.has_room() {
                    true => self.say_links(to),
                    // Nothing waits any more: an incomplete count is better than a crawl that does not end.
                    false if self.hurry => self.drop_links(to),
                    false => self.wait_for_tick(now),
                }
            }
            if !self.lanes[usize::from(to)].open.is_empty() {
                self.close(to, spool);
            }
            let lane = &mut self.lanes[usize::from(to)];
            if lane.numbers.owes() {
                lane.must_tell = true;
                self.has_more(to);
            }
        }
    }

    fn close(&mut self, to: u16, spool: &mut Spool) {
        let lane = &mut self.lanes[usize::from(to)];
        let (number, urls) = (lane.numbers.close_batch(), Rc::new(std::mem::take(&mut lane.open)));
        self.closed.push(Batch { to, number, urls: Rc::clone(&urls) });
        self.wait(to, number, urls, spool);
    }

    /// Queues a batch until the ring has room.
    fn wait(&mut self, to: u16, number: u64, urls: Rc<UrlBatch>, spool: &mut Spool) {
        let lane = &mut self.lanes[usize::from(to)];
        let bytes = urls.as_bytes().len();
        let has_room = self.waiting_bytes + bytes <= self.limits.waiting_bytes_max || lane.waiting.is_empty();
        // Spooled batches go first.
        if has_room && lane.spooled.is_empty() && lane.reading.is_none() {
            self.waiting_bytes += bytes;
            lane.waiting.push_back((MessageKind::Urls, Content::Urls(number, urls)));
        } else {
            lane.spooled.push_back((number, spool.write(urls.as_bytes(), urls.len() as u32)));
        }
        self.has_more(to);
    }
}

/// The first multiple of `age` after `now`; `now` itself when there is no age.
fn next_tick(now: Instant, age: Duration) -> Instant {
    let age = age.as_nanos() as u64;
    now.as_nanos().checked_div(age).map_or(now, |ticks| Instant::from_nanos((ticks + 1).saturating_mul(age)))
}

/// Stands in place of a batch's number: its end is yet to come.
const PART: u64 = 0;
/// The page that links to a URL takes at most this small a part of a ring: otherwise many shards would send few URLs
/// at a time.
const VIA_PARTS: usize = 64;
/// What an entry of a batch takes in addition to the URL.
const ENTRY_HEAD_BYTES: usize = 4;
/// Links between sites that wait in a lane, in bytes.
const LINKS_BYTES_MAX: usize = 4_096 * SiteLink::BYTES;
/// A batch is an entry of the journal, whose blocks have a limit.
const BATCH_BYTES_MAX: usize = 128 << 10;
/// Long compared with a look at a ring, short compared with the time to fetch a page.
const FULL_RING_PAUSE: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests;
