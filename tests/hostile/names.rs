//! Names that cost nothing: of one domain there are as many as anyone likes, and they may point anywhere.

use std::io::Write;
use std::net::Ipv4Addr;
use std::time::Duration;

use hickory_proto::op::Message;
use hickory_proto::rr::rdata::{A, CNAME};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use siphasher::sip::SipHasher13;
use std::hash::Hasher;

use super::arena::{AT_ONCE, Arena, VICTIM, VICTIM_PAGES, failures, html, nothing};
use crate::rig::names::{NameServer, Reply};

fn a(message: &mut Message, name: &Name, address: Ipv4Addr) {
    message.add_answer(Record::from_rdata(name.clone(), 60, RData::A(A(address))));
}

/// A name server where hosts have the address that `of` gives.
fn addresses(of: impl Fn(&str) -> Ipv4Addr + Send + 'static) -> NameServer {
    NameServer::start(move |question, message| {
        if question.query_type() == RecordType::A {
            let name = question.name().to_string();
            a(message, question.name(), of(name.trim_end_matches('.')));
        }
        Reply::Message
    })
}

/// Links to the start of so many hosts.
fn links<T: std::fmt::Display>(port: u16, hosts: impl Iterator<Item = T>) -> String {
    hosts.map(|host| format!("<a href='http://{host}:{port}/'>")).collect()
}

/// Thousands of names of one domain at the victim's address: turns there go round by site.
#[test]
fn names_at_somebody_s_address_do_not_take_its_turns() {
    const SHARED: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 77);
    let arena = Arena::start("shared-address", |host, port, path| match (host, path) {
        ("attacker.test", "/") => html(links(port, (0..2_000).map(|name| format!("n{name}.attacker.test")))),
        _ => nothing(),
    });
    let names = addresses(|name| if name == "attacker.test" { Ipv4Addr::LOCALHOST } else { SHARED });
    // The victim is never kept from its turn by its own delay.
    let more = "politeness.host_delay = \"10ms\"\npoliteness.site_delay = \"0s\"\npoliteness.ip_delay = \"10ms\"\n\
                politeness.response_factor = 0\npoliteness.slow_start = 1\n";
    let crawl = arena.crawl(&names, &["attacker.test"], more);
    let summary = arena.stop_after_the_victim(crawl);
    let (attacker, victim) = (arena.requests(".attacker.test"), arena.requests(VICTIM));
    assert!(attacker <= 2 * victim, "{attacker} requests of the attacker beside {victim}: {summary:#}");
}

/// Sites that share the victim's address and send a byte now and then: a fifth of its time is theirs.
#[test]
fn sites_that_drip_leave_an_address_to_others() {
    const SITES: usize = 3;
    let arena = Arena::serving("co-tenants", |stream, _, _, path| {
        if path == "/robots.txt" {
            let _ = stream.write_all(&nothing());
            return;
        }
        let links: String = (1..30).map(|page| format!("<a href=/{page}>")).collect();
        let mut alive = stream.write_all(&html(links)).is_ok();
        while alive {
            std::thread::sleep(Duration::from_millis(100));
            alive = stream.write_all(&[b'x'; 1_000]).is_ok();
        }
    });
    let names = NameServer::pointing_to(Ipv4Addr::LOCALHOST);
    let hosts: Vec<String> = (0..SITES).map(|number| format!("drips-{number}.test")).collect();
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let more = "politeness.host_delay = \"10ms\"\npoliteness.site_delay = \"0s\"\npoliteness.ip_delay = \"10ms\"\nfetch.deadline = \"3s\"\n\
                fetch.connect_timeout = \"3s\"\nfetch.tls_timeout = \"3s\"\nfetch.first_byte_timeout = \"3s\"\n";
    let summary = arena.stop_after_the_victim(arena.crawl(&names, &hosts, more));
    // A robots.txt, a page while they are not known, and one while the victim is between two requests.
    let asked: usize = hosts.iter().map(|host| arena.requests(host)).sum();
    assert!((SITES..=3 * SITES).contains(&asked), "{asked} requests: {summary:#}");
}

/// Addresses that fall together in a ledger without a secret, where requests last long.
#[test]
fn addresses_that_would_collide_do_not_take_turns_of_others() {
    const ATTACKERS: usize = 24;
    let bucket = |address: Ipv4Addr| {
        let mut hasher = SipHasher13::new_with_keys(0, 0);
        hasher.write_u64(u64::from(address.to_bits()));
        hasher.write_u64(1);
        hasher.finish() as usize & ((1 << 16) - 1)
    };
    let victim = Ipv4Addr::new(127, 0, 0, 77);
    let all = (u32::from(Ipv4Addr::new(127, 1, 0, 0))..).map(Ipv4Addr::from);
    let colliding: Vec<Ipv4Addr> = all.filter(|address| bucket(*address) == bucket(victim)).take(ATTACKERS).collect();
    assert!(colliding.iter().all(Ipv4Addr::is_loopback));
    let arena = Arena::serving("collision", |stream, _, _, _| {
        let mut rest = Vec::new();
        // It says nothing, and waits until it is hung up on.
        let _ = std::io::Read::read_to_end(stream, &mut rest);
    });
    let names =
        addresses(move |name| match name.strip_prefix('n').and_then(|name| name.split('.').next()?.parse().ok()) {
            Some(number) => *colliding.get::<usize>(number).unwrap_or(&Ipv4Addr::LOCALHOST),
            None => victim,
        });
    let hosts: Vec<String> = (0..ATTACKERS).map(|number| format!("n{number}.test")).collect();
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let more = "politeness.host_delay = \"5ms\"\npoliteness.site_delay = \"0s\"\npoliteness.ip_delay = \"5ms\"\nfetch.first_byte_timeout = \"60s\"\n";
    let mut crawl = arena.crawl(&names, &hosts, more);
    crawl.wait_until("the victim's pages", || arena.victim_pages() >= VICTIM_PAGES);
    crawl.signal("TERM");
    crawl.signal("TERM");
    let summary = arena.end(crawl);
    let over = ["first-byte-timeout", "robots-unreachable"].map(|name| summary["failures"][name].as_u64());
    assert_eq!(over, [Some(0); 2], "no attacker's request had ended: the victim did not wait for them");
    let waiting = (0..ATTACKERS).map(|number| arena.requests(&format!("n{number}.test"))).max();
    assert_eq!(waiting, Some(1), "no attacker's request had ended when the victim had all its pages");
}

/// A domain with names without end fills what there is room for; sites that are met late have their pages all the same.
#[test]
fn late_sites_find_room_beside_a_domain_without_end() {
    const LATE: usize = 20;
    const PAGES: usize = 5;
    const NAMES: usize = 3_000;
    for (what, more, pages_of_each) in
        [("hosts", "frontier.hosts_max = 1000\n", 1), ("URLs", "visited.urls_max = 4000\n", 3)]
    {
        let arena = Arena::start("late", move |host, port, path| match (host, path) {
            (_, "/robots.txt") => nothing(),
            ("attacker.test", "/") => {
                let names = (0..NAMES).map(|name| format!("n{name}.attacker.test"));
                html(links(port, names) + &links(port, (0..LATE).map(|late| format!("late{late}.test"))))
            }
            (late, "/") if late.starts_with("late") => {
                html((1..PAGES).map(|page| format!("<a href=/{page}>")).collect::<String>())
            }
            (name, "/") if name.starts_with('n') => {
                html((1..pages_of_each).map(|page| format!("<a href=/{page}>")).collect::<String>())
            }
            _ => html(""),
        });
        let names = NameServer::pointing_to(Ipv4Addr::LOCALHOST);
        let summary = arena.end(arena.crawl(&names, &["attacker.test"], &format!("{AT_ONCE}{more}")));
        let late: usize = (0..LATE).map(|late| arena.requests(&format!("late{late}.test"))).sum();
        assert_eq!(late, LATE * (PAGES + 1), "{what}: {summary:#}");
        let attacker = arena.requests(".attacker.test");
        assert!(attacker >= NAMES, "{what}: {attacker} requests of the attacker");
    }
}

/// What a name server may answer: names as long as they can be, chains of aliases, thousands of addresses.
#[test]
fn answers_as_long_as_they_can_be() {
    let label = "a".repeat(63);
    let longest = format!("{label}.{label}.{label}.{}.test", &label[..56]);
    assert_eq!(longest.len(), 253);
    let names = NameServer::start(|question, message| {
        if question.query_type() != RecordType::A {
            return Reply::Message;
        }
        let (name, text) = (question.name(), question.name().to_string());
        let alias = |at: usize| Name::from_ascii(format!("c{at}.alias.test.")).expect("a name");
        match text.split('.').next() {
            Some("many") => (0..1_000_u32).for_each(|at| a(message, name, Ipv4Addr::from(0x7f00_0001 + at))),
            Some("most") => (0..4_000_u32).for_each(|at| a(message, name, Ipv4Addr::from(0x7f00_0001 + at))),
            Some("chain") => {
                (0..20).for_each(|at| {
                    let from = if at == 0 { name.clone() } else { alias(at) };
                    message.add_answer(Record::from_rdata(from, 60, RData::CNAME(CNAME(alias(at + 1)))));
                });
                a(message, &alias(20), Ipv4Addr::LOCALHOST);
            }
            Some("circle") => {
                for (from, to) in [(name.clone(), alias(1)), (alias(1), name.clone())] {
                    message.add_answer(Record::from_rdata(from, 60, RData::CNAME(CNAME(to))));
                }
            }
            Some("endless") => {
                let next = Name::from_ascii(format!("endless.{}", text)).unwrap_or_else(|_| name.clone());
                message.add_answer(Record::from_rdata(name.clone(), 60, RData::CNAME(CNAME(next))));
            }
            _ => a(message, name, Ipv4Addr::LOCALHOST),
        }
        Reply::Message
    });
    let arena = Arena::start("long-answers", |_, _, path| if path == "/robots.txt" { nothing() } else { html("") });
    let hosts = ["many.test", "most.test", "chain.test", "circle.test", "endless.test", &longest];
    let summary = arena.end(arena.crawl(&names, &hosts, &format!("{AT_ONCE}dns.timeout = \"2s\"\n")));
    for host in ["many.test", "chain.test", &longest] {
        assert_eq!(arena.requests(host), 2, "{host}: {summary:#}");
    }
    assert_eq!(arena.requests("circle.test") + arena.requests("endless.test"), 0);
    // The circle, the alias without end, and more addresses than a message of the resolver's library holds.
    assert_eq!(failures(&summary) as usize + arena.requests("most.test") / 2, 3, "{summary:#}");
    assert!(names.asked() < 100, "{} questions", names.asked());
}

/// Others link to names below the victim's own that drip: each holds the site's turn for as long as it may.
#[test]
fn names_below_a_site_that_drip_leave_its_turns_to_its_hosts() {
    const NAMES: usize = 20;
    let arena = Arena::serving("names-below", |stream, host, port, path| {
        let below = (0..NAMES).map(|name| format!("n{name}.{VICTIM}"));
        match (host, path) {
            (_, "/robots.txt") => _ = stream.write_all(&nothing()),
            ("attacker.test", _) => _ = stream.write_all(&html(links(port, below))),
            _ => {
                let _ = stream.write_all(&html(""));
                while stream.write_all(b"x").is_ok() {
                    std::thread::sleep(Duration::from_secs(1));
                }
            }
        }
    });
    let names = addresses(|name| match name {
        VICTIM | "attacker.test" => Ipv4Addr::LOCALHOST,
        name => Ipv4Addr::new(127, 0, 2, name[1..name.find('.').unwrap_or(1)].parse().unwrap_or(0)),
    });
    let more = "politeness.host_delay = \"200ms\"\npoliteness.site_delay = \"200ms\"\npoliteness.ip_delay = \"0s\"\n\
                politeness.response_factor = 0\npoliteness.slow_start = 1\n";
    let crawl = arena.crawl(&names, &["attacker.test"], more);
    let summary = arena.stop_after_the_victim(crawl);
    // The first one is cut short after five seconds, and the rest after that is longer than the victim needs.
    let dripped = (0..NAMES).filter(|name| arena.hosts(&format!("n{name}.{VICTIM}")) > 0).count();
    assert!((1..=3).contains(&dripped), "{dripped} of {NAMES} names had turns: {summary:#}");
}
