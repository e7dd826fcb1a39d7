//! Hops: how far a URL is from a seed, in the 16 bits that travel with it.
//!
//! Decides: links are counted from the seed, redirects from the last link, because that is what each limit is about:
//! `scope.depth_max` ends a walk that goes ever deeper, `scope.redirects_max` one server that sends a crawler around.
//! Hops off-site are counted from the seeds' sites, as rules of the scope use them (`scope`).
//! Links have eight bits, hops off-site two and redirects five, so that batches, journals and queues need no further
//! byte. The last bit says that the URL is deferred: its page advised against it, so its weight begins lower
//! (`kinds`), or it belongs to another shard while shards cross over.
//! Embeds, such as images, are encoded in the five bits for redirects, which can hold more than any client follows.
//! Up to [`REDIRECTS_MAX`] they are the redirects to a link, above that those to an embed, and the highest number
//! stands for too many. There is no free bit left, and a bit of these five would leave 14 redirects, where browsers
//! follow 20.
//! That a robots.txt, an index or a page names the URL as a sitemap travels with it, because the server's own type
//! for it may be anything. This is written under the highest number, too: of the bits for links, four hold its depth
//! and four its indexes and redirects. URLs deeper than [`SITEMAP_LINKS_MAX`] links, or further away, lose the mark.
//! An embed is as deep as its page, which is incomplete without it, so `scope.depth_max` does not cut it off.
//! Limits below the countable maximum also apply to saturated counts.
//! Invariants: a number of links below 256 without a redirect, on a seed's site, is written as itself; all counts
//! saturate. The target of a redirect is deferred, or an embed, if its source is; a link is neither by itself.

/// Links followed from a seed, hops off-site, redirects followed since the last link, whether a page embeds it, and
/// whether it is deferred.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Hops(u16);

/// Most links that can be counted.
pub const LINKS_MAX: u16 = (1 << LINK_BITS) - 1;
/// Most hops off-site that can be counted.
pub const OFFSITE_MAX: u16 = (1 << OFFSITE_BITS) - 1;
/// Most redirects in a row to a link that can be counted; beyond that it is [`TOO_MANY`].
pub const REDIRECTS_MAX: u16 = 20;
/// More redirects than any client follows.
pub const TOO_MANY: u16 = (1 << REDIRECT_BITS) - 1;
const LINK_BITS: u32 = 8;
const OFFSITE_BITS: u32 = 2;
const REDIRECT_BITS: u32 = 5;
const REDIRECT_SHIFT: u32 = LINK_BITS + OFFSITE_BITS;
/// The redirect bits of an embed without a redirect.
const EMBED: u16 = REDIRECTS_MAX + 1;
/// The redirect bits of an embed with as many redirects as are followed.
const LAST_EMBED: u16 = TOO_MANY - 1;
const DEFERRED: u16 = 1 << (REDIRECT_SHIFT + REDIRECT_BITS);
/// Most links to a known sitemap.
pub const SITEMAP_LINKS_MAX: u16 = (1 << SITEMAP_SHIFT) - 1;
/// Most indexes and redirects in a row to a known sitemap.
pub const SITEMAP_REDIRECTS_MAX: u16 = NO_SITEMAP - 1;
const SITEMAP_SHIFT: u32 = 4;
/// The value for too many redirects.
const NO_SITEMAP: u16 = (1 << (LINK_BITS - SITEMAP_SHIFT)) - 1;

impl Hops {
    /// Stands in logs for links that left the scope. So many redirects are never followed (`scope.redirects_max`), so
    /// no other URL has this value.
    pub const EXTERNAL: Hops = Hops(u16::MAX);

    /// From the bits in a batch.
    pub const fn from_bits(bits: u16) -> Hops {
        Hops(bits)
    }

    /// The bits in a batch.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Links from the seed; with too many redirects at most [`SITEMAP_LINKS_MAX`].
    pub const fn links(self) -> u16 {
        let links = self.0 & LINKS_MAX;
        if self.steps() == TOO_MANY { links & SITEMAP_LINKS_MAX } else { links }
    }

    /// Hops off-site since a seed's site.
    pub const fn offsite(self) -> u16 {
        (self.0 >> LINK_BITS) & OFFSITE_MAX
    }

    /// Redirects since the last link, or since the page that embeds it. An index counts as a redirect to its
    /// sitemaps.
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

    /// The same hops, to a URL named as a sitemap. An embed cannot be one.
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

    /// The same hops, deferred.
    pub const fn deferred(self) -> Hops {
        Hops(self.0 | DEFERRED)
    }

    /// The same, with `hops` hops off-site.
    pub const fn with_offsite(self, hops: u16) -> Hops {
        let hops = if hops < OFFSITE_MAX { hops } else { OFFSITE_MAX };
        Hops(self.0 & !(OFFSITE_MAX << LINK_BITS) | hops << LINK_BITS)
    }

    /// One link further.
    pub const fn link(self) -> Hops {
        let links = if self.links() < LINKS_MAX { self.links() + 1 } else { LINKS_MAX };
        Hops(links).with_offsite(self.offsite())
    }

    /// An embed of the page there.
    pub const fn embed(self) -> Hops {
        Hops(self.links() | EMBED << REDIRECT_SHIFT).with_offsite(self.offsite())
    }

    /// One redirect further.
    pub const fn redirect(self) -> Hops {
        match self.steps() {
            TOO_MANY if self.is_sitemap() => self.with(self.redirects() + 1, self.links()).sitemap(),
            TOO_MANY => self,
            // There is no value between too many for a link and too many for an embed.
            REDIRECTS_MAX | LAST_EMBED => {
                let links = if self.links() < SITEMAP_LINKS_MAX { self.links() } else { SITEMAP_LINKS_MAX };
                self.with(TOO_MANY, links | NO_SITEMAP << SITEMAP_SHIFT)
            }
            steps => self.with(steps + 1, self.links()),
        }
    }

    /// The same hops off-site and the same deferral, with these bits for redirects and for links.
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

    const EMBED_REDIRECTS_MAX: u16 = LAST_EMBED - EMBED;

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

    /// For all hops that are followed: links, redirects and hops off-site are unchanged, and links from there count
    /// as from any other.
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

    /// For all hops: an embed is as deep and as far off-site as its page, and a link from it is one further.
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
