//! Flushing: which groups are detached, and what comes late.

use std::collections::BTreeMap;

use sealstone::engine::Store;
use sealstone::ids::GroupId;
use sealstone::protection::{Protection, switch_off};
use sealstone::staging::{GroupView, Ready, Stage};
use sealstone::{ErrorKind, Result};

use crate::support::{At, batches, books_close, detached, each, groups, parts, put, reopen, texts};

/// What each detached group is, down to the digests of its parts.
fn frozen(store: &Store) -> BTreeMap<GroupId, String> {
    let snapshot = store.snapshot().unwrap();
    let of = |id| parts(store, &snapshot, id).iter().map(|p| format!("{p:?}")).collect::<String>();
    detached(store).into_iter().map(|(id, row)| (id, format!("{row:?} {}", of(id)))).collect()
}

/// Late batches, flushed again and again: does every group that was once detached stay as it was?
fn late_batches(store: &Store, stage: &Stage) -> Result<()> {
    let mut before = BTreeMap::new();
    for round in 0..4 {
        put(stage, "a", 1, &format!("first {round}"));
        stage.seal()?;
        put(stage, "a", 1, &format!("second {round}"));
        put(stage, "b", 1, &format!("other {round}"));
        let flushed = stage.flush(&Ready::All)?;
        let after = frozen(store);
        for (id, was) in &before {
            assert_eq!(after.get(id), Some(was), "a detached group changed");
        }
        assert_eq!(flushed.detached.len(), 2, "round {round}");
        before = after;
    }
    assert_eq!(before.len(), 8);
    Ok(())
}

/// Does a batch that comes after a flush go to a new generation of its key, so that bytes, length and
/// digests of what was detached stay; and is each batch of all generations there once?
#[test]
fn stg1_stg3_a_late_batch_begins_another_group() {
    each(11, |disk, layout, store, stage| {
        late_batches(&store, &stage).unwrap();
        let before = frozen(&store);
        assert_eq!(texts(&store).len(), 12);
        books_close(&store);
        drop((store, stage));
        let (store, stage) = reopen(disk, layout);
        put(&stage, "a", 1, "late");
        stage.flush(&Ready::All).unwrap();
        let after = frozen(&store);
        assert!(before.iter().all(|(id, was)| after.get(id) == Some(was)));
        assert_eq!(after.len(), before.len() + 1);
        let generations: Vec<GroupId> = after.keys().copied().collect();
        assert!(generations.windows(2).all(|pair| pair[0] < pair[1]));
    });
}

/// Would it be seen if late batches went to the group that was detached?
#[test]
fn stg1_mutant_stage_group_detached_is_caught() {
    let _off = switch_off(Protection::StageGroupDetached);
    let seen = std::panic::catch_unwind(|| {
        each(12, |_, _, store, stage| late_batches(&store, &stage).unwrap());
    });
    assert!(seen.is_err(), "nothing was seen");
}

/// Does a flush detach what the rule says is ready and nothing else: by minute, by a rule of the caller,
/// all; and does the rule see what is there, sealed or not?
#[test]
fn stg5_only_what_is_ready_is_detached() {
    each(13, |_, _, store, stage| {
        for minute in 1..5 {
            put(&stage, "a", minute, &format!("m{minute} x"));
        }
        stage.seal().unwrap();
        put(&stage, "a", 4, "more");
        put(&stage, "a", 9, "nine");
        let of = |flushed: Vec<GroupId>| -> Vec<String> {
            let groups = groups(&store.snapshot().unwrap());
            let key = |row: &[u8]| sealstone::staging::Key::from_bytes(row).unwrap().to_string();
            let named = groups.iter().filter(|(id, _)| flushed.contains(id));
            named.map(|(_, row)| key(&row.key)).collect()
        };
        let e = stage.flush(&Ready::Before("schema", 3)).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Invalid);
        let flushed = stage.flush(&Ready::Before("minute", 3)).unwrap();
        assert_eq!(of(flushed.detached), ["a/1970-01-01T00:01", "a/1970-01-01T00:02"]);
        // What was not ready was sealed all the same.
        assert_eq!((flushed.batches, flushed.rows), (2, 2));
        put(&stage, "a", 3, "unsealed y");
        let seen = std::cell::RefCell::new(Vec::new());
        let rule = |group: &GroupView| {
            assert!(!group.is_detached);
            seen.borrow_mut().push((group.key.to_string(), group.rows, group.unsealed_rows));
            group.rows >= 4
        };
        let flushed = stage.flush(&Ready::rule(&rule)).unwrap();
        assert_eq!(of(flushed.detached), ["a/1970-01-01T00:03"]);
        let seen: std::collections::BTreeSet<_> = seen.into_inner().into_iter().collect();
        let minute = |m: i64| format!("schema=a/minute=1970-01-01T00:0{m}");
        let expected = [(minute(3), 4, 2), (minute(4), 3, 0), (minute(9), 1, 0)];
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), expected);
        let flushed = stage.flush(&Ready::All).unwrap();
        assert_eq!(of(flushed.detached), ["a/1970-01-01T00:04", "a/1970-01-01T00:09"]);
        assert!(stage.groups().unwrap().iter().all(|group| group.is_detached));
        assert_eq!(texts(&store).len(), 7);
        books_close(&store);
    });
}

/// Does a flush with nothing staged make nothing: no commit, no group, no file?
#[test]
fn stg6_nothing_staged_makes_nothing() {
    each(14, |_, _, store, stage| {
        let state = |store: &Store| {
            let snapshot = store.snapshot().unwrap();
            let stats = store.stats().unwrap();
            (stats.commit, groups(&snapshot).len(), stats.rows)
        };
        let before = state(&store);
        for ready in [Ready::All, Ready::Before("minute", 99), Ready::rule(&|_| true)] {
            assert_eq!(stage.flush(&ready).unwrap(), Default::default());
        }
        assert_eq!(stage.seal().unwrap(), Default::default());
        assert_eq!(state(&store), before);
        put(&stage, "a", 1, "x");
        stage.flush(&Ready::All).unwrap();
        // Nor is there anything in what was flushed before.
        let before = state(&store);
        assert_eq!(stage.flush(&Ready::All).unwrap(), Default::default());
        assert_eq!(state(&store), before);
    });
}

/// Does a rule that panics, or a flush that fails, leave every batch where it was?
#[test]
fn a_rule_that_panics_changes_nothing() {
    each(15, |_, _, store, stage| {
        put(&stage, "a", 1, "one");
        let before = batches(&store);
        let panics = |_: &GroupView| -> bool { panic!("the rule") };
        let rule = Ready::rule(&panics);
        let flush = std::panic::AssertUnwindSafe(|| stage.flush(&rule));
        let told = std::panic::catch_unwind(flush).unwrap().unwrap_err();
        assert_eq!(told.kind(), ErrorKind::CallerPanicked);
        assert_eq!(batches(&store), before);
        assert!(store.claims(10).unwrap().iter().all(|c| c.resource.is_of_stream()));
        stage.flush(&Ready::All).unwrap();
        assert!(batches(&store).iter().all(|(at, ..)| *at != At::Tail));
    });
}

/// Does a clock that steps back, or shows nothing, delay what is chosen by time and lose nothing?
#[test]
fn stg27_a_clock_that_steps_back_loses_nothing() {
    each(16, |disk, _, store, stage| {
        put(&stage, "a", 1, "before");
        stage.seal().unwrap();
        let first = stage.groups().unwrap()[0].first_at.unwrap();
        disk.step_wall_clock(-3_600_000_000_000);
        put(&stage, "a", 1, "back");
        let group = &stage.groups().unwrap()[0];
        assert!(group.first_at.unwrap() < first && group.last_at.unwrap() >= first);
        let by_time = |group: &GroupView| group.last_at.is_some_and(|at| at < first - 1);
        let flushed = stage.flush(&Ready::rule(&by_time)).unwrap();
        assert_eq!((flushed.detached.len(), flushed.batches), (0, 1), "delayed");
        disk.set_wall_clock(None);
        put(&stage, "a", 1, "none");
        put(&stage, "b", 1, "none at all");
        assert_eq!(stage.flush(&Ready::All).unwrap().detached.len(), 2);
        assert_eq!(texts(&store), ["back", "before", "none", "none at all"]);
        let groups = stage.groups().unwrap();
        assert_eq!(groups[1].first_at, None);
        books_close(&store);
    });
}
