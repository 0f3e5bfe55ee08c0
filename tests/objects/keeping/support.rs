//! What the suite shares: stores on simulated disks, files that share their pieces, and all rows.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use sealstone::check::{CheckOptions, check};
use sealstone::engine::{Store, Thing};
use sealstone::ids::{HandoffId, LeaseId, NameGeneration, ObjectId, ObjectSnapshotId};
use sealstone::manifest::{
    HandoffName, LeaseRow, NameHandoffRow, NameKey, NameRow, Namespace, ObjectRow,
    ObjectSnapshotRow, ObjectSnapshotState, PREPARATION_HOLDER, Piece, Place, PreparationRow, Raw,
    Reading, RecipeRow, SnapshotNameKey, SnapshotNameRow, Table, ValueForm, recipe_of,
};
use sealstone::objects::{Digest, Gone};
use sealstone::vfs::Step;
use sealstone::vfs::sim::SimDisk;

pub use crate::small::{LAYOUTS, each, name, on, root, sim, small};

/// Pieces in one row of a recipe.
pub const ROW: usize = 4;

pub fn gone(text: &str) -> Gone {
    Gone::Name(name(text))
}

pub fn key(text: &str) -> NameKey {
    let name = name(text);
    let key = format!("{}\0{}", name.namespace(), name.name());
    NameKey { namespace: Namespace::OBJECTS, name: key }
}

/// Content number `n`: a third of them fit into the manifest.
pub fn content(n: u64) -> Vec<u8> {
    let mut state = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let len = if n.is_multiple_of(3) { 40 } else { 700 };
    let mut bytes = Vec::new();
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend(state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

pub fn digest(n: u64) -> Digest {
    Digest::of(&content(n))
}

/// Stores contents under a lease.
pub fn put(store: &Store, numbers: &[u64]) -> (LeaseId, Vec<ObjectId>) {
    let lease = store.lease("test", "keeping", None, &[]).unwrap();
    let contents = numbers.iter().map(|n| content(*n)).collect();
    let put = store.put_objects(lease, contents).unwrap();
    (lease, put.into_iter().map(|(object, _)| object).collect())
}

/// Lets `text` stand for an object.
pub fn set_name(store: &Store, text: &str, object: ObjectId) {
    let set = store.transact(Step::LeaseCommit, |w| {
        let len = w.require::<ObjectRow>(&object)?.len;
        let commit = w.commit_seq();
        let generation = NameGeneration(1);
        w.put(&key(text), &NameRow { generation, object, len, commit, form: ValueForm::Bytes })
    });
    set.unwrap();
}

/// A name for each content.
pub fn file(store: &Store, text: &str, n: u64) -> ObjectId {
    let (lease, objects) = put(store, &[n]);
    set_name(store, text, objects[0]);
    store.retire(&[Thing::Lease(lease)], "named").unwrap();
    objects[0]
}

/// A file in pieces, each of them one of the contents.
pub fn recipe(store: &Store, text: &str, numbers: &[u64]) -> ObjectId {
    let (lease, objects) = put(store, numbers);
    let whole: Vec<u8> = numbers.iter().flat_map(|n| content(*n)).collect();
    let row = ObjectRow {
        digest: Digest::of(&whole),
        len: whole.len() as u64,
        stored_len: 0,
        codec: 0,
        place: Place::Recipe,
    };
    let made = store.transact(Step::LeaseCommit, |w| {
        let object = w.next_object_id()?;
        let mut begins = 0;
        for part in objects.chunks(ROW) {
            let mut pieces = Vec::new();
            for object in part {
                pieces.push(Piece { object: *object, len: w.require::<ObjectRow>(object)?.len });
            }
            let row = RecipeRow { pieces };
            w.put(&(object, begins), &row)?;
            begins += row.bytes().unwrap();
        }
        w.put(&object, &row)?;
        let (len, commit, generation) = (row.len, w.commit_seq(), NameGeneration(1));
        w.put(&key(text), &NameRow { generation, object, len, commit, form: ValueForm::Bytes })?;
        w.remove::<LeaseRow>(&lease)?;
        Ok(object)
    });
    made.unwrap().value
}

/// A preparation that keeps an object, and that nobody works on.
pub fn preparation(store: &Store, name: &str, object: ObjectId) {
    let (holder, purpose) = (PREPARATION_HOLDER.to_owned(), name.to_owned());
    let row = LeaseRow { holder, purpose, deadline: None, objects: vec![object] };
    let made = store.transact(Step::LeaseCommit, |w| {
        let lease = w.next_lease_id()?;
        w.put(&lease, &row)?;
        w.put(&name.to_owned(), &PreparationRow { lease, created: None })
    });
    made.unwrap();
}

pub fn handoff(store: &Store, name: &str, object: ObjectId) -> HandoffId {
    let made = store.transact(Step::LeaseCommit, |w| {
        let id = w.next_handoff_id()?;
        let len = w.require::<ObjectRow>(&object)?.len;
        let key = key(name);
        let names = vec![HandoffName {
            namespace: key.namespace.0,
            name: key.name,
            expected: None,
            object,
            len,
        }];
        let target = "elsewhere".to_owned();
        let (intent, prepared) = (Vec::new(), w.commit_seq());
        let row = NameHandoffRow { target, names, intent, lease: None, prepared, at: None };
        w.put(&id, &row)?;
        Ok(id)
    });
    made.unwrap().value
}

pub fn snapshot(store: &Store, called: &str, is_open: bool, object: ObjectId) -> ObjectSnapshotId {
    let made = store.transact(Step::LeaseCommit, |w| {
        let snapshot = w.next_object_snapshot_id()?;
        let len = w.require::<ObjectRow>(&object)?.len;
        let (state, committed) = match is_open {
            true => (ObjectSnapshotState::Open, None),
            false => (ObjectSnapshotState::Committed, Some(w.commit_seq())),
        };
        let row =
            ObjectSnapshotRow { snapshot, state, created: None, committed, names: 1, bytes: len };
        w.put(&called.to_owned(), &row)?;
        let key = SnapshotNameKey { snapshot, name: key("files/in-it") };
        w.put(&key, &SnapshotNameRow { object, len, generation: None })?;
        Ok(snapshot)
    });
    made.unwrap().value
}

/// Files that share their pieces in every way: `files/a` and `files/b` the same ones in other orders,
/// `files/c` some of them, `files/d` and `files/e` one content that is a piece as well.
pub fn family(store: &Store) {
    let numbers: Vec<u64> = (0..10).collect();
    recipe(store, "files/a", &numbers);
    recipe(store, "files/b", &[9, 3, 5, 7, 1, 0, 2, 4, 6, 8, 3]);
    recipe(store, "files/c", &[2, 4, 20]);
    let object = file(store, "files/d", 4);
    set_name(store, "files/e", object);
    file(store, "files/f", 31);
}

pub const FAMILY: [&str; 6] = ["files/a", "files/b", "files/c", "files/d", "files/e", "files/f"];

pub fn all_of_it() -> Vec<Gone> {
    FAMILY.iter().map(|text| gone(text)).collect()
}

/// An object's bytes, and of a recipe those of its pieces.
pub fn bytes_of(store: &Store, object: ObjectId) -> Vec<u8> {
    let rows = store.snapshot().unwrap();
    let row = rows.require::<ObjectRow>(&object).unwrap();
    let bytes = if row.place == Place::Recipe {
        let rows = rows.list::<RecipeRow>(recipe_of(object), usize::MAX).unwrap();
        let pieces = rows.into_iter().flat_map(|(_, row)| row.pieces);
        pieces.flat_map(|piece| store.fetch(piece.object).unwrap()).collect()
    } else {
        store.fetch(object).unwrap()
    };
    assert_eq!(Digest::of(&bytes), row.digest);
    bytes
}

/// Every name with its content, read to the last byte.
pub fn shown(store: &Store) -> BTreeMap<String, Vec<u8>> {
    let rows = store.snapshot().unwrap().list::<NameRow>(.., usize::MAX).unwrap();
    let read =
        |(key, row): (NameKey, NameRow)| (key.name.replace('\0', "/"), bytes_of(store, row.object));
    rows.into_iter().map(read).collect()
}

pub fn count(store: &Store, table: Table) -> u64 {
    store.snapshot().unwrap().count(table).unwrap()
}

/// Objects, but for those that hold snapshots of all rows.
pub fn objects(store: &Store) -> u64 {
    count(store, Table::Objects) - count(store, Table::Snapshots)
}

pub type Rows = Vec<(Table, Vec<u8>, Vec<u8>)>;

/// Every row of the tables that `wanted` takes, as bytes.
pub fn rows(store: &Store, wanted: impl Fn(Table) -> bool) -> Rows {
    let snapshot = store.snapshot().unwrap();
    let mut all = Vec::new();
    for table in Table::ALL.iter().copied().filter(|table| wanted(*table)) {
        let range = (Bound::Unbounded, Bound::Unbounded);
        snapshot
            .raw_scan(table, range, false, &mut |key, value| {
                all.push((table, key.to_vec(), value.to_vec()));
                Ok(ControlFlow::Continue(()))
            })
            .unwrap();
    }
    all
}

/// All of them.
pub fn every_row(store: &Store) -> Rows {
    rows(store, |_| true)
}

/// What a store has that is about bytes: who refers to what, and where it lies.
pub fn rows_of_bytes(store: &Store) -> Rows {
    use Table as T;
    let of_bytes = [
        T::Objects,
        T::Inline,
        T::Digests,
        T::Edges,
        T::Files,
        T::FileObjects,
        T::Condemned,
        T::Recipes,
        T::Retiring,
    ];
    rows(store, |table| of_bytes.contains(&table))
}

/// A store that was closed: every row stands for what it says, and everything reads.
pub fn checked(disk: &SimDisk) {
    let options =
        CheckOptions { disk: Some(Arc::new(disk.process(90))), ..CheckOptions::default() };
    let report = check(root(), &options, &mut |_| ControlFlow::Continue(())).unwrap();
    assert!(report.is_good(), "{report:?}");
}
