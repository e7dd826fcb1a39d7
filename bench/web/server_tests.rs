//! Tests of the server over real sockets, with plain blocking clients that share no code with it.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};

use super::answer::Answer;
use super::faults::Fault;
use super::faults::spot::Spot;
use super::model::ModelConfig;
use super::place::{Item, Place};
use super::server::{Running, Server, ServerConfig};
use ringcrawl_url::{Scheme, Url};

/// Head fields (lower-case names) and body of one response.
struct Response {
    status: u16,
    fields: BTreeMap<String, String>,
    body: Vec<u8>,
}

fn start(change: impl FnOnce(&mut ModelConfig, &mut ServerConfig)) -> Running {
    let mut model = ModelConfig { http_port: 0, https_port: 0, addresses: 3, ..ModelConfig::default() };
    let mut server = ServerConfig::default();
    change(&mut model, &mut server);
    Server::start(model, server).unwrap()
}

fn connect(running: &Running, url: &Url) -> TcpStream {
    let stream = TcpStream::connect((running.model().address_of(url.host()).unwrap(), url.port())).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

fn connect_tls(running: &Running, url: &Url) -> rustls::StreamOwned<rustls::ClientConnection, TcpStream> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(running.ca_pem.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(url.host().to_owned()).unwrap();
    let client = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    rustls::StreamOwned::new(client, connect(running, url))
}

fn request(method: &str, url: &Url, more: &str) -> Vec<u8> {
    format!("{method} {} HTTP/1.1\r\nHost: {}\r\n{more}\r\n", url.path_and_query(), url.authority()).into_bytes()
}

fn read_response(stream: &mut impl Read, is_head: bool) -> Response {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let mut lines = head.trim_end().split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let fields: BTreeMap<String, String> = lines
        .map(|line| line.split_once(": ").unwrap())
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let mut body = Vec::new();
    if is_head {
    } else if let Some(length) = fields.get("content-length") {
        body.resize(length.parse().unwrap(), 0);
        stream.read_exact(&mut body).unwrap();
    } else {
        assert_eq!(fields["transfer-encoding"], "chunked");
        loop {
            let mut line = Vec::new();
            while !line.ends_with(b"\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                line.push(byte[0]);
            }
            let line = String::from_utf8(line).unwrap();
            let size = usize::from_str_radix(line.trim_end().split(';').next().unwrap(), 16).unwrap();
            let start = body.len();
            body.resize(start + size, 0);
            stream.read_exact(&mut body[start..]).unwrap();
            stream.read_exact(&mut [0; 2]).unwrap();
            if size == 0 {
                break;
            }
        }
    }
    Response { status, fields, body }
}

fn expected(running: &Running, url: &Url) -> (Answer, Vec<u8>) {
    let mut body = Vec::new();
    let answer = running.model().answer_url(url, &mut body);
    (answer, body)
}

/// Pages of a site of the scheme, all on one host, so that one connection serves them.
fn some_urls(running: &Running, scheme: Scheme, chunked: bool) -> Vec<Url> {
    let site = (0..)
        .map_while(|number| running.model().site(number))
        .find(|site| site.https == (scheme == Scheme::Https) && site.chunked == chunked && site.pages >= 8)
        .unwrap();
    let items = (0..site.pages.min(12)).map(Item::Page).chain([Item::Go(1), Item::Missing(3), Item::Robots]);
    let urls: Vec<Url> =
        items.map(|item| running.model().url_of(&Place::canonical(site.number, item)).unwrap()).collect();
    urls.iter().filter(|url| url.host() == urls[0].host()).cloned().collect()
}

fn check_all(running: &Running, stream: &mut (impl Read + Write), urls: &[Url]) {
    for url in urls {
        let (answer, body) = expected(running, url);
        for (method, more) in [("GET", ""), ("HEAD", ""), ("GET", "Accept-Encoding: br;q=1, gzip\r\n")] {
            stream.write_all(&request(method, url, more)).unwrap();
            let response = read_response(stream, method == "HEAD");
            assert_eq!(response.status, answer.status, "{}", url.as_str());
            assert_eq!(response.fields.get("location"), answer.location.as_ref());
            assert_eq!(response.fields.contains_key("transfer-encoding"), answer.chunked);
            if method == "HEAD" {
                continue;
            }
            let mut plain = response.body;
            let is_gzip = response.fields.get("content-encoding").is_some_and(|coding| coding == "gzip");
            assert_eq!(is_gzip, answer.status == 200 && !more.is_empty() && !url.as_str().ends_with("/robots.txt"));
            if is_gzip {
                let coded = std::mem::take(&mut plain);
                flate2::read::GzDecoder::new(coded.as_slice()).read_to_end(&mut plain).unwrap();
            }
            assert!(plain == body, "{}", url.as_str());
        }
    }
}

#[test]
fn http_and_https_are_served_as_modelled() {
    let running = start(|model, server| {
        model.sites = 60;
        model.pages = 3_000;
        server.threads = 2;
    });
    for chunked in [false, true] {
        let urls = some_urls(&running, Scheme::Http, chunked);
        assert!(urls.len() > 5);
        check_all(&running, &mut connect(&running, &urls[0]), &urls);
        let urls = some_urls(&running, Scheme::Https, chunked);
        assert!(urls.len() > 5);
        check_all(&running, &mut connect_tls(&running, &urls[0]), &urls);
    }
    let report = running.stop();
    assert_eq!(report.requests, report.statuses.values().sum::<u64>());
    assert!(report.statuses[&200] > 60 && report.statuses[&404] > 3 && report.watch.is_none());
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let running = start(|_, _| ());
    let urls = some_urls(&running, Scheme::Http, false);
    let mut stream = connect(&running, &urls[0]);
    let all: Vec<u8> = urls.iter().flat_map(|url| request("GET", url, "")).collect();
    stream.write_all(&all).unwrap();
    for url in &urls {
        assert!(read_response(&mut stream, false).body == expected(&running, url).1);
    }
}

#[test]
fn bad_requests_are_refused() {
    let running = start(|_, _| ());
    let url = some_urls(&running, Scheme::Http, false).remove(0);
    let host = url.authority();
    let long = format!("GET / HTTP/1.1\r\nHost: {host}\r\nX: {}\r\n\r\n", "x".repeat(20_000));
    let many = format!("GET / HTTP/1.1\r\nHost: {host}\r\n{}\r\n", "X: y\r\n".repeat(70));
    for (text, status) in [
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), 400),
        (format!("GET / HTTP/1.1\r\nHost: {host}\r\nHost: {host}\r\n\r\n"), 400),
        (format!("GET * HTTP/1.1\r\nHost: {host}\r\n\r\n"), 400),
        ("GET / HTTP/1.1\r\nHost: nowhere.test\r\n\r\n".to_owned(), 421),
        (format!("POST / HTTP/1.1\r\nHost: {host}\r\n\r\n"), 405),
        (format!("GET / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 4\r\n\r\nbody"), 413),
        (format!("GET / HTTP/7.1\r\nHost: {host}\r\n\r\n"), 505),
        ("\x01\x02\x03 hello\r\n\r\n".to_owned(), 400),
        (format!("GET {} HTTP/1.1\r\nHost: x\r\n\r\n", url.as_str()), 200),
        (format!("GET / HTTP/1.0\r\nHost: {host}\r\n\r\n"), 200),
        (long, 431),
        (many, 431),
    ] {
        let mut stream = connect(&running, &url);
        stream.write_all(text.as_bytes()).unwrap();
        let response = read_response(&mut stream, false);
        assert_eq!(response.status, status, "{:?}", text.get(..60));
        if !matches!(status, 200 | 421) || text.contains("HTTP/1.0") {
            assert_eq!(response.fields["connection"], "close");
            assert_eq!(stream.read(&mut [0; 8]).unwrap(), 0);
        }
    }
    // A request truncated at each byte, and then nothing: no answer, no harm.
    let good = request("GET", &url, "");
    for end in 0..good.len() {
        let mut stream = connect(&running, &url);
        stream.write_all(&good[..end]).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(stream.read_to_end(&mut Vec::new()).unwrap(), 0, "{end}");
    }
    let mut stream = connect(&running, &url);
    stream.write_all(&good).unwrap();
    assert_eq!(read_response(&mut stream, false).status, 200);
}

#[test]
fn the_name_server_answers_and_the_watch_watches() {
    use hickory_proto::op::{Message, MessageType, OpCode, Query};
    use hickory_proto::rr::rdata::A;
    use hickory_proto::rr::{Name, RData, RecordType};

    let running = start(|_, server| server.watch = true);
    let url = some_urls(&running, Scheme::Http, false).remove(1);
    let mut question = Message::new(5, MessageType::Query, OpCode::Query);
    question.queries.push(Query::query(Name::from_ascii(format!("{}.", url.host())).unwrap(), RecordType::A));
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    socket.send_to(&question.to_vec().unwrap(), running.dns).unwrap();
    let mut buffer = [0; 1_500];
    let length = socket.recv(&mut buffer).unwrap();
    let answer = Message::from_vec(&buffer[..length]).unwrap();
    assert_eq!(answer.answers[0].data, RData::A(A(running.model().address_of(url.host()).unwrap())));

    let mut stream = connect(&running, &url);
    for path in ["/robots.txt", url.path_and_query(), url.path_and_query(), "/trap/7"] {
        stream.write_all(&request("GET", &url.join(path).unwrap(), "")).unwrap();
        read_response(&mut stream, false);
    }
    let report = running.stop();
    assert_eq!((report.requests, report.traps), (4, 1));
    let watch = report.watch.unwrap();
    assert_eq!((watch.double_fetches, watch.before_robots, watch.hosts, watch.urls), (1, 0, 1, 2));
    assert_eq!(watch.double_examples.len(), 1);
    assert!(watch.host_gap_ms_min.is_some_and(|gap| gap < 5_000.0));
}

#[test]
fn only_loopback_is_bound() {
    assert!(super::server::bind(Ipv4Addr::UNSPECIFIED, 0).is_err());
    assert!(super::server::bind(Ipv4Addr::new(192, 0, 2, 1), 0).is_err());
    let taken = start(|_, _| ());
    let taken_port = taken.http_port;
    drop(taken);
    // A stopped server has released its ports.
    let again = start(|model, _| model.http_port = taken_port);
    assert_eq!(again.http_port, taken_port);
}

#[test]
fn a_changing_page_is_confirmed_to_who_knows_it() {
    let running = start(|model, _| model.faults = "changing=1".parse().unwrap());
    let place = Place::canonical(0, Item::Fault(Fault::Changing, Spot::Page(1)));
    let url = running.model().url_of(&place).unwrap();
    let mut stream: Box<dyn Stream> = match url.scheme() {
        Scheme::Http => Box::new(connect(&running, &url)),
        Scheme::Https => Box::new(connect_tls(&running, &url)),
    };
    let mut get = |more: &str| {
        stream.write_all(&request("GET", &url, more)).unwrap();
        read_response(&mut stream, more.contains("If-None-Match: \"v0\""))
    };
    let first = get("");
    assert_eq!((first.status, first.fields["etag"].as_str()), (200, "\"v0\""));
    assert_eq!(get("If-None-Match: \"v0\"\r\n").status, 304);
    let third = get("If-None-Match: \"other\"\r\n");
    assert_eq!((third.status, third.fields["etag"].as_str()), (200, "\"v1\""));
    assert!(first.body != third.body);
}

trait Stream: Read + Write {}
impl<S: Read + Write> Stream for S {}
