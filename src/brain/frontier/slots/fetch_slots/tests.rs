//! Fetch slots: which sites are slow, which are cut short, and the sum over many sites.

use super::*;

fn site(number: usize) -> SiteKey {
    SiteKey::of_host(7, &format!("s{number}.test"))
}

const DEADLINE: Duration = Duration::from_secs(60);

/// A hundred slots, taken in turns by sites that hold one for as long as they may and sites that hold it for a tenth
/// of a second: turns of the latter in each minute.
fn turns(drippers: usize, others: usize) -> Vec<usize> {
    let mut places = FetchSlots::new(100);
    let mixed =
        (0..others).flat_map(|other| [drippers + other].into_iter().chain((0..drippers).skip(other).step_by(others)));
    let mut rows = [VecDeque::from_iter(mixed), VecDeque::new()];
    let mut ends: Vec<(Instant, u64, usize)> = Vec::new();
    let mut turns = vec![0; 5];
    let mut id = 0;
    for tick in 0..3_000 {
        let now = Instant::ZERO + Duration::from_millis(100 * tick as u64);
        places.look(now);
        ends.retain(|(end, id, number)| {
            if *end <= now {
                places.gave_back(now, *id);
                rows[usize::from(places.is_slow(site(*number)))].push_back(*number);
            }
            *end > now
        });
        while places.free() > 0 {
            let slow = if places.may_slow_take(0) { 1 } else { 0 };
            let Some(number) = rows[0].pop_front().or_else(|| rows[slow].pop_front()) else { break };
            id += 1;
            let lasts = match number < drippers {
                true => places.deadline(site(number), DEADLINE, None),
                false => Duration::from_millis(100),
            };
            turns[tick / 600] += usize::from(number >= drippers);
            places.took(now, id, site(number));
            ends.push((now + lasts, id, number));
        }
    }
    turns
}

/// As above, with a second between two turns of a site; attackers are slow whenever they are considered fast.
fn turns_beside_sly_ones(sly: usize, others: usize) -> usize {
    let mut places = FetchSlots::new(100);
    let mut rows: [VecDeque<(Instant, usize)>; 2] =
        [(0..sly + others).map(|number| (Instant::ZERO, number)).collect(), VecDeque::new()];
    let mut ends: Vec<(Instant, u64, usize)> = Vec::new();
    let (mut turns, mut id) = (0, 0);
    for tick in 0..6_000 {
        let now = Instant::ZERO + Duration::from_millis(100 * tick);
        places.look(now);
        ends.retain(|(end, id, number)| {
            if *end <= now {
                places.gave_back(now, *id);
                let row = usize::from(places.is_slow(site(*number)));
                rows[row].push_back((now + Duration::from_secs(1), *number));
            }
            *end > now
        });
        while places.free() > 0 {
            let mut pop = |row: usize| {
                let ready = rows[row].iter().position(|(at, _)| *at <= now)?;
                rows[row].remove(ready)
            };
            let next = pop(0).or_else(|| if places.may_slow_take(0) { pop(1) } else { None });
            let Some((_, number)) = next else { break };
            id += 1;
            let is_slow = number < sly && !places.is_slow(site(number));
            let lasts =
                if is_slow { places.deadline(site(number), DEADLINE, None) } else { Duration::from_millis(100) };
            turns += usize::from(number >= sly && tick >= 3_000);
            places.took(now, id, site(number));
            ends.push((now + lasts, id, number));
        }
    }
    turns
}

#[test]
fn who_is_fast_only_to_be_slow_again_gains_little() {
    let [alone, beside] = [0, 300].map(|sly| turns_beside_sly_ones(sly, 100));
    assert!(beside * 10 >= alone * 7, "{beside} of {alone}");
}

#[test]
fn sites_that_drip_leave_places_to_those_that_answer() {
    // A hundred sites alone have a thousand turns a second; a thousand others are known after two minutes.
    let [alone, beside] = [0, 1_000].map(|drippers| turns(drippers, 100));
    assert!(beside[3] * 100 >= alone[3] * 20 && beside[4] * 100 >= alone[4] * 20, "{beside:?} of {alone:?}");
    assert!(beside[0] > 0 && beside[1] >= 100, "{beside:?}");
}

#[test]
fn a_site_is_slow_until_it_was_fast_often_enough() {
    let mut places = FetchSlots::new(4);
    places.took(Instant::ZERO, 1, site(1));
    places.look(Instant::ZERO + Duration::from_millis(1_999));
    assert!(!places.is_slow(site(1)) && places.slow == 0);
    places.look(Instant::ZERO + SLOW_AFTER);
    assert!(places.is_slow(site(1)) && places.slow == 1);
    places.gave_back(Instant::ZERO + SLOW_AFTER, 1);
    let mut fetch = |id, lasts| {
        places.took(Instant::ZERO, id, site(1));
        places.gave_back(Instant::ZERO + lasts, id);
        (places.is_slow(site(1)), places.slow)
    };
    assert_eq!(fetch(2, Duration::ZERO), (false, 0));
    assert_eq!(fetch(3, SLOW_AFTER), (true, 0));
    assert_eq!([4, 5].map(|id| fetch(id, Duration::ZERO)), [(true, 0), (false, 0)]);
    assert!(!places.is_slow(site(2)));
}

#[test]
fn what_waits_for_us_is_not_slow() {
    let mut places = FetchSlots::new(4);
    places.took(Instant::ZERO, 1, site(1));
    places.came(Instant::ZERO + Duration::from_millis(100), 1, None);
    places.look(Instant::ZERO + Duration::from_secs(60));
    places.gave_back(Instant::ZERO + Duration::from_secs(60), 1);
    assert_eq!((places.record(site(1)), places.slow, places.doubtful), (Record::Fast { count: 1, relapses: 0 }, 0, 0));
}

#[test]
fn neither_a_busy_shard_nor_a_closed_port_makes_a_site_slow() {
    let mut places = FetchSlots::new(4);
    let end = Instant::ZERO + Duration::from_secs(10);
    places.took(Instant::ZERO, 1, site(1));
    places.look(end);
    assert!(places.is_slow(site(1)) && places.slow == 1);
    places.came(end, 1, Some(Duration::from_millis(100)));
    assert_eq!((places.is_fast(site(1)), places.slow, places.doubtful), (true, 0, 1));
    assert_eq!([0; 2].map(|_| places.gave_back(end, 1)), [Some(FetchSpeed::Fast), None]);
    places.took(Instant::ZERO, 2, site(1));
    places.look(end);
    assert!(places.is_slow(site(1)));
    places.got_no_response(end, 2);
    assert!(places.is_fast(site(1)));
    assert_eq!(
        places.gave_back(end, 2),
        Some(FetchSpeed::Slow(Duration::from_secs(10))),
        "its turn was slow all the same"
    );
    assert_eq!((places.slow, places.doubtful), (0, 0));
    // One slow fetch among many is forgiven, two are not.
    for id in 10..30 {
        places.took(Instant::ZERO, id, site(1));
        places.gave_back(Instant::ZERO, id);
    }
    for (id, is_slow) in [(40, false), (41, true)] {
        places.took(Instant::ZERO, id, site(1));
        places.look(end);
        places.gave_back(end, id);
        assert_eq!(places.is_slow(site(1)), is_slow);
    }
}

/// One fetch drips, and another gets no connection: whichever ends first, the site's record has one slow fetch.
#[test]
fn a_fetch_that_found_no_server_changes_nothing_that_others_say() {
    let at = |secs| Instant::ZERO + Duration::from_secs(secs);
    for before in [0, 1, 30] {
        for is_first in [false, true] {
            let mut places = FetchSlots::new(4);
            for id in 10..10 + before {
                places.took(at(0), id, site(1));
                places.gave_back(at(0), id);
            }
            let once = places.records.of(site(1)).slow();
            let (drips, unanswered) = if is_first { (1, 2) } else { (2, 1) };
            (1..3).for_each(|id| places.took(at(0), id, site(1)));
            places.look(at(2));
            assert!(places.is_slow(site(1)));
            places.got_no_response(at(10), unanswered);
            places.gave_back(at(10), unanswered);
            places.gave_back(at(60), drips);
            assert_eq!((places.records.of(site(1)), places.lasting_of.len()), (once, 0));
            // Fast fetches meanwhile count.
            places.took(at(60), 3, site(1));
            places.look(at(62));
            let honest = places.records.of(site(1));
            places.took(at(62), 4, site(1));
            places.gave_back(at(62), 4);
            places.got_no_response(at(70), 3);
            places.gave_back(at(70), 3);
            assert_eq!(places.record(site(1)), honest.fast());
        }
    }
}

#[test]
fn sites_that_become_slow_all_at_once_have_to_end() {
    let mut places = FetchSlots::new(100);
    let at = |millis| Instant::ZERO + Duration::from_millis(millis);
    for id in 0..1_000 {
        places.took(at(0), id, site(id as usize % 100));
        places.gave_back(at(0), id);
    }
    (1_000..1_100).for_each(|id| places.took(at(0), id, site(id as usize % 100)));
    assert_eq!((places.late(at(1_999)), places.next_late()), (None, Some(at(2_000))));
    assert_eq!((places.late(at(2_000)), places.next_late()), (None, Some(at(5_000))));
    // The response of one of them has arrived, and waits for us.
    places.came(at(4_999), 1_007, None);
    let late: Vec<u64> = std::iter::from_fn(|| places.late(at(5_000))).collect();
    assert_eq!(late, [(1_000..1_007).collect(), (1_008..1_026).collect::<Vec<u64>>()].concat(), "a quarter");
    late.iter().for_each(|id| {
        places.gave_back(at(5_000), *id);
    });
    // They are slow, and get their full time now.
    assert_eq!((places.late(at(60_000)), places.deadline(site(0), DEADLINE, None)), (None, DEADLINE));
    assert!(!places.may_slow_take(0));
}

#[test]
fn one_of_too_many_that_are_costly_to_read_is_slow() {
    let mut places = FetchSlots::new(4);
    for id in 0..4 {
        places.took(Instant::ZERO, id, site(1));
        places.came(Instant::ZERO, id, None);
    }
    assert!(!places.is_slow(site(1)));
    (0..2).for_each(|_| places.waits_long(3));
    assert_eq!((places.is_slow(site(1)), places.slow, places.doubtful), (true, 1, 2));
    (0..4).for_each(|id| {
        places.gave_back(Instant::ZERO, id);
    });
    assert_eq!((places.is_slow(site(1)), places.slow, places.doubtful), (true, 0, 0));
}

#[test]
fn who_is_not_known_is_cut_short_only_where_others_are_fast() {
    let mut places = FetchSlots::new(4);
    let end = Instant::ZERO + SLOW_AFTER;
    places.took(Instant::ZERO, 9, site(9));
    places.gave_back(Instant::ZERO, 9);
    (0..2).for_each(|id| places.took(Instant::ZERO, id, site(id as usize)));
    assert_eq!(places.deadline(site(3), DEADLINE, None), DEADLINE);
    places.took(Instant::ZERO, 2, site(2));
    assert_eq!([3, 9].map(|number| places.deadline(site(number), DEADLINE, None)), [CUT_SHORT_AFTER, CUT_SHORT_AFTER]);
    assert!(places.may_slow_take(0));
    places.look(end);
    assert!(!places.may_slow_take(0) && places.is_slow(site(0)), "one place is free, and three are slow");
    assert_eq!(places.deadline(site(0), DEADLINE, None), DEADLINE, "it failed, and has all its time");
    for id in 10..2_000 {
        places.took(Instant::ZERO, id, site(id as usize));
        places.gave_back(end, id);
    }
    assert_eq!(places.deadline(site(3), DEADLINE, None), DEADLINE, "all are slow");
    (0..3).for_each(|id| {
        places.gave_back(end, id);
    });
    assert!(places.held.is_empty() && (places.slow, places.doubtful, places.free()) == (0, 0, 4));
}

/// A fast robots.txt does not buy a site a minute of its neighbours' time.
#[test]
fn while_others_wait_a_site_has_all_its_time_after_sixteen_fast_fetches() {
    let mut places = FetchSlots::new(100);
    for (count, deadline) in (1..=17).zip([[CUT_SHORT_AFTER; 15].as_slice(), &[DEADLINE; 2]].concat()) {
        places.took(Instant::ZERO, count, site(1));
        places.gave_back(Instant::ZERO, count);
        assert_eq!(places.deadline(site(1), DEADLINE, Some(Awaited::AsKnown)), deadline, "{count}");
        assert_eq!(places.deadline(site(1), DEADLINE, None), DEADLINE);
    }
    assert_eq!(places.deadline(site(1), DEADLINE, Some(Awaited::AsStranger)), CUT_SHORT_AFTER);
}
