//! Finds which of many rules may match a URL; only these are compared with it.
//!
//! Decides: each rule is indexed under one of its conditions, the one that the fewest URLs meet: a name that the host
//! is or is below, a text in the URL (from a path's pattern or a regex), or the extension. If many rules share a
//! name, the text separates them. Rules without such a condition are compared with every URL.
//! Why so: a thousand rules are mostly about hosts and paths, and a URL has one of each; trying all takes 30 times as
//! long.
//! Invariants: a rule that matches is found, whatever its key; the first in order of the file counts. However often a
//! text appears in a URL, its rules are compared with it once.
//! Limits: a verdict costs at most the [`Fuel`] that it is given; texts of more than [`DFA_BYTES_MAX`] bytes together
//! are searched with a smaller, slower automaton.

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, AhoCorasickKind, MatchKind};
use xxhash_rust::xxh3::xxh3_64;

use super::condition::Handle;
use super::rule::Rule;
use super::subject::{EXTENSION_BYTES_MAX, Subject};
use ringcrawl_base::IntMap;
use ringcrawl_base::fuel::{Fuel, OutOfFuel, RULE_COST};
use ringcrawl_url::names;

/// The rules of one stage, by their keys. Rules are numbers, in order.
#[derive(Clone, Debug, Default)]
pub struct Index {
    /// By the hash of a name. The rule itself rejects a wrong name with the same hash.
    names: IntMap<Vec<u32>>,
    /// By the hash of an extension in lower case.
    extensions: IntMap<Vec<u32>>,
    literals: Option<Literals>,
    /// Rules without a key.
    others: Vec<u32>,
}

#[derive(Clone, Debug)]
struct Literals {
    automaton: AhoCorasick,
    /// The rules of each text.
    rules: Vec<Vec<u32>>,
    /// The first rule of all.
    first: u32,
}

/// Texts up to this total are searched with a deterministic automaton, of some 250 bytes each.
const DFA_BYTES_MAX: usize = 32 << 10;
/// A name shared by more rules does not separate them.
const NAME_RULES_MAX: usize = 8;

impl Index {
    /// Builds an index of those `rules` for which `is_for` is true.
    pub fn new(rules: &[Rule], is_for: impl Fn(&Rule) -> bool) -> Result<Index, String> {
        let numbered = || (0..).zip(rules).filter(|(_, rule)| is_for(rule));
        let mut named: IntMap<usize> = IntMap::default();
        for (_, rule) in numbered() {
            for_each_name(best(rule, |_| true), |hash| *named.entry(hash).or_default() += 1);
        }
        let is_crowded = |handle: &Handle<'_>| {
            let mut is_crowded = false;
            for_each_name(Some(*handle), |hash| {
                is_crowded |= named.get(&hash).is_some_and(|rules| *rules > NAME_RULES_MAX)
            });
            is_crowded
        };
        let mut index = Index::default();
        let mut texts: Vec<(&[u8], Vec<u32>)> = Vec::new();
        for (number, rule) in numbered() {
            let handle = best(rule, |handle| !is_crowded(handle)).or_else(|| best(rule, |_| true));
            match handle {
                None => index.others.push(number),
                Some(Handle::Literal(text)) => texts.push((text, vec![number])),
                Some(Handle::Extensions(extensions)) => {
                    for extension in extensions {
                        add(&mut index.extensions, xxh3_64(extension.as_bytes()), number);
                    }
                }
                handle => for_each_name(handle, |hash| add(&mut index.names, hash, number)),
            }
        }
        texts.sort();
        texts.dedup_by(|text, before| {
            let is_again = text.0 == before.0;
            if is_again {
                before.1.append(&mut text.1);
            }
            is_again
        });
        if !texts.is_empty() {
            let bytes: usize = texts.iter().map(|(text, _)| text.len()).sum();
            let kind = if bytes <= DFA_BYTES_MAX { AhoCorasickKind::DFA } else { AhoCorasickKind::ContiguousNFA };
            let automaton = AhoCorasickBuilder::new()
                .match_kind(MatchKind::Standard)
                .kind(Some(kind))
                .build(texts.iter().map(|(text, _)| *text))
                .map_err(|error| format!("the rules' paths and regexes are too long together: {error}"))?;
            let rules: Vec<Vec<u32>> = texts.into_iter().map(|(_, rules)| rules).collect();
            let first = rules.iter().flatten().copied().min().unwrap_or_default();
            index.literals = Some(Literals { automaton, rules, first });
        }
        Ok(index)
    }

    /// Whether it has no rule.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && self.extensions.is_empty() && self.literals.is_none() && self.others.is_empty()
    }

    /// The first of `rules` that matches; an error if the `work` left does not suffice.
    pub fn first<'r>(
        &self,
        rules: &'r [Rule],
        subject: &Subject<'_>,
        fuel: &mut Fuel,
    ) -> Result<Option<&'r Rule>, OutOfFuel> {
        let mut search = Search { rules, subject, first: u32::MAX, fuel };
        search.look(&self.others);
        if !self.names.is_empty() {
            for name in names::above(subject.host()) {
                if let Some(numbers) = self.names.get(&xxh3_64(name.as_bytes())) {
                    search.look(numbers);
                }
            }
        }
        if !self.extensions.is_empty()
            && let Some(extension) = subject.extension()
        {
            let mut lower = [0; EXTENSION_BYTES_MAX];
            let lower = lower.get_mut(..extension.len()).unwrap_or_default();
            lower.copy_from_slice(extension.as_bytes());
            lower.make_ascii_lowercase();
            if let Some(numbers) = self.extensions.get(&xxh3_64(lower)) {
                search.look(numbers);
            }
        }
        if let Some(literals) = &self.literals
            && literals.first < search.first
        {
            let mut tried = Tried::default();
            // Paths and queries are compared in one spelling, regexes with the unchanged URL.
            let texts = std::iter::once(subject.url.as_str()).chain(subject.respelled());
            for found in texts.flat_map(|text| literals.automaton.find_overlapping_iter(text)) {
                if !search.fuel.spend(RULE_COST) {
                    break;
                }
                let text = found.pattern().as_usize();
                if tried.is_new(text, literals.rules.len())
                    && let Some(numbers) = literals.rules.get(text)
                {
                    search.look(numbers);
                }
            }
        }
        if search.fuel.is_spent() { Err(OutOfFuel) } else { Ok(rules.get(search.first as usize)) }
    }
}

/// A search for a verdict.
struct Search<'a, 'r> {
    rules: &'r [Rule],
    subject: &'a Subject<'a>,
    /// The first match so far.
    first: u32,
    fuel: &'a mut Fuel,
}

impl Search<'_, '_> {
    /// Compares those of `numbers` that come before the match so far.
    fn look(&mut self, numbers: &[u32]) {
        for number in numbers {
            // Rules after a match do not count.
            if *number >= self.first {
                break;
            }
            if self.rules.get(*number as usize).is_some_and(|rule| rule.matches(self.subject, self.fuel)) {
                self.first = *number;
            }
        }
    }
}

/// Texts that were found in a URL. They are few, so this is a list; for a made-up URL with many texts it is a bit
/// set.
#[derive(Default)]
struct Tried {
    few: [usize; FEW_TEXTS],
    len: usize,
    many: Vec<u64>,
}

/// A URL has more texts than this only if it is made of them.
const FEW_TEXTS: usize = 8;

impl Tried {
    /// Whether `text`, one of `texts`, is found for the first time.
    fn is_new(&mut self, text: usize, texts: usize) -> bool {
        let few = self.few.get(..self.len).unwrap_or_default();
        if few.contains(&text) {
            return false;
        }
        if let Some(slot) = self.few.get_mut(self.len) {
            *slot = text;
            self.len += 1;
            return true;
        }
        if self.many.is_empty() {
            self.many = vec![0; texts.div_ceil(u64::BITS as usize)];
        }
        let Some(word) = self.many.get_mut(text / u64::BITS as usize) else { return false };
        let bit = 1 << (text % u64::BITS as usize);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
}

/// The best key for `rule`, among those that `is_right` admits.
fn best<'r>(rule: &'r Rule, is_right: impl Fn(&Handle<'r>) -> bool) -> Option<Handle<'r>> {
    let handles = rule.conditions().iter().filter_map(|condition| condition.handle());
    handles.filter(|(_, handle)| is_right(handle)).min_by_key(|(rank, _)| *rank).map(|(_, handle)| handle)
}

/// Gives the hash of each name of a handle to `take`.
fn for_each_name(handle: Option<Handle<'_>>, mut take: impl FnMut(u64)) {
    match handle {
        Some(Handle::Names(names)) => names.iter().for_each(|name| take(xxh3_64(name.as_bytes()))),
        Some(Handle::Name(name)) => take(xxh3_64(name.as_bytes())),
        _ => {}
    }
}

fn add(rules: &mut IntMap<Vec<u32>>, hash: u64, number: u32) {
    let numbers = rules.entry(hash).or_default();
    // A name may appear twice in a rule.
    if numbers.last() != Some(&number) {
        numbers.push(number);
    }
}
