//! HTTP Message Signatures (RFC 9421): what is signed, and what the fields contain.
//!
//! Decides: the order of parameters, which a verifier takes as it finds it: created, expires, keyid, tag. No `alg`,
//! because the key implies it (section 3.2, step 6); no `nonce`, because a signature is used for many requests.
//! Invariants: pure; what is signed is what the fields say, since both are made from the same text.
//! Limits: one signature a field here; components are given as serialized text (section 2.1).
//! Leaves to others: which components (`signer`, `directory`), the key (`key`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use ringcrawl_config::SIGNATURE_BYTES;

/// A component: its identifier as it stands in Signature-Input, quotes and parameters included, and its value.
pub(super) type Component<'a> = (&'a str, &'a str);

/// The parameters of a signature in addition to its components (RFC 9421 section 2.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Parameters<'a> {
    /// Seconds since 1970.
    pub(super) created: u64,
    /// Seconds since 1970.
    pub(super) expires: u64,
    /// The key's name.
    pub(super) keyid: &'a str,
    /// Which protocol it is for.
    pub(super) tag: &'a str,
}

/// The value of `@signature-params`, which is the label's value in Signature-Input too: components and parameters.
pub(super) fn push_signature_params<'a>(
    text: &mut String,
    identifiers: impl Iterator<Item = &'a str>,
    parameters: &Parameters<'_>,
) {
    let Parameters { created, expires, keyid, tag } = parameters;
    text.push('(');
    for (index, identifier) in identifiers.enumerate() {
        if index > 0 {
            text.push(' ');
        }
        text.push_str(identifier);
    }
    text.push_str(");created=");
    push_number(text, *created);
    text.push_str(";expires=");
    push_number(text, *expires);
    for (name, value) in [(";keyid=", keyid), (";tag=", tag)] {
        text.push_str(name);
        text.push('"');
        text.push_str(value);
        text.push('"');
    }
}

/// The signature base (RFC 9421 section 2.5): what is signed.
pub(super) fn signature_base(components: &[Component<'_>], signature_params: &str) -> String {
    let mut base = String::with_capacity(512);
    for (identifier, value) in components {
        base.push_str(identifier);
        base.push_str(": ");
        base.push_str(value);
        base.push('\n');
    }
    base.push_str("\"@signature-params\": ");
    base.push_str(signature_params);
    base
}

/// A label's value in Signature: a byte sequence (RFC 9651 section 3.3.5).
pub(super) fn push_signature(text: &mut String, signature: &[u8; SIGNATURE_BYTES]) {
    text.push(':');
    STANDARD.encode_string(signature, text);
    text.push(':');
}

/// Appends a number without the formatter: this is on the page path.
fn push_number(text: &mut String, number: u64) {
    let mut digits = [0; 20];
    let (mut rest, mut length) = (number, 0);
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        (rest, length) = (rest / 10, length + 1);
        if rest == 0 {
            break;
        }
    }
    let start = digits.len() - length;
    text.extend(digits.get(start..).unwrap_or_default().iter().map(|digit| char::from(*digit)));
}

#[cfg(test)]
mod tests {
    use super::super::printed_key;
    use super::*;

    /// A component and parameters as one text, signed with the printed key.
    fn signed(components: &[Component<'_>], signature_params: &str) -> String {
        let mut text = String::new();
        push_signature(&mut text, &printed_key().sign(signature_base(components, signature_params).as_bytes()));
        text
    }

    #[test]
    fn the_rfc_s_vector() {
        // RFC 9421 appendix B.2.6.
        let components = [
            ("\"date\"", "Tue, 20 Apr 2021 02:07:55 GMT"),
            ("\"@method\"", "POST"),
            ("\"@path\"", "/foo"),
            ("\"@authority\"", "example.com"),
            ("\"content-type\"", "application/json"),
            ("\"content-length\"", "18"),
        ];
        let params = "(\"date\" \"@method\" \"@path\" \"@authority\" \"content-type\" \"content-length\")\
                      ;created=1618884473;keyid=\"test-key-ed25519\"";
        assert_eq!(
            signed(&components, params),
            ":wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==:"
        );
    }

    #[test]
    fn the_drafts_vectors() {
        // draft-ietf-webbotauth-httpsig-protocol, appendix "EdDSA Using Curve edwards25519": dictionary, then string.
        let agent = "\"https://signature-agent.test\"";
        for (identifier, expires, nonce, signature) in [
            (
                "\"signature-agent\";key=\"agent2\"",
                "4889289600",
                "n9p433xm+NJ3ph3upfBIGmsuwHw387YV7Q/F+6BSpGCVjYCqQw6rznNA8PVVLySrAWsv0hQtFioQb6E1YsauiA==",
                ":RdNFx5Bj6au3YgAMQL/RzmUlZE8QZLIaXGRpw985hWnwPfMxT228NMk6ehRS1PSl4e8PhbNZACSanGdhEwYCCg==:",
            ),
            (
                "\"signature-agent\"",
                "1735693200",
                "e8N7S2MFd/qrd6T2R3tdfAuuANngKI7LFtKYI/vowzk4lAZYadIX6wW25MwG7DCT9RUKAJ0qVkU0mEeLElW1qg==",
                ":jdq0SqOwHdyHr9+r5jw3iYZH6aNGKijYp/EstF4RQTQdi5N5YYKrD+mCT1HA1nZDsi6nJKuHxUi/5Syp3rLWBA==:",
            ),
        ] {
            let components = [("\"@authority\"", "example.com"), (identifier, agent)];
            let params = format!(
                "(\"@authority\" {identifier});created=1735689600;keyid=\"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U\"\
                 ;alg=\"ed25519\";expires={expires};nonce=\"{nonce}\";tag=\"web-bot-auth\""
            );
            assert_eq!(signed(&components, &params), signature);
        }
    }

    #[test]
    fn numbers() {
        for number in [0, 9, 10, 1_618_884_473, u64::MAX] {
            let mut text = "=".to_owned();
            push_number(&mut text, number);
            assert_eq!(text, format!("={number}"));
        }
    }
}
