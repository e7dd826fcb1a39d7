//! Ranges of IP addresses, in CIDR notation (RFC 4632 section 3.1, RFC 4291 section 2.3).
//!
//! Decides: an IPv6 address that carries an IPv4 address (mapped, NAT64, 6to4) is in the ranges of that address, too.
//! Bits after the prefix are ignored, as many lists set them.
//! Invariants: ranges are in order and do not overlap.

use std::net::IpAddr;

use ringcrawl_url::carried_v4;

/// Ranges of addresses.
#[derive(Debug, Default)]
pub struct Ranges {
    v4: Vec<(u32, u32)>,
    v6: Vec<(u128, u128)>,
}

/// A range as written by a user.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cidr {
    first: IpAddr,
    prefix: u32,
}

impl Cidr {
    /// Parses `192.0.2.0/24`, `2001:db8::/32`, or a single address.
    pub fn parse(text: &str) -> Option<Cidr> {
        let (address, prefix) = text.split_once('/').map_or((text, None), |(address, prefix)| (address, Some(prefix)));
        let first: IpAddr = address.parse().ok()?;
        let bits = if first.is_ipv4() { 32 } else { 128 };
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let prefix = match prefix {
            None => bits,
            Some(prefix) => prefix.parse().ok().filter(|number| is_number(prefix) && *number <= bits)?,
        };
        Some(Cidr { first, prefix })
    }
}

impl Ranges {
    /// All addresses of `cidrs`.
    pub fn new(cidrs: &[Cidr]) -> Ranges {
        let mut ranges = Ranges::default();
        for Cidr { first, prefix } in cidrs {
            match first {
                IpAddr::V4(first) => {
                    let host = u32::MAX.checked_shr(*prefix).unwrap_or(0);
                    ranges.v4.push((first.to_bits() & !host, first.to_bits() | host));
                }
                IpAddr::V6(first) => {
                    let host = u128::MAX.checked_shr(*prefix).unwrap_or(0);
                    ranges.v6.push((first.to_bits() & !host, first.to_bits() | host));
                }
            }
        }
        merge(&mut ranges.v4);
        merge(&mut ranges.v6);
        ranges
    }

    /// Whether `address` is in a range.
    pub fn contain(&self, address: IpAddr) -> bool {
        if self.is_empty() {
            return false;
        }
        let has_v4 = |address: u32| is_in(&self.v4, address);
        match address {
            IpAddr::V4(address) => has_v4(address.to_bits()),
            IpAddr::V6(v6) => {
                is_in(&self.v6, v6.to_bits()) || carried_v4(address).is_some_and(|carried| has_v4(carried.to_bits()))
            }
        }
    }

    /// Whether there are no ranges.
    pub fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty()
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        self.v4.capacity() * size_of::<(u32, u32)>() + self.v6.capacity() * size_of::<(u128, u128)>()
    }
}

fn is_in<T: Copy + Ord>(ranges: &[(T, T)], address: T) -> bool {
    let behind = ranges.partition_point(|(first, _)| *first <= address);
    behind.checked_sub(1).and_then(|at| ranges.get(at)).is_some_and(|(_, last)| address <= *last)
}

/// Sorts ranges and merges those that overlap. Two networks overlap only if one contains the other.
fn merge<T: Copy + Ord>(ranges: &mut Vec<(T, T)>) {
    ranges.sort_unstable();
    ranges.dedup_by(|range, before| {
        let is_within = range.0 <= before.1;
        before.1 = if is_within { before.1.max(range.1) } else { before.1 };
        is_within
    });
    ranges.shrink_to_fit();
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::Rng;

    #[test]
    fn ranges() {
        let read = |text: &str| Cidr::parse(text).unwrap_or_else(|| panic!("{text}"));
        let ranges =
            Ranges::new(&["192.0.2.9/24", "198.51.100.7", "10.0.0.0/8", "10.1.0.0/16", "2001:db8::/32"].map(read));
        for (address, expected) in [
            ("192.0.2.0", true),
            ("192.0.2.255", true),
            ("192.0.3.0", false),
            ("198.51.100.7", true),
            ("198.51.100.8", false),
            ("10.200.0.1", true),
            ("11.0.0.0", false),
            ("2001:db8:ffff::1", true),
            ("2001:db9::", false),
            ("::ffff:192.0.2.1", true),
            ("64:ff9b::c000:201", true),
            ("::ffff:192.0.3.1", false),
        ] {
            assert_eq!(ranges.contain(address.parse().unwrap()), expected, "{address}");
        }
        assert!(Ranges::new(&[read("0.0.0.0/0")]).contain("8.8.8.8".parse().unwrap()));
        assert!(!Ranges::new(&[read("::/0")]).contain("8.8.8.8".parse().unwrap()));
        for text in ["", "10.0.0.0/33", "10.0.0/8", "::/129", "10.0.0.0/", "10.0.0.0/+8", "a.test/8"] {
            assert_eq!(Cidr::parse(text), None, "{text}");
        }
    }

    #[test]
    fn ranges_are_those_of_the_twin() {
        let mut rng = Rng::new(2);
        for _ in 0..500 {
            let cidrs: Vec<Cidr> = (0..rng.below(30))
                .map(|_| {
                    Cidr::parse(&format!("10.0.{}.{}/{}", rng.below(4), rng.below(256), 20 + rng.below(13))).unwrap()
                })
                .collect();
            let ranges = Ranges::new(&cidrs);
            for _ in 0..100 {
                let address: IpAddr = format!("10.0.{}.{}", rng.below(5), rng.below(256)).parse().unwrap();
                let slow = cidrs.iter().any(|cidr| Ranges::new(&[*cidr]).contain(address));
                assert_eq!(ranges.contain(address), slow, "{cidrs:?} {address}");
            }
        }
    }
}
