//! The ways in which a request fails.
//!
//! Decides: the list is closed. A misbehaving peer is one of these, counted, never a panic and never a free-form
//! string.
//! Leaves to others: how to handle a failure (the brain), how it came about (the hands).

macro_rules! failures {
    ($($(#[$doc:meta])* $name:ident = $text:literal, transient: $transient:literal;)*) => {
        /// Every way to fail. Closed: a new way is a new line here.
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
    /// No name server answered in time, or none could be reached.
    DnsTimeout = "dns-timeout", transient: true;
    /// The address is in a range that the configuration forbids.
    AddressForbidden = "address-forbidden", transient: false;
    /// The peer refused the connection.
    ConnectRefused = "connect-refused", transient: true;
    /// No connection within `fetch.connect_timeout`.
    ConnectTimeout = "connect-timeout", transient: true;
    /// The network reported an error (unreachable, no port left, …).
    ConnectFailed = "connect-failed", transient: true;
    /// The proxy did not respond as one.
    ProxyFailed = "proxy-failed", transient: true;
    /// The proxy refused: it requires other credentials, or its rules forbid the peer.
    ProxyRefused = "proxy-refused", transient: false;
    /// The certificate was not acceptable under `tls.certificates = "verify"`, for another reason than the next
    /// three.
    TlsCertificate = "tls-certificate", transient: false;
    /// The certificate has expired.
    TlsExpired = "tls-certificate-expired", transient: false;
    /// The certificate is for another name.
    TlsName = "tls-certificate-name", transient: false;
    /// The certificate is self-signed, or its issuer is not trusted.
    TlsIssuer = "tls-certificate-issuer", transient: false;
    /// The server speaks neither TLS 1.2 nor 1.3; older versions are broken (RFC 8996).
    TlsVersion = "tls-version", transient: false;
    /// The server does not offer HTTP/1.1 over TLS, by ALPN (RFC 7301): mostly it only speaks HTTP/2.
    TlsNoHttp1 = "tls-no-http1", transient: false;
    /// The server found no cipher suite, group or signature in common, or does not say what it lacks (the alerts
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
    /// It had less time than `fetch.deadline` because other requests waited, and its response was incomplete by then;
    /// the next try gets the full time.
    Hurried = "hurried", transient: true;
    /// The peer reset the connection before a response head was complete.
    Reset = "reset", transient: true;
    /// The peer closed before a response head was complete.
    ClosedEarly = "closed-early", transient: true;
    /// A document came without status line and fields, which is HTTP/0.9: nothing states its type.
    Http09 = "http-0.9", transient: false;
    /// The received bytes are not an HTTP/1.x response.
    Malformed = "http-malformed", transient: false;
    /// The head exceeds `fetch.header_bytes_max` or `fetch.header_count_max`.
    HeadTooLarge = "http-head-too-large", transient: false;
    /// robots.txt forbids the URL; no request was made.
    RobotsDenied = "robots-denied", transient: false;
    /// robots.txt asks for a longer Crawl-delay than we accept (`politeness.crawl_delay_above = "skip"`); no request
    /// was made.
    CrawlDelayTooLong = "crawl-delay-too-long", transient: false;
    /// robots.txt is unavailable (no answer, no connection): everything is forbidden until it is available (RFC 9309
    /// section 2.3.1.4).
    RobotsUnreachable = "robots-unreachable", transient: false;
    /// The server answers the robots.txt request with an error (5xx, 429), which also forbids everything.
    RobotsServerError = "robots-server-error", transient: false;
    /// The host failed too often in a row; its queue was dropped.
    HostDead = "host-dead", transient: false;
    /// We aborted it ourselves, because the crawl was stopping or our own network was down: it does not count, and
    /// the URL stays queued.
    Aborted = "aborted", transient: true;
    /// The proxy could not be reached.
    ProxyUnreachable = "proxy-unreachable", transient: true;
    /// The server sent more certificates than any server needs, or so many with one name that verifying them would
    /// take long.
    TlsChainTooLong = "tls-chain-too-long", transient: false;
    /// The port belongs to another protocol (`scope.bad_ports`); no connection was made.
    PortForbidden = "port-forbidden", transient: false;
    /// The scope's rules exclude the URL, which was queued before; no request was made.
    OutOfScope = "out-of-scope", transient: false;
    /// The URL, its host or its address is on a list of `scope.block`; no request was made.
    Blocked = "blocked", transient: false;
    /// Its host or site has used up its budget (`budget`, or a seed's options); no request was made.
    OverBudget = "over-budget", transient: false;
    /// Its host has links to more ports than we try, and earlier ones have answered or were still being tried; no
    /// request was made.
    TooManyPorts = "too-many-ports", transient: false;
}

impl Failure {
    /// Whether there was no connection: another address may work.
    pub const fn is_of_connect(self) -> bool {
        matches!(self, Failure::ConnectRefused | Failure::ConnectTimeout | Failure::ConnectFailed)
    }

    /// Whether a server was reached but did not send a whole response head.
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

    /// Whether the peer's TLS is permanently at fault: its certificate, its versions, its capabilities.
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
    fn the_list_is_indexed_by_its_numbers() {
        for (index, failure) in Failure::ALL.iter().enumerate() {
            assert_eq!(*failure as usize, index);
            assert!(!failure.as_str().is_empty());
        }
    }
}
