//! Links to closed ports of somebody's host, which anyone can put into a page: the host's own pages are had all the same.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::rig::program::run;
use crate::rig::servers::{ClosedPort, read_request, respond, server};
use ringcrawl_base::TempFolder;

const PAGES: usize = 60;

/// Pages that the victim was asked for beside links to so many of its closed ports, how long that took, and the failures.
fn asked_beside(closed: usize) -> (usize, Duration, serde_json::Value) {
    let held: Vec<ClosedPort> = (0..closed).map(|_| ClosedPort::new()).collect();
    let ports: Vec<u16> = held.iter().map(|port| port.addr().port()).collect();
    let times = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&times);
    let (addr, _) = server(move |mut stream, _| {
        while let Some(request) = read_request(&mut stream) {
            let path = request.split_whitespace().nth(1).unwrap_or_default().to_owned();
            let is_victim = request.contains("victim.test");
            let links: String = match path.as_str() {
                "/robots.txt" => String::new(),
                "/" if is_victim => (0..PAGES).map(|page| format!("<a href='/{page}'>{page}</a>")).collect(),
                "/" => {
                    let link = |port: &u16| {
                        format!("<a href='http://victim.test:{port}/'>a</a>")
                            + &format!("<a href='http://victim.test:{port}/b'>b</a>")
                    };
                    ports.iter().map(link).collect()
                }
                _ => {
                    noted.lock().expect("times").push(Instant::now());
                    String::new()
                }
            };
            respond(&mut stream, &links);
        }
    });
    let folder = TempFolder::new("closed-ports");
    let text = "politeness.host_delay = \"50ms\"\npoliteness.site_delay = \"0s\"\npoliteness.ip_delay = \"0s\"\npoliteness.retry_delay = \"500ms\"\n\
        politeness.host_failures_max = 4\nrobots.retry_delay = \"1s\"\nrobots.retries_max = 2\n\
        fetch.private_addresses = \"loopback-only\"\n[dns.hosts]\n\
        \"victim.test\" = [\"127.0.0.1\"]\n\"attacker.test\" = [\"127.0.0.1\"]\n";
    let (dir, config) = (folder.at("crawl"), folder.file("config.toml", text));
    let seed = |host: &str| format!("http://{host}.test:{}/", addr.port());
    let (attacker, victim) = (seed("attacker"), seed("victim"));
    let order = ["crawl", &attacker, &victim, "--dir", &dir, "-c", &config, "--shards", "1", "--json", "-"];
    let summary = run(&order).expect(0).json();
    let times = times.lock().expect("times");
    let took = times.last().zip(times.first()).map(|(last, first)| *last - *first);
    (times.len(), took.unwrap_or_default(), summary["failures"].clone())
}

#[test]
fn closed_ports_of_a_host_do_not_cost_it_its_pages() {
    let (alone, took_alone, _) = asked_beside(0);
    let (beside, took_beside, failures) = asked_beside(4);
    println!("{alone} pages in {took_alone:?} alone, {beside} in {took_beside:?} beside 4 closed ports: {failures}");
    assert_eq!((alone, beside), (PAGES, PAGES));
    // Every link to a closed port came to its end.
    let failed: u64 = failures.as_object().into_iter().flat_map(|all| all.values()).filter_map(|it| it.as_u64()).sum();
    assert_eq!(failed, 8, "{failures}");
}
