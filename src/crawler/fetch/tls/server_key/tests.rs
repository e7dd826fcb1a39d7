//! Certificates that rustls-webpki does not read, in whole handshakes.

use std::sync::Arc;

use rcgen::{CertificateParams, CustomExtension, KeyPair, SigningKey};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};

use super::super::tests::{BOTH, TLS12, client, handshake, root, server};
use ringcrawl_base::Failure;
use ringcrawl_config::Certificates;

fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let length = u16::try_from(content.len()).expect("short");
    [&[tag, 0x82], &length.to_be_bytes()[..], &content].concat()
}

/// The elements of a sequence, whole.
fn elements(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let (head, length) = match bytes[1] {
            0x81 => (3, usize::from(bytes[2])),
            0x82 => (4, usize::from(bytes[2]) << 8 | usize::from(bytes[3])),
            short => (2, usize::from(short)),
        };
        let (element, rest) = bytes.split_at(head + length);
        all.push(element);
        bytes = rest;
    }
    all
}

fn content(element: &[u8]) -> &[u8] {
    let head = match element[1] {
        0x81 => 3,
        0x82 => 4,
        _ => 2,
    };
    &element[head..]
}

/// The certificate, signed again with the fields that `change` returns.
fn changed(
    certificate: &[u8],
    key: &KeyPair,
    change: impl FnOnce(Vec<&[u8]>) -> Vec<Vec<u8>>,
) -> CertificateDer<'static> {
    let parts = elements(content(certificate));
    let fields = change(elements(content(parts[0])));
    let fields: Vec<&[u8]> = fields.iter().map(Vec::as_slice).collect();
    let signed = der(0x30, &fields);
    let signature = key.sign(&signed).expect("a signature");
    der(0x30, &[&signed, parts[1], &der(0x03, &[&[0], &signature])]).into()
}

fn owned(fields: Vec<&[u8]>) -> Vec<Vec<u8>> {
    fields.into_iter().map(<[u8]>::to_vec).collect()
}

/// Certificates of versions 1 and 2, with an unknown extension, and with a broken one.
fn odd_certificates(key: &KeyPair) -> Vec<(&'static str, CertificateDer<'static>)> {
    let mut params = CertificateParams::new(vec!["www.example.test".to_owned()]).expect("names");
    let plain = params.self_signed(key).expect("a certificate").der().to_vec();
    let mut extension = CustomExtension::from_oid_content(&[1, 2, 3, 4], vec![5, 0]);
    extension.set_criticality(true);
    params.custom_extensions.push(extension);
    let critical = params.self_signed(key).expect("a certificate").der().clone();
    // Version first, extensions last.
    let first = changed(&plain, key, |fields| owned(fields[1..fields.len() - 1].to_vec()));
    let second = changed(&plain, key, |fields| {
        let version = vec![0xa0, 3, 0x02, 1, 1];
        std::iter::once(version).chain(owned(fields[1..fields.len() - 1].to_vec())).collect()
    });
    let broken = changed(&plain, key, |fields| {
        let (_, kept) = fields.split_last().expect("fields");
        owned(kept.to_vec()).into_iter().chain([vec![0xa3, 4, 0x30, 2, 0x30, 9]]).collect()
    });
    vec![("version 1", first), ("version 2", second), ("critical extension", critical), ("broken extension", broken)]
}

/// The certificate's fault is recorded, and a server without its key is refused all the same.
#[test]
fn what_cannot_be_read_is_recorded_and_its_key_counts() {
    let root = root();
    for algorithm in
        [&rcgen::PKCS_ECDSA_P256_SHA256, &rcgen::PKCS_ECDSA_P384_SHA384, &rcgen::PKCS_ED25519, &rcgen::PKCS_RSA_SHA256]
    {
        let [key, other] = [(); 2].map(|()| KeyPair::generate_for(algorithm).expect("a key"));
        for (what, certificate) in odd_certificates(&key) {
            for versions in [BOTH, TLS12] {
                for (signer, holds_key) in [(&key, true), (&other, false)] {
                    let signer = PrivateKeyDer::Pkcs8(signer.serialize_der().into());
                    let signer = rustls::crypto::aws_lc_rs::sign::any_supported_type(&signer).expect("a key");
                    let shown = CertifiedKey::new(vec![certificate.clone()], signer);
                    let mut config = server(&root, &["www.example.test"], 86_400, versions);
                    config.cert_resolver = Arc::new(SingleCertAndKey::from(shown));
                    let config = Arc::new(config);
                    let (recording, _) = client(&root, |tls| tls.certificates = Certificates::Record);
                    // In a full handshake and in a resumed one.
                    for round in 0..2 {
                        match handshake(&recording, &config, "www.example.test") {
                            Ok((info, _)) => {
                                let fault = info.certificate_error.expect("a fault");
                                assert!(holds_key && !fault.contains("not checked"), "{what}, {round}: {fault}");
                            }
                            Err(failure) => {
                                assert!(
                                    !holds_key && failure == Failure::TlsCertificate,
                                    "{what}, {round}: {failure:?}"
                                );
                            }
                        }
                    }
                    let (strict, _) = client(&root, |_| ());
                    let refused = handshake(&strict, &config, "www.example.test").err();
                    assert!(
                        matches!(refused, Some(Failure::TlsCertificate | Failure::TlsIssuer)),
                        "{what}: {refused:?}"
                    );
                }
            }
        }
    }
}

/// A key that cannot be read proves nothing: that is reported.
#[test]
fn what_cannot_be_checked_is_said_to_be_so() {
    let root = root();
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec!["www.example.test".to_owned()]).expect("names");
    let plain = params.self_signed(&key).expect("a certificate").der().to_vec();
    let with_key = |new: Vec<u8>| {
        changed(&plain, &key, |fields| {
            let mut fields = owned(fields);
            fields[6] = new;
            fields
        })
    };
    // An unknown algorithm, RSA of 512 bits, and no key at all.
    let unknown = der(0x30, &[&[0x30, 4, 0x06, 2, 0x2a, 3], &[0x03, 2, 0, 7]]);
    let rsa = [0x30, 13, 0x06, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1, 5, 0];
    let numbers = der(0x30, &[&[0x02, 65, 0], &[0xff; 64], &[0x02, 1, 3]]);
    let short = der(0x30, &[&rsa, &der(0x03, &[&[0], &numbers])]);
    for (new, why) in [(unknown, "not supported"), (short, "512 bits"), (vec![0x04, 0], "no readable key")] {
        let certificate = with_key(new);
        let signer = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let signer = rustls::crypto::aws_lc_rs::sign::any_supported_type(&signer).expect("a key");
        let mut config = server(&root, &["www.example.test"], 86_400, BOTH);
        config.cert_resolver = Arc::new(SingleCertAndKey::from(CertifiedKey::new(vec![certificate], signer)));
        let (recording, _) = client(&root, |tls| tls.certificates = Certificates::Record);
        let (info, _) = handshake(&recording, &Arc::new(config), "www.example.test").expect("a handshake");
        let fault = info.certificate_error.expect("a fault");
        assert!(fault.contains("not checked") && fault.contains(why), "{why}: {fault}");
    }
}
