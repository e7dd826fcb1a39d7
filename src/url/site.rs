//! The site of a host: what politeness, budgets and routing keep together.
//!
//! Decides: a site is the registrable domain by the Public Suffix List, private section included, so that
//! `a.github.io` and `b.github.io` are two sites. What has no registrable domain (an IP address, a bare public
//! suffix, a single label) is a site of its own. The dot at the end of a fully qualified name makes no other
//! site: `example.com.` is the same machine as `example.com` and must not get a second politeness budget.
//!
//! Limits: the list is the one that was compiled in.

use xxhash_rust::xxh3::xxh3_64;

/// The registrable domain of `host` by the Public Suffix List, or `host` itself when it has none
/// (an IP address, a bare public suffix, a single label); without a dot at the end.
pub fn site_of(host: &str) -> &str {
    let host = host.strip_suffix('.').unwrap_or(host);
    if host.starts_with('[') || is_ipv4(host) {
        return host;
    }
    // The last bytes of the host: not checked for being text again.
    let domain_bytes = psl::domain(host.as_bytes()).map_or(host.len(), |domain| domain.as_bytes().len());
    host.len().checked_sub(domain_bytes).and_then(|start| host.get(start..)).unwrap_or(host)
}

/// Whether `host` is a suffix under which names are given to anyone, such as `co.uk`, or a single label.
pub fn is_public_suffix(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    !host.starts_with('[') && !is_ipv4(host) && psl::domain_str(host).is_none()
}

fn is_ipv4(host: &str) -> bool {
    // A host whose last label is a number is an IPv4 address after the WHATWG host parser.
    host.ends_with(|last: char| last.is_ascii_digit()) && host.parse::<std::net::Ipv4Addr>().is_ok()
}

/// A site, and the hash by which it is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Site<'host> {
    /// As [`site_of`] has it.
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

/// Sites of the hosts met last: the list is asked once for a host and not for each link to it.
///
/// A host has one place, and another one may take it. Beside the name the place holds where in it the site stands, so
/// an answer is that of `Site::of`, remembered. Hosts of more than `HOST_BYTES_MAX` bytes are asked for each time.
#[derive(Clone, Debug)]
pub struct Sites {
    places: Vec<Place>,
}

/// A cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Place {
    host: [u8; HOST_BYTES_MAX],
    host_bytes: u8,
    site_start: u8,
    site_end: u8,
    hash: u64,
}

impl Sites {
    /// None met yet.
    pub fn new() -> Sites {
        let empty = Place { host: [0; HOST_BYTES_MAX], host_bytes: 0, site_start: 0, site_end: 0, hash: 0 };
        // What nobody asked for is where the empty host would be: its site is empty, too.
        Sites { places: vec![Place { hash: xxh3_64(b""), ..empty }; PLACES] }
    }

    /// The same as [`Site::of`].
    pub fn of<'host>(&mut self, host: &'host str) -> Site<'host> {
        let Some(place) = self.places.get_mut(place_of(host.as_bytes())) else { return Site::of(host) };
        if place.host() == host.as_bytes() {
            let name = host.get(usize::from(place.site_start)..usize::from(place.site_end)).unwrap_or(host);
            return Site { name, hash: place.hash };
        }
        let site = Site::of(host);
        let start = site.name.as_ptr() as usize - host.as_ptr() as usize;
        if let Some(to) = place.host.get_mut(..host.len()) {
            to.copy_from_slice(host.as_bytes());
            // The site is a part of the host, and a host that has room is of fewer than 256 bytes.
            place.host_bytes = host.len() as u8;
            place.site_start = start as u8;
            place.site_end = (start + site.name.len()) as u8;
            place.hash = site.hash;
        }
        site
    }
}

impl Default for Sites {
    fn default() -> Sites {
        Sites::new()
    }
}

impl Place {
    fn host(&self) -> &[u8] {
        self.host.get(..usize::from(self.host_bytes)).unwrap_or_default()
    }
}

/// By the ends of the name: whoever makes many names that share a place makes them dearer by a look at the list.
fn place_of(host: &[u8]) -> usize {
    let word = |chunk: Option<&[u8; 8]>| chunk.map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let ends = word(host.first_chunk()) ^ word(host.last_chunk()).rotate_left(29) ^ host.len() as u64;
    (ends.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize % PLACES
}

/// Longer names are rare.
const HOST_BYTES_MAX: usize = 48;
/// A page's links lead to some dozen hosts, and many of these are every page's. 64 KiB.
const PLACES: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

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
    fn remembered_sites_are_the_same() {
        let mut sites = Sites::new();
        let mut random = 0x9E37_79B9_7F4A_7C15u64;
        let mut draw = |bound: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (random >> 24) % bound
        };
        let suffixes = ["com", "co.uk", "github.io", "unlisted", "1", "com.", "", "."];
        for _ in 0..60_000 {
            let name = "n".repeat(draw(60) as usize);
            let host = format!("{name}.{}.{}", draw(40), suffixes[draw(8) as usize]);
            let host =
                [&host, &host[host.len() / 2..], "192.0.2.1", "[::1]", suffixes[draw(8) as usize]][draw(5) as usize];
            assert_eq!(sites.of(host), Site::of(host), "{host:?}");
            assert_eq!(sites.of(host), Site::of(host), "{host:?} again");
        }
    }
}
