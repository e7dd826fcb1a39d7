//! One lookup: its families, its tries, and the servers' answers so far.
//!
//! Decides: which server gets the next query for which family, how long we wait for it, and when the answers suffice.
//! A server that does not answer a query with EDNS gets it again without (RFC 6891 section 6.2.2 and 7). This happens
//! at once if it reports that it did not understand, or an error while nothing speaks for EDNS ([`Servers`]); after
//! the others if it is silent.
//! NXDOMAIN applies to all families (RFC 2308 section 2.1), but some servers return it for AAAA records alone (RFC
//! 4074 section 4.2). It counts only if the answer for A records agrees. Nor does any other misbehaviour of that list
//! hide an A record: silence, SERVFAIL, NOTIMP, nonsense.
//! Invariants: at most [`TRIES`] silent queries a family, plus a first one with EDNS at each server that may not take
//! it. A server that answered with an error is not queried again for the family, except that once. Time spent waiting
//! is taken off `dns.timeout`, over both families.

use std::net::IpAddr;

use super::{PROBE, Servers, TRIES};
use ringcrawl_base::Failure;
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_config::{Dns, Families};

/// A family of addresses, and so a type of record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Family {
    /// A records.
    V4,
    /// AAAA records.
    V6,
}

/// One query to one name server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DnsQuery {
    /// The lookup that it belongs to.
    pub lookup: u64,
    /// The server, by its place in the configuration.
    pub server: usize,
    /// The complete name, without the dot at its end.
    pub name: String,
    /// The wanted family.
    pub family: Family,
    /// Whether it has an OPT record (RFC 6891).
    pub with_edns: bool,
    /// How long to wait for the answer.
    pub wait: Duration,
}

/// The result of a query.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DnsAnswer {
    /// Addresses, their lifetime, and the aliases of the name, separated by spaces.
    Addrs(Vec<IpAddr>, Duration, Option<Box<str>>),
    /// The name has none in this family, for this long.
    None(Option<Duration>),
    /// There is no such name, for this long.
    NoName(Option<Duration>),
    /// The server reports that it cannot know, or its answer makes no sense.
    Error,
    /// The server does not understand the query: FORMERR, NOTIMP, BADVERS.
    NotUnderstood,
    /// The server does not answer this or anything: REFUSED.
    Refused,
    /// There is no route to the server, or nothing listens there.
    Unreachable,
    /// No answer came in time.
    Silent,
}

impl DnsQuery {
    /// Whether it only checks that the server answers.
    pub fn is_probe(&self) -> bool {
        self.lookup == PROBE
    }
}

impl DnsAnswer {
    /// Whether it says where the name is, or that it does not exist. A resolver without upstream servers answers
    /// SERVFAIL or REFUSED.
    pub fn tells_of_name(&self) -> bool {
        matches!(self, DnsAnswer::Addrs(..) | DnsAnswer::None(_) | DnsAnswer::NoName(_))
    }

    /// Whether the server works, whatever it answers about the name.
    pub fn is_answer(&self) -> bool {
        !matches!(self, DnsAnswer::Silent | DnsAnswer::Refused | DnsAnswer::Unreachable)
    }
}

/// The next step of a lookup.
#[derive(Debug)]
pub(super) enum NextStep {
    /// With another query.
    Query,
    /// It is done.
    Over(Result<Addresses, Failure>),
}

/// The result of a lookup.
#[derive(Debug)]
pub(super) struct Addresses {
    /// The addresses, perhaps none.
    pub addrs: Vec<IpAddr>,
    /// How long the result holds.
    pub ttl: Duration,
    /// The other family was wanted, too, but no server answered for it.
    pub is_half: bool,
    /// The aliases of the name.
    pub alias: Option<Box<str>>,
}

/// A lookup in flight.
#[derive(Debug)]
pub(super) struct Lookup {
    name: String,
    both_families: bool,
    /// Families still to be queried, the current one first.
    families: &'static [Family],
    timeout: Duration,
    /// The rest of `timeout`.
    patience: Duration,
    addrs: Vec<IpAddr>,
    alias: Option<Box<str>>,
    /// Until when they hold, and until when their absence holds.
    until: Instant,
    negative_until: Instant,
    /// Why a family is unknown, if one is.
    failure: Option<Failure>,
    /// The server that answered for the first family only without EDNS. It is queried the same way for the other, for
    /// which little time is left.
    plain_server: Option<usize>,
    question: Question,
}

/// Whether a server was silent. A server that drops a query with EDNS and refuses it without treats them differently.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Silence {
    Yes,
    No,
}

/// The servers' answers for the current family.
#[derive(Debug)]
struct Question {
    /// How many queries each server got.
    asked: Vec<u32>,
    erred: Vec<bool>,
    /// Servers that failed a query with EDNS, and whether by silence.
    plain: Vec<Option<Silence>>,
    tries: u32,
    failure: Failure,
    /// The query in flight: the server, when it was sent, and whether with EDNS.
    sent: Option<(usize, Instant, bool)>,
}

impl Question {
    fn new(servers: usize) -> Question {
        Question {
            asked: vec![0; servers],
            erred: vec![false; servers],
            plain: vec![None; servers],
            tries: 0,
            failure: Failure::DnsTimeout,
            sent: None,
        }
    }

    /// A query failed with this answer.
    fn failed(&mut self, answer: &DnsAnswer) {
        self.tries += u32::from(*answer == DnsAnswer::Silent);
        self.failure = match answer {
            DnsAnswer::Silent | DnsAnswer::Unreachable => Failure::DnsTimeout,
            _ => Failure::DnsFailed,
        };
    }
}

impl Lookup {
    pub(super) fn new(name: String, both_families: bool, settings: &Dns, servers: usize) -> Lookup {
        Lookup {
            name,
            both_families,
            families: match settings.families {
                Families::Ipv4First => &[Family::V4, Family::V6],
                Families::Ipv6First => &[Family::V6, Family::V4],
                Families::Ipv4Only => &[Family::V4],
                Families::Ipv6Only => &[Family::V6],
            },
            timeout: settings.timeout,
            patience: settings.timeout,
            addrs: Vec::new(),
            alias: None,
            until: Instant::NEVER,
            negative_until: Instant::NEVER,
            failure: None,
            plain_server: None,
            question: Question::new(servers),
        }
    }

    /// The name that is looked up.
    pub(super) fn name(&self) -> &String {
        &self.name
    }

    /// The next query, sent at `now`.
    pub(super) fn query(&mut self, now: Instant, lookup: u64, servers: &mut Servers) -> Option<DnsQuery> {
        let family = *self.families.first()?;
        let question = &mut self.question;
        // A silent server gets another query only when all others got as many.
        let left = question.asked.iter().zip(&question.erred).filter(|(_, erred)| !**erred);
        let least = left.map(|(asked, _)| *asked).min()?;
        let server = servers.pick(now, |place| question.erred[place] || question.asked[place] > least)?;
        question.asked[server] += 1;
        let is_plain = question.plain[server].is_some() || self.plain_server == Some(server);
        let with_edns = !is_plain && servers.takes_edns(server, now);
        question.sent = Some((server, now, with_edns));
        let wait = (self.timeout / (1 << (TRIES - question.tries))).min(self.patience);
        Some(DnsQuery { lookup, server, name: self.name.clone(), family, with_edns, wait })
    }

    /// The query in flight came back.
    pub(super) fn answered(&mut self, now: Instant, answer: DnsAnswer, servers: &mut Servers) -> NextStep {
        let question = &mut self.question;
        let Some((server, sent, with_edns)) = question.sent.take() else {
            panic!("an answer to a query that was not sent")
        };
        self.patience = self.patience.saturating_sub(now.since(sent));
        if answer.tells_of_name() {
            servers.answered(server, with_edns);
            if question.plain[server].is_some() {
                servers.answered_plain_only(server, now);
                self.plain_server = Some(server);
            }
        } else if with_edns && answer != DnsAnswer::Unreachable {
            question.plain[server] = Some(if answer == DnsAnswer::Silent { Silence::Yes } else { Silence::No });
            let may_dislike = servers.may_dislike_edns(server);
            if answer == DnsAnswer::Silent && may_dislike {
                // The query without EDNS comes after the others, and counts as the try: otherwise dead servers would
                // use up the tries of a live one.
                servers.failed(server, now);
                question.failure = Failure::DnsTimeout;
                return self.next_query(now);
            }
            if answer == DnsAnswer::NotUnderstood || may_dislike {
                question.failed(&answer);
                question.asked[server] -= 1;
                return self.next_query(now);
            }
        } else if let Some(silence) = question.plain[server]
            && (silence == Silence::No || matches!(answer, DnsAnswer::Silent | DnsAnswer::Unreachable))
        {
            servers.failed_both_ways(server, matches!(answer, DnsAnswer::Silent));
        }
        match answer {
            DnsAnswer::Silent => servers.failed(server, now),
            DnsAnswer::Unreachable | DnsAnswer::Refused => {
                servers.failed(server, now);
                question.erred[server] = true;
            }
            DnsAnswer::Error | DnsAnswer::NotUnderstood => question.erred[server] = true,
            DnsAnswer::Addrs(addrs, ttl, alias) => {
                self.alias = alias.or(self.alias.take());
                self.addrs.extend(addrs.into_iter().take(ADDRS_MAX));
                self.until = self.until.min(now + ttl);
                return if self.both_families { self.next_family(now) } else { self.over(now) };
            }
            DnsAnswer::None(ttl) => {
                self.negative_until = self.negative_until.min(now + ttl.unwrap_or_default());
                return self.next_family(now);
            }
            DnsAnswer::NoName(ttl) => {
                self.negative_until = self.negative_until.min(now + ttl.unwrap_or_default());
                if self.families.first() == Some(&Family::V6) {
                    return self.next_family(now);
                }
                self.failure = None;
                return self.over(now);
            }
        }
        question.failed(&answer);
        self.next_query(now)
    }

    /// A query failed: another one follows while tries, time and servers are left.
    fn next_query(&mut self, now: Instant) -> NextStep {
        let question = &self.question;
        // A server that drops only AAAA queries leaves time for the other family (RFC 4074 section 4.1).
        let tries = if matches!(self.families, [Family::V6, Family::V4]) { TRIES - 1 } else { TRIES };
        if question.tries < tries && !self.patience.is_zero() && question.erred.contains(&false) {
            return NextStep::Query;
        }
        // Servers that fail for one family may answer for the other.
        self.failure = self.failure.or(Some(question.failure));
        self.next_family(now)
    }

    fn next_family(&mut self, now: Instant) -> NextStep {
        self.families = self.families.get(1..).unwrap_or_default();
        if self.families.is_empty() {
            return self.over(now);
        }
        self.question = Question::new(self.question.asked.len());
        if !self.patience.is_zero() {
            return NextStep::Query;
        }
        self.failure = self.failure.or(Some(self.question.failure));
        self.over(now)
    }

    /// An answer ages while the other family is queried.
    fn over(&mut self, now: Instant) -> NextStep {
        // One known family is enough to continue. If both were wanted, the result holds only for a while: the known
        // family may be the one that does not connect.
        let is_half = self.both_families && self.failure.is_some() && !self.addrs.is_empty();
        let until = match (self.addrs.is_empty(), self.failure) {
            (true, Some(failure)) => return NextStep::Over(Err(failure)),
            (true, None) => self.negative_until,
            (false, _) if is_half => self.until.min(now + HALF_HOLDS_MAX),
            (false, _) => self.until,
        };
        let addrs = std::mem::take(&mut self.addrs);
        NextStep::Over(Ok(Addresses { addrs, ttl: until.since(now), is_half, alias: self.alias.take() }))
    }
}

/// How long the addresses of one family hold when the servers failed for the other.
const HALF_HOLDS_MAX: Duration = Duration::from_secs(30);

/// Addresses taken from one answer; more are useless.
pub const ADDRS_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_config::Config;

    /// A server that drops EDNS next to a dead one: the other family has the rest of the time.
    #[test]
    fn what_one_family_showed_of_edns_holds_for_the_other() {
        let (mut servers, mut now) = (Servers::new(2), Instant::ZERO);
        let mut lookup = Lookup::new("a.test".to_owned(), true, &Config::default().dns, 2);
        let mut asked = Vec::new();
        loop {
            let query = lookup.query(now, 1, &mut servers).expect("a query");
            asked.push((query.server, query.family, query.with_edns));
            let is_answered = query.server == 1 && !query.with_edns;
            now = now + if is_answered { Duration::from_millis(10) } else { query.wait };
            let found = DnsAnswer::Addrs(vec![[192, 0, 2, 1].into()], Duration::from_secs(60), None);
            let answer = if is_answered { found } else { DnsAnswer::Silent };
            if let NextStep::Over(found) = lookup.answered(now, answer, &mut servers) {
                assert!(found.is_ok_and(|found| !found.is_half));
                break;
            }
        }
        let of_other: Vec<(usize, bool)> = asked
            .iter()
            .filter(|(_, family, _)| *family == Family::V6)
            .map(|(server, _, edns)| (*server, *edns))
            .collect();
        assert_eq!(of_other.last(), Some(&(1, false)), "{asked:?}");
        assert!(!of_other.contains(&(1, true)), "{asked:?}");
    }

    /// Next to two dead servers, one that drops EDNS loses a packet, then refuses once: it still gets queries without
    /// EDNS.
    #[test]
    fn a_lost_packet_and_a_refusal_say_nothing_of_edns() {
        let (mut servers, mut now, mut plain) = (Servers::new(3), Instant::ZERO, 0);
        let found = (1..=4).find(|number| {
            let mut lookup = Lookup::new("a.test".to_owned(), *number > 1, &Config::default().dns, 3);
            loop {
                let query = lookup.query(now, *number, &mut servers).expect("a query");
                now = now + Duration::from_millis(10);
                let answer = if query.server == 1 && !query.with_edns {
                    plain += 1;
                    let found = DnsAnswer::Addrs(vec![[192, 0, 2, 1].into()], Duration::from_secs(60), None);
                    [DnsAnswer::Silent, DnsAnswer::Refused].get(plain - 1).cloned().unwrap_or(found)
                } else {
                    now = now + query.wait;
                    DnsAnswer::Silent
                };
                if let NextStep::Over(found) = lookup.answered(now, answer, &mut servers) {
                    now = now + Duration::from_secs(10);
                    return found.is_ok();
                }
            }
        });
        assert!(found.is_some(), "{plain} queries without EDNS");
    }
}
