//! Validators for conditional requests: the response is sent only if it has changed (RFC 9110 section 13.1).
//!
//! Decides: ETag and Last-Modified are sent back as received, even if unquoted or not a date: servers compare text,
//! and the sender recognizes its own. Both are sent if both exist: a server that supports the first ignores the
//! second (section 13.1.3). An ETag of `*` is omitted: as If-None-Match it would mean "any" (section 13.1.2). The
//! answer to "nothing changed" is 304, which has no body whatever its fields say (RFC 9112 section 6.3).
//!
//! Limits: values of `VALUE_BYTES_MAX` bytes; longer ones are omitted.
//! Leaves to others: which URLs are requested again, and when.

use super::Headers;

/// Identifies the version of a resource that we have.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Validators {
    etag: Option<Box<[u8]>>,
    last_modified: Option<Box<[u8]>>,
}

/// Entity tags are hashes and version numbers; a kilobyte is not one.
const VALUE_BYTES_MAX: usize = 512;

impl Validators {
    /// Those of a response.
    pub fn of(headers: &Headers) -> Validators {
        Validators {
            etag: usable(headers, "etag").filter(|etag| **etag != *b"*"),
            last_modified: usable(headers, "last-modified"),
        }
    }

    /// Whether there is no validator.
    pub fn is_empty(&self) -> bool {
        self.etag.is_none() && self.last_modified.is_none()
    }

    /// The request fields for them.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, &[u8])> {
        let if_none_match = self.etag.as_deref().map(|etag| ("If-None-Match", etag));
        let if_modified_since = self.last_modified.as_deref().map(|date| ("If-Modified-Since", date));
        if_none_match.into_iter().chain(if_modified_since)
    }
}

/// A field's value, if it can be sent in a request unchanged.
fn usable(headers: &Headers, name: &str) -> Option<Box<[u8]>> {
    let value = headers.get(name)?;
    let stands = !value.is_empty() && value.len() <= VALUE_BYTES_MAX && !value.iter().any(u8::is_ascii_control);
    stands.then(|| value.into())
}

#[cfg(test)]
mod tests {
    use super::super::{Framing, Limits, Method, Progress, Request, ResponseReader};
    use super::*;
    use ringcrawl_url::Url;

    fn response(text: &str) -> super::super::Response {
        let mut reader = ResponseReader::new(Method::Get, Limits::default());
        assert_eq!(reader.feed(text.as_bytes()), Ok(Progress::Done), "{text}");
        reader.into_response().expect("whole")
    }

    fn of(fields: &str) -> Vec<(&'static str, String)> {
        let response = response(&format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 0\r\n\r\n"));
        let validators = Validators::of(&response.headers);
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        let fields: Vec<_> = validators.fields().map(|(name, value)| (name, text(value))).collect();
        assert_eq!(validators.is_empty(), fields.is_empty());
        fields
    }

    #[test]
    fn values_go_back_as_they_came() {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        for etag in ["\"a\"", "W/\"a,b\"", "unquoted", "\"\u{e9}\"", "\"*\""] {
            assert_eq!(of(&format!("ETag:  {etag} \r\n")), [("If-None-Match", etag.to_owned())]);
        }
        assert_eq!(
            of(&format!("ETag: \"a\"\r\nLast-Modified: {date}\r\n")),
            [("If-None-Match", "\"a\"".to_owned()), ("If-Modified-Since", date.to_owned())]
        );
        assert_eq!(of("Last-Modified: yesterday\r\n"), [("If-Modified-Since", "yesterday".to_owned())]);
        for none in ["", "ETag: *\r\n", "ETag:\r\n", &format!("ETag: \"{}\"\r\n", "x".repeat(600)), "ETag: \u{1}\r\n"] {
            assert_eq!(of(none), [], "{none:?}");
        }
    }

    #[test]
    fn a_conditional_request_and_its_answer() {
        let validators = Validators {
            etag: Some((*b"W/\"1\"").into()),
            last_modified: Some((*b"Sun, 06 Nov 1994 08:49:37 GMT").into()),
        };
        let url = Url::parse("http://example.test/").expect("valid");
        let fields: Vec<_> = validators.fields().collect();
        let request =
            Request { method: Method::Get, url: &url, user_agent: "bot", from: "", extra: &fields, last: false }
                .to_bytes();
        let text = String::from_utf8(request).expect("text");
        assert!(
            text.contains("\r\nIf-None-Match: W/\"1\"\r\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n"),
            "{text}"
        );

        // RFC 9112 section 6.3: no body, whatever the fields announce; the connection stays usable.
        for framing in ["Content-Length: 5", "Transfer-Encoding: chunked", "X: y"] {
            let answer = response(&format!("HTTP/1.1 304 Not Modified\r\nETag: \"2\"\r\n{framing}\r\n\r\n"));
            assert_eq!((answer.status, answer.framing, answer.body.len()), (304, Framing::None, 0));
            assert_eq!((answer.truncated, answer.keep_alive), (None, true), "{framing}");
            assert_eq!(Validators::of(&answer.headers).fields().next(), Some(("If-None-Match", &b"\"2\""[..])));
        }
    }
}
