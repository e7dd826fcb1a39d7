//! How a request proves its sender: Web Bot Auth (draft-ietf-webbotauth-httpsig-protocol, before that
//! draft-meunier-web-bot-auth-architecture).
//!
//! Decides: a signature covers the requested authority and Signature-Agent. It is used for half of its lifetime; then
//! a new one is made. So a page only costs the writing of its fields, and a recipient has at least half a lifetime to
//! verify it. The price is that it names neither the path nor a nonce: an eavesdropper can repeat it to the same
//! authority until it expires. So it is sent over TLS alone unless the operator wants otherwise.
//! `created` lies a little in the past, for verifiers whose clocks are behind.
//! Invariants: fields are given only for the authority they were signed for; `created` is never later than the clock
//! passed in, also after that clock was set back. The memory is bounded: of two generations the older is dropped, and
//! each holds half of the bytes.
//! Leaves to others: the clock (`ring`), which requests there are (`fetch`).

use std::collections::HashMap;

use super::message::{Parameters, push_signature, push_signature_params, signature_base};
use ringcrawl_base::time::UnixTime;
use ringcrawl_config::{self as config, SignatureAgentForm, SignedRequests};
use ringcrawl_config::{SIGNATURE_BYTES, SigningKey};
use ringcrawl_url::{Scheme, Url};

/// Signs requests, and remembers what it signed.
#[derive(Debug)]
pub struct Signer {
    key: SigningKey,
    form: SignatureAgentForm,
    requests: SignedRequests,
    /// The directory's URL as a string of structured fields.
    agent: String,
    /// Signature-Agent as it is sent.
    agent_field: String,
    /// Seconds.
    lifetime: u64,
    /// Bytes of a generation.
    bytes_max: usize,
    young: Generation,
    old: Generation,
    /// Signature-Input and Signature of the last request: their memory is reused.
    input: String,
    signature: String,
}

/// Signatures by authority.
#[derive(Debug, Default)]
struct Generation {
    signatures: HashMap<Box<str>, Signed>,
    bytes: usize,
}

#[derive(Clone, Copy, Debug)]
struct Signed {
    /// Seconds since 1970.
    created: u64,
    signature: [u8; SIGNATURE_BYTES],
}

/// The three fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SignatureFields<'a> {
    /// Signature-Agent: where the keys are.
    pub agent: &'a str,
    /// Signature-Input: what is signed.
    pub input: &'a str,
    /// Signature.
    pub signature: &'a str,
}

impl Signer {
    /// A signer that remembers signatures within `ram_bytes_max`; `None`: there is no key, and nothing is signed.
    pub fn new(identity: &config::Identity) -> Option<Signer> {
        identity.signing_key.key().map(|key| Signer::with_key(key.clone(), identity))
    }

    /// Changes the limit of remembered signatures in bytes.
    pub fn hold(&mut self, bytes_max: u64) {
        self.bytes_max = usize::try_from(bytes_max / 2).unwrap_or(usize::MAX);
    }

    fn with_key(key: SigningKey, identity: &config::Identity) -> Signer {
        let form = identity.signature_agent_form;
        let agent = format!("\"{}\"", signature_agent(&identity.directory_url, form));
        Signer {
            key,
            form,
            requests: identity.sign,
            agent_field: match form {
                SignatureAgentForm::Dictionary => format!("{LABEL}={agent}"),
                SignatureAgentForm::String => agent.clone(),
            },
            agent,
            lifetime: identity.signature_lifetime.as_secs(),
            bytes_max: usize::try_from(identity.ram_bytes_max / 2).unwrap_or(usize::MAX),
            young: Generation::default(),
            old: Generation::default(),
            input: String::new(),
            signature: String::new(),
        }
    }

    /// The fields of a request for `url` at `now`; `None` if this request is not signed.
    pub fn fields(&mut self, url: &Url, now: UnixTime) -> Option<SignatureFields<'_>> {
        if self.requests == SignedRequests::Https && url.scheme() != Scheme::Https {
            return None;
        }
        let now = now.as_micros() / 1_000_000;
        let signed = match self.remembered(url.authority(), now) {
            Some(signed) => signed,
            None => self.sign(url.authority(), now),
        };
        self.input.clear();
        self.input.push_str(LABEL_IS);
        push_signature_params(
            &mut self.input,
            identifiers(self.form),
            &parameters(&self.key, self.lifetime, signed.created),
        );
        self.signature.clear();
        self.signature.push_str(LABEL_IS);
        push_signature(&mut self.signature, &signed.signature);
        Some(SignatureFields { agent: &self.agent_field, input: &self.input, signature: &self.signature })
    }

    /// The remembered signature for `authority`, if it is fresh at `now`.
    fn remembered(&mut self, authority: &str, now: u64) -> Option<Signed> {
        let is_fresh = |signed: &Signed| signed.created <= now && now - signed.created < self.lifetime / 2;
        if let Some(signed) = self.young.signatures.get(authority) {
            return Some(*signed).filter(is_fresh);
        }
        let signed = *self.old.signatures.get(authority)?;
        if !is_fresh(&signed) {
            return None;
        }
        self.remember(authority, signed);
        Some(signed)
    }

    fn sign(&mut self, authority: &str, now: u64) -> Signed {
        let created = now.saturating_sub(BEHIND_SECONDS);
        let mut params = String::with_capacity(256);
        push_signature_params(&mut params, identifiers(self.form), &parameters(&self.key, self.lifetime, created));
        let [authority_is, agent_is] = identifiers_of(self.form);
        let base = signature_base(&[(authority_is, authority), (agent_is, &self.agent)], &params);
        let signed = Signed { created, signature: self.key.sign(base.as_bytes()) };
        self.remember(authority, signed);
        signed
    }

    fn remember(&mut self, authority: &str, signed: Signed) {
        let bytes = ENTRY_BYTES + authority.len();
        if self.young.bytes + bytes > self.bytes_max {
            self.old = std::mem::take(&mut self.young);
        }
        // A signature larger than its generation is made again each time.
        if bytes <= self.bytes_max && self.young.signatures.insert(authority.into(), signed).is_none() {
            self.young.bytes += bytes;
        }
    }
}

/// The name of our signature in its fields. The dictionary member in Signature-Agent has the same name.
const LABEL: &str = "sig1";
const LABEL_IS: &str = "sig1=";
/// What the signature is for.
const TAG: &str = "web-bot-auth";
/// How far `created` lies behind the clock: NTP keeps machines closer than this.
const BEHIND_SECONDS: u64 = 5;
/// The memory for a signature in addition to its authority: its slot in a table that may be half empty, and an
/// allocation.
const ENTRY_BYTES: usize = 240;

fn identifiers_of(form: SignatureAgentForm) -> [&'static str; 2] {
    match form {
        SignatureAgentForm::Dictionary => ["\"@authority\"", "\"signature-agent\";key=\"sig1\""],
        SignatureAgentForm::String => ["\"@authority\"", "\"signature-agent\""],
    }
}

fn identifiers(form: SignatureAgentForm) -> impl Iterator<Item = &'static str> {
    identifiers_of(form).into_iter()
}

fn parameters(key: &SigningKey, lifetime: u64, created: u64) -> Parameters<'_> {
    Parameters { created, expires: created + lifetime, keyid: key.id(), tag: TAG }
}

/// Where a directory lies according to the drafts, below its authority.
pub const WELL_KNOWN: &str = "/.well-known/http-message-signatures-directory";

/// The value of Signature-Agent for a directory at `directory_url`. Readers of the string form, which drafts had up
/// to 2025, append the well-known path; readers of the dictionary form request exactly this URL.
pub(super) fn signature_agent(directory_url: &str, form: SignatureAgentForm) -> &str {
    match form {
        SignatureAgentForm::Dictionary => directory_url,
        SignatureAgentForm::String => directory_url.strip_suffix(WELL_KNOWN).unwrap_or(directory_url),
    }
}

#[cfg(test)]
mod tests {
    use super::super::printed_key;
    use super::*;
    use ringcrawl_base::time::Duration;

    const DIRECTORY: &str = "https://bot.example/.well-known/http-message-signatures-directory";

    fn signer(form: SignatureAgentForm, requests: SignedRequests, bytes_max: u64) -> Signer {
        let identity = config::Identity {
            directory_url: DIRECTORY.to_owned(),
            signature_agent_form: form,
            signature_lifetime: Duration::from_secs(3_600),
            sign: requests,
            ram_bytes_max: bytes_max,
            ..config::Identity::default()
        };
        Signer::with_key(printed_key(), &identity)
    }

    fn https(bytes_max: u64) -> Signer {
        signer(SignatureAgentForm::Dictionary, SignedRequests::Https, bytes_max)
    }

    fn at(seconds: u64) -> UnixTime {
        UnixTime::from_micros(seconds * 1_000_000)
    }

    /// `created` and the signature of a request.
    fn of(signer: &mut Signer, url: &str, seconds: u64) -> (u64, String) {
        let fields = signer.fields(&Url::parse(url).expect("valid"), at(seconds)).expect("signed");
        let created = fields.input.split(";created=").nth(1).and_then(|rest| rest.split(';').next());
        (created.and_then(|created| created.parse().ok()).expect("created"), fields.signature.to_owned())
    }

    #[test]
    fn both_forms() {
        let url = Url::parse("https://EXAMPLE.com:443/a?b").expect("valid");
        let keyid = "keyid=\"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U\"";
        let params = format!("created=1735689595;expires=1735693195;{keyid};tag=\"web-bot-auth\"");
        for (form, agent, value, identifier) in [
            (
                SignatureAgentForm::Dictionary,
                format!("sig1=\"{DIRECTORY}\""),
                DIRECTORY,
                "\"signature-agent\";key=\"sig1\"",
            ),
            (
                SignatureAgentForm::String,
                "\"https://bot.example\"".to_owned(),
                "https://bot.example",
                "\"signature-agent\"",
            ),
        ] {
            let mut signer = signer(form, SignedRequests::Https, 1 << 20);
            let fields = signer.fields(&url, at(1_735_689_600)).expect("signed");
            let params = format!("(\"@authority\" {identifier});{params}");
            assert_eq!((fields.agent, fields.input), (agent.as_str(), format!("sig1={params}").as_str()));
            // The slow twin: the base, written down.
            let base =
                format!("\"@authority\": example.com\n{identifier}: \"{value}\"\n\"@signature-params\": {params}");
            let mut expected = "sig1=".to_owned();
            push_signature(&mut expected, &printed_key().sign(base.as_bytes()));
            assert_eq!(fields.signature, expected);
        }
    }

    #[test]
    fn one_signature_an_authority_and_half_a_lifetime() {
        let mut signer = https(1 << 20);
        let first = of(&mut signer, "https://a.test/1", 1_000_000);
        assert_eq!(first.0, 999_995);
        assert_eq!(of(&mut signer, "https://a.test/2", 1_001_794), first);
        let next = of(&mut signer, "https://a.test/3", 1_001_795);
        assert_eq!(next.0, 1_001_790);
        assert_ne!(next.1, first.1);
        // Another port and another host have their own signatures.
        let others = ["https://a.test:8443/", "https://b.test/"].map(|url| of(&mut signer, url, 1_001_795).1);
        assert!(others[0] != others[1] && !others.contains(&next.1));
        assert_eq!(of(&mut signer, "https://a.test/4", 1_001_800), next);
    }

    #[test]
    fn a_clock_that_jumps_makes_no_signature_of_the_future() {
        let mut signer = https(1 << 20);
        for now in
            [5_000_000, 9_000_000, 5_000_100, 5_000_000, 4_999_996, 4_999_990, 0, 3, 5_000_000, u64::MAX / 1_000_000]
        {
            for url in ["https://a.test/", "https://b.test/"] {
                let (created, _) = of(&mut signer, url, now);
                assert!(created <= now && now - created < 1_800, "{created} at {now}");
            }
        }
    }

    #[test]
    fn in_clear_only_if_wanted() {
        let url = Url::parse("http://a.test/").expect("valid");
        assert_eq!(https(1 << 20).fields(&url, at(1)), None);
        assert!(signer(SignatureAgentForm::String, SignedRequests::All, 0).fields(&url, at(1)).is_some());
    }

    #[test]
    fn memory_is_bounded_and_what_is_in_use_stays() {
        let bytes_max = 100 * (ENTRY_BYTES as u64 + 10);
        let mut signer = https(bytes_max);
        let first = of(&mut signer, "https://used.test/", 1_000_000);
        for host in 0..10_000 {
            of(&mut signer, &format!("https://{host}.test/"), 1_000_001);
            let held = [&signer.young, &signer.old].map(|generation| {
                let bytes = |name: &str| ENTRY_BYTES + name.len();
                let counted: usize = generation.signatures.keys().map(|name| bytes(name)).sum();
                assert_eq!(counted, generation.bytes);
                counted as u64
            });
            assert!(held.iter().sum::<u64>() <= bytes_max);
            assert_eq!(of(&mut signer, "https://used.test/", 1_000_001), first);
        }
        // Without any memory it signs each request.
        let mut signer = https(0);
        assert_eq!(of(&mut signer, "https://a.test/", 1_000_000).0, 999_995);
        assert_eq!(of(&mut signer, "https://a.test/", 1_000_001).0, 999_996);
    }
}
