//! Snapshots of names: open, committed, retired and no other way; what is in them stays.

use sealstone::ErrorKind;
use sealstone::engine::{Budget, Store, Thing};
use sealstone::manifest::{Raw, Reading, ReceiptRow, Table};
use sealstone::objects::{Name, ObjectSnapshotState, Publish, SnapshotView};
use sealstone::protection::{Protection, switch_off};

use super::support::{
    any, as_rows, books_close, content, digest, each, is_there, lease, name, on, put, root, rows,
};

fn names(view: &SnapshotView) -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<(String, Vec<u8>)> = Vec::new();
    let mut after: Option<Name> = None;
    loop {
        let page = view.all(after.as_ref(), 2).unwrap();
        for one in &page {
            assert_eq!(view.get(&one.name).unwrap().as_ref(), Some(one));
            let object = view.open(&one.name).unwrap();
            assert_eq!((object.digest(), object.len()), (one.digest, one.len));
            all.push((one.name.to_string(), object.bytes().unwrap()));
        }
        after = page.last().map(|one| one.name.clone());
        if page.len() < 2 {
            return all;
        }
    }
}

fn numbered(names: &[(&str, u64)]) -> Vec<(String, Vec<u8>)> {
    names.iter().map(|(name, n)| ((*name).to_owned(), content(*n))).collect()
}

fn publish(store: &Store, names: &[(&str, u64)]) {
    let mine = lease(store);
    put(store, mine, &names.iter().map(|(_, n)| *n).collect::<Vec<_>>());
    let changes: Vec<Publish> = names.iter().map(|(name, n)| any(name, digest(*n))).collect();
    store.objects().publish(mine, &changes).unwrap();
    store.retire(&[Thing::Lease(mine)], "published").unwrap();
}

/// Does a snapshot go from open to committed to retired: not read while it is open, not retired then, not
/// opened again once it is committed, and free again once it went; and is each of that told?
#[test]
fn obj11_a_snapshot_goes_one_way() {
    each(730, |_, _, store| {
        let objects = store.objects();
        publish(&store, &[("a/x", 1), ("a/y", 2), ("b/z", 3)]);
        let draft = objects.snapshot("s").unwrap();
        draft.add(&name("a/x")).unwrap();
        draft.add(&name("b/z")).unwrap();
        assert_eq!(draft.add(&name("a/none")).unwrap_err().kind(), ErrorKind::NotFound);
        // Open.
        let before = rows(&store);
        assert_eq!(objects.read_snapshot("s").unwrap_err().kind(), ErrorKind::Conflict);
        let e = objects.retire_snapshot("s", "no").unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Conflict);
        assert_eq!(rows(&store), before, "an open one was not retired");
        let held = objects.snapshot("s").unwrap_err();
        assert_eq!(held.kind(), ErrorKind::Conflict);
        let listed = objects.snapshots().unwrap();
        assert_eq!((listed.len(), listed[0].state), (1, ObjectSnapshotState::Open));
        // Committed.
        let info = draft.commit().unwrap();
        assert_eq!((info.state, info.names), (ObjectSnapshotState::Committed, 2));
        assert_eq!(info.bytes, (content(1).len() + content(3).len()) as u64);
        assert!(info.committed.is_some());
        assert_eq!(objects.snapshots().unwrap(), std::slice::from_ref(&info));
        assert!(store.claims(9).unwrap().is_empty());
        assert_eq!(objects.snapshot("s").unwrap_err().kind(), ErrorKind::Exists);
        let view = objects.read_snapshot("s").unwrap();
        assert_eq!(view.info(), &info);
        assert_eq!(names(&view), numbered(&[("a/x", 1), ("b/z", 3)]));
        // Retired.
        assert!(objects.retire_snapshot("s", "old").unwrap());
        assert!(!objects.retire_snapshot("s", "old").unwrap());
        assert!(objects.snapshots().unwrap().is_empty());
        assert_eq!(objects.read_snapshot("s").unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(view.get(&name("a/x")).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(view.all(None, 9).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(view.open(&name("a/x")).unwrap_err().kind(), ErrorKind::NotFound);
        let snapshot = store.snapshot().unwrap();
        assert_eq!(snapshot.raw_count(Table::SnapshotNames).unwrap(), 0);
        let (_, receipt) = snapshot.last::<ReceiptRow>(..).unwrap().unwrap();
        assert!(receipt.what.contains("\"s\"") && receipt.why == "old", "{receipt:?}");
        drop(snapshot);
        // One that is made again under the name is another one.
        objects.snapshot("s").unwrap().commit().unwrap();
        assert_eq!(view.get(&name("a/x")).unwrap_err().kind(), ErrorKind::NotFound);
        books_close(&store);
    });
}

/// Does what is in a snapshot stay, from when it came in until it is retired, whatever is published, released,
/// reclaimed and compacted meanwhile; in any process?
#[test]
fn obj11_a_snapshot_pins_what_is_in_it() {
    each(731, |disk, layout, store| {
        let objects = store.objects();
        publish(&store, &[("a/x", 1), ("a/y", 2), ("a/z", 3)]);
        let draft = objects.snapshot("s").unwrap();
        assert_eq!(draft.add_namespace("a").unwrap(), 3);
        publish(&store, &[("a/x", 4)]);
        objects.release(&name("a/y"), &digest(2)).unwrap();
        store.reclaim(Budget::default()).unwrap();
        assert!(is_there(&store, digest(1)) && is_there(&store, digest(2)), "open, it pins");
        draft.commit().unwrap();
        publish(&store, &[("a/z", 5)]);
        store.reclaim(Budget::default()).unwrap();
        let all = numbered(&[("a/x", 1), ("a/y", 2), ("a/z", 3)]);
        let view = objects.read_snapshot("s").unwrap();
        assert_eq!(names(&view), all);
        let reader = on(&disk.process(2), layout).open_read_only(root()).unwrap();
        assert_eq!(names(&reader.objects().read_snapshot("s").unwrap()), all);
        reader.close().unwrap();
        // Another one of the same names keeps them when this one goes.
        let second = objects.snapshot("t").unwrap();
        second.add(&name("a/x")).unwrap();
        second.commit().unwrap();
        let held = view.open(&name("a/x")).unwrap();
        assert!(objects.retire_snapshot("s", "done").unwrap());
        for n in [1, 2, 3] {
            assert!(!is_there(&store, digest(n)), "{n}");
        }
        assert!(is_there(&store, digest(4)));
        store.reclaim(Budget::default()).unwrap();
        assert_eq!(held.bytes().unwrap(), content(1), "what is being read stays until it is read");
        drop(held);
        books_close(&store);
    });
}

/// Without the references, is what a snapshot names gone when its name stands for something else?
#[test]
fn obj11_mutant_snapshot_names_pin_is_caught() {
    each(732, |_, _, store| {
        let objects = store.objects();
        publish(&store, &[("a/x", 1)]);
        let off = switch_off(Protection::SnapshotNamesPin);
        let draft = objects.snapshot("s").unwrap();
        draft.add(&name("a/x")).unwrap();
        draft.commit().unwrap();
        drop(off);
        publish(&store, &[("a/x", 2)]);
        let view = objects.read_snapshot("s").unwrap();
        assert!(view.open(&name("a/x")).is_err() && !is_there(&store, digest(1)), "it is gone");
    });
}

/// Is a name added with a digest that the lease keeps, whatever it stands for; and with nothing else: not what
/// another lease keeps, nor a piece, nor under a lease that is gone?
#[test]
fn obj11_a_snapshot_takes_what_the_lease_keeps() {
    each(733, |_, _, store| {
        let objects = store.objects();
        publish(&store, &[("a/x", 1)]);
        let (mine, pieces, gone) = (lease(&store), lease(&store), lease(&store));
        put(&store, mine, &[4, 5]);
        put(&store, pieces, &[7]);
        as_rows(&store, pieces, true);
        store.retire(&[Thing::Lease(gone)], "gone").unwrap();
        let draft = objects.snapshot("s").unwrap();
        draft.add(&name("a/x")).unwrap();
        let before = rows(&store);
        for (lease, n, kind) in [
            (mine, 1, ErrorKind::NotFound),
            (mine, 7, ErrorKind::NotFound),
            (pieces, 7, ErrorKind::Invalid),
            (gone, 4, ErrorKind::NotFound),
        ] {
            let both = [(name("a/x"), digest(4)), (name("a/new"), digest(n))];
            assert_eq!(draft.add_as(lease, &both[1].0, &both[1].1).unwrap_err().kind(), kind);
            assert!(draft.add_all_as(lease, &both).is_err());
        }
        assert_eq!(rows(&store), before);
        draft.add_all_as(mine, &[(name("a/new"), digest(4)), (name("a/x"), digest(5))]).unwrap();
        store.retire(&[Thing::Lease(mine)], "done").unwrap();
        let info = draft.commit().unwrap();
        assert_eq!((info.names, info.bytes), (2, (content(4).len() + content(5).len()) as u64));
        let view = objects.read_snapshot("s").unwrap();
        assert_eq!(names(&view), numbered(&[("a/new", 4), ("a/x", 5)]));
        assert_eq!(view.get(&name("a/x")).unwrap().unwrap().generation, None);
        assert_eq!(objects.name(&name("a/x")).unwrap().unwrap().digest, digest(1));
        assert_eq!(objects.name(&name("a/new")).unwrap(), None);
        books_close(&store);
    });
}

/// Is a snapshot that was dropped, or whose process died, gone on with by the next that opens it, with the names
/// that it had, in bounded transactions?
#[test]
fn obj11_an_open_snapshot_is_gone_on_with() {
    each(734, |disk, layout, store| {
        let mine = lease(&store);
        put(&store, mine, &[1]);
        let texts: Vec<String> = (0..2500).map(|n| format!("a/{n:04}")).collect();
        let changes: Vec<Publish> = texts.iter().map(|text| any(text, digest(1))).collect();
        store.objects().publish(mine, &changes).unwrap();
        let commits = |store: &Store| store.snapshot().unwrap().counters().unwrap().commit_seq.0;
        let draft = store.objects().snapshot("s").unwrap();
        draft.add(&name("a/0000")).unwrap();
        drop(draft);
        let draft = store.objects().snapshot("s").unwrap();
        let all: Vec<Name> = texts[..1500].iter().map(|text| name(text)).collect();
        let before = commits(&store);
        draft.add_all(&all).unwrap();
        assert_eq!(commits(&store), before + 2, "1,024 at a time");
        disk.kill();
        drop((draft, store));
        let disk = disk.process(2);
        let store = on(&disk, layout).open(root()).unwrap();
        let objects = store.objects();
        assert_eq!(objects.snapshots().unwrap()[0].names, 1500);
        let draft = objects.snapshot("s").unwrap();
        let before = commits(&store);
        assert_eq!(draft.add_namespace("a").unwrap(), 2500);
        assert_eq!(commits(&store), before + 3);
        assert_eq!(draft.add_namespace("none").unwrap(), 0);
        assert_eq!(commits(&store), before + 3, "nothing is committed for nothing");
        assert_eq!(draft.commit().unwrap().names, 2500);
        let view = objects.read_snapshot("s").unwrap();
        assert_eq!(view.all(None, usize::MAX).unwrap().len(), 2500);
        let page = |prefix: &str, after: Option<&str>, at_most| -> Vec<String> {
            let page = view.names("a", prefix, after, at_most).unwrap();
            page.into_iter().map(|one| one.name.name().to_owned()).collect()
        };
        assert_eq!(page("000", None, 3), ["0000", "0001", "0002"]);
        assert_eq!(page("000", Some("0008"), 9), ["0009"]);
        assert_eq!(page("249", Some("2498"), 9), ["2499"]);
        assert_eq!(page("1", Some("0"), 2), ["1000", "1001"]);
        assert!(page("x", None, 9).is_empty() && page("", None, 0).is_empty());
        assert!(view.names("b", "", None, 9).unwrap().is_empty());
        assert!(objects.retire_snapshot("s", "done").unwrap());
        assert_eq!(store.snapshot().unwrap().raw_count(Table::SnapshotNames).unwrap(), 0);
    });
}

/// Is what is no name of a snapshot refused?
#[test]
fn obj11_names_of_snapshots_are_checked() {
    each(735, |_, _, store| {
        let objects = store.objects();
        for (text, kind) in [
            (String::new(), ErrorKind::Invalid),
            ("  ".to_owned(), ErrorKind::Invalid),
            ("a\0b".to_owned(), ErrorKind::Invalid),
            ("s".repeat(257), ErrorKind::LimitExceeded),
        ] {
            assert_eq!(objects.snapshot(&text).unwrap_err().kind(), kind);
        }
        assert_eq!(objects.snapshot(&"s".repeat(256)).unwrap().commit().unwrap().names, 0);
        assert!(!objects.retire_snapshot("none", "no").unwrap());
        assert_eq!(objects.read_snapshot("none").unwrap_err().kind(), ErrorKind::NotFound);
    });
}
