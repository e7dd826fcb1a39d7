//! The hostile web: every fault at once, served by one process and crawled by another.
//!
//! Decides: the crawl must end by itself and well; every URL that can be had is stored as the truth says, whole or cut
//! with the right mark, and every other one is counted under the name of its failure; every fault shows in the summary
//! under a name of its own kind; and the servers, not the crawler, say that its manners were good.
//! Limits: a machine so slow that a healthy server misses a timeout of seconds fails the test.

mod arena;
mod attackers;
mod bombs;
mod check;
mod closed_ports;
mod complaints;
mod crowd;
mod forbidden;
mod handshakes;
mod injection;
mod links;
mod memory;
mod names;
mod outage;
mod silent_names;
mod slow;
mod soak;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use ringcrawl_base::Failure;
use ringcrawl_config::Config;
use ringcrawl_web::faults::ending::Ending;
use ringcrawl_web::{Fault, Faults, Model, ModelConfig, truth};

use crate::rig::program::run;
use crate::rig::web::WebProcess;
use ringcrawl_base::TempFolder;

const SITES: u32 = 40;
const PAGES: u64 = 1_200;

/// Limits so short that a crawl takes half a minute, and so long that a busy machine keeps within them.
const CONFIG: &str = r#"
version = 1
politeness.host_delay = "0s"
politeness.site_delay = "0s"
politeness.ip_delay = "0s"
politeness.retries_max = 2
politeness.retry_delay = "100ms"
robots.retry_delay = "1s"
robots.retries_max = 1
dns.timeout = "5s"
fetch.first_byte_timeout = "8s"
fetch.deadline = "20s"
fetch.body_wire_bytes_max = "1MiB"
fetch.body_bytes_max = "900KiB"
scope.depth_max = 60
scope.url_bytes_max = "200B"
"#;

/// Where in the summary a fault shows.
fn shows_as(fault: Fault) -> &'static str {
    match fault {
        Fault::SlowFirstByte => "/failures/first-byte-timeout",
        Fault::DrippingBody => "/blemishes/body-timeout",
        Fault::ResetInHead => "/failures/reset",
        Fault::ResetInBody => "/blemishes/body-reset",
        Fault::ShortLength => "/blemishes/body-excess",
        Fault::LongLength => "/blemishes/body-short",
        Fault::BadChunk => "/blemishes/chunk-broken",
        Fault::EndlessBody => "/blemishes/body-over-limit",
        Fault::EndlessHead => "/failures/http-head-too-large",
        Fault::HugePage => "/blemishes/length-over-limit",
        Fault::GzipBomb => "/blemishes/decoded-over-limit",
        Fault::WrongType => "/blemishes/type-mismatch",
        Fault::RedirectLoop => "/blemishes/redirect-to-itself",
        Fault::RedirectChain => "/redirects_too_many",
        Fault::RetryAfter => "/blemishes/overloaded",
        Fault::Robots5xx => "/failures/robots-server-error",
        Fault::RobotsTimeout => "/failures/robots-unreachable",
        Fault::RobotsHuge => "/blemishes/robots-over-limit",
        Fault::DnsServfail => "/failures/dns-failed",
        Fault::DnsNxdomain => "/failures/dns-not-found",
        Fault::DnsTimeout => "/failures/dns-timeout",
        Fault::CertificateExpired => "/failures/tls-certificate-expired",
        Fault::CertificateWrongName => "/failures/tls-certificate-name",
        Fault::CertificateSelfSigned => "/failures/tls-certificate-issuer",
        Fault::SessionIds | Fault::Calendar | Fault::Facets | Fault::Versions | Fault::Mirrors => "/links_too_deep",
        Fault::PathTrap => "/links_too_long",
        Fault::Duplicates => "/duplicates",
        // Nothing is wrong with these, for a crawl that asks once.
        Fault::Changing => "/pages",
    }
}

/// Crawls from `seed` to the end; the summary.
fn crawl(seed: &str, dir: &str, config: &str) -> serde_json::Value {
    let ended = run(&["crawl", seed, "--dir", dir, "-c", config, "--shards", "2", "--json", "-"]).expect(0);
    assert!(!ended.err.contains("panicked"), "{}", ended.err);
    ended.json()
}

fn crawl_and_check(rng_seed: u64, spec: &str, https_share: f64, more: &str) -> serde_json::Value {
    println!("rng_seed {rng_seed}");
    let faults: Faults = spec.parse().expect("faults");
    let folder = TempFolder::new("hostile");
    let ca_file = folder.at("ca.pem");
    let numbers = [SITES.to_string(), PAGES.to_string(), rng_seed.to_string(), https_share.to_string()];
    let names = ["--sites", "--pages", "--rng-seed", "--https-share"];
    let pairs = names.into_iter().zip(&numbers).flat_map(|(name, number)| [name, number]);
    let web = WebProcess::start(&["--faults", spec].into_iter().chain(pairs).collect::<Vec<&str>>(), &ca_file);
    let dns = web.ready["dns"].as_str().expect("an address");
    let text = format!("{CONFIG}dns.servers = [\"{dns}\"]\ntls.ca_files = [{ca_file:?}]\n{more}\n");
    let config_file = folder.file("config.toml", &text);
    let config = Config::load(&config_file).expect("a configuration");
    let model = Model::new(ModelConfig {
        rng_seed,
        sites: SITES,
        pages: PAGES,
        http_port: web.port("http_port"),
        https_port: web.port("https_port"),
        faults,
        https_share,
        ..ModelConfig::default()
    })
    .expect("a model");
    let seeds = model.seeds(1);
    let truth = truth::reachable_by(&model, &seeds, &config).expect("a truth");

    let dir = folder.at("crawl");
    let summary = crawl(seeds[0].as_str(), &dir, &config_file);
    let report = web.stop();
    assert_eq!(summary["ended"], "finished", "{summary:#}");
    assert_eq!((&summary["queued"], &summary["in_flight"]), (&0.into(), &0.into()));

    let depth_max = usize::from(config.scope.depth_max);
    let mut harvest = check::stored(&dir, &config.fetch.limits());
    let wrongs = check::wrongs(&harvest, &truth, &model, depth_max);
    assert!(wrongs.is_empty(), "{} URLs are wrong:\n{}", wrongs.len(), wrongs.join("\n"));
    let once_more = check::once_more(&harvest, &truth);
    check::spoil(&mut harvest, &truth, &|what, spoiled| {
        assert!(!check::wrongs(spoiled, &truth, &model, depth_max).is_empty(), "nobody notices {what}");
    });
    run(&["store", "verify", &dir]).expect(0);

    let mut failures: BTreeMap<&str, u64> = Failure::ALL.iter().map(|failure| (failure.as_str(), 0)).collect();
    let mut again = 0;
    for ending in truth.faulty.values() {
        match ending {
            Ending::Failed { failure, requests } => {
                *failures.entry(failure.as_str()).or_default() += 1;
                again += u64::from(requests.saturating_sub(1));
            }
            Ending::Again { statuses, .. } => again += statuses.len() as u64 - 1,
            Ending::Cut { .. } => {}
        }
    }
    // These two have counters of their own.
    failures.remove(Failure::RobotsDenied.as_str());
    failures.remove(Failure::OverBudget.as_str());
    assert_eq!(summary["robots_denied"].as_u64(), Some(truth.denied.len() as u64), "{summary:#}");
    for (name, count) in &failures {
        assert_eq!(summary["failures"][name].as_u64(), Some(*count), "{name}: {summary:#}");
    }
    for fault in Fault::ALL.iter().copied().filter(|_| spec == "all") {
        let count = summary.pointer(shows_as(fault)).and_then(serde_json::Value::as_u64);
        assert!(count > Some(0), "{fault:?} does not show: {summary:#}");
        let is_of_names = matches!(fault, Fault::DnsServfail | Fault::DnsNxdomain | Fault::DnsTimeout);
        let asked = report["faults"][fault.as_str()].as_u64().unwrap_or(0);
        assert_eq!(asked > 0, !(is_of_names || fault.as_str().starts_with("certificate")), "{fault:?}: {report:#}");
    }

    let watch = &report["watch"];
    let number = |value: &serde_json::Value| value.as_u64().expect("a number");
    for (name, value) in [
        ("denied", &report["denied"]),
        ("traps", &report["traps"]),
        ("before_robots", &watch["before_robots"]),
        ("before_retry_after", &watch["before_retry_after"]),
    ] {
        assert_eq!(number(value), 0, "{name}: {report:#}");
    }
    assert_eq!(number(&watch["host_in_flight_max"]), 1, "{report:#}");
    // Where a healthy server was late, it was asked again, and the summary says so.
    let (double, retries) = (number(&watch["double_fetches"]), number(&summary["retries"]));
    assert!(again <= double && double <= retries + once_more, "{again} {double} {retries} {once_more}: {report:#}");
    summary
}

#[test]
fn a_crawl_of_every_fault_has_what_can_be_had() {
    crawl_and_check(1, "all", 0.0, "");
}

/// The same faults below TLS, where a cut is one of records.
#[test]
fn a_crawl_of_every_fault_over_tls_has_what_can_be_had() {
    crawl_and_check(3, "all", 1.0, "");
}

/// Whoever wants pages more than proof of who sent them has them, and is told.
#[test]
fn bad_certificates_are_taken_when_they_are_to_be_recorded() {
    let spec = "certificate-expired=0.2,certificate-wrong-name=0.2,certificate-self-signed=0.2";
    let summary = crawl_and_check(7, spec, 0.5, "tls.certificates = \"record\"");
    // A root, three pages and what they link to, and robots.txt, of each host at least.
    assert!(summary["blemishes"]["certificate"].as_u64() >= Some(3 * 8), "{summary:#}");
    for name in ["tls-certificate-expired", "tls-certificate-name", "tls-certificate-issuer"] {
        assert_eq!(summary["failures"][name], 0, "{summary:#}");
    }
}

/// A host that gives each link a new session has one list behind all of them, for a crawl that knows sessions.
#[test]
fn session_ids_make_one_page_where_they_are_ignored() {
    let crawled = |more: &str| -> (Vec<String>, Vec<String>) {
        let folder = TempFolder::new("session-ids");
        let arguments = ["--faults", "session-ids=1", "--sites", "4", "--pages", "40", "--https-share", "0"];
        let web = WebProcess::start(&arguments, &folder.at("ca.pem"));
        let dns = web.ready["dns"].as_str().expect("an address");
        let config_file = folder.file("config.toml", &format!("{CONFIG}dns.servers = [\"{dns}\"]\n{more}\n"));
        let dir = folder.at("crawl");
        let summary = crawl(web.ready["seed"].as_str().expect("a seed"), &dir, &config_file);
        assert_eq!(summary["ended"], "finished", "{summary:#}");
        web.stop();
        // Ports differ from web to web.
        let path = |url: &String| url.split('/').skip(2).collect::<Vec<_>>().join("/");
        let name = |url: &String| {
            path(url).split_once(':').map(|(host, rest)| format!("{host}{}", &rest[rest.find('/').unwrap_or(0)..]))
        };
        check::stored(&dir, &Config::default().fetch.limits())
            .keys()
            .filter_map(name)
            .partition(|url| url.contains("/list?sid="))
    };
    let (lists, others) = crawled("");
    let (lists_by_key, others_by_key) = crawled("visited.session_ids = \"ignore\"");
    assert_eq!(others, others_by_key);
    assert!(lists.len() >= 4 * 40, "{}", lists.len());
    // The first of each host, under the address that it was found by.
    assert_eq!(lists_by_key.len(), 4, "{lists_by_key:?}");
    assert!(lists_by_key.iter().all(|list| lists.contains(list)), "{lists_by_key:?}");
}

#[test]
#[ignore = "long: twenty minutes of other webs, or RINGCRAWL_LONG_MINUTES"]
fn crawls_of_other_faulty_webs() {
    let minutes = std::env::var("RINGCRAWL_LONG_MINUTES").ok().and_then(|text| text.parse().ok()).unwrap_or(20);
    let (begun, mut rng_seed) = (Instant::now(), 10);
    while begun.elapsed() < Duration::from_secs(60 * minutes) {
        crawl_and_check(rng_seed, "all", 0.5, "");
        rng_seed += 1;
    }
    println!("{} webs", rng_seed - 10);
}
