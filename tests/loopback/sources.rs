//! Where connections come from, as their peers see it.

use std::net::SocketAddr;

use crate::rig::hands::*;
use crate::rig::servers::*;

#[test]
fn addresses_take_turns_and_ports_keep_to_their_range() {
    let (addr, asked) = noting_server(|_| String::new());
    let config = config_with(
        "[fetch]\nsource_addresses = [\"127.0.0.2\", \"::1\", \"127.0.0.3\"]\nsource_ports = \"40000-40099\"\n\
         receive_buffer_bytes = \"64KiB\"\nsend_buffer_bytes = \"32KiB\"\n",
    );
    with_hands(&config, |hands| async move {
        let mut seen = Vec::new();
        for number in 0..4 {
            let url = format!("http://host{number}.example.test:{}/", addr.port());
            assert_eq!(get(&hands, &url).await.expect("exchange").response.body, b"ok");
            let peer: SocketAddr = last(&asked, "X-Peer").expect("noted").parse().expect("address");
            assert!((40_000..=40_099).contains(&peer.port()), "{peer}");
            seen.push(peer.ip().to_string());
        }
        assert_eq!(seen, ["127.0.0.2", "127.0.0.3", "127.0.0.2", "127.0.0.3"]);
        // A kept connection comes from where it came from.
        get(&hands, &format!("http://host0.example.test:{}/", addr.port())).await.expect("exchange");
        assert!(last(&asked, "X-Peer").is_some_and(|peer| peer.starts_with("127.0.0.2:")));
    });
}
