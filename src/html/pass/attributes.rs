//! Which attributes of an HTML tag are read, and which are skipped.
//!
//! Decides: for each element, the attributes that usually suffice are read, and the rest is skimmed, unless something
//! in it may still matter. `<a>`, the most common wanted tag, has a path of its own; a `<link>` that no caller wants
//! is skipped by its `rel`.
//!
//! Invariants: the result equals that of reading every attribute, as far as the element needs it.

use super::super::block::Kernel;
use super::super::kinds::Kind;
use super::super::listed;
use super::super::tokenizer::{Quoted, RawText, Span, Tokenizer, Unless};
use super::super::value::Value;
use super::kept::{Kept, Slot};
use super::name::Name;
use super::{Element, PRELOAD, Pass, Says};

impl<'a> Pass<'a> {
    /// An `<a>` outside foreign elements and templates: only there is a name of one letter wanted.
    #[inline(always)]
    pub(super) fn a<K: Kernel>(&self, tokenizer: &mut Tokenizer<'a, K>, elements: &mut Vec<Element<'a>>) -> Option<()> {
        let mut rel = Span::default();
        let value = match tokenizer.link() {
            Quoted::Found(value) => value,
            Quoted::Nowhere => return Some(()),
            Quoted::Unknown => {
                let mut href = Span::default();
                let read = tokenizer.attributes_until(|name, span| match Slot::of_link(name) {
                    Some(Slot::Href) => {
                        href = span;
                        true
                    }
                    Some(_) if rel.start == 0 => {
                        rel = span;
                        false
                    }
                    _ => false,
                });
                if read?.is_continue() {
                    return Some(());
                }
                tokenizer.value(href)
            }
        };
        let mut second = if rel.start > 0 { Some(tokenizer.value(rel)) } else { None };
        if tokenizer.skim(Unless::Word(*b"rel")).is_none() {
            match tokenizer.rel() {
                Quoted::Nowhere => {}
                Quoted::Found(value) => {
                    second = second.or(Some(value));
                    if tokenizer.skim(Unless::Never).is_none() {
                        tokenizer.attributes(|_, _| {})?;
                    }
                }
                Quoted::Unknown => {
                    tokenizer.attributes(|name, span| {
                        if rel.start == 0 && Slot::of_link(name) == Some(Slot::Rel) {
                            rel = span;
                        }
                    })?;
                    if second.is_none() && rel.start > 0 {
                        second = Some(tokenizer.value(rel));
                    }
                }
            }
        }
        elements.push(Element { says: Says::Link(Kind::A), value: Some(value), second });
        Some(())
    }

    /// Reads the kept attributes of an HTML tag, to its end.
    #[inline(always)]
    pub(super) fn attributes<K: Kernel>(&self, tokenizer: &mut Tokenizer<'a, K>, name: Name) -> Option<Kept> {
        let mut kept = Kept::default();
        // What usually suffices, and what may still follow it.
        let (enough, unless) = match name {
            Name::A | Name::Area => (Slot::Href, Unless::Word(*b"rel")),
            Name::Base => (Slot::Href, Unless::Never),
            Name::Frame | Name::Iframe => (Slot::Src, Unless::Never),
            Name::Raw(RawText::Script) if self.kinds.has(Kind::Script) => (Slot::Src, Unless::Never),
            // Of `srcset` and `data-`.
            Name::Img => (Slot::Src, Unless::Any([*b"cse", *b"ta-", *b"cse", *b"ta-"])),
            Name::Source => (Slot::Srcset, Unless::Word(*b"ta-")),
            Name::Input => (Slot::None, Unless::Never),
            Name::Link if self.skip_link(tokenizer) => return Some(kept),
            Name::Link => (Slot::None, Unless::Never),
            // Of `robots`, `refresh`, `tdm-reservation` and `tdm-policy`, and of our agent's name.
            Name::Meta => {
                let skimmed = match self.agent_word() {
                    // The first that names an encoding is mostly the first of all.
                    _ if self.is_tentative => None,
                    Some(agent) => tokenizer.skim(Unless::Any([*b"obo", *b"efr", *b"tdm", agent])),
                    None => None,
                };
                if skimmed.is_none() {
                    tokenizer.attributes(|name, span| kept.keep(name, span))?;
                }
                return Some(kept);
            }
            Name::Template | Name::Foreign | Name::Raw(_) | Name::Other => {
                if tokenizer.skim(Unless::Never).is_none() {
                    tokenizer.attributes(|_, _| {})?;
                }
                return Some(kept);
            }
        };
        let read = tokenizer.attributes_until(|name, span| {
            kept.keep(name, span);
            enough != Slot::None && Slot::of(name) == Some(enough)
        });
        if read?.is_break() && tokenizer.skim(unless).is_none() {
            tokenizer.attributes(|name, span| kept.keep(name, span))?;
        }
        Some(kept)
    }

    /// The first letters of the agent's name, or others that are searched for anyway; `None` when it is too short to
    /// be detected.
    #[inline(always)]
    fn agent_word(&self) -> Option<[u8; 3]> {
        match *self.agent.as_bytes() {
            [] => Some(*b"obo"),
            [one, two, three, ..] => {
                Some([one.to_ascii_lowercase(), two.to_ascii_lowercase(), three.to_ascii_lowercase()])
            }
            _ => None,
        }
    }

    /// Moves behind a `<link>` if its `rel` is not wanted: most are for style sheets and icons.
    #[inline(always)]
    fn skip_link<K: Kernel>(&self, tokenizer: &mut Tokenizer<'a, K>) -> bool {
        let mut behind = *tokenizer;
        let Quoted::Found(Value::Plain(rel)) = behind.rel() else { return false };
        let is_wanted = self.kinds.links_any(rel)
            || self.has_images() && listed::any_token(rel, |token| token.eq_ignore_ascii_case(PRELOAD));
        let skips = !is_wanted && behind.skim(Unless::Never).is_some();
        if skips {
            *tokenizer = behind;
        }
        skips
    }
}
