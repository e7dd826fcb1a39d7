//! URLs whose host is not in memory and has no room there.
//!
//! Decides: they wait in [`LANES`] lanes, by a key of their site, and lanes take turns. A lane is one FIFO queue for
//! all its hosts, which goes to disk ([`Overflow`]). A URL comes in when there is room, and its site is within its
//! share of the hosts or its host is at work. Until then it waits at its lane's door, and its lane behind it. So a
//! site over its share holds up only the few URLs that wait in its lane.
//! Invariants: URLs of a site are in one lane, so each host's URLs come in in their order.
//! Limits: at most a block of each lane in memory, less while the frontier's memory is over its bound.

use super::overflow::{Overflow, OverflowItem};
use super::waiting::{Ticket, WaitingUrls};
use crate::spool::Spool;
use ringcrawl_url::{SiteKey, Url};

/// The lanes.
#[derive(Debug)]
pub struct OutsideLanes {
    lanes: Box<[Lane]>,
    urls: u64,
    ram_bytes: u64,
    /// The lane whose turn it is.
    next: usize,
    /// The number of the first lane, for blocks that come back.
    first: u16,
    /// All lanes were looked at, and no URL could come in; nothing has changed since.
    is_held_up: bool,
}

#[derive(Debug, Default)]
struct Lane {
    queue: Overflow,
    door: Option<Waiting>,
    /// The number of URLs by their site's key: later URLs of a site must not overtake these.
    by_site: Option<Box<[u32; SITES_PER_LANE]>>,
}

/// A URL that waits outside.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Waiting {
    /// The URL.
    pub url: Url,
    /// Its site.
    pub site: SiteKey,
    /// What goes with it.
    pub ticket: Ticket,
}

/// The result of a look at the lane whose turn it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OutsideItem {
    /// This one comes in.
    In(Waiting),
    /// No URL of this lane, for now.
    Empty,
    /// This many URLs were in a damaged block.
    Lost(u64),
}

impl OutsideLanes {
    /// Empty lanes; the first lane has this number.
    pub fn new(first: u16) -> OutsideLanes {
        let lanes = (0..LANES).map(|_| Lane::default()).collect();
        OutsideLanes { lanes, urls: 0, ram_bytes: 0, next: 0, first, is_held_up: false }
    }

    /// URLs that wait.
    pub fn urls(&self) -> u64 {
        self.urls
    }

    /// Whether no URL waits.
    pub fn is_empty(&self) -> bool {
        self.urls == 0
    }

    /// Whether a URL may be able to come in.
    pub fn is_ready(&self) -> bool {
        self.urls > 0 && !self.is_held_up
    }

    /// Bytes of memory.
    pub fn ram_bytes(&self) -> u64 {
        self.ram_bytes
    }

    /// Whether URLs of `site` may wait here: two sites can share a counter.
    pub fn has_of(&self, site: SiteKey) -> bool {
        let (lane, place) = place_of(site);
        self.urls > 0 && self.lanes[lane].by_site.as_ref().is_some_and(|urls| urls[place] > 0)
    }

    /// There may be room now that was not there before.
    pub fn look_again(&mut self) {
        self.is_held_up = false;
    }

    /// No URL can come in before something changes.
    pub fn hold_up(&mut self) {
        self.is_held_up = true;
    }

    /// Adds a URL; `bytes_left` is what the frontier's memory has left without the lanes.
    pub fn push(&mut self, url: &Url, site: SiteKey, ticket: Ticket, bytes_left: u64, spool: &mut Spool) {
        let (index, place) = place_of(site);
        let lane = &mut self.lanes[index];
        let urls = lane.by_site.get_or_insert_with(|| Box::new([0; SITES_PER_LANE]));
        urls[place] = urls[place].saturating_add(1);
        let before = lane.queue.ram_bytes();
        lane.queue.push(url, ticket, bytes_left.saturating_sub(self.ram_bytes - before), spool);
        self.ram_bytes = self.ram_bytes - before + lane.queue.ram_bytes();
        self.urls += 1;
        self.is_held_up &= lane.door.is_some();
    }

    /// Looks at the door of the lane whose turn it is, and lets its URL in if it may come; then it is the next lane's
    /// turn. `key` returns a URL's site.
    pub fn look(
        &mut self,
        spool: &mut Spool,
        key: impl Fn(&Url) -> SiteKey,
        may_come: impl FnOnce(&Waiting) -> bool,
    ) -> OutsideItem {
        let index = self.next;
        self.next = (index + 1) % LANES;
        let lane = &mut self.lanes[index];
        let before = lane.queue.ram_bytes();
        let look = lane.look(self.first + index as u16, spool, key, may_come);
        self.ram_bytes = self.ram_bytes - before + lane.queue.ram_bytes();
        self.urls -= match look {
            OutsideItem::In(_) => 1,
            OutsideItem::Empty => 0,
            OutsideItem::Lost(urls) => urls,
        };
        look
    }

    /// A block of a lane came back.
    pub fn returned(&mut self, lane: u16, batch: WaitingUrls) {
        self.ram_bytes += batch.ram_bytes() as u64;
        self.lanes[usize::from(lane - self.first)].queue.returned(batch);
        self.is_held_up = false;
    }
}

impl Lane {
    fn look(
        &mut self,
        index: u16,
        spool: &mut Spool,
        key: impl Fn(&Url) -> SiteKey,
        may_come: impl FnOnce(&Waiting) -> bool,
    ) -> OutsideItem {
        while self.door.is_none() && self.queue.is_ready() {
            match self.queue.pop(index, spool) {
                // Every text in a queue came from a `Url`; one that does not parse again was damaged on disk.
                OverflowItem::Url(ticket, text) => match Url::from_canonical(&text) {
                    Ok(url) => self.door = Some(Waiting { site: key(&url), url, ticket }),
                    Err(_) => return OutsideItem::Lost(1),
                },
                OverflowItem::Later => {}
                OverflowItem::Lost(urls) => {
                    self.by_site = None;
                    return OutsideItem::Lost(urls);
                }
            }
        }
        let Some(waiting) = self.door.take_if(|waiting| may_come(waiting)) else { return OutsideItem::Empty };
        let (_, place) = place_of(waiting.site);
        if let Some(urls) = &mut self.by_site {
            urls[place] = urls[place].saturating_sub(1);
        }
        if self.queue.is_empty() {
            self.by_site = None;
        }
        OutsideItem::In(waiting)
    }
}

/// The lane of a site, and its counter there.
fn place_of(site: SiteKey) -> (usize, usize) {
    let place = site.place_among(LANES * SITES_PER_LANE);
    (place / SITES_PER_LANE, place % SITES_PER_LANE)
}

/// A site over its share holds up one in this many of the other URLs that wait outside.
pub const LANES: usize = 64;
const SITES_PER_LANE: usize = 1_024;
