//! What strangers can do to a host through links alone, and through the targets of their robots.txt.

use super::*;

/// Pages of `host` that were fetched successfully in `seconds`, below `path`.
fn pages_of(bed: &mut Bed, seconds: u64, path: &str, answer: &mut dyn FnMut(&FetchJob) -> Outcome) -> usize {
    let mut pages = 0;
    bed.run(seconds, 10_000, &mut |job| {
        let outcome = answer(job);
        let is_well = matches!(&outcome, Outcome::Fetched(fetched) if fetched.status == 200);
        pages += usize::from(job.kind == JobKind::Page && is_well && job.url.as_str().starts_with(path));
        outcome
    });
    pages
}

/// The same as [`well`], with an address for each name.
fn well_apart(job: &FetchJob) -> Outcome {
    let mut outcome = well(job);
    if let Outcome::Resolved { addrs, .. } = &mut outcome {
        let name = SiteKey::new(7, job.url.host()).number().to_le_bytes();
        *addrs = vec![IpAddr::from([198, 18, name[0], name[1]])];
    }
    outcome
}

fn fails(failure: Failure) -> Outcome {
    Outcome::Failed(failure)
}

/// Links to something broken come before those to its pages, and no other site links to the host.
#[test]
fn a_host_is_not_judged_by_the_first_that_is_linked_to() {
    type Bad = (&'static str, fn() -> Outcome);
    let hang: Bad = ("/live?i=", || fails(Failure::FirstByteTimeout));
    let reset: Bad = ("/reset?i=", || fails(Failure::Reset));
    let refused: Bad = ("/broken.php?i=", || status(503));
    let broken: Bad = ("/live.php?i=", || status(500));
    for ((path, bad), count) in
        [(hang, 1), (hang, 8), (reset, 3), (reset, 8), (refused, 5), (refused, 40), (broken, 40)]
    {
        let mut bed = Bed::new(|_| ());
        (0..count).for_each(|number| bed.offer_of_strangers(&format!("http://a.test{path}{number}")));
        bed.offer_of_strangers("http://a.test/");
        (0..400).for_each(|number| bed.offer_of_strangers(&format!("http://a.test/page/{number}")));
        let mut first = None;
        let pages = pages_of(&mut bed, 300, "http://a.test/", &mut |job| {
            let is_bad = job.kind == JobKind::Page && job.url.path_and_query().starts_with(path);
            if !is_bad && job.kind == JobKind::Page {
                first = first.or(Some(job.began));
            }
            if is_bad { bad() } else { well(job) }
        });
        assert!(pages >= 180, "{path} {count}: {pages} of 300, the first at {first:?}");
    }
}

/// Strangers may link to as many names of real pages as they like.
#[test]
fn own_urls_have_four_turns_for_one_of_strangers() {
    let mut bed = Bed::new(|_| ());
    bed.offer("http://a.test/");
    (0..300).for_each(|number| bed.offer_of_strangers(&format!("http://a.test/word-{number}")));
    bed.run(5, 100, &mut well);
    (0..300).for_each(|number| bed.offer(&format!("http://a.test/own/{number}")));
    let own = pages_of(&mut bed, 100, "http://a.test/own/", &mut well);
    assert!((78..=84).contains(&own), "{own}");
    // Nothing is kept from them if nothing else waits.
    bed.run(HOUR, 10_000, &mut well);
    assert_eq!(bed.pages().len(), 601);
}

/// The targets of strangers' robots.txt are requested as rarely as their links.
#[test]
fn files_that_hang_or_complain_do_not_hold_their_host_up() {
    type Bad = fn() -> Outcome;
    let bad: [Bad; 4] = [|| fails(Failure::FirstByteTimeout), || status(503), || fails(Failure::Reset), || status(500)];
    for (kind, bad) in bad.into_iter().enumerate() {
        let mut bed = Bed::new(|_| ());
        (0..300).for_each(|number| bed.offer(&format!("http://victim.test/own/{number}")));
        (0..60).for_each(|number| bed.offer(&format!("http://h{number}.evil{}.test/", number % 3)));
        let mut files = 0;
        let own = pages_of(&mut bed, 140, "http://victim.test/own/", &mut |job| match job.kind {
            JobKind::Robots if job.url.host().starts_with('h') => {
                moved(&format!("http://victim.test/live{}", job.url.host().len() * 100 + files))
            }
            JobKind::Robots if job.url.path_and_query().starts_with("/live") => {
                files += 1;
                bad()
            }
            _ => well_apart(job),
        });
        assert!(own >= 112, "{kind}: {own} of 140, {files} files");
    }
}

/// A redirected robots.txt is a page of its target host (RFC 9309 section 2.3.1.2), which may forbid it.
#[test]
fn no_robots_txt_leads_to_what_its_host_forbids() {
    let mut bed = Bed::new(|_| ());
    (0..30).for_each(|number| bed.offer(&format!("http://h{number}.test/")));
    bed.run(HOUR, 10_000, &mut |job| match (job.kind, job.url.host(), job.url.path_and_query()) {
        (JobKind::Robots, "victim.test", "/robots.txt") => robots("User-agent: *\nDisallow: /private"),
        (JobKind::Robots, "victim.test", "/private/h2.test") => status(503),
        (JobKind::Robots, "victim.test", _) => robots("User-agent: *\nDisallow: /no"),
        (JobKind::Robots, "h0.test" | "h1.test", _) => moved("http://victim.test/open.txt"),
        (JobKind::Robots, host, _) => moved(&format!("http://victim.test/private/{host}")),
        _ => well(job),
    });
    let asked: Vec<&str> = bed
        .jobs
        .iter()
        .filter(|(_, job)| job.url.host() == "victim.test" && job.kind == JobKind::Robots)
        .map(|(_, job)| job.url.path_and_query())
        .collect();
    let private = asked.iter().filter(|path| path.starts_with("/private")).count();
    assert_eq!((asked.first(), private, asked.len()), (Some(&"/robots.txt"), 16, 18), "{asked:?}");
    assert_eq!((bed.settled.len(), bed.pages().len()), (28 - 15, 2 + 15), "what is not known forbids");
    assert_eq!(bed.frontier.queued(), 0);
}

/// Two hosts' robots.txt redirect to each other's pages: neither waits for the other.
#[test]
fn robots_txt_that_lead_to_each_others_pages_end() {
    let mut bed = Bed::new(|_| ());
    ["a", "b"].iter().for_each(|host| bed.offer(&format!("http://{host}.test/")));
    bed.run(24 * HOUR, 10_000, &mut |job| match (job.kind, job.url.host()) {
        (JobKind::Robots, "a.test") => moved("http://b.test/rules"),
        (JobKind::Robots, _) => moved("http://a.test/rules"),
        _ => well(job),
    });
    assert_eq!(bed.frontier.queued(), 0, "{:?}", bed.jobs.len());
}
