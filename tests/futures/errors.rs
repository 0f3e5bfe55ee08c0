//! Futures in a store whose disk fails: what a wait would say reaches each of them.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use sealstone::engine::{Append, Store, Waiting};
use sealstone::ids::StreamId;
use sealstone::journal::Level;
use sealstone::vfs::sim::{Fault, FaultKind, SimDisk, SyncFailure};
use sealstone::vfs::{Disk, RealDisk, Step, TraceDisk};
use sealstone::{Error, ErrorKind};

use crate::block_on::{block_on, unpark};
use crate::many::{append, limits};

fn store_on(disk: &SimDisk) -> Store {
    disk.mkdir(std::path::Path::new("/data")).unwrap();
    let options = Store::options().limits(limits(3_600_000)).disk(Arc::new(disk.clone()));
    options.create("/data/run.stone").unwrap()
}

/// Polls all until each has ended.
fn ends_of(mut waiting: Vec<Pin<Box<Waiting>>>) -> (Vec<Result<(), Error>>, u64) {
    let (count, waker) = unpark();
    let mut context = Context::from_waker(&waker);
    let mut ends = Vec::new();
    for _ in 0..3000 {
        waiting.retain_mut(|future| match future.as_mut().poll(&mut context) {
            Poll::Ready(end) => {
                ends.push(end);
                false
            }
            Poll::Pending => true,
        });
        if waiting.is_empty() {
            return (ends, count.wakes.load(Ordering::Acquire));
        }
        std::thread::park_timeout(Duration::from_millis(20));
    }
    panic!("{} futures never ended", waiting.len());
}

/// Does a failed sync reach every future that waited, as unknown, and later ones as halted?
#[test]
fn p8_g14_a_failed_sync_reaches_every_future() {
    let disk = SimDisk::new(1);
    let store = store_on(&disk);
    let stream = store.create_stream("s").unwrap();
    append(&store, stream, 0);
    store.barrier().unwrap();
    let accepted: Vec<_> = (0..500).map(|n| append(&store, stream, n as u8)).collect();
    // The next data sync of the journal.
    disk.inject(
        Fault::new(disk.operations(), FaultKind::SyncFails(SyncFailure::NothingKept)).forever(),
    );
    let (ends, _) = ends_of(accepted.iter().map(|a| Box::pin(a.durable())).collect());
    for end in &ends {
        let kind = end.as_ref().unwrap_err().kind();
        assert!(matches!(kind, ErrorKind::OutcomeUnknown | ErrorKind::Halted), "{kind:?}");
    }
    assert!(store.health().halted.is_some());
    let told = store.wait(&accepted[0].ticket, Level::Durable).unwrap_err();
    assert_eq!(told.kind(), ErrorKind::Halted);
    assert!(block_on(store.when(&accepted[0].ticket, Level::Durable)).0.is_err());
}

/// Is a full disk told to those who wait, and may they ask again once there is room?
#[test]
fn g16_a_full_disk_is_told_and_may_be_asked_again() {
    let disk = SimDisk::new(3);
    let store = store_on(&disk);
    let stream = store.create_stream("s").unwrap();
    append(&store, stream, 0);
    store.barrier().unwrap();
    let accepted = append(&store, stream, 1);
    disk.inject(Fault::new(disk.operations(), FaultKind::Enospc).forever());
    let (full, _) = block_on(accepted.durable());
    assert_eq!(full.unwrap_err().kind(), ErrorKind::DiskFull);
    assert!(store.health().halted.is_none());
    disk.clear_faults();
    block_on(accepted.durable()).0.unwrap();
    store.close().unwrap();
}

/// Does a frame that is in the file, and only to be synced, wait for another that does not fit?
#[test]
fn g16_a_full_disk_holds_up_nobody_whose_frame_is_written() {
    let disk = SimDisk::new(4);
    let store = store_on(&disk);
    let stream = store.create_stream("s").unwrap();
    append(&store, stream, 0);
    store.barrier().unwrap();
    let written = append(&store, stream, 1);
    store.wait(&written.ticket, Level::Written).unwrap();
    let queued = append(&store, stream, 2);
    disk.inject(Fault::new(disk.operations(), FaultKind::Enospc).forever());
    let (mut one, mut other) = (Box::pin(queued.durable()), Box::pin(written.durable()));
    // Both are seated before the thread leads, or one after the other: it must make no difference.
    let mut context = Context::from_waker(Waker::noop());
    let (early, late) = (one.as_mut().poll(&mut context), other.as_mut().poll(&mut context));
    if late.is_pending() {
        block_on(other).0.unwrap();
    }
    if early.is_pending() {
        assert_eq!(block_on(one).0.unwrap_err().kind(), ErrorKind::DiskFull);
    }
    // Nobody else waits: this one alone.
    let again = append(&store, stream, 3);
    assert_eq!(block_on(again.durable()).0.unwrap_err().kind(), ErrorKind::DiskFull);
    assert!(store.health().halted.is_none());
    disk.clear_faults();
    block_on(again.durable()).0.unwrap();
    store.close().unwrap();
}

/// Does a panic while the thread of the store writes leave a future waiting?
#[test]
fn p8_a_panic_while_writing_reaches_every_future() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(TraceDisk::new(RealDisk::new()));
    let options = Store::options().limits(limits(3_600_000)).disk(disk.clone());
    let store = options.create(dir.path().join("s")).unwrap();
    let stream = store.create_stream("s").unwrap();
    block_on(append(&store, stream, 0).durable()).0.unwrap();
    disk.on_mark(|step| assert_ne!(step, Step::AppendSync, "a panic in the disk"));
    let accepted: Vec<_> = (0..20).map(|n| store.append(vec![one(stream, n)])).collect();
    for accepted in accepted.into_iter().flatten() {
        block_on(accepted.durable()).0.unwrap_err();
    }
    assert!(store.health().halted.is_some());
    assert_eq!(store.append(vec![one(stream, 9)]).unwrap_err().kind(), ErrorKind::Halted);
}

fn one(stream: StreamId, byte: u8) -> Append {
    Append { stream, payload: vec![byte; 40] }
}
