//! What is skimmed is what reading attribute by attribute gives: checks for the twins' tags, and examples.

use super::super::block::{Kernel, Task, with_each};
use super::super::tokenizer::{Span, Tokenizer, Unless};

/// The first link of an `<a>`, if it is told, and behind it stands what is behind the first attribute.
#[inline(always)]
pub(super) fn first_link<K: Kernel>(mut tokenizer: Tokenizer<'_, K>, name: &[u8]) -> Option<Span> {
    let mut second = tokenizer;
    let link = tokenizer.first_link().filter(|_| name.eq_ignore_ascii_case(b"a"))?;
    second.attributes_until(|_, _| true);
    assert_eq!(tokenizer.at(), second.at());
    Some(link)
}

/// A tag that was skimmed from behind some of its attributes on.
pub(super) struct Skimmed {
    unless: Unless,
    behind: usize,
    /// Whether the end is said to be `/>`.
    slash: bool,
    at: usize,
}

/// Skims a tag from its name on, and from behind its first attributes on, in each way that succeeds.
#[inline(always)]
pub(super) fn each_way<K: Kernel>(mut tokenizer: Tokenizer<'_, K>) -> Vec<Skimmed> {
    let mut skimmed = Vec::new();
    for behind in 0..4 {
        for unless in [Unless::Never, Unless::Word(*b"rel"), Unless::Either(*b"obo", *b"efr")] {
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
    /// Whether this is so of a tag with these names and raw values that ends before `at`.
    pub fn holds(&self, at: usize, closes_itself: bool, attributes: &[(String, &[u8])]) -> bool {
        let skipped = attributes.get(self.behind..).unwrap_or_default();
        let has = |word: &[u8; 3]| {
            let texts = skipped.iter().flat_map(|(name, value)| [name.as_bytes(), *value]);
            texts.flat_map(|text| text.windows(3)).any(|three| three.eq_ignore_ascii_case(word))
        };
        let none_asked = match self.unless {
            Unless::Never => true,
            Unless::Word(word) => !has(&word),
            Unless::Either(one, other) => !has(&one) && !has(&other),
        };
        none_asked && self.at == at && (self.slash || !closes_itself)
    }
}

/// What a tag is skimmed for.
#[derive(Clone)]
struct Skim<'a>(&'a [u8], Unless);

impl Task for Skim<'_> {
    /// Whether the end is `/>`, and what is left behind it.
    type Output = Option<(bool, usize)>;

    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) -> Option<(bool, usize)> {
        let mut tokenizer = Tokenizer::new(self.0, 2, kernel);
        let slash = tokenizer.skim(self.1)?;
        Some((slash, self.0.len() - tokenizer.at()))
    }
}

/// Tags that are skimmed, and tags that are not, wherever in a block the question is decided.
#[test]
fn skimmed_tags() {
    let (never, rel, r) = (Unless::Never, Unless::Word(*b"rel"), Unless::Either(*b"obo", *b"efr"));
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
