//! The pool: pieces of HTML without links, from which pages are assembled by copying.
//!
//! Decides: words of one vocabulary drawn by rank, as in language, in paragraphs, tables, styles and inline data, so
//! that pages compress as real ones do (about 5.5 to 1 for the `web` profile), and writing a page costs only copying.
//! Invariants: a piece has balanced markup, nothing that is a link in any HTML parser, and no trap.
//! Limits: some 400 KB plain for `web`, so that it stays in a core's second-level cache.

use super::draw::{Draw, Purpose};
use super::gzip::Piece;
use super::model::Profile;
use super::site::push_number;

/// Pieces of one profile and seed.
#[derive(Debug)]
pub(super) struct Pool {
    pieces: Vec<Piece>,
    words: Vec<String>,
    /// Mean plain size of a piece, in bytes.
    pub mean_bytes: u64,
}

impl Pool {
    /// The pool of a seed and profile.
    pub fn new(rng_seed: u64, profile: Profile) -> Pool {
        let mut draw = Draw::new(rng_seed, Purpose::Pool, 0, 0);
        let words = vocabulary(&mut draw);
        let (count, bytes_min, bytes_spread) = match profile {
            Profile::Small => (64, 150, 500),
            Profile::Web => (48, 2_500, 11_000),
        };
        let pieces: Vec<Piece> = (0..count)
            .map(|_| {
                let bytes = (bytes_min + draw.below(bytes_spread)) as usize;
                let mut plain = Vec::with_capacity(bytes + 512);
                while plain.len() < bytes {
                    let block_start = plain.len();
                    match (profile, draw.below(10)) {
                        (Profile::Small, _) | (_, 0) => paragraph(&words, &mut draw, &mut plain),
                        (_, 1..=4) => cards(&words, &mut draw, &mut plain),
                        (_, 5 | 6) => style(&words, &mut draw, &mut plain),
                        _ => data(&words, &mut draw, &mut plain),
                    }
                    if profile == Profile::Web && !draw.one_in(4) {
                        // Real pages have much of their content twice: for wide screens and for narrow ones.
                        plain.extend_from_within(block_start..);
                    }
                }
                Piece::new(plain)
            })
            .collect();
        let total: u64 = pieces.iter().map(|piece| piece.plain.len() as u64).sum();
        Pool { mean_bytes: total / count.max(1), pieces, words }
    }

    /// Appends a unique paragraph of about `bytes` bytes: all words are equally frequent, and each draw gives
    /// several.
    pub fn own_text(&self, bytes: u64, draw: &mut Draw, out: &mut Vec<u8>) {
        let end = out.len() + bytes as usize;
        out.extend_from_slice(b"<p>");
        while out.len() < end {
            let mut bits = draw.bits();
            for _ in 0..WORDS_A_DRAW {
                let word = ((bits & 0xffff) * WORDS) >> 16;
                out.extend_from_slice(self.words.get(word as usize).map(String::as_bytes).unwrap_or_default());
                out.push(b' ');
                bits >>= 16;
            }
        }
        out.extend_from_slice(b"</p>\n");
    }

    /// One of the pieces.
    pub fn piece(&self, draw: &mut Draw) -> Option<&Piece> {
        self.pieces.get(draw.below(self.pieces.len() as u64) as usize)
    }
}

/// Size of the vocabulary.
const WORDS: u64 = 2_000;
/// Words of unique text per draw of 64 bits.
const WORDS_A_DRAW: usize = 4;

fn vocabulary(draw: &mut Draw) -> Vec<String> {
    const ONSETS: &[&str] = &["b", "c", "d", "f", "g", "l", "m", "n", "p", "r", "s", "t", "v", "st", "tr", "ch", "pl"];
    const NUCLEI: &[&str] = &["a", "e", "i", "o", "u", "ea", "ou", "ai"];
    const CODAS: &[&str] = &["", "", "n", "r", "s", "t", "l", "nd", "st"];
    (0..WORDS)
        .map(|rank| {
            // Frequent words are short, as in any language.
            let syllables = 1 + draw.below(if rank < 60 { 1 } else { 3 });
            (0..syllables).flat_map(|_| [draw.pick(ONSETS), draw.pick(NUCLEI), draw.pick(CODAS)]).collect()
        })
        .collect()
}

fn word(words: &[String], draw: &mut Draw, out: &mut Vec<u8>) {
    let word = words.get(draw.rank(WORDS) as usize).map(String::as_bytes).unwrap_or_default();
    out.extend_from_slice(word);
}

fn phrase(words: &[String], count: u64, draw: &mut Draw, out: &mut Vec<u8>) {
    for index in 0..count {
        if index > 0 {
            out.push(b' ');
        }
        word(words, draw, out);
    }
}

fn paragraph(words: &[String], draw: &mut Draw, out: &mut Vec<u8>) {
    out.extend_from_slice(b"<p>");
    for _ in 0..1 + draw.below(4) {
        let start = out.len();
        phrase(words, 4 + draw.below(12), draw, out);
        if let Some(first) = out.get_mut(start) {
            first.make_ascii_uppercase();
        }
        out.extend_from_slice(if draw.one_in(8) { b" &mdash; caf\xc3\xa9. " } else { b". " });
    }
    out.extend_from_slice(b"</p>\n");
}

fn cards(words: &[String], draw: &mut Draw, out: &mut Vec<u8>) {
    for _ in 0..3 + draw.below(8) {
        out.extend_from_slice(b"<div class=\"col-12 col-md-6 col-lg-4 card card--wide\"><div class=\"card__body\">");
        out.extend_from_slice(b"<span class=\"card__label label label--small\">");
        phrase(words, 1, draw, out);
        out.extend_from_slice(b"</span><h3 class=\"card__title title title--medium\">");
        phrase(words, 2 + draw.below(3), draw, out);
        out.extend_from_slice(b"</h3><p class=\"card__text text text--muted\">");
        phrase(words, 3 + draw.below(8), draw, out);
        out.extend_from_slice(b"</p></div></div>\n");
    }
}

fn style(words: &[String], draw: &mut Draw, out: &mut Vec<u8>) {
    out.extend_from_slice(b"<style>");
    for _ in 0..4 + draw.below(10) {
        out.extend_from_slice(b".card--");
        word(words, draw, out);
        out.extend_from_slice(b"{display:flex;flex-direction:column;align-items:center;padding:0 ");
        push_number(draw.below(40), out);
        out.extend_from_slice(b"px;margin:0 auto;background-color:#f5f5f5}\n");
    }
    out.extend_from_slice(b"</style>\n");
}

fn data(words: &[String], draw: &mut Draw, out: &mut Vec<u8>) {
    out.extend_from_slice(b"<script type=\"application/json\">[");
    for index in 0..3 + draw.below(8) {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"id\":");
        push_number(draw.below(1_000_000), out);
        out.extend_from_slice(b",\"type\":\"product\",\"available\":true,\"currency\":\"EUR\",\"title\":\"");
        phrase(words, 2, draw, out);
        out.extend_from_slice(b"\",\"tags\":[\"");
        word(words, draw, out);
        out.extend_from_slice(b"\",\"");
        word(words, draw, out);
        out.extend_from_slice(b"\"]}");
    }
    out.extend_from_slice(b"]</script>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_hold_no_links() {
        for profile in [Profile::Small, Profile::Web] {
            let pool = Pool::new(1, profile);
            for piece in &pool.pieces {
                let text = std::str::from_utf8(&piece.plain).unwrap();
                for forbidden in ["href", "src", "url(", "http", "trap", "<a", "<!"] {
                    assert!(!text.contains(forbidden), "{forbidden} in {text}");
                }
                assert_eq!(text.matches("<div").count(), text.matches("</div>").count());
                assert!(text.starts_with('<') && text.ends_with(">\n"));
            }
        }
    }
}
