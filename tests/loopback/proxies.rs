//! Proxies: tinyproxy and microsocks where they are installed, and such as no sane person runs.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ringcrawl_base::Failure;
use ringcrawl_brain::outcome::Outcome;
use ringcrawl_config::{Config, PrivateAddresses};
use ringcrawl_crawler::fetch::Resolver;

use crate::rig::hands::*;
use crate::rig::servers::*;
use crate::rig::skip;
use ringcrawl_base::TempFolder;

/// A program that ends with the test.
struct Running {
    child: Child,
    addr: SocketAddr,
    _folder: TempFolder,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that was free a moment ago.
fn free() -> SocketAddr {
    TcpListener::bind((LOOPBACK, 0)).and_then(|listener| listener.local_addr()).expect("a free port")
}

/// Starts a proxy and waits until it listens; `None` with a word where it is not installed.
fn start(program: &str, addr: SocketAddr, arguments: &[&str], folder: TempFolder) -> Option<Running> {
    let mut command = Command::new(program);
    let Ok(child) = command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn() else {
        skip(&format!("no {program}"));
        return None;
    };
    let running = Running { child, addr, _folder: folder };
    for _ in 0..500 {
        if TcpStream::connect(addr).is_ok() {
            return Some(running);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{program} does not listen");
}

fn tinyproxy(login: &str) -> Option<Running> {
    let addr = free();
    let (folder, port) = (TempFolder::new("tinyproxy"), addr.port());
    let text = format!("Port {port}\nListen 127.0.0.1\nTimeout 10\nMaxClients 20\nLogLevel Critical\n{login}");
    let name = folder.file("tinyproxy.conf", &text);
    start("tinyproxy", addr, &["-d", "-c", &name], folder)
}

fn microsocks(login: &[&str]) -> Option<Running> {
    let addr = free();
    let port = addr.port().to_string();
    start("microsocks", addr, &[&["-i", "127.0.0.1", "-p", &port], login].concat(), TempFolder::new("microsocks"))
}

fn through(scheme: &str, login: &str, addr: SocketAddr, more: &str) -> Config {
    let at = if login.is_empty() { String::new() } else { format!("{login}@") };
    let mut config =
        config_with(&format!("[proxy]\nurl = \"{scheme}://{at}{addr}\"\n{more}\n[tls]\ncertificates = \"record\"\n"));
    config.fetch.connect_timeout = Duration::from_secs(2);
    config.fetch.tls_timeout = Duration::from_secs(5);
    config
}

#[test]
fn an_http_proxy_gets_pages_whole_and_tunnels_https() {
    let (plain, asked) = noting_server(|_| String::new());
    let (secure, asked_securely) = secure_server();
    let Some(proxy) = tinyproxy("BasicAuth crawler sesame\n") else { return };
    let http = format!("http://localhost:{}/a?b", plain.port());
    let https = format!("https://www.example.test:{}/c", secure.port());
    let closed = ClosedPort::new();
    let dead = format!("https://www.example.test:{}/c", closed.addr().port());
    with_hands(&through("http", "crawler:sesame", proxy.addr, ""), |hands| {
        let (http, https, dead) = (http.clone(), https.clone(), dead);
        async move {
            let exchange = get(&hands, &http).await.expect("by the proxy");
            assert_eq!((exchange.response.body.as_slice(), exchange.ip, exchange.secure), (&b"ok"[..], None, false));
            assert!(last(&asked, "Via").is_some_and(|via| via.contains("tinyproxy")), "{asked:?}");
            assert_eq!(last(&asked, "Proxy-Authorization"), None, "it is the proxy's alone");
            let stored = String::from_utf8(exchange.request_bytes).expect("text");
            assert!(stored.starts_with(&format!("GET {http} HTTP/1.1\r\n")), "{stored}");
            assert!(stored.contains("\r\nProxy-Authorization: (removed)\r\n"), "{stored}");

            for reused in [false, true] {
                let exchange = get(&hands, &https).await.expect("through a tunnel");
                assert_eq!((exchange.response.body.as_slice(), exchange.ip), (&b"ok"[..], Some(LOOPBACK)));
                assert_eq!((exchange.secure, exchange.reused), (true, reused));
                let stored = String::from_utf8(exchange.request_bytes).expect("text");
                assert!(stored.starts_with("GET /c HTTP/1.1\r\n") && !stored.contains("Proxy"), "{stored}");
            }
            assert_eq!((last(&asked_securely, "Via"), last(&asked_securely, "Proxy-Authorization")), (None, None));
            // The proxy's word for a peer that is not there.
            assert!(matches!(get(&hands, &dead).await.err(), Some(Failure::ConnectFailed | Failure::ProxyFailed)));
        }
    });
    for login in ["", "crawler:wrong"] {
        let (http, https) = (http.clone(), https.clone());
        with_hands(&through("http", login, proxy.addr, ""), |hands| async move {
            match get(&hands, &http).await {
                // tinyproxy answers wrong credentials by 401, which is a server's word (RFC 9110 section 15.5.2).
                Ok(exchange) => assert_eq!((exchange.response.status, login), (401, "crawler:wrong")),
                Err(failure) => assert_eq!((failure, login), (Failure::ProxyRefused, "")),
            }
            assert_eq!(get(&hands, &https).await.err(), Some(Failure::ProxyRefused));
            assert_eq!(hands.idle_connections(), 0);
        });
    }
}

#[test]
fn a_socks_proxy_tunnels_everything() {
    let (plain, asked) = noting_server(|_| String::new());
    let (secure, _) = secure_server();
    let Some(proxy) = microsocks(&["-u", "crawler", "-P", "sesame"]) else { return };
    let at =
        move |host: &str| [format!("http://{host}:{}/a", plain.port()), format!("https://{host}:{}/a", secure.port())];
    let closed = ClosedPort::new();
    let refused = format!("http://www.example.test:{}/", closed.addr().port());
    with_hands(&through("socks5", "crawler:sesame", proxy.addr, ""), |hands| async move {
        for url in at("www.example.test") {
            for reused in [false, true] {
                let exchange = get(&hands, &url).await.expect("through the tunnel");
                assert_eq!((exchange.response.body.as_slice(), exchange.ip), (&b"ok"[..], Some(LOOPBACK)), "{url}");
                assert_eq!(exchange.reused, reused);
            }
        }
        assert_eq!(last(&asked, "Host"), Some(format!("www.example.test:{}", plain.port())));
        assert_eq!(get(&hands, &refused).await.err(), Some(Failure::ConnectRefused));
    });
    for login in ["", "crawler:wrong"] {
        with_hands(&through("socks5", login, proxy.addr, ""), |hands| async move {
            for url in at("www.example.test") {
                assert_eq!(get(&hands, &url).await.err(), Some(Failure::ProxyRefused));
            }
        });
    }
}

#[test]
fn a_proxy_may_look_names_up() {
    let (plain, _) = noting_server(|_| String::new());
    let Some(proxy) = microsocks(&[]) else { return };
    let by_name = format!("http://localhost:{}/", plain.port());
    let by_address = format!("http://127.0.0.1:{}/", plain.port());
    let mut config = through("socks5", "", proxy.addr, "names = \"proxy\"");
    config.fetch.private_addresses = PrivateAddresses::Deny;
    // Nobody answers there: who asks it does not get far.
    config.dns.servers = vec![free()];
    with_hands(&config.clone(), |hands| async move {
        let resolver = Resolver::new(&config, hands.clone(), 1);
        let Outcome::Resolved { addrs, .. } = resolver.resolve("localhost", false).await else { panic!("a stand-in") };
        assert_eq!(resolver.queries(), 0);
        let mut named = job(&by_name);
        named.addr = addrs.first().copied();
        let exchange = hands.exchange(&named).await.expect("the proxy knows it");
        assert_eq!((exchange.response.body.as_slice(), exchange.ip), (&b"ok"[..], None));
        // An address in the URL is judged here, and a stand-in is one for its own host alone.
        assert_eq!(get(&hands, &by_address).await.err(), Some(Failure::AddressForbidden));
        let mut other = named.clone();
        other.url = ringcrawl_url::Url::parse("http://other.test/").expect("url");
        assert_eq!(hands.exchange(&other).await.err(), Some(Failure::AddressForbidden));
    });
}

/// The policy judges the peer, wherever the proxy is.
#[test]
fn forbidden_addresses_stay_forbidden_behind_a_proxy() {
    let (proxy, _) = noting_server(|_| String::new());
    let mut config = through("http", "", proxy, "");
    config.fetch.private_addresses = PrivateAddresses::Deny;
    with_hands(&config, |hands| async move {
        for url in ["http://www.example.test/", "https://www.example.test/"] {
            assert_eq!(get(&hands, url).await.err(), Some(Failure::AddressForbidden));
        }
        assert_eq!(hands.counters().connects.get(), 0);
    });
}

/// A proxy that says `words` to whatever it hears, and then closes or not.
fn odd_proxy(words: &'static [u8], then_close: bool) -> SocketAddr {
    let listener = TcpListener::bind((LOOPBACK, 0)).expect("bind");
    let addr = listener.local_addr().expect("address");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            std::thread::spawn(move || {
                let _ = stream.read(&mut [0; 2_048]);
                let _ = stream.write_all(words);
                while !then_close && stream.read(&mut [0; 2_048]).is_ok_and(|count| count > 0) {}
            });
        }
    });
    addr
}

#[test]
fn odd_proxies_are_failures() {
    const FLOOD: &[u8] = &[b'x'; 200_000];
    for (scheme, words, then_close, expected) in [
        ("http", &b""[..], true, Failure::ProxyFailed),
        ("http", b"HTTP/1.1 200", true, Failure::ProxyFailed),
        ("http", b"220 smtp.example.test\r\n", true, Failure::ProxyFailed),
        ("http", b"HTTP/1.1 200 OK\r\n\r\n\x16\x03\x03 what no server said yet", false, Failure::ProxyFailed),
        ("http", b"HTTP/1.1 500 Oops\r\n\r\n", false, Failure::ProxyFailed),
        ("http", b"HTTP/1.1 403 No\r\nContent-Length: 1000\r\n\r\n", false, Failure::ProxyRefused),
        ("http", FLOOD, false, Failure::ProxyFailed),
        ("http", b"", false, Failure::ConnectTimeout),
        ("socks5", b"", true, Failure::ProxyFailed),
        ("socks5", b"HTTP/1.1 400 Bad Request\r\n\r\n", true, Failure::ProxyFailed),
        ("socks5", b"\x05\xff", true, Failure::ProxyRefused),
        ("socks5", FLOOD, false, Failure::ProxyFailed),
        ("socks5", b"\x05", false, Failure::ConnectTimeout),
    ] {
        let mut config = through(scheme, "", odd_proxy(words, then_close), "");
        config.fetch.connect_timeout = Duration::from_millis(500);
        with_hands(&config, |hands| async move {
            let result = get(&hands, "https://www.example.test/").await;
            let shown = words.get(..30).unwrap_or(words).escape_ascii();
            assert_eq!(result.err(), Some(expected), "{scheme} {shown}");
            assert_eq!((hands.open_connections(), hands.buffers_lent()), (0, 0));
        });
    }
    let closed = ClosedPort::new();
    with_hands(&through("http", "", closed.addr(), ""), |hands| async move {
        for url in ["http://www.example.test/", "https://www.example.test/"] {
            assert_eq!(get(&hands, url).await.err(), Some(Failure::ProxyUnreachable));
        }
    });
}
