//! A host's knowledge of its own addresses, and when its name must be looked up.
//!
//! Decides: a name is looked up a little before its host is due, so that a page waits only for its delay. A failed
//! lookup is retried, each time after a longer wait (`dns.retry`), and then the host is given up; while no name server
//! answers, old addresses are used for a while ([`super::addresses`]). A host with an old address continues with it if
//! the answer takes longer than [`REFRESH_PATIENCE`], or the name servers are busy with other names (RFC 8767 section
//! 5).
//! Invariants: an address is used no longer than its answer says, except for that grace.

use std::net::IpAddr;

use super::addresses::{Addresses, NextAddress};
use crate::frontier::settings::Settings;
use crate::outcome::Outcome;
use crate::politeness::{GivenUp, RetryClass};
use crate::scope::BlockList;
use ringcrawl_base::Failure;
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_config::Group;
use ringcrawl_url::SiteKey;

/// The addresses of a host.
#[derive(Debug)]
pub struct Resolution {
    dns: Dns,
    attempts: u8,
    /// No address of the first family connected: from then on both are looked up.
    wants_both_families: bool,
    /// The last address to which no connection succeeded.
    dead: Option<IpAddr>,
    /// The operator whose machines its name is an alias of.
    operator: Option<Group>,
}

/// A name to look up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LookupRequest {
    /// Its site.
    pub site: SiteKey,
    /// The site that linked to it first; `None` if an expired answer is known.
    pub linker: Option<SiteKey>,
}

#[derive(Debug)]
enum Dns {
    /// Not looked up yet, or too long ago.
    Unknown,
    /// The lookup failed; it is repeated at the given instant. Holds the answer before that, too old to use: it is
    /// still known which of its addresses did not connect.
    Retry(Instant, Option<Addresses>),
    /// Looked up, and answered.
    Known(Addresses),
}

impl Resolution {
    /// For a host that was never looked up; a name that is an address needs no lookup.
    pub fn new(name: &str) -> Resolution {
        let dns = literal_address(name).map_or(Dns::Unknown, |addr| Dns::Known(Addresses::literal(addr)));
        Resolution { dns, attempts: 0, wants_both_families: false, dead: None, operator: None }
    }

    /// The address to use at `at`, and fallbacks for when it does not answer.
    pub fn addr(&self, at: Instant) -> Option<(IpAddr, Vec<IpAddr>)> {
        match &self.dns {
            Dns::Known(addrs) => addrs.current(at).map(|addr| (addr, addrs.others())),
            _ => None,
        }
    }

    /// Whether the name was answered before: then an old answer may serve.
    pub fn has_answer(&self) -> bool {
        matches!(self.dns, Dns::Known(_) | Dns::Retry(_, Some(_)))
    }

    /// Whether an expired address may still serve at `at`, at most `grace` past its time.
    pub fn may_stretch(&self, at: Instant, grace: Duration) -> bool {
        matches!(&self.dns, Dns::Known(addrs) if addrs.clone().stretch(at, grace))
    }

    /// Lets an expired address serve at `at`; returns whether one may.
    pub fn stretch(&mut self, at: Instant, grace: Duration) -> bool {
        self.addrs().is_some_and(|known| known.stretch(at, grace))
    }

    /// All known addresses.
    pub fn known(&self) -> &[IpAddr] {
        if let Dns::Known(addrs) = &self.dns { addrs.all() } else { &[] }
    }

    /// An address to query, and fallbacks for when it does not answer, without those that are blocked.
    pub fn unblocked(&self, blocks: &BlockList, addr: IpAddr, others: Vec<IpAddr>) -> Option<(IpAddr, Vec<IpAddr>)> {
        if !blocks.has_addresses() {
            return Some((addr, others));
        }
        let mut all = std::iter::once(addr).chain(others).filter(|addr| !blocks.blocks_address(*addr));
        match all.next() {
            Some(addr) => Some((addr, all.collect())),
            // No fallbacks are given if one is known to work.
            None => {
                let mut known = self.known().iter().copied();
                known.find(|addr| !blocks.blocks_address(*addr)).map(|addr| (addr, Vec::new()))
            }
        }
    }

    /// The name must not be looked up again before this.
    pub fn retry_at(&self) -> Option<Instant> {
        if let Dns::Retry(at, _) = self.dns { Some(at) } else { None }
    }

    /// Failed lookups in a row.
    pub fn attempts(&self) -> u8 {
        self.attempts
    }

    /// The operator whose machines its name is an alias of, if known.
    pub fn operator(&self) -> Option<Group> {
        self.operator
    }

    /// Restores facts that were known before the host was forgotten.
    pub fn remember(&mut self, wants_both_families: bool, dead: Option<IpAddr>) {
        (self.wants_both_families, self.dead) = (wants_both_families, dead);
    }

    /// The last address to which no connection succeeded, unless it has answered since.
    pub fn dead(&self) -> Option<IpAddr> {
        self.dead
    }

    /// Whether both families must be looked up.
    pub fn wants_both_families(&self) -> bool {
        self.wants_both_families
    }

    /// When there is something to do for a request at `not_before`: then, or `lead` earlier if an address must be
    /// looked up first. It is not earlier if answers are so short-lived that they would expire again by then.
    pub fn next_turn(&self, not_before: Instant, lead: Duration) -> Instant {
        let asks_early = match &self.dns {
            Dns::Known(addrs) => addrs.current(not_before).is_none() && addrs.outlive(lead),
            Dns::Unknown | Dns::Retry(..) => true,
        };
        if asks_early { not_before - lead } else { not_before }
    }

    /// A lookup ended; the address is needed at `needed_at`. A returned value means that the host is given up.
    pub fn ended(
        &mut self,
        now: Instant,
        needed_at: Instant,
        both_families: bool,
        outcome: &Outcome,
        settings: &Settings,
    ) -> Option<GivenUp> {
        let given_up = |failure, until| Some(GivenUp { failure, until });
        match outcome {
            Outcome::Resolved { addrs, ttl, is_half, alias } if !addrs.is_empty() => {
                self.operator = alias.as_deref().and_then(|alias| settings.operators.of_aliases(alias));
                let ttl = (*ttl).max(ANSWER_HOLDS_MIN);
                let before = self.take_answer();
                let mut known = Addresses::new(addrs, settings.families, now, ttl, before.as_ref());
                if let (None, Some(dead)) = (before, self.dead) {
                    known.avoid(dead);
                }
                self.dns = Dns::Known(known.of_both(both_families && !is_half));
                self.attempts = 0;
                None
            }
            Outcome::Failed(failure)
                if failure.is_transient()
                    && self.addrs().is_some_and(|known| known.stretch(needed_at, settings.stale_max)) =>
            {
                None
            }
            Outcome::Failed(Failure::Aborted) => {
                self.dns = Dns::Retry(now + ABORTED_PAUSE, self.take_answer());
                None
            }
            Outcome::Failed(failure)
                if failure.is_transient() && self.attempts < settings.retries.max(RetryClass::Name) =>
            {
                let wait = settings.retries.wait(RetryClass::Name, self.attempts);
                self.attempts += 1;
                self.dns = Dns::Retry(now + wait, self.take_answer());
                None
            }
            Outcome::Failed(failure) => {
                self.dns = Dns::Unknown;
                given_up(*failure, now + UNANSWERED_FOR)
            }
            Outcome::NoAddress { ttl } => {
                self.dns = Dns::Unknown;
                given_up(Failure::DnsNotFound, now + (*ttl).max(ANSWER_HOLDS_MIN))
            }
            Outcome::Resolved { .. } | Outcome::Fetched(_) => given_up(Failure::DnsNotFound, now + UNANSWERED_FOR),
        }
    }

    /// Whether an address other than the requested one is in use now.
    fn is_other_in_use(&self, asked: Option<IpAddr>) -> bool {
        let Dns::Known(known) = &self.dns else { return false };
        asked.zip(known.in_use()).is_some_and(|(asked, used)| asked != used)
    }

    /// `addr` answered a request that `asked` this address first.
    pub fn answered(&mut self, addr: IpAddr, asked: Option<IpAddr>) {
        self.dead = self.dead.filter(|dead| *dead != addr);
        // An answer that was long in flight says nothing about the address in use now.
        if !self.is_other_in_use(asked)
            && let Some(known) = self.addrs()
        {
            known.answered(addr);
        }
    }

    /// A request failed that `asked` this address first: returns what is left to try if no connection succeeded.
    pub fn failed(&mut self, failure: Failure, asked: Option<IpAddr>) -> NextAddress {
        // Of several in flight, the first one changed the address: this one did not try the one in use now.
        if self.is_other_in_use(asked) {
            return if failure.is_of_connect() { NextAddress::Another } else { NextAddress::None };
        }
        if let (true, Dns::Known(known)) = (failure.is_of_connect(), &self.dns) {
            self.dead = known.in_use();
        }
        let left = match self.addrs() {
            Some(known) if failure.is_of_connect() => known.unconnected(),
            Some(known) => {
                known.failed();
                NextAddress::None
            }
            None => NextAddress::None,
        };
        self.wants_both_families |= left == NextAddress::OtherFamily;
        left
    }

    /// Earlier failures no longer count.
    pub fn forgive(&mut self) {
        self.attempts = 0;
        if let Dns::Retry(..) = self.dns {
            self.dns = Dns::Unknown;
        }
    }

    fn addrs(&mut self) -> Option<&mut Addresses> {
        match &mut self.dns {
            Dns::Known(addrs) => Some(addrs),
            _ => None,
        }
    }

    /// The last answer.
    fn take_answer(&mut self) -> Option<Addresses> {
        match std::mem::replace(&mut self.dns, Dns::Unknown) {
            Dns::Unknown => None,
            Dns::Retry(_, before) => before,
            Dns::Known(addrs) => Some(addrs),
        }
    }
}

fn literal_address(name: &str) -> Option<IpAddr> {
    let bare = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    bare.parse().ok()
}

/// How long a host waits for its name before it continues with an old address (RFC 8767 section 5, "client response
/// timer").
pub const REFRESH_PATIENCE: Duration = Duration::from_millis(1_800);
/// How long a lookup waits after it was aborted, so that others get their turns before it.
const ABORTED_PAUSE: Duration = Duration::from_secs(1);
/// An answer serves the request for which it was obtained, even if its time to live is 0.
const ANSWER_HOLDS_MIN: Duration = Duration::from_secs(1);
/// How long a host stays given up because no name server answered (RFC 2308 section 7: at most five minutes).
const UNANSWERED_FOR: Duration = Duration::from_secs(300);
