//! One layout made into the other.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::support::{append, chunk, on, read, root, sim, small};
use sealstone::ErrorKind;
use sealstone::engine::{Options, Packing, Store};
use sealstone::format::layout;
use sealstone::ids::StreamId;
use sealstone::protection::{Protection, switch_off};
use sealstone::vfs::sim::{Fault, FaultKind, SimDisk};
use sealstone::vfs::{Access, Disk, read_whole, write_all_at};

fn target() -> PathBuf {
    PathBuf::from("/data/packed.stone")
}

fn quiet() -> impl FnMut(Packing) -> ControlFlow<()> {
    |_| ControlFlow::Continue(())
}

/// A store with sealed and unsealed records and large objects, closed.
fn filled(options: impl Fn() -> Options, root: &Path) -> (StreamId, Vec<Vec<u8>>) {
    let store = options().create(root).unwrap();
    let stream = store.create_stream("s").unwrap();
    let lease = store.lease("l", "test", None, &[]).unwrap();
    store.put_objects(lease, vec![vec![7; 200_000], vec![8; 30]]).unwrap();
    for n in 0..20u8 {
        append(&store, stream, &vec![n; 100 + usize::from(n) * 50]);
    }
    store.publish_chunks(vec![chunk(&store, stream, 12)]).unwrap();
    store.barrier().unwrap();
    let all = read(&store, stream);
    store.close().unwrap();
    (stream, all)
}

/// Does a store come back from one file as it went in, with the same id, at the same commit?
#[test]
fn there_and_back_is_the_same_store() {
    let dir = tempfile::tempdir().unwrap();
    let options = || Store::options().limits(small());
    let (from, file, back) =
        (dir.path().join("a.stone"), dir.path().join("b.stone"), dir.path().join("c.stone"));
    let (stream, all) = filled(options, &from);
    let mut told = 0;
    let packed = options()
        .pack(&from, &file, &mut |at| {
            assert!(at.done <= at.total);
            told += 1;
            ControlFlow::Continue(())
        })
        .unwrap();
    assert!(told > 4 && packed.objects >= 3 && packed.bytes > 200_000, "{packed:?}");
    let unpacked = options().unpack(&file, &back, &mut quiet()).unwrap();
    assert_eq!(unpacked, packed);
    let id = options().open_read_only(&from).unwrap().id();
    for path in [&from, &file, &back] {
        let store = options().open(path).unwrap();
        assert_eq!((store.id(), read(&store, stream)), (id, all.clone()));
        append(&store, stream, b"goes on");
        store.barrier().unwrap();
        assert!(store.accounts().unwrap().are_closed());
        store.close().unwrap();
    }
    let left = std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(left, 3);
}

/// Is nothing touched that stands at the target, and no source packed into what it is already?
#[test]
fn p7_what_stands_at_the_target_stays() {
    let disk = sim(21);
    filled(|| on(&disk), &root());
    let file = disk.open(&target(), Access::CreateNew).unwrap();
    write_all_at(&*file, b"mine", 0).unwrap();
    let refused = on(&disk).pack(root(), target(), &mut quiet()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Exists);
    assert_eq!(read_whole(&*file, 10).unwrap(), b"mine");
    disk.unlink(&target()).unwrap();
    let again = on(&disk).unpack(root(), target(), &mut quiet()).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Invalid);
    on(&disk).pack(root(), target(), &mut quiet()).unwrap();
    let strange = layout::newborn(Path::new("/data/back.stone")).join("notes");
    disk.mkdir(strange.parent().unwrap()).unwrap();
    disk.open(&strange, Access::CreateNew).unwrap();
    let refused = on(&disk).unpack(target(), "/data/back.stone", &mut quiet()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Exists);
    assert!(disk.meta(&strange).unwrap().is_some());
}

/// Is a store that somebody writes not packed under their hands, and left alone?
#[test]
fn a_store_that_is_written_is_in_use() {
    let disk = sim(22);
    let store = on(&disk).create(root()).unwrap();
    let other = || Store::options().limits(small()).disk(Arc::new(disk.process(9)));
    let refused = other().pack(root(), target(), &mut quiet()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InUse);
    store.create_stream("goes on").unwrap();
    assert!(disk.meta(&target()).unwrap().is_none());
}

/// Does a caller who ends it find nothing at the target, and nothing beside it?
#[test]
fn a_cancelled_call_leaves_no_name() {
    let disk = sim(23);
    filled(|| on(&disk), &root());
    for at in 0..6 {
        let mut left = at;
        let ended = on(&disk).pack(root(), target(), &mut |_| match left {
            0 => ControlFlow::Break(()),
            _ => {
                left -= 1;
                ControlFlow::Continue(())
            }
        });
        assert_eq!(ended.unwrap_err().kind(), ErrorKind::Cancelled);
        assert_eq!(disk.list(Path::new("/data")).unwrap().len(), 1);
    }
}

/// Whether packing said that it went well, and whether the target is sound, when a reading of a file
/// whose path contains `place` lies, `n` operations behind the beginning.
fn with_a_lie(place: &str, n: u64) -> Option<(bool, bool)> {
    let disk = sim(24);
    let options = |disk: &SimDisk| on(disk);
    let (stream, all) = filled(|| options(&disk), &root());
    disk.inject(Fault::new(disk.operations() + n, FaultKind::BitFlip).on(place));
    let went = options(&disk).pack(root(), target(), &mut quiet());
    if disk.fired().is_empty() {
        return None;
    }
    disk.clear_faults();
    let sound = || -> sealstone::Result<bool> {
        let store = options(&disk).open_read_only(target())?;
        for (_, chunk) in &store.view(stream)?.chunks {
            store.fetch(chunk.object)?;
        }
        let report = sealstone::check::check(
            target(),
            &sealstone::check::CheckOptions {
                disk: Some(Arc::new(disk.clone())),
                ..Default::default()
            },
            &mut |_| ControlFlow::Continue(()),
        )?;
        Ok(read(&store, stream) == all && report.damages == 0)
    };
    Some((went.is_ok(), sound().unwrap_or(false)))
}

/// Whether any lie of the disk made a target that is named and not sound.
fn is_fooled() -> bool {
    ["/journal/", "/sealed/"].into_iter().any(|place| {
        (0..).step_by(9).map_while(|n| with_a_lie(place, n)).any(|(said, is)| said && !is)
    })
}

/// Is a target that does not hold what the source held never named, and is it noticed when it is not
/// verified?
#[test]
fn p6_a_bad_copy_gets_no_name_and_the_mutant_is_caught() {
    assert!(!is_fooled());
    let _off = switch_off(Protection::PackedVerified);
    assert!(is_fooled());
}
