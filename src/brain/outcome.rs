//! How a job ended, as the brain needs to know it.
//!
//! Decides: the closed list of ways a fetch ends. A peer that misbehaves is one of these, counted, never a
//! panic and never a free-form string.
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
        /// Both families were to be asked for, and no server told of the other one: it may have others.
        is_half: bool,
        /// Of which names it is an alias, lower-case, separated by spaces (RFC 1034 section 3.6.2).
        alias: Option<Box<str>>,
    },
    /// A `Resolve` job learned that the name does not exist, or has no address (RFC 2308 section 2).
    NoAddress {
        /// How long that is to be believed.
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
    /// The body that is kept is not all that the server had to say.
    pub truncated: Option<Truncated>,
    /// Links found, canonical; a redirect's target is one of them.
    pub links: HashedUrls,
    /// Links that were dropped, and the key, or another limit, that they were beyond.
    pub dropped: Option<(u64, &'static str)>,
    /// Where a 3xx points to, canonical, when it has a usable Location.
    pub redirect: Option<Url>,
    /// What a robots.txt says, where the response is a 2xx to [`crate::job::JobKind::Robots`].
    pub rules: Option<Rules>,
    /// Retry-After in seconds or as a date, as time from now (RFC 9110 section 10.2.3).
    pub retry_after: Option<Duration>,
    /// It is no page, but says that crawlers are not let in.
    pub wall: Option<Wall>,
    /// Of a robots.txt: how long it says that it may be used (RFC 9111 section 4.2).
    pub fresh_for: Option<Duration>,
    /// The page says noindex.
    pub is_noindex: bool,
    /// Its body packs files that stand elsewhere; told of jobs that are examined.
    pub is_archive: bool,
    /// By which is known how much of it is new, if the job is examined and the body is text.
    pub text: Option<PageText>,
    /// A hash of its payload as stored; `None` where that has no bytes, or was not stored.
    pub payload: Option<u64>,
    /// Bytes of the message on the wire.
    pub wire_bytes: u64,
    /// Bytes of the body after all decoding.
    pub body_bytes: u64,
}

/// How a crawler is not let in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Wall {
    /// Pages are to be paid for: 402 (RFC 9110 section 15.5.3).
    Payment,
    /// Whoever asks is to prove that it is a person's browser.
    Challenge,
}

impl Wall {
    /// The word in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Wall::Payment => "payment",
            Wall::Challenge => "challenge",
        }
    }
}
