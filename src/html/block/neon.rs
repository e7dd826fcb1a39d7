//! The kernel of 64-bit ARM processors: four vectors of 16 bytes a block.
//!
//! Why unsafe: loads through a pointer; NEON is part of aarch64, so its intrinsics are always available.
#![allow(unsafe_code, reason = "loads through a pointer")]

use std::arch::aarch64::{
    uint8x16_t, vandq_u8, vceqq_u8, vcgeq_u8, vdupq_n_u8, vgetq_lane_u64, vld1q_u8, vmaxvq_u8, vorrq_u8, vpaddq_u8,
    vqtbl1q_u8, vreinterpretq_u64_u8, vsubq_u8, vtstq_u8,
};

use super::super::wanted::Letters;
use super::{BLOCK, Kernel, Task, WINDOW};

/// NEON.
#[derive(Clone, Copy)]
pub(super) struct Neon;

impl Neon {
    /// Runs `task` compiled for any aarch64 processor.
    pub fn run<T: Task>(self, task: T) -> T::Output {
        task.run(self)
    }
}

impl Kernel for Neon {
    type Block = [uint8x16_t; 4];
    /// A marked byte is all ones.
    type Marks = [uint8x16_t; 4];

    #[inline(always)]
    fn load(self, bytes: &[u8; BLOCK]) -> Self::Block {
        let start = bytes.as_ptr();
        // SAFETY: the four loads are within the 64 bytes and need no alignment.
        [0, 16, 32, 48].map(|offset| unsafe { vld1q_u8(start.add(offset)) })
    }

    #[inline(always)]
    fn equal(self, block: Self::Block, byte: u8) -> Self::Marks {
        // SAFETY: NEON is part of aarch64.
        block.map(|vector| unsafe { vceqq_u8(vector, vdupq_n_u8(byte)) })
    }

    #[inline(always)]
    fn begins(self, window: &[u8; WINDOW], letters: &Letters) -> Self::Marks {
        let start = window.as_ptr();
        // SAFETY: NEON is part of aarch64; the last load is of the window's last 16 bytes.
        [0, 16, 32, 48].map(|offset| unsafe { begins(start.add(offset), letters) })
    }

    #[inline(always)]
    fn both(self, one: Self::Marks, other: Self::Marks) -> Self::Marks {
        // SAFETY: NEON is part of aarch64.
        [0, 1, 2, 3].map(|vector| unsafe { vandq_u8(one[vector], other[vector]) })
    }

    #[inline(always)]
    fn either(self, one: Self::Marks, other: Self::Marks) -> Self::Marks {
        // SAFETY: NEON is part of aarch64.
        [0, 1, 2, 3].map(|vector| unsafe { vorrq_u8(one[vector], other[vector]) })
    }

    #[inline(always)]
    fn any(self, [first, second, third, fourth]: Self::Marks) -> bool {
        // SAFETY: NEON is part of aarch64.
        unsafe { vmaxvq_u8(vorrq_u8(vorrq_u8(first, second), vorrq_u8(third, fourth))) != 0 }
    }

    #[inline(always)]
    fn bits(self, marks: Self::Marks) -> u64 {
        bits(marks)
    }

    #[inline(always)]
    fn name_ends(self, block: Self::Block) -> u64 {
        // By the lower half of a byte: the one byte that counts with this half, or a byte with another half.
        const TABLE: [u8; 16] = [0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0x09, 0x0a, 0, 0x0c, 0x0d, 0x3e, 0x2f];
        // SAFETY: NEON is part of aarch64; the loads are of 16 bytes.
        bits(block.map(|vector| unsafe {
            let half = vandq_u8(vector, vdupq_n_u8(0x0f));
            vceqq_u8(vector, vqtbl1q_u8(vld1q_u8(TABLE.as_ptr()), half))
        }))
    }

    #[inline(always)]
    fn specials(self, block: Self::Block) -> u64 {
        // SAFETY: NEON is part of aarch64.
        bits(block.map(|vector| unsafe {
            let high = vcgeq_u8(vector, vdupq_n_u8(0x80));
            let ampersand = vceqq_u8(vector, vdupq_n_u8(b'&'));
            let control = vorrq_u8(vceqq_u8(vector, vdupq_n_u8(b'\r')), vceqq_u8(vector, vdupq_n_u8(0)));
            vorrq_u8(vorrq_u8(high, ampersand), control)
        }))
    }
}

/// All ones where a `<` is followed by the bytes of a group.
#[inline(always)]
unsafe fn begins(start: *const u8, letters: &Letters) -> uint8x16_t {
    // SAFETY: NEON is part of aarch64; the loads are of 16 bytes at four consecutive places, which the caller
    // guarantees.
    unsafe {
        let opens = vceqq_u8(vld1q_u8(start), vdupq_n_u8(b'<'));
        let first = lower_half(&letters.first, vld1q_u8(start.add(1)));
        let second = lower_half(&letters.second, vld1q_u8(start.add(2)));
        let fourth = vorrq_u8(lower_half(&letters.fourth, vld1q_u8(start.add(4))), vdupq_n_u8(letters.any_fourth));
        vandq_u8(opens, vtstq_u8(vandq_u8(first, second), fourth))
    }
}

/// The table's entry for the lower half of each byte: zero for non-ASCII bytes, whose highest bit is kept.
#[inline(always)]
fn lower_half(table: &[u8; 16], bytes: uint8x16_t) -> uint8x16_t {
    // SAFETY: NEON is part of aarch64; the load is of 16 bytes.
    unsafe { vqtbl1q_u8(vld1q_u8(table.as_ptr()), vandq_u8(bytes, vdupq_n_u8(0x8f))) }
}

/// A bit for each byte that is all ones: each byte keeps one bit, and neighbours are added three times.
#[inline(always)]
fn bits([first, second, third, fourth]: [uint8x16_t; 4]) -> u64 {
    const WEIGHTS: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];
    // SAFETY: NEON is part of aarch64; the load is of 16 bytes.
    unsafe {
        let weights = vld1q_u8(WEIGHTS.as_ptr());
        let low = vpaddq_u8(vandq_u8(first, weights), vandq_u8(second, weights));
        let high = vpaddq_u8(vandq_u8(third, weights), vandq_u8(fourth, weights));
        let sums = vpaddq_u8(low, high);
        vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(sums, sums)))
    }
}
