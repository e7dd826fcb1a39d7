//! The hands against openssl(1), which is not the crawler's own TLS: sessions, and servers that cannot be talked to.
//!
//! Decides: `openssl s_server -www` answers each request with a page about its session and closes. Certificates are
//! made here.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;

use ringcrawl_base::Failure;
use ringcrawl_base::TempFolder;
use ringcrawl_brain::transaction::Transaction;
use ringcrawl_config::{Certificates, Config};
use ringcrawl_crawler::fetch::Hands;

use crate::rig::certificates::Authority;
use crate::rig::hands;

/// An authority, and a server's certificate and key.
struct Files {
    authority: Authority,
    server: [PathBuf; 2],
}

impl Files {
    fn new(name: &str) -> Files {
        let authority = Authority::new(name);
        let server = authority.rsa_files("*.example.test");
        Files { authority, server }
    }

    fn config(&self) -> Config {
        let mut config = hands::config_with("");
        config.tls.ca_files = vec![self.authority.file()];
        config
    }

    /// A server with these options besides.
    fn server(&self, options: &[&str]) -> Server {
        let [certificate, key] = &self.server;
        let mut child = Command::new("openssl")
            .args(["s_server", "-www", "-accept", "127.0.0.1:0"])
            .args(options)
            .arg("-cert")
            .arg(certificate)
            .arg("-key")
            .arg(key)
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

async fn get(hands: &Rc<Hands>, host: &str, server: &Server) -> Result<Transaction, Failure> {
    hands::get(hands, &format!("https://{host}.example.test:{}/", server.port)).await
}

#[test]
fn sessions_are_resumed() {
    let files = Files::new("sessions");
    for (options, version) in [
        (&["-tls1_3"][..], "TLSv1_3"),
        (&["-tls1_3", "-no_ticket"], "TLSv1_3"),
        (&["-tls1_2"], "TLSv1_2"),
        (&["-tls1_2", "-no_ticket"], "TLSv1_2"),
    ] {
        let server = files.server(options);
        hands::with_hands(&files.config(), |hands| async move {
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
    let files = Files::new("others");
    for (options, failure) in [
        (&["-tls1", "-cipher", "DEFAULT@SECLEVEL=0"][..], Failure::TlsVersion),
        (&["-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"], Failure::TlsVersion),
        (&["-tls1_3", "-alpn", "h2"], Failure::TlsNoHttp1),
        (&["-tls1_2", "-alpn", "h2"], Failure::TlsNoHttp1),
        (&["-tls1_2", "-cipher", "AES256-SHA"], Failure::TlsNothingCommon),
        (&["-tls1_3", "-groups", "P-521"], Failure::TlsNothingCommon),
    ] {
        let server = files.server(options);
        hands::with_hands(&files.config(), |hands| async move {
            assert_eq!(get(&hands, "www", &server).await.err(), Some(failure), "{options:?}");
            assert_eq!((hands.counters().handshakes.get(), hands.open_connections()), (0, 0));
        });
    }
}

/// Certificates as old devices have them: of version 1, with RSA keys of 1,024 bits, with an extension that nobody knows.
#[test]
fn old_certificates_are_recorded() {
    let folder = TempFolder::new("old-certificates");
    let [key, certificate] = ["key.pem", "server.pem"].map(|name| folder.at(name));
    let new = ["req", "-x509", "-newkey"];
    let of = ["-nodes", "-keyout", &key, "-out", &certificate, "-days", "30", "-subj", "/CN=www.example.test"];
    let critical = ["-addext", "1.2.3.4=critical,DER:0500"];
    let request = folder.at("request.pem");
    for (what, bits, extension, fault) in [
        ("version 1", "rsa:2048", &[][..], ""),
        ("short", "rsa:1024", &[], "1024 bits"),
        ("odd length", "rsa:1031", &[], "1031 bits"),
        ("critical", "rsa:2048", &critical, ""),
        ("critical and short", "rsa:1024", &critical, "1024 bits"),
    ] {
        openssl(&[&new, &[bits][..], &of, extension].concat());
        if what == "version 1" {
            openssl(&["req", "-new", "-key", &key, "-out", &request, "-subj", "/CN=www.example.test"]);
            openssl(&["x509", "-req", "-in", &request, "-signkey", &key, "-out", &certificate]);
        }
        let files =
            Files { authority: Authority::new("old"), server: [certificate.clone().into(), key.clone().into()] };
        for version in ["-tls1_3", "-tls1_2"] {
            let server = files.server(&[version, "-cipher", "DEFAULT@SECLEVEL=0"]);
            let mut config = files.config();
            config.tls.certificates = Certificates::Record;
            hands::with_hands(&config, |hands| async move {
                for round in 0..2 {
                    let exchange = get(&hands, "www", &server).await;
                    let exchange = exchange.unwrap_or_else(|failure| panic!("{what} {version}: {failure:?}"));
                    assert_eq!(exchange.response.status, 200);
                    let error = exchange.tls.and_then(|tls| tls.certificate_error).expect("a fault");
                    assert!(error.contains(fault), "{what} {version} {round}: {error}");
                    assert_eq!(error.contains("not checked"), !fault.is_empty(), "{what} {version} {round}: {error}");
                }
            });
        }
    }
}

fn openssl(arguments: &[&str]) {
    let done = Command::new("openssl").args(arguments).output().expect("openssl(1), which this test needs");
    assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
}
