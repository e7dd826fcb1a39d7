//! Anchors: places in a page's text that are chosen by the text itself.
//!
//! Decides: a place is an anchor if a hash of its four bytes has one particular value out of sixteen, whatever
//! surrounds it. So a sentence has the same anchors on every page. The anchor is a hash of the [`PIECE_BYTES`] bytes
//! from there. The rule ignores letters: it works for all languages, for all encodings that extend ASCII, and for
//! pages of any length. A piece does not cross a tag and contains no digit: dates, counters, prices and tokens differ
//! on every page.
//! Invariants: pure; linear in bytes; every kernel finds the same anchors (a test compares them with a slow twin).
//! Limits: the first [`TEXT_BYTES_MAX`] bytes of a page.
//! Leaves to others: how much of a page is new (`kinds`), which bytes are text (`page`).

use xxhash_rust::xxh3::xxh3_64;

use super::block::{BLOCK, Kernel, Task, with_best};
use super::markup::tag_end;

/// The anchors of a decoded HTML page, in page order.
pub fn anchors_of_html(html: &[u8]) -> Vec<u32> {
    with_best(Search { bytes: beginning(html), is_html: true })
}

/// The same for plain text.
pub fn anchors_of_text(text: &[u8]) -> Vec<u32> {
    with_best(Search { bytes: beginning(text), is_html: false })
}

fn beginning(bytes: &[u8]) -> &[u8] {
    bytes.get(..TEXT_BYTES_MAX).unwrap_or(bytes)
}

#[derive(Clone, Copy)]
struct Search<'a> {
    bytes: &'a [u8],
    is_html: bool,
}

impl Task for Search<'_> {
    type Output = Vec<u32>;

    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) -> Vec<u32> {
        let mut anchors = Vec::new();
        let mut at = 0;
        while at < self.bytes.len() {
            let rest = self.bytes.get(at..).unwrap_or_default();
            let end = if self.is_html { memchr::memchr(b'<', rest).unwrap_or(rest.len()) } else { rest.len() };
            self.search(kernel, at, at + end, &mut anchors);
            at += end;
            let tag = self.bytes.get(at..).unwrap_or_default();
            at += tag_end(tag).map_or(tag.len(), |end| end + 1);
        }
        anchors
    }
}

impl Search<'_> {
    /// Finds the anchors of the text from `start` to `end`.
    #[inline(always)]
    fn search<K: Kernel>(self, kernel: K, start: usize, end: usize, anchors: &mut Vec<u32>) {
        let Some(places) = (end - start).checked_sub(PIECE_BYTES - 1) else { return };
        for skipped in (0..places).step_by(BLOCK) {
            let at = start + skipped;
            let mut padded = [0; BLOCK + HASHED_BYTES - 1];
            let window = match self.bytes.get(at..).and_then(|rest| rest.first_chunk()) {
                Some(window) => window,
                None => {
                    let rest = self.bytes.get(at..).unwrap_or_default();
                    padded.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
                    &padded
                }
            };
            let mut bits = kernel.places(kernel.load(&hashes(window)), ANCHOR);
            if places - skipped < BLOCK {
                bits &= (1 << (places - skipped)) - 1;
            }
            while bits != 0 {
                let from = at + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let piece = self.bytes.get(from..).and_then(|rest| rest.first_chunk::<PIECE_BYTES>());
                anchors.extend(piece.and_then(anchor_of));
            }
        }
    }
}

/// A hash, of sixteen possible values, of each four consecutive bytes. It uses sums of bytes instead of products, so
/// that vector instructions cover all of it.
#[inline(always)]
fn hashes(window: &[u8; BLOCK + HASHED_BYTES - 1]) -> [u8; BLOCK] {
    let mut hashes = [0; BLOCK];
    let [seconds, thirds, fourths] = [1, 2, 3].map(|at| window.get(at..).unwrap_or_default());
    let three = |byte: u8| byte.wrapping_add(byte).wrapping_add(byte);
    for ((((hash, first), second), third), fourth) in
        hashes.iter_mut().zip(window).zip(seconds).zip(thirds).zip(fourths)
    {
        let [one, two] = [three(*first) ^ three(three(*second)), three(*third) ^ *fourth];
        *hash = one.wrapping_add(two) & 15;
    }
    hashes
}

fn anchor_of(piece: &[u8; PIECE_BYTES]) -> Option<u32> {
    let has_digit = piece.iter().fold(false, |has, byte| has | byte.is_ascii_digit());
    (!has_digit).then(|| xxh3_64(piece) as u32)
}

/// Length of an anchor's piece in bytes: about three words.
const PIECE_BYTES: usize = 16;
/// Bytes hashed to choose a place.
const HASHED_BYTES: usize = 4;
/// The hash value of an anchor.
const ANCHOR: u8 = 5;
/// Bytes of a page that are searched.
const TEXT_BYTES_MAX: usize = 128 << 10;

#[cfg(test)]
mod tests {
    use super::super::block::with_each;
    use super::*;
    use ringcrawl_base::Rng;

    /// The same, one byte after the other.
    fn slow(bytes: &[u8], is_html: bool) -> Vec<u32> {
        let bytes = &bytes[..bytes.len().min(TEXT_BYTES_MAX)];
        let (mut runs, mut at) = (Vec::new(), 0);
        while at < bytes.len() {
            let start = at;
            while at < bytes.len() && !(is_html && bytes[at] == b'<') {
                at += 1;
            }
            runs.push(&bytes[start..at]);
            at = tag_end(&bytes[at..]).map_or(bytes.len(), |end| at + end + 1);
        }
        let is_anchor = |piece: &&[u8]| {
            let [a, b, c, d] = [0, 1, 2, 3].map(|at: usize| u32::from(piece[at]));
            ((3 * a) ^ (9 * b)).wrapping_add((3 * c) ^ d) % 16 == 5 && !piece.iter().any(u8::is_ascii_digit)
        };
        let pieces = runs.into_iter().flat_map(|run| run.windows(PIECE_BYTES));
        pieces.filter(is_anchor).map(|piece| xxh3_64(piece) as u32).collect()
    }

    #[test]
    fn twins_agree() {
        let mut rng = Rng::new(1);
        let mut found = 0;
        for round in 0..400 {
            let length = rng.index(if round % 40 == 0 { 200_000 } else { 700 });
            let bytes: Vec<u8> = (0..length)
                .map(|_| match rng.below(60) {
                    0 => *rng.pick(b"<>!-/s7&"),
                    1 => rng.below(256) as u8,
                    2..=10 => b' ',
                    _ => b'a' + rng.below(26) as u8,
                })
                .collect();
            for is_html in [false, true] {
                let slow = slow(&bytes, is_html);
                found += slow.len();
                for (kernel, anchors) in with_each(&Search { bytes: beginning(&bytes), is_html }) {
                    assert_eq!(anchors, slow, "{kernel}, round {round}");
                }
            }
        }
        assert!(found > 1_000, "{found}");
    }

    /// One place in sixteen, whatever the language; and a sentence has the same anchors wherever it stands.
    #[test]
    fn every_language_has_anchors() {
        for text in [
            "The quick brown fox jumps over the lazy dog while nobody in the village looks up from the morning paper. ",
            "Der Hund schlief noch, als die alte Frau mit ihrem Korb den steilen Weg zum Markt hinunterging. ",
            "El río bajaba crecido después de las lluvias, y los niños miraban el agua desde el puente de piedra. ",
            "Мы шли по узкой тропе вдоль берега, и никто не решался заговорить первым до самого вечера. ",
            "昔々ある所に、お爺さんとお婆さんが住んでいました。お爺さんは山へ柴刈りに行きました。",
            "ba bo bi bu da do di du ga go gi gu ka ko ki ku la lo li lu ma mo mi mu na no ni nu ",
        ] {
            let anchors = anchors_of_text(text.as_bytes());
            let expected = text.len() / 16;
            assert!((expected / 3..=expected * 3).contains(&anchors.len()), "{} of {expected}: {text}", anchors.len());
            let html =
                format!("<p>Something before</p><script>var x = '<b>{text}</b>'</script><p>{text}</p><!-- {text} -->");
            let of_html = anchors_of_html(html.as_bytes());
            assert!(anchors.iter().all(|anchor| of_html.iter().filter(|other| *other == anchor).count() == 1));
        }
        assert!(anchors_of_text(b"2026-11-27 12:00:00.000 0123456789abcdef01").is_empty());
    }
}
