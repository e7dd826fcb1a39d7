//! The brain touches nothing: its sources use no clock, socket, file or thread, and the crates below it no runtime,
//! socket or clock.
//!
//! Limits: files named after tests, and code after `#[cfg(test)]`, are not checked.

use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Words in code that would touch the machine.
const WORDS: [&str; 16] = [
    "std::fs",
    "std::thread",
    "std::process",
    "std::env",
    "std::io::stdin",
    "std::os::",
    "Instant::now",
    "SystemTime",
    "TcpStream",
    "TcpListener",
    "UdpSocket",
    "tokio::",
    "libc::",
    "rand::",
    "println!",
    "ringcrawl_ring",
];
/// Crates that do.
const CRATES: [&str; 9] = [
    "tokio",
    "tokio-uring",
    "io-uring",
    "hickory-resolver",
    "rustls",
    "core_affinity",
    "signal-hook",
    "mimalloc",
    "ringcrawl-ring",
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        match path.is_dir() {
            _ if name.starts_with("tests") || name == "purity.rs" => {}
            true => sources(&path, found),
            false if name.ends_with(".rs") => found.push(path),
            false => {}
        }
    }
}

#[test]
fn sources_touch_no_machine() {
    let mut found = Vec::new();
    sources(Path::new(ROOT), &mut found);
    assert!(found.len() > 100, "{} sources", found.len());
    for path in found {
        let text = fs::read_to_string(&path).expect("a source");
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
            let word = WORDS.iter().find(|word| line.contains(**word));
            assert_eq!(word, None, "{}: {line}", path.display());
        }
    }
}

#[test]
fn no_crate_below_touches_one() {
    let workspace = Path::new(ROOT).join("../..");
    let (mut crates, mut seen) = (vec!["brain".to_owned()], 0);
    while let Some(name) = crates.get(seen).cloned() {
        seen += 1;
        let text = fs::read_to_string(workspace.join("src").join(&name).join("Cargo.toml")).expect("a manifest");
        // The base crate, which all share, has no such section.
        let section = text.split("[dependencies]").nth(1).and_then(|rest| rest.split("\n[").next()).unwrap_or_default();
        for needed in section.lines().filter_map(|line| line.split(['.', ' ']).next()) {
            assert!(!CRATES.contains(&needed), "{name} has {needed}");
            if let Some(below) =
                needed.strip_prefix("ringcrawl-").filter(|below| !crates.iter().any(|known| known == below))
            {
                crates.push(below.to_owned());
            }
        }
    }
    assert!(seen > 5, "{crates:?}");
}
