//! Seeded simulations of whole crawls: the real brain, a virtual clock, a fake web with faults.
//!
//! A failure prints its seed; `SIM_SEED=17 cargo test --test sim` runs that one alone. `SIM_CRAWLS=100000` runs more.

use ringcrawl::lab::Simulation;

fn crawls() -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("SIM_CRAWLS").unwrap_or(200),
    }
}

#[test]
fn every_crawl_covers_everything_once_and_politely() {
    let (mut pages, mut spilled, mut refused, mut exchanged, mut further) = (0, 0, 0, 0, 0);
    let (mut aside, mut resumed, mut killed, mut twice) = (0, 0, 0, 0);
    let (mut forgotten, mut outside, mut robots_messages) = (0, 0, 0);
    for seed in crawls() {
        let report = Simulation::new(seed).run();
        assert!(
            report.complaints.is_empty(),
            "SIM_SEED={seed} ({} shards): {} complaints\n{}",
            report.shards,
            report.complaints.len(),
            report.complaints[report.complaints.len().saturating_sub(10)..].join("\n")
        );
        pages += report.pages;
        spilled += report.spilled;
        refused += report.refused;
        further += report.further;
        exchanged += report.exchanged;
        aside += report.aside;
        resumed += u64::from(report.resumed);
        killed += u64::from(report.killed);
        twice += report.twice;
        forgotten += report.forgotten;
        outside += report.outside;
        robots_messages += report.robots_messages;
    }
    println!("{pages} pages, {exchanged} URLs exchanged, {spilled} blocks spilled, {refused} batches refused");
    println!("{further} requests at a further address, {robots_messages} messages about robots.txt");
    println!("{resumed} crawls resumed, {killed} killed: {twice} pages fetched twice; {aside} URLs set aside");
    println!("{forgotten} hosts forgotten, {outside} blocks came back to hosts that were not in memory");
    if crawls().count() >= 200 {
        // The faults that the simulation exists for did happen.
        assert!(pages > 10_000 && spilled > 1_000 && refused > 100 && exchanged > 1_000 && further > 100);
        assert!(robots_messages > 1_000);
        assert!(resumed > 20 && killed > 20 && twice > 0 && aside > 100 && forgotten > 1_000 && outside > 100);
    }
}

#[test]
fn a_seed_is_a_crawl() {
    for seed in 0..20 {
        assert_eq!(Simulation::new(seed).run(), Simulation::new(seed).run(), "SIM_SEED={seed}");
    }
}
