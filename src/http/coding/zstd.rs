//! Decodes Zstandard (RFC 8878).
//!
//! Decides: windows of up to 8 MiB, the maximum that a sender may use in HTTP (RFC 9659 section 3). Several frames,
//! skippable ones included, are one content; bytes behind a frame that start no other are ignored.

use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};
use zstd::zstd_safe::DParameter;

use super::{Ending, PIECE_BYTES, Sink};

/// 2^23 bytes.
const WINDOW_LOG_MAX: u32 = 23;

/// Decodes zstd.
pub(super) fn zstd(input: &[u8], sink: &mut Sink) -> Ending {
    let Ok(mut decoder) = Decoder::new() else { return Ending::Corrupt };
    if decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX)).is_err() {
        return Ending::Corrupt;
    }
    let mut source = InBuffer::around(input);
    let mut at_boundary = false;
    loop {
        let rest = input.get(source.pos()..).unwrap_or_default();
        if at_boundary && !starts_frame(rest) {
            return Ending::Whole;
        }
        let before = source.pos();
        let mut output = OutBuffer::around(sink.room(PIECE_BYTES));
        let result = decoder.run(&mut source, &mut output);
        let made = output.pos();
        if !sink.made(made) {
            return Ending::Full;
        }
        match result {
            Err(_) => return Ending::Corrupt,
            Ok(hint) => at_boundary = hint == 0,
        }
        if !at_boundary && source.pos() == before && made == 0 {
            return Ending::Short;
        }
    }
}

/// The content length of the first frame, as claimed by its header (RFC 8878 section 3.1.1.1); 0 if there is no
/// claim.
pub(super) fn claimed_bytes(input: &[u8]) -> u64 {
    zstd::zstd_safe::get_frame_content_size(input).ok().flatten().unwrap_or(0)
}

/// A frame's or a skippable frame's magic number (RFC 8878 sections 3.1.1 and 3.1.2).
fn starts_frame(bytes: &[u8]) -> bool {
    matches!(bytes, [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}
