//! Rules between two keys: values that are valid one by one but not together.
//!
//! Decides: only what certainly cannot work is refused. A deadline below a timeout would make the timeout a lie; a
//! ring that cannot hold one URL would block its shard forever. The guide covers what is merely unwise.
//! Leaves to others: ranges of single keys (`keys`), the machine's memory and CPUs (`boot`).

use std::path::Path;

use super::choices::{
    Balance, CompressUncoded, DigestAlgorithm, ExchangeMode, Follow, PartitionBy, RepeatedBodies, SegmentFormat,
    UrlOrder,
};
use super::kept;
use super::keys::Config;
use super::unit::{format_bytes, format_duration};
use ringcrawl_base::time::Duration;

/// Two keys that contradict each other.
pub(super) struct Clash {
    /// Their paths. The error is reported at the first of them that appears in the file.
    pub(super) keys: [&'static str; 2],
    /// What is wrong, as worded for the first and for the second key.
    pub(super) messages: [String; 2],
}

/// Bytes that a URL costs in a batch on top of its own length: length and depth. Generous, as the format is
/// `exchange`'s.
pub(super) const URL_OVERHEAD_BYTES: usize = 64;

/// Time that `control::Breaker` needs on top of `dns.timeout` to find out whether a name server answers.
pub const NAMES_SLACK: Duration = Duration::from_secs(2);

/// All rules that need nothing but the configuration.
pub(super) fn clashes(config: &Config) -> Vec<Clash> {
    let mut clashes = Vec::new();
    let mut at_most = |low: (&'static str, String), high: (&'static str, String), holds: bool| {
        if !holds {
            let messages = [
                format!("{} exceeds what {} = {} allows; lower it, or raise the other", low.1, high.0, high.1),
                format!("{} is too low for {} = {}; raise it, or lower the other", high.1, low.0, low.1),
            ];
            clashes.push(Clash { keys: [low.0, high.0], messages });
        }
    };

    let fetch = &config.fetch;
    for (key, timeout) in [
        ("fetch.connect_timeout", fetch.connect_timeout),
        ("fetch.tls_timeout", fetch.tls_timeout),
        ("fetch.first_byte_timeout", fetch.first_byte_timeout),
    ] {
        at_most(
            (key, format_duration(timeout)),
            ("fetch.deadline", format_duration(fetch.deadline)),
            timeout <= fetch.deadline,
        );
    }
    for (low, low_value, high, high_value) in [
        ("dns.ttl_min", config.dns.ttl_min, "dns.ttl_max", config.dns.ttl_max),
        ("dns.negative_ttl_min", config.dns.negative_ttl_min, "dns.negative_ttl_max", config.dns.negative_ttl_max),
        ("robots.retry_delay", config.robots.retry_delay, "robots.ttl", config.robots.ttl),
    ] {
        at_most((low, format_duration(low_value)), (high, format_duration(high_value)), low_value <= high_value);
    }
    at_most(
        ("outage.sites_failed", config.outage.sites_failed.to_string()),
        ("outage.sites", config.outage.sites.to_string()),
        config.outage.sites_failed <= config.outage.sites,
    );
    // A failure must be held until the name servers have answered or timed out.
    let names_take = config.dns.timeout + NAMES_SLACK;
    at_most(
        ("dns.timeout", format_duration(config.dns.timeout)),
        ("outage.hold_max", format_duration(config.outage.hold_max)),
        names_take < config.outage.hold_max,
    );
    let url_bytes = config.scope.url_bytes_max;
    for (key, bytes, room) in [
        // A message is at most a quarter of its ring.
        ("exchange.ring_bytes", config.exchange.ring_bytes, config.exchange.ring_bytes / 4),
        ("exchange.waiting_bytes_max", config.exchange.waiting_bytes_max, config.exchange.waiting_bytes_max),
        // A redirect's Location must fit the head it stands in.
        ("fetch.header_bytes_max", fetch.header_bytes_max, fetch.header_bytes_max),
    ] {
        at_most(
            ("scope.url_bytes_max", format_bytes(url_bytes as u64)),
            (key, format_bytes(bytes as u64)),
            url_bytes.saturating_add(URL_OVERHEAD_BYTES) <= room,
        );
    }
    let store = &config.store;
    if store.compress_uncoded == CompressUncoded::Dictionary && store.format == SegmentFormat::WarcGz {
        let message = "a gzip member has no dictionary: expected store.format = \"warc.zst\", or \"level\"".to_owned();
        clashes.push(Clash { keys: ["store.compress_uncoded", "store.format"], messages: [message.clone(), message] });
    }
    if store.digest == DigestAlgorithm::Xxh3 && store.duplicates == RepeatedBodies::Revisit {
        let message = "anyone can make two bodies with the same XXH3, and the second would be lost: expected another digest, or store.duplicates = \"store\""
            .to_owned();
        clashes.push(Clash { keys: ["store.digest", "store.duplicates"], messages: [message.clone(), message] });
    }
    if !store.dedupe_against.is_empty() && store.duplicates == RepeatedBodies::Store {
        let message =
            "every body would be stored, whatever earlier crawls have: expected store.duplicates = \"revisit\", or no \
                       indexes"
                .to_owned();
        let keys = ["store.dedupe_against", "store.duplicates"];
        clashes.push(Clash { keys, messages: [message.clone(), message] });
    }
    if config.identity.signing_key.is_given() && config.identity.directory_url.is_empty() {
        let message =
            "verifiers need the address of the public key: expected identity.directory_url as well".to_owned();
        let keys = ["identity.signing_key", "identity.directory_url"];
        clashes.push(Clash { keys, messages: [message.clone(), message] });
    }
    if config.crawl.rounds > 1 && config.scope.follow == Follow::All {
        let message =
            "no link would leave the first round: expected scope.follow = \"seed-sites\" or \"seed-hosts\"".to_owned();
        clashes.push(Clash { keys: ["crawl.rounds", "scope.follow"], messages: [message.clone(), message] });
    }
    if (config.partition.by == PartitionBy::Vector) == config.partition.vector.is_empty() {
        let message = "an assignment and its file go together: expected partition.by = \"vector\" and partition.vector = \"FILE\", or neither";
        clashes.push(Clash {
            keys: ["partition.by", "partition.vector"],
            messages: [message.to_owned(), message.to_owned()],
        });
    }
    let shares_urls = !config.exchange.mode.keeps_parts();
    if config.partition.by == PartitionBy::Dynamic && shares_urls {
        let message = "if several shards fetch the same URLs, their logs do not say which shard owns a site: expected";
        clashes.push(Clash {
            keys: ["partition.by", "exchange.mode"],
            messages: [
                format!("{message} another partition, or exchange.mode = \"exchange\" or \"firewall\""),
                format!("{message} \"exchange\" or \"firewall\", or another partition.by"),
            ],
        });
    }
    if !config.exchange.replicated.is_empty() && config.exchange.mode != ExchangeMode::Exchange {
        let message = "this mode sends no links: expected exchange.mode = \"exchange\", or no list".to_owned();
        let keys = ["exchange.replicated", "exchange.mode"];
        clashes.push(Clash { keys, messages: [message.clone(), message] });
    }
    if config.partition.balance == Balance::Sites {
        let message =
            "balance needs a partition that gives each site one shard, and exchange.mode = \"exchange\": expected \"off\"".to_owned();
        for (key, is_wrong) in [
            ("partition.by", !config.keeps_sites() && config.exchange.mode.keeps_parts()),
            ("partition.by", config.partition.by == PartitionBy::Dynamic),
            ("exchange.mode", config.exchange.mode != ExchangeMode::Exchange),
        ] {
            if is_wrong {
                let messages = [message.clone(), message.replace("expected", "expected partition.balance =")];
                clashes.push(Clash { keys: ["partition.balance", key], messages });
            }
        }
    }
    if config.frontier.order == UrlOrder::Rank && config.frontier.ranks.is_empty() {
        let message = "no URL has a rank: expected frontier.ranks as well".to_owned();
        clashes.push(Clash { keys: ["frontier.order", "frontier.ranks"], messages: [message.clone(), message] });
    }
    let budget = &config.budget;
    let torn_by = if config.exchange.mode.keeps_parts() { "partition.by" } else { "exchange.mode" };
    for (key, is_set) in [
        ("budget.site_pages_max", budget.site_pages_max > 0),
        ("budget.site_bytes_max", budget.site_bytes_max > 0),
        ("budget.site_time_max", !budget.site_time_max.is_zero()),
    ] {
        if is_set && !config.keeps_sites() {
            let message = format!(
                "no shard knows the cost of a site that is on several shards: expected another {torn_by}, or a budget of hosts"
            );
            clashes.push(Clash { keys: [key, torn_by], messages: [message.clone(), message] });
        }
    }
    for (key, is_set) in [
        ("budget.host_pages_max", budget.host_pages_max > 0),
        ("budget.host_bytes_max", budget.host_bytes_max > 0),
        ("budget.host_time_max", !budget.host_time_max.is_zero()),
    ] {
        if is_set && !config.keeps_hosts() {
            let message =
                format!("no shard knows the cost of a host that is on several shards: expected another {torn_by}");
            clashes.push(Clash { keys: [key, torn_by], messages: [message.clone(), message] });
        }
    }
    if config.politeness.host.have_several() && !config.keeps_hosts() {
        let message = format!(
            "a host on several shards gets one request at a time: expected another {torn_by}, or no politeness.host with mine or concurrency"
        );
        clashes.push(Clash { keys: ["politeness.host", torn_by], messages: [message.clone(), message] });
    }
    for dir in config.store.dirs.iter().filter(|dir| !dir.is_absolute()) {
        let message = format!("{dir:?} is relative to the current directory; expected absolute paths");
        clashes.push(Clash { keys: ["store.dirs"; 2], messages: [message.clone(), message] });
    }
    clashes
}

/// The rules of `clashes`, and a check that the files named in the configuration exist and have valid content. Reads
/// the file system, and keeps operators and secrets in `config`. A service's credentials are only read inside the
/// service.
pub(super) fn clashes_and_files(config: &mut Config) -> Vec<Clash> {
    let mut clashes = clashes(config);
    for file in config.tls.ca_files.iter().filter(|file| !Path::new(file).is_file()) {
        let message = format!("{file:?}: no such file; expected paths of PEM files");
        clashes.push(Clash { keys: ["tls.ca_files"; 2], messages: [message.clone(), message] });
    }
    let none = String::new();
    // Ranks are read only where they order URLs.
    let ranks = if config.frontier.order == UrlOrder::Rank { &config.frontier.ranks } else { &none };
    for (key, path, of) in [
        ("scope.rules", &config.scope.rules, "rules"),
        ("partition.vector", &config.partition.vector, "an assignment"),
        ("exchange.replicated", &config.exchange.replicated, "URLs and their links"),
        ("frontier.ranks", ranks, "ranks"),
    ] {
        if !path.is_empty() && !Path::new(path).is_file() {
            let message = format!("{path:?}: no such file; expected a file of {of}");
            clashes.push(Clash { keys: [key; 2], messages: [message.clone(), message] });
        }
    }
    for path in config.scope.block.iter().filter(|path| !path.is_file()) {
        let message = format!("{path:?}: no such file; expected paths of block lists");
        clashes.push(Clash { keys: ["scope.block"; 2], messages: [message.clone(), message] });
    }
    // Opening a pipe would block.
    for path in config.store.dedupe_against.iter().filter(|path| !path.is_file() && !path.is_dir()) {
        let message = format!("{path:?}: not found; expected CDXJ files or directories with segments");
        clashes.push(Clash { keys: ["store.dedupe_against"; 2], messages: [message.clone(), message] });
    }
    for path in config.store.dirs.iter().filter(|path| path.is_absolute() && !path.is_dir()) {
        let message = format!("{path:?}: no such directory; expected directories on mounted disks");
        clashes.push(Clash { keys: ["store.dirs"; 2], messages: [message.clone(), message] });
    }
    for message in config.politeness.operators.read().err().unwrap_or_default() {
        clashes.push(Clash { keys: ["politeness.operators"; 2], messages: [message.clone(), message] });
    }
    let credentials = kept::credentials();
    let errors = config.secret_errors(credentials.as_deref());
    for error in errors.into_iter().filter(|error| credentials.is_some() || !error.is_credential) {
        let message = error.name.map_or(error.why.clone(), |name| format!("{name:?}: {}", error.why));
        clashes.push(Clash { keys: [error.key; 2], messages: [message.clone(), message] });
    }
    clashes
}
