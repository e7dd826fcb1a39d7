//! Sites, hosts or pages that were assigned to shards beforehand, with knowledge of the web's links: an assignment
//! ("part vector", Cambazoglu, Turk and Aykanat, "Data-Parallel Web Crawling Models", 2004).
//!
//! Decides: names are found by their 64-bit hashes alone, in a table with linear probing. The same file gives every
//! shard the same answers; its digest goes into the crawl's manifest.
//! Invariants: names count in the crawler's own form, each once; a quarter of the table is free.
//! Limits: 13 to 27 bytes a name ([`Vector::ram_bytes`]); the caller that reads one sets the limit in bytes.
//! Leaves to others: the file (`plan_files`), URLs without an assignment ([`super::Partition`]).

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::host_hash;
use ringcrawl_url::{Site, Url};

/// What is assigned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VectorUnit {
    /// Registrable domains.
    Site,
    /// Hosts.
    Host,
    /// URLs.
    Page,
}

impl VectorUnit {
    /// `site`, `host` or `page`.
    pub fn as_str(self) -> &'static str {
        match self {
            VectorUnit::Site => "site",
            VectorUnit::Host => "host",
            VectorUnit::Page => "page",
        }
    }

    /// The unit of that name.
    pub fn of_word(word: &str) -> Option<VectorUnit> {
        [VectorUnit::Site, VectorUnit::Host, VectorUnit::Page].into_iter().find(|unit| unit.as_str() == word)
    }
}

/// An assignment. Equal ones assign the same.
#[derive(Debug)]
pub struct Vector {
    unit: VectorUnit,
    shards: u16,
    table: Table,
    digest: u128,
}

impl PartialEq for Vector {
    fn eq(&self, other: &Vector) -> bool {
        (self.unit, self.shards, self.digest) == (other.unit, other.shards, other.digest)
    }
}

impl Eq for Vector {}

impl Vector {
    /// What is assigned.
    pub fn unit(&self) -> VectorUnit {
        self.unit
    }

    /// The number of shards.
    pub fn shards(&self) -> u16 {
        self.shards
    }

    /// The number of assigned names.
    pub fn len(&self) -> usize {
        self.table.len
    }

    /// Whether nothing is assigned.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of names that fit in `bytes_max` bytes.
    pub(super) fn names_max(bytes_max: u64) -> usize {
        let places = usize::try_from(bytes_max).unwrap_or(usize::MAX) / PLACE_BYTES;
        let least = PLACES_MIN.ilog2();
        // The table doubles.
        let places = if places == 0 { PLACES_MIN } else { 1 << places.ilog2().max(least) };
        places / 4 * 3
    }

    /// Bytes of memory.
    pub fn ram_bytes(&self) -> u64 {
        (self.table.hashes.len() * PLACE_BYTES) as u64
    }

    /// What distinguishes it from another assignment, in words that fit on a line.
    pub(super) fn words(&self) -> String {
        format!("{} {:032x}", self.unit.as_str(), self.digest)
    }

    /// Whether [`Vector::words`] can return this.
    pub(super) fn are_words(words: &str) -> bool {
        let Some((unit, digest)) = words.split_once(' ') else { return false };
        let is_digest = digest.len() == 32 && digest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        VectorUnit::of_word(unit).is_some() && is_digest
    }

    /// The shard of a URL of a site, if it is assigned.
    pub(super) fn owner(&self, url: &Url, site: Site<'_>) -> Option<u16> {
        self.table.get(match self.unit {
            VectorUnit::Site => site.hash,
            VectorUnit::Host => host_hash(url.host()),
            VectorUnit::Page => xxh3_64(url.as_str().as_bytes()),
        })
    }

    /// The shard of all URLs of a host, if it is assigned.
    pub(super) fn home(&self, host: &str) -> Option<u16> {
        self.table.get(match self.unit {
            VectorUnit::Site => Site::of(host).hash,
            VectorUnit::Host => host_hash(host),
            VectorUnit::Page => return None,
        })
    }
}

/// An assignment under construction.
#[derive(Debug)]
pub struct VectorBuilder {
    vector: Vector,
    bytes_max: u64,
}

impl VectorBuilder {
    /// Nothing is assigned yet, to `shards` shards, in at most `bytes_max` bytes of memory.
    pub fn new(unit: VectorUnit, shards: u16, bytes_max: u64) -> VectorBuilder {
        let table = Table::with_places(PLACES_MIN);
        VectorBuilder { vector: Vector { unit, shards, table, digest: 0 }, bytes_max }
    }

    /// Assigns `name` to `shard`.
    ///
    /// # Errors
    /// `name` is not a valid name of the unit, was assigned before, or does not fit, or no shard has this number.
    pub fn add(&mut self, shard: u16, name: &str) -> Result<(), String> {
        let hash = hash_of(self.vector.unit, name)?;
        self.add_hash(shard, hash, name)
    }

    /// The same, by the hash of its name.
    pub(super) fn add_hash(&mut self, shard: u16, hash: u64, name: &str) -> Result<(), String> {
        let Vector { shards, table, .. } = &mut self.vector;
        if shard >= *shards {
            return Err(format!("there is no shard {shard}: the assignment is to {shards}, from 0"));
        }
        if table.is_full() {
            if (table.hashes.len() * 2 * PLACE_BYTES) as u64 > self.bytes_max {
                return Err(format!("more names than partition.ram_bytes_max has room for: {} so far", table.len));
            }
            table.grow();
        }
        if !table.insert(hash, shard) {
            return Err(format!("{name} stands here a second time"));
        }
        // The order does not matter.
        let entry = (u128::from(hash) << 16 | u128::from(shard)).to_le_bytes();
        self.vector.digest = self.vector.digest.wrapping_add(xxh3_128(&entry));
        Ok(())
    }

    /// Finishes the assignment.
    pub fn build(self) -> Vector {
        self.vector
    }
}

/// The hash of a name, if it is one.
fn hash_of(unit: VectorUnit, name: &str) -> Result<u64, String> {
    if unit == VectorUnit::Page {
        let url = Url::parse(name).map_err(|error| format!("{name:?} is no URL of a page: {error}"))?;
        return Ok(xxh3_64(url.as_str().as_bytes()));
    }
    let url = Url::parse(&format!("http://{name}/")).ok().filter(|url| url.as_str().len() == name.len() + 8);
    let url = url.filter(|url| url.host().eq_ignore_ascii_case(name));
    let url = url.ok_or_else(|| format!("{name:?} is no name of a {}", unit.as_str()))?;
    let site = Site::of(url.host());
    match unit {
        VectorUnit::Site if site.name != url.host() => Err(format!("{name} is no site: it is of {}", site.name)),
        VectorUnit::Site => Ok(site.hash),
        _ => Ok(host_hash(url.host())),
    }
}

/// Shards by hash, with linear probing.
#[derive(Debug, Default)]
struct Table {
    /// 0: none.
    hashes: Vec<u64>,
    /// Of the hash at the same place.
    shards: Vec<u16>,
    len: usize,
}

impl Table {
    fn with_places(places: usize) -> Table {
        Table { hashes: vec![0; places], shards: vec![0; places], len: 0 }
    }

    fn is_full(&self) -> bool {
        self.len * 4 >= self.hashes.len() * 3
    }

    /// The place of a hash, or the free place for it.
    fn place(&self, hash: u64) -> usize {
        let mut at = ((u128::from(hash) * self.hashes.len() as u128) >> 64) as usize;
        // There is always a free one.
        while self.hashes[at] != 0 && self.hashes[at] != hash {
            at = if at + 1 == self.hashes.len() { 0 } else { at + 1 };
        }
        at
    }

    fn get(&self, hash: u64) -> Option<u16> {
        let hash = hash.max(1);
        let at = self.place(hash);
        (self.hashes[at] == hash).then(|| self.shards[at])
    }

    /// Inserts a hash that is not there yet; there is room.
    fn insert(&mut self, hash: u64, shard: u16) -> bool {
        let hash = hash.max(1);
        let at = self.place(hash);
        let is_new = self.hashes[at] == 0;
        if is_new {
            (self.hashes[at], self.shards[at]) = (hash, shard);
            self.len += 1;
        }
        is_new
    }

    fn grow(&mut self) {
        let mut grown = Table::with_places(self.hashes.len() * 2);
        for (hash, shard) in self.hashes.iter().zip(&self.shards).filter(|(hash, _)| **hash != 0) {
            grown.insert(*hash, *shard);
        }
        *self = grown;
    }
}

/// Bytes of a place in the table.
const PLACE_BYTES: usize = size_of::<u64>() + size_of::<u16>();
const PLACES_MIN: usize = 16;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn builder(unit: VectorUnit) -> VectorBuilder {
        VectorBuilder::new(unit, 7, 1 << 20)
    }

    #[test]
    fn what_is_assigned_is_found_and_nothing_else() {
        let mut builder = builder(VectorUnit::Page);
        let mut twin = BTreeMap::new();
        for number in 0..20_000_u32 {
            let url = format!("http://h{}.test/{number}", number % 90);
            builder.add((number % 7) as u16, &url).expect("a page");
            twin.insert(url, (number % 7) as u16);
        }
        let vector = builder.build();
        assert_eq!((vector.len(), vector.is_empty()), (20_000, false));
        assert!(vector.ram_bytes() <= 27 * 20_000, "{}", vector.ram_bytes());
        for number in 0..40_000_u32 {
            let text = format!("http://h{}.test/{number}", number % 90);
            let url = Url::parse(&text).expect("a URL");
            assert_eq!(vector.owner(&url, Site::of(url.host())), twin.get(&text).copied(), "{text}");
        }
        assert_eq!(vector.home("h1.test"), None, "pages of a host are anywhere");
    }

    #[test]
    fn sites_and_hosts() {
        let url = Url::parse("https://www.b.example.co.uk:8443/x").expect("a URL");
        let site = Site::of(url.host());
        for (unit, name) in [(VectorUnit::Site, "example.co.uk"), (VectorUnit::Host, "WWW.b.example.co.uk")] {
            let mut builder = builder(unit);
            assert_eq!(builder.add(6, name), Ok(()));
            let vector = builder.build();
            assert_eq!((vector.owner(&url, site), vector.home(url.host())), (Some(6), Some(6)), "{unit:?}");
            assert_eq!(vector.home("www.b.example.co.uk."), Some(6));
            assert_eq!(vector.home("example.org"), None);
            assert!(Vector::are_words(&vector.words()), "{}", vector.words());
        }
        assert!(!Vector::are_words("site") && !Vector::are_words("door 0123456789abcdef0123456789abcdef"));
    }

    #[test]
    fn what_is_refused() {
        let told = |unit, shard, name: &str| builder(unit).add(shard, name).expect_err(name);
        assert!(told(VectorUnit::Site, 7, "a.test").contains("no shard 7: the assignment is to 7, from 0"));
        assert!(told(VectorUnit::Site, 0, "www.a.test").contains("is no site: it is of a.test"));
        for name in ["", "a.test/", "a.test:80", "x@a.test", "a b", "a.test?"] {
            assert!(told(VectorUnit::Host, 0, name).contains("is no name of a host"), "{name}");
        }
        assert!(told(VectorUnit::Page, 0, "17").contains("is no URL of a page"));
        let mut twice = builder(VectorUnit::Page);
        twice.add(1, "http://a.test/").expect("a page");
        assert!(twice.add(1, "HTTP://a.test:80").is_err_and(|why| why.contains("a second time")));
        let mut small = VectorBuilder::new(VectorUnit::Host, 1, 600);
        let refused = (0..100).find_map(|number| small.add(0, &format!("h{number}.test")).err()).expect("refused");
        assert!(refused.contains("partition.ram_bytes_max"), "{refused}");
        let small = small.build();
        assert!(small.ram_bytes() <= 600);
        assert_eq!(small.len(), Vector::names_max(600));
    }

    #[test]
    fn equal_ones_assign_the_same() {
        let of = |lines: &[(u16, &str)]| {
            let mut builder = builder(VectorUnit::Host);
            lines.iter().for_each(|(shard, name)| builder.add(*shard, name).expect("a host"));
            builder.build()
        };
        let one = of(&[(1, "a.test"), (2, "b.test")]);
        assert_eq!(one, of(&[(2, "b.test"), (1, "a.test")]));
        assert_ne!(one, of(&[(2, "a.test"), (1, "b.test")]));
        assert_ne!(one, of(&[(1, "a.test"), (3, "b.test")]));
        assert_ne!(one, of(&[(1, "a.test")]));
    }
}
