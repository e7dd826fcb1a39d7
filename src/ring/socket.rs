//! A TCP connection whose every step is an operation on the ring.
//!
//! Decides: the socket is made by system call (cheap, never waits), with its options set before connect; connect,
//! receive, send and shutdown are ring operations under a deadline's guard. The descriptor is left in blocking mode:
//! the ring itself tries without waiting and then polls, while a nonblocking descriptor may answer EAGAIN to the
//! operation instead.
//! Invariants: the memory of an operation comes back with its completion and never before; a receive holds none until
//! something has arrived, so one may be in flight for as long as the connection is open; once a deadline has passed no
//! operation may start, and operations that it ends fail with ECANCELED; sends raise no signal.
//! Limits: one operation per direction at a time, as a cancel affects both.
//! Leaves to others: which addresses are allowed, what is sent.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::rc::Rc;

use io_uring::{opcode, types};

use super::receive::has_come;
use super::{Buffer, BufferPool, Guard, Receive, Sending, op};

/// Options set before a socket connects; zero and `None` leave the system's default.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SocketOptions {
    /// SO_RCVBUF, in bytes.
    pub receive_bytes: u32,
    /// SO_SNDBUF, in bytes.
    pub send_bytes: u32,
    /// The first and last local port (IP_LOCAL_PORT_RANGE, Linux 6.3).
    pub ports: Option<(u16, u16)>,
}

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

    /// Sets what must be set before connecting; `from` is the local address.
    pub fn prepare(&self, options: &SocketOptions, from: Option<IpAddr>) -> io::Result<()> {
        let sizes = [(libc::SO_RCVBUF, options.receive_bytes), (libc::SO_SNDBUF, options.send_bytes)];
        for (name, bytes) in sizes.into_iter().filter(|(_, bytes)| *bytes > 0) {
            self.set_option(libc::SOL_SOCKET, name, libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX))?;
        }
        if let Some((first, last)) = options.ports {
            let range = u32::from(last) << 16 | u32::from(first);
            self.set_option(libc::IPPROTO_IP, IP_LOCAL_PORT_RANGE, range.cast_signed())?;
        }
        let Some(from) = from else { return Ok(()) };
        // The port is chosen at connect, which may share one between several peers.
        self.set_option(libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)?;
        let (address, length) = Address::new(SocketAddr::new(from, 0));
        // SAFETY: the pointer is to a socket address of `length` bytes that lives across the call.
        let result = unsafe { libc::bind(self.fd.as_raw_fd(), address.as_ptr(), length) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Connects to `addr`.
    pub async fn connect(&self, addr: SocketAddr, guard: &Guard) -> io::Result<()> {
        guard.check()?;
        let (address, length) = Address::new(addr);
        let fd = self.fd.as_raw_fd();
        let entry = opcode::Connect::new(types::Fd(fd), address.as_ptr(), length).build();
        let (result, _) = op::submit_waiting(entry, (address, self.fd.clone())).await;
        // A connection established just as its time ran out has already been shut down, although no task noticed.
        guard.check()?;
        result.map(drop)
    }

    /// Starts receiving: what is there, or what will arrive.
    pub fn receive(&self, pool: &BufferPool) -> Receive {
        Receive::new(&self.fd, pool)
    }

    /// Whether nothing has arrived that no receive has taken, not even the end: a system call.
    pub fn is_quiet(&self) -> bool {
        !has_come(&self.fd, libc::POLLIN | libc::POLLRDHUP)
    }

    /// What arrived next, in a block of `pool`; `None` at the end. The receive in `begun`, started here if there is
    /// none, stays there for what arrives later, until the end. `sending` makes progress meanwhile.
    pub async fn recv(
        &self,
        begun: &mut Option<Receive>,
        mut sending: Option<&mut Sending>,
        pool: &BufferPool,
        guard: &Guard,
    ) -> io::Result<Option<Buffer>> {
        loop {
            guard.check()?;
            let receive = begun.get_or_insert_with(|| self.receive(pool));
            let next = poll_fn(|context| {
                if sending.as_mut().is_some_and(|sending| sending.attend(context)) {
                    receive.suspect();
                }
                receive.poll_next(context)
            });
            let (result, buffer) = next.await;
            if receive.has_ended() {
                *begun = None;
            }
            // The deadline shuts the connection down: that end is not the peer's.
            guard.check()?;
            match result {
                Ok(0) => return Ok(None),
                Ok(_) => return buffer.map(Some).ok_or_else(|| io::ErrorKind::InvalidData.into()),
                Err(error) => match error.raw_os_error() {
                    Some(libc::ENOBUFS) => pool.replenish().await,
                    // It was ended because too much had arrived, or this is the end: the next receive shows which.
                    Some(libc::ECANCELED) => {}
                    _ => return Err(error),
                },
            }
        }
    }

    /// Starts sending all of `bytes`, within the socket's deadline. Nothing else may be sent until it is done.
    pub fn send(&self, bytes: Vec<u8>) -> Sending {
        Sending::new(&self.fd, bytes)
    }

    /// Sends all of `bytes`, and returns them.
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
            let (result, (returned, _)) = op::submit_waiting(entry, (bytes, self.fd.clone())).await;
            bytes = returned;
            match result {
                Ok(0) => return (Err(io::ErrorKind::WriteZero.into()), bytes),
                Ok(more) => sent += more as usize,
                Err(error) => return (Err(error), bytes),
            }
        }
    }

    /// Tells the peer that nothing more will be sent.
    pub async fn shutdown(&self, guard: &Guard) -> io::Result<()> {
        guard.check()?;
        let fd = self.fd.as_raw_fd();
        let entry = opcode::Shutdown::new(types::Fd(fd), libc::SHUT_WR).build();
        op::submit_waiting(entry, self.fd.clone()).await.0.map(drop)
    }

    /// Closes through the ring, after what was submitted before.
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

/// include/uapi/linux/in.h; the libc crate does not have it.
const IP_LOCAL_PORT_RANGE: libc::c_int = 51;

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
    use super::super::{BufferPool, Deadlines, Runtime, now, spawn, turn};
    use super::*;
    use ringcrawl_base::time::Duration;
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

    fn option(socket: &Socket, level: libc::c_int, name: libc::c_int) -> libc::c_int {
        let (mut value, mut length) = (0, size_of::<libc::c_int>() as libc::socklen_t);
        // SAFETY: an int and its size, which both live across the call.
        let result =
            unsafe { libc::getsockopt(socket.fd.as_raw_fd(), level, name, (&raw mut value).cast(), &raw mut length) };
        assert_eq!(result, 0);
        value
    }

    #[test]
    fn options_are_set_before_connecting() {
        for ip in [IpAddr::from([127, 0, 0, 1]), "::1".parse().expect("address")] {
            let options = SocketOptions { receive_bytes: 40_000, send_bytes: 20_000, ports: Some((40_100, 40_199)) };
            let socket = Socket::new(ip).expect("socket");
            let before = option(&socket, libc::SOL_SOCKET, libc::SO_SNDBUF);
            socket.prepare(&SocketOptions::default(), None).expect("nothing to do");
            assert_eq!(option(&socket, libc::SOL_SOCKET, libc::SO_SNDBUF), before);
            socket.prepare(&options, Some(ip)).expect("options");
            // The kernel doubles them.
            assert_eq!(option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF), 80_000);
            assert_eq!(option(&socket, libc::SOL_SOCKET, libc::SO_SNDBUF), 40_000);
            assert_eq!(option(&socket, libc::IPPROTO_IP, IP_LOCAL_PORT_RANGE), 40_199 << 16 | 40_100);
        }
        let elsewhere = "192.0.2.1".parse().expect("address");
        let socket = Socket::new(elsewhere).expect("socket");
        assert!(socket.prepare(&SocketOptions::default(), Some(elsewhere)).is_err(), "not an address of this machine");
    }

    #[test]
    fn bytes_go_both_ways() {
        Runtime::new(8).expect("io_uring").block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
            let (deadlines, pool) = (Deadlines::new(), BufferPool::new(2, 16).expect("a pool"));
            let (socket, guard, mut peer) = connected(&listener, &deadlines).await;
            let mut begun = Some(socket.receive(&pool));
            turn().await;
            assert!(begun.as_ref().is_some_and(Receive::is_waiting));
            let (result, bytes) = socket.send_all(b"hello".to_vec(), &guard).await;
            result.expect("send");
            let mut got = [0; 5];
            peer.read_exact(&mut got).expect("read");
            assert_eq!(got.as_slice(), bytes);
            peer.write_all(b"and back").expect("write");
            let buffer = socket.recv(&mut begun, None, &pool, &guard).await.expect("recv").expect("bytes");
            assert_eq!(buffer.filled(), b"and back");
            drop(buffer);
            assert!(begun.as_ref().is_some_and(Receive::is_waiting), "it goes on");
            peer.write_all(b"unasked").expect("write");
            tokio::time::sleep(Duration::from_millis(20)).await;
            assert!(!begun.as_ref().is_some_and(Receive::is_waiting));
            assert_eq!(pool.lent(), 0);
            let buffer = socket.recv(&mut begun, None, &pool, &guard).await.expect("recv").expect("bytes");
            assert_eq!(buffer.filled(), b"unasked");
            // More than the socket takes at once: it is done only when the peer has read.
            let mut sending = socket.send(vec![b'x'; 8 << 20]);
            turn().await;
            assert!(!sending.is_through());
            let reader = std::thread::spawn(move || {
                let mut all = vec![0; 8 << 20];
                peer.read_exact(&mut all).expect("read");
                assert!(all.iter().all(|byte| *byte == b'x'));
                let mut rest = [0; 14];
                peer.read_exact(&mut rest).expect("read");
                assert_eq!(&rest, b"shortand sweet");
                peer
            });
            (&mut sending).await.expect("sent");
            assert!(!sending.is_through(), "it says so once");
            let mut short = socket.send(b"short".to_vec());
            while !short.is_through() {
                turn().await;
            }
            assert!(!short.is_through(), "it says so once");
            let mut short = socket.send(b"and sweet".to_vec());
            (&mut short).await.expect("sent");
            let peer = reader.join().expect("a thread");
            drop(peer);
            tokio::time::sleep(Duration::from_millis(20)).await;
            assert!(!begun.as_ref().is_some_and(Receive::is_waiting));
            assert!(socket.recv(&mut begun, None, &pool, &guard).await.expect("the end").is_none());
            assert!(begun.is_none());
            assert!(socket.recv(&mut begun, None, &pool, &guard).await.expect("the end").is_none(), "it stays");
            drop(guard);
            socket.close();
        });
    }

    #[test]
    fn a_deadline_ends_a_receive() {
        Runtime::new(8).expect("io_uring").block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
            let (deadlines, pool) = (Deadlines::new(), BufferPool::new(1, 4_096).expect("a pool"));
            for _ in 0..5 {
                let (socket, guard, _peer) = connected(&listener, &deadlines).await;
                let start = now();
                guard.set(start + Duration::from_millis(50));
                let error = socket.recv(&mut None, None, &pool, &guard).await.err().expect("nothing came");
                assert_eq!(error.raw_os_error(), Some(libc::ECANCELED));
                let took = now().since(start);
                assert!(took >= Duration::from_millis(50) && took < Duration::from_millis(400), "{took:?}");
                assert!(guard.is_expired());
                let error = socket.recv(&mut None, None, &pool, &guard).await.err().expect("no more");
                assert_eq!(error.raw_os_error(), Some(libc::ECANCELED));
                assert_eq!(pool.lent(), 0);
                drop(guard);
                assert_eq!(deadlines.live(), 0);
            }
        });
    }

    #[test]
    fn a_dropped_receive_leaves_memory_and_descriptor_with_the_kernel_until_the_completion() {
        Runtime::new(8).expect("io_uring").block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
            let (deadlines, pool) = (Deadlines::new(), BufferPool::new(4, 4_096).expect("a pool"));
            let (socket, guard, mut peer) = connected(&listener, &deadlines).await;
            let receive = socket.receive(&pool);
            drop((guard, socket));
            tokio::time::sleep(Duration::from_millis(20)).await;
            // The test's and the receive's.
            assert_eq!(pool.holders(), 2);
            drop(receive);
            // The kernel has not completed it yet: the operation is kept until its end.
            assert_eq!(pool.holders(), 2);
            for _ in 0..200 {
                tokio::time::sleep(Duration::from_millis(1)).await;
                if pool.holders() == 1 {
                    break;
                }
            }
            assert_eq!(pool.holders(), 1, "the cancel ends it");
            // The descriptor went with the operation: the peer sees the end.
            assert_eq!(peer.read(&mut [0; 8]).unwrap_or(0), 0);
        });
    }

    /// A short send that finds no room waits for it, whichever task polls it.
    #[test]
    fn what_is_short_waits_where_there_is_no_room() {
        Runtime::new(8).expect("io_uring").block_on(async {
            for attended in [true, false] {
                let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
                let (deadlines, pool) = (Deadlines::new(), BufferPool::new(2, 16).expect("a pool"));
                let (socket, guard, mut peer) = connected(&listener, &deadlines).await;
                // Fills both buffers.
                let mut filled = 0;
                loop {
                    // SAFETY: a thousand readable bytes.
                    let sent = unsafe {
                        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
                        libc::send(socket.fd.as_raw_fd(), [b'x'; 1_000].as_ptr().cast(), 1_000, flags)
                    };
                    match usize::try_from(sent) {
                        Ok(sent) => filled += sent,
                        Err(_) => break,
                    }
                }
                let mut sending = socket.send(vec![b'y'; 1_500]);
                for _ in 0..3 {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    assert!(attended || !sending.is_through());
                    sending.attend(&std::task::Context::from_waker(std::task::Waker::noop()));
                }
                let reader = std::thread::spawn(move || {
                    let mut all = vec![0; filled + 1_500];
                    peer.read_exact(&mut all).expect("read");
                    peer.write_all(b"got it").expect("write");
                    assert!(all.iter().rev().take(1_500).all(|byte| *byte == b'y'));
                    assert_eq!(all.iter().filter(|byte| **byte == b'y').count(), 1_500);
                    peer
                });
                let buffer = socket.recv(&mut None, None, &pool, &guard).await.expect("recv").expect("bytes");
                assert_eq!(buffer.filled(), b"got it");
                assert!(sending.is_through());
                drop(reader.join().expect("a thread"));
            }
        });
    }

    #[test]
    fn a_runtime_that_ends_waits_for_its_operations() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let runtime = Runtime::new(8).expect("io_uring");
        let pool = runtime.block_on(async {
            let (deadlines, pool) = (Deadlines::new(), BufferPool::new(4, 4_096).expect("a pool"));
            let (socket, guard, peer) = connected(&listener, &deadlines).await;
            let lent = pool.clone();
            spawn(async move {
                let _ = socket.recv(&mut None, None, &lent, &guard).await;
                drop(peer);
            });
            tokio::time::sleep(Duration::from_millis(20)).await;
            pool
        });
        assert_eq!(pool.holders(), 3);
        drop(runtime);
        assert_eq!(pool.holders(), 1);
    }
}
