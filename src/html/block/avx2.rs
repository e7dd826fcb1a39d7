//! The kernel of x86-64 processors of the last ten years: two vectors of 32 bytes a block.
//!
//! Why unsafe: intrinsics of features that not every processor has, and loads through a pointer. Only `detect`
//! creates an `Avx2`, so holding one proves that the processor has these features.
#![allow(unsafe_code, reason = "intrinsics; see above")]

use std::arch::x86_64::{
    __m256i, _MM_HINT_T0, _mm_loadu_si128, _mm_prefetch, _mm256_and_si256, _mm256_broadcastsi128_si256,
    _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_or_si256, _mm256_set1_epi8, _mm256_setr_epi8,
    _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_testz_si256,
};

use super::super::wanted::Letters;
use super::{BLOCK, Kernel, Task, WINDOW};

/// Proof of AVX2 and of bit manipulation.
#[derive(Clone, Copy)]
pub(super) struct Avx2(());

impl Avx2 {
    /// The kernel, if the processor has what it needs.
    #[inline]
    pub fn detect() -> Option<Avx2> {
        let has = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt");
        has.then_some(Avx2(()))
    }

    /// Runs `task` compiled for these features.
    pub fn run<T: Task>(self, task: T) -> T::Output {
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
        fn with_features<T: Task>(task: T, kernel: Avx2) -> T::Output {
            task.run(kernel)
        }
        // SAFETY: without the features there would be no `Avx2`.
        unsafe { with_features(task, self) }
    }
}

impl Kernel for Avx2 {
    type Block = (__m256i, __m256i);
    /// A nonzero byte is marked.
    type Marks = (__m256i, __m256i);

    #[inline(always)]
    fn load(self, bytes: &[u8; BLOCK]) -> Self::Block {
        let start = bytes.as_ptr().cast::<__m256i>();
        // SAFETY: AVX2 is available; both loads are within the 64 bytes and need no alignment.
        unsafe { (_mm256_loadu_si256(start), _mm256_loadu_si256(start.add(1))) }
    }

    #[inline(always)]
    fn equal(self, (low, high): Self::Block, byte: u8) -> Self::Marks {
        // SAFETY: AVX2 is available.
        unsafe {
            let wanted = _mm256_set1_epi8(byte as i8);
            (_mm256_cmpeq_epi8(low, wanted), _mm256_cmpeq_epi8(high, wanted))
        }
    }

    #[inline(always)]
    fn begins(self, window: &[u8; WINDOW], letters: &Letters) -> Self::Marks {
        let start = window.as_ptr();
        // SAFETY: AVX2 is available, and there are 36 bytes behind both places.
        unsafe { (begins(start, letters), begins(start.add(32), letters)) }
    }

    #[inline(always)]
    fn both(self, one: Self::Marks, other: Self::Marks) -> Self::Marks {
        // SAFETY: AVX2 is available.
        unsafe { (_mm256_and_si256(one.0, other.0), _mm256_and_si256(one.1, other.1)) }
    }

    #[inline(always)]
    fn either(self, one: Self::Marks, other: Self::Marks) -> Self::Marks {
        // SAFETY: AVX2 is available.
        unsafe { (_mm256_or_si256(one.0, other.0), _mm256_or_si256(one.1, other.1)) }
    }

    #[inline(always)]
    fn any(self, (low, high): Self::Marks) -> bool {
        // SAFETY: AVX2 is available.
        unsafe {
            let either = _mm256_or_si256(low, high);
            _mm256_testz_si256(either, either) == 0
        }
    }

    #[inline(always)]
    fn bits(self, (low, high): Self::Marks) -> u64 {
        // SAFETY: AVX2 is available.
        unsafe {
            let zero = _mm256_setzero_si256();
            !bits(_mm256_cmpeq_epi8(low, zero), _mm256_cmpeq_epi8(high, zero))
        }
    }

    #[inline(always)]
    fn name_ends(self, (low, high): Self::Block) -> u64 {
        // By the lower half of a byte: the one byte that counts with this half, or a byte with another half. SAFETY:
        // AVX2 is available.
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
    fn expect(self, bytes: &[u8], at: usize) {
        // SAFETY: nothing is read: an invalid address is ignored. SSE is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(bytes.as_ptr().wrapping_add(at).cast()) }
    }
}

/// Sets the highest bit of each special byte: in non-ASCII bytes it is already set.
#[inline(always)]
fn special(vector: __m256i) -> __m256i {
    // SAFETY: AVX2 is available: only `Avx2`'s operations call this.
    unsafe {
        // By the lower half of a byte, as in `name_ends`: NUL, `&` and CR; other entries have another half.
        let table = _mm256_setr_epi8(
            0, 0, 0, 0, 0, 0, 0x26, 0, 0, 0, 0, 0, 0, 0x0d, 0, 0, //
            0, 0, 0, 0, 0, 0, 0x26, 0, 0, 0, 0, 0, 0, 0x0d, 0, 0,
        );
        _mm256_or_si256(vector, _mm256_cmpeq_epi8(vector, _mm256_shuffle_epi8(table, vector)))
    }
}

/// Nonzero where a `<` is followed by the bytes of a group.
#[inline(always)]
unsafe fn begins(start: *const u8, letters: &Letters) -> __m256i {
    // A lookup uses the lower half of a byte, and yields zero where the highest bit is set. SAFETY: AVX2 is
    // available: only `Avx2`'s operations call this. The loads are of 16 bytes of a table and of 32 bytes at four
    // consecutive places, which the caller guarantees; none needs alignment.
    unsafe {
        let opens = _mm256_cmpeq_epi8(_mm256_loadu_si256(start.cast()), _mm256_set1_epi8(b'<' as i8));
        let first = _mm256_shuffle_epi8(table(&letters.first), _mm256_loadu_si256(start.add(1).cast()));
        let second = _mm256_shuffle_epi8(table(&letters.second), _mm256_loadu_si256(start.add(2).cast()));
        let fourth = _mm256_shuffle_epi8(table(&letters.fourth), _mm256_loadu_si256(start.add(4).cast()));
        let fourth = _mm256_or_si256(fourth, _mm256_set1_epi8(letters.any_fourth as i8));
        _mm256_and_si256(_mm256_and_si256(opens, first), _mm256_and_si256(second, fourth))
    }
}

/// A table for both halves of a vector.
#[inline(always)]
fn table(table: &[u8; 16]) -> __m256i {
    // SAFETY: as above; the load is of 16 bytes, and needs no alignment.
    unsafe { _mm256_broadcastsi128_si256(_mm_loadu_si128(table.as_ptr().cast())) }
}

/// The highest bit of each byte.
#[inline(always)]
fn bits(low: __m256i, high: __m256i) -> u64 {
    // SAFETY: AVX2 is available: only `Avx2`'s operations call this.
    let (low, high) = unsafe { (_mm256_movemask_epi8(low), _mm256_movemask_epi8(high)) };
    u64::from(low.cast_unsigned()) | u64::from(high.cast_unsigned()) << 32
}
