//! Converting: who may work on a group, what is published, and what stays when it fails.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use sealstone::ErrorKind;
use sealstone::engine::{Budget, Layout};
use sealstone::ids::GroupId;
use sealstone::manifest::{Reading, StageRow};
use sealstone::protection::{Protection, switch_off};
use sealstone::staging::{
    ConvertOptions, Converter, GroupView, Input, OutputReader, OutputWriter, PlanOptions, Ready,
    Stage,
};
use sealstone::vfs::sim::{Fault, FaultKind, Profile, Rng};
use sealstone::vfs::{Disk, Operation};

use crate::support::{NAME, each, key, on, put, reopen, root, shape, shared, sim};
use crate::words::{
    At, Do, Words, all, claims, convert, convert_well, held_loosely, is_tidy, published, refusal,
    words,
};

fn one() -> PlanOptions<'static> {
    PlanOptions { groups_max: 1, ..PlanOptions::default() }
}

fn everything() -> PlanOptions<'static> {
    PlanOptions::default()
}

fn ids<'a>(groups: impl Iterator<Item = &'a GroupView>) -> Vec<GroupId> {
    groups.map(|group| group.id.unwrap()).collect()
}

/// Three groups of two keys, of two parts each, detached; and something that is not.
fn staged(stage: &Stage) -> Vec<String> {
    for (schema, minute) in [("a", 1), ("b", 1), ("a", 2)] {
        for round in 0..2 {
            put(stage, schema, minute, &format!("{schema} {minute} {round}"));
            put(stage, schema, minute, &format!("more {schema} {minute} {round}"));
            stage.seal().unwrap();
        }
    }
    stage.flush(&Ready::All).unwrap();
    put(stage, "a", 1, "late");
    all(stage)
}

/// Is a plan that is merely pending left alone by whoever plans meanwhile, in this process and another,
/// and does a plan that is dropped free exactly what it had?
#[test]
fn stg17_stg19_a_pending_plan_keeps_its_groups_and_frees_no_others() {
    each(31, |_, _, store, stage| {
        let texts = staged(&stage);
        let first = stage.plan(&one()).unwrap();
        let second = stage.plan(&one()).unwrap();
        let third = stage.plan(&everything()).unwrap();
        assert_eq!((first.len(), second.len(), third.len()), (1, 1, 1));
        let (taken, kept) = (ids(first.groups()), ids(third.groups()));
        assert!(taken != ids(second.groups()) && taken != kept);
        assert!(stage.plan(&everything()).unwrap().is_empty(), "a pass took what is pending");
        assert_eq!(claims(&store).len(), 3);
        drop(first);
        assert_eq!(claims(&store).len(), 2);
        assert_eq!(ids(stage.plan(&everything()).unwrap().groups()), taken);
        third.convert(&Words::plain(), &ConvertOptions::default()).unwrap();
        drop(second);
        assert_eq!(claims(&store), Vec::<String>::new());
        assert_eq!(stage.plan(&everything()).unwrap().len(), 2);
        assert_eq!(all(&stage), texts);
    });
}

/// And where several processes write: does another one pass over what is claimed, and get it when its
/// holder died?
#[test]
fn stg12_stg17_another_process_takes_what_is_free_and_what_the_dead_had() {
    let disk = sim(32);
    let store = shared(&disk);
    let stage = store.create_stage(NAME, &shape()).unwrap();
    let texts = staged(&stage);
    stage.seal().unwrap();
    let plan = stage.plan(&PlanOptions { groups_max: 2, ..PlanOptions::default() }).unwrap();
    let other_disk = disk.process(2);
    let other = shared(&other_disk);
    let other_stage = other.stage(NAME).unwrap();
    let theirs = other_stage.plan(&everything()).unwrap();
    assert_eq!(theirs.len(), 1);
    assert!(stage.plan(&everything()).unwrap().is_empty());
    disk.kill();
    let freed = other_stage.plan(&everything()).unwrap();
    assert_eq!(freed.len(), 2);
    for plan in [theirs, freed] {
        for done in plan.convert(&Words::plain(), &ConvertOptions::default()).unwrap() {
            done.made.unwrap();
        }
    }
    assert_eq!(all(&other_stage), texts);
    assert_eq!(claims(&other), Vec::<String>::new());
    drop((plan, stage, store));
}

/// What another plan gets at every call of a converter.
fn taken_meanwhile(stage: &Stage) -> usize {
    let taken = AtomicUsize::new(0);
    let peek = words(|at| {
        taken.fetch_add(stage.plan(&everything()).unwrap().len(), Ordering::SeqCst);
        Ok(if at == At::Schema { Do::Nothing } else { Do::GoOn })
    });
    for done in convert(stage, &peek) {
        done.made.unwrap();
    }
    taken.load(Ordering::SeqCst)
}

/// Is a group claimed through conversion, validation and publication, up to the commit that retires its
/// parts, and free of any claim after it?
#[test]
fn stg18_a_claim_ends_with_the_publication() {
    each(33, |_, _, store, stage| {
        let texts = staged(&stage);
        assert_eq!(taken_meanwhile(&stage), 0);
        assert_eq!(published(&stage).len(), texts.len() - 1);
        assert_eq!(all(&stage), texts);
        is_tidy(&store, &stage);
    });
}

/// Would it be seen if a claim ended before its publication?
#[test]
fn stg18_mutant_stage_release_in_commit_is_caught() {
    let disk = sim(34);
    let store = on(&disk, Layout::Directory).create(root()).unwrap();
    let stage = store.create_stage(NAME, &shape()).unwrap();
    put(&stage, "a", 1, "x");
    put(&stage, "a", 2, "y");
    stage.flush(&Ready::All).unwrap();
    let _off = switch_off(Protection::StageReleaseInCommit);
    // The plan of the hook is dropped at once, so that the publication goes on.
    assert!(taken_meanwhile(&stage) > 0, "nothing was seen");
}

/// Whatever call of a converter fails or panics: are its claims released, its inputs there, its temporary
/// files gone, and is the group converted at the next try, without a restart?
#[test]
fn stg20_a_failed_conversion_leaves_everything_as_it_was() {
    for panics in [false, true] {
        let calls =
            [At::Begin, At::Batch(1), At::Batch(4), At::Written, At::Count, At::Schema, At::Union];
        each(35, |disk, layout, store, stage| {
            let texts = staged(&stage);
            let count = stage.plan(&everything()).unwrap().len();
            for (round, call) in calls.iter().enumerate() {
                let failing = words(|at| match at == *call {
                    true if panics => panic!("the test says so"),
                    true => Err(refusal()),
                    false => Ok(if at == At::Schema { Do::Nothing } else { Do::GoOn }),
                });
                let kind = if panics { ErrorKind::CallerPanicked } else { ErrorKind::Input };
                let done = convert(&stage, &failing);
                assert_eq!(done.len(), count);
                for done in done {
                    assert_eq!(done.made.unwrap_err().kind(), kind, "{call:?}");
                    assert_eq!(done.group.failures, round as u32);
                }
                assert_eq!(claims(&store), Vec::<String>::new(), "{call:?}");
                assert_eq!(all(&stage), texts, "{call:?}");
                assert!(stage.outputs().unwrap().is_empty());
                let accounts = store.accounts().unwrap();
                assert!(accounts.are_closed() && accounts.orphan == 0, "{call:?} {accounts:?}");
                if layout == Layout::Directory {
                    let left = disk.list(&root().join("tmp")).unwrap();
                    assert!(left.is_empty(), "{call:?} {left:?}");
                }
            }
            let noted = stage.groups().unwrap();
            assert!(noted.iter().any(|group| group.failure.is_some()));
            convert_well(&stage);
            assert_eq!(published(&stage).len(), texts.len() - 1);
            assert_eq!(all(&stage), texts);
            is_tidy(&store, &stage);
        });
    }
}

/// Are groups that failed taken last, so that they keep no others waiting?
#[test]
fn stg20_what_failed_waits_behind_what_did_not() {
    each(36, |_, _, _, stage| {
        staged(&stage);
        let failed = stage.plan(&one()).unwrap();
        let bad = ids(failed.groups());
        failed.convert(&words(|_| Err(refusal())), &ConvertOptions::default()).unwrap();
        let next = stage.plan(&PlanOptions { groups_max: 2, ..PlanOptions::default() }).unwrap();
        assert!(!ids(next.groups()).contains(&bad[0]));
        assert_eq!(ids(stage.plan(&one()).unwrap().groups()), bad);
    });
}

/// Are groups that gave no rows taken after the others, round by round, with that noted; and does one give its
/// rows to a converter that takes them?
#[test]
fn stg23_what_gave_no_rows_waits_behind_what_did_not() {
    each(39, |_, _, store, stage| {
        let texts = staged(&stage);
        let nothing = words(|_| Ok(Do::Nothing));
        let mut seen = Vec::new();
        for _ in 0..3 {
            let plan = stage.plan(&one()).unwrap();
            seen.extend(ids(plan.groups()));
            let made = plan.convert(&nothing, &ConvertOptions::default()).unwrap().remove(0).made;
            assert!(made.unwrap().rows_left > 0);
        }
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 3, "a group that gives nothing keeps others waiting");
        let noted = stage.groups().unwrap();
        let noted = noted.iter().filter(|group| group.failure.is_some());
        assert_eq!(noted.map(|group| group.failures).collect::<Vec<_>>(), [1, 1, 1]);
        assert_eq!((all(&stage), claims(&store)), (texts.clone(), Vec::new()));
        convert_well(&stage);
        assert_eq!(published(&stage).len(), texts.len() - 1);
        is_tidy(&store, &stage);
    });
}

/// Does a claim in one stage delay another?
#[test]
fn stg21_claims_are_of_one_stage() {
    each(37, |_, _, store, stage| {
        let other = store.create_stage("other", &shape()).unwrap();
        put(&stage, "a", 1, "x");
        put(&other, "a", 1, "y");
        stage.flush(&Ready::All).unwrap();
        other.flush(&Ready::All).unwrap();
        let pending = stage.plan(&everything()).unwrap();
        let free = other.plan(&everything()).unwrap();
        assert_eq!((pending.len(), free.len()), (1, 1));
        free.convert(&Words::plain(), &ConvertOptions::default()).unwrap();
        assert_eq!((published(&other), published(&stage)), (vec!["y".to_owned()], Vec::new()));
    });
}

/// A real store, whose conversions run on threads.
fn threaded(parts: usize) -> (tempfile::TempDir, Stage) {
    let dir = tempfile::tempdir().unwrap();
    let store = sealstone::Store::create(dir.path().join("s.stone")).unwrap();
    let stage = store.create_stage(NAME, &shape()).unwrap();
    for part in 0..parts {
        for minute in 0..3 {
            put(&stage, "a", minute, &format!("first {part} {minute}"));
            put(&stage, "a", minute, &format!("second {part} {minute}"));
        }
        stage.seal().unwrap();
    }
    stage.flush(&Ready::All).unwrap();
    (dir, stage)
}

/// Are outputs of equal bytes outputs apart, of one group and of several, published before and after?
#[test]
fn stg3_outputs_of_equal_bytes_stand_apart() {
    each(51, |disk, layout, store, stage| {
        let text = crate::words::long("the same words in each of them", 30);
        for minute in [1, 1, 2, 3] {
            put(&stage, "a", minute, &text);
            stage.seal().unwrap();
        }
        stage.flush(&Ready::Before("minute", 3)).unwrap();
        let apart = ConvertOptions { parts_per_output_max: 1, ..ConvertOptions::default() };
        let plan = stage.plan(&everything()).unwrap();
        for done in plan.convert(&Words::plain(), &apart).unwrap() {
            done.made.unwrap();
        }
        let first = stage.outputs().unwrap();
        stage.flush(&Ready::All).unwrap();
        convert_well(&stage);
        let outputs = stage.outputs().unwrap();
        assert_eq!((first.len(), outputs.len()), (3, 4));
        assert_eq!(published(&stage), vec![text.clone(); 4]);
        is_tidy(&store, &stage);
        stage.retire_outputs(&[first[0].id, first[2].id], "test").unwrap();
        assert_eq!(published(&stage), vec![text.clone(); 2]);
        is_tidy(&store, &stage);
        drop((store, stage));
        let (store, stage) = reopen(disk, layout);
        assert_eq!(published(&stage), vec![text.clone(); 2]);
        is_tidy(&store, &stage);
    });
}

/// Do groups convert at once, within the bound, and does a group above the bound of parts become several
/// outputs whose union is exact?
#[test]
fn stg22_bounds_hold_and_the_union_of_outputs_is_exact() {
    for threads_max in [1, 2, 4] {
        let (_dir, stage) = threaded(7);
        let texts = all(&stage);
        let (busy, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let watch = words(|at| {
            match at {
                At::Begin => {
                    most.fetch_max(busy.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::sleep(Duration::from_millis(5));
                }
                At::Written => drop(busy.fetch_sub(1, Ordering::SeqCst)),
                _ => {}
            }
            Ok(Do::GoOn)
        });
        let options =
            ConvertOptions { threads_max, parts_per_output_max: 3, ..ConvertOptions::default() };
        let done = stage.plan(&everything()).unwrap().convert(&watch, &options).unwrap();
        assert_eq!(done.len(), 3);
        for done in done {
            let made = done.made.unwrap();
            assert_eq!((made.outputs.len(), made.rows, made.rows_left), (3, done.group.rows, 0));
        }
        assert_eq!(published(&stage), texts);
        assert_eq!(all(&stage), texts);
        let most = most.load(Ordering::SeqCst);
        assert!(most <= threads_max && (threads_max == 1 || most > 1), "{most} of {threads_max}");
    }
    let ConvertOptions { threads_max, parts_per_output_max, .. } = ConvertOptions::default();
    assert_eq!((threads_max, parts_per_output_max), (2, 512));
}

/// Does a group of which nothing is written publish nothing, and keep what it has?
#[test]
fn stg23_no_rows_publish_nothing() {
    each(38, |_, _, store, stage| {
        let texts = staged(&stage);
        for (tries, call) in (0..).zip([At::Begin, At::Batch(2), At::Written]) {
            let nothing = words(|at| Ok(if at == call { Do::Nothing } else { Do::GoOn }));
            for done in convert(&stage, &nothing) {
                let made = done.made.unwrap();
                assert!(made.outputs.is_empty() && made.rows_left == done.group.rows);
                // Counted, so that the next plan takes others first.
                assert_eq!(done.group.failures, tries);
            }
            assert!(stage.outputs().unwrap().is_empty());
            assert_eq!(all(&stage), texts);
        }
        convert_well(&stage);
        assert_eq!(all(&stage), texts);
        is_tidy(&store, &stage);
    });
}

/// A conversion that loses, or doubles, a batch.
fn lossy(stage: &Stage, what: Do) -> Vec<Option<ErrorKind>> {
    let bad = words(move |at| Ok(if at == At::Batch(2) { what } else { Do::GoOn }));
    convert(stage, &bad).into_iter().map(|done| done.made.err().map(|e| e.kind())).collect()
}

/// Is an output that lacks rows, or has some twice, found before anything is retired for it?
#[test]
fn stg24_an_output_is_counted_before_anything_is_retired() {
    each(39, |_, _, store, stage| {
        let texts = staged(&stage);
        for what in [Do::Lose, Do::Double] {
            let ends = lossy(&stage, what);
            assert_eq!(ends, [Some(ErrorKind::Damage); 3]);
            assert!(stage.outputs().unwrap().is_empty());
            assert_eq!(all(&stage), texts);
        }
        is_tidy(&store, &stage);
    });
}

/// Would it be seen if an output were published before it is validated?
#[test]
fn stg24_mutant_stage_validate_first_is_caught() {
    let _off = switch_off(Protection::StageValidateFirst);
    each(40, |_, _, _, stage| {
        let texts = staged(&stage);
        lossy(&stage, Do::Lose);
        let view = stage.view().unwrap();
        assert_ne!(held_loosely(&view), texts, "nothing was seen");
    });
}

/// Converts the first batch of each group alone.
fn halfway(stage: &Stage) -> Vec<u64> {
    let some = words(|at| Ok(if at == At::Batch(1) { Do::Stop } else { Do::GoOn }));
    convert(stage, &some).into_iter().map(|done| done.made.unwrap().rows_left).collect()
}

/// Are only those rows retired that an output holds, down to the batch, and do the others follow?
#[test]
fn stg24_only_what_was_consumed_is_retired() {
    each(41, |disk, layout, store, stage| {
        let texts = staged(&stage);
        for round in 0..4 {
            assert_eq!(published(&stage).len(), 3 * round);
            let left = halfway(&stage);
            assert_eq!(left.len(), 3);
            assert_eq!(left.iter().all(|rows| *rows == 0), round == 3, "{left:?}");
            assert_eq!(all(&stage), texts);
            is_tidy(&store, &stage);
        }
        assert!(stage.plan(&everything()).unwrap().is_empty());
        stage.seal().unwrap();
        drop((store, stage));
        let (store, stage) = reopen(disk, layout);
        assert_eq!(all(&stage), texts);
        is_tidy(&store, &stage);
    });
}

/// Would it be seen if all parts of a group were retired instead of those that were used?
#[test]
fn stg24_mutant_stage_retire_consumed_is_caught() {
    let _off = switch_off(Protection::StageRetireConsumed);
    each(42, |_, _, _, stage| {
        let texts = staged(&stage);
        halfway(&stage);
        assert_ne!(all(&stage), texts, "nothing was seen");
    });
}

/// Two plans of the same group: the second is converted while the first has read its parts and counts.
fn twice(stage: &Stage) -> [bool; 2] {
    put(stage, "a", 1, "some words");
    put(stage, "a", 1, "more");
    stage.flush(&Ready::All).unwrap();
    let first = stage.plan(&one()).unwrap();
    let second = std::sync::Mutex::new(Some(stage.plan(&one()).unwrap()));
    assert_eq!(second.lock().unwrap().as_ref().unwrap().len(), 1);
    let well = AtomicBool::new(false);
    let between = words(|at| {
        if at == At::Count
            && let Some(second) = second.lock().unwrap().take()
        {
            let done = second.convert(&Words::plain(), &ConvertOptions::default()).unwrap();
            well.store(done[0].made.is_ok(), Ordering::SeqCst);
        }
        Ok(Do::GoOn)
    });
    let done = first.convert(&between, &ConvertOptions::default()).unwrap();
    [done[0].made.is_ok(), well.load(Ordering::SeqCst)]
}

/// Two finishers of the same group: does one of them get an error, even where claims are not exclusive,
/// and is nothing lost, overwritten or there twice?
#[test]
fn stg4_two_finishers_publish_once() {
    each(43, |_, _, store, stage| {
        let off = switch_off(Protection::ClaimExclusive);
        assert_eq!(twice(&stage), [false, true]);
        drop(off);
        assert_eq!(all(&stage), ["more", "some words"]);
        assert_eq!(published(&stage), ["more", "some words"]);
        is_tidy(&store, &stage);
    });
}

/// Would it be seen if nobody asked whether a claim is still ours?
#[test]
fn stg4_mutant_stage_claim_checked_is_caught() {
    let _claims = switch_off(Protection::ClaimExclusive);
    let _off = switch_off(Protection::StageClaimChecked);
    each(44, |_, _, _, stage| {
        assert_eq!(twice(&stage), [true, true]);
        assert_eq!(all(&stage).len(), 4, "nothing was seen");
    });
}

/// Where the disk refuses to unlink what was retired: is any row there twice, then or after a restart?
#[test]
fn stg26_a_failed_unlink_doubles_nothing() {
    let disk = sim(45);
    let store = on(&disk, Layout::Directory).create(root()).unwrap();
    let stage = store.create_stage(NAME, &shape()).unwrap();
    let texts = staged(&stage);
    stage.seal().unwrap();
    convert_well(&stage);
    let refused = Fault::new(disk.operations(), FaultKind::Eio).only(Operation::Unlink).forever();
    disk.inject(refused);
    let _ = store.reclaim(Budget::default());
    assert!(!disk.fired().is_empty(), "nothing was to be unlinked");
    assert_eq!(all(&stage), texts);
    disk.kill();
    drop((store, stage));
    let disk = disk.process(2);
    disk.clear_faults();
    let (store, stage) = reopen(&disk, Layout::Directory);
    assert_eq!(all(&stage), texts);
    convert_well(&stage);
    assert_eq!(all(&stage), texts);
    is_tidy(&store, &stage);
}

/// Does a clock that is stepped back lose or double a group?
#[test]
fn stg27_a_clock_stepped_back_loses_nothing() {
    each(46, |disk, _, store, stage| {
        let mut texts = Vec::new();
        for (round, step) in
            [0, -3_600_000_000_000, 7_200_000_000_000, i64::MIN / 4].iter().enumerate()
        {
            disk.step_wall_clock(*step);
            texts.extend(staged(&stage));
            convert_well(&stage);
            // "late" is staged with the next round.
            assert_eq!(published(&stage).len(), 12 * (round + 1) + round);
        }
        stage.flush(&Ready::All).unwrap();
        convert_well(&stage);
        assert_eq!(published(&stage), all(&stage));
        assert_eq!(published(&stage).len(), 13 * 4);
        is_tidy(&store, &stage);
    });
}

fn schema(stage: &Stage) -> String {
    String::from_utf8(stage.schema().unwrap()).unwrap()
}

/// Is the schema of the stage the union of those of its outputs; and does one that does not go with it fail
/// its own group alone and leave the stage's as it was?
#[test]
fn stg28_schemas_merge_and_a_conflict_fails_one_group() {
    each(47, |_, _, store, stage| {
        let told = || words(|at| Ok(if at == At::Schema { Do::Nothing } else { Do::GoOn }));
        for (minute, text) in [(1, "b x"), (2, "a"), (3, "x X"), (4, "c")] {
            put(&stage, "s", minute, text);
        }
        stage.flush(&Ready::Before("minute", 2)).unwrap();
        convert(&stage, &told());
        assert_eq!(schema(&stage), "b x");
        stage.flush(&Ready::All).unwrap();
        let texts = all(&stage);
        let ends: Vec<_> = convert(&stage, &told())
            .into_iter()
            .map(|done| done.made.err().map(|e| e.kind()))
            .collect();
        assert_eq!(ends, [None, Some(ErrorKind::Conflict), None]);
        assert_eq!(schema(&stage), "a b c x");
        assert_eq!(all(&stage), texts);
        assert_eq!(published(&stage).len(), 3);
        let row = store.snapshot().unwrap().get::<StageRow>(&NAME.to_owned()).unwrap().unwrap();
        assert_eq!(row.schema, stage.schema().unwrap());
        is_tidy(&store, &stage);
    });
}

/// Once one output of a group failed: do the others stop before their next batch, and is nothing of the
/// group published, with 1, 2 and 4 threads, while other groups go on?
#[test]
fn stg29_a_failed_group_stops_and_publishes_nothing() {
    for threads_max in [1, 2, 4] {
        let (_dir, stage) = threaded(8);
        let texts = all(&stage);
        let (begun, has_failed, after) =
            (AtomicUsize::new(0), AtomicBool::new(false), AtomicUsize::new(0));
        let failing = words(|at| {
            let wait = |until: &dyn Fn() -> bool| {
                (0..2000).take_while(|_| !until()).for_each(|_| {
                    std::thread::sleep(Duration::from_millis(1));
                });
            };
            match at {
                At::Begin if begun.fetch_add(1, Ordering::SeqCst) == 0 => {
                    wait(&|| begun.load(Ordering::SeqCst) >= threads_max);
                    has_failed.store(true, Ordering::SeqCst);
                    Err(refusal())
                }
                At::Batch(1) => {
                    wait(&|| has_failed.load(Ordering::SeqCst));
                    // Until the error is told.
                    std::thread::sleep(Duration::from_millis(50));
                    Ok(Do::GoOn)
                }
                At::Batch(_) => {
                    after.fetch_add(1, Ordering::SeqCst);
                    Ok(Do::GoOn)
                }
                _ => Ok(Do::GoOn),
            }
        });
        let options =
            ConvertOptions { threads_max, parts_per_output_max: 2, ..ConvertOptions::default() };
        let done = stage.plan(&one()).unwrap().convert(&failing, &options).unwrap();
        assert_eq!(done[0].made.as_ref().unwrap_err().kind(), ErrorKind::Input);
        assert_eq!(after.load(Ordering::SeqCst), 0, "a worker went on for more than one batch");
        assert!(published(&stage).is_empty());
        assert_eq!(all(&stage), texts);
        // Of several groups the others are published.
        let first = AtomicBool::new(true);
        let once = words(|at| match at {
            At::Begin if first.swap(false, Ordering::SeqCst) => Err(refusal()),
            _ => Ok(Do::GoOn),
        });
        let done = stage.plan(&everything()).unwrap().convert(&once, &options).unwrap();
        assert_eq!(done.iter().filter(|done| done.made.is_err()).count(), 1);
        assert_eq!(all(&stage), texts);
        convert_well(&stage);
        assert_eq!(published(&stage), texts);
    }
}

/// Does a caller that wants no more get that, with everything it had free again and no failure noted?
#[test]
fn a_cancelled_conversion_is_no_failure() {
    each(48, |_, _, store, stage| {
        let texts = staged(&stage);
        for after in [0, 5] {
            let told = AtomicUsize::new(0);
            let stop = |_| match told.fetch_add(1, Ordering::SeqCst) >= after {
                true => std::ops::ControlFlow::Break(()),
                false => std::ops::ControlFlow::Continue(()),
            };
            let options = ConvertOptions { progress: Some(&stop), ..ConvertOptions::default() };
            let plan = stage.plan(&everything()).unwrap();
            let done = plan.convert(&Words::plain(), &options).unwrap();
            let ends: Vec<_> =
                done.iter().map(|d| d.made.as_ref().err().map(|e| e.kind())).collect();
            assert_eq!(ends.iter().filter(|end| end.is_none()).count(), usize::from(after > 0));
            assert!(ends.iter().flatten().all(|kind| *kind == ErrorKind::Cancelled));
        }
        assert!(stage.groups().unwrap().iter().all(|group| group.failures == 0));
        assert_eq!(all(&stage), texts);
        convert_well(&stage);
        is_tidy(&store, &stage);
    });
}

/// Is an output that is longer than it may be an error of its group, and gone?
#[test]
fn an_output_above_its_bound_is_refused() {
    each(49, |_, _, store, stage| {
        let texts = staged(&stage);
        let options = ConvertOptions { output_bytes_max: 20, ..ConvertOptions::default() };
        let plan = stage.plan(&everything()).unwrap();
        for done in plan.convert(&Words::plain(), &options).unwrap() {
            assert_eq!(done.made.unwrap_err().kind(), ErrorKind::LimitExceeded);
        }
        assert_eq!(all(&stage), texts);
        is_tidy(&store, &stage);
    });
}

/// A converter to which writing failed, and that says that there was nothing to write.
struct PassesOver;

impl Converter for PassesOver {
    fn form(&self) -> &str {
        "none"
    }

    fn convert(
        &self,
        _: &GroupView,
        _: &mut Input<'_>,
        out: &mut OutputWriter<'_>,
    ) -> sealstone::Result<u64> {
        let _ = out.put(&[b'x'; 21]);
        Ok(0)
    }

    fn count_rows(&self, _: &mut OutputReader) -> sealstone::Result<u64> {
        Ok(0)
    }
}

/// Is a write that failed told, and noted, though the converter says it wrote no rows?
#[test]
fn stg11_an_error_that_a_converter_passes_over_is_told() {
    each(90, |_, _, _, stage| {
        put(&stage, "a", 1, "words");
        stage.flush(&Ready::All).unwrap();
        let options = ConvertOptions { output_bytes_max: 20, ..ConvertOptions::default() };
        let plan = stage.plan(&everything()).unwrap();
        let done = plan.convert(&PassesOver, &options).unwrap().remove(0);
        assert_eq!(done.made.unwrap_err().kind(), ErrorKind::LimitExceeded);
        assert_eq!(stage.groups().unwrap()[0].failures, 1);
    });
}

/// Cut at every operation between the first batch and the last unlink: is every row that was flushed
/// there once, and does the next pass succeed?
#[test]
fn stg16_stg25_a_cut_anywhere_leaves_each_row_once() {
    let disk = sim(50);
    let store = on(&disk, Layout::Directory).create(root()).unwrap();
    let stage = store.create_stage(NAME, &shape()).unwrap();
    put(&stage, "a", 1, "one");
    put(&stage, "a", 1, "a longer batch of words that does not lie in the manifest, all of them");
    stage.seal().unwrap();
    put(&stage, "b", 1, "two");
    put(&stage, "a", 1, "three");
    stage.flush(&Ready::All).unwrap();
    let texts = all(&stage);
    disk.restart_log();
    halfway(&stage);
    convert_well(&stage);
    store.reclaim(Budget::default()).unwrap();
    let log = disk.events();
    drop((store, stage));
    let mut rng = Rng::new(50);
    let mut images = 0;
    for profile in [Profile::PosixHarshest, Profile::ProcessKill] {
        let mut cursor = log.cursor(profile);
        for cut in 0..log.len() {
            cursor.advance_to(cut);
            for image in cursor.images(&mut rng, 2) {
                let disk = image.disk();
                let (store, stage) = reopen(&disk, Layout::Directory);
                assert_eq!(all(&stage), texts, "cut {cut}, {:?}", cursor.step());
                convert_well(&stage);
                assert_eq!(published(&stage), texts, "cut {cut}, {:?}", cursor.step());
                if images % 16 == 0 {
                    is_tidy(&store, &stage);
                }
                images += 1;
            }
        }
    }
    assert!(images > 200, "{images}");
}

/// Does a plan take what its rule says is ready, and only groups of the keys that were asked for; is a rule that
/// panics an error, and a key of another shape as well; and are these asked before anything is claimed?
#[test]
fn stg17_a_plan_takes_what_is_asked_for() {
    each(97, |_, _, store, stage| {
        for minute in 1..4 {
            put(&stage, "a", minute, "one");
            put(&stage, "b", minute, "two");
        }
        stage.flush(&Ready::All).unwrap();
        put(&stage, "a", 2, "open");
        stage.seal().unwrap();
        let planned = |options: &PlanOptions<'_>| {
            let plan = stage.plan(options).unwrap();
            plan.groups().map(|group| group.key.clone()).collect::<Vec<_>>()
        };
        let all = PlanOptions::default();
        assert_eq!(planned(&all).len(), 6);
        let before = PlanOptions { ready: Ready::Before("minute", 3), ..all };
        assert_eq!(planned(&before).len(), 4);
        let keys = [key("a", 2), key("b", 3), key("c", 9)];
        let of_keys = PlanOptions { keys: Some(&keys), ..all };
        assert_eq!(planned(&of_keys), keys[..2]);
        let both = PlanOptions { keys: Some(&keys), groups_max: 1, ..before };
        assert_eq!(planned(&both), keys[..1]);
        assert!(planned(&PlanOptions { keys: Some(&[]), ..all }).is_empty());
        // A rule sees failures: what failed too often is passed over.
        let fails = PlanOptions { keys: Some(&keys[..1]), ..all };
        let plan = stage.plan(&fails).unwrap();
        let refusing = words(|_| Err(refusal()));
        plan.convert(&refusing, &ConvertOptions::default()).unwrap().remove(0).made.unwrap_err();
        let not_failed = |group: &GroupView| {
            assert_eq!(claims(&store), Vec::<String>::new());
            group.failures == 0
        };
        let well = PlanOptions { ready: Ready::Rule(&not_failed), ..all };
        assert_eq!(planned(&well).len(), 5);
        let refused = |options: &PlanOptions<'_>| stage.plan(options).unwrap_err().kind();
        let panics = |_: &GroupView| panic!("the rule does");
        let panics = PlanOptions { ready: Ready::Rule(&panics), ..all };
        assert_eq!(refused(&panics), ErrorKind::CallerPanicked);
        let no_minute = PlanOptions { ready: Ready::Before("schema", 1), ..all };
        assert_eq!(refused(&no_minute), ErrorKind::Invalid);
        let other = [sealstone::staging::Key::new([])];
        assert_eq!(refused(&PlanOptions { keys: Some(&other), ..all }), ErrorKind::Invalid);
        assert_eq!(claims(&store), Vec::<String>::new());
    });
}
