//! The ledger against a map, against addresses chosen to collide, and between threads.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::AtomicBool;

use super::*;
use ringcrawl_base::Rng;

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn v4(number: u64) -> ClaimKey {
    ClaimKey::Ipv4(Ipv4Addr::from_bits(number as u32))
}

#[test]
fn one_at_a_time_and_not_before_its_time() {
    let ledger = Ledger::new(1_024);
    let addr: IpAddr = "192.0.2.1".parse().unwrap();
    assert_eq!(ledger.claim(addr, at(5), at(60_000)), Ok(()));
    assert_eq!(ledger.claim(addr, at(6), at(60_000)), Err(None));
    assert_eq!(ledger.claim("::ffff:192.0.2.1".parse::<IpAddr>().unwrap(), at(6), at(60_000)), Err(None));
    ledger.release(addr, at(60_000), at(110));
    assert_eq!(ledger.claim(addr, at(109), at(60_000)), Err(Some(at(110))));
    assert_eq!(ledger.claim(addr, at(110), at(200)), Ok(()));
    assert_eq!(ledger.claim(addr, at(201), at(300)), Ok(()), "a lost claim lapses");
    ledger.release(addr, at(200), at(205));
    assert_eq!(ledger.claim(addr, at(206), at(400)), Err(None), "who comes late does not end another's claim");
    ledger.release(addr, at(300), at(310));
    assert_eq!(ledger.claim(addr, at(310), at(400)), Ok(()));
    // However late it is claimed and whatever it was held until, it can be given back.
    ledger.release(addr, at(400), at(500));
    assert_eq!(ledger.claim(addr, at(500), Instant::NEVER), Ok(()));
    assert_eq!(ledger.claim(addr, at(1 << 40), at(1 << 41)), Err(None));
    ledger.release(addr, Instant::NEVER, at(510));
    assert_eq!(ledger.claim(addr, at(510), at(600)), Ok(()));
}

/// If several notes give a host different times at one instant, the longest holds.
#[test]
fn rests_that_are_told_of_hold_for_the_longest() {
    let ledger = Ledger::new(WAYS);
    let now = Instant::ZERO + Duration::from_nanos(5_000_000_001);
    assert!([now, at(9_000), at(7_000)].into_iter().all(|until| ledger.rest(v4(1), now, until)));
    assert_eq!(ledger.claim(v4(1), at(8_999), at(60_000)), Err(Some(at(9_000))));
    assert_eq!(ledger.claim(v4(1), at(9_000), at(60_000)), Ok(()));
    assert!(!ledger.rest(v4(1), at(9_001), at(100_000)), "a request is under way");
    ledger.release(v4(1), at(60_000), at(10_000));
    assert!(ledger.rest(v4(1), at(9_500), at(100_000)));
    assert_eq!(ledger.claim(v4(1), at(10_000), at(60_000)), Err(Some(at(100_000))));
    assert!((2..9).all(|number| ledger.rest(v4(number), at(1), at(2_000))));
    assert!(!ledger.rest(v4(9), at(1), at(2_000)), "there is no room");
}

/// A key that shares a bucket slows no victim; kinds are apart; a full bucket makes newcomers wait and forgets
/// nothing.
#[test]
fn other_keys_take_no_turn_of_a_key() {
    let ledger = Ledger::new(WAYS);
    assert_eq!(ledger.buckets.len(), 1, "all share it");
    let others = [ClaimKey::Ipv6Net(0), ClaimKey::Group(0), v4(1), v4(2), v4(3), v4(4), v4(5)];
    for (index, key) in (0..).zip(others.into_iter().chain([v4(0)])) {
        assert_eq!(ledger.claim(key, at(1), at(1_000)), Ok(()), "{key:?}");
        ledger.release(key, at(1_000), at(100 + index));
    }
    assert_eq!(ledger.claim(v4(6), at(50), at(1_000)), Err(Some(at(100))), "all rest");
    assert_eq!(ledger.claim(v4(0), at(106), at(1_000)), Err(Some(at(107))), "not forgotten");
    // The entry that was free for longest goes, and nothing else.
    assert_eq!(ledger.claim(v4(6), at(106), at(1_000)), Ok(()));
    assert_eq!(ledger.claim(v4(5), at(105), at(1_000)), Err(Some(at(106))));
    assert_eq!(ledger.claim(ClaimKey::Ipv6Net(0), at(106), at(1_000)), Ok(()), "in the place of the next one");
    for key in others.into_iter().skip(2).chain([v4(0)]) {
        assert_eq!(ledger.claim(key, at(200), at(1_000)), Ok(()), "{key:?}");
    }
    assert_eq!(ledger.claim(v4(7), at(200), at(1_000)), Err(None), "all are held");
}

/// An attacker who knows where keys fall can fill a victim's bucket; under a secret the same addresses fall anywhere.
#[test]
#[cfg_attr(miri, ignore = "a search")]
fn chosen_addresses_slow_no_other() {
    const ENTRIES: usize = 1 << 16;
    let victim = v4(0xc000_0201);
    let under_attack = |chosen: &[ClaimKey], ledger: Ledger| {
        for key in chosen {
            let _ = ledger.claim(*key, at(1), at(60_000));
        }
        ledger.claim(victim, at(2), at(60_000))
    };
    let known = Ledger::new(ENTRIES);
    let place = |key: ClaimKey| {
        let (number, kind) = key.parts();
        known.bucket(number, kind).as_ptr()
    };
    let chosen: Vec<ClaimKey> =
        (0..).map(v4).filter(|key| *key != victim && place(*key) == place(victim)).take(WAYS).collect();
    assert_eq!(under_attack(&chosen, Ledger::new(ENTRIES)), Err(None), "this is an attack");
    assert_eq!(under_attack(&chosen, Ledger::new(ENTRIES).keyed([1, 2])), Ok(()));
    // What collided with the victim when places were the last bits of an unkeyed hash of the address.
    let slot = |addr: u32| xxhash_rust::xxh3::xxh3_64(&addr.to_be_bytes()) & ((1 << 20) - 1);
    let met: Vec<ClaimKey> =
        (0..).filter(|addr| slot(*addr) == slot(0xc000_0201)).take(3).map(|addr| v4(addr.into())).collect();
    assert_eq!(under_attack(&met, Ledger::new(1 << 20)), Ok(()));
}

/// The obviously correct model.
#[derive(Default)]
struct Twin(HashMap<ClaimKey, (Instant, bool)>);

impl Twin {
    fn claim(&mut self, key: ClaimKey, now: Instant, hold_until: Instant) -> Result<(), Option<Instant>> {
        match self.0.get(&key) {
            Some((until, is_held)) if *until > now => Err((!is_held).then_some(*until)),
            _ => {
                self.0.insert(key, (hold_until, true));
                Ok(())
            }
        }
    }

    /// The result that `claim` would give.
    fn look(&self, key: ClaimKey, now: Instant) -> Result<(), Option<Instant>> {
        Twin(self.0.clone()).claim(key, now, Instant::NEVER)
    }

    fn release(&mut self, key: ClaimKey, hold_until: Instant, free_from: Instant) {
        if self.0.get(&key) == Some(&(hold_until, true)) {
            self.0.insert(key, (free_from, false));
        }
    }

    fn busy(&self, now: Instant) -> usize {
        self.0.values().filter(|(until, _)| *until > now).count()
    }
}

#[test]
fn says_what_a_map_says() {
    let (mut claims, mut fulls) = (0, 0);
    for rng_seed in 0..if cfg!(miri) { 2 } else { 300 } {
        let mut rng = Rng::new(rng_seed);
        let (ledger, mut twin) = (Ledger::new(WAYS).keyed([rng_seed, 1]), Twin::default());
        let (mut now, mut open) = (at(1), Vec::new());
        for _ in 0..500 {
            now = now + Duration::from_millis(rng.below(20));
            let number = rng.below(5);
            let key = [v4(number), ClaimKey::Ipv6Net(number), ClaimKey::Group(number)][rng.index(3)];
            if rng.percent(60) {
                let hold_until = now + Duration::from_millis(1 + rng.below(300));
                let is_full = twin.busy(now) >= WAYS;
                let (said, right) = (ledger.claim(key, now, hold_until), twin.look(key, now));
                if said == Ok(()) || right.is_err() {
                    assert_eq!(said, right, "seed {rng_seed}: {key:?} at {now:?}");
                } else {
                    assert!(is_full, "seed {rng_seed}: {key:?} waits at {now:?} for no other");
                    fulls += 1;
                }
                if said.is_ok() {
                    twin.claim(key, now, hold_until).expect("the same");
                    open.push((key, hold_until));
                    claims += 1;
                }
            } else if !open.is_empty() {
                let (key, hold_until) = open.swap_remove(rng.index(open.len()));
                if hold_until <= now && twin.0.get(&key) == Some(&(hold_until, true)) {
                    // Its owner was lost, and its entry may be another's.
                    continue;
                }
                let free_from = now + Duration::from_millis(rng.below(100));
                ledger.release(key, hold_until, free_from);
                twin.release(key, hold_until, free_from);
            }
        }
    }
    assert!(claims > 100 && (cfg!(miri) || fulls > 100), "{claims} claims, {fulls} times full");
}

#[test]
fn threads_never_hold_one_key_together() {
    let steps = if cfg!(miri) { 200 } else { 20_000 };
    // More keys than entries, so that they push each other out of the one bucket.
    const KEYS: usize = 12;
    let (ledger, clock) = (Ledger::new(WAYS), AtomicU64::new(16));
    let (inside, free_from) = ([const { AtomicBool::new(false) }; KEYS], [const { AtomicU64::new(0) }; KEYS]);
    let claims: u64 = std::thread::scope(|scope| {
        let work = |rng_seed| {
            let (ledger, clock, inside, free_from) = (&ledger, &clock, &inside, &free_from);
            move || {
                let (mut rng, mut claims) = (Rng::new(rng_seed), 0);
                for _ in 0..steps {
                    let now = Instant::from_nanos(clock.fetch_add(16, SeqCst));
                    let key = rng.index(KEYS);
                    let addr = ClaimKey::Ipv6Net(key as u64);
                    let hold_until = now + Duration::from_secs(1);
                    if ledger.claim(addr, now, hold_until).is_ok() {
                        assert!(!inside[key].swap(true, SeqCst), "two hold it");
                        // An old `now` knows nothing about a key that others evicted in the meantime: what counts is
                        // when it begins.
                        assert!(free_from[key].load(SeqCst) <= clock.load(SeqCst), "before its time");
                        claims += 1;
                        std::thread::yield_now();
                        let until = clock.load(SeqCst) + 16 * rng.below(16);
                        free_from[key].store(until, SeqCst);
                        inside[key].store(false, SeqCst);
                        ledger.release(addr, hold_until, Instant::from_nanos(until));
                    }
                }
                claims
            }
        };
        let threads = [1, 2, 3, 4].map(|rng_seed| scope.spawn(work(rng_seed)));
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert!(claims > steps / 10, "{claims}");
    // Nothing is left behind: each entry is available again.
    let end = Instant::from_nanos(clock.load(SeqCst)) + Duration::from_secs(1);
    for key in 100..100 + WAYS as u64 {
        assert_eq!(ledger.claim(ClaimKey::Group(key), end, Instant::NEVER), Ok(()));
    }
}
