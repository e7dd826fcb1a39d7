//! Outages of our own network: name servers that fall silent, a web that does, connections that are refused, a proxy that
//! is gone, a resolver that was never there or has nobody to ask.
//!
//! Decides: the web is a process that is stopped, or killed and started again on its ports. Each outage lasts until the
//! crawl has said that it waits, and some seconds more: longer than the tries of a URL would take. Afterwards nothing is
//! missing, and nothing has failed. Probes come every two seconds, so that half a minute is enough on a busy machine.

use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hickory_proto::op::ResponseCode;
use hickory_proto::rr::rdata::A;
use hickory_proto::rr::{RData, Record, RecordType};
use ringcrawl_base::TempFolder;
use ringcrawl_web::truth::{Truth, reachable};
use ringcrawl_web::{Model, ModelConfig};
use serde_json::Value;

use crate::rig::harvest::{Verdict, open_files, stored};
use crate::rig::names::{NameServer, Reply};
use crate::rig::program::{Ended, Process, run, start};
use crate::rig::socks_proxy::SocksProxy;
use crate::rig::web::WebProcess;

/// Times so short that a URL is given up within three seconds, were it not for the breaker.
const LINES: &str = "\
politeness.site_delay = \"0s\"
politeness.ip_delay = \"0s\"
politeness.retry_delay = \"50ms\"
politeness.host_failures_max = 4
robots.retry_delay = \"1s\"
fetch.connect_timeout = \"1s\"
fetch.tls_timeout = \"1s\"
fetch.first_byte_timeout = \"1s\"
fetch.deadline = \"2s\"
dns.timeout = \"1s\"
outage.probe_max = \"2s\"
crawl.shards = 2
";
/// How large a trial's web is, and how long its outage lasts.
struct Size {
    sites: u32,
    pages: u64,
    /// After that the outage begins: what a quarter of all pages takes in the store.
    stored_bytes: u64,
    /// How long it lasts after it was noticed.
    lasts: Duration,
    /// So that the largest site takes seconds, and not all of the time.
    host_delay: &'static str,
}

/// A large web and an outage of so many seconds with `RINGCRAWL_OUTAGE_SECONDS`, or else small and short ones.
fn size() -> Size {
    let seconds = std::env::var("RINGCRAWL_OUTAGE_SECONDS").ok().and_then(|text| text.parse().ok());
    match seconds.map(Duration::from_secs) {
        Some(lasts) => Size { sites: 600, pages: 16_000, stored_bytes: 7_000_000, lasts, host_delay: "20ms" },
        None => {
            Size { sites: 40, pages: 240, stored_bytes: 100_000, lasts: Duration::from_secs(4), host_delay: "200ms" }
        }
    }
}

/// How long after its end fetching goes on at the latest.
const NOTICED_WITHIN: Duration = Duration::from_secs(30);
const OF_SITES: &str = "sites failed: fetching is paused";
const OF_NAMES: &str = "no name server has answered for";

/// A web as a process, what it serves, and a folder for a crawl of it.
struct Trial {
    folder: TempFolder,
    ports: [String; 3],
    web: Option<WebProcess>,
    seed: String,
    truth: Truth,
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener.local_addr().expect("its address").port()
}

impl Trial {
    /// A web on ports of its own, which does not run yet.
    fn new(name: &str) -> Trial {
        let ports = [
            free_port(),
            free_port(),
            UdpSocket::bind("127.0.0.1:0").expect("a port").local_addr().expect("it").port(),
        ];
        let model = ModelConfig {
            sites: size().sites,
            pages: size().pages,
            addresses: 1,
            https_share: 0.0,
            http_port: ports[0],
            https_port: ports[1],
            ..ModelConfig::default()
        };
        let model = Model::new(model).expect("a web");
        let seeds = model.seeds(1);
        let truth = reachable(&model, &seeds).expect("the web has an end");
        let seed = seeds.first().map(ToString::to_string).expect("a seed");
        Trial { folder: TempFolder::new(name), ports: ports.map(|port| port.to_string()), web: None, seed, truth }
    }

    /// Starts the web.
    fn serve(&mut self) -> &mut WebProcess {
        let [http, https, dns] = &self.ports;
        let (sites, pages) = (size().sites.to_string(), size().pages.to_string());
        let web = WebProcess::start_with(&[
            "--sites",
            &sites,
            "--pages",
            &pages,
            "--addresses",
            "1",
            "--https-share",
            "0",
            "--http-port",
            http,
            "--https-port",
            https,
            "--dns-port",
            dns,
        ]);
        self.web.insert(web)
    }

    /// Starts a crawl of it by the name server at `dns`.
    fn crawl(&self, dns: &str, more: &str) -> Process {
        let delay = size().host_delay;
        let head = format!("version = 1\ndns.servers = [\"{dns}\"]\npoliteness.host_delay = \"{delay}\"");
        let config = self.folder.file("config.toml", &format!("{head}\n{LINES}{more}\n"));
        start(&["crawl", &self.seed, "--dir", &self.folder.at("crawl"), "-c", &config, "--json", "-"])
    }

    fn own_dns(&self) -> String {
        format!("127.0.0.1:{}", self.ports[2])
    }

    /// Waits until so much was stored that more sites have answered than make a verdict.
    fn wait_for_pages(&self, crawl: &mut Process) {
        let stored = || {
            let folders = [0, 1].map(|shard| self.folder.at(&format!("crawl/shard-{shard:02}/segments")));
            let files = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
            files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum::<u64>()
        };
        crawl.wait_until("some pages", || stored() > size().stored_bytes);
    }

    /// The crawl is to notice that nothing answers, by one of these causes, and `end` ends that after a while.
    fn sit_out(&mut self, mut crawl: Process, causes: &[&str], end: impl FnOnce(&mut Trial)) -> Ended {
        crawl.wait_for("fetching is paused");
        std::thread::sleep(size().lasts);
        end(self);
        let over = Instant::now();
        crawl.wait_for("has ended: fetching continues");
        let noticed = over.elapsed();
        println!("it was noticed after {:.1} s that the outage is over", noticed.as_secs_f64());
        assert!(noticed < NOTICED_WITHIN, "it was noticed after {noticed:?} that the outage is over");
        let ended = crawl.end().expect(0);
        assert!(causes.iter().any(|cause| ended.err.contains(cause)), "none of {causes:?}: {ended:#?}");
        self.check(&ended.json());
        ended
    }

    /// Everything is there, once, and nothing has failed but what robots.txt forbids.
    fn check(&self, json: &Value) {
        assert_eq!(json["ended"], "finished");
        let failures = json["failures"].as_object().expect("failures");
        let failed: Vec<_> = failures.iter().filter(|(name, count)| *name != "robots-denied" && **count != 0).collect();
        assert!(failed.is_empty(), "{failed:?}");
        assert!(json["outages"].as_u64().is_some_and(|outages| outages >= 1), "{json:#}");
        let seconds = json["outage_seconds"].as_f64().expect("seconds");
        assert!(seconds >= size().lasts.as_secs_f64(), "{seconds} s of outage");
        let dir = self.folder.at("crawl");
        assert_eq!(open_files(&dir), [""; 0]);
        Verdict::of(&stored(&dir), &self.truth).expect_perfect();
        run(&["store", "verify", &dir]).expect(0);
    }
}

#[test]
fn name_server_and_web_stop_for_a_while() {
    let mut trial = Trial::new("outage-all");
    trial.serve();
    let mut crawl = trial.crawl(&trial.own_dns(), "");
    trial.wait_for_pages(&mut crawl);
    trial.web.as_mut().expect("a web").signal("STOP");
    trial.sit_out(crawl, &[OF_NAMES, OF_SITES], |trial| trial.web.as_mut().expect("a web").signal("CONT"));
}

#[test]
fn the_web_stops_alone() {
    let mut trial = Trial::new("outage-web");
    trial.serve();
    let names = NameServer::pointing_to(Ipv4Addr::new(127, 1, 0, 1));
    let mut crawl = trial.crawl(&names.addr.to_string(), "");
    trial.wait_for_pages(&mut crawl);
    trial.web.as_mut().expect("a web").signal("STOP");
    trial.sit_out(crawl, &[OF_SITES], |trial| trial.web.as_mut().expect("a web").signal("CONT"));
}

#[test]
fn connections_are_refused_for_a_while() {
    let mut trial = Trial::new("outage-refused");
    trial.serve();
    let names = NameServer::pointing_to(Ipv4Addr::new(127, 1, 0, 1));
    let mut crawl = trial.crawl(&names.addr.to_string(), "");
    trial.wait_for_pages(&mut crawl);
    trial.web = None;
    trial.sit_out(crawl, &[OF_SITES], |trial| {
        trial.serve();
    });
}

#[test]
fn a_resolver_that_is_dead_from_the_start_is_waited_for() {
    for is_silent in [false, true] {
        let mut trial = Trial::new("outage-resolver");
        // Nobody listens, or somebody does who never says a word.
        let socket = is_silent.then(|| UdpSocket::bind(trial.own_dns()).expect("the port"));
        let crawl = trial.crawl(&trial.own_dns(), "");
        trial.sit_out(crawl, &[OF_NAMES], |trial| {
            drop(socket);
            trial.serve();
        });
    }
}

/// It lives, its own network is down, and it says SERVFAIL to everything, or REFUSED.
#[test]
fn a_resolver_that_has_nobody_to_ask_is_waited_for() {
    for code in [ResponseCode::ServFail, ResponseCode::Refused] {
        let mut trial = Trial::new("outage-servfail");
        trial.serve();
        let works = Arc::new(AtomicBool::new(false));
        let is_up = Arc::clone(&works);
        let names = NameServer::start(move |question, message| {
            if !is_up.load(Ordering::SeqCst) {
                message.metadata.response_code = code;
            } else if question.query_type() == RecordType::A {
                let address = RData::A(A(Ipv4Addr::new(127, 1, 0, 1)));
                message.add_answer(Record::from_rdata(question.name().clone(), 60, address));
            }
            Reply::Message
        });
        let crawl = trial.crawl(&names.addr.to_string(), "");
        trial.sit_out(crawl, &["the name servers have returned only errors for"], |_| {
            works.store(true, Ordering::SeqCst)
        });
    }
}

/// Who starts a crawl again while the web is still away loses nothing by that, nor who drains it.
#[test]
fn a_crawl_can_be_stopped_and_resumed_in_an_outage() {
    let mut trial = Trial::new("outage-resume");
    trial.serve();
    let names = NameServer::pointing_to(Ipv4Addr::new(127, 1, 0, 1));
    let mut crawl = trial.crawl(&names.addr.to_string(), "robots.retries_max = 1");
    trial.wait_for_pages(&mut crawl);
    trial.web.as_mut().expect("a web").signal("STOP");
    crawl.wait_for("fetching is paused");
    crawl.signal("TERM");
    assert_eq!(crawl.end().expect(0).json()["ended"], "stopped by signal");
    let crawl = trial.crawl(&names.addr.to_string(), "robots.retries_max = 1");
    trial.sit_out(crawl, &[OF_SITES], |trial| trial.web.as_mut().expect("a web").signal("CONT"));
}

#[test]
fn a_proxy_that_is_gone_is_waited_for() {
    let mut trial = Trial::new("outage-proxy");
    trial.serve();
    let proxy = SocksProxy::start(0);
    let port = proxy.addr.port();
    let config = format!(
        "proxy.url = \"socks5://127.0.0.1:{port}\"\nagent.name = \"test\"\nagent.url = \"http://a.test/\"\nagent.email = \"a@a.test\"\nfetch.private_addresses = \"loopback-only\"\n"
    );
    let mut crawl = trial.crawl(&trial.own_dns(), &config);
    trial.wait_for_pages(&mut crawl);
    drop(proxy);
    let mut again = None;
    trial.sit_out(crawl, &["the proxy has been unreachable for"], |_| again = Some(SocksProxy::start(port)));
}

#[test]
fn an_outage_that_lasts_too_long_ends_the_crawl_which_can_be_resumed() {
    let mut trial = Trial::new("outage-wait-max");
    let wait_max = "outage.wait_max = \"5s\"";
    let ended = trial.crawl(&trial.own_dns(), wait_max).end().expect(1);
    let ended = ended.says(&["no name server has answered for", "outage.wait_max", "the same command continues"]);
    let json = ended.json();
    assert_eq!((&json["ended"], &json["outages"]), (&"failed".into(), &1.into()));
    assert!(json["outage_seconds"].as_f64().is_some_and(|seconds| seconds >= 5.0), "{json:#}");
    trial.serve();
    let json = trial.crawl(&trial.own_dns(), wait_max).end().expect(0).json();
    assert_eq!((&json["ended"], &json["outages"]), (&"finished".into(), &0.into()));
    Verdict::of(&stored(&trial.folder.at("crawl")), &trial.truth).expect_perfect();
}

/// Dead seeds, by a name server that lives: there is nobody to wait for.
#[test]
fn a_crawl_of_dead_hosts_ends() {
    let folder = TempFolder::new("outage-none");
    let (names, port) = (NameServer::pointing_to(Ipv4Addr::LOCALHOST), free_port());
    let urls: Vec<String> = (0..40).map(|number| format!("http://h{number}.test:{port}/")).collect();
    let lines = format!("version = 1\ndns.servers = [\"{}\"]\n{LINES}robots.retries_max = 1\n", names.addr);
    let (dir, config) = (folder.at("crawl"), folder.file("config.toml", &lines));
    for count in [1, urls.len()] {
        let seeds = folder.file("seeds.txt", &urls[..count].join("\n"));
        let ended = run(&["crawl", "--seeds", &seeds, "--dir", &dir, "-c", &config, "--json", "-"]).expect(3);
        let json = ended.json();
        assert_eq!((&json["ended"], &json["outages"]), (&"finished".into(), &0.into()), "{ended:#?}");
        let _ = std::fs::remove_dir_all(&dir);
    }
}
