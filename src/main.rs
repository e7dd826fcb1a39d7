//! The binary: arguments in, exit code out.

fn main() -> std::process::ExitCode {
    ringcrawl::cli::main()
}
