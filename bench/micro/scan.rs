//! Finding links in HTML: all kinds that are followed, made absolute; these down to the fingerprints by which the crawl
//! knows them, each once; these as written; references of every kind, as written; and these without what not every
//! processor has.
//!
//! Floor: going with `memchr` from `<` to `<`, which is what any scanner must look at. (Counting them is not: `memchr`
//! does that six times as fast, without saying where they are.)
//! Checked before: the references found are those that html5ever's tokenizer gives. In other pages than the synthetic
//! ones, where a tree builder would have a say in how bytes are read, differences are only counted.

#[path = "alone.rs"]
mod alone;
#[path = "input.rs"]
mod input;

use std::cell::RefCell;

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{BufferQueue, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};
use ringcrawl_html::{self as html, Budget, Kinds, Page};
use ringcrawl_url::fingerprint;

fn main() {
    let differ = input::pages().iter().filter(|page| page.references() != twin(&page.html)).count();
    if input::is_synthetic() {
        assert_eq!(differ, 0, "pages are read otherwise than by html5ever's tokenizer");
    }
    println!("{differ} of {} pages are read otherwise than by html5ever's tokenizer", input::pages().len());
    if std::env::args().any(|argument| argument == "--bench") {
        println!("followed to the floor, in turns: {}", in_turns(&Kinds::FOLLOW));
        println!("references to the floor, in turns: {}", in_turns(&Kinds::ALL));
    }
    divan::main();
}

/// Pages that make a turn.
const PAGES: usize = 2;

/// The floor's time to that of the references of these kinds.
fn in_turns(kinds: &Kinds) -> alone::Ratios {
    let pieces: Vec<_> = input::pages().chunks(PAGES).collect();
    alone::compare(
        pieces.len(),
        |piece| {
            black_box(pieces[piece].iter().map(opens_of).fold(0, usize::wrapping_add));
        },
        |piece| {
            black_box(pieces[piece].iter().map(|page| of_page(page, kinds)).sum::<usize>());
        },
    )
}

#[divan::bench]
fn ours(bencher: Bencher) {
    bencher.counter(BytesCount::new(input::bytes())).bench(|| {
        let mut links = 0;
        for page in input::pages() {
            let page =
                Page { body: &page.html, content_type: Some(input::CONTENT_TYPE), url: &page.url, agent: "ringcrawl" };
            links += html::scan(&page, &Kinds::FOLLOW, &mut Budget::of_links(usize::MAX), &mut |found| {
                black_box(found.url);
                true
            })
            .links;
        }
        links
    });
}

#[divan::bench]
fn floor(bencher: Bencher) {
    bencher.counter(BytesCount::new(input::bytes())).bench(opens);
}

mod whole {
    use super::*;

    /// From bytes to the keys of a page's links, each once.
    #[divan::bench]
    fn ours(bencher: Bencher) {
        bencher.counter(BytesCount::new(input::bytes())).bench(|| {
            let (mut keys, mut all) = (Vec::new(), 0);
            for page in input::pages() {
                let page = Page {
                    body: &page.html,
                    content_type: Some(input::CONTENT_TYPE),
                    url: &page.url,
                    agent: "ringcrawl",
                };
                keys.clear();
                html::scan(&page, &Kinds::FOLLOW, &mut Budget::of_links(usize::MAX), &mut |found| {
                    keys.push(fingerprint(RNG_SEED, found.url.as_str()));
                    true
                });
                keys.sort_unstable();
                keys.dedup();
                all += keys.len();
            }
            all
        });
    }

    #[divan::bench]
    fn floor(bencher: Bencher) {
        bencher.counter(BytesCount::new(input::bytes())).bench(opens);
    }
}

const RNG_SEED: u64 = 7;

/// Where each `<` is.
fn opens() -> usize {
    input::pages().iter().map(opens_of).fold(0, usize::wrapping_add)
}

fn opens_of(page: &input::Page) -> usize {
    memchr::memchr_iter(b'<', &page.html).fold(0, usize::wrapping_add)
}

/// Bytes of the references of these kinds.
fn of_page(page: &input::Page, kinds: &Kinds) -> usize {
    let page = Page { body: &page.html, content_type: Some(input::CONTENT_TYPE), url: &page.url, agent: "ringcrawl" };
    let mut bytes = 0;
    html::references(&page, kinds, &mut |reference| bytes += reference.text.len());
    bytes
}

mod references {
    use super::*;

    #[divan::bench]
    fn ours(bencher: Bencher) {
        bencher.counter(BytesCount::new(input::bytes())).bench(every_reference);
    }

    #[divan::bench]
    fn floor(bencher: Bencher) {
        bencher.counter(BytesCount::new(input::bytes())).bench(opens);
    }

    pub fn every_reference() -> usize {
        of_kinds(&Kinds::ALL)
    }

    pub fn of_kinds(kinds: &Kinds) -> usize {
        input::pages().iter().map(|page| of_page(page, kinds)).sum()
    }
}

mod followed {
    use super::*;

    #[divan::bench]
    fn ours(bencher: Bencher) {
        bencher.counter(BytesCount::new(input::bytes())).bench(|| references::of_kinds(&Kinds::FOLLOW));
    }

    #[divan::bench]
    fn floor(bencher: Bencher) {
        bencher.counter(BytesCount::new(input::bytes())).bench(opens);
    }
}

mod baseline {
    use super::*;

    #[divan::bench]
    fn ours(bencher: Bencher) {
        html::set_baseline(true);
        bencher.counter(BytesCount::new(input::bytes())).bench(references::every_reference);
        html::set_baseline(false);
    }

    #[divan::bench]
    fn floor(bencher: Bencher) {
        bencher.counter(BytesCount::new(input::bytes())).bench(opens);
    }
}

/// The references of a page as html5ever's tokenizer sees them.
fn twin(html: &[u8]) -> Vec<String> {
    let queue = BufferQueue::default();
    queue.push_back(StrTendril::from_slice(&String::from_utf8_lossy(html)));
    let tokenizer = Tokenizer::new(Sink::default(), TokenizerOpts::default());
    let _ = tokenizer.feed(&queue);
    tokenizer.end();
    tokenizer.sink.0.take()
}

#[derive(Default)]
struct Sink(RefCell<Vec<String>>);

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let Token::TagToken(tag) = token else { return TokenSinkResult::Continue };
        if tag.kind != TagKind::StartTag {
            return TokenSinkResult::Continue;
        }
        let attribute = |name: &str| tag.attrs.iter().find(|attr| &*attr.name.local == name).map(|attr| &*attr.value);
        let place = match &*tag.name {
            "a" | "area" => attribute("href"),
            "frame" | "iframe" => attribute("src"),
            "link" if follows(attribute("rel").unwrap_or_default()) => attribute("href"),
            _ => None,
        };
        self.0.borrow_mut().extend(place.map(|text| text.trim_ascii().to_owned()));
        raw(&tag.name)
    }
}

fn follows(rel: &str) -> bool {
    rel.split_ascii_whitespace()
        .any(|token| ["alternate", "next", "prev", "canonical"].iter().any(|known| token.eq_ignore_ascii_case(known)))
}

/// How what follows a tag is read, which a tree builder would say.
fn raw(name: &str) -> TokenSinkResult<()> {
    match name {
        "script" => TokenSinkResult::RawData(RawKind::ScriptData),
        "style" | "xmp" | "iframe" | "noembed" | "noframes" => TokenSinkResult::RawData(RawKind::Rawtext),
        "textarea" | "title" => TokenSinkResult::RawData(RawKind::Rcdata),
        "plaintext" => TokenSinkResult::Plaintext,
        _ => TokenSinkResult::Continue,
    }
}
