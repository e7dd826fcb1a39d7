//! The synthetic web: a web of any size on loopback. Each page is a pure function of a seed and its URL.
//!
//! Decides: it is the load for the bench and the truth for demo and tests. The model defines which pages exist and
//! which pages link to each other, so the pages that a correct crawl must fetch are computed without a request.
//! Invariants: `model`, `site`, `place`, `plan`, `page` and `truth` touch no clock, socket, file or random source;
//! the same configuration and URL give the same bytes on every thread. `server` binds loopback addresses alone.
//! Faults that it can be configured to have are in `faults`.

pub mod answer;
mod authority;
mod conduct;
mod connection;
mod crc;
mod draw;
pub mod faults;
mod gaps;
mod gzip;
mod href;
pub mod model;
mod names;
mod noise;
mod page;
mod place;
mod plan;
mod pool;
mod serve;
mod server;
#[cfg(test)]
mod server_tests;
mod site;
pub mod truth;
mod watch;

pub use faults::{Fault, Faults, FaultsError};
pub use model::{Model, ModelConfig, ModelError, Profile};
pub use place::{Item, OriginVariant, Place};
pub use server::{Running, Server, ServerConfig};
pub use site::{RobotsKind, Site};
pub use watch::ServerReport;
