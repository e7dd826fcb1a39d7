//! A second thread of a shard, which reads long responses and trains dictionaries.
//!
//! A long response may take a second of CPU time. On the shard's own thread it would delay a thousand others; here
//! the kernel shares the CPU between the two. The same holds for a dictionary, once per segment.
//! Decides: the thread starts with the shard and runs on its CPU, at a lower priority: while the shard itself has
//! work, reading gets a quarter of the CPU.
//! Invariants: each piece of work ends once, in order of arrival. A panic ends the crawl as one of the shard's own
//! does. The thread has ended when [`ReadingThread`] is dropped.
//! Limits: one response is read at a time, and nothing more while two results have not been taken. Those that wait
//! keep their slots among the fetches in flight.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

use crate::control::ShardHandle;
use crate::fetch::BodyHold;
use ringcrawl_base::stage::{self, Stage};
use ringcrawl_brain::page::{LongResponse, PageRead};
use ringcrawl_brain::shard::Input;
use ringcrawl_ring::{self as ring, Thread};
use ringcrawl_warc::{CaptureWriter, Dictionary, Packing, Training};

/// The pump's side of it.
pub struct ReadingThread {
    running: Option<Running>,
    /// The holds on memory of the pieces of work that have not ended yet, in their order.
    holds: VecDeque<BodyHold>,
    next: Option<Input>,
    failure: Option<String>,
}

struct Running {
    work: Sender<Work>,
    ends: Receiver<Result<End, String>>,
    thread: JoinHandle<()>,
}

/// What the thread receives.
enum Work {
    Read(Box<LongResponse>),
    Train(Box<Training>),
}

/// What it returns.
enum End {
    Read(Box<PageRead>),
    Trained(Option<Dictionary>),
}

impl Work {
    fn carry_out(self, writer: &mut CaptureWriter) -> End {
        match self {
            Work::Read(reading) => {
                let _stage = stage::enter(Stage::Other);
                End::Read(Box::new(reading.read(writer)))
            }
            Work::Train(training) => {
                let _stage = stage::enter(Stage::Store);
                End::Trained(training.train())
            }
        }
    }
}

impl ReadingThread {
    /// Starts the thread of shard number `shard`, which stores bodies by `packing`.
    pub fn start(shard: u16, handle: Arc<ShardHandle>, packing: Packing) -> Result<ReadingThread, String> {
        let mut writer = CaptureWriter::new(packing).map_err(|error| error.to_string())?;
        let (work, given) = mpsc::channel::<Work>();
        // One waits to be taken while the next is read: no more, as their memory is not counted.
        let (read, ends) = mpsc::sync_channel(1);
        let run = move || {
            handle.reading.announce();
            Thread::lower_priority();
            for piece in given {
                let end = ring::caught(|| piece.carry_out(&mut writer));
                if read.send(end.map_err(|panic| panic.to_string())).is_err() {
                    break;
                }
                handle.waker.wake();
            }
        };
        let name = format!("reading-{shard}");
        let thread = std::thread::Builder::new().name(name.clone()).spawn(run);
        let thread = thread.map_err(|error| format!("thread {name}: {error}"))?;
        let running = Some(Running { work, ends, thread });
        Ok(ReadingThread { running, holds: VecDeque::new(), next: None, failure: None })
    }

    /// Passes a response to the thread, and keeps its hold on memory until it was read.
    pub fn begin(&mut self, reading: Box<LongResponse>, hold: BodyHold) {
        self.give(Work::Read(reading), hold);
    }

    /// Passes samples to the thread; `nothing` is their hold on the memory for bodies.
    pub fn train(&mut self, training: Box<Training>, nothing: BodyHold) {
        self.give(Work::Train(training), nothing);
    }

    fn give(&mut self, piece: Work, hold: BodyHold) {
        self.holds.push_back(hold);
        // A thread that has gone has reported why.
        let _ = self.running.as_ref().map(|running| running.work.send(piece));
    }

    /// Whether work has ended that was not taken.
    pub fn has_end(&mut self) -> bool {
        // Most of the time nothing is being read, and looking costs as much as a lock.
        if self.next.is_none()
            && !self.holds.is_empty()
            && let Some(running) = &self.running
        {
            match running.ends.try_recv() {
                Ok(Ok(End::Read(page))) => self.next = Some(Input::Read(page)),
                Ok(Ok(End::Trained(dictionary))) => self.next = Some(Input::Trained(dictionary)),
                Ok(Err(error)) => self.failure = Some(error),
                Err(_) => {}
            }
        }
        self.next.is_some()
    }

    /// Finished work, one piece at a time.
    pub fn next_end(&mut self) -> Option<(Input, BodyHold)> {
        if !self.has_end() {
            return None;
        }
        Some((self.next.take()?, self.holds.pop_front()?))
    }

    /// Why nothing can be read any more.
    pub fn failure(&self) -> Option<String> {
        self.failure.clone()
    }
}

impl Drop for ReadingThread {
    fn drop(&mut self) {
        if let Some(Running { work, ends, thread }) = self.running.take() {
            // What still waits is left to the next run: the thread ends after its current response.
            drop((work, ends));
            let _ = thread.join();
        }
    }
}
