//! Up to 64 bytes at once, for any length: a masked load needs no branch, and lengths of references come in an order
//! that no processor can predict.
//!
//! Why unsafe: intrinsics of features that not every processor has, and a load through a pointer. Only `detect`
//! creates an `Avx512`, so holding one proves that the processor has these features.
//! Invariants: the same bits as in steps of sixteen bytes (a test compares them).

use std::arch::x86_64::{
    __m512i, _mm_loadu_si128, _mm512_and_si512, _mm512_broadcast_i32x4, _mm512_cmpeq_epi8_mask, _mm512_cmple_epu8_mask,
    _mm512_maskz_loadu_epi8, _mm512_set1_epi8, _mm512_shuffle_epi8, _mm512_srli_epi16, _mm512_sub_epi8,
    _mm512_test_epi8_mask,
};

use super::{Bits64, HostBits64, ODD, WIDE_BYTES};

/// Proof of AVX-512 for bytes.
#[derive(Clone, Copy)]
pub(super) struct Avx512(());

impl Avx512 {
    /// The proof, if the processor has what it needs.
    #[inline]
    pub fn detect() -> Option<Avx512> {
        // This feature implies AVX-512 itself (Intel SDM, volume 1, section 15.4); one check, because it runs for
        // each link.
        is_x86_feature_detected!("avx512bw").then_some(Avx512(()))
    }

    /// As `super::bits64`.
    #[inline]
    pub fn bits(self, bytes: &[u8]) -> Bits64 {
        // SAFETY: without the features there would be no `Avx512`.
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

#[target_feature(enable = "avx512bw")]
fn bits(bytes: &[u8]) -> Bits64 {
    bits_of(load(bytes))
}

#[target_feature(enable = "avx512bw")]
fn host_bits(bytes: &[u8]) -> HostBits64 {
    host_bits_of(load(bytes))
}

#[target_feature(enable = "avx512bw")]
fn both_bits(bytes: &[u8]) -> (HostBits64, Bits64) {
    let loaded = load(bytes);
    (host_bits_of(loaded), bits_of(loaded))
}

#[target_feature(enable = "avx512bw")]
#[inline]
fn bits_of((block, there): (__m512i, u64)) -> Bits64 {
    // SAFETY: both tables have the sixteen bytes that are read.
    let [lower, upper] = ODD.map(|table| unsafe { _mm_loadu_si128(table.as_ptr().cast()) });
    let half = _mm512_set1_epi8(0x0f);
    let by_lower = _mm512_shuffle_epi8(_mm512_broadcast_i32x4(lower), _mm512_and_si512(block, half));
    let upper_halves = _mm512_and_si512(_mm512_srli_epi16::<4>(block), half);
    let by_upper = _mm512_shuffle_epi8(_mm512_broadcast_i32x4(upper), upper_halves);
    Bits64 {
        odd: _mm512_test_epi8_mask(by_lower, by_upper) & there,
        slashes: equal(block, b'/'),
        dots: equal(block, b'.') | equal(block, b'%'),
    }
}

#[target_feature(enable = "avx512bw")]
#[inline]
fn host_bits_of((block, there): (__m512i, u64)) -> HostBits64 {
    let letters = _mm512_cmple_epu8_mask(_mm512_sub_epi8(block, splat(b'a')), splat(25));
    // The range from `-` to `9` also contains `.` and the slash.
    let digits = _mm512_cmple_epu8_mask(_mm512_sub_epi8(block, splat(b'-')), splat(b'9' - b'-'));
    let known = letters | digits & !equal(block, b'/');
    HostBits64 { foreign: !(known & there), dots: equal(block, b'.'), dashes: equal(block, b'-') }
}

/// The first bytes, padded with zeros, and a mask of those that exist.
#[target_feature(enable = "avx512bw")]
#[inline]
fn load(bytes: &[u8]) -> (__m512i, u64) {
    let there = if bytes.len() < WIDE_BYTES { (1 << bytes.len()) - 1 } else { !0 };
    // SAFETY: bytes outside `there` are not read; the others are the slice's.
    (unsafe { _mm512_maskz_loadu_epi8(there, bytes.as_ptr().cast()) }, there)
}

#[target_feature(enable = "avx512bw")]
#[inline]
fn equal(block: __m512i, byte: u8) -> u64 {
    _mm512_cmpeq_epi8_mask(block, splat(byte))
}

#[target_feature(enable = "avx512bw")]
#[inline]
fn splat(byte: u8) -> __m512i {
    _mm512_set1_epi8(byte as i8)
}
