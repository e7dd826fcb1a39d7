//! The scope: a thousand mixed rules, and a block list of five million hosts.
//!
//! Floor of the rules: each tried in order, as the twin in the tests does. Checked before: both decide alike.
//! `hostile` has URLs of 2 KiB that repeat the text of a regex, or hold the texts of many rules; its aim is 1 ns a byte and rule.
//! The block list is measured once: the time of loading it on this thread's CPU clock, bytes an entry, and a lookup of hosts of
//! which one in ten is listed. BLOCK_ENTRIES is the number of its lines (default 5,000,000; 10,000 in tests).
//! Aims: 1 µs a URL, 2 s to load, 200 ns a lookup.

use std::fmt::Write as _;
use std::time::Duration;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use ringcrawl_base::Rng;
use ringcrawl_brain::hops::Hops;
use ringcrawl_brain::scope::{BlockList, Rules, Stage, Subject};
use ringcrawl_url::{Url, site_of};

const TLDS: [&str; 8] = ["com", "org", "net", "de", "co.uk", "fr", "io", "com.br"];
const WORDS: [&str; 10] =
    ["news", "shop", "forum", "blog", "calendar", "archive", "static", "user", "category", "product"];

fn main() {
    let in_test = !std::env::args().any(|argument| argument == "--bench");
    let entries = std::env::var("BLOCK_ENTRIES").ok().and_then(|number| number.parse().ok());
    block_list(entries.unwrap_or(if in_test { 10_000 } else { 5_000_000 }));
    let (rules, urls) = rules();
    for url in &urls {
        let subject = Subject::new(url, Hops::from_bits(3));
        let ours = rules.decide(Stage::Schedule, &subject).expect("no dear rules");
        let lines = [ours, rules.decide_in_order(Stage::Schedule, &subject)];
        let [ours, slow] = lines.map(|rule| rule.map(|rule| rule.line));
        assert_eq!(ours, slow, "{url}");
    }
    let (rules, urls) = hostile_rules();
    for url in &urls {
        let subject = Subject::new(url, Hops::from_bits(3));
        assert!(matches!(rules.decide(Stage::Schedule, &subject), Ok(None)), "{url}");
    }
    divan::main();
}

fn name(rng: &mut Rng) -> String {
    (0..6 + rng.below(8)).map(|_| char::from(b'a' + rng.below(26) as u8)).collect()
}

/// A thousand rules as people mix them, and the hosts that they name.
fn rules_text(rng: &mut Rng) -> (String, Vec<String>) {
    let hosts: Vec<String> = (0..400).map(|_| format!("{}.{}", name(rng), rng.pick(&TLDS))).collect();
    let mut text = String::new();
    for number in 0..1_000 {
        let (host, word, name) = (rng.pick(&hosts).clone(), *rng.pick(&WORDS), name(rng));
        let site = site_of(&host);
        let line = match number % 16 {
            0..=3 => format!("deny host=www.{host}"),
            4 => format!("allow site={site} depth<=5"),
            5 | 6 => format!("deny suffix={host} extension=zip,iso"),
            7 => format!("deny surt={},{word},", host.rsplit('.').collect::<Vec<_>>().join(",")),
            8 | 9 => format!("deny path=/{word}/{name}/*"),
            10 => format!("deny path=*/{name}/*"),
            11 => format!("deny query=*{name}=*"),
            12 => format!("deny regex=/{name}/[0-9]{{4}}/"),
            13 => format!("deny regex=^https?://[^/]*/{word}/{name}[0-9]*/page"),
            14 => format!("deny extension={name:.4}"),
            _ => format!("deny site={site} path=/{word}/*"),
        };
        let _ = writeln!(text, "{line}");
    }
    (text, hosts)
}

/// The thousand rules, and URLs of which one in four is of a host that they name.
fn rules() -> (Rules, Vec<Url>) {
    let mut rng = Rng::new(1);
    let (text, hosts) = rules_text(&mut rng);
    let url = |number: usize| {
        let host = match number % 4 {
            0 => rng.pick(&hosts).clone(),
            _ => format!("{}.{}", name(&mut rng), rng.pick(&TLDS)),
        };
        let ending = *rng.pick(&["", ".html", "?id=12345&page=3", ".php?sid=abcdef"]);
        let path = format!("{}/{}/{}", rng.pick(&WORDS), name(&mut rng), name(&mut rng));
        Url::parse(&format!("https://www.{host}/{path}{ending}")).expect("a URL")
    };
    let urls = (0..10_000).map(url).collect();
    (Rules::parse("rules", text.as_bytes()).expect("rules"), urls)
}

/// Rules of which a text is easily guessed, behind the thousand, and URLs made of such texts, of which none is denied.
fn hostile_rules() -> (Rules, Vec<Url>) {
    let texts = ["session", "calendar", "sort=", "/page/"];
    let mut text = rules_text(&mut Rng::new(1)).0;
    for literal in texts {
        let _ = writeln!(text, "deny regex={literal}[0-9a-f]{{32}}(/|$)");
    }
    let names: Vec<String> =
        text.lines().filter_map(|line| Some(line.split_once("query=*")?.1.replace('*', ""))).collect();
    let repeated = texts.map(|literal| literal.repeat(2_000 / literal.len()));
    let many = (0..4).map(|at| names.iter().skip(at).step_by(4).flat_map(|name| ["x", &**name]).collect::<String>());
    let all = repeated.into_iter().chain(many).map(|path| format!("https://other.test/{path:x<2000.2000}"));
    (Rules::parse("rules", text.as_bytes()).expect("rules"), all.map(|url| Url::parse(&url).expect("a URL")).collect())
}

#[divan::bench]
fn hostile(bencher: Bencher) {
    let (rules, urls) = hostile_rules();
    bencher.counter(ItemsCount::new(urls.len())).bench(|| {
        for url in &urls {
            let _ = black_box(rules.decide(Stage::Schedule, &Subject::new(url, Hops::from_bits(3))));
        }
    });
}

#[divan::bench]
fn ours(bencher: Bencher) {
    measure(bencher, |rules, stage, subject| rules.decide(stage, subject).expect("no dear rules"));
}

#[divan::bench]
fn floor(bencher: Bencher) {
    measure(bencher, Rules::decide_in_order);
}

fn measure(
    bencher: Bencher,
    decide: impl for<'r> Fn(&'r Rules, Stage, &Subject<'_>) -> Option<&'r ringcrawl_brain::scope::Rule> + Sync,
) {
    let (rules, urls) = rules();
    bencher.counter(ItemsCount::new(urls.len())).bench(|| {
        for url in &urls {
            black_box(decide(&rules, Stage::Schedule, &Subject::new(url, Hops::from_bits(3))));
        }
    });
}

fn block_list(entries: usize) {
    let mut rng = Rng::new(1);
    let mut host = |number: usize| {
        let www = if number.is_multiple_of(3) { "www." } else { "" };
        let name = name(&mut rng);
        format!("{www}{name}.{}", rng.pick(&TLDS))
    };
    let mut text = String::new();
    let mut urls = Vec::new();
    for number in 0..entries {
        let listed = host(number);
        let _ = writeln!(text, "{listed}");
        if number.is_multiple_of(entries.div_ceil(100_000)) {
            let other = (0..9).map(|_| format!("x.{}", host(1)));
            urls.extend(other.chain([listed]).map(|host| Url::parse(&format!("https://{host}/a")).expect("a URL")));
        }
    }
    let begun = cpu_time();
    let (list, mistakes) = BlockList::parse("list", text.as_bytes());
    let loaded = cpu_time() - begun;
    assert_eq!((list.len(), mistakes.count), (entries, 0));
    let begun = cpu_time();
    let blocked = urls.iter().filter(|url| list.blocks(url)).count();
    let looked = cpu_time() - begun;
    assert!(blocked >= urls.len() / 10);
    println!(
        "block list: {entries} entries, loaded in {:.2} s of CPU, {:.1} bytes an entry, {:.0} ns a lookup",
        loaded.as_secs_f64(),
        list.bytes() as f64 / entries as f64,
        looked.as_nanos() as f64 / urls.len() as f64
    );
}

/// CPU time of this thread, as others use the machine, too (proc_pid_schedstat(5)).
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    Duration::from_nanos(text.split(' ').next().and_then(|nanos| nanos.parse().ok()).expect("a number"))
}
