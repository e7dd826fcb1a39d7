//! TLS as the crawler wants it: which roots, what a certificate error means.
//!
//! Decides: rustls with aws-lc-rs, TLS 1.2 and 1.3, ALPN `http/1.1`, the Mozilla roots and those of
//! `tls.ca_files`. Under `tls.certificates = "record"` every certificate is taken during the handshake and
//! judged right after it, so that the page can be stored with what was wrong; judged after, not during,
//! because a resumed session shows its certificate but does not verify it.
//! Invariants: the handshake's signature is verified in both modes: who answers holds the key.
//! Limits: no revocation check; tickets of as many hosts as connections may idle are kept.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme};

use super::HandsError;
use crate::config::{Certificates, Tls};
use crate::outcome::Failure;

/// What is known of a connection's TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsInfo {
    /// `TLSv1_2` or `TLSv1_3`.
    pub version: String,
    /// Cipher suite by its IANA name.
    pub cipher: String,
    /// What was wrong with the certificate; under `tls.certificates = "record"` alone.
    pub certificate_error: Option<String>,
}

/// Makes client connections; one per shard.
pub(super) struct TlsClient {
    config: Arc<ClientConfig>,
    /// Judges certificates after the handshake, when they are to be recorded.
    judge: Option<Arc<WebPkiServerVerifier>>,
}

impl TlsClient {
    /// Reads the roots; keeps session tickets of about `hosts_max` hosts.
    pub(super) fn new(tls: &Tls, hosts_max: usize) -> Result<TlsClient, HandsError> {
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        for path in &tls.ca_files {
            add_roots(&mut roots, path)?;
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .build()
            .map_err(|error| HandsError::Tls(error.to_string()))?;
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| HandsError::Tls(error.to_string()))?;
        let (mut config, judge) = match tls.certificates {
            Certificates::Verify => (builder.with_webpki_verifier(verifier).with_no_client_auth(), None),
            Certificates::Record => {
                let any = Arc::new(AnyCertificate { provider });
                let builder = builder.dangerous().with_custom_certificate_verifier(any);
                (builder.with_no_client_auth(), Some(verifier))
            }
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        // rustls counts sessions, and makes room for eight of a host.
        config.resumption = Resumption::in_memory_sessions(hosts_max.max(256).saturating_mul(SESSIONS_PER_HOST));
        Ok(TlsClient { config: Arc::new(config), judge })
    }

    /// The name to ask for: a domain, or an IP address, which is not sent (RFC 6066 section 3).
    pub(super) fn server_name(host: &str) -> Result<ServerName<'static>, Failure> {
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        ServerName::try_from(bare.to_owned()).map_err(|_| Failure::TlsFailed)
    }

    /// A connection that has not said anything yet.
    pub(super) fn start(&self, name: ServerName<'static>) -> Result<ClientConnection, Failure> {
        ClientConnection::new(self.config.clone(), name).map_err(|_| Failure::TlsFailed)
    }

    /// What can be said of `connection` once its handshake is complete.
    pub(super) fn describe(&self, connection: &ClientConnection, name: &ServerName<'_>) -> TlsInfo {
        let version = connection.protocol_version().map(|version| format!("{version:?}"));
        let cipher = connection.negotiated_cipher_suite().map(|suite| {
            // rustls calls the suites of TLS 1.3 `TLS13_…` where IANA says `TLS_…`.
            format!("{:?}", suite.suite()).replacen("TLS13_", "TLS_", 1)
        });
        TlsInfo {
            version: version.unwrap_or_default(),
            cipher: cipher.unwrap_or_default(),
            certificate_error: self.judge.as_ref().and_then(|judge| {
                let chain = connection.peer_certificates().unwrap_or_default();
                let Some((end_entity, intermediates)) = chain.split_first() else {
                    return Some("no certificate".to_owned());
                };
                let verdict = judge.verify_server_cert(end_entity, intermediates, name, &[], UnixTime::now());
                verdict.err().map(|error| error.to_string())
            }),
        }
    }
}

/// Tickets that rustls keeps of a host.
const SESSIONS_PER_HOST: usize = 8;

/// The failure that a TLS error is.
pub(super) fn failure_of(error: &rustls::Error) -> Failure {
    use rustls::CertificateError as Wrong;
    match error {
        rustls::Error::InvalidCertificate(Wrong::Expired | Wrong::ExpiredContext { .. }) => Failure::TlsExpired,
        rustls::Error::InvalidCertificate(Wrong::NotValidForName | Wrong::NotValidForNameContext { .. }) => {
            Failure::TlsName
        }
        rustls::Error::InvalidCertificate(Wrong::UnknownIssuer) => Failure::TlsIssuer,
        rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented => Failure::TlsCertificate,
        _ => Failure::TlsFailed,
    }
}

fn add_roots(roots: &mut RootCertStore, path: &Path) -> Result<(), HandsError> {
    let wrong = |why: String| HandsError::CaFile(path.to_owned(), why);
    let certificates = CertificateDer::pem_file_iter(path).map_err(|error| wrong(error.to_string()))?;
    let before = roots.len();
    for certificate in certificates {
        let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
        roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
    }
    if roots.len() == before { Err(wrong("holds no certificate".to_owned())) } else { Ok(()) }
}

/// Takes every certificate; checks that the peer holds its key.
#[derive(Debug)]
struct AnyCertificate {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert!(matches!(TlsClient::server_name("example.com"), Ok(ServerName::DnsName(_))));
        assert!(matches!(TlsClient::server_name("a_b.example.com"), Ok(ServerName::DnsName(_))));
        assert!(matches!(TlsClient::server_name("127.0.0.1"), Ok(ServerName::IpAddress(_))));
        assert!(matches!(TlsClient::server_name("[::1]"), Ok(ServerName::IpAddress(_))));
        assert!(TlsClient::server_name("").is_err());
    }

    #[test]
    fn a_file_without_certificates_is_an_error() {
        let path = std::env::temp_dir().join(format!("ringcrawl-no-ca-{}.pem", std::process::id()));
        std::fs::write(&path, "no certificate here\n").expect("write");
        let tls = Tls { certificates: Certificates::Verify, ca_files: vec![path.clone()] };
        assert!(matches!(TlsClient::new(&tls, 8), Err(HandsError::CaFile(..))));
        std::fs::remove_file(&path).expect("remove");
        let error = TlsClient::new(&tls, 8).err().expect("no such file").to_string();
        assert!(error.contains("ringcrawl-no-ca"), "{error}");
    }
}
