//! A lock-free ring of byte messages from one thread to one other.
//!
//! Decides: the ring's memory is an array of `AtomicU64` words, so that it needs no `unsafe`: a relaxed store or load
//! of a word compiles to a plain move, and the two positions carry the ordering (the producer releases `tail` after
//! the words are written, the consumer acquires it before it reads them; `head` the same way back). Whole messages
//! only: a length word, then the bytes in whole words.
//!
//! Invariants: `head ≤ tail ≤ head + capacity`, in words counted from the start and never wrapped (2⁶⁴ words do not
//! pass in a crawl's life). Only the producer writes `tail`, only the consumer writes `head`; each keeps a copy of
//! the other's, so that a cache line crosses cores once per batch and not once per call.
//! Limits: a message fits into the ring with its length word; the sender keeps messages to a quarter of the ring
//! where it can, so that one goes in while another is read.
//! Model-checked with the messages of lanes: `tests/model`.

use super::sync::{Arc, AtomicU64, Ordering};

/// Makes a ring of at least `bytes` bytes.
pub fn ring(bytes: usize) -> (Producer, Consumer) {
    let words = bytes.div_ceil(WORD_BYTES).next_power_of_two().max(WORDS_MIN);
    let shared = Arc::new(RingBuffer {
        words: (0..words).map(|_| AtomicU64::new(0)).collect(),
        tail: OwnLine(AtomicU64::new(0)),
        head: OwnLine(AtomicU64::new(0)),
    });
    (Producer { shared: Arc::clone(&shared), tail: 0, head_seen: 0 }, Consumer { shared, head: 0, tail_seen: 0 })
}

/// The sending end.
#[derive(Debug)]
pub struct Producer {
    shared: Arc<RingBuffer>,
    tail: u64,
    head_seen: u64,
}

impl Producer {
    /// Longest message that this ring takes, in bytes.
    pub fn message_bytes_max(&self) -> usize {
        (self.shared.words.len() - 1) * WORD_BYTES
    }

    /// Puts `message` in whole; returns `false` and changes nothing if there is no room for it now.
    ///
    /// A message longer than [`Producer::message_bytes_max`] is our own bug and asserts.
    pub fn push(&mut self, message: &[u8]) -> bool {
        assert!(message.len() <= self.message_bytes_max(), "a message larger than the ring was made for");
        let needed = 1 + message.len().div_ceil(WORD_BYTES) as u64;
        let capacity = self.shared.words.len() as u64;
        if self.tail + needed - self.head_seen > capacity {
            self.head_seen = self.shared.head.0.load(Ordering::Acquire);
            if self.tail + needed - self.head_seen > capacity {
                return false;
            }
        }
        self.shared.put(self.tail, message);
        let at = self.tail + needed;
        self.tail = at;
        self.shared.tail.0.store(at, Ordering::Release);
        true
    }
}

/// The receiving end.
#[derive(Debug)]
pub struct Consumer {
    shared: Arc<RingBuffer>,
    head: u64,
    tail_seen: u64,
}

impl Consumer {
    /// Takes the oldest message into `message` (cleared first); `false` when the ring is empty.
    pub fn pop(&mut self, message: &mut Vec<u8>) -> bool {
        message.clear();
        if self.head == self.tail_seen {
            self.tail_seen = self.shared.tail.0.load(Ordering::Acquire);
            if self.head == self.tail_seen {
                return false;
            }
        }
        let length = self.shared.slot(self.head).load(Ordering::Relaxed) as usize;
        let words = length.div_ceil(WORD_BYTES);
        assert!(self.tail_seen - self.head > words as u64, "the ring published half a message");
        message.resize(words * WORD_BYTES, 0);
        let [first, second] = self.shared.run(self.head + 1, words);
        let (front, back) = message.split_at_mut(first.len() * WORD_BYTES);
        for (slots, bytes) in [(first, front), (second, back)] {
            for (slot, word) in slots.iter().zip(bytes.as_chunks_mut::<WORD_BYTES>().0) {
                *word = slot.load(Ordering::Relaxed).to_le_bytes();
            }
        }
        message.truncate(length);
        self.head += 1 + words as u64;
        self.shared.head.0.store(self.head, Ordering::Release);
        true
    }

    /// Whether a message is waiting.
    pub fn has_message(&mut self) -> bool {
        if self.head == self.tail_seen {
            self.tail_seen = self.shared.tail.0.load(Ordering::Acquire);
        }
        self.head != self.tail_seen
    }
}

#[derive(Debug)]
struct RingBuffer {
    words: Box<[AtomicU64]>,
    tail: OwnLine,
    head: OwnLine,
}

impl RingBuffer {
    /// Stores a message's length at `at`, and its bytes after it.
    fn put(&self, at: u64, message: &[u8]) {
        self.slot(at).store(message.len() as u64, Ordering::Relaxed);
        let [first, second] = self.run(at + 1, message.len().div_ceil(WORD_BYTES));
        let (front, back) = message.split_at(message.len().min(first.len() * WORD_BYTES));
        for (slots, bytes) in [(first, front), (second, back)] {
            let (whole, rest) = bytes.as_chunks::<WORD_BYTES>();
            for (slot, word) in slots.iter().zip(whole) {
                slot.store(u64::from_le_bytes(*word), Ordering::Relaxed);
            }
            if let Some(slot) = slots.get(whole.len()).filter(|_| !rest.is_empty()) {
                let mut word = [0; WORD_BYTES];
                word.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
                slot.store(u64::from_le_bytes(word), Ordering::Relaxed);
            }
        }
    }

    /// `count` words from `at` on, at most the whole ring: in two runs, as the ring may end between them. A loop over
    /// a run needs no bounds check for each word.
    fn run(&self, at: u64, count: usize) -> [&[AtomicU64]; 2] {
        let (before, after) = self.words.split_at(at as usize & (self.words.len() - 1));
        let first = count.min(after.len());
        [&after[..first], &before[..count - first]]
    }

    fn slot(&self, at: u64) -> &AtomicU64 {
        &self.words[at as usize & (self.words.len() - 1)]
    }
}

/// Two cache lines, because the prefetcher of x86 fetches lines in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct OwnLine(AtomicU64);

const WORD_BYTES: usize = 8;
const WORDS_MIN: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::Rng;
    use std::collections::VecDeque;

    #[test]
    fn behaves_like_a_queue_of_messages() {
        for seed in 0..if cfg!(miri) { 2 } else { 50 } {
            let mut rng = Rng::new(seed);
            let (mut producer, mut consumer) = ring(1 << rng.below(11));
            let mut twin: VecDeque<Vec<u8>> = VecDeque::new();
            let mut got = Vec::new();
            for step in 0..if cfg!(miri) { 100 } else { 2_000 } {
                if rng.below(2) == 0 {
                    let length = rng.below(producer.message_bytes_max() as u64 + 1) as usize;
                    let message: Vec<u8> = (0..length).map(|_| rng.next() as u8).collect();
                    if producer.push(&message) {
                        twin.push_back(message);
                    } else {
                        assert!(!twin.is_empty(), "seed {seed} step {step}: an empty ring refused a message");
                    }
                } else {
                    assert_eq!(consumer.has_message(), !twin.is_empty());
                    let popped = consumer.pop(&mut got);
                    assert_eq!(popped.then(|| got.clone()), twin.pop_front(), "seed {seed} step {step}");
                }
            }
        }
    }

    #[test]
    fn two_threads_lose_and_reorder_nothing() {
        let messages = if cfg!(miri) { 50 } else { 200_000_u64 };
        let (mut producer, mut consumer) = ring(4_096);
        let sender = std::thread::spawn(move || {
            let mut rng = Rng::new(7);
            for number in 0..messages {
                let mut message = number.to_le_bytes().to_vec();
                message.resize(8 + rng.below(90) as usize, number as u8);
                while !producer.push(&message) {
                    std::hint::spin_loop();
                    std::thread::yield_now();
                }
            }
        });
        let mut rng = Rng::new(7);
        let mut message = Vec::new();
        for number in 0..messages {
            while !consumer.pop(&mut message) {
                std::thread::yield_now();
            }
            let (head, rest) = message.split_first_chunk::<8>().unwrap();
            assert_eq!(u64::from_le_bytes(*head), number);
            assert_eq!(rest.len() as u64, rng.below(90));
            assert!(rest.iter().all(|byte| *byte == number as u8));
        }
        sender.join().unwrap();
        assert!(!consumer.has_message());
    }
}
