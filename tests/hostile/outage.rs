//! Hosts that answer, fall silent together, and answer again: the crawl must not take that for an outage of its own network.
//!
//! Decides: what counts is that there was no outage and that the victim had its pages; how much longer that took is printed.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::arena::{Arena, html, nothing, number};
use crate::rig::names::NameServer;

const ATTACKERS: usize = 20;
/// So long all of them answer, and so long none does.
const PHASE: Duration = Duration::from_millis(1_500);

/// The summary of a crawl of the victim, a few others and attackers, which are named like this; how long it took, and how often
/// the attackers were silent.
fn crawl(name: &str, attacker: impl Fn(usize) -> String, falls_silent: bool) -> (Value, Duration, usize) {
    let begun = Instant::now();
    let silences = Arc::new(AtomicUsize::new(0));
    let noted = Arc::clone(&silences);
    let arena = Arena::serving(name, move |stream: &mut TcpStream, host: &str, _, path: &str| {
        let is_silent = begun.elapsed().as_millis() / PHASE.as_millis() % 2 == 1;
        let response = match path {
            "/robots.txt" => nothing(),
            _ if host.starts_with("other") => html(""),
            _ if falls_silent && is_silent => {
                noted.fetch_add(1, Ordering::Relaxed);
                return;
            }
            "/" => html((0..80).map(|page| format!("<a href=/{page}>")).collect::<String>()),
            _ => html(""),
        };
        let _ = stream.write_all(&response);
    });
    let names = NameServer::pointing_to([127, 0, 0, 1].into());
    let hosts: Vec<String> =
        (0..ATTACKERS).map(attacker).chain((0..3).map(|number| format!("other{number}.test"))).collect();
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let delays = "politeness.host_delay = \"200ms\"\npoliteness.site_delay = \"0s\"\npoliteness.ip_delay = \"0s\"\n\
                  politeness.response_factor = 0\npoliteness.slow_start = 1";
    let process = arena.crawl(&names, &hosts, delays);
    (arena.stop_after_the_victim(process), begun.elapsed(), silences.load(Ordering::Relaxed))
}

fn is_no_outage(name: &str, attacker: impl Fn(usize) -> String + Copy) {
    let (_, alone, _) = crawl(name, attacker, false);
    let (summary, beside, silences) = crawl(name, attacker, true);
    println!("{name}: the victim had its pages in {alone:?} where they answer, in {beside:?} where they fall silent");
    assert!(silences >= ATTACKERS, "{silences}");
    assert_eq!((number(&summary, "/outages"), &summary["outage_seconds"]), (0, &Value::from(0.0)), "{summary}");
}

/// Names below a public suffix cost nothing: they are one witness.
#[test]
fn names_of_one_owner_that_fall_silent_together_are_no_outage() {
    is_no_outage("one-owner", |number| format!("a{number}.duckdns.org"));
}

/// Each with a domain of its own: one answer of another site says that the network is there.
#[test]
fn sites_that_fall_silent_together_are_no_outage_while_others_answer() {
    is_no_outage("many-owners", |number| format!("a{number}.test"));
}
