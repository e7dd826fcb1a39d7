//! Responses that cost as much as their bytes can: the worst found, by hand and by fuzzing for CPU time.
//!
//! Decides: each is within the default limits, so only the limit on the work itself can protect the reader.

use std::io::Write;

use ringcrawl_base::Rng;

/// Names of responses, and their bytes: a head and a body of about `wire` bytes, or enough to make `decoded` bytes of
/// content. Most end with the connection.
pub fn dear_responses(wire: usize, decoded: usize) -> Vec<(&'static str, Vec<u8>)> {
    let html = |body: Vec<u8>| response("text/html; charset=utf-8", "", &body);
    let numbered = |bytes: usize, each: &dyn Fn(usize) -> String| {
        let mut body = Vec::new();
        (0..)
            .take_while(|number| {
                body.extend_from_slice(each(*number).as_bytes());
                body.len() < bytes
            })
            .for_each(drop);
        body
    };
    let mut rng = Rng::new(7);
    let noise: Vec<u8> = (0..wire).map(|_| rng.below(256) as u8).collect();
    let letters: Vec<u8> = (0..decoded).map(|_| b"<a =\"'/>&-!hrefsclink;x# \n?.:%"[rng.below(30) as usize]).collect();
    let links = numbered(decoded, &|number| format!("<a href=\"/{number}/x\">y</a> "));
    let sites = numbered((2 << 20).min(wire), &|number| format!("<a href=http://h{number}.s{}.test/>", number * 7));
    let site_map = numbered(decoded, &|number| format!("<url><loc>http://a.test/{number}?a&amp;b</loc></url>\n"));
    let feed = numbered(decoded, &|number| {
        format!("<item><link>http://a.test/{number}</link><title>a &#x26; b</title></item>\n")
    });
    let gb = numbered(decoded, &|_| "<a href='/\u{4e2d}\u{6587}?\u{4e2d}\u{6587}'>".to_owned());
    vec![
        ("br, empty metadata blocks", response("text/html", "br", &[vec![0x0c], vec![0x06; wire - 1]].concat())),
        ("gzip, dynamic Huffman blocks", response("text/html", "gzip", &dynamic_blocks(wire))),
        ("gzip, 10,000 members", response("text/html", "gzip", &gzip(b"<a href=x>").repeat(wire.min(600_000) / 30))),
        ("gzip, deflated three times", {
            let once = gzip(&gzip(&gzip(&links)));
            response("text/html", "gzip, gzip, gzip", &once)
        }),
        ("zstd, empty blocks", response("text/html", "zstd", &empty_blocks(wire))),
        ("zstd, short frames", response("text/html", "zstd", &short_frames(wire))),
        ("zstd, 16 MiB of links", response("text/html", "zstd", &zstd(&links))),
        ("zstd, 16 MiB of markup", response("text/html", "zstd", &zstd(&letters))),
        ("zstd, links in gb18030", response("text/html; charset=gb18030", "zstd", &zstd(&gb))),
        ("zstd, links in iso-2022-jp", response("text/html; charset=iso-2022-jp", "zstd", &zstd(&gb))),
        (
            "zstd, a sitemap",
            response(
                "application/xml",
                "zstd",
                &zstd(
                    &[
                        &b"<?xml version=\"1.0\"?><urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">"[..],
                        &site_map,
                    ]
                    .concat(),
                ),
            ),
        ),
        (
            "zstd, a feed",
            response("application/rss+xml", "zstd", &zstd(&[&b"<rss version=\"2.0\"><channel>"[..], &feed].concat())),
        ),
        (
            "zstd, a list",
            response("text/plain", "zstd", &zstd(&numbered(decoded, &|number| format!("http://a.test/{number}\n")))),
        ),
        ("noise", response("application/octet-stream", "", &noise)),
        ("letters <", html(vec![b'<'; wire])),
        ("letters &", html(vec![b'&'; wire])),
        ("open tags", html(b"<a ".repeat(wire / 3))),
        ("an open attribute", html([&b"<a href=\""[..], &b"x".repeat(wire - 9)].concat())),
        ("entities in an attribute", html([&b"<a href=\""[..], &b"&ampx".repeat(wire / 5), b"\">"].concat())),
        ("attributes of one tag", html([&b"<a "[..], &b"x=y ".repeat(wire / 4)].concat())),
        ("open comments", html(b"<!--".repeat(wire / 4))),
        ("comments", html(b"<!--->".repeat(wire / 6))),
        ("open scripts", html(b"<script><!--<script>".repeat(wire / 20))),
        ("svg, nested", html(b"<svg><math><template>".repeat(wire / 21))),
        ("srcset", html([&b"<img srcset=\""[..], &b"a 1x,".repeat(wire / 5), b"\">"].concat())),
        ("meta", html(b"<meta name=robots content=x>".repeat(wire / 28))),
        ("10,000 sites", html(sites)),
        (
            "international hosts",
            html(numbered((1 << 20).min(wire), &|number| {
                format!("<a href=//\u{fc}\u{4e2d}{}.\u{645}\u{631}{number}.test/>", "\u{e4}".repeat(18))
            })),
        ),
        (
            "a long international host",
            html(numbered(wire, &|number| format!("<a href=//{}{number}/>", "\u{4e2d}\u{6587}".repeat(2_000)))),
        ),
        (
            "a long base",
            html(
                format!(
                    "<base href=/{}/>{}",
                    "b".repeat(2_000),
                    (0..10_000).map(|n| format!("<a href={n}>")).collect::<String>()
                )
                .into_bytes(),
            ),
        ),
        ("one-byte chunks", one_byte_chunks(wire)),
        ("transfer coding gzip", transfer_coded("gzip", &dynamic_blocks(wire))),
        ("transfer codings gzip", transfer_coded("gzip, gzip, gzip", &gzip(&gzip(&gzip(&links))))),
    ]
}

/// A robots.txt of the maximum length, full of rules.
pub fn dear_robots() -> Vec<u8> {
    let rules: String = (0..60_000).map(|number| format!("Allow: *{number}$\n")).collect();
    response("text/plain", "", format!("User-agent: *\n{rules}").as_bytes())
}

fn response(content_type: &str, coding: &str, body: &[u8]) -> Vec<u8> {
    let coding = if coding.is_empty() { String::new() } else { format!("Content-Encoding: {coding}\r\n") };
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n{coding}Connection: close\r\n\r\n");
    [head.as_bytes(), body].concat()
}

fn one_byte_chunks(bytes: usize) -> Vec<u8> {
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n";
    [&head[..], &b"1\r\n<\r\n".repeat(bytes), b"0\r\n\r\n"].concat()
}

fn transfer_coded(codings: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: {codings}, chunked\r\n\r\n");
    [head.as_bytes(), format!("{:x}\r\n", body.len()).as_bytes(), body, b"\r\n0\r\n\r\n"].concat()
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).expect("a Vec takes everything");
    encoder.finish().expect("a Vec takes everything")
}

fn zstd(content: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(content, 1).expect("content of any kind")
}

/// Blocks with tables of their own and nothing else: 257 lengths, and one symbol that ends the block.
fn dynamic_blocks(bytes: usize) -> Vec<u8> {
    let mut bits = Bits::default();
    while bits.bytes.len() < bytes {
        bits.put(0, 1);
        bits.put(2, 2);
        bits.put(0, 5);
        bits.put(0, 5);
        bits.put(14, 4);
        // The code lengths of the code lengths: 18 (zeros) and 1 have one bit each.
        for symbol in [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1] {
            bits.put(u32::from(symbol == 18 || symbol == 1), 3);
        }
        // Codes are in the order of the symbols: 1 is 0, 18 is 1.
        for zeros in [138, 118] {
            bits.put(1, 1);
            bits.put(zeros - 11, 7);
        }
        bits.put(0, 1);
        bits.put(0, 1);
        bits.put(0, 1);
    }
    [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3][..], &bits.bytes].concat()
}

#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    last: u32,
    count: u32,
}

impl Bits {
    fn put(&mut self, value: u32, count: u32) {
        self.last |= value << self.count;
        self.count += count;
        while self.count >= 8 {
            self.bytes.push(self.last as u8);
            self.last >>= 8;
            self.count -= 8;
        }
    }
}

/// A frame of raw blocks without a byte (RFC 8878 section 3.1.1.2).
fn empty_blocks(bytes: usize) -> Vec<u8> {
    [&[0x28, 0xb5, 0x2f, 0xfd, 0, 0x58][..], &[0; 3].repeat(bytes / 3)].concat()
}

/// Frames of some dozen bytes, each with tables of its own.
fn short_frames(bytes: usize) -> Vec<u8> {
    let text: String = (0..40).map(|number| format!("{}{number}", ["ab", "abc", "bca", "ca"][number % 4])).collect();
    let frame = zstd::bulk::compress(text.as_bytes(), 19).expect("text");
    frame.repeat(bytes / frame.len())
}
