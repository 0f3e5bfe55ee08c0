//! A disk that fails once, at each operation of a publication, a snapshot and a hand-off: what was told as done is
//! there, what was told as failed is not, and what is told as unknown is one of the two.

use sealstone::ErrorKind;
use sealstone::Result;
use sealstone::engine::Store;
use sealstone::objects::{Expected, NameHandoff};
use sealstone::vfs::sim::{Fault, FaultKind, SyncFailure};

use super::cuts::known;
use super::support::{
    LAYOUTS, any, books_close, digest, expecting, lease, name, on, put, root, sim,
};

const KINDS: [FaultKind; 3] =
    [FaultKind::Eio, FaultKind::Enospc, FaultKind::SyncFails(SyncFailure::RandomPart)];

/// What is tried: each is one transaction.
#[derive(Debug, Clone, Copy)]
enum Tried {
    Publish,
    AddNamespace,
    HandOff,
    Complete,
    RollBack,
    Release,
}

const ALL: [Tried; 6] = [
    Tried::Publish,
    Tried::AddNamespace,
    Tried::HandOff,
    Tried::Complete,
    Tried::RollBack,
    Tried::Release,
];

/// One run of `tried` on a disk of its own whose operation `at` fails; whether one failed.
fn strike(tried: Tried, kind: FaultKind, at: u64, layout: sealstone::Layout) -> bool {
    let disk = sim(780);
    let store = on(&disk, layout).create(root()).unwrap();
    let objects = store.objects();
    let mine = lease(&store);
    put(&store, mine, &[1, 2, 4, 5]);
    objects.publish(mine, &[any("a/x", digest(1)), any("a/y", digest(2))]).unwrap();
    let changes = [expecting("a/x", Expected::Digest(digest(1)), digest(4)), any("b/z", digest(5))];
    let draft = objects.snapshot("s").unwrap();
    let handoff: Option<NameHandoff> = match tried {
        Tried::Complete | Tried::RollBack => {
            Some(objects.hand_off(mine, &changes, "bucket", b"k").unwrap())
        }
        _ => None,
    };
    let before = known(&store);
    disk.inject(Fault::new(disk.operations() + at, kind));
    let done: Result<()> = match (tried, &handoff) {
        (Tried::AddNamespace, _) => draft.add_namespace("a").map(drop),
        (Tried::HandOff, _) => objects.hand_off(mine, &changes, "bucket", b"k").map(drop),
        (Tried::Complete, Some(of)) => objects.complete(of.id, &of.evidence("there")).map(drop),
        (Tried::RollBack, Some(of)) => objects.roll_back(of.id, "no").map(drop),
        (Tried::Release, _) => objects.release(&name("a/y"), &digest(2)).map(drop),
        _ => objects.publish(mine, &changes).map(drop),
    };
    let has_struck = !disk.fired().is_empty();
    disk.clear_faults();
    disk.kill();
    drop((draft, objects, store));
    let store = on(&disk.process(2), layout).open(root()).unwrap();
    let after = known(&store);
    let what = || format!("{tried:?}, {kind:?} at {at}, {layout:?}: {done:?}");
    match &done {
        Ok(()) => assert_ne!(after, before, "{}", what()),
        Err(e) if e.kind() == ErrorKind::OutcomeUnknown => {}
        Err(_) => assert_eq!(after, before, "{}", what()),
    }
    books_close(&store);
    let told: Store = store;
    told.close().unwrap();
    has_struck
}

/// Is each call that a failing disk strikes all or nothing, as it was told?
#[test]
fn obj7_obj11_obj12_a_call_that_a_failing_disk_strikes_is_told_as_it_is() {
    for layout in LAYOUTS {
        let mut struck = 0;
        for tried in ALL {
            for kind in KINDS {
                let mut at = 0;
                while strike(tried, kind, at, layout) {
                    (at, struck) = (at + 1, struck + 1);
                    assert!(at < 200, "it never ends");
                }
            }
        }
        println!("{struck} faults, {layout:?}");
        assert!(struck > 60, "{struck}");
    }
}
