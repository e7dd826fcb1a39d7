//! What the frontier knows of one host.
//!
//! Decides: delays, addresses and the queue belong to the host name; robots.txt (RFC 9309 section 2.3) and failures
//! ([`super::failures`]) belong to each of its origins, scheme and port.
//! Invariants: a host has at most one job in flight, or as many as its line allows. Its state tells where it stands,
//! and every host that has something to do has a job in flight, is ready, or is in the calendar.
//! Limits: [`ORIGINS_MAX`] origins. A new one takes the place of an odd port that never answered and that no URL
//! waits for.

use std::net::IpAddr;

use xxhash_rust::xxh3::xxh3_64;

use super::counted_kinds::CountedKinds;
use super::leave::Leave;
use super::origin::Origin;
use super::resolution::{LookupRequest, REFRESH_PATIENCE, Resolution};
use super::state::HostState;
use super::under_way::{UnderWay, VISIT_MAX};
use super::vitals::Vitals;
use crate::frontier::queue::Backlog;
use crate::frontier::settings::Settings;
use crate::job::{FetchJob, JobKind};
use crate::politeness::{ClaimKey, Claims, FineKinds, HOLD_SLACK, HostPace, KindRest, Ledger};
use crate::trouble::{HostHealth, Trouble};
use crate::waits::Wait;
use ringcrawl_base::Failure;
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
    /// When it may be queried.
    pub pace: HostPace,
    /// The kinds of its URLs that have complained or failed.
    pub kind_rest: Option<Box<KindRest>>,
    /// Kinds of its URLs that had good answers.
    pub fine_kinds: FineKinds,
    /// Its jobs in flight.
    pub under_way: UnderWay,
    /// Its origins, with the contents of their robots.txt.
    pub origins: Vec<Origin>,
    /// Files that it must fetch because others' robots.txt redirect to them; the first of them next.
    pub robots_wanted: Vec<Url>,
    /// Hashes of files that its rules forbid and that are fetched anyway; 0 for one that arrived, or failed.
    forbidden_files: Vec<u64>,
    /// After it has served others, this many of its own requests come next: thousands of hosts may redirect others to
    /// it.
    pub own_turns: u8,
    /// The worth of its kinds of pages, once it has had more than a few.
    pub kinds: Option<Box<CountedKinds>>,
    /// Pages fetched, while they are few.
    pub pages_had: u32,
    /// How it leaves its next page to others.
    pub leave: Option<Leave>,
    /// Its pages that have not ended, and for which lowered hosts wait.
    pub rival_pages: u32,
    /// How it does, for people.
    pub vitals: Vitals,
    /// It was queried before, and answered.
    pub has_answered: bool,
    /// It has had URLs to which not only strangers link.
    pub has_own_urls: bool,
    /// How it was found.
    pub standing: Standing,
    /// How often a turn was slow and brought no page.
    dragged: u8,
    /// Ports that made room and did not answer, some others with them.
    dead_ports: Option<Box<[u64; DEAD_PORT_WORDS]>>,
    /// Until when origins that may be dead are left alone while another one works.
    pub doubtful_rest: Instant,
    /// What it waits for: used only by the host table, which counts.
    pub wait: Option<Wait>,
    state: HostState,
    /// Its place in the queue of idle hosts.
    idle_number: u64,
}

/// How a host was found.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Standing {
    /// By links that anyone may have made.
    Unknown,
    /// It answered an earlier run, or a host of its site links to it that is known so or a seed's, and is below
    /// another label of the site: an owner of one label cannot make up names that are known.
    Known,
    /// It has had a seed.
    Seed,
}

impl Host {
    /// Whether a file that others were redirected to is fetched although its rules forbid it. RFC 9309 section
    /// 2.3.1.2 requires that, but anyone may redirect their robots.txt here: at most [`FORBIDDEN_FILES_MAX`] such
    /// requests are made while the host is in memory.
    pub fn takes_forbidden_file(&mut self, url: &Url) -> bool {
        if !self.has_taken_forbidden_file(url) && self.forbidden_files.len() < FORBIDDEN_FILES_MAX {
            self.forbidden_files.push(file_hash(url));
        }
        self.has_taken_forbidden_file(url)
    }

    /// Whether this is such a file: its rules, which may leave memory before its turn, need not be known again.
    pub fn has_taken_forbidden_file(&self, url: &Url) -> bool {
        self.forbidden_files.contains(&file_hash(url))
    }

    /// A file that others were redirected to arrived, or failed.
    pub fn file_came(&mut self, url: &Url) {
        self.forbidden_files.iter_mut().filter(|hash| **hash == file_hash(url)).for_each(|hash| *hash = 0);
    }

    /// Whether it has answered little yet: names of a site cost nothing, and known hosts go before it.
    pub fn is_newcomer(&self) -> bool {
        let credit = match self.standing {
            Standing::Seed => return false,
            Standing::Known => KNOWN_ANSWERS,
            Standing::Unknown => 0,
        };
        self.answers() + credit < KNOWN_ANSWERS * (1 + u32::from(self.dragged))
    }

    /// Whether it is a newcomer that has not been slow yet: one that was gets all the time it needs once its turn has
    /// come.
    pub fn is_first_met(&self) -> bool {
        self.is_newcomer() && self.dragged == 0
    }

    /// A turn for `url` was slow and brought no page. A link may name any port.
    pub fn dragged(&mut self, url: &Url) {
        if url.port() == url.scheme().default_port() {
            self.dragged = self.dragged.saturating_add(1);
        }
    }

    /// The number of good answers, as far as known.
    pub fn answers(&self) -> u32 {
        self.origins.iter().map(|origin| u32::from(origin.fine())).sum()
    }

    /// A host that appears for the first time.
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
            state: HostState::Idle,
            idle_number: 0,
        }
    }

    /// Where it stands.
    pub fn state(&self) -> HostState {
        self.state
    }

    /// Sets where it stands, and returns where it stood: used only by the host table, which counts.
    pub fn change_state(&mut self, state: HostState) -> HostState {
        std::mem::replace(&mut self.state, state)
    }

    /// Its place in the queue of idle hosts: used only by the host table.
    pub fn idle_from(&mut self, number: u64) {
        self.idle_number = number;
    }

    /// Whether it has been idle since it took this place.
    pub fn is_idle_since(&self, number: u64) -> bool {
        self.state == HostState::Idle && self.idle_number == number
    }

    /// The index of the origin of `url`, added when new; `None` if the host has too many. Jobs and files in flight
    /// name an origin by its URL or by what it waits for, so that none is mistaken for one that took its place.
    pub fn origin_of(&mut self, url: &Url) -> Option<usize> {
        if let Some(index) = self.origins.iter().position(|origin| origin.is_of(url)) {
            return Some(index);
        }
        // Anyone may link to sixteen odd ports of a host; its own two must survive that.
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

    /// Whether the port of `url` did not answer, and then made room for another: it is not queried again while the
    /// host is in memory.
    pub fn had_dead_port(&self, url: &Url) -> bool {
        let (word, bit) = dead_port_bit(url.port());
        self.dead_ports.as_ref().is_some_and(|dead| dead[word] & bit != 0)
    }

    /// Whether a known origin may still make room for another, once no URL waits for it.
    pub fn may_have_other_origins(&self) -> bool {
        self.origins.iter().any(Origin::is_unproven)
    }

    /// When there is something to do for the next request; an address is looked up `lead` earlier.
    pub fn next_turn(&self, lead: Duration) -> Instant {
        self.resolution.next_turn(self.pace.not_before(), lead)
    }

    /// An origin's robots.txt is known: the longest Crawl-delay of all origins holds. That of an odd port holds only
    /// for that port if there are others ([`Host::obey_own_delay`]).
    pub fn obey_crawl_delay(&mut self, politeness: &Politeness) {
        let speaks_for_host = |origin: &&Origin| !self.is_apart(origin);
        let asked = self.origins.iter().filter(speaks_for_host).map(Origin::crawl_delay);
        self.pace.obey_crawl_delay(asked.max().unwrap_or_default(), politeness);
    }

    /// A request to `url` has ended, or its robots.txt is known: if its origin's Crawl-delay is not the host's, only
    /// that origin waits for it.
    pub fn obey_own_delay(&mut self, now: Instant, url: &Url, politeness: &Politeness) {
        let index = self.origins.iter().position(|origin| origin.is_of(url) && !origin.crawl_delay().is_zero());
        if let Some(index) = index.filter(|index| self.is_apart(&self.origins[*index])) {
            let origin = &mut self.origins[index];
            origin.streak.rest_until(now + origin.crawl_delay().min(politeness.crawl_delay_max));
        }
    }

    /// Whether an origin does not speak for the host: another has its scheme's port, or has more good answers.
    fn is_apart(&self, origin: &Origin) -> bool {
        origin.is_odd() && self.origins.iter().any(|other| !other.is_odd() || origin.is_beside(other))
    }

    /// The longest Crawl-delay, of the host or of a single origin: the next run, which knows no origins, keeps it for
    /// the host.
    pub fn longest_crawl_delay(&self, politeness: &Politeness) -> Duration {
        let of_origins = self.origins.iter().map(|origin| origin.crawl_delay().min(politeness.crawl_delay_max)).max();
        self.pace.crawl_delay().max(of_origins.unwrap_or_default())
    }

    /// Until when one of its origins, and not the host, has asked to be left alone.
    pub fn origins_asked_until(&self) -> Instant {
        self.origins.iter().map(|origin| origin.streak.asked_until()).max().unwrap_or(Instant::ZERO)
    }

    /// An earlier run was asked to leave this origin alone.
    pub fn rest_origin(&mut self, origin: &Url, until: Instant) {
        if let Some(index) = self.origin_of(origin) {
            self.origins[index].streak.rest_until(until);
        }
    }

    /// The host is no longer given up: everything is queried again.
    pub fn forgive(&mut self) {
        self.pace.forgive();
        self.resolution.forgive();
        self.origins.iter_mut().for_each(Origin::forget);
    }

    /// Whether only its name keeps it from a request at `now`, while that is looked up in parallel.
    pub fn waits_for_name(&self, now: Instant) -> bool {
        let is_waiting = matches!(self.state, HostState::Waiting(_) | HostState::Busy);
        is_waiting && self.under_way.jobs() == 0 && self.pace.not_before() <= now
    }

    /// How it does. `&mut`: what this says is noted.
    pub fn health(&mut self, politeness: &Politeness) -> HostHealth {
        let (delay, response) = self.vitals.noted(self.pace.delay(politeness));
        HostHealth { delay, response, troubles: self.troubles().cloned().collect() }
    }

    /// The last problem.
    pub fn latest_trouble(&self) -> Option<&Trouble> {
        self.troubles().max_by_key(|trouble| trouble.seconds)
    }

    /// Its problems: that with its name, and those of its origins.
    fn troubles(&self) -> impl Iterator<Item = &Trouble> {
        let of_origins = self.origins.iter().filter_map(|origin| origin.trouble.as_deref());
        self.vitals.name_trouble().into_iter().chain(of_origins)
    }

    /// Where the problem of a job is noted.
    pub fn trouble_mut(&mut self, job: &FetchJob) -> Option<&mut Option<Box<Trouble>>> {
        if job.kind == JobKind::Resolve {
            return Some(self.vitals.name_trouble_mut());
        }
        self.origins.iter_mut().find(|origin| origin.is_of(&job.url)).map(|origin| &mut origin.trouble)
    }

    /// Whether it rests long enough for a note. The double delay of a new host is not worth a line: it is new again in
    /// the next run.
    pub fn rests_long(&self, now: Instant, politeness: &Politeness) -> bool {
        self.pace.asked_until() > now + self.pace.usual_delay(politeness) * 2
    }

    /// The claims that a request to `addr` needs: none, if the host is the operator's own. Hosts of others at its
    /// address or of its site keep their delays among themselves.
    pub fn claims_for(&self, addr: IpAddr, settings: &Settings) -> Claims {
        if self.pace.is_mine() {
            return Claims::default();
        }
        let (site, politeness) = (self.site, &settings.politeness);
        let operator = settings.operators.of_address(addr).or(self.resolution.operator());
        let slot = |operator| {
            let slot = site.place_among(politeness.group_slots as usize) as u64;
            (ClaimKey::Group(u64::from(operator) << 32 | slot), politeness.group_delay)
        };
        Claims::new([
            settings.host_key(&self.name).map(|key| (key, self.own_part_of_delay(politeness))),
            Some((ClaimKey::Site(site), politeness.site_delay)),
            Some((addr.into(), politeness.ip_delay)),
            operator.map(slot),
        ])
    }

    /// The keys that it may wait for.
    pub fn keys(&self, settings: &Settings) -> impl Iterator<Item = ClaimKey> {
        let known = self.resolution.known().iter();
        known.flat_map(|addr| self.claims_for(*addr, settings).keys().collect::<Vec<_>>())
    }

    /// How much longer than other shards may know it is left alone after a request: one of them may have a robots.txt
    /// with another Crawl-delay, or none yet.
    fn own_part_of_delay(&self, politeness: &Politeness) -> Duration {
        self.pace.delay(politeness).saturating_sub(self.pace.agreed_delay(politeness))
    }

    /// Until when its keys are claimed for a request that ends by `deadline`; any ends within `deadline_max`.
    pub fn hold_until(&self, now: Instant, deadline: Instant, deadline_max: Duration) -> Instant {
        let ends = if self.pace.may_have_several() { now + VISIT_MAX + deadline_max } else { deadline };
        ends + HOLD_SLACK
    }

    /// A request begins: its claims are granted until `hold_until`, or it joins the visit that has them.
    pub fn begin_request(&mut self, now: Instant, claims: &Claims, hold_until: Instant, politeness: &Politeness) {
        if self.pace.may_have_several() {
            self.under_way.joins_visit(now, claims, hold_until);
        }
        self.pace.moved(now, politeness);
    }

    /// A request has ended; `met_interstitial` tells whether its response was one.
    pub fn end_request(
        &mut self,
        now: Instant,
        job: &FetchJob,
        met_interstitial: bool,
        ledger: &Ledger,
        politeness: &Politeness,
    ) {
        self.pace.moved(now, politeness);
        self.under_way.end_request(ledger, now, job, met_interstitial);
    }

    /// The result of a job's request is known, or will not be soon: other shards may query it again after the delay
    /// that all shards know. After a complaint its rest holds for all.
    pub fn release(
        &self,
        now: Instant,
        job: &FetchJob,
        has_complained: bool,
        ledger: &Ledger,
        politeness: &Politeness,
    ) {
        let rests = has_complained || self.pace.not_before() > now + self.pace.delay(politeness);
        let own = if rests { Duration::ZERO } else { self.own_part_of_delay(politeness) };
        job.claims.release_host(ledger, job.deadline + HOLD_SLACK, self.pace.not_before() - own);
    }

    /// When it looks for its next step after a job has ended, unless it is due to look anyway; an address is looked up
    /// `lead` earlier.
    pub fn goes_on_at(&self, lead: Duration) -> Option<Instant> {
        let may_look = match self.state {
            HostState::Busy => self.under_way.has_room(self.pace.requests_max()),
            HostState::Emptied | HostState::Waiting(_) | HostState::Resting(_) => true,
            HostState::Ready | HostState::Parked | HostState::Reading => false,
            HostState::Idle => unreachable!("{} is idle while a job is in flight", self.name),
        };
        // A host that waits for its delay need not look earlier.
        let at = self.next_turn(lead);
        let is_sooner = !matches!(self.state, HostState::Waiting(noted) if noted <= at);
        (may_look && is_sooner).then_some(at)
    }

    /// When another request may begin beside one that has begun, if it may have several.
    pub fn goes_on_beside_at(&self, lead: Duration) -> Option<Instant> {
        let may_go_on = self.pace.may_have_several() && self.under_way.has_room(self.pace.requests_max());
        may_go_on.then(|| self.next_turn(lead))
    }

    /// An expired address, if its name is being looked up and no answer came soon; it may be used for `grace`.
    pub fn old_address(&mut self, now: Instant, needed_at: Instant, grace: Duration) -> Option<(IpAddr, Vec<IpAddr>)> {
        let since = self.under_way.refreshing()?;
        let may_serve = since + REFRESH_PATIENCE <= now && self.resolution.stretch(needed_at, grace);
        if may_serve { self.resolution.addr(needed_at) } else { None }
    }

    /// The first of the files that others were redirected to, except those that rest with their origin or kind.
    pub fn wanted_file(&self, now: Instant) -> Option<&Url> {
        self.robots_wanted.iter().find(|url| self.may_ask_for_file_from(url, now) <= now)
    }

    /// It is given up until then: nothing of it waits for anything but its end. Returns the files that others were
    /// redirected to.
    pub fn give_everything_up(&mut self, now: Instant, until: Instant) -> Vec<Url> {
        self.doubtful_rest = Instant::ZERO;
        self.kind_rest = None;
        self.backlog.rest_lane(false);
        self.backlog.retry_all(now);
        self.origins.iter_mut().for_each(|origin| origin.refuse(until, Failure::RobotsUnreachable));
        std::mem::take(&mut self.robots_wanted)
    }

    /// The robots.txt at `url` may not be requested: nothing of its origin may, as no request reads its rules.
    pub fn refuse_robots(&mut self, url: &Url, until: Instant) {
        self.robots_wanted.retain(|wanted| wanted != url);
        let own = self.origins.iter_mut().filter(|origin| origin.robots_url(&self.name).as_ref() == Some(url));
        own.for_each(|origin| origin.refuse(until, Failure::Blocked));
    }

    /// How its name must be looked up.
    pub fn asked(&self) -> LookupRequest {
        LookupRequest { site: self.site, linker: (!self.resolution.has_answer()).then_some(self.linker) }
    }

    /// Whether no URL waits for exactly these rules, or they have served one.
    pub fn can_do_without_rules(&self, index: usize) -> bool {
        self.origins.get(index).is_some_and(Origin::has_served) || !self.waits_for_rules(index)
    }

    /// Whether a URL of this origin waits for its rules, or a file that others were redirected to.
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

/// Different (scheme, port) pairs of one host that are crawled, without the default ones.
pub const ORIGINS_MAX: usize = 16;
/// The position of a port among the dead ones of a host: one of 1,024 bits.
fn dead_port_bit(port: u16) -> (usize, u64) {
    (usize::from(port) / 64 % DEAD_PORT_WORDS, 1 << (port % 64))
}

const DEAD_PORT_WORDS: usize = 16;
/// Requests for files of others' robots.txt to a host that forbids them: as many as may wait for it at once.
const FORBIDDEN_FILES_MAX: usize = 16;
/// A host with this many good answers is no newcomer.
const KNOWN_ANSWERS: u32 = 16;
