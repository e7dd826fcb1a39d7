//! A crawl that does not identify itself may not leave the machine.
//!
//! Decides: without `agent.name`, `agent.url` and `agent.email`, every seed must lie on loopback, by its address, by
//! `[dns.hosts]`, or because all name servers are on loopback. Then the crawl connects to nothing but loopback,
//! whatever a name resolves to later. Links that become seeds of a next round were not chosen by the operator, so
//! only those on loopback are kept. A proxy is refused, too: where it connects to is out of sight.

use std::net::IpAddr;

use ringcrawl_brain::seed::Seed;
use ringcrawl_config::{Config, PrivateAddresses};

/// Prepares `config` for a crawl from `seeds`; the error names what is missing.
pub fn check(config: &mut Config, seeds: &[Seed]) -> Result<(), String> {
    if config.agent.is_complete() {
        return Ok(());
    }
    if config.proxy.address().is_some() {
        return Err("proxy.url leaves this machine: such a crawl must identify itself; set agent.name, agent.url and agent.email"
            .to_owned());
    }
    if let Some(seed) = seeds.iter().find(|seed| !may_be_asked(config, seed)) {
        return Err(format!(
            "{} is not on this machine: a crawl that leaves it must identify itself; set agent.name, agent.url and agent.email",
            seed.url.as_str()
        ));
    }
    config.fetch.private_addresses = PrivateAddresses::LoopbackOnly;
    Ok(())
}

/// Leaves out seeds that a crawl of `config` may not fetch.
pub(super) fn retain(config: &Config, seeds: &mut Vec<Seed>) {
    if !config.agent.is_complete() {
        seeds.retain(|seed| may_be_asked(config, seed));
    }
}

/// Whether a crawl without a name may fetch this seed.
fn may_be_asked(config: &Config, seed: &Seed) -> bool {
    let servers = &config.dns.servers;
    let local_names = !servers.is_empty() && servers.iter().all(|server| server.ip().is_loopback());
    local_names || is_local(config, seed.url.host())
}

fn is_local(config: &Config, host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<IpAddr>() {
        Ok(addr) => addr.is_loopback(),
        // RFC 6761 section 6.3
        Err(_) if bare == "localhost" || bare.ends_with(".localhost") => true,
        Err(_) => config
            .dns
            .hosts
            .get(bare)
            .is_some_and(|addrs| !addrs.is_empty() && addrs.iter().all(|addr| addr.is_loopback())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_url::Url;

    fn checked(config: &Config, seed: &str) -> Result<PrivateAddresses, String> {
        let mut config = config.clone();
        check(&mut config, &[Url::parse(seed).unwrap().into()]).map(|()| config.fetch.private_addresses)
    }

    #[test]
    fn nameless_crawls_use_no_proxy() {
        let mut config = Config::default();
        config.set("proxy.url", "http://127.0.0.1:3128").unwrap();
        let error = checked(&config, "http://127.0.0.1/").unwrap_err();
        assert!(error.contains("proxy.url") && error.contains("agent.name"), "{error}");
    }

    #[test]
    fn nameless_crawls_stay_on_loopback() {
        let mut config = Config::default();
        for local in ["http://127.0.0.1:8080/", "http://[::1]/", "http://localhost/", "http://a.localhost/"] {
            assert_eq!(checked(&config, local), Ok(PrivateAddresses::LoopbackOnly), "{local}");
        }
        for remote in ["http://example.org/", "http://192.0.2.1/", "http://10.0.0.1/"] {
            assert!(checked(&config, remote).unwrap_err().contains("agent.email"), "{remote}");
        }
        config.dns.hosts.insert("a.test".to_owned(), vec!["127.0.0.9".parse().unwrap()]);
        assert!(checked(&config, "http://a.test/").is_ok() && checked(&config, "http://b.test/").is_err());
        config.dns.servers = vec!["127.0.0.1:53".parse().unwrap()];
        assert_eq!(checked(&config, "http://b.test/"), Ok(PrivateAddresses::LoopbackOnly));
        config.dns.servers.clear();
        let links =
            ["http://a.test/", "http://b.test/", "http://127.0.0.1/"].map(|url| Url::parse(url).unwrap().into());
        let mut seeds: Vec<Seed> = links.to_vec();
        retain(&config, &mut seeds);
        assert_eq!(seeds, [links[0].clone(), links[2].clone()]);
        config.dns.servers = vec!["127.0.0.1:53".parse().unwrap()];
        config.agent.name = "bot".to_owned();
        config.agent.url = "https://example.org/bot".to_owned();
        config.agent.email = "bot@example.org".to_owned();
        assert_eq!(checked(&config, "http://example.org/"), Ok(PrivateAddresses::Deny));
    }
}
