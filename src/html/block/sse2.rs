//! The kernel that every x86-64 processor has: four vectors of 16 bytes a block.
//!
//! Why unsafe: loads through a pointer; SSE2 is part of x86-64, so its intrinsics are always available.
#![allow(unsafe_code, reason = "loads through a pointer")]

use std::arch::x86_64::{
    __m128i, _MM_HINT_T0, _mm_and_si128, _mm_andnot_si128, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_min_epu8,
    _mm_movemask_epi8, _mm_or_si128, _mm_prefetch, _mm_set1_epi8, _mm_sub_epi8,
};

use super::super::wanted::Letters;
use super::{BLOCK, Kernel, Task, WINDOW};

/// SSE2.
#[derive(Clone, Copy)]
pub(super) struct Sse2;

impl Sse2 {
    /// Runs `task` compiled for any x86-64 processor.
    pub fn run<T: Task>(self, task: T) -> T::Output {
        task.run(self)
    }
}

impl Kernel for Sse2 {
    type Block = [__m128i; 4];
    /// A marked byte is all ones.
    type Marks = [__m128i; 4];

    #[inline(always)]
    fn load(self, bytes: &[u8; BLOCK]) -> Self::Block {
        let start = bytes.as_ptr().cast::<__m128i>();
        // SAFETY: the four loads are within the 64 bytes and need no alignment.
        [0, 1, 2, 3].map(|vector| unsafe { _mm_loadu_si128(start.add(vector)) })
    }

    #[inline(always)]
    fn equal(self, block: Self::Block, byte: u8) -> Self::Marks {
        block.map(|vector| equal(vector, byte))
    }

    #[inline(always)]
    fn begins(self, window: &[u8; WINDOW], _letters: &Letters) -> Self::Marks {
        self.equal(self.load(window.first_chunk().unwrap_or(&[0; BLOCK])), b'<')
    }

    #[inline(always)]
    fn both(self, one: Self::Marks, other: Self::Marks) -> Self::Marks {
        // SAFETY: SSE2 is part of x86-64.
        [0, 1, 2, 3].map(|vector| unsafe { _mm_and_si128(one[vector], other[vector]) })
    }

    #[inline(always)]
    fn either(self, one: Self::Marks, other: Self::Marks) -> Self::Marks {
        [0, 1, 2, 3].map(|vector| either(one[vector], other[vector]))
    }

    #[inline(always)]
    fn any(self, [first, second, third, fourth]: Self::Marks) -> bool {
        let all = either(either(first, second), either(third, fourth));
        // SAFETY: SSE2 is part of x86-64.
        unsafe { _mm_movemask_epi8(all) != 0 }
    }

    #[inline(always)]
    fn bits(self, marks: Self::Marks) -> u64 {
        bits(marks, |vector| vector)
    }

    #[inline(always)]
    fn name_ends(self, block: Self::Block) -> u64 {
        bits(block, |vector| {
            // Tab to carriage return are five consecutive values; the middle one, the vertical tab, does not count.
            // SAFETY: SSE2 is part of x86-64.
            let controls = unsafe {
                let from_tab = _mm_sub_epi8(vector, _mm_set1_epi8(0x09));
                let five = _mm_cmpeq_epi8(_mm_min_epu8(from_tab, _mm_set1_epi8(4)), from_tab);
                _mm_andnot_si128(equal(vector, 0x0b), five)
            };
            either(either(controls, equal(vector, b' ')), either(equal(vector, b'/'), equal(vector, b'>')))
        })
    }

    #[inline(always)]
    fn specials(self, block: Self::Block) -> u64 {
        // Non-ASCII bytes have their highest bit set already.
        bits(block, |vector| {
            either(either(vector, equal(vector, b'&')), either(equal(vector, b'\r'), equal(vector, 0)))
        })
    }

    #[inline(always)]
    fn expect(self, bytes: &[u8], at: usize) {
        // SAFETY: nothing is read: an invalid address is ignored. SSE is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(bytes.as_ptr().wrapping_add(at).cast()) }
    }
}

#[inline(always)]
fn equal(vector: __m128i, byte: u8) -> __m128i {
    // SAFETY: SSE2 is part of x86-64.
    unsafe { _mm_cmpeq_epi8(vector, _mm_set1_epi8(byte as i8)) }
}

#[inline(always)]
fn either(one: __m128i, other: __m128i) -> __m128i {
    // SAFETY: SSE2 is part of x86-64.
    unsafe { _mm_or_si128(one, other) }
}

/// The highest bit of each byte of `look` applied to each vector.
#[inline(always)]
fn bits(block: [__m128i; 4], look: impl Fn(__m128i) -> __m128i) -> u64 {
    block.into_iter().rev().fold(0, |bits, vector| {
        // SAFETY: SSE2 is part of x86-64.
        let sixteen = unsafe { _mm_movemask_epi8(look(vector)) };
        bits << 16 | u64::from(sixteen.cast_unsigned())
    })
}
