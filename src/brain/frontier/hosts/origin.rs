//! One origin of a host, and what its robots.txt says.
//!
//! Decides: the state of robots.txt is one value. While ringcrawl follows its redirects, an origin records the
//! current target and the number of hops. Attempts are counted per hop. A hop is never undone, so every redirect
//! chain ends.
//! A chain that returns to a URL it has visited is restarted once, because servers send clients in circles until they
//! return a cookie (RFC 6265). If it loops again, that is a failure like any other.
//! URLs of an origin whose robots.txt is unavailable are parked separately, so that `http` does not wait for `https`.
//! Good rules are kept after they expire: while robots.txt is unavailable they hold for another `robots.stale_max`
//! (RFC 9309 section 2.3.1.4). After that everything is forbidden. If the connection is refused, robots.txt is
//! retried sooner than if the server does not respond. After 30 days without a robots.txt the RFC treats it as
//! missing. ringcrawl never does: a server that fails for a month does not thereby permit anything. If there was no
//! file, there is no copy.
//! Invariants: nothing is allowed before rules were fetched.
//! Limits: parked URLs are bounded by the constants below; URLs over the bound wait in place.

use std::rc::Rc;

use super::failure_history::OriginRecord;
use super::way::Way;
use crate::frontier::queue::{Fifo, Ticket, WaitingUrls};
use crate::frontier::robots::{CachedRules, Finding, RobotsResult};
use crate::frontier::settings::Settings;
use crate::politeness::FailureStreak;
use crate::trouble::Trouble;
use ringcrawl_base::Failure;
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_config::{CrawlDelayAbove, Politeness};
use ringcrawl_robots::{Fuel, Usage, VERDICT_FUEL};
use ringcrawl_url::{Scheme, Url};

/// Scheme and port of a host.
#[derive(Debug)]
pub struct Origin {
    scheme: Scheme,
    port: u16,
    robots: Robots,
    /// Where its robots.txt redirects to; `None` if it was not redirected.
    way: Option<Box<Way>>,
    /// The last good rules, once they have expired.
    last_good: Option<Box<LastGood>>,
    /// Failed attempts at the file it currently looks at.
    attempts: u8,
    /// How often the redirects of its robots.txt have looped.
    bounces: u8,
    /// The last Crawl-delay in its robots.txt, kept after the rules have left memory; zero: none.
    crawl_delay: Duration,
    /// URLs that wait for robots.txt.
    parked: Fifo,
    /// Its failures in a row.
    pub streak: FailureStreak,
    has_answered: bool,
    /// Responses that were not complaints, up to the counter's limit.
    fine: u16,
    /// The last problem, unless a request has succeeded since.
    pub trouble: Option<Box<Trouble>>,
}

/// The state of an origin's robots.txt.
#[derive(Debug)]
enum Robots {
    /// Not fetched.
    Unknown,
    /// Fetched; `used` once a page was judged by it, or no page is waiting that could be.
    Known { rules: Rc<CachedRules>, until: Instant, used: bool },
    /// Unavailable; queried again at the given instant, and everything is forbidden until then.
    Unreachable { again: Instant, why: Failure },
    /// Unavailable after all attempts; URLs end as `why`.
    Refused { until: Instant, why: Failure },
    /// Another file was requested; its answer wakes the host. `is_noted` tells whether an answer will come.
    Asked { again: Instant, is_noted: bool },
}

/// Rules that have expired.
#[derive(Debug)]
struct LastGood {
    rules: Rc<CachedRules>,
    /// They may be used until then, while no newer rules are available.
    until: Instant,
}

/// The verdict of robots.txt on a URL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RobotsVerdict {
    /// It may be fetched.
    Allowed,
    /// It ends like this.
    Settle(Failure),
    /// The origin's own robots.txt must be fetched.
    Fetch,
    /// The file that robots.txt redirects to must be requested.
    Ask,
    /// Nothing is known before this instant.
    Wait(Instant),
}

/// What an origin does about something it learned.
#[derive(Debug)]
pub enum RulesStep {
    /// Nothing more.
    Settled,
    /// It requests this file.
    Ask(Url),
    /// The redirects have looped, and the chain is restarted: these files may say something else now.
    Again(Vec<Url>),
}

impl Origin {
    /// The origin of `url`, about which nothing is known.
    pub fn new(url: &Url) -> Origin {
        let (scheme, port) = (url.scheme(), url.port());
        let streak = FailureStreak::default();
        Origin::remembered(OriginRecord { scheme, port, has_answered: false, streak, trouble: None })
    }

    /// An origin of a host that was forgotten.
    pub fn remembered(record: OriginRecord) -> Origin {
        let OriginRecord { scheme, port, has_answered, streak, trouble } = record;
        Origin {
            scheme,
            port,
            robots: Robots::Unknown,
            way: None,
            last_good: None,
            attempts: 0,
            bounces: 0,
            crawl_delay: Duration::ZERO,
            parked: Fifo::default(),
            streak,
            has_answered,
            fine: 0,
            trouble,
        }
    }

    /// The part that outlives its host in memory.
    pub fn record(&self) -> OriginRecord {
        let Origin { scheme, port, has_answered, streak, .. } = *self;
        OriginRecord { scheme, port, has_answered, streak, trouble: self.trouble.clone() }
    }

    /// It answered; `has_complained` tells whether with a complaint.
    pub fn answered(&mut self, has_complained: bool) {
        self.has_answered = true;
        self.fine = self.fine.saturating_add(u16::from(!has_complained));
        self.streak.answered();
    }

    /// The number of good answers.
    pub fn fine(&self) -> u16 {
        self.fine
    }

    /// Whether a complaint counts only against this origin and not against the host, as long as `other` works. This
    /// holds if it has no default port and has fewer good answers.
    pub fn is_beside(&self, other: &Origin) -> bool {
        self.is_odd() && other.works() && other.fine > self.fine
    }

    /// Whether its port is not its scheme's.
    pub fn is_odd(&self) -> bool {
        self.port != self.scheme.default_port()
    }

    /// Whether it answered the last request.
    pub fn works(&self) -> bool {
        self.has_answered && !self.streak.has_failed()
    }

    /// Whether it is an odd port that never answered.
    pub fn is_stranger(&self) -> bool {
        !self.has_answered && self.is_odd()
    }

    /// Whether forgetting it loses little: an odd port that never answered, not even in an earlier run, and has no
    /// rules.
    pub fn is_unproven(&self) -> bool {
        let is_new = self.streak.asked_until() == Instant::ZERO;
        self.is_stranger() && is_new && !matches!(self.robots, Robots::Known { .. })
    }

    /// Its scheme and port.
    pub fn place(&self) -> (Scheme, u16) {
        (self.scheme, self.port)
    }

    /// Whether `url` belongs to this origin.
    pub fn is_of(&self, url: &Url) -> bool {
        self.scheme == url.scheme() && self.port == url.port()
    }

    /// The address of this origin's robots.txt; `host` is its host's name.
    pub fn robots_url(&self, host: &str) -> Option<Url> {
        let scheme = match self.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
        };
        Url::parse(&format!("{scheme}://{host}:{}/robots.txt", self.port)).ok()
    }

    /// The Crawl-delay in its robots.txt; zero: none. It holds until there is another robots.txt.
    pub fn crawl_delay(&self) -> Duration {
        self.crawl_delay
    }

    /// Its current rules, including expired ones that are used only while no others are available.
    pub fn rules(&self) -> Option<&CachedRules> {
        match &self.robots {
            Robots::Known { rules, .. } => Some(rules),
            _ => self.last_good.as_ref().map(|good| &*good.rules),
        }
    }

    /// What robots.txt says about the use of `url`, which may be fetched. The cost of finding out is taken from
    /// `fuel`.
    pub fn usage(&self, url: &Url, fuel: &mut Fuel) -> Option<Box<Usage>> {
        // As much as for a verdict, whatever that took: with less, every use would be denied.
        let mut own = Fuel::new(VERDICT_FUEL);
        let usage = self.rules()?.usage(url.path_and_query(), &mut own).map(Box::new);
        fuel.spend(VERDICT_FUEL - own.left());
        usage
    }

    /// What robots.txt says about `url`. The cost of finding out is taken from `fuel`.
    pub fn verdict(&mut self, url: &Url, now: Instant, settings: &Settings, fuel: &mut Fuel) -> RobotsVerdict {
        self.expire(now, settings.robots.stale_max);
        match &self.robots {
            Robots::Known { rules, .. } => {
                let (is_allowed, units) = rules.judge(url.path_and_query());
                fuel.spend(units);
                let why = match rules.crawl_delay().is_some_and(|delay| is_too_long(delay, &settings.politeness)) {
                    _ if !is_allowed => Failure::RobotsDenied,
                    true => Failure::CrawlDelayTooLong,
                    false => return RobotsVerdict::Allowed,
                };
                self.note_use();
                RobotsVerdict::Settle(why)
            }
            Robots::Refused { why, .. } => RobotsVerdict::Settle(*why),
            Robots::Unknown => RobotsVerdict::Fetch,
            Robots::Unreachable { again, .. } | Robots::Asked { again, .. } if *again > now => {
                RobotsVerdict::Wait(*again)
            }
            Robots::Unreachable { .. } if self.way.is_none() => RobotsVerdict::Fetch,
            Robots::Unreachable { .. } | Robots::Asked { .. } => RobotsVerdict::Ask,
        }
    }

    /// Takes the content of the file in which the rules are currently looked up. `own` is the origin's own
    /// robots.txt, and `may_act` the instant at which its host may be queried again: verdicts that forbid outlast it.
    pub fn learn(
        &mut self,
        now: Instant,
        may_act: Instant,
        (result, until): Finding,
        own: Option<&Url>,
        allow_all: &Rc<CachedRules>,
        settings: &Settings,
    ) -> RulesStep {
        let hops = self.way.as_ref().map_or(0, |way| way.hops);
        let until_all = self.way.as_ref().map_or(until, |way| way.until.min(until));
        match result {
            RobotsResult::Rules(rules) => self.know(rules, until_all),
            RobotsResult::Redirect(target) => {
                let hops = hops.saturating_add(1);
                if own == Some(&target) || self.way.as_ref().is_some_and(|way| way.has_been_at(&target)) {
                    return self.bounced(may_act, settings);
                }
                if hops > settings.robots.redirects_max {
                    // Too many: as if there were no robots.txt (RFC 9309 section 2.3.1.2).
                    self.know(Rc::clone(allow_all), until_all);
                    return RulesStep::Settled;
                }
                self.attempts = 0;
                let passed = self.way.take().map(|way| way.onward()).unwrap_or_default();
                self.way = Some(Box::new(Way { target: target.clone(), hops, passed, until: until_all }));
                return RulesStep::Ask(target);
            }
            RobotsResult::Unreachable(_) if self.use_last_good(may_act, until, settings) => {}
            RobotsResult::Refused(_) if hops > 0 && self.use_last_good(may_act, until, settings) => {}
            RobotsResult::Unreachable(why) if self.attempts < settings.robots.retries_max => {
                let wait = settings.robots_wait(why, self.attempts);
                self.attempts += 1;
                self.robots = Robots::Unreachable { again: until.max(now + wait), why: ending(why) };
            }
            RobotsResult::Unreachable(why) => self.refuse(may_act + settings.robots.ttl, ending(why)),
            RobotsResult::Refused(why) if hops == 0 => self.refuse(until, why),
            RobotsResult::Refused(why) => {
                // Another host's TLS error is not this host's fault.
                let why = if why.is_of_tls() { Failure::RobotsUnreachable } else { why };
                self.refuse(until.max(may_act + settings.robots.retry_delay), why);
            }
        }
        RulesStep::Settled
    }

    /// The redirects have looped. A cookie that they set might break the loop, so the chain is restarted once
    /// immediately, and then as often as after other failures.
    fn bounced(&mut self, may_act: Instant, settings: &Settings) -> RulesStep {
        let way = self.way.take();
        let wait = if self.bounces == 0 { Duration::ZERO } else { settings.robots.retry_delay };
        if self.bounces > 0 && self.use_last_good(may_act, may_act, settings) {
            return RulesStep::Settled;
        }
        if self.bounces > settings.robots.retries_max {
            self.refuse(may_act + settings.robots.ttl, Failure::RobotsUnreachable);
            return RulesStep::Settled;
        }
        (self.bounces, self.attempts) = (self.bounces + 1, 0);
        self.robots = Robots::Unreachable { again: may_act + wait, why: Failure::RobotsUnreachable };
        RulesStep::Again(way.map(|way| way.onward()).unwrap_or_default())
    }

    /// Waits for the content of the requested file; `is_noted` tells whether an answer will come.
    pub fn wait(&mut self, again: Instant, is_noted: bool) {
        self.robots = Robots::Asked { again, is_noted };
    }

    /// Another shard fetches its robots.txt for all shards.
    pub fn look_at_home(&mut self, own: &Url) {
        self.way = Some(Box::new(Way { target: own.clone(), hops: 0, passed: Vec::new(), until: Instant::NEVER }));
    }

    /// Whether it waits for the content of `url`.
    pub fn waits_for(&self, url: &Url) -> bool {
        matches!(self.robots, Robots::Asked { is_noted: true, .. })
            && self.way.as_ref().is_some_and(|way| way.target == *url)
    }

    /// While its robots.txt is unavailable: when it is queried again, if ever, the number of attempts, and the URL it
    /// was redirected to.
    pub fn without_robots(&self) -> Option<(Option<Instant>, u8, Option<&Url>)> {
        let target = self.way.as_ref().filter(|way| way.hops > 0).map(|way| &way.target);
        match self.robots {
            Robots::Unreachable { again, .. } => Some((Some(again), self.attempts, target)),
            Robots::Refused { .. } => Some((None, self.attempts.saturating_add(1), target)),
            Robots::Unknown | Robots::Known { .. } | Robots::Asked { .. } => None,
        }
    }

    /// The file to request, and whether an answer is already promised.
    pub fn asks_for(&self) -> Option<(Url, bool)> {
        let is_noted = matches!(self.robots, Robots::Asked { is_noted: true, .. });
        self.way.as_ref().map(|way| (way.target.clone(), is_noted))
    }

    /// Whether its own robots.txt must be fetched.
    pub fn wants_own(&self, now: Instant) -> bool {
        match &self.robots {
            Robots::Unknown => true,
            Robots::Unreachable { again, .. } => self.way.is_none() && *again <= now,
            _ => false,
        }
    }

    /// What its own robots.txt said, if still known.
    pub fn own_finding(&self, now: Instant) -> Option<Finding> {
        if self.way.is_some() {
            return None;
        }
        // Expired rules in use for lack of newer ones are not passed to other origins, which have their own.
        let is_old = |rules| self.last_good.as_ref().is_some_and(|good| Rc::ptr_eq(&good.rules, rules));
        let (result, until) = match &self.robots {
            Robots::Known { rules, until, .. } if is_old(rules) => {
                (RobotsResult::Unreachable(Failure::RobotsUnreachable), *until)
            }
            Robots::Known { rules, until, .. } => (RobotsResult::Rules(Rc::clone(rules)), *until),
            Robots::Unreachable { again, why } => (RobotsResult::Unreachable(*why), *again),
            Robots::Refused { until, why } => (RobotsResult::Refused(*why), *until),
            Robots::Unknown | Robots::Asked { .. } => return None,
        };
        (until > now).then_some((result, until))
    }

    /// Everything is forbidden until `until` and ends as `why`.
    pub fn refuse(&mut self, until: Instant, why: Failure) {
        self.robots = Robots::Refused { until, why };
    }

    /// robots.txt must be fetched again. Its last content is kept in case there is no answer.
    pub fn forget(&mut self) {
        (self.robots, self.way, self.attempts, self.bounces) = (Robots::Unknown, None, 0, 0);
    }

    /// The rules leave memory.
    pub fn drop_rules(&mut self) {
        self.last_good = None;
        if matches!(self.robots, Robots::Known { .. }) {
            self.forget();
        }
    }

    /// A URL was judged by the rules, or no URL waits for them any more.
    pub fn note_use(&mut self) {
        if let Robots::Known { used, .. } = &mut self.robots {
            *used = true;
        }
    }

    /// Whether a URL was judged by its current rules.
    pub fn has_served(&self) -> bool {
        match self.robots {
            Robots::Known { used, .. } => used,
            _ => self.last_good.is_some(),
        }
    }

    /// The instant until which nothing of this origin can be fetched; `None` if something can be tried now.
    pub fn waits_until(&self, now: Instant) -> Option<Instant> {
        match &self.robots {
            Robots::Unreachable { again, .. } | Robots::Asked { again, .. } if *again > now => Some(*again),
            _ => None,
        }
    }

    /// Parks a URL until robots.txt is known, if there is room; returns the bytes that this takes.
    pub fn park(&mut self, ticket: Ticket, url: &Url, has_room: bool) -> Option<u64> {
        let bytes_max = if has_room { PARKED_BYTES_MAX } else { PARKED_BYTES_MIN };
        (self.parked.bytes_left() < bytes_max).then(|| {
            self.parked.push(ticket, url.as_str());
            WaitingUrls::entry_bytes(url.as_str()) as u64
        })
    }

    /// Takes the oldest parked URL.
    pub fn unpark(&mut self) -> Option<(Ticket, String)> {
        self.parked.pop()
    }

    /// Bytes of parked URLs.
    pub fn parked_bytes(&self) -> usize {
        self.parked.bytes_left()
    }

    fn know(&mut self, rules: Rc<CachedRules>, until: Instant) {
        self.crawl_delay = rules.crawl_delay().unwrap_or_default();
        self.robots = Robots::Known { rules, until, used: false };
        (self.last_good, self.attempts, self.bounces) = (None, 0, 0);
    }

    /// robots.txt is unavailable, and is queried again at `again`. Until then its last content holds, provided it may
    /// still be used when the host may next be queried, from `may_act` on. Returns whether it does.
    fn use_last_good(&mut self, may_act: Instant, again: Instant, settings: &Settings) -> bool {
        let Some(good) = self.last_good.as_ref().filter(|good| good.until > may_act) else { return false };
        // However long the delay is, at least one page comes between two attempts.
        let until = again.max(may_act + settings.robots.retry_delay).min(good.until);
        self.robots = Robots::Known { rules: Rc::clone(&good.rules), until, used: true };
        (self.way, self.attempts, self.bounces) = (None, 0, 0);
        true
    }

    /// Forgets a robots.txt that is too old. One that has not judged a page yet is kept a while longer if a page
    /// waits: with a delay longer than `robots.ttl`, ringcrawl would otherwise fetch nothing but robots.txt.
    fn expire(&mut self, now: Instant, stale_max: Duration) {
        let is_old = match self.robots {
            Robots::Known { until, used, .. } => until <= now && (used || until + UNUSED_FOR <= now),
            Robots::Refused { until, .. } => until <= now,
            _ => false,
        };
        if let (true, Robots::Known { rules, until, .. }, None) = (is_old, &self.robots, &self.last_good)
            && rules.is_of_file()
        {
            self.last_good = Some(Box::new(LastGood { rules: Rc::clone(rules), until: *until + stale_max }));
        }
        // Rules that are already used past their expiry get no further extension.
        self.last_good.take_if(|good| good.until <= now);
        if is_old {
            self.forget();
        }
    }
}

/// How URLs end whose robots.txt was unavailable for this reason.
fn ending(why: Failure) -> Failure {
    if why == Failure::ConnectRefused { Failure::RobotsUnreachable } else { why }
}

/// Whether the delay is too long to wait for.
fn is_too_long(crawl_delay: Duration, politeness: &Politeness) -> bool {
    politeness.crawl_delay_above == CrawlDelayAbove::Skip && crawl_delay > politeness.crawl_delay_max
}

/// How long unused rules outlast their expiry while URLs wait. The longest delay is a day, but hosts that share a
/// site, an address or an operator get turns less often, in proportion to their number. The bound is the largest
/// value of `robots.stale_max`.
const UNUSED_FOR: Duration = Duration::from_secs(30 * 86_400);
/// Bytes of URLs parked for an origin's robots.txt.
const PARKED_BYTES_MAX: usize = 64 * 1024;
/// The same while the frontier's memory is over its bound.
const PARKED_BYTES_MIN: usize = 4 * 1024;
