//! The site of a host: what politeness, budgets and routing keep together.
//!
//! Decides: a site is the registrable domain by the Public Suffix List, private section included, so that
//! `a.github.io` and `b.github.io` are two sites. What has no registrable domain (an IP address, a bare public
//! suffix, a single label) is a site of its own. The dot at the end of a fully qualified name makes no other
//! site: `example.com.` is the same machine as `example.com` and must not get a second politeness budget.
//!
//! Limits: the list is the one that was compiled in.

/// The registrable domain of `host` by the Public Suffix List, or `host` itself when it has none
/// (an IP address, a bare public suffix, a single label); without a dot at the end.
pub fn site_of(host: &str) -> &str {
    let host = host.strip_suffix('.').unwrap_or(host);
    if host.starts_with('[') || is_ipv4(host) {
        return host;
    }
    psl::domain_str(host).unwrap_or(host)
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
}
