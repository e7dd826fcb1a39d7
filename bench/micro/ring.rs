//! What shards and kernel cost by the piece: a batch through the ring between two shards, a turn of io_uring, a wake-up.
//!
//! Floors: for the batch, two copies of its bytes; for turn and wake-up, which are system calls, as many bare ones:
//! `sched_yield`, and a byte through a pipe and back.
//! Checked before: what comes out of the ring is what went in. Where the kernel refuses io_uring, its two are left out.

use std::io::{Read, Write};

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use ringcrawl_brain::exchange::spsc;
use ringcrawl_ring::{Runtime, WakeListener, Waker, turn};

/// The default of `exchange.ring_bytes`.
const RING_BYTES: usize = 256 << 10;
/// 512 URLs of 60 bytes, the default batch.
const BATCH_BYTES: usize = 32 << 10;
const TURNS: usize = 1_000;

fn batch() -> Vec<u8> {
    (0..BATCH_BYTES).map(|at| (at * 7 % 251) as u8).collect()
}

fn main() {
    let (mut producer, mut consumer) = spsc::ring(RING_BYTES);
    let (batch, mut out) = (batch(), Vec::new());
    for _ in 0..100 {
        assert!(producer.push(&batch) && consumer.pop(&mut out));
        assert!(out == batch);
    }
    divan::main();
}

#[divan::bench_group(name = "batch")]
mod batches {
    use super::*;

    #[divan::bench]
    fn ours(bencher: Bencher) {
        let (mut producer, mut consumer) = spsc::ring(RING_BYTES);
        let (batch, mut out) = (batch(), Vec::new());
        bencher
            .counter(BytesCount::new(BATCH_BYTES))
            .bench_local(|| producer.push(black_box(&batch)) && consumer.pop(&mut out));
    }

    #[divan::bench]
    fn floor(bencher: Bencher) {
        let (batch, mut between, mut out) = (batch(), vec![0; BATCH_BYTES], vec![0; BATCH_BYTES]);
        bencher.counter(BytesCount::new(BATCH_BYTES)).bench_local(|| {
            between.copy_from_slice(black_box(&batch));
            out.copy_from_slice(black_box(&between));
            black_box(&out);
        });
    }
}

/// URLs one by one, each a message: what the ring costs where batches are small. Peers move a URL that was allocated for it, or copy
/// its bytes behind its length. Aim: 20 ns a URL, in and out.
#[divan::bench_group(name = "url")]
mod urls {
    use super::*;

    const URLS: usize = 512;

    fn urls() -> Vec<Vec<u8>> {
        (0..URLS).map(|url| (0..60).map(|at| ((url + at * 7) % 251) as u8).collect()).collect()
    }

    #[divan::bench]
    fn ours(bencher: Bencher) {
        let (mut producer, mut consumer) = spsc::ring(RING_BYTES);
        let (urls, mut out) = (urls(), Vec::new());
        bencher.counter(ItemsCount::new(URLS)).bench_local(|| {
            assert!(urls.iter().all(|url| producer.push(black_box(url))));
            while consumer.pop(&mut out) {
                black_box(&out);
            }
        });
    }

    /// Copies as ours does: a length, then the bytes.
    #[divan::bench]
    fn rtrb_bytes(bencher: Bencher) {
        let (mut producer, mut consumer) = rtrb::RingBuffer::<u8>::new(RING_BYTES);
        let (urls, mut out) = (urls(), Vec::new());
        bencher.counter(ItemsCount::new(URLS)).bench_local(|| {
            for url in &urls {
                let mut chunk = producer.write_chunk(8 + black_box(url).len()).expect("room");
                let length = (url.len() as u64).to_le_bytes();
                let (first, second) = chunk.as_mut_slices();
                for (place, byte) in first.iter_mut().chain(second).zip(length.iter().chain(url)) {
                    *place = *byte;
                }
                chunk.commit_all();
            }
            while let Ok(head) = consumer.read_chunk(8) {
                let (first, second) = head.as_slices();
                let mut length = [0; 8];
                length.iter_mut().zip(first.iter().chain(second)).for_each(|(to, from)| *to = *from);
                head.commit_all();
                let body = consumer.read_chunk(u64::from_le_bytes(length) as usize).expect("a whole message");
                let (first, second) = body.as_slices();
                out.clear();
                out.extend_from_slice(first);
                out.extend_from_slice(second);
                body.commit_all();
                black_box(&out);
            }
        });
    }

    #[divan::bench]
    fn rtrb_boxes(bencher: Bencher) {
        let (mut producer, mut consumer) = rtrb::RingBuffer::<Box<[u8]>>::new(URLS);
        let urls = urls();
        bencher.counter(ItemsCount::new(URLS)).bench_local(|| {
            for url in &urls {
                producer.push(black_box(url).as_slice().into()).expect("room");
            }
            while let Ok(url) = consumer.pop() {
                black_box(url);
            }
        });
    }

    #[divan::bench]
    fn crossbeam_boxes(bencher: Bencher) {
        let queue = crossbeam_queue::ArrayQueue::<Box<[u8]>>::new(URLS);
        let urls = urls();
        bencher.counter(ItemsCount::new(URLS)).bench_local(|| {
            for url in &urls {
                queue.push(black_box(url).as_slice().into()).expect("room");
            }
            while let Some(url) = queue.pop() {
                black_box(url);
            }
        });
    }
}

#[divan::bench_group(name = "turn", sample_size = 1)]
mod turns {
    use super::*;

    #[divan::bench]
    fn ours(bencher: Bencher) {
        let Ok(runtime) = Runtime::new(256) else { return };
        bencher.counter(ItemsCount::new(TURNS)).bench_local(|| {
            runtime.block_on(async {
                for _ in 0..TURNS {
                    turn().await;
                }
            });
        });
    }

    #[divan::bench]
    fn floor(bencher: Bencher) {
        bencher.counter(ItemsCount::new(TURNS)).bench_local(|| (0..TURNS).for_each(|_| std::thread::yield_now()));
    }
}

#[divan::bench_group(name = "wake", sample_size = 1)]
mod wakes {
    use super::*;

    #[divan::bench]
    fn ours(bencher: Bencher) {
        let Ok(runtime) = Runtime::new(256) else { return };
        let waker = Waker::new().expect("an event counter");
        let listener = WakeListener::new(&waker);
        bencher.counter(ItemsCount::new(TURNS)).bench_local(|| {
            runtime.block_on(async {
                for _ in 0..TURNS {
                    waker.wake();
                    listener.wait().await.expect("a wake-up");
                }
            });
        });
    }

    #[divan::bench]
    fn floor(bencher: Bencher) {
        let (mut reader, mut writer) = std::io::pipe().expect("a pipe");
        let mut byte = [1];
        bencher.counter(ItemsCount::new(TURNS)).bench_local(|| {
            for _ in 0..TURNS {
                writer.write_all(&byte).expect("room");
                reader.read_exact(&mut byte).expect("a byte");
            }
        });
    }
}
