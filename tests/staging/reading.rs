//! Reading a stage: every acknowledged row once, at every instant.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use sealstone::engine::{Budget, Layout};
use sealstone::protection::{Protection, switch_off};
use sealstone::staging::{ConvertOptions, MergeOptions, PlanOptions, Ready, Stage};
use sealstone::{ErrorKind, Store};

use crate::support::{NAME, each, on, put, root, shape, sim, small};
use crate::words::{Do, Words, all, convert, convert_well, held, long, words};

/// Between and inside all steps of flushing, converting, merging and giving back: does a view hold every
/// row, and each once; and does one that was taken before all of it still do?
#[test]
fn stg8_a_view_holds_every_row_once_at_every_instant() {
    each(71, |_, _, store, stage| {
        let mut texts = Vec::new();
        let mut views = Vec::new();
        for round in 0..4 {
            for minute in 0..2 {
                let text =
                    format!("{round} {minute} and more of it, so that it lies in a file by itself");
                put(&stage, "a", minute, &text);
                texts.push(text);
            }
            // One that the journal does not hold inline.
            let text = format!("{round} {}", long("large", 600));
            put(&stage, "b", 0, &text);
            texts.push(text);
            texts.sort();
            views.push((stage.view().unwrap(), texts.clone()));
            assert_eq!(all(&stage), texts, "unsealed");
            let ready = |group: &sealstone::staging::GroupView| {
                // The rule is asked before anything changes.
                group.key.to_string().contains("minute") && !group.is_detached && round % 2 == 1
            };
            stage.flush(&Ready::Rule(&ready)).unwrap();
            views.push((stage.view().unwrap(), texts.clone()));
            assert_eq!(all(&stage), texts, "flushed");
            let looking = words(|_| {
                assert_eq!(all(&stage), texts, "converting");
                Ok(Do::GoOn)
            });
            convert(&stage, &looking).into_iter().for_each(|done| drop(done.made.unwrap()));
            views.push((stage.view().unwrap(), texts.clone()));
            assert_eq!(all(&stage), texts, "converted");
            stage.merge(&MergeOptions::default(), &looking).unwrap();
            store.reclaim(Budget::default()).unwrap();
            assert_eq!(all(&stage), texts, "reclaimed");
            for (view, texts) in &views {
                let (held, unread) = held(view);
                assert_eq!((&held, unread), (texts, 0));
            }
        }
        assert!(store.accounts().unwrap().condemned > 0, "nothing was kept for a view");
        drop(views);
        store.reclaim(Budget::default()).unwrap();
        assert_eq!(store.accounts().unwrap().condemned, 0);
        assert_eq!(all(&stage), texts);
    });
}

/// What a view holds whose parts were converted and given back while it stood.
fn kept(seed: u64) -> (Vec<String>, usize, Vec<String>) {
    let disk = sim(seed);
    let store = on(&disk, Layout::Directory).create(root()).unwrap();
    let stage = store.create_stage(NAME, &shape()).unwrap();
    for minute in 0..3 {
        put(&stage, "a", minute, &long("a batch that does not lie in the manifest", 4));
    }
    stage.flush(&Ready::All).unwrap();
    let view = stage.view().unwrap();
    convert_well(&stage);
    store.reclaim(Budget::default()).unwrap();
    let (texts, unread) = held(&view);
    (texts, unread, all(&stage))
}

/// Do the bytes of a view stay while it stands, and would it be seen if they did not?
#[test]
fn stg8_mutant_pin_holds_is_caught() {
    let (texts, unread, now) = kept(72);
    assert_eq!((texts.len(), unread, now.len()), (3, 0, 3));
    let _off = switch_off(Protection::PinHolds);
    let (texts, unread, _) = kept(72);
    assert!(texts.len() < 3 && unread > 0, "nothing was seen");
}

/// In a process that only reads: is what went meanwhile a conflict that asks for a fresh view, and does a
/// fresh one hold everything?
#[test]
fn stg8_a_reading_process_is_told_to_look_again() {
    let disk = sim(73);
    let store = on(&disk, Layout::Directory).create(root()).unwrap();
    let stage = store.create_stage(NAME, &shape()).unwrap();
    for minute in 0..3 {
        put(&stage, "a", minute, &format!("{minute} {}", long("not in the manifest", 9)));
    }
    stage.flush(&Ready::All).unwrap();
    put(&stage, "a", 9, "unsealed");
    stage.barrier().unwrap();
    let texts: Vec<String> = all(&stage);
    let other = disk.process(2);
    let reading = on(&other, Layout::Directory).open_read_only(root()).unwrap();
    let seen = reading.stage(NAME).unwrap();
    assert_eq!(seen.plan(&PlanOptions::default()).unwrap_err().kind(), ErrorKind::ReadOnly);
    // No file is open yet: what is open can be read to its end.
    let view = seen.view().unwrap();
    convert_well(&stage);
    store.reclaim(Budget::default()).unwrap();
    let ends: Vec<_> = view.batches().map(|batch| batch.map_err(|e| e.kind()).err()).collect();
    assert_eq!(ends.iter().filter(|end| **end == Some(ErrorKind::Conflict)).count(), 3, "{ends:?}");
    assert_eq!(all(&seen).len(), texts.len());
    drop(view);
}

/// A reader that loops while others append, flush, convert and give back: does it ever count more rows, or
/// fewer, than were acknowledged when it looked? `SEALSTONE_CONVERSIONS` asks for more of them.
fn count_through(conversions: u64) -> u64 {
    let dir = tempfile::tempdir().unwrap();
    let mut limits = small();
    limits.background = true;
    let store = Store::options().limits(limits).create(dir.path().join("s.stone")).unwrap();
    let stage: Stage = store.create_stage(NAME, &shape()).unwrap();
    let (sent, acknowledged) = (AtomicU64::new(0), AtomicU64::new(0));
    let (is_over, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut views = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut round = 0;
            while !is_over.load(Ordering::Acquire) {
                sent.fetch_add(2, Ordering::AcqRel);
                put(&stage, "a", round % 5, &format!("row {round}"));
                acknowledged.fetch_add(2, Ordering::AcqRel);
                if round % 8 == 7 {
                    stage.flush(&Ready::All).unwrap();
                }
                round += 1;
            }
        });
        scope.spawn(|| {
            let mut round = 0;
            while done.load(Ordering::Acquire) < conversions && !is_over.load(Ordering::Acquire) {
                let plan =
                    stage.plan(&PlanOptions { groups_max: 3, ..PlanOptions::default() }).unwrap();
                for one in plan.convert(&Words::plain(), &ConvertOptions::default()).unwrap() {
                    one.made.unwrap();
                    done.fetch_add(1, Ordering::AcqRel);
                }
                round += 1;
                if round % 8 == 0 {
                    stage.merge(&MergeOptions::default(), &Words::plain()).unwrap();
                    store.reclaim(Budget::default()).unwrap();
                }
            }
            is_over.store(true, Ordering::Release);
        });
        while !is_over.load(Ordering::Acquire) {
            let least = acknowledged.load(Ordering::Acquire);
            let view = stage.view().unwrap();
            let most = sent.load(Ordering::Acquire);
            let rows = view.rows();
            if !(least..=most).contains(&rows) {
                is_over.store(true, Ordering::Release);
                panic!("{rows} rows, {least} to {most} at that time");
            }
            if views % 16 == 0 {
                let (texts, unread) = held(&view);
                assert_eq!((texts.len() as u64 * 2, unread), (rows, 0));
            }
            views += 1;
        }
    });
    stage.append(&crate::support::key("a", 0), crate::support::batch("end"), None).unwrap();
    stage.barrier().unwrap();
    let rows = acknowledged.into_inner() + 1;
    assert_eq!(stage.view().unwrap().rows(), rows);
    views
}

#[test]
fn stg8_a_reader_counts_exactly_through_conversions() {
    let wanted = std::env::var("SEALSTONE_CONVERSIONS");
    let wanted = wanted.map_or(150, |text| text.parse().unwrap());
    let views = count_through(wanted);
    println!("{views} views through {wanted} conversions");
    assert!(views > 50, "{views}");
}
