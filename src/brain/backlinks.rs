//! How many different sites link to a site, counted in sixteen bytes.
//!
//! Decides: HyperLogLog (Flajolet, Fusy, Gandouet, Meunier, "HyperLogLog: the analysis of a near-optimal cardinality
//! estimation algorithm", 2007) with 32 registers of four bits. A link between sites is kept as its target and a
//! *mark*: which register it belongs to, and what it would write there. So a link is ten bytes in messages and in the
//! log. It counts once, however often it comes, in any order and from any shard.
//! Why a sketch: the number decides how many thousand pages a site may have; a fifth more or less does not matter.
//! Exact sets of the sites that link to a large one would be the largest thing in memory.
//! Invariants: a site's own links do not count. Marks are made under the crawl's secret, so outsiders cannot choose
//! them.
//! Limits: the standard error is 18 %, 14 % up to ten sites; the highest count is some 700,000.

use ringcrawl_url::SiteKey;

/// A link from a site to another one, as counted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SiteLink {
    /// The number of the site that it leads to.
    pub to: u64,
    /// What the linking site writes to the target's sketch: a register in the lower five bits, a rank in the four
    /// above.
    pub mark: u16,
}

/// The sites that link to a site.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinkingSites {
    /// Sixteen registers of four bits each.
    registers: [u64; 2],
}

impl SiteLink {
    /// Length of its bytes.
    pub const BYTES: usize = 10;

    /// A link between two sites; `None` if they are the same.
    pub fn new(from: SiteKey, to: SiteKey) -> Option<SiteLink> {
        (from != to).then(|| {
            // A site that ranks high for one target need not for another.
            let hash = mixed(from.number() ^ to.number().rotate_left(32));
            let rank = ((hash >> REGISTER_BITS).trailing_zeros() + 1).min(RANK_MAX.into());
            SiteLink { to: to.number(), mark: (hash as u16 % REGISTERS) | (rank as u16) << REGISTER_BITS }
        })
    }

    /// A number that differs between links with different marks.
    pub fn number(self) -> u64 {
        self.to.wrapping_add(mixed(self.mark.into()))
    }

    /// Appends its bytes: target and mark, little endian.
    pub fn put(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to.to_le_bytes());
        out.extend_from_slice(&self.mark.to_le_bytes());
    }

    /// The links in these bytes; `None` if they are invalid.
    pub fn all_from_bytes(bytes: &[u8]) -> Option<impl Iterator<Item = SiteLink>> {
        let (links, rest) = bytes.as_chunks::<{ SiteLink::BYTES }>();
        let link = |bytes: &[u8; SiteLink::BYTES]| {
            let [a, b, c, d, e, f, g, h, mark @ ..] = *bytes;
            SiteLink { to: u64::from_le_bytes([a, b, c, d, e, f, g, h]), mark: u16::from_le_bytes(mark) }
        };
        rest.is_empty().then(|| links.iter().map(link))
    }
}

impl LinkingSites {
    /// Adds the mark of a link. Returns whether it reveals a site that was not counted.
    pub fn add(&mut self, mark: u16) -> bool {
        let (register, rank) = (mark % REGISTERS, u64::from((mark >> REGISTER_BITS).min(RANK_MAX)));
        let (word, shift) = (usize::from(register / 16), 4 * (register % 16));
        let Some(word) = self.registers.get_mut(word) else { return false };
        let is_news = rank > *word >> shift & NIBBLE;
        if is_news {
            *word = *word & !(NIBBLE << shift) | rank << shift;
        }
        is_news
    }

    /// About how many sites link.
    pub fn count(&self) -> u64 {
        let ranks = self.registers.iter().flat_map(|word| (0..16).map(move |register| word >> (4 * register) & NIBBLE));
        let (mut sum, mut zeros) = (0.0, 0_u32);
        for rank in ranks {
            sum += 1.0 / (1_u64 << rank) as f64;
            zeros += u32::from(rank == 0);
        }
        let registers = f64::from(REGISTERS);
        let estimate = ALPHA * registers * registers / sum;
        // For few sites, counting the untouched registers is more precise.
        let is_small = estimate <= 2.5 * registers && zeros > 0;
        let count = if is_small { registers * (registers / f64::from(zeros)).ln() } else { estimate };
        count.round() as u64
    }
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

const REGISTER_BITS: u32 = 5;
const REGISTERS: u16 = 1 << REGISTER_BITS;
const NIBBLE: u64 = 0xf;
const RANK_MAX: u16 = 0xf;
/// The correction of the bias with 32 registers (figure 3 of the paper).
const ALPHA: f64 = 0.697;

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    fn site(number: u64) -> SiteKey {
        SiteKey::of_host(7, &format!("s{number}.test"))
    }

    fn linked_by(to: u64, from: impl Iterator<Item = u64>) -> LinkingSites {
        let mut sites = LinkingSites::default();
        from.filter_map(|from| SiteLink::new(site(from), site(to))).for_each(|link| {
            sites.add(link.mark);
        });
        sites
    }

    /// Compared with exact sets: the root mean square of the relative error, of 400 sites each.
    #[test]
    fn the_error_is_what_is_stated() {
        for (count, bound) in
            [(1, 0.01), (2, 0.15), (5, 0.15), (10, 0.15), (30, 0.18), (80, 0.20), (1_000, 0.21), (20_000, 0.25)]
        {
            let targets = if count > 1_000 { 60 } else { 400 };
            let (mut squares, mut sum) = (0.0, 0.0);
            for to in 0..targets {
                let exact: BTreeSet<u64> = (0..count).map(|from| 1_000_000 + to * 50_000 + from).collect();
                let estimate = linked_by(to, exact.iter().copied()).count();
                let error = estimate as f64 / exact.len() as f64 - 1.0;
                (squares, sum) = (squares + error * error, sum + error);
            }
            let (deviation, bias) = ((squares / targets as f64).sqrt(), sum / targets as f64);
            println!("{count}: {deviation:.3}, bias {bias:+.3}");
            assert!(deviation <= bound && bias.abs() < 0.1, "{count} sites: {deviation:.3}, bias {bias:.3}");
        }
        assert_eq!([0, 1].map(|count| linked_by(0, 1..=count).count()), [0, 1]);
    }

    #[test]
    fn a_link_counts_once_in_whatever_order_and_never_within_a_site() {
        let once = linked_by(0, 1..300);
        assert_eq!(linked_by(0, (1..300).rev().chain(1..300).chain([0])), once);
        assert_eq!(SiteLink::new(site(1), SiteKey::of_host(7, "other.www.s1.test")), None);
        let mut marks = BTreeMap::<u16, u32>::new();
        (1..10_000).filter_map(|from| SiteLink::new(site(from), site(0))).for_each(|link| {
            *marks.entry(link.mark % REGISTERS).or_default() += 1;
        });
        assert!(marks.len() == 32 && marks.values().all(|count| (200..450).contains(count)), "{marks:?}");
    }

    #[test]
    fn there_and_back_and_nothing_else() {
        let links: Vec<SiteLink> = (1..50).filter_map(|from| SiteLink::new(site(from), site(0))).collect();
        let mut bytes = Vec::new();
        links.iter().for_each(|link| link.put(&mut bytes));
        let back = |bytes: &[u8]| SiteLink::all_from_bytes(bytes).map(Iterator::collect::<Vec<_>>);
        assert_eq!(back(&bytes), Some(links));
        assert_eq!((back(&bytes[1..]), back(b"")), (None, Some(vec![])));
        // A sketch accepts any bytes.
        let mut sites = LinkingSites::default();
        for mark in 0..=u16::MAX {
            sites.add(mark);
        }
        assert!(!sites.add(u16::MAX) && (600_000..800_000).contains(&sites.count()), "{}", sites.count());
    }
}
