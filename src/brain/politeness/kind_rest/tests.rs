//! Which kinds of URLs rest, and which are given up.

use super::*;
use ringcrawl_config::Config;

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

/// A host, and what it has answered well.
#[derive(Default)]
struct Bed {
    rest: KindRest,
    fine: FineKinds,
}

impl Bed {
    fn are_fine(&mut self, kinds: &[u32]) {
        for kind in kinds {
            self.fine.note(KindOfUrl { kind: *kind, is_strangers: false });
            self.rest.is_fine(Some(*kind));
        }
    }

    fn ends_badly(&mut self, now: u64, kind: u32, failed: Option<Duration>) -> bool {
        let politeness = Politeness { retry_delay: Duration::from_secs(10), ..Config::default().politeness };
        self.rest.complained(at(now), (kind, &self.fine), failed, &politeness)
    }

    /// Whether a complaint is the kind's own.
    fn complains(&mut self, now: u64, kind: u32) -> bool {
        self.ends_badly(now, kind, None)
    }

    fn fails(&mut self, now: u64, kind: u32) -> bool {
        self.ends_badly(now, kind, Some(Duration::from_secs(20)))
    }

    /// A complaint made the host rest for ten seconds.
    fn doubt(&mut self, now: u64, kind: u32, is_strangers: bool) {
        let of = KindOfUrl { kind, is_strangers };
        self.rest.doubt(at(now + 10), of, &self.fine, Duration::from_secs(10));
    }

    /// For how many seconds it rests, linked to by the host itself or only by strangers.
    fn rests(&self, now: u64, kind: u32) -> [u64; 2] {
        [false, true].map(|is_strangers| {
            let until = self.rest.rests_until(at(now), KindOfUrl { kind, is_strangers }, &self.fine);
            until.map_or(0, |until| until.since(at(now)).as_secs())
        })
    }
}

#[test]
fn a_part_that_worked_rests_alone_and_longer_each_time_until_it_is_given_up() {
    let mut bed = Bed::default();
    bed.are_fine(&[7, 8]);
    let (mut now, mut rests) = (0, Vec::new());
    while !bed.rest.is_given_up(at(now), 7) {
        bed.are_fine(&[8]);
        assert!(bed.complains(now, 7));
        let [rest, _] = bed.rests(now, 7);
        assert_eq!((bed.rests(now, 8), bed.rest.next_end(at(now))), ([0, 0], Some(at(now + rest))));
        rests.push(rest);
        now += rest;
    }
    assert_eq!((&rests[..9], rests.len()), (&[10, 20, 40, 80, 160, 320, 640, 640, 640][..], 40));
    let given_up = now - rests[39];
    assert!(given_up >= 6 * 3_600 && !bed.rest.is_given_up(at(given_up + 3_601), 7), "{given_up}");
    bed.are_fine(&[7]);
    assert!(!bed.rest.is_given_up(at(now), 7));
    assert_eq!(bed.rests(now, 7), [0, 0]);
}

#[test]
fn what_never_worked_speaks_for_itself_while_it_is_alone() {
    let mut bed = Bed::default();
    assert!(!bed.complains(1, 40) && !bed.fails(1, 41), "nothing was ever fine");
    let mut bed = Bed::default();
    bed.are_fine(&[8]);
    assert!(bed.complains(0, 7) && (1..9).all(|now| !bed.complains(now, 7)), "others are asked next");
    bed.are_fine(&[8]);
    assert!(bed.complains(9, 7) && !bed.complains(9, 40), "another one, lately");
    bed.are_fine(&[8]);
    assert!(!bed.complains(9, 7));
    (0..17).for_each(|_| bed.are_fine(&[8]));
    assert!(bed.complains(9, 41));
    bed.are_fine(&[8]);
    assert!(bed.fails(1, 50) && !bed.fails(1, 51) && !bed.fails(1, 50), "others are asked next");
    bed.are_fine(&[8]);
    assert!(bed.fails(1, 52) && !bed.complains(1, 53));
    // In the end each URL of a kind that never worked while others did has one try: those that strangers link to
    // soon.
    let is_broken = |bed: &Bed, now| {
        [false, true].map(|is_strangers| bed.rest.is_broken(at(now), KindOfUrl { kind: 9, is_strangers }, &bed.fine))
    };
    for _ in 0..BROKEN_FROM {
        assert_eq!(is_broken(&bed, 1 + 7_200), [false; 2]);
        bed.are_fine(&[8]);
        bed.complains(1, 9);
    }
    let broken = [600, 601, 7_200, 7_201].map(|now| is_broken(&bed, now));
    assert_eq!(broken, [[false; 2], [false, true], [false, true], [true; 2]]);
    bed.are_fine(&[9]);
    assert_eq!(is_broken(&bed, 1 + 7_200), [false; 2]);
}

/// Scripts that never worked, under any number of names.
#[test]
fn what_is_in_doubt_has_a_tenth_of_the_time_while_others_wait() {
    let mut bed = Bed::default();
    bed.are_fine(&[8]);
    bed.complains(0, 40);
    bed.doubt(0, 40, true);
    assert_eq!([40, 41, 8].map(|kind| bed.rests(0, kind)), [[20, 100], [0, 100], [0, 0]], "strangers link to it");
    bed.doubt(0, 42, false);
    assert_eq!([40, 41, 8].map(|kind| bed.rests(50, kind)), [[50, 50], [50, 50], [0, 0]]);
    bed.are_fine(&[41]);
    assert_eq!([40, 41].map(|kind| bed.rests(50, kind)), [[50, 50], [0, 0]]);
    assert_eq!((bed.rest.end_doubt(at(50)), bed.rests(50, 40)), (Some(at(100)), [0, 0]));
    assert_eq!(bed.rest.end_doubt(at(50)), None);
}

/// Maintenance: earlier good answers say nothing about now.
#[test]
fn what_is_answered_no_more_is_the_host() {
    let mut bed = Bed::default();
    bed.are_fine(&[7, 8]);
    let own: Vec<bool> = [7, 7, 8, 7, 9, 8].map(|kind| bed.complains(1, kind)).into();
    assert_eq!(own, [true, false, false, false, false, false]);
    bed.doubt(1, 7, false);
    assert_eq!([7, 8, 9].map(|kind| bed.rests(1, kind)[0]), [100, 100, 0], "those that were fine are in doubt");
    bed.are_fine(&[7]);
    assert_eq!(bed.rests(1, 7), [0, 0]);
}

/// A limiter lets some of each kind through; an overloaded server answers nothing else.
#[test]
fn what_complains_now_and_then_is_the_host() {
    let mut bed = Bed::default();
    for round in 0..9 {
        bed.are_fine(&[7, 8]);
        // The first of all may be one page's, and rests no longer than the host would.
        assert_eq!((bed.complains(1, 7), bed.rests(1, 7)[0]), if round == 0 { (true, 10) } else { (false, 0) });
        assert!(!bed.complains(1, 8));
    }
    // Only one kind complains lately, while others are answered.
    (0..20).for_each(|_| bed.are_fine(&[8]));
    bed.are_fine(&[7]);
    assert!(!bed.complains(1, 7), "some are let through");
    for rest in [10, 20, 40] {
        bed.are_fine(&[8]);
        assert_eq!((bed.complains(1, 7), bed.rests(1, 7)[0]), (true, rest));
    }
    // Some of another kind were let through a while ago, or recently.
    for (between, is_own) in [(100, true), (30, false)] {
        let mut bed = Bed::default();
        bed.are_fine(&[6, 7, 8]);
        assert!(bed.complains(1, 6));
        bed.are_fine(&[6]);
        (0..between).for_each(|_| bed.are_fine(&[8]));
        assert_eq!(bed.complains(1, 7), is_own, "{between}");
    }
}

#[test]
fn some_kinds_are_known_to_be_fine() {
    let mut fine = FineKinds::default();
    assert!(fine.is_empty() && !fine.has_another(7));
    (0..200).for_each(|kind| fine.note(KindOfUrl { kind, is_strangers: false }));
    (200..400).for_each(|kind| fine.note(KindOfUrl { kind, is_strangers: true }));
    assert_eq!((0..200).filter(|kind| fine.has(*kind)).count(), FINE_MAX);
    assert!(fine.has(199) && !fine.has(0) && fine.has_another(199) && !fine.is_empty());
}

#[test]
fn urls_that_complained_are_known_for_a_while() {
    let mut rest = KindRest::default();
    assert!(!rest.url_complained(1) && !rest.url_complained(2) && rest.url_complained(1) && rest.others_first());
    (10..17).for_each(|url| assert!(!rest.url_complained(url)));
    assert!(rest.url_complained(1) && !rest.url_complained(2));
}

/// URLs that were put off are scanned after each end of a rest, and not all the time.
#[test]
fn a_lap_is_short() {
    let mut bed = Bed::default();
    bed.are_fine(&[7, 8]);
    assert!(!bed.rest.is_lap_over(at(0)), "nothing rests");
    assert!(bed.complains(0, 7));
    for now in [0, 10] {
        for _ in 0..LAP_MAX {
            assert!(!bed.rest.is_lap_over(at(now)));
            bed.rest.is_put_off(true);
        }
        assert!(bed.rest.is_lap_over(at(now)));
        bed.are_fine(&[8]);
        assert!(bed.complains(now, 7));
    }
    assert!(!bed.rest.are_many_put_off());
    (0..PUT_OFF_MAX).for_each(|_| bed.rest.is_put_off(false));
    assert!(bed.rest.are_many_put_off());
    bed.are_fine(&[7]);
    assert!(!bed.rest.is_lap_over(at(11)) && !bed.rest.are_many_put_off());
}
