//! Answers that are damaged, or of somebody who means harm.

use super::*;
use ringcrawl_base::Rng;

/// An answer that an attacker could send: flipped bits, truncated ends, false counts, cyclic names.
fn spoilt(rng: &mut Rng, mut message: Message) -> Vec<u8> {
    // It may be an alias of an earlier answer: text that could not be read back.
    let of = message.queries.first().map(|question| question.name().clone()).expect("a question");
    match rng.below(4) {
        0 => drop(message.add_authority(soa(rng.next() as u32, rng.next() as u32))),
        1 => {
            let to = if rng.percent(50) { of.clone() } else { name("elsewhere.test.") };
            message.add_answer(Record::from_rdata(of, rng.next() as u32, RData::CNAME(rdata::CNAME(to))));
        }
        _ => {
            let (four, six) = (four("x.test.", 0, 1).data, six("x.test.", 0, 1).data);
            message.add_answer(Record::from_rdata(of.clone(), rng.next() as u32, four));
            message.add_answer(Record::from_rdata(of, 5, six));
        }
    }
    message.metadata.response_code = ResponseCode::from(0, rng.below(12) as u8 * rng.below(2) as u8);
    let mut bytes = message.to_vec().expect("encode");
    // After the identifier, so that it is accepted as the answer.
    let spoils = if rng.percent(30) { 0 } else { rng.below(6) };
    for _ in 0..spoils {
        let place = 2 + rng.below(bytes.len() as u64 - 2) as usize;
        match rng.below(4) {
            0 => bytes[place] = rng.next() as u8,
            // A pointer to any place (RFC 1035 section 4.1.4), perhaps itself.
            1 if place + 1 < bytes.len() => {
                bytes[place] = 0xc0;
                bytes[place + 1] = rng.below(bytes.len() as u64) as u8;
            }
            2 => bytes[4 + rng.below(8) as usize] = rng.next() as u8,
            _ => bytes[place] ^= 1 << rng.below(8),
        }
    }
    if spoils > 0 && rng.percent(20) {
        bytes.truncate(2 + rng.below(bytes.len() as u64 - 2) as usize);
    }
    if rng.percent(10) {
        bytes.extend((0..rng.below(2_000)).map(|_| rng.next() as u8));
    }
    bytes
}

#[test]
fn every_name_ends_whatever_the_servers_say() {
    let seed = std::env::var("DNS_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let servers: Vec<SocketAddr> = (0..2)
        .map(|number| {
            let mut rng = Rng::new(seed + number);
            let answer = move |message: Message, _: &str, _| rng.percent(95).then(|| spoilt(&mut rng, message));
            server(answer).0
        })
        .collect();
    let dns = config(&servers, |dns| {
        dns.timeout = Duration::from_secs(4);
        dns.in_flight_max = 256;
    });
    run(&dns, |resolver| async move {
        let tasks: Vec<_> = (0..1_000)
            .map(|number| {
                let resolver = Rc::clone(&resolver);
                ring::spawn(async move { resolver.resolve(&format!("h{number}.test"), number % 2 == 0).await })
            })
            .collect();
        let mut ends = [0; 3];
        for task in tasks {
            match task.await.unwrap_or_else(|_| panic!("DNS_SEED={seed}: a panic")) {
                Outcome::Resolved { addrs, ttl, .. } => {
                    ends[0] += 1;
                    assert!(!addrs.is_empty() && addrs.len() <= 2 * ADDRS_MAX, "DNS_SEED={seed}");
                    assert!(ttl >= Duration::from_secs(60) && ttl <= Duration::from_secs(86_400), "DNS_SEED={seed}");
                }
                Outcome::NoAddress { ttl } => {
                    ends[1] += 1;
                    assert!(ttl >= Duration::from_secs(60) && ttl <= Duration::from_secs(3 * 3_600), "DNS_SEED={seed}");
                }
                Outcome::Failed(Failure::DnsFailed | Failure::DnsTimeout) => ends[2] += 1,
                other => panic!("DNS_SEED={seed}: {other:?}"),
            }
        }
        assert!(ends.iter().all(|count| *count > 0), "DNS_SEED={seed}: not all there is was seen: {ends:?}");
    });
}
