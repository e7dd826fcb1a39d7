//! The key directory: the public keys, and the fields that sign its response.
//!
//! Decides: each key signs the response itself (draft-ietf-webbotauth-httpsig-protocol, "Possession Proof on the
//! Directory Response"), so no one can serve a copy under another name. The signatures are made with the file, and
//! hold for [`LIFETIME`]. That is much longer than the day after which they must be renewed: a directory without a
//! valid signature takes the keys away from all verifiers at once.
//! Leaves to others: serving it (`snippets`).

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::message::{Parameters, push_signature, push_signature_params, signature_base};
use ringcrawl_base::time::{Duration, UnixTime};
use ringcrawl_config::SigningKey;

/// How long the response's signatures hold.
pub const LIFETIME: Duration = Duration::from_secs(14 * 86_400);
/// Its media type.
const MEDIA_TYPE: &str = "application/http-message-signatures-directory+json";
/// How far `created` lies behind the clock; a verifier must refuse a signature from the future.
const BEHIND_SECONDS: u64 = 60;
const TAG: &str = "http-message-signatures-directory";

/// The directory, ready to be served.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Directory {
    /// A JWK Set (RFC 7517 section 5).
    pub(super) body: String,
    /// The fields of its response, with their values.
    pub(super) fields: [(&'static str, String); 5],
}

impl Directory {
    /// The directory of `keys`, for requests to `authority`.
    pub(super) fn new(keys: &[SigningKey], authority: &str, now: UnixTime) -> Directory {
        let jwks: Vec<_> = keys.iter().map(SigningKey::public_jwk).collect();
        let body = json!({ "keys": jwks }).to_string();
        let content_digest = content_digest(&body);
        let created = (now.as_micros() / 1_000_000).saturating_sub(BEHIND_SECONDS);
        let (mut inputs, mut signatures) = (String::new(), String::new());
        for (key, number) in keys.iter().zip(1..) {
            let parameters = Parameters { created, expires: created + LIFETIME.as_secs(), keyid: key.id(), tag: TAG };
            let (input, signature) = signed(key, authority, &content_digest, &parameters);
            let comma = if number > 1 { ", " } else { "" };
            inputs.push_str(&format!("{comma}sig{number}={input}"));
            signatures.push_str(&format!("{comma}sig{number}={signature}"));
        }
        let fields = [
            ("Content-Type", MEDIA_TYPE.to_owned()),
            // A coding would make different content, with another digest.
            ("Cache-Control", "max-age=86400, no-transform".to_owned()),
            ("Content-Digest", content_digest),
            ("Signature-Input", inputs),
            ("Signature", signatures),
        ];
        Directory { body, fields }
    }
}

/// The value of a label in Signature-Input and in Signature.
fn signed(key: &SigningKey, authority: &str, content_digest: &str, parameters: &Parameters<'_>) -> (String, String) {
    let components = [("\"@authority\";req", authority), ("\"content-digest\"", content_digest)];
    let (mut input, mut signature) = (String::new(), String::new());
    push_signature_params(&mut input, components.iter().map(|(identifier, _)| *identifier), parameters);
    push_signature(&mut signature, &key.sign(signature_base(&components, &input).as_bytes()));
    (input, signature)
}

/// Content-Digest of a body in no coding (RFC 9530 section 2).
fn content_digest(body: &str) -> String {
    format!("sha-256=:{}:", STANDARD.encode(digest::digest(&digest::SHA256, body.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::super::printed_key;
    use super::*;

    #[test]
    fn the_draft_s_vector() {
        // draft-ietf-webbotauth-httpsig-protocol, appendix "Signed Directory Response".
        let body = "{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"kid\":\"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U\",\
                    \"x\":\"JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs\",\"use\":\"sig\"}]}";
        let key = printed_key();
        let directory = Directory::new(&[key], "signature-agent.test", UnixTime::from_micros(1_800_000_000_000_000));
        assert_eq!(directory.body, body);
        let digest = "sha-256=:CADMT2aBdV/rqQr/NIru64ERQkCobVvllA4V0fLFDu0=:";
        assert_eq!(directory.fields[2], ("Content-Digest", digest.to_owned()));
        let key = printed_key();
        let parameters = Parameters { created: 1_735_689_600, expires: 4_889_289_600, keyid: key.id(), tag: TAG };
        let (input, signature) = signed(&key, "signature-agent.test", digest, &parameters);
        assert_eq!(
            input,
            "(\"@authority\";req \"content-digest\");created=1735689600;expires=4889289600\
             ;keyid=\"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U\";tag=\"http-message-signatures-directory\""
        );
        assert_eq!(
            signature,
            ":l6P8R67tm3kujAxbHWio7ll01qrEZ0dKD/WWlGhNYEmTnFZM8Wt0VQ9zqGfvo7T/UMkBxsigzChM1Gpz7gOVBg==:"
        );
        let made = format!(
            "sig1=(\"@authority\";req \"content-digest\");created=1799999940;expires=1801209540;keyid=\"{}\"",
            key.id()
        );
        assert!(directory.fields[3].1.starts_with(&made), "{}", directory.fields[3].1);
    }

    #[test]
    fn each_key_signs() {
        let keys = [SigningKey::generate(), SigningKey::generate()].map(|key| key.expect("random numbers"));
        let ids = [keys[0].id().to_owned(), keys[1].id().to_owned()];
        let directory = Directory::new(&keys, "bot.example", UnixTime::from_micros(1_800_000_000_000_000));
        for id in &ids {
            assert!(directory.body.contains(id) && directory.fields[3].1.contains(id));
        }
        assert_eq!(directory.fields[3].1.matches(", sig2=(").count(), 1);
        assert_eq!(directory.fields[4].1.matches(", sig2=:").count(), 1);
    }
}
