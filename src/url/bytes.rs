//! The bytes of hosts, paths and queries: which of them end a part, are escaped, or need the parser.
//!
//! Decides: a table for each part classifies every byte. Since nearly all bytes of a reference stand for themselves,
//! a pass over blocks (`block`) first finds the few that are worth a table lookup.
//!
//! Invariants: a scan gives the same result as the tables byte by byte (a test compares them). Linear; no
//! out-of-bounds reads.

use std::borrow::Cow;

use super::block::{
    BLOCK_BYTES, Bits, Bits64, HostBits64, WIDE_BYTES, bits, bits64, both_bits64, host_bits64, short_bits,
};

/// A dot, or what may be an escaped one, begins a segment.
pub(super) const DOTS: u8 = 1;
/// Ends path or query.
const END: u8 = 4;
/// Is percent-encoded.
pub(super) const ESCAPED: u8 = 8;
/// Sends the reference to the parser.
pub(super) const FOREIGN: u8 = 16;
/// In a query, is escaped byte by byte in the page's encoding, not in UTF-8.
pub(super) const CODED: u8 = 32;
/// An upper-case letter of a host.
pub(super) const UPPER: u8 = 64;
/// Ends a host.
pub(super) const HOST_END: u8 = 128;

/// Of a path: WHATWG URL, section 1.3, "path percent-encode set".
pub(super) const PATH: [u8; 256] = table(b"?#", b" \"<>`{}^", b"\t\n\r\\");
/// Of a query: the same section, "special-query percent-encode set".
pub(super) const QUERY: [u8; 256] = table(b"#", b" \"<>'", b"\t\n\r");

const fn table(ends: &[u8], escaped: &[u8], foreign: &[u8]) -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        if byte < 0x20 || byte >= 0x7f {
            table[byte] = ESCAPED | CODED;
        }
        byte += 1;
    }
    table = with(table, escaped, ESCAPED);
    table = with(table, ends, END);
    with(table, foreign, FOREIGN)
}

const fn with(mut table: [u8; 256], bytes: &[u8], class: u8) -> [u8; 256] {
    let mut at = 0;
    while at < bytes.len() {
        table[bytes[at] as usize] = class;
        at += 1;
    }
    table
}

/// Of a host: a plain one consists of letters, digits, `-`, `_` and `.`.
pub(super) const HOST: [u8; 256] = {
    let table = with([FOREIGN; 256], b"abcdefghijklmnopqrstuvwxyz0123456789-_.", 0);
    with(with(table, b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", UPPER), b"/?#:", HOST_END)
};

/// Where the path and query of `bytes` end, from `start` on, if nothing in them is more than plain. `begins_segment`:
/// a slash precedes them.
#[inline]
pub(super) fn plain_end(bytes: &[u8], start: usize, begins_segment: bool) -> Option<usize> {
    plain_end_from(bytes, start, bits64(bytes.get(start..)?), WIDE_BYTES, u64::from(begins_segment))
}

/// As `plain_end`, from `at` on, after `count` bytes were checked.
#[inline(always)]
fn plain_end_from(
    bytes: &[u8],
    mut at: usize,
    mut looked: Bits64,
    mut count: usize,
    mut slash_before: u64,
) -> Option<usize> {
    let mut in_query = false;
    loop {
        let Bits64 { mut odd, slashes, dots } = looked;
        // Lowest first: the bits below the first odd byte are those of the path.
        let path = (odd & odd.wrapping_neg()).wrapping_sub(1);
        if !in_query && dots & (slashes << 1 | slash_before) & path != 0 {
            return None;
        }
        while odd != 0 {
            let stop = at + odd.trailing_zeros() as usize;
            match bytes.get(stop)? {
                b'#' => return Some(stop),
                b'?' => in_query = true,
                _ => return None,
            }
            odd &= odd - 1;
        }
        at += count;
        if at >= bytes.len() {
            return Some(bytes.len());
        }
        slash_before = slashes >> (count - 1) & 1;
        (looked, count) = (bits64(bytes.get(at..)?), WIDE_BYTES);
    }
}

/// How many of the first 64 bytes are lower-case letters, digits, `-` or `.`, up to the first other byte.
#[inline]
pub(super) fn plain_host_bytes(bytes: &[u8]) -> usize {
    host_bits64(bytes).foreign.trailing_zeros() as usize
}

/// The ends of the host at the start of `bytes`, and of the path and query behind it: if the host is short, in lower
/// case, certainly a domain, followed by a slash or nothing, and the rest is plain.
#[inline]
pub(super) fn plain_ends(bytes: &[u8]) -> Option<(usize, usize)> {
    let (HostBits64 { foreign, dots, dashes }, looked) = both_bits64(bytes);
    let end = foreign.trailing_zeros();
    if foreign == 0 || bytes.get(end as usize).is_some_and(|byte| *byte != b'/') {
        return None;
    }
    let below = (1 << end) - 1;
    let (dots, dashes) = (dots & below, dashes & below);
    let last_label = 64 - dots.leading_zeros();
    // Empty labels, also at both ends; possible Punycode.
    let has_empty_label = dots & (dots << 1 | 1) != 0 || last_label == end;
    if has_empty_label || dashes & dashes << 1 != 0 || bytes.get(last_label as usize)?.is_ascii_digit() {
        return None;
    }
    // The part of the bits behind the host.
    let behind = Bits64 { odd: looked.odd >> end, slashes: looked.slashes >> end, dots: looked.dots >> end };
    let host_bytes = end as usize;
    let all = plain_end_from(bytes, host_bytes, behind, WIDE_BYTES - host_bytes, 0)?;
    Some((host_bytes, all))
}

/// The end of the path at the start of `bytes`, and the classes of its bytes, with `DOTS`. `begins_segment`: a slash
/// precedes it.
#[inline]
pub(super) fn scan_path(bytes: &[u8], begins_segment: bool) -> (usize, u8) {
    scan(bytes, &PATH, u32::from(begins_segment))
}

/// The same for a query.
#[inline]
pub(super) fn scan_query(bytes: &[u8]) -> (usize, u8) {
    scan(bytes, &QUERY, 0)
}

#[inline(always)]
fn scan(bytes: &[u8], table: &[u8; 256], mut slash_before: u32) -> (usize, u8) {
    let (mut classes, mut start) = (0, 0);
    while start < bytes.len() {
        let Bits { mut odd, slashes, dots } = bits_from(bytes, start);
        let dotted = dots & (slashes << 1 | slash_before);
        while odd != 0 {
            let at = odd.trailing_zeros();
            let class = bytes.get(start + at as usize).map_or(END, |byte| table[usize::from(*byte)]);
            if class & END != 0 {
                let has_dots = dotted & ((1 << at) - 1) != 0;
                return (start + at as usize, classes | (u8::from(has_dots) * DOTS));
            }
            classes |= class;
            odd &= odd - 1;
        }
        classes |= u8::from(dotted != 0) * DOTS;
        slash_before = slashes >> (BLOCK_BYTES - 1);
        start += BLOCK_BYTES;
    }
    (bytes.len(), classes)
}

/// The bits of the block from `start` on; none for positions past the end.
#[inline(always)]
fn bits_from(bytes: &[u8], start: usize) -> Bits {
    let rest = bytes.get(start..).unwrap_or_default();
    if let Some(block) = rest.first_chunk() {
        return bits(block);
    }
    match bytes.last_chunk() {
        Some(block) => bits(block).from(BLOCK_BYTES - rest.len()),
        None => short_bits(rest),
    }
}

/// A reference in bytes of unknown encoding, as text that resolves to these bytes: valid UTF-8 is taken as such;
/// otherwise each byte outside ASCII is escaped as it is. Browsers send the bytes of a `Location` unchanged, whatever
/// they mean (Chromium's `HttpResponseHeaders::IsRedirect`); the parser decodes escapes in a host (WHATWG URL,
/// section 3.5).
pub fn text_of_bytes(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return text.into();
    }
    let mut text = String::with_capacity(bytes.len() + ESCAPE_BYTES * ESCAPES_MOSTLY);
    for byte in bytes {
        if byte.is_ascii() { text.push(char::from(*byte)) } else { push_escape(*byte, &mut text) }
    }
    text.into()
}

/// Length of `%E9`, and the number of escapes with room reserved from the start.
const ESCAPE_BYTES: usize = 3;
const ESCAPES_MOSTLY: usize = 8;

/// Escapes what a path must have escaped (WHATWG URL, section 1.3, "UTF-8 percent-encode").
pub(super) fn push_escaped_path(text: &str, to: &mut String) {
    push_escaped(text, &PATH, to);
}

/// The same for a query.
pub(super) fn push_escaped_query(text: &str, to: &mut String) {
    push_escaped(text, &QUERY, to);
}

fn push_escaped(text: &str, table: &[u8; 256], to: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| table[usize::from(byte)] & ESCAPED != 0) {
        // All bytes of a character are escaped or none, so both cuts are between two characters.
        let Some((before, from)) = rest.split_at_checked(at) else { return };
        to.push_str(before);
        let Some((one, after)) = from.split_at_checked(from.chars().next().map_or(1, char::len_utf8)) else { return };
        one.bytes().for_each(|byte| push_escape(byte, to));
        rest = after;
    }
    to.push_str(rest);
}

fn push_escape(byte: u8, to: &mut String) {
    const HEX: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];
    to.push('%');
    to.push(HEX[usize::from(byte >> 4)]);
    to.push(HEX[usize::from(byte & 15)]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::Rng;

    #[test]
    fn bytes_of_no_encoding_stay_what_they_are() {
        for (bytes, text) in [
            (&b"/caf\xe9?\xfc=%e9#\xff"[..], "/caf%E9?%FC=%e9#%FF"),
            ("/café".as_bytes(), "/café"),
            ("/café/\u{4e2d}".as_bytes().get(..9).unwrap(), "/caf%C3%A9/%E4%B8"),
            (b"//b\xfccher.test/", "//b%FCcher.test/"),
            (b"", ""),
        ] {
            assert_eq!(text_of_bytes(bytes), text, "{}", bytes.escape_ascii());
        }
        // The same URL as by UTF-8, if it is UTF-8.
        let escaped = text_of_bytes("/é?ü".as_bytes()).into_owned() + &text_of_bytes(b"&\xe9");
        let url = crate::Url::parse("http://a.test/").unwrap().join(&escaped).unwrap();
        assert_eq!(url.as_str(), "http://a.test/%C3%A9?%C3%BC&%E9");
    }

    #[test]
    fn scans_as_byte_by_byte() {
        let alphabet = b"abcxyz0/.%2e?#'&=\\ \xc3\xa9{}\t";
        let mut rng = Rng::new(1);
        for round in 0..100_000_usize {
            let text: Vec<u8> = (0..round % 70)
                // Mostly plain bytes, so that scans get past the first block.
                .map(|_| alphabet.get(rng.index(3 * alphabet.len())).copied().unwrap_or(b'a'))
                .collect();
            for (table, slash_before) in [(&PATH, 0), (&PATH, 1), (&QUERY, 0)] {
                let end = text.iter().position(|byte| table[usize::from(*byte)] & END != 0).unwrap_or(text.len());
                let mut classes = text[..end].iter().fold(0, |classes, byte| classes | table[usize::from(*byte)]);
                let before = [if slash_before == 1 { b'/' } else { b'a' }];
                let path = [&before, &text[..end]].concat();
                if path.windows(2).any(|pair| matches!(pair, b"/." | b"/%")) {
                    classes |= DOTS;
                }
                assert_eq!(scan(&text, table, slash_before), (end, classes), "{}", text.escape_ascii());
            }
        }
    }
}
