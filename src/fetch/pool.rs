//! Connections kept alive between two requests.
//!
//! Decides: a connection is kept under scheme, host, port and address together: another host on the same
//! address gets its own, since servers may mix up names; the newest is used first, the oldest closed first.
//! Invariants: never more than `count_max`; none is given out that has been closed, has bytes waiting, or
//! has been idle longer than `idle_max`; idle ones are closed about when their time is over, without a call.
//! Limits: a peer may close between the check and the request: the exchange then tries once more.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::rc::{Rc, Weak};

use super::connection::Connection;
use crate::ring;
use crate::time::{Duration, Instant};
use crate::url::{Scheme, Url};

/// Who a connection is to.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
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
}

/// The shard's idle connections.
pub(super) struct Pool {
    shelf: Rc<RefCell<Shelf<Connection>>>,
    idle_max: Duration,
}

impl Pool {
    pub(super) fn new(count_max: usize, idle_max: Duration) -> Pool {
        Pool { shelf: Rc::new(RefCell::new(Shelf::new(count_max))), idle_max }
    }

    /// An idle connection to `peer` that may be used.
    pub(super) fn take(&self, peer: &Peer) -> Option<Connection> {
        loop {
            let (since, mut connection) = self.shelf.borrow_mut().take(peer)?;
            if ring::now().since(since) < self.idle_max && connection.is_quiet() {
                return Some(connection);
            }
            connection.close();
        }
    }

    /// Keeps `connection`; inside the runtime only.
    pub(super) fn put(&self, peer: Peer, connection: Connection) {
        let mut shelf = self.shelf.borrow_mut();
        let evicted = shelf.put(peer, ring::now(), connection);
        let start = !shelf.is_empty() && !std::mem::replace(&mut shelf.swept, true);
        drop(shelf);
        if let Some(evicted) = evicted {
            evicted.close();
        }
        if start {
            ring::spawn(sweep(Rc::downgrade(&self.shelf), self.idle_max));
        }
    }

    /// What to do when receive blocks run out: a kept connection on which something came holds one, and serves nobody.
    pub(super) fn closing_noisy(&self) -> impl Fn() + 'static {
        let shelf = Rc::downgrade(&self.shelf);
        move || {
            let Some(shelf) = shelf.upgrade() else { return };
            let noisy = shelf.borrow_mut().take_where(|connection| !connection.is_quiet());
            noisy.into_iter().for_each(Connection::close);
        }
    }

    /// Connections kept now.
    pub(super) fn len(&self) -> usize {
        self.shelf.borrow().by_age.len()
    }
}

/// Closes what has been idle for too long; ends when nothing is left.
async fn sweep(shelf: Weak<RefCell<Shelf<Connection>>>, idle_max: Duration) {
    let pause = (idle_max / 4).clamp(Duration::from_millis(20), Duration::from_secs(1));
    loop {
        tokio::time::sleep(pause).await;
        let Some(shelf) = shelf.upgrade() else { return };
        let limit = ring::now() - idle_max;
        loop {
            let old = shelf.borrow_mut().pop_before(limit);
            match old {
                Some(connection) => connection.close(),
                None => break,
            }
        }
        let mut shelf = shelf.borrow_mut();
        if shelf.is_empty() {
            shelf.swept = false;
            return;
        }
    }
}

/// What is kept, by peer and by age; plain.
struct Shelf<C> {
    /// By number, which grows: the first is the oldest.
    by_age: BTreeMap<u64, (Peer, Instant, C)>,
    by_peer: HashMap<Peer, Vec<u64>>,
    next: u64,
    count_max: usize,
    /// Whether the sweeper runs.
    swept: bool,
}

impl<C> Shelf<C> {
    fn new(count_max: usize) -> Shelf<C> {
        Shelf { by_age: BTreeMap::new(), by_peer: HashMap::new(), next: 0, count_max, swept: false }
    }

    fn is_empty(&self) -> bool {
        self.by_age.is_empty()
    }

    /// Gives back what has no room.
    fn put(&mut self, peer: Peer, now: Instant, kept: C) -> Option<C> {
        if self.count_max == 0 {
            return Some(kept);
        }
        let evicted = if self.by_age.len() >= self.count_max { self.pop_oldest() } else { None };
        self.by_peer.entry(peer.clone()).or_default().push(self.next);
        self.by_age.insert(self.next, (peer, now, kept));
        self.next += 1;
        evicted
    }

    /// The newest to `peer`.
    fn take(&mut self, peer: &Peer) -> Option<(Instant, C)> {
        let numbers = self.by_peer.get_mut(peer)?;
        let number = numbers.pop();
        if numbers.is_empty() {
            self.by_peer.remove(peer);
        }
        self.by_age.remove(&number?).map(|(_, since, kept)| (since, kept))
    }

    fn pop_before(&mut self, limit: Instant) -> Option<C> {
        let (_, (_, since, _)) = self.by_age.first_key_value()?;
        if *since > limit { None } else { self.pop_oldest() }
    }

    fn pop_oldest(&mut self) -> Option<C> {
        let number = *self.by_age.first_key_value()?.0;
        self.remove(number)
    }

    fn take_where(&mut self, mut is_wanted: impl FnMut(&mut C) -> bool) -> Vec<C> {
        let wanted = self.by_age.iter_mut().filter_map(|(number, (_, _, kept))| is_wanted(kept).then_some(*number));
        let numbers: Vec<u64> = wanted.collect();
        numbers.into_iter().filter_map(|number| self.remove(number)).collect()
    }

    fn remove(&mut self, number: u64) -> Option<C> {
        let (peer, _, kept) = self.by_age.remove(&number)?;
        if let Some(numbers) = self.by_peer.get_mut(&peer) {
            numbers.retain(|other| *other != number);
            if numbers.is_empty() {
                self.by_peer.remove(&peer);
            }
        }
        Some(kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_first_out_oldest_first_closed() {
        let peer = |host: &str| Peer::new(&Url::parse(host).expect("url"), IpAddr::from([127, 0, 0, 1]));
        let (one, two) = (peer("http://one.test/"), peer("http://two.test/"));
        assert_ne!(one, peer("https://one.test/"));
        assert_ne!(one, peer("http://one.test:8080/"));
        assert_eq!(one, peer("http://one.test/other"));
        let at = |second| Instant::ZERO + Duration::from_secs(second);
        let mut shelf = Shelf::new(3);
        assert_eq!(shelf.put(one.clone(), at(1), 'a'), None);
        assert_eq!(shelf.put(two.clone(), at(2), 'b'), None);
        assert_eq!(shelf.put(one.clone(), at(3), 'c'), None);
        assert_eq!(shelf.put(one.clone(), at(4), 'd'), Some('a'));
        assert_eq!(shelf.take(&one), Some((at(4), 'd')));
        assert_eq!(shelf.pop_before(at(1)), None);
        assert_eq!(shelf.pop_before(at(2)), Some('b'));
        assert_eq!(shelf.take(&two), None);
        assert_eq!(shelf.take(&one), Some((at(3), 'c')));
        assert!(shelf.is_empty() && shelf.by_peer.is_empty());
        assert_eq!(Shelf::new(0).put(one.clone(), at(1), 'x'), Some('x'));
        for (peer, kept) in [(&one, 'e'), (&two, 'f'), (&one, 'g')] {
            assert_eq!(shelf.put(peer.clone(), at(5), kept), None);
        }
        assert_eq!(shelf.take_where(|kept| *kept > 'e'), ['f', 'g']);
        assert_eq!((shelf.take(&two), shelf.take(&one)), (None, Some((at(5), 'e'))));
        assert!(shelf.is_empty() && shelf.by_peer.is_empty());
    }
}
