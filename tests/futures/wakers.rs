//! Wakers are a caller's code: what if one uses the store, or drops the last handle of it, in the
//! middle of whatever the store is doing? Each test ends by itself when something waits for ever.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;

use sealstone::engine::{Accepted, Append, ChunkBuild, Store, Waiting};
use sealstone::ids::StreamId;

use crate::block_on::block_on;
use crate::many::{append, limits};

const PATIENCE: Duration = Duration::from_secs(60);

/// Runs `work`, and fails when it does not end.
fn in_time(work: impl FnOnce() + Send + 'static) {
    let (tell, told) = channel();
    thread::spawn(move || {
        work();
        tell.send(()).unwrap();
    });
    told.recv_timeout(PATIENCE).expect("it waits for itself, or failed");
}

/// Does `what`, once, with a handle of the store, and says so.
struct Meddle {
    store: Mutex<Option<Store>>,
    what: fn(Store),
    done: Sender<()>,
}

impl Wake for Meddle {
    fn wake(self: Arc<Self>) {
        let store = self.store.lock().unwrap().take();
        if let Some(store) = store {
            (self.what)(store);
            self.done.send(()).unwrap();
        }
    }
}

fn meddle(store: Store, what: fn(Store)) -> (Waker, Receiver<()>) {
    let (done, is_done) = channel();
    (Waker::from(Arc::new(Meddle { store: Mutex::new(Some(store)), what, done })), is_done)
}

/// Whatever a waker may think of.
fn use_it_all(store: Store) {
    let stream = store.create_stream("of a waker").unwrap();
    let accepted = append(&store, stream, 7);
    let mut future = Box::pin(accepted.durable());
    let _ = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    store.barrier().unwrap();
    store.publish_chunks(vec![chunk(&store, stream)]).unwrap();
    store.stats().unwrap();
    drop((future, store));
}

fn poll(future: &mut Pin<Box<Waiting>>, waker: &Waker) {
    assert!(future.as_mut().poll(&mut Context::from_waker(waker)).is_pending());
}

fn chunk(store: &Store, stream: StreamId) -> ChunkBuild {
    let view = store.view(stream).unwrap();
    ChunkBuild {
        stream,
        first: view.row.sealed_upto,
        records: view.tail.len() as u64,
        content: vec![1; 10],
        about: Vec::new(),
        raw_len: 10,
        iterations: None,
        times: None,
        payloads: Vec::new(),
    }
}

/// Keeps the thread of the store in a waker until it is let go.
struct Gate(Mutex<(Sender<()>, Receiver<()>)>);

impl Wake for Gate {
    fn wake(self: Arc<Self>) {
        let gate = self.0.lock().unwrap();
        let _ = gate.0.send(());
        let _ = gate.1.recv_timeout(PATIENCE);
    }
}

/// The store's thread writes for nobody until what is returned is used.
fn hold_the_thread(store: &Store, stream: StreamId) -> Sender<()> {
    let ((is_in, went_in), (open, opened)) = (channel(), channel());
    let gate = Waker::from(Arc::new(Gate(Mutex::new((is_in, opened)))));
    let mut future = Box::pin(append(store, stream, 1).durable());
    poll(&mut future, &gate);
    went_in.recv_timeout(PATIENCE).expect("nobody woke it");
    open
}

fn create(dir: &Path) -> Store {
    let mut limits = limits(3_600_000);
    limits.journal_prewrite_bytes = 4 << 10;
    limits.journal_file_bytes = 4 << 10;
    limits.journal_budget_bytes = 8 << 10;
    Store::options().limits(limits).create(dir.join("s")).unwrap()
}

/// May a waker drop the last handle, which closes the store, on the thread that found the frame
/// durable?
#[test]
fn p8_a_waker_may_drop_the_last_handle() {
    in_time(|| {
        let dir = tempfile::tempdir().unwrap();
        let store = create(dir.path());
        let stream = store.create_stream("s").unwrap();
        let accepted: Vec<Accepted> = (0..10).map(|n| append(&store, stream, n)).collect();
        let (waker, is_done) = meddle(store, drop);
        let mut waiting: Vec<_> = accepted.iter().map(|a| Box::pin(a.durable())).collect();
        waiting.iter_mut().for_each(|future| {
            let _ = future.as_mut().poll(&mut Context::from_waker(&waker));
        });
        is_done.recv_timeout(PATIENCE).unwrap();
        waiting.into_iter().for_each(|future| block_on(future).0.unwrap());
        let store = Store::open(dir.path().join("s")).unwrap();
        assert_eq!(store.view(stream).unwrap().tail.len(), 10);
    });
}

/// May a waker do anything when its frame was made durable by a sync?
#[test]
fn a_waker_may_use_the_store_after_a_sync() {
    in_time(|| {
        let dir = tempfile::tempdir().unwrap();
        let store = create(dir.path());
        let stream = store.create_stream("s").unwrap();
        let accepted = append(&store, stream, 1);
        let (waker, is_done) = meddle(store.clone(), use_it_all);
        let mut future = Box::pin(accepted.durable());
        let _ = future.as_mut().poll(&mut Context::from_waker(&waker));
        store.barrier().unwrap();
        is_done.recv_timeout(PATIENCE).unwrap();
    });
}

/// May it when a publication made its frame durable without the journal?
#[test]
fn a_waker_may_use_the_store_after_a_publication() {
    in_time(|| {
        let dir = tempfile::tempdir().unwrap();
        let store = create(dir.path());
        let (stream, other) =
            (store.create_stream("s").unwrap(), store.create_stream("o").unwrap());
        let open = hold_the_thread(&store, other);
        let mut future = Box::pin(append(&store, stream, 1).durable());
        let (waker, is_done) = meddle(store.clone(), use_it_all);
        poll(&mut future, &waker);
        store.publish_chunks(vec![chunk(&store, stream)]).unwrap();
        open.send(()).unwrap();
        is_done.recv_timeout(PATIENCE).unwrap();
        block_on(future).0.unwrap();
    });
}

/// May it when copying forward, past the journal budget, synced its frame?
#[test]
fn a_waker_may_use_the_store_after_copying_forward() {
    in_time(|| {
        let dir = tempfile::tempdir().unwrap();
        let store = create(dir.path());
        let (slow, fast) = (store.create_stream("s").unwrap(), store.create_stream("f").unwrap());
        append(&store, slow, 0);
        let open = hold_the_thread(&store, slow);
        for _ in 0..40 {
            store.append(vec![Append { stream: fast, payload: vec![3; 1000] }]).unwrap();
        }
        store.barrier().unwrap();
        let before = store.stats().unwrap();
        let mut future = Box::pin(append(&store, slow, 1).durable());
        let (waker, is_done) = meddle(store.clone(), use_it_all);
        poll(&mut future, &waker);
        store.publish_chunks(vec![chunk(&store, fast)]).unwrap();
        let after = store.stats().unwrap();
        assert_eq!((before.futures_waiting, after.futures_waiting), (0, 0), "it was copied");
        open.send(()).unwrap();
        is_done.recv_timeout(PATIENCE).unwrap();
        block_on(future).0.unwrap();
    });
}
