//! The model: the configuration of a synthetic web and what follows from it without reading a page.
//!
//! Decides: site sizes follow a power law (site `i` has `max(1, C/(i+1))` pages, `C` chosen so that the sum is
//! exactly `pages`), because real sites do and because one giant among many small sites is what strains a polite
//! crawler. All hosts share two ports; a host's loopback address is a function of its name.
//! Invariants: pure; a `Model` never changes after `new`, so threads share it freely.
//! Limits: 2^24 sites (4 bytes each), 2^32-1 pages a site (2^60 when endless), 4,096 addresses.
//! Leaves to others: the content of an address (`place`), which page links to which (`plan`), bytes (`page`,
//! `answer`).

use std::net::Ipv4Addr;

use super::draw::{Draw, Purpose};
use super::faults::spot::Spot;
use super::faults::{Fault, Faults, ending};
use super::place::{Item, Place};
use super::pool::Pool;
use super::site::{HostLabel, Site, split_host};
use ringcrawl_url::{Scheme, Url};

/// The definition of a synthetic web.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelConfig {
    /// Seed of everything that looks random.
    pub rng_seed: u64,
    /// Number of registrable domains, 1 to 2^24.
    pub sites: u32,
    /// Number of pages in all, at least one a site; ignored when `endless`.
    pub pages: u64,
    /// Number of loopback addresses that the hosts are spread over, 1 to 4,096.
    pub addresses: u32,
    /// Share of sites whose canonical scheme is https, 0 to 1.
    pub https_share: f64,
    /// Port of all http origins; 0 is replaced by the server.
    pub http_port: u16,
    /// Port of all https origins; 0 is replaced by the server.
    pub https_port: u16,
    /// Every page has children without end; the number of sites stays `sites`.
    pub endless: bool,
    /// How large pages are.
    pub profile: Profile,
    /// Whether bodies are compressed for clients that accept gzip.
    pub gzip: bool,
    /// The share of sites with each fault.
    pub faults: Faults,
}

impl Default for ModelConfig {
    fn default() -> ModelConfig {
        ModelConfig {
            rng_seed: 1,
            sites: 20,
            pages: 1_000,
            addresses: 16,
            https_share: 0.5,
            http_port: 8080,
            https_port: 8443,
            endless: false,
            profile: Profile::Small,
            gzip: true,
            faults: Faults::NONE,
        }
    }
}

/// How large pages are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Profile {
    /// About 4 KiB and 12 links, for demo and tests.
    #[default]
    Small,
    /// Like the open web's HTML: 165 to 190 KB and 164 links on average, gzip ratio about 5.5.
    Web,
}

/// Why a configuration defines no web.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// No sites, or too many.
    #[error("sites must be 1 to 16777216")]
    Sites,
    /// Fewer pages than sites, or too many.
    #[error("pages must be at least one a site, and at most 4294967295")]
    Pages,
    /// No addresses, or too many.
    #[error("addresses must be 1 to 4096")]
    Addresses,
    /// Not a number from 0 to 1.
    #[error("https share must be 0 to 1")]
    HttpsShare,
    /// The same port for two protocols.
    #[error("http and https ports must differ")]
    Ports,
}

/// A synthetic web.
#[derive(Debug)]
pub struct Model {
    config: ModelConfig,
    /// Pages of each site; empty when endless.
    sizes: Vec<u32>,
    https_per_10_000: u64,
    pub(super) pool: Pool,
}

impl Model {
    /// The web that `config` defines.
    pub fn new(config: ModelConfig) -> Result<Model, ModelError> {
        if !(1..=SITES_MAX).contains(&config.sites) {
            return Err(ModelError::Sites);
        }
        if !config.endless && !(u64::from(config.sites)..=u64::from(u32::MAX)).contains(&config.pages) {
            return Err(ModelError::Pages);
        }
        if !(1..=ADDRESSES_MAX).contains(&config.addresses) {
            return Err(ModelError::Addresses);
        }
        if !(0.0..=1.0).contains(&config.https_share) {
            return Err(ModelError::HttpsShare);
        }
        if config.http_port == config.https_port && config.http_port != 0 {
            return Err(ModelError::Ports);
        }
        let sizes = if config.endless { Vec::new() } else { power_law(config.sites, config.pages) };
        let https_per_10_000 = (config.https_share * 10_000.0).round() as u64;
        let pool = Pool::new(config.rng_seed, config.profile);
        Ok(Model { config, sizes, https_per_10_000, pool })
    }

    /// Its configuration.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// The facts of site `number`; `None`: there is none.
    pub fn site(&self, number: u32) -> Option<Site> {
        let pages = if self.config.endless {
            (number < self.config.sites).then_some(ENDLESS_PAGES)?
        } else {
            u64::from(*self.sizes.get(usize::try_from(number).ok()?)?)
        };
        Some(Site::new(self.config.rng_seed, number, pages, self.https_per_10_000))
    }

    /// The root pages of the first `count` sites. From site 0's the whole web is reachable.
    pub fn seeds(&self, count: u32) -> Vec<Url> {
        (0..count.min(self.config.sites))
            .filter_map(|number| self.url_of(&Place::canonical(number, Item::Page(0))))
            .collect()
    }

    /// The loopback address of a host (any case); `None`: no host of this web.
    pub fn address_of(&self, host: &str) -> Option<Ipv4Addr> {
        let host = host.to_ascii_lowercase();
        let (site, label) = self.host(&host)?;
        let mut draw = Draw::new(self.config.rng_seed, Purpose::Address, u64::from(site.number), label.number());
        Some(address(draw.below(u64::from(self.config.addresses)) as u32))
    }

    /// All addresses that hosts may have.
    pub fn addresses(&self) -> impl Iterator<Item = Ipv4Addr> + use<> {
        (0..self.config.addresses).map(address)
    }

    /// The site and label of a lower-case host name; `None`: no host of this web.
    pub(super) fn host(&self, host: &str) -> Option<(Site, HostLabel)> {
        let (number, prefix) = split_host(host)?;
        let site = self.site(number)?;
        let label = match prefix {
            "" => HostLabel::Bare,
            "www" => HostLabel::Www,
            second if site.second == Some(second) => HostLabel::Second,
            name => HostLabel::Fault(Fault::named(name).filter(|fault| self.has_fault(number, *fault))?),
        };
        Some((site, label))
    }

    /// Whether robots.txt allows an item, to a crawler that reads `robots_bytes_max` bytes of it.
    pub(super) fn allows(&self, site: &Site, item: Item, path_and_query: &str, robots_bytes_max: usize) -> bool {
        match item {
            Item::Fault(fault, spot) => ending::is_allowed(fault, spot, robots_bytes_max),
            _ => site.allows(path_and_query.as_bytes()),
        }
    }

    /// Whether a site has the host of a fault.
    pub fn has_fault(&self, site: u32, fault: Fault) -> bool {
        self.config.faults.has(self.config.rng_seed, self.config.sites, site, fault)
    }

    /// The site and fault of a lower-case name; `None`: a healthy host, or none.
    pub(super) fn fault_of(&self, host: &str) -> Option<(u32, Fault)> {
        match self.host(host)? {
            (site, HostLabel::Fault(fault)) => Some((site.number, fault)),
            _ => None,
        }
    }

    /// The roots of all hosts that have a fault.
    pub fn faulty_roots(&self) -> impl Iterator<Item = Place> + '_ {
        let all = Fault::ALL.iter().flat_map(|fault| (0..self.config.sites).map(|site| (site, *fault)));
        all.filter(|(site, fault)| self.has_fault(*site, *fault))
            .map(|(site, fault)| Place::canonical(site, Item::Fault(fault, Spot::Root)))
    }

    /// The port of a scheme, and whether it is the scheme's default.
    pub(super) fn port(&self, scheme: Scheme) -> (u16, bool) {
        match scheme {
            Scheme::Http => (self.config.http_port, self.config.http_port == 80),
            Scheme::Https => (self.config.https_port, self.config.https_port == 443),
        }
    }
}

/// Maximum number of sites: 64 MiB of sizes.
const SITES_MAX: u32 = 1 << 24;
/// Maximum number of addresses: each costs a listener per port and thread.
const ADDRESSES_MAX: u32 = 4_096;
/// Page numbers of an endless site are below this; children's numbers wrap around.
pub(super) const ENDLESS_PAGES: u64 = 1 << 60;

/// Sizes with sum `pages`: site `i` gets `max(1, C/(i+1))`, and site 0 also the few that rounding leaves.
fn power_law(sites: u32, pages: u64) -> Vec<u32> {
    let total = |scale: u64| (1..=u64::from(sites)).map(|rank| (scale / rank).max(1)).sum::<u64>();
    let (mut low, mut high) = (1, pages);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if total(middle) <= pages { low = middle } else { high = middle - 1 }
    }
    let mut sizes: Vec<u32> = (1..=u64::from(sites)).map(|rank| (low / rank).max(1) as u32).collect();
    let left = pages.saturating_sub(total(low)) as u32;
    if let Some(first) = sizes.first_mut() {
        *first = first.saturating_add(left);
    }
    sizes
}

/// Address `number` in 127.1.0.1 and up: 254 a /24, clear of 127.0.0.1, where other services listen.
fn address(number: u32) -> Ipv4Addr {
    Ipv4Addr::new(127, 1, (number / 254 % 254) as u8, (number % 254) as u8 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_sum_up_and_fall() {
        for (sites, pages) in [(1, 1), (1, 77), (20, 20), (20, 1_000), (1_000, 123_457)] {
            let sizes = power_law(sites, pages);
            assert_eq!(sizes.iter().map(|size| u64::from(*size)).sum::<u64>(), pages);
            assert_eq!(sizes.len(), sites as usize);
            assert!(sizes.is_sorted_by(|a, b| a >= b));
            assert!(sizes.iter().all(|size| *size >= 1));
        }
        let sizes = power_law(1_000, 100_000);
        assert!(sizes[0] > 9 * sizes[9], "{:?}", &sizes[..10]);
    }

    #[test]
    fn bad_configurations_are_refused() {
        let with = |change: fn(&mut ModelConfig)| {
            let mut config = ModelConfig::default();
            change(&mut config);
            Model::new(config).err()
        };
        assert_eq!(with(|_| ()), None);
        assert_eq!(with(|c| c.sites = 0), Some(ModelError::Sites));
        assert_eq!(with(|c| c.pages = 3), Some(ModelError::Pages));
        assert_eq!(with(|c| c.addresses = 0), Some(ModelError::Addresses));
        assert_eq!(with(|c| c.https_share = f64::NAN), Some(ModelError::HttpsShare));
        assert_eq!(with(|c| c.https_port = c.http_port), Some(ModelError::Ports));
    }

    #[test]
    fn addresses_are_loopback_and_used() {
        let model = Model::new(ModelConfig { sites: 300, ..ModelConfig::default() }).unwrap();
        let all: Vec<_> = model.addresses().collect();
        let mut used: Vec<_> = (0..300).map(|n| model.address_of(&format!("WWW.s{n}.test")).unwrap()).collect();
        assert!(used.iter().all(|address| address.is_loopback() && all.contains(address)));
        used.sort();
        used.dedup();
        assert_eq!(used.len(), 16);
        assert_eq!(model.address_of("s300.test"), None);
        assert_eq!(model.address_of("mail.s1.test"), None);
        assert!(super::address(4_095).is_loopback());
    }
}
