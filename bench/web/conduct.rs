//! Conduct: a connection's behaviour behind the fixed bytes of a faulty response, as its script says.
//!
//! Decides: while a connection drips or is silent it listens, so that it ends when the client has gone; a flood
//! notices that by itself. Input from the client in that time is kept for the next request.
//! Invariants: everything ends: drips and floods by their count, silence after `HOLD_MAX`.
//! Leaves to others: the behaviour of each spot (`faults::script`).

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::faults::script::{DRIP_PAUSE, Then};

/// A stream over TCP, with TLS or not.
pub(super) trait Wire: AsyncRead + AsyncWrite + Unpin {
    /// The TCP connection below.
    fn tcp(&self) -> &TcpStream;
}

impl Wire for TcpStream {
    fn tcp(&self) -> &TcpStream {
        self
    }
}

impl Wire for tokio_rustls::server::TlsStream<TcpStream> {
    fn tcp(&self) -> &TcpStream {
        self.get_ref().0
    }
}

/// How a response is sent.
#[derive(Debug)]
pub(super) struct Manner {
    /// Time before the first byte.
    pub wait: Duration,
    /// What follows the last byte.
    pub then: Then,
    /// How long the client was asked to leave the host alone.
    pub rest: Option<Duration>,
}

impl Manner {
    /// At once and complete.
    pub const PLAIN: Manner = Manner { wait: Duration::ZERO, then: Then::Next, rest: None };
}

/// How a connection continues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum After {
    /// With the next request.
    Next,
    /// It is closed in order.
    Close,
    /// It is dropped.
    Drop,
}

/// Carries out `then`. Input from the client in that time goes to `input`.
pub(super) async fn carry_out<S: Wire>(stream: &mut S, then: Then, input: &mut Vec<u8>) -> io::Result<After> {
    match then {
        Then::Next => Ok(After::Next),
        Then::Close => Ok(After::Close),
        Then::Reset => {
            // Bytes sent arrive before the reset, which drops bytes that have not left yet.
            sleep(RESET_PAUSE).await;
            stream.tcp().set_zero_linger()?;
            Ok(After::Drop)
        }
        Then::Hold => {
            let _ = timeout(HOLD_MAX, async { while listen(stream, input).await {} }).await;
            Ok(After::Drop)
        }
        Then::Drip { bytes, count, next } => {
            for _ in 0..count {
                // Listens until the pause ends or the client has gone.
                if timeout(DRIP_PAUSE, async { while listen(stream, input).await {} }).await.is_ok() {
                    return Ok(After::Drop);
                }
                stream.write_all(bytes).await?;
                stream.flush().await?;
            }
            Ok(if next { After::Next } else { After::Close })
        }
        Then::Flood { piece, bytes, next } => {
            let mut left = bytes;
            while left > 0 {
                let part = piece.get(..usize::try_from(left).unwrap_or(usize::MAX)).unwrap_or(&piece);
                if part.is_empty() {
                    break;
                }
                timeout(HOLD_MAX, stream.write_all(part)).await.map_err(|_| io::ErrorKind::TimedOut)??;
                left -= part.len() as u64;
            }
            stream.flush().await?;
            Ok(if next { After::Next } else { After::Close })
        }
    }
}

/// Reads input from the client; `false` when the client is done, or sent too much.
async fn listen<S: Wire>(stream: &mut S, input: &mut Vec<u8>) -> bool {
    input.len() < INPUT_BYTES_MAX && matches!(stream.read_buf(input).await, Ok(1..))
}

/// A silent connection ends after this.
const HOLD_MAX: Duration = Duration::from_secs(600);
/// Pause between the last byte and a reset.
const RESET_PAUSE: Duration = Duration::from_millis(20);
/// No client sends more than this in that time.
const INPUT_BYTES_MAX: usize = 64 * 1_024;
