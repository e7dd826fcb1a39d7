//! A secret of the configuration: its text, or a reference to where the text is.
//!
//! Decides: a secret is a text, `{ file = "/etc/ringcrawl/login" }`, or `{ credential = "login" }`, which is a file
//! that systemd passes to a service in `$CREDENTIALS_DIRECTORY`. A configuration is printed and kept with references
//! only: `{ left_out = true }` replaces a text. References are read once, when a crawl starts. Paths are absolute,
//! because a crawl may be resumed from another working directory.
//! Invariants: neither `Debug` of a `Secret` nor any error shows its text; `format` writes a reference as it was
//! given, even after it was read.
//! Limits: plain files of `SECRET_BYTES_MAX`; a trailing line end is not part of the text.
//! Leaves to others: the required form of the text (`login`, `proxy`).

use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use toml_edit::{Item, TableLike, Value as Toml};

use super::kind::quote_all;
use super::value::{Field, Value};
use ringcrawl_files::plain;

/// Longest file of a secret; more than any login or proxy address.
const SECRET_BYTES_MAX: usize = 4_096;
/// Longest name of a credential: that of a file.
const NAME_BYTES_MAX: usize = 255;

/// Text that must not be shown.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret {
    source: Source,
    /// Empty while a reference has not been read.
    text: String,
}

/// Where a secret's text comes from.
#[derive(Clone, PartialEq, Eq, Default)]
enum Source {
    /// It stands in the configuration.
    #[default]
    Text,
    /// A file, by its absolute path.
    File(PathBuf),
    /// A credential that systemd passes to the service.
    Credential(String),
    /// It was in a configuration that was kept without it.
    LeftOut,
}

impl Secret {
    /// A secret that is given as text.
    pub(super) fn from_text(text: &str) -> Secret {
        Secret { source: Source::Text, text: text.to_owned() }
    }

    /// Reads a table: one of the two references, or the mark of an omitted text.
    pub(super) fn from_table(table: &dyn TableLike) -> Result<Secret, &'static str> {
        let mut entries = table.iter();
        let (Some((name, item)), None) = (entries.next(), entries.next()) else {
            return Err("a table that is not one reference");
        };
        let source = match (name, item) {
            ("file", Item::Value(Toml::String(path))) => {
                let path = Path::new(path.value());
                if !path.is_absolute() || path.as_os_str().as_encoded_bytes().contains(&0) {
                    return Err("the path is not absolute");
                }
                Source::File(path.to_owned())
            }
            ("credential", Item::Value(Toml::String(name))) => {
                let name = name.value();
                let is_name = !matches!(name.as_str(), "" | "." | "..")
                    && name.len() <= NAME_BYTES_MAX
                    && !name.contains(|character: char| character == '/' || character.is_control());
                if !is_name {
                    return Err("this is not the name of a credential");
                }
                Source::Credential(name.clone())
            }
            ("left_out", Item::Value(Toml::Boolean(mark))) if *mark.value() => Source::LeftOut,
            _ => return Err("a table that is not a reference"),
        };
        Ok(Secret { source, text: String::new() })
    }

    /// The text itself; empty while a reference has not been read.
    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// As the file has it: a text, or the reference.
    pub(super) fn format(&self) -> String {
        match &self.source {
            Source::Text => quote_all(&self.text),
            Source::File(path) => format!("{{ file = {} }}", quote_all(&path.to_string_lossy())),
            Source::Credential(name) => format!("{{ credential = {} }}", quote_all(name)),
            Source::LeftOut => "{ left_out = true }".to_owned(),
        }
    }

    /// Whether a secret is given, read or not.
    pub fn is_given(&self) -> bool {
        self.source != Source::Text || !self.text.is_empty()
    }

    /// Whether the text itself is in the configuration.
    pub(super) fn is_text(&self) -> bool {
        self.source == Source::Text
    }

    /// Omits the text, if the text itself was given.
    pub(super) fn leave_out(&mut self) {
        if self.source == Source::Text {
            self.source = Source::LeftOut;
        }
        self.forget();
    }

    /// Forgets the text that a reference points to.
    pub(super) fn forget(&mut self) {
        if self.source != Source::Text {
            self.text.clear();
        }
    }

    /// Whether it must be given again.
    pub(super) fn is_left_out(&self) -> bool {
        self.source == Source::LeftOut
    }

    /// Reads the text that a reference points to; a credential is in the directory `credentials`. `check` reports
    /// what is wrong with a text. A text that was read is not read again. Without a directory, a credential is an
    /// error. A file that `is_private` must be accessible only to its owner. systemd ensures that for credentials, by
    /// means that a mode does not show.
    pub(super) fn read(
        &mut self,
        credentials: Option<&Path>,
        is_private: bool,
        check: impl FnOnce(&str) -> Result<(), &'static str>,
    ) -> Result<(), String> {
        let path = match &self.source {
            Source::Text => return Ok(()),
            _ if !self.text.is_empty() => return Ok(()),
            Source::LeftOut => return Err("this file was written without the secret; supply it again".to_owned()),
            Source::File(path) => path.clone(),
            Source::Credential(name) => match credentials {
                Some(credentials) => credentials.join(name),
                None => {
                    return Err(format!(
                        "there is no credential {name:?}, because $CREDENTIALS_DIRECTORY is not set: \
                         systemd sets it for a service with LoadCredential="
                    ));
                }
            },
        };
        let wrong = |why: &dyn fmt::Display| format!("{}: {why}", path.display());
        let file = plain::open(&path).map_err(|error| wrong(&error))?;
        let mode = file.metadata().map_err(|error| wrong(&error))?.mode();
        if is_private && mode & 0o077 != 0 && !self.is_credential() {
            let mode = mode & 0o777;
            return Err(wrong(&format_args!(
                "others than its owner can use it (mode {mode:04o}); expected mode 0600 or 0400: chmod 600 FILE"
            )));
        }
        let bytes = plain::take(file, SECRET_BYTES_MAX).map_err(|error| wrong(&error))?;
        let text = String::from_utf8(bytes).map_err(|_| wrong(&"not UTF-8"))?;
        let text = text.strip_suffix('\n').map_or(text.as_str(), |line| line.strip_suffix('\r').unwrap_or(line));
        check(text).map_err(|why| wrong(&why))?;
        self.text = text.to_owned();
        Ok(())
    }

    /// Whether it is a credential, which exists only in a service.
    pub(super) fn is_credential(&self) -> bool {
        matches!(self.source, Source::Credential(_))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Source::Text => f.write_str(if self.text.is_empty() { "Secret(\"\")" } else { "Secret(…)" }),
            _ => write!(f, "Secret({})", self.format()),
        }
    }
}

impl Field for Secret {
    fn from_value(value: Value) -> Option<Secret> {
        match value {
            Value::Secret(secret) => Some(secret),
            _ => None,
        }
    }
    fn to_value(&self) -> Value {
        Value::Secret(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use crate::Config;
    use ringcrawl_base::TempFolder;

    fn parsed(text: &str) -> Result<Config, String> {
        Config::parse(text, "test").map_err(|errors| format!("{errors:?}"))
    }

    #[test]
    fn references_are_written_as_they_were_given() {
        let text = "[http.auth]\n\"https://a.test\" = { file = \"/etc/ringcrawl/login\" }\n\
                    \"https://b.test\" = { credential = \"b\" }\n\"https://c.test\" = { left_out = true }\n\
                    [proxy]\nurl = { credential = \"proxy\" }\n";
        let mut config = parsed(text).expect("right");
        for line in [
            "auth = { \"https://a.test\" = { file = \"/etc/ringcrawl/login\" }, \"https://b.test\" = { credential = \"b\" }, \
             \"https://c.test\" = { left_out = true } }",
            "url = { credential = \"proxy\" }",
        ] {
            assert!(config.to_toml().contains(line), "{}", config.to_toml());
        }
        assert_eq!(Config::parse(&config.to_toml(), "again"), Ok(config.clone()));
        for (key, value) in
            [("proxy.url", "{ file = \"/p\" }"), ("http.auth", "{ \"http://d.test\" = { file = \"/d\" } }")]
        {
            config.set(key, value).unwrap_or_else(|error| panic!("{error}"));
            assert!(config.to_toml().contains(value), "{}", config.to_toml());
        }
    }

    #[test]
    fn references_that_are_none() {
        for wrong in [
            "{ file = \"login\" }",
            "{ file = 1 }",
            "{ file = \"/a\\u0000\" }",
            "{ credential = \"../login\" }",
            "{ credential = \"\" }",
            "{ credential = \"..\" }",
            "{ left_out = false }",
            "{ fil = \"/hunter2\" }",
            "{ file = \"/hunter2\", credential = \"b\" }",
            "{}",
        ] {
            for text in [format!("http.auth = {{ \"http://a.test\" = {wrong} }}"), format!("proxy.url = {wrong}")] {
                let error = parsed(&text).expect_err(&text);
                assert!(
                    error.contains("expected") && error.contains("{ file = ") && !error.contains("hunter2"),
                    "{error}"
                );
            }
        }
    }

    #[test]
    fn what_a_reference_leads_to_is_used_and_not_written() {
        let folder = TempFolder::new("secrets");
        folder.file("login", "user:pass:hunter2\r\n");
        folder.file("proxy", "socks5://me:hunter2@p.test");
        let mut config = Config::default();
        let login = format!("{{ \"https://a.test\" = {{ file = {:?} }} }}", folder.at("login"));
        config.set("http.auth", &login).expect("right");
        config.set("proxy.url", "{ credential = \"proxy\" }").expect("right");
        let before = config.to_toml();
        assert!(config.proxy.address().is_none(), "it was not read yet");
        assert_eq!(config.read_secrets_in(Some(folder.path())), Ok(()));
        assert_eq!(config.http.auth.values().map(super::Secret::reveal).collect::<Vec<_>>(), ["user:pass:hunter2"]);
        assert_eq!(config.proxy.address().map(|proxy| proxy.host).as_deref(), Some("p.test"));
        assert_eq!(config.to_toml(), before);
        assert!(!format!("{config:?}").contains("hunter2"));
        // What was read is not kept, either.
        let kept = config.kept();
        assert_eq!((kept.to_toml(), kept.left_out()), (before, vec![]));
        assert!(kept.proxy.address().is_none());
    }

    #[test]
    fn references_that_lead_nowhere() {
        let folder = TempFolder::new("no-secrets");
        let told = |value: &str, credentials| {
            let mut config = Config::default();
            config.set("http.auth", &format!("{{ \"http://a.test\" = {value} }}")).expect("right");
            let errors = config.read_secrets_in(credentials).expect_err(value);
            errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        };
        let file = |name: &str| format!("{{ file = {:?} }}", folder.at(name));
        folder.file("bad", "hunter2");
        folder.file("long", &"hunter2".repeat(1_000));
        std::fs::write(folder.at("binary"), b"u:\xff").expect("a file");
        for (value, word) in [
            (file("none"), "No such file"),
            (file("bad"), "credentials without a colon"),
            (file("long"), "longer than 4096 bytes"),
            (file("binary"), "not UTF-8"),
            (file(""), "it is a directory, not a plain file"),
            ("{ credential = \"c\" }".to_owned(), "no credential \"c\", because $CREDENTIALS_DIRECTORY is not set"),
            ("{ left_out = true }".to_owned(), "without the secret"),
        ] {
            let error = told(&value, None);
            assert!(error.starts_with("http.auth.\"http://a.test\": ") && error.contains(word), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
        assert!(told("{ credential = \"c\" }", Some(folder.path())).contains("No such file"));
    }
}
