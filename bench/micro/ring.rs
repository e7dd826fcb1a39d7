//! What shards and kernel cost by the piece: a batch through the ring between two shards, a turn of io_uring, a wake-up.
//!
//! Floors: for the batch, two copies of its bytes; for turn and wake-up, which are system calls, as many bare ones:
//! `sched_yield`, and a byte through a pipe and back.
//! Checked before: what comes out of the ring is what went in. Where the kernel refuses io_uring, its two are left out.

use std::io::{Read, Write};

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use ringcrawl::exchange::spsc;
use ringcrawl::ring::{Runtime, WakeListener, Waker, turn};

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
