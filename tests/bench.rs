//! `ringcrawl bench`, as an operator runs it, in short: whether it measures what it says, not how much.
//!
//! Every workload runs for a second or two with the real program, a real server process and real sockets; what is
//! asserted is what the workload means (a connection for each response, a handshake every so many) and that the parts
//! add up. No time is judged.

use serde_json::Value;

use crate::rig::hands::ALONE;
use crate::rig::program::{Ended, run};
use ringcrawl_base::TempFolder;

/// Runs it, in a folder of its own; the figures too when it wrote any.
fn bench(name: &str, arguments: &[&str]) -> (Ended, Option<Value>, TempFolder) {
    let _alone = ALONE.write().unwrap_or_else(|poisoned| poisoned.into_inner());
    let folder = TempFolder::new(name);
    let json = folder.at("figures.json");
    let ended = run(&[&["bench", "--dir", &folder.at(""), "--json", &json], arguments].concat());
    let figures = std::fs::read_to_string(&json).ok().map(|text| serde_json::from_str(&text).expect("JSON"));
    let _ = std::fs::remove_file(&json);
    (ended, figures, folder)
}

/// As `bench`, for a run that must succeed and leave nothing behind.
#[track_caller]
fn measured(name: &str, arguments: &[&str]) -> Value {
    let (ended, figures, folder) = bench(name, arguments);
    ended.expect(0);
    let left: Vec<_> =
        std::fs::read_dir(folder.path()).expect("a folder").flatten().map(|entry| entry.path()).collect();
    assert!(left.is_empty(), "{left:?}");
    figures.expect("figures")
}

#[track_caller]
fn number(figures: &Value, pointer: &str) -> f64 {
    let value = figures.pointer(pointer).unwrap_or_else(|| panic!("no {pointer} in {figures:#}"));
    value.as_f64().unwrap_or_else(|| panic!("{pointer} is {value} in {figures:#}"))
}

/// What must hold of every run.
#[track_caller]
fn check(figures: &Value) {
    for name in [
        "bottleneck",
        "bottleneck_means",
        "busy",
        "ceiling_per_second",
        "checks",
        "counters",
        "cpu_micros_per_page",
        "cpu_seconds",
        "ended",
        "failures",
        "format",
        "in_flight_mean",
        "latency_micros",
        "machine",
        "megabytes_per_second",
        "memory",
        "pages",
        "pages_per_cpu_second",
        "pages_per_second",
        "pages_per_second_per_core",
        "ring_operations_per_page",
        "seconds",
        "seen",
        "setting",
        "stages",
        "system_calls_missing",
        "system_calls_per_page",
        "version",
        "warm_up_seconds",
        "web",
    ] {
        assert!(figures.get(name).is_some(), "no {name} in {figures:#}");
    }
    assert!(number(figures, "/pages") > 0.0);
    assert_eq!(figures.get("failures"), Some(&serde_json::json!({})));
    assert!(number(figures, "/cpu_micros_per_page/all") > 0.0);
    let parts = number(figures, "/cpu_micros_per_page/user") + number(figures, "/cpu_micros_per_page/system");
    assert!((parts - number(figures, "/cpu_micros_per_page/all")).abs() < 0.01);
    let stages = figures.pointer("/stages/by_stage").and_then(Value::as_object).expect("stages");
    let shares: f64 = stages.values().filter_map(|stage| stage.get("share")?.as_f64()).sum();
    assert!((shares - 1.0).abs() < 1e-6, "{shares}");
    let sum = number(figures, "/stages/sum_of_thread_cpu");
    // Samples are taken by the clock: on a busy machine a second of them is off by a third.
    assert!((0.5..1.5).contains(&sum), "the stages are {sum} of the threads' CPU time: {figures:#}");
    for part in ["first_byte", "exchange"] {
        let of = |name: &str| number(figures, &format!("/latency_micros/{part}/{name}"));
        assert!(of("count") >= number(figures, "/pages"));
        assert!(
            of("p50") <= of("p90") && of("p90") <= of("p99") && of("p99") <= of("p99_9") && of("p99_9") <= of("max")
        );
    }
    // Either there is a number or there is a reason.
    let calls = [figures.get("system_calls_per_page"), figures.get("system_calls_missing")];
    assert_eq!(calls.iter().filter(|value| value.is_some_and(Value::is_null)).count(), 1, "{calls:?}");
    let per_core = figures.get("pages_per_second_per_core").expect("a member");
    let bottleneck = figures.get("bottleneck").and_then(Value::as_str);
    assert_eq!(per_core.is_null(), bottleneck != Some("shards"), "{bottleneck:?} {per_core}");
    assert!(number(figures, "/memory/connections_open") > 0.0);
}

const SHORT: [&str; 4] = ["--warm-up", "1s", "--time", "2s"];

fn short<'a>(more: &[&'a str]) -> Vec<&'a str> {
    SHORT.iter().copied().chain(more.iter().copied()).collect()
}

#[test]
fn small_pages_over_kept_connections() {
    let figures = measured("small", &short(&["--workload", "small", "--sites", "200"]));
    check(&figures);
    assert!(number(&figures, "/seen/responses_per_connection") > 4.0);
    assert_eq!(number(&figures, "/seen/coded_share"), 0.0);
}

#[test]
fn pages_as_the_web_has_them_on_several_shards() {
    let figures = measured("web", &short(&["--sites", "200", "--shards", "3"]));
    check(&figures);
    assert_eq!(number(&figures, "/setting/shards"), 3.0);
    assert!(number(&figures, "/seen/coded_share") > 0.99);
    assert!(number(&figures, "/counters/exchanged_in") > 0.0);
    assert!(number(&figures, "/megabytes_per_second/decoded") > 4.0 * number(&figures, "/megabytes_per_second/wire"));
}

#[test]
fn a_connection_for_each_response() {
    let figures = measured("new", &short(&["--workload", "new", "--sites", "200"]));
    check(&figures);
    let each = number(&figures, "/seen/responses_per_connection");
    assert!((0.8..1.2).contains(&each), "{each}");
}

#[test]
fn a_handshake_every_so_many_responses_resumed_or_not() {
    for (resumption, least, most) in [("on", 0.5, 1.0), ("off", 0.0, 0.0)] {
        let more = ["--workload", "tls", "--sites", "30", "--requests-per-connection", "5", "--resumption", resumption];
        let figures = measured(&format!("tls-{resumption}"), &short(&more));
        check(&figures);
        let each = number(&figures, "/seen/responses_per_handshake");
        assert!((3.5..6.5).contains(&each), "{each}");
        let resumed = number(&figures, "/seen/resumed_share");
        assert!((least..=most).contains(&resumed), "{resumption}: {resumed}");
        let full = number(&figures, "/counters/handshakes") - number(&figures, "/counters/resumed");
        let known = number(&figures, "/counters/chains_recognized");
        // A chain counts when it is checked, its handshake when it is over: some are in flight where the figures end.
        let in_flight = number(&figures, "/memory/connections_open");
        assert!((0.0..=full + in_flight).contains(&known), "{known} of {full}, {in_flight} open");
        if resumption == "off" {
            // All hosts of a site have one certificate, and come again and again.
            assert!(number(&figures, "/seen/chains_recognized_share") > 0.5);
            assert!(number(&figures, "/tls_micros_per_handshake") > 0.0);
        }
        assert!(number(&figures, "/latency_micros/tls/count") > 0.0);
    }
}

#[test]
fn delays_are_kept_as_the_server_sees_it() {
    // A busy machine answers slowly, and hosts that answer slowly rest longer.
    let more = ["--set", "politeness.host_delay=500ms", "--set", "politeness.response_factor=0"];
    let figures = measured("polite", &short(&[&["--workload", "polite", "--sites", "100"][..], &more].concat()));
    check(&figures);
    assert!(number(&figures, "/web/watch/host_idle_ms_min") >= 500.0);
    assert_eq!(number(&figures, "/web/watch/host_in_flight_max"), 1.0);
}

#[test]
fn runs_are_repeated_in_processes_of_their_own() {
    let more = ["--workload", "small", "--sites", "100", "--repeat", "2", "--sampler", "off"];
    let figures =
        measured("repeat", &["--warm-up", "500ms", "--time", "500ms"].iter().chain(&more).copied().collect::<Vec<_>>());
    let runs = figures.get("runs").and_then(Value::as_array).expect("runs");
    assert_eq!(runs.len(), 2);
    let pages: Vec<f64> = runs.iter().map(|run| number(run, "/pages")).collect();
    assert_eq!(number(&figures, "/median/pages"), (pages[0] + pages[1]) / 2.0);
    assert!(runs.iter().all(|run| run.get("stages") == Some(&Value::Null)));
}

#[test]
fn mistakes_are_named_and_nothing_is_begun() {
    for (arguments, named) in [
        (["--shards", "0"], "--shards"),
        (["--cpus", "4095"], "--cpus"),
        (["--web-cpus", "x"], "--web-cpus"),
        (["--time", "10"], "--time"),
        (["--warm-up", "soon"], "--warm-up"),
        (["--workload", "large"], "--workload"),
        (["--sites", "0"], "--sites"),
        (["--set", "fetch.deadline=never"], "fetch.deadline"),
        (["--set", "nothing"], "--set"),
    ] {
        let (ended, figures, _folder) = bench("mistakes", &arguments);
        ended.expect(2).says(&[named]);
        assert!(figures.is_none(), "{arguments:?}");
    }
    run(&["bench", "--dir", "/nowhere/at/all"]).expect(2).says(&["--dir"]);
}
