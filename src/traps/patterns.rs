//! What the pages of a host are worth, by the patterns of their URLs.
//!
//! Decides: a tree of tokens ([`Tokens`]). A node counts the pages below it that were fetched, and those that were worth it. Where more
//! than [`WIDE`] different tokens follow, they all count as one: there stands a title or a name, and no kind of page. What names a
//! kind by itself ([`Tokens::is_kind`]) stays apart: [`KINDS`] of it, and what is more together.
//! What a page with some URL will be worth is estimated along its way down the tree: a node's pages count, and besides them
//! what is estimated above it counts as [`PRIOR_PAGES`] pages. So what turns off from all ways known is taken for what those
//! are, and a few pages of its own say more. A first segment that is new is taken to be worth its fetch while anything else at the root is, or while
//! hardly any segment is known. A URL is
//! *poor* below [`POOR_BELOW`].
//! Old pages count less and less, so a pattern can become rich again.
//! Why a tree: nobody knows beforehand which part of a URL says what kind of page it is: in one system the second
//! segment, in another the fourth parameter's value.
//! Why estimates: with a number of pages that each node must have seen, a poor kind of a hundred kinds below it costs a
//! hundred times that number.
//! Invariants: pure; at most [`NODES_MAX`] nodes.
//! Limits: when all nodes are in use, deeper kinds count for what is above them.

use super::tokens::Tokens;

/// The patterns of one host.
#[derive(Clone, Debug)]
pub struct Patterns {
    /// The first one is the root.
    nodes: Vec<Node>,
    /// Nodes that are not in use, linked by `next`.
    free: u16,
    /// A page was not worth it: until then nobody need look.
    has_bad: bool,
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
}

impl Node {
    /// What its pages are worth, of [`WHOLE`], where that is estimated as `above` of those above it.
    fn estimate(&self, above: u32) -> u32 {
        (u32::from(self.worth) * WHOLE + PRIOR_PAGES * above) / (u32::from(self.fetched) + PRIOR_PAGES)
    }
}

impl Patterns {
    /// Nothing known.
    pub fn new() -> Patterns {
        Patterns { nodes: vec![Node::default()], free: 0, has_bad: false }
    }

    /// A page was fetched, and was worth it or not.
    pub fn note(&mut self, tokens: impl IntoIterator<Item = u32>, is_worth: bool) {
        self.has_bad |= !is_worth;
        self.count(ROOT, is_worth);
        let mut at = ROOT;
        for token in tokens {
            let Some(next) = self.below(at, token).or_else(|| self.add(at, token)) else { return };
            self.count(next, is_worth);
            at = next;
        }
    }

    /// Whether pages with this pattern are hardly ever worth it.
    pub fn is_poor(&self, tokens: impl IntoIterator<Item = u32>) -> bool {
        let (mut at, mut estimate) = (ROOT, WHOLE);
        for (depth, token) in tokens.into_iter().enumerate() {
            if depth == OPEN_LEVELS && !Tokens::is_kind(token) {
                estimate = self.first_segments(at);
            }
            let Some(next) = self.below(at, token) else { break };
            at = next;
            if depth >= OPEN_LEVELS {
                estimate = self.node(at).estimate(estimate);
            }
        }
        estimate < POOR_BELOW
    }

    /// What a first segment is worth of which nothing is known, in the class at `at`.
    fn first_segments(&self, at: u16) -> u32 {
        let (mut all, mut count) = (Node::default(), 0);
        for segment in self.all_below(at).map(|below| self.node(below)) {
            let is_worth = u32::from(segment.worth) * WHOLE >= u32::from(segment.fetched) * POOR_BELOW;
            match Tokens::is_kind(segment.token) {
                _ if is_worth => return WHOLE,
                true => continue,
                false => {}
            }
            (all.fetched, all.worth) = (all.fetched + segment.fetched, all.worth + segment.worth);
            count += 1;
        }
        if count < SEGMENTS_MIN { WHOLE } else { all.estimate(WHOLE) }
    }

    /// Whether any page was not worth it: else no pattern is poor.
    pub fn has_bad(&self) -> bool {
        self.has_bad
    }

    /// Whether nearly all pages were worth it lately.
    pub fn are_rich(&self) -> bool {
        let root = self.node(ROOT);
        u32::from(root.worth) * RICH_PARTS >= u32::from(root.fetched) * (RICH_PARTS - 1)
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
    }

    /// The nodes right below one.
    fn all_below(&self, at: u16) -> impl Iterator<Item = u16> {
        let first = Some(self.node(at).below).filter(|below| *below != 0);
        std::iter::successors(first, |at| Some(self.node(*at).next).filter(|next| *next != 0)).take(WIDE + KINDS + 1)
    }

    fn below(&self, at: u16, token: u32) -> Option<u16> {
        let (is_kind, mut others) = (Tokens::is_kind(token), None);
        for below in self.all_below(at) {
            match self.node(below).token {
                there if there == token => return Some(below),
                ANY_KIND if is_kind => others = Some(below),
                ANY if !is_kind => others = Some(below),
                _ => {}
            }
        }
        others
    }

    /// Adds a node below another, or makes that a wide one; `None`: all are in use.
    fn add(&mut self, at: u16, token: u32) -> Option<u16> {
        let is_kind = Tokens::is_kind(token);
        let count = self.all_below(at).filter(|below| Tokens::is_kind(self.node(*below).token) == is_kind).count();
        match is_kind {
            true if count < KINDS => return self.add_node(at, token, [0, 0]),
            true => return self.add_node(at, ANY_KIND, [0, 0]),
            false if count < WIDE => return self.add_node(at, token, [0, 0]),
            false => {}
        }
        let (mut fetched, mut worth) = (0u16, 0u16);
        let mut kinds = Vec::new();
        for place in self.all_below(at).collect::<Vec<u16>>() {
            let node = self.node(place);
            if Tokens::is_kind(node.token) {
                kinds.push(place);
                continue;
            }
            (fetched, worth) = (fetched.saturating_add(node.fetched), worth.saturating_add(node.worth));
            self.give_back(place);
        }
        // As much as one node can have seen.
        while fetched > PAGES_MAX {
            (fetched, worth) = (fetched / 2, worth / 2);
        }
        self.change(at, |node| node.below = 0);
        for place in kinds {
            let first = self.node(at).below;
            self.change(place, |node| node.next = first);
            self.change(at, |node| node.below = place);
        }
        self.add_node(at, ANY, [fetched, worth])
    }

    fn add_node(&mut self, at: u16, token: u32, [fetched, worth]: [u16; 2]) -> Option<u16> {
        let new = self.take(Node { token, fetched, worth, next: self.node(at).below, ..Node::default() })?;
        self.change(at, |node| node.below = new);
        Some(new)
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
/// The token of all that follow where too many did.
const ANY: u32 = 0;
/// The same of what names a kind beyond [`KINDS`].
const ANY_KIND: u32 = u32::MAX;
/// Nodes of a host: 24 KiB.
const NODES_MAX: u16 = 2_048;
/// Different tokens that may follow before they all count as one.
const WIDE: usize = 16;
/// Kinds that are told apart below one node: a system has more kinds of pages than segments of a path have words for them.
const KINDS: usize = 64;
/// Pages that a node remembers: the older half counts for less.
const PAGES_MAX: u16 = 128;
/// An estimate counts as so many pages.
const PRIOR_PAGES: u32 = 4;
/// Tokens of which nothing is inherited: whether a URL is the first of its shape, which a caller puts before the others.
const OPEN_LEVELS: usize = 1;
/// First segments that say what others are worth.
const SEGMENTS_MIN: u32 = 3;
/// The estimate of pages that are all worth their fetch.
const WHOLE: u32 = 1_000;
const POOR_BELOW: u32 = 480;
/// Pages are rich if no more than one of so many was not worth it.
const RICH_PARTS: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn note(patterns: &mut Patterns, path: &str, is_worth: bool) {
        patterns.note(Tokens::of(path).iter(), is_worth);
    }

    fn is_poor(patterns: &Patterns, path: &str) -> bool {
        patterns.is_poor(Tokens::of(path).iter())
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
