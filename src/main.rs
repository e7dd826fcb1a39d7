//! The binary: arguments in, exit code out.
//!
//! Decides: the allocator. A crawl runs for weeks and frees bodies of every size between small allocations that stay.
//! The system's allocator keeps growing under that load (measured with `bench/soak`: docs/ARCHITECTURE.md,
//! Decisions).

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ringcrawl::cli::main()
}
