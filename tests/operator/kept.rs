//! What a crawl's directory knows of itself: its settings, its seeds, which crawl it is; and how damage is told.

use std::process::Command;

use ringcrawl_base::TempFolder;
use ringcrawl_web::ModelConfig;

use crate::rig::program::{Ended, Process, RINGCRAWL, run};
use crate::rig::web::{self, web};

/// An origin where nobody answers: a crawl of it ends at once, without a page.
const SEED: &str = "http://127.0.0.1:8/";
const QUICK: &str = "robots.retries_max = 0\nrobots.retry_delay = \"1s\"\ncrawl.shards = 1\n";

/// A crawl of no page in the folder's `crawl`, by the configuration `text` beside `QUICK`.
fn begun(folder: &TempFolder, text: &str, arguments: &[&str]) -> String {
    let (dir, config) = (folder.at("crawl"), folder.file("first.toml", &format!("{QUICK}{text}")));
    run(&[&["crawl", SEED, "--dir", &dir, "-c", &config], arguments].concat()).expect(3);
    dir
}

/// Runs `crawl` in the folder's `crawl`, which must stay as it is.
#[track_caller]
fn refused(folder: &TempFolder, arguments: &[&str], words: &[&str]) -> Ended {
    let before = folder.content("crawl");
    let dir = folder.at("crawl");
    let ended = run(&[&["crawl", "--dir", &dir], arguments].concat()).expect(2).says(words);
    assert!(folder.content("crawl") == before, "{arguments:?} changed the directory");
    ended
}

fn kept(dir: &str) -> String {
    std::fs::read_to_string(format!("{dir}/config.toml")).expect("the settings that were kept")
}

#[test]
fn settings_are_kept_and_go_on() {
    let folder = TempFolder::new("kept");
    let (web, _) = web(ModelConfig { sites: 1, pages: 1, ..ModelConfig::default() });
    folder.file("own.pem", &web.ca_pem);
    let (dir, config) =
        (folder.at("crawl"), folder.file("first.toml", &format!("{QUICK}tls.ca_files = [\"own.pem\"]\n")));
    // A path is meant as seen from the first run's directory, wherever the next one is started.
    let first = ["crawl", SEED, "--dir", &dir, "-c", &config, "--set", "politeness.host_delay=2s"];
    Process::start(Command::new(RINGCRAWL).args(first).current_dir(folder.path())).end().expect(3);
    for line in
        ["retries_max = 0", "shards = 1", "host_delay = \"2s\"", &format!("ca_files = [\"{}\"]", folder.at("own.pem"))]
    {
        assert!(kept(&dir).contains(line), "no {line}:\n{}", kept(&dir));
    }
    let before = folder.content("crawl/config.toml");
    let again = run(&["crawl", "--dir", &dir]).expect(3).says(&["continuing with the settings in", &dir]);
    assert!(!again.err.contains("from now on"), "{}", again.err);
    assert!(folder.content("crawl/config.toml") == before);
    // What may change is taken over, and told.
    let changed = ["crawl", "--dir", &dir, "--set", "politeness.host_delay=3s", "--pages-max", "5"];
    run(&changed).expect(3).says(&[
        "config.toml: politeness.host_delay = \"3s\" from now on, was \"2s\"",
        "crawl.pages_max = 5 from now on, was 0",
    ]);
    let again = run(&["crawl", "--dir", &dir]).expect(3);
    assert!(!again.err.contains("from now on") && kept(&dir).contains("host_delay = \"3s\""), "{}", again.err);
    // A file is the whole configuration: what it leaves out is at its default again.
    let other = folder.file("other.toml", &format!("{QUICK}visited.session_ids = \"ignore\"\n"));
    let ended = run(&["crawl", "--dir", &dir, "-c", &other]).expect(3).says(&[
        "politeness.host_delay = \"1s\" from now on, was \"3s\"",
        "visited.session_ids = \"ignore\" from now on, was \"count\"",
        "tls.ca_files = [] from now on",
    ]);
    assert!(!ended.err.contains("continuing with the settings"), "{}", ended.err);
    // What may not change is named with both values, wherever it is said.
    for (key, lines) in [("crawl.rng_seed", "crawl.rng_seed = 2"), ("agent.name", "agent.name = \"bot\"")] {
        let fixed = folder.file("fixed.toml", &format!("{}{lines}\n", QUICK.replace("crawl.shards = 1\n", "")));
        refused(&folder, &["-c", &fixed], &[&format!("holds a crawl with {key}"), "this is fixed for a crawl"]);
    }
    refused(&folder, &["--set", "fetch.deadline=1s"], &["fetch.deadline"]);
}

#[test]
fn passwords_are_kept_nowhere() {
    let folder = TempFolder::new("passwords");
    let inline = "http.auth = { \"http://a.test\" = \"me:hunter2\" }\n";
    let dir = begun(&folder, inline, &[]);
    let shows = |folder: &TempFolder| {
        folder.content("crawl").values().flatten().any(|bytes| String::from_utf8_lossy(bytes).contains("hunter2"))
    };
    assert!(!shows(&folder), "a password is in the directory");
    let needed = "http.auth.\"http://a.test\" is required but is not in";
    refused(&folder, &[], &[needed, &format!("{dir}/config.toml"), "give it with -c FILE"]);
    // The kept file is not a way around that.
    refused(
        &folder,
        &["-c", &format!("{dir}/config.toml")],
        &["http.auth: \"http://a.test\": this file was written without the secret"],
    );
    let first = folder.at("first.toml");
    let again = run(&["crawl", "--dir", &dir, "-c", &first]).expect(3);
    assert!(!again.err.contains("from now on"), "the same password is no change: {}", again.err);
    // References are kept, and what they lead to is not.
    let login = folder.file("login", "me:hunter2\n");
    let text = format!(
        "{QUICK}http.auth = {{ \"http://a.test\" = {{ file = {login:?} }}, \"http://b.test\" = {{ credential = \"b\" }} }}\n"
    );
    let second = folder.file("second.toml", &text);
    folder.file("b", "me:hunter2\n");
    let as_service = |arguments: &[&str]| {
        let mut command = Command::new(RINGCRAWL);
        Process::start(command.args(arguments).env("CREDENTIALS_DIRECTORY", folder.path())).end()
    };
    as_service(&["crawl", "--dir", &dir, "-c", &second]).expect(3);
    as_service(&["crawl", "--dir", &dir]).expect(3);
    assert!(!shows(&folder) && kept(&dir).contains(&format!("{{ file = {login:?} }}")), "{}", kept(&dir));
    run(&["check-config", &second]).expect(0);
    refused(&folder, &[], &["http.auth.\"http://b.test\": there is no credential \"b\"", "LoadCredential="]);
    std::fs::remove_file(folder.at("b")).expect("a file");
    std::fs::remove_file(&login).expect("a file");
    let ended = as_service(&["crawl", "--dir", &dir]).expect(2);
    ended.says(&["http.auth.\"http://a.test\": ", "login: No such file", "http.auth.\"http://b.test\": "]);
    run(&["check-config", &second]).expect(2).says(&["second.toml:4: http.auth: \"http://a.test\": ", "No such file"]);
}

#[test]
fn damage_is_told_and_nothing_is_changed() {
    let folder = TempFolder::new("damage");
    let dir = begun(&folder, "crawl.rng_seed = 123456\n", &[]);
    let first = folder.at("first.toml");
    for (name, from, to, words) in [
        // This one would have made every URL unknown.
        (
            "crawl.json",
            "123456",
            "123457",
            ["damaged manifest: its checksum does not match", "restore the file from a copy"],
        ),
        (
            "crawl.json",
            "\"site-hash\"",
            "\"host-hash\"",
            ["damaged manifest: its checksum does not match", "`ringcrawl store`"],
        ),
        (
            "seeds",
            "127.0.0.1",
            "127.0.0.2",
            ["it is damaged or was changed: its checksum does not match", "give all seeds"],
        ),
        (
            "config.toml",
            "\"1s\"",
            "\"9s\"",
            ["it is damaged or was changed: its checksum does not match", "with -c FILE"],
        ),
    ] {
        let path = format!("{dir}/{name}");
        let right = std::fs::read_to_string(&path).expect("a file of the crawl");
        assert!(right.contains(from), "{right}");
        folder.file(&format!("crawl/{name}"), &right.replace(from, to));
        refused(&folder, &[], &[&[path.as_str()][..], &words].concat());
        if name != "config.toml" {
            refused(&folder, &["-c", &first], &[&[path.as_str()][..], &words].concat());
        }
        run(&["store", "ls", &dir]).expect(0);
        folder.file(&format!("crawl/{name}"), &right[..right.len() / 2]);
        refused(&folder, &[], &[&path, "damaged"]);
        folder.file(&format!("crawl/{name}"), &right);
        run(&["crawl", "--dir", &dir]).expect(3);
    }
    // Files of another crawl are whole, and not this crawl's.
    let other = TempFolder::new("other");
    let other = begun(&other, "", &[]);
    for name in ["seeds", "config.toml"] {
        let path = format!("{dir}/{name}");
        let right = std::fs::read(&path).expect("a file of the crawl");
        std::fs::copy(format!("{other}/{name}"), &path).expect("a file of another crawl");
        refused(&folder, &[], &[&path, "it belongs to another crawl"]);
        std::fs::write(&path, right).expect("the right file");
    }
    // With a file that is missing it goes on when its content is given again.
    for (name, arguments) in [("seeds", [SEED].as_slice()), ("config.toml", &["-c", &first])] {
        std::fs::remove_file(format!("{dir}/{name}")).expect("a file");
        refused(&folder, &[], &[name, "it is missing"]);
        run(&[&["crawl", "--dir", &dir], arguments].concat()).expect(3).says(&[name, "rewritten"]);
        run(&["crawl", "--dir", &dir]).expect(3);
    }
}

/// What a run did and what the crawl has are told apart.
#[test]
fn a_run_is_told_from_its_crawl() {
    let folder = TempFolder::new("two-runs");
    let (web, seed) = web(ModelConfig { sites: 5, pages: 300, ..ModelConfig::default() });
    let (dir, config) = (folder.at("crawl"), web::config(&folder, &web, "crawl.shards = 2"));
    let first = run(&["crawl", &seed, "--dir", &dir, "-c", &config, "--pages-max", "50", "--json", "-"]).expect(0);
    let first = first.json();
    let number = |json: &serde_json::Value, pointer: &str| {
        json.pointer(pointer).and_then(serde_json::Value::as_u64).unwrap_or_else(|| panic!("{pointer}: {json:#}"))
    };
    assert_eq!(number(&first, "/crawl_before/urls"), 0);
    assert!(number(&first, "/crawl/waiting") > 0 && number(&first, "/hosts_left") > 0, "{first:#}");
    let second = run(&["crawl", "--dir", &dir, "--set", "crawl.pages_max=0", "--json", "-"]).expect(0);
    let second = second.says(&["this run resumed a crawl", "before this run", "denied by robots.txt"]).json();
    for name in ["urls", "waiting", "over"] {
        assert_eq!(second["crawl_before"][name], first["crawl"][name], "{name}: {first:#} {second:#}");
    }
    assert_eq!(number(&second, "/crawl/waiting") + number(&second, "/hosts_left"), 0, "{second:#}");
    assert_eq!(number(&second, "/crawl/over"), number(&second, "/crawl/urls"));
    assert!(number(&first, "/pages") == 50 && number(&second, "/pages") < number(&second, "/crawl/urls"));
    // What robots.txt forbids is no failure.
    assert!(number(&second, "/robots_denied") > 0, "{second:#}");
    assert_eq!(second["failures"].get("robots-denied"), None);
}
