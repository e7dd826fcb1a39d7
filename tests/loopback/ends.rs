//! How exchanges end that do not go well: silence, slowness, resets, bytes that make no sense.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

use ringcrawl_base::Rng;
use ringcrawl_base::time::Instant;
use ringcrawl_base::{Failure, Truncated};
use ringcrawl_brain::job::FetchJob;
use ringcrawl_ring as ring;

use super::secure::secure;
use crate::rig::hands::*;
use crate::rig::servers::*;

#[test]
fn silence_ends_in_time() {
    let (silent, _) = server(|mut stream, _| {
        read_request(&mut stream);
        std::thread::sleep(Duration::from_secs(10));
    });
    let (half_head, _) = server(|mut stream, _| {
        read_request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nX: ");
        std::thread::sleep(Duration::from_secs(10));
    });
    let (dripping, _) = server(|mut stream, _| {
        read_request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\na first drop");
        while stream.write_all(b"drip").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let mut config = config();
    config.fetch.rate_min = 0;
    // Not before its time, and which limit it was, is what can be asserted on a machine that has other work.
    let after = |least_ms: u64, start: Instant| assert!(ring::now().since(start).as_millis() >= u128::from(least_ms));
    config.fetch.first_byte_timeout = Duration::from_millis(200);
    with_hands(&config, |hands| async move {
        let start = ring::now();
        assert_eq!(get(&hands, &url(silent, "/")).await.err(), Some(Failure::FirstByteTimeout));
        after(200, start);
    });
    config.fetch.first_byte_timeout = Duration::from_secs(5);
    config.fetch.deadline = Duration::from_millis(600);
    with_hands(&config, |hands| async move {
        let start = ring::now();
        assert_eq!(get(&hands, &url(half_head, "/")).await.err(), Some(Failure::Deadline));
        after(600, start);
        let start = ring::now();
        let exchange = get(&hands, &url(dripping, "/")).await.expect("what came is kept");
        assert_eq!(exchange.response.truncated, Some(Truncated::Time));
        assert!(exchange.response.body.starts_with(b"a first drop"), "{}", exchange.response.body.len());
        after(600, start);
        // The job's own deadline counts too.
        let mut early = job(&url(silent, "/"));
        early.deadline = ring::now() + Duration::from_millis(50);
        assert_eq!(hands.exchange(&early).await.err(), Some(Failure::Deadline));
        early.deadline = Instant::ZERO;
        assert_eq!(hands.exchange(&early).await.err(), Some(Failure::Deadline));
        assert_eq!(hands.idle_connections(), 0);
    });
}

#[test]
fn a_body_that_comes_too_slowly_is_cut_and_kept() {
    // 100 bytes every 50 ms, and then no more of them.
    let (dripping, _) = server(|mut stream, _| {
        read_request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
        while stream.write_all(&[b'x'; 100]).is_ok() {
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    // A head that takes longer than any grace, and a body that comes at once.
    let (slow_head, _) = server(|mut stream, _| {
        read_request(&mut stream);
        for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n".chunks(2) {
            let _ = stream.write_all(byte);
            std::thread::sleep(Duration::from_millis(40));
        }
        let _ = stream.write_all(b"ab");
    });
    let mut config = config();
    config.fetch.rate_grace = Duration::from_millis(300);
    config.fetch.rate_min = 100_000;
    with_hands(&config, |hands| async move {
        let start = ring::now();
        let exchange = get(&hands, &url(dripping, "/")).await.expect("what came is kept");
        // For its pace, and not by the deadline.
        assert_eq!((exchange.response.truncated, exchange.slow), (Some(Truncated::Time), true));
        assert!(ring::now().since(start) >= Duration::from_millis(300));
        assert!(exchange.response.body.len() >= 100, "{}", exchange.response.body.len());
        let exchange = get(&hands, &url(slow_head, "/")).await.expect("heads may take their time");
        assert_eq!((exchange.response.truncated, exchange.slow), (None, false));
        assert_eq!(exchange.response.body, b"ab");
    });
    config.fetch.rate_min = 100;
    config.fetch.deadline = Duration::from_millis(900);
    config.fetch.first_byte_timeout = Duration::from_millis(900);
    with_hands(&config, |hands| async move {
        // Fast enough: only the deadline ends it.
        let exchange = get(&hands, &url(dripping, "/")).await.expect("what came is kept");
        assert_eq!((exchange.response.truncated, exchange.slow), (Some(Truncated::Time), false));
        assert!(exchange.response.body.len() >= 400, "{}", exchange.response.body.len());
    });
}

/// A long body asks for memory at each piece: that alone must not forgive it anything.
#[test]
fn a_long_body_that_drips_is_cut_for_its_pace() {
    let (long, _) = server(|mut stream, _| {
        read_request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
        let _ = stream.write_all(&[b'x'; 200_000]);
        while stream.write_all(b"x").is_ok() {
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    let mut config = config();
    config.fetch.rate_grace = Duration::from_millis(300);
    config.fetch.rate_min = 1_000;
    with_hands(&config, |hands| async move {
        let exchange = get(&hands, &url(long, "/")).await.expect("what came is kept");
        assert_eq!((exchange.response.truncated, exchange.slow), (Some(Truncated::Time), true));
        assert!(exchange.response.body.len() >= 200_000 && exchange.timings.total < Duration::from_secs(3));
    });
}

/// A fetch that was given less time than it may have is not kept where that time cut it.
#[test]
fn what_a_hurried_fetch_brought_is_kept_only_when_it_is_whole() {
    let (late, _) = server(|mut stream, _| {
        read_request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome");
        std::thread::sleep(Duration::from_secs(2));
    });
    let (good, _) = server(|mut stream, _| {
        read_request(&mut stream);
        respond(&mut stream, "all");
    });
    with_hands(&config(), |hands| async move {
        let soon = |addr, is_hurried| {
            let deadline = ring::now() + Duration::from_millis(300);
            FetchJob { deadline, is_hurried, ..job(&url(addr, "/")) }
        };
        let kept = hands.exchange(&soon(late, false)).await.expect("what came is kept");
        assert_eq!(kept.response.truncated, Some(Truncated::Time));
        assert_eq!(hands.exchange(&soon(late, true)).await.err(), Some(Failure::Hurried));
        assert_eq!(hands.exchange(&soon(good, true)).await.expect("whole").response.body, b"all");
    });
}

#[test]
fn broken_connections() {
    let (reset_before, _) = server(|stream, _| reset_after(stream, b""));
    let (reset_in_head, _) = server(|stream, _| reset_after(stream, b"HTTP/1.1 200 OK\r\n"));
    let (reset_in_body, _) =
        server(|stream, _| reset_after(stream, b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome"));
    let (closed_at_once, _) = server(|mut stream, _| {
        read_request(&mut stream);
    });
    let (closed_in_head, _) = server(|mut stream, _| {
        read_request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200");
    });
    let (closed_in_body, _) = server(|mut stream, _| {
        read_request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome");
    });
    let (until_close, _) = server(|mut stream, _| {
        read_request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nall of it");
    });
    let (junk, _) = server(|mut stream, _| {
        read_request(&mut stream);
        let _ = stream.write_all(b"220 smtp.example.test ready\r\n\r\n");
    });
    let (ancient, _) = server(|mut stream, _| {
        read_request(&mut stream);
        let _ = stream.write_all(b"<html>what a page was in 1991</html>");
    });
    let (endless_head, _) = server(|mut stream, _| {
        read_request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n");
        while stream.write_all(b"X-Header: again and again and again\r\n").is_ok() {}
    });
    with_hands(&config(), |hands| async move {
        let failure = async |addr| get(&hands, &url(addr, "/")).await.err();
        assert_eq!(failure(reset_before).await, Some(Failure::Reset));
        assert_eq!(failure(reset_in_head).await, Some(Failure::Reset));
        assert_eq!(failure(closed_at_once).await, Some(Failure::ClosedEarly));
        assert_eq!(failure(closed_in_head).await, Some(Failure::ClosedEarly));
        assert_eq!(failure(junk).await, Some(Failure::Malformed));
        assert_eq!(failure(ancient).await, Some(Failure::Http09));
        assert_eq!(failure(endless_head).await, Some(Failure::HeadTooLarge));
        for addr in [reset_in_body, closed_in_body] {
            let response = get(&hands, &url(addr, "/")).await.expect("head came").response;
            assert_eq!((response.truncated, response.body.as_slice()), (Some(Truncated::Disconnect), &b"some"[..]));
        }
        let response = get(&hands, &url(until_close, "/")).await.expect("whole").response;
        assert_eq!((response.truncated, response.body.as_slice()), (None, &b"all of it"[..]));
        assert_eq!(hands.idle_connections(), 0);
    });
}

#[test]
fn connections_that_do_not_come_about() {
    let closed = ClosedPort::new();
    let mut config = config();
    config.fetch.connect_timeout = Duration::from_millis(300);
    with_hands(&config, |hands| async move {
        assert_eq!(get(&hands, &url(closed.addr(), "/")).await.err(), Some(Failure::ConnectRefused));
        let mut forbidden = job("http://www.example.test/");
        forbidden.addr = Some(IpAddr::from([10, 0, 0, 1]));
        assert_eq!(hands.exchange(&forbidden).await.err(), Some(Failure::AddressForbidden));
        assert_eq!(hands.counters().connects.get(), 1);

        // A listener whose queue is full drops further connection requests.
        let full = tokio::net::TcpSocket::new_v4().expect("socket");
        full.bind(SocketAddr::new(LOOPBACK, 0)).expect("bind");
        let full = full.listen(1).expect("listen");
        let addr = full.local_addr().expect("address");
        let fill: Vec<_> = (0..2).map(|_| TcpStream::connect_timeout(&addr, Duration::from_millis(200))).collect();
        let start = ring::now();
        assert_eq!(get(&hands, &url(addr, "/")).await.err(), Some(Failure::ConnectTimeout));
        assert!(ring::now().since(start) >= Duration::from_millis(300));
        drop(fill);
    });
}

#[test]
fn hostile_bytes_end_every_exchange() {
    // Answers with bits turned over, cut anywhere, in pieces; over plain HTTP and where TLS is expected.
    let (addr, _) = server(|mut stream, number| {
        let mut rng = Rng::new(number as u64);
        let mut random = move |below: usize| rng.index(below);
        let mut bytes = match random(3) {
            0 => b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789".to_vec(),
            1 => b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n0\r\n\r\n".to_vec(),
            _ => b"\x16\x03\x03\x00\x40\x02\x00\x00\x3c\x03\x03HTTP/1.1 200 OK\r\n\r\n0123456789".to_vec(),
        };
        for _ in 0..random(6) {
            let place = random(bytes.len());
            bytes[place] ^= 1 << random(8);
        }
        bytes.truncate(random(bytes.len() + 20));
        let _ = stream.read(&mut [0; 2_048]);
        for piece in bytes.chunks(1 + random(20)) {
            let _ = stream.write_all(piece);
        }
        if random(20) == 0 {
            std::thread::sleep(Duration::from_millis(400));
        }
    });
    let mut config = config();
    config.fetch.tls_timeout = Duration::from_millis(200);
    config.fetch.first_byte_timeout = Duration::from_millis(200);
    config.fetch.deadline = Duration::from_millis(300);
    with_hands(&config, |hands| async move {
        let mut answered = 0;
        for round in 0..600 {
            let url = if round % 3 == 0 { secure(addr) } else { url(addr, "/") };
            answered += usize::from(get(&hands, &url).await.is_ok());
        }
        assert!((20..500).contains(&answered), "{answered}");
    });
}
