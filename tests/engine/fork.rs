//! Forks: streams that begin as others were.

use std::sync::Arc;

use crate::support::{append, chunk, on, read, root, sim, small};
use sealstone::ErrorKind;
use sealstone::engine::{Branch, Budget, ChunkBuild, Forked, Layout, Options, Store, Thing};
use sealstone::engine::{StreamView, WriteAccess};
use sealstone::ids::{Ordinal, Sequence, StreamId};
use sealstone::manifest::{
    ChunkRow, Cursor, ObjectRow, Reading, RecordingRow, RecordingStatus, Table,
};
use sealstone::protection::{Protection, switch_off};
use sealstone::vfs::sim::SimDisk;

fn records(n: usize) -> Vec<Vec<u8>> {
    (0..n).map(|i| (0..90).map(|j| (i * 31 + j * 7) as u8).collect()).collect()
}

/// What of the source is shared up to `cursor`, and the rest as one chunk.
fn branch(store: &Store, cursor: Cursor) -> Branch {
    let view: StreamView = store.view(cursor.stream).unwrap();
    let shared_upto = view.row.sealed_upto;
    let count = cursor.end.0.saturating_sub(shared_upto.0);
    let unsealed: Vec<ChunkBuild> = match count {
        0 => Vec::new(),
        count => vec![chunk(store, cursor.stream, count as usize)],
    };
    Branch { cursor, shared_upto, unsealed, dropped: 3 }
}

fn fork(store: &Store, branches: Vec<Branch>) -> sealstone::Result<Forked> {
    let fork = store.seal_fork(branches)?;
    fork.publish(|w, forked| {
        let row = RecordingRow {
            name: "fork".to_owned(),
            status: RecordingStatus::Running,
            streams: forked.streams.clone(),
            metadata: Vec::new(),
            created: None,
            schema: Vec::new(),
            about: Vec::new(),
        };
        w.put(&forked.recording, &row)?;
        Ok(forked.clone())
    })
}

fn objects(store: &Store, stream: StreamId) -> Vec<u64> {
    let range = (stream, Ordinal(0))..=(stream, Ordinal(u64::MAX));
    let rows = store.snapshot().unwrap().list::<ChunkRow>(range, usize::MAX).unwrap();
    rows.into_iter().map(|(_, row)| row.object.0).collect()
}

/// A stream with two chunks and an unsealed tail: 4, 4 and 4 records.
fn source(store: &Store) -> (StreamId, Vec<Vec<u8>>) {
    let stream = store.create_stream("s").unwrap();
    let all = records(12);
    for part in all.chunks(4) {
        part.iter().for_each(|record| _ = append(store, stream, record));
        if part[0] != all[8] {
            store.publish_chunks(vec![chunk(store, stream, 4)]).unwrap();
        }
    }
    store.barrier().unwrap();
    (stream, all)
}

fn cursor_at(store: &Store, stream: StreamId, end: u64) -> Cursor {
    Cursor { end: Sequence(end), ..store.cursors(&[stream]).unwrap()[0] }
}

fn whole(options: impl Fn(&SimDisk) -> Options) {
    let disk = sim(11);
    let store = options(&disk).create(root()).unwrap();
    let (stream, all) = source(&store);
    let stored = store.snapshot().unwrap().count(Table::Objects).unwrap();
    // On a boundary, inside a chunk, inside the tail, at the end, and before everything.
    let mut forks = Vec::new();
    for (end, chunks, own) in [(8, 2, 0), (6, 2, 0), (10, 3, 1), (12, 3, 1), (0, 0, 0)] {
        let made = fork(&store, vec![branch(&store, cursor_at(&store, stream, end))]).unwrap();
        let forked = made.streams[0];
        assert_eq!(read(&store, forked), all[..end as usize]);
        assert_eq!(store.view(forked).unwrap().row.dropped, 3);
        let (theirs, ours) = (objects(&store, stream), objects(&store, forked));
        assert_eq!(ours.len(), chunks);
        let shared = ours.iter().filter(|object| theirs.contains(object)).count();
        assert_eq!(ours.len() - shared, own, "only what was not sealed is its own");
        forks.push((forked, end));
    }
    // The two that took unsealed records took different ones.
    assert_eq!(store.snapshot().unwrap().count(Table::Objects).unwrap(), stored + 2);
    // Each goes its own way, the source too.
    append(&store, stream, b"source");
    for (forked, end) in &forks {
        store.hold_streams(&[*forked]).unwrap();
        assert_eq!(append(&store, *forked, b"fork"), Sequence(*end));
    }
    store.barrier().unwrap();
    drop(store);
    let store = options(&disk).open(root()).unwrap();
    store.retire(&[Thing::Stream(stream)], "forks stay").unwrap();
    store.reclaim(Budget::default()).unwrap();
    for (forked, end) in &forks {
        let mut expected = all[..*end as usize].to_vec();
        expected.push(b"fork".to_vec());
        assert_eq!(read(&store, *forked), expected);
    }
    assert!(store.accounts().unwrap().are_closed());
    let things: Vec<Thing> = forks.iter().map(|(forked, _)| Thing::Stream(*forked)).collect();
    store.retire(&things, "all of it").unwrap();
    store.reclaim(Budget::default()).unwrap();
    let left = store.snapshot().unwrap().list::<ObjectRow>(.., usize::MAX).unwrap();
    let kept: Vec<_> = left.iter().filter(|(object, _)| store.fetch(*object).is_err()).collect();
    assert!(kept.is_empty() && store.accounts().unwrap().are_closed());
}

/// Does a fork hold exactly the records below its cursor, share every chunk, and outlive its source?
#[test]
fn p4_a_fork_shares_chunks_and_outlives_its_source() {
    whole(on);
}

#[test]
fn p4_a_fork_in_one_file_shares_chunks_and_outlives_its_source() {
    whole(|disk| on(disk).layout(Layout::SingleFile));
}

#[test]
fn p4_a_fork_where_several_write_shares_chunks_and_outlives_its_source() {
    whole(|disk| on(disk).access(WriteAccess::Shared));
}

/// Can another process fork from streams that a living one holds?
#[test]
fn a_fork_of_streams_that_another_process_holds() {
    let disk = sim(12);
    let shared = |disk: &SimDisk| {
        let options = Store::options().limits(small()).disk(Arc::new(disk.clone()));
        options.access(WriteAccess::Shared).open_or_create(root()).unwrap()
    };
    let one = shared(&disk);
    let (stream, all) = source(&one);
    let cursor = cursor_at(&one, stream, 10);
    let two = shared(&disk.process(2));
    let made = fork(&two, vec![branch(&two, cursor)]).unwrap();
    assert_eq!(read(&two, made.streams[0]), all[..10]);
    append(&one, stream, b"on and on");
    two.hold_streams(&made.streams).unwrap();
    append(&two, made.streams[0], b"its own way");
    assert_eq!(read(&one, stream).len(), 13);
    assert_eq!(read(&two, made.streams[0]).len(), 11);
}

/// Is a fork refused, with nothing of it there, when its source was moved back meanwhile?
#[test]
fn a_fork_beyond_a_rewind_is_refused() {
    let disk = sim(13);
    let store = on(&disk).create(root()).unwrap();
    let (stream, _) = source(&store);
    let sealed = store.seal_fork(vec![branch(&store, cursor_at(&store, stream, 10))]).unwrap();
    let stale = cursor_at(&store, stream, 10);
    store.rewind(&[cursor_at(&store, stream, 6)]).unwrap();
    let refused = sealed.publish(|_, forked| Ok(forked.clone())).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
    (0..9u8).for_each(|n| _ = append(&store, stream, &[n; 9]));
    let refused = fork(&store, vec![branch(&store, stale)]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
    // (mutant) Without the check of cursors it would hold records of another history.
    let _off = switch_off(Protection::CursorCheck);
    let wrong = fork(&store, vec![branch(&store, stale)]).unwrap();
    assert_eq!(read(&store, wrong.streams[0])[9], [3; 9]);
}

/// Is the reference what keeps a fork's chunks when the source goes? (mutant)
#[test]
fn without_references_of_its_own_a_fork_loses_its_chunks() {
    let disk = sim(14);
    let store = on(&disk).create(root()).unwrap();
    let (stream, all) = source(&store);
    let off = switch_off(Protection::EdgesOfChunks);
    let made = fork(&store, vec![branch(&store, cursor_at(&store, stream, 8))]).unwrap();
    drop(off);
    assert_eq!(read(&store, made.streams[0]), all[..8]);
    store.retire(&[Thing::Stream(stream)], "the source goes").unwrap();
    store.reclaim(Budget::default()).unwrap();
    let object = sealstone::ids::ObjectId(objects(&store, made.streams[0])[0]);
    assert!(store.fetch(object).is_err(), "gone with the source");
}
