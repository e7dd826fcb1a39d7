//! Ranges of addresses, as `192.0.2.0/24` (RFC 4632) or `2001:db8::/32` (RFC 4291 section 2.3).
//!
//! Decides: a single address is a range of one. A range is named by its first address: `192.0.2.1/24` is a typing
//! error, and its intended meaning is unknown.

use std::net::IpAddr;

/// First address and length of the prefix.
pub fn read(text: &str) -> Option<(IpAddr, u32)> {
    let (first, length) = match text.split_once('/') {
        Some((first, length)) => (first.parse().ok()?, Some(length)),
        None => (text.parse().ok()?, None),
    };
    let (bits, all) = match first {
        IpAddr::V4(first) => (u128::from(first.to_bits()), 32),
        IpAddr::V6(first) => (first.to_bits(), 128),
    };
    let length = match length {
        None => all,
        Some(digits) if !digits.starts_with('+') => digits.parse().ok().filter(|length| *length <= all)?,
        Some(_) => return None,
    };
    let host_bits = all - length;
    let is_first = host_bits == 0 || bits.trailing_zeros() >= host_bits;
    is_first.then_some((first, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        for (text, expected) in [
            ("192.0.2.0/24", "192.0.2.0/24"),
            ("192.0.2.1", "192.0.2.1/32"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("2001:DB8:0::/32", "2001:db8::/32"),
            ("::1", "::1/128"),
            ("::/0", "::/0"),
        ] {
            assert_eq!(read(text).map(|(first, length)| format!("{first}/{length}")).as_deref(), Some(expected));
        }
        for wrong in
            ["", "/", "192.0.2.1/24", "192.0.2.0/33", "::1/127", "::/129", "192.0.2.0/", "192.0.2.0/+24", "a/1", "1/8"]
        {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
