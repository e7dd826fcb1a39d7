//! Sites by their top-level domains: .com here, .net there, a country's elsewhere.
//!
//! Decides: the domains of a group belong to the same shards. Domains in no group form one more group (Cho and
//! Garcia-Molina, "Parallel Crawlers", 2002, section 4.2, whose table is `.com | .net` and the rest). Each group has
//! as even a share of the shards as possible; within it the site's hash decides. With fewer shards than groups,
//! neighbors share one.
//! Why: pages of one country mostly link to each other. The load is balanced only as well as the groups are.
//! Invariants: a site's hosts have one top-level domain, so they stay together. An IP address is in no group.
//! Limits: [`GROUPS_MAX`] groups, [`DOMAINS_MAX`] domains.

use std::collections::BTreeSet;

use xxhash_rust::xxh3::xxh3_64;

use ringcrawl_base::fast_range;

/// Groups of top-level domains.
#[derive(PartialEq, Eq, Debug)]
pub struct Hierarchy {
    text: String,
    /// Keys of domains with their groups, each at the slot its key selects or in a later one; 0: none. At most a
    /// quarter is in use.
    domains: Vec<(u64, u16)>,
    /// The last group holds what no group names.
    groups: u16,
    /// 2^32 / `groups` + 1: used to divide by `groups`. Exact up to [`GROUPS_MAX`] groups of a few thousand shards.
    inverse: u64,
}

impl Hierarchy {
    /// Reads groups such as `com | net org`: domains with white space between them, groups with a bar.
    ///
    /// # Errors
    /// Describes what is not a domain, is named twice, or exceeds a limit.
    pub fn parse(text: &str) -> Result<Hierarchy, String> {
        let mut named = BTreeSet::new();
        let mut domains = Vec::new();
        let groups: Vec<&str> = text.split('|').map(str::trim).collect();
        if groups.len() > GROUPS_MAX {
            return Err(format!("{} groups", groups.len()));
        }
        for (group, words) in (0..).zip(&groups) {
            if words.is_empty() {
                return Err("a group without a domain".to_owned());
            }
            for word in words.split_whitespace() {
                let domain = word.to_ascii_lowercase();
                let is_label = domain.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
                if !is_label || domain.len() > LABEL_BYTES_MAX || domain.bytes().all(|byte| byte.is_ascii_digit()) {
                    return Err(format!("{word:?} is not a top-level domain"));
                }
                domains.push((key_of(domain.as_bytes()), group));
                if !named.insert(domain) {
                    return Err(format!("{word:?} is named twice"));
                }
            }
        }
        if domains.len() > DOMAINS_MAX {
            return Err(format!("{} domains", domains.len()));
        }
        let domains = table(&domains);
        let words = |group: &&str| group.split_whitespace().map(str::to_ascii_lowercase).collect::<Vec<_>>().join(" ");
        let text = groups.iter().map(words).collect::<Vec<_>>().join(" | ");
        let groups = groups.len() as u16 + 1;
        Ok(Hierarchy { text, domains, groups, inverse: (1 << 32) / u64::from(groups) + 1 })
    }

    /// As written, in lower case and with single spaces.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The shard, out of `shards`, of a host whose site has this hash.
    pub fn owner(&self, host: &str, site_hash: u64, shards: u16) -> u16 {
        let group = u64::from(self.group(host));
        // Groups begin at even distances, so the shards of a group extend to where the next one begins.
        let begin_of = |group: u64| ((group * u64::from(shards) * self.inverse) >> 32) as u16;
        let (begin, end) = (begin_of(group), begin_of(group + 1));
        begin + fast_range(site_hash, (end - begin).max(1))
    }

    /// The group of a canonical host.
    fn group(&self, host: &str) -> u16 {
        let host = host.strip_suffix('.').unwrap_or(host);
        let key = last_key(host.as_bytes());
        let mut place = place_of(key, self.domains.len());
        while let Some((found, group)) = self.domains.get(place).filter(|(found, _)| *found != 0) {
            if *found == key {
                return *group;
            }
            place = (place + 1) & (self.domains.len() - 1);
        }
        self.groups - 1
    }
}

/// The key of a host's last label.
fn last_key(host: &[u8]) -> u64 {
    // A label of up to seven bytes is, with its dot, in the last eight.
    if let Some(last) = host.last_chunk::<8>() {
        let last = u64::from_le_bytes(*last);
        let differs = last ^ u64::from_le_bytes([b'.'; 8]);
        // The high bit of each byte that is a dot. A byte after a dot is also marked if it is a slash, which no host
        // contains.
        let dots = differs.wrapping_sub(LOW_BITS) & !differs & (LOW_BITS << 7);
        let bytes = dots.leading_zeros() / 8;
        if dots != 0 && bytes > 0 {
            return last >> (64 - 8 * bytes);
        }
    }
    key_of(host.rsplit(|byte| *byte == b'.').next().unwrap_or_default())
}

/// What distinguishes a label: the label itself if it is short, or its hash.
fn key_of(label: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    match bytes.get_mut(..label.len()).filter(|_| label.len() < 8) {
        Some(short) => {
            short.copy_from_slice(label);
            u64::from_le_bytes(bytes)
        }
        None => xxh3_64(label) | 1 << 63,
    }
}

/// Domains by the slots of their keys.
fn table(domains: &[(u64, u16)]) -> Vec<(u64, u16)> {
    let mut table = vec![(0, 0); (domains.len() * 4).next_power_of_two()];
    for (key, group) in domains {
        let mut place = place_of(*key, table.len());
        while table[place].0 != 0 {
            place = (place + 1) & (table.len() - 1);
        }
        table[place] = (*key, *group);
    }
    table
}

/// The first slot probed for a key, out of `places` slots, a power of two.
fn place_of(key: u64, places: usize) -> usize {
    (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize & (places - 1)
}

const LOW_BITS: u64 = u64::from_le_bytes([1; 8]);

const GROUPS_MAX: usize = 256;
const DOMAINS_MAX: usize = 2_048;
/// RFC 1035 section 2.3.4.
const LABEL_BYTES_MAX: usize = 63;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inverse_divides_exactly() {
        for groups in 1..=GROUPS_MAX as u64 + 1 {
            let inverse = (1 << 32) / groups + 1;
            for product in (0..=groups).flat_map(|group| [1, 2, 3, 61, 1_023, 1_024].map(|shards| group * shards)) {
                assert_eq!((product * inverse) >> 32, product / groups, "{product} / {groups}");
            }
        }
    }

    #[test]
    fn groups_have_shards_of_their_own() {
        let table = Hierarchy::parse("com | NET org |de  at ch").expect("a table");
        assert_eq!(table.text(), "com | net org | de at ch");
        let shards_of = |hosts: &[&str], shards| {
            let owner = |number: u64| {
                let host = hosts[number as usize % hosts.len()];
                table.owner(host, xxh3_64(&number.to_le_bytes()), shards)
            };
            (0..1_000).map(owner).collect::<BTreeSet<u16>>()
        };
        let range = |range: std::ops::Range<u16>| range.collect::<BTreeSet<u16>>();
        for (hosts, first) in [
            (&["a.com", "www.a.com."][..], 0),
            (&["a.net", "b.org"], 2),
            (&["a.de", "b.at", "c.ch"], 4),
            (&["a.fr", "192.0.2.1", "[2001:db8::1]", "localhost", "com.a"], 6),
        ] {
            assert_eq!(shards_of(hosts, 8), range(first..first + 2), "{hosts:?}");
            assert_eq!(shards_of(hosts, 4), range(first / 2..first / 2 + 1), "{hosts:?}");
            assert_eq!(shards_of(hosts, 2), range(first / 4..first / 4 + 1), "{hosts:?}");
            assert_eq!(shards_of(hosts, 1), range(0..1));
        }
        // Uneven shares also work, and no shard is left without sites.
        let all: BTreeSet<u16> =
            ["a.com", "a.net", "a.de", "a.fr"].iter().flat_map(|host| shards_of(&[*host], 7)).collect();
        assert_eq!(all, range(0..7));
    }

    #[test]
    fn bad_tables_are_refused() {
        for (text, why) in [
            ("", "without a domain"),
            ("com |", "without a domain"),
            ("com | | net", "without a domain"),
            ("com net | Com", "\"Com\" is named twice"),
            ("co.uk", "\"co.uk\" is not"),
            ("com, net", "\"com,\" is not"),
            ("1", "\"1\" is not"),
            ("*", "\"*\" is not"),
        ] {
            let error = Hierarchy::parse(text).expect_err(text);
            assert!(error.contains(why), "{text:?}: {error}");
        }
        assert!(Hierarchy::parse(&vec!["com"; 300].join("|")).is_err_and(|error| error == "300 groups"));
        let many: Vec<String> = (0..3_000).map(|number| format!("x{number}")).collect();
        assert!(Hierarchy::parse(&many.join(" ")).is_err_and(|error| error == "3000 domains"));
    }

    #[test]
    fn the_last_label_is_found_as_by_its_slow_twin() {
        let slow = |host: &str| key_of(host.rsplit_once('.').map_or(host, |(_, label)| label).as_bytes());
        let labels = ["a", "de", "com", "info", "museum", "example", "xn--p1ai", "international", "1", "-a-"];
        for first in labels {
            assert_eq!(last_key(first.as_bytes()), slow(first), "{first}");
            for second in labels {
                let two = format!("{first}.{second}");
                let three = format!("{second}.{two}");
                assert_eq!(
                    [last_key(two.as_bytes()), last_key(three.as_bytes())],
                    [slow(&two), slow(&three)],
                    "{three}"
                );
            }
        }
        for odd in ["", "[::1]", "127.0.0.1", "[2001:db8::7]", "........", "a.......b"] {
            assert_eq!(last_key(odd.as_bytes()), slow(odd), "{odd}");
        }
        let keys: BTreeSet<u64> = labels.iter().map(|label| key_of(label.as_bytes())).collect();
        assert_eq!(keys.len(), labels.len());
    }
}
