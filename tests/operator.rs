//! The program as operators meet it: their mistakes, a full disk, Ctrl-C, a power cut, and the end of a budget.
//!
//! Decides: each test runs the real program in a directory of its own and judges exit code, words and files.
//! 0 is success, 1 the system's failure, 2 the operator's mistake, 3 a crawl whose seeds gave no page; a mistake changes nothing on disk.

mod asked_again;
mod balance;
mod budget;
mod cookies;
mod damage;
mod disk;
mod disks;
mod embeds;
mod folders;
mod hangup;
mod kept;
mod kills;
mod lab;
mod limits;
mod listings;
mod mistakes;
mod modes;
mod orders;
mod outages;
mod output;
mod own_addresses;
mod own_hosts;
mod panics;
mod plan;
mod queries;
mod reasons;
mod referrer;
mod robots;
mod rounds;
mod scope;
mod secrets;
mod seeds;
mod site_allowances;
mod site_budgets;
mod stop;
mod stores;
mod terminals;
mod vector;
mod why;
