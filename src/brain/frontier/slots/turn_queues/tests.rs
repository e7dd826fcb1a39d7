//! Rows of hosts: whose turn comes, and who rests.

use super::*;

const ADDR: ClaimKey = ClaimKey::Ipv4(std::net::Ipv4Addr::new(192, 0, 2, 1));

fn site(number: u32) -> SiteKey {
    SiteKey::of_host(7, &format!("s{number}.test"))
}

fn guest(id: HostId, of: SiteKey) -> Guest {
    Guest { id, of, is_newcomer: false }
}

fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

/// 40,000 hosts of one site wait, then one of another site: it is the next but one.
#[test]
fn sites_have_turns_at_an_address() {
    let mut queues = TurnQueues::default();
    assert!(queues.may_look(at(0), ADDR, guest(0, site(0)), false));
    assert!(
        (0..40_000).filter(|id| queues.wait(ADDR, guest(*id, site(0)), at(1))).eq([0]),
        "one instant for all of them"
    );
    assert!(!queues.wait(ADDR, guest(100_000, site(1)), at(1)));
    assert!(!queues.may_look(at(0), ADDR, guest(200_000, site(9)), false), "who comes along goes behind");
    let mut order = Vec::new();
    for look in 1..6 {
        let Call::Host(id) = queues.call(ADDR, [at(look), at(look), at(look + 1)], |_| true, |_| false) else {
            panic!("no host was called")
        };
        assert!(queues.may_look(at(0), ADDR, guest(id, site(0)), false));
        queues.had_turn(id);
        order.push(id);
        if id == 100_000 {
            queues.wait(ADDR, guest(id, site(1)), at(9));
        }
    }
    assert_eq!(order, [0, 100_000, 1, 100_000, 2]);
}

#[test]
fn a_turn_is_kept_where_the_address_is_taken() {
    let mut queues = TurnQueues::default();
    assert!((0..3).filter(|id| queues.wait(ADDR, guest(*id, site(*id)), at(1))).eq([0]));
    assert_eq!(queues.call(ADDR, [at(2), at(2), at(3)], |_| true, |_| false), Call::NoHost, "of a row that is gone");
    assert_eq!(queues.call(ADDR, [at(1), at(1), at(2)], |_| true, |_| false), Call::Host(0));
    assert_eq!(queues.call(ADDR, [at(2), at(2), at(3)], |_| true, |_| false), Call::Later, "it has not shown up");
    assert!(queues.wait(ADDR, guest(0, site(0)), at(7)), "taken until then");
    assert_eq!(queues.call(ADDR, [at(3), at(3), at(4)], |_| true, |_| false), Call::NoHost);
    assert_eq!(queues.call(ADDR, [at(7), at(7), at(8)], |_| true, |_| false), Call::Host(0));
    // Its name must be looked up: another host gets its turn, and it gets its own after that.
    queues.is_late(0);
    assert_eq!(queues.call(ADDR, [at(8), at(8), at(9)], |id| id != 1, |_| false), Call::Host(2), "1 may not fetch");
    queues.had_turn(2);
    assert!(
        queues.may_look(at(0), ADDR, guest(0, site(0)), false)
            && !queues.may_look(at(0), ADDR, guest(2, site(2)), false)
    );
    assert!(!queues.wait(ADDR, guest(0, site(0)), at(20)), "the row has its instant");
    assert_eq!(queues.call(ADDR, [at(9), at(9), at(10)], |_| true, |_| false), Call::Host(0));
    queues.had_turn(0);
    assert_eq!(queues.call(ADDR, [at(10), at(10), at(11)], |_| true, |_| false), Call::Host(1));
    queues.had_turn(1);
    assert_eq!(queues.call(ADDR, [at(11), at(11), at(12)], |_| true, |_| false), Call::NoHost);
    assert!(
        queues.may_look(at(0), ADDR, guest(5, site(5)), false) && queues.rows.is_empty() && queues.called.is_empty()
    );
}

/// All hosts of a site wait for its address, and each called host finds the turn of its site taken.
#[test]
fn a_row_goes_on_at_once_for_a_few_that_wait_elsewhere() {
    let mut queues = TurnQueues::default();
    let of_site = ClaimKey::Site(site(0));
    (0..100).for_each(|id| assert_eq!(queues.wait(ADDR, guest(id, site(0)), at(1)), id == 0));
    let mut next = 0;
    for look in [at(1), at(10), at(20)] {
        let (mut noted, later) = (look, look + Duration::from_millis(9));
        let later = if look == at(1) { later } else { later + Duration::from_millis(1) };
        let mut calls = 0;
        // The clock advances meanwhile.
        for step in 0..100 {
            let now = look + Duration::from_nanos(step);
            let Call::Host(id) = queues.call(ADDR, [now, noted, later], |_| true, |_| false) else {
                panic!("no host was called at {now:?}")
            };
            assert_eq!(id, next, "in turn");
            (next, calls) = (next + 1, calls + 1);
            queues.wait(of_site, guest(id, site(0)), at(50));
            let goes_on = queues.waits_elsewhere(now, id);
            queues.looks_up(id);
            if goes_on == [None; KINDS] {
                break;
            }
            assert_eq!(goes_on, [Some(ADDR), None, None, None]);
            noted = now;
        }
        assert_eq!(calls, CALLS_AT_ONCE_MAX);
    }
    assert!(queues.is_called(0) && queues.may_look(at(21), ADDR, guest(0, site(0)), false), "it keeps its turn");
}

/// A host that looks its name up queries a name server for it: the next one is not called early.
#[test]
fn a_row_does_not_go_on_at_once_for_a_name() {
    let mut queues = TurnQueues::default();
    (0..3).for_each(|id| assert_eq!(queues.wait(ADDR, guest(id, site(id)), at(1)), id == 0));
    assert_eq!(queues.call(ADDR, [at(1), at(1), at(5)], |_| true, |_| false), Call::Host(0));
    queues.looks_up(0);
    assert_eq!(queues.call(ADDR, [at(1), at(1), at(5)], |_| true, |_| false), Call::NoHost);
    assert_eq!(queues.call(ADDR, [at(5), at(5), at(9)], |_| true, |_| false), Call::Host(1));
}

/// One of two sites is slow: the other gets four times the length of a slow turn. A site that is alone gets all
/// turns.
#[test]
fn a_slow_turn_is_followed_by_a_rest() {
    let mut queues = TurnQueues::default();
    let (slow, fast) = (site(0), site(1));
    let call = |queues: &mut TurnQueues, now| {
        queues.rows.values_mut().for_each(|row| row.look_at = at(now));
        queues.call(ADDR, [at(now), at(now), at(now + 10)], |_| true, |id| id == 0)
    };
    queues.slow_turn_ended(at(1_000), ADDR, slow, Duration::from_millis(1_000));
    assert!(queues.may_look(at(1_000), ADDR, guest(0, slow), true), "no other host waits");
    queues.wait(ADDR, guest(0, slow), at(1_010));
    queues.wait(ADDR, guest(1, fast), at(1_010));
    assert!(queues.is_wanted_by_another(ADDR, slow));
    assert_eq!(call(&mut queues, 1_010), Call::Host(1));
    queues.had_turn(1);
    assert_eq!(call(&mut queues, 1_020), Call::Host(0), "it might be alone");
    queues.wait(ADDR, guest(0, slow), at(1_030));
    queues.fast_turn_ended(at(1_020), ADDR, fast);
    assert_eq!([1_030, 4_999].map(|now| call(&mut queues, now)), [Call::Later; 2]);
    assert!(!queues.may_look(at(4_999), ADDR, guest(0, slow), true));
    assert_eq!(call(&mut queues, 5_000), Call::Host(0));
}
/// Two sites drip in turn, and one is fast: a short slow turn does not end a long rest but extends it, and a host
/// called before the rest began rests as well.
#[test]
fn a_rest_is_for_all_and_as_long_as_all_slow_turns_ask_for() {
    let mut queues = TurnQueues::default();
    let (first, second, fast) = (site(0), site(1), site(2));
    queues.wait(ADDR, guest(1, second), at(1_000));
    assert_eq!(queues.call(ADDR, [at(1_000), at(1_000), at(1_010)], |_| true, |_| true), Call::Host(1));
    queues.slow_turn_ended(at(60_000), ADDR, first, Duration::from_secs(60));
    queues.fast_turn_ended(at(60_000), ADDR, fast);
    queues.slow_turn_ended(at(62_000), ADDR, fast, Duration::from_secs(2));
    queues.fast_turn_ended(at(62_100), ADDR, fast);
    assert!(!queues.may_look(at(307_999), ADDR, guest(1, second), true) && queues.is_called(1));
    assert!(queues.may_look(at(308_000), ADDR, guest(1, second), true));
    // No host keeps a slot for an address that rests.
    queues.keep_place(at(308_000), ADDR, (7, site(7)));
    assert_eq!(queues.places_kept(), 1);
    queues.slow_turn_ended(at(360_000), ADDR, first, Duration::from_secs(60));
    assert_eq!(queues.places_kept(), 0);
}

/// During a rest one of four turns is a stranger's, however often the address was taken when its host looked.
#[test]
fn strangers_have_every_fourth_turn_of_a_rest() {
    let mut queues = TurnQueues::default();
    let known = site(1);
    queues.slow_turn_ended(at(0), ADDR, site(0), Duration::from_secs(1_000));
    queues.fast_turn_ended(at(0), ADDR, known);
    for (site, id) in [(known, 1), (known, 2), (site(10), 10), (site(11), 11), (site(12), 12)] {
        queues.wait(ADDR, guest(id, site), at(0));
    }
    for looks in [1, 2, 3] {
        let mut turns = String::new();
        while turns.len() < 8 {
            let mut served = None;
            for look in 0..looks {
                queues.rows.values_mut().for_each(|row| row.look_at = at(1));
                let Call::Host(id) = queues.call(ADDR, [at(1); 3], |_| true, |_| false) else {
                    panic!("no host was called")
                };
                if look + 1 == looks {
                    queues.had_turn(id);
                    served = Some(id);
                }
                let of = if id < 10 { known } else { site(id) };
                queues.wait(ADDR, guest(id, of), at(1));
            }
            turns.push(if served.is_some_and(|id| id < 10) { 'k' } else { 's' });
        }
        assert!(turns.contains("kkks") && !turns.contains("kkkk") && !turns.contains("ss"), "{turns}, {looks} looks");
    }
}
