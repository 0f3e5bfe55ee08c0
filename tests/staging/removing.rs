//! Removing a stage: does everything of it go, and nothing else; does one of its name begin anew?

use sealstone::ErrorKind;
use sealstone::engine::Budget;
use sealstone::manifest::{
    ClaimKind, GroupRow, PartRow, ProducerRow, Reading, ReceiptRow, ResourceKey, StreamRow,
};
use sealstone::staging::{Produced, Ready};

use crate::support::{NAME, batch, books_close, each, key, put, put_as, reopen, shape, texts};

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
