//! The slow twin: html5ever's tokenizer on the same pages, noise included.

use std::cell::RefCell;
use std::collections::BTreeMap;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{BufferQueue, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer as Twin, TokenizerOpts};

use super::super::foreign;
use super::super::tokenizer::{RawText, TagName, Tokenizer};
use super::super::value::Decoder;
use super::Noise;

pub(super) type Attributes = BTreeMap<String, String>;

/// A tag as both see it.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct StartOrEnd {
    pub end: bool,
    pub name: String,
    pub attributes: Attributes,
}

/// The next tag of `tokenizer` with all its attributes: names in lower case, values decoded, the first of each name.
pub(super) fn next_tag(tokenizer: &mut Tokenizer, foreign: bool) -> Option<StartOrEnd> {
    let TagName { name, end } = tokenizer.tag(foreign)?;
    let lower = |name: &[u8]| String::from_utf8_lossy(name).to_ascii_lowercase().replace('\0', "\u{fffd}");
    let mut attributes = Attributes::new();
    let mut decoder = Decoder::new(encoding_rs::UTF_8);
    tokenizer.attributes(|name, value| {
        attributes.entry(lower(name)).or_insert_with(|| decoder.text(value).to_owned());
    })?;
    Some(StartOrEnd { end, name: lower(name), attributes })
}

fn fast(page: &str) -> Vec<StartOrEnd> {
    let mut tokenizer = Tokenizer::new(page.as_bytes());
    let mut tags = Vec::new();
    while let Some(tag) = next_tag(&mut tokenizer, false) {
        if let Some(raw) = foreign::raw_text(tag.name.as_bytes()).filter(|_| !tag.end) {
            tokenizer.skip_raw_text(tag.name.as_bytes(), raw);
        }
        tags.push(tag);
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

fn slow(page: &str) -> Vec<StartOrEnd> {
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
const PIECES: [&str; 44] = [
    "<a href=x>", "<a href='y' title=\"z\">", "<A HREF = 'x&amp;y&copy=1&copy;&#x80;'>", "</a>", "<p class=a/>", "<br/>",
    "<!--", "-->", "--!>", "<!-->", "<!--->", "->", "<!", "<?", "</", "</>", "<![CDATA[", "]]>", "<!doctype html '>'>",
    "<script>", "</script>", "<script ", "</script ", "</scriptx>", "<style>", "</style>", "<title>", "</title\n>",
    "<textarea>", "</textarea/>", "<xmp>", "</xmp>", "<iframe src=x>", "</iframe>", "<noembed>", "</noembed>",
    "<noscript>", "</noscript>", "text é", "<a href=\"", "<img a a=1 A=2 =b=c /d/ e='>'>", "<plaintext", "<", " ",
];

#[rustfmt::skip]
const CHARACTERS: [char; 22] = [
    '<', '>', '/', '!', '-', '\'', '"', '=', ' ', '\n', '\r', '\t', '&', ';', '#', 'a', 'S', 'x', '1', 'é', '?', '\u{c}',
];

#[test]
fn same_tags_as_html5ever() {
    let mut noise = Noise(0x5eed_0002);
    let mut tags = 0;
    for round in 0..4_000 {
        let pieces: String = (0..1 + noise.below(14)).map(|_| noise.pick(&PIECES)).collect();
        let mut page: Vec<char> = pieces.chars().collect();
        for _ in 0..noise.below(6) {
            let at = noise.below(page.len());
            match noise.below(3) {
                0 if !page.is_empty() => page[at] = noise.pick(&CHARACTERS),
                1 => page.insert(at, noise.pick(&CHARACTERS)),
                _ => page.truncate(at.max(4)),
            }
        }
        let page: String = page.into_iter().collect();
        let mut found = fast(&page);
        found.iter_mut().filter(|tag| tag.end).for_each(|tag| tag.attributes.clear());
        assert_eq!(found, slow(&page), "round {round}: {page:?}");
        tags += found.len();
    }
    assert!(tags > 4_000, "{tags} tags compared");
}
