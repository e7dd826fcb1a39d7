//! Who crawls: what requests and the key directory are signed with, verified by an implementation that is not ours; and what
//! `ringcrawl identity` writes, served by real servers.
//!
//! Decides: a message is verified from the bytes that came over the wire, with the rules of RFC 9421 written down here once more.

mod published;
mod requests;

use ringcrawl_base::TempFolder;
use web_bot_auth::components::{CoveredComponent, DerivedComponent, HTTPField, HTTPFieldParameters};
use web_bot_auth::keyring::{JSONWebKeySet, KeyRing};
use web_bot_auth::message_signatures::SignedMessage;

use crate::rig::program::run;

/// A head as it came, and how its request was sent.
struct Message {
    head: String,
    /// The value of `@authority`, of the request.
    authority: String,
    is_response: bool,
}

impl Message {
    /// A request that came over `scheme`: its authority is Host in lower case without the default port (RFC 9421 section 2.2.3).
    fn request(head: &str, scheme: &str) -> Message {
        let message = Message { head: head.to_owned(), authority: String::new(), is_response: false };
        let host = message.values("host").join("").to_ascii_lowercase();
        let default = if scheme == "https" { ":443" } else { ":80" };
        Message { authority: host.strip_suffix(default).unwrap_or(&host).to_owned(), ..message }
    }

    /// The values of a field.
    fn values(&self, name: &str) -> Vec<String> {
        let lines = self.head.split("\r\n").skip(1).filter_map(|line| line.split_once(':'));
        lines.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned()).collect()
    }
}

impl SignedMessage for Message {
    fn lookup_component(&self, component: &CoveredComponent) -> Vec<String> {
        match component {
            CoveredComponent::Derived(DerivedComponent::Authority { req }) if *req == self.is_response => {
                vec![self.authority.clone()]
            }
            CoveredComponent::HTTP(HTTPField { name, parameters }) => match parameters.0.as_slice() {
                [] => self.values(name),
                // A member of a dictionary, as it is serialized alone (RFC 9421 section 2.1.2).
                [HTTPFieldParameters::Key(key)] => {
                    let values = self.values(name).join(", ");
                    let members = values.split(", ").filter_map(|member| member.split_once('='));
                    members.filter(|(known, _)| known == key).map(|(_, value)| value.to_owned()).collect()
                }
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }
}

/// The keys of a directory.
fn keyring(directory: &str) -> KeyRing {
    let mut keyring = KeyRing::default();
    let jwks: JSONWebKeySet = serde_json::from_str(directory).expect("a JWK Set");
    for error in keyring.import_jwks(jwks) {
        assert!(error.is_none(), "{error:?}");
    }
    keyring
}

/// A new key, made by the program: its file and its name.
fn keygen(folder: &TempFolder, name: &str) -> (String, String) {
    let file = folder.at(name);
    let said = run(&["identity", "keygen", &file]).expect(0).out;
    let id = said.strip_prefix("keyid ").and_then(|rest| rest.lines().next()).expect("a name").to_owned();
    (file, id)
}

/// A configuration with a key and all that the page wants to know.
fn settings(key: &str, more: &str) -> String {
    format!(
        "agent.name = \"examplebot\"\nagent.url = \"https://bot.example/about/\"\nagent.email = \"bot@bot.example\"\n\
         identity.operator = \"Example\"\nidentity.purpose = \"An index.\"\nidentity.addresses = [\"192.0.2.0/24\"]\n\
         identity.directory_url = \"https://bot.example/.well-known/http-message-signatures-directory\"\n\
         identity.signing_key = {{ file = {key:?} }}\n{more}"
    )
}
