//! ringcrawl: the life of a page.

pub mod boot;
pub mod cli;
pub mod config;
pub mod control;

pub mod drive;
pub mod exchange;
pub mod fetch;
pub mod frontier;
pub mod http;
pub mod lab;
pub mod links;
pub mod outcome;
pub mod ring;
pub mod robots;
pub mod route;
pub mod shard;
pub mod spool;
pub mod stats;
pub mod store;
pub mod time;
pub mod url;
pub mod visited;
pub mod web;
