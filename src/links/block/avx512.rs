//! The kernel of x86-64 servers of the last years: a block is one vector, and every comparison gives its bits at once.
//!
//! Why unsafe: intrinsics of features that not every processor has, and a load through a pointer. An `Avx512` is made by
//! `detect` alone, so whoever has one is on a processor with these features.
#![allow(unsafe_code, reason = "intrinsics; see above")]

use std::arch::x86_64::{
    __m512i, _MM_HINT_T0, _mm_loadu_si128, _mm_prefetch, _mm_setr_epi8, _mm512_and_si512, _mm512_broadcast_i32x4,
    _mm512_cmpeq_epi8_mask, _mm512_loadu_si512, _mm512_mask_test_epi8_mask, _mm512_movepi8_mask, _mm512_or_si512,
    _mm512_set1_epi8, _mm512_shuffle_epi8,
};

use super::super::wanted::Letters;
use super::{BLOCK, Kernel, Task, WINDOW};

/// Proof of AVX-512 for bytes and of bit manipulation.
#[derive(Clone, Copy)]
pub(super) struct Avx512(());

impl Avx512 {
    /// The kernel, if the processor has what it needs.
    #[inline]
    pub fn detect() -> Option<Avx512> {
        let has = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        has.then_some(Avx512(()))
    }

    /// Runs `task` compiled for these features.
    pub fn run<T: Task>(self, task: T) -> T::Output {
        #[target_feature(enable = "avx512f,avx512bw,bmi1,bmi2,lzcnt,popcnt")]
        fn with_features<T: Task>(task: T, kernel: Avx512) -> T::Output {
            task.run(kernel)
        }
        // SAFETY: the features are there, or there would be no `Avx512`.
        unsafe { with_features(task, self) }
    }
}

impl Kernel for Avx512 {
    type Block = __m512i;
    type Marks = u64;

    #[inline(always)]
    fn load(self, bytes: &[u8; BLOCK]) -> Self::Block {
        // SAFETY: AVX-512 is there; the load is of the 64 bytes, and needs no alignment.
        unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
    }

    #[inline(always)]
    fn equal(self, block: Self::Block, byte: u8) -> u64 {
        // SAFETY: AVX-512 is there.
        unsafe { _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(byte as i8)) }
    }

    #[inline(always)]
    fn begins(self, window: &[u8; WINDOW], letters: &Letters) -> u64 {
        let start = window.as_ptr();
        // A look-up is by the lower half of a byte, and zero where the highest bit is set.
        // SAFETY: AVX-512 is there; the loads are of 64 bytes, up to the window's last one, and need no alignment.
        unsafe {
            let opens = _mm512_cmpeq_epi8_mask(_mm512_loadu_si512(start.cast()), _mm512_set1_epi8(b'<' as i8));
            let first = _mm512_shuffle_epi8(table(&letters.first), _mm512_loadu_si512(start.add(1).cast()));
            let second = _mm512_shuffle_epi8(table(&letters.second), _mm512_loadu_si512(start.add(2).cast()));
            let fourth = _mm512_shuffle_epi8(table(&letters.fourth), _mm512_loadu_si512(start.add(4).cast()));
            let fourth = _mm512_or_si512(fourth, _mm512_set1_epi8(letters.any_fourth as i8));
            _mm512_mask_test_epi8_mask(opens, _mm512_and_si512(first, second), fourth)
        }
    }

    #[inline(always)]
    fn both(self, one: u64, other: u64) -> u64 {
        one & other
    }

    #[inline(always)]
    fn either(self, one: u64, other: u64) -> u64 {
        one | other
    }

    #[inline(always)]
    fn any(self, marks: u64) -> bool {
        marks != 0
    }

    #[inline(always)]
    fn bits(self, marks: u64) -> u64 {
        marks
    }

    #[inline(always)]
    fn name_ends(self, block: Self::Block) -> u64 {
        // By the lower half of a byte: the one byte that counts with this half, or one whose half is another.
        // SAFETY: AVX-512 is there.
        unsafe {
            let table = _mm_setr_epi8(0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0x09, 0x0a, 0, 0x0c, 0x0d, 0x3e, 0x2f);
            _mm512_cmpeq_epi8_mask(block, _mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), block))
        }
    }

    #[inline(always)]
    fn specials(self, block: Self::Block) -> u64 {
        // In the same way: NUL, `&` and CR; and what has its highest bit set, for which the look-up gives 0.
        // SAFETY: AVX-512 is there.
        unsafe {
            let table = _mm_setr_epi8(0, 0, 0, 0, 0, 0, 0x26, 0, 0, 0, 0, 0, 0, 0x0d, 0, 0);
            let known = _mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), block);
            _mm512_cmpeq_epi8_mask(block, known) | _mm512_movepi8_mask(block)
        }
    }

    #[inline(always)]
    fn expect(self, bytes: &[u8], at: usize) {
        // SAFETY: nothing is read: an address that is none is ignored. SSE is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(bytes.as_ptr().wrapping_add(at).cast()) }
    }
}

/// A table for each quarter of a vector.
#[inline(always)]
fn table(table: &[u8; 16]) -> __m512i {
    // SAFETY: AVX-512 is there: only `Avx512`'s operations call this; the load is of 16 bytes, and needs no alignment.
    unsafe { _mm512_broadcast_i32x4(_mm_loadu_si128(table.as_ptr().cast())) }
}
