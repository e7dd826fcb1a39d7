//! Seeds, settings and identities that are wrong: each is named, nothing is begun.

use crate::rig::peer::{NameServer, outward_address};
use crate::rig::program::{Ended, Place, run};

const SEED: &str = "http://127.0.0.1:9/";

/// Runs `crawl` with a directory that must not come into being; expects exit code 2 and each of `words`.
#[track_caller]
fn refused(place: &Place, arguments: &[&str], words: &[&str]) -> Ended {
    let before = place.content("");
    let dir = place.at("crawl");
    let ended = run(&[&["crawl", "--dir", &dir], arguments].concat()).expect(2).says(words);
    assert!(ended.out.is_empty(), "{ended:#?}");
    assert!(place.content("") == before, "{arguments:?} changed files");
    ended
}

#[test]
fn seeds_that_are_none() {
    let place = Place::new("seeds");
    let file = place.file("seeds.txt", "# ours\nhttp://a.test/\n\nhttp://[b/\nnews:c\nmailto:d@e.test\n");
    refused(&place, &["http://", "not a url"], &["seed 1: \"http://\"", "empty host", "seed 2: \"not a url\""]);
    refused(&place, &[SEED, "ftp://a.test/"], &["seed 2: \"ftp://a.test/\"", "http or https"]);
    let ended = refused(
        &place,
        &["--seeds", &file, SEED],
        &["seeds.txt:4: \"http://[b/\"", "seeds.txt:5: \"news:c\"", "seeds.txt:6: \"mailto:d@e.test\""],
    );
    assert_eq!(ended.err.lines().count(), 3, "good seeds are not named: {}", ended.err);
    refused(&place, &[], &["no seeds", "--seeds FILE"]);
}

#[test]
fn files_of_seeds_that_are_none() {
    let place = Place::new("seed-files");
    let [missing, folder] = [place.at("missing.txt"), place.at("")];
    let empty = place.file("empty.txt", "");
    let comments = place.file("comments.txt", "# http://a.test/\n\n");
    std::fs::write(place.at("binary.txt"), b"http://a.test/\n\xff\xfe\x00").expect("a file");
    let ended = refused(&place, &["--seeds", &missing], &["missing.txt", "No such file"]);
    assert!(!ended.err.contains("\"\""), "a text that is not there is not quoted: {}", ended.err);
    refused(&place, &["--seeds", &folder], &[&folder, "Is a directory"]);
    refused(&place, &["--seeds", &place.at("binary.txt")], &["binary.txt", "UTF-8"]);
    // Named also when there are other seeds: who names a file expects its seeds to be crawled.
    refused(&place, &["--seeds", &empty], &["empty.txt", "no seed"]);
    refused(&place, &["--seeds", &comments, SEED], &["comments.txt", "no seed"]);
}

#[test]
fn settings_that_are_wrong() {
    let place = Place::new("settings");
    let file = place.file(
        "wrong.toml",
        "[fetch]\ndeadline = \"10\"\nfo = 1\n[politeness]\nretries_max = 1000\n[store]\nzstd_level = \"fast\"\n",
    );
    refused(
        &place,
        &[SEED, "-c", &file],
        &[
            "wrong.toml:2: fetch.deadline: \"10\" has no unit",
            "wrong.toml:3: fetch.fo: unknown key",
            "wrong.toml:5: politeness.retries_max: 1_000 is out of range; expected a whole number from 0 to 100",
            "wrong.toml:7: store.zstd_level:",
        ],
    );
    let newer = place.file("newer.toml", "# ours\nversion = 2\nnever_heard_of = 1\n");
    let ended = refused(&place, &[SEED, "-c", &newer], &["newer.toml:2: version: config is of version 2"]);
    assert_eq!(ended.err.lines().count(), 1, "of another version nothing else is judged: {}", ended.err);
    let broken = place.file("broken.toml", "[crawl]\nshards = = 2\n");
    refused(&place, &[SEED, "-c", &broken], &["broken.toml:2:"]);
    refused(&place, &[SEED, "-c", &place.at("missing.toml")], &["missing.toml", "No such file"]);
    let clash = place.file("clash.toml", "[fetch]\ndeadline = \"1s\"\n");
    refused(
        &place,
        &[SEED, "-c", &clash],
        &["clash.toml:2: fetch.deadline: 1s is too little", "fetch.connect_timeout = 10s"],
    );
}

#[test]
fn settings_on_the_command_line_that_are_wrong() {
    let place = Place::new("set");
    refused(
        &place,
        &[SEED, "--set", "crawl.shard=1"],
        &["--set: crawl.shard: unknown key", "did you mean crawl.shards?"],
    );
    refused(
        &place,
        &[SEED, "--set", "fetch.deadline=10", "--set", "store.zstd_level=99"],
        &[
            "--set: fetch.deadline: \"10\" has no unit",
            "--set: store.zstd_level: 99 is out of range; expected a whole number from -7 to 19",
        ],
    );
    refused(&place, &[SEED, "--set", "crawl.cpus"], &["--set: crawl.cpus: there is no \"=\""]);
    refused(&place, &[SEED, "--time-max", "5"], &["crawl.time_max: \"5\" has no unit"]);
    refused(&place, &[SEED, "--shards", "5000"], &["crawl.shards: 5_000 is out of range"]);
    refused(&place, &[SEED, "--cpus", "4095"], &["crawl.cpus: CPU 4095 is not given to this process"]);
    refused(&place, &[SEED, "--cpus", "3-1"], &["crawl.cpus"]);
    refused(&place, &[SEED, "--set", "fetch.connect_timeout=2m"], &["fetch.connect_timeout", "fetch.deadline"]);
    refused(&place, &[SEED, "--no-such-option"], &["--no-such-option"]);
}

#[test]
fn certificates_that_are_none() {
    let place = Place::new("ca-files");
    let (missing, text) = (place.at("missing.pem"), place.file("notes.pem", "no certificate in here\n"));
    for (file, word) in [(missing, "no file that can be found"), (text, "holds no certificate")] {
        let config = place.file("config.toml", &format!("tls.ca_files = [{file:?}]\n"));
        refused(&place, &[SEED, "-c", &config], &["tls.ca_files", &file, word]);
    }
}

/// A limit of the shell that is too low is told before a directory is begun, with what would be enough.
#[test]
fn too_few_open_files() {
    let place = Place::new("files");
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
        &place.at("crawl"),
    ]);
    let ended = crate::rig::program::Process::start(&mut command).end().expect(2);
    ended.says(&["open files", "the limit is 300", "ulimit -n", "fetch.in_flight_max"]);
    assert!(place.content("crawl").is_empty(), "nothing was begun");
}

/// Who does not say who it is does not leave the machine: refused where a seed shows it.
#[test]
fn nameless_crawls_of_others() {
    let place = Place::new("nameless");
    for seed in ["http://example.org/", "http://192.0.2.1/", "http://10.0.0.1:8080/", "http://[2001:db8::1]/"] {
        refused(&place, &[SEED, seed], &[seed, "is not on this machine", "agent.name, agent.url and agent.email"]);
    }
    let half = place.file("half.toml", "agent.name = \"bot\"\nagent.url = \"https://example.org/bot\"\n");
    refused(&place, &["http://example.org/", "-c", &half], &["agent.email"]);
}

/// And stopped where only the name server shows it: names of this machine that turn out to lie elsewhere.
#[test]
fn nameless_crawls_that_are_led_away() {
    let place = Place::new("led-away");
    let address = outward_address();
    let listener = address.map(|address| std::net::TcpListener::bind((address, 0)).expect("a listener"));
    let port = listener.as_ref().map_or(80, |listener| listener.local_addr().expect("its address").port());
    let names = NameServer::start(address.unwrap_or_else(|| [10, 0, 0, 1].into()));
    let config = place.file("config.toml", &format!("dns.servers = [\"{}\"]\ncrawl.shards = 1\n", names.addr));
    let seed = format!("http://inside.test:{port}/");
    let dir = place.at("crawl");
    let ended = run(&["crawl", &seed, "--dir", &dir, "-c", &config, "--json", "-"]).expect(0);
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
