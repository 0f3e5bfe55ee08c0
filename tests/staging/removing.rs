//! Removing a stage: does everything of it go, and nothing else; does one of its name begin anew?

use sealstone::ErrorKind;
use sealstone::engine::Budget;
use sealstone::manifest::{
    ClaimKind, GroupRow, PartRow, ProducerRow, Reading, ReceiptRow, ResourceKey, StreamRow,
};
use sealstone::staging::{Produced, Ready};
use sealstone::vfs::sim::{Profile, Rng};

use crate::support::{
    NAME, batch, books_close, each, key, on, put, put_as, reopen, root, shape, texts,
};
use crate::words::{all, convert_well, long};

/// Does a stage that is made again under a name see nothing of the one before: no batch in tail or part,
/// no group, no producer; and do handles of the old one see nothing of the new?
#[test]
fn stg30_a_stage_made_again_sees_nothing_of_the_old() {
    each(41, |disk, layout, store, old| {
        let produced = Produced::new("p", 7);
        old.append(&key("a", 1), batch("first"), Some(&produced)).unwrap();
        old.flush(&Ready::All).unwrap();
        put(&old, "a", 1, "unsealed");
        put(&old, "b", 1, &"large ".repeat(700));
        let beside = store.create_stage("beside", &shape()).unwrap();
        put(&beside, "a", 1, "stays");
        beside.seal().unwrap();
        let removed = store.remove_stage(NAME, "a test").unwrap();
        assert_eq!((removed.groups, removed.outputs), (1, 0));
        assert!(removed.objects > 0);
        assert_eq!(put_as(&old, "a", 1, "no").unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(old.groups().unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(old.flush(&Ready::All).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(store.stage(NAME).unwrap_err().kind(), ErrorKind::NotFound);
        let snapshot = store.snapshot().unwrap();
        assert_eq!(snapshot.list::<GroupRow>(.., 9).unwrap().len(), 1);
        assert_eq!(snapshot.list::<PartRow>(.., 9).unwrap().len(), 1);
        assert_eq!(snapshot.list::<ProducerRow>(.., 9).unwrap().len(), 0);
        assert_eq!(snapshot.list::<StreamRow>(.., 9).unwrap().len(), 1);
        let receipts = snapshot.list::<ReceiptRow>(.., 9).unwrap();
        assert!(receipts.iter().any(|(_, row)| row.why == "a test" && row.what.contains(NAME)));
        drop(snapshot);
        let new = store.create_stage(NAME, &shape()).unwrap();
        assert!(new.id() > old.id());
        assert!(new.groups().unwrap().is_empty() && new.producers().unwrap().is_empty());
        assert!(texts(&store).is_empty());
        assert_eq!(put_as(&old, "a", 1, "no").unwrap_err().kind(), ErrorKind::NotFound);
        // A number of the old one's producer is new here.
        assert!(!new.append(&key("a", 1), batch("x"), Some(&produced)).unwrap().is_repeat);
        new.barrier().unwrap();
        drop((old, new, beside, store));
        let (store, new) = reopen(disk, layout);
        assert_eq!(texts(&store), ["x"]);
        assert_eq!(new.producers().unwrap().len(), 1);
        books_close(&store);
        store.reclaim(Budget::default()).unwrap();
        assert_eq!(store.stage("beside").unwrap().groups().unwrap()[0].rows, 1);
    });
}

/// Is a stage kept, whole, while a row of it is in no output, unsealed or in a part, where that was asked for?
#[test]
fn stg30_a_stage_that_is_not_converted_is_kept() {
    each(43, |_, _, store, stage| {
        let refused = || {
            let e = store.remove_converted_stage(NAME, "no").unwrap_err();
            assert_eq!(e.kind(), ErrorKind::Conflict);
            assert!(e.cause().contains("1 rows are not in any output"), "{e}");
        };
        put(&stage, "a", 1, "row");
        refused();
        stage.flush(&Ready::All).unwrap();
        refused();
        assert_eq!(texts(&store), ["row"]);
        store.create_stage("empty", &shape()).unwrap();
        store.remove_converted_stage("empty", "yes").unwrap();
    });
}

/// Is a stage kept, whole, while something in it is being worked on?
#[test]
fn stg12_a_stage_in_use_is_not_removed() {
    each(42, |_, _, store, stage| {
        put(&stage, "a", 1, "one");
        stage.flush(&Ready::All).unwrap();
        put(&stage, "a", 1, "two");
        let group = stage.groups().unwrap()[0].id.unwrap();
        let held = ResourceKey::of_group(stage.id(), group);
        let claim = store.claim(&held, ClaimKind::Group).unwrap();
        let e = store.remove_stage(NAME, "no").unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Conflict);
        assert!(e.cause().contains("group"), "{e}");
        assert_eq!(texts(&store), ["one", "two"]);
        put(&stage, "a", 1, "three");
        assert_eq!(texts(&store).len(), 3);
        // A claim in another stage keeps nobody.
        let beside = store.create_stage("beside", &shape()).unwrap();
        drop(claim);
        let other = ResourceKey::of_group(beside.id(), group);
        let claim = store.claim(&other, ClaimKind::Group).unwrap();
        store.remove_stage(NAME, "yes").unwrap();
        drop(claim);
    });
}

/// Killed or cut at every event of a removal: is the stage there with every row of it, or gone with all that was
/// its own; does another one keep its rows, and does the next removal end it?
#[test]
fn stg25_stg30_a_cut_anywhere_leaves_a_whole_stage_or_none() {
    each(44, |disk, layout, store, stage| {
        for n in 0..2 {
            put(&stage, "a", n, &format!("output {n} {}", long("word", 200)));
            stage.flush(&Ready::All).unwrap();
            convert_well(&stage);
        }
        put(&stage, "b", 1, &long("part", 200));
        stage.flush(&Ready::All).unwrap();
        let group = stage.groups().unwrap()[0].id.unwrap();
        stage.set_aside(group, "by hand").unwrap();
        put(&stage, "c", 1, "unsealed");
        stage.barrier().unwrap();
        let texts = all(&stage);
        let beside = store.create_stage("beside", &shape()).unwrap();
        put(&beside, "a", 1, "stays");
        beside.flush(&Ready::All).unwrap();
        disk.restart_log();
        drop(stage);
        store.remove_stage(NAME, "a test").unwrap();
        store.reclaim(Budget::default()).unwrap();
        let log = disk.events();
        drop((beside, store));
        let (mut rng, mut whole, mut gone) = (Rng::new(44), 0, 0);
        for profile in [Profile::PosixHarshest, Profile::ProcessKill] {
            let mut cursor = log.cursor(profile);
            for cut in 0..log.len() {
                cursor.advance_to(cut);
                for image in cursor.images(&mut rng, 1) {
                    let disk = image.disk();
                    let store = on(&disk, layout).open(root()).unwrap();
                    let place = format!("cut {cut}, {:?}", cursor.step());
                    assert_eq!(all(&store.stage("beside").unwrap()), ["stays"], "{place}");
                    match store.stage(NAME) {
                        Ok(stage) => {
                            assert_eq!(all(&stage), texts, "{place}");
                            drop(stage);
                            store.remove_stage(NAME, "again").unwrap();
                            whole += 1;
                        }
                        Err(e) => {
                            assert_eq!(e.kind(), ErrorKind::NotFound, "{place}: {e}");
                            gone += 1;
                        }
                    }
                    let snapshot = store.snapshot().unwrap();
                    assert_eq!(snapshot.list::<GroupRow>(.., 9).unwrap().len(), 1, "{place}");
                    assert_eq!(snapshot.list::<PartRow>(.., 9).unwrap().len(), 1, "{place}");
                    drop(snapshot);
                    store.reclaim(Budget::default()).unwrap();
                    let accounts = store.accounts().unwrap();
                    let is_clean = accounts.orphan == 0 && accounts.condemned == 0;
                    assert!(accounts.are_closed() && is_clean, "{place}: {accounts:?}");
                }
            }
        }
        assert!(whole > 5 && gone > 5, "{whole} {gone}");
    });
}
