//! What the tests of the binary stand on: a place for files, a synthetic web, and the program as a process.
//!
//! Decides: the program is the real one, started as an operator starts it; it is judged by its exit code, by what
//! it says and by what lies on disk afterwards. The web is served by the test's own process, on free ports.
//! Invariants: a place is removed and a process killed when its value goes, whatever the test does; no wait is longer
//! than [`PATIENCE`].
//! Leaves to others: what was stored (`harvest`).

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ringcrawl::url::Url;
use ringcrawl::web::{ModelConfig, Running, Server, ServerConfig};

/// The program.
pub const RINGCRAWL: &str = env!("CARGO_BIN_EXE_ringcrawl");

/// Longest wait for anything: far more than a test may take, so that a test that hangs ends, with its reason.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A folder of one test, removed with this value.
pub struct Place(PathBuf);

impl Place {
    /// A new, empty folder.
    pub fn new(name: &str) -> Place {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("ringcrawl-{name}-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).expect("a folder for the test");
        Place(path)
    }

    /// A path in it, as an argument.
    pub fn at(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("a path in UTF-8").to_owned()
    }

    /// A file in it; its path.
    pub fn file(&self, name: &str, text: &str) -> String {
        std::fs::write(self.0.join(name), text).expect("a file for the test");
        self.at(name)
    }

    /// The configuration of a crawl of `web`, without any delay, with `more` lines behind it; its path.
    pub fn config(&self, web: &Running, more: &str) -> String {
        let ca_file = self.file("ca.pem", &web.ca_pem);
        let text = format!(
            "version = 1\ndns.servers = [\"{}\"]\ntls.ca_files = [{ca_file:?}]\n\
             politeness.host_delay = \"0s\"\npoliteness.ip_delay = \"0s\"\n{more}\n",
            web.dns
        );
        self.file("config.toml", &text)
    }

    /// Every file below `name` with its content, every folder with none: two are equal when nothing was touched.
    pub fn content(&self, name: &str) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        let mut content = BTreeMap::new();
        let mut paths = vec![self.0.join(name)];
        while let Some(path) = paths.pop() {
            if path.is_dir() {
                paths.extend(std::fs::read_dir(&path).expect("a folder").map(|entry| entry.expect("an entry").path()));
                content.insert(path, None);
            } else if path.exists() {
                let bytes = std::fs::read(&path).expect("a file");
                content.insert(path, Some(bytes));
            }
        }
        content
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A watched web on free ports, and the root of its first site, from which all of it is reachable.
pub fn web(model: ModelConfig) -> (Running, String) {
    let model = ModelConfig { http_port: 0, https_port: 0, ..model };
    let web = Server::start(model, ServerConfig { watch: true, ..ServerConfig::default() }).expect("a synthetic web");
    let seed = web.model().seeds(1).first().map(Url::to_string).expect("a seed");
    (web, seed)
}

/// How the program ended and what it said.
#[derive(Debug)]
pub struct Ended {
    /// Exit code; 128 and the signal's number when a signal ended it.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
    /// Between start, or the last signal sent, and the end.
    pub took: Duration,
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
    since: Instant,
}

/// What came out of a pipe so far. Pipes are read while the program runs: a full one would stop it.
struct Pipe {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Process {
    /// Starts a command.
    pub fn start(command: &mut Command) -> Process {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let out = Pipe::read(child.stdout.take().expect("a pipe"));
        let err = Pipe::read(child.stderr.take().expect("a pipe"));
        Process { child, out, err, since: Instant::now() }
    }

    /// Sends a signal, such as `INT`.
    pub fn signal(&mut self, name: &str) {
        let kill = format!("kill -s {name} {}", self.child.id());
        // The shell's own: a small system has no program of that name.
        let sent = Command::new("sh").args(["-c", &kill]).status();
        assert!(sent.expect("kill").success(), "SIG{name} could not be sent");
        self.since = Instant::now();
    }

    /// Waits until `holds`, while the program runs.
    #[track_caller]
    pub fn wait_until(&mut self, what: &str, mut holds: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !holds() {
            if self.child.try_wait().expect("a child").is_some() {
                panic!("the program ended before {what}: {:#?}", self.collect());
            }
            assert!(begun.elapsed() < PATIENCE, "waited too long for {what}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Waits until it has said `word` on standard error.
    #[track_caller]
    pub fn wait_for(&mut self, word: &str) {
        let bytes = Arc::clone(&self.err.bytes);
        self.wait_until(word, || String::from_utf8_lossy(&bytes.lock().expect("a pipe")).contains(word));
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
        let took = self.since.elapsed();
        Ended {
            code: status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default()),
            out: self.out.finish(),
            err: self.err.finish(),
            took,
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
    fn finish(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            reader.join().expect("a reader");
        }
        String::from_utf8_lossy(&self.bytes.lock().expect("a pipe")).into_owned()
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

/// Whether the user may do everything; tests that need it say that they are skipped.
pub fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

/// Whether a path exists.
pub fn exists(path: &str) -> bool {
    Path::new(path).exists()
}
