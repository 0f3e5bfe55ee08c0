//! A disk that fails at every operation of the run, once or for ever.

use std::collections::BTreeMap;

use sealstone::engine::{Layout, Store};
use sealstone::vfs::sim::{Fault, FaultKind, Profile, Rng, SyncFailure};

use super::judge::{Look, judge};
use super::play::{PATH, Play, options, world};
use crate::child::fixed_seed;

/// Operations from one fault to the next; `SEALSTONE_MATRIX` asks for all of them.
const STRIDE: u64 = 41;

/// How a run with a fault in it went on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum After {
    /// Nothing came of it.
    Unnoticed,
    /// A call failed, and succeeded when it was tried again in the same store.
    TriedAgain,
    /// The store halted, or the fault lasted: it was opened again.
    Reopened,
}

struct Struck {
    play: Play,
    store: Store,
    after: After,
    what: String,
}

/// Plays with a fault after `after` operations; nothing where the run is over before.
fn strike(layout: Layout, seed: u64, after: u64, kind: FaultKind, forever: bool) -> Option<Struck> {
    let disk = world(seed);
    let store = options(layout, &disk).create(PATH).unwrap();
    let play = Play::new(layout, &disk, seed);
    disk.restart_log();
    let fault = Fault::new(disk.operations() + after, kind);
    disk.inject(if forever { fault.forever() } else { fault });
    let first = play.run(&store);
    let fired = disk.fired().into_iter().next()?;
    let what = format!("{kind:?} at {:?} of {}: {first:?}", fired.what, fired.path.display());
    disk.clear_faults();
    let after = match &first {
        Ok(()) => After::Unnoticed,
        Err(_) if forever && after.is_multiple_of(2) => After::Reopened,
        Err(_) => try_again(&play, &store, &what),
    };
    Some(Struck { play, store, after, what })
}

/// STG20: without a restart, unless the store halted: a claim whose release failed is let go of. What went wrong while something was let go of is told
/// by the next call, so that there is more than one try.
fn try_again(play: &Play, store: &Store, what: &str) -> After {
    let mut last = None;
    for _ in 0..4 {
        if store.health().halted.is_some() {
            return After::Reopened;
        }
        match play.run(store) {
            Ok(()) => return After::TriedAgain,
            Err(e) => last = Some(e),
        }
    }
    panic!("{what}; tried again in a store that works: {last:?}")
}

fn sweep(layout: Layout, kind: FaultKind, stride: u64) -> BTreeMap<(After, bool), u64> {
    let (seed, mut found) = (fixed_seed("faults"), BTreeMap::new());
    for forever in [false, true] {
        let mut at = seed % stride;
        while let Some(struck) = strike(layout, seed, at, kind, forever) {
            let Struck { play, store, after, what } = struck;
            *found.entry((after, forever)).or_default() += 1;
            let facts = play.now();
            // The power fails as well: what is on its way survives, or does not.
            let log = play.disk.events();
            let mut cursor = log.cursor(Profile::PosixHarshest);
            cursor.advance_to(log.len());
            let images = cursor.images(&mut Rng::new(seed), 2);
            play.disk.kill();
            drop(store);
            let killed = play.disk.process(77);
            let worlds = images.iter().map(|image| image.disk()).chain([killed]);
            for (n, disk) in worlds.enumerate() {
                let look = match (n as u64 + at).is_multiple_of(3) {
                    _ if matches!(kind, FaultKind::SyncFails(_)) => Look::FailedSync,
                    true => Look::NextPass,
                    false => Look::Rows,
                };
                if let Err(why) = judge(&play, &disk, &facts, look) {
                    panic!("{why}\n  {what} (after {at}, for ever: {forever}), {after:?}");
                }
            }
            at += stride;
        }
    }
    found
}

fn sweep_all(layout: Layout, kind: FaultKind) {
    let stride = if std::env::var("SEALSTONE_MATRIX").is_ok() { 1 } else { STRIDE };
    let found = sweep(layout, kind, stride);
    println!("{layout:?}, {kind:?}: {found:?} (after, for ever)");
    assert!(found.values().sum::<u64>() > 10);
}

/// Is each acknowledged row there exactly once when an operation of the disk fails, once or from
/// then on, and does the next pass succeed?
#[test]
fn stg20_stg26_rows_are_there_once_after_an_error_at_any_operation() {
    sweep_all(Layout::Directory, FaultKind::Eio);
}

/// And in a store that is one file?
#[test]
fn stg20_rows_are_there_once_after_an_error_in_one_file() {
    sweep_all(Layout::SingleFile, FaultKind::Eio);
}

/// And when the disk is full?
#[test]
fn stg20_stg26_rows_are_there_once_after_a_full_disk_at_any_operation() {
    sweep_all(Layout::Directory, FaultKind::Enospc);
}

/// And in a store that is one file?
#[test]
fn stg20_rows_are_there_once_after_a_full_disk_in_one_file() {
    sweep_all(Layout::SingleFile, FaultKind::Enospc);
}

const PART_SYNCED: FaultKind = FaultKind::SyncFails(SyncFailure::RandomPart);

/// And when a sync fails after it persisted any bytes of what it was asked for?
#[test]
fn stg20_stg26_rows_are_there_once_after_a_sync_that_fails_in_part() {
    sweep_all(Layout::Directory, PART_SYNCED);
}

/// And in a store that is one file?
#[test]
fn stg20_rows_are_there_once_after_a_sync_that_fails_in_part_in_one_file() {
    sweep_all(Layout::SingleFile, PART_SYNCED);
}
