//! Hops: how far a URL is from a seed, in the 16 bits that travel with it.
//!
//! Decides: links are counted from the seed, redirects from the last link, because that is what each limit is about:
//! `scope.depth_max` ends a walk that goes ever deeper, `scope.redirects_max` one server that sends a crawler around. Hops
//! off-site are counted from the seeds' sites, as rules of the scope have them (`scope`).
//! Eight bits for links, two for hops off-site and five for redirects, so that batches, journals and queues hold no byte more
//! for it. The last one says that the URL is deferred: its page advised against it, so its weight begins lower
//! (`kinds`), or it is another shard's where shards cross over.
//! What a page embeds, such as an image, is told by the five bits for redirects, of which there are more than
//! anybody follows: up to
//! [`REDIRECTS_MAX`] they are the redirects to a link, above that those to an embed, and the highest number stands for too many.
//! No further bit is free, and a bit of these five would leave 14 redirects, where browsers follow 20.
//! That a robots.txt, an index or a page names the URL as a sitemap travels with it, as the server's own word for
//! it may be anything. Such a way
//! is written under the highest number, too: the bits for links are four for its depth and four for its indexes and redirects.
//! What is deeper than [`SITEMAP_LINKS_MAX`] links, or further, is a way like others.
//! An embed is as deep as its page, which cannot be had whole without it, so `scope.depth_max` does not cut it off.
//! A limit below what can be counted lies below a count that has stopped, too.
//! Invariants: a number of links below 256 without a redirect, on a seed's site, is written as itself; all counts stop at their
//! highest. The target of a redirect is deferred, and is an embed, where what redirects is; a link is neither by itself.

/// Links followed from a seed, hops off-site, redirects followed since the last link, whether a page embeds it, and whether it is
/// deferred.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Hops(u16);

/// Most links that can be counted.
pub const LINKS_MAX: u16 = (1 << LINK_BITS) - 1;
/// Most hops off-site that can be counted.
pub const OFFSITE_MAX: u16 = (1 << OFFSITE_BITS) - 1;
/// Most redirects in a row to a link that can be counted; what has more has [`TOO_MANY`].
pub const REDIRECTS_MAX: u16 = 20;
/// The same to what a page embeds.
pub const EMBED_REDIRECTS_MAX: u16 = TOO_MANY - 1 - EMBED;
/// More redirects than anybody follows.
pub const TOO_MANY: u16 = (1 << REDIRECT_BITS) - 1;
const LINK_BITS: u32 = 8;
const OFFSITE_BITS: u32 = 2;
const REDIRECT_BITS: u32 = 5;
const REDIRECT_SHIFT: u32 = LINK_BITS + OFFSITE_BITS;
/// What stands in the bits for redirects of an embed without one.
const EMBED: u16 = REDIRECTS_MAX + 1;
/// What stands there of one with as many as are followed.
const LAST_EMBED: u16 = TOO_MANY - 1;
const DEFERRED: u16 = 1 << (REDIRECT_SHIFT + REDIRECT_BITS);
/// Most links to what is known as a sitemap.
pub const SITEMAP_LINKS_MAX: u16 = (1 << SITEMAP_SHIFT) - 1;
/// Most indexes and redirects in a row to it.
pub const SITEMAP_REDIRECTS_MAX: u16 = NO_SITEMAP - 1;
const SITEMAP_SHIFT: u32 = 4;
/// What stands there of a way with too many redirects.
const NO_SITEMAP: u16 = (1 << (LINK_BITS - SITEMAP_SHIFT)) - 1;

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

    /// Links from the seed; of a way with too many redirects [`SITEMAP_LINKS_MAX`] at most.
    pub const fn links(self) -> u16 {
        let links = self.0 & LINKS_MAX;
        if self.steps() == TOO_MANY { links & SITEMAP_LINKS_MAX } else { links }
    }

    /// Hops off-site since a seed's site.
    pub const fn offsite(self) -> u16 {
        (self.0 >> LINK_BITS) & OFFSITE_MAX
    }

    /// Redirects since the last link, or since the page that embeds it. An index is one to its sitemaps.
    pub const fn redirects(self) -> u16 {
        let steps = self.steps();
        match self.is_embed() {
            true => steps - EMBED,
            false if self.is_sitemap() => self.of_sitemap(),
            false => steps,
        }
    }

    /// Whether it is known as a sitemap, whatever its server says.
    pub const fn is_sitemap(self) -> bool {
        self.steps() == TOO_MANY && self.of_sitemap() < NO_SITEMAP
    }

    /// The same way, to what is named there as a sitemap. What is embedded is none.
    pub const fn sitemap(self) -> Hops {
        let (links, redirects) = (self.links(), self.redirects());
        if self.is_embed() || links > SITEMAP_LINKS_MAX || redirects > SITEMAP_REDIRECTS_MAX {
            return self;
        }
        self.with(TOO_MANY, links | redirects << SITEMAP_SHIFT)
    }

    /// Whether a page embeds it, or what redirected to it.
    pub const fn is_embed(self) -> bool {
        EMBED <= self.steps() && self.steps() < TOO_MANY
    }

    /// Whether it is a seed, or what one redirects to.
    pub const fn is_seed(self) -> bool {
        self.links() == 0 && !self.is_embed()
    }

    /// Whether the URL is deferred.
    pub const fn is_deferred(self) -> bool {
        self.0 & DEFERRED != 0
    }

    /// The same way, of a URL that is deferred.
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

    /// What the page there embeds.
    pub const fn embed(self) -> Hops {
        Hops(self.links() | EMBED << REDIRECT_SHIFT).with_offsite(self.offsite())
    }

    /// One redirect further.
    pub const fn redirect(self) -> Hops {
        match self.steps() {
            TOO_MANY if self.is_sitemap() => self.with(self.redirects() + 1, self.links()).sitemap(),
            TOO_MANY => self,
            // Nothing is between too many to a link and too many to an embed.
            REDIRECTS_MAX | LAST_EMBED => {
                let links = if self.links() < SITEMAP_LINKS_MAX { self.links() } else { SITEMAP_LINKS_MAX };
                self.with(TOO_MANY, links | NO_SITEMAP << SITEMAP_SHIFT)
            }
            steps => self.with(steps + 1, self.links()),
        }
    }

    /// The same hops off-site, deferred as it is, with these bits for redirects and for links.
    const fn with(self, steps: u16, links: u16) -> Hops {
        Hops(self.0 & (DEFERRED | OFFSITE_MAX << LINK_BITS) | steps << REDIRECT_SHIFT | links)
    }

    /// The bits for redirects.
    const fn steps(self) -> u16 {
        (self.0 >> REDIRECT_SHIFT) & TOO_MANY
    }

    /// The bits for indexes and redirects of a sitemap.
    const fn of_sitemap(self) -> u16 {
        (self.0 & LINKS_MAX) >> SITEMAP_SHIFT
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_url::VIA;

    #[test]
    fn what_tells_of_a_page_is_no_way() {
        assert!(Hops::from_bits(VIA).redirects() > REDIRECTS_MAX && VIA != Hops::EXTERNAL.bits());
    }

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
            let (links, redirects) =
                if count <= REDIRECTS_MAX { (LINKS_MAX, count) } else { (SITEMAP_LINKS_MAX, TOO_MANY) };
            assert_eq!((hops.links(), hops.redirects(), hops.offsite()), (links, redirects, 0));
            assert!(!hops.is_embed());
        }
        assert_eq!(Hops::from_bits(hops.bits()), hops);
        assert!(Hops::default().is_seed() && Hops::default().redirect().is_seed() && !Hops::from_bits(1).is_seed());
        assert_eq!(Hops::from_bits(7).redirect().link(), Hops::from_bits(8));
        let deferred = hops.with_offsite(2).deferred();
        assert!(deferred.is_deferred() && deferred.redirect().is_deferred() && !deferred.link().is_deferred());
        assert_eq!((deferred.links(), deferred.redirects(), deferred.offsite()), (SITEMAP_LINKS_MAX, TOO_MANY, 2));
        assert_eq!(deferred.redirect().link().offsite(), 2);
        assert!(!hops.is_deferred() && !hops.redirect().is_deferred());
    }

    /// Of every way that is followed: links, redirects and hops off-site are what they were, and what it leads to is as from any other.
    #[test]
    fn a_sitemap_is_as_far_as_what_names_it() {
        let mut marked = 0;
        for way in (0..=u16::MAX).map(Hops::from_bits) {
            let sitemap = way.sitemap();
            let all =
                |hops: Hops| (hops.links(), hops.redirects(), hops.offsite(), hops.is_deferred(), hops.is_embed());
            assert_eq!((all(sitemap), sitemap.sitemap()), (all(way), sitemap), "{way:?}");
            assert_eq!((all(sitemap.link()), sitemap.link().is_sitemap()), (all(way.link()), false));
            assert_eq!(all(sitemap.embed()), all(way.embed()));
            assert_eq!(all(sitemap.redirect()), all(way.redirect()));
            assert_eq!(all(sitemap.deferred().with_offsite(2)), all(way.deferred().with_offsite(2)));
            let is_near = way.links() <= SITEMAP_LINKS_MAX && way.redirects() <= SITEMAP_REDIRECTS_MAX;
            assert_eq!(sitemap.is_sitemap(), is_near && !way.is_embed());
            assert_eq!(
                sitemap.redirect().is_sitemap(),
                sitemap.is_sitemap() && way.redirects() < SITEMAP_REDIRECTS_MAX
            );
            assert_eq!(sitemap.is_seed(), way.is_seed());
            marked += u32::from(sitemap.is_sitemap());
        }
        assert!(marked > 1_000 && !Hops::EXTERNAL.is_sitemap() && !Hops::default().is_sitemap());
    }

    /// Of every way: an embed is as deep and as far off-site as its page, and a link from it is one further.
    #[test]
    fn an_embed_is_as_deep_as_its_page() {
        for page in (0..=u16::MAX).map(Hops::from_bits) {
            let mut embed = page.embed();
            assert_eq!((embed.links(), embed.offsite(), embed.redirects()), (page.links(), page.offsite(), 0));
            assert!(embed.is_embed() && !embed.is_deferred() && !embed.is_seed());
            assert_eq!(embed.link(), page.link());
            for count in 1..=EMBED_REDIRECTS_MAX {
                embed = embed.redirect();
                assert_eq!((embed.is_embed(), embed.redirects(), embed.links()), (true, count, page.links()));
            }
            assert_eq!(embed.redirect().redirects(), TOO_MANY);
            assert_eq!(
                (page.deferred().is_embed(), page.with_offsite(3).is_embed()),
                (page.is_embed(), page.is_embed())
            );
            assert_eq!(page.redirect().is_embed(), page.is_embed() && page.redirects() < EMBED_REDIRECTS_MAX);
        }
        assert_eq!((EMBED_REDIRECTS_MAX, Hops::EXTERNAL.redirects(), Hops::EXTERNAL.is_embed()), (9, TOO_MANY, false));
    }
}
