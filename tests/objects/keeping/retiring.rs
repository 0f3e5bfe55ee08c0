//! Does a batch go in one transaction, whole or not at all, and does only that go which nothing else keeps?

use sealstone::ErrorKind;
use sealstone::engine::Store;
use sealstone::ids::HandoffId;
use sealstone::manifest::{FileRow, Reading, ReceiptRow, Table};
use sealstone::objects::{Gone, Subject};
use sealstone::vfs::sim::{Fault, FaultKind};

use super::support::*;

fn commit(store: &Store) -> u64 {
    store.stats().unwrap().commit.0
}

/// Is it one transaction, whatever the number of things and whatever they are?
#[test]
fn obj15_any_number_of_things_is_one_transaction() {
    each(1, |_, _, store| {
        family(&store);
        for n in 0..30 {
            file(&store, &format!("many/{n:02}"), 100 + n);
        }
        let before = commit(&store);
        store.objects().retire(&[gone("many/00")], "one").unwrap();
        assert_eq!(commit(&store), before + 1);
        let many: Vec<Gone> = (1..30).map(|n| gone(&format!("many/{n:02}"))).collect();
        let done = store.objects().retire(&[many, all_of_it()].concat(), "all").unwrap();
        assert_eq!(commit(&store), before + 2);
        assert_eq!((done.things, done.transactions, done.is_more_left), (35, 1, false));
        // Ten pieces and one more, three recipes, the file of its own, and those of the many.
        assert_eq!(done.objects, 11 + 3 + 1 + 29);
        assert!(shown(&store).is_empty());
        assert_eq!(count(&store, Table::Objects), 0);
    });
}

/// Does a thing that cannot go, at whatever place, leave every row as it was; and does a retry end as if
/// there had been no failure?
#[test]
fn obj16_a_bad_thing_at_any_place_leaves_everything() {
    each(2, |_, layout, store| {
        let at_once = on(&sim(2), layout).create(root()).unwrap();
        for store in [&store, &at_once] {
            family(store);
            let object = file(store, "files/g", 50);
            snapshot(store, "open", true, object);
            preparation(store, "claimed", object);
        }
        let _claim = store.objects().prepare("claimed").unwrap();
        let before = every_row(&store);
        let good = all_of_it();
        for k in 0..=good.len() {
            for bad in [Gone::Snapshot("open".to_owned()), Gone::Preparation("claimed".to_owned())]
            {
                let mut things = good.clone();
                things.insert(k, bad);
                let e = store.objects().retire(&things, "bad").unwrap_err();
                assert_eq!(e.kind(), ErrorKind::Conflict, "{k}: {e}");
                let e = store.objects().retire_bounded(&things, 2, "bad").unwrap_err();
                assert_eq!(e.kind(), ErrorKind::Conflict);
                assert_eq!(every_row(&store), before, "{k}");
            }
        }
        let done = store.objects().retire(&good, "good").unwrap();
        let first = at_once.objects().retire(&good, "good").unwrap();
        assert_eq!((done.objects, done.bytes), (first.objects, first.bytes));
        let of_things = |store: &Store| {
            rows(store, |table| {
                !matches!(table, Table::Meta | Table::Owners | Table::Claims | Table::Receipts)
            })
        };
        let plain = |rows: Rows| -> Vec<_> {
            // Names of files differ from store to store.
            let is_plain = |table: Table| !matches!(table, Table::Files | Table::Journals);
            rows.into_iter().filter(|(t, ..)| is_plain(*t)).map(|(t, k, _)| (t, k)).collect()
        };
        assert_eq!(plain(of_things(&store)), plain(of_things(&at_once)));
    });
}

/// Does a disk that fails at any operation of a retirement leave all of it or nothing, and does the retry
/// after it end as if there had been no failure?
#[test]
fn obj16_a_failing_disk_leaves_all_or_nothing() {
    for layout in LAYOUTS {
        let operations = {
            let disk = sim(3);
            let store = on(&disk, layout).create(root()).unwrap();
            family(&store);
            let from = disk.operations();
            store.objects().retire(&all_of_it(), "all").unwrap();
            disk.operations() - from
        };
        let (mut untouched, mut through) = (0, 0);
        for k in 0..=operations {
            let disk = sim(3);
            let store = on(&disk, layout).create(root()).unwrap();
            family(&store);
            let before = shown(&store);
            disk.inject(Fault::new(disk.operations() + k, FaultKind::Eio).forever());
            let done = store.objects().retire(&all_of_it(), "all");
            disk.clear_faults();
            drop(store);
            disk.kill();
            let disk = disk.process(2);
            let store = on(&disk, layout).open(root()).unwrap();
            let after = shown(&store);
            if after == before {
                assert!(done.is_err(), "{k}: it was told to be gone");
                untouched += 1;
            } else {
                assert!(after.is_empty(), "{k}: {:?}", after.keys());
                through += 1;
            }
            store.objects().retire(&all_of_it(), "again").unwrap();
            assert_eq!(objects(&store), 0, "{k}");
            assert!(store.accounts().unwrap().are_closed());
            store.reclaim(Default::default()).unwrap();
            assert_eq!(store.accounts().unwrap().condemned, 0);
            store.close().unwrap();
        }
        assert!(untouched > 2 && through > 0, "{untouched} of {operations} untouched, {through}");
    }
}

/// Do all ways of losing the last reference leave the same rows?
#[test]
fn obj17_every_route_leaves_the_same_rows() {
    type Route = (&'static str, fn(&Store, sealstone::ids::ObjectId) -> Gone);
    let routes: [Route; 4] = [
        ("name", |store, object| {
            set_name(store, "files/it", object);
            gone("files/it")
        }),
        ("snapshot", |store, object| {
            snapshot(store, "kept", false, object);
            Gone::Snapshot("kept".to_owned())
        }),
        ("preparation", |store, object| {
            preparation(store, "kept", object);
            Gone::Preparation("kept".to_owned())
        }),
        ("handoff", |store, object| Gone::Handoff(handoff(store, "files/it", object))),
    ];
    for layout in LAYOUTS {
        let mut left: Option<(u64, u64, Vec<_>)> = None;
        for (route, keep) in routes {
            let store = on(&sim(4), layout).create(root()).unwrap();
            let other = recipe(&store, "files/other", &[1, 3, 5]);
            let object = recipe(&store, "files/first", &[3, 1, 2, 4, 7, 8, 6]);
            let thing = keep(&store, object);
            let stays = store.objects().retire(&[gone("files/first")], "its name").unwrap();
            assert_eq!((stays.things, stays.objects), (1, 0), "{route}");
            let done = store.objects().retire(&[thing], "the last").unwrap();
            assert_eq!((done.things, done.unknown.len()), (1, 0), "{route}");
            bytes_of(&store, other);
            let here: Vec<_> = rows_of_bytes(&store)
                .into_iter()
                .filter(|(table, ..)| *table != Table::Files)
                .map(|(table, key, _)| (table, key))
                .collect();
            let here = (done.objects, done.bytes, here);
            match &left {
                None => left = Some(here),
                Some(before) => assert_eq!(&here, before, "{route}"),
            }
            assert!(store.accounts().unwrap().are_closed());
        }
    }
}

/// Do the books of files fall by what went, and by nothing while something else keeps it?
#[test]
fn obj18_live_bytes_fall_by_what_went() {
    each(5, |_, _, store| {
        family(&store);
        let live = |store: &Store| -> u64 {
            let files = store.snapshot().unwrap().list::<FileRow>(.., usize::MAX).unwrap();
            files
                .iter()
                .for_each(|(_, row)| assert_eq!(row.len, row.framing + row.live + row.dead));
            files.iter().map(|(_, row)| row.live).sum()
        };
        let object = file(&store, "files/pending", 77);
        let id = handoff(&store, "files/elsewhere", object);
        let mut before = live(&store);
        // What a publication that is not decided names lowers nothing.
        let pending = store.objects().retire(&[gone("files/pending")], "its name").unwrap();
        assert_eq!((pending.objects, pending.bytes, live(&store)), (0, 0, before));
        let decided = store.objects().retire(&[Gone::Handoff(id)], "rolled back").unwrap();
        assert_eq!((decided.objects, decided.bytes), (1, 700));
        assert_eq!(live(&store), before - 700);
        before -= 700;
        for text in FAMILY {
            let done = store.objects().retire(&[gone(text)], "one by one").unwrap();
            let inline = done.bytes % 700;
            assert_eq!(before - live(&store), done.bytes - inline, "{text}");
            before = live(&store);
            assert!(store.accounts().unwrap().are_closed());
        }
        assert_eq!(before, 0);
    });
}

/// Does what has two owners stay with either, and go with both, in either order and together; and does a
/// lease keep it as well?
#[test]
fn obj19_what_two_own_goes_with_both() {
    each(6, |_, _, store| {
        for (n, order) in [["files/x", "files/y"], ["files/y", "files/x"]].into_iter().enumerate() {
            let object = file(&store, "files/x", 200 + n as u64);
            set_name(&store, "files/y", object);
            let first = store.objects().retire(&[gone(order[0])], "one").unwrap();
            assert_eq!((first.things, first.objects), (1, 0));
            bytes_of(&store, object);
            let second = store.objects().retire(&[gone(order[1])], "other").unwrap();
            assert_eq!((second.things, second.objects), (1, 1));
        }
        let object = file(&store, "files/x", 300);
        set_name(&store, "files/y", object);
        let both = [gone("files/x"), gone("files/y"), gone("files/x")];
        let done = store.objects().retire(&both, "both").unwrap();
        assert_eq!((done.things, done.objects), (2, 1));
        assert_eq!(done.unknown, [gone("files/x")], "it had gone in the same batch");
        let (lease, objects) = put(&store, &[301]);
        set_name(&store, "files/x", objects[0]);
        let done = store.objects().retire(&[gone("files/x")], "leased").unwrap();
        assert_eq!((done.things, done.objects), (1, 0));
        store.reclaim(Default::default()).unwrap();
        bytes_of(&store, objects[0]);
        store.retire(&[sealstone::engine::Thing::Lease(lease)], "done").unwrap();
        assert_eq!(count(&store, Table::Objects), 0);
    });
}

/// Is what is not there told, and nothing else changed?
#[test]
fn obj20_what_is_unknown_is_told() {
    each(7, |_, _, store| {
        family(&store);
        let before = rows(&store, |table| !matches!(table, Table::Meta | Table::Owners));
        let unknown = [
            gone("files/none"),
            Gone::Snapshot("none".to_owned()),
            Gone::Preparation("none".to_owned()),
            Gone::Handoff(HandoffId(77)),
        ];
        let done = store.objects().retire(&unknown, "nothing").unwrap();
        assert_eq!((done.things, done.objects, done.bytes), (0, 0, 0));
        assert_eq!(done.unknown, unknown);
        let after = rows(&store, |table| !matches!(table, Table::Meta | Table::Owners));
        assert_eq!(after, before, "not even a receipt");
    });
}

/// Are phases told, and do receipts tell what went; is it told what keeps a thing, and what took it?
#[test]
fn obj25_obj26_phases_receipts_and_reasons() {
    each(8, |_, _, store| {
        family(&store);
        let object = file(&store, "files/g", 50);
        let why = store.why(&Subject::Name(name("files/g"))).unwrap();
        assert_eq!(why.name.unwrap().digest, digest(50));
        assert_eq!(why.objects.len(), 1);
        assert!(why.receipts.is_empty());
        snapshot(&store, "snap", false, object);
        preparation(&store, "prep", object);
        let id = handoff(&store, "files/h", object);
        let lease = store.lease("who", "what for", None, &[object]).unwrap();
        let told = format!("{:?}", store.why(&Subject::Object(digest(50))).unwrap().objects);
        let id_told = format!("{id:?}");
        let lease_told = format!("{lease:?}");
        for part in ["files", "g", "snap", "\"prep\"", &id_told, &lease_told, "\"what for\""] {
            assert!(told.contains(part), "{part} in {told}");
        }
        let pieces = store.why(&Subject::Object(digest(4))).unwrap();
        let recipes = format!("{:?}", pieces.objects[0].keepers).matches("Recipe(").count();
        // Of `files/a`, `files/b` and `files/c`; two names besides.
        assert!(recipes >= 3, "{pieces:?}");
        let things = [gone("files/g"), Gone::Snapshot("snap".to_owned()), Gone::Handoff(id)];
        let done = store.objects().retire(&things, "no use").unwrap();
        assert_eq!((done.things, done.objects), (3, 0));
        store.retire(&[sealstone::engine::Thing::Lease(lease)], "let go").unwrap();
        let done = store.objects().retire(&[Gone::Preparation("prep".to_owned())], "last").unwrap();
        assert_eq!(done.objects, 1);
        let why = store.why(&Subject::Object(digest(50))).unwrap();
        assert!(why.objects.is_empty());
        assert_eq!((why.receipts.len(), why.receipts[0].why.as_str()), (1, "last"));
        // By its beginning, which keeps receipts short.
        let (what, full) = (&why.receipts[0].what, digest(50).to_string());
        assert!(what.contains(&full[..16]) && !what.contains(&full[..17]), "{what}");
        let why = store.why(&Subject::Name(name("files/g"))).unwrap();
        assert!(why.name.is_none());
        assert_eq!(why.receipts[0].why, "no use");
        let receipts = store.snapshot().unwrap().list::<ReceiptRow>(.., usize::MAX).unwrap();
        assert!(receipts.iter().any(|(_, row)| row.commit == why.receipts[0].commit));
    });
    let folder = tempfile::tempdir().unwrap();
    let store = Store::options().limits(small()).create(folder.path().join("s")).unwrap();
    family(&store);
    let done = store.objects().retire(&all_of_it(), "timed").unwrap();
    let phases = done.phases;
    for phase in [phases.retire, phases.index, phases.manifest] {
        assert!(!phase.is_zero(), "{phases:?}");
    }
    assert!(phases.unlink.is_zero());
    let done = store.reclaim(Default::default()).unwrap();
    assert!(done.files > 0 && !done.phases.unlink.is_zero() && !done.phases.manifest.is_zero());
    assert!(done.phases.total() >= done.phases.unlink);
}
