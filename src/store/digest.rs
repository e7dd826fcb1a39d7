//! Digests as WARC fields carry them: `sha256:BASE32`.
//!
//! Decides: we write SHA-256 in base32 (RFC 4648 section 6); we check what others write: SHA-1, SHA-256, SHA-384
//! and SHA-512 in base32, hex or base64 (WARC 1.1 section 5.8 leaves algorithm and encoding open).
//! Invariants: the padding that base32 of 32 bytes has ("====") is written, as warcio and FastWARC compare the
//! padded form.
//! Limits: other algorithms (MD5, CRC-32) give `None`: not checked, which is not wrong.

use aws_lc_rs::digest::{self, Algorithm, Context};

/// SHA-256 under way.
pub struct Sha256(Context);

impl Default for Sha256 {
    fn default() -> Sha256 {
        Sha256(Context::new(&digest::SHA256))
    }
}

impl Sha256 {
    /// Takes more bytes in.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Adds `sha256:BASE32` to `out`.
    pub fn write_label(self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"sha256:");
        write_base32(self.0.finish().as_ref(), out);
    }
}

/// A digest that a record claims, being compared with what the record holds.
pub struct Claim {
    context: Context,
    expected: Vec<u8>,
}

impl Claim {
    /// Reads `ALGORITHM:VALUE`; `None` when the algorithm is unknown. A value that no digest of it can be never holds.
    pub fn parse(label: &str) -> Option<Claim> {
        let (name, value) = label.trim().split_once(':')?;
        let algorithm: &'static Algorithm = match name.trim().to_ascii_lowercase().replace('-', "").as_str() {
            "sha1" => &digest::SHA1_FOR_LEGACY_USE_ONLY,
            "sha256" => &digest::SHA256,
            "sha384" => &digest::SHA384,
            "sha512" => &digest::SHA512,
            _ => return None,
        };
        let expected = decode(value.trim(), algorithm.output_len()).unwrap_or_default();
        Some(Claim { context: Context::new(algorithm), expected })
    }

    /// Takes more bytes in.
    pub fn update(&mut self, bytes: &[u8]) {
        self.context.update(bytes);
    }

    /// Whether the bytes taken in have the digest that was claimed.
    pub fn holds(self) -> bool {
        self.context.finish().as_ref() == self.expected.as_slice()
    }
}

/// The digest's bytes; the encodings of one length differ in length, so the length tells which it is.
fn decode(value: &str, digest_bytes: usize) -> Option<Vec<u8>> {
    let bare = value.trim_end_matches('=');
    let decoded = if bare.len() == digest_bytes * 2 {
        decode_bits(bare, 4, |byte| char::from(byte).to_digit(16))
    } else if bare.len() == (digest_bytes * 8).div_ceil(5) {
        decode_bits(bare, 5, |byte| match byte.to_ascii_uppercase() {
            letter @ b'A'..=b'Z' => Some(u32::from(letter - b'A')),
            digit @ b'2'..=b'7' => Some(u32::from(digit - b'2') + 26),
            _ => None,
        })
    } else {
        decode_bits(bare, 6, |byte| match byte {
            b'A'..=b'Z' => Some(u32::from(byte - b'A')),
            b'a'..=b'z' => Some(u32::from(byte - b'a') + 26),
            b'0'..=b'9' => Some(u32::from(byte - b'0') + 52),
            b'+' | b'-' => Some(62),
            b'/' | b'_' => Some(63),
            _ => None,
        })
    }?;
    (decoded.len() == digest_bytes).then_some(decoded)
}

fn decode_bits(text: &str, bits_per_digit: u32, value_of: impl Fn(u8) -> Option<u32>) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(64);
    let (mut held, mut held_bits) = (0u32, 0u32);
    for byte in text.bytes() {
        held = (held << bits_per_digit) | value_of(byte)?;
        held_bits += bits_per_digit;
        if held_bits >= 8 {
            held_bits -= 8;
            out.push((held >> held_bits) as u8);
            held &= (1 << held_bits) - 1;
        }
    }
    Some(out)
}

const BASE32: [u8; 32] = *b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

fn write_base32(bytes: &[u8], out: &mut Vec<u8>) {
    for group in bytes.chunks(5) {
        let mut bits = 0u64;
        for index in 0..5 {
            bits = bits << 8 | u64::from(group.get(index).copied().unwrap_or(0));
        }
        let digits = (group.len() * 8).div_ceil(5);
        for index in 0..8 {
            let digit = BASE32[(bits >> (35 - 5 * index)) as usize & 31];
            out.push(if index < digits { digit } else { b'=' });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base32_of_rfc4648_section_10() {
        for (plain, coded) in [
            ("", ""),
            ("f", "MY======"),
            ("fo", "MZXQ===="),
            ("foo", "MZXW6==="),
            ("foob", "MZXW6YQ="),
            ("fooba", "MZXW6YTB"),
            ("foobar", "MZXW6YTBOI======"),
        ] {
            let mut out = Vec::new();
            write_base32(plain.as_bytes(), &mut out);
            assert_eq!(out, coded.as_bytes());
        }
    }

    #[test]
    fn what_is_written_holds_and_nothing_else_does() {
        let mut sha256 = Sha256::default();
        sha256.update(b"page");
        let mut label = Vec::new();
        sha256.write_label(&mut label);
        let label = String::from_utf8(label).expect("ASCII");
        for (bytes, holds) in [(&b"page"[..], true), (b"pagf", false), (b"", false)] {
            let mut claim = Claim::parse(&label).expect("a claim");
            claim.update(bytes);
            assert_eq!(claim.holds(), holds);
        }
    }

    #[test]
    fn all_encodings_of_one_digest() {
        for label in [
            "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ",
            "SHA-1:DA39A3EE5E6B4B0D3255BFEF95601890AFD80709",
            "sha1:2jmj7l5rSw0yVb/vlWAYkK/YBwk=",
            "sha1:2jmj7l5rSw0yVb_vlWAYkK_YBwk",
        ] {
            assert!(Claim::parse(label).expect("a claim").holds(), "{label}");
        }
        for label in ["", "sha1", "md5:d41d8cd98f00b204e9800998ecf8427e", ":"] {
            assert!(Claim::parse(label).is_none(), "{label}");
        }
        for label in ["sha1:", "sha256:zz", "sha1:ü", "sha1:1112H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"] {
            assert!(!Claim::parse(label).expect("a claim").holds(), "{label}");
        }
    }
}
