//! What can be claimed: an IPv4 address, an IPv6 network of 64 bits, a site, a slot of an operator's group, a host.
//!
//! Decides: an owner of one IPv6 address usually has 2^64 of them, so a /64 counts as one machine. An IPv4 address
//! written as an IPv6 address, mapped or by the well-known prefix of NAT64 (RFC 6052), is that IPv4 address.
//! Invariants: keys of different kinds are never equal, whatever their numbers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ringcrawl_url::SiteKey;

/// Something that a request claims: it gets one request at a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ClaimKey {
    /// An IPv4 address.
    Ipv4(Ipv4Addr),
    /// The first 64 bits of IPv6 addresses.
    Ipv6Net(u64),
    /// All hosts of a registrable domain.
    Site(SiteKey),
    /// Machines of one operator: one of the slots of a group.
    Group(u64),
    /// A host whose URLs are spread over several shards.
    Host(u64),
}

impl ClaimKey {
    /// The key as a number and the kind of number, 1 to 5: equal only for equal keys.
    pub(super) fn parts(self) -> (u64, u64) {
        match self {
            ClaimKey::Ipv4(addr) => (u64::from(addr.to_bits()), 1),
            ClaimKey::Ipv6Net(net) => (net, 2),
            ClaimKey::Site(site) => (site.number(), 3),
            ClaimKey::Group(slot) => (slot, 4),
            ClaimKey::Host(host) => (host, 5),
        }
    }
}

impl From<IpAddr> for ClaimKey {
    fn from(addr: IpAddr) -> ClaimKey {
        match addr.to_canonical() {
            IpAddr::V4(v4) => ClaimKey::Ipv4(v4),
            IpAddr::V6(v6) => behind_nat64(v6).map_or(ClaimKey::Ipv6Net((v6.to_bits() >> 64) as u64), ClaimKey::Ipv4),
        }
    }
}

/// The address behind 64:ff9b::/96.
fn behind_nat64(addr: Ipv6Addr) -> Option<Ipv4Addr> {
    const PREFIX: u128 = 0x0064_ff9b << 96;
    let bits = addr.to_bits();
    (bits & !u128::from(u32::MAX) == PREFIX).then(|| Ipv4Addr::from_bits(bits as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_one_key() {
        let key = |text: &str| ClaimKey::from(text.parse::<IpAddr>().expect("address"));
        let v4 = ClaimKey::Ipv4(Ipv4Addr::new(192, 0, 2, 1));
        for same in ["192.0.2.1", "::ffff:192.0.2.1", "64:ff9b::192.0.2.1"] {
            assert_eq!(key(same), v4, "{same}");
        }
        assert_eq!(key("2001:db8:1:2::1"), key("2001:db8:1:2:ffff::"));
        assert_ne!(key("2001:db8:1:2::1"), key("2001:db8:1:3::1"));
        assert_ne!(key("64:ff9b:1::192.0.2.1"), v4);
        let kinds = [key("0.0.0.7"), ClaimKey::Ipv6Net(7), ClaimKey::Group(7), ClaimKey::Host(7)];
        assert_eq!(kinds.map(|key| key.parts()), [(7, 1), (7, 2), (7, 4), (7, 5)]);
        let site = SiteKey::of_host(7, "a.test");
        assert_eq!(ClaimKey::Site(site).parts(), (site.number(), 3));
    }
}
