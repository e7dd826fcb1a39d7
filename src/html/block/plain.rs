//! The kernel of other processors, and the reference for all kernels: one byte after the other.

use super::super::tokenizer::ends_name;
use super::super::wanted::Letters;
use super::{BLOCK, Kernel, Task, WINDOW};

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
    type Marks = u64;

    #[inline(always)]
    fn load(self, bytes: &[u8; BLOCK]) -> Self::Block {
        *bytes
    }

    #[inline(always)]
    fn equal(self, block: Self::Block, byte: u8) -> u64 {
        bits(&block, |one| one == byte)
    }

    #[inline(always)]
    fn begins(self, window: &[u8; WINDOW], letters: &Letters) -> u64 {
        let begins = |bytes: &[u8]| matches!(*bytes, [b'<', a, b, c, d] if letters.have([a, b, c, d]));
        window.windows(5).rev().fold(0, |bits, bytes| bits << 1 | u64::from(begins(bytes)))
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
        bits(&block, ends_name)
    }

    #[inline(always)]
    fn specials(self, block: Self::Block) -> u64 {
        bits(&block, |one| !one.is_ascii() || matches!(one, b'&' | b'\r' | 0))
    }
}

#[inline(always)]
fn bits(block: &[u8; BLOCK], is: impl Fn(u8) -> bool) -> u64 {
    block.iter().rev().fold(0, |bits, byte| bits << 1 | u64::from(is(*byte)))
}
