//! Tests the pool with sockets of a peer in this process.

use super::super::{Deadlines, Receive, Runtime, Socket, now, spawn, turn};
use super::*;
use std::io::Write;
use std::net::{TcpListener, TcpStream};

/// Sockets of ours and, for each, the other end.
async fn connected(count: usize) -> (Vec<Socket>, Vec<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let addr = listener.local_addr().expect("address");
    let deadlines = Deadlines::new();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let socket = Socket::new(addr.ip()).expect("socket");
        let guard = deadlines.guard(&socket, now() + Duration::from_secs(10));
        socket.connect(addr, &guard).await.expect("connect");
        ours.push(socket);
        theirs.push(listener.accept().expect("accept").0);
    }
    (ours, theirs)
}

#[test]
fn who_waits_holds_no_memory_and_what_comes_at_once_sets_the_number_of_blocks() {
    Runtime::new(64).expect("io_uring").block_on(async {
        let (sockets, mut peers) = connected(40).await;
        let (pool, deadlines) = (BufferPool::new(64, 100).expect("a pool"), Deadlines::new());
        let came = Rc::new(Cell::new(0));
        let tasks: Vec<_> = sockets
            .into_iter()
            .map(|socket| {
                let (pool, deadlines, came) = (pool.clone(), deadlines.clone(), came.clone());
                spawn(async move {
                    let guard = deadlines.guard(&socket, now() + Duration::from_secs(20));
                    let (mut bytes, mut begun) = (Vec::new(), None);
                    while let Some(buffer) = socket.recv(&mut begun, None, &pool, &guard).await.expect("a receive") {
                        bytes.extend_from_slice(buffer.filled());
                        came.set(came.get() + buffer.filled().len());
                    }
                    bytes
                })
            })
            .collect();
        turn().await;
        for (at, peer) in peers.iter_mut().enumerate() {
            peer.write_all(&[at as u8; 10]).expect("write");
            while came.get() < 10 * (at + 1) {
                turn().await;
            }
        }
        assert_eq!(pool.made(), COUNT_MIN);
        for (at, peer) in peers.iter_mut().enumerate() {
            peer.write_all(&[at as u8; 1_000]).expect("write");
        }
        drop(peers);
        for (at, task) in tasks.into_iter().enumerate() {
            assert_eq!(task.await.expect("a task"), [at as u8; 1_010]);
        }
        assert!((COUNT_MIN..=64).contains(&pool.made()), "{}", pool.made());
        assert_eq!(pool.lent(), 0);
    });
}

#[test]
fn no_more_blocks_than_there_may_be_and_who_finds_none_waits() {
    Runtime::new(64).expect("io_uring").block_on(async {
        let (sockets, mut peers) = connected(30).await;
        let (pool, deadlines) = (BufferPool::new(2, 100).expect("a pool"), Deadlines::new());
        peers.iter_mut().for_each(|peer| peer.write_all(b"something").expect("write"));
        let held = Rc::new(Cell::new(0));
        let tasks: Vec<_> = sockets
            .into_iter()
            .map(|socket| {
                let (pool, deadlines, held) = (pool.clone(), deadlines.clone(), held.clone());
                spawn(async move {
                    let guard = deadlines.guard(&socket, now() + Duration::from_secs(20));
                    let buffer = socket.recv(&mut None, None, &pool, &guard).await.expect("a receive").expect("bytes");
                    held.set(held.get() + 1);
                    assert!(held.get() <= 2);
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    held.set(held.get() - 1);
                    assert_eq!(buffer.filled(), b"something");
                })
            })
            .collect();
        for task in tasks {
            task.await.expect("a task");
        }
        assert_eq!((pool.made(), pool.lent()), (2, 0));
    });
}

/// Of many receives that wait for a block some give up, just before or just when they get it: the others still get
/// theirs.
#[test]
fn who_gives_up_waiting_holds_up_no_other() {
    Runtime::new(64).expect("io_uring").block_on(async {
        let (sockets, mut peers) = connected(40).await;
        let (pool, deadlines) = (BufferPool::new(1, 100).expect("a pool"), Deadlines::new());
        let came = Rc::new(Cell::new(0));
        let tasks: Vec<_> = sockets
            .into_iter()
            .map(|socket| {
                let (pool, deadlines, came) = (pool.clone(), deadlines.clone(), came.clone());
                spawn(async move {
                    let guard = deadlines.guard(&socket, now() + Duration::from_secs(20));
                    let (mut bytes, mut begun) = (0, None);
                    while let Some(buffer) = socket.recv(&mut begun, None, &pool, &guard).await.expect("a receive") {
                        bytes += buffer.filled().len();
                        turn().await;
                    }
                    came.set(came.get() + 1);
                    bytes
                })
            })
            .collect();
        peers.iter_mut().for_each(|peer| peer.write_all(&[1; 1_000]).expect("write"));
        drop(peers);
        let mut gave_up = 0;
        for task in tasks.iter().rev().step_by(3) {
            let before = came.get();
            while came.get() == before && !task.is_finished() {
                turn().await;
            }
            gave_up += usize::from(!task.is_finished());
            task.abort();
        }
        for task in tasks {
            assert!(task.await.map_or(true, |bytes| bytes == 1_000));
        }
        assert!((1..=14).contains(&gave_up) && came.get() + gave_up == 40, "{gave_up} and {}", came.get());
        tokio::time::sleep(RETRY * 3).await;
        assert_eq!((pool.made(), pool.lent()), (1, 0));
    });
}

#[test]
fn unused_blocks_are_asked_back() {
    Runtime::new(64).expect("io_uring").block_on(async {
        let (sockets, mut peers) = connected(3).await;
        let (pool, deadlines) = (BufferPool::new(2, 100).expect("a pool"), Deadlines::new());
        let idle = Rc::new(RefCell::new(vec![sockets[0].receive(&pool), sockets[1].receive(&pool)]));
        turn().await;
        peers.iter_mut().for_each(|peer| peer.write_all(b"something").expect("write"));
        tokio::time::sleep(Duration::from_millis(20)).await;
        let asked = Rc::new(Cell::new(0));
        pool.when_dry({
            let (idle, asked) = (idle.clone(), asked.clone());
            move || {
                asked.set(asked.get() + 1);
                idle.borrow_mut().retain(Receive::is_waiting);
            }
        });
        let guard = deadlines.guard(&sockets[2], now() + Duration::from_secs(20));
        let buffer = sockets[2].recv(&mut None, None, &pool, &guard).await.expect("a receive").expect("bytes");
        assert_eq!(buffer.filled(), b"something");
        assert!(asked.get() >= 1 && idle.borrow().is_empty());
        drop(buffer);
        assert_eq!((pool.made(), pool.lent()), (2, 0));
    });
}

/// A receive continues, but not forever if no task takes its data; and no received data is lost.
#[test]
fn what_is_not_asked_for_takes_few_blocks() {
    Runtime::new(64).expect("io_uring").block_on(async {
        let (sockets, mut peers) = connected(1).await;
        let (pool, deadlines) = (BufferPool::new(2_000, 100).expect("a pool"), Deadlines::new());
        let sent: Vec<u8> = (0..150_000).map(|at| (at % 251) as u8).collect();
        let mut begun = Some(sockets[0].receive(&pool));
        let (mut came, guard) = (Vec::new(), deadlines.guard(&sockets[0], now() + Duration::from_secs(20)));
        for part in sent.chunks(50_000) {
            peers[0].write_all(part).expect("write");
            tokio::time::sleep(Duration::from_millis(30)).await;
            let wanted = came.len() + part.len();
            while came.len() < wanted {
                let buffer = sockets[0].recv(&mut begun, None, &pool, &guard).await.expect("a receive").expect("bytes");
                came.extend_from_slice(buffer.filled());
            }
        }
        assert_eq!(came, sent);
        assert!(pool.made() <= 128, "{}", pool.made());
        assert_eq!(pool.lent(), 0);
    });
}

/// For a kept connection: if its receive ended because no block was free, or because too much came, the peer is not
/// the cause.
#[test]
fn a_lapsed_receive_is_told_from_one_that_brought_something() {
    Runtime::new(64).expect("io_uring").block_on(async {
        let (sockets, mut peers) = connected(3).await;
        let (pool, deadlines) = (BufferPool::new(16, 100).expect("a pool"), Deadlines::new());
        let guard = deadlines.guard(&sockets[0], now() + Duration::from_secs(20));
        let mut begun = Some(sockets[0].receive(&pool));
        peers[0].write_all(&[1; 1_600]).expect("write");
        tokio::time::sleep(Duration::from_millis(30)).await;
        let (mut came, mut buffers) = (0, Vec::new());
        while came < 1_600 {
            let buffer = sockets[0].recv(&mut begun, None, &pool, &guard).await.expect("a receive").expect("bytes");
            came += buffer.filled().len();
            buffers.push(buffer);
        }
        // Every block is held, so none is free for the next receive.
        let [dry, busy] = [&sockets[0], &sockets[1]].map(|socket| socket.receive(&pool));
        peers[1].write_all(b"something").expect("write");
        tokio::time::sleep(Duration::from_millis(30)).await;
        assert_eq!([dry.has_lapsed(), busy.has_lapsed()], [true, true]);
        assert_eq!([&sockets[0], &sockets[1]].map(Socket::is_quiet), [true, false]);
        drop((dry, busy, buffers));
        let heard = sockets[1].receive(&pool);
        let waiting = sockets[2].receive(&pool);
        tokio::time::sleep(Duration::from_millis(30)).await;
        assert_eq!([heard.has_lapsed(), heard.is_waiting()], [false, false]);
        assert_eq!([waiting.has_lapsed(), waiting.is_waiting()], [false, true]);
        peers.truncate(2);
        tokio::time::sleep(Duration::from_millis(30)).await;
        assert_eq!([waiting.has_lapsed(), sockets[2].is_quiet()], [false, false]);
    });
}

/// Tasks are dropped at every moment of a receive: what the kernel took comes back.
#[test]
fn dropped_receives_lose_no_block() {
    Runtime::new(64).expect("io_uring").block_on(async {
        let (pool, deadlines) = (BufferPool::new(8, 100).expect("a pool"), Deadlines::new());
        for round in 0..60 {
            let (sockets, mut peers) = connected(8).await;
            let tasks: Vec<_> = sockets
                .into_iter()
                .map(|socket| {
                    let (pool, deadlines) = (pool.clone(), deadlines.clone());
                    spawn(async move {
                        let guard = deadlines.guard(&socket, now() + Duration::from_secs(20));
                        let mut begun = None;
                        while let Ok(Some(_)) = socket.recv(&mut begun, None, &pool, &guard).await {}
                    })
                })
                .collect();
            for (at, (task, peer)) in tasks.iter().zip(&mut peers).enumerate() {
                if (at + round) % 3 > 0 {
                    peer.write_all(b"something").expect("write");
                }
                if (at + round) % 4 > 1 {
                    turn().await;
                }
                task.abort();
            }
            for task in tasks {
                let _ = task.await;
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(pool.lent(), 0);
        // All of them still exist: as many receives at once find one each.
        let made = pool.made();
        let (sockets, mut peers) = connected(made).await;
        peers.iter_mut().for_each(|peer| peer.write_all(b"something").expect("write"));
        let mut buffers = Vec::new();
        for socket in &sockets {
            let guard = deadlines.guard(socket, now() + Duration::from_secs(20));
            buffers.push(socket.recv(&mut None, None, &pool, &guard).await.expect("a receive").expect("bytes"));
        }
        assert_eq!((pool.made(), pool.lent()), (made, made));
    });
}

#[test]
fn a_pool_may_outlive_its_runtime_and_has_no_other() {
    assert!(BufferPool::new(1, 100).is_err(), "no runtime");
    let (pool, buffer) = Runtime::new(8).expect("io_uring").block_on(async {
        let pool = BufferPool::new(1, 100).expect("a pool");
        let (sockets, mut peers) = connected(1).await;
        peers[0].write_all(b"something").expect("write");
        let deadlines = Deadlines::new();
        let guard = deadlines.guard(&sockets[0], now() + Duration::from_secs(20));
        let buffer = sockets[0].recv(&mut None, None, &pool, &guard).await.expect("a receive").expect("bytes");
        (pool, buffer)
    });
    assert_eq!((buffer.filled(), pool.lent(), pool.made()), (&b"something"[..], 1, 1));
    drop(buffer);
    assert_eq!(pool.lent(), 0);
}

/// The entries that the kernel reads are reused again and again, and no more blocks are made than a group can have.
#[test]
fn entries_go_round() {
    Runtime::new(64).expect("io_uring").block_on(async {
        let (sockets, mut peers) = connected(1).await;
        let (pool, deadlines) = (BufferPool::new(3, 8).expect("a pool"), Deadlines::new());
        let guard = deadlines.guard(&sockets[0], now() + Duration::from_secs(20));
        let mut begun = None;
        for round in 0..70_u8 {
            peers[0].write_all(&[round; 20]).expect("write");
            let mut came = Vec::new();
            while came.len() < 20 {
                let buffer = sockets[0].recv(&mut begun, None, &pool, &guard).await.expect("a receive").expect("bytes");
                came.extend_from_slice(buffer.filled());
            }
            assert_eq!(came, [round; 20]);
        }
        assert_eq!((pool.made(), pool.lent()), (3, 0));
        let largest = BufferPool::new(usize::MAX, 1).expect("a pool");
        (0..16).for_each(|_| largest.grow());
        assert_eq!(largest.made(), usize::from(ENTRIES_MAX));
    });
}
