//! What sites may cost by the options of their seeds.
//!
//! Decides: a site, or a part of one, has a limit of its own where the options of its seeds differ from
//! `budget.site_*`.

use ringcrawl_brain::frontier::{Bound, PartsBySite, SiteBounds};
use ringcrawl_brain::seed::{Seed, SeedOptions, site_options, site_parts};
use ringcrawl_config as config;
use ringcrawl_url::SiteKey;

/// Limits on the cost of the sites of `seeds` with options, and of their parts, where these set more than `budget`.
pub(super) fn site_bounds(budget: &config::Budget, seeds: &[Seed], rng_seed: u64) -> (SiteBounds, PartsBySite) {
    let [_, of_sites] = Bound::of_config(budget);
    let key = |name: &str| SiteKey::new(rng_seed, name).number();
    let bound = |name: &str, options: &SeedOptions| {
        let SeedOptions { pages, bytes, seconds, depth: _ } = *options;
        let bound = Bound {
            pages: pages.unwrap_or(of_sites.pages),
            bytes: bytes.unwrap_or(of_sites.bytes),
            seconds: seconds.unwrap_or(of_sites.seconds),
        };
        (bound != of_sites).then(|| (key(name), bound))
    };
    let sites = site_options(seeds);
    let mut bounds: SiteBounds = sites.iter().filter_map(|(site, options)| bound(site, options)).collect();
    let mut all_parts = PartsBySite::default();
    for (site, mut parts) in site_parts(seeds) {
        // Parts without limits of their own share those of the part around them, or of their site.
        parts.retain(|name, options| {
            let bound = bound(name, options);
            bounds.extend(bound);
            bound.is_some()
        });
        if parts.has(|_| true) {
            all_parts.insert(key(&site), parts);
        }
    }
    (bounds, all_parts)
}
