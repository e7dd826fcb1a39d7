//! The machine's own addresses, also those that the whole world can reach: no crawl fetches from them by default.
//!
//! Decides: a network of its own (`unshare --net`), in which an address of the public Internet is this machine's; it is
//! left with the namespace, and nothing is sent anywhere.

use std::process::Command;

use ringcrawl_base::TempFolder;

use crate::rig::program::{Process, RINGCRAWL};
use crate::rig::skip;

/// A crawl of two addresses where nobody listens, one of each family; the counts of its failures.
fn failures(folder: &TempFolder, policy: &str) -> Option<serde_json::Value> {
    let config = folder.file(
        "config.toml",
        "agent.name = \"test\"\nagent.url = \"http://a.test/\"\nagent.email = \"a@a.test\"\ncrawl.shards = 1\n\
         politeness.retries_max = 0\nrobots.retries_max = 0\nrobots.retry_delay = \"1s\"\noutage.sites_failed = 1000\n\
         outage.sites = 1000\n",
    );
    let line = format!(
        "ip link set lo up && ip address add 93.184.216.34/32 dev lo && \
         ip -6 address add 2606:2800:220:1::5/128 dev lo nodad && \
         ip route add default dev lo || exit 77\n\
         exec '{RINGCRAWL}' crawl http://93.184.216.34/ 'http://[2606:2800:220:1::5]/' 'http://[64:ff9b::5db8:d822]/' \
         --dir '{}' -c '{config}' --json - --time-max 60s --set fetch.private_addresses={policy}",
        folder.at(policy)
    );
    let mut command = Command::new("unshare");
    let ended = Process::start(command.args(["--net", "--map-root-user", "sh", "-c", &line])).end();
    if ended.code == 77 || ended.err.starts_with("unshare: ") {
        skip(&format!("no network of its own: {}", ended.err));
        return None;
    }
    // Without a page from any seed it ends with 3.
    let json = ended.json();
    assert_eq!(ended.code, if json["pages"] == 0 { 3 } else { 0 }, "{ended:?}");
    Some(json["failures"].clone())
}

#[test]
fn nothing_is_fetched_from_the_machine_s_own_addresses() {
    let folder = TempFolder::new("own-addresses");
    let (Some(denied), Some(allowed)) = (failures(&folder, "deny"), failures(&folder, "allow")) else { return };
    assert_eq!(denied["address-forbidden"], 3, "{denied}");
    // They can be reached, but for the translator's, which has no route.
    assert_eq!(allowed["address-forbidden"], 0, "{allowed}");
}
