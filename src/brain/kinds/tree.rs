//! What pages of a host are worth, by kind: a tree of URL shapes.
//!
//! Decides: a kind is a path of tokens ([`Tokens`]): segments, then the set of parameter names, then values. Where
//! more than [`WIDE`] different tokens follow a node, they count as one: they are titles or names, not kinds of
//! pages. Tokens that name a kind by themselves ([`Tokens::is_kind`]) stay apart: [`KINDS`] of them, and the rest
//! together.
//! A kind's worth is estimated along its path: a node's pages count, and the estimate of the node above counts as
//! [`PRIOR_PAGES`] more pages. So a new kind begins with its parent's weight. Pages with a query count below the node
//! `?` of their path alone: they say nothing about the path without one.
//! The estimate makes the weight ([`Weight`]). A kind that differs from known kinds in its last name alone is judged
//! by all of them together: titles and file names are new each time. The deepest node that proved anything is a
//! kind's *branch*, and names its lane.
//! Old pages count less and less, so a kind's weight can rise again.
//! Why a tree: which part of a URL names the kind of page differs by system: the second segment, or the fourth
//! parameter's value.
//! Why estimates: if each node needed a minimum number of pages, a poor kind with a hundred kinds below it would cost
//! a hundred times that number.
//! Invariants: pure; at most [`NODES_MAX`] nodes.
//! Limits: when all nodes are in use, deeper kinds count for the node above them.

use super::Weight;
use super::tokens::{END, Tokens};

/// The kinds of one host.
#[derive(Clone, Debug)]
pub struct KindTree {
    /// The first one is the root.
    nodes: Vec<Node>,
    /// Unused nodes, linked by `next`.
    free: u16,
    /// Some page was worth less than a whole one; before that every kind has its whole weight.
    has_poor_pages: bool,
}

/// What is known about a kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KindFacts {
    /// A hash of the path to the deepest node that has proved anything: kinds below different nodes do not wait for
    /// each other. Nodes are reused for other kinds, and lanes outlast them.
    pub branch: u32,
    /// How often it gets a turn.
    pub weight: Weight,
    /// The deepest node that is known.
    pub node: u16,
    /// Pages by which it is judged.
    pub pages: u16,
    /// These are pages of the kind itself, or of kinds that differ in a name alone, not of everything above it.
    pub is_known: bool,
}

impl KindFacts {
    /// Whether the weight comes from pages of the kind itself.
    pub fn is_proven(&self) -> bool {
        self.is_known && self.pages >= PROOF_PAGES
    }

    /// A URL that its page advises against, where nothing else is known about its kind.
    pub const ADVISED_AGAINST: KindFacts =
        KindFacts { branch: 0, weight: Weight::Sixteenth, node: ROOT, pages: 0, is_known: false };

    /// A URL that only strangers link to, on a host that has others, where nothing else is known about its kind.
    pub const OF_STRANGERS: KindFacts =
        KindFacts { branch: u32::MAX - 1, weight: Weight::Quarter, ..KindFacts::ADVISED_AGAINST };

    /// A URL whose kind is resting (`politeness::KindRest`).
    pub const RESTING: KindFacts = KindFacts { branch: u32::MAX, ..KindFacts::ADVISED_AGAINST };
}

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    token: u32,
    /// The first node below; 0: none.
    below: u16,
    /// The next node below the same parent; 0: none.
    next: u16,
    pages: u16,
    /// What its pages were worth, in units of [`PAGE_WORTH`].
    worth: u16,
}

impl Node {
    /// What its pages are worth, in units of [`WHOLE`], where the node above is estimated as `above`.
    fn estimate(&self, above: u32) -> u32 {
        let worth = u32::from(self.worth) * (WHOLE / u32::from(PAGE_WORTH));
        (worth + PRIOR_PAGES * above) / (u32::from(self.pages) + PRIOR_PAGES)
    }
}

impl KindTree {
    /// An empty tree.
    pub fn new() -> KindTree {
        KindTree { nodes: vec![Node::default()], free: 0, has_poor_pages: false }
    }

    /// A page was fetched and was worth `worth`, in units of [`PAGE_WORTH`].
    pub fn note(&mut self, tokens: &Tokens, worth: u16) {
        self.has_poor_pages |= worth < PAGE_WORTH;
        let mut counts = !tokens.has_query();
        let mut at = ROOT;
        self.count(at, counts, worth);
        for token in tokens.kind() {
            counts |= token == Tokens::QUERY;
            let Some(next) = self.below(at, token).or_else(|| self.add(at, token)) else { return };
            self.count(next, counts, worth);
            at = next;
        }
    }

    /// What is known about a kind.
    pub fn facts(&self, tokens: &Tokens) -> KindFacts {
        let (mut at, mut estimate) = (ROOT, self.node(ROOT).estimate(WHOLE));
        let (mut branch, mut way) = (0, 0u32);
        let mut path = tokens.kind();
        let (pages, is_known) = loop {
            let Some(token) = path.next() else { break (self.node(at).pages, true) };
            let Some(next) = self.below(at, token) else {
                let is_name = token != END && !Tokens::is_kind(token) && path.next() == Some(END);
                let alike = is_name.then(|| self.names_below(at)).filter(|alike| alike.pages > 0);
                estimate = alike.map_or(estimate, |alike| alike.estimate(estimate));
                break (alike.map_or(self.node(at).pages, |alike| alike.pages), alike.is_some());
            };
            at = next;
            estimate = self.node(at).estimate(estimate);
            way = (way ^ self.node(at).token).wrapping_mul(0x9e37_79b1).rotate_left(13);
            branch = if self.node(at).pages >= PROOF_PAGES { way } else { branch };
        };
        let weight = weight_of(estimate);
        KindFacts { branch, weight, node: at, pages, is_known }
    }

    /// All kinds right below a node that end with a name and not with a word for a kind, taken together: a kind that
    /// begins with another name is like them.
    fn names_below(&self, at: u16) -> Node {
        let names = self.all_below(at).filter(|below| !Tokens::is_kind(self.node(*below).token));
        let ends = names.filter_map(|name| self.all_below(name).find(|below| self.node(*below).token == END));
        ends.fold(Node::default(), |all, end| {
            let (pages, worth) =
                (all.pages.saturating_add(self.node(end).pages), all.worth.saturating_add(self.node(end).worth));
            Node { pages, worth, ..all }
        })
    }

    /// Whether any kind may have less than its whole weight.
    pub fn has_poor_pages(&self) -> bool {
        self.has_poor_pages
    }

    /// Bytes of memory.
    pub fn ram_bytes(&self) -> usize {
        size_of::<KindTree>() + self.nodes.capacity() * size_of::<Node>()
    }

    fn node(&self, at: u16) -> Node {
        self.nodes.get(usize::from(at)).copied().unwrap_or_default()
    }

    fn change(&mut self, at: u16, change: impl FnOnce(&mut Node)) {
        if let Some(node) = self.nodes.get_mut(usize::from(at)) {
            change(node);
        }
    }

    fn count(&mut self, at: u16, counts: bool, worth: u16) {
        if !counts {
            return;
        }
        self.change(at, |node| {
            if node.pages >= PAGES_MAX {
                (node.pages, node.worth) = (node.pages / 2, node.worth / 2);
            }
            (node.pages, node.worth) = (node.pages + 1, node.worth + worth.min(PAGE_WORTH));
        });
    }

    /// The nodes right below one.
    fn all_below(&self, at: u16) -> impl Iterator<Item = u16> {
        let first = Some(self.node(at).below).filter(|below| *below != 0);
        std::iter::successors(first, |at| Some(self.node(*at).next).filter(|next| *next != 0))
            .take(WIDE + KINDS + MARKS + 1)
    }

    fn below(&self, at: u16, token: u32) -> Option<u16> {
        let (is_kind, mut others) = (Tokens::is_kind(token), None);
        for below in self.all_below(at) {
            match self.node(below).token {
                there if there == token => return Some(below),
                ANY_KIND if is_kind && !Tokens::is_mark(token) => others = Some(below),
                ANY if !is_kind => others = Some(below),
                _ => {}
            }
        }
        others
    }

    /// Adds a node below another, or makes that a wide one; `None` if all nodes are in use.
    fn add(&mut self, at: u16, token: u32) -> Option<u16> {
        let is_kind = Tokens::is_kind(token);
        let count = self.all_below(at).filter(|below| Tokens::is_kind(self.node(*below).token) == is_kind).count();
        match is_kind {
            true if count < KINDS || Tokens::is_mark(token) => return self.add_node(at, token, [0, 0]),
            true => return self.add_node(at, ANY_KIND, [0, 0]),
            false if count < WIDE => return self.add_node(at, token, [0, 0]),
            false => {}
        }
        let (mut pages, mut worth) = (0u16, 0u16);
        let mut kinds = Vec::new();
        for place in self.all_below(at).collect::<Vec<u16>>() {
            let node = self.node(place);
            if Tokens::is_kind(node.token) {
                kinds.push(place);
                continue;
            }
            (pages, worth) = (pages.saturating_add(node.pages), worth.saturating_add(node.worth));
            self.give_back(place);
        }
        // As much as one node can have seen.
        while pages > PAGES_MAX {
            (pages, worth) = (pages / 2, worth / 2);
        }
        self.change(at, |node| node.below = 0);
        for place in kinds {
            let first = self.node(at).below;
            self.change(place, |node| node.next = first);
            self.change(at, |node| node.below = place);
        }
        self.add_node(at, ANY, [pages, worth])
    }

    fn add_node(&mut self, at: u16, token: u32, [pages, worth]: [u16; 2]) -> Option<u16> {
        let new = self.take(Node { token, pages, worth, next: self.node(at).below, ..Node::default() })?;
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

    /// Frees a node and all below it.
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

impl Default for KindTree {
    fn default() -> KindTree {
        KindTree::new()
    }
}

fn weight_of(estimate: u32) -> Weight {
    match estimate {
        WHOLE_FROM.. => Weight::Whole,
        QUARTER_FROM.. => Weight::Quarter,
        _ => Weight::Sixteenth,
    }
}

/// This many pages of its own prove what a kind is worth.
const PROOF_PAGES: u16 = 2;
/// What a page is worth if all of it is new.
pub const PAGE_WORTH: u16 = 16;
const ROOT: u16 = 0;
/// The token that stands for all followers where there are too many.
const ANY: u32 = 0;
/// The same for tokens that name a kind, beyond [`KINDS`].
const ANY_KIND: u32 = u32::MAX;
/// Nodes of a host: 24 KiB.
const NODES_MAX: u16 = 2_048;
/// Different tokens that may follow before they all count as one.
const WIDE: usize = 16;
/// Kinds kept apart below one node: a system has more kinds of pages than a path segment has words for them.
const KINDS: usize = 64;
/// Marks that may follow in addition ([`Tokens::is_mark`]): an end, a query.
const MARKS: usize = 2;
/// Pages that a node remembers; older pages count for less.
const PAGES_MAX: u16 = 64;
/// An estimate counts as this many pages.
const PRIOR_PAGES: u32 = 3;
/// The estimate for pages that are all new.
const WHOLE: u32 = 1_024;
/// From here on a kind has its whole weight: every second page of a version control system is worth it.
const WHOLE_FROM: u32 = 480;
/// From here on a kind has a quarter of the weight.
const QUARTER_FROM: u32 = 200;

#[cfg(test)]
mod tests {
    use super::*;

    fn note(tree: &mut KindTree, path: &str, is_worth: bool) {
        tree.note(&Tokens::of(path), if is_worth { PAGE_WORTH } else { 0 });
    }

    fn is_poor(tree: &KindTree, path: &str) -> bool {
        tree.facts(&Tokens::of(path)).weight != Weight::Whole
    }

    #[test]
    fn kinds_of_pages_are_told_apart_whatever_part_of_the_url_says_so() {
        let mut tree = KindTree::new();
        for number in 0..200 {
            note(&mut tree, &format!("/wiki/Title{}", letters(number)), true);
            note(&mut tree, &format!("/wiki/Special:Links/Title{}", letters(number)), false);
            note(&mut tree, &format!("/index.php?title=Title{}&action=history", letters(number)), false);
            note(&mut tree, &format!("/index.php?title=Title{}", letters(number)), true);
            note(
                &mut tree,
                &format!("/git/?p=a.git;a=blob;f=src/{};hb={number:08x}f", letters(number)),
                number % 2 == 0,
            );
            note(&mut tree, &format!("/git/?p=a.git;a=log;f=src/{};hb={number:08x}f", letters(number)), false);
            note(&mut tree, &format!("/calendar/{}/{}/", 1970 + number / 12, number % 12), number < 3);
        }
        assert!(tree.nodes.len() <= usize::from(NODES_MAX));
        for (path, expected) in [
            ("/wiki/Other", false),
            ("/wiki/Special:Links/Other", true),
            ("/index.php?action=history&title=Other", true),
            ("/index.php?title=Other", false),
            ("/git/?p=a.git;a=blob;f=x;hb=01234567f", false),
            ("/git/?p=a.git;a=log;f=x;hb=01234567f", true),
            ("/calendar/2030/1/", true),
            // A new kind begins with the worth of all kinds together.
            ("/new/kind/of/page", true),
            ("/", true),
        ] {
            assert_eq!(is_poor(&tree, path), expected, "{path}");
        }
    }

    #[test]
    fn what_was_poor_can_become_rich_again() {
        let mut tree = KindTree::new();
        (0..1_000).for_each(|number| note(&mut tree, &format!("/a/{number}"), false));
        assert!(is_poor(&tree, "/a/1"));
        let until_rich = (0..1_000).position(|number| {
            note(&mut tree, &format!("/a/{number}"), true);
            !is_poor(&tree, "/a/1")
        });
        assert!(until_rich.is_some_and(|pages| pages < 64), "{until_rich:?}");
    }

    /// Tokens without end, at every level.
    #[test]
    fn memory_is_bounded_and_nodes_are_used_again() {
        let mut tree = KindTree::new();
        for number in 0u32..50_000 {
            let path: String = (0..number % 13)
                .map(|level| format!("/{}", letters(number.wrapping_mul(2_654_435_761).rotate_left(level))))
                .collect();
            note(&mut tree, &path, number % 3 == 0);
        }
        assert!(tree.ram_bytes() <= size_of::<KindTree>() + 2 * usize::from(NODES_MAX) * size_of::<Node>());
        let in_use = |tree: &KindTree| {
            let (mut count, mut left) = (0, vec![ROOT]);
            while let Some(place) = left.pop() {
                count += 1;
                left.extend(tree.all_below(place));
            }
            count
        };
        let mut free = 0;
        let mut place = tree.free;
        while place != 0 {
            (free, place) = (free + 1, tree.node(place).next);
        }
        assert_eq!(in_use(&tree) + free, tree.nodes.len(), "none is lost, and none is in two places");
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
