//! Checks whether a run was what its workload promises.
//!
//! Decides: a figure of `new` is worthless when connections were kept, so every run is checked against the definition
//! of its workload. The ranges of `web` are those of real pages (bench/README.md). A run that fails a check is still
//! shown, and the program exits with 1.
//! Invariants: a pure function of setup and figures.

use serde::Serialize;

use super::figures::Figures;
use super::workload::{Setup, Workload};
use crate::cli::summary::ratio;

/// A condition that must hold.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Check {
    /// Its name.
    pub name: &'static str,
    /// Lower bound.
    pub least: f64,
    /// Upper bound; null: none.
    pub most: Option<f64>,
    /// The value seen; null: no data.
    pub seen: Option<f64>,
    /// Whether the value is within the bounds.
    pub holds: bool,
}

/// The checks of a run.
pub fn of(setup: &Setup, figures: &Figures) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut check = |name, least: f64, most: Option<f64>, seen: Option<f64>| {
        let holds = seen.is_some_and(|seen| seen >= least && most.is_none_or(|most| seen <= most));
        checks.push(Check { name, least, most, seen, holds });
    };
    let seen = &figures.seen;
    check("pages", 1.0, None, Some(figures.pages as f64));
    check("failures", 0.0, Some(0.0), Some(figures.failures.values().sum::<u64>() as f64));
    match setup.workload {
        Workload::Web => {
            check("body_bytes_mean", 150e3, Some(200e3), seen.body_bytes_mean);
            check("links_mean", 150.0, Some(185.0), seen.links_mean);
            check("coded_share", 0.99, Some(1.01), seen.coded_share);
            check("decoded_by_wire", 4.5, Some(6.0), seen.decoded_by_wire);
        }
        _ => {
            check("body_bytes_mean", 3e3, Some(6e3), seen.body_bytes_mean);
            check("links_mean", 8.0, Some(20.0), seen.links_mean);
        }
    }
    if setup.requests_per_connection > 0 {
        // At both ends of the window some connections are half used.
        let each = f64::from(setup.requests_per_connection);
        check("responses_per_connection", each * 0.7, Some(each * 1.3), seen.responses_per_connection);
    } else if setup.workload == Workload::Small {
        // Without kept connections this would be another workload.
        let each = seen.responses_per_connection.unwrap_or(figures.pages as f64);
        check("responses_per_connection", 4.0, None, Some(each));
    }
    if setup.workload == Workload::Tls {
        let handshakes = figures.counters.get("handshakes").copied().unwrap_or(0) as f64;
        let connections = figures.counters.get("connections").copied().unwrap_or(0) as f64;
        // A connection counts when it is opened, its handshake when it ends: those open at either end of the window may
        // count for one and not for the other.
        let margin = ratio(figures.memory.connections_open as f64, connections).unwrap_or(0.0);
        let each = ratio(handshakes, connections);
        check("handshakes_per_connection", 0.8 - margin, Some(1.2 + margin), each);
        let resumed = if setup.resumption { [0.5, 1.0] } else { [0.0, 0.0] };
        check("resumed_share", resumed[0], Some(resumed[1]), seen.resumed_share);
    }
    if setup.polite {
        let watch = figures.web.as_ref().and_then(|web| web.get("watch"));
        let number = |name: &str| watch.and_then(|watch| watch.get(name)).and_then(serde_json::Value::as_f64);
        check("host_idle_ms_min", figures.setting.host_delay_ms as f64, None, number("host_idle_ms_min"));
        check("host_in_flight_max", 1.0, Some(1.0), number("host_in_flight_max"));
        check("before_robots", 0.0, Some(0.0), number("before_robots"));
    }
    checks
}
