//! Going on with a recording: REC31 to REC36, REC38 to REC40, REC42.

use std::path::PathBuf;

use sealstone::ErrorKind;
use sealstone::engine::{Append, Store};
use sealstone::ids::{OwnerId, StreamId};
use sealstone::journal::{Expect, scan};
use sealstone::manifest::{ChunkRow, JournalRow, JournalState, Reading, StreamRow};
use sealstone::protection::{Protection, switch_off};
use sealstone::recording::{
    Decoders, Every, Field, FieldType, Recording, RecordingStatus, ResumeFrom, Schema,
    StreamOptions, TimeAxis,
};
use sealstone::vfs::sim::SimDisk;
use sealstone::vfs::{Access, Disk, write_all_at};

use crate::resuming::{
    Sim, draft, flip, iterations, observe, on, root, schema, sealed_files, shared, sim, whole,
};

fn status(store: &Store, name: &str) -> RecordingStatus {
    store.recording(name).unwrap().status().clone()
}

/// Is a second writer refused by name while the first lives, in its own process and another, and is what
/// a killed one held free at once?
#[test]
fn rec31_a_second_writer_is_refused_and_a_killed_one_s_claim_is_free() {
    let disk = sim(31);
    let one = shared(&disk);
    let recorder = draft(&one, "run").start().unwrap();
    observe(&recorder, 0, 10);
    recorder.barrier().unwrap();
    let two = shared(&disk.process(4711));
    for (store, who) in [(&two, "another process"), (&one, "the same")] {
        let refused = store.resume("run").from(ResumeFrom::Tail).start().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Conflict, "{who}");
        let text = refused.to_string();
        let process = format!("process {} ", disk.pid());
        assert!(text.contains("\"run\"") && text.contains(&process), "{text}");
    }
    // What the first one does is not disturbed.
    observe(&recorder, 10, 12);
    recorder.barrier().unwrap();
    disk.kill();
    let resumed = two.resume("run").from(ResumeFrom::Tail).start().unwrap();
    observe(&resumed.recorder, 12, 20);
    resumed.recorder.complete().unwrap();
    assert_eq!(iterations(&two, "run"), whole(20));
    drop(recorder);
}

/// Is the claim what keeps two recorders of one process apart? (mutant)
#[test]
fn rec31_without_the_claim_two_writers_write_one_recording() {
    let disk = sim(131);
    let store = on(&disk).create(root()).unwrap();
    let one = draft(&store, "run").chunk_bytes(100_000).start().unwrap();
    observe(&one, 0, 10);
    let _off = switch_off(Protection::RecordingClaim);
    let two = store.resume("run").from(ResumeFrom::Tail).start().unwrap().recorder;
    observe(&two, 10, 12);
    observe(&one, 10, 12);
    let stream = store.recording("run").unwrap().stream("all").unwrap();
    let at = stream.iteration().to_column().unwrap().as_i64().unwrap().to_vec();
    assert_eq!(at[10..], [10, 11, 10, 11], "each iteration is there twice");
}

/// Is a recording that ended refused unless it is reopened, and is it then *running*?
#[test]
fn rec32_resume_needs_running_unless_it_is_reopened() {
    let disk = sim(32);
    let store = on(&disk).create(root()).unwrap();
    for (name, is_failed) in [("done", false), ("broken", true)] {
        let recorder = draft(&store, name).start().unwrap();
        observe(&recorder, 0, 7);
        match is_failed {
            true => recorder.fail("the power bill").unwrap(),
            false => recorder.complete().unwrap(),
        }
        let before = status(&store, name);
        let refused = store.resume(name).from(ResumeFrom::Tail).start().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Conflict);
        let word = if is_failed { "failed (\"the power bill\")" } else { "complete" };
        assert!(refused.to_string().contains(word), "{refused}");
        assert_eq!(status(&store, name), before);
        let resumed = store.resume(name).from(ResumeFrom::Tail).reopen().start().unwrap();
        assert_eq!(status(&store, name), RecordingStatus::Running);
        observe(&resumed.recorder, 7, 15);
        resumed.recorder.complete().unwrap();
        assert_eq!(status(&store, name), RecordingStatus::Complete);
        assert_eq!(iterations(&store, name), whole(15));
    }
    let missing = store.resume("nothing").start().unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
}

/// Is it decided where the claim is taken? (mutant)
#[test]
fn rec32_without_the_check_a_recording_that_ended_goes_on() {
    let disk = sim(132);
    let store = on(&disk).create(root()).unwrap();
    draft(&store, "done").start().unwrap().complete().unwrap();
    assert!(store.resume("done").from(ResumeFrom::Tail).start().is_err());
    let _off = switch_off(Protection::StatusInClaim);
    assert!(store.resume("done").from(ResumeFrom::Tail).start().is_ok());
}

/// Does each setting that changes meaning refuse the resume, named, with nothing modified, and may the
/// rest change?
#[test]
fn rec33_settings_that_change_meaning_must_match_and_tunables_may_change() {
    let disk = sim(33);
    let store = on(&disk).create(root()).unwrap();
    let recorder = draft(&store, "run").start().unwrap();
    observe(&recorder, 0, 10);
    drop(recorder);
    let rows = |store: &Store| {
        let snapshot = store.snapshot().unwrap();
        (
            snapshot.list::<StreamRow>(.., 99).unwrap(),
            store.recording("run").unwrap().metadata().to_vec(),
        )
    };
    let before = rows(&store);
    let fields = |ty, name: &str| {
        let field = Field::new("x", ty);
        let fields =
            vec![field, Field::new("n", FieldType::I64), Field::new(name, FieldType::String)];
        Schema::new(fields).unwrap()
    };
    let few = |every| draft_of(&store, &schema(), every, "few");
    let cases = [
        (few(Every::iterations(4)), "stream \"few\": it records every 3 iterations, not every 4"),
        (few(Every::observation()), "not every observation"),
        (
            draft_of(&store, &schema(), Every::iterations(3), "other"),
            "stream \"few\" is not asked for",
        ),
        (draft(&store, "run").stream("more", ["x"]), "it has no stream \"more\""),
        (draft(&store, "run").time_axis(TimeAxis::named("step", "")), "the name of iterations"),
        (
            draft_of(&store, &fields(FieldType::F32, "name"), Every::iterations(3), "few"),
            "field \"x\" is f64, not f32",
        ),
    ];
    for (draft, expected) in cases {
        for is_plan in [true, false] {
            let resume = store.resume("run").from(ResumeFrom::Tail).expect(&draft);
            let refused = match is_plan {
                true => resume.plan().unwrap_err(),
                false => resume.start().unwrap_err(),
            };
            assert_eq!(refused.kind(), ErrorKind::Conflict);
            assert!(refused.to_string().contains(expected), "{refused}");
            assert_eq!(rows(&store), before);
        }
    }
    let tuned = draft(&store, "run").chunk_bytes(5000).metadata("note", "another machine");
    let resumed = store.resume("run").from(ResumeFrom::Tail).expect(&tuned).start().unwrap();
    observe(&resumed.recorder, 10, 60);
    resumed.recorder.complete().unwrap();
    assert_eq!(iterations(&store, "run"), whole(60));
    let chunks = |recording: &Recording| recording.stream("all").unwrap().chunk_count();
    assert!(chunks(&store.recording("run").unwrap()) < 6, "the new chunk target counts");
}

fn draft_of(
    store: &Store,
    schema: &Schema,
    every: Every,
    few: &str,
) -> sealstone::recording::NewRecording {
    let draft = store.record("run", schema).stream("all", ["x", "name"]);
    draft.stream_every(few, ["n"], every).chunk_bytes(120)
}

/// A journal of a store that nobody has open: its path, its row, where the next frame goes.
fn last_journal(disk: &SimDisk, store: &Store) -> (PathBuf, JournalRow, (OwnerId, u64), u64) {
    let rows = store.snapshot().unwrap().list::<JournalRow>(.., 99).unwrap();
    let ((owner, n), row) = rows.last().unwrap().clone();
    let path = sealstone::format::layout::journal(&root(), owner, n);
    let expect = Expect { store: store.id(), owner, n, salt: Some(row.salt), end: None };
    let found = scan(disk, &path, &expect, &mut |_, _| Ok(())).unwrap();
    (path, row, (owner, n), found.end)
}

/// Does every complete frame before a tear stay, is the fragment counted, and does writing go on in a
/// new file?
#[test]
fn rec34_a_torn_tail_is_counted_and_writing_goes_on_in_a_new_file() {
    let disk = sim(34);
    let store = on(&disk).create(root()).unwrap();
    let recorder = draft(&store, "run").start().unwrap();
    observe(&recorder, 0, 10);
    recorder.barrier().unwrap();
    let (path, _, _, end) = last_journal(&disk, &store);
    disk.kill();
    drop((recorder, store));
    let disk = disk.process(2);
    // What a killed process left of its next write: 13 bytes behind the last whole frame.
    let file = disk.open(&path, Access::ReadWrite).unwrap();
    let mut fragment = [0; 64];
    fragment[..13].fill(0x5a);
    write_all_at(&*file, &fragment, end).unwrap();
    drop(file);

    let store = on(&disk).open(root()).unwrap();
    let recovery = store.recovery();
    assert_eq!(recovery.torn, [(path.clone(), 13)]);
    assert_eq!(iterations(&store, "run"), whole(10));
    let plan = store.resume("run").from(ResumeFrom::Tail).plan().unwrap();
    assert_eq!(plan.torn, recovery.torn);
    assert!(plan.to_string().contains("a fragment of 13 bytes"), "{plan}");
    let resumed = store.resume("run").from(ResumeFrom::Tail).start().unwrap();
    observe(&resumed.recorder, 10, 14);
    resumed.recorder.barrier().unwrap();
    let rows = store.snapshot().unwrap().list::<JournalRow>(.., 99).unwrap();
    let file = |(owner, n)| sealstone::format::layout::journal(&root(), owner, n);
    let files: Vec<_> = rows.iter().map(|(key, _)| file(*key)).collect();
    assert!(files.contains(&path) && files.iter().any(|file| *file != path), "{files:?}");
    resumed.recorder.complete().unwrap();
    assert_eq!(iterations(&store, "run"), whole(14));
}

/// Kind, iteration, and then nothing that a float takes.
pub fn bad_record(iteration: i64) -> Vec<u8> {
    let mut bad = vec![1];
    bad.extend(iteration.to_le_bytes());
    bad.extend([1, 2, 3]);
    bad
}

/// A recording of 20 iterations, with a record of stream `all` behind them that is none, and more.
pub fn with_a_record_that_does_not_decode(store: &Store) -> StreamId {
    let recorder = draft(store, "run").start().unwrap();
    observe(&recorder, 0, 20);
    drop(recorder);
    let streams = store.recording("run").unwrap().streams().unwrap();
    let (all, few) = (streams[0].id(), streams[1].id());
    let record = |stream, bytes: &[u8]| Append { stream, payload: bytes.to_vec() };
    let bad = bad_record(20);
    // Another stream observed something after it: iteration 21.
    let mut after = vec![1];
    after.extend(21i64.to_le_bytes());
    after.extend(Sim::at(21).n.to_le_bytes());
    store.append(vec![record(all, &bad)]).unwrap();
    store.append(vec![record(few, &after)]).unwrap();
    store.barrier().unwrap();
    all
}

/// Is the valid prefix offered, the rest kept byte for byte, and the rest of the store open?
#[test]
fn rec35_a_record_that_does_not_decode_is_set_aside_with_its_bytes() {
    let disk = sim(35);
    let store = on(&disk).create(root()).unwrap();
    let other = draft(&store, "other").start().unwrap();
    observe(&other, 0, 5);
    other.complete().unwrap();
    with_a_record_that_does_not_decode(&store);
    drop(store);

    let store = on(&disk).open(root()).unwrap();
    assert_eq!(iterations(&store, "other"), whole(5), "the rest of the store is open");
    let resume = || store.resume("run").from(ResumeFrom::Tail);
    let refused = resume().start().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Damage);
    let text = refused.to_string();
    assert!(text.contains("stream \"all\" record 20") && text.contains("set_aside"), "{text}");
    let plan = resume().plan().unwrap();
    assert_eq!((plan.streams[0].kept, plan.streams[1].kept), (20, 7), "{plan}");
    assert!(plan.to_string().contains("record 20 does not decode"), "{plan}");

    let resumed = resume().set_aside().start().unwrap();
    let kept = resumed.quarantined.unwrap();
    let records = kept.records(&store).unwrap();
    assert_eq!(records.len() as u64, kept.count);
    assert_eq!((records[0].stream.as_str(), records[0].sequence), ("all", 20));
    assert_eq!(records[0].bytes[9..], [1, 2, 3], "byte for byte");
    assert_eq!((records[1].stream.as_str(), records[1].sequence), ("few", 7));
    assert_eq!(iterations(&store, "run"), whole(20));
    observe(&resumed.recorder, 20, 30);
    resumed.recorder.complete().unwrap();
    assert_eq!(iterations(&store, "run"), whole(30));
    drop(store);
    let store = on(&disk).open(root()).unwrap();
    assert_eq!(iterations(&store, "run"), whole(30));
    assert_eq!(kept.records(&store).unwrap(), records, "still there");
}

/// Is a frame that is whole, and is none, set aside in its file with the rest of the store open?
#[test]
fn rec35_a_whole_frame_that_does_not_decode_is_set_aside_in_its_file() {
    use sealstone::format::frame;
    let disk = sim(135);
    let store = on(&disk).create(root()).unwrap();
    let recorder = draft(&store, "run").start().unwrap();
    observe(&recorder, 0, 10);
    recorder.barrier().unwrap();
    let (path, row, (owner, n), end) = last_journal(&disk, &store);
    disk.kill();
    drop((recorder, store));
    let next = disk.process(2);
    // A right checksum over a body that is no group of records.
    let body = [9, 0, 0, 0, 1, 2, 3];
    let checksum = frame::body_checksum(&body);
    let header = frame::FrameHeader::new(frame::FrameKind::Records, body.len(), checksum, end);
    let mut whole_frame = header.encode(&row.salt, end).to_vec();
    whole_frame.extend(body);
    whole_frame.resize(header.padded_len(), 0);
    let file = next.open(&path, Access::ReadWrite).unwrap();
    write_all_at(&*file, &whole_frame, end).unwrap();
    drop(file);

    let refused = on(&next).open(root()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Damage);
    assert!(refused.to_string().contains("set_aside_damage"), "{refused}");
    let store = on(&next).set_aside_damage(true).open(root()).unwrap();
    assert_eq!(store.recovery().set_aside.len(), 1);
    let row = store.snapshot().unwrap().get::<JournalRow>(&(owner, n)).unwrap().unwrap();
    assert!(matches!(row.state, JournalState::SetAside { from, .. } if from == end), "{row:?}");
    assert_eq!(iterations(&store, "run"), whole(10), "the valid prefix");
    let resumed = store.resume("run").from(ResumeFrom::Tail).start().unwrap();
    observe(&resumed.recorder, 10, 20);
    resumed.recorder.complete().unwrap();
    drop(store);
    let store = on(&next).open(root()).unwrap();
    assert_eq!(iterations(&store, "run"), whole(20));
    let now =
        sealstone::vfs::read_whole(&*next.open(&path, Access::Read).unwrap(), 1 << 24).unwrap();
    assert_eq!(now[end as usize..][..whole_frame.len()], whole_frame[..], "its bytes are kept");
}

/// Can every set of streams that can be created be resumed: many, of one field, of all, of any rule?
#[test]
fn rec36_any_set_of_streams_can_be_resumed() {
    let disk = sim(36);
    let store = on(&disk).create(root()).unwrap();
    let everys: [fn() -> Every; 6] = [
        Every::observation,
        || Every::iterations(u64::MAX),
        || Every::wall(std::time::Duration::from_secs(3600)),
        || Every::change_of("name"),
        || Every::when(|iteration, _| iteration % 2 == 1),
        || Every::iterations(1),
    ];
    let timed = schema().timed();
    for (count, schema) in [(1, schema()), (6, schema()), (300, timed)] {
        let name = format!("{count} streams");
        let draft = |store: &Store| {
            let mut axis = TimeAxis::default();
            if schema.is_timed() {
                axis = axis.time("t", "s");
            }
            let mut draft = store.record(&name, &schema).time_axis(axis);
            for at in 0..count {
                let fields: &[&str] = [&["x"][..], &["n", "name"], &["name", "x", "n"]][at % 3];
                let options = StreamOptions::new(format!("stream {at}"), fields.iter().copied());
                draft =
                    draft.stream_as(options.every(everys[at % 6]()).chunk_records(1 + at as u64));
            }
            draft
        };
        let time = |state: &Sim| schema.is_timed().then_some(state.iteration as f64);
        let observe = |recorder: &sealstone::recording::Recorder, from, to| {
            for state in (from..to).map(Sim::at) {
                use sealstone::recording::Observable;
                recorder
                    .observe_with(state.iteration, time(&state), |name, to| state.field(name, to))
                    .unwrap();
            }
        };
        let recorder = draft(&store).start().unwrap();
        observe(&recorder, 0, 5);
        drop(recorder);
        if count == 6 {
            let refused = store.resume(&name).from(ResumeFrom::Tail).start().unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Invalid);
            assert!(refused.to_string().contains("predicate"), "{refused}");
        }
        let resume = store.resume(&name).from(ResumeFrom::Tail).expect(&draft(&store));
        let recorder = resume.start().unwrap().recorder;
        observe(&recorder, 5, 9);
        recorder.complete().unwrap();
        for (at, stream) in store.recording(&name).unwrap().streams().unwrap().iter().enumerate() {
            let at_iterations = stream.iteration().to_column().unwrap().as_i64().unwrap().to_vec();
            match at % 6 {
                0 | 5 => assert_eq!(at_iterations, (0..9).collect::<Vec<_>>()),
                1 => assert_eq!(at_iterations, [0]),
                4 => assert_eq!(at_iterations, [1, 3, 5, 7]),
                // Of a rule that goes by a clock, or by a field that it may not have itself.
                _ => assert!(at_iterations.windows(2).all(|two| two[0] < two[1])),
            }
        }
    }
}

/// Is a checkpoint without a decoder for each field refused before anything starts, and is there an error
/// of its own for no checkpoint?
#[test]
fn rec38_a_state_is_decoded_whole_or_nothing_starts() {
    let disk = sim(38);
    let store = on(&disk).create(root()).unwrap();
    let recorder = draft(&store, "run").start().unwrap();
    observe(&recorder, 0, 8);
    drop(recorder);
    let none = store.resume("run").start().unwrap_err();
    assert_eq!(none.kind(), ErrorKind::NoCheckpoint);
    let said = "resume \"run\": there is no checkpoint of it that stands";
    assert_eq!(none.chain(), said);
    assert_eq!(store.resume("run").plan().unwrap_err().kind(), ErrorKind::NoCheckpoint);

    let recorder = store.resume("run").from(ResumeFrom::Tail).start().unwrap().recorder;
    recorder.checkpoint(&Sim::at(7)).unwrap();
    observe(&recorder, 8, 12);
    drop(recorder);
    let partial = Decoders::new()
        .field("x", |state: &mut Sim, x: f64| state.x = x)
        .unwrap()
        .field("n", |state: &mut Sim, n: i64| state.n = n)
        .unwrap();
    let mut state = Sim::default();
    let refused = store.resume("run").start_into(&partial, &mut state).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(refused.to_string().contains("\"name\""), "{refused}");
    assert_eq!(state, Sim::default());
    let wrong = Decoders::new()
        .field("x", |state: &mut Sim, x: f64| state.x = x)
        .unwrap()
        .field("n", |state: &mut Sim, n: String| state.name = n)
        .unwrap()
        .field("name", |state: &mut Sim, name: String| state.name = name)
        .unwrap();
    let refused = store.resume("run").start_into(&wrong, &mut state).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::TypeMismatch);
    assert_eq!(state, Sim::default(), "nothing was put");
    assert_eq!(iterations(&store, "run"), whole(12), "no writer started, nothing was cut");
    assert!(store.claims(9).unwrap().is_empty());

    let whole_state =
        partial.field("name", |state: &mut Sim, name: String| state.name = name).unwrap();
    let tail = store.resume("run").from(ResumeFrom::Tail);
    let refused = tail.start_into(&whole_state, &mut state).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(refused.to_string().contains("there is no state"), "{refused}");
    assert_eq!(iterations(&store, "run"), whole(12));
    assert!(store.claims(9).unwrap().is_empty());
    let resumed = store.resume("run").start_into(&whole_state, &mut state).unwrap();
    state.iteration = resumed.state.as_ref().unwrap().iteration();
    assert_eq!(state, Sim::at(7));
    observe(&resumed.recorder, 8, 20);
    resumed.recorder.complete().unwrap();
    assert_eq!(iterations(&store, "run"), whole(20));
}

/// Is a state left as it was by a resume that is refused after the checkpoint was read, but for what
/// decoders of the caller's own put there?
#[test]
fn rec38_a_resume_that_is_refused_leaves_the_state_alone() {
    let disk = sim(238);
    let store = on(&disk).create(root()).unwrap();
    let recorder = draft(&store, "run").start().unwrap();
    recorder.checkpoint(&Sim::at(0)).unwrap();
    drop(recorder);
    let all = store.recording("run").unwrap().streams().unwrap()[0].id();
    store.append(vec![Append { stream: all, payload: bad_record(3) }]).unwrap();
    let decoders = Decoders::new()
        .field("x", |state: &mut Sim, x: f64| state.x = x)
        .unwrap()
        .field_with("n", |state: &mut Sim, _| {
            state.n = 7;
            Ok::<(), std::fmt::Error>(())
        })
        .unwrap()
        .field("name", |state: &mut Sim, name: String| state.name = name)
        .unwrap();
    let mut state = Sim::default();
    let refused = store.resume("run").start_into(&decoders, &mut state).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Damage);
    assert_eq!(state, Sim { n: 7, ..Sim::default() });
    store.resume("run").set_aside().start_into(&decoders, &mut state).unwrap();
    assert_eq!(state, Sim { n: 7, ..Sim::at(0) });
}

/// Does a resume from a checkpoint move every stream back in one commit, without rewriting a byte, and
/// accept the next iteration?
#[test]
fn rec39_every_stream_moves_back_in_one_commit() {
    let disk = sim(39);
    let store = on(&disk).create(root()).unwrap();
    let recorder = draft(&store, "run").start().unwrap();
    observe(&recorder, 0, 10);
    recorder.checkpoint(&Sim::at(9)).unwrap();
    observe(&recorder, 10, 40);
    recorder.barrier().unwrap();
    drop(recorder);
    let files = sealed_files(&store).len();
    let before = store.snapshot().unwrap().counters().unwrap().commit_seq.0;
    let writes = disk.counts().writes;
    let resumed = store.resume("run").start().unwrap();
    let after = store.snapshot().unwrap().counters().unwrap().commit_seq.0;
    assert_eq!(after - before, 2, "the claim, and all streams at once");
    assert!(disk.counts().writes > writes);
    assert_eq!(sealed_files(&store).len(), files, "no sealed byte is written");
    assert_eq!(resumed.plan.cut(), 30 + 10);
    assert_eq!(iterations(&store, "run"), whole(10));
    let refused = resumed.recorder.observe(&Sim::at(8)).unwrap_err();
    assert!(refused.to_string().contains("iteration 8 lies before 9"), "{refused}");
    resumed.recorder.observe(&Sim::at(9)).unwrap();
    assert_eq!(iterations(&store, "run"), whole(10), "it has that one");
    observe(&resumed.recorder, 10, 25);
    resumed.recorder.complete().unwrap();
    assert_eq!(iterations(&store, "run"), whole(25));
    drop(store);
    let store = on(&disk).open(root()).unwrap();
    assert_eq!(iterations(&store, "run"), whole(25));
}

/// Are frames beyond the cut dropped because of the cut? (mutant)
#[test]
fn rec39_without_the_cut_old_frames_come_back() {
    let disk = sim(139);
    let store = on(&disk).create(root()).unwrap();
    let recorder = draft(&store, "run").start().unwrap();
    observe(&recorder, 0, 2);
    recorder.checkpoint(&Sim::at(1)).unwrap();
    recorder.observe(&Sim::at(2)).unwrap();
    recorder.barrier().unwrap();
    drop(recorder);
    drop(store.resume("run").start().unwrap());
    assert_eq!(iterations(&store, "run"), whole(2));
    disk.kill();
    drop(store);
    let off = switch_off(Protection::RecordGeneration);
    let store = on(&disk.process(2)).open(root()).unwrap();
    assert_ne!(iterations(&store, "run"), whole(2), "what was cut is back");
    drop((store, off));
}

/// Does the plan say what would be cut from which stream, and write nothing?
#[test]
fn rec40_the_plan_says_what_would_be_cut_and_writes_nothing() {
    let disk = sim(40);
    let store = on(&disk).create(root()).unwrap();
    let recorder = draft(&store, "run").start().unwrap();
    observe(&recorder, 0, 10);
    recorder.checkpoint(&Sim::at(9)).unwrap();
    observe(&recorder, 10, 40);
    recorder.complete().unwrap();
    store.close().unwrap();
    let reader = on(&disk).open_read_only(root()).unwrap();
    let events = disk.events().disk_operations();
    let plan = reader.resume("run").reopen().plan().unwrap();
    let text = plan.to_string();
    println!("{text}");
    assert_eq!(disk.events().disk_operations(), events, "nothing is written");
    assert_eq!(
        (plan.streams[0].records, plan.streams[0].kept, plan.streams[0].cut()),
        (40, 10, 30)
    );
    assert_eq!((plan.streams[1].records, plan.streams[1].kept, plan.streams[1].cut()), (14, 4, 10));
    assert_eq!((plan.iteration, plan.cut()), (Some(9), 40));
    assert!(text.contains("resume of \"run\" (complete) from checkpoint"), "{text}");
    assert!(text.contains("stream \"all\": 10 of 40 records stay, 30 are cut, 30 of them sealed"));
    let nothing = reader.resume("run").from(ResumeFrom::Tail).plan().unwrap();
    assert_eq!(nothing.cut(), 0);
    let refused = reader.resume("run").reopen().start().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ReadOnly);
}

/// Does the plan say why the resume would be refused: status, writer, predicate, records that do not
/// decode; to a reader as well; and nothing where it would not?
#[test]
fn rec40_the_plan_says_why_it_would_be_refused() {
    let disk = sim(140);
    let store = on(&disk).create(root()).unwrap();
    let plan = |name: &str| store.resume(name).from(ResumeFrom::Tail).plan().unwrap();
    let is_refused = |name: &str, why: &str| {
        let plan = plan(name);
        assert!(plan.refused.len() == 1 && plan.refused[0].contains(why), "{plan}");
        assert!(plan.to_string().contains(&plan.refused[0]), "{plan}");
        assert!(store.resume(name).from(ResumeFrom::Tail).start().is_err());
    };
    let recorder = draft(&store, "run").start().unwrap();
    is_refused("run", &format!("another writer has it, held by process {} ", disk.pid()));
    drop(recorder);
    assert!(plan("run").refused.is_empty());
    draft(&store, "done").start().unwrap().complete().unwrap();
    is_refused("done", "it is complete");
    let reopened = store.resume("done").from(ResumeFrom::Tail).reopen().plan().unwrap();
    assert!(reopened.refused.is_empty());
    let when = Every::when(|iteration, _| iteration % 2 == 1);
    let odd = || store.record("odd", &schema()).stream_every("all", ["x"], when.clone());
    drop(odd().start().unwrap());
    is_refused("odd", "predicate");
    let expected = store.resume("odd").from(ResumeFrom::Tail).expect(&odd()).plan().unwrap();
    assert!(expected.refused.is_empty(), "{expected}");
    store.retire_recording("run", "its name is wanted").unwrap();
    with_a_record_that_does_not_decode(&store);
    is_refused("run", "record 20 does not decode");
    let aside = store.resume("run").from(ResumeFrom::Tail).set_aside().plan().unwrap();
    assert!(aside.refused.is_empty(), "{aside}");
    store.close().unwrap();
    // Told by who may not write: what one who may would meet.
    let reader = on(&disk).open_read_only(root()).unwrap();
    let refused = |name: &str| {
        let resume = reader.resume(name).from(ResumeFrom::Tail);
        assert!(resume.clone().start().is_err());
        resume.plan().unwrap().refused
    };
    assert!(refused("odd").len() == 1 && refused("odd")[0].contains("predicate"));
    assert!(refused("done").len() == 1 && refused("done")[0].contains("it is complete"));

    // Of another process: as long as it lives.
    let disk = sim(240);
    let one = shared(&disk);
    let recorder = draft(&one, "run").start().unwrap();
    let two = shared(&disk.process(4711));
    let plan = || two.resume("run").from(ResumeFrom::Tail).plan().unwrap();
    let reader = on(&disk.process(4712)).open_read_only(root()).unwrap();
    let read = || reader.resume("run").from(ResumeFrom::Tail).plan().unwrap();
    assert!(plan().refused[0].contains(&format!("process {} ", disk.pid())), "{}", plan());
    assert_eq!(read().refused, plan().refused);
    disk.kill();
    assert!(plan().refused.is_empty(), "{}", plan());
    assert!(read().refused.is_empty(), "{}", read());
    drop(recorder);
}

/// Is nothing sealed read on resume, and its damage told before *complete*?
#[test]
fn rec42_sealed_history_is_not_read_on_resume_and_its_damage_is_told_before_complete() {
    for what in ["missing", "short", "footer", "block"] {
        let disk = sim(42);
        let store = on(&disk).create(root()).unwrap();
        let recorder = draft(&store, "run").chunk_bytes(20_000).start().unwrap();
        observe(&recorder, 0, 6000);
        recorder.complete().unwrap();
        let files = sealed_files(&store);
        let (path, row) = files.iter().max_by_key(|(_, row)| row.live).unwrap().clone();
        let resumed = store.resume("run").from(ResumeFrom::Tail).reopen().start().unwrap();
        observe(&resumed.recorder, 6000, 6010);
        resumed.recorder.complete().unwrap();
        store.close().unwrap();

        let store = on(&disk).open(root()).unwrap();
        match what {
            // All of it is gone, and resuming does not notice.
            "missing" => files.iter().for_each(|(path, _)| disk.unlink(path).unwrap()),
            "short" => disk.open(&path, Access::ReadWrite).unwrap().set_len(row.len - 1).unwrap(),
            "footer" => flip_footer(&disk, &store),
            _ => flip(&disk, &path, 200),
        }
        let reopened = store.resume("run").from(ResumeFrom::Tail).reopen();
        let reopened = if what == "block" { reopened.read_history() } else { reopened };
        let (bytes, sealed) = (disk.counts().bytes_read, files.iter().map(|(_, row)| row.len));
        let resumed = reopened.start().unwrap();
        let (read, sealed) = (disk.counts().bytes_read - bytes, sealed.sum::<u64>());
        assert!(read < sealed / 4, "{read} bytes read, {sealed} sealed");
        observe(&resumed.recorder, 6010, 6015);
        let refused = resumed.recorder.complete().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Damage, "{what}: {refused}");
        assert!(refused.to_string().contains("sealed before"), "{what}: {refused}");
        assert_eq!(status(&store, "run"), RecordingStatus::Running, "{what}");
        // It can be ended otherwise.
        let failed = store.resume("run").from(ResumeFrom::Tail).start().unwrap();
        failed.recorder.fail("its history is damaged").unwrap();
    }
}

/// Would it be noticed if it were not looked at? (mutant)
#[test]
fn rec42_without_the_look_a_damaged_history_is_complete() {
    let disk = sim(142);
    let store = on(&disk).create(root()).unwrap();
    let recorder = draft(&store, "run").start().unwrap();
    observe(&recorder, 0, 200);
    recorder.complete().unwrap();
    sealed_files(&store).iter().for_each(|(path, _)| disk.unlink(path).unwrap());
    let complete = || {
        let resume = store.resume("run").from(ResumeFrom::Tail).reopen();
        resume.start().unwrap().recorder.complete()
    };
    assert!(complete().is_err());
    let _off = switch_off(Protection::HistoryBeforeComplete);
    complete().unwrap();
}

fn flip_footer(disk: &sealstone::vfs::sim::SimDisk, store: &Store) {
    let id = store.recording("run").unwrap().stream("all").unwrap().id();
    let range = (id, sealstone::ids::Ordinal(0))..=(id, sealstone::ids::Ordinal(u64::MAX));
    let chunk = store.snapshot().unwrap().list::<ChunkRow>(range, 1).unwrap().remove(0).1;
    let snapshot = store.snapshot().unwrap();
    let object = snapshot.require::<sealstone::manifest::ObjectRow>(&chunk.object).unwrap();
    let sealstone::manifest::Place::Extent { file, offset } = object.place else {
        panic!("inline")
    };
    let row = snapshot.require::<sealstone::manifest::FileRow>(&file).unwrap();
    let path = sealstone::format::layout::sealed(&root(), &row.digest, row.unique, 2);
    flip(disk, &path, offset + object.stored_len - 1);
}
