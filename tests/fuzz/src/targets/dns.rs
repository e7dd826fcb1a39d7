//! Answers of name servers, over UDP: the resolver as it is, and a server that says what the fuzzer wants.

use std::cell::OnceCell;
use std::net::{Ipv4Addr, UdpSocket};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ringcrawl_base::Failure;
use ringcrawl_brain::outcome::Outcome;
use ringcrawl_config::Config;
use ringcrawl_crawler::fetch::Hands;
use ringcrawl_crawler::fetch::Resolver;
use ringcrawl_ring::Runtime;

use super::steered;

const NAME: &str = "a.example";
/// NAME as a question of class IN; its type comes between.
const QUESTION: &[u8] = b"\x01a\x07example\0";

struct Rig {
    runtime: Runtime,
    resolver: Resolver,
    config: Config,
    says: Arc<Mutex<Vec<u8>>>,
}

thread_local! {
    // Never dropped: the process ends as the fuzzer has it, and a runtime needs its thread for that.
    static RIG: OnceCell<&'static Rig> = const { OnceCell::new() };
}

impl Rig {
    fn new() -> Rig {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        let mut config = Config::default();
        config.dns.servers = vec![socket.local_addr().expect("an address")];
        config.dns.timeout = Duration::from_secs(2);
        let says = Arc::new(Mutex::new(Vec::new()));
        let said = Arc::clone(&says);
        std::thread::spawn(move || serve(&socket, &said));
        let runtime = Runtime::new(8).expect("io_uring");
        let hands = runtime.block_on(async { Rc::new(Hands::new(&config, "test/1.0".to_owned()).expect("hands")) });
        let resolver = Resolver::new(&config, hands, 1);
        Rig { runtime, resolver, config, says }
    }
}

/// Answers each query with what is to be said, and then with a refusal: what cannot be read is not waited for.
fn serve(socket: &UdpSocket, says: &Mutex<Vec<u8>>) {
    let mut query = [0; 512];
    while let Ok((length, from)) = socket.recv_from(&mut query) {
        let query = &query[..length];
        let mut answer = says.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // Whose answer it is must be right, or nobody reads it.
        for (byte, of_query) in answer.iter_mut().zip(query.iter().take(2)) {
            *byte = *of_query;
        }
        let _ = socket.send_to(&answer, from);
        let mut refusal = query.to_vec();
        if let Some(flags) = refusal.get_mut(2..4) {
            flags.copy_from_slice(&[0x81, 0x83]);
        }
        let _ = socket.send_to(&refusal, from);
    }
}

/// Whatever a name server says, the outcome is one of a name's, within the bounds of the configuration.
pub fn dns(data: &[u8]) {
    let (steer, body) = steered(data);
    // Identifier, flags, and the question asked; all else is the fuzzer's.
    let mut packet = vec![0, 0, 0x81, steer & 0x0f, 0, 1];
    match steer & 0x80 {
        0 => {
            let (counts, records) = body.split_at(body.len().min(6));
            packet.extend_from_slice(counts);
            packet.resize(12, 0);
            packet.extend_from_slice(QUESTION);
            packet.extend_from_slice(&[0, if steer & 0x10 == 0 { 1 } else { 28 }, 0, 1]);
            packet.extend_from_slice(records);
        }
        _ => packet = [&[0, 0], body].concat(),
    }
    RIG.with(|rig| {
        let Rig { runtime, resolver, config, says } = rig.get_or_init(|| Box::leak(Box::new(Rig::new())));
        *says.lock().unwrap_or_else(PoisonError::into_inner) = packet;
        let dns = &config.dns;
        match runtime.block_on(resolver.resolve(NAME, steer & 0x20 != 0)) {
            Outcome::Resolved { addrs, ttl, .. } => {
                assert!((1..=32).contains(&addrs.len()) && (dns.ttl_min..=dns.ttl_max).contains(&ttl), "{ttl:?}");
            }
            Outcome::NoAddress { ttl } => assert!((dns.negative_ttl_min..=dns.negative_ttl_max).contains(&ttl)),
            Outcome::Failed(Failure::DnsFailed | Failure::DnsTimeout | Failure::DnsNotFound) => {}
            other => panic!("{other:?}"),
        }
    });
}

pub fn dns_seeds() -> Vec<Vec<u8>> {
    const SOME: &[u8] = b"\xc0\x0c\0\x01\0\x01\0\0\x0e\x10\0\x04\xc0\0\x02\x01";
    const ALIAS: &[u8] = b"\xc0\x0c\0\x05\0\x01\0\0\0\x3c\0\x04\x01b\xc0\x0e";
    const END: &[u8] = b"\xc0\x27\0\x01\0\x01\x80\0\0\0\0\x04\xc0\0\x02\x02";
    const SOA: &[u8] = b"\xc0\x0e\0\x06\0\x01\0\0\0\x3c\0\x18\xc0\x0e\xc0\x0e\0\0\0\x01\0\0\x0e\x10\0\0\x02\x58\0\x01\x51\x80\0\0\0\x3c";
    vec![
        [b"\0\0\x01\0\0\0\0", SOME].concat(),
        [b"\x20\0\x02\0\0\0\0", ALIAS, END].concat(),
        [b"\x03\0\0\0\x01\0\0", SOA].concat(),
        [b"\0\0\0\0\x01\0\0", SOA].concat(),
        [b"\x10\0\x01\0\0\0\0", SOME].concat(),
        b"\x80\x81\x80\0\x01\0\0\0\0\0\0\x01a\x07example\0\0\x01\0\x01".to_vec(),
    ]
}
