//! What is remembered, what is not, and a random comparison with rustls's own verifier.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;

use super::super::pki::{Authority, at, authority, der, leaf, roots};
use super::*;
use ringcrawl_base::Rng;

/// Some noon.
const NOW: u64 = 1_800_000_000;
const DAY: u64 = 86_400;
const LONG: (u64, u64) = (NOW - 1_000 * DAY, NOW + 1_000 * DAY);

fn chains(authorities: &[&Authority], max: usize) -> Chains {
    Chains::new(roots(authorities), algorithms(), max)
}

fn algorithms() -> WebPkiSupportedAlgorithms {
    rustls::crypto::aws_lc_rs::default_provider().signature_verification_algorithms
}

fn name(name: &str) -> ServerName<'static> {
    ServerName::try_from(name.to_owned()).expect("a name")
}

/// Judged for `www.example.test`.
fn judge(chains: &Chains, chain: &[CertificateDer<'static>], seconds: u64) -> Result<bool, rustls::Error> {
    chains.judge(&chain[0], &chain[1..], &name("www.example.test"), at(seconds))
}

fn is_expired(result: &Result<bool, rustls::Error>) -> bool {
    matches!(result, Err(rustls::Error::InvalidCertificate(CertificateError::ExpiredContext { .. })))
}

fn is_unknown(result: &Result<bool, rustls::Error>) -> bool {
    matches!(result, Err(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)))
}

#[test]
fn a_chain_is_remembered_and_a_name_is_not() {
    let root = authority("root", LONG, None);
    let between = authority("between", LONG, Some(&root));
    let (end, _) = leaf(&["*.example.test", "other.test"], LONG, &between);
    let chains = chains(&[&root], 8);
    // A wrong name: the chain is valid all the same, and the name stays wrong.
    let of = |host: &str| chains.judge(&end, &[der(&between)], &name(host), at(NOW));
    for _ in 0..2 {
        let refused = of("www.stranger.test");
        assert!(
            matches!(refused, Err(rustls::Error::InvalidCertificate(CertificateError::NotValidForNameContext { .. }))),
            "{refused:?}"
        );
    }
    for host in ["www.example.test", "a.example.test", "other.test"] {
        assert_eq!(of(host), Ok(true), "{host}");
    }
    assert!(of("a.b.example.test").is_err() && of("127.0.0.1").is_err());
}

#[test]
fn what_expires_while_remembered_is_refused() {
    // Each of the certificates in turn is the first to expire, and the last to become valid.
    let short = (NOW - DAY, NOW + DAY);
    for which in 0..3 {
        let span = |index| if which == index { short } else { LONG };
        let root = authority("root", LONG, None);
        let upper = authority("upper", span(2), Some(&root));
        let lower = authority("lower", span(1), Some(&upper));
        let (end, _) = leaf(&["www.example.test"], span(0), &lower);
        let chain = [end, der(&lower), der(&upper)];
        let chains = chains(&[&root], 8);
        assert_eq!(judge(&chains, &chain, NOW), Ok(false));
        assert_eq!(judge(&chains, &chain, NOW + DAY), Ok(true));
        for _ in 0..2 {
            assert!(is_expired(&judge(&chains, &chain, NOW + DAY + 1)), "{which}");
            let early = judge(&chains, &chain, NOW - DAY - 1);
            assert!(
                matches!(early, Err(rustls::Error::InvalidCertificate(CertificateError::NotValidYetContext { .. }))),
                "{which}: {early:?}"
            );
        }
        assert_eq!(judge(&chains, &chain, NOW - DAY), Ok(true));
    }
}

#[test]
fn what_was_refused_is_never_good() {
    let root = authority("root", LONG, None);
    let stranger = authority("root", LONG, None);
    let (end, _) = leaf(&["www.example.test"], LONG, &root);
    let (forged, _) = leaf(&["www.example.test"], LONG, &stranger);
    let (expired, _) = leaf(&["www.example.test"], (NOW - 9, NOW - 1), &root);
    let chains = chains(&[&root], 8);
    for _ in 0..3 {
        assert!(judge(&chains, std::slice::from_ref(&forged), NOW).is_err());
        assert!(is_expired(&judge(&chains, std::slice::from_ref(&expired), NOW)));
        assert!(
            chains.judge(&CertificateDer::from(b"junk".as_slice()), &[], &name("www.example.test"), at(NOW)).is_err()
        );
    }
    assert_eq!(lock(&chains.verified).len(), 0);
    assert_eq!(judge(&chains, &[end], NOW), Ok(false));
    assert_eq!(lock(&chains.verified).len(), 1);
}

fn is_too_long(result: &Result<bool, rustls::Error>) -> bool {
    matches!(result, Err(error) if super::super::failure_of(error) == ringcrawl_base::Failure::TlsChainTooLong)
}

/// Many certificates, many bytes, or many with one name: none of them is verified, and nothing is remembered.
#[test]
fn decoys_cost_nothing() {
    let root = authority("root", LONG, None);
    let decoys: Vec<_> = (0..3)
        .scan(authority("decoy", LONG, Some(&root)), |last, _| {
            *last = authority("decoy", LONG, Some(last));
            Some(der(last))
        })
        .collect();
    let last = authority("decoy", LONG, None);
    let (end, _) = leaf(&["www.example.test"], LONG, &last);
    for (count, is_refused) in [(1, false), (2, false), (3, true), (9, true), (10, true), (40, true), (150, true)] {
        let chains = chains(&[&root], 8);
        let chain: Vec<_> = [end.clone()].into_iter().chain(decoys.iter().cycle().take(count).cloned()).collect();
        let begun = std::time::Instant::now();
        let verdict = judge(&chains, &chain, NOW);
        println!("{count} decoys: {:?}", begun.elapsed());
        assert_eq!(is_too_long(&verdict), is_refused, "{count}: {verdict:?}");
        assert_eq!(lock(&chains.refused).len(), usize::from(!is_refused), "{count}");
    }
    let long = CertificateDer::from(vec![0; CHAIN_BYTES_MAX]);
    assert!(is_too_long(&judge(&chains(&[&root], 8), &[end, long], NOW)));
}

/// Remaining steps of a chain in order, of one with a cross-signed certificate, and of layers of certificates with
/// the same name.
#[test]
fn steps_are_counted_by_names() {
    let root = authority("root", LONG, None);
    let mut signers = vec![authority("1", LONG, Some(&root))];
    for name in ["2", "3", "4", "5", "6", "7", "8", "9"] {
        signers.push(authority(name, LONG, signers.last()));
    }
    let (end, _) = leaf(&["www.example.test"], LONG, &signers[8]);
    let all: Vec<_> = signers.iter().map(der).collect();
    assert_eq!(steps(&end, &all), 9);
    assert_eq!(steps(&end, &all[..8]), 0, "its signer is missing");
    let crossed = authority("1", LONG, Some(&authority("old", LONG, None)));
    let (end, _) = leaf(&["www.example.test"], LONG, &signers[1]);
    assert_eq!(steps(&end, &[der(&signers[1]), der(&signers[0]), der(&crossed)]), 3);
    let layers = [&signers[1], &signers[1], &signers[1], &signers[0], &signers[0], &signers[0]].map(der);
    assert_eq!(steps(&end, &layers), 3 + 3 * 3);
    let wider: Vec<_> = layers.into_iter().chain([der(&signers[0])]).collect();
    assert_eq!(steps(&end, &wider), STEPS_MAX + 1, "counted no further");
}

#[test]
fn a_refusal_is_remembered_for_a_while() {
    let (root, stranger) = (authority("root", LONG, None), authority("stranger", LONG, None));
    let (end, _) = leaf(&["www.example.test"], LONG, &stranger);
    let chains = chains(&[&root], 8);
    let chain = [end.clone()];
    let digest = digest(&end, &[]);
    for (seconds, is_remembered) in [(0, true), (REFUSAL_SECS - 1, true), (REFUSAL_SECS, false)] {
        assert!(is_unknown(&judge(&chains, &chain, NOW)));
        assert_eq!(chains.is_refused(&digest, at(NOW + seconds)), is_remembered, "{seconds}");
    }
    assert!(!chains.is_refused(&digest, at(NOW - 1)), "a clock that was set back");
    for _ in 0..20 {
        assert!(is_unknown(&judge(&chains, &[leaf(&["www.example.test"], LONG, &stranger).0], NOW)));
    }
    assert_eq!(lock(&chains.refused).len(), 8);
}

#[test]
fn every_byte_of_a_chain_counts() {
    let root = authority("root", LONG, None);
    let between = authority("between", LONG, Some(&root));
    let namesake = authority("between", LONG, Some(&root));
    let (end, _) = leaf(&["www.example.test"], LONG, &between);
    let chains = chains(&[&root], 8);
    let chain = [end.clone(), der(&between)];
    assert_eq!(judge(&chains, &chain, NOW), Ok(false));
    assert_eq!(judge(&chains, &chain, NOW), Ok(true));
    // Without its intermediate, with another of the same name, with a changed byte anywhere in it.
    assert!(is_unknown(&judge(&chains, &chain[..1], NOW)));
    assert!(judge(&chains, &[end.clone(), der(&namesake)], NOW).is_err());
    for at in 0..chain[1].len() {
        let mut bytes = chain[1].to_vec();
        bytes[at] ^= 1;
        assert_ne!(judge(&chains, &[end.clone(), bytes.into()], NOW), Ok(true), "{at}");
    }
    let mut changed = end.to_vec();
    *changed.last_mut().expect("a byte") ^= 1;
    assert!(judge(&chains, &[changed.into(), der(&between)], NOW).is_err());
    // The boundary between two certificates is elsewhere.
    let joined = [end.as_ref(), chain[1].as_ref()].concat();
    let (left, right) = joined.split_at(end.len() + 1);
    let (left, right) = (CertificateDer::from(left.to_vec()), CertificateDer::from(right.to_vec()));
    assert_ne!(digest(&left, &[right]), digest(&end, &chain[1..]));
    assert_ne!(digest(&joined.into(), &[]), digest(&end, &chain[1..]));
}

#[test]
fn what_is_no_part_of_the_way_does_not_count() {
    let root = authority("root", LONG, None);
    let between = authority("between", LONG, Some(&root));
    let cross = authority("cross", (NOW - 9 * DAY, NOW - 1), None);
    let soon = authority("soon", (NOW - 9 * DAY, NOW + 9), None);
    let (end, _) = leaf(&["www.example.test"], LONG, &between);
    let chains = chains(&[&root], 8);
    // Expired long ago: it does not matter.
    let chain = [end.clone(), der(&between), der(&cross)];
    assert_eq!([judge(&chains, &chain, NOW), judge(&chains, &chain, NOW + DAY)], [Ok(false), Ok(true)]);
    // Expires soon, and may be on the path: verified again, and still valid.
    let chain = [end.clone(), der(&between), der(&soon)];
    assert_eq!([judge(&chains, &chain, NOW), judge(&chains, &chain, NOW + 9)], [Ok(false), Ok(true)]);
    assert_eq!([judge(&chains, &chain, NOW + 10), judge(&chains, &chain, NOW + 10)], [Ok(false), Ok(true)]);
    // Unreadable: not remembered.
    let chain = [end, der(&between), CertificateDer::from(b"junk".as_slice())];
    assert_eq!([judge(&chains, &chain, NOW), judge(&chains, &chain, NOW)], [Ok(false), Ok(false)]);
}

#[test]
fn no_more_are_remembered_than_the_bound() {
    let root = authority("root", LONG, None);
    let ends: Vec<_> = (0..6).map(|_| [leaf(&["www.example.test"], LONG, &root).0]).collect();
    for max in [0, 1, 4] {
        let chains = chains(&[&root], max);
        for end in ends.iter().chain(&ends) {
            assert!(judge(&chains, end, NOW).is_ok());
            assert_eq!(judge(&chains, end, NOW), Ok(max > 0));
            assert!(lock(&chains.verified).len() <= max);
        }
    }
}

/// Chains of right and wrong parts in any order, checked repeatedly at any time and for any name.
#[test]
fn nothing_is_judged_otherwise_than_by_rustls() {
    let spans = [LONG, (NOW - DAY, NOW + DAY), (NOW - 9 * DAY, NOW - DAY), (NOW + DAY, NOW + 9 * DAY)];
    let (root, second, stranger) =
        (authority("root", LONG, None), authority("second", LONG, None), authority("root", LONG, None));
    let mut issuers = Vec::new();
    for signer in [&root, &second, &stranger] {
        issuers.extend(spans.map(|span| authority("between", span, Some(signer))));
    }
    let deeper: Vec<_> = issuers.iter().step_by(3).map(|signer| authority("deeper", LONG, Some(signer))).collect();
    issuers.extend(deeper);
    let mut ends = Vec::new();
    for (index, signer) in issuers.iter().chain([&root, &stranger]).enumerate() {
        let span = spans[index % 2 * 2 * (index % 3 / 2)];
        ends.push((leaf(&["www.example.test", "*.wild.test"], span, signer).0, index));
    }
    let twin = WebPkiServerVerifier::builder_with_provider(
        Arc::new(roots(&[&root, &second])),
        Arc::new(rustls::crypto::aws_lc_rs::default_provider()),
    )
    .build()
    .expect("roots");
    let chains = chains(&[&root, &second], 12);
    let names = ["www.example.test", "a.wild.test", "wild.test", "stranger.test", "127.0.0.1"].map(name);
    let seed = 0x7150_0001;
    let mut rng = Rng::new(seed);
    let (mut remembered, mut verified, mut refused) = (0, 0, 0);
    for round in 0..3_000 {
        // Mostly the end's own issuers, so that chains recur; otherwise any.
        let (end, index) = &ends[rng.below(ends.len() as u64) as usize];
        let mut intermediates: Vec<_> = issuers.get(*index).map(der).into_iter().collect();
        intermediates.extend(index.checked_sub(12).and_then(|deep| issuers.get(deep * 3)).map(der));
        if rng.below(4) == 0 {
            intermediates.push(der(&issuers[rng.below(issuers.len() as u64) as usize]));
        }
        if rng.below(8) == 0 {
            intermediates.reverse();
            intermediates.pop();
        }
        let seconds = if rng.below(2) == 0 { NOW } else { NOW - 12 * DAY + rng.below(24 * DAY) };
        let name = &names[rng.below(8).saturating_sub(3) as usize];
        let ours = chains.judge(end, &intermediates, name, at(seconds));
        let theirs = twin.verify_server_cert(end, &intermediates, name, &[], at(seconds));
        assert_eq!(
            format!("{:?}", ours.as_ref().map(|_| ())),
            format!("{:?}", theirs.as_ref().map(|_| ())),
            "seed {seed:#x}, round {round}"
        );
        match ours {
            Ok(true) => remembered += 1,
            Ok(false) => verified += 1,
            Err(_) => refused += 1,
        }
        assert!(lock(&chains.verified).len() <= 12);
    }
    assert!(remembered > 300 && verified > 50 && refused > 500, "{remembered} {verified} {refused}");
}
