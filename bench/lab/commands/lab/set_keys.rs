//! Keys of the configuration that an experiment does not take from `--set`.
//!
//! Decides: two kinds of keys are refused: those that an argument sets, and those that no simulated crawl reads. A
//! setting without effect is a mistake in an experiment.

/// Why a key is refused; `None` if it is not.
pub fn refused(key: &str) -> Option<String> {
    let argument =
        ARGUMENTS_OF_KEYS.iter().find(|(of, _)| *of == key).map(|(_, name)| format!("{name} says that here"));
    argument.or_else(|| unread(key).map(str::to_owned))
}

fn unread(key: &str) -> Option<&'static str> {
    UNREAD.iter().find(|(keys, _)| keys.iter().any(|of| key.starts_with(of))).map(|(_, why)| *why)
}

/// Keys that an argument sets.
const ARGUMENTS_OF_KEYS: [(&str, &str); 12] = [
    ("politeness.host_delay", "--delay"),
    ("politeness.site_delay", "--delay"),
    ("partition.by", "--partition"),
    ("partition.vector", "--partition site-gp or page-gp"),
    ("exchange.mode", "--mode"),
    ("exchange.replicated", "--replicate"),
    ("exchange.replicated_max", "--replicate"),
    ("frontier.order", "--order"),
    ("frontier.ranks", "--order pagerank"),
    ("crawl.shards", "--shards"),
    ("crawl.pages_max", "--pages-max"),
    ("crawl.rng_seed", "--rng-seed"),
];

/// Prefixes of keys that no simulated crawl reads, and why.
const UNREAD: [(&[&str], &str); 5] = [
    (&["partition.balance"], "sites do not move here, as that is worth what fetching costs"),
    (&["scope.rules", "scope.block", "politeness.operators", "store.dedupe_against"], "no such file is read here"),
    (&["crawl.time_max", "crawl.rounds"], "a crawl ends here when it has all pages, or after --pages-max"),
    (
        &["agent.", "identity.", "http.", "tls.", "outage.", "dns.servers"],
        "there is no network here, and no server or service that would see it",
    ),
    (
        &[
            "crawl.cpus",
            "crawl.ram_bytes_max",
            "fetch.connect_timeout",
            "fetch.attempt_delay",
            "fetch.tls_timeout",
            "fetch.first_byte_timeout",
            "fetch.rate_",
            "fetch.idle_",
            "fetch.private_addresses",
            "fetch.source_",
            "fetch.receive_buffer_bytes",
            "fetch.send_buffer_bytes",
            "store.dirs",
            "store.preallocate",
            "store.page_cache",
            "store.free_bytes_min",
        ],
        "there is no machine here, with CPUs, memory, sockets and disks, that it could be about",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_config::Config;

    /// Each entry of the table is a prefix of a key of the whole configuration: none is misspelled.
    #[test]
    fn what_is_refused_are_keys() {
        let (mut section, mut keys) = (String::new(), Vec::new());
        for line in Config::annotated().lines() {
            if let Some(name) = line.strip_prefix('[').and_then(|line| line.split(']').next()) {
                section = name.trim_matches('[').to_owned();
            } else if let Some((name, _)) = line.split_once(" = ").filter(|_| !line.starts_with('#')) {
                keys.push(format!("{section}.{name}"));
            }
        }
        for begin in UNREAD.iter().flat_map(|(begins, _)| *begins) {
            assert!(keys.iter().any(|key| key.starts_with(begin)), "{begin}");
        }
        assert!(refused("exchange.recent_urls").is_none() && refused("fetch.in_flight_max").is_none());
    }
}
