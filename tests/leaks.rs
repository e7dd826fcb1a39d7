//! What exchanges leave behind that end early: nothing.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use ringcrawl_base::Failure;
use ringcrawl_base::Rng;
use ringcrawl_crawler::fetch::Hands;
use ringcrawl_ring::{self as ring, Runtime};

use crate::rig::hands::*;
use crate::rig::servers::*;

#[test]
fn aborted_fetches_leave_nothing_behind() {
    const FETCHES: usize = 20_000;
    const AT_ONCE: usize = 200;
    let listener = TcpListener::bind((LOOPBACK, 0)).expect("bind");
    let addr = listener.local_addr().expect("address");
    // The server's threads live in this process: the descriptors they hold are not the crawler's.
    let servers = Arc::new(AtomicUsize::new(0));
    for _ in 0..2 {
        let (listener, servers) = (listener.try_clone().expect("clone"), servers.clone());
        std::thread::spawn(move || {
            let mut held = std::collections::VecDeque::new();
            for (number, stream) in listener.incoming().enumerate() {
                let Ok(mut stream) = stream else { continue };
                match number % 4 {
                    // Reset, by closing with the request unread.
                    0 => drop(stream.read(&mut [0])),
                    1 => drop(stream.write_all(b"HTTP/1.1 200")),
                    2 => drop(stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nsome")),
                    // Never an answer: the deadline ends it.
                    _ => {
                        held.push_back(stream);
                        servers.fetch_add(1, Relaxed);
                        if held.len() > AT_ONCE {
                            held.pop_front();
                            servers.fetch_sub(1, Relaxed);
                        }
                    }
                }
            }
        });
    }
    let _alone = ALONE.write().unwrap_or_else(|poisoned| poisoned.into_inner());
    let mut config = config();
    config.fetch.first_byte_timeout = Duration::from_millis(100);
    config.fetch.in_flight_max = AT_ONCE;
    let runtime = Runtime::new(256).expect("io_uring");
    runtime.block_on(async {
        let hands = Rc::new(Hands::new(&config, "testcrawl/1.0".to_owned()).expect("hands"));
        let next = Rc::new(std::cell::Cell::new(0));
        let crawlers =
            || std::fs::read_dir("/proc/self/fd").expect("fds").count().saturating_sub(servers.load(Relaxed));
        let before = crawlers();
        for target in [FETCHES / 10, FETCHES] {
            let workers: Vec<_> = (0..AT_ONCE)
                .map(|_| {
                    let (hands, next) = (hands.clone(), next.clone());
                    ring::spawn(async move {
                        while next.get() < target {
                            next.set(next.get() + 1);
                            match get(&hands, &url(addr, "/")).await {
                                Ok(exchange) => assert!(exchange.response.truncated.is_some()),
                                Err(failure) => assert!(
                                    matches!(
                                        failure,
                                        Failure::Reset | Failure::ClosedEarly | Failure::FirstByteTimeout
                                    ),
                                    "{failure:?}"
                                ),
                            }
                        }
                    })
                })
                .collect();
            for worker in workers {
                worker.await.expect("worker");
            }
            // Closes are on their way, at both ends.
            for _ in 0..1_000 {
                if crawlers() <= before + 8 {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            assert_eq!((hands.buffers_lent(), hands.deadlines().live(), hands.idle_connections()), (0, 0, 0));
            let open = crawlers();
            assert!(open <= before + 8, "{before} descriptors at first, {open} after {target} fetches");
        }
        assert_eq!(hands.counters().connects.get(), FETCHES as u64);
    });
}

#[test]
fn dropped_fetches_leave_nothing_behind() {
    let (addr, _) = server(|mut stream, _| {
        read_request(&mut stream);
        std::thread::sleep(Duration::from_millis(2));
        respond(&mut stream, &"some ".repeat(10_000));
    });
    let _alone = ALONE.write().unwrap_or_else(|poisoned| poisoned.into_inner());
    let mut config = config();
    config.fetch.idle_connections_max = 0;
    let runtime = Runtime::new(256).expect("io_uring");
    runtime.block_on(async {
        let hands = Rc::new(Hands::new(&config, "testcrawl/1.0".to_owned()).expect("hands"));
        let mut random = Rng::new(7);
        let mut first = None;
        for _round in 0..20 {
            let tasks: Vec<_> = (0..100)
                .map(|_| {
                    let hands = hands.clone();
                    ring::spawn(
                        async move { get(&hands, &url(addr, "/")).await.map(|exchange| exchange.response.status) },
                    )
                })
                .collect();
            for task in tasks {
                if random.percent(20) {
                    tokio::time::sleep(Duration::from_micros(random.below(2_048))).await;
                }
                task.abort();
                // Either it was done before, and well, or it was dropped.
                assert!(matches!(task.await, Ok(Ok(200)) | Err(_)));
            }
            // The completions of what was cancelled are on their way, and so is the server's end.
            tokio::time::sleep(Duration::from_millis(60)).await;
            let count = || std::fs::read_dir("/proc/self/fd").expect("fds").count();
            let first = *first.get_or_insert_with(count);
            for _ in 0..1_000 {
                if count() <= first + 8 {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            assert_eq!((hands.buffers_lent(), hands.deadlines().live()), (0, 0));
            let open = count();
            assert!(open <= first + 8, "{first} descriptors at first, {open} now");
        }
    });
}
