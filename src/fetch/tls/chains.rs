//! Chains: which certificates are good, and which have been found so before.
//!
//! Decides: a chain that was verified is remembered by the SHA-256 of all its bytes, for the time in which every
//! certificate of it that counted is valid. The host's name is compared each time and is no part of the memory: one
//! chain serves many hosts (wildcards, shared hosting, CDNs), a crawl meets most hosts only a few times, and comparing
//! a name costs a microsecond where verifying a chain costs some hundreds.
//! Invariants: only what was verified is remembered, never a refusal; every use is judged at its own time; the roots
//! belong to the memory, so nothing is taken over from other roots or another policy; what is said of a chain is what
//! `WebPkiServerVerifier` says (tests, random comparison).
//! Limits: `tls.chains_max` chains; no revocation check.
//! Leaves to others: the handshake's signature, which no memory can stand for (`verifier`).

use std::fmt;
use std::sync::{Mutex, PoisonError};

use aws_lc_rs::digest;
use rustls::RootCertStore;
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;

use super::second_chance::SecondChance;
use super::validity::Validity;

type Digest = [u8; digest::SHA256_OUTPUT_LEN];

/// The roots, and the chains that were found to lead to one of them.
pub(super) struct Chains {
    roots: RootCertStore,
    algorithms: WebPkiSupportedAlgorithms,
    // rustls asks for what threads may share; it is one shard's, so nobody ever waits.
    verified: Mutex<SecondChance<Digest, Validity>>,
}

impl Chains {
    /// With room for `max` chains.
    pub(super) fn new(roots: RootCertStore, algorithms: WebPkiSupportedAlgorithms, max: usize) -> Chains {
        Chains { roots, algorithms, verified: Mutex::new(SecondChance::new(max)) }
    }

    /// Whether a server that shows these certificates, `intermediates` as it sent them, may be taken for `name` at `now`.
    /// What is said of one that may: whether its chain was remembered.
    pub(super) fn judge(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<bool, rustls::Error> {
        let parsed = ParsedCertificate::try_from(end_entity)?;
        let digest = digest(end_entity, intermediates);
        let remembered = self.is_verified(&digest, now);
        if !remembered {
            let algorithms = self.algorithms.all;
            verify_server_cert_signed_by_trust_anchor(&parsed, &self.roots, intermediates, now, algorithms)?;
            if let Some(validity) = common_validity(end_entity, intermediates, now) {
                self.lock().insert(digest, validity);
            }
        }
        verify_server_name(&parsed, name).map(|()| remembered)
    }

    fn is_verified(&self, digest: &Digest, now: UnixTime) -> bool {
        self.lock().get(digest).is_some_and(|validity| validity.holds_at(now.as_secs()))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, SecondChance<Digest, Validity>> {
        self.verified.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Chains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chains").finish_non_exhaustive()
    }
}

/// Of all certificates with their lengths, so that no two chains are the same bytes.
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

/// When a chain that was verified at `now` is certainly good: servers send certificates that are no part of the way to a
/// root, some of them expired long ago; the way leads over some of those that are valid now. `None` when one of them
/// cannot be read, which might be on the way.
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
