//! How memory is divided, at every size.

use super::*;

fn limited(bytes: u64, shards: u16, change: impl FnOnce(&mut Config)) -> Result<(Config, MemoryBudget), TooSmall> {
    let mut config = Config::default();
    change(&mut config);
    let budget = MemoryBudget::new(&config, shards, bytes, false)?;
    budget.limit(&mut config);
    Ok((config, budget))
}

/// The cost of a shard's limits by the prices above.
fn price(config: &Config, budget: &MemoryBudget, shards: u64) -> u64 {
    let fetch = &config.fetch;
    fixed_bytes(config, shards, fetch.body_bytes_max as u64)
        + fetch.in_flight_max as u64 * FETCH_BYTES
        + fetch.idle_connections_max as u64 * CONNECTION_BYTES
        + budget.bodies_bytes()
        + config.visited.urls_max / shards * URL_BYTES
        + config.frontier.hosts_max / shards * HOST_BYTES
        + config.frontier.ram_bytes_max / shards * WAITING_WHOLE / WAITING_PART
        + config.robots.ram_bytes_max / shards
        + config.budget.ram_bytes_max / shards
        + config.tls.sessions_max as u64 * SESSION_BYTES
        + config.tls.chains_max as u64 * CHAIN_BYTES
        + config.store.duplicates_bytes_max as u64
}

#[test]
fn links_that_gather_are_among_what_a_shard_needs() {
    let mut config = Config::default();
    let before = fixed_bytes(&config, 2, 0);
    config.frontier.order = UrlOrder::Backlinks;
    assert_eq!(fixed_bytes(&config, 2, 0), before + (1 << 20));
}

#[test]
fn the_parts_are_within_the_whole_at_every_size() {
    let mut before: Option<(Config, u64)> = None;
    for (bytes, shards) in (0..200).flat_map(|step| [1, 2, 7, 64].map(|shards| (step, shards))).map(|(step, shards)| {
        ((184_u64 << 20) * u64::from(shards) + (step * step * step) * (4 << 10) * u64::from(shards), shards)
    }) {
        let (config, budget) = limited(bytes, shards, |_| ()).unwrap_or_else(|error| panic!("{bytes}: {error}"));
        let shards = u64::from(shards);
        let price = price(&config, &budget, shards);
        assert!(price <= bytes / shards * 7 / 8 + 1, "{bytes} bytes, {shards} shards: {price}");
        assert!(config.fetch.in_flight_max >= 16 && config.visited.urls_max >= 1_000 && config.tls.sessions_max > 0);
        assert!(budget.bodies_bytes() >= 2 * config.fetch.body_wire_bytes_max as u64);
        if shards == 1 {
            if let Some((smaller, bodies)) = &before {
                assert!(config.visited.urls_max >= smaller.visited.urls_max, "{bytes}");
                assert!(config.fetch.in_flight_max >= smaller.fetch.in_flight_max, "{bytes}");
                assert!(budget.bodies_bytes() >= *bodies, "{bytes}");
            }
            before = Some((config, budget.bodies_bytes()));
        }
    }
}

#[test]
fn a_key_is_never_raised_and_plenty_lowers_none() {
    let (config, budget) = limited(1 << 40, 2, |_| ()).unwrap();
    assert_eq!(config, Config::default());
    assert_eq!((budget.bodies_bytes(), budget.limit(&mut Config::default())), (1_024 * (8 << 20), vec![]));
    let (small, _) = limited(2 << 30, 2, |config| config.fetch.in_flight_max = 3).unwrap();
    assert_eq!((small.fetch.in_flight_max, small.fetch.body_wire_bytes_max), (3, 8 << 20));
    assert!(small.frontier.hosts_max < Config::default().frontier.hosts_max);
}

#[test]
fn where_sites_are_bounded_a_url_needs_room_for_its_cost() {
    let bytes = 512 << 20;
    let urls = |bounds_sites: bool, site_pages_max: u32| {
        let mut config = Config::default();
        config.budget.site_pages_max = site_pages_max;
        MemoryBudget::new(&config, 1, bytes, bounds_sites).unwrap().limits.urls
    };
    let [none, seeds] = [false, true].map(|bounds_sites| urls(bounds_sites, 0));
    assert!(seeds <= none / 2 + 1, "{seeds} of {none}");
    assert!(urls(false, 10) <= seeds && urls(true, 10) == urls(false, 10));
}

#[test]
fn a_budget_that_holds_no_crawl_says_what_is_needed() {
    let error = limited(100 << 20, 2, |_| ()).unwrap_err();
    let needed = error.needed;
    assert!(needed < 2 * (184 << 20), "{error}");
    assert!(error.to_string().contains("has 50 MiB, as 100 MiB are for 2"), "{error}");
    assert!(limited(needed, 2, |_| ()).is_ok(), "what is said is enough");
    let small = |config: &mut Config| {
        (config.fetch.in_flight_max, config.fetch.body_wire_bytes_max) = (64, 1 << 10);
    };
    let (_, budget) = limited(512 << 20, 1, small).unwrap();
    assert!(budget.bodies_bytes() / 2 >= HANDSHAKE_BYTES, "a handshake has room once");
}

#[test]
fn the_budget_in_words() {
    let (_, budget) = limited(512 << 20, 2, |_| ()).unwrap();
    let words = budget.to_string();
    assert!(words.starts_with("memory: at most 512 MiB (2 × 256 MiB) for "), "{words}");
    for (bits, shards, lost) in [(56, 1, "0.07"), (56, 2, "0.03"), (48, 1, "17")] {
        let (_, budget) = limited(64 << 30, shards, |config| config.visited.fingerprint_bits = bits).unwrap();
        let words = format!(" for 100,000,000 URLs (expected loss to equal fingerprints: {lost}), ");
        assert!(budget.to_string().contains(&words), "{budget}");
    }
    let lowered = budget.limit(&mut Config::default());
    assert!(lowered.contains(&"fetch.body_bytes_max = 8 MiB".to_owned()), "{lowered:?}");
    assert!(lowered.iter().any(|setting| setting.starts_with("frontier.hosts_max = ")), "{lowered:?}");
}
