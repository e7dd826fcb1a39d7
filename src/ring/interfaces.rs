//! The addresses of this machine's network interfaces.
//!
//! Limits: the process's network namespace only; an address that a router translates to one of them is not known
//! here.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ptr;

/// Every address of every interface, up or down, in no order. This queries the kernel by netlink, which a filter may
/// forbid.
pub fn interface_addresses() -> io::Result<Vec<IpAddr>> {
    let mut list: *mut libc::ifaddrs = ptr::null_mut();
    // SAFETY: getifaddrs(3) writes one pointer to the address given.
    if unsafe { libc::getifaddrs(&raw mut list) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut addresses = Vec::new();
    let mut next = list;
    // SAFETY: the list stays as getifaddrs left it until it is freed, and ends in a null pointer.
    while let Some(interface) = unsafe { next.as_ref() } {
        next = interface.ifa_next;
        // SAFETY: an interface's address is null or a whole socket address, of the size of its family.
        addresses.extend(unsafe { address(interface.ifa_addr) });
    }
    // SAFETY: freed once, and not used afterwards.
    unsafe { libc::freeifaddrs(list) };
    Ok(addresses)
}

/// # Safety
/// `socket` is null or points to a whole socket address.
unsafe fn address(socket: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: each family is read as its own type, within the size that the caller guarantees.
    unsafe {
        match i32::from(socket.as_ref()?.sa_family) {
            libc::AF_INET => {
                let v4 = socket.cast::<libc::sockaddr_in>().read_unaligned();
                Some(Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr)).into())
            }
            libc::AF_INET6 => {
                let v6 = socket.cast::<libc::sockaddr_in6>().read_unaligned();
                Some(Ipv6Addr::from(v6.sin6_addr.s6_addr).into())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_there() {
        let addresses = interface_addresses().expect("netlink");
        assert!(addresses.contains(&Ipv4Addr::LOCALHOST.into()), "{addresses:?}");
    }
}
