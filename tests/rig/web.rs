//! Synthetic webs: one served by the test's own process, one by the program as a process of its own.

use ringcrawl_base::TempFolder;
use ringcrawl_url::Url;
use ringcrawl_web::{ModelConfig, Running, Server, ServerConfig};
use serde_json::Value;

use super::program::{Process, start};

/// A watched web on free ports, and the root of its first site, from which all of it is reachable.
pub fn web(model: ModelConfig) -> (Running, String) {
    let model = ModelConfig { http_port: 0, https_port: 0, ..model };
    let web = Server::start(model, ServerConfig { watch: true, ..ServerConfig::default() }).expect("a synthetic web");
    let seed = web.model().seeds(1).first().map(Url::to_string).expect("a seed");
    (web, seed)
}

/// The configuration of a crawl of `web`, without any delay, with `more` lines behind it; its path in `folder`.
pub fn config(folder: &TempFolder, web: &Running, more: &str) -> String {
    let ca_file = folder.file("ca.pem", &web.ca_pem);
    let text = format!(
        "version = 1\ndns.servers = [\"{}\"]\ntls.ca_files = [{ca_file:?}]\n\
         politeness.host_delay = \"0s\"\npoliteness.site_delay = \"0s\"\npoliteness.ip_delay = \"0s\"\n{more}\n",
        web.dns
    );
    folder.file("config.toml", &text)
}

/// `ringcrawl web`, serving and watching.
pub struct WebProcess {
    process: Process,
    /// What it said when it was ready.
    pub ready: Value,
}

impl WebProcess {
    /// Starts it on free ports.
    pub fn start(arguments: &[&str], ca_file: &str) -> WebProcess {
        let own = ["--http-port", "0", "--https-port", "0", "--watch", "--ca-file", ca_file];
        WebProcess::start_with(&[&own[..], arguments].concat())
    }

    /// Starts it with these arguments alone.
    pub fn start_with(arguments: &[&str]) -> WebProcess {
        let mut process = start(&[&["web"], arguments].concat());
        let line = process.first_line();
        let ready = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        WebProcess { process, ready }
    }

    /// A port of its own, by the name it has in `ready`.
    pub fn port(&self, name: &str) -> u16 {
        self.ready[name].as_u64().and_then(|port| u16::try_from(port).ok()).expect("a port")
    }

    /// Sends it a signal, such as `STOP`.
    pub fn signal(&mut self, name: &str) {
        self.process.signal(name);
    }

    /// Stops it; its report.
    pub fn stop(mut self) -> Value {
        self.process.signal("INT");
        let out = self.process.end().expect(0).out;
        let (_, report) = out.split_once('\n').expect("the line before");
        serde_json::from_str(report).unwrap_or_else(|error| panic!("{error}: {report:?}"))
    }
}
