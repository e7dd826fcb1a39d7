//! The kernel of x86-64 processors of the last ten years: two vectors of 32 bytes a block.
//!
//! Why unsafe: intrinsics of features that not every processor has, and loads through a pointer. An `Avx2` is made by
//! `detect` alone, so whoever has one is on a processor with these features.
#![allow(unsafe_code, reason = "intrinsics; see above")]

use std::arch::x86_64::{
    __m256i, _MM_HINT_T0, _mm_loadu_si128, _mm_prefetch, _mm256_and_si256, _mm256_broadcastsi128_si256,
    _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_or_si256, _mm256_set1_epi8, _mm256_setr_epi8,
    _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_srli_epi16,
};

use super::super::wanted::Letters;
use super::{BLOCK, Kernel, Task};

/// Proof of AVX2 and of bit manipulation.
#[derive(Clone, Copy)]
pub(super) struct Avx2(());

impl Avx2 {
    /// The kernel, if the processor has what it needs.
    #[inline]
    pub fn detect() -> Option<Avx2> {
        let has =
            is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("bmi2");
        has.then_some(Avx2(()))
    }

    /// Runs `task` compiled for these features.
    pub fn run<T: Task>(self, task: T) -> T::Output {
        #[target_feature(enable = "avx2,bmi1,bmi2")]
        fn with_features<T: Task>(task: T, kernel: Avx2) -> T::Output {
            task.run(kernel)
        }
        // SAFETY: the features are there, or there would be no `Avx2`.
        unsafe { with_features(task, self) }
    }
}

impl Kernel for Avx2 {
    type Block = (__m256i, __m256i);

    #[inline(always)]
    fn load(self, bytes: &[u8; BLOCK]) -> Self::Block {
        let start = bytes.as_ptr().cast::<__m256i>();
        // SAFETY: AVX2 is there; both loads lie in the 64 bytes, and need no alignment.
        unsafe { (_mm256_loadu_si256(start), _mm256_loadu_si256(start.add(1))) }
    }

    #[inline(always)]
    fn places(self, (low, high): Self::Block, byte: u8) -> u64 {
        // SAFETY: AVX2 is there.
        unsafe {
            let wanted = _mm256_set1_epi8(byte as i8);
            bits(_mm256_cmpeq_epi8(low, wanted), _mm256_cmpeq_epi8(high, wanted))
        }
    }

    #[inline(always)]
    fn name_ends(self, (low, high): Self::Block) -> u64 {
        // By the lower half of a byte: the one byte that counts with this half, or one whose half is another.
        // SAFETY: AVX2 is there.
        unsafe {
            let table = _mm256_setr_epi8(
                0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0x09, 0x0a, 0, 0x0c, 0x0d, 0x3e, 0x2f, //
                0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0x09, 0x0a, 0, 0x0c, 0x0d, 0x3e, 0x2f,
            );
            bits(
                _mm256_cmpeq_epi8(low, _mm256_shuffle_epi8(table, low)),
                _mm256_cmpeq_epi8(high, _mm256_shuffle_epi8(table, high)),
            )
        }
    }

    #[inline(always)]
    fn specials(self, (low, high): Self::Block) -> u64 {
        bits(special(low), special(high))
    }

    #[inline(always)]
    fn in_groups(self, [first, second, third]: [Self::Block; 3], letters: &Letters) -> u64 {
        !bits(in_no_group([first.0, second.0, third.0], letters), in_no_group([first.1, second.1, third.1], letters))
    }

    #[inline(always)]
    fn expect(self, bytes: &[u8], at: usize) {
        // SAFETY: nothing is read: an address that is none is ignored. SSE is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(bytes.as_ptr().wrapping_add(at).cast()) }
    }
}

/// The highest bit set where a byte is special: it is already where the byte is not ASCII.
#[inline(always)]
fn special(vector: __m256i) -> __m256i {
    // SAFETY: AVX2 is there: only `Avx2`'s operations call this.
    unsafe {
        let ampersand = _mm256_cmpeq_epi8(vector, _mm256_set1_epi8(b'&' as i8));
        let carriage_return = _mm256_cmpeq_epi8(vector, _mm256_set1_epi8(b'\r' as i8));
        let nul = _mm256_cmpeq_epi8(vector, _mm256_setzero_si256());
        _mm256_or_si256(_mm256_or_si256(vector, ampersand), _mm256_or_si256(carriage_return, nul))
    }
}

/// All ones where three bytes are in no group.
#[inline(always)]
fn in_no_group([first, second, third]: [__m256i; 3], [firsts, seconds, thirds]: &Letters) -> __m256i {
    // SAFETY: AVX2 is there: only `Avx2`'s operations call this.
    unsafe {
        let both = _mm256_and_si256(groups(first, firsts), groups(second, seconds));
        _mm256_cmpeq_epi8(_mm256_and_si256(both, groups(third, thirds)), _mm256_setzero_si256())
    }
}

/// The groups of each byte.
#[inline(always)]
fn groups(bytes: __m256i, [lower, upper]: &[[u8; 16]; 2]) -> __m256i {
    // SAFETY: as above; the loads are of 16 bytes, and need no alignment.
    unsafe {
        let lower = _mm256_broadcastsi128_si256(_mm_loadu_si128(lower.as_ptr().cast()));
        let upper = _mm256_broadcastsi128_si256(_mm_loadu_si128(upper.as_ptr().cast()));
        let half = _mm256_set1_epi8(0x0f);
        let by_lower = _mm256_shuffle_epi8(lower, _mm256_and_si256(bytes, half));
        let upper_halves = _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), half);
        _mm256_and_si256(by_lower, _mm256_shuffle_epi8(upper, upper_halves))
    }
}

/// The highest bit of each byte.
#[inline(always)]
fn bits(low: __m256i, high: __m256i) -> u64 {
    // SAFETY: AVX2 is there: only `Avx2`'s operations call this.
    let (low, high) = unsafe { (_mm256_movemask_epi8(low), _mm256_movemask_epi8(high)) };
    u64::from(low.cast_unsigned()) | u64::from(high.cast_unsigned()) << 32
}
