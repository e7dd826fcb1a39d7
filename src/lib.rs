//! The program: the commands of `ringcrawl`. docs/ARCHITECTURE.md has the whole picture.

pub mod cli;
