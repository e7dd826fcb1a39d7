//! The sites that were asked last, and whether they answered. Pure.
//!
//! Decides: sites are ordered by when their last request *began*. A request from ten seconds ago that times out now
//! says nothing about now, as others have begun and been answered since. Silent sites that never answered may be
//! dead: they count among those that fail, but never make an outage alone. The same holds for sites that were silent
//! when an outage began, and the next, and the one after that ([`RELAPSES_MAX`]), and answered nothing in between
//! while others did: the network is not what they wait for. After an outage that ended at once ([`FALSE_ALARM`])
//! their own answers do not help them for an hour ([`DISTRUST`]): a site that alternates between answering and
//! silence looks like an attack on the crawl.
//! A site is a [`Witness`]: hosts with one owner, or in one address block, are one here.
//! That a site answered is remembered separately, until others have answered. Otherwise one page with links to ten
//! thousand dead sites would push out every site that can prove that the network works.
//! Invariants: a site is there once; what ends late does not replace what began later.
//! Limits: it remembers twice the sites of a verdict, the answers that clear a failure, and [`RELAPSED_MAX`] sites
//! that fell silent again.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_brain::shard::{SiteEnd, SiteReply, Witness};

/// Sites, the one asked last first.
#[derive(Debug)]
pub(super) struct RecentSites {
    sites: Vec<Site>,
    /// The sites that answered last, and when those requests began, the latest first: as many as clear a failure.
    answers: Vec<(Witness, Instant)>,
    /// Owners that were silent when an outage began and have not answered since.
    relapses: BTreeMap<u64, Relapses>,
    /// The number of sites of a verdict, and how many of them fail when the network is down.
    window: usize,
    failed_min: usize,
}

#[derive(Clone, Copy, Debug)]
struct Site {
    witness: Witness,
    began: Instant,
    reply: SiteReply,
    /// When the reply was reported.
    heard: Instant,
}

/// Outages that began while an owner was silent.
#[derive(Clone, Copy, Debug, Default)]
struct Relapses {
    /// The number in a row.
    count: u8,
    /// Until then its answers change nothing.
    distrusted_until: Instant,
}

/// Sites that failed, of those asked last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SitesFailed {
    pub(super) failed: usize,
    pub(super) of: usize,
    /// When the first of them was reported.
    pub(super) since: Instant,
}

impl RecentSites {
    pub(super) fn new(window: usize, failed_min: usize) -> RecentSites {
        let failed_min = failed_min.min(window);
        RecentSites { sites: Vec::new(), answers: Vec::new(), relapses: BTreeMap::new(), window, failed_min }
    }

    /// A request ended.
    pub(super) fn note(&mut self, now: Instant, end: SiteEnd) {
        let SiteEnd { witness, began, mut reply } = end;
        match reply {
            SiteReply::Answered => {
                if self.relapses.get(&witness.owner).is_some_and(|known| known.distrusted_until <= now) {
                    self.relapses.remove(&witness.owner);
                }
                self.note_answer(witness, began);
            }
            SiteReply::FellSilent if self.has_relapsed(witness) => reply = SiteReply::Silent,
            SiteReply::FellSilent | SiteReply::Silent => {}
        }
        let is_one = |known: &Site| known.witness.is_one_with(witness);
        if !self.sites.iter().any(|known| is_one(known) && known.began > began) {
            self.sites.retain(|known| !is_one(known));
            self.sites.push(Site { witness, began, reply, heard: now });
        }
        self.sites.sort_by_key(|site| Reverse(site.began));
        self.sites.truncate(2 * self.window);
    }

    fn note_answer(&mut self, witness: Witness, began: Instant) {
        let is_one = |known: &Witness| known.is_one_with(witness);
        if !self.answers.iter().any(|(known, latest)| is_one(known) && *latest > began) {
            self.answers.retain(|(known, _)| !is_one(known));
            self.answers.push((witness, began));
        }
        self.answers.sort_by_key(|(_, began)| Reverse(*began));
        self.answers.truncate(self.answers_max() + 1);
    }

    /// The verdict that the network is down.
    pub(super) fn failed(&self) -> Option<SitesFailed> {
        let window = self.sites.get(..self.window).unwrap_or(&self.sites);
        let failed = window.iter().filter(|site| site.reply != SiteReply::Answered);
        let count = failed.clone().count();
        let fell_silent = window.iter().filter(|site| site.reply == SiteReply::FellSilent).count();
        let since = failed.map(|site| site.heard).min()?;
        let is_down = count >= self.failed_min && 2 * fell_silent >= self.failed_min;
        is_down.then_some(SitesFailed { failed: count, of: window.len(), since })
    }

    /// Owners of those that fell silent, of requests that began since `since`.
    pub(super) fn fell_silent(&self, since: Instant) -> impl Iterator<Item = u64> {
        let fell_silent = move |site: &&Site| site.reply == SiteReply::FellSilent && site.began >= since;
        self.sites.iter().filter(fell_silent).map(|site| site.witness.owner)
    }

    /// Whether too few sites live for a verdict, of those asked since `since`.
    pub(super) fn are_few(&self, since: Instant) -> bool {
        let living = |site: &&Site| site.reply != SiteReply::Silent && site.began >= since;
        self.sites.iter().filter(living).count() < self.failed_min.max(self.answers_max() + 1)
    }

    /// The latest instant such that requests to `sites` sites that began at or after it were answered; `sites` is at
    /// most one more than answer in an outage.
    pub(super) fn answered_by(&self, sites: usize) -> Instant {
        self.answers.get(sites.saturating_sub(1)).map(|(_, began)| *began).unwrap_or_default()
    }

    /// This many of a verdict's sites may answer although the network is down.
    pub(super) fn answers_max(&self) -> usize {
        self.window - self.failed_min
    }

    /// An outage ended: a site that failed in it is not known to be silent. `lasted`: how long it was an outage of
    /// sites. The others have answered, and a site that fails repeatedly does so by itself.
    pub(super) fn forgive(&mut self, now: Instant, lasted: Option<Duration>) {
        for site in self.sites.iter().filter(|site| lasted.is_some() && site.reply == SiteReply::FellSilent) {
            let relapses = self.relapses.entry(site.witness.owner).or_default();
            relapses.count = relapses.count.saturating_add(1);
            if lasted.is_some_and(|lasted| lasted <= FALSE_ALARM) {
                relapses.distrusted_until = now + DISTRUST;
            }
        }
        while self.relapses.len() > RELAPSED_MAX {
            self.relapses.pop_first();
        }
        self.sites.retain(|site| site.reply == SiteReply::Answered);
    }

    fn has_relapsed(&self, witness: Witness) -> bool {
        self.relapses.get(&witness.owner).is_some_and(|relapses| relapses.count >= RELAPSES_MAX)
    }
}

/// If a site was silent at the beginning of this many outages in a row, its silence is its own.
const RELAPSES_MAX: u8 = 3;
/// An outage that ends this soon was most likely none: another site answered the first probes.
const FALSE_ALARM: Duration = Duration::from_secs(10);
/// For this long an owner that made such an alarm is not trusted for answering in between.
const DISTRUST: Duration = Duration::from_secs(3_600);
/// Owners with counted relapses; this takes tens of kilobytes.
const RELAPSED_MAX: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn end(site: u64, began: u64, reply: SiteReply) -> SiteEnd {
        SiteEnd { witness: Witness { owner: site, block: 0 }, began: at(began), reply }
    }

    #[test]
    fn who_lived_and_fails_at_once_is_an_outage() {
        let mut sites = RecentSites::new(10, 8);
        (0..10).for_each(|site| sites.note(at(100), end(site, 100 + site, SiteReply::Answered)));
        assert_eq!((sites.failed(), sites.answered_by(1), sites.answered_by(3)), (None, at(109), at(107)));
        for site in 0..7 {
            sites.note(at(300 + site), end(site, 200 + site, SiteReply::FellSilent));
        }
        assert_eq!(sites.failed(), None);
        sites.note(at(308), end(7, 208, SiteReply::FellSilent));
        assert_eq!(sites.failed(), Some(SitesFailed { failed: 8, of: 10, since: at(300) }));
        // Two more have answered since: now it is eight of the last twelve.
        (20..23).for_each(|site| sites.note(at(400), end(site, 300, SiteReply::Answered)));
        assert_eq!((sites.failed(), sites.answered_by(3)), (None, at(300)));
        sites.forgive(at(500), Some(Duration::ZERO));
        assert_eq!(sites.sites.len(), 5);
    }

    /// A thousand dead hosts that time out together, among living ones that finished long before.
    #[test]
    fn the_dead_among_the_living_are_none() {
        let mut sites = RecentSites::new(10, 8);
        for site in 0..400 {
            sites.note(at(50), end(site, site, if site % 2 == 0 { SiteReply::Answered } else { SiteReply::Silent }));
        }
        assert_eq!(sites.failed(), None);
        // They had answered once, and are dead now, but those asked after them were answered.
        (0..400).filter(|site| site % 2 == 1).for_each(|site| {
            sites.note(at(10_000), end(1_000 + site, site, SiteReply::FellSilent));
            assert_eq!(sites.failed(), None);
        });
        // Only dead ones are left.
        for site in 2_000..2_100 {
            sites.note(at(20_000), end(site, 12_000 + site, SiteReply::Silent));
            assert_eq!(sites.failed(), None, "{site} never answered");
        }
    }

    /// A page of links to ten thousand nonexistent sites: a site that answered in the meantime still counts.
    #[test]
    fn dead_sites_do_not_push_out_who_was_answered() {
        let mut sites = RecentSites::new(10, 8);
        for moment in 0..1_000 {
            (0..100)
                .for_each(|dead| sites.note(at(moment), end(1_000 + 100 * moment + dead, moment, SiteReply::Silent)));
            if moment % 100 == 0 {
                (0..3).for_each(|site| sites.note(at(moment), end(site, moment, SiteReply::Answered)));
            }
        }
        assert_eq!((sites.failed(), sites.answered_by(1), sites.answered_by(3)), (None, at(900), at(900)));
        assert_eq!((sites.answers.len(), sites.sites.len()), (3, 20));
    }

    #[test]
    fn what_ends_late_is_old() {
        let mut sites = RecentSites::new(10, 8);
        sites.note(at(100), end(1, 90, SiteReply::Answered));
        sites.note(at(200), end(1, 10, SiteReply::FellSilent));
        assert_eq!(sites.sites[0].reply, SiteReply::Answered);
        assert!(sites.are_few(at(0)));
        (2..10).for_each(|site| sites.note(at(200), end(site, 150, SiteReply::FellSilent)));
        assert!(!sites.are_few(at(90)) && sites.are_few(at(151)));
        (10..200).for_each(|site| sites.note(at(300), end(site, 250, SiteReply::Silent)));
        assert_eq!(sites.sites.len(), 20);
    }

    /// Names below one suffix, addresses in one block: each owner is one witness.
    #[test]
    fn what_has_one_owner_is_one_witness() {
        let mut sites = RecentSites::new(16, 14);
        let end = |host: &str, address: &str, began, reply| SiteEnd {
            witness: Witness::new(7, host, address.parse().ok()),
            began: at(began),
            reply,
        };
        for number in 0..60 {
            sites.note(at(100), end(&format!("h{number}.duckdns.org"), "", 100, SiteReply::FellSilent));
            let address = format!("8.8.8.{number}");
            sites.note(at(100), end(&format!("h{number}.com"), &address, 101, SiteReply::FellSilent));
            let address = format!("2001:4860:0:{number:x}::1");
            sites.note(at(100), end(&format!("h{number}.org"), &address, 102, SiteReply::FellSilent));
        }
        assert_eq!((sites.sites.len(), sites.failed(), sites.are_few(at(0))), (3, None, true));
        // Private addresses say nothing about their owners.
        (0..14).for_each(|number| {
            sites.note(at(200), end(&format!("h{number}.net"), "10.0.0.1", 200, SiteReply::FellSilent));
        });
        assert!(sites.failed().is_some());
    }

    /// They answer, fall silent together, and answer again.
    #[test]
    fn who_cries_wolf_is_not_believed_for_an_hour() {
        let mut sites = RecentSites::new(10, 8);
        let mut now = 0;
        let mut alarms = |sites: &mut RecentSites, lasted: u64, rounds: usize| {
            (0..rounds)
                .filter(|_| {
                    now += 20_000;
                    (0..10).for_each(|site| sites.note(at(now), end(site, now, SiteReply::Answered)));
                    (0..8).for_each(|site| sites.note(at(now + 1), end(site, now + 1, SiteReply::FellSilent)));
                    let is_alarm = sites.failed().is_some();
                    sites.forgive(at(now + 2), is_alarm.then_some(Duration::from_secs(lasted)));
                    is_alarm
                })
                .count()
        };
        assert_eq!(alarms(&mut sites, 60, 9), 9, "a network that comes and goes");
        assert_eq!(alarms(&mut sites, 2, 9), 3);
        assert_eq!(alarms(&mut sites, 2, 180), 3, "after an hour once more");
    }
}
