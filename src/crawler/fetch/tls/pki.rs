//! Test authorities and certificates.

use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, UnixTime};

pub(super) type Authority = CertifiedIssuer<'static, KeyPair>;

/// Valid from and until, in seconds since 1970.
pub(super) type Span = (u64, u64);

pub(super) fn at(seconds: u64) -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(seconds))
}

fn params(names: &[&str], span: Span) -> CertificateParams {
    let mut params =
        CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).expect("names");
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    (params.not_before, params.not_after) = (epoch + Duration::from_secs(span.0), epoch + Duration::from_secs(span.1));
    params.use_authority_key_identifier_extension = true;
    params
}

/// An authority, signed by another or by itself.
pub(super) fn authority(name: &str, span: Span, signer: Option<&Authority>) -> Authority {
    let mut params = params(&[], span);
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("key");
    match signer {
        Some(signer) => CertifiedIssuer::signed_by(params, key, signer).expect("authority"),
        None => CertifiedIssuer::self_signed(params, key).expect("authority"),
    }
}

/// A server's certificate and key.
pub(super) fn leaf(names: &[&str], span: Span, signer: &Authority) -> (CertificateDer<'static>, KeyPair) {
    let key = KeyPair::generate().expect("key");
    let certificate = params(names, span).signed_by(&key, signer).expect("certificate");
    (certificate.der().clone(), key)
}

pub(super) fn der(authority: &Authority) -> CertificateDer<'static> {
    authority.der().clone()
}

pub(super) fn roots(authorities: &[&Authority]) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(der(authority)).expect("a root");
    }
    roots
}
