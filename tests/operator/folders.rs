//! Directories that must not be used: each refusal names the directory and leaves it as it was.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use ringcrawl_web::ModelConfig;

use crate::rig::program::{Ended, Process, copy_program, exists, is_root, run, start};
use crate::rig::skip;
use crate::rig::web::{self, web};
use ringcrawl_base::TempFolder;

/// An origin where nobody answers: a crawl of it ends at once, without a page.
const SEED: &str = "http://127.0.0.1:8/";

/// Runs `crawl` in the folder's `crawl`, which must stay as it is.
#[track_caller]
fn refused(folder: &TempFolder, arguments: &[&str], words: &[&str]) -> Ended {
    let before = folder.content("crawl");
    let dir = folder.at("crawl");
    let ended = run(&[&["crawl", SEED, "--dir", &dir], arguments].concat()).expect(2).says(&[&dir]).says(words);
    assert!(folder.content("crawl") == before, "{arguments:?} changed the directory");
    ended
}

/// A crawl of no page, so that there is a crawl.
fn begun(folder: &TempFolder, arguments: &[&str]) {
    let quick = ["--set", "robots.retries_max=0", "--set", "robots.retry_delay=1s"];
    let dir = folder.at("crawl");
    run(&[&["crawl", SEED, "--dir", &dir], &quick[..], arguments].concat()).expect(3);
}

#[test]
fn directories_of_others() {
    let folder = TempFolder::new("foreign");
    std::fs::create_dir(folder.at("crawl")).expect("a folder");
    folder.file("crawl/thesis.tex", "precious");
    refused(&folder, &[], &["is not empty and holds no crawl", "give an empty or a new directory"]);
    refused(&folder, &["--new"], &["is not empty"]);
    std::fs::remove_file(folder.at("crawl/thesis.tex")).expect("a file");
    for (manifest, word) in [
        (
            "{\"format\": 9, \"engine\": 3}",
            "the crawl is of format 9, begun by another version; this ringcrawl reads format 2",
        ),
        (
            "{\"format\": 1, \"created_by\": \"ringcrawl 0.1.0\", \"shards\": 1}",
            "of format 1, begun by ringcrawl 0.1.0",
        ),
        ("{\"format\": 2}", "damaged manifest"),
        ("{\"jobs\": []}", "(no format)"),
        ("", "damaged manifest"),
    ] {
        folder.file("crawl/crawl.json", manifest);
        refused(&folder, &[], &["crawl.json", word]);
    }
    // A file where a directory is wanted is left alone.
    let file = folder.file("file", "precious");
    run(&["crawl", SEED, "--dir", &file]).expect(2).says(&[&file, "is not a directory"]);
    run(&["crawl", SEED, "--dir", &format!("{file}/crawl")]).expect(2).says(&[&file, "Not a directory"]);
    assert_eq!(std::fs::read_to_string(&file).expect("the file"), "precious");
}

#[test]
fn crawls_begun_with_other_settings() {
    let folder = TempFolder::new("differs");
    begun(&folder, &["--shards", "2", "--set", "crawl.rng_seed=5"]);
    refused(&folder, &["--set", "partition.by=host-hash"], &["partition.by site-hash, and host-hash was asked for"]);
    refused(&folder, &["--set", "crawl.rng_seed=6"], &["crawl.rng_seed 5, and 6 was asked for"]);
    refused(&folder, &["--new"], &["already holds a crawl, but --new was given"]);
    // What was fixed needs not be said again, and may be.
    let dir = folder.at("crawl");
    run(&["crawl", "--new", "--dir", &dir]).expect(2).says(&[&dir, "already holds a crawl"]);
    run(&["crawl", SEED, "--dir", &dir]).expect(3);
    run(&["crawl", "--dir", &dir, "--shards", "2"]).expect(3);
    let moved = ["1 URLs of 2 shards redistributed to 3", "crawl.shards = 3 from now on, was 2"];
    run(&["crawl", "--dir", &dir, "--shards", "3"]).expect(3).says(&moved);
    // A directory that is gone is not made anew in silence: a disk may not be mounted.
    let gone = folder.at("crawl/shard-01");
    std::fs::remove_dir_all(&gone).expect("a folder");
    refused(&folder, &[], &["shard-01 is missing, and with it what that shard knew", "make an empty directory"]);
    run(&["urls", &dir]).expect(1).says(&["shard-01: the directory is missing"]);
    std::fs::create_dir(&gone).expect("a folder");
    run(&["crawl", "--dir", &dir])
        .expect(3)
        .says(&["shard-01 is empty: the crawl continues without what that shard knew"]);
}

#[test]
fn a_directory_that_another_crawl_holds() {
    let folder = TempFolder::new("locked");
    let (web, seed) = web(ModelConfig { endless: true, ..ModelConfig::default() });
    let (dir, config) = (folder.at("crawl"), web::config(&folder, &web, "crawl.shards = 1"));
    let arguments = ["crawl", &seed, "--dir", &dir, "-c", &config];
    let mut first = start(&arguments);
    first.wait_until("the first page", || web.report().requests > 2);
    run(&arguments).expect(2).says(&[&dir, "is in use by another ringcrawl", "lock"]);
    run(&["crawl", &seed, "--dir", &dir, "-c", &config, "--new"]).expect(2);
    // The first did not notice.
    let requests = web.report().requests;
    first.wait_until("more pages", || web.report().requests > requests + 20);
    first.signal("INT");
    first.end().expect(0);
    run(&["store", "verify", &dir]).expect(0);
    // A lock is no file: it went with its process.
    run(&[&arguments[..], &["--pages-max", "5"]].concat()).expect(0);
}

/// Who gives another configuration when going on with a crawl of others would end every URL as forbidden.
#[test]
fn a_crawl_of_others_resumed_without_a_name() {
    let folder = TempFolder::new("nameless-resume");
    let identity = "agent.name = \"bot\"\nagent.url = \"https://example.org/bot\"\nagent.email = \"bot@example.org\"\n";
    // No name server answers here: nobody is asked, and the seed waits.
    let waits = format!("{identity}dns.servers = [\"127.0.0.1:9\"]\ncrawl.shards = 1\ncrawl.time_max = \"300ms\"\n");
    let (dir, config) = (folder.at("crawl"), folder.file("config.toml", &waits));
    run(&["crawl", "http://a.example/", "--dir", &dir, "-c", &config]).expect(3);
    let before = folder.content("crawl");
    let nameless = folder.file("nameless.toml", "crawl.time_max = \"300ms\"\n");
    for arguments in [&[SEED][..], &[]] {
        let arguments = [&["crawl", "--dir", &dir, "-c", &nameless], arguments].concat();
        run(&arguments).expect(2).says(&["http://a.example/ is not on this machine", "agent.email"]);
    }
    assert!(folder.content("crawl") == before, "the crawl was touched");
    // The crawl itself knows whose it is.
    run(&["crawl", "--dir", &dir]).expect(3);
    run(&["crawl", "--dir", &dir, "-c", &config]).expect(3);
}

#[test]
fn directories_without_permission() {
    if !is_root() {
        skip("only root can run the program as another user");
        return;
    }
    let folder = TempFolder::new("permission");
    // As /tmp's owner sees it, the folder is for everybody; what is in it is not.
    let open = |path: &str, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("permissions");
    };
    open(&folder.at(""), 0o755);
    for (name, mode) in [("closed", 0o700), ("read-only", 0o755)] {
        std::fs::create_dir(folder.at(name)).expect("a folder");
        open(&folder.at(name), mode);
    }
    // Where it was built other users may have no way to it: below root's home, say.
    let program = folder.at("ringcrawl");
    copy_program(&program);
    open(&program, 0o755);
    let as_nobody = |arguments: &[&str]| {
        Process::start(Command::new(&program).args(arguments).uid(NOBODY).gid(NOBODY).current_dir("/")).end()
    };
    as_nobody(&["--version"]).expect(0);
    for dir in ["closed", "closed/new", "read-only", "read-only/new"].map(|name| folder.at(name)) {
        as_nobody(&["crawl", SEED, "--dir", &dir]).expect(1).says(&[&dir, "Permission denied"]);
    }
    assert!(!exists(&folder.at("closed/new")) && !exists(&folder.at("read-only/new")));
    assert_eq!(folder.content("closed").len() + folder.content("read-only").len(), 2, "they are still empty");
    let seeds = folder.file("seeds.txt", SEED);
    open(&seeds, 0o600);
    as_nobody(&["crawl", "--seeds", &seeds, "--dir", "/nowhere"]).expect(2).says(&["seeds.txt", "Permission denied"]);
    let config = folder.file("config.toml", "");
    open(&config, 0o600);
    as_nobody(&["crawl", SEED, "-c", &config, "--dir", "/nowhere"])
        .expect(2)
        .says(&["config.toml", "Permission denied"]);
    // A crawl of another user's is not gone on with, and not harmed.
    begun(&folder, &[]);
    let before = folder.content("crawl");
    as_nobody(&["crawl", "--dir", &folder.at("crawl")]).expect(1).says(&[&folder.at("crawl"), "Permission denied"]);
    assert!(folder.content("crawl") == before);
}

/// "nobody", on every Linux.
const NOBODY: u32 = 65_534;

/// It would choose what the crawl writes to.
#[test]
fn a_shard_that_another_user_has_linked_elsewhere() {
    if !is_root() {
        skip("only root can make another user's link");
        return;
    }
    let folder = TempFolder::new("prepared-links");
    std::fs::create_dir(folder.at("elsewhere")).expect("a folder");
    std::fs::create_dir(folder.at("crawl")).expect("a folder");
    let link = folder.at("crawl/shard-00");
    std::os::unix::fs::symlink(folder.at("elsewhere"), &link).expect("a link");
    std::os::unix::fs::lchown(&link, Some(NOBODY), Some(NOBODY)).expect("an owner");
    let expected = format!(
        "ringcrawl: {link} is a link that another user made (uid {NOBODY}), and the crawl would write to where it leads: remove it, or \
         make it yourself if you want it (chown -h)\n"
    );
    assert_eq!(refused(&folder, &[], &[]).err, expected);
    assert_eq!(refused(&folder, &["--new"], &[]).err, expected);
    assert_eq!(folder.content("elsewhere").len(), 1, "nothing was written in it");
    // Nor is it followed by a crawl that goes on.
    std::fs::remove_file(&link).expect("a link");
    begun(&folder, &["--shards", "1"]);
    std::fs::rename(&link, folder.at("elsewhere/shard")).expect("a folder");
    std::os::unix::fs::symlink(folder.at("elsewhere/shard"), &link).expect("a link");
    std::os::unix::fs::lchown(&link, Some(NOBODY), Some(NOBODY)).expect("an owner");
    assert!(refused(&folder, &[], &[]).err.ends_with(&expected));
    std::os::unix::fs::lchown(&link, Some(0), Some(0)).expect("an owner");
    run(&["crawl", "--dir", &folder.at("crawl")]).expect(3);
}
