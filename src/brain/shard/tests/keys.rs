//! Redirects to another spelling of the same page.

use super::*;

/// Where a page is known by its key, a redirect to another address with this key is the only way to fetch it.
#[test]
fn a_page_that_redirects_within_its_key_is_had_once() {
    let name = names(0).next().unwrap_or_default();
    let url = |path: &str| Url::parse(&format!("http://{name}{path}")).expect("a URL");
    let addr = "192.0.2.1".parse().expect("an address");
    let by_key = |difference| {
        config(|config| {
            config.visited.index_pages = difference;
            config.dns.hosts.insert(name.clone(), vec![addr]);
            (config.politeness.host_delay, config.politeness.group_delay) = (Duration::ZERO, Duration::ZERO);
            (config.politeness.site_delay, config.politeness.ip_delay) = (Duration::ZERO, Duration::ZERO);
        })
    };
    let paths = ["/d/index.html", "/d/", "/d/index.php", "/d/index.html"];
    let mut first = Rig::new(by_key(Difference::Ignore), Logs::new());
    paths.iter().for_each(|path| first.seed(&url(path)));
    assert_eq!(first.counts(), (1, 1));
    let mut pages = Vec::new();
    for step in 0.. {
        let now = Instant::ZERO + Duration::from_millis(step);
        first.run(now);
        let Some(job) = first.fetches.pop() else { break };
        let end = match (job.kind, job.url.path_and_query()) {
            (JobKind::Page, "/d/index.html") => response(&job, 301, "Location: /d/\r\n", ""),
            (JobKind::Page, _) => response(&job, 200, "", "<a href='/d/index.php'>again</a>"),
            _ => response(&job, 404, "", ""),
        };
        if job.kind == JobKind::Page {
            pages.push(job.url.path_and_query().to_owned());
        }
        first.shard.handle(now, end);
    }
    assert_eq!(pages, ["/d/index.html", "/d/"], "what is fetched is what was found");
    first.enter(Phase::Close);
    let mut resumed = Rig::new(by_key(Difference::Ignore), first.logs.clone());
    assert_eq!(resumed.counts(), (0, 2));
    resumed.seed(&url("/d/index.php"));
    assert_eq!(resumed.counts(), (0, 2));
    let mut without = Rig::new(by_key(Difference::Count), Logs::new());
    paths.iter().for_each(|path| without.seed(&url(path)));
    assert_eq!(without.counts(), (3, 3));
    // Other rules after a restart: accepted URLs stay known and done ones stay done; links follow the new rules.
    without.enter(Phase::Close);
    let mut with = Rig::new(by_key(Difference::Ignore), without.logs);
    with.seed(&url("/d/default.asp"));
    assert_eq!(with.counts(), (3, 3));
    let mut without = Rig::new(by_key(Difference::Count), first.logs);
    assert_eq!(without.counts(), (0, 2));
    without.seed(&url("/d/index.php"));
    assert_eq!(without.counts(), (1, 3));
}

/// The same where the target finds no room: with room it is fetched, once.
#[test]
fn a_target_within_its_key_that_was_set_aside_comes_back_once() {
    let name = names(0).next().unwrap_or_default();
    let url = |path: &str| Url::parse(&format!("http://{name}{path}")).expect("a URL");
    let addr = "192.0.2.1".parse().expect("an address");
    let by_key = |urls_max| {
        config(|config| {
            config.visited.index_pages = Difference::Ignore;
            config.visited.urls_max = urls_max;
            config.dns.hosts.insert(name.clone(), vec![addr]);
            (config.politeness.host_delay, config.politeness.group_delay) = (Duration::ZERO, Duration::ZERO);
            (config.politeness.site_delay, config.politeness.ip_delay) = (Duration::ZERO, Duration::ZERO);
        })
    };
    let pages = |rig: &mut Rig| {
        let mut pages = Vec::new();
        for step in 0.. {
            let now = Instant::ZERO + Duration::from_millis(step);
            rig.run(now);
            let Some(job) = rig.fetches.pop() else { break };
            let end = match (job.kind, job.url.path_and_query()) {
                (JobKind::Page, "/d/index.html") => response(&job, 301, "Location: /d/\r\n", ""),
                (JobKind::Page, _) => response(&job, 200, "", ""),
                _ => response(&job, 404, "", ""),
            };
            if job.kind == JobKind::Page {
                pages.push(job.url.path_and_query().to_owned());
            }
            rig.shard.handle(now, end);
        }
        rig.enter(Phase::Close);
        pages
    };
    let mut full = Rig::new(by_key(2), Logs::new());
    full.seed(&url("/d/index.html"));
    assert_eq!(pages(&mut full), ["/d/index.html"]);
    let mut larger = Rig::new(by_key(100), full.logs);
    assert_eq!(pages(&mut larger), ["/d/"]);
    for _ in 0..2 {
        larger = Rig::new(by_key(100), larger.logs);
        assert_eq!(pages(&mut larger), [""; 0]);
    }
}
