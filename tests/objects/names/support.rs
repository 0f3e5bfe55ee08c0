//! What the suite shares: small stores on a simulated disk, what is put into them, and all that names show.

use std::collections::BTreeMap;

use sealstone::engine::{Budget, Layout, Store, WriteAccess};
use sealstone::ids::{LeaseId, ObjectId};
use sealstone::manifest::{
    LeaseRow, LeasedRow, NameRow, ObjectRow, Piece, Place, Reading, RecipeRow,
};
use sealstone::objects::{Digest, Expected, Name, NameGeneration, Publish};
use sealstone::vfs::Step;
use sealstone::vfs::sim::SimDisk;

pub use crate::small::{LAYOUTS, each, name, on, root, sim};

/// A process of a world in which several write.
pub fn shared(disk: &SimDisk) -> Store {
    on(disk, Layout::Directory).access(WriteAccess::Shared).open_or_create(root()).unwrap()
}

pub fn any(text: &str, digest: Digest) -> Publish {
    Publish::new(name(text), Expected::Any, digest)
}

pub fn expecting(text: &str, expected: Expected, digest: Digest) -> Publish {
    Publish::new(name(text), expected, digest)
}

/// Content number `n`: a third of them fit into the manifest.
pub fn content(n: u64) -> Vec<u8> {
    n.to_be_bytes().repeat(if n.is_multiple_of(3) { 2 } else { 60 })
}

pub fn digest(n: u64) -> Digest {
    Digest::of(&content(n))
}

pub fn lease(store: &Store) -> LeaseId {
    store.lease("test", "names", None, &[]).unwrap()
}

/// Puts contents under a lease, named in its own row.
pub fn put(store: &Store, lease: LeaseId, numbers: &[u64]) -> Vec<ObjectId> {
    let contents = numbers.iter().map(|n| content(*n)).collect();
    let put = store.put_objects(lease, contents).unwrap();
    put.into_iter().map(|(object, _)| object).collect()
}

/// Gives each object that the lease's own row names a row of its own, as preparations have it.
pub fn as_rows(store: &Store, lease: LeaseId, is_piece: bool) {
    let moved = store.transact(Step::LeaseCommit, |w| {
        let mut row = w.require::<LeaseRow>(&lease)?;
        for object in std::mem::take(&mut row.objects) {
            w.put(&(lease, object), &LeasedRow { object, is_whole: !is_piece, is_piece })?;
        }
        w.put(&lease, &row)
    });
    moved.unwrap();
}

/// Puts a recipe of contents that are objects already, leased with a row of its own.
pub fn put_recipe(store: &Store, lease: LeaseId, numbers: &[u64]) -> (Digest, ObjectId) {
    let whole: Vec<u8> = numbers.iter().flat_map(|n| content(*n)).collect();
    let row = ObjectRow {
        digest: Digest::of(&whole),
        len: whole.len() as u64,
        stored_len: 0,
        codec: 0,
        place: Place::Recipe,
    };
    let committed = store.transact(Step::LeaseCommit, |w| {
        let mut pieces = Vec::new();
        for n in numbers {
            let (object, row) = w.object_of(&digest(*n))?.remove(0);
            pieces.push(Piece { object, len: row.len });
        }
        let object = w.next_object_id()?;
        w.put(&object, &row)?;
        w.put(&(object, 0), &RecipeRow { pieces })?;
        w.put(&(lease, object), &LeasedRow { object, is_whole: true, is_piece: false })?;
        Ok(object)
    });
    (row.digest, committed.unwrap().value)
}

/// What every lease keeps.
pub fn kept(store: &Store) -> Vec<(LeaseId, ObjectId)> {
    let snapshot = store.snapshot().unwrap();
    let mut kept = Vec::new();
    for (lease, row) in snapshot.list::<LeaseRow>(.., usize::MAX).unwrap() {
        kept.extend(row.objects.into_iter().map(|object| (lease, object)));
    }
    let rows = snapshot.list::<LeasedRow>(.., usize::MAX).unwrap();
    kept.extend(rows.into_iter().map(|(key, _)| key));
    kept.sort_unstable();
    kept
}

/// Whether any object of this digest is there.
pub fn is_there(store: &Store, digest: Digest) -> bool {
    !store.snapshot().unwrap().object_of(&digest).unwrap().is_empty()
}

/// All that names show: generation and content, read to the last byte, in every way there is.
pub fn shown(store: &Store) -> BTreeMap<String, (NameGeneration, Vec<u8>)> {
    let objects = store.objects();
    let mut all = BTreeMap::new();
    for namespace in objects.namespaces("", None, usize::MAX).unwrap() {
        let mut after: Option<String> = None;
        loop {
            let page = objects.names(&namespace, "", after.as_deref(), 2).unwrap();
            for view in &page {
                assert_eq!(objects.name(&view.name).unwrap().as_ref(), Some(view));
                let bytes = bytes_of(store, &view.name);
                assert_eq!((Digest::of(&bytes), bytes.len() as u64), (view.digest, view.len));
                let before = all.insert(view.name.to_string(), (view.generation, bytes));
                assert!(before.is_none(), "{} is listed twice", view.name);
            }
            after = page.last().map(|view| view.name.name().to_owned());
            if page.len() < 2 {
                break;
            }
        }
    }
    assert_eq!(all.len() as u64, count_names(store));
    all
}

fn count_names(store: &Store) -> u64 {
    store.snapshot().unwrap().count(sealstone::manifest::Table::Names).unwrap()
}

/// What stands under a name, by content, without generations.
pub fn contents(store: &Store) -> BTreeMap<String, Vec<u8>> {
    shown(store).into_iter().map(|(name, (_, bytes))| (name, bytes)).collect()
}

/// The same, of numbers of contents.
pub fn expect(names: &[(&str, u64)]) -> BTreeMap<String, Vec<u8>> {
    names.iter().map(|(name, n)| ((*name).to_owned(), content(*n))).collect()
}

fn bytes_of(store: &Store, name: &Name) -> Vec<u8> {
    let snapshot = store.snapshot().unwrap();
    let rows = snapshot.list::<NameRow>(.., usize::MAX).unwrap();
    let key = format!("{}\0{}", name.namespace(), name.name());
    let (_, row) = rows.into_iter().find(|(at, _)| at.name == key).unwrap();
    bytes_of_object(store, row.object)
}

/// An object's bytes, and of a recipe those of its pieces.
pub fn bytes_of_object(store: &Store, object: ObjectId) -> Vec<u8> {
    let snapshot = store.snapshot().unwrap();
    if snapshot.require::<ObjectRow>(&object).unwrap().place != Place::Recipe {
        return store.fetch(object).unwrap();
    }
    let rows = snapshot.list::<RecipeRow>(sealstone::manifest::recipe_of(object), usize::MAX);
    let pieces = rows.unwrap().into_iter().flat_map(|(_, row)| row.pieces);
    pieces.flat_map(|piece| store.fetch(piece.object).unwrap()).collect()
}

/// Every row, as bytes: what "nothing is changed" means. The counters of commits are left out.
pub fn rows(store: &Store) -> Vec<(sealstone::manifest::Table, Vec<u8>, Vec<u8>)> {
    use sealstone::manifest::{Raw, Table};
    let snapshot = store.snapshot().unwrap();
    let mut all = Vec::new();
    let counted = [Table::Meta, Table::Owners];
    for table in Table::ALL.iter().copied().filter(|table| !counted.contains(table)) {
        let range = (std::ops::Bound::Unbounded, std::ops::Bound::Unbounded);
        snapshot
            .raw_scan(table, range, false, &mut |key, value| {
                all.push((table, key.to_vec(), value.to_vec()));
                Ok(std::ops::ControlFlow::Continue(()))
            })
            .unwrap();
    }
    all
}

/// Every byte is accounted for, and reclaim takes nothing that counts.
pub fn books_close(store: &Store) {
    assert!(store.accounts().unwrap().are_closed());
    let before = shown(store);
    store.reclaim(Budget::default()).unwrap();
    assert_eq!(shown(store), before, "reclaim took something");
    let accounts = store.accounts().unwrap();
    assert!(accounts.are_closed() && accounts.orphan == 0 && accounts.condemned == 0);
}
