//! The one list of keys: type, default, range and reason of each.
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
use std::sync::Arc;

use super::choices::*;
use super::hierarchy::Hierarchy;
use super::host_lines::HostLines;
use super::hours::Hours;
use super::kind::{Kind, size, time};
use super::operators::OperatorFiles;
use super::record_kinds::RecordKinds;
use super::retry_rule::RetryRule;
use super::secret::Secret;
use super::signing_key::SigningSecret;
use super::text::TextForm;
use super::value::{Field, OrNever, Value};
use ringcrawl_base::time::Duration;
use ringcrawl_html::MediaRanges;

/// One table of the file.
pub(super) struct Table {
    /// Its name.
    pub(super) name: &'static str,
    /// What it is about, a line each.
    pub(super) docs: &'static [&'static str],
    /// Its keys, in the order of the example.
    pub(super) keys: &'static [ConfigKey],
}

/// One key of the file.
pub(super) struct ConfigKey {
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

impl ConfigKey {
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

/// Most shards of a crawl.
pub const SHARDS_MAX: u16 = 1024;

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
            keys: &[$(ConfigKey {
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
    /// Identifies the crawler. Unless name, url and email are all set, only loopback is fetched.
    agent: Agent {
        /// Product token in User-Agent and robots.txt (RFC 9309 section 2.2.1).
        /// Site owners address rules to it, so it never changes within a crawl.
        name: String = "", Kind::Text(TextForm::Token);
        /// A page that says what the crawl is for.
        /// Site owners who find the crawl in a log read it before they decide whether to block.
        url: String = "", Kind::Text(TextForm::WebAddress);
        /// Where site owners can write.
        /// People who can reach you need not complain to your provider.
        email: String = "", Kind::Text(TextForm::MailAddress);
        /// Whether requests say in From whom to write to: agent.email (RFC 9110 section 10.1.2).
        /// A robot should send it, so that readers of a log have an address.
        from: SentFrom = "on", Kind::Choice(SentFrom::CHOICES);
    }

    /// Lets others verify the crawler: signed requests (Web Bot Auth), and what `ringcrawl identity` publishes.
    /// See docs/IDENTITY.md.
    identity: Identity {
        /// Who runs the crawl, as the bot page names them: a person or an organization.
        operator: String = "", Kind::Text(TextForm::Line);
        /// What the crawl is for and what becomes of the pages, in a sentence or two, for the bot page and bot.json.
        purpose: String = "", Kind::Text(TextForm::Line);
        /// Addresses that the crawl comes from, for the bot page and addresses.json; none: there are no fixed ones.
        addresses: Vec<String> = "[]", Kind::Networks;
        /// The private key that requests are signed with (Ed25519, PEM or JWK); "": nothing is signed.
        /// `ringcrawl identity keygen FILE` makes one. A file that others than its owner can read is refused.
        signing_key: SigningSecret = "", Kind::SigningKey;
        /// Where the public keys are, named in Signature-Agent: the URL of the file that `ringcrawl identity` writes.
        directory_url: String = "", Kind::Text(TextForm::SecureAddress);
        /// How Signature-Agent is written. The draft says dictionary; string is what Cloudflare documents.
        signature_agent_form: SignatureAgentForm = "dictionary", Kind::Choice(SignatureAgentForm::CHOICES);
        /// How long a signature is valid; ringcrawl makes a new one after half of that.
        /// Anyone who sees a signature can reuse it for the same host until then; at most a day is recommended. It costs about 8 µs of CPU time.
        signature_lifetime: Duration = "1h", time("1m", "24h");
        /// Which requests are signed.
        /// Over http, everyone on the path can copy the signature, and it is valid for the host's https pages too.
        sign: SignedRequests = "https", Kind::Choice(SignedRequests::CHOICES);
        /// Bytes of signatures in memory, all shards together: about 260 for each host. Further hosts are signed each time.
        ram_bytes_max: u64 = "64MiB", size("0B", "16TiB");
    }

    /// Which CPUs, and how much to crawl.
    crawl: Crawl {
        /// CPUs of the shards; empty: all that the process may use.
        /// Omit the CPUs that serve the network card's interrupts.
        cpus: String = "", Kind::Text(TextForm::Cpus);
        /// Number of shards; 0: one per CPU.
        /// With more than one per CPU they only wait for each other.
        shards: u32 = "0", Kind::Number(0, SHARDS_MAX as i64);
        /// Memory of the process, which its shards share equally; "0B": three quarters of what the machine, the control group
        /// (MemoryMax=) or the limit of address space allows.
        /// The crawl stays within it, whatever servers send. Other limits are lowered to fit; the start prints this.
        ram_bytes_max: u64 = "0B", size("0B", "16TiB");
        /// Seeds every random choice; 0: drawn when a new crawl starts and kept in its directory.
        /// The same number on the same web repeats a crawl's order, which helps debugging.
        rng_seed: u64 = "0", Kind::Number(0, i64::MAX);
        /// Rounds: each is a crawl of the sites or hosts of all seeds (scope.follow), and the links that leave it are seeds of the next.
        /// With 2 or more, scope.follow cannot be "all". A stopped crawl continues in its round; see docs/SEEDS.md.
        rounds: u32 = "1", Kind::Number(1, 1_000);
        /// Stop after this many stored pages; 0: no limit.
        pages_max: u64 = "0", Kind::Number(0, i64::MAX);
        /// Bytes a second that responses may bring on average, all shards together; "0B": no limit.
        /// Each shard has an equal share. TLS, TCP and name servers add about 5 %.
        bandwidth_max: u64 = "0B", size("0B", "1TiB");
        /// Hours of the day (UTC) in which fetches may begin; empty: all.
        /// Outside these hours fetches in flight end, and nothing is lost.
        hours: Option<Hours> = "", Kind::Text(TextForm::Hours);
        /// Stop after this time; "0s": no limit.
        time_max: Duration = "0s", time("0s", "87600h");
    }

    /// Where the crawl begins; the seeds themselves are arguments, and files of --seeds.
    seeds: Seeds {
        /// What to do with lines of a list that are not seeds, and with seeds that are out of scope.
        errors: SeedErrors = "refuse", Kind::Choice(SeedErrors::CHOICES);
    }

    /// Which links are followed.
    scope: Scope {
        /// Everything, the seeds' sites, or the seeds' hosts.
        follow: Follow = "all", Kind::Choice(Follow::CHOICES);
        /// Most links followed from a seed.
        /// Ends traps that get deeper and deeper. Heritrix stops at 20, which loses parts of large sites. At most 255 are counted:
        /// 255 means no limit.
        depth_max: u16 = "100", Kind::Number(0, 255);
        /// Most redirects followed in a row.
        /// Servers may redirect forever; browsers stop at 20 (Fetch standard, HTTP-redirect fetch). For embeds at most 9
        /// are followed.
        redirects_max: u16 = "20", Kind::Number(0, 20);
        /// Longest URL followed, in bytes.
        /// Longer URLs are mostly session state and traps; servers need only accept 8,000 bytes (RFC 9110 section 4.1).
        url_bytes_max: usize = "2KiB", size("64B", "64KiB");
        /// Whether URLs at ports of other protocols (Fetch standard, port blocking) and of data stores and the like are crawled.
        /// A link may name any port of any machine.
        bad_ports: BadPorts = "deny", Kind::Choice(BadPorts::CHOICES);
        /// A file of rules that say which URLs are queued, fetched, looked through and stored; see docs/SCOPE.md.
        /// If no rule matches, follow decides.
        rules: String = "", Kind::Text(TextForm::File);
        /// Block lists: hosts, .suffixes, URLs, URL prefixes and address ranges that are never requested, one a line; also
        /// hosts files, also packed with gzip. An entry takes about 30 bytes of memory in addition to crawl.ram_bytes_max, and 50 more while
        /// lists are read again.
        block: Vec<PathBuf> = "[]", Kind::Files;
        /// Memory that entries may take while they are read; lists with more are refused. A small file that is packed may unpack to any
        /// length.
        block_ram_bytes_max: usize = "1GiB", size("1MiB", "1TiB");
        /// What to do with a list that has unreadable lines.
        block_errors: BlockErrors = "refuse", Kind::Choice(BlockErrors::CHOICES);
        /// What to do with rules or a list that have lost more than half of their entries at a reload.
        /// A file that is being written looks like that, and URLs that it does not block yet would be requested.
        halved: Halved = "hold", Kind::Choice(Halved::CHOICES);
    }

    /// What a host and a site (registrable domain) may cost; seeds may have options of their own, see docs/SEEDS.md.
    /// URLs beyond it end as over-budget, without a request; --retry-failed retries them under a larger budget.
    budget: Budget {
        /// Pages of a host: responses of status 2xx; 0: no bound.
        host_pages_max: u32 = "0", Kind::Number(0, 4_294_967_295);
        /// Bytes that responses of a host may bring; "0B": no bound. What is in flight then still ends.
        host_bytes_max: u64 = "0B", size("0B", "16TiB");
        /// Time since the first request to a host, by the wall clock, also while the crawl is stopped; "0s": no bound.
        host_time_max: Duration = "0s", time("0s", "87600h");
        /// Pages of a site. A wildcard domain with a thousand hosts is one.
        site_pages_max: u32 = "0", Kind::Number(0, 4_294_967_295);
        /// Bytes of a site.
        site_bytes_max: u64 = "0B", size("0B", "16TiB");
        /// Time since the first request to a site.
        site_time_max: Duration = "0s", time("0s", "87600h");
        /// Pages that a site has before URLs of others, plus those that site_pages_per_linking_site adds; its further ones wait behind
        /// all others. Sites of seeds are exempt.
        /// A spam site has endless new pages, and few sites link to it.
        site_pages_free: u32 = "10_000", Kind::Number(0, 4_294_967_295);
        /// Additional pages for each other site that links to it; 0 turns allowances off. Only where a site is on one shard.
        site_pages_per_linking_site: u32 = "1_000", Kind::Number(0, 4_294_967_295);
        /// Bytes of what hosts and sites have cost, and of which sites link to them, all shards together: 80 for each.
        /// Sites without room have no budget, except for their seeds' own; budget_uncounted in the summary counts them.
        ram_bytes_max: u64 = "256MiB", size("0B", "16TiB");
    }

    /// How URLs are assigned to shards.
    partition: Partition {
        /// Decides which shard a URL belongs to. All but "host-hash", "url-hash" and "vector" keep a site on one shard, and so
        /// more links local; "host-hash" spreads a few large sites over all CPUs, "url-hash" even one host. "dynamic" gives a site to the
        /// shard with the least to do when it is first seen, with exchange.mode = "exchange" or "firewall".
        /// Fixed for a crawl, with what the other keys here say of it.
        by: PartitionBy = "site-hash", Kind::Choice(PartitionBy::CHOICES);
        /// The assignment for "vector": plain, or packed with gzip or zstd. A link that is not in it is followed by the shard that finds
        /// them, so two shards may fetch the same page. The crawl has the assignment's number of shards.
        vector: String = "", Kind::Text(TextForm::File);
        /// Bytes of memory for it, once for all shards, some 20 for a line; for "dynamic", 8 to 16 for a site, taken when the first one
        /// comes; and for sites that were moved, some 120 for each that is looked at, the larger ones first.
        ram_bytes_max: u64 = "64MiB", size("1KiB", "512GiB");
        /// Groups of top-level domains for "hierarchical", with a bar between them. All others are one more group, and each group
        /// has the same number of shards.
        domains: Arc<Hierarchy> = "com | net", Kind::Text(TextForm::Domains);
        /// Points of each shard on the circle of "consistent": its load differs from the mean by some 1 / √replicas.
        replicas: u16 = "128", Kind::Number(1, 4_096);
        /// What to do with sites on a shard that has far more waiting URLs than others.
        /// To move them the crawl drains, rewrites its logs (about a second for a million URLs), and continues: a pause as long as the
        /// slowest fetch in flight. As after any restart, each host's robots.txt is then fetched again, and what was kept only in memory
        /// is learned again, even if no site moves. A shard without room for URLs gets no site.
        /// Only with exchange.mode = "exchange", and where a rule has a site on one shard.
        balance: Balance = "off", Kind::Choice(Balance::CHOICES);
        /// Sites move from a shard that has this many percent of the mean of waiting URLs; below 100 a shard.
        balance_above: u32 = "150", Kind::Number(105, 100_000);
        /// And this many more than the mean: a few would be fetched sooner than moved.
        balance_urls_min: u64 = "100_000", Kind::Number(1, i64::MAX);
        /// Time between two such pauses; doubled after each one that helped little.
        balance_interval: Duration = "1h", time("1s", "720h");
    }

    /// Delays and retries.
    politeness: Politeness {
        /// From the end of one request to a host to the start of the next.
        /// BUbiNG warns that less than 1s will disturb people. "0s" is for your own servers. The delays below also apply to each
        /// host: with one shorter than site_delay, a host is requested as often as its site.
        host_delay: Duration = "1s", time("0s", "24h");
        /// The same for a site (registrable domain), across hosts and shards.
        /// A site with a thousand hosts is mostly one operator's, and often one machine's behind many addresses.
        site_delay: Duration = "250ms", time("0s", "24h");
        /// The same for an IP address (of IPv6 a /64), across hosts and shards.
        /// One machine may serve thousands of hosts, and the load is the machine's.
        ip_delay: Duration = "100ms", time("0s", "24h");
        /// The same for each of an operator's group's slots, across hosts and shards: see group_slots and operators.
        /// A CDN can bear a lot, and takes a crawler that asks thousands of its sites at once for an attack.
        group_delay: Duration = "100ms", time("0s", "24h");
        /// Requests to one operator's group at once: each site belongs to one of these slots.
        /// With responses of 100 ms, 256 slots and the default delay let 1,280 requests a second to one operator.
        group_slots: u32 = "256", Kind::Number(1, 65_536);
        /// Files with further operators: a line each of a name and an address range, or a dot and a suffix of the names that hosts
        /// are aliases of (CNAME).
        /// Built in by address ranges: automattic, cloudflare, fastly, github, imperva, shopify, squarespace, sucuri, vercel, weebly.
        /// By aliases alone, so without hosts that are none: akamai, azure, bunny, cloudfront, gcore, google, herokudns, netlify,
        /// stackpath, tumblr, wix. Machines rented from clouds and hosting companies are in no group.
        operators: OperatorFiles = "[]", Kind::Files;
        /// A new host gets this many times its delay until it has answered twice; 1: its normal delay.
        /// Its capacity is not known yet.
        slow_start: u32 = "2", Kind::Number(1, 64);
        /// After a response a host rests for this many times the response time, if that is longer than its delay; 0: off.
        /// A slow server is a busy one. Heritrix uses a factor of five. A host_delay of 0s, also in a host's line, stays 0s.
        response_factor: u32 = "2", Kind::Number(0, 100);
        /// Upper bound on that rest.
        response_delay_max: Duration = "30s", time("0s", "24h");
        /// Crawl-delay in robots.txt is obeyed up to this.
        /// Some files ask for a day; such a host would never be finished.
        crawl_delay_max: Duration = "60s", time("0s", "24h");
        /// What to do with URLs whose robots.txt asks for a longer Crawl-delay.
        /// A request a minute loads no server, no standard defines Crawl-delay, and a site can exclude crawlers: hence "cap".
        /// With "skip" no host gets a request sooner than it asks, and the URLs end as crawl-delay-too-long.
        crawl_delay_above: CrawlDelayAbove = "cap", Kind::Choice(CrawlDelayAbove::CHOICES);
        /// Retries of one URL after transient failures.
        retries_max: u8 = "4", Kind::Number(0, 100);
        /// Wait before the first retry; doubles each time.
        /// With 4 retries the last comes after two and a half minutes; by then a server's restart is over.
        retry_delay: Duration = "10s", time("0s", "24h");
        /// Failures in a row after which all that is queued for an origin (scheme, host and port) is given up.
        /// A port that never answered has three tries while another origin of its host works. 429 and 503 for
        /// different URLs in a row cost no URL a try, until this many have come over six hours: then the host is given up too.
        host_failures_max: u32 = "20", Kind::Number(1, 1_000_000);
        /// Retry-After is obeyed up to this (RFC 9110 section 10.2.3).
        retry_after_max: Duration = "24h", time("0s", "720h");
        /// After a 429 or 503 without Retry-After a host rests for retry_delay. One for another URL within 64
        /// responses doubles that rest, up to backoff_max, and the host's delay. Every 16 clean responses halve them again.
        backoff_max: Duration = "1h", time("0s", "24h");
        /// Agreements with owners of single hosts, a table for each. The first one that matches a host applies.
        /// match: www.example.org; .example.org, for it and all below it; or *.example.org, for those below it.
        /// mine: true for your own hosts. They have a delay of 0s and a concurrency of 8 from the start, unless the line says otherwise.
        /// Slow responses add no delay. The delays of sites, addresses and operators do not apply to them, nor does
        /// fetch.private_addresses, unless it is "loopback-only". robots.txt, Crawl-delay, 429 and 503 apply as for any host.
        /// delay: instead of host_delay. A longer Crawl-delay, and rests after 429, 503 or slow responses, still apply.
        /// hours: of the day, in UTC, in which the host may be requested.
        /// concurrency: requests at once, 1 to 64, to a host that has answered twice, without a 429 or 503 since. The delays of its site and
        /// address then treat them as one request. Above 1, slow responses do not lengthen the delay.
        host: HostLines = "[]", Kind::HostLines;
    }

    /// How often and when URLs are retried, by cause. Each key takes a table of tries, delay before the first retry, factor by
    /// which each wait grows, and delay_max. Omitted values follow politeness.retries_max and retry_delay
    /// for all classes, with a factor of 2 and waits of at most a day. Permanent failures are never retried
    /// again: certificates, versions, a name that does not exist. Origins that fail in a row also rest, and so do hosts that answer 429 or 503.
    retry: Retry {
        /// No name server resolved the name: an error, or no answer.
        /// Growing waits give name servers time to recover.
        name: RetryRule = "{}", Kind::Retry;
        /// No connection: refused, unreachable, no answer.
        /// A restarting server is back within minutes; a machine that is gone costs a connection for each try.
        connect: RetryRule = "{}", Kind::Retry;
        /// A handshake that broke or took too long, except for permanent reasons.
        /// Load balancers fail like this for a moment; a wrong configuration fails each time.
        tls: RetryRule = "{}", Kind::Retry;
        /// The connection broke before a response, or no response came in time. A response that was cut later is kept and not retried.
        /// A reset mostly passes at once; a page that takes too long often does so again.
        transfer: RetryRule = "{}", Kind::Retry;
        /// 500, 502 and 504.
        /// Many come from a deployment, which takes minutes; some pages fail forever.
        server: RetryRule = "{}", Kind::Retry;
        /// 429 and 503, which cost no URL its tries while a host answers everything with them.
        /// The host rests in any case for as long as Retry-After or its back-off says, and no URL is retried before.
        overload: RetryRule = "{}", Kind::Retry;
    }

    /// robots.txt.
    robots: Robots {
        /// Bytes that are parsed, after decoding; the rest is not read.
        /// RFC 9309 section 2.5 requires at least 500 KiB.
        body_bytes_max: usize = "512KiB", size("500KiB", "16MiB");
        /// How long rules are used before robots.txt is fetched again, unless its response states a shorter time.
        /// At most 24 hours, unless the file is unreachable (RFC 9309 section 2.4).
        ttl: Duration = "24h", time("1m", "24h");
        /// Shorter times that a response states (Cache-Control, Expires) count as this; robots.ttl wins where it is shorter.
        /// Many servers state no time for a file that hardly changes; at the default delay an hour is one request in 3,600.
        ttl_min: Duration = "1h", time("1m", "24h");
        /// How long rules stay valid past their time while robots.txt is unavailable; then everything is forbidden.
        /// Rules that were good yesterday are the best guess while a server is down (RFC 9309 section 2.3.1.4).
        stale_max: Duration = "24h", time("0s", "720h");
        /// How long after a failure robots.txt is fetched again. Where the connection was refused: as long as after the
        /// third failure at a page and the following ones ([retry] connect), if that is shorter.
        retry_delay: Duration = "10m", time("1s", "24h");
        /// Retries before the URLs that wait for an unreachable robots.txt are given up.
        retries_max: u8 = "4", Kind::Number(0, 100);
        /// Redirects followed.
        /// RFC 9309 section 2.3.1.2 recommends at least five.
        redirects_max: u8 = "5", Kind::Number(0, 20);
        /// Bytes of rules in memory, all shards together; above it the oldest are dropped and fetched again when needed.
        /// A host's rules are about a kilobyte. If this is too small, a robots.txt is fetched before every page.
        ram_bytes_max: u64 = "512MiB", size("64KiB", "16TiB");
    }

    /// Name resolution.
    dns: Dns {
        /// Recursive servers, port 53 unless given; none: those of /etc/resolv.conf.
        /// A resolver on this machine is best: a broad crawl looks up millions of names.
        servers: Vec<SocketAddr> = "[]", Kind::Servers;
        /// Names whose addresses are fixed here and never looked up.
        hosts: BTreeMap<String, Vec<IpAddr>> = "{}", Kind::Hosts;
        /// One lookup, all retries included.
        timeout: Duration = "5s", time("10ms", "5m");
        /// Lookups in flight per shard, in addition to fetches.
        /// Resolvers drop queries that come faster than they can answer.
        in_flight_max: usize = "256", Kind::Number(1, 65_536);
        /// Which address families are looked up and tried, and in which order.
        /// Nearly every host has IPv4, and not every machine can reach IPv6. The second family is looked up only if the
        /// first has no address, none that connects, or no server that resolves it.
        families: Families = "ipv4-first", Kind::Choice(Families::CHOICES);
        /// Queries a second, all shards together; 0: no cap.
        /// Protects a resolver that others use too.
        rate_max: u32 = "0", Kind::Number(0, 10_000_000);
        /// Answers are used at least this long.
        /// Without it, a name with a TTL of seconds would be looked up for every page.
        ttl_min: Duration = "60s", time("0s", "24h");
        /// Answers are used at most this long.
        ttl_max: Duration = "24h", time("1s", "168h");
        /// A denial (no such name, or no address) is kept at least this long, or this long if it does not say how long.
        negative_ttl_min: Duration = "60s", time("0s", "24h");
        /// A denial is kept at most this long.
        /// One to three hours work well; more than a day does not (RFC 2308 section 5).
        negative_ttl_max: Duration = "3h", time("1s", "24h");
        /// If the lookup of a host fails or takes long, its addresses are used this much longer than their TTL (RFC 8767).
        /// While no name server answers at all, fetching waits: see outage.
        stale_max: Duration = "1h", time("0s", "168h");
    }

    /// Limits on one exchange with a server.
    fetch: Fetch {
        /// From the first SYN to the established connection.
        /// Linux repeats the SYN after 1, 3 and 7 seconds, so 10 s allow three repeats.
        connect_timeout: Duration = "10s", time("10ms", "5m");
        /// How long an address has to connect before another address of the host is tried in parallel.
        /// RFC 8305 section 5 recommends 250 ms and never less than 100.
        attempt_delay: Duration = "250ms", time("100ms", "5m");
        /// The TLS handshake.
        tls_timeout: Duration = "10s", time("10ms", "5m");
        /// From the last request byte to the first response byte.
        first_byte_timeout: Duration = "20s", time("10ms", "10m");
        /// The whole exchange from connect to the last body byte.
        /// A server that sends a byte a second is held no longer than this.
        deadline: Duration = "60s", time("10ms", "24h");
        /// Bytes a second: a slower body is cut and marked; "0B": no limit.
        /// Apache requires as much of its own clients (mod_reqtimeout). A page of 16 KiB may then take half a minute.
        rate_min: u64 = "500B", size("0B", "1GiB");
        /// How long a body may be slower than rate_min, at its beginning and after any pause.
        rate_grace: Duration = "20s", time("100ms", "10m");
        /// Status line and fields together.
        header_bytes_max: usize = "64KiB", size("1KiB", "1MiB");
        /// Fields of a head.
        header_count_max: usize = "256", Kind::Number(8, 4_096);
        /// Interim responses (1xx) before the final one.
        /// A server that sends them forever would never answer; one or two are usual (RFC 9110 section 15.2).
        interim_count_max: usize = "16", Kind::Number(0, 1_000);
        /// Body before content decoding; the rest is cut and marked.
        body_wire_bytes_max: usize = "8MiB", size("1KiB", "1GiB");
        /// Body after content decoding; the rest is cut and marked.
        /// Bounds what a compression bomb can cost.
        body_bytes_max: usize = "16MiB", size("1KiB", "4GiB");
        /// How many times content decoding may enlarge a body; the rest is cut and marked. 1 MiB is always allowed.
        /// Ends a bomb before it costs body_bytes_max. Pages compress to a tenth; Apache's mod_deflate limits the same.
        decode_ratio_max: usize = "200", Kind::Number(10, 1_000_000);
        /// A response of at most this many bytes, and four times as many after decoding, is read in its shard's own turn.
        /// A longer one is read by a second thread of the shard, without delaying others. The worst 128 KiB take 10 ms.
        short_bytes_max: usize = "128KiB", size("0B", "1GiB");
        /// Fetches in flight per shard.
        in_flight_max: usize = "1024", Kind::Number(1, 65_536);
        /// Idle keep-alive connections per shard; 0: none are kept.
        idle_connections_max: usize = "1024", Kind::Number(0, 65_536);
        /// An idle connection is closed after this.
        /// Apache closes after 5 seconds, nginx after 75; a race with their close costs a retry. A host with at
        /// least this delay is asked to close right away.
        idle_timeout: Duration = "15s", time("0s", "1h");
        /// Whether the crawl may connect to private, link-local, loopback and other special addresses.
        /// A link to 169.254.169.254 must not read your cloud's secrets. "deny" also forbids what an interface of this machine
        /// has as an address, checked each minute.
        private_addresses: PrivateAddresses = "deny", Kind::Choice(PrivateAddresses::CHOICES);
        /// Addresses of this machine that connections come from, in turn, each for peers of its family.
        /// None: the system chooses. One address has some 28,000 ports for all connections to one peer.
        source_addresses: Vec<IpAddr> = "[]", Kind::Addresses;
        /// Ports that connections come from; "": the system's (net.ipv4.ip_local_port_range). Linux 6.3 or later.
        /// Keeps a crawl's ports apart from those of other programs, for firewalls and accounting.
        source_ports: String = "", Kind::Text(TextForm::Ports);
        /// Receive buffer of a socket in the kernel, which doubles it; "0B": the kernel sizes it for the connection.
        /// A small one bounds what a flood can fill before it is read: see net.ipv4.tcp_rmem.
        receive_buffer_bytes: u32 = "0B", size("0B", "64MiB");
        /// Send buffer of a socket in the kernel, which doubles it; "0B": the kernel's default. Requests are under 16 KiB.
        send_buffer_bytes: u32 = "0B", size("0B", "64MiB");
    }

    /// When our own network is down: fetching pauses, nothing is given up, and the crawl continues by itself afterwards.
    outage: Outage {
        /// Number of sites considered: those requested last.
        /// If fewer than sites_failed of those requested in the last hold_max are alive, the name servers and the default
        /// route are checked instead.
        sites: usize = "16", Kind::Number(8, 1_000);
        /// If this many of them fail, and at least half of these answered before, the network is down.
        sites_failed: usize = "14", Kind::Number(4, 1_000);
        /// A failure that an outage could explain counts no later than this.
        /// It counts as soon as enough other sites answer; on a crawl that is not very slow, that takes less than a second.
        hold_max: Duration = "60s", time("1s", "1h");
        /// Longest interval between two rounds of up to three tries during an outage; the first is 1s, and each is twice the one before.
        probe_max: Duration = "30s", time("1s", "1h");
        /// An outage as long as this ends the crawl, which can be resumed; "0s": it waits forever.
        wait_max: Duration = "0s", time("0s", "87600h");
    }

    /// A proxy between the crawler and the web. fetch.private_addresses applies to the peer behind it, not to the proxy.
    proxy: Proxy {
        /// Its address; "": no proxy. Its name is looked up once, at the start.
        /// An HTTP proxy gets http pages by absolute URL and https pages by CONNECT (RFC 9112 section 3.2).
        url: Secret = "", Kind::Proxy;
        /// Where the names of hosts are looked up: here or by the proxy.
        names: ProxyNames = "here", Kind::Choice(ProxyNames::CHOICES);
    }

    /// What requests carry in addition to the URL.
    http: Http {
        /// Accept of requests for pages: which media types are wanted, the best with the highest q (RFC 9110 section 12.5.1).
        /// Some servers also have a page as text/markdown; links are found in HTML. It does not change requests for robots.txt.
        accept: String = "text/html,application/xhtml+xml,*/*;q=0.8", Kind::Text(TextForm::Accept);
        /// User name and password for Basic authentication, by origin: scheme, host and port.
        /// Sent only to that origin, even when a redirect leads elsewhere, and never stored. A crawl's directory keeps
        /// { file = "/path" } and { credential = "name" } (systemd's LoadCredential=), but no password. None is printed, or
        /// taken from a command line.
        auth: BTreeMap<String, Secret> = "{}", Kind::Logins;
        /// Whether cookies that servers set are sent back to them (RFC 6265).
        /// A crawl has no user to remember. Cookies are for sites that show nothing without them.
        cookies: Cookies = "off", Kind::Choice(Cookies::CHOICES);
        /// Cookies of a site; the oldest are dropped.
        /// RFC 6265 section 6.1 recommends at least 50 for a domain.
        cookie_count_max: usize = "50", Kind::Number(1, 1_000);
        /// Bytes of one cookie: name, value, domain and path; a longer one is ignored.
        /// RFC 6265 section 6.1 recommends at least 4,096.
        cookie_bytes_max: usize = "4KiB", size("64B", "64KiB");
        /// Bytes of all cookies in memory, per shard; the least recently used sites are dropped.
        cookie_ram_bytes_max: usize = "16MiB", size("64KiB", "64GiB");
    }

    /// TLS: certificates, and what is remembered of hosts.
    tls: Tls {
        /// What a certificate error means.
        certificates: Certificates = "verify", Kind::Choice(Certificates::CHOICES);
        /// PEM files with further roots, in addition to Mozilla's, which are built in.
        ca_files: Vec<PathBuf> = "[]", Kind::Files;
        /// Hosts whose TLS sessions are kept per shard, to be resumed; 0: none.
        /// Each keeps its newest two tickets with their certificates: 5 KB with small certificates, 64 KiB at worst.
        sessions_max: usize = "4096", Kind::Number(0, 1_000_000);
        /// Certificate chains remembered per shard as verified, until they expire; 0: none.
        /// About 150 bytes each. Another host with the same certificates, or the same host without a session, then costs
        /// only the key exchange and a signature: with ECDSA a quarter to a half of the handshake.
        chains_max: usize = "32768", Kind::Number(0, 10_000_000);
    }

    /// Link extraction.
    links: Links {
        /// Links taken from one page, each URL once; more are dropped, and reported with the page.
        page_links_max: usize = "10000", Kind::Number(0, 1_000_000);
        /// Bytes of the URLs that one page may link to, each counted once; more are counted and dropped.
        /// A long base and ten thousand short references make 20 MB of 24 KB.
        page_link_bytes_max: usize = "1MiB", size("64KiB", "1GiB");
        /// The same as a multiple of the bytes received for the page; 64 KiB are always allowed.
        /// Relative references and compression make links longer than the page, but not by much.
        page_link_ratio_max: usize = "8", Kind::Number(1, 1_000_000);
        /// Which documents are searched for links.
        /// Feeds and sitemaps name pages that no page links to yet.
        documents: Documents = "all", Kind::Choice(Documents::CHOICES);
        /// Which sitemaps are fetched, in addition to those that a page links to.
        /// Sitemaps make a crawl broader: most list all pages of a site, however far from a seed.
        sitemaps: Sitemaps = "off", Kind::Choice(Sitemaps::CHOICES);
        /// Entries taken from one sitemap, if sitemaps is not "off"; more are counted and dropped. Otherwise the limits of a page apply.
        /// A sitemap may have 50,000 (sitemaps.org protocol).
        sitemap_links_max: usize = "50000", Kind::Number(0, 1_000_000);
        /// Bytes of the URLs that one sitemap may list, if sitemaps is not "off"; more are counted and dropped.
        /// 50,000 of 80 bytes. Bodies have their own limits: fetch.body_wire_bytes_max cuts longer sitemaps that are not compressed.
        sitemap_link_bytes_max: usize = "4MiB", size("64KiB", "1GiB");
        /// Nested sitemap indexes, redirects included; sitemaps nested deeper are not fetched.
        /// The protocol allows one; a few sites have two. As each is fetched once, circles end by themselves.
        sitemap_nesting_max: u16 = "4", Kind::Number(1, 20);
        /// What to do with links with rel=nofollow, ugc or sponsored, and with all links of a page that says nofollow.
        /// Sites use it for endless calendars and logins, but also for the only path to good pages.
        nofollow: AdvisedAgainst = "last", Kind::Choice(AdvisedAgainst::CHOICES);
        /// What to do with the links of a page that says noindex.
        from_noindex: AdvisedAgainst = "last", Kind::Choice(AdvisedAgainst::CHOICES);
        /// Which other formats of a page are followed: those that it names by rel=alternate with a type other than a page's.
        /// Blog posts name their comments' feed, their JSON and two embed formats: half of all requests, for nothing new.
        alternates: Alternates = "feeds", Kind::Choice(Alternates::CHOICES);
        /// Which embeds are fetched: images with srcset, style sheets, icons and scripts; never what style sheets load.
        /// Without them pages look bare in a replay. 1,500 real pages embed 46 on average, 15 of them off-site; pages share many of them;
        /// each counts as a page.
        embeds: Embeds = "off", Kind::Choice(Embeds::CHOICES);
        /// What to do with links that leave the seeds' sites or hosts (scope.follow). With crawl.rounds they are always listed.
        external: ExternalLinks = "count", Kind::Choice(ExternalLinks::CHOICES);
    }

    /// Endless pages that are not worth fetching.
    traps: Traps {
        /// Which kinds of a host's URLs have fewer turns because pages like theirs brought nothing new: a quarter, or a sixteenth.
        /// Nothing is dropped.
        /// A broad crawl without it spends more than half of its requests on calendars, histories and sorted lists.
        detect: TrapDetection = "yield", Kind::Choice(TrapDetection::CHOICES);
        /// Bytes of what is known about hosts' pages, all shards together: a few kilobytes for a host with more than one page, at most 200 KiB.
        /// Beyond that, nothing is known about further hosts.
        ram_bytes_max: u64 = "256MiB", size("0B", "16TiB");
    }

    /// URLs between shards.
    exchange: Exchange {
        /// What to do with links to URLs of other shards (Cho and Garcia-Molina, "Parallel Crawlers", 2002). Fixed for a crawl.
        mode: ExchangeMode = "exchange", Kind::Choice(ExchangeMode::CHOICES);
        /// Largest size of the ring from one shard to another.
        /// There are shards × (shards − 1) rings; rings_bytes_max bounds them together.
        ring_bytes: usize = "256KiB", size("4KiB", "256MiB");
        /// Size of all rings together: with many shards, each ring is smaller.
        /// No ring is smaller than four times scope.url_bytes_max, whatever their number.
        rings_bytes_max: usize = "64MiB", size("64KiB", "64GiB");
        /// A batch is sent when it holds this many URLs.
        batch_urls_max: usize = "512", Kind::Number(1, 65_536);
        /// Batches leave at every multiple of this, on all shards at once.
        batch_age_max: Duration = "100ms", time("0s", "1m");
        /// Batches that wait for a full ring stay in memory up to this per shard, and then go to disk.
        waiting_bytes_max: usize = "16MiB", size("64KiB", "16GiB");
        /// URLs that a shard has sent lately, 8 bytes each, which it does not send again: menus link to the same few pages from everywhere.
        /// 0: none is sent twice in a batch.
        recent_urls: usize = "65_536", Kind::Number(0, 1 << 30);
        /// A list of URLs that an earlier crawl found many links to, as `ringcrawl-lab plan --most-linked` writes it: a shard sends each once.
        replicated: String = "", Kind::Text(TextForm::File);
        /// At most this many, those with the most links; 8 bytes each, once for all shards.
        replicated_max: usize = "10_000", Kind::Number(1, 10_000_000);
    }

    /// URLs already found, and which of them count as duplicates.
    visited: Visited {
        /// URLs remembered by all shards together; further ones are set aside on disk.
        /// Each costs 4.4 to 6.5 bytes of memory, the fewer the more there are; this bounds the largest table of the process.
        /// A site (registrable domain) gets at most 15 times what is free, so a sixteenth stays for others.
        urls_max: u64 = "100_000_000", Kind::Number(1_000, 1_000_000_000_000);
        /// Bits by which URLs are told apart. Among n URLs of a shard, n * n / 2^(bits + 1) are taken for seen by mistake and not fetched:
        /// with 56 bits 0.07 of 100 million and 7 of a billion. Once a shard is full, each further URL is with a chance of n / 2^bits.
        /// A bit less saves some 3 % of the memory.
        fingerprint_bits: u32 = "56", Kind::Number(48, 62);
        /// URLs that differ in a session id: PHPSESSID=, ;jsessionid= and the like, with a value that looks like one.
        /// Without this, servers that put one into every link are endless. A URL is always fetched as it was found.
        session_ids: Difference = "count", Kind::Choice(Difference::CHOICES);
        /// URLs that differ in the parameters of tracking_parameters.
        /// Mails and advertisements mark their links, and each mark makes another URL of the same page.
        tracking: Difference = "count", Kind::Choice(Difference::CHOICES);
        /// Names of those parameters, in any case; NAME* matches every name with this prefix.
        /// The defaults come from mails and advertisements; no page depends on them. Used if tracking is "ignore".
        tracking_parameters: Vec<String> = "utm_*,gclid,gbraid,wbraid,dclid,fbclid,msclkid,yclid,igshid,mc_cid,mc_eid", Kind::Names;
        /// URLs that have the same parameters in another order.
        /// The order of parameters with the same name always counts.
        parameter_order: Difference = "count", Kind::Choice(Difference::CHOICES);
        /// A folder and its index page: /d/ and /d/index.html, index.php, default.asp and the like.
        index_pages: Difference = "count", Kind::Choice(Difference::CHOICES);
    }

    /// URLs waiting.
    frontier: Frontier {
        /// Bytes of queued URLs in memory, all shards together; the rest spills to disk.
        ram_bytes_max: u64 = "1GiB", size("1MiB", "16TiB");
        /// URLs of one host that stay in memory when its queue spills.
        /// The host can make this many requests before a block must be read from disk.
        host_head_urls: usize = "64", Kind::Number(1, 65_536);
        /// Hosts in memory, all shards together; URLs of further hosts wait on disk until a host has no more URLs.
        /// Each host costs about a kilobyte. A host that was forgotten starts over, with its robots.txt first.
        /// A site (registrable domain) gets at most three times what is free, so a quarter stays for others.
        hosts_max: u64 = "4_000_000", Kind::Number(1_000, 1_000_000_000);
        /// Which of the URLs that wait for a host comes next. Host delays apply in every order,
        /// and kinds with a lowered weight get fewer turns. It may change when a crawl continues. See docs/ORDERS.md.
        order: UrlOrder = "breadth-first", Kind::Choice(UrlOrder::CHOICES);
        /// A file of ranks, as ringcrawl-lab plan --pagerank writes it: a line each of a number, a tab and a URL, the higher the better;
        /// also packed by gzip or zstd. For "rank".
        ranks: String = "", Kind::Text(TextForm::File);
        /// Bytes for what order goes by, all shards together: 18 for each URL that waits with "backlinks", where links to URLs beyond
        /// that do not count; 8 for each URL of ranks, and 24 while it is read: a longer list is refused.
        order_ram_bytes_max: u64 = "256MiB", size("1MiB", "16TiB");
        /// A shard reports new links to other shards' URLs after this many pages; 0: never. For "backlinks".
        backlinks_exchange_pages: u32 = "100", Kind::Number(0, 1_000_000_000);
    }

    /// The log that lets a crawl continue after an end, a kill or a power cut.
    journal: Journal {
        /// How often the log is synced to the device; "never" leaves the time to the kernel.
        /// After a power cut this much may be fetched again. With "never" it may lose URLs; a kill loses none.
        sync_interval: OrNever = "1s", Kind::TimeOrNever(10, 3_600_000);
        /// Bytes of URLs that are not yet on the disks of other shards, all shards together.
        /// Nothing is fetched while there are more.
        bytes_max: u64 = "4GiB", size("64MiB", "16TiB");
    }

    /// Segments of what was crawled.
    store: Store {
        /// A segment closes when it has this size.
        /// Small enough to move and verify, large enough that there are few.
        segment_bytes_max: u64 = "1GiB", size("1MiB", "1TiB");
        /// Or when its first record is this old; "never": only its length counts.
        /// Other programs read closed segments, so this is the longest time until a page is available to them: at most 24 files a day and shard.
        segment_age_max: OrNever = "1h", Kind::TimeOrNever(60_000, 2_592_000_000);
        /// Space that a segment takes when it is begun, at most segment_bytes_max; what it did not need it gives back. "0B": none.
        /// On ext4 its extents are then larger than 8 MiB, which helps only when segments are read from rotating disks.
        preallocate: u64 = "0B", size("0B", "1TiB");
        /// What to do with a segment in the page cache when it is on disk.
        /// "drop" leaves the memory to data that is read again; it needs Linux 6.14 and support by the file system, and warns without them.
        page_cache: PageCache = "keep", Kind::Choice(PageCache::CHOICES);
        /// Directories on other disks for segments: of N directories, shard S uses number S modulo N.
        /// They must exist. The segments directory of a shard is then a link into one. Empty: segments are in the crawl's directory.
        /// A shard with segments continues where they are, even if this changes later.
        dirs: Vec<PathBuf> = "[]", Kind::Files;
        /// In which form bodies are stored.
        /// Storing a page as received costs a fraction of the CPU time; decoded pages can be read without a decoder.
        body: StoredBody = "as-received", Kind::Choice(StoredBody::CHOICES);
        /// The format of segments.
        /// Every tool reads warc.gz; warc.zst is smaller, but fewer tools read it.
        format: SegmentFormat = "warc.zst", Kind::Choice(SegmentFormat::CHOICES);
        /// What to do with bodies without a content coding.
        compress_uncoded: CompressUncoded = "level", Kind::Choice(CompressUncoded::CHOICES);
        /// zstd level of what is compressed.
        /// Higher levels save disk but cost CPU time that the shard's fetches need.
        zstd_level: i32 = "1", Kind::Number(-7, 19);
        /// The same of gzip.
        gzip_level: i32 = "1", Kind::Number(1, 12);
        /// What to do with a body that is already stored, byte for byte; for bodies of a kilobyte or more.
        duplicates: RepeatedBodies = "revisit", Kind::Choice(RepeatedBodies::CHOICES);
        /// Bytes to remember stored bodies, per shard: about 240 for each. The oldest is forgotten.
        duplicates_bytes_max: usize = "16MiB", size("64KiB", "64GiB");
        /// Indexes of earlier crawls: CDXJ files, or directories with segments. An unchanged page becomes a revisit of theirs.
        /// Replay needs their segments, too. Name all of them: a revisit record has no body that another could refer to.
        dedupe_against: Vec<PathBuf> = "[]", Kind::Files;
        /// Bytes of memory for these, all shards together: 48 for each capture while they are read.
        dedupe_bytes_max: u64 = "256MiB", size("1MiB", "16TiB");
        /// Which records are written in addition to responses, separated by commas: request, metadata (of responses),
        /// failure (metadata of a URL that has no response in the end: why, after how many tries), and dns (which addresses a
        /// host had). "" is none of them.
        records: RecordKinds = "request,metadata,failure,dns", Kind::Text(TextForm::RecordKinds);
        /// The digest algorithm of records.
        /// Tools check SHA-256 and SHA-1. XXH3 costs least, but anyone can make two bodies with one digest: it goes
        /// only with store.duplicates = "store".
        digest: DigestAlgorithm = "sha-256", Kind::Choice(DigestAlgorithm::CHOICES);
        /// Whether a page's metadata record gets a fingerprint (SimHash). Those of near duplicates differ in few bits.
        /// No page is dropped because of it. It costs about ten microseconds a page.
        simhash: Simhash = "off", Kind::Choice(Simhash::CHOICES);
        /// Media types whose responses are stored, separated by commas; robots.txt always is.
        /// Other responses are fetched, searched for links and counted (not_stored), but no record is written.
        types: MediaRanges = "*/*", Kind::Text(TextForm::MediaTypes);
        /// While less space than this is free on a disk of the crawl, no fetch starts; "0B": fetching never waits for space.
        /// Fetches in flight can still be written, and the crawl continues by itself when there is room again.
        free_bytes_min: u64 = "256MiB", size("0B", "1TiB");
    }
}
