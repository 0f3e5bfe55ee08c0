//! Does the cost of a retirement follow the batch, and do appends go on meanwhile?

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use sealstone::engine::{Append, Layout, NewObject, Store};
use sealstone::ids::NameGeneration;
use sealstone::journal::Level;
use sealstone::manifest::{NameRow, ObjectRow, Piece, Place, RecipeRow, ValueForm};
use sealstone::objects::Digest;
use sealstone::vfs::Step;

use super::support::*;

/// So many files of their own piece each, `files/AT/...`, in few transactions.
fn many(store: &Store, at: &str, from: u64, files: u64) {
    let contents = (from..from + files)
        .map(|n| NewObject { bytes: (n << 20).to_be_bytes().repeat(16), referrer: None });
    let contents: Vec<NewObject> = contents.collect();
    store
        .transact_with(Step::LeaseCommit, contents, |w, pieces| {
            for (n, piece) in (from..).zip(pieces) {
                let object = w.next_object_id()?;
                let digest = Digest::of(&n.to_be_bytes());
                let len = 128;
                let pieces = vec![Piece { object: *piece, len }];
                w.put(&(object, 0), &RecipeRow { pieces })?;
                let place = Place::Recipe;
                w.put(&object, &ObjectRow { digest, len, stored_len: 0, codec: 0, place })?;
                let (generation, commit) = (NameGeneration(1), w.commit_seq());
                let row = NameRow { generation, object, len, commit, form: ValueForm::Bytes };
                w.put(&key(&format!("files/{at}/{n:06}")), &row)?;
            }
            Ok(())
        })
        .unwrap();
}

/// Does the same batch make about as many operations of the disk in a store a hundred times as large?
#[test]
fn obj24_the_cost_follows_the_batch() {
    let mut counted = Vec::new();
    for times in [1, 100] {
        let disk = sim(1);
        let mut limits = small();
        // What is counted is what changes, not what a small cache forgets.
        limits.manifest_cache_bytes = 64 << 20;
        let store = on(&disk, Layout::Directory).limits(limits).create(root()).unwrap();
        disk.stop_log();
        for n in 0..times {
            many(&store, &format!("{n:03}"), 100 * n, 100);
        }
        let batch = [gone("files/000/000050"), gone("files/000/000051")];
        let before = disk.operations();
        let done = store.objects().retire(&batch, "batch").unwrap();
        assert_eq!((done.things, done.objects), (2, 4));
        counted.push(disk.operations() - before);
    }
    println!("{} operations, {} in a store 100 times as large", counted[0], counted[1]);
    assert!(counted[1] as f64 <= counted[0] as f64 * 1.3, "{counted:?}");
}

/// Do durable appends go on while a large retirement runs?
#[test]
fn obj24_appends_go_on_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let mut limits = small();
    limits.background = true;
    let store = Store::options().limits(limits).create(folder.path().join("s")).unwrap();
    let stream = store.create_stream("appends").unwrap();
    for n in 0..20 {
        many(&store, "batch", 500 * n, 500);
    }
    let append = || {
        let began = Instant::now();
        let accepted = store.append(vec![Append { stream, payload: vec![7; 100] }]).unwrap();
        store.wait(&accepted.ticket, Level::Durable).unwrap();
        began.elapsed()
    };
    (0..20).for_each(|_| {
        append();
    });
    let alone: Vec<_> = (0..50).map(|_| append()).collect();
    let batch: Vec<_> = (0..10_000).map(|n| gone(&format!("files/batch/{n:06}"))).collect();
    let is_over = AtomicBool::new(false);
    let (took, meanwhile) = std::thread::scope(|scope| {
        let retiring = scope.spawn(|| {
            let began = Instant::now();
            let done = store.objects().retire(&batch, "large").unwrap();
            assert_eq!((done.things, done.objects), (10_000, 20_000));
            is_over.store(true, Ordering::Release);
            began.elapsed()
        });
        let mut meanwhile = Vec::new();
        while !is_over.load(Ordering::Acquire) {
            meanwhile.push(append());
        }
        (retiring.join().unwrap(), meanwhile)
    });
    let median = |mut all: Vec<std::time::Duration>| {
        all.sort_unstable();
        all[all.len() / 2]
    };
    let appends = meanwhile.len();
    let (alone, beside) = (median(alone), median(meanwhile));
    println!(
        "retired in {took:?}; {appends} appends meanwhile, median {beside:?}, alone {alone:?}"
    );
    // Three that were begun and acknowledged before it was over: the second one did not wait for it.
    assert!(appends >= 3, "{appends} appends in {took:?}");
}
