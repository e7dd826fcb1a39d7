//! The binary: arguments in, exit code out.
//!
//! Decides: the allocator. A crawl lives for weeks and frees bodies of every size between small things that stay;
//! the system's allocator keeps growing under that (measured with `bench/soak`: docs/ARCHITECTURE.md, Decisions).

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ringcrawl::cli::main()
}
