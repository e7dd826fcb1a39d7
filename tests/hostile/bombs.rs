//! Bodies that make much of little, or cost much: they are read or cut, and neither memory nor others pay for it.

use std::io::Write;

use super::arena::{AT_ONCE, Arena, failures, html, nothing, number};
use crate::rig::names::NameServer;
use ringcrawl_brain::sample::dear_responses;

/// What `bytes` zeros make in each coding.
pub(super) fn bombs(bytes: usize) -> [(&'static str, Vec<u8>); 4] {
    let zeros = vec![0; bytes];
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(&zeros).expect("memory");
    let mut deflate = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    deflate.write_all(&zeros).expect("memory");
    let mut br = Vec::new();
    brotli::CompressorWriter::new(&mut br, 4_096, 5, 22).write_all(&zeros).expect("memory");
    let zstd = zstd::bulk::compress(&zeros, 1).expect("memory");
    let (gzip, deflate) = (gzip.finish().expect("memory"), deflate.finish().expect("memory"));
    [("gzip", gzip), ("deflate", deflate), ("br", br), ("zstd", zstd)]
}

pub(super) fn coded(coding: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: {coding}\r\nConnection: close\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

#[test]
fn bombs_are_cut_and_marked() {
    let mut bombs: Vec<Vec<u8>> = bombs(64 << 20).iter().map(|(coding, body)| coded(coding, body)).collect();
    let twice =
        zstd::bulk::compress(&zstd::bulk::compress(&vec![0; 256 << 20], 1).expect("memory"), 1).expect("memory");
    bombs.push(coded("zstd, zstd", &twice));
    let count = bombs.len();
    let arena = Arena::start("bombs", move |_, _, path| match path {
        "/" => html((0..count).map(|bomb| format!("<a href=/{bomb}>")).collect::<String>()),
        path => path[1..].parse().ok().and_then(|bomb: usize| bombs.get(bomb).cloned()).unwrap_or_else(nothing),
    });
    let names = NameServer::pointing_to([127, 0, 0, 1].into());
    let summary = arena.end(arena.crawl(&names, &["attacker.test"], AT_ONCE));
    let cut = number(&summary, "/blemishes/decoded-over-limit") + number(&summary, "/blemishes/decoded-over-ratio");
    assert_eq!(cut, count as u64, "{summary:#}");
    assert!(number(&summary, "/bytes_decoded") < (count as u64) * (17 << 20), "{summary:#}");
    assert!(number(&summary, "/rss_bytes_max") < 160 << 20, "{summary:#}");
}

/// Each of them used to hold its shard for up to 437 ms; none is lost.
#[test]
fn dear_responses_are_read_while_others_are_served() {
    let responses: Vec<Vec<u8>> = dear_responses(1 << 20, 16 << 20).into_iter().map(|(_, bytes)| bytes).collect();
    let count = responses.len();
    // A site each: their links would be a crawl of their own.
    let arena = Arena::start("dear", move |host, _, path| match path {
        "/" => host
            .strip_prefix('n')
            .and_then(|host| host.split('.').next()?.parse().ok())
            .and_then(|number: usize| responses.get(number).cloned())
            .unwrap_or_else(nothing),
        _ => nothing(),
    });
    let names = NameServer::pointing_to([127, 0, 0, 1].into());
    let hosts: Vec<String> = (0..count).map(|number| format!("n{number}.test")).collect();
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let summary = arena.end(arena.crawl(
        &names,
        &hosts,
        &format!("{AT_ONCE}scope.depth_max = 1\nscope.follow = \"seed-hosts\"\nlinks.page_links_max = 100\n"),
    ));
    assert_eq!(failures(&summary), 0, "{summary:#}");
    assert!(number(&summary, "/statuses/2xx") >= count as u64, "{summary:#}");
    assert!(number(&summary, "/rss_bytes_max") < 384 << 20, "{summary:#}");
}
