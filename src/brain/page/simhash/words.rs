//! The words of a page, as hashes.
//!
//! Decides: a word is a run of ASCII letters, ignoring case, and of bytes beyond ASCII. A word with a digit is
//! skipped: dates, counters, prices and tokens are new at every fetch. Each character of three bytes in UTF-8 begins
//! a word, because the scripts that use them often have no spaces.
//! Tags, comments, scripts and styles are skipped. A tag ends at its first `>`, in quotes or not, which costs a
//! misread word and makes no page differ from itself. A tag separates words and has no other effect: the words around
//! it are adjacent.
//! After a leap it is unknown what the bytes are part of. The next `>` shows where text may begin, and a byte of code
//! before the next tag shows that it does not: there is no sample.
//! Invariants: the place only grows; after a leap at most [`SAMPLE_BYTES`] bytes are read; no byte can cause a panic.
//! Limits: a named character reference is not a word, and does not separate words; nor does the character itself in
//! plain text, except for Latin letters. After a leap, text in a comment is read, and so may be strings in a script.

use memchr::{memchr, memchr2};

use ringcrawl_html as html;

/// The words from a position on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Where reading ends until the next leap.
    end: usize,
    is_html: bool,
    /// Whether the current position may be in a script or a style: after a leap, with no tag since.
    is_doubtful: bool,
}

impl<'a> Words<'a> {
    /// The words of an HTML page.
    pub fn of_html(bytes: &'a [u8]) -> Words<'a> {
        Words { bytes, at: 0, end: bytes.len(), is_html: true, is_doubtful: false }
    }

    /// The words of plain text.
    pub fn of_text(bytes: &'a [u8]) -> Words<'a> {
        Words { is_html: false, ..Words::of_html(bytes) }
    }

    /// Skips `jump` bytes, then moves on to text behind the next [`ANCHOR`], or to the next text if there is no anchor
    /// within another `jump` bytes. Returns whether there is more to read.
    #[inline(always)]
    pub fn leap(&mut self, jump: usize) -> bool {
        self.at = self.at.saturating_add(jump);
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let near = rest.get(..jump).unwrap_or(rest);
        let anchor = memchr(ANCHOR, near).unwrap_or(near.len());
        let rest = rest.get(anchor..).unwrap_or_default();
        let edge = if self.is_html { memchr(b'>', rest) } else { memchr2(b' ', b'\n', rest) };
        let Some(behind) = edge else { return false };
        self.at += anchor + behind + 1;
        self.end = self.bytes.len().min(self.at + SAMPLE_BYTES);
        self.is_doubtful = self.is_html;
        true
    }

    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..self.end).unwrap_or_default()
    }

    /// At `<`: skips what begins here.
    #[inline(always)]
    fn pass_tag(&mut self) {
        let rest = self.rest();
        self.at += html::tag_end(rest).map_or(rest.len(), |end| end + 1);
    }
}

impl Iterator for Words<'_> {
    type Item = u64;

    #[inline(always)]
    fn next(&mut self) -> Option<u64> {
        loop {
            let rest = self.rest();
            let Some(start) = rest.iter().position(|byte| class(*byte) != BETWEEN) else {
                self.at = self.end;
                return None;
            };
            self.at += start;
            let (first, behind) = rest.get(start..)?.split_first()?;
            let first = class(*first);
            if first == CODE && self.is_doubtful {
                self.end = self.at;
                return None;
            }
            if first == OPEN && self.is_html {
                self.is_doubtful = false;
                self.pass_tag();
                continue;
            }
            if first <= OPEN {
                self.at += 1;
                continue;
            }
            let (mut hash, mut has_digit, mut length) = (u64::from(first), is_digit(first), 1);
            for byte in behind {
                let byte = class(*byte);
                if byte <= OPEN || begins_word(byte) {
                    break;
                }
                // Letters alone never meet in this; what mixes them comes at the end.
                hash = hash.rotate_left(5) ^ u64::from(byte);
                has_digit |= is_digit(byte);
                length += 1;
            }
            let is_reference = self.is_html
                && rest.get(start + length) == Some(&b';')
                && start.checked_sub(1).and_then(|before| rest.get(before)) == Some(&b'&');
            self.at += length;
            if !has_digit && !is_reference {
                return Some(hash.wrapping_mul(MIX));
            }
        }
    }
}

/// A byte of a word itself, letters in lower case; otherwise its class.
#[inline(always)]
fn class(byte: u8) -> u8 {
    CLASSES[usize::from(byte)]
}

fn is_digit(class: u8) -> bool {
    class <= b'9'
}

/// The first of three bytes that are a character in UTF-8.
fn begins_word(byte: u8) -> bool {
    byte & 0xf0 == 0xe0
}

const BETWEEN: u8 = 0;
/// Bytes that scripts and styles have in almost every line, and text rarely.
const CODE: u8 = 1;
const OPEN: u8 = 2;

static CLASSES: [u8; 256] = {
    let mut classes = [BETWEEN; 256];
    let mut byte = 0;
    while byte < classes.len() {
        classes[byte] = match byte as u8 {
            b'<' => OPEN,
            b'{' | b'}' | b'=' => CODE,
            word @ (b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | 0x80..) => word.to_ascii_lowercase(),
            _ => BETWEEN,
        };
        byte += 1;
    }
    classes
};

/// The fraction of the golden ratio.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
/// A byte that pages in every language have, at least in their markup, once in some 300 bytes.
const ANCHOR: u8 = b'k';
/// The most bytes of a sample, including the tags in it.
const SAMPLE_BYTES: usize = 512;
