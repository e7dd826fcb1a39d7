//! How much may be taken from one page.
//!
//! Decides: a page names a few bytes and makes many of them: a long `<base>` is written once and read before every
//! reference, and an internationalized host costs far more than its bytes. So links are counted in number, in bytes as
//! they are resolved, and in bytes of such hosts; a reference that has no room is neither resolved nor checked.
//! Invariants: what is taken is within its limit, but for the last link.

use crate::config::{self, Sitemaps};
use crate::url::idna_bytes;

/// What may still be taken from a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    links: usize,
    bytes: usize,
    idna_bytes: usize,
    /// Links and bytes of a sitemap.
    of_sitemap: (usize, usize),
}

impl Budget {
    /// What `config` lets a page have.
    pub fn of_page(config: &config::Links) -> Budget {
        let bytes = |max: usize| max.saturating_mul(RESOLVED_TIMES);
        let of_page = (config.page_links_max, bytes(config.page_link_bytes_max));
        let of_sitemap = match config.sitemaps {
            // Of sitemaps that nobody asked for no more is wanted than of pages.
            Sitemaps::Off => of_page,
            Sitemaps::Robots => (config.sitemap_links_max, bytes(config.sitemap_link_bytes_max)),
        };
        Budget { links: of_page.0, bytes: of_page.1, idna_bytes: IDNA_BYTES_MAX, of_sitemap }
    }

    /// So many links, however long.
    pub const fn of_links(links_max: usize) -> Budget {
        Budget { links: links_max, bytes: usize::MAX, idna_bytes: usize::MAX, of_sitemap: (links_max, usize::MAX) }
    }

    /// The page, of which nothing was taken so far, is a sitemap.
    pub fn widen(&mut self) {
        (self.links, self.bytes) = self.of_sitemap;
    }

    /// Nothing more is taken.
    pub fn close(&mut self) {
        self.links = 0;
    }

    /// Whether `reference` may be resolved.
    #[inline]
    pub fn admits(&mut self, reference: &str) -> bool {
        if self.links == 0 || self.bytes == 0 {
            return false;
        }
        let idna = idna_bytes(reference);
        let has_room = idna <= self.idna_bytes;
        self.idna_bytes -= if has_room { idna } else { 0 };
        has_room
    }

    /// A reference was resolved to a URL of so many bytes.
    pub fn took(&mut self, url_bytes: usize) {
        self.links = self.links.saturating_sub(1);
        self.took_again(url_bytes);
    }

    /// A reference was resolved to a URL of so many bytes that had been taken before.
    pub fn took_again(&mut self, url_bytes: usize) {
        self.bytes = self.bytes.saturating_sub(url_bytes);
    }
}

/// How much more than may go on is resolved: before it is looked at, nobody knows which URLs are the same.
const RESOLVED_TIMES: usize = 4;
/// Bytes of internationalized hosts ([`idna_bytes`]), at 30 ns each: eight milliseconds. A page in which ten thousand links
/// name such a host in full is at this limit.
pub(super) const IDNA_BYTES_MAX: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_holds() {
        let mut budget = Budget { links: 2, bytes: 10, idna_bytes: 40, of_sitemap: (3, 20) };
        assert!(budget.admits("//ü/") && !budget.admits("//ü.üüüüüü/") && budget.admits("//ü/"));
        assert!(!budget.admits("//ü/") && budget.admits("x"), "only names of that kind are too many");
        budget.took(9);
        assert!(budget.admits("x"));
        budget.took(9);
        assert!(!budget.admits("x"));
        let mut budget = Budget { links: 9, bytes: 10, idna_bytes: 0, of_sitemap: (1, 20) };
        budget.took_again(10);
        assert!(!budget.admits("x"));
        budget.widen();
        budget.took_again(10);
        assert!(budget.admits("x"));
        budget.took(9);
        assert!(!budget.admits("x"));
    }
}
