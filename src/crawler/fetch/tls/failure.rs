//! What went wrong in TLS, as one of the crawler's failures.
//!
//! Decides: an alert is the server's own report of what is wrong (RFC 8446 section 6.2) and is believed. A server
//! that chooses what was not offered supports nothing else.
//! Limits: servers send `handshake_failure` for many reasons; the most common is that they found nothing in common.

use rustls::{AlertDescription as Alert, CertificateError as Wrong, Error, PeerIncompatible, PeerMisbehaved};

use super::chains::ChainTooLong;
use ringcrawl_base::Failure;

/// Details of a failure whose name leaves them open: the fault of a certificate, or the server's alert.
pub(in crate::fetch) fn words_of(failure: Failure, error: &Error) -> Option<String> {
    let is_open = matches!(failure, Failure::TlsCertificate | Failure::TlsNothingCommon | Failure::TlsFailed);
    is_open.then(|| match error {
        Error::InvalidCertificate(Wrong::NotValidYet | Wrong::NotValidYetContext { .. }) => {
            "it is not valid yet".to_owned()
        }
        Error::InvalidCertificate(Wrong::BadEncoding) => "it cannot be read".to_owned(),
        Error::InvalidCertificate(Wrong::Revoked) => "it was revoked".to_owned(),
        Error::InvalidCertificate(Wrong::BadSignature) => {
            "its signature, or the server's with its key, is wrong".to_owned()
        }
        Error::InvalidCertificate(Wrong::UnhandledCriticalExtension) => {
            "it has an unknown critical extension".to_owned()
        }
        Error::InvalidCertificate(Wrong::InvalidPurpose | Wrong::InvalidPurposeContext { .. }) => {
            "it is not meant for servers".to_owned()
        }
        Error::NoCertificatesPresented => "there is none".to_owned(),
        // Webpki's own errors; rustls has no name for some of them.
        Error::InvalidCertificate(Wrong::Other(why)) => match why.0.to_string().as_str() {
            "CaUsedAsEndEntity" => "it is a CA certificate (CA:TRUE), which a server may not use".to_owned(),
            other => other.to_owned(),
        },
        Error::InvalidCertificate(other) => other.to_string(),
        other => other.to_string(),
    })
}

/// The crawler's failure for a TLS error.
pub(in crate::fetch) fn failure_of(error: &Error) -> Failure {
    match error {
        Error::InvalidCertificate(Wrong::Expired | Wrong::ExpiredContext { .. }) => Failure::TlsExpired,
        Error::InvalidCertificate(Wrong::NotValidForName | Wrong::NotValidForNameContext { .. }) => Failure::TlsName,
        Error::InvalidCertificate(Wrong::UnknownIssuer) => Failure::TlsIssuer,
        Error::InvalidCertificate(Wrong::Other(why)) if why.0.is::<ChainTooLong>() => Failure::TlsChainTooLong,
        Error::InvalidCertificate(_) | Error::NoCertificatesPresented => Failure::TlsCertificate,
        Error::AlertReceived(Alert::ProtocolVersion)
        | Error::PeerIncompatible(
            PeerIncompatible::ServerDoesNotSupportTls12Or13 | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig,
        ) => Failure::TlsVersion,
        Error::AlertReceived(Alert::NoApplicationProtocol)
        | Error::PeerMisbehaved(PeerMisbehaved::SelectedUnofferedApplicationProtocol) => Failure::TlsNoHttp1,
        Error::AlertReceived(Alert::HandshakeFailure | Alert::InsufficientSecurity) | Error::PeerIncompatible(_) => {
            Failure::TlsNothingCommon
        }
        _ => Failure::TlsFailed,
    }
}
