//! A capture for the tests of this folder.

use std::net::IpAddr;

use super::Capture;
use super::head::Undone;
use ringcrawl_base::time::UnixTime;
use ringcrawl_url::Url;

/// A page of `url` with this body.
pub(super) fn capture<'a>(url: &'a Url, body: &'a [u8]) -> Capture<'a> {
    Capture {
        url,
        time: UnixTime::from_micros(1),
        ip: Some(IpAddr::from([127, 0, 0, 1])),
        request: b"",
        head_bytes: b"HTTP/1.1 200 OK\r\n\r\n",
        body,
        undone: Undone::default(),
        is_coded: false,
        truncated: None,
        metadata: b"",
        status: 200,
        mime: "",
        content_encoding: "",
        identified_type: None,
        robots: Default::default(),
        preferences: Default::default(),
        charset: None,
        redirect: None,
        tls: None,
    }
}
