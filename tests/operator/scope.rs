//! Scopes as operators give them: mistakes before the start, block lists, and another scope while the crawl runs.

use std::process::Command;

use ringcrawl_base::TempFolder;
use ringcrawl_web::ModelConfig;

use crate::rig::program::{Process, RINGCRAWL, run, start};
use crate::rig::web::{self, web};

#[test]
fn every_mistake_is_told_before_the_start() {
    let folder = TempFolder::new("scope-mistakes");
    let rules = folder.file("scope.rules", "alow\nallow hots=a.test\n");
    let list = folder.file("list", "a.test\nno entry\n");
    let text = format!("scope.rules = {rules:?}\nscope.block = [{list:?}]\n");
    let config = folder.file("config.toml", &text);
    let said = [format!("{rules}:1: "), format!("{rules}:2: "), format!("{list}:2: ")];
    let said: Vec<&str> = said.iter().map(String::as_str).collect();
    let dir = folder.at("crawl");
    run(&["crawl", "http://127.0.0.1:9/", "--dir", &dir, "-c", &config]).expect(2).says(&said);
    run(&["check-config", &config]).expect(2).says(&said);
    assert!(!std::path::Path::new(&dir).join("crawl.json").exists());
    let rules = folder.file("good.rules", "deny path=/x*\n");
    let config = folder.file("good.toml", &format!("scope.rules = {rules:?}\n"));
    let denied = run(&["crawl", "http://127.0.0.1:8099/x", "--dir", &dir, "-c", &config]).expect(2);
    denied.says(&[&format!("{rules}:1 denies it")]);
}

/// The examples of docs/SCOPE.md: each of its rules files is right, and what it says of URLs is so.
#[test]
fn examples_of_the_documentation_hold() {
    let folder = TempFolder::new("scope-examples");
    let text = include_str!("../../docs/SCOPE.md");
    let (mut rules, mut files, mut verdicts) = (String::new(), 0, 0);
    for block in text.split("```").skip(1).step_by(2) {
        let (kind, block) = block.split_once('\n').expect("a line");
        match kind {
            "rules" => {
                files += 1;
                rules = folder.file(&format!("{files}.rules"), block);
                run(&["scope", "test", "--rules", &rules, "http://a.test/"]).expect(0);
            }
            "verdicts" => {
                for line in block.lines().filter(|line| !line.is_empty()) {
                    let (line, embed) =
                        line.strip_suffix("  embed").map_or((line, None), |line| (line, Some("--embed")));
                    let words: Vec<&str> = line.split_whitespace().collect();
                    let [word, stage, offsite, depth, content_type, url] = words[..] else { panic!("{line}") };
                    let arguments = ["scope", "test", "--rules", &rules, "--stage", stage, "--offsite", offsite];
                    let more = ["--depth", depth, "--type", content_type, "--seed", "https://example.org/", url];
                    let said = run(&[&arguments[..], embed.as_slice(), &more].concat()).expect(0).out;
                    assert!(said.contains(&format!(" {word}")), "{line}: {said}");
                    verdicts += 1;
                }
            }
            _ => {}
        }
    }
    assert!(files >= 5 && verdicts >= 15, "{files} {verdicts}");
}

/// Hops off-site are counted from the seeds' sites, whichever shard has a page.
#[test]
fn hops_off_site_bound_a_crawl() {
    let folder = TempFolder::new("scope-offsite");
    let (web, seed) = web(ModelConfig { sites: 12, ..ModelConfig::default() });
    let urls = |name: &str, more: &str| {
        let config = web::config(&folder, &web, &format!("crawl.shards = 3\n{more}"));
        let dir = folder.at(name);
        run(&["crawl", &seed, "--dir", &dir, "-c", &config]).expect(0);
        let said = run(&["urls", &dir]).expect(0).out;
        let mut urls: Vec<String> =
            said.lines().filter_map(|line| line.split_whitespace().last()).map(str::to_owned).collect();
        urls.sort();
        urls
    };
    let by_seeds = urls("seeds", "scope.follow = \"seed-sites\"");
    let rules = |hops: u16| folder.file("offsite.rules", &format!("deny offsite>{hops}\n"));
    let at_home = urls("home", &format!("scope.rules = {:?}", rules(0)));
    assert!(by_seeds.len() > 1, "{by_seeds:?}");
    assert_eq!(at_home, by_seeds);
    let near = urls("near", &format!("scope.rules = {:?}", rules(1)));
    assert!(near.len() > at_home.len() && at_home.iter().all(|url| near.contains(url)), "{}", near.len());
}

/// A host that is put on the list while it is crawled is asked no more, nor after the crawl is resumed.
#[test]
fn a_list_that_is_reloaded_holds_for_what_is_queued() {
    let folder = TempFolder::new("scope-reload");
    let (web, seed) = web(ModelConfig { endless: true, ..ModelConfig::default() });
    let list = folder.file("list", "# nothing yet\n");
    let config = web::config(&folder, &web, &format!("crawl.shards = 2\nscope.block = [{list:?}]"));
    let dir = folder.at("crawl");
    // A session of its own has no terminal, as a service has none.
    let mut command = Command::new("setsid");
    let arguments = ["crawl", &seed, "--dir", &dir, "-c", &config, "--json", "-"];
    let mut crawl = Process::start(command.arg(RINGCRAWL).args(arguments));
    crawl.wait_until("some pages", || web.report().requests > 200);
    std::fs::write(&list, "no entry\n").expect("a file");
    crawl.signal("HUP");
    crawl.wait_for("the previous files stay in effect");
    let before = web.report().requests;
    crawl.wait_until("more pages", || web.report().requests > before + 200);
    // All of the web: its hosts' names end so.
    std::fs::write(&list, ".test\n").expect("a file");
    crawl.signal("USR1");
    crawl.wait_for("in effect on all shards");
    // What was under way has ended by then, on a busy machine, too.
    std::thread::sleep(std::time::Duration::from_secs(2));
    let requests = web.report().requests;
    let ended = crawl.end().expect(0);
    assert_eq!(web.report().requests, requests);
    let json = ended.json();
    assert_eq!(json["ended"], "finished", "{json:#}");
    assert!(json["failures"]["blocked"].as_u64().is_some_and(|blocked| blocked > 0), "{json:#}");
    let again = start(&["crawl", "--dir", &dir, "-c", &config]).end();
    again.expect(0);
    assert_eq!(web.report().requests, requests);
}

/// As a copy has it in its middle: the old list stays in force, until the same file is asked for once more.
#[test]
fn a_list_that_lost_most_of_its_entries_needs_a_second_signal() {
    let folder = TempFolder::new("scope-halved");
    let (web, seed) = web(ModelConfig { endless: true, ..ModelConfig::default() });
    let entries: String = (0..100).map(|host| format!("{host}.blocked.test\n")).collect();
    let list = folder.file("list", &entries);
    let config = web::config(&folder, &web, &format!("crawl.shards = 2\nscope.block = [{list:?}]"));
    let mut crawl = start(&["crawl", &seed, "--dir", &folder.at("crawl"), "-c", &config]);
    crawl.wait_until("some pages", || web.report().requests > 20);
    std::fs::write(&list, "").expect("a file");
    crawl.signal("USR1");
    let held = format!(
        "scope: {list} has 0 entries, before 100; send the signal again to accept it, or set scope.halved = \"take\"\n"
    );
    crawl.wait_for(&held);
    crawl.wait_for(": not reloaded; the previous files stay in effect\n");
    // Another file is another question.
    std::fs::write(&list, "a.test\n").expect("a file");
    crawl.signal("USR1");
    crawl.wait_for(&held.replace("has 0 entries", "has 1 entries"));
    crawl.signal("USR1");
    crawl.wait_for("in effect on all shards");
    // From now on this is what it had.
    std::fs::write(&list, "a.test\nb.test\nc.test\n").expect("a file");
    crawl.signal("USR1");
    crawl.wait_for(": 3 entries in 1 MiB");
    crawl.signal("INT");
    crawl.end().expect(0);
    // A key has it taken at once.
    let halved = ["--set", "scope.halved=take"];
    let mut crawl = start(&[&["crawl", "--dir", &folder.at("crawl"), "-c", &config][..], &halved].concat());
    let before = web.report().requests;
    crawl.wait_until("some pages", || web.report().requests > before + 20);
    std::fs::write(&list, "a.test\n").expect("a file");
    crawl.signal("USR1");
    crawl.wait_for(": 1 entries in 1 MiB");
    crawl.signal("INT");
    crawl.end().expect(0).says(&["in effect on all shards"]);
    // A quiet crawl asks, too: a later signal must not confirm a question that was never shown.
    std::fs::write(&list, &entries).expect("a file");
    let mut crawl = start(&["crawl", "--dir", &folder.at("crawl"), "-c", &config, "--quiet"]);
    let before = web.report().requests;
    crawl.wait_until("some pages", || web.report().requests > before + 20);
    std::fs::write(&list, "").expect("a file");
    crawl.signal("USR1");
    crawl.wait_for(": not reloaded; the previous files stay in effect\n");
    crawl.signal("INT");
    let told = crawl.end().expect(0).err;
    assert!(told.contains(&held) && told.lines().filter(|line| line.starts_with("scope: ")).count() == 2, "{told}");
}

/// Rules, lists and operators that are links to somebody's secrets: each mistake is told with its line, and nothing of it is quoted.
#[test]
fn what_is_no_rule_is_not_quoted() {
    let folder = TempFolder::new("scope-secrets");
    let secret = folder.file(
        "shadow",
        "root:$6$salt$hunter2:19000:0:99999:7:::\nPrivateKey = hunter2\n-----BEGIN hunter2\nx hunter2\n",
    );
    let dir = folder.at("crawl");
    for (key, expected) in [
        ("scope.rules", vec!["1: no rule; expected allow or deny at the beginning of the line"; 4]),
        ("scope.block", vec!["1: cannot be read; expected a host"; 4]),
        ("politeness.operators", vec!["1: expected a name and an address range"; 4]),
    ] {
        let link = folder.at(&format!("link-{key}"));
        std::os::unix::fs::symlink(&secret, &link).expect("a link");
        let value = if key == "scope.rules" { format!("{link:?}") } else { format!("[{link:?}]") };
        let config = folder.file("config.toml", &format!("{key} = {value}\n"));
        let ended = run(&["crawl", "http://127.0.0.1:9/", "--dir", &dir, "-c", &config]).expect(2);
        assert!(!ended.err.contains("hunter2") && !ended.err.contains("root"), "{}", ended.err);
        assert!(
            ended.err.contains(&format!("{link}:{}", expected[0])) && ended.err.lines().count() >= 4,
            "{}",
            ended.err
        );
    }
}
