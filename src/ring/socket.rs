//! A TCP connection whose every step is an operation on the ring.
//!
//! Decides: the socket is made by system call (cheap, never waits) with its options set before connect;
//! connect, receive, send and shutdown are ring operations under a deadline's guard.
//! The descriptor is left in blocking mode: the ring itself tries without waiting and then polls, while a
//! nonblocking descriptor may answer EAGAIN to the operation instead.
//! Invariants: the buffer of an operation comes back with its completion and never before; a passed
//! deadline lets no operation begin; sends raise no signal.
//! Limits: one operation at a time on a socket: a cancel meets all of them.
//! Leaves to others: which addresses are allowed, what is said.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::rc::Rc;

use io_uring::{opcode, types};

use super::{Buffer, Guard, op};

/// A TCP socket of this shard. Closed when dropped.
pub struct Socket {
    fd: Rc<OwnedFd>,
}

impl Socket {
    /// A socket that can connect to addresses of the family of `ip`, with TCP_NODELAY: requests are written
    /// in one piece, so waiting to fill a segment only costs time.
    pub fn new(ip: IpAddr) -> io::Result<Socket> {
        let family = if ip.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        // SAFETY: socket takes integers and gives a new descriptor or -1; nothing else owns it yet.
        let fd = unsafe {
            let fd = libc::socket(family, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, libc::IPPROTO_TCP);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        let socket = Socket { fd: Rc::new(fd) };
        socket.set_option(libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)?;
        Ok(socket)
    }

    /// Connects to `addr`.
    pub async fn connect(&self, addr: SocketAddr, guard: &Guard) -> io::Result<()> {
        guard.check()?;
        let (address, length) = Address::new(addr);
        let fd = self.fd.as_raw_fd();
        let entry = opcode::Connect::new(types::Fd(fd), address.as_ptr(), length).build();
        op::submit_waiting(entry, fd, (address, self.fd.clone())).await.0.map(drop)
    }

    /// Receives what is there, or waits for it: the number of bytes, now the buffer's `filled`; 0 at the end.
    pub async fn recv(&self, mut buffer: Buffer, guard: &Guard) -> (io::Result<usize>, Buffer) {
        buffer.set_filled(0);
        if let Err(error) = guard.check() {
            return (Err(error), buffer);
        }
        let fd = self.fd.as_raw_fd();
        let length = u32::try_from(buffer.capacity()).unwrap_or(u32::MAX);
        let entry = opcode::Recv::new(types::Fd(fd), buffer.as_mut_ptr(), length).build();
        let (result, (mut buffer, _)) = op::submit_waiting(entry, fd, (buffer, self.fd.clone())).await;
        let result = result.map(|bytes| bytes as usize);
        if let Ok(bytes) = result {
            buffer.set_filled(bytes);
        }
        (result, buffer)
    }

    /// Sends all of `bytes`, which come back.
    pub async fn send_all(&self, mut bytes: Vec<u8>, guard: &Guard) -> (io::Result<()>, Vec<u8>) {
        let fd = self.fd.as_raw_fd();
        let mut sent = 0;
        loop {
            let rest = bytes.get(sent..).unwrap_or_default();
            if rest.is_empty() {
                return (Ok(()), bytes);
            }
            if let Err(error) = guard.check() {
                return (Err(error), bytes);
            }
            let length = u32::try_from(rest.len()).unwrap_or(u32::MAX);
            let entry = opcode::Send::new(types::Fd(fd), rest.as_ptr(), length).flags(libc::MSG_NOSIGNAL).build();
            let (result, (returned, _)) = op::submit_waiting(entry, fd, (bytes, self.fd.clone())).await;
            bytes = returned;
            match result {
                Ok(0) => return (Err(io::ErrorKind::WriteZero.into()), bytes),
                Ok(more) => sent += more as usize,
                Err(error) => return (Err(error), bytes),
            }
        }
    }

    /// Says that nothing more will be sent.
    pub async fn shutdown(&self, guard: &Guard) -> io::Result<()> {
        guard.check()?;
        let fd = self.fd.as_raw_fd();
        let entry = opcode::Shutdown::new(types::Fd(fd), libc::SHUT_WR).build();
        op::submit_waiting(entry, fd, self.fd.clone()).await.0.map(drop)
    }

    /// Whether the connection is open and nothing has arrived: what may be used for another request.
    /// Bytes that nobody asked for would be taken for the next answer.
    pub fn is_quiet(&self) -> bool {
        let mut byte = 0u8;
        // SAFETY: one writable byte that lives across the call; MSG_DONTWAIT makes it return at once.
        let peeked = unsafe {
            let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
            libc::recv(self.fd.as_raw_fd(), (&raw mut byte).cast(), 1, flags)
        };
        peeked < 0 && io::Error::last_os_error().kind() == io::ErrorKind::WouldBlock
    }

    /// Closes by the ring, behind what was submitted before.
    pub fn close(self) {
        if let Ok(fd) = Rc::try_unwrap(self.fd) {
            op::close(fd);
        }
    }

    pub(super) fn descriptor(&self) -> &Rc<OwnedFd> {
        &self.fd
    }

    fn set_option(&self, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
        let length = size_of::<libc::c_int>() as libc::socklen_t;
        // SAFETY: `value` is an int that lives across the call, and `length` is its size.
        let result = unsafe { libc::setsockopt(self.fd.as_raw_fd(), level, name, (&raw const value).cast(), length) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

/// A socket address as the kernel reads it; on the heap, so that it stays while it is read.
enum Address {
    V4(Box<libc::sockaddr_in>),
    V6(Box<libc::sockaddr_in6>),
}

impl Address {
    fn new(addr: SocketAddr) -> (Address, libc::socklen_t) {
        match addr {
            SocketAddr::V4(addr) => {
                let address = libc::sockaddr_in {
                    sin_family: libc::AF_INET as libc::sa_family_t,
                    sin_port: addr.port().to_be(),
                    sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(addr.ip().octets()) },
                    sin_zero: [0; 8],
                };
                (Address::V4(Box::new(address)), size_of::<libc::sockaddr_in>() as libc::socklen_t)
            }
            SocketAddr::V6(addr) => {
                let address = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as libc::sa_family_t,
                    sin6_port: addr.port().to_be(),
                    sin6_flowinfo: addr.flowinfo(),
                    sin6_addr: libc::in6_addr { s6_addr: addr.ip().octets() },
                    sin6_scope_id: addr.scope_id(),
                };
                (Address::V6(Box::new(address)), size_of::<libc::sockaddr_in6>() as libc::socklen_t)
            }
        }
    }

    fn as_ptr(&self) -> *const libc::sockaddr {
        match self {
            Address::V4(address) => (&raw const **address).cast(),
            Address::V6(address) => (&raw const **address).cast(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BufferPool, Deadlines, Runtime, now, spawn};
    use super::*;
    use crate::time::Duration;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    async fn connected(listener: &TcpListener, deadlines: &Deadlines) -> (Socket, Guard, std::net::TcpStream) {
        let addr = listener.local_addr().expect("address");
        let socket = Socket::new(addr.ip()).expect("socket");
        let guard = deadlines.guard(&socket, now() + Duration::from_secs(10));
        socket.connect(addr, &guard).await.expect("connect");
        let (peer, _) = listener.accept().expect("accept");
        (socket, guard, peer)
    }

    #[test]
    fn bytes_go_both_ways() {
        Runtime::new(8).expect("io_uring").block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
            let (deadlines, pool) = (Deadlines::new(), BufferPool::new(2, 16));
            let (socket, guard, mut peer) = connected(&listener, &deadlines).await;
            assert!(socket.is_quiet());
            let (result, bytes) = socket.send_all(b"hello".to_vec(), &guard).await;
            result.expect("send");
            let mut got = [0; 5];
            peer.read_exact(&mut got).expect("read");
            assert_eq!(got.as_slice(), bytes);
            peer.write_all(b"and back").expect("write");
            let (result, buffer) = socket.recv(pool.take().await, &guard).await;
            assert_eq!(result.expect("recv"), 8);
            assert_eq!(buffer.filled(), b"and back");
            peer.write_all(b"unasked").expect("write");
            std::thread::sleep(Duration::from_millis(20));
            assert!(!socket.is_quiet());
            let (_, buffer) = socket.recv(buffer, &guard).await;
            drop(peer);
            let (result, buffer) = socket.recv(buffer, &guard).await;
            assert_eq!(result.expect("end"), 0);
            assert!(!socket.is_quiet());
            drop((guard, buffer));
            socket.close();
        });
    }

    #[test]
    fn a_deadline_ends_a_receive_and_gives_the_buffer_back() {
        Runtime::new(8).expect("io_uring").block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
            let (deadlines, pool) = (Deadlines::new(), BufferPool::new(1, 4_096));
            for _ in 0..5 {
                let (socket, guard, _peer) = connected(&listener, &deadlines).await;
                let start = now();
                guard.set(start + Duration::from_millis(50));
                let (result, buffer) = socket.recv(pool.take().await, &guard).await;
                assert_eq!(result.expect_err("nothing came").raw_os_error(), Some(libc::ECANCELED));
                let took = now().since(start);
                assert!(took >= Duration::from_millis(50) && took < Duration::from_millis(400), "{took:?}");
                assert!(guard.is_expired());
                let (result, buffer) = socket.recv(buffer, &guard).await;
                assert_eq!(result.expect_err("no more").raw_os_error(), Some(libc::ECANCELED));
                drop(buffer);
                assert_eq!(pool.lent(), 0);
                drop(guard);
                assert_eq!(deadlines.live(), 0);
            }
        });
    }

    #[test]
    fn a_dropped_task_leaves_its_buffer_with_the_kernel_until_the_completion() {
        Runtime::new(8).expect("io_uring").block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
            let (deadlines, pool) = (Deadlines::new(), BufferPool::new(4, 4_096));
            let (socket, guard, mut peer) = connected(&listener, &deadlines).await;
            let task = spawn({
                let pool = pool.clone();
                async move {
                    let buffer = pool.take().await;
                    let _ = socket.recv(buffer, &guard).await;
                }
            });
            tokio::time::sleep(Duration::from_millis(20)).await;
            assert_eq!(pool.lent(), 1);
            task.abort();
            let _ = task.await;
            // Dropped, but the kernel has not answered yet: the memory is still its own.
            assert_eq!(pool.lent(), 1);
            for _ in 0..200 {
                tokio::time::sleep(Duration::from_millis(1)).await;
                if pool.lent() == 0 {
                    break;
                }
            }
            assert_eq!(pool.lent(), 0, "the cancel gives it back");
            // The descriptor went with the operation: the peer sees the end.
            assert_eq!(peer.read(&mut [0; 8]).unwrap_or(0), 0);
        });
    }

    #[test]
    fn a_runtime_that_ends_waits_for_its_operations() {
        let pool = BufferPool::new(4, 4_096);
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let runtime = Runtime::new(8).expect("io_uring");
        runtime.block_on(async {
            let deadlines = Deadlines::new();
            let (socket, guard, peer) = connected(&listener, &deadlines).await;
            let buffer = pool.take().await;
            spawn(async move {
                let _ = socket.recv(buffer, &guard).await;
                drop(peer);
            });
            tokio::time::sleep(Duration::from_millis(20)).await;
            assert_eq!(pool.lent(), 1);
        });
        assert_eq!(pool.lent(), 1);
        drop(runtime);
        assert_eq!(pool.lent(), 0);
    }
}
