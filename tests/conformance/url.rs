//! URLs against the vectors of others: web-platform-tests, the Public Suffix List's tests, real URLs.
//!
//! Where the `url` crate departs from the standard the tests print the case and hold the number.

use std::io::Write;
use std::process::{Command, Stdio};

use ringcrawl_url::{Base, Scheme, Url, site_of};
use serde_json::Value;

use crate::rig::conformance;
use crate::rig::program::RINGCRAWL;

fn data(name: &str) -> Option<Vec<u8>> {
    Some(std::fs::read(conformance(name)?).expect("conformance data"))
}

/// The objects of a list that has comments, plain texts, between them.
fn cases(name: &str) -> Option<Vec<Value>> {
    let text = String::from_utf8(data(name)?).unwrap();
    let list: Vec<Value> = serde_json::from_str(&replace_lone_surrogates(&text)).unwrap();
    Some(list.into_iter().filter(Value::is_object).collect())
}

/// JSON permits `"\ud800"`, serde_json does not.
fn replace_lone_surrogates(json: &str) -> String {
    let unit = |text: &str| u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok();
    let mut text = json.to_owned();
    let mut at = 0;
    while let Some(found) = text[at..].find('\\') {
        at += found;
        at += match (unit(&text[at..]), text.get(at + 6..).and_then(unit)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (Some(0xD800..=0xDFFF), _) => {
                text.replace_range(at..at + 6, "\\ufffd");
                6
            }
            (Some(_), _) => 6,
            (None, _) => 2,
        };
    }
    text
}

fn is_crawlable(url: &str) -> bool {
    url.starts_with("http://") || url.starts_with("https://")
}

/// `inspect url --jsonl` answers every vector as the `url` crate does, or as the standard does. For http(s) nothing
/// departs from the standard.
#[test]
fn wpt_vectors_on_the_command_line() {
    let Some(cases) = cases("url/urltestdata.json") else { return };
    let questions: String = cases.iter().map(|case| format!("{case}\n")).collect();
    let mut child = Command::new(RINGCRAWL)
        .args(["inspect", "url", "--jsonl"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(questions.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success());
    let answers: Vec<Value> = output
        .stdout
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    assert_eq!(answers.len(), cases.len());
    let mut departures = 0;
    for (case, answer) in cases.iter().zip(&answers) {
        let base = case["base"].as_str().map(url::Url::parse);
        let by_the_crate = match base {
            Some(Err(_)) => None,
            Some(Ok(base)) => base.join(case["input"].as_str().unwrap()).ok(),
            None => url::Url::parse(case["input"].as_str().unwrap()).ok(),
        };
        assert_eq!(answer["failure"].as_bool(), answer["href"].is_null().then_some(true));
        if answer["href"].as_str() != by_the_crate.as_ref().map(url::Url::as_str) {
            assert_eq!(answer["href"], case["href"]);
        }
        if answer["href"] != case["href"] {
            let crawlable = [&case["href"], &answer["href"]].iter().any(|href| href.as_str().is_some_and(is_crawlable));
            assert!(!crawlable, "{case}");
            departures += 1;
            println!(
                "{:?} {:?} expects {:?}, got {:?}",
                case["input"].as_str().unwrap_or_default(),
                case["base"].as_str(),
                case["href"].as_str(),
                answer["href"].as_str()
            );
        }
    }
    println!("urltestdata: {departures} departures in {}, none of them http(s)", cases.len());
    assert!(departures <= 49, "{departures}");
}

/// The library's own types give the standard's URL less fragment and credentials.
#[test]
fn wpt_vectors_in_the_library() {
    let Some(cases) = cases("url/urltestdata.json") else { return };
    let mut compared = 0;
    for case in &cases {
        let input = case["input"].as_str().unwrap();
        let base = case["base"].as_str().filter(|base| *base != "about:blank");
        let got = match base {
            Some(base) => {
                let Ok(page) = Url::parse("http://page.invalid/") else { unreachable!() };
                let frozen = Base::new(&page).with_href(base);
                if frozen == Base::new(&page) {
                    continue; // a base that HTML does not take
                }
                frozen.resolve(input, encoding_rs::UTF_8).ok()
            }
            None => Url::parse(input).ok(),
        };
        let expected = case["href"].as_str().filter(|href| is_crawlable(href)).map(|href| {
            let credentials = match (case["username"].as_str().unwrap(), case["password"].as_str().unwrap()) {
                ("", "") => String::new(),
                (user, "") => format!("{user}@"),
                (user, password) => format!("{user}:{password}@"),
            };
            href.split('#').next().unwrap().replacen(&credentials, "", 1)
        });
        compared += 1;
        assert_eq!(got.as_ref().map(Url::as_str), expected.as_deref(), "{input:?} {base:?}");
        if let Some(url) = got {
            let protocol = if url.scheme() == Scheme::Https { "https:" } else { "http:" };
            assert_eq!(Some(protocol), case["protocol"].as_str());
            assert_eq!(Some(url.host()), case["hostname"].as_str());
            assert_eq!(Some(url.authority()), case["host"].as_str());
            assert_eq!(Url::from_canonical(url.as_str()), Ok(url));
        }
    }
    println!("urltestdata in the library: {compared} as expected");
}

#[test]
fn wpt_domains() {
    let page = Base::new(&Url::parse("http://page.invalid/").unwrap());
    for name in ["url/toascii.json", "url/IdnaTestV2.json"] {
        let Some(cases) = cases(name) else { return };
        let mut departures = 0;
        for case in &cases {
            let input = case["input"].as_str().unwrap();
            let text = format!("https://{input}/x");
            let got = Url::parse(&text).ok();
            // Without the parser, where that can be.
            assert_eq!(page.resolve(&text, encoding_rs::UTF_8).ok(), got, "{input:?}");
            let got = got.as_ref().map(Url::host);
            if got != case["output"].as_str() {
                departures += 1;
                println!("{input:?} expects {:?}, got {got:?}", case["output"].as_str());
            }
        }
        println!("{name}: {departures} departures in {}", cases.len());
        // The empty host (`https:///x` is `https://x/`), and two that turn on the version of Unicode.
        assert!(departures <= 3, "{departures}");
    }
}

#[test]
fn wpt_percent_encoding() {
    let Some(cases) = cases("url/percent-encoding.json") else { return };
    let page = Url::parse("https://example.com/").unwrap();
    for case in &cases {
        for (label, expected) in case["output"].as_object().unwrap() {
            let encoding = encoding_rs::Encoding::for_label(label.as_bytes()).unwrap();
            let reference = format!("?{}#fragment", case["input"].as_str().unwrap());
            let url = page.join_encoded(&reference, encoding).unwrap();
            assert_eq!(url.path_and_query(), format!("/?{}", expected.as_str().unwrap()), "{label}");
        }
    }
}

#[test]
fn public_suffixes() {
    let Some(text) = data("psl/tests/tests.txt") else { return };
    let mut compared = 0;
    for line in String::from_utf8(text).unwrap().lines() {
        let Some((input, expected)) = line.split_once(' ').filter(|_| !line.starts_with("//")) else { continue };
        // Hosts are canonical before they come here; the list's tests have leading dots and upper case.
        let Ok(url) = Url::parse(&format!("http://{input}/")) else { continue };
        if input == "null" || input.starts_with('.') {
            continue;
        }
        let expected = match Url::parse(&format!("http://{expected}/")) {
            Ok(site) if expected != "null" => site.host().to_owned(),
            _ => url.host().to_owned(),
        };
        assert_eq!(site_of(url.host()), expected, "{input}");
        compared += 1;
    }
    println!("public suffixes: {compared} as expected");
    assert!(compared > 50);
}

/// Canonical URLs stay what they are, and are read back as what they were.
#[test]
fn real_urls() {
    let Some(packed) = data("url/real_urls.txt.zst") else { return };
    let text = String::from_utf8(zstd::decode_all(packed.as_slice()).unwrap()).unwrap();
    let (mut count, mut changed) = (0u32, 0u32);
    let mut link = Url::parse("http://page.invalid/").unwrap();
    let mut base = Base::new(&link);
    for line in text.lines() {
        count += 1;
        let url = Url::parse(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        if url.as_str() != line {
            changed += 1;
            if changed <= 10 {
                println!("{line} is {url} here");
            }
        }
        assert_eq!(Url::from_canonical(url.as_str()).as_ref(), Ok(&url));
        // As links of a page of the URL before, written out and without what both have in common.
        for reference in [line, url.path_and_query(), line.split_once(':').map_or(line, |(_, rest)| rest)] {
            let expected = base.resolve_by_parser(reference, encoding_rs::UTF_8);
            assert_eq!(
                base.resolve_into(reference, encoding_rs::UTF_8, &mut link).map(|_| &link),
                expected.as_ref().map_err(|error| *error),
                "{reference}"
            );
        }
        base = Base::new(&url);
    }
    println!("real URLs: {changed} of {count} are written in another way");
    assert!(count > 600_000 && changed <= 7, "{changed} of {count}");
}
