//! The cookies of a shard, in a drawer for each site.
//!
//! Decides: what makes room for what. A site's newest cookie replaces its oldest, after expired ones; the site unused
//! for longest makes room for others. Cookies are kept in memory and end with the process.
//! Invariants: no drawer holds more than `site_count_max` cookies, none of them more than `bytes_max` bytes; all of
//! them together `ram_bytes_max`, overhead included; a Cookie field has at most `FIELD_BYTES_MAX` bytes.
//! Limits: see `CookieLimits`. Sites that are spread over shards have a drawer in each.

use std::collections::{BTreeMap, HashMap};

use super::{Cookie, drawer};
use crate::Headers;
use ringcrawl_base::time::UnixTime;
use ringcrawl_url::Url;

/// Limits of a jar.
#[derive(Clone, Copy, Debug)]
pub struct CookieLimits {
    /// Cookies of a site.
    pub site_count_max: usize,
    /// Bytes of one cookie: name, value, domain and path.
    pub bytes_max: usize,
    /// Bytes of all.
    pub ram_bytes_max: usize,
}

/// The cookies of many sites.
#[derive(Debug)]
pub struct Jar {
    limits: CookieLimits,
    sites: HashMap<Box<str>, Drawer>,
    /// Sites by last use, the least recent first.
    by_use: BTreeMap<u64, Box<str>>,
    next_use: u64,
    bytes: usize,
}

/// The cookies of a site, the oldest first.
#[derive(Debug, Default)]
struct Drawer {
    cookies: Vec<Cookie>,
    used: u64,
}

/// The cost of a cookie on top of its bytes, and of a site on top of its cookies.
const OVERHEAD_BYTES: usize = 128;
/// Longest Cookie field. Servers refuse longer ones: Apache's LimitRequestFieldSize is 8,190.
const FIELD_BYTES_MAX: usize = 8_000;

impl Jar {
    /// An empty one.
    pub fn new(limits: CookieLimits) -> Jar {
        Jar { limits, sites: HashMap::new(), by_use: BTreeMap::new(), next_use: 0, bytes: 0 }
    }

    /// Stores the cookies set by a response from `url`.
    pub fn store(&mut self, url: &Url, headers: &Headers, now: UnixTime) {
        for field in headers.all("set-cookie") {
            if let Some(cookie) = Cookie::parse(field, url, now, self.limits.bytes_max) {
                self.put(drawer(url), cookie, now);
            }
        }
    }

    /// The Cookie field of a request for `url`: longer paths first, then older cookies (section 5.4).
    pub fn field(&mut self, url: &Url, now: UnixTime) -> Option<Vec<u8>> {
        let site = drawer(url);
        if self.sites.is_empty() || !self.sites.contains_key(site) {
            return None;
        }
        self.touch(site);
        let mut cookies: Vec<&Cookie> =
            self.sites.get(site)?.cookies.iter().filter(|cookie| cookie.applies(url, now)).collect();
        cookies.sort_by_key(|cookie| std::cmp::Reverse(cookie.path.len()));
        let mut field: Vec<u8> = Vec::new();
        for cookie in cookies {
            let more = cookie.name.len() + cookie.value.len() + 3;
            if field.len() + more > FIELD_BYTES_MAX {
                continue;
            }
            if !field.is_empty() {
                field.extend_from_slice(b"; ");
            }
            field.extend_from_slice(&cookie.name);
            field.push(b'=');
            field.extend_from_slice(&cookie.value);
        }
        (!field.is_empty()).then_some(field)
    }

    /// Approximate bytes of memory.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn put(&mut self, site: &str, cookie: Cookie, now: UnixTime) {
        if self.limits.site_count_max == 0 {
            return;
        }
        self.touch(site);
        let drawer = self.sites.entry(site.into()).or_default();
        if drawer.used == 0 {
            self.next_use += 1;
            drawer.used = self.next_use;
            self.by_use.insert(drawer.used, site.into());
            self.bytes += site_bytes(site);
        }
        let mut freed = 0;
        let cookies = &mut drawer.cookies;
        // In the place of the one it replaces, whose age it keeps (section 5.3, step 11.3).
        let place = cookies.iter().position(|old| old.is_same(&cookie)).unwrap_or(cookies.len());
        if let Some(old) = cookies.get_mut(place) {
            freed += cookie_bytes(old);
            self.bytes += cookie_bytes(&cookie);
            *old = cookie;
        } else {
            self.bytes += cookie_bytes(&cookie);
            cookies.push(cookie);
        }
        // A server deletes a cookie by a date that has passed.
        cookies.retain(|cookie| {
            let lives = cookie.expires > now;
            freed += if lives { 0 } else { cookie_bytes(cookie) };
            lives
        });
        while cookies.len() > self.limits.site_count_max {
            freed += cookie_bytes(&cookies.remove(0));
        }
        self.bytes -= freed;
        if cookies.is_empty() {
            self.forget(site);
        }
        while self.bytes > self.limits.ram_bytes_max
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.forget(&oldest);
        }
    }

    /// Notes that a site is in use, if it has a drawer.
    fn touch(&mut self, site: &str) {
        if let Some(drawer) = self.sites.get_mut(site)
            && let Some(name) = self.by_use.remove(&drawer.used)
        {
            self.next_use += 1;
            drawer.used = self.next_use;
            self.by_use.insert(drawer.used, name);
        }
    }

    fn forget(&mut self, site: &str) {
        if let Some(drawer) = self.sites.remove(site) {
            self.by_use.remove(&drawer.used);
            self.bytes -= site_bytes(site) + drawer.cookies.iter().map(cookie_bytes).sum::<usize>();
        }
    }
}

fn cookie_bytes(cookie: &Cookie) -> usize {
    cookie.bytes() + OVERHEAD_BYTES
}

/// The name is stored in both maps.
fn site_bytes(site: &str) -> usize {
    2 * site.len() + OVERHEAD_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limits, Method, ResponseReader};
    use ringcrawl_base::Rng;

    const LIMITS: CookieLimits = CookieLimits { site_count_max: 3, bytes_max: 100, ram_bytes_max: 10_000 };

    fn at(second: u64) -> UnixTime {
        UnixTime::from_micros((1_800_000_000 + second) * 1_000_000)
    }

    fn url(text: &str) -> Url {
        Url::parse(text).expect(text)
    }

    fn set(jar: &mut Jar, from: &str, fields: &[&str], second: u64) {
        let fields: String = fields.iter().map(|field| format!("Set-Cookie: {field}\r\n")).collect();
        let mut reader = ResponseReader::new(Method::Get, Limits::default());
        reader.feed(format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 0\r\n\r\n").as_bytes()).expect("fine");
        jar.store(&url(from), &reader.into_response().expect("whole").headers, at(second));
        check(jar);
    }

    fn field(jar: &mut Jar, to: &str, second: u64) -> String {
        let field = jar.field(&url(to), at(second)).unwrap_or_default();
        check(jar);
        String::from_utf8(field).expect("text")
    }

    /// The counts match the contents.
    fn check(jar: &Jar) {
        let mut counted = 0;
        for (site, drawer) in &jar.sites {
            assert!(!drawer.cookies.is_empty() && drawer.cookies.len() <= jar.limits.site_count_max);
            assert_eq!(jar.by_use.get(&drawer.used), Some(site));
            counted += site_bytes(site) + drawer.cookies.iter().map(cookie_bytes).sum::<usize>();
        }
        assert_eq!(counted, jar.bytes);
        assert!(jar.by_use.len() == jar.sites.len() && jar.bytes <= jar.limits.ram_bytes_max);
    }

    #[test]
    fn cookies_come_back_in_order() {
        let mut jar = Jar::new(LIMITS);
        assert_eq!(field(&mut jar, "http://a.test/", 0), "");
        set(&mut jar, "http://www.a.test/", &["old=1", "deep=2; Path=/x/y", "wide=3; Domain=a.test"], 0);
        assert_eq!(field(&mut jar, "http://www.a.test/x/y/z", 1), "deep=2; old=1; wide=3");
        assert_eq!(field(&mut jar, "http://a.test/", 1), "wide=3");
        assert_eq!(field(&mut jar, "http://b.test/", 1), "");
        // Another value in the same place; a date that has passed deletes it.
        set(&mut jar, "http://www.a.test/", &["old=4", "wide=5; Domain=a.test; Max-Age=10"], 2);
        assert_eq!(field(&mut jar, "http://www.a.test/", 3), "old=4; wide=5");
        assert_eq!(field(&mut jar, "http://www.a.test/", 12), "old=4");
        set(&mut jar, "http://www.a.test/x/", &["deep=; Path=/x/y; Expires=Thu, 01 Jan 1970 00:00:00 GMT"], 12);
        set(&mut jar, "http://www.a.test/", &["old=; Max-Age=0"], 12);
        assert_eq!((field(&mut jar, "http://www.a.test/x/y", 12), jar.bytes(), jar.sites.len()), (String::new(), 0, 0));
    }

    #[test]
    fn the_oldest_make_room() {
        let mut jar = Jar::new(LIMITS);
        set(&mut jar, "http://a.test/", &["a=1", "b=2; Max-Age=5", "c=3"], 0);
        set(&mut jar, "http://a.test/", &["d=4"], 10);
        assert_eq!(field(&mut jar, "http://a.test/", 10), "a=1; c=3; d=4", "the expired one first");
        set(&mut jar, "http://a.test/", &["a=5", "e=6"], 10);
        assert_eq!(field(&mut jar, "http://a.test/", 10), "c=3; d=4; e=6", "a new value makes no cookie younger");
        set(&mut jar, "http://a.test/", &[&format!("f={}", "x".repeat(100))], 10);
        assert_eq!(field(&mut jar, "http://a.test/", 10), "c=3; d=4; e=6", "too long");
    }

    #[test]
    fn memory_is_bounded_by_forgetting_sites() {
        let mut jar = Jar::new(LIMITS);
        for number in 0..1_000 {
            set(&mut jar, &format!("http://site{number}.test/"), &["a=1", "b=2"], number);
            // A site that is constantly used stays.
            if number > 0 {
                assert_eq!(field(&mut jar, "http://www.site0.test/", number), "");
                assert_eq!(field(&mut jar, "http://site0.test/", number), "a=1; b=2");
            }
        }
        assert!((15..60).contains(&jar.sites.len()), "{}", jar.sites.len());
        assert_eq!(field(&mut jar, "http://site999.test/", 1_000), "a=1; b=2");
        assert_eq!(field(&mut jar, "http://site1.test/", 1_000), "");
    }

    #[test]
    fn a_field_has_an_end() {
        let mut jar = Jar::new(CookieLimits { site_count_max: 50, bytes_max: 4_096, ram_bytes_max: 1 << 20 });
        for number in 0..50 {
            set(&mut jar, "http://a.test/", &[&format!("c{number}={}", "x".repeat(1_000))], 0);
        }
        let field = field(&mut jar, "http://a.test/", 0);
        assert!((6_000..=FIELD_BYTES_MAX).contains(&field.len()), "{}", field.len());
    }

    #[test]
    fn random_sites_keep_the_sums_right() {
        let mut rng = Rng::new(1);
        let mut jar = Jar::new(CookieLimits { ram_bytes_max: 3_000, ..LIMITS });
        for second in 0..20_000 {
            let (host, site) = (rng.below(3), rng.below(20));
            let age = if rng.below(3) == 0 { 0 } else { rng.below(1_000) };
            let cookie =
                format!("c{}={}; Max-Age={age}; Domain=s{site}.test", rng.below(6), "v".repeat(rng.index(120)));
            set(&mut jar, &format!("http://h{host}.s{site}.test/"), &[&cookie], second);
        }
        assert!(!jar.sites.is_empty());
    }
}
