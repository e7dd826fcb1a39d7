//! Names: an authoritative name server for the zone `test.`, so that the crawler's real resolver is used.
//!
//! Decides: A records for the hosts of the model, no other type (NODATA), and NXDOMAIN for all other names. Each
//! negative answer has an SOA so that it can be cached (RFC 2308 section 3). The server claims to recurse, because
//! stub resolvers require that. EDNS is answered with EDNS (RFC 6891 section 6.1.1). Names with a DNS fault get
//! SERVFAIL, NXDOMAIN or silence.
//! Invariants: a request that does not parse is dropped; a reply is a function of model, TTL and question.
//! Limits: UDP only: no reply here exceeds 512 bytes.

use std::sync::Arc;
use std::time::Duration;

use hickory_proto::op::{Edns, Message, MessageType, Metadata, OpCode, ResponseCode};
use hickory_proto::rr::rdata::{A, SOA};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};
use tokio::net::UdpSocket;

use super::faults::Fault;
use super::model::Model;

/// Answers without end.
pub(super) async fn serve(socket: UdpSocket, model: Arc<Model>, ttl: Duration) {
    let mut buffer = [0u8; REQUEST_BYTES_MAX];
    loop {
        // An error here is an ICMP response to an earlier reply and needs no handling.
        let Ok((length, peer)) = socket.recv_from(&mut buffer).await else { continue };
        if let Some(reply) = buffer.get(..length).and_then(|request| reply(&model, ttl, request)) {
            let _ = socket.send_to(&reply, peer).await;
        }
    }
}

/// The reply to a request; `None`: silence.
fn reply(model: &Model, ttl: Duration, request: &[u8]) -> Option<Vec<u8>> {
    let request = Message::from_vec(request).ok()?;
    if request.metadata.message_type != MessageType::Query {
        return None;
    }
    let mut reply = Message::response(request.metadata.id, request.metadata.op_code);
    reply.metadata = Metadata::response_from_request(&request.metadata);
    reply.metadata.recursion_available = true;
    if request.edns.is_some() {
        let mut edns = Edns::new();
        edns.set_max_payload(REQUEST_BYTES_MAX as u16);
        reply.edns = Some(edns);
    }
    let [query] = request.queries.as_slice() else {
        reply.metadata.response_code = ResponseCode::FormErr;
        return reply.to_vec().ok();
    };
    reply.queries.push(query.clone());
    if request.metadata.op_code != OpCode::Query {
        reply.metadata.response_code = ResponseCode::NotImp;
        return reply.to_vec().ok();
    }
    let zone = Name::from_ascii("test.").ok()?;
    if query.query_class() != DNSClass::IN || !zone.zone_of(query.name()) {
        reply.metadata.response_code = ResponseCode::Refused;
        return reply.to_vec().ok();
    }
    reply.metadata.authoritative = true;
    let ttl = u32::try_from(ttl.as_secs()).unwrap_or(u32::MAX);
    let name = query.name().to_ascii().to_ascii_lowercase();
    let name = name.trim_end_matches('.');
    let mut address = model.address_of(name);
    match model.fault_of(name) {
        Some((_, Fault::DnsTimeout)) => return None,
        Some((_, Fault::DnsServfail)) => {
            reply.metadata.response_code = ResponseCode::ServFail;
            return reply.to_vec().ok();
        }
        Some((_, Fault::DnsNxdomain)) => address = None,
        _ => {}
    }
    match (address, query.query_type()) {
        (Some(address), RecordType::A | RecordType::ANY) => {
            reply.answers.push(Record::from_rdata(query.name().clone(), ttl, RData::A(A(address))));
        }
        (address, _) => {
            let names_below = *query.name() == zone;
            if address.is_none() && !names_below {
                reply.metadata.response_code = ResponseCode::NXDomain;
            }
            let server = Name::from_ascii("ns.test.").ok()?;
            let soa = SOA::new(server, Name::from_ascii("hostmaster.test.").ok()?, 1, 3_600, 600, 86_400, ttl);
            reply.authorities.push(Record::from_rdata(zone, ttl, RData::SOA(soa)));
        }
    }
    reply.to_vec().ok()
}

/// Largest request read, and the payload size that EDNS announces: it passes unfragmented (DNS flag day 2020).
const REQUEST_BYTES_MAX: usize = 1_232;

#[cfg(test)]
mod tests {
    use super::super::draw::{Draw, Purpose};
    use super::super::model::ModelConfig;
    use super::*;
    use hickory_proto::op::Query;

    fn ask(name: &str, record_type: RecordType) -> Vec<u8> {
        let mut request = Message::new(77, MessageType::Query, OpCode::Query);
        request.queries.push(Query::query(Name::from_ascii(name).unwrap(), record_type));
        request.edns = Some(Edns::new());
        request.to_vec().unwrap()
    }

    #[test]
    fn answers() {
        let model = Model::new(ModelConfig::default()).unwrap();
        let get = |name, record_type| {
            Message::from_vec(&reply(&model, Duration::from_secs(9), &ask(name, record_type)).unwrap()).unwrap()
        };
        let found = get("www.S3.test.", RecordType::A);
        assert_eq!(found.metadata.response_code, ResponseCode::NoError);
        assert_eq!(found.answers[0].data, RData::A(A(model.address_of("www.s3.test").unwrap())));
        assert_eq!(found.answers[0].ttl, 9);
        assert!(found.edns.is_some());
        assert_eq!(found.metadata.id, 77);
        let none = get("www.s3.test.", RecordType::AAAA);
        assert_eq!((none.metadata.response_code, none.answers.len()), (ResponseCode::NoError, 0));
        assert_eq!(none.authorities.len(), 1);
        assert_eq!(get("www.s20.test.", RecordType::A).metadata.response_code, ResponseCode::NXDomain);
        assert_eq!(get("example.org.", RecordType::A).metadata.response_code, ResponseCode::Refused);
    }

    #[test]
    fn hostile_requests_are_survived() {
        let model = Model::new(ModelConfig::default()).unwrap();
        let good = ask("www.s3.test.", RecordType::A);
        for end in 0..good.len() {
            let _ = reply(&model, Duration::ZERO, &good[..end]);
        }
        let mut draw = Draw::new(4, Purpose::Pool, 0, 0);
        for _ in 0..20_000 {
            let mut bad = good.clone();
            for _ in 0..=draw.below(4) {
                let at = draw.below(bad.len() as u64) as usize;
                bad[at] = draw.bits() as u8;
            }
            let _ = reply(&model, Duration::ZERO, &bad);
        }
    }
}
