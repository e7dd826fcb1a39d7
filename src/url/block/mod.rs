//! Sixty-four bytes of a reference: the positions of those that are not plain.
//!
//! Decides: one set of bytes for paths and queries: those that end either or are escaped in either. A caller that
//! finds one looks up its class. All bytes are processed at once with AVX-512 (`avx512`) and with AVX2 (`avx2`),
//! otherwise sixteen at a time: SSE2 on x86-64, where every processor has it, plain code elsewhere.
//!
//! Invariants: all variants give the same bits (tests compare them); none past the end.
#![allow(unsafe_code, reason = "vector instructions")]

#[cfg(target_arch = "x86_64")]
use std::sync::OnceLock;

use super::bytes::{PATH, QUERY};

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

/// Bits of 64 bytes, like `Bits`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Bits64 {
    pub odd: u64,
    pub slashes: u64,
    pub dots: u64,
}

/// Bits of 64 bytes, like `HostBits`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct HostBits64 {
    pub foreign: u64,
    pub dots: u64,
    pub dashes: u64,
}

pub(super) const WIDE_BYTES: usize = 64;

/// The widest instructions of this processor, detected once: a reference takes less time than ten such checks.
#[cfg(target_arch = "x86_64")]
static WIDE: OnceLock<Wide> = OnceLock::new();

#[cfg(target_arch = "x86_64")]
enum Wide {
    Avx512(avx512::Avx512),
    Avx2(avx2::Avx2),
    No,
}

#[cfg(target_arch = "x86_64")]
impl Wide {
    fn detect() -> Wide {
        match (avx512::Avx512::detect(), avx2::Avx2::detect()) {
            (Some(wide), _) => Wide::Avx512(wide),
            (None, Some(wide)) => Wide::Avx2(wide),
            (None, None) => Wide::No,
        }
    }
}

/// The bits of the first 64 bytes.
#[inline(always)]
pub(super) fn bits64(bytes: &[u8]) -> Bits64 {
    #[cfg(target_arch = "x86_64")]
    match WIDE.get_or_init(Wide::detect) {
        Wide::Avx512(wide) => return wide.bits(bytes),
        Wide::Avx2(wide) => return wide.bits(bytes),
        Wide::No => {}
    }
    bits_by_blocks(bytes)
}

/// The bits of the first 64 bytes; bytes past the end are foreign.
#[inline(always)]
pub(super) fn host_bits64(bytes: &[u8]) -> HostBits64 {
    #[cfg(target_arch = "x86_64")]
    match WIDE.get_or_init(Wide::detect) {
        Wide::Avx512(wide) => return wide.host_bits(bytes),
        Wide::Avx2(wide) => return wide.host_bits(bytes),
        Wide::No => {}
    }
    host_bits_by_blocks(bytes)
}

/// Both.
#[inline(always)]
pub(super) fn both_bits64(bytes: &[u8]) -> (HostBits64, Bits64) {
    #[cfg(target_arch = "x86_64")]
    match WIDE.get_or_init(Wide::detect) {
        Wide::Avx512(wide) => return wide.both_bits(bytes),
        Wide::Avx2(wide) => return wide.both_bits(bytes),
        Wide::No => {}
    }
    (host_bits_by_blocks(bytes), bits_by_blocks(bytes))
}

#[inline]
fn bits_by_blocks(bytes: &[u8]) -> Bits64 {
    let mut all = Bits64::default();
    let mut add = |bits: Bits, index: usize| {
        all.odd |= u64::from(bits.odd) << (index * BLOCK_BYTES);
        all.slashes |= u64::from(bits.slashes) << (index * BLOCK_BYTES);
        all.dots |= u64::from(bits.dots) << (index * BLOCK_BYTES);
    };
    let (blocks, part) = bytes.get(..WIDE_BYTES).unwrap_or(bytes).as_chunks::<BLOCK_BYTES>();
    for (index, block) in blocks.iter().enumerate() {
        add(bits(block), index);
    }
    if !part.is_empty() {
        let block = match bytes.last_chunk() {
            // The bytes before the part are shifted out.
            Some(block) => bits(block).from(BLOCK_BYTES - part.len()),
            None => short_bits(part),
        };
        add(block, blocks.len());
    }
    all
}

/// After the first block with a foreign byte, everything is foreign.
#[inline]
fn host_bits_by_blocks(bytes: &[u8]) -> HostBits64 {
    let mut all = HostBits64 { foreign: !0, ..HostBits64::default() };
    for start in (0..WIDE_BYTES).step_by(BLOCK_BYTES) {
        let rest = bytes.get(start..).unwrap_or_default();
        let block = match rest.first_chunk() {
            Some(block) => host_bits(block),
            None => {
                let mut block = [b'/'; BLOCK_BYTES];
                block.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
                host_bits(&block)
            }
        };
        all.foreign ^= u64::from(!block.foreign & 0xFFFF) << start;
        all.dots |= u64::from(block.dots) << start;
        all.dashes |= u64::from(block.dashes) << start;
        if block.foreign != 0 {
            break;
        }
    }
    all
}

/// Bits of sixteen bytes, the first byte's lowest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Bits {
    /// Not a plain byte of a path, or not one of a query.
    pub odd: u32,
    /// `/`
    pub slashes: u32,
    /// `.`, and `%`, which begins an escaped one.
    pub dots: u32,
}

impl Bits {
    /// Without those of the first `bytes` bytes.
    pub fn from(self, bytes: usize) -> Bits {
        Bits { odd: self.odd >> bytes, slashes: self.slashes >> bytes, dots: self.dots >> bytes }
    }
}

pub(super) const BLOCK_BYTES: usize = 16;

#[inline(always)]
pub(super) fn bits(block: &[u8; BLOCK_BYTES]) -> Bits {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE2 is part of x86-64.
    unsafe {
        sse2(block)
    }
    #[cfg(not(target_arch = "x86_64"))]
    plain(block)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2")]
#[inline]
fn sse2(block: &[u8; BLOCK_BYTES]) -> Bits {
    use std::arch::x86_64::*;
    // SAFETY: a block has the sixteen bytes that are read, and the load needs no alignment.
    let bytes = unsafe { _mm_loadu_si128(block.as_ptr().cast()) };
    let is = |byte: u8| _mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte as i8));
    // Compares with two bytes at once that differ only in `bit`.
    let is_either = |byte: u8, bit: u8| {
        _mm_cmpeq_epi8(_mm_or_si128(bytes, _mm_set1_epi8(bit as i8)), _mm_set1_epi8((byte | bit) as i8))
    };
    let or = |a, b| _mm_or_si128(a, b);
    // Signed, so that bytes beyond ASCII are also less.
    let controls_and_high = _mm_cmplt_epi8(bytes, _mm_set1_epi8(0x21));
    let odd = or(
        or(or(controls_and_high, is_either(b'"', 1)), or(is_either(b'<', 2), is_either(b'\\', 2))),
        or(or(is_either(b'{', 4), is_either(b'}', 2)), or(is(b'?'), or(is(b'`'), is(b'\'')))),
    );
    let mask = |bytes| _mm_movemask_epi8(bytes) as u32;
    Bits { odd: mask(odd), slashes: mask(is(b'/')), dots: mask(or(is(b'.'), is(b'%'))) }
}

/// Bits of sixteen bytes of a possible host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct HostBits {
    /// Not a lower-case letter, digit, `-` or `.`.
    foreign: u32,
    /// `.`
    dots: u32,
    /// `-`
    dashes: u32,
}

#[inline(always)]
fn host_bits(block: &[u8; BLOCK_BYTES]) -> HostBits {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE2 is part of x86-64.
    unsafe {
        host_sse2(block)
    }
    #[cfg(not(target_arch = "x86_64"))]
    plain_host_bits(block)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2")]
#[inline]
fn host_sse2(block: &[u8; BLOCK_BYTES]) -> HostBits {
    use std::arch::x86_64::*;
    // SAFETY: a block has the sixteen bytes that are read, and the load needs no alignment.
    let bytes = unsafe { _mm_loadu_si128(block.as_ptr().cast()) };
    let is = |byte: u8| _mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte as i8));
    // Signed: bytes beyond ASCII are below every range.
    let is_from_to = |from: u8, to: u8| {
        let (below, above) = (_mm_set1_epi8(from as i8 - 1), _mm_set1_epi8(to as i8 + 1));
        _mm_and_si128(_mm_cmpgt_epi8(bytes, below), _mm_cmplt_epi8(bytes, above))
    };
    // The range from `-` to `9` also contains `.` and the slash.
    let known = _mm_andnot_si128(is(b'/'), _mm_or_si128(is_from_to(b'a', b'z'), is_from_to(b'-', b'9')));
    let mask = |bytes| _mm_movemask_epi8(bytes) as u32;
    HostBits { foreign: mask(known) ^ 0xFFFF, dots: mask(is(b'.')), dashes: mask(is(b'-')) }
}

#[cfg(any(test, not(target_arch = "x86_64")))]
fn plain_host_bits(block: &[u8; BLOCK_BYTES]) -> HostBits {
    let bits = |is: fn(u8) -> bool| block.iter().rev().fold(0, |bits: u32, byte| bits << 1 | u32::from(is(*byte)));
    HostBits {
        foreign: bits(|byte| !matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.')),
        dots: bits(|byte| byte == b'.'),
        dashes: bits(|byte| byte == b'-'),
    }
}

#[cfg(any(test, not(target_arch = "x86_64")))]
fn plain(block: &[u8; BLOCK_BYTES]) -> Bits {
    let bits = |is: fn(u8) -> bool| block.iter().rev().fold(0, |bits: u32, byte| bits << 1 | u32::from(is(*byte)));
    Bits {
        odd: bits(|byte| PATH[usize::from(byte)] | QUERY[usize::from(byte)] != 0),
        slashes: bits(|byte| byte == b'/'),
        dots: bits(|byte| matches!(byte, b'.' | b'%')),
    }
}

/// The bits of fewer than sixteen bytes.
#[inline]
pub(super) fn short_bits(bytes: &[u8]) -> Bits {
    let (Bits { odd, slashes, dots }, there) = (bits(&short_word(bytes).to_le_bytes()), (1 << bytes.len()) - 1);
    Bits { odd: odd & there, slashes: slashes & there, dots: dots & there }
}

/// Fewer than sixteen bytes, padded with zeros.
#[inline]
fn short_word(bytes: &[u8]) -> u128 {
    // Two overlapping halves are cheaper than a copy of variable length.
    let halves =
        |first: u64, last: u64, half: usize| u128::from(first) | u128::from(last) << (8 * (bytes.len() - half));
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        halves(u64::from_le_bytes(*first), u64::from_le_bytes(*last), 8)
    } else if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        halves(u32::from_le_bytes(*first).into(), u32::from_le_bytes(*last).into(), 4)
    } else {
        bytes.iter().rev().fold(0, |word, byte| word << 8 | u128::from(*byte))
    }
}

/// By the lower and the upper half of a byte: a byte is odd if both entries have a bit in common. Each upper half
/// with both odd and other bytes has a bit of its own.
#[cfg(target_arch = "x86_64")]
const ODD: [[u8; 16]; 2] = {
    let mut tables = [[0; 16]; 2];
    let mut byte = 0;
    while byte < 256 {
        if (PATH[byte] | QUERY[byte]) != 0 {
            let bit = match byte >> 4 {
                upper @ 2..=7 => 1 << upper,
                _ => 1,
            };
            tables[0][byte & 15] |= bit;
            tables[1][byte >> 4] |= bit;
        }
        byte += 1;
    }
    tables
};

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::Rng;

    /// Number of random blocks; an interpreter has time for only a few.
    const ROUNDS: usize = if cfg!(miri) { 200 } else { 100_000 };

    #[test]
    fn blocks_as_by_the_table() {
        for byte in 0..=u8::MAX {
            let block = [byte; BLOCK_BYTES];
            assert_eq!(bits(&block), plain(&block), "{byte:#x}");
            assert_eq!(host_bits(&block), plain_host_bits(&block), "{byte:#x}");
        }
        let mut rng = Rng::new(1);
        for _ in 0..ROUNDS {
            let block: [u8; BLOCK_BYTES] = std::array::from_fn(|_| rng.next() as u8);
            assert_eq!(bits(&block), plain(&block), "{}", block.escape_ascii());
            assert_eq!(host_bits(&block), plain_host_bits(&block), "{}", block.escape_ascii());
        }
    }

    #[test]
    fn short_ones_as_the_beginning_of_a_block() {
        let block = *b"a/.?%b2#c'd/.e&f";
        for length in 0..BLOCK_BYTES {
            let there = (1 << length) - 1;
            let Bits { odd, slashes, dots } = bits(&block);
            let expected = Bits { odd: odd & there, slashes: slashes & there, dots: dots & there };
            assert_eq!(short_bits(&block[..length]), expected, "{length}");
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn all_at_once_as_by_blocks() {
        let (wide, narrow) = (avx512::Avx512::detect(), avx2::Avx2::detect());
        assert!(!cfg!(miri) || wide.is_some() && narrow.is_some(), "an interpreter is told of both");
        let mut rng = Rng::new(1);
        for round in 0..ROUNDS {
            let alphabet = b"abc019-./%?#'\"<>^`{|}\x7f\x80\xff\x00 _\\";
            let bytes: Vec<u8> = (0..round % 100)
                .map(|_| {
                    let other = if round % 2 == 0 { b'a' } else { rng.next() as u8 };
                    alphabet.get(rng.index(4 * alphabet.len())).copied().unwrap_or(other)
                })
                .collect();
            if let Some(wide) = wide {
                agree(&bytes, wide.bits(&bytes), wide.host_bits(&bytes), wide.both_bits(&bytes));
            }
            if let Some(wide) = narrow {
                agree(&bytes, wide.bits(&bytes), wide.host_bits(&bytes), wide.both_bits(&bytes));
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn agree(bytes: &[u8], bits: Bits64, host_bits: HostBits64, both: (HostBits64, Bits64)) {
        assert_eq!(bits, bits_by_blocks(bytes), "{}", bytes.escape_ascii());
        assert_eq!(both, (host_bits, bits));
        let expected = host_bits_by_blocks(bytes);
        let first = expected.foreign & expected.foreign.wrapping_neg();
        assert_eq!(host_bits.foreign & host_bits.foreign.wrapping_neg(), first, "{}", bytes.escape_ascii());
        // Up to the first foreign byte.
        let below = first.wrapping_sub(1);
        assert_eq!(
            (host_bits.dots & below, host_bits.dashes & below),
            (expected.dots & below, expected.dashes & below)
        );
    }
}
