//! The vocabulary between brain and hands: what to fetch, and how it ended.
//!
//! Decides: the closed list of ways a fetch ends. A peer that misbehaves is one of these, counted, never a
//! panic and never a free-form string.
//! Invariants: every `FetchJob` the brain hands out comes back exactly once, with one `Outcome`.
//! Leaves to others: what to do about an outcome (`frontier`), how it came about (`fetch`).

use std::net::IpAddr;

use crate::kinds::PageText;
use crate::politeness::Turns;
use crate::robots::{Rules, Usage};
use crate::time::{Duration, Instant};
use crate::url::{HashedUrls, Url};

/// A host's slot in its shard's frontier.
pub type HostId = u32;

/// What one job asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum JobKind {
    /// The addresses of the host of `url`.
    Resolve,
    /// The robots.txt of an origin; `url` is its address.
    Robots,
    /// A page.
    Page,
}

/// "This URL, at this address, by this deadline."
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FetchJob {
    /// Unique within the shard's run.
    pub id: u64,
    /// The frontier's slot of the host that this job occupies.
    pub host: HostId,
    /// What to do.
    pub kind: JobKind,
    /// What to fetch.
    pub url: Url,
    /// Where; `None` for `Resolve` alone.
    pub addr: Option<IpAddr>,
    /// Of `Resolve`: both families are asked for, not the second only where the first has no address.
    pub both_families: bool,
    /// Other addresses of the host, for when that one does not answer; each needs a turn of its own. Empty where an
    /// address is known to work.
    pub others: Vec<IpAddr>,
    /// What was claimed in the ledger for it, until `deadline` and some more.
    pub turns: Turns,
    /// Of a page: the URL's number in its shard's URL log.
    pub number: u64,
    /// The way from a seed, as the bits of `Hops`.
    pub depth: u16,
    /// Of a page: which page linked to it first, as far as the shard remembers.
    pub via: Option<Box<str>>,
    /// How many times this was tried before: 0 the first time.
    pub attempt: u8,
    /// When it begins.
    pub began: Instant,
    /// For how long it was not known whether its end counts.
    pub held: Duration,
    /// When the hands must have given up.
    pub deadline: Instant,
    /// The deadline is sooner than `fetch.deadline` has it, for want of places: what is cut by it is tried again, not kept.
    pub is_hurried: bool,
    /// Of a page: no page of its own site was known to link to it.
    pub is_strangers: bool,
    /// What the page is worth is to be known ([`crate::kinds`]).
    pub is_examined: bool,
    /// Of a page: what robots.txt says about its use, where it says anything.
    pub usage: Option<Box<Usage>>,
    /// Fetches of its site were slow lately.
    pub is_of_slow_site: bool,
    /// How long the host is left alone after this request at least.
    pub rest: Duration,
    /// How it failed, where more is known of that than its outcome says.
    pub told: Option<Box<str>>,
}

impl FetchJob {
    /// How long it took, where it ended and counts now.
    pub fn took(&self, now: Instant) -> Duration {
        now.since(self.began).saturating_sub(self.held)
    }
}

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
    /// What a robots.txt says, where the response is a 2xx to [`JobKind::Robots`].
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

/// Why a body is incomplete: the words of WARC-Truncated (WARC 1.1 section 5.13).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Truncated {
    /// Our limit on size.
    Length,
    /// Our limit on time.
    Time,
    /// The peer closed or reset before the end.
    Disconnect,
    /// Framing or content coding broke midway; what came before is kept.
    Unspecified,
}

impl Truncated {
    /// The token that WARC-Truncated carries.
    pub const fn as_str(self) -> &'static str {
        match self {
            Truncated::Length => "length",
            Truncated::Time => "time",
            Truncated::Disconnect => "disconnect",
            Truncated::Unspecified => "unspecified",
        }
    }
}

macro_rules! blemishes {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        /// What can be wrong with a response that is kept. Closed: a new way is a new line here.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Blemish { $($(#[$doc])* $name,)* }

        impl Blemish {
            /// All of them, in order; `ALL[b as usize] == b`.
            pub const ALL: &'static [Blemish] = &[$(Blemish::$name,)*];

            /// The name in summaries and metrics.
            pub const fn as_str(self) -> &'static str {
                match self { $(Blemish::$name => $text,)* }
            }
        }
    };
}

blemishes! {
    /// The connection was reset, or broke in TLS, before the body's end.
    BodyReset = "body-reset";
    /// The peer closed before the end that it had announced.
    BodyShort = "body-short";
    /// The deadline passed before the body's end.
    BodyTimeout = "body-timeout";
    /// The body came more slowly than `fetch.rate_min` and was cut.
    BodySlow = "body-slow";
    /// There was no memory for more of the body (`crawl.ram_bytes_max`), and it was the longest in flight.
    BodyCrowdedOut = "body-crowded-out";
    /// More bytes came than Content-Length or the last chunk announced.
    BodyExcess = "body-excess";
    /// A length above the limit was announced; the body was cut there.
    LengthOverLimit = "length-over-limit";
    /// A body of unannounced length passed the limit and was cut there.
    BodyOverLimit = "body-over-limit";
    /// The body passed the limit when its content coding was undone, and was cut there.
    DecodedOverLimit = "decoded-over-limit";
    /// Undoing the content coding made more than `fetch.decode_ratio_max` times the bytes, and was cut there.
    DecodedOverRatio = "decoded-over-ratio";
    /// The chunked framing broke midway.
    ChunkBroken = "chunk-broken";
    /// The content coding is unknown, broken, or ended early.
    CodingBroken = "coding-broken";
    /// Content-Type says HTML of what is none, or something else of what is.
    TypeMismatch = "type-mismatch";
    /// A redirect to the very URL that was asked for.
    RedirectToItself = "redirect-to-itself";
    /// 429 or 503: the server asks to be left alone for a while.
    Overloaded = "overloaded";
    /// 402: the page is to be paid for.
    PaymentRequired = "payment-required";
    /// A challenge in place of a page: crawlers are not let in.
    Challenge = "challenge";
    /// The certificate was not acceptable; `tls.certificates = "record"` took it.
    Certificate = "certificate";
    /// robots.txt is longer than what is read of it.
    RobotsOverLimit = "robots-over-limit";
    /// Content-Length is no number; the body was read up to the end of the connection.
    LengthInvalid = "length-invalid";
    /// The status line says another version than HTTP/1.0 to 1.9, such as `HTTP/1`.
    VersionOdd = "version-odd";
    /// The body is in fewer content codings than it names; those that it is in were undone.
    CodingMislabelled = "coding-mislabelled";
}

macro_rules! failures {
    ($($(#[$doc:meta])* $name:ident = $text:literal, transient: $transient:literal;)*) => {
        /// Every way to get nothing. Closed: a new way is a new line here.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Failure { $($(#[$doc])* $name,)* }

        impl Failure {
            /// All of them, in order; `ALL[f as usize] == f`.
            pub const ALL: &'static [Failure] = &[$(Failure::$name,)*];

            /// The name in summaries, metrics and records.
            pub const fn as_str(self) -> &'static str {
                match self { $(Failure::$name => $text,)* }
            }

            /// Whether the same request may succeed later.
            pub const fn is_transient(self) -> bool {
                match self { $(Failure::$name => $transient,)* }
            }
        }
    };
}

failures! {
    /// The name does not exist, or has no address (NXDOMAIN, NODATA).
    DnsNotFound = "dns-not-found", transient: false;
    /// The name servers answered with an error (SERVFAIL, REFUSED).
    DnsFailed = "dns-failed", transient: true;
    /// No name server answered: none in time, or there was no way to any.
    DnsTimeout = "dns-timeout", transient: true;
    /// The address lies in a range that the configuration forbids.
    AddressForbidden = "address-forbidden", transient: false;
    /// The peer refused the connection.
    ConnectRefused = "connect-refused", transient: true;
    /// No connection within `fetch.connect_timeout`.
    ConnectTimeout = "connect-timeout", transient: true;
    /// The network said no (unreachable, no port left, …).
    ConnectFailed = "connect-failed", transient: true;
    /// The proxy did not speak as one.
    ProxyFailed = "proxy-failed", transient: true;
    /// The proxy would not: it wants other credentials, or its rules forbid the peer.
    ProxyRefused = "proxy-refused", transient: false;
    /// The certificate was not acceptable under `tls.certificates = "verify"`, for another reason than the next three.
    TlsCertificate = "tls-certificate", transient: false;
    /// The certificate has expired.
    TlsExpired = "tls-certificate-expired", transient: false;
    /// The certificate is for another name.
    TlsName = "tls-certificate-name", transient: false;
    /// The certificate is signed by nobody who is trusted, or by itself.
    TlsIssuer = "tls-certificate-issuer", transient: false;
    /// The server speaks neither TLS 1.2 nor 1.3; older versions are broken (RFC 8996).
    TlsVersion = "tls-version", transient: false;
    /// The server speaks no HTTP/1.1 over TLS, as it says by ALPN (RFC 7301): HTTP/2 alone, mostly.
    TlsNoHttp1 = "tls-no-http1", transient: false;
    /// The server found no cipher suite, group or signature in common, or will not say what else it misses (the alerts
    /// `handshake_failure` and `insufficient_security`, RFC 8446 section 6.2).
    TlsNothingCommon = "tls-nothing-common", transient: false;
    /// The handshake broke for another reason.
    TlsFailed = "tls-failed", transient: true;
    /// No handshake within `fetch.tls_timeout`.
    TlsTimeout = "tls-timeout", transient: true;
    /// No response byte within `fetch.first_byte_timeout`.
    FirstByteTimeout = "first-byte-timeout", transient: true;
    /// The whole exchange outlived `fetch.deadline` before a response head was complete.
    Deadline = "deadline", transient: true;
    /// It had less time than `fetch.deadline`, as others waited, and its response was not whole by then; the next try has all.
    Hurried = "hurried", transient: true;
    /// The peer reset the connection before a response head was complete.
    Reset = "reset", transient: true;
    /// The peer closed before a response head was complete.
    ClosedEarly = "closed-early", transient: true;
    /// A document came without status line and fields, which is HTTP/0.9: nothing says what it is.
    Http09 = "http-0.9", transient: false;
    /// What came is no HTTP/1.x response.
    Malformed = "http-malformed", transient: false;
    /// The head exceeds `fetch.header_bytes_max` or `fetch.header_count_max`.
    HeadTooLarge = "http-head-too-large", transient: false;
    /// robots.txt forbids the URL; no request was made.
    RobotsDenied = "robots-denied", transient: false;
    /// robots.txt asks for a longer Crawl-delay than is waited for (`politeness.crawl_delay_above = "skip"`); no request was
    /// made.
    CrawlDelayTooLong = "crawl-delay-too-long", transient: false;
    /// robots.txt could not be had (no answer, no connection): everything is forbidden until it can (RFC 9309 section
    /// 2.3.1.4).
    RobotsUnreachable = "robots-unreachable", transient: false;
    /// The server answers with an error where robots.txt should be (5xx, 429), which forbids everything, too.
    RobotsServerError = "robots-server-error", transient: false;
    /// The host failed too often in a row; its queue was given up.
    HostDead = "host-dead", transient: false;
    /// We gave it up ourselves, as the crawl was stopping, or our own network was down: it counts for nothing, and the URL
    /// stays queued.
    Aborted = "aborted", transient: true;
    /// The proxy could not be reached.
    ProxyUnreachable = "proxy-unreachable", transient: true;
    /// The server sent more certificates than any server needs, or so many of one name that verifying them would take long.
    TlsChainTooLong = "tls-chain-too-long", transient: false;
    /// The port belongs to another protocol (`scope.bad_ports`); no connection was made.
    PortForbidden = "port-forbidden", transient: false;
    /// The scope's rules exclude the URL, which was queued before; no request was made.
    OutOfScope = "out-of-scope", transient: false;
    /// The URL, its host or its address is on a list of `scope.block`; no request was made.
    Blocked = "blocked", transient: false;
    /// Its host or site has had what it may cost (`budget`, or a seed's options); no request was made.
    OverBudget = "over-budget", transient: false;
}

impl Failure {
    /// Whether there was no connection: another address may have one.
    pub const fn is_of_connect(self) -> bool {
        matches!(self, Failure::ConnectRefused | Failure::ConnectTimeout | Failure::ConnectFailed)
    }

    /// Whether a server was reached and sent no whole head of a response.
    pub const fn is_of_answer(self) -> bool {
        matches!(
            self,
            Failure::FirstByteTimeout
                | Failure::Deadline
                | Failure::Reset
                | Failure::ClosedEarly
                | Failure::Http09
                | Failure::Malformed
                | Failure::HeadTooLarge
        )
    }

    /// Whether the peer's TLS is what is wrong and will stay so: its certificate, its versions, what it can.
    pub const fn is_of_tls(self) -> bool {
        matches!(
            self,
            Failure::TlsCertificate
                | Failure::TlsExpired
                | Failure::TlsName
                | Failure::TlsIssuer
                | Failure::TlsVersion
                | Failure::TlsNoHttp1
                | Failure::TlsNothingCommon
                | Failure::TlsChainTooLong
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_indexed_by_their_number() {
        for (index, blemish) in Blemish::ALL.iter().enumerate() {
            assert_eq!(*blemish as usize, index);
        }
        for (index, failure) in Failure::ALL.iter().enumerate() {
            assert_eq!(*failure as usize, index);
            assert!(!failure.as_str().is_empty());
        }
    }
}
