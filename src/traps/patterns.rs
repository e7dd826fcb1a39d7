//! What the pages of a host are worth, by the patterns of their URLs.
//!
//! Decides: a tree of tokens ([`Tokens`]). A node counts the pages below it that were fetched, and those that were worth it. Where more
//! than [`WIDE`] different tokens follow, they all count as one: there stands a title or a name, and no kind of page. A URL is
//! *poor* where the node at the end of its way has seen [`PAGES_MIN`] pages, of which less than one in [`WORTH_PARTS`] was worth it.
//! What turns off from all ways known is new, and poor only below a node that has seen [`SURE_PAGES_MIN`] and hardly any worth it;
//! right below the root never.
//! Old pages count less and less, so a pattern can become rich again.
//! Why a tree: nobody knows beforehand which part of a URL says what kind of page it is: in one system the second
//! segment, in another the fourth parameter's value.
//! Invariants: pure; at most [`NODES_MAX`] nodes.
//! Limits: a new kind of page needs [`PAGES_MIN`] fetches until it is known. When all nodes are in use, deeper kinds count for what is
//! above them.

use super::tokens::Tokens;

/// The patterns of one host.
#[derive(Clone, Debug)]
pub struct Patterns {
    /// The first one is the root.
    nodes: Vec<Node>,
    /// Nodes that are not in use, linked by `next`.
    free: u16,
    /// A node has become poor: until then nobody need look.
    has_poor: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    token: u32,
    /// The first of those below; 0: none.
    below: u16,
    /// The next one below the same node; 0: none.
    next: u16,
    fetched: u16,
    worth: u16,
    /// More than [`WIDE`] tokens followed: they are one.
    is_wide: bool,
}

impl Node {
    fn is_poor(&self) -> bool {
        self.fetched >= PAGES_MIN && self.worth * WORTH_PARTS < self.fetched
    }
}

impl Patterns {
    /// Nothing known.
    pub fn new() -> Patterns {
        Patterns { nodes: vec![Node::default()], free: 0, has_poor: false }
    }

    /// A page was fetched, and was worth it or not.
    pub fn note(&mut self, tokens: &Tokens, is_worth: bool) {
        self.count(ROOT, is_worth);
        let mut at = ROOT;
        for token in tokens.iter() {
            let Some(next) = self.below(at, token).or_else(|| self.add(at, token)) else { return };
            self.count(next, is_worth);
            at = next;
        }
    }

    /// Whether pages with this pattern are hardly ever worth it.
    pub fn is_poor(&self, tokens: &Tokens) -> bool {
        let mut at = ROOT;
        for token in tokens.iter() {
            let Some(next) = self.below(at, token) else {
                let node = self.node(at);
                return at != ROOT && node.fetched >= SURE_PAGES_MIN && node.worth * SURE_WORTH_PARTS < node.fetched;
            };
            at = next;
        }
        self.node(at).is_poor()
    }

    /// Whether there is any pattern that is poor, or was.
    pub fn has_poor(&self) -> bool {
        self.has_poor
    }

    /// Whether too few pages with this pattern were noted to know more, and at least one of them was not worth it; with
    /// `is_alarmed` that need not be.
    pub fn is_doubtful(&self, tokens: &Tokens, is_alarmed: bool) -> bool {
        let mut at = ROOT;
        for token in tokens.iter() {
            let Some(next) = self.below(at, token) else { return is_alarmed };
            at = next;
        }
        let node = self.node(at);
        node.fetched < DOUBTFUL_PAGES_MAX && (is_alarmed || node.worth < node.fetched)
    }

    /// Bytes of memory.
    pub fn ram_bytes(&self) -> usize {
        size_of::<Patterns>() + self.nodes.capacity() * size_of::<Node>()
    }

    fn node(&self, at: u16) -> Node {
        self.nodes.get(usize::from(at)).copied().unwrap_or_default()
    }

    fn change(&mut self, at: u16, change: impl FnOnce(&mut Node)) {
        if let Some(node) = self.nodes.get_mut(usize::from(at)) {
            change(node);
        }
    }

    fn count(&mut self, at: u16, is_worth: bool) {
        self.change(at, |node| {
            if node.fetched >= PAGES_MAX {
                (node.fetched, node.worth) = (node.fetched / 2, node.worth / 2);
            }
            (node.fetched, node.worth) = (node.fetched + 1, node.worth + u16::from(is_worth));
        });
        self.has_poor |= self.node(at).is_poor();
    }

    /// The nodes right below one.
    fn all_below(&self, at: u16) -> impl Iterator<Item = u16> {
        let first = Some(self.node(at).below).filter(|below| *below != 0);
        std::iter::successors(first, |at| Some(self.node(*at).next).filter(|next| *next != 0)).take(WIDE + 1)
    }

    fn below(&self, at: u16, token: u32) -> Option<u16> {
        let token = if self.node(at).is_wide { ANY } else { token };
        self.all_below(at).find(|below| self.node(*below).token == token)
    }

    /// Adds a node below another, or makes that a wide one; `None`: all are in use.
    fn add(&mut self, at: u16, token: u32) -> Option<u16> {
        if self.all_below(at).count() < WIDE {
            let new = self.take(Node { token, next: self.node(at).below, ..Node::default() })?;
            self.change(at, |node| node.below = new);
            return Some(new);
        }
        let (mut fetched, mut worth) = (0u16, 0u16);
        let below: Vec<u16> = self.all_below(at).collect();
        for place in below {
            let node = self.node(place);
            (fetched, worth) = (fetched.saturating_add(node.fetched), worth.saturating_add(node.worth));
            self.give_back(place);
        }
        // As much as one node can have seen.
        while fetched > PAGES_MAX {
            (fetched, worth) = (fetched / 2, worth / 2);
        }
        let any = self.take(Node { token: ANY, fetched, worth, ..Node::default() })?;
        self.change(at, |node| (node.below, node.is_wide) = (any, true));
        Some(any)
    }

    fn take(&mut self, new: Node) -> Option<u16> {
        if self.free != 0 {
            let place = self.free;
            self.free = self.node(place).next;
            self.change(place, |node| *node = new);
            return Some(place);
        }
        let place = u16::try_from(self.nodes.len()).ok().filter(|place| *place < NODES_MAX)?;
        self.nodes.push(new);
        Some(place)
    }

    /// Gives back a node and all below it.
    fn give_back(&mut self, place: u16) {
        let mut left = vec![place];
        while let Some(place) = left.pop() {
            left.extend(self.all_below(place));
            let free = self.free;
            self.change(place, |node| *node = Node { next: free, ..Node::default() });
            self.free = place;
        }
    }
}

impl Default for Patterns {
    fn default() -> Patterns {
        Patterns::new()
    }
}

const ROOT: u16 = 0;
/// The token of what follows a wide node.
const ANY: u32 = 0;
/// Nodes of a host: 4 KiB.
const NODES_MAX: u16 = 256;
/// Different tokens that may follow before they all count as one.
const WIDE: usize = 16;
/// Pages from which on a node says something.
const PAGES_MIN: u16 = 8;
/// Pages that a node remembers: the older half counts for less.
const PAGES_MAX: u16 = 128;
/// A pattern is poor when less than one page of so many was worth it.
const WORTH_PARTS: u16 = 5;
/// Pages from which on a pattern is known.
const DOUBTFUL_PAGES_MAX: u16 = 16;
/// The same of what is new below a node.
const SURE_PAGES_MIN: u16 = 32;
const SURE_WORTH_PARTS: u16 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn note(patterns: &mut Patterns, path: &str, is_worth: bool) {
        patterns.note(&Tokens::of(path), is_worth);
    }

    fn is_poor(patterns: &Patterns, path: &str) -> bool {
        patterns.is_poor(&Tokens::of(path))
    }

    #[test]
    fn kinds_of_pages_are_told_apart_whatever_part_of_the_url_says_so() {
        let mut patterns = Patterns::new();
        for number in 0..200 {
            note(&mut patterns, &format!("/wiki/Title{}", letters(number)), true);
            note(&mut patterns, &format!("/wiki/Special:Links/Title{}", letters(number)), false);
            note(&mut patterns, &format!("/index.php?title=Title{}&action=history", letters(number)), false);
            note(&mut patterns, &format!("/index.php?title=Title{}", letters(number)), true);
            note(
                &mut patterns,
                &format!("/git/?p=a.git;a=blob;f=src/{};hb={number:08x}f", letters(number)),
                number % 2 == 0,
            );
            note(&mut patterns, &format!("/git/?p=a.git;a=log;f=src/{};hb={number:08x}f", letters(number)), false);
            note(&mut patterns, &format!("/calendar/{}/{}/", 1970 + number / 12, number % 12), number < 3);
        }
        assert!(patterns.nodes.len() <= usize::from(NODES_MAX));
        for (path, expected) in [
            ("/wiki/Other", false),
            ("/wiki/Special:Links/Other", true),
            ("/index.php?action=history&title=Other", true),
            ("/index.php?title=Other", false),
            ("/git/?p=a.git;a=blob;f=x;hb=01234567f", false),
            ("/git/?p=a.git;a=log;f=x;hb=01234567f", true),
            ("/calendar/2030/1/", true),
            ("/new/kind/of/page", false),
            ("/", false),
        ] {
            assert_eq!(is_poor(&patterns, path), expected, "{path}");
        }
    }

    #[test]
    fn what_was_poor_can_become_rich_again() {
        let mut patterns = Patterns::new();
        (0..1_000).for_each(|number| note(&mut patterns, &format!("/a/{number}"), false));
        assert!(is_poor(&patterns, "/a/1"));
        let until_rich = (0..1_000).position(|number| {
            note(&mut patterns, &format!("/a/{number}"), true);
            !is_poor(&patterns, "/a/1")
        });
        assert!(until_rich.is_some_and(|pages| pages < 64), "{until_rich:?}");
    }

    /// Tokens without end, at every level.
    #[test]
    fn memory_is_bounded_and_nodes_are_used_again() {
        let mut patterns = Patterns::new();
        for number in 0u32..50_000 {
            let path: String = (0..number % 13)
                .map(|level| format!("/{}", letters(number.wrapping_mul(2_654_435_761).rotate_left(level))))
                .collect();
            note(&mut patterns, &path, number % 3 == 0);
        }
        assert!(patterns.ram_bytes() <= size_of::<Patterns>() + 2 * usize::from(NODES_MAX) * size_of::<Node>());
        let in_use = |patterns: &Patterns| {
            let (mut count, mut left) = (0, vec![ROOT]);
            while let Some(place) = left.pop() {
                count += 1;
                left.extend(patterns.all_below(place));
            }
            count
        };
        let mut free = 0;
        let mut place = patterns.free;
        while place != 0 {
            (free, place) = (free + 1, patterns.node(place).next);
        }
        assert_eq!(in_use(&patterns) + free, patterns.nodes.len(), "none is lost, and none is in two places");
    }

    /// A word of its own for each number.
    fn letters(mut number: u32) -> String {
        let mut word = String::new();
        loop {
            word.push(char::from(b'a' + (number % 26) as u8));
            number /= 26;
            if number == 0 {
                return word;
            }
        }
    }
}
