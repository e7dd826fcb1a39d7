//! RSA signatures under keys that are too short for the library that checks all others: 1,024 to 2,047 bits.
//!
//! Decides: PKCS #1 v1.5 and PSS with the hashes that TLS has for them (RFC 8446 section 4.2.3; RFC 8017 sections 8.1.2 and 8.2.2). Such a
//! signature is no proof against whoever has a year of a large machine, but it is one against everybody else, and what it is said to
//! be is recorded (`verifier`). Nothing here is secret, so nothing takes care to take the same time always.
//! Invariants: no byte can panic; agrees with aws-lc-rs at lengths that both know (tests).
//! Limits: keys of [`BITS_MIN`] to 8,192 bits with an exponent below 2^33: some milliseconds at worst.

use aws_lc_rs::digest::{self, Digest};
use rustls::SignatureScheme;

use super::validity::{Der, INTEGER, SEQUENCE};

/// Shortest key that is checked.
pub(super) const BITS_MIN: usize = 1_024;
const BITS_MAX: usize = 8_192;
const EXPONENT_MAX: u64 = 1 << 33;
const LIMB_BITS: usize = 32;

/// A public key: its modulus, odd and with the least limb first, and its exponent.
pub(super) struct RsaKey {
    modulus: Vec<u32>,
    bits: usize,
    exponent: u64,
}

impl RsaKey {
    /// An `RSAPublicKey` in DER (RFC 8017 appendix A.1.1); `None` where it is none, or not within the limits.
    pub(super) fn read(key: &[u8]) -> Option<RsaKey> {
        let (modulus, exponent) = fields(key)?;
        let bits = bits(modulus);
        let exponent = exponent.iter().try_fold(0_u64, |number, byte| {
            Some(number.checked_mul(256)? | u64::from(*byte)).filter(|number| *number < EXPONENT_MAX)
        })?;
        let is_key =
            (BITS_MIN..=BITS_MAX).contains(&bits) && modulus.last()? & 1 == 1 && exponent & 1 == 1 && exponent > 1;
        is_key.then(|| RsaKey { modulus: limbs(modulus), bits, exponent })
    }

    /// Whether `signature` is one of `message`; `None` for schemes that are not RSA's.
    pub(super) fn verifies(&self, scheme: SignatureScheme, message: &[u8], signature: &[u8]) -> Option<bool> {
        let (hash, prefix, is_pss): (_, &[u8], _) = match scheme {
            SignatureScheme::RSA_PKCS1_SHA256 => (&digest::SHA256, &PKCS1_SHA256, false),
            SignatureScheme::RSA_PKCS1_SHA384 => (&digest::SHA384, &PKCS1_SHA384, false),
            SignatureScheme::RSA_PKCS1_SHA512 => (&digest::SHA512, &PKCS1_SHA512, false),
            SignatureScheme::RSA_PSS_SHA256 => (&digest::SHA256, &[], true),
            SignatureScheme::RSA_PSS_SHA384 => (&digest::SHA384, &[], true),
            SignatureScheme::RSA_PSS_SHA512 => (&digest::SHA512, &[], true),
            _ => return None,
        };
        let digest = digest::digest(hash, message);
        let encoded = self.opened(signature);
        Some(encoded.is_some_and(|encoded| match is_pss {
            true => is_pss_of(hash, &encoded, self.bits - 1, &digest).unwrap_or(false),
            false => is_pkcs1_of(&encoded, prefix, &digest),
        }))
    }

    /// The signature to the power of the exponent, as long as the modulus (RFC 8017 section 5.2.2).
    fn opened(&self, signature: &[u8]) -> Option<Vec<u8>> {
        if signature.len() != self.bits.div_ceil(8) {
            return None;
        }
        let mut base = limbs(signature);
        base.resize(self.modulus.len(), 0);
        if !is_less(&base, &self.modulus) {
            return None;
        }
        let inverse = self.negative_inverse();
        let times = |one: &[u32], other: &[u32]| self.product(one, other, inverse);
        // Montgomery's form of a number is the number times 2 to the power of all bits of the limbs.
        let mut one = vec![0; self.modulus.len()];
        *one.first_mut()? = 1;
        // What makes one of a number is twice that power: the highest power of two below the modulus, doubled until it is one and a bit
        // for each limb, and the bits of a limb come by squaring.
        let limbs = self.modulus.len();
        let mut power_of_two = vec![0; limbs];
        *power_of_two.get_mut((self.bits - 1) / LIMB_BITS)? = 1 << ((self.bits - 1) % LIMB_BITS);
        (self.bits - 1..LIMB_BITS * limbs + limbs).for_each(|_| self.double(&mut power_of_two));
        (0..LIMB_BITS.ilog2()).for_each(|_| power_of_two = times(&power_of_two, &power_of_two));
        let base = times(&base, &power_of_two);
        let mut power = base.clone();
        for bit in (0..self.exponent.ilog2()).rev() {
            power = times(&power, &power);
            if self.exponent >> bit & 1 == 1 {
                power = times(&power, &base);
            }
        }
        let number = times(&power, &one);
        let bytes: Vec<u8> = number.iter().rev().flat_map(|limb| limb.to_be_bytes()).collect();
        bytes.get(bytes.len().checked_sub(signature.len())?..).map(<[u8]>::to_vec)
    }

    /// What makes the lowest limb of a number zero when the modulus is added as often as that times the limb says.
    fn negative_inverse(&self) -> u32 {
        let lowest = self.modulus.first().copied().unwrap_or(1);
        // Newton's: each step has twice as many bits right, of which an odd number's first three are.
        let inverse =
            (0..4).fold(lowest, |inverse, _| inverse.wrapping_mul(2_u32.wrapping_sub(lowest.wrapping_mul(inverse))));
        inverse.wrapping_neg()
    }

    /// The product, divided by 2 to the power of all bits of the limbs (Montgomery's).
    fn product(&self, one: &[u32], other: &[u32], inverse: u32) -> Vec<u32> {
        let mut sum = vec![0_u32; self.modulus.len() + 2];
        for limb in one {
            add_times(&mut sum, other, *limb);
            let quotient = sum.first().copied().unwrap_or(0).wrapping_mul(inverse);
            add_times(&mut sum, &self.modulus, quotient);
            sum.rotate_left(1);
            if let Some(last) = sum.last_mut() {
                *last = 0;
            }
        }
        self.reduce(sum)
    }

    fn double(&self, number: &mut Vec<u32>) {
        let mut twice = vec![0; number.len() + 2];
        add_times(&mut twice, number, 2);
        *number = self.reduce(twice);
    }

    /// What is below twice the modulus, less that where it is not below it.
    fn reduce(&self, mut number: Vec<u32>) -> Vec<u32> {
        let mut modulus = self.modulus.clone();
        modulus.resize(number.len(), 0);
        if !is_less(&number, &modulus) {
            let mut borrow = 0;
            for (limb, less) in number.iter_mut().zip(&modulus) {
                let difference = i64::from(*limb) - i64::from(*less) - borrow;
                *limb = difference as u32;
                borrow = i64::from(difference < 0);
            }
        }
        number.truncate(self.modulus.len());
        number
    }
}

/// How many bits the modulus of an RSA key has, whatever else it is.
pub(super) fn bits_of(key: &[u8]) -> Option<usize> {
    fields(key).map(|(modulus, _)| bits(modulus))
}

/// Modulus and exponent, without leading zeros.
fn fields(key: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut fields = Der(Der(key).content(SEQUENCE)?);
    let number = |bytes: &'_ [u8]| bytes.iter().position(|byte| *byte != 0);
    let (modulus, exponent) = (fields.content(INTEGER)?, fields.content(INTEGER)?);
    Some((modulus.get(number(modulus)?..)?, exponent.get(number(exponent)?..)?))
}

fn bits(number: &[u8]) -> usize {
    number.first().map_or(0, |first| 8 * number.len() - first.leading_zeros() as usize)
}

fn limbs(bytes: &[u8]) -> Vec<u32> {
    let limb = |bytes: &[u8]| bytes.iter().fold(0, |limb, byte| limb << 8 | u32::from(*byte));
    bytes.rchunks(LIMB_BITS / 8).map(limb).collect()
}

/// Both have as many limbs.
fn is_less(one: &[u32], other: &[u32]) -> bool {
    one.iter().rev().lt(other.iter().rev())
}

/// Adds a number, so many times, to one that has room for it.
fn add_times(sum: &mut [u32], number: &[u32], times: u32) {
    let mut carry = 0;
    for (place, limb) in sum.iter_mut().zip(number.iter().copied().chain(std::iter::repeat(0))) {
        let value = u64::from(*place) + u64::from(limb) * u64::from(times) + carry;
        (*place, carry) = (value as u32, value >> LIMB_BITS);
    }
}

/// RFC 8017 section 9.2: there is one encoding, so it is made and compared.
fn is_pkcs1_of(encoded: &[u8], prefix: &[u8], digest: &Digest) -> bool {
    let filled = encoded.len().saturating_sub(prefix.len() + digest.as_ref().len() + 3);
    let expected = [&[0, 1], &*vec![0xff; filled], &[0], prefix, digest.as_ref()].concat();
    filled >= 8 && encoded == expected
}

/// RFC 8017 section 9.1.2, with a salt as long as the digest (RFC 8446 section 4.2.3); `None` where something does not fit.
fn is_pss_of(hash: &'static digest::Algorithm, encoded: &[u8], bits: usize, digest: &Digest) -> Option<bool> {
    let length = hash.output_len();
    // The number may be a byte shorter than the modulus.
    let (zeros, encoded) = encoded.split_at_checked(encoded.len().checked_sub(bits.div_ceil(8))?)?;
    let (rest, last) = encoded.split_at_checked(encoded.len().checked_sub(1)?)?;
    let (masked, tag) = rest.split_at_checked(rest.len().checked_sub(length)?)?;
    let free_bits = 8 * encoded.len() - bits;
    let is_within = u32::from(*masked.first()?) >> (8 - free_bits) == 0;
    if zeros.iter().any(|byte| *byte != 0) || last != [0xbc] || !is_within {
        return Some(false);
    }
    let mut block: Vec<u8> = masked.iter().zip(mask(hash, tag, masked.len())).map(|(byte, mask)| byte ^ mask).collect();
    *block.first_mut()? &= 0xff >> free_bits;
    let (filling, salt) = block.split_at_checked(block.len().checked_sub(length)?)?;
    let is_filling = filling.split_last().is_some_and(|(one, zeros)| *one == 1 && zeros.iter().all(|byte| *byte == 0));
    let tag_of_all = digest::digest(hash, &[&[0; 8], digest.as_ref(), salt].concat());
    Some(is_filling && tag_of_all.as_ref() == tag)
}

/// MGF1 (RFC 8017 appendix B.2.1).
fn mask(hash: &'static digest::Algorithm, seed: &[u8], length: usize) -> Vec<u8> {
    let blocks = 0..length.div_ceil(hash.output_len()) as u32;
    let block = |count: u32| digest::digest(hash, &[seed, &count.to_be_bytes()].concat()).as_ref().to_vec();
    blocks.flat_map(block).take(length).collect()
}

/// What stands before the digest (RFC 8017 section 9.2, note 1).
const PKCS1_SHA256: [u8; 19] =
    [0x30, 0x31, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01, 0x05, 0x00, 0x04, 0x20];
const PKCS1_SHA384: [u8; 19] =
    [0x30, 0x41, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x02, 0x05, 0x00, 0x04, 0x30];
const PKCS1_SHA512: [u8; 19] =
    [0x30, 0x51, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x03, 0x05, 0x00, 0x04, 0x40];

#[cfg(test)]
mod tests {
    use aws_lc_rs::rand::SystemRandom;
    use aws_lc_rs::rsa::{KeyPair, KeySize};
    use aws_lc_rs::signature::{self, KeyPair as _, RsaEncoding};

    use super::*;

    /// At lengths that aws-lc-rs signs with, all schemes; and nothing that was changed passes.
    #[test]
    fn agrees_with_the_library_where_both_can() {
        let schemes: [(SignatureScheme, &'static dyn RsaEncoding); 6] = [
            (SignatureScheme::RSA_PKCS1_SHA256, &signature::RSA_PKCS1_SHA256),
            (SignatureScheme::RSA_PKCS1_SHA384, &signature::RSA_PKCS1_SHA384),
            (SignatureScheme::RSA_PKCS1_SHA512, &signature::RSA_PKCS1_SHA512),
            (SignatureScheme::RSA_PSS_SHA256, &signature::RSA_PSS_SHA256),
            (SignatureScheme::RSA_PSS_SHA384, &signature::RSA_PSS_SHA384),
            (SignatureScheme::RSA_PSS_SHA512, &signature::RSA_PSS_SHA512),
        ];
        for size in [KeySize::Rsa2048, KeySize::Rsa3072] {
            let pair = KeyPair::generate(size).expect("a key");
            let public = pair.public_key().as_ref().to_vec();
            let key = RsaKey::read(&public).expect("a key");
            assert_eq!(bits_of(&public), Some(8 * size.len()));
            for (scheme, encoding) in schemes {
                let mut signed = vec![0; pair.public_modulus_len()];
                pair.sign(encoding, &SystemRandom::new(), b"message", &mut signed).expect("a signature");
                assert_eq!(key.verifies(scheme, b"message", &signed), Some(true), "{scheme:?}");
                assert_eq!(key.verifies(scheme, b"massage", &signed), Some(false));
                for (other, _) in schemes.iter().filter(|(other, _)| *other != scheme) {
                    assert_eq!(key.verifies(*other, b"message", &signed), Some(false), "{scheme:?} as {other:?}");
                }
                for bit in (0..8 * signed.len()).step_by(97) {
                    let mut signed = signed.clone();
                    signed[bit / 8] ^= 1 << (bit % 8);
                    assert_eq!(key.verifies(scheme, b"message", &signed), Some(false));
                }
                assert_eq!(key.verifies(scheme, b"message", &signed[1..]), Some(false));
                assert_eq!(key.verifies(scheme, b"message", &[&signed[..], &[0]].concat()), Some(false));
            }
            assert_eq!(key.verifies(SignatureScheme::ED25519, b"message", &[0; 64]), None);
        }
    }

    #[test]
    fn broken_keys_and_signatures_end() {
        let pair = KeyPair::generate(KeySize::Rsa2048).expect("a key");
        let public = pair.public_key().as_ref().to_vec();
        assert!((0..public.len()).all(|length| RsaKey::read(&public[..length]).is_none()));
        for bit in 0..8 * public.len() {
            let mut public = public.clone();
            public[bit / 8] ^= 1 << (bit % 8);
            if let Some(key) = RsaKey::read(&public).filter(|_| bit % 41 == 0 || bit < 80) {
                for signature in [vec![0; 256], vec![0xff; 256], vec![1; 256]] {
                    assert_eq!(key.verifies(SignatureScheme::RSA_PSS_SHA256, b"x", &signature), Some(false));
                }
            }
        }
        // An exponent of one would make every number its own signature.
        let number = |bytes: &[u8]| [&[0x02, bytes.len() as u8], bytes].concat();
        let key = |modulus: &[u8], exponent: &[u8]| {
            let modulus = [&[0x02, 0x81, modulus.len() as u8], modulus].concat();
            let fields = [modulus, number(exponent)].concat();
            [&[0x30, 0x81, fields.len() as u8][..], &fields].concat()
        };
        let modulus = [&[0][..], &[0xff; 128]].concat();
        assert!(RsaKey::read(&key(&modulus, &[3])).is_some());
        for exponent in [&[1][..], &[2], &[0], &[], &[2, 0, 0, 0, 1], &[1; 9]] {
            assert!(RsaKey::read(&key(&modulus, exponent)).is_none(), "{exponent:?}");
        }
        let short = [&[0][..], &[0xff; 127]].concat();
        assert!(RsaKey::read(&key(&short, &[3])).is_none());
        assert_eq!(bits_of(&key(&short, &[3])), Some(1_016));
        let even = [&[0][..], &[0xfe; 128]].concat();
        assert!(RsaKey::read(&key(&even, &[3])).is_none());
    }
}
