//! Links to thousands of names whose name servers are silent, fail, or are late: hosts that are known go on at the addresses
//! that they had, and what other sites link to is found.
//!
//! Decides: names live for two seconds, so that all hosts' names run out again and again during the attack. A crawl without it and those
//! with it run at the same time, so that a busy machine slows them alike.

use std::net::Ipv4Addr;
use std::time::Duration;

use hickory_proto::op::ResponseCode;
use hickory_proto::rr::rdata::A;
use hickory_proto::rr::{RData, Record, RecordType};

use super::arena::{Arena, html, nothing};
use crate::rig::names::{NameServer, Reply};
use crate::rig::program::{Process, start};
use ringcrawl_base::TempFolder;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Attack {
    None,
    Silent,
    Fails,
    Late,
}

/// How large an attack is, and for how long.
#[derive(Clone, Copy)]
struct Size {
    known: usize,
    names: usize,
    shards: usize,
    begins: Duration,
    lasts: Duration,
    /// More configuration.
    more: &'static str,
}

const SMALL: Size = Size {
    known: 6,
    names: 1_000,
    shards: 1,
    begins: Duration::from_secs(5),
    lasts: Duration::from_secs(12),
    more: "dns.in_flight_max = 16\ndns.ttl_min = \"2s\"\npoliteness.host_delay = \"200ms\"\n",
};

/// As the attack was found: default settings, for the time to live and longer.
const LARGE: Size = Size {
    known: 20,
    names: 20_000,
    shards: 1,
    begins: Duration::from_secs(20),
    lasts: Duration::from_secs(180),
    more: "",
};

struct Trial {
    arena: Arena,
    _names: NameServer,
    _folder: TempFolder,
    crawl: Process,
}

impl Trial {
    fn start(attack: Attack, size: Size) -> Trial {
        let linked = if attack == Attack::None { 0 } else { size.names };
        // Every page has one behind it; the honest site's has a new host, too.
        let arena = Arena::start("silent-names", move |host, port, path| {
            let page: usize = path.trim_start_matches('/').parse().unwrap_or(0);
            let next = format!("<a href='/{}'>", page + 1);
            match (host, path) {
                (_, "/robots.txt") => nothing(),
                ("attacker.test", "/") => {
                    html((0..linked).map(|name| format!("<a href='http://n{name}.test:{port}/'>")).collect::<String>())
                }
                ("honest.test", _) => html(format!("{next}<a href='http://late{page}.test:{port}/'>")),
                (known, _) if known.starts_with("known") => html(next),
                _ => html(""),
            }
        });
        let names = NameServer::start(move |question, message| {
            let name = question.name().to_string();
            let is_attacked = name.starts_with('n');
            match attack {
                Attack::Silent if is_attacked => return Reply::Silence,
                Attack::Fails if is_attacked => {
                    message.metadata.response_code = ResponseCode::ServFail;
                    return Reply::Message;
                }
                _ => {}
            }
            if question.query_type() == RecordType::A {
                // Each host has an address of its own.
                let host = name.bytes().fold(7_u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
                let address = Ipv4Addr::from_bits(0x7f10_0000 | (host % 0xf_fff0 + 1));
                message.add_answer(Record::from_rdata(question.name().clone(), 2, RData::A(A(address))));
            }
            if attack == Attack::Late && is_attacked {
                Reply::Late(Duration::from_millis(4_900))
            } else {
                Reply::Message
            }
        });
        let folder = TempFolder::new("silent-names-crawl");
        let text = format!(
            "version = 1\ncrawl.shards = {}\ndns.servers = [\"{}\"]\npoliteness.site_delay = \"0s\"\npoliteness.ip_delay = \"0s\"\n\
             politeness.response_factor = 0\npoliteness.slow_start = 1\nfetch.private_addresses = \"loopback-only\"\n{}",
            size.shards, names.addr, size.more
        );
        let (config, dir) = (folder.file("config.toml", &text), folder.at("crawl"));
        let mut seeds: Vec<String> =
            (0..size.known).map(|known| arena.url(&format!("known{known}.test"), "/0")).collect();
        seeds.extend(["attacker.test", "honest.test"].map(|host| arena.url(host, "/")));
        let mut arguments = vec!["crawl", "--dir", &dir, "-c", &config, "--json", "-"];
        arguments.extend(seeds.iter().map(String::as_str));
        let crawl = start(&arguments);
        Trial { arena, _names: names, _folder: folder, crawl }
    }

    /// Requests to known hosts, and of new hosts that the honest site links to.
    fn counts(&self, size: Size) -> (usize, usize) {
        let known = (0..size.known).map(|known| self.arena.requests(&format!("known{known}.test"))).sum();
        (known, self.arena.hosts("late"))
    }
}

/// Runs the crawls beside each other; each has at least nine tenths of what the first one has.
fn compare(attacks: &[Attack], size: Size) {
    let mut trials: Vec<Trial> = attacks.iter().map(|attack| Trial::start(*attack, size)).collect();
    std::thread::sleep(size.begins);
    let before: Vec<(usize, usize)> = trials.iter().map(|trial| trial.counts(size)).collect();
    std::thread::sleep(size.lasts);
    let after = trials.iter().map(|trial| trial.counts(size));
    let had: Vec<(usize, usize)> =
        after.zip(before).map(|(after, before)| (after.0 - before.0, after.1 - before.1)).collect();
    for trial in &mut trials {
        trial.crawl.signal("TERM");
        trial.crawl.signal("TERM");
    }
    trials.into_iter().for_each(|trial| drop(trial.crawl.end().expect(0)));
    println!("{attacks:?}: {had:?} requests of known hosts, new hosts");
    let alone = had[0];
    assert!(alone.0 > size.known && alone.1 > 0, "{alone:?} without an attack");
    for (attack, had) in attacks.iter().zip(&had) {
        assert!(had.0 * 10 >= alone.0 * 9, "{attack:?}: {had:?} and {alone:?} without it");
        assert!(had.1 * 10 >= alone.1 * 8, "{attack:?}: {had:?} and {alone:?} without it");
    }
}

#[test]
fn names_that_nobody_answers_for_leave_known_hosts_their_rate() {
    compare(&[Attack::None, Attack::Silent, Attack::Fails, Attack::Late], SMALL);
}

#[test]
fn names_that_nobody_answers_for_leave_known_hosts_their_rate_on_two_shards() {
    compare(&[Attack::None, Attack::Silent, Attack::Late], Size { shards: 2, ..SMALL });
}

#[test]
#[ignore = "three minutes: twenty thousand names, default settings"]
fn twenty_thousand_names_that_nobody_answers_for() {
    for shards in [1, 2] {
        compare(&[Attack::None, Attack::Silent, Attack::Fails, Attack::Late], Size { shards, ..LARGE });
    }
}
