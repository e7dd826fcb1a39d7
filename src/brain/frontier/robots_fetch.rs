//! Where a fetched robots.txt leads.
//!
//! Decides: redirects are followed, also to other hosts and sites; the rules at the end hold for the origin that was
//! queried first, whatever their path (RFC 9309 section 2.3.1.2). Each hop belongs to the host of its URL, which
//! fetches it under its own delays and turns: an origin only requests it ([`RobotsFiles`]) and waits. More than
//! `robots.redirects_max` hops count as no robots.txt. Hops that loop are restarted once; after that robots.txt is
//! unavailable. An unavailable hop is retried, each as often as an origin's own robots.txt.
//! Invariants: only the shard that owns a host queries it; unknown rules forbid.
//! Limits: [`HOST_FILES_MAX`] files wait for one host. An asker that finds no slot, or loses it to another, asks again
//! after [`ASK_AGAIN`]; that does not count as an attempt.
//!
//! [`RobotsFiles`]: super::robots::RobotsFiles

use super::Frontier;
use super::hosts::RulesStep;
use super::robots::{ASK_AGAIN, AskOutcome, Asker, Finding, RobotsAnswer, RobotsRequest, finding_of};
use crate::job::{FetchJob, HostId};
use crate::outcome::Outcome;
use ringcrawl_base::time::Instant;
use ringcrawl_url::{SiteKey, Url};

impl Frontier {
    /// Another shard requests the content of a file on one of our hosts.
    pub fn robots_requested(&mut self, now: Instant, from: u16, request: &RobotsRequest) {
        if self.settings.partition.home_of(request.url.host()) != self.settings.shard {
            return;
        }
        if let AskOutcome::Known(finding) = self.ask(now, Asker::Shard(from), &request.url) {
            self.robots.tell(from, &request.url, finding);
        }
    }

    /// Another shard answers. An answer is ignored if no asker waits for it or no shard was queried for it.
    pub fn robots_answered(&mut self, now: Instant, answer: RobotsAnswer) {
        if !self.robots.is_requested(&answer.url) {
            return;
        }
        let holds_max = self.settings.robots.ttl.max(self.settings.politeness.retry_after_max);
        let until = now + answer.holds.min(holds_max);
        let result = answer.result.map(|rules| self.robots.rules.keep(rules));
        self.file_came(now, &answer.url, (result, until));
        self.robots.trim(|holder, excess| self.hosts.drop_rules(holder, excess));
    }

    /// A robots.txt was fetched: the host's own, or one that other origins were redirected to.
    pub(super) fn robots_fetched(&mut self, now: Instant, job: &FetchJob, outcome: &Outcome) {
        let host = &mut self.hosts[job.host];
        let may_act = now.max(host.pace.not_before());
        let finding = finding_of([now, may_act], outcome, &mut self.robots.rules, &self.settings);
        host.robots_wanted.retain(|url| *url != job.url);
        host.file_came(&job.url);
        let name = host.name.clone();
        let own = host.origins.iter().position(|origin| origin.robots_url(&name).as_ref() == Some(&job.url));
        // A host that is known only for its failures has no askers for its rules.
        let own = own.filter(|index| host.origins[*index].wants_own(now) && host.waits_for_rules(*index));
        // Before it learns: a redirect chain that loops discards what these files said.
        match own {
            // Another file may have displaced it among the pending ones: the askers ask again.
            None if !self.robots.holds(&job.url) => {
                self.robots.keep(&job.url, finding.clone());
            }
            _ => self.file_came(now, &job.url, finding.clone()),
        }
        if let Some(index) = own {
            self.learn(now, job.host, index, finding);
        }
    }

    /// Passes the content of a file to all askers, and keeps it for later ones.
    pub(super) fn file_came(&mut self, now: Instant, url: &Url, finding: Finding) {
        for (id, index) in self.robots.came(url, &finding) {
            // It may have been given up meanwhile and requested again by itself, or forgotten.
            let origin = self.hosts.get_mut(id).and_then(|host| host.origins.get(usize::from(index)));
            if origin.is_some_and(|origin| origin.waits_for(url)) {
                self.learn(now, id, usize::from(index), finding.clone());
            }
        }
    }

    /// The content of the file in which an origin currently looks for its rules: follows redirects as far as they are
    /// known.
    pub(super) fn learn(&mut self, now: Instant, id: HostId, index: usize, finding: Finding) {
        let mut finding = finding;
        loop {
            let allow_all = self.robots.rules.allow_all();
            let host = &mut self.hosts[id];
            let may_act = now.max(host.pace.not_before());
            let own = host.origins[index].robots_url(&host.name);
            let origin = &mut host.origins[index];
            match origin.learn(now, may_act, finding, own.as_ref(), &allow_all, &self.settings) {
                RulesStep::Settled => break,
                RulesStep::Again(files) => {
                    files.iter().chain(&own).for_each(|file| self.robots.forget(file));
                    break;
                }
                // A host's files for other origins do without rules that are redirected elsewhere. If ringcrawl
                // requested those rules, two hosts whose robots.txt redirect to each other's file would request each
                // other's without end.
                RulesStep::Ask(_) if !host.has_url_for(index) => {
                    host.origins[index].wait(now, false);
                    break;
                }
                RulesStep::Ask(target) => match self.ask(now, Asker::Origin(id, index as u8), &target) {
                    AskOutcome::Known(known) => finding = known,
                    asked => return self.wait_for_file(now, id, index, &asked),
                },
            }
        }
        let host = &mut self.hosts[id];
        let politeness = &self.settings.politeness;
        host.obey_crawl_delay(politeness);
        if let Some(own) = host.origins[index].robots_url(&host.name) {
            host.obey_own_delay(now, &own, politeness);
        }
        let longest = host.longest_crawl_delay(politeness);
        if std::mem::replace(&mut host.vitals.noted_crawl_delay, longest) != longest {
            self.notes.note_rest(now, host, &self.settings);
        }
        self.wake_host(now, id);
        if let Some(rules) = self.hosts[id].origins.get(index).and_then(|origin| origin.rules()) {
            self.robots.rules.note(rules, (id, index as u8), |holder| self.hosts.holds_rules(holder));
        }
        self.notes.note_way(now, (id, &mut self.hosts[id]), index, &self.settings);
    }

    /// A host has something to do that it had not.
    fn wake_host(&mut self, now: Instant, id: HostId) {
        let host = &self.hosts[id];
        if host.state().may_be_woken() {
            let at = host.pace.not_before();
            self.schedule(id, now, at);
        }
    }

    /// An origin has waited long for the redirect target, or its next attempt is due.
    pub(super) fn ask_again(&mut self, now: Instant, id: HostId, index: usize) {
        let origin = &mut self.hosts[id].origins[index];
        let Some((target, is_noted)) = origin.asks_for() else { return origin.forget() };
        if is_noted && self.robots.remind(now, &target) {
            return self.hosts[id].origins[index].wait(now + ASK_AGAIN, true);
        }
        match self.ask(now, Asker::Origin(id, index as u8), &target) {
            AskOutcome::Known(finding) => self.learn(now, id, index, finding),
            asked => self.wait_for_file(now, id, index, &asked),
        }
    }

    fn wait_for_file(&mut self, now: Instant, id: HostId, index: usize, asked: &AskOutcome) {
        // Admitting another host may have evicted this one if it had nothing to do.
        let origin = self.hosts.get_mut(id).and_then(|host| host.origins.get_mut(index));
        if let Some(origin) = origin {
            origin.wait(now + ASK_AGAIN, !matches!(asked, AskOutcome::Full));
        }
    }

    /// Requests a file that an origin or another shard was redirected to.
    fn ask(&mut self, now: Instant, asker: Asker, url: &Url) -> AskOutcome {
        let owner = self.settings.partition.home_of(url.host());
        let is_ours = owner == self.settings.shard;
        if let Some(finding) = is_ours.then(|| self.hosts.known_file(now, url)).flatten() {
            return AskOutcome::Known(finding);
        }
        let asking_site = match asker {
            Asker::Origin(id, _) => self.hosts.get_mut(id).map(|host| host.site),
            Asker::Shard(_) => None,
        };
        let asked = self.robots.ask(now, asker, asking_site, url);
        let AskOutcome::New { displaced } = &asked else { return asked };
        if let Some(displaced) = displaced
            && let Some(id) = self.hosts.find(displaced.host())
        {
            self.hosts[id].robots_wanted.retain(|wanted| *wanted != **displaced);
        }
        if !is_ours {
            self.robots.request(now, owner, url);
            return asked;
        }
        let site = SiteKey::of_host(self.settings.rng_seed, url.host());
        // The site whose robots.txt leads there is charged for the name lookup.
        let id = self.hosts.admit_beyond_bound(now, url.host(), site, asking_site.unwrap_or_default());
        let Some(id) = id.filter(|id| self.hosts[*id].robots_wanted.len() < HOST_FILES_MAX) else {
            self.robots.withdraw(url);
            return AskOutcome::Full;
        };
        self.hosts[id].robots_wanted.push(url.clone());
        self.wake_host(now, id);
        asked
    }
}

/// Files that one host fetches for others at once.
const HOST_FILES_MAX: usize = 16;
