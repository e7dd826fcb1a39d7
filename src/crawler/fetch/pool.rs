//! Connections kept alive between two requests.
//!
//! Decides: a connection is kept under scheme, host, port and address together: another host on the same address gets
//! its own, since servers may mix up names. The newest is used first, the oldest closed first.
//! Invariants: never more than `count_max`; none is given out that has been closed, has bytes waiting, or has been
//! idle longer than `idle_max`. Idle ones are closed about when their time is up, without a call.
//! Limits: a peer may close between the check and the request: the exchange then tries again.

use std::cell::RefCell;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::IpAddr;
use std::rc::{Rc, Weak};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::connection::Connection;
use ringcrawl_base::IntMap;
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_ring as ring;
use ringcrawl_url::{Scheme, Url};

/// The peer of a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Peer {
    host: Box<str>,
    port: u16,
    scheme: Scheme,
    ip: IpAddr,
}

impl Peer {
    pub(super) fn new(url: &Url, ip: IpAddr) -> Peer {
        Peer { host: url.host().into(), port: url.port(), scheme: url.scheme(), ip }
    }

    fn is_of(&self, url: &Url, ip: IpAddr) -> bool {
        &*self.host == url.host() && self.port == url.port() && self.scheme == url.scheme() && self.ip == ip
    }
}

/// The shard's idle connections.
pub(super) struct Pool {
    idle: Rc<RefCell<IdleList<Box<Connection>>>>,
    idle_max: Duration,
}

impl Pool {
    pub(super) fn new(count_max: usize, idle_max: Duration) -> Pool {
        Pool { idle: Rc::new(RefCell::new(IdleList::new(count_max))), idle_max }
    }

    /// An idle connection to the host of `url` at `ip` that may be used.
    pub(super) fn take(&self, url: &Url, ip: IpAddr, now: Instant) -> Option<(Peer, Box<Connection>)> {
        loop {
            let (peer, since, mut connection) = self.idle.borrow_mut().take(url, ip)?;
            if now.since(since) < self.idle_max && connection.is_quiet() {
                return Some((peer, connection));
            }
            connection.close();
        }
    }

    /// Keeps `connection`; inside the runtime only.
    pub(super) fn put(&self, peer: Peer, now: Instant, connection: Box<Connection>) {
        let mut idle = self.idle.borrow_mut();
        let evicted = idle.put(peer, now, connection);
        let start = !idle.is_empty() && !std::mem::replace(&mut idle.swept, true);
        drop(idle);
        if let Some(evicted) = evicted {
            evicted.close();
        }
        if start {
            ring::spawn(sweep(Rc::downgrade(&self.idle), self.idle_max));
        }
    }

    /// What to do when receive blocks run out: an idle connection that has received something holds a block that
    /// serves no fetch.
    pub(super) fn closing_noisy(&self) -> impl Fn() + 'static {
        let idle = Rc::downgrade(&self.idle);
        move || {
            let Some(idle) = idle.upgrade() else { return };
            let noisy = idle.borrow_mut().take_where(|connection| !connection.is_quiet());
            noisy.into_iter().for_each(|connection| connection.close());
        }
    }

    /// Connections kept now.
    pub(super) fn len(&self) -> usize {
        self.idle.borrow().count
    }
}

/// Closes connections that have been idle for too long; ends when none is left.
async fn sweep(idle: Weak<RefCell<IdleList<Box<Connection>>>>, idle_max: Duration) {
    let pause = (idle_max / 4).clamp(Duration::from_millis(20), Duration::from_secs(1));
    loop {
        tokio::time::sleep(pause).await;
        let Some(idle) = idle.upgrade() else { return };
        let limit = ring::now() - idle_max;
        loop {
            let old = idle.borrow_mut().pop_before(limit);
            match old {
                Some(connection) => connection.close(),
                None => break,
            }
        }
        let mut idle = idle.borrow_mut();
        if idle.is_empty() {
            idle.swept = false;
            return;
        }
    }
}

/// Kept connections, by peer and by age, without clocks. Nodes are linked from the newest to the oldest, and those
/// with the same hash likewise.
struct IdleList<C> {
    nodes: Vec<Node<C>>,
    free: Vec<usize>,
    /// The newest of those whose peers have the hash.
    by_hash: IntMap<usize>,
    /// A secret, so that no site can choose names that collide.
    seed: u64,
    newest: Option<usize>,
    oldest: Option<usize>,
    count: usize,
    count_max: usize,
    /// Whether the sweeper runs.
    swept: bool,
}

struct Node<C> {
    kept: Option<(Peer, Instant, C)>,
    hash: u64,
    older: Option<usize>,
    newer: Option<usize>,
    /// The next older one of the same hash.
    alike: Option<usize>,
}

impl<C> IdleList<C> {
    fn new(count_max: usize) -> IdleList<C> {
        IdleList {
            nodes: Vec::new(),
            free: Vec::new(),
            by_hash: IntMap::default(),
            seed: RandomState::new().hash_one(0),
            newest: None,
            oldest: None,
            count: 0,
            count_max,
            swept: false,
        }
    }

    fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Port, scheme and address seldom differ where names are the same.
    fn hash(&self, host: &str) -> u64 {
        xxh3_64_with_seed(host.as_bytes(), self.seed)
    }

    /// Returns a connection for which there is no room.
    fn put(&mut self, peer: Peer, now: Instant, kept: C) -> Option<C> {
        if self.count_max == 0 {
            return Some(kept);
        }
        let evicted = if self.count >= self.count_max { self.pop_oldest() } else { None };
        let hash = self.hash(&peer.host);
        let at = self.free.pop().unwrap_or(self.nodes.len());
        let alike = self.by_hash.insert(hash, at);
        let node = Node { kept: Some((peer, now, kept)), hash, older: self.newest, newer: None, alike };
        match self.nodes.get_mut(at) {
            Some(free) => *free = node,
            None => self.nodes.push(node),
        }
        match self.newest.replace(at).and_then(|newest| self.nodes.get_mut(newest)) {
            Some(newest) => newest.newer = Some(at),
            None => self.oldest = Some(at),
        }
        self.count += 1;
        evicted
    }

    /// The newest to the host of `url` at `ip`.
    fn take(&mut self, url: &Url, ip: IpAddr) -> Option<(Peer, Instant, C)> {
        let mut next = self.by_hash.get(&self.hash(url.host())).copied();
        while let Some(at) = next {
            let node = self.nodes.get(at)?;
            if node.kept.as_ref().is_some_and(|(peer, ..)| peer.is_of(url, ip)) {
                return self.remove(at);
            }
            next = node.alike;
        }
        None
    }

    fn pop_before(&mut self, limit: Instant) -> Option<C> {
        let (_, since, _) = self.nodes.get(self.oldest?)?.kept.as_ref()?;
        if *since > limit { None } else { self.pop_oldest() }
    }

    fn pop_oldest(&mut self) -> Option<C> {
        self.remove(self.oldest?).map(|(.., kept)| kept)
    }

    fn take_where(&mut self, mut is_wanted: impl FnMut(&mut C) -> bool) -> Vec<C> {
        let mut wanted = Vec::new();
        let mut next = self.oldest;
        while let Some((at, node)) = next.and_then(|at| Some((at, self.nodes.get_mut(at)?))) {
            next = node.newer;
            if node.kept.as_mut().is_some_and(|(.., kept)| is_wanted(kept)) {
                wanted.extend(self.remove(at).map(|(.., kept)| kept));
            }
        }
        wanted
    }

    fn remove(&mut self, at: usize) -> Option<(Peer, Instant, C)> {
        let node = self.nodes.get_mut(at)?;
        let kept = node.kept.take()?;
        let (hash, older, newer, alike) = (node.hash, node.older, node.newer, node.alike);
        match newer.and_then(|newer| self.nodes.get_mut(newer)) {
            Some(newer) => newer.older = older,
            None => self.newest = older,
        }
        match older.and_then(|older| self.nodes.get_mut(older)) {
            Some(older) => older.newer = newer,
            None => self.oldest = newer,
        }
        match (self.by_hash.get(&hash).copied(), alike) {
            (Some(first), Some(alike)) if first == at => drop(self.by_hash.insert(hash, alike)),
            (Some(first), None) if first == at => drop(self.by_hash.remove(&hash)),
            (first, _) => {
                let mut next = first;
                while let Some(node) = next.and_then(|before| self.nodes.get_mut(before)) {
                    if node.alike == Some(at) {
                        node.alike = alike;
                        break;
                    }
                    next = node.alike;
                }
            }
        }
        self.free.push(at);
        self.count -= 1;
        Some(kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_first_out_oldest_first_closed() {
        let ip = IpAddr::from([127, 0, 0, 1]);
        let url = |text: &str| Url::parse(text).expect("url");
        let peer = |text: &str| Peer::new(&url(text), ip);
        let (one, two) = (url("http://one.test/"), url("http://two.test/"));
        for other in ["https://one.test/", "http://one.test:8080/", "http://two.test/"] {
            assert!(!peer("http://one.test/").is_of(&url(other), ip), "{other}");
        }
        assert!(peer("http://one.test/").is_of(&url("http://one.test/other"), ip));
        assert!(!peer("http://one.test/").is_of(&one, IpAddr::from([127, 0, 0, 2])));
        let at = |second| Instant::ZERO + Duration::from_secs(second);
        let put = |idle: &mut IdleList<char>, url: &Url, second, kept| idle.put(Peer::new(url, ip), at(second), kept);
        let take = |idle: &mut IdleList<char>, url: &Url| idle.take(url, ip).map(|(_, since, kept)| (since, kept));
        let mut idle = IdleList::new(3);
        assert_eq!(put(&mut idle, &one, 1, 'a'), None);
        assert_eq!(put(&mut idle, &two, 2, 'b'), None);
        assert_eq!(put(&mut idle, &one, 3, 'c'), None);
        assert_eq!(put(&mut idle, &one, 4, 'd'), Some('a'));
        assert_eq!(take(&mut idle, &one), Some((at(4), 'd')));
        assert_eq!(idle.pop_before(at(1)), None);
        assert_eq!(idle.pop_before(at(2)), Some('b'));
        assert_eq!(take(&mut idle, &two), None);
        assert_eq!(take(&mut idle, &one), Some((at(3), 'c')));
        assert!(idle.is_empty() && idle.by_hash.is_empty());
        assert_eq!(put(&mut IdleList::new(0), &one, 1, 'x'), Some('x'));
        for (url, kept) in [(&one, 'e'), (&two, 'f'), (&one, 'g')] {
            assert_eq!(put(&mut idle, url, 5, kept), None);
        }
        assert_eq!(idle.take_where(|kept| *kept > 'e'), ['f', 'g']);
        assert_eq!((take(&mut idle, &two), take(&mut idle, &one)), (None, Some((at(5), 'e'))));
        assert!(idle.is_empty() && idle.by_hash.is_empty());
    }

    /// Compared with a list that is searched from its end.
    #[test]
    fn agrees_with_a_slow_twin() {
        let urls: Vec<Url> = ["http://a.test/", "https://a.test/", "http://b.test/", "http://b.test:81/"]
            .iter()
            .map(|text| Url::parse(text).expect("url"))
            .collect();
        let ip = IpAddr::from([127, 0, 0, 1]);
        let mut rng = ringcrawl_base::Rng::new(7);
        let (mut idle, mut twin) = (IdleList::new(20), Vec::<(usize, u64)>::new());
        for number in 0..20_000 {
            let which = (rng.next() % 4) as usize;
            match rng.next() % 8 {
                0..4 => {
                    let evicted = (twin.len() == 20).then(|| twin.remove(0).1);
                    twin.push((which, number));
                    let since = Instant::from_nanos(number);
                    assert_eq!(idle.put(Peer::new(&urls[which], ip), since, number), evicted);
                }
                4..6 => {
                    let place = twin.iter().rposition(|(of, _)| *of == which);
                    let wanted = place.map(|place| twin.remove(place).1);
                    assert_eq!(idle.take(&urls[which], ip).map(|(.., kept)| kept), wanted);
                }
                6 => {
                    let limit = number.saturating_sub(rng.next() % 60);
                    let wanted = twin.first().is_some_and(|(_, number)| *number <= limit).then(|| twin.remove(0).1);
                    assert_eq!(idle.pop_before(Instant::from_nanos(limit)), wanted);
                }
                _ => {
                    let odd = rng.next() % 11;
                    let wanted: Vec<u64> = twin.iter().map(|(_, number)| *number).filter(|n| n % 11 == odd).collect();
                    twin.retain(|(_, number)| number % 11 != odd);
                    assert_eq!(idle.take_where(|number| *number % 11 == odd), wanted);
                }
            }
            assert_eq!(idle.count, twin.len());
            assert_eq!(idle.is_empty(), idle.by_hash.is_empty());
        }
        assert!(idle.nodes.len() <= 20);
    }
}
