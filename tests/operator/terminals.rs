//! Terminals: what strangers send does not act on the operator's terminal, and a pipe gets it as it came.
//!
//! Decides: a real pseudo-terminal, which `script` opens; the same commands beside it through pipes.

use std::io::Write as _;
use std::process::Command;

use ringcrawl_base::TempFolder;

use crate::rig::program::{Ended, Process, RINGCRAWL, run};
use crate::rig::servers::{read_request, server};
use crate::rig::skip;

/// Names the window, erases, goes back, colours by C1 as UTF-8 and as one byte; then harmless text and broken UTF-8.
const PAGE: &[u8] =
    b"<a href=/\x1b]0;planted\x07>a</a>\tb\r\n\x1b[2J\x08\x7f\rc \xc2\x9b31m \x9b31m gr\xc3\xbc\xc3\x9f \xe9\xff\n";
/// The same for a head.
const HEAD: &[u8] = b"HTTP/1.1 200 \x1b]0;planted\x07 \xc2\x9b31m\r\nContent-Type: text/html\r\nX-A: \x1b[2J\x9b\r\n";

/// Runs the program with all its streams on a terminal; its output is both streams.
fn on_a_terminal(folder: &TempFolder, arguments: &[&str]) -> Ended {
    with_a_panic(folder, "", arguments)
}

/// The same with a panic planted.
fn with_a_panic(folder: &TempFolder, planted: &str, arguments: &[&str]) -> Ended {
    // Arguments go by a file, so that the shell leaves them as they are.
    let quoted = arguments.iter().map(|argument| format!(" '{argument}'")).collect::<String>();
    let file = folder.file("command", &format!("exec '{RINGCRAWL}'{quoted}\n"));
    let mut command = Command::new("script");
    command.env("RINGCRAWL_PANIC", planted);
    Process::start(command.args(["--quiet", "--return", "--command", &format!("sh '{file}'"), "/dev/null"])).end()
}

/// Panics if a control character is in the text but for line ends, of which the terminal makes CRLF, and tabs.
#[track_caller]
fn harmless(arguments: &[&str], shown: &Ended) {
    let text = std::str::from_utf8(&shown.out_bytes).unwrap_or_else(|error| panic!("{arguments:?}: {error}"));
    let text = text.replace("\r\n", "\n");
    let bad: Vec<char> = text.chars().filter(|c| c.is_control() && !matches!(c, '\n' | '\t')).collect();
    assert!(bad.is_empty(), "{arguments:?}: {bad:?} in {text:?}");
}

#[test]
fn no_control_characters_reach_a_terminal() {
    if Command::new("script").arg("--version").output().is_err() {
        return skip("no script (util-linux)");
    }
    let (addr, _) = server(|mut stream, _| {
        while let Some(request) = read_request(&mut stream) {
            if request.starts_with("GET /robots.txt") {
                let _ = stream.write_all(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n");
            } else {
                let _ = stream
                    .write_all(&[HEAD, format!("Content-Length: {}\r\n\r\n", PAGE.len()).as_bytes(), PAGE].concat());
            }
        }
    });
    let folder = TempFolder::new("terminals");
    let (dir, url) = (folder.at("crawl"), format!("http://{addr}/"));
    let quick = "politeness.host_delay=0s";
    let crawl = [
        "crawl",
        &url,
        "--dir",
        &dir,
        "--set",
        quick,
        "--set",
        "politeness.site_delay=0s",
        "--set",
        "politeness.ip_delay=0s",
    ];
    let shown = on_a_terminal(&folder, &crawl).expect(0);
    assert!(!shown.out.contains("\u{1b}]0;") && !shown.out.contains("\u{9b}"), "{}", shown.out);
    // A panic is told there, too, with its place.
    let other = ["crawl", &url, "--dir", &folder.at("panic"), "--set", quick];
    let shown = with_a_panic(&folder, "fetch:1", &other).expect(1);
    assert!(
        shown.out.contains("a panic planted") && shown.out.contains("panicked at src/crawler/fault_injection.rs:"),
        "{}",
        shown.out
    );
    let (page, response) = (folder.at("page.html"), folder.at("response"));
    std::fs::write(&page, PAGE).expect("a file");
    std::fs::write(&response, [HEAD, b"\r\n", PAGE].concat()).expect("a file");
    // A foreign file, as no crawl of ours makes one.
    let warc = folder.at("foreign.warc");
    let record = "WARC/1.1\r\nWARC-Type: resource\r\nWARC-Record-ID: <urn:\u{1b}]0;planted\u{7}>\r\nWARC-Date: 2026-01-01T00:00:00Z\r\n\
                  WARC-Target-URI: http://a.test/\u{1b}]0;planted\u{7}\u{9b}31m\r\nWARC-Block-Digest: sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\r\n\
                  Content-Length: 0\r\n\r\n\r\n\r\n";
    std::fs::write(&warc, record).expect("a file");
    let odd = "http://a b\u{1b}]0;planted\u{7}/";
    for (arguments, code, word) in [
        (&["store", "cat", &dir, &url][..], 0, "gr\u{fc}\u{df}"),
        (&["store", "cat", "--headers", &dir, &url], 0, "HTTP/1.1 200"),
        (&["store", "cat", "--record", &dir, &url], 0, "WARC-Type: response"),
        (&["store", "ls", &dir], 0, "text/html"),
        (&["store", "ls", "--records", &warc], 0, "http://a.test/"),
        (&["store", "verify", &warc], 1, "urn:"),
        (&["store", "cat", &dir, "http://a.test/\u{1b}]0;planted\u{7}"], 1, "not stored"),
        (&["store", "cat", &dir, odd], 2, "planted"),
        (&["store", "ls", &format!("{dir}\u{1b}]0;planted\u{7}")], 2, "planted"),
        (&["urls", &dir], 0, "planted"),
        (&["urls", "--json", &dir], 0, "planted"),
        (&["hosts", &dir], 0, "127.0.0.1"),
        (&["inspect", "links", "--base", &url, "--kinds", "a", &page], 0, "planted"),
        (&["inspect", "response", &response], 0, "planted"),
        (&["inspect", "url", odd], 1, "not a URL"),
        (&["inspect", "links", "--base", odd, &page], 2, "invalid value"),
        (&["crawl", odd, "--dir", &folder.at("none")], 2, "seed 1"),
        (&["\u{1b}]0;planted\u{7}\u{9b}"], 2, "unrecognized"),
    ] {
        let shown = on_a_terminal(&folder, arguments).expect(code);
        harmless(arguments, &shown);
        assert!(shown.out.contains(word), "{arguments:?} does not show {word}: {}", shown.out);
    }
    // Through a pipe it is what came.
    assert_eq!(run(&["store", "cat", &dir, &url]).expect(0).out_bytes, PAGE);
    let with_head = run(&["store", "cat", "--headers", &dir, &url]).expect(0).out_bytes;
    assert!(with_head.starts_with(HEAD) && with_head.ends_with(PAGE));
    let listed = run(&["store", "ls", &warc]).expect(0).out;
    assert!(listed.contains("http://a.test/\u{1b}]0;planted\u{7}\u{9b}31m\n"), "{listed:?}");
}
