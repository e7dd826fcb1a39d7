//! How a job ended, as the brain needs to know it.
//!
//! Decides: the closed list of ways a fetch ends. A misbehaving peer leads to one of these, counted, never a panic
//! and never a free-form string.
//! Invariants: every [`crate::job::FetchJob`] comes back exactly once, with one `Outcome`.
//! Leaves to others: what to do about an outcome (`frontier`), how it came about (`fetch`).

use std::net::IpAddr;

use crate::kinds::PageText;
use ringcrawl_base::time::Duration;
use ringcrawl_base::{Failure, Truncated};
use ringcrawl_robots::Rules;
use ringcrawl_url::{HashedUrls, Url};

/// How a job ended.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(clippy::large_enum_variant, reason = "most jobs end with a response; there is one at a time")]
pub enum Outcome {
    /// A `Resolve` job got addresses.
    Resolved {
        /// At least one, in the resolver's order.
        addrs: Vec<IpAddr>,
        /// How long they may be used.
        ttl: Duration,
        /// Both families were wanted, but no server answered for the other one: it may have more addresses.
        is_half: bool,
        /// The aliases of the name, lower-case, separated by spaces (RFC 1034 section 3.6.2).
        alias: Option<Box<str>>,
    },
    /// A `Resolve` job learned that the name does not exist, or has no address (RFC 2308 section 2).
    NoAddress {
        /// How long that holds.
        ttl: Duration,
    },
    /// A response came, whole or truncated.
    Fetched(Fetched),
    /// Nothing usable came.
    Failed(Failure),
}

/// What the brain needs of a response; the body itself went to the store.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Fetched {
    /// HTTP status, 100–999.
    pub status: u16,
    /// The address that answered: `addr` of the job, or one of its `others`.
    pub addr: Option<IpAddr>,
    /// The stored body is not everything the server had to say.
    pub truncated: Option<Truncated>,
    /// Links found, canonical; a redirect's target is one of them.
    pub links: HashedUrls,
    /// The number of dropped links, and the key or other limit that they exceeded.
    pub dropped: Option<(u64, &'static str)>,
    /// Where a 3xx points to, canonical, when it has a usable Location.
    pub redirect: Option<Url>,
    /// The content of a robots.txt, if the response is a 2xx to [`crate::job::JobKind::Robots`].
    pub rules: Option<Rules>,
    /// Retry-After in seconds or as a date, as time from now (RFC 9110 section 10.2.3).
    pub retry_after: Option<Duration>,
    /// It is not a page, but says that crawlers are not let in.
    pub interstitial: Option<Interstitial>,
    /// For a robots.txt: how long it says that it may be used (RFC 9111 section 4.2).
    pub fresh_for: Option<Duration>,
    /// The page says noindex.
    pub is_noindex: bool,
    /// Its body packs files that are available elsewhere; set for examined jobs.
    pub is_archive: bool,
    /// Shows how much of it is new, if the job is examined and the body is text.
    pub text: Option<PageText>,
    /// A hash of its payload as stored; `None` if that has no bytes, or was not stored.
    pub payload: Option<u64>,
    /// Bytes of the message on the wire.
    pub wire_bytes: u64,
    /// Bytes of the body after all decoding.
    pub body_bytes: u64,
}

/// How the crawler was kept out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Interstitial {
    /// Pages require payment: 402 (RFC 9110 section 15.5.3).
    Payment,
    /// The client must prove that it is a person's browser.
    Challenge,
}

impl Interstitial {
    /// The word in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Interstitial::Payment => "payment",
            Interstitial::Challenge => "challenge",
        }
    }
}
