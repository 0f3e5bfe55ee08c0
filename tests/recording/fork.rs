//! Forks of recordings: REC41.

use std::collections::BTreeSet;

use sealstone::engine::Budget;
use sealstone::ids::{Ordinal, RecordingId};
use sealstone::manifest::{ChunkRow, FileRow, ObjectRow, Place, Reading, Table};
use sealstone::recording::{RecordingStatus, ResumeFrom};
use sealstone::{ErrorKind, Layout, Options, Store, WriteAccess};

use crate::resuming::{Sim, draft, iterations, observe, on, root, shared, sim, whole};

fn objects(store: &Store, name: &str, stream: &str) -> Vec<(u64, u64)> {
    let id = store.recording(name).unwrap().stream(stream).unwrap().id();
    let range = (id, Ordinal(0))..=(id, Ordinal(u64::MAX));
    let rows = store.snapshot().unwrap().list::<ChunkRow>(range, usize::MAX).unwrap();
    rows.into_iter().map(|(_, row)| (row.object.0, row.records)).collect()
}

/// Bytes of all chunks, each once.
fn stored(store: &Store) -> u64 {
    let snapshot = store.snapshot().unwrap();
    let chunks = snapshot.list::<ChunkRow>(.., usize::MAX).unwrap();
    let objects: BTreeSet<_> = chunks.into_iter().map(|(_, row)| row.object).collect();
    objects.iter().map(|object| snapshot.require::<ObjectRow>(object).unwrap().stored_len).sum()
}

/// Does a fork of a running, a complete and a failed recording begin as that was, share all earlier
/// chunks, go its own way, and outlive it?
#[test]
fn rec41_a_fork_begins_at_a_checkpoint_and_shares_earlier_chunks() {
    let layouts: [fn(Options) -> Options; 3] = [
        |options| options,
        |options| options.layout(Layout::SingleFile),
        |options| options.access(WriteAccess::Shared),
    ];
    for (at, layout) in layouts.into_iter().enumerate() {
        for end in ["running", "complete", "failed"] {
            let disk = sim(41 + at as u64);
            let store = layout(on(&disk)).create(root()).unwrap();
            let recorder = draft(&store, "run").start().unwrap();
            observe(&recorder, 0, 40);
            recorder.checkpoint(&Sim::at(39)).unwrap();
            observe(&recorder, 40, 90);
            let mut running = None;
            match end {
                "running" => running = Some(recorder),
                "complete" => recorder.complete().unwrap(),
                _ => recorder.fail("on purpose").unwrap(),
            }
            let before = stored(&store);
            let made = store.fork("run", ResumeFrom::LatestCheckpoint, "fork").unwrap();
            let id: RecordingId = made.id;
            assert_eq!((made.iteration, made.passed_over.len()), (Some(39), 0));
            let fork = store.recording("fork").unwrap();
            assert_eq!((fork.id(), fork.status()), (id, &RecordingStatus::Running));
            assert_eq!(iterations(&store, "fork"), whole(40), "{end}");
            assert!(fork.metadata().iter().any(|(key, of)| key == "fork.of" && of == "run"));
            drop(fork);
            if end != "running" {
                // Everything was sealed: not a byte is its own, and a cut chunk shows fewer records.
                assert_eq!(stored(&store), before);
                let (theirs, ours) =
                    (objects(&store, "run", "all"), objects(&store, "fork", "all"));
                for (at, (object, records)) in ours.iter().enumerate() {
                    assert_eq!(theirs[at].0, *object);
                    assert!(
                        *records <= theirs[at].1
                            && (at + 1 == ours.len() || *records == theirs[at].1)
                    );
                }
            }
            let resumed = store.resume("fork").start().unwrap();
            assert_eq!(resumed.state.as_ref().unwrap().get::<i64>("n").unwrap(), Sim::at(39).n);
            assert_eq!(resumed.plan.cut(), 0);
            observe(&resumed.recorder, 40, 70);
            if let Some(recorder) = running {
                observe(&recorder, 90, 95);
                recorder.complete().unwrap();
                assert_eq!(iterations(&store, "run"), whole(95));
            }
            resumed.recorder.complete().unwrap();
            assert_eq!(iterations(&store, "fork"), whole(70));
            store.retire_recording("run", "the fork stays").unwrap();
            store.reclaim(Budget::default()).unwrap();
            drop(store);
            let store = layout(on(&disk)).open(root()).unwrap();
            assert_eq!(iterations(&store, "fork"), whole(70));
            store.retire_recording("fork", "all of it").unwrap();
            store.reclaim(Budget::default()).unwrap();
            assert!(store.accounts().unwrap().are_closed());
            let snapshot = store.snapshot().unwrap();
            assert_eq!(snapshot.count(Table::Chunks).unwrap(), 0);
            assert_eq!(snapshot.count(Table::Checkpoints).unwrap(), 0);
        }
    }
}

/// Can a fork be made in another process while the source is written, and is it cut off from it?
#[test]
fn rec41_a_recording_that_another_process_writes_can_be_forked() {
    let disk = sim(141);
    let one = shared(&disk);
    let recorder = draft(&one, "run").start().unwrap();
    observe(&recorder, 0, 25);
    recorder.checkpoint(&Sim::at(24)).unwrap();
    observe(&recorder, 25, 30);
    let two = shared(&disk.process(2));
    two.fork("run", ResumeFrom::LatestCheckpoint, "fork").unwrap();
    observe(&recorder, 30, 60);
    recorder.barrier().unwrap();
    let resumed = two.resume("fork").start().unwrap();
    observe(&resumed.recorder, 25, 45);
    resumed.recorder.complete().unwrap();
    recorder.complete().unwrap();
    assert_eq!(iterations(&one, "run"), whole(60));
    assert_eq!(iterations(&one, "fork"), whole(45));
}

/// What refuses a fork, and is nothing of it left?
#[test]
fn rec41_a_refused_fork_leaves_nothing() {
    let disk = sim(241);
    let store = on(&disk).create(root()).unwrap();
    let recorder = draft(&store, "run").start().unwrap();
    observe(&recorder, 0, 12);
    let kind = |from, name: &str| store.fork("run", from, name).unwrap_err().kind();
    assert_eq!(kind(ResumeFrom::LatestCheckpoint, "fork"), ErrorKind::NoCheckpoint);
    assert_eq!(kind(ResumeFrom::Tail, "run"), ErrorKind::Exists);
    assert_eq!(kind(ResumeFrom::Tail, " "), ErrorKind::Invalid);
    assert_eq!(store.fork("no", ResumeFrom::Tail, "fork").unwrap_err().kind(), ErrorKind::NotFound);
    let stale = recorder.checkpoint(&Sim::at(11)).unwrap();
    drop(recorder);
    let resumed = store.resume("run").from(ResumeFrom::Tail).start().unwrap();
    observe(&resumed.recorder, 12, 20);
    resumed.recorder.keep_checkpoints(9).unwrap();
    let later = resumed.recorder.checkpoint(&Sim::at(19)).unwrap();
    drop(resumed);
    drop(store.resume("run").from(ResumeFrom::Checkpoint(stale)).start().unwrap());
    assert_eq!(kind(ResumeFrom::Checkpoint(later), "fork"), ErrorKind::Conflict);
    assert_eq!(store.recordings(9).unwrap().len(), 1);
    store.fork("run", ResumeFrom::Tail, "fork").unwrap();
    assert_eq!(iterations(&store, "fork"), whole(12));
}

/// Does a second, equal run add no payload byte, and are the sealed files of two equal runs equal?
#[test]
fn rec41_equal_runs_share_everything_and_give_equal_files() {
    let run = |store: &Store, name: &str| {
        let recorder = draft(store, name).start().unwrap();
        for part in 0..6 {
            observe(&recorder, part * 20, part * 20 + 20);
            if part % 2 == 0 {
                recorder.barrier().unwrap();
            }
        }
        recorder.complete().unwrap();
    };
    let disk = sim(341);
    let store = on(&disk).create(root()).unwrap();
    run(&store, "one");
    let payload = |store: &Store| -> Vec<_> {
        let mut all = objects(store, "one", "all");
        all.extend(objects(store, "one", "few"));
        let snapshot = store.snapshot().unwrap();
        all.iter()
            .map(|(object, _)| {
                snapshot.require::<ObjectRow>(&sealstone::ids::ObjectId(*object)).unwrap().digest
            })
            .collect()
    };
    // Those that hold records: rows are kept in files as well.
    let files = |store: &Store| -> BTreeSet<String> {
        let snapshot = store.snapshot().unwrap();
        let chunks = snapshot.list::<ChunkRow>(.., usize::MAX).unwrap();
        let place = |object| snapshot.require::<ObjectRow>(object).unwrap().place;
        let file = |place| match place {
            Place::Extent { file, .. } => {
                Some(format!("{:?}", snapshot.require::<FileRow>(&file).unwrap().digest))
            }
            Place::Inline | Place::Recipe => None,
        };
        chunks.iter().filter_map(|(_, row)| file(place(&row.object))).collect()
    };
    let (bytes, files_of_one) = (stored(&store), files(&store));
    assert!(!files_of_one.is_empty());
    run(&store, "two");
    assert_eq!(stored(&store), bytes, "not a byte of payload is added");
    assert_eq!(files(&store), files_of_one, "nor a file");
    for stream in ["all", "few"] {
        assert_eq!(objects(&store, "one", stream), objects(&store, "two", stream));
    }
    let other = sim(342);
    let elsewhere = on(&other).create(root()).unwrap();
    run(&elsewhere, "one");
    assert_eq!(payload(&store), payload(&elsewhere));
    assert_eq!(files(&elsewhere), files_of_one);
}

/// Does a fork that goes on as its source did grow by no more than that did in its second half?
#[test]
fn rec41_a_fork_grows_by_its_own_second_half_alone() {
    let disk = sim(441);
    let store = on(&disk).create(root()).unwrap();
    let recorder = draft(&store, "run").start().unwrap();
    observe(&recorder, 0, 200);
    recorder.checkpoint(&Sim::at(199)).unwrap();
    let first = stored(&store);
    observe(&recorder, 200, 400);
    recorder.complete().unwrap();
    let whole_run = stored(&store);
    let (second, before) = (whole_run - first, whole_run);
    store.fork("run", ResumeFrom::LatestCheckpoint, "fork").unwrap();
    assert_eq!(stored(&store), before, "the fork itself is rows alone");
    let resumed = store.resume("fork").start().unwrap();
    observe(&resumed.recorder, 200, 400);
    resumed.recorder.complete().unwrap();
    assert_eq!(iterations(&store, "fork"), whole(400));
    let grown = stored(&store) - before;
    assert!(grown <= second, "{grown} bytes for a half of {second}");
}
