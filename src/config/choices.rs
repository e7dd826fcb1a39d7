//! The words that keys choose from.
//!
//! Decides: which choices a key has, the word of each in the file, and what `check-config --example` says of it.
//!
//! Invariants: the first choice of a list is its default.
//! Leaves to others: which key takes which list (`keys`), what a choice does (the module of its table).

use super::value::chosen;
use ringcrawl_base::choices;
pub use ringcrawl_warc::{DigestAlgorithm, SegmentFormat};

choices! {
    /// `agent.from`
    SentFrom {
        /// every request has it
        On = "on",
        /// none has it
        Off = "off",
    }
    /// `identity.signature_agent_form`
    SignatureAgentForm {
        /// sig1="https://…", the exact URL of the directory
        Dictionary = "dictionary",
        /// "https://…", without the well-known path, which the reader puts there
        String = "string",
    }
    /// `identity.sign`
    SignedRequests {
        /// those over TLS
        Https = "https",
        /// all
        All = "all",
    }
    /// `scope.follow`
    Follow {
        /// every link
        All = "all",
        /// links to sites of the seeds
        SeedSites = "seed-sites",
        /// links to hosts of the seeds, with www. or without
        SeedHosts = "seed-hosts",
    }
    /// `scope.bad_ports`
    BadPorts {
        /// they are out of scope
        Deny = "deny",
        /// they are crawled like others
        Allow = "allow",
    }
    /// `politeness.crawl_delay_above`
    CrawlDelayAbove {
        /// they are fetched, politeness.crawl_delay_max apart
        Cap = "cap",
        /// they are not fetched
        Skip = "skip",
    }
    /// `seeds.errors`
    SeedErrors {
        /// the crawl does not begin
        Refuse = "refuse",
        /// they are reported and skipped
        Skip = "skip",
    }
    /// `scope.block_errors`
    BlockErrors {
        /// the crawl does not begin, or keeps the list that it has
        Refuse = "refuse",
        /// the lines are reported and skipped
        Skip = "skip",
    }
    /// `scope.halved`
    Halved {
        /// the crawl keeps the old ones, until the signal is sent again for the same files
        Hold = "hold",
        /// they take effect at once
        Take = "take",
    }
    /// `links.documents`
    Documents {
        /// HTML, feeds, XML sitemaps, and lines of text that are URLs
        All = "all",
        /// HTML, feeds and XML sitemaps
        Xml = "xml",
        /// HTML only
        Html = "html",
    }
    /// `links.sitemaps`
    Sitemaps {
        /// none
        Off = "off",
        /// those that robots.txt names
        Robots = "robots",
    }
    /// `links.nofollow`, `from_noindex`
    AdvisedAgainst {
        /// they are followed like others
        Ignore = "ignore",
        /// those to the page's own host begin with a sixteenth of their turns
        Last = "last",
        /// they are not followed
        Obey = "obey",
    }
    /// `links.alternates`
    Alternates {
        /// the feeds that the front of a site or section names
        Feeds = "feeds",
        /// all of them; those of the page's own host begin with a sixteenth of their turns
        All = "all",
        /// none
        Off = "off",
    }
    /// `links.embeds`
    Embeds {
        /// nothing
        Off = "off",
        /// what the scope allows as it allows links
        InScope = "in-scope",
        /// the same, and anything else that no rule denies, up to one hop off the seeds' sites, whatever scope.follow says
        OffSite = "off-site",
    }
    /// `links.external`
    ExternalLinks {
        /// they are counted
        Count = "count",
        /// they are listed as well, in external-links-N of the crawl's directory, for --seeds
        List = "list",
    }
    /// `traps.detect`
    TrapDetection {
        /// those whose pattern had new text or new kinds of links on less than half of its pages, and paths that repeat themselves
        Yield = "yield",
        /// none
        Off = "off",
    }
    /// `partition.by`
    PartitionBy {
        /// the registrable domain's hash
        SiteHash = "site-hash",
        /// the host name's hash
        HostHash = "host-hash",
        /// the URL's hash: the most even, but most links cross shards. A host's delays and robots.txt still apply across shards
        UrlHash = "url-hash",
        /// the top-level domain, as partition.domains groups them, then the registrable domain's hash
        Hierarchical = "hierarchical",
        /// the registrable domain's position on a circle of hashes, so that few sites move when the number of shards changes
        Consistent = "consistent",
        /// the assignment in partition.vector, written by `ringcrawl-lab plan`; a URL not listed there stays with the shard that finds it
        Vector = "vector",
        /// when a site is first seen, it goes to the shard with the fewest waiting URLs, and stays there
        Dynamic = "dynamic",
    }
    /// `partition.balance`
    Balance {
        /// a site stays on its shard
        Off = "off",
        /// they move to other shards in a pause
        Sites = "sites",
    }
    /// `exchange.mode`
    ExchangeMode {
        /// they are sent to the shard that they belong to
        Exchange = "exchange",
        /// they are dropped: each shard crawls what its own seeds lead to within its part
        Firewall = "firewall",
        /// they are followed by the shard that found them, once it has nothing else left: shards may fetch the same pages
        CrossOver = "cross-over",
        /// they are followed by the shard that found them like others: each shard crawls all that its seeds lead to
        Independent = "independent",
    }
    /// `frontier.order`
    UrlOrder {
        /// the oldest first
        BreadthFirst = "breadth-first",
        /// the newest first
        DepthFirst = "depth-first",
        /// drawn at random from those that wait
        Random = "random",
        /// those with the most links found so far
        Backlinks = "backlinks",
        /// those of the highest ranks in a list (frontier.ranks), then those that are not in it
        Rank = "rank",
    }
    /// `dns.families`
    Families {
        /// IPv4, and IPv6 where IPv4 is unavailable
        Ipv4First = "ipv4-first",
        /// IPv6, and IPv4 where IPv6 is unavailable
        Ipv6First = "ipv6-first",
        /// IPv4 only
        Ipv4Only = "ipv4-only",
        /// IPv6 only
        Ipv6Only = "ipv6-only",
    }
    /// `visited.session_ids`, `tracking`, `parameter_order`, `index_pages`
    Difference {
        /// each counts as a page of its own
        Count = "count",
        /// they are duplicates: only the first one found is fetched
        Ignore = "ignore",
    }
    /// `fetch.private_addresses`
    PrivateAddresses {
        /// only globally reachable addresses of other machines
        Deny = "deny",
        /// globally reachable addresses and loopback
        Loopback = "loopback",
        /// loopback only
        LoopbackOnly = "loopback-only",
        /// every address
        Allow = "allow",
    }
    /// `http.cookies`
    Cookies {
        /// cookies are ignored
        Off = "off",
        /// each site gets its own cookies back, until the process ends
        Site = "site",
    }
    /// `proxy.names`
    ProxyNames {
        /// the crawler; tunnels go to the address it found and judged
        Here = "here",
        /// the proxy; politeness.ip_delay and fetch.private_addresses then apply only to addresses in URLs
        Proxy = "proxy",
    }
    /// `store.body`
    StoredBody {
        /// in the content coding that the server chose
        AsReceived = "as-received",
        /// decoded, and compressed again by ringcrawl
        Decoded = "decoded",
    }
    /// `store.page_cache`
    PageCache {
        /// the kernel decides
        Keep = "keep",
        /// it is dropped from the cache
        Drop = "drop",
    }
    /// `store.compress_uncoded`
    CompressUncoded {
        /// they are compressed, at store.zstd_level or store.gzip_level
        Level = "level",
        /// the same, with a dictionary in each segment, trained on the shard's own records; for warc.zst
        Dictionary = "dictionary",
        /// they are stored as they are
        Raw = "raw",
    }
    /// `store.duplicates`
    RepeatedBodies {
        /// a revisit record refers to the first one
        Revisit = "revisit",
        /// it is stored again
        Store = "store",
    }
    /// `store.simhash`
    Simhash {
        /// no page gets one
        Off = "off",
        /// HTML and plain text of enough words get one
        On = "on",
    }
    /// `tls.certificates`
    Certificates {
        /// the fetch fails
        Verify = "verify",
        /// the fetch continues, and the page's metadata record has the error
        Record = "record",
    }
}

chosen! { SentFrom, SignatureAgentForm, SignedRequests, Follow, BadPorts, CrawlDelayAbove, SeedErrors, BlockErrors, Halved, Documents, Sitemaps, AdvisedAgainst, Alternates, Embeds, ExternalLinks, TrapDetection, PartitionBy, Balance, ExchangeMode, UrlOrder, Families, Difference, PrivateAddresses, Cookies, ProxyNames, StoredBody, PageCache, CompressUncoded, RepeatedBodies, Simhash, Certificates, DigestAlgorithm, SegmentFormat }
