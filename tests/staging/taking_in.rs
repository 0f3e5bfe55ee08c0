//! Appending and sealing: what goes in is there, once, before and after; what cannot go in is told.

use std::collections::BTreeSet;

use sealstone::engine::{Budget, Health, Store};
use sealstone::ids::GroupId;
use sealstone::manifest::GroupRow;
use sealstone::staging::{
    Batch, ConvertOptions, GroupView, Key, KeyPart, KeyShape, Level, PlanOptions, Produced, Ready,
    Stage,
};
use sealstone::vfs::sim::{Event, Fault, FaultKind};
use sealstone::vfs::{Operation, Step};
use sealstone::{ErrorKind, Limits};

use crate::support::{
    At, LAYOUTS, NAME, batch, batches, books_close, detached, each, groups, key, on, parts, put,
    put_as, reopen, root, shape, sim, small, texts, with,
};
use crate::words::Words;

/// Is each batch in the tail before it is sealed, in a part after, and there when the store is opened
/// again; and do the lists count it once at each of these instants?
#[test]
fn stg9_a_batch_is_in_one_place() {
    each(1, |disk, layout, store, stage| {
        let appended = stage.append(&key("a", 1), batch("one two"), None).unwrap();
        assert_eq!((appended.rows, appended.is_repeat), (2, false));
        stage.wait(&appended.ticket, Level::Durable).unwrap();
        put(&stage, "b", 1, "three");
        let counted = |stage: &Stage| {
            let groups = stage.groups().unwrap();
            let counts = groups.iter().map(|g| (g.key.to_string(), g.rows, g.batches, g.len));
            counts.collect::<Vec<_>>()
        };
        let minute = "minute=1970-01-01T00:01";
        let whole =
            vec![(format!("schema=a/{minute}"), 2, 1, 7), (format!("schema=b/{minute}"), 1, 1, 5)];
        assert_eq!(counted(&stage), whole);
        assert!(batches(&store).iter().all(|(at, ..)| *at == At::Tail));
        stage.barrier().unwrap();
        drop((store, stage));
        let (store, stage) = reopen(disk, layout);
        assert_eq!(counted(&stage), whole);
        let sealed = stage.seal().unwrap();
        assert_eq!((sealed.rows, sealed.batches, sealed.parts), (3, 2, 2));
        assert!(sealed.detached.is_empty());
        assert!(batches(&store).iter().all(|(at, ..)| *at != At::Tail));
        assert_eq!(counted(&stage), whole);
        // More of the same key comes to the same group.
        put(&stage, "a", 1, "four");
        assert_eq!(counted(&stage)[0], (whole[0].0.clone(), 3, 2, 11));
        stage.seal().unwrap();
        assert_eq!(texts(&store), ["four", "one two", "three"]);
        assert_eq!(counted(&stage)[0].1, 3);
        books_close(&store);
        store.close().unwrap();
        let reader = on(disk, layout).open_read_only(root()).unwrap();
        let stage = reader.stage(NAME).unwrap();
        assert_eq!(counted(&stage)[0].1, 3);
        assert_eq!(texts(&reader), ["four", "one two", "three"]);
        assert_eq!(put_as(&stage, "a", 1, "no").unwrap_err().kind(), ErrorKind::ReadOnly);
        assert_eq!(stage.flush(&Ready::All).unwrap_err().kind(), ErrorKind::ReadOnly);
    });
}

/// Does a batch too large for a frame go the same way, its bytes stored once; and is it gone, bytes and
/// all, when its stage is?
#[test]
fn stg9_large_batches_lie_once() {
    each(2, |disk, layout, store, stage| {
        let large = "x".repeat(9000);
        for (minute, text) in [(1, "small"), (1, &large), (2, &large), (1, &format!("{large}y"))] {
            let produced = Produced::new("p", store.stats().unwrap().commit.0 + 1_000_000);
            let whole = Batch::opaque(text, 1);
            stage.append(&key("a", minute), whole, Some(&produced)).unwrap();
        }
        stage.barrier().unwrap();
        assert_eq!(stage.groups().unwrap().iter().map(|g| g.len).sum::<u64>(), 27_006);
        drop((store, stage));
        let (store, stage) = reopen(disk, layout);
        let progress = stage.progress("p").unwrap().unwrap();
        assert_eq!((progress.batches, progress.rows), (4, 4));
        stage.flush(&Ready::All).unwrap();
        let lens: Vec<usize> = texts(&store).iter().map(String::len).collect();
        assert_eq!(lens, [5, 9000, 9000, 9001]);
        assert_eq!(stage.progress("p").unwrap().unwrap(), progress);
        books_close(&store);
        store.remove_stage(NAME, "enough").unwrap();
        store.reclaim(Budget::default()).unwrap();
        let accounts = store.accounts().unwrap();
        assert!(accounts.are_closed());
        drop((store, stage));
        let store = on(disk, layout).open(root()).unwrap();
        store.reclaim(Budget::default()).unwrap();
        assert_eq!(store.accounts().unwrap().condemned, 0);
    });
}

/// Is what cannot be taken refused by its name, with nothing changed?
#[test]
fn what_cannot_be_taken_is_told() {
    each(3, |_, _, store, stage| {
        let kind = |key: &Key, batch: Batch, produced: Option<&Produced>| {
            stage.append(key, batch, produced).unwrap_err().kind()
        };
        let other = Key::new([KeyPart::Integer(1)]);
        assert_eq!(kind(&other, batch("x"), None), ErrorKind::Invalid);
        assert_eq!(kind(&key("a", 1), Batch::opaque("x", 0), None), ErrorKind::Invalid);
        let blank = Produced::new(" ", 1);
        assert_eq!(kind(&key("a", 1), batch("x"), Some(&blank)), ErrorKind::Invalid);
        let long = Produced::new("p".repeat(257), 1);
        assert_eq!(kind(&key("a", 1), batch("x"), Some(&long)), ErrorKind::LimitExceeded);
        let far = Produced::new("p", 1).at(vec![0; 4097]);
        assert_eq!(kind(&key("a", 1), batch("x"), Some(&far)), ErrorKind::LimitExceeded);
        let long = key(&"k".repeat(2000), 1);
        assert_eq!(kind(&long, batch("x"), None), ErrorKind::LimitExceeded);
        let large = Batch::opaque(vec![0; 17 << 20], 1);
        assert_eq!(kind(&key("a", 1), large, None), ErrorKind::LimitExceeded);
        assert!(stage.groups().unwrap().is_empty() && stage.producers().unwrap().is_empty());
        let create =
            |name: &str, shape: &KeyShape| store.create_stage(name, shape).unwrap_err().kind();
        assert_eq!(create(NAME, &shape()), ErrorKind::Exists);
        assert_eq!(create(" ", &shape()), ErrorKind::Invalid);
        assert_eq!(create(&"n".repeat(257), &shape()), ErrorKind::LimitExceeded);
        assert_eq!(create("x", &shape().text("minute")), ErrorKind::Invalid);
        assert_eq!(store.stage("x").unwrap_err().kind(), ErrorKind::NotFound);
        let other = KeyShape::new().text("a");
        let e = store.stage_or_create(NAME, &other).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Conflict);
        assert_eq!(store.stage_or_create(NAME, &shape()).unwrap().id(), stage.id());
        assert_eq!(store.stages().unwrap().len(), 1);
    });
}

fn little_unsealed() -> Limits {
    let mut limits = small();
    limits.stage_unsealed_bytes = 3000;
    limits
}

/// Are batches sealed by themselves past the bound of what is unsealed, and never more than that left?
#[test]
fn batches_are_sealed_past_the_bound() {
    for layout in LAYOUTS {
        let disk = sim(4);
        let options = with(std::sync::Arc::new(disk.clone()), layout, little_unsealed());
        let store = options.create(root()).unwrap();
        let stage = store.create_stage(NAME, &shape()).unwrap();
        for n in 0..40 {
            put(&stage, "a", n % 3, &format!("{n:0200}"));
            assert!(store.stats().unwrap().unsealed_bytes < 3000, "{n}");
        }
        assert!(batches(&store).iter().any(|(at, ..)| matches!(at, At::Part(_))));
        assert_eq!(texts(&store).len(), 40);
        assert_eq!(stage.groups().unwrap().iter().map(|g| g.rows).sum::<u64>(), 40);
        assert_eq!(stage.groups().unwrap().len(), 3);
        books_close(&store);
    }
}

/// Is an error of a seal that nobody called for told by health and by the next call, once, with the batch
/// taken all the same?
#[test]
fn stg11_what_nobody_waited_for_is_told() {
    let disk = sim(5);
    let layout = LAYOUTS[0];
    let options = with(std::sync::Arc::new(disk.clone()), layout, little_unsealed());
    let store = options.create(root()).unwrap();
    let stage = store.create_stage(NAME, &shape()).unwrap();
    let full = Fault::new(0, FaultKind::Enospc).on("tmp/").only(Operation::Create).forever();
    disk.inject(full);
    let mut taken = 0;
    let told = loop {
        match put_as(&stage, "a", 1, &format!("{taken:0500}")) {
            Ok(()) => taken += 1,
            Err(e) => break e,
        }
        assert!(taken < 20, "it was never told");
    };
    assert_eq!(told.kind(), ErrorKind::DiskFull);
    let Health { halted, warnings, .. } = store.health();
    assert!(halted.is_none());
    assert!(warnings.iter().any(|w| w.to_string() == told.to_string()), "{warnings:?}");
    disk.clear_faults();
    put(&stage, "a", 1, "after");
    taken += 1;
    stage.flush(&Ready::All).unwrap();
    assert_eq!(texts(&store).len(), taken);
    books_close(&store);
}

/// Is a file made only where none is, given a name only where none is, and never cut to a shorter length
/// while a row or a reader may name it?
#[test]
fn stg2_no_bytes_are_written_twice() {
    let disk = sim(6);
    let layout = LAYOUTS[0];
    let store = on(&disk, layout).create(root()).unwrap();
    let stage = store.create_stage(NAME, &shape()).unwrap();
    disk.restart_log();
    for round in 0..6 {
        put(&stage, "a", 1, &format!("round {round} {}", "x".repeat(300)));
        put(&stage, "a", 1, &format!("late {round} {}", "y".repeat(3000)));
        if round % 2 == 0 {
            stage.flush(&Ready::All).unwrap();
        }
    }
    drop((store, stage));
    let (store, stage) = reopen(&disk, layout);
    put(&stage, "a", 1, "again");
    stage.flush(&Ready::All).unwrap();
    let log = disk.events();
    let (mut names, mut placed) = (BTreeSet::new(), BTreeSet::new());
    for event in log.events() {
        match event {
            Event::Create { at, .. } if !at.name.starts_with("HEAD") => {
                assert!(names.insert(at.clone()), "{at:?} was made twice");
            }
            Event::Rename { to, inode, replaced, .. } if !to.name.starts_with("HEAD") => {
                assert!(names.insert(to.clone()) && replaced.is_none(), "{to:?} was given twice");
                placed.insert(*inode);
            }
            Event::Write { inode, .. } | Event::SetLen { inode, .. } => {
                assert!(!placed.contains(inode), "a sealed file was changed");
            }
            _ => {}
        }
    }
    assert!(placed.len() > 3 && names.len() > placed.len());
    assert_eq!(texts(&store).len(), 13);
}

/// And in a store that is one file: is no other file made, is that one never emptied, and do the parts of a
/// detached group keep their bytes, whatever is sealed, converted and reclaimed beside them?
#[test]
fn stg2_in_one_file_no_part_is_written_twice() {
    let disk = sim(6);
    let layout = LAYOUTS[1];
    let store = on(&disk, layout).create(root()).unwrap();
    let stage = store.create_stage(NAME, &shape()).unwrap();
    put(&stage, "a", 1, &format!("detached {}", "x".repeat(300)));
    put(&stage, "a", 1, &format!("large {}", "y".repeat(3000)));
    stage.flush(&Ready::All).unwrap();
    let kept = |store: &Store| {
        let (group, row) = detached(store).into_iter().next().unwrap();
        (row, parts(store, &store.snapshot().unwrap(), group))
    };
    let before = kept(&store);
    disk.restart_log();
    for round in 0..6 {
        put(&stage, "a", 1, &format!("late {round} {}", "z".repeat(3000)));
        stage.seal().unwrap();
        if round % 2 == 0 {
            stage.flush(&Ready::All).unwrap();
            let keys = [key("a", 1)];
            let plan = PlanOptions {
                keys: Some(&keys),
                ready: Ready::Rule(&is_late),
                ..PlanOptions::default()
            };
            let plan = stage.plan(&plan).unwrap();
            plan.convert(&Words::plain(), &ConvertOptions::default()).unwrap();
            store.reclaim(Budget::default()).unwrap();
        }
    }
    drop((store, stage));
    let (store, stage) = reopen(&disk, layout);
    put(&stage, "a", 1, "again");
    stage.flush(&Ready::All).unwrap();
    assert_eq!(kept(&store), before);
    for event in disk.events().events() {
        match event {
            Event::Create { at, .. } => panic!("{at:?} was made"),
            Event::Rename { to, .. } => panic!("{to:?} was given"),
            Event::SetLen { len, .. } => assert!(*len > 0, "a file was emptied"),
            _ => {}
        }
    }
}

fn is_late(group: &GroupView) -> bool {
    group.id != Some(GroupId(1))
}

/// Are the handles those of many threads, and do threads that append, seal and list lose nothing?
#[test]
fn stg31_handles_go_to_other_threads() {
    fn goes<T: Send + Sync + Clone>(_: &T) {}
    each(7, |_, _, store, stage| {
        goes(&stage);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let stage = stage.clone();
                scope.spawn(move || {
                    for n in 0..30 {
                        let produced = Produced::new(format!("p{thread}"), n);
                        let batch = batch(&format!("{thread}-{n}"));
                        stage.append(&key("a", n as i64 % 2), batch, Some(&produced)).unwrap();
                        if n % 10 == thread {
                            stage.seal().unwrap();
                        }
                        if n % 13 == thread {
                            stage.flush(&Ready::All).unwrap();
                        }
                    }
                });
            }
            scope.spawn(|| {
                let mut last = 0;
                for _ in 0..30 {
                    let rows: u64 = stage.groups().unwrap().iter().map(|g| g.rows).sum();
                    assert!(rows >= last && rows <= 120, "{last} {rows}");
                    last = rows;
                }
            });
        });
        assert_eq!(texts(&store).len(), 120);
        let ids: Vec<GroupId> = stage.groups().unwrap().iter().filter_map(|g| g.id).collect();
        assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
        for progress in stage.producers().unwrap() {
            assert_eq!((progress.sequence, progress.batches), (29, 30));
        }
        books_close(&store);
    });
}

/// Is a batch of more rows than can be counted refused, so that the stage goes on with all others?
#[test]
fn stg14_more_rows_than_can_be_counted_are_refused() {
    each(29, |_, _, store, stage| {
        for rows in [u64::MAX, 1 << 60, (1 << 59) + 1, (1 << 32) + 1] {
            for produced in [None, Some(Produced::new("p", 1))] {
                let batch = Batch::opaque("x", rows);
                let e = stage.append(&key("a", 1), batch, produced.as_ref()).unwrap_err();
                assert_eq!(e.kind(), ErrorKind::LimitExceeded, "{e}");
            }
        }
        let most = Batch::opaque("x", 1 << 32);
        stage.append(&key("a", 1), most.clone(), None).unwrap();
        stage.seal().unwrap();
        stage.append(&key("a", 1), most, None).unwrap();
        assert_eq!(stage.flush(&Ready::All).unwrap().rows, 1 << 32);
        assert_eq!(stage.groups().unwrap()[0].rows, 2 << 32);
        books_close(&store);
    });
}

/// Does a group that could not count what comes give way to another one of its key?
#[test]
fn stg14_a_full_group_gives_way_to_another() {
    each(30, |_, _, store, stage| {
        put(&stage, "a", 1, "one");
        stage.seal().unwrap();
        let (id, row) = groups(&store.snapshot().unwrap()).remove(0);
        let full = GroupRow { rows: 1 << 59, ..row };
        store.transact(Step::StageSeal, |w| w.put(&(stage.id(), id), &full)).unwrap();
        put(&stage, "a", 1, "two");
        let flushed = stage.flush(&Ready::Rule(&|_| false)).unwrap();
        assert_eq!((flushed.rows, flushed.detached), (1, vec![id]));
        let groups = stage.groups().unwrap();
        assert_eq!(groups.iter().map(|group| group.rows).collect::<Vec<_>>(), [1 << 59, 1]);
    });
}
