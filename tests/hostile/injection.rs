//! Control characters and forged records in everything that a peer can write: records stay whole.

use ringcrawl_warc::read::{SegmentReader, find_segments};

use super::arena::{AT_ONCE, Arena, VICTIM_PAGES, html, nothing, number};
use crate::rig::names::NameServer;
use crate::rig::program::run;

/// A record as it would lie in a segment.
const FORGED: &str = "WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-000000000000>\r\n\
    WARC-Target-URI: http://forged.test/\r\nContent-Type: application/http;msgtype=response\r\nContent-Length: 5\r\n\r\nabcde\r\n\r\n";

/// What somebody says who wants to write into files and onto terminals.
pub(super) fn answer(path: &str) -> Vec<u8> {
    match path {
        "/" => html(
            ["\r", "\n", "\r\n", "\0", "\x1b[2J", "%0d%0a", "&#13;&#10;", "&#0;", "&#27;[2J", "\u{2028}", "\t"]
                .map(|text| format!("<a href='/a{text}WARC-Type:{text}b?c{text}d#e{text}f'>x</a>"))
                .concat()
                + "<a href=/location><a href=/type><a href=/reason><a href=/forged><a href=/fields>",
        ),
        "/location" => b"HTTP/1.1 302 x\r\nLocation: /b\x1b[2J\x00\rWARC-Type: y\r\nContent-Length: 0\r\n\r\n".to_vec(),
        "/type" => b"HTTP/1.1 200 OK\r\nContent-Type: text/html\rWARC-Type: x\x1b]0;y\x07; charset=\"\r\nContent-Length: 2\r\n\r\nok".to_vec(),
        "/reason" => b"HTTP/1.1 200 \x1b[2J\rWARC/1.1\rWARC-Type: response\r\nContent-Length: 2\r\n\r\nok".to_vec(),
        "/fields" => b"HTTP/1.1 200 OK\r\nWARC-Truncated: length\r\nX: a\r\n b\r\nY: \x1b\x9b\r\nContent-Length: 2\r\n\r\nok".to_vec(),
        "/forged" => {
            let body = format!("\r\n\r\n{FORGED}\0{FORGED}");
            let frame = zstd::bulk::compress(FORGED.as_bytes(), 1).expect("text");
            html([body.as_bytes(), &frame, b"\r\n\r\n"].concat())
        }
        _ => nothing(),
    }
}

#[test]
fn nothing_that_a_peer_writes_makes_another_record() {
    let arena = Arena::start("injection", |_, _, path| answer(path));
    let names = NameServer::pointing_to([127, 0, 0, 1].into());
    let summary = arena.end(arena.crawl(&names, &["attacker.test"], AT_ONCE));
    run(&["store", "verify", &arena.dir()]).expect(0);
    let (mut records, mut infos) = (0, 0);
    for segment in find_segments(std::path::Path::new(&arena.dir())).expect("segments") {
        let mut reader = SegmentReader::open(&segment).expect("a segment");
        while let Some(record) = reader.next_record().expect("a whole record") {
            let url = record.head.target_uri();
            assert!(!url.contains("forged.test") && !url.bytes().any(|byte| byte.is_ascii_control()), "{url:?}");
            infos += u64::from(record.head.kind() == "warcinfo");
            records += 1;
        }
    }
    assert_eq!(records - infos, number(&summary, "/records"), "{summary:#}");
    assert!(number(&summary, "/records") >= 3 * (VICTIM_PAGES as u64 + 10));
    // What is listed has a line each, and a terminal is not told anything.
    for list in [&["store", "ls", &arena.dir()][..], &["urls", &arena.dir()]] {
        let listed = run(list).expect(0).out_bytes;
        assert!(!listed.iter().any(|byte| matches!(byte, 0..=8 | 11..=31 | 127)), "{list:?}");
    }
}
