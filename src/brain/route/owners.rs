//! Sites that are given to shards when they are first seen: the dynamic assignment of Cho and Garcia-Molina
//! ("Parallel Crawlers", 2002).
//!
//! Decides: the first shard that needs a site's owner gives the site to the shard with the least to do. That counts
//! waiting URLs, as the housekeeping thread publishes them some times a second, and [`SITE_URLS`] for each site given
//! lately. A shard whose visited set is full gets a site only if all are full. All shards share the table, and it
//! needs no lock: a place is taken once, by compare-and-swap, and never freed, so all shards see the same owner from
//! then on.
//! A site's logs keep its owner over a restart. Each shard claims the sites of its log, and those that its journal
//! sends elsewhere. No shard looks up an owner before all have claimed ([`SiteOwners::is_settled`]). Logs cannot
//! contradict each other, because each entry was written by the shard that owned the site. Another Public Suffix List
//! may however split one site into several.
//! Claims come in any order. So sites that are not where their hash says take the places of those that are, and a few
//! that find none even so are [`SiteClaims::displaced`]. If the table is smaller than the one before, a claim without
//! room ends the crawl before it begins.
//! Invariants: a site's owner never changes. If other sites hold the first [`PROBES_MAX`] places, a site stays where
//! its hash says, forever, unless its claim was displaced.
//! Limits: 8 bytes a place, allocated when the first site comes, and at most a third more for displaced claims. Two
//! sites whose hashes agree in 48 bits share an owner, which harms neither.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use ringcrawl_base::fast_range;

/// The owners of sites.
#[derive(Debug)]
pub struct SiteOwners {
    /// The first 48 bits of a site's hash, then its shard + 1; 0: free.
    places: OnceLock<Box<[AtomicU64]>>,
    places_count: usize,
    loads: Box<[Load]>,
    claims: Mutex<SiteClaims>,
    /// The displaced claims, once all claims are in.
    displaced: OnceLock<BTreeMap<u64, u16>>,
}

/// What earlier runs recorded.
#[derive(Debug, Default)]
struct SiteClaims {
    /// The number of shards that have made all their claims.
    shards: u16,
    /// Shards of sites whose first places are held by sites that are not where their hash says.
    displaced: BTreeMap<u64, u16>,
}

/// The result of a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SiteClaim {
    /// The site belongs to that shard.
    Kept,
    /// The site belongs to another shard, which claimed it before.
    Contradicted,
    /// The table has no room for it.
    NoRoom,
}

/// What a shard has to do.
#[derive(Debug, Default)]
struct Load {
    /// Waiting URLs at the last count.
    waiting: AtomicU64,
    /// Sites given to it lately.
    given: AtomicU64,
    /// Whether its visited set is full.
    is_full: AtomicBool,
}

impl SiteOwners {
    /// No site has an owner among `shards` shards yet; the table may take `bytes_max` bytes.
    pub fn new(shards: u16, bytes_max: u64) -> SiteOwners {
        let places = bytes_max / size_of::<AtomicU64>() as u64;
        SiteOwners {
            places: OnceLock::new(),
            places_count: places.clamp(PLACES_MIN, PLACES_MAX) as usize,
            loads: (0..shards.max(1)).map(|_| Load::default()).collect(),
            claims: Mutex::default(),
            displaced: OnceLock::new(),
        }
    }

    /// Bytes of memory once a site was given to a shard.
    pub fn ram_bytes(&self) -> u64 {
        (self.places_count * size_of::<AtomicU64>()) as u64
    }

    /// The same table, without owners.
    pub fn afresh(&self) -> SiteOwners {
        SiteOwners::new(self.shards(), self.ram_bytes())
    }

    fn shards(&self) -> u16 {
        self.loads.len() as u16
    }

    /// The shard of the site with this hash, which gets one now if it has none.
    pub fn owner(&self, hash: u64) -> u16 {
        match self.near(hash, || self.least_loaded()) {
            Near::Is(shard) => shard,
            Near::New(shard) => {
                self.loads[usize::from(shard)].given.fetch_add(1, Ordering::Relaxed);
                shard
            }
            Near::Full => {
                let displaced = self.displaced.get().and_then(|displaced| displaced.get(&tag(hash)));
                displaced.copied().unwrap_or_else(|| self.by_hash(hash))
            }
        }
    }

    /// The site with this hash belongs to `shard`, as its log says.
    pub fn claim(&self, hash: u64, shard: u16) -> SiteClaim {
        let shard = shard.min(self.shards() - 1);
        let of = |found: u16| if found == shard { SiteClaim::Kept } else { SiteClaim::Contradicted };
        match self.near(hash, || shard) {
            Near::Is(found) => of(found),
            Near::New(_) => SiteClaim::Kept,
            Near::Full => {
                // The lock is not held while another claim is made.
                let found = self.claims().displaced.get(&tag(hash)).copied();
                match found {
                    Some(found) => of(found),
                    None if self.by_hash(hash) == shard || self.displace(hash, shard) => SiteClaim::Kept,
                    None => self.add_displaced(hash, shard),
                }
            }
        }
    }

    /// Puts a site into the first place whose site is where its hash says; `false` if none is near.
    fn displace(&self, hash: u64, shard: u16) -> bool {
        for place in self.places_from_home(hash).take(PROBES_MAX) {
            let mut found = place.load(Ordering::Acquire);
            while self.by_hash(found) == shard_of(found) {
                match place.compare_exchange(found, word(hash, shard), Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => {
                        // The displaced site gets another place, or finds none free nearby and needs none.
                        self.claim(tag(found), shard_of(found));
                        return true;
                    }
                    Err(other) => found = other,
                }
            }
        }
        false
    }

    fn add_displaced(&self, hash: u64, shard: u16) -> SiteClaim {
        let mut claims = self.claims();
        if claims.displaced.len() >= self.places_count / DISPLACED_PART {
            return SiteClaim::NoRoom;
        }
        claims.displaced.insert(tag(hash), shard);
        SiteClaim::Kept
    }

    fn claims(&self) -> std::sync::MutexGuard<'_, SiteClaims> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A shard has made all its claims.
    pub fn has_claimed(&self) {
        let mut claims = self.claims();
        claims.shards += 1;
        if claims.shards >= self.shards() {
            self.displaced.get_or_init(|| std::mem::take(&mut claims.displaced));
        }
    }

    /// Whether all shards have.
    pub fn is_settled(&self) -> bool {
        self.displaced.get().is_some()
    }

    /// The visited set of `shard` has no room: the shard gets no site while another one has room.
    pub fn note_full(&self, shard: u16) {
        if let Some(load) = self.loads.get(usize::from(shard)) {
            load.is_full.store(true, Ordering::Relaxed);
        }
    }

    /// `urls` URLs wait in `shard`.
    pub fn note_waiting(&self, shard: usize, urls: u64) {
        if let Some(load) = self.loads.get(shard) {
            load.waiting.store(urls, Ordering::Relaxed);
            // Their URLs come with the next batches.
            load.given.fetch_sub(load.given.load(Ordering::Relaxed).div_ceil(GIVEN_PART), Ordering::Relaxed);
        }
    }

    /// Searches the first places of the site with this hash, and puts it into the first free one.
    fn near(&self, hash: u64, new: impl Fn() -> u16) -> Near {
        for place in self.places_from_home(hash).take(PROBES_MAX) {
            let mut found = place.load(Ordering::Acquire);
            if found == 0 {
                let shard = new();
                match place.compare_exchange(0, word(hash, shard), Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => return Near::New(shard),
                    Err(other) => found = other,
                }
            }
            if tag(found) == tag(hash) {
                return Near::Is(shard_of(found));
            }
        }
        Near::Full
    }

    /// All places, starting where the search for a site with this hash begins.
    fn places_from_home(&self, hash: u64) -> impl Iterator<Item = &AtomicU64> {
        let places = self.places.get_or_init(|| (0..self.places_count).map(|_| AtomicU64::new(0)).collect());
        let home = ((u128::from(tag(hash)) * places.len() as u128) >> 64) as usize;
        let (before, after) = places.split_at(home);
        after.iter().chain(before)
    }

    /// The shard of a site without a place.
    fn by_hash(&self, hash: u64) -> u16 {
        fast_range(tag(hash), self.shards())
    }

    fn least_loaded(&self) -> u16 {
        let load = |load: &Load| {
            let given = load.given.load(Ordering::Relaxed).saturating_mul(SITE_URLS);
            (load.is_full.load(Ordering::Relaxed), load.waiting.load(Ordering::Relaxed).saturating_add(given))
        };
        (0..).zip(&self.loads).min_by_key(|(_, of)| load(of)).map_or(0, |(shard, _)| shard)
    }
}

/// What the first places say about a site.
enum Near {
    /// Its shard.
    Is(u16),
    /// Its new shard.
    New(u16),
    /// Other sites hold all of them.
    Full,
}

/// What identifies a site, in its hash or in a place.
fn tag(word: u64) -> u64 {
    word & !SHARD_MASK
}

fn word(hash: u64, shard: u16) -> u64 {
    tag(hash) | (u64::from(shard) + 1)
}

fn shard_of(word: u64) -> u16 {
    ((word & SHARD_MASK) as u16).saturating_sub(1)
}

const SHARD_MASK: u64 = (1 << 16) - 1;
/// The number of URLs that a new site counts for until its own arrive.
const SITE_URLS: u64 = 16;
/// This part of them is forgotten each time waiting URLs are counted.
const GIVEN_PART: u64 = 16;
const PROBES_MAX: usize = 64;
/// The displaced claims are at most this part of all places.
const DISPLACED_PART: usize = 8;
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
        owners.note_waiting(2, 0);
        owners.note_full(2);
        assert!(
            (601..700).all(|site| owners.owner(hash(site)) == 0),
            "what is full has the least to do and gets nothing"
        );
        (0..2).for_each(|shard| owners.note_full(shard));
        assert_eq!(owners.owner(hash(700)), 2, "as good as another, where all are full");
    }

    #[test]
    fn claims_come_before_gifts() {
        let owners = SiteOwners::new(4, 1 << 16);
        assert!(!owners.is_settled());
        assert!((0..100).all(|site| owners.claim(hash(site), 3) == SiteClaim::Kept));
        assert_eq!(owners.claim(hash(7), 1), SiteClaim::Contradicted);
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
        for order in [1, 3, 7, 11, 3_999] {
            let same = SiteOwners::new(5, 1);
            let sites = || (0..4_000).map(|site| site * order % 4_000);
            // Each several times, as a log has several URLs of a site.
            (0..2).for_each(|_| {
                assert!(sites().all(|site| same.claim(hash(site), first[site as usize]) == SiteClaim::Kept))
            });
            (0..5).for_each(|_| same.has_claimed());
            assert_eq!((0..4_000).map(|site| same.owner(hash(site))).collect::<Vec<_>>(), first, "in order {order}");
            let later: u64 = (4_000..9_000).map(|site| u64::from(same.owner(hash(site)))).sum();
            assert!(later > 0);
            assert_eq!((0..4_000).map(|site| same.owner(hash(site))).collect::<Vec<_>>(), first, "nor later");
        }
    }

    #[test]
    fn a_smaller_table_has_no_room_for_all_claims() {
        let (large, small) = (SiteOwners::new(5, 1 << 20), SiteOwners::new(5, 1));
        let claims: Vec<SiteClaim> = (0..4_000).map(|site| small.claim(hash(site), large.owner(hash(site)))).collect();
        (0..5).for_each(|_| small.has_claimed());
        assert!(claims.contains(&SiteClaim::NoRoom), "it says so, and nothing begins");
        let is_kept = |(site, claim): (u64, SiteClaim)| {
            claim == SiteClaim::NoRoom || claim == SiteClaim::Kept && small.owner(hash(site)) == large.owner(hash(site))
        };
        assert!((0..4_000).zip(claims).all(is_kept));
    }

    /// With many shards hardly any site is where its hash says.
    #[test]
    fn claims_find_room_in_a_table_full_of_others() {
        const SHARDS: u16 = 64;
        let bytes = if cfg!(miri) { 1 << 13 } else { 1 << 19 };
        let (before, sites) = (SiteOwners::new(SHARDS, bytes), bytes / 4);
        let first: Vec<u16> = (0..sites).map(|site| before.owner(hash(site))).collect();
        let same = SiteOwners::new(SHARDS, bytes);
        for site in (0..sites).rev() {
            assert_eq!(same.claim(hash(site), first[site as usize]), SiteClaim::Kept, "{site}");
        }
        let displaced = same.claims().displaced.len() as u64;
        assert!(0 < displaced && displaced < bytes / 8 / 16, "{displaced} of {} places", bytes / 8);
        (0..SHARDS).for_each(|_| same.has_claimed());
        assert!((0..sites).all(|site| same.owner(hash(site)) == first[site as usize]));
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
