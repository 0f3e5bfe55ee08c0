//! Every interleaving of two: one stands still at each of its steps, the other goes up to each of its own.

use std::panic::{AssertUnwindSafe, catch_unwind};

use sealstone::engine::Layout;
use sealstone::protection::{Protection, switch_off};

use super::acts::{Act, World};

const PUT: &[Act] = &[Act::Put("b")];
const PUT_ALSO: &[Act] = &[Act::Put("c")];
const RETIRE: &[Act] = &[Act::Retire];
const BOUNDED: &[Act] = &[Act::RetireBounded];
const RECLAIM: &[Act] = &[Act::Reclaim];
const READ: &[Act] = &[Act::Read];
const RETIRE_RECLAIM: &[Act] = &[Act::Retire, Act::Reclaim];
const BOUNDED_RECLAIM: &[Act] = &[Act::RetireBounded, Act::Reclaim];
const PUT_RECLAIM: &[Act] = &[Act::Put("b"), Act::Reclaim];

/// Of `of` steps at most `most`, the first and the last among them.
fn some(of: usize, most: usize) -> impl Iterator<Item = usize> {
    let every = of.div_ceil(most.max(1)).max(1);
    (1..=of).step_by(every)
}

/// The first stands at each of its steps, and the second goes to its end, or to one of `inner` of its steps.
fn all(layout: Layout, acts: [&[Act]; 2], inner: usize) {
    let world = World::new(layout);
    let steps = world.run([None, None], acts);
    world.judge(acts);
    let mut runs = 0;
    for first in 1..=steps[0] {
        let seconds = some(steps[1], inner).map(Some).filter(|_| inner > 0);
        for second in seconds.chain([None]) {
            let world = World::new(layout);
            world.run([Some(first), second], acts);
            let judged = catch_unwind(AssertUnwindSafe(|| world.judge(acts)));
            if let Err(e) = judged {
                println!("{layout:?}: {acts:?} at {first} and {second:?}");
                std::panic::resume_unwind(e);
            }
            runs += 1;
        }
    }
    println!("{layout:?}: {acts:?}: {steps:?} steps, {runs} runs");
}

/// Does every interleaving of putting with reclaim and compaction keep what is put, and leave nothing over?
#[test]
fn obj1_obj23_put_against_reclaim() {
    all(Layout::Directory, [PUT, RECLAIM], 8);
    all(Layout::Directory, [RECLAIM, PUT], 8);
    all(Layout::SingleFile, [PUT, RECLAIM], 0);
}

/// And with retirement, at once, by parts, and with the reclaim that follows it?
#[test]
fn obj19_put_against_retire() {
    all(Layout::Directory, [PUT, RETIRE_RECLAIM], 6);
    all(Layout::Directory, [RETIRE_RECLAIM, PUT], 3);
    all(Layout::Directory, [PUT, BOUNDED_RECLAIM], 4);
    all(Layout::Directory, [BOUNDED_RECLAIM, PUT], 0);
    all(Layout::SingleFile, [PUT, RETIRE_RECLAIM], 0);
}

/// And of retirement with reclaim and compaction, a put behind it?
#[test]
fn obj22_retire_against_reclaim() {
    all(Layout::Directory, [RECLAIM, RETIRE], 4);
    all(Layout::Directory, [RETIRE, RECLAIM], 8);
    all(Layout::Directory, [RECLAIM, BOUNDED], 4);
    all(Layout::Directory, [BOUNDED, RECLAIM], 4);
    all(Layout::Directory, [RETIRE, PUT_RECLAIM], 4);
    all(Layout::Directory, [RECLAIM, RECLAIM], 2);
}

/// And of two puts of the same, and of a reader with all that takes away what it reads?
#[test]
fn obj1_obj13_put_against_put_and_readers() {
    all(Layout::Directory, [PUT, PUT_ALSO], 6);
    all(Layout::Directory, [READ, RETIRE_RECLAIM], 0);
    all(Layout::Directory, [READ, BOUNDED_RECLAIM], 0);
    all(Layout::Directory, [RETIRE_RECLAIM, READ], 0);
    all(Layout::SingleFile, [READ, RETIRE_RECLAIM], 0);
}

/// Would these tests see "stored already" decided before the transaction that refers to it?
#[test]
fn what_is_decided_too_early_is_seen() {
    let put_early = |world: &World| {
        let _off = switch_off(Protection::DedupeInTransaction);
        world.act(Act::Put("b"));
    };
    let is_seen = (1..200).any(|stop| {
        let world = World::new(Layout::Directory);
        let tried = catch_unwind(AssertUnwindSafe(|| {
            let steps = world.run_with(stop, &put_early, &|world| {
                RETIRE_RECLAIM.iter().for_each(|act| world.act(*act));
            });
            world.judge([PUT, RETIRE_RECLAIM]);
            steps
        }));
        tried.is_err()
    });
    assert!(is_seen, "nobody noticed");
}
