//! TLS as the crawler needs it: which roots, what a certificate error means, what is remembered.
//!
//! Decides: rustls with aws-lc-rs, TLS 1.2 and 1.3, ALPN `http/1.1`, the Mozilla roots and those of `tls.ca_files`. A
//! full handshake requires a key exchange, the check of the server's signature, and verifying its chain, which is the
//! most expensive of the three. So chains are remembered (`chains`) in addition to sessions (`sessions`).
//! A resumed session shows its certificates but rustls does not verify them: they are judged again after it, by the
//! time of that moment, at the price of a digest.
//! Invariants: the handshake's signature is verified under both policies: the server holds the key. Where that is
//! impossible, it is recorded. Roots, chains and sessions belong to one client, which has one policy.
//! Limits: no revocation check; what a server may send other than content (`meter`).

mod chains;
mod failure;
mod link;
mod meter;
#[cfg(test)]
mod pki;
mod second_chance;
mod server_key;
mod sessions;
#[cfg(test)]
mod tests;
mod validity;
mod verifier;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CipherSuite, ClientConfig, ClientConnection, HandshakeKind, RootCertStore};

use self::chains::Chains;
pub(super) use self::failure::{failure_of, words_of};
pub(super) use self::link::Link;
use self::sessions::Sessions;
use self::verifier::Verifier;
use super::HandsError;
use ringcrawl_base::Failure;
use ringcrawl_brain::transaction::TlsInfo;
use ringcrawl_config::{Certificates, Tls};
use ringcrawl_files::plain;

/// Creates client connections; one per shard.
pub struct TlsClient {
    config: Arc<ClientConfig>,
    verifier: Arc<Verifier>,
    sessions: Arc<Sessions>,
}

impl TlsClient {
    /// Reads the roots.
    pub fn new(tls: &Tls) -> Result<TlsClient, HandsError> {
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        for path in &tls.ca_files {
            add_roots(&mut roots, path)?;
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let algorithms = provider.signature_verification_algorithms;
        let guess = provider.kx_groups.first().map(|group| group.name());
        let verifier = Arc::new(Verifier {
            policy: tls.certificates,
            chains: Chains::new(roots, algorithms, tls.chains_max),
            algorithms,
            recognized: AtomicU64::new(0),
        });
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| HandsError::Tls(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(verifier.clone())
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let sessions = Arc::new(Sessions::new(tls.sessions_max, guess));
        config.resumption = Resumption::store(sessions.clone());
        Ok(TlsClient { config: Arc::new(config), verifier, sessions })
    }

    /// The name to request: a domain, or an IP address, which is not sent (RFC 6066 section 3).
    pub fn server_name(host: &str) -> Result<ServerName<'static>, Failure> {
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        ServerName::try_from(bare.to_owned()).map_err(|_| Failure::TlsFailed)
    }

    /// A connection that has not sent anything yet.
    pub fn start(&self, name: ServerName<'static>) -> Result<ClientConnection, Failure> {
        ClientConnection::new(self.config.clone(), name).map_err(|_| Failure::TlsFailed)
    }

    /// The description of `connection` once its handshake is complete; an error if it must not be used.
    pub fn describe(&self, connection: &ClientConnection, name: &ServerName<'_>) -> Result<TlsInfo, rustls::Error> {
        let verdict = self.judge_after(connection, name);
        let certificate_error = match self.verifier.policy {
            Certificates::Verify => verdict.map(|()| None)?,
            Certificates::Record => {
                let end_entity = connection.peer_certificates().and_then(<[_]>::first);
                let of_key =
                    end_entity.and_then(|certificate| server_key::fault(certificate, &self.verifier.algorithms));
                let faults: Vec<String> =
                    verdict.err().map(|error| error.to_string()).into_iter().chain(of_key).collect();
                (!faults.is_empty()).then(|| faults.join("; "))
            }
        };
        let version = connection.protocol_version().and_then(|version| version.as_str());
        let cipher = connection.negotiated_cipher_suite().and_then(|suite| iana_name(suite.suite()));
        Ok(TlsInfo { version: version.unwrap_or_default(), cipher: cipher.unwrap_or_default(), certificate_error })
    }

    /// TLS with `host` broke: drops its sessions, which may be larger than a host may have.
    pub fn forget(&self, host: &str) {
        if let Ok(name) = TlsClient::server_name(host) {
            self.sessions.forget(&name);
        }
    }

    /// Full handshakes so far that skipped verifying a chain, because it was remembered.
    pub fn chains_recognized(&self) -> u64 {
        self.verifier.recognized.load(Ordering::Relaxed)
    }

    /// Judges the certificates if the handshake has not.
    fn judge_after(&self, connection: &ClientConnection, name: &ServerName<'_>) -> Result<(), rustls::Error> {
        let is_resumed = connection.handshake_kind() == Some(HandshakeKind::Resumed);
        if !is_resumed && self.verifier.policy == Certificates::Verify {
            return Ok(());
        }
        let chain = connection.peer_certificates().unwrap_or_default();
        let (end_entity, intermediates) = chain.split_first().ok_or(rustls::Error::NoCertificatesPresented)?;
        let now = self.config.time_provider.current_time().ok_or(rustls::Error::FailedToGetCurrentTime)?;
        if is_resumed {
            self.verifier.chains.judge(end_entity, intermediates, name, now).map(|_| ())
        } else {
            self.verifier.judge(end_entity, intermediates, name, now)
        }
    }
}

/// The name in IANA's list: rustls calls the suites of TLS 1.3 `TLS13_…`.
fn iana_name(suite: CipherSuite) -> Option<&'static str> {
    match suite {
        CipherSuite::TLS13_AES_128_GCM_SHA256 => Some("TLS_AES_128_GCM_SHA256"),
        CipherSuite::TLS13_AES_256_GCM_SHA384 => Some("TLS_AES_256_GCM_SHA384"),
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => Some("TLS_CHACHA20_POLY1305_SHA256"),
        other => other.as_str(),
    }
}

/// Longest file of roots; the list of all public ones has a quarter of a megabyte.
const CA_FILE_BYTES_MAX: usize = 16 << 20;

fn add_roots(roots: &mut RootCertStore, path: &Path) -> Result<(), HandsError> {
    let wrong = |why: String| HandsError::CaFile(path.to_owned(), why);
    let bytes = plain::read(path, CA_FILE_BYTES_MAX).map_err(|error| wrong(error.to_string()))?;
    let before = roots.len();
    for certificate in CertificateDer::pem_slice_iter(&bytes) {
        let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
        roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
    }
    if roots.len() == before { Err(wrong("has no certificate".to_owned())) } else { Ok(()) }
}
