//! The ways in which a request brings nothing.
//!
//! Decides: the list is closed. A misbehaving peer is one of these, counted, never a panic and never a free-form string.
//! Leaves to others: what to do about a failure (the brain), how it came about (the hands).

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
    /// Its host has links to more ports than are asked, and those before it have answered or were still being tried; no request
    /// was made.
    TooManyPorts = "too-many-ports", transient: false;
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
    fn the_list_is_indexed_by_its_numbers() {
        for (index, failure) in Failure::ALL.iter().enumerate() {
            assert_eq!(*failure as usize, index);
            assert!(!failure.as_str().is_empty());
        }
    }
}
