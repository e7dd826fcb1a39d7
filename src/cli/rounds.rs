//! A crawl in rounds: seed by seed, as in SCrawler.
//!
//! Decides: a round is a run of the crawl with the scope of its seeds. When it is finished, the links that left it
//! are listed and become the seeds of the next round, in the same directory. So no page is fetched twice, and budgets
//! carry over. A crawl that is stopped or killed continues in the same round, which its list of seeds records. A site
//! with several seeds is crawled from all of them at once.
//! Links with which no round may begin, because they are out of scope or not on this machine, are left out first.
//! `crawl.pages_max` and `crawl.time_max` apply to all rounds of a process together, and so does the summary.
//! A round also continues when its sites have moved between shards (`partition.balance`).
//! Invariants: no round follows one that was not finished.
//! Leaves to others: a round (`crawl`), lists of links and of seeds (`boot`).

use super::crawl::Ended;
use super::output::tell;
use super::summary::Summary;
use ringcrawl_base::time::Duration;
use ringcrawl_brain::log::AskAgain;
use ringcrawl_config::Config;
use ringcrawl_crawler::boot::{self, BootError, Order, Round, RoundEnd};
use ringcrawl_crawler::control::TIME_MAX_REACHED;

/// The state at the end of a round.
#[derive(Debug)]
pub struct RoundBefore {
    config: Config,
    dir: std::path::PathBuf,
    end: RoundEnd,
    is_finished: bool,
    /// Total over all rounds so far.
    pages: u64,
    elapsed: Duration,
    /// Links that left the scope and were not recorded, in all rounds so far.
    unlisted: u64,
}

/// Runs one round after another, until no round is left.
pub fn drive(
    first: Order,
    next: impl Fn(RoundBefore) -> Option<Order>,
    mut drive_round: impl FnMut(Order) -> Result<(Ended, Option<RoundEnd>), BootError>,
) -> Result<Ended, BootError> {
    let (config, dir) = (first.config.clone(), first.dir.clone());
    let (mut ended, mut end) = drive_round(first)?;
    while let Some(round_end) = end.take() {
        // The round should continue with moved sites. If it does not, the cause is whatever happened meanwhile.
        if round_end.fruitless.is_some() {
            let Summary { totals, elapsed, .. } = &ended.summary;
            let limit = limit_reached(&config, totals.pages, *elapsed);
            limit.unwrap_or(STOPPED).clone_into(&mut ended.summary.ended);
        }
        let Summary { totals, elapsed, .. } = &ended.summary;
        let before = RoundBefore {
            config: config.clone(),
            dir: dir.clone(),
            end: round_end,
            is_finished: ended.summary.ended == FINISHED,
            pages: totals.pages,
            elapsed: *elapsed,
            unlisted: totals.external_unlisted,
        };
        let Some(order) = next(before) else { break };
        let goes_on = order.round.is_some_and(|round| round.fruitless.is_some());
        match drive_round(order) {
            Ok((later, later_end)) => {
                let Ended { summary, failure } = later;
                ended = Ended { summary: both(&ended.summary, summary, goes_on), failure };
                end = later_end;
            }
            Err(BootError::Stopped) => STOPPED.clone_into(&mut ended.summary.ended),
            // The finished work is still reported.
            Err(error) => {
                ended.failure = Some(error.to_string());
                "failed".clone_into(&mut ended.summary.ended);
            }
        }
    }
    Ok(ended)
}

/// The next round, if there is one; reports on the one before.
pub fn next(before: RoundBefore) -> Option<Order> {
    let RoundBefore { mut config, dir, end, is_finished, pages, elapsed, unlisted } = before;
    let is_over = limit_reached(&config, pages, elapsed).is_some();
    let links = match end.links {
        Some(links) => links,
        None if end.fruitless.is_some() && !is_over => {
            let round = Some(Round { fruitless: end.fruitless, number: end.number, pages, elapsed });
            let (seeds, ask_again) = (Vec::new(), AskAgain::default());
            return Some(Order { config, seeds, dir, new: false, ask_again, round, handed_on: end.handed_on });
        }
        // The round should continue, so its links are not listed yet.
        None if end.fruitless.is_some() && config.lists_external_links() => {
            match boot::list_external_links(&dir, end.handed_on.lock.clone()) {
                Ok(links) => links,
                Err(error) => {
                    tell!("ringcrawl: links that left the scope are not listed: {error}");
                    return None;
                }
            }
        }
        None => return None,
    };
    tell!("{} links left the scope: {}", links.urls.len(), links.file.display());
    if links.left_out > 0 {
        tell!("ringcrawl: {} more were left out: too many, or too long in total", links.left_out);
    }
    if unlisted > 0 {
        tell!("ringcrawl: {unlisted} more are not in the list: a shard found too many");
    }
    // A run without an agent name uses the crawl's.
    if let Some(manifest) = boot::read_manifest(&dir).ok().flatten().filter(|_| config.agent.name.is_empty()) {
        config.agent.name = manifest.agent_name;
    }
    if !is_finished || is_over || end.number >= config.crawl.rounds {
        return None;
    }
    let found = links.urls.len();
    let seeds = boot::seeds_of_round(&config, links.urls);
    if seeds.len() < found {
        tell!("{} of them are out of scope as seeds, or not on this machine", found - seeds.len());
    }
    if seeds.is_empty() {
        tell!("no link leads out of round {} of {}", end.number, config.crawl.rounds);
        return None;
    }
    tell!("round {} of {} begins with {} seeds", end.number + 1, config.crawl.rounds, seeds.len());
    Some(Order {
        config,
        seeds,
        dir,
        new: false,
        ask_again: AskAgain::default(),
        round: Some(Round { fruitless: None, number: end.number + 1, pages, elapsed }),
        handed_on: end.handed_on,
    })
}

/// The limit reached by all rounds of a process together, as a summary names it.
fn limit_reached(config: &Config, pages: u64, elapsed: Duration) -> Option<&'static str> {
    let limits = &config.crawl;
    if limits.pages_max > 0 && pages >= limits.pages_max {
        return Some("pages_max reached");
    }
    (!limits.time_max.is_zero() && elapsed >= limits.time_max).then_some(TIME_MAX_REACHED)
}

/// Merges the summaries of one run and of a later run of the same crawl: with the same hosts after a pause, with
/// others in a new round.
fn both(before: &Summary, later: Summary, has_same_hosts: bool) -> Summary {
    let (outages, lasted) = before.outages;
    let mut totals = before.totals.followed_by(&later.totals);
    if has_same_hosts {
        totals.hosts = before.totals.hosts.max(later.totals.hosts);
    }
    Summary {
        totals,
        pages_by_shard: before.pages_by_shard.iter().zip(&later.pages_by_shard).map(|(one, more)| one + more).collect(),
        elapsed: before.elapsed + later.elapsed,
        outages: (outages + later.outages.0, lasted + later.outages.1),
        // Values of the process: peak memory, and time so far.
        ..later
    }
}

/// The `ended` text of a run that has nothing left to do.
const FINISHED: &str = "finished";
/// The `ended` text of a run that was stopped.
const STOPPED: &str = "stopped by signal";

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_crawler::boot::{ExternalLinks, HandedOn};
    use ringcrawl_url::Url;

    fn order(rounds: u32, pages_max: u64) -> Order {
        let mut config = Config::default();
        (config.crawl.rounds, config.crawl.pages_max) = (rounds, pages_max);
        config.agent.name = "bot".to_owned();
        config.agent.url = "https://example.org/bot".to_owned();
        config.agent.email = "bot@example.org".to_owned();
        Order {
            config,
            seeds: Vec::new(),
            dir: "crawl".into(),
            new: true,
            ask_again: AskAgain::failed(true),
            round: None,
            handed_on: HandedOn::default(),
        }
    }

    /// Drives a web in which each round finds as many links as `links` says; returns the rounds with their seeds.
    fn rounds(first: Order, links: &[usize], ended: &str) -> (Vec<(u32, usize)>, Summary) {
        let mut driven = Vec::new();
        let whole = drive(first, next, |order| {
            let number = order.round.map_or(1, |round| round.number);
            assert_eq!((order.new, order.ask_again.is_any()), (number == 1, number == 1));
            driven.push((number, order.seeds.len()));
            let count = links.get(number as usize - 1).copied().unwrap_or_default();
            let url = |page: usize| Url::parse(&format!("http://s{page}.test/")).expect("a URL");
            let links = ExternalLinks { urls: (0..count).map(url).collect(), left_out: 0, file: "links".into() };
            let mut summary =
                Summary { ended: ended.to_owned(), elapsed: Duration::from_secs(10), ..Summary::default() };
            summary.totals.pages = 100;
            summary.pages_by_shard = vec![60, 40];
            Ok((
                Ended { summary, failure: None },
                Some(RoundEnd {
                    fruitless: None,
                    number,
                    links: Some(links),
                    note: None,
                    handed_on: HandedOn::default(),
                }),
            ))
        });
        (driven, whole.expect("rounds").summary)
    }

    #[test]
    fn links_that_leave_a_round_are_seeds_of_the_next() {
        let (driven, summary) = rounds(order(3, 0), &[5, 7, 9], FINISHED);
        assert_eq!(driven, [(1, 0), (2, 5), (3, 7)]);
        assert_eq!((summary.totals.pages, summary.elapsed), (300, Duration::from_secs(30)));
        assert_eq!(summary.pages_by_shard, [180, 120]);
        assert_eq!(rounds(order(9, 0), &[5, 7], FINISHED).0, [(1, 0), (2, 5), (3, 7)], "no link leads on");
        assert_eq!(rounds(order(9, 200), &[5; 9], FINISHED).0.len(), 2, "pages_max holds for all");
        let mut nameless = order(9, 0);
        nameless.config.agent.email.clear();
        assert_eq!(rounds(nameless.clone(), &[5; 9], FINISHED).0.len(), 1, "no link leads on on this machine");
        nameless.config.dns.hosts.insert("s3.test".to_owned(), vec!["127.0.0.1".parse().expect("an address")]);
        assert_eq!(rounds(nameless, &[5, 3], FINISHED).0, [(1, 0), (2, 1)], "one of five is on it");
        assert_eq!(rounds(order(9, 0), &[5; 9], "stopped by signal").0.len(), 1);
    }

    /// The output for a crawl whose first run ended so that sites could move, and where its second begins.
    fn levelled(pages_max: u64, second: Option<Result<&str, BootError>>) -> (String, u32) {
        let (mut runs, mut second) = (0, second);
        let is_stopped = second.is_none();
        let next = |before: RoundBefore| if is_stopped { None } else { next(before) };
        let whole = drive(order(1, pages_max), next, |order| {
            runs += 1;
            let ended = match runs {
                1 => "sites are moved",
                _ => {
                    let round = order.round.expect("a round");
                    assert_eq!((round.fruitless, round.number, round.pages, order.seeds.len()), (Some(3), 1, 100, 0));
                    second.take().expect("no third run")?
                }
            };
            let mut summary = Summary { ended: ended.to_owned(), ..Summary::default() };
            summary.totals.pages = 100;
            let end = RoundEnd {
                fruitless: (runs == 1).then_some(3),
                number: 1,
                links: None,
                note: None,
                handed_on: HandedOn::default(),
            };
            Ok((Ended { summary, failure: None }, Some(end)))
        });
        let Ended { summary, failure } = whole.expect("a crawl");
        (format!("{} {}", summary.ended, failure.unwrap_or_default()), runs)
    }

    #[test]
    fn a_crawl_goes_on_with_sites_moved_and_else_says_why_not() {
        let told = |pages_max, second| levelled(pages_max, second);
        assert_eq!(told(0, Some(Ok(FINISHED))), ("finished ".to_owned(), 2));
        assert_eq!(told(100, Some(Ok(FINISHED))), ("pages_max reached ".to_owned(), 1));
        assert_eq!(told(0, None), ("stopped by signal ".to_owned(), 1));
        assert_eq!(told(0, Some(Err(BootError::Stopped))), ("stopped by signal ".to_owned(), 2));
        let mistake = BootError::Order("a line".to_owned());
        assert_eq!(told(0, Some(Err(mistake))), ("failed a line".to_owned(), 2));
    }
}
