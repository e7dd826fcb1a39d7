//! Names the bottleneck of a run.
//!
//! Decides: pages per second and core mean something only when the cores had nothing else to do. So the verdict comes
//! first. It uses a handful of numbers, checked in an order in which an earlier cause explains a later one.
//! Invariants: a pure function of its numbers.

/// The limiting factor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bottleneck {
    /// The shards' CPUs were busy with the crawl: the desired result.
    Shards,
    /// Something else ran on the shards' CPUs.
    Others,
    /// The web had no CPU time left.
    Web,
    /// The disk fell behind.
    Disk,
    /// Every fetch slot was taken by a fetch that waited for its response.
    Latency,
    /// No URL was left to fetch.
    Work,
    /// Delays: no host could get a request yet.
    Politeness,
    /// One request per host at a time: every host was busy or had a request in flight.
    Hosts,
}

/// Inputs of the verdict; shares are from 0 to 1.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Load {
    /// CPU time of the shards' threads, as a share of their CPUs' time.
    pub shards_busy: f64,
    /// Time that the shards' threads were runnable but not running, as a share of their CPUs' time.
    pub shards_waiting: f64,
    /// CPU time of the web, as a share of its CPUs' time.
    pub web_busy: f64,
    /// Share of samples at which the disk's backlog held fetches back.
    pub disk_behind: f64,
    /// Fetches in flight, as a share of the limit.
    pub in_flight: f64,
    /// URLs queued at the end.
    pub queued: u64,
    /// Whether delays were enforced.
    pub polite: bool,
}

/// A core this busy is treated as fully busy: sampling and the scheduler take the rest.
pub const BUSY: f64 = 0.95;

impl Load {
    /// The verdict.
    pub fn bottleneck(&self) -> Bottleneck {
        if self.shards_busy >= BUSY {
            Bottleneck::Shards
        } else if self.shards_busy + self.shards_waiting >= BUSY {
            Bottleneck::Others
        } else if self.disk_behind >= 0.5 {
            Bottleneck::Disk
        } else if self.web_busy >= 0.9 {
            Bottleneck::Web
        } else if self.queued == 0 {
            Bottleneck::Work
        } else if self.in_flight >= 0.95 {
            Bottleneck::Latency
        } else if self.polite {
            Bottleneck::Politeness
        } else {
            Bottleneck::Hosts
        }
    }
}

impl Bottleneck {
    /// Its name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Bottleneck::Shards => "shards",
            Bottleneck::Others => "others",
            Bottleneck::Web => "web",
            Bottleneck::Disk => "disk",
            Bottleneck::Latency => "latency",
            Bottleneck::Work => "work",
            Bottleneck::Politeness => "politeness",
            Bottleneck::Hosts => "hosts",
        }
    }

    /// An explanation for people.
    pub fn explain(self) -> &'static str {
        match self {
            Bottleneck::Shards => "the shards: their CPUs had no time left",
            Bottleneck::Others => "other threads and processes on the shards' CPUs",
            Bottleneck::Web => "the web server: give it more CPUs (--web-cpus)",
            Bottleneck::Disk => "the disk: it fell behind (use a faster one with --dir)",
            Bottleneck::Latency => "latency: every fetch slot waited for a response (fetch.in_flight_max)",
            Bottleneck::Work => "no URLs were left: more sites are needed (--sites)",
            Bottleneck::Politeness => "delays: no host was due (--sites, politeness.host_delay)",
            Bottleneck::Hosts => "one request a host at a time: more hosts are needed (--sites)",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_that_explains_the_others_is_named() {
        let idle = Load { queued: 1, ..Load::default() };
        for (load, expected) in [
            (Load { shards_busy: 0.96, web_busy: 1.0, in_flight: 1.0, ..idle }, "shards"),
            (Load { shards_busy: 0.6, shards_waiting: 0.38, web_busy: 0.99, ..idle }, "others"),
            (Load { shards_busy: 0.94, web_busy: 0.95, in_flight: 1.0, ..idle }, "web"),
            (Load { shards_busy: 0.5, disk_behind: 0.7, in_flight: 0.3, web_busy: 0.95, ..idle }, "disk"),
            (Load { shards_busy: 0.5, in_flight: 0.99, ..idle }, "latency"),
            (Load { shards_busy: 0.5, queued: 0, polite: true, ..idle }, "work"),
            (Load { shards_busy: 0.5, in_flight: 0.1, polite: true, ..idle }, "politeness"),
            (Load { shards_busy: 0.5, in_flight: 0.1, ..idle }, "hosts"),
        ] {
            assert_eq!(load.bottleneck().as_str(), expected, "{load:?}");
            assert!(!load.bottleneck().explain().is_empty());
        }
    }
}
