//! A mistake in a configuration: where it is, which key, what is wrong and what would be right.
//!
//! Decides: an error is a line that an editor can jump to, `FILE:LINE: key.path: what is wrong; expected …`,
//! because the operator who reads it at 3 a.m. has no source at hand.
//! Leaves to others: finding the mistakes (`parse`, `check`).

use std::fmt;

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The file as the operator named it; `--set` for the command line; empty for a value set by code.
    pub file: String,
    /// Line, from 1; 0: no line (the file as a whole, or the command line).
    pub line: usize,
    /// Column in characters, from 1; 0: no column.
    pub column: usize,
    /// The key's dotted path; empty: no key (a syntax error).
    pub key: String,
    /// What is wrong, and after "; expected" what would be right.
    pub message: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.file.is_empty() {
            write!(f, "{}:", self.file)?;
            if self.line > 0 {
                write!(f, "{}:", self.line)?;
            }
            f.write_str(" ")?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for ConfigError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_that_editors_understand() {
        let mut error = ConfigError {
            file: "a.toml".into(),
            line: 7,
            column: 3,
            key: "fetch.deadline".into(),
            message: "\"10\" has no unit; expected a duration".into(),
        };
        assert_eq!(error.to_string(), "a.toml:7: fetch.deadline: \"10\" has no unit; expected a duration");
        error.line = 0;
        assert_eq!(error.to_string(), "a.toml: fetch.deadline: \"10\" has no unit; expected a duration");
        error.file.clear();
        error.key.clear();
        assert_eq!(error.to_string(), "\"10\" has no unit; expected a duration");
    }
}
