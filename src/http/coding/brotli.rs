//! Brotli, undone (RFC 7932).
//!
//! Decides: the decoder is told to be strict, so that the large-window extension, with windows of up to
//! 1 GiB and no place in HTTP, is refused. Bytes after the stream's end are ignored.

use brotli::{BrotliDecompressStream, BrotliResult, BrotliState, HeapAlloc};

use super::{Ending, PIECE_BYTES, Sink};

/// Undoes br.
pub(super) fn brotli(input: &[u8], sink: &mut Sink) -> Ending {
    let mut state = BrotliState::new_strict(
        HeapAlloc::<u8>::new(0),
        HeapAlloc::<u32>::new(0),
        HeapAlloc::<brotli::HuffmanCode>::new(Default::default()),
    );
    let mut piece = [0; PIECE_BYTES];
    let (mut in_left, mut in_at) = (input.len(), 0);
    let mut total = 0;
    loop {
        let (mut out_left, mut out_at) = (piece.len(), 0);
        let result = BrotliDecompressStream(
            &mut in_left,
            &mut in_at,
            input,
            &mut out_left,
            &mut out_at,
            &mut piece,
            &mut total,
            &mut state,
        );
        if !sink.push(piece.get(..out_at).unwrap_or_default()) {
            return Ending::Full;
        }
        match result {
            BrotliResult::ResultSuccess => return Ending::Whole,
            BrotliResult::ResultFailure => return Ending::Corrupt,
            BrotliResult::NeedsMoreInput => return Ending::Short,
            // Room was offered and none used: it would ask for ever.
            BrotliResult::NeedsMoreOutput if out_at == 0 => return Ending::Corrupt,
            BrotliResult::NeedsMoreOutput => {}
        }
    }
}
