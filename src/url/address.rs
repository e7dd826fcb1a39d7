//! Which IP addresses a public crawler may connect to.
//!
//! Decides: by the IANA IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890, RFC 8190 and the RFCs that added
//! rows), their column "Globally Reachable": a name in the public DNS may point to the operator's own network, and a
//! crawler that follows it reads pages that strangers must not see. Not in the registries but not global either:
//! multicast, site-local (RFC 3879), and all of IPv6 outside 2000::/3, which is unassigned. An IPv6 address that
//! carries the IPv4 address of its real destination (NAT64, 6to4) is only as global as that one.
//!
//! Invariants: total; every address has exactly one class.
//! Leaves to others: what the operator permits (`config::PrivateAddresses`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How far an address reaches.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum AddressClass {
    /// Globally reachable unicast.
    Global,
    /// This machine.
    Loopback,
    /// Everything else: private, link-local, documentation, multicast, reserved, …
    Special,
}

/// The class of an address.
pub fn address_class(address: IpAddr) -> AddressClass {
    match address {
        IpAddr::V4(v4) => class_v4(v4),
        IpAddr::V6(v6) => class_v6(v6),
    }
}

fn class_v4(address: Ipv4Addr) -> AddressClass {
    let bits = u32::from(address);
    let within = |&(network, prefix): &([u8; 4], u32)| (bits ^ u32::from_be_bytes(network)) >> (32 - prefix) == 0;
    if address.is_loopback() {
        AddressClass::Loopback
    } else if GLOBAL_V4.iter().any(within) {
        AddressClass::Global
    } else if SPECIAL_V4.iter().any(within) {
        AddressClass::Special
    } else {
        AddressClass::Global
    }
}

fn class_v6(address: Ipv6Addr) -> AddressClass {
    let bits = u128::from(address);
    let within =
        |&(network, prefix): &([u16; 8], u32)| (bits ^ u128::from(Ipv6Addr::from(network))) >> (128 - prefix) == 0;
    // The kernel sends these as IPv4. The registry calls them not global, but loopback is loopback.
    if let Some(v4) = address.to_ipv4_mapped() {
        return if v4.is_loopback() { AddressClass::Loopback } else { AddressClass::Special };
    }
    if address.is_loopback() {
        return AddressClass::Loopback;
    }
    if let Some(v4) = carried_v4(address.into()) {
        // The loopback of a translator far away is not ours.
        let is_global = class_v4(v4) == AddressClass::Global;
        return if is_global { AddressClass::Global } else { AddressClass::Special };
    }
    if GLOBAL_V6.iter().any(within) {
        AddressClass::Global
    } else if SPECIAL_V6.iter().any(within) || !within(&GLOBAL_UNICAST) {
        AddressClass::Special
    } else {
        AddressClass::Global
    }
}

/// The IPv4 address that an IPv6 address stands for, or carries to a translator or a relay.
pub fn carried_v4(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(v6) = address else { return None };
    let bits = u128::from(v6);
    let within =
        |(network, prefix): ([u16; 8], u32)| (bits ^ u128::from(Ipv6Addr::from(network))) >> (128 - prefix) == 0;
    if within(NAT64) {
        Some(Ipv4Addr::from(bits as u32))
    } else if within(SIX_TO_FOUR) {
        Some(Ipv4Addr::from((bits >> 80) as u32))
    } else {
        v6.to_ipv4_mapped()
    }
}

/// Rows of the IPv4 registry that are not globally reachable, and multicast.
const SPECIAL_V4: [([u8; 4], u32); 15] = [
    ([0, 0, 0, 0], 8),       // "this network", RFC 791
    ([10, 0, 0, 0], 8),      // private use, RFC 1918
    ([100, 64, 0, 0], 10),   // shared address space, RFC 6598
    ([127, 0, 0, 0], 8),     // loopback, RFC 1122
    ([169, 254, 0, 0], 16),  // link local, RFC 3927
    ([172, 16, 0, 0], 12),   // private use, RFC 1918
    ([192, 0, 0, 0], 24),    // IETF protocol assignments, RFC 6890
    ([192, 0, 2, 0], 24),    // documentation, RFC 5737
    ([192, 88, 99, 0], 24),  // 6to4 relay anycast, deprecated, RFC 7526
    ([192, 168, 0, 0], 16),  // private use, RFC 1918
    ([198, 18, 0, 0], 15),   // benchmarking, RFC 2544
    ([198, 51, 100, 0], 24), // documentation, RFC 5737
    ([203, 0, 113, 0], 24),  // documentation, RFC 5737
    ([224, 0, 0, 0], 4),     // multicast, RFC 5771
    ([240, 0, 0, 0], 4),     // reserved, RFC 1112; limited broadcast, RFC 8190
];

/// Globally reachable rows inside those.
const GLOBAL_V4: [([u8; 4], u32); 2] = [
    ([192, 0, 0, 9], 32),  // Port Control Protocol anycast, RFC 7723
    ([192, 0, 0, 10], 32), // TURN anycast, RFC 8155
];

const GLOBAL_UNICAST: ([u16; 8], u32) = ([0x2000, 0, 0, 0, 0, 0, 0, 0], 3); // RFC 4291 section 2.4
const NAT64: ([u16; 8], u32) = ([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96); // RFC 6052
const SIX_TO_FOUR: ([u16; 8], u32) = ([0x2002, 0, 0, 0, 0, 0, 0, 0], 16); // RFC 3056

/// Rows of the IPv6 registry inside 2000::/3 that are not globally reachable; the others are outside it.
const SPECIAL_V6: [([u16; 8], u32); 3] = [
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23), // IETF protocol assignments with Teredo, RFC 2928, RFC 4380
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32), // documentation, RFC 3849
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20), // documentation, RFC 9637
];

/// Globally reachable rows inside those.
const GLOBAL_V6: [([u16; 8], u32); 7] = [
    ([0x2001, 1, 0, 0, 0, 0, 0, 1], 128),    // Port Control Protocol anycast, RFC 7723
    ([0x2001, 1, 0, 0, 0, 0, 0, 2], 128),    // TURN anycast, RFC 8155
    ([0x2001, 1, 0, 0, 0, 0, 0, 3], 128),    // DNS-SD service registration anycast, RFC 9665
    ([0x2001, 3, 0, 0, 0, 0, 0, 0], 32),     // AMT, RFC 7450
    ([0x2001, 4, 0x112, 0, 0, 0, 0, 0], 48), // AS112-v6, RFC 7535
    ([0x2001, 0x20, 0, 0, 0, 0, 0, 0], 28),  // ORCHIDv2, RFC 7343
    ([0x2001, 0x30, 0, 0, 0, 0, 0, 0], 28),  // drone remote identification, RFC 9374
];

#[cfg(test)]
mod tests {
    use super::*;
    use AddressClass::{Global, Loopback, Special};

    /// First and last address of each row, and the neighbours.
    #[test]
    fn registry() {
        for (class, texts) in [
            (
                Global,
                "1.0.0.0 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 \
                 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.0.0.9 192.0.0.10 192.0.1.0 192.0.3.0 \
                 192.31.196.1 192.52.193.1 192.167.255.255 192.169.0.0 192.175.48.1 198.17.255.255 198.20.0.0 \
                 203.0.114.0 223.255.255.255",
            ),
            (
                Global,
                "64:ff9b::8.8.8.8 2001:1::1 2001:1::2 2001:1::3 2001:3::1 2001:4:112::1 2001:20::1 2001:2f::1 \
                 2001:30::1 2001:200::1 2001:db7::1 2001:db9::1 2001:4860:4860::8888 2002:808:808::1 2003::1 \
                 2620:4f:8000::1 3ffe::1 3fff:1000::1",
            ),
            (Loopback, "127.0.0.1 127.255.255.255"),
            (Loopback, "::1 ::ffff:127.0.0.1"),
            (
                Special,
                "0.255.255.255 10.0.0.0 10.255.255.255 100.64.0.0 100.127.255.255 169.254.169.254 172.16.0.0 \
                 172.31.255.255 192.0.0.8 192.0.0.170 192.0.2.1 192.88.99.1 192.168.0.1 198.18.0.0 \
                 198.19.255.255 198.51.100.7 203.0.113.7 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255",
            ),
            (
                Special,
                ":: ::2 ::127.0.0.1 ::8.8.8.8 ::ffff:10.0.0.1 ::ffff:8.8.8.8 64:ff9b::10.0.0.1 \
                 64:ff9b::127.0.0.1 64:ff9b:1::8.8.8.8 100::1 100:0:0:1::1 2001::1 2001:1::4 2001:2::1 \
                 2001:4:113::1 2001:10::1 2001:1ff:ffff::1 2001:db8::1 2002:a00:1::1 2002:7f00:1::1 \
                 2002:c0a8:101::1 3fff::1 3fff:fff::1 4000::1 5f00::1 fc00::1 fdff::1 fe80::1 fec0::1 ff02::1",
            ),
        ] {
            for text in texts.split_whitespace() {
                assert_eq!(address_class(text.parse().unwrap()), class, "{text}");
            }
        }
    }
}
