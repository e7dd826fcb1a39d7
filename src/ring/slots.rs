//! The state of operations in flight: a slot for each, reused.
//!
//! Invariants: a slot is free, or belongs to one operation until its last completion has arrived and has been taken
//! or abandoned. Completions are handed out in the order in which they arrived.
//! Limits: plain data, without a kernel. An operation that keeps completing is reported as soon as `UNASKED`
//! completions wait; the few that arrive before it ends are kept as well.

use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// What the kernel reported for an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Completion {
    /// A number of bytes, a descriptor, or a negative error number.
    pub(super) result: i32,
    /// The block that it took from its group.
    pub(super) block: Option<u16>,
}

/// How many completions of one operation may wait to be taken.
const UNASKED: usize = 8;

/// What an abandoned operation needs until its end.
pub(super) trait Leftover {
    /// Handles a completion that was not taken.
    fn completed(&self, _completion: Completion) {}
}

impl Leftover for () {}

/// Where an operation is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct OpId {
    index: u32,
    generation: u32,
}

impl OpId {
    /// The number by which the kernel knows it.
    pub(super) fn user_data(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }
}

impl From<u64> for OpId {
    fn from(user_data: u64) -> OpId {
        OpId { index: (user_data & 0xffff_ffff) as u32, generation: (user_data >> 32) as u32 }
    }
}

/// All slots of a ring.
#[derive(Default)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// How many are in flight.
    in_flight: usize,
}

#[derive(Default)]
struct Slot {
    generation: u32,
    in_flight: bool,
    /// Whether to wake the waiting task only on failure.
    failure_alone: bool,
    waker: Option<Waker>,
    first: Option<Completion>,
    /// Those behind the first.
    more: VecDeque<Completion>,
    leftover: Option<Rc<dyn Leftover>>,
}

impl Slots {
    /// A slot for a new operation.
    pub(super) fn take(&mut self) -> OpId {
        self.in_flight += 1;
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            // More would need more memory than the numbers' own.
            u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
        });
        let generation = self.slots.get_mut(index as usize).map_or(0, |slot| {
            slot.in_flight = true;
            slot.failure_alone = false;
            slot.generation
        });
        OpId { index, generation }
    }

    /// Whether nothing is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.in_flight == 0
    }

    /// Whether the operation `id` is in flight.
    pub(super) fn is_in_flight(&self, id: OpId) -> bool {
        let slot = self.slots.get(id.index as usize);
        slot.is_some_and(|slot| slot.generation == id.generation && slot.in_flight)
    }

    /// Whether the operation `id` is in flight and has no completion ready.
    pub(super) fn is_waiting(&self, id: OpId) -> bool {
        self.is_in_flight(id) && self.slots.get(id.index as usize).is_some_and(|slot| slot.first.is_none())
    }

    /// The one completion that waits to be taken, when it is the last.
    pub(super) fn last(&self, id: OpId) -> Option<Completion> {
        let slot = self.slots.get(id.index as usize).filter(|slot| slot.generation == id.generation)?;
        slot.first.filter(|_| !slot.in_flight && slot.more.is_empty())
    }

    /// The ids of all operations in flight.
    pub(super) fn in_flight(&self) -> Vec<OpId> {
        let slots = (0..).zip(&self.slots).filter(|(_, slot)| slot.in_flight);
        slots.map(|(index, slot)| OpId { index, generation: slot.generation }).collect()
    }

    /// The next completion, and whether it is the last: the slot is then free. An id that has been reused never has
    /// one.
    pub(super) fn poll(&mut self, id: OpId, context: &Context<'_>) -> Poll<(Completion, bool)> {
        let Some(slot) = self.slot(id) else { return Poll::Pending };
        if let Some(completion) = slot.first.take() {
            slot.first = slot.more.pop_front();
            let last = !slot.in_flight && slot.first.is_none();
            if last {
                self.release(id);
            }
            return Poll::Ready((completion, last));
        }
        slot.failure_alone = false;
        match &mut slot.waker {
            Some(waker) => waker.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        Poll::Pending
    }

    /// The same for a caller that must learn of a failure but need not be woken on success.
    pub(super) fn poll_failure(&mut self, id: OpId, context: &Context<'_>) -> Poll<(Completion, bool)> {
        let polled = self.poll(id, context);
        if polled.is_pending()
            && let Some(slot) = self.slot(id)
        {
            slot.failure_alone = true;
        }
        polled
    }

    /// The operation `id`, for which the kernel reports only failures, has been submitted: it succeeded unless a
    /// failure was reported.
    pub(super) fn assume(&mut self, id: OpId, completion: Completion, woken: &mut Vec<Waker>) {
        if !self.is_in_flight(id) {
            return;
        }
        self.in_flight -= 1;
        let Some(slot) = self.slot(id) else { return };
        slot.in_flight = false;
        if slot.leftover.is_some() {
            self.release(id);
            return;
        }
        slot.first = Some(completion);
        if !slot.failure_alone {
            woken.extend(slot.waker.take());
        }
    }

    /// Leaves `leftover` in the slot until its operation has ended; returns the completions that were not taken.
    pub(super) fn leave(&mut self, id: OpId, leftover: &Rc<dyn Leftover>) -> Vec<Completion> {
        let Some(slot) = self.slot(id) else { return Vec::new() };
        slot.waker = None;
        let unasked = slot.first.take().into_iter().chain(slot.more.drain(..)).collect();
        if slot.in_flight {
            slot.leftover = Some(leftover.clone());
        } else {
            self.release(id);
        }
        unasked
    }

    /// Records a completion, with more to follow or not. Adds the task to wake, or the leftover that it belongs to;
    /// returns whether so many are waiting that the operation should be ended.
    pub(super) fn complete(
        &mut self,
        id: OpId,
        completion: Completion,
        more: bool,
        woken: &mut Vec<Waker>,
        left: &mut Vec<(Rc<dyn Leftover>, Completion)>,
    ) -> bool {
        if !self.is_in_flight(id) {
            return false;
        }
        self.in_flight -= usize::from(!more);
        let Some(slot) = self.slot(id) else { return false };
        slot.in_flight = more;
        if let Some(leftover) = &slot.leftover {
            left.push((leftover.clone(), completion));
            if !more {
                self.release(id);
            }
            return false;
        }
        woken.extend(slot.waker.take());
        match slot.first {
            None => slot.first = Some(completion),
            Some(_) => slot.more.push_back(completion),
        }
        more && slot.more.len() + 1 == UNASKED
    }

    fn slot(&mut self, id: OpId) -> Option<&mut Slot> {
        self.slots.get_mut(id.index as usize).filter(|slot| slot.generation == id.generation)
    }

    fn release(&mut self, id: OpId) {
        if let Some(slot) = self.slot(id) {
            slot.generation = slot.generation.wrapping_add(1);
            slot.waker = None;
            slot.leftover = None;
            self.free.push(id.index);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[derive(Default)]
    struct Seen(RefCell<Vec<i32>>);

    impl Leftover for Seen {
        fn completed(&self, completion: Completion) {
            self.0.borrow_mut().push(completion.result);
        }
    }

    fn said(result: i32) -> Completion {
        Completion { result, block: None }
    }

    /// Completes, and hands leftovers their completions; returns how many wakers were called.
    fn complete(slots: &mut Slots, id: OpId, result: i32, more: bool) -> usize {
        let (mut woken, mut left) = (Vec::new(), Vec::new());
        assert!(!slots.complete(id, said(result), more, &mut woken, &mut left));
        left.iter().for_each(|(leftover, completion)| leftover.completed(*completion));
        woken.len()
    }

    #[test]
    fn completions_come_in_order_and_the_last_frees_the_slot() {
        let (mut slots, context) = (Slots::default(), Context::from_waker(Waker::noop()));
        let id = slots.take();
        assert_eq!(OpId::from(id.user_data()), id);
        assert!(slots.poll(id, &context).is_pending());
        assert_eq!(complete(&mut slots, id, 1, true), 1);
        assert_eq!(complete(&mut slots, id, 2, true), 0, "woken once");
        assert_eq!(complete(&mut slots, id, 3, false), 0);
        assert!(slots.is_idle());
        let polled = [0; 3].map(|_| slots.poll(id, &context));
        assert_eq!(polled, [(1, false), (2, false), (3, true)].map(|(result, last)| Poll::Ready((said(result), last))));
        let next = slots.take();
        assert_eq!((next.index, slots.slots.len()), (id.index, 1), "used again");
        assert_ne!(next, id);
        // A late completion for the previous operation is dropped.
        assert_eq!(complete(&mut slots, id, 9, false), 0);
        assert!(slots.poll(next, &context).is_pending() && slots.poll(id, &context).is_pending());
        assert!(!slots.is_idle());
        assert_eq!(slots.in_flight(), [next]);
    }

    #[test]
    fn what_goes_on_unasked_is_to_end() {
        let (mut slots, context) = (Slots::default(), Context::from_waker(Waker::noop()));
        let id = slots.take();
        assert!(slots.is_waiting(id));
        let mut told = Vec::new();
        for round in 0..3 {
            for number in 0..10 {
                let last = (round, number) == (2, 9);
                if slots.complete(id, said(number), !last, &mut Vec::new(), &mut Vec::new()) {
                    told.push((round, number));
                }
                assert!(!slots.is_waiting(id));
            }
            for number in 0..10 {
                let last = (round, number) == (2, 9);
                assert_eq!(slots.poll(id, &context), Poll::Ready((said(number), last)));
            }
            assert_eq!(slots.is_waiting(id), round < 2);
        }
        assert_eq!(told, [0, 1, 2].map(|round| (round, 7)), "once each time");
        // An operation that ends by itself need not be cancelled.
        let id = slots.take();
        let ended = (1..=8).map(|number| slots.complete(id, said(0), number < 8, &mut Vec::new(), &mut Vec::new()));
        assert_eq!(ended.filter(|tell| *tell).count(), 0);
    }

    #[test]
    fn what_no_future_asks_for_goes_to_what_was_left() {
        let mut slots = Slots::default();
        let (id, seen) = (slots.take(), Rc::new(Seen::default()));
        complete(&mut slots, id, 1, true);
        let leftover: Rc<dyn Leftover> = seen.clone();
        assert_eq!(slots.leave(id, &leftover), [said(1)]);
        drop(leftover);
        assert_eq!(Rc::strong_count(&seen), 2);
        complete(&mut slots, id, 2, true);
        complete(&mut slots, id, 3, false);
        assert_eq!(*seen.0.borrow(), [2, 3]);
        assert_eq!((Rc::strong_count(&seen), slots.free.len()), (1, 1));
        // An operation that has ended keeps nothing.
        let id = slots.take();
        complete(&mut slots, id, 4, false);
        assert_eq!(slots.leave(id, &(seen.clone() as Rc<dyn Leftover>)), [said(4)]);
        assert_eq!((Rc::strong_count(&seen), slots.free.len()), (1, 1));
    }

    #[test]
    fn silence_is_success_unless_something_was_said() {
        let (mut slots, context) = (Slots::default(), Context::from_waker(Waker::noop()));
        let [asked, attended, failed, left, unasked] = [(); 5].map(|()| slots.take());
        assert!(slots.poll(asked, &context).is_pending());
        assert!(slots.poll_failure(attended, &context).is_pending());
        assert!(slots.poll_failure(failed, &context).is_pending());
        assert_eq!(complete(&mut slots, failed, -11, false), 1, "who attends is woken by a failure");
        slots.leave(left, &(Rc::new(()) as Rc<dyn Leftover>));
        let mut woken = Vec::new();
        for id in [asked, attended, failed, left, unasked] {
            slots.assume(id, said(7), &mut woken);
        }
        assert_eq!(woken.len(), 1, "who asked, and not who attends");
        let results = [asked, attended, failed, unasked].map(|id| slots.poll(id, &context));
        assert_eq!(results, [7, 7, -11, 7].map(|result| Poll::Ready((said(result), true))));
        assert_eq!(slots.free.len(), 5);
    }
}
