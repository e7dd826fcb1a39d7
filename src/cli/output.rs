//! Standard error and standard output, which may be full, closed or gone.
//!
//! Decides: messages go to standard error. An error writing there changes nothing: no exit code, no file. Results go
//! to standard output. A reader that closes the pipe early, as `head` does, has seen enough: the command ends
//! silently and without an error. Any other write error there is reported, with exit code 1.
//! Why so: `println!` and `eprintln!` panic when they cannot write, and a crawl must not end in a panic because the
//! disk of its log is full.
//! A terminal gets no control characters (`terminal`); any other output gets every byte unchanged.
//! Invariants: no other file of `cli` writes with the standard macros; the compiler denies them.

use std::backtrace::Backtrace;
use std::fmt;
use std::io::{self, BufWriter, ErrorKind, IsTerminal as _, StdoutLock, Write};

use super::terminal::{self, Filter};

use super::{DONE, FAILED};

/// Prints a line on standard error; takes what `format!` takes.
#[macro_export]
macro_rules! tell {
    ($($message:tt)*) => { $crate::cli::output::line(format_args!($($message)*)) };
}
pub use crate::tell;

/// Writes one line at once, so that lines of several processes do not mix.
pub fn line(message: fmt::Arguments<'_>) {
    text(&format!("{message}\n"));
}

/// Writes text with its own line ends to standard error.
pub fn text(text: &str) {
    let mut stderr = io::stderr();
    let _ = match stderr.is_terminal() {
        true => stderr.write_all(terminal::shown(text).as_bytes()),
        false => stderr.write_all(text.as_bytes()),
    };
}

/// Writes panic messages like all other output, since they may contain text from others.
pub fn watch_panics() {
    let standard = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if io::stderr().is_terminal() {
            let thread = std::thread::current();
            line(format_args!("thread {:?}: {info}\n{}", thread.name().unwrap_or_default(), Backtrace::capture()));
        } else {
            standard(info);
        }
    }));
}

/// Writes `text` to standard output; returns the exit code.
pub fn print(text: &str) -> u8 {
    let mut stdout = Stdout::new();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => DONE,
        Err(error) => stdout.code_of(&error).unwrap_or(FAILED),
    }
}

/// Standard output, buffered. Its errors name it, since the caller may also see errors of other files.
pub(super) struct Stdout {
    buffer: BufWriter<StdoutLock<'static>>,
    /// Set if it is a terminal.
    filter: Option<Filter>,
    has_failed: bool,
}

impl Stdout {
    pub(super) fn new() -> Stdout {
        let filter = io::stdout().is_terminal().then(Filter::default);
        Stdout { buffer: BufWriter::new(io::stdout().lock()), filter, has_failed: false }
    }

    /// Reports `error` if it came from here, and then returns the exit code.
    pub fn code_of(&self, error: &io::Error) -> Option<u8> {
        match error.kind() {
            _ if !self.has_failed => None,
            ErrorKind::BrokenPipe => Some(DONE),
            _ => {
                tell!("ringcrawl: {error}");
                Some(FAILED)
            }
        }
    }

    fn note<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| {
            self.has_failed = true;
            io::Error::new(error.kind(), format!("cannot write to standard output: {error}"))
        })
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let result = match &mut self.filter {
            Some(filter) => filter.write(bytes, &mut self.buffer).map(|()| bytes.len()),
            None => self.buffer.write(bytes),
        };
        self.note(result)
    }

    fn flush(&mut self) -> io::Result<()> {
        let settled = self.filter.as_mut().map_or(Ok(()), |filter| filter.settle(&mut self.buffer));
        let result = settled.and_then(|()| self.buffer.flush());
        self.note(result)
    }
}
