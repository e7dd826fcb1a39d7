//! Reads a response piece by piece.
//!
//! Decides: when a response is complete, what is kept of one that never completes, and whether its connection may
//! carry another. Interim responses (1xx) are skipped; 101 is refused, because we never request an upgrade.
//!
//! Why so: data received before a break is worth storing if marked. So framing that breaks after the first body byte
//! gives a truncated response (`Unspecified`), and only an earlier break gives an error.
//!
//! Invariants: every byte is examined once; the result is the same for every split of the bytes; the body holds at
//! most `body_wire_bytes_max` bytes, and an announced length reserves eight times the received bytes, or 512 bytes; a
//! response that is truncated, followed by stray bytes or ended by the close is not `keep_alive`.
//!
//! Limits: `Limits`; interim heads share `header_bytes_max` with the final one, and their number is bounded.
//!
//! Leaves to others: clocks and sockets (`fetch` calls `cut` and `end_of_stream`); content codings
//! (`decode_content`).

use super::chunked::{Chunk, Chunked};
use super::coding::{Coding, undo_transfer_codings};
use super::framing::{Extent, plan};
use super::head::{Head, HeadBuffer};
use super::{Headers, Limits, Method};
use ringcrawl_base::{Failure, Truncated};

/// A response, whole or marked as truncated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Response {
    /// 200–999: interim responses are not handed out.
    pub status: u16,
    /// The reason phrase as received, without whitespace around it; not always text.
    pub reason: Vec<u8>,
    /// The x of HTTP/1.x; a status line with version 0.9 counts as 1.0, one with 2.0 as 1.1.
    pub minor_version: u8,
    /// The status line has another version than 1.0 to 1.9.
    pub has_odd_version: bool,
    /// There is a Content-Length that is not a number, and the body goes up to the close.
    pub has_bad_length: bool,
    /// The header fields, without trailers (RFC 9110 section 6.5.1).
    pub headers: Headers,
    /// Status line to empty line inclusive, as received.
    pub head_bytes: Vec<u8>,
    /// After transfer decoding, before content decoding.
    pub body: Vec<u8>,
    /// What determined the end of the body.
    pub framing: Framing,
    /// Why the body is incomplete.
    pub truncated: Option<Truncated>,
    /// Whether the connection may carry another request.
    pub keep_alive: bool,
    /// Bytes received for this response: head, interim heads, framing, body.
    pub wire_bytes: u64,
}

/// What determined the end of the body.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Framing {
    /// Content-Length.
    Length,
    /// The chunked transfer coding.
    Chunked,
    /// The end of the connection.
    Close,
    /// There is no body: HEAD, 204, 304.
    None,
}

impl Framing {
    /// `length`, `chunked`, `close` or `none`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Framing::Length => "length",
            Framing::Chunked => "chunked",
            Framing::Close => "close",
            Framing::None => "none",
        }
    }
}

/// Why there is no response. Closed: a new reason is a new line here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, thiserror::Error)]
pub enum HttpError {
    /// The peer closed before the head was complete.
    #[error("connection closed before the response head was complete")]
    ClosedEarly,
    /// No status line: another protocol, or junk.
    #[error("not an HTTP/1.x response")]
    NotHttp,
    /// No status line, but a document: HTTP/0.9.
    #[error("HTTP/0.9 response: a document without status line and fields")]
    Version09,
    /// A head that cannot be read.
    #[error("malformed response head: {0}")]
    Malformed(&'static str),
    /// More bytes, fields or interim heads than `Limits` allows.
    #[error("response head too large")]
    HeadTooLarge,
    /// Content-Length has several different numbers.
    #[error("conflicting Content-Length")]
    ContentLength,
    /// A transfer coding that is unknown or misplaced.
    #[error("unsupported Transfer-Encoding")]
    TransferCoding,
    /// The chunked framing is broken before the first byte of the body.
    #[error("invalid chunked framing")]
    Chunk,
    /// 101: the peer switched to a protocol that was not requested.
    #[error("unasked 101 Switching Protocols")]
    Upgrade,
}

impl HttpError {
    /// The failure under which this is counted.
    pub const fn failure(self) -> Failure {
        match self {
            HttpError::ClosedEarly => Failure::ClosedEarly,
            HttpError::HeadTooLarge => Failure::HeadTooLarge,
            HttpError::Version09 => Failure::Http09,
            HttpError::NotHttp
            | HttpError::Malformed(_)
            | HttpError::ContentLength
            | HttpError::TransferCoding
            | HttpError::Chunk
            | HttpError::Upgrade => Failure::Malformed,
        }
    }
}

/// Whether a response needs more bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// It does.
    More,
    /// It is complete, or cut at a limit: `into_response` returns it.
    Done,
}

/// Reads one response.
pub struct ResponseReader {
    method: Method,
    limits: Limits,
    state: ReaderState,
    gathering: HeadBuffer,
    interim_bytes: usize,
    interim_count: usize,
    head: Option<FinalHead>,
    body: Vec<u8>,
    truncated: Option<Truncated>,
    started: bool,
    /// The connection is unusable after what happened on it.
    spent: bool,
    wire_bytes: u64,
}

struct FinalHead {
    head: Head,
    head_bytes: Vec<u8>,
    framing: Framing,
    codings: Vec<Coding>,
    persistent: bool,
    has_bad_length: bool,
}

enum ReaderState {
    Head,
    Length { left: u64 },
    Chunked(Chunked),
    Close,
    Done,
    Failed(HttpError),
}

/// What a Content-Length may reserve when almost nothing of the body has arrived: a slow server holds no more.
const RESERVE_BYTES_MIN: usize = 512;
/// What a Content-Length may reserve, as a multiple of the bytes that came with the head: a page that is sent at once
/// is copied once.
const RESERVE_RATIO: usize = 8;
/// The most that it may reserve: more is allocated when data arrives.
const RESERVE_BYTES_MAX: usize = 48 << 10;

impl ResponseReader {
    /// For the response to one request of that method.
    pub fn new(method: Method, limits: Limits) -> ResponseReader {
        ResponseReader {
            method,
            limits,
            state: ReaderState::Head,
            gathering: HeadBuffer::default(),
            interim_bytes: 0,
            interim_count: 0,
            head: None,
            body: Vec::new(),
            truncated: None,
            started: false,
            spent: false,
            wire_bytes: 0,
        }
    }

    /// Takes all of `bytes`. Bytes after the message's end are noted: the connection must not be reused.
    ///
    /// An error is final: every later call returns it again.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Progress, HttpError> {
        self.started |= !bytes.is_empty();
        let mut rest = bytes;
        loop {
            match &self.state {
                ReaderState::Failed(error) => return Err(*error),
                ReaderState::Done => {
                    self.spent |= !rest.is_empty();
                    return Ok(Progress::Done);
                }
                _ if rest.is_empty() => return Ok(Progress::More),
                _ => {}
            }
            let before = rest.len();
            if let Err(error) = self.step(&mut rest) {
                self.state = ReaderState::Failed(error);
            }
            self.wire_bytes += (before - rest.len()) as u64;
        }
    }

    /// The peer closed: a body delimited by the close is complete, one shorter than its length is truncated (RFC 9112
    /// section 8), and without a head there is no response.
    pub fn end_of_stream(&mut self) -> Result<Progress, HttpError> {
        self.spent = true;
        match &self.state {
            ReaderState::Failed(error) => return Err(*error),
            ReaderState::Head => {
                let error = self.gathering.ended();
                self.state = ReaderState::Failed(error);
                return Err(error);
            }
            ReaderState::Length { .. } | ReaderState::Chunked(_) => self.stop(Some(Truncated::Disconnect)),
            ReaderState::Close | ReaderState::Done => self.stop(None),
        }
        Ok(Progress::Done)
    }

    /// The hands stop here (deadline, reset): received data is kept and marked. Without a head, or if the response is
    /// already complete, nothing changes.
    pub fn cut(&mut self, why: Truncated) {
        if self.has_head() && !matches!(self.state, ReaderState::Done) {
            self.stop(Some(why));
        }
    }

    /// Whether the final response's head is complete and readable.
    pub fn has_head(&self) -> bool {
        self.head.is_some() && !matches!(self.state, ReaderState::Failed(_))
    }

    /// The final response's status, once its head is complete and readable.
    pub fn status(&self) -> Option<u16> {
        self.head.as_ref().filter(|_| self.has_head()).map(|head| head.head.status)
    }

    /// The maximum memory held after up to `more` further bytes. The head counts three times: its bytes, its fields,
    /// and data derived from them.
    pub fn memory_after(&self, more: usize) -> usize {
        let head = self.head.as_ref().map_or(self.gathering.len(), |head| head.head_bytes.len());
        let more = match self.state {
            ReaderState::Head => more.min(RESERVE_BYTES_MAX),
            ReaderState::Length { left } => more.min(usize::try_from(left).unwrap_or(usize::MAX)),
            ReaderState::Chunked(_) | ReaderState::Close => more,
            ReaderState::Done | ReaderState::Failed(_) => 0,
        };
        let needed = self.body.len().saturating_add(more);
        let body = if needed > self.body.capacity() { needed.max(self.doubled()) } else { self.body.capacity() };
        head * 3 + body
    }

    /// Whether there are transfer codings other than chunked, which `into_response` decodes.
    pub fn has_transfer_coding(&self) -> bool {
        self.head.as_ref().is_some_and(|head| !head.codings.is_empty())
    }

    /// Sets a further limit: the decoded body has at most `bytes_max` bytes.
    pub fn undo_at_most(&mut self, bytes_max: usize) {
        self.limits.body_wire_bytes_max = self.limits.body_wire_bytes_max.min(bytes_max);
    }

    /// Whether only one valid response has been received so far.
    pub fn is_clean(&self) -> bool {
        !self.spent
    }

    /// Whether any byte has arrived.
    pub fn started(&self) -> bool {
        self.started
    }

    /// The response; `None` before its head is complete, and after an error. One that is not done counts as cut by a
    /// disconnect.
    pub fn into_response(mut self) -> Option<Response> {
        self.cut(Truncated::Disconnect);
        if !self.has_head() {
            return None;
        }
        let FinalHead { head, head_bytes, framing, codings, persistent, has_bad_length } = self.head?;
        let (mut body, mut truncated) = (self.body, self.truncated);
        if !codings.is_empty() {
            let undone;
            (body, undone) = undo_transfer_codings(&codings, body, &self.limits);
            truncated = truncated.or(undone);
        }
        Some(Response {
            status: head.status,
            reason: head.reason,
            minor_version: head.minor_version,
            has_odd_version: head.has_odd_version,
            has_bad_length,
            headers: head.headers,
            head_bytes,
            body,
            framing,
            truncated,
            keep_alive: persistent && !self.spent && truncated.is_none(),
            wire_bytes: self.wire_bytes,
        })
    }

    /// Takes at least one byte of `rest`, or leaves the current state.
    fn step(&mut self, rest: &mut &[u8]) -> Result<(), HttpError> {
        let room = self.limits.body_wire_bytes_max.saturating_sub(self.body.len());
        match &mut self.state {
            ReaderState::Head => {
                let bytes_max = self.limits.header_bytes_max.saturating_sub(self.interim_bytes);
                if self.gathering.take(rest, bytes_max)? {
                    // The junk may belong to another message: the connection is not reused.
                    self.spent |= self.gathering.had_junk();
                    let head_bytes = self.gathering.finish();
                    self.head_complete(head_bytes, rest.len())?;
                }
            }
            ReaderState::Length { left } => {
                let wanted = rest.len().min(room).min(usize::try_from(*left).unwrap_or(usize::MAX));
                let (data, after) = rest.split_at_checked(wanted).unwrap_or((rest, &[]));
                *rest = after;
                *left = left.saturating_sub(data.len() as u64);
                let left = *left;
                self.append(data);
                self.stop_at_length(left);
            }
            ReaderState::Chunked(decoder) => match decoder.next(rest, room) {
                Ok(Chunk::Data(data)) => self.append(data),
                Ok(Chunk::More) => {}
                Ok(Chunk::End) => self.stop(None),
                Ok(Chunk::Full) => self.stop(Some(Truncated::Length)),
                Err(_) if self.body.is_empty() => return Err(HttpError::Chunk),
                Err(_) => self.stop(Some(Truncated::Unspecified)),
            },
            ReaderState::Close => {
                let (data, after) = rest.split_at_checked(rest.len().min(room)).unwrap_or((rest, &[]));
                *rest = after;
                self.append(data);
                if !rest.is_empty() {
                    self.stop(Some(Truncated::Length));
                }
            }
            ReaderState::Done | ReaderState::Failed(_) => {}
        }
        Ok(())
    }

    /// `more_bytes` came with the head.
    fn head_complete(&mut self, head_bytes: Vec<u8>, more_bytes: usize) -> Result<(), HttpError> {
        let head = Head::parse(&head_bytes, self.limits.header_count_max)?;
        match head.status {
            101 => return Err(HttpError::Upgrade),
            100..=199 => {
                self.interim_bytes += head_bytes.len();
                self.interim_count += 1;
                return match self.interim_count > self.limits.interim_count_max {
                    true => Err(HttpError::HeadTooLarge),
                    false => Ok(()),
                };
            }
            _ => {}
        }
        let plan = plan(self.method, head.status, head.minor_version, &head.headers)?;
        let framing = match plan.extent {
            Extent::Nothing => Framing::None,
            Extent::Bytes(_) => Framing::Length,
            Extent::Chunks => Framing::Chunked,
            Extent::Close => Framing::Close,
        };
        let (codings, persistent, has_bad_length) = (plan.codings, plan.persistent, plan.has_bad_length);
        self.head = Some(FinalHead { head, head_bytes, framing, codings, persistent, has_bad_length });
        match plan.extent {
            Extent::Nothing => self.stop(None),
            Extent::Bytes(left) => {
                let announced = usize::try_from(left).unwrap_or(usize::MAX);
                let backed = more_bytes.saturating_mul(RESERVE_RATIO).clamp(RESERVE_BYTES_MIN, RESERVE_BYTES_MAX);
                self.body.reserve_exact(announced.min(backed).min(self.limits.body_wire_bytes_max));
                self.state = ReaderState::Length { left };
                self.stop_at_length(left);
            }
            Extent::Chunks => self.state = ReaderState::Chunked(Chunked::new(self.limits.header_bytes_max)),
            Extent::Close => self.state = ReaderState::Close,
        }
        Ok(())
    }

    fn stop_at_length(&mut self, left: u64) {
        if left == 0 {
            self.stop(None);
        } else if self.body.len() >= self.limits.body_wire_bytes_max {
            self.stop(Some(Truncated::Length));
        }
    }

    fn stop(&mut self, truncated: Option<Truncated>) {
        self.state = ReaderState::Done;
        self.truncated = self.truncated.or(truncated);
    }

    /// Grows by doubling, but, unlike `Vec`, never beyond the limit.
    fn append(&mut self, data: &[u8]) {
        let needed = self.body.len() + data.len();
        if needed > self.body.capacity() {
            self.body.reserve_exact(needed.max(self.doubled()) - self.body.len());
        }
        self.body.extend_from_slice(data);
    }

    fn doubled(&self) -> usize {
        self.body.capacity().saturating_mul(2).min(self.limits.body_wire_bytes_max)
    }
}

#[cfg(test)]
mod tests;
