//! Allowances: hosts of a site that has had its pages weigh less, until more sites link to it.

use super::*;
use crate::backlinks::SiteLink;
use crate::hops::Hops;

fn bed(change: impl Fn(&mut Config)) -> Bed {
    let change = |config: &mut Config| {
        config.politeness.host_delay = Duration::from_millis(10);
        config.politeness.response_factor = 0;
        (config.politeness.site_delay, config.politeness.ip_delay) = (Duration::ZERO, Duration::ZERO);
        (config.budget.site_pages_free, config.budget.site_pages_per_linking_site) = (10, 5);
        config.crawl.pages_max = 1 << 40;
        change(config);
    };
    let mut config = Config::default();
    change(&mut config);
    let bed = Bed::new(change);
    let allowances = LinkQuotas::new(&config, 1 << 20);
    Bed { frontier: bed.frontier.budgeted(SiteQuotas::default(), allowances), ..bed }
}

fn site(name: &str) -> SiteKey {
    SiteKey::of_host(7, name)
}

/// Pages `from` on of a host, to which a page linked.
fn offer(bed: &mut Bed, host: &str, from: usize, pages: usize) {
    for number in from..from + pages {
        let url = Url::parse(&format!("http://{host}/{number}")).expect("a URL");
        let ticket = Ticket { number: 0, depth: Hops::default().link().bits(), is_strangers: false };
        bed.frontier.offer(bed.now, &url, site(host), ticket, &mut bed.spool);
    }
}

fn pages_of(bed: &Bed, site: &str) -> usize {
    bed.pages().iter().filter(|url| url.contains(site)).count()
}

#[test]
fn what_is_over_an_allowance_has_a_sixteenth_of_the_turns() {
    // Without delays, as hosts in their delays are no rivals.
    let mut bed = bed(|config| {
        config.politeness.host_delay = Duration::ZERO;
        (config.politeness.site_delay, config.politeness.ip_delay) = (Duration::ZERO, Duration::ZERO);
    });
    ["a.spam.test", "b.spam.test", "c.spam.test"].into_iter().for_each(|host| offer(&mut bed, host, 0, 40));
    ["a.test", "b.test"].into_iter().for_each(|host| offer(&mut bed, host, 0, 10));
    let link = |from: &str, to: &str| SiteLink::new(site(from), site(to)).expect("two sites");
    assert!(
        bed.frontier.order.link_quotas.linked(link("a.test", "spam.test"))
            && !bed.frontier.order.link_quotas.linked(link("a.test", "x.spam.test"))
    );
    offer(&mut bed, "large.test", 0, 200);
    for number in 0..60 {
        bed.frontier.order.link_quotas.linked(link(&format!("s{number}.test"), "large.test"));
    }
    let run = |bed: &mut Bed, pages: usize| {
        let until = bed.count(JobKind::Page) + pages;
        while bed.count(JobKind::Page) < until && !bed.frontier.is_idle() {
            bed.run(HOUR, 1, &mut well);
        }
        ["spam.test", "large.test", "//a.test", "//b.test"].map(|site| pages_of(bed, site))
    };
    let [spam, large, a, b] = run(&mut bed, 240);
    assert!((30..=60).contains(&spam) && large >= 160 && (a, b) == (10, 10), "{spam}, {large}, {a}, {b}");
    assert!(bed.frontier.order.link_quotas.turns_over() > 0);
    // Nothing is lost.
    assert_eq!(run(&mut bed, 1_000), [120, 200, 10, 10]);
    assert!(bed.frontier.is_idle() && bed.settled.is_empty());
    assert_eq!(bed.frontier.order.link_quotas.of(site("spam.test")), (1, 120));
}

#[test]
fn seeds_wait_for_no_other_and_what_fails_is_no_page() {
    let mut bed = bed(|_| ());
    offer(&mut bed, "seed.test", 0, 100);
    bed.frontier.wanted(&Url::parse("http://seed.test/").expect("a URL"), site("seed.test"));
    offer(&mut bed, "fails.test", 0, 30);
    offer(&mut bed, "others.test", 0, 10);
    bed.run(HOUR, 10_000, &mut |job| match job.kind {
        JobKind::Page if job.url.host() == "fails.test" => status(404),
        _ => well(job),
    });
    assert_eq!(bed.count(JobKind::Page), 140);
    assert_eq!(
        ["fails.test", "others.test"].map(|name| bed.frontier.order.link_quotas.of(site(name))),
        [(0, 0), (0, 10)]
    );
}
