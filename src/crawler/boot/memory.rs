//! How much memory a crawl may use: what its configuration says, or what is available.
//!
//! Decides: what is available is the machine's memory, or less if a control group (version 1 or 2, and those above
//! it) or the address space limit (`ulimit -v`) says so. A crawl takes three quarters of that: the rest is for the
//! kernel's sockets, the page cache and other programs. A configuration that asks for more than is available is an
//! error.
//! Limits: a control group whose files are not mounted where systemd and Docker mount them is not seen.

use std::fs;
use std::path::{Path, PathBuf};

use ringcrawl_brain::memory_budget::MemoryBudget;
use ringcrawl_brain::route::Partition;
use ringcrawl_config::{Balance, Config};

/// The memory budget of a crawl of `config` on the shards of `partition`, whose table is taken from it;
/// `bounds_sites` if seeds limit what sites cost. The operator can fix an error.
pub fn memory_budget(config: &Config, partition: &Partition, bounds_sites: bool) -> Result<MemoryBudget, String> {
    let all = bytes(config)?;
    // More sites may move than have so far.
    let levels = if config.partition.balance == Balance::Sites { config.partition.ram_bytes_max } else { 0 };
    let sites = partition.ram_bytes().max(levels);
    MemoryBudget::new(config, partition.shards(), all.saturating_sub(sites), bounds_sites).map_err(|error| {
        match sites >> 20 {
            0 => error.to_string(),
            sites => {
                format!("{error}; {sites} of {} MiB hold the assignment of sites (partition.ram_bytes_max)", all >> 20)
            }
        }
    })
}

/// Whether there is room for a table as large as the configuration says, before it is created.
pub fn check_sites_table(config: &Config) -> Result<(), String> {
    let (wanted, all) = (config.partition.ram_bytes_max, bytes(config)?);
    if wanted < all {
        return Ok(());
    }
    let [wanted, all] = [wanted, all].map(|bytes| bytes >> 20);
    Err(format!("partition.ram_bytes_max: {wanted} MiB, but the crawl may use only {all} MiB in all; expected less"))
}

/// Bytes that a crawl may use.
fn bytes(config: &Config) -> Result<u64, String> {
    let there = bytes_there(Path::new("/"));
    Ok(match (config.crawl.ram_bytes_max, there) {
        (0, Some((there, _))) => there / 4 * 3,
        // The limit is unknown: no key is lowered.
        (0, None) => u64::MAX >> 1,
        (wanted, Some((there, whose))) if wanted > there => {
            let [wanted, there] = [wanted, there].map(|bytes| bytes >> 20);
            return Err(format!(
                "crawl.ram_bytes_max: {wanted} MiB exceed the {there} MiB that {whose} allows; expected less, or \"0B\""
            ));
        }
        (wanted, _) => wanted,
    })
}

/// The least of the limits on this process's memory, in bytes, and its source; `root` is "/".
fn bytes_there(root: &Path) -> Option<(u64, &'static str)> {
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
    let machine = field(&read("proc/meminfo"), "MemTotal:").map(|kib| kib << 10);
    let space = field(&read("proc/self/limits"), "Max address space").filter(|bytes| *bytes < NO_LIMIT);
    let group = group_files(&read("proc/self/cgroup"))
        .iter()
        .filter_map(|path| fs::read_to_string(root.join(path)).ok()?.trim().parse().ok())
        .filter(|bytes| (1..NO_LIMIT).contains(bytes))
        .min();
    // Stacks and mapped files count as address space, too.
    let space = space.map(|bytes| bytes.saturating_sub(OTHER_SPACE));
    let all = [
        (machine, MACHINE),
        (group, "the control group (memory.max)"),
        (space, "the limit of address space (ulimit -v)"),
    ];
    all.into_iter().filter_map(|(bytes, whose)| Some((bytes?, whose))).min()
}

/// The note for the operator if other crawls run on this machine, each of which may take as much memory as if it were
/// alone.
pub(super) fn crowd_note(config: &Config) -> Option<String> {
    crowd_note_in(Path::new("/"), config, std::process::id())
}

fn crowd_note_in(root: &Path, config: &Config, own: u32) -> Option<String> {
    let (_, whose) = bytes_there(root)?;
    // A control group of its own bounds what the crawl takes, and so does an explicit setting.
    if config.crawl.ram_bytes_max > 0 || whose != MACHINE {
        return None;
    }
    let others = other_crawls(root, own);
    let first = others.first()?;
    let more = if others.len() > 1 { format!(" and {} more", others.len() - 1) } else { String::new() };
    Some(format!(
        "memory: another crawl runs on this machine (process {first}{more}), and each takes up to three quarters of its memory by default; set crawl.ram_bytes_max for each"
    ))
}

/// Processes that are crawls, except `own`.
fn other_crawls(root: &Path, own: u32) -> Vec<u32> {
    let is_crawl = |process: &u32| {
        let read = |file: &str| fs::read(root.join(format!("proc/{process}/{file}"))).unwrap_or_default();
        let is_ours = read("comm").trim_ascii_end() == b"ringcrawl";
        is_ours && read("cmdline").split(|byte| *byte == 0).nth(1).is_some_and(|command| command == b"crawl")
    };
    let names = fs::read_dir(root.join("proc")).into_iter().flatten().flatten();
    let processes = names.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut others: Vec<u32> = processes.filter(|process| *process != own).filter(is_crawl).collect();
    others.sort_unstable();
    others
}

/// The number that follows `name`.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

/// Files that may bound a process with this `cgroup` as its /proc/self/cgroup: those of its own group and of the
/// groups above.
fn group_files(cgroup: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in cgroup.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else { continue };
        let (mounts, names): (&[&str], &[&str]) = match controllers {
            "" => (&["sys/fs/cgroup", "sys/fs/cgroup/unified"], &["memory.max", "memory.high"]),
            _ if controllers.split(',').any(|name| name == "memory") => {
                (&["sys/fs/cgroup/memory"], &["memory.limit_in_bytes"])
            }
            _ => continue,
        };
        for (mount, above) in mounts.iter().flat_map(|mount| {
            let group = Path::new(group.trim_start_matches('/'));
            group.ancestors().map(move |above| (mount, above))
        }) {
            files.extend(names.iter().map(|name| Path::new(mount).join(above).join(name)));
        }
    }
    files
}

/// The limit on memory where there is no other.
const MACHINE: &str = "the machine's memory";
/// Kernels write "no limit" as a number near 2^63 (version 1), or as a word.
const NO_LIMIT: u64 = 1 << 62;
const OTHER_SPACE: u64 = 256 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crawls_that_share_a_machine_are_told_of_each_other() {
        let folder = ringcrawl_base::TempFolder::new("crowd");
        let root = folder.path();
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let mut config = Config::default();
        let note = |config: &Config| crowd_note_in(root, config, 7);
        write("proc/meminfo", "MemTotal:       4194304 kB\n");
        for (process, comm, cmdline) in [
            (7, "ringcrawl", "ringcrawl\0crawl\0--dir\0own\0"),
            (8, "ringcrawl", "./ringcrawl\0why\0crawl\0"),
            (9, "crawl", "crawl\0crawl\0"),
        ] {
            write(&format!("proc/{process}/comm"), &format!("{comm}\n"));
            write(&format!("proc/{process}/cmdline"), cmdline);
        }
        assert_eq!(note(&config), None, "none of them is another crawl");
        for process in [12, 10, 11] {
            write(&format!("proc/{process}/comm"), "ringcrawl\n");
            write(&format!("proc/{process}/cmdline"), "/usr/bin/ringcrawl\0crawl\0");
        }
        let told = note(&config).expect("others");
        assert!(told.contains("(process 10 and 2 more)") && told.contains("crawl.ram_bytes_max"), "{told}");
        config.crawl.ram_bytes_max = 1 << 30;
        assert_eq!(note(&config), None, "it is told how much it may take");
        config.crawl.ram_bytes_max = 0;
        write("proc/self/cgroup", "0::/a\n");
        write("sys/fs/cgroup/a/memory.max", "2147483648\n");
        assert_eq!(note(&config), None, "its group bounds it");
    }

    #[test]
    fn the_least_bound_counts() {
        let folder = ringcrawl_base::TempFolder::new("memory");
        let root = folder.path();
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert_eq!(bytes_there(root), None);
        write("proc/meminfo", "MemTotal:       4194304 kB\nMemFree: 1 kB\n");
        assert_eq!(bytes_there(root), Some((4 << 30, "the machine's memory")));
        write("proc/self/cgroup", "4:memory:/a/b\n2:cpu,cpuacct:/\n0::/system.slice/crawl.service\n");
        write("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(bytes_there(root), Some((4 << 30, "the machine's memory")));
        write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "3221225472\n");
        assert_eq!(bytes_there(root), Some((3 << 30, "the control group (memory.max)")));
        write("sys/fs/cgroup/system.slice/crawl.service/memory.max", "max\n");
        write("sys/fs/cgroup/system.slice/crawl.service/memory.high", "2147483648\n");
        assert_eq!(bytes_there(root), Some((2 << 30, "the control group (memory.max)")));
        let limits = "Limit  Soft Limit  Hard Limit  Units\nMax address space         1342177280           unlimited     bytes\n";
        write("proc/self/limits", limits);
        assert_eq!(bytes_there(root), Some((1 << 30, "the limit of address space (ulimit -v)")));
    }

    #[test]
    fn more_than_there_is_is_a_mistake() {
        let mut config = Config::default();
        config.crawl.ram_bytes_max = 1 << 50;
        let error = memory_budget(&config, &Partition::by_site(1), false).unwrap_err();
        assert!(error.starts_with("crawl.ram_bytes_max: 1073741824 MiB exceed "), "{error}");
        config.crawl.ram_bytes_max = 256 << 20;
        config.partition.ram_bytes_max = 256 << 20;
        let error = check_sites_table(&config).unwrap_err();
        assert!(error.starts_with("partition.ram_bytes_max: 256 MiB, but the crawl may use only 256 MiB"), "{error}");
        config.partition.ram_bytes_max = 200 << 20;
        assert_eq!(check_sites_table(&config), Ok(()));
        config.partition.balance = Balance::Sites;
        let error = memory_budget(&config, &Partition::by_site(2), false).unwrap_err();
        assert!(error.ends_with("; 200 of 256 MiB hold the assignment of sites (partition.ram_bytes_max)"), "{error}");
        config.partition.balance = Balance::Off;
        assert_eq!(memory_budget(&config, &Partition::by_site(1), false).unwrap().bytes(), 256 << 20);
    }
}
