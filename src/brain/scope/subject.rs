//! What rules judge: a URL, its path from a seed, and at later stages its response.

use std::borrow::Cow;

use super::spelling;
use crate::hops::Hops;
use ringcrawl_url::Url;
use ringcrawl_url::names;

/// A URL as a rule sees it.
#[derive(Clone, Debug)]
pub struct Subject<'a> {
    /// The URL.
    pub url: &'a Url,
    /// Its site.
    pub site: &'a str,
    /// The path from a seed.
    pub hops: Hops,
    /// Content-Type of its response, as it came; `None` if there is no response yet, or if it has none.
    pub content_type: Option<&'a [u8]>,
    /// Path and query in one spelling.
    target: Cow<'a, str>,
}

impl<'a> Subject<'a> {
    /// A URL that was found `hops` from a seed.
    pub fn new(url: &'a Url, hops: Hops) -> Subject<'a> {
        Subject::of_site(url, url.site(), hops)
    }

    /// The same, where its site is known.
    pub fn of_site(url: &'a Url, site: &'a str, hops: Hops) -> Subject<'a> {
        Subject { url, site, hops, content_type: None, target: spelling::plain(url.path_and_query()) }
    }

    /// The same, now that its response has come.
    pub fn with_type(self, content_type: Option<&'a [u8]>) -> Subject<'a> {
        Subject { content_type, ..self }
    }

    /// The host, without a dot at the end.
    pub fn host(&self) -> &'a str {
        names::bare(self.url.host())
    }

    /// Path and query, in one spelling (`spelling`).
    pub fn target(&self) -> &str {
        &self.target
    }

    /// The same, if the URL has another spelling.
    pub fn respelled(&self) -> Option<&str> {
        match &self.target {
            Cow::Borrowed(_) => None,
            Cow::Owned(target) => Some(target),
        }
    }

    /// The path, from its first slash on, in one spelling.
    pub fn path(&self) -> &str {
        self.target.split_once('?').map_or(&*self.target, |(path, _)| path)
    }

    /// What follows the first `?`, in one spelling; empty if there is none.
    pub fn query(&self) -> &str {
        self.target.split_once('?').map_or("", |(_, query)| query)
    }

    /// The part after the last dot of the path's last segment, if there is one and it is not too long for an
    /// extension.
    pub fn extension(&self) -> Option<&str> {
        let path = self.path();
        let last = path.rsplit_once('/').map_or(path, |(_, last)| last);
        let (_, extension) = last.rsplit_once('.')?;
        (1..=EXTENSION_BYTES_MAX).contains(&extension.len()).then_some(extension)
    }
}

/// The longest file extension.
pub const EXTENSION_BYTES_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts() {
        for (text, path, query, extension) in [
            ("http://a.test./x/report.PDF?v=1.5", "/x/report.PDF", "v=1.5", Some("PDF")),
            ("http://a.test/x.y/", "/x.y/", "", None),
            ("http://a.test/a.tar.gz", "/a.tar.gz", "", Some("gz")),
            ("http://a.test/?file=a.pdf", "/", "file=a.pdf", None),
            ("http://a.test/a.", "/a.", "", None),
            ("http://a.test/%7ea%2Ezi%70?b=%2F%26", "/~a.zip", "b=/%26", Some("zip")),
            ("http://a.test/v1.12345678901234567", "/v1.12345678901234567", "", None),
        ] {
            let url = Url::parse(text).unwrap();
            let subject = Subject::new(&url, Hops::default());
            assert_eq!((subject.host(), subject.path(), subject.query()), ("a.test", path, query), "{text}");
            assert_eq!(subject.extension(), extension, "{text}");
        }
    }
}
