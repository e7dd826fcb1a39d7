//! A seed: a URL to begin with, and what its site may cost.
//!
//! Decides: options follow the URL in its line, `http://a.test/ pages=100 depth=2`, and hold for the URL's *site*,
//! which one shard owns. If several seeds of a site have options, each holds for its own part of the site: its host,
//! with or without `www.`, and everything below its directory there; of nested parts the innermost counts. For the
//! rest of the site, and for seeds with the same part, the last seed that names an option counts. So the URL itself
//! determines its options, no queued URL needs to know its seed, and millions of seeds stay cheap. A seed that is
//! given again with options counts as given now, so a later run can change them. `0` is no bound, even if the
//! configuration has one; but `depth=0` is the seed alone.
//! Invariants: what `Display` writes, `Seed::parse_options` reads back.
//! Leaves to others: the form of a seed's URL (`boot`), keeping to budgets (`frontier`, `scope`).

use std::collections::HashMap;
use std::fmt;

use ringcrawl_base::time::Duration;
use ringcrawl_config as config;
use ringcrawl_url::Url;

/// A URL to begin with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seed {
    /// The URL.
    pub url: Url,
    /// The options for its site; most seeds have none.
    pub options: Option<Box<SeedOptions>>,
}

/// What the site of a seed may cost; `None` leaves it to the configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SeedOptions {
    /// Pages: responses of status 2xx; 0: any number.
    pub pages: Option<u32>,
    /// Bytes of responses on the wire; 0: any number.
    pub bytes: Option<u64>,
    /// Seconds since the first request; 0: any number.
    pub seconds: Option<u32>,
    /// Links from a seed.
    pub depth: Option<u8>,
}

impl From<Url> for Seed {
    fn from(url: Url) -> Seed {
        Seed { url, options: None }
    }
}

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.url.as_str())?;
        let Some(options) = &self.options else { return Ok(()) };
        if let Some(pages) = options.pages {
            write!(f, " pages={pages}")?;
        }
        if let Some(bytes) = options.bytes {
            write!(f, " bytes={bytes}B")?;
        }
        if let Some(seconds) = options.seconds {
            write!(f, " time={seconds}s")?;
        }
        options.depth.map_or(Ok(()), |depth| write!(f, " depth={depth}"))
    }
}

impl SeedOptions {
    /// Parses the words after a URL; the error says what was expected.
    pub fn parse(text: &str) -> Result<SeedOptions, String> {
        let mut options = SeedOptions::default();
        for word in text.split_whitespace() {
            let Some((key, value)) = word.split_once('=') else {
                return Err(format!("\"{word}\" is no option: {EXPECTED}"));
            };
            let number = |max: u64| {
                let number = value.parse::<u64>().ok().filter(|number| *number <= max);
                number.ok_or_else(|| format!("{key}={value}: expected a whole number from 0 to {max}"))
            };
            let is_again = match key {
                "pages" => options.pages.replace(number(u32::MAX.into())? as u32).is_some(),
                "bytes" => {
                    let bytes = config::read_size(value).map_err(|expected| format!("{key}={value}: {expected}"))?;
                    options.bytes.replace(bytes).is_some()
                }
                "time" => {
                    let time = config::read_duration(value).map_err(|expected| format!("{key}={value}: {expected}"))?;
                    options.seconds.replace(whole_seconds(time)).is_some()
                }
                "depth" => options.depth.replace(number(u8::MAX.into())? as u8).is_some(),
                _ => {
                    let meant = config::nearest(key, KEYS.into_iter());
                    let meant = meant.map(|meant| format!(" (did you mean {meant}?)")).unwrap_or_default();
                    return Err(format!("\"{key}\" is no option{meant}: {EXPECTED}"));
                }
            };
            if is_again {
                return Err(format!("{key} is there twice"));
            }
        }
        Ok(options)
    }

    /// These options, overridden by those of `later`.
    pub fn with(self, later: SeedOptions) -> SeedOptions {
        SeedOptions {
            pages: later.pages.or(self.pages),
            bytes: later.bytes.or(self.bytes),
            seconds: later.seconds.or(self.seconds),
            depth: later.depth.or(self.depth),
        }
    }
}

/// Seeds, each URL once.
#[derive(Debug, Default)]
pub struct SeedList {
    /// `None` if it was given again later.
    seeds: Vec<Option<Seed>>,
    places: HashMap<Url, usize>,
}

impl SeedList {
    /// Adds a seed.
    pub fn push(&mut self, mut seed: Seed) {
        if let Some(place) = self.places.get(&seed.url) {
            let Some(later) = seed.options.as_deref() else { return };
            let before = self.seeds.get_mut(*place).and_then(Option::take).and_then(|before| before.options);
            seed.options = Some(Box::new(before.map_or(*later, |before| before.with(*later))));
        }
        self.places.insert(seed.url.clone(), self.seeds.len());
        self.seeds.push(Some(seed));
    }

    /// Whether there are no seeds.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// All of them, in order.
    pub fn into_seeds(self) -> Vec<Seed> {
        self.seeds.into_iter().flatten().collect()
    }
}

/// The options of each site that has any, in order: the last value of each counts.
pub fn site_options<'a>(seeds: impl IntoIterator<Item = &'a Seed>) -> HashMap<Box<str>, SeedOptions> {
    let mut sites: HashMap<Box<str>, SeedOptions> = HashMap::new();
    for Seed { url, options } in seeds {
        if let Some(options) = options.as_deref() {
            let site = sites.entry(url.site().into()).or_default();
            *site = site.with(*options);
        }
    }
    sites
}

/// The parts of one site, and their options: there may be a hundred thousand seeds of one host.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SiteParts {
    /// By host without `www.`, and the directory of the seed: up to the last slash of its path. This cannot be the
    /// name of a site, as it has a slash.
    parts: HashMap<Box<str>, SeedOptions>,
    /// The most slashes in any of these names.
    slashes_max: usize,
}

impl SiteParts {
    /// Adds the options of a seed in the directory of `url`.
    fn push(&mut self, url: &Url, options: SeedOptions) {
        let path = url.path_and_query().split('?').next().unwrap_or_default();
        let directory = path.rfind('/').and_then(|last| path.get(..=last)).unwrap_or("/");
        let name = format!("{}{directory}", without_www(url.host()));
        self.slashes_max = self.slashes_max.max(name.matches('/').count());
        let known = self.parts.entry(name.into()).or_default();
        *known = known.with(options);
    }

    /// Keeps the parts for which `is_so` is true.
    pub fn retain(&mut self, mut is_so: impl FnMut(&str, &SeedOptions) -> bool) {
        self.parts.retain(|name, options| is_so(name, options));
    }

    /// Whether `is_so` is true for any part.
    pub fn has(&self, is_so: impl Fn(&SeedOptions) -> bool) -> bool {
        self.parts.values().any(is_so)
    }

    /// The innermost part that contains `url`: its name and its options.
    pub fn of(&self, url: &Url) -> Option<(&str, &SeedOptions)> {
        let place = format!("{}{}", without_www(url.host()), url.path_and_query());
        let path = place.split('?').next().unwrap_or_default();
        let ends = memchr::memchr_iter(b'/', path.as_bytes()).take(self.slashes_max);
        let found = ends.filter_map(|end| self.parts.get_key_value(path.get(..=end)?)).last();
        found.map(|(name, options)| (&**name, options))
    }
}

/// The parts of each site with options in more than one part.
pub fn site_parts<'a>(seeds: impl IntoIterator<Item = &'a Seed>) -> HashMap<Box<str>, SiteParts> {
    let mut sites: HashMap<Box<str>, SiteParts> = HashMap::new();
    for Seed { url, options } in seeds {
        if let Some(options) = options.as_deref() {
            sites.entry(url.site().into()).or_default().push(url, *options);
        }
    }
    sites.retain(|_, of_site| of_site.parts.len() > 1);
    sites
}

fn without_www(host: &str) -> &str {
    host.strip_prefix("www.").unwrap_or(host)
}

/// Rounds up to whole seconds, the smallest unit of an option.
fn whole_seconds(time: Duration) -> u32 {
    u32::try_from(time.as_millis().div_ceil(1_000)).unwrap_or(u32::MAX)
}

const KEYS: [&str; 4] = ["pages", "bytes", "time", "depth"];
const EXPECTED: &str = "expected pages=N, bytes=SIZE, time=DURATION or depth=N behind the URL";

#[cfg(test)]
mod tests {
    use super::*;

    fn seed(url: &str, options: &str) -> Seed {
        let options = (!options.is_empty()).then(|| Box::new(SeedOptions::parse(options).unwrap()));
        Seed { url: Url::parse(url).unwrap(), options }
    }

    #[test]
    fn options_there_and_back() {
        let text = "pages=100 bytes=3145728B time=3600s depth=2";
        let given = seed("http://a.test/", "time=1h  bytes=3MiB\tdepth=2 pages=100");
        assert_eq!(given.to_string(), format!("http://a.test/ {text}"));
        assert_eq!(given, seed("http://a.test/", text));
        assert_eq!(seed("http://a.test/", "").to_string(), "http://a.test/");
        assert_eq!(SeedOptions::parse("time=1ms").map(|options| options.seconds), Ok(Some(1)));
    }

    #[test]
    fn mistakes_say_what_is_expected() {
        for (text, why) in [
            ("pages", "\"pages\" is no option: expected pages=N"),
            ("page=1", "\"page\" is no option (did you mean pages?)"),
            ("pages=x", "pages=x: expected a whole number from 0 to 4294967295"),
            ("pages=-1", "expected a whole number"),
            ("depth=256", "from 0 to 255"),
            ("bytes=10", "bytes=10: expected a whole number and a unit"),
            ("bytes=10KB", "such as 64KiB"),
            ("time=10", "time=10: expected a whole number and a unit"),
            ("pages=1 pages=2", "pages is there twice"),
            ("# ours", "\"#\" is no option"),
        ] {
            let error = SeedOptions::parse(text).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn the_last_line_of_a_site_holds() {
        let mut list = SeedList::default();
        list.push(seed("http://a.test/", "pages=10 depth=1"));
        list.push(seed("http://www.a.test/b", "pages=20"));
        list.push(seed("http://b.test/", ""));
        list.push(seed("http://a.test/", ""));
        list.push(seed("http://a.test/", "pages=30"));
        let seeds = list.into_seeds();
        let lines: Vec<String> = seeds.iter().map(Seed::to_string).collect();
        assert_eq!(lines, ["http://www.a.test/b pages=20", "http://b.test/", "http://a.test/ pages=30 depth=1"]);
        let sites = site_options(&seeds);
        assert_eq!(sites.len(), 1);
        assert_eq!(sites.get("a.test"), Some(&SeedOptions { pages: Some(30), depth: Some(1), ..Default::default() }));
        // Both begin at the same place.
        assert_eq!(site_parts(&seeds).len(), 0);
    }

    #[test]
    fn each_seed_of_a_site_keeps_its_own_options() {
        let seeds = [
            seed("http://a.test/", "pages=1"),
            seed("https://www.a.test/blog/", "pages=2"),
            seed("http://a.test/blog/2026/first.html?x=/y/", "pages=3"),
            seed("http://a.test/blog/index.html", "depth=4"),
            seed("http://shop.a.test/x", "pages=5"),
            seed("http://b.test/", "pages=6"),
            seed("http://b.test/other", ""),
        ];
        let parts = site_parts(&seeds);
        assert_eq!(parts.len(), 1, "of b.test one seed says something");
        let pages = |text: &str| {
            let url = Url::parse(text).unwrap();
            parts["a.test"].of(&url).map(|(_, options)| (options.pages, options.depth))
        };
        for (text, expected) in [
            ("http://a.test/x", Some((Some(1), None))),
            ("https://www.a.test/?/blog/", Some((Some(1), None))),
            ("http://a.test/blog", Some((Some(1), None))),
            ("http://a.test:81/blog/x", Some((Some(2), Some(4)))),
            ("http://a.test/blog/2026/", Some((Some(3), None))),
            ("http://www.shop.a.test/", Some((Some(5), None))),
            ("http://other.a.test/", None),
        ] {
            assert_eq!(pages(text), expected, "{text}");
        }
        let name = |text: &str| parts["a.test"].of(&Url::parse(text).unwrap()).map(|(name, _)| name.to_owned());
        assert_eq!(name("http://www.a.test/blog/2026/1").as_deref(), Some("a.test/blog/2026/"));
        assert_eq!(name("http://shop.a.test/").as_deref(), Some("shop.a.test/"));
    }
}
