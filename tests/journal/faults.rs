//! Errors of the disk: what was acknowledged stays, what is queued goes on or is called unknown, and
//! no sync is tried twice.

use std::io;
use std::sync::Arc;

use sealstone::error::ErrorKind;
use sealstone::ids::Sequence;
use sealstone::journal::{Level, Tail, Ticket};
use sealstone::protection::{Protection, switch_off};

use super::faulty::{Call, Fault, FaultyDisk};
use super::rig::*;

fn faulty(file_bytes: u64) -> (Rig, Arc<FaultyDisk>) {
    let disk = fresh_disk(3);
    let door = Arc::new(FaultyDisk::new(disk.clone()));
    let mut limits = limits();
    limits.journal_file_bytes = file_bytes;
    (Rig::through(disk, door.clone(), limits), door)
}

/// Fail a write after j bytes, for all j: does the journal go on at the last good length once there is
/// space again, with every record once, and is a crash in between a tear?
#[test]
fn g16_a_write_that_stops_at_any_byte_goes_on_at_the_last_good_length() {
    for (error, kind) in
        [(io::ErrorKind::StorageFull, ErrorKind::DiskFull), (io::ErrorKind::Other, ErrorKind::Io)]
    {
        for (bytes, unsynced) in (0..220).flat_map(|bytes| [(bytes, true), (bytes, false)]) {
            let (rig, door) = faulty(4096);
            for (n, record) in numbered(0, 3).into_iter().enumerate() {
                let ticket = rig.journal.enqueue([record]).unwrap();
                let level = if n == 2 && unsynced { Level::Written } else { Level::Durable };
                rig.journal.wait(&ticket, level).unwrap();
            }
            let enqueue = |n: u64| rig.journal.enqueue(numbered(n, n + 1)).unwrap();
            let tickets: Vec<Ticket> = (3..6).map(enqueue).collect();
            door.plan(Some(Fault { at: 0, only: None, bytes, error, forever: false }));
            let failed = rig.journal.wait(&tickets[2], Level::Durable);
            let Err(failed) = failed else {
                assert!(bytes >= 192, "the whole run went through");
                continue;
            };
            assert_eq!(failed.kind(), kind);
            let shown = rig.recover();
            assert!(shown.len() >= 3 && shown == numbered(0, shown.len() as u64));
            // What is settled now must not change what stands where in the file.
            rig.journal.settle(&|_| Sequence(4));
            rig.journal.wait(&tickets[0], Level::Durable).unwrap();
            rig.journal.enqueue(numbered(6, 7)).unwrap();
            rig.journal.barrier().unwrap();
            assert_eq!(rig.recover(), numbered(0, 7), "{error:?} after {bytes} bytes");
            assert_eq!(rig.journal.files().len(), if kind == ErrorKind::Io { 2 } else { 1 });
            assert!(rig.journal.poisoned().is_none());
        }
    }
}

/// What one run with a fault did.
struct Run {
    rig: Rig,
    door: Arc<FaultyDisk>,
    durable: u64,
    accepted: u64,
    errors: Vec<(ErrorKind, Level)>,
}

/// A stream of records at changing levels over several files; a failed wait is tried once again.
fn run(fault: Option<Fault>) -> Run {
    let (rig, door) = faulty(700);
    door.plan(fault);
    let mut run = Run { rig, door, durable: 0, accepted: 0, errors: Vec::new() };
    for n in 0..40 {
        let Ok(ticket) = run.rig.journal.enqueue(numbered(n, n + 1)) else { break };
        run.accepted = n + 1;
        let level = [Level::Accepted, Level::Written, Level::Durable][n as usize % 3];
        for _ in 0..2 {
            match run.rig.journal.wait(&ticket, level) {
                Ok(()) if level == Level::Durable => run.durable = n + 1,
                Ok(()) => {}
                Err(e) => {
                    run.errors.push((e.kind(), level));
                    continue;
                }
            }
            break;
        }
    }
    if (0..2).any(|_| run.rig.journal.finish().is_ok()) {
        run.durable = run.accepted;
    }
    run
}

/// Every call × disk full, I/O error × once, for ever: is all that was acknowledged there, once, in
/// order, is no sync tried again, and do files without a row pile up?
#[test]
fn g14_g16_every_call_fails_once_and_for_ever() {
    let calls = run(None).door.calls().len() as u64;
    assert!(calls > 60);
    let mut seen = Vec::new();
    for at in 0..calls {
        for error in [io::ErrorKind::StorageFull, io::ErrorKind::Other] {
            for forever in [false, true] {
                let run = run(Some(Fault { at, only: None, bytes: 5, error, forever }));
                let case = format!("call {at}, {error:?}, for ever: {forever}");
                let Some((_, call)) = run.door.hit() else { continue };
                seen.push(call);
                let shown = run.rig.recover();
                assert!(shown.len() as u64 >= run.durable, "{case}: acknowledged, not there");
                assert!(shown == numbered(0, shown.len() as u64), "{case}: not a prefix");
                assert!(shown.len() as u64 <= run.accepted);
                if !forever && !matches!(call, Call::Sync | Call::SyncDir) {
                    assert_eq!(run.durable, 40, "{case}: it did not go on");
                    assert!(run.rig.journal.poisoned().is_none(), "{case}");
                    assert_eq!(shown.len(), 40);
                }
                if matches!(call, Call::Sync | Call::SyncDir) {
                    let root = run.rig.journal.poisoned().unwrap_or_else(|| panic!("{case}"));
                    let behind = run.door.calls().into_iter().skip(at as usize + 1);
                    assert_eq!(behind.count(), 0, "{case}: after the failed sync nothing is done");
                    let again = run.rig.journal.barrier().unwrap_err();
                    assert_eq!(
                        (again.place(), again.cause()),
                        (root.place(), root.cause()),
                        "{case}"
                    );
                }
                let kinds = [ErrorKind::Io, ErrorKind::DiskFull, ErrorKind::OutcomeUnknown];
                let known = |k: &ErrorKind| kinds.contains(k) || *k == ErrorKind::Halted;
                assert!(run.errors.iter().all(|(kind, _)| known(kind)), "{case}: {:?}", run.errors);
                let rows = run.rig.rows.rows.lock().len();
                let files = run.rig.disk.list_journals();
                // Where no name can be taken away either, each try leaves one behind.
                let strays = if forever { 200 } else { 1 };
                assert!(files <= rows + strays, "{case}: {files} files");
            }
        }
    }
    for call in [Call::Create, Call::Write, Call::SetLen, Call::Sync, Call::SyncDir] {
        assert!(seen.contains(&call), "{call:?} was never hit");
    }
}

/// A failed data sync: does each waiter learn what is unknown and what never reached the disk, and does
/// every later call name the first cause?
#[test]
fn g14_a_failed_sync_is_unknown_and_never_tried_again() {
    let (rig, door) = faulty(4096);
    let safe = rig.journal.enqueue(numbered(0, 1)).unwrap();
    rig.journal.wait(&safe, Level::Durable).unwrap();
    let doubtful = rig.journal.enqueue(numbered(1, 2)).unwrap();
    rig.journal.wait(&doubtful, Level::Written).unwrap();
    door.plan(Some(Fault {
        at: 0,
        only: None,
        bytes: 0,
        error: io::ErrorKind::Other,
        forever: false,
    }));
    let error = rig.journal.wait(&doubtful, Level::Durable).unwrap_err();
    assert_eq!(door.hit(), Some((0, Call::Sync)));
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown);
    let root = rig.journal.poisoned().unwrap();
    assert_eq!((root.kind(), root.operation()), (ErrorKind::Io, "sync"));
    for _ in 0..2 {
        assert_eq!(rig.journal.wait(&doubtful, Level::Durable).unwrap_err().chain(), root.chain());
        assert_eq!(rig.journal.wait(&doubtful, Level::Written).unwrap_err().chain(), root.chain());
        let unknown = rig.journal.wait(&doubtful, Level::Durable).unwrap_err().kind();
        assert_eq!(unknown, ErrorKind::OutcomeUnknown);
        let refused = rig.journal.enqueue(numbered(2, 3)).unwrap_err();
        assert_eq!((refused.kind(), refused.chain()), (ErrorKind::Halted, root.chain()));
        assert_eq!(rig.journal.finish().unwrap_err().chain(), root.chain());
        assert_eq!(rig.journal.roll().unwrap_err().chain(), root.chain());
    }
    rig.journal.wait(&safe, Level::Durable).unwrap();
    assert_eq!(door.calls(), [Call::Sync]);
}

/// Do all who wait behind one leader learn that its sync failed?
#[test]
fn g14_every_follower_learns_of_the_failed_sync() {
    let (rig, door) = faulty(1 << 20);
    rig.journal.enqueue(numbered(0, 1)).unwrap();
    rig.journal.barrier().unwrap();
    door.plan(Some(Fault {
        at: 40,
        only: Some(Call::Sync),
        bytes: 0,
        error: io::ErrorKind::Other,
        forever: true,
    }));
    std::thread::scope(|scope| {
        for stream in 10..18 {
            let journal = &rig.journal;
            scope.spawn(move || {
                let error = (0..10_000).find_map(|n| {
                    let ticket = match journal.enqueue([record(stream, n, b"x")]) {
                        Ok(ticket) => ticket,
                        Err(error) => return Some(error),
                    };
                    journal
                        .wait(&ticket, Level::Durable)
                        .err()
                        .filter(|_| journal.poisoned().is_some())
                });
                let kind = error.unwrap().kind();
                assert!(matches!(kind, ErrorKind::OutcomeUnknown | ErrorKind::Halted), "{kind:?}");
            });
        }
    });
    let calls = door.calls();
    let failed = calls.iter().skip(40).position(|&call| call == Call::Sync).unwrap() + 40;
    assert_eq!(calls.len(), failed + 1, "nothing is done after the failed sync");
}

/// The writer of another thread failed: is a frame that was written before told a failure that is not
/// its own?
#[test]
fn a_written_frame_is_synced_although_a_later_write_fails() {
    let (rig, door) = faulty(4096);
    let first = rig.journal.enqueue(numbered(0, 1)).unwrap();
    rig.journal.wait(&first, Level::Written).unwrap();
    let second = rig.journal.enqueue(numbered(1, 2)).unwrap();
    door.plan(Some(Fault {
        at: 0,
        only: None,
        bytes: 3,
        error: io::ErrorKind::StorageFull,
        forever: true,
    }));
    let full = rig.journal.wait(&second, Level::Durable).unwrap_err();
    assert_eq!(full.kind(), ErrorKind::DiskFull);
    door.plan(Some(Fault {
        at: 0,
        only: None,
        bytes: 3,
        error: io::ErrorKind::StorageFull,
        forever: false,
    }));
    rig.journal.wait(&first, Level::Durable).unwrap();
    assert_eq!(door.calls()[..2], [Call::Write, Call::Sync]);
}

/// A reading that goes wrong once: is a durable frame ever taken for a tear because of it?
#[test]
fn g12_a_read_that_flips_once_is_read_again() {
    let (rig, door) = faulty(1 << 20);
    for record in numbered(0, 20) {
        rig.journal.enqueue([record]).unwrap();
        rig.journal.barrier().unwrap();
    }
    let row = rig.rows.rows.lock()[0].clone();
    let mut at = 0;
    loop {
        door.flip_read(at);
        let (found, records) = scan_on(&*door, 0, Some(&row));
        assert!(!matches!(found.unwrap().tail, Tail::Damaged { .. }), "read {at}");
        assert_eq!(records, numbered(0, 20), "read {at}");
        if door.reads() <= at {
            break;
        }
        at += 1;
    }
    assert!(at > 2);
}

/// Would the rules against retrying a sync and against writing behind a tear be missed?
#[test]
fn rules_after_an_error_are_missed_when_switched_off() {
    let fault = |at, only, error| Fault { at, only: Some(only), bytes: 5, error, forever: false };
    let synced_again = || {
        let run = run(Some(fault(8, Call::Sync, io::ErrorKind::Other)));
        let (at, _) = run.door.hit().unwrap();
        run.door.calls().len() as u64 > at + 1
    };
    assert!(!synced_again());
    {
        let _off = switch_off(Protection::HaltAfterFailedSync);
        assert!(synced_again());
    }
    let lost = || {
        (0..30).any(|at| {
            let run = run(Some(fault(at, Call::Write, io::ErrorKind::StorageFull)));
            run.rig.shown().is_none_or(|shown| (shown.len() as u64) < run.durable)
        })
    };
    assert!(!lost());
    let _off = switch_off(Protection::NewFileBehindTear);
    assert!(lost());
}
