//! Parts of every record: an identifier and a head of named fields.
//!
//! Decides: identifiers are version 4 UUIDs (RFC 9562 section 5.4) drawn from a seeded generator, so that the same
//! crawl in the simulator writes the same bytes; the writing half has no randomness of its own.
//! Invariants: a head holds no bare CR or LF other than its own line ends, whatever is put into a field.
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
        let mut bytes = bits.to_be_bytes().into_iter();
        for (from, to) in [(10, 18), (19, 23), (24, 28), (29, 33), (34, 46)] {
            for (digits, byte) in text[from..to].as_chunks_mut::<2>().0.iter_mut().zip(&mut bytes) {
                *digits = [byte >> 4, byte & 0xf].map(|value| b"0123456789abcdef"[usize::from(value)]);
            }
        }
        RecordId(text)
    }

    /// A separate generator, for records that are made in parallel.
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

/// Adds `name: value` to a head; CR, LF and NUL in the value become spaces.
pub fn write_field(head: &mut Vec<u8>, name: &'static str, value: &[u8]) {
    head.extend_from_slice(name.as_bytes());
    head.extend_from_slice(b": ");
    write_clean(head, value);
    head.extend_from_slice(b"\r\n");
}

/// The same for a number.
pub fn write_number(head: &mut Vec<u8>, name: &'static str, number: u64) {
    head.extend_from_slice(name.as_bytes());
    head.extend_from_slice(b": ");
    write_decimal(head, number);
    head.extend_from_slice(b"\r\n");
}

/// Adds a number in decimal digits. A page needs a dozen of them, and `fmt` takes ten times as long.
pub fn write_decimal(out: &mut Vec<u8>, number: u64) {
    let mut digits = [b'0'; 20];
    let (mut rest, mut first) = (number, digits.len() - 1);
    for (at, digit) in digits.iter_mut().enumerate().rev() {
        *digit = b'0' + (rest % 10) as u8;
        first = at;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[first..]);
}

/// The same for a field whose name is foreign: in the name, CR, LF and NUL become spaces, too.
pub fn write_foreign_field(head: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    write_clean(head, name);
    write_field(head, "", value);
}

fn write_clean(head: &mut Vec<u8>, bytes: &[u8]) {
    match memchr::memchr3(b'\r', b'\n', 0, bytes) {
        None => head.extend_from_slice(bytes),
        Some(_) => head.extend(bytes.iter().map(|byte| if matches!(byte, b'\r' | b'\n' | 0) { b' ' } else { *byte })),
    }
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
    fn numbers_are_as_fmt_has_them() {
        for number in [0, 9, 10, 99, 1_234_567_890, u64::MAX - 1, u64::MAX] {
            let mut out = Vec::new();
            write_decimal(&mut out, number);
            assert_eq!(out, number.to_string().into_bytes());
        }
    }

    #[test]
    fn no_value_breaks_a_head() {
        let mut head = Vec::new();
        write_foreign_field(&mut head, b"a\r\nb", b"c\r\n\r\nd\0");
        assert_eq!(head, b"a  b: c    d \r\n");
    }
}
