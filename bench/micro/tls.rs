//! What a TLS connection costs the client, in memory: CPU time by kind of handshake, ours by that of bare rustls.
//!
//! Chains of root, intermediate and leaf: all with ECDSA P-256 keys; a P-256 leaf under P-384 authorities, as ECDSA is on
//! the web (Let's Encrypt, Google); all with RSA-2048. Only the client's calls are timed, by the
//! thread's CPU clock; bare and ours take turns, and medians are compared. Where the chain is known, bare rustls has a
//! verifier that looks at the signature alone, which is the least that a handshake needs.
//! Then: what it takes to make a client (each shard does once), and the memory of sessions kept for HOSTS hosts (default
//! 4,096), of ours and of rustls's own store, each in a process of its own.
//! Checked: each handshake is of the kind that its row says.
//! Limits: no sockets; the server's share is left out.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SignatureAlgorithm};
use ringcrawl_config::Tls;
use ringcrawl_crawler::fetch::TlsClient;
use ringcrawl_ring::Thread;
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, aws_lc_rs};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, HandshakeKind, RootCertStore, ServerConfig,
    ServerConnection, SignatureScheme, SupportedProtocolVersion,
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const HOST: &str = "www.example.test";

fn main() {
    let in_test = !std::env::args().any(|argument| argument == "--bench");
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let hosts: usize = number("HOSTS").unwrap_or(if in_test { 64 } else { 4_096 });
    if let Ok(which) = std::env::var("SESSIONS") {
        return sessions(&which, hosts);
    }
    let rounds = number("ROUNDS").unwrap_or(if in_test { 4 } else { 600 });
    println!("{:<32} {:>10} {:>10} {:>8} {:>12}", "µs of CPU, medians", "bare", "ours", "ratio", "of full");
    for (name, authorities, leaf) in [
        ("P-256", &rcgen::PKCS_ECDSA_P256_SHA256, &rcgen::PKCS_ECDSA_P256_SHA256),
        ("P-384", &rcgen::PKCS_ECDSA_P384_SHA384, &rcgen::PKCS_ECDSA_P256_SHA256),
        ("RSA", &rcgen::PKCS_RSA_SHA256, &rcgen::PKCS_RSA_SHA256),
    ] {
        handshakes(name, &Web::new(authorities, leaf), rounds);
    }
    clients(rounds);
    for which in ["ours 1.3", "rustls 1.3", "ours 1.2", "rustls 1.2"] {
        let program = std::env::current_exe().expect("a path");
        let ended = Command::new(program).args(std::env::args_os().skip(1)).env("SESSIONS", which).status();
        assert!(ended.expect("a process").success());
    }
}

/// Every kind of handshake with the servers of one web.
fn handshakes(name: &str, web: &Web, rounds: usize) {
    for (version, protocol) in [("1.3", &rustls::version::TLS13), ("1.2", &rustls::version::TLS12)] {
        let servers = [web.server(protocol), web.server(protocol)];
        let mut full = None;
        for kind in ["full, chain unknown", "full, chain known", "resumed"] {
            // With room for one chain, two that take turns are never known.
            let unknown = kind == "full, chain unknown";
            let (chains_max, sessions_max) = (if unknown { 1 } else { 1_000 }, if kind == "resumed" { 100 } else { 0 });
            let resumption =
                if kind == "resumed" { Resumption::in_memory_sessions(256) } else { Resumption::disabled() };
            let bare = Client::Bare(Arc::new(web.bare(resumption, kind == "full, chain known")));
            let ours = Client::Ours(web.ours(sessions_max, chains_max));
            let expected = if kind == "resumed" { HandshakeKind::Resumed } else { HandshakeKind::Full };
            let mut times = [Vec::new(), Vec::new()];
            for round in 0..rounds + 4 {
                let server = &servers[if unknown { round % 2 } else { 0 }];
                for turn in 0..2 {
                    let which = (round + turn) % 2;
                    let (time, kind) = connect([&bare, &ours][which], server, HOST);
                    if round >= 4 {
                        assert_eq!(kind, expected);
                        times[which].push(time);
                    }
                }
            }
            let [bare_time, ours_time] = times.map(median);
            if let Client::Ours(client) = &ours {
                let recognized = client.chains_recognized() as usize;
                assert_eq!(recognized, if kind == "full, chain known" { rounds + 3 } else { 0 });
            }
            let whole = *full.get_or_insert(bare_time);
            println!(
                "{:<32} {:>10.1} {:>10.1} {:>8.2} {:>12.2}",
                format!("{name} {version} {kind}"),
                micros(bare_time),
                micros(ours_time),
                micros(ours_time) / micros(bare_time),
                micros(ours_time) / micros(whole),
            );
        }
    }
}

/// A root, an intermediate, and what leaves have.
struct Web {
    leaf: &'static SignatureAlgorithm,
    root: CertifiedIssuer<'static, KeyPair>,
    between: CertifiedIssuer<'static, KeyPair>,
}

impl Web {
    fn new(authorities: &'static SignatureAlgorithm, leaf: &'static SignatureAlgorithm) -> Web {
        let authority = |name: &str| {
            let mut params = CertificateParams::new(Vec::new()).expect("params");
            params.distinguished_name.push(DnType::CommonName, name);
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            (params, KeyPair::generate_for(authorities).expect("a key"))
        };
        let (params, key) = authority("root");
        let root = CertifiedIssuer::self_signed(params, key).expect("a root");
        let (params, key) = authority("between");
        let between = CertifiedIssuer::signed_by(params, key, &root).expect("an intermediate");
        Web { leaf, root, between }
    }

    /// With a certificate of its own.
    fn server(&self, version: &'static SupportedProtocolVersion) -> Arc<ServerConfig> {
        let names = vec!["*.example.test".to_owned()];
        let key = KeyPair::generate_for(self.leaf).expect("a key");
        let params = CertificateParams::new(names).expect("names");
        let leaf = params.signed_by(&key, &self.between).expect("a certificate").der().clone();
        let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_protocol_versions(&[version])
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![leaf, self.between.der().clone()], PrivateKeyDer::Pkcs8(key.serialize_der().into()))
            .expect("a certificate");
        config.ticketer = aws_lc_rs::Ticketer::new().expect("a ticketer");
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Arc::new(config)
    }

    fn bare(&self, resumption: Resumption, signature_alone: bool) -> ClientConfig {
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        roots.add(self.root.der().clone()).expect("a root");
        let verifier = SignatureAlone(aws_lc_rs::default_provider().signature_verification_algorithms);
        let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions");
        let mut config = if signature_alone {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth()
        } else {
            builder.with_root_certificates(roots).with_no_client_auth()
        };
        config.resumption = resumption;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config
    }

    fn ours(&self, sessions_max: usize, chains_max: usize) -> TlsClient {
        let path = std::env::temp_dir().join(format!("ringcrawl-bench-tls-{}.pem", std::process::id()));
        std::fs::write(&path, self.root.pem()).expect("write");
        let tls = Tls { ca_files: vec![path.clone()], sessions_max, chains_max, ..Tls::default() };
        let client = TlsClient::new(&tls).expect("a client");
        std::fs::remove_file(&path).expect("remove");
        client
    }
}

enum Client {
    Bare(Arc<ClientConfig>),
    Ours(TlsClient),
}

/// A new connection, with the tickets that the server sends at its beginning: the client's CPU time and the kind.
fn connect(client: &Client, server: &Arc<ServerConfig>, host: &str) -> (Duration, HandshakeKind) {
    let mut there = ServerConnection::new(server.clone()).expect("a server");
    let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
    let mut clock = Clock::start();
    let (mut here, name) = match client {
        Client::Bare(config) => {
            let name = ServerName::try_from(host.to_owned()).expect("a name");
            (ClientConnection::new(config.clone(), name.clone()).expect("a client"), name)
        }
        Client::Ours(client) => {
            let name = TlsClient::server_name(host).expect("a name");
            (client.start(name.clone()).expect("a client"), name)
        }
    };
    let mut described = false;
    loop {
        while here.wants_write() {
            here.write_tls(&mut to_server).expect("memory");
        }
        if let (Client::Ours(client), false, false) = (client, here.is_handshaking(), described) {
            assert_eq!(client.describe(&here, &name).expect("good").certificate_error, None);
            described = true;
        }
        clock.stop();
        let mut bytes = to_server.as_slice();
        while !bytes.is_empty() {
            there.read_tls(&mut bytes).expect("memory");
            there.process_new_packets().expect("good");
        }
        to_server.clear();
        to_client.clear();
        while there.wants_write() {
            there.write_tls(&mut to_client).expect("memory");
        }
        if to_client.is_empty() {
            assert!(!here.is_handshaking() && !there.is_handshaking());
            return (clock.spent, here.handshake_kind().expect("it is over"));
        }
        clock.go_on();
        let mut bytes = to_client.as_slice();
        while !bytes.is_empty() {
            here.read_tls(&mut bytes).expect("memory");
            here.process_new_packets().expect("good");
        }
    }
}

/// CPU time of this thread, less what reading it takes.
struct Clock {
    thread: Thread,
    since: Duration,
    spent: Duration,
}

impl Clock {
    fn start() -> Clock {
        let thread = Thread::default();
        thread.announce();
        let mut clock = Clock { thread, since: Duration::ZERO, spent: Duration::ZERO };
        clock.go_on();
        clock
    }

    fn go_on(&mut self) {
        self.since = self.now();
    }

    fn stop(&mut self) {
        let now = self.now();
        // Read again: that took as long.
        let cost = self.now() - now;
        self.spent += (now - self.since).saturating_sub(cost);
    }

    fn now(&self) -> Duration {
        self.thread.cpu_time().expect("a thread's clock")
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// What it takes to make a client.
fn clients(rounds: usize) {
    println!();
    let system = PathBuf::from("/etc/ssl/certs/ca-certificates.crt");
    for ca_files in [Vec::new(), vec![system]] {
        if !ca_files.iter().all(|file| file.is_file()) {
            continue;
        }
        let tls = Tls { ca_files, ..Tls::default() };
        let mut times = Vec::new();
        for _ in 0..rounds {
            let start = Instant::now();
            let client = TlsClient::new(&tls).expect("a client");
            times.push(start.elapsed());
            drop(client);
        }
        println!("{:.1} µs to make a client, with roots of {} files", micros(median(times)), tls.ca_files.len());
    }
}

/// Memory of the sessions of many hosts.
fn sessions(which: &str, hosts: usize) {
    let web = Web::new(&rcgen::PKCS_RSA_SHA256, &rcgen::PKCS_RSA_SHA256);
    let server = web.server(if which.ends_with("1.3") { &rustls::version::TLS13 } else { &rustls::version::TLS12 });
    let client = match which.split_once(' ') {
        Some(("ours", _)) => Client::Ours(web.ours(hosts, 1_000)),
        _ => Client::Bare(Arc::new(web.bare(Resumption::in_memory_sessions(8 * hosts), true))),
    };
    // What the first connections take once and for all is not the sessions'.
    for _ in 0..20 {
        connect(&client, &server, HOST);
    }
    let before = resident();
    for host in 0..hosts {
        let host = format!("host-{host}.example.test");
        // A host is met more than once, and gives two tickets each time.
        for _ in 0..4 {
            connect(&client, &server, &host);
        }
    }
    println!("{which}: {} bytes for the sessions of a host", resident().saturating_sub(before) / hosts);
}

/// Resident memory in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let kib = status.lines().find_map(|text| text.strip_prefix("VmRSS")?.split_whitespace().nth(1)?.parse().ok());
    kib.map_or(0, |kib: usize| kib * 1024)
}

/// Takes every chain; checks that the server holds the key.
#[derive(Debug)]
struct SignatureAlone(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for SignatureAlone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, certificate, signed, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signed, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}
