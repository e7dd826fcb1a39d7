//! One connection to a peer: a socket, with TLS over it or not.
//!
//! Decides: TLS is rustls without a socket. Its output is collected and sent; what arrives is handed to it, and the
//! plain bytes are passed on from where they lie.
//! Invariants: a receive block is held only while its bytes are passed on, never while anything is awaited.
//! Limits: one request at a time. A request is not waited for until it is sent, as the answer shows that; but nothing
//! else is sent before.

use super::body_memory::BodyHold;
use super::tls::{Link, TlsClient};
use ringcrawl_base::stage::{self, Stage};
use ringcrawl_brain::transaction::TlsInfo;
use ringcrawl_ring::{BufferPool, Guard, Receive, Sending, Socket};

/// Why nothing more can be sent or received.
#[derive(Debug)]
pub(super) enum Broken {
    /// The socket failed; a passed deadline is one of these failures.
    Stream,
    /// TLS failed.
    Tls(rustls::Error),
    /// There was no memory for a long handshake.
    Crowded,
}

/// The result of a receive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Received {
    /// Some bytes, perhaps no plain ones yet.
    Some,
    /// The end, announced: by TLS's close_notify, or plainly where there is no TLS.
    End,
    /// The end of the TCP stream below TLS, where anyone may have cut it (RFC 8446 section 6.1).
    TornEnd,
}

/// An open connection.
pub(super) struct Connection {
    socket: Socket,
    tls: Option<Box<Link>>,
    info: Option<TlsInfo>,
    /// From the first receive, or as soon as the connection is kept.
    listening: Option<Receive>,
    /// The request being sent.
    sending: Option<Sending>,
    /// Its plain text, if TLS encrypts it.
    plain: Vec<u8>,
}

impl Connection {
    /// Over a connected socket.
    pub(super) fn new(socket: Socket) -> Connection {
        Connection { socket, tls: None, info: None, listening: None, sending: None, plain: Vec::new() }
    }

    pub(super) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Details of the TLS in use.
    pub(super) fn tls_info(&self) -> Option<&TlsInfo> {
        self.info.as_ref()
    }

    /// Whether the handshake resumed an earlier session (RFC 8446 section 2.2, RFC 5077).
    pub(super) fn is_resumed(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_resumed())
    }

    /// The TLS handshake of `connection`, to the end. A long one waits until `memory` has room for its results.
    pub(super) async fn handshake(
        &mut self,
        client: &TlsClient,
        host: &str,
        buffers: &BufferPool,
        guard: &Guard,
        memory: &BodyHold,
    ) -> Result<(), Broken> {
        let general = |_| Broken::Tls(rustls::Error::General(String::new()));
        let name = TlsClient::server_name(host).map_err(general)?;
        self.tls = {
            let _stage = stage::enter(Stage::Tls);
            Some(Box::new(Link::new(client.start(name.clone()).map_err(general)?)))
        };
        loop {
            memory.unless_cut(self.flush(guard)).await.unwrap_or(Err(Broken::Crowded))?;
            if let Some(needed) = self.tls.as_ref().and_then(|tls| tls.wants_memory()) {
                if !memory.has(needed) && !memory.grow(needed, || guard.is_expired()).await {
                    return Err(Broken::Crowded);
                }
                let Some(tls) = &mut self.tls else { return Err(Broken::Stream) };
                let opened = {
                    let _stage = stage::enter(Stage::Tls);
                    tls.open_waiting().map_err(Broken::Tls)
                };
                if opened.is_err() {
                    // On an error, TLS sends an alert.
                    let _ = self.flush(guard).await;
                }
                opened?;
                continue;
            }
            match &self.tls {
                Some(tls) if tls.is_handshaking() => {}
                Some(tls) => {
                    let _stage = stage::enter(Stage::Tls);
                    self.info = Some(client.describe(tls.inner(), &name).map_err(Broken::Tls)?);
                    // Otherwise a peer that drips its head would keep it.
                    memory.give_back();
                    return Ok(());
                }
                None => return Err(Broken::Stream),
            }
            // Bytes after the handshake are the peer's own fault: nothing was requested yet.
            let received = memory.unless_cut(self.receive(buffers, guard, &mut |_| ())).await;
            if received.unwrap_or(Err(Broken::Crowded))? != Received::Some {
                return Err(Broken::Stream);
            }
        }
    }

    /// Begins to send `bytes`, all of them; the answer can be received at once.
    pub(super) fn ask(&mut self, bytes: Vec<u8>) -> Result<(), Broken> {
        let Some(tls) = &mut self.tls else {
            self.sending = Some(self.socket.send(bytes));
            return Ok(());
        };
        let _stage = stage::enter(Stage::Tls);
        self.plain = bytes;
        let sealed = tls.seal(&self.plain).ok_or(Broken::Stream)?;
        self.sending = Some(self.socket.send(sealed));
        Ok(())
    }

    /// The last request, and whether it was sent whole. Call it once, at the end.
    pub(super) fn asked(&mut self) -> (Vec<u8>, bool) {
        let plain = std::mem::take(&mut self.plain);
        let Some(mut sending) = self.sending.take() else { return (plain, true) };
        let is_through = sending.is_through();
        (if self.tls.is_some() { plain } else { sending.into_bytes() }, is_through)
    }

    /// Receives once and passes the resulting plain bytes to `take`.
    pub(super) async fn receive(
        &mut self,
        buffers: &BufferPool,
        guard: &Guard,
        take: &mut dyn FnMut(&[u8]),
    ) -> Result<Received, Broken> {
        let Connection { socket, listening, sending, .. } = self;
        let came = socket.recv(listening, sending.as_mut(), buffers, guard).await;
        let Some(buffer) = came.map_err(|_| Broken::Stream)? else {
            return Ok(if self.tls.is_some() { Received::TornEnd } else { Received::End });
        };
        let Some(tls) = &mut self.tls else {
            take(buffer.filled());
            return Ok(Received::Some);
        };
        let result = {
            let _stage = stage::enter(Stage::Tls);
            tls.open(buffer.filled(), take).map_err(Broken::Tls)
        };
        drop(buffer);
        match (result, self.flush(guard).await) {
            // On an error, TLS sends an alert; the error itself is what counts.
            (Err(broken), _) => Err(broken),
            (Ok(true), _) => Ok(Received::End),
            (Ok(false), flushed) => flushed.map(|()| Received::Some),
        }
    }

    /// After a whole answer: starts, if needed, to receive the answer to a request that is not made yet. So the end
    /// of the connection, or unrequested bytes, are noticed without a look at the socket.
    pub(super) fn listen(&mut self, buffers: &BufferPool) {
        self.listening.get_or_insert_with(|| self.socket.receive(buffers)).settle();
    }

    /// Whether the connection, which is being listened to, can carry another request: TLS has nothing to send, and
    /// has received little other than content. The receive may have ended with the last bytes of a large answer: then
    /// the socket is checked, and the next answer starts another.
    pub(super) fn is_quiet(&mut self) -> bool {
        if self.tls.as_ref().is_some_and(|tls| tls.wants_write() || tls.is_worn()) {
            return false;
        }
        self.listening.take_if(|receive| receive.has_lapsed());
        match &self.listening {
            Some(receive) => receive.is_waiting(),
            None => self.socket.is_quiet(),
        }
    }

    pub(super) fn close(self) {
        drop(self.listening);
        self.socket.close();
    }

    /// Sends the pending output of TLS.
    async fn flush(&mut self, guard: &Guard) -> Result<(), Broken> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        if !tls.wants_write() {
            return Ok(());
        }
        let bytes = {
            let _stage = stage::enter(Stage::Tls);
            tls.said().ok_or(Broken::Stream)?
        };
        if bytes.is_empty() {
            return Ok(());
        }
        if let Some(sending) = self.sending.take() {
            sending.await.map_err(|_| Broken::Stream)?;
        }
        self.socket.send_all(bytes, guard).await.0.map_err(|_| Broken::Stream)
    }
}
