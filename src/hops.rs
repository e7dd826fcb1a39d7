//! Hops: how far a URL is from a seed, in the 16 bits that travel with it.
//!
//! Decides: links are counted from the seed, redirects from the last link, because that is what each limit is about:
//! `scope.depth_max` ends a walk that goes ever deeper, `scope.redirects_max` one server that sends a crawler around. Hops
//! off-site are counted from the seeds' sites, as rules of the scope have them (`scope`).
//! Eight bits for links, two for hops off-site and five for redirects, so that batches, journals and queues hold no byte more
//! for it. The last one says that the URL is deferred: its page advised against it, so it waits behind all others
//! (`frontier::deferred`).
//! A limit below what can be counted lies below a count that has stopped, too.
//! Invariants: a number of links below 256 without a redirect, on a seed's site, is written as itself; all counts stop at their
//! highest. The target of a redirect is deferred where what redirects is; a link is not by itself.

/// Links followed from a seed, hops off-site, redirects followed since the last link, and whether it is deferred.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Hops(u16);

/// Most links that can be counted.
pub const LINKS_MAX: u16 = (1 << LINK_BITS) - 1;
/// Most hops off-site that can be counted.
pub const OFFSITE_MAX: u16 = (1 << OFFSITE_BITS) - 1;
/// Most redirects in a row that can be counted.
pub const REDIRECTS_MAX: u16 = (1 << REDIRECT_BITS) - 1;
const LINK_BITS: u32 = 8;
const OFFSITE_BITS: u32 = 2;
const REDIRECT_BITS: u32 = 5;
const REDIRECT_SHIFT: u32 = LINK_BITS + OFFSITE_BITS;
const DEFERRED: u16 = 1 << (REDIRECT_SHIFT + REDIRECT_BITS);

impl Hops {
    /// Stands in logs in place of the way to a link that left the scope. So many redirects are never followed
    /// (`scope.redirects_max`), so it is no way.
    pub const EXTERNAL: Hops = Hops(u16::MAX);

    /// From the bits that a batch holds.
    pub const fn from_bits(bits: u16) -> Hops {
        Hops(bits)
    }

    /// The bits that a batch holds.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Links from the seed.
    pub const fn links(self) -> u16 {
        self.0 & LINKS_MAX
    }

    /// Hops off-site since a seed's site.
    pub const fn offsite(self) -> u16 {
        (self.0 >> LINK_BITS) & OFFSITE_MAX
    }

    /// Redirects since the last link.
    pub const fn redirects(self) -> u16 {
        (self.0 >> REDIRECT_SHIFT) & REDIRECTS_MAX
    }

    /// Whether the URL waits behind all others.
    pub const fn is_deferred(self) -> bool {
        self.0 & DEFERRED != 0
    }

    /// The same way, of a URL that waits behind all others.
    pub const fn deferred(self) -> Hops {
        Hops(self.0 | DEFERRED)
    }

    /// The same way, with so many hops off-site.
    pub const fn with_offsite(self, hops: u16) -> Hops {
        let hops = if hops < OFFSITE_MAX { hops } else { OFFSITE_MAX };
        Hops(self.0 & !(OFFSITE_MAX << LINK_BITS) | hops << LINK_BITS)
    }

    /// One link further.
    pub const fn link(self) -> Hops {
        let links = if self.links() < LINKS_MAX { self.links() + 1 } else { LINKS_MAX };
        Hops(links).with_offsite(self.offsite())
    }

    /// One redirect further.
    pub const fn redirect(self) -> Hops {
        Hops(if self.redirects() < REDIRECTS_MAX { self.0 + (1 << REDIRECT_SHIFT) } else { self.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_stop_at_their_highest() {
        let mut hops = Hops::default();
        for count in 1..=2_000 {
            hops = hops.link();
            assert_eq!((hops.links(), hops.redirects(), hops.offsite()), (count.min(LINKS_MAX), 0, 0));
            assert_eq!(hops.bits(), count.min(LINKS_MAX));
        }
        for count in 0..=100 {
            let off = hops.with_offsite(count);
            assert_eq!((off.links(), off.redirects(), off.offsite()), (LINKS_MAX, 0, count.min(OFFSITE_MAX)));
            assert_eq!((off.link(), off.with_offsite(0)), (off, hops));
        }
        for count in 1..=100 {
            hops = hops.redirect();
            assert_eq!((hops.links(), hops.redirects(), hops.offsite()), (LINKS_MAX, count.min(REDIRECTS_MAX), 0));
        }
        assert_eq!(Hops::from_bits(hops.bits()), hops);
        assert_eq!(Hops::from_bits(7).redirect().link(), Hops::from_bits(8));
        let deferred = hops.with_offsite(2).deferred();
        assert!(deferred.is_deferred() && deferred.redirect().is_deferred() && !deferred.link().is_deferred());
        assert_eq!((deferred.links(), deferred.redirects(), deferred.offsite()), (LINKS_MAX, REDIRECTS_MAX, 2));
        assert_eq!(deferred.redirect().link().offsite(), 2);
        assert!(!hops.is_deferred() && !hops.redirect().is_deferred());
    }
}
