//! The authority: a certificate authority of the synthetic web's own, and certificates for its sites.
//!
//! Decides: a fresh ECDSA P-256 root at each start and one leaf key for all sites, because keys are expensive and
//! protect nothing here. Each site has a certificate (`sN.test` and `*.sN.test`), issued when a client first names
//! the site (SNI, RFC 6066 section 3). Names that are not of this web get no certificate, so the handshake fails.
//! Hosts with a certificate fault get one that has expired, is for another name or is self-signed.
//! Invariants: the root's key never leaves the process.
//! Limits: `CERTIFICATES_MAX` certificates are kept, then all are dropped and issued again on demand.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::{CertifiedKey, SigningKey};

use super::faults::Fault;
use super::model::Model;

/// The subject of a certificate: a site, or one of its hosts with a certificate fault.
type Named = (u32, Option<Fault>);

/// The root, and the certificates it issued.
pub(super) struct Authority {
    model: Arc<Model>,
    issuer: Issuer<'static, KeyPair>,
    root_pem: String,
    leaf: KeyPair,
    leaf_signer: Arc<dyn SigningKey>,
    issued: Mutex<HashMap<Named, Arc<CertifiedKey>>>,
}

impl Authority {
    /// A new root for `model`'s sites.
    pub fn new(model: Arc<Model>) -> io::Result<Authority> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.distinguished_name = named("ringcrawl synthetic web root");
        let root = KeyPair::generate().map_err(io::Error::other)?;
        let root_pem = params.self_signed(&root).map_err(io::Error::other)?.pem();
        let leaf = KeyPair::generate().map_err(io::Error::other)?;
        let leaf_der = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(leaf.serialize_der()));
        let leaf_signer = aws_lc_rs::sign::any_ecdsa_type(&leaf_der).map_err(io::Error::other)?;
        let issuer = Issuer::new(params, root);
        Ok(Authority { model, issuer, root_pem, leaf, leaf_signer, issued: Mutex::default() })
    }

    /// The root certificate, for a client's list of roots.
    pub fn root_pem(&self) -> &str {
        &self.root_pem
    }

    /// A server configuration for http/1.1 that takes its certificates from `self`; sessions are resumed by tickets,
    /// as with most servers, or never.
    pub fn server_config(self: Arc<Self>, tickets: bool) -> io::Result<rustls::ServerConfig> {
        let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_cert_resolver(self);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        // An additional session cache would be too small for many clients, and would be one more cost to explain.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        if tickets {
            config.ticketer = aws_lc_rs::Ticketer::new().map_err(io::Error::other)?;
        } else {
            config.send_tls13_tickets = 0;
        }
        Ok(config)
    }

    fn certificate(&self, host: &str) -> Option<Arc<CertifiedKey>> {
        let host = host.to_ascii_lowercase();
        let (site, _) = self.model.host(&host)?;
        let fault = self.model.fault_of(&host).map(|(_, fault)| fault).filter(|fault| fault.is_of_certificate());
        let name = (site.number, fault);
        let mut issued = self.issued.lock().ok()?;
        if let Some(known) = issued.get(&name) {
            return Some(Arc::clone(known));
        }
        let key = Arc::new(CertifiedKey::new(vec![self.issue(site.number, fault)?], Arc::clone(&self.leaf_signer)));
        if issued.len() >= CERTIFICATES_MAX {
            issued.clear();
        }
        issued.insert(name, Arc::clone(&key));
        Some(key)
    }

    fn issue(&self, site: u32, fault: Option<Fault>) -> Option<CertificateDer<'static>> {
        let domain = match fault {
            Some(Fault::CertificateWrongName) => format!("other.s{site}.test"),
            _ => format!("s{site}.test"),
        };
        let mut params = CertificateParams::new(vec![domain.clone(), format!("*.{domain}")]).ok()?;
        params.distinguished_name = named(&domain);
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        if fault == Some(Fault::CertificateExpired) {
            (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
        }
        let certificate = if fault == Some(Fault::CertificateSelfSigned) {
            params.use_authority_key_identifier_extension = false;
            params.self_signed(&self.leaf)
        } else {
            params.signed_by(&self.leaf, &self.issuer)
        };
        Some(certificate.ok()?.der().clone())
    }
}

impl ResolvesServerCert for Authority {
    fn resolve(&self, client_hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.certificate(client_hello.server_name()?)
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

/// About 1 KB each.
const CERTIFICATES_MAX: usize = 16_384;

fn named(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

#[cfg(test)]
mod tests {
    use super::super::model::ModelConfig;
    use super::*;

    #[test]
    fn certificates_are_issued_once_and_to_own_hosts_only() {
        let model = Arc::new(Model::new(ModelConfig::default()).unwrap());
        let authority = Authority::new(model).unwrap();
        let first = authority.certificate("WWW.s3.test").unwrap();
        assert!(Arc::ptr_eq(&first, &authority.certificate("s3.test").unwrap()));
        assert!(!Arc::ptr_eq(&first, &authority.certificate("s4.test").unwrap()));
        assert!(authority.certificate("s20.test").is_none());
        assert!(authority.certificate("www.example.test").is_none());
    }
}
