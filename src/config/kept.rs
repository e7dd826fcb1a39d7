//! What of a configuration is shown, what a crawl directory keeps, and how it differs from the previous one.
//!
//! Decides: everything except the text of secrets is shown and kept; a reference to a secret is kept. A secret's text
//! is not accepted on the command line either, because `ps` shows that to every user of the machine. A crawl may move
//! to another working directory, so paths are stored as absolute.
//! Invariants: nothing written or reported here shows a secret's text.
//! Leaves to others: the file (`boot`), which keys may change (`boot`).

use std::path::{Path, PathBuf};

use super::error::ConfigError;
use super::key::SigningKey;
use super::keys::{Config, TABLES};
use super::secret::Secret;
use super::value::Value;
use super::{login, proxy};

/// Whether a value that was given holds the text of a secret.
pub(super) fn holds_text(value: &Value) -> bool {
    match value {
        Value::Logins(logins) => logins.values().any(Secret::is_text),
        Value::Secret(secret) => secret.is_text() && proxy::has_login(secret),
        _ => false,
    }
}

/// A key with different values in two configurations, written as in the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// The key's dotted path.
    pub key: String,
    /// Its value before.
    pub before: String,
    /// Its value now.
    pub now: String,
}

/// A secret that cannot be read.
pub(super) struct SecretError {
    /// The key's dotted path.
    pub(super) key: &'static str,
    /// The name below the key, if it has names.
    pub(super) name: Option<String>,
    /// Whether it is a credential, which exists only in a service.
    pub(super) is_credential: bool,
    /// What is wrong.
    pub(super) why: String,
}

impl SecretError {
    /// The key with the name below it.
    fn path(&self) -> String {
        path(self.key, self.name.as_deref())
    }
}

impl Config {
    /// Reads the secrets that references point to. Call it once, when a crawl starts.
    ///
    /// # Errors
    /// Every secret that cannot be read, by its key; never empty.
    pub fn read_secrets(&mut self) -> Result<(), Vec<ConfigError>> {
        self.read_secrets_in(credentials().as_deref())
    }

    /// The same, with the directory of credentials.
    pub(super) fn read_secrets_in(&mut self, credentials: Option<&Path>) -> Result<(), Vec<ConfigError>> {
        let blame = |error: SecretError| ConfigError {
            file: String::new(),
            line: 0,
            column: 0,
            key: error.path(),
            message: error.why,
        };
        let errors: Vec<ConfigError> = self.secret_errors(credentials).into_iter().map(blame).collect();
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    /// Reads the secrets that references point to; returns what is wrong with them.
    pub(super) fn secret_errors(&mut self, credentials: Option<&Path>) -> Vec<SecretError> {
        let (mut errors, mut signing_key) = (Vec::new(), None);
        for (key, name, secret) in self.secrets_mut() {
            let is_credential = secret.is_credential();
            let read = match key {
                "http.auth" => secret.read(credentials, false, login::check),
                "identity.signing_key" => {
                    secret.read(credentials, true, |text| SigningKey::parse(text).map(|key| signing_key = Some(key)))
                }
                _ => secret.read(credentials, false, |text| proxy::read(text).map(|_| ())),
            };
            errors.extend(read.err().map(|why| SecretError { key, name, is_credential, why }));
        }
        self.identity.signing_key.was_read(signing_key);
        errors
    }

    /// This configuration without the texts of secrets.
    pub(super) fn masked(&self) -> Config {
        let mut masked = self.clone();
        masked.http.auth.values_mut().for_each(Secret::leave_out);
        masked.identity.signing_key.forget();
        if proxy::has_login(&self.proxy.url) {
            masked.proxy.url.leave_out();
        } else {
            masked.proxy.url.forget();
        }
        masked
    }

    /// This configuration as a crawl directory keeps it: without the texts of secrets, and with absolute paths.
    pub fn kept(&self) -> Config {
        let mut kept = self.masked();
        let files = [
            &mut kept.tls.ca_files,
            &mut kept.store.dedupe_against,
            kept.politeness.operators.files_mut(),
            &mut kept.scope.block,
        ];
        for file in files.into_iter().flatten() {
            // Only an empty path has no absolute form, and none is empty.
            *file = std::path::absolute(&*file).unwrap_or_else(|_| file.clone());
        }
        for file in
            [&mut kept.scope.rules, &mut kept.partition.vector, &mut kept.frontier.ranks, &mut kept.exchange.replicated]
        {
            if let Some(path) = std::path::absolute(&*file).ok().and_then(|path| path.to_str().map(str::to_owned)) {
                *file = path;
            }
        }
        kept
    }

    /// The secrets that were omitted when this configuration was kept, by key.
    pub fn left_out(&self) -> Vec<String> {
        let mut config = self.clone();
        let left_out = config.secrets_mut().filter(|(_, _, secret)| secret.is_left_out());
        left_out.map(|(key, name, _)| path(key, name.as_deref())).collect()
    }

    /// The keys whose values differ from those of `before`, in the order of the example file. Call it on what
    /// [`Config::kept`] returned, so that no secret is shown.
    pub fn changes_since(&self, before: &Config) -> Vec<Change> {
        let keys = TABLES.iter().flat_map(|table| table.keys);
        let values =
            keys.map(|key| (key.path(), key.kind.format(&(key.get)(before)), key.kind.format(&(key.get)(self))));
        let changes = values.filter(|(_, before, now)| before != now);
        changes.map(|(key, before, now)| Change { key, before, now }).collect()
    }

    /// What readers of the crawl's records should know: keys of [`TOLD`] with a value other than the default, as `KEY
    /// = VALUE`. The resources and location of the crawl stay private.
    pub fn told(&self) -> Vec<String> {
        let changes = self.masked().changes_since(&Config::default()).into_iter();
        let told = changes.filter(|change| {
            TOLD.iter().any(|table| change.key.starts_with(table)) && !NOT_TOLD.contains(&&*change.key)
        });
        told.map(|Change { key, now, .. }| format!("{key} = {now}")).collect()
    }

    /// Every secret with its key and the name below it.
    fn secrets_mut(&mut self) -> impl Iterator<Item = (&'static str, Option<String>, &mut Secret)> {
        let logins = self.http.auth.iter_mut().map(|(origin, login)| ("http.auth", Some(origin.clone()), login));
        let others = [
            ("proxy.url", None, &mut self.proxy.url),
            ("identity.signing_key", None, self.identity.signing_key.secret_mut()),
        ];
        logins.chain(others)
    }
}

/// Addresses and folders of this machine.
const NOT_TOLD: [&str; 7] = [
    "fetch.source_addresses",
    "fetch.source_ports",
    "politeness.operators",
    "scope.rules",
    "scope.block",
    "store.dedupe_against",
    "store.dirs",
];
/// Tables that define what was requested and what was kept.
const TOLD: [&str; 7] = ["scope.", "politeness.", "robots.", "fetch.", "links.", "visited.", "store."];

/// Where systemd puts the credentials of a service.
pub(super) fn credentials() -> Option<PathBuf> {
    std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from)
}

fn path(key: &str, name: Option<&str>) -> String {
    name.map_or(key.to_owned(), |name| format!("{key}.{name:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_tell_what_was_chosen_and_not_with_what() {
        let text = "store.digest = \"sha-1\"\nstore.dedupe_against = [\"/home/me\"]\nstore.dirs = [\"/disk\"]\nproxy.url = \"http://10.0.0.1:1\"\n\
                    robots.ttl = \"24h\"\npoliteness.host_delay = \"2s\"\n";
        let config = Config::parse(text, "test").expect("right");
        assert_eq!(config.told(), ["politeness.host_delay = \"2s\"", "store.digest = \"sha-1\""]);
        assert!(Config::default().told().is_empty());
    }

    #[test]
    fn only_the_texts_of_secrets_are_left_out() {
        let logins =
            "http.auth = { \"https://a.test\" = \"me:hunter2\", \"https://b.test\" = { credential = \"b\" } }\n";
        let parsed = |proxy: &str| Config::parse(&format!("{logins}proxy.url = \"{proxy}\""), "test").expect("right");
        let kept = parsed("http://127.0.0.1:3128").kept();
        assert_eq!(kept.left_out(), ["http.auth.\"https://a.test\""]);
        assert!(!kept.to_toml().contains("hunter2") && kept.to_toml().contains("\"http://127.0.0.1:3128\""));
        let config = parsed("http://me:hunter2@127.0.0.1:3128");
        assert!(!config.to_toml().contains("hunter2"));
        let kept = config.kept();
        assert_eq!(kept.left_out(), ["http.auth.\"https://a.test\"", "proxy.url"]);
        assert!(!kept.to_toml().contains("hunter2") && !format!("{kept:?}").contains("hunter2"));
        assert_eq!(Config::parse(&kept.to_toml(), "kept"), Ok(kept));
        assert_eq!(Config::default().kept(), Config::default());
    }

    #[test]
    fn no_secret_comes_by_the_command_line() {
        let mut config = Config::default();
        for (key, text, reference) in [
            ("proxy.url", "socks5://me:hunter2@p.test", "{ file = \"/p\" }"),
            ("proxy.url", "http://hunter2@p.test:1", "http://p.test:1"),
            ("http.auth", "{ \"https://a.test\" = \"me:hunter2\" }", "{ \"https://a.test\" = { credential = \"a\" } }"),
        ] {
            let before = config.clone();
            let error = config.set(key, text).expect_err(text).to_string();
            assert!(error.contains(key) && error.contains("(ps)") && error.contains("LoadCredential"), "{error}");
            assert!(!error.contains("hunter2") && config == before, "{error}");
            config.set(key, reference).expect(reference);
            assert_ne!(config, before);
        }
    }

    #[test]
    fn paths_are_kept_absolute() {
        let mut config = Config::default();
        config.set("tls.ca_files", "own.pem,/etc/ssl/ours.pem").expect("right");
        let here = std::env::current_dir().expect("a directory");
        assert_eq!(config.kept().tls.ca_files, [here.join("own.pem"), PathBuf::from("/etc/ssl/ours.pem")]);
    }

    #[test]
    fn changes_are_told_by_key_and_show_no_secret() {
        assert_eq!(Config::default().changes_since(&Config::default()), []);
        let text = "politeness.host_delay = \"2s\"\nvisited.tracking = \"ignore\"\n\
                    http.auth = { \"https://a.test\" = \"me:hunter2\" }";
        let config = Config::parse(text, "test").expect("right");
        let changes = config.kept().changes_since(&Config::default());
        let told: Vec<String> =
            changes.iter().map(|change| format!("{} = {}, was {}", change.key, change.now, change.before)).collect();
        assert_eq!(
            told,
            [
                "politeness.host_delay = \"2s\", was \"1s\"",
                "http.auth = { \"https://a.test\" = { left_out = true } }, was {}",
                "visited.tracking = \"ignore\", was \"count\"",
            ]
        );
    }
}
