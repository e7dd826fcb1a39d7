//! Chains: which certificates are valid, and which have been verified before.
//!
//! Decides: a chain that was verified is remembered by the SHA-256 of all its bytes, for the time in which every
//! certificate of it that counted is valid. The host's name is compared each time and is not part of the cache. One
//! chain serves many hosts (wildcards, shared hosting, CDNs), a crawl meets most hosts only a few times, and
//! comparing a name takes a microsecond where verifying a chain takes some hundreds.
//! A server's chain is untrusted input, and verification tries each path from certificate to certificate. So a chain
//! of more than [`CERTIFICATES_MAX`] certificates or [`CHAIN_BYTES_MAX`] is refused before anything of it is
//! verified, and so is one whose names leave more than [`STEPS_MAX`] steps to try. A chain without a trusted issuer
//! is remembered, too, for [`REFUSAL_SECS`]. Chains of the public web have two to five certificates, seldom more, in
//! 3 to 8 KB.
//! Invariants: a refusal that another time may undo is not remembered. Every use is judged at its own time. The roots
//! belong to the cache, so nothing is taken over from other roots or another policy. The verdict on a chain is that
//! of `WebPkiServerVerifier` (tests, random comparison).
//! Limits: `tls.chains_max` good chains, and as many bad ones up to [`REFUSALS_MAX`]; no revocation check.
//! Leaves to others: the handshake's signature, which no cache can replace (`verifier`).

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aws_lc_rs::digest;
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, RootCertStore};

use super::second_chance::SecondChance;
use super::validity::{CertificateNames, Validity};

type Digest = [u8; digest::SHA256_OUTPUT_LEN];

/// The roots, and the chains that lead to one of them.
pub(super) struct Chains {
    roots: RootCertStore,
    algorithms: WebPkiSupportedAlgorithms,
    // rustls requires a type that threads may share; it belongs to one shard, so no thread ever waits.
    verified: Mutex<SecondChance<Digest, Validity>>,
    /// Chains without a trusted issuer, with the second in which they were refused.
    refused: Mutex<SecondChance<Digest, u64>>,
}

/// Certificates that a server may send, including its own.
pub(super) const CERTIFICATES_MAX: usize = 10;
/// Bytes of all of these together.
pub(super) const CHAIN_BYTES_MAX: usize = 16 << 10;
/// Steps from a certificate to one that has its issuer's name, over all paths.
pub(super) const STEPS_MAX: usize = 12;
/// How long a refusal is remembered.
const REFUSAL_SECS: u64 = 600;
/// Chains remembered as refused.
const REFUSALS_MAX: usize = 4_096;

/// More certificates, bytes or paths than a chain may have.
#[derive(Debug, thiserror::Error)]
#[error("the chain is too long or has too many possible paths")]
pub(super) struct ChainTooLong;

impl From<ChainTooLong> for rustls::Error {
    fn from(error: ChainTooLong) -> rustls::Error {
        rustls::Error::InvalidCertificate(CertificateError::Other(rustls::OtherError(Arc::new(error))))
    }
}

impl Chains {
    /// With room for `max` chains.
    pub(super) fn new(roots: RootCertStore, algorithms: WebPkiSupportedAlgorithms, max: usize) -> Chains {
        Chains {
            roots,
            algorithms,
            verified: Mutex::new(SecondChance::new(max)),
            refused: Mutex::new(SecondChance::new(max.min(REFUSALS_MAX))),
        }
    }

    /// Whether a server that shows these certificates, `intermediates` as it sent them, may be taken for `name` at
    /// `now`. If so, returns whether its chain was remembered.
    pub(super) fn judge(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<bool, rustls::Error> {
        measure(end_entity, intermediates)?;
        let parsed = ParsedCertificate::try_from(end_entity)?;
        let digest = digest(end_entity, intermediates);
        let remembered = self.is_verified(&digest, now);
        if !remembered {
            if self.is_refused(&digest, now) {
                return Err(CertificateError::UnknownIssuer.into());
            }
            if steps(end_entity, intermediates) > STEPS_MAX {
                return Err(ChainTooLong.into());
            }
            let algorithms = self.algorithms.all;
            let verdict =
                verify_server_cert_signed_by_trust_anchor(&parsed, &self.roots, intermediates, now, algorithms);
            if let Err(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)) = verdict {
                lock(&self.refused).insert(digest, now.as_secs());
            }
            verdict?;
            if let Some(validity) = common_validity(end_entity, intermediates, now) {
                lock(&self.verified).insert(digest, validity);
            }
        }
        verify_server_name(&parsed, name).map(|()| remembered)
    }

    fn is_verified(&self, digest: &Digest, now: UnixTime) -> bool {
        lock(&self.verified).get(digest).is_some_and(|validity| validity.holds_at(now.as_secs()))
    }

    fn is_refused(&self, digest: &Digest, now: UnixTime) -> bool {
        let since = |refused: &mut u64| now.as_secs().checked_sub(*refused);
        lock(&self.refused).get(digest).and_then(since).is_some_and(|seconds| seconds < REFUSAL_SECS)
    }
}

/// Whether a chain is within the limits on certificates and bytes.
pub(super) fn measure(
    end_entity: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
) -> Result<(), ChainTooLong> {
    let bytes: usize = intermediates.iter().fold(end_entity.len(), |sum, certificate| sum + certificate.len());
    if intermediates.len() >= CERTIFICATES_MAX || bytes > CHAIN_BYTES_MAX { Err(ChainTooLong) } else { Ok(()) }
}

fn lock<V>(chains: &Mutex<SecondChance<Digest, V>>) -> MutexGuard<'_, SecondChance<Digest, V>> {
    chains.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many steps verification may take by the names alone, counted up to one more than [`STEPS_MAX`]: no certificate
/// occurs twice on a path, and one whose names cannot be read is on none.
fn steps(end_entity: &[u8], intermediates: &[CertificateDer<'_>]) -> usize {
    let names: Vec<_> = intermediates.iter().filter_map(|certificate| CertificateNames::of(certificate)).collect();
    CertificateNames::of(end_entity).map_or(0, |end| steps_from(end, &names, 0, 0))
}

/// The steps plus those from the certificate `from`; `used` has a bit for each certificate on the path to it.
fn steps_from(from: CertificateNames<'_>, all: &[CertificateNames<'_>], used: u32, mut steps: usize) -> usize {
    for (index, next) in all.iter().enumerate() {
        let bit = 1 << index;
        if steps > STEPS_MAX {
            break;
        }
        if used & bit == 0 && next.subject == from.issuer {
            steps = steps_from(*next, all, used | bit, steps + 1);
        }
    }
    steps
}

impl fmt::Debug for Chains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chains").finish_non_exhaustive()
    }
}

/// Over all certificates with their lengths, so that no two chains are the same bytes.
fn digest(end_entity: &CertificateDer<'_>, intermediates: &[CertificateDer<'_>]) -> Digest {
    let mut context = digest::Context::new(&digest::SHA256);
    for certificate in std::iter::once(end_entity).chain(intermediates) {
        context.update(&(certificate.len() as u64).to_be_bytes());
        context.update(certificate);
    }
    let mut bytes = Digest::default();
    bytes.copy_from_slice(context.finish().as_ref());
    bytes
}

/// When a chain that was verified at `now` is certainly valid. Servers send certificates that are not part of the
/// path to a root, some of them expired long ago; the path uses some of those that are valid now. `None` if one that
/// might be on the path cannot be read.
fn common_validity(
    end_entity: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
    now: UnixTime,
) -> Option<Validity> {
    let mut common = Validity::of(end_entity)?;
    for certificate in intermediates {
        let validity = Validity::of(certificate)?;
        if validity.holds_at(now.as_secs()) {
            common = common.and(validity);
        }
    }
    Some(common)
}

#[cfg(test)]
mod tests;
