//! The target of a redirect.
//!
//! Decides: which statuses redirect by their Location field (RFC 9110 section 15.4): 300 only offers a choice, 304
//! has none.
//! Leaves to others: adding it to the links of its page (`page`), and how many redirects in a row are followed
//! (`scope`).

use ringcrawl_url::{Url, text_of_bytes};

/// The target in the Location field of a response to `url`, if its status is a redirect.
pub fn redirect_target(url: &Url, status: u16, location: Option<&[u8]>) -> Option<Url> {
    if !matches!(status, 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    url.join(text_of_bytes(location?).trim()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_status_and_location() {
        let url = Url::parse("http://a.example/b/c?d").expect("a URL");
        let target = |status, location: &[u8]| redirect_target(&url, status, Some(location)).map(|to| to.to_string());
        assert_eq!(target(301, b" ../e ").as_deref(), Some("http://a.example/e"));
        assert_eq!(target(308, b"//b.example").as_deref(), Some("http://b.example/"));
        // Bytes that are not UTF-8 are sent unchanged, and so are those that are.
        for (location, to) in [
            (&b"/caf\xe9?\xe4=\xfc"[..], "http://a.example/caf%E9?%E4=%FC"),
            (b"caf\xe9/\xc3\xa9", "http://a.example/b/caf%E9/%C3%A9"),
            ("/café".as_bytes(), "http://a.example/caf%C3%A9"),
            ("//bücher.example/".as_bytes(), "http://xn--bcher-kva.example/"),
            (b"/\x83\x5c.html", "http://a.example/%83/.html"),
        ] {
            assert_eq!(target(302, location).as_deref(), Some(to));
        }
        assert_eq!(target(302, b"//b\xfccher.example/"), None, "a host has no bytes");
        for (status, location) in
            [(300, b"/".as_slice()), (304, b"/"), (200, b"/"), (302, b"ftp://a/"), (302, b"http://[")]
        {
            assert_eq!(target(status, location), None, "{status}");
        }
        assert_eq!(redirect_target(&url, 301, None), None);
    }
}
