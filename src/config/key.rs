//! The key that requests and the key directory are signed with.
//!
//! Decides: only Ed25519 is supported (RFC 8032), as PEM of PKCS#8 (RFC 8410) or as a JWK (RFC 8037). For a key of
//! another kind, the error names that kind. The key printed in RFC 9421 is refused, because it is public.
//! Invariants: no text of a private key appears in an error, in `Debug`, or in what is published.
//! Leaves to others: where the text comes from and who may read the file (`config`), what is signed (`message`).

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::digest;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

/// A private key with its public half.
#[derive(Clone)]
pub struct SigningKey {
    pair: Arc<Ed25519KeyPair>,
    /// The public key as base64url without padding: `x` of its JWK.
    x: String,
    id: String,
}

impl SigningKey {
    /// Reads a private key from its text.
    ///
    /// # Errors
    /// Describes what is wrong without showing any of the text.
    pub fn parse(text: &str) -> Result<SigningKey, &'static str> {
        let text = text.trim();
        let pair = if text.starts_with('{') { from_jwk(text)? } else { from_pem(text)? };
        let key = SigningKey::new(pair);
        if key.id == PRINTED_KEY { Err("this is the published test key of RFC 9421") } else { Ok(key) }
    }

    /// A new key; `None`: the system returned no random numbers.
    pub fn generate() -> Option<SigningKey> {
        Ed25519KeyPair::generate().ok().map(SigningKey::new)
    }

    /// The key of a seed of 32 bytes (RFC 8032 section 5.1.5), which every holder of the seed has.
    pub fn from_seed(seed: &[u8]) -> Option<SigningKey> {
        Ed25519KeyPair::from_seed_unchecked(seed).ok().map(SigningKey::new)
    }

    fn new(pair: Ed25519KeyPair) -> SigningKey {
        let x = URL_SAFE_NO_PAD.encode(pair.public_key());
        let id = thumbprint(&x);
        SigningKey { pair: Arc::new(pair), x, id }
    }

    /// The key's name: the thumbprint of its public half (RFC 7638, RFC 8037 appendix A.3).
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The signature of `message` (RFC 9421 section 3.3.6).
    pub fn sign(&self, message: &[u8]) -> [u8; SIGNATURE_BYTES] {
        // Ed25519 signatures have one length.
        <[u8; SIGNATURE_BYTES]>::try_from(self.pair.sign(message).as_ref()).unwrap_or([0; SIGNATURE_BYTES])
    }

    /// The public half as a JWK, with its name.
    pub fn public_jwk(&self) -> Value {
        json!({ "kty": "OKP", "crv": "Ed25519", "kid": self.id, "x": self.x, "use": "sig" })
    }

    /// The key as PEM; `None`: it cannot be written. No such key is known.
    pub fn to_pem(&self) -> Option<String> {
        let der = self.pair.to_pkcs8v1().ok()?;
        Some(format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", STANDARD.encode(der.as_ref())))
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.id)
    }
}

/// Length of an Ed25519 signature (RFC 8032 section 5.1.6).
pub const SIGNATURE_BYTES: usize = 64;

/// The name of the key in RFC 9421 appendix B.1.4.
const PRINTED_KEY: &str = "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U";

/// SHA-256 of the members that a JWK must have, in the order of their names (RFC 7638 section 3.2).
fn thumbprint(x: &str) -> String {
    let members = format!("{{\"crv\":\"Ed25519\",\"kty\":\"OKP\",\"x\":\"{x}\"}}");
    URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, members.as_bytes()))
}

fn from_jwk(text: &str) -> Result<Ed25519KeyPair, &'static str> {
    let jwk: Value =
        serde_json::from_str(text).map_err(|_| "it begins like a JWK but is not JSON; expected an Ed25519 key")?;
    let member = |name: &str| jwk.get(name).and_then(Value::as_str);
    match (member("kty"), member("crv")) {
        (Some("OKP"), Some("Ed25519")) => {}
        (Some("OKP"), Some("X25519" | "X448")) => {
            return Err("this is a key-agreement key (X25519 or X448); expected an Ed25519 key");
        }
        (Some("OKP"), Some("Ed448")) => return Err("this is an Ed448 key; expected an Ed25519 key"),
        (Some("EC"), _) => return Err("this is an EC key (ECDSA); expected an Ed25519 key"),
        (Some("RSA"), _) => return Err("this is an RSA key; expected an Ed25519 key"),
        (Some("oct"), _) => return Err("this is a shared secret (kty \"oct\"); expected an Ed25519 key"),
        _ if jwk.get("keys").is_some() => return Err("this is a set of keys; expected an Ed25519 key"),
        _ => return Err("this JWK is of another kind; expected an Ed25519 key"),
    }
    let bytes = |name: &str| member(name).and_then(|text| URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok());
    if jwk.get("d").is_none() {
        return Err("this is a public key (the JWK has no \"d\"); expected an Ed25519 key with its private half");
    }
    let public = bytes("x").ok_or("the JWK has no \"x\" in base64url")?;
    let seed = bytes("d").ok_or("the JWK's \"d\" is not base64url")?;
    Ed25519KeyPair::from_seed_and_public_key(&seed, &public)
        .map_err(|_| "the JWK's \"d\" and \"x\" do not belong together")
}

fn from_pem(text: &str) -> Result<Ed25519KeyPair, &'static str> {
    let (_, rest) = text.split_once("-----BEGIN ").ok_or("this is neither PEM nor a JWK; expected an Ed25519 key")?;
    let (label, rest) = rest.split_once("-----").ok_or("this is neither PEM nor a JWK; expected an Ed25519 key")?;
    match label {
        "PRIVATE KEY" => {}
        "ENCRYPTED PRIVATE KEY" => {
            return Err(
                "this key is encrypted, and ringcrawl cannot ask for its password; expected an unencrypted Ed25519 key",
            );
        }
        "RSA PRIVATE KEY" => return Err("this is an RSA key; expected an Ed25519 key"),
        "EC PRIVATE KEY" | "EC PARAMETERS" => return Err("this is an EC key (ECDSA); expected an Ed25519 key"),
        "OPENSSH PRIVATE KEY" => {
            return Err("this key is in OpenSSH format; expected an Ed25519 key in PEM or JWK");
        }
        "PUBLIC KEY" => return Err("this is a public key; expected an Ed25519 key that is private"),
        "CERTIFICATE" => return Err("this is a certificate; expected an Ed25519 key"),
        _ => return Err("this PEM is of another kind; expected an Ed25519 key"),
    }
    let (body, _) =
        rest.split_once("-----END PRIVATE KEY-----").ok_or("the PEM has no end; expected an Ed25519 key, whole")?;
    let body: String = body.split_ascii_whitespace().collect();
    let der = STANDARD.decode(body).map_err(|_| "the PEM is not base64; expected an Ed25519 key")?;
    // The algorithm is named at the beginning: PrivateKeyInfo of RFC 5958 section 2.
    let head = der.get(..der.len().min(40)).unwrap_or_default();
    let is_of = |oid: &[u8]| memchr::memmem::find(head, oid).is_some();
    if !is_of(OID_ED25519) {
        let other = KINDS.iter().find(|(oid, _)| is_of(oid));
        return Err(other.map_or("this key is of another kind; expected an Ed25519 key", |(_, name)| name));
    }
    Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).map_err(|_| "the key is damaged; expected an Ed25519 key")
}

/// `id-Ed25519` in DER (RFC 8410 section 3).
const OID_ED25519: &[u8] = b"\x06\x03\x2b\x65\x70";

/// Other kinds of private keys, by their object identifiers in DER (RFC 8410 section 3, RFC 5480 section 2.1.1, RFC
/// 8017 appendix C, FIPS 204 by RFC 9881 section 2).
const KINDS: [(&[u8], &str); 7] = [
    (b"\x06\x03\x2b\x65\x6e", "this is an X25519 key, which cannot sign; expected an Ed25519 key"),
    (b"\x06\x03\x2b\x65\x6f", "this is an X448 key, which cannot sign; expected an Ed25519 key"),
    (b"\x06\x03\x2b\x65\x71", "this is an Ed448 key; expected an Ed25519 key"),
    (b"\x06\x07\x2a\x86\x48\xce\x3d\x02\x01", "this is an EC key (ECDSA); expected an Ed25519 key"),
    (b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01", "this is an RSA key; expected an Ed25519 key"),
    (b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0a", "this is an RSA key (PSS); expected an Ed25519 key"),
    (b"\x06\x09\x60\x86\x48\x01\x65\x03\x04\x03", "this is an ML-DSA key; expected an Ed25519 key"),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8037 appendix A.1.
    const JWK: &str = r#"{"kty":"OKP","crv":"Ed25519","d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A",
        "x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;
    /// RFC 8410 section 10.3.
    const PEM: &str = "-----BEGIN PRIVATE KEY-----\n\
        MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n";

    #[test]
    fn the_rfcs_keys() {
        // RFC 8037 appendix A.3 and A.4: the signature there covers the payload.
        let key = SigningKey::parse(JWK).expect("a key");
        assert_eq!(key.id(), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
        let signed = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
        assert_eq!(
            URL_SAFE_NO_PAD.encode(key.sign(signed.as_bytes())),
            "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"
        );
        let key = SigningKey::parse(&format!("a comment\n{PEM}")).expect("a key");
        assert_eq!(key.to_pem().as_deref(), Some(PEM));
        // The public key there.
        assert_eq!(key.public_jwk()["x"], "Gb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE");
        assert!(!key.public_jwk().to_string().contains("\"d\""), "the private half");
        let seed = URL_SAFE_NO_PAD.decode("n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU").expect("base64url");
        assert_eq!(SigningKey::from_seed(&seed).expect("a seed").id(), PRINTED_KEY);
    }

    #[test]
    fn new_keys_differ_and_read_back() {
        let [one, other] = [SigningKey::generate(), SigningKey::generate()].map(|key| key.expect("random numbers"));
        assert_ne!(one.id(), other.id());
        let again = SigningKey::parse(&one.to_pem().expect("PEM")).expect("a key");
        assert_eq!((again.id(), again.sign(b"a")), (one.id(), one.sign(b"a")));
    }

    #[test]
    fn other_keys_are_named_and_no_text_is_shown() {
        let pem = |label: &str, body: &str| format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n");
        let der =
            |oid: &[u8]| pem("PRIVATE KEY", &STANDARD.encode([b"0\x53\x02\x01\x000\x10", oid, &[7; 60]].concat()));
        let jwk = |members: &str| format!("{{{members}}}");
        for (text, word) in [
            (String::new(), "neither PEM nor a JWK"),
            ("hunter2".to_owned(), "neither PEM nor a JWK"),
            ("-----BEGIN hunter2".to_owned(), "neither PEM nor a JWK"),
            (pem("hunter2", ""), "another kind"),
            (pem("RSA PRIVATE KEY", "hunter2"), "an RSA key"),
            (pem("EC PRIVATE KEY", "hunter2"), "ECDSA"),
            (pem("ENCRYPTED PRIVATE KEY", "hunter2"), "encrypted"),
            (pem("OPENSSH PRIVATE KEY", "hunter2"), "OpenSSH"),
            (pem("PUBLIC KEY", "hunter2"), "a public key"),
            (pem("CERTIFICATE", "hunter2"), "a certificate"),
            (pem("PRIVATE KEY", "hunter2!"), "not base64"),
            (pem("PRIVATE KEY", ""), "another kind"),
            ("-----BEGIN PRIVATE KEY-----\nhunter2".to_owned(), "no end"),
            (der(b"\x06\x03\x2b\x65\x70"), "damaged"),
            (der(b"\x06\x03\x2b\x65\x6e"), "X25519"),
            (der(b"\x06\x03\x2b\x65\x71"), "Ed448"),
            (der(b"\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08"), "ECDSA"),
            (der(b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01"), "RSA"),
            ("{hunter2".to_owned(), "not JSON"),
            (jwk("\"keys\":[\"hunter2\"]"), "a set of keys"),
            (jwk("\"kty\":\"EC\",\"crv\":\"P-256\",\"d\":\"hunter2\""), "ECDSA"),
            (jwk("\"kty\":\"RSA\",\"d\":\"hunter2\""), "RSA"),
            (jwk("\"kty\":\"oct\",\"k\":\"hunter2\""), "shared secret"),
            (jwk("\"kty\":\"OKP\",\"crv\":\"X25519\",\"d\":\"hunter2\""), "X25519"),
            (jwk("\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"d\":\"hunter2\""), "no \"x\""),
            (jwk("\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"hunter2\""), "a public key"),
            (jwk("\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"AAAA\",\"d\":\"!\""), "not base64url"),
            (JWK.replace("nWG", "nWH"), "do not belong together"),
            (
                jwk("\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"d\":\"n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU\",\
                     \"x\":\"JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs\""),
                "test key of RFC 9421",
            ),
        ] {
            let error = SigningKey::parse(&text).map(|_| ()).expect_err(&text);
            assert!(error.contains(word) && !error.contains("hunter2"), "{text}: {error}");
            let is_of_one = ["no \"x\"", "not base64url", "do not belong together", "test key"]
                .contains(&word.trim_end_matches(" of RFC 9421"));
            assert!(is_of_one || error.contains("; expected an "), "{error}");
        }
    }
}
