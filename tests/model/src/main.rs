//! Models of what shards say to each other, checked by loom: all orders of two threads' steps, and all values that the memory model lets a
//! load see.
//!
//! Decides: the ring, the numbers of a lane and the flag of mail are production's sources, compiled with loom's atomics. Each model
//! asserts what its receiver gets. So that the models can fail, a last one has a ring whose sender publishes too early, and must.
//! Limits: a few messages, and three preemptions a run; a thread that waits yields. No load comes later than the stores behind it, as the
//! memory model would let it: that a reader frees its place no sooner than it has read is not checked here.

mod sync {
    pub(crate) use loom::sync::Arc;
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
}

#[allow(dead_code)]
#[path = "../../../src/brain/exchange/mail.rs"]
mod mail;
#[allow(dead_code)]
#[path = "../../../src/brain/exchange/message.rs"]
mod message;
#[allow(dead_code)]
#[path = "../../../src/brain/exchange/numbering.rs"]
mod numbering;
#[allow(dead_code)]
#[path = "../../../src/brain/exchange/spsc.rs"]
mod spsc;

use std::panic;

use loom::thread;
use mail::MailFlag;
use message::{Header, MessageKind};
use numbering::Numbering;
use sync::{Arc, AtomicU64, Ordering};

fn main() {
    let all: [(&str, fn()); 4] = [
        ("a ring loses, reorders and tears nothing", ring),
        ("a full ring takes the message later", full_ring),
        ("what is acknowledged was accepted, and what is durable is told once it is", acknowledgements),
        ("no message lies in a ring whose reader sleeps", mail_flag),
    ];
    for (name, model) in all {
        check(model);
        println!("ok: {name}");
    }
    panic::set_hook(Box::new(|_| {}));
    assert!(panic::catch_unwind(|| check(too_early)).is_err(), "a ring that publishes too early was not found out");
    println!("ok: a ring that publishes too early is found out");
}

fn check(model: fn()) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.max_branches = 100_000;
    builder.check(model);
}

fn send(ring: &mut spsc::Producer, message: &[u8]) {
    while !ring.push(message) {
        thread::yield_now();
    }
}

fn receive(ring: &mut spsc::Consumer) -> Vec<u8> {
    let mut message = Vec::new();
    while !ring.pop(&mut message) {
        thread::yield_now();
    }
    message
}

fn ring() {
    let (mut producer, mut consumer) = spsc::ring(128);
    let sender = thread::spawn(move || {
        for message in [&b"a message of two words"[..11], b"", b"12345678"] {
            send(&mut producer, message);
        }
    });
    for expected in [&b"a message of two words"[..11], b"", b"12345678"] {
        assert_eq!(receive(&mut consumer), expected);
    }
    sender.join().unwrap();
    assert!(!consumer.has_message());
}

/// Sixteen words, and messages of seven: the third waits for the first to be read.
fn full_ring() {
    let (mut producer, mut consumer) = spsc::ring(128);
    let message = |number: u8| vec![number; 48];
    let sender = thread::spawn(move || (0..3).for_each(|number| send(&mut producer, &message(number))));
    (0..3).for_each(|number| assert_eq!(receive(&mut consumer), message(number)));
    sender.join().unwrap();
}

/// One shard sends two batches; the other accepts them, has them on its disk a while later, and says so. The disk is a number that is
/// stored before it is told of.
fn acknowledgements() {
    let (mut out, mut there) = spsc::ring(512);
    let (mut back, mut here) = spsc::ring(512);
    let disk = Arc::new(AtomicU64::new(0));
    let disk_there = Arc::clone(&disk);
    let other = thread::spawn(move || {
        let mut numbers = Numbering::default();
        for batch in 1..=2 {
            let message = receive(&mut there);
            let (header, content) = Header::read(&message).expect("a message");
            numbers.receive(0, &header);
            assert_eq!((numbers.received(), content), (batch, &[batch as u8; 3][..]));
            disk_there.store(batch, Ordering::Relaxed);
            assert!(numbers.note_durable(batch));
            let acknowledgement = numbers.acknowledgement().with(&[]);
            send(&mut back, &acknowledgement);
        }
    });
    let mut numbers = Numbering::default();
    for batch in 1..=2 {
        assert_eq!(numbers.close_batch(), batch);
        let header = numbers.next_header(MessageKind::Urls, batch);
        send(&mut out, &header.with(&[batch as u8; 3]));
    }
    let mut accepted = 0;
    while accepted < 2 {
        let message = receive(&mut here);
        let (header, _) = Header::read(&message).expect("a message");
        let acknowledged = numbers.receive(1, &header);
        accepted += acknowledged.messages;
        // What its sender now forgets is on the disk there.
        assert!(acknowledged.durable.is_none_or(|batch| disk.load(Ordering::Relaxed) >= batch));
    }
    other.join().unwrap();
}

/// The reader looks into its rings when the flag is raised, and sleeps when it is not. Whoever has sent raises it: after that, a reader
/// that finds it lowered has been there.
fn mail_flag() {
    let (mut producer, mut consumer) = spsc::ring(128);
    let flag = Arc::new(MailFlag::default());
    let raised = Arc::clone(&flag);
    let sender = thread::spawn(move || {
        for message in [b"one", b"two"] {
            send(&mut producer, message);
            raised.raise();
        }
    });
    let (mut message, mut count) = (Vec::new(), 0);
    let mut look = |count: &mut u32| {
        if flag.lower() {
            while consumer.pop(&mut message) {
                *count += 1;
            }
        }
    };
    look(&mut count);
    look(&mut count);
    sender.join().unwrap();
    look(&mut count);
    assert_eq!(count, 2, "a message lies there, and nobody looks");
}

/// The sender's position is stored before its message: without a release, as a relaxed store may be seen.
fn too_early() {
    let word = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
    let shared = Arc::clone(&word);
    let sender = thread::spawn(move || {
        shared.0.store(7, Ordering::Relaxed);
        shared.1.store(1, Ordering::Relaxed);
    });
    if word.1.load(Ordering::Acquire) == 1 {
        assert_eq!(word.0.load(Ordering::Relaxed), 7);
    }
    sender.join().unwrap();
}
