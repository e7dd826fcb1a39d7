//! The name servers of the fake web: some never answer, some refuse for a while, some do not accept EDNS. The others
//! know everything but fail now and then.
//!
//! Decides: the answer to each query and its delay. At least one server always answers in the end.

use std::collections::HashMap;

use super::fake_web::FakeWeb;
use ringcrawl_base::Rng;
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_brain::names::{DnsAnswer, DnsQuery, Family};

/// The servers.
#[derive(Debug)]
pub struct FakeNameServers {
    web: FakeWeb,
    servers: Vec<Conduct>,
    tries: HashMap<String, u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Conduct {
    Answers,
    Silent,
    /// REFUSED until then.
    Refuses(Instant),
    /// Drops queries with EDNS.
    DropsEdns,
    /// FORMERR to queries with EDNS.
    RefusesEdns,
}

impl FakeNameServers {
    /// One to three servers of `web`.
    pub fn new(web: FakeWeb, rng: &mut Rng) -> FakeNameServers {
        let mut servers = vec![match rng.below(8) {
            0 => Conduct::DropsEdns,
            1 => Conduct::RefusesEdns,
            _ => Conduct::Answers,
        }];
        for _ in 0..rng.below(3) {
            let conduct = match rng.below(4) {
                0 => Conduct::Silent,
                1 => Conduct::Refuses(Instant::ZERO + Duration::from_secs(rng.below(600))),
                _ => Conduct::Answers,
            };
            servers.insert(rng.below(servers.len() as u64 + 1) as usize, conduct);
        }
        FakeNameServers { web, servers, tries: HashMap::new() }
    }

    /// The number of servers.
    pub fn len(&self) -> usize {
        self.servers.len()
    }

    /// The answer to `query`, sent at `at`, and its delay.
    pub fn answer(&mut self, at: Instant, query: &DnsQuery, rng: &mut Rng) -> (DnsAnswer, Duration) {
        let took = Duration::from_nanos(rng.below(query.wait.as_nanos() as u64));
        match self.servers[query.server] {
            Conduct::Silent => return (DnsAnswer::Silent, query.wait),
            Conduct::Refuses(until) if at < until => return (DnsAnswer::Refused, took),
            Conduct::DropsEdns if query.with_edns => return (DnsAnswer::Silent, query.wait),
            Conduct::RefusesEdns if query.with_edns => return (DnsAnswer::NotUnderstood, took),
            _ => {}
        }
        let failing = self.web.failing_tries(&format!("Resolve {}", query.name));
        let tries = self.tries.entry(query.name.clone()).or_default();
        *tries += 1;
        // Name servers also fail now and then when an address is queried again.
        if *tries <= failing || failing > 0 && tries.is_multiple_of(5) {
            return match *tries % 3 {
                0 => (DnsAnswer::Error, took),
                1 => (DnsAnswer::Silent, query.wait),
                _ => (DnsAnswer::Refused, took),
            };
        }
        if self.web.is_broken(&query.name) {
            return (DnsAnswer::Error, took);
        }
        if !self.web.exists(&query.name) {
            return (DnsAnswer::NoName(Some(self.web.ttl(&query.name))), took);
        }
        let addrs = self.web.addrs(&query.name, at, true);
        let addrs: Vec<_> = addrs.into_iter().filter(|addr| addr.is_ipv4() == (query.family == Family::V4)).collect();
        let ttl = self.web.ttl(&query.name);
        (if addrs.is_empty() { DnsAnswer::None(Some(ttl)) } else { DnsAnswer::Addrs(addrs, ttl, None) }, took)
    }
}
