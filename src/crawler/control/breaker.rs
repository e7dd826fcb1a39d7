//! Whether our own network is down: the machine's circuit breaker. Pure.
//!
//! Decides: there is an outage in four cases. No queried name server can resolve a name, whether it is silent or
//! returns SERVFAIL. `outage.sites_failed` of the `outage.sites` sites asked last fail, at least half of these had
//! answered before, and no site answers from then on: for [`CONFIRMED_AFTER`] if three others fall silent, too, or
//! for [`CONFIRMED_MAX`]. The proxy cannot be reached. The default route is gone.
//! Shards hold back each failure that an outage could explain ([`ringcrawl_brain::shard`]) until it is cleared: when
//! more sites have answered than do in an outage. With too few sites for a verdict, one answer from a site or a name
//! server is enough, as long as there is a default route. A failure counts after `outage.hold_max` at the latest.
//! An outage ends with the first answer: from a name server, or from a site or through the proxy to a request that
//! began during the outage. Until then a few things are tried at a time, at an interval that grows to
//! `outage.probe_max`. While no name server answers but sites do, only lookups wait. Where sites are too few for a
//! verdict, everything waits again once one has failed and none has answered for [`CONFIRMED_MAX`]. An outage that
//! begins soon after the last one ended continues the last one. After `outage.wait_max` without an answer the crawl
//! ends.
//! Why so: a dead host must be given up, and a crawl of dead hosts must end. So silence counts only from sites that
//! have answered before; where there are too few, the name servers are queried.
//! Limits: if part of the web is out of reach, that is no outage. Nor is it one for a crawl of few sites if only the
//! web is out of reach.

use super::outage::{Cause, Outage};
use super::sites::{RecentSites, SitesFailed};
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_brain::shard::{Cleared, NetworkReport, OutOfReach, SiteEnd, SiteReply};
use ringcrawl_config::{self as config, Config};

/// The breaker.
#[derive(Debug)]
pub struct Breaker {
    settings: config::Outage,
    /// How long to wait for a name server.
    name_wait: Duration,
    sites: RecentSites,
    suspicion: Option<Suspicion>,
    outage: Option<Outage>,
    /// The previous outage, and when it ended.
    last: Option<(Outage, Instant)>,
    seen: Seen,
    /// When name servers were last queried to see whether they answer.
    asked_names: Option<AskedNames>,
    cleared: Cleared,
    next_shard: usize,
    count: u64,
    /// Total time of outages that have ended.
    time: Duration,
}

/// What is visible at one moment.
#[derive(Clone, Copy, Debug)]
pub struct NetworkView<'a> {
    /// What each shard counts.
    pub reports: &'a [NetworkReport],
    /// How requests have ended since the last look.
    pub ends: &'a [SiteEnd],
    /// Whether the machine has a default route.
    pub has_route: bool,
}

/// What applies from now on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BreakerDecision {
    /// Failures of these times count.
    pub cleared: Cleared,
    /// What an outage cuts us off from.
    pub out_of_reach: OutOfReach,
    /// These shards should try something.
    pub probes: Probes,
    /// The outage has lasted for `outage.wait_max`.
    pub gives_up: bool,
}

/// What to try at one time, and on which shards.
pub type Probes = [Option<(usize, ProbeKind)>; PROBES_MAX];

/// What to try.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProbeKind {
    /// The next waiting job.
    Job,
    /// Every name server.
    Names,
}

/// Name servers were queried to see whether they answer.
#[derive(Clone, Copy, Debug)]
struct AskedNames {
    at: Instant,
    /// A second time, since one packet may be lost.
    again: bool,
}

/// Most of the sites asked last fail, which may be their own doing.
#[derive(Debug)]
struct Suspicion {
    since: Instant,
    /// The owners that had fallen silent when the suspicion arose.
    owners: Vec<u64>,
}

/// What was seen at the last look and before.
#[derive(Debug, Default)]
struct Seen {
    dns_heard: u64,
    dns_failed: u64,
    dns_errors: u64,
    /// Since a name server last answered, some have returned errors.
    have_errors: bool,
    proxy_unreachable: u64,
    /// When a name server last answered.
    heard_at: Instant,
    /// Since when queries of lookups have failed.
    names_silent_since: Option<Instant>,
    proxy_gone_since: Option<Instant>,
    /// There was a default route, and no site has answered without it.
    had_route: bool,
    no_route_since: Option<Instant>,
}

impl Breaker {
    /// For a crawl with this configuration.
    pub fn new(config: &Config) -> Breaker {
        let settings = config.outage.clone();
        Breaker {
            sites: RecentSites::new(settings.sites, settings.sites_failed),
            settings,
            name_wait: config.dns.timeout + NAME_SLACK,
            suspicion: None,
            outage: None,
            last: None,
            seen: Seen::default(),
            asked_names: None,
            cleared: Cleared::default(),
            next_shard: 0,
            count: 0,
            time: Duration::ZERO,
        }
    }

    /// What applies from now on.
    pub fn look(&mut self, now: Instant, view: NetworkView<'_>) -> BreakerDecision {
        let answers = self.take_in(now, view);
        self.suspect(now, answers);
        let mut probes = Probes::default();
        match self.outage {
            Some(outage) if self.is_over(outage, answers, view) => {
                self.outage = None;
                self.last = Some((outage, now));
                self.time += now.since(outage.counted);
                let is_of_sites = matches!(outage.cause, Cause::Sites { .. });
                self.sites.forgive(now, is_of_sites.then(|| now.since(outage.opened)));
                self.suspicion = None;
                (self.seen.names_silent_since, self.seen.proxy_gone_since, self.asked_names) = (None, None, None);
            }
            Some(outage) => {
                if let Cause::NameServers { .. } = outage.cause {
                    self.look_at_sites(now, outage, answers, view);
                }
                probes = self.next_probes(now, view);
            }
            None => {
                let held = HeldSince::of(view.reports);
                let cause = self.cause(now, held, view.has_route);
                if let Some((cause, since)) = cause {
                    self.open(now, cause, since);
                } else {
                    self.clear(now, held);
                    probes[0] = self.ask_names(now, held, view.reports.len());
                }
            }
        }
        let gives_up = self.outage.is_some_and(|outage| {
            // Something answered between the two outages, however soon the second one began.
            let since = if outage.is_again { outage.opened } else { outage.since }.max(outage.answered);
            !self.settings.wait_max.is_zero() && now.since(since) >= self.settings.wait_max
        });
        let out_of_reach = self.outage.map_or(OutOfReach::Nothing, |outage| outage.out_of_reach);
        BreakerDecision { cleared: self.cleared, out_of_reach, probes, gives_up }
    }

    /// The present outage.
    pub fn outage(&self) -> Option<Outage> {
        self.outage
    }

    /// Outages so far, the present one included, and how long they have lasted by `now`.
    pub fn outages(&self, now: Instant) -> (u64, Duration) {
        let present = self.outage.map_or(Duration::ZERO, |outage| now.since(outage.counted));
        (self.count, self.time + present)
    }

    /// Whether there are too few living sites for a verdict.
    pub fn has_few_sites(&self, now: Instant) -> bool {
        self.sites.are_few(now - self.settings.hold_max)
    }

    /// The earliest time to look again although nothing happens: while there is an outage, or a failure is held.
    pub fn next_due(&self, now: Instant, reports: &[NetworkReport]) -> Option<Instant> {
        let next_probe = self.outage.map(|outage| outage.next_probe);
        if self.outage.is_some_and(|outage| outage.out_of_reach == OutOfReach::All) {
            return next_probe;
        }
        let held = HeldSince::of(reports);
        let asked = self.asked_names.map(|asked| asked.at + self.name_wait / if asked.again { 1 } else { 2 });
        let counts = held.any.map(|since| since + self.settings.hold_max);
        let of_sites = self.suspicion.as_ref().map(|suspicion| suspicion.since);
        let suspicions = [held.any, held.names, self.seen.proxy_gone_since];
        let suspicions = suspicions.map(|since| Some(since? + SUSPICION)).into_iter();
        let of_sites = [CONFIRMED_AFTER, CONFIRMED_MAX].map(|wait| Some(of_sites? + wait));
        let suspicions = suspicions.chain(of_sites).filter(|at| at.is_some_and(|at| at > now));
        suspicions.chain([next_probe, asked, counts]).flatten().min()
    }

    /// Takes in the events since the last look.
    fn take_in(&mut self, now: Instant, view: NetworkView<'_>) -> Answers {
        let mut answers = Answers::default();
        for end in view.ends {
            self.sites.note(now, *end);
            if end.reply == SiteReply::Answered {
                answers.site = answers.site.max(Some(end.began));
            }
        }
        let sum = |count: fn(&NetworkReport) -> u64| view.reports.iter().map(count).sum::<u64>();
        let seen = &mut self.seen;
        let (heard, silent, unreachable) =
            (sum(|it| it.dns_heard), sum(|it| it.dns_failed), sum(|it| it.proxy_unreachable));
        let errors = sum(|it| it.dns_errors);
        seen.have_errors |= errors > seen.dns_errors;
        if heard > seen.dns_heard {
            seen.have_errors = false;
            answers.name_server = true;
            (seen.heard_at, seen.names_silent_since) = (now, None);
        } else if silent > seen.dns_failed {
            seen.names_silent_since.get_or_insert(now);
        }
        if answers.site.is_some() {
            seen.proxy_gone_since = None;
        } else if unreachable > seen.proxy_unreachable {
            seen.proxy_gone_since.get_or_insert(now);
        }
        seen.dns_errors = errors;
        (seen.dns_heard, seen.dns_failed, seen.proxy_unreachable) = (heard, silent, unreachable);
        if view.has_route {
            (seen.had_route, seen.no_route_since) = (true, None);
        } else {
            let since = *seen.no_route_since.get_or_insert(now);
            // Then this is a local network, or its routes together lead everywhere.
            seen.had_route &= answers.site.is_none_or(|began| began < since);
        }
        answers
    }

    /// Whether there is an outage, and since when.
    fn cause(&self, now: Instant, held: HeldSince, has_route: bool) -> Option<(Cause, Instant)> {
        self.cause_of_sites(now, held, has_route).or_else(|| self.cause_of_names(now, held))
    }

    /// Whether sites are out of reach.
    fn cause_of_sites(&self, now: Instant, held: HeldSince, has_route: bool) -> Option<(Cause, Instant)> {
        let is_waited_for = |since: Instant| now.since(since) >= SUSPICION;
        if let Some(SitesFailed { failed, of, since }) = self.sites.failed().filter(|_| self.is_confirmed(now)) {
            return Some((Cause::Sites { failed, of }, since));
        }
        if let Some(since) = self.seen.proxy_gone_since.filter(|since| is_waited_for(*since)) {
            return Some((Cause::Proxy, since));
        }
        let held_since = held.any.filter(|since| is_waited_for(*since))?;
        (self.seen.had_route && !has_route).then_some((Cause::Route, held_since))
    }

    /// Whether no name server answers.
    fn cause_of_names(&self, now: Instant, held: HeldSince) -> Option<(Cause, Instant)> {
        let held_since = held.any.filter(|since| now.since(*since) >= SUSPICION)?;
        let is_silence = |asked: AskedNames| now.since(asked.at) >= self.name_wait && self.seen.heard_at < asked.at;
        let are_silent = self.asked_names.is_some_and(is_silence);
        // Servers that no job needs may be silent.
        let are_needed = held.names.is_some() || self.seen.dns_heard > 0;
        let since = self.seen.names_silent_since.unwrap_or(held_since);
        (are_silent && are_needed).then_some((Cause::NameServers { have_errors: self.seen.have_errors }, since))
    }

    /// Most sites fail. One answer to a request that began since then shows that it is not the network.
    fn suspect(&mut self, now: Instant, answers: Answers) {
        let is_refuted = |suspicion: &Suspicion| answers.site.is_some_and(|began| began >= suspicion.since);
        let is_all_down = self.outage.is_some_and(|outage| outage.out_of_reach == OutOfReach::All);
        if is_all_down || self.sites.failed().is_none() || self.suspicion.as_ref().is_some_and(is_refuted) {
            self.suspicion = None;
        }
        if !is_all_down && self.suspicion.is_none() && self.sites.failed().is_some() {
            let owners = self.sites.fell_silent(Instant::ZERO).collect();
            self.suspicion = Some(Suspicion { since: now, owners });
        }
    }

    /// Whether others that had answered before were asked since, and were silent, too; or whether no such site was
    /// found in time.
    fn is_confirmed(&self, now: Instant) -> bool {
        let Some(Suspicion { since, owners }) = &self.suspicion else { return false };
        let others = self.sites.fell_silent(*since).filter(|owner| !owners.contains(owner)).count();
        let waited = now.since(*since);
        waited >= CONFIRMED_MAX || waited >= CONFIRMED_AFTER && others >= CONFIRMED_BY
    }

    fn open(&mut self, now: Instant, cause: Cause, since: Instant) {
        self.asked_names = None;
        let last = self.last.take().filter(|(_, over)| now.since(*over) < SOON);
        self.count += u64::from(last.is_none());
        let first = PROBE_FIRST.min(self.settings.probe_max);
        let do_sites_answer = matches!(cause, Cause::NameServers { .. }) && self.sites.answered_by(1) > since;
        let (since, counted, interval) = match last {
            Some((last, over)) => (last.since, over, last.interval),
            None => (since, since, first),
        };
        let is_again = last.is_some();
        let (out_of_reach, answered) = match do_sites_answer {
            true => (OutOfReach::Names, now),
            false => (OutOfReach::All, Instant::ZERO),
        };
        let (opened, next_probe) = (now, now + interval);
        self.outage =
            Some(Outage { cause, since, is_again, out_of_reach, answered, opened, counted, next_probe, interval });
    }

    /// No name server answers: checks whether sites do.
    fn look_at_sites(&mut self, now: Instant, outage: Outage, answers: Answers, view: NetworkView<'_>) {
        let interval = PROBE_FIRST.min(self.settings.probe_max);
        let (out_of_reach, next_probe) = (OutOfReach::All, now + interval);
        let all_down = Outage { out_of_reach, opened: now, next_probe, interval, ..outage };
        if answers.site.is_some_and(|began| began >= outage.opened) {
            self.outage = Some(Outage { out_of_reach: OutOfReach::Names, answered: now, ..outage });
        } else if outage.out_of_reach == OutOfReach::All {
            return;
        }
        let held = HeldSince::of(view.reports);
        if let Some((cause, since)) = self.cause_of_sites(now, held, view.has_route) {
            self.outage = Some(Outage { cause, since, ..all_down });
            return;
        }
        self.clear(now, held);
        let is_in_doubt = |since: Instant| since > self.cleared.sites && now.since(since) >= CONFIRMED_MAX;
        if self.has_few_sites(now) && held.any.is_some_and(is_in_doubt) {
            self.outage = Some(all_down);
        }
    }

    fn is_over(&self, outage: Outage, answers: Answers, view: NetworkView<'_>) -> bool {
        let has_site_answered = answers.site.is_some_and(|began| began >= outage.opened);
        match outage.cause {
            Cause::NameServers { .. } => answers.name_server,
            Cause::Sites { .. } | Cause::Proxy => has_site_answered,
            Cause::Route => view.has_route || has_site_answered,
        }
    }

    /// The next things to try, when it is time.
    fn next_probes(&mut self, now: Instant, view: NetworkView<'_>) -> Probes {
        let mut probes = Probes::default();
        let Some(outage) = self.outage.filter(|outage| outage.next_probe <= now) else { return probes };
        let interval = (outage.interval * 2).min(self.settings.probe_max);
        self.outage = Some(Outage { next_probe: now + interval, interval, ..outage });
        for (place, probe) in probes.iter_mut().enumerate() {
            // Waiting jobs are tried, too: some resolvers do not answer what a probe asks, and they may know the next
            // name.
            let kind = match outage.cause {
                Cause::NameServers { .. } if place == 0 => ProbeKind::Names,
                _ => ProbeKind::Job,
            };
            *probe = self.next_shard(view, kind).map(|shard| (shard, kind));
        }
        probes
    }

    /// The next shard in turn that can try this.
    fn next_shard(&mut self, view: NetworkView<'_>, kind: ProbeKind) -> Option<usize> {
        let shards = view.reports.len();
        let mut in_turn = (self.next_shard..self.next_shard + shards).map(|shard| shard % shards);
        let can_try =
            |shard: &usize| kind == ProbeKind::Names || view.reports.get(*shard).is_some_and(|it| it.has_work);
        let shard = in_turn.find(can_try)?;
        self.next_shard = shard + 1;
        Some(shard)
    }

    /// Clears what failed while the network is known to have worked.
    fn clear(&mut self, now: Instant, held: HeldSince) {
        let are_few = self.has_few_sites(now);
        let answered = self.sites.answered_by(if are_few { 1 } else { self.sites.answers_max() + 1 });
        let latest = now - self.settings.hold_max;
        let names = latest.max(self.seen.heard_at);
        let mut sites = latest.max(answered);
        match self.asked_names {
            // Clears what was held when the servers were queried.
            Some(asked) if self.seen.heard_at >= asked.at => {
                self.asked_names = None;
                if are_few {
                    sites = sites.max(asked.at);
                }
            }
            // No name server answers, but no job needs one, and there is no other witness.
            Some(asked) if now.since(asked.at) >= self.name_wait => {
                self.asked_names = None;
                sites = sites.max(asked.at);
            }
            _ => {}
        }
        // This crawl queries no names.
        if are_few && self.seen.dns_heard == 0 && self.seen.dns_failed == 0 && held.any.is_some() {
            sites = sites.max(now - SUSPICION);
        }
        self.cleared = Cleared { sites: self.cleared.sites.max(sites), names: self.cleared.names.max(names) };
    }

    /// Whether to query name servers, for failures that have been held a while and are not cleared.
    fn ask_names(&mut self, now: Instant, held: HeldSince, shards: usize) -> Option<(usize, ProbeKind)> {
        let waits = |since: Option<Instant>, cleared: Instant| {
            since.is_some_and(|since| since > cleared && now.since(since) >= SUSPICION)
        };
        let are_few = self.has_few_sites(now);
        let is_wanted = waits(held.names, self.cleared.names) || are_few && waits(held.any, self.cleared.sites);
        self.asked_names = match self.asked_names {
            None if is_wanted && shards > 0 => Some(AskedNames { at: now, again: false }),
            Some(asked) if !asked.again && now.since(asked.at) >= self.name_wait / 2 => {
                Some(AskedNames { again: true, ..asked })
            }
            _ => return None,
        };
        self.next_shard = (self.next_shard + 1) % shards.max(1);
        Some((self.next_shard, ProbeKind::Names))
    }
}

/// Answers since the last look.
#[derive(Clone, Copy, Debug, Default)]
struct Answers {
    name_server: bool,
    /// The latest beginning of a request that a site answered.
    site: Option<Instant>,
}

/// When the oldest held failures ended, of all and of names.
#[derive(Clone, Copy, Debug)]
struct HeldSince {
    any: Option<Instant>,
    names: Option<Instant>,
}

impl HeldSince {
    fn of(reports: &[NetworkReport]) -> HeldSince {
        let oldest = |since: fn(&NetworkReport) -> Instant| {
            reports.iter().map(since).min().filter(|since| *since < Instant::NEVER)
        };
        HeldSince { any: oldest(|it| it.held_since), names: oldest(|it| it.names_held_since) }
    }
}

/// How long a failure is held before name servers are queried about it: other sites mostly answer sooner.
const SUSPICION: Duration = Duration::from_secs(1);
/// This many others that had answered must be silent as well before the silence of most sites is taken for an outage.
const CONFIRMED_BY: usize = 3;
/// The earliest time after the suspicion arose: others may take seconds to answer.
const CONFIRMED_AFTER: Duration = Duration::from_secs(4);
/// Without any answer for this long it is an outage: there may be no others. Sites that ask for a delay of ten
/// seconds get a turn in this time.
const CONFIRMED_MAX: Duration = Duration::from_secs(20);
/// A query of a probe waits for half of `dns.timeout`; the path to its shard and back may take this long on a busy
/// machine.
const NAME_SLACK: Duration = Duration::from_secs(1);
/// The first interval between probes.
const PROBE_FIRST: Duration = Duration::from_secs(1);
/// Things tried at one time: one of them may wait for a dead host.
const PROBES_MAX: usize = 3;
/// An outage that begins this soon after another is the same one.
const SOON: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests;
