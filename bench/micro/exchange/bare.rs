//! The floor: a ring without a runtime, that sends a request, counts bytes and sends the next.

#![allow(unsafe_code)]

use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::time::Duration;

use io_uring::{IoUring, cqueue, opcode, squeue, types};

use super::{BODY_BYTES, Used, cpu_time};

const REQUEST: &[u8] =
    b"GET /page HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench/1.0\r\nAccept-Encoding: gzip\r\n\r\n";
const HEAD_BYTES: usize = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 16384\r\n\r\n".len();
const BLOCK_BYTES: usize = 32 << 10;
/// Provided blocks of the multishot client.
const BLOCKS: u16 = 256;
const GROUP: u16 = 7;

/// What a completion is of.
const SENT: u64 = 1 << 32;
const PROVIDED: u64 = 1 << 33;

/// A bare ring does nothing else.
fn all_ring(all: Duration) -> Used {
    Used { ring: all, all }
}

struct Client {
    ring: IoUring,
    streams: Vec<TcpStream>,
    received: Vec<usize>,
    /// Requests not sent yet, and answers not had yet.
    unsent: usize,
    open: usize,
}

impl Client {
    fn new(port: u16, connections: usize, requests: usize) -> Client {
        let mut builder = IoUring::builder();
        builder.setup_single_issuer().setup_defer_taskrun().setup_cqsize(32_768);
        let ring = builder.build(8_192).expect("io_uring");
        let streams: Vec<_> = (0..connections)
            .map(|_| {
                let stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
                stream.set_nodelay(true).expect("an option");
                stream
            })
            .collect();
        Client { ring, received: vec![0; connections], streams, unsent: requests, open: requests }
    }

    fn push(&mut self, entry: squeue::Entry, number: u64) {
        let entry = entry.user_data(number);
        // SAFETY: what entries point to (a constant, and blocks that the callers keep) outlives the ring's use of it.
        while unsafe { self.ring.submission().push(&entry) }.is_err() {
            self.ring.submit().expect("submits");
        }
    }

    fn send(&mut self, at: usize) {
        if self.unsent > 0 {
            self.unsent -= 1;
            let fd = types::Fd(self.streams[at].as_raw_fd());
            let entry = opcode::Send::new(fd, REQUEST.as_ptr(), REQUEST.len() as u32).flags(libc::MSG_NOSIGNAL);
            self.push(entry.build(), SENT | at as u64);
        }
    }

    /// Counts what came; whether the answer is whole.
    fn take(&mut self, at: usize, bytes: i32) -> bool {
        self.received[at] += usize::try_from(bytes).expect("a receive");
        assert!(bytes > 0 && self.received[at] <= HEAD_BYTES + BODY_BYTES);
        let whole = self.received[at] == HEAD_BYTES + BODY_BYTES;
        if whole {
            self.received[at] = 0;
            self.open -= 1;
        }
        whole
    }

    fn completions(&mut self) -> Vec<cqueue::Entry> {
        self.ring.submit_and_wait(1).expect("waits");
        self.ring.completion().collect()
    }
}

/// A block for each connection, one receive at a time.
pub fn single(port: u16, connections: usize, requests: usize) -> Used {
    let mut client = Client::new(port, connections, requests);
    let mut blocks: Vec<Box<[u8]>> = (0..connections).map(|_| vec![0; BLOCK_BYTES].into_boxed_slice()).collect();
    let before = cpu_time();
    let mut receive = |client: &mut Client, at: usize| {
        let fd = types::Fd(client.streams[at].as_raw_fd());
        let entry = opcode::Recv::new(fd, blocks[at].as_mut_ptr(), BLOCK_BYTES as u32).build();
        client.push(entry, at as u64);
    };
    for at in 0..connections.min(requests) {
        client.send(at);
        receive(&mut client, at);
    }
    while client.open > 0 {
        for entry in client.completions() {
            if entry.user_data() & SENT != 0 {
                continue;
            }
            let at = entry.user_data() as usize;
            let whole = client.take(at, entry.result());
            if whole && client.unsent == 0 {
                continue;
            }
            if whole {
                client.send(at);
            }
            receive(&mut client, at);
        }
    }
    all_ring(cpu_time() - before)
}

/// Receives that stay armed, with blocks that the kernel takes when something has come.
pub fn multishot(port: u16, connections: usize, requests: usize) -> Used {
    let mut client = Client::new(port, connections, requests);
    let mut blocks = vec![0_u8; BLOCK_BYTES * usize::from(BLOCKS)];
    let before = cpu_time();
    let start = blocks.as_mut_ptr();
    client.push(opcode::ProvideBuffers::new(start, BLOCK_BYTES as i32, BLOCKS, GROUP, 0).build(), PROVIDED);
    for at in 0..connections.min(requests) {
        client.send(at);
        let fd = types::Fd(client.streams[at].as_raw_fd());
        client.push(opcode::RecvMulti::new(fd, GROUP).build(), at as u64);
    }
    while client.open > 0 {
        for entry in client.completions() {
            if entry.user_data() & (SENT | PROVIDED) != 0 {
                continue;
            }
            let at = entry.user_data() as usize;
            if let Some(number) = cqueue::buffer_select(entry.flags()) {
                let block = blocks[usize::from(number) * BLOCK_BYTES..].as_mut_ptr();
                let whole = client.take(at, entry.result());
                let back = opcode::ProvideBuffers::new(block, BLOCK_BYTES as i32, 1, GROUP, number).build();
                client.push(back, PROVIDED);
                if whole {
                    client.send(at);
                }
            } else {
                assert_eq!(entry.result(), -libc::ENOBUFS);
            }
            if !cqueue::more(entry.flags()) {
                let fd = types::Fd(client.streams[at].as_raw_fd());
                client.push(opcode::RecvMulti::new(fd, GROUP).build(), at as u64);
            }
        }
    }
    all_ring(cpu_time() - before)
}
