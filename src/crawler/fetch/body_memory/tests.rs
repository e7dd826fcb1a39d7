//! Memory of bodies: which fetches wait, which are cut.

use super::*;
use ringcrawl_ring::{Runtime, spawn, turn};

const FREE: usize = BODY_BYTES_FREE as usize;

#[test]
fn what_is_free_is_not_asked_for_and_what_is_held_comes_back() {
    Runtime::new(8).expect("io_uring").block_on(async {
        let memory = BodyMemory::new(100);
        let (first, second) = (memory.hold(false), memory.hold(false));
        assert!(first.grow(FREE, || false).await && memory.bytes() == 0 && first.place.get().is_none());
        assert!(first.grow(FREE + 60, || false).await && second.grow(FREE + 40, || false).await);
        assert!(first.grow(FREE + 10, || false).await, "it holds more");
        assert_eq!(memory.bytes(), 100);
        first.settle(FREE + 30);
        assert_eq!(memory.bytes(), 70);
        first.settle(FREE + 200);
        assert_eq!(memory.bytes(), 240, "what is there counts, over the bound or not");
        drop(first);
        assert_eq!(memory.bytes(), 40);
        drop(second);
        assert_eq!((memory.bytes(), memory.shared.account.borrow().free.len()), (0, 2));
    });
}

#[test]
fn who_waits_goes_on_when_another_ends() {
    Runtime::new(8).expect("io_uring").block_on(async {
        let memory = BodyMemory::new(100);
        let first = memory.hold(false);
        assert!(first.grow(FREE + 90, || false).await);
        first.settle(FREE + 90);
        let order = Rc::new(RefCell::new(Vec::new()));
        let tasks: Vec<_> = [20, 80, 20]
            .into_iter()
            .enumerate()
            .map(|(number, bytes)| {
                let (hold, order) = (memory.hold(false), Rc::clone(&order));
                spawn(async move {
                    assert!(hold.grow(FREE + bytes, || false).await);
                    order.borrow_mut().push(number);
                    hold
                })
            })
            .collect();
        ring::sleep_until(ring::now() + PATIENCE * 3).await;
        assert!(order.borrow().is_empty(), "a response that is whole is not cut");
        drop(first);
        let mut holds = Vec::new();
        for (number, task) in tasks.into_iter().enumerate() {
            if number == 2 {
                turn().await;
                assert_eq!((&*order.borrow(), memory.bytes()), (&vec![0, 1], 100));
                holds.clear();
            }
            holds.push(task.await.expect("a task"));
        }
        assert_eq!(memory.bytes(), 20);
    });
}

#[test]
fn a_small_body_does_not_wait_for_large_ones() {
    Runtime::new(8).expect("io_uring").block_on(async {
        let memory = BodyMemory::new(4 << 20);
        let [first, second, small] = [0, 1, 2].map(|_| memory.hold(false));
        assert!(first.grow(FREE + (3 << 20), || false).await);
        let large = spawn(async move { second.grow(FREE + (1 << 20), || false).await });
        turn().await;
        assert!(!large.is_finished(), "a quarter is for small ones");
        assert!(small.grow(FREE + (100 << 10), || false).await && !large.is_finished());
        drop(first);
        assert!(large.await.expect("a task"));
    });
}

#[test]
fn where_nothing_moves_the_largest_is_cut() {
    Runtime::new(8).expect("io_uring").block_on(async {
        let memory = BodyMemory::new(100);
        let holds: Vec<_> = [30, 50, 20].map(|bytes| (memory.hold(false), bytes)).into();
        let mut tasks = Vec::new();
        for (hold, bytes) in holds {
            assert!(hold.grow(FREE + bytes, || false).await);
            // It reads, and nothing arrives.
            tasks.push(spawn(async move { hold.unless_cut(std::future::pending::<()>()).await }));
        }
        let late = memory.hold(false);
        assert!(late.grow(FREE + 40, || false).await);
        assert_eq!(memory.bytes(), 30 + 20 + 40);
        let cut = tasks.remove(1);
        assert_eq!(cut.await.expect("a task"), None);
        assert!(tasks.iter().all(|task| !task.is_finished()));
        // The largest may be the one that waits.
        assert!(!late.grow(FREE + 80, || false).await);
        drop(late);
        assert_eq!(memory.bytes(), 50);
        let over = memory.hold(false);
        let since = ring::now();
        assert!(!over.grow(FREE + 60, || true).await, "its time is over");
        assert!(ring::now().since(since) < PATIENCE * 3 && !memory.shared.account.borrow().is_anybody_waiting());
    });
}
#[test]
fn those_who_hold_a_little_each_are_cut_many_at_once() {
    Runtime::new(8).expect("io_uring").block_on(async {
        let memory = BodyMemory::new(16 << 20);
        // As handshakes with long chains do, from which nothing more arrives.
        let holders: Vec<_> = (0..157).map(|_| memory.hold(false)).collect();
        assert!(holders.iter().all(|hold| hold.has(FREE + (104 << 10))));
        let honest: Vec<_> = (0..100).map(|_| memory.hold(false)).collect();
        let mut tasks = Vec::new();
        for hold in honest {
            tasks.push(spawn(async move {
                let has = hold.grow(FREE + (80 << 10), || false).await;
                hold.give_back();
                has
            }));
        }
        turn().await;
        {
            let mut account = memory.shared.account.borrow_mut();
            assert_eq!(account.queues[0].waiting.len(), 100);
            account.queues[0].has_moved = false;
            account.cut_where_nothing_moves(ring::now());
            let cut = account.held.iter().filter(|held| held.state == BodyState::Cut).count();
            assert!((15..=21).contains(&cut), "an eighth of all, and no more: {cut}");
        }
        let is_cut = |hold: &BodyHold| memory.shared.account.borrow().held[hold.place()].state == BodyState::Cut;
        let (cut, rest): (Vec<_>, Vec<_>) = holders.into_iter().partition(is_cut);
        drop(cut);
        // They ask again, and go to the end of the queue.
        let again = spawn({
            let hold = memory.hold(false);
            async move { hold.grow(FREE + (120 << 10), || false).await }
        });
        for task in tasks {
            assert!(task.await.expect("a task"));
        }
        let cut = memory.shared.account.borrow().held.iter().filter(|held| held.state == BodyState::Cut).count();
        assert_eq!(cut, 0, "one round was enough for a hundred");
        assert!(again.await.expect("a task"));
        drop(rest);
    });
}
/// Memory that comes back because of a cut says nothing about the progress of the others.
#[test]
fn a_cut_body_does_not_count_as_movement() {
    Runtime::new(8).expect("io_uring").block_on(async {
        let memory = BodyMemory::new(1_000);
        let [first, second, late] = [0, 1, 2].map(|_| memory.hold(false));
        assert!(first.has(FREE + 500) && second.has(FREE + 400));
        let waiting = spawn(async move { late.grow(FREE + 900, || false).await });
        turn().await;
        {
            let mut account = memory.shared.account.borrow_mut();
            account.queues[0].has_moved = false;
            account.cut_where_nothing_moves(ring::now());
            assert!(account.held.iter().any(|held| held.state == BodyState::Cut));
        }
        first.settle(0);
        {
            let account = memory.shared.account.borrow();
            assert_eq!((account.cut_bytes, account.queues[0].has_moved), (500, false));
        }
        drop((first, second));
        assert!(waiting.await.expect("a task"));
    });
}
/// A stranger holds the quarter for small fetches, drips, and closes one now and then, so that something moves.
#[test]
fn who_closes_one_now_and_then_holds_up_no_other() {
    Runtime::new(8).expect("io_uring").block_on(async {
        let memory = BodyMemory::new(16 << 20);
        let holders: Vec<_> = (0..157).map(|_| memory.hold(false)).collect();
        assert!(holders.iter().all(|hold| hold.has(FREE + (104 << 10))));
        let late = memory.hold(false);
        let waiting = spawn(async move { late.grow(FREE + (110 << 10), || false).await });
        turn().await;
        let cut = |now: Instant| {
            let mut account = memory.shared.account.borrow_mut();
            account.queues[SMALL].has_moved = true;
            account.cut_where_nothing_moves(now);
            account.held.iter().filter(|held| held.state == BodyState::Cut).count()
        };
        let begun = ring::now();
        assert_eq!(cut(begun), 0, "it has just come");
        assert_eq!(cut(begun + PATIENCE), 0, "the others have had no more than a second");
        assert_eq!(cut(begun + SLOW_AFTER), 1);
        drop(holders);
        assert!(waiting.await.expect("a task"));
    });
}

#[test]
fn slow_sites_have_half_of_all_and_cut_none_but_their_own() {
    Runtime::new(8).expect("io_uring").block_on(async {
        let memory = BodyMemory::new(16 << 20);
        let slow: Vec<_> = (0..16).map(|_| memory.hold(true)).collect();
        let has = slow.iter().filter(|hold| hold.has(FREE + (1 << 20))).count();
        assert_eq!(has, 8);
        let honest = memory.hold(false);
        assert!(honest.has(FREE + (4 << 20)));
        let waiting = {
            let hold = memory.hold(true);
            spawn(async move { hold.grow(FREE + (1 << 20), || false).await })
        };
        turn().await;
        {
            let mut account = memory.shared.account.borrow_mut();
            account.queues[SLOW].has_moved = false;
            account.cut_where_nothing_moves(ring::now());
            let cut: Vec<bool> =
                account.held.iter().filter(|held| held.state == BodyState::Cut).map(|held| held.is_slow).collect();
            assert_eq!(cut, [true]);
        }
        drop(slow);
        assert!(waiting.await.expect("a task"));
        let account = memory.shared.account.borrow();
        assert_eq!((account.bytes, account.slow_bytes), (4 << 20, 0));
    });
}
