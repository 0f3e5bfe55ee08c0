//! Many threads on one store.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::{chunk, read, small};
use sealstone::engine::{Append, Budget, Claim, Sealing, Store, StreamView};
use sealstone::journal::Level;
use sealstone::manifest::ClaimKind;

fn is_shared<T: Send + Sync>() {}

/// May every handle go to another thread?
#[test]
fn handles_are_send_and_sync() {
    is_shared::<Store>();
    is_shared::<Claim>();
    is_shared::<Sealing>();
    is_shared::<StreamView>();
    is_shared::<sealstone::journal::Ticket>();
    is_shared::<sealstone::Error>();
}

/// Do threads that append, seal, reclaim and read at once lose, double or reorder a record?
#[test]
fn g4_g5_threads_that_append_seal_and_read_see_one_order() {
    const THREADS: usize = 4;
    const EACH: usize = 150;
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("run.stone");
    let mut limits = small();
    limits.queue_bytes = 4 << 10;
    limits.journal_file_bytes = 16 << 10;
    limits.journal_budget_bytes = 48 << 10;
    let store = Store::options().limits(limits.clone()).create(&root).unwrap();
    let stream = store.create_stream("shared").unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut writers = Vec::new();
        for thread in 0..THREADS {
            let store = store.clone();
            writers.push(scope.spawn(move || {
                for n in 0..EACH {
                    let payload = format!("{thread}:{n}:{}", "x".repeat(n % 200)).into_bytes();
                    let accepted = store.append(vec![Append { stream, payload }]).unwrap();
                    if n % 7 == 0 {
                        store.wait(&accepted.ticket, Level::Durable).unwrap();
                    }
                }
            }));
        }
        let (sealer, is_done) = (store.clone(), &done);
        let sealing = scope.spawn(move || {
            while !is_done.load(Ordering::Acquire) {
                let count = sealer.view(stream).unwrap().tail.len();
                if count > 20 {
                    sealer.publish_chunks(vec![chunk(&sealer, stream, count)]).unwrap();
                    sealer.reclaim(Budget::default()).unwrap();
                }
            }
        });
        let reader = store.clone();
        let reading = scope.spawn(move || {
            let mut before = 0;
            while !is_done.load(Ordering::Acquire) {
                let now = reader.view(stream).unwrap().record_count();
                assert!(now >= before, "{now} records after {before}");
                before = now;
            }
        });
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::Release);
        sealing.join().unwrap();
        reading.join().unwrap();
    });
    store.close().unwrap();
    let store = Store::options().limits(limits).open(&root).unwrap();
    let records = read(&store, stream);
    assert_eq!(records.len(), THREADS * EACH);
    let mut next = [0; THREADS];
    let mut seen = HashSet::new();
    for record in records {
        let text = String::from_utf8(record).unwrap();
        let mut parts = text.split(':').map(|part| part.parse::<usize>());
        let (thread, n) = (parts.next().unwrap().unwrap(), parts.next().unwrap().unwrap());
        assert_eq!(n, next[thread], "thread {thread} out of order");
        next[thread] += 1;
        assert!(seen.insert((thread, n)));
    }
    assert!(store.accounts().unwrap().are_closed());
}

/// Does a record that nobody waits for reach the kernel by itself?
#[test]
fn a_record_that_lingers_is_written_without_a_waiter() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("run.stone");
    let mut limits = small();
    limits.background = true;
    limits.linger_millis = 5;
    let store = Store::options().limits(limits.clone()).create(&root).unwrap();
    let stream = store.create_stream("s").unwrap();
    store.append(vec![Append { stream, payload: b"alone".to_vec() }]).unwrap();
    let reader = Store::options().limits(limits).open_read_only(&root).unwrap();
    let patience = Instant::now() + Duration::from_secs(60);
    while read(&reader, stream) != [b"alone".to_vec()] {
        assert!(Instant::now() < patience, "nothing wrote it");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Is a claim refused to others with its holder named, and free again when its guard goes?
#[test]
fn p5_a_claim_is_exclusive_and_ends_with_its_guard() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("run.stone");
    let store = Store::options().limits(small()).create(&root).unwrap();
    let claim = store.claim(&"group/1".into(), ClaimKind::Group).unwrap();
    let refused = store.claim(&"group/1".into(), ClaimKind::Group).unwrap_err();
    assert_eq!(refused.kind(), sealstone::ErrorKind::Conflict);
    assert!(refused.to_string().contains("process"), "{refused}");
    assert_eq!(store.claims(10).unwrap().len(), 1);
    let shared = Arc::new(claim);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let _held = shared;
        panic!("the worker panics");
    }));
    assert!(panicked.is_err());
    store.claim(&"group/1".into(), ClaimKind::Group).unwrap();
}
