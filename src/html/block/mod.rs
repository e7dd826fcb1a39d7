//! Sixty-four bytes at once: the positions of a byte in them, as the bits of a `u64`, lowest bit first.
//!
//! Decides: the scanner queries a block with a few operations, and each processor has its kernel for them: AVX2,
//! SSE2, NEON, and plain code elsewhere. Where a search usually continues with the next block, it asks for marks,
//! which stay in vectors, and only for whether there are any. The kernel is chosen at run time; [`with_best`] runs a
//! whole task under it, so that a kernel's operations are inlined into the task's own loops and no search is a call.
//! There is no AVX-512 kernel: measured on Zen 4, it was slower than AVX2.
//!
//! Invariants: every kernel gives the same bits (a test compares them with plain code); a kernel's value proves that
//! this processor has what the kernel needs, so its operations are safe.
//! Limits: everything that a task calls under a kernel must be `#[inline(always)]` and not a closure, or it is
//! compiled for any processor, and each operation is a call.

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
/// A block, plus the letters after a `<` that is its last byte.
pub(super) const WINDOW: usize = BLOCK + 4;

/// How a processor examines a block.
pub(super) trait Kernel: Copy {
    /// A block, loaded.
    type Block: Copy;
    /// For each byte of a block, whether it is marked.
    type Marks: Copy;

    /// Loads a block.
    fn load(self, bytes: &[u8; BLOCK]) -> Self::Block;

    /// Marks `byte`.
    fn equal(self, block: Self::Block, byte: u8) -> Self::Marks;

    /// Marks each `<` of the window's block followed by bytes that match a group of names, by their lower halves. A
    /// processor without vector lookups marks every `<`.
    fn begins(self, window: &[u8; WINDOW], letters: &Letters) -> Self::Marks;

    /// Marked in both.
    fn both(self, one: Self::Marks, other: Self::Marks) -> Self::Marks;

    /// Marked in either.
    fn either(self, one: Self::Marks, other: Self::Marks) -> Self::Marks;

    /// Whether anything is marked.
    fn any(self, marks: Self::Marks) -> bool;

    /// The positions of the marks.
    fn bits(self, marks: Self::Marks) -> u64;

    /// The positions of `byte`.
    #[inline(always)]
    fn places(self, block: Self::Block, byte: u8) -> u64 {
        self.bits(self.equal(block, byte))
    }

    /// Marks a letter in either case.
    #[inline(always)]
    fn letter(self, block: Self::Block, small: u8) -> Self::Marks {
        self.either(self.equal(block, small), self.equal(block, small.to_ascii_uppercase()))
    }

    /// The positions of bytes that end a tag's name: ASCII whitespace, `/` or `>`.
    fn name_ends(self, block: Self::Block) -> u64;

    /// The positions of bytes that make a value differ from its raw bytes: non-ASCII, `&`, CR or NUL.
    fn specials(self, block: Self::Block) -> u64;

    /// Announces that the data at `at`, which may be past the end, will be read soon.
    #[inline(always)]
    fn expect(self, _bytes: &[u8], _at: usize) {}
}

/// Work that is compiled for each kernel.
pub(super) trait Task {
    /// Its result.
    type Output;

    /// Runs it. Must be `#[inline(always)]`, with everything that uses the kernel.
    fn run<K: Kernel>(self, kernel: K) -> Self::Output;
}

/// Whether to use the kernel that every processor of this architecture has.
static BASELINE: AtomicBool = AtomicBool::new(false);

/// Makes all threads do without optional processor features, or reverts that: for measuring. Results are the same.
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

/// The results of `task` under every kernel that this processor has, plain code first.
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
    // SAFETY: every byte of `text` was in a block and is not special, so all of them are ASCII.
    Some(unsafe { std::str::from_utf8_unchecked(text) })
}

/// The bytes before the first `end` in the first block of `bytes`, as text if none of them is special, and their
/// length. `None` if there is no `end`, or no whole block.
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
    // SAFETY: every byte of `raw` is in the block, before the first `end`, and not special, so all of them are ASCII.
    Some((Ok(unsafe { std::str::from_utf8_unchecked(raw) }), length))
}
