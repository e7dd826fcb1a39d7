//! The same over TLS, with certificates of every kind.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use ringcrawl_base::{Failure, Truncated};
use ringcrawl_config::Certificates;

use crate::rig::certificates::Authority;
use crate::rig::hands::*;
use crate::rig::servers::{read_request, respond, server};

/// A TLS server for `name`, whose certificate is the authority's and valid until the start of `until_year`.
fn secure_server(
    authority: &Authority,
    name: &str,
    until_year: i32,
    serve: impl Fn(&mut rustls::StreamOwned<rustls::ServerConnection, TcpStream>) + Send + Sync + 'static,
) -> SocketAddr {
    let config = authority.server(name, until_year);
    let (addr, _) = server(move |stream, _| {
        let connection = rustls::ServerConnection::new(config.clone()).expect("server");
        serve(&mut rustls::StreamOwned::new(connection, stream));
    });
    addr
}

pub fn secure(addr: SocketAddr) -> String {
    format!("https://www.example.test:{}/", addr.port())
}

fn respond_often(stream: &mut rustls::StreamOwned<rustls::ServerConnection, TcpStream>) {
    while read_request(stream).is_some() {
        respond(stream, "secret");
    }
}

#[test]
fn tls_verified() {
    let (authority, stranger) = (Authority::new("verify"), Authority::new("verify-stranger"));
    let good = secure_server(&authority, "www.example.test", 2099, respond_often);
    let expired = secure_server(&authority, "www.example.test", 2021, respond_often);
    let wrong_name = secure_server(&authority, "other.example.test", 2099, respond_often);
    let by_address = secure_server(&authority, "127.0.0.1", 2099, respond_often);
    let unknown = secure_server(&stranger, "www.example.test", 2099, respond_often);
    let (plain, _) = server(|mut stream, _| {
        let _ = stream.read(&mut [0; 4_096]);
        respond(&mut stream, "no TLS here");
    });
    let (mute, _) = server(|_stream, _| std::thread::sleep(Duration::from_secs(10)));
    let (closing, _) = server(|mut stream, _| drop(stream.read(&mut [0; 4_096])));
    let mut config = config();
    config.tls.ca_files = vec![authority.file()];
    config.fetch.tls_timeout = Duration::from_millis(300);
    with_hands(&config, |hands| async move {
        for reused in [false, true] {
            let exchange = get(&hands, &secure(good)).await.expect("good");
            assert_eq!(exchange.response.body, b"secret");
            assert_eq!((exchange.secure, exchange.reused), (true, reused));
            let tls = exchange.tls.expect("tls");
            assert_eq!((tls.version, tls.certificate_error), ("TLSv1_3", None));
            assert!(tls.cipher.starts_with("TLS_"), "{}", tls.cipher);
        }
        let bare = format!("https://127.0.0.1:{}/", by_address.port());
        assert_eq!(get(&hands, &bare).await.expect("by address").response.body, b"secret");
        for (bad, why) in
            [(expired, Failure::TlsExpired), (wrong_name, Failure::TlsName), (unknown, Failure::TlsIssuer)]
        {
            assert_eq!(get(&hands, &secure(bad)).await.err(), Some(why));
        }
        assert_eq!(get(&hands, &secure(plain)).await.err(), Some(Failure::TlsFailed));
        assert_eq!(get(&hands, &secure(closing)).await.err(), Some(Failure::TlsFailed));
        assert_eq!(get(&hands, &secure(mute)).await.err(), Some(Failure::TlsTimeout));
        assert_eq!(hands.counters().handshakes.get(), 2);
    });
}

#[test]
fn tls_recorded() {
    let (authority, stranger) = (Authority::new("record"), Authority::new("record-stranger"));
    let close_each = |stream: &mut rustls::StreamOwned<rustls::ServerConnection, TcpStream>| {
        read_request(stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nsecret");
        stream.conn.send_close_notify();
        let _ = stream.flush();
    };
    let good = secure_server(&authority, "www.example.test", 2099, close_each);
    let expired = secure_server(&authority, "www.example.test", 2021, close_each);
    let wrong_name = secure_server(&authority, "other.example.test", 2099, close_each);
    let unknown = secure_server(&stranger, "www.example.test", 2099, close_each);
    let mut config = config();
    config.tls.ca_files = vec![authority.file()];
    config.tls.certificates = Certificates::Record;
    with_hands(&config, |hands| async move {
        // The second time the session is resumed: what is wrong is still wrong.
        for _ in 0..3 {
            for (addr, wrong) in [
                (good, None),
                (expired, Some("Expired")),
                (wrong_name, Some("NotValidForName")),
                (unknown, Some("Unknown")),
            ] {
                let exchange = get(&hands, &secure(addr)).await.expect("exchange");
                assert_eq!(exchange.response.body, b"secret");
                let error = exchange.tls.expect("tls").certificate_error;
                match (wrong, &error) {
                    (None, None) => {}
                    (Some("Expired"), Some(text)) => assert!(text.contains("expired"), "{text}"),
                    (Some("NotValidForName"), Some(text)) => assert!(text.contains("not valid for name"), "{text}"),
                    (Some(_), Some(text)) => assert!(text.contains("UnknownIssuer"), "{text}"),
                    _ => panic!("{wrong:?}, but {error:?}"),
                }
            }
        }
        assert_eq!(hands.counters().handshakes.get(), 12);
    });
}

#[test]
fn tls_ends() {
    let authority = Authority::new("ends");
    let head = b"HTTP/1.1 200 OK\r\n\r\nall of it";
    let announced = secure_server(&authority, "www.example.test", 2099, move |stream| {
        read_request(stream);
        let _ = stream.write_all(head);
        stream.conn.send_close_notify();
        let _ = stream.flush();
    });
    let torn = secure_server(&authority, "www.example.test", 2099, move |stream| {
        read_request(stream);
        let _ = stream.write_all(head);
        let _ = stream.flush();
    });
    let garbled = secure_server(&authority, "www.example.test", 2099, move |stream| {
        read_request(stream);
        let _ = stream.write_all(head);
        let _ = stream.flush();
        let _ = stream.sock.write_all(&[23, 3, 3, 0, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        std::thread::sleep(Duration::from_millis(200));
    });
    let whole_but_torn = secure_server(&authority, "www.example.test", 2099, |stream| {
        read_request(stream);
        respond(stream, "all of it");
        let _ = stream.flush();
    });
    let large = secure_server(&authority, "www.example.test", 2099, |stream| {
        while read_request(stream).is_some() {
            respond(stream, &"0123456789".repeat(100_000));
        }
    });
    let mut config = config();
    config.tls.ca_files = vec![authority.file()];
    with_hands(&config, |hands| async move {
        for (addr, truncated) in [
            (announced, None),
            (torn, Some(Truncated::Disconnect)),
            (garbled, Some(Truncated::Disconnect)),
            (whole_but_torn, None),
        ] {
            let response = get(&hands, &secure(addr)).await.expect("head came").response;
            assert_eq!((response.body.as_slice(), response.truncated), (&b"all of it"[..], truncated));
        }
        for reused in [false, true] {
            let exchange = get(&hands, &secure(large)).await.expect("large");
            assert_eq!(exchange.response.body.len(), 1_000_000);
            assert_eq!(exchange.reused, reused);
        }
    });
}
