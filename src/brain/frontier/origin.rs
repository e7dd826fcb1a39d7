//! One origin of a host, and what its robots.txt says.
//!
//! Decides: what is known of robots.txt is one state; on the way of its redirects an origin knows where it looks now and
//! how many hops that took. Tries are counted for each hop, and a hop is never taken back, so the way ends.
//! A way that comes back to where it has been is begun once more, as servers send clients around until these return a cookie
//! (RFC 6265). If it comes back again, that is a failure like others.
//! URLs of an origin whose robots.txt is not to be had are parked apart, so that `http` does not wait for `https`.
//! Rules that were good are kept past their time: while robots.txt cannot be had they hold for `robots.stale_max` more (RFC 9309
//! section 2.3.1.4), and then everything is forbidden. Where nobody listens, robots.txt is tried again sooner than
//! where nothing comes. After 30 days without a robots.txt the RFC would have it count as missing; here it
//! never does: a server that fails for a month permits nothing by that. Where there was no file there is no copy.
//! Invariants: rules were fetched before anything is allowed.
//! Limits: parked URLs are bounded by the constants below; what exceeds them waits in place.

use std::rc::Rc;

use super::Settings;
use super::failure_history::OriginRecord;
use super::queue::Fifo;
use super::robots_files::Finding;
use super::robots_message::RobotsResult;
use super::rules_cache::CachedRules;
use super::waiting::{Ticket, WaitingUrls};
use crate::politeness::{FailureStreak, RetryClass};
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
    /// Where its robots.txt redirects to; `None` while it was not sent anywhere.
    way: Option<Box<Way>>,
    /// The last rules that were good, once their time is over.
    last_good: Option<Box<LastGood>>,
    /// Tries that failed, at the file where it looks now.
    attempts: u8,
    /// How often the redirects of its robots.txt have led back to where they had been.
    bounces: u8,
    /// What its robots.txt asked for last, also after the rules have left memory; zero: nothing.
    crawl_delay: Duration,
    /// URLs that wait for robots.txt.
    parked: Fifo,
    /// Its failures in a row.
    pub streak: FailureStreak,
    has_answered: bool,
    /// Responses that were no complaint, as far as they are counted.
    fine: u16,
    /// What went wrong last, unless it has gone well since.
    pub trouble: Option<Box<Trouble>>,
}

/// What an origin's robots.txt says.
#[derive(Debug)]
enum Robots {
    /// Not fetched.
    Unknown,
    /// Fetched; `used` once a page was judged by it, or none waits that could be.
    Known { rules: Rc<CachedRules>, until: Instant, used: bool },
    /// Not to be had; asked again at the instant given, everything forbidden until then.
    Unreachable { again: Instant, why: Failure },
    /// Not to be had after all tries; URLs end as `why`.
    Refused { until: Instant, why: Failure },
    /// Another file was asked for; who answers wakes the host. `is_noted` says whether anybody will.
    Asked { again: Instant, is_noted: bool },
}

/// Rules whose time is over.
#[derive(Debug)]
struct LastGood {
    rules: Rc<CachedRules>,
    /// They may be used until then, while there are no others to be had.
    until: Instant,
}

/// A way of redirects, or to the shard that has the host's robots.txt.
#[derive(Debug)]
struct Way {
    /// Where it leads, as far as is known.
    target: Url,
    /// Redirects to there.
    hops: u8,
    /// Where they led before.
    passed: Vec<Url>,
    /// Until when all of these hold.
    until: Instant,
}

/// What robots.txt says of a URL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It may be fetched.
    Allowed,
    /// It ends like this.
    Settle(Failure),
    /// The origin's own robots.txt is to be fetched.
    Fetch,
    /// The file is to be asked for where robots.txt redirects to.
    Ask,
    /// Nothing is known before this instant.
    Wait(Instant),
}

/// What an origin does about something it learned.
#[derive(Debug)]
pub enum RulesStep {
    /// Nothing more.
    Settled,
    /// It asks for this file.
    Ask(Url),
    /// Its way has come back to where it had been, and is begun once more: what these files said may be otherwise now.
    Again(Vec<Url>),
}

impl Origin {
    /// The origin of `url`, of which nothing is known.
    pub fn new(url: &Url) -> Origin {
        let (scheme, port) = (url.scheme(), url.port());
        let streak = FailureStreak::default();
        Origin::remembered(OriginRecord { scheme, port, has_answered: false, streak, trouble: None })
    }

    /// One of a host that was forgotten.
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

    /// What outlives its host in memory.
    pub fn record(&self) -> OriginRecord {
        let Origin { scheme, port, has_answered, streak, .. } = *self;
        OriginRecord { scheme, port, has_answered, streak, trouble: self.trouble.clone() }
    }

    /// It answered, with a complaint or without.
    pub fn answered(&mut self, has_complained: bool) {
        self.has_answered = true;
        self.fine = self.fine.saturating_add(u16::from(!has_complained));
        self.streak.answered();
    }

    /// How often it was answered well.
    pub fn fine(&self) -> u16 {
        self.fine
    }

    /// Whether a complaint of it is its own, and not the host's, as long as `other` works: it has no default port, and has
    /// answered well less often.
    pub fn is_beside(&self, other: &Origin) -> bool {
        self.is_odd() && other.works() && other.fine > self.fine
    }

    /// Whether its port is not its scheme's.
    pub fn is_odd(&self) -> bool {
        self.port != self.scheme.default_port()
    }

    /// Whether it answered when it was asked last.
    pub fn works(&self) -> bool {
        self.has_answered && !self.streak.has_failed()
    }

    /// Whether it is an odd port that never answered.
    pub fn is_stranger(&self) -> bool {
        !self.has_answered && self.is_odd()
    }

    /// Whether little is lost when it is forgotten: an odd port that never answered, in no earlier run either, and has no rules.
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

    /// The Crawl-delay that its robots.txt asks for; zero: none. It holds until there is another robots.txt.
    pub fn crawl_delay(&self) -> Duration {
        self.crawl_delay
    }

    /// The rules that it holds, also those that are only used when there are no others to be had.
    pub fn rules(&self) -> Option<&CachedRules> {
        match &self.robots {
            Robots::Known { rules, .. } => Some(rules),
            _ => self.last_good.as_ref().map(|good| &*good.rules),
        }
    }

    /// What robots.txt says about the use of `url`, which may be fetched; what it takes to find out is taken off `work`.
    pub fn usage(&self, url: &Url, fuel: &mut Fuel) -> Option<Box<Usage>> {
        // As much as for a verdict, whatever that took: where there is less, every use would be denied.
        let mut own = Fuel::new(VERDICT_FUEL);
        let usage = self.rules()?.usage(url.path_and_query(), &mut own).map(Box::new);
        fuel.spend(VERDICT_FUEL - own.left());
        usage
    }

    /// What robots.txt says of `url`; what it takes to find out is taken off `work`.
    pub fn verdict(&mut self, url: &Url, now: Instant, settings: &Settings, fuel: &mut Fuel) -> Verdict {
        self.expire(now, settings.robots.stale_max);
        match &self.robots {
            Robots::Known { rules, .. } => {
                let (is_allowed, units) = rules.judge(url.path_and_query());
                fuel.spend(units);
                let why = match rules.crawl_delay().is_some_and(|delay| is_too_long(delay, &settings.politeness)) {
                    _ if !is_allowed => Failure::RobotsDenied,
                    true => Failure::CrawlDelayTooLong,
                    false => return Verdict::Allowed,
                };
                self.note_use();
                Verdict::Settle(why)
            }
            Robots::Refused { why, .. } => Verdict::Settle(*why),
            Robots::Unknown => Verdict::Fetch,
            Robots::Unreachable { again, .. } | Robots::Asked { again, .. } if *again > now => Verdict::Wait(*again),
            Robots::Unreachable { .. } if self.way.is_none() => Verdict::Fetch,
            Robots::Unreachable { .. } | Robots::Asked { .. } => Verdict::Ask,
        }
    }

    /// Takes what the file says that the rules are looked for in now. `own` is the origin's own robots.txt, and `may_act`
    /// the instant at which its host may be asked again: verdicts that forbid hold for longer.
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
                let wait = robots_wait(why, self.attempts, settings);
                self.attempts += 1;
                self.robots = Robots::Unreachable { again: until.max(now + wait), why: ending(why) };
            }
            RobotsResult::Unreachable(why) => self.refuse(may_act + settings.robots.ttl, ending(why)),
            RobotsResult::Refused(why) if hops == 0 => self.refuse(until, why),
            RobotsResult::Refused(why) => {
                // Another host's TLS is not what is wrong with this one.
                let why = if why.is_of_tls() { Failure::RobotsUnreachable } else { why };
                self.refuse(until.max(may_act + settings.robots.retry_delay), why);
            }
        }
        RulesStep::Settled
    }

    /// The redirects have come back to where they had been. May a cookie that they set open the way: it is begun once more, at once,
    /// and then as often as after other failures.
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

    /// Waits for what the file says that it asked for; `is_noted` says whether anybody will tell.
    pub fn wait(&mut self, again: Instant, is_noted: bool) {
        self.robots = Robots::Asked { again, is_noted };
    }

    /// Another shard fetches its robots.txt for all.
    pub fn look_at_home(&mut self, own: &Url) {
        self.way = Some(Box::new(Way { target: own.clone(), hops: 0, passed: Vec::new(), until: Instant::NEVER }));
    }

    /// Whether it waits for what `url` says.
    pub fn waits_for(&self, url: &Url) -> bool {
        matches!(self.robots, Robots::Asked { is_noted: true, .. })
            && self.way.as_ref().is_some_and(|way| way.target == *url)
    }

    /// While its robots.txt cannot be had: when it is asked for again, if it is, how many tries it has had, and where
    /// it was sent for it.
    pub fn without_robots(&self) -> Option<(Option<Instant>, u8, Option<&Url>)> {
        let target = self.way.as_ref().filter(|way| way.hops > 0).map(|way| &way.target);
        match self.robots {
            Robots::Unreachable { again, .. } => Some((Some(again), self.attempts, target)),
            Robots::Refused { .. } => Some((None, self.attempts.saturating_add(1), target)),
            Robots::Unknown | Robots::Known { .. } | Robots::Asked { .. } => None,
        }
    }

    /// The file to ask for, and whether somebody has promised to tell what it says.
    pub fn asks_for(&self) -> Option<(Url, bool)> {
        let is_noted = matches!(self.robots, Robots::Asked { is_noted: true, .. });
        self.way.as_ref().map(|way| (way.target.clone(), is_noted))
    }

    /// Whether its own robots.txt is to be fetched.
    pub fn wants_own(&self, now: Instant) -> bool {
        match &self.robots {
            Robots::Unknown => true,
            Robots::Unreachable { again, .. } => self.way.is_none() && *again <= now,
            _ => false,
        }
    }

    /// What its own robots.txt said, if that is still known.
    pub fn own_finding(&self, now: Instant) -> Option<Finding> {
        if self.way.is_some() {
            return None;
        }
        // Old rules that are used for want of new ones are none for others, who have their own.
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

    /// Everything is forbidden until `until`, and ends as `why`.
    pub fn refuse(&mut self, until: Instant, why: Failure) {
        self.robots = Robots::Refused { until, why };
    }

    /// robots.txt is to be asked for anew. What it said last is kept for the case that there is no answer.
    pub fn forget(&mut self) {
        (self.robots, self.way, self.attempts, self.bounces) = (Robots::Unknown, None, 0, 0);
    }

    /// The rules are to leave memory.
    pub fn drop_rules(&mut self) {
        self.last_good = None;
        if matches!(self.robots, Robots::Known { .. }) {
            self.forget();
        }
    }

    /// A URL was judged by the rules, or none waits for them any more.
    pub fn note_use(&mut self) {
        if let Robots::Known { used, .. } = &mut self.robots {
            *used = true;
        }
    }

    /// Whether a URL was judged by the rules that it holds.
    pub fn has_served(&self) -> bool {
        match self.robots {
            Robots::Known { used, .. } => used,
            _ => self.last_good.is_some(),
        }
    }

    /// Until when nothing of this origin can be fetched; `None` when something can be tried now.
    pub fn waits_until(&self, now: Instant) -> Option<Instant> {
        match &self.robots {
            Robots::Unreachable { again, .. } | Robots::Asked { again, .. } if *again > now => Some(*again),
            _ => None,
        }
    }

    /// Parks a URL until robots.txt is known, if there is room; says how many bytes that takes.
    pub fn park(&mut self, ticket: Ticket, url: &Url, has_room: bool) -> Option<u64> {
        let bytes_max = if has_room { PARKED_BYTES_MAX } else { PARKED_BYTES_MIN };
        (self.parked.bytes_left() < bytes_max).then(|| {
            self.parked.push(ticket, url.as_str());
            WaitingUrls::entry_bytes(url.as_str()) as u64
        })
    }

    /// Takes the oldest of the parked URLs.
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

    /// robots.txt cannot be had, and is asked for again at `again`: until then what it said last holds, if it may still be used
    /// when the host may be asked at all, from `may_act` on. Whether it does.
    fn use_last_good(&mut self, may_act: Instant, again: Instant, settings: &Settings) -> bool {
        let Some(good) = self.last_good.as_ref().filter(|good| good.until > may_act) else { return false };
        // However long the delay is, a page comes between two tries.
        let until = again.max(may_act + settings.robots.retry_delay).min(good.until);
        self.robots = Robots::Known { rules: Rc::clone(&good.rules), until, used: true };
        (self.way, self.attempts, self.bounces) = (None, 0, 0);
        true
    }

    /// Forgets a robots.txt that is too old. One that no page was judged by yet is kept a while longer while one waits: where a
    /// delay is longer than `robots.ttl`, nothing but robots.txt would ever be fetched otherwise.
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
        // Rules that are used past their time already get no more of it.
        self.last_good.take_if(|good| good.until <= now);
        if is_old {
            self.forget();
        }
    }
}

impl Way {
    fn has_been_at(&self, url: &Url) -> bool {
        self.target == *url || self.passed.contains(url)
    }

    /// All where it led, for the way that goes on from there.
    fn onward(self) -> Vec<Url> {
        let Way { target, mut passed, .. } = self;
        passed.push(target);
        passed
    }
}

/// How URLs end whose robots.txt could not be had for this reason.
fn ending(why: Failure) -> Failure {
    if why == Failure::ConnectRefused { Failure::RobotsUnreachable } else { why }
}

/// How long a robots.txt is not asked for again after a failure, so many `attempts` after the first. Where nobody
/// listens that is sooner, as a server that starts again is there within minutes: as after the third
/// and fourth try of a page.
pub fn robots_wait(why: Failure, attempts: u8, settings: &Settings) -> Duration {
    let usual = settings.robots.retry_delay;
    match why {
        Failure::ConnectRefused => usual.min(settings.retries.wait(RetryClass::Connect, attempts.saturating_add(2))),
        _ => usual,
    }
}

/// Whether nobody waits for so long.
fn is_too_long(crawl_delay: Duration, politeness: &Politeness) -> bool {
    politeness.crawl_delay_above == CrawlDelayAbove::Skip && crawl_delay > politeness.crawl_delay_max
}

/// How long rules that were not used yet outlast their time while URLs wait. The longest delay is a day, but hosts that share a site, an address or an
/// operator have turns as much rarer as there are of them; as long as `robots.stale_max` may be.
const UNUSED_FOR: Duration = Duration::from_secs(30 * 86_400);
/// Bytes of URLs that wait apart for an origin's robots.txt.
const PARKED_BYTES_MAX: usize = 64 * 1024;
/// The same while the frontier's memory is over its bound.
const PARKED_BYTES_MIN: usize = 4 * 1024;
