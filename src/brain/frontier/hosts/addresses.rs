//! The addresses of a host: which is used next, which others there are, and how long they are valid.
//!
//! Decides: families alternate, that of `dns.families` first (RFC 8305 section 4), each in the name server's order.
//! An address that answered is kept, over several answers if they contain it. Then no other is tried in parallel, so
//! a host far away does not get two connection requests for each connection. An address that fails gives way to the
//! next, and one without a connection is not retried while there are others, over several answers, too.
//! If none connects, the name is looked up for both families: there may be an unknown address.
//! After their time to live, addresses are used for at most `dns.stale_max`, and only while no name server answers,
//! or not soon (RFC 8767): this is the grace.
//! Invariants: at least one address; `current` is one of the answer's.
//! Limits: [`OTHERS_MAX`] further addresses for a job.

use std::net::IpAddr;

use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_config::Families;

/// A name server's answer for a host, and the results of using it.
#[derive(Clone, Debug)]
pub struct Addresses {
    list: Box<[IpAddr]>,
    used: u8,
    /// The address in use answered its last request.
    works: bool,
    /// There is no other family to look up: both were, or only one may be.
    both: bool,
    /// Addresses to which no connection succeeded, by their index.
    dead: u32,
    /// Addresses that come after all others, by their index: they failed when the host was last in memory.
    doubtful: u32,
    until: Instant,
    /// When the answer's own time to live ends; any use after that is past its time.
    expires: Instant,
    ttl: Duration,
}

/// What is left of an answer after no connection to the address in use succeeded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NextAddress {
    /// Another address.
    Another,
    /// None of this answer, but the other family was not looked up.
    OtherFamily,
    /// None: all get another chance.
    None,
}

impl Addresses {
    /// The answer `list`, which is not empty, as it came at `now`; `before` is the answer it replaces.
    pub fn new(
        list: &[IpAddr],
        families: Families,
        now: Instant,
        ttl: Duration,
        before: Option<&Addresses>,
    ) -> Addresses {
        let list = interleaved(list, families);
        let both = matches!(families, Families::Ipv4Only | Families::Ipv6Only);
        let until = now + ttl;
        let mut addrs =
            Addresses { list, used: 0, works: false, both, dead: 0, doubtful: 0, until, expires: until, ttl };
        if let Some(before) = before {
            let places = |of: u32| {
                let has = |addr: &IpAddr| before.place_of(*addr).is_some_and(|place| of & 1 << place != 0);
                addrs.list.iter().enumerate().fold(0, |bits, (place, addr)| bits | u32::from(has(addr)) << place)
            };
            (addrs.dead, addrs.doubtful) = (places(before.dead), places(before.doubtful));
            let kept = before.in_use().filter(|_| before.works);
            match kept.and_then(|kept| addrs.place_of(kept)) {
                Some(place) => (addrs.used, addrs.works) = (place, true),
                None if addrs.dead.count_ones() as usize == addrs.list.len() => addrs.dead = 0,
                None if (addrs.dead | addrs.doubtful) & 1 != 0 => addrs.failed(),
                None => {}
            }
        }
        addrs
    }

    /// An address that never changes.
    pub fn literal(addr: IpAddr) -> Addresses {
        Addresses::new(&[addr], Families::default(), Instant::ZERO, Duration::MAX, None).of_both(true)
    }

    /// The same, as an answer to questions for both families.
    pub fn of_both(self, both: bool) -> Addresses {
        Addresses { both: both || self.both, ..self }
    }

    /// The address to use at `at`; `None` if the answer is too old by then.
    pub fn current(&self, at: Instant) -> Option<IpAddr> {
        self.in_use().filter(|_| at < self.until)
    }

    /// All of them.
    pub fn all(&self) -> &[IpAddr] {
        &self.list
    }

    /// Others that may be tried in parallel, in this order: none if the address is known to work.
    pub fn others(&self) -> Vec<IpAddr> {
        let others = self.behind().filter(|_| !self.works).take(OTHERS_MAX);
        others.filter_map(|place| self.list.get(usize::from(place)).copied()).collect()
    }

    /// `addr` answered, and the one in use did not if it is another.
    pub fn answered(&mut self, addr: IpAddr) {
        if let Some(place) = self.place_of(addr) {
            if place != self.used {
                self.dead |= 1 << self.used;
            }
            (self.used, self.works) = (place, true);
            self.dead &= !(1 << place);
            self.doubtful &= !(1 << place);
        }
    }

    /// The server at the address in use answered badly: selects the next one, if there is one.
    pub fn failed(&mut self) {
        self.works = false;
        self.used = self.next().unwrap_or(self.used);
    }

    /// No connection to the address in use succeeded: selects the next one. When all were tried, they get another
    /// chance; but if another family was not looked up, that must be done now.
    pub fn unconnected(&mut self) -> NextAddress {
        self.dead |= 1 << self.used;
        let next = self.next();
        if next.is_none() && !self.both {
            (self.works, self.until) = (false, Instant::ZERO);
            return NextAddress::OtherFamily;
        }
        if next.is_none() {
            (self.dead, self.doubtful) = (0, 0);
        }
        self.failed();
        if next.is_some() { NextAddress::Another } else { NextAddress::None }
    }

    /// Whether looking up again pays, `lead` before the address is used: the answer may be too old again by then.
    pub fn outlive(&self, lead: Duration) -> bool {
        self.ttl > lead
    }

    /// No name server answers yet: uses the addresses a little longer than `at`, when they are needed, but no longer
    /// than `grace` past their time. Returns whether that is possible.
    pub fn stretch(&mut self, at: Instant, grace: Duration) -> bool {
        // A request to an address that does not connect would only waste an attempt.
        if self.dead & 1 << self.used != 0 {
            return false;
        }
        self.until = self.until.max((at + STALE_FOR).min(self.expires + grace));
        self.until > at
    }

    /// No connection to `addr` succeeded when the host was last in memory: others go first, if there are any. That
    /// does not make it dead: after the others it gets its turn, or an attempt would end with one address.
    pub fn avoid(&mut self, addr: IpAddr) {
        if let Some(place) = self.place_of(addr).filter(|_| self.list.len() > 1) {
            self.doubtful |= 1 << place;
            if place == self.used {
                self.failed();
            }
        }
    }

    /// The address in use.
    pub fn in_use(&self) -> Option<IpAddr> {
        self.list.get(usize::from(self.used)).copied()
    }

    fn place_of(&self, addr: IpAddr) -> Option<u8> {
        self.list.iter().position(|known| *known == addr).map(|place| place as u8)
    }

    /// The index after the address in use.
    fn next(&self) -> Option<u8> {
        self.behind().find(|place| self.doubtful & 1 << place == 0).or_else(|| self.behind().next())
    }

    /// Indices behind the address in use, then those before it; none of an address that is known to be dead.
    fn behind(&self) -> impl Iterator<Item = u8> + use<> {
        let (used, count, dead) = (self.used, self.list.len() as u8, self.dead);
        let behind = (1..count).map(move |step| (used + step) % count);
        behind.filter(move |place| dead & 1 << place == 0)
    }
}

/// Alternates families, that of `families` first.
fn interleaved(list: &[IpAddr], families: Families) -> Box<[IpAddr]> {
    let four_first = matches!(families, Families::Ipv4First | Families::Ipv4Only);
    let (first, second): (Vec<IpAddr>, Vec<IpAddr>) =
        list.iter().take(ADDRS_MAX).partition(|addr| addr.is_ipv4() == four_first);
    let mut turns: Vec<IpAddr> = Vec::with_capacity(list.len());
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    loop {
        let next = [first.next(), second.next()];
        if next == [None, None] {
            return turns.into();
        }
        for addr in next.into_iter().flatten() {
            // One address in two forms is one address.
            if turns.iter().all(|known| known.to_canonical() != addr.to_canonical()) {
                turns.push(addr);
            }
        }
    }
}

/// Known addresses of a host; more are of no use.
const ADDRS_MAX: usize = 32;
/// Further addresses that one job may try.
const OTHERS_MAX: usize = 3;
/// How long an old answer is used before the name servers are queried again (RFC 8767 section 5).
const STALE_FOR: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    fn addrs(texts: &str) -> Vec<IpAddr> {
        texts.split_whitespace().map(|text| text.parse().expect("an address")).collect()
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn answer(texts: &str, before: Option<&Addresses>) -> Addresses {
        Addresses::new(&addrs(texts), Families::Ipv4First, at(0), Duration::from_secs(60), before)
    }

    #[test]
    fn families_take_turns() {
        let list = addrs("2001:db8::1 192.0.2.1 2001:db8::2 2001:db8::3 192.0.2.2");
        for (families, expected) in [
            (Families::Ipv4First, "192.0.2.1 2001:db8::1 192.0.2.2 2001:db8::2 2001:db8::3"),
            (Families::Ipv6First, "2001:db8::1 192.0.2.1 2001:db8::2 192.0.2.2 2001:db8::3"),
        ] {
            assert_eq!(*interleaved(&list, families), *addrs(expected));
        }
        let twice = addrs("192.0.2.1 192.0.2.1 ::ffff:192.0.2.1 192.0.2.2 192.0.2.1");
        assert_eq!(*interleaved(&twice, Families::Ipv4First), *addrs("192.0.2.1 192.0.2.2"));
    }

    #[test]
    fn what_answered_is_kept_to() {
        let mut known = answer("192.0.2.1 192.0.2.2 192.0.2.3 192.0.2.4 192.0.2.5", None);
        assert_eq!(known.current(at(59)), Some(addrs("192.0.2.1")[0]));
        assert_eq!(known.current(at(60)), None);
        assert_eq!(known.others(), addrs("192.0.2.2 192.0.2.3 192.0.2.4"));
        known.answered(addrs("192.0.2.3")[0]);
        assert_eq!((known.current(at(0)), known.others()), (Some(addrs("192.0.2.3")[0]), Vec::new()));
        // Another answer in another order.
        let mut later = answer("192.0.2.9 192.0.2.3", Some(&known));
        assert_eq!((later.current(at(0)), later.others()), (Some(addrs("192.0.2.3")[0]), Vec::new()));
        later.failed();
        assert_eq!((later.current(at(0)), later.others()), (Some(addrs("192.0.2.9")[0]), addrs("192.0.2.3")));
        // And an answer without it.
        let moved = answer("192.0.2.7 192.0.2.8", Some(&known));
        assert_eq!((moved.current(at(0)), moved.others()), (Some(addrs("192.0.2.7")[0]), addrs("192.0.2.8")));
    }

    #[test]
    fn the_other_family_is_asked_for_when_all_have_failed() {
        let mut known = answer("192.0.2.1 192.0.2.2", None);
        assert_eq!(known.unconnected(), NextAddress::Another);
        assert_eq!((known.current(at(0)), known.others()), (Some(addrs("192.0.2.2")[0]), Vec::new()));
        assert_eq!(known.unconnected(), NextAddress::OtherFamily);
        assert_eq!(known.current(at(0)), None, "the name is asked for again");
        let mut both = answer("192.0.2.1 192.0.2.2 2001:db8::1", Some(&known)).of_both(true);
        assert_eq!(both.current(at(0)), Some(addrs("2001:db8::1")[0]), "the others have had their chance");
        assert_eq!(both.unconnected(), NextAddress::None);
        assert_eq!((both.current(at(0)), both.others().len()), (Some(addrs("192.0.2.2")[0]), 2), "and get another");
        // No other family brought another address: all of these get another chance.
        let same = answer("192.0.2.1 192.0.2.2", Some(&known)).of_both(true);
        assert_eq!((same.current(at(0)), same.others()), (Some(addrs("192.0.2.1")[0]), addrs("192.0.2.2")));
        assert_eq!(Addresses::literal(addrs("::1")[0]).unconnected(), NextAddress::None);
        let mut only = Addresses::new(&addrs("192.0.2.1"), Families::Ipv4Only, at(0), Duration::from_secs(60), None);
        assert_eq!(only.unconnected(), NextAddress::None);
        // An address that did not answer while another did is dead, too.
        let mut raced = answer("192.0.2.1 192.0.2.2 192.0.2.3", None);
        raced.answered(addrs("192.0.2.2")[0]);
        raced.failed();
        assert_eq!((raced.current(at(0)), raced.others()), (Some(addrs("192.0.2.3")[0]), addrs("192.0.2.2")));
    }

    /// Of two addresses one is dead and the other one failed when the host was last in memory: both get their turn.
    #[test]
    fn an_address_to_avoid_comes_last_and_has_its_turn() {
        let both = "192.0.2.1 2001:db8::1";
        let mut known = answer(both, None).of_both(true);
        known.avoid(addrs("192.0.2.1")[0]);
        assert_eq!(known.current(at(0)), Some(addrs("2001:db8::1")[0]));
        assert_eq!(known.unconnected(), NextAddress::Another, "the try is not over");
        assert_eq!(known.current(at(0)), Some(addrs("192.0.2.1")[0]));
        assert_eq!(known.unconnected(), NextAddress::None);
        let mut known = answer(both, None).of_both(true);
        known.avoid(addrs("192.0.2.1")[0]);
        let again = answer(both, Some(&known)).of_both(true);
        assert_eq!(again.current(at(0)), Some(addrs("2001:db8::1")[0]), "over several answers, too");
        let mut known = answer(both, None).of_both(true);
        known.avoid(addrs("2001:db8::1")[0]);
        assert_eq!(known.current(at(0)), Some(addrs("192.0.2.1")[0]));
    }

    #[test]
    fn an_old_answer_is_used_for_the_grace_and_no_longer() {
        let mut known = answer("192.0.2.1", None);
        let grace = Duration::from_secs(100);
        assert!(known.stretch(at(70), grace));
        assert!(known.current(at(99)).is_some() && known.current(at(100)).is_none());
        assert!(known.stretch(at(150), grace));
        assert!(known.current(at(159)).is_some() && known.current(at(160)).is_none(), "60 s and the grace");
        assert!(!known.stretch(at(160), grace) && known.current(at(160)).is_none());
        assert!(!answer("192.0.2.1", None).stretch(at(60), Duration::ZERO));
        let mut dead = answer("192.0.2.1", None);
        assert!(dead.unconnected() == NextAddress::OtherFamily && !dead.stretch(at(60), grace));
    }
}
