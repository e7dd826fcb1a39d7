//! The lanes of a shard, and those at the other end.

use super::*;
use crate::spool::SpoolOp;
use ringcrawl_base::Rng;
use ringcrawl_ring::caught;

fn small() -> config::Exchange {
    config::Exchange {
        mode: config::ExchangeMode::Exchange,
        ring_bytes: 1 << 20,
        rings_bytes_max: 1 << 24,
        batch_urls_max: 3,
        batch_age_max: Duration::from_millis(100),
        waiting_bytes_max: 100,
        ..config::Config::default().exchange
    }
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// All messages that are due: how many URLs each has.
fn sent(lanes: &mut Lanes, now: Instant, spool: &mut Spool) -> Vec<(u16, u64)> {
    std::iter::from_fn(|| lanes.next_message(now, spool)).map(|message| (message.to, message.urls)).collect()
}

#[test]
fn batches_close_by_count_and_by_age() {
    let mut spool = Spool::new(1 << 20);
    let mut lanes = Lanes::new(2, &small(), 100);
    for number in 0..4 {
        lanes.push(Instant::ZERO, 1, FoundUrl::unlinked(0, &format!("http://a.test/{number}")), &mut spool);
    }
    assert_eq!(sent(&mut lanes, Instant::ZERO, &mut spool), [(1, 3)]);
    assert_eq!(lanes.next_due(), Some(at(100)));
    assert_eq!(sent(&mut lanes, at(100), &mut spool), [(1, 1)]);
    assert_eq!((lanes.urls(), lanes.waiting_bytes, lanes.next_due()), (0, 0, None));
    assert!(!lanes.is_drained(), "nothing is acknowledged yet");
}

#[test]
fn all_lanes_of_all_shards_close_at_the_same_ticks() {
    let mut spool = Spool::new(1 << 20);
    for first in [1, 40, 99] {
        let mut lanes = Lanes::new(9, &small(), 100);
        for to in 1..9 {
            lanes.push(at(first), to, FoundUrl::unlinked(0, "http://a.test/"), &mut spool);
        }
        assert_eq!(lanes.next_due(), Some(at(100)));
        assert_eq!(sent(&mut lanes, at(99), &mut spool), []);
        assert_eq!(sent(&mut lanes, at(100), &mut spool).len(), 8);
    }
    assert_eq!(next_tick(at(100), Duration::from_millis(100)), at(200));
    assert_eq!(next_tick(at(100), Duration::ZERO), at(100));
}

#[test]
fn what_a_full_ring_refuses_waits_in_memory_then_in_the_spool_and_arrives() {
    let mut spool = Spool::new(1 << 20);
    let mut lanes = Lanes::new(2, &small(), 100);
    for number in 0..300 {
        lanes.push(Instant::ZERO, 1, FoundUrl::unlinked(0, &format!("http://a.test/{number}")), &mut spool);
    }
    let message = lanes.next_message(Instant::ZERO, &mut spool).expect("a message");
    lanes.refused(Instant::ZERO, message);
    assert_eq!(lanes.next_message(Instant::ZERO, &mut spool), None);
    assert!(lanes.waiting_bytes <= 200, "{} bytes held in memory", lanes.waiting_bytes);
    // Nothing else may ever happen in this shard, and no message reports that there is room.
    assert_eq!(lanes.next_due(), Some(Instant::ZERO + FULL_RING_PAUSE));
    let mut other = Lanes::new(2, &small(), 100);
    let (mut disk, mut got) = (Vec::new(), 0);
    for _ in 0..1_000 {
        while let Some(op) = spool.next_op() {
            match op {
                SpoolOp::Write { block, bytes } => disk.push((block, bytes)),
                SpoolOp::Read { block } => {
                    let bytes = disk.iter().find(|(at, _)| *at == block).unwrap().1.clone();
                    assert_eq!(spool.finished_read(block), Some(ReadFor::Lane(1)));
                    lanes.returned(1, UrlBatch::from_bytes(bytes).unwrap());
                }
                SpoolOp::Delete { .. } => {}
            }
        }
        while let Some(message) = lanes.next_message(at(1_000), &mut spool) {
            let Incoming::Urls(batch) = other.receive(at(1_000), 0, &message.bytes) else { panic!("no URLs") };
            got += batch.len();
        }
    }
    assert_eq!((got, lanes.urls(), lanes.waiting_bytes), (300, 0, 0));
    assert!(!disk.is_empty());
    // One acknowledgement for all of them, at the tick.
    assert_eq!((lanes.is_drained(), other.is_drained()), (false, false));
    let mut unused = Spool::new(1);
    let message = other.next_message(at(1_100), &mut unused).expect("an acknowledgement");
    assert_eq!(lanes.receive(at(1_100), 1, &message.bytes), Incoming::Nothing);
    assert!(lanes.is_drained() && other.is_drained());
    assert_eq!(other.next_message(at(1_200), &mut unused), None);
}

/// Each link arrives once, with a tick; the end of the crawl waits for them; while others wait for room, no more
/// gather than a list holds.
#[test]
fn links_between_sites_go_along() {
    let mut spool = Spool::new(1 << 20);
    let (mut one, mut two) = (Lanes::new(2, &small(), 100), Lanes::new(2, &small(), 100));
    let link = |number: u64| SiteLink { to: number, mark: number as u16 % 512 };
    assert!((0..1_000).all(|number| one.link(at(1), 1, link(number))));
    assert!(one.next_message(at(99), &mut spool).is_none() && !one.is_drained());
    assert_eq!(one.next_due(), Some(at(100)));
    let message = one.next_message(at(100), &mut spool).expect("at the tick");
    assert!(!message.wake && message.urls == 0 && one.next_message(at(100), &mut spool).is_none());
    let Incoming::SiteLinks(bytes) = two.receive(at(100), 0, &message.bytes) else { panic!("no links") };
    let links: Vec<SiteLink> = SiteLink::all_from_bytes(&bytes).expect("links").collect();
    assert_eq!(links, (0..1_000).map(link).collect::<Vec<_>>());
    let acknowledgement = two.next_message(at(200), &mut spool).expect("at the tick");
    one.receive(at(200), 1, &acknowledgement.bytes);
    assert!(one.is_drained() && two.is_drained());
    // Nothing can be sent, and there is no more room than for these.
    (0..300)
        .for_each(|number| one.push(at(300), 1, FoundUrl::unlinked(0, &format!("http://a.test/{number}")), &mut spool));
    one.say(1, MessageKind::RobotsAnswer, &[0; 200]);
    let taken = (0..10_000).filter(|number| one.link(at(300), 1, link(*number))).count();
    assert_eq!((taken, one.has_room(), one.lanes[1].links.len()), (4_096, false, LINKS_BYTES_MAX));
    one.close_all(at(400), &mut spool);
    assert_eq!((one.lanes[1].links.len(), one.tick), (LINKS_BYTES_MAX, Some(at(500))), "they wait on");
    one.hurry();
    one.close_all(at(401), &mut spool);
    assert_eq!(one.lanes[1].links.len(), 0, "at the end all goes");
}

#[test]
fn batches_bring_acknowledgements_along() {
    let mut spool = Spool::new(1 << 20);
    let (mut one, mut two) = (Lanes::new(2, &small(), 100), Lanes::new(2, &small(), 100));
    let mut message = |lanes: &mut Lanes, to: u16| {
        lanes.push(Instant::ZERO, to, FoundUrl::unlinked(0, "http://a.test/"), &mut spool);
        lanes.next_message(at(100), &mut spool).expect("a message").bytes
    };
    two.receive(Instant::ZERO, 0, &message(&mut one, 1));
    one.receive(Instant::ZERO, 1, &message(&mut two, 0));
    assert!((one.unacknowledged, one.owed) == (0, 1) && (two.unacknowledged, two.owed) == (1, 0));
    one.hurry();
    let acknowledgement = one.next_message(at(101), &mut spool).expect("in a hurry it does not wait for a tick");
    assert!(acknowledgement.wake);
    two.receive(at(101), 0, &acknowledgement.bytes);
    assert!(one.is_drained() && two.is_drained());
}

/// Long and short answers and batches, through a ring that fills up again and again: all arrive whole, in the order
/// in which they were sent.
#[test]
fn what_is_long_goes_in_pieces() {
    let mut spool = Spool::new(1 << 20);
    let small = || config::Exchange { ring_bytes: 4_096, waiting_bytes_max: 1 << 20, ..small() };
    let (mut one, mut two) = (Lanes::new(2, &small(), 800), Lanes::new(2, &small(), 800));
    let (mut rng, mut now, mut expected, mut heard) = (Rng::new(1), Instant::ZERO, Vec::new(), Vec::new());
    let mut say = |lanes: &mut Lanes, rng: &mut Rng, expected: &mut Vec<Incoming>| {
        let mut batch = UrlBatch::new();
        for _ in 0..3 {
            let url = format!("http://a.test/{}", rng.below(1 << 40));
            lanes.push(Instant::ZERO, 1, FoundUrl::unlinked(0, &url), &mut spool);
            batch.push(0, &url);
        }
        let (kind, bytes_max) = *rng.pick(&[(MessageKind::RobotsAnswer, 5_000), (MessageKind::RobotsRequest, 300)]);
        let count = 1 + rng.index(bytes_max);
        let content = rng.bytes(count);
        lanes.say(1, kind, &content);
        expected.extend([Incoming::Urls(batch), Incoming::Robots(kind, content)]);
    };
    (0..30).for_each(|_| say(&mut one, &mut rng, &mut expected));
    let (mut sent, mut refused) = (0, 0);
    loop {
        let Some(message) = one.next_message(now, &mut Spool::new(1)) else {
            let Some(due) = one.next_due() else { break };
            now = due;
            continue;
        };
        if rng.percent(30) {
            refused += 1;
            one.refused(now, message.clone());
            // New messages wait behind it, and behind the pieces still to come.
            if expected.len() < 200 {
                say(&mut one, &mut rng, &mut expected);
            }
            assert_eq!(one.next_message(now, &mut Spool::new(1)), None, "the ring is full");
            now = one.next_due().expect("it is tried again");
            assert_eq!(one.next_message(now, &mut Spool::new(1)).as_ref(), Some(&message), "as it was, number and all");
        }
        sent += 1;
        assert!(message.bytes.len() <= 1_024 && message.wake);
        match two.receive(now, 0, &message.bytes) {
            Incoming::Nothing => {}
            incoming => heard.push(incoming),
        }
    }
    assert_eq!(heard, expected);
    assert!(sent > 200 && refused > 50, "{sent} messages, {refused} refused");
    assert_eq!((one.urls(), one.said, one.waiting_bytes), (0, 0, 0));
}

/// The pieces of one answer are joined whatever comes between them.
#[test]
fn other_messages_may_come_between_pieces() {
    let mut lanes = Lanes::new(2, &small(), 100);
    let mut batch = UrlBatch::new();
    batch.push(3, "http://a.test/");
    let messages: [(MessageKind, u64, &[u8]); 4] = [
        (MessageKind::RobotsAnswer, 1, b"\x01one "),
        (MessageKind::Urls, 2, batch.as_bytes()),
        (MessageKind::Acknowledgement, 0, b""),
        (MessageKind::RobotsAnswer, 3, b"\0two"),
    ];
    let heard = messages.map(|(kind, number, content)| {
        lanes.receive(
            Instant::ZERO,
            1,
            &Header { kind, number, acknowledged: 0, batch: u64::from(kind == MessageKind::Urls), durable: 0 }
                .with(content),
        )
    });
    let whole = Incoming::Robots(MessageKind::RobotsAnswer, b"one two".to_vec());
    assert_eq!(heard, [Incoming::Nothing, Incoming::Urls(batch), Incoming::Nothing, whole]);
}

/// What cannot have been sent is our own bug, and is detected.
#[test]
fn gaps_repeats_and_acknowledgements_from_the_future_are_faults() {
    let urls = |number, acknowledged| {
        Header { kind: MessageKind::Urls, number, acknowledged, batch: number, durable: 0 }.with(&[])
    };
    let told = |acknowledged| {
        Header { kind: MessageKind::Acknowledgement, number: 0, acknowledged, batch: 0, durable: 0 }.with(&[])
    };
    // From shard 1, to which two messages were sent.
    let fault = |messages: &[Vec<u8>]| {
        let (mut lanes, mut spool) = (Lanes::new(2, &small(), 100), Spool::new(1));
        for _ in 0..2 {
            lanes.say(1, MessageKind::RobotsRequest, b"what?");
            lanes.next_message(Instant::ZERO, &mut spool).expect("a message");
        }
        let received = caught(|| messages.iter().for_each(|bytes| drop(lanes.receive(Instant::ZERO, 1, bytes))));
        received.err().map(|panic| panic.to_string())
    };
    assert_eq!(fault(&[urls(1, 0), urls(2, 1), told(1), told(2)]), None);
    for (what, messages) in [
        ("shard 1 sent message 3 after 1", [urls(1, 0), urls(3, 0)]),
        ("shard 1 sent message 1 after 1", [urls(1, 0), urls(1, 0)]),
        ("shard 1 sent message 0 after 1", [urls(1, 0), urls(0, 0)]),
        ("shard 1 acknowledged message 3; 2 were sent, 1 acknowledged", [urls(1, 1), told(3)]),
        ("shard 1 acknowledged message 0; 2 were sent, 1 acknowledged", [told(1), told(0)]),
        ("shard 1 sent what is no message", [urls(1, 0), vec![0; Header::BYTES]]),
        (
            "shard 1 sent a batch that is none",
            [
                urls(1, 0),
                Header { kind: MessageKind::Urls, number: 2, acknowledged: 0, batch: 2, durable: 0 }.with(b"?"),
            ],
        ),
        (
            "shard 1 sent an empty RobotsAnswer",
            [
                urls(1, 0),
                Header { kind: MessageKind::RobotsAnswer, number: 2, acknowledged: 0, batch: 2, durable: 0 }.with(b""),
            ],
        ),
    ] {
        let message = fault(&messages).unwrap_or_else(|| panic!("{what}: it was taken"));
        assert!(message.contains(what), "{message}; expected: {what}");
    }
}

/// The smallest ring that the configuration takes, and the longest URL that it takes with it.
#[test]
fn the_longest_url_fits_the_smallest_ring() {
    let (ring_bytes, url_bytes_max) = (4_096, 4_096 - 64);
    let (mut spool, mut lanes) = (
        Spool::new(1 << 20),
        Lanes::new(2, &config::Exchange { ring_bytes, waiting_bytes_max: 1 << 20, ..small() }, url_bytes_max),
    );
    let (mut producer, mut consumer) = crate::exchange::spsc::ring(ring_bytes);
    for number in 0..3 {
        let url = format!("http://a.test/{number}");
        let url = format!("{url}{}", "x".repeat(url_bytes_max - url.len()));
        lanes.push(Instant::ZERO, 1, FoundUrl { via: Some("http://a.test/page"), depth: 0, url: &url }, &mut spool);
    }
    // The page is included if there is room for both.
    for url in ["http://a.test/short", "http://a.test/other"] {
        lanes.push(Instant::ZERO, 1, FoundUrl { via: Some("http://a.test/page"), depth: 0, url }, &mut spool);
        lanes.push(
            Instant::ZERO,
            1,
            FoundUrl { via: Some(&format!("http://a.test/{}", "x".repeat(51))), depth: 0, url },
            &mut spool,
        );
    }
    let (mut sent, mut received, mut vias) = (0, Vec::new(), Vec::new());
    while let Some(message) = lanes.next_message(Instant::ZERO, &mut spool) {
        assert!(producer.push(&message.bytes) && consumer.pop(&mut received));
        sent += message.urls;
        let batch = UrlBatch::from_bytes(received[Header::BYTES..].to_vec()).expect("a batch");
        vias.extend(batch.found().map(|found| found.via.map(str::to_owned)));
    }
    assert_eq!((sent, lanes.urls()), (7, 0));
    let page = Some("http://a.test/page".to_owned());
    assert_eq!(vias, [None, None, None, page.clone(), None, page, None]);
}

/// An earlier run had larger rings: what it left goes in parts, and counts when all of it has arrived.
#[test]
fn a_batch_of_a_larger_ring_is_sent_in_parts() {
    let (mut spool, config) =
        (Spool::new(1 << 20), config::Exchange { ring_bytes: 4_096, waiting_bytes_max: 1 << 20, ..small() });
    let (mut one, mut two) = (Lanes::new(2, &config, 900), Lanes::new(2, &config, 900));
    let mut left = UrlBatch::new();
    for number in 0..300 {
        let via = format!("http://a.test/page/{}", number / 7);
        left.push_found(FoundUrl { via: Some(&via), depth: 3, url: &format!("http://left.test/{number}") });
    }
    left.push(0, &format!("http://left.test/{}", "x".repeat(5_000)));
    assert_eq!(one.resend(Batch { to: 1, number: 7, urls: Rc::new(left.clone()) }, &mut spool), 1);
    let (mut producer, mut consumer) = crate::exchange::spsc::ring(config.ring_bytes);
    let (mut bytes, mut got, mut parts) = (Vec::new(), Vec::new(), 0);
    while let Some(message) = one.next_message(at(1), &mut spool) {
        assert_eq!(two.received(), [0, 0], "part {parts}: not all of it is there");
        assert!(producer.push(&message.bytes) && consumer.pop(&mut bytes));
        let Incoming::Urls(batch) = two.receive(at(1), 0, &bytes) else { panic!("no URLs") };
        got.extend(batch.found().map(|found| (found.via.map(str::to_owned), found.depth, found.url.to_owned())));
        parts += 1;
    }
    assert_eq!((two.received(), one.urls()), (vec![7, 0], 0));
    let expected: Vec<_> =
        left.found().map(|found| (found.via.map(str::to_owned), found.depth, found.url.to_owned())).take(300).collect();
    assert!(parts > 3 && got == expected, "{parts} parts, {} URLs", got.len());
    two.note_durable(at(1), &[7, 0]);
    while let Some(message) = two.next_message(at(500), &mut spool) {
        one.receive(at(500), 1, &message.bytes);
    }
    assert_eq!(one.take_durable().collect::<Vec<_>>(), [(1, 7)]);
}

/// Batches are numbered as they close, sent in that order whatever is in the spool, and acknowledged when the
/// receiver has them on disk; what an earlier run left keeps its numbers.
#[test]
fn batches_are_sent_in_order_and_acknowledged_when_they_are_durable() {
    let mut spool = Spool::new(1 << 20);
    let (mut one, mut two) = (Lanes::new(2, &small(), 100), Lanes::new(2, &small(), 100));
    let mut left = UrlBatch::new();
    left.push(0, "http://left.test/");
    one.resend(Batch { to: 1, number: 7, urls: Rc::new(left) }, &mut spool);
    for number in 0..300 {
        one.push(Instant::ZERO, 1, FoundUrl::unlinked(0, &format!("http://a.test/{number}")), &mut spool);
    }
    let closed: Vec<u64> = one.take_closed().map(|batch| batch.number).collect();
    assert_eq!(closed, (8..108).collect::<Vec<_>>(), "those of the earlier run are written down already");
    let (mut disk, mut got) = (std::collections::HashMap::new(), Vec::new());
    for _ in 0..1_000 {
        while let Some(op) = spool.next_op() {
            match op {
                SpoolOp::Write { block, bytes } => drop(disk.insert(block, bytes)),
                SpoolOp::Read { block } => {
                    assert_eq!(spool.finished_read(block), Some(ReadFor::Lane(1)));
                    one.returned(1, UrlBatch::from_bytes(disk.remove(&block).unwrap()).unwrap());
                }
                SpoolOp::Delete { .. } => {}
            }
        }
        while let Some(message) = one.next_message(at(1), &mut spool) {
            got.extend(Header::read(&message.bytes).map(|(header, _)| header.batch));
            two.receive(at(1), 0, &message.bytes);
        }
    }
    assert_eq!(got, (7..108).collect::<Vec<_>>());
    assert_eq!((two.received(), one.take_durable().count()), (vec![107, 0], 0));
    // It is accepted at once, and on disk later.
    let mut unused = Spool::new(1);
    let mut acknowledged = |two: &mut Lanes, millis| {
        let message = two.next_message(at(millis), &mut unused)?;
        one.receive(at(millis), 1, &message.bytes);
        Some(one.take_durable().collect::<Vec<_>>())
    };
    assert_eq!(acknowledged(&mut two, 100), Some(vec![]));
    two.note_durable(at(150), &[50, 0]);
    assert_eq!((acknowledged(&mut two, 199), acknowledged(&mut two, 200)), (None, Some(vec![(1, 50)])));
    two.note_durable(at(250), &[50, 0]);
    assert_eq!((acknowledged(&mut two, 300), two.next_due()), (None, None), "nothing new");
    two.hurry();
    two.note_durable(at(350), &[107, 0]);
    assert_eq!(acknowledged(&mut two, 350), Some(vec![(1, 107)]));
    let mut from_the_future = two.lanes[0].numbers.acknowledgement();
    from_the_future.durable = 108;
    let fault = caught(|| one.receive(at(400), 1, &from_the_future.with(&[]))).expect_err("never sent").to_string();
    assert!(fault.contains("shard 1 has batch 108; 107 were closed"), "{fault}");
}

/// A journal may say that a shard has batch 7, but hold no batch: a new batch with such a number would not be kept.
#[test]
fn numbers_go_on_behind_those_of_an_earlier_run() {
    let (mut spool, mut lanes) = (Spool::new(1 << 20), Lanes::new(3, &small(), 100));
    lanes.closed_before(1, 7);
    lanes.closed_before(1, 5);
    for to in [1, 2] {
        lanes.push(Instant::ZERO, to, FoundUrl::unlinked(0, "http://a.test/"), &mut spool);
    }
    lanes.close_open(&mut spool);
    let numbers: Vec<(u16, u64)> = lanes.take_closed().map(|batch| (batch.to, batch.number)).collect();
    assert_eq!(numbers, [(1, 8), (2, 1)]);
}

/// Messages about URLs reach their shard after them, or not at all.
#[test]
fn what_is_said_of_urls_comes_behind_them() {
    let (mut lanes, mut spool) = (Lanes::new(2, &small(), 1_000), Spool::new(1 << 20));
    lanes.push(at(0), 1, FoundUrl::unlinked(0, "http://a.test/"), &mut spool);
    assert!(lanes.say_behind(1, MessageKind::LinkCounts, b"counts", &mut spool));
    let kinds = |lanes: &mut Lanes, spool: &mut Spool| -> Vec<MessageKind> {
        let messages = std::iter::from_fn(|| lanes.next_message(at(1), spool));
        messages.map(|message| Header::read(&message.bytes).expect("a message").0.kind).collect()
    };
    assert_eq!(kinds(&mut lanes, &mut spool), [MessageKind::Urls, MessageKind::LinkCounts]);
    // Memory for one batch: later ones go to disk.
    let long = format!("http://a.test/{}", "x".repeat(90));
    (0..9).for_each(|_| lanes.push(at(2), 1, FoundUrl::unlinked(0, &long), &mut spool));
    assert!(!lanes.say_behind(1, MessageKind::LinkCounts, b"counts", &mut spool));
}
