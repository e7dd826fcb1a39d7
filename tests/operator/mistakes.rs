//! Seeds, settings and identities that are wrong: each is named, nothing is begun.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

use crate::rig::names::NameServer;
use crate::rig::program::{Ended, run};
use ringcrawl_base::TempFolder;

const SEED: &str = "http://127.0.0.1:8/";

/// Runs `crawl` with a directory that must not come into being; expects exit code 2 and each of `words`.
#[track_caller]
fn refused(folder: &TempFolder, arguments: &[&str], words: &[&str]) -> Ended {
    let before = folder.content("");
    let dir = folder.at("crawl");
    let ended = run(&[&["crawl", "--dir", &dir], arguments].concat()).expect(2).says(words);
    assert!(ended.out.is_empty(), "{ended:#?}");
    assert!(folder.content("") == before, "{arguments:?} changed files");
    ended
}

#[test]
fn seeds_that_are_none() {
    let folder = TempFolder::new("seeds");
    let file = folder.file("seeds.txt", "# ours\nhttp://a.test/\n\nhttp://[b/\nnews:c\nmailto:d@e.test\n");
    refused(&folder, &["http://", "not a url"], &["seed 1: \"http://\"", "empty host", "seed 2: \"not a url\""]);
    refused(&folder, &[SEED, "ftp://a.test/"], &["seed 2: \"ftp://a.test/\"", "http or https"]);
    let ended = refused(
        &folder,
        &["--seeds", &file, SEED],
        &["seeds.txt:4: \"http://[b/\"", "seeds.txt:5: \"news:c\"", "seeds.txt:6: \"mailto:d@e.test\""],
    );
    assert_eq!(ended.err.lines().count(), 3, "good seeds are not named: {}", ended.err);
    refused(&folder, &[], &["no seeds", "--seeds FILE"]);
    let ended = refused(&folder, &["http://me:secret@127.0.0.1:8/"], &["seed 1: \"http://me:…@", "set http.auth"]);
    assert!(!ended.err.contains("secret"), "a password in a log: {}", ended.err);
}

/// They would be crawled without a word, and without a request.
#[test]
fn seeds_that_are_out_of_scope() {
    let folder = TempFolder::new("scope");
    let far = format!("http://127.0.0.1:8/{}", "x".repeat(3_000));
    let ended = refused(
        &folder,
        &[SEED, "http://127.0.0.1:25/", &far],
        &["seed http://127.0.0.1:25/ is out of scope", "scope.bad_ports", "scope.url_bytes_max"],
    );
    assert_eq!(ended.err.lines().count(), 2, "{}", ended.err);
}

/// A folder that is not there is a disk that is not mounted.
#[test]
fn folders_that_take_no_segments() {
    let folder = TempFolder::new("no-folders");
    let missing = folder.at("unmounted");
    for (dir, words) in [
        (&*missing, ["store.dirs", "unmounted", "is not there"]),
        ("/proc", ["store.dirs", "/proc", "is not writable"]),
        ("segments", ["store.dirs", "\"segments\"", "expected absolute paths"]),
    ] {
        refused(&folder, &[SEED, "--set", &format!("store.dirs={dir}")], &words);
    }
    let file = folder.file("dirs.toml", &format!("version = 1\nstore.dirs = [{missing:?}]\n"));
    refused(&folder, &[SEED, "-c", &file], &["dirs.toml:2", "store.dirs", "mounted disks"]);
    run(&["check-config", &file]).expect(2).says(&["dirs.toml:2", "store.dirs"]);
    std::fs::create_dir_all(folder.at("crawl/within")).expect("a folder");
    let within = format!("store.dirs={}", folder.at("crawl/within"));
    refused(&folder, &[SEED, "--set", &within], &["store.dirs", "is inside the crawl's directory"]);
}

#[test]
fn memory_that_holds_no_crawl() {
    let folder = TempFolder::new("no-memory");
    for (bytes, words) in [("10MiB", "a shard needs "), ("16TiB", "crawl.ram_bytes_max: 16777216 MiB exceed the ")] {
        let setting = format!("crawl.ram_bytes_max = \"{bytes}\"");
        let file = folder.file("memory.toml", &format!("version = 1\ncrawl.shards = 1\n{setting}\n"));
        refused(&folder, &[SEED, "-c", &file], &[words]);
        run(&["check-config", &file]).expect(2).says(&[words]);
    }
}

#[test]
fn files_of_seeds_that_are_none() {
    let folder = TempFolder::new("seed-files");
    let [missing, itself] = [folder.at("missing.txt"), folder.at("")];
    let empty = folder.file("empty.txt", "");
    let comments = folder.file("comments.txt", "# http://a.test/\n\n");
    std::fs::write(folder.at("binary.txt"), b"http://a.test/\n\xff\xfe\x00").expect("a file");
    let ended = refused(&folder, &["--seeds", &missing], &["missing.txt", "No such file"]);
    assert!(!ended.err.contains("\"\""), "a text that is not there is not quoted: {}", ended.err);
    refused(&folder, &["--seeds", &itself], &[&itself, "Is a directory"]);
    refused(&folder, &["--seeds", &folder.at("binary.txt")], &["binary.txt:2: not UTF-8"]);
    // Named also when there are other seeds: who names a file expects its seeds to be crawled.
    refused(&folder, &["--seeds", &empty], &["empty.txt", "no seed"]);
    refused(&folder, &["--seeds", &comments, SEED], &["comments.txt", "no seed"]);
}

#[test]
fn settings_that_are_wrong() {
    let folder = TempFolder::new("settings");
    let file = folder.file(
        "wrong.toml",
        "[fetch]\ndeadline = \"10\"\nfo = 1\n[politeness]\nretries_max = 1000\n[store]\nzstd_level = \"fast\"\n",
    );
    refused(
        &folder,
        &[SEED, "-c", &file],
        &[
            "wrong.toml:2: fetch.deadline: \"10\" has no unit",
            "wrong.toml:3: fetch.fo: unknown key",
            "wrong.toml:5: politeness.retries_max: 1_000 is out of range; expected a whole number from 0 to 100",
            "wrong.toml:7: store.zstd_level:",
        ],
    );
    let newer = folder.file("newer.toml", "# ours\nversion = 2\nnever_heard_of = 1\n");
    refused(
        &folder,
        &[SEED, "-c", &newer],
        &["newer.toml:2: version: config is of version 2", "newer.toml:3: never_heard_of: unknown table or key"],
    );
    let broken = folder.file("broken.toml", "[crawl]\nshards = = 2\n");
    refused(&folder, &[SEED, "-c", &broken], &["broken.toml:2:"]);
    refused(&folder, &[SEED, "-c", &folder.at("missing.toml")], &["missing.toml", "No such file"]);
    let clash = folder.file("clash.toml", "[fetch]\ndeadline = \"1s\"\n");
    refused(
        &folder,
        &[SEED, "-c", &clash],
        &["clash.toml:2: fetch.deadline: 1s is too low", "fetch.connect_timeout = 10s"],
    );
}

#[test]
fn settings_on_the_command_line_that_are_wrong() {
    let folder = TempFolder::new("set");
    refused(
        &folder,
        &[SEED, "--set", "crawl.shard=1"],
        &["--set: crawl.shard: unknown key", "did you mean crawl.shards?"],
    );
    refused(
        &folder,
        &[SEED, "--set", "fetch.deadline=10", "--set", "store.zstd_level=99"],
        &[
            "--set: fetch.deadline: \"10\" has no unit",
            "--set: store.zstd_level: 99 is out of range; expected a whole number from -7 to 19",
        ],
    );
    refused(&folder, &[SEED, "--set", "crawl.cpus"], &["--set: crawl.cpus: no \"=\""]);
    refused(&folder, &[SEED, "--time-max", "5"], &["crawl.time_max: \"5\" has no unit"]);
    refused(&folder, &[SEED, "--shards", "5000"], &["crawl.shards: 5_000 is out of range"]);
    refused(&folder, &[SEED, "--cpus", "4095"], &["crawl.cpus: this process may not use CPU 4095"]);
    refused(&folder, &[SEED, "--cpus", "3-1"], &["crawl.cpus"]);
    refused(&folder, &[SEED, "--cpus", "-1"], &["--cpus: crawl.cpus: ", "expected CPU numbers"]);
    for (option, key) in [("--pages-max", "crawl.pages_max"), ("--shards", "crawl.shards")] {
        for value in ["x", "-1", "1.5"] {
            refused(&folder, &[SEED, option, value], &[&format!("{option}: {key}: "), "expected a whole number"]);
        }
    }
    refused(&folder, &[SEED, "--set", "fetch.connect_timeout=2m"], &["fetch.connect_timeout", "fetch.deadline"]);
    refused(&folder, &[SEED, "--no-such-option"], &["--no-such-option"]);
}

/// What cannot be written at the end is told at the beginning.
#[test]
fn summaries_that_have_no_place() {
    let folder = TempFolder::new("json");
    std::fs::create_dir(folder.at("folder")).expect("a folder");
    let file = folder.file("file", "precious");
    let missing = folder.at("missing/x.json");
    for (path, word) in [
        (missing.clone(), "No such file"),
        (folder.at("folder"), "Is a directory"),
        (format!("{file}/x.json"), "Not a directory"),
    ] {
        refused(&folder, &[SEED, "--json", &path], &[&format!("--json: {path}: {word}")]);
    }
    // Nothing is left behind, either, when the crawl is refused for another reason.
    refused(&folder, &["--json", &folder.at("x.json")], &["no seeds"]);
    refused(&folder, &[SEED, "--shards", "5000", "--json", &file], &["crawl.shards"]);
    run(&["bench", "--json", &missing]).expect(2).says(&[&format!("--json: {missing}: No such file")]);
}

/// Options that are repeated take one thing each; whoever gives a list is told how.
#[test]
fn lists_with_commas() {
    let folder = TempFolder::new("commas");
    for (arguments, words) in [
        (
            &["--seeds", "a.txt,b.txt"][..],
            "--seeds: a.txt,b.txt: No such file or directory (os error 2); give several files one by one: --seeds a.txt --seeds b.txt",
        ),
        (&["http://a.test/,http://b.test/"], "give several seeds one by one: http://a.test/ http://b.test/"),
        (&["a.test,b.test"], "give several seeds one by one: a.test b.test"),
        (
            &[SEED, "--set", "politeness.host_delay=1s,politeness.site_delay=2s"],
            "--set: politeness.host_delay: set several keys one by one: --set politeness.host_delay=… --set politeness.site_delay=…",
        ),
    ] {
        refused(&folder, arguments, &[words]);
    }
    // A comma in a path is one, and so is one in a list that a key takes.
    let with_comma = ["http://127.0.0.1:8/a,b", "--set", "crawl.shards=5000,x"];
    let ended = refused(&folder, &with_comma, &["crawl.shards"]);
    assert!(!ended.err.contains("one by one"), "{}", ended.err);
}

#[test]
fn certificates_that_are_none() {
    let folder = TempFolder::new("ca-files");
    let (missing, text) = (folder.at("missing.pem"), folder.file("notes.pem", "no certificate in here\n"));
    for (file, word) in [(missing, "no such file"), (text, "has no certificate")] {
        let config = folder.file("config.toml", &format!("tls.ca_files = [{file:?}]\n"));
        refused(&folder, &[SEED, "-c", &config], &["tls.ca_files", &file, word]);
    }
}

/// A limit of the shell that is too low is told before a directory is begun, with what would be enough.
#[test]
fn too_few_open_files() {
    let folder = TempFolder::new("files");
    let script = "ulimit -n 300; exec \"$0\" \"$@\"";
    let mut command = std::process::Command::new("sh");
    command.args([
        "-c",
        script,
        crate::rig::program::RINGCRAWL,
        "crawl",
        SEED,
        "--shards",
        "1",
        "--dir",
        &folder.at("crawl"),
    ]);
    let ended = crate::rig::program::Process::start(&mut command).end().expect(2);
    ended.says(&["open files", "the limit is 300", "ulimit -n", "fetch.in_flight_max"]);
    assert!(folder.content("crawl").is_empty(), "nothing was begun");
}

/// Who does not say who it is does not leave the machine: refused where a seed shows it.
#[test]
fn nameless_crawls_of_others() {
    let folder = TempFolder::new("nameless");
    for seed in ["http://example.org/", "http://192.0.2.1/", "http://10.0.0.1:8080/", "http://[2001:db8::1]/"] {
        refused(&folder, &[SEED, seed], &[seed, "is not on this machine", "agent.name, agent.url and agent.email"]);
    }
    let half = folder.file("half.toml", "agent.name = \"bot\"\nagent.url = \"https://example.org/bot\"\n");
    refused(&folder, &["http://example.org/", "-c", &half], &["agent.email"]);
}

/// And stopped where only the name server shows it: names of this machine that turn out to lie elsewhere.
#[test]
fn nameless_crawls_that_are_led_away() {
    let folder = TempFolder::new("led-away");
    let address = outward_address();
    let listener = address.map(|address| std::net::TcpListener::bind((address, 0)).expect("a listener"));
    let port = listener.as_ref().map_or(80, |listener| listener.local_addr().expect("its address").port());
    let names = NameServer::pointing_to(address.unwrap_or_else(|| [10, 0, 0, 1].into()));
    let config = folder.file("config.toml", &format!("dns.servers = [\"{}\"]\ncrawl.shards = 1\n", names.addr));
    let seed = format!("http://inside.test:{port}/");
    let dir = folder.at("crawl");
    let ended = run(&["crawl", &seed, "--dir", &dir, "-c", &config, "--json", "-"]).expect(3);
    let json = ended.json();
    assert!(names.asked() > 0, "the name was looked up: {json:#}");
    assert_eq!((&json["failures"]["address-forbidden"], &json["connections"]), (&1.into(), &0.into()), "{json:#}");
    if let Some(listener) = listener {
        listener.set_nonblocking(true).expect("a listener");
        let error = listener.accept().expect_err("somebody was connected to");
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    } else {
        eprintln!("this machine has no address beside loopback: only the crawler's own word was checked");
    }
}

/// An address of this machine that is not loopback, if it has one. Nothing is sent to find it.
fn outward_address() -> Option<Ipv4Addr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((Ipv4Addr::new(198, 51, 100, 1), 9)).ok()?;
    match socket.local_addr().ok()? {
        SocketAddr::V4(addr) if !addr.ip().is_loopback() => Some(*addr.ip()),
        _ => None,
    }
}
