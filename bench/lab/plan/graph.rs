//! Pages and the links between them.
//!
//! Decides: the links of all pages are in one list, page after page, sorted (compressed sparse rows). A page may link
//! to another many times, and a crawler sends that URL once: it counts once. A link of a page to itself goes nowhere
//! and is left out.
//! Invariants: every target is a page; the targets of a page are in ascending order.
//! Leaves to others: how a graph is built (`builder`).

use std::borrow::Cow;

/// Pages, their sites, and the links between them. Pages and sites have numbers from 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PageGraph {
    pub(super) pages: Texts,
    pub(super) has_url: Vec<bool>,
    /// Bytes of each page's body; `None` if they are not known for any page.
    pub(super) bytes: Option<Vec<u64>>,
    pub(super) site_of: Vec<u32>,
    pub(super) sites: Texts,
    /// The start of each page's links, and the end of the last page's.
    pub(super) starts: Vec<usize>,
    pub(super) targets: Vec<u32>,
    /// Assumed length of an unknown URL in bytes.
    pub(super) url_bytes: u64,
    pub(super) counts: Counts,
}

/// Links that are not in the graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Links of a page to itself.
    pub self_links: u64,
    /// Repeated links of a page to the same target.
    pub repeated: u64,
    /// Links to URLs that are not pages of the graph.
    pub outside: u64,
}

impl PageGraph {
    /// Number of pages.
    pub fn pages(&self) -> usize {
        self.pages.len()
    }

    /// Number of sites.
    pub fn sites(&self) -> usize {
        self.sites.len()
    }

    /// Number of links.
    pub fn links(&self) -> usize {
        self.targets.len()
    }

    /// Pages whose URL is not known.
    pub fn nameless(&self) -> usize {
        self.has_url.iter().filter(|has_url| !**has_url).count()
    }

    /// Whether the lengths of pages are known.
    pub fn has_bytes(&self) -> bool {
        self.bytes.is_some()
    }

    /// The links that are not in the graph.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The URL of a page, or its number in the file that it came from.
    pub fn name(&self, page: u32) -> &str {
        self.pages.get(page)
    }

    /// The URL of a page; a page without one gets one with its site's number as the host, as in
    /// `http://s12.test/p345`.
    pub fn url(&self, page: u32) -> Cow<'_, str> {
        match self.has_url.get(page as usize) {
            Some(true) => self.pages.get(page).into(),
            _ => format!("http://s{}.test/p{page}", self.site_of(page)).into(),
        }
    }

    /// The name of a site.
    pub fn site_name(&self, site: u32) -> &str {
        self.sites.get(site)
    }

    /// The name of a site, or the host in the made-up URLs of its pages if only its number is known.
    pub fn site_host(&self, site: u32) -> Cow<'_, str> {
        let name = self.site_name(site);
        match name.is_empty() || name.bytes().all(|byte| byte.is_ascii_digit()) {
            true => format!("s{site}.test").into(),
            false => name.into(),
        }
    }

    /// The site of a page.
    pub fn site_of(&self, page: u32) -> u32 {
        self.site_of.get(page as usize).copied().unwrap_or_default()
    }

    /// The pages that a page links to.
    pub fn targets_of(&self, page: u32) -> &[u32] {
        let start = self.starts.get(page as usize).copied().unwrap_or_default();
        let end = self.starts.get(page as usize + 1).copied().unwrap_or_default();
        self.targets.get(start..end).unwrap_or_default()
    }

    /// The bytes that a link to a page sends: its URL.
    pub fn url_bytes(&self, page: u32) -> u64 {
        match self.has_url.get(page as usize) {
            Some(true) => self.pages.get(page).len() as u64,
            _ => self.url_bytes,
        }
    }

    /// The weights of a page: bytes, or 1 if no page's are known; and 1.
    pub fn weights(&self, page: u32) -> [u64; 2] {
        let storage = match &self.bytes {
            Some(bytes) => bytes.get(page as usize).copied().unwrap_or_default(),
            None => 1,
        };
        [storage, 1]
    }

    /// Bytes that all links send together: the volume if every page had a shard of its own.
    pub fn link_bytes(&self) -> u64 {
        self.targets.iter().map(|target| self.url_bytes(*target)).sum()
    }

    /// All pages.
    pub fn all(&self) -> impl Iterator<Item = u32> + use<> {
        // No graph has more (`PAGES_MAX`).
        0..u32::try_from(self.pages()).unwrap_or(u32::MAX)
    }
}

/// Texts, concatenated.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Texts {
    text: String,
    ends: Vec<usize>,
}

impl Texts {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.ends.push(self.text.len());
    }

    /// Empty if there is none.
    pub(super) fn get(&self, index: u32) -> &str {
        let index = index as usize;
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or_default();
        let end = self.ends.get(index).copied().unwrap_or(start);
        self.text.get(start..end).unwrap_or_default()
    }
}
