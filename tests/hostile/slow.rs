//! Servers that take their time, and redirects that lead in a circle over sites.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Mutex;
use std::time::Duration;

use super::arena::{AT_ONCE, Arena, VICTIM_PAGES, html, nothing, number};
use crate::rig::names::NameServer;

/// Hosts that send a byte now and then hold places in flight; each is cut when it has been too slow.
#[test]
fn hosts_that_drip_are_cut() {
    const HOSTS: usize = 60;
    let arena = Arena::serving("drip", |stream, _, _, path| {
        if path == "/robots.txt" {
            let _ = stream.write_all(&nothing());
            return;
        }
        let mut alive = stream.write_all(&html("<p>")).is_ok();
        while alive {
            std::thread::sleep(Duration::from_millis(50));
            alive = stream.write_all(b"x").is_ok();
        }
    });
    let names = NameServer::pointing_to([127, 0, 0, 1].into());
    let hosts: Vec<String> = (0..HOSTS).map(|number| format!("n{number}.test")).collect();
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    // Where nobody else answers, a body that was cut might be an outage's fault: it would be held for a minute.
    let more = format!(
        "{AT_ONCE}fetch.in_flight_max = 32\nfetch.rate_grace = \"1s\"\noutage.hold_max = \"8s\"\ndns.timeout = \"2s\"\n"
    );
    let summary = arena.end(arena.crawl(&names, &hosts, &more));
    assert_eq!(number(&summary, "/blemishes/body-slow"), HOSTS as u64, "{summary:#}");
}

/// Sites that answer at once until they are known for it, and then hold every place for as long as they may.
#[test]
fn places_come_back_from_sites_that_were_fast() {
    const SITES: usize = 40;
    const HONEST: usize = 20;
    let seen: Mutex<BTreeMap<String, usize>> = Mutex::default();
    let arena = Arena::serving("turncoats", move |stream, host, _, path| {
        if path == "/robots.txt" {
            let _ = stream.write_all(&nothing());
            return;
        }
        let fast = {
            let mut seen = seen.lock().expect("a count");
            let pages = seen.entry(host.to_owned()).or_default();
            *pages += 1;
            *pages <= 3 || host.starts_with("honest")
        };
        let links: String = (1..30).map(|page| format!("<a href=/{page}>")).collect();
        let mut alive = stream.write_all(&html(links)).is_ok() && !fast;
        while alive {
            std::thread::sleep(Duration::from_millis(500));
            alive = stream.write_all(&[b'x'; 1_000]).is_ok();
        }
    });
    let names = NameServer::pointing_to([127, 0, 0, 1].into());
    // Were nobody honest, it would look like an outage.
    let honest = (0..HONEST).map(|number| format!("honest-{number}.test"));
    let hosts: Vec<String> = (0..SITES).map(|number| format!("turncoat-{number}.test")).chain(honest).collect();
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    // The victim needs eight seconds: in the first of them the others are fast.
    let more = "politeness.host_delay = \"200ms\"\npoliteness.site_delay = \"0s\"\npoliteness.ip_delay = \"0s\"\nfetch.in_flight_max = 32\n\
                fetch.deadline = \"10m\"\nfetch.first_byte_timeout = \"10m\"\n";
    let mut crawl = arena.crawl(&names, &hosts, more);
    crawl.wait_until("the victim's pages", || arena.victim_pages() >= VICTIM_PAGES);
    crawl.signal("TERM");
    // Two signals that come together are one.
    crawl.wait_for("draining");
    crawl.signal("TERM");
    let summary = arena.end(crawl);
    let asked: usize = (0..SITES).map(|number| arena.requests(&format!("turncoat-{number}.test"))).sum();
    assert!(asked > SITES * 4, "they have not begun, {asked} requests: {summary:#}");
}

/// Each hop leads to another site and to a URL that nobody has seen.
#[test]
fn redirects_over_sites_end() {
    const SITES: usize = 50;
    const STARTS: usize = 10;
    let arena = Arena::start("ring", |host, port, path| match (host, path) {
        (_, "/robots.txt") => nothing(),
        ("attacker.test", "/") => html(
            (0..STARTS).map(|start| format!("<a href='http://n{start}.test:{port}/{start}-'>")).collect::<String>(),
        ),
        (host, path) => {
            let site = host.trim_start_matches('n').split('.').next().and_then(|site| site.parse().ok()).unwrap_or(0);
            let next = format!("http://n{}.test:{port}{path}x", (site + 1) % SITES);
            format!("HTTP/1.1 302 On\r\nLocation: {next}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
                .into_bytes()
        }
    });
    let names = NameServer::pointing_to([127, 0, 0, 1].into());
    let summary = arena.end(arena.crawl(&names, &["attacker.test"], AT_ONCE));
    assert_eq!(number(&summary, "/redirects_too_many"), STARTS as u64, "{summary:#}");
    let asked = arena.requests("");
    assert!(asked < STARTS * 21 + 200, "{asked} requests");
}
