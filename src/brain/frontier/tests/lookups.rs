//! Thousands of names without an answer, next to known hosts and sites that link to existing names.

use std::collections::BinaryHeap;

use super::*;
use std::cmp::Reverse;

/// The result of a name lookup, and after how many milliseconds.
type Told = fn(&str) -> (Option<&'static str>, u64);

const ATTACKED: usize = 5_000;
const VICTIMS: usize = 8;

/// Jobs in flight, each with its own duration.
struct Flight {
    bed: Bed,
    ends: BinaryHeap<Reverse<(Instant, u64)>>,
    jobs: BTreeMap<u64, (FetchJob, Outcome)>,
    told: Told,
}

impl Flight {
    fn new(told: Told) -> Flight {
        let bed = Bed::new(|config| {
            config.politeness.site_delay = Duration::ZERO;
            config.politeness.ip_delay = Duration::ZERO;
            config.politeness.response_factor = 0;
        });
        Flight { bed, ends: BinaryHeap::new(), jobs: BTreeMap::new(), told }
    }

    fn found_by(&mut self, page: &str, urls: impl Iterator<Item = String>) {
        self.bed.frontier.begin_links_of(page);
        for url in urls {
            let url = Url::parse(&url).expect("a URL");
            let ticket = Ticket { depth: 1, ..Ticket::default() };
            let site = SiteKey::of_host(7, url.host());
            self.bed.frontier.offer(self.bed.now, &url, site, ticket, &mut self.bed.spool);
        }
        self.bed.frontier.order.kinds.end_links();
    }

    fn run_until(&mut self, end: Instant) {
        loop {
            let now = self.bed.now;
            while let Some(Reverse((at, id))) = self.ends.peek().copied().filter(|Reverse((at, _))| *at <= now) {
                self.ends.pop();
                let (job, outcome) = self.jobs.remove(&id).expect("a job");
                if job.kind != JobKind::Resolve {
                    self.bed.frontier.slots.fetch_slots.came(at, id, None);
                }
                self.bed.frontier.finish(now, &job, &outcome);
            }
            self.bed.frontier.begin_turn(now);
            while let Some(job) = self.bed.frontier.next_job(now, &mut self.bed.spool) {
                let (outcome, millis) = match (job.kind, (self.told)(job.url.host())) {
                    (JobKind::Resolve, (Some(addr), millis)) => {
                        let addrs = vec![addr.parse().expect("an address")];
                        let ttl = Duration::from_secs(60);
                        (Outcome::Resolved { addrs, ttl, is_half: false, alias: None }, millis)
                    }
                    (JobKind::Resolve, (None, millis)) => (Outcome::Failed(Failure::DnsTimeout), millis),
                    _ => (well(&job), 50),
                };
                let at = now + Duration::from_millis(millis);
                self.ends.push(Reverse((at, job.id)));
                self.bed.jobs.push((now, job.clone()));
                self.jobs.insert(job.id, (job, outcome));
            }
            self.bed.settled.extend(self.bed.frontier.take_settled());
            let ends = self.ends.peek().map(|Reverse((at, _))| *at);
            let Some(next) = ends.into_iter().chain(self.bed.frontier.next_due()).min() else { return };
            self.bed.now = next.max(now + Duration::from_millis(1));
            if self.bed.now > end {
                return;
            }
        }
    }

    /// Pages of hosts whose names begin with this.
    fn pages_of(&self, start: &str) -> usize {
        self.bed.pages().iter().filter(|url| url.starts_with(&format!("http://{start}"))).count()
    }
}

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

/// Pages of the victims in five minutes, and of new hosts to which an honest site links in the middle.
fn beside(attack: bool, told: Told) -> (usize, usize) {
    let mut flight = Flight::new(told);
    for victim in 0..VICTIMS {
        (0..400).for_each(|page| flight.bed.offer(&format!("http://victim{victim}.test/{page}")));
    }
    ["http://attacker.test/", "http://honest.test/"].into_iter().for_each(|url| flight.bed.offer(url));
    flight.run_until(at(10));
    if attack {
        flight.found_by("attacker.test", (0..ATTACKED).map(|number| format!("http://n{number}.test/")));
    }
    flight.run_until(at(120));
    flight.found_by("honest.test", (0..40).map(|number| format!("http://late{number}.test/")));
    flight.run_until(at(150));
    let late = flight.pages_of("late");
    flight.run_until(at(300));
    (flight.pages_of("victim"), late)
}

#[test]
fn known_hosts_and_other_sites_links_go_on_beside_names_in_vain() {
    let silent: Told = |host| if host.starts_with('n') { (None, 4_400) } else { (Some("192.0.2.1"), 10) };
    let servfail: Told = |host| if host.starts_with('n') { (None, 20) } else { (Some("192.0.2.1"), 10) };
    let late: Told = |host| (Some("192.0.2.1"), if host.starts_with('n') { 4_900 } else { 10 });
    for (what, told) in [("silent", silent), ("SERVFAIL", servfail), ("after 4.9 s", late)] {
        let (alone, attacked) = (beside(false, told), beside(true, told));
        assert!(attacked.0 * 10 >= alone.0 * 9 && alone.0 > 280 * VICTIMS, "{what}: {attacked:?} and {alone:?} alone");
        assert_eq!((attacked.1, alone.1), (40, 40), "{what}: new hosts of others");
    }
}

/// The victims' own names are also answered this late: they continue at their old addresses, for no longer than
/// allowed.
#[test]
fn an_old_address_serves_while_its_name_is_asked_for() {
    for (stale_max, lasts) in [(3_600, 4_900), (0, 4_900), (3_600, 60_000), (30, 300_000)] {
        let told: Told = match lasts {
            4_900 => |_| (Some("192.0.2.1"), 4_900),
            60_000 => |_| (Some("192.0.2.1"), 60_000),
            _ => |_| (Some("192.0.2.1"), 300_000),
        };
        let mut flight = Flight::new(told);
        flight.bed.frontier.settings.stale_max = Duration::from_secs(stale_max);
        (0..2_000).for_each(|page| flight.bed.offer(&format!("http://a.test/{page}")));
        flight.run_until(at(lasts / 1_000 + 600));
        let of = |kind| flight.bed.jobs.iter().filter(move |(_, job)| job.kind == kind).map(|(at, _)| *at);
        let pages: Vec<Instant> = of(JobKind::Page).collect();
        let longest = pages.windows(2).map(|pair| pair[1].since(pair[0])).max().expect("pages");
        let names = of(JobKind::Resolve).count();
        match (stale_max, lasts) {
            // A lookup each minute, started 5 s early: nothing waits for it, as its host has a turn each second.
            (3_600, _) => {
                assert!(longest <= Duration::from_millis(1_900), "{lasts} ms: {longest:?}");
                assert!(pages.len() >= 540 && (5..=12).contains(&names), "{lasts}: {} {names}", pages.len());
            }
            (0, _) => assert!(longest >= Duration::from_secs(4), "{longest:?}"),
            _ => {
                let stops = pages.iter().rposition(|page| page.since(pages[0]) <= Duration::from_secs(95));
                let gap = pages[stops.expect("pages") + 1].since(pages[stops.expect("pages")]);
                assert!(gap >= Duration::from_secs(200), "{gap:?}: the grace is over");
            }
        }
        // One lookup at a time.
        let lookups: Vec<Instant> = of(JobKind::Resolve).collect();
        assert!(lookups.windows(2).all(|pair| pair[1].since(pair[0]) >= Duration::from_millis(lasts)));
    }
}

/// A denial that arrives meanwhile ends it.
#[test]
fn a_denial_that_comes_beside_pages_gives_the_host_up() {
    let mut flight = Flight::new(|_| (Some("192.0.2.1"), 10));
    (0..300).for_each(|page| flight.bed.offer(&format!("http://a.test/{page}")));
    flight.run_until(at(30));
    flight.told = |_| (None, 4_900);
    flight.run_until(at(62));
    let in_flight: Vec<u64> =
        flight.jobs.iter().filter(|(_, (job, _))| job.kind == JobKind::Resolve).map(|(id, _)| *id).collect();
    assert_eq!(in_flight.len(), 1);
    flight.jobs.get_mut(&in_flight[0]).expect("the lookup").1 = Outcome::NoAddress { ttl: Duration::from_secs(600) };
    let before = flight.pages_of("a.test");
    flight.run_until(at(70));
    assert!(flight.pages_of("a.test") <= before + 5, "{} and {before}", flight.pages_of("a.test"));
    assert_eq!(flight.pages_of("a.test") + flight.bed.settled.len(), 300);
    assert!(flight.bed.settled.iter().all(|settled| settled.failure == Failure::DnsNotFound));
}
