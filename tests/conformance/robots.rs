//! robots.txt against the suites of others: Google's, RFC 9309's own examples, real files with two oracles.

use std::collections::HashMap;
use std::io::Read;

use ringcrawl_robots::{Rules, path_of};
use serde::Deserialize;

use crate::rig::conformance;

const BODY_BYTES_MAX: usize = 512 * 1024;

#[derive(Deserialize)]
struct Case {
    #[serde(default)]
    id: String,
    robots_txt: Option<String>,
    robots_txt_hex: Option<String>,
    user_agent: String,
    #[serde(default)]
    url: String,
    #[serde(default)]
    allowed: bool,
    #[serde(default)]
    gpyrobotstxt: serde_json::Value,
    crawl_delay: Option<f64>,
}

impl Case {
    fn rules(&self) -> Option<Rules> {
        let body = match (&self.robots_txt, &self.robots_txt_hex) {
            (Some(text), _) => text.clone().into_bytes(),
            (None, Some(hex)) => hex
                .as_bytes()
                .chunks(2)
                .map(|two| u8::from_str_radix(str::from_utf8(two).unwrap(), 16).unwrap())
                .collect(),
            (None, None) => return None, // names a file that is not in the collection
        };
        Some(Rules::parse(&body, &self.user_agent, BODY_BYTES_MAX))
    }

    /// Google's parser does not decode `%62%61%7A` to `baz`.
    fn is_against_the_rfc(&self) -> bool {
        self.robots_txt.as_ref().is_some_and(|text| text.contains("%62%61%7A"))
            && self.url.ends_with("/foo/bar/baz")
            && !self.allowed
    }

    /// Whether our answer is the expected one; `None` when the case cannot be run.
    fn passes(&self) -> Option<bool> {
        Some(self.rules()?.allows(&path_of(&self.url)) == self.allowed)
    }
}

fn data(name: &str) -> Option<Vec<u8>> {
    Some(std::fs::read(conformance(&format!("robots/{name}"))?).expect("conformance data"))
}

fn cases(name: &str) -> Option<Vec<Case>> {
    Some(serde_json::from_slice(&data(name)?).unwrap())
}

/// The ids of the cases in which we differ.
fn departures(cases: &[Case]) -> Vec<&str> {
    cases.iter().filter(|case| case.passes() == Some(false)).map(|case| case.id.as_str()).collect()
}

#[test]
fn rfc_9309() {
    let Some(cases) = cases("rfc9309_cases.json") else { return };
    assert_eq!(departures(&cases), [""; 0]);
}

/// One expectation, that `Allow: /foo/bar/%62%61%7A` does not cover /foo/bar/baz, is the opposite of RFC 9309's
/// figure 4, and the RFC holds.
#[test]
fn google() {
    let Some(cases) = cases("google_robots_test_cc.json") else { return };
    let expected: Vec<&str> =
        cases.iter().filter(|case| case.is_against_the_rfc()).map(|case| case.id.as_str()).collect();
    assert!(expected.len() <= 1);
    assert_eq!(departures(&cases), expected);
}

/// Suites with other semantics: we differ only where Google's parser does too, or where the RFC decides.
#[test]
fn other_suites() {
    for name in ["texting_cases.json", "cpython_cases.json"] {
        let Some(cases) = cases(name) else { return };
        let mut explained = 0;
        for case in cases.iter().filter(|case| case.passes() == Some(false)) {
            if case.is_against_the_rfc() {
                continue;
            }
            let differs_from_google = case.gpyrobotstxt.as_bool().is_none_or(|google| google != case.allowed);
            println!("{name}: {} {} {} expects {}", case.id, case.user_agent, case.url, case.allowed);
            assert!(differs_from_google, "{name} {} agrees with Google and not with us", case.id);
            explained += 1;
        }
        println!("{name}: {} cases, {explained} differ with Google", cases.len());
    }
}

/// Two kinds of departure. Some give what stands before any User-agent line to everyone, against RFC 9309 section
/// 2.2.2. One has no rule at all between two agents' delays and gives both agents the first delay; we give each
/// agent what stands below its own name.
#[test]
fn crawl_delays() {
    let Some(cases) = cases("crawl_delay_cases.json") else { return };
    let mut departures = 0;
    for case in &cases {
        let Some(rules) = case.rules() else { continue };
        let delay = rules.crawl_delay().map(|delay| delay.as_secs_f64());
        if delay != case.crawl_delay {
            let text = case.robots_txt.as_deref().unwrap_or_default().to_ascii_lowercase();
            println!("{} expects {:?}, got {delay:?}: {text:?}", case.user_agent, case.crawl_delay);
            let first_agent = text.find("user-agent").unwrap_or(text.len());
            let first_delay = text.find("crawl-delay").unwrap_or(text.len());
            assert!(first_delay < first_agent || !text.contains("allow"), "an unexplained delay");
            departures += 1;
        }
    }
    println!("crawl delays: {departures} departures in {} cases", cases.len());
    assert!(departures <= 5, "{departures}");
}

#[derive(Deserialize)]
struct Decision {
    file: String,
    user_agent: String,
    path: String,
    google: Option<bool>,
    protego: Option<bool>,
}

#[test]
fn real_files() {
    let (Some(archive), Some(decisions)) = (data("real_robots.tar.zst"), data("real_robots_oracle.jsonl.gz")) else {
        return;
    };
    let bodies = untar(&zstd::decode_all(archive.as_slice()).unwrap());
    let mut text = String::new();
    flate2::read::MultiGzDecoder::new(decisions.as_slice()).read_to_string(&mut text).unwrap();
    let (mut agreed, mut right, mut disputed, mut as_google) = (0u32, 0u32, 0u32, 0u32);
    let mut parsed: HashMap<(String, String), Rules> = HashMap::new();
    for line in text.lines() {
        let decision: Decision = serde_json::from_str(line).unwrap();
        let rules = parsed.entry((decision.file.clone(), decision.user_agent.clone())).or_insert_with(|| {
            let body = bodies.get(&decision.file).unwrap_or_else(|| panic!("no file {}", decision.file));
            Rules::parse(body, &decision.user_agent, BODY_BYTES_MAX)
        });
        let allowed = rules.allows(&path_of(&decision.path));
        if decision.google.is_some() && decision.google == decision.protego {
            agreed += 1;
            right += u32::from(decision.google == Some(allowed));
            if decision.google != Some(allowed) {
                println!("{} {} {} is {allowed} here", decision.file, decision.user_agent, decision.path);
            }
        } else {
            disputed += 1;
            as_google += u32::from(decision.google == Some(allowed));
        }
    }
    println!("real files: {right} of {agreed} agreed decisions; {as_google} of {disputed} disputed ones as Google");
    assert!(f64::from(right) >= 0.999 * f64::from(agreed));
}

/// Name → contents of the plain files of a tar archive (POSIX ustar, GNU long names).
fn untar(archive: &[u8]) -> HashMap<String, Vec<u8>> {
    let mut files = HashMap::new();
    let mut rest = archive;
    let mut long_name = None;
    while let Some((header, body)) = rest.split_at_checked(512).filter(|(header, _)| header[0] != 0) {
        let text = |range: std::ops::Range<usize>| {
            String::from_utf8_lossy(&header[range]).trim_end_matches(['\0', ' ']).to_string()
        };
        let size = usize::from_str_radix(&text(124..136), 8).unwrap();
        let name = long_name.take().unwrap_or_else(|| text(0..100));
        match header[156] {
            b'L' => long_name = Some(String::from_utf8_lossy(&body[..size]).trim_end_matches('\0').to_string()),
            b'0' | 0 => {
                files.insert(name.rsplit('/').next().unwrap().to_string(), body[..size].to_vec());
            }
            _ => {}
        }
        rest = body.get(size.div_ceil(512) * 512..).unwrap_or_default();
    }
    files
}
