//! REC53: what goes when a recording is retired, and what stays.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use sealstone::check::{CheckOptions, check};
use sealstone::engine::{Branch, Budget, Options};
use sealstone::manifest::{
    Cursor, Reading, RecordingNameRow, RecordingRow, RecordingStatus, Table, Write,
};
use sealstone::protection::{Protection, switch_off};
use sealstone::recording::{ResumeFrom, Value};
use sealstone::vfs::sim::{Profile, Rng, SimDisk};
use sealstone::vfs::{Disk, EntryKind};
use sealstone::{ErrorKind, Store};

use crate::followed_run::schema;

fn options(disk: &SimDisk) -> Options {
    let mut limits = sealstone::Limits::default();
    limits.sealed_folders = 2;
    limits.ballast_bytes = 8 << 10;
    limits.low_water_bytes = 16 << 10;
    limits.journal_prewrite_bytes = 4 << 10;
    limits.object_inline_bytes_max = 64;
    limits.background = false;
    limits.snapshot_publications = 0;
    Store::options().limits(limits).disk(Arc::new(disk.clone()))
}

fn sim(seed: u64) -> SimDisk {
    let disk = SimDisk::new(seed);
    disk.mkdir(std::path::Path::new("/data")).unwrap();
    disk
}

const ROOT: &str = "/data/run.stone";

/// A complete recording of `count` records, sealed in several chunks, none like another one's.
fn record(store: &Store, name: &str, count: i64, salt: f64) {
    let draft = store.record(name, &schema()).stream("s", ["x"]).chunk_bytes(4 << 10);
    let run = draft.start().unwrap();
    for n in 0..count {
        run.append(0, n, &[Value::F64((n as f64 + salt).sin())]).unwrap();
    }
    run.complete().unwrap();
}

fn values(store: &Store, name: &str) -> sealstone::Result<Vec<f64>> {
    store.recording(name)?.stream("s")?.field("x")?.to_vec()
}

/// A recording that begins as `from` was at its end, sharing its chunks.
fn fork(store: &Store, from: &str, name: &str) {
    let source = store.recording(from).unwrap();
    let stream = source.stream("s").unwrap();
    let row = store.view(stream.id()).unwrap().row;
    let (generation, end) = (row.generation, row.sealed_upto);
    let cursor = Cursor { stream: stream.id(), generation, end };
    let branch = Branch { cursor, shared_upto: end, unsealed: Vec::new(), dropped: 0 };
    let about = store.snapshot().unwrap().require::<RecordingRow>(&source.id()).unwrap().about;
    let named = |w: &mut Write, forked: &sealstone::engine::Forked| {
        let row = RecordingRow {
            name: name.to_owned(),
            status: RecordingStatus::Complete,
            streams: forked.streams.clone(),
            metadata: Vec::new(),
            created: None,
            schema: schema().to_bytes()?,
            about: about.clone(),
        };
        w.put(&forked.recording, &row)?;
        w.put(&name.to_owned(), &RecordingNameRow { recording: forked.recording })
    };
    store.seal_fork(vec![branch]).unwrap().publish(named).unwrap();
}

/// Bytes of all files under `sealed`.
fn sealed_bytes(disk: &SimDisk) -> u64 {
    let sealed = std::path::Path::new(ROOT).join("sealed");
    let mut bytes = 0;
    for folder in disk.list(&sealed).unwrap() {
        let folder = sealed.join(folder.name);
        for file in disk.list(&folder).unwrap() {
            if file.kind == EntryKind::File {
                bytes += disk.meta(&folder.join(file.name)).unwrap().unwrap().len;
            }
        }
    }
    bytes
}

/// Is a recording gone at once and whole, do forks keep what they share, and is the space given back?
#[test]
fn rec53_a_retired_recording_goes_and_its_fork_keeps_what_it_shares() {
    let disk = sim(1);
    let store = options(&disk).create(ROOT).unwrap();
    record(&store, "kept", 2000, 0.25);
    record(&store, "one", 2000, 0.5);
    let before = values(&store, "one").unwrap();
    let stored = store.recording("one").unwrap().stream("s").unwrap().stored_bytes().unwrap();
    fork(&store, "one", "branch");
    let both = sealed_bytes(&disk);
    let retired = store.retire_recording("one", "a test").unwrap();
    assert_eq!((retired.objects, retired.bytes), (0, 0), "all of it is shared");
    assert_eq!(store.recording("one").unwrap_err().kind(), ErrorKind::NotFound);
    store.reclaim(Budget::default()).unwrap();
    assert_eq!(sealed_bytes(&disk), both);
    assert_eq!(values(&store, "branch").unwrap(), before);
    let retired = store.retire_recording("branch", "a test").unwrap();
    assert_eq!(retired.bytes, stored);
    assert_eq!(sealed_bytes(&disk), both, "given back by reclaim alone");
    let reclaimed = store.reclaim(Budget::default()).unwrap();
    let left = sealed_bytes(&disk);
    assert_eq!(left, both - reclaimed.bytes);
    assert!(left <= both - stored, "{left} of {both} are left, {stored} were its chunks");
    assert_eq!(values(&store, "kept").unwrap().len(), 2000);
    let again = store.retire_recording("one", "a test").unwrap_err();
    assert_eq!(again.kind(), ErrorKind::NotFound);
    store.close().unwrap();
    let checked = CheckOptions { disk: Some(Arc::new(disk.clone())), ..Default::default() };
    let report = check(ROOT, &checked, &mut |_| ControlFlow::Continue(())).unwrap();
    assert!(report.is_good() && report.findings.is_empty(), "{report:?}");
}

/// (mutant) Without a look at who else refers to a chunk, would a fork lose what it shares?
#[test]
fn rec53_without_edges_a_fork_loses_its_chunks() {
    let disk = sim(2);
    let store = options(&disk).create(ROOT).unwrap();
    record(&store, "one", 2000, 0.5);
    fork(&store, "one", "branch");
    let off = switch_off(Protection::RetireEdges);
    let retired = store.retire_recording("one", "a test");
    drop(off);
    let lost = retired.is_err() || values(&store, "branch").is_err() || {
        store.reclaim(Budget::default()).is_err() || values(&store, "branch").is_err()
    };
    assert!(lost, "the fork still reads");
}

fn names<'a>(of: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    of.collect()
}

/// Is a recording that somebody writes left alone, and free once nobody does?
#[test]
fn rec53_a_recording_that_is_being_written_is_refused() {
    let disk = sim(3);
    let shared = |disk: &SimDisk| {
        options(disk).access(sealstone::WriteAccess::Shared).open_or_create(ROOT).unwrap()
    };
    let one = shared(&disk);
    let run = one.record("run", &schema()).stream("s", ["x"]).start().unwrap();
    run.append(0, 1, &[Value::F64(1.0)]).unwrap();
    run.barrier().unwrap();
    let two = shared(&disk.process(2));
    for store in [&one, &two] {
        let refused = store.retire_recording("run", "a test").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
        assert!(refused.to_string().contains("process"), "{refused}");
    }
    run.append(0, 2, &[Value::F64(2.0)]).unwrap();
    run.barrier().unwrap();
    assert_eq!(values(&two, "run").unwrap(), [1.0, 2.0], "nothing of it was touched");
    disk.kill();
    two.retire_recording("run", "its writer was killed").unwrap();
    assert_eq!(two.recording("run").unwrap_err().kind(), ErrorKind::NotFound);
    drop(run);
}

/// (mutant) Without the claim of its writer, does a recording go under the hands of who writes it?
#[test]
fn rec53_without_the_claim_a_recording_goes_while_it_is_written() {
    let disk = sim(5);
    let store = options(&disk).create(ROOT).unwrap();
    let run = store.record("run", &schema()).stream("s", ["x"]).start().unwrap();
    run.append(0, 1, &[Value::F64(1.0)]).unwrap();
    run.barrier().unwrap();
    let retire = || store.retire_recording("run", "a test").map(drop);
    assert_eq!(retire().unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(values(&store, "run").unwrap(), [1.0]);
    let off = switch_off(Protection::RecordingClaim);
    let went = retire();
    drop(off);
    let is_gone = store.recording("run").is_err();
    assert!(went.is_ok() && is_gone, "what is durable and being written is still there");
    drop(run);
}

/// Is a recording left alone that was gone on with after the plan was made, also where it has ended again
/// and its row says what it said; and does the next plan see what it is now?
#[test]
fn rec53_a_plan_leaves_alone_what_was_gone_on_with() {
    let disk = sim(6);
    let store = options(&disk).create(ROOT).unwrap();
    record(&store, "a", 500, 0.1);
    record(&store, "b", 500, 0.2);
    let plan = |keep| store.retention().keep_newest(keep).plan().unwrap();
    let bytes_of = |plan: &sealstone::recording::RetentionPlan| plan.retire().next().unwrap().bytes;
    let (while_running, at_the_end) = (plan(0), plan(0));
    let before = bytes_of(&at_the_end);
    let again = || store.resume("a").from(ResumeFrom::Tail);
    let run = again().reopen().start().unwrap().recorder;
    let told = plan(0).stay()[0].clone();
    assert_eq!((told.name.as_str(), told.why.contains("being written")), ("a", true), "{told:?}");
    let applied = while_running.apply().unwrap();
    assert_eq!((applied.retired, applied.changed[0].name.as_str()), (vec!["b".to_owned()], "a"));
    for n in 500..900 {
        run.append(0, n, &[Value::F64((n as f64).cos())]).unwrap();
    }
    drop(run);
    let told = plan(0).stay()[0].clone();
    assert!(told.why.contains("running and may be resumed"), "{told:?}");
    again().start().unwrap().recorder.complete().unwrap();
    // By its own row it is what the plan saw.
    let applied = at_the_end.apply().unwrap();
    assert_eq!(names(applied.changed.iter().map(|one| one.name.as_str())), ["a", "b"]);
    assert!(applied.retired.is_empty(), "{applied:?}");
    assert_eq!(values(&store, "a").unwrap().len(), 900);
    let now = plan(0);
    assert!(bytes_of(&now) > before, "what came is counted");
    assert_eq!(now.apply().unwrap().retired, ["a"]);
    assert!(store.recordings(9).unwrap().is_empty());
}

/// Wherever the power goes while a recording is retired: is it there whole, or is nothing of it left?
#[test]
fn rec53_a_recording_goes_in_one_transaction() {
    let disk = sim(7);
    disk.sync_dir(std::path::Path::new("/")).unwrap();
    let store = options(&disk).create(ROOT).unwrap();
    record(&store, "kept", 300, 0.75);
    let draft = store.record("run", &schema()).parameter("seed", 7i64).stream("s", ["x"]);
    let run = draft.chunk_bytes(1 << 10).start().unwrap();
    for n in 0..300 {
        run.append(0, n, &[Value::F64((n as f64).sin())]).unwrap();
    }
    run.event("note", "half way").unwrap();
    run.complete().unwrap();
    let whole = values(&store, "run").unwrap();
    disk.restart_log();
    store.retire_recording("run", "a test").unwrap();
    store.reclaim(Budget::default()).unwrap();
    let (log, mut rng) = (disk.events(), Rng::new(7));
    let (mut there, mut gone) = (0, 0);
    for profile in Profile::ALL {
        let mut cursor = log.cursor(profile);
        loop {
            for image in cursor.images(&mut rng, 1) {
                let disk = image.disk();
                let store = options(&disk).open(ROOT).unwrap();
                match values(&store, "run") {
                    Ok(values) => {
                        there += 1;
                        assert_eq!(values, whole, "{}", image.outcomes());
                    }
                    Err(e) => {
                        gone += 1;
                        assert_eq!(e.kind(), ErrorKind::NotFound, "{}: {e}", image.outcomes());
                        assert_eq!(store.recordings(9).unwrap().len(), 1);
                        let snapshot = store.snapshot().unwrap();
                        assert_eq!(snapshot.count(Table::Streams).unwrap(), 1);
                        assert_eq!(snapshot.count(Table::Parameters).unwrap(), 0);
                        assert_eq!(snapshot.count(Table::Events).unwrap(), 0);
                    }
                }
                assert_eq!(values(&store, "kept").unwrap().len(), 300);
                assert!(store.accounts().unwrap().are_closed(), "{}", image.outcomes());
                disk.kill();
            }
            if cursor.advance().is_none() {
                break;
            }
        }
    }
    println!("{there} images with it, {gone} without");
    assert!(there > 5 && gone > 5);
}

/// Does a plan say what would go and why, write nothing, and do what it said?
#[test]
fn rec53_retention_is_a_plan_shown_before_it_is_done() {
    let disk = sim(4);
    let store = options(&disk).create(ROOT).unwrap();
    disk.set_wall_clock(Some(1_000_000_000_000));
    for (name, salt) in [("a", 0.1), ("b", 0.2), ("c", 0.3), ("d", 0.4)] {
        record(&store, name, 500, salt);
    }
    let run = store.record("live", &schema()).stream("s", ["x"]).start().unwrap();
    run.append(0, 1, &[Value::F64(1.0)]).unwrap();
    let commits = store.snapshot().unwrap().counters().unwrap().commit_seq;

    // By count: the newest are kept, the one that is running counts and stays.
    let plan = store.retention().keep_newest(3).plan().unwrap();
    assert_eq!(names(plan.retire().map(|one| one.name.as_str())), ["a", "b"]);
    let why = Some("it is number 5 from the newest on, 3 are kept");
    assert_eq!(plan.retire().next().map(|one| one.why.as_str()), why);
    let plan = store.retention().keep_newest(0).plan().unwrap();
    assert_eq!(plan.retire().count(), 4);
    assert!(plan.retire().all(|one| one.why == "none is kept"), "{plan:?}");
    assert_eq!(names(plan.stay().iter().map(|one| one.name.as_str())), ["live"]);
    assert!(plan.stay()[0].why.contains("written"), "{plan:?}");

    // By bytes: the oldest go until what is left fits; a shared byte counts once.
    let each = plan.retire().map(|one| one.bytes).max().unwrap();
    let plan = store.retention().bytes_above(each * 2).plan().unwrap();
    assert_eq!(names(plan.retire().map(|one| one.name.as_str())), ["a", "b"]);
    let plan = store.retention().bytes_above(u64::MAX).plan().unwrap();
    assert_eq!(plan.retire().count(), 0);

    // By age: counted up to the time that the plan shows.
    let day = Duration::from_secs(86_400);
    let plan = store.retention().older_than(day).plan().unwrap();
    assert_eq!(plan.retire().count(), 0);
    disk.set_wall_clock(Some(1_000_000_000_000 + 2 * 86_400_000_000_000));
    let plan = store.retention().older_than(day).plan().unwrap();
    assert!(plan.now().unwrap() >= 1_000_000_000_000 + 2 * 86_400_000_000_000);
    assert_eq!(plan.retire().count(), 4);
    assert!(plan.retire().all(|one| one.why.contains("s old")), "{plan:?}");
    disk.set_wall_clock(None);
    // OBJ33: without a clock neither nothing nor everything is old.
    let blind = store.retention().older_than(day).plan().unwrap_err();
    assert_eq!(blind.kind(), ErrorKind::Unsupported, "{blind}");
    assert_eq!(store.retention().keep_newest(3).plan().unwrap().retire().count(), 2);
    disk.set_wall_clock(Some(2_000_000_000_000));
    assert_eq!(store.snapshot().unwrap().counters().unwrap().commit_seq, commits, "written");

    // Done, but for what changed meanwhile.
    store.retire_recording("b", "by hand").unwrap();
    record(&store, "b", 10, 0.9);
    store.retire_recording("c", "by hand").unwrap();
    let applied = plan.apply().unwrap();
    assert_eq!(applied.retired, ["a", "d"]);
    assert!(applied.bytes >= 2 * (each / 2), "{applied:?}");
    assert_eq!(names(applied.changed.iter().map(|one| one.name.as_str())), ["b", "c"]);
    let left: Vec<String> =
        store.recordings(9).unwrap().iter().map(|one| one.name().to_owned()).collect();
    assert_eq!(left, ["b", "live"]);
}

/// Is a recording that was started without a clock listed, and neither taken for old nor passed over in
/// silence? (OBJ33)
#[test]
fn obj33_a_recording_of_unknown_age_is_told() {
    let disk = sim(6);
    let store = options(&disk).create(ROOT).unwrap();
    disk.set_wall_clock(None);
    record(&store, "when", 10, 0.1);
    disk.set_wall_clock(Some(1_000_000_000));
    record(&store, "old", 10, 0.2);
    disk.set_wall_clock(Some(i64::MAX / 2));
    let plan = store.retention().older_than(Duration::from_secs(60)).plan().unwrap();
    assert_eq!(names(plan.retire().map(|one| one.name.as_str())), ["old"]);
    assert_eq!(names(plan.stay().iter().map(|one| one.name.as_str())), ["when"]);
    assert!(plan.stay()[0].why.contains("cannot be told"), "{plan:?}");
    disk.set_wall_clock(Some(i64::MIN / 2));
    let plan = store.retention().older_than(Duration::ZERO).plan().unwrap();
    assert_eq!(plan.retire().count(), 0, "what was started after now is not old");
}
