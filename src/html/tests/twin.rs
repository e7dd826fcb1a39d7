//! The slow twin: html5ever's tokenizer on the same pages, noise included.

use std::cell::RefCell;
use std::collections::BTreeMap;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{BufferQueue, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer as Twin, TokenizerOpts};

use super::super::block::{Kernel, Task, with_best, with_each};
use super::super::foreign;
use super::super::tokenizer::{RawText, TagName, Tokenizer};
use super::super::value::{Decoder, Value};
use super::super::wanted::{self, Wanted};
use super::{skim, slow};
use ringcrawl_base::Rng;

pub(super) type Attributes = BTreeMap<String, String>;

/// A tag as both see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct StartOrEnd {
    pub end: bool,
    pub name: String,
    pub attributes: Attributes,
}

/// Reads a page under a kernel.
#[derive(Clone)]
pub(super) struct Read<'a> {
    /// The page.
    pub bytes: &'a [u8],
    /// The tags that are returned, perhaps with more.
    pub wanted: Wanted,
    /// The element in whose raw text the page begins.
    pub inside: Option<(&'a [u8], RawText)>,
    /// Whether the first tag stands in a foreign element.
    pub foreign: bool,
    /// Whether a tag's name determines how its content is read.
    pub raw_text: bool,
}

impl<'a> Read<'a> {
    /// A whole page, for these tags; for all if there are none.
    pub fn page(bytes: &'a [u8], names: &[&[u8]]) -> Read<'a> {
        let mut wanted = Wanted::new(wanted::bits(names));
        wanted.set_every(names.is_empty());
        Read { bytes, wanted, inside: None, foreign: false, raw_text: true }
    }
}

impl Task for Read<'_> {
    type Output = Vec<StartOrEnd>;

    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) -> Vec<StartOrEnd> {
        let mut tokenizer = Tokenizer::new(self.bytes, 0, kernel);
        if let Some((name, raw)) = self.inside {
            tokenizer.skip_raw_text(name, raw);
        }
        let mut foreign = self.foreign;
        let mut tags = Vec::new();
        while let Some(TagName { name, end, bit }) = tokenizer.tag(&self.wanted, foreign) {
            foreign = false;
            assert!(bit == 0 || bit == wanted::bit(name), "{name:?}");
            let mut attributes = Attributes::new();
            let mut decoder = Decoder::new(encoding_rs::UTF_8);
            let mut spans = Vec::new();
            let (skimmed, told) = (skim::each_way(tokenizer), skim::each_told(tokenizer));
            let closes_itself = tokenizer.attributes(|name, span| spans.push((name, span)));
            let raw: Vec<_> = spans.iter().map(|(name, span)| (lower(name), tokenizer.bytes(*span))).collect();
            let places: Vec<_> = spans.iter().map(|(_, span)| *span).collect();
            let ends_at = closes_itself.map(|_| tokenizer.at());
            assert!(told.iter().all(|one| one.holds(ends_at, &raw, &places)), "told wrongly");
            let Some(closes_itself) = closes_itself else {
                assert!(skimmed.is_empty(), "skimmed without an end");
                break;
            };
            assert!(skimmed.iter().all(|one| one.holds(tokenizer.at(), closes_itself, &raw)), "skimmed wrongly");
            for (name, span) in spans {
                let value = tokenizer.value(span);
                attributes.entry(lower(name)).or_insert_with(|| decoder.text(value).to_owned());
            }
            tags.push(StartOrEnd { end, name: lower(name), attributes });
            if let Some(raw) = foreign::raw_text(lower(name).as_bytes()).filter(|_| self.raw_text && !end) {
                tokenizer.skip_raw_text(name, raw);
            }
        }
        tags
    }
}

fn lower(name: &[u8]) -> String {
    String::from_utf8_lossy(name).to_ascii_lowercase().replace('\0', "\u{fffd}")
}

/// The tags found by the byte-wise twin.
fn bytewise(page: &[u8]) -> Vec<StartOrEnd> {
    let mut tokenizer = slow::Tokenizer::new(page);
    let mut tags = Vec::new();
    while let Some(TagName { name, end, .. }) = tokenizer.tag(false) {
        let mut attributes = Attributes::new();
        let mut decoder = Decoder::new(encoding_rs::UTF_8);
        let whole = tokenizer.attributes(|name, value| {
            attributes.entry(lower(name)).or_insert_with(|| decoder.text(Value::Raw(value)).to_owned());
        });
        if whole.is_none() {
            break;
        }
        tags.push(StartOrEnd { end, name: lower(name), attributes });
        if let Some(raw) = foreign::raw_text(lower(name).as_bytes()).filter(|_| !end) {
            tokenizer.skip_raw_text(name, raw);
        }
    }
    tags
}

#[derive(Default)]
struct Tags(RefCell<Vec<StartOrEnd>>);

impl TokenSink for Tags {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let Token::TagToken(tag) = token else { return TokenSinkResult::Continue };
        let end = tag.kind == TagKind::EndTag;
        let name = tag.name.to_string();
        let attributes = tag.attrs.iter().map(|one| (one.name.local.to_string(), one.value.to_string())).collect();
        let raw = foreign::raw_text(name.as_bytes()).filter(|_| !end);
        let rcdata = matches!(name.as_str(), "title" | "textarea");
        self.0.borrow_mut().push(StartOrEnd { end, name, attributes });
        match raw {
            None => TokenSinkResult::Continue,
            Some(RawText::Plaintext) => TokenSinkResult::Plaintext,
            Some(RawText::Script) => TokenSinkResult::RawData(RawKind::ScriptData),
            Some(RawText::Plain) if rcdata => TokenSinkResult::RawData(RawKind::Rcdata),
            Some(RawText::Plain) => TokenSinkResult::RawData(RawKind::Rawtext),
        }
    }
}

pub(super) fn standard(page: &str) -> Vec<StartOrEnd> {
    let twin = Twin::new(Tags::default(), TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from_slice(page));
    let _ = twin.feed(&input);
    twin.end();
    let mut tags = twin.sink.0.take();
    // html5ever keeps no attributes of end tags.
    tags.iter_mut().filter(|tag| tag.end).for_each(|tag| tag.attributes.clear());
    tags
}

#[rustfmt::skip]
const PIECES: [&str; 52] = [
    "<a href=\"y\" rel=\"nofollow\">", "<a HREF=\"x\"/>", "<meta name=\"robots\" content=c/>", "<meta content=\" r\">",
    " class=\"c d\" e", " rel='x'", "=\"R", "<p style=\"a\" class=\"b > c\" d=\"e\">",
    "<a href=x>", "<a href='y' title=\"z\">", "<A HREF = 'x&amp;y&copy=1&copy;&#x80;'>", "</a>", "<p class=a/>", "<br/>",
    "<!--", "-->", "--!>", "<!-->", "<!--->", "->", "<!", "<?", "</", "</>", "<![CDATA[", "]]>", "<!doctype html '>'>",
    "<script>", "</script>", "<script ", "</script ", "</scriptx>", "<style>", "</style>", "<title>", "</title\n>",
    "<textarea>", "</textarea/>", "<xmp>", "</xmp>", "<iframe src=x>", "</iframe>", "<noembed>", "</noembed>",
    "<noscript>", "</noscript>", "text é", "<a href=\"", "<img a a=1 A=2 =b=c /d/ e='>'>", "<plaintext", "<", " ",
];

#[rustfmt::skip]
const CHARACTERS: [char; 23] = [
    'r', '<', '>', '/', '!', '-', '\'', '"', '=', ' ', '\n', '\r', '\t', '&', ';', '#', 'a', 'S', 'x', '1', 'é', '?', '\u{c}',
];

/// A page of pieces, with some characters changed.
fn page(rng: &mut Rng, pieces: usize) -> String {
    let pieces: String = (0..1 + rng.index(pieces)).map(|_| *rng.pick(&PIECES)).collect();
    let mut page: Vec<char> = pieces.chars().collect();
    for _ in 0..rng.index(6) {
        let at = rng.index(page.len());
        match rng.index(3) {
            0 if !page.is_empty() => page[at] = *rng.pick(&CHARACTERS),
            1 => page.insert(at, *rng.pick(&CHARACTERS)),
            _ => page.truncate(at.max(4)),
        }
    }
    page.into_iter().collect()
}

fn without_end_attributes(mut tags: Vec<StartOrEnd>) -> Vec<StartOrEnd> {
    tags.iter_mut().filter(|tag| tag.end).for_each(|tag| tag.attributes.clear());
    tags
}

/// Compares `rounds` pages with html5ever.
fn check_standard(rng_seed: u64, rounds: usize) {
    let mut rng = Rng::new(rng_seed);
    let mut tags = 0;
    for round in 0..rounds {
        let page = page(&mut rng, 14);
        let found = without_end_attributes(with_best(Read::page(page.as_bytes(), &[])));
        let expected = standard(&page);
        assert_eq!(found, expected, "seed {rng_seed:#x}, round {round}: {page:?}");
        let is_some = |tag: &StartOrEnd| !tag.end && SOME.contains(&tag.name.as_bytes());
        let some: Vec<_> = with_best(Read::page(page.as_bytes(), &SOME)).into_iter().filter(is_some).collect();
        let expected: Vec<_> = expected.into_iter().filter(is_some).collect();
        assert_eq!(some, expected, "some tags, seed {rng_seed:#x}, round {round}: {page:?}");
        tags += found.len();
    }
    assert!(tags > rounds, "{tags} tags compared");
}

#[test]
fn same_tags_as_html5ever() {
    check_standard(0x5eed_0002, 4_000);
}

/// Ten million pages, and as many changed pieces of real ones if there are any, from a random seed.
#[test]
#[ignore = "long: ten million changed pages against html5ever, or RINGCRAWL_LONG_MINUTES"]
fn same_tags_as_html5ever_for_long() {
    const ROUNDS: usize = 10_000_000;
    const AT_ONCE: usize = 10_000;
    let minutes = std::env::var("RINGCRAWL_LONG_MINUTES").ok().and_then(|minutes| minutes.parse().ok());
    let start = std::time::Instant::now();
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let mut rng_seed = since.as_nanos() as u64 | 1;
    let real = real_pages();
    let mut rounds = 0;
    while rounds < ROUNDS && minutes.is_none_or(|minutes: u64| start.elapsed().as_secs() < minutes * 60) {
        println!("{rounds} rounds, seed {rng_seed:#x}");
        check_standard(rng_seed, AT_ONCE / 2);
        check_real(rng_seed, AT_ONCE / 2, &real);
        rounds += AT_ONCE;
        rng_seed = rng_seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    }
    println!("{rounds} pages compared");
}

/// Compares changed pieces of real pages with html5ever and with the byte-wise twin.
fn check_real(rng_seed: u64, rounds: usize, pages: &[String]) {
    let mut rng = Rng::new(rng_seed);
    for round in 0..if pages.is_empty() { 0 } else { rounds } {
        let page = &pages[rng.index(pages.len())];
        let start = page.floor_char_boundary(rng.index(page.len()));
        let mut piece: Vec<char> = page[start..].chars().take(200 + rng.index(2_000)).collect();
        for _ in 0..rng.index(8) {
            let at = rng.index(piece.len());
            match rng.index(3) {
                0 if !piece.is_empty() => piece[at] = *rng.pick(&CHARACTERS),
                1 => piece.insert(at, *rng.pick(&CHARACTERS)),
                _ if !piece.is_empty() => drop(piece.remove(at)),
                _ => {}
            }
        }
        let piece: String = piece.into_iter().collect();
        let found = without_end_attributes(with_best(Read::page(piece.as_bytes(), &[])));
        assert_eq!(found, standard(&piece), "seed {rng_seed:#x}, round {round}: {piece:?}");
        check(piece.as_bytes(), || format!("seed {rng_seed:#x}, round {round}: {piece:?}"));
    }
}

/// Some real pages, as text, if there are any.
fn real_pages() -> Vec<String> {
    let Some(root) = super::conformance("html/pages") else { return Vec::new() };
    let mut pages = Vec::new();
    for dir in std::fs::read_dir(root).unwrap().flatten() {
        for file in std::fs::read_dir(dir.path()).into_iter().flatten().flatten().take(100) {
            let mut bytes = Vec::new();
            let mut gz = flate2::read::MultiGzDecoder::new(std::fs::File::open(file.path()).unwrap());
            std::io::Read::read_to_end(&mut gz, &mut bytes).unwrap();
            bytes.truncate(200_000);
            // A byte order mark is the decoder's business, not the tokenizer's.
            pages.push(String::from_utf8_lossy(&bytes).replace('\u{feff}', ""));
        }
    }
    pages.retain(|page| !page.is_empty());
    pages
}

/// Names that are searched for: some ordinary ones, and those of raw text, whose end depends on them.
const SOME: [&[u8]; 13] = [
    b"a",
    b"link",
    b"img",
    b"style",
    b"title",
    b"textarea",
    b"iframe",
    b"noembed",
    b"noframes",
    b"xmp",
    b"script",
    b"plaintext",
    b"meta",
];

/// Compares all kernels with the byte-wise twin: all tags, and those of some names.
fn check(page: &[u8], what: impl Fn() -> String) {
    let expected = bytewise(page);
    for (kernel, found) in with_each(&Read::page(page, &[])) {
        assert_eq!(found, expected, "{kernel}: {}", what());
    }
    let is_some = |tag: &StartOrEnd| !tag.end && SOME.contains(&tag.name.as_bytes());
    let expected: Vec<_> = expected.into_iter().filter(is_some).collect();
    for (kernel, found) in with_each(&Read::page(page, &SOME)) {
        let found: Vec<_> = found.into_iter().filter(is_some).collect();
        assert_eq!(found, expected, "some tags, {kernel}: {}", what());
    }
}

/// The same under every kernel, whether tags are skipped or read, at every place of a block.
#[test]
fn same_tags_as_byte_by_byte() {
    let mut rng = Rng::new(0x5eed_0012);
    for round in 0..1_000 {
        let text = page(&mut rng, 60);
        let before = rng.pick(&["x", " ", "<p>", "<b class=\"c\">"]).repeat(rng.index(70));
        let text = format!("{before}{text}");
        check(text.as_bytes(), || format!("round {round}: {text:?}"));
    }
}

/// Names of every length about the borders of two blocks, and values, in every notation, compared with the byte-wise twin and
/// html5ever.
#[test]
fn names_and_values_about_the_borders_of_blocks() {
    for name in (1..=8).chain(24..=40).chain(56..=72).chain(118..=130) {
        for value in [0, 1, 61, 62, 63, 64, 65, 128] {
            for (before, behind) in [("=\"", "\""), ("='", "'"), ("=", ""), (" = \"", "\""), ("=\"\"", ""), ("", "")] {
                let (long, text) = ("n".repeat(name), "v".repeat(value));
                let page =
                    format!("<a {long}{before}{text}{behind} href=\"x\"><p {long}{before}{text}{behind}><a href='y'>");
                check(page.as_bytes(), || page.clone());
                let found = without_end_attributes(with_best(Read::page(page.as_bytes(), &[])));
                assert_eq!(found, standard(&page), "{page}");
            }
        }
    }
}

/// A value with `>` in it, and a tag behind it: at every distance of the value's quote, of either kind.
#[test]
fn quoted_values_of_every_distance() {
    let lengths = [0, 1, 40, 61, 62, 63, 64, 65, 66, 128, 200];
    for quote in ["\"", "'"] {
        let other = if quote == "'" { "\"" } else { "'" };
        for behind_name in ["=", "= ", " =\n\t", ""] {
            for (value, rest) in lengths.into_iter().flat_map(|value| lengths.map(|rest| (value, rest))) {
                let before = ["", "<a>", "it's \"x\" <b c='d'>"][(value + rest) % 3];
                let (value, rest) = ("v".repeat(value), format!("{}{other}", "r".repeat(rest)));
                let text = format!("{before}<p a{behind_name}{quote}{value}>{rest}<a href=x>{rest}{quote}><a href=y>");
                check(text.as_bytes(), || text.clone());
                // The value ends, and its tag does not.
                let text =
                    format!("{before}<p a{behind_name}{quote}{value}>{rest}{quote} c <a href=x>{rest}<a href=y>");
                check(text.as_bytes(), || text.clone());
            }
        }
    }
}

/// Unusual tags, and each truncated, at each place of a block.
#[test]
fn tags_at_the_borders_of_blocks() {
    for odd in [
        "<a href=\"x\">",
        "</a href=\"x>\">",
        "<p a=\"b\" c='>' d><a>",
        "<p a=b\"c d=\"><a>\">",
        "<p a=\"b\"c=\"d\"><a>",
        "<p a= \"><a>\"><a>",
        "<p =\"a><a>\"><a>",
        "<p/=\"a><a>\"><a>",
        "<p a=\"b\"=\"c><a>\"><a>",
        "<p=\"a b=\"><a>\"><a>",
        "<p=\"a b= \"><a>\"><a>",
        "</p=\"a b= \"><a>\"><a>",
        "<p a=\"b=\"><a>",
        "<p a=b=\"c d=\"><a>\"><a>",
        "<p a==\"b c= \"><a>\"><a>",
        "<p <a href=\"x\"><a>",
        "<p a=\"<a>\" b=\">\"><a>",
        "x=\"<a>\" <a>",
        "x > y <a>",
        "x < y <a>",
        "<><a></><a>",
        "<!--<a>--><a><![CDATA[<a>]]><a>",
        "<p a=\"b\"\n\tc\n=\n\"d\"\n/><a\t>",
        "<p \"><a>",
        "<p a\"b=\"c\"><a>",
        "<p\x0b=\"a b= \"><a>\"><a>",
        "<script>\"<a>\"</script><a>",
        "<li><link><lin><strong><style></style><a>",
    ] {
        for before in 0..=64 {
            let behind = "<p class=\"c\">x</p>".repeat(8);
            let text = format!("{}{odd}{behind}<a href=\"y\">", "x".repeat(before));
            check(text.as_bytes(), || text.clone());
            // Every third of them, another third at the next place.
            for cut in (before + before % 3..before + odd.len()).step_by(3) {
                check(&text.as_bytes()[..cut], || format!("cut at {cut}: {text}"));
            }
        }
    }
}
