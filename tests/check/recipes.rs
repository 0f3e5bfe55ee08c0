//! Rows of files that contradict each other: recipes, preparations, snapshots of names, publications.

use sealstone::Store;
use sealstone::check::{SalvageOptions, salvage};
use sealstone::digest::Digest;
use sealstone::ids::{LeaseId, NameGeneration, ObjectId, ObjectSnapshotId};
use sealstone::manifest::*;
use sealstone::vfs::{RealDisk, Step};

use crate::support::on;
use crate::tamper::{Bench, assert_told, looked};

fn key(name: &str) -> NameKey {
    NameKey { namespace: Namespace::OBJECTS, name: format!("ns\0{name}") }
}

/// A file of three pieces under a name, in a snapshot and in a preparation.
fn fill(store: &Store) {
    let lease = store.lease("test", "made", None, &[]).unwrap();
    let contents: Vec<Vec<u8>> = [100u8, 150, 200].iter().map(|n| vec![*n; *n as usize]).collect();
    let whole = Digest::of(&contents.concat());
    let put = store.put_objects(lease, contents).unwrap();
    let made = store.transact(Step::StateCommit, |w| {
        let object = w.next_object_id()?;
        let pieces: Vec<Piece> = put
            .iter()
            .zip([100, 150, 200])
            .map(|((object, _), len)| Piece { object: *object, len })
            .collect();
        w.put(&(object, 0), &RecipeRow { pieces: pieces[..2].to_vec() })?;
        w.put(&(object, 250), &RecipeRow { pieces: pieces[2..].to_vec() })?;
        let place = Place::Recipe;
        w.put(&object, &ObjectRow { digest: whole, len: 450, stored_len: 0, codec: 0, place })?;
        let (generation, commit) = (NameGeneration(1), w.commit_seq());
        let row = NameRow { generation, object, len: 450, commit, form: ValueForm::Bytes };
        w.put(&key("a"), &row)?;
        let snapshot = w.next_object_snapshot_id()?;
        let state = ObjectSnapshotState::Committed;
        let row = ObjectSnapshotRow {
            snapshot,
            state,
            created: None,
            committed: Some(commit),
            names: 1,
            bytes: 450,
        };
        w.put(&"s".to_owned(), &row)?;
        let name = SnapshotNameKey { snapshot, name: key("a") };
        w.put(&name, &SnapshotNameRow { object, len: 450, generation: None })?;
        let lease = w.next_lease_id()?;
        let holder = PREPARATION_HOLDER.to_owned();
        let (purpose, objects) = ("p".to_owned(), Vec::new());
        w.put(&lease, &LeaseRow { holder, purpose, deadline: None, objects })?;
        w.put(&"p".to_owned(), &PreparationRow { lease, created: None })?;
        w.put(&(lease, object), &LeasedRow { object, is_whole: true, is_piece: false })?;
        let names = vec![HandoffName {
            namespace: Namespace::OBJECTS.0,
            name: "ns\0b".to_owned(),
            expected: None,
            object,
            len: 450,
        }];
        let handoff = w.next_handoff_id()?;
        let (target, intent) = ("t".to_owned(), Vec::new());
        w.put(
            &handoff,
            &NameHandoffRow { target, names, intent, lease: None, at: None, prepared: commit },
        )
    });
    made.unwrap();
}

/// Is a store with all of these good, and is each contradiction told where it is?
#[test]
fn obj3_rows_of_files_that_contradict_each_other_are_told() {
    let bench = Bench::of(fill);
    let report = looked(&bench.root());
    assert!(report.is_good(), "{:#?}", report.findings);
    // A recipe with a gap, with one piece too few, with a piece of another length.
    let report = bench.tampered(|t| {
        let (key, _) = t.rows::<RecipeRow>().remove(1);
        t.remove::<RecipeRow>(&key);
    });
    assert_told(&report, &["objects ObjectId", "edges EdgeKey"]);
    assert!(report.findings.iter().any(|one| one.means.contains("ns/a")), "{report:#?}");
    let report = bench.tampered(|t| {
        let (key, row) = t.rows::<RecipeRow>().remove(1);
        t.remove::<RecipeRow>(&key);
        t.put(&(key.0, 251), &row);
    });
    assert_told(&report, &["objects ObjectId"]);
    let report = bench.tampered(|t| {
        t.change::<RecipeRow>(|_| true, |row| row.pieces[0].len += 1);
    });
    assert_told(&report, &["objects ObjectId"]);
    let report = bench.tampered(|t| {
        t.change::<ObjectRow>(|row| row.place == Place::Recipe, |row| row.len += 1);
    });
    assert_told(&report, &["objects ObjectId", "names NameKey", "snapshot_names", "name_handoffs"]);
    // Rows of a recipe that is none.
    let report = bench.tampered(|t| {
        let row = t.rows::<RecipeRow>().remove(0).1;
        t.put(&(ObjectId(1), 0), &row);
    });
    assert_told(&report, &["recipes ("]);
    // A preparation without a lease and the reverse, what is leased without one.
    let report = bench.tampered(|t| t.remove::<PreparationRow>(&"p".to_owned()));
    assert_told(&report, &["leases LeaseId"]);
    let report = bench.tampered(|t| {
        t.change::<PreparationRow>(|_| true, |row| row.lease = LeaseId(1));
    });
    assert_told(&report, &["preparations \"p\"", "leases LeaseId"]);
    let report = bench.tampered(|t| {
        let (key, _) = t.rows::<LeasedRow>().remove(0);
        t.remove::<LeaseRow>(&key.0);
    });
    assert_told(&report, &["preparations \"p\"", "leased ("]);
    // A snapshot that counts wrong, and names of none.
    let report = bench.tampered(|t| {
        t.change::<ObjectSnapshotRow>(|_| true, |row| row.names = 2);
    });
    assert_told(&report, &["object_snapshots \"s\""]);
    let report = bench.tampered(|t| {
        t.change::<ObjectSnapshotRow>(|_| true, |row| row.bytes -= 1);
    });
    assert_told(&report, &["object_snapshots \"s\""]);
    let report = bench.tampered(|t| t.remove::<ObjectSnapshotRow>(&"s".to_owned()));
    assert_told(&report, &["snapshot_names"]);
    let report = bench.tampered(|t| {
        t.counters(|counters| counters.object_snapshot = ObjectSnapshotId(0));
    });
    assert!(!report.is_good(), "{report:#?}");
    // A name without a namespace, one of another length, a publication of another length.
    let report = bench.tampered(|t| {
        let row = t.rows::<NameRow>().remove(0).1;
        let bad = NameKey { namespace: Namespace::OBJECTS, name: "none".to_owned() };
        t.put(&bad, &row);
    });
    assert_told(&report, &["names NameKey"]);
    let report = bench.tampered(|t| {
        t.change::<NameRow>(|_| true, |row| row.len = 1);
    });
    assert_told(&report, &["names NameKey"]);
    let report = bench.tampered(|t| {
        t.change::<NameHandoffRow>(|_| true, |row| row.names[0].len = 1);
    });
    assert_told(&report, &["name_handoffs"]);
}

/// Do preparations, snapshots of names and pending publications come back from a salvage as they were?
#[test]
fn obj11_salvage_keeps_snapshots_preparations_and_publications() {
    let bench = Bench::of(fill);
    let before = rows(&bench.root());
    assert!(before.iter().all(|rows| !rows.is_empty()), "{before:?}");
    std::fs::remove_file(bench.root().join("manifest.redb")).unwrap();
    let to = bench.root().with_extension("new");
    let salvaged = salvage(bench.root(), &to, &SalvageOptions::default()).unwrap();
    assert!(salvaged.is_whole(), "{salvaged:#?}");
    assert!(looked(&to).is_good());
    assert_eq!(rows(&to), before);
}

/// What the rows of files say, table by table.
fn rows(root: &std::path::Path) -> [Vec<String>; 7] {
    let store = on(RealDisk::new()).open_read_only(root).unwrap();
    let snapshot = store.snapshot().unwrap();
    fn all<R: Row>(snapshot: &Snapshot) -> Vec<String>
    where
        R::Key: std::fmt::Debug,
    {
        let rows = snapshot.list::<R>(.., usize::MAX).unwrap();
        rows.iter().map(|row| format!("{row:?}")).collect()
    }
    [
        all::<RecipeRow>(&snapshot),
        all::<NameRow>(&snapshot),
        all::<LeasedRow>(&snapshot),
        all::<PreparationRow>(&snapshot),
        all::<ObjectSnapshotRow>(&snapshot),
        all::<SnapshotNameRow>(&snapshot),
        all::<NameHandoffRow>(&snapshot),
    ]
}
