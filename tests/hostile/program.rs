//! The program as a process: the faulty web, and the crawl of it.
//!
//! Invariants: a process is killed and a folder removed when its value goes; no wait is longer than [`PATIENCE`].

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// The program.
const RINGCRAWL: &str = env!("CARGO_BIN_EXE_ringcrawl");
/// A crawl of the faulty web takes half a minute; a slow machine may take ten times as long.
const PATIENCE: Duration = Duration::from_secs(300);

/// A folder, removed with this value.
pub struct Folder(PathBuf);

impl Folder {
    /// A new, empty folder.
    pub fn new(rng_seed: u64) -> Folder {
        let path = std::env::temp_dir().join(format!("ringcrawl-hostile-{}-{rng_seed}", std::process::id()));
        std::fs::create_dir(&path).expect("a folder for the test");
        Folder(path)
    }

    /// A path in it.
    pub fn at(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("a path in UTF-8").to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// `ringcrawl web`, serving.
pub struct Web {
    child: Child,
    out: BufReader<ChildStdout>,
    /// What it said when it was ready.
    pub ready: serde_json::Value,
}

impl Web {
    /// Starts it on free ports, watching.
    pub fn start(arguments: &[String], ca_file: &str) -> Web {
        let mut command = Command::new(RINGCRAWL);
        command.arg("web").args(["--http-port", "0", "--https-port", "0", "--watch", "--ca-file", ca_file]);
        let mut child = command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        out.read_line(&mut line).expect("a line");
        let ready = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        Web { child, out, ready }
    }

    /// A port of its own, by the name it has in `ready`.
    pub fn port(&self, name: &str) -> u16 {
        self.ready[name].as_u64().and_then(|port| u16::try_from(port).ok()).expect("a port")
    }

    /// Stops it; its report.
    pub fn stop(mut self) -> serde_json::Value {
        interrupt(&self.child);
        let mut text = String::new();
        self.out.read_to_string(&mut text).expect("the report");
        assert!(self.child.wait().expect("a child").success(), "the web ended badly: {text}");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text:?}"))
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Crawls from `seed` to the end; the summary. Its words go to a file in `dir`'s parent.
pub fn crawl(seed: &str, dir: &str, config: &str) -> serde_json::Value {
    let words = PathBuf::from(format!("{dir}.log"));
    let json = format!("{dir}.json");
    let log = std::fs::File::create(&words).expect("a file");
    let mut child = Command::new(RINGCRAWL)
        .args(["crawl", seed, "--dir", dir, "-c", config, "--shards", "2", "--json", &json])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("it starts");
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break status;
        }
        if begun.elapsed() > PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            panic!("the crawl does not end: {}", said(&words));
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let said = said(&words);
    assert!(status.success() && !said.contains("panicked"), "{status}: {said}");
    let text = std::fs::read_to_string(json).expect("the summary");
    serde_json::from_str(&text).expect("JSON")
}

/// Runs the program to its end; what it printed.
pub fn output(arguments: &[&str]) -> String {
    let output = Command::new(RINGCRAWL).args(arguments).stdin(Stdio::null()).output().expect("it starts");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn said(words: &Path) -> String {
    std::fs::read_to_string(words).unwrap_or_default()
}

fn interrupt(child: &Child) {
    // The shell's own: a small system has no program of that name.
    let sent = Command::new("sh").args(["-c", &format!("kill -s INT {}", child.id())]).status();
    assert!(sent.expect("kill").success());
}
