//! Certificates of a test's own.

use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use ringcrawl_base::TempFolder;

/// A certificate authority, with its own certificate in a file.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: TempFolder,
}

impl Authority {
    /// One of that name.
    pub fn new(name: &str) -> Authority {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("key")).expect("authority");
        let folder = TempFolder::new(name);
        folder.file("root.pem", &issuer.pem());
        Authority { issuer, folder }
    }

    /// Its certificate.
    pub fn file(&self) -> PathBuf {
        self.folder.path().join("root.pem")
    }

    /// A server for `name`, whose certificate is valid until the start of `until_year`.
    pub fn server(&self, name: &str, until_year: i32) -> Arc<ServerConfig> {
        let mut params = CertificateParams::new(vec![name.to_owned()]).expect("params");
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(until_year, 1, 1);
        let key = KeyPair::generate().expect("key");
        let certificate = params.signed_by(&key, &self.issuer).expect("certificate");
        server(certificate.der().clone(), &key)
    }

    /// Files with a certificate for `name` and its key, which is of RSA: old ciphers need one.
    pub fn rsa_files(&self, name: &str) -> [PathBuf; 2] {
        let key = KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256).expect("key");
        let params = CertificateParams::new(vec![name.to_owned()]).expect("params");
        let certificate = params.signed_by(&key, &self.issuer).expect("certificate");
        self.folder.file("server.pem", &certificate.pem());
        self.folder.file("key.pem", &key.serialize_pem());
        ["server.pem", "key.pem"].map(|file| self.folder.path().join(file))
    }
}

/// A server for `name` whose certificate nobody signed; it may be that of an authority, as `openssl req -x509` makes them.
pub fn self_signed(name: &str, is_authority: bool) -> Arc<ServerConfig> {
    let key = KeyPair::generate().expect("key");
    let mut params = CertificateParams::new(vec![name.to_owned()]).expect("params");
    if is_authority {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    server(params.self_signed(&key).expect("certificate").der().clone(), &key)
}

fn server(certificate: CertificateDer<'static>, key: &KeyPair) -> Arc<ServerConfig> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], PrivateKeyDer::Pkcs8(key.serialize_der().into()))
        .expect("certificate and key");
    Arc::new(config)
}
