//! Up to 64 bytes at once without masked loads: two vectors of 32 bytes, which overlap for shorter inputs. So the
//! length only decides which of three loads to use, and nothing after them.
//!
//! Why unsafe: intrinsics of features that not every processor has, and loads through a pointer. Only `detect`
//! creates an `Avx2`, so holding one proves that the processor has these features.
//! Invariants: the same bits as in steps of sixteen bytes (a test compares them).

use std::arch::x86_64::{
    __m256i, _mm_loadu_si128, _mm256_and_si256, _mm256_andnot_si256, _mm256_broadcastsi128_si256, _mm256_cmpeq_epi8,
    _mm256_inserti128_si256, _mm256_loadu_si256, _mm256_min_epu8, _mm256_movemask_epi8, _mm256_or_si256,
    _mm256_set1_epi8, _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_srli_epi16, _mm256_sub_epi8,
};

use super::{BLOCK_BYTES, Bits64, HostBits64, ODD, WIDE_BYTES, short_word};

/// Proof of AVX2.
#[derive(Clone, Copy)]
pub(super) struct Avx2(());

impl Avx2 {
    /// The proof, if the processor has what it needs.
    #[inline]
    pub fn detect() -> Option<Avx2> {
        is_x86_feature_detected!("avx2").then_some(Avx2(()))
    }

    /// As `super::bits64`.
    #[inline]
    pub fn bits(self, bytes: &[u8]) -> Bits64 {
        // SAFETY: without the features there would be no `Avx2`.
        unsafe { bits(bytes) }
    }

    /// As `super::host_bits64`.
    #[inline]
    pub fn host_bits(self, bytes: &[u8]) -> HostBits64 {
        // SAFETY: as above.
        unsafe { host_bits(bytes) }
    }

    /// Both.
    #[inline]
    pub fn both_bits(self, bytes: &[u8]) -> (HostBits64, Bits64) {
        // SAFETY: as above.
        unsafe { both_bits(bytes) }
    }
}

#[target_feature(enable = "avx2")]
fn bits(bytes: &[u8]) -> Bits64 {
    bits_of(&load(bytes))
}

#[target_feature(enable = "avx2")]
fn host_bits(bytes: &[u8]) -> HostBits64 {
    host_bits_of(&load(bytes))
}

#[target_feature(enable = "avx2")]
fn both_bits(bytes: &[u8]) -> (HostBits64, Bits64) {
    let loaded = load(bytes);
    (host_bits_of(&loaded), bits_of(&loaded))
}

const VECTOR_BYTES: usize = 32;

/// The first bytes: those at the beginning, and those up to the end. The other bytes in the vectors are `a`, which is
/// in no set except that of a host's bytes.
struct Loaded {
    first: __m256i,
    last: __m256i,
    /// Where `last` begins.
    last_start: usize,
    /// Which bytes exist.
    there: u64,
}

impl Loaded {
    /// Combines the results for both vectors' bytes into the bits of all bytes.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn bits(&self, first: __m256i, last: __m256i) -> u64 {
        let bits = |vector| u64::from(_mm256_movemask_epi8(vector).cast_unsigned());
        (bits(first) | bits(last) << self.last_start) & self.there
    }

    /// The positions of `byte`.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn places(&self, byte: u8) -> u64 {
        self.bits(equal(self.first, byte), equal(self.last, byte))
    }
}

#[target_feature(enable = "avx2")]
#[inline]
fn load(bytes: &[u8]) -> Loaded {
    let count = bytes.len().min(WIDE_BYTES);
    let start = bytes.as_ptr();
    if count >= VECTOR_BYTES {
        let last_start = count - VECTOR_BYTES;
        // SAFETY: both loads are of 32 bytes that end where `count` bytes do, or before; they need no alignment.
        let (first, last) =
            unsafe { (_mm256_loadu_si256(start.cast()), _mm256_loadu_si256(start.add(last_start).cast())) };
        return Loaded { first, last, last_start, there: !0 >> (WIDE_BYTES - count) };
    }
    let filler = splat(b'a');
    if count >= BLOCK_BYTES {
        let last_start = count - BLOCK_BYTES;
        // SAFETY: the same with 16 bytes.
        let (first, last) = unsafe { (_mm_loadu_si128(start.cast()), _mm_loadu_si128(start.add(last_start).cast())) };
        let [first, last] = [first, last].map(|half| _mm256_inserti128_si256::<0>(filler, half));
        return Loaded { first, last, last_start, there: (1 << count) - 1 };
    }
    let word = short_word(bytes).to_le_bytes();
    // SAFETY: sixteen bytes.
    let word = unsafe { _mm_loadu_si128(word.as_ptr().cast()) };
    let first = _mm256_inserti128_si256::<0>(filler, word);
    Loaded { first, last: filler, last_start: 0, there: (1 << count) - 1 }
}

#[target_feature(enable = "avx2")]
#[inline]
fn bits_of(loaded: &Loaded) -> Bits64 {
    // SAFETY: both tables have the sixteen bytes that are read.
    let [lower, upper] =
        ODD.map(|table| _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(table.as_ptr().cast()) }));
    let half = splat(0x0f);
    let [first, last] = [loaded.first, loaded.last].map(|vector| {
        let by_lower = _mm256_shuffle_epi8(lower, _mm256_and_si256(vector, half));
        let by_upper = _mm256_shuffle_epi8(upper, _mm256_and_si256(_mm256_srli_epi16::<4>(vector), half));
        let is_plain = _mm256_cmpeq_epi8(_mm256_and_si256(by_lower, by_upper), _mm256_setzero_si256());
        _mm256_andnot_si256(is_plain, splat(0xff))
    });
    let odd = loaded.bits(first, last);
    let [first, last] =
        [loaded.first, loaded.last].map(|vector| _mm256_or_si256(equal(vector, b'.'), equal(vector, b'%')));
    Bits64 { odd, slashes: loaded.places(b'/'), dots: loaded.bits(first, last) }
}

#[target_feature(enable = "avx2")]
#[inline]
fn host_bits_of(loaded: &Loaded) -> HostBits64 {
    let is_from = |vector, from: u8, count: u8| {
        let above = _mm256_sub_epi8(vector, splat(from));
        _mm256_cmpeq_epi8(above, _mm256_min_epu8(above, splat(count - 1)))
    };
    let [first, last] = [loaded.first, loaded.last].map(|vector| {
        // The range from `-` to `9` also contains `.` and the slash.
        let digits = _mm256_andnot_si256(equal(vector, b'/'), is_from(vector, b'-', b'9' - b'-' + 1));
        _mm256_andnot_si256(_mm256_or_si256(is_from(vector, b'a', 26), digits), splat(0xff))
    });
    let foreign = loaded.bits(first, last) | !loaded.there;
    HostBits64 { foreign, dots: loaded.places(b'.'), dashes: loaded.places(b'-') }
}

#[target_feature(enable = "avx2")]
#[inline]
fn equal(vector: __m256i, byte: u8) -> __m256i {
    _mm256_cmpeq_epi8(vector, splat(byte))
}

#[target_feature(enable = "avx2")]
#[inline]
fn splat(byte: u8) -> __m256i {
    _mm256_set1_epi8(byte.cast_signed())
}
