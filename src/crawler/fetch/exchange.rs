//! One exchange: connect or reuse, handshake, send, receive.
//!
//! Decides: connect, handshake and first byte have their own timeouts, all under one whole deadline. One guard
//! enforces all of them: it moves from stage to stage, and from byte to byte of a body that must keep a pace. If a
//! kept connection breaks before a response byte, its peer had closed it in the meantime: the request is sent again
//! on a new connection, and nothing counts against the host (RFC 9112 section 9.3.1).
//! Invariants: a connection is kept only after a whole response, with nothing after it, under a deadline that has not
//! passed.
//! Limits: the retry happens under the same whole deadline.

use std::net::IpAddr;
use std::rc::Rc;

use super::answer::{Answer, Concluded, Silence};
use super::body_memory::BodyHold;
use super::connection::{Broken, Connection, Received};
use super::dial::{AddressClaim, Call, Line};
use super::pace::Pace;
use super::pool::Peer;
use super::{BLOCK_BYTES, Hands, add, dial, tls};
use ringcrawl_base::Failure;
use ringcrawl_base::stage::{self, Stage};
use ringcrawl_base::time::{Instant, UnixTime};
use ringcrawl_brain::job::{FetchJob, JobKind};
use ringcrawl_brain::transaction::{Timings, Transaction};
use ringcrawl_config::{BadPorts, PrivateAddresses};
use ringcrawl_http::{self as http, Method, Request};
use ringcrawl_ring::{self as ring, Guard};
use ringcrawl_url::{Scheme, is_bad_port};

pub(super) async fn run(hands: &Rc<Hands>, job: &FetchJob, memory: &BodyHold) -> Result<Transaction, Failure> {
    let ip = job.addr.ok_or(Failure::DnsNotFound)?;
    // A placeholder is not an address: the proxy decides about the address that it finds for the name.
    let is_stand_in = hands.proxy.as_ref().is_some_and(|proxy| proxy.stand_in(job.url.host()) == Some(ip));
    let mut policy = hands.fetch.private_addresses;
    if !is_stand_in && !hands.may_connect(ip, policy) {
        // Looked up only here: forbidden addresses are very rare.
        if policy == PrivateAddresses::LoopbackOnly || !hands.lines.terms_of(job.url.host()).is_mine {
            hands.say(job.id, &forbidden(ip, policy));
            return Err(Failure::AddressForbidden);
        }
        policy = PrivateAddresses::Allow;
    }
    // A redirect of a robots.txt may lead there.
    if hands.bad_ports == BadPorts::Deny && is_bad_port(job.url.port()) {
        return Err(Failure::PortForbidden);
    }
    let begun = ring::now();
    if job.deadline <= begun {
        return Err(Failure::Deadline);
    }
    let _entered = hands.cut_short.enter(job.id);
    let mut fetch = Fetch {
        hands,
        job,
        ip,
        started: ring::unix_now(),
        begun,
        deadline: job.deadline.min(begun + hands.fetch.deadline),
        is_hurried: job.is_hurried,
        policy,
        timings: Timings::default(),
        claim: None,
        memory,
    };
    let mut request = fetch.request();
    if let Some((peer, connection)) = hands.pool.take(&job.url, ip, begun) {
        add(&hands.counters.reuses, 1);
        let guard = hands.deadlines.guard(connection.socket(), fetch.deadline);
        match fetch.talk(connection, guard, peer, request, begun, true).await {
            Ok(exchange) => return Ok(exchange),
            Err(Ended::Failed(failure)) => return Err(failure),
            Err(Ended::Stale(bytes)) => {
                add(&hands.counters.stale_reuses, 1);
                request = bytes;
            }
        }
    }
    let (connection, guard) = fetch.open().await?;
    let peer = Peer::new(&job.url, fetch.ip);
    let asked = ring::now();
    fetch.talk(Box::new(connection), guard, peer, request, asked, false).await.map_err(|ended| match ended {
        Ended::Failed(failure) => failure,
        Ended::Stale(_) => Failure::ClosedEarly,
    })
}

/// How the use of a connection ended without a response.
enum Ended {
    Failed(Failure),
    /// The connection had been kept and was closed in the meantime: the unanswered request.
    Stale(Vec<u8>),
}

struct Fetch<'a> {
    hands: &'a Rc<Hands>,
    job: &'a FetchJob,
    ip: IpAddr,
    started: UnixTime,
    begun: Instant,
    /// Of the whole exchange.
    deadline: Instant,
    /// It has less time than the maximum.
    is_hurried: bool,
    /// Which addresses it may connect to.
    policy: PrivateAddresses,
    timings: Timings,
    /// The claim on `ip`, if it is not the job's own address.
    claim: Option<AddressClaim>,
    memory: &'a BodyHold,
}

impl Fetch<'_> {
    fn request(&self) -> Vec<u8> {
        let _stage = stage::enter(Stage::Http);
        let Fetch { hands, job, .. } = self;
        let (user_agent, from) = (&hands.agent_ua, &hands.from);
        let cookies = hands.jar.as_ref().and_then(|jar| jar.borrow_mut().field(&job.url, self.started));
        let login = hands.logins.get(job.url.origin());
        let proxy = hands.proxy.as_ref().filter(|proxy| proxy.takes_whole(&job.url));
        let to_proxy = proxy.and_then(|proxy| proxy.authorization());
        let mut signer = hands.signer.as_ref().map(|signer| signer.borrow_mut());
        let signed = signer.as_mut().and_then(|signer| signer.fields(&job.url, self.started));
        // A response in another format than its own is no robots.txt.
        let accept = (job.kind == JobKind::Page).then_some(hands.accept.as_bytes());
        let fields = [
            ("Accept", accept),
            ("Accept-Encoding", Some(hands.codings.as_bytes())),
            ("Authorization", login.map(String::as_bytes)),
            ("Proxy-Authorization", to_proxy.map(str::as_bytes)),
            ("Cookie", cookies.as_deref()),
            ("Signature-Agent", signed.map(|signed| signed.agent.as_bytes())),
            ("Signature-Input", signed.map(|signed| signed.input.as_bytes())),
            ("Signature", signed.map(|signed| signed.signature.as_bytes())),
        ];
        let extra: Vec<(&str, &[u8])> = fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        let last = !self.may_keep();
        let request = Request { method: Method::Get, url: &job.url, user_agent, from, extra: &extra, last };
        if proxy.is_some() { request.to_proxy_bytes() } else { request.to_bytes() }
    }

    /// Whether a connection to the host can still be useful when the host's delay ends.
    fn may_keep(&self) -> bool {
        self.job.rest < self.hands.fetch.idle_timeout
    }

    /// The request in the form in which it may be stored.
    fn as_stored(&self, request: Vec<u8>) -> Vec<u8> {
        match self.hands.logins.is_empty() && self.hands.proxy.is_none() {
            true => request,
            false => http::without_credentials(&request),
        }
    }

    /// A new connection, TLS included.
    async fn open(&mut self) -> Result<(Connection, Guard), Failure> {
        let limits = &self.hands.fetch;
        let proxy = self.hands.proxy.as_ref();
        let call = match proxy {
            None => Call {
                first: self.ip,
                others: &self.job.others,
                port: self.job.url.port(),
                policy: self.policy,
                deadline: self.deadline,
            },
            // The peer behind it was checked before.
            Some(proxy) => Call {
                first: proxy.addr.ip(),
                others: &[],
                port: proxy.addr.port(),
                policy: PrivateAddresses::Allow,
                deadline: self.deadline,
            },
        };
        let start = ring::now();
        let dialed = dial::dial(self.hands, &call).await;
        let Line { socket, guard, ip, claim } = dialed.map_err(|failure| match failure {
            // A shortened deadline that passes while connecting counts as a connect timeout.
            Failure::Deadline if self.is_hurried && proxy.is_none() => Failure::ConnectTimeout,
            Failure::Deadline => failure,
            _ => match proxy {
                Some(proxy) => {
                    self.hands.say(self.job.id, &proxy.addr.to_string());
                    Failure::ProxyUnreachable
                }
                None => failure,
            },
        })?;
        if proxy.is_none() {
            (self.ip, self.claim) = (ip, claim);
        }
        let mut connection = Connection::new(socket);
        if let Some(proxy) = proxy.filter(|proxy| !proxy.takes_whole(&self.job.url)) {
            guard.set(self.deadline.min(ring::now() + limits.connect_timeout));
            let to = (&self.job.url, self.ip);
            if let Err(failure) = proxy.tunnel(&mut connection, to, self.hands, &guard).await {
                let failure = self.expired(&guard, Failure::ConnectTimeout).unwrap_or(failure);
                drop(guard);
                connection.close();
                return Err(failure);
            }
        }
        let connected = ring::now();
        self.timings.connect = connected.since(start);
        if self.job.url.scheme() == Scheme::Https {
            guard.set(self.deadline.min(connected + limits.tls_timeout));
            let host = self.job.url.host();
            let hands = self.hands;
            if let Err(broken) = connection.handshake(&hands.tls, host, &hands.buffers, &guard, self.memory).await {
                if let Broken::Tls(_) = broken {
                    hands.tls.forget(host);
                }
                let expired = self.expired(&guard, Failure::TlsTimeout);
                let failure = match broken {
                    // Our own lack of memory: it does not count as a try.
                    Broken::Crowded => Failure::Aborted,
                    Broken::Tls(error) => expired.unwrap_or_else(|| {
                        let failure = tls::failure_of(&error);
                        if let Some(words) = tls::words_of(failure, &error) {
                            hands.say(self.job.id, &words);
                        }
                        failure
                    }),
                    Broken::Stream => expired.unwrap_or(Failure::TlsFailed),
                };
                drop(guard);
                connection.close();
                return Err(failure);
            }
            add(&hands.counters.handshakes, 1);
            add(&hands.counters.resumed, u64::from(connection.is_resumed()));
            hands.counters.chains_recognized.set(hands.tls.chains_recognized());
            self.timings.tls = ring::now().since(connected);
        }
        guard.set(self.deadline);
        Ok((connection, guard))
    }

    /// Sends the request and receives the response; keeps or closes the connection.
    async fn talk(
        &mut self,
        mut connection: Box<Connection>,
        guard: Guard,
        peer: Peer,
        request: Vec<u8>,
        asked: Instant,
        reused: bool,
    ) -> Result<Transaction, Ended> {
        let limits = if self.job.kind == JobKind::Robots { self.hands.robots_limits } else { self.hands.limits };
        let mut answer = Answer::new(limits);
        let ended = match connection.ask(request) {
            Ok(()) => {
                guard.set(self.deadline.min(asked + self.hands.fetch.first_byte_timeout));
                self.hands.cut_short.begin(self.job.id, &guard, &self.hands.deadlines);
                let broken = self.listen(&mut connection, &guard, &mut answer, asked).await;
                if self.hands.cut_short.end(self.job.id) {
                    (self.deadline, self.is_hurried) = (self.deadline.min(ring::now()), true);
                }
                broken
            }
            Err(broken) => Some(broken),
        };
        if let Some(Broken::Tls(_)) = ended {
            self.hands.tls.forget(self.job.url.host());
        }
        if let Some(bytes) = answer.memory_of_undoing()
            && !self.memory.grow(bytes, || guard.is_expired()).await
        {
            answer.undo_little();
        }
        let over = ring::now();
        self.timings.total = over.since(self.begun);
        let result = self.conclude(&guard, answer, ended);
        self.memory.settle(result.as_ref().map_or(0, |concluded| memory_of(&concluded.response)));
        if let (Some(jar), Ok(concluded)) = (&self.hands.jar, &result) {
            jar.borrow_mut().store(&self.job.url, &concluded.response.headers, self.started);
        }
        let tls = connection.tls_info().cloned();
        // A server may answer before it has read everything, and then close: its answer counts.
        let (request, is_asked) = connection.asked();
        let keep =
            is_asked && self.may_keep() && matches!(&result, Ok(concluded) if concluded.keep) && !guard.is_expired();
        drop(guard);
        if keep {
            connection.listen(&self.hands.buffers);
            self.hands.pool.put(peer, over, connection);
        } else {
            connection.close();
        }
        match result {
            Ok(Concluded { response, reset, slow, excess, crowded_out, .. }) => Ok(Transaction {
                response,
                request_bytes: self.as_stored(request),
                ip: self.known_ip(),
                started: self.started,
                timings: self.timings,
                reused,
                secure: tls.is_some(),
                tls,
                reset,
                slow,
                crowded_out,
                excess,
            }),
            Err(Silence::Torn(_)) if reused => Err(Ended::Stale(request)),
            Err(Silence::Torn(failure) | Silence::Final(failure)) => Err(Ended::Failed(failure)),
        }
    }

    /// Receives until the response is complete, the stream ends or something breaks.
    async fn listen(
        &mut self,
        connection: &mut Connection,
        guard: &Guard,
        answer: &mut Answer,
        asked: Instant,
    ) -> Option<Broken> {
        let limits = &self.hands.fetch;
        let mut pace = Pace::new(limits.rate_min, limits.rate_grace);
        loop {
            let needed = answer.memory_after(RECEIVED_BYTES_MAX);
            let is_body = answer.has_head();
            if !self.memory.has(needed) && !self.wait_for_room(needed, guard, is_body.then_some(&mut pace)).await {
                // Before the head nothing is known about the peer; after it the deadline may have passed in the
                // meantime.
                answer.is_crowded_out = !is_body || !guard.is_expired();
                return None;
            }
            let before = answer.bytes;
            let mut take = |bytes: &[u8]| answer.take(bytes);
            let receive = connection.receive(&self.hands.buffers, guard, &mut take);
            let Some(received) = self.memory.unless_cut(receive).await else {
                answer.is_crowded_out = true;
                return None;
            };
            let came = answer.bytes - before;
            if came > 0 {
                let now = ring::now();
                if before == 0 {
                    self.timings.first_byte = now.since(asked);
                }
                // The head may take until the deadline; the body must keep its pace.
                let too_slow = if answer.has_head() { pace.came(now, came) } else { Instant::NEVER };
                guard.set(self.deadline.min(too_slow));
            }
            if answer.is_over() {
                return None;
            }
            match received {
                Ok(Received::Some) => {}
                Ok(Received::End) => {
                    answer.end();
                    return None;
                }
                Ok(Received::TornEnd) => {
                    answer.torn = true;
                    return None;
                }
                Err(broken) => return Some(broken),
            }
        }
    }

    /// Waits for memory of `needed` bytes; returns `false` if there is none. A body has a `pace`; its peer is not to
    /// blame for the time that this takes.
    async fn wait_for_room(&mut self, needed: usize, guard: &Guard, pace: Option<&mut Pace>) -> bool {
        if pace.is_some() {
            guard.set(self.deadline);
        }
        let since = ring::now();
        let has_room = self.memory.grow(needed, || guard.is_expired()).await;
        self.timings.waited += ring::now().since(since);
        if let Some(pace) = pace {
            let limits = &self.hands.fetch;
            *pace = Pace::new(limits.rate_min, limits.rate_grace);
            guard.set(self.deadline.min(pace.came(ring::now(), 0)));
        }
        has_room
    }

    fn conclude(&self, guard: &Guard, answer: Answer, ended: Option<Broken>) -> Result<Concluded, Silence> {
        let _stage = stage::enter(Stage::Http);
        add(&self.hands.counters.received_bytes, answer.bytes);
        let error = answer.error();
        let concluded =
            answer.conclude(self.expired(guard, Failure::FirstByteTimeout), ended).inspect_err(|silence| {
                if let (Silence::Final(Failure::Malformed), Some(error)) = (silence, error) {
                    self.hands.say(self.job.id, &error.to_string());
                }
            })?;
        // RFC 9110 section 15.5.8: this is the proxy's own answer, whatever the page is.
        match concluded.response.status {
            // It is tried again with the maximum time.
            _ if self.is_hurried && concluded.is_late => Err(Silence::Final(Failure::Hurried)),
            407 if self.hands.proxy.as_ref().is_some_and(|proxy| proxy.takes_whole(&self.job.url)) => {
                Err(Silence::Final(Failure::ProxyRefused))
            }
            _ => Ok(concluded),
        }
    }

    /// The peer's address, unless the proxy resolved it.
    fn known_ip(&self) -> Option<IpAddr> {
        let hidden = self.hands.proxy.as_ref().is_some_and(|proxy| proxy.hides_address(&self.job.url));
        (!hidden).then_some(self.ip)
    }

    /// `stage` when the guard's deadline has passed, or `Deadline` when it was the whole exchange's.
    fn expired(&self, guard: &Guard, stage: Failure) -> Option<Failure> {
        match guard.is_expired() {
            true if ring::now() >= self.deadline => Some(Failure::Deadline),
            true => Some(stage),
            false => None,
        }
    }
}

/// Why an address is not connected to, and which setting would allow it.
fn forbidden(ip: IpAddr, policy: PrivateAddresses) -> String {
    match policy {
        PrivateAddresses::LoopbackOnly => {
            format!("{ip}: \"loopback-only\", as for any crawl without agent.name, agent.url and agent.email")
        }
        _ => format!(
            "{ip}: \"{}\"; {}\"allow\" permits all, mine = true in [[politeness.host]] your own hosts",
            policy.as_str(),
            if ip.is_loopback() { "\"loopback\" admits loopback, " } else { "" }
        ),
    }
}

/// Bytes of memory of a complete response.
fn memory_of(response: &http::Response) -> usize {
    response.head_bytes.len() * 3 + response.body.capacity()
}

/// What one receive brings at most: a block, and what TLS had of a record before.
const RECEIVED_BYTES_MAX: usize = BLOCK_BYTES + (18 << 10);
