//! How the seeds ended, in a crawl without a page.
//!
//! Decides: such a crawl has an exit code of its own, as "finished" is no success then. Each seed is reported with
//! its reason: a name that does not exist, a status, a redirect out of scope. A page that does nothing but lead out
//! of scope does not count as a page here.
//! The target of a seed's redirect counts for the seed. While a seed still waits nothing is reported, as the next run
//! may fetch its page, unless the crawl had all the time that it was given (`crawl.time_max`). Earlier runs count, too,
//! as the logs cover all runs.
//! Limits: what is known of hosts in trouble is in memory; at most [`TOLD_MAX`] seeds are reported. The logs are read
//! only after a run without a page, and no further than to the first page.

use std::io;
use std::path::Path;

use super::crawl_logs::CrawlLogs;
use super::output::tell;
use super::summary::Summary;
use super::urls::Troubles;
use super::why::meaning;
use super::{DONE, NO_PAGE};
use ringcrawl_brain::hops::Hops;
use ringcrawl_brain::log::{Listed, UrlState};
use ringcrawl_brain::outcome::Interstitial;
use ringcrawl_crawler::control::TIME_MAX_REACHED;

/// The exit code of a crawl in `dir` that ended so. If no seed gave a page, it reports why.
pub(super) fn exit_code(dir: &Path, Summary { totals, ended, .. }: &Summary) -> u8 {
    if totals.pages > totals.seed_pages_led_outside {
        return DONE;
    }
    // The pages of this run are known to lead away; pages of an earlier run count as pages.
    let leads_away = totals.pages > 0;
    let may_go_on = ended != TIME_MAX_REACHED;
    let (mut ends, mut count, mut has_hope) = (Vec::new(), 0_u64, false);
    let read = CrawlLogs::open(dir).and_then(|logs| {
        Troubles::list(&logs, &mut |listed, troubles| {
            if !Hops::from_bits(listed.depth).is_seed() {
                return Ok(());
            }
            let is_page = matches!(listed.state, UrlState::Fetched(200..300)) && listed.interstitial.is_none();
            let waits = matches!(listed.state, UrlState::Waiting | UrlState::SetAside);
            if is_page && !leads_away || waits && may_go_on {
                has_hope = true;
                return Err(io::Error::other("enough was read"));
            }
            count += 1;
            if ends.len() < TOLD_MAX {
                let why = troubles.of(listed).map_or_else(
                    || end(listed, is_page),
                    |trouble| {
                        let name =
                            if let UrlState::Failed(failure) = listed.state { failure.as_str() } else { "waits" };
                        format!("{name}: {trouble}")
                    },
                );
                ends.push(format!("{}: {why}", listed.text));
            }
            Ok(())
        })
    });
    if has_hope || count == 0 && (may_go_on || read.is_err()) {
        return DONE;
    }
    if count == 0 {
        tell!("ringcrawl: no seed was begun in the time that the crawl had (crawl.time_max)");
        return NO_PAGE;
    }
    tell!("ringcrawl: no seed gave a page:");
    ends.iter().for_each(|end| tell!("ringcrawl: {end}"));
    if let Err(error) = read {
        tell!("ringcrawl: {error}");
    }
    let more = count - ends.len() as u64;
    if more > 0 {
        tell!("ringcrawl: and {more} more, which `ringcrawl urls {}` lists", dir.display());
    }
    NO_PAGE
}

/// How a seed ended, in words.
fn end(listed: &Listed<'_>, is_page: bool) -> String {
    match (listed.state, listed.interstitial) {
        (UrlState::Waiting | UrlState::SetAside, _) => "it is waiting".to_owned(),
        (UrlState::Failed(failure), _) => format!("{}: {}", failure.as_str(), meaning(failure.as_str())),
        (UrlState::Fetched(status), Some(interstitial)) => {
            format!("status {status}, a wall ({})", Interstitial::as_str(interstitial))
        }
        (UrlState::Fetched(status), None) if is_page => format!("status {status}, with a page that leads out of scope"),
        (UrlState::Fetched(status @ 300..400), None) => format!("status {status}, a redirect"),
        (UrlState::Fetched(status), None) => format!("status {status}"),
    }
}

/// Maximum number of seeds reported: there may be millions.
const TOLD_MAX: usize = 20;
