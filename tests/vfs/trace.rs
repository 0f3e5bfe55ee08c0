//! Does the tracing disk see everything, change nothing, and tell of steps in time?

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use sealstone::vfs::sim::SimDisk;
use sealstone::vfs::{Access, Disk, LockRange, Operation, Sharing, Step, TraceDisk};

fn work(disk: &dyn Disk) {
    let (a, b) = (Path::new("/a"), Path::new("/b"));
    disk.mark(Step::HeadWrite);
    let file = disk.open(a, Access::CreateNew).unwrap();
    file.write_at(&[1; 100], 7).unwrap();
    file.sync_data().unwrap();
    disk.mark(Step::HeadRename);
    disk.rename(a, b).unwrap();
    disk.unlink(a).unwrap_err();
    file.read_at(&mut [0; 300], 0).unwrap();
    assert!(file.try_lock(LockRange::WHOLE, Sharing::Exclusive).unwrap());
}

/// Are its counts those of the disk beneath, handles and locks included?
#[test]
fn its_counts_are_those_of_the_disk_beneath() {
    let sim = SimDisk::new(1);
    let trace = TraceDisk::counting(Arc::new(sim.clone()));
    work(&trace);
    let held = trace.lock_dir(Path::new("/"), Sharing::Exclusive).unwrap();
    assert_eq!(trace.counts(), sim.counts());
    assert_eq!((trace.counts().locks_held, trace.counts().open_handles), (1, 1));
    assert_eq!((trace.counts().syncs(), trace.counts().mutations()), (1, 5));
    drop(held);
    assert_eq!(trace.counts(), sim.counts());
    assert_eq!((trace.counts().locks_held, trace.counts().open_handles), (0, 0));
    assert!(trace.calls().is_empty());
}

/// Does it keep each call with its place, result and step?
#[test]
fn each_call_is_kept_with_its_result_and_step() {
    let trace = TraceDisk::new(Arc::new(SimDisk::new(1)));
    work(&trace);
    let calls = trace.take_calls();
    let operations: Vec<_> = calls.iter().map(|call| call.operation).collect();
    use Operation::{Create, Lock, Read, Rename, SyncData, Unlink, Write};
    assert_eq!(operations, [Create, Write, SyncData, Rename, Unlink, Read, Lock]);
    let write = &calls[1];
    assert_eq!((&*write.path, write.offset, write.len), (Path::new("/a"), 7, 100));
    assert_eq!((write.result, write.step), (Ok(100), Some(Step::HeadWrite)));
    assert_eq!(calls[3].to.as_deref(), Some(Path::new("/b")));
    assert_eq!(calls[4].result, Err(std::io::ErrorKind::NotFound));
    assert_eq!((calls[5].len, calls[5].result), (300, Ok(107)));
    assert_eq!(calls[6].step, Some(Step::HeadRename));
    assert!(trace.calls().is_empty());
}

/// Does the callback see the step before its first operation, and may it look at the trace?
#[test]
fn a_mark_is_told_before_the_steps_first_operation() {
    let trace = TraceDisk::new(Arc::new(SimDisk::new(1)));
    let told = Arc::new(Mutex::new(Vec::new()));
    let (own, looker) = (Arc::clone(&told), trace.clone());
    trace.on_mark(move |step| own.lock().push((step, looker.calls().len())));
    work(&trace);
    assert_eq!(*told.lock(), [(Step::HeadWrite, 0), (Step::HeadRename, 3)]);
    assert_eq!(trace.steps().get(&Step::HeadWrite), Some(&1));
}
