//! Micro-bench: a verdict of robots.txt, beside hashing the path it is about.
//!
//! Files are made here: as many rules as real files have (half of them six at most, one in ten sixty, one in five hundred three
//! thousand), one in six with a wildcard, half of these at the start. Paths are of 5 to 60 bytes. Checked before anything is timed: every verdict is the one of a
//! plain matcher, and some are of each kind.

use divan::counter::ItemsCount;
use ringcrawl_base::Rng;
use ringcrawl_robots::Rules;

fn main() {
    let mut kinds = [0; 2];
    for (rules, paths, texts) in files() {
        for path in paths.iter().take(if texts.len() > 500 { 2 } else { 40 }) {
            assert_eq!(rules.allows(path), allows_plainly(texts, path), "{path}");
            kinds[usize::from(rules.allows(path))] += 1;
        }
    }
    assert!(kinds.iter().all(|count| *count > 1_000), "{kinds:?}");
    divan::main();
}

/// Rules, paths to ask about, and the same rules as (allows, pattern).
type File = (Rules, Vec<String>, Vec<(bool, String)>);

fn files() -> &'static [File] {
    static FILES: std::sync::OnceLock<Vec<File>> = std::sync::OnceLock::new();
    FILES.get_or_init(|| {
        let mut rng = Rng::new(1);
        (0..1_000).map(|number| file(&mut rng, number)).collect()
    })
}

fn file(rng: &mut Rng, number: u64) -> File {
    let count = match number % 500 {
        0 => 3_000,
        1..50 => 60 + rng.below(100),
        50..250 => 7 + rng.below(40),
        _ => 1 + rng.below(6),
    };
    let mut texts = Vec::new();
    for _ in 0..count {
        let pattern = match rng.below(12) {
            0 => format!("/*{}=", word(rng)),
            1 => format!("/{}/*/{}", word(rng), word(rng)),
            2..7 => format!("/{}/{}/", word(rng), word(rng)),
            _ => format!("/{}/", word(rng)),
        };
        texts.push((rng.below(5) == 0, pattern));
    }
    let lines: String = texts
        .iter()
        .map(|(allows, text)| format!("{}: {text}\n", if *allows { "Allow" } else { "Disallow" }))
        .collect();
    let rules = Rules::parse(format!("User-agent: *\n{lines}").as_bytes(), "bench", 512 << 10);
    let path = |rng: &mut Rng| {
        let parts: String = (0..1 + rng.below(4)).map(|_| format!("/{}", word(rng))).collect();
        let query = if rng.below(3) == 0 { format!("?{}={}", word(rng), rng.below(1_000)) } else { String::new() };
        // Some are about what the file names.
        match rng.below(4) {
            0 => format!("{}{parts}{query}", rng.pick(&texts).1.replace('*', "x")),
            _ => format!("{parts}{query}"),
        }
    };
    let paths = (0..10).map(|_| path(rng)).collect();
    (rules, paths, texts)
}

fn word(rng: &mut Rng) -> String {
    (0..3 + rng.below(8)).map(|_| char::from(b'a' + rng.below(26) as u8)).collect()
}

/// The longest pattern that matches, allow before disallow (RFC 9309 section 2.2.2).
fn allows_plainly(rules: &[(bool, String)], path: &str) -> bool {
    let matches = |pattern: &str| {
        let mut parts = pattern.split('*');
        let Some(mut rest) = path.strip_prefix(parts.next().unwrap_or_default()) else { return false };
        parts.all(|part| {
            let Some(at) = rest.find(part) else { return false };
            rest = &rest[at + part.len()..];
            true
        })
    };
    let longest =
        rules.iter().filter(|(_, pattern)| matches(pattern)).map(|(allows, pattern)| (pattern.len(), *allows));
    longest.max().is_none_or(|(_, allows)| allows)
}

fn count() -> ItemsCount {
    ItemsCount::new(files().iter().map(|(_, paths, _)| paths.len()).sum::<usize>())
}

#[divan::bench]
fn ours(bencher: divan::Bencher) {
    bencher.counter(count()).bench(|| {
        files().iter().map(|(rules, paths, _)| paths.iter().filter(|path| rules.allows(path)).count()).sum::<usize>()
    });
}

#[divan::bench]
fn floor(bencher: divan::Bencher) {
    bencher.counter(count()).bench(|| {
        let hash = |path: &String| xxhash_rust::xxh3::xxh3_64(path.as_bytes());
        files()
            .iter()
            .map(|(_, paths, _)| paths.iter().fold(0, |all, path| all ^ hash(path)))
            .fold(0, |all, one| all ^ one)
    });
}
