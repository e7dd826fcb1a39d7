//! Budgets of hosts and sites: a host or site that has used its budget gets no more requests, and its waiting URLs
//! end.

use super::*;
use ringcrawl_base::IntMap;

fn bed(change: impl Fn(&mut Config), of_seeds: SiteBounds) -> Bed {
    let mut config = Config::default();
    change(&mut config);
    let bed = Bed::new(|config| {
        change(config);
        config.politeness.host_delay = Duration::from_millis(10);
        config.politeness.response_factor = 0;
        (config.politeness.site_delay, config.politeness.ip_delay) = (Duration::ZERO, Duration::ZERO);
    });
    let budgets = SiteQuotas::new(
        &config.budget,
        Arc::new(of_seeds),
        7,
        WallClock::reading(Instant::ZERO, UnixTime::from_micros(1_000_000)),
        1 << 20,
    );
    Bed { frontier: bed.frontier.budgeted(budgets, LinkQuotas::default()), ..bed }
}

fn offer(bed: &mut Bed, hosts: &[&str], pages: usize) {
    for number in 0..pages {
        hosts.iter().for_each(|host| bed.offer(&format!("http://{host}/{number}")));
    }
}

fn pages_of(bed: &Bed, host: &str) -> usize {
    bed.pages().iter().filter(|url| url.contains(&format!("//{host}/"))).count()
}

#[test]
fn what_is_over_a_budget_ends_and_is_not_asked_for() {
    let mut bed = bed(|config| config.budget.host_pages_max = 7, IntMap::default());
    offer(&mut bed, &["a.test", "b.test"], 2_000);
    offer(&mut bed, &["c.test"], 5);
    // Half of the requests to a.test do not return a page.
    let mut turns = 0;
    bed.run(HOUR, 10_000, &mut |job| match job.kind {
        JobKind::Page if job.url.host() == "a.test" => {
            turns += 1;
            status(if turns % 2 == 0 { 200 } else { 404 })
        }
        _ => well(job),
    });
    assert_eq!(["a.test", "b.test", "c.test"].map(|host| pages_of(&bed, host)), [14, 7, 5]);
    assert!(bed.frontier.is_idle() && bed.frontier.queued() == 0);
    assert_eq!(bed.settled.len(), 4_005 - 26);
    assert!(bed.settled.iter().all(|settled| settled.failure == Failure::OverBudget));
}

/// Many hosts of a site at once: requests in flight count, and failures give their share back.
#[test]
fn a_site_has_exactly_its_pages() {
    let mut bed = bed(|config| config.budget.site_pages_max = 50, IntMap::default());
    let hosts: Vec<String> = (0..20).map(|number| format!("h{number}.a.test")).collect();
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    offer(&mut bed, &hosts, 10);
    let mut pages = 0;
    bed.run(HOUR, 10_000, &mut |job| match job.kind {
        JobKind::Page if job.number == 0 && job.attempt == 0 && job.url.as_str().ends_with("/3") => status(503),
        JobKind::Page => {
            pages += 1;
            status(200)
        }
        _ => well(job),
    });
    assert_eq!(pages, 50);
    assert!(bed.frontier.is_idle() && bed.settled.iter().all(|settled| settled.failure == Failure::OverBudget));
}

#[test]
fn bytes_and_time_are_bounded_too() {
    let bounds = |config: &mut Config| {
        (config.budget.host_bytes_max, config.budget.site_time_max) = (10_000, Duration::from_secs(60));
    };
    let mut bed = bed(bounds, IntMap::default());
    for host in ["a.test", "drip.test"] {
        offer(&mut bed, &[host], 200);
        bed.run(HOUR, 10_000, &mut |job| match job.kind {
            JobKind::Page if job.url.host() == "a.test" => {
                Outcome::Fetched(Fetched { status: 301, wire_bytes: 1_100, ..Fetched::default() })
            }
            _ => well(job),
        });
    }
    // A page of drip.test takes ten seconds.
    let (bytes, time) = (pages_of(&bed, "a.test"), pages_of(&bed, "drip.test"));
    assert!(bytes == 10 && (5..=6).contains(&time), "{bytes} {time}");
    assert!(bed.frontier.is_idle());
}
