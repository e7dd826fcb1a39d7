//! A certificate's validity period, subject, issuer and key, read from its bytes.
//!
//! Decides: times, names and keys are found by their place (RFC 5280 section 4.1) and nothing else is judged: the
//! caller has verified the certificate, or the certificate took no part in the verification. Malformed input yields
//! nothing.
//! Invariants: no byte can cause a panic; times and the ends of the period are those that rustls-webpki sees (tests).
//! Limits: years 1970 to 9999.

use ringcrawl_base::time::UnixTime;

/// A span of time, in seconds since 1970, both ends included (RFC 5280 section 4.1.2.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Validity {
    not_before: u64,
    not_after: u64,
}

impl Validity {
    /// The validity of a certificate in DER.
    pub(super) fn of(certificate: &[u8]) -> Option<Validity> {
        let mut signed = signed_fields(certificate)?;
        signed.content(SEQUENCE)?;
        let mut validity = Der(signed.content(SEQUENCE)?);
        Some(Validity { not_before: time(validity.next()?)?, not_after: time(validity.next()?)? })
    }

    pub(super) fn holds_at(self, seconds: u64) -> bool {
        (self.not_before..=self.not_after).contains(&seconds)
    }

    /// When both are valid.
    pub(super) fn and(self, other: Validity) -> Validity {
        Validity { not_before: self.not_before.max(other.not_before), not_after: self.not_after.min(other.not_after) }
    }
}

/// The names in a certificate, in DER.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CertificateNames<'a> {
    pub(super) issuer: &'a [u8],
    pub(super) subject: &'a [u8],
}

impl<'a> CertificateNames<'a> {
    /// The names of a certificate in DER.
    pub(super) fn of(certificate: &'a [u8]) -> Option<CertificateNames<'a>> {
        let mut signed = signed_fields(certificate)?;
        let issuer = signed.content(SEQUENCE)?;
        signed.content(SEQUENCE)?;
        Some(CertificateNames { issuer, subject: signed.content(SEQUENCE)? })
    }
}

/// The key of a certificate in DER: its algorithm and its bits.
pub(super) fn public_key(certificate: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut signed = signed_fields(certificate)?;
    // Issuer, validity, subject.
    for _ in 0..3 {
        signed.content(SEQUENCE)?;
    }
    let mut key = Der(signed.content(SEQUENCE)?);
    let algorithm = key.content(SEQUENCE)?;
    let (unused_bits, bits) = key.content(BIT_STRING)?.split_first()?;
    (*unused_bits == 0).then_some((algorithm, bits))
}

/// The fields of a certificate from the issuer on.
fn signed_fields(certificate: &[u8]) -> Option<Der<'_>> {
    let certificate = Der(certificate).content(SEQUENCE)?;
    let mut signed = Der(Der(certificate).content(SEQUENCE)?);
    // Certificates of version 1 omit the version; then come serial number and algorithm.
    let first = signed.next()?;
    if first.0 == VERSION {
        signed.content(INTEGER)?;
    }
    signed.content(SEQUENCE)?;
    Some(signed)
}

pub(super) const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
pub(super) const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;

/// The remaining bytes.
pub(super) struct Der<'a>(pub(super) &'a [u8]);

impl<'a> Der<'a> {
    /// The next element's tag and content.
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (tag, rest) = self.0.split_first()?;
        let (length, rest) = rest.split_first()?;
        // rustls accepts no chain longer than 64 KiB.
        let length_bytes = match length {
            ..=0x7f => 0,
            0x81..=0x83 => usize::from(length - 0x80),
            _ => return None,
        };
        let (digits, rest) = rest.split_at_checked(length_bytes)?;
        let length = match digits {
            [] => usize::from(*length),
            digits => digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)),
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((*tag, content))
    }

    /// The content of the next element, which has this tag.
    pub(super) fn content(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next().filter(|(found, _)| *found == tag).map(|(_, content)| content)
    }
}

/// `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ` (RFC 5280 sections 4.1.2.5.1 and 4.1.2.5.2), as seconds since 1970.
fn time((tag, text): (u8, &[u8])) -> Option<u64> {
    let digits = text.strip_suffix(b"Z")?;
    let two = |at: usize| {
        let digits = digits.get(at..at + 2).filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
        Some(digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
    };
    let (year, rest) = match (tag, digits.len()) {
        (UTC_TIME, 12) => (two(0).map(|year| if year < 50 { 2000 + year } else { 1900 + year })?, 2),
        (GENERALIZED_TIME, 14) => (two(0)? * 100 + two(2)?, 4),
        _ => return None,
    };
    let [month, day, hour, minute, second] = [0, 2, 4, 6, 8].map(|at| two(rest + at));
    Some(UnixTime::from_civil(year, month?, day?, hour?, minute?, second?)?.as_micros() / 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certificate(not_before: (i32, u8, u8), not_after: (i32, u8, u8)) -> Vec<u8> {
        let mut params = rcgen::CertificateParams::new(vec!["www.example.test".to_owned()]).expect("params");
        params.not_before = rcgen::date_time_ymd(not_before.0, not_before.1, not_before.2);
        params.not_after = rcgen::date_time_ymd(not_after.0, not_after.1, not_after.2);
        let key = rcgen::KeyPair::generate().expect("key");
        params.self_signed(&key).expect("certificate").der().to_vec()
    }

    #[test]
    fn both_forms_of_time() {
        // Years from 2050 on are written with four digits.
        let der = certificate((1999, 12, 31), (2050, 1, 1));
        let validity = Validity::of(&der).expect("valid");
        assert_eq!(validity, Validity { not_before: 946_598_400, not_after: 2_524_608_000 });
        let edges = [946_598_399, 946_598_400, 2_524_608_000, 2_524_608_001];
        assert_eq!(edges.map(|second| validity.holds_at(second)), [false, true, true, false]);
        let other = Validity::of(&certificate((2020, 1, 1), (2030, 1, 1))).expect("valid");
        assert_eq!(validity.and(other), other);
        assert_eq!(other.and(validity), other);
    }

    #[test]
    fn broken_bytes_give_nothing_or_a_span() {
        let der = certificate((2020, 1, 1), (2030, 1, 1));
        assert!((0..der.len()).all(|length| Validity::of(&der[..length]).is_none()));
        // Every bit of the head, which contains lengths, tags and times.
        for bit in 0..8 * der.len().min(300) {
            let mut der = der.clone();
            der[bit / 8] ^= 1 << (bit % 8);
            let _ = Validity::of(&der);
        }
        assert_eq!(time((UTC_TIME, b"491231235959Z")), Some(2_524_607_999));
        // 1950: times before 1970 have no representation.
        assert_eq!(time((UTC_TIME, b"500101000000Z")), None);
        assert_eq!(time((UTC_TIME, b"300101000000")), None);
        assert_eq!(time((UTC_TIME, b"301301000000Z")), None);
        assert_eq!(time((UTC_TIME, b"3001010000+0Z")), None);
        assert_eq!(time((GENERALIZED_TIME, b"300101000000Z")), None);
        assert_eq!(time((INTEGER, b"300101000000Z")), None);
    }
}
