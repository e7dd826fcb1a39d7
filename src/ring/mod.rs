//! The shard's hands on the kernel: runtime, sockets, timers, files. Nothing else makes a system call.
//!
//! Decides: one ring and one tokio-uring runtime per shard thread; every socket and file operation is an io_uring
//! operation that owns the memory it was given; deadlines cancel operations, they never abandon them.
//! The way of an operation: `socket`, `file`, `wake` make it (`op`, `receive`, `sending`), `driver` submits it, `slots`
//! has its state, `pump` says when the kernel is entered, and its completion wakes the task (`task`).
//! Why so: a dropped future does not stop the kernel. Memory it still writes to must stay where it is, so
//! memory lives in the operation and comes back with its completion.
//!
//! Invariants: memory handed to the kernel stays with its operation until the completion, also when a task
//! is dropped or the runtime ends; a descriptor stays open as long as an operation on it is under way, so
//! its number cannot be given to another connection meanwhile; `unsafe` occurs in this folder alone.
//! Limits: Linux 5.19 or later (cancel by descriptor, cooperative task running, registered blocks); from 6.1 on
//! completions are deferred.
//! Leaves to others: what to connect to and what to say (`fetch`), when to write which file (`store`).

#![allow(unsafe_code)]

mod alarm;
mod buffer;
mod clock;
mod deadlines;
mod driver;
mod file;
mod group;
mod op;
mod perf;
mod process;
mod pump;
mod receive;
mod runtime;
mod sampler;
mod sending;
mod slots;
mod socket;
mod task;
mod thread;
mod wake;

pub use alarm::Alarm;
pub use buffer::{Buffer, BufferPool};
pub use clock::{now, process_start, sleep_until, unix_now};
pub use deadlines::{Deadlines, Guard};
pub use file::{File, remove, rename, sync_dir};
pub use op::operations;
pub use perf::SystemCalls;
pub use process::{cpu_time, raise_file_limit};
pub use pump::Outside;
pub use receive::Receive;
pub use runtime::{RingError, Runtime, turn};
pub use sampler::{Sampled, Sampler};
pub use sending::Sending;
pub use socket::{Socket, SocketOptions};
pub use task::{Panic, caught, panicked, spawn};
pub use thread::{Thread, process_cpu_time};
pub use wake::{WakeListener, Waker};
