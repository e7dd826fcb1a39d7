//! The private key that requests are signed with.
//!
//! Decides: the key is never in the configuration, which is shown, copied and kept; only its location is.
//! Leaves to others: what form it has (`key`), who may read its file (`secret`).

use std::fmt;

use toml_edit::{Item, Value as Toml};

use super::key::SigningKey;
use super::secret::Secret;
use super::value::{Field, Value};

pub(super) const EXPECTED: &str = "{ file = \"/path\" }, { credential = \"name\" } or \"\"";

/// Reads the key's value: a reference, or nothing.
pub(super) fn read_item(item: &Item) -> Result<Secret, &'static str> {
    match (item, item.as_table_like()) {
        (Item::Value(Toml::String(text)), _) if text.value().is_empty() => Ok(Secret::from_text("")),
        (Item::Value(Toml::String(_)), _) => {
            Err("a private key must be in a file of its own, not in the configuration")
        }
        (_, Some(table)) => Secret::from_table(table),
        _ => Err("this is no table"),
    }
}

/// Where the private key is, and the key once it was read.
#[derive(Clone, Default)]
pub struct SigningSecret {
    secret: Secret,
    key: Option<SigningKey>,
}

impl SigningSecret {
    /// The key; `None`: there is none, or it was not read.
    pub fn key(&self) -> Option<&SigningKey> {
        self.key.as_ref()
    }

    /// Whether a key is given, read or not.
    pub fn is_given(&self) -> bool {
        self.secret.is_given()
    }

    pub(super) fn secret_mut(&mut self) -> &mut Secret {
        &mut self.secret
    }

    /// Takes in a key that was read.
    pub(super) fn was_read(&mut self, key: Option<SigningKey>) {
        self.key = key.or(self.key.take());
    }

    /// Forgets what was read.
    pub(super) fn forget(&mut self) {
        self.secret.forget();
        self.key = None;
    }
}

impl PartialEq for SigningSecret {
    fn eq(&self, other: &SigningSecret) -> bool {
        self.secret == other.secret
    }
}

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.secret.fmt(f)
    }
}

impl Field for SigningSecret {
    fn from_value(value: Value) -> Option<SigningSecret> {
        Field::from_value(value).map(|secret| SigningSecret { secret, key: None })
    }

    fn to_value(&self) -> Value {
        self.secret.to_value()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use crate::Config;
    use crate::SigningKey;
    use ringcrawl_base::TempFolder;

    const DIRECTORY: &str = "identity.directory_url = \"https://a.test/\"\n";

    #[test]
    fn a_key_is_in_its_file_and_nowhere_else() {
        let folder = TempFolder::new("signing-key");
        let pem = SigningKey::generate().and_then(|key| key.to_pem()).expect("a key");
        let told = |text: &str, mode: u32| {
            let file = folder.file("key.pem", text);
            std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).expect("a mode");
            let text = format!("{DIRECTORY}identity.signing_key = {{ file = {file:?} }}\n");
            let mut config = Config::parse(&text, "test").expect("right");
            let read = config.read_secrets_in(None).map_err(|errors| format!("{errors:?}"));
            (read, config)
        };
        for mode in [0o600, 0o400] {
            let (read, config) = told(&pem, mode);
            assert_eq!(read, Ok(()));
            let key = SigningKey::parse(&pem).expect("a key");
            assert_eq!(config.identity.signing_key.key().map(SigningKey::id), Some(key.id()));
            let shown = format!("{config:?}{}{:?}", config.to_toml(), config.kept());
            assert!(!shown.contains("BEGIN") && shown.contains("key.pem"), "{shown}");
            assert!(config.kept().identity.signing_key.key().is_none());
        }
        for mode in [0o640, 0o604, 0o644, 0o620] {
            let error = told(&pem, mode).0.expect_err("others");
            let mode = format!("{mode:04o}");
            assert!(
                error.contains("identity.signing_key") && error.contains(&mode) && error.contains("chmod 600"),
                "{error}"
            );
        }
        let error = told("-----BEGIN RSA PRIVATE KEY-----\nhunter2", 0o600).0.expect_err("RSA");
        assert!(error.contains("RSA") && !error.contains("hunter2"), "{error}");
        // A file from systemd may look readable by its group: that entry is for the service.
        std::fs::set_permissions(folder.file("credential", &pem), PermissionsExt::from_mode(0o440)).expect("a mode");
        let text = format!("{DIRECTORY}identity.signing_key = {{ credential = \"credential\" }}");
        let mut config = Config::parse(&text, "test").expect("right");
        assert_eq!(config.read_secrets_in(Some(folder.path())), Ok(()));
    }

    #[test]
    fn mistakes() {
        let error = |text: &str| format!("{:?}", Config::parse(text, "test").expect_err(text));
        for wrong in ["\"hunter2\"", "1", "[\"hunter2\"]", "{ file = \"hunter2\" }"] {
            let text = format!("{DIRECTORY}identity.signing_key = {wrong}");
            assert!(
                error(&text).contains("expected { file = ") && !error(&text).contains("hunter2"),
                "{}",
                error(&text)
            );
        }
        assert!(error("identity.signing_key = { credential = \"a\" }").contains("identity.directory_url"));
        for wrong in ["http://a.test/", "https://u:p@a.test/", "https://a.test/#a", "https://a.test/\\\"", "a.test"] {
            assert!(error(&format!("identity.directory_url = '{wrong}'")).contains("https://"));
        }
        assert!(error("identity.purpose = \"a\\nb\"").contains("one line"));
        let both = error("identity.addresses = [\"192.0.2.1/24\", \"192.0.2.0/24\", \"192.0.2.0/24\", \"x\"]");
        assert!(both.contains("192.0.2.1/24") && both.contains("listed twice") && both.contains("\\\"x"), "{both}");
        let mut config = Config::default();
        config.set("identity.addresses", "192.0.2.0/24, ::1").expect("right");
        config.set("identity.signing_key", "{ file = \"/key\" }").expect("right");
        config.set("identity.directory_url", "https://a.test").expect("right");
        assert_eq!(Config::parse(&config.to_toml(), "again"), Ok(config));
    }
}
