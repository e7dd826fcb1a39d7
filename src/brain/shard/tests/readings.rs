//! Long responses, which are read in parallel with their shard.

use std::collections::{HashSet, VecDeque};

use super::*;
use crate::page::LongResponse;
use crate::scope::Rules;

/// A shard with `count` long responses that arrived, and the readings that it wants; its other effects are carried
/// out.
fn came(count: usize) -> (Rig, Vec<FetchJob>, Vec<LongResponse>) {
    came_with(|_| (), count, |job| response(job, 200, "", &"word ".repeat(20_000)))
}

fn came_with(
    change: impl FnOnce(&mut Config),
    count: usize,
    mut response_to: impl FnMut(&FetchJob) -> Input,
) -> (Rig, Vec<FetchJob>, Vec<LongResponse>) {
    let hosts: Vec<String> = names(0).take(count).collect();
    let mut config = config(|config| {
        config.fetch.short_bytes_max = 64 << 10;
        (config.politeness.site_delay, config.politeness.ip_delay) = (Duration::ZERO, Duration::ZERO);
        change(config);
    });
    for host in &hosts {
        config.dns.hosts.insert(host.clone(), vec!["192.0.2.1".parse().expect("an address")]);
    }
    let mut rig = Rig::new(config, Logs::new());
    for host in &hosts {
        rig.seed(&Url::parse(&format!("http://{host}/")).expect("a URL"));
    }
    rig.run(Instant::ZERO);
    for job in std::mem::take(&mut rig.fetches) {
        rig.shard.handle(Instant::ZERO, response(&job, 404, "", ""));
    }
    rig.run(LATER);
    let jobs = std::mem::take(&mut rig.fetches);
    assert_eq!(jobs.len(), count);
    for job in &jobs {
        let came = response_to(job);
        rig.shard.handle(LATER, came);
    }
    let begun = wanted(&mut rig);
    (rig, jobs, begun)
}

const LATER: Instant = Instant::from_nanos(60_000_000_000);

fn wanted(rig: &mut Rig) -> Vec<LongResponse> {
    let mut readings = Vec::new();
    while let Some(effect) = rig.shard.poll(LATER) {
        match effect {
            Effect::Read(reading) => readings.push(*reading),
            Effect::Train(training) => panic!("no test wants {training:?}"),
            Effect::Disk(op) => {
                let end = rig.disk(op);
                rig.shard.handle(LATER, Input::Disk(end));
            }
            Effect::Send(message) => rig.sent.push(message.bytes),
            Effect::Fetch(_) | Effect::CutShort(_) | Effect::Ask(_) | Effect::Note(_) | Effect::Warn(_) => {}
            Effect::End(result) => rig.end = Some(result),
        }
    }
    readings
}

fn read(rig: &mut Rig, reading: LongResponse) {
    let page = Box::new(reading).read(&mut CaptureWriter::new(Packing::default()).expect("a writer"));
    rig.shard.handle(LATER, Input::Read(Box::new(page)));
}

#[test]
fn two_are_begun_and_the_others_wait_with_what_they_hold() {
    let (mut rig, jobs, begun) = came(5);
    assert_eq!(begun.len(), 2);
    assert_eq!(jobs.iter().filter(|job| rig.shard.holds_back(job.id)).count(), 3);
    let mut begun = VecDeque::from(begun);
    let mut pages = 0;
    while let Some(reading) = begun.pop_front() {
        read(&mut rig, reading);
        pages += 1;
        assert_eq!(rig.shard.stats().pages, pages);
        begun.extend(wanted(&mut rig));
        assert!(begun.len() <= 2);
    }
    assert_eq!((pages, rig.shard.stats().in_flight), (5, 0));
    assert!(jobs.iter().all(|job| !rig.shard.holds_back(job.id)));
}

/// After a reload no link of it may be judged by the scope of before.
#[test]
fn what_was_read_by_another_scope_is_read_again() {
    let body = format!("<a href=/more>{}", "word ".repeat(20_000));
    let (mut rig, _, begun) = came_with(|_| (), 1, |job| response(job, 200, "", &body));
    let rules = Rules::parse("rules", b"allow\ndeny follow\n").expect("rules");
    rig.shard.handle(LATER, Input::Scope(Scope::default().with(Arc::new(rules), Arc::default())));
    begun.into_iter().for_each(|reading| read(&mut rig, reading));
    let again = wanted(&mut rig);
    assert_eq!((again.len(), rig.shard.stats().pages, rig.shard.stats().visited), (1, 0, 1));
    again.into_iter().for_each(|reading| read(&mut rig, reading));
    assert!(wanted(&mut rig).is_empty());
    let stats = rig.shard.stats();
    assert_eq!((stats.pages, stats.visited, stats.in_flight), (1, 1, 0), "its links are not taken");
}

/// A response as long as three segments fills the one that is open, while the next is being read for it.
#[test]
fn long_responses_are_read_once_however_short_segments_are() {
    const COUNT: usize = 6;
    for coding in [None, Some("zstd")] {
        let mut rng = ringcrawl_base::Rng::new(7);
        let content: String = (0..3 << 20).map(|_| char::from(b'!' + rng.below(64) as u8)).collect();
        let body = match coding {
            Some(_) => zstd::bulk::compress(content.as_bytes(), 1).expect("compresses"),
            None => content.into_bytes(),
        };
        let field = coding.map_or(String::new(), |coding| format!("Content-Encoding: {coding}\r\n"));
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{field}\r\n");
        let bytes = [head.as_bytes(), &body].concat();
        let response_to = |job: &FetchJob| {
            let limits = Config::default().fetch.limits();
            let transaction = Transaction { ip: job.addr, ..plain_transaction(&bytes, limits) };
            Input::Fetched { job: job.id, result: Ok(Box::new(transaction)) }
        };
        let change = |config: &mut Config| {
            config.store.segment_bytes_max = 1 << 20;
            config.store.duplicates = ringcrawl_config::RepeatedBodies::Store;
        };
        let (mut rig, _, begun) = came_with(change, COUNT, response_to);
        let (mut begun, mut readings) = (VecDeque::from(begun), 0);
        while let Some(reading) = begun.pop_front() {
            readings += 1;
            read(&mut rig, reading);
            begun.extend(wanted(&mut rig));
        }
        assert_eq!((rig.shard.stats().pages, readings), (COUNT as u64, COUNT), "{coding:?}");
        rig.enter(Phase::Close);
        assert!(rig.end == Some(Ok(())) && (COUNT / 2..=COUNT).contains(&rig.closed), "{} segments", rig.closed);
    }
}

#[test]
fn a_drain_does_not_wait_for_those_that_are_not_begun() {
    let (mut rig, jobs, begun) = came(5);
    rig.shard.handle(LATER, Input::Command(Command::Enter(Phase::Drain)));
    assert!(wanted(&mut rig).is_empty() && jobs.iter().all(|job| !rig.shard.holds_back(job.id)));
    assert_eq!(rig.shard.stats().in_flight, 2);
    begun.into_iter().for_each(|reading| read(&mut rig, reading));
    wanted(&mut rig);
    let stats = rig.shard.stats();
    assert_eq!((stats.pages, stats.in_flight, stats.queued), (2, 0, 3), "the rest is the next run's");
    assert!(rig.shard.report().quiet);
}

/// The next run keeps the pauses that they requested.
#[test]
fn what_a_drain_leaves_unread_is_no_less_polite() {
    let body = "word ".repeat(20_000);
    let (mut rig, jobs, begun) = came_with(|_| (), 5, |job| response(job, 503, "Retry-After: 3600\r\n", &body));
    rig.shard.handle(LATER, Input::Command(Command::Enter(Phase::Drain)));
    wanted(&mut rig);
    begun.into_iter().for_each(|reading| read(&mut rig, reading));
    rig.enter(Phase::Close);
    let asked = |after: Duration| {
        let config = config(|config| {
            (config.politeness.site_delay, config.politeness.ip_delay) = (Duration::ZERO, Duration::ZERO);
            config.politeness.slow_start = 5;
            for job in &jobs {
                let address = "192.0.2.1".parse().expect("an address");
                config.dns.hosts.insert(job.url.host().to_owned(), vec![address]);
            }
        });
        let mut next = Rig::new(config, rig.logs.clone());
        next.run(LATER + after);
        next.fetches.len()
    };
    assert_eq!((asked(Duration::from_secs(3_000)), asked(Duration::from_secs(4_000))), (0, jobs.len()));
}

/// Sites that send only responses that are expensive to read would hold all slots except for a turn now and then.
#[test]
fn sites_that_are_dear_to_read_leave_places_to_others() {
    const DEAR: usize = 100;
    const OTHERS: usize = 20;
    const PAGES: usize = 10;
    let mut config = config(|config| {
        config.fetch.in_flight_max = 64;
        config.fetch.short_bytes_max = 4 << 10;
        (config.politeness.site_delay, config.politeness.ip_delay) = (Duration::ZERO, Duration::ZERO);
    });
    let hosts: Vec<String> = names(0).take(DEAR + OTHERS).collect();
    for host in &hosts {
        config.dns.hosts.insert(host.clone(), vec!["192.0.2.1".parse().expect("an address")]);
    }
    let mut rig = Rig::new(config, Logs::new());
    for page in 0..PAGES {
        hosts.iter().for_each(|host| rig.seed(&Url::parse(&format!("http://{host}/{page}")).expect("a URL")));
    }
    let others: HashSet<&str> = hosts[DEAR..].iter().map(String::as_str).collect();
    let (mut had, mut readings) = (0, VecDeque::new());
    for minute in 0..80 {
        let now = LATER + Duration::from_secs(60 * minute);
        while let Some(effect) = rig.shard.poll(now) {
            let input = match effect {
                Effect::Fetch(job) if job.kind == JobKind::Robots => response(&job, 404, "", ""),
                Effect::Fetch(job) if others.contains(job.url.host()) => {
                    had += 1;
                    response(&job, 200, "", "short")
                }
                Effect::Fetch(job) => response(&job, 200, "", &"word ".repeat(1_000)),
                Effect::Disk(op) => Input::Disk(rig.disk(op)),
                Effect::Read(reading) => {
                    readings.push_back(reading);
                    continue;
                }
                _ => continue,
            };
            rig.shard.handle(now, input);
        }
        if let Some(reading) = readings.pop_front() {
            let page = reading.read(&mut CaptureWriter::new(Packing::default()).expect("a writer"));
            rig.shard.handle(now, Input::Read(Box::new(page)));
        }
    }
    assert_eq!(had, OTHERS * PAGES, "pages of others, of {:?}", rig.shard.stats());
}

/// The claims of a request end with it, and their delays count from its end, however long the response waits to be
/// read.
#[test]
fn a_response_that_waits_keeps_no_turn_and_loses_no_delay() {
    let site = names(0).next().expect("a site");
    let hosts = ["a", "b"].map(|name| format!("{name}.{site}"));
    let mut rig = Rig::new(
        config(|config| {
            for host in &hosts {
                config.dns.hosts.insert(host.clone(), vec!["192.0.2.1".parse().expect("an address")]);
            }
            config.politeness.site_delay = Duration::from_secs(600);
            config.fetch.short_bytes_max = 100;
        }),
        Logs::new(),
    );
    hosts.iter().for_each(|host| rig.seed(&Url::parse(&format!("http://{host}/")).expect("a URL")));
    let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
    rig.run(at(0));
    let robots = rig.fetches.pop().expect("a robots.txt");
    assert_eq!(rig.fetches.len(), 0, "one at a time");
    rig.shard.handle(at(1), response(&robots, 200, "", &"# long\n".repeat(100)));
    let mut waiting = Vec::new();
    let next = (1..2_000).find(|second| {
        while let Some(effect) = rig.shard.poll(at(*second)) {
            match effect {
                Effect::Fetch(_) => return true,
                Effect::Read(reading) => waiting.push(reading),
                Effect::Disk(op) => {
                    let end = rig.disk(op);
                    rig.shard.handle(at(*second), Input::Disk(end));
                }
                _ => {}
            }
        }
        if let Some(reading) = waiting.pop_if(|_| *second > 300) {
            let page = reading.read(&mut CaptureWriter::new(Packing::default()).expect("a writer"));
            rig.shard.handle(at(*second), Input::Read(Box::new(page)));
        }
        false
    });
    assert!(next.is_some_and(|next| (601..=603).contains(&next)), "{next:?}");
}

/// The time that a host took ends with its response: neither its delay nor the earliest start of the next request
/// counts how long that response waited for us.
#[test]
fn the_time_that_a_response_waits_for_us_is_not_its_hosts() {
    let host = names(0).next().expect("a host");
    let mut rig = Rig::new(
        config(|config| {
            config.dns.hosts.insert(host.clone(), vec!["192.0.2.1".parse().expect("an address")]);
            config.fetch.short_bytes_max = 100;
            config.politeness.host_delay = Duration::from_secs(5);
        }),
        Logs::new(),
    );
    (0..3).for_each(|page| rig.seed(&Url::parse(&format!("http://{host}/{page}")).expect("a URL")));
    let (mut began, mut waiting) = (Vec::new(), VecDeque::new());
    for second in 0..200 {
        let now = Instant::ZERO + Duration::from_secs(second);
        while let Some(effect) = rig.shard.poll(now) {
            let input = match effect {
                Effect::Fetch(job) if job.kind == JobKind::Robots => response(&job, 404, "", ""),
                Effect::Fetch(job) => {
                    began.push(second);
                    response(&job, 200, "", &"word ".repeat(100))
                }
                Effect::Disk(op) => Input::Disk(rig.disk(op)),
                Effect::Read(reading) => {
                    waiting.push_back((second + 27, reading));
                    continue;
                }
                _ => continue,
            };
            rig.shard.handle(now, input);
        }
        if let Some((_, reading)) = waiting.pop_front_if(|(at, _)| *at <= second) {
            let page = reading.read(&mut CaptureWriter::new(Packing::default()).expect("a writer"));
            rig.shard.handle(now, Input::Read(Box::new(page)));
        }
    }
    let gaps: Vec<u64> = began.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(began.len() == 3 && gaps.iter().all(|gap| (27..=28).contains(gap)), "{began:?}");
}

/// Thirty sites whose pages take half a second to read would delay those of others by a quarter of a minute each.
#[test]
fn pages_that_are_soon_read_pass_those_of_sites_that_had_much_time() {
    const DEAR: usize = 30;
    const OTHERS: usize = 20;
    let hosts: Vec<String> = names(0).take(DEAR + OTHERS).collect();
    let mut rig = Rig::new(
        config(|config| {
            config.fetch.short_bytes_max = 4 << 10;
            (config.politeness.site_delay, config.politeness.ip_delay) = (Duration::ZERO, Duration::ZERO);
            for host in &hosts {
                config.dns.hosts.insert(host.clone(), vec!["192.0.2.1".parse().expect("an address")]);
            }
        }),
        Logs::new(),
    );
    for page in 0..20 {
        hosts.iter().for_each(|host| rig.seed(&Url::parse(&format!("http://{host}/{page}")).expect("a URL")));
    }
    let is_dear = |url: &Url| hosts[..DEAR].iter().any(|host| host == url.host());
    let (mut given, mut came, mut had, mut waits) = (VecDeque::new(), BTreeMap::new(), [0; 2], Vec::new());
    let mut busy_until = Instant::ZERO;
    for step in 0..12_000 {
        let now = LATER + Duration::from_millis(10 * step);
        while let Some(effect) = rig.shard.poll(now) {
            let input = match effect {
                Effect::Fetch(job) if job.kind == JobKind::Robots => response(&job, 404, "", ""),
                Effect::Fetch(job) => {
                    came.insert(job.id, now);
                    response(&job, 200, "", &"word ".repeat(1_000))
                }
                Effect::Disk(op) => Input::Disk(rig.disk(op)),
                Effect::Read(reading) => {
                    let lasts = Duration::from_millis(if is_dear(&reading.job().url) { 500 } else { 10 });
                    busy_until = busy_until.max(now) + lasts;
                    given.push_back((busy_until, reading));
                    continue;
                }
                _ => continue,
            };
            rig.shard.handle(now, input);
        }
        while let Some((_, reading)) = given.pop_front_if(|(at, _)| *at <= now) {
            let (is_dear, wait) = (is_dear(&reading.job().url), now.since(came[&reading.job().id]));
            had[usize::from(is_dear)] += 1;
            (!is_dear).then(|| waits.push(wait));
            let page = reading.read(&mut CaptureWriter::new(Packing::default()).expect("a writer"));
            rig.shard.handle(now, Input::Read(Box::new(page)));
        }
    }
    let late = waits.iter().skip(OTHERS).filter(|wait| **wait > Duration::from_secs(2)).count();
    assert!(had[0] == OTHERS * 20 && had[1] > 150 && late == 0, "{had:?}, {late} late, {:?}", waits.iter().max());
}
