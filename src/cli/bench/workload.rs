//! The workloads: what is served and how it is crawled.
//!
//! Decides: each workload strains one thing and has a name, so that two words are enough to ask for a figure. All
//! webs are endless: a run can take any time and never runs out of pages. Small pages are not compressed, because
//! they are meant to show the cost of the kernel; `web` has pages like those of the open web. Only `tls` uses https,
//! so the difference of two runs is the cost of TLS.
//! Limits: one process serves, on loopback; `docs/BENCH.md` says what that hides.

use std::path::Path;

use super::BenchArguments;
use super::layout::Layout;
use crate::cli::Switch;
use ringcrawl_base::time::Duration;
use ringcrawl_brain::hops::LINKS_MAX;
use ringcrawl_config::{Config, ConfigError};
use ringcrawl_url::Url;
use ringcrawl_web::{Model, ModelConfig, Profile};

/// Workloads by name.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Workload {
    /// Pages of 4 KiB over http, connections kept: what a page costs at least.
    Small,
    /// Pages as the open web has them: 170 KB with 164 links, gzip.
    Web,
    /// Small pages over https, a new connection and handshake every K pages.
    Tls,
    /// Small pages over http, a new connection for each.
    New,
    /// Small pages of 100,000 hosts, each asked once a second at most.
    Polite,
}

/// A workload with every setting decided.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Which.
    pub workload: Workload,
    /// The web; its ports are not known yet.
    pub model: ModelConfig,
    /// Responses after which the server closes a connection; 0: never.
    pub requests_per_connection: u32,
    /// Whether TLS sessions may be resumed.
    pub resumption: bool,
    /// Whether delays are enforced.
    pub polite: bool,
    /// Time before anything is counted.
    pub warm_up: Duration,
    /// Time that is measured.
    pub time: Duration,
}

impl Workload {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Workload::Small => "small",
            Workload::Web => "web",
            Workload::Tls => "tls",
            Workload::New => "new",
            Workload::Polite => "polite",
        }
    }
}

impl Setup {
    /// Builds the setup from the arguments; the workload decides whatever they leave open.
    pub fn new(arguments: &BenchArguments) -> Setup {
        let workload = arguments.workload;
        let by_default = match workload {
            // Hosts take turns. With more hosts than idle connections allowed, no connection would survive until the
            // next turn.
            Workload::Small | Workload::Web | Workload::New => (500, 64, 0, 5),
            Workload::Tls => (300, 64, 10, 5),
            // Before its first page, each host needs its name resolved and its robots.txt fetched.
            Workload::Polite => (100_000, 2_048, 0, 30),
        };
        let (sites, addresses, requests, warm_up_seconds) = by_default;
        let requests = if workload == Workload::New { 1 } else { requests };
        let model = ModelConfig {
            sites: arguments.sites.unwrap_or(sites),
            pages: 0,
            addresses,
            https_share: if workload == Workload::Tls { 1.0 } else { 0.0 },
            endless: true,
            profile: if workload == Workload::Web { Profile::Web } else { Profile::Small },
            gzip: workload == Workload::Web,
            ..ModelConfig::default()
        };
        Setup {
            workload,
            model,
            requests_per_connection: arguments.requests_per_connection.unwrap_or(requests),
            resumption: arguments.resumption.is_on(),
            polite: arguments.politeness.map_or(workload == Workload::Polite, Switch::is_on),
            warm_up: arguments.warm_up.unwrap_or(Duration::from_secs(warm_up_seconds)),
            time: arguments.time,
        }
    }

    /// The arguments of `ringcrawl web` that serve it.
    pub fn web_arguments(&self) -> Vec<String> {
        let model = &self.model;
        let on = |on: bool| if on { "on" } else { "off" }.to_owned();
        let profile = if model.profile == Profile::Web { "web" } else { "small" };
        let mut arguments = vec!["--endless".to_owned()];
        let mut add = |name: &str, value: String| arguments.extend([format!("--{name}"), value]);
        add("sites", model.sites.to_string());
        add("rng-seed", model.rng_seed.to_string());
        add("addresses", model.addresses.to_string());
        add("https-share", model.https_share.to_string());
        add("profile", profile.to_owned());
        add("gzip", on(model.gzip));
        add("requests-per-connection", self.requests_per_connection.to_string());
        add("tls-tickets", on(self.resumption));
        if self.polite {
            // Only the server can measure the gaps between requests.
            arguments.push("--watch".to_owned());
        }
        arguments
    }

    /// The roots of all sites, as URLs on the served ports.
    pub fn seeds(&self, http_port: u16, https_port: u16) -> Result<Vec<Url>, String> {
        let model = Model::new(ModelConfig { http_port, https_port, ..self.model.clone() });
        Ok(model.map_err(|error| format!("--sites: {error}"))?.seeds(self.model.sites))
    }

    /// The crawl's configuration: the defaults, except for what the workload is about and what keeps a long run
    /// bounded.
    pub fn config(&self, layout: &Layout, dns: &str, ca_file: &Path) -> Result<Config, ConfigError> {
        let shards = layout.count.max(1);
        let mut config = Config::default();
        config.crawl.shards = shards;
        config.crawl.cpus = Layout::list(&layout.shards);
        config.crawl.rng_seed = 1;
        // Endless webs grow deep.
        config.scope.depth_max = LINKS_MAX;
        // The shards share a fixed total, so that neither open files nor disk use grows with their number.
        config.fetch.in_flight_max = (IN_FLIGHT_MAX / shards as usize).clamp(64, config.fetch.in_flight_max);
        config.fetch.idle_connections_max = config.fetch.in_flight_max;
        config.store.segment_bytes_max = (STORED_BYTES_MAX / u64::from(shards)).clamp(16 << 20, 256 << 20);
        if !self.polite {
            config.politeness.host_delay = Duration::ZERO;
            (config.politeness.site_delay, config.politeness.ip_delay) = (Duration::ZERO, Duration::ZERO);
        }
        config.set("dns.servers", dns)?;
        config.tls.ca_files = vec![ca_file.to_owned()];
        Ok(config)
    }
}

/// Fetches in flight, all shards together.
const IN_FLIGHT_MAX: usize = 4_096;
/// Bytes of open segments, all shards together; a closed one is deleted.
const STORED_BYTES_MAX: u64 = 1 << 30;
