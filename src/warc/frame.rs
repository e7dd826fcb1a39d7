//! One record, one zstd frame.
//!
//! Decides: frames carry Frame_Content_Size and Content_Checksum (IIPC "Zstandard Compression for WARC Files" 1.0,
//! section "Zstandard frames", requires both) and a window of at most 8 MiB, which every decoder must accept (same
//! text, section "Window and dictionary limits"). Short or already compressed data becomes a raw frame (`raw_frame`).
//!
//! Invariants: `compress` adds one whole frame to `out`, or leaves `out` as it was.
//! Limits: compressing first joins the parts in a buffer that is kept; a context keeps its work space (about 1 MiB at
//! level 1, 80 MiB at level 19) for its whole life.
//! Leaves to others: what is in a record (`segment`), reading frames (`source`).

use zstd::zstd_safe::{self, CCtx, CParameter, InBuffer, OutBuffer, ResetDirective, zstd_sys::ZSTD_EndDirective};

use super::StoreError;
use super::dictionary::Dictionary;

/// log2 of the largest window that decoders must support, in bytes.
const WINDOW_LOG_MAX: u32 = 23;
/// Lowest and highest level that the configuration offers.
const LEVEL_MIN: i32 = -7;
const LEVEL_MAX: i32 = 19;
/// A larger buffer held one huge record; it is freed.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// A compressor that is made once and used for every record of a shard.
pub struct FrameWriter {
    context: CCtx<'static>,
    joined: Vec<u8>,
}

impl FrameWriter {
    /// A compressor at `level`, clamped to −7 … 19.
    pub fn new(level: i32) -> Result<FrameWriter, StoreError> {
        Ok(FrameWriter { context: context(level.clamp(LEVEL_MIN, LEVEL_MAX))?, joined: Vec::new() })
    }

    /// Later frames need `dictionary` to be read, or none.
    pub fn use_dictionary(&mut self, dictionary: Option<&Dictionary>) -> Result<(), StoreError> {
        self.context.reset(ResetDirective::SessionOnly).map_err(named)?;
        let bytes = dictionary.map_or(&[][..], Dictionary::bytes);
        self.context.load_dictionary(bytes).map(drop).map_err(named)
    }

    /// Adds one frame with the concatenation of `parts` to `out`; returns its length in bytes.
    pub fn compress(&mut self, parts: &[&[u8]], out: &mut Vec<u8>) -> Result<u64, StoreError> {
        let start = out.len();
        match self.try_compress(parts, out) {
            Ok(()) => Ok((out.len() - start) as u64),
            Err(error) => {
                out.truncate(start);
                Err(error)
            }
        }
    }

    fn try_compress(&mut self, parts: &[&[u8]], out: &mut Vec<u8>) -> Result<(), StoreError> {
        // Given the input in one piece and room for the whole frame, zstd needs no buffers of its own.
        self.joined.clear();
        parts.iter().for_each(|part| self.joined.extend_from_slice(part));
        out.reserve(zstd_safe::compress_bound(self.joined.len()));
        self.context.reset(ResetDirective::SessionOnly).map_err(named)?;
        self.context.set_pledged_src_size(Some(self.joined.len() as u64)).map_err(named)?;
        let mut input = InBuffer::around(&self.joined);
        loop {
            let filled = out.len();
            let mut output = OutBuffer::around_pos(out, filled);
            let end = ZSTD_EndDirective::ZSTD_e_end;
            if self.context.compress_stream2(&mut output, &mut input, end).map_err(named)? == 0 {
                break;
            }
            out.reserve(zstd_safe::CCtx::out_size());
        }
        if self.joined.capacity() > KEPT_BYTES_MAX {
            self.joined = Vec::new();
        }
        Ok(())
    }
}

/// A context at `level`, set up with what every frame must carry.
fn context(level: i32) -> Result<CCtx<'static>, StoreError> {
    let mut context = CCtx::try_create().ok_or(StoreError::Zstd("no memory for a context"))?;
    for parameter in [
        CParameter::CompressionLevel(level),
        CParameter::ContentSizeFlag(true),
        CParameter::ChecksumFlag(true),
        CParameter::DictIdFlag(false),
    ] {
        context.set_parameter(parameter).map_err(named)?;
    }
    if level > 16 {
        // Lower levels never use more than 8 MiB; setting it there would only enlarge their window.
        context.set_parameter(CParameter::WindowLog(WINDOW_LOG_MAX)).map_err(named)?;
    }
    Ok(context)
}

fn named(code: zstd_safe::ErrorCode) -> StoreError {
    StoreError::Zstd(zstd_safe::get_error_name(code))
}

/// Work space of a compressor: 80 MiB at level 19 (measured); lower levels have smaller windows and tables.
pub fn compressor_bytes(level: i32) -> u64 {
    let mebibytes = match level {
        ..=3 => 4,
        4..=9 => 16,
        10..=15 => 40,
        16.. => 96,
    };
    mebibytes << 20
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::Rng;

    #[test]
    fn a_frame_holds_its_parts_its_size_and_its_checksum() {
        for level in [-7, 1, 3, 19] {
            let mut writer = FrameWriter::new(level).expect("a context");
            for length in [300_000u32, 5, 2_038, 2_039] {
                let body = Rng::new(1).bytes(length as usize);
                let mut out = b"before".to_vec();
                let bytes = writer.compress(&[b"head\r\n", &body, b"", b"\r\n\r\n"], &mut out).expect("a frame");
                let frame = &out[6..];
                assert_eq!(frame.len() as u64, bytes);
                let whole = u64::from(length) + 10;
                assert_eq!(zstd_safe::get_frame_content_size(frame).expect("a frame"), Some(whole));
                assert_eq!(frame[4] & 4, 4, "checksum flag");
                let back = zstd::decode_all(frame).expect("decodes");
                assert_eq!(back, [b"head\r\n", &body[..], b"\r\n\r\n"].concat());
            }
        }
    }

    #[test]
    fn an_empty_frame_is_a_frame() {
        let mut writer = FrameWriter::new(1).expect("a context");
        let mut out = Vec::new();
        assert!(writer.compress(&[], &mut out).expect("a frame") > 0);
        assert_eq!(zstd::decode_all(&out[..]).expect("decodes"), b"");
        assert_eq!(zstd_safe::get_frame_content_size(&out).expect("a frame"), Some(0));
    }
}
