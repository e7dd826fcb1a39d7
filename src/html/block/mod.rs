//! Sixty-four bytes at once: where in them a byte stands, as the bits of a `u64`, lowest bit first.
//!
//! Decides: the scanner asks all its questions of a block with a few operations, and each processor has its kernel for
//! them: AVX2, SSE2, NEON, and plain code elsewhere. Where a search mostly goes on to the next block, it asks for marks,
//! which stay in vectors, and only whether there are any. The kernel is picked at run time; [`with_best`] runs a whole task
//! under it, so that a kernel's operations become part of the task's own loops and no search is a call. There is none with
//! AVX-512: where both were measured (Zen 4), it took longer than that with AVX2.
//!
//! Invariants: every kernel gives the same bits (a test compares them with plain code); a kernel's value is the proof
//! that this processor has what the kernel needs, so that its operations are safe.
//! Limits: what a task calls under a kernel has to be `#[inline(always)]`, and no closure, or it is compiled for any
//! processor, and each operation is a call.

use super::wanted::Letters;
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(any(test, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod plain;
#[cfg(target_arch = "x86_64")]
mod sse2;

#[cfg(test)]
mod tests;

/// Bytes in a block.
pub(super) const BLOCK: usize = 64;
/// A block, and the letters of a `<` that is its last byte.
pub(super) const WINDOW: usize = BLOCK + 4;

/// How a processor looks at a block.
pub(super) trait Kernel: Copy {
    /// A block, loaded.
    type Block: Copy;
    /// For each byte of a block whether it is marked.
    type Marks: Copy;

    /// Loads a block.
    fn load(self, bytes: &[u8; BLOCK]) -> Self::Block;

    /// Marks `byte`.
    fn equal(self, block: Self::Block, byte: u8) -> Self::Marks;

    /// Marks each `<` of the window's block that bytes stand behind which one group of names has, by their lower halves. A processor without look-ups in a vector marks every `<`.
    fn begins(self, window: &[u8; WINDOW], letters: &Letters) -> Self::Marks;

    /// What is marked here and there.
    fn both(self, one: Self::Marks, other: Self::Marks) -> Self::Marks;

    /// What is marked here or there.
    fn either(self, one: Self::Marks, other: Self::Marks) -> Self::Marks;

    /// Whether anything is marked.
    fn any(self, marks: Self::Marks) -> bool;

    /// Where the marks are.
    fn bits(self, marks: Self::Marks) -> u64;

    /// Where `byte` stands.
    #[inline(always)]
    fn places(self, block: Self::Block, byte: u8) -> u64 {
        self.bits(self.equal(block, byte))
    }

    /// Marks a letter, small or not.
    #[inline(always)]
    fn letter(self, block: Self::Block, small: u8) -> Self::Marks {
        self.either(self.equal(block, small), self.equal(block, small.to_ascii_uppercase()))
    }

    /// Where a byte stands that ends a tag's name: ASCII whitespace, `/` or `>`.
    fn name_ends(self, block: Self::Block) -> u64;

    /// Where a byte stands that makes a value more than its bytes: one that is not ASCII, `&`, CR or NUL.
    fn specials(self, block: Self::Block) -> u64;

    /// Says that what stands at `at`, which may lie behind the end, will be looked at soon.
    #[inline(always)]
    fn expect(self, _bytes: &[u8], _at: usize) {}
}

/// Work that is compiled for each kernel.
pub(super) trait Task {
    /// What comes of it.
    type Output;

    /// Does it. To be `#[inline(always)]`, with all that uses the kernel.
    fn run<K: Kernel>(self, kernel: K) -> Self::Output;
}

/// Whether the kernel is to be the one that every processor of this architecture has.
static BASELINE: AtomicBool = AtomicBool::new(false);

/// Lets all threads do without what not every processor has, or takes that back: for measuring. Results are the same.
pub fn set_baseline(on: bool) {
    BASELINE.store(on, Ordering::Relaxed);
}

/// Runs `task` under the best kernel that this processor has.
pub(super) fn with_best<T: Task>(task: T) -> T::Output {
    #[cfg(target_arch = "x86_64")]
    {
        if BASELINE.load(Ordering::Relaxed) {
            sse2::Sse2.run(task)
        } else if let Some(kernel) = avx2::Avx2::detect() {
            kernel.run(task)
        } else {
            sse2::Sse2.run(task)
        }
    }
    #[cfg(target_arch = "aarch64")]
    {
        neon::Neon.run(task)
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        plain::Plain.run(task)
    }
}

/// What comes of `task` under every kernel that this processor has, plain code first.
#[cfg(test)]
pub(super) fn with_each<T: Task + Clone>(task: &T) -> Vec<(&'static str, T::Output)> {
    let mut outputs = vec![("plain", plain::Plain.run(task.clone()))];
    #[cfg(target_arch = "x86_64")]
    {
        outputs.push(("sse2", sse2::Sse2.run(task.clone())));
        outputs.extend(avx2::Avx2::detect().map(|kernel| ("avx2", kernel.run(task.clone()))));
    }
    #[cfg(target_arch = "aarch64")]
    outputs.push(("neon", neon::Neon.run(task.clone())));
    outputs
}

/// The bytes from `start` to `end` as text, if none of them is special.
#[inline(always)]
#[allow(unsafe_code, reason = "the kernel has looked at every byte; looking again takes longer than all else here")]
pub(super) fn plain_text<K: Kernel>(kernel: K, bytes: &[u8], start: usize, end: usize) -> Option<&str> {
    let text = bytes.get(start..end)?;
    let mut at = start;
    while at < end {
        let block: &[u8; BLOCK] = bytes.get(at..)?.first_chunk()?;
        let left = end - at;
        let asked = if left < BLOCK { (1 << left) - 1 } else { !0 };
        if kernel.specials(kernel.load(block)) & asked != 0 {
            return None;
        }
        at += BLOCK;
    }
    // SAFETY: every byte of `text` was in a block, and is not special: so all of them are ASCII.
    Some(unsafe { std::str::from_utf8_unchecked(text) })
}

/// What stands before the first `end` in the first block of `bytes`, as text if none of it is special, and its length.
/// `None` if there is no `end`, or no whole block.
#[inline(always)]
#[allow(unsafe_code, reason = "as in `plain_text`")]
pub(super) fn before<K: Kernel>(kernel: K, bytes: &[u8], end: u8) -> Option<(Result<&str, &[u8]>, usize)> {
    let block = kernel.load(bytes.first_chunk()?);
    let ends = kernel.places(block, end);
    let length = ends.trailing_zeros() as usize;
    if ends == 0 {
        return None;
    }
    let raw = bytes.get(..length)?;
    if kernel.specials(block) & ends.wrapping_sub(1) & !ends != 0 {
        return Some((Err(raw), length));
    }
    // SAFETY: every byte of `raw` is in the block, before the first `end`, and is not special: so all of them are ASCII.
    Some((Ok(unsafe { std::str::from_utf8_unchecked(raw) }), length))
}
