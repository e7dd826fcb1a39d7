//! URLs on disk cost memory, too: the places of their blocks.

use super::*;

/// Sends URLs of 600 bytes, of this host; each makes a block where memory is short.
fn receive(rig: &mut Rig, host: &str, batches: std::ops::Range<u64>) {
    for number in batches {
        let urls: Vec<String> =
            (0..100).map(|url| format!("http://{host}/{number}/{url}/{}", "x".repeat(600))).collect();
        rig.receive(number, &urls.iter().map(String::as_str).collect::<Vec<&str>>());
        rig.run(Instant::ZERO);
    }
}

#[test]
fn places_of_blocks_are_bounded_and_leave_room_for_other_hosts() {
    let mut rig = Rig::new(config(|config| config.frontier.ram_bytes_max = 0), Logs::new());
    let hosts: Vec<String> = names(0).take(2).collect();
    receive(&mut rig, &hosts[0], 1..61);
    let (blocks, (queued, _), set_aside) = (rig.blocks.len() as u64, rig.counts(), rig.shard.stats().set_aside);
    assert!((4_000..=4_096).contains(&blocks), "{blocks} blocks");
    assert!(set_aside > 1_000 && queued + set_aside == 6_000, "{queued} queued, {set_aside} set aside");
    receive(&mut rig, &hosts[1], 61..62);
    let more = (rig.blocks.len() as u64 - blocks, rig.counts().0 - queued);
    assert!((1..=2).contains(&more.0) && (1..=3).contains(&more.1), "another host has its first ones: {more:?}");
}

/// A site with any number of hosts fills its share of the table; its other URLs wait on disk for room.
#[test]
fn urls_whose_hosts_find_no_room_leave_half_of_the_places() {
    let change = |config: &mut Config| (config.frontier.ram_bytes_max, config.frontier.hosts_max) = (0, 64);
    let mut rig = Rig::new(config(change), Logs::new());
    let hosts: Vec<String> = names(0).take(2).collect();
    receive(&mut rig, &hosts[1], 1..2);
    for number in 2..62 {
        let urls: Vec<String> =
            (0..100).map(|url| format!("http://h{number}x{url}.{}/{}", hosts[0], "x".repeat(600))).collect();
        rig.receive(number, &urls.iter().map(String::as_str).collect::<Vec<&str>>());
        rig.run(Instant::ZERO);
    }
    let (blocks, queued, set_aside) = (rig.blocks.len(), rig.counts().0, rig.shard.stats().set_aside);
    assert!((1_500..=2_200).contains(&blocks) && set_aside > 3_000, "{blocks} blocks, {set_aside} set aside");
    receive(&mut rig, &hosts[1], 62..63);
    assert_eq!(rig.counts().0 - queued, 100, "a host of another site with URLs on disk");
}
