//! Linear time, counted: blocks that are loaded for each byte of pages made to be read again and again.

use std::cell::Cell;

use super::super::block::{BLOCK, Kernel, Task, with_best};
use super::twin::Read;

/// Blocks loaded for a byte. A block may be loaded at each byte, and a tag that turns out to be odd is read twice: once
/// to pass it, once for its attributes, each of which is looked at on its own.
const LOADS_MAX: usize = 6;

/// A kernel that counts.
#[derive(Clone, Copy)]
struct Counting<'c, K> {
    kernel: K,
    loads: &'c Cell<usize>,
}

impl<K: Kernel> Kernel for Counting<'_, K> {
    type Block = K::Block;

    #[inline(always)]
    fn load(self, bytes: &[u8; BLOCK]) -> K::Block {
        self.loads.set(self.loads.get() + 1);
        self.kernel.load(bytes)
    }

    #[inline(always)]
    fn places(self, block: K::Block, byte: u8) -> u64 {
        self.kernel.places(block, byte)
    }

    #[inline(always)]
    fn name_ends(self, block: K::Block) -> u64 {
        self.kernel.name_ends(block)
    }

    #[inline(always)]
    fn specials(self, block: K::Block) -> u64 {
        self.kernel.specials(block)
    }
}

struct Count<'a>(Read<'a>);

impl Task for Count<'_> {
    type Output = usize;

    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) -> usize {
        let loads = Cell::new(0);
        self.0.run(Counting { kernel, loads: &loads });
        loads.get()
    }
}

fn check(bytes: usize) {
    let many = |piece: &str| piece.repeat(bytes / piece.len());
    let pages = [
        many("<"),
        many("x"),
        many("</"),
        many("<p"),
        many("<p "),
        many("<p>"),
        many("<p \""),
        many("<p a='"),
        many("<p a=\""),
        many("<p a='>"),
        many("<p a=\"b\">"),
        many("<p a=b\">"),
        format!("<p {}", many("a ")),
        format!("<p {}>", many("a=\"b\" ")),
        format!("<p {}>", many("a='b' ")),
        format!("<p {}>", many("a = b ")),
        format!("<p {}>", many("\"'=")),
        format!("<p {}>", many("a=\"b=\"")),
        format!("<p a=\"{}\">", many("<p a='>")),
        format!("<p a=\"{}", many("x>")),
        format!("<p {}", many("/")),
        format!("<p{}", many("x")),
        many("<!--"),
        many("<!-- -- >"),
        format!("<!--{}", many(">")),
        many("<!x"),
        many("<title></titl"),
        format!("<title>{}", many("</title")),
        format!("<script>{}", many("<!--<script>-->")),
        format!("<script>{}", many("</script")),
        format!("<script><!--{}", many("<script>")),
    ];
    for page in &pages {
        for names in [&[][..], &[&b"a"[..], b"title", b"script"]] {
            let loads = with_best(Count(Read::page(page.as_bytes(), names)));
            let start: String = page.chars().take(30).collect();
            assert!(loads <= page.len() * LOADS_MAX, "{loads} blocks for {} bytes of {start}", page.len());
        }
    }
}

#[test]
fn blocks_for_a_byte() {
    check(60_000);
}

#[test]
#[ignore = "long: pages of 100 MB, a minute"]
fn blocks_for_a_byte_of_100_megabytes() {
    check(100_000_000);
}
