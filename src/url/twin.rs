//! Compares plain references with their slow twin: for any input, both give the same URL or the same error.
//!
//! `TWIN_ROUNDS` and `TWIN_SEED` in the environment select other and longer runs.

use encoding_rs::{BIG5, Encoding, ISO_2022_JP, SHIFT_JIS, UTF_8, UTF_16LE, WINDOWS_1252};

use super::{Absolute, Base, Reach, Url};
use ringcrawl_base::Rng;

const ROUNDS: u64 = 150_000;
const SEED: u64 = 1;

const ENCODINGS: [&Encoding; 6] = [UTF_8, UTF_8, WINDOWS_1252, SHIFT_JIS, ISO_2022_JP, UTF_16LE];

const BASES: [&str; 12] = [
    "http://www.example.com/dir/page?q=1#f",
    "https://example.com/",
    "https://example.com:8443/a/b/c/?x/../y",
    "http://user:word@h-1.example.co.uk/a//b/./c",
    "https://www.example.com/C:/d|/e",
    "http://192.0.2.1/a/b",
    "http://[2001:db8::1]:8080/a/b",
    "https://xn--bcher-kva.example/ü/ä?ö",
    "http://xn--a.test/d/e",
    "about:blank",
    "data:text/html,x",
    "ftp://h.test/d/e",
];

/// The parts of references: nearly everything that ever had a meaning of its own.
const PARTS: [&str; 88] = [
    "http://",
    "https://",
    "//",
    "/",
    "/",
    "/",
    "?",
    "#",
    ".",
    "..",
    "/./",
    "/../",
    "../",
    "./",
    "%2e",
    "%2E",
    "%2e%2e/",
    "/%2E.",
    "...",
    "a",
    "b1",
    "Z",
    "-",
    "_",
    "--",
    "xn--",
    "XN--a",
    "www.",
    "example.com",
    "example.com/",
    "EXAMPLE.Com",
    "h-1.example.co.uk/",
    ".com",
    ".1",
    "0x7f",
    "127.1",
    "1",
    "09",
    "08",
    ":",
    ":80",
    ":443",
    ":8080",
    ":0",
    ":65536",
    ":080",
    "@",
    "user@",
    "u:p@",
    "\\",
    "\\\\",
    "%",
    "%20",
    "%zz",
    "%C3%A9",
    " ",
    "\t",
    "\n",
    "\r",
    "\0",
    "\u{1b}",
    "\u{7f}",
    "é",
    "中",
    "\u{1f600}",
    "\"",
    "'",
    "<",
    ">",
    "`",
    "{",
    "}",
    "^",
    "|",
    "[",
    "]",
    "[::1]",
    "&",
    "=",
    ";",
    ",",
    "+",
    "~",
    "!",
    "$*()",
    "mailto:",
    "javascript:",
    "C:",
];

/// References as found in pages.
const USUAL: [&str; 16] = [
    "https://www.example.com/some/where/page.html?a=b&c=d#part",
    "http://www.example.com/dir/other",
    "https://example.com/",
    "//cdn.example.net/lib/x.js?v=1.2.3",
    "/root/relative/path/that/is/rather/long/so/that/it/fills/some/blocks.php?with=a&query=of&some=length#and-a-fragment",
    "relative/page.html",
    "../up/and/../down/./here",
    "?page=2&sort=up",
    "#top",
    "",
    "mailto:someone@example.com?subject=x y",
    "javascript:void(0)",
    "https://xn--bcher-kva.example/a",
    "/wiki/Käse?q=grün",
    " /with space/x\n",
    "http://other.test:8080/a%2fb;c=d,e/f~g/!$&'()*+,;=:@",
];

/// Parts at random, or a usual one with some changes.
fn reference(rng: &mut Rng) -> String {
    if rng.index(2) == 0 {
        let parts = 1 + rng.index(9);
        return (0..parts).map(|_| *rng.pick(&PARTS)).collect();
    }
    let mut chars: Vec<char> = rng.pick(&USUAL).chars().collect();
    for _ in 0..rng.index(4) {
        let at = rng.index(chars.len() + 1);
        match rng.index(4) {
            0 => chars.truncate(at),
            1 if at < chars.len() => chars[at] = char::from_u32(rng.below(0x180) as u32).unwrap_or('x'),
            2 if at < chars.len() => chars[at] = chars[at].to_ascii_uppercase(),
            _ => drop(chars.splice(at..at, rng.pick(&PARTS).chars())),
        }
    }
    chars.into_iter().collect()
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn compare(base: &Base, reference: &str, encoding: &'static Encoding, url: &mut Url) -> bool {
    let before = url.clone();
    let expected = base.resolve_by_parser(reference, encoding);
    let reach = base.resolve_into(reference, encoding, url);
    let context = || format!("{reference:?} against {:?} in {}", base.as_absolute(), encoding.name());
    match (&expected, reach) {
        (Ok(expected), Ok(reach)) => {
            assert_eq!(url, expected, "{}", context());
            let page = base.as_absolute().and_then(|base| Url::try_from(base.clone()).ok());
            let is_same = page.is_some_and(|page| page.origin() == expected.origin());
            assert!(is_same || reach == Reach::AnyHost, "{}", context());
        }
        (Err(expected), Err(error)) => assert_eq!((url, *expected), (&mut before.clone(), error), "{}", context()),
        (expected, reach) => panic!("{}: {reach:?}, expected {expected:?}", context()),
    }
    expected.is_ok()
}

#[test]
fn random_references() {
    compare_random(setting("TWIN_ROUNDS").unwrap_or(ROUNDS));
}

#[test]
#[ignore = "long: ten million references, or TWIN_ROUNDS"]
fn many_random_references() {
    compare_random(setting("TWIN_ROUNDS").unwrap_or(10_000_000));
}

fn compare_random(rounds: u64) {
    let seed = setting("TWIN_SEED").unwrap_or(SEED);
    println!("TWIN_SEED={seed} TWIN_ROUNDS={rounds}");
    let mut rng = Rng::new(seed);
    let bases = BASES.map(|base| Base::of_document(Absolute::parse(base).unwrap()));
    let mut url = Url::parse("http://before.test/").unwrap();
    let (mut resolved, mut plain) = (0, 0);
    for _ in 0..rounds {
        let (base, encoding) = (rng.pick(&bases), *rng.pick(&ENCODINGS));
        let reference = reference(&mut rng);
        plain += u64::from(base.is_plain(&reference, encoding));
        resolved += u64::from(compare(base, &reference, encoding, &mut url));
    }
    println!("{resolved} are URLs, {plain} are plain");
    assert!(resolved > rounds / 3, "{resolved} of {rounds} are URLs");
    assert!((rounds / 4..rounds * 7 / 8).contains(&plain), "{plain} of {rounds} are plain");
}

/// Every byte in every part.
#[test]
fn every_character_everywhere() {
    let base = Base::new(&Url::parse("https://www.example.com/dir/page?q").unwrap());
    let mut url = Url::parse("http://before.test/").unwrap();
    for character in (0..0x300).filter_map(char::from_u32) {
        for form in [
            "X",
            "/aX",
            "Xa",
            "a/X/b",
            "?aX",
            "/p?aX&b",
            "#X",
            "/p?q#X",
            "//X",
            "//hX/",
            "http://h.testX/",
            "http://hX.test/p",
            "https://www.example.comX",
            "https://www.example.com/X",
            "aX:b",
            "X:b",
            "/0123456789abcdefX/b",
            "//h.test:X",
            "//h.test:8X/",
        ] {
            for encoding in ENCODINGS {
                compare(&base, &form.replace('X', character.encode_utf8(&mut [0; 4])), encoding, &mut url);
            }
        }
    }
}

/// Results around the maximum length, and references around a block's length.
#[test]
fn lengths() {
    let mut url = Url::parse("http://before.test/").unwrap();
    let long = Url::parse(&format!("http://a.test/{}/x", "d".repeat(40_000))).unwrap();
    for base in [&long, &Url::parse("http://a.test/d/").unwrap()] {
        let base = Base::new(base);
        for length in (0..200).chain([21_840, 21_850, 25_510, 25_520]).chain(65_450..65_560) {
            for (front, unit) in [
                ("", "x"),
                ("/", "x"),
                ("//b.test/", "x"),
                ("http://b.test/?", "x"),
                ("/", " "),
                ("../", "x"),
                ("#", "x"),
            ] {
                let reference = format!("{front}{}", unit.repeat(length));
                compare(&base, &reference, UTF_8, &mut url);
            }
        }
    }
    let host = "h".repeat(100);
    compare(&Base::new(&long), &format!("//{host}.{host}.test/x"), BIG5, &mut url);
}
