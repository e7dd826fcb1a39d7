//! The fuzzer's targets without the fuzzer: what is known, and fixed changes of it, through each of them.
//!
//! Decides: every seed of every target, and every input kept in `tests/corpus/TARGET/`, goes through all targets,
//! since what is hostile to one reader may be to another. Then seeds are changed by a generator with a fixed seed and
//! the fuzzer's dictionary.
//! Leaves to others: new ways, guided by coverage (`tests/fuzz/run`).

#[path = "fuzz/src/targets/mod.rs"]
mod targets;

use std::path::{Path, PathBuf};

use ringcrawl_base::Rng;
use targets::TARGETS;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

/// Inputs that the fuzzer once found something with, or that reach far, with their names.
fn corpus() -> Vec<(String, Vec<u8>)> {
    let mut inputs = Vec::new();
    for (target, _, _) in TARGETS {
        for entry in std::fs::read_dir(file("corpus").join(target)).into_iter().flatten().flatten() {
            inputs.push((entry.path().display().to_string(), std::fs::read(entry.path()).expect("an input")));
        }
    }
    inputs
}

fn seeds() -> impl Iterator<Item = (String, Vec<u8>)> {
    let named = |name: &str, number: usize, seed| (format!("seed {number} of {name}"), seed);
    TARGETS.iter().flat_map(move |(name, _, seeds)| {
        seeds().into_iter().enumerate().map(move |(number, seed)| named(name, number, seed))
    })
}

/// Runs a target; says which input it was that failed.
fn feed(name: &str, target: fn(&[u8]), what: &str, input: &[u8]) {
    if let Err(panic) = std::panic::catch_unwind(|| target(input)) {
        eprintln!("{name} failed with {what}: {}", input.escape_ascii());
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn what_is_known_goes_through_every_target() {
    let inputs: Vec<(String, Vec<u8>)> = seeds().chain(corpus()).chain([("nothing".to_owned(), Vec::new())]).collect();
    assert!(inputs.len() > 100, "{}", inputs.len());
    for (name, target, _) in TARGETS {
        inputs.iter().for_each(|(what, input)| feed(name, target, what, input));
    }
}

#[test]
fn changed_seeds_go_through_their_target() {
    const ROUNDS: usize = 4_000;
    let words = words();
    assert!(words.len() > 50, "{}", words.len());
    for (number, (name, target, seeds)) in TARGETS.into_iter().enumerate() {
        let (mut rng, seeds) = (Rng::new(number as u64), seeds());
        for round in 0..ROUNDS {
            let mut input = rng.pick(&seeds).clone();
            for _ in 0..=rng.index(6) {
                change(&mut input, &mut rng, &seeds, &words);
            }
            input.truncate(8_192);
            feed(name, target, &format!("round {round}"), &input);
        }
    }
}

/// One change of the kinds that libFuzzer makes.
fn change(input: &mut Vec<u8>, rng: &mut Rng, seeds: &[Vec<u8>], words: &[Vec<u8>]) {
    let at = rng.index(input.len() + 1);
    let end = at + rng.index(input.len() - at + 1);
    match rng.below(7) {
        0 if at < input.len() => input[at] ^= 1 << rng.below(8),
        1 if at < input.len() => input[at] = rng.next() as u8,
        2 => drop(input.splice(at..at, rng.pick(words).iter().copied())),
        3 => drop(input.drain(at..end)),
        4 => drop(input.splice(at..at, input[at..end].to_vec())),
        5 => {
            let other = rng.pick(seeds);
            drop(input.splice(at.., other[rng.index(other.len() + 1)..].iter().copied()));
        }
        _ => input.insert(at, *rng.pick(&[0, b'\r', b'\n', b' ', b'%', b'<', 0x7f, 0xff])),
    }
}

/// The fuzzer's dictionary: a word a line, in quotes.
fn words() -> Vec<Vec<u8>> {
    let text = std::fs::read_to_string(file("fuzz/words")).expect("the dictionary");
    let quoted = text.lines().filter_map(|line| line.strip_prefix('"')?.strip_suffix('"'));
    quoted.map(|word| unescaped(word).unwrap_or_else(|| panic!("no word: {word}"))).collect()
}

/// Undoes `\xHH`, `\"` and `\\`.
fn unescaped(word: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut rest) = (Vec::new(), word);
    while let Some((plain, escape)) = rest.split_once('\\') {
        bytes.extend_from_slice(plain.as_bytes());
        let (byte, after) = match escape.strip_prefix('x') {
            Some(hex) => (u8::from_str_radix(hex.get(..2)?, 16).ok()?, &hex[2..]),
            None => (*escape.as_bytes().first()?, &escape[1..]),
        };
        bytes.push(byte);
        rest = after;
    }
    bytes.extend_from_slice(rest.as_bytes());
    Some(bytes)
}
