//! Which URLs are accepted, which wait for room, and which links are counted.

use super::*;

/// A page whose links are dropped is reported, with the limit that they exceeded and their number. Of many pages only
/// the first ones are reported.
#[test]
fn dropped_links_are_told_with_page_key_and_number() {
    let host = names(0).next().unwrap_or_default();
    let settings = |config: &mut Config| {
        config.dns.hosts.insert(host.clone(), vec!["192.0.2.1".parse().expect("an address")]);
        config.links.page_links_max = 2;
    };
    let mut rig = Rig::new(config(settings), Logs::new());
    for page in 0..20 {
        rig.seed(&Url::parse(&format!("http://{host}/{page}")).expect("a URL"));
    }
    let body: String = (0..2_002).map(|link| format!("<a href=/x{link}>")).collect();
    let (mut now, mut pages) = (Instant::ZERO, 0);
    while pages < 20 && now < Instant::ZERO + Duration::from_secs(7_200) {
        now = now + Duration::from_secs(60);
        rig.run(now);
        let Some(job) = rig.fetches.pop() else { continue };
        pages += usize::from(job.kind == JobKind::Page);
        let status = if job.kind == JobKind::Page { 200 } else { 404 };
        rig.shard.handle(now, response(&job, status, "", &body));
    }
    rig.run(now);
    assert_eq!((pages, rig.notes.len()), (20, 16), "{:?}", rig.notes);
    let first = &rig.notes[0];
    assert_eq!(first, &format!("http://{host}/0: 2,000 links were dropped, beyond links.page_links_max"));
    assert!(
        rig.notes[15].starts_with(&format!("http://{host}/15: 2,000 ")) && rig.notes[15].ends_with("(outlinksDropped)")
    );
}

/// Links between sites are counted on the shard of the site that they lead to, even across restarts.
#[test]
fn linking_sites_are_counted_and_told() {
    let (mut own, mut others) = (names(0), names(1));
    let (mut own, other) = (|| own.next().unwrap_or_default(), others.next().unwrap_or_default());
    let (linking, linked) = (own(), own());
    let addr = "192.0.2.1".parse().expect("an address");
    let settings = |config: &mut Config| {
        config.dns.hosts.insert(linking.clone(), vec![addr]);
        config.scope.follow = ringcrawl_config::Follow::All;
    };
    let site = |name: &str| SiteKey::of_host(1, name);
    let mut rig = Rig::new(config(settings), Logs::new());
    rig.seed(&Url::parse(&format!("http://{linking}/")).expect("a URL"));
    let mut now = Instant::ZERO;
    let body = format!(
        "<a href=http://{linked}/1></a><a href=http://a.{linked}/2></a><a href=http://a.{linking}/></a><a href=http://{other}/></a>"
    );
    for _ in 0..10 {
        now = now + Duration::from_secs(60);
        rig.run(now);
        let Some(job) = rig.fetches.pop() else { continue };
        let status = if job.kind == JobKind::Page { 200 } else { 404 };
        rig.shard.handle(now, response(&job, status, "", &body));
    }
    assert_eq!([&linked, &linking].map(|name| rig.shard.frontier.order.link_quotas.of(site(name))), [(1, 0), (0, 1)]);
    // The same from the other shard, and its own.
    let links: Vec<SiteLink> = [&linking, &other, "x.test", "y.test"]
        .into_iter()
        .filter_map(|from| SiteLink::new(site(from), site(&linked)))
        .collect();
    let mut bytes = vec![0];
    links.iter().for_each(|link| link.put(&mut bytes));
    let header = Header { kind: MessageKind::SiteLinks, number: 1, acknowledged: 0, batch: 0, durable: 0 };
    rig.shard.handle(now, Input::Received { from: 1, bytes: header.with(&bytes) });
    assert_eq!(rig.shard.frontier.order.link_quotas.of(site(&linked)), (4, 0));
    // The other shard gets its own, once.
    let told = rig
        .sent
        .iter()
        .filter_map(|bytes| Header::read(bytes))
        .filter(|(header, _)| header.kind == MessageKind::SiteLinks);
    let told: Vec<SiteLink> = told
        .flat_map(|(_, content)| SiteLink::all_from_bytes(&content[1..]).expect("links").collect::<Vec<_>>())
        .collect();
    assert_eq!(told, SiteLink::new(site(&linking), site(&other)).into_iter().collect::<Vec<_>>());
    now = now + Duration::from_secs(60);
    rig.run(now);
    let mut logs = rig.logs;
    for _ in 0..2 {
        let mut next = Rig::new(config(settings), logs);
        assert_eq!(
            [&linked, &linking].map(|name| next.shard.frontier.order.link_quotas.of(site(name))),
            [(4, 0), (0, 1)]
        );
        next.enter(Phase::Close);
        logs = next.logs;
    }
    let bytes = logs[&LogFile::Ends].len();
    let mut off = Rig::new(config(|config| config.budget.site_pages_per_linking_site = 0), logs);
    assert_eq!(off.shard.frontier.order.link_quotas.of(site(&linked)), (0, 0));
    off.enter(Phase::Close);
    assert_eq!(off.logs[&LogFile::Ends].len(), bytes, "what is known is not written again");
}

/// A crawl with a full visited set, resumed repeatedly: no URL loses its place, and none is logged twice.
#[test]
fn what_was_accepted_stays_so_and_what_was_set_aside_is_noted_once() {
    let full = || config(|config| config.visited.urls_max = 20);
    let mut first = Rig::new(full(), Logs::new());
    let own: Vec<Url> = names(0).take(100).map(|name| Url::parse(&format!("http://{name}/")).expect("a URL")).collect();
    let texts: Vec<&str> = own.iter().map(Url::as_str).collect();
    first.receive(1, &texts);
    // Pages link to the same URLs again and again.
    first.receive(2, &texts);
    // Seeds are given to every run and need no log entry.
    own.iter().for_each(|url| first.seed(url));
    first.enter(Phase::Close);
    let noted = |rig: &Rig| {
        let entries: Vec<_> = read_urls(rig.log(LogFile::Urls)).collect();
        let sum = |count: fn(&crate::log::UrlEntries) -> usize| entries.iter().map(count).sum::<usize>();
        (sum(|entries| entries.accepted.len()), sum(|entries| entries.aside.len()))
    };
    assert_eq!(noted(&first), (10, own.len() - 10));
    let mut resumed = Rig::new(full(), first.logs.clone());
    assert_eq!(resumed.counts(), (10, 10));
    own.iter().for_each(|url| resumed.seed(url));
    resumed.enter(Phase::Close);
    assert_eq!(resumed.logs, first.logs);
    // With a lower limit than before, too.
    let mut smaller = Rig::new(config(|config| config.visited.urls_max = 4), first.logs.clone());
    assert_eq!(smaller.counts(), (10, 10));
    // With room, those that were set aside are accepted, and logged as accepted.
    let mut larger = Rig::new(config(|_| {}), first.logs);
    assert_eq!(larger.counts(), (100, 100));
    larger.enter(Phase::Close);
    assert_eq!(noted(&larger), (100, own.len() - 10));
}

/// A list of millions of seeds is not held twice: the disk gets those that were taken in before more are.
#[test]
fn seeds_are_taken_in_piece_by_piece() {
    let mut rig = Rig::new(config(|_| {}), Logs::new());
    let host = names(0).next().expect("a host");
    let seeds = (0..10_000).map(|path| Url::parse(&format!("http://{host}/{path}")).expect("a URL")).collect();
    rig.shard.handle(Instant::ZERO, Input::Command(Command::Seeds(seeds)));
    assert_eq!(rig.counts().1, 4_096);
    assert!(!rig.shard.report().quiet && rig.shard.next_due() == Some(Instant::ZERO));
    // A link to a later one, from a page or another shard, must not come before it.
    assert!(!rig.shard.accepts_messages());
    loop {
        match rig.shard.poll(Instant::ZERO) {
            Some(Effect::Disk(op)) => {
                let end = Input::Disk(rig.disk(op));
                rig.shard.handle(Instant::ZERO, end);
            }
            Some(Effect::Ask(_) | Effect::Fetch(_)) => break,
            Some(_) => {}
            None => assert_eq!(rig.shard.next_due(), Some(Instant::ZERO)),
        }
    }
    assert_eq!(rig.counts().1, 10_000);
    rig.run(Instant::ZERO);
    assert!(!rig.shard.report().quiet, "a page is fetched");
}

/// A run ends before it has taken in all its seeds, and another shard has found one of them: the next run has it as a
/// seed.
#[test]
fn a_seed_that_is_left_to_the_next_run_stays_a_seed() {
    let host = names(0).next().expect("a host");
    let seeds: Vec<Url> = (0..5_000).map(|path| Url::parse(&format!("http://{host}/{path}")).expect("a URL")).collect();
    let mut first = Rig::new(config(|_| {}), Logs::new());
    first.shard.handle(Instant::ZERO, Input::Command(Command::Seeds(seeds.clone())));
    first.shard.handle(Instant::ZERO, Input::Command(Command::Enter(Phase::Drain)));
    let mut batch = UrlBatch::new();
    let found = format!("http://{host}/found");
    [seeds[4_999].as_str(), &found].iter().for_each(|url| assert!(batch.push(3, url)));
    let header = Header { kind: MessageKind::Urls, number: 1, acknowledged: 0, batch: 1, durable: 0 };
    first.shard.handle(Instant::ZERO, Input::Received { from: 1, bytes: header.with(batch.as_bytes()) });
    first.enter(Phase::Close);
    let mut next = Rig::reading(config(|_| {}), first.logs);
    next.shard.handle(Instant::ZERO, Input::Command(Command::Seeds(seeds.clone())));
    next.run(Instant::ZERO);
    next.enter(Phase::Close);
    let entries: Vec<_> = read_urls(next.log(LogFile::Urls)).collect();
    let accepted = entries.iter().flat_map(|entries| entries.accepted.iter());
    let depths: BTreeMap<&str, u16> = accepted.map(|(depth, url)| (url, depth)).collect();
    assert_eq!(depths.len(), 5_001);
    assert_eq!((depths[seeds[4_999].as_str()], depths[found.as_str()]), (0, 3));
}

/// A crawl that is to end does not look at millions of URLs again that were set aside.
#[test]
fn what_was_set_aside_waits_where_the_run_is_to_end() {
    let mut first = Rig::new(config(|config| config.visited.urls_max = 20), Logs::new());
    let host = names(0).next().expect("a host");
    for number in 1..=50 {
        let urls: Vec<String> = (0..10).map(|path| format!("http://{host}/{number}/{path}")).collect();
        first.receive(number, &urls.iter().map(String::as_str).collect::<Vec<&str>>());
        first.run(Instant::ZERO);
    }
    first.enter(Phase::Close);
    for (phase, most) in [(Phase::Run, 500), (Phase::Drain, 10), (Phase::Abort, 10)] {
        let mut resumed = Rig::reading(config(|_| {}), first.logs.clone());
        resumed.enter(phase);
        // The logs are not read at all where the crawl is aborted before.
        assert!(resumed.counts().1 <= most && (phase > Phase::Run || resumed.counts().1 == most), "{phase:?}");
        resumed.enter(Phase::Close);
        assert_eq!(resumed.end, Some(Ok(())));
        // The next run has all of them.
        assert_eq!(Rig::new(config(|_| {}), resumed.logs).counts().1, 500);
    }
}

/// Sites that are assigned to shards as they are found: a full shard gets no more of them. What it has set aside is
/// its own when the crawl is resumed, even where no link crosses.
#[test]
fn a_full_shard_is_given_no_site_and_keeps_its_own() {
    let settled = |mode, urls_max, logs, waiting: [u64; 2]| {
        let dynamic = config(|config| {
            (config.partition.by, config.exchange.mode) = (PartitionBy::Dynamic, mode);
            config.visited.urls_max = urls_max;
        });
        let mut rig = Rig::reading(dynamic, logs);
        let owners = rig.partition.owners().expect("owners");
        owners.has_claimed();
        (0..2).for_each(|shard| owners.note_waiting(shard, waiting[shard]));
        rig.run(Instant::ZERO);
        rig
    };
    let mut full = settled(ExchangeMode::Exchange, 20, Logs::new(), [0, 1_000]);
    let all: Vec<String> = (0..11).map(|site| format!("http://s{site}.test/")).collect();
    full.receive(1, &all.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!((full.counts(), full.shard.stats().set_aside), ((10, 10), 1));
    let other = Url::parse("http://other.test/").expect("a URL");
    assert_eq!(full.partition.shard_of(&other), 1, "however much that has to do");
    full.enter(Phase::Close);
    // The other shard would get unclaimed sites.
    let mut next = settled(ExchangeMode::Firewall, 200, full.logs, [1_000, 0]);
    next.run(Instant::ZERO + Duration::from_secs(1));
    assert_eq!(next.counts(), (11, 11));
}

/// A site may use fifteen sixteenths of the room, even across a restart; the rest waits in the log, and other sites
/// get in.
#[test]
fn a_site_leaves_room_for_the_urls_of_others() {
    let bounded = || config(|config| config.visited.urls_max = 320);
    let mut first = Rig::new(bounded(), Logs::new());
    let (site, other) = (names(0).next().unwrap_or_default(), names(0).nth(1).unwrap_or_default());
    let own = |count: usize, name: &str| (0..count).map(|number| format!("http://{name}/{number}")).collect::<Vec<_>>();
    let receive = |rig: &mut Rig, number, urls: &[String]| {
        rig.receive(number, &urls.iter().map(String::as_str).collect::<Vec<_>>());
    };
    receive(&mut first, 1, &own(1_000, &site));
    assert_eq!(first.counts(), (150, 150), "of 160");
    let stats = first.shard.stats();
    assert_eq!((stats.set_aside, stats.over_share), (850, 850));
    first.enter(Phase::Close);
    let mut resumed = Rig::new(bounded(), first.logs.clone());
    assert_eq!(resumed.counts(), (150, 150));
    receive(&mut resumed, 1, &own(5, &other));
    assert_eq!(resumed.counts(), (155, 155), "others have room");
}
