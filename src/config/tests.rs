//! Tests of the configuration as a whole: the list of keys, the errors as operators see them, and hostile text.

use super::keys::TABLES;
use super::kind::Kind;
use super::*;
use ringcrawl_base::time::Duration;
use ringcrawl_base::{Rng, TempFolder};

fn errors(text: &str) -> Vec<String> {
    match Config::parse(text, "a.toml") {
        Ok(_) => Vec::new(),
        Err(errors) => errors.iter().map(ConfigError::to_string).collect(),
    }
}

/// The one error of `text`, without the file's name.
fn error(text: &str) -> String {
    let errors = errors(text);
    assert_eq!(errors.len(), 1, "{errors:#?}");
    errors.first().and_then(|error| error.strip_prefix("a.toml:")).map(str::to_owned).expect("a file and an error")
}

#[test]
fn an_empty_file_is_the_default() {
    let config = Config::parse("", "a.toml").expect("valid");
    assert_eq!(config, Config::default());
    assert_eq!(config.politeness.host_delay, Duration::from_secs(1));
    assert_eq!(config.fetch.body_bytes_max, 16 << 20);
    assert_eq!(config.frontier.ram_bytes_max, 1 << 30);
    assert_eq!(config.visited.urls_max, 100_000_000);
    assert_eq!(config.fetch.private_addresses, PrivateAddresses::Deny);
    assert_eq!(config.store.zstd_level, 1);
    assert_eq!(config.check(), Ok(()));
}

#[test]
fn the_example_holds_every_key_at_its_default() {
    let example = Config::annotated();
    assert_eq!(Config::parse(&example, "example").expect("valid"), Config::default());
    for table in TABLES {
        for key in table.keys {
            let line = match key.kind {
                Kind::HostLines => format!("\n# [[{}]]", key.path()),
                _ => format!("\n{} = ", key.name),
            };
            assert!(example.contains(&line), "{}", key.path());
            assert!(!key.docs.is_empty());
        }
    }
    assert!(example.lines().all(|line| line.chars().count() <= 140 && !line.ends_with(' ')));
}

#[test]
fn what_is_printed_reads_back() {
    let mut config = Config::default();
    for (key, value) in [
        ("agent.name", "example-bot"),
        ("agent.email", "bot@example.org"),
        ("crawl.cpus", "1-3,7"),
        ("crawl.rng_seed", "9223372036854775807"),
        ("dns.servers", "127.0.0.1, [::1]:5353"),
        ("dns.hosts.www.example.test", "127.0.0.1,::1"),
        ("dns.hosts.a_b", "127.0.0.2"),
        ("tls.ca_files", "[\"a \\\"b\\\".pem\"]"),
        ("politeness.host_delay", "\"1500ms\""),
        ("retry.transfer", "{ tries = 1, delay = \"0s\" }"),
        ("politeness.host", "[{ match = '*.a.test', hours = '22:00-24:00' }, { match = 'a.test', concurrency = 4 }]"),
        ("scope.url_bytes_max", "1000B"),
        ("store.zstd_level", "-7"),
        ("partition.by", "host-hash"),
        ("tls.certificates", "record"),
        ("fetch.source_addresses", "127.0.0.2, ::1"),
        ("fetch.source_ports", "20000-60000"),
        ("visited.tracking", "ignore"),
        ("visited.tracking_parameters", "ref, utm_*, a[b]"),
        ("proxy.url", "socks5://127.0.0.1:1080"),
        ("http.auth", "{ \"https://a.test\" = { credential = \"a\" } }"),
    ] {
        config.set(key, value).unwrap_or_else(|error| panic!("{error}"));
    }
    assert_eq!(read_cpus(&config.crawl.cpus), Ok(vec![1, 2, 3, 7]));
    assert_eq!(config.dns.servers.iter().map(|server| server.port()).collect::<Vec<_>>(), [53, 5353]);
    assert_eq!(config.dns.hosts.get("www.example.test").map(Vec::len), Some(2));
    assert_eq!(config.politeness.host_delay, Duration::from_millis(1500));
    assert_eq!(config.fetch.source_port_range(), Some((20_000, 60_000)));
    let expected = KeyRules { parameters: ["ref", "utm_*", "a[b]"].map(str::to_owned).to_vec(), ..KeyRules::default() };
    assert_eq!((config.visited.key_rules(), Config::default().visited.key_rules()), (expected, KeyRules::default()));
    for wrong in ["*", "a=b", "a**", "[\"a,b\"]", "[\"\"]", "[1]", "ü"] {
        assert!(config.set("visited.tracking_parameters", wrong).is_err(), "{wrong}");
    }
    assert_eq!(config.proxy.address().map(|proxy| proxy.port), Some(1_080));
    assert_eq!(Config::parse(&config.to_toml(), "a.toml").expect("valid"), config);
}

#[test]
fn every_range_fits_its_field_and_says_so_outside() {
    for key in TABLES.iter().flat_map(|table| table.keys) {
        let (inside, outside): (Vec<String>, Vec<String>) = match key.kind {
            Kind::Number(min, max) => (
                vec![min.to_string(), max.to_string()],
                [min.checked_sub(1), max.checked_add(1)]
                    .into_iter()
                    .flatten()
                    .map(|number| number.to_string())
                    .collect(),
            ),
            Kind::Time(min, max) => (vec![format!("{min}ms"), format!("{max}ms")], vec![format!("{}ms", max + 1)]),
            Kind::TimeOrNever(min, max) => (
                vec![format!("{min}ms"), format!("{max}ms"), "never".to_owned()],
                vec![format!("{}ms", min - 1), format!("{}ms", max + 1), "ever".to_owned()],
            ),
            Kind::Size(min, max) => {
                let outside = min.checked_sub(1).into_iter().chain([max + 1]);
                (vec![format!("{min}B"), format!("{max}B")], outside.map(|bytes| format!("{bytes}B")).collect())
            }
            Kind::Choice(choices) => {
                (choices.iter().map(|(word, _)| (*word).to_owned()).collect(), vec!["other".into(), String::new()])
            }
            Kind::Text(_)
            | Kind::Servers
            | Kind::Hosts
            | Kind::Files
            | Kind::Names
            | Kind::Logins
            | Kind::Proxy
            | Kind::SigningKey
            | Kind::HostLines
            | Kind::Retry
            | Kind::Networks
            | Kind::Addresses => continue,
        };
        let mut config = Config::default();
        for value in inside {
            config.set(&key.path(), &value).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(Config::parse(&config.to_toml(), "").map_err(|_| ()).is_ok(), config.check().is_ok());
        }
        for value in outside {
            let before = config.clone();
            let error = config.set(&key.path(), &value).expect_err("out of range").to_string();
            assert!(error.contains("; expected"), "{error}");
            assert_eq!(config, before);
        }
    }
}

#[test]
fn errors_name_line_key_and_what_is_expected() {
    for (text, expected) in [
        (
            "[fetch]\ndeadline = 10",
            "2: fetch.deadline: the number 10 without a unit; expected a duration from 10ms to 24h, such as \"250ms\", \
             \"10s\", \"5m\" or \"24h\"",
        ),
        (
            "fetch.deadline = '10'",
            "1: fetch.deadline: \"10\" has no unit (one of ms, s, m, h or d); expected a duration from 10ms to 24h, \
             such as \"250ms\", \"10s\", \"5m\" or \"24h\"",
        ),
        (
            "\n\n[fetch]\nheader_bytes_max = \"64KB\"",
            "4: fetch.header_bytes_max: \"64KB\" has an unknown unit (not one of B, KiB, MiB, GiB or TiB); expected a \
             size from 1KiB to 1MiB, such as \"64KiB\", \"1MiB\" or \"1GiB\"",
        ),
        (
            "[fetch]\nheader_count_max = 1000000",
            "2: fetch.header_count_max: 1_000_000 is out of range; expected a whole number from 8 to 4_096",
        ),
        (
            "[fetch]\nheader_count_max = \"256\"",
            "2: fetch.header_count_max: the text \"256\"; expected a whole number from 8 to 4_096",
        ),
        (
            "[scope]\nfollow = \"seed-site\"",
            "2: scope.follow: \"seed-site\" is not one of the choices (did you mean \"seed-sites\"?); expected \
             \"all\", \"seed-sites\" or \"seed-hosts\"",
        ),
        (
            "[fetch]\nconect_timeout = \"1s\"",
            "2: fetch.conect_timeout: unknown key (did you mean \"connect_timeout\"?)",
        ),
        ("[fetch]\nhost_delay = \"1s\"", "2: fetch.host_delay: unknown key (did you mean politeness.host_delay?)"),
        ("host_delay = \"1s\"", "1: host_delay: unknown table or key (did you mean politeness.host_delay?)"),
        ("[politness]", "1: politness: unknown table or key (did you mean \"politeness\"?)"),
        ("fetch = 1", "1: fetch: not a table; expected [fetch]"),
        ("version = 2", "1: version: config is of version 2, this ringcrawl reads version 1"),
        (
            "[agent]\nname = \"bot 2\"",
            "2: agent.name: ' ' is not allowed in a product token; expected 1 to 64 letters, \"_\" or \"-\" (RFC 9309 \
             section 2.2.1), such as \"examplebot\"",
        ),
        (
            "[fetch]\nconnect_timeout = \"2m\"",
            "2: fetch.connect_timeout: 2m exceeds what fetch.deadline = 1m allows; lower it, or raise the other",
        ),
        (
            "[fetch]\ndeadline = \"15s\"",
            "2: fetch.deadline: 15s is too low for fetch.first_byte_timeout = 20s; raise it, or lower the other",
        ),
        (
            "[dns]\ntimeout = \"58s\"",
            "2: dns.timeout: 58s exceeds what outage.hold_max = 1m allows; lower it, or raise the other",
        ),
        (
            "[dns.hosts]\n\"a.test\" = \"localhost\"",
            "2: dns.hosts.\"a.test\": \"localhost\" is not an IP address; expected names with an address or a list of at \
             most 64, such as \"www.example.test\" = \"127.0.0.1\"",
        ),
    ] {
        assert_eq!(error(text), expected, "{text}");
    }
}

#[test]
fn all_errors_are_told_in_order() {
    let text = "\
[fetch]
deadline = 10
deadline = \"20s\"
= 5
tls_timeout = \"1x\"

[store
zstd_level = 3

[dns]
servers = [\"127.0.0.1\", \"nine\", 5, \"127.0.0.1:53\"]
hosts = { \"a..b\" = \"127.0.0.1\", c = [], d = [\"127.0.0.1\", \"x\"] }
[colour]
";
    let all = errors(text);
    let lines: Vec<&str> = all.iter().filter_map(|error| error.split(':').nth(1)).collect();
    assert_eq!(lines, ["2", "3", "4", "5", "7", "11", "11", "11", "12", "12", "12", "13"], "{all:#?}");
}

#[test]
fn a_file_given_by_mistake_is_told_in_short() {
    let text: String = (0..5_000).map(|number| format!("key{number} = 1\n")).collect();
    let all = errors(&text);
    assert_eq!(all.len(), 201);
    assert_eq!(all.last().map(String::as_str), Some("a.toml: 4800 more errors that are not shown"));
}

#[test]
fn columns_count_characters() {
    let errors = Config::parse("fetch = { deadline = \"9m\", 'ü' = 1, x = 2 }", "f").expect_err("unknown keys");
    assert_eq!(errors.iter().map(|error| error.column).collect::<Vec<_>>(), [28, 37], "{errors:#?}");
}

#[test]
fn names_with_dots_need_quotes() {
    assert!(error("[dns.hosts]\nwww.example.test = \"127.0.0.1\"").contains("a name with dots needs quotes"));
    let config = Config::parse("[dns.hosts]\n\"WWW.Example.test.\" = [\"127.0.0.1\"]", "").expect("valid");
    assert!(config.dns.hosts.contains_key("www.example.test"));
    assert!(error("dns.hosts = { A = \"127.0.0.1\", a = \"127.0.0.1\" }").contains("in another spelling"));
}

#[test]
fn set_says_what_is_wrong_and_changes_nothing() {
    let mut config = Config::default();
    for (key, value, expected) in [
        (
            "politeness.host_dealy",
            "0s",
            "--set: politeness.host_dealy: unknown key (did you mean politeness.host_delay?)",
        ),
        ("host_delay", "0s", "--set: host_delay: unknown key (did you mean politeness.host_delay?)"),
        ("fetch.deadline.x", "0s", "--set: fetch.deadline.x: unknown key (did you mean fetch.deadline?)"),
        (
            "store.zstd_level",
            "20",
            "--set: store.zstd_level: 20 is out of range; expected a whole number from -7 to 19",
        ),
        ("store.zstd_level", "high", "--set: store.zstd_level: \"high\"; expected a whole number from -7 to 19"),
    ] {
        assert_eq!(config.set(key, value).expect_err("wrong").to_string(), expected);
    }
    assert_eq!(config, Config::default());
    config.set("fetch.deadline", "1s").expect("valid alone");
    assert_eq!(config.check().expect_err("three timeouts are longer").len(), 3);
}

#[test]
fn agents_introduce_themselves() {
    let version = env!("CARGO_PKG_VERSION");
    let mut agent = Agent::default();
    assert_eq!(agent.user_agent(), format!("ringcrawl/{version}"));
    assert!(!agent.is_complete());
    agent.url = "https://example.org/bot".into();
    agent.email = "bot@example.org".into();
    agent.name = "examplebot".into();
    assert_eq!(agent.user_agent(), format!("examplebot/{version} (+https://example.org/bot; bot@example.org)"));
    assert!(agent.is_complete());
}

#[test]
fn files_must_be_there_and_be_text() {
    let folder = TempFolder::new("config");
    let file = folder.path().join("a.toml");
    let load = |bytes: &[u8]| {
        std::fs::write(&file, bytes).expect("a file for the test");
        Config::load(&file).map_err(|errors| errors.iter().map(ConfigError::to_string).collect::<Vec<_>>().join("\n"))
    };
    assert_eq!(
        load(b"\xef\xbb\xbf[fetch]\r\ndeadline = '2m'\r\n").map(|config| config.fetch.deadline.as_secs()),
        Ok(120)
    );
    assert!(load(b"[fetch]\n\xff").is_err_and(|error| error.contains("line 2 is not UTF-8")));
    assert!(load(b"tls.ca_files = ['/nowhere/ca.pem']").is_err_and(|error| error.contains(":1: tls.ca_files: ")));
    // With other orders the list is not read.
    let ranks = b"[frontier]\nranks = '/nowhere/ranks'\n";
    assert!(load(ranks).is_ok());
    let ordered = load(&[ranks, &b"order = 'rank'\n"[..]].concat());
    assert!(ordered.is_err_and(|error| error.contains(":2: frontier.ranks: ")));
    assert!(Config::load(folder.path().join("none")).is_err());
    assert!(Config::load(folder.path()).is_err());
}

#[test]
fn hostile_text_is_refused_or_read_but_never_panics() {
    let example = Config::annotated().lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n");
    for end in (0..example.len()).step_by(7) {
        if let Some(text) = example.get(..end) {
            let _ = Config::parse(text, "");
        }
    }
    let mut rng = Rng::new(1);
    let alphabet: Vec<char> = "[]{}=\"'\n\\#.,0 -_eT:aß\u{0}\r\t".chars().collect();
    for _ in 0..400 {
        let mut text: Vec<char> = example.chars().collect();
        for _ in 0..=rng.index(6) {
            let at = rng.index(text.len());
            match (rng.index(3), *rng.pick(&alphabet)) {
                (0, character) => text.insert(at, character),
                (1, character) => text.splice(at..=at, [character]).for_each(drop),
                _ => text.truncate(text.len() - rng.index(20)),
            }
        }
        let text: String = text.into_iter().collect();
        if let Ok(config) = Config::parse(&text, "") {
            assert_eq!(Config::parse(&config.to_toml(), ""), Ok(config));
        }
    }
    for text in ["[".repeat(10_000), format!("a = {}", "[".repeat(10_000)), "a.".repeat(10_000), "[a]\n".repeat(2_000)]
    {
        assert!(Config::parse(&text, "").is_err());
    }
    assert!(Config::parse(&" ".repeat(super::parse::FILE_BYTES_MAX + 1), "").is_err());
}

#[test]
fn rings_share_their_memory() {
    let mut config = Config::default();
    assert_eq!([1, 2, 8, 16].map(|shards| config.ring_bytes(shards)), [256 << 10; 4]);
    assert_eq!([32, 64].map(|shards| config.ring_bytes(shards)), [64 << 10, 16 << 10]);
    // The longest URL still fits a quarter of each.
    assert_eq!(config.ring_bytes(1_024), 16 << 10);
    config.scope.url_bytes_max = 20_000;
    assert_eq!(config.ring_bytes(1_024), 128 << 10);
    config.exchange.ring_bytes = 100_000;
    assert_eq!(config.ring_bytes(2), 100_000);
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    for (pairs, words) in [
        ([("store.compress_uncoded", "dictionary"), ("store.format", "warc.gz")], "a gzip member has no dictionary"),
        ([("budget.site_pages_max", "5"), ("partition.by", "host-hash")], "expected another partition.by, or a budget"),
        (
            [("budget.host_pages_max", "5"), ("partition.by", "url-hash")],
            "cost of a host that is on several shards: expected another partition",
        ),
        ([("budget.host_pages_max", "5"), ("exchange.mode", "independent")], "expected another exchange.mode"),
        ([("store.digest", "xxh3-128"), ("store.duplicates", "revisit")], "two bodies with the same XXH3"),
        ([("store.dedupe_against", "/var/crawl"), ("store.duplicates", "store")], "every body would be stored"),
    ] {
        let mut config = Config::default();
        pairs.iter().for_each(|(key, value)| config.set(key, value).expect("a value"));
        let errors = config.check().expect_err("they contradict each other");
        assert_eq!((errors.len(), errors[0].key.as_str()), (1, pairs[0].0));
        assert!(errors[0].message.contains(words), "{}", errors[0].message);
    }
}

/// The comparison with other tools runs without delays. There, each key of politeness is at its minimum, unless it
/// has no effect before a server complains, fails or asks for it. A new key must be one or the other.
#[test]
fn the_comparison_switches_every_delay_off() {
    let config = Config::parse(include_str!("../../bench/peers/ringcrawl.toml"), "ringcrawl.toml").expect("right");
    const ASKED_FOR: &[&str] = &[
        "group_slots",
        "operators",
        "response_delay_max",
        "crawl_delay_max",
        "crawl_delay_above",
        "retries_max",
        "retry_delay",
        "host_failures_max",
        "retry_after_max",
        "backoff_max",
        "host",
    ];
    let politeness = TABLES.iter().find(|table| table.name == "politeness").expect("a table");
    for key in politeness.keys {
        let is_off = match (key.kind, (key.get)(&config)) {
            (Kind::Time(least, _), Value::Time(time)) => time == Duration::from_millis(least),
            (Kind::Number(least, _), Value::Number(number)) => number == i128::from(least),
            _ => false,
        };
        let is_asked_for = ASKED_FOR.contains(&key.name);
        assert!(is_off || is_asked_for, "{} is left on in bench/peers/ringcrawl.toml", key.name);
    }
    for (table, key, off) in [("crawl", "bandwidth_max", Value::Number(0)), ("crawl", "hours", Value::Hours(None))] {
        let key = TABLES.iter().filter(|of| of.name == table).flat_map(|of| of.keys).find(|of| of.name == key);
        assert_eq!(key.map(|key| (key.get)(&config)), Some(off));
    }
}
