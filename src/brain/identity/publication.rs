//! What `ringcrawl identity` publishes, as files: for people, for programs, and for the web server that serves them.
//!
//! Decides: everything comes from the configuration that crawls, so the files say what the crawler does. The page is
//! at `agent.url`, bot.json and addresses.json lie next to it, and the directory is where `identity.directory_url`
//! says.
//! Limits: paths that need no quoting in a server's configuration.
//! Leaves to others: writing the files (`cli`).

use super::card;
use super::directory::Directory;
use super::page;
use super::signer::WELL_KNOWN;
use super::snippets;
use ringcrawl_base::time::UnixTime;
use ringcrawl_config::Config;
use ringcrawl_config::SigningKey;
use ringcrawl_url::Url;

/// A file to write, by its path below the folder.
pub type PublishedFile = (&'static str, String);

/// The facts in the files.
pub(super) struct Facts<'a> {
    pub(super) config: &'a Config,
    pub(super) places: Places,
    /// Where the directory is; `None`: there are no keys.
    pub(super) directory: Option<DirectoryPlace>,
    pub(super) key_ids: Vec<&'a str>,
}

/// URLs of what is published.
pub(super) struct Places {
    pub(super) page: Url,
    pub(super) card: String,
    pub(super) addresses: String,
}

/// Where the directory is.
pub(super) struct DirectoryPlace {
    /// Its URL.
    pub(super) url: String,
    /// As verifiers see it.
    pub(super) authority: String,
    /// Below the authority.
    pub(super) path: String,
}

impl Facts<'_> {
    pub(super) fn has_addresses(&self) -> bool {
        !self.config.identity.addresses.is_empty()
    }
}

/// The files for `config` and `keys`, to be served from `folder`. The first key is the one in use.
///
/// # Errors
/// Every key of the configuration that is missing or unsuitable; never empty.
pub fn publish(
    config: &Config,
    keys: &[SigningKey],
    folder: &str,
    now: UnixTime,
) -> Result<Vec<PublishedFile>, Vec<String>> {
    let facts = facts(config, keys, folder)?;
    let mut files = vec![(PAGE, page::page(&facts, now)), (CARD, card::card(&facts))];
    if facts.has_addresses() {
        files.push((ADDRESSES, card::addresses(&facts, now)));
    }
    let directory = facts.directory.as_ref().map(|place| (place, Directory::new(keys, &place.authority, now)));
    let served = snippets::served(&facts, directory.as_ref().map(|(place, directory)| (*place, directory)));
    files.push(("nginx.conf", snippets::nginx(&served, folder)));
    files.push(("Caddyfile", snippets::caddy(&served, folder)));
    if let Some((_, directory)) = directory {
        files.push(("signature-headers.txt", snippets::header_lines(&directory)));
        files.push((DIRECTORY, directory.body));
    }
    Ok(files)
}

/// Names of files below the folder.
pub(super) const PAGE: &str = "index.html";
pub(super) const CARD: &str = "bot.json";
pub(super) const ADDRESSES: &str = "addresses.json";
pub(super) const DIRECTORY: &str = ".well-known/http-message-signatures-directory";

fn facts<'a>(config: &'a Config, keys: &'a [SigningKey], folder: &str) -> Result<Facts<'a>, Vec<String>> {
    let (agent, identity) = (&config.agent, &config.identity);
    let mut errors = Vec::new();
    for (key, value) in [
        ("agent.name", &agent.name),
        ("agent.url", &agent.url),
        ("agent.email", &agent.email),
        ("identity.operator", &identity.operator),
        ("identity.purpose", &identity.purpose),
    ] {
        if value.trim().is_empty() {
            errors.push(format!("{key} is not set: site owners want to know it"));
        }
    }
    if let Some(character) = folder.chars().find(|character| is_special(*character)) {
        errors.push(format!("--out: a path with {character:?} would need quoting in a server's configuration"));
    }
    let page = Url::parse(&agent.url).ok();
    if let Some(page) = page.as_ref().filter(|page| !is_plain_path(page.path_and_query())) {
        errors.push(format!("agent.url: {}", not_plain(page.path_and_query())));
    }
    let directory = match identity.directory_url.as_str() {
        _ if keys.is_empty() => None,
        text => directory_place(text).map_err(|error| errors.push(format!("identity.directory_url: {error}"))).ok(),
    };
    match page {
        Some(page) if errors.is_empty() => {
            // The page's path is plain, so its folder ends at its last slash.
            let base = page.as_str().rsplit_once('/').map_or(page.as_str(), |(base, _)| base);
            let [card, addresses] = [CARD, ADDRESSES].map(|name| format!("{base}/{name}"));
            let key_ids = keys.iter().map(SigningKey::id).collect();
            Ok(Facts { config, places: Places { page, card, addresses }, directory, key_ids })
        }
        _ => Err(errors),
    }
}

fn directory_place(text: &str) -> Result<DirectoryPlace, String> {
    let url = Url::parse(text).map_err(|_| "it is not set, and there is a key".to_owned())?;
    // Drafts before 2026 named the authority alone.
    let path = if url.path_and_query() == "/" { WELL_KNOWN } else { url.path_and_query() };
    if !is_plain_path(path) {
        return Err(not_plain(path));
    }
    Ok(DirectoryPlace {
        url: format!("{}{path}", url.origin()),
        authority: url.authority().to_owned(),
        path: path.to_owned(),
    })
}

fn not_plain(path: &str) -> String {
    format!("expected a path of letters, digits and any of \"/._~-\", and not {path:?}")
}

fn is_plain_path(path: &str) -> bool {
    path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._~-".contains(&byte))
}

/// Characters that are special within the quotes of nginx or Caddy.
fn is_special(character: char) -> bool {
    character.is_control() || "\"\\$`{}".contains(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixTime = UnixTime::from_micros(1_795_250_432_000_000);

    fn config(more: &str) -> Config {
        let text = format!(
            "agent.name = \"examplebot\"\nagent.url = \"https://Example.org/bot/\"\nagent.email = \"bot@example.org\"\n\
             identity.operator = \"R&D <Example>\"\nidentity.purpose = \"An index of \\\"all\\\" pages.\"\n{more}"
        );
        Config::parse(&text, "test").unwrap_or_else(|errors| panic!("{errors:?}"))
    }

    fn files(config: &Config, keys: &[SigningKey]) -> std::collections::BTreeMap<&'static str, String> {
        publish(config, keys, "/srv/bot", NOW).unwrap_or_else(|errors| panic!("{errors:?}")).into_iter().collect()
    }

    #[test]
    fn with_keys_and_addresses() {
        let keys = [SigningKey::generate(), SigningKey::generate()].map(|key| key.expect("random numbers"));
        let config = config(
            "identity.addresses = [\"192.0.2.0/24\", \"2001:DB8::1\"]\n\
             identity.directory_url = \"https://keys.example.org\"\npoliteness.host_delay = \"2s\"\n",
        );
        let files = files(&config, &keys);
        let names = [DIRECTORY, "Caddyfile", ADDRESSES, CARD, PAGE, "nginx.conf", "signature-headers.txt"];
        assert_eq!(files.keys().copied().collect::<Vec<_>>(), names);
        let card: serde_json::Value = serde_json::from_str(&files[CARD]).expect("JSON");
        let expected = serde_json::json!({
            "client_id": "https://example.org/bot/bot.json",
            "client_name": "examplebot",
            "client_uri": "https://Example.org/bot/",
            "contacts": ["mailto:bot@example.org"],
            "jwks_uri": "https://keys.example.org/.well-known/http-message-signatures-directory",
            "web_bot_auth": {
                "expected-user-agent": config.agent.user_agent(),
                "rfc9309-product-token": "examplebot",
                "rfc9309-compliance": true,
                "trigger": "crawler",
                "purpose": "An index of \"all\" pages.",
                "rate-control": "429 or 503 with Retry-After, and Crawl-delay in robots.txt",
                "rate-expectation": "at most one request at a time to a host, and 2 seconds between two",
                "known-urls": ["/robots.txt"],
                "ips_uri": "https://example.org/bot/addresses.json",
            },
        });
        assert_eq!(card, expected);
        let addresses: serde_json::Value = serde_json::from_str(&files[ADDRESSES]).expect("JSON");
        let prefixes = serde_json::json!([{ "ipv4Prefix": "192.0.2.0/24" }, { "ipv6Prefix": "2001:db8::1/128" }]);
        assert_eq!((&addresses["prefixes"], &addresses["creationTime"]), (&prefixes, &"2026-11-21T08:40:32Z".into()));
        let page = &files[PAGE];
        for word in [
            "R&amp;D &lt;Example&gt;",
            "An index of &quot;all&quot; pages.",
            "2001:DB8::1",
            "2 seconds",
            keys[0].id(),
            keys[1].id(),
        ] {
            assert!(page.contains(word), "{word}: {page}");
        }
        assert!(page.contains("User-agent: examplebot\nDisallow: /\n") && !page.contains("<script"), "{page}");
        for all in files.values() {
            assert!(!all.contains("PRIVATE") && !all.contains("\"d\""));
        }
    }

    #[test]
    fn without_a_key_and_without_addresses() {
        let files = files(&config("agent.from = \"off\""), &[]);
        assert_eq!(files.keys().copied().collect::<Vec<_>>(), ["Caddyfile", CARD, PAGE, "nginx.conf"]);
        assert!(!files[CARD].contains("jwks_uri") && !files[CARD].contains("ips_uri"));
        assert!(!files[PAGE].contains("Signature") && files[PAGE].contains("no fixed addresses"), "{}", files[PAGE]);
    }

    #[test]
    fn what_is_agreed_with_owners_is_told() {
        let of = |line: &str| files(&config(&format!("[[politeness.host]]\nmatch = \"a.test\"\n{line}")), &[]);
        for (line, agreed) in [
            ("concurrency = 4", Some("up to 4 at a time")),
            ("delay = \"0s\"", Some("0 milliseconds between two")),
            ("delay = \"100ms\"\nconcurrency = 2", Some("up to 2 at a time, and 100 milliseconds between two")),
            ("delay = \"1h\"", None),
        ] {
            let files = of(line);
            let told = [(CARD, "unless agreed with a host's owner"), (PAGE, "unless something else is agreed")].map(
                |(file, words)| files[file].contains(words) && agreed.is_none_or(|agreed| files[file].contains(agreed)),
            );
            assert_eq!(told, [agreed.is_some(); 2], "{line}");
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let keys = [SigningKey::generate().expect("random numbers")];
        let errors = |config: &Config, folder: &str| publish(config, &keys, folder, NOW).expect_err(folder).join("\n");
        let told = errors(&Config::default(), "/a\"b");
        for key in [
            "agent.name",
            "agent.url",
            "agent.email",
            "identity.operator",
            "identity.purpose",
            "identity.directory_url",
            "--out",
        ] {
            assert!(told.contains(key), "{key}: {told}");
        }
        let odd = config("identity.directory_url = \"https://a.test/a;b\"");
        assert!(errors(&odd, "/srv").contains("identity.directory_url: expected a path of letters"));
    }
}
