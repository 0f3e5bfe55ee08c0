//! Claims whose release fails: does the same store go on once its disk is well?

use std::sync::Arc;

use sealstone::engine::{Layout, Store};
use sealstone::manifest::{ClaimKind, ResourceKey};
use sealstone::staging::{PlanOptions, Ready, Stage};
use sealstone::vfs::sim::{Fault, FaultKind, SimDisk};

use crate::support::{NAME, put, root, shape, sim, small, with};

/// Drops `held` on a disk that is full and does not give the ballast back: nothing can be committed, and
/// the store does not halt.
fn drop_in_vain<T>(disk: &SimDisk, store: &Store, held: T) {
    disk.set_capacity(Some(disk.used()));
    disk.inject(Fault::new(0, FaultKind::Eio).on("ballast").forever());
    drop(held);
    assert!(!disk.fired().is_empty(), "the ballast stayed where it was");
    assert!(store.health().halted.is_none(), "{:?}", store.health().halted);
    assert_eq!(store.claims(9).unwrap().len(), 1, "it was released");
    disk.clear_faults();
    disk.set_capacity(None);
}

fn with_ballast(test: impl Fn(&SimDisk, &Store, &Stage)) {
    let disk = sim(20);
    let mut limits = small();
    (limits.ballast_bytes, limits.low_water_bytes) = (8 << 10, 16 << 10);
    // A single file has no ballast.
    let options = with(Arc::new(disk.clone()), Layout::Directory, limits);
    let store = options.create(root()).unwrap();
    let stage = store.create_stage(NAME, &shape()).unwrap();
    put(&stage, "a", 1, "one two");
    test(&disk, &store, &stage);
    assert!(store.claims(9).unwrap().is_empty());
}

/// Are groups free again whose plan was dropped in vain?
#[test]
fn stg20_stg11_groups_are_planned_again_after_a_release_that_failed() {
    with_ballast(|disk, store, stage| {
        stage.flush(&Ready::All).unwrap();
        let plan = stage.plan(&PlanOptions::default()).unwrap();
        assert_eq!(plan.len(), 1);
        drop_in_vain(disk, store, plan);
        // STG11: told once.
        assert!(stage.flush(&Ready::All).is_err());
        let plan = stage.plan(&PlanOptions::default()).unwrap();
        assert_eq!(plan.len(), 1, "this process holds it against itself");
    });
}

/// And is a stage flushed, that was claimed in vain; and does it let go of everything, where it has
/// nothing to seal?
#[test]
fn stg20_a_stage_is_flushed_after_a_release_that_failed() {
    with_ballast(|disk, store, stage| {
        for rows in [2, 0] {
            let resource = ResourceKey::of_stage(stage.id());
            let claim = store.claim(&resource, ClaimKind::Stage).unwrap();
            drop_in_vain(disk, store, claim);
            assert_eq!(stage.flush(&Ready::All).unwrap().rows, rows);
            assert!(store.claims(9).unwrap().is_empty());
        }
    });
}

/// And a single claim, taken again?
#[test]
fn stg20_what_was_claimed_in_vain_is_claimed_again() {
    with_ballast(|disk, store, _| {
        let resource = ResourceKey::of_recording("x");
        let claim = store.claim(&resource, ClaimKind::Group).unwrap();
        drop_in_vain(disk, store, claim);
        drop(store.claim(&resource, ClaimKind::Group).unwrap());
    });
}
