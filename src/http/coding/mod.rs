//! Decodes content codings within limits (RFC 9110 section 8.4).
//!
//! Decides: gzip, x-gzip, deflate (zlib, or bare as many servers send it), br and zstd are known; `identity` and
//! curl's `none` mean nothing; several are decoded last to first. Content that breaks midway is kept up to there. A
//! body that is broken from its first byte, or in an unknown coding, stays as received: often the page merely has a
//! wrong label. If several codings are named, the others are still decoded: a proxy that adds a label does not
//! necessarily code again.
//!
//! Invariants: `coding` is `None` exactly when no coding was removed: `bytes` are as received, except that uncoded
//! ones are cut at the limit; no stage makes more than `body_bytes_max` bytes, nor more than `decode_ratio_max` times
//! the received ones (from 1 MiB on), nor allocates more than twice the bytes it has made and a piece, except for the
//! decoders' own windows (deflate 32 KiB, zstd 8 MiB, brotli 16 MiB). The output of a [`Decoder`] does not depend on
//! its earlier outputs.
//!
//! Limits: `CODINGS_MAX` codings; a transfer coding reads and makes `TRANSFER_BYTES_MAX` bytes; a [`Decoder`] keeps
//! `KEPT_BYTES_MAX` bytes.

mod brotli;
mod inflate;
mod zstd;

use std::borrow::Cow;

use super::{Headers, Limits};
use ringcrawl_base::Truncated;

/// A body after decoding its content codings, as far as possible.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decoded<'a> {
    /// The content.
    pub bytes: Cow<'a, [u8]>,
    /// The codings removed, as Content-Encoding names them ("gzip", "br, gzip"); `None`: nothing, `bytes` are as
    /// received.
    pub coding: Option<String>,
    /// What went wrong; `None` also for content that ended early.
    pub problem: Option<CodingProblem>,
    /// Why `bytes` are incomplete; a body that was already truncated has its own mark, which takes precedence.
    pub truncated: Option<Truncated>,
}

/// Why a coding was not fully decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, thiserror::Error)]
pub enum CodingProblem {
    /// The coding is unknown; the body stays as received.
    #[error("unknown content coding")]
    Unknown,
    /// More codings than `CODINGS_MAX`; the body stays as received.
    #[error("too many content codings")]
    TooMany,
    /// Broken from the first byte: not what Content-Encoding says; the body stays as received.
    #[error("body is not in the content coding that it names")]
    Corrupt,
    /// Not in all the codings that Content-Encoding names; the actual ones were decoded.
    #[error("body is in fewer content codings than it names")]
    Mislabelled,
    /// The content is longer than the limit; it was cut there.
    #[error("decoded body exceeds the limit")]
    TooLarge,
    /// The content is so many times longer than the received bytes that it is a bomb; it was cut there.
    #[error("decoded body exceeds the ratio")]
    OverRatio,
}

/// Maximum number of codings on one body. Two happen by accident; more are an attack.
pub(super) const CODINGS_MAX: usize = 3;

/// Maximum number of bytes that a transfer coding reads and makes: the worst of them cost 10 ms.
pub const TRANSFER_BYTES_MAX: usize = 128 << 10;
/// Decoded bytes exempt from the ratio: a short page of one repeated line is not an attack, and costs little.
const RATIO_FREE_BYTES: usize = 1 << 20;

/// A coding that can be decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Coding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

impl Coding {
    const fn as_str(self) -> &'static str {
        match self {
            Coding::Gzip => "gzip",
            Coding::Deflate => "deflate",
            Coding::Brotli => "br",
            Coding::Zstd => "zstd",
        }
    }

    fn from_token(token: &[u8]) -> Option<Coding> {
        match token {
            b"gzip" | b"x-gzip" => Some(Coding::Gzip),
            b"deflate" => Some(Coding::Deflate),
            b"br" => Some(Coding::Brotli),
            b"zstd" => Some(Coding::Zstd),
            _ => None,
        }
    }

    fn undo(self, input: &[u8], sink: &mut Sink, quick: &mut inflate::Quick) -> Ending {
        match self {
            Coding::Gzip => inflate::gzip(input, sink, quick),
            Coding::Deflate => inflate::deflate(input, sink),
            Coding::Brotli => brotli::brotli(input, sink),
            Coding::Zstd => zstd::zstd(input, sink),
        }
    }

    /// The same, for rare uses.
    fn undo_once(self, input: &[u8], bytes_max: usize) -> (Vec<u8>, Ending) {
        let mut bytes = Vec::new();
        let mut sink = Sink::new(&mut bytes, bytes_max);
        let ending = self.undo(input, &mut sink, &mut inflate::Quick::default());
        let length = sink.length;
        bytes.truncate(length);
        (bytes, ending)
    }
}

/// The content of a gzip file, as far as it is intact and within the limits on decoded content.
pub fn gunzip(file: &[u8], limits: &Limits) -> Vec<u8> {
    let bytes_max = limits.body_bytes_max.min(ratio_bytes_max(file.len(), limits));
    Coding::Gzip.undo_once(file, bytes_max).0
}

/// The maximum output of decoding a body of `wire_bytes` bytes, whatever the number of codings.
fn ratio_bytes_max(wire_bytes: usize, limits: &Limits) -> usize {
    wire_bytes.saturating_mul(limits.decode_ratio_max).max(RATIO_FREE_BYTES)
}

/// Decodes the codings of one body after another, in memory that is kept: fresh memory must be cleared, and a
/// decompressor set up, which for a usual page takes half as long as inflating it.
#[derive(Default)]
pub struct Decoder {
    /// Content is at its start. It is as long as the longest content so far: bytes behind the content belong to
    /// others.
    buffer: Vec<u8>,
    quick: inflate::Quick,
}

impl Decoder {
    /// Decodes the codings that Content-Encoding names; the content has at most `body_bytes_max` bytes, and at most
    /// `decode_ratio_max` times those of `body`.
    pub fn decode<'a>(&'a mut self, headers: &Headers, body: &'a [u8], limits: &Limits) -> Decoded<'a> {
        if self.buffer.len() > KEPT_BYTES_MAX {
            self.buffer = Vec::new();
        }
        let ratio_bytes_max = ratio_bytes_max(body.len(), limits);
        let bytes_max = limits.body_bytes_max.min(ratio_bytes_max);
        let as_it_came = |problem| Decoded { bytes: body.into(), coding: None, problem, truncated: None };
        if body.is_empty() {
            return as_it_came(None);
        }
        let mut codings = Vec::new();
        for token in headers.list("content-encoding").filter(|token| token != b"identity" && token != b"none") {
            match Coding::from_token(&token) {
                Some(_) if codings.len() == CODINGS_MAX => return as_it_came(Some(CodingProblem::TooMany)),
                Some(coding) => codings.push(coding),
                None => return as_it_came(Some(CodingProblem::Unknown)),
            }
        }
        let mut length = None;
        let mut truncated = None;
        let named = codings.len();
        for at in (0..named).rev() {
            let Some(coding) = codings.get(at) else { break };
            let coded = length.map(|length| self.buffer.get(..length).unwrap_or_default().to_vec());
            let input = coded.as_deref().unwrap_or(body);
            // If a server labels an empty body as coded without coding it, the content is empty.
            if input.is_empty() {
                break;
            }
            let mut sink = Sink::new(&mut self.buffer, bytes_max);
            let ending = coding.undo(input, &mut sink, &mut self.quick);
            if ending == Ending::Corrupt && sink.length == 0 {
                codings.remove(at);
                // The decoder may have used the buffer.
                let kept = coded.as_deref().unwrap_or_default();
                self.buffer.get_mut(..kept.len()).unwrap_or_default().copy_from_slice(kept);
                continue;
            }
            length = Some(sink.length);
            truncated = truncated.or(ending.truncated());
        }
        let mut decoded = as_it_came(None);
        if codings.is_empty() && named > 0 {
            decoded.problem = Some(CodingProblem::Corrupt);
            return decoded;
        }
        let Some(length) = length else {
            if body.len() > limits.body_bytes_max {
                // Uncoded content has the same limit; only its end is missing.
                decoded.bytes = body.get(..limits.body_bytes_max).unwrap_or(body).into();
                decoded.truncated = Some(Truncated::Length);
                decoded.problem = Some(CodingProblem::TooLarge);
            }
            return decoded;
        };
        let names: Vec<&str> = codings.iter().map(|coding| coding.as_str()).collect();
        decoded.coding = Some(names.join(", "));
        decoded.problem = match truncated {
            Some(Truncated::Length) if ratio_bytes_max < limits.body_bytes_max => Some(CodingProblem::OverRatio),
            Some(Truncated::Length) => Some(CodingProblem::TooLarge),
            _ => (codings.len() < named).then_some(CodingProblem::Mislabelled),
        };
        decoded.bytes = self.buffer.get(..length).unwrap_or_default().into();
        decoded.truncated = truncated;
        decoded
    }
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder").field("buffer", &self.buffer.len()).finish_non_exhaustive()
    }
}

/// The same as [`Decoder::decode`], for a single body.
pub fn decode_content<'a>(headers: &Headers, body: &'a [u8], limits: &Limits) -> Decoded<'a> {
    let mut decoder = Decoder::default();
    let Decoded { bytes, coding, problem, truncated } = decoder.decode(headers, body, limits);
    let bytes = match coding {
        None => body.get(..bytes.len()).unwrap_or(body).into(),
        Some(_) => bytes.into_owned().into(),
    };
    Decoded { bytes, coding, problem, truncated }
}

/// Whether Content-Encoding names more than one coding: each may increase the work of the next.
pub fn is_coded_twice(headers: &Headers) -> bool {
    headers.list("content-encoding").nth(1).is_some()
}

/// The content length of `body`, as claimed by its one coding; 0 if there is no claim.
pub fn claimed_bytes(headers: &Headers, body: &[u8]) -> u64 {
    let mut codings = headers.list("content-encoding");
    match (codings.next().and_then(|token| Coding::from_token(&token)), codings.next()) {
        (Some(Coding::Gzip), None) => inflate::claimed_bytes(body),
        (Some(Coding::Zstd), None) => zstd::claimed_bytes(body),
        _ => 0,
    }
}

/// Decodes transfer codings, last to first. A body that cannot be decoded is lost: the coded bytes are not a body.
///
/// This runs where the response is received, in one piece, and we never request such codings: of the received bytes
/// and of each output, [`TRANSFER_BYTES_MAX`] bytes count.
pub(super) fn undo_transfer_codings(
    codings: &[Coding],
    body: Vec<u8>,
    limits: &Limits,
) -> (Vec<u8>, Option<Truncated>) {
    let bytes_max = limits.body_wire_bytes_max.min(ratio_bytes_max(body.len(), limits));
    let mut bytes = body;
    let mut truncated = None;
    if !codings.is_empty() && bytes.len() > TRANSFER_BYTES_MAX {
        bytes.truncate(TRANSFER_BYTES_MAX);
        truncated = Some(Truncated::Length);
    }
    for coding in codings.iter().rev() {
        if bytes.is_empty() {
            break;
        }
        let (undone, ending) = coding.undo_once(&bytes, bytes_max.min(TRANSFER_BYTES_MAX));
        truncated = truncated.or(ending.truncated());
        bytes = undone;
    }
    (bytes, truncated)
}

/// How decoding one coding ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ending {
    /// The input was complete.
    Whole,
    /// The input ended before the coding did.
    Short,
    /// The input is not, or no longer, in this coding.
    Corrupt,
    /// There is more than the limit.
    Full,
}

impl Ending {
    fn truncated(self) -> Option<Truncated> {
        match self {
            Ending::Whole => None,
            Ending::Short | Ending::Corrupt => Some(Truncated::Unspecified),
            Ending::Full => Some(Truncated::Length),
        }
    }
}

/// The room that a decoder gets each time, in bytes.
const PIECE_BYTES: usize = 16 << 10;
/// A longer buffer held one huge content; it is freed.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// Takes a decoder's output, up to a limit.
struct Sink<'a> {
    /// Content is at its start; bytes behind it are from earlier content.
    buffer: &'a mut Vec<u8>,
    length: usize,
    bytes_max: usize,
}

impl<'a> Sink<'a> {
    fn new(buffer: &'a mut Vec<u8>, bytes_max: usize) -> Sink<'a> {
        Sink { buffer, length: 0, bytes_max }
    }

    /// The output so far.
    fn content(&self) -> &[u8] {
        self.buffer.get(..self.length).unwrap_or_default()
    }

    fn clear(&mut self) {
        self.length = 0;
    }

    /// The buffer for the next output: room for `wanted` bytes, and at least one. The last byte shows that there is
    /// more than the limit.
    fn room(&mut self, wanted: usize) -> &mut [u8] {
        let end_max = self.bytes_max.saturating_add(1);
        let end = self.length.saturating_add(wanted).min(end_max);
        if end > self.buffer.len() {
            let doubled = self.buffer.capacity().saturating_mul(2).min(end_max);
            if end > self.buffer.capacity() {
                self.buffer.reserve_exact(end.max(doubled) - self.buffer.len());
            }
            self.buffer.resize(end, 0);
        }
        self.buffer.get_mut(self.length..end).unwrap_or_default()
    }

    /// Notes that `bytes` bytes were written there; returns whether all of them were within the limit.
    fn made(&mut self, bytes: usize) -> bool {
        self.length += bytes;
        let fits = self.length <= self.bytes_max;
        self.length = self.length.min(self.bytes_max);
        fits
    }
}

#[cfg(test)]
mod tests;
