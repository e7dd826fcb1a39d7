//! Handshakes that cost as much as one may, and what comes behind them and is no content.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SignatureAlgorithm};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::arena::{AT_ONCE, Arena, html, nothing, number};
use crate::rig::names::NameServer;
use ringcrawl_lab::slowness;

pub(super) type Issuer = CertifiedIssuer<'static, KeyPair>;

/// An authority that signed itself, under a name that others have, too.
pub(super) fn decoy(algorithm: &'static SignatureAlgorithm) -> Issuer {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "between");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate_for(algorithm).expect("a key")).expect("an authority")
}

/// A server's certificate of its own, and `decoys` that might have signed it.
pub(super) fn chain(decoys: &[Issuer], number: usize) -> Arc<ServerConfig> {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec![format!("n{number}.test")]).expect("params");
    let leaf = params.signed_by(&key, &decoys[number % decoys.len()]).expect("a certificate").der().clone();
    let sent: Vec<CertificateDer> =
        std::iter::once(leaf).chain(decoys.iter().map(|decoy| decoy.der().clone())).collect();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(sent, PrivateKeyDer::Pkcs8(key.serialize_der().into()))
        .expect("a certificate and key");
    Arc::new(config)
}

/// Decoys of one name: each leads to each, and to no root.
#[test]
fn decoys_cost_no_more_than_a_few_steps() {
    const HANDSHAKES: usize = 40;
    for (decoys, algorithm) in
        [(9, &rcgen::PKCS_ECDSA_P521_SHA512), (3, &rcgen::PKCS_ECDSA_P521_SHA512), (40, &rcgen::PKCS_ECDSA_P256_SHA256)]
    {
        let decoys: Vec<Issuer> = (0..decoys).map(|_| decoy(algorithm)).collect();
        let count = decoys.len();
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a listener");
        let port = listener.local_addr().expect("its address").port();
        let came = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&came);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                // A chain that nobody has seen before.
                let config = chain(&decoys, counted.fetch_add(1, Ordering::SeqCst));
                std::thread::spawn(move || {
                    let mut connection = rustls::ServerConnection::new(config).expect("a server");
                    let mut secure = rustls::Stream::new(&mut connection, &mut stream);
                    let _ = secure.read(&mut [0; 1_024]).and_then(|_| secure.write(b"HTTP/1.1 404 None\r\n\r\n"));
                });
            }
        });
        let arena = Arena::start("decoys", move |_, _, path| match path {
            "/" => {
                html((0..HANDSHAKES).map(|host| format!("<a href='https://n{host}.test:{port}/'>")).collect::<String>())
            }
            _ => nothing(),
        });
        let names = NameServer::pointing_to(Ipv4Addr::LOCALHOST);
        let summary = arena.end(arena.crawl(&names, &["attacker.test"], AT_ONCE));
        let (came, cpu) = (came.load(Ordering::SeqCst), summary["cpu_seconds"].as_f64().expect("seconds"));
        println!("{count} decoys: {came} handshakes, {:.1} ms of CPU each", cpu * 1e3 / came as f64);
        assert!(came >= HANDSHAKES, "{summary:#}");
        // Nine decoys cost 200 ms where each way was tried.
        assert!(cpu / (came as f64) < 0.06 * slowness(), "{cpu} s of CPU for {came} handshakes");
        assert_eq!(number(&summary, "/handshakes"), 0, "{summary:#}");
    }
}

/// A server for attackers over TLS: `serve` has each connection. Its port.
fn attacker(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a listener");
    let port = listener.local_addr().expect("its address").port();
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let serve = Arc::clone(&serve);
            std::thread::spawn(move || serve(stream));
        }
    });
    port
}

/// A crawl of the victim and of `hosts` hosts at `port` to its end; its summary.
fn crawl(name: &str, hosts: usize, port: u16, more: &str) -> serde_json::Value {
    let arena = Arena::start(name, move |_, _, path| match path {
        "/" => html((0..hosts).map(|host| format!("<a href='https://n{host}.test:{port}/'>")).collect::<String>()),
        _ => nothing(),
    });
    let names = NameServer::pointing_to(Ipv4Addr::LOCALHOST);
    arena.end(arena.crawl(&names, &["attacker.test"], &format!("{AT_ONCE}{more}")))
}

/// Handshake messages of TLS 1.2 in the clear, in records.
fn records(messages: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let message = |(kind, body): &(u8, Vec<u8>)| [&[*kind][..], &(body.len() as u32).to_be_bytes()[1..], body].concat();
    let bytes: Vec<u8> = messages.iter().flat_map(message).collect();
    let record = |piece: &[u8]| [&[22, 3, 3][..], &(piece.len() as u16).to_be_bytes(), piece].concat();
    bytes.chunks(1 << 14).flat_map(record).collect()
}

/// Certificates of a byte each, and then silence: the handshake ends before its time is over, under both policies.
#[test]
fn certificates_of_a_byte_are_not_kept_until_the_timeout() {
    const HOSTS: usize = 40;
    const CERTIFICATES: usize = 16_000;
    // TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256; secure renegotiation and the extended master secret.
    let hello = [&[3, 3][..], &[7; 32], &[0, 0xc0, 0x2b, 0, 0, 9, 0xff, 1, 0, 1, 0, 0, 0x17, 0, 0]].concat();
    let list = [0, 0, 1, b'0'].repeat(CERTIFICATES);
    let certificates = [&(list.len() as u32).to_be_bytes()[1..], &list].concat();
    let flight = records(&[(2, hello), (11, certificates)]);
    let port = attacker(move |mut stream| {
        let _ = stream.read(&mut [0; 4_096]).and_then(|_| stream.write_all(&flight));
        // Until the peer goes.
        while stream.read(&mut [0; 4_096]).is_ok_and(|read| read > 0) {}
    });
    for policy in ["verify", "record"] {
        let summary = crawl("certificates", HOSTS, port, &format!("tls.certificates = \"{policy}\"\n"));
        assert_eq!(number(&summary, "/failures/tls-chain-too-long"), HOSTS as u64, "{summary:#}");
    }
}

/// A handshake, and tickets behind it: few of them are a server's right, a thousand end the connection.
#[test]
fn tickets_without_end_are_not_taken() {
    const HOSTS: usize = 10;
    let serving = |tickets: usize| {
        let mut config = (*chain(&[decoy(&rcgen::PKCS_ECDSA_P256_SHA256)], 0)).clone();
        config.ticketer = rustls::crypto::aws_lc_rs::Ticketer::new().expect("a ticketer");
        config.send_tls13_tickets = tickets;
        let config = Arc::new(config);
        attacker(move |mut stream| {
            let mut connection = rustls::ServerConnection::new(Arc::clone(&config)).expect("a server");
            let mut secure = rustls::Stream::new(&mut connection, &mut stream);
            let page = [html("<p>"), vec![b' '; 1_000]].concat();
            let _ = secure.read(&mut [0; 1_024]).and_then(|_| secure.write_all(&page));
            connection.send_close_notify();
            let _ = connection.complete_io(&mut stream);
        })
    };
    let crawled = |tickets| crawl("tickets", HOSTS, serving(tickets), "tls.certificates = \"record\"\n");
    let few = crawled(8);
    assert_eq!(number(&few, "/failures/robots-unreachable"), 0, "{few:#}");
    assert!(number(&few, "/handshakes") >= 2 * HOSTS as u64, "{few:#}");
    let many = crawled(1_000);
    assert_eq!(number(&many, "/failures/robots-unreachable"), HOSTS as u64, "{many:#}");
    assert_eq!(number(&few, "/pages") - number(&many, "/pages"), HOSTS as u64, "{many:#}");
}
