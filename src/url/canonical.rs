//! Reading back URLs that we wrote: queues on disk, batches between shards, the visited log.
//!
//! Decides: such a text is checked for its shape (scheme, host bytes, port, a path of ASCII graphics), not parsed
//! again: no IDNA, no percent-coding, no dot segments. That is a pass over the bytes and one copy. Bytes from disk
//! are still untrusted, so a text without that shape is refused. A text that has it but is not canonical (`/a/../b`)
//! gives a valid `Url` whose key merely differs from that of its canonical form.
//!
//! Invariants: for every `Url` `u`, `read(u.as_str()) == Ok(u)`.

use super::{HTTP_PREFIX, HTTPS_PREFIX, Scheme, Url, UrlError};

/// Takes the text apart.
pub(super) fn read(text: &str) -> Result<Url, UrlError> {
    let mut url = Url::unwritten(text.len());
    read_into(text, &mut url)?;
    Ok(url)
}

/// The same, into a URL whose memory is reused. On an error it is unchanged.
pub(super) fn read_into(text: &str, url: &mut Url) -> Result<(), UrlError> {
    let bytes_in_all = u16::try_from(text.len()).map_err(|_| UrlError::TooLong)?;
    let (scheme, rest) = if let Some(rest) = text.strip_prefix(HTTP_PREFIX) {
        (Scheme::Http, rest)
    } else if let Some(rest) = text.strip_prefix(HTTPS_PREFIX) {
        (Scheme::Https, rest)
    } else {
        return Err(UrlError::Scheme);
    };
    let authority_bytes = memchr::memchr(b'/', rest.as_bytes()).ok_or(INVALID_PATH)?;
    let (authority, path) = rest.split_at_checked(authority_bytes).ok_or(INVALID_PATH)?;
    let (host, port) = split_port(authority, scheme)?;
    let host_is_sound = match host.strip_prefix('[') {
        Some(v6) => v6.strip_suffix(']').is_some_and(|v6| v6.parse::<std::net::Ipv6Addr>().is_ok()),
        None => !host.is_empty() && all(host, is_host_byte),
    };
    if !host_is_sound {
        return Err(UrlError::Invalid(url::ParseError::InvalidDomainCharacter));
    }
    if !all(path, |byte| byte.is_ascii_graphic() && byte != b'#') {
        return Err(INVALID_PATH);
    }
    url.host_start = bytes_in_all - rest.len() as u16;
    url.host_end = url.host_start + host.len() as u16;
    url.path_start = url.host_start + authority.len() as u16;
    url.port = port;
    url.text.clear();
    url.text.push_str(text);
    Ok(())
}

/// Whether `is` holds for every byte. It visits all of them without an early exit, so the loop vectorizes.
#[inline(always)]
fn all(text: &str, is: impl Fn(u8) -> bool) -> bool {
    text.bytes().fold(true, |all, byte| all & is(byte))
}

/// The crate's closed list of errors has none for paths; this one says that the text is not absolute.
const INVALID_PATH: UrlError = UrlError::Invalid(url::ParseError::RelativeUrlWithoutBase);

/// `host:port` → host and port; an explicit default port is not canonical, nor is a leading zero.
fn split_port(authority: &str, scheme: Scheme) -> Result<(&str, u16), UrlError> {
    let invalid = UrlError::Invalid(url::ParseError::InvalidPort);
    match authority.rsplit_once(':') {
        // The last colon of an IPv6 address without a port is before its bracket.
        Some((host, digits)) if !digits.ends_with(']') => {
            let digits_only = !digits.starts_with(['0', '+']) || digits == "0";
            let port: u16 = digits.parse().ok().filter(|_| digits_only).ok_or(invalid)?;
            if port == scheme.default_port() { Err(invalid) } else { Ok((host, port)) }
        }
        _ => Ok((authority, scheme.default_port())),
    }
}

/// Bytes of a canonical domain: ASCII without the forbidden domain code points (WHATWG URL, section 3.2) and upper
/// case.
fn is_host_byte(byte: u8) -> bool {
    byte.is_ascii_graphic()
        && !byte.is_ascii_uppercase()
        && !matches!(byte, b'#' | b'/' | b':' | b'<' | b'>' | b'?' | b'@' | b'[' | b'\\' | b']' | b'^' | b'|' | b'%')
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::Rng;

    const SAMPLES: [&str; 9] = [
        "http://example.com/",
        "https://example.com:80/a?b=c&d",
        "http://example.com:443/%E3%83%84",
        "http://[2001:db8::1]:8080/x",
        "https://[::]/",
        "http://192.0.2.1:1/",
        "http://xn--bcher-kva.example:65535//?",
        "http://a_b.example.:0/;p",
        "http://a!$&'()*+,;=`{}~.test/",
    ];

    #[test]
    fn there_and_back() {
        for sample in SAMPLES {
            let parsed = Url::parse(sample).unwrap();
            assert_eq!(parsed.as_str(), sample);
            assert_eq!(read(sample), Ok(parsed), "{sample}");
        }
    }

    #[test]
    fn refused() {
        for text in [
            "",
            "http://",
            "http:///",
            "http://example.com",
            "ftp://example.com/",
            "http://EXAMPLE.com/",
            "http://u@example.com/",
            "http://example.com:80/",
            "https://example.com:443/",
            "http://example.com:/",
            "http://example.com:08/",
            "http://example.com:+8/",
            "http://example.com:65536/",
            "http://a:b:1/",
            "http://:8080/",
            "http://[::1/",
            "http://[::1]x/",
            "http://[::g]/",
            "http://example.com/a b",
            "http://example.com/#f",
            "http://example.com/ü",
            "http://exämple.com/",
            "http://a%2fb/",
        ] {
            assert!(read(text).is_err(), "{text:?} was read");
        }
        assert_eq!(read(&format!("http://a/{}", "x".repeat(65_536))), Err(UrlError::TooLong));
    }

    /// A URL read from damaged text has valid parts: no accessor panics, and the parts make the whole.
    #[test]
    fn damage() {
        let mut rng = Rng::new(1);
        let mut read_some = 0;
        for round in 0..40_000 {
            let mut bytes = SAMPLES[round % SAMPLES.len()].as_bytes().to_vec();
            for _ in 0..1 + round % 3 {
                let at = rng.index(bytes.len());
                match rng.below(3) {
                    0 => bytes[at] = rng.below(0x80) as u8,
                    1 => bytes.truncate(at.max(1)),
                    _ => bytes.insert(at, *rng.pick(b":/[]@.0")),
                }
            }
            let Ok(text) = String::from_utf8(bytes) else { continue };
            let Ok(url) = read(&text) else { continue };
            read_some += 1;
            let _ = (url.site(), url.scheme());
            assert_eq!(format!("{}{}", url.origin(), url.path_and_query()), text);
            assert!(url.authority().starts_with(url.host()) && url.path_and_query().starts_with('/'));
            // Full parsing keeps the scheme and, if the host is canonical, the host.
            if let Ok(parsed) = Url::parse(&text) {
                assert_eq!((parsed.scheme(), parsed.port()), (url.scheme(), url.port()), "{text}");
            }
        }
        assert!(read_some > 1_000, "the damage leaves some texts readable: {read_some}");
    }
}
