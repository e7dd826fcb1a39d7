//! Linear time, by counting: the blocks loaded for each byte of pages that provoke repeated reading.

use std::cell::Cell;

use super::super::block::{BLOCK, Kernel, Task, WINDOW, with_best};
use super::super::foreign;
use super::super::kinds::Kinds;
use super::super::pass::Pass;
use super::super::tokenizer::Tokenizer;
use super::super::wanted::{self, Letters, Wanted};

/// Blocks loaded for a byte. A block may be loaded at each byte, and an unusual tag is read twice: once to skip it,
/// once for its attributes, each on its own.
const LOADS_MAX: usize = 6;

/// A kernel that counts.
#[derive(Clone, Copy)]
struct Counting<'c, K> {
    kernel: K,
    loads: &'c Cell<usize>,
}

impl<K: Kernel> Kernel for Counting<'_, K> {
    type Block = K::Block;
    type Marks = K::Marks;

    #[inline(always)]
    fn load(self, bytes: &[u8; BLOCK]) -> K::Block {
        self.loads.set(self.loads.get() + 1);
        self.kernel.load(bytes)
    }

    #[inline(always)]
    fn equal(self, block: K::Block, byte: u8) -> K::Marks {
        self.kernel.equal(block, byte)
    }

    /// Four blocks: the window's, and those of the letters.
    #[inline(always)]
    fn begins(self, window: &[u8; WINDOW], letters: &Letters) -> K::Marks {
        self.loads.set(self.loads.get() + 4);
        self.kernel.begins(window, letters)
    }

    #[inline(always)]
    fn both(self, one: K::Marks, other: K::Marks) -> K::Marks {
        self.kernel.both(one, other)
    }

    #[inline(always)]
    fn either(self, one: K::Marks, other: K::Marks) -> K::Marks {
        self.kernel.either(one, other)
    }

    #[inline(always)]
    fn any(self, marks: K::Marks) -> bool {
        self.kernel.any(marks)
    }

    #[inline(always)]
    fn bits(self, marks: K::Marks) -> u64 {
        self.kernel.bits(marks)
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

/// Reads all attributes of wanted tags.
struct Count<'a> {
    page: &'a [u8],
    wanted: &'a Wanted,
}

/// Reads what a crawl reads.
struct CountPass<'a>(&'a [u8], &'a Kinds);

impl Task for CountPass<'_> {
    type Output = usize;

    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) -> usize {
        let loads = Cell::new(0);
        let (mut pass, mut batch) = (Pass::new(self.0, self.1, "", true), Vec::new());
        while pass.read_under(Counting { kernel, loads: &loads }, &mut batch) {
            batch.clear();
        }
        loads.get()
    }
}

impl Task for Count<'_> {
    type Output = usize;

    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) -> usize {
        let loads = Cell::new(0);
        let mut tokenizer = Tokenizer::new(self.page, 0, Counting { kernel, loads: &loads });
        while let Some(tag) = tokenizer.tag(self.wanted, false) {
            if tokenizer.attributes(|_, _| {}).is_none() {
                break;
            }
            if let Some(raw) = foreign::raw_text(&tag.name.to_ascii_lowercase()).filter(|_| !tag.end) {
                tokenizer.skip_raw_text(tag.name, raw);
            }
        }
        loads.get()
    }
}

fn check(bytes: usize) {
    // The prefix, the repeated part, and the suffix.
    let pages = [
        ("", "<", ""),
        ("", "x", ""),
        ("", "</", ""),
        ("", "<p", ""),
        ("", "<p ", ""),
        ("", "<p>", ""),
        ("", "<p \"", ""),
        ("", "<p a='", ""),
        ("", "<p a=\"", ""),
        ("", "<p a='>", ""),
        ("", "<p a=\"b\">", ""),
        ("", "<p a=b\">", ""),
        ("", "<a>", ""),
        ("", "<a><a ", ""),
        ("", "<a href=\"x\" '>", ""),
        ("", "<a href=\"x\" rel=y>", ""),
        ("", "<a href=\"x\" b=\"> \">", ""),
        ("", "<a href=\"x\" ", ""),
        ("", "<meta =\">", ""),
        ("", "<meta b", ""),
        ("", "<link rel=\"x\" y>", ""),
        ("", "<svg =\">", ""),
        ("<svg>", "<a =\">", ""),
        ("<a ", "href=\"x\" ", ""),
        ("<link ", "rel=\"x\" ", ""),
        ("", "<ti", ""),
        ("", "<p><ti", ""),
        ("", "<p a=\"><a>", ""),
        ("", "<p a=\"b><a>", "\">"),
        ("", "<p a=' \n<a>", ""),
        ("", "<p =  \"><a>", ""),
        ("", "= ' > <a>", ""),
        ("", "=\"<a>", ""),
        ("", "<<a>", ""),
        ("", "< <a>", ""),
        ("='", " ", "><a>"),
        ("<p a='>' ", "<a>", ""),
        ("<p ", "a ", ""),
        ("<p ", "a=\"b\" ", ">"),
        ("<p ", "a='b' ", ">"),
        ("<p ", "a = b ", ">"),
        ("<p ", "\"'=", ">"),
        ("<p ", "a=\"b=\"", ">"),
        ("<p a=\"", "<p a='>", "\">"),
        ("<p a=\"", "x>", ""),
        ("<p ", "/", ""),
        ("<p", "x", ""),
        ("", "<!--", ""),
        ("", "<!-- -- >", ""),
        ("<!--", ">", ""),
        ("", "<!x", ""),
        ("", "<title></titl", ""),
        ("<title>", "</title", ""),
        ("<script>", "<!--<script>-->", ""),
        ("<script>", "</script", ""),
        ("<script><!--", "<script>", ""),
    ];
    for (before, piece, behind) in pages {
        let page = format!("{before}{}{behind}", piece.repeat(bytes / piece.len()));
        let mut wanted = Wanted::new(wanted::bits(&[b"a", b"title", b"script"]));
        for every in [false, true] {
            wanted.set_every(every);
            let loads = with_best(Count { page: page.as_bytes(), wanted: &wanted });
            assert!(loads <= page.len() * LOADS_MAX, "{loads} blocks for {} bytes of {before}{piece}", page.len());
        }
        for kinds in [&Kinds::FOLLOW, &Kinds::ALL] {
            let loads = with_best(CountPass(page.as_bytes(), kinds));
            assert!(loads <= page.len() * LOADS_MAX, "{loads} blocks for {} bytes of {before}{piece}", page.len());
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
