//! Pages of faulty hosts: their links, and their HTML in two parts.
//!
//! Decides: a page's first part has its links and is the least that a crawler gets of it. Its second part links to a
//! `lost` page and is what the fault withholds. A healthy page is both, without that link.
//! Invariants: pure; `links` returns the links of the first part.

use super::Fault;
use super::spot::{PAGES, Spot};
use crate::draw::{Draw, Purpose};
use crate::place::WORDS;

/// A page's HTML.
pub(crate) struct Parts {
    /// Links, and some text.
    pub first: Vec<u8>,
    /// The rest of the page.
    pub second: Vec<u8>,
}

impl Parts {
    /// The parts of the page at `spot`; `version` is that of a page that changes.
    pub fn new(fault: Fault, spot: Spot, version: u64) -> Parts {
        let name = fault.as_str();
        let mut first =
            format!("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<title>{name}</title>\n</head>\n<body>\n<ul>\n");
        let is_lie = fault == Fault::WrongType && spot == Spot::Page(1);
        for link in links(fault, spot).into_iter().chain(is_lie.then_some(Spot::Lost(1))) {
            let mut path = Vec::new();
            if matches!((fault, spot, link), (Fault::PathTrap, Spot::Maze(_), Spot::Maze(_))) {
                path.extend_from_slice(b"deeper/");
            } else if link.push_path(fault, &mut path).is_none() {
                continue;
            }
            let path = String::from_utf8_lossy(&path);
            first.push_str(&format!("<li><a href=\"{path}\">{path}</a></li>\n"));
        }
        first.push_str("</ul>\n<p>");
        let number = match spot {
            // The same page under all its addresses.
            Spot::Page(_) if fault == Fault::Duplicates => 1,
            Spot::Page(number) | Spot::Past(number) | Spot::Lost(number) => number,
            _ => 0,
        };
        if fault == Fault::Changing {
            first.push_str(&format!("This is version {version}. "));
        }
        if let (Fault::Facets, Spot::Maze(number)) = (fault, spot) {
            // The texts of sixteen that the filters leave.
            let left = Draw::new(0, Purpose::Fault, fault as u64, number).bits();
            for text in (0..FACET_TEXTS).filter(|text| left >> text & 1 == 1) {
                push_words(&mut Draw::new(1, Purpose::Fault, fault as u64, text), FACET_WORDS, &mut first);
            }
        }
        if let (Fault::Versions, Spot::Maze(number)) = (fault, spot) {
            push_words(&mut Draw::new(1, Purpose::Fault, fault as u64, number), 1, &mut first);
        }
        let mut draw = Draw::new(0, Purpose::Fault, fault as u64, number);
        push_words(&mut draw, 80, &mut first);
        let mut second = String::new();
        push_words(&mut draw, 80, &mut second);
        if is_cut(fault, spot) {
            second.push_str(&format!("<a href=\"/lost/{number}\">lost</a> "));
        }
        second.push_str("</p>\n</body>\n</html>\n");
        Parts { first: first.into_bytes(), second: second.into_bytes() }
    }

    /// Both parts.
    pub fn whole(self) -> Vec<u8> {
        let mut whole = self.first;
        whole.extend_from_slice(&self.second);
        whole
    }
}

fn push_words(draw: &mut Draw, count: usize, text: &mut String) {
    for _ in 0..count {
        text.push_str(draw.pick(WORDS));
        text.push(' ');
    }
}

/// Whether a crawler has the first part of a page and must not treat the second as part of it.
fn is_cut(fault: Fault, spot: Spot) -> bool {
    let faulty = matches!(spot, Spot::Page(1 | 3));
    faulty
        && matches!(
            fault,
            Fault::DrippingBody
                | Fault::ResetInBody
                | Fault::ShortLength
                | Fault::LongLength
                | Fault::BadChunk
                | Fault::EndlessBody
                | Fault::HugePage
                | Fault::GzipBomb
        )
}

/// The links of a page, each once, when it is read as the HTML that it is.
pub(crate) fn links(fault: Fault, spot: Spot) -> Vec<Spot> {
    match spot {
        Spot::Root => match fault {
            _ if fault.is_maze() => Spot::entrance(fault).into_iter().collect(),
            Fault::RobotsHuge => vec![Spot::Page(2), Spot::Private(1), Spot::Late(1)],
            Fault::HugePage | Fault::GzipBomb => vec![Spot::Page(1), Spot::Page(2)],
            _ => (1..=PAGES).map(Spot::Page).collect(),
        },
        Spot::Maze(number) => Spot::deeper(fault, number).collect(),
        // HTML declared as an image, and an image.
        Spot::Page(1 | 3) if fault == Fault::WrongType => Vec::new(),
        // One body at all addresses.
        Spot::Page(_) if fault == Fault::Duplicates => vec![Spot::Root],
        Spot::Page(number) => vec![Spot::Past(number), Spot::Root],
        Spot::Past(_) | Spot::Lost(_) | Spot::Private(_) | Spot::Late(_) => vec![Spot::Root],
        Spot::Robots | Spot::Chain(_) | Spot::Unknown => Vec::new(),
    }
}

/// Where a spot redirects to.
pub(crate) fn redirect(fault: Fault, spot: Spot) -> Option<Spot> {
    use super::spot::CHAIN;
    match (fault, spot) {
        (Fault::RedirectLoop, Spot::Page(1)) => Some(Spot::Page(1)),
        (Fault::RedirectLoop, Spot::Page(3)) => Some(Spot::Past(3)),
        (Fault::RedirectLoop, Spot::Past(3)) => Some(Spot::Page(3)),
        (Fault::RedirectChain, Spot::Page(1)) => Some(Spot::Chain(1)),
        (Fault::RedirectChain, Spot::Chain(CHAIN)) => Some(Spot::Past(1)),
        (Fault::RedirectChain, Spot::Chain(number)) => Some(Spot::Chain(number + 1)),
        _ => None,
    }
}

/// The robots.txt of a host of `RobotsHuge`: RFC 9309 section 2.5 lets a crawler stop after 500 KiB.
pub(crate) fn huge_robots() -> Vec<u8> {
    let mut text = b"User-agent: *\nDisallow: /private/\n".to_vec();
    let fill = |bytes: usize, text: &mut Vec<u8>| {
        while text.len() < bytes {
            text.extend_from_slice(
                b"# There is nothing to see in this line, nor in the next one, nor in all the others.\n",
            );
        }
    };
    fill(LATE_RULE_BYTES, &mut text);
    text.extend_from_slice(b"Disallow: /late/\n");
    fill(LATE_RULE_BYTES * 3 / 2, &mut text);
    text
}

/// Texts of a list with filters, and their words.
const FACET_TEXTS: u64 = 16;
const FACET_WORDS: usize = 40;

/// The late rule in the huge robots.txt begins at this offset, or a few bytes behind.
pub(crate) const LATE_RULE_BYTES: usize = 2 << 20;

/// Text without links; endless bodies repeat it.
pub(crate) fn filler() -> Vec<u8> {
    b"This page goes on and on, and no line of it is the last.<br>\n".repeat(256)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_say_what_links_gives() {
        for fault in Fault::ALL.iter().copied() {
            for spot in [Spot::Root, Spot::Page(1), Spot::Page(2), Spot::Page(3), Spot::Past(1)] {
                let parts = Parts::new(fault, spot, 0);
                let (first, second) =
                    (String::from_utf8(parts.first).unwrap(), String::from_utf8(parts.second).unwrap());
                let lies = usize::from(fault == Fault::WrongType && spot == Spot::Page(1));
                assert_eq!(first.matches("href").count(), links(fault, spot).len() + lies, "{fault:?} {spot:?}");
                assert_eq!(second.contains("/lost/"), is_cut(fault, spot), "{fault:?} {spot:?}");
            }
        }
        let same = |number| Parts::new(Fault::Duplicates, Spot::Page(number), 0).whole();
        assert!(same(1) == same(3));
        let version = |version| Parts::new(Fault::Changing, Spot::Page(1), version).whole();
        assert!(version(0) != version(1));
    }

    #[test]
    fn the_late_rule_lies_behind_what_must_be_read() {
        let text = huge_robots();
        let at = text.windows(16).position(|window| window == b"Disallow: /late/").unwrap();
        assert!((LATE_RULE_BYTES..LATE_RULE_BYTES + 200).contains(&at), "{at}");
        assert!((3_000_000..4_000_000).contains(&text.len()), "{}", text.len());
    }
}
