//! What the frontier knows of one host.
//!
//! Decides: delays, addresses and the queue belong to the host name; robots.txt (RFC 9309 section 2.3) and failures
//! ([`super::host_failures`]) belong to each of its origins, scheme and port.
//! Invariants: a host has at most one job under way, or as many as its line allows; its state says where it stands, and every host that has
//! something to do is either under way, ready, or in the calendar.
//! Limits: [`ORIGINS_MAX`] origins. A new one takes the place of an odd port that never answered and that no URL waits for.

use xxhash_rust::xxh3::xxh3_64;

use super::backlog::Backlog;
use super::competition::Leave;
use super::health::Vitals;
use super::kind_evidence::CountedKinds;
use super::lookup_queue::Asked;
use super::origin::Origin;
use super::resolution::Resolution;
use super::visit::UnderWay;
use crate::politeness::{FineKinds, HostPace, KindRest};
use crate::waits::Wait;
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_config::Politeness;
use ringcrawl_url::{SiteKey, Url};

/// A host and everything that waits for it.
#[derive(Debug)]
pub struct Host {
    /// Lower-case name or address.
    pub name: Box<str>,
    /// Its site.
    pub site: SiteKey,
    /// The site that linked to it first.
    pub linker: SiteKey,
    /// Its URLs.
    pub backlog: Backlog,
    /// Its addresses.
    pub resolution: Resolution,
    /// When it may be asked.
    pub pace: HostPace,
    /// The kinds of its URLs that have complained or failed.
    pub kind_rest: Option<Box<KindRest>>,
    /// Kinds of its URLs that were answered well.
    pub fine_kinds: FineKinds,
    /// What is being asked.
    pub under_way: UnderWay,
    /// What its robots.txt say.
    pub origins: Vec<Origin>,
    /// Files that it is to fetch because others' robots.txt redirect to them; the first of them next.
    pub robots_wanted: Vec<Url>,
    /// Hashes of those that its rules forbid and that are fetched all the same; 0 for one that came, or failed.
    forbidden_files: Vec<u64>,
    /// It has served others, and so many requests of its own are next: thousands of hosts may send others to it.
    pub own_turns: u8,
    /// What its kinds of pages were worth, where it has had more than a few.
    pub kinds: Option<Box<CountedKinds>>,
    /// Pages that were fetched, as long as they are few.
    pub pages_had: u32,
    /// How it leaves its next page to others.
    pub leave: Option<Leave>,
    /// Its pages that have not ended, and that lowered hosts leave others for.
    pub rival_pages: u32,
    /// How it does, for people.
    pub vitals: Vitals,
    /// It was asked before, and said something.
    pub has_answered: bool,
    /// It has had URLs to which not only strangers link.
    pub has_own_urls: bool,
    /// How it was met.
    pub standing: Standing,
    /// How often a turn was slow and brought nothing.
    dragged: u8,
    /// Ports that made room and did not answer, some others with them.
    dead_ports: Option<Box<[u64; DEAD_PORT_WORDS]>>,
    /// Until when origins that may be dead are left alone while another one works.
    pub doubtful_rest: Instant,
    /// What it waits for: for the table of hosts alone, which counts.
    pub wait: Option<Wait>,
    state: State,
    /// Its place in the row of idle hosts.
    idle_number: u64,
}

/// How a host was met.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Standing {
    /// By links that anyone may have made.
    Unknown,
    /// An earlier run was answered by it, or a host of its site links to it that is known so or a seed's, and stands
    /// below another label of the site: who has one label cannot make up names that are known.
    Known,
    /// It has had a seed.
    Seed,
}

/// Where a host stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Nothing to do.
    Idle,
    /// In the queue of ready hosts.
    Ready,
    /// In the calendar at this instant.
    Waiting(Instant),
    /// Nothing waits, and it is not forgotten before this instant, which is in the calendar: then it may be asked again.
    Resting(Instant),
    /// Among those that wait for their turn at an address or at the name servers.
    Parked,
    /// A job is under way, and none may begin beside it.
    Busy,
    /// Jobs are under way, and nothing else waits.
    Emptied,
    /// A block of the queue is on its way back from disk.
    Reading,
}

impl State {
    /// Whether something new to do puts it back into the calendar.
    pub fn may_be_woken(self) -> bool {
        matches!(self, State::Idle | State::Waiting(_) | State::Resting(_) | State::Emptied)
    }
}

impl Host {
    /// Whether a file that others were sent to is fetched although its rules forbid it. RFC 9309 section 2.3.1.2
    /// wants that, but anyone may send their robots.txt here: [`FORBIDDEN_FILES_MAX`] such requests are made while
    /// the host is in memory.
    pub fn takes_forbidden_file(&mut self, url: &Url) -> bool {
        if !self.has_taken_forbidden_file(url) && self.forbidden_files.len() < FORBIDDEN_FILES_MAX {
            self.forbidden_files.push(file_hash(url));
        }
        self.has_taken_forbidden_file(url)
    }

    /// Whether this is one of those: its rules need not be known again, which may leave memory before its turn.
    pub fn has_taken_forbidden_file(&self, url: &Url) -> bool {
        self.forbidden_files.contains(&file_hash(url))
    }

    /// A file that others were sent to came, or failed.
    pub fn file_came(&mut self, url: &Url) {
        self.forbidden_files.iter_mut().filter(|hash| **hash == file_hash(url)).for_each(|hash| *hash = 0);
    }

    /// Whether it has said little yet: names of a site cost nothing, and hosts that are known go before it.
    pub fn is_newcomer(&self) -> bool {
        let credit = match self.standing {
            Standing::Seed => return false,
            Standing::Known => KNOWN_ANSWERS,
            Standing::Unknown => 0,
        };
        self.answers() + credit < KNOWN_ANSWERS * (1 + u32::from(self.dragged))
    }

    /// Whether it is a newcomer that has not been slow yet: one that was has all the time that it needs, when its
    /// turn has come.
    pub fn is_first_met(&self) -> bool {
        self.is_newcomer() && self.dragged == 0
    }

    /// A turn for `url` was slow and brought nothing. A link may name any port.
    pub fn dragged(&mut self, url: &Url) {
        if url.port() == url.scheme().default_port() {
            self.dragged = self.dragged.saturating_add(1);
        }
    }

    /// How often it was answered well, as far as is known.
    pub fn answers(&self) -> u32 {
        self.origins.iter().map(|origin| u32::from(origin.fine())).sum()
    }

    /// A host that is met for the first time.
    pub fn new(name: &str) -> Host {
        Host {
            name: name.into(),
            site: SiteKey::default(),
            linker: SiteKey::default(),
            backlog: Backlog::default(),
            resolution: Resolution::new(name),
            pace: HostPace::new(),
            kind_rest: None,
            fine_kinds: FineKinds::default(),
            under_way: UnderWay::default(),
            origins: Vec::new(),
            robots_wanted: Vec::new(),
            forbidden_files: Vec::new(),
            own_turns: 0,
            kinds: None,
            pages_had: 0,
            doubtful_rest: Instant::ZERO,
            leave: None,
            rival_pages: 0,
            vitals: Vitals::default(),
            has_answered: false,
            has_own_urls: false,
            standing: Standing::Unknown,
            dragged: 0,
            dead_ports: None,
            wait: None,
            state: State::Idle,
            idle_number: 0,
        }
    }

    /// Where it stands.
    pub fn state(&self) -> State {
        self.state
    }

    /// Sets where it stands, and says where it stood: for the table of hosts alone, which counts.
    pub fn change_state(&mut self, state: State) -> State {
        std::mem::replace(&mut self.state, state)
    }

    /// Its place in the row of idle hosts: for the table of hosts alone.
    pub fn idle_from(&mut self, number: u64) {
        self.idle_number = number;
    }

    /// Whether it has been idle since it took this place.
    pub fn is_idle_since(&self, number: u64) -> bool {
        self.state == State::Idle && self.idle_number == number
    }

    /// The index of the origin of `url`, added when new; `None` when the host has too many. Jobs and files on their way name another
    /// by its URL or by what it waits for, so that none is taken for one whose place it has.
    pub fn origin_of(&mut self, url: &Url) -> Option<usize> {
        if let Some(index) = self.origins.iter().position(|origin| origin.is_of(url)) {
            return Some(index);
        }
        // Anyone may link to sixteen odd ports of a host; its own two must not be lost by that.
        if self.origins.len() >= ORIGINS_MAX && url.port() != url.scheme().default_port() {
            let may_go = |index: &usize| self.origins[*index].is_unproven() && !self.waits_for_rules(*index);
            let index = (0..self.origins.len()).find(|index| may_go(index) && !self.had_dead_port(url))?;
            if self.origins[index].streak.has_failed() {
                let (word, bit) = dead_port_bit(self.origins[index].place().1);
                self.dead_ports.get_or_insert_default()[word] |= bit;
            }
            self.origins[index] = Origin::new(url);
            return Some(index);
        }
        // Most hosts have one or two, and there are millions of hosts.
        self.origins.reserve_exact(1);
        self.origins.push(Origin::new(url));
        Some(self.origins.len() - 1)
    }

    /// Whether the port of `url` did not answer, and then made room for another: it is not asked again while the host
    /// is in memory.
    pub fn had_dead_port(&self, url: &Url) -> bool {
        let (word, bit) = dead_port_bit(url.port());
        self.dead_ports.as_ref().is_some_and(|dead| dead[word] & bit != 0)
    }

    /// Whether an origin that is known may still make room for another, once no URL waits for it.
    pub fn may_have_other_origins(&self) -> bool {
        self.origins.iter().any(Origin::is_unproven)
    }

    /// When there is something to do for the next request; an address is asked for `lead` earlier.
    pub fn next_turn(&self, lead: Duration) -> Instant {
        self.resolution.next_turn(self.pace.not_before(), lead)
    }

    /// An origin's robots.txt is known: the longest Crawl-delay of all origins holds. That of an odd port holds for that
    /// alone, where there are others ([`Host::obey_own_delay`]).
    pub fn obey_crawl_delay(&mut self, politeness: &Politeness) {
        let speaks_for_host = |origin: &&Origin| !self.is_apart(origin);
        let asked = self.origins.iter().filter(speaks_for_host).map(Origin::crawl_delay);
        self.pace.obey_crawl_delay(asked.max().unwrap_or_default(), politeness);
    }

    /// A request to `url` has ended, or its robots.txt is known: where its origin's Crawl-delay is not the host's, that origin waits for it alone.
    pub fn obey_own_delay(&mut self, now: Instant, url: &Url, politeness: &Politeness) {
        let index = self.origins.iter().position(|origin| origin.is_of(url) && !origin.crawl_delay().is_zero());
        if let Some(index) = index.filter(|index| self.is_apart(&self.origins[*index])) {
            let origin = &mut self.origins[index];
            origin.streak.rest_until(now + origin.crawl_delay().min(politeness.crawl_delay_max));
        }
    }

    /// Whether an origin does not speak for the host: another has its scheme's port, or answered well more often.
    fn is_apart(&self, origin: &Origin) -> bool {
        origin.is_odd() && self.origins.iter().any(|other| !other.is_odd() || origin.is_beside(other))
    }

    /// The longest Crawl-delay, of the host or of an origin alone: the next run, which knows no origins, keeps it for the host.
    pub fn longest_crawl_delay(&self, politeness: &Politeness) -> Duration {
        let of_origins = self.origins.iter().map(|origin| origin.crawl_delay().min(politeness.crawl_delay_max)).max();
        self.pace.crawl_delay().max(of_origins.unwrap_or_default())
    }

    /// Until when one of its origins has asked to be left alone, and not the host.
    pub fn origins_asked_until(&self) -> Instant {
        self.origins.iter().map(|origin| origin.streak.asked_until()).max().unwrap_or(Instant::ZERO)
    }

    /// An earlier run was asked to leave this origin alone.
    pub fn rest_origin(&mut self, origin: &Url, until: Instant) {
        if let Some(index) = self.origin_of(origin) {
            self.origins[index].streak.rest_until(until);
        }
    }

    /// The time for which the host was given up is over: everything is asked anew.
    pub fn forgive(&mut self) {
        self.pace.forgive();
        self.resolution.forgive();
        self.origins.iter_mut().for_each(Origin::forget);
    }

    /// Whether nothing but its name keeps it from a request at `now`, where that is asked for beside others.
    pub fn waits_for_name(&self, now: Instant) -> bool {
        let is_waiting = matches!(self.state, State::Waiting(_) | State::Busy);
        is_waiting && self.under_way.jobs() == 0 && self.pace.not_before() <= now
    }

    /// How its name is to be asked for.
    pub fn asked(&self) -> Asked {
        Asked { site: self.site, linker: (!self.resolution.has_answer()).then_some(self.linker) }
    }

    /// Whether no URL waits for just these rules, or they have served one.
    pub fn can_do_without_rules(&self, index: usize) -> bool {
        self.origins.get(index).is_some_and(Origin::has_served) || !self.waits_for_rules(index)
    }

    /// Whether a URL of this origin waits for its rules, or a file that others were sent to.
    pub fn waits_for_rules(&self, index: usize) -> bool {
        let is_of = |origin: &Origin| self.robots_wanted.iter().any(|url| origin.is_of(url));
        self.has_url_for(index) || self.origins.get(index).is_some_and(is_of)
    }

    /// Whether a URL of this origin waits for its rules.
    pub fn has_url_for(&self, index: usize) -> bool {
        let Some(origin) = self.origins.get(index) else { return false };
        origin.parked_bytes() > 0 || self.backlog.considered().any(|url| origin.is_of(url))
    }
}

/// Never zero.
fn file_hash(url: &Url) -> u64 {
    xxh3_64(url.as_str().as_bytes()) | 1
}

/// Different (scheme, port) pairs of one host that are crawled, the default ones not counted.
pub const ORIGINS_MAX: usize = 16;
/// Where a port stands among the dead ones of a host: for one of 1,024 bits.
fn dead_port_bit(port: u16) -> (usize, u64) {
    (usize::from(port) / 64 % DEAD_PORT_WORDS, 1 << (port % 64))
}

const DEAD_PORT_WORDS: usize = 16;
/// Requests for files of others' robots.txt to a host that forbids them: as many as may wait for it at once.
const FORBIDDEN_FILES_MAX: usize = 16;
/// A host that was answered well so often is no newcomer.
const KNOWN_ANSWERS: u32 = 16;
