//! Opening a TCP connection: to one address, or to the first of several that answers (RFC 8305).
//!
//! Decides: the first address is tried at once; a further one when all before it have failed, or when
//! `fetch.attempt_delay` has passed since the last attempt began, while those go on (RFC 8305 section 5). The first
//! that connects wins; the others are dropped, which cancels their operation, and their sockets are closed with its
//! completion.
//! Politeness: the caller holds the claim for the first address. A further address is tried only when its own claim
//! is free. That claim is taken for it, kept until the exchange is done, and given back with the delay that any
//! request leaves behind. If another request runs there, or ran a moment ago, the address is skipped: dialing never
//! waits for a claim.
//! Invariants: it connects to no address that the call's policy forbids, further ones included. There is at most one
//! attempt per address of the call. Every attempt but the winner leaves no socket, no guard and no claim behind.
//! Limits: `fetch.connect_timeout` for each attempt, the call's deadline for all of them. At most [`FURTHER_MAX`]
//! further attempts are in flight on a shard, since each is an open file in addition to those of the fetches.
//! Leaves to others: which addresses, and in which order (the frontier).

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use super::{Hands, add};
use ringcrawl_base::Failure;
use ringcrawl_base::time::{Duration, Instant};
use ringcrawl_brain::politeness::{FurtherClaim, Ledger};
use ringcrawl_config::PrivateAddresses;
use ringcrawl_ring::{self as ring, Guard, Socket};

/// What to connect to.
pub(super) struct Call<'a> {
    /// The address that the caller has claimed.
    pub first: IpAddr,
    /// Further addresses of the same peer, in the order in which they are tried.
    pub others: &'a [IpAddr],
    /// The port, the same for all of them.
    pub port: u16,
    /// Which of them may be connected to.
    pub policy: PrivateAddresses,
    /// When the work on the connection must end.
    pub deadline: Instant,
}

/// An open connection and its guards.
pub(super) struct Line {
    pub socket: Socket,
    /// Over the socket; its deadline is still that of connecting.
    pub guard: Guard,
    /// The address that answered.
    pub ip: IpAddr,
    /// The claim on it, if it is a further address: keep it as long as the exchange lasts.
    pub claim: Option<AddressClaim>,
}

/// Connects. A forbidden first address ends the call: a server that answers with one may be manipulating DNS.
pub(super) async fn dial(hands: &Hands, call: &Call<'_>) -> Result<Line, Failure> {
    if !hands.may_connect(call.first, call.policy) {
        return Err(Failure::AddressForbidden);
    }
    if call.others.is_empty() { attempt(hands, call, call.first, None).await } else { race(hands, call).await }
}

type Attempt<'a> = Pin<Box<dyn Future<Output = Result<Line, Failure>> + 'a>>;

async fn race(hands: &Hands, call: &Call<'_>) -> Result<Line, Failure> {
    let mut attempts: Vec<Attempt<'_>> = vec![Box::pin(attempt(hands, call, call.first, None))];
    // Each is looked at once: a claim that is not free now belongs to another request.
    let mut others = call.others.iter().filter(|ip| hands.may_connect(**ip, call.policy));
    let mut pause = pin!(tokio::time::sleep(hands.fetch.attempt_delay));
    let mut first_failure = None;
    poll_fn(|context| {
        loop {
            let mut line = None;
            attempts.retain_mut(|attempt| match (&line, attempt.as_mut().poll(context)) {
                (_, Poll::Pending) => true,
                (_, Poll::Ready(Err(failure))) => {
                    first_failure.get_or_insert(failure);
                    false
                }
                (None, Poll::Ready(Ok(connected))) => {
                    line = Some(connected);
                    false
                }
                // Two at once: the earlier one wins.
                (Some(_), Poll::Ready(Ok(_))) => false,
            });
            if let Some(line) = line {
                return Poll::Ready(Ok(line));
            }
            // Polled last, so that it wakes this task again while there is an address left to try.
            if !attempts.is_empty() && pause.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            let next = others.find_map(|ip| Some((*ip, hands.further_claims.take(*ip, call)?)));
            match (next, first_failure) {
                (Some((ip, claim)), _) => {
                    add(&hands.counters.further_connects, 1);
                    attempts.push(Box::pin(attempt(hands, call, ip, Some(claim))));
                    pause.as_mut().reset(tokio::time::Instant::now() + hands.fetch.attempt_delay);
                }
                (None, Some(failure)) if attempts.is_empty() => return Poll::Ready(Err(failure)),
                (None, _) => return Poll::Pending,
            }
        }
    })
    .await
}

/// Connects to `ip`, which the policy allows.
async fn attempt(hands: &Hands, call: &Call<'_>, ip: IpAddr, claim: Option<AddressClaim>) -> Result<Line, Failure> {
    let socket = hands.sources.socket(ip).map_err(|_| Failure::ConnectFailed)?;
    let connect_by = call.deadline.min(ring::now() + hands.fetch.connect_timeout);
    let guard = hands.deadlines.guard(&socket, connect_by);
    add(&hands.counters.connects, 1);
    match socket.connect(SocketAddr::new(ip, call.port), &guard).await {
        Ok(()) => Ok(Line { socket, guard, ip, claim: claim.map(AddressClaim::connected) }),
        Err(error) => {
            let failure = match guard.is_expired() {
                true if ring::now() >= call.deadline => Failure::Deadline,
                true => Failure::ConnectTimeout,
                false => failure_of(&error),
            };
            drop(guard);
            socket.close();
            Err(failure)
        }
    }
}

fn failure_of(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Failure::ConnectRefused,
        io::ErrorKind::TimedOut => Failure::ConnectTimeout,
        _ => Failure::ConnectFailed,
    }
}

/// Further attempts that may be in flight at once on a shard; beyond that a fetch only uses its first address.
pub const FURTHER_MAX: usize = 64;

/// Grants claims on further addresses.
pub(super) struct FurtherClaims {
    ledger: Arc<Ledger>,
    under_way: Rc<Cell<usize>>,
    /// The delay that an exchange leaves behind at an address; zero: no claims are kept.
    pause: Duration,
}

impl FurtherClaims {
    pub(super) fn new(ledger: Arc<Ledger>, pause: Duration) -> FurtherClaims {
        FurtherClaims { ledger, under_way: Rc::default(), pause }
    }

    pub(super) fn at(self, ledger: Arc<Ledger>) -> FurtherClaims {
        FurtherClaims { ledger, ..self }
    }

    /// A claim on `ip` for `call`, if it is free. The caller's own claim covers addresses with the same key.
    fn take(&self, ip: IpAddr, call: &Call<'_>) -> Option<AddressClaim> {
        if self.under_way.get() >= FURTHER_MAX {
            return None;
        }
        let claim = FurtherClaim::new(call.first, ip, call.deadline, self.pause);
        if claim.is_some_and(|claim| !claim.take(&self.ledger, ring::now())) {
            return None;
        }
        let held = claim.map(|claim| ClaimGuard { ledger: Arc::clone(&self.ledger), claim });
        self.under_way.set(self.under_way.get() + 1);
        Some(AddressClaim { _held: held, permit: Some(Permit(Rc::clone(&self.under_way))) })
    }
}

/// A claim on an address; dropping it releases it.
pub(super) struct AddressClaim {
    _held: Option<ClaimGuard>,
    permit: Option<Permit>,
}

impl AddressClaim {
    /// The attempt is done: its connection is the fetch's only one.
    fn connected(mut self) -> AddressClaim {
        self.permit = None;
        self
    }
}

/// A permit for one of the further attempts in flight.
struct Permit(Rc<Cell<usize>>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

struct ClaimGuard {
    ledger: Arc<Ledger>,
    claim: FurtherClaim,
}

impl Drop for ClaimGuard {
    fn drop(&mut self) {
        self.claim.release(&self.ledger, ring::now());
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    use super::*;
    use ringcrawl_config::Config;
    use ringcrawl_ring::Runtime;

    fn at(last: u8) -> IpAddr {
        IpAddr::V4(Ipv4Addr::new(127, 0, 0, last))
    }

    /// Hands that share `ledger`; the pause between two attempts is so long that only failures bring the next.
    fn hands(ledger: &Arc<Ledger>, change: impl FnOnce(&mut Config)) -> Hands {
        let mut config = Config::default();
        config.fetch.private_addresses = PrivateAddresses::LoopbackOnly;
        config.fetch.attempt_delay = Duration::from_secs(60);
        config.fetch.in_flight_max = 8;
        change(&mut config);
        Hands::new(&config, "test/1.0".to_owned()).expect("hands").sharing(Arc::clone(ledger))
    }

    fn call(others: &[IpAddr], port: u16) -> Call<'_> {
        let deadline = ring::now() + Duration::from_secs(30);
        Call { first: at(1), others, port, policy: PrivateAddresses::LoopbackOnly, deadline }
    }

    /// A port at which only the listeners under test listen.
    fn listeners(lasts: &[u8]) -> (u16, Vec<TcpListener>) {
        for _ in 0..50 {
            let port = TcpListener::bind((at(200), 0)).and_then(|it| it.local_addr()).expect("a free port").port();
            let bound: Result<Vec<_>, _> = lasts.iter().map(|last| TcpListener::bind((at(*last), port))).collect();
            if let Ok(bound) = bound {
                return (port, bound);
            }
        }
        panic!("no port is free at all addresses");
    }

    /// A listener at `addr` that answers no connection request: its backlog is full.
    fn tarpit(addr: SocketAddr) -> (tokio::net::TcpListener, Vec<std::io::Result<TcpStream>>) {
        let socket = tokio::net::TcpSocket::new_v4().expect("socket");
        socket.set_reuseaddr(true).expect("option");
        socket.bind(addr).expect("bind");
        let listener = socket.listen(1).expect("listen");
        let fill = (0..2).map(|_| TcpStream::connect_timeout(&addr, Duration::from_millis(200))).collect();
        (listener, fill)
    }

    /// Connection requests to `addr` that are in flight on this machine: state 02 of /proc/net/tcp.
    fn requests_under_way(addr: SocketAddr) -> usize {
        let IpAddr::V4(ip) = addr.ip() else { return 0 };
        let to = format!(" {:08X}:{:04X} 02 ", u32::from_ne_bytes(ip.octets()), addr.port());
        std::fs::read_to_string("/proc/net/tcp").expect("sockets").lines().filter(|line| line.contains(&to)).count()
    }

    #[test]
    fn a_silent_address_holds_up_no_other_and_is_let_go() {
        Runtime::new(64).expect("io_uring").block_on(async {
            let (port, live) = listeners(&[2]);
            let silent = SocketAddr::new(at(1), port);
            let _tarpit = tarpit(silent);
            let ledger = Arc::new(Ledger::new(1 << 16));
            let hands = hands(&ledger, |config| config.fetch.attempt_delay = Duration::from_millis(100));
            let others = [at(2)];
            for round in 1..=5 {
                let line = dial(&hands, &call(&others, port)).await.map_err(|_| "failed").expect("the second answers");
                assert_eq!(line.ip, at(2));
                assert_eq!(hands.deadlines.live(), 1, "the winner's guard alone");
                assert_eq!((hands.counters.connects.get(), hands.counters.further_connects.get()), (2 * round, round));
                drop(line);
                // A released claim leaves its delay behind at the address.
                tokio::time::sleep(hands.further_claims.pause + Duration::from_millis(5)).await;
            }
            assert_eq!((hands.deadlines.live(), hands.further_claims.under_way.get()), (0, 0));
            for _ in 0..500 {
                if requests_under_way(silent) == 0 {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            assert_eq!(requests_under_way(silent), 0, "a loser is closed");
            drop(live);
        });
    }

    #[test]
    fn a_refusal_brings_the_next_at_once_and_the_first_failure_is_told() {
        Runtime::new(64).expect("io_uring").block_on(async {
            let (port, live) = listeners(&[4]);
            let ledger = Arc::new(Ledger::new(1 << 16));
            // Its claims would be skipped otherwise: they follow each other immediately.
            let hands = hands(&ledger, |config| config.politeness.ip_delay = Duration::ZERO);
            let others = [at(2), at(3), at(4), at(5)];
            let line = dial(&hands, &call(&others, port)).await.map_err(|_| "failed").expect("the fourth answers");
            assert_eq!((line.ip, hands.counters.connects.get()), (at(4), 4));
            drop((line, live));
            // The first is refused, the others are unreachable.
            let elsewhere = ["::1".parse().expect("address"), at(3)];
            assert_eq!(dial(&hands, &call(&elsewhere, port)).await.err(), Some(Failure::ConnectRefused));
            assert_eq!((hands.deadlines.live(), hands.counters.connects.get()), (0, 7));
            // No permit for a further attempt is left: only the first address is tried.
            let places: Vec<_> =
                (0..FURTHER_MAX).map_while(|_| hands.further_claims.take(at(9), &call(&[], port))).collect();
            assert_eq!((places.len(), hands.further_claims.under_way.get()), (FURTHER_MAX, FURTHER_MAX));
            assert_eq!(dial(&hands, &call(&others, port)).await.err(), Some(Failure::ConnectRefused));
            assert_eq!(hands.counters.connects.get(), 8);
            let claims: Vec<AddressClaim> = places.into_iter().map(AddressClaim::connected).collect();
            assert_eq!((claims.len(), hands.further_claims.under_way.get()), (FURTHER_MAX, 0));
        });
    }

    #[test]
    fn forbidden_addresses_are_no_way_out() {
        Runtime::new(64).expect("io_uring").block_on(async {
            let (port, _live) = listeners(&[2]);
            let ledger = Arc::new(Ledger::new(1 << 16));
            let hands = hands(&ledger, |config| config.politeness.ip_delay = Duration::ZERO);
            let others = ["10.0.0.1", "169.254.169.254", "::ffff:10.0.0.1"].map(|addr| addr.parse().expect("address"));
            assert_eq!(dial(&hands, &call(&others, port)).await.err(), Some(Failure::ConnectRefused));
            assert_eq!(hands.counters.connects.get(), 1);
            let others = [others[0], at(2)];
            let line = dial(&hands, &call(&others, port)).await.map_err(|_| "failed").expect("the last answers");
            assert_eq!((line.ip, hands.counters.connects.get()), (at(2), 3));
            // Nor is a way around one: if such an address comes first, nothing is connected to.
            let bad = Call { first: others[0], ..call(&others[1..], port) };
            assert_eq!(dial(&hands, &bad).await.err(), Some(Failure::AddressForbidden));
            assert_eq!(hands.counters.connects.get(), 3);
        });
    }

    #[test]
    fn a_further_address_has_its_turn_or_is_left_alone() {
        Runtime::new(64).expect("io_uring").block_on(async {
            let (port, _live) = listeners(&[2, 3]);
            let ledger = Arc::new(Ledger::new(1 << 16));
            let hands = hands(&ledger, |config| config.politeness.ip_delay = Duration::from_secs(3_600));
            let claim = |ip| ledger.claim(ip, ring::now(), ring::now() + Duration::from_secs(60));
            assert_eq!(claim(at(2)), Ok(()), "another's request is under way");
            let others = [at(2), at(3)];
            let line = dial(&hands, &call(&others, port)).await.map_err(|_| "failed").expect("the third answers");
            assert_eq!((line.ip, hands.counters.connects.get()), (at(3), 2));
            assert_eq!(claim(at(3)), Err(None), "as long as the line is used");
            drop(line);
            assert!(matches!(claim(at(3)), Err(Some(free)) if free > ring::now()), "and then the delay");
            // Both have had their claim now.
            assert_eq!(dial(&hands, &call(&others, port)).await.err(), Some(Failure::ConnectRefused));
            assert_eq!(hands.counters.connects.get(), 3);
        });
    }
}
