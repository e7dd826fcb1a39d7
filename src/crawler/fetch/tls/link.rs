//! A client's TLS without a socket: output is collected, input is decrypted.
//!
//! Decides: input is metered before TLS processes it (`meter`), and the plain bytes are passed on from where they
//! lie. What a handshake brings beyond its first [`FREE_BYTES`] waits here until the caller has memory for what TLS
//! makes of it, [`TIMES`] times as much. Input that TLS must not process is an error like those of TLS itself: in the
//! handshake that of a chain that is too long, after it one without a name.
//! Limits: rustls takes a few KB at a time, or what is missing of a record.

use std::io::{BufRead, Write};

use rustls::{ClientConnection, Error, HandshakeKind, ProtocolVersion};

use super::chains::ChainTooLong;
use super::meter::{Excess, HANDSHAKE_BYTES_MAX, Meter, RECORD_BYTES, RECORD_BYTES_TLS12};

/// The TLS of one connection.
pub(in crate::fetch) struct Link {
    inner: ClientConnection,
    meter: Meter,
    /// What the handshake may bring so far.
    allowed: usize,
    /// What has arrived beyond that.
    waiting: Vec<u8>,
}

/// Bytes of a handshake whose memory is counted with each fetch: 32 KiB at worst, and the bytes that wait after them.
const FREE_BYTES: usize = 2 << 10;
/// What rustls makes of a byte, at worst: an empty certificate is 3 bytes on the wire and takes 24 in a list that
/// doubles.
const TIMES: usize = 16;

impl Link {
    /// For a connection that has received nothing yet.
    pub(in crate::fetch) fn new(inner: ClientConnection) -> Link {
        Link { inner, meter: Meter::default(), allowed: FREE_BYTES, waiting: Vec::new() }
    }

    /// The state of TLS.
    pub(in crate::fetch) fn inner(&self) -> &ClientConnection {
        &self.inner
    }

    pub(in crate::fetch) fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }

    /// Whether the handshake resumed an earlier session.
    pub(in crate::fetch) fn is_resumed(&self) -> bool {
        self.inner.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    pub(in crate::fetch) fn wants_write(&self) -> bool {
        self.inner.wants_write()
    }

    /// Whether the peer has sent so much other than content that the connection should not be used again.
    pub(in crate::fetch) fn is_worn(&self) -> bool {
        self.meter.is_worn()
    }

    /// `plain` in its encrypted form; `None` if TLS does not accept it.
    pub(in crate::fetch) fn seal(&mut self, plain: &[u8]) -> Option<Vec<u8>> {
        let (mut rest, mut sealed) = (plain, Vec::new());
        while !rest.is_empty() {
            let taken = self.inner.writer().write(rest).ok()?;
            rest = rest.get(taken..).filter(|_| taken > 0)?;
            self.drain_into(&mut sealed)?;
        }
        Some(sealed)
    }

    /// The pending output of TLS.
    pub(in crate::fetch) fn said(&mut self) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        self.drain_into(&mut bytes)?;
        Some(bytes)
    }

    fn drain_into(&mut self, bytes: &mut Vec<u8>) -> Option<()> {
        while self.inner.wants_write() {
            self.inner.write_tls(bytes).ok()?;
        }
        Some(())
    }

    /// Bytes of memory that the handshake needs to continue; `None` if it needs no more.
    pub(in crate::fetch) fn wants_memory(&self) -> Option<usize> {
        let all = self.meter.handshake_bytes().saturating_add(self.waiting.len());
        (!self.waiting.is_empty()).then(|| all.saturating_mul(TIMES))
    }

    /// The required memory is available.
    pub(in crate::fetch) fn open_waiting(&mut self) -> Result<(), Error> {
        self.allowed = HANDSHAKE_BYTES_MAX.min(self.meter.handshake_bytes().saturating_add(self.waiting.len()));
        let waiting = std::mem::take(&mut self.waiting);
        // Bytes after the handshake are the peer's own fault: nothing was requested yet.
        self.open(&waiting, &mut |_| ()).map(drop)
    }

    /// Takes received `bytes` and passes the plain bytes in them to `take`; returns whether the peer has ended the
    /// connection.
    pub(in crate::fetch) fn open(&mut self, mut bytes: &[u8], take: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        while !bytes.is_empty() {
            let is_handshaking = self.inner.is_handshaking();
            if is_handshaking && self.meter.handshake_bytes() >= self.allowed {
                if self.meter.handshake_bytes() + self.waiting.len() + bytes.len() > HANDSHAKE_BYTES_MAX {
                    return Err(self.refusal(Excess));
                }
                self.waiting.extend_from_slice(bytes);
                return Ok(false);
            }
            // No more than is allowed so far.
            let room =
                if is_handshaking { self.allowed.saturating_sub(self.meter.handshake_bytes()) } else { usize::MAX };
            let (mut bytes_now, behind) = bytes.split_at(bytes.len().min(room));
            let before = bytes_now;
            // Reading from a slice cannot fail, and what was decrypted is drained below, so there is room.
            if self.inner.read_tls(&mut bytes_now).is_err() || bytes_now.len() == before.len() {
                break;
            }
            let taken = before.len().saturating_sub(bytes_now.len());
            bytes = bytes.get(taken..).unwrap_or(behind);
            self.meter.came(before.get(..taken).unwrap_or_default()).map_err(|excess| self.refusal(excess))?;
            let state = self.inner.process_new_packets();
            let mut content = 0;
            let mut reader = self.inner.reader();
            while let Ok(plain) = reader.fill_buf() {
                let length = plain.len();
                if length == 0 {
                    break;
                }
                take(plain);
                content += length;
                reader.consume(length);
            }
            if state?.peer_has_closed() {
                return Ok(true);
            }
            self.meter.held(content).map_err(|excess| self.refusal(excess))?;
            if !self.inner.is_handshaking() {
                self.meter.opened(match self.inner.protocol_version() {
                    Some(ProtocolVersion::TLSv1_3) => RECORD_BYTES,
                    _ => RECORD_BYTES_TLS12,
                });
            }
        }
        Ok(false)
    }

    fn refusal(&self, _: Excess) -> Error {
        match self.inner.is_handshaking() {
            true => ChainTooLong.into(),
            false => Error::General("too many bytes that are not content".to_owned()),
        }
    }
}
