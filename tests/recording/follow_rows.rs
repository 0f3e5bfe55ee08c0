//! REC50: a follower trusts rows and commits, and takes back what it read before they spoke.

use std::sync::Arc;

use parking_lot::Mutex;
use sealstone::ids::EventId;
use sealstone::journal::Level;
use sealstone::manifest::{
    EventForm, EventRow, JournalRow, Reading, RecordingRow, RecordingStatus,
};
use sealstone::protection::{Protection, switch_off};
use sealstone::recording::{FollowLevel, Followed, Value};
use sealstone::vfs::sim::{Fault, FaultKind, SimDisk, SyncFailure};
use sealstone::vfs::{Disk, Step};
use sealstone::{ErrorKind, Layout, Options, Store, WriteAccess};

use super::follow::{drain, limits, names, on, reader, root, sim};
use super::followed_run::{NAME, Run, Seen, schema};
use super::gate::GateDisk;

/// A world whose process 10 stands behind a gate.
fn gated(seed: u64) -> (SimDisk, GateDisk) {
    let disk = sim(seed);
    let gate = GateDisk::new(Arc::new(disk.process(10)));
    (disk, gate)
}

fn through(gate: &GateDisk) -> Options {
    Store::options().limits(limits()).disk(Arc::new(gate.clone()))
}

/// What a follower in the writing process was told of a record that waits for its commit, and then.
fn told_before_and_after() -> (usize, usize) {
    let (_, gate) = gated(31);
    let mut run = Run::create(&through(&gate).layout(Layout::SingleFile), &root());
    let follow = Arc::new(Mutex::new(run.store.follow(NAME).unwrap()));
    let (follower, before) = (Arc::clone(&follow), Arc::new(Mutex::new(None)));
    let seen = Arc::clone(&before);
    gate.at_step(Step::AppendSync, move || {
        *seen.lock() = Some(usize::from(follower.lock().poll().unwrap().is_some()));
    });
    let ticket = run.put(&[0]);
    run.store.wait(&ticket, Level::Written).unwrap();
    let before = before.lock().expect("it committed");
    let after = usize::from(follow.lock().poll().unwrap().is_some());
    (before, after)
}

/// In one file, is a record that no commit holds yet kept from a follower in the writing process?
#[test]
fn rec50_in_one_file_what_no_commit_holds_is_not_told() {
    assert_eq!(told_before_and_after(), (0, 1));
    let _off = switch_off(Protection::FollowCommitted);
    assert_eq!(told_before_and_after(), (1, 0), "the mutant tells what a kill takes back");
}

/// In one file, is the last record shown as durable while its writer is idle, in each process?
#[test]
fn rec50_in_one_file_what_is_committed_is_durable() {
    let disk = sim(32);
    let mut run = Run::create(&on(&disk).layout(Layout::SingleFile), &root());
    let beside = reader(&disk);
    for store in [&beside, &run.store.clone()] {
        let mut follow = store.follow_at(NAME, FollowLevel::Durable).unwrap();
        let mut seen = Seen::default();
        drain(&mut follow, &mut seen);
        let ticket = run.put(&[0]);
        run.store.wait(&ticket, Level::Durable).unwrap();
        assert_eq!(drain(&mut follow, &mut seen).len(), 1);
        assert_eq!(seen.records[0], run.model[0]);
    }
}

/// Records, by iteration and value.
type Told = Vec<(i64, f64)>;

/// A fenced owner writes behind the end with which its journal is taken over; what a follower of
/// both owners saw, and what is there.
fn fenced() -> (Vec<String>, Told, Told) {
    let (disk, gate) = gated(33);
    let mut run = Run::create(&on(&disk.process(11)).access(WriteAccess::Shared), &root());
    let two = through(&gate).access(WriteAccess::Shared).open(root()).unwrap();
    let third = on(&disk.process(12)).open_read_only(root()).unwrap();
    let (mut follow, mut seen) = (third.follow(NAME).unwrap(), Seen::default());
    let ticket = run.put(&[0]);
    run.store.wait(&ticket, Level::Durable).unwrap();
    assert_eq!(names(&drain(&mut follow, &mut seen)), ["fine 0"]);
    // Somebody cleans up what is not theirs, and the owner lives on.
    let (owner, _) = run.store.owner().unwrap();
    disk.unlink(&root().join(format!("owners/{owner}.lock"))).unwrap();
    let lost = Arc::new(Mutex::new((run, follow, seen)));
    let late = Arc::clone(&lost);
    gate.at_step(Step::OpenTakeOver, move || {
        let (run, follow, seen) = &mut *late.lock();
        let ticket = run.put(&[0]);
        // It is told nothing; its frame is in the file all the same.
        let fenced = run.store.wait(&ticket, Level::Written).unwrap_err();
        assert_eq!(fenced.kind(), ErrorKind::Fenced);
        assert_eq!(names(&drain(follow, seen)), ["fine 1"]);
    });
    assert_eq!(two.take_over().unwrap(), [owner]);
    let Ok(lost) = Arc::try_unwrap(lost) else { panic!("it never wrote") };
    let (mut run, mut follow, mut seen) = lost.into_inner();
    run.model[0].pop();
    run.history += 1;
    let mut run = run.on(two);
    run.put(&[0]);
    run.put(&[0]);
    run.store.barrier().unwrap();
    let told = names(&drain(&mut follow, &mut seen));
    (told, seen.records[0].clone(), run.model[0].clone())
}

/// Is what an owner wrote after it lost its journal taken back, and what took its numbers told?
#[test]
fn rec50_what_a_fenced_owner_wrote_is_taken_back() {
    let (told, seen, there) = fenced();
    assert_eq!(told, ["fine back to 1", "fine 1", "fine 2"]);
    assert_eq!(seen, there);
    let _off = switch_off(Protection::FollowAdopted);
    let (told, seen, there) = fenced();
    assert!(seen != there, "the mutant diverges: {told:?}");
}

/// A sync fails, and the store is opened again over a medium that has less than was shown.
fn reverted(seals: bool) -> (Vec<String>, Told, Told) {
    let disk = sim(34);
    let writer = disk.process(10);
    let mut run = Run::create(&on(&writer), &root());
    let store = reader(&disk);
    let (mut follow, mut seen) = (store.follow(NAME).unwrap(), Seen::default());
    let ticket = run.put(&[0]);
    run.store.wait(&ticket, Level::Durable).unwrap();
    if seals {
        // Nothing that was durable lies in the journal any more: recovery lets it go.
        run.seal(0, 1);
    }
    let ticket = run.put(&[0]);
    run.store.wait(&ticket, Level::Written).unwrap();
    drain(&mut follow, &mut seen);
    assert_eq!(seen.records[0].len(), 2);
    let fault = FaultKind::SyncFails(SyncFailure::NothingKept);
    writer.inject(Fault::new(writer.operations(), fault).on("journal").forever());
    run.store.barrier().unwrap_err();
    assert!(run.store.health().halted.is_some());
    let paused = follow.pause();
    drop(store);
    writer.kill();
    writer.clear_faults();
    run.model[0].pop();
    run.history += 1;
    let mut run = run.on(on(&disk.process(11)).open(root()).unwrap());
    run.put(&[0]);
    run.store.barrier().unwrap();
    let mut follow = paused.over(&reader(&disk)).unwrap();
    let told = names(&drain(&mut follow, &mut seen));
    (told, seen.records[0].clone(), run.model[0].clone())
}

/// Is what a failed sync lost taken back, and what took its numbers told?
#[test]
fn rec50_what_the_medium_lost_is_taken_back() {
    for seals in [false, true] {
        let (told, seen, there) = reverted(seals);
        assert_eq!(told, ["fine back to 1", "fine 1"]);
        assert_eq!(seen, there);
        let _off = switch_off(Protection::FollowAdopted);
        let (told, seen, there) = reverted(seals);
        assert!(seen != there, "the mutant diverges: {told:?}");
    }
}

/// The recording is reopened and moved back between a look and the reading of a chunk; whether the
/// end was told all the same, and what was told in the end and is there.
fn reopened_under_a_reading() -> (bool, Told, Told) {
    let (disk, gate) = gated(35);
    let set = |run: &Run, status: RecordingStatus| {
        let id = run.store.recording(NAME).unwrap().id();
        let change = |w: &mut sealstone::manifest::Write<'_>| {
            let mut row = w.require::<RecordingRow>(&id)?;
            row.status = status.clone();
            w.put(&id, &row)
        };
        run.store.transact(Step::PublishCommit, change).unwrap();
    };
    let mut run = Run::create(&on(&disk.process(11)), &root());
    for _ in 0..10 {
        run.put(&[0]);
    }
    run.seal(0, 10);
    set(&run, RecordingStatus::Complete);
    let store = through(&gate).open_read_only(root()).unwrap();
    let mut follow = store.follow(NAME).unwrap();
    let run = Arc::new(Mutex::new(run));
    let again = Arc::clone(&run);
    gate.at_sealed(move || {
        let mut run = again.lock();
        set(&run, RecordingStatus::Running);
        run.rewind(0);
        run.store.reclaim(Default::default()).unwrap();
    });
    let mut records = Vec::new();
    let mut ended = 0;
    for round in 0..2 {
        while let Some(told) = follow.poll().unwrap() {
            match told {
                Followed::Appended { record, .. } => {
                    records.push((record.iteration(), record.get::<f64>("x").unwrap()));
                }
                Followed::Ended(_) => ended += 1,
                _ => {}
            }
        }
        if round == 0 {
            let early = ended > 0;
            let mut run = run.lock();
            run.put(&[0]);
            run.seal(0, 1);
            set(&run, RecordingStatus::Complete);
            if early {
                return (true, records, run.model[0].clone());
            }
        }
    }
    assert_eq!(ended, 1);
    (false, records, run.lock().model[0].clone())
}

/// Is the end kept back where the rows moved on while what was before it was read?
#[test]
fn rec50_the_end_is_not_told_over_rows_that_moved() {
    let (early, seen, there) = reopened_under_a_reading();
    assert!(!early && seen == there, "{seen:?} {there:?}");
    let _off = switch_off(Protection::FollowMoved);
    assert!(reopened_under_a_reading().0, "the mutant tells an end with records missing");
}

/// Is the last event that there can be told once?
#[test]
fn rec50_the_last_number_of_an_event_is_told_once() {
    let disk = sim(36);
    let run = Run::create(&on(&disk), &root());
    let id = run.store.recording(NAME).unwrap().id();
    let row = EventRow {
        iteration: None,
        at: None,
        kind: "last".to_owned(),
        form: EventForm::Text,
        body: b"x".to_vec(),
        anchor: None,
    };
    let put = |w: &mut sealstone::manifest::Write<'_>| w.put(&(id, EventId(u64::MAX)), &row);
    run.store.transact(Step::PublishCommit, put).unwrap();
    let mut follow = run.store.follow(NAME).unwrap();
    assert!(matches!(follow.poll().unwrap(), Some(Followed::Event(_))));
    assert!(follow.poll().unwrap().is_none());
    assert!(follow.poll().unwrap().is_none());
}

/// Does a follow say that it is over, wake over another opening, and give values as Rust types?
#[test]
fn rec50_over_is_said_and_a_reopened_recording_goes_on() {
    let disk = sim(37);
    let store = on(&disk).create(root()).unwrap();
    let run = store.record(NAME, &schema()).stream("fine", ["x"]).start().unwrap();
    run.append(0, 7, &[Value::F64(0.5)]).unwrap();
    run.barrier().unwrap();
    let mut follow = store.follow(NAME).unwrap();
    assert!(!follow.is_over());
    let Some(Followed::Appended { record, .. }) = follow.poll().unwrap() else { panic!() };
    assert_eq!(record.get::<f64>("x").unwrap(), 0.5);
    assert_eq!(record.get::<i64>("x").unwrap_err().kind(), ErrorKind::TypeMismatch);
    assert_eq!(record.get::<f64>("y").unwrap_err().kind(), ErrorKind::NotFound);
    run.complete().unwrap();
    while follow.poll().unwrap().is_some() {}
    assert!(follow.is_over());
    assert!(follow.next_event(std::time::Duration::MAX).unwrap().is_none(), "at once");
    let from = sealstone::recording::ResumeFrom::Tail;
    let resumed = store.resume(NAME).from(from).reopen().start().unwrap();
    resumed.recorder.append(0, 8, &[Value::F64(1.5)]).unwrap();
    resumed.recorder.barrier().unwrap();
    let mut follow = follow.pause().over(&store).unwrap();
    assert!(!follow.is_over());
    let mut told = Vec::new();
    while let Some(one) = follow.poll().unwrap() {
        told.push(one);
    }
    told.retain(|one| matches!(one, Followed::Appended { .. } | Followed::Ended(_)));
    assert_eq!(names(&told), ["fine 8"]);
}

/// Is a record that no journal and no chunk holds, with one behind it, damage?
#[test]
fn rec50_a_hole_is_damage() {
    let disk = sim(38);
    let mut run = Run::create(&on(&disk), &root());
    run.put(&[0]);
    run.store.clone().close().unwrap();
    let mut run = run.on(on(&disk.process(3)).open(root()).unwrap());
    run.put(&[0]);
    run.store.barrier().unwrap();
    let rows = run.store.snapshot().unwrap().list::<JournalRow>(.., 10).unwrap();
    assert_eq!(rows.len(), 2);
    let mine = run.store.owner().unwrap().0;
    let (earlier, _) = rows.iter().find(|((owner, _), _)| *owner != mine).unwrap();
    let forget = |w: &mut sealstone::manifest::Write<'_>| w.remove::<JournalRow>(earlier).map(drop);
    run.store.transact(Step::PublishCommit, forget).unwrap();
    let store = reader(&disk);
    let mut follow = store.follow(NAME).unwrap();
    let damage = follow.poll().unwrap_err();
    assert_eq!(damage.kind(), ErrorKind::Damage, "{damage}");
    assert!(damage.to_string().contains("record 0 is missing although record 1"), "{damage}");
}
