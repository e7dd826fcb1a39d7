//! One target of the fuzzer, chosen by its name in `RINGCRAWL_FUZZ`; without one, the names are printed.
//!
//! Decides: one program for all, since most of its time to build is the crawler's. Each makes its own seeds,
//! which are written into `RINGCRAWL_FUZZ_SEEDS` when that names a folder.
//! Leaves to others: what must hold (`targets`); how long, and what is kept (`run`).

#![no_main]

mod targets;

use std::path::Path;
use std::sync::OnceLock;

use targets::TARGETS;

static CHOSEN: OnceLock<fn(&[u8])> = OnceLock::new();

fn choose() {
    let name = std::env::var("RINGCRAWL_FUZZ").unwrap_or_default();
    let Some((_, run, seeds)) = TARGETS.iter().find(|(target, _, _)| *target == name) else {
        TARGETS.iter().for_each(|(target, _, _)| println!("{target}"));
        std::process::exit(i32::from(!name.is_empty()));
    };
    if let Ok(folder) = std::env::var("RINGCRAWL_FUZZ_SEEDS") {
        for (number, seed) in seeds().iter().enumerate() {
            std::fs::write(Path::new(&folder).join(format!("seed-{number}")), seed).expect("a seed can be written");
        }
    }
    let _ = CHOSEN.set(*run);
}

libfuzzer_sys::fuzz_target!(init: choose(), |data: &[u8]| {
    if let Some(run) = CHOSEN.get() {
        run(data);
    }
});
