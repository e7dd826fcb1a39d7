//! `ringcrawl identity`: writes what is published about the crawler, as files for a web server; also writes a new
//! key.
//!
//! Decides: anyone may read the files, whatever the umask, since a server of another user reads them; only its owner
//! may read the private key. An existing file is replaced atomically, as a server may be reading it. No key is ever
//! overwritten: signatures made with it could no longer be verified.
//! Exit codes: 0 written; 1 the system or the disk failed; 2 an operator's mistake.
//! Leaves to others: the contents of the files (`identity`).

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::check_config;
use super::output::{self, tell};
use super::{FAILED, MISTAKE};
use ringcrawl_brain::identity::{self, DIRECTORY_LIFETIME};
use ringcrawl_config::SigningKey;
use ringcrawl_config::{Config, ConfigError};
use ringcrawl_ring as ring;

/// Arguments of the subcommand.
#[derive(clap::Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct IdentityArguments {
    #[command(subcommand)]
    action: Option<Action>,
    /// The folder to write: bot page, bot.json, key directory, and how nginx or Caddy serves them.
    #[arg(long, value_name = "DIR", required = true)]
    out: Option<PathBuf>,
    /// Configuration file (TOML).
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Override one key of the configuration; may be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Another private key whose public half goes into the directory: the next or the previous one. May be given several times.
    #[arg(long, value_name = "FILE")]
    also_key: Vec<PathBuf>,
}

#[derive(clap::Subcommand, Debug)]
enum Action {
    /// Write a new private key (Ed25519, PEM) that its owner alone can read.
    Keygen {
        /// The file; it must not exist.
        file: PathBuf,
    },
}

/// Runs it.
pub fn run(arguments: &IdentityArguments) -> ExitCode {
    let result = match (&arguments.action, &arguments.out) {
        (Some(Action::Keygen { file }), _) => keygen(file),
        (None, Some(out)) => publish(arguments, out),
        (None, None) => Ok(String::new()),
    };
    match result {
        Ok(text) => ExitCode::from(output::print(&text)),
        Err(Refusal::Mistakes(mistakes)) => {
            mistakes.iter().for_each(|mistake| tell!("ringcrawl: {mistake}"));
            ExitCode::from(MISTAKE)
        }
        Err(Refusal::System(error)) => {
            tell!("ringcrawl: {error}");
            ExitCode::from(FAILED)
        }
    }
}

/// Why nothing was done.
enum Refusal {
    Mistakes(Vec<String>),
    System(String),
}

impl From<Vec<ConfigError>> for Refusal {
    fn from(errors: Vec<ConfigError>) -> Refusal {
        Refusal::Mistakes(errors.iter().map(ToString::to_string).collect())
    }
}

fn publish(arguments: &IdentityArguments, out: &Path) -> Result<String, Refusal> {
    let mut config = arguments.config.as_ref().map_or_else(|| Ok(Config::default()), Config::load)?;
    for pair in &arguments.set {
        check_config::set(&mut config, pair).map_err(|error| vec![error])?;
    }
    config.check()?;
    config.read_secrets()?;
    let mut keys = Vec::new();
    keys.extend(config.identity.signing_key.key().cloned());
    for file in &arguments.also_key {
        keys.extend(key_in(file)?);
    }
    // The path goes into a server's configuration, which is read from another working directory.
    let out = std::path::absolute(out).map_err(|error| told(out, &error))?;
    let folder = out.to_str().ok_or_else(|| Refusal::Mistakes(vec![format!("--out: {out:?} is not UTF-8")]))?;
    let files = identity::publish(&config, &keys, folder, ring::unix_now()).map_err(Refusal::Mistakes)?;
    if out.join("index.html").exists() && !out.join("bot.json").exists() {
        let what = "holds an index.html from elsewhere; expected an empty folder, or one that this command wrote";
        return Err(Refusal::Mistakes(vec![format!("--out: {folder} {what}")]));
    }
    let mut text = String::new();
    for (name, content) in &files {
        let path = out.join(name);
        replace(&path, content.as_bytes()).map_err(|error| told(&path, &error))?;
        text.push_str(&format!("{}\n", path.display()));
    }
    match keys.first() {
        Some(key) => text.push_str(&format!(
            "requests are signed with keyid {}; the directory's signatures expire in {} days\n",
            key.id(),
            DIRECTORY_LIFETIME.as_secs() / 86_400
        )),
        None => text.push_str("no key directory: identity.signing_key is not set\n"),
    }
    Ok(text)
}

/// Reads the key in a file by the rules for `identity.signing_key`; a file that was read has one.
fn key_in(file: &Path) -> Result<Option<SigningKey>, Refusal> {
    let path = std::path::absolute(file).map_err(|error| told(file, &error))?;
    let mut config = Config::default();
    let reference = format!("{{ file = {} }}", toml_edit::Value::from(path.to_string_lossy().as_ref()));
    let as_option = |mut error: ConfigError| {
        error.key = "--also-key".to_owned();
        vec![error]
    };
    config.set("identity.signing_key", &reference).map_err(as_option)?;
    config.read_secrets().map_err(|errors| errors.into_iter().flat_map(as_option).collect::<Vec<_>>())?;
    Ok(config.identity.signing_key.key().cloned())
}

fn keygen(file: &Path) -> Result<String, Refusal> {
    let no_random = || Refusal::System("the system returned no random numbers".to_owned());
    let key = SigningKey::generate().ok_or_else(no_random)?;
    let pem = key.to_pem().ok_or_else(no_random)?;
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    let mut made = made.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            Refusal::Mistakes(vec![format!("{}: it exists; ringcrawl never overwrites a key", file.display())])
        }
        _ => told(file, &error),
    })?;
    made.write_all(pem.as_bytes()).and_then(|()| made.sync_all()).map_err(|error| told(file, &error))?;
    let path = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    Ok(format!(
        "keyid {}\nidentity.signing_key = {{ file = {} }}\n",
        key.id(),
        toml_edit::Value::from(path.to_string_lossy().as_ref())
    ))
}

/// Writes `bytes` atomically to a file that anyone may read. Creates its folder.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::other("not a file"));
    };
    make_folder(folder)?;
    let beside = folder.join(format!("{}.new", name.to_string_lossy()));
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(&beside)?;
    file.write_all(bytes)?;
    file.set_permissions(Permissions::from_mode(0o644))?;
    file.sync_all()?;
    fs::rename(&beside, path)
}

/// Makes a folder that anyone may enter; an existing one is left as it is.
fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    if let Some(above) = folder.parent() {
        make_folder(above)?;
    }
    match DirBuilder::new().mode(0o755).create(folder) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
        Ok(()) => fs::set_permissions(folder, Permissions::from_mode(0o755)),
    }
}

fn told(path: &Path, error: &io::Error) -> Refusal {
    Refusal::System(format!("{}: {error}", path.display()))
}
