//! The server: `/page` is 16 KiB, `/drip` gives a byte a second, to each connection at a moment of its own, as they would
//! come from as many servers.

use std::rc::Rc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::BODY_BYTES;

/// Serves until it is killed; prints its port.
pub fn serve() {
    ringcrawl_ring::raise_file_limit();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let tasks = tokio::task::LocalSet::new();
    runtime.block_on(tasks.run_until(async {
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        socket.bind("0.0.0.0:0".parse().expect("an address")).expect("a port");
        let listener: TcpListener = socket.listen(32_768).expect("a listener");
        println!("{}", listener.local_addr().expect("an address").port());
        let page = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {BODY_BYTES}\r\n\r\n");
        let page: Rc<[u8]> = [page.as_bytes(), &[b'x'; BODY_BYTES]].concat().into();
        for number in 0.. {
            let Ok((stream, _)) = listener.accept().await else { continue };
            tokio::task::spawn_local(answer(stream, page.clone(), number));
        }
    }));
}

async fn answer(mut stream: TcpStream, page: Rc<[u8]>, number: u64) {
    let _ = stream.set_nodelay(true);
    let mut request = Vec::with_capacity(512);
    loop {
        request.clear();
        while !request.ends_with(b"\r\n\r\n") {
            if !matches!(stream.read_buf(&mut request).await, Ok(1..)) {
                return;
            }
        }
        if request.starts_with(b"GET /page") {
            if stream.write_all(&page).await.is_err() {
                return;
            }
        } else {
            let head = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n";
            if stream.write_all(head).await.is_err() {
                return;
            }
            // A prime: connections come in order, and their moments should not.
            let moment = tokio::time::Instant::now() + Duration::from_millis(number * 617 % 1_000);
            let mut seconds = tokio::time::interval_at(moment, Duration::from_secs(1));
            // Each keeps its moment: or those that were late together once would be so each second.
            seconds.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
            loop {
                seconds.tick().await;
                if stream.write_all(b"x").await.is_err() {
                    return;
                }
            }
        }
    }
}
