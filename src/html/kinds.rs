//! Kinds of links, and the set of kinds that a caller wants.
//!
//! Decides: the names that `--kinds` takes and `inspect links` prints. `<link>` has a kind for each token of its
//! `rel` (`link:next`), because a token says what the link is for; a link with two wanted tokens is found twice. Only
//! `rel=canonical` has a kind of its own, and is never also `link:canonical`.
//!
//! Limits: at most `RELS_MAX` different `link:REL` in one set.

use std::borrow::Cow;
use std::fmt;

use super::listed::any_token;

/// Where in a page a URL was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// `<a href>`.
    A,
    /// `<a href>` or `<a xlink:href>` of SVG.
    SvgA,
    /// `<area href>`.
    Area,
    /// `<link href>`, once for each token of `rel`.
    Link,
    /// `<frame src>`.
    Frame,
    /// `<iframe src>`.
    Iframe,
    /// `<img src>`.
    Img,
    /// A candidate of `srcset` of `<img>` or `<source>`.
    Srcset,
    /// `<script src>`.
    Script,
    /// `<meta http-equiv=refresh content>` that names a URL.
    Refresh,
    /// The first `<base href>`: the one that counts.
    Base,
    /// `<link rel=canonical href>`.
    Canonical,
    /// `loc` of a sitemap, or a page in another language that it names.
    Loc,
    /// `loc` of a sitemap index: a sitemap.
    Sitemap,
    /// An address in a feed.
    Item,
    /// A line of text that is a URL.
    Line,
}

impl Kind {
    /// The name in lists and output; for `Link`, the part before the colon.
    pub fn name(self) -> &'static str {
        match self {
            Kind::A => "a",
            Kind::SvgA => "svg-a",
            Kind::Area => "area",
            Kind::Link => "link",
            Kind::Frame => "frame",
            Kind::Iframe => "iframe",
            Kind::Img => "img",
            Kind::Srcset => "srcset",
            Kind::Script => "script",
            Kind::Refresh => "refresh",
            Kind::Base => "base",
            Kind::Canonical => "canonical",
            Kind::Loc => "loc",
            Kind::Sitemap => "sitemap",
            Kind::Item => "item",
            Kind::Line => "line",
        }
    }

    /// Whether the page displays or uses the target, with this token of `rel` if it is a `Link`, so that it is not a
    /// place to go to.
    pub fn is_embed(self, rel: &str) -> bool {
        match self {
            Kind::Img | Kind::Srcset | Kind::Script => true,
            Kind::Link => EMBEDDED.contains(&rel),
            _ => false,
        }
    }

    /// Whether it occurs only in sitemaps.
    pub fn is_of_sitemap(self) -> bool {
        matches!(self, Kind::Loc | Kind::Sitemap)
    }

    const ALL: [Kind; 16] = [
        Kind::A,
        Kind::SvgA,
        Kind::Area,
        Kind::Link,
        Kind::Frame,
        Kind::Iframe,
        Kind::Img,
        Kind::Srcset,
        Kind::Script,
        Kind::Refresh,
        Kind::Base,
        Kind::Canonical,
        Kind::Loc,
        Kind::Sitemap,
        Kind::Item,
        Kind::Line,
    ];

    const fn bit(self) -> u32 {
        1 << self as u32
    }

    /// Kinds in documents that are lists.
    const LISTED: u32 = Kind::Loc.bit() | Kind::Sitemap.bit() | Kind::Item.bit() | Kind::Line.bit();
}

/// Tokens of `rel` whose links the page itself uses (HTML section 4.6.7, "external resource link").
const EMBEDDED: [&str; 2] = ["stylesheet", "icon"];

/// Tokens of `rel` whose links lead to other pages of a site: those of HTML section 4.6.7 that do, and those of HTML
/// 4.01 section 6.12 and of the standard's drafts that sites still write. `author` and `license` are omitted, because
/// they mostly lead elsewhere.
macro_rules! followed {
    ($($more:expr),*) => {
        Cow::Borrowed(&[
            Cow::Borrowed("alternate"),
            Cow::Borrowed("next"),
            Cow::Borrowed("prev"),
            Cow::Borrowed("contents"),
            Cow::Borrowed("first"),
            Cow::Borrowed("help"),
            Cow::Borrowed("index"),
            Cow::Borrowed("last"),
            Cow::Borrowed("previous"),
            Cow::Borrowed("search"),
            Cow::Borrowed("start"),
            Cow::Borrowed("up"),
            $(Cow::Borrowed($more)),*
        ])
    };
}

/// A set of kinds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kinds {
    /// `Kind::Link` is in the set when every `rel` is wanted.
    bits: u32,
    /// Single tokens of `rel`, lower-case.
    rels: Cow<'static, [Cow<'static, str>]>,
}

/// Tokens of `rel` in one set: each is compared with each token of a page's links.
pub const RELS_MAX: usize = 64;

/// Why a list of kinds was refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum KindsError {
    /// There is no such kind.
    #[error(
        "no such kind: {0:?} (a, svg-a, area, link, link:REL, frame, iframe, img, srcset, script, refresh, base, canonical, loc, sitemap, item, line)"
    )]
    Unknown(String),
    /// More than `RELS_MAX` tokens.
    #[error("more than {RELS_MAX} kinds of the form link:REL")]
    TooMany,
}

impl Kinds {
    /// The kinds that `inspect links` prints by default.
    pub const DEFAULT: Kinds = Kinds {
        bits: Kind::A.bit()
            | Kind::Area.bit()
            | Kind::Frame.bit()
            | Kind::Iframe.bit()
            | Kind::Refresh.bit()
            | Kind::Canonical.bit()
            | Kind::LISTED,
        rels: followed!(),
    };

    /// The kinds that a crawl follows: `DEFAULT`, and the links of SVG, which also lead to pages.
    pub const FOLLOW: Kinds = Kinds { bits: Kinds::DEFAULT.bits | Kind::SvgA.bit(), rels: Kinds::DEFAULT.rels };

    /// The same, plus what a page embeds ([`Kind::is_embed`]).
    pub const EMBED: Kinds = Kinds {
        bits: Kinds::FOLLOW.bits | Kind::Img.bit() | Kind::Srcset.bit() | Kind::Script.bit(),
        rels: followed!(EMBEDDED[0], EMBEDDED[1]),
    };

    /// All known places.
    pub const ALL: Kinds = Kinds { bits: (1 << Kind::ALL.len()) - 1, rels: Cow::Borrowed(&[]) };

    /// Parses a list such as `a,link:next`; `link` alone stands for every `rel`. Case and spaces are ignored.
    pub fn parse(list: &str) -> Result<Kinds, KindsError> {
        let mut kinds = Kinds { bits: 0, rels: Cow::Borrowed(&[]) };
        for item in list.split(',').map(str::trim).filter(|item| !item.is_empty()) {
            let lower = item.to_ascii_lowercase();
            match lower.strip_prefix("link:") {
                Some(rel) if rel == Kind::Canonical.name() => kinds.bits |= Kind::Canonical.bit(),
                Some(rel) if !rel.is_empty() => {
                    if kinds.rels.len() == RELS_MAX {
                        return Err(KindsError::TooMany);
                    }
                    kinds.rels.to_mut().push(Cow::Owned(rel.to_owned()));
                }
                _ => match Kind::ALL.iter().find(|kind| kind.name() == lower) {
                    // Every `rel` includes the canonical one.
                    Some(Kind::Link) => kinds.bits |= Kind::Link.bit() | Kind::Canonical.bit(),
                    Some(kind) => kinds.bits |= kind.bit(),
                    None => return Err(KindsError::Unknown(item.to_owned())),
                },
            }
        }
        Ok(kinds)
    }

    /// Whether `kind` is wanted; for `Kind::Link`, whether any token is.
    pub fn has(&self, kind: Kind) -> bool {
        self.bits & kind.bit() != 0 || (kind == Kind::Link && !self.rels.is_empty())
    }

    /// Whether a `<link>` with one of these tokens may be wanted.
    pub(super) fn links_any(&self, tokens: &str) -> bool {
        let is_known = |token: &str| {
            let is = |known: &str| token.eq_ignore_ascii_case(known);
            is(Kind::Canonical.name()) || self.rels.iter().any(|rel| is(rel))
        };
        self.bits & Kind::Link.bit() != 0 || any_token(tokens, is_known)
    }

    /// Whether a `<link>` with this lower-case token is wanted, and as what.
    pub fn link(&self, rel: &str) -> Option<Kind> {
        if rel == Kind::Canonical.name() {
            return self.has(Kind::Canonical).then_some(Kind::Canonical);
        }
        let wanted = self.bits & Kind::Link.bit() != 0 || self.rels.iter().any(|one| one == rel);
        wanted.then_some(Kind::Link)
    }
}

impl fmt::Display for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Kind::ALL.iter().filter(|kind| self.bits & kind.bit() != 0).map(|kind| kind.name().to_owned());
        let links = self.rels.iter().map(|rel| format!("link:{rel}"));
        f.write_str(&named.chain(links).collect::<Vec<_>>().join(","))
    }
}

impl std::str::FromStr for Kinds {
    type Err = KindsError;

    fn from_str(list: &str) -> Result<Kinds, KindsError> {
        Kinds::parse(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists() {
        let default = "a,area,frame,iframe,refresh,link:alternate,link:next,link:prev,link:contents,link:first,link:help,\
                       link:index,link:last,link:previous,link:search,link:start,link:up,canonical,loc,sitemap,item,line";
        assert_eq!(Kinds::parse(default), Ok(Kinds::DEFAULT));
        for kinds in [Kinds::DEFAULT, Kinds::FOLLOW, Kinds::EMBED, Kinds::ALL] {
            assert_eq!(Kinds::parse(&kinds.to_string()), Ok(kinds));
        }
        assert_eq!(Kinds::parse("link:Canonical"), Kinds::parse(" CANONICAL, "));
        assert_eq!(Kinds::parse("a,b"), Err(KindsError::Unknown("b".into())));
        assert_eq!(Kinds::parse("link:"), Err(KindsError::Unknown("link:".into())));
        assert_eq!(Kinds::parse(&"link:x,".repeat(RELS_MAX + 1)), Err(KindsError::TooMany));
    }

    #[test]
    fn embeds_are_what_following_leaves_out() {
        for kind in Kind::ALL {
            let rels = ["", "alternate", "next", "prev", "stylesheet", "icon", "preload"];
            let rels = if kind == Kind::Link { &rels[1..] } else { &rels[..1] };
            for rel in rels {
                let wants =
                    |kinds: &Kinds| if kind == Kind::Link { kinds.link(rel).is_some() } else { kinds.has(kind) };
                let added = wants(&Kinds::EMBED) && !wants(&Kinds::FOLLOW);
                assert_eq!(kind.is_embed(rel), added, "{kind:?} {rel}");
            }
        }
    }

    #[test]
    fn rels() {
        let kinds = Kinds::parse("link:next").unwrap();
        assert!(kinds.has(Kind::Link) && !kinds.has(Kind::Canonical));
        assert_eq!((kinds.link("next"), kinds.link("prev"), kinds.link("canonical")), (Some(Kind::Link), None, None));
        let kinds = Kinds::parse("link").unwrap();
        assert_eq!((kinds.link("prev"), kinds.link("canonical")), (Some(Kind::Link), Some(Kind::Canonical)));
        assert!(!Kinds::parse("canonical").unwrap().has(Kind::Link));
    }
}
