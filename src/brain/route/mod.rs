//! Which shard a URL belongs to.
//!
//! Decides: a [`Partition`] is a rule (`partition.by`) and a number of shards. Every shard computes the same answer
//! from the URL alone, so shards need no queries, memory or agreement, except with the last of these rules:
//! - the hash of the site, of the host, or of the URL, mapped to a shard;
//! - a [`circle`] of hashes, where another number of shards moves few sites;
//! - a [`hierarchy`] of top-level domains;
//! - a planned [`vector`], where a link that is not in it belongs to its finder, and a seed to the shard of its
//!   site's hash;
//! - the [`owners`] that sites get when they are first seen, in a table that all shards share.
//!
//! Why the site by default: robots, politeness and budgets of a site are then one thread's plain values. Why a hash
//! and not a table: no state, and good balance as long as no site is a large part of the web.
//! Fast-range (Lemire, "Fast Random Integer Generation in an Interval", 2019) takes the hash's high bits by one
//! multiplication. Another number of shards moves most sites, and the crawl's logs must be rewritten.
//!
//! Sites that were [`level`]led out stay where they were moved to.
//!
//! Invariants: the shard is less than `shards`; hosts of one site share a shard, except with `host-hash` and
//! `url-hash`; URLs of one host do, except with `url-hash`. Every host has one home shard.
//! Leaves to others: carrying URLs there (`exchange`).

mod circle;
mod level;
mod owners;
mod vector;

use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

pub use circle::Circle;
pub use level::{LevelLimits, Levelled, MovedSites, ShardWork, WaitingSites};
pub use owners::{SiteClaim, SiteOwners};
pub use vector::{Vector, VectorBuilder, VectorUnit};

use ringcrawl_base::fast_range;
use ringcrawl_config::{self as config, Hierarchy, PartitionBy};
use ringcrawl_url::{Site, Url};

/// The rule by which URLs are given to shards. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Partition {
    shards: u16,
    rule: Rule,
    /// Sites that were moved away from where the rule puts them.
    moved: Option<Arc<Vector>>,
}

#[derive(Clone, Debug)]
enum Rule {
    SiteHash,
    HostHash,
    UrlHash,
    Hierarchical(Arc<Hierarchy>),
    Consistent(Arc<Circle>),
    Vector(Arc<Vector>),
    Dynamic(Arc<SiteOwners>),
}

impl PartialEq for Partition {
    /// Whether both are the same rule; they may have given the same sites to different shards.
    fn eq(&self, other: &Partition) -> bool {
        self.shards == other.shards && self.rule() == other.rule() && self.moved == other.moved
    }
}

impl Eq for Partition {}

impl Partition {
    /// The partition of a validated configuration for `shards` shards; 0 counts as 1. A planned assignment must be
    /// read from its file ([`Partition::of_vector`]); without it this partitions by site.
    pub fn new(config: &config::Partition, shards: u16) -> Partition {
        let shards = shards.max(1);
        let rule = match config.by {
            PartitionBy::SiteHash | PartitionBy::Vector => Rule::SiteHash,
            PartitionBy::HostHash => Rule::HostHash,
            PartitionBy::UrlHash => Rule::UrlHash,
            PartitionBy::Hierarchical => Rule::Hierarchical(Arc::clone(&config.domains)),
            PartitionBy::Consistent => Rule::Consistent(Arc::new(Circle::new(shards, config.replicas))),
            PartitionBy::Dynamic => Rule::Dynamic(Arc::new(SiteOwners::new(shards, config.ram_bytes_max))),
        };
        Partition { shards, rule, moved: None }
    }

    /// Partitions by an assignment.
    pub fn of_vector(vector: Vector) -> Partition {
        Partition { shards: vector.shards().max(1), rule: Rule::Vector(Arc::new(vector)), moved: None }
    }

    /// Partitions by the hash of the site.
    pub fn by_site(shards: u16) -> Partition {
        Partition { shards: shards.max(1), rule: Rule::SiteHash, moved: None }
    }

    /// Partitions by the hash of the host.
    pub fn by_host(shards: u16) -> Partition {
        Partition { shards: shards.max(1), rule: Rule::HostHash, moved: None }
    }

    /// Whether [`Partition::rule`] can return this.
    pub fn is_rule(rule: &str) -> bool {
        match rule.strip_prefix(PartitionBy::Vector.as_str()).and_then(|rest| rest.strip_prefix(' ')) {
            Some(words) => Vector::are_words(words),
            None => Partition::of_rule(rule, 1).is_ok_and(|partition| partition.rule() == rule),
        }
    }

    /// Whether this is the rule of an assignment, which has a fixed number of shards.
    pub fn is_planned(rule: &str) -> bool {
        rule.split(' ').next() == Some(PartitionBy::Vector.as_str())
    }

    /// Parses what [`Partition::rule`] returns.
    ///
    /// # Errors
    /// There is no such rule, or words cannot express it: an assignment.
    pub fn of_rule(rule: &str, shards: u16) -> Result<Partition, String> {
        let (by, rest) = rule.split_once(' ').unwrap_or((rule, ""));
        let by: PartitionBy = by.parse().map_err(|()| format!("no partition is named {by:?}"))?;
        let mut config = config::Config::default().partition;
        config.by = by;
        match by {
            PartitionBy::SiteHash | PartitionBy::HostHash | PartitionBy::UrlHash | PartitionBy::Dynamic
                if rest.is_empty() =>
            {
                config.ram_bytes_max = 1 << 20;
            }
            PartitionBy::Hierarchical => config.domains = Arc::new(Hierarchy::parse(rest)?),
            PartitionBy::Consistent => {
                let replicas = rest.parse().ok().filter(|replicas| (1..=REPLICAS_MAX).contains(replicas));
                config.replicas = replicas.ok_or_else(|| format!("{rest:?} is no number of replicas"))?;
            }
            _ => return Err(format!("{rest:?} says nothing to {}", by.as_str())),
        }
        Ok(Partition::new(&config, shards))
    }

    /// The rule in words that fit on a line: equal words are equal rules.
    pub fn rule(&self) -> String {
        match &self.rule {
            Rule::SiteHash => PartitionBy::SiteHash.as_str().to_owned(),
            Rule::HostHash => PartitionBy::HostHash.as_str().to_owned(),
            Rule::UrlHash => PartitionBy::UrlHash.as_str().to_owned(),
            Rule::Hierarchical(table) => format!("{} {}", PartitionBy::Hierarchical.as_str(), table.text()),
            Rule::Consistent(circle) => format!("{} {}", PartitionBy::Consistent.as_str(), circle.replicas()),
            Rule::Dynamic(_) => PartitionBy::Dynamic.as_str().to_owned(),
            Rule::Vector(vector) => format!("{} {}", PartitionBy::Vector.as_str(), vector.words()),
        }
    }

    /// The owners of sites, if sites are assigned as they are seen.
    pub fn owners(&self) -> Option<&SiteOwners> {
        if let Rule::Dynamic(owners) = &self.rule { Some(owners) } else { None }
    }

    /// The same rule before any site was assigned: another run begins.
    pub fn afresh(&self) -> Partition {
        match &self.rule {
            Rule::Dynamic(owners) => Partition { rule: Rule::Dynamic(Arc::new(owners.afresh())), ..self.clone() },
            _ => self.clone(),
        }
    }

    /// Whether the partition can answer: all owners of earlier runs are known.
    pub fn is_settled(&self) -> bool {
        self.owners().is_none_or(SiteOwners::is_settled)
    }

    /// The shard that receives a seed: the seed's own, or while owners are unknown the one that passes it on.
    pub fn giver_of(&self, seed: &Url) -> u16 {
        match self.is_settled() {
            true => self.shard_of(seed),
            false => fast_range(Site::of(seed.host()).hash, self.shards),
        }
    }

    /// Whether a URL's shard is independent of its finder.
    pub fn is_of_urls_alone(&self) -> bool {
        !matches!(self.rule, Rule::Vector(_))
    }

    /// Bytes of memory that grow with its tables, once for all shards.
    pub fn ram_bytes(&self) -> u64 {
        let planned = match &self.rule {
            Rule::Vector(vector) => vector.ram_bytes(),
            Rule::Dynamic(owners) => owners.ram_bytes(),
            Rule::Consistent(circle) => circle.ram_bytes(),
            _ => 0,
        };
        planned + self.moved.as_ref().map_or(0, |moved| moved.ram_bytes())
    }

    /// Number of shards, at least 1.
    pub fn shards(&self) -> u16 {
        self.shards
    }

    /// The most sites that may move if the table of moved sites, and the list it is made from, may take `bytes_max`
    /// bytes.
    pub fn moved_max(bytes_max: u64) -> usize {
        let listed = usize::try_from(bytes_max).unwrap_or(usize::MAX) / level::SITE_BYTES;
        Vector::names_max(bytes_max).min(listed)
    }

    /// The same rule, with moved sites: each belongs to its new shard, whatever the rule says.
    ///
    /// # Errors
    /// There is no such shard, a site appears twice, or the sites do not fit in `bytes_max` bytes.
    pub fn with_moved(&self, moved: &MovedSites, bytes_max: u64) -> Result<Partition, String> {
        let mut builder = VectorBuilder::new(VectorUnit::Site, self.shards, bytes_max);
        // Sites as they were when moved: another Public Suffix List may have divided names differently since.
        moved.iter().try_for_each(|(site, shard)| builder.add_hash(*shard, xxh3_64(site.as_bytes()), site))?;
        let moved = Some(builder.build()).filter(|moved| !moved.is_empty()).map(Arc::new);
        Ok(Partition { moved, ..self.clone() })
    }

    /// The same rule with another number of shards, and no site moved; an assignment keeps its own number.
    pub fn with_shards(&self, shards: u16) -> Partition {
        let shards = shards.max(1);
        let rule = match &self.rule {
            Rule::Vector(_) => return self.clone(),
            Rule::Dynamic(owners) if shards != self.shards => {
                Rule::Dynamic(Arc::new(SiteOwners::new(shards, owners.ram_bytes())))
            }
            Rule::Consistent(circle) if shards != self.shards => {
                Rule::Consistent(Arc::new(Circle::new(shards, circle.replicas())))
            }
            rule => rule.clone(),
        };
        Partition { shards, rule, moved: None }
    }

    /// The shard of `url`, from 0, independent of the finder.
    pub fn shard_of(&self, url: &Url) -> u16 {
        self.shard_of_known(url, Site::of(url.host()))
    }

    /// The shard of a URL that shard `finder` has found a link to: the finder keeps unassigned URLs.
    pub fn shard_of_found(&self, url: &Url, site: Site, finder: u16) -> u16 {
        match &self.rule {
            Rule::Vector(vector) => vector.owner(url, site).unwrap_or(finder),
            _ => self.shard_of_known(url, site),
        }
    }

    /// [`Partition::shard_of`] for a URL whose site is known.
    pub fn shard_of_known(&self, url: &Url, site: Site) -> u16 {
        if let Some(shard) = self.moved.as_ref().and_then(|moved| moved.owner(url, site)) {
            return shard;
        }
        match &self.rule {
            _ if self.shards == 1 => 0,
            Rule::Vector(vector) => vector.owner(url, site).unwrap_or_else(|| fast_range(site.hash, self.shards)),
            Rule::SiteHash => fast_range(site.hash, self.shards),
            Rule::HostHash => fast_range(host_hash(url.host()), self.shards),
            Rule::UrlHash => fast_range(xxh3_64(url.as_str().as_bytes()), self.shards),
            Rule::Hierarchical(table) => table.owner(url.host(), site.hash, self.shards),
            Rule::Consistent(circle) => circle.owner(site.hash),
            Rule::Dynamic(owners) => owners.owner(site.hash),
        }
    }

    /// The shard that fetches the robots.txt of a canonical (lower-case, ASCII) host for all. If one shard has all
    /// URLs of the host, it is that shard.
    pub fn home_of(&self, host: &str) -> u16 {
        let site_hash = || Site::of(host).hash;
        if let Some(shard) = self.moved.as_ref().and_then(|moved| moved.home(host)) {
            return shard;
        }
        match &self.rule {
            _ if self.shards == 1 => 0,
            Rule::Vector(vector) => vector.home(host).unwrap_or_else(|| fast_range(site_hash(), self.shards)),
            Rule::SiteHash => fast_range(site_hash(), self.shards),
            Rule::HostHash | Rule::UrlHash => fast_range(host_hash(host), self.shards),
            Rule::Hierarchical(table) => table.owner(host, site_hash(), self.shards),
            Rule::Consistent(circle) => circle.owner(site_hash()),
            Rule::Dynamic(owners) => owners.owner(site_hash()),
        }
    }
}

/// As for sites, a trailing dot does not make another host.
fn host_hash(host: &str) -> u64 {
    xxh3_64(host.strip_suffix('.').unwrap_or(host).as_bytes())
}

/// The limit of `partition.replicas`.
const REPLICAS_MAX: u16 = 4_096;

/// The shard of a key, from 0: a site, a host, or anything else that must stay together.
pub fn shard_of_key(key: &[u8], shards: u16) -> u16 {
    fast_range(xxh3_64(key), shards)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_a_site_stay_together() {
        let by_site = Partition::by_site(61);
        let by_host = Partition::by_host(61);
        let mut spread = std::collections::BTreeSet::new();
        for number in 0..1_000 {
            let host = format!("h{number}.www.example.co.uk");
            assert_eq!(by_site.home_of(&host), by_site.home_of("example.co.uk"));
            spread.insert(by_host.home_of(&host));
            let dotted = format!("{host}.");
            assert_eq!(by_host.home_of(&dotted), by_host.home_of(&host));
            assert_eq!(by_site.home_of(&dotted), by_site.home_of(&host));
        }
        assert_eq!(spread.len(), 61, "hosts alone spread over all shards");
        let url = Url::parse("https://x.example.co.uk:8443/y").unwrap();
        for partition in [by_site.clone(), by_host, Partition::by_site(1)] {
            assert_eq!(partition.shard_of_known(&url, Site::of(url.host())), partition.shard_of(&url));
        }
        assert_eq!(by_site.shard_of(&url), by_site.home_of("example.co.uk"));
    }

    fn all_rules(shards: u16) -> Vec<Partition> {
        let rules = ["site-hash", "host-hash", "url-hash", "hierarchical com | net org", "consistent 128", "dynamic"];
        rules.map(|rule| Partition::of_rule(rule, shards).expect(rule)).to_vec()
    }

    #[test]
    fn every_rule_gives_one_answer_and_keeps_what_it_promises() {
        for shards in [1, 2, 3, 16, 61] {
            for partition in all_rules(shards) {
                let rule = partition.rule();
                assert_eq!(Partition::of_rule(&rule, shards).as_ref(), Ok(&partition), "{rule}");
                let mut loads = vec![0_u32; usize::from(shards)];
                for number in 0..3_000 {
                    let domain = ["com", "net", "co.uk", "test"][number % 4];
                    let url = Url::parse(&format!("http://w{}.s{number}.{domain}/x", number % 5)).expect("a URL");
                    let shard = partition.shard_of(&url);
                    assert_eq!(partition.shard_of_known(&url, Site::of(url.host())), shard, "{rule} {}", url.as_str());
                    let home = partition.home_of(url.host());
                    assert!(home == shard || rule == "url-hash", "{rule} tears a host");
                    assert_eq!(partition.home_of(&format!("{}.", url.host())), home, "{rule}");
                    let site_shard = partition.home_of(&format!("s{number}.{domain}"));
                    assert!(
                        ["host-hash", "url-hash"].contains(&rule.as_str()) || site_shard == shard,
                        "{rule} tears a site"
                    );
                    loads[usize::from(shard)] += 1;
                }
                assert!(loads.iter().all(|load| *load > 0), "{rule} leaves a shard without sites: {loads:?}");
            }
        }
        assert_eq!(all_rules(8)[4].with_shards(9), all_rules(9)[4]);
    }

    #[test]
    fn moved_sites_are_where_they_were_moved() {
        let by_hash = Partition::by_site(7);
        let sites: Vec<String> = (0..50).map(|number| format!("s{number}.test")).collect();
        let to = |site: &str| (by_hash.home_of(site) + 1) % 7;
        let moved = sites[..20].iter().map(|site| (site.as_str().into(), to(site))).collect();
        let moved = by_hash.with_moved(&moved, 1 << 20).expect("sites");
        for (number, site) in sites.iter().enumerate() {
            let url = Url::parse(&format!("http://www.{site}/x")).expect("a URL");
            let expected = if number < 20 { to(site) } else { by_hash.home_of(site) };
            assert_eq!((moved.shard_of(&url), moved.home_of(url.host())), (expected, expected), "{site}");
        }
        assert_eq!(moved.with_shards(7), by_hash);
        assert_eq!((moved.rule(), by_hash.with_moved(&MovedSites::new(), 0).as_ref()), (by_hash.rule(), Ok(&by_hash)));
        assert!(by_hash.with_moved(&MovedSites::from([("a.test".into(), 7)]), 1 << 20).is_err());
        let kept = by_hash.with_moved(&MovedSites::from([("www.a.test".into(), 1)]), 1 << 20);
        let kept = kept.expect("a site of another Public Suffix List");
        assert_eq!(kept.shard_of(&Url::parse("http://www.a.test/").unwrap()), by_hash.home_of("a.test"));
    }

    #[test]
    fn rules_that_are_none() {
        for rule in [
            "",
            "site",
            "site-hash 7",
            "hierarchical",
            "hierarchical com | com",
            "consistent",
            "consistent 0",
            "consistent 9999",
        ] {
            assert!(Partition::of_rule(rule, 2).is_err(), "{rule:?}");
        }
    }

    #[test]
    fn sites_are_balanced() {
        for shards in [1u16, 2, 3, 7, 16, 61, 128] {
            let partition = Partition::by_site(shards);
            let sites = 2_000 * u32::from(shards);
            let mut counts = vec![0u32; usize::from(shards)];
            for site in 0..sites {
                counts[usize::from(partition.home_of(&format!("www.site{site}.com")))] += 1;
            }
            // The standard deviation of a shard's count is √2000 ≈ 45; five of them.
            for count in counts {
                assert!(count.abs_diff(2_000) < 225, "{count} of {sites} sites in one of {shards} shards");
            }
        }
    }

    #[test]
    fn the_range_is_kept() {
        for shards in [0, 1, 2, u16::MAX] {
            assert_eq!(fast_range(0, shards), 0);
            assert_eq!(fast_range(u64::MAX, shards), shards.saturating_sub(1));
        }
    }
}
