//! What an earlier run has left: what it has spent, which hosts answered it, and which must be left alone.
//!
//! Decides: no host is queried before its usual delay has passed since that run was broken off, and a noted one not
//! before its rest is over, on any shard.
//! Leaves to others: reading the logs ([`crate::shard`]).

use super::{Frontier, Rest};
use ringcrawl_base::time::Instant;
use ringcrawl_url::{SiteKey, Url};

impl Frontier {
    /// A seed was given, in this run or an earlier one.
    pub fn wanted(&mut self, seed: &Url, site: SiteKey) {
        self.order.wanted(&mut self.hosts, seed, site);
    }

    /// An earlier run was broken off before `now`: its hosts are left alone for their delay between two requests.
    pub fn rest_all(&mut self, now: Instant) {
        let politeness = &self.settings.politeness;
        let delays = [politeness.host_delay, politeness.site_delay, politeness.ip_delay, politeness.group_delay];
        self.hosts.rests.rest_all(now, delays.into_iter().max().unwrap_or_default());
    }

    /// An earlier run has noted that a host must be left alone.
    pub fn rest(&mut self, now: Instant, rest: &Rest) {
        let politeness = &self.settings.politeness;
        let asked = rest.until.since(now).min(politeness.retry_after_max.max(politeness.crawl_delay_max));
        let until = now + asked.max(rest.crawl_delay.min(politeness.crawl_delay_max));
        self.hosts.rests.rest(&rest.host, until);
        // An odd port with a rest of its own: if hosts are on several shards, these do not know its origins.
        let origin = rest.host.contains("://").then(|| Url::parse(&rest.host).ok()).flatten();
        if origin.is_none() {
            self.hosts.rests.note_trouble(&rest.host, !rest.health.troubles.is_empty());
        }
        // Shards that were not asked to leave it alone do so, too.
        let name = origin.as_ref().map_or(&*rest.host, |origin| origin.host());
        if let Some(key) = self.settings.host_key(name) {
            self.hosts.rests.rest_elsewhere(&self.ledger, key, now, until);
        }
    }
}
