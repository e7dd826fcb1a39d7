//! Whether an address may be connected to.
//!
//! Decides: the check is made at connect time with the address itself, not earlier with the name. A name may resolve
//! to another address each time it is looked up (DNS rebinding), and a private address may belong to machines that
//! trust their neighbours.
//! Invariants: under `deny`, only globally reachable addresses.
//! Leaves to others: which addresses those are (`url::address_class`), which of them are this machine's
//! (`own_addresses`).

use std::net::IpAddr;

use ringcrawl_config::PrivateAddresses;
use ringcrawl_url::{AddressClass, address_class};

/// Whether `addr` may be fetched from under `policy`.
pub fn allowed(addr: IpAddr, policy: PrivateAddresses) -> bool {
    let class = address_class(addr);
    match policy {
        PrivateAddresses::Deny => class == AddressClass::Global,
        PrivateAddresses::Loopback => class != AddressClass::Special,
        PrivateAddresses::LoopbackOnly => class == AddressClass::Loopback,
        PrivateAddresses::Allow => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use PrivateAddresses::{Allow, Deny, Loopback, LoopbackOnly};

    /// The result of each policy for one address of every class and for IPv4 addresses in IPv6 ones.
    #[test]
    fn policies() {
        let policies = [Deny, Loopback, LoopbackOnly, Allow];
        for (expected, texts) in [
            ([true, true, false, true], "1.1.1.1 2606:4700::1111 64:ff9b::8.8.8.8 2002:808:808::1"),
            ([false, true, true, true], "127.0.0.1 127.9.9.9 ::1 ::ffff:127.0.0.1"),
            (
                [false, false, false, true],
                "0.0.0.0 10.0.0.1 169.254.169.254 224.0.0.1 :: fe80::1 fd12::1 ::ffff:10.0.0.1 ::ffff:8.8.8.8 \
                 64:ff9b::10.0.0.1 64:ff9b::127.0.0.1 2002:7f00:1::1",
            ),
        ] {
            for text in texts.split_whitespace() {
                let addr: IpAddr = text.parse().expect(text);
                assert_eq!(policies.map(|policy| allowed(addr, policy)), expected, "{text}");
            }
        }
    }
}
