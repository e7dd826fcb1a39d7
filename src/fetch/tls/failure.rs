//! What went wrong in TLS, as one of the crawler's failures.
//!
//! Decides: an alert is the server's own word for what is wrong (RFC 8446 section 6.2) and is believed. A server that
//! chooses what was not offered is one that can nothing else.
//! Limits: `handshake_failure` is what a server says for many reasons; that it found nothing in common is the commonest.

use rustls::{AlertDescription as Alert, CertificateError as Wrong, Error, PeerIncompatible, PeerMisbehaved};

use super::chains::ChainTooLong;
use crate::outcome::Failure;

/// The failure that a TLS error is.
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
