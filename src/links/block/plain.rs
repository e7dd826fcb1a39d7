//! The kernel of other processors, and what all kernels are compared with: one byte after the other.

use super::super::tokenizer::ends_name;
use super::super::wanted::Letters;
use super::{BLOCK, Kernel, Task};

/// No vectors.
#[derive(Clone, Copy)]
pub(super) struct Plain;

impl Plain {
    /// Runs `task`.
    pub fn run<T: Task>(self, task: T) -> T::Output {
        task.run(self)
    }
}

impl Kernel for Plain {
    type Block = [u8; BLOCK];

    #[inline(always)]
    fn load(self, bytes: &[u8; BLOCK]) -> Self::Block {
        *bytes
    }

    #[inline(always)]
    fn places(self, block: Self::Block, byte: u8) -> u64 {
        bits(&block, |one| one == byte)
    }

    #[inline(always)]
    fn name_ends(self, block: Self::Block) -> u64 {
        bits(&block, ends_name)
    }

    #[inline(always)]
    fn specials(self, block: Self::Block) -> u64 {
        bits(&block, |one| !one.is_ascii() || matches!(one, b'&' | b'\r' | 0))
    }

    fn in_groups(self, blocks: [Self::Block; 3], letters: &Letters) -> u64 {
        let mut groups = [!0_u8; BLOCK];
        for (block, [lower, upper]) in blocks.iter().zip(letters) {
            for (groups, byte) in groups.iter_mut().zip(block) {
                *groups &= lower[usize::from(byte & 15)] & upper[usize::from(byte >> 4)];
            }
        }
        bits(&groups, |groups| groups != 0)
    }
}

#[inline(always)]
fn bits(block: &[u8; BLOCK], is: impl Fn(u8) -> bool) -> u64 {
    block.iter().rev().fold(0, |bits, byte| bits << 1 | u64::from(is(*byte)))
}
