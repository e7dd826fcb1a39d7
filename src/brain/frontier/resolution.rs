//! What one host knows of its own addresses, and when its name must be asked for.
//!
//! Decides: a name is asked for a little before its host is due, so that a page waits for its delay alone. A lookup that
//! failed is tried again, each time after twice the wait, and then the host is given up; while no name server answers,
//! old addresses are used for a while ([`super::addresses`]). A host that has one goes on with it where the answer takes longer than
//! [`REFRESH_PATIENCE`], or the name servers are busy with other names (RFC 8767 section 5).
//! Invariants: an address is used no longer than its answer says, but for that grace.

use std::net::IpAddr;

use super::Settings;
use super::addresses::{Addresses, NextAddress};
use crate::outcome::Outcome;
use crate::politeness::{GivenUp, RetryClass};
use ringcrawl_base::Failure;
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_config::Group;

/// The addresses of a host.
#[derive(Debug)]
pub struct Resolution {
    dns: Dns,
    attempts: u8,
    /// No address of the first family connected: from then on both are asked for.
    wants_both_families: bool,
    /// The address that no connection came about to last.
    dead: Option<IpAddr>,
    /// Whose machines its name is an alias of.
    operator: Option<Group>,
}

#[derive(Debug)]
enum Dns {
    /// Not asked yet, or too long ago.
    Unknown,
    /// Asked in vain; again at the instant given. With the answer before that, too old to be used: which of its
    /// addresses did not connect is still known.
    Retry(Instant, Option<Addresses>),
    /// Asked, and answered.
    Known(Addresses),
}

impl Resolution {
    /// Of a host that was never asked for; a name that is an address needs no lookup.
    pub fn new(name: &str) -> Resolution {
        let dns = literal_address(name).map_or(Dns::Unknown, |addr| Dns::Known(Addresses::literal(addr)));
        Resolution { dns, attempts: 0, wants_both_families: false, dead: None, operator: None }
    }

    /// The address to ask at `at`, and others for when it does not answer.
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

    /// Whether an address that is too old may serve at `at` all the same, for `grace` past its time at most.
    pub fn may_stretch(&self, at: Instant, grace: Duration) -> bool {
        matches!(&self.dns, Dns::Known(addrs) if addrs.clone().stretch(at, grace))
    }

    /// Lets an address serve at `at` that is too old; whether one may.
    pub fn stretch(&mut self, at: Instant, grace: Duration) -> bool {
        self.addrs().is_some_and(|known| known.stretch(at, grace))
    }

    /// All addresses that are known.
    pub fn known(&self) -> &[IpAddr] {
        if let Dns::Known(addrs) = &self.dns { addrs.all() } else { &[] }
    }

    /// Not before this is the name to be asked for again.
    pub fn retry_at(&self) -> Option<Instant> {
        if let Dns::Retry(at, _) = self.dns { Some(at) } else { None }
    }

    /// Lookups in a row that came to nothing.
    pub fn attempts(&self) -> u8 {
        self.attempts
    }

    /// Whose machines its name is an alias of, if that is known.
    pub fn operator(&self) -> Option<Group> {
        self.operator
    }

    /// As it was known of the host before it was forgotten.
    pub fn remember(&mut self, wants_both_families: bool, dead: Option<IpAddr>) {
        (self.wants_both_families, self.dead) = (wants_both_families, dead);
    }

    /// The address that no connection came about to last, unless it has answered since.
    pub fn dead(&self) -> Option<IpAddr> {
        self.dead
    }

    /// Whether both families are to be asked for.
    pub fn wants_both_families(&self) -> bool {
        self.wants_both_families
    }

    /// When there is something to do for a request at `not_before`: then, or `lead` earlier where an address must be
    /// asked for first. Not so where names live so short that the answer would be too old again.
    pub fn next_turn(&self, not_before: Instant, lead: Duration) -> Instant {
        let asks_early = match &self.dns {
            Dns::Known(addrs) => addrs.current(not_before).is_none() && addrs.outlive(lead),
            Dns::Unknown | Dns::Retry(..) => true,
        };
        if asks_early { not_before - lead } else { not_before }
    }

    /// A lookup ended; the address is needed at `needed_at`. The host is given up where something is returned.
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

    /// Whether another address than the one that was asked is in use now.
    fn is_other_in_use(&self, asked: Option<IpAddr>) -> bool {
        let Dns::Known(known) = &self.dns else { return false };
        asked.zip(known.in_use()).is_some_and(|(asked, used)| asked != used)
    }

    /// `addr` answered a request that `asked` this address first.
    pub fn answered(&mut self, addr: IpAddr, asked: Option<IpAddr>) {
        self.dead = self.dead.filter(|dead| *dead != addr);
        // An answer that was long on its way says nothing of the address in use now.
        if !self.is_other_in_use(asked)
            && let Some(known) = self.addrs()
        {
            known.answered(addr);
        }
    }

    /// A request failed that `asked` this address first: what is left to try, where no connection came about.
    pub fn failed(&mut self, failure: Failure, asked: Option<IpAddr>) -> NextAddress {
        // Of several under way the first one had the address changed: the one in use now was not tried by this one.
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

    /// Earlier failures do not count any more.
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

    /// What was answered last.
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

/// How long a host waits for its name before it goes on with an old address (RFC 8767 section 5, "client response timer").
pub const REFRESH_PATIENCE: Duration = Duration::from_millis(1_800);
/// How long a lookup waits after it was aborted, so that others have their turns before it.
const ABORTED_PAUSE: Duration = Duration::from_secs(1);
/// An answer serves the request that it was asked for, also when its time to live is 0.
const ANSWER_HOLDS_MIN: Duration = Duration::from_secs(1);
/// How long a host stays given up because no name server answered (RFC 2308 section 7: five minutes at most).
const UNANSWERED_FOR: Duration = Duration::from_secs(300);
