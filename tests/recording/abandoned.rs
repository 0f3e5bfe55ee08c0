//! REC7: what a start left gives way to the next one, and nothing that has a record does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sealstone::engine::Options;
use sealstone::protection::{Protection, switch_off};
use sealstone::recording::ResumeFrom;
use sealstone::vfs::sim::SimDisk;
use sealstone::{ErrorKind, Store, WriteAccess};

use crate::rig::{append, disk, gated, iterations, limits, options, root, schema, start};

/// A start that is overtaken at its look number `looks` at the clock by somebody who goes on with the
/// recording, appends durably and lets go; whether that record is lost.
fn is_lost(looks: usize) -> bool {
    let (gate, store) = gated(limits());
    drop(start(&store));
    let wrote = Arc::new(AtomicBool::new(false));
    let (other, writes) = (store.clone(), Arc::clone(&wrote));
    gate.at_clock(looks, move || {
        let Ok(resumed) = other.resume("run").from(ResumeFrom::Tail).start() else { return };
        append(&resumed.recorder, 0, 7, 10).unwrap();
        resumed.recorder.barrier().unwrap();
        resumed.recorder.close().unwrap();
        writes.store(true, Ordering::Relaxed);
    });
    let started = store.record("run", &schema()).stream("a", ["x"]).stream("b", ["y"]).start();
    gate.at_clock(usize::MAX, || {});
    if wrote.load(Ordering::Relaxed) {
        let is_refused = started.is_err_and(|e| e.kind() == ErrorKind::Exists);
        return !is_refused || iterations(&store, "a") != [7];
    }
    drop(started.unwrap());
    false
}

/// Does a record stay that somebody else made durable while a start looked at what was abandoned?
#[test]
fn rec7_a_recording_that_was_gone_on_with_meanwhile_stays() {
    for looks in 0..3 {
        assert!(!is_lost(looks), "overtaken at look {looks}");
    }
}

/// Would it be noticed if it were looked at before it is claimed?
#[test]
fn rec7_mutant_judged_under_claim_is_caught() {
    let _off = switch_off(Protection::JudgedUnderClaim);
    assert!((0..3).any(is_lost));
}

fn shared(disk: &SimDisk) -> Options {
    options(disk.clone(), limits()).access(WriteAccess::Shared)
}

/// Is the name of a start whose process was killed free at once to a process that was there already?
#[test]
fn rec7_the_name_of_a_killed_start_is_free_at_the_first_call() {
    let disk = disk(7);
    let store = shared(&disk).create(root()).unwrap();
    let other = disk.process(2);
    let survivor = shared(&other).open(root()).unwrap();
    let run = start(&store);
    disk.kill();
    drop((run, store));
    let run = start(&survivor);
    append(&run, 0, 1, 10).unwrap();
    run.complete().unwrap();
    assert_eq!(iterations(&survivor, "a"), [1]);
}

/// Does a start that is refused keep the recording from nobody?
#[test]
fn rec1_a_refused_start_holds_nothing_of_the_recording() {
    let disk = disk(8);
    let store = shared(&disk).create(root()).unwrap();
    let other = shared(&disk.process(2)).open(root()).unwrap();
    let run = start(&store);
    append(&run, 0, 1, 10).unwrap();
    run.close().unwrap();
    let streams = store.recording("run").unwrap().streams().unwrap();
    for stream in &streams {
        store.release_stream(stream.id()).unwrap();
    }
    let again = |store: &Store| store.record("run", &schema()).stream("a", ["x"]).start();
    assert_eq!(again(&other).unwrap_err().kind(), ErrorKind::Exists);
    assert!(other.claims(9).unwrap().is_empty(), "{:?}", other.claims(9));
    let resumed = store.resume("run").from(ResumeFrom::Tail).start().unwrap();
    append(&resumed.recorder, 0, 2, 10).unwrap();
    resumed.recorder.complete().unwrap();
    assert_eq!(iterations(&store, "a"), [1, 2]);
}
