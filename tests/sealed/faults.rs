//! Every operation of build, place and read fails in every way, once and for ever.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::support::{FOLDERS, Rng, World, extent, label};
use sealstone::format::layout;
use sealstone::sealed::{Builder, Built, Expect, Reader, SLICE_BYTES, place};
use sealstone::vfs::Operation;
use sealstone::vfs::sim::{Fault, FaultKind, Fired, SimDisk};
use sealstone::{ErrorKind, Result};

const SEED: u64 = 31;

fn world() -> (SimDisk, World) {
    let sim = SimDisk::new(SEED);
    let root = PathBuf::from("/run.stone");
    let world = World::born(Arc::new(sim.clone()), root, None);
    (sim, world)
}

/// An extent and another of `len` bytes: longer than a slice, and writes come before the last one.
fn stored(len: usize) -> Vec<Vec<u8>> {
    let mut rng = Rng(SEED);
    vec![rng.bytes(3000), rng.bytes(len)]
}

fn build(world: &World, stored: &[Vec<u8>]) -> Result<Built> {
    let (owner, unique) = (crate::support::owner(), crate::support::id(1));
    let mut builder = Builder::create(&world.disk, &world.root, owner, unique, 4096)?;
    for stored in stored {
        builder.add(&extent(stored), stored)?;
    }
    builder.finish(&label())
}

fn place_one(world: &World, built: &Built) -> Result<()> {
    place(&world.disk, &world.root, std::slice::from_ref(built), FOLDERS)
}

fn build_and_place(world: &World, stored: &[Vec<u8>]) -> Result<Built> {
    build(world, stored).and_then(|built| place_one(world, &built).map(|()| built))
}

fn read(world: &World, built: &Built) -> Result<Vec<Vec<u8>>> {
    let expect =
        Expect { len: Some(built.len), digest: Some(built.digest), store: Some(label().store) };
    let reader = Reader::open(&world.disk, &world.path(built), &expect)?;
    reader.verify(&built.digest)?;
    assert_eq!(reader.label()?, label());
    let footer = reader.footer()?;
    footer.extents.iter().map(|e| reader.read(e.extent.offset, e.extent.stored_len)).collect()
}

/// Does this fault change nothing but the way?
fn is_harmless(kind: FaultKind) -> bool {
    matches!(kind, FaultKind::ShortRead | FaultKind::Eintr)
}

/// Runs `case` once for each kind of fault at each operation that `calm` takes, once and for ever;
/// the kinds that struck, with their counts.
fn at_every_operation(
    calm: impl Fn(&SimDisk, &World) -> u64,
    case: impl Fn(&SimDisk, &World, Fault),
) -> BTreeMap<String, usize> {
    let (sim, world) = world();
    let operations = calm(&sim, &world);
    let mut struck = BTreeMap::new();
    for kind in FaultKind::ALL {
        for n in 0..operations {
            for forever in [false, true] {
                let (sim, world) = self::world();
                let fault = Fault::new(n, kind);
                case(&sim, &world, if forever { fault.forever() } else { fault });
                if !sim.fired().is_empty() {
                    *struck.entry(format!("{kind:?}")).or_default() += 1;
                }
            }
        }
    }
    struck
}

fn hit(fired: &[Fired], what: Operation) -> bool {
    fired.iter().any(|fired| fired.what == what)
}

/// Whatever fails while a file is built and placed: is success reported for bytes that are not there, a
/// sync tried twice, a handle or a temporary file left behind, a name given to something unfinished?
/// (P3, P8, G14, G16)
#[test]
fn g14_g16_a_failed_build_reports_and_leaves_nothing() {
    let stored = stored(SLICE_BYTES + 100);
    let struck = at_every_operation(
        |sim, world| {
            let before = sim.operations();
            build_and_place(world, &stored).unwrap();
            sim.operations() - before
        },
        |sim, world, fault| {
            let before = sim.counts();
            let case = format!("seed {SEED}, {fault:?}");
            sim.inject(Fault { at: sim.operations() + fault.at, ..fault.clone() });
            let built = build(world, &stored);
            let placed = built.clone().and_then(|built| place_one(world, &built));
            sim.clear_faults();
            let (cost, fired) = (sim.counts().since(&before), sim.fired());
            assert_eq!(cost.open_handles, before.open_handles, "{case}: a handle is left");
            assert!(cost.sync_data <= 1 && cost.sync_dir <= 1, "{case}: a sync was retried");
            let left = world.disk.list(&layout::tmp_dir(&world.root)).unwrap().len();
            match (built, placed) {
                (Ok(built), Ok(())) => {
                    let went_on = is_harmless(fault.kind) || fault.kind == FaultKind::ShortWrite;
                    assert!(fired.is_empty() || went_on, "{case}: {fired:?}");
                    assert!(read(world, &built).unwrap() == stored && left == 0, "{case}");
                }
                (built, Err(e)) => {
                    let full = [FaultKind::Enospc, FaultKind::EnospcUntilFreed];
                    let is_full = e.kind() == ErrorKind::DiskFull;
                    assert_eq!(is_full, full.contains(&fault.kind), "{case}: {e:?}");
                    assert!(is_full || e.kind() == ErrorKind::Io, "{case}: {e:?}");
                    let placed = built.map(|built| world.disk.meta(&world.path(&built)));
                    match placed {
                        // What was built stands under one of its names, whole.
                        Ok(placed) => assert_eq!(placed.unwrap().is_none(), left == 1, "{case}"),
                        Err(_) => assert_eq!(left > 0, hit(&fired, Operation::Unlink), "{case}"),
                    }
                }
                (Err(_), Ok(())) => unreachable!("placed without being built"),
            }
        },
    );
    println!("{struck:?}");
    for kind in ["Eio", "Enospc", "EnospcUntilFreed", "ShortWrite", "Eintr", "Emfile"] {
        assert!(struck.contains_key(kind), "{kind} struck nothing");
    }
    assert_eq!(struck.keys().filter(|kind| kind.starts_with("SyncFails")).count(), 4);
}

/// After a failed write or sync, does a builder try again? Each later call gives the first error.
#[test]
fn g14_a_failed_builder_never_writes_again() {
    let (sim, world) = world();
    let stored = stored(SLICE_BYTES);
    let mut builder = world.builder(1, 4096);
    sim.inject(Fault::new(sim.operations(), FaultKind::Eio).only(Operation::Write));
    let first = builder.add(&extent(&stored[1]), &stored[1]).unwrap_err();
    let writes = sim.counts().writes;
    for _ in 0..3 {
        let again = builder.push(&stored[1]).unwrap_err();
        assert_eq!(again.to_string(), first.to_string());
    }
    drop(builder);
    assert_eq!(sim.counts().writes, writes);
}

/// Whatever a disk does to a read: same bytes, or an error that says so; and nothing is mutated. (P6,
/// G12, G20)
#[test]
fn g12_a_bad_read_is_an_error_and_never_other_bytes() {
    let stored = stored(70_000);
    let other = vec![Rng(9).bytes(3000), Rng(10).bytes(70_000)];
    let struck = at_every_operation(
        |sim, world| {
            let built = build_and_place(world, &stored).unwrap();
            let before = sim.operations();
            read(world, &built).unwrap();
            sim.operations() - before
        },
        |sim, world, fault| {
            // Another file, from which a misdirected read may come.
            world.build(9, 4096, &other);
            let built = build_and_place(world, &stored).unwrap();
            let before = sim.counts();
            let case = format!("seed {SEED}, {fault:?}");
            sim.inject(Fault { at: sim.operations() + fault.at, ..fault.clone() });
            match read(world, &built) {
                Ok(bytes) => assert!(bytes == stored, "{case}: other bytes"),
                Err(e) => {
                    let kinds = [ErrorKind::Io, ErrorKind::Damage, ErrorKind::Foreign];
                    assert!(kinds.contains(&e.kind()), "{case}: {e:?}");
                    assert!(!is_harmless(fault.kind), "{case}: {e:?}");
                }
            }
            sim.clear_faults();
            let cost = sim.counts().since(&before);
            assert_eq!((cost.mutations(), cost.open_handles), (0, before.open_handles), "{case}");
            assert!(read(world, &built).unwrap() == stored, "{case}: the disk is right again");
        },
    );
    println!("{struck:?}");
    for kind in ["Eio", "ShortRead", "Eintr", "BitFlip", "MisdirectedRead", "Emfile"] {
        assert!(struck.contains_key(kind), "{kind} struck nothing");
    }
}
