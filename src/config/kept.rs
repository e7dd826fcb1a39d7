//! What of a configuration a crawl's directory keeps, and how it differs from the one before.
//!
//! Decides: everything is kept but the texts of secrets; a reference to a secret is kept. A crawl may move to another
//! working directory, so paths are kept absolute.
//! Invariants: nothing that is written or told here shows a secret's text.
//! Leaves to others: the file (`boot`), which keys may change (`boot`).

use std::path::{Path, PathBuf};

use super::error::ConfigError;
use super::keys::{Config, TABLES};
use super::secret::Secret;
use super::{login, proxy};

/// A key that two configurations have different values for, as the file has them.
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
    /// Whether it is a credential, which only a service has.
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
    /// Reads what references to secrets lead to. To be done once, when a crawl starts.
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

    /// Reads what references to secrets lead to; what is wrong with them.
    pub(super) fn secret_errors(&mut self, credentials: Option<&Path>) -> Vec<SecretError> {
        let mut errors = Vec::new();
        for (key, name, secret) in self.secrets_mut() {
            let is_credential = secret.is_credential();
            let read = match key {
                "http.auth" => secret.read(credentials, login::check),
                _ => secret.read(credentials, |text| proxy::read(text).map(|_| ())),
            };
            errors.extend(read.err().map(|why| SecretError { key, name, is_credential, why }));
        }
        errors
    }

    /// This configuration as a crawl's directory keeps it: without the texts of secrets, and with absolute paths.
    pub fn kept(&self) -> Config {
        let mut kept = self.clone();
        kept.http.auth.values_mut().for_each(Secret::leave_out);
        // A proxy's address without credentials is no secret.
        if self.proxy.address().is_some_and(|proxy| proxy.login.is_some()) {
            kept.proxy.url.leave_out();
        } else {
            kept.proxy.url.forget();
        }
        for file in &mut kept.tls.ca_files {
            // Only an empty path has no absolute one, and none is empty.
            *file = std::path::absolute(&*file).unwrap_or_else(|_| file.clone());
        }
        kept
    }

    /// The secrets that were left out where this configuration was kept, by key.
    pub fn left_out(&self) -> Vec<String> {
        let mut config = self.clone();
        let left_out = config.secrets_mut().filter(|(_, _, secret)| secret.is_left_out());
        left_out.map(|(key, name, _)| path(key, name.as_deref())).collect()
    }

    /// The keys whose values differ from those of `before`, in the order of the example file. To be asked of what
    /// [`Config::kept`] returned, so that no secret is shown.
    pub fn changes_since(&self, before: &Config) -> Vec<Change> {
        let keys = TABLES.iter().flat_map(|table| table.keys);
        let values =
            keys.map(|key| (key.path(), key.kind.format(&(key.get)(before)), key.kind.format(&(key.get)(self))));
        let changes = values.filter(|(_, before, now)| before != now);
        changes.map(|(key, before, now)| Change { key, before, now }).collect()
    }

    /// Every secret with its key and the name below it.
    fn secrets_mut(&mut self) -> impl Iterator<Item = (&'static str, Option<String>, &mut Secret)> {
        let logins = self.http.auth.iter_mut().map(|(origin, login)| ("http.auth", Some(origin.clone()), login));
        logins.chain(std::iter::once(("proxy.url", None, &mut self.proxy.url)))
    }
}

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
    fn only_the_texts_of_secrets_are_left_out() {
        let mut config = Config::default();
        let logins = "{ \"https://a.test\" = \"me:hunter2\", \"https://b.test\" = { credential = \"b\" } }";
        config.set("http.auth", logins).expect("right");
        config.set("proxy.url", "http://127.0.0.1:3128").expect("right");
        let kept = config.kept();
        assert_eq!(kept.left_out(), ["http.auth.\"https://a.test\""]);
        assert!(!kept.to_toml().contains("hunter2") && kept.to_toml().contains("\"http://127.0.0.1:3128\""));
        config.set("proxy.url", "http://me:hunter2@127.0.0.1:3128").expect("right");
        let kept = config.kept();
        assert_eq!(kept.left_out(), ["http.auth.\"https://a.test\"", "proxy.url"]);
        assert!(!kept.to_toml().contains("hunter2") && !format!("{kept:?}").contains("hunter2"));
        assert_eq!(Config::parse(&kept.to_toml(), "kept"), Ok(kept));
        assert_eq!(Config::default().kept(), Config::default());
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
        let mut config = Config::default();
        assert_eq!(config.changes_since(&Config::default()), []);
        config.set("politeness.host_delay", "2s").expect("right");
        config.set("visited.tracking", "ignore").expect("right");
        config.set("http.auth", "{ \"https://a.test\" = \"me:hunter2\" }").expect("right");
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
