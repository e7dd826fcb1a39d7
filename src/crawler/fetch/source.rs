//! Sockets before they connect: where they come from, and how large their buffers are.
//!
//! Decides: the addresses of `fetch.source_addresses` take turns, those of each family for peers of that family. If a
//! peer's family has none, the system chooses. The port is chosen at connect, not at bind, so one address serves more
//! connections than it has ports, as long as they lead to different peers (ip(7), IP_BIND_ADDRESS_NO_PORT).
//! Invariants: what this machine cannot do is reported at the start, with the key's name.

use std::cell::Cell;
use std::io;
use std::net::IpAddr;

use super::HandsError;
use ringcrawl_config::Fetch;
use ringcrawl_ring::{Socket, SocketOptions};

/// Creates sockets; one per shard.
pub(super) struct Sources {
    v4: Vec<IpAddr>,
    v6: Vec<IpAddr>,
    /// The next address, in both families.
    next: Cell<usize>,
    options: SocketOptions,
}

impl Sources {
    /// Checks and takes what the configuration asks for.
    pub(super) fn new(fetch: &Fetch) -> Result<Sources, HandsError> {
        let (v4, v6) = fetch.source_addresses.iter().partition(|ip| ip.is_ipv4());
        let options = SocketOptions {
            receive_bytes: fetch.receive_buffer_bytes,
            send_bytes: fetch.send_buffer_bytes,
            ports: fetch.source_port_range(),
        };
        let sources = Sources { v4, v6, next: Cell::new(0), options };
        for ip in &fetch.source_addresses {
            let tried = Socket::new(*ip).and_then(|socket| socket.prepare(&SocketOptions::default(), Some(*ip)));
            tried.map_err(|error| HandsError::Source(format!("source_addresses: {ip}: {error}")))?;
        }
        if options.ports.is_some() {
            let tried = Socket::new([127, 0, 0, 1].into()).and_then(|socket| socket.prepare(&options, None));
            tried.map_err(|error| HandsError::Source(format!("source_ports: {error} (Linux 6.3 is needed)")))?;
        }
        Ok(sources)
    }

    /// A socket that can connect to `to`.
    pub(super) fn socket(&self, to: IpAddr) -> io::Result<Socket> {
        let socket = Socket::new(to)?;
        socket.prepare(&self.options, self.source_for(to))?;
        Ok(socket)
    }

    fn source_for(&self, to: IpAddr) -> Option<IpAddr> {
        let addresses = if to.is_ipv4() { &self.v4 } else { &self.v6 };
        let turn = self.next.get().checked_rem(addresses.len())?;
        self.next.set(self.next.get().wrapping_add(1));
        addresses.get(turn).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_take_turns_within_their_family() {
        let address = |text: &str| text.parse::<IpAddr>().expect(text);
        let fetch = Fetch { source_addresses: vec![address("127.0.0.2"), address("127.0.0.3")], ..Fetch::default() };
        let sources = Sources::new(&fetch).map_err(|error| error.to_string()).expect("loopback has them");
        let turns: Vec<_> = (0..4).filter_map(|_| sources.source_for(address("192.0.2.1"))).collect();
        assert_eq!(turns, ["127.0.0.2", "127.0.0.3", "127.0.0.2", "127.0.0.3"].map(address));
        assert_eq!(sources.source_for(address("2001:db8::1")), None);
        assert_eq!(Sources::new(&Fetch::default()).ok().and_then(|none| none.source_for(address("192.0.2.1"))), None);
    }

    #[test]
    fn an_address_of_another_machine_is_told() {
        let fetch = Fetch { source_addresses: vec!["192.0.2.1".parse().expect("address")], ..Fetch::default() };
        let error = Sources::new(&fetch).err().expect("not ours").to_string();
        assert!(error.contains("fetch.source_addresses: 192.0.2.1"), "{error}");
    }
}
