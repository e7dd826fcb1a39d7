//! The program as a process.
//!
//! Decides: the program is the real one, started as an operator starts it; it is judged by its exit code, by what
//! it says and by what lies on disk afterwards.
//! Invariants: a process is killed when its value goes, whatever the test does; no wait is longer than [`PATIENCE`], unless a test says so.
//! Leaves to others: what was stored (`harvest`).

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The program.
pub const RINGCRAWL: &str = env!("CARGO_BIN_EXE_ringcrawl");

/// Longest wait for anything: far more than a test takes on a busy machine, so that one that hangs ends, with its reason.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// How the program ended and what it said.
#[derive(Debug)]
pub struct Ended {
    /// Exit code; 128 and the signal's number when a signal ended it.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// The same as it came.
    pub out_bytes: Vec<u8>,
    /// Standard error.
    pub err: String,
}

impl Ended {
    /// Panics, with everything said, unless the exit code is `code`.
    #[track_caller]
    pub fn expect(self, code: i32) -> Ended {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    /// Panics unless standard error holds each of `words`.
    #[track_caller]
    pub fn says(self, words: &[&str]) -> Ended {
        for word in words {
            assert!(self.err.contains(word), "it does not say {word:?}:\n{}", self.err);
        }
        self
    }

    /// Standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}

/// The program under way; killed when this value goes.
pub struct Process {
    child: Child,
    out: Pipe,
    err: Pipe,
}

/// What came out of a pipe so far. Pipes are read while the program runs: a full one would stop it.
struct Pipe {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

/// Copies the program by a process of its own: a file that this one writes would be busy in whatever it starts meanwhile.
#[track_caller]
pub fn copy_program(to: &str) {
    assert!(Command::new("cp").args([RINGCRAWL, to]).status().expect("cp").success(), "{to} was not written");
}

impl Process {
    /// Starts a command.
    pub fn start(command: &mut Command) -> Process {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let out = Pipe::read(child.stdout.take().expect("a pipe"));
        let err = Pipe::read(child.stderr.take().expect("a pipe"));
        Process { child, out, err }
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal, such as `INT`.
    pub fn signal(&mut self, name: &str) {
        let kill = format!("kill -s {name} {}", self.child.id());
        // The shell's own: a small system has no program of that name.
        let sent = Command::new("sh").args(["-c", &kill]).status();
        assert!(sent.expect("kill").success(), "SIG{name} could not be sent");
    }

    /// Waits until `holds`, while the program runs.
    #[track_caller]
    pub fn wait_until(&mut self, what: &str, holds: impl FnMut() -> bool) {
        self.wait_with_patience(PATIENCE, what, holds);
    }

    /// The same, for what is known to take longer.
    #[track_caller]
    pub fn wait_with_patience(&mut self, patience: Duration, what: &str, mut holds: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !holds() {
            if self.child.try_wait().expect("a child").is_some() {
                panic!("the program ended before {what}: {:#?}", self.collect());
            }
            assert!(begun.elapsed() < patience, "waited too long for {what}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Waits until it has said `word` on standard error.
    #[track_caller]
    pub fn wait_for(&mut self, word: &str) {
        let bytes = Arc::clone(&self.err.bytes);
        self.wait_until(word, || String::from_utf8_lossy(&bytes.lock().expect("a pipe")).contains(word));
    }

    /// Waits for the first line on standard output.
    #[track_caller]
    pub fn first_line(&mut self) -> String {
        let bytes = Arc::clone(&self.out.bytes);
        let line = || {
            let bytes = bytes.lock().expect("a pipe");
            let end = bytes.iter().position(|byte| *byte == b'\n')?;
            Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
        };
        self.wait_until("a line", || line().is_some());
        line().unwrap_or_default()
    }

    /// Waits for its end.
    #[track_caller]
    pub fn end(mut self) -> Ended {
        self.collect()
    }

    #[track_caller]
    fn collect(&mut self) -> Ended {
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                break status;
            }
            assert!(begun.elapsed() < PATIENCE, "the program does not end");
            std::thread::sleep(Duration::from_millis(2));
        };
        let out_bytes = self.out.finish();
        Ended {
            code: status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default()),
            out: String::from_utf8_lossy(&out_bytes).into_owned(),
            out_bytes,
            err: String::from_utf8_lossy(&self.err.finish()).into_owned(),
        }
    }
}

impl Pipe {
    fn read(mut pipe: impl Read + Send + 'static) -> Pipe {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&bytes);
        let reader = std::thread::spawn(move || {
            let mut piece = [0; 4_096];
            while let Ok(count @ 1..) = pipe.read(&mut piece) {
                seen.lock().expect("a pipe").extend_from_slice(&piece[..count]);
            }
        });
        Pipe { bytes, reader: Some(reader) }
    }

    /// Everything, when the pipe has ended.
    fn finish(&mut self) -> Vec<u8> {
        if let Some(reader) = self.reader.take() {
            reader.join().expect("a reader");
        }
        self.bytes.lock().expect("a pipe").clone()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the program to its end.
#[track_caller]
pub fn run(arguments: &[&str]) -> Ended {
    start(arguments).end()
}

/// Starts the program.
pub fn start(arguments: &[&str]) -> Process {
    Process::start(Command::new(RINGCRAWL).args(arguments))
}

/// Runs the lab to its end.
#[track_caller]
pub fn run_lab(arguments: &[&str]) -> Ended {
    start_lab(arguments).end()
}

/// Starts the lab, which is of another package, and lies beside the program when the workspace is built.
#[track_caller]
pub fn start_lab(arguments: &[&str]) -> Process {
    let lab = Path::new(RINGCRAWL).with_file_name("ringcrawl-lab");
    assert!(lab.exists(), "{} is not there: cargo build --workspace makes it", lab.display());
    Process::start(Command::new(lab).args(arguments))
}

/// Whether the user may do everything; tests that need it say that they are skipped.
pub fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

/// Whether a path exists.
pub fn exists(path: &str) -> bool {
    Path::new(path).exists()
}
