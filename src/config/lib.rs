//! The settings of the crawler, each with unit, default and range.
//!
//! Decides: one TOML file, one table per part of the crawler, and one list in the code (`keys`) that generates the
//! structs, their defaults, the reader, its errors and the example file. A limit that an operator may want to change is
//! a key; the others are constants in the code. No key can have a value that was never considered: unknown keys, wrong
//! units and values out of range prevent the start. All are reported at once, each with line and key.
//!
//! Invariants: a `Config` that `parse` or `load` returned has every value in its range and passes the rules between
//! keys; `parse(to_toml(c)) == c` for it, except for secrets, whose text is never written.
//! Limits: see `parse`.
//! Leaves to others: what the machine has (`boot`); what changes while the crawl runs (`control`).
//!
//! ```
//! use ringcrawl_config::Config;
//!
//! let config = Config::parse("crawl.shards = 2", "example.toml").expect("right");
//! assert_eq!(config.crawl.shards, 2);
//! let errors = Config::parse("crawl.shard = 2", "example.toml").expect_err("no such key");
//! assert!(errors[0].to_string().contains("unknown key"));
//! ```

mod check;
mod choices;
mod error;
mod example;
mod hierarchy;
mod host_lines;
mod hosts;
mod hours;
mod kept;
mod key;
mod keys;
mod kind;
mod limits;
mod login;
mod nearest;
mod network;
mod operators;
mod parse;
mod proxy;
mod record_kinds;
mod retry_rule;
mod secret;
mod signing_key;
#[cfg(test)]
mod tests;
mod text;
mod unit;
mod value;

use std::io::Read as _;
use std::path::Path;

pub use check::NAMES_SLACK;
pub use choices::{
    AdvisedAgainst, Alternates, BadPorts, Balance, BlockErrors, Certificates, CompressUncoded, Cookies,
    CrawlDelayAbove, Difference, DigestAlgorithm, Documents, Embeds, ExchangeMode, ExternalLinks, Families, Follow,
    Halved, PageCache, PartitionBy, PrivateAddresses, ProxyNames, RepeatedBodies, SeedErrors, SegmentFormat, SentFrom,
    SignatureAgentForm, SignedRequests, Simhash, Sitemaps, StoredBody, TrapDetection, UrlOrder,
};
pub use error::ConfigError;
pub use hierarchy::Hierarchy;
pub use host_lines::{HostLines, HostTerms};
pub use hours::Hours;
pub use kept::Change;
pub use key::{SIGNATURE_BYTES, SigningKey};
pub use keys::{
    Agent, Budget, Config, Crawl, Dns, Exchange, Fetch, Frontier, Http, Identity, Links, Outage, Partition, Politeness,
    Proxy, Retry, Robots, SHARDS_MAX, Scope, Seeds, Store, Tls, Traps, Visited,
};
use keys::{ConfigKey, TABLES};
use kind::Kind;
pub use nearest::nearest;
pub use network::read as read_network;
pub use operators::{Group, OperatorFiles, Operators};
pub use proxy::{ProxyAddress, ProxyScheme};
pub use record_kinds::RecordKinds;
pub use retry_rule::RetryRule;
pub use ringcrawl_html::MediaRanges;
pub use secret::Secret;
pub use signing_key::SigningSecret;
pub use text::read_cpus;
pub use value::OrNever;
use value::Value;

use ringcrawl_base::time::Duration;
use ringcrawl_url::KeyRules;

/// Reads a duration as the file has it, such as `250ms` or `10s`.
pub fn read_duration(text: &str) -> Result<Duration, String> {
    let expected = |_| "expected a whole number and a unit, such as 250ms, 10s or 5m".to_owned();
    unit::read_millis(text).map(Duration::from_millis).map_err(expected)
}

/// Reads a size as the file has it, such as `64KiB`.
pub fn read_size(text: &str) -> Result<u64, String> {
    unit::read_bytes(text).map_err(|_| "expected a whole number and a unit, such as 64KiB, 1MiB or 1GiB".to_owned())
}

impl Budget {
    /// Whether anything is bounded.
    pub fn is_set(&self) -> bool {
        let bytes = self.host_bytes_max.saturating_add(self.site_bytes_max);
        let has_time = !self.host_time_max.is_zero() || !self.site_time_max.is_zero();
        self.host_pages_max > 0 || self.site_pages_max > 0 || bytes > 0 || has_time
    }
}

impl ExchangeMode {
    /// Whether every shard fetches only what belongs to it.
    pub fn keeps_parts(self) -> bool {
        matches!(self, ExchangeMode::Exchange | ExchangeMode::Firewall)
    }
}

impl Config {
    /// Whether one shard sends all requests to the hosts of a site.
    pub fn keeps_sites(&self) -> bool {
        self.partition.by != PartitionBy::HostHash && self.keeps_hosts()
    }

    /// Whether one shard sends all requests to a host.
    pub fn keeps_hosts(&self) -> bool {
        !matches!(self.partition.by, PartitionBy::UrlHash | PartitionBy::Vector) && self.exchange.mode.keeps_parts()
    }

    /// Whether URLs are ordered by what links to them or by what is known of them: `frontier.order_ram_bytes_max`
    /// bounds the memory for that.
    pub fn goes_by_importance(&self) -> bool {
        matches!(self.frontier.order, UrlOrder::Backlinks | UrlOrder::Rank)
    }

    /// Whether we count how many sites link to a site: for allowances, where one shard owns a site.
    pub fn counts_linking_sites(&self) -> bool {
        self.budget.site_pages_per_linking_site > 0 && self.keeps_sites()
    }

    /// Whether links that leave the scope are listed.
    pub fn lists_external_links(&self) -> bool {
        self.links.external == ExternalLinks::List || self.crawl.rounds > 1
    }

    /// Bytes of each ring when there are `shards` shards: a power of two, so that all of them stay within
    /// `exchange.rings_bytes_max`, and always enough for the longest URL in a quarter of one.
    pub fn ring_bytes(&self, shards: u16) -> usize {
        let rings = usize::from(shards) * usize::from(shards.saturating_sub(1));
        let share = 1 << (self.exchange.rings_bytes_max / rings.max(1)).max(1).ilog2();
        let least = (4 * (self.scope.url_bytes_max + check::URL_OVERHEAD_BYTES)).next_power_of_two();
        share.max(least).min(self.exchange.ring_bytes)
    }

    /// Reads a configuration from `text`; `file_name` is for the errors. Pure: files that it names are not read.
    ///
    /// # Errors
    /// Everything that is wrong, in file order; never empty.
    pub fn parse(text: &str, file_name: &str) -> Result<Config, Vec<ConfigError>> {
        parse::parse(text, file_name, |config| check::clashes(config))
    }

    /// Reads a configuration from a file, and checks that the files it names are there.
    ///
    /// # Errors
    /// As for `parse`, plus one error without a line if the file cannot be read.
    pub fn load(path: impl AsRef<Path>) -> Result<Config, Vec<ConfigError>> {
        let path = path.as_ref();
        let file = path.display().to_string();
        let whole =
            |message: String| vec![ConfigError { file: file.clone(), line: 0, column: 0, key: String::new(), message }];
        let mut bytes = Vec::new();
        std::fs::File::open(path)
            .and_then(|file| file.take(parse::FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes))
            .map_err(|error| whole(format!("cannot be read: {error}")))?;
        let text = std::str::from_utf8(&bytes).map_err(|error| {
            let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
            let line = memchr::memchr_iter(b'\n', before).count() + 1;
            whole(format!("line {line} is not UTF-8; expected TOML in UTF-8"))
        })?;
        parse::parse(text, &file, check::clashes_and_files)
    }

    /// Sets one key from the command line: `set("politeness.host_delay", "0s")`. Quotes around text may be left
    /// out, lists may be written `a,b`, and one fixed name is set with `dns.hosts.NAME`. Unchanged on error.
    ///
    /// Rules between keys are not checked here, as the next `--set` may satisfy them: call `check` after the last.
    ///
    /// # Errors
    /// An unknown key, a value that the key does not take, or the text of a secret, which does not belong on a
    /// command line.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), ConfigError> {
        let blame = |message: String| ConfigError {
            file: "--set".to_owned(),
            line: 0,
            column: 0,
            key: key.to_owned(),
            message,
        };
        let (key, name) = find(key).ok_or_else(|| blame(unknown_path(key)))?;
        let word = match name {
            // An inline table of one name: the same reader as the file's.
            Some(name) => {
                let mut table = toml_edit::InlineTable::new();
                let addresses = value.split(',').map(str::trim).collect::<toml_edit::Array>();
                table.insert(name, toml_edit::Value::Array(addresses));
                table.to_string()
            }
            None => value.to_owned(),
        };
        let read = key.kind.read_word(&word).map_err(|faults| {
            blame(faults.into_iter().next().map_or_else(|| key.kind.expected(), |fault| fault.message))
        })?;
        if kept::holds_text(&read) {
            return Err(blame(
                "every user of this machine can see command lines (ps); expected the secret in a file or a credential, \
                 { file = \"/path\" } or { credential = \"name\" } (systemd's LoadCredential=), or in the configuration"
                    .to_owned(),
            ));
        }
        let value = match (read, name, (key.get)(self)) {
            (Value::Hosts(one), Some(_), Value::Hosts(mut all)) => {
                all.extend(one);
                Value::Hosts(all)
            }
            (read, _, _) => read,
        };
        let fits = (key.put)(self, value).is_some();
        assert!(fits, "the range of {} is wider than its field", key.path());
        Ok(())
    }

    /// Checks the rules between keys, after values were set.
    ///
    /// # Errors
    /// Every violated rule; never empty.
    pub fn check(&self) -> Result<(), Vec<ConfigError>> {
        let errors: Vec<ConfigError> = check::clashes(self)
            .into_iter()
            .map(|clash| {
                let ([key, _], [message, _]) = (clash.keys, clash.messages);
                ConfigError { file: String::new(), line: 0, column: 0, key: key.to_owned(), message }
            })
            .collect();
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    /// The example file: every key at its default, with what it limits, why, its range and its default.
    pub fn annotated() -> String {
        example::annotated()
    }

    /// This configuration as a file: every key, no comments, and no text of a secret.
    pub fn to_toml(&self) -> String {
        example::plain(&self.masked())
    }
}

impl Agent {
    /// The User-Agent field: `name/VERSION (+url; email)`, without the parts that are not known
    /// (RFC 9110 section 10.1.5).
    pub fn user_agent(&self) -> String {
        let product = format!("{}/{}", self.token(), env!("CARGO_PKG_VERSION"));
        match (self.url.as_str(), self.email.as_str()) {
            ("", "") => product,
            (url, "") => format!("{product} (+{url})"),
            ("", email) => format!("{product} ({email})"),
            (url, email) => format!("{product} (+{url}; {email})"),
        }
    }

    /// The product token that robots.txt addresses; the program's own if no name is given.
    pub fn token(&self) -> &str {
        if self.name.is_empty() { "ringcrawl" } else { &self.name }
    }

    /// Whether site owners can identify the crawler and complain: name, url and email are all set. Required before
    /// anything except loopback is fetched.
    pub fn is_complete(&self) -> bool {
        !self.name.is_empty() && !self.url.is_empty() && !self.email.is_empty()
    }
}

impl Visited {
    /// The parts of a URL that its key omits.
    pub fn key_rules(&self) -> KeyRules {
        let ignored = |difference| difference == Difference::Ignore;
        KeyRules {
            sessions: ignored(self.session_ids),
            parameters: if ignored(self.tracking) { self.tracking_parameters.clone() } else { Vec::new() },
            order: ignored(self.parameter_order),
            index_page: ignored(self.index_pages),
        }
    }
}

impl Politeness {
    /// The least time between two requests to a host without terms of its own: its site's delay applies to it, too.
    pub fn least_host_delay(&self) -> Duration {
        self.host_delay.max(self.site_delay)
    }

    /// The least time between two requests to a host. Within a visit of several requests at once, only the host's own
    /// delay applies.
    pub fn delay_of(&self, host: &str) -> Duration {
        let terms = self.host.terms_of(host);
        let own = terms.delay.unwrap_or(self.host_delay);
        if terms.concurrency > 1 || terms.is_mine { own } else { own.max(self.site_delay) }
    }
}

impl Fetch {
    /// First and last port of `source_ports`; `None` for the system's.
    pub fn source_port_range(&self) -> Option<(u16, u16)> {
        text::read_ports(&self.source_ports).unwrap_or_default()
    }
}

impl Proxy {
    /// The proxy address in `url`; `None`: there is none.
    pub fn address(&self) -> Option<ProxyAddress> {
        proxy::read(self.url.reveal()).unwrap_or_default()
    }
}

/// The key of a path, and the fixed name that follows `dns.hosts.`, if any.
fn find(path: &str) -> Option<(&'static ConfigKey, Option<&str>)> {
    let (table, rest) = path.split_once('.')?;
    let mut keys = TABLES.iter().filter(|known| known.name == table).flat_map(|table| table.keys);
    keys.find_map(|key| match rest.strip_prefix(key.name)? {
        "" => Some((key, None)),
        below => match (key.kind, below.strip_prefix('.')) {
            (Kind::Hosts, Some(name)) => Some((key, Some(name.trim_matches('"')))),
            _ => None,
        },
    })
}

fn unknown_path(path: &str) -> String {
    let paths: Vec<String> = TABLES.iter().flat_map(|table| table.keys).map(ConfigKey::path).collect();
    let word = path.rsplit('.').next().unwrap_or(path);
    match nearest(path, paths.iter().map(String::as_str)) {
        Some(near) => format!("unknown key (did you mean {near}?)"),
        None => parse::unknown("key", word, TABLES.iter().map(|table| table.name)),
    }
}
