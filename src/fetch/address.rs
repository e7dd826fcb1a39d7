//! Whether an address may be connected to.
//!
//! Decides: asked at connect time with the address itself, not with the name before: a name may answer
//! with another address each time it is asked (DNS rebinding), and a private one may belong to machines
//! that trust their neighbours.
//! Invariants: an IPv6 address that carries an IPv4 address is judged as that one.
//! Limits: the ranges of the IANA special-purpose registries (RFC 6890) that are not globally reachable.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::config::PrivateAddresses;

/// Whether `addr` may be fetched from under `policy`.
pub fn allowed(addr: IpAddr, policy: PrivateAddresses) -> bool {
    let addr = match addr {
        IpAddr::V6(v6) => carried(v6).map_or(addr, IpAddr::V4),
        IpAddr::V4(_) => addr,
    };
    match policy {
        PrivateAddresses::Allow => true,
        PrivateAddresses::LoopbackOnly => addr.is_loopback(),
        PrivateAddresses::Loopback => addr.is_loopback() || is_global(addr),
        PrivateAddresses::Deny => is_global(addr),
    }
}

fn is_global(addr: IpAddr) -> bool {
    match addr {
        IpAddr::V4(v4) => is_global_v4(v4),
        IpAddr::V6(v6) => is_global_v6(v6),
    }
}

fn is_global_v4(addr: Ipv4Addr) -> bool {
    let [a, b, c, _] = addr.octets();
    let special = a == 0 // "this network", RFC 791
        || addr.is_loopback()
        || addr.is_private()
        || addr.is_link_local()
        || addr.is_documentation()
        || (a == 100 && (64..128).contains(&b)) // shared by carriers, RFC 6598
        || (a == 192 && b == 0 && c == 0) // protocol assignments, RFC 6890
        || (a == 198 && (18..20).contains(&b)) // benchmarks, RFC 2544
        || a >= 224; // multicast, reserved, broadcast
    !special
}

fn is_global_v6(addr: Ipv6Addr) -> bool {
    // Only 2000::/3 is global unicast (RFC 4291); 2001::/23 is for protocols, 2001:db8::/32 and 3fff::/20
    // are for documentation.
    let [a, b, ..] = addr.segments();
    (0x2000..0x4000).contains(&a) && !(a == 0x2001 && (b < 0x200 || b == 0xdb8)) && !(a == 0x3fff && b < 0x1000)
}

/// The IPv4 address that `addr` is a cover of: mapped (RFC 4291), translated (64:ff9b::/96, RFC 6052),
/// or of a 6to4 network (RFC 3056).
fn carried(addr: Ipv6Addr) -> Option<Ipv4Addr> {
    if let Some(mapped) = addr.to_ipv4_mapped() {
        return Some(mapped);
    }
    let split = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match addr.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(split(high, low)),
        [0x2002, high, low, ..] => Some(split(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use PrivateAddresses::{Allow, Deny, Loopback};

    #[test]
    fn special_addresses_are_forbidden() {
        let special = "0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 127.0.0.1 127.9.9.9 169.254.169.254 172.16.0.1 192.0.0.8 \
            192.0.2.1 192.168.1.1 198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1 240.0.0.1 255.255.255.255 :: ::1 \
            ::ffff:127.0.0.1 ::ffff:10.0.0.1 64:ff9b::a00:1 2002:7f00:1:: fe80::1 fc00::1 fd12::1 ff02::1 2001:db8::1 \
            2001::1 3fff::1";
        for text in special.split_whitespace() {
            let addr: IpAddr = text.parse().expect(text);
            assert!(!allowed(addr, Deny), "{text}");
            assert!(allowed(addr, Allow), "{text}");
            let loopback = matches!(text, "127.0.0.1" | "127.9.9.9" | "::1" | "::ffff:127.0.0.1" | "2002:7f00:1::");
            assert_eq!(allowed(addr, Loopback), loopback, "{text}");
        }
        for text in "1.1.1.1 8.8.8.8 100.63.0.1 100.128.0.1 172.32.0.1 193.0.0.1 198.20.0.1 223.1.1.1 2606:4700::1111 \
            2a00:1450::1 64:ff9b::808:808 ::ffff:8.8.8.8"
            .split_whitespace()
        {
            let addr: IpAddr = text.parse().expect(text);
            assert!(allowed(addr, Deny) && allowed(addr, Loopback) && allowed(addr, Allow), "{text}");
        }
    }
}
