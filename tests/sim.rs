//! Seeded simulations of whole crawls: the real brain, a virtual clock, a fake web with faults.
//!
//! A failure prints its seed; `SIM_SEED=17 cargo test --test all sim::` runs that one alone, with
//! `SIM_TRACE=h0.s1.test` it tells what happened to that host. `SIM_CRAWLS=100000` runs more.

use std::sync::atomic::{AtomicUsize, Ordering};

use ringcrawl_lab::{Simulation, SimulationReport};

/// Small crawls in which each of the faults below happens, chosen from the first four hundred: those that show the most
/// in the least time. `SIM_SEED=17` prints what a crawl shows, should one of these no longer show its fault.
const SEEDS: [u64; 46] = [
    10, 14, 25, 48, 53, 54, 58, 78, 80, 81, 89, 96, 107, 113, 116, 118, 120, 129, 130, 131, 141, 165, 166, 178, 185,
    198, 200, 222, 226, 231, 245, 253, 254, 256, 273, 298, 300, 314, 316, 359, 369, 371, 377, 386, 388, 395,
];

fn seeds() -> Vec<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match (number("SIM_SEED"), number("SIM_CRAWLS")) {
        (Some(seed), _) => vec![seed],
        (None, Some(crawls)) => (0..crawls).collect(),
        (None, None) => SEEDS.to_vec(),
    }
}

/// The reports of all crawls, with their seeds, as they come from two threads.
fn reports() -> Vec<(u64, SimulationReport)> {
    let (seeds, next) = (seeds(), AtomicUsize::new(0));
    let crawl = || {
        let mut reports = Vec::new();
        loop {
            let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)).copied() else { return reports };
            let report = Simulation::new(seed).traced(std::env::var("SIM_TRACE").ok()).run();
            let is_bad = !report.complaints.is_empty();
            reports.push((seed, report));
            if is_bad {
                return reports;
            }
        }
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(crawl);
        let mut reports = crawl();
        reports.extend(other.join().expect("reports"));
        reports
    })
}

#[test]
fn every_crawl_covers_everything_once_and_politely() {
    let (mut pages, mut spilled, mut refused, mut exchanged, mut further, mut beside) = (0, 0, 0, 0, 0, 0);
    let (mut aside, mut runs, mut twice, mut stored) = (0, 0, 0, 0);
    let (mut forgotten, mut left_behind, mut robots_messages, mut interrupted) = (0, 0, 0, [0; 6]);
    let (mut redistributed, mut levelled, mut damaged, mut damage_told) = (0, 0, 0, 0);
    let (mut acknowledged, mut index_lines, mut revisits, mut failures_stored) = (0, 0, 0, 0);
    let (mut trainings, mut dictionaries) = (0, 0);
    let (mut clock_steps, mut rests_kept) = (0, 0);
    let (mut outages, mut outages_gone_on, mut outages_seen) = (0, 0, [0; 3]);
    for (seed, report) in reports() {
        assert!(
            report.complaints.is_empty(),
            "SIM_SEED={seed} ({} shards): {} complaints\n{}\n{}",
            report.shards,
            report.complaints.len(),
            report.complaints[..report.complaints.len().min(20)].join("\n"),
            report.complaints.last().map_or("", String::as_str)
        );
        pages += report.pages;
        spilled += report.spilled;
        refused += report.refused;
        beside += report.read_beside;
        trainings += report.trainings;
        dictionaries += report.dictionaries;
        further += report.further;
        exchanged += report.exchanged;
        aside += report.aside;
        runs += report.runs;
        twice += report.twice;
        redistributed += report.redistributed;
        levelled += report.levelled;
        damaged += u64::from(report.is_damaged);
        damage_told += u64::from(report.is_damage_told);
        stored += report.stored;
        acknowledged += report.acknowledged;
        index_lines += report.index_lines;
        revisits += report.revisits;
        failures_stored += report.failures_stored;
        forgotten += report.forgotten;
        robots_messages += report.robots_messages;
        left_behind += report.left_behind;
        clock_steps += report.clock_steps;
        rests_kept += report.rests_kept;
        outages += report.outages;
        outages_gone_on += report.outages_gone_on;
        outages_seen.iter_mut().zip(report.outages_seen).for_each(|(sum, count)| *sum += count);
        interrupted.iter_mut().zip(report.interrupted).for_each(|(sum, count)| *sum += count);
    }
    println!(
        "{pages} pages, {exchanged} URLs exchanged, {spilled} blocks spilled, {refused} messages refused, {beside} responses read beside"
    );
    println!("{further} requests at a further address, {robots_messages} messages about robots.txt");
    let [drained, aborted, killed, full, limited, powerless] = interrupted;
    println!(
        "{runs} runs: {drained} drained, {aborted} aborted, {killed} killed, {powerless} ended by a power cut, \
         {full} with a full disk, {limited} limited"
    );
    println!(
        "{left_behind} fetches in flight then, {redistributed} redistributed, {levelled} of them to move sites, {damaged} crawls with flipped bits ({damage_told} told it), {twice} pages fetched twice, {stored} stored; {aside} URLs set aside"
    );
    println!("{forgotten} hosts forgotten; {trainings} dictionaries trained, {dictionaries} taken");
    println!(
        "{acknowledged} URLs are over and have their records, {failures_stored} of them failed; {index_lines} index lines, {revisits} revisits"
    );
    println!("the clock was set {clock_steps} times; {rests_kept} rests had to outlive a kill");
    let [of_names, of_sites, of_route] = outages_seen;
    println!(
        "{outages} outages, {outages_gone_on} in another run; seen: {of_names} of name servers, {of_sites} of sites, {of_route} of the route"
    );
    if seeds().len() >= SEEDS.len() {
        // The faults that the simulation exists for did happen.
        assert!(pages > 3_000 && spilled > 300 && refused > 50 && exchanged > 500 && further > 50);
        assert!(beside > 500, "{beside} responses were read beside their shards");
        assert!(interrupted.iter().all(|count| *count > 3) && left_behind > 20 && twice > 0);
        assert!(redistributed > 5 && levelled > 2 && damaged > 0 && damage_told > 0);
        assert!(trainings > 50 && dictionaries > 2, "{dictionaries} of {trainings} dictionaries were taken");
        assert!(acknowledged > 5_000 && index_lines > 5_000 && revisits > 0 && failures_stored > 0);
        assert!(clock_steps > 25 && rests_kept > 0, "{clock_steps} {rests_kept}");
        assert!(robots_messages > 500);
        assert!(outages > 25 && outages_gone_on > 2 && outages_seen.iter().all(|count| *count > 0), "{outages_seen:?}");
        assert!(aside > 50 && forgotten > 500 && stored >= pages);
    }
}

#[test]
fn a_seed_is_a_crawl() {
    for seed in [17, 33, 141] {
        assert_eq!(Simulation::new(seed).run(), Simulation::new(seed).run(), "SIM_SEED={seed}");
    }
}
