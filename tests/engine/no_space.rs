//! A store in one file on a disk without a byte left: what gives space back needs none.

use crate::support::{append, on, read, root, sim, small};
use sealstone::engine::{Append, Budget, Store, Thing};
use sealstone::ids::{LeaseId, StreamId};
use sealstone::manifest::{LeaseRow, Reading};
use sealstone::protection::{Protection, switch_off};
use sealstone::vfs::Disk;
use sealstone::vfs::sim::{Fault, FaultKind, Image, Profile, Rng, SimDisk};
use sealstone::{Error, ErrorKind, Layout, Limits};

fn limits() -> Limits {
    let mut limits = small();
    limits.ballast_bytes = 64 << 10;
    limits.low_water_bytes = 512 << 10;
    limits
}

fn open(disk: &SimDisk) -> Result<Store, Error> {
    on(disk).limits(limits()).layout(Layout::SingleFile).open(root())
}

fn content(n: u32) -> Vec<u8> {
    n.to_le_bytes().repeat(15_000)
}

/// Puts under a new lease until told that the disk is full; what was put, and the error.
fn fill(store: &Store, from: u32) -> (Vec<LeaseId>, Error) {
    let mut leases = Vec::new();
    for n in from.. {
        let put = store.lease("fills", "test", None, &[]).and_then(|lease| {
            store.put_objects(lease, vec![content(n)])?;
            Ok(lease)
        });
        match put {
            Ok(lease) => leases.push(lease),
            Err(e) => return (leases, e),
        }
        assert!(n - from < 2000, "a disk without an end");
    }
    unreachable!()
}

fn retire_all(store: &Store, leases: &mut Vec<LeaseId>) {
    let gone: Vec<_> = leases.drain(..).map(Thing::Lease).collect();
    store.retire(&gone, "the disk is full").unwrap();
    store.reclaim(Budget::default()).unwrap();
}

/// A store that was filled, on a disk that another then fills to the last byte.
fn filled(seed: u64, stream: &mut StreamId) -> (SimDisk, Store, Vec<LeaseId>) {
    let disk = sim(seed);
    disk.set_capacity(Some(16 << 20));
    let create = on(&disk).limits(limits()).layout(Layout::SingleFile);
    let store = create.create(root()).unwrap();
    *stream = store.create_stream("s").unwrap();
    append(&store, *stream, &[1; 300]);
    store.barrier().unwrap();
    let (leases, full) = fill(&store, 0);
    assert_eq!(full.kind(), ErrorKind::DiskFull, "{full:?}");
    assert!(leases.len() > 120, "only {} fitted", leases.len());
    disk.set_capacity(Some(disk.used()));
    assert_eq!(disk.space(&root()).unwrap().free, 0);
    (disk, store, leases)
}

/// With 0 bytes free: do retire and reclaim work, and appends after them, again and again, and also
/// after a close and after a kill? (G16)
#[test]
fn g16_a_single_file_gives_space_back_without_a_free_byte() {
    let mut stream = StreamId(0);
    let (mut disk, mut store, mut leases) = filled(60, &mut stream);
    let mut records = 1;
    for round in 0..6u32 {
        let refused = store.append(vec![Append { stream, payload: vec![2; 300] }]).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::DiskFull, "round {round}: {refused:?}");
        if round % 3 == 1 {
            store.close().unwrap();
            disk.set_capacity(Some(disk.used()));
            store = open(&disk).unwrap();
        }
        if round % 3 == 2 {
            disk.kill();
            drop(store);
            disk = disk.process(round + 40);
            store = open(&disk).unwrap();
        }
        assert!(store.health().halted.is_none(), "round {round}");
        retire_all(&store, &mut leases);
        assert!(store.health().halted.is_none(), "round {round}");
        append(&store, stream, &[round as u8; 300]);
        store.barrier().unwrap();
        records += 1;
        let (put, full) = fill(&store, (round + 1) * 10_000);
        assert_eq!(full.kind(), ErrorKind::DiskFull, "round {round}: {full:?}");
        println!("round {round}: {} fitted", put.len());
        assert!(put.len() > 50, "round {round}: only {} fitted", put.len());
        leases = put;
        disk.set_capacity(Some(disk.used()));
    }
    retire_all(&store, &mut leases);
    store.close().unwrap();
    let store = open(&disk.process(90)).unwrap();
    assert_eq!(read(&store, stream).len(), records);
    assert!(store.accounts().unwrap().are_closed());
}

/// Filled by itself and then by another: what retire, reclaim and a record after them come to.
fn gives_back(seed: u64) -> Result<(), Error> {
    let disk = sim(seed);
    disk.set_capacity(Some(24 << 20));
    let create = on(&disk).limits(limits()).layout(Layout::SingleFile);
    let store = create.create(root())?;
    let stream = store.create_stream("s")?;
    let (leases, full) = fill(&store, 0);
    if full.kind() != ErrorKind::DiskFull {
        return Err(full);
    }
    disk.set_capacity(Some(disk.used()));
    let gone: Vec<_> = leases.into_iter().map(Thing::Lease).collect();
    store.retire(&gone, "the disk is full")?;
    store.reclaim(Budget::default())?;
    store.append(vec![Append { stream, payload: vec![2; 300] }])?;
    store.barrier()?;
    let lease = store.lease("after", "test", None, &[])?;
    store.put_objects(lease, (0..40).map(content).collect())?;
    store.close()
}

/// Is it the room made ahead that space is given back in?
#[test]
fn g16_without_room_made_ahead_the_file_stays_full() {
    gives_back(62).unwrap();
    let _off = switch_off(Protection::RoomAhead);
    assert!(gives_back(62).is_err());
}

/// A closed store with objects under leases of their own, as an image that a disk is made of.
fn prepared(stream: &mut StreamId, leases: &mut Vec<LeaseId>) -> Image {
    let disk = sim(61);
    let create = on(&disk).limits(limits()).layout(Layout::SingleFile);
    let store = create.create(root()).unwrap();
    *stream = store.create_stream("s").unwrap();
    // So many that what comes next does not fit into the room that the file has from birth.
    for n in 0..20 {
        let lease = store.lease("old", "test", None, &[]).unwrap();
        store.put_objects(lease, vec![content(n)]).unwrap();
        leases.push(lease);
    }
    store.close().unwrap();
    let mut cursor = disk.events().cursor(Profile::ProcessKill);
    while cursor.advance().is_some() {}
    cursor.images(&mut Rng::new(1), 1).remove(0)
}

/// Works until something fails; the records that were acknowledged.
fn work(disk: &SimDisk, stream: StreamId, leases: &mut Vec<LeaseId>) -> (usize, Result<(), Error>) {
    let mut records = 0;
    let mut all = || -> Result<(), Error> {
        let store = open(disk)?;
        for n in 0..3u32 {
            let lease = store.lease("new", "test", None, &[])?;
            leases.push(lease);
            store.put_objects(lease, (0..5).map(|m| content(100 + 5 * n + m)).collect())?;
            store.append(vec![Append { stream, payload: vec![n as u8; 300] }])?;
            store.barrier()?;
            records += 1;
        }
        store.close()
    };
    let done = all();
    (records, done)
}

/// When the last byte of the disk goes at any operation and none comes back but by the store itself:
/// does it open, retire, reclaim and take records again, with everything that was acknowledged?
#[test]
fn g16_a_single_file_survives_the_last_byte_at_any_operation() {
    let (mut stream, mut old) = (StreamId(0), Vec::new());
    let image = prepared(&mut stream, &mut old);
    let (mut at, mut met, mut is_over) = (0, [0; 3], false);
    while !is_over {
        let (disk, mut leases) = (image.disk(), old.clone());
        let begun = disk.operations();
        disk.inject(Fault::new(begun + at, FaultKind::EnospcUntilFreed));
        let (records, done) = work(&disk, stream, &mut leases);
        is_over = disk.operations() <= begun + at;
        let store = open(&disk.process(7)).unwrap_or_else(|e| panic!("at {at}: {done:?}, {e:?}"));
        let has = read(&store, stream).len();
        assert!(has >= records && has <= records + 1, "at {at}: {has} of {records}");
        let rows = store.snapshot().unwrap();
        leases.retain(|lease| rows.get::<LeaseRow>(lease).unwrap().is_some());
        drop(rows);
        let gone: Vec<_> = leases.into_iter().map(Thing::Lease).collect();
        store.retire(&gone, "the disk is full").unwrap_or_else(|e| panic!("at {at}: {e:?}"));
        store.reclaim(Budget::default()).unwrap_or_else(|e| panic!("at {at}: {e:?}"));
        for n in 0..3 {
            let lease = store.lease("after", "test", None, &[]).unwrap();
            let put = store.put_objects(lease, vec![content(500 + n)]);
            put.unwrap_or_else(|e| panic!("at {at}: {done:?}, then {e:?}"));
            append(&store, stream, &[9; 300]);
            store.barrier().unwrap();
        }
        assert!(store.accounts().unwrap().are_closed(), "at {at}");
        store.close().unwrap_or_else(|e| panic!("at {at}: {e:?}"));
        met[match done {
            Ok(()) => 0,
            Err(e) if e.kind() == ErrorKind::DiskFull => 1,
            Err(_) => 2,
        }] += 1;
        // Operations come in runs of one kind: one in seven meets each.
        at += 7;
    }
    println!("{at} operations: {met:?} went on, were refused, halted");
    assert!(at > 100 && met[1] + met[2] > 10, "{at}: {met:?}");
}
