//! Sites that are given to shards as they are first seen: the dynamic assignment of Cho and Garcia-Molina ("Parallel Crawlers", 2002).
//!
//! Decides: the shard that first asks for a site gives it to the one with the least to do: URLs that wait, as the housekeeping
//! thread publishes them some times a second, and [`SITE_URLS`] for each site that was given since. The table is shared by all
//! shards and needs no lock: a place is taken once, by compare and swap, and never freed, so all see the same owner from then on.
//! What a site's logs say holds over a restart: each shard claims the sites of its log, and those that its journal sends elsewhere,
//! and none asks for an owner before all have ([`SiteOwners::is_settled`]). One log cannot contradict another: what says that a site
//! is a shard's was written because it was. A claim that finds no room, in a smaller table, ends the crawl before it begins.
//! Invariants: a site's owner never changes. With [`PROBES_MAX`] places of others in its way a site is where its hash says, for ever.
//! Limits: 8 bytes a place; two sites with equal 48 bits of their hashes have one owner, which harms neither.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::fast_range;

/// The owners of sites.
#[derive(Debug)]
pub struct SiteOwners {
    /// 48 bits of a site's hash, then its shard + 1; 0: free.
    places: Box<[AtomicU64]>,
    loads: Box<[Load]>,
    /// Shards that have claimed what is theirs.
    claimed: AtomicU32,
}

/// What a shard has to do.
#[derive(Debug, Default)]
struct Load {
    /// URLs that waited when last looked.
    waiting: AtomicU64,
    /// Sites given since.
    given: AtomicU64,
}

impl SiteOwners {
    /// No site has an owner among `shards` shards; the table may have so many bytes.
    pub fn new(shards: u16, bytes_max: u64) -> SiteOwners {
        let places = (bytes_max / size_of::<AtomicU64>() as u64).clamp(PLACES_MIN, PLACES_MAX) as usize;
        SiteOwners {
            places: (0..places).map(|_| AtomicU64::new(0)).collect(),
            loads: (0..shards.max(1)).map(|_| Load::default()).collect(),
            claimed: AtomicU32::new(0),
        }
    }

    /// Bytes of memory, once all is in use.
    pub fn ram_bytes(&self) -> u64 {
        (self.places.len() * size_of::<AtomicU64>()) as u64
    }

    /// The same table, without owners.
    pub fn afresh(&self) -> SiteOwners {
        SiteOwners::new(self.shards(), self.ram_bytes())
    }

    fn shards(&self) -> u16 {
        self.loads.len() as u16
    }

    /// The shard of the site of this hash, given to it now if need be.
    pub fn owner(&self, hash: u64) -> u16 {
        self.find(hash, || self.least_loaded())
    }

    /// The site of this hash is `shard`'s, as its log says; `false` where the table has no room for that, or another one has said so before.
    #[must_use]
    pub fn claim(&self, hash: u64, shard: u16) -> bool {
        self.find(hash, || shard.min(self.shards() - 1)) == shard
    }

    /// A shard has claimed all that is its own.
    pub fn has_claimed(&self) {
        self.claimed.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether all have.
    pub fn is_settled(&self) -> bool {
        self.claimed.load(Ordering::Acquire) >= u32::from(self.shards())
    }

    /// So many URLs wait in `shard`.
    pub fn note_waiting(&self, shard: usize, urls: u64) {
        if let Some(load) = self.loads.get(shard) {
            load.waiting.store(urls, Ordering::Relaxed);
            load.given.store(0, Ordering::Relaxed);
        }
    }

    fn find(&self, hash: u64, new: impl Fn() -> u16) -> u16 {
        let tag = hash << SHARD_BITS;
        let home = ((u128::from(hash) * self.places.len() as u128) >> 64) as usize;
        let (before, after) = self.places.split_at(home);
        for place in after.iter().chain(before).take(PROBES_MAX) {
            let mut found = place.load(Ordering::Acquire);
            if found == 0 {
                let shard = new();
                let word = tag | (u64::from(shard) + 1);
                match place.compare_exchange(0, word, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => {
                        self.loads[usize::from(shard)].given.fetch_add(1, Ordering::Relaxed);
                        return shard;
                    }
                    Err(other) => found = other,
                }
            }
            if (found ^ tag) >> SHARD_BITS == 0 {
                return ((found & SHARD_MASK) as u16).saturating_sub(1);
            }
        }
        fast_range(hash, self.shards())
    }

    fn least_loaded(&self) -> u16 {
        let load = |load: &Load| {
            let given = load.given.load(Ordering::Relaxed).saturating_mul(SITE_URLS);
            load.waiting.load(Ordering::Relaxed).saturating_add(given)
        };
        (0..).zip(&self.loads).min_by_key(|(_, of)| load(of)).map_or(0, |(shard, _)| shard)
    }
}

const SHARD_BITS: u32 = 16;
const SHARD_MASK: u64 = (1 << SHARD_BITS) - 1;
/// URLs that a new site counts until its own are there.
const SITE_URLS: u64 = 16;
const PROBES_MAX: usize = 64;
const PLACES_MIN: u64 = 1 << 10;
const PLACES_MAX: u64 = 1 << 36;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use xxhash_rust::xxh3::xxh3_64;

    use super::*;

    fn hash(site: u64) -> u64 {
        xxh3_64(&site.to_le_bytes())
    }

    #[test]
    fn the_least_loaded_shard_gets_a_new_site() {
        let owners = SiteOwners::new(3, 1 << 16);
        let mut given = [0; 3];
        (0..300).for_each(|site| given[usize::from(owners.owner(hash(site)))] += 1);
        assert_eq!(given, [100; 3], "in turn, while nothing waits");
        (0..3).for_each(|shard| owners.note_waiting(shard, [5_000, 100, 5_000][shard]));
        assert!((300..600).all(|site| owners.owner(hash(site)) == 1));
        let before: Vec<u16> = (0..600).map(|site| owners.owner(hash(site))).collect();
        owners.note_waiting(1, 1 << 40);
        assert_eq!((0..600).map(|site| owners.owner(hash(site))).collect::<Vec<_>>(), before, "an owner stays");
        assert_ne!(owners.owner(hash(600)), 1);
    }

    #[test]
    fn claims_come_before_gifts() {
        let owners = SiteOwners::new(4, 1 << 16);
        assert!(!owners.is_settled());
        assert!((0..100).all(|site| owners.claim(hash(site), 3)));
        assert!(!owners.claim(hash(7), 1));
        (0..4).for_each(|_| owners.has_claimed());
        assert!(owners.is_settled() && !owners.afresh().is_settled());
        assert!((0..100).all(|site| owners.owner(hash(site)) == 3));
    }

    #[test]
    fn a_full_table_falls_back_to_hashes_and_stays_so() {
        let owners = SiteOwners::new(5, 1);
        let first: Vec<u16> = (0..4_000).map(|site| owners.owner(hash(site))).collect();
        assert_eq!((0..4_000).map(|site| owners.owner(hash(site))).collect::<Vec<_>>(), first);
        let by_hash = (2_000..4_000).filter(|site| first[*site as usize] == fast_range(hash(*site), 5)).count();
        assert!(by_hash > 1_900, "{by_hash}");
        let (same, small) = (SiteOwners::new(5, 1 << 20), SiteOwners::new(5, 1));
        assert!((0..4_000).all(|site| same.claim(hash(site), first[site as usize])));
        assert!(
            !(0..4_000).rev().all(|site| small.claim(hash(site), first[site as usize])),
            "that is told, and nothing begins"
        );
    }

    #[test]
    fn threads_agree() {
        let owners = Arc::new(SiteOwners::new(7, 1 << 12));
        let threads: Vec<_> = (0..4_u64)
            .map(|thread| {
                let owners = Arc::clone(&owners);
                let sites = if cfg!(miri) { 60 } else { 2_000 };
                std::thread::spawn(move || {
                    let order = (0..sites).map(|at| (at * 7 + thread * 11) % sites);
                    order.map(|site| (site, owners.owner(hash(site)))).collect::<BTreeMap<_, _>>()
                })
            })
            .collect();
        let found: Vec<_> = threads.into_iter().map(|thread| thread.join().expect("a thread")).collect();
        assert!(found.iter().all(|of| *of == found[0]));
    }
}
