//! The kernel of 64-bit ARM processors: four vectors of 16 bytes a block.
//!
//! Why unsafe: loads through a pointer; NEON is part of aarch64, so its intrinsics are always there.
#![allow(unsafe_code, reason = "loads through a pointer")]

use std::arch::aarch64::{
    uint8x16_t, vandq_u8, vceqq_u8, vcgeq_u8, vdupq_n_u8, vgetq_lane_u64, vld1q_u8, vorrq_u8, vpaddq_u8, vqtbl1q_u8,
    vreinterpretq_u64_u8, vshrq_n_u8, vtstq_u8,
};

use super::super::wanted::Letters;
use super::{BLOCK, Kernel, Task};

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

    #[inline(always)]
    fn load(self, bytes: &[u8; BLOCK]) -> Self::Block {
        let start = bytes.as_ptr();
        // SAFETY: the four loads lie in the 64 bytes, and need no alignment.
        [0, 16, 32, 48].map(|offset| unsafe { vld1q_u8(start.add(offset)) })
    }

    #[inline(always)]
    fn places(self, block: Self::Block, byte: u8) -> u64 {
        // SAFETY: NEON is part of aarch64.
        bits(block.map(|vector| unsafe { vceqq_u8(vector, vdupq_n_u8(byte)) }))
    }

    #[inline(always)]
    fn name_ends(self, block: Self::Block) -> u64 {
        // By the lower half of a byte: the one byte that counts with this half, or one whose half is another.
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

    #[inline(always)]
    fn in_groups(self, [first, second, third]: [Self::Block; 3], letters: &Letters) -> u64 {
        let [firsts, seconds, thirds] = letters;
        // SAFETY: NEON is part of aarch64.
        bits([0, 1, 2, 3].map(|vector| unsafe {
            let both = vandq_u8(groups(first[vector], firsts), groups(second[vector], seconds));
            vtstq_u8(both, groups(third[vector], thirds))
        }))
    }
}

/// The groups of each byte.
#[inline(always)]
fn groups(bytes: uint8x16_t, [lower, upper]: &[[u8; 16]; 2]) -> uint8x16_t {
    // SAFETY: NEON is part of aarch64; the loads are of 16 bytes.
    unsafe {
        let by_lower = vqtbl1q_u8(vld1q_u8(lower.as_ptr()), vandq_u8(bytes, vdupq_n_u8(0x0f)));
        vandq_u8(by_lower, vqtbl1q_u8(vld1q_u8(upper.as_ptr()), vshrq_n_u8::<4>(bytes)))
    }
}

/// A bit for each byte that is all ones: each byte keeps one bit, and three times neighbours are added.
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
