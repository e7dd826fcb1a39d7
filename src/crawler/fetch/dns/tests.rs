//! Lookups and queries together, against real name servers on loopback: silent ones, refusing ones, lying ones.

mod spoilt_answers;

use std::net::{SocketAddr, UdpSocket};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hickory_resolver::proto::op::Message;
use hickory_resolver::proto::rr::{Record, rdata};

use super::Resolver;
use super::*;
use crate::fetch::Hands;
use ringcrawl_base::Failure;
use ringcrawl_brain::outcome::Outcome;
use ringcrawl_config::{Config, Families};
use ringcrawl_ring::Runtime;

/// A resolver of `dns`, with hands of its own.
fn resolver(dns: &Dns, shards: u16) -> Rc<Resolver> {
    let config = Config { dns: dns.clone(), ..Config::default() };
    let hands = Rc::new(Hands::new(&config, "test/1".to_owned()).expect("hands"));
    Rc::new(Resolver::new(&config, hands, shards))
}

/// A name server that answers with the result of `answer` for the question, or not at all.
fn server(
    mut answer: impl FnMut(Message, &str, RecordType) -> Option<Vec<u8>> + Send + 'static,
) -> (SocketAddr, Arc<AtomicUsize>) {
    server_of_queries(move |query| {
        let question = query.queries.first().cloned()?;
        let name = question.name().to_ascii();
        answer(query.into_response(), &name, question.query_type())
    })
}

/// A name server that answers with the result of `answer` for the query, or not at all.
fn server_of_queries(
    mut answer: impl FnMut(Message) -> Option<Vec<u8>> + Send + 'static,
) -> (SocketAddr, Arc<AtomicUsize>) {
    let socket = UdpSocket::bind(("127.0.0.1", 0)).expect("bind");
    let addr = socket.local_addr().expect("address");
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    std::thread::spawn(move || {
        let mut packet = [0; 4_096];
        while let Ok((length, peer)) = socket.recv_from(&mut packet) {
            counter.fetch_add(1, Ordering::SeqCst);
            let Ok(query) = Message::from_vec(&packet[..length]) else { continue };
            if let Some(bytes) = answer(query) {
                let _ = socket.send_to(&bytes, peer);
            }
        }
    });
    (addr, count)
}

fn bytes(message: &Message) -> Option<Vec<u8>> {
    Some(message.to_vec().expect("encode"))
}

fn with_code(mut message: Message, code: ResponseCode) -> Option<Vec<u8>> {
    message.metadata.response_code = code;
    bytes(&message)
}

fn name(text: &str) -> Name {
    Name::from_ascii(text).expect("a name")
}

fn four(of: &str, ttl: u32, last: u8) -> Record {
    Record::from_rdata(name(of), ttl, RData::A(rdata::A::new(192, 0, 2, last)))
}

fn six(of: &str, ttl: u32, last: u16) -> Record {
    Record::from_rdata(name(of), ttl, RData::AAAA(rdata::AAAA::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last)))
}

/// How long a denial is valid: the lesser of the record's time and its last field (RFC 2308 section 5).
fn soa(ttl: u32, minimum: u32) -> Record {
    let soa = rdata::SOA::new(name("ns.test."), name("root.test."), 1, 3_600, 600, 86_400, minimum);
    Record::from_rdata(name("test."), ttl, RData::SOA(soa))
}

fn config(servers: &[SocketAddr], change: impl FnOnce(&mut Dns)) -> Dns {
    let mut dns = Dns { servers: servers.to_vec(), timeout: Duration::from_secs(2), ..Dns::default() };
    change(&mut dns);
    dns
}

fn run<F: Future<Output = ()>>(dns: &Dns, test: impl FnOnce(Rc<Resolver>) -> F) {
    let runtime = Runtime::new(64).expect("io_uring");
    runtime.block_on(async { test(resolver(dns, 1)).await });
}

fn resolved(addrs: &[&str], seconds: u64) -> Outcome {
    let addrs = addrs.iter().map(|addr| addr.parse().expect("address")).collect();
    Outcome::Resolved { addrs, ttl: Duration::from_secs(seconds), is_half: false, alias: None }
}

/// Addresses of one family, where no server answered for the other one.
fn half(addrs: &[&str], seconds: u64) -> Outcome {
    match resolved(addrs, seconds) {
        Outcome::Resolved { addrs, ttl, .. } => Outcome::Resolved { addrs, ttl, is_half: true, alias: None },
        outcome => outcome,
    }
}

/// The outcome with its time in whole seconds: an answer ages while the other family is queried.
fn in_seconds(outcome: Outcome) -> Outcome {
    let whole = |ttl: Duration| Duration::from_secs(ttl.as_secs_f64().round() as u64);
    match outcome {
        Outcome::Resolved { addrs, ttl, is_half, alias } => {
            Outcome::Resolved { addrs, ttl: whole(ttl), is_half, alias }
        }
        Outcome::NoAddress { ttl } => Outcome::NoAddress { ttl: whole(ttl) },
        other => other,
    }
}

fn no_address(seconds: u64) -> Outcome {
    Outcome::NoAddress { ttl: Duration::from_secs(seconds) }
}

#[test]
fn servers_that_fail_are_passed_by() {
    let (silent, asked_silent) = server(|_, _, _| None);
    let (refusing, asked_refusing) = server(|message, _, _| with_code(message, ResponseCode::Refused));
    let (well, asked_well) = server(|mut message, of, _| bytes(message.add_answer(four(of, 300, 1))));
    run(&config(&[silent, refusing, well], |dns| dns.timeout = Duration::from_millis(800)), |resolver| async move {
        for number in 0..40 {
            let outcome = resolver.resolve(&format!("h{number}.test"), false).await;
            assert_eq!(outcome, resolved(&["192.0.2.1"], 300), "name {number}");
        }
        let counts = [asked_silent, asked_refusing, asked_well].map(|count| count.load(Ordering::SeqCst));
        // Eight failures, and a query now and then to see whether it lives: none on a machine that is not very slow.
        assert!((8..16).contains(&counts[0]) && (8..16).contains(&counts[1]), "{counts:?}");
        assert_eq!(counts[2], 40);
        assert_eq!(resolver.queries(), counts.iter().sum::<usize>() as u64, "a query is a packet");
    });
}

#[test]
fn an_error_brings_the_next_server_and_no_second_question() {
    let (broken, asked_broken) = server(|message, _, _| with_code(message, ResponseCode::ServFail));
    let (well, asked_well) = server(|mut message, of, _| match of {
        "bad.test." => with_code(message, ResponseCode::ServFail),
        _ => bytes(message.add_answer(four(of, 300, 1))),
    });
    let counts = move || [asked_broken.load(Ordering::SeqCst), asked_well.load(Ordering::SeqCst)];
    run(&config(&[broken, well], |_| ()), |resolver| async move {
        for number in 0..20 {
            assert_eq!(resolver.resolve(&format!("h{number}.test"), false).await, resolved(&["192.0.2.1"], 300));
        }
        // SERVFAIL may be the name's fault: the first server is queried first each time, once without EDNS.
        assert_eq!(counts(), [21, 20]);
        assert_eq!(resolver.resolve("bad.test", false).await, Outcome::Failed(Failure::DnsFailed));
        assert_eq!(counts(), [23, 22], "once for each family");
    });
}

#[test]
fn silence_is_waited_for_three_times_and_no_longer_than_the_timeout() {
    let (silent, asked) = server(|_, _, _| None);
    let mut seen = 0;
    let (deaf, asked_deaf) = server(move |mut message, of, _| {
        seen += 1;
        if seen % 3 == 0 { bytes(message.add_answer(four(of, 300, 1))) } else { None }
    });
    run(&config(&[silent], |dns| dns.timeout = Duration::from_millis(400)), |resolver| async move {
        assert_eq!(resolver.resolve("a.test", true).await, Outcome::Failed(Failure::DnsTimeout));
        assert_eq!(asked.load(Ordering::SeqCst), 4, "once for the other family");
    });
    run(&config(&[deaf], |dns| dns.timeout = Duration::from_secs(4)), |resolver| async move {
        assert_eq!(resolver.resolve("a.test", false).await, resolved(&["192.0.2.1"], 300));
        assert_eq!((asked_deaf.load(Ordering::SeqCst), resolver.queries()), (3, 3), "a query is a packet");
    });
}

/// As a forwarder without an upstream that has one address in a file of its own.
#[test]
fn a_family_without_an_answer_does_not_hide_the_other() {
    let (addr, asked) = server(|mut message, of, record_type| match (of, record_type) {
        ("nx.test.", RecordType::AAAA) => {
            message.add_authority(soa(900, 600));
            with_code(message, ResponseCode::NXDomain)
        }
        ("none.test.", RecordType::AAAA) => bytes(&message),
        ("deaf.test.", RecordType::A) => None,
        (_, RecordType::AAAA) => bytes(message.add_answer(six(of, 300, 1))),
        _ => with_code(message, ResponseCode::Refused),
    });
    run(&config(&[addr], |dns| dns.timeout = Duration::from_millis(800)), |resolver| async move {
        let six = "2001:db8::1";
        assert_eq!(resolver.resolve("six.test", false).await, resolved(&[six], 300));
        assert_eq!(asked.load(Ordering::SeqCst), 3, "once without EDNS");
        assert_eq!(in_seconds(resolver.resolve("deaf.test", false).await), resolved(&[six], 300));
        assert_eq!(in_seconds(resolver.resolve("both.test", true).await), half(&[six], 60), "no longer than any must");
        // A denial that does not answer the question for A records is no denial (RFC 4074 section 4.2).
        assert_eq!(resolver.resolve("nx.test", false).await, Outcome::Failed(Failure::DnsFailed));
        assert_eq!(resolver.resolve("none.test", false).await, Outcome::Failed(Failure::DnsFailed));
    });
    run(&config(&[addr], |dns| dns.families = Families::Ipv4Only), |resolver| async move {
        assert_eq!(resolver.resolve("six.test", false).await, Outcome::Failed(Failure::DnsFailed));
    });
}

/// A server with this answer to a query with EDNS, and with the truth to any other query (RFC 6891 section 6.2.2 and
/// 7).
fn without_edns_only(says: Option<ResponseCode>, with_opt: bool) -> (SocketAddr, Arc<AtomicUsize>) {
    server_of_queries(move |query| {
        let (edns, of) = (query.edns.clone(), query.queries[0].name().to_ascii());
        let mut message = query.into_response();
        match (edns, says) {
            (Some(_), None) => None,
            (Some(edns), Some(code)) => {
                message.edns = with_opt.then_some(edns);
                with_code(message, code)
            }
            (None, _) => {
                message.edns = None;
                bytes(message.add_answer(four(&of, 300, 1)))
            }
        }
    })
}

#[test]
fn a_server_that_does_not_take_edns_is_asked_without() {
    for (says, with_opt) in [
        (Some(ResponseCode::FormErr), false),
        (Some(ResponseCode::NotImp), false),
        (Some(ResponseCode::NotImp), true),
        (Some(ResponseCode::Refused), false),
        (Some(ResponseCode::ServFail), false),
        (Some(ResponseCode::BADVERS), true),
        (None, false),
    ] {
        let servers = [0; 2].map(|_| without_edns_only(says, with_opt));
        for count in 1..=2 {
            let of: Vec<SocketAddr> = servers[..count].iter().map(|(addr, _)| *addr).collect();
            let dns = config(&of, |dns| dns.timeout = Duration::from_millis(800));
            let before = servers[0].1.load(Ordering::SeqCst);
            let asked = Arc::clone(&servers[0].1);
            run(&dns, |resolver| async move {
                for number in 0..20 {
                    let outcome = resolver.resolve(&format!("h{number}.test"), false).await;
                    assert_eq!(outcome, resolved(&["192.0.2.1"], 300), "{says:?}, {count} servers");
                }
                // Twice both ways: then it is known.
                assert_eq!(asked.load(Ordering::SeqCst) - before, 22, "{says:?}, {count} servers");
                // A silent server gets its second try after the others.
                let of_others = if says.is_none() { 2 * (count as u64 - 1) } else { 0 };
                assert_eq!(resolver.queries(), 22 + of_others, "{says:?}, {count} servers");
            });
        }
    }
}

/// A server that speaks EDNS, with one packet in ten lost: it is still queried with EDNS.
#[test]
fn a_lost_packet_does_not_turn_edns_off() {
    let mut seen = 0;
    let with = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&with);
    let (addr, asked) = server_of_queries(move |query| {
        seen += 1;
        counter.fetch_add(usize::from(query.edns.is_some()), Ordering::SeqCst);
        let of = query.queries[0].name().to_ascii();
        if seen % 10 == 1 { None } else { bytes(query.into_response().add_answer(four(&of, 300, 1))) }
    });
    run(&config(&[addr], |dns| dns.timeout = Duration::from_millis(800)), |resolver| async move {
        for number in 0..45 {
            let outcome = resolver.resolve(&format!("h{number}.test"), false).await;
            assert_eq!(outcome, resolved(&["192.0.2.1"], 300));
        }
        assert_eq!((asked.load(Ordering::SeqCst), with.load(Ordering::SeqCst)), (50, 45), "the retries without");
    });
}

/// RFC 4074's list: faulty answers for AAAA records hide no A record, in either order.
#[test]
fn misbehaviour_for_aaaa_records_does_not_hide_the_others() {
    let (addr, _) = server_of_queries(|query| {
        let (of, record_type) = (query.queries[0].name().to_ascii(), query.queries[0].query_type());
        let mut message = query.into_response();
        match (of.as_str(), record_type) {
            ("absent.test.", _) | ("denied.test.", RecordType::AAAA) => {
                message.add_authority(soa(900, 600));
                with_code(message, ResponseCode::NXDomain)
            }
            ("unsure.test.", RecordType::AAAA) => with_code(message, ResponseCode::NXDomain),
            ("unsure.test.", _) => with_code(message, ResponseCode::ServFail),
            (_, RecordType::A) => bytes(message.add_answer(four(&of, 300, 1))),
            ("silent.test.", _) => None,
            ("servfail.test.", _) => with_code(message, ResponseCode::ServFail),
            ("notimp.test.", _) => with_code(message, ResponseCode::NotImp),
            ("formerr.test.", _) => with_code(message, ResponseCode::FormErr),
            ("refused.test.", _) => with_code(message, ResponseCode::Refused),
            // Another owner, another type, a length of four, another question, another server.
            ("owner.test.", _) => bytes(message.add_answer(six("elsewhere.test.", 300, 1))),
            ("type.test.", _) => bytes(message.add_answer(four(&of, 300, 9))),
            ("length.test.", _) => {
                let mut wire = message.add_answer(four(&of, 300, 9)).to_vec().expect("encode");
                let place = wire.windows(4).rposition(|four| four == [0, 1, 0, 1]).expect("type A, class IN");
                wire[place + 1] = 28;
                Some(wire)
            }
            ("question.test.", _) => {
                message.queries[0].set_name(name("elsewhere.test."));
                bytes(&message)
            }
            _ => {
                let ns = RData::NS(rdata::NS(name("a.root-servers.net.")));
                bytes(message.add_authority(Record::from_rdata(Name::root(), 300, ns)))
            }
        }
    });
    let hosts =
        ["denied", "silent", "servfail", "notimp", "formerr", "refused", "owner", "type", "length", "question", "lame"];
    for families in [Families::Ipv6First, Families::Ipv4First] {
        for both in [false, true] {
            let dns = config(&[addr], |dns| (dns.timeout, dns.families) = (Duration::from_millis(800), families));
            run(&dns, |resolver| async move {
                for host in hosts {
                    let Outcome::Resolved { addrs, .. } = resolver.resolve(&format!("{host}.test"), both).await else {
                        panic!("{host} {families:?} {both}: not found");
                    };
                    assert_eq!(addrs, ["192.0.2.1".parse::<IpAddr>().expect("address")], "{host} {families:?} {both}");
                }
                assert_eq!(in_seconds(resolver.resolve("absent.test", both).await), no_address(600));
                let unsure = resolver.resolve("unsure.test", both).await;
                assert_eq!(unsure, Outcome::Failed(Failure::DnsFailed), "no answer for A records: not known");
            });
        }
    }
}

/// A server that refers to other servers does not know the name, and this is no denial (RFC 2308 section 2.2).
#[test]
fn a_referral_is_no_denial() {
    let (lame, _) = server(|mut message, _, _| {
        let ns = RData::NS(rdata::NS(name("a.root-servers.net.")));
        bytes(message.add_authority(Record::from_rdata(Name::root(), 300, ns)))
    });
    let (well, _) = server(|mut message, of, _| bytes(message.add_answer(four(of, 300, 1))));
    run(&config(&[lame], |_| ()), |resolver| async move {
        assert_eq!(resolver.resolve("a.test", false).await, Outcome::Failed(Failure::DnsFailed));
    });
    run(&config(&[lame, well], |_| ()), |resolver| async move {
        assert_eq!(resolver.resolve("a.test", false).await, resolved(&["192.0.2.1"], 300));
    });
}

#[test]
fn denials_hold_as_long_as_they_say() {
    let (addr, asked) = server(|mut message, of, record_type| match (of, record_type) {
        ("nx.test.", _) => {
            message.add_authority(soa(900, 600));
            with_code(message, ResponseCode::NXDomain)
        }
        ("brief.test.", _) => {
            message.add_authority(soa(5, 600));
            with_code(message, ResponseCode::NXDomain)
        }
        ("long.test.", _) => {
            message.add_authority(soa(86_400, 86_400));
            with_code(message, ResponseCode::NXDomain)
        }
        ("empty.test.", RecordType::A) => bytes(message.add_authority(soa(7_000, 7_000))),
        ("empty.test.", _) => bytes(message.add_authority(soa(3_000, 3_000))),
        _ => with_code(message, ResponseCode::NXDomain),
    });
    run(&config(&[addr], |_| ()), |resolver| async move {
        assert_eq!(resolver.resolve("nx.test", true).await, no_address(600));
        assert_eq!(asked.load(Ordering::SeqCst), 1, "there is no such name in any family");
        assert_eq!(resolver.resolve("brief.test", false).await, no_address(60));
        assert_eq!(resolver.resolve("long.test", false).await, no_address(3 * 3_600));
        assert_eq!(in_seconds(resolver.resolve("empty.test", false).await), no_address(3_000));
        assert_eq!(asked.load(Ordering::SeqCst), 5);
        assert_eq!(resolver.resolve("without-soa.test", false).await, no_address(60));
    });
}

#[test]
fn families_are_asked_for_as_configured() {
    let answer = |mut message: Message, of: &str, record_type| match (of, record_type) {
        ("both.test.", RecordType::A) => bytes(message.add_answer(four(of, 100, 1))),
        ("both.test.", RecordType::AAAA) => bytes(message.add_answer(six(of, 80, 1))),
        ("six.test.", RecordType::AAAA) => bytes(message.add_answer(six(of, 90, 2))),
        ("half.test.", RecordType::A) => bytes(message.add_answer(four(of, 100, 3))),
        ("half.test.", _) => with_code(message, ResponseCode::ServFail),
        _ => bytes(message.add_authority(soa(500, 500))),
    };
    let (one, two) = (["192.0.2.1"], ["2001:db8::1"]);
    for (families, of, both_families, expected, queries) in [
        (Families::Ipv4First, "both.test", false, resolved(&one, 100), 1),
        (Families::Ipv4First, "both.test", true, resolved(&["192.0.2.1", "2001:db8::1"], 80), 2),
        (Families::Ipv4First, "six.test", false, resolved(&["2001:db8::2"], 90), 2),
        // Half an answer is valid no longer than any answer must be.
        (Families::Ipv4First, "half.test", true, half(&["192.0.2.3"], 60), 2),
        (Families::Ipv4First, "none.test", false, no_address(500), 2),
        (Families::Ipv6First, "both.test", false, resolved(&two, 80), 1),
        (Families::Ipv6First, "half.test", false, resolved(&["192.0.2.3"], 100), 3),
        (Families::Ipv4Only, "both.test", true, resolved(&one, 100), 1),
        (Families::Ipv4Only, "six.test", true, no_address(500), 1),
        (Families::Ipv6Only, "six.test", false, resolved(&["2001:db8::2"], 90), 1),
        (Families::Ipv6Only, "table.test", true, resolved(&["::5"], 86_400), 0),
    ] {
        let (addr, asked) = server(answer);
        let table = vec!["192.0.2.5".parse().expect("address"), "::5".parse().expect("address")];
        let dns = config(&[addr], |dns| {
            dns.families = families;
            dns.hosts.insert("table.test".to_owned(), table);
        });
        run(&dns, |resolver| async move {
            let outcome = in_seconds(resolver.resolve(of, both_families).await);
            assert_eq!(outcome, expected, "{families:?} {of} {both_families}");
            assert_eq!(asked.load(Ordering::SeqCst), queries, "{families:?} {of} {both_families}");
        });
    }
}

/// A slow machine makes this slower, and never faster than the pace.
#[test]
fn the_pace_holds_queries_back() {
    let (addr, asked) = server(|mut message, of, _| bytes(message.add_answer(four(of, 300, 1))));
    let dns = config(&[addr], |dns| dns.rate_max = 200);
    run(&dns.clone(), |_| async move {
        let resolver = resolver(&dns, 4);
        let begun = ring::now();
        let tasks: Vec<_> = (0..21)
            .map(|number| {
                let resolver = Rc::clone(&resolver);
                ring::spawn(async move { resolver.resolve(&format!("h{number}.test"), false).await })
            })
            .collect();
        for task in tasks {
            assert_eq!(task.await.expect("a task"), resolved(&["192.0.2.1"], 300));
        }
        // 50 a second and five at once: the last of 21 is sent after 16 of 20 ms each.
        assert!(ring::now().since(begun) >= Duration::from_millis(320));
        assert_eq!(asked.load(Ordering::SeqCst), 21);
    });
}

/// A machine gets its name servers when its network is up, which may be after the start of a crawl.
#[test]
fn servers_of_a_file_are_read_again_until_there_are_some_and_when_they_fail() {
    let folder = ringcrawl_base::TempFolder::new("resolv");
    let file = folder.path().join("resolv.conf");
    let dns = Dns { servers: Vec::new(), ..Dns::default() };
    let wait = Duration::from_millis(50);
    let family = Family::V4;
    let query = DnsQuery { lookup: 1, server: 0, name: "a.test".to_owned(), family, with_edns: false, wait };
    Runtime::new(64).expect("io_uring").block_on(async {
        let servers = NameServers::of(&dns, &file).expect("none are needed");
        assert_eq!(servers.len(), 1, "one may come");
        let (answer, words) = servers.ask(&query).await;
        assert_eq!(answer, DnsAnswer::Unreachable, "a name is not told to have no address");
        assert!(words.is_some_and(|words| words.starts_with(&format!("{}: ", file.display()))));
        let known = || servers.known.borrow().names.clone();
        std::fs::write(&file, "search test\n").expect("a file");
        let none = NameServers::of(&dns, &file).expect("none are needed");
        let (_, words) = none.ask(&query).await;
        assert_eq!(words, Some(format!("{} names no server", file.display())));
        // Not more often than that.
        std::fs::write(&file, "nameserver 127.9.8.7\n").expect("a file");
        let look = servers.next_look.get();
        assert!(look > ring::now() && look <= ring::now() + LOOK_EVERY);
        servers.ask(&query).await;
        assert_eq!(known(), [""; 0]);
        servers.look_again(look);
        assert_eq!(known(), ["127.9.8.7:53"]);
        // There is no answer: the next ones are tried. An empty file changes nothing.
        for (text, expected) in [("nameserver 127.9.8.6\nnameserver ::1\n", "127.9.8.6:53"), ("", "127.9.8.6:53")] {
            std::fs::write(&file, text).expect("a file");
            servers.next_look.set(Instant::ZERO);
            let (answer, _) = servers.ask(&query).await;
            assert!(!answer.is_answer(), "{answer:?}");
            assert_eq!(known()[0], expected);
        }
        assert_eq!(servers.len(), 1);
        // Configured ones stay.
        let dns = config(&[([127, 0, 0, 1], 9).into()], |_| {});
        let configured = NameServers::of(&dns, &file).expect("one");
        configured.look_again(look);
        assert_eq!((configured.known.borrow().names.join(" "), no_name_server(&dns)), ("127.0.0.1:9".to_owned(), None));
    });
}
