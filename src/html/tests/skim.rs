//! Skimmed tags and quoted attributes equal those read attribute by attribute: checks for the twins' tags, and
//! examples.

use super::super::block::{Kernel, Task, with_each};
use super::super::tokenizer::{Quoted, Span, Tokenizer, Unless};
use super::super::value::Value;

const FOUR: [[u8; 3]; 4] = [*b"obo", *b"efr", *b"tdm", *b"my_"];

/// A tag skimmed from behind some of its attributes.
pub(super) struct Skimmed {
    unless: Unless,
    behind: usize,
    /// Whether the end is reported as `/>`.
    slash: bool,
    at: usize,
}

/// Skims a tag from its name on, and from behind its first attributes, in each way that succeeds.
#[inline(always)]
pub(super) fn each_way<K: Kernel>(mut tokenizer: Tokenizer<'_, K>) -> Vec<Skimmed> {
    let mut skimmed = Vec::new();
    for behind in 0..4 {
        for unless in [Unless::Never, Unless::Unquoted, Unless::Word(*b"rel"), Unless::Any(FOUR)] {
            let mut tokenizer = tokenizer;
            if let Some(slash) = tokenizer.skim(unless) {
                skimmed.push(Skimmed { unless, behind, slash, at: tokenizer.at() });
            }
        }
        if tokenizer.attributes_until(|_, _| true).is_none_or(|read| read.is_continue()) {
            break;
        }
    }
    skimmed
}

impl Skimmed {
    /// Whether this is true of a tag with these names and raw values that ends before `at`.
    pub fn holds(&self, at: usize, closes_itself: bool, attributes: &[(String, &[u8])]) -> bool {
        let skipped = attributes.get(self.behind..).unwrap_or_default();
        let has = |word: &[u8; 3]| {
            let texts = skipped.iter().flat_map(|(name, value)| [name.as_bytes(), *value]);
            texts.flat_map(|text| text.windows(3)).any(|three| three.eq_ignore_ascii_case(word))
        };
        let none_asked = match self.unless {
            Unless::Never | Unless::Unquoted => true,
            Unless::Word(word) => !has(&word),
            Unless::Any(words) => !words.iter().any(has),
        };
        let is_sure = matches!(self.unless, Unless::Unquoted);
        none_asked && self.at == at && (self.slash == closes_itself || self.slash && !is_sure)
    }
}

/// What was reported about an attribute of a tag.
pub(super) struct Told<'a> {
    name: &'static str,
    /// Attributes before the question.
    behind: usize,
    asked_at: usize,
    told: Quoted<Value<'a>>,
    at: usize,
}

/// Asks for a tag's link, and for its `rel` from behind its first attributes.
#[inline(always)]
pub(super) fn each_told<'a, K: Kernel>(mut tokenizer: Tokenizer<'a, K>) -> Vec<Told<'a>> {
    let mut all = Vec::new();
    for behind in 0..4 {
        let mut asked = tokenizer;
        let (name, told) = if behind == 0 { ("href", asked.link()) } else { ("rel", asked.rel()) };
        all.push(Told { name, behind, asked_at: tokenizer.at(), told, at: asked.at() });
        if tokenizer.attributes_until(|_, _| true).is_none_or(|read| read.is_continue()) {
            break;
        }
    }
    all
}

impl Told<'_> {
    /// Whether this is true of a tag with these names and values, in these places, that ends before `at`, or does not
    /// end.
    pub fn holds(&self, at: Option<usize>, attributes: &[(String, &[u8])], spans: &[Span]) -> bool {
        let behind = attributes.get(self.behind..).unwrap_or_default();
        let place = behind.iter().position(|(name, _)| name == self.name);
        match (self.told, place) {
            (Quoted::Found(value), Some(place)) => {
                let raw = behind[place].1;
                let is_plain = raw.iter().all(|byte| byte.is_ascii() && !matches!(byte, b'&' | b'\r' | 0));
                let same = match value {
                    Value::Plain(text) => text.as_bytes() == raw && is_plain,
                    Value::Raw(value) => value == raw,
                };
                let rel_before = self.name == "href" && behind[..place].iter().any(|(name, _)| name == "rel");
                same && !rel_before && self.at == spans[self.behind + place].end + 1
            }
            (Quoted::Nowhere, None) => Some(self.at) == at,
            (Quoted::Unknown, _) => self.at == self.asked_at,
            _ => false,
        }
    }
}

/// What a tag is skimmed for.
#[derive(Clone)]
struct Skim<'a>(&'a [u8], Unless);

impl Task for Skim<'_> {
    /// Whether the end is `/>`, and what follows it.
    type Output = Option<(bool, usize)>;

    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) -> Option<(bool, usize)> {
        let mut tokenizer = Tokenizer::new(self.0, 2, kernel);
        let slash = tokenizer.skim(self.1)?;
        Some((slash, self.0.len() - tokenizer.at()))
    }
}

/// Tags that are skimmed, and tags that are not, at every place of a block.
#[test]
fn skimmed_tags() {
    let (never, rel, r) = (Unless::Never, Unless::Word(*b"rel"), Unless::Any(FOUR));
    let rest = " x".repeat(40);
    for before in ["".to_owned(), " a=\"b\"".repeat(9), " c".repeat(61), format!(" d=\"{}\"", "e".repeat(200))] {
        for space in 0..64 {
            let before = format!("{before}{}", " ".repeat(space));
            for (tag, unless, slash) in [
                (">", never, Some(false)),
                (" f=g h>", never, Some(false)),
                (" i=\"j\" />", never, Some(true)),
                (" k=\"l m\"n>", never, Some(false)),
                (" rail='", rel, None),
                (" class=\"r el\">", rel, Some(false)),
                (" class=\"rel\">", rel, None),
                (" aria-label=\"x\">", rel, Some(false)),
                (" class=\"red r-l el\">", rel, Some(false)),
                (" REL=x>", rel, None),
                (" o=\"p\" q=\"s\">", r, Some(false)),
                (" o=\"p\" q=robots>", r, None),
                (" o=\"p\" q=\"Refresh\">", r, None),
                (" t=\"u > v\">", never, None),
                (" t=\"=\">", never, None),
                (" t= \"u>v\">", never, None),
                (" t=\"u \">", never, None),
                (" it's>", never, None),
            ] {
                let page = format!("<p{before}{tag}{rest}");
                let expected = slash.map(|slash| (slash, rest.len()));
                for (kernel, found) in with_each(&Skim(page.as_bytes(), unless)) {
                    assert_eq!(found, expected, "{kernel}: {unless:?}: {page}");
                }
            }
        }
    }
}

/// The input with an `<a>`, and whether to ask for its link.
#[derive(Clone)]
struct Ask<'a>(&'a [u8], bool);

impl Task for Ask<'_> {
    /// The result, and what follows it.
    type Output = (Quoted<String>, usize);

    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) -> Self::Output {
        let mut tokenizer = Tokenizer::new(self.0, 2, kernel);
        let told = match if self.1 { tokenizer.link() } else { tokenizer.rel() } {
            Quoted::Found(Value::Plain(text)) => Quoted::Found(text.to_owned()),
            Quoted::Found(Value::Raw(raw)) => Quoted::Found(format!("raw {}", raw.escape_ascii())),
            Quoted::Nowhere => Quoted::Nowhere,
            Quoted::Unknown => Quoted::Unknown,
        };
        (told, self.0.len() - tokenizer.at())
    }
}

/// Links and `rel`s that are found, and those that are not.
#[test]
fn quoted_attributes() {
    let rest = " x".repeat(70);
    let long = "y".repeat(64);
    for (tag, link, rel) in [
        (" href=\"a\"|>", Quoted::Found("a"), Quoted::Nowhere),
        (" HREF=\"\"|>", Quoted::Found(""), Quoted::Nowhere),
        ("\nclass=\"b > c='\" href=\"d\"|>", Quoted::Found("d"), Quoted::Nowhere),
        ("/Href=\"&amp;\"|", Quoted::Found("raw &amp;"), Quoted::Unknown),
        (" class=\"e\" id=\"f\"\tREL=\"g\"|>", Quoted::Unknown, Quoted::Found("g")),
        (" class=\"e\">| href=\"f\"", Quoted::Nowhere, Quoted::Nowhere),
        (">|href=\"f\"", Quoted::Nowhere, Quoted::Nowhere),
        (" class=\"e\" >| href=\"f\"", Quoted::Unknown, Quoted::Unknown),
        (" hrefs=\"e\" xhref=\"e\" rels=\"f\" xrel=\"f\">|", Quoted::Nowhere, Quoted::Nowhere),
        (" href href=\"f\">", Quoted::Unknown, Quoted::Unknown),
        (" href=g class=\"f\">", Quoted::Unknown, Quoted::Unknown),
        (" href = \"g\">", Quoted::Unknown, Quoted::Unknown),
        (" href =\"g\">", Quoted::Unknown, Quoted::Unknown),
        (" href= \"g\">", Quoted::Unknown, Quoted::Unknown),
        ("  href=\"g\">", Quoted::Unknown, Quoted::Unknown),
        (" href='g\"' title=\"\">", Quoted::Unknown, Quoted::Unknown),
        (" =\"g href=\"f\">", Quoted::Unknown, Quoted::Unknown),
        (" class=\"g\"href=\"f\">", Quoted::Unknown, Quoted::Unknown),
        (" class=g\" href=\"f\">", Quoted::Unknown, Quoted::Unknown),
        (" h\"ref=\"f\">", Quoted::Unknown, Quoted::Unknown),
    ] {
        let (before, behind) = tag.split_once('|').unwrap_or((tag, ""));
        let page = format!("<a{before}{behind}{rest}");
        for (asked, is_link) in [(link, true), (rel, false)] {
            let expected = match asked {
                Quoted::Found(value) => Quoted::Found(value.to_owned()),
                Quoted::Nowhere => Quoted::Nowhere,
                Quoted::Unknown => Quoted::Unknown,
            };
            let behind = if expected == Quoted::Unknown { 0 } else { before.len() };
            for (kernel, (told, left)) in with_each(&Ask(page.as_bytes(), is_link)) {
                assert_eq!(told, expected, "{kernel}: {page}");
                assert!(!is_link || left == page.len() - 2 - behind, "{kernel}: {page}");
            }
        }
    }
    let page = format!("<a title=\"{long}\" href=\"z\">{rest}");
    assert!(with_each(&Ask(page.as_bytes(), true)).iter().all(|(_, (told, _))| *told == Quoted::Unknown));
    let page = format!("<a href=\"{long}\">{rest}");
    assert!(with_each(&Ask(page.as_bytes(), true)).iter().all(|(_, (told, _))| *told == Quoted::Found(long.clone())));
    let page = format!("<a href=\"{long}");
    assert!(with_each(&Ask(page.as_bytes(), true)).iter().all(|(_, told)| *told == (Quoted::Unknown, page.len() - 2)));
}
