//! Which URLs belong to the crawl.
//!
//! Decides, for a link that was found: whether it is on a [`BlockList`]; the built-in limits (length, port, distance
//! from a seed in links, redirects in a row); the first of the operator's [`Rules`] that matches; and if none does,
//! the seeds' sites or hosts (`scope.follow`). All of this is checked again when the URL's turn comes, because the
//! scope may have changed: the crawl was resumed with other limits, or rules and lists were reloaded. After its
//! response, rules decide whether its links are taken and whether it is stored.
//! An embed is judged like a link, with two differences: it is as deep as its page, and `links.embeds` can allow what
//! `scope.follow` does not. That is one hop off-site, because a page is incomplete without it.
//! `seed-hosts` includes the twin of a seed's host: `www.example.org` and `example.org`, because many a seed only
//! leads to the other one.
//! A hop is off-site if it leads to another site than its page's that is no seed's either; on the seeds' sites the
//! count is zero.
//! Invariants: pure; a scope never changes, so all shards share one.
//! Limits: [`rules`], [`blocks`].
//! Leaves to others: robots.txt (`frontier`), whether the URL was seen (`visited`), reading files (`boot`).

mod blocks;
mod condition;
mod explain;
mod glob;
mod index;
mod literal;
mod rule;
mod rules;
mod spelling;
mod subject;
mod surt;

pub use blocks::{BlockList, BlockListReader, BlockedBy, ClearHosts, Mistakes};
pub use condition::Condition;
pub use explain::{Decider, Passed, ScopeVerdict};
pub use rule::{Action, Rule, Stage};
pub use rules::{FILE_BYTES_MAX as RULES_BYTES_MAX, LineError, Rules};
pub use subject::Subject;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::hops::Hops;
use crate::seed::{Seed, SiteParts, site_options, site_parts};
use ringcrawl_base::Failure;
use ringcrawl_base::fuel::OutOfFuel;
use ringcrawl_config::{self as config, BadPorts, Config, Embeds, Follow};
use ringcrawl_url::{Site, Url, is_bad_port};

/// The crawl's scope; cheap to clone, one for each shard.
#[derive(Clone, Debug)]
pub struct Scope {
    limits: Arc<Limits>,
    rules: Arc<Rules>,
    blocks: Arc<BlockList>,
}

/// The limits of a whole run.
#[derive(Debug)]
struct Limits {
    follow: Follow,
    /// Hosts of the seeds, and their twins; empty unless they bound the crawl.
    hosts: HashSet<Box<str>>,
    /// Sites of the seeds.
    sites: HashSet<Box<str>>,
    /// Seeds' sites that have a depth of their own.
    depths: HashMap<Box<str>, u8>,
    /// Parts of these sites that have a depth of their own.
    part_depths: HashMap<Box<str>, SiteParts>,
    depth_max: u16,
    redirects_max: u16,
    url_bytes_max: usize,
    bad_ports: BadPorts,
    embeds: Embeds,
}

/// Why a URL is not crawled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outside {
    /// Too many links from a seed.
    Depth,
    /// Too many redirects in a row.
    Redirects,
    /// Too long.
    Length,
    /// At another protocol's port.
    Port,
    /// On another site or host than the seeds.
    Elsewhere,
    /// It is on a block list.
    Blocked,
    /// A rule denies it, in this line.
    Rule(usize),
    /// Its rules take too long.
    Dear,
}

impl Default for Scope {
    /// Everything within the default limits.
    fn default() -> Scope {
        Scope::new(&config::Scope::default(), [])
    }
}

impl Scope {
    /// The scope of a crawl from `seeds` without options, without rules and without embeds.
    pub fn new<'a>(config: &config::Scope, seeds: impl IntoIterator<Item = &'a Url>) -> Scope {
        let (mut hosts, mut sites) = (HashSet::new(), HashSet::new());
        for seed in seeds {
            if config.follow == Follow::SeedHosts {
                hosts.insert(seed.host().into());
                hosts.extend(twin(seed));
            }
            sites.insert(seed.site().into());
        }
        let limits = Limits {
            follow: config.follow,
            hosts,
            sites,
            depths: HashMap::new(),
            part_depths: HashMap::new(),
            depth_max: config.depth_max,
            redirects_max: config.redirects_max,
            url_bytes_max: config.url_bytes_max,
            bad_ports: config.bad_ports,
            embeds: Embeds::Off,
        };
        Scope { limits: Arc::new(limits), rules: Arc::default(), blocks: Arc::default() }
    }

    /// The scope of a crawl from `seeds` with their options, without rules.
    pub fn of_seeds(config: &Config, seeds: &[Seed]) -> Scope {
        let mut scope = Scope::new(&config.scope, seeds.iter().map(|seed| &seed.url));
        if let Some(limits) = Arc::get_mut(&mut scope.limits) {
            limits.embeds = config.links.embeds;
            let sites = site_options(seeds).into_iter();
            limits.depths = sites.filter_map(|(site, options)| Some((site, options.depth?))).collect();
            limits.part_depths = site_parts(seeds);
            limits.part_depths.retain(|_, parts| parts.has(|options| options.depth.is_some()));
        }
        scope
    }

    /// The same scope with other rules and another block list.
    pub fn with(&self, rules: Arc<Rules>, blocks: Arc<BlockList>) -> Scope {
        Scope { limits: Arc::clone(&self.limits), rules, blocks }
    }

    /// The value of `scope.follow`.
    pub fn follow(&self) -> &'static str {
        self.limits.follow.as_str()
    }

    /// Its rules.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The block list.
    pub fn blocks(&self) -> &BlockList {
        &self.blocks
    }

    /// Whether to queue `url` of `site`, found `hops` from a seed, if it is not blocked.
    pub fn admits(&self, url: &Url, site: &str, hops: Hops) -> Result<(), Outside> {
        let Limits { redirects_max, url_bytes_max, bad_ports, .. } = &*self.limits;
        if url.as_str().len() > *url_bytes_max {
            return Err(Outside::Length);
        }
        if *bad_ports == BadPorts::Deny && is_bad_port(url.port()) {
            return Err(Outside::Port);
        }
        // After too many redirects it is unknown whether they lead to an embed.
        if hops.redirects() > *redirects_max {
            return Err(Outside::Redirects);
        }
        self.is_wanted(&Subject::of_site(url, site, hops))?;
        match () {
            // Its page was admitted, by the depth of its own site.
            () if !hops.is_embed() && hops.links() > self.depth_max(url, site) => Err(Outside::Depth),
            () => Ok(()),
        }
    }

    /// Why a URL that was queued `hops` from a seed is not requested now that its turn has come.
    pub fn refuses(&self, url: &Url, hops: Hops) -> Option<Failure> {
        if self.blocks.blocks(url) {
            return Some(Failure::Blocked);
        }
        // Queued URLs were in scope then, but limits and rules may have changed.
        let subject = Subject::new(url, hops);
        let is_out = self.admits(url, subject.site, hops).is_err() || self.denies(Stage::Fetch, &subject);
        is_out.then_some(Failure::OutOfScope)
    }

    /// Whether the links in the response to a URL are taken.
    pub fn follows(&self, url: &Url, hops: Hops, content_type: Option<&[u8]>) -> bool {
        !self.denies_response(Stage::Follow, url, hops, content_type)
    }

    /// Whether the response to a URL is stored.
    pub fn stores(&self, url: &Url, hops: Hops, content_type: Option<&[u8]>) -> bool {
        !self.denies_response(Stage::Store, url, hops, content_type)
    }

    /// The `hops` to a URL of `site` that was found on a page of `page_site`, with those off-site. A redirect is not
    /// an extra hop off-site, but another site is always at least one away.
    pub fn way(&self, hops: Hops, site: &str, page_site: &str) -> Hops {
        if site == page_site {
            hops
        } else if self.limits.sites.contains(site) {
            hops.with_offsite(0)
        } else if hops.redirects() > 0 {
            hops.with_offsite(hops.offsite().max(1))
        } else {
            hops.with_offsite(hops.offsite() + 1)
        }
    }

    /// The fewest hops off-site of a page of `site`, as the path to a robots.txt is not known.
    pub fn least_offsite(&self, site: &str) -> u16 {
        u16::from(!self.limits.sites.contains(site))
    }

    /// Decides by rules, and if none matches by `scope.follow` and `links.embeds`.
    fn is_wanted(&self, subject: &Subject<'_>) -> Result<(), Outside> {
        match self.rules.decide(Stage::Schedule, subject) {
            Err(OutOfFuel) => Err(Outside::Dear),
            Ok(Some(rule)) if rule.action == Action::Deny => Err(Outside::Rule(rule.line)),
            Ok(Some(_)) => Ok(()),
            Ok(None) if self.is_followed(subject.url, subject.site) || self.is_embedded(subject.hops) => Ok(()),
            Ok(None) => Err(Outside::Elsewhere),
        }
    }

    /// The most links from a seed to a URL of `site`.
    fn depth_max(&self, url: &Url, site: &str) -> u16 {
        let Limits { depths, part_depths, depth_max, .. } = &*self.limits;
        if depths.is_empty() {
            return *depth_max;
        }
        let depth = match part_depths.get(site).and_then(|parts| parts.of(url)) {
            Some((_, options)) => options.depth,
            None => depths.get(site).copied(),
        };
        depth.map_or(*depth_max, u16::from)
    }

    /// The most links from a seed to a URL of `site`, and the most redirects in a row.
    pub fn way_max(&self, url: &Url, site: &str) -> (u16, u16) {
        (self.depth_max(url, site), self.limits.redirects_max)
    }

    /// Whether `scope.follow` admits a URL.
    pub fn is_followed(&self, url: &Url, site: &str) -> bool {
        match self.limits.follow {
            Follow::All => true,
            Follow::SeedSites => self.limits.sites.contains(site),
            Follow::SeedHosts => self.limits.hosts.contains(url.host()),
        }
    }

    /// Whether `links.embeds` allows a URL with these hops.
    fn is_embedded(&self, hops: Hops) -> bool {
        self.limits.embeds == Embeds::OffSite && hops.is_embed() && hops.offsite() <= EMBEDS_OFFSITE_MAX
    }

    fn denies_response(&self, stage: Stage, url: &Url, hops: Hops, content_type: Option<&[u8]>) -> bool {
        self.rules.has(stage) && self.denies(stage, &Subject::new(url, hops).with_type(content_type))
    }

    fn denies(&self, stage: Stage, subject: &Subject<'_>) -> bool {
        // What takes too long to check might be denied.
        self.rules.decide(stage, subject).map_or(true, |rule| rule.is_some_and(|rule| rule.action == Action::Deny))
    }
}

/// The other of the two names that most hosts share: with `www.`, or without. Servers redirect from one to the other.
/// Both belong to one site, so the name above a public suffix's names is not a twin.
fn twin(url: &Url) -> Option<Box<str>> {
    let host = url.host();
    let twin: Box<str> = match host.strip_prefix("www.") {
        Some(apex) => apex.into(),
        None => format!("www.{host}").into(),
    };
    (Site::of(&twin).name == url.site()).then_some(twin)
}

/// Hops off-site to what pages embed that `links.embeds = "off-site"` allows.
const EMBEDS_OFFSITE_MAX: u16 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn config(follow: Follow) -> config::Scope {
        config::Scope { follow, depth_max: 3, redirects_max: 1, url_bytes_max: 60, ..config::Scope::default() }
    }

    fn of_embeds(embeds: Embeds) -> Config {
        let links = config::Links { embeds, ..config::Links::default() };
        Config { scope: config(Follow::SeedSites), links, ..Config::default() }
    }

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn with_rules(follow: Follow, rules: &str) -> Scope {
        let rules = Rules::parse("rules", rules.as_bytes()).unwrap();
        Scope::new(&config(follow), [&url("http://www.example.co.uk/")]).with(Arc::new(rules), Arc::default())
    }

    #[test]
    fn seeds_bound_the_crawl() {
        let admitted = |follow, text: &str, depth| {
            let url = url(text);
            with_rules(follow, "").admits(&url, url.site(), Hops::from_bits(depth)).is_ok()
        };
        assert!(admitted(Follow::All, "http://other.test/", 3));
        assert!(!admitted(Follow::All, "http://other.test/", 4));
        let redirected = Hops::from_bits(3).redirect();
        assert!(admitted(Follow::All, "http://other.test/", redirected.bits()));
        assert!(!admitted(Follow::All, "http://other.test/", redirected.redirect().bits()));
        assert!(!admitted(Follow::All, &format!("http://other.test/{}", "x".repeat(60)), 0));
        assert!(!admitted(Follow::All, "http://www.example.co.uk:25/", 0));
        assert!(admitted(Follow::All, "http://www.example.co.uk:8025/", 0));
        assert!(admitted(Follow::SeedSites, "https://blog.example.co.uk/x", 0));
        assert!(!admitted(Follow::SeedSites, "http://example2.co.uk/", 0));
        assert!(!admitted(Follow::SeedHosts, "https://blog.example.co.uk/x", 0));
        assert!(admitted(Follow::SeedHosts, "https://www.example.co.uk/x", 0));
    }

    /// By the Public Suffix List: a name below `github.io` belongs to someone else, and `www.` makes no other site of
    /// it.
    #[test]
    fn a_host_with_www_and_one_without_are_twins() {
        for (seed, inside, outside) in [
            ("http://a.test/", "https://www.a.test:8443/x", "http://blog.a.test/"),
            ("https://www.a.test/", "http://a.test/x", "http://www.www.a.test/"),
            ("http://blog.a.test/", "http://www.blog.a.test/", "http://www.a.test/"),
            ("http://me.github.io/", "http://www.me.github.io/", "http://www.github.io/"),
            ("http://www.github.io/", "http://www.github.io/", "http://github.io/"),
            ("http://www.co.uk/", "http://www.co.uk/", "http://co.uk/"),
            ("http://127.0.0.1/", "https://127.0.0.1/", "http://www.127.0.0.1/"),
            ("http://[::1]/", "http://[::1]:81/", "http://www/"),
        ] {
            let scope = Scope::new(&config(Follow::SeedHosts), [&url(seed)]);
            let admitted = |text: &str| Url::parse(text).map(|url| scope.admits(&url, url.site(), Hops::default()));
            assert_eq!(admitted(inside), Ok(Ok(())), "{seed} {inside}");
            assert_ne!(admitted(outside), Ok(Ok(())), "{seed} {outside}");
        }
    }

    #[test]
    fn a_seed_has_a_depth_of_its_own_for_its_site() {
        let seed = |text: &str, depth| {
            let options = crate::seed::SeedOptions { depth: Some(depth), ..Default::default() };
            Seed { url: url(text), options: Some(Box::new(options)) }
        };
        let seeds = [seed("http://www.a.test/", 0), seed("http://b.test/", 7), url("http://c.test/").into()];
        let scope = Scope::of_seeds(&of_embeds(Embeds::Off), &seeds);
        let deepest = |text: &str| {
            let url = url(text);
            (0..20).take_while(|links| scope.admits(&url, url.site(), Hops::from_bits(*links)).is_ok()).last()
        };
        let all = ["http://a.test/x", "http://b.test/", "http://c.test/", "http://d.test/"];
        assert_eq!(all.map(deepest), [Some(0), Some(7), Some(3), None]);
    }

    #[test]
    fn rules_come_before_the_seeds_and_behind_the_limits() {
        let scope = with_rules(Follow::SeedSites, "deny path=/forum/*\nallow host=other.test\n");
        let admitted = |text: &str, depth| {
            let url = url(text);
            scope.admits(&url, url.site(), Hops::from_bits(depth))
        };
        assert_eq!(admitted("http://www.example.co.uk/", 0), Ok(()));
        assert_eq!(admitted("http://www.example.co.uk/forum/", 0), Err(Outside::Rule(1)));
        assert_eq!(admitted("http://other.test/", 0), Ok(()));
        assert_eq!(admitted("http://other.test/", 4), Err(Outside::Depth));
        assert_eq!(admitted("http://other.test:25/", 0), Err(Outside::Port));
        assert_eq!(admitted("http://third.test/", 0), Err(Outside::Elsewhere));
    }

    /// One hop off-site, unless a rule allows more; at its page's depth, and never further by a link.
    #[test]
    fn what_pages_embed_is_allowed_one_hop_off_site() {
        let seeds = [Seed::from(url("http://www.example.co.uk/"))];
        let scope = |embeds, rules: &str| {
            let rules = Rules::parse("rules", rules.as_bytes()).unwrap();
            Scope::of_seeds(&of_embeds(embeds), &seeds).with(Arc::new(rules), Arc::default())
        };
        let page = Hops::from_bits(3);
        let admitted = |scope: &Scope, hops: Hops, text: &str| {
            let url = url(text);
            let verdict = scope.admits(&url, url.site(), hops);
            assert_eq!(scope.refuses(&url, hops).is_some(), verdict.is_err());
            verdict
        };
        let (home, off) = ("http://img.example.co.uk/x.png", "http://cdn.test/x.png");
        for (embeds, off_site) in [
            (Embeds::Off, Err(Outside::Elsewhere)),
            (Embeds::InScope, Err(Outside::Elsewhere)),
            (Embeds::OffSite, Ok(())),
        ] {
            let scope = scope(embeds, "");
            assert_eq!(admitted(&scope, page.link(), home), Err(Outside::Depth), "a link is one further");
            assert_eq!(admitted(&scope, page.embed(), home), Ok(()));
            let embed = scope.way(page.embed(), "cdn.test", "example.co.uk");
            assert_eq!(admitted(&scope, embed, off), off_site, "{embeds:?}");
            let target = scope.way(embed.redirect(), "far.test", "cdn.test");
            assert_eq!((target.offsite(), admitted(&scope, target, "http://far.test/")), (1, off_site));
            let further = scope.way(embed, "far.test", "cdn.test");
            assert_eq!(admitted(&scope, further, "http://far.test/"), Err(Outside::Elsewhere));
            let link = scope.way(Hops::default().link(), "cdn.test", "example.co.uk");
            assert_eq!(admitted(&scope, link, off), Err(Outside::Elsewhere));
        }
        let denied = scope(Embeds::OffSite, "deny embed host=cdn.test\n");
        let embed = page.embed().with_offsite(1);
        assert_eq!(admitted(&denied, embed, off), Err(Outside::Rule(1)));
        assert_eq!(admitted(&denied, embed, "http://other.test/"), Ok(()));
        let allowed = scope(Embeds::InScope, "allow embed offsite<=1\ndeny !embed\n");
        assert_eq!(admitted(&allowed, embed, off), Ok(()));
        assert_eq!(admitted(&allowed, page, home), Err(Outside::Rule(2)));
        // A seed's site has a depth of its own, which does not apply to another site's page.
        assert_eq!(admitted(&scope(Embeds::OffSite, ""), Hops::from_bits(200).embed(), home), Ok(()));
    }

    #[test]
    fn what_was_queued_is_judged_again() {
        let refused =
            |rules: &str, text: &str| with_rules(Follow::SeedSites, rules).refuses(&url(text), Hops::default());
        let out = Some(Failure::OutOfScope);
        assert_eq!(refused("", "http://other.test/"), out, "rules were taken away");
        assert_eq!(refused("deny host=other.test", "http://other.test/"), out);
        assert_eq!(refused("allow host=x.test", "http://other.test/"), out);
        assert_eq!(refused("allow host=other.test\ndeny fetch path=/x*", "http://other.test/x"), out);
        assert_eq!(refused("allow host=other.test\ndeny fetch path=/x*", "http://other.test/"), None);
        assert_eq!(refused("allow fetch\nallow", "http://other.test/"), None);
        // The crawl was resumed with other limits.
        let scope = with_rules(Follow::All, "");
        let (deep, redirected) = (Hops::from_bits(4), Hops::default().redirect().redirect());
        for (text, hops, expected) in [
            ("http://other.test/", Hops::from_bits(3).redirect(), None),
            ("http://other.test/", deep, out),
            ("http://other.test/", deep.embed(), None),
            ("http://other.test/", redirected, out),
            ("http://other.test:25/", Hops::default(), out),
            (&format!("http://other.test/{}", "x".repeat(60)), Hops::default(), out),
        ] {
            assert_eq!(scope.refuses(&url(text), hops), expected, "{text} {hops:?}");
        }
    }

    #[test]
    fn responses_are_judged_by_their_type() {
        let scope = with_rules(
            Follow::All,
            "deny follow,store type=text/css\nallow store type=text/html\ndeny store path=/x\n",
        );
        let (page, hops) = (url("http://a.test/x"), Hops::default());
        let both = |content_type: &[u8]| {
            let content_type = Some(content_type);
            (scope.follows(&page, hops, content_type), scope.stores(&page, hops, content_type))
        };
        assert_eq!(both(b"text/css"), (false, false));
        assert_eq!(both(b"text/html"), (true, true));
        assert_eq!(both(b"image/png"), (true, false));
    }

    #[test]
    fn hops_off_site_are_those_since_a_seeds_site() {
        let scope = with_rules(Follow::All, "");
        let way = |hops: Hops, site: &str, page_site: &str| scope.way(hops, site, page_site).offsite();
        let (at_home, off) = (Hops::default().link(), Hops::default().link().with_offsite(1));
        assert_eq!(way(at_home, "example.co.uk", "example.co.uk"), 0);
        assert_eq!(way(at_home, "a.test", "example.co.uk"), 1);
        assert_eq!(way(off, "a.test", "a.test"), 1);
        assert_eq!(way(off, "b.test", "a.test"), 2);
        assert_eq!(way(off, "example.co.uk", "a.test"), 0);
        assert_eq!(way(at_home.redirect(), "a.test", "example.co.uk"), 1);
        assert_eq!(way(off.redirect(), "b.test", "a.test"), 1);
        assert_eq!((scope.least_offsite("a.test"), scope.least_offsite("example.co.uk")), (1, 0));
    }
}
