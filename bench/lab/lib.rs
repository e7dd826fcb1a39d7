//! The simulator: whole crawls by the real brain with a virtual clock, a fake web and a fake disk, from one number.
//!
//! [`Simulation::run`] builds a web, shards and faults from a seed, drives the brains until no work is left, and
//! checks what must hold: everything reachable is fetched, nothing is fetched twice, no gap is violated as the fake
//! servers measure it, nothing is requested that robots.txt forbids, everything is stored, memory stays within its
//! bound. The same seed gives the same trace.

pub mod commands;
pub mod experiment;
mod fake_disk;
mod fake_dns;
mod fake_http;
mod fake_outage;
mod fake_robots;
mod fake_server;
mod fake_web;
pub mod plan;
mod simulation;
mod yardstick;

pub use fake_disk::FakeDisk;
pub use fake_server::FakeServers;
pub use fake_web::FakeWeb;
pub use simulation::{Simulation, SimulationReport};
pub use yardstick::slowness;
