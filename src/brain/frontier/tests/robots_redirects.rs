//! Redirected robots.txt: which rules hold, which host is queried and how often, within a shard and between two.

use super::super::robots::{RobotsAnswer, RobotsRequest, RobotsResult};
use super::*;
use ringcrawl_robots::Rules;

const CLOSED: &str = "User-agent: *\nDisallow: /\n";
const PRIVATE: &str = "User-agent: *\nDisallow: /private\n";

fn fast(config: &mut Config) {
    config.politeness.host_delay = Duration::ZERO;
    (config.politeness.site_delay, config.politeness.ip_delay) = (Duration::ZERO, Duration::ZERO);
}

fn asked_for(bed: &Bed, url: &str) -> usize {
    bed.jobs.iter().filter(|(_, job)| job.kind == JobKind::Robots && job.url.as_str() == url).count()
}

/// The rules at the end hold, whatever their path and site; the last host's own apply to itself.
#[test]
fn the_file_at_the_end_holds_and_no_other() {
    for hops in 1..8 {
        let mut bed = Bed::new(|_| ());
        for url in ["http://a.test/private", "http://a.test/open", "http://end.other/page"] {
            bed.offer(url);
        }
        bed.run(HOUR, 1_000, &mut |job| match (job.kind, job.url.host(), job.url.path_and_query()) {
            (JobKind::Robots, "a.test", _) if hops == 1 => moved("https://end.other/robots/a.txt"),
            (JobKind::Robots, "a.test", _) => moved("http://h2.site2/2"),
            (JobKind::Robots, "end.other", "/robots/a.txt") => robots(PRIVATE),
            (JobKind::Robots, "end.other", "/robots.txt") => robots("User-agent: *\nDisallow: /page"),
            (JobKind::Robots, host, "/robots.txt") if host != "a.test" => status(404),
            (JobKind::Robots, _, path) => {
                let hop: u32 = path[1..].parse().expect("a number");
                let next = format!("http://h{0}.site{0}/{0}", hop + 1);
                moved(if hop == hops { "https://end.other/robots/a.txt" } else { &next })
            }
            _ => well(job),
        });
        let mut pages = bed.pages();
        pages.sort_unstable();
        // More than five redirects: as if there were no robots.txt.
        let private = (hops > 5).then_some("http://a.test/private");
        let expected: Vec<&str> = ["http://a.test/open"].into_iter().chain(private).collect();
        assert_eq!(pages, expected, "{hops} redirects");
        assert_eq!(asked_for(&bed, "https://end.other/robots/a.txt"), usize::from(hops <= 5));
        assert!(bed.settled.iter().all(|settled| settled.failure == Failure::RobotsDenied));
        assert!(bed.frontier.is_idle());
    }
}

#[test]
fn one_file_for_many_hosts_is_fetched_once() {
    let mut bed = Bed::new(fast);
    let mut answer = |job: &FetchJob| match (job.kind, job.url.host()) {
        (JobKind::Robots, "shared.test") => robots(PRIVATE),
        (JobKind::Robots, _) => moved("https://shared.test/for-all.txt"),
        _ => well(job),
    };
    for number in 0..2_000 {
        bed.offer(&format!("http://h{number}.test/private"));
        bed.offer(&format!("http://h{number}.test/open"));
    }
    bed.run(HOUR, 100_000, &mut answer);
    assert_eq!((bed.count(JobKind::Page), bed.settled.len()), (2_000, 2_000));
    assert_eq!(asked_for(&bed, "https://shared.test/for-all.txt"), 1);
    // Two hosts that share rules share their memory.
    assert!(bed.frontier.robots.rules_bytes() < 2_000, "{} bytes", bed.frontier.robots.rules_bytes());
    bed.offer("http://late.test/private");
    bed.run(HOUR, 100, &mut answer);
    assert_eq!((bed.settled.len(), asked_for(&bed, "https://shared.test/for-all.txt")), (2_001, 1));
    // It holds as long as rules do.
    bed.now = bed.now + Duration::from_secs(25 * HOUR);
    bed.offer("http://later.test/private");
    bed.run(HOUR, 100, &mut answer);
    assert_eq!((bed.settled.len(), asked_for(&bed, "https://shared.test/for-all.txt")), (2_002, 2));
}

/// All hosts redirected to a host's own robots.txt, and that host, get it from one request.
#[test]
fn a_host_shares_its_own_robots_txt() {
    for own_first in [true, false] {
        let mut bed = Bed::new(|_| ());
        let (own, moved_one) = ("http://own.test/private", "http://moved.test/private");
        let mut answer = |job: &FetchJob| match (job.kind, job.url.host()) {
            (JobKind::Robots, "own.test") => robots(PRIVATE),
            (JobKind::Robots, _) => moved("http://own.test/robots.txt"),
            _ => well(job),
        };
        for url in if own_first { [own, moved_one] } else { [moved_one, own] } {
            bed.offer(url);
            bed.run(HOUR, 100, &mut answer);
        }
        assert_eq!((bed.settled.len(), bed.count(JobKind::Page)), (2, 0));
        assert_eq!(asked_for(&bed, "http://own.test/robots.txt"), 1, "own first: {own_first}");
    }
}

/// A host is queried for a file, forgotten, and found again: that file does not spare it its own Crawl-delay.
#[test]
fn a_crawl_delay_counts_from_requests_that_are_forgotten() {
    let mut bed = Bed::new(|config| {
        fast(config);
        config.frontier.hosts_max = 2;
    });
    let mut answer = |job: &FetchJob| match (job.kind, job.url.host()) {
        (JobKind::Robots, "own.test") => robots("User-agent: *\nDisallow: /private\nCrawl-delay: 10\n"),
        (JobKind::Robots, "moved.test") => moved("http://own.test/robots.txt"),
        _ => well(job),
    };
    // The last of the four is the file; then the other host takes its host's place, and gives it back.
    for (host, jobs) in [("moved.test", 4), ("other.test", 3), ("own.test", 1)] {
        bed.offer(&format!("http://{host}/"));
        bed.run(HOUR, jobs, &mut answer);
    }
    assert!(bed.now.since(Instant::ZERO) < Duration::from_secs(1) && bed.frontier.hosts() == 4);
    bed.run(HOUR, 10, &mut answer);
    assert_eq!(bed.count(JobKind::Page), 3);
    let of_own: Vec<Instant> = bed
        .jobs
        .iter()
        .filter(|(_, job)| job.addr.is_some() && job.url.host() == "own.test")
        .map(|(at, _)| *at)
        .collect();
    let gap = of_own.windows(2).last().map(|pair| pair[1].since(pair[0]));
    assert!(gap >= Some(Duration::from_secs(10)), "{gap:?}");
}

/// A host that was forgotten fetches its robots.txt again, in vain: what others got from there before allows nothing.
#[test]
fn what_came_last_holds() {
    let mut bed = Bed::new(|config| {
        fast(config);
        config.frontier.hosts_max = 1;
        config.robots.retries_max = 1;
    });
    let mut is_broken = false;
    for host in ["moved.test", "other.test", "own.test"] {
        bed.offer(&format!("http://{host}/"));
        bed.run(HOUR, 100, &mut |job| match (job.kind, job.url.host()) {
            (JobKind::Robots, "own.test") if is_broken => status(500),
            (JobKind::Robots, "own.test") => robots(PRIVATE),
            (JobKind::Robots, "moved.test") => moved("http://own.test/robots.txt"),
            _ => well(job),
        });
        is_broken = true;
    }
    assert_eq!(bed.pages(), ["http://moved.test/", "http://other.test/"]);
    assert_eq!(bed.settled.iter().map(|settled| settled.failure).collect::<Vec<_>>(), [Failure::RobotsServerError]);
}

#[test]
fn a_file_that_cannot_be_fetched_at_the_end_forbids() {
    let mut bed = Bed::new(|config| config.robots.retries_max = 2);
    bed.offer("http://a.test/");
    bed.offer("http://b.test/");
    bed.run(10 * HOUR, 1_000, &mut |job| match (job.kind, job.url.host()) {
        (JobKind::Robots, "end.test") if job.url.path_and_query() == "/file" => status(503),
        (JobKind::Robots, "a.test" | "b.test") => moved("http://end.test/file"),
        _ => well(job),
    });
    assert!(bed.frontier.is_idle());
    assert!(bed.settled.len() == 2 && bed.settled.iter().all(|it| it.failure == Failure::RobotsServerError));
    assert_eq!((bed.count(JobKind::Page), asked_for(&bed, "http://end.test/file")), (0, 3), "both by the same tries");
    // A hop that fails now and then is retried, and the chain before it is not.
    let mut bed = Bed::new(|config| config.robots.retries_max = 2);
    bed.offer("http://a.test/private");
    bed.offer("http://a.test/open");
    let mut tries = 0;
    bed.run(10 * HOUR, 1_000, &mut |job| match (job.kind, job.url.host()) {
        (JobKind::Robots, "end.test") if job.url.path_and_query() == "/robots.txt" => status(404),
        (JobKind::Robots, "end.test") => {
            tries += 1;
            if tries < 3 { status(500) } else { robots(PRIVATE) }
        }
        (JobKind::Robots, "a.test") => moved("http://end.test/file"),
        _ => well(job),
    });
    assert_eq!((bed.pages(), asked_for(&bed, "http://a.test/robots.txt")), (vec!["http://a.test/open"], 1));
}

/// A hundred hosts are redirected to as many files of one host: its own pages get twelve turns for each of these.
#[test]
fn no_host_is_starved_by_files_for_others() {
    let mut bed = Bed::new(|config| {
        (config.politeness.site_delay, config.politeness.ip_delay) = (Duration::ZERO, Duration::ZERO)
    });
    (0..300).for_each(|number| bed.offer(&format!("http://victim.test/{number}")));
    bed.run(5, 4, &mut well);
    (0..100).for_each(|number| bed.offer(&format!("http://h{number}.test/")));
    let before = bed.jobs.len();
    bed.run(24 * HOUR, 10_000, &mut |job| match (job.kind, job.url.host()) {
        (JobKind::Robots, "victim.test") => robots(PRIVATE),
        (JobKind::Robots, host) => moved(&format!("http://victim.test/for/{host}")),
        _ => well(job),
    });
    assert_eq!((bed.count(JobKind::Page), bed.settled.len()), (400, 0));
    let of_victim: Vec<&(Instant, FetchJob)> =
        bed.jobs[before..].iter().filter(|(_, job)| job.url.host() == "victim.test" && job.addr.is_some()).collect();
    assert!(of_victim.windows(2).all(|pair| pair[1].0.since(pair[0].0) >= Duration::from_secs(1)));
    let is_file = |at: usize| of_victim[at].1.kind == JobKind::Robots;
    let files = (0..of_victim.len()).filter(|at| is_file(*at)).count();
    assert_eq!(files, 100);
    let own_left = of_victim.iter().rposition(|(_, job)| job.kind == JobKind::Page).expect("pages");
    let while_pages_wait: Vec<usize> = (0..own_left).filter(|at| is_file(*at)).collect();
    assert!(while_pages_wait.windows(2).all(|pair| pair[1] - pair[0] == 13), "{while_pages_wait:?}");
}

/// Hosts that wait for hosts that are not in memory hold all the room.
#[test]
fn those_who_wait_make_room_for_those_they_wait_for() {
    let mut bed = Bed::new(|config| {
        fast(config);
        config.frontier.hosts_max = 8;
        config.robots.ram_bytes_max = 0;
    });
    (0..200).for_each(|number| bed.offer(&format!("http://h{number}.test/")));
    let mut most = 0;
    while !bed.frontier.is_idle() {
        let jobs = bed.jobs.len();
        bed.run(HOUR, 10, &mut |job| match (job.kind, job.url.host()) {
            (JobKind::Robots, host) if host.ends_with(".test") => moved(&format!("http://{host}.other/file")),
            (JobKind::Robots, _) => robots(PRIVATE),
            _ => well(job),
        });
        most = most.max(bed.frontier.hosts_in_memory());
        assert!(bed.jobs.len() > jobs || bed.frontier.is_idle(), "stuck");
    }
    assert_eq!((bed.count(JobKind::Page), bed.settled.len()), (200, 0));
    assert!(most <= 12, "{most} hosts");
}

/// Thousands of hosts are redirected to names without an answer; then a few to one that answers.
#[test]
fn those_sent_nowhere_hold_up_no_other() {
    for sites in [5, 6_000] {
        let mut bed = Bed::new(fast);
        let mut answer = |job: &FetchJob| match (job.kind, job.url.host()) {
            (JobKind::Resolve, host) if host.ends_with(".void") => Outcome::Failed(Failure::DnsTimeout),
            (JobKind::Robots, host) if host.ends_with(".other") => robots(PRIVATE),
            (JobKind::Robots, host) if host.starts_with('h') => moved(&format!("http://{host}.void/robots.txt")),
            (JobKind::Robots, host) => moved(&format!("http://{host}.other/robots.txt")),
            _ => well(job),
        };
        (0..6_000).for_each(|number| bed.offer(&format!("http://h{number}.evil{}.test/", number % sites)));
        bed.run(30, 100_000, &mut answer);
        for round in 0..3 {
            (0..20).for_each(|number| bed.offer(&format!("http://good{round}.site{number}.test/")));
            bed.run(5, 100_000, &mut answer);
            assert_eq!(bed.count(JobKind::Page), 20 * (round + 1), "{sites} sites");
        }
        // An origin that lost its slot asks again.
        bed.run(HOUR, 1_000_000, &mut |job| match (job.kind, job.url.host()) {
            (JobKind::Robots, host) if host.ends_with(".void") => robots(PRIVATE),
            (JobKind::Resolve, _) => well(job),
            _ => answer(job),
        });
        assert!(bed.frontier.is_idle(), "{sites} sites");
        assert_eq!(bed.count(JobKind::Page) + bed.settled.len(), 6_060, "{sites} sites");
        assert!(bed.settled.is_empty(), "{sites} sites: {}", bed.settled.len());
    }
}

/// Two shards with one clock; the messages between them are carried as bytes.
struct Pair {
    beds: [Bed; 2],
    /// Messages that will be lost.
    lose: usize,
}

impl Pair {
    fn new(change: impl Fn(&mut Config)) -> Pair {
        let partition = Partition::by_host(2);
        let bed = |shard| {
            let mut bed = Bed::new(&change);
            let mut config = Config::default();
            change(&mut config);
            bed.frontier =
                Frontier::new(Settings::new(&config, partition.clone(), shard, 7), Arc::new(Ledger::new(16)));
            bed
        };
        Pair { beds: [bed(0), bed(1)], lose: 0 }
    }

    /// A host of this shard.
    fn host(&self, shard: u16, name: &str) -> String {
        let partition = &self.beds[0].frontier.settings.partition;
        let names = (0..).map(|number| format!("{name}{number}.test"));
        names.into_iter().find(|name| partition.home_of(name) == shard).expect("a name")
    }

    fn run(&mut self, hours: u64, answer: &mut dyn FnMut(&FetchJob) -> Outcome) {
        let end = self.beds[0].now + Duration::from_secs(hours * HOUR);
        while self.beds[0].now < end && !self.beds.iter().all(|bed| bed.frontier.is_idle()) {
            for bed in &mut self.beds {
                bed.run(0, 1_000, answer);
            }
            let carried = self.carry();
            let now = self.beds.iter().map(|bed| bed.now).min().expect("two");
            let dues = self.beds.iter().filter_map(|bed| bed.frontier.next_due());
            let next = if carried { now } else { dues.min().unwrap_or(end) };
            self.beds.iter_mut().for_each(|bed| bed.now = next.max(now + Duration::from_millis(1)));
        }
    }

    fn carry(&mut self) -> bool {
        let mut carried = false;
        for from in 0..2_u16 {
            let [requests, answers] = {
                let Bed { frontier, now, .. } = &mut self.beds[usize::from(from)];
                let requests = frontier.robots.take_requests().into_iter();
                let answers = std::iter::from_fn(|| frontier.robots.next_answer(*now));
                [
                    requests.map(|(to, request)| (to, request.to_bytes())).collect::<Vec<_>>(),
                    answers.map(|(to, answer)| (to, answer.to_bytes())).collect(),
                ]
            };
            for (is_answer, (to, bytes)) in
                requests.into_iter().map(|it| (false, it)).chain(answers.into_iter().map(|it| (true, it)))
            {
                carried = true;
                if self.lose > 0 {
                    self.lose -= 1;
                    continue;
                }
                let bed = &mut self.beds[usize::from(to)];
                if is_answer {
                    bed.frontier.robots_answered(bed.now, RobotsAnswer::from_bytes(&bytes).expect("an answer"));
                } else {
                    let request = RobotsRequest::from_bytes(&bytes).expect("a request");
                    bed.frontier.robots_requested(bed.now, from, &request);
                }
            }
        }
        carried
    }
}

#[test]
fn another_shard_fetches_for_its_own_hosts() {
    // With 0, 1 or 2 lost messages: none, the request, or the answer to the second one, too.
    for lose in 0..3 {
        let mut pair = Pair::new(|config| {
            (config.politeness.site_delay, config.politeness.ip_delay) = (Duration::ZERO, Duration::ZERO)
        });
        pair.lose = lose;
        let end = pair.host(1, "end");
        for number in 0..50 {
            let host = pair.host(0, &format!("h{number}-"));
            pair.beds[0].offer(&format!("http://{host}/private"));
            pair.beds[0].offer(&format!("http://{host}/open"));
        }
        (0..10).for_each(|number| pair.beds[1].offer(&format!("http://{end}/{number}")));
        pair.run(HOUR, &mut |job| match (job.kind, job.url.path_and_query()) {
            (JobKind::Robots, "/robots.txt") if job.url.host() != end => moved(&format!("http://{end}/a/file")),
            (JobKind::Robots, "/a/file") => robots("User-agent: *\nDisallow: /private\nCrawl-delay: 3\n"),
            _ => well(job),
        });
        let [asking, owner] = &pair.beds;
        assert!(asking.frontier.is_idle() && owner.frontier.is_idle(), "{lose} messages were lost");
        assert_eq!((asking.count(JobKind::Page), asking.settled.len(), owner.count(JobKind::Page)), (50, 50, 10));
        // Only the shard that owns the host queries it, once, with its delay.
        assert!(asking.jobs.iter().all(|(_, job)| job.url.host() != end));
        assert_eq!(asked_for(owner, &format!("http://{end}/a/file")), 1);
        let requests: Vec<Instant> =
            owner.jobs.iter().filter(|(_, job)| job.addr.is_some()).map(|(at, _)| *at).collect();
        assert!(requests.windows(2).all(|pair| pair[1].since(pair[0]) >= Duration::from_secs(1)));
    }
}

#[test]
fn a_way_goes_back_and_forth_between_shards() {
    for (hops, pages) in [(5, 1), (6, 2)] {
        let mut pair = Pair::new(|_| ());
        let hosts: Vec<String> = (0..8).map(|hop| pair.host(hop % 2, &format!("h{hop}-"))).collect();
        for path in ["private", "open"] {
            pair.beds[0].offer(&format!("http://{}/{path}", hosts[0]));
        }
        pair.run(HOUR, &mut |job| {
            let hop = hosts.iter().position(|host| host == job.url.host()).expect("a host");
            match job.kind {
                JobKind::Robots if hop == hops => robots(PRIVATE),
                JobKind::Robots if hop > 0 && job.url.path_and_query() == "/robots.txt" => status(404),
                JobKind::Robots => moved(&format!("http://{}/file{}", hosts[hop + 1], hop + 1)),
                _ => well(job),
            }
        });
        assert_eq!((pair.beds[0].count(JobKind::Page), pair.beds[0].settled.len()), (pages, 2 - pages));
    }
}

#[test]
fn an_answer_without_a_question_is_ignored() {
    let mut pair = Pair::new(|_| ());
    let (ours, theirs) = (pair.host(0, "ours"), pair.host(1, "theirs"));
    let url = |host: &str| Url::parse(&format!("http://{host}/robots.txt")).expect("a URL");
    let bed = &mut pair.beds[0];
    let answer = |host: &str, rules: Rules| RobotsAnswer {
        url: url(host),
        result: RobotsResult::Rules(rules),
        holds: Duration::from_secs(HOUR),
    };
    for host in [&ours, &theirs] {
        bed.frontier.robots_answered(bed.now, answer(host, Rules::allow_all()));
    }
    bed.frontier.robots_requested(bed.now, 1, &RobotsRequest { url: url(&theirs) });
    assert!(bed.frontier.is_idle() && bed.frontier.hosts() == 0 && bed.frontier.robots.take_requests().is_empty());
    // Another shard cannot answer for our own file while we request it.
    bed.frontier.robots_requested(bed.now, 1, &RobotsRequest { url: url(&ours) });
    bed.frontier.robots_answered(bed.now, answer(&ours, Rules::allow_all()));
    assert!(!bed.frontier.robots.has_answers());
    bed.run(HOUR, 10, &mut |job| if job.kind == JobKind::Robots { robots(CLOSED) } else { well(job) });
    let answer = bed.frontier.robots.next_answer(bed.now).expect("an answer");
    let rules = Rules::parse(CLOSED.as_bytes(), "bed", 1 << 20);
    assert_eq!((answer.0, &answer.1.result), (1, &RobotsResult::Rules(rules)));
    assert!(!bed.frontier.robots.has_answers());
    assert!(bed.frontier.is_idle());
}
