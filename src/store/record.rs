//! What every record has: an identifier and a head of named fields.
//!
//! Decides: identifiers are version 4 UUIDs (RFC 9562 section 5.4) drawn from a seeded generator, so that the same
//! crawl in the simulator writes the same bytes; the writing half has no randomness of its own.
//! Invariants: a head holds no bare CR or LF but its own line ends, whatever is put into a field.
//! Leaves to others: which fields a record has (`segment`).

/// Makes record identifiers from a seed.
#[derive(Clone, Debug)]
pub struct RecordIds {
    state: u64,
}

/// A record's identifier, as `<urn:uuid:…>`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordId([u8; RecordId::BYTES]);

impl RecordId {
    const BYTES: usize = 47;

    /// The value of WARC-Record-ID.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl RecordIds {
    /// A generator; two with the same seed give the same identifiers, so no two segments may share one.
    pub fn new(rng_seed: u64) -> RecordIds {
        RecordIds { state: rng_seed }
    }

    /// The next identifier.
    pub fn next_id(&mut self) -> RecordId {
        let bits = (u128::from(self.next_u64()) << 64) | u128::from(self.next_u64());
        let bits = bits & !(0xf << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
        let mut text = *b"<urn:uuid:00000000-0000-0000-0000-000000000000>";
        let digits = text.iter_mut().skip(10).filter(|byte| **byte == b'0');
        for (index, digit) in digits.enumerate() {
            let value = (bits >> (124 - 4 * index)) as u8 & 0xf;
            *digit = if value < 10 { b'0' + value } else { b'a' + value - 10 };
        }
        RecordId(text)
    }

    /// A generator of others, for records that are made beside these.
    pub fn branch(&mut self) -> RecordIds {
        RecordIds::new(self.next_u64())
    }

    /// splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
    fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Adds `name: value` to a head; CR, LF and NUL in either become spaces.
pub fn write_field(head: &mut Vec<u8>, name: &str, value: &[u8]) {
    write_clean(head, name.as_bytes());
    head.extend_from_slice(b": ");
    write_clean(head, value);
    head.extend_from_slice(b"\r\n");
}

fn write_clean(head: &mut Vec<u8>, bytes: &[u8]) {
    head.extend(bytes.iter().map(|byte| if matches!(byte, b'\r' | b'\n' | 0) { b' ' } else { *byte }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_version_4_and_differ() {
        let mut ids = RecordIds::new(7);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..10_000 {
            let id = ids.next_id();
            let text = String::from_utf8(id.as_bytes().to_vec()).expect("ASCII");
            assert_eq!(text.as_bytes()[24], b'4');
            assert!(matches!(text.as_bytes()[29], b'8' | b'9' | b'a' | b'b'));
            assert!(text.starts_with("<urn:uuid:") && text.ends_with('>'));
            assert!(seen.insert(text));
        }
        assert_eq!(RecordIds::new(7).next_id(), RecordIds::new(7).next_id());
        assert_ne!(RecordIds::new(7).next_id(), RecordIds::new(8).next_id());
    }

    #[test]
    fn no_value_breaks_a_head() {
        let mut head = Vec::new();
        write_field(&mut head, "a\r\nb", b"c\r\n\r\nd\0");
        assert_eq!(head, b"a  b: c    d \r\n");
    }
}
