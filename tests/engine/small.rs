//! Many small objects, and the rows that they leave: does the manifest stay small, and do snapshots of it
//! cost what changed?

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use sealstone::check::{CheckOptions, check};
use sealstone::engine::{Budget, Store, Thing};
use sealstone::ids::ObjectId;
use sealstone::manifest::{ObjectRow, Place, Reading};
use sealstone::protection::{Protection, switch_off};

use crate::support::{on, root, sim, small};

fn contents(from: u64, count: u64) -> Vec<Vec<u8>> {
    (from..from + count).map(|n| n.to_le_bytes().repeat(8)).collect()
}

fn places(store: &Store, objects: &[ObjectId]) -> BTreeSet<Option<u64>> {
    let snapshot = store.snapshot().unwrap();
    let place = |object| match snapshot.require::<ObjectRow>(object).unwrap().place {
        Place::Inline | Place::Recipe => None,
        Place::Extent { file, .. } => Some(file.0),
    };
    objects.iter().map(place).collect()
}

/// Do small objects lie in the manifest alone, and together in one file, each stored once all the same,
/// and are they retired, compacted and counted there like any other?
#[test]
fn small_objects_lie_together_in_a_file_and_alone_in_the_manifest() {
    let disk = sim(7);
    let store = on(&disk).create(root()).unwrap();
    let lease = |name: &str| store.lease("test", name, None, &[]).unwrap();
    let put = |lease, contents| -> Vec<ObjectId> {
        store.put_objects(lease, contents).unwrap().into_iter().map(|(object, _)| object).collect()
    };
    let kept = lease("kept");
    // 64 bytes each, which is the limit: 16 of them may go to the manifest together.
    let few = put(kept, contents(0, 16));
    assert_eq!(places(&store, &few), BTreeSet::from([None]));
    let (gone, many) = (lease("gone"), put(kept, contents(100, 17)));
    let together = places(&store, &many);
    assert!(together.len() == 1 && !together.contains(&None), "{together:?}");
    let mixed = put(gone, [contents(0, 1), contents(100, 30)].concat());
    assert_eq!(mixed[0], few[0], "what is stored is stored once");
    assert_eq!(mixed[1..18], many);
    let others = put(gone, contents(1000, 40));
    let dead = contents(1040, 40);
    let last = lease("last");
    let survivors = put(last, [dead.clone(), contents(1000, 2)].concat());
    for (object, content) in [&few, &many]
        .into_iter()
        .flatten()
        .zip(contents(0, 16).into_iter().chain(contents(100, 17)))
    {
        assert_eq!(store.fetch(*object).unwrap(), content);
    }
    store.retire(&[Thing::Lease(gone)], "test").unwrap();
    store.reclaim(Budget::default()).unwrap();
    assert_eq!(store.fetch(survivors[40]).unwrap(), contents(1000, 1)[0]);
    assert_eq!(survivors[40], others[0]);
    assert!(store.accounts().unwrap().are_closed());
    store.close().unwrap();
    let options = CheckOptions { disk: Some(Arc::new(disk)), ..CheckOptions::default() };
    let report = check(root(), &options, &mut |_| ControlFlow::Continue(())).unwrap();
    assert!(report.findings.is_empty(), "{report:?}");
}

/// Are snapshots written before more rows changed than are remembered one by one, so that the next one is
/// again of what changed?
#[test]
fn much_that_changed_brings_a_snapshot_of_what_changed() {
    let disk = sim(8);
    let mut limits = small();
    limits.snapshot_publications = 1000;
    let store = on(&disk).limits(limits).create(root()).unwrap();
    let mut chains = Vec::new();
    for round in 0..12 {
        let lease = store.lease("test", "many", None, &[]).unwrap();
        store.put_objects(lease, contents(round * 5000, 5000)).unwrap();
        chains.push(store.info().unwrap().snapshot.map_or(0, |age| age.chain));
    }
    assert!(chains[..3].iter().all(|chain| *chain == 0), "{chains:?}");
    assert!(chains.contains(&1) && chains.contains(&2), "{chains:?}");
    store.close().unwrap();
}

/// Bytes of the manifest behind publications of many objects that each would fit into it.
fn manifest_behind_many() -> u64 {
    let disk = sim(9);
    let mut limits = small();
    limits.object_inline_bytes_max = 4 << 10;
    limits.snapshot_publications = 0;
    let store = on(&disk).limits(limits).create(root()).unwrap();
    let lease = store.lease("test", "many", None, &[]).unwrap();
    for round in 0..4u64 {
        let long = |n: u64| (round * 500 + n).to_le_bytes().repeat(250);
        store.put_objects(lease, (0..500).map(long).collect()).unwrap();
    }
    store.stats().unwrap().manifest_bytes
}

/// (mutant) Do objects that go to a file together keep the manifest short? Every later commit and every
/// opening costs what it is long.
#[test]
fn many_small_objects_leave_the_manifest_short_and_the_mutant_is_caught() {
    let together = manifest_behind_many();
    let _off = switch_off(Protection::SmallTogether);
    let inline = manifest_behind_many();
    println!("{together} bytes, {inline} without");
    assert!(inline > 2 * together, "{together} bytes, {inline} without");
}
