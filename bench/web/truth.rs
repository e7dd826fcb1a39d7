//! The truth: what a correct, polite crawl fetches, computed from the model without a request.
//!
//! Decides: breadth-first over places, not URLs, so that it needs no HTML or URL parser and cannot share their bugs.
//! A crawl follows every link and redirect, requests nothing that robots.txt forbids, and requests everything else
//! once. How much of a page survives a fault depends on the crawler's own limits: they are taken from its
//! configuration.
//! Invariants: pure; every URL is in at most one of the lists. robots.txt itself and traps are in none. A maze, which
//! has no end, is represented by its entrance alone.
//! Limits: not for endless webs; some 150 bytes of memory a URL.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};

use super::faults::ending::{self, Ending};
use super::faults::spot::Spot;
use super::faults::{Fault, pages};
use super::model::Model;
use super::place::{Item, Place};
use ringcrawl_config::Config;
use ringcrawl_url::Url;

/// Everything there is to find.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Truth {
    /// Pages and redirects: everything that answers below 400.
    pub fetched: BTreeMap<Url, Expected>,
    /// Linked URLs that answer 404, and seeds that answer 421.
    pub missing: BTreeMap<Url, Expected>,
    /// Linked URLs that robots.txt forbids: never requested.
    pub denied: BTreeSet<Url>,
    /// URLs that a fault keeps from being fetched completely, at once or at all.
    pub faulty: BTreeMap<Url, Ending>,
    /// The entrances of mazes: each is fetched completely, and behind it as much as the crawler's scope allows.
    pub mazes: BTreeSet<Url>,
}

/// The server's response at a URL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Expected {
    /// HTTP status.
    pub status: u16,
    /// Length of the body after all decoding.
    pub body_bytes: u64,
    /// XXH3-64 (seed 0) of the body after all decoding.
    pub body_digest: u64,
}

/// Why there is no truth.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TruthError {
    /// The web is endless.
    #[error("an endless web has no complete truth")]
    Endless,
}

/// Everything reachable from `seeds` for a crawler with default settings; without faults, for any crawler.
pub fn reachable(model: &Model, seeds: &[Url]) -> Result<Truth, TruthError> {
    reachable_by(model, seeds, &Config::default())
}

/// Everything reachable from `seeds` for a crawler with this configuration.
pub fn reachable_by(model: &Model, seeds: &[Url], config: &Config) -> Result<Truth, TruthError> {
    if model.config().endless {
        return Err(TruthError::Endless);
    }
    let mut walk =
        Walk { model, config, seen: HashSet::new(), queue: VecDeque::new(), truth: Truth::default(), body: Vec::new() };
    for seed in seeds {
        match model.locate_url(seed) {
            Some(place) if model.url_of(&place).as_ref() == Some(seed) => walk.offer(place),
            place => walk.stray(seed, place),
        }
    }
    while let Some((place, url)) = walk.queue.pop_front() {
        walk.visit(&place, url);
    }
    Ok(walk.truth)
}

struct Walk<'a> {
    model: &'a Model,
    config: &'a Config,
    seen: HashSet<Place>,
    queue: VecDeque<(Place, Url)>,
    truth: Truth,
    body: Vec<u8>,
}

impl Walk<'_> {
    fn offer(&mut self, place: Place) {
        if !self.seen.insert(place) {
            return;
        }
        let (Some(site), Some(url)) = (self.model.site(place.site), self.model.url_of(&place)) else { return };
        let robots_bytes_max = self.config.robots.body_bytes_max;
        if !self.model.allows(&site, place.item, url.path_and_query(), robots_bytes_max) {
            self.truth.denied.insert(url);
            return;
        }
        match place.item {
            Item::Fault(_, Spot::Maze(_)) => {
                self.truth.mazes.insert(url);
            }
            Item::Fault(fault, spot) if !ending::is_reached(fault, spot, self.config) => {}
            item if item.is_robots() => {}
            _ => self.queue.push_back((place, url)),
        }
    }

    fn visit(&mut self, place: &Place, url: Url) {
        if let Item::Fault(fault, spot) = place.item
            && let Some(ending) = ending::ending(fault, spot, self.config)
        {
            let has_page = match &ending {
                Ending::Cut { .. } => true,
                Ending::Again { last, .. } => last.status == 200,
                Ending::Failed { .. } => false,
            };
            self.truth.faulty.insert(url, ending);
            if has_page {
                self.follow(place.site, fault, spot);
            }
            return;
        }
        let location = self.record(Some(place), url.clone());
        if let Some(target) = location.and_then(|location| url.join(&location).ok()) {
            if let Some(place) = self.model.locate_url(&target) {
                self.offer(place);
            }
        } else if let (Item::Page(page), Some(site)) = (place.item, self.model.site(place.site)) {
            self.model.plan(&site, page, |_, place| self.offer(place));
        } else if let Item::Fault(fault, spot) = place.item {
            self.follow(place.site, fault, spot);
        }
    }

    fn follow(&mut self, site: u32, fault: Fault, spot: Spot) {
        for link in pages::links(fault, spot) {
            self.offer(Place::canonical(site, Item::Fault(fault, link)));
        }
    }

    /// A seed that no page links to: another spelling, or not a page at all. It may redirect to a page.
    fn stray(&mut self, seed: &Url, place: Option<Place>) {
        let mut url = seed.clone();
        let mut place = place;
        for _ in 0..STRAY_HOPS_MAX {
            let site = place.and_then(|place| self.model.site(place.site));
            if site.is_some_and(|site| !site.allows(url.path_and_query().as_bytes())) {
                self.truth.denied.insert(url);
                return;
            }
            let Some(location) = self.record(place.as_ref(), url.clone()) else { return };
            let Ok(target) = url.join(&location) else { return };
            place = self.model.locate_url(&target);
            match place {
                Some(place) if self.model.url_of(&place).as_ref() == Some(&target) => return self.offer(place),
                _ => url = target,
            }
        }
    }

    /// Records the server's response at `url`; returns its Location.
    fn record(&mut self, place: Option<&Place>, url: Url) -> Option<String> {
        self.body.clear();
        let answer = self.model.answer(place, url.path_and_query(), false, &mut self.body);
        let expected = Expected {
            status: answer.status,
            body_bytes: self.body.len() as u64,
            body_digest: xxhash_rust::xxh3::xxh3_64(&self.body),
        };
        let list = if answer.status < 400 { &mut self.truth.fetched } else { &mut self.truth.missing };
        list.insert(url, expected);
        answer.location
    }
}

/// http to https, alias to main host, and one to spare.
const STRAY_HOPS_MAX: usize = 3;

#[cfg(test)]
mod tests {
    use super::super::faults::Faults;
    use super::super::model::ModelConfig;
    use super::super::place::OriginVariant;
    use super::*;

    /// The slow reference: crawls the bytes as a crawler does, with a tag reader of its own that knows just enough
    /// HTML.
    fn naive(model: &Model, seeds: &[Url]) -> Truth {
        let mut truth = Truth::default();
        let mut seen: BTreeSet<Url> = seeds.iter().cloned().collect();
        let mut queue: Vec<Url> = seeds.to_vec();
        while let Some(url) = queue.pop() {
            let site = model.locate_url(&url).and_then(|place| model.site(place.site));
            if site.is_some_and(|site| !site.allows(url.path_and_query().as_bytes())) {
                truth.denied.insert(url);
                continue;
            }
            let mut body = Vec::new();
            let answer = model.answer_url(&url, &mut body);
            let expected = Expected {
                status: answer.status,
                body_bytes: body.len() as u64,
                body_digest: xxhash_rust::xxh3::xxh3_64(&body),
            };
            let list = if answer.status < 400 { &mut truth.fetched } else { &mut truth.missing };
            list.insert(url.clone(), expected);
            let mut found: Vec<Url> = answer.location.iter().filter_map(|location| url.join(location).ok()).collect();
            if answer.content_type.starts_with("text/html") {
                found.extend(links(&url, std::str::from_utf8(&body).unwrap()));
            }
            for link in found {
                if seen.insert(link.clone()) {
                    queue.push(link);
                }
            }
        }
        truth
    }

    fn links(page: &Url, html: &str) -> Vec<Url> {
        let mut base = page.clone();
        let mut found = Vec::new();
        let mut rest = html;
        while let Some(start) = rest.find('<') {
            rest = &rest[start..];
            // Markup is hidden in comments, bogus comments and raw text. Each of these is skipped as a whole.
            let skip = [
                ("<!-->", ""),
                ("<!--", "-->"),
                ("<?", ">"),
                ("</", ">"),
                ("<script><!--", "--></script>"),
                ("<script", "</script>"),
                ("<style", "</style>"),
                ("<textarea", "</textarea>"),
                ("<title", "</title>"),
            ]
            .into_iter()
            .find(|(open, _)| rest.starts_with(open));
            if let Some((open, close)) = skip {
                let after = &rest[open.len()..];
                rest = &after[after.find(close).unwrap() + close.len()..];
                continue;
            }
            let (tag, href, length) = read_tag(rest);
            rest = &rest[length..];
            let Some(href) = href else { continue };
            match tag.as_str() {
                "base" => base = base.join(&href).unwrap(),
                "a" | "area" | "link" => found.extend(base.join(&href)),
                _ => {}
            }
        }
        found
    }

    /// Name, first href and length of the tag that `text` starts with.
    fn read_tag(text: &str) -> (String, Option<String>, usize) {
        let mut chars = text.char_indices().skip(1).peekable();
        let mut name = String::new();
        let mut href = None;
        while let Some((_, c)) = chars.next_if(|(_, c)| c.is_ascii_alphanumeric()) {
            name.push(c.to_ascii_lowercase());
        }
        if name.is_empty() {
            return (name, None, 1);
        }
        loop {
            while chars.next_if(|(_, c)| c.is_whitespace() || *c == '/').is_some() {}
            match chars.peek().copied() {
                None => return (name, href, text.len()),
                Some((at, '>')) => return (name, href, at + 1),
                _ => {}
            }
            let mut attribute = String::new();
            while let Some((_, c)) = chars.next_if(|(_, c)| !c.is_whitespace() && !matches!(c, '=' | '>' | '/')) {
                attribute.push(c.to_ascii_lowercase());
            }
            while chars.next_if(|(_, c)| c.is_whitespace()).is_some() {}
            let mut value = String::new();
            if chars.next_if(|(_, c)| *c == '=').is_some() {
                while chars.next_if(|(_, c)| c.is_whitespace()).is_some() {}
                if let Some((_, quote)) = chars.next_if(|(_, c)| matches!(c, '"' | '\'')) {
                    value.extend(chars.by_ref().map(|(_, c)| c).take_while(|c| *c != quote));
                } else {
                    while let Some((_, c)) = chars.next_if(|(_, c)| !c.is_whitespace() && *c != '>') {
                        value.push(c);
                    }
                }
            }
            if attribute == "href" && href.is_none() {
                let entities = [
                    ("&#38;", "&"),
                    ("&#x26;", "&"),
                    ("&#x2F;", "/"),
                    ("&sol;", "/"),
                    ("&eacute;", "é"),
                    ("&amp;", "&"),
                ];
                href = Some(entities.iter().fold(value, |value, (from, to)| value.replace(from, to)));
            }
        }
    }

    #[test]
    fn agrees_with_a_naive_crawl() {
        for rng_seed in 1..=4 {
            let ports = if rng_seed == 4 { (80, 443) } else { (8080, 8443) };
            let model = Model::new(ModelConfig {
                rng_seed,
                sites: 30,
                pages: 1_500,
                http_port: ports.0,
                https_port: ports.1,
                ..ModelConfig::default()
            })
            .unwrap();
            let seeds = model.seeds(1);
            let truth = reachable(&model, &seeds).unwrap();
            let naive = naive(&model, &seeds);
            for url in naive.fetched.keys().chain(naive.missing.keys()) {
                let place = model.locate_url(url);
                assert!(!matches!(place.map(|p| p.item), Some(Item::Trap(_) | Item::Unknown)), "{}", url.as_str());
            }
            assert!(truth == naive);
            let pages = truth.fetched.values().filter(|expected| expected.status == 200).count();
            let denied_pages = truth.denied.iter().filter(|url| matches!(model.locate_url(url), Some(place) if matches!(place.item, Item::Page(_)) && place.variant == OriginVariant::Canonical)).count();
            // Everything is found, and every kind of URL occurs.
            assert!(pages + denied_pages >= 1_490, "{pages} + {denied_pages}");
            assert!(!truth.denied.is_empty() && !truth.missing.is_empty());
            for status in [301, 302, 307] {
                assert!(truth.fetched.values().any(|expected| expected.status == status), "{status}");
            }
        }
    }

    #[test]
    fn faults_leave_the_rest_of_the_web_as_it_is() {
        let truth = |faults| {
            let model = Model::new(ModelConfig { sites: 30, pages: 1_500, faults, ..ModelConfig::default() }).unwrap();
            (reachable(&model, &model.seeds(1)).unwrap(), model)
        };
        let (healthy, _) = truth(Faults::NONE);
        let (all, model) = truth(Faults::all());
        assert!(healthy.faulty.is_empty() && healthy.mazes.is_empty());
        let fault_of = |url: &Url| match model.locate_url(url).map(|place| place.item) {
            Some(Item::Fault(fault, _)) => Some(fault),
            _ => None,
        };
        let rest = |truth: &Truth| {
            let statuses = truth.fetched.iter().chain(&truth.missing).map(|(url, expected)| (url, expected.status));
            let rest: BTreeMap<Url, u16> = statuses
                .filter(|(url, _)| fault_of(url).is_none())
                .map(|(url, status)| (url.clone(), status))
                .collect();
            let denied: Vec<Url> = truth.denied.iter().filter(|url| fault_of(url).is_none()).cloned().collect();
            (rest, denied)
        };
        assert!(rest(&healthy) == rest(&all));
        let met: BTreeSet<Fault> = all
            .fetched
            .keys()
            .chain(all.faulty.keys())
            .chain(&all.mazes)
            .chain(&all.denied)
            .filter_map(fault_of)
            .collect();
        assert_eq!(met.len(), Fault::ALL.len());
        for url in all.fetched.keys().chain(all.faulty.keys()).chain(&all.mazes) {
            let place = model.locate_url(url).unwrap();
            assert_eq!(model.url_of(&place).as_ref(), Some(url));
            assert!(!place.item.is_trap() && model.address_of(url.host()).is_some());
        }
    }

    #[test]
    fn strays_and_endless() {
        let model = Model::new(ModelConfig { https_share: 1.0, ..ModelConfig::default() }).unwrap();
        let host = model.site(0).unwrap().hosts().remove(1);
        let seeds = [
            Url::parse(&format!("http://{host}:8080/nothing")).unwrap(),
            Url::parse("http://elsewhere.test:8080/").unwrap(),
        ];
        let truth = reachable(&model, &seeds).unwrap();
        let statuses: Vec<u16> = truth.fetched.values().chain(truth.missing.values()).map(|e| e.status).collect();
        assert_eq!(statuses, [301, 301, 421, 404]);
        let model = Model::new(ModelConfig { endless: true, ..ModelConfig::default() }).unwrap();
        assert_eq!(reachable(&model, &model.seeds(1)), Err(TruthError::Endless));
    }
}
