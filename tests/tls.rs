//! The hands against openssl(1), which is not the crawler's own TLS: sessions, and servers that cannot be talked to.
//!
//! Decides: `openssl s_server -www` answers each request with a page about its session and closes. Certificates are
//! made here.

use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use ringcrawl::config::{Config, PrivateAddresses};
use ringcrawl::fetch::{Exchange, Hands};
use ringcrawl::outcome::{Failure, FetchJob, JobKind};
use ringcrawl::ring::Runtime;
use ringcrawl::time::Instant;
use ringcrawl::url::Url;

/// A folder with an authority's certificate and a server's certificate and key.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let place = Place(std::env::temp_dir().join(format!("ringcrawl-openssl-{name}-{}", std::process::id())));
        std::fs::create_dir_all(&place.0).expect("a folder");
        let mut params = rcgen::CertificateParams::new(Vec::new()).expect("params");
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let root = rcgen::CertifiedIssuer::self_signed(params, rcgen::KeyPair::generate().expect("key")).expect("root");
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256).expect("key");
        let params = rcgen::CertificateParams::new(vec!["*.example.test".to_owned()]).expect("params");
        let certificate = params.signed_by(&key, &root).expect("certificate");
        for (file, text) in [("root", root.pem()), ("server", certificate.pem()), ("key", key.serialize_pem())] {
            std::fs::write(place.file(file), text).expect("write");
        }
        place
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name).with_extension("pem")
    }

    /// A server with these options besides.
    fn server(&self, options: &[&str]) -> Server {
        let mut child = Command::new("openssl")
            .args(["s_server", "-www", "-accept", "127.0.0.1:0"])
            .args(options)
            .arg("-cert")
            .arg(self.file("server"))
            .arg("-key")
            .arg(self.file("key"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("openssl(1), which this test needs");
        // It says where it listens, and then more with each connection: the pipe stays open, and holds that.
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        while !line.starts_with("ACCEPT") {
            line.clear();
            assert!(output.read_line(&mut line).expect("text") > 0, "openssl s_server {options:?} ended");
        }
        let port = line.trim_end().rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
        Server { child, port, _output: output }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

struct Server {
    child: Child,
    port: u16,
    _output: BufReader<std::process::ChildStdout>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn with_hands<F: Future<Output = ()>>(place: &Place, test: impl FnOnce(Rc<Hands>) -> F) {
    let mut config = Config::default();
    config.fetch.in_flight_max = 8;
    config.fetch.private_addresses = PrivateAddresses::Loopback;
    config.dns.servers = vec![([127, 0, 0, 1], 9).into()];
    config.tls.ca_files = vec![place.file("root")];
    let runtime = Runtime::new(16).expect("io_uring");
    runtime.block_on(async {
        let hands = Rc::new(Hands::new(&config, "testcrawl/1.0".to_owned()).expect("hands"));
        test(hands).await;
    });
}

async fn get(hands: &Rc<Hands>, host: &str, server: &Server) -> Result<Exchange, Failure> {
    let job = FetchJob {
        id: 1,
        host: 0,
        kind: JobKind::Page,
        url: Url::parse(&format!("https://{host}.example.test:{}/", server.port)).expect("url"),
        addr: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        others: Vec::new(),
        both_families: false,
        depth: 0,
        attempt: 0,
        deadline: Instant::NEVER,
        rest: ringcrawl::time::Duration::ZERO,
    };
    hands.exchange(&job).await
}

#[test]
fn sessions_are_resumed() {
    let place = Place::new("sessions");
    for (options, version) in [
        (&["-tls1_3"][..], "TLSv1_3"),
        (&["-tls1_3", "-no_ticket"], "TLSv1_3"),
        (&["-tls1_2"], "TLSv1_2"),
        (&["-tls1_2", "-no_ticket"], "TLSv1_2"),
    ] {
        let server = place.server(options);
        with_hands(&place, |hands| async move {
            for round in 0..4 {
                let exchange = get(&hands, "www", &server).await.expect("a page");
                assert_eq!(exchange.response.status, 200);
                // In its own words.
                let page = String::from_utf8_lossy(&exchange.response.body).into_owned();
                assert_eq!(page.contains("Reused, TLSv1"), round > 0, "{options:?}, {round}: {page}");
                assert_eq!(exchange.tls.expect("tls").version, version);
            }
            let counters = hands.counters();
            let counts = |hands: &Rc<Hands>| {
                let counters = hands.counters();
                [counters.handshakes.get(), counters.resumed.get(), counters.chains_recognized.get()]
            };
            assert_eq!(counts(&hands), [4, 3, 0], "{options:?}: {counters:?}");
            // Another host of that server: no session, but the chain is known.
            get(&hands, "other", &server).await.expect("a page");
            assert_eq!(counts(&hands), [5, 3, 1], "{options:?}: {counters:?}");
        });
    }
}

#[test]
fn servers_that_cannot_be_talked_to() {
    let place = Place::new("others");
    for (options, failure) in [
        (&["-tls1", "-cipher", "DEFAULT@SECLEVEL=0"][..], Failure::TlsVersion),
        (&["-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"], Failure::TlsVersion),
        (&["-tls1_3", "-alpn", "h2"], Failure::TlsNoHttp1),
        (&["-tls1_2", "-alpn", "h2"], Failure::TlsNoHttp1),
        (&["-tls1_2", "-cipher", "AES256-SHA"], Failure::TlsNothingCommon),
        (&["-tls1_3", "-groups", "P-521"], Failure::TlsNothingCommon),
    ] {
        let server = place.server(options);
        with_hands(&place, |hands| async move {
            let start = std::time::Instant::now();
            assert_eq!(get(&hands, "www", &server).await.err(), Some(failure), "{options:?}");
            assert!(start.elapsed() < Duration::from_secs(9), "it was told at once, not by a timeout");
            assert_eq!((hands.counters().handshakes.get(), hands.open_connections()), (0, 0));
        });
    }
}
