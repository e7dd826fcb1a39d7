//! What the tests stand on: the program, the hands, peers, and what a crawl stored.

pub mod hands;
pub mod harvest;
pub mod peer;
pub mod program;
