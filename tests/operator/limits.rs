//! Limits of the system that are too low: each is named, with what raises it.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::rig::program::{Ended, Process, copy_program, is_root};
use crate::rig::skip;
use ringcrawl_base::TempFolder;

/// A crawl by another user than root, for whom limits hold, under `ulimit`; `None` where that cannot be had.
fn limited(name: &str, ulimit: &str, shards: &str) -> Option<Ended> {
    // A user for each test: servers of other tests run as nobody, and limits count all that a user runs.
    let user = 61_000 + name.bytes().map(u32::from).sum::<u32>();
    // The limit on processes is one that not every `sh` can set.
    if !is_root() || Command::new("bash").arg("--version").output().is_err() {
        skip("only root can run the program as another user, and bash sets its limits");
        return None;
    }
    let folder = TempFolder::new(name);
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).expect("permissions");
    let program = folder.at("ringcrawl");
    copy_program(&program);
    let line = format!("ulimit {ulimit}; exec \"$0\" \"$@\"");
    let mut command = Command::new("bash");
    command.args(["-c", &line, &program, "crawl", "http://127.0.0.1:8/", "--dir", &folder.at("crawl")]);
    command.args(["--shards", shards, "--set", "crawl.time_max=1s"]).uid(user).gid(user).current_dir("/");
    Some(Process::start(&mut command).end())
}

#[test]
fn too_few_threads() {
    for (limit, thread) in [(1, "signals"), (2, "shard-0")] {
        if let Some(ended) = limited("threads", &format!("-u {limit}"), "1") {
            let said = format!("the thread \"{thread}\" cannot be started: ");
            ended.expect(1).says(&[&said, "ulimit -u, TasksMax="]);
        }
    }
}

/// Shards that are there close when another cannot be started; none of them goes on in a directory that is nobody's.
#[test]
fn some_threads_and_not_all() {
    for limit in 4..=8 {
        if let Some(ended) = limited(&format!("threads-{limit}"), &format!("-u {limit}"), "4") {
            ended.expect(1).says(&["Resource temporarily unavailable"]);
        }
    }
}

#[test]
fn too_little_locked_memory() {
    let Some(ended) = limited("memlock", "-l 64", "4") else { return };
    if ended.code == 0 {
        skip("this kernel does not count a ring's memory as locked");
        return;
    }
    ended.expect(1).says(&["no memory for io_uring", "RLIMIT_MEMLOCK (ulimit -l, LimitMEMLOCK=)"]);
}
