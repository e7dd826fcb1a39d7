//! Decodes Brotli (RFC 7932).
//!
//! Decides: the decoder runs in strict mode, so that it refuses the large-window extension, which allows windows of
//! up to 1 GiB and does not exist in HTTP. Bytes after the stream's end are ignored.

use brotli::{BrotliDecompressStream, BrotliResult, BrotliState, HeapAlloc};

use super::{Ending, PIECE_BYTES, Sink};

/// Decodes br.
pub(super) fn brotli(input: &[u8], sink: &mut Sink) -> Ending {
    let mut state = BrotliState::new_strict(
        HeapAlloc::<u8>::new(0),
        HeapAlloc::<u32>::new(0),
        HeapAlloc::<brotli::HuffmanCode>::new(Default::default()),
    );
    let (mut in_left, mut in_at) = (input.len(), 0);
    let mut total = 0;
    loop {
        let room = sink.room(PIECE_BYTES);
        let (mut out_left, mut out_at) = (room.len(), 0);
        let result = BrotliDecompressStream(
            &mut in_left,
            &mut in_at,
            input,
            &mut out_left,
            &mut out_at,
            room,
            &mut total,
            &mut state,
        );
        if !sink.made(out_at) {
            return Ending::Full;
        }
        match result {
            BrotliResult::ResultSuccess => return Ending::Whole,
            BrotliResult::ResultFailure => return Ending::Corrupt,
            BrotliResult::NeedsMoreInput => return Ending::Short,
            // Room was offered and none used: it would ask forever.
            BrotliResult::NeedsMoreOutput if out_at == 0 => return Ending::Corrupt,
            BrotliResult::NeedsMoreOutput => {}
        }
    }
}
