//! The surroundings of a crawl on its machine: space on its disk, a default route, and addresses of its own.
//!
//! Decides: the first two are checked once a second; the addresses, which seldom change, once a minute. If a listing
//! fails, the last result stays.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::crawl_dir::shard_dir;
use super::segment_folders::SEGMENTS;
use crate::fetch::OwnAddresses;
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_ring as ring;

/// Watches the surroundings.
#[derive(Debug)]
pub struct Surroundings {
    dirs: Vec<PathBuf>,
    next_look: Instant,
    own_addresses: Arc<OwnAddresses>,
    next_listing: Instant,
    /// Bytes that can still be written to the fullest disk; `None`: unknown.
    pub free_bytes: Option<u64>,
    /// The first of `dirs` on that disk.
    fullest: Option<PathBuf>,
    /// Whether there is a default route, of either family.
    pub has_route: bool,
}

impl Surroundings {
    /// The surroundings of a crawl of `shards` shards in `root`; the machine's addresses go to `own_addresses`.
    pub fn new(root: &Path, shards: u16, own_addresses: Arc<OwnAddresses>) -> Surroundings {
        // A shard's directory may be a link to another disk, and so may its segments.
        let of_shard = |shard| [shard_dir(root, shard), shard_dir(root, shard).join(SEGMENTS)];
        let dirs = std::iter::once(root.to_owned()).chain((0..shards).flat_map(of_shard)).collect();
        Surroundings::of(dirs, own_addresses)
    }

    fn of(dirs: Vec<PathBuf>, own_addresses: Arc<OwnAddresses>) -> Surroundings {
        let (next_look, next_listing) = (Instant::ZERO, Instant::ZERO);
        Surroundings { dirs, next_look, own_addresses, next_listing, free_bytes: None, fullest: None, has_route: true }
    }

    /// Describes that less than `free_bytes_min` can still be written to the fullest disk. The first disk is that of
    /// the crawl's directory.
    pub fn shortage(&self, free_bytes_min: u64) -> String {
        let disk = match self.fullest.as_ref().filter(|dir| self.dirs.first() != Some(*dir)) {
            Some(dir) => format!("the disk of {}", dir.display()),
            None => "the disk".to_owned(),
        };
        let (free, min) = (self.free_bytes.unwrap_or(0) >> 20, free_bytes_min >> 20);
        format!("only {free} MiB are free on {disk}, less than store.free_bytes_min = {min} MiB")
    }

    /// Looks, if it is time.
    pub fn look(&mut self, now: Instant) {
        if now < self.next_look {
            return;
        }
        self.next_look = now + EVERY;
        self.look_at_disks();
        let read = |path: &str| std::fs::read_to_string(path).ok();
        // If neither can be read, a route is assumed.
        self.has_route = match (read("/proc/net/route"), read("/proc/net/ipv6_route")) {
            (None, None) => true,
            (v4, v6) => has_default_v4(&v4.unwrap_or_default()) || has_default_v6(&v6.unwrap_or_default()),
        };
        if now >= self.next_listing {
            self.next_listing = now + ADDRESSES_EVERY;
            if let Ok(addresses) = ring::interface_addresses() {
                self.own_addresses.set(addresses);
            }
        }
    }

    fn look_at_disks(&mut self) {
        let free = self.dirs.iter().filter_map(|dir| Some((ring::free_bytes(dir)?, dir)));
        let least = free.min_by_key(|(bytes, _)| *bytes);
        (self.free_bytes, self.fullest) = least.map(|(bytes, dir)| (bytes, dir.clone())).unzip();
    }
}

/// Why a crawl of `shards` shards in `root` waits for space, if one of its disks has less than `free_bytes_min`: in
/// words.
pub fn disk_shortage(root: &Path, shards: u16, free_bytes_min: u64) -> Option<String> {
    let mut around = Surroundings::new(root, shards, Arc::default());
    around.look_at_disks();
    around.free_bytes.is_some_and(|free| free < free_bytes_min).then(|| around.shortage(free_bytes_min))
}

/// Whether /proc/net/route (proc_net(5)) has a default route that is up.
fn has_default_v4(text: &str) -> bool {
    text.lines().skip(1).any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_up = fields.get(3).is_some_and(|flags| flag_up(flags));
        fields.get(1) == Some(&"00000000") && fields.get(7) == Some(&"00000000") && is_up
    })
}

/// Whether /proc/net/ipv6_route has one; that of the loopback device only says that nothing is reachable.
fn has_default_v6(text: &str) -> bool {
    text.lines().any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_everywhere = fields.first().is_some_and(|to| to.bytes().all(|digit| digit == b'0'));
        let is_up = fields.get(8).is_some_and(|flags| flag_up(flags));
        is_everywhere && fields.get(1) == Some(&"00") && is_up && fields.get(9).is_some_and(|device| *device != "lo")
    })
}

/// RTF_UP of linux/route.h.
fn flag_up(flags: &str) -> bool {
    u32::from_str_radix(flags, 16).is_ok_and(|flags| flags & 1 == 1)
}

const EVERY: Duration = Duration::from_secs(1);
const ADDRESSES_EVERY: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_routes() {
        let head = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n";
        let lan = "eth0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n";
        let default = "eth0\t00000000\t010011AC\t0003\t0\t0\t0\t00000000\t0\t0\t0\n";
        assert!(!has_default_v4("") && !has_default_v4(head) && !has_default_v4(&format!("{head}{lan}")));
        assert!(has_default_v4(&format!("{head}{lan}{default}")));
        assert!(!has_default_v4(&format!("{head}{}", default.replace("0003", "0002"))), "it is down");
        let zeros = "0".repeat(32);
        let route = |to: &str, bits: &str, flags: &str, device: &str| {
            format!("{to} {bits} {zeros} 00 {zeros} 00000400 00000001 00000000 {flags} {device}\n")
        };
        assert!(has_default_v6(&route(&zeros, "00", "00000003", "eth0")));
        assert!(!has_default_v6(&route(&zeros, "00", "00200201", "lo")), "unreachable");
        assert!(!has_default_v6(&route(&format!("fe80{}", "0".repeat(28)), "40", "00000001", "eth0")));
        assert!(!has_default_v6("short\n") && !has_default_v6(&route(&zeros, "00", "00000002", "eth0")));
    }

    #[test]
    fn this_machine_is_looked_at_once_a_second() {
        let own = Arc::new(OwnAddresses::default());
        let mut around = Surroundings::of(vec!["/".into(), "/proc".into(), "/nowhere".into()], Arc::clone(&own));
        around.look(Instant::ZERO);
        assert!(around.free_bytes.is_some());
        let loopback = "127.0.0.1".parse().expect("an address");
        assert!(own.listed().contains(&loopback));
        own.set(vec![]);
        around.look(Instant::ZERO + ADDRESSES_EVERY / 2);
        assert!(own.listed().is_empty());
        around.look(Instant::ZERO + ADDRESSES_EVERY);
        assert!(own.listed().contains(&loopback));
        let mut around = Surroundings::of(vec!["/".into(), "/proc".into(), "/nowhere".into()], own);
        around.look(Instant::ZERO);
        around.free_bytes = None;
        around.look(Instant::ZERO + EVERY / 2);
        assert_eq!(around.free_bytes, None);
        around.look(Instant::ZERO + EVERY);
        assert_eq!(around.free_bytes, Some(0), "proc(5) has none, and the least counts");
        let of = |disk: &str| format!("only 0 MiB are free on {disk}, less than store.free_bytes_min = 32 MiB");
        assert_eq!(around.shortage(32 << 20), of("the disk of /proc"));
        let mut around = Surroundings::of(vec!["/".into(), "/".into()], Arc::default());
        around.look(Instant::ZERO);
        around.free_bytes = Some(0);
        assert_eq!(around.shortage(32 << 20), of("the disk"), "which is the first one");
    }
}
