//! `ringcrawl inspect response`: one raw HTTP/1.x response as the crawler reads it, as one JSON object.
//!
//! Decides: the end of the file is the close of the connection. Bytes of reason and fields are written as latin-1,
//! one character a byte, so that nothing is lost. A response that could not be read has the same keys, with nulls and
//! empty values. `error` also says why a body is truncated, in the words of WARC-Truncated, or what was wrong with
//! its content coding.
//!
//! Limits: the defaults of the configuration's `[fetch]` table.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::process::ExitCode;

use base64::Engine;
use clap::ValueEnum;
use serde_json::{Value, json};

use crate::cli::output::{self, tell};
use ringcrawl_http::{self as http, HttpError, Limits, Method, Progress, ResponseReader};

/// Arguments of the subcommand.
#[derive(clap::Args, Debug)]
pub struct InspectResponse {
    /// The bytes as they came over the connection; `-` or nothing: standard input.
    file: Option<PathBuf>,
    /// Undo content codings too.
    #[arg(long)]
    decode: bool,
    /// The method of the request.
    #[arg(long, value_enum, ignore_case = true, default_value = "GET")]
    method: RequestMethod,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
#[value(rename_all = "UPPER")]
enum RequestMethod {
    Get,
    Head,
}

/// Runs it.
pub fn run(arguments: InspectResponse) -> ExitCode {
    let method = match arguments.method {
        RequestMethod::Get => Method::Get,
        RequestMethod::Head => Method::Head,
    };
    let limits = Limits::default();
    let read = match &arguments.file {
        Some(path) if path != OsStr::new("-") => File::open(path).and_then(|mut file| read(&mut file, method, limits)),
        _ => read(&mut io::stdin().lock(), method, limits),
    };
    let response = match read {
        Ok(response) => response,
        Err(error) => {
            let name = arguments.file.as_deref().map_or("standard input".into(), |path| path.display().to_string());
            tell!("ringcrawl: {name}: {error}");
            return ExitCode::from(2);
        }
    };
    let object = describe(response, arguments.decode, limits);
    ExitCode::from(output::print(&format!("{object}\n")))
}

/// Feeds `source` to a reader, no further than the response extends.
fn read(source: &mut impl Read, method: Method, limits: Limits) -> io::Result<Result<http::Response, HttpError>> {
    let mut reader = ResponseReader::new(method, limits);
    let mut piece = vec![0; 64 << 10];
    let progress = loop {
        match source.read(&mut piece) {
            Ok(0) => break reader.end_of_stream(),
            Ok(count) => match reader.feed(piece.get(..count).unwrap_or_default()) {
                Ok(Progress::More) => {}
                ended => break ended,
            },
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    };
    Ok(progress.and_then(|_| reader.into_response().ok_or(HttpError::ClosedEarly)))
}

fn describe(response: Result<http::Response, HttpError>, decode: bool, limits: Limits) -> Value {
    let response = match response {
        Ok(response) => response,
        Err(error) => {
            return json!({
                "status": null, "reason": null, "headers": [], "body_base64": "", "framing": "none",
                "outcome": "error", "error": error.to_string(),
            });
        }
    };
    let mut truncated = response.truncated;
    let mut body = std::borrow::Cow::Borrowed(&response.body[..]);
    let mut problem = None;
    if decode {
        let decoded = http::decode_content(&response.headers, &response.body, &limits);
        truncated = truncated.or(decoded.truncated);
        problem = decoded.problem;
        body = decoded.bytes;
    }
    let outcome = match (truncated, problem) {
        (Some(_), _) => "truncated",
        (None, Some(http::CodingProblem::Corrupt)) => "error",
        (None, _) => "ok",
    };
    let error = match (problem, truncated) {
        (Some(problem), _) => Some(problem.to_string()),
        (None, Some(truncated)) => Some(truncated.as_str().to_owned()),
        (None, None) => None,
    };
    let headers: Vec<Value> =
        response.headers.iter().map(|(name, value)| json!([latin1(name), latin1(value)])).collect();
    json!({
        "status": response.status,
        "reason": latin1(&response.reason),
        "headers": headers,
        "body_base64": base64::engine::general_purpose::STANDARD.encode(&body),
        "framing": response.framing.as_str(),
        "outcome": outcome,
        "error": error,
    })
}

fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inspect(mut bytes: &[u8], decode: bool) -> String {
        let response = read(&mut bytes, Method::Get, Limits::default()).expect("slices do not fail");
        describe(response, decode, Limits::default()).to_string()
    }

    #[test]
    fn the_object() {
        assert_eq!(
            inspect(b"HTTP/1.1 200 O\xe9\r\nA: \xff\r\na: b\r\nContent-Length: 3\r\n\r\nabcd", false),
            "{\"status\":200,\"reason\":\"O\u{e9}\",\"headers\":[[\"A\",\"\u{ff}\"],[\"a\",\"b\"],[\"Content-Length\",\"3\"]],\
             \"body_base64\":\"YWJj\",\"framing\":\"length\",\"outcome\":\"ok\",\"error\":null}"
        );
        assert_eq!(
            inspect(b"HTTP/1.1 200\r\nContent-Length: 3\r\n\r\na", false),
            "{\"status\":200,\"reason\":\"\",\"headers\":[[\"Content-Length\",\"3\"]],\"body_base64\":\"YQ==\",\
             \"framing\":\"length\",\"outcome\":\"truncated\",\"error\":\"disconnect\"}"
        );
        for (bytes, error) in [
            (&b"220 smtp.example.test"[..], "not an HTTP/1.x response"),
            (b"<html>", "HTTP/0.9 response: a document without status line and fields"),
        ] {
            assert_eq!(
                inspect(bytes, false),
                format!(
                    "{{\"status\":null,\"reason\":null,\"headers\":[],\"body_base64\":\"\",\"framing\":\"none\",\
                     \"outcome\":\"error\",\"error\":\"{error}\"}}"
                )
            );
        }
    }

    #[test]
    fn content_codings() {
        let lie = b"HTTP/1.1 200\r\nContent-Encoding: gzip\r\n\r\nabc";
        assert!(inspect(lie, false).ends_with("\"framing\":\"close\",\"outcome\":\"ok\",\"error\":null}"));
        let shown = inspect(lie, true);
        assert!(shown.contains("\"body_base64\":\"YWJj\"") && shown.contains("\"outcome\":\"error\""), "{shown}");
    }
}
