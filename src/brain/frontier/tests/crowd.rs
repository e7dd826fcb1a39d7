//! Many fetches at once, as in a shard: which hosts hold slots and addresses, and for how long.

use std::collections::HashMap;

use super::*;

/// The result of a fetch, its duration, and the URLs that are found then.
struct Reply {
    outcome: Outcome,
    millis: u64,
    links: Vec<String>,
    /// The failure is known, and counts a moment later.
    is_held_back: bool,
}

fn reply(outcome: Outcome, millis: u64) -> Reply {
    Reply { outcome, millis, links: vec![], is_held_back: false }
}

struct Crowd {
    frontier: Frontier,
    spool: Spool,
    now: Instant,
    places: usize,
    flying: Vec<(Instant, FetchJob, Reply)>,
    done: Vec<(Instant, String, bool)>,
}

impl Crowd {
    fn new(places: usize) -> Crowd {
        let mut config = Config::default();
        config.agent.name = "bed".to_owned();
        config.fetch.in_flight_max = places;
        Crowd {
            frontier: Frontier::new(
                Settings::new(&config, Partition::by_site(1), 0, 7),
                Arc::new(Ledger::new(1 << 12)),
            ),
            spool: Spool::new(1 << 20),
            now: Instant::ZERO,
            places,
            flying: vec![],
            done: vec![],
        }
    }

    fn offer(&mut self, url: &str) {
        let url = Url::parse(url).expect("a URL");
        let site = SiteKey::of_host(7, url.host());
        self.frontier.offer(self.now, &url, site, Ticket::default(), &mut self.spool);
    }

    /// Only another site links to it.
    fn offer_of_strangers(&mut self, url: &str) {
        self.frontier.begin_strangers_links(SiteKey::of_host(7, "stranger.test"));
        self.offer_link(url);
    }

    /// A page links to it; the caller named that page before.
    fn offer_link(&mut self, url: &str) {
        let url = Url::parse(url).expect("a URL");
        let ticket = Ticket { depth: Hops::default().link().bits(), ..Ticket::default() };
        self.frontier.offer(self.now, &url, SiteKey::of_host(7, url.host()), ticket, &mut self.spool);
        self.frontier.order.kinds.end_links();
    }

    fn fetches(&self) -> usize {
        self.flying.iter().filter(|f| f.1.kind != JobKind::Resolve && !f.2.is_held_back).count()
    }

    fn run(&mut self, millis: u64, answer: &mut dyn FnMut(&FetchJob) -> Reply) {
        let end = self.now + Duration::from_millis(millis);
        loop {
            while let Some(at) = self.flying.iter().position(|f| f.0 <= self.now) {
                let (_, job, mut reply) = self.flying.swap_remove(at);
                if reply.is_held_back {
                    reply.is_held_back = false;
                } else if job.kind != JobKind::Resolve {
                    match reply.outcome {
                        Outcome::Failed(Failure::ConnectTimeout) => {
                            self.frontier.slots.fetch_slots.got_no_response(self.now, job.id);
                            // And counts once the network is known to be up.
                            self.frontier.is_held_back(self.now, &job);
                            self.frontier.request_ended(self.now, &job);
                            reply.is_held_back = true;
                            self.flying.push((self.now + Duration::from_secs(3), job, reply));
                            continue;
                        }
                        _ => self.frontier.slots.fetch_slots.came(self.now, job.id, None),
                    }
                }
                self.frontier.finish(self.now, &job, &reply.outcome);
                if job.kind != JobKind::Resolve {
                    let well = matches!(reply.outcome, Outcome::Fetched(_)) && job.kind == JobKind::Page;
                    self.done.push((self.now, job.url.as_str().to_owned(), well));
                }
                for link in &reply.links {
                    if Url::parse(link).is_ok_and(|url| url.host() == job.url.host()) {
                        self.offer(link);
                    } else {
                        self.frontier.begin_links(&job);
                        self.offer_link(link);
                    }
                }
            }
            while let Some(id) = self.frontier.slots.fetch_slots.late(self.now) {
                if let Some(f) = self.flying.iter_mut().find(|f| f.1.id == id)
                    && !matches!(f.2.outcome, Outcome::Failed(Failure::ConnectTimeout))
                {
                    f.0 = self.now + Duration::from_millis(1);
                    f.2 = reply(Outcome::Failed(Failure::Hurried), 0);
                }
            }
            while self.fetches() < self.places {
                let Some(job) = self.frontier.next_job(self.now, &mut self.spool) else { break };
                let mut reply = answer(&job);
                let mut ends = self.now + Duration::from_millis(reply.millis);
                if ends > job.deadline && job.kind != JobKind::Resolve {
                    ends = job.deadline;
                    if !matches!(reply.outcome, Outcome::Failed(Failure::ConnectTimeout)) {
                        reply.outcome =
                            Outcome::Failed(if job.is_hurried { Failure::Hurried } else { Failure::Deadline });
                    }
                    reply.links.clear();
                }
                self.flying.push((ends, job, reply));
            }
            self.frontier.take_settled();
            self.frontier.begin_turn(self.now);
            let next_end = self.flying.iter().map(|f| f.0).min();
            let due = if self.fetches() < self.places { self.frontier.next_due() } else { None };
            let next = [next_end, due, self.frontier.slots.fetch_slots.next_late()].into_iter().flatten().min();
            let next = next.unwrap_or(end).max(self.now + Duration::from_micros(100));
            if next > end {
                self.now = end;
                return;
            }
            self.now = next;
        }
    }

    fn pages(&self, part: &str) -> usize {
        self.done.iter().filter(|(_, url, well)| *well && url.contains(part)).count()
    }
}

fn number(host: &str) -> u8 {
    let label = host.split('.').next().unwrap();
    label.chars().filter(char::is_ascii_digit).collect::<String>().parse::<u32>().unwrap_or(0) as u8
}

fn resolved(addr: [u8; 4]) -> Reply {
    let addrs = vec![IpAddr::from(addr)];
    reply(Outcome::Resolved { addrs, ttl: Duration::from_secs(86_400), is_half: false, alias: None }, 20)
}

/// The next page of the same host.
fn next_page(job: &FetchJob) -> Vec<String> {
    if job.kind != JobKind::Page {
        return vec![];
    }
    let page: u64 = job.url.as_str().rsplit('/').next().unwrap().parse().unwrap();
    vec![format!("http://{}/{}", job.url.host(), page + 1)]
}

fn chain(job: &FetchJob, millis: u64) -> Reply {
    let outcome = status(if job.kind == JobKind::Robots { 404 } else { 200 });
    Reply { links: next_page(job), ..reply(outcome, millis) }
}

/// Sites that are fast elsewhere point names at the victim's address, and link to a port there that refuses
/// connections.
#[test]
fn closed_ports_at_a_shared_address_leave_turns_to_others() {
    let pages = |attackers: usize| {
        let mut crowd = Crowd::new(1_024);
        crowd.offer("http://www.victim.test/0");
        (0..attackers).for_each(|n| crowd.offer(&format!("http://w{n}.att{n}.test/0")));
        let mut answer = |job: &FetchJob| {
            let host = job.url.host();
            match job.kind {
                JobKind::Resolve if host.starts_with('w') && !host.contains("victim") => {
                    resolved([198, 51, 100, number(host)])
                }
                JobKind::Resolve => resolved([192, 0, 2, 1]),
                _ if job.url.port() == 81 => reply(Outcome::Failed(Failure::ConnectTimeout), 10_000),
                _ => chain(job, 50),
            }
        };
        crowd.run(20_000, &mut answer);
        for n in 0..attackers {
            (0..200).for_each(|x| crowd.offer(&format!("http://x{x}.att{n}.test:81/0")));
        }
        let before = crowd.pages("victim");
        crowd.run(600_000, &mut answer);
        crowd.pages("victim") - before
    };
    let [alone, one, five, hundred] = [0, 1, 5, 100].map(pages);
    assert!(
        one * 10 >= alone * 7 && five * 10 >= alone * 7 && hundred * 10 >= alone,
        "{one} {five} {hundred} of {alone}"
    );
}

/// yoko #54: facets have endless siblings at depth 1 and 2, which no bound on depth stops and which breadth-first
/// order puts first. Other sites get their pages as soon as without it, and so does the trap's own site.
#[test]
fn a_shallow_wide_trap_takes_no_crawl_over() {
    let ends = |siblings: u64| {
        let mut crowd = Crowd::new(64);
        crowd.offer("http://www.wide.test/0");
        (0..siblings).for_each(|n| crowd.offer(&format!("http://facets.wide.test/{n}")));
        (0..30).for_each(|n| crowd.offer(&format!("http://www.s{n}.test/0")));
        let mut answer = |job: &FetchJob| match job.kind {
            JobKind::Resolve => {
                resolved([192, 0, 2, 30 + number(job.url.host().split_once('.').map_or("", |(_, site)| site))])
            }
            JobKind::Page if job.url.host() == "facets.wide.test" => {
                // Each is a door to a thousand more, which are siblings of its own.
                let from: u64 = 1_000_000 + job.number;
                let links =
                    (0..if siblings > 0 { 1_000 } else { 0 }).map(|n| format!("http://facets.wide.test/{}", from + n));
                Reply { links: links.collect(), ..reply(status(200), 50) }
            }
            JobKind::Page if job.url.as_str().ends_with("/40") => reply(status(200), 50),
            _ => chain(job, 50),
        };
        crowd.run(200_000, &mut answer);
        let of = |part: &str| crowd.done.iter().filter(|(_, url, well)| *well && url.contains(part)).count();
        assert_eq!(of("http://www.s"), 30 * 41, "all pages of all others");
        let last =
            |part: &str| crowd.done.iter().filter(|(_, url, _)| url.contains(part)).map(|(at, ..)| at.as_nanos()).max();
        (last("http://www.s"), of("http://www.wide"), of("facets"))
    };
    let ((alone, ..), (beside, of_site, in_trap)) = (ends(0), ends(5_000));
    let seconds = |nanos: Option<u64>| nanos.unwrap_or_default() / 1_000_000_000;
    assert!(seconds(beside) <= seconds(alone) + 1, "{beside:?} and {alone:?} without it");
    assert!(of_site == 41 && (50..200).contains(&in_trap), "{of_site} pages of its site, {in_trap} in the trap");
}

/// At 28 addresses a fast site is slow once in every rest, so that a host which keeps a slot there is never called:
/// there are still slots left for slow sites.
#[test]
fn places_are_not_kept_for_addresses_that_rest() {
    let mut crowd = Crowd::new(32);
    crowd.offer("http://h.honest.test/0");
    let mut answer = |job: &FetchJob| {
        let host = job.url.host();
        match (job.kind, host.as_bytes().first()) {
            (JobKind::Resolve, Some(b'h')) => resolved([203, 0, 113, 200]),
            (JobKind::Resolve, Some(b't')) => resolved([198, 51, 100, number(host)]),
            (JobKind::Resolve, _) => resolved([192, 0, 2, number(host)]),
            (_, Some(b'h')) => chain(job, 3_000),
            (JobKind::Page, Some(b's')) => chain(job, 59_000),
            (JobKind::Page, Some(b'd')) => Reply { links: vec![], ..chain(job, 59_000) },
            _ => chain(job, 20),
        }
    };
    crowd.run(60_000, &mut answer);
    for k in 0..28 {
        crowd.offer(&format!("http://t{k}.f{k}.test/0"));
        ["c", "i", "j"].iter().for_each(|c| crowd.offer(&format!("http://{c}{k}.calm.test/0")));
    }
    crowd.run(60_000, &mut answer);
    let mut pages = Vec::new();
    for tick in 0..1_200_u64 {
        for k in 0..28 {
            if (tick + 260 - 9 * k) % 260 == 0 {
                crowd.offer(&format!("http://d{k}.f{k}.test/{tick}"));
            }
            if tick == 9 * k + 5 {
                crowd.offer(&format!("http://s{k}.slow.test/0"));
            }
        }
        crowd.run(1_000, &mut answer);
        if tick % 300 == 299 {
            pages.push(crowd.pages("honest"));
        }
    }
    assert!(pages.windows(2).all(|pair| pair[1] - pair[0] >= 15), "{pages:?}");
}

/// A host that was called to an address and has become slow since does not hold it.
#[test]
fn a_called_host_that_became_slow_keeps_no_host_from_an_address() {
    let mut crowd = Crowd::new(8);
    let mut answer = |job: &FetchJob| match job.kind {
        JobKind::Resolve if job.url.host().starts_with("other") => resolved([203, 0, 113, number(job.url.host())]),
        JobKind::Resolve => resolved([192, 0, 2, 1]),
        _ => chain(job, 50),
    };
    (0..100).for_each(|n| crowd.offer(&format!("http://www.shared{n}.test/0")));
    (0..200).for_each(|n| crowd.offer(&format!("http://other{n}.o{n}.test/0")));
    crowd.run(20_000, &mut answer);
    let places = &mut crowd.frontier.slots.fetch_slots;
    (0..6).for_each(|id| places.took(crowd.now, (1 << 40) + id, SiteKey::of_host(7, &format!("z{id}.test"))));
    crowd.places = 2;
    let mut was_called = false;
    for step in 0..3_000 {
        crowd.run(10, &mut answer);
        let awaited = crowd.frontier.slots.awaited(IpAddr::from([192, 0, 2, 1]).into());
        if let Some(id) = awaited.filter(|_| !was_called && step > 400) {
            was_called = true;
            let (now, site) = (crowd.now, crowd.frontier.hosts[id].site);
            let places = &mut crowd.frontier.slots.fetch_slots;
            places.took(now - Duration::from_secs(2), 1 << 41, site);
            places.look(now);
            places.gave_back(now, 1 << 41);
        }
    }
    let shared = crowd.done.iter().filter(|(_, url, _)| url.contains("shared"));
    let last = shared.map(|(at, ..)| *at).max().expect("some");
    assert!(was_called && crowd.now.since(last) < Duration::from_secs(5), "{:?}", crowd.now.since(last));
}

/// Five sites of the victim's address are fast five times, and then drip: one after another, again and again.
#[test]
fn sites_that_are_fast_now_and_then_leave_an_address_to_others() {
    let pages = |attackers: usize| {
        let mut crowd = Crowd::new(1_024);
        crowd.offer("http://www.victim.test/0");
        (0..attackers).for_each(|n| crowd.offer(&format!("http://w{n}.att{n}.test/0")));
        let mut turns = HashMap::<String, usize>::new();
        let mut answer = |job: &FetchJob| match job.kind {
            JobKind::Resolve => resolved([192, 0, 2, 1]),
            _ if job.url.host().contains("victim") => chain(job, 50),
            _ => {
                let turns = turns.entry(job.url.host().to_owned()).or_default();
                *turns += 1;
                chain(job, if turns.is_multiple_of(6) { 59_000 } else { 50 })
            }
        };
        crowd.run(1_200_000, &mut answer);
        crowd.pages("victim")
    };
    let [alone, beside] = [0, 5].map(pages);
    assert!(beside * 2 >= alone, "{beside} of {alone}");
}

/// Newcomers of a site that drip get five seconds each.
#[test]
fn names_of_a_site_that_drip_do_not_take_its_time() {
    let mut crowd = Crowd::new(64);
    let mut answer = |job: &FetchJob| match (job.kind, job.url.host().starts_with('x')) {
        (JobKind::Resolve, is_x) => resolved([192, 0, 2 + u8::from(is_x), number(job.url.host())]),
        (JobKind::Page, true) => reply(status(200), 60_000),
        _ => chain(job, 50),
    };
    crowd.offer("http://www.victim.test/0");
    crowd.run(3_000, &mut answer);
    (0..8).for_each(|name| crowd.offer_of_strangers(&format!("http://x{name}.victim.test/")));
    crowd.run(140_000, &mut answer);
    let pages = crowd.pages("www.");
    assert!(pages >= 80, "{pages} of 140");
}

/// Anyone may link to any number of names of a site: dead ones, ones that a firewall drops, and ones that answer.
#[test]
fn names_of_a_site_do_not_take_its_time_from_its_hosts() {
    for (count, is_dead, least) in [(3, true, 95), (20, true, 95), (60, true, 95), (500, false, 105), (20, false, 105)]
    {
        let mut crowd = Crowd::new(64);
        let mut answer = |job: &FetchJob| match (job.kind, job.url.host().starts_with('x')) {
            (JobKind::Resolve, is_x) => resolved([192, 0, 2 + u8::from(is_x), number(job.url.host())]),
            (_, true) if is_dead => reply(Outcome::Failed(Failure::ConnectTimeout), 10_000),
            (kind, true) => reply(status(if kind == JobKind::Robots { 404 } else { 200 }), 50),
            _ => chain(job, 50),
        };
        crowd.offer("http://www.victim.test/0");
        crowd.run(3_000, &mut answer);
        let before = crowd.pages("www.");
        (0..count).for_each(|name| crowd.offer_of_strangers(&format!("http://x{name}.victim.test/")));
        crowd.run(140_000, &mut answer);
        let pages = crowd.pages("www.") - before;
        assert!(pages >= least, "{count} {is_dead}: {pages} of 140");
        let others = crowd.done.iter().filter(|(_, url, _)| url.contains("//x")).count();
        assert!(is_dead || others >= 20, "{others}");
    }
}

/// Most sites have a slow host next to a fast one, and that is no attack.
#[test]
fn a_slow_host_is_no_attack_on_the_others_of_its_site() {
    for (are_seeds, least) in [(true, 45), (false, 15)] {
        let mut crowd = Crowd::new(64);
        let mut answer = |job: &FetchJob| match (job.kind, job.url.host().starts_with("www.")) {
            (JobKind::Resolve, is_www) => resolved([192, 0, 2 + u8::from(is_www), 1]),
            (JobKind::Page, true) => {
                let Reply { links, .. } = chain(job, 50);
                Reply { links, ..reply(status(200), 2_500) }
            }
            _ => chain(job, 50),
        };
        for host in ["www", "docs"] {
            let url = format!("http://{host}.site.test/0");
            if are_seeds { crowd.offer(&url) } else { crowd.offer_of_strangers(&url) }
        }
        crowd.run(400_000, &mut answer);
        let [slow, fast] = ["www.", "docs."].map(|host| crowd.pages(host));
        assert!(slow >= least && fast >= 100, "{are_seeds}: {slow} slow, {fast} fast");
    }
}

/// A known host gets all the time that it needs, though others of its site wait; so does one that was cut short once.
#[test]
fn a_long_page_of_a_site_is_had() {
    for host in ["www", "other"] {
        let mut crowd = Crowd::new(64);
        let long = format!("http://{host}.site.test/long");
        let mut answer = |job: &FetchJob| match job.kind {
            JobKind::Resolve => resolved([192, 0, 2, number(job.url.host())]),
            JobKind::Page if job.url.path_and_query() == "/long" => reply(status(200), 8_000),
            JobKind::Page if job.url.path_and_query() == "/slow" => reply(status(200), 2_500),
            _ => chain(job, 50),
        };
        crowd.offer("http://docs0.site.test/slow");
        // So many that one of them always waits for the site's turn.
        (0..8).for_each(|host| crowd.offer(&format!("http://docs{host}.site.test/0")));
        crowd.offer("http://www.site.test/0");
        crowd.run(60_000, &mut answer);
        if host == "www" {
            crowd.offer(&long)
        } else {
            crowd.offer_of_strangers(&long)
        }
        crowd.run(300_000, &mut answer);
        let tries = crowd.done.iter().filter(|(_, url, _)| *url == long).count();
        assert_eq!((crowd.pages("/long"), tries), (1, if host == "www" { 1 } else { 2 }), "{host}");
    }
}

/// A host to which a seed's host links has the operator's trust, and may not add any number of names below its own.
#[test]
fn a_host_of_a_site_vouches_for_no_names_below_its_own() {
    for is_dead in [true, false] {
        let mut crowd = Crowd::new(64);
        let mut answer = |job: &FetchJob| match (job.kind, job.url.host().starts_with('x')) {
            (JobKind::Resolve, is_x) => resolved([192, 0, 2 + u8::from(is_x), number(job.url.host())]),
            (_, true) if is_dead => reply(Outcome::Failed(Failure::ConnectTimeout), 10_000),
            (JobKind::Page, true) => reply(status(200), 60_000),
            (JobKind::Page, false) if job.url.host().starts_with("evil") => Reply {
                links: (0..20).map(|name| format!("http://x{name}.evil.site.test/")).collect(),
                ..reply(status(200), 50)
            },
            _ => chain(job, 50),
        };
        ["www", "evil"].iter().for_each(|host| crowd.offer(&format!("http://{host}.site.test/0")));
        crowd.run(140_000, &mut answer);
        let pages = crowd.pages("www.");
        assert!(pages >= 95, "{is_dead}: {pages} of 140");
    }
}

/// If no host is known, slow ones do not hold the others up: also in the first half minute of a run.
#[test]
fn newcomers_rest_for_hosts_that_are_known_and_for_no_others() {
    let mut crowd = Crowd::new(64);
    let mut answer = |job: &FetchJob| match job.kind {
        JobKind::Resolve => resolved([192, 0, 2, number(job.url.host())]),
        JobKind::Page if job.url.host().starts_with("www") => {
            let Reply { links, .. } = chain(job, 50);
            Reply { links, ..reply(status(200), 2_500) }
        }
        _ => chain(job, 50),
    };
    ["www", "f1", "f2", "f3"].iter().for_each(|host| crowd.offer_of_strangers(&format!("http://{host}.site.test/0")));
    crowd.run(28_000, &mut answer);
    let [slow, fast] = ["www.", "f"].map(|host| crowd.pages(host));
    assert!(fast >= 25 && slow >= 3, "{slow} slow, {fast} fast");
}
