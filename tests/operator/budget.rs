//! Ends that were asked for, the numbers afterwards, and the programs that read what is there.

use ringcrawl_url::Url;
use ringcrawl_web::ModelConfig;
use ringcrawl_web::truth::reachable;

use crate::rig::harvest::{Verdict, open_files, stored};
use crate::rig::program::run;
use crate::rig::web::{self, web};
use ringcrawl_base::TempFolder;

#[test]
fn pages_max_is_kept() {
    for (shards, pages_max) in [("1", 1), ("1", 150), ("2", 300), ("4", 1_000)] {
        let folder = TempFolder::new("pages-max");
        let (web, seed) = web(ModelConfig { sites: 300, endless: true, addresses: 32, ..ModelConfig::default() });
        let (dir, config, max) = (folder.at("crawl"), web::config(&folder, &web, ""), pages_max.to_string());
        let arguments =
            ["crawl", &seed, "--dir", &dir, "-c", &config, "--shards", shards, "--pages-max", &max, "--json", "-"];
        let json = run(&arguments).expect(0).says(&["pages_max reached"]).json();
        let pages = json["pages"].as_u64().expect("a number");
        assert_eq!(json["ended"], "pages_max reached");
        // The web has more.
        assert_eq!(pages, pages_max, "{shards} shards");
        let harvest = stored(&dir);
        let found = harvest.values().flatten().filter(|capture| capture.status == 200).count();
        assert_eq!(found as u64, pages, "what is counted is what is stored");
        assert_eq!(open_files(&dir), [""; 0]);
    }
}

#[test]
fn time_max_is_kept() {
    let folder = TempFolder::new("time-max");
    let (web, seed) = web(ModelConfig { endless: true, ..ModelConfig::default() });
    let (dir, config) = (folder.at("crawl"), web::config(&folder, &web, "crawl.shards = 2"));
    let arguments = ["crawl", &seed, "--dir", &dir, "-c", &config, "--time-max", "3s", "--json", "-"];
    let ended = run(&arguments).expect(0).says(&["time_max reached", "draining"]);
    let seconds = ended.json()["elapsed_seconds"].as_f64().expect("a number");
    println!("{seconds} s of 3 s asked for");
    assert_eq!(ended.json()["ended"], "time_max reached");
    // The web has no end: that it ended, and said by what, is what shows that the time is kept.
    assert!(seconds >= 3.0, "{ended:#?}");
    assert_eq!(open_files(&dir), [""; 0]);
    run(&["store", "verify", &dir]).expect(0);
}

/// A crawl in small budgets is the crawl in one piece.
#[test]
fn budgets_add_up() {
    let folder = TempFolder::new("budgets");
    let (web, seed) = web(ModelConfig { sites: 20, pages: 600, ..ModelConfig::default() });
    let (dir, config) = (folder.at("crawl"), web::config(&folder, &web, "crawl.shards = 2"));
    let arguments = ["crawl", &seed, "--dir", &dir, "-c", &config, "--pages-max", "150", "--json", "-"];
    let runs = (1..=8).find(|_| run(&arguments).expect(0).json()["ended"] == "finished").expect("an end");
    assert!(runs > 2, "{runs} runs");
    let truth = reachable(web.model(), web.model().seeds(1).as_slice()).expect("the web has an end");
    Verdict::of(&stored(&dir), &truth).expect_perfect();
    let watch = web.stop().watch.expect("the web is watched");
    assert_eq!((watch.double_fetches, watch.before_robots), (0, 0));
}

#[test]
fn the_summary_is_there_in_full() {
    let folder = TempFolder::new("summary");
    let (web, seed) = web(ModelConfig { sites: 10, pages: 200, ..ModelConfig::default() });
    let (dir, config, file) = (folder.at("crawl"), web::config(&folder, &web, ""), folder.at("summary.json"));
    let ended = run(&["crawl", &seed, "--dir", &dir, "-c", &config, "--json", &file]).expect(0);
    assert!(ended.out.is_empty(), "the summary was asked for in a file: {}", ended.out);
    let text = std::fs::read_to_string(&file).expect("the summary");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    for key in [
        "ended",
        "elapsed_seconds",
        "shards",
        "pages",
        "pages_per_second",
        "pages_per_second_per_core",
        "responses",
        "bytes_wire",
        "bytes_decoded",
        "bytes_stored",
        "records",
        "hosts",
        "visited",
        "exchanged_out",
        "exchanged_in",
        "robots_denied",
        "dns_queries",
        "connections",
        "handshakes",
        "resumed",
        "chains_recognized",
        "retries",
        "queued",
        "in_flight",
        "statuses",
        "failures",
        "stored_ratio",
        "cpu_seconds",
        "cpu_micros_per_page",
        "rss_bytes_max",
    ] {
        assert!(!json[key].is_null(), "{key}: {json:#}");
    }
    let report = web.stop();
    let robots = report.requests - report.watch.as_ref().expect("the web is watched").urls;
    assert_eq!(json["responses"], report.requests, "{json:#}");
    assert_eq!(json["statuses"]["4xx"], report.statuses.get(&404).copied().unwrap_or(0), "{robots} robots.txt");
    let elapsed = json["elapsed_seconds"].as_f64().expect("seconds");
    let rate = json["pages"].as_f64().expect("pages") / elapsed;
    assert!((json["pages_per_second"].as_f64().expect("a rate") - rate).abs() < 0.01 * rate, "{json:#}");
    // Where it cannot be written after all, that is the failure, after a crawl that is whole.
    let resume = ["crawl", "--dir", &dir, "-c", &config, "--json", "/dev/full"];
    run(&resume).expect(1).says(&["finished after", "--json: /dev/full: No space left"]);
}

#[test]
fn what_was_stored_is_listed_printed_and_checked() {
    let folder = TempFolder::new("store");
    let (web, seed) = web(ModelConfig { sites: 10, pages: 200, ..ModelConfig::default() });
    let (dir, config) = (folder.at("crawl"), web::config(&folder, &web, "crawl.shards = 2"));
    run(&["crawl", &seed, "--dir", &dir, "-c", &config]).expect(0);
    let harvest = stored(&dir);

    let listed = run(&["store", "ls", &dir]).expect(0).out;
    let urls = listed.lines().map(|line| line.split('\t').next_back().unwrap_or_default());
    let mut urls: Vec<&str> = urls.filter(|url| !url.ends_with("/robots.txt")).collect();
    urls.sort_unstable();
    assert!(urls.iter().eq(harvest.keys()), "{listed}");

    let url = Url::parse(&seed).expect("a URL");
    let mut body = Vec::new();
    assert_eq!(web.model().answer_url(&url, &mut body).status, 200);
    let printed = run(&["store", "cat", &dir, &seed]).expect(0).out;
    assert!(printed.as_bytes() == body, "what is printed is what the web says");
    let as_stored = run(&["store", "cat", &dir, &seed, "--as-stored"]).expect(0).out_bytes;
    let headed = run(&["store", "cat", &dir, &seed, "--headers"]).expect(0).out_bytes;
    assert!(headed.starts_with(b"HTTP/1.1 200") && headed.ends_with(&as_stored) && as_stored != body);
    run(&["store", "cat", &dir, "http://never.test/"]).expect(1).says(&["http://never.test/: not stored"]);
    run(&["store", "cat", &dir, "http://"]).expect(2).says(&["empty host"]);

    run(&["store", "verify", &dir]).expect(0).says(&["0 problems"]);
    for command in ["ls", "verify"] {
        run(&["store", command, &folder.at("missing")]).expect(2).says(&["missing", "No such file"]);
    }
    // A single bit, in the middle of a segment: it is found, and named with its file.
    let segment = ringcrawl_warc::read::find_segments(dir.as_ref()).expect("segments").remove(0);
    let mut bytes = std::fs::read(&segment).expect("a segment");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&segment, bytes).expect("a segment");
    let damaged = run(&["store", "verify", &dir]).expect(1);
    let name = segment.file_name().and_then(|name| name.to_str()).expect("a name");
    assert!(damaged.out.contains(name), "{damaged:#?}");
}

#[test]
fn the_truth_and_its_mistakes() {
    let web = ["web", "truth", "--sites", "5", "--pages", "60"];
    let truth = run(&web).expect(0).out;
    assert!(truth.lines().count() > 60 && truth.contains("\n200\t"), "{truth}");
    let denied = run(&[&web[..], &["--denied"]].concat()).expect(0).out;
    assert_eq!(
        denied.lines().filter(|line| !line.starts_with("denied\t")).collect::<Vec<_>>().join("\n"),
        truth.trim()
    );
    run(&[&web[..], &["--endless"]].concat()).expect(2).says(&["endless"]);
    run(&[&web[..], &["http://"]].concat()).expect(2).says(&["empty host"]);
    run(&[&web[..], &["--seeds", "/no/such/file"]].concat()).expect(2).says(&["/no/such/file", "No such file"]);
    run(&["web", "truth", "--sites", "50", "--pages", "10"]).expect(2).says(&["at least one a site"]);
    run(&["web", "--http-port", "8080", "--https-port", "8080"]).expect(2).says(&["must differ"]);
}

#[test]
fn configurations_are_checked_without_a_crawl() {
    let folder = TempFolder::new("check-config");
    let good = folder.file("good.toml", "version = 1\ncrawl.shards = 2\n");
    assert_eq!(run(&["check-config", &good]).expect(0).out, "ok\n");
    let printed = run(&["check-config", &good, "--print"]).expect(0).out;
    let printed = folder.file("printed.toml", &printed);
    assert_eq!(run(&["check-config", &printed]).expect(0).out, "ok\n", "what is printed is a configuration");
    let bad = folder.file("bad.toml", "version = 1\n\n[crawl]\nshard = 2\n");
    let ended = run(&["check-config", &bad]).expect(2).says(&["bad.toml:4: crawl.shard: unknown key"]);
    assert!(ended.out.is_empty());
    run(&["check-config", &good, "--set", "crawl.shards"]).expect(2).says(&["--set: crawl.shards: no \"=\""]);
    run(&["check-config", &folder.at("missing.toml")]).expect(2).says(&["missing.toml", "No such file"]);
    run(&["check-config"]).expect(2);
}
