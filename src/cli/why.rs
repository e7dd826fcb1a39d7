//! `ringcrawl why`: what is known of a URL or a host of a crawl, and what keeps it from being fetched.
//!
//! Decides: the first line answers "why is this not fetched?" in a sentence; the rest gives the evidence. All of it
//! is read from the crawl's directory, so a crawl may run there at the same time: its logs, the settings and seeds of
//! its last run, the files that these name, and the robots.txt that was stored last. What only the running crawl
//! knows is listed as unknown, and not guessed.
//! Exit codes: 0 the crawl knows it, 1 it does not, 2 the directory is no crawl or cannot be read, or the argument is
//! neither.
//! Leaves to others: reading the logs (`crawl_logs`) and the store (`store`), verdicts (`scope`, `robots`), words
//! ([`told`]).

mod findings;
mod holds;
mod robots;
mod told;
mod way;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::crawl_logs::{self, CrawlLogs};
use super::linkers::Linkers;
use super::output::{Stdout, tell};
use super::urls::host_name;
use super::{DONE, FAILED};
use findings::Findings;
use ringcrawl_base::time::UnixTime;
use ringcrawl_brain::hops::Hops;
use ringcrawl_brain::log::{ListingStep, UrlState};
use ringcrawl_brain::scope::{Scope, ScopeVerdict, Stage, Subject};
use ringcrawl_config::Config;
use ringcrawl_crawler::boot::{self, ScopeFiles};
use ringcrawl_http as http;
use ringcrawl_ring as ring;
use ringcrawl_url::Url;
use robots::RobotsFound;
pub(super) use told::{explains, meaning};
use way::Way;

/// Arguments of the subcommand.
#[derive(clap::Args, Debug)]
pub struct Why {
    /// A URL, such as https://example.org/page, or a host, such as example.org.
    #[arg(value_name = "URL|HOST")]
    what: String,
    /// The crawl's directory; a crawl may be running in it.
    #[arg(long)]
    dir: PathBuf,
    /// A JSON object.
    #[arg(long)]
    json: bool,
}

/// The subject of the question.
#[derive(Clone, PartialEq, Eq, Debug)]
enum WhySubject {
    Url(Url),
    Host(Box<str>),
}

impl WhySubject {
    fn read(text: &str) -> io::Result<WhySubject> {
        if !text.contains("://") {
            return Ok(WhySubject::Host(host_name(text)?.into()));
        }
        let wrong = |error| io::Error::other(format!("{text:?}: {error}; expected a URL or a host"));
        Url::parse(text).map(WhySubject::Url).map_err(wrong)
    }

    fn host(&self) -> &str {
        match self {
            WhySubject::Url(url) => url.host(),
            WhySubject::Host(host) => host,
        }
    }
}

/// All that is known.
struct Known {
    asked: WhySubject,
    now: UnixTime,
    is_running: bool,
    /// Why the running crawl waits for disk space, if it does.
    shortage: Option<String>,
    /// The settings of the last run.
    config: Config,
    facts: Findings,
    /// The scope's verdicts on the URL, or on the host's root: when it is found, and when its turn comes. `None`: not
    /// available.
    scope: Option<[ScopeVerdict; 2]>,
    robots: RobotsFound,
    /// The pages that led to the URL.
    way: Way,
    /// Where the URL's last response is stored.
    record: Option<String>,
    /// Its target, if it was a redirect.
    redirect: Option<Url>,
}

impl Known {
    /// The scope's denial, if there is one.
    fn denied(&self) -> Option<&ScopeVerdict> {
        self.scope.as_ref()?.iter().find(|verdict| !verdict.is_allowed)
    }

    /// Whether the URL, or a URL of the host, waits.
    fn is_waiting(&self) -> bool {
        match self.asked {
            WhySubject::Url(_) => self.facts.url.is_some_and(|url| url.state == UrlState::Waiting),
            WhySubject::Host(_) => self.facts.host.waiting > 0,
        }
    }
}

/// Runs it.
pub fn run(arguments: &Why) -> ExitCode {
    let mut out = Stdout::new();
    let result = answer(arguments, &mut out);
    crawl_logs::end("why", out, result)
}

fn answer(arguments: &Why, out: &mut impl Write) -> io::Result<u8> {
    let dir = &*arguments.dir;
    let asked = WhySubject::read(&arguments.what)?;
    let logs = CrawlLogs::open(dir)?;
    let config = boot::kept_config(dir).map_err(io::Error::other)?.unwrap_or_default();
    let mut facts = Findings::new(asked.clone(), logs.rng_seed());
    let mut linkers = Linkers::default();
    // Damage is reported, but does not change the exit code: that says whether the answer is known.
    logs.read(&mut |step| {
        facts.take(&step);
        // A page was accepted. URLs that found no room may be more than all others.
        if let (WhySubject::Url(url), ListingStep::Url(listed)) = (&asked, &step)
            && (listed.state != UrlState::SetAside || listed.text == url.as_str())
        {
            linkers.take(listed);
        }
        Ok(())
    })?;
    let mut way = match &asked {
        WhySubject::Url(url) => Way::to(url, linkers),
        WhySubject::Host(_) => Way::default(),
    };
    let is_aside = facts.url.is_some_and(|url| url.state == UrlState::SetAside);
    let logs = if is_aside { logs } else { logs.without_aside() };
    if !way.pages.is_empty() {
        logs.read_silently(&mut |step| {
            if let ListingStep::Url(listed) = &step {
                way.take(listed);
            }
        })?;
    }
    let (mut record, mut redirect) = (None, None);
    let (scope, robots) = match &asked {
        WhySubject::Url(url) => {
            if let Some(found) = super::store::latest(dir, url, 0)? {
                let headers = found.head.headers();
                redirect = http::redirect_target(url, found.head.status(), headers.get("location"));
                record = Some(found.place);
            }
            let hops = facts.url.map(|url| Hops::from_bits(url.depth));
            (verdicts(dir, &config, url, hops), robots::find(dir, url, &config)?)
        }
        WhySubject::Host(host) => {
            let origin = facts.origin.clone().or_else(|| Url::parse(&format!("https://{host}/")).ok());
            let root = origin.as_ref().and_then(|url| url.join("/").ok());
            let robots = origin.map_or(Ok(RobotsFound::default()), |url| robots::find(dir, &url, &config));
            (root.and_then(|root| verdicts(dir, &config, &root, Some(Hops::default()))), robots?)
        }
    };
    let is_known = facts.is_known();
    let (now, is_running) = (ring::unix_now(), logs.is_running());
    let shortage = logs.shortage(config.store.free_bytes_min);
    let known = Known { asked, now, is_running, shortage, config, facts, way, scope, robots, record, redirect };
    let text = if arguments.json { format!("{}\n", told::as_json(&known)) } else { told::as_text(&known) };
    out.write_all(text.as_bytes())?;
    Ok(if is_known { DONE } else { FAILED })
}

/// The verdicts of the last run's scope, with the files that it names as they are now; `None` if these cannot be
/// read. A URL that is not known is judged as one link from a seed, and with the fewest off-site hops possible.
fn verdicts(dir: &Path, config: &Config, url: &Url, hops: Option<Hops>) -> Option<[ScopeVerdict; 2]> {
    let seeds = boot::kept_seeds(dir)
        .map_err(|error| tell!("{error}; the verdict of scope.follow may be wrong"))
        .unwrap_or_default();
    let scope = Scope::of_seeds(config, &seeds);
    let files = match ScopeFiles::read(config) {
        Ok(files) => files,
        Err(mistakes) => {
            mistakes.iter().for_each(|mistake| tell!("{mistake}"));
            tell!("the scope could not be checked");
            return None;
        }
    };
    let scope = files.of(&scope);
    let nearest = || Hops::default().link().with_offsite(scope.least_offsite(url.site()));
    let subject = Subject::new(url, hops.unwrap_or_else(nearest));
    Some([Stage::Schedule, Stage::Fetch].map(|stage| scope.explain(stage, &subject)))
}
