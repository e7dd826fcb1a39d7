//! The site of a host: what politeness, budgets and routing keep together.
//!
//! Decides: a site is the registrable domain by the Public Suffix List, private section included, so that
//! `a.github.io` and `b.github.io` are two sites. A host without a registrable domain (an IP address, a bare public
//! suffix, a single label) is a site of its own. The trailing dot of a fully qualified name does not make another
//! site: `example.com.` is the same machine as `example.com` and must not get a second politeness budget.
//!
//! Limits: the list is the one that was compiled in.

use psl::Psl;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The registrable domain of `host` by the Public Suffix List, or `host` itself when it has none
/// (an IP address, a bare public suffix, a single label); without a dot at the end.
pub fn site_of(host: &str) -> &str {
    let host = host.strip_suffix('.').unwrap_or(host);
    if host.starts_with('[') || is_ipv4(host) {
        return host;
    }
    // The last bytes of the host: not checked again for being text.
    domain_start(host.as_bytes()).and_then(|start| host.get(start..)).unwrap_or(host)
}

/// The registrable domain of `host` by only the ICANN section of the list: the domain that is paid for. Below a
/// private suffix (`github.io`, a dynamic-DNS service) names cost nothing, so any number of them may have one owner.
/// A host without such a domain is its own.
pub fn owner_of(host: &str) -> &str {
    let host = host.strip_suffix('.').unwrap_or(host);
    if host.starts_with('[') || is_ipv4(host) {
        return host;
    }
    let mut suffix = host;
    while let Some(found) = psl::suffix(suffix.as_bytes()) {
        let start = suffix.len().saturating_sub(found.as_bytes().len());
        let Some(text) = suffix.get(start..) else { break };
        if found.typ() != Some(psl::Type::Private) {
            let labels = host.len().saturating_sub(text.len() + 1);
            let start = host.get(..labels).and_then(|before| before.rfind('.')).map_or(0, |dot| dot + 1);
            return if labels == 0 { host } else { host.get(start..).unwrap_or(host) };
        }
        let Some((_, parent)) = text.split_once('.') else { break };
        suffix = parent;
    }
    host
}

/// Where the registrable domain begins, if there is one.
fn domain_start(host: &[u8]) -> Option<usize> {
    let Some(labels) = Labels::of(host) else {
        return psl::domain(host).and_then(|domain| host.len().checked_sub(domain.as_bytes().len()));
    };
    // One label more than the suffix, and not an empty one.
    let suffix_bytes = Some(psl::List.find(labels).len).filter(|bytes| *bytes > 0)?;
    let label_end = host.len().checked_sub(suffix_bytes + 1).filter(|end| *end > 0)?;
    Some(labels.start_of(label_end))
}

/// Labels of a host, the last one first. The dots are located once: a loop that ends at each of them ends in a
/// mispredicted branch, and the list's own method needs two such loops.
#[derive(Clone, Copy)]
struct Labels<'host> {
    host: &'host [u8],
    /// Where dots are, the first byte's bit lowest.
    dots: u64,
    /// Where the next label ends.
    end: Option<usize>,
}

impl<'host> Labels<'host> {
    /// `None` if there are more bytes than bits, or if the last label is empty.
    fn of(host: &'host [u8]) -> Option<Labels<'host>> {
        let dots = host.iter().rev().fold(0, |dots, byte| dots << 1 | u64::from(*byte == b'.'));
        let fits = host.len() < u64::BITS as usize && !host.ends_with(b".");
        fits.then_some(Labels { host, dots, end: Some(host.len()) })
    }

    /// Start of the label that ends at `end`.
    fn start_of(&self, end: usize) -> usize {
        let before = self.dots & ((1 << end) - 1);
        (u64::BITS - before.leading_zeros()) as usize
    }
}

impl<'host> Iterator for Labels<'host> {
    type Item = &'host [u8];

    fn next(&mut self) -> Option<&'host [u8]> {
        let end = self.end?;
        let start = self.start_of(end);
        self.end = start.checked_sub(1);
        self.host.get(start..end)
    }
}

/// Whether `host` is a suffix under which anyone can get names, such as `co.uk`, or a single label.
pub fn is_public_suffix(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    !host.starts_with('[') && !is_ipv4(host) && psl::domain_str(host).is_none()
}

/// Whether `host` is on the list of public suffixes: sites below it belong to strangers.
pub fn is_listed_suffix(host: &str) -> bool {
    psl::suffix(host.as_bytes()).is_some_and(|suffix| suffix.is_known() && suffix.as_bytes() == host.as_bytes())
}

fn is_ipv4(host: &str) -> bool {
    // A host whose last label is a number is an IPv4 address by the WHATWG host parser.
    host.ends_with(|last: char| last.is_ascii_digit()) && host.parse::<std::net::Ipv4Addr>().is_ok()
}

/// A site, and the hash that identifies it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Site<'host> {
    /// As returned by [`site_of`].
    pub name: &'host str,
    /// xxh3-64 of the name.
    pub hash: u64,
}

impl<'host> Site<'host> {
    /// The site of `host`.
    pub fn of(host: &'host str) -> Site<'host> {
        let name = site_of(host);
        Site { name, hash: xxh3_64(name.as_bytes()) }
    }
}

/// A site under the crawl's own seed: no outsider can make two sites share a key. IPv6 addresses of one /64 are one
/// site here, because one owner has them all.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct SiteKey(u64);

impl SiteKey {
    /// The key of the site named `site`, as returned by [`site_of`].
    pub fn new(rng_seed: u64, site: &str) -> SiteKey {
        let bare = site.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        match bare.and_then(|bare| bare.parse::<std::net::Ipv6Addr>().ok()) {
            Some(addr) => SiteKey(xxh3_64_with_seed(&addr.octets()[..8], rng_seed)),
            None => SiteKey(xxh3_64_with_seed(site.as_bytes(), rng_seed)),
        }
    }

    /// The key of the site of `host`.
    pub fn of_host(rng_seed: u64, host: &str) -> SiteKey {
        SiteKey::new(rng_seed, site_of(host))
    }

    /// The key of those hosts of `host`'s site whose names end as its own does, up to the label below the site's
    /// name: `a.b.example.com` and `b.example.com` share one, `example.com` has another.
    pub fn below_site(rng_seed: u64, host: &str) -> SiteKey {
        let host = host.strip_suffix('.').unwrap_or(host);
        let site = site_of(host);
        let above = host.strip_suffix(site).and_then(|above| above.strip_suffix('.'));
        let name = above.map(|above| above.rfind('.').map_or(0, |dot| dot + 1)).and_then(|from| host.get(from..));
        SiteKey::new(rng_seed, name.unwrap_or(site))
    }

    /// The key as a number.
    pub fn number(self) -> u64 {
        self.0
    }

    /// Its index among `places`, at least 1.
    pub fn place_among(self, places: usize) -> usize {
        ((u128::from(self.0) * places as u128) >> 64) as usize
    }
}

/// Sites of recently seen hosts: the list is searched once for a host and not for each link to it.
///
/// A host has one slot, and another one may take it. The slot stores the name and the position of the site in it, so
/// an answer is that of `Site::of`, cached. Hosts of more than `HOST_BYTES_MAX` bytes are not cached.
#[derive(Clone, Debug)]
pub struct Sites {
    slots: Vec<CachedSite>,
}

/// A cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct CachedSite {
    host: [u8; HOST_BYTES_MAX],
    host_bytes: u8,
    site_start: u8,
    site_end: u8,
    hash: u64,
}

impl Sites {
    /// None seen yet.
    pub fn new() -> Sites {
        let empty = CachedSite { host: [0; HOST_BYTES_MAX], host_bytes: 0, site_start: 0, site_end: 0, hash: 0 };
        // An empty slot looks like one for the empty host, whose site is also empty.
        Sites { slots: vec![CachedSite { hash: xxh3_64(b""), ..empty }; SLOTS] }
    }

    /// The same as [`Site::of`].
    pub fn of<'host>(&mut self, host: &'host str) -> Site<'host> {
        let Some(slot) = self.slots.get_mut(slot_of(host.as_bytes())) else { return Site::of(host) };
        if slot.host() == host.as_bytes() {
            let name = host.get(usize::from(slot.site_start)..usize::from(slot.site_end)).unwrap_or(host);
            return Site { name, hash: slot.hash };
        }
        let site = Site::of(host);
        let start = site.name.as_ptr() as usize - host.as_ptr() as usize;
        if let Some(to) = slot.host.get_mut(..host.len()) {
            to.copy_from_slice(host.as_bytes());
            // The site is a part of the host, and a cached host has fewer than 256 bytes.
            slot.host_bytes = host.len() as u8;
            slot.site_start = start as u8;
            slot.site_end = (start + site.name.len()) as u8;
            slot.hash = site.hash;
        }
        site
    }
}

impl Default for Sites {
    fn default() -> Sites {
        Sites::new()
    }
}

impl CachedSite {
    fn host(&self) -> &[u8] {
        self.host.get(..usize::from(self.host_bytes)).unwrap_or_default()
    }
}

/// By the ends of the name: names made to share a slot only cost an extra search of the list.
fn slot_of(host: &[u8]) -> usize {
    let word = |chunk: Option<&[u8; 8]>| chunk.map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let ends = word(host.first_chunk()) ^ word(host.last_chunk()).rotate_left(29) ^ host.len() as u64;
    (ends.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize % SLOTS
}

/// Longer names are rare.
const HOST_BYTES_MAX: usize = 48;
/// A page's links lead to some dozen hosts, and many of them occur on every page. 16 KiB: with four times as many
/// slots, three of a hundred links to other hosts would be hits that are misses now, and evicting more from the cache
/// costs more than that saves.
const SLOTS: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::Rng;

    #[test]
    fn names_of_a_site_have_keys_by_their_last_label() {
        let key = |host| SiteKey::below_site(7, host);
        assert_eq!(key("a.b.example.com"), key("b.example.com."));
        assert_eq!(key("example.com"), SiteKey::of_host(7, "example.com"));
        for other in ["example.com", "c.example.com", "b.a.example.com", "b.example.org"] {
            assert_ne!(key("b.example.com"), key(other), "{other}");
        }
        assert_eq!(key("192.0.2.1"), SiteKey::new(7, "192.0.2.1"));
    }

    #[test]
    fn public_suffixes() {
        for suffix in ["com", "co.uk", "github.io", "localhost", "CO.UK.", "unlisted"] {
            assert!(is_public_suffix(&suffix.to_ascii_lowercase()), "{suffix}");
        }
        for host in ["example.com", "a.co.uk", "x.github.io", "127.0.0.1", "[::1]", "b.unlisted"] {
            assert!(!is_public_suffix(host), "{host}");
        }
    }

    #[test]
    fn sites() {
        for (host, site) in [
            ("www.example.com", "example.com"),
            ("example.com.", "example.com"),
            ("a.b.example.co.uk", "example.co.uk"),
            ("x.user.github.io", "user.github.io"),
            ("co.uk", "co.uk"),
            ("localhost", "localhost"),
            ("a.b.unlisted", "b.unlisted"),
            ("192.0.2.1", "192.0.2.1"),
            ("[2001:db8::1]", "[2001:db8::1]"),
            ("", ""),
            (".", ""),
            ("..", "."),
        ] {
            assert_eq!(site_of(host), site, "{host}");
        }
    }

    #[test]
    fn owners_by_the_icann_section() {
        for (host, owner) in [
            ("www.example.com", "example.com"),
            ("example.com.", "example.com"),
            ("a.b.example.co.uk", "example.co.uk"),
            // Private suffixes: of one label, of several, below another one, below a country's.
            ("x.user.github.io", "github.io"),
            ("github.io", "github.io"),
            ("a.duckdns.org", "duckdns.org"),
            ("a.s3.dualstack.us-east-1.amazonaws.com", "amazonaws.com"),
            ("shop.blogspot.co.uk", "blogspot.co.uk"),
            ("h1.unlisted", "h1.unlisted"),
            ("localhost", "localhost"),
            ("co.uk", "co.uk"),
            ("192.0.2.1", "192.0.2.1"),
            ("[2001:db8::1]", "[2001:db8::1]"),
            ("", ""),
            ("..", "."),
        ] {
            assert_eq!(owner_of(host), owner, "{host}");
        }
        let mut rng = Rng::new(2);
        for _ in 0..20_000 {
            let labels: Vec<&str> =
                (0..1 + rng.index(5)).map(|_| *rng.pick(&["a", "github", "io", "co", "uk", "", "com", "ck"])).collect();
            let host = labels.join(".");
            let site = site_of(&host);
            assert!(site.ends_with(owner_of(&host)) || owner_of(&host).ends_with(site), "{host:?}: {site:?}");
        }
    }

    #[test]
    fn keys_are_of_sites_and_of_the_crawl() {
        let key = |host| SiteKey::of_host(1, host);
        assert_eq!(key("www.example.com."), key("example.com"));
        assert_ne!(key("a.github.io"), key("b.github.io"));
        assert_ne!(key("example.com"), SiteKey::of_host(2, "example.com"));
        assert_eq!(key("[2001:db8::1]"), key("[2001:db8::ffff:1]"));
        assert_ne!(key("[2001:db8::1]"), key("[2001:db8:0:1::1]"));
        assert_ne!(key("192.0.2.1"), key("192.0.2.2"));
    }

    #[test]
    fn domains_as_by_the_list_alone() {
        const LABELS: [&str; 16] = [
            "com", "uk", "co", "io", "github", "ck", "www", "jp", "kawasaki", "city", "1", "", "x", "xn--p1ai",
            "a-b_c", "%2e",
        ];
        let mut rng = Rng::new(1);
        for _ in 0..100_000 {
            let mut labels: Vec<String> = (0..rng.index(6)).map(|_| (*rng.pick(&LABELS)).to_owned()).collect();
            labels.insert(0, "l".repeat(rng.index(70) / (1 + rng.index(9))));
            let host = labels.join(".");
            let expected = psl::domain(host.as_bytes()).map(|domain| host.len() - domain.as_bytes().len());
            assert_eq!(domain_start(host.as_bytes()), expected, "{host:?}");
        }
    }

    #[test]
    fn remembered_sites_are_the_same() {
        let mut sites = Sites::new();
        let mut rng = Rng::new(1);
        let suffixes = ["com", "co.uk", "github.io", "unlisted", "1", "com.", "", "."];
        for _ in 0..60_000 {
            let name = "n".repeat(rng.index(60));
            let host = format!("{name}.{}.{}", rng.below(40), rng.pick(&suffixes));
            let host = [&host, &host[host.len() / 2..], "192.0.2.1", "[::1]", *rng.pick(&suffixes)][rng.index(5)];
            assert_eq!(sites.of(host), Site::of(host), "{host:?}");
            assert_eq!(sites.of(host), Site::of(host), "{host:?} again");
        }
    }
}
