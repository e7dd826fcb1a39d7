//! Consistent hashing: shards own arcs of a circle.
//!
//! Decides: each shard has `replicas` points on the circle of 64-bit numbers. A site belongs to the shard of the next
//! point at or after its hash (Boldi, Codenotti, Santini, Vigna, "UbiCrawler", 2004). A new shard takes arcs from the
//! others, and no arc moves between these. So of K + 1 shards the new one gets some 1/(K + 1) of the sites and all
//! others stay (*covariant*), whereas [`ringcrawl_base::fast_range`] moves half of them.
//! Why replicas: with one arc per shard, arcs would differ widely in length. The load's standard deviation is one
//! over the root of `replicas`.
//! Invariants: a point depends on its shard and number alone, never on how many shards there are.
//! Limits: 12 bytes a point, plus an index with twice as many entries of four bytes.

use xxhash_rust::xxh3::xxh3_64;

/// The circle of a number of shards.
#[derive(PartialEq, Eq, Debug)]
pub struct Circle {
    replicas: u16,
    /// Ascending.
    points: Vec<u64>,
    /// The shard of each point.
    owners: Vec<u16>,
    /// By a hash's first bits: the first point at or after all hashes that begin with them.
    begins: Vec<u32>,
    shift: u32,
}

impl Circle {
    /// The circle of `shards` shards, at least one.
    pub fn new(shards: u16, replicas: u16) -> Circle {
        let point = |shard: u16, replica: u16| {
            let [a, b] = shard.to_le_bytes();
            let [c, d] = replica.to_le_bytes();
            (xxh3_64(&[a, b, c, d]), shard)
        };
        let of_shard = |shard| (0..replicas.max(1)).map(move |replica| point(shard, replica));
        let mut all: Vec<(u64, u16)> = (0..shards.max(1)).flat_map(of_shard).collect();
        all.sort_unstable();
        let bits = (2 * all.len()).next_power_of_two().ilog2();
        let shift = u64::BITS - bits;
        let begins = (0..1_u64 << bits).map(|bucket| all.partition_point(|(point, _)| *point < bucket << shift) as u32);
        Circle {
            replicas,
            begins: begins.collect(),
            shift,
            owners: all.iter().map(|(_, shard)| *shard).collect(),
            points: all.into_iter().map(|(point, _)| point).collect(),
        }
    }

    /// Bytes of memory.
    pub fn ram_bytes(&self) -> u64 {
        (size_of_val(&*self.points) + size_of_val(&*self.owners) + size_of_val(&*self.begins)) as u64
    }

    /// Points of a shard.
    pub fn replicas(&self) -> u16 {
        self.replicas
    }

    /// The shard that owns `hash`.
    pub fn owner(&self, hash: u64) -> u16 {
        let begin = self.begins.get((hash >> self.shift) as usize).map_or(0, |begin| *begin as usize);
        let behind = self.points.iter().skip(begin).take_while(|point| **point < hash).count();
        // After the last point comes the first.
        self.owners.get(begin + behind).or(self.owners.first()).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(number: u64) -> u64 {
        xxh3_64(format!("s{number}.test").as_bytes())
    }

    /// The slow twin scans all points.
    #[test]
    fn the_owner_is_that_of_the_next_point() {
        for (shards, replicas) in [(1, 1), (2, 1), (3, 7), (64, 128)] {
            let circle = Circle::new(shards, replicas);
            let mut hashes: Vec<u64> = (0..2_000).map(site).collect();
            hashes.extend([0, u64::MAX]);
            hashes
                .extend(circle.points.iter().flat_map(|point| [point.wrapping_sub(1), *point, point.wrapping_add(1)]));
            for hash in hashes {
                let next = circle.points.iter().position(|point| *point >= hash).unwrap_or(0);
                assert_eq!(circle.owner(hash), circle.owners[next], "{hash:x} of {shards}");
            }
        }
    }

    /// Boldi's three properties: correct, balanced, covariant.
    #[test]
    fn a_shard_that_is_added_takes_its_part_and_nothing_else_moves() {
        const SITES: u64 = 20_000;
        for shards in [1, 2, 3, 7, 16, 31, 63] {
            let (before, after) = (Circle::new(shards, 128), Circle::new(shards + 1, 128));
            let mut loads = vec![0_u64; usize::from(shards) + 1];
            let mut moved = 0;
            for hash in (0..SITES).map(site) {
                let (was, is) = (before.owner(hash), after.owner(hash));
                assert!(was < shards && is <= shards, "no shard");
                assert!(is == was || is == shards, "{was} to {is}, and {shards} was added");
                moved += u64::from(is != was);
                loads[usize::from(is)] += 1;
            }
            let share = moved as f64 / SITES as f64;
            assert!(share <= 1.2 / f64::from(shards), "{share} moved when one was added to {shards}");
            let even = SITES / u64::from(shards + 1);
            let far = loads.iter().find(|load| **load > even * 3 / 2 || **load < even / 2);
            assert_eq!(far, None, "of {even} each: {loads:?}");
        }
    }
}
