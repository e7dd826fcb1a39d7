//! Serves the web that is crawled: `ringcrawl web` in a process of its own.
//!
//! Decides: the same program serves, so there is nothing to install. It runs in another process, so that its CPU time
//! and memory do not count as the crawler's. It stops when its standard input ends, so it never outlives this
//! process, however that ends. It is in a process group of its own: Ctrl-C is for the crawl.
//! Invariants: dropping it stops the server.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::layout::Layout;
use super::workload::Setup;
use ringcrawl_base::time::Duration;
use ringcrawl_ring as ring;

/// A synthetic web that is being served.
pub struct Served {
    child: Child,
    /// Closing it stops the server.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    /// Ports and addresses of the server.
    pub ready: Ready,
}

/// What the server reports when it is ready.
#[derive(Clone, Debug, serde::Deserialize)]
pub struct Ready {
    /// Port of every http origin.
    pub http_port: u16,
    /// Port of every https origin.
    pub https_port: u16,
    /// The name server.
    pub dns: String,
}

impl Served {
    /// Serves the setup's web on `cpus` and writes its root certificate to `ca_file`.
    pub fn start(setup: &Setup, cpus: &[usize], ca_file: &Path) -> Result<Served, String> {
        let failed = |what: &str| format!("the synthetic web did not start: {what}");
        let program = std::env::current_exe().map_err(|error| failed(&error.to_string()))?;
        let mut child = Command::new(program)
            .arg("web")
            .args(setup.web_arguments())
            .args(["--until-eof", "--http-port", "0", "--https-port", "0", "--dns-port", "0", "--ca-file"])
            .arg(ca_file)
            .args(["--threads", &cpus.len().to_string(), "--cpus", &Layout::list(cpus)])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|error| failed(&error.to_string()))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let output = BufReader::new(output.ok_or_else(|| failed("it has no output"))?);
        let ready = Ready { http_port: 0, https_port: 0, dns: String::new() };
        let mut served = Served { child, input, output, ready };
        let mut line = String::new();
        // The server has reported the error itself, on standard error.
        served.output.read_line(&mut line).map_err(|error| failed(&error.to_string()))?;
        served.ready = serde_json::from_str(&line).map_err(|_| failed("see above"))?;
        Ok(served)
    }

    /// CPU time that the server has used.
    pub fn cpu_time(&self) -> Duration {
        ring::process_cpu_time(self.child.id()).unwrap_or_default()
    }

    /// Stops it and returns what it saw of the crawl.
    pub fn stop(mut self) -> Option<serde_json::Value> {
        self.input = None;
        let mut report = String::new();
        self.output.read_to_string(&mut report).ok()?;
        serde_json::from_str(&report).ok()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
