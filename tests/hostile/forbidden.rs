//! Addresses that may not be connected to, in every way to write them, and behind names that change.

use std::net::{IpAddr, Ipv4Addr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hickory_proto::rr::rdata::{A, AAAA};
use hickory_proto::rr::{RData, Record, RecordType};

use super::arena::{AT_ONCE, Arena, html, nothing, number};
use crate::rig::names::{NameServer, Reply};
use crate::rig::skip;

/// A server on an address of this machine that is not loopback: the crawl may not go there, and what comes is counted.
fn forbidden_server() -> Option<(Ipv4Addr, u16, Arc<AtomicUsize>)> {
    // Nothing is sent: a route is chosen, and with it our own address.
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a socket");
    let own = socket.connect((Ipv4Addr::new(198, 51, 100, 1), 9)).and_then(|()| socket.local_addr());
    let Some(IpAddr::V4(own)) = own.ok().map(|own| own.ip()).filter(|own| !own.is_loopback()) else {
        skip("this machine has no address but loopback");
        return None;
    };
    let listener = TcpListener::bind((own, 0)).expect("a listener");
    let port = listener.local_addr().expect("its address").port();
    let came = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&came);
    std::thread::spawn(move || listener.incoming().for_each(|_| _ = count.fetch_add(1, Ordering::SeqCst)));
    Some((own, port, came))
}

/// Ways to write an address as a URL's host.
fn forms(address: Ipv4Addr) -> Vec<String> {
    let ([a, b, c, d], all) = (address.octets(), u32::from(address));
    let (low, lower) = (u32::from(c) << 8 | u32::from(d), all & 0xff_ffff);
    let mapped = address.to_ipv6_mapped();
    let wide: String = address
        .to_string()
        .chars()
        .map(|sign| match sign {
            '.' => '\u{3002}',
            digit => char::from_u32(digit as u32 - '0' as u32 + 0xff10).expect("a digit"),
        })
        .collect();
    let coded: String = address.to_string().bytes().map(|byte| format!("%{byte:02x}")).collect();
    vec![
        format!("{a}.{b}.{c}.{d}"),
        format!("{a}.{b}.{c}.{d}."),
        format!("{all}"),
        format!("{all}."),
        format!("0{all:o}"),
        format!("000000{all:o}"),
        format!("0x{all:x}"),
        format!("0X{all:X}"),
        format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
        format!("0x{a:x}.0x{b:x}.0x{c:x}.0x{d:x}"),
        format!("0x{a:x}.{b}.0{c:o}.{d}"),
        format!("{a}.{b}.{low}"),
        format!("{a}.{lower}"),
        format!("0x{a:x}.0x{lower:x}"),
        format!("0{a:o}.{b}.0x{low:x}"),
        format!("someone@{a}.{b}.{c}.{d}"),
        format!("good.test:80@{a}.{b}.{c}.{d}"),
        format!("{a}.\t{b}.{c}.{d}"),
        wide,
        coded,
        format!("[::ffff:{a}.{b}.{c}.{d}]"),
        format!(
            "[{:x}:{:x}:{:x}:{:x}:{:x}:{:x}:{:x}:{:x}]",
            mapped.segments()[0],
            0,
            0,
            0,
            0,
            0xffff,
            all >> 16,
            all & 0xffff
        ),
        format!("[::{a}.{b}.{c}.{d}]"),
        format!("[64:ff9b::{a}.{b}.{c}.{d}]"),
        format!("[64:ff9b:1::{a}.{b}.{c}.{d}]"),
        format!("[2002:{:x}:{:x}::1]", all >> 16, all & 0xffff),
        "4.mapped.test".to_owned(),
        "6.mapped.test".to_owned(),
    ]
}

#[test]
fn forbidden_addresses_are_reached_in_no_way() {
    let Some((own, port, came)) = forbidden_server() else { return };
    let names = NameServer::start(move |question, message| {
        let name = question.name().to_string();
        let address = match (question.query_type(), name.contains("mapped")) {
            (RecordType::A, false) => RData::A(A(Ipv4Addr::LOCALHOST)),
            (RecordType::A, true) if name.starts_with('4') => RData::A(A(own)),
            (RecordType::AAAA, true) if name.starts_with('6') => RData::AAAA(AAAA(own.to_ipv6_mapped())),
            _ => return Reply::Message,
        };
        message.add_answer(Record::from_rdata(question.name().clone(), 60, address));
        Reply::Message
    });
    let hosts: Vec<String> = [own, Ipv4Addr::new(169, 254, 169, 254), Ipv4Addr::UNSPECIFIED].map(forms).concat();
    let count = hosts.len() as u64;
    let links: String =
        hosts.iter().enumerate().map(|(at, host)| format!("<a href='http://{host}:{port}/{at}'>")).collect();
    let more = format!("<a href='http:\\\\{own}:{port}/x'><a href='/redirect'>{links}");
    let arena = Arena::start("forbidden", move |_, _, path| match path {
        "/" => html(&more),
        "/redirect" => {
            format!("HTTP/1.1 302 There\r\nLocation: http://{own}:{port}/y\r\nContent-Length: 0\r\n\r\n").into_bytes()
        }
        _ => nothing(),
    });
    let summary = arena.end(arena.crawl(&names, &["attacker.test"], AT_ONCE));
    assert_eq!(came.load(Ordering::SeqCst), 0, "{summary:#}");
    // None is lost on the way there: every one was a link, and judged at connect.
    assert_eq!(number(&summary, "/failures/address-forbidden"), count + 2, "{summary:#}");
}

/// A name that pointed to us points to a forbidden address when it is asked for again.
#[test]
fn a_name_that_changes_leads_to_no_forbidden_address() {
    let Some((own, ..)) = forbidden_server() else { return };
    let asked = AtomicUsize::new(0);
    let names = NameServer::start(move |question, message| {
        let is_attacker = question.name().to_string().starts_with("attacker");
        if question.query_type() == RecordType::A {
            let is_later = is_attacker && asked.fetch_add(1, Ordering::SeqCst) > 0;
            let address = if is_later { own } else { Ipv4Addr::LOCALHOST };
            message.add_answer(Record::from_rdata(question.name().clone(), 0, RData::A(A(address))));
        }
        Reply::Message
    });
    const PAGES: usize = 20;
    // It listens on the forbidden address, too.
    let arena = Arena::start("rebinding", |_, _, path| match path {
        "/" => html((1..PAGES).map(|page| format!("<a href='/{page}'>")).collect::<String>()),
        _ => nothing(),
    });
    let text = "politeness.host_delay = \"200ms\"\npoliteness.site_delay = \"0s\"\npoliteness.ip_delay = \"0s\"\n\
        dns.ttl_min = \"0s\"\ndns.stale_max = \"0s\"\n";
    let summary = arena.end(arena.crawl(&names, &["attacker.test"], text));
    let forbidden = number(&summary, "/failures/address-forbidden") as usize;
    assert!(forbidden >= 5, "{summary:#}");
    assert_eq!(arena.requests("attacker.test") + forbidden, PAGES + 1, "{summary:#}");
}
