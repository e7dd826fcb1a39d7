//! Modes of the exchange, on the web of Figure 2 of Cho and Garcia-Molina, "Parallel Crawlers" (2002): two sites of nine pages, a shard for each.
//!
//! ```text
//! S1: a → b, c    c → g (S2)    d → e
//! S2: f → g, i    g → h         h → d (S1)
//! ```

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::rig::program::{Ended, run};
use crate::rig::servers::{read_request, respond, server};
use ringcrawl_base::TempFolder;
use ringcrawl_brain::route::Partition;

/// Which site a page lies on, and where it links to.
const PAGES: [(&str, usize, &[&str]); 9] = [
    ("a", 0, &["b", "c"]),
    ("b", 0, &[]),
    ("c", 0, &["g"]),
    ("d", 0, &["e"]),
    ("e", 0, &[]),
    ("f", 1, &["g", "i"]),
    ("g", 1, &["h"]),
    ("h", 1, &["d"]),
    ("i", 1, &[]),
];

struct Web {
    port: u16,
    /// By number of the site's shard.
    hosts: [String; 2],
    /// How often each page was asked for.
    asked: Arc<Mutex<BTreeMap<String, u32>>>,
}

impl Web {
    fn new() -> Web {
        let partition = Partition::by_site(2);
        let host_of = |shard| {
            let names = (0..).map(|number| format!("s{number}.test"));
            names.into_iter().find(|name| partition.home_of(name) == shard).expect("a name")
        };
        let hosts = [host_of(0), host_of(1)];
        let asked = Arc::new(Mutex::new(BTreeMap::new()));
        let (noted, names) = (Arc::clone(&asked), hosts.clone());
        let (addr, _) = server(move |mut stream, _| {
            let port = stream.local_addr().map_or(0, |addr| addr.port());
            while let Some(request) = read_request(&mut stream) {
                let path = request.split_whitespace().nth(1).unwrap_or_default().trim_start_matches('/').to_owned();
                let page = PAGES.iter().find(|(name, ..)| *name == path);
                let links = page.map_or(&[][..], |(.., links)| *links).iter().map(|to| {
                    let site = PAGES.iter().find(|(name, ..)| name == to).map_or(0, |(_, site, _)| *site);
                    format!("<a href='http://{}:{port}/{to}'>{to}</a>", names[site])
                });
                let body: String = links.collect();
                if page.is_some() {
                    *noted.lock().expect("counts").entry(path).or_insert(0) += 1;
                }
                respond(&mut stream, &body);
            }
        });
        Web { port: addr.port(), hosts, asked }
    }

    fn config(&self, folder: &TempFolder) -> String {
        let [first, second] = &self.hosts;
        folder.file(
            "config.toml",
            &format!(
                "politeness.host_delay = \"10ms\"\npoliteness.site_delay = \"0s\"\npoliteness.ip_delay = \"0s\"\n\
                 fetch.private_addresses = \"loopback-only\"\n[dns.hosts]\n\"{first}\" = [\"127.0.0.1\"]\n\"{second}\" = [\"127.0.0.1\"]\n"
            ),
        )
    }

    fn crawl(&self, dir: &str, config: &str, more: &[&str]) -> Ended {
        let [first, second] = &self.hosts;
        let seeds = [format!("http://{first}:{}/a", self.port), format!("http://{second}:{}/f", self.port)];
        let order = ["crawl", &seeds[0], &seeds[1], "--dir", dir, "-c", config, "--shards", "2", "--json", "-"];
        run(&[&order[..], more].concat())
    }

    fn asked(&self) -> BTreeMap<String, u32> {
        std::mem::take(&mut *self.asked.lock().expect("counts"))
    }
}

/// In firewall mode seven of nine pages are covered, in exchange mode all of them, and none twice.
#[test]
fn firewall_and_exchange_cover_what_the_paper_says() {
    for (mode, missing, dropped, sent) in [("firewall", &["d", "e"][..], 2, 0), ("exchange", &[], 0, 2)] {
        let (folder, web) = (TempFolder::new(&format!("modes-{mode}")), Web::new());
        let (dir, config) = (folder.at("crawl"), web.config(&folder));
        let json = web.crawl(&dir, &config, &["--set", &format!("exchange.mode={mode}")]).expect(0).json();
        let expected: BTreeMap<String, u32> = PAGES
            .iter()
            .filter(|(name, ..)| !missing.contains(name))
            .map(|(name, ..)| ((*name).to_owned(), 1))
            .collect();
        assert_eq!(web.asked(), expected, "{mode}");
        assert_eq!(
            (&json["links_crossing"], &json["links_crossing_dropped"], &json["exchanged_out"]),
            (&2.into(), &dropped.into(), &sent.into()),
            "{mode}"
        );
    }
}

/// In cross-over mode the first shard comes by way of g and h to d and e, so those two are had twice, as the paper says. It looks at that
/// shard alone: the second one, when it has nothing else left, comes from h to d and e. Without any agreement it is the same on this web.
#[test]
fn shards_that_cross_over_cover_everything_and_overlap() {
    for mode in ["cross-over", "independent"] {
        let (folder, web) = (TempFolder::new(&format!("modes-{mode}")), Web::new());
        let (dir, config) = (folder.at("crawl"), web.config(&folder));
        let json = web.crawl(&dir, &config, &["--set", &format!("exchange.mode={mode}")]).expect(0).json();
        let twice = ["d", "e", "g", "h"];
        let expected: BTreeMap<String, u32> =
            PAGES.iter().map(|(name, ..)| ((*name).to_owned(), 1 + u32::from(twice.contains(name)))).collect();
        assert_eq!(web.asked(), expected, "{mode}");
        assert_eq!((&json["exchanged_out"], &json["pages"]), (&0.into(), &13.into()), "{mode}");
        // Both shards know some of the URLs, so another number of them is refused.
        let ended = run(&["crawl", "--dir", &dir, "--shards", "3"]).expect(2);
        assert!(ended.err.contains("crawl.shards 2, and 3 was asked for"), "{}", ended.err);
    }
}

/// What was not followed is not in the logs, so a crawl stays what it was.
#[test]
fn partition_and_mode_are_fixed_for_a_crawl() {
    let (folder, web) = (TempFolder::new("modes-fixed"), Web::new());
    let (dir, config) = (folder.at("crawl"), web.config(&folder));
    web.crawl(&dir, &config, &["--set", "exchange.mode=firewall", "--set", "partition.by=consistent"]).expect(0);
    web.asked();
    for (set, words) in [
        ("exchange.mode=exchange", "exchange.mode firewall, and exchange was asked for"),
        ("partition.replicas=64", "partition.by consistent 128, and consistent 64 was asked for"),
        ("partition.by=site-hash", "partition.by consistent 128, and site-hash was asked for"),
    ] {
        let ended = run(&["crawl", "--dir", &dir, "--set", set]).expect(2);
        assert!(ended.err.contains(words), "{set}: {}", ended.err);
    }
    run(&["crawl", "--dir", &dir]).expect(0);
    assert_eq!(web.asked(), BTreeMap::new());
}
