//! Bounds: what a stage takes, keeps in memory and publishes at once, whatever its callers do.

use std::cell::RefCell;
use std::sync::Arc;

use sealstone::ErrorKind;
use sealstone::staging::{GroupView, Produced, Ready};
use sealstone::vfs::Operation;
use sealstone::vfs::sim::{Fault, FaultKind};

use crate::support::{
    LAYOUTS, NAME, batch, books_close, each, key, on, put, put_as, root, shape, shared, sim, small,
    texts, with,
};

/// Is a tail of more keys than one transaction takes sealed by several, with each batch there once, and is
/// every key of it detached?
#[test]
fn stg5_many_keys_are_sealed_by_several_transactions() {
    const KEYS: i64 = 4500;
    let disk = sim(71);
    let store = on(&disk, LAYOUTS[1]).create(root()).unwrap();
    let stage = store.create_stage(NAME, &shape()).unwrap();
    for minute in 0..KEYS {
        put(&stage, "a", minute, "x");
    }
    stage.barrier().unwrap();
    let before = store.stats().unwrap().commit.0;
    let flushed = stage.flush(&Ready::All).unwrap();
    let (all, commits) = (KEYS as u64, store.stats().unwrap().commit.0 - before);
    assert_eq!((flushed.rows, flushed.batches, flushed.parts), (all, all, all));
    assert_eq!(flushed.detached.len(), KEYS as usize);
    assert!((2..=4).contains(&commits), "{commits} commits");
    let groups = stage.groups().unwrap();
    assert!(groups.len() == KEYS as usize && groups.iter().all(|g| g.is_detached && g.rows == 1));
    assert_eq!(store.accounts().unwrap().orphan, 0);
}

/// Is what is unsealed bounded while no seal succeeds: is an append refused with the seal's error, without the
/// disk being asked each time, and taken again once there is room?
#[test]
fn stg11_unsealed_bytes_are_bounded_while_sealing_fails() {
    // Where sealing makes files of its own: what the other layout seals goes where its journals are.
    let layout = LAYOUTS[0];
    let disk = sim(72);
    let mut limits = small();
    limits.stage_unsealed_bytes = 3000;
    let options = with(Arc::new(disk.clone()), layout, limits);
    let store = options.create(root()).unwrap();
    let stage = store.create_stage(NAME, &shape()).unwrap();
    disk.inject(Fault::new(0, FaultKind::Enospc).on("tmp/").only(Operation::Create).forever());
    let (mut taken, mut refused) = (0, 0);
    let creates = disk.counts().creates;
    for n in 0..200 {
        match put_as(&stage, "a", n % 3, &format!("{n:0300}")) {
            Ok(()) => taken += 1,
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::DiskFull, "{e}");
                refused += 1;
            }
        }
        assert!(store.stats().unwrap().unsealed_bytes < 7000);
    }
    assert!(taken < 25 && refused > 150, "{taken} taken");
    // It is asked for room when it first fails, and not by each append from then on.
    assert!(disk.counts().creates - creates < 20);
    disk.clear_faults();
    stage.seal().unwrap();
    put(&stage, "a", 1, "after");
    stage.flush(&Ready::All).unwrap();
    assert_eq!(texts(&store).len(), taken + 1);
    books_close(&store);
}

/// Is a rule that flushes, seals, opens or removes its own stage refused, without waiting for itself; and does
/// the flush that asked it go on?
#[test]
fn stg5_a_rule_that_calls_its_own_stage_is_refused() {
    each(73, |_, _, store, stage| {
        put(&stage, "a", 1, "one");
        let told = RefCell::new(Vec::new());
        let rule = |group: &GroupView| {
            let mut told = told.borrow_mut();
            told.push(stage.flush(&Ready::All).map(drop).unwrap_err());
            told.push(stage.seal().map(drop).unwrap_err());
            told.push(store.stage(NAME).map(drop).unwrap_err());
            told.push(store.remove_stage(NAME, "from a rule").map(drop).unwrap_err());
            // It may look, and take a batch in.
            assert_eq!(stage.groups().unwrap().len(), 1);
            put(&stage, "a", 1, "from the rule");
            group.rows > 0
        };
        assert_eq!(stage.flush(&Ready::rule(&rule)).unwrap().detached.len(), 1);
        let told = told.into_inner();
        assert_eq!(told.len(), 4);
        for e in told {
            assert_eq!(e.kind(), ErrorKind::Invalid, "{e}");
            assert!(e.to_string().contains("called from its own ready rule"), "{e}");
        }
        assert_eq!(stage.seal().unwrap().batches, 1);
        assert_eq!(texts(&store), ["from the rule", "one"]);
        books_close(&store);
    });
}

/// Is a producer that cannot be taken refused before anything is claimed for it; and is the last number there
/// is refused, behind which it could never append?
#[test]
fn stg9_a_producer_is_looked_at_before_it_is_claimed() {
    let store = shared(&sim(74));
    let stage = store.create_stage(NAME, &shape()).unwrap();
    put(&stage, "a", 1, "one");
    let claims = || store.claims(100).unwrap().len();
    let before = claims();
    let refused = |produced: Produced| {
        let taken = stage.append(&key("a", 1), batch("x"), Some(&produced));
        taken.map(drop).unwrap_err().kind()
    };
    assert_eq!(refused(Produced::new("p".repeat(1 << 20), 1)), ErrorKind::LimitExceeded);
    assert_eq!(refused(Produced::new("p", 1).at(vec![0; 4097])), ErrorKind::LimitExceeded);
    assert_eq!(refused(Produced::new(" ", 1)), ErrorKind::Invalid);
    assert_eq!(refused(Produced::new("p", u64::MAX)), ErrorKind::Invalid);
    assert_eq!(stage.progress("p").unwrap(), None);
    assert_eq!(claims(), before);
    let last = Produced::new("p", u64::MAX - 1).at("here");
    stage.append(&key("a", 1), batch("x"), Some(&last)).unwrap();
    // The position is no part of what a repeat is known by, and the first one stays.
    let again = Produced { position: b"there".to_vec(), ..last };
    assert!(stage.append(&key("a", 1), batch("x"), Some(&again)).unwrap().is_repeat);
    assert_eq!(stage.progress("p").unwrap().unwrap().position, b"here");
}

/// Is a producer that was idle so long that it was let go from memory still known: its repeats, and how far it
/// got?
#[test]
fn stg10_an_idle_producer_is_known_again() {
    let disk = sim(75);
    let store = on(&disk, LAYOUTS[1]).create(root()).unwrap();
    let stage = store.create_stage(NAME, &shape()).unwrap();
    let append = |name: &str, sequence: u64| {
        let produced = Produced::new(name, sequence).at("here");
        stage.append(&key("a", 1), batch(name), Some(&produced)).unwrap().is_repeat
    };
    let sealed = || {
        stage.seal().unwrap();
        (0..5).all(|n| append("first", n))
    };
    (0..5).for_each(|n| assert!(!append("first", n)));
    assert!(sealed());
    for n in 0..3000 {
        assert!(!append(&format!("p{n}"), 1));
        if n % 500 == 0 {
            stage.seal().unwrap();
        }
    }
    assert!(sealed() && append("p7", 1) && append("p2999", 1));
    assert!(!append("first", 5));
    let first = stage.progress("first").unwrap().unwrap();
    assert_eq!((first.sequence, first.batches), (5, 6));
    assert_eq!(stage.producers().unwrap().len(), 3001);
}
