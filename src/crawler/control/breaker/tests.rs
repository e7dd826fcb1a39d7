//! The breaker: what opens it, what does not, and how it detects that an outage has ended.

use super::*;
use ringcrawl_brain::shard::Witness;

impl BreakerDecision {
    fn is_down(&self) -> bool {
        self.out_of_reach > OutOfReach::Nothing
    }
}

/// A breaker with a clock, and the reports of its shards.
struct Bed {
    breaker: Breaker,
    now: Instant,
    reports: Vec<NetworkReport>,
    has_route: bool,
}

fn witness(owner: u64) -> Witness {
    Witness { owner, block: 0 }
}

const NOTHING: NetworkReport = NetworkReport {
    dns_heard: 0,
    dns_failed: 0,
    dns_errors: 0,
    proxy_unreachable: 0,
    held_since: Instant::NEVER,
    names_held_since: Instant::NEVER,
    has_work: true,
};

impl Bed {
    fn new(change: impl FnOnce(&mut Config)) -> Bed {
        let mut config = Config::default();
        change(&mut config);
        let breaker = Breaker::new(&config);
        Bed { breaker, now: Instant::ZERO, reports: vec![NOTHING; 2], has_route: true }
    }

    /// Looks after this many milliseconds.
    fn look(&mut self, millis: u64, ends: &[SiteEnd]) -> BreakerDecision {
        self.now = self.now + Duration::from_millis(millis);
        let view = NetworkView { reports: &self.reports, ends, has_route: self.has_route };
        self.breaker.look(self.now, view)
    }

    /// Requests to the sites of a range that begin and end now.
    fn ends(&self, sites: std::ops::Range<u64>, reply: SiteReply) -> Vec<SiteEnd> {
        sites.map(|site| SiteEnd { witness: witness(site), began: self.now, reply }).collect()
    }

    fn hold(&mut self, names: bool) {
        self.reports[1].held_since = self.now;
        self.reports[1].names_held_since = if names { self.now } else { Instant::NEVER };
    }

    fn cause(&self) -> Option<Cause> {
        self.breaker.outage().map(|outage| outage.cause)
    }
}

#[test]
fn name_servers_that_are_silent_from_the_start_are_an_outage_and_one_that_answers_ends_it() {
    let mut bed = Bed::new(|config| config.outage.probe_max = Duration::from_secs(4));
    bed.reports[1].dns_failed = 3;
    bed.look(4_400, &[]);
    bed.hold(true);
    assert_eq!((bed.look(999, &[]).probes[0], bed.cause()), (None, None));
    // Each server is queried, and then again.
    assert_eq!(bed.look(1, &[]).probes[0].map(|(_, kind)| kind), Some(ProbeKind::Names));
    assert_eq!(bed.look(2_999, &[]).probes[0], None);
    assert_eq!(bed.look(1, &[]).probes[0].map(|(_, kind)| kind), Some(ProbeKind::Names));
    assert_eq!((bed.look(2_999, &[]).is_down(), bed.look(1, &[]).is_down()), (false, true));
    assert_eq!(bed.breaker.outage().expect("one").describe(bed.now), "no name server has answered for 7 s");
    // One probe a second, two, four, four.
    bed.reports[1] = NetworkReport { held_since: Instant::NEVER, names_held_since: Instant::NEVER, ..bed.reports[1] };
    let mut probes = Vec::new();
    for second in 1..=15 {
        let ruling = bed.look(1_000, &[]);
        assert!(ruling.is_down() && ruling.cleared == Cleared::default(), "what failed does not count");
        probes.extend(ruling.probes[0].map(|(_, kind)| (second, kind)));
    }
    assert_eq!(probes, [1, 3, 7, 11, 15].map(|second| (second, ProbeKind::Names)));
    // An answer from a site says nothing about names, except that it can be fetched.
    assert!(bed.look(100, &bed.ends(0..1, SiteReply::Answered)).is_down());
    bed.reports[0].dns_heard = 1;
    assert!(!bed.look(100, &[]).is_down());
    let (count, time) = bed.breaker.outages(bed.now + Duration::from_secs(9));
    assert_eq!((count, time.as_secs()), (1, 22));
}

#[test]
fn a_name_without_an_answer_counts_where_a_server_answers() {
    let mut bed = Bed::new(|_| ());
    bed.reports[1].dns_failed = 3;
    bed.look(4_400, &[]);
    bed.hold(true);
    let held = bed.now;
    let asked = bed.look(1_000, &[]).probes[0];
    assert_eq!(asked.map(|(_, kind)| kind), Some(ProbeKind::Names));
    assert!(bed.look(10, &[]).cleared.sites < held);
    bed.reports[0].dns_heard = 1;
    let cleared = bed.look(10, &[]).cleared;
    assert!(cleared.sites >= held && cleared.names >= held && bed.cause().is_none());
}

/// A single seed, which is dead: it is tried and given up.
#[test]
fn dead_sites_alone_are_no_outage() {
    for names_are_used in [true, false] {
        let mut bed = Bed::new(|_| ());
        bed.reports[1].dns_heard = u64::from(names_are_used);
        bed.look(1_000, &[]);
        bed.hold(false);
        let held = bed.now;
        bed.look(0, &bed.ends(0..30, SiteReply::Silent));
        assert!(bed.look(999, &[]).cleared.sites < held);
        let ruling = bed.look(1, &[]);
        assert_eq!(ruling.probes[0].is_some(), names_are_used, "name servers are asked where the crawl uses any");
        assert_eq!(ruling.cleared.sites >= held, !names_are_used);
        bed.reports[1].dns_heard *= 2;
        assert!(bed.look(50, &[]).cleared.sites >= held && bed.cause().is_none());
        // Without a route there is no verdict; without one from the start there is none to lose.
        bed.has_route = false;
        bed.hold(false);
        bed.look(1_000, &[]);
        assert_eq!(bed.cause(), Some(Cause::Route));
        bed.has_route = true;
        assert!(!bed.look(1_000, &[]).is_down());
        let mut island = Bed { has_route: false, ..Bed::new(|_| ()) };
        island.look(10, &[]);
        island.hold(false);
        assert!(!island.look(2_000, &[]).is_down() && island.look(10, &[]).cleared.sites > Instant::ZERO);
    }
}

#[test]
fn sites_that_answered_and_fail_together_are_an_outage() {
    let mut bed = Bed::new(|_| ());
    bed.reports[0].dns_heard = 100;
    bed.look(10_000, &bed.ends(0..40, SiteReply::Answered));
    bed.look(100, &bed.ends(0..13, SiteReply::FellSilent));
    bed.hold(false);
    // Two more are alive, but it takes three.
    let ruling = bed.look(1_500, &bed.ends(13..15, SiteReply::Answered));
    assert_eq!(
        (ruling.is_down(), ruling.probes[0], ruling.cleared.sites < bed.reports[1].held_since),
        (false, None, true)
    );
    bed.look(100, &bed.ends(20..34, SiteReply::FellSilent));
    // Others are fetched, and are silent, too.
    assert!(!bed.look(3_900, &bed.ends(34..36, SiteReply::FellSilent)).is_down());
    bed.look(100, &bed.ends(36..37, SiteReply::FellSilent));
    assert_eq!(bed.cause(), Some(Cause::Sites { failed: 16, of: 16 }));
    let outage = bed.breaker.outage().expect("one");
    assert_eq!(outage.describe(bed.now), "the network has been down for 4 s: 16 of the last 16 sites failed");
    bed.reports[1].held_since = Instant::NEVER;
    // A site that was asked before it, and answers now.
    let before = SiteEnd { witness: witness(7), began: bed.now - Duration::from_millis(1), reply: SiteReply::Answered };
    assert!(bed.look(10, &[before]).is_down());
    // Three things at a time, by each shard that has work in turn.
    let probes: Vec<_> = (0..31).flat_map(|_| bed.look(1_000, &[]).probes).flatten().collect();
    let job = |shard| (shard, ProbeKind::Job);
    assert_eq!(probes, (0..5 * 3).map(|probe| job(probe % 2)).collect::<Vec<_>>());
    bed.reports[1].has_work = false;
    let probes: Vec<_> = (0..61).flat_map(|_| bed.look(1_000, &[]).probes).flatten().collect();
    assert_eq!(probes, [job(0); 2 * 3]);
    assert!(!bed.look(0, &bed.ends(3..4, SiteReply::Answered)).is_down());
    // Sites that failed then say nothing about now.
    assert!(!bed.look(10, &bed.ends(3..4, SiteReply::FellSilent)).is_down());
}

#[test]
fn a_proxy_that_is_gone_is_an_outage() {
    let mut bed = Bed::new(|config| config.outage.wait_max = Duration::from_secs(60));
    bed.reports[0].proxy_unreachable = 1;
    bed.look(10, &[]);
    // It is overloaded: others get through.
    assert!(!bed.look(500, &bed.ends(0..1, SiteReply::Answered)).is_down());
    assert!(!bed.look(2_000, &[]).is_down());
    bed.reports[0].proxy_unreachable = 2;
    assert_eq!(
        (bed.look(0, &[]).is_down(), bed.look(999, &[]).is_down(), bed.look(1, &[]).is_down()),
        (false, false, true)
    );
    assert_eq!(bed.cause(), Some(Cause::Proxy));
    assert_eq!((bed.look(58_999, &[]).gives_up, bed.look(1, &[]).gives_up), (false, true));
    bed.look(10, &[]);
    assert!(!bed.look(0, &bed.ends(0..1, SiteReply::Answered)).is_down());
}

/// With many sites, three others that answer later are enough; and the failure counts at the latest after
/// `outage.hold_max`.
#[test]
fn a_failure_among_living_sites_counts_soon() {
    let mut bed = Bed::new(|_| ());
    bed.reports[0].dns_heard = 1;
    bed.look(1_000, &bed.ends(0..40, SiteReply::Answered));
    bed.hold(false);
    let held = bed.now;
    bed.now = bed.now + Duration::from_millis(1);
    assert!(bed.look(0, &bed.ends(0..2, SiteReply::Answered)).cleared.sites < held);
    assert!(bed.look(0, &bed.ends(2..3, SiteReply::Answered)).cleared.sites >= held);
    let mut slow = Bed::new(|_| ());
    slow.look(1_000, &[]);
    slow.look(0, &slow.ends(0..40, SiteReply::Answered));
    slow.look(1, &[]);
    slow.hold(false);
    let held = slow.now;
    assert!(slow.look(59_990, &slow.ends(0..14, SiteReply::FellSilent)[..13]).cleared.sites < held);
    assert!(slow.look(10, &[]).cleared.sites >= held);
}

/// Callers that wait for the breaker's next look wait for its result.
#[test]
fn looks_are_due_while_something_is_held() {
    let mut bed = Bed::new(|_| ());
    assert_eq!(bed.breaker.next_due(bed.now, &bed.reports), None);
    bed.reports[1].dns_failed = 1;
    bed.look(1_000, &[]);
    bed.hold(true);
    for _ in 0..100 {
        if bed.cause().is_some() {
            return;
        }
        let due = bed.breaker.next_due(bed.now, &bed.reports).expect("a look is due");
        assert!(due >= bed.now, "{due:?}");
        bed.now = due;
        bed.look(0, &[]);
    }
    panic!("no outage was seen");
}

/// An answer that arrived with the look that would have given up on it.
#[test]
fn an_answer_at_the_last_moment_is_one() {
    let mut bed = Bed::new(|_| ());
    bed.reports[1].dns_failed = 3;
    bed.look(4_400, &[]);
    bed.hold(true);
    let held = bed.now;
    bed.look(1_000, &[]);
    bed.reports[0].dns_heard = 1;
    let ruling = bed.look(6_000, &[]);
    assert!(!ruling.is_down() && ruling.cleared.names >= held);
}

#[test]
fn an_outage_that_begins_again_soon_goes_on() {
    let mut bed = Bed::new(|config| config.outage.wait_max = Duration::from_secs(100));
    let fail = |bed: &mut Bed| {
        bed.reports[0].proxy_unreachable += 1;
        bed.look(0, &[]);
        bed.look(1_000, &[])
    };
    fail(&mut bed);
    let first = bed.breaker.outage().expect("an outage");
    assert!((0..20).all(|_| bed.look(1_000, &[]).is_down()));
    assert!(!bed.look(100, &bed.ends(0..1, SiteReply::Answered)).is_down());
    bed.look(30_000, &[]);
    fail(&mut bed);
    let again = bed.breaker.outage().expect("an outage");
    assert_eq!((again.since, again.is_again, first.is_again), (first.since, true, false));
    assert!(again.interval > PROBE_FIRST * 8, "{again:?}");
    assert_eq!(bed.breaker.outages(bed.now).0, 1);
    // A site answered between them.
    assert!((0..99).all(|_| !bed.look(1_000, &[]).gives_up) && bed.look(1_000, &[]).gives_up);
    // Much later it is another outage.
    assert!(!bed.look(100, &bed.ends(0..1, SiteReply::Answered)).is_down());
    bed.look(60_000, &[]);
    fail(&mut bed);
    let next = bed.breaker.outage().expect("an outage");
    assert_eq!((next.is_again, next.interval, bed.breaker.outages(bed.now).0), (false, PROBE_FIRST, 2));
}

/// Two live and the others have stopped for good: eventually this is no outage.
#[test]
fn sites_that_fail_after_each_outage_fail_by_themselves() {
    let mut bed = Bed::new(|_| ());
    bed.reports[0].dns_heard = 100;
    bed.look(10_000, &bed.ends(0..16, SiteReply::Answered));
    let mut outages = 0;
    for _ in 0..6 {
        bed.look(5_000, &bed.ends(14..16, SiteReply::Answered));
        let ruling = bed.look(5_000, &bed.ends(0..14, SiteReply::FellSilent));
        assert!(!ruling.is_down() && !bed.look(19_999, &[]).is_down());
        let was_down = bed.look(1, &[]).is_down();
        outages += u32::from(was_down);
        bed.hold(false);
        let held = bed.now;
        bed.look(21_000, &[]);
        let ruling = bed.look(1, &bed.ends(14..15, SiteReply::Answered));
        assert!(!ruling.is_down());
        assert_eq!(ruling.cleared.sites >= held, !was_down, "now it counts");
        bed.reports[1].held_since = Instant::NEVER;
    }
    assert_eq!(outages, 3);
    // A site that has answered is trusted again.
    bed.look(5_000, &bed.ends(0..14, SiteReply::Answered));
    bed.look(5_000, &bed.ends(0..14, SiteReply::FellSilent));
    bed.look(20_000, &[]);
    assert_eq!(bed.cause(), Some(Cause::Sites { failed: 14, of: 16 }));
}

/// Sixty fall silent at once, repeatedly, while the web stays up: each time some other site answers.
#[test]
fn one_answer_says_that_it_is_not_the_network() {
    let mut bed = Bed::new(|_| ());
    bed.reports[0].dns_heard = 100;
    bed.look(10_000, &bed.ends(0..60, SiteReply::Answered));
    for _ in 0..20 {
        for second in 0..20 {
            bed.look(900, &bed.ends(0..60, SiteReply::FellSilent));
            // The last site asked before they were: it may have been answered before the network failed.
            let before =
                SiteEnd { began: bed.now - Duration::from_secs(1), ..bed.ends(99..100, SiteReply::Answered)[0] };
            assert!(!bed.look(50, if second == 0 { std::slice::from_ref(&before) } else { &[] }).is_down());
            assert!(!bed.look(50, &bed.ends(100..101, SiteReply::Answered)).is_down());
        }
        bed.look(100, &bed.ends(0..60, SiteReply::Answered));
    }
    assert_eq!(bed.breaker.outages(bed.now).0, 0);
}

#[test]
fn without_a_default_route_a_site_that_answers_tells() {
    let mut bed = Bed { has_route: false, ..Bed::new(|_| ()) };
    bed.reports[1].dns_heard = 1;
    bed.look(1_000, &[]);
    // The route appeared after the first look.
    bed.has_route = true;
    bed.look(1_000, &[]);
    bed.has_route = false;
    bed.hold(false);
    bed.look(2_000, &[]);
    assert_eq!(bed.cause(), Some(Cause::Route));
    bed.reports[1].held_since = Instant::NEVER;
    assert_eq!(bed.look(1_000, &[]).probes[0].map(|(_, kind)| kind), Some(ProbeKind::Job));
    assert!(!bed.look(100, &bed.ends(0..1, SiteReply::Answered)).is_down());
    // So there are other routes.
    bed.hold(false);
    bed.look(2_000, &[]);
    assert_eq!(bed.cause(), None);
}

/// As many must live as have to answer before a failure counts.
#[test]
fn few_are_fewer_than_could_clear_a_failure() {
    let mut bed = Bed::new(|config| config.outage.sites_failed = 8);
    bed.reports[1].dns_heard = 1;
    bed.look(1_000, &bed.ends(0..8, SiteReply::Answered));
    bed.hold(false);
    let held = bed.now;
    assert!(bed.look(1, &bed.ends(0..1, SiteReply::Answered)).cleared.sites >= held);
}

/// The configuration's rule for `outage.hold_max`.
#[test]
fn name_servers_are_found_silent_within_what_the_rule_allows() {
    assert_eq!(SUSPICION + NAME_SLACK, ringcrawl_config::NAMES_SLACK);
}

/// The message sends the operator to the resolver's upstream, not to the resolver.
#[test]
fn name_servers_that_live_and_know_nothing_are_told_from_silent_ones() {
    let mut bed = Bed::new(|_| ());
    (bed.reports[1].dns_failed, bed.reports[1].dns_errors) = (3, 3);
    bed.look(1_000, &[]);
    bed.hold(true);
    bed.look(1_000, &[]);
    bed.look(6_000, &[]);
    let outage = bed.breaker.outage().expect("an outage");
    assert_eq!(outage.describe(bed.now), "the name servers have returned only errors for 7 s");
}

/// Hosts whose addresses are known need no name server.
#[test]
fn names_alone_are_out_of_reach_while_sites_answer() {
    for answers_early in [true, false] {
        let mut bed = Bed::new(|config| config.outage.wait_max = Duration::from_secs(600));
        (bed.reports[0].dns_heard, bed.reports[1].dns_failed) = (1, 3);
        bed.look(1_000, &[]);
        bed.reports[1].dns_failed += 3;
        bed.look(1_000, &[]);
        bed.hold(true);
        bed.look(500, &[]);
        bed.look(500, &if answers_early { bed.ends(0..1, SiteReply::Answered) } else { Vec::new() });
        (0..6).for_each(|_| _ = bed.look(1_000, &[]));
        assert!(matches!(bed.cause(), Some(Cause::NameServers { .. })));
        (bed.reports[1].held_since, bed.reports[1].names_held_since) = (Instant::NEVER, Instant::NEVER);
        let ends = bed.ends(0..1, SiteReply::Answered);
        let reach = [bed.look(100, &[]).out_of_reach, bed.look(100, &ends).out_of_reach];
        assert_eq!(reach[0], if answers_early { OutOfReach::Names } else { OutOfReach::All });
        assert_eq!(reach[1], OutOfReach::Names);
        // A site that fails counts as always, where another answers.
        bed.hold(false);
        let held = bed.now;
        bed.look(1_000, &[]);
        assert!(bed.look(1_000, &bed.ends(0..1, SiteReply::Answered)).cleared.sites >= held);
        // The crawl does not end because of it.
        for _ in 0..700 {
            let ruling = bed.look(1_000, &bed.ends(0..1, SiteReply::Answered));
            assert_eq!((ruling.out_of_reach, ruling.gives_up), (OutOfReach::Names, false));
        }
        // Nothing answers any more: what fails does not count.
        bed.hold(false);
        let (held, mut ruling) = (bed.now, bed.look(19_999, &[]));
        assert_eq!(ruling.out_of_reach, OutOfReach::Names);
        ruling = bed.look(1, &[]);
        assert!(ruling.out_of_reach == OutOfReach::All && ruling.cleared.sites < held);
        bed.reports[1].held_since = Instant::NEVER;
        assert_eq!(bed.look(1_000, &[]).probes.iter().flatten().count(), 3, "it is looked for at once");
        assert_eq!(bed.look(10, &bed.ends(0..1, SiteReply::Answered)).out_of_reach, OutOfReach::Names);
        // Then most sites fall silent: that is more than names.
        bed.look(10, &bed.ends(0..40, SiteReply::Answered));
        bed.look(10, &bed.ends(0..30, SiteReply::FellSilent));
        assert_eq!(bed.look(19_990, &[]).out_of_reach, OutOfReach::Names);
        let ruling = bed.look(20, &[]);
        assert_eq!(ruling.out_of_reach, OutOfReach::All);
        assert!(matches!(bed.cause(), Some(Cause::Sites { .. })));
        bed.look(1_000, &bed.ends(0..1, SiteReply::Answered));
        assert_eq!((bed.cause(), bed.breaker.outages(bed.now).0), (None, 1));
        // Soon nothing answers again: a site's answer between the two says nothing about now.
        bed.hold(true);
        bed.reports[1].dns_failed += 3;
        (0..9).for_each(|_| _ = bed.look(1_000, &[]));
        let outage = bed.breaker.outage().expect("one");
        assert!(outage.is_again && outage.out_of_reach == OutOfReach::All, "{outage:?}");
    }
}
