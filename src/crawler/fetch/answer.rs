//! What has arrived of a response, and what it is worth once nothing more arrives.
//!
//! Decides: a response with a complete head is kept to the extent that it arrived, and marked, whatever ends it.
//! Before that it is a failure. Bytes after the response are counted but not examined: their meaning is unknown.
//! Invariants: only a whole response with nothing after it leaves its connection fit for another.
//! Leaves to others: sockets and clocks (`exchange`), the bytes themselves (`http`).

use super::connection::Broken;
use ringcrawl_base::stage::{self, Stage};
use ringcrawl_base::{Failure, Truncated};
use ringcrawl_brain::memory_budget::BODY_BYTES_FREE;
use ringcrawl_http::{self as http, HttpError, Limits, Method, Progress, Response, ResponseReader};

/// What has arrived of the response.
pub(super) struct Answer {
    reader: ResponseReader,
    state: Result<Progress, HttpError>,
    /// Plain bytes received, including those after the response.
    pub(super) bytes: u64,
    /// The stream ended properly.
    ended: bool,
    /// The stream ended below TLS.
    pub(super) torn: bool,
    /// There was no memory for more of it.
    pub(super) is_crowded_out: bool,
}

/// A response, whole or not.
pub(super) struct Concluded {
    pub(super) response: Response,
    /// The connection may be kept.
    pub(super) keep: bool,
    /// It broke before the response's end.
    pub(super) reset: bool,
    /// It was cut because it arrived too slowly.
    pub(super) slow: bool,
    /// It was cut because its whole time was used up.
    pub(super) is_late: bool,
    /// More bytes arrived than the response.
    pub(super) excess: bool,
    /// It was cut because there was no memory for more.
    pub(super) crowded_out: bool,
}

/// Why there is no response.
pub(super) enum Silence {
    /// The connection broke before a byte arrived.
    Torn(Failure),
    /// Anything else.
    Final(Failure),
}

impl Answer {
    pub(super) fn new(limits: Limits) -> Answer {
        let reader = ResponseReader::new(Method::Get, limits);
        Answer { reader, state: Ok(Progress::More), bytes: 0, ended: false, torn: false, is_crowded_out: false }
    }

    pub(super) fn take(&mut self, bytes: &[u8]) {
        let _stage = stage::enter(Stage::Http);
        self.bytes += bytes.len() as u64;
        if !self.is_over() {
            self.state = self.reader.feed(bytes);
        }
    }

    pub(super) fn end(&mut self) {
        self.ended = true;
        if !self.is_over() {
            self.state = self.reader.end_of_stream();
        }
    }

    pub(super) fn is_over(&self) -> bool {
        !matches!(self.state, Ok(Progress::More))
    }

    /// Bytes of memory that it holds at most once a block's bytes have arrived, too.
    pub(super) fn memory_after(&self, more: usize) -> usize {
        self.reader.memory_after(more)
    }

    /// Bytes of memory that decoding its transfer codings takes at most; `None` if it has none.
    pub(super) fn memory_of_undoing(&self) -> Option<usize> {
        self.reader.has_transfer_coding().then(|| self.memory_after(0).saturating_add(2 * http::TRANSFER_BYTES_MAX))
    }

    /// That much memory is not available: it decodes only as much as a fetch may always hold.
    pub(super) fn undo_little(&mut self) {
        self.reader.undo_at_most(BODY_BYTES_FREE as usize);
    }

    /// What is wrong with it, if that leaves nothing worth keeping.
    pub(super) fn error(&self) -> Option<HttpError> {
        self.state.err()
    }

    pub(super) fn has_head(&self) -> bool {
        self.reader.has_head()
    }

    /// The response, and the state of the connection; or why there is none. `expired` is the failure that a passed
    /// deadline causes, `broken` what broke.
    pub(super) fn conclude(mut self, expired: Option<Failure>, broken: Option<Broken>) -> Result<Concluded, Silence> {
        let over = matches!(self.state, Ok(Progress::Done));
        // An error of the reader leaves nothing worth keeping; the reader marks all other faults itself.
        if self.state.is_err() || !over && !self.reader.has_head() {
            return Err(self.silence(expired, broken));
        }
        if !over {
            self.reader.cut(match expired {
                _ if self.is_crowded_out => Truncated::Length,
                Some(_) => Truncated::Time,
                None => Truncated::Disconnect,
            });
        }
        let bytes = self.bytes;
        let reset = !over && expired.is_none() && broken.is_some();
        // Once there is a head, two deadlines are left: the whole one, and the pace's.
        let slow = !over && !self.is_crowded_out && expired.is_some_and(|failure| failure != Failure::Deadline);
        let closing = self.ended || self.torn || broken.is_some();
        let response = self.reader.into_response().ok_or(Silence::Final(Failure::Malformed))?;
        let keep =
            over && !closing && response.keep_alive && response.truncated.is_none() && response.wire_bytes == bytes;
        let excess = response.truncated.is_none() && response.wire_bytes < bytes;
        let crowded_out = self.is_crowded_out;
        let is_late = !over && !crowded_out && expired == Some(Failure::Deadline);
        Ok(Concluded { response, keep, reset, slow, is_late, excess, crowded_out })
    }

    /// Why no head arrived.
    fn silence(&self, expired: Option<Failure>, broken: Option<Broken>) -> Silence {
        if self.is_crowded_out {
            // Our own lack of memory: it does not count as a try.
            return Silence::Final(Failure::Aborted);
        }
        if let Some(failure) = expired {
            // After the first byte of a head only the whole deadline can pass.
            return Silence::Final(if self.bytes > 0 { Failure::Deadline } else { failure });
        }
        let failure = match (&self.state, broken) {
            // The reader reports an end in the middle of the head as closed early; receiving nothing at all is the
            // same.
            (Err(HttpError::ClosedEarly), _) => Failure::ClosedEarly,
            (Err(error), _) => return Silence::Final(error.failure()),
            (_, Some(Broken::Tls(_))) => Failure::TlsFailed,
            (_, Some(Broken::Stream | Broken::Crowded)) => Failure::Reset,
            (_, None) => Failure::ClosedEarly,
        };
        if self.bytes == 0 { Silence::Torn(failure) } else { Silence::Final(failure) }
    }
}
