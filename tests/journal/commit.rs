//! Acknowledgements: how many syncs, for whom, and when none.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use sealstone::error::ErrorKind;
use sealstone::ids::{OwnerId, Sequence};
use sealstone::journal::{Level, Tail};

use super::faulty::FaultyDisk;
use super::rig::*;

/// Does a barrier cost one data sync, however many frames wait, and nothing when nothing is new?
#[test]
fn p1_a_barrier_is_one_data_sync_after_1_10_1000_frames() {
    let mut limits = limits();
    limits.journal_file_bytes = 64 << 20;
    let rig = Rig::new(limits);
    rig.journal.barrier().unwrap();
    assert_eq!(rig.disk.counts().mutations(), 4, "the rig's own: nothing has been written yet");
    rig.journal.enqueue(vec![record(9, 0, b"first")]).unwrap();
    rig.journal.barrier().unwrap();
    let mut written = 0;
    for frames in [1, 10, 1000] {
        for record in numbered(written, written + frames) {
            rig.journal.enqueue([record]).unwrap();
        }
        written += frames;
        let before = rig.disk.counts();
        rig.journal.barrier().unwrap();
        let spent = rig.disk.counts().since(&before);
        assert_eq!((spent.sync_data, spent.syncs()), (1, 1), "{frames} frames");
        let before = rig.disk.counts();
        rig.journal.barrier().unwrap();
        assert_eq!(rig.disk.counts().since(&before).mutations(), 0);
    }
    let (found, records) = rig.scan(0);
    assert_eq!(found.unwrap().tail, Tail::Clean);
    assert_eq!(records[1..], numbered(0, written));
}

/// Do threads that wait at once share syncs, and does each get what it asked for?
#[test]
fn eight_threads_share_syncs_and_none_is_lost() {
    let mut limits = limits();
    limits.journal_file_bytes = 1 << 20;
    let rig = Rig::new(limits);
    let each = 200;
    std::thread::scope(|scope| {
        for stream in 0..8 {
            let journal = Arc::clone(&rig.journal);
            scope.spawn(move || {
                for n in 0..each {
                    let ticket = journal.enqueue([record(stream, n, b"payload")]).unwrap();
                    let level = if n % 3 == 0 { Level::Written } else { Level::Durable };
                    journal.wait(&ticket, level).unwrap();
                }
            });
        }
    });
    rig.journal.barrier().unwrap();
    let (found, records) = rig.scan(0);
    assert_eq!(found.unwrap().tail, Tail::Clean);
    for stream in 0..8 {
        let sequences = records.iter().filter(|r| r.stream.0 == stream).map(|r| r.sequence.0);
        assert!(sequences.eq(0..each), "stream {stream}");
    }
    assert!(rig.disk.counts().sync_data <= 8 * each);
}

/// Is a file finished at its bound, durably and by its row, before the next one gets a frame?
#[test]
fn g5_a_full_file_is_finished_before_the_next_begins() {
    let rig = Rig::new(limits());
    for record in numbered(0, 300) {
        let ticket = rig.journal.enqueue([record]).unwrap();
        rig.journal.wait(&ticket, Level::Written).unwrap();
    }
    let finished = rig.journal.finish().unwrap();
    assert_eq!(rig.journal.enqueue(numbered(0, 1)).unwrap_err().kind(), ErrorKind::Closed);
    let rows = rig.rows.rows.lock().clone();
    assert!(rows.len() > 3);
    let mut all = Vec::new();
    for row in &rows {
        let (found, mut records) = rig.scan(row.n);
        let found = found.unwrap();
        assert_eq!(found.tail, Tail::Clean);
        let last = row.n == rows.len() as u64 - 1;
        assert_eq!(row.end, (!last).then_some(found.end), "the last one is told by finish");
        assert_eq!(rig.bytes(row.n).len() as u64, found.end, "no zeros are kept");
        all.append(&mut records);
    }
    assert_eq!(all, numbered(0, 300));
    assert_eq!(finished.len(), 1);
    assert_eq!(finished[0].end, rig.scan(finished[0].n).0.unwrap().end);
    assert_eq!(finished[0].first[0].2, rig.scan(finished[0].n).1[0].sequence);
}

/// Does a frame whose records are sealed before it was written ever reach the disk?
#[test]
fn settled_frames_are_durable_without_io() {
    let rig = Rig::new(limits());
    let first = rig.journal.enqueue(numbered(0, 3)).unwrap();
    let second = rig.journal.enqueue(numbered(3, 5)).unwrap();
    rig.journal.settle(&|_| Sequence(4));
    let before = rig.disk.counts();
    rig.journal.wait(&first, Level::Durable).unwrap();
    assert_eq!(rig.disk.counts().since(&before).mutations(), 0);
    rig.journal.wait(&second, Level::Durable).unwrap();
    assert_eq!(rig.scan(0).1, numbered(3, 5));
    rig.journal.settle(&|_| Sequence(5));
    assert_eq!(rig.journal.queued_bytes(), 0);
}

/// Is the other half of an observation durable before the first half is published?
#[test]
fn g3_no_observation_is_half_there() {
    let rig = Rig::new(limits());
    let sealed = |stream: sealstone::ids::StreamId| Sequence(u64::from(stream.0 == 1) * 2);
    rig.journal.enqueue([record(1, 0, b"alone")]).unwrap();
    rig.journal.flush_partly_sealed(&sealed).unwrap();
    assert_eq!(rig.disk.counts().creates, 0, "nothing is split");
    rig.journal.enqueue([record(1, 1, b"a"), record(2, 0, b"b")]).unwrap();
    rig.journal.enqueue([record(2, 1, b"c")]).unwrap();
    rig.journal.flush_partly_sealed(&sealed).unwrap();
    assert_eq!(rig.scan(0).0.unwrap().frames, 3);
    let before = rig.disk.counts();
    rig.journal.flush_partly_sealed(&sealed).unwrap();
    rig.journal.barrier().unwrap();
    assert_eq!(rig.disk.counts().since(&before).mutations(), 0);
}

/// Are the bounds kept, and is the group that passes one told which?
#[test]
fn too_much_is_refused_by_the_name_of_its_limit() {
    let mut limits = limits();
    limits.frame_bytes_max = 1024;
    limits.queue_bytes = 2048;
    let rig = Rig::new(limits);
    let large = rig.journal.enqueue([record(1, 0, &[0; 1024])]).unwrap_err();
    assert_eq!((large.kind(), large.place()), (ErrorKind::LimitExceeded, "frame_bytes_max"));
    assert_eq!(rig.journal.enqueue([]).unwrap_err().kind(), ErrorKind::Invalid);
    let mut taken = 0;
    let full = loop {
        match rig.journal.enqueue([record(1, taken, &[0; 100])]) {
            Ok(_) => taken += 1,
            Err(full) => break full,
        }
    };
    assert_eq!((full.kind(), full.place()), (ErrorKind::QueueFull, "queue_bytes"));
    assert!(rig.journal.queued_bytes() <= 2048);
    rig.journal.flush().unwrap();
    assert_eq!(rig.journal.queued_bytes(), 0);
    rig.journal.enqueue([record(1, taken, &[0; 100])]).unwrap();
    assert!(!rig.journal.linger_due(0));
    assert!(rig.journal.linger_due(u64::MAX));
}

/// Does anyone wait for ever when the leader panics? Is anything acknowledged afterwards?
#[test]
fn a_panicking_leader_poisons_and_releases() {
    let rig = Rig::new(limits());
    rig.rows.panics.store(true, Ordering::Relaxed);
    let ticket = rig.journal.enqueue(numbered(0, 1)).unwrap();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        rig.journal.wait(&ticket, Level::Written)
    }));
    assert!(panicked.is_err());
    rig.rows.panics.store(false, Ordering::Relaxed);
    let again = rig.journal.wait(&ticket, Level::Written).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::OutcomeUnknown);
    assert_eq!(rig.journal.barrier().unwrap_err().kind(), ErrorKind::OutcomeUnknown);
    assert_eq!(rig.journal.enqueue(numbered(1, 2)).unwrap_err().kind(), ErrorKind::Halted);
    assert!(rig.journal.poisoned().is_some());
}

/// A row that is not committed: is anything acknowledged, and does the next try go on with the same file?
#[test]
fn nothing_is_acknowledged_before_the_row_of_its_file() {
    let rig = Rig::new(limits());
    rig.rows.refuse.store(true, Ordering::Relaxed);
    let ticket = rig.journal.enqueue(numbered(0, 2)).unwrap();
    for level in [Level::Written, Level::Durable, Level::Written] {
        assert_eq!(rig.journal.wait(&ticket, level).unwrap_err().kind(), ErrorKind::Io);
    }
    assert_eq!(rig.disk.counts().creates, 1);
    rig.rows.refuse.store(false, Ordering::Relaxed);
    rig.journal.wait(&ticket, Level::Durable).unwrap();
    assert_eq!(rig.scan(0).1, numbered(0, 2));
}

/// A file whose end may stand in its row, or not: does a frame go behind that end, where recovery would not
/// look for it?
#[test]
fn g1_no_frame_goes_behind_an_end_that_may_be_committed() {
    let rig = Rig::new(limits());
    rig.journal.enqueue(numbered(0, 1)).unwrap();
    rig.journal.barrier().unwrap();
    rig.rows.refuse.store(true, Ordering::Relaxed);
    assert_eq!(rig.journal.roll().unwrap_err().kind(), ErrorKind::Io);
    let end = rig.journal.files()[0].end;
    let ticket = rig.journal.enqueue(numbered(1, 2)).unwrap();
    assert_eq!(rig.journal.wait(&ticket, Level::Durable).unwrap_err().kind(), ErrorKind::Io);
    rig.rows.refuse.store(false, Ordering::Relaxed);
    rig.journal.wait(&ticket, Level::Durable).unwrap();
    let files = rig.journal.files();
    assert_eq!((files[0].end, files[0].finished, files.len()), (end, true, 2));
    assert_eq!(rig.recover(), numbered(0, 2));
    rig.journal.roll().unwrap();
    rig.journal.roll().unwrap();
    rig.journal.forget(0);
    assert!(rig.journal.files().iter().all(|file| file.n == 1 && file.finished));
    assert!(rig.journal.finish().unwrap().is_empty());
}

/// G18: can a handle that was carried into another process write?
#[test]
fn g18_another_process_is_refused() {
    let disk = fresh_disk(1);
    let door = Arc::new(FaultyDisk::new(disk.clone()));
    let rig = Rig::through(disk, door.clone(), limits());
    let ticket = rig.journal.enqueue(numbered(0, 1)).unwrap();
    door.become_process(1001);
    assert_eq!(rig.journal.enqueue(numbered(1, 2)).unwrap_err().kind(), ErrorKind::Forked);
    assert_eq!(rig.journal.wait(&ticket, Level::Durable).unwrap_err().kind(), ErrorKind::Forked);
    assert_eq!(rig.journal.barrier().unwrap_err().kind(), ErrorKind::Forked);
    assert_eq!(rig.journal.finish().unwrap_err().kind(), ErrorKind::Forked);
    door.become_process(1000);
    assert!(rig.journal.finish().unwrap()[0].end > 88, "the parent is untouched");
}

/// Is a ticket of an earlier opening taken for one of this one, and so acknowledged?
#[test]
fn a_ticket_of_another_opening_is_refused() {
    let (ours, theirs) = (Rig::new(limits()), Rig::owned_by(OwnerId([9; 16])));
    let ticket = theirs.journal.enqueue(numbered(0, 1)).unwrap();
    let refused = ours.journal.wait(&ticket, Level::Durable).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
}
