//! A client's TLS without a socket: what it wants to say is collected, what arrives is opened.
//!
//! Decides: what arrives is metered before TLS works on it (`meter`), and the plain bytes are passed on from where they
//! lie. What TLS must not work on is an error like those of TLS itself: in the handshake that of a chain that is too long,
//! behind it one without a name.
//! Limits: rustls takes a few KB at a time, or what is missing of a record.

use std::io::{BufRead, Write};

use rustls::{ClientConnection, Error, HandshakeKind, ProtocolVersion};

use super::chains::ChainTooLong;
use super::meter::{Excess, Meter, RECORD_BYTES, RECORD_BYTES_TLS12};

/// One connection's.
pub(in crate::fetch) struct Link {
    inner: ClientConnection,
    meter: Meter,
}

impl Link {
    /// Of a connection that has received nothing yet.
    pub(in crate::fetch) fn new(inner: ClientConnection) -> Link {
        Link { inner, meter: Meter::default() }
    }

    /// What TLS knows.
    pub(in crate::fetch) fn inner(&self) -> &ClientConnection {
        &self.inner
    }

    pub(in crate::fetch) fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }

    /// Whether the handshake took up an earlier session.
    pub(in crate::fetch) fn is_resumed(&self) -> bool {
        self.inner.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    pub(in crate::fetch) fn wants_write(&self) -> bool {
        self.inner.wants_write()
    }

    /// Whether the peer has said so much besides content that it is better not asked again.
    pub(in crate::fetch) fn is_worn(&self) -> bool {
        self.meter.is_worn()
    }

    /// `plain` as it goes out; `None` when TLS does not take it.
    pub(in crate::fetch) fn seal(&mut self, plain: &[u8]) -> Option<Vec<u8>> {
        let (mut rest, mut sealed) = (plain, Vec::new());
        while !rest.is_empty() {
            let taken = self.inner.writer().write(rest).ok()?;
            rest = rest.get(taken..).filter(|_| taken > 0)?;
            self.drain_into(&mut sealed)?;
        }
        Some(sealed)
    }

    /// What TLS wants to say.
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

    /// Takes `bytes`, which have come, and passes the plain bytes in them to `take`; whether the peer has ended the
    /// connection.
    pub(in crate::fetch) fn open(&mut self, mut bytes: &[u8], take: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        while !bytes.is_empty() {
            let before = bytes;
            // Reading from a slice cannot fail, and what was decrypted is drained below, so there is room.
            if self.inner.read_tls(&mut bytes).is_err() || bytes.len() == before.len() {
                break;
            }
            let taken = before.len().saturating_sub(bytes.len());
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
            false => Error::General("more than content".to_owned()),
        }
    }
}
