//! Rows of stages that contradict each other: is each told, where it is and as what it is?

use sealstone::check::{Finding, Severity};
use sealstone::engine::{Store, Thing};
use sealstone::ids::{
    CommitSeq, GroupId, HandoffId, ObjectId, OutputId, PartId, QuarantineId, RecordingId, Sequence,
    StageId, StreamId,
};
use sealstone::manifest::*;
use sealstone::staging::{Batch, Key, KeyPart, KeyShape, Produced, Ready, Stage};
use sealstone::vfs::Step;

use crate::support::text;
use crate::tamper::{Bench, Tamper, looked};

const STAGE: StageId = StageId(1);
const NOBODY: StageId = StageId(9);

/// A detached group of one part, an open one of two, an unsealed batch; an output, one part that was set
/// aside, a hand-off that is prepared and one that is done.
fn fill(store: &Store) {
    let stage = store.create_stage("logs", &KeyShape::new().text("host")).unwrap();
    assert_eq!(stage.id(), STAGE);
    put(&stage, "b", 1);
    stage.flush(&Ready::All).unwrap();
    for sequence in [2, 3] {
        put(&stage, "a", sequence);
        stage.seal().unwrap();
    }
    put(&stage, "a", 4);
    let lease = store.lease("test", "output", None, &[]).unwrap();
    let objects = store.put_objects(lease, vec![vec![1; 900], vec![2; 800]]).unwrap();
    let (made, aside) = (objects[0].0, objects[1].0);
    let committed = store.transact(Step::StageCommit, |w| {
        let output = w.next_output_id()?;
        w.put(&(STAGE, output), &an_output(made))?;
        for state in [HandoffState::Prepared, HandoffState::Done] {
            let id = w.next_handoff_id()?;
            w.put(&id, &a_handoff(output, made, state))?;
        }
        let parts = w.list::<PartRow>(.., 1)?;
        let part = PartRow { object: aside, ..parts[0].1.clone() };
        let id = w.next_quarantine_id()?;
        w.put(&(STAGE, id), &set_aside(part))
    });
    committed.unwrap();
    store.retire(&[Thing::Lease(lease)], "test").unwrap();
}

fn put(stage: &Stage, host: &str, sequence: u64) {
    let key = Key::new([KeyPart::Text(host.to_owned())]);
    let produced = Produced::new("p", sequence).at("here");
    stage.append(&key, Batch::opaque(vec![sequence as u8; 200], 3), Some(&produced)).unwrap();
}

fn an_output(object: ObjectId) -> OutputRow {
    OutputRow {
        object,
        key: Vec::new(),
        groups: Vec::new(),
        merged: Vec::new(),
        rows: 3,
        len: 900,
        form: "bin".to_owned(),
        schema: Vec::new(),
        at: None,
    }
}

fn a_handoff(output: OutputId, object: ObjectId, state: HandoffState) -> HandoffRow {
    HandoffRow {
        stage: STAGE,
        output,
        object,
        target: "dir".to_owned(),
        intent: vec![1],
        evidence: Vec::new(),
        state,
        tries: 1,
        failure: None,
        at: None,
    }
}

fn set_aside(part: PartRow) -> QuarantineRow {
    QuarantineRow {
        group: GroupId(1),
        key: b"b".to_vec(),
        reason: "for the test".to_owned(),
        objects: vec![part.object],
        part,
        at: None,
    }
}

/// A group of nothing.
fn a_group(key: &[u8], state: GroupState) -> GroupRow {
    GroupRow {
        key: key.to_vec(),
        state,
        rows: 0,
        batches: 0,
        len: 0,
        first_at: None,
        last_at: None,
        failures: 0,
        failure: None,
    }
}

fn detached() -> GroupState {
    GroupState::Detached { at: CommitSeq(1) }
}

/// The stage's only row.
fn stage_row(t: &Tamper<'_>) -> StageRow {
    t.rows::<StageRow>().remove(0).1
}

/// Changes the row of the stage's intake, which holds the batches.
fn change_intake(t: &Tamper<'_>, change: impl Fn(&mut StreamRow)) {
    let [intake] = stage_row(t).intakes[..] else { panic!("one intake") };
    let rows = t.rows::<StreamRow>().into_iter();
    let (key, mut row) = rows.into_iter().find(|(key, _)| *key == intake).unwrap();
    change(&mut row);
    t.put(&key, &row);
}

/// The group that is open, and its row.
fn open_group(t: &Tamper<'_>) -> ((StageId, GroupId), GroupRow) {
    let rows = t.rows::<GroupRow>().into_iter();
    rows.into_iter().find(|(_, row)| row.state == GroupState::Open).unwrap()
}

/// Takes the rows of a kind out and puts them in again under other keys.
fn rekey<R: Row>(t: &Tamper<'_>, key: impl Fn(&R::Key) -> R::Key) {
    for (old, row) in t.rows::<R>() {
        t.remove::<R>(&old);
        t.put(&key(&old), &row);
    }
}

type Case = (&'static str, &'static str, fn(&Tamper<'_>));

/// Is each case told with these words, at this place?
fn assert_each(severity: Severity, cases: &[Case]) {
    let bench = Bench::of(fill);
    let report = looked(&bench.root());
    assert!(report.is_good(), "{}", text(&report));
    assert_eq!(report.findings.iter().filter(|f| f.severity > Severity::Note).count(), 0);
    for (place, what, tamper) in cases {
        let report = bench.tampered(tamper);
        let is_it = |f: &&Finding| {
            f.severity == severity && f.place.contains(place) && f.what.contains(what)
        };
        let found = report.findings.iter().find(is_it);
        assert!(found.is_some(), "no {what:?} at {place:?} in:\n{}", text(&report));
    }
}

/// Are names that lead to one stage, and intakes that are not the stage's own, told?
#[test]
fn stages_and_their_intakes_are_told() {
    let cases: [Case; 6] = [
        ("stages \"other\"", "it is stage 1, and so is \"logs\"", |t| {
            t.put(&"other".to_owned(), &StageRow { intakes: Vec::new(), ..stage_row(t) });
        }),
        ("stages \"other\"", "is its intake, and that of stage 1 as well", |t| {
            t.put(&"other".to_owned(), &StageRow { stage: StageId(2), ..stage_row(t) });
        }),
        ("stages \"logs\"", "its intake, stream 99, has no row", |t| {
            t.change::<StageRow>(|_| true, |row| row.intakes.push(StreamId(99)));
        }),
        ("stages \"logs\"", ", has chunks", |t| change_intake(t, |row| row.sealed_upto.0 += 1)),
        ("stages \"logs\"", ", has chunks", |t| change_intake(t, |row| row.taken_upto.0 -= 1)),
        ("stages \"logs\"", ", belongs to a recording", |t| {
            change_intake(t, |row| row.recording = Some(RecordingId(1)));
        }),
    ];
    assert_each(Severity::Damage, &cases);
}

/// Are groups that share parts or a key, that are not the sum of their parts, or of which the index says
/// something else, told?
#[test]
fn stg_groups_that_do_not_fit_are_told() {
    let of_two: Case = ("groups (StageId(9)", "stage 1 has a group 2 as well", |t| {
        let (key, row) = open_group(t);
        t.put(&(NOBODY, key.1), &row);
    });
    let cases: [Case; 10] = [
        of_two,
        ("groups (StageId(9)", "stage 9 of it is not there", of_two.2),
        ("groups (StageId(1), GroupId(50))", "group 2 of this key is open as well", |t| {
            let key = open_group(t).1.key;
            t.put(&(STAGE, GroupId(50)), &a_group(&key, GroupState::Open));
        }),
        ("groups (StageId(1), GroupId(2))", "it says 7 rows in 2 batches", |t| {
            t.change::<GroupRow>(|row| row.rows == 6, |row| row.rows += 1);
        }),
        ("groups (StageId(1), GroupId(2))", "it says 6 rows in 3 batches", |t| {
            t.change::<GroupRow>(|row| row.rows == 6, |row| row.batches += 1);
        }),
        ("groups (StageId(1), GroupId(2))", "its 2 parts have 6, 2 and", |t| {
            t.change::<GroupRow>(|row| row.rows == 6, |row| row.len += 1);
        }),
        ("groups (StageId(1), GroupId(2))", "its 1 parts have 3, 1 and", |t| {
            let parts = t.rows::<PartRow>();
            let (key, _) = parts.into_iter().find(|(key, _)| key.0 == GroupId(2)).unwrap();
            t.remove::<PartRow>(&key);
        }),
        ("open_groups OpenGroupKey", "group 77 is not open, or has another key", |t| {
            let key = open_group(t).1.key;
            t.put(&OpenGroupKey { stage: STAGE, key, group: GroupId(77) }, &OpenGroupRow);
        }),
        ("open_groups OpenGroupKey", "group 2 is not open, or has another key", |t| {
            let key = b"another".to_vec();
            t.put(&OpenGroupKey { stage: STAGE, key, group: GroupId(2) }, &OpenGroupRow);
        }),
        ("open_groups OpenGroupKey", "group 2 is not open, or has another key", |t| {
            let (key, row) = open_group(t);
            t.put(&key, &GroupRow { state: detached(), ..row });
        }),
    ];
    assert_each(Severity::Damage, &cases);
    let empty: Case = ("groups (StageId(1), GroupId(50))", "it has no part", |t| {
        t.put(&(STAGE, GroupId(50)), &a_group(b"c", detached()));
    });
    assert_each(Severity::Warning, &[empty]);
}

/// Are parts told that no group has, or that say of records what cannot be, set aside ones as well?
#[test]
fn stg_parts_that_do_not_fit_are_told() {
    let cases: [Case; 5] = [
        ("parts", "2 parts are of group 2, which has no row", |t| {
            t.remove::<GroupRow>(&open_group(t).0);
        }),
        ("parts (GroupId(1)", "it is of records 900..", |t| {
            t.change::<PartRow>(|_| true, |row| row.first = Sequence(900));
        }),
        ("parts (GroupId(1)", "it is of records up to 900, of stream", |t| {
            t.change::<PartRow>(|_| true, |row| row.upto = Sequence(900));
        }),
        ("quarantine (StageId(1)", "it is of records 900..", |t| {
            t.change::<QuarantineRow>(|_| true, |row| row.part.first = Sequence(900));
        }),
        ("quarantine (StageId(1)", "it is of records up to 900, of stream", |t| {
            t.change::<QuarantineRow>(|_| true, |row| row.part.upto = Sequence(900));
        }),
    ];
    assert_each(Severity::Damage, &cases);
}

/// Is told what belongs to no stage, an output of another length, and a producer whose window is none?
#[test]
fn stg_outputs_producers_and_what_nobody_has_are_told() {
    let none = "stage 9 of it is not there";
    let cases: [Case; 8] = [
        ("outputs (StageId(9)", none, |t| rekey::<OutputRow>(t, |key| (NOBODY, key.1))),
        ("producers ProducerKey", none, |t| {
            rekey::<ProducerRow>(t, |key| ProducerKey { stage: NOBODY, name: key.name.clone() });
        }),
        ("quarantine (StageId(9)", none, |t| rekey::<QuarantineRow>(t, |key| (NOBODY, key.1))),
        ("handoffs HandoffId(1)", none, |t| {
            t.change::<HandoffRow>(|_| true, |row| row.stage = NOBODY);
        }),
        ("outputs (StageId(1)", "it says 901 bytes, its object", |t| {
            t.change::<OutputRow>(|_| true, |row| row.len += 1);
        }),
        ("producers ProducerKey", "its last sequence is Some(3), the newest of its window", |t| {
            t.change::<ProducerRow>(|_| true, |row| row.recent.reverse());
        }),
        ("producers ProducerKey", "its last sequence is Some(8)", |t| {
            t.change::<ProducerRow>(|_| true, |row| row.last = Some(8));
        }),
        // Out of order, although its last one is the last.
        ("producers ProducerKey", "the newest of its window Some(3)", |t| {
            t.change::<ProducerRow>(|_| true, |row| row.recent.swap(0, 1));
        }),
    ];
    assert_each(Severity::Damage, &cases);
    // What is decided stays as a record, and nobody needs its stage.
    let report = Bench::of(fill).tampered(|t| {
        t.change::<HandoffRow>(|row| row.state == HandoffState::Done, |row| row.stage = NOBODY);
    });
    assert!(!text(&report).contains(none), "{}", text(&report));
}

/// Are numbers of stages told that would be given twice, whichever row uses them?
#[test]
fn stg_numbers_that_would_be_given_twice_are_told() {
    let stands = "and a row uses 99";
    let cases: [Case; 14] = [
        ("counter stage", stands, |t| {
            t.change::<StageRow>(|_| true, |row| row.stage = StageId(99));
        }),
        ("counter stage", stands, |t| {
            let is_done = |row: &HandoffRow| row.state == HandoffState::Done;
            t.change::<HandoffRow>(is_done, |row| row.stage = StageId(99));
        }),
        ("counter group", stands, |t| {
            rekey::<PartRow>(t, |key| (GroupId(99), key.1));
        }),
        ("counter group", stands, |t| {
            t.put(&(STAGE, GroupId(99)), &a_group(b"c", detached()));
        }),
        ("counter group", stands, |t| {
            t.change::<OutputRow>(|_| true, |row| row.groups.push(GroupId(99)));
        }),
        ("counter group", stands, |t| {
            t.change::<QuarantineRow>(|_| true, |row| row.group = GroupId(99));
        }),
        ("counter part", stands, |t| {
            let (key, row) = t.rows::<PartRow>().remove(0);
            t.remove::<PartRow>(&key);
            t.put(&(key.0, PartId(99)), &row);
        }),
        ("counter output", stands, |t| rekey::<OutputRow>(t, |key| (key.0, OutputId(99)))),
        ("counter output", stands, |t| {
            t.change::<OutputRow>(|_| true, |row| row.merged.push(OutputId(99)));
        }),
        ("counter output", stands, |t| {
            t.change::<HandoffRow>(|_| true, |row| row.output = OutputId(99));
        }),
        ("counter quarantine", stands, |t| {
            rekey::<QuarantineRow>(t, |key| (key.0, QuarantineId(99)));
        }),
        ("counter handoff", stands, |t| {
            let (key, row) = t.rows::<HandoffRow>().remove(0);
            t.remove::<HandoffRow>(&key);
            t.put(&HandoffId(99), &row);
        }),
        ("counter commit_seq", "and a row uses 9999", |t| {
            let at = CommitSeq(9999);
            t.change::<GroupRow>(|_| true, |row| row.state = GroupState::Detached { at });
        }),
        ("groups (StageId(1), GroupId(2))", "", |t| {
            let key = t.rows::<OpenGroupRow>().remove(0).0;
            t.remove::<OpenGroupRow>(&key);
        }),
    ];
    assert_each(Severity::Damage, &cases);
}
