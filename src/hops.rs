//! Hops: how far a URL is from a seed, in the 16 bits that travel with it.
//!
//! Decides: links are counted from the seed, redirects from the last link, because that is what each limit is about:
//! `scope.depth_max` ends a walk that goes ever deeper, `scope.redirects_max` one server that sends a crawler around.
//! Ten bits for links and five for redirects, so that batches, journals and queues hold no byte more for it. The last one says
//! that the URL is deferred: its page advised against it, so it waits behind all others (`frontier::deferred`).
//! Both limits lie below what can be counted, so a count that has stopped is always beyond them.
//! Invariants: a number of links below 1,024 without a redirect is written as itself; both counts stop at their highest. The
//! target of a redirect is deferred where what redirects is; a link is not by itself.

/// Links followed from a seed, redirects followed since, and whether it is deferred.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Hops(u16);

/// Most links that can be counted.
pub const LINKS_MAX: u16 = (1 << LINK_BITS) - 1;
/// Most redirects in a row that can be counted.
pub const REDIRECTS_MAX: u16 = (1 << REDIRECT_BITS) - 1;
const LINK_BITS: u32 = 10;
const REDIRECT_BITS: u32 = 5;
const DEFERRED: u16 = 1 << (LINK_BITS + REDIRECT_BITS);

impl Hops {
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

    /// Redirects since the last link.
    pub const fn redirects(self) -> u16 {
        (self.0 >> LINK_BITS) & REDIRECTS_MAX
    }

    /// Whether the URL waits behind all others.
    pub const fn is_deferred(self) -> bool {
        self.0 & DEFERRED != 0
    }

    /// The same way, of a URL that waits behind all others.
    pub const fn deferred(self) -> Hops {
        Hops(self.0 | DEFERRED)
    }

    /// One link further.
    pub const fn link(self) -> Hops {
        Hops(if self.links() < LINKS_MAX { self.links() + 1 } else { LINKS_MAX })
    }

    /// One redirect further.
    pub const fn redirect(self) -> Hops {
        Hops(if self.redirects() < REDIRECTS_MAX { self.0 + (1 << LINK_BITS) } else { self.0 })
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
            assert_eq!((hops.links(), hops.redirects()), (count.min(LINKS_MAX), 0));
            assert_eq!(hops.bits(), count.min(LINKS_MAX));
        }
        for count in 1..=100 {
            hops = hops.redirect();
            assert_eq!((hops.links(), hops.redirects()), (LINKS_MAX, count.min(REDIRECTS_MAX)));
        }
        assert_eq!(Hops::from_bits(hops.bits()), hops);
        assert_eq!(Hops::from_bits(7).redirect().link(), Hops::from_bits(8));
        let deferred = hops.deferred();
        assert!(deferred.is_deferred() && deferred.redirect().is_deferred() && !deferred.link().is_deferred());
        assert_eq!((deferred.links(), deferred.redirects()), (LINKS_MAX, REDIRECTS_MAX));
        assert!(!hops.is_deferred() && !hops.redirect().is_deferred());
    }
}
