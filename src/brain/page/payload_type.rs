//! The type of a body, by its first bytes.
//!
//! Decides: the value of WARC-Identified-Payload-Type (WARC 1.1 section 5.16). HTML and XML are recognized by their
//! first tag, whatever the server says. A body without any byte that text never contains (WHATWG MIME Sniffing
//! section 7.1) is text, or HTML if the server says so. Anything else is recognized by its signature. Tools that need
//! the type would have to inspect each record that lacks the field.
//! Why a library: signatures are many, and change.
//! Limits: only the first [`HEAD_BYTES`] bytes count; XML is not subdivided any further.

use ringcrawl_html as html;

/// The media type of a body whose Content-Type is `said`; `None` for an empty one.
pub fn identify(content: &[u8], said: &str) -> Option<&'static str> {
    let head = content.get(..HEAD_BYTES).unwrap_or(content);
    if head.is_empty() {
        return None;
    }
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    Some(match text {
        _ if html::looks_like_html(head) => "text/html",
        [b'<', b'?', b'x' | b'X', b'm' | b'M', b'l' | b'L', ..] => "text/xml",
        _ if is_text(head) && !has_text_signature(head) => {
            if says_html(said) {
                "text/html"
            } else {
                "text/plain"
            }
        }
        _ => infer::get(head).map_or("application/octet-stream", |known| known.mime_type()),
    })
}

/// Whether a body packs files that are available elsewhere, by its signature. Documents, books and programs are zip
/// files too, so for zip the server's media type or the name in the URL must also match.
pub fn is_archive(content: &[u8], said: Option<&str>, path_and_query: &str) -> bool {
    let head = content.get(..HEAD_BYTES).unwrap_or(content);
    let is_zip = || {
        let essence = html::essence(said.unwrap_or_default().as_bytes()).to_ascii_lowercase();
        let path = path_and_query.split('?').next().unwrap_or_default().to_ascii_lowercase();
        matches!(&*essence, b"application/zip" | b"application/x-zip-compressed") || path.ends_with(".zip")
    };
    !is_text(head)
        && infer::get(head).is_some_and(|known| match known.mime_type() {
            "application/zip" => is_zip(),
            known => ARCHIVES.contains(&known),
        })
}

const ARCHIVES: &[&str] = &[
    "application/gzip",
    "application/vnd.bzip3",
    "application/vnd.rar",
    "application/x-7z-compressed",
    "application/x-bzip2",
    "application/x-compress",
    "application/x-cpio",
    "application/x-lz4",
    "application/x-lzip",
    "application/x-tar",
    "application/x-xz",
    "application/zstd",
];

/// HTML need not begin with a tag, and only few tags identify it.
fn says_html(said: &str) -> bool {
    let essence = html::essence(said.as_bytes());
    essence.eq_ignore_ascii_case(b"text/html") || essence.eq_ignore_ascii_case(b"application/xhtml+xml")
}

/// Signatures in text that hardly any other text has by chance. Two letters are not enough, and neither is a
/// signature further down: a manual of PDF is not a PDF.
fn has_text_signature(head: &[u8]) -> bool {
    [&b"%PDF-"[..], b"%!PS-Adobe-", b"{\\rtf", b"GIF87a", b"GIF89a", b"BEGIN:VCARD"]
        .iter()
        .any(|it| head.starts_with(it))
}

/// UTF-16 contains zeros, and begins with its mark.
fn is_text(head: &[u8]) -> bool {
    let is_utf16 = head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff");
    is_utf16 || !head.iter().any(|byte| matches!(byte, 0..=8 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f))
}

/// The number that WHATWG MIME Sniffing section 5.2 inspects.
const HEAD_BYTES: usize = 1445;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_are_known() {
        let mut tar = [0u8; 512];
        tar[257..262].copy_from_slice(b"ustar");
        let zip = b"PK\x03\x04\x14\0\x06\0\x08\0";
        for (body, said, path, expected) in [
            (&b"\x1f\x8b\x08\0"[..], None, "/?a=snapshot", true),
            (&tar, Some("text/html"), "/", true),
            (zip, Some("application/zip; x=y"), "/get?v=1", true),
            (zip, None, "/a.ZIP?v=1", true),
            (zip, Some("application/vnd.openxmlformats-officedocument.wordprocessingml.document"), "/a.docx", false),
            (zip, Some("application/octet-stream"), "/a.jar", false),
            (b"BZh is how a text may begin", None, "/a.zip", false),
            (b"%PDF-1.7\n", None, "/a.zip", false),
            (b"\x89PNG\r\n\x1a\n\0", None, "/", false),
            (b"<!doctype html><p>", None, "/a.zip", false),
            (b"", None, "/a.zip", false),
        ] {
            assert_eq!(is_archive(body, said, path), expected, "{path} {}", String::from_utf8_lossy(body));
        }
    }

    #[test]
    fn bodies_are_what_their_first_bytes_say() {
        for (body, expected) in [
            (&b""[..], None),
            (b"  <!doctype html><p>", Some("text/html")),
            (b"\xef\xbb\xbf<?xml version='1.0'?><rss>", Some("text/xml")),
            (b"{\"a\": 1}", Some("text/plain")),
            (b"BMW and MZ are two letters, BC too", Some("text/plain")),
            (b"MZ is how programs begin", Some("text/plain")),
            (b"// %PDF-1.7 is how a PDF begins", Some("text/plain")),
            (b"%PDF-1.7\n", Some("application/pdf")),
            (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", Some("image/png")),
            (b"\x1f\x8b\x08\0", Some("application/gzip")),
            (b"PK\x03\x04\x14\0", Some("application/zip")),
            (b"\xff\xfea\0b\0", Some("text/plain")),
            (b"\0\x01\x02\x03\x04\x05\x06\x07", Some("application/octet-stream")),
        ] {
            assert_eq!(identify(body, "image/gif"), expected, "{}", String::from_utf8_lossy(body));
        }
        for (body, expected) in [
            (&b"<html\nlang=de>"[..], "text/html"),
            (b"<meta charset=utf-8>", "text/html"),
            (b"BM is how it begins", "text/html"),
            (b"%PDF-1.7\n", "application/pdf"),
            (b"\x89PNG\r\n\x1a\n\0", "image/png"),
        ] {
            assert_eq!(identify(body, "Text/HTML; charset=x"), Some(expected), "{}", String::from_utf8_lossy(body));
        }
    }
}
