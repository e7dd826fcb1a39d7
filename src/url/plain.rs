//! Plain references: nearly every link on the web, resolved in one pass over the bytes.
//!
//! Decides: a reference is plain if its meaning follows directly from its bytes: its host, if any, consists of
//! letters, digits, `-`, `_` and dots, and is not a number or Punycode; there is no backslash, tab or line break.
//! Then the result is a prefix of the base and the rest as written, with dot segments removed and characters escaped
//! as needed. All other references are left to the `url` crate.
//! Why: a page has a hundred links, and for these the parser costs ten times the rest of the work.
//!
//! Invariants: results equal those of `Absolute`, to the byte, including errors; tests compare the two on random
//! references. Nothing is written before everything is known. Linear in reference and base.
//! Limits: results that may be longer than 65,535 bytes are left to `Absolute`.

use encoding_rs::{Encoding, UTF_8};

use super::bytes::{self, CODED, DOTS, ESCAPED, FOREIGN, HOST, HOST_END, UPPER};
use super::{HTTP_PREFIX, HTTPS_PREFIX, REFERENCE_BYTES_MAX, Reach, Scheme, Url, UrlError};

/// A base URL, and where its parts end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Ground {
    url: Url,
    /// Behind the last slash of the path.
    folder_end: usize,
    path_end: usize,
}

impl Ground {
    /// For references against `url`.
    pub fn new(url: Url) -> Ground {
        let path_start = usize::from(url.path_start);
        let path_and_query = url.path_and_query().as_bytes();
        let path = path_and_query.split(|byte| *byte == b'?').next().unwrap_or_default();
        let folder_bytes = memchr::memrchr(b'/', path).map_or(0, |at| at + 1);
        Ground { folder_end: path_start + folder_bytes, path_end: path_start + path.len(), url }
    }

    /// The base.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Length of the base.
    pub fn text_bytes(&self) -> usize {
        self.url.text.len()
    }

    /// Resolves `reference` into `to`; `None`, and nothing written, when it is not plain.
    #[inline]
    pub fn resolve(
        &self,
        reference: &str,
        encoding: &'static Encoding,
        to: &mut Url,
    ) -> Option<Result<Reach, UrlError>> {
        if reference.len() > REFERENCE_BYTES_MAX {
            return None;
        }
        let reference = trim(reference);
        let bytes = reference.as_bytes();
        let origin_end = usize::from(self.url.path_start);
        // The prefix of the base that is kept, and where path or query begin in the reference.
        let (kept, start) = match bytes {
            [] | [b'#', ..] => (self.url.text.len(), 0),
            [b'?', ..] => (self.path_end, 0),
            [b'/', b'/', ..] => {
                return write_elsewhere(self.url.scheme(), RELATIVE_HOST_START, reference, encoding, to).map(Ok);
            }
            [b'/', ..] => (origin_end, 0),
            bytes => match written_out(bytes) {
                // Most absolute URLs have the base's own origin.
                Some(_) if bytes.get(origin_end) == Some(&b'/') && reference.starts_with(self.url.origin()) => {
                    (origin_end, origin_end)
                }
                Some((scheme, host_start)) => {
                    return write_elsewhere(scheme, host_start, reference, encoding, to).map(Ok);
                }
                None => match scheme_bytes(bytes) {
                    Some(scheme_bytes) => return is_opaque(reference, scheme_bytes).then_some(Err(UrlError::Scheme)),
                    None => (self.folder_end, 0),
                },
            },
        };
        let begins_segment = kept == self.folder_end;
        match bytes::plain_end(bytes, start, begins_segment) {
            Some(end) if kept + bytes.len() <= usize::from(u16::MAX) => {
                let rest = reference.get(..end)?;
                to.text.clear();
                // If the reference contains the origin, too, that is copied with the rest.
                if start == 0 {
                    to.text.push_str(self.url.text.get(..kept)?);
                }
                to.text.push_str(rest);
                (to.host_start, to.host_end) = (self.url.host_start, self.url.host_end);
                (to.path_start, to.port) = (self.url.path_start, self.url.port);
                Some(Ok(Reach::SameHost))
            }
            _ => self.write_below(kept, reference.get(start..)?, encoding, to).map(|()| Ok(Reach::SameHost)),
        }
    }

    /// The base up to `kept`, then `rest`: path, query and fragment, as far as present.
    fn write_below(&self, kept: usize, rest: &str, encoding: &'static Encoding, to: &mut Url) -> Option<()> {
        let kept = self.url.text.get(..kept)?;
        let tail = Tail::of(rest, kept.ends_with('/'), kept.len(), encoding)?;
        let path_start = usize::from(self.url.path_start);
        // The `url` crate treats a segment such as `C:` before `..` specially.
        if tail.has_dots && has_drive_letter(kept.get(path_start..)?) {
            return None;
        }
        to.text.clear();
        to.text.push_str(kept);
        tail.write(path_start, &mut to.text);
        (to.host_start, to.host_end) = (self.url.host_start, self.url.host_end);
        (to.path_start, to.port) = (self.url.path_start, self.url.port);
        Some(())
    }
}

/// Resolves a reference that begins with `http://` or `https://`, whatever the base; `None`, and nothing written, for
/// any other and if it is not plain.
pub(super) fn resolve_alone(reference: &str, encoding: &'static Encoding, to: &mut Url) -> Option<Reach> {
    let reference = trim(reference);
    let (scheme, host_start) = written_out(reference.as_bytes())?;
    write_elsewhere(scheme, host_start, reference, encoding, to)
}

/// The scheme of an absolute URL, and where its host begins.
#[inline(always)]
fn written_out(bytes: &[u8]) -> Option<(Scheme, usize)> {
    // As a number: eight bytes are available, since at least one host byte must follow `http://`.
    const HTTPS: u64 = u64::from_be_bytes(*b"https://");
    const HTTP: u64 = u64::from_be_bytes(*b"http://\0");
    match u64::from_be_bytes(*bytes.first_chunk()?) {
        HTTPS => Some((Scheme::Https, HTTPS_PREFIX.len())),
        word if word & !0xff == HTTP => Some((Scheme::Http, HTTP_PREFIX.len())),
        _ => None,
    }
}

/// `text` is what follows `//`; `None` unless host and port are plain, too.
fn write_elsewhere(
    scheme: Scheme,
    host_start: usize,
    reference: &str,
    encoding: &'static Encoding,
    to: &mut Url,
) -> Option<Reach> {
    if reference.len() > usize::from(u16::MAX) - ROOM_BYTES {
        return None;
    }
    let text = reference.get(host_start..)?;
    if let Some((host_bytes, bytes)) = bytes::plain_ends(text.as_bytes()) {
        let written = reference.get(..host_start + bytes)?;
        to.text.clear();
        if host_start == RELATIVE_HOST_START {
            to.text.push_str(if scheme == Scheme::Https { "https:" } else { "http:" });
        }
        let host_start = to.text.len() + host_start;
        to.text.push_str(written);
        if bytes == host_bytes {
            to.text.push('/');
        }
        to.host_start = host_start as u16;
        to.host_end = (host_start + host_bytes) as u16;
        to.path_start = to.host_end;
        to.port = scheme.default_port();
        return Some(Reach::AnyHost);
    }
    let (host, classes) = host(text)?;
    let behind = text.get(host.len()..)?;
    let (port, rest) = match behind.strip_prefix(':') {
        None => ("", behind),
        Some(behind) => behind.split_at_checked(behind.bytes().take_while(u8::is_ascii_digit).count())?,
    };
    let number = match port {
        // A colon with nothing behind it is rare.
        "" if rest.len() != behind.len() => return None,
        "" => scheme.default_port(),
        _ => port.parse().ok().filter(|_| !port.starts_with('0'))?,
    };
    if !rest.is_empty() && !rest.starts_with(['/', '?', '#']) {
        return None;
    }
    let tail = Tail::of(rest, false, host.len() + ROOM_BYTES, encoding)?;

    to.text.clear();
    to.text.push_str(if scheme == Scheme::Https { HTTPS_PREFIX } else { HTTP_PREFIX });
    // None of these overflows: `Tail::of` checked the length.
    to.host_start = to.text.len() as u16;
    to.text.push_str(host);
    if classes & UPPER != 0 {
        to.text.make_ascii_lowercase();
    }
    to.host_end = to.text.len() as u16;
    if number != scheme.default_port() {
        to.text.push(':');
        to.text.push_str(port);
    }
    to.port = number;
    to.path_start = to.text.len() as u16;
    if !rest.starts_with('/') {
        to.text.push('/');
    }
    tail.write(usize::from(to.path_start), &mut to.text);
    Some(Reach::AnyHost)
}

/// The host at the start of `text`, and the classes of its bytes; `None` unless it is plain.
#[inline]
fn host(text: &str) -> Option<(&str, u8)> {
    let bytes = text.as_bytes();
    let (mut classes, mut label_start, mut before, mut has_dashes) = (0, 0, b'.', false);
    let mut end = bytes.len();
    for (at, byte) in bytes.iter().enumerate() {
        let class = HOST[usize::from(*byte)];
        if class & (HOST_END | FOREIGN) != 0 {
            end = at;
            classes |= class;
            break;
        }
        classes |= class;
        if *byte == b'.' {
            if before == b'.' {
                return None;
            }
            label_start = at + 1;
        }
        has_dashes |= *byte == b'-' && before == b'-';
        before = *byte;
    }
    let host = text.get(..end)?;
    let has_punycode = has_dashes
        && host.split('.').any(|label| label.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("xn--")));
    // An empty label at the end, or no host at all; a name that may be a number.
    let is_plain = before != b'.' && !bytes.get(label_start)?.is_ascii_digit() && !has_punycode;
    (is_plain && classes & FOREIGN == 0).then_some((host, classes))
}

/// Path and query of a reference, scanned.
struct Tail<'a> {
    path: &'a str,
    query: &'a str,
    both: &'a str,
    classes: u8,
    has_dots: bool,
}

impl<'a> Tail<'a> {
    /// For the text after `front_bytes` of a URL; `None` unless it is plain and fits.
    #[inline]
    fn of(rest: &'a str, begins_segment: bool, front_bytes: usize, encoding: &'static Encoding) -> Option<Tail<'a>> {
        // Each escaped byte takes three.
        if front_bytes + 3 * rest.len() > usize::from(u16::MAX) {
            return None;
        }
        let (path_end, classes) = bytes::scan_path(rest.as_bytes(), begins_segment);
        let (path, behind) = rest.split_at_checked(path_end)?;
        let (query_bytes, query_classes) = match behind.as_bytes().first() {
            Some(b'?') => bytes::scan_query(behind.as_bytes()),
            _ => (0, 0),
        };
        let has_dots = classes & DOTS != 0;
        let is_plain = (classes | query_classes) & FOREIGN == 0
            && (query_classes & CODED == 0 || encoding.output_encoding() == UTF_8)
            && !(has_dots && has_drive_letter(path));
        let query = behind.get(..query_bytes)?;
        let both = rest.get(..path_end + query_bytes)?;
        is_plain.then_some(Tail { path, query, both, classes: classes | query_classes, has_dots })
    }

    #[inline]
    fn write(&self, path_start: usize, to: &mut String) {
        if !self.has_dots && self.classes & ESCAPED == 0 {
            to.push_str(self.both);
        } else {
            self.write_changed(path_start, to);
        }
    }

    fn write_changed(&self, path_start: usize, to: &mut String) {
        if self.has_dots {
            let below = self.path.strip_prefix('/');
            if below.is_some() {
                to.push('/');
            }
            push_segments(below.unwrap_or(self.path), path_start, to);
        } else {
            bytes::push_escaped_path(self.path, to);
        }
        bytes::push_escaped_query(self.query, to);
    }
}

/// Appends the segments of `path` to `text`, which ends with a slash of its path.
fn push_segments(path: &str, path_start: usize, text: &mut String) {
    let mut rest = Some(path);
    while let Some(path) = rest {
        let segment;
        (segment, rest) = match path.split_once('/') {
            Some((segment, below)) => (segment, Some(below)),
            None => (path, None),
        };
        match dots(segment.as_bytes()) {
            1 => {}
            2 => {
                let folders = text.get(path_start..text.len() - 1).unwrap_or_default();
                if let Some(slash) = memchr::memrchr(b'/', folders.as_bytes()) {
                    text.truncate(path_start + slash + 1);
                }
            }
            _ => {
                bytes::push_escaped_path(segment, text);
                if rest.is_some() {
                    text.push('/');
                }
            }
        }
    }
}

/// 1 for `.`, 2 for `..`, escaped or not; another number for everything else.
fn dots(mut segment: &[u8]) -> u32 {
    let mut dots = 0;
    while dots < 3 {
        segment = match segment {
            [] => return dots,
            [b'.', rest @ ..] | [b'%', b'2', b'e' | b'E', rest @ ..] => rest,
            _ => return 0,
        };
        dots += 1;
    }
    dots
}

fn has_drive_letter(path: &str) -> bool {
    memchr::memchr2(b':', b'|', path.as_bytes()).is_some()
}

/// Without spaces and control characters at both ends.
#[inline]
fn trim(reference: &str) -> &str {
    let is_bare = |byte: Option<&u8>| byte.is_none_or(|byte| *byte > b' ');
    let bytes = reference.as_bytes();
    if is_bare(bytes.first()) && is_bare(bytes.last()) {
        return reference;
    }
    reference.trim_matches(|char| char <= ' ')
}

/// Length of the scheme that `bytes` begin with, if they do.
fn scheme_bytes(bytes: &[u8]) -> Option<usize> {
    let is_scheme_byte = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    bytes.first().filter(|first| first.is_ascii_alphabetic())?;
    // Mostly, the first byte that cannot be in a scheme shows that there is none.
    let plain = bytes::plain_host_bytes(bytes);
    let rest = bytes.get(plain..)?;
    let end = plain + rest.iter().position(|byte| !is_scheme_byte(byte))?;
    (bytes.get(end) == Some(&b':')).then_some(end)
}

/// Whether a reference with a scheme is a URL whatever follows, and the scheme is not crawled.
fn is_opaque(reference: &str, scheme_bytes: usize) -> bool {
    let Some((scheme, rest)) = reference.split_at_checked(scheme_bytes) else { return false };
    let is_special = SPECIAL_SCHEMES.iter().any(|special| scheme.eq_ignore_ascii_case(special));
    !is_special && !matches!(rest.as_bytes().get(1), Some(b'/' | b'\t' | b'\n' | b'\r'))
}

/// Scheme, slashes, port and the path's first slash, with room.
const ROOM_BYTES: usize = 32;

/// Where the host begins in `//host`.
const RELATIVE_HOST_START: usize = 2;

const SPECIAL_SCHEMES: [&str; 6] = ["http", "https", "ws", "wss", "ftp", "file"];
