//! Producers: is a batch that comes again taken once, and is it known how far each of them got?

use sealstone::engine::Store;
use sealstone::protection::{Protection, switch_off};
use sealstone::staging::{Appended, Level, Produced, Ready, Stage};
use sealstone::{ErrorKind, Result};

use crate::support::{batch, books_close, each, key, reopen, texts};

fn send(stage: &Stage, sequence: u64, text: &str) -> Result<Appended> {
    let produced = Produced::new("p", sequence).at(format!("offset {sequence}"));
    stage.append(&key("a", 1), batch(text), Some(&produced))
}

/// Sends a run of numbers again and again, with seals and flushes between: each is there once.
fn again_and_again(store: &Store, stage: &Stage) {
    for round in 0..4 {
        for sequence in [1, 2, 5, 9] {
            let appended = send(stage, sequence, &format!("n{sequence}")).unwrap();
            assert_eq!(appended.is_repeat, round > 0, "{sequence}");
            stage.wait(&appended.ticket, Level::Durable).unwrap();
        }
        match round {
            1 => drop(stage.seal().unwrap()),
            2 => drop(stage.flush(&Ready::All).unwrap()),
            _ => {}
        }
        assert_eq!(texts(store), ["n1", "n2", "n5", "n9"]);
    }
}

/// Is a number that comes again with the same bytes nothing, in the tail and in parts, and after the store
/// was opened again; and an error with other bytes, another key, or when it was passed over?
#[test]
fn stg10_a_batch_that_comes_again_is_taken_once() {
    each(21, |disk, layout, store, stage| {
        again_and_again(&store, &stage);
        let refused = |stage: &Stage| {
            let e = send(stage, 5, "other").unwrap_err();
            assert_eq!(e.kind(), ErrorKind::Conflict);
            assert!(e.cause().contains("another batch"), "{e}");
            let passed = send(stage, 4, "n4").unwrap_err();
            assert_eq!(passed.kind(), ErrorKind::Conflict);
            assert!(passed.cause().contains("passed over"), "{passed}");
            let produced = Produced::new("p", 5);
            let other = stage.append(&key("b", 1), batch("n5"), Some(&produced)).unwrap_err();
            assert_eq!(other.kind(), ErrorKind::Conflict);
        };
        refused(&stage);
        // Of which the last is in a tail, and all others in parts.
        assert!(!send(&stage, 10, "n10").unwrap().is_repeat);
        stage.barrier().unwrap();
        drop((store, stage));
        let (store, stage) = reopen(disk, layout);
        refused(&stage);
        for sequence in [1, 9, 10] {
            let appended = send(&stage, sequence, &format!("n{sequence}")).unwrap();
            assert!(appended.is_repeat);
            stage.wait(&appended.ticket, Level::Durable).unwrap();
        }
        assert_eq!(texts(&store), ["n1", "n10", "n2", "n5", "n9"]);
        books_close(&store);
    });
}

/// Are the last 256 numbers known, and an older one refused rather than taken again?
#[test]
fn stg10_the_window_is_bounded() {
    each(22, |_, _, store, stage| {
        for sequence in 0..300 {
            send(&stage, sequence, "x").unwrap();
            if sequence == 100 {
                stage.seal().unwrap();
            }
        }
        assert!(send(&stage, 44, "x").unwrap().is_repeat);
        let e = send(&stage, 43, "x").unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Conflict);
        assert!(e.cause().contains("older than the last 256"), "{e}");
        stage.seal().unwrap();
        assert_eq!(texts(&store).len(), 300);
    });
}

/// Would it be seen if repeats were not told from new batches?
#[test]
fn stg10_mutant_stage_producer_window_is_caught() {
    let _off = switch_off(Protection::StageProducerWindow);
    let seen = std::panic::catch_unwind(|| {
        each(23, |_, _, store, stage| again_and_again(&store, &stage));
    });
    assert!(seen.is_err(), "nothing was seen");
}

/// Is what is known of a producer the same before and after sealing, reopening and conversion of its
/// groups: number, position, rows and batches, all of the same batch?
#[test]
fn stg9_progress_is_that_of_the_rows() {
    each(24, |disk, layout, store, stage| {
        assert_eq!(stage.progress("p").unwrap(), None);
        for sequence in 1..6 {
            send(&stage, sequence * 3, "two rows").unwrap();
        }
        let other = Produced::new("q", u64::MAX - 1).at(b"end".to_vec());
        stage.append(&key("b", 2), batch("x"), Some(&other)).unwrap();
        stage.append(&key("b", 2), batch("nobody's"), None).unwrap();
        let is_right = |stage: &Stage| {
            let p = stage.progress("p").unwrap().unwrap();
            assert_eq!((p.sequence, p.rows, p.batches), (15, 10, 5));
            assert_eq!(p.position, b"offset 15");
            let all = stage.producers().unwrap();
            assert_eq!(all.iter().map(|p| &*p.producer).collect::<Vec<_>>(), ["p", "q"]);
            assert_eq!(all[0], p);
            assert_eq!((all[1].sequence, &*all[1].position), (u64::MAX - 1, &b"end"[..]));
        };
        is_right(&stage);
        stage.barrier().unwrap();
        drop((store, stage));
        let (store, stage) = reopen(disk, layout);
        is_right(&stage);
        stage.seal().unwrap();
        is_right(&stage);
        stage.flush(&Ready::All).unwrap();
        drop((store, stage));
        let (store, stage) = reopen(disk, layout);
        is_right(&stage);
        // The last number there is was taken: nothing can follow it.
        let same = stage.append(&key("b", 2), batch("x"), Some(&other)).unwrap();
        assert!(same.is_repeat);
        assert_eq!(texts(&store).len(), 7);
        store.close().unwrap();
    });
}
