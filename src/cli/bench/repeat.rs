//! Repeats a run and takes medians.
//!
//! Decides: each run is a process of its own, because memory used by one run makes the next look better. The median
//! of each number is taken separately: the run with the median CPU time need not be the one with the median latency.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Map, Value};

use crate::cli::output::tell;

/// Runs this command `times` times, with its figures in a file, and returns those of all runs. Stops early when asked
/// to.
pub fn run(times: u32, dir: &Path, interrupts: &AtomicUsize) -> Result<Vec<Value>, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let file = Removed(dir.join(format!("ringcrawl-bench-{}.json", std::process::id())));
    let mut runs = Vec::new();
    for number in 1..=times {
        tell!("run {number} of {times}");
        // The last argument wins.
        let status = Command::new(&program)
            .args(std::env::args_os().skip(1))
            .args(["--repeat", "1", "--json"])
            .arg(&file.0)
            .status()
            .map_err(|error| error.to_string())?;
        let text = std::fs::read_to_string(&file.0).map_err(|_| format!("run {number} ended with {status}"))?;
        runs.push(serde_json::from_str(&text).map_err(|error| format!("run {number}: {error}"))?);
        let _ = std::fs::remove_file(&file.0);
        if interrupts.load(Ordering::Relaxed) > 0 {
            break;
        }
    }
    Ok(runs)
}

/// The median of every number in `runs`; everything else comes from the first run.
pub fn median(runs: &[Value]) -> Value {
    let Some(first) = runs.first() else { return Value::Null };
    match first {
        Value::Object(members) => {
            let of = |name: &String| {
                let parts: Vec<Value> = runs.iter().filter_map(|run| run.get(name)).cloned().collect();
                (name.clone(), median(&parts))
            };
            Value::Object(members.keys().map(of).collect::<Map<_, _>>())
        }
        Value::Number(_) => {
            let mut numbers: Vec<f64> = runs.iter().filter_map(Value::as_f64).collect();
            numbers.sort_by(f64::total_cmp);
            let middle = |index: usize| numbers.get(index).copied().unwrap_or_default();
            let (low, high) = (middle((numbers.len() - 1) / 2), middle(numbers.len() / 2));
            serde_json::json!((low + high) / 2.0)
        }
        other => other.clone(),
    }
}

/// The numbers compared most often, with minimum, median and maximum over the runs.
pub fn table(runs: &[Value]) -> String {
    let mut text = format!("\nMedians of {} runs\n\n", runs.len());
    for path in [
        "/pages_per_second",
        "/pages_per_second_per_core",
        "/pages_per_cpu_second",
        "/cpu_micros_per_page/all",
        "/cpu_micros_per_page/user",
        "/cpu_micros_per_page/system",
        "/busy/shards",
        "/memory/rss_bytes_max",
    ] {
        let mut numbers: Vec<f64> = runs.iter().filter_map(|run| run.pointer(path)?.as_f64()).collect();
        numbers.sort_by(f64::total_cmp);
        if let (Some(least), Some(most)) = (numbers.first(), numbers.last()) {
            let parts: Vec<Value> = numbers.iter().map(|number| serde_json::json!(number)).collect();
            let middle = median(&parts).as_f64().unwrap_or_default();
            let name = path.trim_start_matches('/').replace('/', ".");
            text.push_str(&format!("  {name:<28} {middle:>14.2}  ({least:.2} to {most:.2}, {} runs)\n", numbers.len()));
        }
    }
    text
}

struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_number_has_its_own_middle() {
        let runs = [
            json!({"a": 1, "b": {"c": 30.0, "d": null}, "name": "x", "checks": [1]}),
            json!({"a": 3, "b": {"c": 10.0, "d": 2}, "name": "x", "checks": [2]}),
            json!({"a": 2, "b": {"c": 20.0, "d": 2}, "name": "x", "checks": [3]}),
        ];
        assert_eq!(median(&runs), json!({"a": 2.0, "b": {"c": 20.0, "d": null}, "name": "x", "checks": [1]}));
        assert_eq!(median(&runs[..2]).get("a"), Some(&json!(2.0)));
        assert_eq!(median(&[]), Value::Null);
        assert!(table(&[json!({"pages_per_second": 7})]).contains("7.00"));
    }
}
