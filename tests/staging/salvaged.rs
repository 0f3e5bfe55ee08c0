//! Salvage: does a stage that is newer than any snapshot come back under its name, with each of its rows?

use std::path::PathBuf;
use std::sync::Arc;

use sealstone::check::{SalvageOptions, Salvaged, Unconfirmed, salvage};
use sealstone::engine::{Budget, Layout, Store};
use sealstone::staging::{MergeOptions, Ready, Stage};
use sealstone::vfs::Disk;
use sealstone::vfs::sim::SimDisk;

use crate::support::{NAME, on, put, root, shape, sim};
use crate::words::{Words, all, convert_well, long, published};

/// A store with a stage that no snapshot knows, of a process that will be killed: one without any
/// snapshot, or one whose only snapshot is older.
fn begun(seed: u64, has_snapshot: bool) -> (SimDisk, SimDisk, Store, Stage) {
    let world = sim(seed);
    let disk = world.process(7);
    let mut store = on(&disk, Layout::Directory).create(root()).unwrap();
    if has_snapshot {
        store.create_stream("older").unwrap();
        store.close().unwrap();
        store = on(&disk, Layout::Directory).open(root()).unwrap();
    }
    let stage = store.create_stage(NAME, &shape()).unwrap();
    (world, disk, store, stage)
}

fn new() -> PathBuf {
    PathBuf::from("/data/new.stone")
}

/// The writer is killed, the manifest is lost, and the stage is looked for by its name.
fn salvaged(world: &SimDisk, disk: &SimDisk, store: Store) -> (Salvaged, Store) {
    disk.kill();
    std::mem::forget(store);
    world.unlink(&root().join("manifest.redb")).unwrap();
    let options = SalvageOptions { disk: Some(Arc::new(world.clone())) };
    let salvaged = salvage(root(), new(), &options).unwrap();
    assert!(salvaged.lost.is_empty(), "{salvaged:#?}");
    let is_it = |told: &&Unconfirmed| matches!(told, Unconfirmed::Stage { name } if name == NAME);
    assert_eq!(salvaged.unconfirmed.iter().filter(is_it).count(), 1, "{salvaged:#?}");
    (salvaged, on(world, Layout::Directory).open(new()).unwrap())
}

fn text(n: u64) -> String {
    format!("n{n} {}", long("word", 40))
}

/// Of its parts, whether its group is open or detached; what is unsealed comes with it.
#[test]
fn g25_a_stage_newer_than_any_snapshot_comes_back_by_its_parts() {
    for (has_snapshot, is_detached) in [(false, false), (false, true), (true, false), (true, true)]
    {
        let (world, disk, store, stage) = begun(61, has_snapshot);
        put(&stage, "a", 1, &text(1));
        put(&stage, "b", 1, &text(2));
        match is_detached {
            true => stage.flush(&Ready::All).unwrap(),
            false => stage.seal().unwrap(),
        };
        put(&stage, "a", 1, &text(3));
        stage.barrier().unwrap();
        let before = all(&stage);
        let (told, store) = salvaged(&world, &disk, store);
        assert_eq!(told.covers.is_some(), has_snapshot);
        let stage = store.stage(NAME).unwrap();
        assert_eq!(all(&stage), before);
        // And it goes on as any other.
        put(&stage, "a", 1, &text(4));
        stage.flush(&Ready::All).unwrap();
        convert_well(&stage);
        assert_eq!(published(&stage).len(), 4);
    }
}

/// Of an output whose parts are gone.
#[test]
fn g25_a_stage_newer_than_any_snapshot_comes_back_by_its_outputs() {
    for has_snapshot in [false, true] {
        let (world, disk, store, stage) = begun(62, has_snapshot);
        put(&stage, "a", 1, &text(1));
        stage.flush(&Ready::All).unwrap();
        convert_well(&stage);
        assert!(store.reclaim(Budget::default()).unwrap().files > 0);
        let (_, store) = salvaged(&world, &disk, store);
        let stage = store.stage(NAME).unwrap();
        assert_eq!(all(&stage), [text(1)]);
        assert_eq!(published(&stage), [text(1)]);
    }
}

/// Of an output that others were merged into, and they are gone.
#[test]
fn g25_a_stage_newer_than_any_snapshot_comes_back_by_a_merged_output() {
    for has_snapshot in [false, true] {
        let (world, disk, store, stage) = begun(63, has_snapshot);
        for n in [1, 2] {
            put(&stage, "a", 1, &text(n));
            stage.flush(&Ready::All).unwrap();
            convert_well(&stage);
        }
        let merged = stage.merge(&MergeOptions::default(), &Words::plain()).unwrap();
        assert_eq!(merged.len(), 1);
        assert!(store.reclaim(Budget::default()).unwrap().files > 0);
        let (_, store) = salvaged(&world, &disk, store);
        let stage = store.stage(NAME).unwrap();
        assert_eq!(published(&stage), [text(1), text(2)]);
        assert_eq!(all(&stage), [text(1), text(2)]);
    }
}
