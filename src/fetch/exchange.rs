//! One exchange: connect or reuse, handshake, send, receive.
//!
//! Decides: connect, handshake and first byte have their own timeouts, all under one whole deadline, all
//! kept by one guard that moves from stage to stage. A response whose head is complete is kept as far as
//! it came, and marked, whatever ends it; before that the exchange is a failure.
//! A kept connection that breaks before a response byte was closed by its peer meanwhile: the request goes
//! out once more on a new connection and nothing is counted against the host (RFC 9112 section 9.3.1).
//! Invariants: a connection is kept only after a whole response, with nothing behind it, under a deadline
//! that has not passed.
//! Limits: the retry happens under the same whole deadline.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use super::connection::{Broken, Connection, Received};
use super::pool::Peer;
use super::{Exchange, Hands, Timings, add, address, tls};
use crate::http::{HttpError, Method, Progress, Request, ResponseReader};
use crate::outcome::{Failure, FetchJob, Truncated};
use crate::ring::{self, Guard, Socket};
use crate::stage::{self, Stage};
use crate::time::{Instant, UnixTime};
use crate::url::Scheme;

pub(super) async fn run(hands: &Rc<Hands>, job: &FetchJob) -> Result<Exchange, Failure> {
    let ip = job.addr.ok_or(Failure::DnsNotFound)?;
    if !address::allowed(ip, hands.fetch.private_addresses) {
        return Err(Failure::AddressForbidden);
    }
    let begun = ring::now();
    if job.deadline <= begun {
        return Err(Failure::Deadline);
    }
    let mut fetch = Fetch {
        hands,
        job,
        ip,
        started: ring::unix_now(),
        begun,
        deadline: job.deadline.min(begun + hands.fetch.deadline),
        timings: Timings::default(),
    };
    let peer = Peer::new(&job.url, ip);
    let mut request = fetch.request();
    if let Some(connection) = hands.pool.take(&peer) {
        add(&hands.counters.reuses, 1);
        let guard = hands.deadlines.guard(connection.socket(), fetch.deadline);
        match fetch.talk(connection, guard, &peer, request, true).await {
            Ok(exchange) => return Ok(exchange),
            Err(Ended::Failed(failure)) => return Err(failure),
            Err(Ended::Stale(bytes)) => {
                add(&hands.counters.stale_reuses, 1);
                request = bytes;
            }
        }
    }
    let (connection, guard) = fetch.open().await?;
    fetch.talk(connection, guard, &peer, request, false).await.map_err(|ended| match ended {
        Ended::Failed(failure) => failure,
        Ended::Stale(_) => Failure::ClosedEarly,
    })
}

/// How talking over a connection ended without a response.
enum Ended {
    Failed(Failure),
    /// The connection had been kept and was closed meanwhile: the request, unanswered.
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
    timings: Timings,
}

impl Fetch<'_> {
    fn request(&self) -> Vec<u8> {
        let _stage = stage::enter(Stage::Http);
        let Fetch { hands, job, .. } = self;
        let (user_agent, from) = (&hands.agent_ua, &hands.from);
        Request { method: Method::Get, url: &job.url, user_agent, from, extra: &[] }.to_bytes()
    }

    /// A new connection, TLS included.
    async fn open(&mut self) -> Result<(Connection, Guard), Failure> {
        let limits = &self.hands.fetch;
        let socket = Socket::new(self.ip).map_err(|_| Failure::ConnectFailed)?;
        let start = ring::now();
        let guard = self.hands.deadlines.guard(&socket, self.deadline.min(start + limits.connect_timeout));
        let mut connection = Connection::new(socket);
        add(&self.hands.counters.connects, 1);
        if let Err(error) = connection.connect(SocketAddr::new(self.ip, self.job.url.port()), &guard).await {
            let failure = self.expired(&guard, Failure::ConnectTimeout).unwrap_or_else(|| connect_failure(&error));
            drop(guard);
            connection.close();
            return Err(failure);
        }
        let connected = ring::now();
        self.timings.connect = connected.since(start);
        if self.job.url.scheme() == Scheme::Https {
            guard.set(self.deadline.min(connected + limits.tls_timeout));
            let host = self.job.url.host();
            let hands = self.hands;
            if let Err(broken) = connection.handshake(&hands.tls, host, &hands.buffers, &guard).await {
                let failure = self.expired(&guard, Failure::TlsTimeout).unwrap_or_else(|| match broken {
                    Broken::Tls(error) => tls::failure_of(&error),
                    Broken::Stream => Failure::TlsFailed,
                });
                drop(guard);
                connection.close();
                return Err(failure);
            }
            add(&hands.counters.handshakes, 1);
            add(&hands.counters.resumed, u64::from(connection.is_resumed()));
            self.timings.tls = ring::now().since(connected);
        }
        guard.set(self.deadline);
        Ok((connection, guard))
    }

    /// Sends the request and receives the response; keeps or closes the connection.
    async fn talk(
        &mut self,
        mut connection: Connection,
        guard: Guard,
        peer: &Peer,
        request: Vec<u8>,
        reused: bool,
    ) -> Result<Exchange, Ended> {
        let (sent, request) = connection.send(request, &guard).await;
        let asked = ring::now();
        let mut answer = Answer::new(self.hands);
        let ended = match sent {
            // A server may answer and close before it has read all: what it said is still there to read.
            Ok(()) | Err(Broken::Stream) if !guard.is_expired() => {
                guard.set(self.deadline.min(asked + self.hands.fetch.first_byte_timeout));
                self.listen(&mut connection, &guard, &mut answer, asked).await
            }
            Ok(()) => Some(Broken::Stream),
            Err(broken) => Some(broken),
        };
        self.timings.total = ring::now().since(self.begun);
        let result = self.conclude(&guard, answer, ended);
        let tls = connection.tls_info().cloned();
        // Whether it is quiet is looked at when it is to be used again: to look twice would be one system call more.
        let keep = matches!(&result, Ok(concluded) if concluded.keep) && !guard.is_expired();
        drop(guard);
        if keep {
            self.hands.pool.put(peer.clone(), connection);
        } else {
            connection.close();
        }
        match result {
            Ok(Concluded { response, reset, excess, .. }) => Ok(Exchange {
                response,
                request_bytes: request,
                ip: self.ip,
                started: self.started,
                timings: self.timings,
                reused,
                secure: tls.is_some(),
                tls,
                reset,
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
        let mut buffer = self.hands.buffers.take().await;
        loop {
            let before = answer.bytes;
            let received;
            (received, buffer) = connection.receive(buffer, guard, &mut |bytes| answer.take(bytes)).await;
            if before == 0 && answer.bytes > 0 {
                self.timings.first_byte = ring::now().since(asked);
                guard.set(self.deadline);
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

    /// The response, and how it stands with the connection; or why there is none.
    fn conclude(&self, guard: &Guard, mut answer: Answer, ended: Option<Broken>) -> Result<Concluded, Silence> {
        let _stage = stage::enter(Stage::Http);
        add(&self.hands.counters.received_bytes, answer.bytes);
        let expired = self.expired(guard, Failure::FirstByteTimeout);
        let over = matches!(answer.state, Ok(Progress::Done));
        // An error of the reader is one that leaves nothing worth keeping; all others it marks by itself.
        if answer.state.is_err() || !over && !answer.reader.has_head() {
            return Err(self.silence(&answer, expired, ended));
        }
        if !over {
            answer.reader.cut(if expired.is_some() { Truncated::Time } else { Truncated::Disconnect });
        }
        let bytes = answer.bytes;
        let reset = !over && expired.is_none() && ended.is_some();
        let closing = answer.ended || answer.torn || ended.is_some();
        let response = answer.reader.into_response().ok_or(Silence::Final(Failure::Malformed))?;
        let keep =
            over && !closing && response.keep_alive && response.truncated.is_none() && response.wire_bytes == bytes;
        let excess = response.truncated.is_none() && response.wire_bytes < bytes;
        Ok(Concluded { response, keep, reset, excess })
    }

    /// Why no head came.
    fn silence(&self, answer: &Answer, expired: Option<Failure>, ended: Option<Broken>) -> Silence {
        if let Some(failure) = expired {
            // After the first byte only the whole deadline can pass.
            return Silence::Final(if answer.bytes > 0 { Failure::Deadline } else { failure });
        }
        let failure = match (&answer.state, ended) {
            // An end in the middle of the head is what the reader calls closed early; nothing at all is too.
            (Err(HttpError::ClosedEarly), _) => Failure::ClosedEarly,
            (Err(error), _) => return Silence::Final(error.failure()),
            (_, Some(Broken::Tls(_))) => Failure::TlsFailed,
            (_, Some(Broken::Stream)) => Failure::Reset,
            (_, None) => Failure::ClosedEarly,
        };
        if answer.bytes == 0 { Silence::Torn(failure) } else { Silence::Final(failure) }
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

/// A response, whole or not.
struct Concluded {
    response: crate::http::Response,
    /// The connection may be kept.
    keep: bool,
    /// It broke before the response's end.
    reset: bool,
    /// More came than the response.
    excess: bool,
}

/// Why there is no response.
enum Silence {
    /// The connection broke before a byte came.
    Torn(Failure),
    /// Anything else.
    Final(Failure),
}

/// What has come of the response.
struct Answer {
    reader: ResponseReader,
    state: Result<Progress, HttpError>,
    /// Plain bytes received, those behind the response included.
    bytes: u64,
    /// The stream ended as it should.
    ended: bool,
    /// The stream ended below TLS.
    torn: bool,
}

impl Answer {
    fn new(hands: &Hands) -> Answer {
        let reader = ResponseReader::new(Method::Get, hands.limits);
        Answer { reader, state: Ok(Progress::More), bytes: 0, ended: false, torn: false }
    }

    fn take(&mut self, bytes: &[u8]) {
        let _stage = stage::enter(Stage::Http);
        self.bytes += bytes.len() as u64;
        if !self.is_over() {
            self.state = self.reader.feed(bytes);
        }
    }

    fn end(&mut self) {
        self.ended = true;
        if !self.is_over() {
            self.state = self.reader.end_of_stream();
        }
    }

    fn is_over(&self) -> bool {
        !matches!(self.state, Ok(Progress::More))
    }
}

fn connect_failure(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Failure::ConnectRefused,
        io::ErrorKind::TimedOut => Failure::ConnectTimeout,
        _ => Failure::ConnectFailed,
    }
}
