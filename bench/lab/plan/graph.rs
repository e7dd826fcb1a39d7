//! Pages and the links between them.
//!
//! Decides: the links of a page lie one behind another, sorted (compressed sparse rows). A page may link to another many times, and a
//! crawler sends that URL once: it counts once. A link to the page itself goes nowhere and is left out.
//! Invariants: every target is a page; the targets of a page rise.
//! Leaves to others: how a graph comes about (`builder`).

use std::borrow::Cow;

/// Pages, their sites, and the links between them. Pages and sites have numbers from 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PageGraph {
    pub(super) pages: Texts,
    pub(super) has_url: Vec<bool>,
    /// Bytes of each page's body; `None` where they are not known of any.
    pub(super) bytes: Option<Vec<u64>>,
    pub(super) site_of: Vec<u32>,
    pub(super) sites: Texts,
    /// Where each page's links begin, and where the last one's end.
    pub(super) starts: Vec<usize>,
    pub(super) targets: Vec<u32>,
    /// Bytes that an unknown URL counts.
    pub(super) url_bytes: u64,
    pub(super) counts: Counts,
}

/// What did not become a link of the graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Links of a page to itself.
    pub self_links: u64,
    /// Links of a page to another that it links to already.
    pub repeated: u64,
    /// Links to what is no page of the graph.
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

    /// Whether it is known how long pages are.
    pub fn has_bytes(&self) -> bool {
        self.bytes.is_some()
    }

    /// What did not become a link.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The URL of a page, or its number in the file that it came from.
    pub fn name(&self, page: u32) -> &str {
        self.pages.get(page)
    }

    /// The URL of a page; one without gets one in which its site's number is the host, as in `http://s12.test/p345`.
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

    /// The name of a site, or the host in the made-up URLs of its pages where it is known by its number alone.
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

    /// What a link to a page sends: bytes of its URL.
    pub fn url_bytes(&self, page: u32) -> u64 {
        match self.has_url.get(page as usize) {
            Some(true) => self.pages.get(page).len() as u64,
            _ => self.url_bytes,
        }
    }

    /// What a page weighs: bytes, or 1 where no page's are known; and 1.
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

/// Texts one behind another.
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

    /// Empty where there is none.
    pub(super) fn get(&self, index: u32) -> &str {
        let index = index as usize;
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or_default();
        let end = self.ends.get(index).copied().unwrap_or(start);
        self.text.get(start..end).unwrap_or_default()
    }
}
