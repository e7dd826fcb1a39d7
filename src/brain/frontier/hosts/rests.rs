//! How long hosts must be left alone, to the extent that this outlives a run.
//!
//! Decides: a host whose rest is longer than the usual delay is noted for the log: after Retry-After, after failures
//! in a row, or with a Crawl-delay. In the next run no host is queried before the usual delay has passed since the
//! run began, and a noted host not before its rest is over. The log also notes how a host does, for people
//! ([`crate::trouble`]). The last request of the previous run ended before that, so every gap is kept.
//! Limits: as many hosts as their table remembers of those that failed. If there are more, the longest rests are
//! kept, and all other hosts are left alone for as long as the longest forgotten rest, up to a minute.

use std::collections::{HashMap, HashSet};

use super::host::ORIGINS_MAX;
use crate::politeness::{ClaimKey, Ledger};
use crate::trouble::HostHealth;
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_url::Url;

/// A host that needs a longer rest than others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rest {
    /// Its name; or that of an odd port with a rest of its own, as `http://name:port`.
    pub host: Box<str>,
    /// The Crawl-delay in its robots.txt; zero: none.
    pub crawl_delay: Duration,
    /// It is left alone until then; zero: no longer than others.
    pub until: Instant,
    /// How it does.
    pub health: HostHealth,
}

impl Rest {
    /// For a host about which nothing else is known.
    pub fn new(host: &str, until: Instant) -> Rest {
        Rest { host: host.into(), crawl_delay: Duration::ZERO, until, health: HostHealth::default() }
    }
}

/// The rests of hosts that appeared in an earlier run and not yet in this one.
#[derive(Debug, Default)]
pub struct Rests {
    /// When the previous run was broken off, and until when all hosts are left alone.
    of_all: Option<(Instant, Instant)>,
    hosts: HashMap<Box<str>, Instant>,
    /// By host, its odd ports with rests of their own.
    origins: HashMap<Box<str>, Vec<(Url, Instant)>>,
    /// Rests for hosts that other shards are querying now: they must rest until then.
    untold: HashMap<ClaimKey, Instant>,
    /// Hosts with a problem recorded in the log.
    troubled: HashSet<Box<str>>,
    hosts_max: usize,
}

impl Rests {
    /// No rests, and room for `hosts_max` hosts.
    pub fn new(hosts_max: usize) -> Rests {
        Rests { hosts_max, ..Rests::default() }
    }

    /// The previous run was broken off before `now`: hosts that appear from now on are left alone for their usual
    /// delay, at least `usual`.
    pub fn rest_all(&mut self, now: Instant, usual: Duration) {
        self.of_all = Some((now, now + usual));
    }

    /// This host is not queried before `until`: the last note on a host holds.
    pub fn rest(&mut self, host: &str, until: Instant) {
        if let Some(origin) = host.contains("://").then(|| Url::parse(host).ok()).flatten() {
            self.rest_origin(origin, until);
        } else if self.of_all.is_some_and(|(_, of_all)| until <= of_all) {
            self.hosts.remove(host);
        } else if let Some(known) = self.hosts.get_mut(host) {
            *known = until;
        } else {
            if self.hosts.len() >= self.hosts_max {
                self.forget_shorter();
            }
            if self.hosts.len() < self.hosts_max {
                self.hosts.insert(host.into(), until);
            }
        }
    }

    /// The shorter half makes room: many Crawl-delays must not displace a Retry-After of a day.
    fn forget_shorter(&mut self) {
        let Some((began, of_all)) = self.of_all else { return };
        let mut rests: Vec<(Instant, Box<str>)> = self.hosts.drain().map(|(host, until)| (until, host)).collect();
        // Ties are ordered by name: one seed gives one crawl.
        rests.sort_unstable();
        let kept = rests.split_off(rests.len().div_ceil(2));
        let forgotten = rests.last().map_or(of_all, |(until, _)| of_all.max(*until));
        self.of_all = Some((began, forgotten.min(of_all.max(began + FORGOTTEN_MAX))));
        self.hosts.extend(kept.into_iter().map(|(until, host)| (host, until)));
    }

    /// If there is no room for it, its host rests.
    fn rest_origin(&mut self, origin: Url, until: Instant) {
        let is_over = |until| self.of_all.is_some_and(|(_, of_all)| until <= of_all);
        if let Some(known) = self.origins.get_mut(origin.host()) {
            known.retain(|(other, at)| *other != origin && !is_over(*at));
        }
        if is_over(until) {
            return;
        }
        let has_room = self.origins.len() < self.hosts_max || self.origins.contains_key(origin.host());
        let known = has_room.then(|| self.origins.entry(origin.host().into()).or_default());
        match known.filter(|known| known.len() < ORIGINS_MAX) {
            Some(known) => known.push((origin, until)),
            None => {
                let of_host = self.hosts.get(origin.host()).copied().unwrap_or_default();
                self.rest(origin.host(), until.max(of_host));
            }
        }
    }

    /// The odd ports with rests of their own of a host that appears now, and until when they are left alone.
    pub fn take_origins(&mut self, host: &str) -> Vec<(Url, Instant)> {
        if self.origins.is_empty() { Vec::new() } else { self.origins.remove(host).unwrap_or_default() }
    }

    /// Notes whether the log records a problem with this host: the last note holds.
    pub fn note_trouble(&mut self, host: &str, has_any: bool) {
        if !has_any {
            self.troubled.remove(host);
        } else if self.troubled.len() < self.hosts_max {
            self.troubled.insert(host.into());
        }
    }

    /// Whether an earlier run met a problem at a host that appears now.
    pub fn take_trouble(&mut self, host: &str) -> bool {
        self.troubled.remove(host)
    }

    /// Lets a host of other shards rest, too. If it has a request in flight there, it rests once that has ended.
    pub fn rest_elsewhere(&mut self, ledger: &Ledger, key: ClaimKey, now: Instant, until: Instant) {
        if until > now && !ledger.rest(key, now, until) && self.untold.len() < UNTOLD_MAX {
            let known = self.untold.entry(key).or_default();
            *known = until.max(*known);
        }
    }

    /// Tries again for the hosts that had requests in flight.
    pub fn tell(&mut self, ledger: &Ledger, now: Instant) {
        self.untold.retain(|key, until| *until > now && !ledger.rest(*key, now, *until));
    }

    /// The rests that have not ended.
    pub fn all(&self, now: Instant) -> impl Iterator<Item = (&str, Instant)> {
        let origins = self.origins.values().flatten().map(|(origin, until)| (origin.as_str(), *until));
        let hosts = self.hosts.iter().map(|(host, until)| (&**host, *until));
        hosts.chain(origins).filter(move |(_, until)| *until > now)
    }

    /// The instant before which a host that appears now, with usual delay `own`, is not queried.
    pub fn take(&mut self, host: &str, own: Duration) -> Instant {
        let of_all = self.of_all.map(|(broken_off, until)| until.max(broken_off + own)).unwrap_or_default();
        self.hosts.remove(host).unwrap_or_default().max(of_all)
    }
}

/// Rests not yet sent to other shards: this many hosts may have requests in flight when a run begins.
const UNTOLD_MAX: usize = 4_096;
/// The longest rest that forgotten hosts impose on all hosts.
const FORGOTTEN_MAX: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    /// A Crawl-delay is short, and there may be very many.
    #[test]
    fn a_long_rest_is_kept_however_many_short_ones_there_are() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut rests = Rests::new(100);
        rests.rest_all(at(0), Duration::from_secs(1));
        for number in 0..1_000 {
            rests.rest(&format!("{number}.test"), at(if number % 100 == 50 { 86_400 } else { 10 }));
        }
        for number in 0..1_000 {
            let until = rests.take(&format!("{number}.test"), Duration::ZERO);
            assert_eq!(until, at(if number % 100 == 50 { 86_400 } else { 10 }), "{number}");
        }
        // If all rests are long, as many as fit are kept, and no other host waits for a day.
        let mut rests = Rests::new(100);
        rests.rest_all(at(0), Duration::from_secs(1));
        (0..200).for_each(|number| rests.rest(&format!("{number}.test"), at(86_400)));
        let kept = (0..200).map(|number| rests.take(&format!("{number}.test"), Duration::ZERO));
        let kept: Vec<Instant> = kept.collect();
        assert!(kept.iter().filter(|until| **until == at(86_400)).count() >= 50);
        assert!(kept.iter().all(|until| [at(60), at(86_400)].contains(until)));
    }

    #[test]
    fn the_last_word_holds_and_the_usual_delay_for_all() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut rests = Rests::new(2);
        rests.rest_all(at(0), Duration::from_secs(1));
        for (host, seconds) in
            [("a.test", 10), ("b.test", 20), ("a.test", 30), ("b.test", 1), ("c.test", 40), ("d.test", 50)]
        {
            rests.rest(host, at(seconds));
        }
        let taken = ["a.test", "b.test", "c.test", "d.test", "a.test"].map(|host| rests.take(host, Duration::ZERO));
        assert_eq!(taken, [at(30), at(30), at(40), at(50), at(30)], "there was no room for the shortest");
        assert_eq!(rests.take("e.test", Duration::from_secs(37)), at(37), "its own delay is longer");
        // Each odd port has its own rest, as long as there is room.
        let origin = |port| format!("http://a.test:{port}/");
        (1_000..1_000 + ORIGINS_MAX).for_each(|port| rests.rest(&origin(port), at(60)));
        (1_000..1_004).for_each(|port| rests.rest(&origin(port), at(1)));
        (2_000..2_004).for_each(|port| rests.rest(&origin(port), at(70)));
        assert_eq!(rests.take("a.test", Duration::ZERO), at(30));
        rests.rest(&origin(3_000), at(80));
        let kept = rests.take_origins("a.test");
        assert_eq!((kept.len(), kept.iter().filter(|(_, until)| *until == at(70)).count()), (ORIGINS_MAX, 4));
        assert_eq!(rests.take("a.test", Duration::ZERO), at(80), "there was no room for that port");
        assert_eq!(Rests::new(2).take("e.test", Duration::from_secs(7)), Instant::ZERO, "there was no run before");
    }
}
