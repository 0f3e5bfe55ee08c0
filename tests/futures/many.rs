//! Futures in a store that works.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use sealstone::engine::{Accepted, Append, Store, Waiting};
use sealstone::ids::StreamId;
use sealstone::journal::Level;
use sealstone::vfs::{RealDisk, TraceDisk};
use sealstone::{ErrorKind, Limits};

use crate::block_on::{block_on, unpark};

pub fn limits(linger_millis: u64) -> Limits {
    let mut limits = Limits::default();
    limits.sealed_folders = 2;
    limits.ballast_bytes = 0;
    limits.linger_millis = linger_millis;
    limits
}

pub fn append(store: &Store, stream: StreamId, byte: u8) -> Accepted {
    store.append(vec![Append { stream, payload: vec![byte; 40] }]).unwrap()
}

/// Does a future that nobody else waits for end, long before the linger time, in two polls?
#[test]
fn p1_a_future_ends_with_nobody_waiting() {
    let dir = tempfile::tempdir().unwrap();
    // An hour: only the future itself can be what makes the store write.
    let store = Store::options().limits(limits(3_600_000)).create(dir.path().join("s")).unwrap();
    let stream = store.create_stream("s").unwrap();
    for round in 0..20 {
        let accepted = append(&store, stream, round);
        let ticket = accepted.ticket.clone();
        let (done, polls) = block_on(accepted.into_future());
        done.unwrap();
        assert!(polls <= 2, "{polls} polls");
        let (done, polls) = block_on(store.when(&ticket, Level::Written));
        done.unwrap();
        assert_eq!(polls, 1, "it is durable already");
        let (done, polls) = block_on(store.when(&ticket, Level::Accepted));
        done.unwrap();
        assert_eq!(polls, 1);
    }
    let (done, _) = block_on(async { append(&store, stream, 1).await });
    done.unwrap();
    store.close().unwrap();
}

/// Are thousands of futures served by few syncs, each woken once and no more?
#[test]
fn thousands_of_futures_share_syncs() {
    const FUTURES: usize = 5000;
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(TraceDisk::new(RealDisk::new()));
    let options = Store::options().limits(limits(3_600_000)).disk(disk.clone());
    let store = options.create(dir.path().join("s")).unwrap();
    let stream = store.create_stream("s").unwrap();
    append(&store, stream, 0).ticket.position();
    store.barrier().unwrap();
    let syncs = disk.counts().sync_data;
    let accepted: Vec<Accepted> = (0..FUTURES).map(|n| append(&store, stream, n as u8)).collect();
    let (count, waker) = unpark();
    let mut context = Context::from_waker(&waker);
    let mut waiting: Vec<Pin<Box<Waiting>>> =
        accepted.iter().map(|a| Box::pin(a.durable())).collect();
    let mut polls = 0;
    while !waiting.is_empty() {
        waiting.retain_mut(|future| {
            polls += 1;
            match future.as_mut().poll(&mut context) {
                Poll::Ready(done) => {
                    done.unwrap();
                    false
                }
                Poll::Pending => true,
            }
        });
        if !waiting.is_empty() {
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }
    let wakes = count.wakes.load(Ordering::Acquire);
    let syncs = disk.counts().sync_data - syncs;
    println!("{FUTURES} futures: {syncs} data syncs, {wakes} wakes, {polls} polls");
    assert!(wakes <= FUTURES as u64, "a future is woken once");
    assert!(syncs <= 200, "{syncs} data syncs");
    assert_eq!(store.stats().unwrap().futures_waiting, 0);
}

/// Does a dropped future leave its seat, and its waker, behind?
#[test]
fn dropped_futures_leave_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::options().limits(limits(3_600_000)).create(dir.path().join("s")).unwrap();
    let stream = store.create_stream("s").unwrap();
    let (held, waker) = unpark();
    for n in 0..200u8 {
        let mut future = Box::pin(append(&store, stream, n).durable());
        let _ = future.as_mut().poll(&mut Context::from_waker(&waker));
        // Polled again with another waker: the first one is let go of.
        let _ = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let moved = std::thread::spawn(move || drop(future));
        moved.join().unwrap();
    }
    assert_eq!(store.stats().unwrap().futures_waiting, 0);
    store.barrier().unwrap();
    drop(waker);
    // The thread of the store may be waking one last time.
    while Arc::strong_count(&held) > 1 {
        std::thread::yield_now();
    }
    let never_polled = append(&store, stream, 1).durable();
    drop(never_polled);
    store.close().unwrap();
}

/// Do futures on many threads, beside threads that wait, all end?
#[test]
fn futures_and_waiting_threads_share_one_queue() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::options().limits(limits(1)).create(dir.path().join("s")).unwrap();
    let stream = store.create_stream("s").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let store = store.clone();
            scope.spawn(move || {
                for n in 0..30 {
                    let accepted = append(&store, stream, n);
                    match thread % 3 {
                        0 => store.wait(&accepted.ticket, Level::Durable).unwrap(),
                        1 => block_on(accepted.durable()).0.unwrap(),
                        _ => block_on(store.when(&accepted.ticket, Level::Written)).0.unwrap(),
                    }
                }
            });
        }
    });
    store.close().unwrap();
}

/// Does polling write by itself in a store that has no thread?
#[test]
fn a_store_without_a_thread_writes_when_polled() {
    let dir = tempfile::tempdir().unwrap();
    let mut limits = limits(3_600_000);
    limits.background = false;
    let store = Store::options().limits(limits).create(dir.path().join("s")).unwrap();
    let stream = store.create_stream("s").unwrap();
    let accepted = append(&store, stream, 1);
    let mut future = Box::pin(accepted.durable());
    let polled = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Ready(Ok(()))), "{polled:?}");
}

/// Does a future end well when the store is closed, which makes its frame durable, and say so when
/// the store is gone?
#[test]
fn a_close_ends_every_future() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let store = Store::options().limits(limits(3_600_000)).create(&path).unwrap();
    let stream = store.create_stream("s").unwrap();
    let accepted = append(&store, stream, 1);
    let (mut early, late) = (Box::pin(accepted.durable()), accepted.durable());
    let polled = early.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    drop(polled);
    store.close().unwrap();
    block_on(early).0.unwrap();
    block_on(late).0.unwrap();
    let gone = block_on(accepted.durable()).0.unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::Closed);
    // The futures keep no store open.
    let store = Store::open(&path).unwrap();
    let stale = block_on(store.when(&accepted.ticket, Level::Durable)).0.unwrap_err();
    assert_eq!(stale.kind(), ErrorKind::Invalid);
    let waiting = append(&store, stream, 2).durable();
    drop(store);
    block_on(waiting).0.unwrap();
    Store::open(&path).unwrap().close().unwrap();
}
