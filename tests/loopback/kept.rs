//! Connections used again, and what comes over them.

use std::io::Write;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ringcrawl_brain::job::FetchJob;
use ringcrawl_ring as ring;

use crate::rig::hands::*;
use crate::rig::servers::*;

#[test]
fn a_connection_is_used_again() {
    let (addr, connections) = server(|mut stream, _| {
        while let Some(request) = read_request(&mut stream) {
            let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
            respond(&mut stream, &format!("you asked for {path}"));
        }
    });
    with_hands(&config(), |hands| async move {
        for number in 0..5 {
            let exchange = get(&hands, &url(addr, &format!("/{number}"))).await.expect("exchange");
            assert_eq!(exchange.response.status, 200);
            assert_eq!(exchange.response.body, format!("you asked for /{number}").as_bytes());
            assert_eq!(exchange.response.truncated, None);
            assert_eq!(exchange.reused, number > 0);
            assert_eq!((exchange.ip, exchange.secure, exchange.tls), (Some(LOOPBACK), false, None));
            let request = String::from_utf8(exchange.request_bytes).expect("text");
            assert!(request.starts_with(&format!("GET /{number} HTTP/1.1\r\n")), "{request}");
            assert!(request.contains("testcrawl/1.0"));
            assert!(exchange.timings.total >= exchange.timings.first_byte);
        }
        // Another name on the same address gets a connection of its own.
        let other = format!("http://other.example.test:{}/", addr.port());
        assert!(!get(&hands, &other).await.expect("exchange").reused);
        assert_eq!(connections.load(Ordering::SeqCst), 2);
        assert_eq!(hands.idle_connections(), 2);
        assert_eq!(hands.counters().reuses.get(), 4);
    });
}

/// Whoever rests for longer than a connection may idle gets it closed at once, and is told so beforehand.
#[test]
fn a_connection_that_would_idle_too_long_is_not_kept() {
    let (addr, connections) = server(|mut stream, _| {
        while let Some(request) = read_request(&mut stream) {
            respond(&mut stream, request.lines().find(|line| line.starts_with("Connection")).unwrap_or_default());
        }
    });
    let mut config = config();
    config.fetch.idle_timeout = Duration::from_secs(2);
    with_hands(&config, |hands| async move {
        for (rest, said, kept) in [(1_999, "keep-alive", 1), (2_000, "close", 0), (60_000, "close", 0)] {
            let job = FetchJob { rest: Duration::from_millis(rest), ..job(&url(addr, "/")) };
            let exchange = hands.exchange(&job).await.expect("exchange");
            assert_eq!(exchange.response.body, format!("Connection: {said}").as_bytes(), "{rest} ms");
            assert_eq!(hands.idle_connections(), kept, "{rest} ms");
        }
        // The second used what the first had left.
        assert_eq!(connections.load(Ordering::SeqCst), 2);
    });
}

#[test]
fn idle_connections_are_bounded_and_end() {
    let (addr, _) = server(|mut stream, _| {
        while read_request(&mut stream).is_some() {
            respond(&mut stream, "x");
        }
    });
    let mut config = config();
    config.fetch.idle_connections_max = 3;
    with_hands(&config, |hands| async move {
        for number in 0..10 {
            let url = format!("http://h{number}.example.test:{}/", addr.port());
            get(&hands, &url).await.expect("exchange");
            assert!(hands.idle_connections() <= 3);
        }
        assert_eq!(hands.idle_connections(), 3);
    });
    config.fetch.idle_timeout = Duration::from_millis(200);
    with_hands(&config, |hands| async move {
        get(&hands, &url(addr, "/")).await.expect("exchange");
        // Nothing else would close it: it is waited for, however busy the machine is.
        while hands.idle_connections() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
}

#[test]
fn a_stale_connection_is_no_failure() {
    // Each connection answers once and closes when the next request comes, having said keep-alive.
    let (addr, connections) = server(|mut stream, _| {
        read_request(&mut stream);
        respond(&mut stream, "once");
        let _ = read_request(&mut stream);
    });
    // As before, but closing at once: seen before the request is sent.
    let (closing, _) = server(|mut stream, _| {
        read_request(&mut stream);
        respond(&mut stream, "once");
    });
    // And with a reset.
    let (resetting, _) = server(|mut stream, _| {
        read_request(&mut stream);
        respond(&mut stream, "once");
        reset_after(stream, b"");
    });
    // And with bytes that nobody asked for.
    let (talking, _) = server(|mut stream, _| {
        read_request(&mut stream);
        respond(&mut stream, "once");
        std::thread::sleep(Duration::from_millis(5));
        respond(&mut stream, "poison");
        read_request(&mut stream);
    });
    with_hands(&config(), |hands| async move {
        for round in 0..4 {
            for addr in [addr, closing, resetting, talking] {
                let exchange = get(&hands, &url(addr, "/")).await.expect("exchange");
                assert_eq!(exchange.response.body, b"once");
                assert!(!exchange.reused, "round {round}");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(hands.counters().stale_reuses.get() >= 6, "{:?}", hands.counters());
        assert_eq!(connections.load(Ordering::SeqCst), 4);
    });
}

#[test]
fn a_large_body_comes_whole() {
    let body: Vec<u8> = (0..3_000_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let sent = body.clone();
    let (addr, _) = server(move |mut stream, _| {
        while read_request(&mut stream).is_some() {
            let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", sent.len());
            let _ = stream.write_all(&sent);
        }
    });
    with_hands(&config(), |hands| async move {
        for reused in [false, true] {
            let exchange = get(&hands, &url(addr, "/")).await.expect("exchange");
            assert!(exchange.response.body == body);
            assert_eq!(exchange.reused, reused);
        }
    });
}

#[test]
fn many_at_once() {
    let (addr, _) = server(|mut stream, _| {
        while let Some(request) = read_request(&mut stream) {
            respond(&mut stream, request.split(' ').nth(1).unwrap_or_default());
        }
    });
    // A busy machine makes a listener drop SYNs, which come again after 1, 3 and 7 s.
    let mut config = config();
    config.fetch.connect_timeout = Duration::from_secs(30);
    config.fetch.first_byte_timeout = Duration::from_secs(30);
    config.fetch.deadline = Duration::from_secs(60);
    with_hands(&config, |hands| async move {
        let tasks: Vec<_> = (0..1_000)
            .map(|number| {
                let hands = hands.clone();
                ring::spawn(async move {
                    let exchange = get(&hands, &url(addr, &format!("/{number}"))).await.expect("exchange");
                    assert_eq!(exchange.response.body, format!("/{number}").as_bytes());
                })
            })
            .collect();
        for task in tasks {
            task.await.expect("task");
        }
    });
}
