//! Handshakes in memory with a server of rustls: sessions, policies, and the names of failures.

use std::sync::atomic::AtomicU64;
use std::time::{SystemTime, UNIX_EPOCH};

use rustls::server::{NoServerSessionStorage, ServerSessionMemoryCache};
use rustls::time_provider::TimeProvider;
use rustls::{ServerConfig, ServerConnection, SupportedProtocolVersion};

use super::pki::{Authority, at, authority, leaf};
use super::*;
use ringcrawl_base::TempFolder;

pub(super) const BOTH: &[&SupportedProtocolVersion] = rustls::ALL_VERSIONS;
pub(super) const TLS12: &[&SupportedProtocolVersion] = &[&rustls::version::TLS12];

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs()
}

/// A clock that tests set.
#[derive(Debug)]
pub(super) struct Clock(AtomicU64);

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<rustls::pki_types::UnixTime> {
        Some(at(self.0.load(Ordering::Relaxed)))
    }
}

/// A client that trusts `root`, and its clock.
pub(super) fn client(root: &Authority, change: impl FnOnce(&mut Tls)) -> (TlsClient, Arc<Clock>) {
    let folder = TempFolder::new("tls");
    let path = folder.file("ca.pem", &root.pem());
    let mut tls = Tls { ca_files: vec![path.into()], ..Tls::default() };
    change(&mut tls);
    let mut client = TlsClient::new(&tls).expect("a client");
    let clock = Arc::new(Clock(AtomicU64::new(now())));
    Arc::get_mut(&mut client.config).expect("not shared yet").time_provider = clock.clone();
    (client, clock)
}

/// A server for `names`, whose certificate is valid for `seconds` from now.
pub(super) fn server(
    root: &Authority,
    names: &[&str],
    seconds: u64,
    versions: &[&'static SupportedProtocolVersion],
) -> ServerConfig {
    let (certificate, key) = leaf(names, (now() - 86_400, now() + seconds), root);
    let key = rustls::pki_types::PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_protocol_versions(versions)
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("a certificate");
    config.ticketer = rustls::crypto::aws_lc_rs::Ticketer::new().expect("a ticketer");
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config
}

/// A handshake, with everything that the server sends right after it; returns whether a session was resumed.
pub(super) fn handshake(
    client: &TlsClient,
    server: &Arc<ServerConfig>,
    name: &str,
) -> Result<(TlsInfo, bool), Failure> {
    let name = TlsClient::server_name(name)?;
    let mut here = client.start(name.clone())?;
    let mut there = ServerConnection::new(server.clone()).expect("a server");
    for _ in 0..10 {
        let mut bytes = Vec::new();
        while here.wants_write() {
            here.write_tls(&mut bytes).expect("memory");
        }
        let mut said = bytes.as_slice();
        while !said.is_empty() {
            there.read_tls(&mut said).expect("memory");
            // The server sends its error as an alert.
            let _ = there.process_new_packets();
        }
        bytes.clear();
        while there.wants_write() {
            there.write_tls(&mut bytes).expect("memory");
        }
        let mut bytes = bytes.as_slice();
        while !bytes.is_empty() {
            here.read_tls(&mut bytes).expect("memory");
            here.process_new_packets().map_err(|error| failure_of(&error))?;
        }
        if !here.is_handshaking() && !there.is_handshaking() && !here.wants_write() {
            let info = client.describe(&here, &name).map_err(|error| failure_of(&error))?;
            return Ok((info, here.handshake_kind() == Some(HandshakeKind::Resumed)));
        }
    }
    panic!("a handshake without end");
}

fn is_resumed(client: &TlsClient, server: &Arc<ServerConfig>, name: &str) -> bool {
    handshake(client, server, name).expect("a handshake").1
}

pub(super) fn root() -> Authority {
    authority("root", (now() - 86_400, now() + 365 * 86_400), None)
}

#[test]
fn names() {
    assert!(matches!(TlsClient::server_name("example.com"), Ok(ServerName::DnsName(_))));
    assert!(matches!(TlsClient::server_name("a_b.example.com"), Ok(ServerName::DnsName(_))));
    assert!(matches!(TlsClient::server_name("127.0.0.1"), Ok(ServerName::IpAddress(_))));
    assert!(matches!(TlsClient::server_name("[::1]"), Ok(ServerName::IpAddress(_))));
    assert!(TlsClient::server_name("").is_err());
}

#[test]
fn a_file_without_certificates_is_an_error() {
    let folder = TempFolder::new("no-ca");
    let path = folder.file("ca.pem", "no certificate here\n");
    let tls = Tls { ca_files: vec![path.clone().into()], ..Tls::default() };
    assert!(matches!(TlsClient::new(&tls), Err(HandsError::CaFile(..))));
    let folder_as_file = Tls { ca_files: vec![folder.path().into()], ..Tls::default() };
    let error = TlsClient::new(&folder_as_file).err().expect("a directory").to_string();
    assert!(error.contains("it is a directory, not a plain file"), "{error}");
    drop(folder);
    let error = TlsClient::new(&tls).err().expect("no such file").to_string();
    assert!(error.contains(&path), "{error}");
}

#[test]
fn suites_have_their_names_of_iana() {
    for suite in &rustls::crypto::aws_lc_rs::default_provider().cipher_suites {
        let name = iana_name(suite.suite()).expect("a name");
        assert!(name.starts_with("TLS_"), "{name}");
    }
}

#[test]
fn sessions_are_resumed_in_both_versions() {
    let root = root();
    for (versions, version) in [(BOTH, "TLSv1_3"), (TLS12, "TLSv1_2")] {
        let tickets = server(&root, &["*.example.test"], 86_400, versions);
        let mut by_number = server(&root, &["*.example.test"], 86_400, versions);
        by_number.ticketer = Arc::new(NoTickets);
        by_number.session_storage = ServerSessionMemoryCache::new(100);
        for server in [Arc::new(tickets), Arc::new(by_number)] {
            let (client, _) = client(&root, |_| ());
            let (info, resumed) = handshake(&client, &server, "www.example.test").expect("a handshake");
            assert_eq!((info.version, resumed, info.certificate_error), (version, false, None));
            for _ in 0..5 {
                assert!(is_resumed(&client, &server, "www.example.test"), "{version}");
            }
            // The session belongs to the host; the chain is remembered for all.
            assert_eq!(client.chains_recognized(), 0);
            assert!(!is_resumed(&client, &server, "other.example.test"));
            assert_eq!(client.chains_recognized(), 1);
        }
    }
}

/// Hands out no tickets.
#[derive(Debug)]
struct NoTickets;

impl rustls::server::ProducesTickets for NoTickets {
    fn enabled(&self) -> bool {
        false
    }

    fn lifetime(&self) -> u32 {
        0
    }

    fn encrypt(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn decrypt(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

#[test]
fn a_ticket_is_used_once_and_two_are_kept() {
    let root = root();
    let mut config = server(&root, &["www.example.test"], 86_400, BOTH);
    config.send_tls13_tickets = 4;
    let generous = Arc::new(config.clone());
    // The same keys for tickets, and no new ones.
    config.send_tls13_tickets = 0;
    let silent = Arc::new(config);
    let (client, _) = client(&root, |_| ());
    assert!(!is_resumed(&client, &generous, "www.example.test"));
    assert_eq!([(); 3].map(|()| is_resumed(&client, &silent, "www.example.test")), [true, true, false]);
}

/// Of one version at a time, and nothing once its connection broke.
#[test]
fn what_a_host_gave_is_forgotten() {
    let root = root();
    let [both, old] = [BOTH, TLS12].map(|versions| Arc::new(server(&root, &["www.example.test"], 86_400, versions)));
    let (client, _) = client(&root, |_| ());
    for server in [&both, &old] {
        assert!(!is_resumed(&client, server, "www.example.test"));
        assert!(is_resumed(&client, server, "www.example.test"));
        client.forget("other.example.test");
        assert!(is_resumed(&client, server, "www.example.test"));
        client.forget("www.example.test");
        assert!(!is_resumed(&client, server, "www.example.test"));
        client.forget("www.example.test");
    }
    assert_eq!([&old, &both].map(|server| is_resumed(&client, server, "www.example.test")), [false; 2]);
    // Two tickets of the newer version are offered first, and nothing of the older one is left after them.
    assert_eq!([(); 3].map(|()| is_resumed(&client, &old, "www.example.test")), [false; 3]);
}

#[test]
fn no_more_hosts_than_the_bound_have_sessions() {
    let root = root();
    for versions in [BOTH, TLS12] {
        let server = Arc::new(server(&root, &["*.example.test"], 86_400, versions));
        let (two, _) = client(&root, |tls| tls.sessions_max = 2);
        for host in ["a.example.test", "b.example.test", "c.example.test"] {
            assert!(!is_resumed(&two, &server, host));
        }
        assert!(!is_resumed(&two, &server, "a.example.test"));
        assert!(is_resumed(&two, &server, "c.example.test"));
        let (none, _) = client(&root, |tls| tls.sessions_max = 0);
        assert_eq!([(); 2].map(|()| is_resumed(&none, &server, "a.example.test")), [false, false]);
        let (forgetful, _) = client(&root, |tls| (tls.sessions_max, tls.chains_max) = (0, 0));
        assert_eq!([(); 2].map(|()| is_resumed(&forgetful, &server, "a.example.test")), [false, false]);
        assert_eq!([none.chains_recognized(), forgetful.chains_recognized()], [1, 0]);
    }
}

#[test]
fn a_group_that_was_not_guessed_is_remembered() {
    let root = root();
    let mut provider = rustls::crypto::aws_lc_rs::default_provider();
    provider.kx_groups.retain(|group| group.name() == rustls::NamedGroup::secp384r1);
    let (certificate, key) = leaf(&["www.example.test"], (now() - 86_400, now() + 86_400), &root);
    let key = rustls::pki_types::PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("a certificate");
    config.send_tls13_tickets = 0;
    let server = Arc::new(config);
    let (client, _) = client(&root, |_| ());
    let kind = || {
        let name = TlsClient::server_name("www.example.test").expect("a name");
        let mut here = client.start(name).expect("a connection");
        let mut there = ServerConnection::new(server.clone()).expect("a server");
        while here.is_handshaking() {
            let mut bytes = Vec::new();
            here.write_tls(&mut bytes).expect("memory");
            there.read_tls(&mut bytes.as_slice()).expect("memory");
            there.process_new_packets().expect("good");
            let mut bytes = Vec::new();
            while there.wants_write() {
                there.write_tls(&mut bytes).expect("memory");
            }
            here.read_tls(&mut bytes.as_slice()).expect("memory");
            here.process_new_packets().expect("good");
        }
        here.handshake_kind()
    };
    assert_eq!([kind(), kind()], [Some(HandshakeKind::FullWithHelloRetryRequest), Some(HandshakeKind::Full)]);
}

/// A certificate that expires between two connections: its session is resumed, and still refused or recorded.
#[test]
fn a_resumed_session_is_judged_by_the_time() {
    let root = root();
    for versions in [BOTH, TLS12] {
        for certificates in [Certificates::Verify, Certificates::Record] {
            let server = Arc::new(server(&root, &["www.example.test"], 3_600, versions));
            let (client, clock) = client(&root, |tls| tls.certificates = certificates);
            assert!(!is_resumed(&client, &server, "www.example.test"));
            assert!(is_resumed(&client, &server, "www.example.test"));
            clock.0.fetch_add(3_700, Ordering::Relaxed);
            let late = handshake(&client, &server, "www.example.test");
            match (certificates, late) {
                (Certificates::Verify, Err(Failure::TlsExpired)) => {}
                (Certificates::Record, Ok((info, true))) => {
                    assert!(info.certificate_error.is_some_and(|error| error.contains("expired")));
                }
                (_, late) => panic!("{certificates:?}: {late:?}"),
            }
        }
    }
}

#[test]
fn what_is_wrong_is_recorded_every_time() {
    let (root, stranger) = (root(), authority("stranger", (now() - 86_400, now() + 86_400), None));
    let good = Arc::new(server(&root, &["*.example.test"], 86_400, BOTH));
    let bad = Arc::new(server(&stranger, &["*.example.test"], 86_400, BOTH));
    let (client, _) = client(&root, |tls| tls.certificates = Certificates::Record);
    let wrong = |server, host| handshake(&client, server, host).expect("taken").0.certificate_error;
    for round in 0..3 {
        assert_eq!(wrong(&good, "www.example.test"), None);
        assert_eq!(wrong(&good, "other.example.test"), None);
        for host in ["bad.example.test", "worse.example.test"] {
            let error = wrong(&bad, host).expect("untrusted");
            assert!(error.contains("UnknownIssuer"), "round {round}: {error}");
        }
        assert!(wrong(&good, "www.stranger.test").expect("another name").contains("not valid for name"));
    }
    // Only full handshakes count: the second good host; the wrong name is not recognized.
    assert_eq!(client.chains_recognized(), 1);
}

#[test]
fn no_server_without_the_key_is_taken_for_good() {
    let root = root();
    let (certificate, _) = leaf(&["www.example.test"], (now() - 86_400, now() + 86_400), &root);
    let key = rcgen::KeyPair::generate().expect("key");
    let key = rustls::pki_types::PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let signer = rustls::crypto::aws_lc_rs::sign::any_supported_type(&key).expect("a key");
    let stolen = Arc::new(rustls::sign::CertifiedKey::new(vec![certificate], signer));
    for versions in [BOTH, TLS12] {
        let mut config = server(&root, &["www.example.test"], 86_400, versions);
        config.cert_resolver = Arc::new(rustls::sign::SingleCertAndKey::from(stolen.clone()));
        let config = Arc::new(config);
        for certificates in [Certificates::Verify, Certificates::Record] {
            let (client, _) = client(&root, |tls| tls.certificates = certificates);
            // The second time the chain is remembered, under `verify`.
            for _ in 0..2 {
                let refused = handshake(&client, &config, "www.example.test");
                assert_eq!(refused.err(), Some(Failure::TlsCertificate), "{certificates:?}");
            }
        }
    }
}

#[test]
fn servers_of_other_protocols() {
    let root = root();
    for versions in [BOTH, TLS12] {
        let mut config = server(&root, &["www.example.test"], 86_400, versions);
        config.alpn_protocols = vec![b"h2".to_vec()];
        let (client, _) = client(&root, |_| ());
        let refused = handshake(&client, &Arc::new(config), "www.example.test");
        assert_eq!(refused.err(), Some(Failure::TlsNoHttp1));
    }
}

/// The results of raw bytes from a server.
#[test]
fn failures_by_what_the_server_says() {
    let root = root();
    let (client, _) = client(&root, |_| ());
    let answer = |bytes: &[u8]| {
        let name = TlsClient::server_name("www.example.test").expect("a name");
        let mut here = client.start(name).expect("a connection");
        here.write_tls(&mut Vec::new()).expect("memory");
        here.read_tls(&mut &*bytes).expect("memory");
        here.process_new_packets().map(|_| ()).map_err(|error| failure_of(&error))
    };
    for (alert, failure) in [
        (70, Failure::TlsVersion),
        (120, Failure::TlsNoHttp1),
        (40, Failure::TlsNothingCommon),
        (71, Failure::TlsNothingCommon),
        (80, Failure::TlsFailed),
        (112, Failure::TlsFailed),
    ] {
        for version in [0, 1, 3] {
            assert_eq!(answer(&[21, 3, version, 0, 2, 2, alert]), Err(failure), "alert {alert}");
        }
    }
    // ServerHello of SSL 3.0, TLS 1.0 and 1.1: version, random, no session, TLS_RSA_WITH_AES_128_CBC_SHA, no
    // compression.
    for version in [0, 1, 2] {
        let hello = [&[3, version][..], &[7; 32], &[0, 0, 0x2f, 0]].concat();
        let message = [&[2, 0, 0, hello.len() as u8][..], &hello].concat();
        let record = [&[22, 3, version, 0, message.len() as u8][..], &message].concat();
        assert_eq!(answer(&record), Err(Failure::TlsVersion), "3.{version}");
    }
    assert_eq!(answer(b"HTTP/1.1 400 Bad Request\r\n\r\n"), Err(Failure::TlsFailed));
    for failure in [Failure::TlsVersion, Failure::TlsNoHttp1, Failure::TlsNothingCommon] {
        assert!(failure.is_of_tls() && !failure.is_transient());
    }
}

/// A long handshake waits for memory, sixteen times what arrived, and continues where it was.
#[test]
fn a_long_handshake_waits_for_memory() {
    let root = root();
    let names: Vec<String> = (0..500).map(|number| format!("n{number}.example.test")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for (names, waits) in [(&names[..1], 0), (&names[..], 1)] {
        let (client, server) = (client(&root, |_| ()).0, Arc::new(server(&root, names, 86_400, BOTH)));
        let name = TlsClient::server_name("n0.example.test").expect("a name");
        let (mut here, mut there) =
            (Link::new(client.start(name).expect("a client")), ServerConnection::new(server).expect("a server"));
        let mut waited = 0;
        while here.is_handshaking() || here.wants_write() {
            let said = here.said().expect("memory");
            let mut said = said.as_slice();
            while !said.is_empty() {
                there.read_tls(&mut said).expect("memory");
                there.process_new_packets().expect("a handshake");
            }
            let mut bytes = Vec::new();
            while there.wants_write() {
                there.write_tls(&mut bytes).expect("memory");
            }
            let is_open = here.open(&bytes, &mut |_| ());
            assert_eq!(is_open, Ok(false));
            while let Some(needed) = here.wants_memory() {
                assert!(needed >= 16 * 8_000 && needed <= 16 * bytes.len() && here.is_handshaking(), "{needed}");
                waited += 1;
                here.open_waiting().expect("a handshake");
            }
        }
        assert_eq!(waited, waits);
    }
}
