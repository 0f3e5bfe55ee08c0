//! Checkpoints of recordings: REC37.

use sealstone::ErrorKind;
use sealstone::engine::Store;
use sealstone::ids::CheckpointId;
use sealstone::manifest::{CheckpointRow, Reading, StateBytes};
use sealstone::protection::{Protection, switch_off};
use sealstone::recording::{CHECKPOINTS_KEPT, Cell, Observable, ResumeFrom, Value};
use sealstone::vfs::sim::SimDisk;

use crate::resuming::{Sim, draft, flip, iterations, observe, on, root, sim, whole};

/// A state with a name that is long enough to lie in a file.
struct Long(Sim);

impl Observable for Long {
    fn iteration(&self) -> i64 {
        self.0.iteration
    }

    fn field(&self, name: &str, to: &mut Cell<'_>) -> sealstone::Result<()> {
        match name {
            "name" => to.put(Value::String(&"é".repeat(50_000 + self.0.iteration as usize))),
            name => self.0.field(name, to),
        }
    }
}

/// Is a checkpoint durable on return, whole state and all streams together, and does it survive a power
/// cut in which nothing unsynced does?
#[test]
fn rec37_a_checkpoint_is_durable_on_return_with_every_stream() {
    use sealstone::vfs::sim::Profile;
    let disk = sim(37);
    let store = on(&disk).create(root()).unwrap();
    let recorder = draft(&store, "run").start().unwrap();
    observe(&recorder, 0, 10);
    let commits = |store: &Store| store.snapshot().unwrap().counters().unwrap().commit_seq.0;
    recorder.barrier().unwrap();
    let before = commits(&store);
    let id = recorder.checkpoint(&Sim::at(9)).unwrap();
    assert_eq!(commits(&store) - before, 1, "state and cursors in one transaction");
    observe(&recorder, 10, 13);
    let log = disk.events();
    for profile in Profile::ALL {
        let mut cursor = log.cursor(profile);
        cursor.advance_to(log.len());
        let mut rng = sealstone::vfs::sim::Rng::new(1);
        for image in cursor.images(&mut rng, 4) {
            let store = on(&image.disk()).open(root()).unwrap();
            let resumed = store.resume("run").start().unwrap();
            let state = resumed.state.unwrap();
            assert_eq!((state.checkpoint(), state.iteration()), (id, 9));
            assert_eq!(state.get::<f64>("x").unwrap().to_bits(), Sim::at(9).x.to_bits());
            assert_eq!(state.get::<String>("name").unwrap(), "9");
            assert_eq!(iterations(&store, "run"), whole(10));
        }
    }
}

/// Is a state that lacks a value, or lies before the last observation, refused, and nothing stored?
#[test]
fn rec37_a_state_that_is_not_whole_is_refused() {
    struct Partial;
    impl Observable for Partial {
        fn iteration(&self) -> i64 {
            9
        }
        fn field(&self, name: &str, to: &mut Cell<'_>) -> sealstone::Result<()> {
            if name == "name" { Ok(()) } else { Sim::at(9).field(name, to) }
        }
    }
    let disk = sim(137);
    let store = on(&disk).create(root()).unwrap();
    let recorder = draft(&store, "run").start().unwrap();
    observe(&recorder, 0, 10);
    let refused = recorder.checkpoint(&Partial).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(refused.to_string().contains("\"name\""), "{refused}");
    let refused = recorder.checkpoint(&Sim::at(8)).unwrap_err();
    assert!(refused.to_string().contains("iteration 8 lies before 9"), "{refused}");
    assert_eq!(store.resume("run").plan().unwrap_err().kind(), ErrorKind::NoCheckpoint);
}

/// A recording whose newest checkpoint is damaged.
fn with_a_damaged_checkpoint(disk: &SimDisk, store: &Store) -> Vec<CheckpointId> {
    let recorder = draft(store, "run").start().unwrap();
    let mut ids = Vec::new();
    for part in 0..3i64 {
        observe(&recorder, part * 10, part * 10 + 10);
        ids.push(recorder.checkpoint(&Long(Sim::at(part * 10 + 9))).unwrap());
    }
    drop(recorder);
    damage(disk, store, ids[2]);
    ids
}

/// Does a fork tell at which checkpoint it begins, and which it passed over?
#[test]
fn rec41_a_fork_tells_which_checkpoint_it_begins_at() {
    let disk = sim(341);
    let store = on(&disk).create(root()).unwrap();
    let ids = with_a_damaged_checkpoint(&disk, &store);
    let made = store.fork("run", ResumeFrom::LatestCheckpoint, "fork").unwrap();
    assert_eq!((made.checkpoint, made.iteration), (Some(ids[1]), Some(19)));
    assert_eq!(made.passed_over.len(), 1);
    assert_eq!(made.passed_over[0].0, ids[2]);
    assert_eq!(iterations(&store, "fork"), whole(20));
}

/// Is it the fall-back that lets the run go on? (mutant)
#[test]
fn rec37_without_the_fall_back_a_damaged_checkpoint_stops_the_run() {
    let disk = sim(337);
    let store = on(&disk).create(root()).unwrap();
    with_a_damaged_checkpoint(&disk, &store);
    assert!(store.resume("run").plan().is_ok());
    let _off = switch_off(Protection::CheckpointFallBack);
    assert!(store.resume("run").plan().is_err());
}

/// Changes a byte of a checkpoint's state.
fn damage(disk: &SimDisk, store: &Store, id: CheckpointId) {
    let scope = store.recording("run").unwrap().id().0;
    let snapshot = store.snapshot().unwrap();
    let row = snapshot.require::<CheckpointRow>(&(scope, id)).unwrap();
    let StateBytes::Object(object) = row.state else { panic!("it was to be long") };
    let object = snapshot.require::<sealstone::manifest::ObjectRow>(&object).unwrap();
    let sealstone::manifest::Place::Extent { file, offset } = object.place else {
        panic!("inline")
    };
    let file = snapshot.require::<sealstone::manifest::FileRow>(&file).unwrap();
    let path = sealstone::format::layout::sealed(&root(), &file.digest, file.unique, 2);
    flip(disk, &path, offset + 500);
}

/// Is the newest by commit order, never by time, and does a damaged one fall back to the one before and
/// say so?
#[test]
fn rec37_the_newest_is_by_commit_and_a_damaged_one_falls_back_and_says_so() {
    let disk = sim(237);
    let store = on(&disk).create(root()).unwrap();
    let recorder = draft(&store, "run").start().unwrap();
    let mut ids = Vec::new();
    for part in 0..3i64 {
        observe(&recorder, part * 10, part * 10 + 10);
        ids.push(recorder.checkpoint(&Long(Sim::at(part * 10 + 9))).unwrap());
        disk.step_wall_clock(-86_400_000_000_000);
    }
    drop(recorder);
    let kept = store.checkpoints(store.recording("run").unwrap().id().0).unwrap();
    let kept: Vec<_> = kept.iter().map(|note| note.id).collect();
    assert_eq!(kept, [ids[2], ids[1]], "the newest {CHECKPOINTS_KEPT} stay");
    let plan = store.resume("run").plan().unwrap();
    assert_eq!((plan.checkpoint, plan.iteration, plan.cut()), (Some(ids[2]), Some(29), 0));

    damage(&disk, &store, ids[2]);
    let plan = store.resume("run").plan().unwrap();
    assert_eq!((plan.checkpoint, plan.iteration), (Some(ids[1]), Some(19)));
    assert!(plan.to_string().contains(&format!("checkpoint {} is passed over", ids[2])), "{plan}");
    let refused = store.resume("run").from(ResumeFrom::Checkpoint(ids[2])).start().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Damage);
    let resumed = store.resume("run").start().unwrap();
    let state = resumed.state.unwrap();
    assert_eq!((state.checkpoint(), state.passed_over().len()), (ids[1], 1));
    assert_eq!(state.passed_over()[0].0, ids[2]);
    assert_eq!(iterations(&store, "run"), whole(20));
    observe(&resumed.recorder, 20, 40);
    resumed.recorder.complete().unwrap();
    assert_eq!(iterations(&store, "run"), whole(40));
}

/// Is a state before a record that was appended, and not observed, refused with both numbers? The next
/// iteration behind it would be refused, and the checkpoint be of no use.
#[test]
fn rec37_a_state_before_the_last_record_is_refused() {
    let disk = sim(337);
    let store = on(&disk).create(root()).unwrap();
    let recorder = draft(&store, "run").start().unwrap();
    observe(&recorder, 0, 3);
    let schema = store.recording("run").unwrap().streams().unwrap()[0].schema().clone();
    let state = Sim::at(5);
    let values: Vec<Value<'_>> = schema
        .fields()
        .iter()
        .map(|field| match field.name.as_str() {
            "x" => Value::F64(state.x),
            "n" => Value::I64(state.n),
            _ => Value::String(&state.name),
        })
        .collect();
    recorder.append(0, 5, &values).unwrap();
    for before in [3, 4] {
        let refused = recorder.checkpoint(&Sim::at(before)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid);
        let cause = format!("iteration {before} lies before 5");
        assert!(refused.to_string().contains(&cause), "{refused}");
    }
    recorder.checkpoint(&Sim::at(5)).unwrap();
    drop(recorder);
    let resumed = store.resume("run").start().unwrap();
    observe(&resumed.recorder, 6, 7);
}
