//! The one list of keys: type, default, range and reason of every limit of the crawler.
//!
//! Decides: a key is declared once, here. From its line come the field of its struct, the default, the reader with
//! its errors, the check of `--set` and the text of the example file, so none of them can lag behind another.
//! Defaults suit one machine of 8 cores and 64 GiB that crawls the open web politely; ranges refuse what can only
//! be a slip (a deadline of a month, a ring of a terabyte), not what is merely unusual.
//!
//! Invariants: every default lies in its range, and every value of a range fits the field's type (tests).
//! Limits: numbers above 2^63 − 1 cannot be written in TOML.
//! Leaves to others: rules between two keys (`check`), what a limit does (the module of its table).

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use super::kind::{Kind, size, time};
use super::login::Secret;
use super::text::TextForm;
use super::value::{Field, Value, choices};
use crate::time::Duration;

/// One table of the file.
pub(super) struct Table {
    /// Its name.
    pub(super) name: &'static str,
    /// What it is about, a line each.
    pub(super) docs: &'static [&'static str],
    /// Its keys, in the order of the example.
    pub(super) keys: &'static [Key],
}

/// One key of the file.
pub(super) struct Key {
    /// The table's name.
    pub(super) table: &'static str,
    /// The key's name in the table.
    pub(super) name: &'static str,
    /// What it limits and why so, a line each.
    pub(super) docs: &'static [&'static str],
    /// What it takes.
    pub(super) kind: Kind,
    /// Its value in a configuration.
    pub(super) get: fn(&Config) -> Value,
    /// Writes a value of `kind`; `None` when it is of another kind.
    pub(super) put: fn(&mut Config, Value) -> Option<()>,
}

impl Key {
    /// `table.name`
    pub(super) fn path(&self) -> String {
        format!("{}.{}", self.table, self.name)
    }
}

/// The default of a key from its text in the list, through the same reader as the file's values.
fn default<T: Field>(kind: Kind, text: &str) -> T {
    match kind.read_word(text).ok().and_then(T::from_value) {
        Some(value) => value,
        // The list is ours, no text of others comes here, and any test reads every default.
        None => panic!("the default {text:?} is outside of its own range"),
    }
}

macro_rules! tables {
    ($($(#[doc = $table_doc:literal])+ $table:ident: $Struct:ident {
        $($(#[doc = $doc:literal])+ $key:ident: $type:ty = $default:literal, $kind:expr;)+
    })+) => {
        /// The whole configuration: one TOML file, one table per part.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Config { $($(#[doc = $table_doc])+ pub $table: $Struct,)+ }

        $(
            #[doc = concat!("`[", stringify!($table), "]`")]
            #[doc = ""]
            $(#[doc = $table_doc])+
            #[derive(Clone, Debug, PartialEq)]
            pub struct $Struct {
                $($(#[doc = $doc])+
                #[doc = concat!("\n\nDefault `", $default, "`; takes `", stringify!($kind), "`.")]
                pub $key: $type,)+
            }

            impl Default for $Struct {
                fn default() -> $Struct {
                    $Struct { $($key: default($kind, $default),)+ }
                }
            }
        )+

        /// Every table, in the order of the example.
        pub(super) static TABLES: &[Table] = &[$(Table {
            name: stringify!($table),
            docs: &[$($table_doc),+],
            keys: &[$(Key {
                table: stringify!($table),
                name: stringify!($key),
                docs: &[$($doc),+],
                kind: $kind,
                get: |config| config.$table.$key.to_value(),
                put: |config, value| {
                    config.$table.$key = Field::from_value(value)?;
                    Some(())
                },
            }),+],
        }),+];
    };
}

tables! {
    /// Who crawls; url and email are needed besides name before anything but loopback is fetched.
    agent: Agent {
        /// Product token in User-Agent and robots.txt (RFC 9309 section 2.2.1).
        /// Site owners address rules to it, so it never changes within a crawl.
        name: String = "", Kind::Text(TextForm::Token);
        /// A page that says what the crawl is for.
        /// Whoever finds it in a log decides by it whether to block.
        url: String = "", Kind::Text(TextForm::WebAddress);
        /// Where site owners write to.
        /// A complaint that reaches you comes before one that reaches your provider.
        email: String = "", Kind::Text(TextForm::MailAddress);
    }

    /// Which CPUs, and how much in all.
    crawl: Crawl {
        /// CPUs of the shards; empty: all that the process was given.
        /// Leave the CPUs that serve the network card's interrupts out.
        cpus: String = "", Kind::Text(TextForm::Cpus);
        /// Number of shards; 0: one per CPU.
        /// More than one per CPU only makes them wait for each other.
        shards: u32 = "0", Kind::Number(0, 1024);
        /// Seed of every random choice; 0: drawn at the start of a new crawl and kept in its directory.
        /// The same seed on the same web repeats a crawl's order, which is how faults are found.
        rng_seed: u64 = "0", Kind::Number(0, i64::MAX);
        /// Stop after this many stored pages; 0: no limit.
        pages_max: u64 = "0", Kind::Number(0, i64::MAX);
        /// Stop after this time; "0s": no limit.
        time_max: Duration = "0s", time("0s", "87600h");
    }

    /// Which links are followed.
    scope: Scope {
        /// Everything, the seeds' sites, or the seeds' hosts.
        follow: Follow = "all", Kind::Choice(Follow::CHOICES);
        /// Links followed from a seed at most.
        /// Ends traps that go ever deeper; Heritrix stops at 20, which loses parts of large sites.
        depth_max: u16 = "100", Kind::Number(0, 1_022);
        /// Redirects followed in a row.
        /// Ends servers that redirect for ever; browsers stop at 20 (Fetch standard, HTTP-redirect fetch).
        redirects_max: u16 = "20", Kind::Number(0, 62);
        /// Longest URL followed, in bytes.
        /// Beyond 2 KiB there are mostly session states and traps; servers need only take 8,000 (RFC 9110 section 4.1).
        url_bytes_max: usize = "2KiB", size("64B", "64KiB");
    }

    /// How sites are given to shards.
    partition: Partition {
        /// What stays together on one shard: a registrable domain, or a host.
        /// By host spreads a few large sites over all CPUs, by site keeps more links local.
        key: PartitionKey = "site", Kind::Choice(PartitionKey::CHOICES);
    }

    /// Delays and retries.
    politeness: Politeness {
        /// From the end of one request to a host to the start of the next.
        /// BUbiNG warns below 1s that it will disturb people; "0s" is for your own servers.
        host_delay: Duration = "1s", time("0s", "24h");
        /// The same for an IP address, across hosts and shards.
        /// One machine serves thousands of hosts, and it is the machine that suffers.
        ip_delay: Duration = "100ms", time("0s", "24h");
        /// Crawl-delay of robots.txt is obeyed up to this.
        /// Some files ask for a day: such a host would never be finished.
        crawl_delay_max: Duration = "60s", time("0s", "24h");
        /// Tries of one URL after the first, for transient failures.
        retries_max: u8 = "4", Kind::Number(0, 100);
        /// Wait before the first retry; doubles each time.
        /// With 4 retries the last comes after two and a half minutes: a restart is over by then.
        retry_delay: Duration = "10s", time("0s", "24h");
        /// Failures in a row after which a host's queue is given up.
        host_failures_max: u32 = "20", Kind::Number(1, 1_000_000);
        /// Retry-After is obeyed up to this (RFC 9110 section 10.2.3).
        retry_after_max: Duration = "24h", time("0s", "720h");
    }

    /// robots.txt.
    robots: Robots {
        /// Bytes that are parsed; the rest is ignored.
        /// At least 500 KiB must be (RFC 9309 section 2.5).
        body_bytes_max: usize = "512KiB", size("500KiB", "16MiB");
        /// How long rules are used.
        /// No more than 24 hours unless the file is unreachable (RFC 9309 section 2.4).
        ttl: Duration = "24h", time("1m", "24h");
        /// How long "unreachable" holds before it is asked again.
        retry_delay: Duration = "10m", time("1s", "24h");
        /// Tries before an unreachable robots.txt's queue is given up.
        retries_max: u8 = "4", Kind::Number(0, 100);
        /// Redirects followed.
        /// Five at least should be (RFC 9309 section 2.3.1.2).
        redirects_max: u8 = "5", Kind::Number(0, 20);
        /// Bytes of rules held in memory, all shards together; above it the oldest are dropped and asked for again.
        /// A host's rules are about a kilobyte: too little here costs a request for robots.txt before every page.
        ram_bytes_max: u64 = "512MiB", size("64KiB", "16TiB");
    }

    /// Name resolution.
    dns: Dns {
        /// Recursive servers, port 53 unless given; none: those of /etc/resolv.conf.
        /// A resolver on this machine is best: a broad crawl asks millions of names.
        servers: Vec<SocketAddr> = "[]", Kind::Servers;
        /// Names answered without asking.
        hosts: BTreeMap<String, Vec<IpAddr>> = "{}", Kind::Hosts;
        /// One query, all retries included.
        timeout: Duration = "5s", time("10ms", "5m");
        /// Names asked for at once per shard, besides the fetches.
        /// Resolvers drop what comes faster than they can walk the tree.
        in_flight_max: usize = "256", Kind::Number(1, 65_536);
        /// Which addresses of a name are asked for and tried, in which order.
        /// Nearly every host has IPv4 and not every machine a way to IPv6: the second family is asked for only where
        /// the first has no address, or none that connects.
        families: Families = "ipv4-first", Kind::Choice(Families::CHOICES);
        /// Queries a second, all shards together; 0: no cap.
        /// A resolver that is shared with others should not feel the crawl.
        rate_max: u32 = "0", Kind::Number(0, 10_000_000);
        /// Answers are used at least this long.
        /// Keeps names with a time to live of seconds from being asked for every page.
        ttl_min: Duration = "60s", time("0s", "24h");
        /// Answers are used at most this long.
        ttl_max: Duration = "24h", time("1s", "168h");
        /// That a name has no address is believed at least this long, and when the answer does not say how long.
        negative_ttl_min: Duration = "60s", time("0s", "24h");
        /// That a name has no address is believed at most this long.
        /// One to three hours work well, more than a day does not (RFC 2308 section 5).
        negative_ttl_max: Duration = "3h", time("1s", "24h");
        /// While no name server answers, addresses are used this much longer than their time to live.
        /// An outage of the name servers need not be one of the crawl (RFC 8767).
        stale_max: Duration = "1h", time("0s", "168h");
    }

    /// Limits on one exchange with a server.
    fetch: Fetch {
        /// From the first SYN to the established connection.
        /// Linux sends the SYN again after 1, 3 and 7 seconds: 10 s give three more chances.
        connect_timeout: Duration = "10s", time("10ms", "5m");
        /// How long an address has to answer before a further one of the same host is tried beside it.
        /// 250 ms are recommended, and never less than 100 (RFC 8305 section 5).
        attempt_delay: Duration = "250ms", time("100ms", "5m");
        /// The TLS handshake.
        tls_timeout: Duration = "10s", time("10ms", "5m");
        /// From the last request byte to the first response byte.
        first_byte_timeout: Duration = "20s", time("10ms", "10m");
        /// The whole exchange from connect to the last body byte.
        /// A server that sends a byte a second holds a place no longer than this.
        deadline: Duration = "60s", time("10ms", "24h");
        /// A body that comes more slowly is cut and marked; "0B": any rate will do. Bytes a second.
        /// Apache asks as much of its own clients (mod_reqtimeout); a page of 16 KiB takes half a minute then.
        rate_min: u64 = "500B", size("0B", "1GiB");
        /// How long a body may be slower than that, at its beginning and after any pause.
        rate_grace: Duration = "20s", time("100ms", "10m");
        /// Status line and fields together.
        header_bytes_max: usize = "64KiB", size("1KiB", "1MiB");
        /// Fields of a head.
        header_count_max: usize = "256", Kind::Number(8, 4_096);
        /// Interim responses (1xx) before the final one.
        /// A server that sends them for ever would never answer; one or two are usual (RFC 9110 section 15.2).
        interim_count_max: usize = "16", Kind::Number(0, 1_000);
        /// Body before content decoding; the rest is cut and marked.
        body_wire_bytes_max: usize = "8MiB", size("1KiB", "1GiB");
        /// Body after content decoding; the rest is cut and marked.
        /// Bounds what a compression bomb can cost.
        body_bytes_max: usize = "16MiB", size("1KiB", "4GiB");
        /// How many times longer content decoding may make a body; the rest is cut and marked. 1 MiB is always free.
        /// Ends a bomb before it has cost body_bytes_max. Pages shrink to a tenth; Apache's mod_deflate draws the same line.
        decode_ratio_max: usize = "200", Kind::Number(10, 1_000_000);
        /// Fetches under way per shard.
        in_flight_max: usize = "1024", Kind::Number(1, 65_536);
        /// Idle keep-alive connections per shard; 0: none are kept.
        idle_connections_max: usize = "1024", Kind::Number(0, 65_536);
        /// An idle connection is closed after this.
        /// Apache closes after 5 seconds, nginx after 75; a race with their close costs a retry. A host with a longer delay
        /// than this is told to close right away.
        idle_timeout: Duration = "15s", time("0s", "1h");
        /// Whether private, link-local, loopback and other special addresses may be fetched.
        /// A link to 169.254.169.254 must not read your cloud's secrets.
        private_addresses: PrivateAddresses = "deny", Kind::Choice(PrivateAddresses::CHOICES);
        /// Addresses of this machine that connections come from, one after another, each for peers of its family.
        /// None: the system chooses. One address has some 28,000 ports for all connections to one peer.
        source_addresses: Vec<IpAddr> = "[]", Kind::Addresses;
        /// Ports that connections come from; "": the system's (net.ipv4.ip_local_port_range). Linux 6.3 or later.
        /// Keeps a crawl's ports apart from those of other programs, for firewalls and for counting.
        source_ports: String = "", Kind::Text(TextForm::Ports);
        /// Receive buffer of a socket in the kernel, which doubles it; "0B": the kernel fits it to the connection.
        /// A small one bounds what a flood can hold there before it is read: see net.ipv4.tcp_rmem.
        receive_buffer_bytes: u32 = "0B", size("0B", "64MiB");
        /// Send buffer of a socket in the kernel, which doubles it; "0B": the kernel's own. A request is below 16 KiB.
        send_buffer_bytes: u32 = "0B", size("0B", "64MiB");
    }

    /// A proxy between the crawler and the web. fetch.private_addresses judges the peer behind it, not the proxy.
    proxy: Proxy {
        /// Where it is; "": there is none. Its name is looked up once, at the start.
        /// An HTTP proxy gets http pages by their whole URL and https by CONNECT (RFC 9112 section 3.2).
        url: Secret = "", Kind::Text(TextForm::Proxy);
        /// Who looks up the names of the web's hosts.
        names: ProxyNames = "here", Kind::Choice(ProxyNames::CHOICES);
    }

    /// What requests carry besides the URL.
    http: Http {
        /// User name and password for Basic authentication, by origin: scheme, host and port.
        /// Sent to that origin alone, also when a redirect leads elsewhere, and kept out of what is stored.
        auth: BTreeMap<String, Secret> = "{}", Kind::Logins;
        /// Whether cookies that servers set are sent back to them (RFC 6265).
        /// A crawl has nobody to remember: cookies are for sites that show nothing without them.
        cookies: Cookies = "off", Kind::Choice(Cookies::CHOICES);
        /// Cookies of a site; the oldest make room.
        /// Clients should keep 50 of a domain (RFC 6265 section 6.1).
        cookie_count_max: usize = "50", Kind::Number(1, 1_000);
        /// Bytes of one cookie: name, value, domain and path; a longer one is ignored.
        /// Clients should take 4,096 (RFC 6265 section 6.1).
        cookie_bytes_max: usize = "4KiB", size("64B", "64KiB");
        /// Bytes of all cookies in memory, per shard; sites that were asked for nothing for longest are forgotten.
        cookie_ram_bytes_max: usize = "16MiB", size("64KiB", "64GiB");
    }

    /// TLS: certificates, and what is remembered of hosts.
    tls: Tls {
        /// What a certificate error means.
        certificates: Certificates = "verify", Kind::Choice(Certificates::CHOICES);
        /// PEM files with more roots, besides those of Mozilla that are built in.
        ca_files: Vec<PathBuf> = "[]", Kind::Files;
        /// Hosts whose TLS sessions are kept per shard, to be resumed; 0: none are.
        /// Of each the newest two tickets are kept, with their certificates: 5 KB of two small ones, 256 KiB at worst.
        sessions_max: usize = "4096", Kind::Number(0, 1_000_000);
        /// Certificate chains remembered per shard as verified, until they expire; 0: none are.
        /// About 150 bytes each. Another host with the same certificates, or the same host without a session, costs
        /// only the key exchange and a signature then: with ECDSA a quarter to a half of the handshake.
        chains_max: usize = "32768", Kind::Number(0, 10_000_000);
    }

    /// Link extraction.
    links: Links {
        /// Links taken from one page; more are counted and dropped.
        page_links_max: usize = "10000", Kind::Number(0, 1_000_000);
        /// What is looked through for links.
        /// Feeds and sitemaps name pages that no page links to yet.
        documents: Documents = "all", Kind::Choice(Documents::CHOICES);
        /// Which sitemaps are fetched, besides those that a page links to.
        /// They make a crawl broader: most name all that a site has, and none of it is near a seed.
        sitemaps: Sitemaps = "off", Kind::Choice(Sitemaps::CHOICES);
    }

    /// URLs between shards.
    exchange: Exchange {
        /// Size of the ring from one shard to another, at most.
        /// There are shards × (shards − 1) of them, which rings_bytes_max bounds together.
        ring_bytes: usize = "256KiB", size("4KiB", "256MiB");
        /// Size of all rings together: with many shards each ring is smaller.
        /// None is smaller than four times scope.url_bytes_max, whatever their number.
        rings_bytes_max: usize = "64MiB", size("64KiB", "64GiB");
        /// A batch is sent when it holds this many URLs.
        batch_urls_max: usize = "512", Kind::Number(1, 65_536);
        /// Batches are sent at every multiple of this, by all shards at once.
        batch_age_max: Duration = "100ms", time("0s", "1m");
        /// Batches waiting for a full ring are held in memory up to this per shard, then on disk.
        waiting_bytes_max: usize = "16MiB", size("64KiB", "16GiB");
    }

    /// URLs seen.
    visited: Visited {
        /// URLs remembered in all shards together; further ones are set aside on disk.
        /// Each costs memory for its fingerprint, so this bounds the largest table of the process.
        urls_max: u64 = "100_000_000", Kind::Number(1_000, 1_000_000_000_000);
        /// URLs that differ in a session id: PHPSESSID=, ;jsessionid= and their like, with a value that looks like one.
        /// Servers that put one into every link are endless without this; a URL is fetched as it was found in any case.
        session_ids: Difference = "count", Kind::Choice(Difference::CHOICES);
        /// URLs that differ in the parameters of tracking_parameters.
        /// Mails and advertisements mark their links, and each mark is another URL of the same page.
        tracking: Difference = "count", Kind::Choice(Difference::CHOICES);
        /// Names of these parameters, in any letter case; NAME* stands for all that begin so.
        /// These are of mails and advertisements, and no page's content depends on them. Used where tracking is "ignore".
        tracking_parameters: Vec<String> = "utm_*,gclid,gbraid,wbraid,dclid,fbclid,msclkid,yclid,igshid,mc_cid,mc_eid", Kind::Names;
        /// URLs that have the same parameters in another order.
        /// The order of several with one name counts all the same.
        parameter_order: Difference = "count", Kind::Choice(Difference::CHOICES);
        /// A folder and its index page: /d/ and /d/index.html, index.php, default.asp and their like.
        index_pages: Difference = "count", Kind::Choice(Difference::CHOICES);
    }

    /// URLs waiting.
    frontier: Frontier {
        /// Bytes of queued URLs held in memory, all shards together; the rest is on disk.
        ram_bytes_max: u64 = "1GiB", size("1MiB", "16TiB");
        /// URLs of one host that stay in memory when its queue spills.
        /// So many requests can be made before the disk is asked again.
        host_head_urls: usize = "64", Kind::Number(1, 65_536);
        /// Hosts in memory, all shards together; URLs of further ones wait on disk until a host has no more URLs.
        /// Each costs about a kilobyte. A host that was forgotten is met anew, with its robots.txt first.
        hosts_max: u64 = "4_000_000", Kind::Number(1_000, 1_000_000_000);
    }

    /// Segments of what was crawled.
    store: Store {
        /// A segment is closed when it is this long.
        /// Small enough to move and verify one, large enough that there are few.
        segment_bytes_max: u64 = "1GiB", size("1MiB", "1TiB");
        /// zstd level of the records.
        /// Higher levels save disk at the price of CPU time that the shard's fetches need.
        zstd_level: i32 = "1", Kind::Number(-7, 19);
        /// Media types of the bodies that are stored, separated by commas; robots.txt always is.
        /// Other responses are fetched, looked through and counted (not_stored), but there is no record of them.
        types: String = "*/*", Kind::Text(TextForm::MediaTypes);
    }
}

choices! {
    /// `scope.follow`
    Follow {
        /// every link
        All = "all",
        /// links to sites of the seeds
        SeedSites = "seed-sites",
        /// links to hosts of the seeds
        SeedHosts = "seed-hosts",
    }
    /// `links.documents`
    Documents {
        /// HTML, feeds, XML sitemaps, and lines of text that are URLs
        All = "all",
        /// HTML, feeds and XML sitemaps
        Xml = "xml",
        /// HTML alone
        Html = "html",
    }
    /// `links.sitemaps`
    Sitemaps {
        /// none
        Off = "off",
        /// those that robots.txt names
        Robots = "robots",
    }
    /// `partition.key`
    PartitionKey {
        /// the registrable domain
        Site = "site",
        /// the host name
        Host = "host",
    }
    /// `dns.families`
    Families {
        /// IPv4, and IPv6 where that is not to be had
        Ipv4First = "ipv4-first",
        /// IPv6, and IPv4 where that is not to be had
        Ipv6First = "ipv6-first",
        /// IPv4 and nothing else
        Ipv4Only = "ipv4-only",
        /// IPv6 and nothing else
        Ipv6Only = "ipv6-only",
    }
    /// `visited.session_ids`, `tracking`, `parameter_order`, `index_pages`
    Difference {
        /// each is a page of its own
        Count = "count",
        /// they are one page, and the first that was found is fetched
        Ignore = "ignore",
    }
    /// `fetch.private_addresses`
    PrivateAddresses {
        /// only globally reachable addresses
        Deny = "deny",
        /// loopback besides, and nothing else that is special
        Loopback = "loopback",
        /// loopback, and nothing else at all
        LoopbackOnly = "loopback-only",
        /// every address
        Allow = "allow",
    }
    /// `http.cookies`
    Cookies {
        /// cookies are ignored
        Off = "off",
        /// each site gets its own back, until the process ends
        Site = "site",
    }
    /// `proxy.names`
    ProxyNames {
        /// the crawler; tunnels go to the address it found and judged
        Here = "here",
        /// the proxy; then politeness.ip_delay and fetch.private_addresses know addresses in URLs alone
        Proxy = "proxy",
    }
    /// `tls.certificates`
    Certificates {
        /// the fetch fails
        Verify = "verify",
        /// the fetch goes on and the error is stored in the page's metadata record
        Record = "record",
    }
}
