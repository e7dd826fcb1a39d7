//! Whatever goes wrong, the true reason is told: in the first line of `why`, in `urls`, `hosts`, progress and summary,
//! of a crawl that runs, is stopped or has ended.
//!
//! Decides: each story is one that operators meet: a dead port, a dead proxy, a dead name server, a login, a
//! certificate of its own, a page that is cut, a clock that is set back. Words are compared literally; of times that
//! pass only the number is left open.

use std::fs::File;
use std::io::Write;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hickory_proto::op::ResponseCode;
use hickory_proto::rr::rdata::A;
use hickory_proto::rr::{RData, Record, RecordType};
use ringcrawl_base::TempFolder;

use crate::rig::certificates;
use crate::rig::names::{NameServer, Reply};
use crate::rig::program::{PATIENCE, Process, RINGCRAWL, run, start};
use crate::rig::servers::{ClosedPort, read_request, secure_server_of, server};
use crate::rig::skip;

/// Quick where no rule of these stories is about it.
const QUICK: &str =
    "crawl.shards = 1\npoliteness.host_delay = \"0s\"\npoliteness.site_delay = \"0s\"\npoliteness.ip_delay = \"0s\"\n";

/// A server whose front page links to three others, and which has what their addresses say.
fn site() -> SocketAddr {
    let serve = |mut stream: TcpStream, _| {
        while let Some(request) = read_request(&mut stream) {
            let path = request.split(' ').nth(1).unwrap_or_default();
            let (head, body) = match path {
                "/robots.txt" => ("404 Not Found", String::new()),
                "/" => ("200 OK", "<a href=/1>1</a><a href=/2>2</a><a href=/3>3</a>".to_owned()),
                "/login" => ("401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"a\"", String::new()),
                "/busy" => ("503 Busy\r\nRetry-After: 3600", String::new()),
                "/long" => ("200 OK", "x".repeat(200_000)),
                "/odd" => {
                    let _ = stream.write_all(b"HTTP/1.1 OK\r\n\r\n");
                    return;
                }
                "/short" => {
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nnot all");
                    return;
                }
                _ => ("200 OK", "a page".to_owned()),
            };
            let length = body.len();
            let head = format!("HTTP/1.1 {head}\r\nContent-Type: text/html\r\nContent-Length: {length}\r\n\r\n");
            if stream.write_all((head + &body).as_bytes()).is_err() {
                return;
            }
        }
    };
    server(serve).0
}

/// A text with each number that passes, in "in 9 min" and the like, as N.
fn without_times(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let is_span = |at: usize| {
        at > 0
            && words[at - 1] == "in"
            && words.get(at + 1).is_some_and(|unit| ["s", "min", "h"].iter().any(|known| unit.starts_with(known)))
    };
    let word = |(at, word): (usize, &&str)| if is_span(at) { "N".to_owned() } else { (*word).to_owned() };
    words.iter().enumerate().map(word).collect::<Vec<_>>().join(" ")
}

/// The first line of `why`.
fn why(dir: &str, what: &str) -> String {
    let out = run(&["why", what, "--dir", dir]).expect(0).out;
    without_times(out.lines().next().unwrap_or_default())
}

/// The line of `command` that names `what`.
fn line(command: &str, dir: &str, what: &str) -> String {
    let out = run(&[command, dir]).expect(0).out;
    let line = out.lines().find(|line| line.split('\t').any(|column| column == what));
    without_times(line.unwrap_or_else(|| panic!("{command} has no {what}: {out}")))
}

/// Waits until the first line of `why` is so while the crawl runs, or as one of the others has it.
fn wait_for_reason(crawl: &mut Process, dir: &str, what: &str, expected: &[&str]) {
    let mut last = String::new();
    let began = std::time::Instant::now();
    crawl.wait_with_patience(PATIENCE, expected[0], || {
        std::thread::sleep(Duration::from_millis(100));
        let out = run(&["why", what, "--dir", dir]).out;
        last = without_times(out.lines().next().unwrap_or_default());
        assert!(began.elapsed() < Duration::from_secs(60), "why says {last:?}, expected {expected:?}");
        expected.contains(&&*last)
    });
}

fn end(mut crawl: Process) -> String {
    crawl.signal("INT");
    let ended = crawl.end();
    assert!([0, 3].contains(&ended.code), "{ended:#?}");
    ended.err
}

#[test]
fn a_dead_port() {
    let (folder, live, dead) = (TempFolder::new("dead-port"), site(), ClosedPort::new());
    let hosts = "[dns.hosts]\n\"live.test\" = [\"127.0.0.1\"]\n\"dead.test\" = [\"127.0.0.1\"]\n";
    let (dir, config) = (folder.at("crawl"), folder.file("config.toml", &format!("{QUICK}{hosts}")));
    let port = dead.addr().port();
    let (one, other) = (format!("http://live.test:{}/", live.port()), format!("http://dead.test:{port}/"));
    let mut crawl = start(&["crawl", &one, &other, "--dir", &dir, "-c", &config]);
    let reason = |when: &str| format!("dead.test:{port}: robots.txt: connection refused, {when}");
    // Nobody listens: sooner than where nothing comes, and less often.
    wait_for_reason(&mut crawl, &dir, &other, &[&format!("It waits: {}.", reason("try 2 of 5 in N s"))]);
    assert_eq!(why(&dir, "dead.test"), format!("1 URL of dead.test waiting: {}.", reason("try 2 of 5 in N s")));
    assert_eq!(line("urls", &dir, &other), format!("waiting\t-\t0\t-\t{other}\t{}", reason("try 2 of 5 in N s")));
    let of_host = line("hosts", &dir, "dead.test");
    assert!(of_host.ends_with(&format!("\tdead.test\t-\t-\t{}", reason("try 2 of 5 in N s"))), "{of_host}");
    // Its own line in the progress, and not only once a minute.
    crawl.wait_for(&reason("try 2 of 5 in "));
    let said = end(crawl);
    assert!(!said.contains("waits for its delay"), "{said}");
    let summary = said.lines().find(|line| line.starts_with("  last problem ")).expect("a row");
    assert!(without_times(summary).ends_with(&format!(" {}", reason("try 2 of 5 in N s"))), "{said}");
    // Stopped: nothing is tried until a crawl runs.
    assert_eq!(why(&dir, &other), format!("It waits: {}.", reason("after 1 of 5 tries")));
    assert_eq!(line("urls", &dir, &other), format!("waiting\t-\t0\t-\t{other}\t{}", reason("after 1 of 5 tries")));
    // And when it has ended by itself.
    let quick = ["--set", "robots.retry_delay=1s"];
    let ended = run(&[&["crawl", "--dir", &dir][..], &quick].concat()).expect(0);
    let over = reason("given up after 5 tries");
    ended.says(&[&over]);
    let answer = why(&dir, &other);
    assert!(answer.ends_with(&format!("(robots-unreachable): {over}. `crawl --retry-failed` retries it.")), "{answer}");
    assert!(line("urls", &dir, &other).ends_with(&format!("\t{other}\t{over}")));
    // Where somebody listens again, nothing is wrong any more.
    drop(dead);
    let Ok(listener) = std::net::TcpListener::bind(("127.0.0.1", port)) else { return };
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            while read_request(&mut stream).is_some() {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
            }
        }
    });
    run(&["crawl", "--dir", &dir, "--retry-failed"]).expect(0);
    assert!(line("hosts", &dir, "dead.test").ends_with("\t-"), "{}", line("hosts", &dir, "dead.test"));
    assert!(line("urls", &dir, &other).ends_with(&format!("\t{other}")));
}

#[test]
fn a_dead_proxy() {
    let (folder, dead) = (TempFolder::new("dead-proxy"), ClosedPort::new());
    let text = format!(
        "{QUICK}agent.name = \"bot\"\nagent.url = \"http://a.test/\"\nagent.email = \"a@a.test\"\n\
         proxy.url = \"http://{}\"\nproxy.names = \"proxy\"\n",
        dead.addr()
    );
    let (dir, config) = (folder.at("crawl"), folder.file("config.toml", &text));
    let mut crawl = start(&["crawl", "http://a.test/", "http://b.test/", "--dir", &dir, "-c", &config]);
    let what = format!("the proxy (proxy.url) cannot be reached ({})", dead.addr());
    let outage = format!("It waits: fetching is paused because our own network does not work: {what}.");
    // A failure may count before the outage is seen.
    let counted = format!("It waits: a.test: robots.txt: {what}, try 2 of 5 in N min.");
    wait_for_reason(&mut crawl, &dir, "http://a.test/", &[&outage, &counted]);
    end(crawl);
    let at_rest = format!("It waits: a.test: robots.txt: {what}, after 1 of 5 tries.");
    let said = why(&dir, "http://a.test/");
    assert!([outage, at_rest].contains(&said), "{said}");
}

#[test]
fn a_dead_name_server() {
    let folder = TempFolder::new("dead-names");
    let nobody = UdpSocket::bind("127.0.0.1:0").expect("a port");
    // It is bound, so it is silent.
    let addr = nobody.local_addr().expect("its address");
    let text = format!("{QUICK}dns.servers = [\"{addr}\"]\ndns.timeout = \"1s\"\n");
    let (dir, config) = (folder.at("crawl"), folder.file("config.toml", &text));
    let mut crawl = start(&["crawl", "http://a.test/", "--dir", &dir, "-c", &config]);
    let what = format!("no name server answers ({addr} does not answer)");
    let outage = format!("It waits: fetching is paused because our own network does not work: names: {what}.");
    let counted = format!("It waits: a.test: name: {what}, try 2 of 5 in N s.");
    wait_for_reason(&mut crawl, &dir, "http://a.test/", &[&outage, &counted]);
    end(crawl);
}

/// A host that needs no name is asked all the same.
#[test]
fn a_dead_name_server_holds_up_names_alone() {
    let folder = TempFolder::new("names-alone");
    let nobody = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = asked.clone();
    // Pages without end, each of which links to the next.
    let (site, _) = server(move |mut stream, _| {
        while read_request(&mut stream).is_some() {
            let body = format!("<a href=/{}>next</a>", counter.fetch_add(1, Ordering::SeqCst));
            let head = format!("Content-Type: text/html\r\nContent-Length: {}\r\n", body.len());
            let _ = stream.write_all(format!("HTTP/1.1 200 OK\r\n{head}\r\n{body}").as_bytes());
        }
    });
    let text = format!(
        "crawl.shards = 1\npoliteness.host_delay = \"250ms\"\npoliteness.response_factor = 0\ndns.timeout = \"1s\"\n\
         dns.servers = [\"{}\"]\n",
        nobody.local_addr().expect("its address")
    );
    let (dir, config) = (folder.at("crawl"), folder.file("config.toml", &text));
    let seed = format!("http://{site}/");
    let mut crawl = start(&["crawl", &seed, "http://a.test/", "--dir", &dir, "-c", &config]);
    crawl.wait_for(": hosts with known addresses continue");
    let before = asked.load(Ordering::SeqCst);
    crawl.wait_until("more pages", || asked.load(Ordering::SeqCst) >= before + 20);
    let held = why(&dir, "http://a.test/");
    assert!(held.starts_with("It waits: fetching is paused because our own network does not work: names: "), "{held}");
    let asked_on = why(&dir, "127.0.0.1");
    assert!(asked_on.contains(" of 127.0.0.1 waiting") && !asked_on.contains("network"), "{asked_on}");
    // Lists say it behind their last line.
    for list in [&["urls", &dir][..], &["urls", &dir, "--causes"], &["hosts", &dir], &["seeds", &dir]] {
        let told = run(list).err;
        assert!(told.contains(held.trim_start_matches("It waits: ").trim_end_matches('.')), "{list:?}: {told}");
    }
    end(crawl);
    assert!(!run(&["hosts", &dir]).err.contains("network"), "no crawl waits any more");
}

/// The server answers, but not for this name.
#[test]
fn a_name_that_no_server_can_tell_of() {
    let (folder, live) = (TempFolder::new("servfail"), site());
    let names = NameServer::start(move |question, message| {
        if question.name().to_ascii() == "bad.test." {
            message.metadata.response_code = ResponseCode::ServFail;
        } else if question.query_type() == RecordType::A {
            let local = A([127, 0, 0, 1].into());
            message.add_answer(Record::from_rdata(question.name().clone(), 60, RData::A(local)));
        }
        Reply::Message
    });
    let text = format!("{QUICK}dns.servers = [\"{}\"]\n", names.addr);
    let (dir, config) = (folder.at("crawl"), folder.file("config.toml", &text));
    let (one, other) = (format!("http://live.test:{}/", live.port()), "http://bad.test/");
    let mut crawl = start(&["crawl", &one, other, "--dir", &dir, "-c", &config]);
    let expected = format!(
        "It waits: bad.test: name: the name servers answer with an error (SERVFAIL of {}), try 2 of 5 in N s.",
        names.addr
    );
    wait_for_reason(&mut crawl, &dir, other, &[&expected]);
    end(crawl);
}

#[test]
fn a_login_a_cut_page_and_what_is_no_http() {
    let (folder, live) = (TempFolder::new("pages"), site());
    let url = |path: &str| format!("http://{live}{path}");
    let text = format!("{QUICK}fetch.body_bytes_max = \"100KiB\"\npoliteness.retries_max = 0\n");
    let (dir, config) = (folder.at("crawl"), folder.file("config.toml", &text));
    let seeds = ["/login", "/long", "/short", "/odd", "/1"].map(url);
    let mut arguments = vec!["crawl", "--dir", &dir, "-c", &config];
    arguments.extend(seeds.iter().map(String::as_str));
    run(&arguments).expect(0);
    let [login, long, short, odd, page] = &seeds;
    let between = |url: &str, start: &str, end: &str| {
        let answer = why(&dir, url);
        assert!(answer.starts_with(start) && answer.ends_with(end), "{answer}");
    };
    between(login, "It was requested, and returned status 401 at ", ": it requires a login (http.auth).");
    between(
        long,
        "It was fetched at ",
        ", with status 200, cut at a limit of length (fetch.body_bytes_max, fetch.body_wire_bytes_max or fetch.decode_ratio_max).",
    );
    between(short, "It was fetched at ", ", with status 200, cut off: the connection ended before the page did.");
    between(page, "It was fetched at ", ", with status 200.");
    for (url, cause) in [(long, "200 cut-length"), (short, "200 cut-disconnect"), (page, "200"), (login, "401")] {
        assert!(line("urls", &dir, url).starts_with(&format!("fetched\t{cause}\t1\t")), "{}", line("urls", &dir, url));
        let listed = run(&["store", "ls", &dir]).expect(0).out;
        let status =
            listed.lines().find(|line| line.ends_with(&format!("\t{url}"))).and_then(|line| line.split('\t').nth(1));
        assert_eq!(status, Some(cause), "{listed}");
    }
    // The host has done well since, and it is still known how this one failed.
    let what = format!(
        "{live}: not an HTTP/1.x response (malformed response head: status is not three digits from 100 to 999)"
    );
    let answer = why(&dir, odd);
    assert!(answer.ends_with(&format!("(http-malformed): {what}. `crawl --retry-failed` retries it.")), "{answer}");
    assert!(line("urls", &dir, odd).ends_with(&format!("\t{odd}\t{what}")), "{}", line("urls", &dir, odd));
    let alone = folder.at("alone");
    run(&["crawl", "--dir", &alone, "-c", &config, odd]).expect(3).says(&[&format!(
        "{odd}: http-malformed: 127.0.0.1:{}: not an HTTP/1.x response (malformed response head: status is not \
         three digits from 100 to 999)",
        live.port()
    )]);
    let answer = why(&alone, odd);
    assert!(
        answer.contains("(http-malformed): ") && answer.contains("(malformed response head: status is not"),
        "{answer}"
    );
}

#[test]
fn a_certificate_of_its_own() {
    for (is_authority, cause, what) in [
        (
            false,
            "tls-certificate-issuer",
            "its certificate is self-signed or its issuer is not trusted; tls.ca_files adds issuers, \
             tls.certificates = \"record\" takes any",
        ),
        (
            true,
            "tls-certificate",
            "its certificate is not acceptable; tls.certificates = \"record\" takes any (it is a CA certificate \
             (CA:TRUE), which a server may not use)",
        ),
    ] {
        let (folder, (addr, _)) =
            (TempFolder::new("self-signed"), secure_server_of(certificates::self_signed("localhost", is_authority)));
        let (dir, config) = (folder.at("crawl"), folder.file("config.toml", QUICK));
        let seed = format!("https://localhost:{}/", addr.port());
        let hosts = "dns.hosts={ localhost = [\"127.0.0.1\"] }";
        let reason = format!("localhost:{}: robots.txt: {what}", addr.port());
        let ended = run(&["crawl", &seed, "--dir", &dir, "-c", &config, "--set", hosts]).expect(3);
        ended.says(&[&format!("{seed}: {cause}: {reason}")]);
        let answer = why(&dir, &seed);
        assert!(answer.contains(&format!("({cause}): {reason}. ")), "{answer}");
        assert!(line("urls", &dir, &seed).ends_with(&format!("\t{seed}\t{reason}")));
    }
}

/// A server that is slow is asked less often than is configured, and that is what `hosts` says.
#[test]
fn hosts_tell_the_delay_in_force_and_how_slow_they_are() {
    let slow = server(|mut stream, _| {
        while let Some(request) = read_request(&mut stream) {
            std::thread::sleep(Duration::from_millis(300));
            let body = if request.starts_with("GET / ") { "<a href=/1>1</a><a href=/2>2</a>" } else { "ok" };
            let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n", body.len());
            if stream.write_all((head + body).as_bytes()).is_err() {
                return;
            }
        }
    });
    let (folder, quick) = (TempFolder::new("delay"), site());
    let text = "crawl.shards = 1\npoliteness.host_delay = \"100ms\"\npoliteness.slow_start = 1\npoliteness.response_factor = 4\n\
                [dns.hosts]\n\"slow.test\" = [\"127.0.0.1\"]\n\"quick.test\" = [\"127.0.0.1\"]\n";
    let (dir, config) = (folder.at("crawl"), folder.file("config.toml", text));
    let seeds = [format!("http://quick.test:{}/", quick.port()), format!("http://slow.test:{}/", slow.0.port())];
    run(&["crawl", "--dir", &dir, "-c", &config, &seeds[0], &seeds[1]]).expect(0);
    let listed = run(&["hosts", &dir, "--sort", "slow", "--json"]).expect(0).out;
    let hosts: Vec<serde_json::Value> = listed.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let millis = |at: usize, name: &str| hosts[at][name].as_u64().expect("milliseconds");
    assert_eq!((&hosts[0]["host"], &hosts[1]["host"]), (&"slow.test".into(), &"quick.test".into()), "{listed}");
    assert!((300..900).contains(&millis(0, "response_ms")) && millis(1, "response_ms") < 300, "{listed}");
    assert!((1_200..4_000).contains(&millis(0, "delay_ms")) && millis(1, "delay_ms") < 1_200, "{listed}");
    assert_eq!((&hosts[0]["last_status"], &hosts[0]["trouble"]), (&200.into(), &serde_json::Value::Null), "{listed}");
}

/// Whoever says who it is may not connect to this machine: that is told with its key, and with what admits hosts of
/// one's own.
#[test]
fn an_address_of_one_s_own() {
    let (folder, live) = (TempFolder::new("own-address"), site());
    let agent = "agent.name = \"bot\"\nagent.url = \"http://a.test/\"\nagent.email = \"a@a.test\"\n";
    let (dir, config) = (folder.at("crawl"), folder.file("config.toml", &format!("{QUICK}{agent}")));
    let seed = format!("http://{live}/");
    let reason = format!(
        "{live}: robots.txt: its address is forbidden by fetch.private_addresses (127.0.0.1: \"deny\"; \"loopback\" admits loopback, \
         \"allow\" permits all, mine = true in [[politeness.host]] your own hosts)"
    );
    let ended = run(&["crawl", &seed, "--dir", &dir, "-c", &config]).expect(3);
    ended.says(&[&format!("{seed}: address-forbidden: {reason}"), &format!("  {reason}\n")]);
    let answer = why(&dir, &seed);
    assert!(answer.contains(&format!("(address-forbidden): {reason}. ")), "{answer}");
    assert!(why(&dir, "127.0.0.1").ends_with(&format!(": {reason}.")), "{}", why(&dir, "127.0.0.1"));
    for (name, setting) in [
        ("mine", "politeness.host=[{ match = \"127.0.0.1\", mine = true }]"),
        ("allowed", "fetch.private_addresses=loopback"),
    ] {
        let json = run(&["crawl", &seed, "--dir", &folder.at(name), "-c", &config, "--set", setting, "--json", "-"])
            .expect(0)
            .json();
        assert_eq!((&json["pages"], &json["failures"]["address-forbidden"]), (&4.into(), &0.into()), "{json}");
    }
    // A line for another host admits nothing.
    let other = "politeness.host=[{ match = \"mine.test\", mine = true }]";
    run(&["crawl", &seed, "--dir", &folder.at("other"), "-c", &config, "--set", other]).expect(3).says(&[&reason]);
}

#[test]
fn a_quiet_crawl_says_what_went_wrong_alone() {
    let (folder, live, dead) = (TempFolder::new("quiet"), site(), ClosedPort::new());
    let config = folder.file("config.toml", &format!("{QUICK}robots.retries_max = 0\n"));
    let crawl = |seed: &str, dir: &str, code| {
        let json = folder.at("summary.json");
        let ended =
            run(&["crawl", seed, "--dir", &folder.at(dir), "-c", &config, "--quiet", "--json", &json]).expect(code);
        assert!(ended.out.is_empty() && std::fs::read_to_string(json).expect("JSON").contains("\"ended\""));
        ended.err
    };
    assert_eq!(crawl(&format!("http://{live}/"), "live", 0), "");
    let seed = format!("http://{}/", dead.addr());
    let expected = format!(
        "ringcrawl: no seed gave a page:\nringcrawl: {seed}: robots-unreachable: {}: robots.txt: connection refused\n",
        dead.addr()
    );
    assert_eq!(crawl(&seed, "dead", 3), expected);
    // Out of time while the seed waits for its next try.
    let waits = format!(
        "ringcrawl: no seed gave a page:\nringcrawl: {seed}: waits: {}: robots.txt: connection refused, after ",
        dead.addr()
    );
    let in_time = ["crawl", &seed, "--dir", &folder.at("time"), "--time-max", "2s", "--quiet"];
    let ended = run(&[&in_time[..], &["--set", "fetch.private_addresses=loopback"]].concat()).expect(3);
    assert!(ended.err.starts_with(&waits), "{ended:#?}");
    assert!(crawl("http://[b/", "none", 2).contains("seed 1: "), "mistakes are told");
}

#[test]
fn two_crawls_on_one_machine_are_told_of_memory() {
    let (folder, dead) = (TempFolder::new("crowd"), ClosedPort::new());
    let config = folder.file("config.toml", QUICK);
    let seed = format!("http://{}/", dead.addr());
    let (one, two) = (folder.at("one"), folder.at("two"));
    let mut first = start(&["crawl", &seed, "--dir", &one, "-c", &config]);
    first.wait_for("memory: at most ");
    let mut second = start(&["crawl", &seed, "--dir", &two, "-c", &config]);
    second.wait_for("memory: at most ");
    std::thread::sleep(Duration::from_millis(300));
    let said = end(second);
    // A control group of the test's own bounds it as well.
    if std::fs::read_to_string("/sys/fs/cgroup/memory.max").is_ok_and(|max| max.trim() != "max") {
        return skip("a control group bounds the memory");
    }
    assert!(said.contains("memory: another crawl runs on this machine (process "), "{said}");
    assert!(said.contains("set crawl.ram_bytes_max for each"), "{said}");
    end(first);
}

/// What the first run wrote down is of the future; no rest lasts longer for that, and `why` says what happened.
#[test]
fn a_clock_that_was_set_back() {
    let (folder, live) = (TempFolder::new("clock"), site());
    let Some(library) = clock_library(&folder) else { return skip("no C compiler: the clock cannot be set") };
    let (dir, config) = (folder.at("crawl"), folder.file("config.toml", QUICK));
    let seeds = ["/busy", "/1"].map(|path| format!("http://{live}{path}"));
    let mut command = Command::new(RINGCRAWL);
    command.env("LD_PRELOAD", &library).env("CLOCK_AHEAD", (30 * 86_400).to_string());
    command.args(["crawl", "--dir", &dir, "-c", &config, &seeds[0], &seeds[1]]);
    let mut crawl = Process::start(&mut command);
    crawl.wait_with_patience(PATIENCE, "the host's rest", || {
        std::thread::sleep(Duration::from_millis(100));
        run(&["hosts", &dir]).out.contains("Z\t127.0.0.1\t")
    });
    end(crawl);
    let expected = "It waits: the clock is 30 days behind the crawl's last log entry: it was set back; its host rests no longer than \
                    intended.";
    assert_eq!(why(&dir, &seeds[1]), expected);
    let rest = run(&["why", &seeds[1], "--dir", &dir, "--json"]).expect(0).json();
    let by: Vec<&str> =
        rest["holds"].as_array().expect("holds").iter().filter_map(|hold| hold["by"].as_str()).collect();
    assert_eq!(by[..3], ["clock", "not-running", "rest"], "{rest}");
}

/// A library that puts the wall clock ahead by the seconds of CLOCK_AHEAD.
fn clock_library(folder: &TempFolder) -> Option<String> {
    let source = folder.file(
        "clock.c",
        "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stdlib.h>\n#include <time.h>\n\
         int clock_gettime(clockid_t id, struct timespec *now) {\n\
         static int (*real)(clockid_t, struct timespec *);\n\
         if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, \"clock_gettime\");\n\
         int result = real(id, now);\n\
         const char *ahead = getenv(\"CLOCK_AHEAD\");\n\
         if (id == CLOCK_REALTIME && ahead) now->tv_sec += atol(ahead);\n\
         return result;\n}\n",
    );
    let library = folder.at("clock.so");
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o", &library, &source, "-ldl"]).status();
    built.is_ok_and(|status| status.success()).then_some(library).filter(|library| File::open(library).is_ok())
}
