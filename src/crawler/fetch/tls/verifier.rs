//! The verifier: what rustls calls when a server shows its certificates.
//!
//! Decides: under `tls.certificates = "verify"` the chain is judged here. Under `"record"` every certificate is
//! accepted, and judged right after the handshake (`TlsClient::describe`), so that the page can be stored with what
//! was wrong. That includes certificates that rustls-webpki does not read, and keys that are too short
//! (`server_key`). A chain that is too long to be kept is refused under both: connections and sessions hold it.
//! Invariants: the handshake's signature is verified each time under both policies: the server holds the key. Under
//! `"record"` a signature that cannot be verified is recorded as such.

use std::sync::atomic::{AtomicU64, Ordering};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};

use super::chains::{Chains, measure};
use super::server_key;
use ringcrawl_config::Certificates;

/// See the module.
#[derive(Debug)]
pub(super) struct Verifier {
    pub(super) policy: Certificates,
    pub(super) chains: Chains,
    pub(super) algorithms: WebPkiSupportedAlgorithms,
    /// Full handshakes with a valid chain that was remembered.
    pub(super) recognized: AtomicU64,
}

impl Verifier {
    /// Judges what a server showed in a full handshake.
    pub(super) fn judge(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), rustls::Error> {
        let remembered = self.chains.judge(end_entity, intermediates, name, now)?;
        self.recognized.fetch_add(u64::from(remembered), Ordering::Relaxed);
        Ok(())
    }

    /// Checks a signature by the key alone if the certificate was what failed.
    fn reconsider(
        &self,
        verdict: Result<HandshakeSignatureValid, rustls::Error>,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
        is_tls13: bool,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        match (verdict, self.policy) {
            (Err(rustls::Error::InvalidCertificate(_)), Certificates::Record) => {
                server_key::check(certificate, message, signed, is_tls13, &self.algorithms)?;
                Ok(HandshakeSignatureValid::assertion())
            }
            (verdict, _) => verdict,
        }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self.policy {
            Certificates::Verify => self.judge(end_entity, intermediates, name, now)?,
            Certificates::Record => measure(end_entity, intermediates)?,
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let verdict = rustls::crypto::verify_tls12_signature(message, certificate, signed, &self.algorithms);
        self.reconsider(verdict, message, certificate, signed, false)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let verdict = rustls::crypto::verify_tls13_signature(message, certificate, signed, &self.algorithms);
        self.reconsider(verdict, message, certificate, signed, true)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
