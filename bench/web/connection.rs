//! A connection: requests in, responses out, until one side closes it.
//!
//! Decides: HTTP/1.1 with keep-alive (RFC 9112), one request after the other as pipelining requires; only GET and
//! HEAD. The Host field selects the site. Head and body leave in one write. A request with a body is answered and the
//! connection closed: nothing here accepts a body.
//! Invariants: no byte from the client can panic it or size an allocation beyond `HEAD_BYTES_MAX`; the framing of
//! every response lets the client find its end.
//! Limits: heads of 16 KiB and 64 fields; 60 s without a byte close the connection, in either direction.

use std::cell::RefCell;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::answer::Answer;
use super::conduct::{After, Manner, Wire, carry_out};
use super::faults::Fault;
use super::faults::script::{Question, Script};
use super::model::Model;
use super::place::{Item, OriginVariant, Place};
use super::site::push_number;
use super::watch::{Arrival, Keys, Observer};
use ringcrawl_ring::unix_now;
use ringcrawl_url::Scheme;

/// What the connections of one thread share.
#[derive(Debug)]
pub(super) struct ConnectionContext {
    /// The web.
    pub model: Arc<Model>,
    /// Counts requests and responses.
    pub observer: Arc<Observer>,
    /// Unused response buffers: bodies are long, connections are many, and few write at the same time.
    pub buffers: RefCell<Vec<Vec<u8>>>,
    /// Responses after which a connection is closed; 0: no limit.
    pub requests_per_connection: u32,
}

/// Serves one connection to its end.
pub(super) async fn serve<S: Wire>(
    mut stream: S,
    scheme: Scheme,
    address: Ipv4Addr,
    shared: &ConnectionContext,
) -> io::Result<()> {
    let mut input = Vec::with_capacity(2_048);
    let mut left = shared.requests_per_connection.checked_sub(1).unwrap_or(u32::MAX);
    loop {
        let mut output = shared.buffers.borrow_mut().pop().unwrap_or_default();
        let step = respond(&input, left == 0, scheme, address, shared, &mut output);
        let ServeStep::Respond { consumed, status, key, keep, manner } = step else {
            put_back(shared, output);
            let read = timeout(IDLE_MAX, stream.read_buf(&mut input)).await.map_err(|_| io::ErrorKind::TimedOut)??;
            if read == 0 {
                return Ok(());
            }
            continue;
        };
        if !manner.wait.is_zero() {
            tokio::time::sleep(manner.wait).await;
        }
        let ended = Instant::now();
        let written = timeout(IDLE_MAX, async {
            stream.write_all(&output).await?;
            stream.flush().await
        })
        .await;
        shared.observer.finish(key, status, output.len() as u64, ended);
        if let Some(rest) = manner.rest {
            shared.observer.rest(key, ended + rest);
        }
        put_back(shared, output);
        written.map_err(|_| io::ErrorKind::TimedOut)??;
        input.drain(..consumed.min(input.len()));
        left = left.saturating_sub(1);
        match carry_out(&mut stream, manner.then, &mut input).await? {
            After::Next if keep => {}
            After::Next | After::Close => return close(stream).await,
            After::Drop => return Ok(()),
        }
    }
}

/// Half-closes and continues reading for a moment, so that a reset does not destroy the response (RFC 9112 section
/// 9.6).
async fn close<S: Wire>(mut stream: S) -> io::Result<()> {
    stream.shutdown().await?;
    let mut rest = [0u8; 1_024];
    let linger = async {
        let mut left = LINGER_BYTES_MAX;
        while let Ok(read @ 1..) = stream.read(&mut rest).await {
            let Some(still) = left.checked_sub(read) else { return };
            left = still;
        }
    };
    let _ = timeout(LINGER_MAX, linger).await;
    Ok(())
}

fn put_back(shared: &ConnectionContext, mut buffer: Vec<u8>) {
    let mut buffers = shared.buffers.borrow_mut();
    if buffers.len() < BUFFERS_KEPT_MAX {
        buffer.clear();
        buffers.push(buffer);
    }
}

/// No byte for this long in either direction ends a connection.
const IDLE_MAX: Duration = Duration::from_secs(60);
/// How long and how many bytes to read after the last response.
const LINGER_MAX: Duration = Duration::from_secs(1);
const LINGER_BYTES_MAX: usize = 64 * 1_024;
/// Buffers kept per thread; the largest page of the `web` profile needs about 1.2 MB.
const BUFFERS_KEPT_MAX: usize = 16;
/// Longest request head.
const HEAD_BYTES_MAX: usize = 16 * 1_024;
/// Most request fields.
const FIELDS_MAX: usize = 64;
/// Size of a chunk if a site sends chunks.
const CHUNK_BYTES: usize = 8 * 1_024;

enum ServeStep {
    /// The request is not complete.
    Read,
    /// The response is in the output.
    Respond { consumed: usize, status: u16, key: Option<Keys>, keep: bool, manner: Manner },
}

/// The parts of a request that the connection needs.
struct Request<'a> {
    host: &'a str,
    path_and_query: &'a str,
    is_head: bool,
    is_old: bool,
    keep: bool,
    accepts_gzip: bool,
    if_none_match: Option<&'a str>,
}

/// With `last` the connection ends behind this response.
fn respond(
    input: &[u8],
    last: bool,
    scheme: Scheme,
    address: Ipv4Addr,
    shared: &ConnectionContext,
    output: &mut Vec<u8>,
) -> ServeStep {
    if input.is_empty() {
        return ServeStep::Read;
    }
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut parsed = httparse::Request::new(&mut fields);
    let refused = match parsed.parse(input) {
        Ok(httparse::Status::Partial) if input.len() < HEAD_BYTES_MAX => return ServeStep::Read,
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => 431,
        Err(httparse::Error::Version) => 505,
        Err(_) => 400,
        Ok(httparse::Status::Complete(consumed)) => match understand(&parsed) {
            Ok(mut request) => {
                request.keep &= !last;
                return answer(&request, consumed, scheme, address, shared, output);
            }
            Err(status) => status,
        },
    };
    let answer = Answer { status: refused, content_type: "text/plain", location: None, gzip: false, chunked: false };
    push_head(&answer, 0, false, output);
    ServeStep::Respond { consumed: input.len(), status: refused, key: None, keep: false, manner: Manner::PLAIN }
}

fn answer(
    request: &Request,
    consumed: usize,
    scheme: Scheme,
    address: Ipv4Addr,
    shared: &ConnectionContext,
    output: &mut Vec<u8>,
) -> ServeStep {
    let place = shared.model.locate(scheme, request.host, request.path_and_query);
    let key = shared.observer.arrive(&Arrival {
        place: place.as_ref(),
        scheme,
        host: request.host,
        path_and_query: request.path_and_query,
        is_get: !request.is_head,
        address,
    });
    let mut manner = Manner::PLAIN;
    if let Some(script) = place.as_ref().and_then(|place| script(place, request, shared)) {
        manner = Manner { wait: script.wait, then: script.then, rest: script.retry_after };
        if let Some((status, bytes)) = script.message {
            *output = bytes;
            return ServeStep::Respond { consumed, status, key, keep: request.keep, manner };
        }
    }
    // The body is written first, because the head states its length; it starts where a usual head ends.
    output.resize(HEAD_ROOM_BYTES, 0);
    let mut answer = shared.model.answer(place.as_ref(), request.path_and_query, request.accepts_gzip, output);
    answer.chunked &= !request.is_old;
    let body_bytes = output.len() - HEAD_ROOM_BYTES;
    let mut head = Vec::with_capacity(HEAD_ROOM_BYTES);
    push_head(&answer, body_bytes, request.keep, &mut head);
    if request.is_head {
        *output = head;
    } else if answer.chunked {
        let body = output.split_off(HEAD_ROOM_BYTES);
        *output = head;
        push_chunks(&body, output);
    } else {
        // Writes the head into the room before the body and removes the rest of the room: the body moves, unless the
        // head fits exactly.
        let room = HEAD_ROOM_BYTES.saturating_sub(head.len());
        match output.get_mut(room..HEAD_ROOM_BYTES) {
            Some(space) if space.len() == head.len() && room == 0 => space.copy_from_slice(&head),
            _ => drop(output.splice(..HEAD_ROOM_BYTES, head)),
        }
    }
    ServeStep::Respond { consumed, status: answer.status, key, keep: request.keep, manner }
}

/// The fault at `place`, if it has one.
fn script(place: &Place, request: &Request, shared: &ConnectionContext) -> Option<Script> {
    let Place { variant: OriginVariant::Canonical, item: Item::Fault(fault, spot), .. } = *place else { return None };
    if request.is_head {
        return None;
    }
    let counts = matches!(fault, Fault::RetryAfter | Fault::Changing);
    let question = Question {
        asked_before: if counts { shared.observer.asked_before(request.host, request.path_and_query) } else { 0 },
        if_none_match: request.if_none_match,
        now: unix_now(),
    };
    Script::new(fault, spot, &question)
}

/// Heads are padded to this length, so that the body need not move.
const HEAD_ROOM_BYTES: usize = 256;

/// Reads the request from `parsed`; an error is the status of a refusal.
fn understand<'a>(parsed: &httparse::Request<'_, 'a>) -> Result<Request<'a>, u16> {
    let method = parsed.method.unwrap_or_default();
    let mut host: Option<&'a str> = None;
    let mut keep = parsed.version == Some(1);
    let mut accepts_gzip = false;
    let mut if_none_match = None;
    for field in parsed.headers.iter() {
        let value = std::str::from_utf8(field.value).map_err(|_| 400u16)?;
        if field.name.eq_ignore_ascii_case("host") {
            // RFC 9112 section 3.2: exactly one.
            if host.replace(value).is_some() {
                return Err(400);
            }
        } else if field.name.eq_ignore_ascii_case("connection") {
            for option in value.split(',').map(str::trim) {
                if option.eq_ignore_ascii_case("close") {
                    keep = false;
                } else if option.eq_ignore_ascii_case("keep-alive") && parsed.version == Some(0) {
                    keep = true;
                }
            }
        } else if field.name.eq_ignore_ascii_case("accept-encoding") {
            accepts_gzip |= value.split(',').any(takes_gzip);
        } else if field.name.eq_ignore_ascii_case("if-none-match") {
            if_none_match = Some(value);
        } else if field.name.eq_ignore_ascii_case("transfer-encoding")
            || (field.name.eq_ignore_ascii_case("content-length") && value.trim() != "0")
        {
            return Err(413);
        }
    }
    if method != "GET" && method != "HEAD" {
        return Err(405);
    }
    let target = parsed.path.unwrap_or_default();
    // Absolute form (RFC 9112 section 3.2.2): its authority wins over Host.
    let (authority, path_and_query) = match target.split_once("://") {
        Some((_, rest)) if !target.starts_with('/') => {
            let path_start = rest.find('/').unwrap_or(rest.len());
            let (authority, path) = rest.split_at_checked(path_start).ok_or(400u16)?;
            (Some(authority), if path.is_empty() { "/" } else { path })
        }
        _ => (host, target),
    };
    if (host.is_none() && parsed.version == Some(1)) || !path_and_query.starts_with('/') {
        return Err(400);
    }
    let authority = authority.ok_or(400u16)?;
    Ok(Request {
        host: authority.split_once(':').map_or(authority, |(host, _)| host),
        path_and_query,
        is_head: method == "HEAD",
        is_old: parsed.version == Some(0),
        keep,
        accepts_gzip,
        if_none_match,
    })
}

/// Whether an element of Accept-Encoding takes gzip (RFC 9110 section 12.5.3).
fn takes_gzip(element: &str) -> bool {
    let mut parts = element.split(';').map(str::trim);
    let coding = parts.next().unwrap_or_default();
    let refused =
        parts.any(|part| part.strip_prefix("q=").is_some_and(|weight| weight.chars().all(|c| matches!(c, '0' | '.'))));
    (coding.eq_ignore_ascii_case("gzip") || coding.eq_ignore_ascii_case("x-gzip")) && !refused
}

fn push_head(answer: &Answer, body_bytes: usize, keep: bool, out: &mut Vec<u8>) {
    let reason: &[u8] = match answer.status {
        200 => b"OK",
        301 => b"Moved Permanently",
        302 => b"Found",
        307 => b"Temporary Redirect",
        404 => b"Not Found",
        405 => b"Method Not Allowed",
        421 => b"Misdirected Request",
        _ => b"Refused",
    };
    out.extend_from_slice(b"HTTP/1.1 ");
    push_number(u64::from(answer.status), out);
    out.push(b' ');
    out.extend_from_slice(reason);
    out.extend_from_slice(b"\r\nContent-Type: ");
    out.extend_from_slice(answer.content_type.as_bytes());
    if let Some(location) = &answer.location {
        out.extend_from_slice(b"\r\nLocation: ");
        out.extend_from_slice(location.as_bytes());
    }
    if answer.content_type.starts_with("text/html") {
        out.extend_from_slice(b"\r\nVary: Accept-Encoding");
    }
    if answer.gzip {
        out.extend_from_slice(b"\r\nContent-Encoding: gzip");
    }
    if answer.status == 405 {
        out.extend_from_slice(b"\r\nAllow: GET, HEAD");
    }
    if !keep {
        out.extend_from_slice(b"\r\nConnection: close");
    }
    if answer.chunked {
        out.extend_from_slice(b"\r\nTransfer-Encoding: chunked");
    } else {
        out.extend_from_slice(b"\r\nContent-Length: ");
        push_number(body_bytes as u64, out);
    }
    const SERVER: &[u8] = b"\r\nServer: ringcrawl-web";
    out.extend_from_slice(SERVER);
    // A field that pads usual heads to one length.
    let padding = HEAD_ROOM_BYTES.saturating_sub(out.len() + PADDING_NAME.len() + END.len());
    if out.len() + PADDING_NAME.len() + END.len() < HEAD_ROOM_BYTES {
        out.extend_from_slice(PADDING_NAME);
        out.resize(out.len() + padding, b'.');
    }
    out.extend_from_slice(END);
}

const PADDING_NAME: &[u8] = b"\r\nX-Padding: ";
const END: &[u8] = b"\r\n\r\n";

/// Appends `body` in chunks (RFC 9112 section 7.1), with an extension now and then.
fn push_chunks(body: &[u8], out: &mut Vec<u8>) {
    for (index, chunk) in body.chunks(CHUNK_BYTES).enumerate() {
        let extension = if index % 3 == 1 { ";part=more" } else { "" };
        out.extend_from_slice(format!("{:x}{extension}\r\n", chunk.len()).as_bytes());
        out.extend_from_slice(chunk);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"0\r\n\r\n");
}

#[cfg(test)]
mod tests {
    use super::super::draw::{Draw, Purpose};
    use super::super::model::ModelConfig;
    use super::*;
    use ringcrawl_config::Operators;

    fn shared() -> ConnectionContext {
        let model = Arc::new(Model::new(ModelConfig { https_share: 0.0, ..ModelConfig::default() }).unwrap());
        let observer = Arc::new(Observer::new(Arc::clone(&model), true, Operators::default()));
        ConnectionContext { model, observer, buffers: RefCell::default(), requests_per_connection: 0 }
    }

    #[test]
    fn hostile_requests_get_a_framed_answer_or_none() {
        let shared = shared();
        let host = shared.model.site(0).unwrap().hosts().remove(0);
        let good = format!(
            "GET /news/?id=7&x=y HTTP/1.1\r\nHost: {host}:8080\r\nAccept-Encoding: gzip;q=0.5, br\r\n\
             Connection: close, x\r\n\r\n"
        );
        let mut draw = Draw::new(6, Purpose::Pool, 0, 0);
        let mut answered = 0;
        for _ in 0..30_000 {
            let mut bad = good.clone().into_bytes();
            for _ in 0..=draw.below(5) {
                let at = draw.below(bad.len() as u64) as usize;
                match draw.below(3) {
                    0 => bad[at] = draw.bits() as u8,
                    1 => drop(bad.remove(at)),
                    _ => bad.insert(at, b" \r\n:/%;,"[draw.below(8) as usize]),
                }
            }
            let mut output = Vec::new();
            if let ServeStep::Respond { consumed, .. } =
                respond(&bad, false, Scheme::Http, Ipv4Addr::LOCALHOST, &shared, &mut output)
            {
                answered += 1;
                assert!(consumed <= bad.len() && output.starts_with(b"HTTP/1.1 "));
                assert!(output.windows(4).any(|window| window == b"\r\n\r\n"));
            }
        }
        assert!(answered > 10_000, "{answered}");
    }

    #[test]
    fn heads_leave_the_body_in_place() {
        let mut head = Vec::new();
        let answer = Answer { status: 200, content_type: "text/html", location: None, gzip: true, chunked: false };
        push_head(&answer, 5_000_000, false, &mut head);
        assert_eq!(head.len(), HEAD_ROOM_BYTES);
        let long = Answer { location: Some("x".repeat(500)), ..answer };
        head.clear();
        push_head(&long, 7, true, &mut head);
        assert!(head.len() > 500 && head.ends_with(b"\r\nServer: ringcrawl-web\r\n\r\n"));
    }

    #[test]
    fn weights_of_zero_refuse() {
        for (element, takes) in
            [("gzip", true), (" GZip;q=0.1", true), ("gzip;q=0", false), ("gzip; q=0.00", false), ("br", false)]
        {
            assert_eq!(takes_gzip(element), takes, "{element}");
        }
    }
}
