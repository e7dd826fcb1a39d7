//! The shard's access to the kernel: runtime, sockets, timers, files. No other crate makes a system call.
//!
//! Decides: one ring and one tokio-uring runtime per shard thread; every socket and file operation is an io_uring
//! operation that owns the memory it was given; deadlines cancel operations and never abandon them. The path of an
//! operation: `socket`, `file` and `wake` make it (`op`, `receive`, `sending`), `driver` submits it, `slots` keeps
//! its state, `reactor` decides when to enter the kernel, and its completion wakes the task (`task`).
//! Why so: a dropped future does not stop the kernel. Memory that the kernel still writes to must stay in place, so it
//! lives in the operation and comes back with the completion.
//!
//! Invariants: memory handed to the kernel stays with its operation until the completion, even when a task is dropped
//! or the runtime ends; a descriptor stays open while an operation on it is in flight, so its number cannot be reused
//! for another connection in the meantime; outside the SIMD kernels, `unsafe` occurs only in this folder.
//! Limits: Linux 5.19 or later (cancel by descriptor, cooperative task running, registered blocks); completions are
//! deferred from 6.1 on.
//! Leaves to others: what to connect to and what to send (`fetch`), when to write which file (`warc`).
//!
//! ```
//! use ringcrawl_ring::{Runtime, now, sleep_until};
//! use ringcrawl_base::time::Duration;
//!
//! let runtime = Runtime::new(16).expect("io_uring");
//! let due = now() + Duration::from_millis(5);
//! runtime.block_on(sleep_until(due));
//! assert!(now() >= due);
//! ```

#![allow(unsafe_code)]

mod alarm;
mod buffer;
mod clock;
mod deadlines;
mod driver;
mod file;
mod group;
mod heart;
mod interfaces;
mod op;
mod perf;
mod process;
mod reactor;
mod receive;
mod restrictions;
mod runtime;
mod sampler;
mod sending;
mod signal;
mod slots;
mod socket;
mod task;
mod thread;
mod wake;

pub use alarm::Alarm;
pub use buffer::{Buffer, BufferPool};
pub use clock::{now, sleep_until, unix_now, wall_clock};
pub use deadlines::{Deadlines, Guard};
pub use file::{File, remove, rename, sync_dir};
pub use heart::{Heart, Piece};
pub use interfaces::interface_addresses;
pub use op::operations;
pub use perf::SystemCalls;
pub use process::{cpu_time, free_bytes, raise_file_limit};
pub use reactor::Outside;
pub use receive::Receive;
pub use runtime::{RingError, Runtime, turn};
pub use sampler::{Sampled, Sampler};
pub use sending::Sending;
pub use signal::Signal;
pub use socket::{Socket, SocketOptions};
pub use task::{Panic, caught, panicked, spawn};
pub use thread::{Thread, process_cpu_time};
pub use wake::{WakeListener, Waker};
