//! Questions as JSON lines on standard input, answers as JSON lines on standard output, one for one, in order.
//!
//! Decides: answers are written when no more input is ready, so that a file goes through in large writes and a
//! program that asks one question at a time gets its answer. Test suites write lone surrogates (`"\ud800"`), which
//! JSON permits and UTF-8 text cannot hold. They count as U+FFFD, as in a browser that makes a scalar value string of
//! them (WHATWG Infra, section 4.6). Empty lines are skipped.
//!
//! Limits: 16 MiB a line.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::process::ExitCode;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::cli::output::{Stdout, tell};
use crate::cli::{FAILED, MISTAKE};

/// Answers every line of standard input. Exit code 2 and a message with the line's number when one is malformed.
pub fn answer_lines<Q: DeserializeOwned, A: Serialize>(answer: impl FnMut(Q) -> Result<A, String>) -> ExitCode {
    let mut stdout = Stdout::new();
    match run(io::stdin().lock(), &mut stdout, answer) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Stop::Malformed(message)) => {
            tell!("{message}");
            ExitCode::from(MISTAKE)
        }
        Err(Stop::Io(error)) => ExitCode::from(stdout.code_of(&error).unwrap_or_else(|| {
            tell!("ringcrawl: standard input: {error}");
            FAILED
        })),
    }
}

const LINE_BYTES_MAX: u64 = 16 << 20;

#[derive(Debug)]
enum Stop {
    Malformed(String),
    Io(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        Stop::Io(error)
    }
}

fn run<Q: DeserializeOwned, A: Serialize>(
    questions: impl Read,
    answers: impl Write,
    mut answer: impl FnMut(Q) -> Result<A, String>,
) -> Result<(), Stop> {
    let mut questions = BufReader::with_capacity(1 << 16, questions);
    let mut answers = BufWriter::with_capacity(1 << 16, answers);
    let mut line = Vec::new();
    for number in 1u64.. {
        if questions.buffer().is_empty() {
            answers.flush()?;
        }
        line.clear();
        if questions.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let answered = if line.len() as u64 == LINE_BYTES_MAX && !line.ends_with(b"\n") {
            Err(format!("longer than {LINE_BYTES_MAX} bytes"))
        } else {
            let text = String::from_utf8_lossy(&line);
            serde_json::from_str(&replace_lone_surrogates(&text)).map_err(|error| reason(&error)).and_then(&mut answer)
        };
        match answered {
            Ok(answered) => {
                serde_json::to_writer(&mut answers, &answered).map_err(io::Error::from)?;
                answers.write_all(b"\n")?;
            }
            Err(reason) => {
                answers.flush()?;
                return Err(Stop::Malformed(format!("line {number}: {reason}")));
            }
        }
    }
    answers.flush()?;
    Ok(())
}

/// Without serde_json's own position, which counts from the current line.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.split_once(" at line ") {
        Some((reason, _)) => format!("{reason}, at column {}", error.column()),
        None => text,
    }
}

/// JSON text with every unpaired `\uD800`–`\uDFFF` replaced by `\ufffd`.
fn replace_lone_surrogates(json: &str) -> Cow<'_, str> {
    let mut replaced = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = json.get(at..).and_then(|rest| rest.find('\\')) {
        let escape = at + found;
        match unit_at(json, escape) {
            Some(0xD800..=0xDBFF) if matches!(unit_at(json, escape + UNIT_BYTES), Some(0xDC00..=0xDFFF)) => {
                at = escape + 2 * UNIT_BYTES;
            }
            Some(0xD800..=0xDFFF) => {
                replaced.push_str(json.get(copied..escape).unwrap_or_default());
                replaced.push_str("\\ufffd");
                at = escape + UNIT_BYTES;
                copied = at;
            }
            Some(_) => at = escape + UNIT_BYTES,
            // A backslash and one character; if that is not ASCII, the text is not JSON, and serde_json reports it.
            None => {
                at = escape + 1 + json.get(escape + 1..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8)
            }
        }
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    replaced.push_str(json.get(copied..).unwrap_or_default());
    Cow::Owned(replaced)
}

/// Length of `\uXXXX`.
const UNIT_BYTES: usize = 6;

/// The UTF-16 code unit of the escape at `at`.
fn unit_at(json: &str, at: usize) -> Option<u16> {
    let digits = json.get(at..at + UNIT_BYTES)?.strip_prefix("\\u")?;
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u16::from_str_radix(digits, 16).ok().filter(|_| is_hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(input: &[u8]) -> (String, Result<(), Stop>) {
        let mut output = Vec::new();
        let ended = run(input, &mut output, |text: String| Ok(text.chars().count()));
        (String::from_utf8(output).unwrap(), ended)
    }

    #[test]
    fn answers_in_order_until_a_malformed_line() {
        let (output, ended) = lengths(b"\"a\"\n\n\"bc\"\r\n{}\n\"never\"\n");
        assert_eq!(output, "1\n2\n");
        assert!(matches!(ended, Err(Stop::Malformed(message)) if message.starts_with("line 4: ")));
        let (output, ended) = lengths(b"\"no line end\"");
        assert_eq!(output, "11\n");
        assert!(ended.is_ok());
    }

    #[test]
    fn surrogates() {
        for (json, expected) in [
            (r#""\ud83d\ude00""#, "😀"),
            (r#""a\ud83db""#, "a\u{fffd}b"),
            (r#""\ude00\ud83d""#, "\u{fffd}\u{fffd}"),
            (r#""\ud800\ud83d\ude00""#, "\u{fffd}😀"),
            (r#""\\ud800""#, "\\ud800"),
            (r#""\\\ud800""#, "\\\u{fffd}"),
            (r#""\uD800""#, "\u{fffd}"),
        ] {
            assert_eq!(serde_json::from_str::<String>(&replace_lone_surrogates(json)).unwrap(), expected, "{json}");
        }
        for broken in ["\\", "\"\\", "\"\\u", "\"\\ud8", "\"\\ud800\\u", "\\ü", "\\u+123"] {
            let _ = replace_lone_surrogates(broken);
        }
    }
}
