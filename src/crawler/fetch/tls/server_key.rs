//! The key in a server's certificate, whatever else is wrong with the certificate.
//!
//! Decides: under `tls.certificates = "record"` certificates are accepted that rustls-webpki does not read at all:
//! those of version 1 or 2, with an unknown critical extension, or with broken DER after the key. The key is found by
//! its place (RFC 5280 section 4.1), and the handshake's signature is checked with it: the server holds the key. What
//! cannot be checked is never taken for good: for a key of another kind, for an RSA key that is shorter or longer
//! than rustls' algorithms take, or where no key is found, [`fault`] says so, and that is recorded. Nothing is lost
//! by that: under this policy any server may show a certificate of its own.
//! Invariants: no byte can cause a panic; a signature that can be checked and is wrong ends the handshake.

use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::alg_id;
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};

use super::validity::{Der, INTEGER, SEQUENCE, public_key};

/// How a key can be used.
enum ServerKey<'a> {
    /// rustls' algorithms can use it to check signatures.
    Known { algorithm: &'a [u8], bits: &'a [u8] },
    /// Unusable, for this reason.
    Unfit(String),
}

/// Shortest RSA key that rustls' algorithms take.
const RSA_BITS_MIN: usize = 2_048;
const RSA_BITS_MAX: usize = 8_192;

impl<'a> ServerKey<'a> {
    fn of(certificate: &'a [u8], algorithms: &WebPkiSupportedAlgorithms) -> ServerKey<'a> {
        let Some((algorithm, bits)) = public_key(certificate) else {
            return ServerKey::Unfit("it has no readable key".to_owned());
        };
        if algorithm == alg_id::RSA_ENCRYPTION.as_ref() {
            return match rsa_bits(bits) {
                Some(RSA_BITS_MIN..=RSA_BITS_MAX) => ServerKey::Known { algorithm, bits },
                Some(count) => ServerKey::Unfit(format!("its RSA key has {count} bits")),
                None => ServerKey::Unfit("its RSA key could not be read".to_owned()),
            };
        }
        match algorithms.all.iter().any(|known| known.public_key_alg_id().as_ref() == algorithm) {
            true => ServerKey::Known { algorithm, bits },
            false => ServerKey::Unfit("its key type is not supported".to_owned()),
        }
    }
}

/// How many bits the modulus of an `RSAPublicKey` in DER has (RFC 8017 appendix A.1.1).
fn rsa_bits(key: &[u8]) -> Option<usize> {
    let modulus = Der(Der(key).content(SEQUENCE)?).content(INTEGER)?;
    let (zeros, first) = modulus.iter().enumerate().find(|(_, byte)| **byte != 0)?;
    Some(8 * (modulus.len() - zeros) - first.leading_zeros() as usize)
}

/// Checks a server's signature with the key in its certificate; `candidates` are the algorithms of the scheme.
pub(super) fn check(
    certificate: &[u8],
    message: &[u8],
    signed: &DigitallySignedStruct,
    is_tls13: bool,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<(), Error> {
    let is_right = match ServerKey::of(certificate, algorithms) {
        ServerKey::Known { algorithm, bits } => {
            let of_scheme = |(scheme, _): &&(SignatureScheme, _)| *scheme == signed.scheme;
            let candidates = algorithms.mapping.iter().find(of_scheme).map_or(&[][..], |(_, candidates)| candidates);
            // In TLS 1.3 a scheme names its curve (RFC 8446 section 4.2.3).
            let candidates = candidates.iter().take(if is_tls13 { 1 } else { candidates.len() });
            let mut of_key = candidates.filter(|candidate| candidate.public_key_alg_id().as_ref() == algorithm);
            of_key.any(|candidate| candidate.verify_signature(bits, message, signed.signature()).is_ok())
        }
        ServerKey::Unfit(_) => true,
    };
    if is_right { Ok(()) } else { Err(CertificateError::BadSignature.into()) }
}

/// What is wrong with the key of a certificate, and whether the handshake's signature could not be checked for it.
pub(super) fn fault(certificate: &[u8], algorithms: &WebPkiSupportedAlgorithms) -> Option<String> {
    match ServerKey::of(certificate, algorithms) {
        ServerKey::Known { .. } => None,
        ServerKey::Unfit(why) => Some(format!("the handshake's signature was not checked with the certificate: {why}")),
    }
}

#[cfg(test)]
mod tests;
