//! A control group of one process, with a bound on what it may hold in memory.
//!
//! Decides: what goes over the bound is killed by the kernel, which counts that. The bound also covers what the kernel holds
//! for the process and the files it wrote that are not on the disk yet; those that are can be dropped and do not count.
//! A limit of address space would be none of memory: what is reserved and never touched would count, too.
//! Limits: it takes a user who may make groups, under either version of them; others get `None`.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::program::{Process, RINGCRAWL};

/// Removed when this value goes; its process must have ended by then.
pub struct MemoryGroup {
    folder: PathBuf,
    is_second: bool,
}

impl MemoryGroup {
    /// A group that may hold `bytes`, below this process's own or the nearest one above where that is allowed.
    pub fn new(bytes: u64) -> Option<MemoryGroup> {
        let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        // `4:memory:/a/b` of the first version, `0::/a/b` of the second.
        let (root, path, is_second) = own.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            let is_first = controllers.split(',').any(|name| name == "memory");
            let has_second = || controllers.is_empty() && Path::new("/sys/fs/cgroup/cgroup.controllers").exists();
            match is_first {
                true => Some(("/sys/fs/cgroup/memory", path.to_owned(), false)),
                false => has_second().then(|| ("/sys/fs/cgroup", path.to_owned(), true)),
            }
        })?;
        let own = PathBuf::from(format!("{root}{path}"));
        // In the second version a group that has processes has no groups with bounds in it.
        let parents = own.ancestors().take_while(|folder| folder.starts_with(root));
        parents.take(if is_second { usize::MAX } else { 1 }).find_map(|parent| {
            let folder = parent.join(format!("ringcrawl-test-{}", std::process::id()));
            std::fs::create_dir(&folder).ok()?;
            let group = MemoryGroup { folder, is_second };
            group.set(if is_second { "memory.max" } else { "memory.limit_in_bytes" }, bytes)?;
            // Nothing may hide on a swap device; where there is none, there is no such file either.
            let _ = group.set(if is_second { "memory.swap.max" } else { "memory.swappiness" }, 0);
            group.admits().then_some(group)
        })
    }

    /// The program in the group from its first instruction.
    pub fn start(&self, arguments: &[&str]) -> Process {
        Process::start(self.inside(RINGCRAWL).args(arguments))
    }

    /// How often the kernel killed a process for what it held.
    pub fn kills(&self) -> u64 {
        self.number_after(if self.is_second { "memory.events" } else { "memory.oom_control" }, "oom_kill ")
    }

    /// Most that was held at once, with what the kernel could have dropped.
    pub fn bytes_max(&self) -> u64 {
        self.number_after(if self.is_second { "memory.peak" } else { "memory.max_usage_in_bytes" }, "")
    }

    fn inside(&self, program: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", "echo $$ >\"$0\" && exec \"$@\""]).arg(self.folder.join("cgroup.procs")).arg(program);
        command
    }

    fn admits(&self) -> bool {
        self.inside("true").status().is_ok_and(|status| status.success())
    }

    fn set(&self, file: &str, value: u64) -> Option<()> {
        std::fs::write(self.folder.join(file), value.to_string()).ok()
    }

    fn number_after(&self, file: &str, name: &str) -> u64 {
        let text = std::fs::read_to_string(self.folder.join(file)).unwrap_or_default();
        text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap_or_default()
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // A process that has just ended may still be counted.
        for _ in 0..100 {
            if std::fs::remove_dir(&self.folder).is_ok() || !self.folder.exists() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}
