//! Where a response leads.
//!
//! Decides: which statuses redirect by their Location field (RFC 9110 section 15.4): 300 only offers a choice, 304 has none.
//! Leaves to others: whether it is followed (`shard`).

use crate::url::Url;

/// What the Location field of a response to `url` names, where its status makes that a redirect.
pub fn redirect_target(url: &Url, status: u16, location: Option<&[u8]>) -> Option<Url> {
    if !matches!(status, 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    url.join(String::from_utf8_lossy(location?).trim()).ok()
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
        for (status, location) in
            [(300, b"/".as_slice()), (304, b"/"), (200, b"/"), (302, b"ftp://a/"), (302, b"http://[")]
        {
            assert_eq!(target(status, location), None, "{status}");
        }
        assert_eq!(redirect_target(&url, 301, None), None);
    }
}
