//! What we make of the cases that others wrote for the standards: HTTP, links, robots.txt, URLs.

mod http;
mod links;
mod robots;
mod url;
