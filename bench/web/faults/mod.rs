//! Faults: what goes wrong on the web. Each fault has hosts of its own on which it always occurs in the same way.
//!
//! Decides: a fault is a host. Site `N` has the host `FAULT.sN.test` when a draw below the fault's share says so, and
//! the root page of the site links to it. So every crawl meets it, the name in a log says what it is for, and the
//! rest of the web keeps its truth. A faulty host has a healthy root and healthy pages between the faulty ones, so
//! that the effect of a fault on the connection or on the host's next request shows, too.
//! Why so: if a fault hit any page at random, the end of its host (`host-dead`) would depend on the order of a crawl.
//! A faulty host has so few pages that it never comes to that, and it fails alone, so slow faults run concurrently.
//! Invariants: pure; which site has which fault depends only on seed, number of sites and share; a share above 0
//! gives at least one site.
//! Leaves to others: the content of such a host (`spot`), the bytes on the wire (`script`), how it must end
//! (`ending`); names (`web::names`) and certificates (`web::authority`) that are themselves the fault.

pub mod ending;
pub(super) mod pages;
pub(super) mod script;
pub mod spot;

use std::fmt;
use std::str::FromStr;

use super::draw::{Draw, Purpose};

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $per_10_000:literal;)*) => {
        /// Every way in which a host of the web can be faulty. The list is closed: a new way is a new line here.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[repr(u8)]
        pub enum Fault { $($(#[$doc])* $name,)* }

        impl Fault {
            /// All of them, in order; `ALL[f as usize] == f`.
            pub const ALL: &'static [Fault] = &[$(Fault::$name,)*];

            /// The name on the command line, and the label of the hosts.
            pub const fn as_str(self) -> &'static str {
                match self { $(Fault::$name => $text,)* }
            }

            /// The share of sites that `all` gives it, in ten-thousandths.
            const fn usual_share(self) -> u16 {
                match self { $(Fault::$name => $per_10_000,)* }
            }
        }
    };
}

faults! {
    /// The first byte comes after a second, or never.
    SlowFirstByte = "slow-first-byte", 500;
    /// The body comes a byte at a time: to its end within a second, or for ever.
    DrippingBody = "dripping-body", 500;
    /// The connection is reset in the middle of the head.
    ResetInHead = "reset-in-head", 500;
    /// The connection is reset in the middle of the body, with a length or in chunks.
    ResetInBody = "reset-in-body", 500;
    /// Content-Length is less than what is sent.
    ShortLength = "short-length", 500;
    /// Content-Length is more than what is sent.
    LongLength = "long-length", 500;
    /// A chunk size that is not a number, or a number beyond all bounds, after a good chunk.
    BadChunk = "bad-chunk", 500;
    /// A body without end, in chunks or up to the close.
    EndlessBody = "endless-body", 200;
    /// A head without end, of many fields or of one.
    EndlessHead = "endless-head", 500;
    /// A page of 50 MB.
    HugePage = "huge-page", 200;
    /// A small gzip body that decodes to 100 MB.
    GzipBomb = "gzip-bomb", 300;
    /// HTML that is declared as an image, and an image that is declared as HTML.
    WrongType = "wrong-type", 500;
    /// Redirects to itself, and in a circle.
    RedirectLoop = "redirect-loop", 500;
    /// A chain of 60 redirects.
    RedirectChain = "redirect-chain", 500;
    /// 503 or 429 with Retry-After, in seconds or as a date, once or always.
    RetryAfter = "retry-after", 500;
    /// robots.txt answers 500.
    Robots5xx = "robots-5xx", 500;
    /// robots.txt is never answered.
    RobotsTimeout = "robots-timeout", 300;
    /// A robots.txt of 3 MB: a rule at its beginning, another behind 2 MB.
    RobotsHuge = "robots-huge", 300;
    /// The name server answers SERVFAIL.
    DnsServfail = "dns-servfail", 500;
    /// The name does not exist.
    DnsNxdomain = "dns-nxdomain", 500;
    /// The name server does not answer.
    DnsTimeout = "dns-timeout", 300;
    /// The certificate has expired.
    CertificateExpired = "certificate-expired", 500;
    /// The certificate is for another name.
    CertificateWrongName = "certificate-wrong-name", 500;
    /// The certificate is signed by itself.
    CertificateSelfSigned = "certificate-self-signed", 500;
    /// Every page links to the next under a new session identifier.
    SessionIds = "session-ids", 300;
    /// A calendar whose every month links to the next.
    Calendar = "calendar", 300;
    /// A relative link that makes every address longer than the one before.
    PathTrap = "path-trap", 300;
    /// Filters of a list, in every combination; each page shows another choice from the same few texts.
    Facets = "facets", 300;
    /// Every earlier version of a page; the versions differ in one word.
    Versions = "versions", 300;
    /// Sections that link to each other, so that a page is reachable under every path of their names.
    Mirrors = "mirrors", 300;
    /// Several addresses of one page.
    Duplicates = "duplicates", 500;
    /// Pages that change at every other request, with an ETag.
    Changing = "changing", 500;
}

impl Fault {
    /// The fault of this name, in lower case.
    pub fn named(name: &str) -> Option<Fault> {
        Fault::ALL.iter().copied().find(|fault| fault.as_str() == name)
    }

    /// Whether its hosts speak https, whatever the scheme of their site.
    pub(super) const fn is_of_certificate(self) -> bool {
        matches!(self, Fault::CertificateExpired | Fault::CertificateWrongName | Fault::CertificateSelfSigned)
    }

    /// Whether its hosts have pages without end, which no crawl can fetch completely.
    pub const fn is_maze(self) -> bool {
        self.doors() > 0
    }

    /// The number of deeper pages in the maze to which each of its pages links.
    pub const fn doors(self) -> u64 {
        match self {
            Fault::SessionIds | Fault::Calendar | Fault::PathTrap => 1,
            Fault::Facets | Fault::Versions | Fault::Mirrors => 3,
            _ => 0,
        }
    }
}

/// The share of sites with each fault.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Faults {
    per_10_000: [u16; Fault::ALL.len()],
}

impl Faults {
    /// No fault anywhere.
    pub const NONE: Faults = Faults { per_10_000: [0; Fault::ALL.len()] };

    /// Every fault, each with a usual share of the sites.
    pub fn all() -> Faults {
        Faults { per_10_000: std::array::from_fn(|index| Fault::ALL.get(index).map_or(0, |it| it.usual_share())) }
    }

    /// Whether there is none.
    pub fn is_none(&self) -> bool {
        *self == Faults::NONE
    }

    /// Whether `site` of `sites` has the host of a fault.
    pub(super) fn has(&self, rng_seed: u64, sites: u32, site: u32, fault: Fault) -> bool {
        let share = self.per_10_000.get(fault as usize).copied().unwrap_or(0);
        if share == 0 {
            return false;
        }
        let draw = |what| Draw::new(rng_seed, Purpose::Fault, fault as u64, what);
        // At least one site; a share of few sites is often none.
        draw(u64::MAX).below(u64::from(sites)) == u64::from(site)
            || draw(u64::from(site)).below(10_000) < u64::from(share)
    }
}

impl Default for Faults {
    fn default() -> Faults {
        Faults::NONE
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shares = Fault::ALL.iter().zip(&self.per_10_000).filter(|(_, share)| **share > 0);
        f.debug_map().entries(shares.map(|(fault, share)| (fault.as_str(), share))).finish()
    }
}

/// An error in a list of faults.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FaultsError {
    /// There is no such fault.
    #[error("{0:?} is no fault; expected all, or NAME=SHARE,… of {names}", names = names())]
    Name(String),
    /// Not a number from 0 to 1.
    #[error("{0:?} is no share; expected 0 to 1")]
    Share(String),
}

fn names() -> String {
    Fault::ALL.iter().map(|fault| fault.as_str()).collect::<Vec<_>>().join(", ")
}

impl FromStr for Faults {
    type Err = FaultsError;

    /// `all`, or `name=share,…` where the later of two entries for one fault wins; a name alone has its usual share.
    fn from_str(text: &str) -> Result<Faults, FaultsError> {
        let mut faults = Faults::NONE;
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            if part == "all" {
                faults = Faults::all();
                continue;
            }
            let (name, share) = part.split_once('=').unwrap_or((part, ""));
            let fault = Fault::named(name).ok_or_else(|| FaultsError::Name(name.to_owned()))?;
            let per_10_000 = if share.is_empty() {
                fault.usual_share()
            } else {
                let number: f64 = share.parse().map_err(|_| FaultsError::Share(share.to_owned()))?;
                if !(0.0..=1.0).contains(&number) {
                    return Err(FaultsError::Share(share.to_owned()));
                }
                (number * 10_000.0).ceil() as u16
            };
            if let Some(slot) = faults.per_10_000.get_mut(fault as usize) {
                *slot = per_10_000;
            }
        }
        Ok(faults)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read() {
        assert_eq!("".parse(), Ok(Faults::NONE));
        assert_eq!("all".parse(), Ok(Faults::all()));
        let faults: Faults = "all, gzip-bomb=0,long-length=0.5".parse().unwrap();
        assert_eq!(faults.per_10_000[Fault::GzipBomb as usize], 0);
        assert_eq!(faults.per_10_000[Fault::LongLength as usize], 5_000);
        assert_eq!(faults.per_10_000[Fault::ResetInHead as usize], 500);
        assert_eq!("nothing".parse::<Faults>(), Err(FaultsError::Name("nothing".to_owned())));
        for bad in ["2", "-0.1", "x", "NaN"] {
            assert_eq!(format!("calendar={bad}").parse::<Faults>(), Err(FaultsError::Share(bad.to_owned())));
        }
        for (index, fault) in Fault::ALL.iter().enumerate() {
            assert_eq!((*fault as usize, Fault::named(fault.as_str())), (index, Some(*fault)));
            assert!(fault.as_str().len() < 64, "a label of a name");
        }
    }

    #[test]
    fn shares_are_kept_and_none_is_forgotten() {
        let half: Faults = "calendar=0.5".parse().unwrap();
        let count = (0..10_000).filter(|site| half.has(7, 10_000, *site, Fault::Calendar)).count();
        assert!((4_800..5_200).contains(&count), "{count}");
        assert!(!(0..10_000).any(|site| half.has(7, 10_000, site, Fault::PathTrap)));
        for rng_seed in 0..50 {
            for fault in Fault::ALL {
                assert!((0..3).any(|site| Faults::all().has(rng_seed, 3, site, *fault)), "{rng_seed} {fault:?}");
            }
        }
    }
}
