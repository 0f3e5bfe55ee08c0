//! A disk that does not answer, and a clock that cannot: an error each, and never an answer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sealstone::engine::{Options, Store};
use sealstone::manifest::{Raw, Table};
use sealstone::objects::{Digest, Expected, Publish};
use sealstone::vfs::Disk;
use sealstone::vfs::Operation;
use sealstone::vfs::sim::{Fault, FaultKind, SimDisk};
use sealstone::{Error, ErrorKind};

use crate::made::*;

fn root() -> PathBuf {
    PathBuf::from("/data/run.stone")
}

fn sim(seed: u64) -> SimDisk {
    let world = SimDisk::new(seed);
    world.mkdir(Path::new("/data")).unwrap();
    world
}

fn on(disk: &SimDisk) -> Options {
    options(KINDS[0]).disk(Arc::new(disk.clone()))
}

/// Tables whose rows say what is stored and what refers to it.
const TOLD: [Table; 9] = [
    Table::Objects,
    Table::Inline,
    Table::Digests,
    Table::Edges,
    Table::Names,
    Table::Leases,
    Table::Leased,
    Table::Preparations,
    Table::Recipes,
];

fn rows(store: &Store) -> BTreeMap<(&'static str, Vec<u8>), Vec<u8>> {
    let snapshot = store.snapshot().unwrap();
    let mut rows = BTreeMap::new();
    for table in TOLD {
        let all = (std::ops::Bound::Unbounded, std::ops::Bound::Unbounded);
        snapshot
            .raw_scan(table, all, false, &mut |key, value| {
                rows.insert((table.name(), key.to_vec()), value.to_vec());
                Ok(std::ops::ControlFlow::Continue(()))
            })
            .unwrap();
    }
    rows
}

/// A store with objects of every place, opened by a process that has read nothing of it yet.
fn begun() -> (SimDisk, SimDisk, Store) {
    let world = sim(3);
    let first = world.process(1);
    let store = on(&first).create(root()).unwrap();
    one_of_each(&store);
    let prep = store.objects().prepare("standing").unwrap();
    prep.put(&noise(900, 4000)).unwrap();
    prep.put(&noise(901, 3000)).unwrap();
    prep.flush().unwrap();
    drop(prep);
    store.close().unwrap();
    let second = world.process(2);
    let store = on(&second).open(root()).unwrap();
    (world, second, store)
}

type Act = fn(&Store) -> Result<(), Error>;

fn put(store: &Store) -> Result<(), Error> {
    // New content, and content that is stored: both are looked up.
    let prep = store.objects().prepare("p")?;
    prep.put(&noise(800, 5000))?;
    prep.put(&noise(2, 30_000))?;
    prep.put(&noise(1, 40))?;
    prep.flush()
}

/// Publishes what a preparation holds, over a name that stands and over none.
fn publish(store: &Store) -> Result<(), Error> {
    let prep = store.objects().prepare("standing")?;
    let kept = Digest::of(&noise(900, 4000));
    let fresh = Digest::of(&noise(901, 3000));
    let changes = [
        Publish::new(named("t/file"), Expected::Digest(Digest::of(&noise(2, 30_000))), kept),
        Publish::new(named("t/fresh"), Expected::Nothing, fresh),
    ];
    prep.publish(&changes).map(drop)
}

fn get(store: &Store) -> Result<(), Error> {
    for (digest, len) in [(Digest::of(&noise(2, 30_000)), 30_000), (Digest::of(&noise(1, 40)), 40)]
    {
        assert_eq!(store.objects().get(&digest)?.bytes()?.len(), len);
    }
    for name in ["t/inline", "t/file", "t/one row", "t/rows"] {
        let object = store.objects().open(&named(name))?;
        assert_eq!(Digest::of(&object.bytes()?), object.digest());
    }
    assert!(!store.objects().contains(&Digest::of(b"unknown"))?);
    Ok(())
}

/// Is an error of the disk in any lookup of a put or a get told before anything changes, and never taken
/// for "it is not there"?
#[test]
fn obj29_a_lookup_that_fails_is_told_before_anything_changes() {
    for (what, act) in [("put", put as Act), ("publish", publish), ("get", get)] {
        let (_, disk, store) = begun();
        let from = disk.operations();
        act(&store).unwrap();
        let operations = disk.operations() - from;
        drop(store);
        let (mut refused, mut unknown, mut passed) = (0, 0, 0);
        for at in 0..operations {
            let (world, disk, store) = begun();
            let before = rows(&store);
            let fault = Fault::new(disk.operations() + at, FaultKind::Eio).only(Operation::Read);
            disk.inject(fault);
            let done = act(&store);
            let struck = !disk.fired().is_empty();
            disk.clear_faults();
            let Err(e) = done else {
                passed += 1;
                continue;
            };
            assert!(struck, "{what}, operation {at}: {e}");
            let kinds = [ErrorKind::Io, ErrorKind::Halted, ErrorKind::OutcomeUnknown];
            assert!(kinds.contains(&e.kind()), "{what}, operation {at}: {e:?}");
            refused += 1;
            if e.kind() == ErrorKind::OutcomeUnknown {
                unknown += 1;
                continue;
            }
            disk.kill();
            std::mem::forget(store);
            let again = on(&world.process(3)).open(root()).unwrap();
            let mut after = rows(&again);
            // A preparation of its own may stand, and what that holds; nothing else says anything new.
            let mut before = before;
            if what == "put" {
                for rows in [&mut before, &mut after] {
                    rows.retain(|(table, _), _| !["preparations", "leases"].contains(table));
                }
            }
            assert!(
                before == after,
                "{what}, operation {at}: something changed, and it was told {e:?}"
            );
        }
        println!(
            "{what}: {operations} operations, {refused} refused, {unknown} unknown, {passed} passed"
        );
        assert!(refused > 0, "{what}: no read was refused");
    }
}

/// With a clock that cannot be represented, and with clocks at either end of what can, is everything
/// stored, listed and read as ever?
#[test]
fn obj33_without_a_clock_everything_is_there_all_the_same() {
    for clock in [None, Some(i64::MIN), Some(i64::MAX), Some(-1), Some(0)] {
        let world = sim(4);
        let disk = world.process(1);
        disk.set_wall_clock(clock);
        let store = on(&disk).create(root()).unwrap();
        let made = one_of_each(&store);
        let lease = store.lease("who", "why", Some(i64::MIN), &[]).unwrap();
        let late = store.lease("who", "why", Some(i64::MAX), &[]).unwrap();
        let prep = store.objects().prepare("p").unwrap();
        prep.put(&noise(800, 5000)).unwrap();
        prep.flush().unwrap();
        drop(prep);
        store.close().unwrap();
        let store = on(&world.process(2)).open(root()).unwrap();
        for (name, bytes) in &made {
            crate::reading::assert_gives(&store.objects().open(name).unwrap(), bytes);
        }
        assert_eq!(
            store.objects().names("t", "", None, 99).unwrap().len(),
            made.len(),
            "{clock:?}"
        );
        let preparations = store.objects().preparations().unwrap();
        assert_eq!(preparations.len(), 1, "{clock:?}");
        store.reclaim(Default::default()).unwrap();
        // No deadline that passed, or did not, lets go of anything.
        let things = [lease, late].map(sealstone::engine::Thing::Lease);
        assert_eq!(store.retire(&things, "test").unwrap().things, 2, "{clock:?}");
        store.close().unwrap();
    }
}

/// Does a stream read every block once, as reading its file does, and a range no more than its blocks?
#[test]
fn obj2_a_stream_reads_every_byte_once() {
    let world = sim(8);
    world.stop_log();
    let mut limits = small();
    limits.block_bytes = 64 << 10;
    let disk = world.process(1);
    let store = on(&disk).limits(limits).create(root()).unwrap();
    let long = noise(1, 3 << 20);
    plain(&store, &named("t/long"), &long);
    let pieces: Vec<_> = long.chunks(50_000).map(<[u8]>::to_vec).collect();
    recipe(&store, &named("t/pieces"), &pieces, 20);
    let cost = |read: &dyn Fn()| {
        let before = disk.counts();
        read();
        let cost = disk.counts().since(&before);
        (cost.reads, cost.bytes_read)
    };
    let len = long.len() as u64;
    for (name, share) in [("t/long", 100), ("t/pieces", 12)] {
        let object = store.objects().open(&named(name)).unwrap();
        object.range(0..1).unwrap();
        let whole = cost(&|| assert_eq!(object.bytes().unwrap().len() as u64, len));
        let stream = cost(&|| assert_eq!(object.write_to(&mut Vec::new()).unwrap(), len));
        let range = cost(&|| drop(object.range(1_000_000..1_000_100).unwrap()));
        println!("{name}: whole {whole:?}, stream {stream:?}, range {range:?}");
        assert!(stream.1 <= len + len / share, "{name}: {stream:?}, whole {whole:?}");
        assert!(stream.0 <= whole.0 + whole.0 / 10 + 4, "{name}: {stream:?}, whole {whole:?}");
        assert!(range.1 <= 200_000, "{name}: {range:?}");
    }
}
