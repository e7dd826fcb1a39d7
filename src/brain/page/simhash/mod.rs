//! Which pages are nearly the same: a fingerprint of 64 bits that differs in few bits between near duplicates.
//!
//! Decides: SimHash (Charikar 2002; Manku, Jain, Das Sarma 2007, who call pages near duplicates up to 3 bits) over
//! each three words in a row. The words are those between tags ([`Words`]): neither markup nor numbers count, so
//! another date, counter or token makes no difference. Each shingle's hash votes on each bit ([`Votes`]).
//! Up to [`WHOLE_BYTES`] all shingles vote. In a longer page samples from beginning to end vote, because most of a
//! page is shared with its site's other pages, and that part comes first. The reader skips [`jump`] bytes and
//! continues at the next place that the content itself marks, whatever comes before. So after an insertion, the
//! samples of two versions soon coincide again. A jump grows with the page by powers of two: pages of about one
//! length have the same.
//! Invariants: pure; the same bytes give the same fingerprint, on every machine; linear in bytes; no byte can cause a
//! panic.
//! Limits: a page with fewer than [`SHINGLES_MIN`] has none. In encodings other than UTF-8, words of letters outside
//! ASCII are cut elsewhere, so one text in two encodings counts as two. UTF-16 and ISO-2022-JP cannot be read; do not
//! pass them.
//! Leaves to others: what is text and when it is wanted (`page`), how it is used (the field `simhash` records it; no
//! page is dropped for it).

mod votes;
mod words;

#[cfg(test)]
mod tests;

use votes::Votes;
use words::Words;

/// The fingerprint of an HTML page, its codings undone; `None` if it has too few words.
pub fn of_html(html: &[u8]) -> Option<u64> {
    fingerprint(Words::of_html(html), html.len())
}

/// The same of plain text.
pub fn of_text(text: &[u8]) -> Option<u64> {
    fingerprint(Words::of_text(text), text.len())
}

fn fingerprint(mut words: Words<'_>, bytes: usize) -> Option<u64> {
    let mut votes = Votes::default();
    match jump(bytes) {
        0 => shingles(words, &mut votes),
        jump => {
            while words.leap(jump) {
                shingles(words.by_ref().take(SAMPLE_WORDS), &mut votes);
            }
        }
    }
    (votes.count() >= SHINGLES_MIN).then(|| votes.majority())
}

/// Lets each three words in a row vote.
#[inline(always)]
fn shingles(mut words: impl Iterator<Item = u64>, votes: &mut Votes) {
    let (Some(mut first), Some(mut second)) = (words.next(), words.next()) else { return };
    for third in words {
        votes.add(shingle([first, second, third]));
        (first, second) = (second, third);
    }
}

/// The hash of three words in this order; each bit depends on all of them (the finish of SplitMix64).
#[inline(always)]
fn shingle([first, second, third]: [u64; 3]) -> u64 {
    let mut hash = first.rotate_left(42) ^ second.rotate_left(21) ^ third;
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

/// Bytes that are skipped between two samples of a page of this length; 0: it is read as a whole.
fn jump(bytes: usize) -> usize {
    if bytes <= WHOLE_BYTES {
        return 0;
    }
    // No slice is long enough for this to overflow.
    bytes.div_ceil(WHOLE_BYTES).next_power_of_two() * (WHOLE_BYTES / SAMPLES_MAX)
}

/// Bytes of a page that is read as a whole.
const WHOLE_BYTES: usize = 32 << 10;
/// Samples of a longer page; half as many if its length is just above a power of two.
const SAMPLES_MAX: usize = 160;
/// Words of a sample: a shingle.
const SAMPLE_WORDS: usize = 3;
/// With fewer, one more or less changes many bits.
const SHINGLES_MIN: usize = 16;

/// No page has more shingles than can be counted: a word takes at least a byte.
const _: () = assert!(WHOLE_BYTES <= Votes::COUNT_MAX && SAMPLES_MAX * SAMPLE_WORDS <= Votes::COUNT_MAX);
