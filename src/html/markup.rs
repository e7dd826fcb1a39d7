//! Finds where markup ends, for code that reads text instead of links.
//!
//! Decides: a tag ends at its first `>`, quoted or not. This costs a misread word, but the result is always the same
//! for a page. A script or a style ends before its end tag.
//! Invariants: pure; linear in bytes; no byte can cause a panic.
//! Limits: `tokenizer`, which finds links, handles quotes as in the HTML standard.

use memchr::{memchr, memchr_iter};

/// For `rest`, which begins with `<`: the last byte of what begins there, excluding text up to the next tag. `None`:
/// it has no end.
#[inline(always)]
pub fn tag_end(rest: &[u8]) -> Option<usize> {
    let name = rest.get(1..).unwrap_or_default();
    match *name {
        [b'!', b'-', b'-', ..] => comment_end(rest),
        [b's' | b'S', ..] => raw_end(rest, name),
        [b'a'..=b'z' | b'A'..=b'Z' | b'/' | b'!' | b'?', ..] => memchr(b'>', rest),
        // Only a character.
        _ => Some(0),
    }
}

/// The end of the comment at the start of `rest`; `<!-->` is also a comment.
#[cold]
fn comment_end(rest: &[u8]) -> Option<usize> {
    const OPEN: usize = b"<!".len();
    memchr_iter(b'>', rest).find(|end| rest.get(OPEN..*end).unwrap_or_default().ends_with(b"--"))
}

/// The end of the tag at the start of `rest`; for a script or a style, the end of its content, before its end tag.
#[inline(never)]
fn raw_end(rest: &[u8], name: &[u8]) -> Option<usize> {
    let tag_end = memchr(b'>', rest)?;
    let is = |bytes: &[u8], name: &[u8]| {
        let behind = bytes.get(name.len()).is_none_or(|byte| !byte.is_ascii_alphanumeric() && *byte != b'-');
        behind && bytes.get(..name.len()).is_some_and(|bytes| bytes.eq_ignore_ascii_case(name))
    };
    let Some(raw) = [&b"script"[..], b"style"].into_iter().find(|raw| is(name, raw)) else { return Some(tag_end) };
    let content = rest.get(tag_end + 1..)?;
    let is_end =
        |open: &usize| content.get(open + 1..).and_then(|tag| tag.strip_prefix(b"/")).is_some_and(|tag| is(tag, raw));
    // The byte before the `<`: at least the `>` of the start tag.
    memchr_iter(b'<', content).find(is_end).map(|open| tag_end + open)
}
