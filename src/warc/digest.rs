//! Digests as WARC fields carry them: `sha256:BASE32`.
//!
//! Decides: we write the algorithm that `store.digest` names: SHA-256 and SHA-1 in base32 (RFC 4648 section 6), as
//! WARC tools do; XXH3 of 128 bits and BLAKE3 in hex, as their own tools do. We check these, SHA-384 and SHA-512 in
//! base32, hex or base64 (WARC 1.1 section 5.8 leaves algorithm and encoding open).
//! Invariants: the padding that base32 of 32 bytes has ("====") is written, as warcio and FastWARC compare the
//! padded form.
//! Limits: other algorithms (MD5, CRC-32) give `None`: not checked, which is not an error. XXH3 detects accidental
//! damage, but does not prevent anyone from making two payloads with the same digest.

use aws_lc_rs::digest::{self, Context};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use ringcrawl_base::choices;

choices! {
    /// What digests are by.
    DigestAlgorithm {
        /// in base32
        Sha256 = "sha-256",
        /// in base32
        Sha1 = "sha-1",
        /// of 128 bits, in hex
        Xxh3 = "xxh3-128",
        /// in hex
        Blake3 = "blake3",
    }
}

/// A digest in progress.
pub struct Digest {
    algorithm: DigestAlgorithm,
    hasher: Hasher,
}

impl Digest {
    /// Of no bytes yet.
    pub fn new(algorithm: DigestAlgorithm) -> Digest {
        Digest { algorithm, hasher: Hasher::new(algorithm) }
    }

    /// Takes more bytes in.
    pub fn update(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
    }

    /// Adds its label to `out`, such as `sha256:BASE32`.
    pub fn write_label(self, out: &mut Vec<u8>) {
        self.hasher.finish(|digest| write_label(self.algorithm, digest, out));
    }
}

/// Adds the label of the digest of `bytes` to `out`. Data that is available at once needs no state to set up and tear
/// down.
pub fn write_label_of(algorithm: DigestAlgorithm, bytes: &[u8], out: &mut Vec<u8>) {
    match algorithm {
        DigestAlgorithm::Sha256 => write_label(algorithm, digest::digest(&digest::SHA256, bytes).as_ref(), out),
        DigestAlgorithm::Sha1 => {
            write_label(algorithm, digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, bytes).as_ref(), out)
        }
        DigestAlgorithm::Xxh3 => write_label(algorithm, &xxh3_128(bytes).to_be_bytes(), out),
        DigestAlgorithm::Blake3 => write_label(algorithm, blake3::hash(bytes).as_bytes(), out),
    }
}

fn write_label(algorithm: DigestAlgorithm, digest: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(label_start(algorithm).as_bytes());
    match algorithm {
        DigestAlgorithm::Xxh3 | DigestAlgorithm::Blake3 => write_hex(digest, out),
        DigestAlgorithm::Sha256 | DigestAlgorithm::Sha1 => write_base32(digest, out),
    }
}

/// How the labels of an algorithm's digests begin.
pub fn label_start(algorithm: DigestAlgorithm) -> &'static str {
    match algorithm {
        DigestAlgorithm::Sha256 => "sha256:",
        DigestAlgorithm::Sha1 => "sha1:",
        DigestAlgorithm::Xxh3 => "xxh3-128:",
        DigestAlgorithm::Blake3 => "blake3:",
    }
}

/// What the bytes are fed to.
enum Hasher {
    Library(Context),
    Xxh3(Box<Xxh3>),
    Blake3(Box<blake3::Hasher>),
}

impl Hasher {
    fn new(algorithm: DigestAlgorithm) -> Hasher {
        match algorithm {
            DigestAlgorithm::Sha256 => Hasher::Library(Context::new(&digest::SHA256)),
            DigestAlgorithm::Sha1 => Hasher::Library(Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY)),
            DigestAlgorithm::Xxh3 => Hasher::Xxh3(Box::default()),
            DigestAlgorithm::Blake3 => Hasher::Blake3(Box::default()),
        }
    }

    /// By the name in a label, in any letter case, with or without hyphens; with the length of its digest in bytes.
    fn named(name: &str) -> Option<(Hasher, usize)> {
        Some(match name.trim().to_ascii_lowercase().replace('-', "").as_str() {
            "sha1" => (Hasher::new(DigestAlgorithm::Sha1), 20),
            "sha256" => (Hasher::new(DigestAlgorithm::Sha256), 32),
            "sha384" => (Hasher::Library(Context::new(&digest::SHA384)), 48),
            "sha512" => (Hasher::Library(Context::new(&digest::SHA512)), 64),
            "xxh3128" => (Hasher::new(DigestAlgorithm::Xxh3), 16),
            "blake3" => (Hasher::new(DigestAlgorithm::Blake3), 32),
            _ => return None,
        })
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Hasher::Library(context) => context.update(bytes),
            Hasher::Xxh3(hasher) => hasher.update(bytes),
            Hasher::Blake3(hasher) => drop(hasher.update(bytes)),
        }
    }

    fn finish<T>(self, take: impl FnOnce(&[u8]) -> T) -> T {
        match self {
            Hasher::Library(context) => take(context.finish().as_ref()),
            // The canonical form: the high half first.
            Hasher::Xxh3(hasher) => take(&hasher.digest128().to_be_bytes()),
            Hasher::Blake3(hasher) => take(hasher.finalize().as_bytes()),
        }
    }
}

/// A digest that a record claims, while it is compared with the record's content.
pub struct ClaimedDigest {
    hasher: Hasher,
    expected: Vec<u8>,
}

impl ClaimedDigest {
    /// Reads `ALGORITHM:VALUE`; `None` when the algorithm is unknown. A value that cannot be a digest of it never
    /// holds.
    pub fn parse(label: &str) -> Option<ClaimedDigest> {
        let (name, value) = label.trim().split_once(':')?;
        let (hasher, digest_bytes) = Hasher::named(name)?;
        Some(ClaimedDigest { hasher, expected: decode(value.trim(), digest_bytes).unwrap_or_default() })
    }

    /// Takes more bytes in.
    pub fn update(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
    }

    /// Whether the bytes taken in have the digest that was claimed.
    pub fn holds(self) -> bool {
        self.hasher.finish(|found| found == self.expected.as_slice())
    }
}

/// The digest's bytes. For one digest, each encoding has a different length, so the length identifies the encoding.
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

fn write_hex(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in bytes {
        out.extend([byte >> 4, byte & 0xf].map(|digit| if digit < 10 { b'0' + digit } else { b'a' + digit - 10 }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label_of(algorithm: DigestAlgorithm, bytes: &[u8]) -> String {
        let (mut digest, mut label) = (Digest::new(algorithm), Vec::new());
        digest.update(bytes);
        digest.write_label(&mut label);
        let mut at_once = Vec::new();
        write_label_of(algorithm, bytes, &mut at_once);
        assert_eq!(label, at_once);
        String::from_utf8(label).expect("ASCII")
    }

    /// Digests of nothing, as printed by sha1sum, sha256sum, xxhsum and b3sum.
    #[test]
    fn digests_of_nothing() {
        for (algorithm, label) in [
            (DigestAlgorithm::Sha1, "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"),
            (DigestAlgorithm::Sha256, "sha256:4OYMIQUY7QOBJGX36TEJS35ZEQT24QPEMSNZGTFESWMRW6CSXBKQ===="),
            (DigestAlgorithm::Xxh3, "xxh3-128:99aa06d3014798d86001c324468d497f"),
            (DigestAlgorithm::Blake3, "blake3:af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"),
        ] {
            assert_eq!(label_of(algorithm, b""), label);
        }
    }

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
        let all = [DigestAlgorithm::Sha1, DigestAlgorithm::Sha256, DigestAlgorithm::Xxh3, DigestAlgorithm::Blake3];
        for label in all.map(|algorithm| label_of(algorithm, b"page")) {
            for (bytes, holds) in [(&b"page"[..], true), (b"pagf", false), (b"", false)] {
                let mut claim = ClaimedDigest::parse(&label).expect("a claim");
                claim.update(bytes);
                assert_eq!(claim.holds(), holds, "{label}");
            }
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
            assert!(ClaimedDigest::parse(label).expect("a claim").holds(), "{label}");
        }
        for label in ["", "sha1", "md5:d41d8cd98f00b204e9800998ecf8427e", ":"] {
            assert!(ClaimedDigest::parse(label).is_none(), "{label}");
        }
        for label in ["sha1:", "sha256:zz", "sha1:ü", "sha1:1112H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"] {
            assert!(!ClaimedDigest::parse(label).expect("a claim").holds(), "{label}");
        }
    }
}
