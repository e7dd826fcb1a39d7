//! Limits on what is taken from one page.
//!
//! Decides: a page can turn a few bytes into many: a long `<base>` is written once and prepended to every reference,
//! and an internationalized host costs far more than its bytes. So links are counted in number, each URL once, in
//! resolved bytes, and in bytes of such hosts. A reference without room in bytes is neither resolved nor checked.
//! Invariants: what is taken stays within its limit, except for the last link.

use ringcrawl_url::idna_bytes;

/// What may still be taken from a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    links: usize,
    bytes: usize,
    idna_bytes: usize,
    /// Links and bytes of a sitemap.
    of_sitemap: (usize, usize),
    /// Names of the limits on links and bytes, now and for a sitemap.
    names: (LimitNames, LimitNames),
    /// The limit that the first dropped reference exceeded.
    exceeded: Option<&'static str>,
}

/// The names of two limits, on links and on bytes.
type LimitNames = (&'static str, &'static str);

/// Limits on what is taken from a document.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Links, each URL counted once.
    pub links: usize,
    /// Bytes of their URLs.
    pub bytes: usize,
    /// What [`Budget::exceeded`] calls the two limits.
    pub names: (&'static str, &'static str),
}

impl Budget {
    /// The limits of a page, and those it gets if it turns out to be a sitemap.
    pub fn new(page: Limits, sitemap: Limits) -> Budget {
        let bytes = |limits: Limits| limits.bytes.saturating_mul(RESOLVED_TIMES);
        let of_sitemap = (sitemap.links, bytes(sitemap));
        let names = (page.names, sitemap.names);
        Budget { links: page.links, bytes: bytes(page), idna_bytes: IDNA_BYTES_MAX, of_sitemap, names, exceeded: None }
    }

    /// At most `links_max` links, however long.
    pub const fn of_links(links_max: usize) -> Budget {
        let (bytes, of_sitemap) = (usize::MAX, (links_max, usize::MAX));
        let names = (("links", "bytes"), ("links", "bytes"));
        Budget { links: links_max, bytes, idna_bytes: usize::MAX, of_sitemap, names, exceeded: None }
    }

    /// The page is a sitemap; nothing has been taken from it yet.
    pub fn widen(&mut self) {
        (self.links, self.bytes) = self.of_sitemap;
        self.names.0 = self.names.1;
    }

    /// Takes nothing more, because of `limit`.
    pub fn close(&mut self, limit: &'static str) {
        (self.links, self.bytes, self.names.0) = (0, 0, (limit, limit));
    }

    /// Whether there is room for a new URL, by the number of links.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.links > 0
    }

    /// The limit that the first dropped reference exceeded.
    pub fn exceeded(&self) -> Option<&'static str> {
        self.exceeded
    }

    /// Whether `reference` may be resolved.
    #[inline]
    pub fn admits(&mut self, reference: &str) -> bool {
        if self.bytes == 0 {
            self.exceeded.get_or_insert(self.names.0.1);
            return false;
        }
        let idna = idna_bytes(reference);
        let has_room = idna <= self.idna_bytes;
        if has_room {
            self.idna_bytes -= idna;
        } else {
            self.exceeded.get_or_insert("256 KiB of internationalized hosts");
        }
        has_room
    }

    /// A reference was resolved to a URL of `url_bytes` bytes, which is new or was taken before. Returns false for a
    /// new one without room.
    #[inline]
    pub fn took(&mut self, url_bytes: usize, is_new: bool) -> bool {
        self.bytes = self.bytes.saturating_sub(url_bytes);
        if !is_new {
            return true;
        }
        if self.links == 0 {
            self.exceeded.get_or_insert(self.names.0.0);
            return false;
        }
        self.links -= 1;
        true
    }
}

/// How many times more references are resolved than taken: before a reference is resolved, we do not know which URLs
/// are equal.
const RESOLVED_TIMES: usize = 4;
/// Bytes of internationalized hosts ([`idna_bytes`]), at 30 ns each: eight milliseconds. A page in which ten thousand
/// links name such a host in full reaches this limit.
pub(super) const IDNA_BYTES_MAX: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_holds() {
        let of = |(links, bytes), idna_bytes, of_sitemap| {
            let budget = Budget::of_links(links);
            let names = (("page links", "page bytes"), ("sitemap links", "sitemap bytes"));
            Budget { bytes, idna_bytes, of_sitemap, names, ..budget }
        };
        let mut budget = of((2, 10), 40, (3, 20));
        assert!(budget.admits("//ü/") && !budget.admits("//ü.üüüüüü/") && budget.admits("//ü/"));
        assert!(!budget.admits("//ü/") && budget.admits("x"), "only names of that kind are too many");
        assert_eq!(budget.exceeded(), Some("256 KiB of internationalized hosts"));
        assert!(budget.took(9, true) && budget.admits("x") && budget.took(9, true) && !budget.admits("x"));
        let mut budget = of((9, 10), 0, (1, 20));
        assert!(budget.took(10, false) && !budget.admits("x"));
        assert_eq!(budget.exceeded(), Some("page bytes"));
        budget.widen();
        assert!(budget.took(10, false) && budget.admits("x") && budget.took(9, true) && budget.admits("x"));
        assert!(!budget.has_room() && budget.took(0, false), "a URL that was taken needs no room");
        let mut budget = of((0, 10), 0, (1, 20));
        assert!(!budget.took(1, true));
        assert_eq!(budget.exceeded(), Some("page links"));
        let mut budget = of((0, 10), 0, (1, 20));
        budget.widen();
        assert!(budget.took(1, true) && !budget.took(1, true));
        assert_eq!(budget.exceeded(), Some("sitemap links"));
    }
}
