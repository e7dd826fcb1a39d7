//! Content codings, undone within limits (RFC 9110 section 8.4).
//!
//! Decides: gzip, x-gzip, deflate (zlib, or bare as many servers send it), br and zstd are known; `identity`
//! and curl's `none` are nothing; several are undone last to first. What breaks midway is kept up to there;
//! what is broken from its first byte, or in an unknown coding, stays as it came: often it is a page that
//! merely lies about its coding. Where several are named, the others are undone all the same: a proxy that
//! labels once more does not code once more.
//!
//! Invariants: `coding` is `None` exactly when no coding was removed: `bytes` are as they came, but for
//! uncoded ones being cut at the limit; no stage makes more than
//! `body_bytes_max` bytes, nor more than `decode_ratio_max` times those that came (from 1 MiB on), nor allocates for more than
//! twice the bytes it has made and a piece, but for the decoders' own windows (deflate 32 KiB, zstd 8 MiB, brotli 16 MiB).
//! What a [`Decoder`] makes does not depend on what it made before.
//!
//! Limits: `CODINGS_MAX` codings; a transfer coding takes and makes `TRANSFER_BYTES_MAX` bytes; a [`Decoder`] keeps
//! `KEPT_BYTES_MAX` bytes.

mod brotli;
mod inflate;
mod zstd;

use std::borrow::Cow;

use super::{Headers, Limits};
use ringcrawl_base::Truncated;

/// A body after its content codings were undone, as far as that went.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decoded<'a> {
    /// The content.
    pub bytes: Cow<'a, [u8]>,
    /// What was removed, as Content-Encoding names it ("gzip", "br, gzip"); `None`: nothing, `bytes` are as
    /// they came.
    pub coding: Option<String>,
    /// What went wrong; `None` also for content that ended early.
    pub problem: Option<CodingProblem>,
    /// Why `bytes` are not all of it; a body that was truncated before has its own mark, which comes first.
    pub truncated: Option<Truncated>,
}

/// Why a coding was not wholly undone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, thiserror::Error)]
pub enum CodingProblem {
    /// A coding that is not known; the body stays as it came.
    #[error("unknown content coding")]
    Unknown,
    /// More codings than `CODINGS_MAX`; the body stays as it came.
    #[error("too many content codings")]
    TooMany,
    /// Broken from the first byte: not what Content-Encoding says; the body stays as it came.
    #[error("body is not in the content coding that it names")]
    Corrupt,
    /// Not in all the codings that Content-Encoding names; those that it is in were undone.
    #[error("body is in fewer content codings than it names")]
    Mislabelled,
    /// The content is longer than the limit; it was cut there.
    #[error("decoded body exceeds the limit")]
    TooLarge,
    /// The content is so many times longer than what came that it is a bomb; it was cut there.
    #[error("decoded body exceeds the ratio")]
    OverRatio,
}

/// Codings on one body, at most. Two happen by accident; more are an attack.
pub(super) const CODINGS_MAX: usize = 3;

/// Bytes that a transfer coding takes and makes, at most: the worst of them cost 10 ms.
pub const TRANSFER_BYTES_MAX: usize = 128 << 10;
/// Decoded bytes that no ratio forbids: a short page of one repeated line is no attack, and costs little.
const RATIO_FREE_BYTES: usize = 1 << 20;

/// A coding that can be undone.
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

    /// The same, for what is not undone often.
    fn undo_once(self, input: &[u8], bytes_max: usize) -> (Vec<u8>, Ending) {
        let mut bytes = Vec::new();
        let mut sink = Sink::new(&mut bytes, bytes_max);
        let ending = self.undo(input, &mut sink, &mut inflate::Quick::default());
        let length = sink.length;
        bytes.truncate(length);
        (bytes, ending)
    }
}

/// What a gzip file holds, as far as it is whole and within the limits that decoded content has.
pub fn gunzip(file: &[u8], limits: &Limits) -> Vec<u8> {
    let bytes_max = limits.body_bytes_max.min(ratio_bytes_max(file.len(), limits));
    Coding::Gzip.undo_once(file, bytes_max).0
}

/// What undoing a body of `wire_bytes` bytes may make, whatever the number of codings.
fn ratio_bytes_max(wire_bytes: usize, limits: &Limits) -> usize {
    wire_bytes.saturating_mul(limits.decode_ratio_max).max(RATIO_FREE_BYTES)
}

/// Undoes the codings of one body after another, in memory that is kept: fresh memory has to be cleared, and a decompressor
/// to be set up, which for a usual page takes half as long as to inflate it.
#[derive(Default)]
pub struct Decoder {
    /// Content lies at its start. It is as long as the longest one was: bytes behind the content are of others.
    buffer: Vec<u8>,
    quick: inflate::Quick,
}

impl Decoder {
    /// Undoes the codings that Content-Encoding names; the content has at most `body_bytes_max` bytes, and at most
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
            // Nothing, coded by a server that does not code nothing, is nothing.
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

/// The same as [`Decoder::decode`], of one body alone.
pub fn decode_content<'a>(headers: &Headers, body: &'a [u8], limits: &Limits) -> Decoded<'a> {
    let mut decoder = Decoder::default();
    let Decoded { bytes, coding, problem, truncated } = decoder.decode(headers, body, limits);
    let bytes = match coding {
        None => body.get(..bytes.len()).unwrap_or(body).into(),
        Some(_) => bytes.into_owned().into(),
    };
    Decoded { bytes, coding, problem, truncated }
}

/// Whether Content-Encoding names more than one coding: each may make more of the next one's work.
pub fn is_coded_twice(headers: &Headers) -> bool {
    headers.list("content-encoding").nth(1).is_some()
}

/// How long the content of `body` is, as its one coding claims; 0 where nothing is claimed.
pub fn claimed_bytes(headers: &Headers, body: &[u8]) -> u64 {
    let mut codings = headers.list("content-encoding");
    match (codings.next().and_then(|token| Coding::from_token(&token)), codings.next()) {
        (Some(Coding::Gzip), None) => inflate::claimed_bytes(body),
        (Some(Coding::Zstd), None) => zstd::claimed_bytes(body),
        _ => 0,
    }
}

/// Undoes transfer codings, last to first. What cannot be undone is lost: the coded bytes are no body.
///
/// It is done where the response is received, in one piece, and nobody asks for such codings: of what came and of what each
/// makes, [`TRANSFER_BYTES_MAX`] bytes count.
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

/// How undoing one coding ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ending {
    /// All of it was there.
    Whole,
    /// The input ended before the coding did.
    Short,
    /// The input is not in this coding, or no longer.
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

/// A decoder has room for so many bytes each time.
const PIECE_BYTES: usize = 16 << 10;
/// A longer buffer held one huge content; it is freed.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// Takes what a decoder makes, up to a limit.
struct Sink<'a> {
    /// Content lies at its start; what is behind that was written before.
    buffer: &'a mut Vec<u8>,
    length: usize,
    bytes_max: usize,
}

impl<'a> Sink<'a> {
    fn new(buffer: &'a mut Vec<u8>, bytes_max: usize) -> Sink<'a> {
        Sink { buffer, length: 0, bytes_max }
    }

    /// What was made.
    fn content(&self) -> &[u8] {
        self.buffer.get(..self.length).unwrap_or_default()
    }

    fn clear(&mut self) {
        self.length = 0;
    }

    /// Where what is made next is to be written: room for `wanted` bytes and one at least, of which the last shows that
    /// there is more than the limit.
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

    /// So many bytes were written there; whether there was room for all of them within the limit.
    fn made(&mut self, bytes: usize) -> bool {
        self.length += bytes;
        let fits = self.length <= self.bytes_max;
        self.length = self.length.min(self.bytes_max);
        fits
    }
}

#[cfg(test)]
mod tests;
