//! A receive in flight, which may last as long as its connection.
//!
//! Decides: it continues until the end of the stream (multishot), so that arriving data needs no operation of its
//! own; when no task takes what arrived, the ring ends it. It holds no memory until data has arrived, then a block of
//! the pool. Whether anything has arrived can be checked without waiting, so an idle connection is known to be quiet
//! without a system call. A kernel that continues receiving may read the last bytes and miss the end that came with
//! them, especially a reset: it counts what woke it, and forgets the rest once it has read (Linux up to 7.0; for
//! resets 6.18 as well). Any later event wakes it again. So a task that waits for more after something has arrived
//! checks once whether that was all; if so, another receive sees the end. A check costs about as much as an
//! operation, so none is made if the received data was complete: if the end was missed just there, the next send
//! fails, and that triggers a check. Ends were missed when a dropped receive still shut its connection down. Since it
//! is cancelled instead, 400,000 aborted fetches ended well even without a check: the check is a safeguard, and
//! whether it is still needed is not known.
//! Invariants: blocks taken by the kernel are not lost, even when the receive is dropped before its completion.
//! Limits: one receive at a time on a socket; before Linux 6.0 it ends with the first bytes.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::Rc;
use std::task::{Context, Poll};

use io_uring::{opcode, squeue, types};

use super::driver::Driver;
use super::slots::{Completion, Leftover, OpId};
use super::{Buffer, BufferPool, runtime};

/// What a receive holds until its completion.
#[derive(Clone)]
struct PendingReceive {
    pool: BufferPool,
    fd: Rc<OwnedFd>,
}

impl PendingReceive {
    fn block(&self, completion: Completion) -> Option<Buffer> {
        self.pool.picked(completion.block?, usize::try_from(completion.result).unwrap_or(0))
    }
}

impl Leftover for PendingReceive {
    fn completed(&self, completion: Completion) {
        drop(self.block(completion));
    }
}

/// A receive in flight. Dropped early, it is cancelled but still kept until its end: the kernel may already have taken
/// a block, and only the completion says which.
pub struct Receive {
    driver: Rc<Driver>,
    /// `None` once it has ended.
    id: Option<OpId>,
    /// Whether to check for the end.
    suspects: bool,
    held: PendingReceive,
}

impl Receive {
    /// Only inside a runtime.
    pub(super) fn new(fd: &Rc<OwnedFd>, pool: &BufferPool) -> Receive {
        let target = types::Fd(fd.as_raw_fd());
        let driver = runtime::driver().expect("a receive outside a runtime");
        let entry = match driver.receives_go_on() {
            true => opcode::RecvMulti::new(target, pool.group()).build(),
            false => {
                let once = opcode::Recv::new(target, std::ptr::null_mut(), pool.block_bytes()).buf_group(pool.group());
                once.build().flags(squeue::Flags::BUFFER_SELECT)
            }
        };
        let id = driver.submit(entry);
        Receive { driver, id: Some(id), suspects: false, held: PendingReceive { pool: pool.clone(), fd: fd.clone() } }
    }

    /// Whether nothing has arrived yet, not even the end. For an idle connection: whether it may be used for another
    /// request, as unsolicited bytes would be taken for the next answer.
    pub fn is_waiting(&self) -> bool {
        self.id.is_some_and(|id| self.driver.is_waiting(id))
    }

    /// Whether it ended for a reason other than the peer, and nothing is left to take: no block was free, or more had
    /// arrived than was asked for. Later data is in the socket ([`Socket::is_quiet`](super::Socket::is_quiet)).
    pub fn has_lapsed(&self) -> bool {
        let last = self.id.and_then(|id| self.driver.last(id));
        last.is_some_and(|last| [-libc::ENOBUFS, -libc::ECANCELED].contains(&last.result) && last.block.is_none())
    }

    /// The end may have come unnoticed.
    pub(super) fn suspect(&mut self) {
        self.suspects = true;
    }

    /// The received data was complete: there is no reason to check for the end.
    pub fn settle(&mut self) {
        self.suspects = false;
    }

    /// Whether nothing more will come; another receive may then be started.
    pub(super) fn has_ended(&self) -> bool {
        self.id.is_none()
    }

    /// What arrived next; never anything once it has ended.
    pub(super) fn poll_next(&mut self, context: &Context<'_>) -> Poll<(io::Result<u32>, Option<Buffer>)> {
        let Some(id) = self.id else { return Poll::Pending };
        let Poll::Ready((completion, last)) = self.driver.poll(id, context) else {
            if std::mem::take(&mut self.suspects) && has_come(&self.held.fd, libc::POLLRDHUP) {
                self.driver.cancel(id);
            }
            return Poll::Pending;
        };
        if last {
            self.id = None;
        }
        self.suspect();
        Poll::Ready((completion.to_result(), self.held.block(completion)))
    }
}

impl Drop for Receive {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            self.driver.cancel(id);
            self.driver.leave(id, Rc::new(self.held.clone()));
        }
    }
}

/// Whether one of `events` has come, or the connection is gone. Does not wait.
pub(super) fn has_come(fd: &OwnedFd, events: libc::c_short) -> bool {
    let mut target = libc::pollfd { fd: fd.as_raw_fd(), events, revents: 0 };
    // SAFETY: one pollfd, which lives across the call.
    let count = unsafe { libc::poll(&raw mut target, 1, 0) };
    count > 0
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{SocketAddr, TcpListener};

    use super::super::{Deadlines, Runtime, Socket, now, spawn};
    use super::*;
    use ringcrawl_base::time::Duration;

    /// Both came before the ring was entered. On Linux 6.18 this is also seen without a check.
    #[test]
    fn a_reset_that_comes_with_the_last_bytes_is_seen() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let addr = listener.local_addr().expect("address");
        Runtime::new(8).expect("io_uring").block_on(async {
            let (deadlines, pool) = (Deadlines::new(), BufferPool::new(4, 100).expect("a pool"));
            for _ in 0..20 {
                let socket = Socket::new(addr.ip()).expect("socket");
                let guard = deadlines.guard(&socket, now() + Duration::from_secs(5));
                socket.connect(addr, &guard).await.expect("a connection");
                let (mut peer, _) = listener.accept().expect("accept");
                let mut begun = Some(socket.receive(&pool));
                socket.send_all(b"unread".to_vec(), &guard).await.0.expect("send");
                peer.write_all(b"the last").expect("write");
                // Unread data turns the close into a reset.
                drop(peer);
                let buffer = socket.recv(&mut begun, None, &pool, &guard).await.expect("recv").expect("bytes");
                assert_eq!(buffer.filled(), b"the last");
                let end = socket.recv(&mut begun, None, &pool, &guard).await;
                assert_eq!(end.err().and_then(|error| error.raw_os_error()), Some(libc::ECONNRESET));
                assert!(!guard.is_expired(), "the end was not seen");
            }
        });
    }

    /// The end comes with the last bytes, or just after them, and often as a reset: the request is not read.
    #[test]
    fn the_end_that_comes_with_the_last_bytes_is_seen() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let addr = listener.local_addr().expect("address");
        for _ in 0..2 {
            let listener = listener.try_clone().expect("clone");
            std::thread::spawn(move || {
                listener.incoming().flatten().for_each(|mut peer| drop(peer.write_all(b"the last")));
            });
        }
        // As on newer kernels, and on older ones.
        for is_new in [true, false] {
            let driver = Driver::with(1_024, is_new, is_new).expect("io_uring");
            Runtime::over(driver).expect("a runtime").block_on(async {
                let clients: Vec<_> = (0..20).map(|_| spawn(client(addr))).collect();
                for client in clients {
                    client.await.expect("a client");
                }
            });
        }
    }

    async fn client(addr: SocketAddr) {
        let (deadlines, pool) = (Deadlines::new(), BufferPool::new(10, 100).expect("a pool"));
        for _ in 0..500 {
            let socket = Socket::new(addr.ip()).expect("socket");
            let guard = deadlines.guard(&socket, now() + Duration::from_secs(5));
            socket.connect(addr, &guard).await.expect("a connection");
            let (sending, mut begun) = (socket.send(b"unread".to_vec()), None);
            while let Ok(Some(buffer)) = socket.recv(&mut begun, None, &pool, &guard).await {
                assert_eq!(buffer.filled(), b"the last");
            }
            assert!(!guard.is_expired(), "the end was not seen");
            drop(sending);
        }
    }
}
