//! Where markup ends, for those who read text and not links.
//!
//! Decides: a tag ends at its first `>`, in quotes or not, which costs a misread word and makes no page differ from itself. A script
//! or a style ends before its end tag.
//! Invariants: pure; linear in bytes; no byte can cause a panic.
//! Limits: what the HTML standard says of quotes is for `tokenizer`, which finds links.

use memchr::{memchr, memchr_iter};

/// Of `rest`, which begins with `<`: the last byte of what begins there, text up to the next tag not included. `None`: it has no end.
#[inline(always)]
pub fn tag_end(rest: &[u8]) -> Option<usize> {
    let name = rest.get(1..).unwrap_or_default();
    match *name {
        [b'!', b'-', b'-', ..] => comment_end(rest),
        [b's' | b'S', ..] => raw_end(rest, name),
        [b'a'..=b'z' | b'A'..=b'Z' | b'/' | b'!' | b'?', ..] => memchr(b'>', rest),
        // Only a sign.
        _ => Some(0),
    }
}

/// Where the comment ends that `rest` begins with; `<!-->` is one, too.
#[cold]
fn comment_end(rest: &[u8]) -> Option<usize> {
    const OPEN: usize = b"<!".len();
    memchr_iter(b'>', rest).find(|end| rest.get(OPEN..*end).unwrap_or_default().ends_with(b"--"))
}

/// Where the tag ends that `rest` begins with; that of a script or a style, with all that is in it, before its end tag.
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
